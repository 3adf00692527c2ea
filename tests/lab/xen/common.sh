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

# create NAME [KERNEL ARGUMENT]
create() {
	cat >"/run/$1.cfg" <<-EOF
		name="$1"
		type="pv"
		kernel="/boot/vmlinux"
		ramdisk="/boot/guest.cpio"
		memory=192
		maxmem=192
		vcpus=1
		extra="console=hvc0 rdinit=/init quiet mitigations=off ${2:-}"
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

uuid_of() { xenstore-read "$D/$(id_of "$1")/vm" | sed 's,.*/,,'; }
# target NAME: what it is told. key NAME KEY: what is noted of it.
target() { xenstore-read "$D/$(id_of "$1")/memory/target"; }
key() { xenstore-read "$OWN/$(uuid_of "$1")/$2" 2>/dev/null; }
id_of() { cat "/run/$1.id"; }
tell() { xenstore-write "$D/$(id_of "$1")/lab/cmd" "$2"; }
report() { xenstore-read "$D/$(id_of "$1")/lab/report" 2>/dev/null; }
reports() { [ -n "$(report "$1")" ]; }
tot() { probe domains | awk -v id="$(id_of "$1")" '$1 == id { print $2 }'; }
max() { probe domains | awk -v id="$(id_of "$1")" '$1 == id { print $3 }'; }
has() { near "$(tot "$1")" "$2"; }
near() { [ $(($1 - $2)) -le "$MIB" ] && [ $(($2 - $1)) -le "$MIB" ]; }

# --- ballastd

# configure POOL_MIB: with DOM0_MIN; guests are sampled every VM_TIME.
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
		vm = ${VM_TIME:-1s}
		[xen]
		dom0-min = ${DOM0_MIN:-none}
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
stop() {
	kill "$DAEMON"
	wait "$DAEMON"
}
restart() {
	stop
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

# says NAME FIELD: what ballastd knows of a guest, its agent included.
says() {
	ctl status --format json | sed 's/[,{}]/\n/g' |
		sed -n 's/^ *"\([a-z_]*\)": *"\{0,1\}\([^"]*[^" ]\)"\{0,1\} *$/\1 \2/p' |
		awk -v n="$1" -v f="$2" '
			$1 == "name" { on = $2 == n }
			on && $1 == f { sub(/^[^ ]* /, ""); print; exit }' |
		sed 's/^true$/1/;s/^false$/0/'
}

# window SECONDS: SAMPLES of web in a hundred seconds, and LOAD, the per cent of a CPU that ballastd
# takes.
window() {
	SINCE=$(hundredths)
	SAMPLES=$(says web samples)
	LOAD=$(ticks)
	sleep "$1"
	SAMPLES=$(($(says web samples) - SAMPLES))
	LOAD=$(($(ticks) - LOAD))
	SINCE=$(($(hundredths) - SINCE))
	SAMPLES=$((SAMPLES * 10000 / SINCE))
	LOAD=$((LOAD * 100 / SINCE))
}
ticks() { sed 's/.*) //' "/proc/$DAEMON/stat" | awk '{ print $12 + $13 }'; }

# contract: its suite, of the backend alone, on guests that it knows as web and db.
contract() {
	xl rename batch db
	CK_DEFAULT_TIMEOUT=60 contract-xen 1 >/run/contract.log 2>&1
	status=$?
	xl rename db batch
	grep '^not ok' /run/contract.log
	return $status
}

# relay_begin: what ballastd may speak with in the place of xenstored, and can lose.
relay_begin() {
	probe relay /run/relay &
	RELAY=$!
	wait_for 10 test -S /run/relay
}
relay_end() {
	kill -9 "$RELAY"
	wait "$RELAY" 2>/dev/null
	rm /run/relay
}

# --- what cases wait for

seen() { shows batch running && shows web running; }
settled() { [ "$(free)" -ge 62 ] && [ "$(free)" -le 66 ]; }
full() { has batch "$FULL" && has web "$FULL"; }
hogging() { report batch | grep -q "hogs 110"; }
given() { [ "$(free)" -ge 62 ]; }
# It has read what it was told to, and its agent has reported.
filled() {
	[ -n "$(says web inactive_file)" ] &&
		[ "$(report web | sed 's/.*free \([0-9]*\) hogs.*/\1/')" -le $((20 * MIB)) ]
}
# Its cap follows what it gave.
capped() { [ "$(max "$1")" -le $(($(tot "$1") + 2 * MIB)) ]; }
told_less() { [ "$(target batch)" -lt "$FULL" ]; }
# batch is told something else than GOAL: ANEW.
told_anew() {
	ANEW=$(target batch)
	[ "$ANEW" != "$GOAL" ]
}
# stands MIB: batch is told nothing else for a second; a nudge is a page beside.
stands() {
	UNTIL=$(($(hundredths) + 100))
	while [ "$(hundredths)" -lt $UNTIL ]; do
		told=$(target batch)
		[ "$told" = $(($1 * MIB)) ] || [ "$told" = $(($1 * MIB - 4)) ] || {
			say "batch is told $told KiB, $((UNTIL - $(hundredths))) hundredths of a second before it may be"
			return 1
		}
	done
}
hundredths() { sed 's/\.//; s/ .*//' /proc/uptime; }
ceiling_is() { [ "$(says "$1" ceiling)" = $(($2 * MIB * 1024)) ]; }
knows_pool() { ctl plan 1MiB >/dev/null 2>&1; }
fault_is() { [ "$(says batch fault)" = "$1" ]; }
faulty() { [ "$(says batch faults)" -ge "$1" ]; }
has_key() { xenstore-exists "$D/$(id_of batch)/ballast/guest/$1"; }
lost() { ctl status | grep -q "not connected"; }
found() { ! lost; }
absent() { [ -z "$(state batch)" ]; }
reborn() { [ "$(xl domid web 2>/dev/null)" != "$OLD" ] && [ -n "$(xl domid web 2>/dev/null)" ]; }
