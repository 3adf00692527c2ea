# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# After the squeeze of case 10: what was cut may be used again, and costs nothing until it is.
. "$(dirname "$0")/common.sh"

for name in batch spare; do
	expect "$name was cut in the squeeze" "$(lowest $name 0 2)" -lt $((${STORY_MIB[$name]} - STORY_NOISE))
	expect "$name has its ceiling in actual" "$(guest_actual $name)" -eq "${STORY_MIB[$name]}"
	expect "$name stays as small as the squeeze made it" "$(guest_resident $name)" \
		-le $(($(at 2 $name resident) + STORY_NOISE))
done
finish
