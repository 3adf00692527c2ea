/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine over a small world: what it asks, of whom, how much, and what it gives back. */
#include <config.h>

#include "policy/charge.h"
#include "policy/engine.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/suite.h"
#include "tests/unit/world.h"

static struct world w;

static void teardown(void)
{
	world_close(&w);
}

START_TEST(nobody_is_asked_while_free_is_at_wm_low)
{
	world_three_guests(&w, MIB(350), MIB(300), MIB(300)); /* free 50 MiB: exactly wm_low */
	world_ticks(&w, 20);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
	world_vm(&w, 3)->resident += 1;
	world_tick(&w);
	ck_assert_uint_eq(w.out.nr_actions, 1);
}
END_TEST

START_TEST(the_last_of_two_words_to_a_vm_in_one_tick_is_told)
{
	struct memcg_knobs min = soft(MIB(480));

	world_open_pool(&w, MIB(1000));
	min.min = MIB(480);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(490), &min); /* gives all it may, first */
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(500), MIB(490), &none);
	world_vm(&w, 2)->speed = world_vm(&w, 3)->speed = 0;
	world_tick(&w);
	ck_assert_uint_eq(w.out.nr_actions, 2);
	ck_assert_uint_eq(w.out.actions[1].id, 3);
	min = none;
	min.min = MIB(1);
	world_knobs(&w, 3, &min); /* what it was asked ends, and it is asked anew */
	world_tick(&w);
	ck_assert_uint_eq(w.out.nr_actions, 1);
	ck_assert_uint_eq(w.out.actions[0].id, 3);
	ck_assert_int_eq(w.out.actions[0].reason.type, ENGINE_CUT);
}
END_TEST

START_TEST(a_vm_that_is_charged_page_by_page_is_seen_and_not_booked)
{
	struct memcg *leaf = NULL;
	struct memcg *refused;

	world_three_guests(&w, MIB(300), MIB(300), MIB(300));
	world_tick(&w);
	ck_assert_int_eq(engine_page(w.engine, 777, &leaf), -ENOENT);
	ck_assert_int_eq(engine_page(w.engine, 3, &leaf), 0);
	ck_assert_uint_eq(page_counter_read(&leaf->memory), 0);
	ck_assert_int_eq(charge_direct(leaf, 5, &refused), 0);
	world_tick(&w);
	ck_assert_uint_eq(leaf->seen, 5); /* what it has so far, told once */
	world_vm(&w, 3)->resident = CHARGE_EVENTS_TARGET;
	world_ticks(&w, 2);
	ck_assert_uint_eq(page_counter_read(&leaf->memory), 5);
	ck_assert_uint_eq(leaf->seen, CHARGE_EVENTS_TARGET); /* its sample's word */
	ck_assert_int_eq(uncharge_direct(leaf, 5), 0);
	/* Once more: what it has is not the engine's to take. */
	ck_assert_int_eq(charge_direct(leaf, 7, &refused), 0);
	ck_assert_int_eq(engine_page(w.engine, 3, &leaf), 0);
	ck_assert_uint_eq(page_counter_read(&leaf->memory), 7);
	ck_assert_int_eq(uncharge_direct(leaf, 7), 0);
}
END_TEST

/* It was read before the pages were charged that the last drain told of. */
START_TEST(sample_that_is_older_than_what_was_charged_is_set_right_by_the_next_tick)
{
	struct memcg *leaf = NULL;
	struct memcg *refused;

	world_three_guests(&w, MIB(300), 0, MIB(300));
	world_tick(&w);
	ck_assert_int_eq(engine_page(w.engine, 3, &leaf), 0);
	ck_assert_int_eq(charge_direct(leaf, MIB(200), &refused), 0);
	world_tick(&w);
	ck_assert_uint_eq(leaf->seen, MIB(200));
	world_tick(&w); /* its sample says 0 */
	world_tick(&w);
	ck_assert_uint_eq(leaf->seen, MIB(200));
	ck_assert_int_eq(uncharge_direct(leaf, MIB(200)), 0);
}
END_TEST

/* Two groups, a VM each; one is charged page by page and dies with its memory still there. */
START_TEST(a_dead_vms_pages_stay_seen_until_they_are_uncharged_and_its_siblings_have_their_own)
{
	struct memcg_knobs limited = none;
	struct memcg *leaf, *refused;

	limited.max = MIB(350);
	world_open_pool(&w, MIB(1000));
	world_group(&w, 8, MEMCG_ROOT_ID, &none);
	world_group(&w, 9, MEMCG_ROOT_ID, &limited);
	world_add(&w, 3, 8, MIB(500), 0, &none);
	world_add(&w, 4, 9, MIB(500), MIB(300), &none);
	world_tick(&w);
	ck_assert_int_eq(engine_page(w.engine, 3, &leaf), 0);
	css_get(&leaf->css);
	ck_assert_int_eq(charge_direct(leaf, MIB(200) + 5, &refused), 0);
	world_vm(&w, 3)->resident = MIB(200) + 5;
	world_tick(&w);
	world_vm(&w, 3)->gone = true;
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = 3 });
	world_ticks(&w, 20);
	ck_assert_uint_eq(leaf->seen, MIB(200) + 5);
	ck_assert_uint_eq(page_counter_read(&leaf->memory), MIB(200) + 5);
	ck_assert_int_eq(world_free(&w), (int64_t)(MIB(500) - 5));
	ck_assert_int_eq(charge_direct(leaf, 1, &refused), -ENODEV);
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
	/* Some of it goes: seen to the page, however little it is. */
	ck_assert_int_eq(uncharge_direct(leaf, 5), 0);
	world_tick(&w);
	ck_assert_uint_eq(leaf->seen, MIB(200));
	ck_assert_int_eq(uncharge_direct(leaf, 3), 0);
	world_tick(&w);
	ck_assert_uint_eq(leaf->seen, MIB(200) - 3);
	ck_assert_int_eq(uncharge_direct(leaf, MIB(200) - 3), 0);
	css_put(&leaf->css);
	world_ticks(&w, 2);
	ck_assert_int_eq(world_free(&w), (int64_t)MIB(700));
	ck_assert_uint_eq(engine_tree(w.engine)->nr_groups, 4);
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
}
END_TEST

START_TEST(dead_vms_go_one_by_one_as_their_memory_does)
{
	/* Told twice: as they are far from what was seen, and as they are gone. */
	const uint64_t pages = 2 * CHARGE_EVENTS_TARGET;
	struct memcg *leaf[3];

	world_open_pool(&w, MIB(1000));
	for (uint64_t i = 0; i < 3; i++)
		world_add(&w, 3 + i, MEMCG_ROOT_ID, MIB(300), 0, &none);
	world_tick(&w);
	for (uint64_t i = 0; i < 3; i++) {
		ck_assert_int_eq(engine_page(w.engine, 3 + i, &leaf[i]), 0);
		ck_assert_int_eq(charge_over(leaf[i], pages), 0);
		world_vm(&w, 3 + i)->gone = true;
		world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = 3 + i });
	}
	world_ticks(&w, 5);
	ck_assert_uint_eq(engine_tree(w.engine)->nr_groups, 4);
	ck_assert_int_eq(world_free(&w), (int64_t)(MIB(1000) - 3 * pages));
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(uncharge_direct(leaf[(i + 1) % 3], pages), 0);
		world_ticks(&w, 2);
		ck_assert_uint_eq(engine_tree(w.engine)->nr_groups, 3 - i);
		ck_assert_int_eq(world_free(&w), (int64_t)(MIB(1000) - (2 - i) * pages));
	}
}
END_TEST

START_TEST(a_dead_vm_is_told_of_only_where_something_of_its_memory_changes)
{
	const struct charge_seen *charges;
	struct memcg *leaf, *refused;

	world_open_pool(&w, MIB(1000));
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(300), 0, &none);
	world_tick(&w);
	ck_assert_int_eq(engine_page(w.engine, 3, &leaf), 0);
	ck_assert_int_eq(charge_direct(leaf, 5, &refused), 0);
	world_vm(&w, 3)->gone = true;
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = 3 });
	world_ticks(&w, 3);
	ck_assert_uint_eq(engine_charges(w.engine, &charges), 0);
	ck_assert_int_eq(uncharge_direct(leaf, 5), 0);
	ck_assert_uint_eq(engine_charges(w.engine, &charges), 1);
}
END_TEST

START_TEST(a_dead_vm_that_was_never_charged_a_page_goes)
{
	struct memcg *leaf;

	world_open_pool(&w, MIB(1000));
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(300), 0, &none);
	world_tick(&w);
	ck_assert_int_eq(engine_page(w.engine, 3, &leaf), 0);
	world_ticks(&w, 3); /* it is seen to have none */
	world_vm(&w, 3)->gone = true;
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = 3 });
	world_ticks(&w, 3);
	ck_assert_uint_eq(engine_tree(w.engine)->nr_groups, 1);
}
END_TEST

START_TEST(charges_of_who_cannot_be_charged_change_nothing)
{
	const struct charge_seen bad[] = { { 777, 5 }, { 9, 5 }, { MEMCG_ROOT_ID, 5 },
		{ 4, PAGES_UNLIMITED } };
	struct engine_input in = { .charges = bad, .nr_charges = 4 };
	struct engine_output out;

	world_open_pool(&w, MIB(1000));
	world_group(&w, 9, MEMCG_ROOT_ID, &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(500), MIB(300), &none);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(500), MIB(200), &none);
	world_tick(&w);
	in.now = w.now + 1;
	ck_assert_int_eq(engine_tick(w.engine, &in, &out), -EINVAL);
	ck_assert_uint_eq(memcg_find(engine_tree(w.engine), 9)->seen, 0);
	ck_assert_int_eq(
		world_free(&w), (int64_t)MIB(700)); /* 4 is charged by others, who have nothing */
}
END_TEST

START_TEST(guest_under_soft_limit_keeps_all_while_another_is_in_excess)
{
	world_three_guests(&w, MIB(360), MIB(320), MIB(300)); /* free 20: need 60 */
	world_ticks(&w, 100);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(79));
	ck_assert_int_le(world_free(&w), (int64_t)MIB(82));
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
	ck_assert_uint_le(world_usage(world_vm(&w, 2)), MIB(301));
}
END_TEST

START_TEST(without_its_soft_pass_soft_limits_mean_nothing)
{
	struct memcg_knobs limit = soft(MIB(100));
	struct engine_config config;

	for (unsigned int off = 0; off <= 1; off++) {
		world_config(&config);
		config.no_soft_pass = off;
		world_open(&w, &config, MIB(1000));
		world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(490), &limit);
		world_add(&w, 3, MEMCG_ROOT_ID, MIB(500), MIB(490), &none);
		world_ticks(&w, 3);
		ck_assert_uint_eq(world_vm(&w, 3)->commands > 0, off);
		if (!off)
			world_close(&w);
	}
	ck_assert_int_eq(engine_set_config(w.engine, &config), 0);
}
END_TEST

START_TEST(second_pass_takes_from_those_without_limit_only_what_excess_cannot_cover)
{
	world_three_guests(
		&w, MIB(150), MIB(400), MIB(430)); /* need 60: 50 of batch, 10 of spare */
	world_ticks(&w, 100);
	ck_assert_uint_le(world_usage(world_vm(&w, 2)), MIB(101));
	ck_assert_uint_ge(world_usage(world_vm(&w, 2)), MIB(100));
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
	ck_assert_uint_le(world_usage(world_vm(&w, 4)), MIB(421));
	ck_assert_uint_ge(world_usage(world_vm(&w, 4)), MIB(418));
}
END_TEST

START_TEST(a_cut_that_came_is_loosened_to_the_ceiling_of_a_vm_not_in_excess)
{
	world_three_guests(&w, MIB(150), MIB(400), MIB(430));
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 4)->actual, MIB(500));
	ck_assert_uint_eq(world_vm(&w, 4)->target, MIB(500));
	ck_assert_uint_le(world_usage(world_vm(&w, 4)), MIB(421));
}
END_TEST

START_TEST(a_vm_in_excess_keeps_usage_and_headroom_after_its_cut)
{
	uint64_t usage;

	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	world_ticks(&w, 60);
	usage = world_usage(world_vm(&w, 2));
	ck_assert_uint_eq(world_vm(&w, 2)->target, usage + MIB(64));
}
END_TEST

START_TEST(above_wm_high_a_capped_vm_gets_back_to_its_ceiling)
{
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	world_ticks(&w, 60);
	ck_assert(world_view(&w, 2).capped);
	world_vm(&w, 3)->resident = MIB(20);
	world_ticks(&w, 300);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(500));
	ck_assert(!world_view(&w, 2).capped);
}
END_TEST

START_TEST(observe_mode_asks_nobody_but_plans)
{
	struct engine_config config;
	struct memcg_knobs b = soft(MIB(100));
	struct reclaim_plan plan;

	world_config(&config);
	config.act = false;
	world_open(&w, &config, MIB(500));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(490), &b);
	world_ticks(&w, 50);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_int_eq(engine_plan(w.engine, MEMCG_ROOT_ID, MIB(20), &plan), 0);
	ck_assert_uint_eq(plan.gain, MIB(20));
	ck_assert_uint_eq(plan.shares[0].step, 1);
}
END_TEST

START_TEST(partition_over_its_limit_whose_vms_have_none_starts_the_soft_pass)
{
	struct memcg_knobs prod = soft(MIB(400));

	world_open_pool(&w, MIB(1000));
	world_group(&w, 10, MEMCG_ROOT_ID, &prod);
	world_add(&w, 2, 10, MIB(400), MIB(250), &none);
	world_add(&w, 3, 10, MIB(400), MIB(250), &none);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(600), MIB(480), &none);
	world_ticks(&w, 100); /* need 60, excess of /prod 100 */
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
	ck_assert_uint_le(world_usage(world_vm(&w, 2)), MIB(221));
	ck_assert_uint_le(world_usage(world_vm(&w, 3)), MIB(221));
}
END_TEST

START_TEST(the_excess_of_a_partition_is_one_budget)
{
	struct memcg_knobs prod = soft(MIB(470));

	world_open_pool(&w, MIB(1000));
	world_group(&w, 10, MEMCG_ROOT_ID, &prod);
	world_add(&w, 2, 10, MIB(400), MIB(250), &none);
	world_add(&w, 3, 10, MIB(400), MIB(250), &none);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(600), MIB(480), &none);
	world_ticks(&w, 200); /* need 60, excess of /prod 30: the other 30 from all */
	ck_assert_uint_ge(world_view(&w, 10).usage, MIB(400));
	ck_assert_uint_lt(world_usage(world_vm(&w, 4)), MIB(480));
}
END_TEST

START_TEST(all_pinned_ends_in_short_told_once)
{
	world_three_guests(&w, MIB(360), MIB(320), MIB(310));
	for (uint64_t id = 2; id <= 4; id++)
		world_state(&w, id, ENGINE_VM_NO_DEVICE);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT), 1);
	for (uint64_t id = 2; id <= 4; id++)
		ck_assert_uint_eq(world_vm(&w, id)->commands, 0);
}
END_TEST

START_TEST(half_swapped_guest_is_not_cut_below_its_use_and_margin)
{
	struct engine_config config;
	struct memcg_knobs zero = soft(0);
	struct world_vm *vm;

	world_config(&config);
	config.bounds.margin_at_least = MIB(40);
	world_open(&w, &config, MIB(400));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(200), &zero);
	vm = world_vm(&w, 2);
	vm->swapped = MIB(200);
	vm->anon = MIB(300);
	for (int i = 0; i < 300; i++) {
		world_tick(&w);
		ck_assert_uint_ge(vm->actual, MIB(340));
	}
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(31)); /* wm_high: 8 % of 400 */
}
END_TEST

START_TEST(a_hung_vm_is_counted_apart_and_its_part_asked_of_others)
{
	struct memcg_knobs zero = soft(0);
	struct engine_pool_view pool;

	world_open_pool(&w, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(800), MIB(490), &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(490), &zero);
	world_vm(&w, 2)->speed = 0;
	world_ticks(&w, 5);
	world_state(&w, 2, ENGINE_VM_NOT_ANSWERING);
	world_ticks(&w, 60);
	engine_pool_view(w.engine, &pool);
	ck_assert_uint_gt(pool.hung, 0);
	ck_assert_int_ge(pool.free, (int64_t)MIB(79));
	world_state(&w, 2, ENGINE_VM_RUNNING);
	world_tick(&w);
	engine_pool_view(w.engine, &pool);
	ck_assert_uint_eq(pool.hung, 0);
}
END_TEST

START_TEST(actual_below_a_recorded_ceiling_is_an_own_cut)
{
	world_open_pool(&w, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(200), &none);
	w.changes[0].attrs.ceiling = MIB(500);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(300);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(500));
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(500)); /* loosened: nobody needs it */
}
END_TEST

START_TEST(actual_without_a_recorded_ceiling_is_its_operators_wish)
{
	world_open_pool(&w, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(200), &none);
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(300);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(300));
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
}
END_TEST

START_TEST(a_rest_below_our_lowest_target_becomes_the_ceiling)
{
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	world_ticks(&w, 150);
	world_vm(&w, 2)->target = world_vm(&w, 2)->actual = MIB(150); /* virsh setmem */
	world_vm(&w, 2)->resident = MIB(150);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(150));
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_WISH), 1);
}
END_TEST

START_TEST(a_group_over_its_max_is_reclaimed_with_itself_as_root)
{
	struct memcg_knobs max = none;

	world_open_pool(&w, MIB(2000));
	max.max = MIB(300);
	world_group(&w, 10, MEMCG_ROOT_ID, &max);
	world_add(&w, 2, 10, MIB(400), MIB(250), &none);
	world_add(&w, 3, 10, MIB(400), MIB(100), &none);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(600), MIB(480), &none);
	world_ticks(&w, 60);
	ck_assert_uint_le(world_view(&w, 10).usage, MIB(301));
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
}
END_TEST

START_TEST(the_tree_over_its_max_is_the_pools_own_need)
{
	struct memcg_knobs max = none, b = soft(MIB(100));
	struct engine_reason r;

	world_open_pool(&w, MIB(2000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(360), &b);
	world_vm(&w, 2)->speed = MIB(4);
	max.max = MIB(330);
	world_knobs(&w, MEMCG_ROOT_ID, &max);
	world_ticks(&w, 20);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1); /* asked once, not anew each tick */
	ck_assert_uint_eq(engine_reasons(w.engine, 2, &r, 1), 1);
	ck_assert_uint_eq(r.need, MIB(30));
	world_ticks(&w, 60);
	ck_assert_uint_le(world_usage(world_vm(&w, 2)), MIB(330) + MIB(2));
}
END_TEST

START_TEST(paused_and_resumed_guests_are_cancelled_and_nothing_is_replayed)
{
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = MIB(1);
	world_ticks(&w, 5);
	ck_assert_uint_gt(world_view(&w, 2).owed, 0);
	world_state(&w, 2, ENGINE_VM_PAUSED);
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_CANCEL, .id = 2 });
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
	/* as it was found: the sample before the change */
	ck_assert_uint_ge(world_action(&w, 2)->target, world_vm(&w, 2)->actual);
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_ASK_FAILED), 0);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_STATE);
	ck_assert_uint_gt(world_view(&w, 4).owed, 0); /* others are asked */
	world_ticks(&w, 20);
	ck_assert_ptr_null(world_action(&w, 2));
	world_state(&w, 2, ENGINE_VM_RUNNING);
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_CANCEL, .id = 2 });
	world_tick(&w);
	ck_assert(!world_action(&w, 2) || world_action(&w, 2)->target >= world_vm(&w, 2)->actual);
}
END_TEST

START_TEST(a_rebooted_guest_counts_in_full_and_is_told_its_ceiling)
{
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = MIB(1);
	world_ticks(&w, 5);
	world_state(&w, 2, ENGINE_VM_ARRIVING);
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_CANCEL, .id = 2 });
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(500);
	world_vm(&w, 2)->resident = MIB(50);
	world_tick(&w);
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(500));
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(500));
	world_state(&w, 2, ENGINE_VM_RUNNING);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(50));
}
END_TEST

START_TEST(a_hung_vm_that_goes_on_is_told_to_stay_as_it_is)
{
	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = 0;
	world_ticks(&w, 3);
	world_state(&w, 2, ENGINE_VM_NOT_ANSWERING);
	world_tick(&w);
	ck_assert_ptr_null(world_action(&w, 2)); /* nothing can be told to it now */
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
	world_state(&w, 2, ENGINE_VM_NOT_ANSWERING); /* said twice */
	world_ticks(&w, 5);
	ck_assert_ptr_null(world_action(&w, 2));
	world_state(&w, 2, ENGINE_VM_RUNNING);
	world_tick(&w);
	ck_assert_ptr_nonnull(world_action(&w, 2));
	/* its part was asked of others, and is under way there */
	ck_assert_uint_eq(world_action(&w, 2)->target, MIB(500));
	ck_assert_uint_eq(world_view(&w, 2).owed, 0);
}
END_TEST

START_TEST(a_vm_that_hangs_with_nothing_asked_is_only_left_alone)
{
	struct engine_pool_view pool;

	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	world_tick(&w);
	world_state(&w, 3, ENGINE_VM_NOT_ANSWERING);
	world_ticks(&w, 5);
	engine_pool_view(w.engine, &pool);
	ck_assert_uint_eq(pool.hung, 0);
	world_state(&w, 3, ENGINE_VM_RUNNING);
	world_tick(&w);
	ck_assert_ptr_null(world_action(&w, 3));
}
END_TEST

START_TEST(switching_to_observe_ends_what_runs)
{
	struct engine_config config;

	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = MIB(1);
	world_reclaim(&w, 7, 3, MIB(50));
	world_ticks(&w, 3);
	ck_assert_uint_gt(world_view(&w, 2).owed, 0);
	world_config(&config);
	config.act = false;
	ck_assert_int_eq(engine_set_config(w.engine, &config), 0);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, MEMCG_ROOT_ID).owed, 0);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_SHORT), 1);
	world_ticks(&w, 100);
	ck_assert_uint_eq(w.out.nr_actions, 0);
	world_reclaim(&w, 8, 3, MIB(50));
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_JOB_SHORT), 2);
}
END_TEST

START_TEST(a_new_floor_holds_at_once_though_the_guest_rests)
{
	struct engine_input input = { 0 };
	struct engine_config config;

	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	world_ticks(&w, 3);
	world_config(&config);
	config.bounds.floor_percent = 60;
	ck_assert_int_eq(engine_set_config(w.engine, &config), 0);
	/* No sample: nothing of it has changed. */
	input.now = w.now += w.tick_us;
	ck_assert_int_eq(engine_tick(w.engine, &input, &w.out), 0);
	ck_assert_uint_eq(world_view(&w, 2).set.floor, world_vm(&w, 2)->maximum * 60 / 100);
}
END_TEST

START_TEST(a_vm_that_is_not_managed_any_more_is_let_be)
{
	struct engine_change c = {
		.type = ENGINE_VM_ATTRS, .id = 2, .attrs = { .maximum = MIB(500), .act = false }
	};

	world_three_guests(&w, MIB(360), MIB(320), MIB(300));
	world_vm(&w, 2)->speed = MIB(1);
	world_ticks(&w, 3);
	world_change(&w, &c);
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CANCEL);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_MANAGE);
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 2);
}
END_TEST

START_TEST(a_guest_smaller_than_sixteen_granules_is_not_asked)
{
	struct memcg_knobs zero = soft(0);
	struct engine_config config;

	world_config(&config);
	config.bounds.floor_percent = 0;
	world_open(&w, &config, MIB(100));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(64), MIB(16) - 1, &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(90), MIB(84), &none);
	world_state(&w, 3, ENGINE_VM_NO_DEVICE);
	world_ticks(&w, 3);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_SMALL);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	world_vm(&w, 2)->resident = MIB(16);
	world_tick(&w);
	ck_assert_int_eq(world_action(&w, 2)->reason.type, ENGINE_CUT);
}
END_TEST

/* BR-140: at most 360 times in an hour, one event, no command; and at once when something can be
 * gained. */
START_TEST(nothing_is_asked_again_for_a_short_pool_until_something_changes_or_a_hold_time)
{
	struct engine_input in = { 0 };
	struct engine_output out;
	unsigned int ticks = 0;

	world_three_guests(&w, MIB(360), MIB(320), MIB(310));
	for (uint64_t id = 2; id <= 4; id++)
		world_state(&w, id, ENGINE_VM_NO_DEVICE);
	world_ticks(&w, 50);
	ck_assert_uint_eq(w.out.next, w.now + 10 * SECOND_US);
	in.now = w.now + SECOND_US;
	ck_assert_int_eq(engine_tick(w.engine, &in, &out), 0);
	ck_assert_uint_eq(out.next, w.now + 10 * SECOND_US);
	ck_assert_uint_eq(out.nr_events, 0);
	in.now = w.now + 10 * SECOND_US;
	ck_assert_int_eq(engine_tick(w.engine, &in, &out), 0);
	ck_assert_uint_eq(out.next, w.now + 20 * SECOND_US);
	for (; out.next <= w.now + 3600 * SECOND_US; ticks++) {
		in.now = out.next;
		ck_assert_int_eq(engine_tick(w.engine, &in, &out), 0);
		ck_assert_uint_eq(out.nr_events, 0);
		ck_assert_uint_eq(out.nr_actions, 0);
	}
	ck_assert_uint_le(ticks, 360);
	w.now = in.now;
	world_vm(&w, 2)->resident = MIB(200);
	w.now += SECOND_US;
	world_tick(&w);
	ck_assert_uint_eq(world_count(&w, ENGINE_EVENT_SHORT_OVER), 1);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		nobody_is_asked_while_free_is_at_wm_low,
		the_last_of_two_words_to_a_vm_in_one_tick_is_told,
		a_vm_that_is_charged_page_by_page_is_seen_and_not_booked,
		sample_that_is_older_than_what_was_charged_is_set_right_by_the_next_tick,
		a_dead_vms_pages_stay_seen_until_they_are_uncharged_and_its_siblings_have_their_own,
		dead_vms_go_one_by_one_as_their_memory_does,
		a_dead_vm_is_told_of_only_where_something_of_its_memory_changes,
		a_dead_vm_that_was_never_charged_a_page_goes,
		charges_of_who_cannot_be_charged_change_nothing,
		guest_under_soft_limit_keeps_all_while_another_is_in_excess,
		without_its_soft_pass_soft_limits_mean_nothing,
		second_pass_takes_from_those_without_limit_only_what_excess_cannot_cover,
		a_cut_that_came_is_loosened_to_the_ceiling_of_a_vm_not_in_excess,
		a_vm_in_excess_keeps_usage_and_headroom_after_its_cut,
		above_wm_high_a_capped_vm_gets_back_to_its_ceiling,
		observe_mode_asks_nobody_but_plans,
		partition_over_its_limit_whose_vms_have_none_starts_the_soft_pass,
		the_excess_of_a_partition_is_one_budget,
		all_pinned_ends_in_short_told_once,
		half_swapped_guest_is_not_cut_below_its_use_and_margin,
		a_hung_vm_is_counted_apart_and_its_part_asked_of_others,
		actual_below_a_recorded_ceiling_is_an_own_cut,
		actual_without_a_recorded_ceiling_is_its_operators_wish,
		a_rest_below_our_lowest_target_becomes_the_ceiling,
		a_group_over_its_max_is_reclaimed_with_itself_as_root,
		the_tree_over_its_max_is_the_pools_own_need,
		paused_and_resumed_guests_are_cancelled_and_nothing_is_replayed,
		a_rebooted_guest_counts_in_full_and_is_told_its_ceiling,
		a_hung_vm_that_goes_on_is_told_to_stay_as_it_is,
		a_vm_that_hangs_with_nothing_asked_is_only_left_alone,
		switching_to_observe_ends_what_runs,
		a_new_floor_holds_at_once_though_the_guest_rests,
		a_vm_that_is_not_managed_any_more_is_let_be,
		a_guest_smaller_than_sixteen_granules_is_not_asked,
		nothing_is_asked_again_for_a_short_pool_until_something_changes_or_a_hold_time,
	};
	Suite *s = suite_create("engine");
	TCase *t = tcase_create("engine");

	tcase_add_checked_fixture(t, NULL, teardown);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(t, tests[i]);
	suite_add_tcase(s, t);
	return suite_run(s);
}
