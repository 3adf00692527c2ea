#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The command lines of ballastd and ballastctl, where no hypervisor is needed: exit statuses, and
# that every error says what to do.
set -uo pipefail
. "${srcdir:-.}/tests/unit/check.sh"
: "${builddir:=.}" "${srcdir:=.}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ctl=$builddir/ballastctl
daemon=$builddir/ballastd

check ctl_without_a_command_is_wrong_usage 2 "a command is missing" "$ctl"
check ctl_help_is_no_error 0 "Exit status" "$ctl" --help
check ctl_version_is_printed 0 "ballastctl " "$ctl" --version
check ctl_help_of_a_command 0 "SIZE has a unit" "$ctl" plan --help
check ctl_unknown_command_gets_the_nearest 2 "did you mean 'status'?" "$ctl" stauts
check ctl_unknown_option_is_wrong_usage 2 "--help" "$ctl" --nonsense status
check ctl_unknown_format_is_wrong_usage 2 "text or json" "$ctl" --format xml status
check ctl_missing_argument_is_wrong_usage 2 "usage: ballastctl plan SIZE" "$ctl" plan
check ctl_bare_number_is_wrong_usage 2 "16384MiB" "$ctl" plan 16384
check ctl_group_where_there_is_none 2 "takes no --group" "$ctl" status -g /a
check ctl_without_a_daemon_is_not_reachable 3 "is it running?" "$ctl" -s "$work/none" status
check ctl_reclaim_without_a_daemon 3 "cannot reach ballastd" "$ctl" -s "$work/none" reclaim 1GiB

: >"$work/file"
check ctl_path_that_is_no_socket_says_so 3 "$work/file: it is no socket" "$ctl" -s "$work/file" status
check ctl_path_that_is_empty_says_so 3 "no path at all" "$ctl" -s "" status
check ctl_amount_over_a_pebibyte_is_wrong_usage 2 "'2PiB' is more than 1 PiB" "$ctl" plan 2PiB
check ctl_reclaims_no_more_than_a_pebibyte 2 "'1025TiB' is more than 1 PiB" "$ctl" reclaim --yes 1025TiB
check ctl_name_that_is_no_utf8_is_wrong_usage 2 "'caf\xe9\x1b[2J' is not UTF-8" \
	"$ctl" explain $'caf\xe9\e[2J'
check ctl_word_of_set_that_is_no_utf8_is_wrong_usage 2 "--group: '/\xff' is not UTF-8" \
	"$ctl" set web --group $'/\xff'
check ctl_sets_no_more_than_a_pebibyte 2 "'2PiB' is more than 1 PiB" "$ctl" set web --min 2PiB
check ctl_group_that_is_no_utf8_is_wrong_usage 2 "--group: '/\xff' is not UTF-8" \
	"$ctl" plan 1MiB --group $'/\xff'
check ctl_release_of_nobody_is_wrong_usage 2 "or give --all" "$ctl" release
check ctl_release_of_one_and_of_all_is_wrong_usage 2 "or give --all" "$ctl" release web1 --all
check ctl_yes_where_nothing_asks 2 "takes no --yes" "$ctl" status --yes
check ctl_connect_is_of_direct_only 2 "without --direct" "$ctl" status -c qemu:///system
check ctl_agent_does_nothing_but_attach 2 "'detach' is not attach" "$ctl" agent detach web
check ctl_agent_without_a_name_is_wrong_usage 2 "usage: ballastctl agent attach NAME" "$ctl" agent attach
check ctl_persistent_where_nothing_is_stored 2 "takes no --persistent" "$ctl" status --persistent
check ctl_attach_without_a_daemon 3 "cannot reach ballastd" "$ctl" -s "$work/none" agent attach web
check ctl_pause_without_a_daemon 3 "cannot reach ballastd" "$ctl" -s "$work/none" pause

check daemon_version_is_printed 0 "ballastd " "$daemon" --version
check daemon_unknown_argument_is_wrong_usage 2 "unexpected argument 'x'" "$daemon" x
printf '[pool]\nsize = 1\nwm_low = 5%%\n' >"$work/bad.conf"
check daemon_bad_configuration_has_file_and_line 2 "$work/bad.conf:2: size: '1' has no unit" \
	"$daemon" --check-config -f "$work/bad.conf"
check daemon_bad_configuration_tells_all_mistakes 2 "bad.conf:3: " \
	"$daemon" --check-config -f "$work/bad.conf"
check daemon_missing_configuration_is_refused 2 "No such file" "$daemon" -f "$work/none.conf"
check daemon_bad_mode_is_wrong_usage 2 "observe or act" "$daemon" --mode on --check-config \
	-f /dev/null
check daemon_good_configuration_is_good 0 "is good" "$daemon" --check-config -f /dev/null
mkdir "$work/good.conf.d"
printf '[pool]\nsize = 3GiB\n' >"$work/good.conf"
printf '[pool]\nsize = 4GiB\n' >"$work/good.conf.d/a.conf"
check daemon_reads_the_files_beside_its_configuration 0 "size = 4GiB" \
	"$daemon" --dump-config -f "$work/good.conf"
"$daemon" --dump-config -f "$work/good.conf" >"$work/again.conf"
check daemon_dump_reads_back 0 "size = 4GiB" "$daemon" --dump-config -f "$work/again.conf"
check daemon_mode_of_the_command_line_counts 0 "mode = act" \
	"$daemon" --mode act --dump-config -f /dev/null
check daemon_default_uri_of_libvirt_is_honoured 0 "connect = test:///default" \
	env LIBVIRT_DEFAULT_URI=test:///default "$daemon" --dump-config -f /dev/null
check daemon_uri_that_nobody_handles_fails 1 "cannot use 'sim:///'" \
	"$daemon" -c sim:/// -f /dev/null --socket "$work/s" --run-dir "$work"
check daemon_xen_uri_that_nobody_handles_fails 1 "cannot use 'xen:///': " \
	"$daemon" -c xen:/// -f /dev/null --socket "$work/s" --run-dir "$work"
# unreached: what the daemon says where there is no hypervisor; it goes on trying.
unreached() {
	"$daemon" -c xen:///local -f /dev/null --socket "$work/s" --run-dir "$work" >"$work/log" 2>&1 &
	for _ in $(seq 100); do
		! grep -q "cannot be reached" "$work/log" || break
		sleep 0.05
	done
	kill $! 2>/dev/null
	wait $!
	grep "cannot be reached" "$work/log"
}
if [ -e /proc/xen/privcmd ] || [ -e /dev/xen/privcmd ]; then
	: # it would be reached
elif grep -q '^#define WITH_XEN' "$builddir/config.h"; then
	check daemon_off_xen_says_what_is_missing 0 "this is no dom0 of a Xen host" unreached
else
	check daemon_without_xen_says_so 1 "cannot use 'xen:///local'" \
		"$daemon" -c xen:///local -f /dev/null --socket "$work/s" --run-dir "$work"
fi
check daemon_has_no_room_for_its_socket 2 "ballastd.sock in run-dir: socket: is " \
	"$daemon" --dump-config -f /dev/null --run-dir "/tmp/$(printf '%0100d' 0)"
check daemon_takes_no_uri_from_the_environment_that_a_file_cannot_hold 2 "LIBVIRT_DEFAULT_URI: connect: " \
	env LIBVIRT_DEFAULT_URI=$'qemu:///system\nmode=act' "$daemon" --dump-config -f /dev/null

# dumped ARGUMENT...: what is dumped, read and dumped again is the same.
dumped() {
	"$daemon" --dump-config "$@" >"$work/first.conf" &&
		"$daemon" --dump-config -f "$work/first.conf" >"$work/second.conf" &&
		diff "$work/first.conf" "$work/second.conf"
}
cat >"$work/odd.conf" <<-'EOF'
	[ballastd]
	run-dir=/tmp/ä b;c
	[pool]
	size = 10000001KB
	reserve = 1025b
	wm-min = 4097b
	wm-low = 3MB
	wm-high = 0.9%
	[pace]
	hold = 61s
	ask-deadline = 1999ms
	[group /a b]
	soft-limit = 1025b
	max = none
EOF
check daemon_dump_reads_back_to_exactly_the_same 0 "" dumped -f "$work/odd.conf"
# ids FILE: the MESSAGE_IDs in it.
ids() { grep -oE '\b[0-9a-f]{32}\b' "$1"; }
documented() {
	ids "$srcdir/hv/messages.h" >"$work/ids" && ids "$srcdir/docs/ballastd.8.scd" | diff "$work/ids" - &&
		[ -z "$(sort "$work/ids" | uniq -d)" ]
}
check daemon_manual_has_every_message_id_once 0 "" documented
# A rule's texts fit a line of what is dumped.
printf '[rule r]\nmatch-group=%s\n' "$(printf 'x%.0s' {1..181})" >"$work/long.conf"
check daemon_takes_no_text_that_a_dump_could_not_hold 2 "match-group: " \
	"$daemon" --check-config -f "$work/long.conf"
printf '[rule r]\nmatch-group=%s\n' "$(printf 'x%.0s' {1..180})" >"$work/long.conf"
check daemon_dump_of_the_longest_text_reads_back 0 "" dumped -f "$work/long.conf"
check daemon_dump_of_the_command_line_reads_back 0 "" dumped -f "$work/odd.conf" --mode act \
	--socket "$work/s;t" -c 'test:///a=b#c'

# Every long option of a program's table is in its completion, and in its manual page.
options() {
	sed -n '/struct option /,/^\t*{ 0 }\|^\t*{ NULL/s/{ "/\n{ "/gp' "$1" | sed -n 's/^{ "\([a-z-]*\)", .*/\1/p'
}
# told PROGRAM SOURCE PAGE
told() {
	local option nr=0
	for option in $(options "$srcdir/$2"); do
		nr=$((nr + 1))
		grep -qE -- "[[:space:]\"]--${option}[[:space:]\"|)]" "$srcdir/dist/bash-completion/$1" || echo "no completion of --$option"
		grep -qF -- "*--$option*" "$srcdir/docs/$3" || echo "--$option is not in $3"
	done
	[ $nr -ge 3 ] || echo "no options in $2"
	echo "all"
}
check options_of_ballastctl_are_completed_and_documented 0 "<all>" \
	echo "<$(told ballastctl tools/ballastctl.c ballastctl.1.scd)>"
check options_of_ballastd_are_completed_and_documented 0 "<all>" \
	echo "<$(told ballastd hv/ballastd/main.c ballastd.8.scd)>"
check options_of_ballast_agent_are_completed_and_documented 0 "<all>" \
	echo "<$(told ballast-agent guest-agent/main.c ballast-agent.8.scd)>"
check options_of_ballast_sim_are_completed_and_documented 0 "<all>" \
	echo "<$(told ballast-sim tools/ballast-sim.c ballast-sim.1.scd)>"
for program in ballastctl ballastd ballast-agent; do
	# shellcheck source=/dev/null
	. "$srcdir/dist/bash-completion/$program"
done
# completes PROGRAM WORD...: what the last of the words may become.
completes() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	"_${1//-/_}"
	echo "<${COMPREPLY[*]}>"
}
check words_of_manage_are_completed 0 "<act observe no none>" completes ballastctl set web --manage ""
check words_of_guest_swap_are_completed 0 "<yes no none>" completes ballastctl set web --guest-swap ""
check options_of_set_are_completed 0 "<--min --max --manage>" completes ballastctl set web --m
check options_of_another_command_are_not 0 "<>" completes ballastctl status --m
check modes_are_completed 0 "<observe act>" completes ballastd --mode ""
check options_of_the_agent_are_completed 0 "<--port>" completes ballast-agent --p
echo "1..$number"
