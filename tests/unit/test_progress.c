/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a long run of ballast-sim says on a terminal; the time is the test's own. */
#include <config.h>

#include "tools/sim_compare.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/suite.h"

#define S UINT64_C(1000000)

static time_t at;
static int terminal, before;

time_t __wrap_time(time_t *ret);
time_t __wrap_time(time_t *ret)
{
	return at;
}

/* stderr is a terminal, whose other end is read. */
static void setup(void)
{
	int end;

	terminal = posix_openpt(O_RDWR | O_NOCTTY);
	ck_assert_int_ge(terminal, 0);
	ck_assert(grantpt(terminal) == 0 && unlockpt(terminal) == 0);
	end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
	ck_assert_int_ge(end, 0);
	before = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(end, STDERR_FILENO), 0);
	close(end);
	at = 1000;
}

static void teardown(void)
{
	dup2(before, STDERR_FILENO);
	close(before);
	close(terminal);
}

/* What a step prints, at that second of the run: the mark behind it ends what is there to be read.
 */
static void says(time_t second, uint64_t now, const char *wanted)
{
	char text[200] = "";
	size_t length = 0;

	at = 1000 + second;
	sim_progress("run", now, 100 * S);
	ck_assert_int_eq(write(STDERR_FILENO, "#", 1), 1);
	while (!strchr(text, '#')) {
		ssize_t n = read(terminal, text + length, sizeof(text) - 1 - length);

		ck_assert_int_gt(n, 0);
		length += (size_t)n;
	}
	text[length - 1] = '\0';
	ck_assert_str_eq(text, wanted);
}

START_TEST(long_run_says_once_a_second_how_far_it_is)
{
	says(0, 1 * S, "");
	says(1, 10 * S, "");
	says(2, 20 * S, "\rrun: 20 of 100 s, 20 %\033[K");
	says(2, 30 * S, "");
	says(3, 40 * S, "\rrun: 40 of 100 s, 40 %\033[K");
	says(4, 100 * S, "\r\033[K");
}
END_TEST

START_TEST(short_run_says_nothing)
{
	says(0, 1 * S, "");
	says(1, 100 * S, "");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("progress");
	TCase *tc = tcase_create("terminal");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, long_run_says_once_a_second_how_far_it_is);
	tcase_add_test(tc, short_run_says_nothing);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
