/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The core and agents: reports count as long as they come, and targets that cut wait for them. */
#include <config.h>

#include "tests/unit/host.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hv/core_internal.h"
#include "tests/unit/suite.h"

static const struct hv_agent report = {
	.connected = true,
	.reclaims = true,
	.known = HV_AGENT_REPORT | HV_AGENT_LISTS | HV_AGENT_FREE | HV_AGENT_FLOOR,
	.lists = { 10 * MIB, 20 * MIB, 30 * MIB, 400 * MIB, 0 },
	.free = 100 * MIB,
	.floor = 200 * MIB,
	.version = 1,
	.software = "test 1",
};

static struct host_vm *vm_with_agent(unsigned int i)
{
	struct host_vm *vm = host_vm(i);

	host_up();
	host_report(vm, &report);
	host_run(2 * SECOND);
	host_report(vm, &report);
	return vm;
}

START_TEST(report_reaches_the_engine_and_is_dropped_when_the_agent_is_silent)
{
	struct host_vm *vm = vm_with_agent(0);

	host_run(SECOND);
	ck_assert(host_item(vm)->attrs.agent);
	ck_assert_uint_eq(host_item(vm)->attrs.agent_floor, PAGES(200 * MIB));
	ck_assert(vm_knows(&host_item(vm)->sample, VM_LISTS));
	ck_assert_uint_eq(host_item(vm)->sample.lists.inactive_file, PAGES(400 * MIB));
	host_run(CORE_AGENT_SILENT_US + SECOND);
	ck_assert(!host_item(vm)->attrs.agent);
	ck_assert_uint_eq(host_item(vm)->attrs.agent_floor, 0);
	ck_assert(!vm_knows(&host_item(vm)->sample, VM_LISTS));
}
END_TEST

START_TEST(target_waits_until_the_agent_has_freed_what_the_balloon_takes)
{
	struct host_vm *vm = vm_with_agent(0);

	vm->reads_nothing = true;
	host_target(vm, 1, GIB - 256 * MIB);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_RECLAIM], 1);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
	/* What is free already has not to be freed; a 64th is left to the guest. */
	ck_assert_uint_eq(vm->last[HV_RECLAIM].bytes, 256 * MIB + 16 * MIB - 100 * MIB);
	ck_assert(!vm->last[HV_RECLAIM].anon);
	ck_assert(!vm->last[HV_RECLAIM].active);
	host_freed(vm, 0, 172 * MIB);
	host_run(100000);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	ck_assert_uint_eq(vm->last[HV_TARGET].target, GIB - 256 * MIB);
}
END_TEST

START_TEST(what_is_free_already_is_taken_at_once)
{
	struct host_vm *vm = vm_with_agent(0);

	host_target(vm, 1, GIB - 64 * MIB);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_RECLAIM], 0);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
}
END_TEST

START_TEST(agent_that_does_not_answer_is_waited_for_once_and_then_left_alone)
{
	struct host_vm *vm = vm_with_agent(0);

	vm->reads_nothing = true;
	host_target(vm, 1, GIB - 256 * MIB);
	host_run(SECOND + CORE_AGENT_ASK_US);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	host_report(vm, &report);
	host_target(vm, 2, GIB - 300 * MIB);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_RECLAIM], 1);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 2);
	host_freed(vm, 0, MIB); /* too late: of a request that is over */
	host_run(100000);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 2);
}
END_TEST

START_TEST(target_of_a_vm_without_agent_waits_for_nobody)
{
	struct host_vm *with = vm_with_agent(0), *without = host_vm(1);

	host_event(HV_EVENT_CHANGED, without);
	host_run(3 * SECOND);
	host_report(with, &report);
	with->reads_nothing = true;
	host_target(with, 1, GIB - 256 * MIB);
	host_target(without, 1, GIB - 256 * MIB);
	host_run(SECOND);
	ck_assert_uint_eq(with->calls[HV_TARGET], 0);
	ck_assert_uint_eq(without->calls[HV_TARGET], 1);
	ck_assert_uint_eq(without->calls[HV_RECLAIM], 0);
}
END_TEST

START_TEST(way_back_does_not_wait_and_takes_the_place_of_the_cut)
{
	struct host_vm *vm = vm_with_agent(0);

	vm->reads_nothing = true;
	host_target(vm, 1, GIB - 256 * MIB);
	host_run(SECOND);
	host_target(vm, 2, GIB);
	fake.actions[0].reason.type = ENGINE_FEED;
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	ck_assert_uint_eq(vm->last[HV_TARGET].target, GIB);
	host_run(3 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
}
END_TEST

START_TEST(reboot_while_a_target_waits_drops_it)
{
	struct host_vm *vm = vm_with_agent(0);

	vm->reads_nothing = true;
	host_target(vm, 7, GIB - 256 * MIB);
	host_run(SECOND);
	host_event(HV_EVENT_REBOOTED, vm);
	host_run(3 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
	ck_assert_uint_ge(fake.nr_results, 1);
	ck_assert_uint_eq(fake.results[fake.nr_results - 1].seq, 7);
}
END_TEST

START_TEST(guest_that_says_it_lacks_memory_counts_only_where_it_is_not_in_excess)
{
	struct host_vm *vm = vm_with_agent(0);
	struct hv_agent needy = report;

	needy.need = 10 * MIB;
	fake.excess = _i ? PAGES(MIB) : 0;
	host_report(vm, &needy);
	host_run(SECOND);
	if (_i)
		ck_assert_uint_gt(host_item(vm)->sample.usable, 0);
	else
		ck_assert_uint_eq(host_item(vm)->sample.usable, 0);
}
END_TEST

START_TEST(figures_that_no_guest_can_have_count_for_its_size_at_most_and_for_no_other_vm)
{
	struct host_vm *vm = vm_with_agent(0), *other = host_vm(1);
	struct hv_agent lies = report;
	struct fake_item before;

	host_event(HV_EVENT_CHANGED, other);
	host_run(3 * SECOND);
	before = *host_item(other);
	lies.known |= HV_AGENT_WORKINGSET;
	lies.lists = (struct hv_lists){ INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX };
	lies.free = lies.floor = lies.workingset = lies.need = INT64_MAX;
	host_report(vm, &lies);
	host_run(SECOND);
	ck_assert_uint_le(host_item(vm)->attrs.agent_floor, host_item(vm)->attrs.maximum);
	ck_assert_uint_eq(host_item(vm)->sample.resident, PAGES(vm->resident));
	ck_assert_mem_eq(&host_item(other)->attrs, &before.attrs, sizeof(before.attrs));
	ck_assert_uint_eq(host_item(other)->sample.usable, before.sample.usable);
	/* It says that all is free: then nobody is waited for. */
	host_target(vm, 1, GIB - 256 * MIB);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_RECLAIM], 0);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
}
END_TEST

START_TEST(faults_of_an_agent_are_told_once)
{
	struct host_vm *vm = vm_with_agent(0);
	struct hv_agent bad = report;

	for (bad.faults = 1; bad.faults < 1000; bad.faults++) {
		strcpy(bad.fault, "no JSON object");
		host_report(vm, &bad);
	}
	ck_assert_uint_eq(host_said("its agent is at fault"), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_agent");
	TCase *tc = tcase_create("agent");

	tcase_add_checked_fixture(tc, host_setup, host_teardown);
	tcase_add_test(tc, report_reaches_the_engine_and_is_dropped_when_the_agent_is_silent);
	tcase_add_test(tc, target_waits_until_the_agent_has_freed_what_the_balloon_takes);
	tcase_add_test(tc, what_is_free_already_is_taken_at_once);
	tcase_add_test(tc, agent_that_does_not_answer_is_waited_for_once_and_then_left_alone);
	tcase_add_test(tc, target_of_a_vm_without_agent_waits_for_nobody);
	tcase_add_test(tc, way_back_does_not_wait_and_takes_the_place_of_the_cut);
	tcase_add_test(tc, reboot_while_a_target_waits_drops_it);
	tcase_add_loop_test(
		tc, guest_that_says_it_lacks_memory_counts_only_where_it_is_not_in_excess, 0, 2);
	tcase_add_test(
		tc, figures_that_no_guest_can_have_count_for_its_size_at_most_and_for_no_other_vm);
	tcase_add_test(tc, faults_of_an_agent_are_told_once);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
