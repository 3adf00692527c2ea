# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What sits at the agents' ports is hostile: it answers what was not asked, tells what cannot be, sends
# half lines and never reads; then all three flood. What is sampled and what the daemon costs, in equal
# windows before and meanwhile.
. "$(dirname "$0")/common.sh"

WINDOW=4
# What a second may bring (hv/agent_channel.h), and what sockets and queues on the way hold.
BYTES=65536
ON_THE_WAY=524288
HELLO='{"type":"hello","oldest":1,"newest":1,"can":["reclaim"]}'
REPORT='{"type":"report","active_anon":0,"inactive_anon":0,"active_file":0,"inactive_file":209715200,"free":0}'

# now: the daemon's time in us, its ticks, samples of each guest; its CPU time in hundredths; bytes that
# each port took.
now() {
	ctl status --format json | jq -r '[.now_us, .ticks] + [.vms | sort_by(.name)[] | .samples] | @tsv'
	sed 's/.*) //' "/proc/$daemon/stat" | awk '{ print $12 + $13 }'
}

# window: ticks and samples of each guest in a thousand seconds; the daemon's CPU time.
window() {
	local from to i
	read -r -d '' -a from < <(now) || true
	sleep $WINDOW
	read -r -d '' -a to < <(now) || true
	for i in 1 2 3 4; do
		echo $(((to[i] - from[i]) * 1000000000 / (to[0] - from[0])))
	done
	echo $((to[5] - from[5]))
}

resident() {
	awk '/^VmRSS:/ { print $2 }' "/proc/$daemon/status"
}

# sent NAME: bytes of its flood that the port took.
sent() {
	guest "$1" "awk '/^wchar/ { print \$2 }' /proc/\$(cat /run/flood.pid)/io"
}

fault_of() {
	ctl status --format json | jq -r --arg n "$1" '.vms[] | select(.name == $n) | .agent.fault'
}

has_fault() {
	[ "$(fault_of "$1")" = "$2" ]
}

# expect_fault FAULT TEXT: batch's agent says hello and that.
expect_fault() {
	guest batch "printf '%s\\n' '$HELLO' '$2' >\$(agent_port)"
	wait_for 3 has_fault batch "$1" || true
	expect "$2: the fault is shown" "$(fault_of batch | tr ' ' _)" = "${1// /_}"
}

[ ! -e "$LAB/daemon.pid" ] || daemon_end
daemon_configure 4096
# Many samples in a short window.
printf '[times]\nvm = 200ms\n' >>"$LAB/ballastd.conf"
daemon_start
daemon=$(<"$LAB/daemon.pid")
wait_for 20 sampling
mapfile -t quiet < <(window)
before=$(resident)

expect_fault "answers what was not asked" '{"type":"done","id":99,"bytes":1}'
expect_fault active_file '{"type":"report","active_file":9223372036854775808}'
expect_fault workingset '{"type":"report","workingset":-1}'
expect_fault "no JSON object" '{"type":"report","floor'

mark=$(log_mark)
never_reads="{ printf '%s\\n' '$HELLO' '$REPORT'; exec sleep 60; } <>\$(agent_port) >&0 2>&1 3>&-"
guest batch "$never_reads & echo \$! >/run/deaf.pid"
status=0
timeout 20 "$BUILD/ballastctl" -s "$LAB/ballastd.sock" reclaim --yes 32MiB || status=$?
expect "what was asked came, though the agent never reads" $status -eq 0
expect "batch was asked" "$(cuts batch "$mark")" -ge 1
expect "who never reads is shown" "$(fault_of batch | tr ' ' _)" = gives_no_answer_in_time
guest batch drop deaf

guest batch flood reports
guest spare flood noise
guest web flood digits
sleep 1
declare -A taken
for name in $GUESTS; do
	taken[$name]=$(sent "$name")
done
mapfile -t flooded < <(window)
for name in $GUESTS; do
	expect "bytes that $name's port took" $(($(sent "$name") - taken[$name])) -le $(((WINDOW + 3) * BYTES + ON_THE_WAY))
	guest "$name" drop flood
done
for i in 0 1 2 3; do
	expect "ticks, or samples of a guest, in 1000 s meanwhile; ${quiet[i]} before" \
		"${flooded[i]}" -ge $((quiet[i] * 9 / 10))
	expect "and before" "${quiet[i]}" -ge 900
done
expect "CPU time meanwhile, ${quiet[4]} hundredths before" "${flooded[4]}" -le $((quiet[4] + WINDOW * 5))
expect "resident KiB meanwhile, $before before" "$(resident)" -le $((before + 2048))
expect "floods that are shown" "$(ctl status | grep -c 'fault: sends more than is read')" -eq 3
daemon_end
finish
