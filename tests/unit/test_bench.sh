#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The table of the benches: a missed bar is exit status 1.
set -uo pipefail
. "${srcdir:-.}/tests/lab/bench.sh"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
SMOKE=no
JSON=no
number=0

# table NAME STATUS WORDS ROW...: of these rows the table has the words, and ends with that status.
table() {
	local name=$1 status=$2 words=$3 said got
	shift 3
	printf '%s\n' "$@" >"$WORK/rows"
	said=$(bench_end)
	got=$?
	number=$((number + 1))
	if [ $got -eq "$status" ] && [[ $said == *"$words"* ]]; then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		echo "# status $got, wanted $status and '$words' in: $said"
	fi
}

table figure_without_a_bar_is_only_shown 0 "a.b 7 ms" "a.b 7 ms"
table bar_that_is_reached_is_shown 0 "a.b 2 ms (at most 2)" "a.b 2 ms at_most 2"
table missed_bar_fails 1 "a.b 3 ms (at most 2: MISSED)" "a.b 3 ms at_most 2"
table missed_bar_fails_behind_others_that_are_reached 1 "a.c 3 ms (at least 4: MISSED)" "a.c 3 ms at_least 4" "a.b 1 ms at_most 2"
table numbers_are_compared_as_numbers 0 "a.b 9 ms (at most 10)" "a.b 9 ms at_most 10"
table upper_end_of_an_interval_reaches_the_bar 0 "(at least 0.99)" "a.b 0.98 ratio at_least 0.99 0.995"
table bar_with_two_ends_fails_above 1 "a.b 8 ratio (within 1.75..7: MISSED)" "a.b 8 ratio within 1.75..7"
table bar_with_two_ends_fails_below 1 "MISSED" "a.b 1 ratio within 1.75..7"
table bar_with_two_ends_holds_between 0 "a.b 3.5 ratio (within 1.75..7)" "a.b 3.5 ratio within 1.75..7"
table what_was_not_measured_reaches_no_bar 1 "a.b - % (at most 1: MISSED)" "a.b - % at_most 1"
table what_never_ended_reaches_no_bar 1 "MISSED" "a.b inf ratio at_least 1"
SMOKE=yes
table few_rounds_say_nothing_of_times 0 "a.b 3 ms (at most 2: too few to say)" "a.b 3 ms at_most 2"
table few_rounds_say_all_of_counts 1 "MISSED" "a.b 16 instructions at_most 15"
SMOKE=no
JSON=yes
table json_has_the_bar_and_fails_as_well 1 '{"name": "a.b", "value": "inf", "unit": "ratio", "at_most": 2}' "a.b inf ratio at_most 2"
echo "1..$number"
