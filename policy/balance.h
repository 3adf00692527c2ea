/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * balance: who gets memory back, and how much. Pure arithmetic; the engine applies it.
 *
 * Three ways back. Loosening: after a cut came the cap is lifted, where deflated pages stay with
 * the host until they are touched; in part for a VM in excess or one that refills at once. Feeding:
 * a VM not in excess that shows pressure gets all it is promised at once. Gifts: with free above
 * wm_high capped VMs share what is above it. Inside the band between wm_low and wm_high nothing
 * moves.
 */
#ifndef BALLAST_POLICY_BALANCE_H
#define BALLAST_POLICY_BALANCE_H

#include <stddef.h>

#include "policy/sample.h"

/* What a VM may have: its ceiling, or its max where that is smaller. */
uint64_t balance_limit(uint64_t ceiling, uint64_t max);

/*
 * The target once a cut came: the limit, or usage and headroom for a VM that stays capped: the
 * larger of at_least and usage / fraction.
 */
uint64_t balance_loosened(
	bool capped, uint64_t usage, uint64_t limit, uint64_t at_least, unsigned int fraction);

/* Up to where a VM under pressure is fed: its soft limit, none: its limit. */
uint64_t balance_fed(uint64_t soft_limit, uint64_t limit);

/*
 * Pages swapped in by the guest between two samples that count as pressure: 1 MiB. Less is the
 * odd page of a daemon that slept.
 */
#define BALANCE_SWAP_IN MIB_TO_PAGES(1)

/* Whether the guest swapped in that much since the sample before. */
bool balance_swaps(const struct vm_sample *before, const struct vm_sample *now);

struct balance_gift {
	uint64_t demand; /* limit - target */
	uint64_t gift;	 /* out */
};

/*
 * Shares pages in proportion to demand, in whole granules, to no one more than its demand and to no
 * one less than piece (or its demand, where that is less): what is too little for one goes to the
 * next, so that many small shares become a few that are worth a command.
 */
void balance_share(
	struct balance_gift *gifts, size_t nr, uint64_t pages, uint64_t granule, uint64_t piece);

#endif
