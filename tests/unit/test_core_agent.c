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

START_TEST(faults_of_an_agent_are_told_once)
{
	struct host_vm *vm = vm_with_agent(0);
	struct hv_agent bad = report;

	for (bad.faults = 1; bad.faults < 1000; bad.faults++) {
		strcpy(bad.fault, "no JSON object");
		host_report(vm, &bad);
	}
	ck_assert_uint_eq(host_said("its agent was not understood"), 1);
}
END_TEST

/* ---- which agent ---- */

START_TEST(agent_that_a_vm_has_a_port_for_is_listened_to_with_the_next_description)
{
	struct host_vm *vm = host_vm(0);

	vm->port = "/run/port";
	host_up();
	host_run(SECOND / 2);
	/* The first says nothing: whose agent it is was not known; the next comes at once. */
	ck_assert_uint_eq(vm->calls[HV_INFO], 2);
	ck_assert_int_eq(vm->last[HV_INFO].agent, HV_WAY_BALLAST);
}
END_TEST

START_TEST(agent_none_is_never_listened_to)
{
	struct host_vm *vm = host_vm(0);

	vm->port = "/run/port";
	vm->metadata = (struct hv_knobs){ .has_agent = true, .agent = HV_WAY_NONE };
	host_up();
	host_run(30 * SECOND);
	ck_assert_uint_gt(vm->calls[HV_INFO], 1);
	for (unsigned int i = 0; i < vm->calls[HV_INFO] && i < HOST_AGENTS; i++)
		ck_assert_int_eq(vm->agents[i], HV_WAY_NONE);
}
END_TEST

START_TEST(qemus_agent_is_listened_to_where_metadata_or_a_rule_say_so)
{
	struct core_rule rule = { .name = (char *)"r",
		.match_name = (char *)"vm1",
		.knobs = { .has_agent = true, .agent = HV_WAY_QEMU_GA } };
	struct host_vm *a = host_vm(0), *b = host_vm(1), *c = host_vm(2);
	struct core_knobs_view view;

	host.config.rules = &rule;
	host.config.nr_rules = 1;
	strcpy(b->name, "vm1");
	strcpy(a->name, "vm0");
	strcpy(c->name, "vm2");
	a->metadata = (struct hv_knobs){ .has_agent = true, .agent = HV_WAY_QEMU_GA };
	host_up();
	host_run(SECOND);
	ck_assert_int_eq(a->last[HV_INFO].agent, HV_WAY_QEMU_GA);
	ck_assert_int_eq(b->last[HV_INFO].agent, HV_WAY_QEMU_GA);
	ck_assert_int_eq(core_vm_knobs(host.core, host_id(b), &view), 0);
	ck_assert_int_eq(view.knobs[CORE_AGENT].words[0].source, CORE_FROM_RULE);
	/* And is not any more, at once, when the word goes. */
	host.config.nr_rules = 0;
	ck_assert_int_eq(core_set_config(host.core, host.now, &host.config), 0);
	host_run(SECOND / 2);
	ck_assert_int_eq(b->last[HV_INFO].agent, HV_WAY_BALLAST);
	host_run(6 * SECOND);
	ck_assert_int_eq(c->last[HV_INFO].agent, HV_WAY_BALLAST);
}
END_TEST

/* ---- its port ---- */

static enum core_change_state attach(struct host_vm *vm, const char **ret_message)
{
	uint64_t change = 0;

	ck_assert_int_eq(core_attach(host.core, host_id(vm), true, &change), 0);
	ck_assert_int_eq(core_attach(host.core, host_id(vm), true, &change), -EBUSY);
	host_run(SECOND);
	return core_change(host.core, change, ret_message);
}

START_TEST(port_is_added_by_a_call_and_its_end_is_remembered)
{
	struct host_vm *vm = host_vm(0);
	unsigned int described;
	const char *message;

	host.config.engine.act = true;
	host_up();
	host_run(2 * SECOND);
	described = vm->calls[HV_INFO];
	ck_assert_int_eq(attach(vm, &message), CORE_CHANGE_DONE);
	ck_assert_str_eq(message, "");
	ck_assert_uint_eq(vm->calls[HV_ATTACH], 1);
	ck_assert(vm->last[HV_ATTACH].persistent);
	ck_assert_uint_gt(vm->calls[HV_INFO], described); /* it is seen at once */
	vm->attach_error = -EEXIST;
	ck_assert_int_eq(attach(vm, &message), CORE_CHANGE_DONE);
	ck_assert_str_eq(message, "it has the agent's port already");
	vm->attach_error = -EOPNOTSUPP;
	ck_assert_int_eq(attach(vm, &message), CORE_CHANGE_FAILED);
	ck_assert_str_eq(message, "with this hypervisor no port can be added");
}
END_TEST

START_TEST(port_is_added_neither_while_observing_nor_to_a_vm_that_is_not_managed)
{
	struct host_vm *vm = host_vm(0);
	uint64_t change;

	host.config.engine.act = _i;
	if (_i)
		vm->metadata = (struct hv_knobs){ .has_manage = true, .manage = HV_MANAGE_OBSERVE };
	host_up();
	host_run(2 * SECOND);
	ck_assert_int_eq(core_attach(host.core, host_id(vm), false, &change), -EPERM);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_ATTACH], 0);
}
END_TEST

START_TEST(port_of_a_vm_that_hangs_or_goes_is_given_up)
{
	struct host_vm *vm = host_vm(0);
	uint64_t change;
	const char *message;

	host.config.engine.act = true;
	host_up();
	host_run(2 * SECOND);
	vm->hangs = true;
	host_run(2 * SECOND);
	ck_assert_int_eq(core_attach(host.core, host_id(vm), false, &change), 0);
	host_run(10 * SECOND);
	ck_assert_int_eq(core_change(host.core, change, &message), CORE_CHANGE_FAILED);
	ck_assert_int_eq(core_attach(host.core, host_id(vm), false, &change), -ETIMEDOUT);
	host_gone(0);
	host_run(10 * SECOND);
	host_wake(vm);
	ck_assert_int_eq(core_attach(host.core, host_id(vm), false, &change), -ENOENT);
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
	tcase_add_test(tc, faults_of_an_agent_are_told_once);
	tcase_add_test(tc, agent_that_a_vm_has_a_port_for_is_listened_to_with_the_next_description);
	tcase_add_test(tc, agent_none_is_never_listened_to);
	tcase_add_test(tc, qemus_agent_is_listened_to_where_metadata_or_a_rule_say_so);
	tcase_add_test(tc, port_is_added_by_a_call_and_its_end_is_remembered);
	tcase_add_loop_test(
		tc, port_is_added_neither_while_observing_nor_to_a_vm_that_is_not_managed, 0, 2);
	tcase_add_test(tc, port_of_a_vm_that_hangs_or_goes_is_given_up);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
