#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# The pager with charging, beside the same handler without: pager.c says what is measured. Ratios are
# of two slices of one round, their median and the interval that holds the true one in 95 of 100
# cases.
#   --smoke  few rounds    --json  the same as JSON
set -euo pipefail
. "$(dirname "$0")/../lab/parts.sh"

bench_begin pager "$@"
rounds=100
[ "$SMOKE" = no ] || rounds=2

for vms in 1 2 8; do
	name=pager.${vms}vm status=0
	"$BENCH" $vms $rounds >"$WORK/said" || status=$?
	if [ $status = 77 ]; then
		say "pager: userfaultfd is not allowed here" >&2
		exit 77
	fi
	[ $status = 0 ] || die "pager: failed"
	while read -r what median low high; do
		case $what in
		over_uncharged) ratio "$name.$what" "$median" "$low..$high" at_least 0.99 ;;
		*_p99) row "$name.$what" "$median" us ;;
		*) row "$name.$what" "${median%.*}" faults/s ;;
		esac
	done <"$WORK/said"
done

bench_end
