#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What a charge costs: charge.c says what is measured, and in which ways. Speeds are faults a second
# of processor time (the machine may do other things); ratios are of slices of one round, their
# median and the interval that holds the true one in 95 of 100 cases.
#   --smoke  few rounds    --json  the same as JSON
set -euo pipefail
. "$(dirname "$0")/../lab/parts.sh"

rounds=60 smoke=no json=no
for arg in "$@"; do
	case $arg in
	--smoke) smoke=yes rounds=2 ;;
	--json) json=yes ;;
	*) die "charge: $arg?" ;;
	esac
done

build_programs
build_make plain tests/bench/charge tests/bench/charge_atomics >&2
bench=$ROOT/build/plain/tests/bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rows=$work/rows

# row NAME VALUE UNIT [at_most|at_least BAR [WHAT IS COMPARED WITH IT]]
row() {
	echo "$*" >>"$rows"
}

# instructions N: callgrind's, of charge_try() in a refill and N charges from the stock.
instructions() {
	valgrind --tool=callgrind --callgrind-out-file="$work/callgrind" --toggle-collect=charge_try \
		"$bench/charge" hits "$1" >/dev/null 2>&1
	awk '/^(totals|summary):/ { n = $2 } END { print n }' "$work/callgrind"
}

row charge.hit_instructions "$((($(instructions 63) - $(instructions 0)) / 63))" instructions at_most 15
read -r charges uncharges < <("$bench/charge_atomics" atomics 100000)
row charge.atomics_per_1000 "$charges" accesses at_most 93.75
row uncharge.atomics_per_1000 "$uncharges" accesses at_most 93.75

for threads in 1 2 8; do
	for groups in own one; do
		name=charge.${threads}t
		[ $groups = own ] || name+=.one_group
		"$bench/charge" faults $threads $groups $rounds >"$work/said"
		while read -r what median low high; do
			case $what in
			over_none)
				row "$name.over_none" "$median" ratio at_least 0.99 "$high"
				row "$name.over_none.interval" "$low..$high" ratio
				;;
			over_*)
				row "$name.$what" "$median" ratio
				row "$name.$what.interval" "$low..$high" ratio
				;;
			*) row "$name.$what" "${median%.*}" faults/s ;;
			esac
		done <"$work/said"
	done
done
row charge.document.over_before 1.102 ratio

# The share of the samples that is in the functions of charging.
if perf record -q -e cpu-clock -o "$work/perf" "$bench/charge" faults 8 own $((rounds / 2)) ours \
	>/dev/null 2>&1; then
	share=$(perf report -i "$work/perf" --stdio --sort symbol 2>/dev/null |
		awk '/^ *[0-9.]+%/ && $3 ~ /^(un)?charge_|^uncharge|^css_|^page_counter_|^atomic_/ { sum += $1 } END { printf "%.2f\n", sum }')
	row charge.share "$share" % at_most 1
else
	say "charge.share: perf does not run here" >&2
fi

if [ $json = yes ]; then
	awk 'BEGIN { print "[" }
		{ quoted = $2 ~ /\.\./ ? "\"" $2 "\"" : $2
		printf "%s  {\"name\": \"%s\", \"value\": %s, \"unit\": \"%s\"%s}", (NR > 1 ? ",\n" : ""), $1, quoted, $3, \
			($4 == "" ? "" : ", \"" $4 "\": " $5) }
		END { print "\n]" }' "$rows"
else
	awk '{ said = ""
		if ($4 == "at_most") said = " (at most " $5 ($2 <= $5 ? ")" : ": MISSED)")
		if ($4 == "at_least") said = " (at least " $5 ($6 >= $5 ? ")" : ": MISSED)")
		print $1, $2, $3 said }' "$rows"
fi
[ $smoke = no ] || say "few rounds: the ratios say nothing" >&2
