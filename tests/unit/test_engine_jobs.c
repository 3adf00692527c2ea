/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine over a small world: an operator's reclaim. */
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

START_TEST(an_operators_reclaim_brings_what_it_was_asked_for)
{
	world_three_guests(&w, MIB(200), MIB(200), MIB(200));
	world_tick(&w);
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(90));
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_DONE), 1);
	ck_assert_uint_ge(MIB(200) - world_usage(world_vm(&w, 2)), MIB(88));
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
}
END_TEST

START_TEST(a_job_ends_short_when_nobody_can_give_more)
{
	world_open_pool(&w, MIB(2000));
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
	world_open_pool(&w, MIB(2000));
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

	world_open_pool(&w, MIB(2000));
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

	world_open_pool(&w, MIB(2000));
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

/* ---- several reclaim at once ---- */

/* Two over their soft limits by 100 and 50 MiB, one under its own, one without. */
static void two_in_excess(uint64_t pool, uint64_t max_step)
{
	struct engine_config config;
	struct memcg_knobs a = soft(MIB(200)), b = soft(MIB(250)), c = soft(MIB(400));

	world_config(&config);
	config.max_step = max_step;
	world_open(&w, &config, pool);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(300), &a);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(400), MIB(300), &b);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(400), MIB(300), &c);
	world_add(&w, 5, MEMCG_ROOT_ID, MIB(400), MIB(300), &none);
	for (uint64_t id = 2; id <= 5; id++)
		world_vm(&w, id)->speed = MIB(4);
	world_tick(&w);
}

static void others_are_left_alone(void)
{
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
	ck_assert_uint_eq(world_vm(&w, 5)->commands, 0);
	ck_assert_uint_eq(world_view(&w, 4).owed + world_view(&w, 5).owed, 0);
}

START_TEST(a_job_whose_excess_is_all_asked_by_another_counts_on_it_and_asks_nobody_else)
{
	two_in_excess(MIB(4000), MIB(256));
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(150)); /* all that is over */
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, MEMCG_ROOT_ID).owed, MIB(150));
	world_reclaim(&w, 8, MEMCG_ROOT_ID, MIB(140));
	world_ticks(&w, 30);
	others_are_left_alone();
	world_ticks(&w, 300);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_DONE), 2);
	others_are_left_alone();
}
END_TEST

START_TEST(what_waits_for_its_pace_in_one_jobs_name_is_not_asked_of_others_for_another)
{
	two_in_excess(MIB(4000), MIB(8));
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(150));
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).waiting, MIB(100 - 8));
	for (uint64_t job = 8; job < 11; job++)
		world_reclaim(&w, job, MEMCG_ROOT_ID, MIB(150));
	world_ticks(&w, 30);
	others_are_left_alone();
	ck_assert_uint_le(world_view(&w, MEMCG_ROOT_ID).owed, MIB(150));
}
END_TEST

/* What each of six equals was asked for, or gave, in all: between the least and the most. */
static uint64_t apart(void)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (uint64_t id = 2; id < 8; id++) {
		uint64_t gave = MIB(300) - world_view(&w, id).usage + world_view(&w, id).owed;

		least = pages_min(least, gave);
		most = pages_max(most, gave);
	}
	return most - least;
}

/*
 * Four requests in flight at once. For one root they give within a granule of each other; where
 * each request has a root of its own, that carries for itself what it rounded, or one would pay for
 * another's: within a granule for each.
 */
START_TEST(equals_give_within_a_granule_for_each_root_while_four_jobs_are_in_flight)
{
	uint64_t roots[] = { MEMCG_ROOT_ID, 10, 11, 12 }, most = 0;

	world_open_pool(&w, MIB(4000));
	for (uint64_t id = 10; id < 13; id++)
		world_group(&w, id, id == 10 ? MEMCG_ROOT_ID : id - 1, &none);
	for (uint64_t id = 2; id < 8; id++) {
		world_add(&w, id, 12, MIB(400), MIB(300), &none);
		world_vm(&w, id)->speed = 0;
	}
	world_tick(&w);
	for (uint64_t job = 1; job <= 4; job++) {
		world_reclaim(&w, job, roots[_i ? job - 1 : 0], MIB(7 * job) + 100);
		world_tick(&w);
		ck_assert_uint_eq(world_view(&w, 12).owed, MIB(7 * job + 1));
		most = pages_max(most, apart());
	}
	ck_assert_uint_le(most, _i ? MIB(4) : MIB(1));
	for (uint64_t id = 2; id < 8; id++)
		world_vm(&w, id)->speed = MIB(10);
	world_ticks(&w, 40);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_DONE), 4);
	ck_assert_uint_le(apart(), most);
}
END_TEST

START_TEST(a_group_over_its_max_a_job_and_the_pool_share_one_excess)
{
	struct memcg_knobs max = none, a = soft(MIB(200));

	max.max = MIB(500);
	world_open_pool(&w, MIB(950)); /* all use 900: 76 less than wm_high wants free */
	world_group(&w, 10, MEMCG_ROOT_ID, &max);
	world_add(&w, 2, 10, MIB(400), MIB(300), &a);
	world_add(&w, 3, 10, MIB(400), MIB(300), &none);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(400), MIB(300), &none);
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(90));
	world_reclaim(&w, 8, 10, MIB(60));
	world_tick(&w);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(100)); /* what the group is over */
	ck_assert_uint_eq(world_view(&w, 3).owed, 0);
	ck_assert_uint_eq(world_view(&w, 4).owed, 0);
}
END_TEST

START_TEST(what_the_pool_needs_no_more_goes_on_for_a_job_without_a_word_to_the_vm)
{
	size_t commands;

	two_in_excess(MIB(1240), MIB(256)); /* 40 of 1240 are free: below wm_low */
	ck_assert_uint_gt(world_view(&w, MEMCG_ROOT_ID).owed, MIB(50));
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(40));
	world_tick(&w);
	commands = world_vm(&w, 2)->commands;
	w.pool.size = MIB(4000);
	world_tick(&w);
	ck_assert_uint_ge(world_view(&w, MEMCG_ROOT_ID).owed, MIB(35));
	ck_assert_uint_le(world_view(&w, MEMCG_ROOT_ID).owed, MIB(41));
	ck_assert_uint_le(world_vm(&w, 2)->commands, commands + 1); /* less of it */
	world_ticks(&w, 120);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_DONE), 1);
	others_are_left_alone();
}
END_TEST

START_TEST(who_lets_go_of_an_excess_does_so_before_another_turns_to_everybody)
{
	two_in_excess(MIB(4000), MIB(256));
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(150));
	world_tick(&w);
	/* In one tick the first is cancelled, and two more come. */
	world_cancel_job(&w, 7);
	world_reclaim(&w, 8, MEMCG_ROOT_ID, MIB(100));
	world_reclaim(&w, 9, MEMCG_ROOT_ID, MIB(150));
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, MEMCG_ROOT_ID).owed, MIB(150));
	others_are_left_alone();
}
END_TEST

/* Resident memory and actual are read one after the other, and what came shows in one first. */
START_TEST(what_came_stays_given_when_its_job_ends_before_actual_shows_it)
{
	static const struct {
		uint64_t actual, resident, seq;
	} seen[] = {
		{ 49152, 49152, 0 }, /* it is asked then */
		{ 47898, 49152, 0 },
		{ 47898, 36864, 1 },
		{ 36864, 36864, 1 },
	};
	const struct engine_change new = { .type = ENGINE_VM_NEW,
		.id = 2,
		.parent = MEMCG_ROOT_ID,
		.knobs = none,
		.attrs = { .maximum = 49152, .act = true, .agent = true, .agent_floor = 5383 } };
	const struct engine_request reclaim = {
		.type = ENGINE_RECLAIM, .job = 7, .root = MEMCG_ROOT_ID, .pages = 12288
	};
	struct engine_config config;
	struct vm_sample sample = { .id = 2,
		.known = VM_FIGURES_PROCESS | VM_ACTUAL | VM_LISTS,
		.lists = { .inactive_file = 25704 } };
	struct engine_input in = { .changes = &new, .nr_changes = 1, .requests = &reclaim };
	struct engine_output out;

	world_config(&config);
	config.granule = 1;
	config.bounds.silent_gives = true;
	config.loosens = false; /* as on Xen */
	world_open(&w, &config, 153600);
	in.pool = &w.pool;
	in.samples = &sample;
	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		in.now += 100000;
		in.nr_samples = 1;
		in.nr_requests = i == 0;
		sample.actual = seen[i].actual;
		sample.resident = seen[i].resident;
		sample.applied_seq = seen[i].seq;
		ck_assert_int_eq(engine_tick(w.engine, &in, &out), 0);
		ck_assert_msg(out.nr_actions == (i == 0), "look %zu: told %zu", i, out.nr_actions);
		in.nr_changes = 0;
	}
	ck_assert_uint_eq(world_view(&w, 2).target, 36864);
}
END_TEST

START_TEST(a_page_that_is_lost_in_rounding_is_no_reason_to_ask_anybody_else)
{
	struct world_vm *vm;

	two_in_excess(MIB(4000), MIB(256));
	vm = world_vm(&w, 2);
	vm->swapped = MIB(100) + 1;
	vm->resident = MIB(200) - 1;
	vm->speed = 0;
	world_tick(&w);
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(116)); /* 50, and two thirds of 99 */
	for (unsigned int i = 0; i < 20; i++) {
		world_tick(&w);
		vm->resident--; /* the host swaps, a page at a time */
		vm->swapped++;
		others_are_left_alone();
	}
}
END_TEST

/* 2 may give 50 MiB; 5 has no balloon. They are 50 MiB over the max of their group. */
static void over_its_max(uint64_t pool)
{
	struct memcg_knobs max = none, min = none;

	world_open_pool(&w, pool);
	max.max = MIB(350);
	min.min = MIB(150);
	world_group(&w, 9, MEMCG_ROOT_ID, &none);
	world_group(&w, 10, 9, &max);
	world_add(&w, 2, 10, MIB(400), MIB(200), &min);
	world_add(&w, 5, 10, MIB(400), MIB(200), &none);
	world_state(&w, 5, ENGINE_VM_NO_DEVICE);
	world_vm(&w, 2)->speed = 0;
}

START_TEST(what_a_group_needs_no_more_ends_where_others_give_all_that_the_pool_lacks)
{
	over_its_max(MIB(2000));
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(900), MIB(800), &none);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(900), MIB(740), &none);
	world_state(&w, 4, ENGINE_VM_NO_DEVICE);
	world_vm(&w, 3)->speed = 0;
	world_reclaim(&w, 7, 3, MIB(50));
	world_tick(&w); /* free 60: the pool lacks 100, and counts on the group and the job */
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
	ck_assert_uint_eq(world_view(&w, 3).owed, MIB(50));
	world_vm(&w, 5)->resident -= MIB(50);
	world_tick(&w); /* the group is at its max, and the pool lacks what the job brings */
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
	ck_assert_uint_eq(world_view(&w, 3).owed, MIB(50));
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
	ck_assert_uint_eq(world_action(&w, 2)->reason.root, 10);
}
END_TEST

START_TEST(what_a_group_needs_no_more_goes_on_for_the_group_above_it)
{
	struct memcg_knobs max = none;

	over_its_max(MIB(4000));
	world_add(&w, 6, 9, MIB(400), MIB(50), &none);
	world_state(&w, 6, ENGINE_VM_NO_DEVICE);
	max.max = MIB(550);
	world_knobs(&w, 9, &max);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
	world_vm(&w, 5)->resident -= MIB(50);
	world_vm(&w, 6)->resident += MIB(200); /* what one has less, and 50 over the max above */
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
	ck_assert_ptr_null(world_action(&w, 2));
}
END_TEST

START_TEST(a_job_takes_back_of_its_own_asks_what_brings_more_than_was_thought)
{
	world_open_pool(&w, MIB(4000));
	for (uint64_t id = 2; id <= 3; id++) {
		world_add(&w, id, MEMCG_ROOT_ID, MIB(400), MIB(300), &none);
		world_vm(&w, id)->speed = 0;
		world_reclaim(&w, id, id, id == 2 ? MIB(45) : MIB(90));
	}
	world_vm(&w, 2)->resident = world_vm(&w, 2)->swapped = MIB(150);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(90)); /* half of it is the host's */
	ck_assert_uint_eq(world_view(&w, 3).owed, MIB(90));
	world_vm(&w, 2)->resident = MIB(300);
	world_vm(&w, 2)->swapped = 0;
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(45));
	ck_assert_uint_eq(world_view(&w, 3).owed, MIB(90));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		an_operators_reclaim_brings_what_it_was_asked_for,
		a_job_ends_short_when_nobody_can_give_more,
		a_job_that_nobody_can_serve_ends_at_once,
		a_cancelled_job_ends_its_asks_and_only_its,
		a_job_over_memory_that_is_swapped_out_leaves_no_ask_behind,
		a_job_whose_excess_is_all_asked_by_another_counts_on_it_and_asks_nobody_else,
		what_waits_for_its_pace_in_one_jobs_name_is_not_asked_of_others_for_another,
		a_group_over_its_max_a_job_and_the_pool_share_one_excess,
		what_the_pool_needs_no_more_goes_on_for_a_job_without_a_word_to_the_vm,
		what_came_stays_given_when_its_job_ends_before_actual_shows_it,
		who_lets_go_of_an_excess_does_so_before_another_turns_to_everybody,
		a_page_that_is_lost_in_rounding_is_no_reason_to_ask_anybody_else,
		what_a_group_needs_no_more_ends_where_others_give_all_that_the_pool_lacks,
		what_a_group_needs_no_more_goes_on_for_the_group_above_it,
		a_job_takes_back_of_its_own_asks_what_brings_more_than_was_thought,
	};
	Suite *s = suite_create("engine_jobs");
	TCase *t = tcase_create("engine jobs");

	tcase_add_checked_fixture(t, NULL, teardown);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(t, tests[i]);
	tcase_add_loop_test(
		t, equals_give_within_a_granule_for_each_root_while_four_jobs_are_in_flight, 0, 2);
	suite_add_tcase(s, t);
	return suite_run(s);
}
