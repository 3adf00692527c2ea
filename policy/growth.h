/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * growth: how fast the pool's free memory falls, and what the low watermark has to be for it.
 *
 * Memory that is asked for comes a while after free fell below the watermark; what goes in between
 * must fit between low and min. Pure; called by the engine, once a tick; one thread. Units: pages,
 * pages a second, microseconds.
 */
#ifndef BALLAST_POLICY_GROWTH_H
#define BALLAST_POLICY_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

/* A shorter fall is a burst within one reading: a second is what VMs' figures are apart. */
#define GROWTH_WINDOW_US UINT64_C(1000000)
/* The largest that was seen is forgotten by as much of itself as passed of this. */
#define GROWTH_MEMORY_US UINT64_C(60000000)

struct growth {
	bool begun;
	int64_t free; /* at the window's begin */
	uint64_t at;
	uint64_t rate; /* the decaying maximum */
};

void growth_see(struct growth *growth, int64_t free, uint64_t now);

/* Free moves for another reason than use: the fall so far is not counted. */
void growth_restart(struct growth *growth);

/*
 * How much higher low and high are than they were set: low - min is at least what goes within us,
 * low at most twice itself, and high no more than size.
 */
uint64_t growth_raise(const struct growth *growth, uint64_t us, uint64_t min, uint64_t low,
	uint64_t high, uint64_t size);

#endif
