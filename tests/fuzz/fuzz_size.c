/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Any text as a size: what is taken comes back from its exact text; what is refused has words. */
#include <config.h>

#include "common/size.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	char buf[128];
	uint64_t bytes = 7, again = 7;
	int r;

	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	r = size_parse(text, &bytes);
	if (r == 0) {
		assert(size_parse(size_format_exact(bytes, buf, sizeof(buf)), &again) == 0);
		assert(again == bytes);
		assert(strlen(size_format(bytes, buf, sizeof(buf))) < SIZE_TEXT);
	} else {
		assert((r == -EINVAL || r == -ERANGE) && bytes == 7);
		assert(size_parse_error(text, r, buf, sizeof(buf))[0]);
	}
	free(text);
	return 0;
}
