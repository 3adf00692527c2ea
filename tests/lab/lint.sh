# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What is checked without running anything, beside tests/deps.sh. Needs lib.sh, build.sh, results.sh. A file that an
# analyser has found clean is not given to it again until it or a header changes.

# Seconds that it is to take; CONTRIBUTING.md says why.
LINT_BUDGET=130

lint_files() {
	(cd "$ROOT" && git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do
		[ ! -e "$f" ] || echo "$f"
	done)
}

# lint_check NAME COMMAND...: one result.
lint_check() {
	local name=$1
	shift
	if "$@"; then
		result PASS "lint $name"
	else
		result FAIL "lint $name"
	fi
}

lint_all() {
	build_bootstrap
	build_configure plain
	cd "$ROOT" || return
	lint_check "formatting is clang-format's" lint_format
	lint_check "scripts pass shellcheck" lint_scripts
	lint_check "every source has its licence line" lint_licence
	lint_check "gcc -fanalyzer finds nothing" lint_each fanalyzer
	lint_check "clang-tidy finds nothing" lint_each tidy
	lint_check "cppcheck finds nothing" lint_cppcheck
}

lint_format() {
	lint_files '*.c' '*.h' | xargs -r clang-format --dry-run -Werror
}

# lint_flags FILE: sets FLAGS to what every compiler and analyser is given. uthash is a stand-in: see
# there. Xen's own headers are no C11.
lint_flags() {
	read -ra FLAGS <<<"$(pkg-config --cflags libvirt libxml-2.0 json-c libsystemd inih check)"
	FLAGS+=(-std=c11 "-I$ROOT/tests/lab/analyse" "-I$ROOT" "-I$ROOT/build/plain")
	case $1 in
	*/xen/*) FLAGS+=(-std=gnu11) ;;
	esac
}

lint_compile() {
	local FLAGS
	lint_flags "${!#}"
	gcc "${FLAGS[@]}" -Wall -Wextra -Wno-unused-parameter "$@"
}

lint_scripts() {
	# shellcheck disable=SC2046 # a file each
	shellcheck $(lint_files dev .ci/run '*.sh') && shellcheck -s dash tests/lab/guest-init tests/lab/xen/dom0-init
}

lint_licence() {
	local f failed=0
	for f in $(lint_files '*.c' '*.h' '*.sh' '*.am' '*.ac' dev .ci/run); do
		head -n 3 "$f" | grep -q 'SPDX-License-Identifier: LGPL-2.1-or-later' || {
			warn "no licence line: $f"
			failed=1
		}
	done
	return $failed
}

# lint_sources: what is analysed: all but the tests on top of Check, whose macros give false alarms.
lint_sources() {
	lint_files '*.c' ':!tests/unit' ':!tests/contract'
}

# lint_each ANALYSER: on each source that has changed since it was clean, some at a time.
lint_each() {
	local analyser=$1 headers
	mkdir -p "$ROOT/build/lint"
	headers=$(lint_files '*.h' | xargs cat "$ROOT/tests/lab/lint.sh" | sha256sum | cut -c1-16)
	# shellcheck disable=SC2016 # the inner shell expands it
	(cd "$ROOT" && lint_sources | xargs -r ls -S) | xargs -r -P "$(nproc)" -I '{}' bash -euo pipefail -c '
		for part in lib lint; do . "$0/tests/lab/$part.sh"; done
		lint_one "$1" "$2" "$3"' "$ROOT" "$analyser" "$headers" '{}'
}

lint_one() {
	local analyser=$1 headers=$2 file=$3 stamp
	stamp=$ROOT/build/lint/$analyser-$headers-$(sha256sum <"$file" | cut -c1-24)
	[ ! -e "$stamp" ] || return 0
	"lint_$analyser" "$file" && touch "$stamp"
}

# Leaks are left to the address sanitizer and to clang's analyzer: gcc 12 loses sight of what is stored
# in an array of structs.
lint_fanalyzer() {
	lint_compile -O1 -fanalyzer -Wno-analyzer-malloc-leak -Werror -c -o /dev/null "$1"
}

# Left out:
#   bugprone-easily-swappable-parameters         two amounts are of one type, as in the kernel
#   bugprone-implicit-widening-...               constants like 24 * 60 * MIN and 64 * 1024
#   bugprone-reserved-identifier                 _GNU_SOURCE is one
#   bugprone-branch-clone                        an else-if chain goes through its cases in order, and
#                                                two of them may do the same
#   bugprone-suspicious-string-compare           if (strcmp(a, b)) is how C is written here
#   ...DeprecatedOrUnsafeBufferHandling, strcpy  want C11's Annex K, which glibc does not have
# max-nodes: steps a function; clang's own number for its shallow mode. Its other one, 225000, takes
# three times as long and said no more of the six files that had findings; 40000 missed two of 17.
lint_tidy() {
	local FLAGS said
	lint_flags "$1"
	said=$(clang-tidy --quiet --warnings-as-errors='*' --checks='-*,bugprone-*,clang-analyzer-*,
		misc-redundant-expression,-bugprone-easily-swappable-parameters,
		-bugprone-implicit-widening-of-multiplication-result,-bugprone-reserved-identifier,
		-bugprone-branch-clone,-bugprone-suspicious-string-compare,
		-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling,
		-clang-analyzer-security.insecureAPI.strcpy' "$1" -- "${FLAGS[@]}" \
		-Xclang -analyzer-config -Xclang max-nodes=75000 2>&1) || {
		echo "$said"
		return 1
	}
}

# It reads no system header, which would take minutes; utlist's macros it has to know, though.
# Left out: missingInclude, which says just that, and internalAstError, which is cppcheck's own.
lint_cppcheck() {
	local dir=$ROOT/build/lint/cppcheck
	mkdir -p "$dir/include"
	ln -sf /usr/include/utlist.h "$dir/include/"
	# shellcheck disable=SC2046 # a file each
	cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr --enable=warning,portability \
		--suppress=missingInclude --suppress=internalAstError --cppcheck-build-dir="$dir" \
		-j "$(nproc)" -I"$ROOT/tests/lab/analyse" -I"$dir/include" -I"$ROOT" -I"$ROOT/build/plain" \
		$(lint_sources)
}
