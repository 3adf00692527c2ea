/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How fast free memory falls, and how high the low watermark has to be for it. */
#include <config.h>

#include "policy/growth.h"

#include <check.h>

#include "policy/pages.h"
#include "tests/unit/suite.h"

#define SECOND UINT64_C(1000000)

START_TEST(fall_within_a_second_is_the_rate_and_a_shorter_one_is_none)
{
	struct growth g = { 0 };

	growth_see(&g, 1000, 5 * SECOND);
	growth_see(&g, 100, 5 * SECOND + SECOND / 2);
	ck_assert_uint_eq(g.rate, 0);
	growth_see(&g, 800, 7 * SECOND);
	ck_assert_uint_eq(g.rate, 100);
	/* Below zero too: free is signed. */
	growth_see(&g, -400, 8 * SECOND);
	ck_assert_uint_eq(g.rate, 1200);
}
END_TEST

START_TEST(rate_is_a_maximum_that_decays_within_minutes)
{
	struct growth g = { 0 };
	uint64_t now = 0, last;

	growth_see(&g, 6000, now);
	growth_see(&g, 0, now += SECOND);
	ck_assert_uint_eq(g.rate, 6000);
	growth_see(&g, 100, now += SECOND); /* more free is no growth */
	ck_assert_uint_eq(g.rate, 5900);
	last = g.rate;
	for (int i = 0; i < 60; i++) {
		growth_see(&g, 100, now += SECOND);
		ck_assert_uint_le(g.rate, last);
		last = g.rate;
	}
	ck_assert_uint_lt(g.rate, 6000 * 4 / 10);
	growth_see(&g, 100, now += GROWTH_MEMORY_US);
	ck_assert_uint_eq(g.rate, 0);
}
END_TEST

START_TEST(what_moved_for_another_reason_is_not_counted)
{
	struct growth g = { 0 };

	growth_see(&g, 1000, 0);
	growth_restart(&g);
	growth_see(&g, 10, 2 * SECOND);
	growth_see(&g, 10, 4 * SECOND);
	ck_assert_uint_eq(g.rate, 0);
}
END_TEST

START_TEST(low_leaves_room_for_what_goes_and_is_never_more_than_twice_itself)
{
	struct growth g = { .rate = 100 };

	/* min 20, low 50, high 80 of 1000: 30 are between, and 100 a second go. */
	ck_assert_uint_eq(growth_raise(&g, SECOND / 10, 20, 50, 80, 1000), 0);
	ck_assert_uint_eq(growth_raise(&g, SECOND / 2, 20, 50, 80, 1000), 20);
	ck_assert_uint_eq(growth_raise(&g, 2 * SECOND, 20, 50, 80, 1000), 50);
	ck_assert_uint_eq(growth_raise(&g, 2 * SECOND, 20, 50, 80, 100), 20);
	ck_assert_uint_eq(growth_raise(&g, 0, 20, 50, 80, 1000), 0);
	g.rate = PAGES_UNLIMITED;
	ck_assert_uint_eq(growth_raise(&g, UINT64_MAX >> 2, 20, 50, 80, 1000), 50);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("growth");
	TCase *tc = tcase_create("growth");

	tcase_add_test(tc, fall_within_a_second_is_the_rate_and_a_shorter_one_is_none);
	tcase_add_test(tc, rate_is_a_maximum_that_decays_within_minutes);
	tcase_add_test(tc, what_moved_for_another_reason_is_not_counted);
	tcase_add_test(tc, low_leaves_room_for_what_goes_and_is_never_more_than_twice_itself);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
