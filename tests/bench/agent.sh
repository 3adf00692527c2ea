#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What ballast-agent costs a guest of 150 groups, as a server with systemd has: agent.c says what is
# measured. The program is linked statically, and runs where it finds a /proc and a cgroup2 tree of
# files; beside it, at the same time, one that reads all of them once a second. Instructions are
# callgrind's, and they and reads are of virtual time: of a second at rest, of a report where it moves.
#   --smoke  a second of each    --json  the same as JSON
set -euo pipefail
. "$(dirname "$0")/../lab/parts.sh"

bench_begin agent "$@"
build_make plain tests/bench/ballast-agent >&2
seconds=60
[ "$SMOKE" = no ] || seconds=1

# What runs where nobody else sees it, with tree, a tree of files, as all that an agent finds.
# shellcheck disable=SC2016 # that shell expands it
apart='
work=$1 bench=$2 seconds=$3 tree=$1/tree moving=$1/tree/moving
agent=${bench%/*}/ballast-agent
cgroup=$(awk "\$3 == \"cgroup2\" { print \$2; exit }" /proc/self/mounts)
mount -t tmpfs none "$tree" || exit 77
if [ -z "$cgroup" ]; then
	cgroup=$1/cgroup
	mkdir "$cgroup"
	mount -t cgroup2 none "$cgroup" || exit 77
fi
mount -t tmpfs none /sys/kernel
mount -t tmpfs none /run
"$bench" tree "$tree" 150
mount --bind "$tree/cgroup" "$cgroup"
for file in meminfo vmstat pressure/memory; do
	mount --bind "$tree/proc/$file" "/proc/$file"
done
mkdir "$moving"
cp -r "$tree/proc" "$moving/proc"
"$bench" live "$agent" "$tree" "$seconds" rest >"$work/rest" &
export bench agent moving seconds
unshare --mount bash -euc '"'"'
	mount --bind "$moving/proc/vmstat" /proc/vmstat
	exec "$bench" live "$agent" "$moving" "$seconds" moves
'"'"' >"$work/moves" &
"$bench" naive "$tree" "$seconds" >"$work/naive" &
for _ in 1 2 3; do
	wait -n
done
# Of so many seconds of virtual time: reports and reads; and their instructions.
for what in "rest 60" "moves 3"; do
	set -- $what
	"$bench" steps "$tree" "$2" "$1" >"$work/$1.steps"
	valgrind --tool=callgrind --callgrind-out-file="$work/$1.callgrind" --toggle-collect=agent_step \
		"$bench" steps "$tree" "$2" "$1" >/dev/null 2>&1
done
'
mkdir "$WORK/tree"
user=() status=0
[ "$(id -u)" = 0 ] || user=(--map-root-user)
unshare "${user[@]}" --mount --propagation private \
	bash -euo pipefail -c "$apart" agent "$WORK" "$BENCH" "$seconds" 2>"$WORK/errors" || status=$?
if [ ! -e "$WORK/rest" ]; then
	cat "$WORK/errors" >&2
	say "agent: namespaces of mounts, or cgroup2, are not to be had here" >&2
	exit 77
fi
[ $status = 0 ] || die "agent: failed: $(cat "$WORK/errors")"

# percent THOUSANDTHS
percent() {
	awk -v n="$1" 'BEGIN { printf "%.3f\n", n / 1000 }'
}

read -r cpu said resident locked <"$WORK/rest"
row agent.rest.cpu "$(percent "$cpu")" % at_most 0.2
row agent.rest.reports "$said" reports
row agent.resident "$resident" KiB at_most 1024
row agent.locked "$locked" KiB at_least "$resident"
read -r cpu said _ <"$WORK/moves"
row agent.moves.cpu "$(percent "$cpu")" %
row agent.moves.reports "$said" reports
read -r cpu reads <"$WORK/naive"
row agent.naive.cpu "$(percent "$cpu")" %
row agent.naive.reads "$reads" reads

# counted WHAT: instructions, reads and reports are in $instructions, $reads and $said.
counted() {
	read -r said reads <"$WORK/$1.steps"
	instructions=$(awk '/^(totals|summary):/ { n = $2 } END { print n }' "$WORK/$1.callgrind")
}

counted rest
row agent.rest.instructions $((instructions / 60)) instructions at_most 300000
row agent.rest.reads $((reads / 60)) reads at_most 30
counted moves
row agent.moves.instructions $((instructions / said)) instructions at_most 4500000
row agent.moves.reads $((reads / said)) reads at_most 480

bench_end
