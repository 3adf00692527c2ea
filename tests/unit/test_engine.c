/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine over a small world: what it asks, of whom, how much, and what it gives back. */
#include <config.h>

#include "policy/engine.h"

#include <check.h>
#include <errno.h>
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

START_TEST(goal_stays_below_where_the_ask_began_when_the_guest_grows)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = 0;
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(300));
	/* It grows, and what it cannot free is more than it used when it was asked. */
	world_vm(&w, 2)->resident = MIB(430);
	world_vm(&w, 2)->anon = MIB(380);
	world_vm(&w, 3)->resident = MIB(330);
	world_ticks(&w, 70);
	for (size_t i = 0; i < w.nr_events; i++)
		if (w.events[i].type == ENGINE_EVENT_ASK_FAILED)
			ck_assert_uint_le(w.events[i].a, MIB(130));
	ck_assert_uint_ge(world_vm(&w, 2)->target, MIB(380));
}
END_TEST

START_TEST(the_goal_rises_with_what_the_guest_uses_and_the_ask_is_cancelled_when_all_is_used)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = 0;
	world_ticks(&w, 2);
	world_vm(&w, 2)->anon = MIB(340);
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(340));
	ck_assert_uint_eq(world_action(&w, 2)->reason.bound, MIB(340));
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(20));
	world_vm(&w, 2)->anon = MIB(360);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(500)); /* and loosened: it has all */
}
END_TEST

START_TEST(an_ask_of_one_granule_has_come_only_when_it_came)
{
	struct memcg_knobs k = none;

	setup_pool(MIB(2000));
	k.max = MIB(300) - 1;
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(300), &k);
	world_vm(&w, 2)->speed = 0;
	world_ticks(&w, 40);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_CAME), 0);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	world_vm(&w, 2)->speed = MIB(10);
	world_ticks(&w, 20);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_CAME), 1);
	ck_assert_uint_le(world_usage(world_vm(&w, 2)), MIB(300) - 1);
}
END_TEST

START_TEST(seven_eighths_at_the_deadline_are_taken_for_the_whole)
{
	three_guests(MIB(360), MIB(320), MIB(300)); /* 60 of batch: 352.5 is an eighth */
	world_vm(&w, 2)->stops_at = MIB(300) + MIB(60) / 8;
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
	ck_assert_uint_ge(world_count(&w, ENGINE_EVENT_ASK_CAME), 1);
	world_close(&w);
	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->stops_at = MIB(300) + MIB(60) / 8 + 1;
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
	ck_assert_int_eq(
		world_event(&w, ENGINE_EVENT_ASK_FAILED)->b, (int64_t)(MIB(60) - MIB(60) / 8 - 1));
}
END_TEST

START_TEST(usage_that_is_unknown_has_not_come)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = 0;
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(60));
	world_ticks(&w, 3);
	world_vm(&w, 2)->no_process = true;
	world_ticks(&w, 5);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_CAME), 0);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_DONE), 0);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(360)); /* the last figure stands */
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(60));
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_UNKNOWN);
}
END_TEST

START_TEST(what_the_guest_gave_beyond_the_goal_is_given_of_what_waits)
{
	struct engine_config config;
	struct memcg_knobs b = soft(MIB(100));

	world_config(&config);
	config.max_step = MIB(20);
	world_open(&w, &config, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(160), &b);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(900), MIB(820), &none);
	world_tick(&w); /* need 60: all of batch's excess, 20 at once */
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(140));
	world_tick(&w);
	/* The guest itself frees 30 more, another grows by as much. */
	world_vm(&w, 2)->resident = world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(110);
	world_vm(&w, 3)->resident = MIB(870);
	for (int i = 0; i < 30; i++) {
		world_tick(&w);
		ck_assert_uint_ge(world_view(&w, 2).target, MIB(100));
	}
}
END_TEST

START_TEST(an_extension_counts_from_the_usage_that_is_already_below_the_goal)
{
	struct memcg_knobs k = soft(0);

	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(300), &k);
	world_vm(&w, 2)->delay = 30;
	world_reclaim(&w, 7, 2, MIB(100));
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(200));
	world_vm(&w, 2)->resident = MIB(190); /* by itself: the command was not taken up yet */
	world_reclaim(&w, 8, 2, MIB(100));
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_DONE), 1);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(90));
}
END_TEST

START_TEST(a_hanging_share_of_step_three_goes_to_who_came_to_be_in_excess)
{
	struct engine_config config;
	struct memcg_knobs s = soft(MIB(400));
	uint64_t usage;

	world_config(&config);
	config.max_step = MIB(10);
	world_open(&w, &config, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(380), &s);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(590), &none);
	world_tick(&w); /* free 30, need 50: step 3, from who has no limit */
	ck_assert_uint_eq(world_action(&w, 3)->reason.step, 3);
	ck_assert_uint_eq(world_view(&w, 3).waiting, MIB(40));
	world_vm(&w, 2)->resident = MIB(420); /* in excess by 20 */
	world_vm(&w, 3)->speed = 0;
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->reason.step, 1);
	/* need 90: of what waited 20 went to the excess, 40 more are of step 3 */
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(20));
	ck_assert_uint_eq(world_view(&w, 3).owed, MIB(70));
	usage = world_usage(world_vm(&w, 2));
	world_ticks(&w, 20);
	ck_assert_uint_lt(world_usage(world_vm(&w, 2)), usage);
}
END_TEST

START_TEST(nothing_more_is_told_for_a_pool_that_is_not_known)
{
	struct engine_config config;
	struct memcg_knobs b = soft(MIB(100));

	world_config(&config);
	config.max_step = MIB(10);
	world_open(&w, &config, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(360), &b);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(620), &none);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).waiting, MIB(50));
	w.pool.known = false;
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 2); /* the cut and its loosening */
	w.pool.known = true;
	w.pool.size = 0; /* as good as unknown */
	world_ticks(&w, 10);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 2);
	w.pool.size = MIB(1000);
	world_tick(&w);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 3);
}
END_TEST

START_TEST(asks_in_the_name_of_a_limit_that_was_lifted_end)
{
	struct memcg_knobs max = none;

	setup_pool(MIB(2000));
	max.max = MIB(300);
	world_group(&w, 10, MEMCG_ROOT_ID, &max);
	world_add(&w, 2, 10, MIB(400), MIB(350), &none);
	world_vm(&w, 2)->speed = 0;
	world_ticks(&w, 3);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
	world_knobs(&w, 10, &max); /* the same: nothing changes */
	world_tick(&w);
	ck_assert_uint_eq(w.out.nr_actions, 0);
	world_knobs(&w, 10, &none);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(400));
}
END_TEST

START_TEST(a_low_that_is_set_while_an_ask_runs_holds_at_once)
{
	struct memcg_knobs low = none;

	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(480), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(500), MIB(490), &none);
	world_vm(&w, 2)->speed = world_vm(&w, 3)->speed = 0;
	world_tick(&w);
	ck_assert_uint_lt(world_action(&w, 2)->target, MIB(460));
	low.low = MIB(470);
	world_knobs(&w, 2, &low);
	world_tick(&w);
	ck_assert_uint_ge(world_view(&w, 2).target, MIB(470));
	ck_assert_uint_ge(world_view(&w, 3).owed, MIB(40));
}
END_TEST

START_TEST(the_tree_over_its_max_is_the_pools_own_need)
{
	struct memcg_knobs max = none, b = soft(MIB(100));
	struct engine_reason r;

	setup_pool(MIB(2000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(360), &b);
	world_vm(&w, 2)->speed = MIB(4);
	max.max = MIB(330);
	world_knobs(&w, MEMCG_ROOT_ID, &max);
	world_ticks(&w, 20);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1); /* asked once, not anew each tick */
	ck_assert_uint_eq(engine_reasons(w.engine, 2, &r, 1), 1);
	ck_assert_uint_eq(r.need, MIB(30));
	world_ticks(&w, 60);
	ck_assert_uint_le(world_usage(world_vm(&w, 2)), MIB(330) + MIB(2));
}
END_TEST

START_TEST(a_dead_balloon_with_a_long_way_is_given_up_when_it_does_not_move)
{
	struct memcg_knobs zero = soft(0);

	/* 2000 MiB to inflate before anything comes: 45 s at the speed it is taken for. */
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(2600), MIB(600), &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(400), MIB(380), &zero);
	world_vm(&w, 2)->speed = 0;
	world_ticks(&w, 110);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
	world_ticks(&w, 20);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(79));
}
END_TEST

START_TEST(a_slow_balloon_that_moves_at_its_deadline_gets_the_time_it_takes)
{
	struct memcg_knobs zero = soft(0);

	/* 80 MiB at 4 MiB/s take 20 s; taken for 50 MiB/s it would have 6.6 s. */
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(600), MIB(600), &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(400), MIB(400), &none);
	world_vm(&w, 2)->speed = MIB(4) / 10;
	world_ticks(&w, 220);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(79));
}
END_TEST

START_TEST(an_ask_of_a_guest_whose_statistics_flutter_expires)
{
	struct memcg_knobs zero = soft(0);
	struct engine_config c;

	world_config(&c);
	c.bounds.margin_at_least = MIB(16);
	world_open(&w, &c, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(980), MIB(980), &zero);
	world_vm(&w, 2)->speed = 0;
	for (int i = 0; i < 200; i++) {
		world_vm(&w, 2)->anon = i / 5 % 2 ? MIB(800) : MIB(950);
		world_tick(&w);
	}
	ck_assert_uint_ge(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
}
END_TEST

START_TEST(growth_of_another_shows_what_came_to_a_host_pool)
{
	struct memcg_knobs zero = soft(0);
	uint64_t grown = 0;

	/* What A gives B takes at once: MemAvailable never rises, and A is asked on all the same.
	 */
	setup_pool(MIB(8000));
	w.pool = (struct engine_pool){ .known = true, .host = true, .size = MIB(8000) };
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(6000), MIB(6000), &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(6000), MIB(1400), &none);
	world_vm(&w, 2)->speed = MIB(30);
	for (int i = 0; i < 200; i++) {
		if (i > 10 && grown < MIB(3000)) {
			world_vm(&w, 3)->resident += MIB(20);
			grown += MIB(20);
		}
		w.pool.available =
			pages_sub(MIB(8000), world_vm(&w, 2)->resident + world_vm(&w, 3)->resident);
		world_tick(&w);
		ck_assert_int_gt(world_free(&w), (int64_t)MIB(100));
	}
}
END_TEST

START_TEST(shares_below_wm_min_that_cannot_come_in_time_are_passed_on)
{
	struct engine_config config;
	struct memcg_knobs b = soft(MIB(100));

	world_config(&config);
	config.max_step = MIB(10);
	config.speed = MIB(2); /* a second: 10 MiB in the 5 s of a deadline */
	world_open(&w, &config, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(360), &b);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(615), &none);
	world_vm(&w, 2)->speed = world_vm(&w, 3)->speed = 0;
	world_tick(&w); /* free 25: need 55, all of it batch's */
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(55));
	ck_assert_uint_eq(world_view(&w, 3).owed, 0);
	ck_assert_uint_eq(MIB(360) - world_view(&w, 2).target, MIB(10));
	world_vm(&w, 3)->resident = MIB(620); /* free 20, wm_min: not below it */
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_BELOW_MIN), 0);
	ck_assert_uint_eq(world_view(&w, 3).owed, 0);
	world_vm(&w, 3)->resident += MIB(1); /* now it is */
	world_ticks(&w, 2);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_BELOW_MIN), 1);
	ck_assert_int_eq(world_event(&w, ENGINE_EVENT_BELOW_MIN)->b, (int64_t)MIB(19));
	/* 10 MiB it can bring, the rest is another's, who has no limit. */
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(10));
	ck_assert_uint_ge(world_view(&w, 3).owed, MIB(10));
	world_ticks(&w, 20);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(10));
}
END_TEST

START_TEST(a_vm_that_failed_is_asked_what_it_delivered_and_twice_as_much_after_each_success)
{
	struct engine_config config;
	struct memcg_knobs zero = soft(0);
	static const uint64_t asked[] = { 10, 20, 40 };
	struct world_vm *vm;
	size_t n = 0;

	world_config(&config);
	config.max_step = MIB(64);
	world_open(&w, &config, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(400), &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(600), MIB(560), &none);
	world_state(&w, 3, ENGINE_VM_NO_DEVICE);
	vm = world_vm(&w, 2);
	vm->stops_at = MIB(390); /* of 40 it gives 10 */
	world_ticks(&w, 90);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
	ck_assert_uint_eq(world_event(&w, ENGINE_EVENT_ASK_FAILED)->a, MIB(40));
	ck_assert_int_eq(world_event(&w, ENGINE_EVENT_ASK_FAILED)->b, (int64_t)MIB(10));
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_FAILED);
	vm->stops_at = 0;
	world_vm(&w, 3)->resident = MIB(600); /* need 70 */
	w.nr_events = 0;
	world_ticks(&w, 150);
	for (size_t i = 0; i < w.nr_events && n < 3; i++) {
		if (w.events[i].type != ENGINE_EVENT_ASK_CAME)
			continue;
		ck_assert_uint_eq(w.events[i].a, MIB(asked[n]));
		n++;
	}
	ck_assert_uint_eq(n, 3);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_NONE);
}
END_TEST

START_TEST(hold_times_double_with_each_failure_up_to_five_minutes)
{
	static const unsigned int seconds[] = { 10, 20, 40, 80, 160, 300, 300 };
	struct memcg_knobs zero = soft(0);
	uint64_t asked_at[8] = { 0 }, failed_at[8] = { 0 };
	size_t asks = 0, fails = 0;

	setup_pool(MIB(1000));
	w.tick_us = SECOND_US / 4;
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(990), MIB(960), &zero);
	world_vm(&w, 2)->speed = 0;
	while (fails < 8) {
		size_t before = world_count(&w, ENGINE_EVENT_ASK_FAILED);

		w.nr_events = 0;
		(void)before;
		world_tick(&w);
		if (world_action(&w, 2) && world_action(&w, 2)->reason.type == ENGINE_CUT)
			asked_at[asks++] = w.now;
		if (world_count(&w, ENGINE_EVENT_ASK_FAILED))
			failed_at[fails++] = w.now;
	}
	for (size_t i = 0; i < 7; i++)
		ck_assert_uint_eq(asked_at[i + 1] - failed_at[i], seconds[i] * SECOND_US);
}
END_TEST

START_TEST(paused_and_resumed_guests_are_cancelled_and_nothing_is_replayed)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = MIB(1);
	world_ticks(&w, 5);
	ck_assert_uint_gt(world_view(&w, 2).owed, 0);
	world_state(&w, 2, ENGINE_VM_PAUSED);
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_CANCEL, .id = 2 });
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
	/* as it was found: the sample before the change */
	ck_assert_uint_ge(world_action(&w, 2)->target, world_vm(&w, 2)->actual);
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_STATE);
	ck_assert_uint_gt(world_view(&w, 4).owed, 0); /* others are asked */
	world_ticks(&w, 20);
	ck_assert_ptr_null(world_action(&w, 2));
	world_state(&w, 2, ENGINE_VM_RUNNING);
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_CANCEL, .id = 2 });
	world_tick(&w);
	ck_assert(!world_action(&w, 2) || world_action(&w, 2)->target >= world_vm(&w, 2)->actual);
}
END_TEST

START_TEST(a_rebooted_guest_counts_in_full_and_is_told_its_ceiling)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = MIB(1);
	world_ticks(&w, 5);
	world_state(&w, 2, ENGINE_VM_ARRIVING);
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_CANCEL, .id = 2 });
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(500);
	world_vm(&w, 2)->resident = MIB(50);
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(500));
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(500));
	world_state(&w, 2, ENGINE_VM_RUNNING);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(50));
}
END_TEST

START_TEST(a_hung_vm_that_goes_on_is_told_to_stay_as_it_is)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = 0;
	world_ticks(&w, 3);
	world_state(&w, 2, ENGINE_VM_NOT_ANSWERING);
	world_tick(&w);
	ck_assert_ptr_null(world_action(&w, 2)); /* nothing can be told to it now */
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
	world_state(&w, 2, ENGINE_VM_NOT_ANSWERING); /* said twice */
	world_ticks(&w, 5);
	ck_assert_ptr_null(world_action(&w, 2));
	world_state(&w, 2, ENGINE_VM_RUNNING);
	world_tick(&w);
	ck_assert_ptr_nonnull(world_action(&w, 2));
	/* its part was asked of others, and is under way there */
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(500));
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
}
END_TEST

START_TEST(a_vm_that_hangs_with_nothing_asked_is_only_left_alone)
{
	struct engine_pool_view pool;

	three_guests(MIB(360), MIB(320), MIB(300));
	world_tick(&w);
	world_state(&w, 3, ENGINE_VM_NOT_ANSWERING);
	world_ticks(&w, 5);
	engine_pool_view(w.engine, &pool);
	ck_assert_uint_eq(pool.hung, 0);
	world_state(&w, 3, ENGINE_VM_RUNNING);
	world_tick(&w);
	ck_assert_ptr_null(world_action(&w, 3));
}
END_TEST

START_TEST(a_refused_ask_fails_at_once_and_is_held)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->refuses = true;
	world_ticks(&w, 2);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
	ck_assert_int_eq(world_event(&w, ENGINE_EVENT_ASK_FAILED)->b, 0);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_FAILED);
	ck_assert_uint_eq(world_view(&w, 2).failures, 1);
	world_ticks(&w, 60);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(79)); /* others gave */
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
}
END_TEST

START_TEST(a_result_of_an_older_target_says_nothing_of_the_newest)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = 0;
	world_tick(&w);
	world_vm(&w, 3)->resident = MIB(345);
	world_tick(&w); /* the need grew: the ask is extended */
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(85));
	w.results[w.nr_results++] = (struct engine_result){ .id = 2, .seq = 1, .error = -5 };
	w.results[w.nr_results++] = (struct engine_result){ .id = 99, .seq = 1, .error = -5 };
	world_tick(&w);
	ck_assert_int_eq(w.error, 0);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
	w.results[w.nr_results++] = (struct engine_result){ .id = 2, .seq = 2, .error = 0 };
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(85));
}
END_TEST

START_TEST(a_running_ask_is_not_extended_for_little)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = 0;
	world_tick(&w);
	world_vm(&w, 3)->resident += MIB(14); /* less than a quarter of the 60 that run */
	world_tick(&w);
	ck_assert_ptr_null(world_action(&w, 2));
	ck_assert_uint_eq(world_view(&w, 2).waiting, MIB(14));
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(74));
}
END_TEST

START_TEST(switching_to_observe_ends_what_runs)
{
	struct engine_config config;

	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = MIB(1);
	world_reclaim(&w, 7, 3, MIB(50));
	world_ticks(&w, 3);
	ck_assert_uint_gt(world_view(&w, 2).owed, 0);
	world_config(&config);
	config.act = false;
	ck_assert_int_eq(engine_set_config(w.engine, &config), 0);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, MEMCG_ROOT_ID).owed, 0);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_SHORT), 1);
	world_ticks(&w, 100);
	ck_assert_uint_eq(w.out.nr_actions, 0);
	world_reclaim(&w, 8, 3, MIB(50));
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_SHORT), 2);
}
END_TEST

START_TEST(a_new_floor_holds_at_once_though_the_guest_rests)
{
	struct engine_input input = { 0 };
	struct engine_config config;

	three_guests(MIB(360), MIB(320), MIB(300));
	world_ticks(&w, 3);
	world_config(&config);
	config.bounds.floor_percent = 60;
	ck_assert_int_eq(engine_set_config(w.engine, &config), 0);
	/* No sample: nothing of it has changed. */
	input.now = w.now += w.tick_us;
	ck_assert_int_eq(engine_tick(w.engine, &input, &w.out), 0);
	ck_assert_uint_eq(world_view(&w, 2).set.floor, world_vm(&w, 2)->maximum * 60 / 100);
}
END_TEST

START_TEST(a_vm_that_is_not_managed_any_more_is_let_be)
{
	struct engine_change c = {
		.type = ENGINE_VM_ATTRS, .id = 2, .attrs = { .maximum = MIB(500), .act = false }
	};

	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = MIB(1);
	world_ticks(&w, 3);
	world_change(&w, &c);
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_MANAGE);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 2);
}
END_TEST

START_TEST(a_guest_smaller_than_sixteen_granules_is_not_asked)
{
	struct memcg_knobs zero = soft(0);
	struct engine_config config;

	world_config(&config);
	config.bounds.floor_percent = 0;
	world_open(&w, &config, MIB(100));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(64), MIB(16) - 1, &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(90), MIB(84), &none);
	world_state(&w, 3, ENGINE_VM_NO_DEVICE);
	world_ticks(&w, 3);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_SMALL);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	world_vm(&w, 2)->resident = MIB(16);
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CUT);
}
END_TEST

START_TEST(a_job_ends_short_when_nobody_can_give_more)
{
	setup_pool(MIB(2000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(100), &none);
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(90)); /* its floor is 40 */
	world_ticks(&w, 40);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_SHORT), 1);
	ck_assert_uint_eq(world_event(&w, ENGINE_EVENT_JOB_SHORT)->a, MIB(90));
	ck_assert_int_eq(world_event(&w, ENGINE_EVENT_JOB_SHORT)->b, (int64_t)MIB(60));
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(400)); /* and loosened */
}
END_TEST

START_TEST(a_job_that_nobody_can_serve_ends_at_once)
{
	setup_pool(MIB(2000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(40), &none);
	world_reclaim(&w, 7, 2, MIB(1));
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_SHORT), 1);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

START_TEST(a_cancelled_job_ends_its_asks_and_only_its)
{
	struct memcg_knobs max = none;

	setup_pool(MIB(2000));
	max.max = MIB(250);
	world_group(&w, 10, MEMCG_ROOT_ID, &max);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(300), &none);
	world_add(&w, 3, 10, MIB(400), MIB(300), &none);
	world_vm(&w, 2)->speed = world_vm(&w, 3)->speed = 0;
	world_reclaim(&w, 7, 2, MIB(90));
	world_reclaim(&w, 8, 2, MIB(90)); /* what is under way serves both */
	world_ticks(&w, 3);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(90));
	world_cancel_job(&w, 7);
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_CANCELLED), 1);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(90)); /* asked anew, for the other */
	ck_assert_uint_eq(world_view(&w, 3).owed, MIB(50));
	world_cancel_job(&w, 8);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
	ck_assert_uint_eq(world_view(&w, 3).owed, MIB(50));
	world_cancel_job(&w, 8);
	world_tick(&w);
	ck_assert_int_eq(w.error, -ENOENT);
}
END_TEST

START_TEST(a_job_over_memory_that_is_swapped_out_leaves_no_ask_behind)
{
	struct world_vm *vm;

	setup_pool(MIB(2000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(300), &none);
	vm = world_vm(&w, 2);
	vm->speed = 0;
	world_reclaim(&w, 7, 2, MIB(90));
	world_ticks(&w, 2);
	vm->swapped = vm->resident;
	vm->resident = 0;
	world_ticks(&w, 2);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_SHORT), 1);
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
}
END_TEST

START_TEST(nothing_is_asked_again_for_a_short_pool_until_something_changes_or_a_hold_time)
{
	struct engine_input in = { 0 };
	struct engine_output out;

	three_guests(MIB(360), MIB(320), MIB(310));
	for (uint64_t id = 2; id <= 4; id++)
		world_state(&w, id, ENGINE_VM_NO_DEVICE);
	world_ticks(&w, 50);
	ck_assert_uint_eq(w.out.next, w.now + 10 * SECOND_US);
	in.now = w.now + SECOND_US;
	ck_assert_int_eq(engine_tick(w.engine, &in, &out), 0);
	ck_assert_uint_eq(out.next, w.now + 10 * SECOND_US);
	ck_assert_uint_eq(out.nr_events, 0);
	in.now = w.now + 10 * SECOND_US;
	ck_assert_int_eq(engine_tick(w.engine, &in, &out), 0);
	ck_assert_uint_eq(out.next, w.now + 20 * SECOND_US);
	world_vm(&w, 2)->resident = MIB(200);
	w.now += 11 * SECOND_US;
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT_OVER), 1);
}
END_TEST

START_TEST(with_a_host_pool_what_came_is_under_way_until_memavailable_shows_it)
{
	struct memcg_knobs zero = soft(0);
	struct world_vm *vm;

	setup_pool(MIB(1000));
	w.pool.host = true;
	w.pool.reserve = 0;
	w.pool.available = MIB(30);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(900), MIB(800), &zero);
	vm = world_vm(&w, 2);
	vm->speed = MIB(100);
	world_tick(&w);
	ck_assert_int_eq(world_free(&w), (int64_t)MIB(30)); /* MemAvailable, not 1000 - 800 */
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
	world_ticks(&w, 4); /* it came; MemAvailable does not show it: nothing more is asked */
	ck_assert_uint_eq(world_usage(vm), MIB(750));
	world_ticks(&w, 30);
	ck_assert_uint_eq(world_usage(vm), MIB(750));
	w.pool.available = MIB(80);
	world_ticks(&w, 60);
	ck_assert_uint_eq(world_usage(vm), MIB(750));
}
END_TEST

START_TEST(with_a_host_pool_what_memavailable_never_shows_is_asked_after_a_deadline)
{
	struct memcg_knobs zero = soft(0);

	setup_pool(MIB(1000));
	w.pool.host = true;
	w.pool.available = MIB(30);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(900), MIB(800), &zero);
	world_vm(&w, 2)->speed = MIB(100);
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_usage(world_vm(&w, 2)), MIB(750));
	world_ticks(&w, 6);
	ck_assert_uint_lt(world_usage(world_vm(&w, 2)), MIB(750));
}
END_TEST

START_TEST(with_a_host_pool_what_memavailable_shows_first_is_not_counted_twice)
{
	struct memcg_knobs zero = soft(0);
	struct world_vm *vm;

	setup_pool(MIB(1000));
	w.pool.host = true;
	w.pool.available = MIB(30);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(900), MIB(800), &zero);
	vm = world_vm(&w, 2);
	vm->speed = 0;
	world_tick(&w);
	w.pool.available = MIB(80); /* it is there: no reason to cancel */
	world_tick(&w);
	ck_assert_uint_eq(vm->commands, 1);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
	vm->actual = vm->resident = MIB(750);
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_CAME), 1);
	w.pool.available = MIB(30); /* somebody took as much */
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
}
END_TEST

START_TEST(with_a_host_pool_what_no_sample_shows_was_not_what_was_asked_for)
{
	struct memcg_knobs zero = soft(0);

	setup_pool(MIB(1000));
	w.pool.host = true;
	w.pool.available = MIB(30);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(900), MIB(800), &zero);
	world_vm(&w, 2)->speed = 0;
	world_tick(&w);
	w.pool.available = MIB(70);
	world_ticks(&w, 19);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
	w.pool.available = MIB(60); /* of the 40 only 30 are left: 20 more are needed */
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
	world_tick(&w); /* two seconds: somebody else left them */
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(20));
}
END_TEST

START_TEST(the_pools_free_memory_is_the_smaller_of_two_figures_less_the_reserve)
{
	setup_pool(MIB(1000));
	w.pool.host = true;
	w.pool.reserve = MIB(100);
	w.pool.available = MIB(950);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(900), MIB(500), &none);
	world_vm(&w, 2)->overhead = MIB(20);
	world_tick(&w);
	ck_assert_int_eq(world_free(&w), (int64_t)MIB(380));
	w.pool.available = MIB(479);
	world_tick(&w);
	ck_assert_int_eq(world_free(&w), (int64_t)MIB(379));
	w.pool.available = MIB(40);
	world_tick(&w);
	ck_assert_int_eq(world_free(&w), -(int64_t)MIB(60));
	/* Field case BR-45: a set size, free 400367616 B of 7680 MiB, is below wm_low. */
	w.pool = (struct engine_pool){ .known = true, .size = MIB(7680) };
	world_vm(&w, 2)->overhead = MIB(7680) - MIB(500) - 97746;
	world_vm(&w, 2)->anon = MIB(500);
	world_tick(&w);
	ck_assert_int_eq(world_free(&w), 97746);
	struct engine_pool_view p;
	engine_pool_view(w.engine, &p);
	ck_assert_uint_eq(p.need, 59541);
	world_vm(&w, 2)->overhead -= 98304 - 97746; /* wm_low exactly: nothing is needed */
	world_tick(&w);
	engine_pool_view(w.engine, &p);
	ck_assert_uint_eq(p.need, 0);
	ck_assert_uint_eq(p.wm_low, 98304);
}
END_TEST

START_TEST(an_ask_that_comes_in_no_time_is_no_measure_of_speed)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_tick(&w);
	w.tick_us = 0;
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = world_vm(&w, 2)->resident = MIB(300);
	world_ticks(&w, 2);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_CAME), 1);
	ck_assert_uint_eq(world_view(&w, 2).speed, 0);
}
END_TEST

START_TEST(the_speed_of_a_balloon_is_measured_from_the_command_on)
{
	struct memcg_knobs zero = soft(0);

	setup_pool(MIB(2000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(900), MIB(900), &zero);
	world_reclaim(&w, 7, 2, MIB(15)); /* less than 16 granules tell nothing */
	world_vm(&w, 2)->delay = 9;
	world_ticks(&w, 20);
	world_reclaim(&w, 8, 2, MIB(160));
	world_vm(&w, 2)->delay = 0;
	w.vm[0].speed = MIB(16);
	world_ticks(&w, 20);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_DONE), 2);
	ck_assert_uint_ge(world_view(&w, 2).speed, MIB(144));
	ck_assert_uint_le(world_view(&w, 2).speed, MIB(160));
	w.vm[0].speed = MIB(4);
	world_reclaim(&w, 9, 2, MIB(160));
	world_ticks(&w, 60); /* a quarter of the newest: about 3/4 * 160 + 1/4 * 40 */
	ck_assert_uint_ge(world_view(&w, 2).speed, MIB(115));
	ck_assert_uint_le(world_view(&w, 2).speed, MIB(130));
}
END_TEST

START_TEST(a_flutter_of_what_the_guest_uses_does_not_raise_the_goal_but_a_min_does)
{
	struct engine_config config;
	struct memcg_knobs zero = soft(0);

	world_config(&config);
	config.bounds.margin_at_least = MIB(80);
	world_open(&w, &config, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(990), MIB(960), &zero);
	world_vm(&w, 2)->speed = 0;
	world_vm(&w, 2)->anon = MIB(840);
	world_tick(&w); /* need 40: goal 920, keep 920 */
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(920));
	world_vm(&w, 2)->anon = MIB(850); /* an eighth of the margin */
	world_tick(&w);
	ck_assert_ptr_null(world_action(&w, 2));
	world_vm(&w, 2)->anon += 1;
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(930) + 1);
	world_vm(&w, 2)->anon = MIB(800);
	world_tick(&w);
	zero.min = MIB(941) - 1;
	world_knobs(&w, 2, &zero);
	world_tick(&w);
	ck_assert_uint_ge(world_view(&w, 2).target, zero.min);
}
END_TEST

START_TEST(a_floor_that_rises_within_the_flutter_raises_the_goal)
{
	struct engine_config config;
	struct memcg_knobs zero = soft(0);

	world_config(&config);
	config.bounds.margin_at_least = MIB(80);
	world_open(&w, &config, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(990), MIB(960), &zero);
	world_vm(&w, 2)->speed = 0;
	world_vm(&w, 2)->anon = MIB(840);
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(920));
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_ATTRS,
				 .id = 2,
				 .attrs = { .maximum = MIB(990),
					 .act = true,
					 .agent = true,
					 .trust = true,
					 .agent_floor = MIB(921) } });
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(921));
}
END_TEST

START_TEST(sixteen_granules_that_came_measure_the_speed)
{
	struct memcg_knobs zero = soft(0);

	setup_pool(MIB(2000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(900), MIB(900), &zero);
	world_reclaim(&w, 7, 2, MIB(16));
	world_ticks(&w, 10);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_DONE), 1);
	ck_assert_uint_gt(world_view(&w, 2).speed, 0);
}
END_TEST

START_TEST(an_eighth_short_of_a_small_ask_has_come_and_more_has_not_yet)
{
	struct memcg_knobs zero = soft(0);

	for (int more = 0; more < 2; more++) {
		setup_pool(MIB(2000));
		world_add(&w, 2, MEMCG_ROOT_ID, MIB(300), MIB(300), &zero);
		world_vm(&w, 2)->stops_at = MIB(296) + MIB(4) / 8 + (uint64_t)more;
		world_reclaim(&w, 7, 2, MIB(4));
		world_ticks(&w, 10);
		ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_CAME), more ? 0 : 1);
		if (!more)
			world_close(&w);
	}
}
END_TEST

START_TEST(an_ask_that_ends_at_the_floor_is_told_once)
{
	struct memcg_knobs zero = soft(0);

	setup_pool(MIB(2000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(300), MIB(300), &zero);
	world_vm(&w, 2)->speed = MIB(4);
	world_reclaim(&w, 7, 2, MIB(500)); /* down to 30; in steps of at most 256 */
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_event(&w, ENGINE_EVENT_ASK_CAME)->a, MIB(14));
	/* 256, then 14, and loosened */
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 3);
}
END_TEST

START_TEST(a_goal_that_rises_to_where_the_ask_began_begins_it_anew)
{
	three_guests(MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = 0;
	world_tick(&w);
	world_vm(&w, 2)->resident = MIB(430);
	world_vm(&w, 2)->anon = MIB(360);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->resident, MIB(430));
	ck_assert_uint_ge(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
	ck_assert_uint_eq(world_event(&w, ENGINE_EVENT_ASK_FAILED)->a, MIB(70));
}
END_TEST

START_TEST(what_waits_of_a_guest_that_cannot_give_any_more_is_asked_of_others)
{
	struct engine_config config;
	struct memcg_knobs zero = soft(0);

	world_config(&config);
	config.max_step = MIB(10);
	world_open(&w, &config, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(480), &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(500), MIB(490), &none);
	world_vm(&w, 2)->speed = world_vm(&w, 3)->speed = 0;
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
	world_vm(&w, 2)->stale = true;
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(10)); /* what it was told may come */
	ck_assert_uint_eq(world_view(&w, 3).owed, MIB(40));
}
END_TEST

START_TEST(trust_is_whole_again_at_max_step)
{
	struct engine_config config;
	struct memcg_knobs zero = soft(0);
	struct reclaim_plan plan;

	world_config(&config);
	config.max_step = MIB(40);
	world_open(&w, &config, MIB(2000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(400), &zero);
	world_vm(&w, 2)->stops_at = MIB(390);
	world_reclaim(&w, 7, 2, MIB(40));
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
	world_vm(&w, 2)->stops_at = 0;
	for (uint64_t asked = 10; asked <= 20; asked *= 2) { /* 10, then 20, then all */
		ck_assert_int_eq(engine_plan(w.engine, 2, MIB(200), &plan), 0);
		ck_assert_uint_eq(plan.gain, MIB(asked));
		world_reclaim(&w, asked, 2, MIB(asked));
		world_ticks(&w, 20);
	}
	ck_assert_int_eq(engine_plan(w.engine, 2, MIB(200), &plan), 0);
	ck_assert_uint_eq(plan.gain, MIB(200));
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
	tcase_add_test(t, goal_stays_below_where_the_ask_began_when_the_guest_grows);
	tcase_add_test(t,
		the_goal_rises_with_what_the_guest_uses_and_the_ask_is_cancelled_when_all_is_used);
	tcase_add_test(t, an_ask_of_one_granule_has_come_only_when_it_came);
	tcase_add_test(t, seven_eighths_at_the_deadline_are_taken_for_the_whole);
	tcase_add_test(t, usage_that_is_unknown_has_not_come);
	tcase_add_test(t, what_the_guest_gave_beyond_the_goal_is_given_of_what_waits);
	tcase_add_test(t, an_extension_counts_from_the_usage_that_is_already_below_the_goal);
	tcase_add_test(t, a_hanging_share_of_step_three_goes_to_who_came_to_be_in_excess);
	tcase_add_test(t, nothing_more_is_told_for_a_pool_that_is_not_known);
	tcase_add_test(t, asks_in_the_name_of_a_limit_that_was_lifted_end);
	tcase_add_test(t, a_low_that_is_set_while_an_ask_runs_holds_at_once);
	tcase_add_test(t, the_tree_over_its_max_is_the_pools_own_need);
	tcase_add_test(t, shares_below_wm_min_that_cannot_come_in_time_are_passed_on);
	tcase_add_test(t, a_dead_balloon_with_a_long_way_is_given_up_when_it_does_not_move);
	tcase_add_test(t, a_slow_balloon_that_moves_at_its_deadline_gets_the_time_it_takes);
	tcase_add_test(t, an_ask_of_a_guest_whose_statistics_flutter_expires);
	tcase_add_test(t, growth_of_another_shows_what_came_to_a_host_pool);
	tcase_add_test(t,
		a_vm_that_failed_is_asked_what_it_delivered_and_twice_as_much_after_each_success);
	tcase_add_test(t, hold_times_double_with_each_failure_up_to_five_minutes);
	tcase_add_test(t, paused_and_resumed_guests_are_cancelled_and_nothing_is_replayed);
	tcase_add_test(t, a_rebooted_guest_counts_in_full_and_is_told_its_ceiling);
	tcase_add_test(t, a_hung_vm_that_goes_on_is_told_to_stay_as_it_is);
	tcase_add_test(t, a_vm_that_hangs_with_nothing_asked_is_only_left_alone);
	tcase_add_test(t, a_refused_ask_fails_at_once_and_is_held);
	tcase_add_test(t, a_result_of_an_older_target_says_nothing_of_the_newest);
	tcase_add_test(t, a_running_ask_is_not_extended_for_little);
	tcase_add_test(t, switching_to_observe_ends_what_runs);
	tcase_add_test(t, a_new_floor_holds_at_once_though_the_guest_rests);
	tcase_add_test(t, a_vm_that_is_not_managed_any_more_is_let_be);
	tcase_add_test(t, a_guest_smaller_than_sixteen_granules_is_not_asked);
	tcase_add_test(t, a_job_ends_short_when_nobody_can_give_more);
	tcase_add_test(t, a_job_that_nobody_can_serve_ends_at_once);
	tcase_add_test(t, a_cancelled_job_ends_its_asks_and_only_its);
	tcase_add_test(t, a_job_over_memory_that_is_swapped_out_leaves_no_ask_behind);
	tcase_add_test(
		t, nothing_is_asked_again_for_a_short_pool_until_something_changes_or_a_hold_time);
	tcase_add_test(t, with_a_host_pool_what_came_is_under_way_until_memavailable_shows_it);
	tcase_add_test(t, with_a_host_pool_what_memavailable_never_shows_is_asked_after_a_deadline);
	tcase_add_test(t, with_a_host_pool_what_memavailable_shows_first_is_not_counted_twice);
	tcase_add_test(t, with_a_host_pool_what_no_sample_shows_was_not_what_was_asked_for);
	tcase_add_test(t, the_pools_free_memory_is_the_smaller_of_two_figures_less_the_reserve);
	tcase_add_test(t, an_ask_that_comes_in_no_time_is_no_measure_of_speed);
	tcase_add_test(t, the_speed_of_a_balloon_is_measured_from_the_command_on);
	tcase_add_test(t, a_flutter_of_what_the_guest_uses_does_not_raise_the_goal_but_a_min_does);
	tcase_add_test(t, a_floor_that_rises_within_the_flutter_raises_the_goal);
	tcase_add_test(t, sixteen_granules_that_came_measure_the_speed);
	tcase_add_test(t, an_eighth_short_of_a_small_ask_has_come_and_more_has_not_yet);
	tcase_add_test(t, an_ask_that_ends_at_the_floor_is_told_once);
	tcase_add_test(t, a_goal_that_rises_to_where_the_ask_began_begins_it_anew);
	tcase_add_test(t, what_waits_of_a_guest_that_cannot_give_any_more_is_asked_of_others);
	tcase_add_test(t, trust_is_whole_again_at_max_step);
	suite_add_tcase(s, t);
	srunner_set_tap(sr, "-");
	srunner_run_all(sr, CK_SILENT);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
