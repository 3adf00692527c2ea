/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine over a small world: the ways back: feeding, gifts, loosening. */
#include <config.h>

#include "policy/engine.h"

#include <check.h>

#include "tests/unit/suite.h"
#include "tests/unit/world.h"

static struct world w;
static struct engine_config config; /* without loosens: what comes back is fed or a gift */

static void setup(void)
{
	world_config(&config);
}

static void setup_pool(uint64_t pool)
{
	world_open(&w, &config, pool);
}

static void teardown(void)
{
	world_close(&w);
}

START_TEST(a_capped_guest_under_pressure_is_fed_to_its_ceiling_at_once_and_in_one_step)
{
	/* Field case BR-42: 790 of 4096 MiB, 118 usable. */
	config.loosens = false;
	config.bounds.margin_percent = 10;
	config.bounds.margin_at_least = MIB(256);
	setup_pool(MIB(8192));
	world_capped(&w, 2, MIB(4096), MIB(790), &none);
	world_vm(&w, 2)->anon = MIB(790 - 118);
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_FEED), 1);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(4096));
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
}
END_TEST

START_TEST(a_feed_supersedes_the_target_that_is_pending)
{
	config.bounds.margin_at_least = MIB(40);
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(480), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(500), MIB(490), &none);
	world_vm(&w, 3)->anon = MIB(490);
	world_vm(&w, 2)->speed = MIB(1);
	world_ticks(&w, 20);
	ck_assert_uint_gt(world_view(&w, 2).owed, 0);
	world_vm(&w, 2)->anon = world_vm(&w, 2)->actual - MIB(20);
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(500));
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
}
END_TEST

START_TEST(a_guest_that_swaps_in_is_fed_up_to_its_soft_limit)
{
	struct memcg_knobs s = soft(MIB(300)), b = soft(MIB(100));

	config.loosens = false;
	setup_pool(MIB(500));
	world_capped(&w, 2, MIB(400), MIB(200), &s);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(400), MIB(270), &b);
	world_ticks(&w, 40); /* free 30: between wm_low 25 and wm_high 40 */
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	world_vm(&w, 2)->swap_in = MIB(1) - 1;
	world_tick(&w);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	world_vm(&w, 2)->swap_in += MIB(1);
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_FEED);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(300));
	/* The pool cannot serve it: who is in excess gives, for a hold time. */
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_FED);
	ck_assert_int_eq(world_action(&w, 3)->reason.type, ENGINE_CUT);
	ck_assert_uint_eq(world_view(&w, 3).owed, MIB(110));
	world_ticks(&w, 100);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_NONE);
}
END_TEST

START_TEST(a_feed_that_the_pool_cannot_serve_is_taken_from_those_in_excess)
{
	struct memcg_knobs b = soft(MIB(100));

	config.loosens = false;
	config.bounds.margin_at_least = MIB(20);
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(300), MIB(200), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(740), &b);
	world_ticks(&w, 40); /* free 60: in the band */
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
	world_vm(&w, 2)->anon = MIB(195);
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_FEED);
	/* 100 are promised: free 60 - 100, need 80 + 40 */
	ck_assert_int_eq(world_action(&w, 3)->reason.type, ENGINE_CUT);
	ck_assert_uint_eq(world_view(&w, 3).owed, MIB(120));
}
END_TEST

START_TEST(a_guest_in_excess_is_not_fed)
{
	struct memcg_knobs b = soft(MIB(100));

	config.loosens = false;
	config.bounds.margin_at_least = MIB(20);
	setup_pool(MIB(260));
	world_capped(&w, 2, MIB(300), MIB(200), &b);
	world_vm(&w, 2)->anon = MIB(195);
	w.pool.size = MIB(215); /* free 15: in the band of 10.75 and 17.2 */
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

START_TEST(who_cannot_receive_is_not_fed)
{
	config.loosens = false;
	config.bounds.margin_at_least = MIB(20);
	setup_pool(MIB(1000));
	for (uint64_t id = 2; id <= 5; id++) {
		world_capped(&w, id, MIB(300), MIB(200), &none);
		world_vm(&w, id)->anon = MIB(195);
	}
	w.changes[1].attrs.act = false;
	world_state(&w, 2, ENGINE_VM_PAUSED);
	world_vm(&w, 4)->no_process = true; /* unknown usage: no target */
	world_ticks(&w, 40);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
	ck_assert_uint_eq(world_vm(&w, 5)->commands, 1);
}
END_TEST

START_TEST(a_vm_at_its_operators_size_is_in_distress_and_gets_nothing)
{
	/* Field case BR-48: somebody else holds it at that: the ceiling. */
	config.bounds.margin_at_least = MIB(20);
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(200), &none);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(200);
	world_vm(&w, 2)->anon = MIB(195);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert(world_view(&w, 2).set.little_available);
}
END_TEST

/* BR-48, the variant with little free: the other pays for the need, and the one in distress not. */
START_TEST(guest_in_distress_gives_nothing_though_the_pool_is_short)
{
	config.bounds.margin_at_least = MIB(20);
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(200), &none);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(200);
	world_vm(&w, 2)->anon = MIB(195);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(900), MIB(760), &none); /* free 40: need 40 */
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_uint_eq(world_view(&w, 2).asks, 0);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(79));
	ck_assert_uint_gt(world_view(&w, 3).asks, 0);
}
END_TEST

START_TEST(gifts_are_in_proportion_to_what_is_missing_and_end_at_wm_high)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(200), &none); /* misses 300 */
	world_capped(&w, 3, MIB(400), MIB(300), &none); /* misses 100 */
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(400), MIB(340), &none);
	world_ticks(&w, 40); /* free 160, 80 above wm_high */
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(260));
	ck_assert_uint_eq(world_vm(&w, 3)->target, MIB(320));
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 1);
	/* Nobody takes it: after the hold time it is there for the next gift. */
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 2);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(320));
}
END_TEST

START_TEST(inside_the_band_nothing_moves)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(200), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(720), &none);
	world_ticks(&w, 200); /* free 80: wm_high exactly */
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	world_vm(&w, 3)->resident = MIB(705); /* 15 granules above: not worth a hold time */
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	world_vm(&w, 3)->resident = MIB(704);
	world_ticks(&w, 2);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(216));
}
END_TEST

START_TEST(the_last_granules_to_the_ceiling_are_given)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(203), MIB(200), &none);
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(203));
}
END_TEST

START_TEST(a_gift_that_is_not_taken_yet_lowers_what_is_free)
{
	struct engine_pool_view p;

	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(200), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(700), &none); /* free 100: 20 to give */
	for (int i = 0; i < 60 && !world_vm(&w, 2)->commands; i++)
		world_tick(&w);
	engine_pool_view(w.engine, &p);
	ck_assert_uint_eq(p.gifts, MIB(20));
	world_tick(&w);
	world_vm(&w, 2)->resident = MIB(215); /* 15 of it is taken */
	world_tick(&w);
	engine_pool_view(w.engine, &p);
	ck_assert_uint_eq(p.gifts, MIB(5));
	/* free 85 - 5: when 31 more go, it is below wm_low */
	world_vm(&w, 3)->resident += MIB(30);
	world_tick(&w);
	engine_pool_view(w.engine, &p);
	ck_assert_uint_eq(p.need, 0);
	world_vm(&w, 3)->resident += 1;
	world_tick(&w);
	engine_pool_view(w.engine, &p);
	ck_assert_uint_eq(p.need, MIB(30) + 1);
}
END_TEST

START_TEST(a_gift_ends_at_the_max_where_that_is_below_the_ceiling)
{
	struct memcg_knobs max = none;

	config.loosens = false;
	setup_pool(MIB(2000));
	max.max = MIB(350);
	world_capped(&w, 2, MIB(500), MIB(200), &max);
	world_ticks(&w, 300);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(350));
	ck_assert(!world_view(&w, 2).capped);
}
END_TEST

START_TEST(nothing_is_given_from_a_pool_that_is_not_known)
{
	config.loosens = false;
	setup_pool(MIB(2000));
	w.pool.known = false;
	world_capped(&w, 2, MIB(500), MIB(200), &none);
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

START_TEST(a_refused_way_back_is_tried_again_after_a_hold_time)
{
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(200), &none);
	world_vm(&w, 2)->refuses = true;
	world_ticks(&w, 130);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	ck_assert(world_view(&w, 2).capped);
	world_ticks(&w, 10);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 2);
	world_vm(&w, 2)->refuses = false;
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(500));
}
END_TEST

START_TEST(nothing_is_loosened_under_a_group_over_its_max)
{
	struct memcg_knobs max = none;

	setup_pool(MIB(2000));
	max.max = MIB(300);
	world_group(&w, 10, MEMCG_ROOT_ID, &max);
	world_add(&w, 2, 10, MIB(400), MIB(200), &none);
	world_add(&w, 3, 10, MIB(400), MIB(150), &none);
	world_vm(&w, 3)->speed = 0;
	world_ticks(&w, 30);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_CAME), 1);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_LOOSEN), 0);
	ck_assert_uint_lt(world_vm(&w, 2)->target, MIB(200));
	world_vm(&w, 3)->resident = MIB(100);
	world_ticks(&w, 10);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_LOOSEN), 1);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(400));
}
END_TEST

/* In a pool that stays short 2 has so much over its min, and takes it back whenever it may. */
static void lives_on_a_little(uint64_t little, uint64_t soft_limit)
{
	struct memcg_knobs knobs = soft(soft_limit);

	knobs.min = MIB(400) - little;
	setup_pool(MIB(620));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(400), &knobs);
	world_add(&w, 9, MEMCG_ROOT_ID, MIB(300), MIB(200), &none);
	world_vm(&w, 9)->anon = MIB(200);
}

/* How many ticks until it is told that, with so much used meanwhile. */
static unsigned int ticks_to(enum engine_reason_type type, uint64_t uses)
{
	const struct engine_action *a = NULL;
	unsigned int ticks = 0;

	for (; ticks < 200 && !(a && a->reason.type == type); ticks++) {
		world_vm(&w, 2)->resident = pages_min(world_vm(&w, 2)->actual, uses);
		world_tick(&w);
		a = world_action(&w, 2);
	}
	return ticks;
}

/* A hold time is 100 ticks. */
START_TEST(guest_that_gave_the_little_it_had_is_asked_for_that_once_in_a_hold_time)
{
	lives_on_a_little(MIB(3), PAGES_UNLIMITED);
	ticks_to(ENGINE_LOOSEN, MIB(400));
	ck_assert_uint_eq(ticks_to(ENGINE_CUT, MIB(400)), 2); /* nobody knows yet */
	ticks_to(ENGINE_LOOSEN, MIB(400));
	world_vm(&w, 2)->resident = MIB(400);
	world_tick(&w);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_PROTECTED);
	ck_assert_uint_eq(ticks_to(ENGINE_CUT, MIB(400)), 99);
	ticks_to(ENGINE_LOOSEN, MIB(400));
	for (unsigned int i = 0; i < 2; i++) {
		ck_assert_uint_eq(ticks_to(ENGINE_CUT, MIB(400)), 100);
		ck_assert_uint_lt(ticks_to(ENGINE_LOOSEN, MIB(400)), 20);
	}
	ck_assert_uint_eq(world_view(&w, 2).asks, 5);
}
END_TEST

/* Sixteen granules are worth a command. */
START_TEST(guest_that_has_enough_anew_is_asked_at_once)
{
	lives_on_a_little(MIB(3), PAGES_UNLIMITED);
	ticks_to(ENGINE_LOOSEN, MIB(400));
	ck_assert_uint_eq(ticks_to(ENGINE_CUT, MIB(400)), 2); /* nobody knows yet */
	ticks_to(ENGINE_LOOSEN, MIB(400));
	/* It has its ceiling a tick after it was told, and uses it. */
	ck_assert_uint_eq(ticks_to(ENGINE_CUT, MIB(397 + 16)), 2);
	ticks_to(ENGINE_LOOSEN, MIB(397));
	ck_assert_uint_eq(ticks_to(ENGINE_CUT, MIB(397 + 16) - 1), 100);
}
END_TEST

START_TEST(guest_in_excess_gives_the_little_it_has_as_often_as_it_has_it)
{
	lives_on_a_little(MIB(3), MIB(100));
	for (unsigned int i = 0; i < 5; i++)
		ck_assert_uint_lt(ticks_to(ENGINE_CUT, MIB(400)), 20);
}
END_TEST

/* Takes back what it gave as fast as it can, from its page cache. */
static void refills(uint64_t id)
{
	setup_pool(MIB(1000));
	world_add(&w, id, MEMCG_ROOT_ID, MIB(900), MIB(700), &none);
	world_add(&w, 9, MEMCG_ROOT_ID, MIB(300), MIB(220), &none);
	world_vm(&w, 9)->anon = MIB(220);
	world_vm(&w, id)->grows_back = true;
}

START_TEST(a_guest_that_refills_at_once_without_missing_anything_is_capped)
{
	const struct engine_action *a;
	uint64_t loosened[8] = { 0 };
	size_t nr = 0;

	refills(2);
	for (unsigned int i = 0; i < 400 && nr < 8; i++) {
		world_tick(&w);
		a = world_action(&w, 2);
		if (a && a->reason.type == ENGINE_LOOSEN)
			loosened[nr++] = a->target - a->reason.usage;
	}
	ck_assert_uint_eq(nr, 8);
	/* At first nobody knows; then it keeps what it uses and headroom. */
	ck_assert_uint_eq(loosened[0], MIB(250));
	for (size_t i = 2; i < nr; i++)
		ck_assert_uint_eq(loosened[i], MIB(64));
	/* Its pool has enough again: what is above wm_high it gets as ever. */
	world_vm(&w, 9)->resident = world_vm(&w, 9)->anon = MIB(20);
	world_vm(&w, 2)->grows_back = false;
	world_ticks(&w, 300);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(900));
}
END_TEST

/* The action that ends the next cut of 2; NULL: none comes. */
static const struct engine_action *next_loosening(void)
{
	const struct engine_action *a;

	for (unsigned int i = 0; i < 400; i++) {
		world_tick(&w);
		a = world_action(&w, 2);
		if (a && a->reason.type == ENGINE_LOOSEN)
			return a;
	}
	return NULL;
}

START_TEST(a_guest_has_refilled_when_half_of_what_it_gave_is_back)
{
	const struct engine_action *a;
	uint64_t usage, half;

	for (uint64_t less = 0; less < 2; less++) {
		setup_pool(MIB(1000));
		world_add(&w, 2, MEMCG_ROOT_ID, MIB(900), MIB(700), &none);
		world_add(&w, 9, MEMCG_ROOT_ID, MIB(300), MIB(255), &none);
		world_vm(&w, 9)->anon = MIB(255);
		a = next_loosening();
		ck_assert_ptr_nonnull(a);
		usage = a->reason.usage;
		half = (MIB(700) - usage) / 2;
		ck_assert_uint_gt(half, MIB(10));
		world_vm(&w, 2)->resident = usage + half - less;
		world_vm(&w, 9)->resident = world_vm(&w, 9)->anon = MIB(280);
		a = next_loosening();
		ck_assert_ptr_nonnull(a);
		if (less)
			ck_assert_uint_eq(a->target, MIB(900));
		else
			ck_assert_uint_eq(a->target, a->reason.usage + MIB(64));
		if (!less)
			world_close(&w);
	}
}
END_TEST

/* Its next cut begins so many ticks after its cap was lifted; what it keeps beside its usage. */
static uint64_t loosened_after(unsigned int ticks)
{
	const struct engine_action *a;

	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(900), MIB(700), &none);
	world_add(&w, 9, MEMCG_ROOT_ID, MIB(300), MIB(255), &none);
	world_vm(&w, 9)->anon = MIB(255);
	ck_assert_ptr_nonnull(next_loosening());
	world_vm(&w, 2)->resident = MIB(700);
	w.pool.size = MIB(2000);
	world_ticks(&w, ticks - 1);
	ck_assert_uint_eq(world_view(&w, 2).asks, 1);
	w.pool.size = MIB(1000);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).asks, 2);
	a = next_loosening();
	ck_assert_ptr_nonnull(a);
	return a->target - a->reason.usage;
}

/* A hold time is 100 ticks. */
START_TEST(a_guest_that_is_cut_again_as_the_hold_time_ends_has_not_refilled)
{
	ck_assert_uint_eq(loosened_after(99), MIB(64));
	teardown();
	ck_assert_uint_gt(loosened_after(100), MIB(64));
}
END_TEST

START_TEST(a_guest_that_swaps_in_what_it_gave_was_cut_too_deep_and_is_not_capped)
{
	const struct engine_action *a;

	refills(2);
	for (unsigned int i = 0; i < 400; i++) {
		world_vm(&w, 2)->swap_in += MIB(2);
		world_tick(&w);
		a = world_action(&w, 2);
		if (a && a->reason.type == ENGINE_LOOSEN)
			ck_assert_uint_eq(a->target, MIB(900));
	}
	ck_assert_uint_gt(world_vm(&w, 2)->commands, 1);
}
END_TEST

START_TEST(a_guest_cut_again_after_a_hold_time_has_its_limit_back)
{
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(900), MIB(960), &none);
	for (unsigned int i = 0; i < 4; i++) {
		world_vm(&w, 2)->resident = MIB(850);
		world_add(&w, 10 + i, MEMCG_ROOT_ID, MIB(120), MIB(110), &none);
		world_vm(&w, 10 + i)->anon = MIB(110);
		world_ticks(&w, 60);
		ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(900));
		world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = 10 + i });
		world_vm(&w, 10 + i)->gone = true;
		world_ticks(&w, 100);
	}
	ck_assert_uint_ge(world_actions(&w, 2, ENGINE_LOOSEN), 2);
}
END_TEST

START_TEST(nobody_not_in_excess_is_cut_for_what_a_fed_guest_may_never_touch)
{
	config.bounds.margin_percent = 10;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(800), MIB(400), &none);
	world_vm(&w, 2)->anon = MIB(390);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(600), MIB(520), &none);
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_FEED), 1);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(800));
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
}
END_TEST

/* Where what it is told is its at once: what the pool has, and then no more before it has more. */
START_TEST(nobody_not_in_excess_is_cut_for_what_a_fed_guest_has_at_once)
{
	config.loosens = false;
	config.growth_us = 0;
	config.bounds.margin_percent = 10;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(800), MIB(400), &none);
	world_vm(&w, 2)->anon = MIB(390);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(600), MIB(470), &none);
	world_ticks(&w, 40);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_FED);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(450)); /* 130 free, 80 is wm_high */
	world_vm(&w, 2)->resident = world_vm(&w, 2)->anon = MIB(450);
	world_ticks(&w, 40);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
	world_vm(&w, 3)->resident = MIB(370);
	world_ticks(&w, 2);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(550));
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_FEED), 2);
}
END_TEST

START_TEST(nothing_is_fed_from_a_pool_that_is_not_known)
{
	config.loosens = _i;
	config.bounds.margin_percent = 10;
	setup_pool(MIB(1000));
	w.pool.known = false;
	world_capped(&w, 2, MIB(800), MIB(400), &none);
	world_vm(&w, 2)->anon = MIB(390);
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_FEED), 0);
}
END_TEST

START_TEST(guests_fed_at_once_are_promised_together_no_more_than_there_is)
{
	struct memcg_knobs limit = soft(MIB(150));
	struct engine_pool_view p;

	config.bounds.margin_percent = 10;
	setup_pool(MIB(1000));
	for (uint64_t id = 2; id <= 3; id++) {
		world_capped(&w, id, MIB(600), MIB(300), &none);
		world_vm(&w, id)->anon = MIB(290);
	}
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(300), MIB(200), &limit);
	world_vm(&w, 4)->anon = MIB(50);
	while (!world_action(&w, 2))
		world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_FEED);
	ck_assert_int_eq(world_action(&w, 3)->reason.type, ENGINE_FEED);
	engine_pool_view(w.engine, &p);
	/* 200 are free, of those 120 above wm_high; the one in excess gives 50. */
	ck_assert_uint_eq(p.gifts, MIB(170));
}
END_TEST

START_TEST(those_in_excess_are_cut_for_a_fed_guest)
{
	struct memcg_knobs limit = soft(MIB(300));

	config.bounds.margin_percent = 10;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(800), MIB(400), &none);
	world_vm(&w, 2)->anon = MIB(390);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(600), MIB(520), &limit);
	world_vm(&w, 3)->anon = MIB(100);
	world_ticks(&w, 90);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(800));
	ck_assert_uint_le(world_usage(world_vm(&w, 3)), MIB(301));
}
END_TEST

/* What a group over its max cannot give any more it does not get back for that. */
START_TEST(nothing_is_given_under_a_group_that_stays_over_its_max)
{
	struct memcg_knobs max = none;

	setup_pool(MIB(2000));
	max.max = MIB(100);
	world_group(&w, 10, MEMCG_ROOT_ID, &max);
	world_add(&w, 2, 10, MIB(400), MIB(200), &none);
	world_add(&w, 3, 10, MIB(400), MIB(150), &none);
	world_vm(&w, 2)->anon = MIB(120);
	world_vm(&w, 3)->anon = MIB(60);
	world_ticks(&w, 600);
	ck_assert_uint_gt(world_view(&w, 10).usage, MIB(100));
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_GIFT) + world_actions(&w, 3, ENGINE_GIFT), 0);
	ck_assert(world_view(&w, 2).capped && world_view(&w, 3).capped);
	/* It fits: all goes back. */
	world_vm(&w, 2)->anon = MIB(20);
	world_vm(&w, 2)->resident = MIB(30);
	world_ticks(&w, 600);
	ck_assert_uint_le(world_view(&w, 10).usage, MIB(100));
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(400));
	ck_assert_uint_eq(world_vm(&w, 3)->target, MIB(400));
}
END_TEST

START_TEST(a_vm_in_excess_keeps_a_sixteenth_where_that_is_more_than_the_least)
{
	struct memcg_knobs zero = soft(0);
	uint64_t usage;

	setup_pool(MIB(3000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(4000), MIB(2900), &zero);
	world_vm(&w, 2)->speed = MIB(200);
	world_ticks(&w, 12);
	usage = world_usage(world_vm(&w, 2));
	ck_assert_uint_lt(usage, MIB(2900));
	ck_assert_uint_eq(world_vm(&w, 2)->target, usage + usage / 16);
}
END_TEST

START_TEST(many_capped_guests_share_what_is_too_little_for_each_of_them)
{
	unsigned int given = 0;

	config.loosens = false;
	setup_pool(MIB(14000));
	for (uint64_t id = 2; id < 42; id++)
		world_capped(&w, id, MIB(500), MIB(300), &none);
	/* 200 MiB above wm_high: 5 for each of 40, and a gift is worth 16 */
	world_add(&w, 50, MEMCG_ROOT_ID, MIB(680), MIB(680), &none);
	world_ticks(&w, 100);
	for (uint64_t id = 2; id < 42; id++)
		given += world_actions(&w, id, ENGINE_GIFT) > 0;
	ck_assert_uint_ge(given, 5);
	ck_assert_uint_lt(given, 40);
}
END_TEST

START_TEST(a_refusal_of_the_last_gift_is_not_forgotten)
{
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	while (!world_action(&w, 2))
		world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(500));
	/* It is not looked at any more when its refusal comes. */
	w.results[w.nr_results++] =
		(struct engine_result){ .id = 2, .seq = world_action(&w, 2)->seq, .error = -5 };
	world_vm(&w, 2)->pending_seq = 0;
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_vm(&w, 2)->actual, MIB(500));
}
END_TEST

START_TEST(capped_guest_has_its_ceiling_at_once_when_its_limit_is_raised_over_it)
{
	struct memcg_knobs limit = none;

	setup_pool(MIB(1000));
	limit.soft_limit = MIB(200);
	world_capped(&w, 2, MIB(500), MIB(300), &limit);
	/* In the band: nothing is given to who keeps its knobs. */
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(640), MIB(640), &none);
	world_ticks(&w, 100);
	ck_assert_uint_lt(world_view(&w, 2).target, MIB(500));
	limit.soft_limit = MIB(400);
	world_knobs(&w, 2, &limit);
	world_tick(&w);
	ck_assert_ptr_nonnull(world_action(&w, 2));
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(500));
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_LOOSEN);
}
END_TEST

START_TEST(gifts_wait_for_an_ask_that_was_not_taken_up)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(480), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(500), MIB(490), &none);
	world_state(&w, 3, ENGINE_VM_NO_DEVICE);
	world_vm(&w, 2)->delay = 45;
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, MIB(50));
	/* Its guest gives by itself, and another gives much more. */
	world_vm(&w, 2)->resident = MIB(425);
	world_vm(&w, 3)->resident = MIB(100);
	world_ticks(&w, 40);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(500));
}
END_TEST

START_TEST(a_vm_that_comes_to_be_managed_gets_back_what_an_earlier_run_took)
{
	struct engine_change c = {
		.type = ENGINE_VM_ATTRS, .id = 2, .attrs = { .maximum = MIB(500), .act = false }
	};

	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	c.attrs.maximum = w.changes[0].attrs.maximum;
	w.changes[0].attrs.act = false;
	world_ticks(&w, 50);
	world_change(&w, &c); /* not managed before and after */
	world_tick(&w);
	ck_assert_ptr_null(world_action(&w, 2));
	c.attrs.act = true;
	world_change(&w, &c);
	world_ticks(&w, 2);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(500));
}
END_TEST

START_TEST(to_cancel_where_nothing_runs_tells_nothing)
{
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_ticks(&w, 60);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_CANCEL, .id = 2 });
	world_ticks(&w, 2);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
}
END_TEST

/* The tick at which the next action of that kind comes, counted from now; 0: not within nr. */
static unsigned int ticks_until(uint64_t id, enum engine_reason_type type, unsigned int nr)
{
	for (unsigned int i = 1; i <= nr; i++) {
		world_tick(&w);
		if (world_action(&w, id) && world_action(&w, id)->reason.type == type)
			return i;
	}
	return 0;
}

START_TEST(hold_times_end_with_the_tick_at_which_they_are_over)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(200), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(700), &none); /* 20 above wm_high */
	ck_assert_uint_ne(ticks_until(2, ENGINE_GIFT, 50), 0);
	/* Nobody took it: after 10 s it is no promise any more, and the next may be made. */
	ck_assert_uint_eq(ticks_until(2, ENGINE_GIFT, 200), 100);
	world_vm(&w, 2)->refuses = true;
	ck_assert_uint_eq(ticks_until(2, ENGINE_GIFT, 200), 100);
	ck_assert_uint_eq(
		ticks_until(2, ENGINE_GIFT, 200), 101); /* the refusal came a tick later */
}
END_TEST

START_TEST(a_granule_is_worth_a_feed_and_less_is_not)
{
	config.loosens = false;
	config.bounds.margin_at_least = MIB(20);
	setup_pool(MIB(660));
	world_capped(&w, 2, MIB(301), MIB(300), &none);
	world_capped(&w, 3, MIB(301) - 1, MIB(300), &none);
	world_vm(&w, 2)->anon = world_vm(&w, 3)->anon = MIB(290);
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_FEED), 1);
	ck_assert_uint_eq(world_actions(&w, 3, ENGINE_FEED), 0);
}
END_TEST

START_TEST(a_granule_is_worth_loosening_and_less_is_not)
{
	setup_pool(MIB(660));
	world_capped(&w, 2, MIB(301), MIB(300), &none);
	world_capped(&w, 3, MIB(301) - 1, MIB(300), &none);
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_LOOSEN), 1);
	ck_assert_uint_eq(world_actions(&w, 3, ENGINE_LOOSEN), 0);
}
END_TEST

START_TEST(a_granule_above_wm_high_is_given_to_who_misses_no_more)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(201), MIB(200), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(719) + 1, &none);
	world_ticks(&w, 50); /* a page less than a granule above */
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	world_vm(&w, 3)->resident = MIB(719);
	world_tick(&w);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_GIFT), 1);
}
END_TEST

START_TEST(a_feed_promises_what_lies_beyond_the_target_that_it_had)
{
	struct memcg_knobs b = soft(MIB(100));
	struct engine_pool_view p;

	config.loosens = false;
	config.bounds.margin_at_least = MIB(20);
	setup_pool(MIB(500));
	world_capped(&w, 2, MIB(300), MIB(200), &none);
	world_vm(&w, 2)->resident = MIB(100); /* half of what it may use was never touched */
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(400), MIB(365), &b);
	world_ticks(&w, 40); /* free 35: in the band of 25 and 40 */
	world_vm(&w, 2)->anon = MIB(190);
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_FEED);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(300)); /* beyond it, not its usage */
	engine_pool_view(w.engine, &p);
	ck_assert_uint_eq(p.gifts, MIB(100));
}
END_TEST

START_TEST(a_group_at_its_max_is_not_over_it)
{
	struct memcg_knobs max = none;

	setup_pool(MIB(2000));
	max.max = MIB(300);
	world_group(&w, 10, MEMCG_ROOT_ID, &max);
	world_add(&w, 2, 10, MIB(400), MIB(310), &none);
	world_ticks(&w, 40);
	ck_assert_uint_eq(world_view(&w, 10).usage, MIB(300));
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_LOOSEN), 1);
}
END_TEST

/* 2 has 200 of 500 MiB, and its agent says that it reads so much again; the pool has free MiB. */
static void rereads(uint64_t refaults, uint64_t free)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(200), &none);
	world_vm(&w, 2)->tells = true;
	world_vm(&w, 2)->refaults = refaults;
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(800 - free), &none);
}

START_TEST(who_reads_a_mib_a_second_again_lacks_it_and_less_is_a_trickle)
{
	rereads(MIB(1) - 1, 100); /* 20 above wm_high */
	ck_assert_uint_ne(ticks_until(2, ENGINE_GIFT, 50), 0);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_FEED), 0);
	world_close(&w);
	rereads(MIB(1), 100);
	ck_assert_uint_ne(ticks_until(2, ENGINE_FEED, 50), 0);
	/* What it was promised and did not take is there again with the tick of the hold time. */
	ck_assert_uint_eq(ticks_until(2, ENGINE_FEED, 150), 100);
}
END_TEST

START_TEST(four_mib_of_what_is_missing_are_worth_a_feed_and_less_is_not)
{
	rereads(MIB(1), 83);
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	world_vm(&w, 3)->resident -= MIB(1);
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_FEED);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(204));
}
END_TEST

START_TEST(nothing_is_cold_in_who_lacks_memory_for_a_hold_time_and_no_tick_longer)
{
	struct reclaim_plan plan;
	bool spared = true;

	rereads(MIB(1), 80);
	world_ticks(&w, 40);
	world_vm(&w, 2)->refaults = 0;
	world_ticks(&w, 50); /* 5 s after it said so last */
	w.pool.size += MIB(100);
	ck_assert_uint_eq(ticks_until(2, ENGINE_GIFT, 10), 1); /* a promise for 10 s more */
	for (unsigned int i = 52; i <= 100; i++) {
		ck_assert(spared);
		world_tick(&w);
		ck_assert_int_eq(engine_plan(w.engine, 2, MIB(1), &plan), 0);
		ck_assert_uint_eq(plan.nr, 1);
		spared = plan.shares[0].step == 4;
	}
	ck_assert(!spared);
}
END_TEST

START_TEST(what_was_planned_before_feeds_nobody)
{
	struct memcg_knobs limit = soft(MIB(600));
	struct reclaim_plan plan;

	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(200), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(730), &limit);
	world_ticks(&w, 40); /* free 70: in the band */
	ck_assert_int_eq(engine_plan(w.engine, MEMCG_ROOT_ID, MIB(100), &plan), 0);
	ck_assert_uint_eq(plan.shares[0].step, 1);
	world_knobs(&w, 3, &none); /* it is in excess no more */
	world_vm(&w, 2)->swap_in += MIB(2);
	world_tick(&w);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

START_TEST(who_is_cut_again_with_the_tick_of_a_hold_time_has_its_limit_back)
{
	for (unsigned int early = 0; early < 2; early++) {
		setup_pool(MIB(1000));
		world_add(&w, 2, MEMCG_ROOT_ID, MIB(900), MIB(700), &none);
		world_add(&w, 9, MEMCG_ROOT_ID, MIB(300), MIB(255), &none);
		world_vm(&w, 9)->anon = MIB(255);
		ck_assert_ptr_nonnull(next_loosening());
		world_vm(&w, 2)->resident = MIB(700); /* all of it is back */
		w.pool.size = MIB(2000);
		world_ticks(&w, early ? 98 : 99);
		w.pool.size = MIB(1000);
		world_tick(&w);
		ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CUT);
		ck_assert_ptr_nonnull(next_loosening());
		if (early)
			ck_assert_uint_lt(world_action(&w, 2)->target, MIB(900));
		else
			ck_assert_uint_eq(world_action(&w, 2)->target, MIB(900));
		if (!early)
			world_close(&w);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine_give");
	TCase *t = tcase_create("give");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(
		t, a_capped_guest_under_pressure_is_fed_to_its_ceiling_at_once_and_in_one_step);
	tcase_add_test(t, a_feed_supersedes_the_target_that_is_pending);
	tcase_add_test(t, a_guest_that_swaps_in_is_fed_up_to_its_soft_limit);
	tcase_add_test(t, a_feed_that_the_pool_cannot_serve_is_taken_from_those_in_excess);
	tcase_add_test(t, a_guest_in_excess_is_not_fed);
	tcase_add_test(t, who_cannot_receive_is_not_fed);
	tcase_add_test(t, a_vm_at_its_operators_size_is_in_distress_and_gets_nothing);
	tcase_add_test(t, guest_in_distress_gives_nothing_though_the_pool_is_short);
	tcase_add_test(t, gifts_are_in_proportion_to_what_is_missing_and_end_at_wm_high);
	tcase_add_test(t, inside_the_band_nothing_moves);
	tcase_add_test(t, the_last_granules_to_the_ceiling_are_given);
	tcase_add_test(t, a_gift_that_is_not_taken_yet_lowers_what_is_free);
	tcase_add_test(t, a_gift_ends_at_the_max_where_that_is_below_the_ceiling);
	tcase_add_test(t, nothing_is_given_from_a_pool_that_is_not_known);
	tcase_add_test(t, a_refused_way_back_is_tried_again_after_a_hold_time);
	tcase_add_test(t, nothing_is_loosened_under_a_group_over_its_max);
	tcase_add_test(t, nothing_is_given_under_a_group_that_stays_over_its_max);
	tcase_add_test(t, a_vm_in_excess_keeps_a_sixteenth_where_that_is_more_than_the_least);
	tcase_add_test(t, many_capped_guests_share_what_is_too_little_for_each_of_them);
	tcase_add_test(t, a_refusal_of_the_last_gift_is_not_forgotten);
	tcase_add_test(t, capped_guest_has_its_ceiling_at_once_when_its_limit_is_raised_over_it);
	tcase_add_test(t, gifts_wait_for_an_ask_that_was_not_taken_up);
	tcase_add_test(t, a_vm_that_comes_to_be_managed_gets_back_what_an_earlier_run_took);
	tcase_add_test(t, to_cancel_where_nothing_runs_tells_nothing);
	tcase_add_test(t, hold_times_end_with_the_tick_at_which_they_are_over);
	tcase_add_test(t, a_granule_is_worth_a_feed_and_less_is_not);
	tcase_add_test(t, a_granule_is_worth_loosening_and_less_is_not);
	tcase_add_test(t, a_granule_above_wm_high_is_given_to_who_misses_no_more);
	tcase_add_test(t, a_guest_that_is_cut_again_as_the_hold_time_ends_has_not_refilled);
	tcase_add_test(t, a_guest_has_refilled_when_half_of_what_it_gave_is_back);
	tcase_add_test(t, guest_that_gave_the_little_it_had_is_asked_for_that_once_in_a_hold_time);
	tcase_add_test(t, guest_that_has_enough_anew_is_asked_at_once);
	tcase_add_test(t, guest_in_excess_gives_the_little_it_has_as_often_as_it_has_it);
	tcase_add_test(t, a_guest_that_refills_at_once_without_missing_anything_is_capped);
	tcase_add_test(t, a_guest_that_swaps_in_what_it_gave_was_cut_too_deep_and_is_not_capped);
	tcase_add_test(t, a_guest_cut_again_after_a_hold_time_has_its_limit_back);
	tcase_add_test(t, nobody_not_in_excess_is_cut_for_what_a_fed_guest_may_never_touch);
	tcase_add_test(t, nobody_not_in_excess_is_cut_for_what_a_fed_guest_has_at_once);
	tcase_add_loop_test(t, nothing_is_fed_from_a_pool_that_is_not_known, 0, 2);
	tcase_add_test(t, guests_fed_at_once_are_promised_together_no_more_than_there_is);
	tcase_add_test(t, those_in_excess_are_cut_for_a_fed_guest);
	tcase_add_test(t, a_feed_promises_what_lies_beyond_the_target_that_it_had);
	tcase_add_test(t, who_reads_a_mib_a_second_again_lacks_it_and_less_is_a_trickle);
	tcase_add_test(t, four_mib_of_what_is_missing_are_worth_a_feed_and_less_is_not);
	tcase_add_test(t, nothing_is_cold_in_who_lacks_memory_for_a_hold_time_and_no_tick_longer);
	tcase_add_test(t, what_was_planned_before_feeds_nobody);
	tcase_add_test(t, who_is_cut_again_with_the_tick_of_a_hold_time_has_its_limit_back);
	tcase_add_test(t, a_group_at_its_max_is_not_over_it);
	suite_add_tcase(s, t);
	return suite_run(s);
}
