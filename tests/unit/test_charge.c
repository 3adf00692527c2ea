/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* charge: pages and references in one batch; the planner's way in, and everybody else's. */
#include <config.h>

#include "policy/charge.h"
#include "tests/unit/drain.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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

	ck_assert_int_eq(charge_direct(vm, 100, &refused), 0);
	check_has(vm, 100, 101);
	check_has(slice, 100, 2);
	ck_assert_int_eq(uncharge_direct(vm, 99), 0);
	check_has(vm, 1, 2);
	ck_assert_int_eq(uncharge_direct(vm, 1), 0);
	check_has(vm, 0, 1);
	ck_assert_ptr_null(refused);
}
END_TEST

START_TEST(impossible_amounts_are_refused)
{
	struct memcg *refused = NULL;

	ck_assert_int_eq(charge_direct(vm, 0, &refused), -EINVAL);
	ck_assert_int_eq(charge_direct(vm, PAGES_UNLIMITED + 1, &refused), -EINVAL);
	ck_assert_int_eq(charge_direct(vm, PAGES_UNLIMITED, &refused), 0);
	ck_assert_int_eq(uncharge_direct(vm, PAGES_UNLIMITED), 0);
	drain_and_see(tree);
	ck_assert_int_eq(uncharge_direct(vm, 0), -EINVAL);
	ck_assert_int_eq(uncharge_direct(vm, 1), -EINVAL);
	check_has(vm, 0, 1);
	ck_assert_ptr_null(refused);
}
END_TEST

START_TEST(a_refused_charge_says_by_whom_and_takes_no_reference)
{
	struct memcg *refused = NULL;

	set_max(slice, 10);
	ck_assert_int_eq(charge_direct(vm, 11, &refused), -ENOMEM);
	ck_assert_ptr_eq(refused, slice);
	check_has(vm, 0, 1);
	set_max(vm, 5);
	ck_assert_int_eq(charge_direct(vm, 6, &refused), -ENOMEM);
	ck_assert_ptr_eq(refused, vm);
	ck_assert_int_eq(charge_direct(vm, 5, &refused), 0);
	check_has(vm, 5, 6);
	check_has(slice, 5, 2);
}
END_TEST

START_TEST(a_killed_group_takes_no_charge)
{
	struct memcg *refused = NULL;

	css_get(&vm->css);
	ck_assert_int_eq(memcg_kill(vm), 0);
	ck_assert_int_eq(charge_direct(vm, 1, &refused), -ENODEV);
	ck_assert_ptr_null(refused);
	check_has(vm, 0, 1);
	css_put(&vm->css);
	ck_assert_uint_eq(memcg_reap(tree), 1);
}
END_TEST

START_TEST(the_planner_sees_a_group_at_each_events_target_and_once)
{
	struct memcg *refused, *other = group(slice, 4);

	ck_assert_int_eq(charge_direct(vm, CHARGE_EVENTS_TARGET - 1, &refused), 0);
	ck_assert_uint_eq(drain_and_see(tree), 0);
	ck_assert_uint_eq(vm->seen, 0);
	ck_assert_int_eq(charge_direct(vm, 1, &refused), 0);
	ck_assert_int_eq(charge_direct(vm, 1, &refused), 0);
	ck_assert_int_eq(charge_direct(other, 5000, &refused), 0);
	ck_assert_uint_eq(drain_and_see(tree), 2);
	ck_assert_uint_eq(drain_and_see(tree), 0);
	ck_assert_uint_eq(vm->seen, CHARGE_EVENTS_TARGET + 1);
	ck_assert_uint_eq(tree->root->seen, CHARGE_EVENTS_TARGET + 1 + 5000);
	memcg_verify(tree);
	/* Downwards as well. */
	ck_assert_int_eq(uncharge_direct(other, CHARGE_EVENTS_TARGET - 1), 0);
	ck_assert_uint_eq(drain_and_see(tree), 0);
	ck_assert_int_eq(uncharge_direct(other, 1), 0);
	ck_assert_uint_eq(drain_and_see(tree), 1);
	ck_assert_uint_eq(other->seen, 5000 - CHARGE_EVENTS_TARGET);
	memcg_verify(tree);
}
END_TEST

START_TEST(a_dirty_group_outlives_its_last_page_until_it_is_drained)
{
	struct memcg *refused;

	ck_assert_int_eq(charge_direct(vm, 2 * CHARGE_EVENTS_TARGET, &refused), 0);
	ck_assert_int_eq(memcg_kill(vm), 0);
	ck_assert_int_eq(uncharge_direct(vm, 2 * CHARGE_EVENTS_TARGET), 0);
	ck_assert_uint_eq(memcg_reap(tree), 0);
	ck_assert_uint_eq(drain_and_see(tree), 1);
	ck_assert_uint_eq(memcg_reap(tree), 1);
	memcg_verify(tree);
}
END_TEST

START_TEST(pages_that_went_unseen_go_with_the_group)
{
	struct memcg *refused;

	ck_assert_int_eq(charge_direct(vm, CHARGE_EVENTS_TARGET, &refused), 0);
	ck_assert_uint_eq(drain_and_see(tree), 1);
	ck_assert_int_eq(uncharge_direct(vm, CHARGE_EVENTS_TARGET - 10), 0);
	ck_assert_int_eq(memcg_kill(vm), 0);
	ck_assert_int_eq(uncharge_direct(vm, 10), 0);
	while (memcg_reap(tree) == 0)
		ck_assert_uint_eq(drain_and_see(tree), 1);
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

			r = charge_direct(leaf, pages, &refused);
			if (r == 0) {
				held += pages;
				charged++;
			}
			if (page_counter_read(&slice->memory) > 5000)
				passed_max = true;
			if (held && (held > 2000 || r == -ENOMEM)) {
				pages = 1 + (uint64_t)rand_r(&seed) % held;
				if (uncharge_direct(leaf, pages) == 0)
					held -= pages;
			}
		} while (r != -ENODEV);
		if (held)
			uncharge_direct(leaf, held);
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
				seen_dirty += drain_and_see(tree);
				sched_yield();
			}
			ck_assert_int_eq(memcg_kill(leaf), 0);
		}
		seen_dirty += drain_and_see(tree);
		frees += memcg_reap(tree);
		sched_yield();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	drain_and_see(tree);
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

		if (charge_direct(vm, pages, &refused) == 0 && (i % 100 != 99))
			uncharge_direct(vm, pages);
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
		drain_and_see(tree);
		sched_yield();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	drain_and_see(tree);
	usage = page_counter_read(&vm->memory);
	ck_assert_uint_gt(usage, 0);
	ck_assert_uint_lt(
		pages_max(usage, vm->seen) - pages_min(usage, vm->seen), CHARGE_EVENTS_TARGET);
	check_has(vm, usage, usage + 1);
	ck_assert_uint_eq(drain_and_see(tree), 0);
	memcg_verify(tree);
}
END_TEST

/* --- stocks --- */

#define STOCKS 4

static struct charge_stocks *stocks;

static void setup_stocks(void)
{
	setup();
	ck_assert_int_eq(charge_stocks_new(tree, STOCKS, &stocks), 0);
}

static void teardown_stocks(void)
{
	for (size_t i = 0; i < STOCKS; i++)
		charge_stock_idle(charge_stocks_get(stocks, i));
	charge_stocks_free(stocks);
	ck_assert_ptr_null(tree->stocks);
	teardown();
}

START_TEST(a_refill_charges_a_batch_and_its_references_and_hits_change_nothing_shared)
{
	struct charge_stock *stock = charge_stocks_get(stocks, 0);
	struct memcg *refused = NULL;

	for (uint64_t i = 0; i < CHARGE_BATCH; i++) {
		ck_assert_int_eq(charge_try(stock, vm, 1, &refused), 0);
		check_has(vm, CHARGE_BATCH, CHARGE_BATCH + 1);
		check_has(slice, CHARGE_BATCH, 2);
	}
	ck_assert_int_eq(charge_try(stock, vm, 1, &refused), 0);
	check_has(vm, 2 * CHARGE_BATCH, 2 * CHARGE_BATCH + 1);
	charge_stock_idle(stock);
	check_has(vm, CHARGE_BATCH + 1, CHARGE_BATCH + 2);
	ck_assert_int_eq(uncharge(stock, vm, CHARGE_BATCH + 1), 0);
	check_has(vm, 0, 1);
	ck_assert_ptr_null(refused);
}
END_TEST

START_TEST(uncharged_pages_go_to_the_stock_and_back_in_batches)
{
	struct charge_stock *stock = charge_stocks_get(stocks, 0);
	struct memcg *refused;
	unsigned int changes = 0;
	uint64_t before;

	ck_assert_int_eq(charge_try(stock, vm, 1000, &refused), 0);
	check_has(vm, 1000, 1001); /* more than a batch: past the stock */
	for (int i = 0; i < 1000; i++) {
		before = page_counter_read(&vm->memory);
		ck_assert_int_eq(uncharge(stock, vm, 1), 0);
		changes += page_counter_read(&vm->memory) != before;
	}
	ck_assert_uint_le(changes, 1000 / CHARGE_BATCH + 1);
	charge_stock_idle(stock);
	check_has(vm, 0, 1);
}
END_TEST

START_TEST(a_stock_has_a_few_groups_and_gives_back_the_one_charged_longest_ago)
{
	struct charge_stock *stock = charge_stocks_get(stocks, 0);
	struct memcg *refused, *leaf[CHARGE_STOCK_GROUPS + 1];

	for (uint64_t i = 0; i < CHARGE_STOCK_GROUPS; i++) {
		leaf[i] = group(slice, 10 + i);
		ck_assert_int_eq(charge_try(stock, leaf[i], 1, &refused), 0);
	}
	ck_assert_int_eq(charge_try(stock, leaf[0], 1, &refused), 0);
	for (size_t i = 0; i < CHARGE_STOCK_GROUPS; i++)
		check_has(leaf[i], CHARGE_BATCH, CHARGE_BATCH + 1);
	leaf[CHARGE_STOCK_GROUPS] = group(slice, 100);
	ck_assert_int_eq(charge_try(stock, leaf[CHARGE_STOCK_GROUPS], 1, &refused), 0);
	check_has(leaf[0], CHARGE_BATCH, CHARGE_BATCH + 1);
	check_has(leaf[1], 1, 2);
	check_has(leaf[2], CHARGE_BATCH, CHARGE_BATCH + 1);
	charge_stock_idle(stock);
	check_has(leaf[0], 2, 3);
	check_has(slice, 1 + 1 + CHARGE_STOCK_GROUPS, 2 + CHARGE_STOCK_GROUPS + 1);
}
END_TEST

/* In numbers: what all others say by name. */
START_TEST(a_stock_has_four_groups_by_64_pages_and_what_is_charged_is_seen_by_1024)
{
	struct charge_stock *stock = charge_stocks_get(stocks, 0);
	struct charge_stocks *more = NULL;
	struct memcg *leaf[5], *refused;

	for (uint64_t i = 0; i < 5; i++) {
		leaf[i] = group(slice, 10 + i);
		ck_assert_int_eq(charge_try(stock, leaf[i], 1, &refused), 0);
		ck_assert_uint_eq(page_counter_read(&leaf[i]->memory), 64);
		ck_assert_uint_eq(page_counter_read(&leaf[0]->memory), i < 4 ? 64 : 1);
	}
	ck_assert_int_eq(charge_direct(vm, 1023, &refused), 0);
	ck_assert_uint_eq(drain_and_see(tree), 0);
	ck_assert_int_eq(charge_direct(vm, 1, &refused), 0);
	ck_assert_uint_eq(drain_and_see(tree), 1);
	ck_assert_int_eq(charge_stocks_new(tree, 256, &more), -EEXIST);
	ck_assert_int_eq(charge_stocks_new(tree, 257, &more), -EINVAL);
}
END_TEST

START_TEST(a_stock_is_filled_to_a_batch_and_no_further)
{
	struct charge_stock *stock = charge_stocks_get(stocks, 0);
	struct memcg *refused, *other = group(slice, 4);

	/* A whole batch is a refill, whatever the stock has. */
	ck_assert_int_eq(charge_try(stock, vm, CHARGE_BATCH - 10, &refused), 0);
	ck_assert_int_eq(charge_try(stock, vm, CHARGE_BATCH, &refused), 0);
	check_has(slice, 2 * CHARGE_BATCH, 3);
	/* All that it has, too, without another. */
	ck_assert_int_eq(charge_try(stock, vm, 10, &refused), 0);
	check_has(slice, 2 * CHARGE_BATCH, 3);
	/* Filled by a batch, and by what is missing to one. */
	ck_assert_int_eq(uncharge(stock, vm, CHARGE_BATCH), 0);
	check_has(slice, 2 * CHARGE_BATCH, 3);
	ck_assert_int_eq(charge_try(stock, vm, 4, &refused), 0);
	ck_assert_int_eq(uncharge(stock, vm, 4), 0);
	check_has(slice, 2 * CHARGE_BATCH, 3);
	/* One page more, and what it had is given back. */
	ck_assert_int_eq(charge_try(stock, vm, 4, &refused), 0);
	ck_assert_int_eq(uncharge(stock, vm, 5), 0);
	check_has(slice, CHARGE_BATCH + 4, 3);
	/* The same where another group was charged last. */
	ck_assert_int_eq(charge_try(stock, other, 1, &refused), 0);
	ck_assert_int_eq(charge_try(stock, vm, 5, &refused), 0);
	ck_assert_uint_eq(page_counter_read(&vm->memory), CHARGE_BATCH + 4);
	ck_assert_int_eq(uncharge(stock, vm, CHARGE_BATCH - 4), 0);
	ck_assert_int_eq(charge_try(stock, other, 1, &refused), 0);
	ck_assert_int_eq(uncharge(stock, vm, 4), 0);
	ck_assert_uint_eq(page_counter_read(&vm->memory), CHARGE_BATCH + 4);
}
END_TEST

START_TEST(a_refill_that_does_not_fit_takes_the_exact_size)
{
	struct charge_stock *stock = charge_stocks_get(stocks, 0);
	struct memcg *refused = NULL;

	set_max(slice, 10);
	for (uint64_t i = 1; i <= 10; i++) {
		ck_assert_int_eq(charge_try(stock, vm, 1, &refused), 0);
		check_has(vm, i, i + 1);
	}
	ck_assert_int_eq(charge_try(stock, vm, 1, &refused), -ENOMEM);
	ck_assert_ptr_eq(refused, slice);
	check_has(vm, 10, 11);
	check_has(slice, 10, 2);
	charge_stock_serve(stock);
}
END_TEST

START_TEST(a_stocks_own_pages_of_another_group_are_no_reason_to_refuse)
{
	struct charge_stock *stock = charge_stocks_get(stocks, 0);
	struct memcg *refused, *other = group(slice, 4);

	set_max(slice, 64);
	ck_assert_int_eq(charge_try(stock, other, 1, &refused), 0);
	ck_assert_int_eq(charge_try(stock, vm, 63, &refused), 0);
	check_has(slice, 64, 3);
	ck_assert_int_eq(charge_try(stock, vm, 1, &refused), -ENOMEM);
}
END_TEST

START_TEST(others_stocks_are_asked_for_and_waited_for_before_a_refusal)
{
	struct charge_stock *a = charge_stocks_get(stocks, 0), *b = charge_stocks_get(stocks, 1);
	struct memcg *refused = NULL, *other = group(slice, 4);

	set_max(slice, 100);
	ck_assert_int_eq(charge_try(a, vm, 1, &refused), 0);
	check_has(slice, 64, 3);
	ck_assert_int_eq(charge_try(b, other, 60, &refused), -EAGAIN);
	ck_assert_int_eq(charge_try(b, other, 60, &refused), -EAGAIN);
	check_has(other, 0, 1);
	/* The owner gives at its next charge, and takes only what it needs meanwhile. */
	ck_assert_int_eq(charge_try(a, vm, 1, &refused), 0);
	check_has(vm, 2, 3);
	ck_assert_int_eq(charge_try(b, other, 60, &refused), 0);
	check_has(slice, 62, 3);
	ck_assert_int_eq(charge_try(b, other, 39, &refused), -EAGAIN);
	charge_stock_serve(a);
	ck_assert_int_eq(charge_try(b, other, 39, &refused), -ENOMEM);
	ck_assert_ptr_eq(refused, slice);
	/* It has its answer: stocks are refilled again. */
	set_max(slice, 1000);
	ck_assert_int_eq(charge_try(a, vm, 1, &refused), 0);
	check_has(vm, 2 + CHARGE_BATCH, 3 + CHARGE_BATCH);
}
END_TEST

START_TEST(owner_that_is_asked_gives_at_its_next_uncharge_too)
{
	struct charge_stock *a = charge_stocks_get(stocks, 0), *b = charge_stocks_get(stocks, 1);
	struct memcg *refused = NULL, *other = group(slice, 4);

	set_max(slice, 100);
	ck_assert_int_eq(charge_try(a, vm, 2, &refused), 0);
	ck_assert_int_eq(charge_try(b, other, 60, &refused), -EAGAIN);
	ck_assert_int_eq(uncharge(a, vm, 1), 0);
	check_has(vm, 1, 2);
	ck_assert_int_eq(charge_try(b, other, 60, &refused), 0);
}
END_TEST

START_TEST(who_wants_it_no_longer_lets_the_others_refill)
{
	struct charge_stock *a = charge_stocks_get(stocks, 0), *b = charge_stocks_get(stocks, 1);
	struct memcg *refused = NULL, *other = group(slice, 4);

	set_max(slice, 100);
	ck_assert_int_eq(charge_try(a, vm, 1, &refused), 0);
	ck_assert_int_eq(charge_try(b, other, 60, &refused), -EAGAIN);
	charge_stock_idle(b);
	ck_assert_int_eq(charge_try(a, vm, 1, &refused), 0);
	check_has(vm, 1 + CHARGE_BATCH, 2 + CHARGE_BATCH);
}
END_TEST

START_TEST(who_is_idle_is_not_waited_for)
{
	struct charge_stock *a = charge_stocks_get(stocks, 0), *b = charge_stocks_get(stocks, 1);
	struct memcg *refused = NULL;

	set_max(slice, 10);
	ck_assert_int_eq(charge_try(a, vm, 10, &refused), 0);
	charge_stock_idle(a);
	ck_assert_int_eq(charge_try(b, vm, 1, &refused), -ENOMEM);
	ck_assert_ptr_eq(refused, slice);
}
END_TEST

START_TEST(a_killed_groups_stocks_are_given_back_and_it_takes_no_charge)
{
	struct charge_stock *a = charge_stocks_get(stocks, 0), *b = charge_stocks_get(stocks, 1);
	struct memcg *refused = NULL;

	css_get(&vm->css);
	ck_assert_int_eq(charge_try(a, vm, 1, &refused), 0);
	ck_assert_int_eq(charge_try(b, vm, 1, &refused), 0);
	ck_assert_int_eq(charge_kill(vm), 0);
	ck_assert_int_eq(charge_try(a, vm, 1, &refused), -ENODEV);
	charge_stock_serve(b);
	check_has(vm, 2, 3);
	check_has(slice, 2, 2);
	ck_assert_int_eq(uncharge(a, vm, 1), 0);
	ck_assert_int_eq(uncharge(b, vm, 1), 0);
	check_has(vm, 0, 1);
	css_put(&vm->css);
	ck_assert_uint_eq(memcg_reap(tree), 1);
	ck_assert_ptr_null(refused);
}
END_TEST

START_TEST(charged_over_it_passes_every_max_and_is_given_back_like_others)
{
	set_max(slice, 10);
	ck_assert_int_eq(charge_over(vm, 25), 0);
	check_has(vm, 25, 26);
	check_has(slice, 25, 2);
	ck_assert_int_eq(charge_over(vm, 0), -EINVAL);
	ck_assert_int_eq(charge_over(vm, PAGES_UNLIMITED + 1), -EINVAL);
	ck_assert_int_eq(charge_over(vm, PAGES_UNLIMITED), -EINVAL);
	check_has(vm, 25, 26);
	ck_assert_int_eq(uncharge_direct(vm, 25), 0);
	css_get(&vm->css);
	ck_assert_int_eq(charge_kill(vm), 0);
	ck_assert_int_eq(charge_over(vm, 1), -ENODEV);
	css_put(&vm->css);
}
END_TEST

/* Stocks have lines of their own in the cache; nothing else here is allocated so. */
static bool no_memory;

void *aligned_alloc(size_t alignment, size_t size)
{
	void *memory;

	return no_memory || posix_memalign(&memory, alignment, size) ? NULL : memory;
}

START_TEST(without_memory_there_are_no_stocks_and_nothing_is_changed)
{
	struct charge_stocks *more = NULL;

	charge_stocks_free(stocks);
	no_memory = true;
	ck_assert_int_eq(charge_stocks_new(tree, STOCKS, &more), -ENOMEM);
	no_memory = false;
	ck_assert_ptr_null(more);
	ck_assert_int_eq(charge_stocks_new(tree, STOCKS, &stocks), 0);
}
END_TEST

START_TEST(misuse_of_a_stock_is_an_error_and_changes_nothing)
{
	struct charge_stock *stock = charge_stocks_get(stocks, 0);
	struct memcg *refused = NULL;
	struct charge_stocks *more = NULL;

	ck_assert_int_eq(charge_try(stock, vm, 0, &refused), -EINVAL);
	ck_assert_int_eq(charge_try(stock, vm, PAGES_UNLIMITED + 1, &refused), -EINVAL);
	ck_assert_int_eq(uncharge(stock, vm, 1), -EINVAL);
	ck_assert_int_eq(charge_try(stock, vm, 2, &refused), 0);
	ck_assert_int_eq(charge_try(stock, vm, 0, &refused), -EINVAL);
	ck_assert_int_eq(uncharge(stock, vm, 0), -EINVAL);
	ck_assert_int_eq(uncharge(stock, vm, 3), -EINVAL); /* the rest is in the stock */
	ck_assert_int_eq(uncharge(stock, vm, PAGES_UNLIMITED + 1), -EINVAL);
	ck_assert_int_eq(uncharge(stock, vm, 2), 0);
	ck_assert_int_eq(uncharge(stock, vm, 1), -EINVAL);
	charge_stock_idle(stock);
	check_has(vm, 0, 1);
	/* The most that is an amount. */
	ck_assert_int_eq(charge_try(stock, vm, PAGES_UNLIMITED, &refused), 0);
	ck_assert_int_eq(uncharge(stock, vm, PAGES_UNLIMITED), 0);
	ck_assert_int_eq(charge_direct(vm, PAGES_UNLIMITED, &refused), 0);
	ck_assert_int_eq(uncharge_direct(vm, PAGES_UNLIMITED), 0);
	ck_assert_int_eq(charge_over(vm, PAGES_UNLIMITED), 0);
	ck_assert_int_eq(uncharge_direct(vm, PAGES_UNLIMITED), 0);
	ck_assert_uint_eq(page_counter_read(&vm->memory), 0);
	ck_assert_int_eq(charge_stocks_new(tree, 1, &more), -EEXIST);
	ck_assert_int_eq(charge_stocks_new(tree, CHARGE_STOCKS_MAX, &more), -EEXIST);
	ck_assert_int_eq(charge_stocks_new(tree, 0, &more), -EINVAL);
	ck_assert_int_eq(charge_stocks_new(tree, CHARGE_STOCKS_MAX + 1, &more), -EINVAL);
	ck_assert_ptr_null(more);
	charge_stocks_free(NULL);
}
END_TEST

/* Charges and gives back at random, from each stock to each group; what is really held, too. */
START_TEST(counters_are_ahead_by_a_batch_for_each_group_of_each_stock_and_exact_after_a_drain)
{
	struct memcg *leaf[2 * CHARGE_STOCK_GROUPS], *refused;
	uint64_t real[2 * CHARGE_STOCK_GROUPS] = { 0 }, most = 0, sum = 0, ahead;
	unsigned int seed = 1;

	for (size_t i = 0; i < 2 * CHARGE_STOCK_GROUPS; i++)
		leaf[i] = group(slice, 10 + i);
	for (int i = 0; i < 100000; i++) {
		size_t n = (size_t)rand_r(&seed) % (2 * CHARGE_STOCK_GROUPS);
		struct charge_stock *stock =
			charge_stocks_get(stocks, (size_t)rand_r(&seed) % STOCKS);
		uint64_t pages = 1 + (uint64_t)rand_r(&seed) % 70;

		if (rand_r(&seed) % 2 || pages > real[n]) {
			ck_assert_int_eq(charge_try(stock, leaf[n], pages, &refused), 0);
			real[n] += pages;
			sum += pages;
		} else {
			ck_assert_int_eq(uncharge(stock, leaf[n], pages), 0);
			real[n] -= pages;
			sum -= pages;
		}
		ahead = page_counter_read(&leaf[n]->memory) - real[n];
		ck_assert_uint_le(ahead, CHARGE_BATCH * STOCKS);
		ahead = page_counter_read(&slice->memory) - sum;
		ck_assert_uint_le(ahead, CHARGE_BATCH * STOCKS * CHARGE_STOCK_GROUPS);
		most = pages_max(most, ahead);
	}
	ck_assert_uint_gt(most, CHARGE_BATCH * STOCKS); /* or it is not what is meant here */
	for (size_t i = 0; i < STOCKS; i++)
		charge_stock_idle(charge_stocks_get(stocks, i));
	while (drain_and_see(tree))
		;
	for (size_t i = 0; i < 2 * CHARGE_STOCK_GROUPS; i++)
		check_has(leaf[i], real[i], 1 + real[i]);
	ck_assert_uint_eq(page_counter_read(&slice->memory), sum);
}
END_TEST

START_TEST(a_stock_that_is_none_is_noticed)
{
	charge_stocks_get(stocks, STOCKS);
}
END_TEST

START_TEST(stocks_that_are_freed_while_one_is_in_use_are_noticed)
{
	struct memcg *refused;

	charge_try(charge_stocks_get(stocks, 1), vm, 1, &refused);
	charge_stocks_free(stocks);
}
END_TEST

START_TEST(a_dirty_list_with_no_room_for_it_is_noticed)
{
	struct charge_seen none[1];

	charge_over(vm, CHARGE_EVENTS_TARGET);
	charge_drain(tree, none, 0);
}
END_TEST

/* --- threads with stocks --- */

/* Rounds of each thread; the thread sanitizer's run has more: tests/lab/suite.sh. */
#define STRESS_ROUNDS 40000

static struct memcg *stress_leaf[8];
static _Atomic uint64_t stress_over;

/* Charges, tries again when asked to, gives back; at the end all and its references. */
static void *stress(void *arg)
{
	struct charge_stock *stock = charge_stocks_get(stocks, (uintptr_t)arg);
	uint64_t has[8] = { 0 };
	const char *set = getenv("BALLAST_STRESS_ROUNDS");
	unsigned int seed = (unsigned int)(uintptr_t)arg + 1;
	long rounds = set ? atol(set) : STRESS_ROUNDS;

	for (long i = 0; i < rounds; i++) {
		size_t n = (size_t)rand_r(&seed) % 8;
		uint64_t pages = rand_r(&seed) % 8 ? 1 : 1 + (uint64_t)rand_r(&seed) % 90;
		struct memcg *refused;

		if (rand_r(&seed) % 2 && charge_try(stock, stress_leaf[n], pages, &refused) == 0)
			has[n] += pages;
		if (rand_r(&seed) % 2 && has[n]) {
			pages = pages_min(pages, has[n]);
			if (uncharge(stock, stress_leaf[n], pages) == 0)
				has[n] -= pages;
		}
		if (page_counter_read(&slice->memory) > 3000)
			stress_over++;
		if (i % 512 == 0)
			charge_stock_idle(stock);
	}
	for (size_t n = 0; n < 8; n++) {
		if (has[n])
			uncharge(stock, stress_leaf[n], has[n]);
	}
	charge_stock_idle(stock);
	for (size_t n = 0; n < 8; n++)
		css_put(&stress_leaf[n]->css);
	running--;
	return NULL;
}

START_TEST(threads_with_stocks_lose_no_page_pass_no_max_and_let_each_group_go_once)
{
	pthread_t threads[STOCKS];
	uint64_t turns = 0, freed = 0;

	set_max(slice, 3000);
	stress_over = 0;
	for (size_t n = 0; n < 8; n++) {
		stress_leaf[n] = group(slice, 50 + n);
		css_get_many(&stress_leaf[n]->css, STOCKS);
	}
	running = STOCKS;
	for (uintptr_t i = 0; i < STOCKS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, stress, (void *)i), 0);
	while (running) {
		drain_and_see(tree);
		if (turns % 256 == 0 && turns / 256 < 4) /* half of them die in use */
			ck_assert_int_eq(charge_kill(stress_leaf[turns / 256]), 0);
		turns++;
		freed += memcg_reap(tree);
		sched_yield();
	}
	for (int i = 0; i < STOCKS; i++)
		pthread_join(threads[i], NULL);
	for (uint64_t n = pages_min(4, (turns + 255) / 256); n < 8; n++)
		ck_assert_int_eq(charge_kill(stress_leaf[n]), 0);
	while (drain_and_see(tree))
		;
	freed += memcg_reap(tree);
	ck_assert_uint_eq(stress_over, 0);
	ck_assert_uint_eq(freed, 8);
	check_has(slice, 0, 2);
	ck_assert_uint_eq(page_counter_read(&tree->root->memory), 0);
	memcg_verify(tree);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("charge");
	TCase *tc = tcase_create("charge"), *stocked = tcase_create("stocks");
	const char *fork_mode = getenv("CK_FORK");

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
	tcase_add_checked_fixture(stocked, setup_stocks, teardown_stocks);
	tcase_set_timeout(stocked, 120);
	tcase_add_test(stocked,
		a_refill_charges_a_batch_and_its_references_and_hits_change_nothing_shared);
	tcase_add_test(stocked, uncharged_pages_go_to_the_stock_and_back_in_batches);
	tcase_add_test(
		stocked, a_stock_has_a_few_groups_and_gives_back_the_one_charged_longest_ago);
	tcase_add_test(
		stocked, a_stock_has_four_groups_by_64_pages_and_what_is_charged_is_seen_by_1024);
	tcase_add_test(stocked, a_stock_is_filled_to_a_batch_and_no_further);
	tcase_add_test(stocked, a_refill_that_does_not_fit_takes_the_exact_size);
	tcase_add_test(stocked, a_stocks_own_pages_of_another_group_are_no_reason_to_refuse);
	tcase_add_test(stocked, others_stocks_are_asked_for_and_waited_for_before_a_refusal);
	tcase_add_test(stocked, owner_that_is_asked_gives_at_its_next_uncharge_too);
	tcase_add_test(stocked, who_wants_it_no_longer_lets_the_others_refill);
	tcase_add_test(stocked, who_is_idle_is_not_waited_for);
	tcase_add_test(stocked, a_killed_groups_stocks_are_given_back_and_it_takes_no_charge);
	tcase_add_test(stocked, charged_over_it_passes_every_max_and_is_given_back_like_others);
	tcase_add_test(stocked, without_memory_there_are_no_stocks_and_nothing_is_changed);
	tcase_add_test(stocked, misuse_of_a_stock_is_an_error_and_changes_nothing);
	tcase_add_test(stocked,
		counters_are_ahead_by_a_batch_for_each_group_of_each_stock_and_exact_after_a_drain);
	if (!fork_mode || strcmp(fork_mode, "no") != 0) { /* an abort would end all */
		tcase_add_test_raise_signal(stocked, a_stock_that_is_none_is_noticed, SIGABRT);
		tcase_add_test_raise_signal(
			stocked, stocks_that_are_freed_while_one_is_in_use_are_noticed, SIGABRT);
		tcase_add_test_raise_signal(
			stocked, a_dirty_list_with_no_room_for_it_is_noticed, SIGABRT);
	}
	tcase_add_test(
		stocked, threads_with_stocks_lose_no_page_pass_no_max_and_let_each_group_go_once);
	suite_add_tcase(suite, tc);
	suite_add_tcase(suite, stocked);
	return suite_run(suite);
}
