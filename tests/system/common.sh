# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What the cases share. ./dev test system runs them in order in one lab ($LAB), each in a shell of
# its own with set -euo pipefail. A case passes when it exits with 0; 77 skips it.
. "$(dirname "${BASH_SOURCE[0]}")/../lab/parts.sh"
lab_open "$LAB"
SWAP=no
WRONG=0

# finish: the last line of a case that uses expect.
finish() {
	[ $WRONG = 0 ]
}

# vm NAME FIELD: what ballastd says about a guest.
vm() {
	ctl status --format json | jq -r --arg n "$1" --arg f "$2" '.vms[] | select(.name == $n) | .[$f]'
}

# sampling: statistics of all guests have come several times.
sampling() {
	local name
	for name in $GUESTS; do
		[ "$(vm "$name" samples)" -ge 3 ] || return 1
	done
}

# floor_of NAME: the configured floor, MiB.
floor_of() {
	echo $((STORY_MIB[$1] * FLOOR_PERCENT / 100))
}

# squeeze_pool: configures a pool of what the guests cost now, and SLACK MiB.
squeeze_pool() {
	local name cost=0
	for name in $GUESTS; do
		cost=$((cost + $(guest_cost "$name")))
	done
	daemon_configure $((cost + SLACK))
}

# cuts NAME MARK: how many balloon commands below its maximum NAME was given since; a granule less,
# which wakes a balloon after a reboot, is none.
cuts() {
	balloon_commands "$2" | awk -v n="$1" -v all="${STORY_MIB[$1]}" '$3 == n && $4 < all - 1' | wc -l
}

cut_begun() {
	[ "$(cuts "$1" "$2")" -gt 0 ]
}

# commands NAME MARK: how many balloon commands NAME was given since.
commands() {
	balloon_commands "$2" | awk -v n="$1" '$3 == n' | wc -l
}

# last_target NAME MARK: the last balloon command to NAME since, MiB; nothing when there was none.
last_target() {
	balloon_commands "$2" | awk -v n="$1" '$3 == n { last = $4 } END { if (last) print last }'
}

# has_actual NAME MIB: the balloon leaves it that.
has_actual() {
	[ "$(guest_actual "$1")" = "$2" ]
}

# changing_commands MARK: what libvirtd sent to a monitor since and does not only read.
changing_commands() {
	tail -n +$(($1 + 1)) "$LAB/libvirtd.log" | sed -n '/QEMU_MONITOR_SEND_MSG/s/.*"execute":"\([^"]*\)".*/\1/p' |
		grep -vE '^(query-.*|qom-get|qom-list)$' || true
}

# ticks: how often the daemon has decided.
ticks() {
	ctl status --format json | jq .ticks
}

# rests NAME: what it costs moves no more: what it freed was reported to the host.
rests() {
	local before
	before=$(guest_cost "$1")
	for _ in 1 2 3 4; do
		sleep 1
		[ "$(guest_cost "$1")" -ge $((before - 1)) ] || return 1
	done
}

# begin: how a case begins that goes on with the guests of the one before it, however that ended.
# Records.
begin() {
	local name
	[ ! -e "$LAB/daemon.pid" ] || daemon_end
	guest_set_limit batch "${STORY_LIMIT[batch]}"
	guest_set_limit web "${STORY_LIMIT[web]}"
	for name in $GUESTS; do
		lab_virsh metadata "$name" urn:ballast:memory:1 --remove --live --config >/dev/null 2>&1 || true
		lab_virsh setmem "$name" "${STORY_MIB[$name]}MiB" --live
	done
	guest web drop grow
	story_fill
	wait_for 40 rests web
	squeeze_pool
	RECORD=$LAB/case.record
	rm -f "$RECORD"
	daemon_start --record "$RECORD"
	wait_for 20 sampling
}

# squeeze MIB: batch has to give for web, which grows by so much; waits until it gave, and rests.
squeeze() {
	local mark
	mark=$(log_mark)
	guest web grow "$1" "$STORY_RATE"
	cut_begins batch "$mark" || true
	wait_for 30 story_grown || true
	wait_for 20 story_settled || true
	wait_for 20 is_capped batch || true
}

# tighten: web grows until the pool is short, whatever others gave meanwhile.
tighten() {
	local free
	free=$(pool_free)
	[ "$free" -le $((WM_LOW / 2)) ] || guest web grow $((free - WM_LOW / 2)) "$STORY_RATE"
}

# cut_begins NAME MARK: waits until NAME is cut; where the pool has more than was reckoned, because what
# a guest had freed came back late, web grows by that too.
cut_begins() {
	wait_for 20 cut_begun "$1" "$2" && return
	tighten
	wait_for 20 cut_begun "$1" "$2" && return
	say "$1 is not cut; the pool has $(pool_free) MiB free"
	ctl status || true
	return 1
}

# is_capped NAME: has given what was asked, and not got all of it back.
is_capped() {
	[ "$(guest_actual "$1")" -lt "${STORY_MIB[$1]}" ] && [ "$(vm "$1" owed)" = 0 ]
}

# each_has_its_ceiling: all three have what they had before ballast touched them.
each_has_its_ceiling() {
	local name
	for name in $GUESTS; do
		has_actual "$name" "${STORY_MIB[$name]}" || return 1
	done
}

# expect_ceilings SECONDS WHEN: that each has, within that time.
expect_ceilings() {
	local name
	wait_for "$1" each_has_its_ceiling || true
	for name in $GUESTS; do
		expect "$name has its ceiling $2" "$(guest_actual "$name")" -eq "${STORY_MIB[$name]}"
	done
}

# runs NAME: it is shown as running and nothing else.
runs() {
	[ "$(vm "$1" state)" = running ]
}

# daemon_reload: takes the configuration that was written meanwhile.
daemon_reload() {
	kill -HUP "$(<"$LAB/daemon.pid")"
	wait_for 5 pool_is_configured
}

pool_is_configured() {
	[ "$(ctl status --format json | jq .pool.size)" = $(($(<"$LAB/pool") * 1048576)) ]
}
