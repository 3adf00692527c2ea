/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * order: puts what plans and asks are made of in order, in place. Allocates nothing, where qsort()
 * may. Pure; inline, so that what is before what costs no call.
 */
#ifndef BALLAST_POLICY_ORDER_H
#define BALLAST_POLICY_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A shell sort of nr items; not stable. before: a stands before b. spare: room for one of them. */
static inline void order(void *items, size_t nr, size_t size, void *spare,
	bool (*before)(const void *a, const void *b))
{
	char *first = items;

	for (size_t gap = nr / 2; gap; gap /= 2) {
		for (size_t i = gap; i < nr; i++) {
			size_t j = i;

			if (!before(first + i * size, first + (i - gap) * size))
				continue;
			memcpy(spare, first + i * size, size);
			for (; j >= gap && before(spare, first + (j - gap) * size); j -= gap)
				memcpy(first + j * size, first + (j - gap) * size, size);
			memcpy(first + j * size, spare, size);
		}
	}
}

#endif
