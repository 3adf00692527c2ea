# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Results of tests: each part of ./dev test writes one line a test, is timed against its budget, and
# all are counted at the end. Needs lib.sh.

RESULTS=$ROOT/build/results

results_begin() {
	rm -rf "$RESULTS"
	mkdir -p "$RESULTS"
	printf '%-28s %8s %8s %8s %8s %8s\n' part seconds budget passed failed skipped
}

# result PASS|FAIL|SKIP WHAT: called by the parts.
result() {
	echo "$*" >>"$PART.results"
}

# note WHAT: a line that is shown below the part's own.
note() {
	echo "$*" >>"$PART.notes"
}

# part NAME BUDGET COMMAND...: runs it with its output in a log, and prints its line. A part that
# fails without having said which test did counts as one failure. PART_FAILED has its failures after.
part() {
	local name=$1 budget=$2 begin seconds status=0 passed failed skipped over=''
	shift 2
	PART=$RESULTS/${name// /-}
	: >"$PART.results"
	begin=$(now_ms)
	("$@") >"$PART.log" 2>&1 </dev/null || status=$?
	seconds=$((($(now_ms) - begin + 500) / 1000))
	failed=$(grep -c '^FAIL ' "$PART.results" || true)
	if [ $status -ne 0 ] && [ "$failed" = 0 ]; then
		result FAIL "$name (exit status $status)"
		failed=1
	fi
	passed=$(grep -c '^PASS ' "$PART.results" || true)
	skipped=$(grep -c '^SKIP ' "$PART.results" || true)
	[ $seconds -le "$budget" ] || over="  over its budget"
	printf '%-28s %8d %8d %8d %8d %8d%s\n' "$name" $seconds "$budget" "$passed" "$failed" "$skipped" "$over"
	PART_FAILED=$failed
	[ ! -e "$PART.notes" ] || sed 's/^/    /' "$PART.notes"
	[ "$failed" = 0 ] || part_show_failure
}

part_show_failure() {
	grep '^FAIL ' "$PART.results" | head -n 20 | sed 's/^/    /'
	# What was not as expected may be far from the log's end: automake's lines, and those of the labs' cases.
	grep -aE '^(FAIL|ERROR|XPASS): ' "$PART.log" | head -n 40 | cut -c 1-400 | sed 's/^/    /' || true
	grep -E '^(===|  WRONG) ' "$PART.log" | grep -B 1 '^  WRONG' | head -n 40 | sed 's/^/    /' || true
	echo "    --- the end of $PART.log"
	tail -n 40 "$PART.log" | sed 's/^/    /'
}

# results_end: skipped tests with their reasons, then the counts alone on the last line.
results_end() {
	local passed failed skipped
	cat "$RESULTS"/*.results | grep '^SKIP ' || true
	passed=$(cat "$RESULTS"/*.results | grep -c '^PASS ' || true)
	failed=$(cat "$RESULTS"/*.results | grep -c '^FAIL ' || true)
	skipped=$(cat "$RESULTS"/*.results | grep -c '^SKIP ' || true)
	# In CI nothing is skipped.
	if [ "${CI:-}" = true ] && [ "$skipped" -gt 0 ]; then
		say "skipped tests count as failed in CI"
		failed=$((failed + skipped))
		skipped=0
	fi
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}
