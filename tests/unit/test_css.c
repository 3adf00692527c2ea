/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* css: references in batches, killing, the one release. */
#include <config.h>

#include "policy/css.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct css_queue queue;
static struct css css;

static void setup(void)
{
	css_queue_init(&queue);
	css_init(&css, &queue);
}

START_TEST(a_group_starts_with_its_own_reference)
{
	ck_assert_uint_eq(css_refs(&css), 1);
	ck_assert(!css_killed(&css));
	ck_assert_ptr_null(css_queue_take(&queue));
}
END_TEST

START_TEST(batches_count_as_so_many_single_references)
{
	css_get(&css);
	css_get_many(&css, 10);
	ck_assert(css_tryget(&css));
	ck_assert(css_tryget_many(&css, 20));
	ck_assert_uint_eq(css_refs(&css), 33);
	css_put(&css);
	css_put_many(&css, 31);
	css_put_many(&css, 0);
	ck_assert_uint_eq(css_refs(&css), 1);
}
END_TEST

START_TEST(killed_without_users_it_is_released_at_once_and_once)
{
	css_kill(&css);
	ck_assert(css_killed(&css));
	ck_assert_uint_eq(css_refs(&css), 0);
	ck_assert_ptr_eq(css_queue_take(&queue), &css);
	ck_assert_ptr_null(css.release_next);
	ck_assert_ptr_null(css_queue_take(&queue));
}
END_TEST

START_TEST(killed_in_use_it_is_released_with_the_last_reference)
{
	css_get_many(&css, 3);
	css_kill(&css);
	ck_assert(!css_tryget(&css));
	ck_assert(!css_tryget_many(&css, 5));
	ck_assert_uint_eq(css_refs(&css), 3);
	css_get(&css); /* who holds a reference may take more */
	css_put_many(&css, 3);
	ck_assert_ptr_null(css_queue_take(&queue));
	css_put_many(&css, 0);
	ck_assert_ptr_null(css_queue_take(&queue));
	css_put(&css);
	ck_assert_ptr_eq(css_queue_take(&queue), &css);
}
END_TEST

START_TEST(all_released_groups_are_taken_in_one_go)
{
	struct css more[3];
	size_t n = 0;

	for (int i = 0; i < 3; i++) {
		css_init(&more[i], &queue);
		css_kill(&more[i]);
	}
	for (struct css *c = css_queue_take(&queue); c; c = c->release_next)
		n++;
	ck_assert_uint_eq(n, 3);
}
END_TEST

/* BR-95 */
START_TEST(a_root_is_immortal_even_before_it_is_set_up)
{
	struct css root = { 0 };

	css_get(&root);
	css_put_many(&root, 1000000);
	ck_assert_uint_eq(css_refs(&root), 0);

	css_init_root(&root);
	css_get_many(&root, 1000000);
	ck_assert(css_tryget_many(&root, 7));
	ck_assert(css_tryget(&root));
	css_put_many(&root, 2000000);
	ck_assert_uint_eq(css_refs(&root), 1);
	ck_assert(!css_killed(&root));
}
END_TEST

/* BR-95 */
START_TEST(a_million_batches_end_at_the_start_value)
{
	for (uint64_t n = 1; n <= 1000000; n++) {
		css_get_many(&css, n);
		css_put_many(&css, n);
	}
	ck_assert_uint_eq(css_refs(&css), 1);
}
END_TEST

/* --- broken invariants --- */

START_TEST(put_of_more_than_is_held_is_noticed)
{
	css_get_many(&css, 2);
	css_put_many(&css, 4);
}
END_TEST

START_TEST(put_of_the_groups_own_reference_is_noticed)
{
	css_get_many(&css, 2);
	css_put_many(&css, 3);
}
END_TEST

START_TEST(put_of_more_than_is_held_of_a_killed_group_is_noticed)
{
	css_get_many(&css, 2);
	css_kill(&css);
	css_put_many(&css, 3);
}
END_TEST

START_TEST(get_without_a_reference_is_noticed)
{
	css_kill(&css);
	css_get(&css);
}
END_TEST

START_TEST(saturation_is_noticed_at_get)
{
	css_get_many(&css, UINT64_C(1) << 61);
	css_get_many(&css, UINT64_C(1) << 61);
}
END_TEST

START_TEST(saturation_is_noticed_at_tryget)
{
	css_get_many(&css, UINT64_C(1) << 61);
	css_tryget_many(&css, UINT64_C(1) << 61);
}
END_TEST

START_TEST(killing_twice_is_noticed)
{
	css_get(&css);
	css_kill(&css);
	css_kill(&css);
}
END_TEST

START_TEST(killing_a_root_is_noticed)
{
	css_init_root(&css);
	css_kill(&css);
}
END_TEST

/* --- threads --- */

#define THREADS 4
#define GROUPS	200

static struct css groups[GROUPS];
static _Atomic bool go;

static void *use_until_killed(void *arg)
{
	(void)arg;
	while (!go)
		sched_yield();
	for (int i = 0; i < GROUPS; i++) {
		struct css *c = &groups[i];

		/* Its own reference was taken for it; with it the memory is there. */
		while (css_tryget_many(c, 5)) {
			css_get(c);
			css_put_many(c, 6);
			sched_yield();
		}
		css_put(c);
	}
	return NULL;
}

START_TEST(threads_release_each_killed_group_exactly_once)
{
	pthread_t threads[THREADS];
	int seen[GROUPS] = { 0 };
	int n = 0;

	go = false;
	for (int i = 0; i < GROUPS; i++) {
		css_init(&groups[i], &queue);
		css_get_many(&groups[i], THREADS);
	}
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, use_until_killed, NULL), 0);
	go = true;
	for (int i = 0; i < GROUPS; i++) {
		sched_yield();
		css_kill(&groups[i]);
	}
	while (n < GROUPS) {
		struct css *next;

		for (struct css *c = css_queue_take(&queue); c; c = next) {
			next = c->release_next;
			ck_assert_int_eq(seen[c - groups]++, 0);
			memset(c, 0, sizeof(*c)); /* nobody may look at it any more */
			n++;
		}
		sched_yield();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_ptr_null(css_queue_take(&queue));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("css");
	TCase *tc = tcase_create("css");
	const char *fork_mode = getenv("CK_FORK");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_group_starts_with_its_own_reference);
	tcase_add_test(tc, batches_count_as_so_many_single_references);
	tcase_add_test(tc, killed_without_users_it_is_released_at_once_and_once);
	tcase_add_test(tc, killed_in_use_it_is_released_with_the_last_reference);
	tcase_add_test(tc, all_released_groups_are_taken_in_one_go);
	tcase_add_test(tc, a_root_is_immortal_even_before_it_is_set_up);
	tcase_add_test(tc, a_million_batches_end_at_the_start_value);
	tcase_add_test(tc, threads_release_each_killed_group_exactly_once);
	if (!fork_mode || strcmp(fork_mode, "no") != 0) { /* an abort would end all */
		tcase_add_test_raise_signal(tc, put_of_more_than_is_held_is_noticed, SIGABRT);
		tcase_add_test_raise_signal(
			tc, put_of_the_groups_own_reference_is_noticed, SIGABRT);
		tcase_add_test_raise_signal(
			tc, put_of_more_than_is_held_of_a_killed_group_is_noticed, SIGABRT);
		tcase_add_test_raise_signal(tc, get_without_a_reference_is_noticed, SIGABRT);
		tcase_add_test_raise_signal(tc, saturation_is_noticed_at_get, SIGABRT);
		tcase_add_test_raise_signal(tc, saturation_is_noticed_at_tryget, SIGABRT);
		tcase_add_test_raise_signal(tc, killing_twice_is_noticed, SIGABRT);
		tcase_add_test_raise_signal(tc, killing_a_root_is_noticed, SIGABRT);
	}
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
