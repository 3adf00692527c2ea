# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# A snapshot job on batch, which takes as long as the test wants: the process that writes its file is
# stopped before it has written much, for at the end of a job QEMU would wait for it and answer nobody.
# Then batch is paused by hand, and neither gives nor is given anything. Then a managedsave in the middle
# of a cut, and the start from it. Last a small guest without a balloon, which need not boot.
. "$(dirname "$0")/common.sh"

writer() {
	pgrep -f "libvirt_iohelper.*$LAB/batch.memory"
}
stop_writer() {
	for ((i = 0; i < 1000; i++)); do
		pid=$(writer) && kill -STOP "$pid" && return
		sleep 0.01
	done
	return 1
}
in_job() {
	[ "$(vm batch state)" = "snapshot job" ]
}
is_in_state() {
	[[ "$(vm "$1" state)" == "$2"* ]]
}

begin
squeeze 70
expect "batch was cut" "$(guest_actual batch)" -lt "${STORY_MIB[batch]}"

lab_virsh snapshot-create-as batch lab --no-metadata --live --diskspec vda,snapshot=no \
	--memspec "file=$LAB/batch.memory,snapshot=external" >/dev/null &
snapshot=$!
stop_writer
trap 'kill -CONT "$pid"' EXIT
mark=$(log_mark)
wait_for 20 in_job || true
expect "the job is shown" "$(in_job && echo 1 || echo 0)" -eq 1
tighten
wait_for 30 cut_begun spare "$mark" || true
wait_for 20 story_settled || true
expect "the job runs still" "$(lab_virsh domjobinfo batch | grep -c 'Operation: *Snapshot')" -eq 1
expect "balloon commands to batch during its job" "$(commands batch "$mark")" -eq 0
expect "spare gave instead" "$(cuts spare "$mark")" -ge 1
kill -CONT "$pid"
trap - EXIT
wait "$snapshot"
rm -f "$LAB/batch.memory"
wait_for 20 runs batch || true
expect "it is running again afterwards" "$(runs batch && echo 1 || echo 0)" -eq 1

# It stood still while its memory was written: what it has is known when it has said so again.
samples=$(vm batch samples)
said_again() {
	[ "$(vm batch samples)" -gt "$samples" ]
}
wait_for 20 said_again || true
mark=$(log_mark)
lab_virsh suspend batch
wait_for 10 is_in_state batch paused || true
expect "that it is paused is shown" "$(is_in_state batch paused && echo 1 || echo 0)" -eq 1
tighten
wait_for 30 cut_begun spare "$mark" || true
expect "spare gives for one that is paused" "$(cuts spare "$mark")" -ge 1
guest web drop grow
wait_for 30 has_actual spare "${STORY_MIB[spare]}" || true
expect "spare has its ceiling again" "$(guest_actual spare)" -eq "${STORY_MIB[spare]}"
expect "balloon commands to batch while it is paused" "$(commands batch "$mark")" -eq 0
lab_virsh resume batch
wait_for 20 has_actual batch "${STORY_MIB[batch]}" || true
expect "it has its ceiling when it goes on" "$(guest_actual batch)" -eq "${STORY_MIB[batch]}"

mark=$(log_mark)
tighten
wait_for 30 cut_begun batch "$mark" || true
expect "batch is asked again" "$(cuts batch "$mark")" -ge 1
mark=$(log_mark)
lab_virsh managedsave batch >/dev/null
expect "balloon commands to batch while it was saved" "$(commands batch "$mark")" -le 1
end_process "$(<"$LAB/batch.port.pid")" "$LAB"
mark=$(log_mark)
guest_start batch
wait_for 30 runs batch || true
wait_for 20 story_settled || true
guest web drop grow
expect_ceilings 40 again

guest_define bare 96
lab_virsh undefine bare >/dev/null
sed -i "s|<memballoon .*|<memballoon model='none'/>|" "$LAB/bare.xml"
lab_virsh define "$LAB/bare.xml" >/dev/null
lab_virsh start bare >/dev/null
wait_for 10 is_in_state bare "no balloon device" || true
expect "one without a balloon is shown to be so" "$(is_in_state bare "no balloon device" && echo 1 || echo 0)" -eq 1
lab_virsh destroy bare >/dev/null
lab_virsh undefine bare >/dev/null
daemon_end
finish
