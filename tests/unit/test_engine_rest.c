/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine over a small world: balloons that come to rest elsewhere than they were told, and
 * whose hand that was.
 */
#include <config.h>

#include "policy/engine.h"

#include <check.h>
#include <errno.h>

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

START_TEST(a_rest_above_the_target_is_asked_once_more_and_then_let_be)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	w.tick_us = SECOND_US / 4;
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(640), &none); /* free 60: in the band */
	world_ticks(&w, 20);
	ck_assert_uint_eq(world_view(&w, 2).target, MIB(300));
	world_vm(&w, 2)->actual = MIB(350); /* deflate-on-OOM, or somebody's hand */
	world_vm(&w, 2)->stops_at = MIB(350);
	world_ticks(&w, 11);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	world_ticks(&w, 3);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_AGAIN), 1);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(300));
	world_ticks(&w, 14);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_CONTENDED), 1);
	ck_assert_uint_eq(world_event(&w, ENGINE_EVENT_CONTENDED)->a, MIB(300));
	ck_assert_int_eq(world_event(&w, ENGINE_EVENT_CONTENDED)->b, (int64_t)MIB(350));
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_CONTENDED);
	ck_assert_int_eq(world_view(&w, 2).state, ENGINE_VM_CONTENDED);
	world_ticks(&w, 41);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_CONTENDED), 1);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_NONE);
}
END_TEST

/* BR-111, BR-135, BR-136: with deflate-on-OOM nobody else's hand is looked for. 1: in excess. */
START_TEST(rest_above_the_target_of_a_balloon_that_deflates_on_oom_is_distress)
{
	struct memcg_knobs limit = soft(_i ? MIB(100) : MIB(450));

	config.loosens = false;
	config.growth_us = 0;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &limit);
	w.changes[0].attrs.autodeflate = true;
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(500), &none);
	world_state(&w, 2, ENGINE_VM_PAUSED); /* so that it gets nothing before */
	world_ticks(&w, 40);
	world_state(&w, 2, ENGINE_VM_RUNNING);
	w.pool.size = _i ? MIB(900) : MIB(1000);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(350);
	world_vm(&w, 2)->resident = MIB(350);
	world_ticks(&w, 32);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_CONTENDED), 0);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_AGAIN), 0);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_FEED), _i ? 0 : 1);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_FED);
	if (!_i) /* what the pool has over wm_high */
		ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(420));
	world_ticks(&w, 95);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_CUT), 0);
	world_ticks(&w, 5);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_NONE);
}
END_TEST

START_TEST(a_rest_less_than_a_granule_above_the_target_is_at_the_target)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(640), &none);
	world_ticks(&w, 50);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(301) - 1;
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(301);
	world_ticks(&w, 40);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
}
END_TEST

START_TEST(a_rest_a_granule_above_the_target_of_a_balloon_that_deflates_on_oom_is_distress)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	w.changes[0].attrs.autodeflate = true;
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(640), &none); /* free 60: in the band */
	world_ticks(&w, 50);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(301);
	world_ticks(&w, 40);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_AGAIN), 0);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_FED);
}
END_TEST

/* VM 2 was told 300 MiB; its min is raised then, and it comes to rest at 350. */
static void rests_above_its_target(uint64_t ceiling, uint64_t raised)
{
	struct memcg_knobs min = none;

	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, ceiling, MIB(300), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(640), &none);
	world_ticks(&w, 50);
	min.min = raised;
	world_knobs(&w, 2, &min);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(350);
	world_ticks(&w, 40);
}

START_TEST(what_is_asked_once_more_is_not_below_a_min_that_was_raised)
{
	rests_above_its_target(MIB(500), MIB(320));
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_AGAIN), 1);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(320));
}
END_TEST

START_TEST(what_is_asked_once_more_is_at_most_the_ceiling)
{
	rests_above_its_target(MIB(320), MIB(320));
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_AGAIN), 1);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(320));
}
END_TEST

/* What it found somewhere is more than it may have, and it needs that: it is not taken away. */
START_TEST(guest_that_must_keep_more_than_its_ceiling_is_not_asked_once_more)
{
	rests_above_its_target(MIB(320), MIB(330));
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_AGAIN), 0);
}
END_TEST

START_TEST(a_guest_that_is_not_managed_is_not_asked_once_more)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	w.changes[0].attrs.act = false;
	world_ticks(&w, 50);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(350);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

/* Its ceiling may be on record still, of when it was managed. */
START_TEST(a_guest_that_is_not_managed_is_told_nothing_when_it_starts_over)
{
	const struct engine_change cancel = { .type = ENGINE_VM_CANCEL, .id = 2 };

	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	w.changes[0].attrs.act = false;
	world_ticks(&w, 2);
	world_state(&w, 2, ENGINE_VM_ARRIVING); /* rebooted */
	world_change(&w, &cancel);
	world_ticks(&w, 5);
	world_state(&w, 2, ENGINE_VM_RUNNING); /* resumed */
	world_change(&w, &cancel);
	world_ticks(&w, 100);
	world_state(&w, 2, ENGINE_VM_ARRIVING);
	world_change(&w, &cancel);
	world_ticks(&w, 5);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

START_TEST(a_rest_above_the_ceiling_is_neither_promised_nor_taken_away)
{
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_vm(&w, 2)->maximum = MIB(800);
	world_ticks(&w, 60); /* loosened to 500 */
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(500));
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(600);
	world_ticks(&w, 60);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(500)); /* the guest may have done that */
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 0);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(600));
}
END_TEST

START_TEST(a_rebooted_guest_whose_loosening_got_lost_is_told_its_ceiling_again)
{
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	while (!world_action(&w, 2))
		world_tick(&w);
	world_vm(&w, 2)->pending_seq = 0; /* dropped with the guest's reboot */
	world_state(&w, 2, ENGINE_VM_ARRIVING);
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_CANCEL, .id = 2 });
	world_tick(&w);
	ck_assert_ptr_nonnull(world_action(&w, 2));
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(500));
}
END_TEST

/* What the device said of the life before counted as all that the guest could use. */
START_TEST(guest_that_rebooted_below_its_target_is_told_another_one_that_its_driver_takes_up)
{
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	while (!world_action(&w, 2))
		world_tick(&w);
	world_vm(&w, 2)->pending_seq = 0;
	world_state(&w, 2, ENGINE_VM_ARRIVING);
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_CANCEL, .id = 2 });
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(500));
	world_vm(&w, 2)->pending_seq = 0; /* to the new driver it is nothing new */
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->actual, MIB(300));
	world_state(&w, 2, ENGINE_VM_RUNNING);
	world_ticks(&w, 200);
	ck_assert_uint_ge(world_vm(&w, 2)->actual, MIB(499));
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 0);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(500));
}
END_TEST

START_TEST(guest_that_rebooted_just_a_granule_below_its_target_is_told_another_one)
{
	struct memcg_knobs min = none;

	min.min = MIB(499); /* that it may be told just that, too */
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(499), &min);
	while (!world_action(&w, 2))
		world_tick(&w);
	world_vm(&w, 2)->pending_seq = 0;
	world_state(&w, 2, ENGINE_VM_ARRIVING);
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_CANCEL, .id = 2 });
	world_tick(&w);
	world_vm(&w, 2)->pending_seq = 0; /* to the new driver it is nothing new */
	world_ticks(&w, 100);
	world_state(&w, 2, ENGINE_VM_RUNNING);
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_AGAIN), 1);
}
END_TEST

START_TEST(a_rest_above_a_max_below_the_ceiling_is_no_wish)
{
	struct memcg_knobs max = none;

	config.loosens = false;
	setup_pool(MIB(2000));
	max.max = MIB(350);
	world_capped(&w, 2, MIB(500), MIB(200), &max);
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_view(&w, 2).target, MIB(350));
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(400);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 0);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(500));
}
END_TEST

START_TEST(a_rest_a_granule_below_the_lowest_target_is_a_wish_and_less_is_not)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(640), &none);
	world_ticks(&w, 50);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(299) + 1;
	world_vm(&w, 2)->resident = MIB(299) + 1;
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 0);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(298) + 1;
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 1);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(298) + 1);
}
END_TEST

/* So that who comes after this run gives no more back than was wished. */
START_TEST(somebody_elses_wish_is_put_on_record_with_a_target_that_changes_nothing)
{
	const struct engine_action *a;

	config.loosens = _i;
	setup_pool(MIB(2000));
	world_capped(&w, 2, MIB(500), MIB(500), &none);
	world_ticks(&w, 50);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = world_vm(&w, 2)->resident = MIB(250);
	while (!world_count(&w, ENGINE_EVENT_WISH))
		world_tick(&w);
	a = world_action(&w, 2);
	ck_assert_ptr_nonnull(a);
	ck_assert_int_eq(a->reason.type, ENGINE_WISH);
	ck_assert_uint_eq(a->target, MIB(250));
	ck_assert_uint_eq(a->ceiling, MIB(250));
	ck_assert_uint_eq(world_view(&w, 2).attrs.ceiling, MIB(250));
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	ck_assert_uint_eq(world_vm(&w, 2)->actual, MIB(250));
}
END_TEST

START_TEST(wish_whose_record_was_refused_is_put_on_record_after_a_hold_time)
{
	setup_pool(MIB(2000));
	world_capped(&w, 2, MIB(500), MIB(500), &none);
	world_ticks(&w, 50);
	world_vm(&w, 2)->refuses = true;
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = world_vm(&w, 2)->resident = MIB(250);
	world_ticks(&w, 80);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	world_vm(&w, 2)->refuses = false;
	world_ticks(&w, 60);
	ck_assert_uint_eq(world_actions(&w, 2, ENGINE_WISH), 2);
	world_ticks(&w, 150);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 2);
}
END_TEST

/* Not managed, or only observed: nothing is written of it, whoever sets its balloon. */
START_TEST(wish_about_a_guest_that_is_left_alone_is_not_written)
{
	config.act = _i;
	setup_pool(MIB(2000));
	world_capped(&w, 2, MIB(500), MIB(500), &none);
	w.changes[0].attrs.act = !_i;
	world_ticks(&w, 50);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(250);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 1);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

/* Somebody else has set VM 2's balloon; it has not moved yet. */
static void overruled(uint64_t target)
{
	w.results[w.nr_results++] = (struct engine_result){ .id = 2, .seq = 7, .error = -ESTALE };
	world_vm(&w, 2)->target = target;
	world_vm(&w, 2)->pending_seq = 0;
}

START_TEST(a_target_that_somebody_else_set_is_not_overwritten_by_a_gift_before_it_moved)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(640), &none); /* free 60: in the band */
	world_ticks(&w, 50);
	w.pool.size = MIB(2000);
	overruled(MIB(250));
	world_vm(&w, 2)->speed = MIB(1);
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, world_actions(&w, 2, ENGINE_WISH));
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 1);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(250));
	ck_assert_uint_eq(world_vm(&w, 2)->actual, MIB(250));
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_NONE);
}
END_TEST

START_TEST(a_cut_that_somebody_else_overruled_is_not_taken_back_and_their_word_is_the_ceiling)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(500), &none);
	world_vm(&w, 2)->anon = MIB(100);
	world_vm(&w, 2)->speed = MIB(1);
	world_ticks(&w, 50);
	w.pool.size = MIB(500); /* need 40 */
	while (!world_action(&w, 2))
		world_tick(&w);
	ck_assert_uint_lt(world_action(&w, 2)->target, MIB(480));
	w.pool.size = MIB(1000);
	overruled(MIB(490));
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1 + world_actions(&w, 2, ENGINE_WISH));
	ck_assert_uint_eq(world_vm(&w, 2)->actual, MIB(490));
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(490));
}
END_TEST

/* Its balloon was there before that was told. */
START_TEST(a_word_that_the_guest_has_followed_when_it_is_told_is_the_ceiling_all_the_same)
{
	for (int cut = 0; cut <= 1; cut++) {
		config.loosens = false;
		setup_pool(MIB(1000));
		if (cut)
			world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(500), &none);
		else
			world_capped(&w, 2, MIB(500), MIB(300), &none);
		if (!cut) /* free 60: in the band */
			world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(640), &none);
		world_vm(&w, 2)->anon = MIB(100);
		world_ticks(&w, 50);
		w.pool.size = cut ? MIB(500) : MIB(1000);
		while (cut && !world_action(&w, 2))
			world_tick(&w);
		w.pool.size = MIB(2000);
		overruled(cut ? MIB(490) : MIB(250));
		world_vm(&w, 2)->actual = world_vm(&w, 2)->resident = world_vm(&w, 2)->target;
		world_ticks(&w, 200);
		ck_assert_uint_eq(
			world_vm(&w, 2)->commands, cut + world_actions(&w, 2, ENGINE_WISH));
		ck_assert_uint_eq(world_view(&w, 2).ceiling, cut ? MIB(490) : MIB(250));
		ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 1);
		if (!cut)
			teardown();
	}
}
END_TEST

/* However short hold times are. */
START_TEST(a_word_of_somebody_else_s_stands_until_the_guest_rests_there)
{
	uint64_t rests;

	config.loosens = false;
	config.hold_us = SECOND_US / 10;
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(500), &none);
	world_vm(&w, 2)->anon = MIB(100);
	world_ticks(&w, 50);
	w.pool.size = MIB(500);
	while (!world_action(&w, 2))
		world_tick(&w);
	overruled(MIB(495)); /* more than it is to have */
	rests = w.now + config.rest_us;
	while (w.now + w.tick_us < rests) {
		world_tick(&w);
		ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	}
	world_ticks(&w, 20);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(495));
	ck_assert_uint_gt(world_vm(&w, 2)->commands, 1); /* and then it gives */
}
END_TEST

START_TEST(a_guest_that_rests_where_somebody_else_set_it_is_held_for_that_no_longer)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(500), &none);
	world_vm(&w, 2)->anon = MIB(100);
	world_ticks(&w, 50);
	w.pool.size = MIB(500);
	while (!world_action(&w, 2))
		world_tick(&w);
	w.pool.size = MIB(1000);
	overruled(MIB(490));
	world_ticks(&w, 30);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_CONTENDED);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	world_tick(&w); /* it moved with the first of them, 3 s ago */
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_NONE);
	ck_assert_ptr_nonnull(world_action(&w, 2));
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_WISH);
}
END_TEST

START_TEST(a_guest_that_never_rests_after_somebody_else_set_it_is_asked_again_after_a_hold_time)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(500), &none);
	world_vm(&w, 2)->anon = MIB(100);
	world_ticks(&w, 50);
	w.pool.size = MIB(500);
	while (!world_action(&w, 2))
		world_tick(&w);
	overruled(MIB(500));
	for (uint64_t until = w.now + config.hold_us + config.rest_us; w.now + w.tick_us < until;) {
		world_vm(&w, 2)->actual = world_vm(&w, 2)->target ^= 1;
		world_tick(&w);
		ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
		ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_CONTENDED);
	}
	world_ticks(&w, 3);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 2);
}
END_TEST

START_TEST(what_somebody_else_sets_before_ballast_did_is_only_what_is_found)
{
	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(500), &none);
	world_ticks(&w, 50);
	overruled(MIB(400));
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(400));
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 0);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_NONE);
}
END_TEST

START_TEST(actual_above_a_recorded_ceiling_becomes_the_ceiling)
{
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(300), MIB(300), &none);
	world_vm(&w, 2)->maximum = MIB(500);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(400);
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(400));
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

START_TEST(guest_found_above_its_recorded_ceiling_is_cut_from_there_before_it_rested)
{
	struct memcg_knobs zero = soft(0);

	setup_pool(MIB(500));
	world_capped(&w, 2, MIB(300), MIB(480), &zero);
	w.changes[0].attrs.maximum = MIB(500);
	world_vm(&w, 2)->anon = 0;
	world_tick(&w);
	ck_assert_ptr_nonnull(world_action(&w, 2));
	ck_assert_uint_eq(world_action(&w, 2)->ceiling, MIB(480));
}
END_TEST

START_TEST(a_paused_guest_above_its_target_is_not_asked_once_more)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(640), &none);
	world_ticks(&w, 50);
	world_state(&w, 2, ENGINE_VM_PAUSED);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(350);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

START_TEST(in_observe_mode_nobody_is_asked_once_more)
{
	config.act = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_ticks(&w, 50);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(350);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_CONTENDED), 1);
}
END_TEST

START_TEST(a_hung_guest_does_not_rest)
{
	struct memcg_knobs zero = soft(0);

	setup_pool(MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(800), MIB(500), &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(480), &none);
	world_vm(&w, 2)->speed = 0;
	world_ticks(&w, 5);
	world_state(&w, 2, ENGINE_VM_NOT_ANSWERING);
	world_ticks(&w, 100); /* its actual stands still above its target, and says nothing */
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_CONTENDED), 0);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
}
END_TEST

START_TEST(a_rest_at_the_ceiling_is_no_wish)
{
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_vm(&w, 2)->maximum = MIB(800);
	world_ticks(&w, 60); /* loosened to 500, and there it rests */
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 0);
}
END_TEST

START_TEST(a_rest_a_granule_above_the_ceiling_is_let_be)
{
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_vm(&w, 2)->maximum = MIB(800);
	world_ticks(&w, 60);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	world_vm(&w, 2)->actual = MIB(501) - 1;
	world_vm(&w, 2)->stops_at = MIB(501) - 1;
	world_ticks(&w, 60); /* as good as at it */
	ck_assert_uint_eq(world_view(&w, 2).target, MIB(500));
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(501);
	world_ticks(&w, 60);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	ck_assert_uint_eq(world_view(&w, 2).target, MIB(501));
}
END_TEST

START_TEST(a_balloon_that_deflates_slowly_wishes_nothing)
{
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_vm(&w, 2)->speed = 0;
	for (uint64_t actual = 300; actual < 500; actual += 50) {
		world_vm(&w, 2)->actual = MIB(actual);
		world_ticks(&w, 60); /* rests below the 500 it was given */
	}
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 0);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(500));
}
END_TEST

START_TEST(actual_rests_once_it_stood_still_for_the_time_of_a_rest)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	w.tick_us = SECOND_US / 4;
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(640), &none);
	world_ticks(&w, 20);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(301);
	world_ticks(&w, 12); /* 2.75 s after it was seen to move */
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	world_tick(&w);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	world_ticks(&w, 30); /* a granule above: and then it is let be */
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_CONTENDED), 1);
}
END_TEST

START_TEST(a_contended_vm_may_give_with_the_tick_at_which_its_hold_time_is_over)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(640), &none);
	world_ticks(&w, 50);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(350);
	while (!world_count(&w, ENGINE_EVENT_CONTENDED))
		world_tick(&w);
	world_ticks(&w, 99);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_CONTENDED);
	world_tick(&w);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_NONE);
	ck_assert_int_eq(world_view(&w, 2).state, ENGINE_VM_RUNNING);
}
END_TEST

START_TEST(a_guest_that_was_paused_rests_where_it_rested)
{
	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(640), &none); /* free 60: in the band */
	world_ticks(&w, 50);
	world_state(&w, 2, ENGINE_VM_PAUSED);
	world_ticks(&w, 5);
	world_state(&w, 2, ENGINE_VM_RUNNING);
	w.pool.size = MIB(2000);
	world_tick(&w); /* so it is given something at once */
	ck_assert_ptr_nonnull(world_action(&w, 2));
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_GIFT);
}
END_TEST

/* Where the balloon of one that starts is tells nothing; where one that hung went, too. */
START_TEST(a_guest_that_started_or_hung_rests_anew)
{
	const enum engine_vm_state state = _i ? ENGINE_VM_NOT_ANSWERING : ENGINE_VM_ARRIVING;
	uint64_t begun;

	config.loosens = false;
	setup_pool(MIB(1000));
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(440), &none);
	w.pool.size = MIB(800); /* free 60: in the band */
	world_ticks(&w, 50);
	world_state(&w, 2, state);
	world_tick(&w);
	begun = w.now;
	world_state(&w, 2, ENGINE_VM_RUNNING);
	world_tick(&w);
	begun = _i ? w.now : begun;
	w.pool.size = MIB(4000);
	for (unsigned int i = 0; i < 100 && !world_action(&w, 2); i++)
		world_tick(&w);
	ck_assert_uint_eq(w.now - begun, config.rest_us);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine_rest");
	TCase *t = tcase_create("rest");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_rest_above_the_target_is_asked_once_more_and_then_let_be);
	tcase_add_loop_test(
		t, rest_above_the_target_of_a_balloon_that_deflates_on_oom_is_distress, 0, 2);
	tcase_add_test(t, a_rest_less_than_a_granule_above_the_target_is_at_the_target);
	tcase_add_test(
		t, a_rest_a_granule_above_the_target_of_a_balloon_that_deflates_on_oom_is_distress);
	tcase_add_test(t, what_is_asked_once_more_is_not_below_a_min_that_was_raised);
	tcase_add_test(t, what_is_asked_once_more_is_at_most_the_ceiling);
	tcase_add_test(t, guest_that_must_keep_more_than_its_ceiling_is_not_asked_once_more);
	tcase_add_test(t, a_guest_that_is_not_managed_is_not_asked_once_more);
	tcase_add_test(t, a_guest_that_is_not_managed_is_told_nothing_when_it_starts_over);
	tcase_add_test(t, a_rest_above_the_ceiling_is_neither_promised_nor_taken_away);
	tcase_add_test(t, a_rebooted_guest_whose_loosening_got_lost_is_told_its_ceiling_again);
	tcase_add_test(t,
		guest_that_rebooted_below_its_target_is_told_another_one_that_its_driver_takes_up);
	tcase_add_test(t, guest_that_rebooted_just_a_granule_below_its_target_is_told_another_one);
	tcase_add_test(t, a_rest_above_a_max_below_the_ceiling_is_no_wish);
	tcase_add_test(t, a_rest_a_granule_below_the_lowest_target_is_a_wish_and_less_is_not);
	tcase_add_loop_test(
		t, somebody_elses_wish_is_put_on_record_with_a_target_that_changes_nothing, 0, 2);
	tcase_add_test(t, wish_whose_record_was_refused_is_put_on_record_after_a_hold_time);
	tcase_add_loop_test(t, wish_about_a_guest_that_is_left_alone_is_not_written, 0, 2);
	tcase_add_test(
		t, a_target_that_somebody_else_set_is_not_overwritten_by_a_gift_before_it_moved);
	tcase_add_test(t,
		a_cut_that_somebody_else_overruled_is_not_taken_back_and_their_word_is_the_ceiling);
	tcase_add_test(
		t, a_word_that_the_guest_has_followed_when_it_is_told_is_the_ceiling_all_the_same);
	tcase_add_test(t, a_word_of_somebody_else_s_stands_until_the_guest_rests_there);
	tcase_add_test(t, a_guest_that_rests_where_somebody_else_set_it_is_held_for_that_no_longer);
	tcase_add_test(t,
		a_guest_that_never_rests_after_somebody_else_set_it_is_asked_again_after_a_hold_time);
	tcase_add_test(t, what_somebody_else_sets_before_ballast_did_is_only_what_is_found);
	tcase_add_test(t, actual_above_a_recorded_ceiling_becomes_the_ceiling);
	tcase_add_test(
		t, guest_found_above_its_recorded_ceiling_is_cut_from_there_before_it_rested);
	tcase_add_test(t, a_paused_guest_above_its_target_is_not_asked_once_more);
	tcase_add_test(t, in_observe_mode_nobody_is_asked_once_more);
	tcase_add_test(t, a_hung_guest_does_not_rest);
	tcase_add_test(t, a_rest_at_the_ceiling_is_no_wish);
	tcase_add_test(t, a_rest_a_granule_above_the_ceiling_is_let_be);
	tcase_add_test(t, a_balloon_that_deflates_slowly_wishes_nothing);
	tcase_add_test(t, actual_rests_once_it_stood_still_for_the_time_of_a_rest);
	tcase_add_test(t, a_guest_that_was_paused_rests_where_it_rested);
	tcase_add_loop_test(t, a_guest_that_started_or_hung_rests_anew, 0, 2);
	tcase_add_test(t, a_contended_vm_may_give_with_the_tick_at_which_its_hold_time_is_over);
	suite_add_tcase(s, t);
	return suite_run(s);
}
