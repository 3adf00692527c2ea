# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=dash
# The cases of the Xen lab, in dom0: run in order on the same guests, one boot for all. Judged by
# the hypervisor (probe); what ballastd says is only compared with that. Each prints "RESULT PASS|FAIL
# NAME"; figures are KiB.
#
#   batch  192 MiB, soft limit 128 MiB     web   192 MiB, under its soft limit
#   mute   192 MiB, without balloon driver
#
# Of every line that begins with "verdict" a result is expected: see ../xen.sh.
. "$(dirname "$0")/common.sh"

# What batch is set to by hand while it is cut and given, MiB.
WORDS=${WORDS:-180 130 165 140}
echo 0 >/run/dom0.id

create batch
create web
create mute initcall_blacklist=balloon_init
for name in batch web mute; do
	wait_for 60 reports $name || say "$name does not report"
done
say "three guests are up"

# The backend alone, before a daemon is there.
contract
expect "the suite's exit status" $? -eq 0
expect "tests of the contract that passed" "$(grep -c '^ok ' /run/contract.log)" -ge 20
verdict xen_backend_passes_the_contract_on_the_hypervisor

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
wait_for 20 capped batch
expect "batch gave what was needed, no less" "$(tot batch)" -le $((153 * MIB))
expect "batch gave what was needed, no more" "$(tot batch)" -ge $((151 * MIB))
expect "web kept all" "$(tot web)" -ge $((FULL - MIB))
expect "mute has all" "$(tot mute)" -eq "$FULL"
expect "the pool is above low" "$(free)" -ge 30
expect "the pool is not above high" "$(free)" -le 65
expect "its cap follows what it gave" "$(max batch)" -le $(($(tot batch) + 2 * MIB))
verdict xen_guest_in_excess_gives_first_and_the_one_under_its_limit_keeps_all

# 40 MiB more, in a pause: nobody gives. Then batch has 24 of excess left; both give, by what they can.
ctl set batch --min 100MiB
ctl pause
reload 560
sleep 2
IN_PAUSE=$(tot batch)
ctl resume
wait_for 40 settled
wait_for 20 capped batch
wait_for 20 capped web
expect "batch gave all its excess" "$(tot batch)" -le $((129 * MIB))
expect "web gave in the second pass" "$(tot web)" -le $((188 * MIB))
expect "no more than needed of web" "$(tot web)" -ge $((170 * MIB))
expect "batch is not below its floor" "$(tot batch)" -ge $((FLOOR - MIB))
expect "the pool is above low" "$(free)" -ge 30
expect "the pool is not above high" "$(free)" -le 65
verdict xen_second_pass_follows_when_the_excess_is_gone

# On the same cut: what an operator reads and does.
expect "nobody gave in the pause" "$IN_PAUSE" -ge $((151 * MIB))
expect "a knob is a key of dom0's" "$(key batch min)" = 100MiB
expect "show says from where it is" "$(ctl show batch | grep -c "min .*100 MiB")" -ge 1
expect "plan names who would give" "$(ctl plan 8MiB | grep -c -e batch -e web)" -ge 1
expect "explain says why it gave" "$(ctl explain batch | grep -c MiB)" -ge 1
ctl set batch --min none
expect "a knob that is taken away is no key" "$(key batch min | wc -c)" -eq 0
ctl release web
wait_for 20 has web "$FULL"
expect "web that is released has all" "$(tot web)" -ge $((FULL - MIB))
verdict xen_ballastctl_sets_shows_plans_explains_pauses_and_releases_as_elsewhere

restart 800
wait_for 40 full
expect "batch has all again" "$(tot batch)" -ge $((FULL - MIB))
expect "web has all again" "$(tot web)" -ge $((FULL - MIB))
expect "batch's cap is where it was" "$(max batch)" -eq $((FULL + MIB))
verdict xen_memory_returns

# comes_to_the_same_end: what the first cut came to, batch gives now, and web nothing.
comes_to_the_same_end() {
	wait_for 40 has batch $((152 * MIB))
	wait_for 20 capped batch
	expect "batch gave what was needed" "$(tot batch)" -le $((153 * MIB))
	expect "and no more" "$(tot batch)" -ge $((151 * MIB))
	expect "web kept all" "$(tot web)" -ge $((FULL - MIB))
	expect "its cap follows what it gave" "$(max batch)" -le $(($(tot batch) + 2 * MIB))
}

# Killed in the middle of it: it adopts what it finds, and comes to the same end.
restart 600
wait_for 40 moved batch
kill -9 "$DAEMON"
wait "$DAEMON" 2>/dev/null
start
comes_to_the_same_end
expect "no claim is left" "$(probe host | cut -d' ' -f2)" -eq 0
verdict xen_daemon_killed_in_a_cut_adopts_and_comes_to_the_same_end

stop
ballastctl release --all --direct
expect "release without a daemon is done" $? -eq 0
wait_for 20 has batch "$FULL"
expect "batch has all" "$(tot batch)" -ge $((FULL - MIB))
expect "its cap is where it was" "$(max batch)" -eq $((FULL + MIB))
verdict xen_release_without_a_daemon_gives_all_back

# The connection breaks in the middle of a cut, while xenstored and the guests live on.
relay_begin
export XENSTORED_PATH=/run/relay
start
unset XENSTORED_PATH
wait_for 40 moved batch
relay_end
wait_for 20 lost
expect "it is told that the connection is lost" "$(ctl status | grep -c "not connected")" -eq 1
relay_begin
wait_for 40 found
comes_to_the_same_end
expect "what it had is noted" "$(key batch ceiling)" -eq "$FULL"
expect "no claim is left" "$(probe host | cut -d' ' -f2)" -eq 0
verdict xen_connection_lost_in_a_cut_comes_to_the_same_end

# Somebody else's word: each stands until the guest rests, in the middle of cuts and gifts.
OVERWRITTEN=0
for size in $WORDS; do
	reload $((POOL == 560 ? 800 : 560))
	usleep $((size * 2000))
	xl mem-set batch "$size"
	stands "$size" || OVERWRITTEN=$((OVERWRITTEN + 1))
done
expect "words that were overwritten within a second" "$OVERWRITTEN" -eq 0
verdict xen_mem_set_in_the_middle_of_cuts_and_gifts_stands

# And where it rests it is batch's ceiling.
reload 800
wait_for 20 has web "$FULL"
xl mem-set batch 120
wait_for 20 ceiling_is batch 120
expect "it is batch's ceiling" "$(($(says batch ceiling) / MIB / 1024))" -eq 120
sleep 2
expect "batch has what it was set to" "$(tot batch)" -le $((121 * MIB))
expect "nobody else gave" "$(tot web)" -ge $((FULL - MIB))
xl mem-set batch 192
wait_for 20 has batch "$FULL"
expect "batch has all again" "$(tot batch)" -ge $((FULL - MIB))
verdict xen_mem_set_by_somebody_else_is_noticed_and_respected

# It cannot give: it stands still, is told a page less and nothing else, and gives once it can.
tell batch "hog 110"
wait_for 20 hogging
restart 590
relay_end
wait_for 20 told_less
GOAL=$(target batch)
wait_for 20 told_anew
expect "batch is told a page less, and nothing else before" $((GOAL - ANEW)) -eq 4
STANDS=$(tot batch)
tell batch free
wait_for 40 given
expect "the pool is served in the end" "$(free)" -ge 62
expect "web gave no more than batch's part" "$(tot web)" -ge $((FLOOR - MIB))
say "batch stood at $STANDS, is at $(tot batch), web at $(tot web)"
expect "no guest has crashed" "$(xl list | grep -c -e batch -e web -e mute)" -eq 3
verdict xen_guest_that_frees_its_memory_late_is_nudged_and_gives

# It does to its agent's keys what it can. Judged by web's samples and what ballastd costs, in equal
# windows before and meanwhile.
VM_TIME=200ms
restart 800
wait_for 40 full
tell batch "hostile forge"
wait_for 20 fault_is "answers what was not asked"
expect "an answer to what another was asked" "$(says batch fault | tr ' ' _)" = answers_what_was_not_asked
window 3
QUIET_SAMPLES=$SAMPLES QUIET_LOAD=$LOAD
tell batch "hostile flood"
wait_for 20 faulty 20
expect "what it makes of a flood, in faults" "$(says batch faults)" -ge 20
window 3
say "samples of web in 100 s: $QUIET_SAMPLES, then $SAMPLES; ballastd takes $QUIET_LOAD %, then $LOAD %"
# They share one CPU, of which the flood takes what it gets.
expect "web is sampled half as often at least" $((SAMPLES * 2)) -ge "$QUIET_SAMPLES"
expect "ballastd takes a quarter of a CPU more at most" $((LOAD - QUIET_LOAD)) -le 25
tell batch "hostile remove"
wait_for 20 fault_is "removed the keys of its agent"
expect "keys that are removed" "$(says batch fault | tr ' ' _)" = removed_the_keys_of_its_agent
wait_for 20 has_key 3
expect "they are made again, and nothing is below them" "$(xenstore-list "$D/$(id_of batch)/ballast/guest/3" | wc -l)" -eq 0
expect "web has all" "$(tot web)" -ge $((FULL - MIB))
VM_TIME=
verdict xen_hostile_guest_is_told_and_costs_no_other_guest_its_samples

# Destroyed in the middle of it; then all of it is there without anybody giving.
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
expect "web is there again, once" "$(ctl status --format json | grep -c '"name": *"web"')" -eq 1
expect "with all it had" "$(tot web)" -ge $((FULL - MIB))
verdict xen_guest_that_reboots_is_adopted_anew

# web's agent frees what was read once, and then the balloon takes that.
wait_for 40 filled
expect "its agent is known" "$(says web connected)" -eq 1
expect "it can free memory" "$(says web reclaims)" -eq 1
timeout 60 ballastctl -s /run/ballast/ballastd.sock reclaim --yes 48MiB
expect "all of it came" "$?" -eq 0
expect "its agent freed what was not free" "$(says web freed)" -ge $((24 * MIB * 1024))
expect "web gave it" "$(tot web)" -le $((FULL - 47 * MIB))
expect "the agent made no fault" "$(says web faults)" -le 0
[ "$WRONG" = 0 ] || xenstore-ls "$D/$(id_of web)/ballast"
ctl status
verdict xen_agent_reports_over_xenstore_and_frees_before_the_balloon_takes

stop
for name in web mute; do
	xl destroy $name
done
start
wait_for 20 no_store
expect "no key of any guest is left" "$(xenstore-list "$OWN" 2>/dev/null | wc -l)" -eq 0
expect "no claim is left" "$(probe host | cut -d' ' -f2)" -eq 0
verdict xen_nothing_is_left_when_all_guests_have_gone

# dom0 itself, which nobody has asked for anything yet.
expect "dom0 was told nothing" "$(xenstore-read $D/0/memory/target 2>/dev/null | wc -c)" -eq 0
xl mem-set 0 500
wait_for 20 has dom0 $((500 * MIB))
DOM0_MIN=480MiB
restart 1000
wait_for 20 shows Domain-0 running
wait_for 20 knows_pool
timeout 60 ballastctl -s /run/ballast/ballastd.sock reclaim --yes 64MiB
expect "a part of it came" $? -eq 4
wait_for 20 has dom0 $((480 * MIB))
expect "dom0 gave down to its minimum" "$(tot dom0)" -le $((481 * MIB))
expect "and is told no less" "$(target dom0)" -ge $((480 * MIB))
verdict xen_dom0_gives_nothing_unless_it_has_a_minimum_and_keeps_that

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
exit $((FAILED > 0))
