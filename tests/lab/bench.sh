# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What the benches share: their options, and the table of their figures. Needs lib.sh, build.sh.

# bench_begin NAME [--smoke] [--json]: builds tests/bench/NAME; sets SMOKE and JSON (yes, no), WORK,
# a folder that is gone at the end, and BENCH, the program.
bench_begin() {
	local arg name=$1
	shift
	SMOKE=no JSON=no
	for arg in "$@"; do
		case $arg in
		--smoke) SMOKE=yes ;;
		--json) JSON=yes ;;
		*) die "$name: $arg?" ;;
		esac
	done
	build_programs
	build_make plain "tests/bench/$name" >&2
	BENCH=$ROOT/build/plain/tests/bench/$name
	WORK=$(mktemp -d)
	trap 'rm -rf "$WORK"' EXIT
}

# row NAME VALUE UNIT [at_most|at_least BAR [WHAT IS COMPARED WITH IT]]
row() {
	echo "$*" >>"$WORK/rows"
}

# ratio NAME MEDIAN LOW..HIGH [at_least BAR]: one of two slices of a round, and the interval that holds
# the true one in 95 of 100 cases; it is the upper end that has to reach the bar.
ratio() {
	row "$1" "$2" ratio "${@:4}" ${4:+"${3#*..}"}
	row "$1.interval" "$3" ratio
}

bench_end() {
	if [ "$JSON" = yes ]; then
		awk 'BEGIN { print "[" }
			{ quoted = $2 ~ /\.\./ ? "\"" $2 "\"" : $2
			printf "%s  {\"name\": \"%s\", \"value\": %s, \"unit\": \"%s\"%s}", (NR > 1 ? ",\n" : ""), $1, quoted, $3, \
				($4 == "" ? "" : ", \"" $4 "\": " $5) }
			END { print "\n]" }' "$WORK/rows"
	else
		awk '{ said = ""; has = ($6 == "" ? $2 : $6) + 0
			if ($4 == "at_most") said = " (at most " $5 (has <= $5 ? ")" : ": MISSED)")
			if ($4 == "at_least") said = " (at least " $5 (has >= $5 ? ")" : ": MISSED)")
			print $1, $2, $3 said }' "$WORK/rows"
	fi
}
