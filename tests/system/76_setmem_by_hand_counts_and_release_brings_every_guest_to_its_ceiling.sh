# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# During a squeeze somebody turns batch's balloon: up is asked back once and then left alone, down
# becomes its ceiling. Then release, by the daemon and without it. Goes on with the guests of case 74.
. "$(dirname "$0")/common.sh"

ALL=${STORY_MIB[batch]}
has_wished() {
	[ "$(vm batch ceiling)" -le $(((low + 1) * 1048576)) ]
}
asked_back() {
	[ "$(commands batch "$mark")" -ge 2 ]
}
is_contended() {
	[ "$(tail -n "+$said" "$LAB/ballastd.log" | grep -c 'batch .*somebody else moves its balloon')" -ge 1 ]
}

begin
squeeze 70
sleep 4 # rests where it was put
capped=$(guest_actual batch)
expect "batch was cut" "$capped" -lt "$ALL"

mark=$(log_mark)
said=$(($(wc -l <"$LAB/ballastd.log") + 1))
lab_virsh setmem batch "${ALL}MiB" --live
wait_for 20 asked_back || true
expect "what was raised by hand was asked back" "$(last_target batch "$mark")" -le "$capped"
lab_virsh setmem batch "${ALL}MiB" --live
wait_for 20 is_contended || true
expect "it is told that somebody else moves it" "$(is_contended && echo 1 || echo 0)" -eq 1
sleep 3
expect "balloon commands to batch: two by hand, one by ballastd" "$(commands batch "$mark")" -eq 3
expect "batch is left as it was put" "$(guest_actual batch)" -eq "$ALL"

low=$((STORY_LIMIT[batch] + 10))
lab_virsh setmem batch "${low}MiB" --live
wait_for 30 has_wished || true
expect "what was lowered by hand is its ceiling" "$(($(vm batch ceiling) / 1048576))" -le "$low"
ctl release --all
sleep 2
expect "and when all are released" "$(guest_actual batch)" -le "$low"
daemon_end
guest web drop grow

# Released without the daemon, which was killed in the middle; and then by it.
lab_virsh setmem batch "${ALL}MiB" --live
begin
mark=$(log_mark)
guest web grow 70 "$STORY_RATE"
wait_for 30 cut_begun batch "$mark"
daemon_end KILL
expect "batch is told less than it had" "$(last_target batch "$mark")" -lt "$ALL"
"$BUILD/ballastctl" -c "$LAB_URI" release --all --direct
wait_for 10 each_has_its_ceiling || true
for name in $GUESTS; do
	expect "$name has its ceiling, released without the daemon" "$(guest_actual "$name")" -eq "${STORY_MIB[$name]}"
done

guest batch cache "$STORY_BATCH_CACHE"
mark=$(log_mark)
daemon_start
wait_for 40 cut_begun batch "$mark" || true
expect "the daemon is there again, and cut batch" "$(cuts batch "$mark")" -ge 1
ctl release --all
wait_for 10 each_has_its_ceiling || true
for name in $GUESTS; do
	expect "$name has its ceiling, released by the daemon" "$(guest_actual "$name")" -eq "${STORY_MIB[$name]}"
done
daemon_end
guest web drop grow
finish
