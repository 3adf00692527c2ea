/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* page_counter: a chain of counters, charged from many threads. */
#include <config.h>

#include "policy/page_counter.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct page_counter top, middle, leaf;

static void setup(void)
{
	page_counter_init(&top, NULL);
	page_counter_init(&middle, &top);
	page_counter_init(&leaf, &middle);
}

static void check_usage(uint64_t l, uint64_t m, uint64_t t)
{
	ck_assert_uint_eq(page_counter_read(&leaf), l);
	ck_assert_uint_eq(page_counter_read(&middle), m);
	ck_assert_uint_eq(page_counter_read(&top), t);
}

/* Memory that is used, whatever a max says. */
static void charge_used(struct page_counter *counter, int64_t pages)
{
	for (struct page_counter *c = counter; c; c = c->parent)
		page_counter_move(c, pages);
}

START_TEST(charge_goes_up_the_chain_and_back)
{
	charge_used(&leaf, 10);
	charge_used(&middle, 5);
	check_usage(10, 15, 15);
	page_counter_uncharge(&leaf, 4);
	check_usage(6, 11, 11);
	page_counter_uncharge(&leaf, 6);
	page_counter_uncharge(&middle, 5);
	check_usage(0, 0, 0);
}
END_TEST

START_TEST(charge_of_used_memory_passes_every_max)
{
	page_counter_set_max(&middle, 3);
	charge_used(&leaf, 10);
	check_usage(10, 10, 10);
}
END_TEST

START_TEST(try_charge_fills_to_the_max_and_not_a_page_further)
{
	struct page_counter *fail = NULL;

	page_counter_set_max(&middle, 10);
	ck_assert_int_eq(page_counter_try_charge(&leaf, 10, &fail), 0);
	ck_assert_ptr_null(fail);
	ck_assert_int_eq(page_counter_try_charge(&leaf, 1, &fail), -ENOMEM);
	ck_assert_ptr_eq(fail, &middle);
	check_usage(10, 10, 10);
}
END_TEST

START_TEST(refused_charge_names_who_refuses_and_leaves_nothing)
{
	struct page_counter *fail = NULL;

	page_counter_set_max(&top, 5);
	ck_assert_int_eq(page_counter_try_charge(&leaf, 6, &fail), -ENOMEM);
	ck_assert_ptr_eq(fail, &top);
	check_usage(0, 0, 0);

	page_counter_set_max(&leaf, 0);
	ck_assert_int_eq(page_counter_try_charge(&leaf, 1, &fail), -ENOMEM);
	ck_assert_ptr_eq(fail, &leaf);
	check_usage(0, 0, 0);
}
END_TEST

START_TEST(max_below_the_usage_refuses_until_it_fell)
{
	struct page_counter *fail;

	charge_used(&leaf, 10);
	page_counter_set_max(&leaf, 4);
	ck_assert_int_eq(page_counter_try_charge(&leaf, 1, &fail), -ENOMEM);
	page_counter_uncharge(&leaf, 7);
	ck_assert_int_eq(page_counter_try_charge(&leaf, 1, &fail), 0);
	check_usage(4, 4, 4);
}
END_TEST

START_TEST(unlimited_is_all_that_64_bits_of_bytes_hold_in_pages_of_4_kib)
{
	ck_assert_uint_eq(POLICY_PAGE_SIZE, 4096);
	ck_assert_uint_eq(PAGES_UNLIMITED, UINT64_MAX / 4096);
}
END_TEST

START_TEST(no_counter_passes_pages_unlimited)
{
	struct page_counter *fail;

	ck_assert_int_eq(page_counter_try_charge(&leaf, PAGES_UNLIMITED, &fail), 0);
	ck_assert_int_eq(page_counter_try_charge(&leaf, 1, &fail), -ENOMEM);
	ck_assert_int_eq(page_counter_try_charge(&leaf, UINT64_MAX, &fail), -ENOMEM);
	check_usage(PAGES_UNLIMITED, PAGES_UNLIMITED, PAGES_UNLIMITED);
}
END_TEST

/* --- threads --- */

#define THREADS 4
#define ROUNDS	20000

static _Atomic bool passed_max;

static void *charge_and_uncharge(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	struct page_counter own;
	uint64_t held = 0;

	page_counter_init(&own, &middle);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t pages = 1 + (uint64_t)(rand_r(&seed) % 7);
		struct page_counter *fail;

		if (page_counter_try_charge(&own, pages, &fail) == 0)
			held += pages;
		if (page_counter_read(&middle) > 20)
			passed_max = true;
		if (held > 8 || rand_r(&seed) % 2) {
			page_counter_uncharge(&own, held);
			held = 0;
		}
	}
	page_counter_uncharge(&own, held);
	return NULL;
}

START_TEST(threads_never_push_a_counter_past_its_max_and_lose_no_page)
{
	pthread_t threads[THREADS];

	passed_max = false;
	page_counter_set_max(&middle, 20);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, charge_and_uncharge, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert(!passed_max);
	check_usage(0, 0, 0);
}
END_TEST

/* --- broken invariants --- */

START_TEST(uncharge_of_more_than_is_charged_is_noticed)
{
	charge_used(&leaf, 1);
	page_counter_uncharge(&leaf, 2);
}
END_TEST

START_TEST(charge_past_pages_unlimited_is_noticed)
{
	charge_used(&leaf, (int64_t)PAGES_UNLIMITED);
	charge_used(&leaf, 1);
}
END_TEST

START_TEST(charge_of_nothing_is_noticed)
{
	struct page_counter *fail;

	page_counter_try_charge(&leaf, 0, &fail);
}
END_TEST

START_TEST(a_max_past_pages_unlimited_is_noticed)
{
	page_counter_set_max(&leaf, PAGES_UNLIMITED + 1);
}
END_TEST

START_TEST(a_move_below_nothing_is_noticed)
{
	page_counter_move(&leaf, -1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("page_counter");
	TCase *tc = tcase_create("page_counter");
	const char *fork_mode = getenv("CK_FORK");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, charge_goes_up_the_chain_and_back);
	tcase_add_test(tc, charge_of_used_memory_passes_every_max);
	tcase_add_test(tc, try_charge_fills_to_the_max_and_not_a_page_further);
	tcase_add_test(tc, refused_charge_names_who_refuses_and_leaves_nothing);
	tcase_add_test(tc, max_below_the_usage_refuses_until_it_fell);
	tcase_add_test(tc, unlimited_is_all_that_64_bits_of_bytes_hold_in_pages_of_4_kib);
	tcase_add_test(tc, no_counter_passes_pages_unlimited);
	tcase_add_test(tc, threads_never_push_a_counter_past_its_max_and_lose_no_page);
	if (!fork_mode || strcmp(fork_mode, "no") != 0) { /* an abort would end all */
		tcase_add_test_raise_signal(
			tc, uncharge_of_more_than_is_charged_is_noticed, SIGABRT);
		tcase_add_test_raise_signal(tc, charge_past_pages_unlimited_is_noticed, SIGABRT);
		tcase_add_test_raise_signal(tc, charge_of_nothing_is_noticed, SIGABRT);
		tcase_add_test_raise_signal(tc, a_max_past_pages_unlimited_is_noticed, SIGABRT);
		tcase_add_test_raise_signal(tc, a_move_below_nothing_is_noticed, SIGABRT);
	}
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
