#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# The pager with charging, beside the same handler without: pager.c says what is measured. Ratios are
# of two slices of one round, their median and the interval that holds the true one in 95 of 100
# cases.
#   --smoke  few rounds    --json  the same as JSON
set -euo pipefail
. "$(dirname "$0")/../lab/parts.sh"

rounds=100 smoke=no json=no
for arg in "$@"; do
	case $arg in
	--smoke) smoke=yes rounds=2 ;;
	--json) json=yes ;;
	*) die "pager: $arg?" ;;
	esac
done

build_programs
build_make plain tests/bench/pager >&2
bench=$ROOT/build/plain/tests/bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rows=$work/rows

row() {
	echo "$*" >>"$rows"
}

for vms in 1 2 8; do
	name=pager.${vms}vm status=0
	"$bench/pager" $vms $rounds >"$work/said" || status=$?
	if [ $status = 77 ]; then
		say "pager: userfaultfd is not allowed here" >&2
		exit 77
	fi
	[ $status = 0 ] || die "pager: failed"
	while read -r what median low high; do
		case $what in
		over_uncharged)
			row "$name.$what" "$median" ratio at_least 0.99 "$high"
			row "$name.$what.interval" "$low..$high" ratio
			;;
		*_p99) row "$name.$what" "$median" us ;;
		*) row "$name.$what" "${median%.*}" faults/s ;;
		esac
	done <"$work/said"
done

if [ $json = yes ]; then
	awk 'BEGIN { print "[" }
		{ quoted = $2 ~ /\.\./ ? "\"" $2 "\"" : $2
		printf "%s  {\"name\": \"%s\", \"value\": %s, \"unit\": \"%s\"%s}", (NR > 1 ? ",\n" : ""), $1, quoted, $3, \
			($4 == "" ? "" : ", \"" $4 "\": " $5) }
		END { print "\n]" }' "$rows"
else
	awk '{ said = ($4 == "at_least" ? " (at least " $5 ($6 >= $5 ? ")" : ": MISSED)") : "")
		print $1, $2, $3 said }' "$rows"
fi
[ $smoke = no ] || say "few rounds: the ratios say nothing" >&2
