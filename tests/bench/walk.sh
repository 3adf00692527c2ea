#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What a tick of the engine costs, by the number of VMs in the tree: walk.c says what is measured.
# Times are of the processor (the machine may do other things), medians; instructions are
# callgrind's, of a tick. The bars are those of the design; a row without one is there to compare.
#   --smoke  small trees, each once    --json  the same as JSON
set -euo pipefail
. "$(dirname "$0")/../lab/parts.sh"

bench_begin walk "$@"
sizes="500 2000 8000 10000 100000" cycles=9 counted="500 2000 8000 10000"
[ "$SMOKE" = no ] || sizes="500" cycles=2 counted="500"

# size N: 500 is 0.5k.
size() {
	awk -v n="$1" 'BEGIN { print n / 1000 "k" }'
}

# count CASE SHAPE EXCESS GROUPS CYCLES: callgrind's instructions a measured tick.
count() {
	local out=$WORK/callgrind
	valgrind --tool=callgrind --callgrind-out-file="$out" --toggle-collect=measured_tick \
		"$BENCH" "$@" >"$WORK/said" 2>/dev/null
	awk -v ticks="$(awk '{ print $4 }' "$WORK/said")" '/^(totals|summary):/ { n = $2 } END { printf "%d\n", n / ticks }' "$out"
}

# measure NAME CASE SHAPE EXCESS GROUPS CYCLES: time, and visited groups; both are in $ms and $visited.
measure() {
	local us
	read -r us visited depth _ < <("$BENCH" "${@:2}")
	ms=$(awk -v us="$us" 'BEGIN { printf "%.3f\n", us / 1000 }')
	row "$1.tick_ms" "$ms" ms
	[ "$visited" = 0 ] || row "$1.visited" "$visited" groups
}

for n in $sizes; do
	for shape in flat binary; do
		for excess in none ten tenth all; do
			name=walk.$(size "$n").$shape.$excess
			measure "$name" busy $shape $excess "$n" $cycles
			[ $excess != tenth ] || eval "tenth_${shape}_$n=$ms"
			[ $excess != ten ] || eval "ten_${shape}_$n=$visited depth_${shape}_$n=$depth"
			[[ " $counted " != *" $n "* ]] || [ $excess = none ] || [ $excess = all ] ||
				row "$name.instructions" "$(count busy $shape $excess "$n" 2)" instructions
		done
	done
done

# larger A B
larger() {
	awk -v a="$1" -v b="$2" 'BEGIN { print (a + 0 > b + 0 ? a : b) }'
}

# The bars: of the two shapes the worse.
for n in $sizes; do
	flat=tenth_flat_$n binary=tenth_binary_$n
	case $n in
	10000) bar=2 ;;
	100000) bar=20 ;;
	*) bar='' ;;
	esac
	row "walk.$(size "$n").busy.tick_ms" "$(larger "${!flat}" "${!binary}")" ms ${bar:+at_most $bar}
	flat=ten_flat_$n binary=ten_binary_$n depth=depth_binary_$n
	row "walk.$(size "$n").ten.visited" "$(larger "${!flat}" "${!binary}")" groups at_most $((10 * ${!depth} + 100))
done
n=10000
[ "$SMOKE" = no ] || n=500
# Each VM is a root, and all are asked for the pool. Who looks at others than its own, or than those
# below it, looks at 10^8.
measure "walk.$(size $n).maxed" maxed flat all $n $cycles
row "walk.$(size $n).maxed.instructions" "$(count maxed flat all $n 2)" instructions at_most $((n * 20000))
row "walk.$(size $n).quiet.instructions" "$(count quiet binary tenth $n 10)" instructions at_most 20000
row "walk.$(size $n).capped.instructions" "$(count capped binary tenth $n 10)" instructions

# A stream with a soft limit of 0, beside so many empty groups and without: its own 6.4 s and what
# ballast takes meanwhile. That is at the engine; the simulator's experiments have the whole host. And
# what the groups add to a tick: to scan them all takes several instructions for each. (All are looked
# at when the pool crosses wm_min, which it does in a tick of nine here.)
stream() {
	local us ticks
	read -r us _ _ ticks _ < <("$BENCH" stream flat none "$1" 1)
	awk -v us="$us" -v ticks="$ticks" 'BEGIN { printf "%.6f\n", ticks / 20 + us / 1000000 }'
}
# stream_median GROUPS
stream_median() {
	for _ in 1 2 3 4 5; do stream "$1"; done | sort -n | sed -n 3p
}
without=$(stream_median 0)
alone=$(count stream flat none 0 1)
beside="500 2000 8000"
[ "$SMOKE" = no ] || beside="500"
for n in $beside; do
	name=walk.$(size "$n").stream
	row "$name" "$(awk -v a="$(stream_median "$n")" -v b="$without" 'BEGIN { printf "%.4f\n", a / b }')" ratio at_most 1.05
	row "$name.instructions" $(($(count stream flat none "$n" 1) - alone)) instructions at_most $((2 * n))
done

bench_end
