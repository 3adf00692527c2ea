# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# A guest that has nothing of ours, and Debian's qemu-guest-agent: what it has is read through that,
# and when memory is asked of it, its kernel is told to free what is inactive before the balloon
# takes it. Its channel for an agent of ours is added while it runs.
. "$(dirname "$0")/common.sh"

MIB=256
HOT=24
COLD=140
[ ! -e "$LAB/daemon.pid" ] || daemon_end

# What guest_define writes, with the agent's channel and image.
guest_define ga $MIB
lab_virsh undefine ga
initramfs=$(image_with_qga "$(image_initramfs "$(image_kernel)")")
sed -i -e "s,<initrd>.*</initrd>,<initrd>$initramfs</initrd>," \
	-e "s,org\.ballast\.agent\.0,org.qemu.guest_agent.0," \
	-e "s,<devices>,<metadata><b:memory xmlns:b='urn:ballast:memory:1' soft-limit='0' group='/ga' agent='qemu-ga'/></metadata>&," \
	"$LAB/ga.xml"
lab_virsh define "$LAB/ga.xml"
trap 'guest_stop ga; lab_virsh undefine ga' EXIT
guest_start ga
guest_ready ga
guest ga qga
guest ga warm /dev/vda 0 $HOT
guest ga warm /dev/vda 0 $HOT
guest ga warm /dev/vda $HOT $COLD

# agent_says FIELD: what ballastd knows of its agent.
agent_says() {
	ctl status --format json | jq -r --arg f "$1" '.vms[] | select(.name == "ga") | .agent[$f]'
}

agent_mib() {
	echo $(($(agent_says "$1") / 1048576))
}

reported() {
	[ "$(agent_says connected)" = true ] && [ "$(agent_says inactive_file)" -gt 0 ]
}

plugged() {
	lab_virsh dumpxml ga | grep -q "name='org.ballast.agent.0'"
}

# The pool is what all four cost, and more: nothing is asked but by hand.
cost=$(guest_cost ga)
for name in $GUESTS; do
	cost=$((cost + $(guest_cost "$name")))
done
daemon_configure $((cost + 2 * SLACK))
daemon_start
wait_for 20 reported || true
ctl status
expect "its agent is known" "$(agent_says connected)" = true
expect "it can free memory" "$(agent_says reclaims)" = true
expect "it is QEMU's" "$(agent_says software | cut -d ' ' -f 1)" = qemu-ga
expect "what was read again is active" "$(agent_mib active_file)" -ge $((HOT - 8))
expect "what was read once is not" "$(agent_mib inactive_file)" -ge $((COLD - 40))
expect "whose word that is, is shown" "$(ctl show ga | grep -c '^agent *qemu-ga  *metadata')" -eq 1
mark=$(log_mark)
status=0
timeout 40 "$BUILD/ballastctl" -s "$LAB/ballastd.sock" reclaim --group /ga --yes 64MiB || status=$?
expect "all of it came" $status -eq 0
expect "it was asked by its balloon" "$(balloon_commands "$mark" | awk '$3 == "ga"' | wc -l)" -ge 1
ctl status
# How much it frees in its second is the speed of an emulated guest.
expect "its agent freed memory first" "$(agent_mib freed)" -ge 1
expect "what is active is still there" "$(agent_mib active_file)" -ge $((HOT - 8))

ctl agent attach ga
expect "the channel is there" "$(plugged && echo yes)" = yes
expect "once" "$(ctl agent attach ga)" = "ga: it has the agent's port already"
expect "until its next start" "$(lab_virsh dumpxml ga --inactive | grep -c org.ballast.agent.0)" -eq 0
daemon_end
finish
