# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# batch is destroyed in the middle of a cut, renamed (libvirt does that to a domain that is off
# only), started, and reset in the middle of another. Goes on with the guests of the case before.
. "$(dirname "$0")/common.sh"

# shows NAME: the VM of that UUID is listed by that name, and by no other.
shows() {
	[ "$(ctl status --format json | jq -r --arg u "$uuid" '[.vms[] | select(.uuid == $u) | .name] | join(" ")')" = "$1" ]
}
# lifted: the line of libvirtd's log in which batch was told all its memory since it was reset.
lifted() {
	balloon_commands "$mark" | awk -v all="${STORY_MIB[batch]}" '$3 == "batch" && $4 == all { print $1; exit }'
}
is_lifted() {
	[ -n "$(lifted)" ]
}
# first_cut LINE: when batch was cut first after that line, ms.
first_cut() {
	local when
	when=$(balloon_commands "$1" | awk -v all="${STORY_MIB[batch]}" '$3 == "batch" && $4 < all - 1 { print $2; exit }')
	[ -z "$when" ] || date -d "$when" +%s%3N
}

begin
uuid=$(lab_virsh domuuid batch)
mark=$(log_mark)
# All at once: what web grows by while batch dies is asked of spare, and that is right.
guest web grow 60 $((4 * STORY_RATE))
cut_begins batch "$mark"
guest_stop batch
wait_for 10 shows "" || true
expect "a guest that was destroyed is gone" "$(shows "" && echo 1 || echo 0)" -eq 1
# QEMU says that it is paused when it ends: in that moment spare may be asked, and has it back at once.
wait_for 5 has_actual spare "${STORY_MIB[spare]}" || true
expect "spare has its ceiling" "$(guest_actual spare)" -eq "${STORY_MIB[spare]}"
expect "web was asked for nothing" "$(cuts web "$mark")" -eq 0
guest web drop grow

# Room for a guest that counts in full until it is seen: what is asked now is asked by mistake.
daemon_configure 4096
daemon_reload
mark=$(log_mark)
lab_virsh domrename batch moved >/dev/null
lab_virsh start moved >/dev/null
wait_for 10 shows moved || true
expect "it is there under its new name" "$(shows moved && echo 1 || echo 0)" -eq 1
lab_virsh destroy moved >/dev/null
lab_virsh domrename moved batch >/dev/null
guest_start batch
guest_ready batch
wait_for 10 shows batch || true
expect "and under its old one again" "$(shows batch && echo 1 || echo 0)" -eq 1
expect "balloon commands below a guest's size while it booted" \
	$(($(cuts batch "$mark") + $(cuts spare "$mark") + $(cuts web "$mark"))) -eq 0
expect "it has all its memory" "$(guest_actual batch)" -eq "${STORY_MIB[batch]}"

wait_for 20 runs batch || true
story_fill
squeeze_pool
daemon_reload
mark=$(log_mark)
guest web grow 70 "$STORY_RATE"
cut_begins batch "$mark" || true
expect "it is cut again" "$(cuts batch "$mark")" -ge 1
mark=$(log_mark)
lab_virsh reset batch
wait_for 10 is_lifted || true
expect "its target is lifted when it reboots" "$(is_lifted && echo 1 || echo 0)" -eq 1
guest_ready batch
up=$(($(now_ms) - $(guest batch cut -d. -f1 /proc/uptime) * 1000))
guest batch cache "$STORY_BATCH_CACHE"
guest web grow 60 "$STORY_RATE" # whatever spare gave while batch counted in full
is_cut() {
	cut=$(first_cut "$(lifted)")
	[ -n "$cut" ]
}
wait_for 30 is_cut || true
expect "it is asked again" "$(is_cut && echo 1 || echo 0)" -eq 1
expect "and not before its kernel runs again, ms" $((${cut:-0} - up)) -ge 0
guest web drop grow
expect_ceilings 30 again
daemon_end
finish
