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
guest batch "echo 3 >/proc/sys/vm/drop_caches"
guest batch within hot warm /dev/vda 0 $AGENT_HOT
guest batch within hot warm /dev/vda 0 $AGENT_HOT
guest batch within stream warm /dev/vda $AGENT_HOT 130
guest batch within old warm /dev/vda $((AGENT_HOT + 130)) $((STORY_BATCH_CACHE - AGENT_HOT - 130))

# agent_says FIELD: what ballastd knows of batch's agent.
agent_says() {
	ctl status --format json | jq -r --arg f "$1" '.vms[] | select(.name == "batch") | .agent[$f]'
}

reported() {
	[ "$(agent_says connected)" = true ] &&
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
expect "the agent freed some of it first" "$(agent_mib freed)" -ge 8
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
wait_for 30 greeted "$before" || true
expect "one that was started again is greeted again" "$(greeted "$before" && echo 1 || echo 0)" -eq 1
daemon_end

HELLO='
{"type":"hello","oldest":1,"newest":1}
'

# say SECONDS PATTERN TEXT: to the agent, in the host's place; up to a line with PATTERN.
say_to_agent() {
	"$CACHE/port" say "$LAB/batch.agent" "$1" "$2" "$HELLO$3"
}

# agent_asked NUMBER KIB: bytes that the agent says it freed, and why not all.
agent_asked() {
	say_to_agent 30 '"type":"done"' "{\"type\":\"reclaim\",\"id\":$1,\"bytes\":$(($2 * 1024)),\"deadline_ms\":20000}
" | jq -r 'select(.type == "done") | "\(.bytes) \(.why // "all")"'
}

# frees NUMBER KIB: by memory.current of the three groups as much as it was asked, to 1 % or what a
# CPU keeps and a cluster; less only for a reason. What it says is counted in pages of the lists:
# the kernel's own that go with them are not in it.
frees() {
	local came said why slack=$(($2 / 100 > 384 ? $2 / 100 : 384))
	came=$(guest batch current hot stream old)
	read -r said why < <(agent_asked "$1" "$2")
	came=$(((came - $(guest batch current hot stream old)) / 1024))
	said=$((said / 1024))
	expect "asked for $2 KiB it frees no more" "$came" -le $(($2 + slack))
	[ "$why" != all ] || expect "asked for $2 KiB it frees that" "$came" -ge $(($2 - slack))
	[ "$why" = all ] || expect "asked for $2 KiB it tells what came ($why)" "$said" -ge $((came - 2 * slack))
	expect "asked for $2 KiB it tells no more than came" "$said" -le $((came + slack))
}

told() {
	grep -q '"type":"report"' "$LAB/agent.said"
}

"$CACHE/port" say "$LAB/batch.agent" 30 nothing "$HELLO" >"$LAB/agent.said" &
host=$!
expect "it tells a host that says hello" "$(wait_for 10 told && echo yes)" = yes
before=$(guest batch agent_counts | paste -sd' ')
sleep 2
after=$(guest batch agent_counts | paste -sd' ')
kill $host
wait $host || true
expect "at rest it wakes twice a second at most" $((${after% *} - ${before% *})) -le 5
expect "at rest it reads few files" $((${after#* } - ${before#* })) -le 80
guest batch "sleep 300 >/dev/null 2>&1 </dev/null 3>&- & echo \$! >/sys/fs/cgroup/hot/cgroup.procs; echo \$! >/run/sleep.pid"
frees 1 98304
expect "the hot group is protected meanwhile" "$(guest batch "cat /sys/fs/cgroup/hot/memory.low")" -ge $(((AGENT_HOT - 4) * 1048576))
frees 2 1024
guest batch generations
expect "it tells that the kernel ages by generations" \
	"$(say_to_agent 10 '"can":.*"generations"' "" >/dev/null && echo yes)" = yes
frees 3 $((STORY_MIB[batch] * 1024 / 2))
expect "by generations too the hot group keeps what it has" \
	"$(guest batch current hot)" -ge $(((AGENT_HOT - 4) * 1048576))
guest batch "echo n >/sys/kernel/mm/lru_gen/enabled"

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
