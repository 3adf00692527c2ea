/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine over a small world: how much of a share is told at once, and which asks end first. */
#include <config.h>

#include "policy/engine.h"

#include <check.h>

#include "tests/unit/suite.h"
#include "tests/unit/world.h"

static struct world w;
static struct engine_config config;

static void setup(void)
{
	world_config(&config);
}

static void teardown(void)
{
	world_close(&w);
}

/* One in excess of all it has, and one that can only grow: free is 1000 - both. Nobody moves. */
static void two_guests(uint64_t gives, uint64_t grows)
{
	struct memcg_knobs zero = soft(0);

	world_open(&w, &config, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(900), gives, &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(900), grows, &none);
	world_vm(&w, 2)->speed = 0;
	world_state(&w, 3, ENGINE_VM_NO_DEVICE);
	world_tick(&w);
}

static void grow(uint64_t pages)
{
	world_vm(&w, 3)->resident += pages;
	world_tick(&w);
}

static bool told(uint64_t id)
{
	return world_action(&w, id) && world_action(&w, id)->reason.type == ENGINE_CUT;
}

START_TEST(a_running_ask_grows_by_a_quarter_at_once)
{
	two_guests(MIB(500), MIB(480)); /* need 60 */
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(60));
	grow(MIB(14));
	ck_assert(!told(2));
	ck_assert_uint_eq(world_view(&w, 2).waiting, MIB(14));
	grow(MIB(1));
	ck_assert(told(2));
	ck_assert_uint_eq(world_view(&w, 2).waiting, 0);
}
END_TEST

START_TEST(a_running_ask_grows_by_16_mib_at_once_however_large_it_is)
{
	two_guests(MIB(600), MIB(440)); /* need 120 */
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(120));
	grow(MIB(15));
	ck_assert(!told(2));
	grow(MIB(1));
	ck_assert(told(2));
	ck_assert_uint_eq(world_view(&w, 2).waiting, 0);
}
END_TEST

START_TEST(what_max_step_leaves_of_a_running_ask_is_told_when_it_is_a_quarter)
{
	config.wm_low.permille = 150;
	config.wm_high.permille = 200;
	for (uint64_t left = 19; left <= 20; left++) {
		config.max_step = MIB(80 + left);
		two_guests(MIB(500), MIB(380)); /* free 120: need 80 */
		ck_assert_uint_eq(world_view(&w, 2).owed, MIB(80));
		grow(MIB(50));
		ck_assert_uint_eq(told(2), left == 20);
		ck_assert_uint_eq(world_view(&w, 2).owed, MIB(130));
		if (left == 19)
			world_close(&w);
	}
}
END_TEST

START_TEST(a_need_that_falls_by_a_granule_ends_nothing_and_by_more_it_does)
{
	two_guests(MIB(500), MIB(480));
	grow(-MIB(1));
	ck_assert_uint_eq(w.out.nr_actions, 0);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(60));
	grow(-(uint64_t)1);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(59) - 1);
}
END_TEST

START_TEST(an_ask_shrinks_with_the_need_and_goes_on)
{
	two_guests(MIB(500), MIB(480));
	grow(-MIB(20)); /* inside the band */
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(40));
	ck_assert_uint_eq(world_view(&w, 2).asks, 1);
	grow(-MIB(39)); /* a granule is worth the command that was given */
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(1));
	ck_assert_uint_eq(world_view(&w, 2).asks, 1);
}
END_TEST

START_TEST(of_what_is_too_much_the_last_step_ends_first)
{
	struct memcg_knobs over = soft(MIB(100));

	for (uint64_t first = 2; first <= 3; first++) { /* whoever was added first */
		const uint64_t excess = first, other = 5 - first;

		world_open(&w, &config, MIB(1000));
		for (uint64_t id = 2; id <= 3; id++) {
			world_add(&w, id, MEMCG_ROOT_ID, MIB(500),
				id == excess ? MIB(150) : MIB(430), id == excess ? &over : &none);
			world_vm(&w, id)->speed = 0;
		}
		world_add(&w, 4, MEMCG_ROOT_ID, MIB(500), MIB(410), &none);
		world_state(&w, 4, ENGINE_VM_NO_DEVICE);
		world_tick(&w); /* need 70: 50 of the excess, 20 in step 3 */
		ck_assert_uint_eq(world_view(&w, excess).owed, MIB(50));
		ck_assert_uint_eq(world_view(&w, other).owed, MIB(20));
		world_vm(&w, 4)->resident -= MIB(15);
		world_tick(&w);
		ck_assert_uint_eq(world_view(&w, excess).owed, MIB(50));
		ck_assert_uint_eq(world_view(&w, other).owed, MIB(5));
		world_vm(&w, 4)->resident -= MIB(15);
		world_tick(&w);
		ck_assert_uint_eq(world_view(&w, excess).owed, MIB(40));
		ck_assert_uint_eq(world_view(&w, other).owed, 0);
		if (first == 2)
			world_close(&w);
	}
}
END_TEST

START_TEST(what_waits_of_step_three_goes_to_an_excess_even_where_the_need_stays)
{
	struct memcg_knobs limit = soft(MIB(400));

	config.max_step = MIB(10);
	world_open(&w, &config, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(380), &limit);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(390), &none);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(700), MIB(190), &none);
	world_state(&w, 4, ENGINE_VM_NO_DEVICE);
	world_vm(&w, 2)->speed = world_vm(&w, 3)->speed = 0;
	world_tick(&w); /* free 40, need 40: in step 3, of who has no limit */
	ck_assert_uint_eq(world_view(&w, 3).owed, MIB(40));
	world_vm(&w, 2)->resident = MIB(415);
	world_vm(&w, 4)->resident = MIB(155);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(15));
	ck_assert_uint_eq(world_view(&w, 3).owed, MIB(25));
}
END_TEST

START_TEST(a_share_that_waits_stays_its_vms)
{
	uint64_t owed[3];
	int64_t carried[3];

	config.max_step = MIB(3);
	world_open(&w, &config, MIB(1000));
	for (uint64_t id = 2; id < 5; id++) {
		world_add(&w, id, MEMCG_ROOT_ID, MIB(400), MIB(318) + id, &none);
		world_vm(&w, id)->speed = 0;
	}
	world_tick(&w); /* need 34 and a little: not a multiple of 3 */
	ck_assert_uint_eq(world_view(&w, MEMCG_ROOT_ID).owed, MIB(35));
	for (uint64_t id = 2; id < 5; id++) {
		owed[id - 2] = world_view(&w, id).owed;
		carried[id - 2] = memcg_carries(memcg_find(engine_tree(w.engine), id), 0)[2];
	}
	for (int i = 0; i < 20; i++) {
		world_tick(&w);
		for (uint64_t id = 2; id < 5; id++) {
			ck_assert_uint_eq(world_view(&w, id).owed, owed[id - 2]);
			ck_assert_int_eq(memcg_carries(memcg_find(engine_tree(w.engine), id), 0)[2],
				carried[id - 2]); /* nor is it planned anew */
		}
	}
}
END_TEST

START_TEST(group_that_is_short_is_so_through_a_change_of_its_knobs)
{
	struct memcg_knobs max = none;

	max.max = MIB(20);
	world_open(&w, &config, MIB(1000));
	world_group(&w, 10, MEMCG_ROOT_ID, &max);
	world_add(&w, 2, 10, MIB(400), MIB(30), &none); /* its floor is 40 */
	world_ticks(&w, 20);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT), 1);
	max.max = MIB(21);
	world_knobs(&w, 10, &max);
	world_ticks(&w, 5);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT), 1);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT_OVER), 0);
	/* Without a max it can be short of nothing. */
	world_knobs(&w, 10, &none);
	world_ticks(&w, 5);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT_OVER), 1);
}
END_TEST

START_TEST(a_group_that_stays_over_its_max_is_short_and_says_so_once)
{
	struct memcg_knobs max = none;

	max.max = MIB(20);
	world_open(&w, &config, MIB(1000));
	world_group(&w, 10, MEMCG_ROOT_ID, &max);
	world_add(&w, 2, 10, MIB(400), MIB(30), &none); /* its floor is 40 */
	world_ticks(&w, 20);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT), 1);
	ck_assert_uint_eq(world_event(&w, ENGINE_EVENT_SHORT)->id, 10);
	ck_assert_uint_eq(world_event(&w, ENGINE_EVENT_SHORT)->a, MIB(10));
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT_OVER), 0);
	world_vm(&w, 2)->resident = MIB(20);
	world_ticks(&w, 20);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT_OVER), 1);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT), 1);
}
END_TEST

START_TEST(group_that_goes_is_short_no_more)
{
	struct memcg_knobs max = none;

	max.max = MIB(20);
	world_open(&w, &config, MIB(1000));
	world_group(&w, 10, MEMCG_ROOT_ID, &max);
	world_group(&w, 11, MEMCG_ROOT_ID, &max);	/* its place moves */
	world_add(&w, 2, 10, MIB(400), MIB(30), &none); /* its floor is 40 */
	world_add(&w, 3, 11, MIB(400), MIB(30), &none);
	world_ticks(&w, 5);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT), 2);
	for (uint64_t id = 2; id <= 3; id++) {
		world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = id });
		world_change(
			&w, &(struct engine_change){ .type = ENGINE_GROUP_GONE, .id = id + 8 });
		world_vm(&w, id)->gone = true;
		world_tick(&w);
		ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT_OVER), id - 1);
		ck_assert_uint_eq(world_event(&w, ENGINE_EVENT_SHORT_OVER)->id, id + 8);
	}
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT), 2);
}
END_TEST

START_TEST(below_wm_min_steps_are_four_times_as_large)
{
	config.max_step = MIB(10);
	two_guests(MIB(500), MIB(480)); /* free 20: wm_min, not below it */
	ck_assert_uint_eq(world_view(&w, 2).target, MIB(490));
	world_close(&w);
	two_guests(MIB(500), MIB(480) + 1);
	ck_assert_uint_eq(world_view(&w, 2).target, MIB(460));
}
END_TEST

/* ---- when an ask is given up: of 100 MiB, 2 s at the speed it is taken for, and 5 s more ---- */

static void asked_100(uint64_t maximum)
{
	struct memcg_knobs zero = soft(0);

	world_open(&w, &config, MIB(4000));
	world_add(&w, 2, MEMCG_ROOT_ID, maximum, MIB(300), &zero);
	world_vm(&w, 2)->speed = 0;
	world_reclaim(&w, 7, 2, MIB(100));
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(100));
}

/* The balloon moves so far, by itself, in the tick that comes. */
static void moves(uint64_t pages)
{
	struct world_vm *vm = world_vm(&w, 2);

	vm->actual -= pages;
	vm->resident = pages_min(vm->resident, vm->actual);
	world_tick(&w);
}

/* The tick, counted from now, with which the ask fails; 0: not within nr. */
static unsigned int fails_in(unsigned int nr)
{
	for (unsigned int i = 1; i <= nr; i++) {
		world_tick(&w);
		if (world_count(&w, ENGINE_EVENT_ASK_FAILED))
			return i;
	}
	return 0;
}

START_TEST(an_ask_that_brings_nothing_fails_with_the_tick_of_its_deadline)
{
	asked_100(MIB(300));
	ck_assert_uint_eq(fails_in(200), 70);
}
END_TEST

START_TEST(a_balloon_that_moved_within_two_seconds_of_the_deadline_gets_more_time)
{
	asked_100(MIB(300));
	world_ticks(&w, 49);
	moves(MIB(20));
	ck_assert_uint_eq(fails_in(20), 0);
	world_close(&w);
	asked_100(MIB(300));
	world_ticks(&w, 48);
	moves(MIB(20));
	ck_assert_uint_eq(fails_in(21), 21);
}
END_TEST

START_TEST(more_time_is_for_those_who_brought_an_eighth_of_what_is_left)
{
	asked_100(MIB(300));
	world_ticks(&w, 59);
	moves(MIB(100) / 9 - 1); /* 11.1 of 88.9 */
	ck_assert_uint_eq(fails_in(10), 10);
	world_close(&w);
	asked_100(MIB(300));
	world_ticks(&w, 59);
	moves(MIB(100) / 9);
	ck_assert_uint_eq(fails_in(10), 0);
}
END_TEST

START_TEST(more_time_is_what_the_rest_takes_at_the_speed_that_it_shows)
{
	asked_100(MIB(300));
	world_ticks(&w, 49);
	moves(MIB(80)); /* by its deadline at 7 s: the other 20 take 1.75 s, and 5 s more */
	ck_assert_uint_eq(fails_in(200), 138 - 50);
}
END_TEST

START_TEST(a_balloon_with_a_long_way_that_stands_still_for_a_step_is_stuck)
{
	config.speed = MIB(64);
	asked_100(MIB(1500)); /* 1300 MiB: a deadline at 25 s */
	world_ticks(&w, 49);
	moves(MIB(1) - 1); /* that is no move; 5 s and 256 MiB at 64 MiB/s */
	ck_assert_uint_eq(fails_in(200), 90 - 50);
	world_close(&w);
	asked_100(MIB(1500));
	world_ticks(&w, 49);
	moves(MIB(1));
	ck_assert_uint_eq(fails_in(200), 90);
}
END_TEST

START_TEST(more_that_is_asked_of_a_slow_balloon_takes_none_of_its_time)
{
	asked_100(MIB(300));
	world_ticks(&w, 49);
	moves(MIB(80)); /* that is 16 MiB/s: its deadline goes from 7 s to 13.75 */
	world_ticks(&w, 25);
	world_reclaim(&w, 8, 2, MIB(60)); /* of it 20 are under way */
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(60));
	ck_assert_uint_eq(world_view(&w, 2).waiting, 0);
	ck_assert_uint_eq(fails_in(50), 0);
}
END_TEST

/* 2 and 3 are in excess by 20 MiB each, 3 with less to inflate before; 4 is not. */
START_TEST(what_the_hosts_rate_leaves_is_for_the_first_steps_first_and_the_least_to_inflate)
{
	static const uint64_t order[] = { 3, 2, 4 };
	struct memcg_knobs limit = soft(MIB(180));
	uint64_t of[5] = { 0 };
	size_t n = 0;

	config.max_rate = MIB(4);
	world_open(&w, &config, MIB(4000));
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(200), MIB(200), &none);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(200), &limit);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(300), MIB(200), &limit);
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(60));
	for (unsigned int i = 0; i < 200; i++) {
		world_tick(&w);
		for (uint64_t id = 2; id <= 4; id++)
			of[id] = pages_max(of[id], world_vm(&w, id)->commands);
		while (n < 3 && of[order[n]])
			n++;
		for (size_t later = n + 1; later < 3; later++)
			ck_assert_uint_eq(of[order[later]], 0);
	}
	ck_assert_uint_eq(n, 3);
}
END_TEST

START_TEST(group_that_stays_short_is_planned_anew_when_something_changes_or_after_a_hold_time)
{
	const struct engine_input nothing = { .now = 0 };
	struct engine_input in = nothing;
	struct memcg_knobs max = none;
	struct engine_output out;

	max.max = MIB(20);
	world_open(&w, &config, MIB(1000));
	world_group(&w, 10, MEMCG_ROOT_ID, &max);
	world_add(&w, 2, 10, MIB(400), MIB(30), &none); /* its floor is 40 */
	world_ticks(&w, 40);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT), 1);
	in.now = w.now + 1;
	ck_assert_int_eq(engine_tick(w.engine, &in, &out), 0);
	ck_assert_uint_eq(out.next, w.now + config.hold_us); /* of the last one that was planned */
	in.now = out.next; /* the hold time is over with this tick */
	ck_assert_int_eq(engine_tick(w.engine, &in, &out), 0);
	ck_assert_uint_eq(out.next, in.now + config.hold_us);
}
END_TEST

START_TEST(of_two_that_the_hosts_rate_holds_up_the_first_step_is_first)
{
	struct memcg_knobs limit = soft(MIB(180));

	config.max_rate = MIB(4);
	world_open(&w, &config, MIB(4000));
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(200), MIB(200), &none);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(200), &limit);
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(40));
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 4).waiting, MIB(20));
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine_pace");
	TCase *t = tcase_create("pace");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_running_ask_grows_by_a_quarter_at_once);
	tcase_add_test(t, a_running_ask_grows_by_16_mib_at_once_however_large_it_is);
	tcase_add_test(t, what_max_step_leaves_of_a_running_ask_is_told_when_it_is_a_quarter);
	tcase_add_test(t, a_need_that_falls_by_a_granule_ends_nothing_and_by_more_it_does);
	tcase_add_test(t, an_ask_shrinks_with_the_need_and_goes_on);
	tcase_add_test(t, of_what_is_too_much_the_last_step_ends_first);
	tcase_add_test(t, what_waits_of_step_three_goes_to_an_excess_even_where_the_need_stays);
	tcase_add_test(t, a_share_that_waits_stays_its_vms);
	tcase_add_test(t, group_that_is_short_is_so_through_a_change_of_its_knobs);
	tcase_add_test(t, a_group_that_stays_over_its_max_is_short_and_says_so_once);
	tcase_add_test(t, more_that_is_asked_of_a_slow_balloon_takes_none_of_its_time);
	tcase_add_test(t,
		what_the_hosts_rate_leaves_is_for_the_first_steps_first_and_the_least_to_inflate);
	tcase_add_test(t, of_two_that_the_hosts_rate_holds_up_the_first_step_is_first);
	tcase_add_test(t,
		group_that_stays_short_is_planned_anew_when_something_changes_or_after_a_hold_time);
	tcase_add_test(t, group_that_goes_is_short_no_more);
	tcase_add_test(t, below_wm_min_steps_are_four_times_as_large);
	tcase_add_test(t, an_ask_that_brings_nothing_fails_with_the_tick_of_its_deadline);
	tcase_add_test(t, a_balloon_that_moved_within_two_seconds_of_the_deadline_gets_more_time);
	tcase_add_test(t, more_time_is_for_those_who_brought_an_eighth_of_what_is_left);
	tcase_add_test(t, more_time_is_what_the_rest_takes_at_the_speed_that_it_shows);
	tcase_add_test(t, a_balloon_with_a_long_way_that_stands_still_for_a_step_is_stuck);
	suite_add_tcase(s, t);
	return suite_run(s);
}
