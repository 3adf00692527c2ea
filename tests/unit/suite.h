/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* suite: what all test programs share: the end of main(), and how much of a long test is done. */
#ifndef BALLAST_TESTS_UNIT_SUITE_H
#define BALLAST_TESTS_UNIT_SUITE_H

#include <stdlib.h>

#include <check.h>
#include <stdint.h>

/*
 * Where a test tries all of something it goes on by so much: 1, or what BALLAST_EVERY says in
 * builds that are slow and look for something else, as the thread sanitizer in one thread's work.
 */
static inline uint64_t suite_every(void)
{
	const char *text = getenv("BALLAST_EVERY");
	long every = text ? strtol(text, NULL, 10) : 1;

	return every > 0 ? (uint64_t)every : 1;
}

/* Runs the suite's tests, with TAP to stdout, and frees it; what main() returns. */
static inline int suite_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
