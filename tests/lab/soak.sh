# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Fuzzing, and ./dev soak's longer runs of it and of the mutants. Needs lib.sh, build.sh, results.sh.

# fuzz_results SECONDS: a result for each target, so many seconds each.
fuzz_results() {
	local line status=0
	build_bootstrap
	build_configure plain
	builddir=$ROOT/build/plain bash "$ROOT/tests/fuzz/fuzz.sh" "$1" >"$PART.tap" || status=$?
	cat "$PART.tap"
	while read -r line; do
		case $line in
		"ok "*) result PASS "${line#ok * - }" ;;
		"not ok "*) result FAIL "${line#not ok * - }" ;;
		esac
	done <"$PART.tap"
	return $status
}

# soak_fuzz MINUTES: of all targets together. What was found stays in build/plain/fuzz/NAME.
soak_fuzz() {
	local targets
	install_for build fuzz
	targets=$(find "$ROOT/tests/fuzz" -name 'fuzz_*.c' | wc -l)
	results_begin
	part fuzz $(($1 * 60 + 300)) fuzz_results $(($1 * 60 / targets))
	cat "$PART.tap"
	results_end
}

# soak_mutate MINUTES
soak_mutate() {
	install_for build
	bash "$ROOT/tests/mutate.sh" --minutes "$1"
}

# soak_seeds MINUTES: the engine's promises over random worlds, a thousand seeds at a time, from one
# that no run before began with. What fails says its seed: BALLAST_SEED=that runs it alone.
soak_seeds() {
	local first end status=0 seeds=0 test=tests/unit/test_engine_amounts
	install_for build
	build plain "$test"
	first=$(($(date +%s) * 1000))
	end=$(($(now_ms) + $1 * 60000))
	while [ $status = 0 ] && [ "$(now_ms)" -lt $end ]; do
		BALLAST_SEED_FIRST=$((first + seeds)) BALLAST_SEEDS=1000 CK_FORK=no \
			"$ROOT/build/plain/$test" >"$ROOT/build/seeds.tap" || status=$?
		seeds=$((seeds + 1000))
	done
	[ $status = 0 ] || grep -E '^(# seed|not ok)' "$ROOT/build/seeds.tap"
	say "$seeds seeds from $first on"
	return $status
}

# soak_pager: as many faults as the pager is ever to be trusted with, and the counts at the end.
soak_pager() {
	local test=tests/unit/test_pager
	install_for build
	build plain "$test"
	results_begin
	part pager 1800 soak_pager_case "$ROOT/build/plain/$test"
	results_end
}

soak_pager_case() {
	local name=eight_vms_that_fault_drop_and_die_leave_exact_counts
	# Check's limit for a test, of a minute, is one for three thousand.
	BALLAST_PAGER_FAULTS=1000000 CK_TIMEOUT_MULTIPLIER=60 "$1" | tee "$PART.tap"
	if grep -q "^ok .*$name" "$PART.tap"; then
		result PASS "$name"
	else
		result FAIL "$name"
	fi
}
