/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * reclaim: who gives how much. reclaim(root, need) serves the pool (the tree's root), a group over
 * its max (that group) and an operator's request (any group).
 *
 *   step 1  in excess  cold memory                  ends at the soft limit
 *   step 2  in excess  active too                   ends at the soft limit
 *   step 3  all        cold, above low              those without any limit first
 *   step 4  all        active too, above low; then below low
 *
 * What is active only by a guest's own word goes first in steps 2 and 4: before that of others.
 *
 * In excess: the VM or an ancestor, up to and including root, is over its soft limit. An
 * ancestor's excess is one budget for all below it: first the excess of those below is taken, each
 * up to its own; what remains of the budget may be taken from the others below it, in the same
 * step; every page taken lowers the budget of every ancestor.
 *
 * The need is shared within a step in proportion to what each may give (its cap), in granules; the
 * rest of the division is carried, signed, with each group, so that over many small needs everyone
 * gives its part within a granule. In step 3, where no excess asks for it, those come first of
 * whom an agent tells what is cold and whose cap is no less than their slack: with the others most
 * of what a balloon does may gain nothing. What the caps of a step cannot cover goes to the next. A
 * step that would visit nobody is not started, and a subtree where nobody is in excess is not
 * entered in the soft steps.
 *
 * The need is in pages to be gained for the host; what a VM is asked is in pages of its usage, of
 * which only the resident part is gained: partly swapped VMs give last within a step.
 *
 * Pure and single-threaded; allocates nothing; writes only plan scratch, and with commit the
 * carries and positions. Sources: soft-limit-rework-v5.1 (the two passes, the root, the budget of
 * an ancestor), protect-active-working-set (inactive first).
 */
#ifndef BALLAST_POLICY_RECLAIM_H
#define BALLAST_POLICY_RECLAIM_H

#include "policy/memcg.h"
#include "policy/workingset.h"

/* A VM smaller than this many granules is not asked: what it has is noise. */
#define RECLAIM_MIN_GRANULES 16

/* Why a VM gives nothing, or not more. Which of several is told: hold_of() in topology.c. */
enum reclaim_hold {
	RECLAIM_HOLD_NONE,
	RECLAIM_HOLD_STATE,	/* its state: paused, no device, not answering... */
	RECLAIM_HOLD_MANAGE,	/* manage is not act */
	RECLAIM_HOLD_PAUSED,	/* by the operator */
	RECLAIM_HOLD_RELEASED,	/* the operator let it go lately */
	RECLAIM_HOLD_UNKNOWN,	/* usage or statistics unknown or stale */
	RECLAIM_HOLD_ACTUAL,	/* of what its balloon says it has, nothing is left to ask */
	RECLAIM_HOLD_SMALL,	/* below RECLAIM_MIN_GRANULES */
	RECLAIM_HOLD_FAILED,	/* failed an ask lately: what it delivered is all it is asked */
	RECLAIM_HOLD_CONTENDED, /* somebody else moves its balloon */
	RECLAIM_HOLD_FED,	/* was under pressure lately, and was fed */
	RECLAIM_HOLD_PROTECTED, /* min, floor or margin: nothing above it */
	RECLAIM_HOLD_NR,
};

const char *reclaim_hold_name(enum reclaim_hold hold);

/* What reclaim reads of a VM; the engine fills it before a plan. Pages of the VM's usage. */
struct reclaim_vm {
	enum reclaim_hold hold : 8; /* not NONE: it is not asked */
	bool told : 1;		    /* cold is as its agent's lists have it, no guess */
	uint32_t doubted;	    /* beside cold: active by its agent's word alone */
	uint64_t usage;		    /* less what it was asked for and has not given */
	uint64_t resident;	    /* <= usage: what of it can be gained */
	uint64_t cold;		    /* <= usage */
	uint64_t keep;		    /* floor, guest's use + margin, its own min: never below */
	uint64_t at_most;	    /* what it may be asked in this plan; PAGES_UNLIMITED */
	uint64_t slack;		    /* actual - usage: to be inflated before anything is gained */
};

/* A VM has one share at most in steps 1 and 3, two in step 2, and three in step 4. */
#define RECLAIM_SHARES 7

/* One VM's part in one step. */
struct reclaim_share {
	struct memcg *memcg;
	unsigned int step;  /* 1 to 4 */
	bool doubted;	    /* steps 2 and 4: active by its agent's word alone */
	bool below_low;	    /* step 4: taken from what low protects */
	uint64_t pages;	    /* of its usage: what it is to give */
	uint64_t gain;	    /* of it, what the host is expected to gain */
	uint64_t cap;	    /* what it could have given in this step */
	uint64_t step_need; /* what the step, or those who come last in it, had to bring ... */
	uint64_t step_cap;  /* ... and all that these could have given */
	uint64_t bound;	    /* below which the step would not take it: soft limit, low, keep */
	uint64_t slack;	    /* to be inflated before anything is gained: the order within a step */
};

struct reclaim_plan {
	struct reclaim_share *shares; /* the caller's, nr_max of them */
	size_t nr, nr_max;	      /* RECLAIM_SHARES for every VM below root are enough */
	uint64_t need;		      /* asked */
	uint64_t gain;		      /* expected; at most need + granule */
	uint64_t short_pages;	      /* need - gain, after step 4 */
	size_t visited;		      /* groups looked at: the cost */
};

/*
 * Plans the reclaim of need pages at root. granule > 0. Shares come in order of step, and within a
 * step those with the least to inflate first. Every VM's reclaim_vm must be current. commit:
 * carries and positions advance; else nothing but scratch changes.
 */
void reclaim(struct memcg *root, uint64_t need, uint64_t granule, bool commit,
	struct reclaim_plan *plan);

#endif
