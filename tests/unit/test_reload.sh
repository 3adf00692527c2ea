#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A running daemon that is told to read its configuration anew, and show and set, with libvirt's own
# test driver: no hypervisor is needed. A good configuration takes effect, a bad one is refused
# whole, and whatever a reload cannot change is named. And one that has a pager.
set -uo pipefail

# In a namespace of its own where that is allowed: it looks for other managers among all processes,
# and one that is started here is to be seen by nobody else.
if [ -z "${BALLAST_TEST_ALONE:-}" ] && unshare --pid --fork --mount-proc true 2>/dev/null; then
	export BALLAST_TEST_ALONE=1
	exec unshare --pid --fork --mount-proc --kill-child bash "$0"
fi

builddir=$(cd "${builddir:-.}" && pwd)
work=$(mktemp -d)
conf=$work/ballastd.conf
number=0
pid=
other=

end() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null
	[ -z "$other" ] || kill "$other" 2>/dev/null
	rm -rf "$work"
}
trap end EXIT

ctl() {
	timeout 20 "$builddir/ballastctl" -s "$work/ballastd.sock" "$@" 2>&1 </dev/null
}

# start URI [OPTION...]: the daemon, until it knows the VM.
start() {
	local uri=$1
	shift
	"$builddir/ballastd" -c "$uri" -f "$conf" --run-dir "$work" "$@" 2>"$work/log" &
	pid=$!
	for _ in $(seq 100); do
		[[ $(ctl show test) != *KNOB* ]] || return 0
		kill -0 $pid 2>/dev/null || return 1
		sleep 0.1
	done
	return 1
}

stop() {
	kill -TERM $pid
	wait $pid 2>/dev/null
	pid=
}

# A process that has the name of another manager; the shell that becomes it has it among its words before.
start_other() {
	bash -c 'exec -a /usr/sbin/momd sleep 300' &
	other=$!
	for _ in $(seq 1000); do
		! grep -q '^/usr/sbin/momd' "/proc/$other/cmdline" || return 0
		sleep 0.02
	done
}

stop_other() {
	kill $other
	wait $other 2>/dev/null
	other=
}

# said WORDS: the log, once it has them; it is read from the last reload on.
said() {
	for _ in $(seq 100); do
		tail -n "+$((before + 1))" "$work/log" >"$work/new"
		! grep -qF "$1" "$work/new" || break
		sleep 0.05
	done
	cat "$work/new"
}

# reload WORDS: tells the daemon, and what it says of that.
reload() {
	before=$(wc -l <"$work/log")
	kill -HUP "$pid"
	said "$1"
}

# check NAME STATUS WORDS COMMAND...: it ends with that status and says the words, between which a *
# stands for anything.
check() {
	local name=$1 status=$2 words=$3 said got
	shift 3
	said=$("$@")
	got=$?
	number=$((number + 1))
	# shellcheck disable=SC2053
	if [ "$got" -eq "$status" ] && [[ $(tr -s ' \n' '  ' <<<"$said") == *$words* ]]; then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		printf '# status %s, wanted %s and "%s"\n' "$got" "$status" "$words"
		printf '%s\n' "$said" | head -n 20 | sed 's/^/# /'
	fi
}

# in_time WORDS COMMAND...: the command, again and again until it says the words.
in_time() {
	local words=$1 said
	shift
	for _ in $(seq 100); do
		said=$("$@")
		# shellcheck disable=SC2053
		[[ $(tr -s ' \n' '  ' <<<"$said") != *$words* ]] || break
		sleep 0.05
	done
	"$@"
}

# lacks WORDS COMMAND...: it succeeds and does not say the words.
lacks() {
	local words=$1 said
	shift
	said=$("$@") || return
	printf '%s\n' "$said"
	[[ $said != *"$words"* ]]
}

skip() {
	number=$((number + 1))
	echo "ok $number - $1 # SKIP $2"
}

# ---- reload

printf '[vms]\ndefault-soft-limit = 25%%\n' >"$conf"
if ! start test:///default --record "$work/recording"; then
	if grep -q "no backend" "$work/log"; then
		echo "1..0 # SKIP this build has no libvirt"
		exit 0
	fi
	sed 's/^/# /' "$work/log"
fi
check it_begins_with_what_the_file_says 0 "soft-limit 2 GiB default" ctl show test

printf '[vms]\ndefault-soft-limit = 50%%\n[group /prod]\nmanage = no\n' >"$conf"
check good_configuration_is_taken 0 "the configuration was read anew: mode observe" \
	reload "read anew"
check good_configuration_takes_effect 0 "soft-limit 4 GiB default" ctl show test

printf '[vms]\ndefault-soft-limit = 75%%\nflor = 20%%\n[pool]\nsize = 1\n' >"$conf"
check bad_configuration_is_refused_with_file_and_line 0 \
	"the old one stays in force: $conf:3: there is no 'flor'*did you mean 'floor'?, and 1 more mistake" \
	reload "is refused"
check of_a_bad_configuration_nothing_is_taken 0 "soft-limit 4 GiB default" ctl show test

printf '[vms]\ndefault-soft-limit = 75%%\n[pool]\nsize = 1GiB\nwm-low = 1.5%%\n' >"$conf"
check configuration_that_does_not_fit_together_is_refused 0 \
	"$conf:5: wm-min = 2% must be below wm-low = 1.5%" reload "is refused"
check of_one_that_does_not_fit_nothing_is_taken 0 "soft-limit 4 GiB default" ctl show test

# BR-39: the third of five sections has one word that means nothing.
printf '[vms]\ndefault-soft-limit = 75%%\n' >"$conf"
for i in 1 2 3 4 5; do
	printf '[rule r%s]\nmatch-name = t*\nlow = %s\n' $i "$([ $i = 3 ] && echo '64M!B' || echo 64MiB)"
done >>"$conf"
check one_bad_word_in_one_of_many_sections_refuses_all 0 \
	"the old one stays in force: $conf:11: low: '64M!B'" reload "is refused"
check and_nothing_of_the_others_is_taken 0 "low 0 B default" ctl show test
check nor_does_a_daemon_start_with_it 2 "$conf:11: low: '64M!B'" \
	bash -c "'$builddir/ballastd' -c test:///default -f '$conf' --run-dir '$work/other' 2>&1"

rm "$conf"
check configuration_that_is_gone_is_refused 0 "the old one stays in force: $conf: cannot be read" \
	reload "is refused"
printf '[vms]\ndefault-soft-limit = 75%%\n[rule' >"$conf"
check half_a_file_is_refused 0 "$conf:3: this line is no section" reload "is refused"
check after_all_that_it_works_as_before 0 "soft-limit 4 GiB default" ctl show test

printf '[ballastd]\nconnect = qemu:///session\nsocket = %s/other.sock\nrun-dir = /nowhere\n' \
	"$work" >"$conf"
printf '[pool]\npsi = none\n[vms]\ndefault-soft-limit = 75%%\n' >>"$conf"
check what_waits_for_a_start_is_named 0 \
	"socket = $work/other.sock takes effect at the next start*psi = none takes effect at the next" \
	reload "read anew"
check the_rest_takes_effect_all_the_same 0 "soft-limit 6 GiB default" ctl show test
check what_the_command_line_says_counts_still 1 "" grep -E "(connect|run-dir) = .* takes effect" \
	"$work/new"

printf '[pool]\nsize = 3GiB\nwm-min = 128MiB\nwm-low = 256MiB\nwm-high = 512MiB\n' >"$conf"
check pool_is_taken 0 "read anew" reload "read anew"
check pool_is_another_at_once 0 "of 3 GiB*watermarks 128 MiB min, 256 MiB low, 512 MiB high" \
	in_time "of 3 GiB" ctl status
stop
check recording_over_reloads_replays_to_the_same 0 "" \
	"$builddir/ballast-sim" replay "$work/recording"

# ---- mode act, and others who act

: >"$conf"
start test:///default
printf '[ballastd]\nmode = act\non-stop = release\n' >"$conf"
if [ -n "${BALLAST_TEST_ALONE:-}" ]; then
	start_other
	check acting_beside_another_manager_is_refused_by_a_reload_too 0 \
		"the old one stays in force: momd*process $other: not acting beside it" \
		reload "is refused"
	check it_observes_on 0 "mode observe" ctl status
	stop_other
else
	skip acting_beside_another_manager_is_refused_by_a_reload_too "no namespace for it"
	skip it_observes_on "no namespace for it"
fi
check once_alone_it_acts 0 "read anew: mode act" reload "read anew"
check it_acts 0 "mode act" ctl status
if [ -n "${BALLAST_TEST_ALONE:-}" ]; then
	start_other
	check who_acts_already_goes_on_and_says_so 0 "momd*acting beside it, as before" \
		reload "read anew"
	stop_other
else
	skip who_acts_already_goes_on_and_says_so "no namespace for it"
fi
before=$(wc -l <"$work/log")
stop
check on_stop_of_the_new_configuration_counts 0 "*ending on signal TERM*released" \
	tail -n "+$((before + 1))" "$work/log"

# ---- show

cat >"$work/node.xml" <<'XML'
<node>
  <domain type='test'>
    <name>test</name>
    <uuid>6695eb01-f6a4-8304-79aa-97f2502e1931</uuid>
    <metadata><ballast:memory xmlns:ballast='urn:ballast:memory:1' soft-limit='2GiB'
      min='9GiB' max='8GiB' group='/prod/web'/></metadata>
    <memory unit='GiB'>8</memory>
    <currentMemory unit='GiB'>4</currentMemory>
    <memtune><soft_limit unit='GiB'>3</soft_limit></memtune>
    <vcpu>2</vcpu>
    <os><type>hvm</type></os>
    <devices><memballoon model='virtio'/></devices>
  </domain>
</node>
XML
cat >"$conf" <<'CONF'
[vms]
default-soft-limit = 50%
[rule web]
match-name = te*
soft-limit = 1GiB
low = 512MiB
[rule cap]
match-name = *
enforce = yes
soft-limit = 1536MiB
[group /prod]
manage = observe
CONF
start "test://$work/node.xml"
check show_has_every_source_in_order_and_what_it_overrides 0 \
	"soft-limit 1.5 GiB rule cap, enforced metadata 2 GiB; memtune 3 GiB; rule web 1 GiB; default 4 GiB" \
	ctl show test
check show_has_what_a_group_says 0 "manage observe group /prod default act" ctl show test
check show_has_the_group 0 "group /prod/web metadata default /" ctl show test
check show_says_what_is_refused_and_why 0 "not used: *max" ctl show test
check show_by_uuid 0 "soft-limit 1.5 GiB" ctl show 6695eb01-f6a4-8304-79aa-97f2502e1931
check show_for_programs_has_bytes 0 '"value":1610612736' ctl --format json show test
check show_of_nobody_suggests_a_name 1 "no VM or group named 'tset'; did you mean 'test'?" \
	ctl show tset
stop

# ---- set

: >"$conf"
start test:///default
check set_is_done 0 "" ctl set test --soft-limit 2G --min 1GiB
check set_writes_metadata 0 "soft-limit 2 GiB metadata default none" \
	in_time "soft-limit 2 GiB metadata" ctl show test
check set_writes_no_memtune 0 "" lacks memtune ctl show test
check set_in_observe_mode_too 0 "mode observe" ctl status
check set_none_takes_it_away 0 "" ctl set test --min none
check set_none_leaves_the_rest 0 "soft-limit 2 GiB metadata * min 0 B default" \
	in_time "min 0 B default" ctl show test
check set_of_what_does_not_fit_together_sets_nothing 1 "nothing was set: min would be over max" \
	ctl set test --min 3GiB --max 2GiB
check set_of_nothing_is_wrong_usage 2 "give what is to be set" ctl set test
check set_without_a_name_is_wrong_usage 2 "usage: ballastctl set NAME" ctl set
check set_of_a_bare_number_is_wrong_usage 2 "--soft-limit: '2048' has no unit; write" \
	ctl set test --soft-limit 2048
check set_of_a_fraction_is_wrong_usage 2 "--max: '1.5G'" ctl set test --max 1.5G
check set_of_a_word_that_there_is_not_is_wrong_usage 2 "--manage: *no, observe, act or none" \
	ctl set test --manage maybe
check set_of_no_yes_or_no_is_wrong_usage 2 "--guest-swap: *yes, no or none" \
	ctl set test --guest-swap 1
check set_of_an_agent_that_there_is_not_is_wrong_usage 2 "--agent: *ballast, qemu-ga, none or default" \
	ctl set test --agent yes
check set_of_an_agent_is_shown 0 "" ctl set test --agent none
check show_has_the_agent_and_who_says_it 0 "agent none metadata default ballast" \
	in_time "agent none metadata" ctl show test
check agent_of_the_default_again 0 "" ctl set test --agent default
check show_has_the_default_agent 0 "agent ballast default" in_time "agent ballast default" ctl show test
check attach_while_observing_changes_nothing 1 "only observes" ctl agent attach test
check set_of_nobody_suggests_a_name 1 "no VM or group named 'tset'; did you mean 'test'?" \
	ctl set tset --soft-limit 2G
check what_was_refused_was_not_written 0 "soft-limit 2 GiB metadata * max none default" \
	ctl show test
stop

# With a pager: a microVM's page faults are resolved by the daemon, and charged to its group.
micro() {
	ctl status --format json | tr -d ' \n' | grep -o '"name":"micro".*'
}
gone() {
	micro | grep -q . || echo gone
}
mkdir "$work/vmms"
: >"$work/vmms/micro.mem"
printf '[ballastd]\npager = %s\n[pool]\nsize = 16GiB\n[group /shared]\nmax = 3MiB\n[rule micro]\nmatch-name = micro\ngroup = /shared\n' \
	"$work/vmms" >"$conf"
start test:///default
"$builddir/tests/lab/vmm" "$work/vmms/micro.sock" 3 100 >"$work/vmm" 2>&1 &
other=$!
for _ in $(seq 100); do
	! grep -q . "$work/vmm" || break
	sleep 0.05
done
if grep -q userfaultfd "$work/vmm"; then
	skip vmm_that_hands_over_its_memory_has_all_its_pages "userfaultfd is not allowed here"
else
	check vmm_that_hands_over_its_memory_has_all_its_pages 0 "done" cat "$work/vmm"
	check it_is_a_vm_and_charged_to_its_group 0 '"usage":3145728' in_time '"usage":3145728' micro
	check it_had_a_fault_for_each_page 0 '"faults":768,"waited":0,"over_max":0' micro
	kill $other
	wait $other 2>/dev/null
	other=
	check with_its_process_it_is_gone 0 "gone" in_time "gone" gone
fi
stop
echo "1..$number"
