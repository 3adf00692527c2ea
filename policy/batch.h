/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * batch: a large reclaim in decaying batches (larger-batches-proactive-reclaim: batch size
 * (nr_to_reclaim - nr_reclaimed) / 4, MAX_RECLAIM_RETRIES 16).
 *
 * A quarter of what remains, but at least BATCH_MIN pages (SWAP_CLUSTER_MAX) unless less remains,
 * and at most what the caller reclaims in its time slice. An empty batch is tried again, sixteen
 * times in total over the whole reclaim. Before each, and so before the last, the caller reads
 * fresh figures; it ends when it likes. Pure: the caller reclaims and tells.
 */
#ifndef BALLAST_POLICY_BATCH_H
#define BALLAST_POLICY_BATCH_H

#include "policy/pages.h"

#define BATCH_MIN     UINT64_C(32)
#define BATCH_RETRIES 16u

struct batch {
	uint64_t wanted;    /* pages, in all */
	uint64_t reclaimed; /* so far; may pass wanted */
	unsigned int empty; /* tries that brought nothing */
};

enum batch_next {
	BATCH_GO,      /* reclaim *ret_pages, then batch_result() */
	BATCH_DONE,    /* all of it came, or more */
	BATCH_GAVE_UP, /* sixteen tries brought nothing: -EAGAIN in the kernel's terms */
};

void batch_start(struct batch *batch, uint64_t wanted);
/* at_most: what fits in the caller's time slice, pages; 0 counts as BATCH_MIN. */
enum batch_next batch_next(const struct batch *batch, uint64_t at_most, uint64_t *ret_pages);
/* What the batch brought; 0 counts as an empty try. */
void batch_result(struct batch *batch, uint64_t reclaimed);

#endif
