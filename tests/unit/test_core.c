/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The core's picture of VMs: what the engine is told of them, when. Calls: test_core_calls.c. */
#include <config.h>

#include "tests/unit/host.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "hv/core_internal.h"

/* ---- coming and going ---- */

START_TEST(vm_that_runs_when_the_daemon_comes_is_running_at_once)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
	ck_assert_uint_eq(host_item(vm)->attrs.maximum, PAGES(GIB));
	ck_assert_uint_eq(host_item(vm)->parent, MEMCG_ROOT_ID);
	ck_assert(host_item(vm)->attrs.act);
	ck_assert_uint_eq(
		host_said("vm00: found: maximum 1 GiB, soft limit none (none), group /"), 1);
}
END_TEST

START_TEST(vm_that_comes_later_counts_in_full_until_its_statistics_moved)
{
	struct host_vm *vm;

	host_vm(0);
	host_up();
	vm = host_vm(1);
	host_event(HV_EVENT_CHANGED, vm);
	host_run(100000);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_ARRIVING);
	host_run(3 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
}
END_TEST

START_TEST(vm_that_was_missed_by_events_is_found_by_the_next_resync)
{
	struct host_vm *vm;

	host_up();
	vm = host_vm(1);
	host_run(5 * SECOND);
	ck_assert_uint_ne(host_id(vm), 0);
}
END_TEST

START_TEST(vm_that_comes_without_statistics_is_taken_as_it_is_after_a_minute)
{
	struct host_vm *vm;

	host_up();
	vm = host_vm(0);
	vm->driver = false;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(59 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_ARRIVING);
	host_run(3 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_NO_DRIVER);
	vm->driver = true;
	host_run(3 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
}
END_TEST

START_TEST(vm_without_driver_is_known_as_such_after_three_periods)
{
	struct host_vm *vm = host_vm(0);

	vm->driver = false;
	host_up();
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
	host_run(2 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
	host_run(2 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_NO_DRIVER);
}
END_TEST

START_TEST(vm_without_device_has_a_fixed_size_and_no_statistics_are_read)
{
	struct host_vm *vm = host_vm(0);

	vm->balloon = false;
	host_up();
	host_run(3 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_NO_DEVICE);
	ck_assert_uint_eq(vm->calls[HV_STATS], 0);
	ck_assert_uint_eq(vm->calls[HV_PERIOD], 0);
	ck_assert_uint_eq(host_item(vm)->sample.actual, PAGES(GIB));
	ck_assert_uint_eq(host_item(vm)->sample.resident, PAGES(700 * MIB));
}
END_TEST

START_TEST(vm_that_has_left_the_listing_is_gone_and_said_so_once)
{
	struct host_vm *vm = host_vm(0);
	uint64_t id;

	vm->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/prod/web" };
	host_up();
	id = host_id(vm);
	ck_assert_uint_eq(fake_nr(false), 2);
	host_gone(0);
	host_event(HV_EVENT_CHANGED, vm);
	host_run(3 * SECOND);
	ck_assert_ptr_null(fake_item(id));
	ck_assert_uint_eq(fake_told(ENGINE_VM_GONE, id), 1);
	ck_assert_uint_eq(host_said("has gone"), 1);
	/* And with it the groups that nobody else is in. */
	ck_assert_uint_eq(fake_nr(false), 0);
	host_run(1000 * SECOND);
	ck_assert_uint_eq(host_said("has gone"), 1);
}
END_TEST

START_TEST(vm_that_is_off_is_gone)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	vm->state = HV_OFF;
	host_run(6 * SECOND);
	ck_assert_uint_eq(host_id(vm), 0);
	ck_assert_uint_eq(fake_nr(true), 0);
}
END_TEST

START_TEST(ids_are_never_used_twice)
{
	uint64_t first, second;

	host_vm(0);
	host_up();
	first = host_id(&host.vms[0]);
	host_gone(0);
	host_run(6 * SECOND);
	host_vm(0);
	host_run(6 * SECOND);
	second = host_id(&host.vms[0]);
	ck_assert_uint_ge(first, 2);
	ck_assert_uint_gt(second, first);
}
END_TEST

START_TEST(vm_without_maximum_is_left_alone)
{
	struct host_vm *vm = host_vm(0);

	vm->maximum = 0;
	host_up();
	host_run(60 * SECOND);
	ck_assert_uint_eq(host_id(vm), 0);
	ck_assert_uint_eq(host_said("has no maximum memory"), 1);
	vm->maximum = GIB;
	host_run(6 * SECOND);
	ck_assert_uint_ne(host_id(vm), 0);
}
END_TEST

/* ---- pausing and rebooting ---- */

START_TEST(paused_vm_is_neither_and_its_resume_cancels_what_ran)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	vm->state = HV_PAUSED;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(100000);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_PAUSED);
	ck_assert_uint_eq(host_item(vm)->cancels, 0);

	vm->state = HV_RUNNING;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(100000);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
	ck_assert_uint_eq(host_item(vm)->cancels, 1);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
	/* What was read before the pause says nothing about now. */
	ck_assert(host_item(vm)->sample.stale);
	host_run(3 * SECOND);
	ck_assert(!host_item(vm)->sample.stale);
}
END_TEST

START_TEST(vm_that_comes_in_paused_counts_in_full_and_is_not_called)
{
	struct host_vm *vm;

	host_up();
	vm = host_vm(0);
	vm->state = HV_PAUSED;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(70 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_ARRIVING);
	ck_assert_uint_eq(vm->calls[HV_STATS] + vm->calls[HV_PERIOD], 0);
	vm->state = HV_RUNNING;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(3 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
}
END_TEST

START_TEST(rebooted_vm_counts_in_full_until_it_is_seen_again)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	vm->driver = false;
	for (int i = 0; i < 3; i++) /* the event comes three times */
		host_event(HV_EVENT_REBOOTED, vm);
	host_run(10 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_ARRIVING);
	ck_assert_uint_eq(host_item(vm)->cancels, 1);
	ck_assert_uint_eq(host_said("rebooted"), 1);
	vm->driver = true;
	host_run(3 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
}
END_TEST

START_TEST(statistics_read_across_a_reboot_do_not_make_it_seen)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	vm->hangs = true;
	host_run(SECOND);
	ck_assert(vm->busy);
	vm->driver = false;
	host_event(HV_EVENT_REBOOTED, vm);
	vm->last_update++; /* the guest's last answer before it went down */
	host_wake(vm);
	host_run(2 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_ARRIVING);
}
END_TEST

/* ---- statistics ---- */

START_TEST(statistics_that_stood_still_for_three_periods_are_stale)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	ck_assert(!host_item(vm)->sample.stale);
	vm->driver = false;
	host_run(2 * SECOND);
	ck_assert(!host_item(vm)->sample.stale);
	host_run(2 * SECOND);
	ck_assert(host_item(vm)->sample.stale);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING); /* its driver was seen */
	vm->driver = true;
	host_run(2 * SECOND);
	ck_assert(!host_item(vm)->sample.stale);
}
END_TEST

START_TEST(statistics_are_stale_before_they_moved_once)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	ck_assert_uint_eq(vm->calls[HV_STATS], 1);
	ck_assert(host_item(vm)->sample.stale);
	ck_assert(host_item(vm)->sample.known & VM_USABLE);
}
END_TEST

START_TEST(longer_periods_have_more_time)
{
	struct host_vm *vm = host_vm(0);

	vm->period_s = 10;
	host_up();
	host_run(3 * SECOND);
	vm->driver = false;
	host_run(25 * SECOND);
	ck_assert(!host_item(vm)->sample.stale);
	host_run(10 * SECOND);
	ck_assert(host_item(vm)->sample.stale);
}
END_TEST

START_TEST(what_is_not_told_is_unknown_and_never_zero)
{
	struct host_vm *vm = host_vm(0);
	const struct vm_sample *sample;

	vm->usable = HV_UNLIMITED;
	vm->process = false;
	host_up();
	host_run(SECOND);
	sample = &host_item(vm)->sample;
	ck_assert_uint_eq(sample->known, VM_ACTUAL);
	/* Nor does it get a value by what its process does. */
	vm->process = true;
	host_run(3 * SECOND);
	vm->resident += MIB;
	host_run(1500000);
	ck_assert_uint_eq(host_item(vm)->sample.known, VM_ACTUAL | VM_FIGURES_PROCESS);
}
END_TEST

START_TEST(no_change_of_state_is_said_of_a_vm_that_the_engine_was_not_told_of)
{
	struct host_vm *vm;

	host_up();
	host_run(SECOND);
	host.hold_process = true; /* it is not looked at yet */
	host_run(SECOND);
	vm = host_vm(0);
	host_event(HV_EVENT_CHANGED, vm);
	host_run(SECOND);
	host_event(HV_EVENT_REBOOTED, vm);
	host_run(SECOND);
	ck_assert_uint_eq(host_id(vm), 0);
	ck_assert_uint_eq(host_said("running -> arriving"), 0);
	if (host.held_process.token)
		host_answer_process();
}
END_TEST

START_TEST(process_that_is_lost_takes_its_figures_with_it)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(SECOND);
	ck_assert(vm_knows(&host_item(vm)->sample, VM_FIGURES_PROCESS));
	vm->process = false;
	host_run(2 * SECOND);
	ck_assert_uint_eq(host_item(vm)->sample.known & VM_FIGURES_PROCESS, 0);
}
END_TEST

START_TEST(statistics_keep_the_largest_actual_that_they_may_be_of)
{
	struct host_vm *vm = host_vm(0);
	const struct vm_sample *sample;

	host_up();
	host_run(3 * SECOND);
	sample = &host_item(vm)->sample;
	ck_assert_uint_eq(sample->stats_actual, PAGES(GIB));
	/* The balloon moves between two readings: the second may be of any time between. */
	host_balloon(vm, 800 * MIB);
	host_run(100000);
	ck_assert_uint_eq(sample->actual, PAGES(800 * MIB));
	ck_assert_uint_eq(sample->stats_actual, PAGES(GIB));
	host_run(SECOND);
	ck_assert_uint_eq(sample->stats_actual, PAGES(GIB));
	host_run(SECOND);
	ck_assert_uint_eq(sample->stats_actual, PAGES(800 * MIB));
}
END_TEST

START_TEST(sample_is_told_only_when_a_figure_changed)
{
	struct host_vm *still = host_vm(0), *busy = host_vm(1);
	unsigned int before;

	host_up();
	host_run(3 * SECOND);
	before = host_item(still)->samples;
	for (int i = 0; i < 10; i++) {
		busy->resident += MIB;
		host_run(SECOND);
	}
	ck_assert_uint_eq(host_item(still)->samples, before);
	ck_assert_uint_ge(host_item(busy)->samples, 10);
}
END_TEST

START_TEST(vm_in_excess_that_is_silent_is_said_so_once)
{
	struct host_vm *vm = host_vm(0);

	vm->driver = false;
	fake.excess = 1;
	host_up();
	host_run(30 * SECOND);
	ck_assert_uint_eq(host_said("in excess of its soft limit and cannot be asked"), 1);
	vm->driver = true;
	host_run(5 * SECOND);
	vm->driver = false;
	host_run(30 * SECOND);
	ck_assert_uint_eq(host_said("in excess of its soft limit and cannot be asked"), 2);
}
END_TEST

/* ---- groups and knobs ---- */

START_TEST(groups_are_made_along_the_path_with_the_configurations_knobs)
{
	struct core_group_knobs groups[] = {
		{ (char *)"/prod", { PAGES(2 * GIB), 0, 0, PAGES_UNLIMITED }, HV_MANAGE_ACT },
		{ (char *)"/", { PAGES_UNLIMITED, 0, 0, PAGES(9 * GIB) }, HV_MANAGE_ACT },
	};
	struct host_vm *a = host_vm(0), *b = host_vm(1);
	uint64_t prod, web;

	a->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/prod//web/" };
	b->partition = "/prod";
	host.config.groups = groups;
	host.config.nr_groups = 2;
	host_up();
	ck_assert_int_eq(core_find(host.core, "/prod", &prod), 0);
	ck_assert_int_eq(core_find(host.core, "/prod/web", &web), 0);
	ck_assert_uint_eq(host_item(a)->parent, web);
	ck_assert_uint_eq(host_item(b)->parent, prod);
	ck_assert_uint_eq(fake_item(web)->parent, prod);
	ck_assert_uint_eq(fake_item(prod)->knobs.soft_limit, PAGES(2 * GIB));
	ck_assert_uint_eq(fake_item(web)->knobs.soft_limit, PAGES_UNLIMITED);
	ck_assert_uint_eq(fake_item(MEMCG_ROOT_ID)->knobs.max, PAGES(9 * GIB));
	ck_assert_uint_eq(fake_nr(false), 2);
}
END_TEST

START_TEST(move_between_groups_is_one_hand_over_in_one_tick)
{
	struct host_vm *vm = host_vm(0);
	uint64_t old, new, tick_gone = 0, tick_new = 1;

	vm->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/a" };
	host_up();
	host_target(vm, 40, 900 * MIB);
	host_run(3 * SECOND);
	old = host_id(vm);
	ck_assert_uint_eq(host_item(vm)->sample.applied_seq, 40);

	vm->metadata.group = (char *)"/b";
	host_event(HV_EVENT_CHANGED, vm);
	host_run(100000);
	new = host_id(vm);
	ck_assert_uint_ne(old, new);
	for (size_t i = 0; i < fake.nr_changes; i++) {
		const struct engine_change *change = &fake.changes[i].change;

		if (change->type == ENGINE_VM_GONE && change->id == old)
			tick_gone = fake.changes[i].tick;
		if (change->type == ENGINE_VM_NEW && change->id == new) {
			tick_new = fake.changes[i].tick;
			/* The ceiling goes along: it is what a cut of before was made from. */
			ck_assert_uint_eq(change->attrs.ceiling, PAGES(GIB));
		}
	}
	ck_assert_uint_eq(tick_gone, tick_new);
	ck_assert_uint_eq(host_item(vm)->sample.actual, PAGES(900 * MIB));
	ck_assert_uint_eq(host_item(vm)->sample.applied_seq, 0);
	host_run(SECOND);
	ck_assert_uint_eq(fake_nr(false), 1);
	ck_assert_uint_eq(host_said("moves from group /a to /b"), 1);
}
END_TEST

START_TEST(changed_knobs_are_told_at_the_resync_without_any_event)
{
	struct host_vm *vm = host_vm(0);
	uint64_t id;

	host_up();
	id = host_id(vm);
	vm->memtune = (struct hv_knobs){ .has_soft_limit = true, .soft_limit = 256 * MIB };
	host_run(6 * SECOND);
	ck_assert_uint_eq(host_item(vm)->knobs.soft_limit, PAGES(256 * MIB));
	ck_assert_uint_eq(fake_told(ENGINE_GROUP_KNOBS, id), 1);
	ck_assert_uint_eq(fake_told(ENGINE_VM_ATTRS, id), 0);
	ck_assert_uint_eq(host_said("soft limit none (none) -> 256 MiB (memtune)"), 1);

	vm->maximum = 2 * GIB;
	vm->metadata = (struct hv_knobs){ .has_manage = true, .manage = HV_MANAGE_OBSERVE };
	host_run(6 * SECOND);
	ck_assert_uint_eq(host_item(vm)->attrs.maximum, PAGES(2 * GIB));
	ck_assert(!host_item(vm)->attrs.act);
	ck_assert_uint_eq(fake_told(ENGINE_GROUP_KNOBS, id), 1);
	ck_assert_uint_eq(fake_told(ENGINE_VM_ATTRS, id), 1);
}
END_TEST

static struct core_resolved resolve(const struct hv_info *info)
{
	struct core_resolved resolved;

	ck_assert_int_eq(core_resolve(&host.config, info, PAGES_UNLIMITED, &resolved), 0);
	return resolved;
}

START_TEST(soft_limit_is_metadatas_then_memtunes_then_the_default_then_none)
{
	struct hv_info info = { .maximum = GIB + 4096 };
	struct core_resolved r = resolve(&info);

	ck_assert_str_eq(r.soft_source, "none");
	ck_assert_uint_eq(r.knobs.soft_limit, PAGES_UNLIMITED);

	host.config.default_soft_limit_percent = 50;
	r = resolve(&info);
	ck_assert_str_eq(r.soft_source, "default");
	ck_assert_uint_eq(r.knobs.soft_limit, PAGES(GIB) / 2 + 1); /* rounded up */

	/* Unlimited is what a domain has where nobody said anything. */
	info.memtune = (struct hv_knobs){ .has_soft_limit = true, .soft_limit = HV_UNLIMITED };
	ck_assert_str_eq(resolve(&info).soft_source, "default");
	info.memtune.soft_limit = 4097;
	r = resolve(&info);
	ck_assert_str_eq(r.soft_source, "memtune");
	ck_assert_uint_eq(r.knobs.soft_limit, 2);

	info.metadata = (struct hv_knobs){ .has_soft_limit = true, .soft_limit = 0 };
	r = resolve(&info);
	ck_assert_str_eq(r.soft_source, "metadata");
	ck_assert_uint_eq(r.knobs.soft_limit, 0);
	/* In metadata "none" is somebody's word. */
	info.metadata.soft_limit = HV_UNLIMITED;
	r = resolve(&info);
	ck_assert_str_eq(r.soft_source, "metadata");
	ck_assert_uint_eq(r.knobs.soft_limit, PAGES_UNLIMITED);
}
END_TEST

START_TEST(protections_round_up_and_maxima_down)
{
	struct hv_info info = {
		.maximum = GIB + 4095,
		.ceiling = MIB + 4095,
		.metadata = { .has_min = true,
			.has_low = true,
			.has_max = true,
			.min = 1,
			.low = 4097,
			.max = 3 * 4096 + 4095 },
	};
	struct core_resolved r = resolve(&info);

	ck_assert_uint_eq(r.attrs.maximum, PAGES(GIB));
	ck_assert_uint_eq(r.attrs.ceiling, PAGES(MIB));
	ck_assert_uint_eq(r.knobs.min, 1);
	ck_assert_uint_eq(r.knobs.low, 2);
	ck_assert_uint_eq(r.knobs.max, 3);
	ck_assert_str_eq(r.problem, "");
	info.metadata.min = info.metadata.low = info.metadata.max = HV_UNLIMITED;
	r = resolve(&info);
	ck_assert_uint_eq(r.knobs.min, 0);
	ck_assert_uint_eq(r.knobs.low, 0);
	ck_assert_uint_eq(r.knobs.max, PAGES_UNLIMITED);
}
END_TEST

START_TEST(max_under_min_is_refused_and_min_kept)
{
	struct hv_info info = {
		.maximum = GIB,
		.metadata = { .has_min = true, .has_max = true, .min = 8192, .max = 4096 },
	};
	struct core_resolved r = resolve(&info);

	ck_assert_uint_eq(r.knobs.min, 2);
	ck_assert_uint_eq(r.knobs.max, PAGES_UNLIMITED);
	ck_assert_str_eq(r.problem, "min 8 KiB is over max 4 KiB: max is not used");
}
END_TEST

START_TEST(group_that_is_no_path_is_refused)
{
	static const char *const bad[] = { "prod", "", "/a/../b", "/.", "/a/./b" };
	char deep[HV_GROUP_MAX + 64] = "";
	struct hv_info info = { .maximum = GIB, .metadata = { .has_group = true } };
	struct core_resolved r;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		info.metadata.group = (char *)bad[i];
		r = resolve(&info);
		ck_assert_str_eq(r.group, "/");
		ck_assert_msg(strstr(r.problem, "is no path"), "%s", bad[i]);
	}
	/* A VM below it must fit into the tree. */
	for (int i = 0; i < MEMCG_MAX_DEPTH - 1; i++)
		strcat(deep, "/a");
	info.metadata.group = deep;
	r = resolve(&info);
	ck_assert_str_eq(r.group, deep);
	strcat(deep, "/a");
	ck_assert_str_eq(resolve(&info).group, "/");
	memset(deep, 'x', HV_GROUP_MAX + 1);
	deep[0] = '/';
	deep[HV_GROUP_MAX + 1] = '\0';
	ck_assert_str_eq(resolve(&info).group, "/");
	deep[HV_GROUP_MAX] = '\0';
	ck_assert_str_eq(resolve(&info).group, deep);
}
END_TEST

START_TEST(guest_swap_and_manage_are_metadatas_word)
{
	struct hv_info info = { .maximum = GIB };

	ck_assert(!resolve(&info).attrs.guest_swap);
	ck_assert(resolve(&info).attrs.act);
	host.config.guest_swap = true;
	ck_assert(resolve(&info).attrs.guest_swap);
	info.metadata = (struct hv_knobs){
		.has_guest_swap = true, .has_manage = true, .manage = HV_MANAGE_NO
	};
	ck_assert(!resolve(&info).attrs.guest_swap);
	ck_assert(!resolve(&info).attrs.act);
}
END_TEST

START_TEST(problem_is_said_once_for_each_text)
{
	struct host_vm *vm = host_vm(0);

	vm->problem = "low '7x' is no size";
	host_up();
	host_run(60 * SECOND);
	ck_assert_uint_eq(host_said("low '7x' is no size"), 1);
	vm->problem = "low '8x' is no size";
	host_run(60 * SECOND);
	ck_assert_uint_eq(host_said("low '7x' is no size"), 1);
	ck_assert_uint_eq(host_said("low '8x' is no size"), 1);
}
END_TEST

/* ---- connection ---- */

START_TEST(statistics_of_before_an_outage_are_stale_until_they_move)
{
	struct host_vm *vm = host_vm(0);
	unsigned int lists, stats, processes;
	uint64_t ticks;

	host_up();
	host_run(3 * SECOND);
	ck_assert(!host_item(vm)->sample.stale);
	host_event(HV_EVENT_DOWN, NULL);
	host_event(HV_EVENT_DOWN, NULL);
	ticks = fake.ticks;
	lists = host.calls[HV_LIST];
	stats = vm->calls[HV_STATS];
	processes = host.calls[HV_PROCESS];
	host_run(20 * SECOND);
	ck_assert_uint_eq(host.calls[HV_LIST], lists);
	ck_assert_uint_eq(vm->calls[HV_STATS], stats);
	ck_assert_uint_ge(host.calls[HV_PROCESS], processes + 20);
	ck_assert_uint_eq(fake.ticks, ticks); /* nothing is decided on what is old */
	ck_assert_uint_eq(host_said("the connection to scripted is lost"), 1);

	vm->driver = false;
	host_event(HV_EVENT_UP, NULL);
	host_run(SECOND);
	ck_assert_uint_gt(host.calls[HV_LIST], lists);
	host_run(10 * SECOND);
	ck_assert(host_item(vm)->sample.stale);
	vm->driver = true;
	host_run(2 * SECOND);
	ck_assert(!host_item(vm)->sample.stale);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
}
END_TEST

/* Those whose statistics came first gave for one in excess whose came a moment later. */
START_TEST(nothing_is_decided_after_an_outage_before_all_statistics_move_again)
{
	struct host_vm *vm = host_vm(0), *other = host_vm(1);
	uint64_t ticks;

	host_up();
	host_run(4 * SECOND);
	host_event(HV_EVENT_DOWN, NULL);
	host_run(2 * SECOND);
	ticks = fake.ticks;
	other->driver = false;
	host_event(HV_EVENT_UP, NULL);
	host_run(2 * SECOND + SECOND / 2);
	ck_assert_uint_eq(fake.ticks, ticks);
	other->driver = true;
	host_run(2 * SECOND);
	ck_assert_uint_gt(fake.ticks, ticks);
	ck_assert(!host_item(vm)->sample.stale);
	ck_assert(!host_item(other)->sample.stale);
}
END_TEST

START_TEST(guest_that_stays_silent_after_an_outage_holds_decisions_up_for_a_while_only)
{
	struct host_vm *vm = host_vm(0), *other = host_vm(1);
	uint64_t ticks;

	host_up();
	host_run(4 * SECOND);
	host_event(HV_EVENT_DOWN, NULL);
	ticks = fake.ticks;
	other->driver = false;
	host_event(HV_EVENT_UP, NULL);
	host_run(7 * SECOND);
	ck_assert_uint_gt(fake.ticks, ticks);
	ck_assert(!host_item(vm)->sample.stale);
	ck_assert(host_item(other)->sample.stale);
}
END_TEST

/* The period was on, and the answer was taken for one of an earlier life. */
START_TEST(first_answers_are_believed_although_the_engine_has_heard_of_the_vm_meanwhile)
{
	struct host_vm *vm = host_vm(0);

	vm->period_s = 0;
	host_up();
	host_run(SECOND / 2);
	ck_assert_uint_eq(vm->calls[HV_PERIOD], 1);
	ck_assert_uint_eq(host_said("balloon statistics switched on"), 1);
}
END_TEST

START_TEST(listing_that_fails_takes_no_vm_away)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host.list_error = -EIO;
	host_run(60 * SECOND);
	ck_assert_uint_ne(host_id(vm), 0);
	ck_assert_uint_eq(host_said("VMs cannot be listed"), 1);
	host.list_error = 0;
	host_run(2 * SECOND);
	ck_assert_uint_eq(host_said("VMs can be listed again"), 1);
}
END_TEST

START_TEST(name_that_is_too_long_is_refused_and_said_once)
{
	struct host_vm *vm = host_vm(0);

	memset(vm->name, 'n', HV_NAME_MAX + 1);
	vm->name[HV_NAME_MAX + 1] = '\0';
	host_up();
	host_run(60 * SECOND);
	ck_assert_uint_eq(fake_nr(true), 0);
	ck_assert_uint_eq(host_said("its name is too long"), 1);
}
END_TEST

/* It would be no text in any answer, and end a recording for all. */
START_TEST(name_that_is_no_utf8_is_refused_and_said_once)
{
	struct host_vm *vm = host_vm(0);

	strcpy(vm->name, "web\xff\xfe");
	host_vm(1);
	host_up();
	host_run(60 * SECOND);
	ck_assert_uint_eq(fake_nr(true), 1);
	ck_assert_uint_eq(host_said("its name is no UTF-8: 'web\\xff\\xfe'"), 1);
	strcpy(vm->name, "web\xc3\xa9");
	host_run(6 * SECOND);
	ck_assert_uint_eq(fake_nr(true), 2);
}
END_TEST

START_TEST(group_that_is_no_utf8_is_refused_and_told_in_text)
{
	struct hv_info info = { .maximum = GIB,
		.metadata = { .has_group = true, .group = (char *)"/a/\xc3" } };
	struct core_resolved r = resolve(&info);

	ck_assert_str_eq(r.group, "/");
	ck_assert(strstr(r.problem, "is no path"));
	ck_assert(text_is_utf8(r.problem));
}
END_TEST

/* BR-35: a report that comes after its VM is gone is of nobody, and all others go on. */
START_TEST(events_that_answer_nothing_change_nothing)
{
	struct hv_event event = { .type = HV_EVENT_STATS, .token = 4711 };
	struct host_vm *vm = host_vm(0), stranger = { .uuid = { { 99 } } };
	size_t changes;

	host_up();
	host_run(3 * SECOND);
	changes = fake.nr_changes;
	core_event(host.core, host.now, &event);
	event.token = 0;
	core_event(host.core, host.now, &event);
	event.type = HV_EVENT_LISTED;
	core_event(host.core, host.now, &event);
	event.type = HV_EVENT_NONE;
	core_event(host.core, host.now, &event);
	host_balloon(&stranger, GIB);
	host_event(HV_EVENT_REBOOTED, &stranger);
	host_event(HV_EVENT_CHANGED, &stranger);
	host_run(SECOND);
	ck_assert_uint_eq(fake.nr_changes, changes);
	ck_assert_uint_ne(host_id(vm), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		vm_that_runs_when_the_daemon_comes_is_running_at_once,
		vm_that_comes_later_counts_in_full_until_its_statistics_moved,
		vm_that_was_missed_by_events_is_found_by_the_next_resync,
		vm_that_comes_without_statistics_is_taken_as_it_is_after_a_minute,
		vm_without_driver_is_known_as_such_after_three_periods,
		vm_without_device_has_a_fixed_size_and_no_statistics_are_read,
		vm_that_has_left_the_listing_is_gone_and_said_so_once,
		vm_that_is_off_is_gone,
		ids_are_never_used_twice,
		vm_without_maximum_is_left_alone,
		paused_vm_is_neither_and_its_resume_cancels_what_ran,
		vm_that_comes_in_paused_counts_in_full_and_is_not_called,
		rebooted_vm_counts_in_full_until_it_is_seen_again,
		statistics_read_across_a_reboot_do_not_make_it_seen,
		statistics_that_stood_still_for_three_periods_are_stale,
		statistics_are_stale_before_they_moved_once,
		longer_periods_have_more_time,
		what_is_not_told_is_unknown_and_never_zero,
		no_change_of_state_is_said_of_a_vm_that_the_engine_was_not_told_of,
		process_that_is_lost_takes_its_figures_with_it,
		statistics_keep_the_largest_actual_that_they_may_be_of,
		sample_is_told_only_when_a_figure_changed,
		vm_in_excess_that_is_silent_is_said_so_once,
		groups_are_made_along_the_path_with_the_configurations_knobs,
		move_between_groups_is_one_hand_over_in_one_tick,
		changed_knobs_are_told_at_the_resync_without_any_event,
		soft_limit_is_metadatas_then_memtunes_then_the_default_then_none,
		protections_round_up_and_maxima_down,
		max_under_min_is_refused_and_min_kept,
		group_that_is_no_path_is_refused,
		guest_swap_and_manage_are_metadatas_word,
		problem_is_said_once_for_each_text,
		statistics_of_before_an_outage_are_stale_until_they_move,
		nothing_is_decided_after_an_outage_before_all_statistics_move_again,
		guest_that_stays_silent_after_an_outage_holds_decisions_up_for_a_while_only,
		first_answers_are_believed_although_the_engine_has_heard_of_the_vm_meanwhile,
		listing_that_fails_takes_no_vm_away,
		name_that_is_too_long_is_refused_and_said_once,
		name_that_is_no_utf8_is_refused_and_said_once,
		group_that_is_no_utf8_is_refused_and_told_in_text,
		events_that_answer_nothing_change_nothing,
	};
	Suite *suite = suite_create("core");
	TCase *tc = tcase_create("core");

	tcase_add_checked_fixture(tc, host_setup, host_teardown);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
