/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memcg: see memcg.h. Above page_counter and css, below charge (which moves pages) and reclaim
 * (which walks). Every figure that the children's add up to is kept by one walk up, carry_up().
 */
#include <config.h>

#include "policy/memcg.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* A power of two, so that a mask picks the bucket; doubled when there are as many groups. */
#define BUCKETS_AT_FIRST 16

/* --- groups by id ------------------------------------------------------------------------- */

static struct memcg **bucket_of(struct memcg **buckets, size_t nr_buckets, uint64_t id)
{
	/* Ids count up or are hashes: either is spread as it is. Neighbours stay neighbours. */
	return &buckets[(id ^ id >> 32) & (nr_buckets - 1)];
}

/* A larger table is only faster: where there is no memory for it the old one stays. */
static void hash_grow(struct memcg_tree *tree)
{
	size_t nr_buckets = tree->nr_buckets * 2;
	struct memcg **buckets = calloc(nr_buckets, sizeof(struct memcg *));

	if (!buckets)
		return;
	for (size_t i = 0; i < tree->nr_buckets; i++) {
		struct memcg *next;

		for (struct memcg *m = tree->buckets[i]; m; m = next) {
			struct memcg **bucket = bucket_of(buckets, nr_buckets, m->id);

			next = m->hash_next;
			m->hash_next = *bucket;
			*bucket = m;
		}
	}
	free(tree->buckets);
	tree->buckets = buckets;
	tree->nr_buckets = nr_buckets;
}

static void hash_add(struct memcg_tree *tree, struct memcg *memcg)
{
	struct memcg **bucket;

	if (tree->nr_groups == tree->nr_buckets)
		hash_grow(tree);
	bucket = bucket_of(tree->buckets, tree->nr_buckets, memcg->id);
	memcg->hash_next = *bucket;
	*bucket = memcg;
	tree->nr_groups++;
	tree->levels[memcg->level].nr_groups++;
}

static void hash_del(struct memcg_tree *tree, struct memcg *memcg)
{
	struct memcg **link = bucket_of(tree->buckets, tree->nr_buckets, memcg->id);

	while (*link != memcg)
		link = &(*link)->hash_next;
	*link = memcg->hash_next;
	tree->nr_groups--;
	tree->levels[memcg->level].nr_groups--;
}

void memcg_ahead(const struct memcg_tree *tree, uint64_t id, unsigned int stage)
{
	struct memcg *const *bucket = bucket_of(tree->buckets, tree->nr_buckets, id);
	const struct memcg *m = stage ? *bucket : NULL;

	if (stage == 0)
		ahead(bucket, 0, 0);
	else
		ahead(stage > 1 && m && m->id != id ? m->hash_next : m, 0, 2);
}

struct memcg *memcg_find(const struct memcg_tree *tree, uint64_t id)
{
	struct memcg *m = *bucket_of(tree->buckets, tree->nr_buckets, id);

	while (m && m->id != id)
		m = m->hash_next;
	return m;
}

/* --- lists of siblings --------------------------------------------------------------------- */

static void link_online(struct memcg *parent, struct memcg *child)
{
	child->next = NULL;
	child->prev = parent->children_tail;
	if (child->prev)
		child->prev->next = child;
	else
		parent->children = child;
	parent->children_tail = child;
	parent->nr_children++;
	parent->nr_below++;
}

static void link_offline(struct memcg *parent, struct memcg *child)
{
	child->prev = NULL;
	child->next = parent->offline_children;
	if (child->next)
		child->next->prev = child;
	parent->offline_children = child;
	parent->nr_below++;
}

static void unlink_child(struct memcg *parent, struct memcg *child)
{
	if (child->prev)
		child->prev->next = child->next;
	else if (child->offline)
		parent->offline_children = child->next;
	else
		parent->children = child->next;
	if (child->next)
		child->next->prev = child->prev;
	else if (!child->offline)
		parent->children_tail = child->prev;
	if (!child->offline)
		parent->nr_children--;
	parent->nr_below--;
}

static bool is_leaf(const struct memcg *memcg)
{
	return !memcg->nr_below;
}

/* --- what is carried up -------------------------------------------------------------------- */

/* Links the group into its parent's excess_children, or out, as its figures have it. */
static void relink_excess(struct memcg *memcg)
{
	struct memcg *parent = memcg->parent;
	bool wanted = memcg->excess || memcg->nr_excess;

	if (!parent || wanted == memcg->excess_linked)
		return;
	memcg->excess_linked = wanted;
	if (wanted) {
		memcg->excess_next = parent->excess_children;
		if (memcg->excess_next)
			memcg->excess_next->excess_prev = memcg;
		parent->excess_children = memcg;
		return;
	}
	if (memcg->excess_prev)
		memcg->excess_prev->excess_next = memcg->excess_next;
	else
		parent->excess_children = memcg->excess_next;
	if (memcg->excess_next)
		memcg->excess_next->excess_prev = memcg->excess_prev;
	memcg->excess_next = memcg->excess_prev = NULL;
}

/* What the group claims to be protected: of a knob, what it uses. */
static uint64_t claimed_min(const struct memcg *memcg)
{
	return pages_min(memcg->seen, memcg->knobs.min);
}

static uint64_t claimed_low(const struct memcg *memcg)
{
	return pages_min(memcg->seen, memcg->knobs.low);
}

/* Around each change of seen or knobs: takes the claims from the parent's sums, and adds them. */
static void claim(struct memcg *memcg, int sign)
{
	struct memcg *parent = memcg->parent;

	if (!parent || !(memcg->knobs.min | memcg->knobs.low))
		return;
	parent->children_min += (uint64_t)sign * claimed_min(memcg);
	parent->children_low += (uint64_t)sign * claimed_low(memcg);
}

/* What waits for the group, which is then on its level's list. */
static struct memcg_pending *pending_of(struct memcg *memcg)
{
	struct memcg_pending *pending = &memcg->pending;
	struct memcg_tree *tree = memcg->tree;
	struct memcg_level *level = &tree->levels[memcg->level];

	if (pending->on)
		return pending;
	pending->on = true;
	level->pending[level->nr_pending++] = memcg;
	if (tree->pending_levels <= memcg->level)
		tree->pending_levels = memcg->level + 1;
	return pending;
}

/* What is seen of the group itself changes by delta; for its parent it waits. */
static void see_more(struct memcg *memcg, int64_t delta)
{
	int more_excess = -(int)memcg->excess;

	claim(memcg, -1);
	memcg->seen += (uint64_t)delta;
	claim(memcg, 1);
	assert(memcg->seen <= INT64_MAX);
	memcg->excess = memcg_excess(memcg) > 0;
	more_excess += (int)memcg->excess;
	relink_excess(memcg);
	if (memcg->parent && (delta || more_excess)) {
		struct memcg_pending *up = pending_of(memcg->parent);

		up->seen += delta;
		up->nr_excess += more_excess;
	}
}

static void owe_more(struct memcg *memcg, int64_t pages, int64_t gain)
{
	memcg->owed += (uint64_t)pages;
	memcg->owed_gain += (uint64_t)gain;
	assert(memcg->owed <= INT64_MAX && memcg->owed_gain <= memcg->owed);
	if (memcg->parent && (pages || gain)) {
		struct memcg_pending *up = pending_of(memcg->parent);

		up->owed += pages;
		up->owed_gain += gain;
	}
}

/* The group itself has it; what is left for its parent waits there. */
static void carry_one(struct memcg *memcg)
{
	struct memcg_pending p = memcg->pending;

	memcg->pending = (struct memcg_pending){ 0 };
	if (p.usage) {
		page_counter_move(&memcg->memory, p.usage);
		if (memcg->parent)
			pending_of(memcg->parent)->usage += p.usage;
	}
	if (p.nr_excess && memcg->parent)
		pending_of(memcg->parent)->nr_excess += p.nr_excess;
	memcg->nr_excess += (size_t)p.nr_excess;
	if (p.seen || p.nr_excess)
		see_more(memcg, p.seen);
	if (p.owed || p.owed_gain)
		owe_more(memcg, p.owed, p.owed_gain);
}

void memcg_carry(struct memcg_tree *tree)
{
	while (tree->pending_levels) {
		struct memcg_level *level = &tree->levels[tree->pending_levels - 1];

		for (size_t i = 0; i < level->nr_pending; i++) {
			if (i + AHEAD_ROUNDS < level->nr_pending)
				ahead(level->pending[i + AHEAD_ROUNDS], 0, 3);
			carry_one(level->pending[i]);
		}
		level->nr_pending = 0;
		tree->pending_levels--;
	}
	tree->pending_usage = tree->pending_seen = 0;
}

void memcg_see_later(struct memcg *leaf, uint64_t pages)
{
	int64_t delta = (int64_t)(pages - leaf->seen);

	assert(is_leaf(leaf) && pages <= PAGES_UNLIMITED);
	if (!delta)
		return; /* seen_shared is the same all the time */
	atomic_u64_set(&leaf->seen_shared, pages);
	if (leaf->parent)
		leaf->tree->pending_seen += delta;
	see_more(leaf, delta);
}

void memcg_see(struct memcg *leaf, uint64_t pages)
{
	memcg_see_later(leaf, pages);
	memcg_carry(leaf->tree);
}

void memcg_owe_later(struct memcg *leaf, int64_t pages, int64_t gain)
{
	owe_more(leaf, pages, gain);
}

void memcg_owe(struct memcg *leaf, int64_t pages, int64_t gain)
{
	owe_more(leaf, pages, gain);
	memcg_carry(leaf->tree);
}

void memcg_charge_later(struct memcg *leaf, int64_t pages)
{
	if (!leaf->parent)
		return;
	leaf->tree->pending_usage += pages;
	pending_of(leaf->parent)->usage += pages;
}

int memcg_set_knobs(struct memcg *memcg, const struct memcg_knobs *knobs)
{
	if (knobs->soft_limit > PAGES_UNLIMITED || knobs->low > PAGES_UNLIMITED ||
		knobs->max > PAGES_UNLIMITED || knobs->min > knobs->max)
		return -EINVAL;
	if (memcg->offline)
		return -ENODEV;
	memcg_carry(memcg->tree);
	claim(memcg, -1);
	memcg->knobs = *knobs;
	claim(memcg, 1);
	page_counter_set_max(&memcg->memory, knobs->max);
	see_more(memcg, 0);
	memcg_carry(memcg->tree);
	return 0;
}

/* --- life ----------------------------------------------------------------------------------- */

/* Room for one more among those of the level that have something to be carried. */
static int reserve_level(struct memcg_level *level)
{
	size_t max = level->max ? level->max * 2 : 1;
	struct memcg **pending;

	if (level->nr_groups < level->max)
		return 0;
	pending = realloc(level->pending, max * sizeof(struct memcg *));
	if (!pending)
		return -ENOMEM;
	level->pending = pending;
	level->max = max;
	return 0;
}

/* And for one more in a plan. */
static int reserve_visits(struct memcg_tree *tree)
{
	size_t max = tree->max_visits ? tree->max_visits * 2 : 16;
	struct memcg_visit *visits;

	if (tree->nr_groups < tree->max_visits)
		return 0;
	visits = realloc(tree->visits, max * sizeof(*visits));
	if (!visits)
		return -ENOMEM;
	tree->visits = visits;
	tree->max_visits = max;
	return 0;
}

/* Neither linked nor counted yet. */
static int memcg_alloc(
	struct memcg_tree *tree, struct memcg *parent, uint64_t id, struct memcg **ret_memcg)
{
	unsigned int level = parent ? parent->level + 1 : 0;
	struct memcg *memcg;

	if (reserve_level(&tree->levels[level]) || reserve_visits(tree))
		return -ENOMEM;
	memcg = slab_get(&tree->levels[level].slab);
	if (!memcg)
		return -ENOMEM;
	if (level) {
		memcg->carries = slab_get(&tree->levels[level].carries);
		if (!memcg->carries) {
			slab_put(&tree->levels[level].slab, memcg);
			return -ENOMEM;
		}
	}
	memcg->level = (unsigned char)level;
	memcg->id = id;
	memcg->tree = tree;
	memcg->parent = parent;
	memcg->knobs = MEMCG_KNOBS_NONE;
	page_counter_init(&memcg->memory, parent ? &parent->memory : NULL);
	atomic_init(&memcg->seen_shared, 0);
	atomic_init(&memcg->dirty, false);
	if (parent)
		css_init(&memcg->css, &tree->released);
	else
		css_init_root(&memcg->css);
	*ret_memcg = memcg;
	return 0;
}

int memcg_tree_new(struct memcg_tree **ret_tree)
{
	struct memcg_tree *tree = calloc(1, sizeof(*tree));
	int r = -ENOMEM;

	if (!tree)
		return r;
	for (size_t i = 0; i <= MEMCG_MAX_DEPTH; i++) {
		slab_init(&tree->levels[i].slab, sizeof(struct memcg));
		slab_init(&tree->levels[i].carries, i * sizeof(*tree->root->carries));
	}
	css_queue_init(&tree->released);
	atomic_init(&tree->dirty, NULL);
	tree->nr_buckets = BUCKETS_AT_FIRST;
	tree->buckets = calloc(tree->nr_buckets, sizeof(struct memcg *));
	if (!tree->buckets)
		goto fail;
	r = memcg_alloc(tree, NULL, MEMCG_ROOT_ID, &tree->root);
	if (r < 0)
		goto fail;
	hash_add(tree, tree->root);
	*ret_tree = tree;
	return 0;

fail:
	memcg_tree_free(tree);
	return r;
}

void memcg_tree_free(struct memcg_tree *tree)
{
	if (!tree)
		return;
	for (size_t i = 0; i <= MEMCG_MAX_DEPTH; i++) {
		free(tree->levels[i].pending);
		slab_drop(&tree->levels[i].slab);
		slab_drop(&tree->levels[i].carries);
	}
	free(tree->visits);
	free(tree->buckets);
	free(tree);
}

int memcg_new(struct memcg_tree *tree, struct memcg *parent, uint64_t id, struct memcg **ret_memcg)
{
	struct memcg *memcg;
	int r;

	assert(parent->tree == tree);
	if (id == 0 || parent->vm)
		return -EINVAL;
	if (is_leaf(parent) &&
		(parent->seen > 0 || parent->owed > 0 || page_counter_read(&parent->memory) > 0))
		return -EINVAL;
	if (parent->offline)
		return -ENODEV;
	if (parent->level >= MEMCG_MAX_DEPTH)
		return -ELOOP;
	if (memcg_find(tree, id))
		return -EEXIST;
	r = memcg_alloc(tree, parent, id, &memcg);
	if (r < 0)
		return r;
	css_get(&parent->css);
	link_online(parent, memcg);
	hash_add(tree, memcg);
	*ret_memcg = memcg;
	return 0;
}

int memcg_kill(struct memcg *memcg)
{
	const struct memcg_knobs none = MEMCG_KNOBS_NONE;
	int r;

	if (!memcg->parent)
		return -EINVAL;
	if (memcg->children)
		return -EBUSY;
	/* Without knobs it is in no excess and protects nothing; killed before: -ENODEV. */
	r = memcg_set_knobs(memcg, &none);
	if (r < 0)
		return r;
	unlink_child(memcg->parent, memcg);
	memcg->offline = true;
	link_offline(memcg->parent, memcg);
	css_kill(&memcg->css);
	return 0;
}

static void reap_one(struct memcg *memcg)
{
	struct memcg *parent = memcg->parent;

	/* Each page and each child had a reference, so none is left; what was seen may lag. */
	assert(is_leaf(memcg) && page_counter_read(&memcg->memory) == 0);
	memcg_see(memcg, 0);
	memcg_owe(memcg, -(int64_t)memcg->owed, -(int64_t)memcg->owed_gain);
	unlink_child(parent, memcg);
	hash_del(memcg->tree, memcg);
	slab_put(&memcg->tree->levels[memcg->level].carries, memcg->carries);
	slab_put(&memcg->tree->levels[memcg->level].slab, memcg);
	css_put(&parent->css);
}

size_t memcg_reap(struct memcg_tree *tree)
{
	struct css *css, *next;
	size_t n = 0;

	/* Again for the parents that were only held by their children: at most once a level. */
	while ((css = css_queue_take(&tree->released))) {
		for (; css; css = next) {
			next = css->release_next;
			reap_one((struct memcg *)((char *)css - offsetof(struct memcg, css)));
			n++;
		}
	}
	return n;
}

/* --- questions ------------------------------------------------------------------------------ */

uint64_t memcg_excess(const struct memcg *memcg)
{
	if (memcg->knobs.soft_limit == PAGES_UNLIMITED)
		return 0;
	return pages_sub(memcg->seen, memcg->knobs.soft_limit);
}

bool memcg_in_excess(const struct memcg *memcg, const struct memcg *root)
{
	const struct memcg *m = memcg;

	while (!m->excess && m != root)
		m = m->parent;
	return m->excess;
}

enum memcg_filter memcg_soft_reclaim_eligible(const struct memcg *memcg, bool in_excess)
{
	if (in_excess)
		return MEMCG_VISIT;
	return memcg->nr_excess > 0 ? MEMCG_SKIP : MEMCG_SKIP_TREE;
}

bool memcg_limit_set(const struct memcg *memcg, const struct memcg *root)
{
	const struct memcg *m = memcg;

	while (m->knobs.soft_limit == PAGES_UNLIMITED && m != root)
		m = m->parent;
	return m->knobs.soft_limit != PAGES_UNLIMITED;
}

bool memcg_is_below(const struct memcg *memcg, const struct memcg *root)
{
	const struct memcg *m = memcg;

	while (m->level > root->level)
		m = m->parent;
	return m == root;
}

/* What of a claim holds for a group that uses usage, where its parent has parent_has. */
static uint64_t effective_protection(uint64_t usage, uint64_t claimed, uint64_t parent_usage,
	uint64_t parent_has, uint64_t siblings)
{
	if (!parent_has) /* mostly: and two divisions less a group and plan */
		return 0;
	if (siblings > parent_has)
		return pages_mul_div(claimed, parent_has, siblings);
	if (parent_usage <= siblings)
		return claimed;
	/* parent_has is at most parent_usage, so nobody gets more than it uses. */
	return claimed +
	       pages_mul_div(parent_has - siblings, usage - claimed, parent_usage - siblings);
}

void memcg_protect(struct memcg *memcg, const struct memcg *root)
{
	const struct memcg *parent = memcg->parent;

	if (memcg == root) {
		memcg->plan.protected_min = memcg->plan.protected_low = 0;
		return;
	}
	if (parent == root) {
		memcg->plan.protected_min = claimed_min(memcg);
		memcg->plan.protected_low = claimed_low(memcg);
		return;
	}
	memcg->plan.protected_min = effective_protection(memcg->seen, claimed_min(memcg),
		parent->seen, parent->plan.protected_min, parent->children_min);
	memcg->plan.protected_low = effective_protection(memcg->seen, claimed_low(memcg),
		parent->seen, parent->plan.protected_low, parent->children_low);
}

/* --- recount --------------------------------------------------------------------------------- */

struct recount {
	uint64_t seen, usage, owed, owed_gain, claimed_min, claimed_low;
	size_t groups, in_excess, linked;
};

/* Sums in ret what the group and all below it have; recursion is bounded by MEMCG_MAX_DEPTH. */
static void recount(const struct memcg *memcg, struct recount *ret);

static void recount_list(
	const struct memcg *parent, const struct memcg *first, bool offline, struct recount *sum)
{
	const struct memcg *prev = NULL;
	size_t nr = 0;

	for (const struct memcg *m = first; m; prev = m, m = m->next) {
		assert(m->parent == parent && m->tree == parent->tree);
		assert(m->level == parent->level + 1);
		assert(m->prev == prev && m->offline == offline);
		assert(m->offline == css_killed(&m->css));
		recount(m, sum);
		nr++;
	}
	assert(offline || (nr == parent->nr_children && prev == parent->children_tail));
}

static void recount(const struct memcg *memcg, struct recount *ret)
{
	struct recount sum = { 0 };
	uint64_t refs = memcg->offline ? 0 : 1;
	size_t linked = 0;

	recount_list(memcg, memcg->children, false, &sum);
	recount_list(memcg, memcg->offline_children, true, &sum);
	assert(is_leaf(memcg) == (!memcg->children && !memcg->offline_children));
	for (const struct memcg *m = memcg->excess_children; m; m = m->excess_next) {
		assert(m->parent == memcg && m->excess_linked && (m->excess || m->nr_excess));
		assert(!m->excess_next || m->excess_next->excess_prev == m);
		linked++;
	}
	assert(linked == sum.linked);
	assert(memcg->children_min == sum.claimed_min && memcg->children_low == sum.claimed_low);
	assert(memcg->nr_excess == sum.in_excess);
	assert(memcg->excess == (memcg_excess(memcg) > 0) && !(memcg->offline && memcg->excess));
	if (is_leaf(memcg)) {
		sum.seen = memcg->seen;
		sum.usage = page_counter_read(&memcg->memory);
		sum.owed = memcg->owed;
		sum.owed_gain = memcg->owed_gain;
		refs += sum.usage;
	}
	assert(memcg->seen == sum.seen && memcg->owed == sum.owed);
	assert(memcg->owed_gain == sum.owed_gain && !memcg->pending.on);
	assert(page_counter_read(&memcg->memory) == sum.usage);
	for (const struct memcg *m = memcg->offline_children; m; m = m->next)
		refs++;
	assert(!memcg->parent || css_refs(&memcg->css) >= refs + memcg->nr_children);
	assert(memcg_find(memcg->tree, memcg->id) == memcg);

	ret->seen += sum.seen;
	ret->usage += sum.usage;
	ret->owed += sum.owed;
	ret->owed_gain += sum.owed_gain;
	ret->claimed_min += claimed_min(memcg);
	ret->claimed_low += claimed_low(memcg);
	ret->groups += sum.groups + 1;
	ret->in_excess += sum.in_excess + memcg->excess;
	ret->linked += memcg->excess || memcg->nr_excess;
}

void memcg_verify(const struct memcg_tree *tree)
{
	struct recount sum = { 0 };

	assert(!tree->root->parent && tree->root->level == 0 && !tree->root->offline);
	assert(!tree->pending_levels && !tree->pending_usage && !tree->pending_seen);
	recount(tree->root, &sum);
	assert(sum.groups == tree->nr_groups);
}
