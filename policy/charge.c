/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Charging: see charge.h. Puts page_counter and css together, so that pages and the references they
 * hold move in one batch, and tells memcg what was seen.
 *
 * A charging thread changes the counter, then looks at what was seen; the planner changes what was
 * seen, then looks at the counter. Whatever the order, one of the two finds the difference.
 */
#include <config.h>

#include "policy/charge.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

static struct memcg *of_counter(struct page_counter *counter)
{
	return (struct memcg *)((char *)counter - offsetof(struct memcg, memory));
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return pages_max(a, b) - pages_min(a, b);
}

/* Pushes the leaf, once, when its counter is an events target away. The caller has a reference. */
static void check_events(struct memcg *leaf)
{
	uint64_t usage = page_counter_read(&leaf->memory);
	void *head;

	if (distance(usage, atomic_u64_read(&leaf->seen_shared)) < CHARGE_EVENTS_TARGET)
		return;
	if (atomic_bool_swap(&leaf->dirty, true))
		return;

	/* The list's own: the group may be killed, and all else put, before it is drained. */
	css_get(&leaf->css);
	head = atomic_ptr_read(&leaf->tree->dirty);
	do {
		leaf->dirty_next = head;
	} while (!atomic_ptr_cas(&leaf->tree->dirty, &head, leaf));
}

/* Whether the tree, and so each group in it, stays within PAGES_UNLIMITED with so many more. */
static bool tree_has_room(const struct memcg_tree *tree, uint64_t counter_more, uint64_t seen_more)
{
	const struct memcg *root = tree->root;
	uint64_t usage = page_counter_read(&root->memory) + (uint64_t)tree->pending_usage;
	uint64_t seen = root->seen + (uint64_t)tree->pending_seen;

	return counter_more <= pages_sub(PAGES_UNLIMITED, usage) &&
	       seen_more <= pages_sub(PAGES_UNLIMITED, seen);
}

int charge_observed_later(struct memcg *leaf, uint64_t pages)
{
	uint64_t usage = page_counter_read(&leaf->memory);
	uint64_t more = pages_sub(pages, usage);
	uint64_t less = pages_sub(usage, pages);

	if (!tree_has_room(leaf->tree, more, pages_sub(pages, leaf->seen)))
		return -EINVAL;
	if (more > 0 && leaf->offline)
		return -ENODEV;

	if (more > 0)
		css_get_many(&leaf->css, more);
	if (more != less) {
		page_counter_move(&leaf->memory, (int64_t)(more - less));
		memcg_charge_later(leaf, (int64_t)(more - less));
	}
	memcg_see_later(leaf, pages);
	css_put_many(&leaf->css, less);
	return 0;
}

int charge_observed(struct memcg *leaf, uint64_t pages)
{
	int r = charge_observed_later(leaf, pages);

	memcg_carry(leaf->tree);
	return r;
}

int charge_try(struct memcg *leaf, uint64_t pages, struct memcg **ret_refused)
{
	struct page_counter *refused;
	int r;

	if (pages == 0 || pages > PAGES_UNLIMITED)
		return -EINVAL;
	if (!css_tryget_many(&leaf->css, pages))
		return -ENODEV;
	r = page_counter_try_charge(&leaf->memory, pages, &refused);
	if (r < 0) {
		css_put_many(&leaf->css, pages);
		*ret_refused = of_counter(refused);
		return r;
	}
	check_events(leaf);
	return 0;
}

int uncharge(struct memcg *leaf, uint64_t pages)
{
	if (pages == 0 || pages > page_counter_read(&leaf->memory))
		return -EINVAL;
	page_counter_uncharge(&leaf->memory, pages);
	check_events(leaf); /* while the pages' references are still held */
	css_put_many(&leaf->css, pages);
	return 0;
}

size_t charge_see_dirty(struct memcg_tree *tree)
{
	struct memcg *next, *leaf = atomic_ptr_swap(&tree->dirty, NULL);
	size_t n = 0;

	for (; leaf; leaf = next) {
		/* From the swap on another thread may push the leaf anew. */
		next = leaf->dirty_next;
		atomic_bool_swap(&leaf->dirty, false);
		memcg_see_later(leaf, page_counter_read(&leaf->memory));
		/* What was charged in between may have been compared with the old figure. */
		check_events(leaf);
		css_put(&leaf->css);
		n++;
	}
	memcg_carry(tree);
	return n;
}
