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

LOW=100
spare_is_limited() {
	[ "$(vm spare soft_limit)" = $((LOW * 1048576)) ]
}
both_told() {
	[ "$(last_target batch "$mark")" -lt "$ALL" ] && [ "$(last_target spare "$mark")" -lt "${STORY_MIB[spare]}" ]
} 2>/dev/null

# take: an operator asks for what batch and spare have over their limits; web has nothing that could be
# taken from it.
take() {
	mark=$(log_mark)
	timeout 40 "$BUILD/ballastctl" -s "$LAB/ballastd.sock" reclaim --yes 160MiB >/dev/null 2>&1 &
	reclaim=$!
	wait_for 30 both_told || true
	expect "batch and spare are told less than they had" "$(both_told && echo 1 || echo 0)" -eq 1
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
guest_set_limit spare $LOW
wait_for 10 spare_is_limited || true
take
daemon_end KILL
wait $reclaim || true
"$BUILD/ballastctl" -c "$LAB_URI" release --all --direct
expect_ceilings 10 "as it is released without the daemon"

story_fill
daemon_start
wait_for 20 sampling
take
ctl release --all
wait $reclaim || true
expect_ceilings 10 "as the daemon releases it"
daemon_end
lab_virsh memtune spare --soft-limit -1 --config
finish
