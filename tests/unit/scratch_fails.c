/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests that fail, for test_scratch.sh: each prints the folder that it leaves. */
#include <config.h>

#include "tests/unit/scratch.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void make_folder(void)
{
	char path[SCRATCH_PATH], name[SCRATCH_PATH + 8];
	FILE *stream;

	scratch_new(path);
	printf("made %s\n", path);
	fflush(stdout);
	snprintf(name, sizeof(name), "%s/file", path);
	stream = fopen(name, "w");
	if (stream)
		fclose(stream);
}

START_TEST(passes)
{
	make_folder();
}
END_TEST

START_TEST(fails)
{
	make_folder();
	ck_abort();
}
END_TEST

START_TEST(crashes)
{
	make_folder();
	abort();
}
END_TEST

START_TEST(exits)
{
	make_folder();
	exit(EXIT_FAILURE);
}
END_TEST

START_TEST(hangs)
{
	make_folder();
	pause();
}
END_TEST

/* With an argument: one that hangs. */
int main(int argc, char **argv)
{
	Suite *suite = suite_create("fails");
	TCase *tc = tcase_create("fails");
	SRunner *sr;
	int failed;

	if (argc > 1) {
		tcase_set_timeout(tc, 0);
		tcase_add_test(tc, hangs);
	} else {
		tcase_add_test(tc, passes);
		tcase_add_test(tc, fails);
		tcase_add_test(tc, crashes);
		tcase_add_test(tc, exits);
	}
	suite_add_tcase(suite, tc);
	scratch_begin();
	sr = srunner_create(suite);
	srunner_set_fork_status(sr, CK_FORK); /* whatever the environment says */
	srunner_run_all(sr, CK_SILENT);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
