# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What the cases share. ./dev test system runs them in order in one lab ($LAB), each in a shell of
# its own with set -euo pipefail. A case passes when it exits with 0; 77 skips it.
. "$(dirname "${BASH_SOURCE[0]}")/../lab/parts.sh"
lab_open "$LAB"
SWAP=no
WRONG=0

# finish: the last line of a case that uses expect.
finish() {
	[ $WRONG = 0 ]
}

# vm NAME FIELD: what ballastd says about a guest.
vm() {
	ctl status --format json | jq -r --arg n "$1" --arg f "$2" '.vms[] | select(.name == $n) | .[$f]'
}

# sampling: statistics of all guests have come several times.
sampling() {
	local name
	for name in $GUESTS; do
		[ "$(vm "$name" samples)" -ge 3 ] || return 1
	done
}

# floor_of NAME: the configured floor, MiB.
floor_of() {
	echo $((STORY_MIB[$1] * FLOOR_PERCENT / 100))
}
