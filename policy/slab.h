/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * slab: objects of one size, side by side and each at the begin of a cache line. Who goes over all
 * of a hundred thousand groups in their order then finds the next one in the same page, mostly.
 *
 * One thread. Memory that objects had is used for others of the slab, and given back with the slab.
 */
#ifndef BALLAST_POLICY_SLAB_H
#define BALLAST_POLICY_SLAB_H

#include <stddef.h>

struct slab_chunk;

struct slab {
	struct slab_chunk *chunks;
	void *free;
	size_t size; /* of an object */
};

void slab_init(struct slab *slab, size_t size);
/* All zeros; NULL: no memory. */
void *slab_get(struct slab *slab);
void slab_put(struct slab *slab, void *object); /* NULL: nothing */
/* Whatever objects are still out. */
void slab_drop(struct slab *slab);

#endif
