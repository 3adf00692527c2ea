# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Limits changed while it runs: by metadata, which libvirt tells, and by memtune --config, which
# nobody tells: the resync finds it. Ticks are counted in the recording, from the first that knows the
# limit; the effect is what libvirtd sent to batch. Goes on with the guests of case 72.
. "$(dirname "$0")/common.sh"

# Inside the band from wm-low to wm-high nothing is given: what moves then, moves for its limit.
IN_BAND=52
RESYNC_S=5

# known LIMIT MIB SINCE: the line of the recording in which batch has that limit first.
known() {
	awk -v l="\"$1\":$(($2 * 256))" -v since="$3" 'NR > since && index($0, l) { print NR; exit }' "$RECORD"
}

# effect TYPE SINCE: how many ticks after that line the first action of that type came.
effect() {
	awk -v t="\"type\":\"$1\"" -v since="$2" '
		NR >= since && /"now":/ { n++; if (/"actions":/ && index($0, t)) { print n - 1; exit } }' "$RECORD"
}

# ticks_until TYPE SINCE US: how many ticks after that moment there were up to the first action of that
# type, its own included; looked for behind that line.
ticks_until() {
	awk -v t="\"type\":\"$1\"" -v since="$2" -v then="$3" '
		NR > since && match($0, /"now":[0-9]+/) {
			n += substr($0, RSTART + 6, RLENGTH - 6) > then + 0
			if (/"actions":/ && index($0, t)) { print n; exit }
		}' "$RECORD"
}

took_effect() {
	[ -n "$(effect "$1" "$2")" ]
}

is_known() {
	[ -n "$(known "$@")" ]
}

# The recording's clock.
uptime_us() {
	awk '{ printf "%.0f\n", $1 * 1000000 }' /proc/uptime
}

begin
mark=$(log_mark)
guest web grow 70 "$STORY_RATE"
cut_begins batch "$mark"
wait_for 30 story_grown
wait_for 20 story_settled
# In excess still, and so not loosened all the way; then the pool's free memory is put into the band.
capped() {
	[ "$(guest_actual batch)" -lt "${STORY_MIB[batch]}" ] && [ "$(vm batch owed)" = 0 ]
}
wait_for 20 capped
sleep 3
guest web grow $(($(pool_free) - IN_BAND)) "$STORY_RATE"
sleep 2
expect "batch is capped for its excess" "$(guest_actual batch)" -lt "${STORY_MIB[batch]}"
expect "the pool is in the band" "$(pool_free)" -ge "$WM_LOW"

mark=$(log_mark)
since=$(wc -l <"$RECORD")
began=$(uptime_us)
guest_set_limit batch "${STORY_LIMIT[web]}"
wait_for 20 is_known soft_limit "${STORY_LIMIT[web]}" "$since"
line=$(known soft_limit "${STORY_LIMIT[web]}" "$since")
wait_for 10 took_effect loosen "$line" || true
expect "resyncs until memtune's limit was known" \
	$((($(sed -n "${line}p" "$RECORD" | jq .now) - began) / (RESYNC_S * 1000000))) -le 1
expect "ticks from then until it had effect" "$(effect loosen "$line")" -le 1
wait_for 5 has_actual batch "${STORY_MIB[batch]}" || true
expect "batch, in excess no more, has its ceiling again" "$(last_target batch "$mark")" -eq "${STORY_MIB[batch]}"

mark=$(log_mark)
max=$(($(guest_resident batch) - 24))
since=$(wc -l <"$RECORD")
before=$(ticks)
lab_virsh metadata batch urn:ballast:memory:1 --key ballast --set "<memory max='${max}MiB'/>" --live --config
set_by=$(uptime_us)
wait_for 10 took_effect cut $((since + 1)) || true
expect "ticks from when the metadata's max was set until it had effect" \
	"$(ticks_until cut "$since" "$set_by")" -le 2
expect "ticks were counted by the daemon too" "$(ticks)" -gt "$before"
expect "batch was asked down to its max" "$(last_target batch "$mark")" -le "$max"
lab_virsh metadata batch urn:ballast:memory:1 --remove --live --config
guest_set_limit batch "${STORY_LIMIT[batch]}"
guest web drop grow
daemon_end
finish
