#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# How long it takes from the moment at which a guest's growth takes the pool below wm_low until
# libvirtd has the balloon command. t0: the bench's own sampler, every 5 ms; t1: libvirtd's log.
# Managers in use look every ten seconds. A try in which no command comes counts as the time that it
# was waited for.
#   --json  as JSON
set -euo pipefail
. "$(dirname "$0")/../lab/parts.sh"

TRIES=${TRIES:-20}
ABOVE=15 # MiB above wm_low where each try begins
GROWTH=30 # MiB, at RATE MiB/s
RATE=100
LATEST=15 # seconds that a command is waited for

bench_options reaction "$@"
cost=0
lab_trap
lab_up >&2
WORK=$LAB
image_tool "$ROOT/tests/bench/sampler.c" "$CACHE/sampler"
story_define
story_start
for name in $GUESTS; do
	cost=$((cost + $(guest_cost "$name")))
done
daemon_configure $((cost + WM_LOW + ABOVE))
daemon_start
sleep 3

# eyes: what the sampler is told of each guest.
eyes() {
	local name actual resident cost
	while read -r name actual resident _ cost; do
		echo "$(guest_pid "$name"):$(((cost - resident) * 1024)):$((actual * 1024))"
	done < <(story_snapshot)
}

# left: what is left of the pool by the sampler's figures, MiB above wm_low.
left() {
	local kib
	mapfile -t watched < <(eyes)
	read -r _ kib < <("$CACHE/sampler" "$(($(<"$LAB/pool") * 1024))" 0 0 "${watched[@]}")
	echo $((kib / 1024 - WM_LOW))
}

# room: web gives back what it grew by, batch has its cache again, and web fills the pool up slowly to
# where a try begins.
room() {
	local above
	guest web drop grow
	sleep 2
	guest batch cache "$STORY_BATCH_CACHE"
	above=$(left)
	if [ "$above" -gt $((ABOVE + 2)) ]; then
		guest web grow $((above - ABOVE)) 20
		wait_for 20 story_grown
	fi
	sleep 2
	above=$(left)
	[ "$above" -gt 5 ] && [ "$above" -le $((ABOVE + 6)) ]
}

# command_after MARK T0: milliseconds from T0 to the first balloon command after MARK that takes memory.
command_after() {
	local time
	time=$(balloon_commands | awk -v mark="$1" '
		$1 > mark && $4 < target[$3] { print $2; exit }
		{ target[$3] = $4 }')
	[ -n "$time" ] || return 1
	echo $(($(date -d "${time/T/ }" +%s%3N) - $2))
}

times=()
lost=0
for ((try = 1; try <= TRIES; try++)); do
	wait_for 40 room || {
		warn "try $try: the pool does not come back to where it was: $(left) MiB above wm_low"
		lost=$((lost + 1))
		continue
	}
	sleep "0.$((RANDOM % 900 + 100))" # not in step with any timer of ballastd's
	mark=$(log_mark)
	mapfile -t watched < <(eyes)
	"$CACHE/sampler" $(($(<"$LAB/pool") * 1024)) $((WM_LOW * 1024)) 10 "${watched[@]}" >"$LAB/crossing" &
	sampler=$!
	guest web grow $GROWTH $RATE
	wait "$sampler" || {
		warn "try $try: the growth did not cross wm_low"
		lost=$((lost + 1))
		continue
	}
	read -r t0 _ <"$LAB/crossing"
	if wait_for $LATEST command_after "$mark" "$t0" >/dev/null; then
		times+=("$(command_after "$mark" "$t0")")
		warn "try $try: ${times[-1]} ms"
	else
		warn "try $try: no balloon command"
		times+=($((LATEST * 1000)))
	fi
	sleep 3 # what was asked has come
done
daemon_end
[ ${#times[@]} -gt 0 ] || die "no try gave a time"

# The median, and the interval that has it with 95 % of confidence, from the order of the times.
read -r median low high worst < <(printf '%s\n' "${times[@]}" | sort -n | awk '
	{ t[NR] = $1 }
	END {
		k = int(NR / 2 - 0.98 * sqrt(NR)); if (k < 1) k = 1
		print (NR % 2 ? t[(NR + 1) / 2] : (t[NR / 2] + t[NR / 2 + 1]) / 2), t[k], t[NR + 1 - k], t[NR]
	}')
row reaction.median_ms "$median" ms at_most 100
row reaction.interval_low_ms "$low" ms
row reaction.interval_high_ms "$high" ms
row reaction.worst_ms "$worst" ms
row reaction.tries ${#times[@]} tries
row reaction.lost $lost tries
row reaction.others_ms 10000 ms
bench_end
