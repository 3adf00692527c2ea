#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the Xen lab makes of what its dom0 said: a case that did not come to its end is a failure by
# its name, however the others ended.
set -uo pipefail
ROOT=$(cd "${srcdir:-.}" && pwd)
# shellcheck source=/dev/null
. "$ROOT/tests/lab/xen.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t cases < <(sed -n 's/^verdict //p' "$ROOT/tests/lab/xen/cases.sh")
number=0

# check NAME WANTED GOT
check() {
	number=$((number + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		printf '# wanted %s, got %s\n' "$2" "$3"
	fi
}

# said COUNT: the first cases passed, with what a serial line adds.
said() {
	printf 'dom0 is up\r\n'
	printf 'RESULT PASS %s\r\n' "${cases[@]:0:$1}"
}

all=${#cases[@]}
check there_are_cases yes "$([ "$all" -gt 10 ] && echo yes)"
check no_case_is_there_twice "$all" "$(printf '%s\n' "${cases[@]}" | sort -u | wc -l)"
said "$all" >"$work/results"
check cases_that_passed_are_told "$all 0" \
	"$(xen_results "$work" | grep -c '^PASS ') $(xen_results "$work" | grep -c '^FAIL ')"
{
	said 3
	echo 'RESULT FAIL x'
	echo 'END 139'
} >"$work/results"
check cases_of_which_nothing_was_said_failed_by_name "$(printf 'FAIL %s\n' "${cases[@]:3}")" \
	"$(xen_results "$work" | grep '^FAIL ' | grep -v ' x$')"
check a_case_that_failed_is_told "FAIL x" "$(xen_results "$work" | grep ' x$')"
: >"$work/results"
check a_dom0_that_said_nothing_has_failed_every_case "$all" "$(xen_results "$work" | grep -c '^FAIL ')"
# A name that another begins with is not said by it.
echo "RESULT PASS ${cases[0]}_and_more" >"$work/results"
check another_name_is_another_case "FAIL ${cases[0]}" "$(xen_results "$work" | grep "^FAIL ${cases[0]}\$")"
echo "1..$number"
