/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* batch: see batch.h. */
#include <config.h>

#include "policy/batch.h"

void batch_start(struct batch *batch, uint64_t wanted)
{
	*batch = (struct batch){ .wanted = wanted };
}

enum batch_next batch_next(const struct batch *batch, uint64_t at_most, uint64_t *ret_pages)
{
	uint64_t remaining = pages_sub(batch->wanted, batch->reclaimed);

	if (remaining == 0)
		return BATCH_DONE;
	if (batch->empty >= BATCH_RETRIES)
		return BATCH_GAVE_UP;

	if (at_most == 0)
		at_most = BATCH_MIN;
	*ret_pages = pages_min(pages_min(pages_max(remaining / 4, BATCH_MIN), remaining), at_most);
	return BATCH_GO;
}

void batch_result(struct batch *batch, uint64_t reclaimed)
{
	batch->reclaimed += reclaimed;
	if (reclaimed == 0)
		batch->empty++;
}
