#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests leave nothing behind, also those that fail: scratch_fails is a program of tests that do.
set -uo pipefail
builddir=$(cd "${builddir:-.}" && pwd)
cd "${srcdir:-.}" || exit 1
number=0

# report NAME COMPLAINT: no complaint is good.
report() {
	number=$((number + 1))
	if [ -z "$2" ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		printf '%s\n' "$2" | sed 's/^/# /'
	fi
}

said=$("$builddir/tests/unit/scratch_fails" 2>&1)
mapfile -t folders < <(sed -n 's/^made //p' <<<"$said")
report tests_that_fail_and_crash_make_folders "$([ ${#folders[@]} = 4 ] || echo "$said")"
left=
for folder in "${folders[@]}"; do
	[ ! -e "${folder%/*}" ] || left+="$folder "
done
report folders_of_tests_that_fail_are_gone "$left"

# ended SIGNAL: what is left of a program that is ended while a test hangs.
ended() {
	local said pid folder
	said=$(mktemp)
	# Check passes a signal on to its whole group.
	setsid "$builddir/tests/unit/scratch_fails" hang >"$said" &
	pid=$!
	for _ in $(seq 100); do
		[ ! -s "$said" ] || break
		sleep 0.1
	done
	folder=$(sed -n 's/^made //p' "$said")
	rm -f "$said"
	kill "-$1" "$pid"
	wait "$pid" 2>/dev/null
	[ -n "$folder" ] || echo "it made none"
	[ ! -e "${folder%/*}" ] || echo "$folder"
}
report folder_of_a_program_that_is_terminated_is_gone "$(ended TERM)"
# shellcheck disable=SC2016
report tests_make_folders_with_scratch_only \
	"$(grep -lE 'mkd?s?temp\(|tmpnam|tempnam' tests/*/*.c | grep -v '/scratch\.c$' || true)"
echo "1..$number"
