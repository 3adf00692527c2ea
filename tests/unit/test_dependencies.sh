#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Which folder may include which: the table of ARCHITECTURE.md, kept true.
set -euo pipefail
cd "${srcdir:-.}"

# FOLDER: the folders whose headers it may include, its own first.
table="
policy: policy
common: common
hv: hv policy common
hv/sim: hv/sim hv/ballastd hv policy common
hv/libvirt: hv/libvirt hv policy common
hv/xen: hv/xen hv policy common
hv/fault: hv/fault hv policy common
hv/ballastd: hv/ballastd hv/libvirt hv/xen hv policy common
guest-agent: guest-agent policy common
tools: tools hv/sim hv policy common
"
policy_system="assert config errno limits stdatomic stdbool stddef stdint stdlib string"

echo "1..2"
bad=$(echo "$table" | while IFS=': ' read -r folder allowed; do
	[ -d "${folder:-.missing}" ] || continue
	find "$folder" -maxdepth 1 -name '*.[ch]' | sort | while read -r file; do
		sed -n 's/^ *# *include *"\([^"]*\)".*/\1/p' "$file" | while read -r header; do
			case $header in
			*/*) from=${header%/*} ;;
			*) from=$folder ;;
			esac
			case " $allowed " in
			*" $from "*) ;;
			*) echo "$file includes $header" ;;
			esac
		done
	done
done)
if [ -z "$bad" ]; then
	echo "ok 1 - every_folder_includes_only_what_the_table_allows"
else
	echo "not ok 1 - every_folder_includes_only_what_the_table_allows"
	echo "${bad//$'\n'/$'\n# '}" | sed '1s/^/# /'
fi

bad=$(find policy -name '*.[ch]' | sort | while read -r file; do
	sed -n 's/^ *# *include *<\([^>]*\)\.h>.*/\1/p' "$file" | while read -r header; do
		case " $policy_system " in
		*" $header "*) ;;
		*) echo "$file includes <$header.h>" ;;
		esac
	done
done)
if [ -z "$bad" ]; then
	echo "ok 2 - policy_includes_no_header_of_the_system_that_could_do_io_or_read_a_clock"
else
	echo "not ok 2 - policy_includes_no_header_of_the_system_that_could_do_io_or_read_a_clock"
	echo "${bad//$'\n'/$'\n# '}" | sed '1s/^/# /'
fi
