#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Keeps ARCHITECTURE.md true: which folder includes which, that policy/ stays pure, that headers are
# complete by themselves, that only event loops read a clock; README what a build needs; the agent's
# core linkable without a C library's rest; its unit what the agent does by itself.
set -euo pipefail
builddir=$(cd "${builddir:-.}" && pwd)
cd "${srcdir:-.}"

tests=0
# report NAME COMPLAINTS: one result; a line of COMPLAINTS is one reason why not.
report() {
	tests=$((tests + 1))
	if [ -z "$2" ]; then
		echo "ok $tests - $1"
	else
		echo "not ok $tests - $1"
		while read -r line; do echo "# $line"; done <<<"$2"
	fi
}

# The rows of the table: FOLDER|FOLDER IT MAY INCLUDE ...|CLOCK
table=$(awk -F'|' '
	$2 ~ /^ *folder *$/ { on = 1; next }
	on && !/^\|/ { exit }
	on && $2 ~ /`/ { gsub(/[` ]/, "", $2); gsub(/`/, "", $4); gsub(/ /, "", $5); print $2 "|" $4 "|" $5 }
' ARCHITECTURE.md)
# shellcheck disable=SC2016 # the backticks are the document's
pure=$(awk '/^Of the system/ { on = 1 } on { print } on && /and no others/ { exit }' ARCHITECTURE.md |
	grep -o '`[a-z]*`' | tr -d '`')

# files FOLDER: its own sources, not those of folders below it.
files() {
	[ ! -d "$1" ] || find "$1" -maxdepth 1 -name '*.[ch]' | sort
}

quoted() {
	sed -n 's/^[ \t]*#[ \t]*include[ \t]*"\([^"]*\)".*/\1/p' "$1"
}

angled() {
	sed -n 's/^[ \t]*#[ \t]*include[ \t]*<\([^>]*\)>.*/\1/p' "$1"
}

unlisted() {
	find policy common hv guest-agent tools -name '*.[ch]' | sed 's,/[^/]*$,,' | sort -u |
		while read -r folder; do
			grep -q "^$folder|" <<<"$table" || echo "$folder is not in the table"
		done
}

forbidden() {
	while IFS='|' read -r folder allowed _; do
		files "$folder" | while read -r file; do
			quoted "$file" | while read -r header; do
				from=${header%/*}
				case " $folder $allowed " in
				*" $from "*) ;;
				*) echo "$file includes $header" ;;
				esac
				case $header in
				*_internal.h) [ "$from" = "$folder" ] || echo "$file includes $header" ;;
				esac
			done
		done
	done <<<"$table"
}

impure() {
	find policy -name '*.[ch]' | sort | while read -r file; do
		angled "$file" | while read -r header; do
			grep -qx "${header%.h}" <<<"$pure" || echo "$file includes <$header>"
		done
	done
}

# Xen's headers stand in its backend alone, and where that is tested; others take of it what needs
# none. So a build without it needs none.
strangers_to_xen() {
	find policy common hv guest-agent tools tests -name '*.[ch]' | sort | while read -r file; do
		case $file in
		hv/xen/* | tests/lab/xen/* | tests/*xen*.[ch]) continue ;;
		esac
		angled "$file" | grep '^xen' | sed "s,^,$file includes ,"
		quoted "$file" | grep '^hv/xen/' | grep -vx hv/xen/xen.h | sed "s,^,$file includes ,"
	done || true
}

readers_of_clocks() {
	while IFS='|' read -r folder _ clock; do
		[ "$clock" != yes ] || continue
		files "$folder" | while read -r file; do
			grep -nE '\b(clock_gettime|clock_nanosleep|gettimeofday|nanosleep|usleep|sleep|time|sd_event_now|clock|localtime|gmtime)\(' \
				"$file" | grep -vE '^[0-9]+:[[:space:]]*(/?\*|//)' |
				sed "s,^,$file:," || true
		done
	done <<<"$table"
}

incomplete() {
	local cflags std
	cflags=$(pkg-config --cflags json-c inih libsystemd libvirt libxml-2.0 2>/dev/null || true)
	find policy common hv guest-agent tools tests -name '*.h' | sort | while read -r header; do
		std=c11
		case $header in
		hv/libvirt/*) pkg-config --exists libvirt libxml-2.0 2>/dev/null || continue ;;
		hv/xen/* | */fake_xen.h) # Xen's own headers are no C11
			pkg-config --exists xencontrol xenstore 2>/dev/null || continue
			std=gnu11
			;;
		esac
		# shellcheck disable=SC2086 # flags, a word each
		printf '#include <config.h>\n#include "%s"\n#include "%s"\n' "$header" "$header" |
			${CC:-cc} -std=$std -fsyntax-only -Wall -Werror -Wno-unused-function $cflags \
				-I. -I"$builddir" -x c - >/dev/null 2>&1 || echo "$header"
	done
}

# What ./dev installs for a build, README tells to install; build-essential has the C library.
unnamed() {
	sed -n '/^\tbuild)/,/;;/p' tests/lab/lib.sh | grep -oE '[a-z0-9-]+-dev|check|scdoc' |
		grep -vx libc6-dev | while read -r package; do
		grep -qE "(^| )$package( |$)" README.md || echo "$package"
	done
}

# The agent's core and all that it links, by themselves: what is left may only be memory and string
# functions and the compiler's own; that of sanitizers, coverage and hardening is passed over.
not_freestanding() {
	local object objects='' name
	for name in guest-agent/{agent,figures,probe,reclaim} common/protocol policy/{batch,workingset}; do
		object=$builddir/$name.o
		[ -e "$object" ] || echo "there is no $object"
		objects="$objects $object"
	done
	# shellcheck disable=SC2086 # paths, a word each
	nm -P $objects | awk '
		$2 == "U" { wanted[$1] = 1 }
		$2 ~ /^[A-TV-Z]$/ { has[$1] = 1 }
		END { for (name in wanted) if (!(name in has)) print name }
	' | grep -vE '^(mem|str)[a-z]+$|^__(mem|str)[a-z]+_chk$|^_*(asan|tsan|ubsan|gcov|sanitizer|stack_chk)_|^__u?(div|mod)[dt]i3$|^_GLOBAL_OFFSET_TABLE_$' || true
}

# What it asks for without the capability goes as far as it has it already.
unit_differs() {
	local nice
	nice=$(sed -n 's/^#define NICE (\(.*\))$/\1/p' guest-agent/main.c)
	grep -qx "Nice=$nice" dist/ballast-agent.service.in || echo "the agent wants nice $nice"
	grep -q '^SystemCallFilter=.*setpriority' dist/ballast-agent.service.in ||
		echo "the agent may not call setpriority"
	grep -q 'write(fd, "-1000", 5)' guest-agent/main.c &&
		grep -qx 'OOMScoreAdjust=-1000' dist/ballast-agent.service.in ||
		echo "the agent wants another oom_score_adj"
}

echo "1..10"
[ -n "$table" ] && [ -n "$pure" ] && missing='' || missing='no table, or no list of headers'
report "the_table_of_folders_is_found_in_ARCHITECTURE" "$missing"
report "every_folder_with_sources_is_in_the_table" "$(unlisted)"
report "every_folder_includes_only_what_the_table_allows" "$(forbidden)"
report "policy_includes_no_header_of_the_system_that_could_do_io_or_read_a_clock" "$(impure)"
report "headers_of_Xen_stand_in_its_backend_alone" "$(strangers_to_xen)"
report "only_event_loops_read_a_clock" "$(readers_of_clocks)"
report "every_header_is_complete_by_itself" "$(incomplete)"
report "README_names_every_package_that_a_build_needs" "$(unnamed)"
report "agents_core_needs_nothing_but_memory_and_string_functions" "$(not_freestanding)"
report "unit_of_the_agent_gives_it_what_it_asks_for_itself" "$(unit_differs)"
