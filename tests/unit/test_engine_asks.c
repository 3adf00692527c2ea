/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine over a small world: what becomes of an ask: how it begins, grows, comes, fails and
 * ends. */
#include <config.h>

#include "policy/engine.h"

#include <check.h>
#include <errno.h>

#include "tests/unit/suite.h"
#include "tests/unit/world.h"

static struct world w;

static void teardown(void)
{
	world_close(&w);
}

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
	world_open_pool(&w, MIB(1000));
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
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = MIB(1);
	world_ticks(&w, 5);
	ck_assert_uint_gt(world_view(&w, 2).owed, 0);
	world_vm(&w, 4)->resident = MIB(100); /* the pool has plenty */
	world_ticks(&w, 1);
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
}
END_TEST

START_TEST(goal_stays_below_where_the_ask_began_when_the_guest_grows)
{
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
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
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
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

	world_open_pool(&w, MIB(2000));
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
	world_three_guests(&w, MIB(360), MIB(320), MIB(300)); /* 60 of batch: 352.5 is an eighth */
	world_vm(&w, 2)->stops_at = MIB(300) + MIB(60) / 8;
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
	ck_assert_uint_ge(world_count(&w, ENGINE_EVENT_ASK_CAME), 1);
	world_close(&w);
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->stops_at = MIB(300) + MIB(60) / 8 + 1;
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
	ck_assert_int_eq(
		world_event(&w, ENGINE_EVENT_ASK_FAILED)->b, (int64_t)(MIB(60) - MIB(60) / 8 - 1));
}
END_TEST

START_TEST(usage_that_is_unknown_has_not_come)
{
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
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

	world_open_pool(&w, MIB(1000));
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

START_TEST(asks_in_the_name_of_a_limit_that_was_lifted_end)
{
	struct memcg_knobs max = none;

	world_open_pool(&w, MIB(2000));
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

	world_open_pool(&w, MIB(1000));
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

START_TEST(a_dead_balloon_with_a_long_way_is_given_up_when_it_does_not_move)
{
	struct memcg_knobs zero = soft(0);

	/* 2000 MiB to inflate before anything comes: 45 s at the speed it is taken for. */
	world_open_pool(&w, MIB(1000));
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
	world_open_pool(&w, MIB(1000));
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

	world_open_pool(&w, MIB(1000));
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

START_TEST(a_refused_ask_fails_at_once_and_is_held)
{
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
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
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
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
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = 0;
	world_tick(&w);
	world_vm(&w, 3)->resident += MIB(14); /* less than a quarter of the 60 that run */
	world_tick(&w);
	ck_assert_ptr_null(world_action(&w, 2));
	ck_assert_uint_eq(world_view(&w, 2).waiting, MIB(14));
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(74));
}
END_TEST

START_TEST(an_ask_that_comes_in_no_time_is_no_measure_of_speed)
{
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
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

	world_open_pool(&w, MIB(2000));
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

	world_open_pool(&w, MIB(2000));
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
		world_open_pool(&w, MIB(2000));
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

	world_open_pool(&w, MIB(2000));
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
	struct engine_config config;

	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	config = *engine_config(w.engine);
	config.growth_us = 0; /* the need is that of the watermarks as configured */
	ck_assert_int_eq(engine_set_config(w.engine, &config), 0);
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

START_TEST(guest_that_comes_to_use_more_than_it_has_while_it_is_asked_is_told_no_more_than_it_has)
{
	struct memcg_knobs zero = soft(0);

	world_open_pool(&w, MIB(2000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(290), &zero);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(300);
	world_vm(&w, 2)->speed = 0;
	world_reclaim(&w, 7, 2, MIB(20));
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(270));
	for (int i = 0; i < 20; i++) {
		world_vm(&w, 2)->swapped += MIB(3); /* it grows, and the host swaps */
		world_tick(&w);
		ck_assert_uint_le(world_view(&w, 2).target, MIB(300));
	}
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(300));
}
END_TEST

START_TEST(somebody_s_smaller_target_in_an_ask_is_their_wish_though_the_ask_is_cancelled)
{
	struct memcg_knobs zero = soft(0);

	world_open_pool(&w, MIB(2000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(480), &zero);
	world_vm(&w, 2)->speed = 0;
	world_reclaim(&w, 7, 2, MIB(20));
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(460));
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(400); /* nothing left it yet */
	world_vm(&w, 2)->pretends = true;
	world_ticks(&w, 10);
	zero.min = MIB(470);
	world_knobs(&w, 2, &zero);
	for (int i = 0; i < 40; i++) {
		world_tick(&w);
		ck_assert(!world_action(&w, 2) || world_action(&w, 2)->target <= MIB(400));
	}
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(400));
}
END_TEST

/* Its last figures are of before its balloon was through. */
START_TEST(ask_whose_end_is_seen_by_the_balloon_alone_is_settled_with_what_waits)
{
	struct memcg_knobs zero = soft(0);
	struct engine_config config;

	world_config(&config);
	config.max_step = MIB(10);
	world_open(&w, &config, MIB(2000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(480), MIB(480), &zero);
	world_vm(&w, 2)->speed = MIB(9) - 50;
	world_reclaim(&w, 7, 2, MIB(40));
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(470));
	for (int i = 0; i < 10 && world_view(&w, 2).set.usage == MIB(480); i++)
		world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).set.usage, MIB(471) + 50);
	world_vm(&w, 2)->no_process = true;
	for (int i = 0; i < 100 && !world_count(&w, ENGINE_EVENT_ASK_CAME); i++)
		world_tick(&w);
	ck_assert_uint_eq(world_event(&w, ENGINE_EVENT_ASK_CAME)->a, MIB(10));
	ck_assert_uint_eq(world_view(&w, 2).set.usage, MIB(470));
	ck_assert_uint_eq(world_view(&w, 2).set.resident, MIB(470));
}
END_TEST

/* 2 was told 10 MiB of the 50 that are its share; 3 is not in excess. Neither balloon moves. */
static void open_with_shares_that_wait(void)
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
}

START_TEST(what_waits_of_a_guest_that_cannot_give_any_more_is_asked_of_others)
{
	open_with_shares_that_wait();
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
	world_vm(&w, 2)->stale = true;
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(10)); /* what it was told may come */
	ck_assert_uint_eq(world_view(&w, 3).owed, MIB(40));
}
END_TEST

START_TEST(what_waits_of_a_guest_whose_process_ends_is_not_passed_on)
{
	open_with_shares_that_wait();
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
	world_vm(&w, 2)->no_process = true;
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
	ck_assert_uint_eq(world_view(&w, 3).owed, 0);
}
END_TEST

START_TEST(what_waits_of_a_guest_whose_process_stays_unknown_is_passed_on_at_its_deadline)
{
	open_with_shares_that_wait();
	world_vm(&w, 2)->no_process = true;
	world_ticks(&w, 1000);
	ck_assert_uint_gt(world_view(&w, 3).asks, 0);
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

/* BR-102, with its figures: 8 and 2 GiB of excess, a need of 1 GiB, steps of 256 MiB. */
START_TEST(shares_are_in_proportion_to_the_caps_and_the_stuck_ones_is_passed_on_once_it_failed)
{
	struct memcg_knobs two = soft(MIB(2048));
	struct engine_config config;
	uint64_t b;

	world_config(&config);
	config.wm_low.permille = 70;
	config.max_step = MIB(256);
	world_open(&w, &config, MIB(40960)); /* high 3276.8 */
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(10240), MIB(10240), &two);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(4096), MIB(4096), &two);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(32768), MIB(24371), &none); /* free 2253 */
	world_vm(&w, 4)->anon = MIB(24371);
	world_vm(&w, 2)->cache = world_vm(&w, 3)->cache = 0; /* caps are the excess */
	world_vm(&w, 2)->speed = 0;
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(10240 - 256));
	b = MIB(4096) - world_action(&w, 3)->target;
	ck_assert_uint_ge(b, MIB(204));
	ck_assert_uint_le(b, MIB(206));
	world_ticks(&w, 95); /* 5 s and 256 MiB at 50 MiB/s are not over */
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
	ck_assert_uint_ge(world_usage(world_vm(&w, 3)), MIB(4096 - 207));
	world_ticks(&w, 200);
	ck_assert_uint_ge(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(3276));
	ck_assert_int_le(world_free(&w), (int64_t)MIB(3279));
	ck_assert_uint_eq(world_vm(&w, 2)->resident, MIB(10240));
	ck_assert_uint_ge(world_usage(world_vm(&w, 3)), MIB(2048));
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
}
END_TEST

/* 2 was told to go to 260 MiB, which was set; then further, to 220, which is out. */
static void extended(int error)
{
	struct memcg_knobs zero = soft(0);

	world_open_pool(&w, MIB(4000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(300), MIB(300), &zero);
	world_vm(&w, 2)->speed = MIB(1);
	world_reclaim(&w, 7, 2, MIB(40));
	world_ticks(&w, 2);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(260));
	world_reclaim(&w, 8, 2, MIB(79));
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(219));
	world_vm(&w, 2)->pending_seq = 0;
	w.results[w.nr_results++] =
		(struct engine_result){ .id = 2, .seq = world_action(&w, 2)->seq, .error = error };
}

START_TEST(what_was_set_before_a_target_that_never_got_through_still_counts)
{
	extended(_i ? -EBUSY : -ENOTCONN);
	world_tick(&w);
	/* What got lost is asked once more, beside what is under way; it is one ask. */
	ck_assert_ptr_nonnull(world_action(&w, 2));
	ck_assert_uint_eq(
		world_action(&w, 2)->reason.owed, world_usage(world_vm(&w, 2)) - MIB(260));
	ck_assert_uint_eq(world_view(&w, 2).asks, 1);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_DONE), 2);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
}
END_TEST

/* Nobody knows how far it goes: it is to stop where it is. */
START_TEST(balloon_that_may_have_been_set_before_is_told_to_stop_where_the_next_got_lost)
{
	struct memcg_knobs zero = soft(0);

	world_open_pool(&w, MIB(4000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(300), MIB(300), &zero);
	world_vm(&w, 2)->delay = 100;
	world_reclaim(&w, 7, 2, MIB(40));
	world_tick(&w);
	world_reclaim(&w, 8, 2, MIB(79));
	world_tick(&w);
	w.results[w.nr_results++] = (struct engine_result){
		.id = 2, .seq = world_action(&w, 2)->seq, .error = -ENOTCONN
	};
	world_cancel_job(&w, 7);
	world_cancel_job(&w, 8);
	w.nr_requests = 0;
	world_tick(&w);
	ck_assert_ptr_nonnull(world_action(&w, 2));
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_CANCEL), 1);
}
END_TEST

/* What a sample has not shown yet, the call that returned well has told. */
START_TEST(what_a_call_set_before_a_target_that_never_got_through_still_counts)
{
	struct memcg_knobs zero = soft(0);

	world_open_pool(&w, MIB(4000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(300), MIB(300), &zero);
	world_vm(&w, 2)->delay = 100;
	for (uint64_t job = 7; job <= 8; job++) {
		world_reclaim(&w, job, 2, job == 7 ? MIB(40) : MIB(79));
		world_tick(&w);
		w.results[w.nr_results++] = (struct engine_result){
			.id = 2, .seq = world_action(&w, 2)->seq, .error = job == 7 ? 0 : -ENOTCONN
		};
	}
	world_tick(&w);
	ck_assert_ptr_nonnull(world_action(&w, 2));
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CUT);
	ck_assert_uint_eq(world_action(&w, 2)->reason.owed, MIB(40));
	ck_assert_uint_eq(world_view(&w, 2).asks, 1);
}
END_TEST

START_TEST(guest_that_is_to_give_less_and_cannot_be_told_has_failed_nothing)
{
	struct memcg_knobs zero = soft(0);
	size_t commands;

	world_open_pool(&w, MIB(4000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(300), MIB(300), &zero);
	world_vm(&w, 2)->speed = MIB(1) / 4;
	world_reclaim(&w, 7, 2, MIB(100));
	world_ticks(&w, 3);
	world_vm(&w, 2)->refuses = true;
	world_vm(&w, 2)->anon = MIB(250); /* it uses more: the goal rises with that */
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(250));
	commands = world_vm(&w, 2)->commands;
	world_ticks(&w, 50); /* not told over and over either */
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
	ck_assert_int_ne(world_view(&w, 2).hold, RECLAIM_HOLD_FAILED);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, commands);
	ck_assert_uint_eq(world_view(&w, 2).target, MIB(200));
	world_vm(&w, 2)->refuses = false;
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, commands);
	world_tick(&w); /* a hold time after it was refused */
	ck_assert_uint_eq(world_vm(&w, 2)->commands, commands + 1);
	world_tick(&w);
	ck_assert_uint_ge(world_vm(&w, 2)->target, MIB(250));
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		balloon_that_may_have_been_set_before_is_told_to_stop_where_the_next_got_lost,
		what_a_call_set_before_a_target_that_never_got_through_still_counts,
		guest_that_is_to_give_less_and_cannot_be_told_has_failed_nothing,
		steps_of_max_step_wait_for_the_one_before_to_come,
		an_ask_that_brings_nothing_is_cancelled_at_its_deadline_and_asked_of_others,
		asks_end_when_the_need_is_gone,
		goal_stays_below_where_the_ask_began_when_the_guest_grows,
		the_goal_rises_with_what_the_guest_uses_and_the_ask_is_cancelled_when_all_is_used,
		an_ask_of_one_granule_has_come_only_when_it_came,
		seven_eighths_at_the_deadline_are_taken_for_the_whole,
		usage_that_is_unknown_has_not_come,
		what_the_guest_gave_beyond_the_goal_is_given_of_what_waits,
		an_extension_counts_from_the_usage_that_is_already_below_the_goal,
		a_hanging_share_of_step_three_goes_to_who_came_to_be_in_excess,
		asks_in_the_name_of_a_limit_that_was_lifted_end,
		a_low_that_is_set_while_an_ask_runs_holds_at_once,
		a_dead_balloon_with_a_long_way_is_given_up_when_it_does_not_move,
		a_slow_balloon_that_moves_at_its_deadline_gets_the_time_it_takes,
		an_ask_of_a_guest_whose_statistics_flutter_expires,
		shares_below_wm_min_that_cannot_come_in_time_are_passed_on,
		a_vm_that_failed_is_asked_what_it_delivered_and_twice_as_much_after_each_success,
		hold_times_double_with_each_failure_up_to_five_minutes,
		a_refused_ask_fails_at_once_and_is_held,
		a_result_of_an_older_target_says_nothing_of_the_newest,
		a_running_ask_is_not_extended_for_little,
		an_ask_that_comes_in_no_time_is_no_measure_of_speed,
		the_speed_of_a_balloon_is_measured_from_the_command_on,
		a_flutter_of_what_the_guest_uses_does_not_raise_the_goal_but_a_min_does,
		a_floor_that_rises_within_the_flutter_raises_the_goal,
		sixteen_granules_that_came_measure_the_speed,
		an_eighth_short_of_a_small_ask_has_come_and_more_has_not_yet,
		an_ask_that_ends_at_the_floor_is_told_once,
		a_goal_that_rises_to_where_the_ask_began_begins_it_anew,
		ask_whose_end_is_seen_by_the_balloon_alone_is_settled_with_what_waits,
		guest_that_comes_to_use_more_than_it_has_while_it_is_asked_is_told_no_more_than_it_has,
		somebody_s_smaller_target_in_an_ask_is_their_wish_though_the_ask_is_cancelled,
		what_waits_of_a_guest_that_cannot_give_any_more_is_asked_of_others,
		what_waits_of_a_guest_whose_process_ends_is_not_passed_on,
		what_waits_of_a_guest_whose_process_stays_unknown_is_passed_on_at_its_deadline,
		trust_is_whole_again_at_max_step,
		shares_are_in_proportion_to_the_caps_and_the_stuck_ones_is_passed_on_once_it_failed,
	};
	Suite *s = suite_create("engine_asks");
	TCase *t = tcase_create("engine asks");

	tcase_add_checked_fixture(t, NULL, teardown);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(t, tests[i]);
	tcase_add_loop_test(
		t, what_was_set_before_a_target_that_never_got_through_still_counts, 0, 2);
	suite_add_tcase(s, t);
	return suite_run(s);
}
