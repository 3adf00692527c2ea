/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* charge: pages and references in one batch; the planner's way in, and everybody else's. */
#include <config.h>

#include "policy/charge.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static struct memcg_tree *tree;
static struct memcg *slice, *vm;

static struct memcg *group(struct memcg *parent, uint64_t id)
{
	struct memcg *memcg = NULL;

	ck_assert_int_eq(memcg_new(tree, parent, id, &memcg), 0);
	return memcg;
}

static void set_max(struct memcg *memcg, uint64_t max)
{
	struct memcg_knobs knobs = MEMCG_KNOBS_NONE;

	knobs.max = max;
	ck_assert_int_eq(memcg_set_knobs(memcg, &knobs), 0);
}

static void setup(void)
{
	ck_assert_int_eq(memcg_tree_new(&tree), 0);
	slice = group(tree->root, 2);
	vm = group(slice, 3);
}

static void teardown(void)
{
	memcg_tree_free(tree);
}

static void check_has(const struct memcg *memcg, uint64_t pages, uint64_t refs)
{
	ck_assert_uint_eq(page_counter_read(&memcg->memory), pages);
	ck_assert_uint_eq(css_refs(&memcg->css), refs);
}

/* --- charge_observed --- */

START_TEST(observed_pages_come_with_a_reference_each)
{
	ck_assert_int_eq(charge_observed(vm, 100), 0);
	check_has(vm, 100, 101);
	check_has(slice, 100, 2);
	ck_assert_uint_eq(tree->root->seen, 100);
	ck_assert_int_eq(charge_observed(vm, 40), 0);
	check_has(vm, 40, 41);
	ck_assert_int_eq(charge_observed(vm, 40), 0);
	check_has(vm, 40, 41);
	ck_assert_int_eq(charge_observed(vm, 0), 0);
	check_has(vm, 0, 1);
	memcg_verify(tree);
}
END_TEST

START_TEST(observed_pages_pass_every_max)
{
	set_max(slice, 50);
	set_max(vm, 10);
	ck_assert_int_eq(charge_observed(vm, 100), 0);
	check_has(slice, 100, 2);
}
END_TEST

START_TEST(observed_figures_that_cannot_be_are_refused_and_change_nothing)
{
	struct memcg *other = group(slice, 4);

	ck_assert_int_eq(charge_observed(vm, PAGES_UNLIMITED + 1), -EINVAL);
	ck_assert_int_eq(charge_observed(vm, UINT64_MAX), -EINVAL);
	check_has(vm, 0, 1);
	ck_assert_int_eq(charge_observed(vm, PAGES_UNLIMITED), 0);
	ck_assert_int_eq(charge_observed(other, 1), -EINVAL);
	check_has(other, 0, 1);
	/* The counters have room, what was seen has not. */
	ck_assert_int_eq(charge_observed(vm, 10), 0);
	memcg_see(vm, PAGES_UNLIMITED);
	ck_assert_int_eq(charge_observed(other, 1), -EINVAL);
	memcg_verify(tree);
}
END_TEST

START_TEST(a_dead_vms_pages_stay_charged_and_can_only_become_fewer)
{
	ck_assert_int_eq(charge_observed(vm, 100), 0);
	ck_assert_int_eq(memcg_kill(vm), 0);
	ck_assert_uint_eq(memcg_reap(tree), 0);
	ck_assert_uint_eq(tree->root->seen, 100);
	ck_assert_int_eq(charge_observed(vm, 101), -ENODEV);
	ck_assert_int_eq(charge_observed(vm, 100), 0);
	check_has(vm, 100, 100);
	ck_assert_int_eq(charge_observed(vm, 30), 0);
	check_has(vm, 30, 30);
	ck_assert_uint_eq(tree->root->seen, 30);
	memcg_verify(tree);
	ck_assert_int_eq(charge_observed(vm, 0), 0);
	ck_assert_uint_eq(memcg_reap(tree), 1);
	ck_assert_uint_eq(tree->root->seen, 0);
	check_has(slice, 0, 1);
	memcg_verify(tree);
}
END_TEST

/* BR-94 */
START_TEST(sixty_five_thousand_vms_that_come_and_go_leave_no_group)
{
	for (uint64_t i = 0; i < 65536; i++) {
		struct memcg *m = group(slice, 10 + i);

		ck_assert_int_eq(charge_observed(m, 1 + i), 0);
		ck_assert_int_eq(memcg_kill(m), 0);
		ck_assert_uint_eq(memcg_reap(tree), 0);
		ck_assert_int_eq(charge_observed(m, 0), 0);
		ck_assert_uint_eq(memcg_reap(tree), 1);
	}
	ck_assert_uint_eq(tree->nr_groups, 3);
	memcg_verify(tree);
}
END_TEST

/* --- charge_try --- */

START_TEST(tried_pages_come_with_a_reference_each)
{
	struct memcg *refused = NULL;

	ck_assert_int_eq(charge_try(vm, 100, &refused), 0);
	check_has(vm, 100, 101);
	check_has(slice, 100, 2);
	ck_assert_int_eq(uncharge(vm, 99), 0);
	check_has(vm, 1, 2);
	ck_assert_int_eq(uncharge(vm, 1), 0);
	check_has(vm, 0, 1);
	ck_assert_ptr_null(refused);
}
END_TEST

START_TEST(impossible_amounts_are_refused)
{
	struct memcg *refused = NULL;

	ck_assert_int_eq(charge_try(vm, 0, &refused), -EINVAL);
	ck_assert_int_eq(charge_try(vm, PAGES_UNLIMITED + 1, &refused), -EINVAL);
	ck_assert_int_eq(charge_try(vm, PAGES_UNLIMITED, &refused), 0);
	ck_assert_int_eq(uncharge(vm, PAGES_UNLIMITED), 0);
	charge_see_dirty(tree);
	ck_assert_int_eq(uncharge(vm, 0), -EINVAL);
	ck_assert_int_eq(uncharge(vm, 1), -EINVAL);
	check_has(vm, 0, 1);
	ck_assert_ptr_null(refused);
}
END_TEST

START_TEST(a_refused_charge_says_by_whom_and_takes_no_reference)
{
	struct memcg *refused = NULL;

	set_max(slice, 10);
	ck_assert_int_eq(charge_try(vm, 11, &refused), -ENOMEM);
	ck_assert_ptr_eq(refused, slice);
	check_has(vm, 0, 1);
	set_max(vm, 5);
	ck_assert_int_eq(charge_try(vm, 6, &refused), -ENOMEM);
	ck_assert_ptr_eq(refused, vm);
	ck_assert_int_eq(charge_try(vm, 5, &refused), 0);
	check_has(vm, 5, 6);
	check_has(slice, 5, 2);
}
END_TEST

START_TEST(a_killed_group_takes_no_charge)
{
	struct memcg *refused = NULL;

	css_get(&vm->css);
	ck_assert_int_eq(memcg_kill(vm), 0);
	ck_assert_int_eq(charge_try(vm, 1, &refused), -ENODEV);
	ck_assert_ptr_null(refused);
	check_has(vm, 0, 1);
	css_put(&vm->css);
	ck_assert_uint_eq(memcg_reap(tree), 1);
}
END_TEST

START_TEST(the_planner_sees_a_group_at_each_events_target_and_once)
{
	struct memcg *refused, *other = group(slice, 4);

	ck_assert_int_eq(charge_try(vm, CHARGE_EVENTS_TARGET - 1, &refused), 0);
	ck_assert_uint_eq(charge_see_dirty(tree), 0);
	ck_assert_uint_eq(vm->seen, 0);
	ck_assert_int_eq(charge_try(vm, 1, &refused), 0);
	ck_assert_int_eq(charge_try(vm, 1, &refused), 0);
	ck_assert_int_eq(charge_try(other, 5000, &refused), 0);
	ck_assert_uint_eq(charge_see_dirty(tree), 2);
	ck_assert_uint_eq(charge_see_dirty(tree), 0);
	ck_assert_uint_eq(vm->seen, CHARGE_EVENTS_TARGET + 1);
	ck_assert_uint_eq(tree->root->seen, CHARGE_EVENTS_TARGET + 1 + 5000);
	memcg_verify(tree);
	/* Downwards as well. */
	ck_assert_int_eq(uncharge(other, CHARGE_EVENTS_TARGET - 1), 0);
	ck_assert_uint_eq(charge_see_dirty(tree), 0);
	ck_assert_int_eq(uncharge(other, 1), 0);
	ck_assert_uint_eq(charge_see_dirty(tree), 1);
	ck_assert_uint_eq(other->seen, 5000 - CHARGE_EVENTS_TARGET);
	memcg_verify(tree);
}
END_TEST

START_TEST(a_dirty_group_outlives_its_last_page_until_it_is_drained)
{
	struct memcg *refused;

	ck_assert_int_eq(charge_try(vm, 2 * CHARGE_EVENTS_TARGET, &refused), 0);
	ck_assert_int_eq(memcg_kill(vm), 0);
	ck_assert_int_eq(uncharge(vm, 2 * CHARGE_EVENTS_TARGET), 0);
	ck_assert_uint_eq(memcg_reap(tree), 0);
	ck_assert_uint_eq(charge_see_dirty(tree), 1);
	ck_assert_uint_eq(memcg_reap(tree), 1);
	memcg_verify(tree);
}
END_TEST

START_TEST(pages_that_went_unseen_go_with_the_group)
{
	struct memcg *refused;

	ck_assert_int_eq(charge_try(vm, CHARGE_EVENTS_TARGET, &refused), 0);
	ck_assert_uint_eq(charge_see_dirty(tree), 1);
	ck_assert_int_eq(uncharge(vm, CHARGE_EVENTS_TARGET - 10), 0);
	ck_assert_int_eq(memcg_kill(vm), 0);
	ck_assert_int_eq(uncharge(vm, 10), 0);
	while (memcg_reap(tree) == 0)
		ck_assert_uint_eq(charge_see_dirty(tree), 1);
	ck_assert_uint_eq(tree->root->seen, 0);
	memcg_verify(tree);
}
END_TEST

/* --- threads --- */

#define THREADS	    4
#define ROUNDS	    20000
#define GENERATIONS 8

static struct memcg *_Atomic leaves[THREADS];
static _Atomic bool passed_max;
static _Atomic unsigned int running;
static _Atomic uint64_t charged;

/*
 * Charges the leaf it was given until that is killed, gives all back, puts its reference and waits
 * for the next one.
 */
static void *charge_until_killed(void *arg)
{
	uintptr_t self = (uintptr_t)arg;
	unsigned int seed = (unsigned int)self + 1;

	for (int generation = 0; generation < GENERATIONS; generation++) {
		struct memcg *leaf, *refused;
		uint64_t held = 0;
		int r;

		while (!(leaf = leaves[self]))
			sched_yield();
		do {
			uint64_t pages = 1 + (uint64_t)(rand_r(&seed) % 700);

			r = charge_try(leaf, pages, &refused);
			if (r == 0) {
				held += pages;
				charged++;
			}
			if (page_counter_read(&slice->memory) > 5000)
				passed_max = true;
			if (held && (held > 2000 || r == -ENOMEM)) {
				pages = 1 + (uint64_t)rand_r(&seed) % held;
				if (uncharge(leaf, pages) == 0)
					held -= pages;
			}
		} while (r != -ENODEV);
		if (held)
			uncharge(leaf, held);
		leaves[self] = NULL;
		css_put(&leaf->css);
	}
	running--;
	return NULL;
}

START_TEST(threads_charge_see_kill_and_reap_without_losing_a_page_or_a_group)
{
	pthread_t threads[THREADS];
	unsigned int given[THREADS] = { 0 };
	uint64_t id = 100, seen_dirty = 0, frees = 0;

	set_max(slice, 5000);
	passed_max = false;
	running = THREADS;
	charged = 0;
	for (uintptr_t i = 0; i < THREADS; i++) {
		leaves[i] = NULL;
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, charge_until_killed, (void *)i), 0);
	}
	while (running) {
		for (int i = 0; i < THREADS; i++) {
			struct memcg *leaf = NULL;
			uint64_t before = charged;

			if (leaves[i] || given[i] == GENERATIONS)
				continue;
			leaf = group(slice, id++);
			css_get(&leaf->css); /* the thread's */
			leaves[i] = leaf;
			given[i]++;
			while (charged < before + 2000) {
				seen_dirty += charge_see_dirty(tree);
				sched_yield();
			}
			ck_assert_int_eq(memcg_kill(leaf), 0);
		}
		seen_dirty += charge_see_dirty(tree);
		frees += memcg_reap(tree);
		sched_yield();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	charge_see_dirty(tree);
	frees += memcg_reap(tree);
	ck_assert(!passed_max);
	ck_assert_uint_gt(seen_dirty, 0);
	ck_assert_uint_eq(frees, THREADS * GENERATIONS);
	ck_assert_uint_eq(tree->nr_groups, 3);
	check_has(slice, 0, 2);
	ck_assert_uint_eq(tree->root->seen, 0);
	memcg_verify(tree);
}
END_TEST

static void *charge_one_leaf(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	struct memcg *refused;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t pages = 1 + (uint64_t)(rand_r(&seed) % 2048);

		if (charge_try(vm, pages, &refused) == 0 && (i % 100 != 99))
			uncharge(vm, pages);
	}
	running--;
	return NULL;
}

/* Thread contract 4: |seen - counter| < events target. */
START_TEST(threads_on_one_leaf_leave_less_than_an_events_target_unseen)
{
	pthread_t threads[THREADS];
	uint64_t usage;

	running = THREADS;
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, charge_one_leaf, (void *)(i + 1)), 0);
	while (running) {
		charge_see_dirty(tree);
		sched_yield();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	charge_see_dirty(tree);
	usage = page_counter_read(&vm->memory);
	ck_assert_uint_gt(usage, 0);
	ck_assert_uint_lt(
		pages_max(usage, vm->seen) - pages_min(usage, vm->seen), CHARGE_EVENTS_TARGET);
	check_has(vm, usage, usage + 1);
	ck_assert_uint_eq(charge_see_dirty(tree), 0);
	memcg_verify(tree);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("charge");
	TCase *tc = tcase_create("charge");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, observed_pages_come_with_a_reference_each);
	tcase_add_test(tc, observed_pages_pass_every_max);
	tcase_add_test(tc, observed_figures_that_cannot_be_are_refused_and_change_nothing);
	tcase_add_test(tc, a_dead_vms_pages_stay_charged_and_can_only_become_fewer);
	tcase_add_test(tc, sixty_five_thousand_vms_that_come_and_go_leave_no_group);
	tcase_add_test(tc, tried_pages_come_with_a_reference_each);
	tcase_add_test(tc, impossible_amounts_are_refused);
	tcase_add_test(tc, a_refused_charge_says_by_whom_and_takes_no_reference);
	tcase_add_test(tc, a_killed_group_takes_no_charge);
	tcase_add_test(tc, the_planner_sees_a_group_at_each_events_target_and_once);
	tcase_add_test(tc, a_dirty_group_outlives_its_last_page_until_it_is_drained);
	tcase_add_test(tc, pages_that_went_unseen_go_with_the_group);
	tcase_add_test(tc, threads_charge_see_kill_and_reap_without_losing_a_page_or_a_group);
	tcase_add_test(tc, threads_on_one_leaf_leave_less_than_an_events_target_unseen);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
