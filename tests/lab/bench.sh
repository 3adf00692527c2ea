# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What the benches share: their options, and the table of their figures, whose bars decide about the
# exit status. Needs lib.sh, build.sh.

# bench_options NAME [--smoke] [--json]: sets SMOKE and JSON (yes, no). The table is in WORK, the
# caller's folder.
bench_options() {
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
}

# bench_work: WORK is a folder that is gone at the end.
bench_work() {
	WORK=$(mktemp -d)
	trap 'rm -rf "$WORK"' EXIT
}

# bench_begin NAME [--smoke] [--json]: the options; builds tests/bench/NAME, which BENCH is then.
bench_begin() {
	bench_options "$@"
	build_programs
	build_make plain "tests/bench/$1" >&2
	BENCH=$ROOT/build/plain/tests/bench/$1
	bench_work
}

# row NAME VALUE UNIT [at_most|at_least BAR [WHAT IS COMPARED WITH IT]]; within LOW..HIGH is a bar as
# well. The value of what could not be measured is -, which reaches no bar.
row() {
	echo "$*" >>"$WORK/rows"
}

# ratio NAME MEDIAN LOW..HIGH [at_least BAR]: one of two slices of a round, and the interval that holds
# the true one in 95 of 100 cases; it is the upper end that has to reach the bar.
ratio() {
	row "$1" "$2" ratio "${@:4}" ${4:+"${3#*..}"}
	row "$1.interval" "$3" ratio
}

# bench_end: prints the table; status 1: a bar is missed. With --smoke bars of times and of ratios do not
# count, for there is too little behind them; those of what is counted do.
bench_end() {
	awk -v json="$JSON" -v smoke="$SMOKE" '
		function number(s) { return s ~ /^-?[0-9]+(\.[0-9]+)?$/ }
		function reaches(op, bar, has,   ends) {
			if (!number(has)) return 0
			if (op == "within") {
				split(bar, ends, /\.\./)
				return has + 0 >= ends[1] + 0 && has + 0 <= ends[2] + 0
			}
			return op == "at_most" ? has + 0 <= bar + 0 : has + 0 >= bar + 0
		}
		function quoted(s) { return number(s) ? s : "\"" s "\"" }
		BEGIN { if (json == "yes") print "[" }
		{
			said = ""
			if ($4 != "") {
				counts = smoke != "yes" || $3 ~ /^(instructions|accesses|reads|groups|KiB|MiB|share)$/
				missed = !reaches($4, $5, $6 == "" ? $2 : $6)
				failed += missed && counts
				op = $4
				sub(/_/, " ", op)
				said = " (" op " " $5 (!missed ? ")" : counts ? ": MISSED)" : ": too few to say)")
			}
			if (json != "yes") { print $1, $2, $3 said; next }
			printf "%s  {\"name\": \"%s\", \"value\": %s, \"unit\": \"%s\"%s}", (NR > 1 ? ",\n" : ""), $1, quoted($2), $3, \
				($4 == "" ? "" : ", \"" $4 "\": " quoted($5))
		}
		END {
			if (json == "yes") print "\n]"
			exit failed > 0
		}' "$WORK/rows"
}
