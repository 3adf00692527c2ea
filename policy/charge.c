/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Charging: see charge.h. Puts page_counter and css together, so that pages and the references they
 * hold move in one batch, and tells memcg what was seen.
 *
 * A charging thread changes the counter, then looks at what was seen; the planner's drain changes
 * what was seen, then looks at the counter. Whatever the order, one of the two finds the
 * difference.
 */
#include <config.h>

#include "policy/charge.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct charge_stocks {
	/* Who has asked and has no answer: as long as there is one, no stock is refilled. */
	_Atomic uint64_t hungry;
	struct memcg_tree *tree;
	size_t nr;
	struct charge_stock stocks[];
};

static struct memcg *of_counter(struct page_counter *counter)
{
	return (struct memcg *)((char *)counter - offsetof(struct memcg, memory));
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return pages_max(a, b) - pages_min(a, b);
}

void charge_tell(struct memcg *leaf)
{
	void *head;

	if (atomic_bool_swap(&leaf->dirty, true))
		return;

	/* The list's own: the group may be killed, and all else put, before it is drained. */
	css_get(&leaf->css);
	head = atomic_ptr_read(&leaf->tree->dirty);
	do {
		leaf->dirty_next = head;
	} while (!atomic_ptr_cas(&leaf->tree->dirty, &head, leaf));
}

/* Tells of the leaf when its counter is an events target away. The caller has a reference. */
static void check_events(struct memcg *leaf)
{
	uint64_t usage = page_counter_read(&leaf->memory);

	if (distance(usage, atomic_u64_read(&leaf->seen_shared)) >= CHARGE_EVENTS_TARGET)
		charge_tell(leaf);
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

int charge_see_later(struct memcg *leaf, uint64_t pages)
{
	if (!tree_has_room(leaf->tree, 0, pages_sub(pages, leaf->seen)))
		return -EINVAL;
	memcg_see_later(leaf, pages);
	/*
	 * What is seen may be older than what was drained before it. A killed one may have no
	 * reference left that another could be taken beside; see engine_charges().
	 */
	if (!leaf->offline)
		check_events(leaf);
	return 0;
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

int charge_direct(struct memcg *leaf, uint64_t pages, struct memcg **ret_refused)
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

int charge_over(struct memcg *leaf, uint64_t pages)
{
	if (pages == 0 || pages > PAGES_UNLIMITED)
		return -EINVAL;
	if (!css_tryget_many(&leaf->css, pages))
		return -ENODEV;
	if (page_counter_charge(&leaf->memory, pages) < 0) {
		css_put_many(&leaf->css, pages);
		return -EINVAL;
	}
	check_events(leaf);
	return 0;
}

static void give_back(struct memcg *leaf, uint64_t pages)
{
	page_counter_uncharge(&leaf->memory, pages);
	check_events(leaf); /* while the pages' references are still held */
	css_put_many(&leaf->css, pages);
}

int uncharge_direct(struct memcg *leaf, uint64_t pages)
{
	if (pages == 0 || pages > page_counter_read(&leaf->memory))
		return -EINVAL;
	give_back(leaf, pages);
	return 0;
}

/* --- stocks --- */

int charge_stocks_new(struct memcg_tree *tree, size_t nr, struct charge_stocks **ret_stocks)
{
	struct charge_stocks *stocks;
	size_t size = sizeof(*stocks) + nr * sizeof(stocks->stocks[0]);

	if (nr == 0 || nr > CHARGE_STOCKS_MAX)
		return -EINVAL;
	if (tree->stocks)
		return -EEXIST;
	stocks = aligned_alloc(_Alignof(struct charge_stocks), size);
	if (!stocks)
		return -ENOMEM;
	memset(stocks, 0, size);
	atomic_init(&stocks->hungry, 0);
	stocks->tree = tree;
	stocks->nr = nr;
	for (size_t i = 0; i < nr; i++) {
		atomic_init(&stocks->stocks[i].state, CHARGE_STOCK_IDLE);
		stocks->stocks[i].stocks = stocks;
	}
	tree->stocks = stocks;
	*ret_stocks = stocks;
	return 0;
}

void charge_stocks_free(struct charge_stocks *stocks)
{
	if (!stocks)
		return;
	for (size_t i = 0; i < stocks->nr; i++)
		assert(atomic_u64_read(&stocks->stocks[i].state) == CHARGE_STOCK_IDLE);
	stocks->tree->stocks = NULL;
	free(stocks);
}

struct charge_stock *charge_stocks_get(struct charge_stocks *stocks, size_t n)
{
	assert(n < stocks->nr);
	return &stocks->stocks[n];
}

static void slot_empty(struct charge_stock *stock, size_t n)
{
	uint64_t pages = stock->slots[n].pages;

	stock->slots[n].pages = 0;
	if (pages > 0)
		give_back(stock->slots[n].leaf, pages);
}

static void stock_empty(struct charge_stock *stock)
{
	for (size_t i = 0; i < CHARGE_STOCK_GROUPS; i++)
		slot_empty(stock, i);
}

/*
 * Serves a request and wakes. The state is set last: what is asked for before that is given back
 * already, what is asked for later is seen later, and in between nothing is refilled.
 */
static void stock_wake(struct charge_stock *stock)
{
	uint64_t state = atomic_u64_read(&stock->state);

	if (state == CHARGE_STOCK_ACTIVE)
		return;
	stock_empty(stock);
	atomic_u64_set(&stock->state, CHARGE_STOCK_ACTIVE);
}

static void stock_sated(struct charge_stock *stock)
{
	if (!stock->hungry)
		return;
	stock->hungry = false;
	atomic_u64_sub(&stock->stocks->hungry, 1);
}

void charge_stock_serve(struct charge_stock *stock)
{
	if (atomic_u64_read(&stock->state) == CHARGE_STOCK_ASKED)
		stock_wake(stock);
}

void charge_stock_idle(struct charge_stock *stock)
{
	stock_sated(stock);
	stock_empty(stock);
	atomic_u64_set(&stock->state, CHARGE_STOCK_IDLE);
}

/* Asks all but one (NULL: all) for what they have; whether one has not given it yet. */
static bool ask_others(struct charge_stocks *stocks, const struct charge_stock *but, bool anew)
{
	bool waits = false;

	for (size_t i = 0; i < stocks->nr; i++) {
		struct charge_stock *other = &stocks->stocks[i];
		uint64_t state = atomic_u64_read(&other->state);

		if (other == but)
			continue;
		if (anew && state == CHARGE_STOCK_ACTIVE &&
			atomic_u64_cas(&other->state, &state, CHARGE_STOCK_ASKED))
			state = CHARGE_STOCK_ASKED;
		waits |= state == CHARGE_STOCK_ASKED;
	}
	return waits;
}

/* Brings the leaf to the front; where it is new, what was charged longest ago goes. */
static void slot_front(struct charge_stock *stock, struct memcg *leaf)
{
	size_t n = 0;
	uint64_t pages;

	while (n < CHARGE_STOCK_GROUPS - 1 && stock->slots[n].leaf != leaf)
		n++;
	if (stock->slots[n].leaf != leaf)
		slot_empty(stock, n);
	pages = stock->slots[n].pages;
	for (; n > 0; n--)
		stock->slots[n] = stock->slots[n - 1];
	stock->slots[0].leaf = leaf;
	stock->slots[0].pages = pages;
}

/*
 * Not even the exact size fits. What this stock has of others under the same max goes first, then
 * the others are asked. Once they have given all, which none refills while somebody is hungry, the
 * answer is final.
 */
static int charge_hungry(
	struct charge_stock *stock, struct memcg *leaf, uint64_t pages, struct memcg **ret_refused)
{
	bool anew = !stock->hungry;
	int r;

	if (anew) {
		stock->hungry = true;
		atomic_u64_add(&stock->stocks->hungry, 1);
	}
	stock_empty(stock);
	if (ask_others(stock->stocks, stock, anew)) {
		r = charge_direct(leaf, pages, ret_refused);
		if (r == -ENOMEM)
			return -EAGAIN;
	} else {
		r = charge_direct(leaf, pages, ret_refused);
	}
	stock_sated(stock);
	return r;
}

/* The front slot is the leaf's and does not have so many. */
static int charge_refill(
	struct charge_stock *stock, struct memcg *leaf, uint64_t pages, struct memcg **ret_refused)
{
	uint64_t *stocked = &stock->slots[0].pages;
	struct memcg *refused;
	int r = -ENOMEM;

	if (pages <= CHARGE_BATCH && !atomic_u64_read(&stock->stocks->hungry)) {
		r = charge_direct(leaf, CHARGE_BATCH, &refused);
		if (r == 0)
			*stocked += CHARGE_BATCH - pages;
	}
	if (r == -ENOMEM) {
		r = charge_direct(leaf, pages - *stocked, &refused);
		if (r == 0)
			*stocked = 0;
	}
	if (r == -ENOMEM)
		return charge_hungry(stock, leaf, pages, ret_refused);
	if (r == -ENODEV)
		slot_empty(stock, 0);
	stock_sated(stock);
	return r;
}

static __attribute__((noinline)) int charge_slow(
	struct charge_stock *stock, struct memcg *leaf, uint64_t pages, struct memcg **ret_refused)
{
	if (pages == 0 || pages > PAGES_UNLIMITED)
		return -EINVAL;
	stock_wake(stock);
	slot_front(stock, leaf);
	if (pages > stock->slots[0].pages)
		return charge_refill(stock, leaf, pages, ret_refused);
	stock->slots[0].pages -= pages;
	stock_sated(stock);
	return 0;
}

int charge_try(
	struct charge_stock *stock, struct memcg *leaf, uint64_t pages, struct memcg **ret_refused)
{
	/* 0 pages wrap and go the slow way, too. */
	if (atomic_u64_read(&stock->state) != CHARGE_STOCK_ACTIVE || stock->slots[0].leaf != leaf ||
		pages - 1 >= stock->slots[0].pages)
		return charge_slow(stock, leaf, pages, ret_refused);
	stock->slots[0].pages -= pages;
	return 0;
}

static __attribute__((noinline)) int uncharge_slow(
	struct charge_stock *stock, struct memcg *leaf, uint64_t pages)
{
	stock_wake(stock);
	slot_front(stock, leaf);
	/* What this stock has is not the caller's to give. */
	if (pages == 0 ||
		pages > pages_sub(page_counter_read(&leaf->memory), stock->slots[0].pages))
		return -EINVAL;
	if (pages > CHARGE_BATCH || css_killed(&leaf->css) ||
		atomic_u64_read(&stock->stocks->hungry)) {
		give_back(leaf, pages);
		return 0;
	}
	if (pages > CHARGE_BATCH - stock->slots[0].pages)
		slot_empty(stock, 0);
	stock->slots[0].pages += pages;
	return 0;
}

int uncharge(struct charge_stock *stock, struct memcg *leaf, uint64_t pages)
{
	uint64_t stocked = stock->slots[0].pages;

	/* Into an empty slot goes nothing by this way: that is a refill. */
	if (atomic_u64_read(&stock->state) != CHARGE_STOCK_ACTIVE || stock->slots[0].leaf != leaf ||
		stocked == 0 || pages - 1 >= CHARGE_BATCH - stocked ||
		stocked + pages > page_counter_read(&leaf->memory))
		return uncharge_slow(stock, leaf, pages);
	stock->slots[0].pages = stocked + pages;
	return 0;
}

int charge_kill(struct memcg *memcg)
{
	struct memcg_tree *tree = memcg->tree;
	int r = memcg_kill(memcg);

	if (r == 0 && tree->stocks)
		ask_others(tree->stocks, NULL, true);
	return r;
}

size_t charge_drain(struct memcg_tree *tree, struct charge_seen *ret_seen, size_t nr_max)
{
	struct memcg *next, *leaf = atomic_ptr_swap(&tree->dirty, NULL);
	size_t n = 0;

	for (; leaf; leaf = next) {
		/* From the swap on another thread may push the leaf anew. */
		next = leaf->dirty_next;
		atomic_bool_swap(&leaf->dirty, false);
		assert(n < nr_max);
		ret_seen[n] = (struct charge_seen){ leaf->id, page_counter_read(&leaf->memory) };
		atomic_u64_set(&leaf->seen_shared, ret_seen[n++].pages);
		/* What was charged in between may have been compared with the old figure. */
		check_events(leaf);
		css_put(&leaf->css);
	}
	return n;
}
