#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# ./dev's command line and what its parts stand on, as far as nothing is brought up: what does not
# apply is refused, paths are as seen from where it was called, nothing is lost on the way to root.
set -uo pipefail
. "${srcdir:-.}/tests/unit/check.sh"
builddir=$(cd "${builddir:-.}" && pwd)
source=$(cd "${srcdir:-.}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
dev=$source/dev
: "${HOME:=/root}"
export HOME

for option in --keep --swap-limits --xen "--down ."; do
	# shellcheck disable=SC2086 # words
	check "simulator_takes_no_${option%% *}" 2 "run: --sim takes no ${option%% *}" "$dev" run $option --sim
done
for option in --keep --swap-limits "--record r"; do
	# shellcheck disable=SC2086 # words
	check "xen_takes_no_${option%% *}" 2 "run: --xen takes no ${option%% *}" "$dev" run --xen $option
done
check end_of_a_lab_takes_nothing_else 2 "run: --down takes no --keep" "$dev" run --down . --keep
check recording_has_its_folder 1 "no such folder: $work/none" "$dev" run --record none/r
check bench_without_a_name_is_told 0 "Without a name" "$dev" help

export BALLAST_BUILD=$builddir
check recording_is_where_it_was_called_from 0 "The outcome is right" "$dev" run --sim --record here
check and_replays 0 "all decided as recorded" "$builddir/ballast-sim" replay here

# part COMMAND...: with the parts of ./dev, as somebody who is not root, whose sudo says what it is told.
mkdir bin
printf '#!/bin/sh\necho "<$*>"\n' >bin/sudo
chmod +x bin/sudo
part() {
	# shellcheck disable=SC2016 # expanded inside
	PATH=$work/bin:$PATH BALLAST_CACHE=$work bash -euc '
		. "$1/tests/lab/parts.sh"
		id() { echo 1000; }
		shift
		"$@"' _ "$@"
}
as_ci="env BALLAST_CACHE=$work CI=true BALLAST_BUILD=$builddir $source/dev test unit>"
check root_knows_that_it_is_ci_and_what_is_built 0 "$as_ci" env CI=true bash -c "$(declare -f part); work=$work
	part $source need_root test unit"
unset BALLAST_BUILD
check root_is_told_nothing_that_was_not_said 0 "env BALLAST_CACHE=$work $source/dev run>" \
	env -u CI bash -c "$(declare -f part); work=$work; part $source need_root run"

# What the guests boot is another one where a source of the agent's is.
mkdir -p tree/tests
cp -r "$source"/{guest-agent,common,policy} tree
cp -r "$source/tests/lab" tree/tests
chmod -R u+w tree
[ -r /bin/busybox ] || sed -i 's| /bin/busybox||' tree/tests/lab/image.sh
before=$(part "$work/tree" image_key)
changed() {
	echo "/* */" >>"tree/$1"
	part "$work/tree" image_key
	[ "$(part "$work/tree" image_key)" != "$before" ]
}
check image_is_the_same_of_the_same_sources 0 "$before" part "$work/tree" image_key
for file in policy/pages.h policy/sample.h policy/batch.c common/protocol.c guest-agent/agent.c; do
	check "image_is_another_with_another_$file" 0 "" changed $file
	before=$(part "$work/tree" image_key)
done

# A point that failed is shown, however much was printed after it.
fails() {
	echo "FAIL: tests/unit/test_x 17 - balance:that_fails: 2 == 3"
	seq 100
	return 1
}
shown() {
	# shellcheck disable=SC2016 # expanded inside
	part "$work/tree" eval "$(declare -f fails)"'; results_begin; part distcheck 9 fails'
}
check failed_point_is_shown_however_far_from_the_end_of_its_log 0 "17 - balance:that_fails: 2 == 3" shown
echo "1..$number"
