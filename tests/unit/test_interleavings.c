/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What two and three threads do to groups, in every order of their accesses to shared memory
 * (orders.h). The sources are built into this program with the hook of policy/atomic.h.
 */
#define BALLAST_ATOMIC_HOOK 1

#include <config.h>

/* clang-format off */
#include "policy/page_counter.c"
#include "policy/slab.c"
#include "policy/css.c"
#include "policy/memcg.c"
#include "policy/charge.c"
/* clang-format on */

#include <check.h>
#include <stdio.h>

#include "tests/unit/drain.h"
#include "tests/unit/orders.h"
#include "tests/unit/suite.h"

static struct memcg_tree *tree;
static struct memcg *vm, *other;
static struct charge_stocks *stocks;
static struct charge_stock *mine, *theirs;

static uint64_t held;	    /* pages of vm and other that somebody has */
static int result, result2; /* of the thread that is looked at */
static size_t reaped;
static uint64_t usage_then;

static void set_max(struct memcg *memcg, uint64_t max)
{
	struct memcg_knobs knobs = MEMCG_KNOBS_NONE;

	knobs.max = max;
	ck_assert_int_eq(memcg_set_knobs(memcg, &knobs), 0);
}

static void setup(void)
{
	ck_assert_int_eq(memcg_tree_new(&tree), 0);
	ck_assert_int_eq(memcg_new(tree, tree->root, 2, &vm), 0);
	ck_assert_int_eq(memcg_new(tree, tree->root, 3, &other), 0);
	ck_assert_int_eq(charge_stocks_new(tree, 2, &stocks), 0);
	mine = charge_stocks_get(stocks, 0);
	theirs = charge_stocks_get(stocks, 1);
	held = 0;
	result = result2 = 1;
	reaped = 0;
}

static void teardown(void)
{
	charge_stocks_free(stocks);
	memcg_tree_free(tree);
}

/* After a drain: the counters are what is held, and each held page has its reference. */
static void check_exact(void)
{
	charge_stock_idle(mine);
	charge_stock_idle(theirs);
	while (drain_and_see(tree))
		;
	ck_assert_uint_eq(page_counter_read(&tree->root->memory), held);
	ck_assert_uint_eq(atomic_u64_read(&stocks->hungry), 0);
	memcg_verify(tree);
}

static void check_refs(const struct memcg *leaf)
{
	ck_assert_uint_eq(css_refs(&leaf->css), 1 + page_counter_read(&leaf->memory));
}

static void check_all(void)
{
	check_exact();
	check_refs(vm);
	check_refs(other);
	teardown();
}

/* At least so many runs, or what should meet does not. */
static void make(const struct orders *orders, uint64_t at_least)
{
	size_t accesses;
	uint64_t runs = orders_all(orders, &accesses);

	printf("# %llu orders, %zu accesses\n", (unsigned long long)runs, accesses);
	ck_assert_uint_ge(runs, at_least);
}

static void keep(int r, uint64_t pages)
{
	ck_assert(r == 0 || r == -ENOMEM || r == -EAGAIN || r == -ENODEV);
	if (r == 0)
		held += pages;
	result = r;
}

/* --- what threads do --- */

static void charge_target(void)
{
	struct memcg *refused;

	keep(charge_direct(vm, CHARGE_EVENTS_TARGET, &refused), CHARGE_EVENTS_TARGET);
}

static void charge_other_target(void)
{
	struct memcg *refused;

	keep(charge_direct(other, CHARGE_EVENTS_TARGET, &refused), CHARGE_EVENTS_TARGET);
}

static void uncharge_target(void)
{
	ck_assert_int_eq(uncharge_direct(vm, CHARGE_EVENTS_TARGET), 0);
	held -= CHARGE_EVENTS_TARGET;
}

static void drain(void)
{
	drain_and_see(tree);
}

static void charge_60(void)
{
	struct memcg *refused;

	keep(charge_direct(vm, 60, &refused), 60);
}

static void charge_other_60(void)
{
	struct memcg *refused;

	keep(charge_direct(other, 60, &refused), 60);
}

static void kill_vm(void)
{
	ck_assert_int_eq(charge_kill(vm), 0);
}

static void kill_and_reap(void)
{
	kill_vm();
	reaped += memcg_reap(tree);
}

static void put(void)
{
	css_put(&vm->css);
}

static void kill_other(void)
{
	ck_assert_int_eq(charge_kill(other), 0);
}

/* With a reference of its own, which goes last. */
static void use(void)
{
	if (css_tryget_many(&vm->css, 5)) {
		css_get(&vm->css);
		css_put_many(&vm->css, 6);
	}
	css_put(&vm->css);
}

static void mine_1(void)
{
	struct memcg *refused;

	keep(charge_try(mine, vm, 1, &refused), 1);
}

static void mine_1_gives(void)
{
	mine_1();
	charge_stock_serve(mine);
}

static void mine_1_twice(void)
{
	mine_1();
	mine_1();
}

static void mine_back(void)
{
	ck_assert_int_eq(uncharge(mine, vm, 1), 0);
	held -= 1;
}

static void mine_idle_and_1(void)
{
	charge_stock_idle(mine);
	mine_1();
}

static void theirs_1(void)
{
	struct memcg *refused;

	keep(charge_try(theirs, vm, 1, &refused), 1);
}

/* Asks, and asks again. */
static void theirs_60(void)
{
	struct memcg *refused;

	result2 = charge_try(theirs, other, 60, &refused);
	if (result2 == -EAGAIN)
		result2 = charge_try(theirs, other, 60, &refused);
	if (result2 == 0)
		held += 60;
}

static void use_many(void)
{
	css_get_many(&vm->css, 7);
	css_put_many(&vm->css, 3);
	css_put_many(&vm->css, 5);
}

/* What is left of it, and the reference it was charged with. */
static void leave(void)
{
	ck_assert_int_eq(uncharge_direct(vm, CHARGE_EVENTS_TARGET), 0);
	held -= CHARGE_EVENTS_TARGET;
	css_put(&vm->css);
}

static void kill_drain_and_reap(void)
{
	kill_vm();
	drain();
	reaped += memcg_reap(tree);
	drain();
	reaped += memcg_reap(tree);
}

static void lower_max(void)
{
	set_max(tree->root, 10);
	usage_then = page_counter_read(&tree->root->memory);
}

/* --- the dirty list --- */

static void setup_dirty(void)
{
	setup();
	charge_target();
}

static void check_seen(void)
{
	drain_and_see(tree);
	ck_assert_uint_lt(distance(vm->seen, page_counter_read(&vm->memory)), CHARGE_EVENTS_TARGET);
	ck_assert_uint_lt(
		distance(other->seen, page_counter_read(&other->memory)), CHARGE_EVENTS_TARGET);
	ck_assert_uint_eq(drain_and_see(tree), 0);
	check_all();
}

START_TEST(pages_that_come_or_go_during_a_drain_are_seen_by_it_or_by_the_next)
{
	make(&(struct orders){ setup_dirty, { drain, charge_target }, check_seen }, 10);
	make(&(struct orders){ setup_dirty, { drain, uncharge_target }, check_seen }, 10);
	make(&(struct orders){ setup_dirty, { drain, charge_target, charge_other_target },
		     check_seen },
		100);
}
END_TEST

static void check_both_listed(void)
{
	ck_assert_uint_eq(drain_and_see(tree), 2);
	check_seen();
}

START_TEST(two_groups_that_get_dirty_at_once_are_both_on_the_list)
{
	make(&(struct orders){ setup, { charge_target, charge_other_target }, check_both_listed },
		10);
}
END_TEST

/* --- limits --- */

static void setup_max_100(void)
{
	setup();
	set_max(tree->root, 100);
}

static void check_one_has_it(void)
{
	ck_assert_uint_le(held, 60);
	check_all();
}

START_TEST(two_charges_at_once_never_pass_a_max_together)
{
	make(&(struct orders){ setup_max_100, { charge_60, charge_other_60 }, check_one_has_it },
		4);
}
END_TEST

static void check_lowered(void)
{
	ck_assert_uint_le(page_counter_read(&tree->root->memory), pages_max(10, usage_then));
	check_all();
}

START_TEST(a_refill_passes_no_max_that_is_lowered_meanwhile)
{
	make(&(struct orders){ setup_max_100, { mine_1, lower_max }, check_lowered }, 5);
	make(&(struct orders){ setup_max_100, { charge_60, lower_max, charge_other_60 },
		     check_lowered },
		50);
}
END_TEST

/* --- killing --- */

static void setup_reference(void)
{
	setup();
	css_get(&vm->css); /* the caller's */
}

static void check_killed(void)
{
	reaped += memcg_reap(tree);
	if (page_counter_read(&vm->memory) > 0 || css_refs(&vm->css) > 1) {
		ck_assert_uint_eq(reaped, 0);
		check_exact();
	}
	if (held > 0)
		ck_assert_int_eq(uncharge_direct(vm, held), 0);
	held = 0;
	css_put(&vm->css);
	while (drain_and_see(tree))
		;
	reaped += memcg_reap(tree);
	ck_assert_uint_eq(reaped, 1);
	check_exact();
	teardown();
}

START_TEST(killed_during_a_charge_it_is_charged_whole_or_not_at_all_and_released_once)
{
	make(&(struct orders){ setup_reference, { charge_60, kill_and_reap }, check_killed }, 2);
	make(&(struct orders){ setup_reference, { mine_1, kill_and_reap }, check_killed }, 5);
	make(&(struct orders){ setup_reference,
		     {
			     charge_target,
			     kill_and_reap,
		     },
		     check_killed },
		2);
}
END_TEST

static void setup_stocked(void)
{
	setup_reference();
	mine_1();
}

static void check_killed_stock(void)
{
	struct memcg *refused;

	ck_assert_int_eq(charge_try(mine, vm, 1, &refused), -ENODEV);
	charge_stock_idle(theirs);
	/* What it has given by then is what nobody holds. */
	ck_assert_uint_eq(page_counter_read(&vm->memory), held);
	ck_assert_uint_eq(css_refs(&vm->css), held + 1);
	check_killed();
}

START_TEST(a_stock_of_a_killed_group_is_given_back_at_the_next_charge)
{
	make(&(struct orders){ setup_stocked, { mine_1, kill_and_reap }, check_killed_stock }, 2);
	make(&(struct orders){ setup_stocked, { mine_1_gives, kill_and_reap, theirs_1 },
		     check_killed_stock },
		20);
	make(&(struct orders){ setup_stocked, { mine_back, kill_and_reap, theirs_1 },
		     check_killed_stock },
		20);
}
END_TEST

static void setup_put(void)
{
	setup();
	css_get_many(&vm->css, 2);
}

static void check_released(void)
{
	ck_assert_uint_eq(reaped + memcg_reap(tree), 1);
	memcg_verify(tree);
	teardown();
}

static void kill_only(void)
{
	kill_vm();
}

START_TEST(the_last_put_and_a_tryget_and_a_kill_release_once)
{
	make(&(struct orders){ setup_put, { put, use, kill_only }, check_released }, 20);
	make(&(struct orders){ setup_put, { put, use_many, kill_only }, check_released }, 10);
}
END_TEST

static void setup_leaving(void)
{
	setup_reference();
	charge_target();
}

static void check_left(void)
{
	while (drain_and_see(tree))
		;
	ck_assert_uint_eq(reaped + memcg_reap(tree), 1);
	check_exact();
	teardown();
}

START_TEST(the_last_pages_of_a_killed_group_that_go_during_a_drain_release_it_once)
{
	make(&(struct orders){ setup_leaving, { leave, kill_drain_and_reap }, check_left }, 10);
}
END_TEST

static void setup_two_put(void)
{
	setup();
	css_get(&vm->css);
	kill_vm();
}

static void check_two_released(void)
{
	ck_assert_uint_eq(memcg_reap(tree), 2);
	memcg_verify(tree);
	teardown();
}

START_TEST(two_groups_released_at_once_are_both_in_the_queue)
{
	make(&(struct orders){ setup_two_put, { put, kill_other }, check_two_released }, 3);
}
END_TEST

/* --- the others' stocks --- */

static void setup_tight(void)
{
	setup_max_100();
	mine_1(); /* of the 100 it has 64 in its stock */
}

/* 60 do not fit beside a full stock, and do beside what is used: never refused for good. */
static void check_not_refused(void)
{
	struct memcg *refused;

	ck_assert_uint_le(page_counter_read(&tree->root->memory), 100);
	ck_assert(result2 == 0 || result2 == -EAGAIN);
	ck_assert_int_eq(result, 0);
	charge_stock_serve(mine);
	if (result2 == -EAGAIN) {
		ck_assert_int_eq(charge_try(theirs, other, 60, &refused), 0);
		held += 60;
	}
	check_all();
}

START_TEST(nothing_is_refused_that_anothers_stock_covers)
{
	make(&(struct orders){ setup_tight, { mine_1, theirs_60 }, check_not_refused }, 3);
	make(&(struct orders){ setup_tight, { mine_1_twice, theirs_60 }, check_not_refused }, 3);
	make(&(struct orders){ setup_tight, { mine_1_gives, theirs_60 }, check_not_refused }, 3);
	make(&(struct orders){ setup_tight, { mine_idle_and_1, theirs_60 }, check_not_refused }, 4);
	make(&(struct orders){ setup_tight, { mine_back, theirs_60 }, check_not_refused }, 3);
	make(&(struct orders){ setup_max_100, { mine_1, theirs_60 }, check_not_refused }, 4);
}
END_TEST

static void setup_full(void)
{
	struct memcg *refused;

	setup_max_100();
	ck_assert_int_eq(charge_direct(vm, 41, &refused), 0);
	held = 41;
	charge_stock_idle(mine);
}

/* It is full, and each stock is empty: refused, by name, whatever the other does meanwhile. */
static void check_refused(void)
{
	struct memcg *refused = NULL;

	charge_stock_serve(mine);
	if (result2 == -EAGAIN)
		result2 = charge_try(theirs, other, 60, &refused);
	ck_assert_int_eq(result2, -ENOMEM);
	check_all();
}

START_TEST(what_no_stock_covers_is_refused_once_all_have_given)
{
	make(&(struct orders){ setup_full, { mine_1, theirs_60 }, check_refused }, 10);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("interleavings");
	TCase *tc = tcase_create("interleavings");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, pages_that_come_or_go_during_a_drain_are_seen_by_it_or_by_the_next);
	tcase_add_test(tc, two_groups_that_get_dirty_at_once_are_both_on_the_list);
	tcase_add_test(tc, two_charges_at_once_never_pass_a_max_together);
	tcase_add_test(tc, a_refill_passes_no_max_that_is_lowered_meanwhile);
	tcase_add_test(
		tc, killed_during_a_charge_it_is_charged_whole_or_not_at_all_and_released_once);
	tcase_add_test(tc, a_stock_of_a_killed_group_is_given_back_at_the_next_charge);
	tcase_add_test(tc, the_last_put_and_a_tryget_and_a_kill_release_once);
	tcase_add_test(tc, the_last_pages_of_a_killed_group_that_go_during_a_drain_release_it_once);
	tcase_add_test(tc, two_groups_released_at_once_are_both_in_the_queue);
	tcase_add_test(tc, nothing_is_refused_that_anothers_stock_covers);
	tcase_add_test(tc, what_no_stock_covers_is_refused_once_all_have_given);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
