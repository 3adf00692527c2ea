# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Was the outcome of the story right? Told by libvirt, its log of balloon commands, and what the QEMU
# processes have resident. Needs story.sh.

# at PHASE NAME COLUMN: a figure of a snapshot. Phases: 0 begin, 1 and 2 of the squeeze, 3 after it.
at() {
	local column
	case $3 in
	actual) column=2 ;;
	resident) column=3 ;;
	maximum) column=4 ;;
	esac
	awk -v n="$2" -v c="$column" '$1 == n { print $c }' "$LAB/$1"
}

# fell NAME FROM TO: by how much its resident memory fell between two phases.
fell() {
	echo $(($(at "$2" "$1" resident) - $(at "$3" "$1" resident)))
}

# lowest NAME FROM TO: the lowest balloon target that libvirt was given between two phases, or the
# maximum when there was none.
lowest() {
	balloon_commands "$(<"$LAB/mark.$2")" |
		awk -v n="$1" -v to="$(<"$LAB/mark.$3")" -v low="$(at 0 "$1" maximum)" '
			$1 <= to && $3 == n && $4 < low { low = $4 } END { print low }'
}

# batch_when_spare_gave: the lowest target that batch had been given a second after spare's first cut
# in the worse squeeze: the two may come of one decision. Nothing when spare was not cut.
batch_when_spare_gave() {
	balloon_commands "$(<"$LAB/mark.0")" | awk -v since="$(<"$LAB/mark.1")" -v all="$(at 0 spare maximum)" '
		{ split(substr($2, 12), t, ":"); now = t[1] * 3600 + t[2] * 60 + t[3] }
		first && now > first + 1 { exit }
		$3 == "batch" && (!low || $4 < low) { low = $4 }
		$1 > since && $3 == "spare" && $4 < all && !first { first = now }
		END { if (first) print low + 0 }'
}

# expect WHAT A OPERATOR B
expect() {
	if test "${2:-9999999}" "$3" "$4"; then
		printf '  ok     %s (%s)\n' "$1" "$2"
	else
		printf '  WRONG  %s: %s, expected %s %s\n' "$1" "$2" "$3" "$4"
		WRONG=$((WRONG + 1))
	fi
}

verdict_table() {
	local name
	say "" "Before and after, in MiB (actual: libvirt; resident: the QEMU process)"
	printf '  %-8s %18s %18s %18s %18s\n' "" before squeeze "worse squeeze" after
	printf '  %-8s' guest
	printf '%19s' "actual resident" "actual resident" "actual resident" "actual resident"
	echo
	for name in $GUESTS; do
		printf '  %-8s' "$name"
		for phase in 0 1 2 3; do
			printf ' %9s %8s' "$(at $phase "$name" actual)" "$(at $phase "$name" resident)"
		done
		echo
	done
	say ""
}

# story_verdict: the table and every expectation; true when all are met.
story_verdict() {
	local name
	WRONG=0
	verdict_table
	expect "web was never asked for memory" "$(lowest web 0 3)" -ge "${STORY_MIB[web]}"
	expect "web has what it grew by in the squeeze" "$(fell web 1 0)" -ge $((STORY_FIRST - STORY_NOISE))
	expect "web has what it grew by in the worse squeeze" "$(fell web 2 1)" -ge $((STORY_SECOND - STORY_NOISE))
	expect "web lost nothing to its kernel's killer" "$(guest_value web oom_kill)" -eq 0
	expect "batch gave in the squeeze" "$(fell batch 0 1)" -ge $((STORY_FIRST - SLACK + WM_LOW - STORY_NOISE))
	expect "spare was not asked while batch was in excess" "$(lowest spare 0 1)" -ge "${STORY_MIB[spare]}"
	expect "spare kept all while batch was in excess" "$(fell spare 0 1)" -le "$STORY_NOISE"
	# The second pass is for all: what batch has cold below its limit comes after spare's.
	expect "batch was not taken far below its soft limit" "$(at 2 batch resident)" \
		-ge $((STORY_LIMIT[batch] - 2 * STORY_NOISE))
	# What it is asked last ends where others' parts came first and no more is needed.
	expect "batch gave all its excess before the squeeze was over" "$(at 2 batch resident)" \
		-le $((STORY_LIMIT[batch] + 2 * STORY_NOISE))
	expect "batch was asked for all its excess before spare was" "$(batch_when_spare_gave)" \
		-le $((STORY_LIMIT[batch] + STORY_NOISE))
	expect "spare gave in the second pass" "$(fell spare 1 2)" -ge "$STORY_NOISE"
	expect "the pool had free memory after the squeeze began" "$(<"$LAB/free.1")" -ge "$WM_LOW"
	expect "the pool had free memory when it was worst" "$(<"$LAB/free.2")" -ge "$WM_LOW"
	for name in $GUESTS; do
		expect "$name may have all its memory again" "$(at 3 "$name" actual)" -eq "${STORY_MIB[$name]}"
	done
	expect "web's freed memory came back to the host" "$(fell web 2 3)" -ge $((STORY_FIRST + STORY_SECOND - 2 * STORY_NOISE))
	expect "batch's resident memory stays low" "$(at 3 batch resident)" -le $((STORY_LIMIT[batch] + 2 * STORY_NOISE))
	say ""
	if [ $WRONG = 0 ]; then
		say "The outcome is right."
	else
		say "The outcome is WRONG ($WRONG)."
		return 1
	fi
}
