#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# The documents' own experiments on the simulated host: documents/*.sim, each under every policy, and
# again without limits. A table beside the documents' figures, then NAME VALUE UNIT; each value is
# ballast's over that of who is named in its row. Medians of SEEDS seeds.
#
#	documents.sh [--smoke]      one seed
#
# What things cost (hv/sim/costs.h) is not fitted to any of this: its checksum is looked at first.
set -euo pipefail
. "$(dirname "$0")/../lab/parts.sh"

HERE=$ROOT/tests/bench/documents
SEEDS=${SEEDS:-20}
[ "${1:-}" != --smoke ] || SEEDS=1
(cd "$ROOT" && sha256sum --status -c "$HERE/costs.sha256") ||
	die "hv/sim/costs.h is not what it was when the costs were fixed: no figure is comparable"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

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

# play NAME FILE: all seeds, into $work/NAME.
play() {
	local seed
	for ((seed = 1; seed <= SEEDS; seed++)); do
		results "$2" "$seed"
	done >"$work/$1"
	warn "$1"
}

sed '/^agent = /d' "$HERE/gzip_4dd.sim" >"$work/gzip_4dd.blind.sim"
play gzip_4dd_without_agents "$work/gzip_4dd.blind.sim"

for file in "$HERE"/*.sim; do
	name=$(basename "$file" .sim)
	play "$name" "$file"
	case $name in
	gzip_* | stream_groups) continue ;;
	esac
	sed '/^soft-limit = /d' "$file" >"$work/$name.none.sim"
	play "${name}_no_limits" "$work/$name.none.sim"
done

# same FILE SEED: 1 where ballast decides the same with its soft pass on and off, tick by tick.
same() {
	local policy
	for policy in ballast all; do
		"$BUILD/ballast-sim" run --quiet --seed "$2" --policy "$policy" --record "$work/$policy.rec" "$1" >/dev/null
		tail -n +2 "$work/$policy.rec" >"$work/$policy.ticks" # less the configuration
	done
	cmp -s "$work/ballast.ticks" "$work/all.ticks" && echo 1 || echo 0
}

# Without limits nobody is in excess, and the soft pass is as if it were not there.
for ((seed = 1; seed <= SEEDS; seed++)); do
	for name in kbuild_zero stream_mem_eater nested; do
		same "$work/$name.none.sim" "$seed"
	done
done >"$work/same"
warn no_limits

# The empty groups of the last experiment. The daemon makes no group in which no VM is, so what they
# could cost is in reading their limits alone; the engine with as many groups is in ./dev bench walk.
for groups in 500 2000 8000; do
	{
		cat "$HERE/stream_groups.sim"
		for ((i = 1; i <= groups; i++)); do
			printf '\n[group /empty/%d/%d]\nsoft-limit = 1GiB\n' $((i / 2)) $i
		done
	} >"$work/groups.sim"
	play "stream_groups_$groups" "$work/groups.sim"
done

# median NAME POLICY VM COLUMN (3 elapsed, 4 faults, 5 swapped; VM all: of all values of all VMs; host:
# of what all VMs of a run have together)
median() {
	if [ "$3" = host ]; then
		awk -v policy="$2" -v column="$4" '
			$1 != policy { next }
			!first { first = $2 }
			$2 == first && n++ { print sum; sum = 0 }
			{ sum += $column }
			END { if (n) print sum }' "$work/$1"
	else
		awk -v policy="$2" -v vm="$3" -v column="$4" '
		$1 == policy && (vm == "all" || $2 == vm) { print ($column == "-" ? "inf" : $column) }' "$work/$1"
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

figures=$work/figures
: >"$figures"
printf '%-38s %10s %10s %10s  %s\n' figure value bar document 'compared with'
# row NAME VALUE OP BAR DOCUMENT COMPARATOR
row() {
	printf '%-38s %10s %10s %10s  %s\n' "$1" "$2" "$3 $4" "$5" "$6"
	[ "$2" = - ] || echo "documents.$1 $2 ratio" >>"$figures"
}

# ratio NAME VM COLUMN [POLICY COMPARATOR_NAME COMPARATOR_POLICY]
ratio() {
	over "$(median "$1" "${4:-ballast}" "$2" "$3")" "$(median "${5:-$1}" "${6:-hammer}" "$2" "$3")"
}

row gate.kbuild_zero "$(ratio kbuild_zero all 3 hammer kbuild_zero_no_limits hammer)" '1.75..' 7 3.50 \
	'hammer: limits of 0 over none'
row gate.gzip_4dd "$(ratio gzip_4dd a 3 global gzip_1dd global)" '>=' 10 28.3 'global: four dd over one'
row kbuild_zero.elapsed "$(ratio kbuild_zero all 3)" '<=' 0.304 0.304 hammer
row kbuild_zero.majfaults "$(ratio kbuild_zero all 4)" '<=' 0.029 0.029 hammer
row kbuild_zero.over_no_limits "$(ratio kbuild_zero all 3 ballast kbuild_zero_no_limits ballast)" '<=' 1.05 1.044 \
	'ballast without limits'
row stream_mem_eater.elapsed "$(ratio stream_mem_eater a 3)" '<=' 0.893 0.893 hammer
row stream_mem_eater.swap "$(ratio stream_mem_eater host 5)" '<=' 0.0024 0.0024 hammer
row kbuild_mem_eater.elapsed "$(ratio kbuild_mem_eater a 3)" '<=' 0.626 0.626 hammer
row kbuild_mem_eater.majfaults "$(ratio kbuild_mem_eater a 4)" '<=' 0.012 0.012 hammer
row kbuild_mem_eater.swap "$(ratio kbuild_mem_eater host 5)" '<=' 0.0069 0.0069 hammer
row gzip_4dd.elapsed "$(ratio gzip_4dd a 3 ballast gzip_0dd ballast)" '<=' 1.02 1.00 'gzip alone'
row gzip_4dd.without_agents.elapsed "$(ratio gzip_4dd_without_agents a 3 ballast gzip_0dd ballast)" '' - - 'gzip alone'
row gzip_4dd.over_global "$(ratio gzip_4dd a 3 ballast gzip_4dd global)" '' - 0.0226 global
row no_limits "$(awk '{ n += $1 } END { print n / NR }' "$work/same")" '>=' 1 - 'runs that decide the same with the soft pass off'
row nested.kbuild.elapsed "$(ratio nested c 3)" '<=' - - hammer
for name in stream_mem_eater kbuild_mem_eater nested; do
	row "$name.no_limits.elapsed" "$(ratio "${name}_no_limits" all 3 ballast "${name}_no_limits" global)" '' - - \
		'global, without limits'
done
for groups in 500 2000 8000; do
	row "stream_groups_$groups.elapsed" \
		"$(ratio "stream_groups_$groups" a 3 ballast stream_groups ballast)" '<=' 1.05 0.816 'the stream alone'
done
echo
awk '$1 == "documents.gate.kbuild_zero" { kbuild = $2 >= 1.75 && $2 <= 7 }
	$1 == "documents.gate.gzip_4dd" { gzip = $2 >= 10 }
	END {
		if (!kbuild) print "The gate of kbuild does not hold: those rows are not comparable."
		if (!gzip) print "The gate of gzip does not hold: its rows are not comparable."
	}' "$figures"
cat "$figures"
