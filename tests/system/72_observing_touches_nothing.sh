# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Mode observe through a squeeze that would have been reason to cut: no monitor command that changes
# anything, and every description as it was. The statistics of batch and web are on, so that there is
# something to decide on; those of spare are off, and stay so.
. "$(dirname "$0")/common.sh"

descriptions() {
	local name
	for name in $GUESTS; do
		lab_virsh dumpxml "$name"
		lab_virsh dumpxml "$name" --inactive
	done
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
daemon_end
changing_commands "$mark" | sort | uniq -c
expect "monitor commands that change anything" "$(changing_commands "$mark" | wc -l)" -eq 0
descriptions >"$LAB/after.xml"
diff "$LAB/before.xml" "$LAB/after.xml" || true
expect "descriptions are as they were" "$(cmp -s "$LAB/before.xml" "$LAB/after.xml" && echo 1 || echo 0)" -eq 1
guest web drop grow
finish
