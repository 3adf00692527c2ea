/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pages: the unit of everything in policy/.
 *
 * A page is 4 KiB. Amounts are uint64_t, differences int64_t. No amount is ever above
 * PAGES_UNLIMITED, so that sums of a few of them do not wrap; who takes numbers from outside
 * refuses larger ones before they get here.
 */
#ifndef BALLAST_POLICY_PAGES_H
#define BALLAST_POLICY_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#define POLICY_PAGE_SIZE UINT64_C(4096)

/* The one constant that means "no limit": 2^52 - 1 pages, all that 64 bit of bytes can hold. */
#define PAGES_UNLIMITED ((UINT64_C(1) << 52) - 1)

#define MIB_TO_PAGES(mib) ((uint64_t)(mib) << 8)

static inline uint64_t pages_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t pages_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* a - b, or 0 where b is larger. */
static inline uint64_t pages_sub(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static inline uint64_t pages_round_down(uint64_t pages, uint64_t granule)
{
	return pages - pages % granule;
}

/* Stays at or below PAGES_UNLIMITED + granule; pages must be <= PAGES_UNLIMITED. */
static inline uint64_t pages_round_up(uint64_t pages, uint64_t granule)
{
	return pages_round_down(pages + granule - 1, granule);
}

/*
 * a * b / c without overflow (c > 0): the result must fit, which it does where a <= c or b <= c.
 * What fits 64 bits is divided in 64 bits: that takes a fifth of the time, and there are several a
 * VM and tick.
 */
static inline uint64_t pages_mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	if (!((a | b) >> 32))
		return a * b / c;
	return (uint64_t)((__extension__(unsigned __int128) a * b) / c);
}

/*
 * What the host gains by pages of a usage of which only the resident part can come; usage may be 0.
 * Nothing, all of it, or part of what is all resident: that is mostly so, and needs no division.
 */
static inline uint64_t pages_gain(uint64_t pages, uint64_t resident, uint64_t usage)
{
	if (!pages || !usage)
		return 0;
	if (pages >= usage)
		return resident;
	return resident == usage ? pages : pages_mul_div(pages, resident, usage);
}

/* What that division leaves over: less than c. */
static inline uint64_t pages_mul_mod(uint64_t a, uint64_t b, uint64_t c)
{
	if (!((a | b) >> 32))
		return a * b % c;
	return (uint64_t)((__extension__(unsigned __int128) a * b) % c);
}

/* The kernel's int_sqrt(): rounded down. */
static inline uint64_t pages_int_sqrt(uint64_t x)
{
	uint64_t r = 0;

	for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
		if ((r + bit) * (r + bit) <= x)
			r += bit;
	return r;
}

#endif
