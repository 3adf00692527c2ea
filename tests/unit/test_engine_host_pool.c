/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine over a small world: the host's own memory as the pool, and a pool that is not known.
 */
#include <config.h>

#include "policy/engine.h"

#include <check.h>

#include "tests/unit/suite.h"
#include "tests/unit/world.h"

static struct world w;

static void teardown(void)
{
	world_close(&w);
}

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

START_TEST(growth_of_another_shows_what_came_to_a_host_pool)
{
	struct memcg_knobs zero = soft(0);
	uint64_t grown = 0;

	/* What A gives B takes at once: MemAvailable never rises, and A is asked on all the same.
	 */
	world_open_pool(&w, MIB(8000));
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

START_TEST(with_a_host_pool_what_came_is_under_way_until_memavailable_shows_it)
{
	struct memcg_knobs zero = soft(0);
	struct world_vm *vm;

	world_open_pool(&w, MIB(1000));
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

	world_open_pool(&w, MIB(1000));
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

	world_open_pool(&w, MIB(1000));
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

	world_open_pool(&w, MIB(1000));
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
	world_open_pool(&w, MIB(1000));
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

/* BR-80: nothing available, no swap; free is signed, and the need is wm_high and what is missing.
 */
START_TEST(need_of_a_host_with_nothing_left_counts_the_reserve_that_is_gone)
{
	struct engine_pool_view p;

	world_open_pool(&w, MIB(16384));
	w.pool = (struct engine_pool){
		.known = true, .host = true, .size = MIB(16384), .reserve = MIB(2048)
	};
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(8192), MIB(8192), &none);
	world_vm(&w, 2)->speed = 0;
	world_ticks(&w, 3);
	engine_pool_view(w.engine, &p);
	ck_assert_int_eq(p.free, -(int64_t)MIB(2048));
	ck_assert_uint_eq(p.need, MIB(2048) + p.wm_high);
	ck_assert_uint_eq(p.wm_high, (MIB(16384) * 80 + 999) / 1000);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_BELOW_MIN), 1);
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_BELOW_MIN), 1);
	/* Whatever is missing: not below the floor. */
	ck_assert_uint_ge(world_vm(&w, 2)->target, MIB(8192) / 10);
}
END_TEST

/* Whatever an agent tells is another attribute each time: that is no reason to measure anew. */
START_TEST(growth_is_measured_though_an_agents_floor_is_another_in_each_report)
{
	struct engine_change report = { .type = ENGINE_VM_ATTRS,
		.id = 2,
		.attrs = { .maximum = MIB(500), .act = true, .agent = true } };
	struct engine_pool_view pool;

	world_open_pool(&w, MIB(4000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(100), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(3000), MIB(100), &none);
	for (unsigned int i = 0; i < 30; i++) {
		report.attrs.agent_floor = MIB(50) + i;
		world_change(&w, &report);
		world_state(&w, 2, i % 2 ? ENGINE_VM_RUNNING : ENGINE_VM_LIMITED);
		world_vm(&w, 3)->resident += MIB(20);
		world_tick(&w);
	}
	engine_pool_view(w.engine, &pool);
	ck_assert_uint_ge(pool.growth, MIB(190));
}
END_TEST

START_TEST(vm_that_comes_goes_or_is_of_another_size_is_no_growth)
{
	struct engine_change change = {
		.type = ENGINE_VM_ATTRS, .id = 2, .attrs = { .maximum = MIB(500), .act = true }
	};
	struct engine_pool_view pool;

	world_open_pool(&w, MIB(40000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(100), &none);
	world_vm(&w, 2)->no_process = true; /* it counts in full */
	for (unsigned int i = 0; i < 30; i++) {
		if (_i == 0)
			world_add(&w, 10 + i, MEMCG_ROOT_ID, MIB(100), MIB(100), &none);
		change.attrs.maximum += MIB(100);
		world_vm(&w, 2)->actual = world_vm(&w, 2)->target = change.attrs.maximum;
		if (_i == 1)
			world_change(&w, &change);
		if (_i == 2)
			world_state(&w, 2, i % 2 ? ENGINE_VM_ARRIVING : ENGINE_VM_RUNNING);
		world_tick(&w);
	}
	engine_pool_view(w.engine, &pool);
	ck_assert_uint_eq(pool.growth, 0);
}
END_TEST

START_TEST(pool_that_is_not_known_is_not_below_its_minimum_and_nothing_of_it_is_free)
{
	struct engine_pool_view pool;

	world_open_pool(&w, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(1000), MIB(990), &none);
	world_vm(&w, 2)->speed = 0;
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_BELOW_MIN), 1);
	w.pool.known = false;
	world_tick(&w);
	engine_pool_view(w.engine, &pool);
	ck_assert(!pool.known);
	ck_assert_int_eq(pool.free, 0);
	ck_assert_uint_eq(pool.wm_min, 0);
	w.pool.known = true;
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_BELOW_MIN), 2);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		growth_is_measured_though_an_agents_floor_is_another_in_each_report,
		pool_that_is_not_known_is_not_below_its_minimum_and_nothing_of_it_is_free,
		nothing_more_is_told_for_a_pool_that_is_not_known,
		growth_of_another_shows_what_came_to_a_host_pool,
		with_a_host_pool_what_came_is_under_way_until_memavailable_shows_it,
		with_a_host_pool_what_memavailable_never_shows_is_asked_after_a_deadline,
		with_a_host_pool_what_memavailable_shows_first_is_not_counted_twice,
		with_a_host_pool_what_no_sample_shows_was_not_what_was_asked_for,
		the_pools_free_memory_is_the_smaller_of_two_figures_less_the_reserve,
		need_of_a_host_with_nothing_left_counts_the_reserve_that_is_gone,
	};
	Suite *s = suite_create("engine_host_pool");
	TCase *t = tcase_create("engine host pool");

	tcase_add_checked_fixture(t, NULL, teardown);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(t, tests[i]);
	tcase_add_loop_test(t, vm_that_comes_goes_or_is_of_another_size_is_no_growth, 0, 3);
	suite_add_tcase(s, t);
	return suite_run(s);
}
