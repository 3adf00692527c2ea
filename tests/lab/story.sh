# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# The story of ./dev run, shared with the system tests: three guests, a squeeze, its end, and the
# verdict. The verdict reads libvirt and the QEMU processes and never asks ballastd. Sizes in MiB.
# Needs lib.sh, lab.sh, guests.sh, daemon.sh.

GUESTS="batch web spare"
# Sizes; batch reads files once (cold), web works on memory and stays under its limit, spare idles
# on what it has read and what it once used.
declare -A STORY_MIB=([batch]=384 [web]=512 [spare]=320)
declare -A STORY_LIMIT=([batch]=160 [web]=448)
STORY_BATCH_CACHE=240
STORY_SPARE_CACHE=110
STORY_SPARE_FREED=64
STORY_WEB_HOT=80
# How much web grows, and how fast: first what batch has in excess is enough, then it is not.
STORY_FIRST=100
STORY_SECOND=160
STORY_RATE=25
# What moves by itself in an idle guest is less than this.
STORY_NOISE=14

# story RECORDING: all of ./dev run.
story() {
	local recording=$1 status=0
	lab_trap
	say "bringing up a private libvirtd and three guests"
	lab_up
	story_define
	story_start
	[ -n "$recording" ] || recording=$LAB/run.record
	story_play "$recording"
	story_verdict || status=1
	if [ "$KEEP" = yes ]; then
		story_kept
	else
		daemon_end
	fi
	return $status
}

story_define() {
	local name
	for name in $GUESTS; do
		# Free page reporting: what web frees, the host has again at once.
		guest_define "$name" "${STORY_MIB[$name]}" "$([ "$name" = web ] && echo yes || echo no)"
	done
}

# story_start: the guests booted and at work, each with its soft limit.
story_start() {
	local name
	if [ "${SWAP:-no}" = yes ]; then
		guest_set_limit batch "${STORY_LIMIT[web]}"
		guest_set_limit web "${STORY_LIMIT[batch]}"
	else
		guest_set_limit batch "${STORY_LIMIT[batch]}"
		guest_set_limit web "${STORY_LIMIT[web]}"
	fi
	for name in $GUESTS; do
		guest_start "$name"
	done
	for name in $GUESTS; do
		guest_ready "$name" || die "guest $name does not answer: see $LAB/$name.console"
	done
	story_fill
	guest web hot $STORY_WEB_HOT
	wait_for 20 story_web_works || die "web does not get to work"
}

# story_fill: batch and spare have as much to give as at the start. Read anew: of a guest that was
# saved and restored the host has only what is not zero, whatever its kernel has cached.
story_fill() {
	guest batch forget
	guest spare forget
	guest batch cache $STORY_BATCH_CACHE
	guest spare cache $STORY_SPARE_CACHE
	guest spare grow $STORY_SPARE_FREED 1000
	wait_for 20 grown spare || die "spare does not grow"
	guest spare drop grow
}

story_web_works() {
	[ "$(guest_value web AnonPages)" -ge $((STORY_WEB_HOT * 1024)) ]
}

# story_restart: fresh guests in the same lab, for the next test, however the last one ended.
story_restart() {
	local name
	[ ! -e "$LAB/daemon.pid" ] || daemon_end
	for name in $(lab_virsh list --name); do
		guest_stop "$name"
	done
	story_start
}

# story_play RECORDING: the squeeze from begin to end, shown live. Leaves ballastd running.
story_play() {
	local name cost=0
	story_snapshot >"$LAB/0"
	for name in $GUESTS; do
		cost=$((cost + $(guest_cost "$name")))
	done
	daemon_configure $((cost + SLACK))
	log_mark >"$LAB/mark.0"
	say "" "the configuration:"
	sed 's/^/    /' "$LAB/ballastd.conf"
	daemon_start --record "$1"
	say ""
	story_head
	story_watch 3
	story_phase 1 "web grows by $STORY_FIRST MiB: the pool is short" $STORY_FIRST
	story_phase 2 "web grows by $STORY_SECOND MiB more: past what batch has in excess" $STORY_SECOND
	say "-- the squeeze ends: web frees what it grew by"
	guest web drop grow
	story_watch 20 story_returned
	story_watch 3
	story_snapshot >"$LAB/3"
	log_mark >"$LAB/mark.3"
	ctl status
}

# story_phase NUMBER TITLE MIB
story_phase() {
	say "-- $2"
	guest web grow "$3" $STORY_RATE
	story_watch 60 story_grown
	story_watch 20 story_settled
	story_watch 2
	story_snapshot >"$LAB/$1"
	pool_free >"$LAB/free.$1"
	log_mark >"$LAB/mark.$1"
	ctl status
	ctl explain batch
}

story_grown() {
	grown web
}

# grown NAME: it has what it was to grow by.
grown() {
	[ "$(guest "$1" tail -n 1 /run/grow)" = "done" ]
}

story_settled() {
	[ "$(pool_free)" -ge "$WM_LOW" ]
}

story_returned() {
	local name actual maximum
	[ "$(pool_free)" -ge $((STORY_FIRST + STORY_SECOND - STORY_NOISE)) ] || return 1
	while read -r name actual _ maximum _; do
		[ "$actual" = "$maximum" ] || return 1
	done < <(story_snapshot)
}

# story_snapshot: for each guest "NAME ACTUAL RESIDENT MAXIMUM COST"; asks libvirt once for all.
story_snapshot() {
	local name actual maximum
	lab_virsh domstats --balloon | awk -F= '
		/^Domain:/ { gsub(/^Domain: .|.$/, ""); name = $0 }
		/balloon.current/ { actual = int($2 / 1024) }
		/balloon.maximum/ { print name, actual, int($2 / 1024) }
	' | while read -r name actual maximum; do
		echo "$name $actual $(guest_resident "$name" "$maximum") $maximum $(guest_cost "$name")"
	done
}

story_head() {
	local name
	printf '%8s' time
	for name in $GUESTS; do
		printf ' %20s' "$name actual/resident"
	done
	printf ' %12s\n' "pool free"
}

# story_watch SECONDS [CONDITION]: a line a second, until the condition holds or the time is over.
story_watch() {
	local end name actual resident
	declare -A line
	end=$(($(now_ms) + $1 * 1000))
	while [ "$(now_ms)" -lt "$end" ]; do
		sleep 0.8
		while read -r name actual resident _; do
			line[$name]=$actual/$resident
		done < <(story_snapshot)
		printf '%8s' "$(date +%T)"
		for name in $GUESTS; do
			printf ' %21s' "${line[$name]:-?}"
		done
		printf ' %8s MiB\n' "$(pool_free)"
		if [ $# -gt 1 ] && "$2"; then
			return 0
		fi
	done
}

story_kept() {
	say "" "The lab is still up, in $LAB. To look around:" \
		"    virsh -c '$LAB_URI' list" \
		"    build/plain/ballastctl -s $LAB/ballastd.sock status" \
		"    $CACHE/port ask $LAB/web.sock 10 report" \
		"    tail -f $LAB/ballastd.log" \
		"To end it:" \
		"    ./dev run --down $LAB"
}
