/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who gets memory back, and how much: the arithmetic. */
#include <config.h>

#include "policy/balance.h"

#include <check.h>

#include "tests/unit/suite.h"

#define MIB(n) MIB_TO_PAGES(n)

START_TEST(a_vm_may_have_its_ceiling_or_its_max)
{
	/* Field case BR-20: a wish above what it had is cut to that. */
	ck_assert_uint_eq(balance_limit(MIB(4096), PAGES_UNLIMITED), MIB(4096));
	ck_assert_uint_eq(balance_limit(MIB(4096), MIB(3000)), MIB(3000));
	ck_assert_uint_eq(balance_limit(MIB(4096), MIB(5000)), MIB(4096));
}
END_TEST

START_TEST(loosened_is_the_limit_or_usage_and_headroom_in_excess)
{
	/* Field case BR-114: 2600 of 4096 reached. */
	ck_assert_uint_eq(balance_loosened(false, MIB(2600), MIB(4096), MIB(64), 16), MIB(4096));
	ck_assert_uint_eq(
		balance_loosened(true, MIB(2600), MIB(4096), MIB(64), 16), MIB(2762) + MIB(1) / 2);
	ck_assert_uint_eq(balance_loosened(true, MIB(1024), MIB(4096), MIB(64), 16), MIB(1088));
	ck_assert_uint_eq(balance_loosened(true, MIB(1000), MIB(4096), MIB(64), 16), MIB(1064));
	ck_assert_uint_eq(balance_loosened(true, MIB(1040), MIB(4096), MIB(64), 16), MIB(1105));
	ck_assert_uint_eq(balance_loosened(true, MIB(4000), MIB(4096), MIB(64), 16), MIB(4096));
}
END_TEST

START_TEST(fed_is_up_to_the_soft_limit_and_without_one_to_the_limit)
{
	ck_assert_uint_eq(balance_fed(PAGES_UNLIMITED, MIB(4096)), MIB(4096));
	ck_assert_uint_eq(balance_fed(MIB(1000), MIB(4096)), MIB(1000));
	ck_assert_uint_eq(balance_fed(MIB(5000), MIB(4096)), MIB(4096));
}
END_TEST

START_TEST(swapping_in_a_mib_between_two_samples_is_pressure)
{
	struct vm_sample a = { .known = VM_SWAP_IN, .swap_in = 1000 }, b = a;

	ck_assert(!balance_swaps(&a, &b));
	b.swap_in = 1000 + MIB(1) - 1;
	ck_assert(!balance_swaps(&a, &b));
	b.swap_in++;
	ck_assert(balance_swaps(&a, &b));
	b.stale = true;
	ck_assert(!balance_swaps(&a, &b));
	b.stale = false;
	b.known = 0;
	ck_assert(!balance_swaps(&a, &b));
	b.known = VM_SWAP_IN;
	a.known = 0;
	ck_assert(!balance_swaps(&a, &b));
	a.known = VM_SWAP_IN;
	b.swap_in = 999; /* it counts from the guest's boot: that was another */
	ck_assert(!balance_swaps(&a, &b));
}
END_TEST

START_TEST(gifts_are_in_proportion_in_whole_granules_and_to_no_one_more_than_it_misses)
{
	struct balance_gift g[] = { { .demand = MIB(300) }, { .demand = MIB(100) }, { 0 } };

	balance_share(g, 3, MIB(80), MIB(1), MIB(1));
	ck_assert_uint_eq(g[0].gift, MIB(60));
	ck_assert_uint_eq(g[1].gift, MIB(20));
	ck_assert_uint_eq(g[2].gift, 0);
	balance_share(g, 3, MIB(81), MIB(1), MIB(1)); /* 60.75 and 20.25 */
	ck_assert_uint_eq(g[0].gift, MIB(60));
	ck_assert_uint_eq(g[1].gift, MIB(21)); /* and what was left over of the one before */
	balance_share(g, 3, MIB(400), MIB(1), MIB(1));
	ck_assert_uint_eq(g[0].gift, MIB(300));
	ck_assert_uint_eq(g[1].gift, MIB(100));
	balance_share(g, 3, MIB(400) - 1, MIB(1), MIB(1));
	ck_assert_uint_eq(g[0].gift, MIB(299));
	ck_assert_uint_eq(g[1].gift, MIB(100)); /* all of it */
	g[1].demand = MIB(1) / 2;		/* the last half granule may be given */
	balance_share(g, 3, MIB(500), MIB(1), MIB(1));
	ck_assert_uint_eq(g[1].gift, MIB(1) / 2);
	balance_share(g + 1, 1, MIB(1) / 2, MIB(1), MIB(1));
	ck_assert_uint_eq(g[1].gift, MIB(1) / 2);
	balance_share(
		g + 2, 1, MIB(5), MIB(1), MIB(1)); /* nobody misses anything: no division by 0 */
	ck_assert_uint_eq(g[2].gift, 0);
	balance_share(NULL, 0, MIB(5), MIB(1), MIB(1));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("balance");
	TCase *t = tcase_create("balance");

	tcase_add_test(t, a_vm_may_have_its_ceiling_or_its_max);
	tcase_add_test(t, loosened_is_the_limit_or_usage_and_headroom_in_excess);
	tcase_add_test(t, fed_is_up_to_the_soft_limit_and_without_one_to_the_limit);
	tcase_add_test(t, swapping_in_a_mib_between_two_samples_is_pressure);
	tcase_add_test(
		t, gifts_are_in_proportion_in_whole_granules_and_to_no_one_more_than_it_misses);
	suite_add_tcase(s, t);
	return suite_run(s);
}
