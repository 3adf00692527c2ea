# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# An operator asks for more than there is; spare has a min well above its floor.
. "$(dirname "$0")/common.sh"

SPARE_MIN=180
story_restart
lab_virsh metadata spare urn:ballast:memory:1 --key ballast --set "<memory min='${SPARE_MIN}MiB'/>" --live --config
daemon_configure 4096
mark=$(log_mark)
daemon_start
wait_for 20 sampling
status=0
timeout 90 "$BUILD/ballastctl" -s "$LAB/ballastd.sock" reclaim --yes 2GiB || status=$?
ctl status
# 4: done in part; 1 would be a failure, 124 one that never ends.
expect "the part that could be done is told" $status -eq 4
expect "spare was asked" "$(balloon_commands "$mark" | grep -c ' spare ')" -ge 1
expect "spare keeps its min" "$(guest_resident spare)" -ge $((SPARE_MIN - STORY_NOISE))
balloon_commands "$mark" | while read -r _ time name target; do
	bound=$(floor_of "$name")
	[ "$name" != spare ] || bound=$SPARE_MIN
	[ "$target" -ge "$bound" ] || {
		say "$time: $name was asked down to $target MiB, its bound is $bound"
		exit 1
	}
done
for name in $GUESTS; do
	expect "$name runs and lost nothing to its kernel's killer" "$(guest_value "$name" oom_kill)" -eq 0
done
daemon_end
lab_virsh metadata spare urn:ballast:memory:1 --remove --live --config
finish
