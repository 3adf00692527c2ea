# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# batch gets an agent: it reports what is active, and when memory is asked of batch it frees what it
# read once and never again, and nothing that it reads again and again; then the balloon takes it. It
# frees what it is asked, rests when there is nothing to do, and outlives a guest that is out of memory.
. "$(dirname "$0")/common.sh"

AGENT_HOT=24
begin
guest batch agent
guest batch groups hot stream old
# fill: the hot group has read its own twice, the others theirs once.
fill() {
	guest batch "echo 3 >/proc/sys/vm/drop_caches"
	guest batch within hot warm /dev/vda 0 $AGENT_HOT
	guest batch within hot warm /dev/vda 0 $AGENT_HOT
	guest batch within stream warm /dev/vda $AGENT_HOT 130
	guest batch within old warm /dev/vda $((AGENT_HOT + 130)) $((STORY_BATCH_CACHE - AGENT_HOT - 130))
}
fill

# agent_says FIELD: what ballastd knows of batch's agent.
agent_says() {
	ctl status --format json | jq -r --arg f "$1" '.vms[] | select(.name == "batch") | .agent[$f]'
}

# What it reported before it was filled has as much that is inactive.
reported() {
	[ "$(agent_says connected)" = true ] && [ "$(agent_mib active_file)" -ge $((AGENT_HOT - 4)) ] &&
		[ "$(agent_mib inactive_file)" -ge $((STORY_BATCH_CACHE - AGENT_HOT - 40)) ]
}

agent_mib() {
	echo $(($(agent_says "$1") / 1048576))
}

wait_for 20 reported || true
ctl status
expect "the agent is known" "$(agent_says connected)" = true
expect "it can free memory" "$(agent_says reclaims)" = true
expect "what was read again is active" "$(agent_mib active_file)" -ge $((AGENT_HOT - 4))
expect "what was read once is not" "$(agent_mib inactive_file)" -ge $((STORY_BATCH_CACHE - AGENT_HOT - 40))
before=$(guest batch group_stat hot workingset_refault_file)
mark=$(log_mark)
status=0
timeout 60 "$BUILD/ballastctl" -s "$LAB/ballastd.sock" reclaim --yes 64MiB || status=$?
ctl status
guest batch "cat /run/agent" || true
expect "all of it came" $status -eq 0
expect "batch was asked" "$(cuts batch "$mark")" -ge 1
# It has a second for it, and then the balloon takes what is left: how much that is, is the machine'"'"'s
# speed. That it frees all when it has the time is shown below.
expect "the agent freed some of it first" "$(agent_says freed)" -gt 0
guest batch within hot warm /dev/vda 0 $AGENT_HOT
expect "the hot group has nothing to read again" \
	$(($(guest batch group_stat hot workingset_refault_file) - before)) -le 64

# Nobody tells the host when an agent is started again.
greeted() {
	[ "$(grep -c "its agent is there" "$LAB/ballastd.log")" -gt "$1" ]
}
before=$(grep -c "its agent is there" "$LAB/ballastd.log")
guest batch "kill \$(cat /run/agent.pid)"
guest batch agent
wait_for 60 greeted "$before" || guest batch "cat /run/agent; ps" || true
expect "one that was started again is greeted again" "$(greeted "$before" && echo 1 || echo 0)" -eq 1
daemon_end

HELLO='
{"type":"hello","oldest":1,"newest":1}
'

# say SECONDS PATTERN TEXT: to the agent, in the host's place; up to a line with PATTERN.
say_to_agent() {
	"$CACHE/port" say "$LAB/batch.agent" "$1" "$2" "$HELLO$3"
}

DEADLINE_MS=20000
# agent_asked NUMBER KIB [MORE]: bytes that the agent says it freed, and why not all.
agent_asked() {
	say_to_agent 30 '"type":"done"' "{\"type\":\"reclaim\",\"id\":$1,\"bytes\":$(($2 * 1024)),\"deadline_ms\":$DEADLINE_MS${3:-}}
" | jq -r 'select(.type == "done") | "\(.bytes) \(.why // "all")"'
}

# frees NUMBER KIB: by memory.current of the three groups as much as it was asked, to 1 % or what a
# CPU keeps and a cluster; less only for a reason that shows. What it says is counted in pages of the
# lists: the kernel's own that go with them are not in it.
frees() {
	local came said why begin waited slack=$(($2 / 100 > 384 ? $2 / 100 : 384))
	came=$(guest batch current hot stream old)
	waited=$(guest batch waited hot stream old)
	begin=$(now_ms)
	read -r said why < <(agent_asked "$1" "$2")
	begin=$(($(now_ms) - begin))
	waited=$(($(guest batch waited hot stream old) - waited))
	came=$(((came - $(guest batch current hot stream old)) / 1024))
	said=$((said / 1024))
	say "asked for $2 KiB: $came came, $said said, '$why', cold left: $(cold_mib) MiB, groups waited $waited us, $begin ms"
	expect "asked for $2 KiB it frees no more" "$came" -le $(($2 + slack))
	[ "$why" != all ] || expect "asked for $2 KiB it frees that" "$came" -ge $(($2 - slack))
	[ "$why" = all ] || expect "asked for $2 KiB it tells what came ($why)" "$said" -ge $((came - 2 * slack))
	expect "asked for $2 KiB it tells no more than came" "$said" -le $((came + slack))
	case $why in
	all) ;;
	deadline) expect "its time was over, ms" $begin -ge $DEADLINE_MS ;;
	"nothing is inactive any more" | "the kernel finds nothing to free")
		expect "of what it may take so much is left, MiB" "$(cold_mib)" -le $COLD_LEFT
		;;
	"a group waits for memory") expect "groups waited, us" "$waited" -ge 1 ;;
	*) expect "a reason that may be" "'$why'" = "'none'" ;;
	esac
}

# cold_mib: what two of the groups have inactive by the kernel's own figures; the third is the hot one.
COLD_LEFT=8
cold_mib() {
	echo $((($(guest batch group_stat stream inactive_file) + $(guest batch group_stat old inactive_file)) / 1048576))
}

agent_status() {
	guest batch "grep $1: /proc/\$(cat /run/agent.pid)/status" | awk '{ print $2 }'
}

told() {
	grep -q '"type":"report"' "$LAB/agent.said"
}

"$CACHE/port" say "$LAB/batch.agent" 60 nothing "$HELLO" >"$LAB/agent.said" &
host=$!
expect "it tells a host that says hello" "$(wait_for 10 told && echo yes)" = yes
reports() {
	grep -c '"type":"report"' "$LAB/agent.said" || true
}
REST_S=4
before=$(guest batch agent_counts | paste -sd' ')
cpu=$(guest batch agent_cpu)
mark=$(reports)
sleep $REST_S
at_rest=$(($(reports) - mark))
cpu=$(($(guest batch agent_cpu) - cpu))
after=$(guest batch agent_counts | paste -sd' ')
expect "at rest it wakes twice a second at most" $((${after% *} - ${before% *})) -le $((2 * REST_S + 1))
expect "at rest it reads few files" $((${after#* } - ${before#* })) -le $((40 * REST_S))
# Emulated, on a machine that is busy, it takes some ten times what it does elsewhere.
expect "at rest it takes 40 ms of a second at most, us in all" $cpu -le $((REST_S * 40000))
# A group that reads more than it may have, again and again: it waits, and the kernel tells at once.
guest batch groups thrash
guest batch "echo 12M >/sys/fs/cgroup/thrash/memory.high"
guest batch reread thrash /dev/vda 300 32
sleep 1
mark=$(reports)
sleep $REST_S
pressed=$(($(reports) - mark))
guest batch drop thrash
guest batch "echo 32M >/sys/fs/cgroup/thrash/memory.reclaim 2>/dev/null; true"
expect "reports under pressure, more than one a second; at rest there were $at_rest" $pressed -gt $((REST_S + 1))
kill $host
wait $host || true
expect "all of it is locked, KiB" "$(agent_status VmLck)" -ge "$(agent_status VmRSS)"
expect "it is the last to be killed" "$(guest batch "cat /proc/\$(cat /run/agent.pid)/oom_score_adj")" = -1000
guest batch "sleep 300 >/dev/null 2>&1 </dev/null 3>&- & echo \$! >/sys/fs/cgroup/hot/cgroup.procs; echo \$! >/run/sleep.pid"
frees 1 98304
expect "the hot group is protected meanwhile" "$(guest batch "cat /sys/fs/cgroup/hot/memory.low")" -ge $(((AGENT_HOT - 4) * 1048576))
frees 2 1024
fill
frees 3 $((STORY_MIB[batch] * 1024 / 2))
fill
COLD_LEFT=$((STORY_BATCH_CACHE / 2)) # what is of the youngest generation is not cold
guest batch generations
expect "it tells that the kernel ages by generations" \
	"$(say_to_agent 10 '"can":.*"generations"' "" >/dev/null && echo yes)" = yes
frees 4 $((STORY_MIB[batch] * 1024 / 2))
expect "by generations too the hot group keeps what it has" \
	"$(guest batch current hot)" -ge $(((AGENT_HOT - 4) * 1048576))
guest batch "echo n >/sys/kernel/mm/lru_gen/enabled"

# With a swap, and files and memory that were touched once: anonymous memory goes only where it is asked.
guest batch swap 96
guest batch within old grow 48 400
wait_for 10 grown batch || true
guest batch within stream warm /dev/vda $AGENT_HOT 32
before=$(guest_value batch pswpout)
agent_asked 5 8192 >/dev/null
expect "asked for files it swaps nothing out" "$(guest_value batch pswpout)" -eq "$before"
guest batch forget
agent_asked 6 16384 ',"anon":true' >/dev/null
expect "asked for all it swaps out, pages" $(($(guest_value batch pswpout) - before)) -ge 1024
guest batch drop grow
guest batch swapoff /dev/zram0

# Its port is unplugged, and then there is one again.
printf '%s\n' "<channel type='unix'><source mode='bind' path='$LAB/batch.agent'/>" \
	"<target type='virtio' name='org.ballast.agent.0'/></channel>" >"$LAB/batch.channel.xml"
lab_virsh detach-device batch "$LAB/batch.channel.xml"
lab_virsh attach-device batch "$LAB/batch.channel.xml"
expect "it finds the port that was plugged in anew" \
	"$(say_to_agent 10 '"type":"hello"' "" >/dev/null && echo yes)" = yes

# Nearly all is used: it says so before anything is killed, and outlives what is.
expect "nothing was killed" "$(guest_value batch oom_kill)" = 0
for _ in 1 2 3 4; do
	more=$((($(guest_value batch MemAvailable) - $(guest_value batch MemTotal) / 32) / 1024))
	[ $more -gt 1 ] || break
	guest batch grow $more 400
	wait_for 10 grown batch
done
expect "it asks the host" "$(say_to_agent 10 '"need":[1-9]' "" >/dev/null && echo yes)" = yes
expect "before anything is killed" "$(guest_value batch oom_kill)" = 0
guest batch grow 64 400
killed() {
	[ "$(guest_value batch oom_kill)" -gt 0 ]
}
expect "something is killed" "$(wait_for 20 killed && echo yes)" = yes
expect "and not the agent" "$(guest batch "kill -0 \$(cat /run/agent.pid) && echo yes")" = yes
guest batch drop grow
expect "the agent is small" "$(guest batch "grep -h ^Rss: /proc/\$(cat /run/agent.pid)/smaps_rollup" | awk '{ print $2 }')" -le 1024

guest batch "kill \$(cat /run/agent.pid)"
guest batch drop sleep
expect "what it protected is as it was" "$(guest batch "cat /sys/fs/cgroup/*/memory.low" | sort -u)" = 0
finish
