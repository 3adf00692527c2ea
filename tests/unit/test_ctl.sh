#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# ballastctl with a daemon whose VMs give: what every command says to programs, and ^C.
set -uo pipefail
. "${srcdir:-.}/tests/unit/check.sh"
builddir=$(cd "${builddir:-.}" && pwd)
work=$(mktemp -d)
pid=

end() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null
	rm -rf "$work"
}
trap end EXIT

ctl() {
	timeout 60 "$builddir/ballastctl" -s "$work/s" "$@" </dev/null
}

# until_said WORDS COMMAND...: again and again until it says the words.
until_said() {
	local words=$1
	shift
	for _ in $(seq 600); do
		[[ $("$@" 2>/dev/null) != *"$words"* ]] || return 0
		kill -0 "$pid" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# json STATUS MEMBERS COMMAND...: with --format json it ends with that status, and prints one object
# that has a schema_version and those members.
json() {
	local status=$1 members=$2 said got
	shift 2
	said=$("$@" 2>"$work/errors")
	got=$?
	cat "$work/errors"
	if [ "$got" -ne "$status" ]; then
		echo "exit status $got: $said"
		return 1
	fi
	# shellcheck disable=SC2086 # words
	"$builddir/tests/unit/reads_json" $members <<<"$said"
}

# programs NAME STATUS MEMBERS ARGUMENT...
programs() {
	local name=$1 status=$2 members=$3
	shift 3
	check "$name" 0 "" json "$status" "$members" ctl --format json "$@"
}

# What batch costs the host, MiB.
usage() {
	ctl status | awk '$1 == "batch" { print int($4 == "GiB" ? $3 * 1024 : $4 == "KiB" ? 1 : $3) }'
}

# interrupted SIGNAL: a reclaim that gets the signal once something of it came.
interrupted() {
	local job status=0 before
	before=$(usage)
	"$builddir/ballastctl" -s "$work/s" reclaim --yes 300MiB </dev/null &
	job=$!
	while [ "$(usage)" -gt $((before - 32)) ] && kill -0 $job; do sleep 0.05; done
	kill "-$1" $job
	wait $job || status=$?
	return $status
}

"$builddir/tests/unit/sim_daemon" "$work" 2>"$work/log" &
pid=$!
if ! until_said '"gives"' ctl --format json plan 16MiB; then
	sed 's/^/# /' "$work/log"
	exit 1
fi

programs status_for_programs 0 "mode=act paused=false" status
programs plan_for_programs 0 "group=/ need=16777216 short=0" plan 16MiB
programs explain_for_programs 0 "mode=act" explain batch
programs show_for_programs 0 "name=batch state=running" show batch
programs set_for_programs 0 "state=done" set web --low 16MiB
programs attach_that_fails_for_programs 1 "state=failed" agent attach web
programs pause_for_programs 0 "paused=false" pause web
programs resume_for_programs 0 "paused=false" resume web
mkdir -p "$work/paused/in the way"
check pause_that_is_not_written_down_is_done_in_part 4 "until the daemon ends and not longer" ctl pause
programs resume_that_is_not_written_down_for_programs 4 "paused=false" resume
rm -r "$work/paused"
programs resume_that_is_written_down_again 0 "paused=false" resume
programs reclaim_for_programs 0 "state=done wanted=1048576" reclaim 1MiB
programs set_of_a_group_for_programs 0 "state=done" set web --group /prod
until_said '"/prod"' ctl --format json status
programs reclaim_that_is_short_for_programs 1 "state=short came=0" reclaim --group /prod 400MiB
check interrupted_reclaim_is_cancelled_and_says_what_came 4 "of 300 MiB came; cancelled" interrupted INT
check what_was_interrupted_is_asked_for_no_more 0 "" until_said "(cancel)" ctl explain batch
# What people see on a terminal.
if command -v script >/dev/null; then
	check progress_is_told_on_a_terminal 0 "on the way" \
		script -qec "'$builddir/ballastctl' -s '$work/s' reclaim --yes 150MiB" /dev/null
else
	number=$((number + 1))
	echo "ok $number - progress_is_told_on_a_terminal # SKIP there is no script(1)"
fi
programs release_for_programs 0 "name=batch released=1" release batch
for command in $("$builddir/ballastctl" --help | sed -n 's/^  \([a-z]\+\) .*/\1/p'); do
	check "${command}_is_among_those_that_speak_to_programs" 0 "" \
		grep -E "^programs [a-z_]+ [0-9] \"[^\"]*\" $command( |\$)" "$0"
done
until_said "(release)" ctl explain batch
check release_is_explained 0 "the operator released it" ctl explain batch
echo "1..$number"
