# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# ./dev run --swap-limits: the same check has to fail, or it would check nothing.
. "$(dirname "$0")/common.sh"

SWAP=yes
story_restart
story_play "$LAB/swapped.record"
daemon_end
said=$(story_verdict) && die "the verdict does not notice that the limits are swapped"
say "$said"
# And for what comes of that, not because nothing was done. (Whether web, over its limit then, has
# anything to give depends on what its guest says.)
for what in "batch gave in the squeeze" "spare was not asked while batch was in excess"; do
	grep -qF "WRONG  $what:" <<<"$said" || die "the verdict does not say that it is wrong that $what"
done
