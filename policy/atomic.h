/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every access to memory that threads share goes through these, and nothing else in policy/ is
 * shared: a test can then put itself between any two of them and walk through the interleavings.
 *
 * Built with BALLAST_ATOMIC_HOOK, each access first calls atomic_hook(), which the test defines,
 * with what is accessed and whether it may be changed. Without it these are the C11 operations and
 * cost nothing more.
 *
 * All are sequentially consistent: charge.c relies on "I change one, then look at the other" on
 * both sides (the counter and what was seen of it), which acquire and release do not order.
 */
#ifndef BALLAST_POLICY_ATOMIC_H
#define BALLAST_POLICY_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef BALLAST_ATOMIC_HOOK
void atomic_hook(const volatile void *addr, bool changes);
#define ATOMIC_POINT(addr, changes) atomic_hook(addr, changes)
#else
#define ATOMIC_POINT(addr, changes) ((void)0)
#endif

static inline uint64_t atomic_u64_read(const _Atomic uint64_t *a)
{
	ATOMIC_POINT(a, false);
	return atomic_load(a);
}

static inline void atomic_u64_set(_Atomic uint64_t *a, uint64_t v)
{
	ATOMIC_POINT(a, true);
	atomic_store(a, v);
}

/* Both return the value before. */
static inline uint64_t atomic_u64_add(_Atomic uint64_t *a, uint64_t v)
{
	ATOMIC_POINT(a, true);
	return atomic_fetch_add(a, v);
}

static inline uint64_t atomic_u64_sub(_Atomic uint64_t *a, uint64_t v)
{
	ATOMIC_POINT(a, true);
	return atomic_fetch_sub(a, v);
}

/* On failure *expected is what was there. */
static inline bool atomic_u64_cas(_Atomic uint64_t *a, uint64_t *expected, uint64_t v)
{
	ATOMIC_POINT(a, true);
	return atomic_compare_exchange_strong(a, expected, v);
}

static inline void *atomic_ptr_read(void *_Atomic *a)
{
	ATOMIC_POINT(a, false);
	return atomic_load(a);
}

static inline void *atomic_ptr_swap(void *_Atomic *a, void *v)
{
	ATOMIC_POINT(a, true);
	return atomic_exchange(a, v);
}

static inline bool atomic_ptr_cas(void *_Atomic *a, void **expected, void *v)
{
	ATOMIC_POINT(a, true);
	return atomic_compare_exchange_strong(a, expected, v);
}

static inline bool atomic_bool_swap(_Atomic bool *a, bool v)
{
	ATOMIC_POINT(a, true);
	return atomic_exchange(a, v);
}

static inline bool atomic_bool_read(const _Atomic bool *a)
{
	ATOMIC_POINT(a, false);
	return atomic_load(a);
}

#endif
