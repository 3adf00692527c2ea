# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# ./dev run --swap-limits: the same check has to fail, or it would check nothing.
. "$(dirname "$0")/common.sh"

SWAP=yes
story_restart
story_play "$LAB/swapped.record"
daemon_end
if story_verdict; then
	say "the verdict does not notice that the limits are swapped"
	exit 1
fi
