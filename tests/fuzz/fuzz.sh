#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# fuzz.sh [SECONDS [NAME...]]: every parser of what comes from outside, for some seconds each (5).
#
# A target is fuzz_NAME.c, beside its corpus, corpus/NAME: small inputs that are kept, good ones and
# those that once found something. All sources are built once, with clang's libFuzzer, address and
# undefined, into an archive in $builddir/fuzz, from which the linker takes what a target calls;
# config.h has to be in $builddir, and new inputs and whatever breaks a target go to fuzz/NAME.
# Speaks TAP.
set -euo pipefail
seconds=${1:-5}
shift || true
builddir=$(cd "${builddir:-.}" && pwd)
cd "$(dirname "$(readlink -f "$0")")/../.."

fuzz=$builddir/fuzz
libs=(json-c libsystemd inih libxml-2.0)
flags=(-std=gnu11 -g -O1 -fno-omit-frame-pointer -fno-sanitize-recover=all -I. "-I$builddir")
for lib in "${libs[@]}" libvirt; do
	read -ra more < <(pkg-config --cflags "$lib" 2>/dev/null) || true
	flags+=("${more[@]}")
done

# stale: the sources whose object is older than they are, or than any header.
stale() {
	local file object header
	header=$(find policy common hv guest-agent tests/unit "$builddir/config.h" -name '*.h' -printf '%T@ %p\n' |
		sort -n | tail -n 1)
	header=${header#* }
	for file in policy/*.c common/*.c hv/*.c hv/*/*.c guest-agent/*.c tests/unit/scratch.c; do
		object=$fuzz/objects/${file//\//_}
		[ "${file##*/}" = main.c ] || { [ "$object" -nt "$file" ] && [ "$object" -nt "$header" ]; } ||
			echo "$file"
	done
}

# compile FILE: what cannot be (a library is not here) is missed by who needs it.
compile() {
	local object=$fuzz/objects/${1//\//_}
	rm -f "$object.o"
	! clang "${flags[@]}" -fsanitize=fuzzer-no-link,address,undefined -c -o "$object.o" "$1" \
		2>"$object.log" || touch "$object"
}

archive() {
	local file nr=0 stale
	mkdir -p "$fuzz/objects"
	stale=$(stale)
	[ -n "$stale" ] || return 0
	for file in $stale; do
		compile "$file" &
		[ $((nr += 1)) -le "$(nproc)" ] || wait -n
	done
	wait
	rm -f "$fuzz/all.a"
	ar rcs "$fuzz/all.a" "$fuzz"/objects/*.o
}

build() {
	local out=$fuzz/$1
	if [ "$out/fuzz" -nt "$fuzz/all.a" ] && [ "$out/fuzz" -nt "tests/fuzz/fuzz_$1.c" ]; then
		return
	fi
	rm -f "$out/fuzz"
	mkdir -p "$out/new" "$out/broken"
	# shellcheck disable=SC2046 # words
	clang "${flags[@]}" -fsanitize=fuzzer,address,undefined -o "$out/fuzz" "tests/fuzz/fuzz_$1.c" \
		"$fuzz/all.a" $(pkg-config --libs "${libs[@]}") >"$out/build.log" 2>&1
}

# run NAME: a reproducer that breaks it stays in broken/.
run() {
	local out=$fuzz/$1 options=(-timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1)
	[ ! -e "tests/fuzz/$1.dict" ] || options+=("-dict=tests/fuzz/$1.dict")
	"$out/fuzz" "${options[@]}" -max_total_time="$seconds" -artifact_prefix="$out/broken/" \
		"$out/new" "tests/fuzz/corpus/$1" >"$out/run.log" 2>&1
}

names=("$@")
[ $# -gt 0 ] || for f in tests/fuzz/fuzz_*.c; do
	name=${f#tests/fuzz/fuzz_}
	names+=("${name%.c}")
done

# Side by side; what could not be built is not there below.
archive
for name in "${names[@]}"; do
	build "$name" || true &
done
wait

failed=0
nr=0
echo "1..${#names[@]}"
for name in "${names[@]}"; do
	nr=$((nr + 1))
	log=$fuzz/$name/build.log
	if [ -x "$fuzz/$name/fuzz" ] && log=$fuzz/$name/run.log && run "$name"; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "ok $nr - fuzz $name takes anything (${runs:-?} inputs)"
	else
		failed=1
		echo "not ok $nr - fuzz $name takes anything"
		tail -n 30 "$log" | sed 's/^/# /'
	fi
done
exit $failed
