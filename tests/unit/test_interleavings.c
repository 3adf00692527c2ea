/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What two threads do to one group, in every order: another operation is run in the middle of the
 * first one, before its first access to shared memory, before its second, and so on. The sources
 * are built into this program with the hook of policy/atomic.h.
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

static struct memcg_tree *tree;
static struct memcg *vm, *other;

static unsigned int points;    /* of the first operation, until the other is run */
static void (*intruder)(void); /* NULL: none, or it ran */

void atomic_hook(const volatile void *addr)
{
	void (*run)(void) = intruder;

	(void)addr;
	if (!run || points-- > 0)
		return;
	intruder = NULL;
	run();
}

static void start(void (*other_thread)(void), unsigned int after)
{
	points = after;
	intruder = other_thread;
}

/* Whether the other operation ran; if not, the first has no access that far in. */
static bool came(void)
{
	bool ran = !intruder;

	intruder = NULL;
	return ran;
}

static void setup(void)
{
	intruder = NULL;
	ck_assert_int_eq(memcg_tree_new(&tree), 0);
	ck_assert_int_eq(memcg_new(tree, tree->root, 2, &vm), 0);
	ck_assert_int_eq(memcg_new(tree, tree->root, 3, &other), 0);
}

static void teardown(void)
{
	memcg_tree_free(tree);
}

static void charge_target(void)
{
	struct memcg *refused;

	ck_assert_int_eq(charge_try(vm, CHARGE_EVENTS_TARGET, &refused), 0);
}

static void uncharge_target(void)
{
	ck_assert_int_eq(uncharge(vm, CHARGE_EVENTS_TARGET), 0);
}

START_TEST(pages_that_come_or_go_during_a_drain_are_seen_by_it_or_by_the_next)
{
	void (*const others[])(void) = { charge_target, uncharge_target };

	for (size_t i = 0; i < 2; i++) {
		unsigned int n = 0;

		do {
			setup();
			charge_target();
			start(others[i], n++);
			charge_see_dirty(tree);
			if (!came())
				break;
			charge_see_dirty(tree);
			ck_assert_uint_lt(distance(vm->seen, page_counter_read(&vm->memory)),
				CHARGE_EVENTS_TARGET);
			ck_assert_uint_eq(charge_see_dirty(tree), 0);
			ck_assert_uint_eq(css_refs(&vm->css), 1 + page_counter_read(&vm->memory));
			memcg_verify(tree);
			teardown();
		} while (n < 100);
		ck_assert_uint_gt(n, 5);
		ck_assert_uint_lt(n, 100);
		teardown();
	}
	setup();
}
END_TEST

static void drain(void)
{
	charge_see_dirty(tree);
}

START_TEST(a_drain_during_a_charge_loses_no_page)
{
	unsigned int n = 0;

	for (; n < 100; n++) {
		setup();
		charge_target();
		start(drain, n);
		charge_target();
		if (!came())
			break;
		charge_see_dirty(tree);
		ck_assert_uint_lt(
			distance(vm->seen, 2 * CHARGE_EVENTS_TARGET), CHARGE_EVENTS_TARGET);
		ck_assert_uint_eq(charge_see_dirty(tree), 0);
		memcg_verify(tree);
		teardown();
	}
	ck_assert_uint_gt(n, 5);
	ck_assert_uint_lt(n, 100);
}
END_TEST

static void charge_other(void)
{
	struct memcg *refused;

	ck_assert_int_eq(charge_try(other, CHARGE_EVENTS_TARGET, &refused), 0);
}

START_TEST(two_groups_that_get_dirty_at_once_are_both_on_the_list)
{
	unsigned int n = 0;

	for (; n < 100; n++) {
		setup();
		start(charge_other, n);
		charge_target();
		if (!came())
			break;
		ck_assert_uint_eq(charge_see_dirty(tree), 2);
		memcg_verify(tree);
		teardown();
	}
	ck_assert_uint_gt(n, 5);
	ck_assert_uint_lt(n, 100);
}
END_TEST

static void take_room(void)
{
	struct memcg *refused;

	charge_try(other, 60, &refused);
}

START_TEST(two_charges_at_once_never_pass_a_max_together)
{
	struct memcg_knobs knobs = MEMCG_KNOBS_NONE;
	struct memcg *refused;
	unsigned int n = 0;

	knobs.max = 100;
	for (; n < 100; n++) {
		int r;

		setup();
		ck_assert_int_eq(memcg_set_knobs(tree->root, &knobs), 0);
		start(take_room, n);
		r = charge_try(vm, 60, &refused);
		if (!came())
			break;
		/* The one that came first into the root's counter has it. */
		ck_assert_uint_eq(page_counter_read(&tree->root->memory), 60);
		ck_assert_uint_eq(page_counter_read(&vm->memory), r == 0 ? 60 : 0);
		ck_assert_uint_eq(css_refs(&vm->css), r == 0 ? 61 : 1);
		teardown();
	}
	ck_assert_uint_gt(n, 5);
	ck_assert_uint_lt(n, 100);
}
END_TEST

static void kill_vm(void)
{
	ck_assert_int_eq(memcg_kill(vm), 0);
}

static void kill_and_reap_vm(void)
{
	ck_assert_int_eq(memcg_kill(vm), 0);
	memcg_reap(tree);
}

START_TEST(killed_during_a_charge_it_is_charged_whole_or_not_at_all_and_released_once)
{
	struct memcg *refused;
	unsigned int n = 0;

	for (; n < 100; n++) {
		int r;

		setup();
		css_get(&vm->css); /* the caller's */
		start(kill_and_reap_vm, n);
		r = charge_try(vm, 7, &refused);
		if (!came())
			break;
		ck_assert(r == 0 || r == -ENODEV);
		ck_assert_uint_eq(page_counter_read(&vm->memory), r == 0 ? 7 : 0);
		ck_assert_uint_eq(memcg_reap(tree), 0);
		if (r == 0)
			ck_assert_int_eq(uncharge(vm, 7), 0);
		css_put(&vm->css);
		ck_assert_uint_eq(memcg_reap(tree), 1);
		memcg_verify(tree);
		teardown();
	}
	ck_assert_uint_gt(n, 2);
	ck_assert_uint_lt(n, 100);
}
END_TEST

START_TEST(killed_during_the_last_put_it_is_released_once)
{
	unsigned int n = 0;

	for (; n < 100; n++) {
		setup();
		css_get(&vm->css);
		start(kill_vm, n);
		css_put(&vm->css);
		if (!came())
			break;
		ck_assert_uint_eq(memcg_reap(tree), 1);
		memcg_verify(tree);
		teardown();
	}
	ck_assert_uint_eq(n, 1);
}
END_TEST

static void kill_other(void)
{
	ck_assert_int_eq(memcg_kill(other), 0);
}

START_TEST(two_groups_released_at_once_are_both_in_the_queue)
{
	unsigned int n = 0;

	for (; n < 100; n++) {
		setup();
		css_get(&vm->css);
		kill_vm();
		start(kill_other, n);
		css_put(&vm->css);
		if (!came())
			break;
		ck_assert_uint_eq(memcg_reap(tree), 2);
		memcg_verify(tree);
		teardown();
	}
	ck_assert_uint_gt(n, 2);
	ck_assert_uint_lt(n, 100);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("interleavings");
	TCase *tc = tcase_create("interleavings");
	SRunner *runner;
	int failed;

	/* Each test sets up anew for each order; the last tree is left to the fixture. */
	tcase_add_checked_fixture(tc, NULL, teardown);
	tcase_add_test(tc, pages_that_come_or_go_during_a_drain_are_seen_by_it_or_by_the_next);
	tcase_add_test(tc, a_drain_during_a_charge_loses_no_page);
	tcase_add_test(tc, two_groups_that_get_dirty_at_once_are_both_on_the_list);
	tcase_add_test(tc, two_charges_at_once_never_pass_a_max_together);
	tcase_add_test(
		tc, killed_during_a_charge_it_is_charged_whole_or_not_at_all_and_released_once);
	tcase_add_test(tc, killed_during_the_last_put_it_is_released_once);
	tcase_add_test(tc, two_groups_released_at_once_are_both_in_the_queue);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
