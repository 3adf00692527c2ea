/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* batch: sizes and ends of a reclaim in decaying batches. */
#include <config.h>

#include "policy/batch.h"

#include <check.h>

#include "tests/unit/suite.h"

static struct batch batch;

/* The next batch is of that many pages, and brings all of them. */
static void step(uint64_t expected)
{
	uint64_t pages = 0;

	ck_assert_int_eq(batch_next(&batch, UINT64_MAX, &pages), BATCH_GO);
	ck_assert_uint_eq(pages, expected);
	batch_result(&batch, pages);
}

/* BR-139 */
START_TEST(three_mib_go_in_quarters_of_what_remains_down_to_32_pages)
{
	static const uint64_t expected[] = { 192, 144, 108, 81, 60, 45, 34, 32, 32, 32, 8 };
	uint64_t pages = 12345;

	batch_start(&batch, MIB_TO_PAGES(3));
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		step(expected[i]);
	ck_assert_int_eq(batch_next(&batch, UINT64_MAX, &pages), BATCH_DONE);
	ck_assert_uint_eq(pages, 12345);
	ck_assert_uint_eq(batch.reclaimed, 768);
}
END_TEST

/* BR-89 */
START_TEST(a_partial_success_is_a_gain_and_the_next_batch_a_quarter_of_the_rest)
{
	uint64_t pages;

	batch_start(&batch, MIB_TO_PAGES(1024));
	ck_assert_int_eq(batch_next(&batch, UINT64_MAX, &pages), BATCH_GO);
	ck_assert_uint_eq(pages, MIB_TO_PAGES(256));
	batch_result(&batch, MIB_TO_PAGES(600));
	step(MIB_TO_PAGES(106));
}
END_TEST

/* BR-89 */
START_TEST(sixteen_empty_tries_in_total_give_up_whatever_came_in_between)
{
	uint64_t pages;

	batch_start(&batch, MIB_TO_PAGES(1024));
	for (int i = 0; i < 15; i++) {
		ck_assert_int_eq(batch_next(&batch, UINT64_MAX, &pages), BATCH_GO);
		batch_result(&batch, 0);
		/* A gain in between does not give the tries back. */
		ck_assert_int_ne(batch_next(&batch, UINT64_MAX, &pages), BATCH_GAVE_UP);
		batch_result(&batch, 1);
	}
	ck_assert_int_eq(batch_next(&batch, UINT64_MAX, &pages), BATCH_GO);
	batch_result(&batch, 0);
	ck_assert_int_eq(batch_next(&batch, UINT64_MAX, &pages), BATCH_GAVE_UP);
	ck_assert_uint_eq(batch.reclaimed, 15);
}
END_TEST

START_TEST(a_batch_fits_the_callers_time_slice)
{
	uint64_t pages;

	batch_start(&batch, 1000);
	ck_assert_int_eq(batch_next(&batch, 100, &pages), BATCH_GO);
	ck_assert_uint_eq(pages, 100);
	ck_assert_int_eq(batch_next(&batch, 5, &pages), BATCH_GO);
	ck_assert_uint_eq(pages, 5);
	ck_assert_int_eq(batch_next(&batch, 0, &pages), BATCH_GO);
	ck_assert_uint_eq(pages, BATCH_MIN);
	batch_result(&batch, 990);
	ck_assert_int_eq(batch_next(&batch, 0, &pages), BATCH_GO);
	ck_assert_uint_eq(pages, 10);
}
END_TEST

START_TEST(nothing_wanted_is_done_at_once)
{
	uint64_t pages;

	batch_start(&batch, 0);
	ck_assert_int_eq(batch_next(&batch, UINT64_MAX, &pages), BATCH_DONE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("batch");
	TCase *tc = tcase_create("batch");

	tcase_add_test(tc, three_mib_go_in_quarters_of_what_remains_down_to_32_pages);
	tcase_add_test(tc, a_partial_success_is_a_gain_and_the_next_batch_a_quarter_of_the_rest);
	tcase_add_test(tc, sixteen_empty_tries_in_total_give_up_whatever_came_in_between);
	tcase_add_test(tc, a_batch_fits_the_callers_time_slice);
	tcase_add_test(tc, nothing_wanted_is_done_at_once);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
