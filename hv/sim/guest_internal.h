/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What guest.c (life, statistics, time) and guest_step.c (what moves) share. For nobody else.
 */
#ifndef BALLAST_HV_SIM_GUEST_INTERNAL_H
#define BALLAST_HV_SIM_GUEST_INTERNAL_H

#include "hv/sim/guest.h"

#define GUEST_US_PER_S UINT64_C(1000000)
/* What is in use all the time is touched so often: far more often than any list is long. */
#define GUEST_HOT_TOUCHES_PER_S 10

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

/* What the host finds idle; of it it swaps first. */
static inline uint64_t idle_touched(const struct guest *guest)
{
	return memory_idle(&guest->memory) + guest->kinds[GUEST_FREE];
}

static inline uint64_t free_memory(const struct guest *guest)
{
	return guest->kinds[GUEST_FREE] + guest->kinds[GUEST_UNTOUCHED];
}

/* Moves everything by one step, which ends now; false: nothing moved, nor will by itself. */
bool guest_step(struct guest *guest, uint64_t now);

/*
 * Room for at most so much, from what is free and by the guest's own reclaim, or out of the balloon
 * where that deflates on OOM; it is then the caller's to put on a list. Returns how much.
 */
uint64_t guest_room(struct guest *guest, uint64_t bytes);
/* At most so much of a region is freed; returns how much. */
uint64_t guest_give_back(struct guest *guest, unsigned int region, uint64_t bytes);
/* The page cache may hold so much more that is dirty before writers wait. */
uint64_t guest_dirty_room(const struct guest *guest);
/*
 * A stream waits for the disk's time in *wait_us, for at most us; what it has waited for is done.
 * Returns what is left of us.
 */
double guest_disk_wait(struct guest *guest, double *wait_us, double us);

#endif
