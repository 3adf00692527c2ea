# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# One QEMU stands still: the others' samples in equal windows before and meanwhile; then it goes on.
. "$(dirname "$0")/common.sh"

WINDOW=20
story_restart
daemon_configure 4096
daemon_start

# counts: the daemon's own time in us and the samples of web and spare, all of one moment.
counts() {
	ctl status --format json | jq -r '[.now_us] + [.vms[] | select(.name != "batch") | .samples] | @tsv'
}

# window: for spare and web, samples in a thousand seconds, over a window.
window() {
	local time spare web time2 spare2 web2
	read -r time spare web < <(counts)
	sleep $WINDOW
	read -r time2 spare2 web2 < <(counts)
	echo $(((spare2 - spare) * 1000000000 / (time2 - time))) \
		$(((web2 - web) * 1000000000 / (time2 - time)))
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
