/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which calls the core makes and when; hung ones, ticks. */
#include <config.h>

#include "tests/unit/host.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>

/* ---- targets ---- */

START_TEST(target_is_called_at_once_and_statistics_are_read_after_it)
{
	struct host_vm *vm = host_vm(0);
	unsigned int stats;

	fake.next = 0; /* ticks as often as may be */
	host_up();
	host_run(3 * SECOND);
	stats = vm->calls[HV_STATS];
	host_target(vm, 1, 900 * MIB);
	host_run(60000);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	ck_assert_uint_eq(vm->last[HV_TARGET].target, 900 * MIB);
	ck_assert_uint_eq(vm->last[HV_TARGET].ceiling, GIB);
	ck_assert_uint_eq(vm->calls[HV_STATS], stats + 1);
	ck_assert_uint_eq(
		host_said("vm00: target 1 GiB -> 900 MiB: cut in step 1 for the pool"), 1);

	host_run(100000);
	ck_assert_uint_eq(fake.nr_results, 1);
	ck_assert_uint_eq(fake.results[0].id, host_id(vm));
	ck_assert_uint_eq(fake.results[0].seq, 1);
	ck_assert_int_eq(fake.results[0].error, 0);
	ck_assert_uint_eq(host_item(vm)->sample.actual, PAGES(900 * MIB));
}
END_TEST

START_TEST(target_counts_as_applied_when_all_figures_were_read_after_it)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	/* A reading of processes that was under way when the target returned is of before it. */
	host.hold_process = true;
	host_run(SECOND);
	ck_assert_uint_ne(host.held_process.token, 0);
	host_target(vm, 1, 900 * MIB);
	host_run(2 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	ck_assert_uint_eq(host_item(vm)->sample.actual, PAGES(900 * MIB));
	vm->resident -= MIB;
	host_answer_process();
	host.hold_process = true;
	host_run(60000);
	ck_assert_uint_eq(host_item(vm)->sample.resident, PAGES(vm->resident));
	ck_assert_uint_eq(host_item(vm)->sample.applied_seq, 0);
	host_run(SECOND);
	host_answer_process();
	host_run(SECOND);
	ck_assert_uint_eq(host_item(vm)->sample.applied_seq, 1);
}
END_TEST

START_TEST(newest_target_supersedes_those_that_wait)
{
	struct host_vm *vm = host_vm(0);

	fake.next = 0; /* ticks as often as may be */
	host_up();
	vm->hangs = true;
	host_run(SECOND);
	for (uint64_t seq = 1; seq <= 3; seq++) {
		host_target(vm, seq, GIB - seq * MIB);
		host_run(60000);
	}
	host_wake(vm);
	host_step();
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	ck_assert_uint_eq(vm->last[HV_TARGET].target, GIB - 3 * MIB);
}
END_TEST

START_TEST(refused_target_is_told_to_the_engine_and_said_once)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	vm->target_error = -EPERM;
	for (uint64_t seq = 1; seq <= 5; seq++) {
		host_target(vm, seq, 900 * MIB);
		host_run(SECOND);
	}
	ck_assert_uint_eq(fake.nr_results, 5);
	ck_assert_int_eq(fake.results[4].error, -EPERM);
	ck_assert_uint_eq(fake.results[4].seq, 5);
	ck_assert_uint_eq(host_said("its balloon target 900 MiB was refused"), 1);
	host_run(SECOND);
	ck_assert_uint_eq(host_item(vm)->sample.applied_seq, 0);
}
END_TEST

START_TEST(all_qemus_stopped_in_one_moment_hang_no_more_than_four_calls)
{
	for (unsigned int i = 0; i < HOST_VMS; i++)
		host_vm(i);
	host_up();
	host_run(5 * SECOND);
	for (unsigned int i = 0; i < HOST_VMS; i++)
		host.vms[i].hangs = true;
	host_run(10 * SECOND);
	ck_assert_uint_eq(host.out, HV_MAX_HUNG);
	for (unsigned int i = 0; i < HOST_VMS; i++) {
		host.vms[i].hangs = false;
		if (host.vms[i].busy)
			host_wake(&host.vms[i]);
	}
	host_run(5 * SECOND);
	ck_assert_uint_eq(host.out, 0);
	ck_assert(!host_item(host_vm(19))->sample.stale);
}
END_TEST

START_TEST(targets_go_before_readings_of_others)
{
	unsigned int before;

	for (unsigned int i = 0; i < HOST_VMS; i++)
		host_vm(i);
	fake.next = 0; /* ticks as often as may be */
	host_up();
	host_run(SECOND);
	/* All wait for their statistics, and four places are taken. */
	for (unsigned int i = 0; i < HOST_VMS; i++)
		host.vms[i].hangs = true;
	host_run(SECOND);
	ck_assert_uint_eq(host.out, HV_MAX_HUNG);
	for (unsigned int i = 19; i > 0 && !fake.nr_actions; i--)
		if (!host.vms[i].busy)
			host_target(&host.vms[i], 1, 900 * MIB);
	before = host.vms[19].calls[HV_TARGET];
	host_run(60000);
	for (unsigned int i = 0; i < HOST_VMS; i++) {
		if (!host.vms[i].busy)
			continue;
		host_wake(&host.vms[i]);
		break;
	}
	host_step();
	before = 0;
	for (unsigned int i = 0; i < HOST_VMS; i++)
		before += host.vms[i].calls[HV_TARGET];
	ck_assert_uint_eq(before, 1);
}
END_TEST

START_TEST(no_target_outlives_the_connection)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_event(HV_EVENT_DOWN, NULL);
	host_target(vm, 1, 900 * MIB);
	host_run(3 * SECOND);
	host_event(HV_EVENT_UP, NULL);
	host_run(3 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
	ck_assert_uint_eq(fake.nr_results, 1);
	ck_assert_int_eq(fake.results[0].error, -ENOTCONN);
}
END_TEST

START_TEST(no_old_target_is_replayed_after_a_reboot_or_a_pause)
{
	struct host_vm *vm = host_vm(0);

	fake.next = 0; /* ticks as often as may be */
	host_up();
	vm->hangs = true;
	host_run(SECOND);
	host_target(vm, 1, 900 * MIB);
	host_run(60000);
	host_event(HV_EVENT_REBOOTED, vm);
	host_wake(vm);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);

	vm->hangs = true;
	host_run(SECOND);
	host_target(vm, 2, 900 * MIB);
	host_run(60000);
	vm->state = HV_PAUSED;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(100000);
	host_wake(vm);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
}
END_TEST

START_TEST(answer_of_an_older_target_does_not_hide_that_the_newer_one_was_dropped)
{
	struct host_vm *vm = host_vm(0);

	fake.next = 0; /* ticks as often as may be */
	host_up();
	host_run(2 * SECOND);
	host_target(vm, 1, 900 * MIB);
	vm->hangs = true;
	host_run(60000);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	host_target(vm, 2, 800 * MIB);
	host_run(60000);
	host_event(HV_EVENT_REBOOTED, vm);
	host_wake(vm);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	ck_assert_uint_ge(fake.nr_results, 1);
	ck_assert_uint_eq(fake.results[fake.nr_results - 1].seq, 2);
	ck_assert_int_eq(fake.results[fake.nr_results - 1].error, -ECANCELED);
}
END_TEST

START_TEST(target_that_waits_is_dropped_when_somebody_else_set_another_and_the_engine_is_told)
{
	struct host_vm *vm = host_vm(0);

	fake.next = 0; /* ticks as often as may be */
	host_up();
	host_run(2 * SECOND);
	host_target(vm, 1, 900 * MIB);
	vm->hangs = true;
	host_run(60000);
	host_target(vm, 2, 800 * MIB);
	host_run(60000);
	host_event(HV_EVENT_TOLD, vm);
	host_wake(vm); /* the answer to the first does not hide it */
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	ck_assert_uint_ge(fake.nr_results, 1);
	ck_assert_uint_eq(fake.results[fake.nr_results - 1].id, host_id(vm));
	ck_assert_int_eq(fake.results[fake.nr_results - 1].error, -ESTALE);
	/* Of one that nobody knows it says nothing. */
	host_event(HV_EVENT_TOLD, host_vm(1));
}
END_TEST

START_TEST(target_that_waits_is_dropped_when_the_one_before_was_too_late_for_somebody_else_s)
{
	struct host_vm *vm = host_vm(0);

	fake.next = 0; /* ticks as often as may be */
	host_up();
	host_run(2 * SECOND);
	host_target(vm, 1, 900 * MIB);
	vm->hangs = true;
	vm->target_error = -ESTALE;
	host_run(60000);
	host_target(vm, 2, 800 * MIB);
	host_run(60000);
	host_wake(vm);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	ck_assert_uint_ge(fake.nr_results, 1);
	ck_assert_int_eq(fake.results[fake.nr_results - 1].error, -ESTALE);
}
END_TEST

/* ---- descriptions, which are no VM's to answer ---- */

START_TEST(slow_descriptions_make_no_vm_unanswering)
{
	struct core_status status;

	for (unsigned int i = 0; i < 12; i++)
		host_vm(i);
	host_up();
	host_run(2 * SECOND);
	for (unsigned int i = 0; i < 12; i++)
		host.vms[i].slow_info = i < 4;
	host_run(20 * SECOND);
	core_status(host.core, &status);
	ck_assert_uint_eq(status.hung, 0);
	ck_assert_uint_eq(host_said("is not answering"), 0);
	ck_assert_uint_eq(host_said("calls hang"), 0);
	for (unsigned int i = 0; i < 12; i++) {
		ck_assert_int_ne(host_state(&host.vms[i]), ENGINE_VM_NOT_ANSWERING);
		host.vms[i].slow_info = false;
		host_wake(&host.vms[i]);
	}
	host_run(3 * SECOND);
	ck_assert(!host_item(&host.vms[0])->sample.stale);
}
END_TEST

START_TEST(lost_events_are_a_listing_with_all_descriptions_and_nothing_else)
{
	struct host_vm *vm = host_vm(0);
	unsigned int lists, infos;

	host_up();
	host_run(3 * SECOND);
	lists = host.calls[HV_LIST];
	infos = vm->calls[HV_INFO];
	host_event(HV_EVENT_CHANGED, NULL);
	host_target(vm, 1, 900 * MIB);
	host_run(SECOND);
	ck_assert_uint_eq(host.calls[HV_LIST], lists + 1);
	ck_assert_uint_eq(vm->calls[HV_INFO], infos + 1);
	ck_assert(!host_item(vm)->sample.stale);
	ck_assert_uint_eq(host_said("connected to"), 1);
}
END_TEST

/* ---- observe ---- */

START_TEST(observe_changes_nothing_anywhere)
{
	struct host_vm *vm = host_vm(0);

	host.config.engine.act = false;
	vm->period_s = 0;
	host_up();
	host_target(vm, 1, 900 * MIB); /* an engine that went mad */
	host_run(70 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_PERIOD], 0);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
	ck_assert_uint_ge(vm->calls[HV_STATS], 60);
	/* With statistics off nobody can tell whether there is a driver. */
	ck_assert_int_eq(host_state(vm), ENGINE_VM_RUNNING);
	ck_assert(host_item(vm)->sample.stale);
}
END_TEST

START_TEST(vm_that_is_only_observed_is_not_changed)
{
	struct host_vm *vm = host_vm(0);

	vm->period_s = 0;
	vm->metadata = (struct hv_knobs){ .has_manage = true, .manage = HV_MANAGE_OBSERVE };
	host_up();
	host_target(vm, 1, 900 * MIB);
	host_run(10 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_PERIOD] + vm->calls[HV_TARGET], 0);
}
END_TEST

START_TEST(statistics_are_switched_on_where_they_are_off)
{
	struct host_vm *off = host_vm(0), *on = host_vm(1);

	off->period_s = 0;
	on->period_s = 7;
	host_up();
	host_run(10 * SECOND);
	ck_assert_uint_eq(off->calls[HV_PERIOD], 1);
	ck_assert_uint_eq(off->last[HV_PERIOD].period_s, 1);
	ck_assert_uint_eq(on->calls[HV_PERIOD], 0);
	ck_assert(!host_item(off)->sample.stale);
}
END_TEST

START_TEST(statistics_that_cannot_be_switched_on_are_tried_at_each_resync)
{
	struct host_vm *vm = host_vm(0);

	vm->period_s = 0;
	vm->period_error = -EIO;
	host_up();
	host_run(21 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_PERIOD], 5);
	ck_assert_uint_eq(host_said("cannot be switched on"), 1);
}
END_TEST

/* ---- rhythms ---- */

static unsigned int count(enum hv_call_type type, uint64_t us)
{
	unsigned int before = host.calls[type];

	host_run(us);
	return host.calls[type] - before;
}

START_TEST(set_pool_reads_processes_faster_below_wm_high_and_never_the_host)
{
	host.config.pool_host = false;
	host.config.pool_size = 4 * GIB;
	host_vm(0);
	fake.view = (struct engine_pool_view){ .known = true, .free = 100, .wm_high = 100 };
	host_up();
	host_run(2 * SECOND); /* until all statistics move */
	ck_assert(fake.pool.known);
	ck_assert(!fake.pool.host);
	ck_assert_uint_eq(fake.pool.size, PAGES(4 * GIB));
	ck_assert_uint_eq(count(HV_PROCESS, 10 * SECOND), 40);
	fake.view.free = 99;
	host_run(SECOND);
	ck_assert_uint_eq(count(HV_PROCESS, 10 * SECOND), 200);
	ck_assert_uint_eq(host.calls[HV_HOST], 0);
}
END_TEST

START_TEST(host_pool_is_read_faster_below_wm_high_and_processes_each_second)
{
	host_vm(0);
	fake.view = (struct engine_pool_view){
		.known = true, .free = 100, .wm_high = 100, .wm_low = PAGES(GIB)
	};
	host_up();
	host_run(2 * SECOND);
	ck_assert(fake.pool.known && fake.pool.host);
	ck_assert_uint_eq(fake.pool.size, PAGES(64 * GIB));
	ck_assert_uint_eq(fake.pool.available, PAGES(32 * GIB));
	ck_assert_uint_eq(fake.pool.reserve, PAGES(2 * GIB)); /* 3 % would be less */
	ck_assert_uint_eq(count(HV_HOST, 10 * SECOND), 40);
	ck_assert_uint_eq(count(HV_PROCESS, 10 * SECOND), 10);
	fake.view.free = 99;
	host_run(SECOND);
	ck_assert_uint_eq(count(HV_HOST, 10 * SECOND), 200);
	ck_assert_uint_eq(count(HV_PROCESS, 10 * SECOND), 10);
}
END_TEST

START_TEST(processes_are_read_at_once_when_the_pool_moved)
{
	unsigned int before;

	host_vm(0);
	fake.view = (struct engine_pool_view){
		.known = true, .free = 100, .wm_high = 100, .wm_low = PAGES(GIB)
	};
	host_up();
	host_run(2 * SECOND);
	host.available -= GIB / 64; /* as much as may be */
	ck_assert_uint_eq(count(HV_PROCESS, SECOND), 1);
	before = host.calls[HV_PROCESS];
	host.available -= 1;
	host_run(300000);
	ck_assert_uint_ge(host.calls[HV_PROCESS], before + 1);
	host_run(SECOND);
	ck_assert_uint_eq(count(HV_PROCESS, 10 * SECOND), 10);
}
END_TEST

START_TEST(reserve_is_three_percent_where_that_is_more_and_the_operators_where_set)
{
	host.total = 1000 * GIB;
	host_up();
	ck_assert_uint_eq(fake.pool.reserve, PAGES(30 * GIB));
	host_teardown();
	host.config.reserve_set = true;
	host.config.reserve = 1;
	host_up();
	ck_assert_uint_eq(fake.pool.reserve, 1);
}
END_TEST

START_TEST(host_that_makes_no_sense_is_unknown_and_said_so_once)
{
	host_vm(0);
	host_up();
	host_run(2 * SECOND);
	ck_assert(fake.pool.known);
	host.total = 0;
	host_run(10 * SECOND);
	ck_assert(!fake.pool.known);
	ck_assert_uint_eq(host_said("is not known: nothing is taken or given"), 1);
	host.total = 64 * GIB;
	host.host_error = -EIO;
	host_run(10 * SECOND);
	ck_assert(!fake.pool.known);
	ck_assert_uint_eq(host_said("the host's memory cannot be read"), 1);
	host.host_error = 0;
	host_run(SECOND);
	ck_assert(fake.pool.known);
	ck_assert_uint_eq(host_said("the host's memory can be read again"), 1);
}
END_TEST

START_TEST(pressure_wakes_an_observation)
{
	host_vm(0);
	host_up();
	host_run(2 * SECOND + 60000);
	host_event(HV_EVENT_PRESSURE, NULL);
	host_event(HV_EVENT_PRESSURE, NULL);
	ck_assert_uint_eq(count(HV_PROCESS, 50000), 1);
	/* A flood of it is not a flood of readings. */
	host_run(SECOND);
	for (int i = 0; i < 1000; i++) {
		host_event(HV_EVENT_PRESSURE, NULL);
		host_run(1000);
	}
	ck_assert_uint_le(host.calls[HV_PROCESS], 30);
}
END_TEST

START_TEST(ticks_come_at_most_every_50_ms_and_at_least_every_second)
{
	struct host_vm *vm = host_vm(0);
	uint64_t before;

	host_up();
	host_run(2 * SECOND);
	for (int i = 0; i < 1000; i++) { /* something changes every millisecond */
		host_balloon(vm, GIB - (uint64_t)i * 4096);
		host_run(1000);
	}
	ck_assert_uint_ge(fake.shortest, 50000);
	before = fake.ticks;
	host_gone(0);
	host_run(10 * SECOND);
	before = fake.ticks;
	host_run(10 * SECOND);
	ck_assert_uint_eq(fake.ticks - before, 10);
}
END_TEST

START_TEST(engine_says_when_the_next_tick_is)
{
	uint64_t before;

	host_up();
	host_run(2 * SECOND);
	before = fake.ticks;
	fake.next = host.now + 1200000; /* told by the tick within the next second */
	host_run(SECOND);
	fake.next = UINT64_MAX;
	host_run(250000);
	ck_assert_uint_ge(fake.ticks - before, 2);
	ck_assert_uint_le(fake.last_tick, host.now);
	fake.next = 0; /* the past: as soon as may be */
	before = fake.ticks;
	host_run(2 * SECOND);
	ck_assert_uint_ge(fake.ticks - before, 20);
	ck_assert_uint_ge(fake.shortest, 50000);
}
END_TEST

START_TEST(burst_of_changes_is_one_listing_after_another)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(SECOND);
	for (int i = 0; i < 100; i++)
		host_event(HV_EVENT_CHANGED, vm);
	ck_assert_uint_eq(count(HV_LIST, 40000), 1);
	for (int i = 0; i < 1000; i++) {
		host_event(HV_EVENT_CHANGED, vm);
		host_run(1000);
	}
	ck_assert_uint_le(host.calls[HV_LIST], 30);
}
END_TEST

START_TEST(descriptions_are_read_at_each_resync)
{
	struct host_vm *vm = host_vm(0);
	unsigned int before;

	host_up();
	before = vm->calls[HV_INFO];
	host_run(50 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_INFO] - before, 10);
	ck_assert_uint_eq(host.calls[HV_LIST], 11);
}
END_TEST

/* ---- hung calls ---- */

START_TEST(one_stopped_vm_costs_the_others_nothing)
{
	unsigned int before[HOST_VMS];

	for (unsigned int i = 0; i < HOST_VMS; i++)
		host_vm(i);
	host_up();
	host_run(3 * SECOND);
	host.vms[7].hangs = true;
	for (unsigned int i = 0; i < HOST_VMS; i++)
		before[i] = host.vms[i].calls[HV_STATS];
	host_run(120 * SECOND);
	for (unsigned int i = 0; i < HOST_VMS; i++)
		if (i != 7)
			ck_assert_uint_ge(host.vms[i].calls[HV_STATS] - before[i], 119);
	ck_assert_uint_eq(host.vms[7].calls[HV_STATS] - before[7], 1);
	ck_assert_int_eq(host_state(&host.vms[7]), ENGINE_VM_NOT_ANSWERING);
	ck_assert_uint_eq(host_said("vm07: is not answering"), 1);
	ck_assert(vm_knows(&host_item(&host.vms[7])->sample, VM_RESIDENT));
	ck_assert_uint_eq(host.out, 1);

	host_wake(&host.vms[7]);
	host_run(3 * SECOND);
	ck_assert_int_eq(host_state(&host.vms[7]), ENGINE_VM_RUNNING);
	ck_assert_uint_eq(host_said("vm07: answers again"), 1);
	ck_assert(!host_item(&host.vms[7])->sample.stale);
}
END_TEST

START_TEST(target_that_waits_for_a_hung_call_is_given_up)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	vm->hangs = true;
	host_run(SECOND);
	host_target(vm, 9, 900 * MIB);
	host_run(4 * SECOND);
	ck_assert_uint_eq(fake.nr_results, 1);
	ck_assert_uint_eq(fake.results[0].seq, 9);
	ck_assert_int_eq(fake.results[0].error, -ETIMEDOUT);
	host_wake(vm);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
}
END_TEST

START_TEST(four_hung_calls_stop_all_calls_of_vms_and_nothing_else)
{
	unsigned int calls = 0, lists, processes;
	struct core_status status;

	for (unsigned int i = 0; i < 8; i++)
		host_vm(i);
	host_up();
	host_run(2 * SECOND);
	for (unsigned int i = 0; i < 4; i++)
		host.vms[i].hangs = true;
	host_run(5 * SECOND);
	core_status(host.core, &status);
	ck_assert_uint_eq(status.hung, 4);
	ck_assert_uint_eq(host_said("4 calls hang"), 1);
	for (unsigned int i = 0; i < 8; i++)
		calls += host.vms[i].calls[HV_STATS];
	lists = host.calls[HV_LIST];
	processes = host.calls[HV_PROCESS];
	host_run(20 * SECOND);
	for (unsigned int i = 0; i < 8; i++)
		calls -= host.vms[i].calls[HV_STATS];
	ck_assert_uint_eq(calls, 0);
	ck_assert_uint_eq(host.calls[HV_LIST] - lists, 4);
	ck_assert_uint_ge(host.calls[HV_PROCESS] - processes, 20);
	/* Nobody plans on what was read before. */
	ck_assert(host_item(&host.vms[6])->sample.stale);

	host_wake(&host.vms[2]);
	host_run(3 * SECOND);
	ck_assert(!host_item(&host.vms[6])->sample.stale);
	ck_assert_uint_eq(host_said("fewer than 4 calls hang"), 1);
	ck_assert_uint_le(host.most_out, 8);
}
END_TEST

START_TEST(never_more_calls_are_out_than_workers)
{
	for (unsigned int i = 0; i < HOST_VMS; i++)
		host_vm(i);
	host_up();
	for (unsigned int i = 0; i < HOST_VMS; i++)
		host.vms[i].hangs = true;
	host_run(2 * SECOND);
	ck_assert_uint_eq(host.out, HV_MAX_HUNG);
	for (int round = 0; round < 3; round++)
		for (unsigned int i = 0; i < HOST_VMS; i++) {
			if (!host.vms[i].busy)
				continue;
			host_wake(&host.vms[i]);
			host.vms[i].hangs = true;
			host_step();
			ck_assert_uint_le(host.out, 8);
		}
}
END_TEST

START_TEST(vm_that_goes_while_its_call_is_out_and_comes_back_gets_no_second_call)
{
	struct host_vm *vm = host_vm(0);
	uint64_t old;

	host_up();
	host_run(2 * SECOND);
	old = host_id(vm);
	vm->hangs = true;
	host_run(SECOND);
	ck_assert(vm->busy);
	host_gone(0);
	host_run(6 * SECOND);
	ck_assert_uint_eq(host_id(vm), 0);
	ck_assert_ptr_null(fake_item(old));

	vm->there = true;
	vm->hangs = false; /* its new calls would be answered; the old one is still out */
	host_run(6 * SECOND);
	ck_assert(vm->busy);
	ck_assert_uint_eq(host_id(vm), 0);
	host_wake(vm);
	host_run(SECOND / 2);
	ck_assert_uint_gt(host_id(vm), old);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_ARRIVING);
}
END_TEST

START_TEST(call_of_a_vm_that_has_gone_is_awaited_and_no_longer)
{
	struct host_vm *vm = host_vm(0);
	struct core_status status;

	host_up();
	vm->hangs = true;
	host_run(5 * SECOND);
	host_gone(0);
	host_run(60 * SECOND);
	core_status(host.core, &status);
	ck_assert_uint_eq(status.hung, 1);
	host_wake(vm);
	host_step();
	core_status(host.core, &status);
	ck_assert_uint_eq(status.hung, 0);
}
END_TEST

START_TEST(call_that_cannot_be_submitted_is_made_later)
{
	struct host_vm *vm = host_vm(0);
	unsigned int stats;

	host_up();
	host_run(2 * SECOND);
	stats = vm->calls[HV_STATS];
	host.refuse = true;
	host_run(2 * SECOND);
	ck_assert_uint_gt(host.refused, 0);
	/* With a pause in between: five kinds of calls at most, twenty times a second. */
	ck_assert_uint_le(host.refused, 200);
	host.refuse = false;
	host_run(SECOND);
	ck_assert_uint_gt(vm->calls[HV_STATS], stats);
	ck_assert(!host_item(vm)->sample.stale);
}
END_TEST

START_TEST(failing_calls_are_said_once_and_tried_on)
{
	struct host_vm *vm = host_vm(0), *other = host_vm(1);

	vm->error = -EIO;
	other->info_error = -EIO;
	host_up();
	host_run(10 * SECOND);
	ck_assert_uint_eq(host_said("vm00: its balloon statistics cannot be read"), 1);
	ck_assert_uint_eq(host_said("vm01: its description cannot be read"), 1);
	ck_assert_uint_ge(vm->calls[HV_STATS], 10);
	ck_assert_uint_eq(host_id(other), 0);
	other->info_error = vm->error = 0;
	host_run(2 * SECOND);
	ck_assert_uint_ne(host_id(other), 0);
	ck_assert_uint_ge(host_item(vm)->sample.known & VM_USABLE, 1);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		target_is_called_at_once_and_statistics_are_read_after_it,
		target_counts_as_applied_when_all_figures_were_read_after_it,
		newest_target_supersedes_those_that_wait,
		refused_target_is_told_to_the_engine_and_said_once,
		all_qemus_stopped_in_one_moment_hang_no_more_than_four_calls,
		targets_go_before_readings_of_others,
		no_target_outlives_the_connection,
		no_old_target_is_replayed_after_a_reboot_or_a_pause,
		answer_of_an_older_target_does_not_hide_that_the_newer_one_was_dropped,
		target_that_waits_is_dropped_when_somebody_else_set_another_and_the_engine_is_told,
		target_that_waits_is_dropped_when_the_one_before_was_too_late_for_somebody_else_s,
		slow_descriptions_make_no_vm_unanswering,
		lost_events_are_a_listing_with_all_descriptions_and_nothing_else,
		observe_changes_nothing_anywhere,
		vm_that_is_only_observed_is_not_changed,
		statistics_are_switched_on_where_they_are_off,
		statistics_that_cannot_be_switched_on_are_tried_at_each_resync,
		set_pool_reads_processes_faster_below_wm_high_and_never_the_host,
		host_pool_is_read_faster_below_wm_high_and_processes_each_second,
		processes_are_read_at_once_when_the_pool_moved,
		reserve_is_three_percent_where_that_is_more_and_the_operators_where_set,
		host_that_makes_no_sense_is_unknown_and_said_so_once,
		pressure_wakes_an_observation,
		ticks_come_at_most_every_50_ms_and_at_least_every_second,
		engine_says_when_the_next_tick_is,
		burst_of_changes_is_one_listing_after_another,
		descriptions_are_read_at_each_resync,
		one_stopped_vm_costs_the_others_nothing,
		target_that_waits_for_a_hung_call_is_given_up,
		four_hung_calls_stop_all_calls_of_vms_and_nothing_else,
		never_more_calls_are_out_than_workers,
		vm_that_goes_while_its_call_is_out_and_comes_back_gets_no_second_call,
		call_of_a_vm_that_has_gone_is_awaited_and_no_longer,
		call_that_cannot_be_submitted_is_made_later,
		failing_calls_are_said_once_and_tried_on,
	};
	Suite *suite = suite_create("core_calls");
	TCase *tc = tcase_create("core_calls");

	tcase_add_checked_fixture(tc, host_setup, host_teardown);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
