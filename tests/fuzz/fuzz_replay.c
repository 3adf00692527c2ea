/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Any bytes as a recording: refused with words, or replayed; never a crash, a leak or a long wait.
 */
#include <config.h>

#include "hv/replay.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct replay_result result;
	FILE *stream;
	int r;

	if (size == 0)
		return 0;
	stream = fmemopen((void *)(uintptr_t)data, size, "r");
	assert(stream);
	r = replay(stream, &result);
	fclose(stream);

	assert(r == 0 || r == -EBADMSG || r == -EPROTO);
	assert(memchr(result.what, '\0', sizeof(result.what)));
	assert(r == 0 || (result.first_line > 0 && result.what[0]));
	assert((result.differing > 0) == (r == 0 && result.what[0]) || r != 0);
	return 0;
}
