#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# The documents' own experiments on the simulated host: documents/*.sim, each under every policy, and
# again without limits. A table beside the documents' figures, then NAME VALUE UNIT; each value is
# ballast's over that of who is named in its row. Medians of SEEDS seeds.
#
#   --smoke  one seed    --json  the figures as JSON
#
# The documents' stream beside thousands of empty groups is in ./dev bench walk: what those cost is the
# engine's time, and time here is virtual.
#
# What things cost (hv/sim/costs.h) is not fitted to any of this: its checksum is looked at first.
set -euo pipefail
. "$(dirname "$0")/../lab/parts.sh"

HERE=$ROOT/tests/bench/documents
bench_options documents "$@"
SEEDS=${SEEDS:-20}
[ "$SMOKE" = no ] || SEEDS=1
(cd "$ROOT" && sha256sum --status -c "$HERE/costs.sha256") ||
	die "hv/sim/costs.h is not what it was when the costs were fixed: no figure is comparable"

bench_work

# results FILE SEED: POLICY VM ELAPSED_US FAULTS SWAPPED of each, - for what is not over.
results() {
	"$BUILD/ballast-sim" compare --seed "$2" --format json "$1" | awk -F'[:,]' '
		{ gsub(/[" ]/, "") }
		/^policy:/ { policy = $2; elapsed = "-" }
		/^vm:/ { vm = $2 }
		/^elapsed_us:/ { elapsed = $2 }
		/^major_faults:/ { faults = $2 }
		/^swapped_most_bytes:/ { print policy, vm, elapsed, faults, $2 }'
}

# play NAME FILE: all seeds, into $WORK/NAME.
play() {
	local seed
	for ((seed = 1; seed <= SEEDS; seed++)); do
		results "$2" "$seed"
	done >"$WORK/$1"
	warn "$1"
}

sed '/^agent = /d' "$HERE/gzip_4dd.sim" >"$WORK/gzip_4dd.blind.sim"
play gzip_4dd_without_agents "$WORK/gzip_4dd.blind.sim"

for file in "$HERE"/*.sim; do
	name=$(basename "$file" .sim)
	play "$name" "$file"
	case $name in
	gzip_*) continue ;;
	esac
	sed '/^soft-limit = /d' "$file" >"$WORK/$name.none.sim"
	play "${name}_no_limits" "$WORK/$name.none.sim"
done

# same FILE SEED: 1 where ballast decides the same with its soft pass on and off, tick by tick.
same() {
	local policy
	for policy in ballast all; do
		"$BUILD/ballast-sim" run --quiet --seed "$2" --policy "$policy" --record "$WORK/$policy.rec" "$1" >/dev/null
		tail -n +2 "$WORK/$policy.rec" >"$WORK/$policy.ticks" # less the configuration
	done
	cmp -s "$WORK/ballast.ticks" "$WORK/all.ticks" && echo 1 || echo 0
}

# Without limits nobody is in excess, and the soft pass is as if it were not there.
for ((seed = 1; seed <= SEEDS; seed++)); do
	for name in kbuild_zero stream_mem_eater nested; do
		same "$WORK/$name.none.sim" "$seed"
	done
done >"$WORK/same"
warn no_limits

# median NAME POLICY VM COLUMN (3 elapsed, 4 faults, 5 swapped; VM all: of all values of all VMs; host:
# of what all VMs of a run have together)
median() {
	if [ "$3" = host ]; then
		awk -v policy="$2" -v column="$4" '
			$1 != policy { next }
			!first { first = $2 }
			$2 == first && n++ { print sum; sum = 0 }
			{ sum += $column }
			END { if (n) print sum }' "$WORK/$1"
	else
		awk -v policy="$2" -v vm="$3" -v column="$4" '
		$1 == policy && (vm == "all" || $2 == vm) { print ($column == "-" ? "inf" : $column) }' "$WORK/$1"
	fi |
		sort -g | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'
}

# over A B: A / B; -: one of them is not known, or B's run was not over in its time.
over() {
	awk -v a="$1" -v b="$2" 'BEGIN {
		if (a == "-" || b == "-" || b == "inf") print "-" # nothing to compare with
		else if (a == "inf") print "inf"
		else if (b + 0 == 0) print (a + 0 == 0 ? 0 : "inf")
		else printf "%.4f\n", a / b }'
}

[ "$JSON" = yes ] || printf '%-38s %10s %20s %10s  %s\n' figure value bar document 'compared with'
# figure NAME VALUE BAR DOCUMENT COMPARATOR [UNIT]; BAR as in row, or nothing
figure() {
	[ "$JSON" = yes ] || printf '%-38s %10s %20s %10s  %s\n' "$1" "$2" "$3" "$4" "$5"
	# shellcheck disable=SC2086 # two words, or none
	row "documents.$1" "$2" "${6:-ratio}" $3
}

# compared NAME VM COLUMN [POLICY COMPARATOR_NAME COMPARATOR_POLICY]
compared() {
	over "$(median "$1" "${4:-ballast}" "$2" "$3")" "$(median "${5:-$1}" "${6:-hammer}" "$2" "$3")"
}

figure gate.kbuild_zero "$(compared kbuild_zero all 3 hammer kbuild_zero_no_limits hammer)" 'within 1.75..7' 3.50 \
	'hammer: limits of 0 over none'
figure gate.gzip_4dd "$(compared gzip_4dd a 3 global gzip_1dd global)" 'at_least 10' 28.3 'global: four dd over one'
figure kbuild_zero.elapsed "$(compared kbuild_zero all 3)" 'at_most 0.304' 0.304 hammer
figure kbuild_zero.majfaults "$(compared kbuild_zero all 4)" 'at_most 0.029' 0.029 hammer
figure kbuild_zero.over_no_limits "$(compared kbuild_zero all 3 ballast kbuild_zero_no_limits ballast)" 'at_most 1.05' \
	1.044 'ballast without limits'
figure stream_mem_eater.elapsed "$(compared stream_mem_eater a 3)" 'at_most 0.893' 0.893 hammer
figure stream_mem_eater.swap "$(compared stream_mem_eater host 5)" 'at_most 0.0024' 0.0024 hammer
figure kbuild_mem_eater.elapsed "$(compared kbuild_mem_eater a 3)" 'at_most 0.626' 0.626 hammer
figure kbuild_mem_eater.majfaults "$(compared kbuild_mem_eater a 4)" 'at_most 0.012' 0.012 hammer
figure kbuild_mem_eater.swap "$(compared kbuild_mem_eater host 5)" 'at_most 0.0069' 0.0069 hammer
figure gzip_4dd.elapsed "$(compared gzip_4dd a 3 ballast gzip_0dd ballast)" 'at_most 1.02' 1.00 'gzip alone'
figure gzip_4dd.without_agents.elapsed "$(compared gzip_4dd_without_agents a 3 ballast gzip_0dd ballast)" '' - 'gzip alone'
figure gzip_4dd.over_global "$(compared gzip_4dd a 3 ballast gzip_4dd global)" '' 0.0226 global
figure no_limits "$(awk '{ n += $1 } END { print n / NR }' "$WORK/same")" 'at_least 1' - \
	'runs that decide the same with the soft pass off' share
figure nested.kbuild.elapsed "$(compared nested c 3)" '' - hammer
for name in stream_mem_eater kbuild_mem_eater nested; do
	figure "$name.no_limits.elapsed" "$(compared "${name}_no_limits" all 3 ballast "${name}_no_limits" global)" '' - \
		'global, without limits'
done
[ "$JSON" = yes ] || echo
bench_end || {
	say "documents: a bar is missed; where it is a gate's, no row beside that policy is comparable" >&2
	exit 1
}
