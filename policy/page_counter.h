/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Page counters: pages in use, with a maximum, in a chain up to the root.
 *
 * Never blocks, allocates or logs. A charge goes to the counter and to every ancestor. Any thread
 * may charge and uncharge; the chain of parents must not change and must outlive every caller's
 * use. The maximum is set by the planner and may be read by anyone.
 *
 * Named and shaped after the kernel's mm/page_counter.c.
 */
#ifndef BALLAST_POLICY_PAGE_COUNTER_H
#define BALLAST_POLICY_PAGE_COUNTER_H

#include "policy/atomic.h"
#include "policy/pages.h"

struct page_counter {
	_Atomic uint64_t usage; /* pages; never above PAGES_UNLIMITED */
	_Atomic uint64_t max;	/* pages; PAGES_UNLIMITED: none */
	struct page_counter *parent;
};

/* parent may be NULL (a root). */
void page_counter_init(struct page_counter *counter, struct page_counter *parent);

uint64_t page_counter_read(const struct page_counter *counter);

/*
 * Charges all of the chain or nothing. Returns 0, or -ENOMEM with *ret_fail the counter whose
 * maximum refused. No counter is ever above its maximum because of this call, not even for an
 * instant (compare and swap), but where that is lowered in this instant: then the charge is taken
 * back, unless who lowered it sees it. A failed charge leaves every counter as it would be without
 * it; another thread may meanwhile be refused for pages that are given back here.
 */
int page_counter_try_charge(
	struct page_counter *counter, uint64_t pages, struct page_counter **ret_fail);

/*
 * Charges all of the chain past every maximum: who must not be refused. -ENOMEM, and nothing is
 * charged, only where a counter would pass PAGES_UNLIMITED.
 */
int page_counter_charge(struct page_counter *counter, uint64_t pages);

/* Takes back what was charged. Asserts that no counter goes below 0. */
void page_counter_uncharge(struct page_counter *counter, uint64_t pages);

/*
 * One counter alone, up or down, past every max: memory that is already used. Who calls this brings
 * it to the ancestors, too.
 */
void page_counter_move(struct page_counter *counter, int64_t pages);

void page_counter_set_max(struct page_counter *counter, uint64_t max);

#endif
