/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Any message as a VMM's layout: what is taken keeps the bounds; what is refused has words. */
#include <config.h>

#include "hv/pager/pager.h"

#include <assert.h>
#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pager_region regions[PAGER_REGIONS_MAX];
	const char *why = NULL;
	uint64_t pages = 0;
	size_t nr = 77;
	int r = pager_parse((const char *)data, size, regions, &nr, &why);

	if (r < 0) {
		assert((r == -EINVAL && why) || r == -ENOMEM);
		assert(nr == 77);
		return 0;
	}
	assert(nr > 0 && nr <= PAGER_REGIONS_MAX);
	for (size_t i = 0; i < nr; i++) {
		assert(regions[i].pages > 0 && regions[i].base % POLICY_PAGE_SIZE == 0);
		pages += regions[i].pages;
	}
	assert(pages <= PAGER_PAGES_MAX);
	return 0;
}
