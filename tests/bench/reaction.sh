#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# How long it takes from the moment at which a guest's growth takes the pool below wm_low until
# libvirtd has the balloon command. t0: the bench's own sampler, every 5 ms; t1: libvirtd's log.
# Managers in use look every ten seconds.
set -euo pipefail
. "$(dirname "$0")/../lab/parts.sh"

TRIES=${TRIES:-20}
ABOVE=15  # MiB above wm_low between the tries
GROWTH=35 # MiB, at RATE MiB/s
RATE=150

cost=0
lab_trap
lab_up >&2
image_tool "$ROOT/tests/bench/sampler.c" "$CACHE/sampler"
story_define
story_start
pids=()
for name in $GUESTS; do
	cost=$((cost + $(guest_cost "$name")))
	pids+=("$(guest_pid "$name")")
done
daemon_configure $((cost + WM_LOW + ABOVE))
daemon_start
sleep 3

# room: batch has its cache again and the pool is as full as it was.
room() {
	guest batch cache "$STORY_BATCH_CACHE"
	[ "$(pool_free)" -le $((WM_LOW + ABOVE + 6)) ] && [ "$(pool_free)" -gt $((WM_LOW + 4)) ]
}

# command_after MARK T0: milliseconds from T0 to the first balloon command after MARK.
command_after() {
	local time
	time=$(balloon_commands "$1" | awk 'NR == 1 { print $2 }')
	[ -n "$time" ] || return 1
	echo $(($(date -d "${time/T/ }" +%s%3N) - $2))
}

times=()
lost=0
for ((try = 1; try <= TRIES; try++)); do
	wait_for 30 room || {
		warn "try $try: the pool does not come back to where it was: $(pool_free) MiB free"
		lost=$((lost + 1))
		continue
	}
	sleep "0.$((RANDOM % 900 + 100))" # not in step with any timer of ballastd's
	mark=$(log_mark)
	"$CACHE/sampler" $(($(<"$LAB/pool") * 1024)) $((WM_LOW * 1024)) 10 "${pids[@]}" >"$LAB/crossing" &
	sampler=$!
	guest web grow $GROWTH $RATE
	wait "$sampler" || {
		warn "try $try: the growth did not cross wm_low"
		lost=$((lost + 1))
		guest web drop grow
		continue
	}
	read -r t0 _ <"$LAB/crossing"
	if wait_for 15 command_after "$mark" "$t0" >/dev/null; then
		times+=("$(command_after "$mark" "$t0")")
		warn "try $try: ${times[-1]} ms"
	else
		warn "try $try: no balloon command"
		lost=$((lost + 1))
	fi
	sleep 3 # what was asked has come
	guest web drop grow
	sleep 2
done
daemon_end
[ ${#times[@]} -gt 0 ] || die "no try gave a time"

# The median, and the interval that has it with 95 % of confidence, from the order of the times.
printf '%s\n' "${times[@]}" | sort -n | awk -v lost=$lost '
	{ t[NR] = $1 }
	END {
		k = int(NR / 2 - 0.98 * sqrt(NR)); if (k < 1) k = 1
		print "reaction.median_ms", (NR % 2 ? t[(NR + 1) / 2] : (t[NR / 2] + t[NR / 2 + 1]) / 2), "ms"
		print "reaction.interval_low_ms", t[k], "ms"
		print "reaction.interval_high_ms", t[NR + 1 - k], "ms"
		print "reaction.worst_ms", t[NR], "ms"
		print "reaction.tries", NR, "tries"
		print "reaction.lost", lost, "tries"
		print "reaction.others_ms", 10000, "ms"
	}'
