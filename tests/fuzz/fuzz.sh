#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# fuzz.sh [SECONDS [NAME...]]: every parser of what comes from outside, for some seconds each (5).
#
# A target is fuzz_NAME.c, beside its row in sources() below and its corpus, corpus/NAME: small
# inputs that are kept, good ones and those that once found something. Builds with clang's
# libFuzzer, address and undefined, in $builddir/fuzz, where config.h has to be (and new inputs and
# whatever breaks a target go). Speaks TAP.
set -euo pipefail
seconds=${1:-5}
shift || true
builddir=$(cd "${builddir:-.}" && pwd)
cd "$(dirname "$(readlink -f "$0")")/../.."

# What a target is made of, beside itself; then what it links.
sources() {
	case $1 in
	replay) echo hv/replay.c hv/record_fields.c common/{json,text}.c policy/*.c -- json-c ;;
	control) echo hv/ballastd/{control*,methods*,views*,pauses}.c hv/core*.c hv/{lane,hv}.c \
		hv/sim/{sim,queue,answer,paging,guest,guest_step,memory,memory_reclaim,program,program_kbuild,rival}.c \
		common/{json,nearest,size,text}.c \
		policy/*.c tests/unit/scratch.c -- json-c libsystemd ;;
	agent) echo hv/agent_channel.c common/protocol.c guest-agent/{agent,figures,reclaim}.c \
		policy/{batch,workingset}.c -- ;;
	size) echo common/size.c -- ;;
	pager) echo hv/pager/hello.c common/json.c -- json-c ;;
	config) echo hv/ballastd/config*.c hv/core*.c hv/lane.c hv/hv.c common/{size,nearest,text}.c policy/*.c -- inih ;;
	domxml) echo hv/libvirt/domxml.c hv/knobs_text.c hv/hv.c common/size.c -- libxml-2.0 ;;
	*) return 1 ;;
	esac
}

# is_new NAME: whether it was built of what is there now.
is_new() {
	[ -x "$builddir/fuzz/$1/fuzz" ] && [ -z "$(find policy common hv guest-agent tests/fuzz tests/unit "$builddir/config.h" \
		-name '*.[ch]' -newer "$builddir/fuzz/$1/fuzz" -print -quit)" ]
}

build() {
	local name=$1 from libs out=$builddir/fuzz/$1
	! is_new "$name" || return 0
	rm -f "$out/fuzz"
	from=$(sources "$name")
	libs=${from#*--}
	from=${from%--*}
	mkdir -p "$out/new" "$out/broken"
	# shellcheck disable=SC2046,SC2086 # words
	clang -std=gnu11 -g -O1 -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=all -I. -I"$builddir" -o "$out/fuzz" "tests/fuzz/fuzz_$name.c" $from \
		$([ -z "${libs// /}" ] || pkg-config --cflags --libs $libs) >"$out/build.log" 2>&1
}

# run NAME: a reproducer that breaks it stays in broken/.
run() {
	local out=$builddir/fuzz/$1 options=(-timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1)
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
for name in "${names[@]}"; do
	build "$name" || true &
done
wait

failed=0
nr=0
echo "1..${#names[@]}"
for name in "${names[@]}"; do
	nr=$((nr + 1))
	log=$builddir/fuzz/$name/build.log
	if [ -x "$builddir/fuzz/$name/fuzz" ] && log=$builddir/fuzz/$name/run.log && run "$name"; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "ok $nr - fuzz $name takes anything (${runs:-?} inputs)"
	else
		failed=1
		echo "not ok $nr - fuzz $name takes anything"
		tail -n 30 "$log" | sed 's/^/# /'
	fi
done
exit $failed
