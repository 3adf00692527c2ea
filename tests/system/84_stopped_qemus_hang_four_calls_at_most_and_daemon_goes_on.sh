# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Six QEMUs: three are stopped at once, then all. How many calls hang, libvirtd's own count of its
# workers says. Three of them are small and need not boot for that.
. "$(dirname "$0")/common.sh"

STILL="still1 still2 still3"
MOST=4

# hung: workers of libvirtd that are busy; one that only now works is not so the second time.
hung() {
	local first second
	first=$(busy_workers)
	sleep 0.3
	second=$(busy_workers)
	echo $((first < second ? first : second))
}
busy_workers() {
	virt-admin -c "libvirtd:///system?socket=$LAB/run/libvirt/libvirt-admin-sock" \
		server-threadpool-info libvirtd | awk '/^nWorkers/ { n = $3 } /^freeWorkers/ { f = $3 } END { print n - f }'
}
signal() {
	local sig=$1 name
	shift
	for name in "$@"; do
		kill "-$sig" "$(guest_pid "$name")"
	done
}
# not_answering NUMBER: so many VMs are shown so.
not_answering() {
	[ "$(ctl status --format json | jq '[.vms[] | select(.answering | not)] | length')" -ge "$1" ]
}
all_sampled() {
	[ "$(ctl status --format json | jq '[.vms[] | select(.answering) | .name] | length')" = 6 ] &&
		[ "$(vm web samples)" -gt "$web" ] && [ "$(vm still3 samples)" -gt "$still" ]
}
listed() {
	[ "$(ctl status --format json | jq '[.vms[] | select(.samples >= 2)] | length')" = 6 ]
}

daemon_configure 4096
for name in $STILL; do
	guest_define "$name" 96
	lab_virsh start "$name" >/dev/null
done
# shellcheck disable=SC2086 # names
trap 'signal CONT $GUESTS $STILL' EXIT
daemon_start
wait_for 20 listed
daemon=$(<"$LAB/daemon.pid")

signal STOP batch still1 still2
wait_for 20 not_answering 3 || true
expect "three are shown as not answering" "$(not_answering 3 && echo 1 || echo 0)" -eq 1
expect "calls that hang in libvirtd" "$(hung)" -le $MOST
web=$(vm web samples)
sleep 3
expect "web's samples go on" "$(vm web samples)" -gt "$web"

signal STOP web spare still3
wait_for 20 not_answering $MOST || true
sleep 3
expect "all stopped: calls that hang in libvirtd" "$(hung)" -le $MOST
begin=$(now_ms)
ctl status >/dev/null
ctl plan 64MiB >/dev/null
expect "it answers meanwhile, ms" $(($(now_ms) - begin)) -le 2000
expect "libvirtd answers others meanwhile" "$(lab_virsh list --name | grep -c .)" -eq 6
web=$(vm web samples)
still=$(vm still3 samples)

# shellcheck disable=SC2086 # names
signal CONT $GUESTS $STILL
trap - EXIT
wait_for 30 all_sampled || true
expect "all are sampled again" "$(all_sampled && echo 1 || echo 0)" -eq 1
expect "it is the same daemon" "$(is_ours "$daemon" "$LAB" && echo 1 || echo 0)" -eq 1
daemon_end
for name in $STILL; do
	lab_virsh destroy "$name" >/dev/null
	lab_virsh undefine "$name" >/dev/null
done
finish
