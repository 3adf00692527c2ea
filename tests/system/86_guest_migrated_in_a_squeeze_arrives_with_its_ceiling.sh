# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Two libvirtds that take themselves for two hosts, with a ballastd each: batch, cut on the first,
# moves to the second. Before, the second libvirtd goes and comes back while it has no guests. The
# guest is left on the second, which ends with this case.
. "$(dirname "$0")/common.sh"

FIRST=$LAB
SECOND=$LAB/second
# on_second COMMAND...: as a lab of its own.
on_second() {
	(
		lab_open "$SECOND"
		"$@"
	)
}
# What came there by migration has the paths of where it was made.
end_second() {
	lab_open "$SECOND"
	lab_virsh destroy batch >/dev/null 2>&1 || true
	lab_down
}
is_connected() {
	[ "$(ctl status --format json | jq .connected)" = "$1" ]
}
shows() {
	ctl status --format json | jq -e --arg n "$1" 'any(.vms[]; .name == $n)' >/dev/null
}
migrates() {
	[ "$(vm batch state)" = migrating ]
}
no_longer() {
	! shows batch
}

trap end_second EXIT
(LAB_HOST_UUID=$(</proc/sys/kernel/random/uuid) LAB_TIMEOUT=5 lab_up "$SECOND")
on_second daemon_configure 4096
on_second daemon_start
on_second wait_for 10 is_connected true

begin
squeeze 70
expect "batch was cut" "$(guest_actual batch)" -lt "${STORY_MIB[batch]}"

# By now the second has been idle for longer than its time, but for ballastd.
expect "an idle libvirtd stays for ballastd" "$(on_second lab_answers && echo 1 || echo 0)" -eq 1
kill "$(<"$SECOND/libvirtd.pid")"
on_second wait_for 10 is_connected false || true
expect "its end is noticed" "$(on_second is_connected false && echo 1 || echo 0)" -eq 1
on_second lab_start_libvirtd
on_second wait_for 10 is_connected true || true
expect "and that it is there again" "$(on_second is_connected true && echo 1 || echo 0)" -eq 1

# Slow, until the pool has run short meanwhile and somebody else gave for it. The move itself takes
# memory too: a QEMU that sends reads what its balloon holds, and then has it.
capped=$(guest_actual batch)
there=$(on_second log_mark)
lab_virsh migrate-setspeed batch 4
lab_virsh migrate batch --live --p2p --persistent --undefinesource \
	"qemu+unix:///system?socket=$SECOND/run/libvirt/libvirt-sock" \
	--migrateuri "unix://$SECOND/migrate.sock" &
migration=$!
wait_for 10 migrates || true
expect "the move is shown" "$(migrates && echo 1 || echo 0)" -eq 1
mark=$(log_mark)
said=$(wc -l <"$LAB/ballastd.log")
tighten
wait_for 30 cut_begun spare "$mark" || true
expect "spare gives for a pool that is short during the move" "$(cuts spare "$mark")" -ge 1
expect "it moves still" "$(migrates && echo 1 || echo 0)" -eq 1
lab_virsh migrate-setspeed batch 1000
wait "$migration"
moved=$(log_mark)
expect "balloon commands to batch during the move" \
	"$(balloon_commands "$mark" | awk -v to="$moved" '$1 <= to && $3 == "batch"' | wc -l)" -eq 0
expect "nor one that libvirt refused" \
	"$(tail -n +$((said + 1)) "$LAB/ballastd.log" | grep -c '^.* batch .*its balloon target .* was refused' || true)" -eq 0
wait_for 10 no_longer || true
expect "the first shows nothing of it" "$(shows batch && echo 1 || echo 0)" -eq 0
expect "nor does its libvirtd" "$(lab_virsh list --all --name | grep -c '^batch$' || true)" -eq 0
guest web drop grow
sleep 3
expect "balloon commands on the first for who has gone" "$(commands batch "$mark")" -eq 0
daemon_end

on_second wait_for 30 runs batch || true
on_second wait_for 30 has_actual batch "${STORY_MIB[batch]}" || true
expect "on the second it has its ceiling" "$(on_second guest_actual batch)" -eq "${STORY_MIB[batch]}"
expect "and was asked for nothing there" \
	"$(on_second balloon_commands "$there" | awk -v c="$capped" '$4 < c' | wc -l)" -eq 0
expect "its limit came along" "$(($(on_second vm batch soft_limit) / 1048576))" -eq "${STORY_LIMIT[batch]}"
[ "$LAB" = "$FIRST" ]
finish
