#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What is printed and does not arrive, because the device is full or there is none, is an error of
# every program and every command: said, and exit status 1.
set -uo pipefail
builddir=$(cd "${builddir:-.}" && pwd)
scenarios=$(cd "${srcdir:-.}/tests/scenarios" && pwd)
scenario=$scenarios/nothing_is_cut_above_wm_low.sim
work=$(mktemp -d)
number=0
pid=

end() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null
	rm -rf "$work"
}
trap end EXIT

# check NAME STATUS WORDS COMMAND...: on a full device it ends with that status and says the words.
check() {
	local name=$1 status=$2 words=$3 said got
	shift 3
	said=$("$@" 2>&1 >/dev/full)
	got=$?
	number=$((number + 1))
	if [ "$got" -eq "$status" ] && [[ $said == *"$words"* ]]; then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		printf '# status %s, wanted %s and "%s"; said %s\n' "$got" "$status" "$words" "${said//$'\n'/ }"
	fi
}

# full NAME PROGRAM ARGUMENT...
full() {
	local name=$1 program=$2
	shift 2
	check "full_device_is_an_error_of_$name" 1 "$program: cannot write to standard output: No space" \
		"$builddir/$program" "$@"
}

# closed PROGRAM ARGUMENT...
closed() {
	"$builddir/$1" "${@:2}" >&-
}

full daemon_version ballastd --version
full daemon_help ballastd --help
full daemon_check_config ballastd --check-config -f /dev/null
full daemon_dump_config ballastd --dump-config -f /dev/null
full ctl_version ballastctl --version
full ctl_help ballastctl --help
for command in status plan reclaim explain show set agent pause resume release; do
	full "ctl_help_of_$command" ballastctl "$command" --help
done
full sim_version ballast-sim --version
full sim_help ballast-sim --help
full sim_run ballast-sim run "$scenario"
full sim_run_json ballast-sim run --format json "$scenario"
"$builddir/ballast-sim" run --quiet --record "$work/recording" "$scenario" >/dev/null
full sim_replay ballast-sim replay "$work/recording"
full sim_replay_json ballast-sim replay --format json "$work/recording"
check error_that_prints_nothing_stays_what_it_is 3 "cannot reach ballastd" \
	"$builddir/ballastctl" -s "$work/none" status
check closed_output_is_an_error_too 1 "cannot write to standard output: Bad file" \
	closed ballastctl --version
check closed_output_is_none_where_nothing_is_printed 3 "cannot reach ballastd" \
	closed ballastctl -s "$work/none" status

# With libvirt's own test driver: what commands print of a daemon's answers.
"$builddir/ballastd" --force -c test:///default --run-dir "$work" --mode act -f /dev/null \
	2>"$work/log" &
pid=$!
for _ in $(seq 60); do
	said=$("$builddir/ballastctl" -s "$work/ballastd.sock" status 2>/dev/null)
	[[ $said != *" free of "*"test "* ]] || break # the pool is known, and so is the VM
	kill -0 $pid 2>/dev/null || break
	sleep 0.2
done
if kill -0 $pid 2>/dev/null; then
	for format in text json; do
		for command in status "plan 1MiB" explain "show test" "pause test" "resume test" "release --all" \
			"reclaim 1MiB"; do
			# shellcheck disable=SC2086 # words
			full "ctl_${command%% *}_$format" ballastctl -s "$work/ballastd.sock" --format $format $command
		done
	done
	full ctl_set_json ballastctl -s "$work/ballastd.sock" --format json set test --low 1MiB
	full ctl_release_direct ballastctl release --all --direct -c test:///default
elif ! grep -q "no backend" "$work/log"; then
	sed 's/^/# /' "$work/log"
	exit 1
fi
echo "1..$number"
