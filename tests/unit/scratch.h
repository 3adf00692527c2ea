/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * scratch: folders for tests, gone when the program ends, whatever becomes of the tests: Check ends
 * the process of a test that fails, and nothing of its teardown runs.
 */
#ifndef BALLAST_TESTS_UNIT_SCRATCH_H
#define BALLAST_TESTS_UNIT_SCRATCH_H

/* Enough for the path of a folder. */
#define SCRATCH_PATH 48

/* In main(), before the tests: what they make is removed by the process that was here. */
void scratch_begin(void);
/* The same, in memory where there is such a place: for tests that sync files over and over. */
void scratch_begin_in_memory(void);

/* A new empty folder, for a test or its fixture. */
void scratch_new(char path[SCRATCH_PATH]);

#endif
