/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine's input: what it refuses and how, what a failure leaves behind, how VMs count while
 * little is known of them. Linked with calloc and realloc wrapped, so that each can fail.
 */
#include <config.h>

#include "policy/engine.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/suite.h"
#include "tests/unit/world.h"

static struct world w;

/* ---- allocations that fail ---- */

static bool counting;
static size_t allocations, fail_at; /* the fail_at-th fails, counted from 1; 0: none */

static bool fails(void)
{
	return counting && ++allocations == fail_at;
}

void *__real_calloc(size_t nr, size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_calloc(size_t nr, size_t size)
{
	return fails() ? NULL : __real_calloc(nr, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

static void from_now_fail(size_t nth)
{
	allocations = 0;
	fail_at = nth;
	counting = true;
}

/* ---- helpers ---- */

static void setup(void)
{
	struct engine_config config;

	world_config(&config);
	world_open(&w, &config, MIB(1000));
}

static void teardown(void)
{
	counting = false;
	world_close(&w);
}

static int change(const struct engine_change *c)
{
	world_change(&w, c);
	world_tick(&w);
	return w.error;
}

static struct engine_change vm_new(uint64_t id, uint64_t parent, uint64_t maximum)
{
	return (struct engine_change){ .type = ENGINE_VM_NEW,
		.id = id,
		.parent = parent,
		.knobs = none,
		.attrs = { .maximum = maximum, .act = true } };
}

static bool known(uint64_t id)
{
	struct engine_view view;

	return engine_view(w.engine, id, &view) == 0;
}

/* ---- configuration ---- */

START_TEST(a_configuration_that_cannot_work_is_refused_whole)
{
	static const struct engine_level all = { .permille = 1001 }, most = { .permille = 1000 };
	struct engine_config good, bad;
	struct engine *e = NULL;

	engine_config_default(&good);
	ck_assert(!good.act);
#define REFUSED(change)                                                                            \
	do {                                                                                       \
		bad = good;                                                                        \
		change;                                                                            \
		ck_assert_int_eq(engine_new(&bad, &e), -EINVAL);                                   \
		ck_assert_ptr_null(e);                                                             \
		ck_assert_int_eq(engine_set_config(w.engine, &bad), -EINVAL);                      \
	} while (0)
#define TAKEN(change)                                                                              \
	do {                                                                                       \
		bad = good;                                                                        \
		change;                                                                            \
		ck_assert_int_eq(engine_set_config(w.engine, &bad), 0);                            \
	} while (0)
	REFUSED(bad.granule = 0);
	REFUSED(bad.granule = PAGES_UNLIMITED / 1024 + 1);
	TAKEN(bad.granule = PAGES_UNLIMITED / 1024);
	REFUSED(bad.max_step = 0);
	REFUSED(bad.headroom_fraction = 0);
	REFUSED(bad.speed = 0);
	REFUSED(bad.hold_us = 0);
	REFUSED(bad.wm_high = all);
	REFUSED(bad.wm_min = all);
	TAKEN(bad.wm_high = most);
	REFUSED(bad.wm_low.permille = 19);
	TAKEN(bad.wm_low.permille = 20);
	REFUSED(bad.wm_high.permille = 49);
	TAKEN(bad.wm_high.permille = 50);
	REFUSED((bad.wm_high.permille = 0, bad.wm_high.pages = PAGES_UNLIMITED + 1));
	TAKEN((bad.wm_high.permille = 0, bad.wm_high.pages = PAGES_UNLIMITED));
	TAKEN((bad.wm_low.permille = 0, bad.wm_low.pages = 10)); /* of two kinds: raised later */
	REFUSED((bad.wm_min = bad.wm_low = (struct engine_level){ .pages = 10 },
		bad.wm_min.pages = 11));
	TAKEN((bad.wm_min = bad.wm_low = (struct engine_level){ .pages = 10 }));
#undef REFUSED
#undef TAKEN
}
END_TEST

START_TEST(watermarks_of_two_kinds_are_made_to_ascend)
{
	struct engine_pool_view p;
	struct engine_config config;

	world_config(&config);
	config.wm_low = (struct engine_level){ .pages = 10 };
	engine_set_config(w.engine, &config);
	ck_assert_uint_eq(engine_config(w.engine)->wm_low.pages, 10);
	w.pool.size = 1001;
	world_tick(&w);
	engine_pool_view(w.engine, &p);
	ck_assert_uint_eq(p.wm_min, 21); /* 20.02: rounded up */
	ck_assert_uint_eq(p.wm_low, 21);
	ck_assert_uint_eq(p.wm_high, 81);
	config.wm_low = (struct engine_level){ .pages = 500 };
	engine_set_config(w.engine, &config);
	w.pool.size = 1000;
	world_tick(&w);
	engine_pool_view(w.engine, &p);
	ck_assert_uint_eq(p.wm_min, 20);
	ck_assert_uint_eq(p.wm_high, 500);
}
END_TEST

START_TEST(figures_of_a_pool_that_cannot_be_make_it_unknown)
{
	struct engine_pool_view p;
	const struct engine_pool good = { .known = true, .host = true, .size = MIB(1000) };

	w.pool = good;
	world_tick(&w);
	engine_pool_view(w.engine, &p);
	ck_assert(p.known);
	for (int i = 0; i < 4; i++) {
		w.pool = good;
		switch (i) {
		case 0: /* Field case BR-131 */
			w.pool.size = 0;
			break;
		case 1:
			w.pool.size = PAGES_UNLIMITED + 1;
			break;
		case 2:
			w.pool.available = PAGES_UNLIMITED + 1;
			break;
		default:
			w.pool.reserve = PAGES_UNLIMITED + 1;
		}
		world_tick(&w);
		engine_pool_view(w.engine, &p);
		ck_assert(!p.known);
	}
	w.pool = good;
	w.pool.size = w.pool.available = w.pool.reserve = PAGES_UNLIMITED;
	world_tick(&w);
	engine_pool_view(w.engine, &p);
	ck_assert(p.known);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(changes_that_cannot_be_are_refused_and_leave_nothing_behind)
{
	struct engine_change c;

	world_group(&w, 10, MEMCG_ROOT_ID, &none);
	world_add(&w, 2, 10, MIB(100), MIB(50), &none);
	world_tick(&w);
	ck_assert_int_eq(w.error, 0);

	c = vm_new(3, 99, MIB(1));
	ck_assert_int_eq(change(&c), -ENOENT);
	c = vm_new(3, 2, MIB(1)); /* below a VM */
	ck_assert_int_eq(change(&c), -EINVAL);
	c = vm_new(2, 10, MIB(1));
	ck_assert_int_eq(change(&c), -EEXIST);
	c = vm_new(3, 10, 0);
	ck_assert_int_eq(change(&c), -EINVAL);
	c = vm_new(3, 10, PAGES_UNLIMITED + 1);
	ck_assert_int_eq(change(&c), -EINVAL);
	c = vm_new(3, 10, MIB(1));
	c.attrs.ceiling = PAGES_UNLIMITED + 1;
	ck_assert_int_eq(change(&c), -EINVAL);
	c = vm_new(3, 10, MIB(1));
	c.attrs.agent_floor = PAGES_UNLIMITED + 1;
	ck_assert_int_eq(change(&c), -EINVAL);
	c = vm_new(3, 10, MIB(1));
	c.state = ENGINE_VM_STATE_NR;
	ck_assert_int_eq(change(&c), -EINVAL);
	c = vm_new(3, 10, MIB(1));
	c.knobs.min = 2;
	c.knobs.max = 1;
	ck_assert_int_eq(change(&c), -EINVAL);
	ck_assert(!known(3));

	c = (struct engine_change){ .type = ENGINE_GROUP_NEW, .id = 11, .parent = 99 };
	ck_assert_int_eq(change(&c), -ENOENT);
	c.parent = MEMCG_ROOT_ID;
	c.id = 10;
	ck_assert_int_eq(change(&c), -EEXIST);
	c.id = 11;
	c.knobs.min = 2;
	c.knobs.max = 1;
	ck_assert_int_eq(change(&c), -EINVAL);
	ck_assert(!known(11));
	c.knobs = none;
	ck_assert_int_eq(change(&c), 0);
	ck_assert(known(11));

	c = (struct engine_change){ .type = ENGINE_GROUP_KNOBS, .id = 99, .knobs = none };
	ck_assert_int_eq(change(&c), -ENOENT);
	c.id = 2;
	c.knobs.min = 2;
	c.knobs.max = 1;
	ck_assert_int_eq(change(&c), -EINVAL);
	ck_assert_uint_eq(world_view(&w, 2).knobs.max, PAGES_UNLIMITED);

	c = (struct engine_change){ .type = ENGINE_GROUP_GONE, .id = 10 };
	ck_assert_int_eq(change(&c), -EBUSY);
	ck_assert(known(10));
	c.id = 2; /* a VM goes with its own */
	ck_assert_int_eq(change(&c), -EINVAL);
	c.id = MEMCG_ROOT_ID;
	ck_assert_int_eq(change(&c), -EINVAL);
	c = (struct engine_change){ .type = ENGINE_VM_GONE, .id = 10 };
	ck_assert_int_eq(change(&c), -EINVAL);
	c = (struct engine_change){ .type = (enum engine_change_type)99, .id = 2 };
	ck_assert_int_eq(change(&c), -EINVAL);

	c = (struct engine_change){ .type = ENGINE_VM_ATTRS, .id = 2 };
	ck_assert_int_eq(change(&c), -EINVAL);
	ck_assert_uint_eq(world_view(&w, 2).attrs.maximum, MIB(100));
	c = (struct engine_change){ .type = ENGINE_VM_STATE, .id = 2, .state = ENGINE_VM_STATE_NR };
	ck_assert_int_eq(change(&c), -EINVAL);
}
END_TEST

START_TEST(figures_at_the_largest_that_there_is_are_taken)
{
	struct engine_change c = vm_new(3, MEMCG_ROOT_ID, PAGES_UNLIMITED);

	c.attrs.ceiling = c.attrs.agent_floor = PAGES_UNLIMITED;
	ck_assert_int_eq(change(&c), 0);
	ck_assert_uint_eq(world_view(&w, 3).usage, PAGES_UNLIMITED);
	c = (struct engine_change){ .type = ENGINE_VM_GONE, .id = 3 };
	ck_assert_int_eq(change(&c), 0);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(100), 0, &none);
	world_tick(&w);
	world_vm(&w, 2)->cache = PAGES_UNLIMITED;
	world_tick(&w);
	ck_assert_int_eq(w.error, 0);
}
END_TEST

START_TEST(the_root_alone_does_not_go)
{
	struct engine_change c = { .type = ENGINE_GROUP_GONE, .id = MEMCG_ROOT_ID };

	ck_assert_int_eq(change(&c), -EINVAL);
}
END_TEST

START_TEST(the_first_error_is_told_and_all_else_is_done)
{
	struct engine_change c = vm_new(3, 99, MIB(1));

	world_change(&w, &c);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(100), MIB(50), &none);
	world_cancel_job(&w, 5);
	c = vm_new(2, MEMCG_ROOT_ID, MIB(1));
	world_change(&w, &c);
	world_tick(&w);
	ck_assert_int_eq(w.error, -ENOENT);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(50));
}
END_TEST

START_TEST(samples_that_cannot_be_are_refused_and_the_last_one_stands)
{
	struct engine_output out;
	struct vm_sample s = { .id = 99 };
	struct engine_input in = { .samples = &s, .nr_samples = 1 };
	uint64_t *const figures[] = { &s.actual, &s.resident, &s.swapped, &s.overhead,
		&s.stats_actual, &s.unused, &s.usable, &s.disk_caches, &s.lists.active_anon,
		&s.lists.inactive_anon, &s.lists.active_file, &s.lists.inactive_file,
		&s.lists.swap_free };

	ck_assert_int_eq(engine_tick(w.engine, &in, &out), -ENOENT);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(100), MIB(50), &none);
	world_tick(&w);
	s.id = 2;
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		*figures[i] = PAGES_UNLIMITED + 1;
		ck_assert_int_eq(engine_tick(w.engine, &in, &out), -EINVAL);
		*figures[i] = 0;
		ck_assert_uint_eq(world_view(&w, 2).sample.resident, MIB(50));
	}
	ck_assert_uint_eq(world_view(&w, 2).samples, 1);
}
END_TEST

static enum reclaim_hold hold_with(
	uint64_t maximum, uint64_t resident, uint64_t actual, uint64_t min)
{
	struct memcg_knobs knobs = MEMCG_KNOBS_NONE;

	world_close(&w);
	world_open_pool(&w, MIB(900));
	knobs.min = min;
	world_add(&w, 2, MEMCG_ROOT_ID, maximum, resident, &knobs);
	world_vm(&w, 2)->actual = actual;
	world_vm(&w, 2)->speed = 0;
	world_tick(&w);
	return world_view(&w, 2).hold;
}

/* By more than 16 granules, and than an eighth of what it costs: processes' figures are off by
 * less. */
START_TEST(guest_hides_memory_when_it_costs_far_more_than_its_balloon_says)
{
	ck_assert_int_eq(hold_with(MIB(100), MIB(17), MIB(1), 0), RECLAIM_HOLD_SMALL);
	ck_assert_int_eq(hold_with(MIB(100), MIB(17) + 1, MIB(1), 0), RECLAIM_HOLD_ACTUAL);
	ck_assert_int_eq(hold_with(MIB(500), MIB(400), MIB(350), MIB(350)), RECLAIM_HOLD_PROTECTED);
	ck_assert_int_eq(
		hold_with(MIB(500), MIB(400), MIB(350) - 1, MIB(350)), RECLAIM_HOLD_ACTUAL);
}
END_TEST

/* actual is what the guest's driver says: it claims to have given all but 1 MiB, and kept 400. */
START_TEST(guest_that_claims_a_small_actual_counts_with_what_it_costs_and_seems_to_give_nothing)
{
	struct memcg_knobs limit = soft(MIB(100));

	world_close(&w);
	world_open_pool(&w, MIB(900));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(400), &limit);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(500), MIB(450), &limit);
	world_vm(&w, 2)->actual = MIB(1);
	world_vm(&w, 2)->speed = 0;
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(400));
	ck_assert_uint_eq(world_view(&w, 2).excess, MIB(300));
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_ACTUAL);
	world_vm(&w, 3)->resident = MIB(490);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_uint_gt(world_vm(&w, 3)->commands, 0);
	world_vm(&w, 2)->actual = MIB(400); /* and tells the truth again */
	world_tick(&w);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_NONE);
}
END_TEST

START_TEST(guest_that_only_pretends_to_give_has_failed_and_another_is_asked)
{
	struct memcg_knobs limit = soft(MIB(100)), other = soft(MIB(300));

	world_close(&w);
	world_open_pool(&w, MIB(900));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(400), &limit);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(500), MIB(450), &other);
	world_vm(&w, 2)->pretends = true;
	world_tick(&w);
	world_vm(&w, 3)->resident = MIB(490);
	world_ticks(&w, 600);
	ck_assert_uint_ge(world_view(&w, 2).failures, 1);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_CAME), world_view(&w, 3).asks);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(400));
	ck_assert_uint_lt(world_vm(&w, 3)->resident, MIB(490));
}
END_TEST

START_TEST(more_than_the_tree_can_count_is_refused_and_counts_as_before)
{
	struct engine_change c = vm_new(3, MEMCG_ROOT_ID, PAGES_UNLIMITED);

	world_add(&w, 2, MEMCG_ROOT_ID, MIB(100), MIB(50), &none);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(100), MIB(50), &none);
	world_vm(&w, 2)->no_process = true;
	world_tick(&w);
	ck_assert_int_eq(change(&c), -EINVAL); /* counts in full until it is seen */
	ck_assert(!known(3));
	world_vm(&w, 2)->actual = PAGES_UNLIMITED;
	world_vm(&w, 2)->overhead = MIB(1);
	world_tick(&w);
	ck_assert_int_eq(w.error, -EINVAL);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(100));
	ck_assert_uint_eq(world_view(&w, 2).set.actual, MIB(100));
	ck_assert_uint_eq(world_view(&w, 2).sample.overhead, 0);
	c = (struct engine_change){ .type = ENGINE_VM_NEW,
		.id = 5,
		.parent = MEMCG_ROOT_ID,
		.knobs = none,
		.attrs = { .maximum = MIB(1) } };
	ck_assert_int_eq(change(&c), -EINVAL); /* the sample, again; the VM is there */
	c.type = ENGINE_VM_ATTRS;	       /* unseen: it counts with its maximum */
	c.attrs.maximum = PAGES_UNLIMITED;
	world_vm(&w, 2)->actual = MIB(50);
	ck_assert_int_eq(change(&c), -EINVAL);
	ck_assert_uint_eq(world_view(&w, 5).attrs.maximum, MIB(1));
}
END_TEST

START_TEST(requests_that_cannot_be_are_refused)
{
	static const struct engine_request bad[] = {
		{ .type = ENGINE_RECLAIM, .job = 0, .root = 1, .pages = 1 },
		{ .type = ENGINE_RECLAIM, .job = 2, .root = 1, .pages = 0 },
		{ .type = ENGINE_RECLAIM, .job = 2, .root = 1, .pages = PAGES_UNLIMITED + 1 },
		{ .type = ENGINE_RECLAIM, .job = 2, .root = 99, .pages = 1 },
		{ .type = ENGINE_RECLAIM, .job = 7, .root = 1, .pages = 1 },
		{ .type = ENGINE_RECLAIM_CANCEL, .job = 2 },
	};
	static const int errors[] = { -EINVAL, -EINVAL, -EINVAL, -ENOENT, -EEXIST, -ENOENT };

	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(300), &none);
	world_vm(&w, 2)->speed = 0;
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(10));
	world_tick(&w);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		w.requests[w.nr_requests++] = bad[i];
		world_tick(&w);
		ck_assert_int_eq(w.error, errors[i]);
	}
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(10));
	world_cancel_job(&w, 7);
	world_reclaim(&w, 8, MEMCG_ROOT_ID, PAGES_UNLIMITED);
	world_tick(&w);
	ck_assert_int_eq(w.error, 0);
}
END_TEST

/* ---- coming and going ---- */

START_TEST(a_vm_counts_in_full_until_it_is_seen_and_then_as_it_was_last_seen)
{
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(100), &none);
	world_vm(&w, 2)->no_process = true;
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(300);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(300));
	world_vm(&w, 2)->no_process = false;
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(100));
	world_vm(&w, 2)->no_process = true;
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(100));
	world_state(&w, 2, ENGINE_VM_ARRIVING);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(300));
}
END_TEST

START_TEST(a_vm_that_goes_takes_its_memory_asks_and_overhead_along)
{
	struct engine_pool_view p;

	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(480), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(500), MIB(480), &none);
	world_vm(&w, 2)->overhead = MIB(7);
	world_vm(&w, 2)->speed = 0;
	world_ticks(&w, 2);
	ck_assert_uint_gt(world_view(&w, 2).owed, 0);
	world_vm(&w, 2)->gone = true;
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = 2 });
	world_tick(&w);
	ck_assert_int_eq(w.error, 0);
	ck_assert(!known(2));
	engine_pool_view(w.engine, &p);
	ck_assert_uint_eq(p.used, world_view(&w, 3).usage);
	ck_assert_uint_eq(p.overhead, 0);
	ck_assert_uint_eq(p.owed, 0); /* there is plenty */
	ck_assert_uint_eq(engine_reasons(w.engine, 2, NULL, 0), 0);
}
END_TEST

START_TEST(nothing_is_told_to_a_vm_that_goes_in_the_same_tick)
{
	struct engine_change c;

	for (uint64_t id = 2; id < 18; id++) /* all that there is room for at first */
		world_add(&w, id, MEMCG_ROOT_ID, MIB(100), MIB(60), &none);
	for (uint64_t id = 2; id < 18; id++)
		world_vm(&w, id)->speed = 0;
	world_ticks(&w, 2);
	ck_assert_uint_gt(world_view(&w, MEMCG_ROOT_ID).owed, 0);
	for (uint64_t id = 2; id < 18; id++) {
		world_change(&w, &(struct engine_change){ .type = ENGINE_VM_CANCEL, .id = id });
		if (id == 10)
			continue;
		world_vm(&w, id)->gone = true;
		world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = id });
	}
	for (uint64_t id = 20; id < 34; id++) {
		c = vm_new(id, MEMCG_ROOT_ID, MIB(100));
		world_change(&w, &c);
	}
	world_tick(&w);
	for (size_t i = 0; i < w.out.nr_actions; i++)
		ck_assert_uint_eq(w.out.actions[i].id, 10);
	ck_assert_uint_eq(w.out.nr_actions, 1);
}
END_TEST

START_TEST(a_group_that_goes_ends_the_jobs_on_it_and_its_id_comes_free)
{
	struct memcg_knobs max = none;

	max.max = MIB(10);
	for (uint64_t id = 100; id < 140; id++)
		world_group(&w, id, MEMCG_ROOT_ID, &max);
	world_reclaim(&w, 7, 100, MIB(1));
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_NEW,
				 .id = 2,
				 .parent = 100,
				 .knobs = none,
				 .attrs = { .maximum = MIB(50), .act = true },
				 .state = ENGINE_VM_NO_DEVICE });
	world_tick(&w);
	ck_assert_int_eq(w.error, 0);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_SHORT), 1);
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = 2 });
	world_tick(&w);
	world_add(&w, 3, 101, MIB(100), MIB(50), &none);
	world_vm(&w, 3)->speed = 0;
	world_reclaim(&w, 8, 3, MIB(20));
	world_reclaim(&w, 9, 101, MIB(20));
	world_tick(&w);
	for (uint64_t id = 100; id < 140; id++)
		if (id != 101)
			world_change(
				&w, &(struct engine_change){ .type = ENGINE_GROUP_GONE, .id = id });
	world_vm(&w, 3)->gone = true;
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = 3 });
	world_change(&w, &(struct engine_change){ .type = ENGINE_GROUP_GONE, .id = 101 });
	world_reclaim(&w, 10, 101, MIB(20));
	world_tick(&w);
	ck_assert_int_eq(w.error, -ENOENT); /* the request's */
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_CANCELLED), 2);
	for (uint64_t id = 100; id < 140; id++)
		world_group(&w, id, MEMCG_ROOT_ID, &max);
	world_tick(&w);
	ck_assert_int_eq(w.error, 0);
}
END_TEST

START_TEST(a_group_that_goes_leaves_the_jobs_on_others_alone)
{
	world_group(&w, 10, MEMCG_ROOT_ID, &none);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(100), MIB(50), &none);
	world_vm(&w, 2)->speed = 0;
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(20));
	world_tick(&w);
	world_change(&w, &(struct engine_change){ .type = ENGINE_GROUP_GONE, .id = 10 });
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_CANCELLED), 0);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(20));
}
END_TEST

START_TEST(a_vm_below_a_group_that_is_going_is_refused)
{
	struct engine_change c = vm_new(2, 10, MIB(10));

	world_group(&w, 10, MEMCG_ROOT_ID, &none);
	world_tick(&w);
	world_change(&w, &(struct engine_change){ .type = ENGINE_GROUP_GONE, .id = 10 });
	world_change(&w, &(struct engine_change){ .type = ENGINE_GROUP_KNOBS, .id = 10 });
	ck_assert_int_eq(change(&c), -ENOENT); /* the knobs' */
	world_group(&w, 10, MEMCG_ROOT_ID, &none);
	world_tick(&w);
	world_change(&w, &(struct engine_change){ .type = ENGINE_GROUP_GONE, .id = 10 });
	ck_assert_int_eq(change(&c), -ENODEV);
	ck_assert(!known(2));
}
END_TEST

START_TEST(many_vms_find_room)
{
	struct memcg_knobs zero = none;

	zero.soft_limit = 0;
	for (uint64_t id = 2; id < 52; id++)
		world_add(&w, id, MEMCG_ROOT_ID, MIB(40), MIB(20), &zero);
	world_tick(&w);
	ck_assert_int_eq(w.error, 0);
	ck_assert_uint_ge(w.out.nr_actions, 45); /* 80 granules of 50 */
}
END_TEST

START_TEST(events_beyond_the_bound_are_dropped)
{
	static struct engine_request requests[1100];
	struct engine_input in = { .requests = requests, .nr_requests = 1100 };
	struct engine_output out;

	for (size_t i = 0; i < 1100; i++)
		requests[i] = (struct engine_request){
			.type = ENGINE_RECLAIM, .job = i + 1, .root = MEMCG_ROOT_ID, .pages = MIB(1)
		};
	ck_assert_int_eq(engine_tick(w.engine, &in, &out), 0);
	ck_assert_uint_eq(out.nr_events, 1024);
}
END_TEST

/* ---- time, views ---- */

START_TEST(time_stands_still_rather_than_going_back)
{
	struct engine_input in = { .now = 5 };
	struct engine_output out;
	struct engine_reason r;

	world_add(&w, 2, MEMCG_ROOT_ID, MIB(990), MIB(980), &none);
	world_tick(&w);
	in.now = 5;
	ck_assert_int_eq(engine_tick(w.engine, &in, &out), 0);
	ck_assert_uint_eq(engine_reasons(w.engine, 2, &r, 1), 1);
	ck_assert_uint_eq(r.at, w.now);
	ck_assert_uint_gt(out.next, w.now);
}
END_TEST

START_TEST(a_tick_that_expects_nothing_comes_only_on_input)
{
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(100), MIB(50), &none);
	world_tick(&w);
	ck_assert_uint_eq(w.out.next, w.now + 3 * SECOND_US); /* its actual has to rest */
	world_ticks(&w, 40);
	ck_assert_uint_eq(w.out.next, UINT64_MAX);
}
END_TEST

START_TEST(plans_and_views_of_what_is_not_there_say_so)
{
	struct reclaim_plan plan;
	struct engine_view view;
	struct engine *e;
	struct engine_config config;

	world_config(&config);
	ck_assert_int_eq(engine_new(&config, &e), 0);
	ck_assert_int_eq(engine_plan(e, MEMCG_ROOT_ID, 1, &plan), -ENODATA);
	ck_assert_int_eq(engine_plan(e, 99, 1, &plan), -ENOENT);
	engine_free(e);
	engine_free(NULL);
	world_group(&w, 10, MEMCG_ROOT_ID, &none);
	world_tick(&w);
	ck_assert_int_eq(engine_view(w.engine, 99, &view), -ENOENT);
	ck_assert_int_eq(engine_view(w.engine, 10, &view), 0);
	ck_assert_uint_eq(view.parent, MEMCG_ROOT_ID);
	ck_assert_uint_eq(world_view(&w, MEMCG_ROOT_ID).parent, 0);
	ck_assert_uint_eq(engine_reasons(w.engine, 99, NULL, 3), 0);
	/* A group in use by somebody else stays until it is let go, offline. */
	css_get(&memcg_find(engine_tree(w.engine), 10)->css);
	world_change(&w, &(struct engine_change){ .type = ENGINE_GROUP_GONE, .id = 10 });
	world_tick(&w);
	ck_assert_int_eq(engine_view(w.engine, 10, &view), -ENOENT);
	ck_assert_int_eq(engine_plan(w.engine, 10, 1, &plan), -ENOENT);
	css_put(&memcg_find(engine_tree(w.engine), 10)->css);
}
END_TEST

START_TEST(a_view_says_whose_excess_it_is_and_what_holds)
{
	struct memcg_knobs over = none, zero = none;

	over.soft_limit = MIB(20);
	zero.soft_limit = MIB(10);
	w.pool.size = MIB(2000);
	world_group(&w, 10, MEMCG_ROOT_ID, &over);
	world_group(&w, 11, 10, &none);
	world_add(&w, 2, 11, MIB(400), MIB(41) - 1, &zero);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).excess, MIB(31) - 1);
	ck_assert_uint_eq(world_view(&w, 2).excess_via, 10);
	ck_assert_uint_eq(world_view(&w, 11).excess_via, 10);
	ck_assert_uint_eq(world_view(&w, 10).excess_via, 0);
	/* less than a granule above its floor of 40 */
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_PROTECTED);
	world_vm(&w, 2)->resident += 1;
	world_tick(&w);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_NONE);
}
END_TEST

START_TEST(the_last_reasons_are_remembered_newest_first)
{
	struct engine_reason r[16];
	size_t nr;

	w.pool.size = MIB(500);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(2000), MIB(490), &none);
	w.changes[0].attrs.ceiling = MIB(2000);
	world_vm(&w, 2)->speed = MIB(40);
	w.pool.known = false;
	world_tick(&w);
	ck_assert_uint_eq(engine_reasons(w.engine, 2, r, 16), 0);
	w.pool.known = true;
	for (int i = 0; i < 20; i++) {
		w.pool.size = MIB(i % 2 ? 500 : 5000);
		world_ticks(&w, 20);
		if (i == 1) {
			nr = engine_reasons(w.engine, 2, r, 16);
			ck_assert_uint_gt(nr, 0);
			ck_assert_uint_lt(nr, 8);
		}
	}
	nr = engine_reasons(w.engine, 2, r, 16);
	ck_assert_uint_eq(nr, 8);
	for (size_t i = 1; i < nr; i++)
		ck_assert_uint_ge(r[i - 1].at, r[i].at);
	ck_assert_uint_eq(engine_reasons(w.engine, 2, r, 3), 3);
}
END_TEST

START_TEST(every_kind_has_a_name)
{
	for (int i = ENGINE_VM_RUNNING; i < ENGINE_VM_STATE_NR; i++)
		ck_assert_str_ne(engine_vm_state_name((enum engine_vm_state)i), "");
	for (int i = ENGINE_CUT; i < ENGINE_REASON_NR; i++)
		ck_assert_str_ne(engine_reason_name((enum engine_reason_type)i), "");
	for (int i = ENGINE_EVENT_SHORT; i <= ENGINE_EVENT_JOB_CANCELLED; i++)
		ck_assert_str_ne(engine_event_name((enum engine_event_type)i), "");
	for (int i = RECLAIM_HOLD_NONE; i < RECLAIM_HOLD_NR; i++)
		ck_assert_str_ne(reclaim_hold_name((enum reclaim_hold)i), "");
}
END_TEST

START_TEST(vms_that_come_in_the_tick_in_which_others_go_are_looked_at)
{
	for (uint64_t id = 2; id < 18; id++) /* as many as there is room for at first */
		world_add(&w, id, MEMCG_ROOT_ID, MIB(40), MIB(30), &none);
	world_tick(&w);
	for (uint64_t id = 2; id < 6; id++) {
		world_vm(&w, id)->gone = true;
		world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = id });
	}
	for (uint64_t id = 18; id < 22; id++)
		world_add(&w, id, MEMCG_ROOT_ID, MIB(40), MIB(30), &none);
	world_state(&w, 21, ENGINE_VM_ARRIVING);
	world_tick(&w);
	ck_assert_int_eq(w.error, 0);
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(100));
	world_tick(&w);
	ck_assert_uint_gt(world_view(&w, 6).owed, 0);
	ck_assert_uint_gt(world_view(&w, 20).owed, 0);
	ck_assert_uint_eq(world_view(&w, 21).owed, 0);
	ck_assert_uint_eq(world_view(&w, MEMCG_ROOT_ID).owed, MIB(100));
}
END_TEST

/* ---- allocations ---- */

START_TEST(a_new_engine_that_finds_no_memory_leaves_none)
{
	struct engine_config config;
	struct engine *e = NULL;
	size_t n = 1;
	int r;

	world_config(&config);
	for (;; n++) {
		from_now_fail(n);
		r = engine_new(&config, &e);
		counting = false;
		if (!r)
			break;
		ck_assert_int_eq(r, -ENOMEM);
		ck_assert_ptr_null(e);
	}
	/* engine, events, tree, its buckets, the list of its level and the root */
	ck_assert_uint_eq(n, 8);
	engine_free(e);
}
END_TEST

START_TEST(an_item_that_finds_no_memory_is_left_out_and_can_be_tried_again)
{
	struct memcg_knobs max = none;
	struct engine_change c[40];
	size_t nr = 0, failed = 0, n = 1, left;

	max.max = MIB(5);
	for (uint64_t id = 100; id < 120; id++) {
		c[nr++] = (struct engine_change){
			.type = ENGINE_GROUP_NEW, .id = id, .parent = MEMCG_ROOT_ID, .knobs = max
		};
		c[nr++] = vm_new(id + 100, id, MIB(10));
	}
	do { /* one more allocation succeeds each time round */
		for (size_t i = 0; i < nr; i++)
			world_change(&w, &c[i]);
		from_now_fail(n++);
		world_tick(&w);
		counting = false;
		left = 0;
		for (size_t i = 0; i < nr; i++)
			left += !known(c[i].id);
		if (w.error == -ENOMEM)
			failed++;
		for (size_t i = 0; i < nr; i++) /* and all go again, so that all is tried anew */
			if (!left)
				break;
			else if (c[i].type == ENGINE_VM_NEW && known(c[i].id))
				world_change(&w, &(struct engine_change){
							 .type = ENGINE_VM_GONE, .id = c[i].id });
		for (size_t i = 0; i < nr && left; i++)
			if (c[i].type == ENGINE_GROUP_NEW && known(c[i].id))
				world_change(&w, &(struct engine_change){ .type = ENGINE_GROUP_GONE,
							 .id = c[i].id });
		if (left)
			world_tick(&w);
	} while (left);
	ck_assert_uint_ge(failed, 20); /* each VM's reasons; the rest is made for several */
	ck_assert_int_eq(w.error, 0);
	ck_assert_uint_eq(world_view(&w, MEMCG_ROOT_ID).usage, 20 * MIB(10));
}
END_TEST

START_TEST(a_first_vm_that_finds_no_memory_leaves_nothing_behind)
{
	size_t n = 1;

	for (;; n++) {
		teardown();
		setup();
		world_tick(&w);
		world_add(&w, 2, MEMCG_ROOT_ID, MIB(100), MIB(50), &none);
		from_now_fail(n);
		w.vm[0].gone = true; /* no sample */
		world_tick(&w);
		counting = false;
		if (w.error == 0)
			break;
		ck_assert_int_eq(w.error, -ENOMEM);
		ck_assert(!known(2));
		ck_assert_uint_eq(world_view(&w, MEMCG_ROOT_ID).usage, 0);
		w.nr = 0;
		world_add(&w, 2, MEMCG_ROOT_ID, MIB(100), MIB(50), &none);
		world_tick(&w);
		ck_assert_int_eq(w.error, 0);
	}
	/* five of scratch, the VM, its reasons, its level's list, its group, the limits */
	ck_assert_uint_eq(n, 12);
}
END_TEST

START_TEST(a_sample_without_actual_is_no_rest_and_no_ceiling)
{
	struct engine_output out;
	struct vm_sample s = { .id = 2, .known = VM_FIGURES_PROCESS, .resident = MIB(20) };
	struct engine_input in = { .samples = &s, .nr_samples = 1 };

	world_add(&w, 2, MEMCG_ROOT_ID, MIB(100), MIB(50), &none);
	world_ticks(&w, 40);
	in.now = w.now + SECOND_US;
	ck_assert_int_eq(engine_tick(w.engine, &in, &out), 0);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(100));
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(20));
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_UNKNOWN);
	ck_assert_uint_eq(out.next, UINT64_MAX); /* no rest is waited for */
}
END_TEST

START_TEST(charges_that_find_no_memory_are_told_by_the_next_call)
{
	const struct charge_seen *charges = NULL;
	struct memcg *leaf;

	world_add(&w, 3, MEMCG_ROOT_ID, MIB(100), MIB(50), &none);
	world_tick(&w);
	ck_assert_uint_eq(engine_charges(w.engine, &charges), 0);
	ck_assert_int_eq(engine_page(w.engine, 3, &leaf), 0);
	ck_assert_int_eq(charge_over(leaf, 7), 0);
	from_now_fail(1);
	ck_assert_uint_eq(engine_charges(w.engine, &charges), 0);
	ck_assert_ptr_null(charges);
	ck_assert_uint_eq(engine_charges(w.engine, &charges), 1);
	ck_assert_uint_eq(charges[0].id, 3);
	ck_assert_uint_eq(charges[0].pages, 7);
	ck_assert_uint_eq(engine_charges(w.engine, &charges), 0);
	ck_assert_int_eq(uncharge_direct(leaf, 7), 0);
}
END_TEST

START_TEST(a_request_that_finds_no_memory_is_refused)
{
	world_tick(&w);
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(1));
	from_now_fail(1);
	world_tick(&w);
	counting = false;
	ck_assert_int_eq(w.error, -ENOMEM);
	ck_assert_uint_eq(w.out.nr_events, 0);
}
END_TEST

START_TEST(knobs_that_find_no_memory_stay_as_they_were)
{
	struct memcg_knobs max = none;

	world_group(&w, 10, MEMCG_ROOT_ID, &none);
	for (uint64_t id = 100; id < 116; id++)
		world_group(&w, id, MEMCG_ROOT_ID, &none);
	world_tick(&w);
	max.max = MIB(5);
	for (uint64_t id = 100; id < 116; id++)
		world_knobs(&w, id, &max);
	world_tick(&w);
	world_knobs(&w, 10, &max);
	from_now_fail(1);
	world_tick(&w);
	counting = false;
	ck_assert_int_eq(w.error, -ENOMEM);
	ck_assert_uint_eq(world_view(&w, 10).knobs.max, PAGES_UNLIMITED);
	world_knobs(&w, 10, &max);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 10).knobs.max, MIB(5));
}
END_TEST

START_TEST(ticks_that_ask_share_cancel_and_give_back_allocate_nothing)
{
	struct memcg_knobs max = none, limit = soft(MIB(15));
	size_t commands = 0;

	max.max = MIB(200);
	world_group(&w, 100, MEMCG_ROOT_ID, &max);
	for (uint64_t id = 2; id < 60; id++)
		world_add(&w, id, id % 3 ? MEMCG_ROOT_ID : 100, MIB(40), MIB(30),
			id % 5 ? &none : &limit);
	w.pool.size = MIB(1800);
	world_tick(&w);
	world_reclaim(&w, 7, MEMCG_ROOT_ID, MIB(90));
	world_reclaim(&w, 8, 100, MIB(60));
	world_tick(&w); /* jobs are allocated where they come in */
	from_now_fail(0);
	for (unsigned int i = 0; i < 600; i++) {
		w.pool.size = i / 100 % 2 ? MIB(4000) : MIB(1700 - i / 10);
		for (size_t v = 0; v < w.nr; v++)
			w.vm[v].resident = pages_min(w.vm[v].actual, w.vm[v].resident + 40);
		world_tick(&w);
		commands += w.out.nr_actions;
	}
	ck_assert_uint_gt(commands, 200);
	ck_assert_uint_eq(allocations, 0);
}
END_TEST

START_TEST(a_quiet_tick_allocates_nothing)
{
	for (uint64_t id = 2; id < 40; id++)
		world_add(&w, id, MEMCG_ROOT_ID, MIB(40), MIB(30), &none);
	world_tick(&w);
	from_now_fail(0);
	world_ticks(&w, 100);
	ck_assert_uint_eq(allocations, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine_input");
	TCase *t = tcase_create("input");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_configuration_that_cannot_work_is_refused_whole);
	tcase_add_test(t, watermarks_of_two_kinds_are_made_to_ascend);
	tcase_add_test(t, figures_of_a_pool_that_cannot_be_make_it_unknown);
	tcase_add_test(t, changes_that_cannot_be_are_refused_and_leave_nothing_behind);
	tcase_add_test(t, figures_at_the_largest_that_there_is_are_taken);
	tcase_add_test(t, the_root_alone_does_not_go);
	tcase_add_test(t, the_first_error_is_told_and_all_else_is_done);
	tcase_add_test(t, samples_that_cannot_be_are_refused_and_the_last_one_stands);
	tcase_add_test(t, guest_hides_memory_when_it_costs_far_more_than_its_balloon_says);
	tcase_add_test(t,
		guest_that_claims_a_small_actual_counts_with_what_it_costs_and_seems_to_give_nothing);
	tcase_add_test(t, guest_that_only_pretends_to_give_has_failed_and_another_is_asked);
	tcase_add_test(t, more_than_the_tree_can_count_is_refused_and_counts_as_before);
	tcase_add_test(t, requests_that_cannot_be_are_refused);
	tcase_add_test(t, a_vm_counts_in_full_until_it_is_seen_and_then_as_it_was_last_seen);
	tcase_add_test(t, a_vm_that_goes_takes_its_memory_asks_and_overhead_along);
	tcase_add_test(t, nothing_is_told_to_a_vm_that_goes_in_the_same_tick);
	tcase_add_test(t, a_group_that_goes_ends_the_jobs_on_it_and_its_id_comes_free);
	tcase_add_test(t, a_group_that_goes_leaves_the_jobs_on_others_alone);
	tcase_add_test(t, a_vm_below_a_group_that_is_going_is_refused);
	tcase_add_test(t, many_vms_find_room);
	tcase_add_test(t, events_beyond_the_bound_are_dropped);
	tcase_add_test(t, time_stands_still_rather_than_going_back);
	tcase_add_test(t, a_tick_that_expects_nothing_comes_only_on_input);
	tcase_add_test(t, plans_and_views_of_what_is_not_there_say_so);
	tcase_add_test(t, a_view_says_whose_excess_it_is_and_what_holds);
	tcase_add_test(t, the_last_reasons_are_remembered_newest_first);
	tcase_add_test(t, every_kind_has_a_name);
	tcase_add_test(t, a_new_engine_that_finds_no_memory_leaves_none);
	tcase_add_test(t, an_item_that_finds_no_memory_is_left_out_and_can_be_tried_again);
	tcase_add_test(t, a_first_vm_that_finds_no_memory_leaves_nothing_behind);
	tcase_add_test(t, a_sample_without_actual_is_no_rest_and_no_ceiling);
	tcase_add_test(t, charges_that_find_no_memory_are_told_by_the_next_call);
	tcase_add_test(t, a_request_that_finds_no_memory_is_refused);
	tcase_add_test(t, knobs_that_find_no_memory_stay_as_they_were);
	tcase_add_test(t, vms_that_come_in_the_tick_in_which_others_go_are_looked_at);
	tcase_add_test(t, a_quiet_tick_allocates_nothing);
	tcase_add_test(t, ticks_that_ask_share_cancel_and_give_back_allocate_nothing);
	suite_add_tcase(s, t);
	return suite_run(s);
}
