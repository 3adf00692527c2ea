/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* suite: the end of a test program's main(). */
#ifndef BALLAST_TESTS_UNIT_SUITE_H
#define BALLAST_TESTS_UNIT_SUITE_H

#include <stdlib.h>

#include <check.h>

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
