#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What a charge costs: charge.c says what is measured, and in which ways. Speeds are faults a second
# of processor time (the machine may do other things); ratios are of slices of one round, their
# median and the interval that holds the true one in 95 of 100 cases. control is no way over itself.
#   --smoke  few rounds    --json  the same as JSON
set -euo pipefail
. "$(dirname "$0")/../lab/parts.sh"

bench_begin charge "$@"
build_make plain tests/bench/charge_atomics >&2
rounds=60
[ "$SMOKE" = no ] || rounds=2

# instructions N: callgrind's, of charge_try() in a refill and N charges from the stock.
instructions() {
	valgrind --tool=callgrind --callgrind-out-file="$WORK/callgrind" --toggle-collect=charge_try \
		"$BENCH" hits "$1" >/dev/null 2>&1
	awk '/^(totals|summary):/ { n = $2 } END { print n }' "$WORK/callgrind"
}

row charge.hit_instructions "$((($(instructions 63) - $(instructions 0)) / 63))" instructions at_most 15
read -r charges uncharges < <("${BENCH}_atomics" atomics 100000)
row charge.atomics_per_1000 "$charges" accesses at_most 93.75
row uncharge.atomics_per_1000 "$uncharges" accesses at_most 93.75

for threads in 1 2 8; do
	for groups in own one; do
		name=charge.${threads}t
		[ $groups = own ] || name+=.one_group
		"$BENCH" faults $threads $groups $rounds >"$WORK/said"
		while read -r what median low high; do
			case $what in
			over_none) ratio "$name.$what" "$median" "$low..$high" at_least 0.99 ;;
			over_* | control) ratio "$name.$what" "$median" "$low..$high" ;;
			*) row "$name.$what" "${median%.*}" faults/s ;;
			esac
		done <"$WORK/said"
	done
done
row charge.document.over_before 1.102 ratio

# symbols SOURCE...: the functions of these files of policy/ that are not inlined.
symbols() {
	local name
	for name in "$@"; do
		nm --defined-only "$ROOT/build/plain/policy/$name.o" | awk '$2 ~ /^[tT]$/ { print $3 }'
	done
}

# share WAY SOURCE...: of the samples that a profile of this way has, those in these files, in percent;
# -: perf does not run here.
share() {
	local way=$1
	shift
	if ! perf record -q -e cpu-clock -o "$WORK/perf" "$BENCH" faults 8 own $((rounds / 2)) "$way" \
		>/dev/null 2>&1; then
		say "charge: perf does not run here; the shares of the profile are not measured" >&2
		echo -
		return
	fi
	symbols "$@" >"$WORK/symbols"
	perf report -i "$WORK/perf" --stdio --sort symbol 2>/dev/null | awk '
		NR == FNR { ours[$1] = 1; next }
		/^ *[0-9.]+%/ { all += $1; if ($3 in ours) sum += $1 }
		END { if (all) printf "%.2f\n", sum; else print "-" }' "$WORK/symbols" -
}

# Of our way all that charges; and how the functions of references leave the profile.
row charge.share "$(share ours charge css page_counter memcg)" % at_most 1
row charge.share.references "$(share ours css)" %
row charge.before.share.references "$(share before css)" %

bench_end
