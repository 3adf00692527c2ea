# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Killed with -9 after its first balloon command to batch and before it has what it needs.
. "$(dirname "$0")/common.sh"

cuts() {
	balloon_commands "$1" | awk '$3 == "batch" && $4 < 384' | wc -l
}
cut_begun() {
	[ "$(cuts "$mark")" -gt 0 ]
}

story_restart
story_snapshot >"$LAB/0"
cost=0
for name in $GUESTS; do cost=$((cost + $(guest_cost "$name"))); done
daemon_configure $((cost + SLACK))
mark=$(log_mark)
echo "$mark" >"$LAB/mark.0"
daemon_start
guest web grow $((STORY_FIRST + STORY_SECOND)) "$STORY_RATE"
wait_for 30 cut_begun
daemon_end KILL
killed=$(log_mark)
expect "balloon commands to batch before it was killed" "$(cuts "$mark")" -ge 1
expect "batch is in the middle of the cut" "$(guest_resident batch)" -gt $((STORY_LIMIT[batch] + STORY_NOISE))
sleep 1
daemon_start
wait_for 60 story_grown
wait_for 20 story_settled || true
sleep 2
story_snapshot >"$LAB/2"
log_mark >"$LAB/mark.2"
expect "balloon commands to batch after it was started again" "$(cuts "$killed")" -ge 1
expect "web was never asked" "$(lowest web 0 2)" -ge "${STORY_MIB[web]}"
expect "web has what it grew by" "$(fell web 2 0)" -ge $((STORY_FIRST + STORY_SECOND - STORY_NOISE))
expect "batch gave all its excess" "$(at 2 batch resident)" -le $((STORY_LIMIT[batch] + STORY_NOISE))
expect "batch is not far below its soft limit" "$(at 2 batch resident)" \
	-ge $((STORY_LIMIT[batch] - 2 * STORY_NOISE))
expect "spare gave the rest" "$(fell spare 0 2)" -ge "$STORY_NOISE"
expect "the pool has free memory" "$(pool_free)" -ge "$WM_LOW"
guest web drop grow
wait_for 30 story_returned || true
story_snapshot >"$LAB/3"
for name in $GUESTS; do
	expect "$name has its ceiling again" "$(at 3 "$name" actual)" -eq "${STORY_MIB[$name]}"
done
daemon_end
finish
