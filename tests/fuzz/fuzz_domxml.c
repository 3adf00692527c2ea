/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Any text as a domain's description, and as ballast's note in its metadata. */
#include <config.h>

#include "hv/libvirt/domxml.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct hv_info info = { 0 };
	uint64_t bytes;
	int r;

	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	r = domxml_parse(text, &info);
	assert(r == 0 || r == -EBADMSG || r == -E2BIG);
	if (r == 0) {
		assert(info.name && info.name[0]);
		hv_info_clear(&info);
	}
	r = domxml_parse_ceiling(text, &bytes);
	assert(r == 0 || r == -EBADMSG || r == -E2BIG);
	free(text);
	return 0;
}
