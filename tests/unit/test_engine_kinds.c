/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each state of a VM means to the engine: who gives, who counts how, what ends. */
#include <config.h>

#include "tests/unit/suite.h"
#include "tests/unit/world.h"

#include <check.h>
#include <string.h>

static struct world w;
static const struct memcg_knobs zero = { 0, 0, 0, PAGES_UNLIMITED };

static void setup(void)
{
	struct engine_config config;

	world_config(&config);
	world_open(&w, &config, MIB(1000));
}

static void teardown(void)
{
	world_close(&w);
}

static void attrs(uint64_t id, uint64_t maximum)
{
	struct engine_change change = { .type = ENGINE_VM_ATTRS, .id = id };

	change.attrs = world_view(&w, id).attrs;
	change.attrs.maximum = maximum;
	world_change(&w, &change);
}

static const enum engine_vm_state takes_nothing[] = { ENGINE_VM_INCOMING, ENGINE_VM_MIGRATING,
	ENGINE_VM_POSTCOPY, ENGINE_VM_SAVING, ENGINE_VM_SNAPSHOT, ENGINE_VM_BACKUP,
	ENGINE_VM_LOCKED, ENGINE_VM_HUGE_PAGES, ENGINE_VM_PINNED, ENGINE_VM_ENCRYPTED,
	ENGINE_VM_VIRTIO_MEM, ENGINE_VM_PAUSED, ENGINE_VM_NO_DEVICE, ENGINE_VM_NO_DRIVER,
	ENGINE_VM_ARRIVING };

/* BR-17, BR-107, BR-108, BR-79: classified before any call. */
START_TEST(nothing_is_ever_asked_of_those_that_give_nothing)
{
	for (size_t i = 0; i < sizeof(takes_nothing) / sizeof(takes_nothing[0]); i++) {
		if (i > 0) {
			teardown();
			setup();
		}
		world_add(&w, 2, MEMCG_ROOT_ID, MIB(800), MIB(490), &zero);
		world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(490), &none);
		ck_assert(!engine_vm_state_gives(takes_nothing[i]));
		w.changes[0].state = takes_nothing[i];
		world_ticks(&w, 100);
		ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
		ck_assert_uint_eq(world_view(&w, 2).asks, 0);
		ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(800));
	}
}
END_TEST

START_TEST(those_that_are_only_shown_give_like_others)
{
	static const enum engine_vm_state gives[] = { ENGINE_VM_THROTTLED, ENGINE_VM_LIMITED,
		ENGINE_VM_STRICT_NUMA };

	for (size_t i = 0; i < sizeof(gives) / sizeof(gives[0]); i++) {
		if (i > 0) {
			teardown();
			setup();
		}
		world_add(&w, 2, MEMCG_ROOT_ID, MIB(800), MIB(490), &zero);
		world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(490), &none);
		ck_assert(engine_vm_state_gives(gives[i]));
		w.changes[0].state = gives[i];
		world_ticks(&w, 100);
		ck_assert_uint_gt(world_view(&w, 2).asks, 0);
	}
}
END_TEST

/* BR-110, BR-119 too: what runs is cancelled once, to the actual that was read. */
START_TEST(BR_79_running_cut_is_cancelled_by_a_change_of_state_and_nothing_follows)
{
	static const enum engine_vm_state states[] = { ENGINE_VM_MIGRATING, ENGINE_VM_SAVING,
		ENGINE_VM_SNAPSHOT, ENGINE_VM_BACKUP, ENGINE_VM_VIRTIO_MEM, ENGINE_VM_PINNED };

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		const struct engine_action *action;
		struct world_vm *vm;
		size_t commands;

		if (i > 0) {
			teardown();
			setup();
		}
		world_add(&w, 2, MEMCG_ROOT_ID, MIB(800), MIB(490), &zero);
		world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(490), &zero);
		vm = world_vm(&w, 2);
		vm->speed = MIB(1);
		world_ticks(&w, 6);
		ck_assert_uint_lt(vm->target, MIB(800));
		world_state(&w, 2, states[i]);
		world_tick(&w);
		action = world_action(&w, 2);
		ck_assert_ptr_nonnull(action);
		ck_assert_int_eq(action->reason.type, ENGINE_CANCEL);
		ck_assert_uint_ge(action->target, vm->actual);
		commands = vm->commands;
		world_ticks(&w, 100);
		if (states[i] != ENGINE_VM_PINNED) /* that one gets back what it had */
			ck_assert_uint_eq(vm->commands, commands);
		ck_assert_uint_eq(world_view(&w, 2).owed, 0);
	}
}
END_TEST

/* BR-108: in neither the pool nor its used sum; its overhead is. */
START_TEST(huge_pages_count_nothing_but_their_overhead)
{
	struct engine_pool_view pool;

	world_add(&w, 2, MEMCG_ROOT_ID, MIB(800), MIB(490), &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(300), &none);
	w.changes[0].state = ENGINE_VM_HUGE_PAGES;
	world_vm(&w, 2)->overhead = MIB(10);
	world_ticks(&w, 3);
	engine_pool_view(w.engine, &pool);
	ck_assert_uint_eq(pool.used, MIB(300));
	ck_assert_uint_eq(pool.overhead, MIB(10));
	ck_assert_int_eq(pool.free, (int64_t)MIB(690));
	ck_assert_uint_eq(world_view(&w, 2).excess, 0);
}
END_TEST

/* BR-107: in full until it is seen, then as resident, whatever the balloon left it. */
START_TEST(pinned_memory_counts_in_full_until_it_is_seen_and_then_as_resident)
{
	struct world_vm *vm;

	world_add(&w, 2, MEMCG_ROOT_ID, MIB(600), MIB(200), &none);
	vm = world_vm(&w, 2);
	world_ticks(&w, 3);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(200));
	vm->actual = vm->target = MIB(300);
	vm->no_process = true;
	world_state(&w, 2, ENGINE_VM_PINNED);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(600));
	vm->no_process = false;
	vm->resident = MIB(590);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).usage, MIB(590));
}
END_TEST

/* BR-27, BR-79: the destination makes room for all of it. */
START_TEST(incoming_and_postcopy_count_with_their_full_size)
{
	static const enum engine_vm_state states[] = { ENGINE_VM_INCOMING, ENGINE_VM_POSTCOPY };

	for (size_t i = 0; i < 2; i++) {
		if (i > 0) {
			teardown();
			setup();
		}
		world_add(&w, 2, MEMCG_ROOT_ID, MIB(600), MIB(20), &none);
		w.changes[0].state = states[i];
		world_ticks(&w, 3);
		ck_assert_uint_eq(world_view(&w, 2).usage, MIB(600));
		world_state(&w, 2, ENGINE_VM_RUNNING);
		world_tick(&w);
		ck_assert_uint_eq(world_view(&w, 2).usage, MIB(20));
	}
}
END_TEST

/* ---- plugged memory: BR-22 ---- */

START_TEST(plugged_memory_of_a_vm_that_was_never_touched_sends_no_target)
{
	struct world_vm *vm;

	world_add(&w, 2, MEMCG_ROOT_ID, MIB(200), MIB(100), &none);
	vm = world_vm(&w, 2);
	world_ticks(&w, 10);
	attrs(2, MIB(400));
	vm->maximum = MIB(400);
	world_ticks(&w, 50);
	ck_assert_uint_eq(vm->commands, 0);
	vm->actual = vm->target = MIB(400); /* it came out of hiding */
	world_ticks(&w, 50);
	ck_assert_uint_eq(vm->commands, 0);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(400));
}
END_TEST

/* The case has it back to the recorded ceiling and no further; the design, by as much as came. */
START_TEST(plugged_memory_raises_the_ceiling_by_as_much_and_old_targets_are_not_repeated)
{
	struct world_vm *vm;
	size_t at;

	world_add(&w, 2, MEMCG_ROOT_ID, MIB(400), MIB(390), &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(590), &none);
	world_ticks(&w, 60);
	vm = world_vm(&w, 2);
	ck_assert_uint_gt(vm->commands, 0);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(400));
	at = world_count(&w, ENGINE_EVENT_WISH) + world_count(&w, ENGINE_EVENT_CONTENDED);
	attrs(2, MIB(600));
	/* As QEMU does it: what the balloon holds stays the same. */
	vm->maximum = MIB(600);
	vm->actual += MIB(200);
	vm->target += MIB(200);
	for (int i = 0; i < 100; i++) {
		world_tick(&w);
		ck_assert_uint_le(vm->target, MIB(600));
	}
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(600));
	ck_assert_uint_eq(world_view(&w, 2).attrs.ceiling, MIB(600)); /* and on record */
	ck_assert_uint_eq(
		world_count(&w, ENGINE_EVENT_WISH) + world_count(&w, ENGINE_EVENT_CONTENDED), at);
}
END_TEST

START_TEST(memory_is_plugged_and_unplugged_below_a_ceiling_that_somebody_set)
{
	struct world_vm *vm;

	world_capped(&w, 2, MIB(300), MIB(200), &none);
	w.changes[0].attrs.maximum = MIB(400);
	vm = world_vm(&w, 2);
	vm->maximum = MIB(400);
	world_ticks(&w, 60);
	ck_assert_uint_eq(vm->actual, MIB(300));
	attrs(2, MIB(500));
	vm->maximum = MIB(500);
	vm->actual += MIB(100);
	vm->target += MIB(100);
	world_ticks(&w, 60);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(400));
	/* Unplugged is what it never had. */
	attrs(2, MIB(450));
	vm->maximum = MIB(450);
	world_ticks(&w, 60);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(400));
	attrs(2, MIB(350));
	vm->maximum = vm->actual = vm->target = MIB(350);
	world_ticks(&w, 60);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(350));
}
END_TEST

/* What was plugged is on record before anything else is told to it, and once. */
START_TEST(plugged_memory_is_put_on_record_once_it_rests)
{
	const struct engine_action *a;

	w.pool.size = MIB(4000);
	world_capped(&w, 2, MIB(400), MIB(400), &none);
	world_ticks(&w, 60);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	attrs(2, MIB(600));
	world_vm(&w, 2)->actual = world_vm(&w, 2)->target = MIB(600);
	for (a = NULL; !a; a = world_action(&w, 2))
		world_tick(&w);
	ck_assert_int_eq(a->reason.type, ENGINE_WISH);
	ck_assert_uint_eq(a->target, MIB(600));
	ck_assert_uint_eq(a->ceiling, MIB(600));
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
}
END_TEST

/* What it has is less than its maximum all the same: it is capped, and told again. */
START_TEST(refused_way_back_to_a_vm_of_fixed_size_is_tried_again_after_a_hold_time)
{
	world_capped(&w, 2, MIB(500), MIB(300), &none);
	w.changes[0].state = ENGINE_VM_PINNED;
	world_vm(&w, 2)->refuses = true;
	world_ticks(&w, 60);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 1);
	ck_assert(world_view(&w, 2).capped);
	world_vm(&w, 2)->refuses = false;
	world_ticks(&w, 100);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 2);
	ck_assert_uint_eq(world_vm(&w, 2)->actual, MIB(500));
}
END_TEST

/*
 * BR-01: a maximum in KiB that was meant in MiB. What it could give is less than a granule: it is
 * not asked, it is told why, and who is behind it gives as if it were not there.
 */
START_TEST(guest_too_small_for_a_granule_is_never_asked_and_holds_nobody_up)
{
	world_add(&w, 2, MEMCG_ROOT_ID, 256, 256, &zero);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(800), MIB(490), &zero);
	world_add(&w, 4, MEMCG_ROOT_ID, MIB(800), MIB(490), &none);
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_vm(&w, 2)->commands, 0);
	ck_assert_uint_eq(world_view(&w, 2).asks, 0);
	ck_assert_uint_eq(world_view(&w, 2).target, 0);
	ck_assert_int_eq(world_view(&w, 2).hold, RECLAIM_HOLD_SMALL);
	ck_assert_uint_gt(world_view(&w, 3).asks, 0);
	ck_assert_int_ge(world_free(&w), (int64_t)MIB(79));
	ck_assert_uint_eq(world_vm(&w, 4)->commands, 0);
}
END_TEST

/* As a note that somebody else wrote, or one of a larger life. */
START_TEST(recorded_ceiling_over_the_maximum_ends_at_the_maximum)
{
	struct engine_change *c;

	world_add(&w, 2, MEMCG_ROOT_ID, MIB(200), MIB(150), &none);
	c = &w.changes[0];
	c->attrs.ceiling = MIB(800);
	world_ticks(&w, 200);
	ck_assert_uint_eq(world_view(&w, 2).ceiling, MIB(200));
	ck_assert_uint_le(world_vm(&w, 2)->target, MIB(200));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		nothing_is_ever_asked_of_those_that_give_nothing,
		those_that_are_only_shown_give_like_others,
		BR_79_running_cut_is_cancelled_by_a_change_of_state_and_nothing_follows,
		huge_pages_count_nothing_but_their_overhead,
		pinned_memory_counts_in_full_until_it_is_seen_and_then_as_resident,
		incoming_and_postcopy_count_with_their_full_size,
		plugged_memory_of_a_vm_that_was_never_touched_sends_no_target,
		plugged_memory_raises_the_ceiling_by_as_much_and_old_targets_are_not_repeated,
		memory_is_plugged_and_unplugged_below_a_ceiling_that_somebody_set,
		plugged_memory_is_put_on_record_once_it_rests,
		refused_way_back_to_a_vm_of_fixed_size_is_tried_again_after_a_hold_time,
		guest_too_small_for_a_granule_is_never_asked_and_holds_nobody_up,
		recorded_ceiling_over_the_maximum_ends_at_the_maximum,
	};
	Suite *suite = suite_create("engine kinds");
	TCase *tc = tcase_create("engine kinds");

	tcase_add_checked_fixture(tc, setup, teardown);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
