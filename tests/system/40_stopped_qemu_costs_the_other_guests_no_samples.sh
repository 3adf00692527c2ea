# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# One QEMU stands still: how often the others' monitors were asked for statistics, by libvirtd's log, in
# equal windows before and meanwhile; then it goes on.
. "$(dirname "$0")/common.sh"

WINDOW=12
story_restart
daemon_configure 4096
daemon_start

# window: for spare and web, samples in a thousand seconds, over a window.
window() {
	local begin mark time
	mark=$(log_mark)
	begin=$(now_ms)
	sleep $WINDOW
	time=$(($(now_ms) - begin))
	echo $(($(stats_reads "$mark" spare) * 1000000 / time)) $(($(stats_reads "$mark" web) * 1000000 / time))
}

is_shown() {
	[ "$(vm batch answering)" = "$1" ] && [ "$(vm batch state)" = "$2" ]
}
took_more() {
	[ "$(vm batch samples)" -gt "$stopped" ]
}

wait_for 20 sampling
read -r spare web < <(window)

pid=$(guest_pid batch)
trap 'kill -CONT "$pid"' EXIT
kill -STOP "$pid"
read -r spare_then web_then < <(window)
expect "samples of spare in 1000 s while batch stands still, $spare before" "$spare_then" -ge $((spare * 9 / 10))
expect "samples of web in 1000 s while batch stands still, $web before" "$web_then" -ge $((web * 9 / 10))
expect "both were sampled before" $((spare > 500 && web > 500)) -eq 1
expect "it is shown as not answering" "$(is_shown false "not answering" && echo 1 || echo 0)" -eq 1
stopped=$(vm batch samples)

kill -CONT "$pid"
trap - EXIT
wait_for 30 is_shown true running || true
expect "it is shown as running when it wakes" "$(is_shown true running && echo 1 || echo 0)" -eq 1
wait_for 20 took_more || true
expect "its samples go on" "$(vm batch samples)" -gt "$stopped"
daemon_end
finish
