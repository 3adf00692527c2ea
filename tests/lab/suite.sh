# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# ./dev test: its parts; the labs beside what else takes long, because they mostly wait. Needs all others.

suite_all() {
	results_begin
	part packages 120 install_for build test lint fuzz bench lab
	part "build plain" 40 build plain
	if [ "$PART_FAILED" != 0 ]; then
		results_end
		return
	fi
	suite_alone
	# A process group of its own, so that it can be ended as a whole.
	set -m
	suite_labs >"$RESULTS/labs.txt" 2>&1 &
	LABS=$!
	set +m
	trap 'kill -TERM -- "-$LABS" 2>/dev/null && wait "$LABS"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	# The guests' timing matters more than the compiler's.
	renice -n 19 -p $$ >/dev/null
	suite_beside_labs
	wait "$LABS" || true
	trap - EXIT
	cat "$RESULTS/labs.txt"
	results_end
}

# Both labs side by side: QEMU mostly waits in one, and Xen boots in the other.
suite_labs() {
	part "system xen" 240 suite_xen >"$RESULTS/xen.txt" 2>&1 &
	part system 620 suite_system
	wait $!
	cat "$RESULTS/xen.txt"
}

# Before the labs: beside guests that are emulated tests take several times their own time, and the guests'
# timing is disturbed. Budgets: builds and coverage 160 in all, unit 160, contract and scenarios 120;
# distcheck is over the share that it was to have: CONTRIBUTING.md says why.
suite_alone() {
	local name
	part "unit plain" 40 build_check plain unit
	part "contract plain" 20 build_check plain contract
	part scenarios 60 build_check plain scenarios
	part coverage 40 suite_coverage
	for name in address thread; do
		part "build $name" 40 build "$name" all
		part "unit $name" 60 build_check "$name" unit
		part "contract $name" 20 build_check "$name" contract
	done
	part distcheck 60 suite_distcheck ""
	part "distcheck without libvirt" 60 suite_distcheck --without-libvirt
	part "distcheck without xen" 60 suite_distcheck --without-xen
}

suite_beside_labs() {
	part fuzz 110 fuzz_results 5
	part benches 60 suite_benches
	part lint "$LINT_BUDGET" lint_all
}

# suite_one KIND: one kind of test, in the plain build.
suite_one() {
	install_for build
	[ "$1" != system ] || install_for lab
	results_begin
	case $1 in
	system)
		build_programs
		suite_labs
		;;
	*)
		build plain
		part "$1" 60 build_check plain "$1"
		;;
	esac
	results_end
}

# What the tests of policy/ by itself reach: only those are built. Branches of assert() are left out:
# they never fail in a test.
suite_coverage() {
	local said status=0 tests
	mkdir -p "$ROOT/build"
	build_bootstrap
	build_configure coverage
	# shellcheck disable=SC2016 # make expands it
	tests=$(build_list coverage '$(POLICY_TESTS)')
	find "$ROOT/build/coverage" -name '*.gcda' -delete
	build_environment coverage make -s -C "$ROOT/build/coverage" -j "$TEST_JOBS" check-TESTS \
		TESTS="$tests" >/dev/null || true # judged in the plain build
	said=$(cd "$ROOT/build/coverage" && gcovr -r "$ROOT" . --filter "$ROOT/policy/" --print-summary \
		--exclude-branches-by-pattern '.*\bassert\(.*' --fail-under-line 100 --fail-under-branch 95) ||
		status=$?
	echo "$said"
	note "policy/: $(sed -n 's/^\(lines\|branches\): */\1 /p' <<<"$said" | paste -sd, | sed 's/,/, /g')"
	note "left out: branches of $(suite_count '\bassert\(') asserts, and" \
		"$(suite_count '(GCOVR?|LCOV)_EXCL') marked places"
	suite_covered "every line of policy/ is tested" $((status & 2))
	suite_covered "95 % of policy/'s branches are tested" $((status & 4))
}

# gcovr's status has a bit for each bound that was missed.
suite_covered() {
	if [ "$2" = 0 ]; then
		result PASS "$1"
	else
		result FAIL "$1"
	fi
}

suite_count() {
	cat "$ROOT"/policy/*.[ch] | grep -cE "$1" || true
}

# Each bench once and small: that it runs, and the bars of what can be counted; reaction and active need
# the lab for themselves.
suite_benches() {
	local name said
	for name in walk charge pager agent documents simulator; do
		if said=$(bash -euo pipefail "$ROOT/tests/bench/$name.sh" --smoke) &&
			grep -qE "^$name\.[^ ]+ [0-9.]+ [a-z/]+" <<<"$said"; then
			result PASS "bench $name"
		else
			result FAIL "bench $name"
		fi
		echo "$said"
	done
}

suite_distcheck() {
	local dir=$ROOT/build/dist name="make distcheck${1:+ $1}"
	mkdir -p "$dir"
	cd "$dir" || return
	# What configure finds out is the same for all three; so is most of what the compiler is given.
	export CC="ccache gcc" CCACHE_DIR=$dir/ccache
	"$ROOT/configure" --quiet "--cache-file=$dir/config.cache" ${1:+"$1"} CFLAGS=-O0 >configure.log 2>&1 ||
		return
	if make -s -j "$TEST_JOBS" distcheck \
		DISTCHECK_CONFIGURE_FLAGS="${1:-} --quiet --cache-file=$dir/config.cache CFLAGS=-O0"; then
		result PASS "$name"
	else
		chmod -R u+w "$dir"
		result FAIL "$name"
	fi
}

# suite_mend: fresh guests after a case that failed: the next one is not to fail because of it.
suite_mend() {
	local name
	for name in $GUESTS; do
		lab_virsh dominfo "$name" >/dev/null 2>&1 || guest_define "$name" "${STORY_MIB[$name]}"
	done
	story_restart
}

# suite_system: one bring-up, three guests; each file of tests/system is a case and runs in order.
suite_system() {
	local file name begin status
	lab_trap
	lab_up
	export LAB BUILD
	story_define
	story_start
	for file in "$ROOT"/tests/system/[0-9]*.sh; do
		name=${file##*/}
		name=${name%.sh}
		name=${name#*_}
		say "=== $name"
		begin=$(now_ms)
		status=0
		bash -euo pipefail "$file" || status=$?
		say "=== $name: $status, $((($(now_ms) - begin) / 1000)) s"
		case $status in
		0) result PASS "system $name" ;;
		77) result SKIP "system $name" ;;
		*)
			result FAIL "system $name"
			tail -n 20 "$LAB/ballastd.log" 2>/dev/null || true
			suite_mend
			;;
		esac
	done
}
