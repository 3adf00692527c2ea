/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the engine does with the dirty list in each tick, for tests that have no engine. */
#ifndef BALLAST_TESTS_DRAIN_H
#define BALLAST_TESTS_DRAIN_H

#include <assert.h>

#include "policy/charge.h"

#define DRAIN_GROUPS 64

/* Brings seen up to the counters for every group on the dirty list; returns how many. */
static inline size_t drain_and_see(struct memcg_tree *tree)
{
	struct charge_seen seen[DRAIN_GROUPS];
	size_t nr = charge_drain(tree, seen, DRAIN_GROUPS);

	for (size_t i = 0; i < nr; i++) {
		int r = charge_see_later(memcg_find(tree, seen[i].id), seen[i].pages);

		assert(r == 0);
	}
	memcg_carry(tree);
	return nr;
}

#endif
