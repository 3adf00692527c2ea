# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# For scripts that speak TAP about command lines: sourced, with number=0 from there on.
number=0

# check NAME STATUS WORDS COMMAND...: it ends with that status and says the words.
check() {
	local name=$1 status=$2 words=$3 said got
	shift 3
	said=$("$@" 2>&1)
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
