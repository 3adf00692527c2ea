# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# libvirtd is killed with -9 after the first balloon command, and started again: the guests run on,
# and only batch, which is in excess, gives.
. "$(dirname "$0")/common.sh"

is_connected() {
	[ "$(ctl status --format json | jq .connected)" = "$1" ]
}

begin
mark=$(log_mark)
guest web grow 70 "$STORY_RATE"
cut_begins batch "$mark"
daemon=$(<"$LAB/daemon.pid")
lab_kill_libvirtd
killed=$(log_mark)
guest web grow 40 "$STORY_RATE" # what was asked before is not enough any more
wait_for 10 is_connected false || true
expect "the daemon says that it is not connected" "$(is_connected false && echo 1 || echo 0)" -eq 1
wait_for 20 story_grown
lab_restart_libvirtd web
wait_for 20 is_connected true || true
expect "it is connected again" "$(is_connected true && echo 1 || echo 0)" -eq 1
expect "it is the same daemon" "$(is_ours "$daemon" "$LAB" && echo 1 || echo 0)" -eq 1
wait_for 30 story_settled || true
expect "the pool has free memory" "$(pool_free)" -ge "$WM_LOW"
expect "balloon commands to batch since libvirtd is there again" "$(cuts batch "$killed")" -ge 1
expect "balloon commands to spare and web" $(($(commands spare "$mark") + $(commands web "$mark"))) -eq 0
guest web drop grow
expect_ceilings 30 again
daemon_end
finish
