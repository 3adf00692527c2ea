# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=dash
# The cases of the Xen lab, in dom0: run in order on the same guests, one boot for all. Judged by
# the hypervisor (probe); what ballastd says is only compared with that. Each prints "RESULT PASS|FAIL
# NAME"; figures are KiB.
#
#   batch  192 MiB, soft limit 128 MiB     web   192 MiB, under its soft limit
#   mute   192 MiB, without balloon driver
. "$(dirname "$0")/common.sh"

create batch
create web
create mute initcall_blacklist=balloon_init
for name in batch web mute; do
	wait_for 60 reports $name || say "$name does not report"
done
say "three guests are up"
configure 640
start
say "ballastd runs"
ctl status

wait_for 60 seen
wait_for 60 shows mute "no balloon driver"
expect "mute is flagged" "$(state mute | grep -c "no balloon driver")" -eq 1
expect "batch keeps all while there is enough" "$(tot batch)" -ge $((FULL - MIB))
expect "web keeps all while there is enough" "$(tot web)" -ge $((FULL - MIB))
verdict xen_guest_without_balloon_driver_is_flagged_and_the_others_are_seen

# 600 less 576: 24 MiB are free, 30 is low, 64 high: 40 are needed, of an excess of 64.
restart 600
wait_for 40 has batch $((152 * MIB))
sleep 2
expect "batch gave what was needed, no less" "$(tot batch)" -le $((153 * MIB))
expect "batch gave what was needed, no more" "$(tot batch)" -ge $((151 * MIB))
expect "web kept all" "$(tot web)" -ge $((FULL - MIB))
expect "mute has all" "$(tot mute)" -eq "$FULL"
expect "the pool is above low" "$(free)" -ge 30
expect "the pool is not above high" "$(free)" -le 65
expect "its cap follows what it gave" "$(max batch)" -le $(($(tot batch) + 2 * MIB))
verdict xen_guest_in_excess_gives_first_and_the_one_under_its_limit_keeps_all

# 40 MiB more: batch has 24 of excess left; then both give, by what they can.
restart 560
wait_for 40 settled
sleep 2
expect "batch gave all its excess" "$(tot batch)" -le $((129 * MIB))
expect "web gave in the second pass" "$(tot web)" -le $((188 * MIB))
expect "no more than needed of web" "$(tot web)" -ge $((170 * MIB))
expect "batch is not below its floor" "$(tot batch)" -ge $((FLOOR - MIB))
expect "the pool is above low" "$(free)" -ge 30
expect "the pool is not above high" "$(free)" -le 65
verdict xen_second_pass_follows_when_the_excess_is_gone

restart 800
wait_for 40 full
expect "batch has all again" "$(tot batch)" -ge $((FULL - MIB))
expect "web has all again" "$(tot web)" -ge $((FULL - MIB))
expect "batch's cap is where it was" "$(max batch)" -eq $((FULL + MIB))
verdict xen_memory_returns

# Killed in the middle of it: it adopts what it finds, and comes to the same end.
restart 600
wait_for 40 moved batch
kill -9 "$DAEMON"
wait "$DAEMON" 2>/dev/null
start
wait_for 40 has batch $((152 * MIB))
expect "batch gave what was needed" "$(tot batch)" -le $((153 * MIB))
expect "and no more" "$(tot batch)" -ge $((151 * MIB))
expect "web kept all" "$(tot web)" -ge $((FULL - MIB))
expect "its cap follows what it gave" "$(max batch)" -le $(($(tot batch) + 2 * MIB))
expect "no claim is left" "$(probe host | cut -d' ' -f2)" -eq 0
verdict xen_daemon_killed_in_a_cut_adopts_and_comes_to_the_same_end

# Somebody else's word: it is not fought. (What is found at start below a ceiling is our own cut,
# until it was seen to rest.)
sleep 5
xl mem-set batch 140
wait_for 20 has batch $((140 * MIB))
sleep 6
expect "batch has what it was set to" "$(tot batch)" -le $((141 * MIB))
expect "nobody else gave" "$(tot web)" -ge $((FULL - MIB))
reload 800
sleep 8
expect "it is batch's ceiling now" "$(tot batch)" -le $((141 * MIB))
xl mem-set batch 192
wait_for 20 has batch "$FULL"
expect "batch has all again" "$(tot batch)" -ge $((FULL - MIB))
verdict xen_mem_set_by_somebody_else_is_noticed_and_respected

# It cannot give: it stands still, and gives once it can, though nothing new is asked.
tell batch "hog 110"
wait_for 20 hogging
sleep 2
restart 590
sleep 8
stands=$(tot batch)
tell batch free
wait_for 40 given
expect "the pool is served in the end" "$(free)" -ge 62
expect "web gave no more than batch's part" "$(tot web)" -ge $((FLOOR - MIB))
say "batch stood at $stands, is at $(tot batch), web at $(tot web)"
expect "no guest has crashed" "$(xl list | grep -c -e batch -e web -e mute)" -eq 3
verdict xen_guest_that_frees_its_memory_late_is_nudged_and_gives

# Destroyed in the middle of it; then all of it is there without anybody giving.
restart 800
wait_for 40 full
restart 600
wait_for 40 moved batch
xl destroy batch
wait_for 20 absent
expect "it is gone" "$(ctl status | grep -c batch)" -eq 0
wait_for 20 no_keys "$(id_of batch)"
expect "nothing of it is in the store" "$(xenstore-list "$D" | grep -cx "$(id_of batch)")" -eq 0
wait_for 30 has web "$FULL"
expect "web has all" "$(tot web)" -ge $((FULL - MIB))
verdict xen_guest_destroyed_in_a_cut_leaves_nothing

# The same uuid under a new domid, with all its memory.
OLD=$(id_of web)
tell web reboot
wait_for 60 reborn
adopt web
wait_for 60 reports web
tell web "agent 16"
wait_for 60 shows web running
expect "web is there again" "$(ctl status | grep -c web)" -eq 1
expect "with all it had" "$(tot web)" -ge $((FULL - MIB))
verdict xen_guest_that_reboots_is_adopted_anew

# web's agent frees what was read once, and then the balloon takes that.
wait_for 40 filled
expect "its agent is known" "$(agent_says connected)" -eq 1
expect "it can free memory" "$(agent_says reclaims)" -eq 1
timeout 60 ballastctl -s /run/ballast/ballastd.sock reclaim --yes 48MiB
expect "all of it came" "$?" -eq 0
expect "its agent freed what was not free" "$(agent_says freed)" -ge $((24 * MIB * 1024))
expect "web gave it" "$(tot web)" -le $((FULL - 47 * MIB))
expect "the agent made no fault" "$(agent_says faults)" -le 0
ctl status
verdict xen_agent_reports_over_xenstore_and_frees_before_the_balloon_takes

kill "$DAEMON"
wait "$DAEMON"
for name in web mute; do
	xl destroy $name
done
start
wait_for 20 no_store
expect "no key of any guest is left" "$(xenstore-list "$OWN" 2>/dev/null | wc -l)" -eq 0
expect "no claim is left" "$(probe host | cut -d' ' -f2)" -eq 0
verdict xen_nothing_is_left_when_all_guests_have_gone

# With nobody else left who would miss what it had.
kill -9 "$(cat /run/xen/xenstored.pid)"
wait_for 20 lost
expect "it is told that xenstored is lost" "$(ctl status | grep -c "not connected")" -eq 1
xenstored --pid-file /run/xen/xenstored.pid
wait_for 20 xenstore-exists /
wait_for 40 found
expect "it is found again" "$(ctl status | grep -c "not connected")" -eq 0
kill "$DAEMON"
wait "$DAEMON"
expect "ballastd ends well" "$?" -eq 0
verdict xen_xenstored_that_is_killed_is_told_and_found_again
exit "$FAILED"
