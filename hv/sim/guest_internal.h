/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What guest.c (life, statistics, time) and guest_step.c (what moves) share. For nobody else.
 */
#ifndef BALLAST_HV_SIM_GUEST_INTERNAL_H
#define BALLAST_HV_SIM_GUEST_INTERNAL_H

#include "hv/sim/guest.h"

#define GUEST_US_PER_S UINT64_C(1000000)

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t sub(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static inline uint64_t page_down(uint64_t bytes)
{
	return bytes - bytes % GUEST_PAGE;
}

static inline uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	return c ? (uint64_t)((__extension__(unsigned __int128) a * b) / c) : 0;
}

/* What the host finds idle; of it it swaps. */
static inline uint64_t idle_touched(const struct guest *guest)
{
	return guest->kinds[GUEST_ANON_IDLE] + guest->kinds[GUEST_CACHE_COLD] +
	       guest->kinds[GUEST_FREE];
}

static inline uint64_t free_memory(const struct guest *guest)
{
	return guest->kinds[GUEST_FREE] + guest->kinds[GUEST_UNTOUCHED];
}

/* Moves everything by one step, which ends now; false: nothing moved, nor will by itself. */
bool guest_step(struct guest *guest, uint64_t now);

#endif
