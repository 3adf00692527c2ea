/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memcg: the tree of groups, who is in excess, what is protected.
 *
 * A VM is a leaf, a partition or slice an inner group. A group has pages of its own only where it
 * is a leaf that is charged; an inner group has what its children have.
 *
 * Two figures: memory.usage, the counter that any thread charges, and seen, the planner's copy of
 * it, which is all that decisions read. memcg_see() moves seen, carries the difference to every
 * ancestor and keeps the excess of the group and of every ancestor: each group counts its
 * descendants in excess and links the children that have any, so a walk skips whole subtrees
 * (soft-limit-rework-v5.1, patches 4 to 7). Cost: O(depth) a change.
 *
 * Many changes at once are carried together: the ..._later() functions change the leaf, and what is
 * to be carried waits with its parent for memcg_carry(), which comes by each ancestor once, however
 * many below it changed. Until then the figures of ancestors are those from before; who reads them
 * carries first.
 *
 * The planner's thread alone calls what is here. Never does I/O; allocates in memcg_new() only.
 * Groups are named by id from outside; ids are the caller's, never 0, and not used twice.
 */
#ifndef BALLAST_POLICY_MEMCG_H
#define BALLAST_POLICY_MEMCG_H

#include <stddef.h>

#include "policy/ahead.h"
#include "policy/css.h"
#include "policy/page_counter.h"
#include "policy/slab.h"

/* Deeper trees than any slice hierarchy; bounds recursion and the cost of carrying upwards. */
#define MEMCG_MAX_DEPTH 64

/*
 * A page, in the parts in which rests of shares are carried. What is cut off in a division is less
 * than one: after a million of them a share is a page off. A granule is below 2^43 pages.
 */
#define MEMCG_CARRY_PAGE (INT64_C(1) << 20)

/* Steps of reclaim, see reclaim.h; here because the carries of each are kept with the group. */
#define MEMCG_STEPS 4

/* The operator's word for a group, in pages. */
struct memcg_knobs {
	uint64_t soft_limit; /* PAGES_UNLIMITED: none, never in excess; 0: always in excess */
	uint64_t min;	     /* 0: none */
	uint64_t low;	     /* 0: none */
	uint64_t max;	     /* PAGES_UNLIMITED: none */
};

#define MEMCG_KNOBS_NONE ((struct memcg_knobs){ PAGES_UNLIMITED, 0, 0, PAGES_UNLIMITED })

struct reclaim_vm;

/* What changed below a group and has not been carried to it yet. */
struct memcg_pending {
	bool on;		       /* among its level's */
	int64_t usage;		       /* pages, of the counter */
	int64_t seen, owed, owed_gain; /* pages */
	int64_t nr_excess;
};

/*
 * The order of the fields is that of their use: a tick that meets a hundred thousand groups waits
 * for memory more than it computes. Cache lines are counted for 64 bytes.
 */
struct memcg {
	/* To find it and to charge it: a line. */
	uint64_t id; /* set at memcg_new() */
	struct memcg *hash_next;
	struct css css;
	struct page_counter memory;

	/* What a sample, and a plan, reads of it: a line. */
	struct reclaim_vm *vm;	      /* of a VM, owned by the engine; NULL for an inner group */
	struct memcg *parent;	      /* these never change while the group is online */
	uint64_t seen;		      /* pages */
	struct memcg_knobs knobs;     /* by memcg_set_knobs() only */
	_Atomic uint64_t seen_shared; /* a leaf's seen, or what it is about to be: for who charges
					 from its thread */

	/* Excess, and what is asked of it: a line. */
	unsigned char level; /* the root: 0 */
	bool offline;
	bool excess;				 /* seen is over the soft limit */
	bool excess_linked;			 /* among the parent's excess_children */
	uint32_t nr_below;			 /* children, online and offline; a leaf: 0 */
	size_t nr_excess;			 /* descendants in excess, without itself */
	struct memcg *excess_children;		 /* children with excess or nr_excess */
	struct memcg *excess_next, *excess_prev; /* among the parent's excess_children */
	/* Pages that VMs below were asked for and that have not come, and what the host gains by
	 * them; kept by memcg_owe(). */
	uint64_t owed, owed_gain;
	struct memcg_tree *tree;

	/* Of an inner group only: a line. */
	struct memcg_pending pending;
	/* Sums over the children of min(seen, knob): what they claim to be protected. */
	uint64_t children_min, children_low;

	struct memcg *children, *children_tail; /* online, in the order of their creation */
	struct memcg *next, *prev;		/* siblings, in the one list or the other */
	struct memcg *offline_children;		/* killed and not yet freed: no walk meets them */
	size_t nr_children;			/* online */

	_Atomic bool dirty;  /* on the tree's dirty list, which then holds a reference */
	uint32_t limited_at; /* the engine's: its place among those with a max, from 1; 0: none */
	struct memcg *dirty_next;
	struct memcg *leaving_next; /* the engine's: of VMs that are gone and still have pages */

	/*
	 * As carry, of plans for other groups: a row each, by the level of the group, from 1 to its
	 * own; as it is an ancestor, its level names it. Apart, as groups that are near each other
	 * are found sooner and few plans are for any but the root.
	 */
	int64_t (*carries)[MEMCG_STEPS];

	/*
	 * Where the groups of a sharing that goes round start; id of a child, 0: the first. What a
	 * plan for the root needs from here on is two lines: what is found, and the carries.
	 */
	_Alignas(AHEAD_LINE) uint64_t position;

	/* What a plan keeps with a group, reclaim's and nobody else's; see reclaim.c. */
	struct {
		uint64_t stamp;
		uint64_t budget; /* what is left of this group's excess in this plan */
		uint64_t protected_min, protected_low; /* effective, for this plan's root */
		uint64_t taken;			       /* of a VM: in this plan, so far */
		size_t entry;			       /* of a VM: its newest share in the plan */
		uint64_t position;		       /* these two start as the group's own and */
		int64_t carry[MEMCG_STEPS];	       /* become them where the plan is committed */
	} plan;

	/*
	 * The signed rest of earlier shares, in parts of a page (MEMCG_CARRY_PAGE), by step: of
	 * plans for the root. See memcg_carries().
	 */
	int64_t carry[MEMCG_STEPS];
};

/* A group in a round of a plan: reclaim's scratch, see reclaim.c. A line. */
struct memcg_visit {
	struct memcg *memcg;
	uint64_t capacity;  /* what all below may give in this phase */
	uint64_t justified; /* of it, what goes first: excess at or below it asks for it */
	uint64_t share;	    /* what it is to give */
	uint64_t part;	    /* of its share, by one division */
	int64_t due;	    /* of a division: what is owed to it beside its part */
	int32_t due_parts;  /* and of a page */
	uint32_t first, nr; /* its children's visits stand side by side */
	bool covered;	    /* an ancestor's excess asks for pages from anyone below it */
};

/* The groups of a level, and which of them have something to be carried. */
struct memcg_level {
	struct slab slab, carries;
	struct memcg **pending;
	size_t nr_pending;
	size_t nr_groups, max; /* there is room for all groups of the level */
};

struct memcg_tree {
	struct memcg *root; /* level 0, immortal, id MEMCG_ROOT_ID */
	struct css_queue released;
	void *_Atomic dirty; /* struct memcg: charged past an events target since it was seen */
	struct charge_stocks *stocks; /* of those who charge page by page; NULL: nobody does */
	struct memcg **buckets;
	uint64_t plan_stamp;	      /* of the newest plan; see memcg.plan */
	bool no_soft_pass;	      /* reclaim() begins with step 3, whoever is in excess */
	struct memcg_visit *visits;   /* there is room for all groups */
	size_t nr_buckets, nr_groups; /* online and offline */
	size_t max_visits;

	struct memcg_level levels[MEMCG_MAX_DEPTH + 1];
	unsigned int pending_levels; /* below this one nobody has something pending; 0: nowhere */
	int64_t pending_usage, pending_seen; /* all that the root does not show yet */
};

#define MEMCG_ROOT_ID UINT64_C(1)

/* 0 or -ENOMEM. */
int memcg_tree_new(struct memcg_tree **ret_tree);
/* Frees the tree and every group in it, whatever references are held: nobody may use them. */
void memcg_tree_free(struct memcg_tree *tree);

/*
 * A new group below parent. -ENOMEM; -EEXIST: the id is taken; -ENODEV: parent is offline;
 * -ELOOP: deeper than MEMCG_MAX_DEPTH; -EINVAL: id 0, the parent is a VM (parent->vm) or a leaf
 * that has or owes pages. The group holds a reference on its parent until it is freed.
 */
int memcg_new(struct memcg_tree *tree, struct memcg *parent, uint64_t id, struct memcg **ret_memcg);

/* The group of that id, online or not; NULL. */
struct memcg *memcg_find(const struct memcg_tree *tree, uint64_t id);

/*
 * Has memory bring what memcg_find() of that id will meet, and the group's own lines: stages 0, 1
 * and 2, each some rounds before the next (ahead.h).
 */
void memcg_ahead(const struct memcg_tree *tree, uint64_t id, unsigned int stage);

/* The rests of shares in plans for the group of that level, itself or an ancestor. */
static inline int64_t *memcg_carries(struct memcg *memcg, unsigned int level)
{
	return level ? memcg->carries[level - 1] : memcg->carry;
}

/* Has memory bring what a plan for the root will meet of a group; reclaim_vm is not among it. */
static inline void memcg_plan_ahead(const struct memcg *memcg)
{
	const size_t plan = offsetof(struct memcg, position) / AHEAD_LINE;

	ahead(memcg, 1, 2);
	ahead(memcg, plan, plan + 1);
}

/*
 * Takes the group offline: it leaves its parent's children, its knobs are gone, excess counts of
 * ancestors are taken back under the same hand, tryget fails from now on. Its pages stay charged,
 * and seen, until they are uncharged; then, with the last reference, memcg_reap() frees it.
 * -EBUSY: it has online children. -EINVAL: the root. -ENODEV: it was killed before.
 */
int memcg_kill(struct memcg *memcg);

/*
 * Frees the groups that were killed and whose last reference is gone; returns how many. What was
 * still seen of them or owed by them is taken from their ancestors. memcg->vm is the engine's to
 * free, before.
 */
size_t memcg_reap(struct memcg_tree *tree);

/*
 * -EINVAL where min is over max or a value over PAGES_UNLIMITED, -ENODEV: the group was killed;
 * then nothing was changed.
 */
int memcg_set_knobs(struct memcg *memcg, const struct memcg_knobs *knobs);

/*
 * From now on the planner's figure of the pages of this leaf is pages; ancestors move along.
 * Asserts that it is a leaf and that pages is at most PAGES_UNLIMITED.
 */
void memcg_see(struct memcg *leaf, uint64_t pages);

/* What VMs below were asked for: the changes are carried to the group and every ancestor. */
void memcg_owe(struct memcg *leaf, int64_t pages, int64_t gain);

/* The same; ancestors have it with the next memcg_carry(). */
void memcg_see_later(struct memcg *leaf, uint64_t pages);
void memcg_owe_later(struct memcg *leaf, int64_t pages, int64_t gain);
/* The counters of a leaf's ancestors are to change by so much: see charge_observed_later(). */
void memcg_charge_later(struct memcg *leaf, int64_t pages);

/*
 * Brings what changed below to every ancestor, each once: O(those above what changed). What is here
 * and changes one group alone does it by itself.
 */
void memcg_carry(struct memcg_tree *tree);

/* Pages over the soft limit, 0 where it is not over (or none is set). */
uint64_t memcg_excess(const struct memcg *memcg);

/*
 * Whether the group may be reclaimed in the soft pass of a reclaim at root: it or an ancestor, up
 * to and including root, is over its soft limit. Never looks above root
 * (soft-limit-rework-v5.1, patch 3). root must be the group or an ancestor of it.
 */
bool memcg_in_excess(const struct memcg *memcg, const struct memcg *root);

enum memcg_filter {
	MEMCG_VISIT,	 /* it may be asked, and anyone below it */
	MEMCG_SKIP,	 /* not this one; look at its children that have an excess below */
	MEMCG_SKIP_TREE, /* nor anyone below it */
};

/*
 * The predicate of the soft pass (soft-limit-rework-v5.1, patches 5 and 6), asked by reclaim() at
 * each group that it comes by. in_excess: as memcg_in_excess() has it for the root of the reclaim,
 * as far as the plan has not taken that excess yet.
 */
enum memcg_filter memcg_soft_reclaim_eligible(const struct memcg *memcg, bool in_excess);

/* Whether a soft limit is set for the group or for an ancestor up to and including root. */
bool memcg_limit_set(const struct memcg *memcg, const struct memcg *root);

bool memcg_is_below(const struct memcg *memcg, const struct memcg *root); /* or the same */

/*
 * Sets plan.protected_min and plan.protected_low of memcg for a reclaim at root from those of its
 * parent, as the kernel's effective_protection() does with memory_recursiveprot: claims are cut
 * to what the parent has, what nobody claims is shared by usage. The root itself has none,
 * its children have their knobs'. Never above seen, and the sum never above what the parent has.
 * Parents first.
 */
void memcg_protect(struct memcg *memcg, const struct memcg *root);

/* Online children only: what was killed costs a walk nothing. */
#define memcg_for_each_child(child, of)                                                            \
	for (struct memcg *child = (of)->children; child; child = child->next)

/*
 * For tests, while no other thread charges: recounts seen, excess, links, counters and owed from
 * the leaves; asserts that all agree.
 */
void memcg_verify(const struct memcg_tree *tree);

#endif
