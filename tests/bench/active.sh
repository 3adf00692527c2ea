#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# The experiment of protect-active-working-set on real guests: a group reads a file again and again,
# others stream files that are larger than memory, and ballast takes half of the cache. What the group
# then does in a second of its CPU time, and what it has to read again, in windows that take turns in
# the same guest:
#
#   alone          nobody streams, nothing is taken: what the others are compared to
#   none           others stream, nothing is taken
#   balloon_only   others stream, ballast takes half of the cache; no agent
#   agent          the same with ballast-agent
#
# The hot file and a little more is what half of the cache holds: one that is much smaller is kept by
# Linux alone, from a balloon too. Three parts: active.one, one stream; active, four; active.guests: the
# group and the four streams are in a guest each, and half of all caches is taken; nobody has a limit
# there. Bars, of each: agent >= 0.95, agent.refaults <= 2 % of those with the balloon only.
#
# What a second of CPU time is worth goes up and down in an emulated guest on a busy machine. So a meter
# runs beside the group: it does the same with 24 MiB that are never evicted, and work is the group's
# MiB a second over the meter's.
#   --json  as JSON
set -euo pipefail
. "$(dirname "$0")/../lab/parts.sh"

TRIES=${TRIES:-6}
PARTS=${PARTS:-one four guests}
WINDOW=15  # seconds
HOT=112    # MiB that are read again and again
STREAM=640 # MiB of each stream: more than any guest here has
PLENTY=16384
WM_HIGH=64 # of tests/lab/demo.conf

bench_options active "$@"
lab_trap
lab_up >&2
WORK=$LAB
truncate -s $((HOT + 4 * STREAM))M "$LAB/data.img"

# boot NAME MIB [LIMIT]
boot() {
	guest_define "$1" "$2"
	[ $# -lt 3 ] || guest_set_limit "$1" "$3"
	guest_start "$1"
}

# part_begin PART: sets GUESTS, the guest WHERE the hot group is, and STREAMS: "GUEST GROUP FROM" each.
part_begin() {
	local i
	STREAMS=()
	if [ "$1" = guests ]; then
		WHERE=hot
		GUESTS="hot stream1 stream2 stream3 stream4"
		for i in 1 2 3 4; do
			STREAMS+=("stream$i stream $HOT")
		done
		for i in $GUESTS; do
			boot "$i" 224
		done
	else
		WHERE=both
		GUESTS=both
		for i in 1 2 3 4; do
			[ "$1" = one ] && [ $i -gt 1 ] || STREAMS+=("both stream$i $((HOT + (i - 1) * STREAM))")
		done
		# In excess all the time: with the pool short it is this guest that gives.
		boot both 480 128
	fi
	for i in $GUESTS; do
		guest_ready "$i" || die "guest $i does not answer: see $LAB/$i.console"
	done
	guest $WHERE "dd if=/dev/zero of=/run/scale bs=1M count=24 2>/dev/null; reread meter /run/scale 0 24"
	guest $WHERE reread hot /dev/vda 0 "$HOT"
}

part_end() {
	local name
	for name in $GUESTS; do
		guest_stop "$name"
	done
}

# each COMMAND...: has every guest do it.
each() {
	local name
	for name in $GUESTS; do
		guest "$name" "$@"
	done
}

# sum COMMAND...: of what it prints for each guest.
sum() {
	local name all=0
	for name in $GUESTS; do
		all=$((all + $("$@" "$name")))
	done
	echo $all
}

cache_of() {
	guest "$1" report | awk '/\(file\)/ { n += $2 } END { print int(n / 1024) }'
}

streams_begin() {
	local name group from
	for stream in "${STREAMS[@]}"; do
		read -r name group from <<<"$stream"
		guest "$name" reread "$group" /dev/vda "$from" $STREAM
	done
}

streams_end() {
	local name group
	for stream in "${STREAMS[@]}"; do
		read -r name group _ <<<"$stream"
		guest "$name" drop "$group"
	done
}

# The caches of those who stream are as large as they get.
full() {
	local name
	for stream in "${STREAMS[@]}"; do
		name=${stream%% *}
		[ "$(guest_value "$name" MemFree)" -le 24576 ] || return 1
	done
}

# figures: what the hot group and the meter have done, in one line.
figures() {
	guest $WHERE "work hot; work meter" | paste -sd' '
}

sampled() {
	ctl status --format json | jq -e 'all(.vms[]; .samples >= 3)' >/dev/null
}

agents_report() {
	ctl status --format json | jq -e 'all(.vms[]; .agent.floor > 0)' >/dev/null
}

pool() {
	daemon_configure "$1"
	[ ! -e "$LAB/daemon.pid" ] || kill -HUP "$(<"$LAB/daemon.pid")"
}

# ballast_begin CONDITION
ballast_begin() {
	pool $PLENTY
	daemon_start
	[ "$1" != agent ] || each agent
	wait_for 30 sampled || die "no samples come"
	[ "$1" != agent ] || wait_for 30 agents_report || die "an agent does not report"
}

squeeze() {
	pool $(($(sum guest_cost) + WM_HIGH - $(sum cache_of) / 2))
}

is_back() {
	[ "$(sum guest_actual)" = "$(sum guest_max)" ]
}

ballast_end() {
	each drop agent
	pool $PLENTY
	wait_for 60 is_back || warn "not all has come back: $(sum guest_actual) MiB"
	daemon_end
}

# window PART TRY CONDITION: writes "PART TRY CONDITION MIB US REFAULTS METER_MIB METER_US TAKEN", all as
# differences.
window() {
	local part=$1 try=$2 condition=$3 cost acts=no from to
	case $condition in
	balloon_only | agent) acts=yes ;;
	esac
	[ "$condition" = alone ] || streams_begin
	[ $acts = no ] || ballast_begin "$condition"
	[ "$condition" = alone ] || wait_for 60 full || warn "the cache does not fill"
	sleep 3
	cost=$(sum guest_cost)
	read -ra from < <(figures)
	[ $acts = no ] || squeeze
	sleep "$WINDOW"
	read -ra to < <(figures)
	echo "$part $try $condition $((to[0] - from[0])) $((to[1] - from[1])) $((to[2] - from[2]))" \
		$((to[3] - from[3])) $((to[4] - from[4])) $((cost - $(sum guest_cost))) |
		tee -a "$LAB/windows" >&2
	[ "$condition" = alone ] || streams_end
	[ $acts = no ] || ballast_end
}

for part in $PARTS; do
	part_begin "$part"
	for ((try = 0; try < TRIES; try++)); do
		# None is always the first, or after the same one.
		order=(alone none balloon_only agent alone none balloon_only agent)
		[ $((try % 2)) = 0 ] || order=(agent balloon_only none alone agent balloon_only none alone)
		for condition in "${order[@]:try % 4:4}"; do
			window "$part" "$try" "$condition"
		done
	done
	part_end
done

# Medians of what each try has beside its own window alone, and the interval that has the median with
# 95 % of confidence, from the order (of six and fewer: all of them).
awk -v hot="$HOT" '
	function median(n) { return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }
	function sort(n, i, k, x) {
		for (i = 2; i <= n; i++) {
			x = v[i]
			for (k = i - 1; k >= 1 && v[k] > x; k--) v[k + 1] = v[k]
			v[k + 1] = x
		}
	}
	function line(name, unit, n, format, bar, k) {
		sort(n)
		k = int(n / 2 - 0.98 * sqrt(n)); if (k < 1) k = 1
		printf "%s " format " %s%s\n", name, median(n), unit, bar
		printf "%s.low " format " %s\n", name, v[k], unit
		printf "%s.high " format " %s\n", name, v[n + 1 - k], unit
	}
	{
		if (!($1 in tries)) parts[++nr] = $1
		if (tries[$1] < $2 + 1) tries[$1] = $2 + 1
		passes[$1, $2, $3] = $4 / hot / ($5 / 1000000)
		work[$1, $2, $3] = ($4 / $5) / ($7 / $8)
		refaults[$1, $2, $3] = $6
		taken[$1, $2, $3] = $9
	}
	END {
		split("none balloon_only agent", conditions)
		for (p = 1; p <= nr; p++) {
			part = parts[p]; n = tries[part]
			name = "active" (part == "four" ? "" : "." part)
			for (t = 1; t <= n; t++) v[t] = passes[part, t - 1, "alone"]
			line(name ".alone", "passes/s", n, "%.2f")
			for (c = 1; c <= 3; c++) {
				for (t = 1; t <= n; t++)
					v[t] = work[part, t - 1, conditions[c]] / work[part, t - 1, "alone"]
				line(name "." conditions[c], "ratio", n, "%.3f", conditions[c] == "agent" ? " at_least 0.95" : "")
			}
			for (c = 1; c <= 3; c++) {
				all[c] = 0
				for (t = 1; t <= n; t++)
					all[c] += v[t] = refaults[part, t - 1, conditions[c]]
				line(name "." conditions[c] ".refaults_pages", "pages", n, "%d")
			}
			# Of all windows together: in some the balloon alone hurts nobody.
			share = all[2] ? 100 * all[3] / all[2] : all[3] ? 100 : 0
			printf "%s.agent.refaults %.2f percent at_most 2\n", name, share
			for (c = 2; c <= 3; c++) {
				for (t = 1; t <= n; t++) v[t] = taken[part, t - 1, conditions[c]]
				line(name "." conditions[c] ".taken", "MiB", n, "%d")
			}
			print name ".tries", n, "tries"
		}
	}' "$LAB/windows" >"$WORK/rows"
bench_end
