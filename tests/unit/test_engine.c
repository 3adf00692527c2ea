/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine over a small world: what it asks, of whom, how much, and what it gives back. */
#include <config.h>

#include "policy/engine.h"

#include <check.h>
#include <stdlib.h>

#include "tests/unit/world.h"

static struct world w;

static const struct memcg_knobs none = { PAGES_UNLIMITED, 0, 0, PAGES_UNLIMITED };

static struct memcg_knobs soft(uint64_t pages)
{
	struct memcg_knobs k = none;

	k.soft_limit = pages;
	return k;
}

static void setup_pool(uint64_t pool)
{
	struct engine_config config;

	world_config(&config);
	world_open(&w, &config, pool);
}

static void teardown(void)
{
	world_close(&w);
}

/* batch over its soft limit, web under its, spare without. Pool 1000 MiB: low 50, high 80. */
static void three_guests(uint64_t batch, uint64_t web, uint64_t spare)
{
	struct memcg_knobs b = soft(MIB(100)), s = soft(MIB(500));

	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), batch, &b);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(500), web, &s);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(500), spare, &none);
}

START_TEST(nobody_is_asked_while_free_is_at_wm_low)
{
	three_guests(MIB(350), MIB(300), MIB(300)); /* free 50 MiB: exactly wm_low */
	world_ticks(&w, 20);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
	world_vm(&w, 3)->resident += 1;
	world_tick(&w);
	ck_assert_uint_eq(w.out.nr_actions, 1);
}
END_TEST

START_TEST(guest_under_soft_limit_keeps_all_while_another_is_in_excess)
{
	three_guests(MIB(360), MIB(320), MIB(300)); /* free 20: need 60 */
	world_ticks(&w, 100);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(79));
	ck_assert_int_le(world_free(&w), (int64_t)MIB(82));
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
	ck_assert_uint_le(world_usage(world_vm(&w, 2)), MIB(301));
}
END_TEST

START_TEST(second_pass_takes_from_those_without_limit_only_what_excess_cannot_cover)
{
	three_guests(MIB(150), MIB(400), MIB(430)); /* need 60: 50 of batch, 10 of spare */
	world_ticks(&w, 100);
	ck_assert_uint_le(world_usage(world_vm(&w, 2)), MIB(101));
	ck_assert_uint_ge(world_usage(world_vm(&w, 2)), MIB(100));
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
	ck_assert_uint_le(world_usage(world_vm(&w, 4)), MIB(421));
	ck_assert_uint_ge(world_usage(world_vm(&w, 4)), MIB(418));
}
END_TEST

START_TEST(a_cut_that_came_is_loosened_to_the_ceiling_of_a_vm_not_in_excess)
{
	three_guests(MIB(150), MIB(400), MIB(430));
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 4)->actual, MIB(500));
	ck_assert_uint_eq(world_vm(&w, 4)->target, MIB(500));
	ck_assert_uint_le(world_usage(world_vm(&w, 4)), MIB(421));
}
END_TEST

START_TEST(a_vm_in_excess_keeps_usage_and_headroom_after_its_cut)
{
	uint64_t usage;

	three_guests(MIB(360), MIB(320), MIB(300));
	world_ticks(&w, 60);
	usage = world_usage(world_vm(&w, 2));
	ck_assert_uint_eq(world_vm(&w, 2)->target, usage + MIB(64));
}
END_TEST

START_TEST(above_wm_high_a_capped_vm_gets_back_to_its_ceiling)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_ticks(&w, 60);
	ck_assert(world_view(&w, 2).capped);
	world_vm(&w, 3)->resident = MIB(20);
	world_ticks(&w, 300);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(500));
	ck_assert(!world_view(&w, 2).capped);
}
END_TEST

START_TEST(steps_of_max_step_wait_for_the_one_before_to_come)
{
	struct engine_config config;
	static const uint64_t targets[] = { 1792, 1536, 1280, 1024 };
	size_t n = 0;

	/* Field case BR-44: guest of 2048 MiB, 1300 free, floor 1024; need at least 1024. */
	engine_config_default(&config);
	config.act = true;
	world_open(&w, &config, MIB(3200));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(2048), MIB(2048), &none);
	world_vm(&w, 2)->anon = MIB(748);
	world_vm(&w, 2)->overhead = MIB(1060); /* free 92: above wm_min 64, below wm_low 160 */
	config.wm_low.permille = 450;	       /* the need stays, whatever comes */
	config.wm_high.permille = 500;
	engine_set_config(w.engine, &config);
	for (int i = 0; i < 200; i++) {
		world_tick(&w);
		const struct engine_action *a = world_action(&w, 2);

		if (a && a->reason.type == ENGINE_CUT) {
			ck_assert_uint_lt(n, 4);
			ck_assert_uint_eq(a->target, MIB(targets[n]));
			n++;
		}
	}
	ck_assert_uint_eq(n, 4);
}
END_TEST

START_TEST(an_ask_that_brings_nothing_is_cancelled_at_its_deadline_and_asked_of_others)
{
	struct memcg_knobs zero = soft(0);
	uint64_t asked;

	/* Field case BR-102: A stuck with a large excess, B willing. */
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(800), MIB(600), &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(400), MIB(380), &zero);
	world_vm(&w, 2)->speed = 0;
	world_tick(&w);
	asked = MIB(600) - world_action(&w, 2)->target;
	ck_assert_uint_ge(asked, MIB(36));
	world_ticks(&w, 40);
	/* its share is not passed on before */
	ck_assert_uint_ge(world_usage(world_vm(&w, 3)), MIB(380) - MIB(60) + asked - MIB(1));
	world_ticks(&w, 80);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(79));
	ck_assert_uint_eq(world_vm(&w, 2)->resident, MIB(600));
}
END_TEST

START_TEST(asks_end_when_the_need_is_gone)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = MIB(1);
	world_ticks(&w, 5);
	ck_assert_uint_gt(world_view(&w, 2).owed, 0);
	world_vm(&w, 4)->resident = MIB(100); /* the pool has plenty */
	world_ticks(&w, 1);
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
}
END_TEST

START_TEST(observe_mode_asks_nobody_but_plans)
{
	struct engine_config config;
	struct memcg_knobs b = soft(MIB(100));
	struct reclaim_plan plan;

	world_config(&config);
	config.act = false;
	world_open(&w, &config, MIB(500));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(490), &b);
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_int_eq(engine_plan(w.engine, MEMCG_ROOT_ID, MIB(20), &plan), 0);
	ck_assert_uint_eq(plan.gain, MIB(20));
	ck_assert_uint_eq(plan.shares[0].step, 1);
}
END_TEST

START_TEST(partition_over_its_limit_whose_vms_have_none_starts_the_soft_pass)
{
	struct memcg_knobs prod = soft(MIB(400));

	setup_pool(MIB(1000));
	world_group(&w, 10, MEMCG_ROOT_ID, &prod);
	world_add(&w, 2, 10, MIB(400), MIB(250), &none);
	world_add(&w, 3, 10, MIB(400), MIB(250), &none);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(600), MIB(480), &none);
	world_ticks(&w, 100); /* need 60, excess of /prod 100 */
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
	ck_assert_uint_le(world_usage(world_vm(&w, 2)), MIB(221));
	ck_assert_uint_le(world_usage(world_vm(&w, 3)), MIB(221));
}
END_TEST

START_TEST(the_excess_of_a_partition_is_one_budget)
{
	struct memcg_knobs prod = soft(MIB(470));

	setup_pool(MIB(1000));
	world_group(&w, 10, MEMCG_ROOT_ID, &prod);
	world_add(&w, 2, 10, MIB(400), MIB(250), &none);
	world_add(&w, 3, 10, MIB(400), MIB(250), &none);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(600), MIB(480), &none);
	world_ticks(&w, 200); /* need 60, excess of /prod 30: the other 30 from all */
	ck_assert_uint_ge(world_view(&w, 10).usage, MIB(400));
	ck_assert_uint_lt(world_usage(world_vm(&w, 4)), MIB(480));
}
END_TEST

START_TEST(all_pinned_ends_in_short_told_once)
{
	three_guests(MIB(360), MIB(320), MIB(310));
	for (uint64_t id = 2; id <= 4; id++)
		world_state(&w, id, ENGINE_VM_NO_DEVICE);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT), 1);
	for (uint64_t id = 2; id <= 4; id++)
		ck_assert_uint_eq(world_vm(&w, id)->commands, 0);
}
END_TEST

START_TEST(half_swapped_guest_is_not_cut_below_its_use_and_margin)
{
	struct engine_config config;
	struct memcg_knobs zero = soft(0);
	struct world_vm *vm;

	world_config(&config);
	config.bounds.margin_at_least = MIB(40);
	world_open(&w, &config, MIB(400));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(200), &zero);
	vm = world_vm(&w, 2);
	vm->swapped = MIB(200);
	vm->anon = MIB(300);
	for (int i = 0; i < 300; i++) {
		world_tick(&w);
		ck_assert_uint_ge(vm->actual, MIB(340));
	}
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(31)); /* wm_high: 8 % of 400 */
}
END_TEST

START_TEST(a_hung_vm_is_counted_apart_and_its_part_asked_of_others)
{
	struct memcg_knobs zero = soft(0);
	struct engine_pool_view pool;

	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(800), MIB(490), &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(490), &zero);
	world_vm(&w, 2)->speed = 0;
	world_ticks(&w, 5);
	world_state(&w, 2, ENGINE_VM_NOT_ANSWERING);
	world_ticks(&w, 60);
	engine_pool_view(w.engine, &pool);
	ck_assert_uint_gt(pool.hung, 0);
	ck_assert_int_ge(pool.free, (int64_t)MIB(79));
	world_state(&w, 2, ENGINE_VM_RUNNING);
	world_tick(&w);
	engine_pool_view(w.engine, &pool);
	ck_assert_uint_eq(pool.hung, 0);
}
END_TEST

START_TEST(actual_below_a_recorded_ceiling_is_an_own_cut)
{
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(200), &none);
	w.changes[0].attrs.ceiling = MIB(500);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(300);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(500));
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(500)); /* loosened: nobody needs it */
}
END_TEST

START_TEST(actual_without_a_recorded_ceiling_is_its_operators_wish)
{
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(200), &none);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(300);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(300));
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

START_TEST(a_rest_below_our_lowest_target_becomes_the_ceiling)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_ticks(&w, 150);
	world_vm(&w, 2)->target = world_vm(&w, 2)->actual = MIB(150); /* virsh setmem */
	world_vm(&w, 2)->resident = MIB(150);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(150));
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 1);
}
END_TEST

START_TEST(an_operators_reclaim_brings_what_it_was_asked_for)
{
	three_guests(MIB(200), MIB(200), MIB(200));
	world_tick(&w);
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(90));
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_DONE), 1);
	ck_assert_uint_ge(MIB(200) - world_usage(world_vm(&w, 2)), MIB(88));
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
}
END_TEST

START_TEST(a_group_over_its_max_is_reclaimed_with_itself_as_root)
{
	struct memcg_knobs max = none;

	setup_pool(MIB(2000));
	max.max = MIB(300);
	world_group(&w, 10, MEMCG_ROOT_ID, &max);
	world_add(&w, 2, 10, MIB(400), MIB(250), &none);
	world_add(&w, 3, 10, MIB(400), MIB(100), &none);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(600), MIB(480), &none);
	world_ticks(&w, 60);
	ck_assert_uint_le(world_view(&w, 10).usage, MIB(301));
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine");
	TCase *t = tcase_create("engine");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, nobody_is_asked_while_free_is_at_wm_low);
	tcase_add_test(t, guest_under_soft_limit_keeps_all_while_another_is_in_excess);
	tcase_add_test(t, second_pass_takes_from_those_without_limit_only_what_excess_cannot_cover);
	tcase_add_test(t, a_cut_that_came_is_loosened_to_the_ceiling_of_a_vm_not_in_excess);
	tcase_add_test(t, a_vm_in_excess_keeps_usage_and_headroom_after_its_cut);
	tcase_add_test(t, above_wm_high_a_capped_vm_gets_back_to_its_ceiling);
	tcase_add_test(t, steps_of_max_step_wait_for_the_one_before_to_come);
	tcase_add_test(
		t, an_ask_that_brings_nothing_is_cancelled_at_its_deadline_and_asked_of_others);
	tcase_add_test(t, asks_end_when_the_need_is_gone);
	tcase_add_test(t, observe_mode_asks_nobody_but_plans);
	tcase_add_test(t, partition_over_its_limit_whose_vms_have_none_starts_the_soft_pass);
	tcase_add_test(t, the_excess_of_a_partition_is_one_budget);
	tcase_add_test(t, all_pinned_ends_in_short_told_once);
	tcase_add_test(t, half_swapped_guest_is_not_cut_below_its_use_and_margin);
	tcase_add_test(t, a_hung_vm_is_counted_apart_and_its_part_asked_of_others);
	tcase_add_test(t, actual_below_a_recorded_ceiling_is_an_own_cut);
	tcase_add_test(t, actual_without_a_recorded_ceiling_is_its_operators_wish);
	tcase_add_test(t, a_rest_below_our_lowest_target_becomes_the_ceiling);
	tcase_add_test(t, an_operators_reclaim_brings_what_it_was_asked_for);
	tcase_add_test(t, a_group_over_its_max_is_reclaimed_with_itself_as_root);
	suite_add_tcase(s, t);
	srunner_set_tap(sr, "-");
	srunner_run_all(sr, CK_SILENT);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
