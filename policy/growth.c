/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How fast free memory falls; see growth.h. */
#include <config.h>

#include "policy/growth.h"

#include "policy/pages.h"

void growth_see(struct growth *growth, int64_t free, uint64_t now)
{
	uint64_t passed = now - growth->at, fall = 0, rate;

	if (!growth->begun) {
		growth->begun = true;
		growth->free = free;
		growth->at = now;
		return;
	}
	if (passed < GROWTH_WINDOW_US)
		return;
	if (free < growth->free)
		fall = (uint64_t)growth->free - (uint64_t)free;
	rate = pages_mul_div(pages_min(fall, PAGES_UNLIMITED), 1000000, passed);
	growth->rate -=
		pages_mul_div(growth->rate, pages_min(passed, GROWTH_MEMORY_US), GROWTH_MEMORY_US);
	growth->rate = pages_max(growth->rate, rate);
	growth->free = free;
	growth->at = now;
}

void growth_restart(struct growth *growth)
{
	growth->begun = false;
}

uint64_t growth_raise(const struct growth *growth, uint64_t us, uint64_t min, uint64_t low,
	uint64_t high, uint64_t size)
{
	uint64_t goes = pages_mul_div(growth->rate, pages_min(us, GROWTH_MEMORY_US), 1000000);
	uint64_t raise = pages_sub(goes, pages_sub(low, min));

	return pages_min(pages_min(raise, low), pages_sub(size, high));
}
