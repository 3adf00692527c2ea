# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# batch gets an agent: it reports what is active, and when memory is asked of batch it frees what it
# read once and never again, and nothing that it reads again and again; then the balloon takes it.
. "$(dirname "$0")/common.sh"

AGENT_HOT=24
begin
guest batch agent
guest batch groups hot stream
guest batch "echo 3 >/proc/sys/vm/drop_caches"
guest batch within hot warm /dev/vda 0 $AGENT_HOT
guest batch within hot warm /dev/vda 0 $AGENT_HOT
guest batch within stream warm /dev/vda $AGENT_HOT $((STORY_BATCH_CACHE - AGENT_HOT))

# agent_says FIELD: what ballastd knows of batch's agent.
agent_says() {
	ctl status --format json | jq -r --arg f "$1" '.vms[] | select(.name == "batch") | .agent[$f]'
}

reported() {
	[ "$(agent_says connected)" = true ] && [ "$(agent_says inactive_file)" -gt 0 ]
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
expect "the agent freed most of it" "$(agent_mib freed)" -ge 32
guest batch within hot warm /dev/vda 0 $AGENT_HOT
expect "the hot group has nothing to read again" \
	$(($(guest batch group_stat hot workingset_refault_file) - before)) -le 64
expect "the agent is small" "$(guest batch "grep -h ^Rss: /proc/\$(cat /run/agent.pid)/smaps_rollup" | awk '{ print $2 }')" -le 1024

# Nobody tells the host when an agent is started again.
greeted() {
	[ "$(grep -c "its agent is there" "$LAB/ballastd.log")" -gt "$1" ]
}
before=$(grep -c "its agent is there" "$LAB/ballastd.log")
guest batch "kill \$(cat /run/agent.pid)"
guest batch agent
wait_for 30 greeted "$before" || true
expect "one that was started again is greeted again" "$(greeted "$before" && echo 1 || echo 0)" -eq 1
guest batch "kill \$(cat /run/agent.pid)"
daemon_end
finish
