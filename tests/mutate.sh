#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# tests/mutate.sh [--minutes N] [FILE...]: changes one bound of policy/ at a time and looks whether
# a test notices. A bound: a comparison, min and max, a granule or 1 added or taken, a divisor, a
# named constant. With a header all that includes it is compiled anew. Prints the changes that no test
# noticed and that tests/mutate.equivalent does not explain; exit status 1 where there are any. With
# --minutes: in random order, as far as it gets.
# A change is tried with the tests that have its object inside, the quickest first, until one fails:
# about half a second of a processor where one of the quick ones does, and some twenty where none.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
root=$PWD

JOBS=${JOBS:-2}
# Those of policy/ by itself. One has the sources inside.
mapfile -t TESTS < <(sed -n '/^POLICY_TESTS = /,/[^\\]$/s|.*tests/unit/test_\([a-z_]*\).*|\1|p' tests/tests.am |
	grep -vx interleavings)
# With memory's functions wrapped, these are linked anew for each mutant.
WRAPPED=(engine_input memcg)
# Their cases expect aborts, or need a process of their own.
FORKING=(page_counter css memcg charge model)

minutes=0
files=()
while [ $# -gt 0 ]; do
	case $1 in
	--minutes)
		[[ ${2:-} =~ ^[0-9]+$ ]] || {
			echo "--minutes: how many?" >&2
			exit 2
		}
		minutes=$2
		shift
		;;
	-*)
		echo "usage: tests/mutate.sh [--minutes N] [FILE...]" >&2
		exit 2
		;;
	*) files+=("${1#"$root"/}") ;;
	esac
	shift
done
[ ${#files[@]} -gt 0 ] || files=(policy/*.[ch])

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# mutants FILE: a line of FILE, LINE, OLD and NEW for each change, with a SEPARATOR between them, which no
# source has inside.
SEPARATOR=$'\037'
mutants() {
	awk -v file="$1" -v by="$SEPARATOR" '
	function change(from, to,    rest, at, done) {
		rest = code
		done = 0
		while ((at = index(rest, from))) {
			at += done
			print file by NR by $0 by \
				substr($0, 1, at - 1) to substr($0, at + length(from))
			done = at + length(from) - 1
			rest = substr(code, done + 1)
		}
	}
	/^\/\*/ || /^[ \t]*\/\*/ { comment = !/\*\// ; next }
	comment { comment = !/\*\// ; next }
	{ code = $0; sub(/[ \t]*\/\*.*/, "", code) }
	/assert\(/ || /^#include/ || /^[ \t]*\*/ { next }
	/^#define [A-Z_]+[ \t]+[^ \t\\]/ {
		if (match(code, /^#define [A-Z_]+[ \t]+/)) {
			head = substr(code, 1, RLENGTH)
			value = substr(code, RLENGTH + 1)
			print file by NR by $0 by head "(" value " * 2)"
			print file by NR by $0 by head "(" value " / 2)"
		}
		next
	}
	/^#/ { next }
	{
		change(" < ", " <= "); change(" <= ", " < ")
		change(" > ", " >= "); change(" >= ", " > ")
		change(" == ", " != "); change(" != ", " == ")
		change("pages_min(", "pages_max("); change("pages_max(", "pages_min(")
		change("pages_round_down(", "pages_round_up(")
		change("pages_round_up(", "pages_round_down(")
		change(" + 1", " + 0"); change(" - 1", " - 0")
		change(" + e->config.granule", ""); change(" - e->config.granule", "")
		change(" + w->granule", ""); change(" - w->granule", "")
		change(" + granule", ""); change(" - granule", "")
		for (n = 2; n <= 16; n++) {
			change(" / " n ";", " / " n + 1 ";"); change(" / " n ")", " / " n + 1 ")")
			change(" / " n ",", " / " n + 1 ","); change(" * " n ";", " * " n + 1 ";")
			change(" *= " n ";", " *= " n + 1 ";")
		}
	}' "$1"
}

# --- building -----------------------------------------------------------------------------------

# compile WORKER FILE OBJECT: with the header that the worker has changed, if it has.
compile() {
	"${compiler[@]}" -I"$work/$1" -I"$work" -I. -c "$2" -o "$3"
}
compiler=(cc -std=c11 -D_GNU_SOURCE -O0 -pthread -fPIC)
libs=(-lcheck -lsubunit -lm -lrt)

# extra TEST [FOLDER]: what is linked with it, from there.
extra() {
	if [ "$1" = model ]; then
		echo "${2:-$work/obj}/model.o"
	elif grep -q 'unit/world\.h' "tests/unit/test_$1.c"; then
		echo "${2:-$work/obj}/world.o"
	fi
}

prepare() {
	local t w
	mkdir -p "$work/obj" "$work/policy"
	: >"$work/config.h"
	cp policy/*.[ch] "$work/policy/" # so that an editor does not disturb
	for t in "$work"/policy/*.c tests/unit/{world,model}.c; do
		compile none "$t" "$work/obj/$(basename "$t" .c).o"
	done
	for t in "${TESTS[@]}"; do
		compile none "tests/unit/test_$t.c" "$work/obj/test_$t.o"
	done
	objects=()
	for t in policy/*.c; do objects+=("$(basename "$t" .c).o"); done
	for ((w = 0; w < JOBS; w++)); do
		mkdir -p "$work/$w/policy"
		for t in "${objects[@]}"; do ln -f "$work/obj/$t" "$work/$w/$t"; done
		link "$w"
		for t in "${TESTS[@]}"; do build_test "$w" "$t" "$work/obj"; done
	done
}

# includers HEADER: the sources of policy/ that have it inside, by name.
includers() {
	local c
	for c in policy/*.c; do
		"${compiler[@]}" -I"$work" -I. -MM "$c" | grep "[ /]$1\( \|\$\)" >/dev/null && basename "$c" .c
	done
	return 0
}

link() {
	(cd "$work/$1" && cc -shared -o libpolicy.so "${objects[@]}")
}

# measure: what each test takes as it is, in thousandths of a second of a processor, and the objects
# that it has inside: a line of both and its name, the quickest first.
measure() {
	local t inside times
	local -a with
	ar rcs "$work/policy.a" "${objects[@]/#/$work/obj/}"
	for t in "${TESTS[@]}"; do
		mapfile -t with < <(extra "$t" && wraps "$t")
		inside=$(cc -pthread -o "$work/linked" "$work/obj/test_$t.o" "${with[@]}" -Wl,-t,-t \
			"$work/policy.a" "${libs[@]}" | sed -n 's/^([^)]*policy\.a)//p' | tr '\n' ,)
		TIMEFORMAT='%U %S'
		{ time run_test 0 "$t" 600; } 2>"$work/times" || {
			echo "test_$t fails as it is" >&2
			return 1
		}
		times=$(awk 'END { printf "%d", ($1 + $2) * 1000 }' "$work/times")
		echo "$times ,$inside $t"
	done | sort -n >"$work/measured"
}

# order FILE: the tests that can notice a change in it, the quickest first, and what each takes.
order() {
	local name
	if [[ $1 == *.h ]]; then
		cut -d' ' -f1,3 "$work/measured"
		return
	fi
	name=$(basename "$1" .c).o
	awk -v name=",$name," 'index($2, name) { print $1, $3 }' "$work/measured"
}

# run_test WORKER TEST SECONDS: with at most so much of a processor: a change that makes it hang is
# noticed, too.
run_test() {
	local fork=no
	[[ " ${FORKING[*]} " != *" $2 "* ]] || fork=yes
	(
		ulimit -t "$3" -c 0
		CK_FORK=$fork CK_DEFAULT_TIMEOUT=0 timeout $(($3 * 20)) "$work/$1/test_$2" \
			</dev/null >/dev/null 2>&1
	) 2>/dev/null # nor how it died
}

# wraps TEST: what wraps memory's functions in it, if anything does.
wraps() {
	[[ " ${WRAPPED[*]} " == *" $1 "* ]] || return 0
	echo "-Wl,--wrap=calloc"
	[ "$1" = memcg ] || echo "-Wl,--wrap=realloc"
}

# build_test WORKER TEST FROM: links it anew, from the test's own objects in that folder.
build_test() {
	local -a with own
	mapfile -t with < <(wraps "$2")
	mapfile -t own < <(extra "$2" "$3")
	if [ ${#with[@]} -gt 0 ]; then
		with+=("${objects[@]/#/$work/$1/}")
	else
		with=(-L"$work/$1" -lpolicy "-Wl,-rpath,$work/$1")
	fi
	cc -pthread -o "$work/$1/test_$2" "$3/test_$2.o" "${own[@]}" "${with[@]}" "${libs[@]}"
}

# tests_fail WORKER FILE: which test noticed; nothing and status 1 where none did. Behind a header
# tests are compiled anew, too.
tests_fail() {
	local t from takes
	while read -r takes t; do
		from=$work/obj
		if [[ $2 == *.h ]]; then
			from=$work/$1
			compile "$1" "tests/unit/test_$t.c" "$from/test_$t.o" 2>/dev/null || {
				echo "$t" # an assertion of the compiler's
				return 0
			}
			[ -e "$from/world.o" ] || compile "$1" tests/unit/world.c "$from/world.o"
			[ -e "$from/model.o" ] || compile "$1" tests/unit/model.c "$from/model.o"
		fi
		if [[ $2 == *.h || " ${WRAPPED[*]} " == *" $t "* ]]; then
			build_test "$1" "$t" "$from"
		fi
		# Ten times what it takes: a slow machine is none.
		if ! run_test "$1" "$t" $((2 + takes / 100)); then
			echo "$t"
			return 0
		fi
	done < <(order "$2")
	return 1
}

# --- one mutant ----------------------------------------------------------------------------------

trim() {
	sed 's/^[ \t]*//; s/[ \t]*$//' <<<"$1"
}

# known FILE OLD NEW: whether the change is explained.
known() {
	awk -v file="$1" -v old="- $(trim "$2" | sed 's/\\/\\\\/g')" \
		-v new="+ $(trim "$3" | sed 's/\\/\\\\/g')" '
		$0 == file { in_file = 1; old_seen = 0; next }
		/^policy\// { in_file = 0 }
		in_file && /^- / { old_seen = $0 == old; next }
		in_file && old_seen && $0 == new { found = 1 }
		END { exit !found }' tests/mutate.equivalent
}

# outdated: what of the files that are tried is explained, and no change that is made.
outdated() {
	awk -v by="$SEPARATOR" '
		function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
		NR == FNR { split($0, m, by); file[m[1]]; made[m[1] by trim(m[3]) by trim(m[4])]; next }
		/^policy\// { of = $0 }
		/^- / { old = substr($0, 3) }
		/^\+ / && of in file && !(of by old by substr($0, 3) in made) { print of ": " $0 }
		' "$work/mutants" tests/mutate.equivalent
}

# changed WORKER FILE: compiles what the change concerns; status 1: the compiler refuses it.
changed() {
	local name
	local -a names=("$(basename "$2" .c)")
	[[ $2 != *.h ]] || mapfile -t names < <(includers "$2")
	for name in "${names[@]}"; do
		local source=$work/$1/policy/$name.c
		[ -e "$source" ] || source=$work/policy/$name.c
		rm -f "$work/$1/$name.o"
		compile "$1" "$source" "$work/$1/$name.o" 2>/dev/null || return 1
	done
	link "$1"
}

# restored WORKER FILE: as it was.
restored() {
	local t
	rm -f "$work/$1"/policy/* "$work/$1"/test_*.o "$work/$1"/{world,model}.o
	for t in "${objects[@]}"; do ln -f "$work/obj/$t" "$work/$1/$t"; done
	[[ $2 == *.h ]] || return 0
	link "$1"
	for t in "${TESTS[@]}"; do build_test "$1" "$t" "$work/obj"; done
}

# try WORKER FILE LINE OLD NEW: a line of result.
try() {
	local killer what
	what="$2:$3: $(trim "$4")  =>  $(trim "$5")"
	if known "$2" "$4" "$5"; then
		echo "equivalent	$what"
		return
	fi
	awk -v at="$3" -v new="${5//\\/\\\\}" 'NR == at { print new; next } { print }' \
		"$work/$2" >"$work/$1/$2"
	if ! changed "$1" "$2"; then
		echo "refused	$what"
	elif killer=$(tests_fail "$1" "$2"); then
		echo "noticed	$what	($killer)"
	else
		echo "survived	$what"
	fi
	restored "$1" "$2"
}

worker() {
	local n=0 file line old new
	while IFS=$SEPARATOR read -r file line old new; do
		n=$((n + 1))
		[ $((n % JOBS)) = "$1" ] || continue
		[ "$minutes" = 0 ] || [ "$SECONDS" -lt $((minutes * 60)) ] || break
		try "$1" "$file" "$line" "$old" "$new"
	done <"$work/mutants"
}

prepare
for file in "${files[@]}"; do (cd "$work" && mutants "$file"); done >"$work/mutants"
old=$(outdated)
[ -z "$old" ] || {
	echo "explained in tests/mutate.equivalent, and made no more:" "$old" >&2
	exit 2
}
measure || exit 2
[ "$minutes" = 0 ] || shuf -o "$work/mutants" "$work/mutants"
for ((w = 0; w < JOBS; w++)); do worker "$w" >"$work/result$w" & done
wait
cat "$work"/result* >"$work/results"
[ -z "${MUTATE_LOG:-}" ] || cp "$work/results" "$MUTATE_LOG"

count() {
	grep -c "^$1	" "$work/results" || true
}

grep '^survived	' "$work/results" | cut -f2 || true
all=$(wc -l <"$work/mutants")
tried=$(wc -l <"$work/results")
echo "$(count noticed) noticed, $(count survived) survived, $(count equivalent) known to be" \
	"equivalent, $(count refused) refused by the compiler, $((all - tried)) not tried"
[ "$(count survived)" = 0 ]
