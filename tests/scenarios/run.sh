#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Every scenario of this folder, and what holds for all of them. Speaks TAP.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
sim=$(cd "${builddir:-.}" && pwd)/ballast-sim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
number=0
failed=0

# ok NAME STATUS [TEXT]: a result; 0 is passed.
ok() {
	number=$((number + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $number - $1"
		return
	fi
	failed=$((failed + 1))
	echo "not ok $number - $1"
	[ -z "${3:-}" ] || echo "# ${3//$'\n'/$'\n# '}"
}

# scenario FILE: its expectations hold.
scenario() {
	local out status=0
	out=$("$sim" run --quiet "$1" 2>&1) || status=$?
	ok "$(basename "$1" .sim)" $status "$out"
}

# refused NAME MESSAGE <<<SCENARIO: it is refused, and the message names the line.
refused() {
	local out status=0
	cat >"$dir/bad.sim"
	out=$("$sim" run "$dir/bad.sim" 2>&1) || status=$?
	if [ $status -eq 1 ] && grep -qF "$2" <<<"$out"; then
		ok "$1" 0
	else
		ok "$1" 1 "exit status $status, wanted '$2' in: $out"
	fi
}

# demo_fails_with SED EXPECTATION...: the demonstration, changed, is told to be wrong, and these are among
# the reasons.
demo_fails_with() {
	local out status=0
	sed "$1" "$here/demo.sim" >"$dir/demo.sim"
	shift
	out=$("$sim" run --quiet "$dir/demo.sim") || status=$?
	[ $status -eq 1 ] || return 1
	while [ $# -gt 0 ]; do
		grep -qF "FAILED  $1 " <<<"$out" || return 1
		shift
	done
}

for file in "$here"/*.sim; do
	scenario "$file"
done

demo_fails_with 's/^soft-limit = 160MiB/soft-limit = other/; s/^soft-limit = 448MiB/soft-limit = 160MiB/
	s/^soft-limit = other/soft-limit = 448MiB/' "at 29s = batch.usage < 250MiB" "at 29s = spare.targets == 0"
ok demonstration_fails_with_the_soft_limits_of_batch_and_web_swapped $?

first=$("$sim" run --format json "$here/demo.sim")
second=$("$sim" run --format json "$here/demo.sim")
[ -n "$first" ] && [ "$first" = "$second" ]
ok every_run_repeats_exactly $?

"$sim" run --quiet --record "$dir/record" "$here/demo.sim" && out=$("$sim" replay "$dir/record" 2>&1)
ok recording_replays_to_the_same_decisions $? "${out:-}"

"$sim" run --quiet --record "$dir/record" "$here/room_for_a_microvm_comes_from_the_vms_of_its_group.sim" &&
	grep -q '"charges":' "$dir/record" && out=$("$sim" replay "$dir/record" 2>&1)
ok recording_with_what_is_charged_page_by_page_replays_to_the_same_decisions $? "${out:-}"

vm=$'[vm a]\nmemory = 1GiB\n'
refused unknown_workload_is_refused_with_its_line "bad.sim:3: 'dance'" <<<"${vm}at 1s = dance"
refused negative_size_is_refused_with_its_line "bad.sim:3:" <<<"${vm}at 1s = grow -5MiB"
refused bare_number_is_refused_with_its_line "bad.sim:3: '16384' has no unit" <<<"${vm}cache = 16384"
refused two_guests_of_one_name_are_refused "bad.sim:3: there is a VM a already" <<<"${vm}[vm a]"
refused guest_without_memory_is_refused "bad.sim:1: VM a has no memory" <<<"[vm a]"
refused guest_that_uses_more_than_it_has_is_refused "bad.sim:1: VM a uses 2.05 GiB at the start" <<<"${vm}cache = 2GiB"
refused file_without_guests_is_refused "there is no VM; write a section [vm NAME]" <<<"[host]"
refused unknown_key_is_refused "bad.sim:3: a VM has no 'memry'" <<<"${vm}memry = 1GiB"
refused unknown_section_is_refused "bad.sim:1: there is no section [pol]; did you mean [pool]?" <<<$'[pol]\nsize = 1GiB'
refused unknown_key_of_a_rule_is_refused "bad.sim:5: a rule has no 'floor'" \
	<<<"${vm}"$'[rule r]\nmatch-name = *\nfloor = 1GiB'
refused bad_value_of_a_rule_is_refused "bad.sim:4: manage: " <<<"${vm}"$'[rule r]\nmanage = maybe'
refused rule_that_does_not_fit_together_is_refused "rule r: min = 2 GiB is over max = 1 GiB" \
	<<<"${vm}"$'[rule r]\nmin = 2GiB\nmax = 1GiB'
refused rule_without_a_name_is_refused "bad.sim:3: the rule has no name" <<<"${vm}[rule ]"
refused what_happens_after_the_end_is_refused "after the end" <<<"${vm}at 2min = idle"
refused expectation_of_an_unknown_vm_is_refused "bad.sim:4: there is no VM 'b'" \
	<<<"${vm}"$'[expect]\nend = b.actual == 1GiB'
refused expectation_of_an_unknown_figure_is_refused "there is no figure 'size'" \
	<<<"${vm}"$'[expect]\nend = a.size == 1GiB'
refused daemons_configuration_is_checked "wm-low" <<<$'[pool]\nwm-low = 1%\n'"$vm"
refused empty_file_is_refused "there is no VM; write a section [vm NAME]" </dev/null
head -c 2000000 /dev/zero | tr '\0' '#' | fold -w 100 >"$dir/big"
refused file_that_is_far_too_large_is_refused "bad.sim" <"$dir/big"

echo "1..$number"
[ $failed -eq 0 ]
