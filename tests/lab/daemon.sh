# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# ballastd in a lab: inside its mount namespace, with socket, run directory, log and recording in its
# folder. Needs lib.sh, lab.sh, guests.sh.

# What tests/lab/demo.conf says, in MiB and percent.
WM_LOW=40
FLOOR_PERCENT=25
SLACK=90

# daemon_configure POOL_MIB: writes the demonstration's configuration for a pool of that size.
daemon_configure() {
	sed "s/@POOL@/$1/; s/@SLACK@/$SLACK/" "$ROOT/tests/lab/demo.conf" >"$LAB/ballastd.conf"
	POOL=$1
	echo "$POOL" >"$LAB/pool"
}

# daemon_start [OPTION...]: returns when it answers. Forced: what moves balloons elsewhere on this
# machine, the fakes of unit tests among them, does not move those of the lab.
daemon_start() {
	[ -x "$BUILD/ballastd" ] || die "no ballastd in $BUILD: ./dev build"
	setsid nsenter -m -r -w -t "$(<"$LAB/libvirtd.pid")" "$BUILD/ballastd" --connect qemu:///system \
		--config "$LAB/ballastd.conf" --socket "$LAB/ballastd.sock" --run-dir "$LAB/daemon" --force "$@" \
		>>"$LAB/ballastd.log" 2>&1 </dev/null &
	echo $! >"$LAB/daemon.pid"
	wait_for 15 daemon_answers || {
		tail -n 20 "$LAB/ballastd.log" >&2
		warn "ballastd does not answer"
		return 1
	}
}

daemon_answers() {
	ctl status >/dev/null 2>&1
}

# daemon_end [SIGNAL]: by its own way out, or by the signal given; waits for it.
daemon_end() {
	local pid
	pid=$(<"$LAB/daemon.pid")
	kill "-${1:-TERM}" "$pid" 2>/dev/null || true
	wait_for 10 is_gone "$pid" "$LAB" || {
		warn "ballastd does not end"
		return 1
	}
	rm -f "$LAB/daemon.pid"
}

ctl() {
	"$BUILD/ballastctl" -s "$LAB/ballastd.sock" "$@"
}

# pool_free: what is left of the pool, from the QEMU processes' own figures.
pool_free() {
	local name free
	free=$(<"$LAB/pool")
	for name in $GUESTS; do
		free=$((free - $(guest_cost "$name")))
	done
	echo "$free"
}
