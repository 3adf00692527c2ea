# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Every balloon command of all cases before, as libvirtd sent them.
. "$(dirname "$0")/common.sh"

balloon_commands >"$LAB/commands"
expect "balloon commands in libvirtd's log" "$(wc -l <"$LAB/commands")" -ge 10
expect "those of an unknown guest" "$(awk 'NF < 4' "$LAB/commands" | wc -l)" -eq 0
for name in $GUESTS; do
	expect "$name's lowest target, MiB" \
		"$(awk -v n="$name" '$3 == n { print $4 }' "$LAB/commands" | sort -n | head -n 1)" -ge "$(floor_of "$name")"
done
finish
