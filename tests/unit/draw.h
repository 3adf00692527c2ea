/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * draw: numbers for tests over random worlds. They follow from rng, which the test seeds: a failure
 * is the same failure in the next run. One thread.
 */
#ifndef BALLAST_TESTS_UNIT_DRAW_H
#define BALLAST_TESTS_UNIT_DRAW_H

#include <stdbool.h>
#include <stdint.h>

static uint64_t rng;

/* splitmix64 */
static inline uint64_t any(void)
{
	uint64_t z = rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline uint64_t below(uint64_t n)
{
	return n ? any() % n : 0;
}

static inline bool one_in(uint64_t n)
{
	return below(n) == 0;
}

#endif
