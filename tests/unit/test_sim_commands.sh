#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The command lines of ballast-sim: every mistake in a scenario or recording is told with file and
# line, and with what to do.
set -uo pipefail
. "${srcdir:-.}/tests/unit/check.sh"
builddir=$(cd "${builddir:-.}" && pwd)
source=$(cd "${srcdir:-.}" && pwd)
scenarios=$source/tests/scenarios
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

sim=$builddir/ballast-sim

# mistake NAME WORDS LINE...: the scenario of those lines is refused with the words; exit status 1.
mistake() {
	local name=$1 words=$2
	shift 2
	printf '%s\n' "$@" >s.sim
	check "$name" 1 "$words" "$sim" run s.sim
}
vm=("[vm web]" "memory = 1GiB" "group = /prod/web")

mistake unknown_section_is_refused "s.sim:1: there is no section [hots]; did you mean [host]?" \
	"[hots]" "memory = 8GiB" "${vm[@]}"
mistake unknown_section_without_keys_is_refused "s.sim:2: there is no section [nonsense]; write [scenario]" \
	"[scenario]" "[nonsense]" "${vm[@]}"
mistake key_before_any_section_is_refused "s.sim:1: 'length' stands before any section; begin with [scenario]" \
	"length = 5s" "${vm[@]}"
mistake unknown_key_of_a_scenario_is_refused "s.sim:2: a scenario has no 'lenght'" \
	"[scenario]" "lenght = 5s" "${vm[@]}"
mistake operator_asks_nobody_that_is_there \
	"s.sim:2: there is no VM or group 'wbe' in this scenario; write the name of a [vm NAME], or the path" \
	"[operator]" "at 5s = reclaim 1GiB of wbe" "${vm[@]}"
mistake operator_releases_nobody_that_is_there "s.sim:2: there is no VM or group '/pro'" \
	"[operator]" "at 5s = release /pro" "${vm[@]}"
mistake operator_pauses_nobody_that_is_there "s.sim:2: there is no VM 'wbe'" \
	"[operator]" "at 5s = pause wbe" "${vm[@]}"
mistake operator_cannot_pause_a_group "s.sim:3: there is no VM '/prod' in this scenario" \
	"[operator]" "at 1s = pause" "at 5s = resume /prod" "${vm[@]}"
mistake operator_does_nothing_else "s.sim:2: 'nap' is nothing that an operator does" \
	"[operator]" "at 5s = nap" "${vm[@]}"
printf '%s\n' "[operator]" "at 1s = pause web" "at 2s = resume web" "at 3s = reclaim 1MiB of /prod/web" \
	"at 4s = release /prod" "at 5s = release web" "[group /other]" "min = 1MiB" "[operator]" \
	"at 6s = reclaim 1MiB of /other" "${vm[@]}" >s.sim
check operator_names_vms_groups_and_those_above_them 0 "" "$sim" run s.sim
mistake length_of_no_time_is_refused "s.sim:2: length: nothing happens in no time; write for example 60s" \
	"[scenario]" "length = 0s" "${vm[@]}"
mistake vm_without_memory_is_refused "s.sim:1: VM web has no memory; write memory = SIZE" \
	"[vm web]" "hot = 1MiB"
mistake vm_that_uses_more_than_it_has_is_refused "at the start (fixed, hot, idle, hot-cache, cache and free) and has memory = 1 GiB" \
	"${vm[@]}" "hot = 2GiB"
mistake scenario_without_a_vm_is_refused "s.sim: there is no VM; write a section [vm NAME]" "[host]"
mistake amount_over_a_pebibyte_is_refused "s.sim:2: '2PiB' is more than 1 PiB" \
	"[vm web]" "memory = 2PiB"
mistake operator_asks_for_no_more_than_a_pebibyte "s.sim:2: '1025TiB' is more than 1 PiB" \
	"[operator]" "at 5s = reclaim 1025TiB" "${vm[@]}"
mistake group_twice_is_refused "s.sim:2: there is a group /a already" "[group /a]" "[group /a]" "${vm[@]}"
mistake name_of_a_vm_does_not_speak_to_the_terminal "'e\\u009bvil.' cannot be" \
	$'[vm e\xc2\x9bvil.]' "memory = 1GiB"
printf '%s\n' $'[vm e\xc2\x9b\xe2\x80\xaevil]' "memory = 1GiB" >s.sim
check table_does_not_speak_to_the_terminal 0 'e\u009b\u202evil' "$sim" run s.sim
mapfile -t lines < <(for i in $(seq 33); do echo "[x$i]"; done)
mistake mistakes_beyond_twenty_are_counted "and 13 more mistakes, which are not shown" "${lines[@]}"

mistake unknown_workload_is_refused "s.sim:4: 'dance' is no workload; there are stream, mem_eater" \
	"${vm[@]}" "at 1s = run dance 1GiB"
mistake negative_size_of_a_workload_is_refused "s.sim:4: " "${vm[@]}" "at 1s = run stream -1GiB"
mistake workload_without_its_size_is_refused "s.sim:4: write run gzip SIZE [times N]" \
	"${vm[@]}" "at 1s = run gzip"
mistake workload_with_too_much_is_refused "s.sim:4: 'times' is too much; write run stream" \
	"${vm[@]}" "at 1s = run stream 1GiB times 3"
mistake who_is_waited_for_runs_something "until-done: no VM 'web' runs a workload" \
	"[scenario]" "until-done = web" "${vm[@]}"
printf '%s\n' "time,working-set" 0s,100MiB 10s,200MiB 30s,100MiB >hole.csv
mistake trace_with_a_hole_is_refused "hole.csv:4: the trace has a hole: behind 10 s comes 30 s" \
	"${vm[@]}" "at 1s = run trace hole.csv"
printf '%s\n' 0s,100MiB 10s,-5MiB >minus.csv
mistake trace_with_a_negative_size_is_refused "minus.csv:2: " "${vm[@]}" "at 1s = run trace minus.csv"
mistake trace_that_is_not_there_is_refused "s.sim:4: none.csv: No such file" \
	"${vm[@]}" "at 1s = run trace none.csv"
truncate -s 1G huge
check scenario_of_a_gigabyte_is_refused 1 "huge: is larger than 1 MiB" "$sim" run huge
mistake trace_of_a_gigabyte_is_refused "s.sim:4: huge:20161: more than 20160 lines" "${vm[@]}" "at 1s = run trace huge"
printf '%s\n' 0s,100MiB 10s,200MiB 20s,100MiB >good.csv
printf '%s\n' "${vm[@]}" "at 1s = run trace good.csv" "[expect]" "at 15s = web.active-anon >= 190MiB" \
	"end = web.elapsed >= 20000" "end = web.ooms == 0" >s.sim
check working_set_follows_its_trace 0 "held" "$sim" run s.sim
printf '%s\n' "[scenario]" "length = 10min" "until-done = web" "${vm[@]}" "at 1s = run mem_eater 1MiB" "[expect]" \
	"end = web.elapsed >= 1" >s.sim
check end_is_when_all_that_is_waited_for_is_over 0 "held    end = web.elapsed >= 1" "$sim" run s.sim
printf '%s\n' "${vm[@]}" "[expect]" "always = web.lowest-target >= 1MiB" >s.sim
check what_always_holds_of_nothing_does_not_hold 1 "not known" "$sim" run s.sim
printf '%s\n' "${vm[@]}" "[expect]" "never = web.lowest-target < 1MiB" >s.sim
check what_never_holds_of_nothing_does_not_hold 1 "not known" "$sim" run s.sim
check policy_that_is_none_is_refused 2 "no such policy: magic" "$sim" run --policy magic s.sim
check seed_that_is_none_is_refused 2 "a seed is a number from 1 on: x" "$sim" run --seed x s.sim
check policies_are_put_side_by_side 0 "hammer" "$sim" compare s.sim
check recording_that_is_none_says_so 1 "s.sim:1: this is no recording of ballast: its header is no JSON" \
	"$sim" replay s.sim
check recording_that_is_not_there_says_so 1 "ballast-sim: none: No such file" "$sim" replay none
check folder_is_no_recording 1 "ballast-sim: .: Is a directory" "$sim" replay .
: >empty
check empty_file_is_no_recording 1 "empty:1: this is no recording of ballast: it has no header" \
	"$sim" replay empty
"$sim" run --quiet --record good "$scenarios/minimum_holds_under_any_need.sim" >/dev/null
{
	cat good
	echo '{"now":x}'
} >broken
check line_that_is_no_json_says_so 1 ": the line is no JSON: " "$sim" replay broken
sed 's/,"next":[0-9]*}$/}/' good >other
check difference_is_told_in_words 1 "recorded was when something comes" "$sim" replay other
{
	head -n 2 good
	echo '{"now":99999999,"error":-22}'
} >other
check error_that_differs_is_told_in_words 1 'the tick'\''s error is "none", recorded was "Invalid argument"' \
	"$sim" replay other
# shellcheck source=/dev/null
. "$source/dist/bash-completion/ballast-sim"
# completes WORD...: what the last of the words may become.
completes() {
	COMP_WORDS=(ballast-sim "$@")
	COMP_CWORD=$#
	_ballast_sim
	echo "<${COMPREPLY[*]}>"
}
check commands_are_completed 0 "<run replay>" completes r
check policies_are_completed 0 "<global>" completes run --policy g
check options_of_the_command_are_completed 0 "<--seed --format>" completes compare --
check files_are_completed 0 "<good.csv>" completes run good.
# Every option that is completed is one that the help has, and no line of it is a lone word.
for word in $(completes -- | tr -d '<>') $(completes run -- | tr -d '<>'); do
	check "completed_option_${word}_is_one" 0 "$word" "$sim" --help
done
for option in "--policy none" "--plot x.svg" "--record r" --quiet; do
	# shellcheck disable=SC2086 # words
	check "compare_takes_no_${option%% *}" 2 "compare takes no ${option%% *}" "$sim" compare $option s.sim
	# shellcheck disable=SC2086 # words
	check "replay_takes_no_${option%% *}" 2 "replay takes no ${option%% *}" "$sim" replay $option good
done
check replay_takes_no_seed 2 "replay takes no --seed" "$sim" replay --seed 2 good

# Gnuplot would run what stands in backquotes.
# shellcheck disable=SC2016 # it is no command
check picture_whose_name_has_a_command_is_refused 1 "Invalid argument" "$sim" run --plot '`touch x`.svg' s.sim
if command -v gnuplot >/dev/null; then
	printf '%s\n' "${vm[@]}" "[expect]" "always = web.targets == 0" >s.sim
	check picture_is_drawn 0 "" "$sim" run --quiet --plot x.svg s.sim
	check picture_has_every_vm_by_its_name 0 ">web<" cat x.svg
else
	for name in picture_is_drawn picture_has_every_vm_by_its_name; do
		number=$((number + 1))
		echo "ok $number - $name # SKIP there is no gnuplot"
	done
fi

# Every word that the tables of the code have stands in the manual page.
page=$source/docs/ballast-sim-scenario.5.scd
# documented WORD...: each is there, as *WORD* or in a list of such.
documented() {
	local word
	[ $# -gt 0 ] || echo "no words"
	for word in "$@"; do
		grep -qF "*$word*" "$page" || echo "$word is not in $page"
	done
}
# words FILE FROM EXPRESSION: what sed's expression finds in the table that begins with FROM.
words() {
	sed -n "/$2/,/^}/s/$3/\\1/p" "$source/hv/$1"
}
keys=sim/scenario_keys.c
steps=sim/scenario_steps.c
word='^[^"]*{ "\([^"]*\)".*'
index='^	\[[A-Z_]*\] = "\([^"]*\)".*'
for table in scenario_keys host_keys vm_keys; do
	mapfile -t lines < <(words $keys "^static const struct key ${table}\[" "$word")
	check "all_${table}_are_documented" 0 "<>" echo "<$(documented "${lines[@]}")>"
done
for table in verbs workloads; do
	mapfile -t lines < <(words $steps "const struct [a-z]* ${table}\[" "$word")
	check "all_${table}_are_documented" 0 "<>" echo "<$(documented "${lines[@]}")>"
done
mapfile -t lines < <(words $steps "^} operator_words" "$word")
check all_that_an_operator_does_is_documented 0 "<>" echo "<$(documented "${lines[@]}")>"
for table in kinds calls; do
	mapfile -t lines < <(words fault/fault.c "const ${table}\[" "$index")
	check "all_${table}_of_faults_are_documented" 0 "<>" echo "<$(documented "${lines[@]}")>"
done
mapfile -t lines < <(grep -o '{ "vm", "[^"]*"' "$source/hv/sim/figure.c" | cut -d '"' -f 4
	grep -oE '{ "(pool|host)", "[^"]*"' "$source/hv/sim/figure.c" | awk -F '"' '{ print $2 "." $4 }')
check all_figures_are_documented 0 "<>" echo "<$(documented "${lines[@]}")>"
# shellcheck disable=SC2016 # they are no commands
sed -n '/^```$/,/^```$/p' "$page" | grep -v '^```' >example.sim
check example_of_the_manual_page_holds 0 "held" "$sim" run example.sim
check help_is_wrapped_between_its_words 1 "" grep -x '[^ ]\+' <("$sim" --help)
echo "1..$number"
