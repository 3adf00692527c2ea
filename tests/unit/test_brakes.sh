#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The brakes on the daemon itself, with libvirt's own test driver: no hypervisor is needed. A pause
# outlives kill -9, a damaged file pauses everything, much is not reclaimed unasked.
set -uo pipefail
builddir=$(cd "${builddir:-.}" && pwd)
uri=test:///default
work=$(mktemp -d)
number=0
pid=

end() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null
	rm -rf "$work"
}
trap end EXIT

ctl() {
	timeout 20 "$builddir/ballastctl" -s "$work/ballastd.sock" "$@" 2>&1 </dev/null
}

# start [OPTION...]: the daemon, until it knows the VM.
start() {
	"$builddir/ballastd" --force -c $uri --run-dir "$work" --mode act "$@" 2>"$work/log" &
	pid=$!
	for _ in $(seq 100); do
		[[ $(ctl status) != *" free of "*"test "* ]] || return 0 # the pool is known, and so is the VM
		kill -0 $pid 2>/dev/null || return 1
		sleep 0.2
	done
	return 1
}

# stop SIGNAL
stop() {
	kill "-$1" $pid
	wait $pid 2>/dev/null
	pid=
}

# check NAME STATUS WORDS COMMAND...: it ends with that status and says the words.
check() {
	local name=$1 status=$2 words=$3 said got
	shift 3
	said=$("$@")
	got=$?
	number=$((number + 1))
	if [ "$got" -eq "$status" ] && [[ $said == *"$words"* ]]; then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		printf '# status %s, wanted %s and "%s"\n' "$got" "$status" "$words"
		printf '%s\n' "$said" | head -n 5 | sed 's/^/# /'
	fi
}

: >"$work/empty.conf"
printf '[ballastd]\non-stop = release\n[pace]\nrelease-hold = 30s\n' >"$work/release.conf"
if ! start -f "$work/empty.conf"; then
	if grep -q "no backend" "$work/log"; then
		echo "1..0 # SKIP this build has no libvirt"
		exit 0
	fi
	sed 's/^/# /' "$work/log"
fi

check more_than_a_tenth_of_the_pool_takes_yes 2 "give --yes" ctl reclaim 1000GiB
check pause_of_a_vm 0 "test is paused" ctl pause test
check pause_of_nobody_says_who_is_meant 1 "did you mean 'test'?" ctl pause tset
stop KILL
start -f "$work/release.conf"
check pause_of_a_vm_outlives_the_daemon 0 "asking is paused" ctl status
check pause_of_everything 0 "everything is paused" ctl pause
stop KILL
start -f "$work/release.conf"
check pause_of_everything_outlives_the_daemon 0 "paused (nobody is asked)" ctl status
check nothing_is_reclaimed_while_paused 1 "ballastctl resume" ctl reclaim --yes 16MiB
check release_goes_on_while_paused 0 "1 VM gets back what ballast took, and is not asked for 30 s" ctl release --all
check resume_leaves_the_vm_paused 0 "test is paused" ctl resume
stop TERM
check release_on_stop_is_said 0 "released" cat "$work/log"
check pause_outlives_the_daemon_under_systemd_too 0 RuntimeDirectoryPreserve=yes \
	grep -x RuntimeDirectoryPreserve=yes "${srcdir:-.}/dist/ballastd.service.in"
echo damaged >"$work/paused"
start -f "$work/empty.conf"
check damaged_pause_file_pauses_everything 0 "paused (nobody is asked)" ctl status
check damaged_pause_file_is_said 0 "stays paused" cat "$work/log"
check resume_ends_it 0 "nothing is paused" ctl resume
stop TERM
check release_without_the_daemon 0 "0 failed" \
	timeout 60 "$builddir/ballastctl" release --all --direct -c $uri
check release_without_the_daemon_for_programs 0 "" bash -c "timeout 60 '$builddir/ballastctl' --format json \
	release / --direct -c $uri | '$builddir/tests/unit/reads_json' failed=0 released=0"
check release_of_a_group_takes_the_daemon 2 "which VMs are below /prod only the daemon knows" \
	bash -c "'$builddir/ballastctl' release /prod --direct -c $uri 2>&1"
check release_without_the_daemon_of_nobody 1 "no VM named" \
	bash -c "timeout 60 '$builddir/ballastctl' release nobody --direct -c $uri 2>&1"

# A name that speaks to terminals: a C1 control (CSI), and one that turns the direction.
cat >"$work/names.xml" <<EOF
<node><cpu><mhz>1000</mhz><model>x</model><active>1</active><nodes>1</nodes><sockets>1</sockets>
<cores>1</cores><threads>1</threads></cpu><memory>8388608</memory>
<domain type='test'><name>test e&#x9b;2J&#x202e;vil</name><memory>1048576</memory><vcpu>1</vcpu>
<os><type>hvm</type></os></domain></node>
EOF
if start -f "$work/empty.conf" -c "test://$work/names.xml"; then
	check status_does_not_speak_to_the_terminal 0 'test e\u009b2J\u202evil' ctl status
	check plan_does_not_speak_to_the_terminal 0 'test e\u009b2J\u202evil gives nothing' ctl plan 1MiB
	check explain_does_not_speak_to_the_terminal 0 'test e\u009b2J\u202evil (' ctl explain
	check pause_does_not_speak_to_the_terminal 0 'test e\u009b2J\u202evil is paused' \
		ctl pause $'test e\xc2\x9b2J\xe2\x80\xaevil'
	check error_does_not_speak_to_the_terminal 1 "did you mean 'test e\\u009b2J\\u202evil'" \
		ctl explain $'test e\xc2\x9b2J\xe2\x80\xaeval'
	check json_has_the_name_as_it_is 0 $'test e\xc2\x9b2J\xe2\x80\xaevil' ctl --format json status
	check short_name_is_not_taken_for_the_pool 1 "no VM or group named 'x'" ctl explain x
	stop TERM
else
	check daemon_takes_the_names 0 "" false
fi
echo "1..$number"
