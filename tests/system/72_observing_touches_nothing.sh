# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Mode observe through a squeeze that would have been reason to cut: no monitor command that changes
# anything, and every description as it was. The statistics of batch and web are on, so that there is
# something to decide on; those of spare are off, and stay so. Then what else may happen to guests: an
# agent, a reboot, a job, a QEMU that stands still, a libvirtd that is killed.
. "$(dirname "$0")/common.sh"

# descriptions: without the controller that is none, which a libvirtd that was started anew writes in
# another way.
descriptions() {
	local name
	for name in $GUESTS; do
		lab_virsh dumpxml "$name"
		lab_virsh dumpxml "$name" --inactive
	done | grep -vE "model='none'|<alias name='usb'|</controller>"
}

story_restart
for name in batch web; do
	lab_virsh dommemstat "$name" --period 1 --live >/dev/null
done
squeeze_pool
sed -i 's/^mode = act/mode = observe/' "$LAB/ballastd.conf"
descriptions >"$LAB/before.xml"
mark=$(log_mark)
daemon_start
guest web grow $((STORY_FIRST + 20)) $((2 * STORY_RATE))
wait_for 30 story_grown
sleep 4
ctl status
expect "the pool is short" "$(pool_free)" -lt "$WM_LOW"
expect "batch would give in the first step" "$(ctl plan 32MiB | grep -c '^batch ')" -ge 1
expect "monitor commands while it observed" "$(tail -n +$((mark + 1)) "$LAB/libvirtd.log" | grep -c QEMU_MONITOR_SEND_MSG)" -ge 4
changing_commands "$mark" | sort | uniq -c
expect "monitor commands that change anything" "$(changing_commands "$mark" | wc -l)" -eq 0

is_shown() {
	[ "$(vm "$1" answering)" = "$2" ]
}
has_agent() {
	[ "$(ctl status --format json | jq -r '.vms[] | select(.name == "batch") | .agent.connected')" = true ]
}
is_connected() {
	[ "$(ctl status --format json | jq .connected)" = "$1" ]
}
mark=$(log_mark)
guest batch agent
wait_for 10 has_agent || true
expect "its agent is listened to" "$(has_agent && echo 1 || echo 0)" -eq 1
lab_virsh reset spare
lab_virsh dump spare "$LAB/spare.dump" --live --memory-only >/dev/null
rm -f "$LAB/spare.dump"
pid=$(guest_pid web)
trap 'kill -CONT "$pid"' EXIT
kill -STOP "$pid"
wait_for 15 is_shown web false || true
expect "that web stands still is shown" "$(is_shown web false && echo 1 || echo 0)" -eq 1
kill -CONT "$pid"
trap - EXIT
wait_for 20 is_shown web true || true
lab_kill_libvirtd
wait_for 10 is_connected false || true
lab_restart_libvirtd web
wait_for 20 is_connected true || true
expect "it observes again" "$(is_connected true && echo 1 || echo 0)" -eq 1
sleep 2
daemon_end
# Beside what the case itself did, and a libvirtd that starts.
changed() {
	changing_commands "$mark" | grep -vE '^(system_reset|dump-guest-memory|stop|cont|getfd|closefd|qmp_capabilities)$' || true
}
changed | sort | uniq -c
expect "monitor commands that change anything, whatever happened" "$(changed | wc -l)" -eq 0
guest batch "kill \$(cat /run/agent.pid)"
guest_ready spare
descriptions >"$LAB/after.xml"
diff "$LAB/before.xml" "$LAB/after.xml" || true
expect "descriptions are as they were" "$(cmp -s "$LAB/before.xml" "$LAB/after.xml" && echo 1 || echo 0)" -eq 1
guest web drop grow
finish
