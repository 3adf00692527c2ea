# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Builds, each in a folder of its own under build/. A second build does only what has changed.
# Needs lib.sh.
#
#   plain     what is run, -O2            coverage  for the figures of policy/
#   address   address and undefined       thread    thread sanitizer

# Half of the longest tests wait most of their time.
TEST_JOBS=$(($(nproc) * 2))

build_cflags() {
	case $1 in
	plain) echo "-O2 -g" ;;
	coverage) echo "-O0 -g" ;;
	address) echo "-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined" ;;
	thread) echo "-O1 -g -fsanitize=thread" ;;
	*) die "no build named $1" ;;
	esac
}

# The system that makes `configure`; make would do it too, but then every build at the same time.
build_bootstrap() {
	cd "$ROOT" || return
	if [ ! -e configure ] || [ ! -e Makefile.in ] ||
		[ -n "$(find configure.ac Makefile.am tests/tests.am docs/docs.am -newer Makefile.in)" ]; then
		say "autoreconf"
		autoreconf -fi >"$ROOT/build/autoreconf.log" 2>&1 || {
			grep -vE "installing|copying|putting" "$ROOT/build/autoreconf.log" | tail -n 20 >&2
			die "autoreconf failed"
		}
		touch Makefile.in
	fi
}

# build_configure NAME: configured anew only when configure is newer than what it made.
build_configure() {
	local dir=$ROOT/build/$1 flags=(--quiet --enable-werror)
	[ "$1" != coverage ] || flags+=(--enable-coverage)
	if [ ! -e "$dir/config.status" ] || [ "$ROOT/configure" -nt "$dir/config.status" ]; then
		mkdir -p "$dir"
		(cd "$dir" && "$ROOT/configure" "${flags[@]}" CFLAGS="$(build_cflags "$1")" >configure.log 2>&1) || {
			tail -n 20 "$dir/configure.log" >&2
			warn "configure failed: $1"
			return 1
		}
	fi
}

# build_make NAME TARGET...
build_make() {
	local dir=$ROOT/build/$1
	shift
	make -s -C "$dir" -j "$(nproc)" "$@"
}

# build NAME [TARGET...]: everything from the sources; the default target is the programs.
build() {
	local name=$1
	shift
	mkdir -p "$ROOT/build"
	build_bootstrap
	build_configure "$name"
	build_make "$name" "${@:-all}"
}

# build_programs: those that are run; none where BALLAST_BUILD says that they are elsewhere.
build_programs() {
	[ -n "${BALLAST_BUILD:-}" ] || build plain
}

# build_list NAME WORDS: what make expands the words to.
build_list() {
	make -s -C "$ROOT/build/$1" --no-print-directory --eval="print-list: ; @echo $2" print-list
}

# build_check NAME KIND: runs a kind of test (unit, contract, scenarios) in a build and writes a
# result for each test point. True when all passed.
# shellcheck disable=SC2016 # make expands the variables
build_check() {
	local name=$1 kind=$2 dir=$ROOT/build/$1 tests='' test status=0
	case $kind in
	unit)
		tests='$(UNIT_SHELL) $(UNIT_TESTS)'
		# That one reads sources: they are the same in every build.
		[ "$name" = plain ] || tests='$(filter-out tests/deps.sh,$(UNIT_SHELL)) $(UNIT_TESTS)'
		;;
	contract) tests='$(CONTRACT_TESTS)' ;;
	scenarios) tests='$(SCENARIO_TESTS)' ;;
	esac
	build_environment "$name" make -s -C "$dir" -j "$TEST_JOBS" check TESTS="$tests" || status=$?
	for test in $(build_list "$name" "$tests"); do
		test=${test%.sh}
		build_results "$name" "$test" "$dir/$test.trs"
	done
	return $status
}

# The thread sanitizer wants a fixed address space, and tests that do not fork. The address
# sanitizer's tests are ten times as fast without: each process is searched for leaks at its end.
# Check ends no test then that hangs. The plain build's fork, and try all of what others try a part of:
# one thread's work is the same in each.
build_environment() {
	local name=$1
	shift
	case $name in
	coverage) BALLAST_EVERY=5 CK_TIMEOUT_MULTIPLIER=5 "$@" ;;
	address) CK_FORK=no timeout 1200 "$@" ;;
	thread)
		BALLAST_EVERY=7 BALLAST_STRESS_ROUNDS=4500000 CK_FORK=no TSAN_OPTIONS=suppressions=$ROOT/tests/lab/thread.supp \
			timeout 1200 setarch "$(uname -m)" -R "$@"
		;;
	*) "$@" ;;
	esac
}

# build_results BUILD TEST FILE: the result of each test point, from automake's file.
build_results() {
	if [ -s "$3" ]; then
		sed -n "s|^:test-result: \([A-Z]*\) *|\1 $1 $2 |p" "$3" | while read -r outcome rest; do
			case $outcome in
			PASS | XFAIL) result PASS "$rest" ;;
			SKIP) result SKIP "$rest" ;;
			*) result FAIL "$rest" ;;
			esac
		done
	else
		result FAIL "$1 $2: gave no result"
	fi
}
