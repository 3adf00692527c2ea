/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every order of the shared accesses of two or three threads: real code, built with the hook of
 * policy/atomic.h into the test that includes this (once), run as coroutines that stop before each
 * access. What differs only in the order of accesses that do not touch each other (other
 * addresses, or both only read) is the same run and is made once: sleep sets, as in Godefroid,
 * "Partial-Order Methods for the Verification of Concurrent Systems", 1996.
 */
#ifndef BALLAST_TESTS_UNIT_ORDERS_H
#define BALLAST_TESTS_UNIT_ORDERS_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Check writes each assertion that holds into a file, a million of them here. */
#define _mark_point(file, line) ((void)0)

#define ORDERS_THREADS 3

struct orders {
	void (*setup)(void);		       /* before each run */
	void (*threads[ORDERS_THREADS])(void); /* NULL: fewer */
	void (*check)(void);		       /* after each run; tears down, too */
};

/* Makes all runs; returns how many, and in *ret_accesses the most accesses in one. */
uint64_t orders_all(const struct orders *orders, size_t *ret_accesses);

#endif
