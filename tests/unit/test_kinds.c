/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kinds and states of VMs in the core, and what interrupts it: which state counts, what is called
 * and what is not. BR numbers are those of the field cases that the tests stand for.
 */
#include <config.h>

#include "tests/unit/host.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hv/core_internal.h"

static struct core_vm_view view_of(const struct host_vm *vm)
{
	struct core_vm_view view;

	ck_assert_int_eq(core_vm(host.core, host_id(vm), &view), 0);
	return view;
}

/* ---- kinds ---- */

START_TEST(each_kind_has_its_state)
{
	static const struct {
		unsigned int kinds;
		enum engine_vm_state state;
	} all[] = {
		{ HV_KIND_HUGE_PAGES, ENGINE_VM_HUGE_PAGES },
		{ HV_KIND_LOCKED, ENGINE_VM_LOCKED },
		{ HV_KIND_PINNED, ENGINE_VM_PINNED },
		{ HV_KIND_ENCRYPTED, ENGINE_VM_ENCRYPTED },
		{ HV_KIND_VIRTIO_MEM, ENGINE_VM_VIRTIO_MEM },
		{ HV_KIND_STRICT_NUMA, ENGINE_VM_STRICT_NUMA },
	};
	const size_t nr = sizeof(all) / sizeof(all[0]);

	for (unsigned int i = 0; i < nr; i++)
		host_vm(i)->kinds = all[i].kinds;
	host_up();
	host_run(3 * SECOND);
	for (unsigned int i = 0; i < nr; i++)
		ck_assert_int_eq(host_state(&host.vms[i]), all[i].state);
}
END_TEST

/* BR-107: classified before any call, and again when such a device comes or goes. */
START_TEST(device_that_pins_memory_is_seen_on_its_event_and_counts_in_full_until_read_anew)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
	vm->kinds = HV_KIND_PINNED;
	host.hold_process = true;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(100000);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_PINNED);
	ck_assert_uint_eq(host_item(vm)->sample.known & VM_RESIDENT, 0);
	vm->resident = GIB;
	host_answer_process();
	host_run(100000);
	ck_assert_uint_eq(host_item(vm)->sample.resident, PAGES(GIB));
	vm->kinds = 0;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(100000);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
}
END_TEST

START_TEST(description_is_read_before_a_target_that_waits_is_set)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	vm->hangs = true; /* the call that is out */
	host_run(SECOND);
	host_target(vm, 1, 512 * MIB);
	host_run(SECOND);
	ck_assert(host.core->vms->lane.want_target);
	vm->kinds = HV_KIND_PINNED;
	host_event(HV_EVENT_CHANGED, vm);
	vm->calls[HV_INFO] = 0;
	host_wake(vm);
	host_step();
	ck_assert_uint_ge(vm->calls[HV_INFO], 1);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
}
END_TEST

/* The newest result that the engine was told of the VM. */
static struct engine_result last_result(const struct host_vm *vm)
{
	for (size_t i = fake.nr_results; i-- > 0;)
		if (fake.results[i].id == host_id(vm))
			return fake.results[i];
	return (struct engine_result){ 0 };
}

/* A target waits behind a call that does not return. */
static struct host_vm *vm_with_waiting_target(uint64_t target)
{
	struct host_vm *vm = host_vm(0);

	vm->actual = 768 * MIB;
	host_up();
	host_run(3 * SECOND);
	vm->hangs = true;
	host_run(SECOND);
	host_target(vm, 1, target);
	host_run(SECOND);
	ck_assert(host.core->vms->lane.want_target);
	return vm;
}

static void forbid(struct host_vm *vm, int how)
{
	struct core_config config = host.config;
	struct hv_knobs no = { .has_manage = true, .manage = HV_MANAGE_NO };
	struct core_rule rule = { .name = (char *)"r", .knobs = no };

	config.rules = &rule;
	config.nr_rules = 1;
	if (how == 0)
		ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	else if (how == 1)
		core_pause(host.core, true);
	else if (how == 2)
		ck_assert_int_eq(core_pause_vm(host.core, &vm->uuid, true), 0);
	else if (how == 3)
		core_slept(host.core, host.now);
}

/* Its manage, a pause of all or of it, a sleep of the host. */
START_TEST(cut_that_waits_is_not_set_any_more_where_it_may_not_be_and_the_engine_is_told)
{
	struct host_vm *vm = vm_with_waiting_target(512 * MIB);

	forbid(vm, _i);
	host_wake(vm);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
	ck_assert_int_eq(last_result(vm).error, -ECANCELED);
	ck_assert_uint_eq(last_result(vm).seq, 1);
}
END_TEST

/* What a paused VM has coming it gets; what is not managed gets nothing, which the engine knows. */
START_TEST(way_back_that_waits_is_set_though_paused_and_not_though_unmanaged)
{
	struct host_vm *vm = vm_with_waiting_target(896 * MIB);

	forbid(vm, _i);
	host_wake(vm);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], _i > 0);
	ck_assert_int_eq(last_result(vm).error, _i > 0 ? 0 : -ECANCELED);
}
END_TEST

START_TEST(end_of_a_cut_that_waits_is_set_though_the_vm_is_not_managed_any_more)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	host_target(vm, 1, 512 * MIB); /* runs */
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	vm->hangs = true;
	host_run(SECOND);
	host_target(vm, 2, 768 * MIB);
	fake.actions[0].reason.type = ENGINE_CANCEL;
	host_run(SECOND);
	forbid(vm, 0);
	host_wake(vm);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 2);
	ck_assert_uint_eq(vm->last[HV_TARGET].target, 768 * MIB);
}
END_TEST

/* Whether its process, or a rule's word, gives it another life towards the engine. */
START_TEST(vm_that_changes_its_group_in_a_cut_keeps_the_ceiling_that_is_being_recorded)
{
	struct hv_knobs group = { .has_group = true, .group = (char *)"/b" };
	struct core_rule rule = { .name = (char *)"r", .knobs = group };
	struct host_vm *vm = host_vm(0);
	struct core_config config;
	uint64_t id;

	host_up();
	host_run(3 * SECOND);
	id = host_id(vm);
	vm->hangs = true;
	host_target(vm, 1, 512 * MIB); /* of 1 GiB */
	host_balloon(vm, GIB - MIB);
	host_run(100000);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	config = host.config;
	config.rules = &rule;
	config.nr_rules = 1;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(100000);
	ck_assert_uint_ne(host_id(vm), id);
	ck_assert_uint_eq(host_item(vm)->attrs.ceiling, PAGES(GIB));
	host_wake(vm);
}
END_TEST

START_TEST(all_that_applies_is_shown_beside_the_state_that_counts)
{
	struct host_vm *vm = host_vm(0);

	vm->kinds = HV_KIND_PINNED | HV_KIND_HUGE_PAGES | HV_KIND_STRICT_NUMA;
	host_up();
	host_run(3 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_HUGE_PAGES);
	ck_assert_uint_eq(view_of(vm).also,
		UINT32_C(1) << ENGINE_VM_PINNED | UINT32_C(1) << ENGINE_VM_STRICT_NUMA);
}
END_TEST

START_TEST(statistics_that_tell_only_what_is_free_are_limited)
{
	struct host_vm *vm = host_vm(0);

	vm->free_only = true;
	host_up();
	host_run(3 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_LIMITED);
	vm->free_only = false;
	host_run(3 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
}
END_TEST

/* BR-125: asked by nobody, whatever its balloon would answer. */
START_TEST(device_without_driver_is_no_donor_and_becomes_one_when_the_driver_comes)
{
	struct host_vm *vm;

	host_up();
	vm = host_vm(0);
	vm->driver = false;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(40 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_ARRIVING);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
	vm->driver = true;
	host_run(3 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
}
END_TEST

/* ---- throttled: BR-86, BR-132 ---- */

START_TEST(throttled_vm_is_shown_with_the_rate_and_one_alarm)
{
	struct host_vm *vm = host_vm(0);

	vm->throttle = 512 * MIB;
	host_up();
	host_run(SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_THROTTLED);
	ck_assert_uint_eq(view_of(vm).throttle, 512 * MIB);
	for (int i = 0; i < 100; i++) {
		vm->throttled += 6400;
		host_run(SECOND);
	}
	ck_assert_uint_eq(view_of(vm).throttled, vm->throttled);
	ck_assert_uint_eq(host_said("is throttled: its cgroup has memory.high 512 MiB"), 1);
	ck_assert_uint_eq(host_said("times a second: it hardly runs"), 1);
	ck_assert_uint_eq(vm->calls[HV_UNTHROTTLE], 0);
	/* It is still a donor like others: what it gives, it is not throttled for. */
	vm->throttle = 0;
	host_run(2 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
}
END_TEST

START_TEST(takeover_lifts_the_live_limit_once_and_only_in_act_mode)
{
	struct host_vm *vm = host_vm(0);

	vm->throttle = 512 * MIB;
	host.config.memtune_takeover = true;
	host_up();
	host_run(3 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_UNTHROTTLE], 1);
	ck_assert_uint_eq(vm->throttle, 0);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
	ck_assert_uint_eq(host_said("its live memtune limit was lifted"), 1);
}
END_TEST

/* Its statistics are not read, so that no other call takes this one along. */
START_TEST(takeover_lifts_the_limit_of_a_vm_without_a_balloon_too)
{
	struct host_vm *vm = host_vm(0);

	vm->balloon = false;
	vm->throttle = 512 * MIB;
	host.config.memtune_takeover = true;
	host_up();
	host_run(12 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_UNTHROTTLE], 1);
	ck_assert_uint_eq(vm->throttle, 0);
}
END_TEST

START_TEST(takeover_that_failed_is_tried_again_unless_it_cannot_be)
{
	struct host_vm *vm = host_vm(0), *transient = host_vm(1);

	vm->throttle = transient->throttle = 512 * MIB;
	vm->lift_error = -ETIMEDOUT;
	transient->lift_error = -EOPNOTSUPP;
	host.config.memtune_takeover = true;
	host_up();
	host_run(60 * SECOND);
	ck_assert_uint_ge(vm->calls[HV_UNTHROTTLE], 5);
	ck_assert_uint_le(vm->calls[HV_UNTHROTTLE], 20); /* with its descriptions */
	ck_assert_uint_eq(transient->calls[HV_UNTHROTTLE], 1);
	ck_assert_uint_eq(host_said("its throttle cannot be lifted"), 2);
	vm->lift_error = 0;
	host_run(12 * SECOND);
	ck_assert_uint_eq(vm->throttle, 0);
	ck_assert_uint_eq(host_said("its live memtune limit was lifted"), 1);
}
END_TEST

START_TEST(takeover_in_observe_mode_lifts_nothing)
{
	struct host_vm *vm = host_vm(0);

	vm->throttle = 512 * MIB;
	host.config.memtune_takeover = true;
	host.config.engine.act = false;
	host_up();
	host_run(10 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_UNTHROTTLE], 0);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_THROTTLED);
}
END_TEST

/* ---- jobs ---- */

/* BR-79: on the source. BR-110: a snapshot. */
START_TEST(job_that_statistics_tell_is_the_state_until_it_ends)
{
	static const struct {
		enum hv_job job;
		enum engine_vm_state state;
	} all[] = {
		{ HV_JOB_MIGRATION, ENGINE_VM_MIGRATING },
		{ HV_JOB_POSTCOPY, ENGINE_VM_POSTCOPY },
		{ HV_JOB_SAVE, ENGINE_VM_SAVING },
		{ HV_JOB_SNAPSHOT, ENGINE_VM_SNAPSHOT },
		{ HV_JOB_BACKUP, ENGINE_VM_BACKUP },
	};
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		vm->job = all[i].job;
		host_event(HV_EVENT_CHANGED, vm);
		host_run(100000); /* at once: the event asks for statistics */
		ck_assert_int_eq(host_state(vm), all[i].state);
		vm->job = HV_JOB_NONE;
		host_run(2 * SECOND); /* and without an event */
		ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
	}
}
END_TEST

START_TEST(outgoing_vm_that_waits_for_its_end_is_migrating_and_not_incoming)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	vm->state = HV_STARTING;
	vm->listed_job = HV_JOB_MIGRATION;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(100000);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_MIGRATING);
	/* It failed, and goes on here. */
	vm->state = HV_RUNNING;
	vm->listed_job = HV_JOB_NONE;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(100000);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
	ck_assert_uint_eq(host_item(vm)->cancels, 1);
}
END_TEST

/* BR-27 */
START_TEST(incoming_vm_counts_and_gets_no_balloon_call_until_it_runs)
{
	struct host_vm *vm;

	host_up();
	vm = host_vm(0);
	vm->state = HV_STARTING;
	vm->listed_job = HV_JOB_MIGRATION;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(60 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_INCOMING);
	ck_assert_uint_eq(host_item(vm)->attrs.maximum, PAGES(GIB));
	ck_assert_uint_eq(vm->calls[HV_STATS] + vm->calls[HV_TARGET] + vm->calls[HV_PERIOD], 0);
	vm->state = HV_RUNNING;
	vm->listed_job = HV_JOB_NONE;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(4 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
	ck_assert_uint_gt(vm->calls[HV_STATS], 0);
}
END_TEST

/* BR-110, BR-137: what was read before a restore says nothing about after. */
START_TEST(statistics_that_stand_still_after_a_restore_are_stale_and_nobody_is_asked_on_them)
{
	struct host_vm *vm = host_vm(0);

	vm->period_s = 3; /* the operator's */
	host_up();
	host_run(20 * SECOND);
	ck_assert(!host_item(vm)->sample.stale);
	vm->state = HV_PAUSED;
	vm->listed_job = HV_JOB_SNAPSHOT;
	vm->driver = false; /* they never come back */
	host_event(HV_EVENT_CHANGED, vm);
	host_run(SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_SNAPSHOT);
	vm->state = HV_RUNNING;
	vm->listed_job = HV_JOB_NONE;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(100000);
	ck_assert(host_item(vm)->sample.stale);
	ck_assert_uint_eq(vm->calls[HV_PERIOD], 0);
	host_run(60 * SECOND);
	ck_assert(host_item(vm)->sample.stale);
	/* Off and on, once, with the period that it had; and said as often. */
	ck_assert_uint_eq(vm->calls[HV_PERIOD], 2);
	ck_assert_uint_eq(vm->last[HV_PERIOD].period_s, 3);
	ck_assert_uint_eq(host_said("statistics"), 1);
	/* Once more where they moved again and then stood still. */
	vm->driver = true;
	host_run(20 * SECOND);
	ck_assert(!host_item(vm)->sample.stale);
	vm->driver = false;
	host_run(60 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_PERIOD], 4);
}
END_TEST

/* They are as old, and nobody knows whether they moved. */
START_TEST(statistics_that_cannot_be_read_are_not_armed_anew)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(4 * SECOND);
	vm->error = -EIO;
	host_run(60 * SECOND);
	ck_assert(host_item(vm)->sample.stale);
	ck_assert_uint_eq(vm->calls[HV_PERIOD], 0);
}
END_TEST

START_TEST(statistics_that_stand_still_are_not_armed_anew_while_observing)
{
	struct host_vm *vm = host_vm(0);

	host.config.engine.act = false;
	host_up();
	host_run(4 * SECOND);
	vm->driver = false;
	host_run(60 * SECOND);
	ck_assert(host_item(vm)->sample.stale);
	ck_assert_uint_eq(vm->calls[HV_PERIOD], 0);
}
END_TEST

/* BR-137: suspended to disk and started again, with its whole size. */
START_TEST(vm_that_ends_and_starts_again_begins_anew_with_what_is_found)
{
	struct host_vm *vm = host_vm(0);
	uint64_t id;

	vm->actual = 256 * MIB;
	vm->ceiling = GIB;
	host_up();
	id = host_id(vm);
	host_gone(0);
	host_event(HV_EVENT_CHANGED, vm);
	host_run(SECOND);
	vm = host_vm(0); /* without a recorded ceiling: that went with the process */
	host_event(HV_EVENT_CHANGED, vm);
	host_run(4 * SECOND);
	ck_assert_uint_ne(host_id(vm), id);
	ck_assert_uint_eq(host_item(vm)->attrs.ceiling, 0);
	ck_assert_uint_eq(host_item(vm)->sample.actual, PAGES(GIB));
}
END_TEST

/* ---- names and identities: BR-128, BR-129 ---- */

START_TEST(renamed_vm_stays_the_same_and_another_gets_its_name)
{
	struct host_vm *first = host_vm(0), *second;
	uint64_t id, found;

	strcpy(first->name, "web");
	host_up();
	id = host_id(first);
	strcpy(first->name, "web-old");
	second = host_vm(1);
	strcpy(second->name, "web");
	host_event(HV_EVENT_CHANGED, first);
	host_event(HV_EVENT_CHANGED, second);
	host_run(3 * SECOND);
	ck_assert_uint_eq(host_id(first), id);
	ck_assert_int_eq(core_find(host.core, "web", &found), 0);
	ck_assert_uint_eq(found, host_id(second));
	ck_assert_int_eq(core_find(host.core, "web-old", &found), 0);
	ck_assert_uint_eq(found, id);
	/* A target of the one is never sent to the other. */
	host_target(first, 1, 512 * MIB);
	host_run(2 * SECOND);
	ck_assert_uint_eq(first->calls[HV_TARGET], 1);
	ck_assert_uint_eq(second->calls[HV_TARGET], 0);
}
END_TEST

START_TEST(vm_restarted_between_two_listings_is_a_new_one)
{
	struct host_vm *vm = host_vm(0);
	uint64_t id;

	vm->started = 100;
	host_up();
	host_run(3 * SECOND);
	id = host_id(vm);
	host_run(10 * SECOND);
	ck_assert_uint_eq(host_id(vm), id);
	vm->started = 200;
	host_run(1500000);
	ck_assert_uint_ne(host_id(vm), id);
	ck_assert_ptr_null(fake_item(id));
	ck_assert_uint_eq(host_said("was started anew"), 1);
	host_run(4 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
}
END_TEST

/* What an operator was told of it counts until the engine knows better. */
START_TEST(vm_that_was_started_anew_has_its_name_until_the_next_decision)
{
	struct hv_knobs_change change = { .clear = HV_KNOB_MIN };
	struct host_vm *vm = host_vm(0);
	struct core_vm_view view;
	uint64_t id, found, set;
	char why[100];

	vm->started = 100;
	host_up();
	host_run(3 * SECOND);
	id = host_id(vm);
	host.hold_process = true;
	host_run(2 * SECOND);
	vm->started = 200;
	host_answer_process();
	ck_assert_int_eq(core_find(host.core, vm->name, &found), 0);
	ck_assert_uint_eq(found, id);
	ck_assert_str_eq(core_name(host.core, id), vm->name);
	ck_assert_int_eq(core_vm(host.core, id, &view), 0);
	ck_assert_int_eq(core_set_knobs(host.core, id, &change, &set, why, sizeof(why)), -ENOENT);
	host_run(4 * SECOND);
	ck_assert_ptr_null(core_name(host.core, id));
}
END_TEST

START_TEST(vm_that_comes_back_is_not_told_before_its_process_is_looked_at)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	vm->hangs = true; /* a call is out: it is kept when it goes */
	host_run(2 * SECOND);
	host_gone(0);
	host_event(HV_EVENT_CHANGED, vm);
	host_run(SECOND);
	ck_assert_uint_eq(fake_nr(true), 0);
	vm->there = true;
	host.hold_process = true;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(2 * SECOND);
	host_wake(vm);
	host_run(SECOND / 2);
	ck_assert_uint_eq(fake_nr(true), 0);
	host_answer_process();
	host_run(SECOND / 2);
	ck_assert_uint_eq(fake_nr(true), 1);
	ck_assert_uint_eq(host_item(vm)->sample.resident, PAGES(vm->resident));
}
END_TEST

/* The listing that starts it comes later than the last step. */
START_TEST(vm_that_is_renamed_as_it_comes_is_arriving_all_the_same)
{
	struct hv_listed listed = { .state = HV_RUNNING, .name = (char *)"other" };
	struct hv_event event = { .type = HV_EVENT_LISTED, .listed = { &listed, 1 } };
	struct host_vm *vm;

	host_up();
	vm = host_vm(0);
	vm->state = HV_STARTING;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_ARRIVING);
	listed.uuid = vm->uuid;
	host.core->list.token = event.token = 4711;
	core_event(host.core, host.now + 1000, &event);
	ck_assert_uint_eq(host_said("is now called 'other'"), 1);
	ck_assert_uint_eq(host_said("no balloon statistics came"), 0);
}
END_TEST

START_TEST(vm_that_vanishes_among_others_ends_nothing_of_theirs)
{
	struct host_vm *three = host_vm(3), *nine = host_vm(9), *eleven = host_vm(11);

	host_up();
	host_run(2 * SECOND);
	nine->error = nine->info_error = -ENOENT;
	host_gone(9);
	host_run(6 * SECOND);
	ck_assert_uint_eq(host_id(nine), 0);
	ck_assert_uint_ne(host_id(three), 0);
	ck_assert_uint_ne(host_id(eleven), 0);
	ck_assert(!host_item(three)->sample.stale);
	host_vm(9);
	host_run(10 * SECOND);
	ck_assert_uint_ne(host_id(nine), 0);
}
END_TEST

/* ---- failures of one VM: BR-28, BR-29, BR-30 ---- */

START_TEST(stopped_vm_is_said_once_in_a_thousand_ticks)
{
	struct host_vm *vm = host_vm(0);
	size_t lines;

	host_up();
	host_run(3 * SECOND);
	lines = host.nr_lines;
	host_gone(0);
	vm->error = vm->info_error = -ENOENT;
	host_run(1000 * SECOND);
	ck_assert_uint_le(host.nr_lines, lines + 1);
}
END_TEST

START_TEST(failure_of_a_dead_vm_is_told_with_the_name_that_it_was_listed_with)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	vm->error = -EIO;
	host_run(10 * SECOND);
	ck_assert_uint_eq(host_said("vm00: its balloon statistics cannot be read"), 1);
}
END_TEST

START_TEST(failure_at_any_call_of_one_vm_costs_the_others_nothing)
{
	struct host_vm *bad = host_vm(0), *good = host_vm(1);

	host_up();
	host_run(3 * SECOND);
	bad->error = bad->target_error = bad->info_error = bad->period_error = -EIO;
	host_target(bad, 1, 512 * MIB);
	host.list_error = -EIO;
	host_run(10 * SECOND);
	host.list_error = 0;
	host_run(10 * SECOND);
	ck_assert(!host_item(good)->sample.stale);
	ck_assert_uint_ne(host_id(bad), 0);
	bad->error = bad->target_error = bad->info_error = bad->period_error = 0;
	host_run(5 * SECOND);
	ck_assert(!host_item(bad)->sample.stale);
}
END_TEST

/* BR-117: one statistics call a VM, over the workers, and no guest agent at all. */
START_TEST(every_vm_is_adopted_with_one_description_and_one_reading)
{
	for (unsigned int i = 0; i < HOST_VMS; i++)
		host_vm(i);
	host_up();
	for (unsigned int i = 0; i < HOST_VMS; i++) {
		ck_assert_uint_ne(host_id(&host.vms[i]), 0);
		ck_assert_uint_eq(host.vms[i].calls[HV_INFO], 1);
		ck_assert_uint_eq(host.vms[i].calls[HV_STATS], 1);
	}
	ck_assert_uint_le(host.most_out, HV_WORKERS);
}
END_TEST

/* ---- interruptions ---- */

/* BR-115 */
START_TEST(after_an_outage_all_is_read_anew_and_old_statistics_are_stale)
{
	struct host_vm *vm = host_vm(0);
	unsigned int infos;
	uint64_t ticks;

	host_up();
	host_run(4 * SECOND);
	infos = vm->calls[HV_INFO];
	host_target(vm, 1, 512 * MIB);
	host_event(HV_EVENT_DOWN, NULL);
	host_run(3 * SECOND);
	ticks = fake.ticks;
	host_event(HV_EVENT_UP, NULL);
	host_run(100000);
	ck_assert_uint_gt(vm->calls[HV_INFO], infos);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
	ck_assert_uint_eq(fake.ticks, ticks); /* nothing is decided yet */
	host_run(4 * SECOND);
	ck_assert(!host_item(vm)->sample.stale);
}
END_TEST

START_TEST(host_that_slept_decides_nothing_on_what_it_knew_before)
{
	struct host_vm *vm = host_vm(0);
	uint64_t ticks;

	host_up();
	host_run(4 * SECOND);
	ck_assert(!host_item(vm)->sample.stale);
	vm->driver = false; /* not yet awake */
	ticks = fake.ticks;
	host.now += 3600 * SECOND;
	host_run(100000);
	ck_assert_uint_eq(host_said("time has passed without us"), 1);
	ck_assert_uint_eq(fake.ticks, ticks);
	vm->driver = true;
	host_run(3 * SECOND);
	ck_assert(!host_item(vm)->sample.stale);
	ck_assert_uint_eq(host_said("time has passed without us"), 1);
}
END_TEST

START_TEST(sleep_that_the_clock_does_not_show_is_told_by_the_shell)
{
	struct host_vm *vm = host_vm(0);
	uint64_t ticks;

	host_up();
	host_run(4 * SECOND);
	vm->driver = false;
	ticks = fake.ticks;
	core_slept(host.core, host.now);
	host_step();
	host_run(100000);
	ck_assert_uint_eq(fake.ticks, ticks);
}
END_TEST

START_TEST(lanes_are_not_late_for_the_time_that_the_host_slept)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	vm->hangs = true;
	host_run(1500000);
	ck_assert(vm->busy);
	host.now += 3600 * SECOND;
	host_step();
	ck_assert_int_ne(host_state(vm), ENGINE_VM_NOT_ANSWERING);
	host_run(4 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_NOT_ANSWERING);
}
END_TEST

/* BR-119: also where the balloon was on its way back. */
START_TEST(reboot_drops_what_waits_and_counts_in_full)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	vm->hangs = true;
	host_run(1500000);
	host_target(vm, 1, 512 * MIB);
	host_run(SECOND);
	host_event(HV_EVENT_REBOOTED, vm);
	host_wake(vm);
	host_run(100000);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_ARRIVING);
	ck_assert_uint_eq(host_item(vm)->cancels, 1);
}
END_TEST

/* BR-130: the two swapped, 4 GiB of 1 GiB; and 0. */
START_TEST(actual_over_the_maximum_counts_as_the_maximum_and_0_is_unknown)
{
	struct host_vm *vm = host_vm(0), *nothing = host_vm(1);

	vm->actual = 4 * GIB; /* of 1 GiB */
	nothing->actual = 0;
	host_up();
	host_run(30 * SECOND);
	ck_assert(host_item(vm)->sample.known & VM_ACTUAL);
	ck_assert_uint_eq(host_item(vm)->sample.actual, PAGES(GIB));
	ck_assert(!(host_item(nothing)->sample.known & VM_ACTUAL));
	ck_assert_uint_eq(host_said("is said to have 4 GiB, more than its maximum 1 GiB"), 1);
}
END_TEST

/* BR-12: a guest that told once that it had 3.66 GiB unused, and nothing since. */
START_TEST(statistics_of_ten_minutes_ago_are_none_and_that_is_told_when_it_matters)
{
	struct host_vm *vm = host_vm(0);

	vm->metadata = (struct hv_knobs){ .has_soft_limit = true, .soft_limit = 100 * MIB };
	host_up();
	host_run(5 * SECOND);
	ck_assert(host_item(vm)->sample.known & VM_USABLE);
	ck_assert(!host_item(vm)->sample.stale);
	vm->driver = false; /* last_update stands still; the figures are as they were */
	fake.excess = PAGES(600 * MIB);
	host_run(600 * SECOND);
	ck_assert(host_item(vm)->sample.stale);
	ck_assert_uint_eq(host_said("is in excess of its soft limit and cannot be asked"), 1);
}
END_TEST

/*
 * BR-91: what writes a limit may block for as long as it likes. ballast lowers none; the one that
 * it lifts is a call like others, on the VM's lane.
 */
START_TEST(lifting_a_limit_that_blocks_for_half_a_minute_costs_no_tick_and_no_other)
{
	struct host_vm *vm = host_vm(0), *other = host_vm(1);
	unsigned int stats;
	uint64_t ticks;

	host.config.memtune_takeover = true;
	host_up();
	host_run(2 * SECOND);
	ticks = fake.ticks;
	stats = other->calls[HV_STATS];
	vm->throttle = 512 * MIB;
	vm->hangs = true;
	host_run(30 * SECOND);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_NOT_ANSWERING);
	ck_assert_uint_ge(fake.ticks, ticks + 29);
	ck_assert_uint_ge(other->calls[HV_STATS], stats + 28);
	host_wake(vm);
	host_run(10 * SECOND);
	ck_assert_int_ne(host_state(vm), ENGINE_VM_NOT_ANSWERING);
	ck_assert_uint_eq(vm->calls[HV_UNTHROTTLE], 1);
	ck_assert_uint_eq(vm->throttle, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		each_kind_has_its_state,
		device_that_pins_memory_is_seen_on_its_event_and_counts_in_full_until_read_anew,
		description_is_read_before_a_target_that_waits_is_set,
		end_of_a_cut_that_waits_is_set_though_the_vm_is_not_managed_any_more,
		vm_that_changes_its_group_in_a_cut_keeps_the_ceiling_that_is_being_recorded,
		all_that_applies_is_shown_beside_the_state_that_counts,
		statistics_that_tell_only_what_is_free_are_limited,
		device_without_driver_is_no_donor_and_becomes_one_when_the_driver_comes,
		throttled_vm_is_shown_with_the_rate_and_one_alarm,
		takeover_lifts_the_live_limit_once_and_only_in_act_mode,
		takeover_lifts_the_limit_of_a_vm_without_a_balloon_too,
		takeover_that_failed_is_tried_again_unless_it_cannot_be,
		takeover_in_observe_mode_lifts_nothing,
		job_that_statistics_tell_is_the_state_until_it_ends,
		outgoing_vm_that_waits_for_its_end_is_migrating_and_not_incoming,
		incoming_vm_counts_and_gets_no_balloon_call_until_it_runs,
		statistics_that_stand_still_after_a_restore_are_stale_and_nobody_is_asked_on_them,
		statistics_that_cannot_be_read_are_not_armed_anew,
		statistics_that_stand_still_are_not_armed_anew_while_observing,
		vm_that_ends_and_starts_again_begins_anew_with_what_is_found,
		renamed_vm_stays_the_same_and_another_gets_its_name,
		vm_restarted_between_two_listings_is_a_new_one,
		vm_that_was_started_anew_has_its_name_until_the_next_decision,
		vm_that_comes_back_is_not_told_before_its_process_is_looked_at,
		vm_that_is_renamed_as_it_comes_is_arriving_all_the_same,
		vm_that_vanishes_among_others_ends_nothing_of_theirs,
		stopped_vm_is_said_once_in_a_thousand_ticks,
		failure_of_a_dead_vm_is_told_with_the_name_that_it_was_listed_with,
		failure_at_any_call_of_one_vm_costs_the_others_nothing,
		every_vm_is_adopted_with_one_description_and_one_reading,
		after_an_outage_all_is_read_anew_and_old_statistics_are_stale,
		host_that_slept_decides_nothing_on_what_it_knew_before,
		sleep_that_the_clock_does_not_show_is_told_by_the_shell,
		lanes_are_not_late_for_the_time_that_the_host_slept,
		reboot_drops_what_waits_and_counts_in_full,
		actual_over_the_maximum_counts_as_the_maximum_and_0_is_unknown,
		statistics_of_ten_minutes_ago_are_none_and_that_is_told_when_it_matters,
		lifting_a_limit_that_blocks_for_half_a_minute_costs_no_tick_and_no_other,
	};
	Suite *suite = suite_create("kinds");
	TCase *tc = tcase_create("kinds");

	tcase_add_checked_fixture(tc, host_setup, host_teardown);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tc, tests[i]);
	tcase_add_loop_test(tc,
		cut_that_waits_is_not_set_any_more_where_it_may_not_be_and_the_engine_is_told, 0,
		4);
	tcase_add_loop_test(
		tc, way_back_that_waits_is_set_though_paused_and_not_though_unmanaged, 0, 3);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
