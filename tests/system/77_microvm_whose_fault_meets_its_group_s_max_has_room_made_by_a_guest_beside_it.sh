# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# A microVM, whose page faults ballastd resolves, in a group with batch. What it touches past the group's
# max waits, and batch gives for it. Goes on with the guests of case 76, which left them all they have.
. "$(dirname "$0")/common.sh"

MICRO=40
FREE=16
# What is asked for at a time, as often as a fault finds no room: the group's max may be passed by what
# one that waited for a second was let through with, and by what comes before batch has given.
OVER=1

is_done() {
	grep -q 'done' "$LAB/micro.out"
}
# micro FIELD: of what the pager says of it.
micro() {
	ctl status --format json | jq -r --arg f "$1" '.vms[] | select(.name == "micro") | .paging[$f]'
}
# used NAME: what it is charged, bytes; 0 where that is not known.
used() {
	ctl status --format json | jq -r --arg n "$1" '[.vms[] | select(.name == $n) | .usage // 0] | add // 0'
}
is_charged() {
	[ "$(used micro)" = $((MICRO * 1048576)) ]
}
is_gone_too() {
	[ "$(used micro)" = 0 ]
}
both() {
	echo $((($(used micro) + $(used batch)) / 1048576))
}
fits() {
	[ "$(both)" -le $((max + 1)) ]
}

guest batch cache "$STORY_BATCH_CACHE"
image_tool "$ROOT/tests/lab/vmm.c" "$CACHE/vmm"
mkdir -p "$LAB/vmms"
: >"$LAB/vmms/micro.mem"
max=$(($(guest_resident batch) + FREE))
daemon_configure 4096
sed -i "s|^mode = act|&\npager = $LAB/vmms|" "$LAB/ballastd.conf"
cat >>"$LAB/ballastd.conf" <<-END
	[group /shared]
	max = ${max}MiB
	[rule batch]
	match-name = batch
	group = /shared
	[rule micro]
	match-name = micro
	group = /shared
END
daemon_start
wait_for 20 sampling
wait_for 10 test -S "$LAB/vmms/micro.sock"
mark=$(log_mark)
"$CACHE/vmm" "$LAB/vmms/micro.sock" $MICRO 20 >"$LAB/micro.out" &
vmm=$!
trap 'kill "$vmm"' EXIT
wait_for 60 is_done || true
expect "the microVM has touched all of its memory" "$(is_done && echo 1 || echo 0)" -eq 1
wait_for 20 fits || true
wait_for 10 is_charged || true # figures come once a second
ctl status
expect "and is charged exactly that" "$(used micro)" -eq $((MICRO * 1048576))
expect "faults that waited for room" "$(micro waited)" -ge 1
expect "bytes that were let through over the max" "$(micro over_max)" -le $((OVER * 1048576))
expect "batch gave for them" "$(cuts batch "$mark")" -ge 1
expect "and both are below the group's max, MiB" "$(both)" -le $((max + 1))
kill "$vmm"
trap - EXIT
wait "$vmm" || true
wait_for 15 is_gone_too || true
expect "and nothing when its process is gone" "$(used micro)" -eq 0
daemon_end
finish
