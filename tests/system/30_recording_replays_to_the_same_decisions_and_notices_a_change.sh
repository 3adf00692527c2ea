# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# The recording of case 10.
. "$(dirname "$0")/common.sh"

[ ! -e "$LAB/daemon.pid" ] || daemon_end
replay() {
	local status=0
	"$BUILD/ballast-sim" replay "$1" >&2 || status=$?
	echo $status
}

# change_one FROM TO: the first line that has FROM, changed; the others as they are.
change_one() {
	sed "0,/$1/s/$1/$2/" "$LAB/run.record" >"$LAB/changed.record"
	! cmp -s "$LAB/run.record" "$LAB/changed.record"
}

expect "the recording has decisions" "$(grep -c '"actions":' "$LAB/run.record")" -gt 0
expect "it replays to identical decisions" "$(replay "$LAB/run.record")" -eq 0
change_one '\("pool":{[^}]*"size":\)\([0-9]\)' '\11\2'
expect "a changed input changes decisions" "$(replay "$LAB/changed.record")" -eq 1
change_one '\("actions":\[{[^}]*"target":\)\([0-9]\)' '\11\2'
expect "a changed decision is noticed" "$(replay "$LAB/changed.record")" -eq 1
finish
