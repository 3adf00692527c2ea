# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# A lab: a private libvirtd with real QEMU guests, in a folder of its own ($LAB) and in a mount
# namespace of its own, so a libvirt that is already there is never touched and several labs can be
# up side by side. Needs lib.sh, image.sh and root.
#
#   lab_up [DIR]     brings libvirtd up; sets LAB and LAB_URI; lab_down has to follow, whatever happens
#   lab_open DIR     sets LAB and LAB_URI of a lab that is up
#   lab_down         ends what the lab started, by pid, and removes its folder
#   lab_virsh ...    virsh on the lab's libvirtd
#
# For lab_up: LAB_HOST_UUID makes it another host than the others, LAB_TIMEOUT lets libvirtd end by
# itself after so many idle seconds.
#
# In $LAB: run/ etc/ lib/ cache/ log/ stand in for /run /etc/libvirt /var/lib/libvirt and so on;
# libvirtd.log has the monitor's commands; NAME.* belong to the guest NAME; daemon.* to ballastd.

lab_open() {
	LAB=$(cd "$1" && pwd)
	LAB_URI="qemu+unix:///system?socket=$LAB/run/libvirt/libvirt-sock"
}

lab_up() {
	local dir=${1:-}
	install_for lab
	lab_users
	if [ -z "$dir" ]; then
		dir=$(mktemp -d "${TMPDIR:-/tmp}/ballast-lab.XXXXXX")
	elif [ -e "$dir/run" ]; then
		die "$dir is in use"
	fi
	mkdir -p "$dir" "$CACHE"
	lab_open "$dir"
	mkdir -p "$LAB"/{run/lock,etc,lib,cache,log}
	touch "$LAB/.ballast-lab"
	image_tool "$ROOT/tests/lab/port.c" "$CACHE/port"
	# Every guest reads the same file: sparse, so it costs the disk nothing.
	truncate -s 512M "$LAB/data.img"
	lab_configure
	# What libvirt found out about QEMU takes it five seconds each time; it checks what it finds.
	[ ! -d "$CACHE/libvirt" ] || cp -r "$CACHE/libvirt/." "$LAB/cache/"
	lab_start_libvirtd
	lab_virsh capabilities >/dev/null || die "libvirtd does not answer: see $LAB/libvirtd.log"
	mkdir -p "$CACHE/libvirt"
	cp -r "$LAB/cache/." "$CACHE/libvirt/"
}

# libvirtd does not start without these, even when QEMU runs as root.
lab_users() {
	getent group kvm >/dev/null || groupadd --system kvm
	getent group libvirt-qemu >/dev/null || groupadd --system libvirt-qemu
	getent passwd libvirt-qemu >/dev/null ||
		useradd --system --gid kvm --no-create-home --home-dir /var/lib/libvirt \
			--shell /usr/sbin/nologin libvirt-qemu
}

lab_configure() {
	# No cgroup controllers: libvirt would make groups at the top of the machine's tree.
	cat >"$LAB/etc/qemu.conf" <<-EOF
		user = "root"
		group = "root"
		dynamic_ownership = 0
		remember_owner = 0
		security_driver = "none"
		security_default_confined = 0
		namespaces = [ ]
		cgroup_controllers = [ ]
		stdio_handler = "file"
	EOF
	# The monitor's log shows every balloon command; "Entering monitor" says whose monitor it is.
	cat >"$LAB/etc/libvirtd.conf" <<-EOF
		auth_unix_ro = "none"
		auth_unix_rw = "none"
		unix_sock_rw_perms = "0700"
		log_level = 3
		log_filters = "1:qemu.qemu_monitor 1:qemu.qemu_domain"
		log_outputs = "1:file:$LAB/libvirtd.log"
		keepalive_interval = -1
	EOF
	[ -z "${LAB_HOST_UUID:-}" ] || echo "host_uuid = \"$LAB_HOST_UUID\"" >>"$LAB/etc/libvirtd.conf"
}

lab_start_libvirtd() {
	# shellcheck disable=SC2016 # expanded inside
	LAB=$LAB TIMEOUT=${LAB_TIMEOUT:-} unshare -m bash -euc '
		mount --make-rprivate /
		bound() {
			mkdir -p "$2"
			mount --bind "$LAB/$1" "$2"
		}
		bound etc /etc/libvirt
		bound lib /var/lib/libvirt
		bound cache /var/cache/libvirt
		bound log /var/log/libvirt
		bound run /run
		exec setsid /usr/sbin/libvirtd --daemon --config /etc/libvirt/libvirtd.conf \
			--pid-file "$LAB/libvirtd.pid" ${TIMEOUT:+--timeout "$TIMEOUT"}
	' >"$LAB/libvirtd.out" 2>&1 </dev/null || {
		cat "$LAB/libvirtd.out" >&2
		die "libvirtd does not start"
	}
	wait_for 20 test -S "$LAB/run/libvirt/libvirt-sock" || die "libvirtd has no socket: $LAB/libvirtd.log"
}

# lab_kill_libvirtd: ends it without a word; guests stay, and the namespace with them.
lab_kill_libvirtd() {
	local pid
	pid=$(<"$LAB/libvirtd.pid")
	kill -KILL "$pid"
	wait_for 5 is_gone "$pid" "$LAB"
}

# lab_restart_libvirtd GUEST: in the namespace that the guest's QEMU is in.
lab_restart_libvirtd() {
	local inside
	inside=$(guest_pid "$1")
	rm -f "$LAB/libvirtd.pid"
	nsenter -m -r -w -t "$inside" setsid /usr/sbin/libvirtd --daemon \
		--config /etc/libvirt/libvirtd.conf --pid-file "$LAB/libvirtd.pid" </dev/null
	wait_for 20 lab_answers || die "libvirtd does not come back: $LAB/libvirtd.log"
}

lab_answers() {
	lab_virsh list >/dev/null 2>&1
}

lab_virsh() {
	virsh -q -c "$LAB_URI" "$@"
}

# lab_down: also what a lab that came up only half has left. Never fails.
lab_down() {
	[ -n "${LAB:-}" ] && [ -f "$LAB/.ballast-lab" ] || return 0
	local file
	for file in "$LAB"/daemon.pid "$LAB"/*.port.pid "$LAB"/run/libvirt/qemu/*.pid "$LAB"/libvirtd.pid; do
		[ ! -s "$file" ] || end_process "$(<"$file")" "$LAB" || true
	done
	rm -rf --one-file-system "$LAB"
	LAB=
}

# lab_trap: lab_down at the end of this shell, also at ^C and on failure. With KEEP=yes it is left up.
lab_trap() {
	trap 'lab_at_exit' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

lab_at_exit() {
	local status=$?
	trap - EXIT
	trap '' INT TERM HUP
	if [ "${KEEP:-no}" = no ] || [ $status -ge 128 ]; then
		lab_down
	fi
	exit $status
}
