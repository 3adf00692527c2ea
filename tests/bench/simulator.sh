#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# How fast the simulator is, and how large. Virtual seconds a second of the processor: 200 guests, two of
# five with something to do, overcommit a host of 64 GiB, and the daemon's own core decides among them.
# Memory: the most that a run of 10,000 guests has resident.
#   --smoke  shorter, and fewer guests    --json  as JSON
set -euo pipefail
. "$(dirname "$0")/../lab/parts.sh"

bench_options simulator "$@"
bench_work
seconds=300 many=10000 many_seconds=20
[ "$SMOKE" = no ] || seconds=20 many=1000 many_seconds=5

# busy GUESTS SECONDS: the scenario of those. All use a third of what they may have, or half.
busy() {
	local i
	printf '[scenario]\nlength = %ds\n[host]\nmemory = 64GiB\nswap = 16GiB\n[pool]\nsize = host\n' "$2"
	for ((i = 0; i < $1; i++)); do
		printf '[vm v%d]\nmemory = 512MiB\nsoft-limit = %dMiB\nfixed = 40MiB\nhot = 64MiB\ncache = 128MiB\nswap = 256MiB\n' \
			$i $((256 + i % 3 * 96))
		case $((i % 10)) in
		0) echo "at 2s = run kbuild 100000 parallel 2" ;;
		1) echo "at 2s = run stream 1024GiB write" ;;
		2) echo "at 2s = run gzip 100MiB times 1000" ;;
		3) echo "at 2s = run diurnal 16MiB 256MiB period 2min" ;;
		esac
	done
}

# idle GUESTS SECONDS
idle() {
	local i
	printf '[scenario]\nlength = %ds\n[pool]\nsize = 4TiB\n' "$2"
	for ((i = 0; i < $1; i++)); do
		printf '[vm v%d]\nmemory = 1GiB\nhot = 200MiB\ncache = 100MiB\n' $i
	done
}

busy 200 $seconds >"$WORK/busy.sim"
TIMEFORMAT='%U %S'
read -r user system < <({ time "$BUILD/ballast-sim" run --quiet "$WORK/busy.sim" >"$WORK/said"; } 2>&1)
row simulator.200.speed "$(awk -v s=$seconds -v a="$user" -v b="$system" 'BEGIN { printf "%.1f\n", s / (a + b) }')" \
	s/s at_least 100

idle $many $many_seconds >"$WORK/idle.sim"
"$BUILD/ballast-sim" run --quiet "$WORK/idle.sim" >"$WORK/said" &
sim=$! kib=0
# It grows only, so what was read last is the most.
while read -r now < <(awk '/^VmHWM:/ { print $2 }' "/proc/$sim/status" 2>/dev/null); do
	kib=$now
	sleep 0.1
done
wait $sim
row "simulator.$many.memory" $((kib / 1024)) MiB at_most $((4096 * many / 10000))

bench_end
