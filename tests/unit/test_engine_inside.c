/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine over a small world: a guest with an agent and free page reporting is asked inside, and
 * its balloon is left as it is; what does not come so, and who refills, is the balloon's.
 */
#include <config.h>

#include "policy/engine.h"

#include <check.h>
#include <errno.h>

#include "tests/unit/suite.h"
#include "tests/unit/world.h"

static struct world w;

/* 1000 MiB, low 50, high 80. 2, over its soft limit, reports; 3 is under its own and grows. */
static void squeeze(void)
{
	world_three_guests(&w, MIB(400), MIB(495), MIB(60));
	world_reports(&w, 2);
	world_ticks(&w, 30);
}

static void setup(void)
{
	world_three_guests(&w, MIB(400), MIB(400), MIB(60));
	world_reports(&w, 2);
}

static void teardown(void)
{
	world_close(&w);
}

static void grow(uint64_t mib)
{
	world_vm(&w, 3)->resident += MIB(mib);
}

static void result(uint64_t id, int error)
{
	const struct engine_action *a = world_action(&w, id);

	ck_assert_ptr_nonnull(a);
	w.results[w.nr_results++] =
		(struct engine_result){ .id = id, .seq = a->seq, .error = error };
}

/* So that one is asked, and its agent does nothing yet. */
static void asked_and_idle(void)
{
	world_vm(&w, 2)->frees_nothing = true;
	world_tick(&w);
	grow(100);
	world_tick(&w);
	ck_assert(world_action(&w, 2)->reason.inside);
}

START_TEST(guest_that_reports_is_asked_inside_and_its_balloon_is_left_alone)
{
	const struct engine_action *a;

	world_tick(&w);
	grow(100);
	world_tick(&w);
	a = world_action(&w, 2);
	ck_assert_ptr_nonnull(a);
	ck_assert(a->reason.inside);
	ck_assert_int_eq(a->reason.type, ENGINE_CUT);
	ck_assert_uint_eq(a->reason.from, MIB(400));
	ck_assert_uint_eq(a->reason.to, MIB(400) - a->reason.share);
	ck_assert_uint_eq(a->target, a->reason.to);
	world_ticks(&w, 40);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(50));
	ck_assert_uint_ge(world_count(&w, ENGINE_EVENT_ASK_CAME), 1);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_uint_eq(world_view(&w, 2).target, 0);
	ck_assert(!world_view(&w, 2).capped);
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
}
END_TEST

START_TEST(more_that_is_needed_is_told_as_more_and_not_anew)
{
	uint64_t told;

	world_tick(&w);
	world_vm(&w, 2)->speed = 1; /* nothing comes meanwhile that counts */
	grow(95);
	world_tick(&w);
	told = world_vm(&w, 2)->freeing;
	ck_assert_uint_gt(told, 0);
	world_vm(&w, 4)->resident += MIB(100);
	world_tick(&w);
	ck_assert(world_action(&w, 2)->reason.inside);
	ck_assert_uint_eq(world_action(&w, 2)->reason.from, MIB(400) - told);
	ck_assert_uint_eq(world_vm(&w, 2)->freeing + 1, MIB(400) - world_action(&w, 2)->target);
}
END_TEST

START_TEST(what_its_agent_does_not_free_in_time_its_balloon_takes)
{
	asked_and_idle();
	world_ticks(&w, 200);
	ck_assert_uint_ge(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
	ck_assert_uint_gt(world_vm(&w, 2)->commands, 0);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(50));
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
}
END_TEST

START_TEST(agent_that_fails_costs_no_time_and_the_guest_is_not_held)
{
	asked_and_idle();
	result(2, -ENODATA);
	world_tick(&w);
	ck_assert_ptr_nonnull(world_action(&w, 2));
	ck_assert(!world_action(&w, 2)->reason.inside);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CUT);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_NONE);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
}
END_TEST

START_TEST(it_is_asked_inside_again_after_a_hold_time_that_doubles)
{
	const uint64_t holds[] = { 10, 20, 40 };
	unsigned int job = 1;

	asked_and_idle();
	world_vm(&w, 2)->speed = 0; /* its balloon does not move, so it is never capped */
	for (unsigned int i = 0; i < 3; i++) {
		result(2, -EIO);
		w.pool.size = MIB(2000); /* nobody else asks for anything */
		world_ticks(&w, (unsigned int)(holds[i] * 10 - 10));
		world_reclaim(&w, job, 2, MIB(4));
		world_tick(&w);
		ck_assert_ptr_nonnull(world_action(&w, 2));
		ck_assert(!world_action(&w, 2)->reason.inside);
		world_cancel_job(&w, job++);
		world_ticks(&w, 20);
		world_reclaim(&w, job++, 2, MIB(4));
		world_tick(&w);
		ck_assert_ptr_nonnull(world_action(&w, 2));
		ck_assert(world_action(&w, 2)->reason.inside);
	}
}
END_TEST

START_TEST(it_is_asked_inside_again_with_the_tick_at_which_the_hold_time_is_over)
{
	asked_and_idle();
	world_vm(&w, 2)->speed = 0;
	result(2, -EIO);
	w.pool.size = MIB(2000);
	world_ticks(&w, 100);
	world_reclaim(&w, 7, 2, MIB(4));
	world_tick(&w); /* 10 s after that one */
	ck_assert(world_action(&w, 2)->reason.inside);
}
END_TEST

START_TEST(connection_that_is_lost_is_nobodys_failure)
{
	asked_and_idle();
	result(2, -ENOTCONN);
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
	ck_assert(world_action(&w, 2)->reason.inside);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

START_TEST(need_that_is_over_ends_what_was_asked_inside)
{
	asked_and_idle();
	w.pool.size = MIB(2000);
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
	ck_assert(world_action(&w, 2)->reason.inside);
	ck_assert_uint_ge(world_action(&w, 2)->reason.to, world_action(&w, 2)->reason.from);
	ck_assert_uint_eq(world_vm(&w, 2)->freeing, 0);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
}
END_TEST

START_TEST(guest_that_needs_more_of_it_meanwhile_is_asked_for_less)
{
	asked_and_idle();
	world_vm(&w, 2)->anon = MIB(380);
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
	ck_assert(world_action(&w, 2)->reason.inside);
	ck_assert_uint_eq(world_action(&w, 2)->reason.to, MIB(380));
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(20));
	ck_assert_uint_eq(world_vm(&w, 2)->freeing, MIB(20));
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

START_TEST(lane_that_hangs_ends_it_and_nothing_counts_as_hung)
{
	struct engine_pool_view pool;

	asked_and_idle();
	world_state(&w, 2, ENGINE_VM_NOT_ANSWERING);
	world_tick(&w);
	engine_pool_view(w.engine, &pool);
	ck_assert_uint_eq(pool.hung, 0);
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
	ck_assert_uint_eq(world_vm(&w, 2)->freeing, 0);
}
END_TEST

/* Takes back what it gave, as soon as it gave it. */
static void refill(uint64_t id, uint64_t refaults)
{
	struct world_vm *vm = world_vm(&w, id);

	vm->refaults = refaults;
	for (unsigned int i = 0; i < 60; i++) {
		vm->resident = vm->cache = vm->lists.inactive_file = MIB(400);
		world_ticks(&w, 1);
		if (vm->commands)
			return;
		world_ticks(&w, 9);
	}
}

START_TEST(guest_that_refills_at_once_is_capped_by_its_balloon)
{
	world_tick(&w);
	grow(100);
	refill(2, 0);
	ck_assert_uint_gt(world_vm(&w, 2)->told, 0);
	ck_assert_uint_gt(world_vm(&w, 2)->commands, 0);
	world_ticks(&w, 50);
	ck_assert(world_view(&w, 2).capped);
}
END_TEST

/* 2 in excess; else 4, which has no limit. */
START_TEST(refaults_spare_a_guest_that_its_balloon_only_where_it_is_not_in_excess)
{
	uint64_t id = _i ? 4 : 2;

	if (_i) {
		struct memcg_knobs high = soft(MIB(500));

		world_knobs(&w, 2, &high);
		world_reports(&w, 4);
		world_vm(&w, 4)->resident = world_vm(&w, 4)->cache = MIB(150);
	}
	world_tick(&w);
	grow(80);
	for (unsigned int i = 0; i < 30; i++) {
		world_ticks(&w, 10);
		world_vm(&w, id)->refaults = world_vm(&w, id)->told ? MIB(5) : 0;
		world_vm(&w, id)->resident = world_vm(&w, id)->cache =
			world_vm(&w, id)->lists.inactive_file = _i ? MIB(150) : MIB(400);
	}
	ck_assert_uint_gt(world_vm(&w, id)->told, 0);
	if (_i)
		ck_assert_uint_eq(world_vm(&w, id)->commands, 0);
	else
		ck_assert_uint_gt(world_vm(&w, id)->commands, 0);
}
END_TEST

START_TEST(guest_that_is_capped_already_is_asked_by_its_balloon)
{
	struct memcg_knobs s = soft(MIB(100));

	world_close(&w);
	world_open_pool(&w, MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(400), &s);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(600), MIB(500), &none);
	world_reports(&w, 2);
	world_vm(&w, 2)->anon = 0;
	world_ticks(&w, 80);
	ck_assert(world_view(&w, 2).capped);
	grow(80);
	world_tick(&w);
	ck_assert_ptr_nonnull(world_action(&w, 2));
	ck_assert(!world_action(&w, 2)->reason.inside);
}
END_TEST

/* 2 was cut by an earlier run, reports, and rests with the tick that comes. */
static void rests_capped(void)
{
	world_close(&w);
	world_open_pool(&w, MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(600), MIB(590), &none);
	world_vm(&w, 3)->anon = MIB(590);
	world_vm(&w, 2)->anon = 0;
	world_reports(&w, 2);
	world_ticks(&w, 30);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}

START_TEST(way_back_is_not_lost_to_what_its_agent_is_asked_in_the_same_tick)
{
	rests_capped();
	world_vm(&w, 2)->need = MIB(100); /* fed for its agent's word, and a job wants some of it */
	world_reclaim(&w, 7, 2, MIB(50));
	world_tick(&w);
	ck_assert_ptr_nonnull(world_action(&w, 2));
	ck_assert(!world_action(&w, 2)->reason.inside);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_FEED);
	world_tick(&w); /* it is set */
	ck_assert_uint_eq(world_vm(&w, 2)->actual, MIB(500));
	ck_assert(world_action(&w, 2)->reason.inside);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
}
END_TEST

START_TEST(agent_is_asked_once_it_is_known_what_became_of_a_way_back)
{
	rests_capped();
	world_vm(&w, 2)->delay = 1000; /* its call is out */
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_LOOSEN);
	result(2, _i ? -EIO : 0);
	w.nr_results = 0; /* that comes later */
	world_reclaim(&w, 7, 2, MIB(50));
	world_ticks(&w, 5);
	ck_assert_uint_eq(world_vm(&w, 2)->told, 0);
	w.nr_results = 1;
	world_tick(&w);
	ck_assert(world_action(&w, 2)->reason.inside == !_i);
	ck_assert(world_view(&w, 2).capped == _i);
	if (!_i)
		return;
	/* Refused, it is given again: what it was cut is not forgotten. */
	world_cancel_job(&w, 7);
	world_vm(&w, 2)->delay = 0;
	world_vm(&w, 3)->resident = MIB(100);
	world_ticks(&w, 250);
	ck_assert_uint_eq(world_vm(&w, 2)->actual, MIB(500));
}
END_TEST

/* It was never called, and nobody says so: as where the daemon only observed meanwhile. */
START_TEST(answer_that_never_comes_is_not_waited_for_longer_than_an_ask)
{
	rests_capped();
	world_vm(&w, 2)->delay = 1000;
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_LOOSEN);
	world_reclaim(&w, 7, 2, MIB(50));
	world_ticks(&w, 49);
	ck_assert_uint_eq(world_vm(&w, 2)->told, 0);
	world_tick(&w);
	ck_assert_uint_eq(world_vm(&w, 2)->told, 1);
}
END_TEST

START_TEST(slow_agent_that_frees_is_waited_for)
{
	world_vm(&w, 2)->speed = MIB(1) / 2;
	world_tick(&w);
	grow(100);
	world_ticks(&w, 400);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(50));
}
END_TEST

START_TEST(squeeze_that_was_there_from_the_start_ends_the_same_way)
{
	world_close(&w);
	squeeze();
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_uint_gt(world_vm(&w, 2)->told, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("engine_inside");
	TCase *tc = tcase_create("inside");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, guest_that_reports_is_asked_inside_and_its_balloon_is_left_alone);
	tcase_add_test(tc, more_that_is_needed_is_told_as_more_and_not_anew);
	tcase_add_test(tc, what_its_agent_does_not_free_in_time_its_balloon_takes);
	tcase_add_test(tc, agent_that_fails_costs_no_time_and_the_guest_is_not_held);
	tcase_add_test(tc, it_is_asked_inside_again_after_a_hold_time_that_doubles);
	tcase_add_test(tc, it_is_asked_inside_again_with_the_tick_at_which_the_hold_time_is_over);
	tcase_add_test(tc, connection_that_is_lost_is_nobodys_failure);
	tcase_add_test(tc, need_that_is_over_ends_what_was_asked_inside);
	tcase_add_test(tc, guest_that_needs_more_of_it_meanwhile_is_asked_for_less);
	tcase_add_test(tc, lane_that_hangs_ends_it_and_nothing_counts_as_hung);
	tcase_add_test(tc, guest_that_refills_at_once_is_capped_by_its_balloon);
	tcase_add_loop_test(
		tc, refaults_spare_a_guest_that_its_balloon_only_where_it_is_not_in_excess, 0, 2);
	tcase_add_test(tc, guest_that_is_capped_already_is_asked_by_its_balloon);
	tcase_add_test(tc, way_back_is_not_lost_to_what_its_agent_is_asked_in_the_same_tick);
	tcase_add_loop_test(tc, agent_is_asked_once_it_is_known_what_became_of_a_way_back, 0, 2);
	tcase_add_test(tc, answer_that_never_comes_is_not_waited_for_longer_than_an_ask);
	tcase_add_test(tc, slow_agent_that_frees_is_waited_for);
	tcase_add_test(tc, squeeze_that_was_there_from_the_start_ends_the_same_way);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
