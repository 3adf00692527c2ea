# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# ./dev run --keep leaves its lab up when it exits, and ./dev run --down DIR ends it: here with one
# small guest and a ballastd, in a lab of its own.
. "$(dirname "$0")/common.sh"

KEPT=$LAB/kept
processes() {
	local process
	for process in /proc/[0-9]*; do
		is_ours "${process#/proc/}" "$KEPT" && echo "${process#/proc/}"
	done
	true
}

trap 'lab_open "$KEPT"; lab_down' EXIT
(
	trap - EXIT
	KEEP=yes
	lab_trap
	lab_up "$KEPT"
	guest_define small 96
	guest_start small
	daemon_configure 4096
	daemon_start
)
expect "what is up: libvirtd, QEMU, the port's helper, ballastd" "$(processes | wc -l)" -ge 4
expect "its daemon answers" "$( (lab_open "$KEPT" && daemon_answers) && echo 1 || echo 0)" -eq 1
BALLAST_BUILD=$BUILD "$ROOT/dev" run --down "$KEPT"
expect "processes that are left" "$(processes | wc -l)" -eq 0
expect "its folder is gone" "$([ -e "$KEPT" ] && echo 1 || echo 0)" -eq 0
expect "mounts that are left" "$(grep -c "$KEPT" /proc/self/mountinfo || true)" -eq 0
expect "the other lab is up" "$(lab_answers && echo 1 || echo 0)" -eq 1
status=0
"$ROOT/dev" run --down "$KEPT" 2>/dev/null || status=$?
expect "to end it twice is an error" "$status" -eq 1
trap - EXIT
finish
