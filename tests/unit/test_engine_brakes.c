/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine over a small world: pause, release, how fast it may ask; and field cases of what is
 * free.
 */
#include <config.h>

#include "policy/engine.h"

#include <check.h>
#include <errno.h>

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

static struct engine_vm_attrs attrs_of(uint64_t id)
{
	return world_view(&w, id).attrs;
}

static void set_attrs(uint64_t id, struct engine_vm_attrs attrs)
{
	world_change(
		&w, &(struct engine_change){ .type = ENGINE_VM_ATTRS, .id = id, .attrs = attrs });
}

static void pause_vm(uint64_t id, bool paused)
{
	struct engine_vm_attrs attrs = attrs_of(id);

	attrs.paused = paused;
	set_attrs(id, attrs);
}

static void release(uint64_t id)
{
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_RELEASE, .id = id });
}

/* Two VMs in a pool that is too small: both are asked. */
static void squeeze(void)
{
	world_open(&w, &config, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(800), MIB(500), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(490), &none);
}

START_TEST(a_paused_guest_is_not_asked_and_another_gives_its_part)
{
	squeeze();
	w.changes[0].attrs.paused = true;
	world_ticks(&w, 60);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_PAUSED);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(50));
	pause_vm(2, false);
	world_tick(&w);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_NONE);
}
END_TEST

START_TEST(pausing_ends_a_running_ask_and_gives_back_what_was_not_taken)
{
	squeeze();
	world_ticks(&w, 2);
	ck_assert_uint_gt(world_view(&w, 2).owed, 0);
	ck_assert_uint_lt(world_vm(&w, 2)->pending, MIB(500));
	pause_vm(2, true);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
	ck_assert_uint_ge(world_action(&w, 2)->target, world_vm(&w, 2)->actual);
}
END_TEST

START_TEST(a_paused_guest_is_fed_and_gets_gifts)
{
	config.loosens = false;
	config.bounds.margin_percent = 10;
	config.bounds.margin_at_least = MIB(256);
	world_open(&w, &config, MIB(8192));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(4096), MIB(790), &none);
	w.changes[0].attrs.ceiling = MIB(4096);
	w.changes[0].attrs.paused = true;
	w.vm[0].actual = w.vm[0].target = MIB(790);
	w.vm[0].anon = MIB(700);
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(4096));
}
END_TEST

START_TEST(a_paused_guest_above_its_target_is_left_there)
{
	config.loosens = false;
	world_open(&w, &config, MIB(1000));
	w.tick_us = SECOND_US / 4;
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(300), &none);
	w.changes[0].attrs.ceiling = MIB(500);
	w.vm[0].actual = w.vm[0].target = MIB(300);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(700), MIB(640), &none); /* in the band */
	world_ticks(&w, 20);
	pause_vm(2, true);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(350);
	world_ticks(&w, 40);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

START_TEST(a_released_guest_gets_its_ceiling_and_is_not_asked_for_the_hold_time)
{
	config.release_us = 20 * SECOND_US;
	config.loosens = false;
	squeeze();
	world_ticks(&w, 40);
	ck_assert_uint_gt(world_vm(&w, 2)->commands, 0);
	release(2);
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_RELEASE);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(800));
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_RELEASED);
	world_vm(&w, 2)->resident = MIB(600); /* it takes it, and the pool is short */
	world_ticks(&w, 150);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(800));
	world_ticks(&w, 60);
	ck_assert_int_ne(world_view(&w, 2).hold, RECLAIM_HOLD_RELEASED);
}
END_TEST

START_TEST(a_release_waits_for_a_guest_that_cannot_be_told_now)
{
	config.loosens = false;
	squeeze();
	world_ticks(&w, 10);
	ck_assert_uint_gt(world_vm(&w, 2)->commands, 0);
	world_vm(&w, 2)->hung = true;
	world_state(&w, 2, ENGINE_VM_NOT_ANSWERING);
	release(2);
	world_ticks(&w, 20);
	ck_assert_uint_lt(world_view(&w, 2).target, MIB(800));
	world_vm(&w, 2)->hung = false;
	world_state(&w, 2, ENGINE_VM_RUNNING);
	world_ticks(&w, 2);
	ck_assert_uint_eq(world_view(&w, 2).target, MIB(800));
}
END_TEST

/*
 * The balloon of a stopped QEMU goes on to where it was told when that wakes. What it was told
 * since came to nothing: it was not called, or is tried again only after a hold time.
 */
static void hang_in_the_middle_of_a_cut(void)
{
	squeeze();
	world_ticks(&w, 10);
	ck_assert_uint_gt(world_vm(&w, 2)->actual, world_vm(&w, 2)->target + MIB(100));
	ck_assert_uint_lt(world_vm(&w, 2)->actual, MIB(800));
	world_vm(&w, 2)->hung = true;
	world_vm(&w, 2)->speed = 0;
	world_state(&w, 2, ENGINE_VM_NOT_ANSWERING);
	world_tick(&w);
}

static void wake_and_refuse(uint64_t seq)
{
	struct world_vm *vm = world_vm(&w, 2);

	vm->hung = false;
	vm->speed = MIB(10);
	vm->pending_seq = 0;
	w.results[w.nr_results++] = (struct engine_result){ .id = 2, .seq = seq, .error = -110 };
	world_state(&w, 2, ENGINE_VM_RUNNING);
	world_ticks(&w, 90);
}

START_TEST(a_cut_that_goes_on_after_a_hang_and_a_pause_is_nobodys_wish)
{
	uint64_t seq;

	hang_in_the_middle_of_a_cut();
	pause_vm(2, true);
	world_tick(&w);
	ck_assert_ptr_nonnull(world_action(&w, 2));
	seq = world_action(&w, 2)->seq;
	world_ticks(&w, 60); /* longer than a balloon needs to rest */
	wake_and_refuse(seq);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 0);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(800));
}
END_TEST

START_TEST(a_release_that_is_refused_is_tried_again)
{
	config.loosens = false;
	squeeze();
	world_ticks(&w, 40);
	world_vm(&w, 2)->refuses = true;
	release(2);
	world_ticks(&w, 20);
	world_vm(&w, 2)->refuses = false;
	world_ticks(&w, 150);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(800));
}
END_TEST

/* 2 has a target of 200 of 300 MiB and uses 100; the pool has none to give away. */
static void capped_in_the_band(void)
{
	config.loosens = false;
	config.release_us = 2 * SECOND_US;
	world_open(&w, &config, MIB(1000));
	world_capped(&w, 2, MIB(300), MIB(200), &none);
	world_vm(&w, 2)->resident = MIB(100);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(900), MIB(840), &none);
	world_ticks(&w, 40);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}

START_TEST(a_release_promises_what_lies_beyond_the_target_that_it_had)
{
	struct engine_pool_view p;

	capped_in_the_band();
	release(2);
	world_ticks(&w, 2);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(300));
	engine_pool_view(w.engine, &p);
	ck_assert_uint_eq(p.gifts, MIB(100));
}
END_TEST

START_TEST(a_release_that_could_not_be_told_is_over_with_the_tick_of_its_hold_time)
{
	for (unsigned int early = 0; early < 2; early++) {
		capped_in_the_band();
		world_state(&w, 2, ENGINE_VM_PAUSED);
		release(2);
		world_ticks(&w, early ? 19 : 20);
		world_state(&w, 2, ENGINE_VM_RUNNING);
		world_tick(&w); /* 1.9 and 2 s after it */
		ck_assert_uint_eq(world_vm(&w, 2)->commands, early);
		if (!early)
			world_close(&w);
	}
}
END_TEST

/* So that another time than those of holds runs on: what its agent says of what it lacks. */
static void one_that_lacks_memory(uint64_t usage)
{
	config.loosens = false;
	world_open(&w, &config, MIB(1000));
	world_capped(&w, 2, MIB(500), usage, &none);
	world_vm(&w, 2)->tells = true;
	world_vm(&w, 2)->refaults = MIB(1);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(900), MIB(940) - usage, &none); /* in the band */
	world_ticks(&w, 40);
}

/* The hold is over with the last of so many ticks, and not before. */
static void check_held(enum reclaim_hold hold, unsigned int ticks)
{
	world_ticks(&w, ticks - 1);
	ck_assert_int_eq(world_view(&w, 2).hold, hold);
	world_tick(&w);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_NONE);
}

START_TEST(a_hold_ends_with_the_tick_of_its_time_whatever_else_runs_on)
{
	config.release_us = 2 * SECOND_US;
	one_that_lacks_memory(MIB(500));
	release(2);
	world_tick(&w);
	check_held(RECLAIM_HOLD_RELEASED, 20);
	world_vm(&w, 2)->speed = 0;
	world_reclaim(&w, 7, 2, MIB(4));
	while (!world_count(&w, ENGINE_EVENT_ASK_FAILED))
		world_tick(&w);
	check_held(RECLAIM_HOLD_FAILED, 100);
	world_close(&w);
	one_that_lacks_memory(MIB(300));
	world_vm(&w, 2)->actual = world_vm(&w, 2)->stops_at = MIB(350);
	while (!world_count(&w, ENGINE_EVENT_CONTENDED))
		world_tick(&w);
	check_held(RECLAIM_HOLD_CONTENDED, 100);
	world_close(&w);
	one_that_lacks_memory(MIB(300));
	world_vm(&w, 2)->swap_in += MIB(2);
	w.pool.size += MIB(400); /* all that it misses */
	world_tick(&w);
	check_held(RECLAIM_HOLD_FED, 100);
}
END_TEST

START_TEST(a_guest_that_was_never_touched_is_released_without_a_command)
{
	config.wm_low = config.wm_min;
	world_open(&w, &config, MIB(4000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(800), MIB(500), &none);
	world_tick(&w);
	release(2);
	world_ticks(&w, 5);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	release(99);
	world_tick(&w);
	ck_assert_int_eq(w.error, -ENOENT);
}
END_TEST

/* All that was asked of VMs after so many seconds. */
static uint64_t asked_after(unsigned int seconds)
{
	uint64_t asked = 0;

	for (unsigned int i = 0; i < seconds * 10; i++) {
		world_tick(&w);
		for (size_t k = 0; k < w.out.nr_actions; k++)
			if (w.out.actions[k].reason.type == ENGINE_CUT)
				asked += pages_sub(w.out.actions[k].reason.from < MIB(800)
							   ? w.out.actions[k].reason.from
							   : w.out.actions[k].reason.usage,
					w.out.actions[k].target);
	}
	return asked;
}

/* libvirtd went, or a snapshot began: what the guest can give is what it could before. */
START_TEST(a_target_that_never_reached_its_guest_is_no_failure_of_it)
{
	static const int errors[] = { -ENOTCONN, -EBUSY, -ECANCELED };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct reclaim_plan plan;

		if (i > 0)
			world_close(&w);
		squeeze();
		for (unsigned int tick = 0; tick < 5 && !world_action(&w, 2); tick++)
			world_tick(&w);
		ck_assert_ptr_nonnull(world_action(&w, 2));
		world_vm(&w, 2)->pending_seq = 0;
		w.results[w.nr_results++] = (struct engine_result){
			.id = 2, .seq = world_action(&w, 2)->seq, .error = errors[i]
		};
		world_tick(&w);
		ck_assert_int_ne(world_view(&w, 2).hold, RECLAIM_HOLD_FAILED);
		ck_assert_uint_eq(world_view(&w, 2).failures, 0);
		world_ticks(&w, 110);
		ck_assert_int_eq(engine_plan(w.engine, 2, MIB(100), &plan), 0);
		ck_assert_uint_ge(plan.gain, MIB(99));
	}
}
END_TEST

START_TEST(no_guest_is_asked_faster_than_its_rate)
{
	squeeze();
	w.changes[0].attrs.max_rate = w.changes[1].attrs.max_rate = MIB(2);
	/* A second's worth at once, and then by the second: 2 x (2 + 5 x 2) MiB at most. */
	ck_assert_uint_le(asked_after(5), MIB(24));
	ck_assert_uint_gt(world_vm(&w, 2)->commands, 0);
	asked_after(60);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(50));
}
END_TEST

START_TEST(all_guests_together_are_asked_no_faster_than_the_hosts_rate)
{
	config.max_rate = MIB(4);
	squeeze();
	ck_assert_uint_le(asked_after(5), MIB(24));
	asked_after(60);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(50));
}
END_TEST

START_TEST(a_rate_below_a_granule_still_asks_a_granule_now_and_then)
{
	config.max_rate = MIB(1) / 4;
	squeeze();
	asked_after(9);
	ck_assert_uint_ge(world_vm(&w, 2)->commands + world_vm(&w, 3)->commands, 1);
	ck_assert_uint_le(world_vm(&w, 2)->commands + world_vm(&w, 3)->commands, 3);
}
END_TEST

/* One with a rate whose balloon does not move, and a job for it. */
static void one_with_a_rate(uint64_t rate, uint64_t pages)
{
	world_open(&w, &config, MIB(4000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(400), &none);
	w.changes[0].attrs.max_rate = rate;
	world_vm(&w, 2)->speed = 0;
	world_ticks(&w, 40);
	world_reclaim(&w, 7, 2, pages);
	world_tick(&w);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
}

START_TEST(who_is_asked_at_a_rate_has_the_time_that_it_takes_at_that_rate)
{
	one_with_a_rate(MIB(2), MIB(2)); /* a second, and 5 s more */
	world_ticks(&w, 59);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 1);
}
END_TEST

START_TEST(the_next_tick_is_when_a_rate_leaves_a_granule_and_no_sooner)
{
	uint64_t told;

	one_with_a_rate(300, MIB(4)); /* a granule are 256: 44 are left */
	told = w.now;
	world_tick(&w); /* and 30 */
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	ck_assert_uint_eq(w.out.next, w.now + 606667);
	w.tick_us = w.out.next - w.now;
	world_tick(&w);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 2);
	ck_assert_uint_eq(w.now, told + 706667);
	world_close(&w);
	one_with_a_rate(MIB(1), MIB(4)); /* a granule at once: nothing is waited for */
	ck_assert_uint_gt(w.out.next, w.now + 1);
}
END_TEST

START_TEST(a_rate_that_is_absurd_is_refused)
{
	struct engine_vm_attrs attrs;

	squeeze();
	world_tick(&w);
	attrs = attrs_of(2);
	attrs.max_rate = UINT64_MAX;
	set_attrs(2, attrs);
	world_tick(&w);
	ck_assert_int_eq(w.error, -EINVAL);
	ck_assert_uint_eq(attrs_of(2).max_rate, 0);
}
END_TEST

START_TEST(any_rate_that_memory_can_have_is_taken)
{
	struct engine_vm_attrs attrs;

	squeeze();
	world_tick(&w);
	attrs = attrs_of(2);
	attrs.max_rate = PAGES_UNLIMITED;
	set_attrs(2, attrs);
	world_tick(&w);
	ck_assert_int_eq(w.error, 0);
}
END_TEST

/*
 * Less is free than was promised. The difference is signed, nobody gets a gift, and the need is
 * what is missing to wm_high.
 */
START_TEST(BR_82_free_below_what_was_promised_is_a_need_and_no_gift)
{
	struct engine_pool_view view;

	config.loosens = false;
	world_open(&w, &config, MIB(16384));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(1024), MIB(897), &none);
	w.changes[0].attrs.ceiling = MIB(1024);
	w.vm[0].actual = w.vm[0].target = MIB(897);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(15000), MIB(14996), &none); /* free 491 MiB */
	world_tick(&w);
	engine_pool_view(w.engine, &view);
	ck_assert_int_eq(view.free, (int64_t)MIB(491));
	ck_assert_uint_eq(view.need, view.wm_high - MIB(491));
	world_ticks(&w, 4);
	ck_assert_uint_le(world_vm(&w, 2)->target, MIB(897));
}
END_TEST

/* Field case BR-112: figures that were right before the ask do not end it. */
START_TEST(an_ask_is_not_done_by_figures_of_before_it)
{
	squeeze();
	world_vm(&w, 2)->delay = world_vm(&w, 3)->delay = 30; /* ticks until it is taken up */
	world_ticks(&w, 20);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_CAME), 0);
	ck_assert_uint_gt(world_view(&w, 2).owed + world_view(&w, 3).owed, 0);
}
END_TEST

/*
 * Field case BR-122: merged pages count with everyone who has them, so that free does not fall
 * when they are written to.
 */
START_TEST(undone_merging_of_pages_is_no_surprise)
{
	int64_t merged;

	world_open(&w, &config, 0);
	w.pool = (struct engine_pool){ .known = true,
		.host = true,
		.size = MIB(65536),
		.available = MIB(44000), /* 20 GiB are shared */
		.reserve = MIB(2048) };
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(32768), MIB(20480), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(32768), MIB(20480), &none);
	world_ticks(&w, 5);
	merged = world_free(&w);
	ck_assert_int_eq(merged, (int64_t)MIB(65536 - 2048 - 40960));
	w.pool.available = MIB(24576); /* none are */
	world_ticks(&w, 5);
	ck_assert_int_eq(world_free(&w), merged);
	ck_assert_uint_eq(world_vm(&w, 2)->commands + world_vm(&w, 3)->commands, 0);
}
END_TEST

/*
 * BR-97: 300 come where 150 were needed. The need is taken anew: nothing more is asked of anyone,
 * and nobody in the second pass pays for it a second time.
 */
START_TEST(more_that_came_than_was_needed_ends_the_need_for_all)
{
	struct memcg_knobs soft_limit = none;
	struct engine_pool_view p;
	size_t commands;

	world_open(&w, &config, MIB(4000)); /* low 200, high 320 */
	soft_limit.soft_limit = MIB(500);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(2500), MIB(2000), &soft_limit);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(2500), MIB(1830), &none); /* free 170: need 150 */
	world_tick(&w);
	engine_pool_view(w.engine, &p);
	ck_assert_uint_eq(p.need, MIB(150));
	commands = world_vm(&w, 2)->commands;
	/* All at once, and twice what was asked. */
	world_vm(&w, 2)->resident = MIB(1700);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(1744);
	world_ticks(&w, 3);
	engine_pool_view(w.engine, &p);
	ck_assert_uint_eq(p.need, 0);
	ck_assert_uint_eq(p.owed, 0);
	ck_assert_int_eq(p.free, (int64_t)MIB(470));
	world_ticks(&w, 100);
	for (size_t i = 0; i < 2; i++)
		ck_assert_uint_eq(world_view(&w, 2 + i).owed, 0);
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
	/* After it only the way back. */
	ck_assert_uint_le(world_vm(&w, 2)->commands, commands + 2);
	ck_assert_uint_ge(world_vm(&w, 2)->target, MIB(1744));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine_brakes");
	TCase *t = tcase_create("brakes");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_paused_guest_is_not_asked_and_another_gives_its_part);
	tcase_add_test(t, pausing_ends_a_running_ask_and_gives_back_what_was_not_taken);
	tcase_add_test(t, a_paused_guest_is_fed_and_gets_gifts);
	tcase_add_test(t, a_paused_guest_above_its_target_is_left_there);
	tcase_add_test(t, a_released_guest_gets_its_ceiling_and_is_not_asked_for_the_hold_time);
	tcase_add_test(t, a_release_waits_for_a_guest_that_cannot_be_told_now);
	tcase_add_test(t, a_cut_that_goes_on_after_a_hang_and_a_pause_is_nobodys_wish);
	tcase_add_test(t, a_release_that_is_refused_is_tried_again);
	tcase_add_test(t, a_release_promises_what_lies_beyond_the_target_that_it_had);
	tcase_add_test(t, a_release_that_could_not_be_told_is_over_with_the_tick_of_its_hold_time);
	tcase_add_test(t, a_hold_ends_with_the_tick_of_its_time_whatever_else_runs_on);
	tcase_add_test(t, a_guest_that_was_never_touched_is_released_without_a_command);
	tcase_add_test(t, a_target_that_never_reached_its_guest_is_no_failure_of_it);
	tcase_add_test(t, no_guest_is_asked_faster_than_its_rate);
	tcase_add_test(t, all_guests_together_are_asked_no_faster_than_the_hosts_rate);
	tcase_add_test(t, a_rate_below_a_granule_still_asks_a_granule_now_and_then);
	tcase_add_test(t, who_is_asked_at_a_rate_has_the_time_that_it_takes_at_that_rate);
	tcase_add_test(t, the_next_tick_is_when_a_rate_leaves_a_granule_and_no_sooner);
	tcase_add_test(t, a_rate_that_is_absurd_is_refused);
	tcase_add_test(t, any_rate_that_memory_can_have_is_taken);
	tcase_add_test(t, BR_82_free_below_what_was_promised_is_a_need_and_no_gift);
	tcase_add_test(t, an_ask_is_not_done_by_figures_of_before_it);
	tcase_add_test(t, more_that_came_than_was_needed_ends_the_need_for_all);
	tcase_add_test(t, undone_merging_of_pages_is_no_surprise);
	suite_add_tcase(s, t);
	return suite_run(s);
}
