/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine over a small world: an operator's reclaim. */
#include <config.h>

#include "policy/engine.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

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

int main(void)
{
	const TTest *const tests[] = {
		an_operators_reclaim_brings_what_it_was_asked_for,
		a_job_ends_short_when_nobody_can_give_more,
		a_job_that_nobody_can_serve_ends_at_once,
		a_cancelled_job_ends_its_asks_and_only_its,
		a_job_over_memory_that_is_swapped_out_leaves_no_ask_behind,
	};
	Suite *s = suite_create("engine_jobs");
	TCase *t = tcase_create("engine jobs");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, NULL, teardown);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(t, tests[i]);
	suite_add_tcase(s, t);
	srunner_set_tap(sr, "-");
	srunner_run_all(sr, CK_SILENT);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
