# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# One QEMU stands still: equal windows before and meanwhile; then it goes on.
. "$(dirname "$0")/common.sh"

WINDOW=15
story_restart
daemon_configure 4096
daemon_start
not_answering() {
	[ "$(vm batch answering)" = false ] && [ "$(vm batch state)" = "not answering" ]
}
answering() {
	[ "$(vm batch answering)" = true ] && [ "$(vm batch state)" = running ]
}
took_more() {
	[ "$(vm batch samples)" -gt "$stopped" ]
}
wait_for 20 sampling

declare -A begin before
for name in web spare; do begin[$name]=$(vm $name samples); done
sleep $WINDOW
for name in web spare; do before[$name]=$(($(vm $name samples) - begin[$name])); done

pid=$(guest_pid batch)
trap 'kill -CONT "$pid"' EXIT
kill -STOP "$pid"
for name in web spare; do begin[$name]=$(vm $name samples); done
sleep $WINDOW
for name in web spare; do
	expect "$name's samples while batch stands still (before: ${before[$name]})" \
		$(($(vm $name samples) - begin[$name])) -ge $(((before[$name] * 9 + 9) / 10))
done
expect "it is shown as not answering" "$(not_answering && echo 1 || echo 0)" -eq 1
stopped=$(vm batch samples)

kill -CONT "$pid"
trap - EXIT
wait_for 30 answering || true
expect "it is shown as running when it wakes" "$(answering && echo 1 || echo 0)" -eq 1
wait_for 20 took_more || true
expect "its samples go on" "$(vm batch samples)" -gt "$stopped"
daemon_end
finish
