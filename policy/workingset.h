/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * workingset: what of a VM's memory is cold, what it must keep. Pure arithmetic over one sample.
 *
 * With lists (an agent's report) cold is the rule of protect-active-working-set: inactive pages
 * only, and only as far as the inactive list is not low; anonymous and file apart. Without lists
 * it is the resident part of what the guest has free and an eighth of its page cache. Pages that
 * the guest has free and that are resident are cold in both.
 */
#ifndef BALLAST_POLICY_WORKINGSET_H
#define BALLAST_POLICY_WORKINGSET_H

#include "policy/sample.h"

/* How much a VM is left with; set by the operator, the same for all VMs unless told otherwise. */
struct workingset_bounds {
	unsigned int floor_percent;	      /* of the maximum, without an agent: 50 */
	unsigned int floor_free_only_percent; /* where only free memory is told (Windows): 75 */
	unsigned int margin_percent;	      /* of the maximum: 10 */
	uint64_t margin_at_least;	      /* pages: 256 MiB; at most a quarter of the maximum */
	/* No guest tells anything without an agent (Xen): then the floor alone is what it keeps. */
	bool silent_gives;
};

struct workingset_vm {
	uint64_t maximum;     /* the domain's maximum memory, pages */
	uint64_t soft_limit;  /* PAGES_UNLIMITED: none */
	bool guest_swap;      /* the operator allows the guest to swap */
	bool agent;	      /* reports come; lists may be used */
	uint64_t agent_floor; /* with an agent; 0: it tells none */
	bool trust; /* an agent's floor may lie above the soft limit; its lists are true */
};

/* All in pages. Meant to be read whole: what a plan needs to know of a VM. */
struct workingset {
	bool usage_known; /* false: no target, ever */
	bool donor_known; /* usage, actual and fresh statistics: it may be asked */
	bool used_known;
	bool little_available; /* usable < margin: under pressure */
	/*
	 * Of usage, what would be cold beside cold if its agent told no lists: only its own word
	 * says that it is active, and nobody trusts it. 16 TiB at most.
	 */
	uint32_t doubted;
	uint64_t cost;	   /* resident + swapped, at most the maximum: what is charged */
	uint64_t usage;	   /* of it what a target is reckoned from: at most actual */
	uint64_t resident; /* the part of usage that can be gained */
	uint64_t actual;
	uint64_t floor, margin;
	uint64_t guest_used; /* stats_actual - usable: what the guest itself cannot free */
	uint64_t keep;	     /* never below: floor, and guest_used + margin where that holds */
	uint64_t cold;	     /* of usage */
};

/* The kernel's inactive_list_is_low() ratio: gb = whole GiB of both; gb ? int_sqrt(10 * gb) : 1. */
uint64_t workingset_ratio(uint64_t inactive, uint64_t active);

/* max(0, inactive - ceil(active / ratio)). */
uint64_t workingset_cold_list(uint64_t inactive, uint64_t active);

uint64_t workingset_floor(const struct workingset_bounds *bounds, const struct workingset_vm *vm,
	const struct vm_sample *sample);
uint64_t workingset_margin(const struct workingset_bounds *bounds, uint64_t maximum);

void workingset_assess(const struct workingset_bounds *bounds, const struct workingset_vm *vm,
	const struct vm_sample *sample, struct workingset *ret_set);

#endif
