# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=dash
# What the cases of the Xen lab share. Sizes are KiB unless the name says otherwise.

D=/local/domain
OWN=$D/0/ballast
MIB=1024
FULL=$((192 * MIB))
FLOOR=$((96 * MIB))
FAILED=0
WRONG=0

now() { cut -d. -f1 /proc/uptime; }
say() { echo "[$(cut -d' ' -f1 /proc/uptime)] $*"; }

# wait_for SECONDS COMMAND...
wait_for() {
	end=$(($(now) + $1))
	shift
	until "$@"; do
		[ "$(now)" -lt "$end" ] || return 1
		usleep 100000
	done
}

# expect WHAT A OPERATOR B
expect() {
	if test "${2:--1}" "$3" "$4"; then
		echo "  ok     $1 ($2)"
	else
		echo "  WRONG  $1: $2, expected $3 $4"
		WRONG=$((WRONG + 1))
	fi
}

# verdict NAME
verdict() {
	if [ "$WRONG" = 0 ]; then
		echo "RESULT PASS $1"
	else
		echo "RESULT FAIL $1"
		FAILED=$((FAILED + 1))
		probe domains
		tail -n 25 /run/ballastd.log
	fi
	WRONG=0
	say "$1"
}

# --- guests

# create NAME [KERNEL ARGUMENT]: sets ID_NAME
create() {
	cat >"/run/$1.cfg" <<-EOF
		name="$1"
		type="pv"
		kernel="/boot/vmlinux"
		ramdisk="/boot/guest.cpio"
		memory=192
		maxmem=192
		vcpus=1
		extra="console=hvc0 rdinit=/init quiet ${2:-}"
		on_poweroff="destroy"
		on_reboot="restart"
		on_crash="destroy"
	EOF
	xl -f create "/run/$1.cfg" >/dev/null
	adopt "$1"
}

# adopt NAME: the lab's own keys of the guest.
adopt() {
	id=$(xl domid "$1")
	echo "$id" >"/run/$1.id"
	probe share "$id" "$D/$id/lab" r
	probe share "$id" "$D/$id/lab/cmd" r
	probe share "$id" "$D/$id/lab/report" w
}

id_of() { cat "/run/$1.id"; }
tell() { xenstore-write "$D/$(id_of "$1")/lab/cmd" "$2"; }
report() { xenstore-read "$D/$(id_of "$1")/lab/report" 2>/dev/null; }
reports() { [ -n "$(report "$1")" ]; }
tot() { probe domains | awk -v id="$(id_of "$1")" '$1 == id { print $2 }'; }
max() { probe domains | awk -v id="$(id_of "$1")" '$1 == id { print $3 }'; }
has() { near "$(tot "$1")" "$2"; }
near() { [ $(($1 - $2)) -le "$MIB" ] && [ $(($2 - $1)) -le "$MIB" ]; }

# --- ballastd

# configure POOL_MIB
configure() {
	cat >/run/ballastd.conf <<-EOF
		[ballastd]
		mode = act
		[pool]
		size = $1MiB
		wm-min = 4MiB
		wm-low = 30MiB
		wm-high = 64MiB
		[vms]
		floor = 50%
		[pace]
		hold = 1s
		ask-deadline = 15s
		# An emulated dom0 on a busy machine is slow.
		[times]
		lane-deadline = 20s
		[rule batch]
		match-name = batch
		soft-limit = 128MiB
		[rule web]
		match-name = web
		soft-limit = 192MiB
	EOF
	POOL=$1
}

start() {
	ballastd --config /run/ballastd.conf --run-dir /run/ballast >>/run/ballastd.log 2>&1 &
	DAEMON=$!
	wait_for 20 answers
}

answers() { ctl status >/dev/null 2>&1; }
restart() {
	kill "$DAEMON"
	wait "$DAEMON"
	configure "$1"
	start
}
reload() {
	configure "$1"
	kill -HUP "$DAEMON"
}
moved() { [ "$(tot "$1")" -le $((FULL - 64)) ]; }
no_store() { [ -z "$(xenstore-list "$OWN" 2>/dev/null)" ]; }
no_keys() { ! xenstore-exists "$D/$1"; }
ctl() { ballastctl -s /run/ballast/ballastd.sock "$@"; }
state() { ctl status | awk -v n="$1" '$1 == n'; }
shows() { state "$1" | grep -q "$2"; }
# free: what is left of the pool, MiB
free() { probe domains | awk -v pool="$POOL" '$1 > 0 { sum += $2 } END { print pool - int(sum / 1024) }'; }

# agent_says FIELD: what ballastd knows of the one agent that there is; 0 or less: nothing.
agent_says() {
	ctl status --format json | sed 's/[,{}]/\n/g' |
		sed -n "s/^ *\"$1\": *//p" | sed 's/true/1/;s/false/0/' | tail -n 1
}

# --- what cases wait for

seen() { shows batch running && shows web running; }
settled() { [ "$(free)" -ge 62 ] && [ "$(free)" -le 66 ]; }
full() { has batch "$FULL" && has web "$FULL"; }
hogging() { report batch | grep -q "hogs 110"; }
given() { [ "$(free)" -ge 62 ]; }
# It has read what it was told to, and its agent has reported.
filled() {
	[ -n "$(agent_says inactive_file)" ] &&
		[ "$(report web | sed 's/.*free \([0-9]*\) hogs.*/\1/')" -le $((20 * MIB)) ]
}
lost() { ctl status | grep -q "not connected"; }
found() { ! lost; }
absent() { [ -z "$(state batch)" ]; }
reborn() { [ "$(xl domid web 2>/dev/null)" != "$OLD" ] && [ -n "$(xl domid web 2>/dev/null)" ]; }
