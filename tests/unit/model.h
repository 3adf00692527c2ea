/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * model: what reclaim() has to do, said once more, slowly and in plain loops, to judge its plans.
 *
 * It shares nothing with policy/: own structs, own arithmetic, no object of it is linked into this
 * file's functions. A tree is an array in which parents stand before their children; budgets are
 * spent a granule at a time; who is in excess is found by climbing. It does not make plans: many
 * are right (rounding, carries), so it checks one, phase by phase:
 *
 *   - nobody gives more than its cap, in any phase, nor below what protects it there;
 *   - in the soft steps only who is in excess, itself or by an ancestor up to the root, gives;
 *     a subtree gets beyond its own excess only after each of its siblings has given all of theirs,
 *     and only what an ancestor's budget has left;
 *   - every phase brings what is still needed or all that it can, before the next one starts;
 *   - in step 3 those of whom it is told what is cold, and no less than is to be inflated, give all
 *     of it before the others, unless partly swapped, who come last anyway;
 *   - shares are in proportion to what each may give, within rounding;
 *   - gain and short are what they should be, and short means that nobody has anything left.
 *
 * For tests; one thread. Pages everywhere.
 */
#ifndef BALLAST_TESTS_UNIT_MODEL_H
#define BALLAST_TESTS_UNIT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_NODES 32
#define MODEL_NONE  UINT64_MAX /* no soft limit */

struct model_node {
	int parent; /* an index before its own; -1: the top, index 0 */
	bool vm;
	uint64_t soft, min, low;
	/* of a VM */
	bool held;
	uint64_t seen, owed; /* what it uses; of it, what it was asked for and has not given */
	uint64_t resident, cold, keep, at_most;
	uint64_t doubted; /* beside cold: goes before all that is active */
	uint64_t slack;	  /* to be inflated before anything comes */
	bool told;	  /* cold is no guess */
};

struct model_tree {
	struct model_node nodes[MODEL_NODES];
	int nr;
};

struct model_share {
	int node;
	unsigned int step;
	bool doubted, below_low;
	uint64_t pages, gain;
};

struct model_plan {
	const struct model_share *shares; /* in order of step */
	size_t nr;
	uint64_t gain, short_pages;
};

/*
 * Judges the plan for need at node root. slack: by how many granules a share may be off its
 * proportion (2: rounding; 3: carries too). NULL: right; else what is wrong, in a static buffer.
 */
const char *model_judge(const struct model_tree *tree, int root, uint64_t need, uint64_t granule,
	const struct model_plan *plan, unsigned int slack);

#endif
