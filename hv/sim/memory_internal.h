/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What memory.c (regions, extents, lists) and memory_reclaim.c share. For nobody else. */
#ifndef BALLAST_HV_SIM_MEMORY_INTERNAL_H
#define BALLAST_HV_SIM_MEMORY_INTERNAL_H

#include "hv/sim/memory.h"

static inline uint64_t memory_page_down(uint64_t bytes)
{
	return bytes - bytes % MEMORY_PAGE;
}

/* Touches of each page of the region so far. */
double memory_clock(const struct memory *m, unsigned int region);
/* The part of pages touched at least once, where each was touched so often on average. */
double memory_touched(double touches);

/* Bytes of a cyclic file from offset on are evicted. */
void memory_shadow_add(struct memory *m, unsigned int region, uint64_t offset, uint64_t bytes);

/* At the head of its list. */
void memory_push(struct memory *m, const struct memory_extent *extent);
/* The oldest bytes of an extent, off their list. */
struct memory_extent memory_pull(struct memory *m, uint16_t extent, uint64_t bytes);

#endif
