/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Page counters: see page_counter.h. Charged through charge.c, limited through memcg.c. */
#include <config.h>

#include "policy/page_counter.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

void page_counter_init(struct page_counter *counter, struct page_counter *parent)
{
	atomic_init(&counter->usage, 0);
	atomic_init(&counter->max, PAGES_UNLIMITED);
	counter->parent = parent;
}

uint64_t page_counter_read(const struct page_counter *counter)
{
	return atomic_u64_read(&counter->usage);
}

/* Takes pages from counter and its ancestors below end (NULL: from all). */
static void take_back(struct page_counter *counter, struct page_counter *end, uint64_t pages)
{
	for (struct page_counter *c = counter; c != end; c = c->parent) {
		uint64_t before = atomic_u64_sub(&c->usage, pages);

		assert(before >= pages);
	}
}

/* One counter; false where its maximum, or with past_max PAGES_UNLIMITED, refuses. */
static bool try_one(struct page_counter *counter, uint64_t pages, bool past_max)
{
	uint64_t usage = atomic_u64_read(&counter->usage);
	uint64_t max = PAGES_UNLIMITED;

	do {
		if (!past_max)
			max = atomic_u64_read(&counter->max);
		if (pages > max || usage > max - pages)
			return false;
	} while (!atomic_u64_cas(&counter->usage, &usage, usage + pages));
	if (past_max || usage + pages <= atomic_u64_read(&counter->max))
		return true;
	/* Lowered in between: who did looks at the usage afterwards, and this at the maximum. */
	take_back(counter, counter->parent, pages);
	return false;
}

/* All of the chain or nothing; NULL, or the counter that refuses. */
static struct page_counter *try_all(struct page_counter *counter, uint64_t pages, bool past_max)
{
	assert(pages > 0);
	for (struct page_counter *c = counter; c; c = c->parent) {
		if (!try_one(c, pages, past_max)) {
			take_back(counter, c, pages);
			return c;
		}
	}
	return NULL;
}

int page_counter_try_charge(
	struct page_counter *counter, uint64_t pages, struct page_counter **ret_fail)
{
	struct page_counter *refused = try_all(counter, pages, false);

	if (!refused)
		return 0;
	*ret_fail = refused;
	return -ENOMEM;
}

int page_counter_charge(struct page_counter *counter, uint64_t pages)
{
	return try_all(counter, pages, true) ? -ENOMEM : 0;
}

void page_counter_uncharge(struct page_counter *counter, uint64_t pages)
{
	take_back(counter, NULL, pages);
}

void page_counter_move(struct page_counter *counter, int64_t pages)
{
	uint64_t after = atomic_u64_add(&counter->usage, (uint64_t)pages) + (uint64_t)pages;

	assert(after <= PAGES_UNLIMITED);
}

void page_counter_set_max(struct page_counter *counter, uint64_t max)
{
	assert(max <= PAGES_UNLIMITED);
	atomic_u64_set(&counter->max, max);
}
