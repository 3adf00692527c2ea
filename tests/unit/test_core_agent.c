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

static struct host_vm *vm_with_agent_of(struct host_vm *vm)
{
	host_up();
	host_report(vm, &report);
	host_run(2 * SECOND);
	host_report(vm, &report);
	return vm;
}

static struct host_vm *vm_with_agent(unsigned int i)
{
	return vm_with_agent_of(host_vm(i));
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

START_TEST(lists_that_an_agent_tells_reach_the_engine_whole_or_not_at_all)
{
	struct host_vm *vm = vm_with_agent(0);
	struct hv_agent agent = report;
	const struct vm_sample *sample = &host_item(vm)->sample;

	ck_assert_uint_eq(sample->lists.active_anon, PAGES(10 * MIB));
	ck_assert_uint_eq(sample->lists.inactive_anon, PAGES(20 * MIB));
	ck_assert_uint_eq(sample->lists.active_file, PAGES(30 * MIB));
	ck_assert_uint_eq(sample->lists.inactive_file, PAGES(400 * MIB));
	agent.lists.inactive_file = 44 * MIB; /* and nothing else */
	host_report(vm, &agent);
	host_run(SECOND);
	ck_assert_uint_eq(host_item(vm)->sample.lists.inactive_file, PAGES(44 * MIB));
	agent.lists.swap_free = UINT64_MAX; /* no amount: nothing of it counts */
	host_report(vm, &agent);
	host_run(SECOND);
	ck_assert(!vm_knows(&host_item(vm)->sample, VM_LISTS));
}
END_TEST

START_TEST(target_waits_until_the_agent_has_freed_what_the_balloon_takes)
{
	struct host_vm *vm = vm_with_agent(0);

	vm->reads_nothing = true;
	host_target(vm, 1, GIB - 400 * MIB);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_RECLAIM], 1);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
	/* What is free already has not to be freed; a 64th is left to the guest. */
	ck_assert_uint_eq(vm->last[HV_RECLAIM].bytes, 400 * MIB + 16 * MIB - 100 * MIB);
	ck_assert(!vm->last[HV_RECLAIM].anon);
	ck_assert(!vm->last[HV_RECLAIM].active);
	host_freed(vm, 0, 316 * MIB);
	host_run(100000);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	ck_assert_uint_eq(vm->last[HV_TARGET].target, GIB - 400 * MIB);
}
END_TEST

/* It brings 4 MiB: what is kept free beside it for the balloon is no more. */
START_TEST(small_ask_costs_the_guest_no_more_than_twice_what_it_brings)
{
	struct host_vm *vm = vm_with_agent(0);

	vm->reads_nothing = true;
	host_target(vm, 1, 696 * MIB);
	host_run(SECOND);
	ck_assert_uint_eq(vm->last[HV_RECLAIM].bytes, GIB - 696 * MIB + 4 * MIB - 100 * MIB);
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

START_TEST(what_a_guest_lacks_and_reads_again_reaches_the_engine_beside_its_statistics)
{
	struct host_vm *vm = vm_with_agent(0);
	struct hv_agent needy = report;

	needy.need = 10 * MIB;
	needy.refaults = 3 * MIB;
	host_report(vm, &needy);
	host_run(SECOND);
	ck_assert(vm_knows(&host_item(vm)->sample, VM_LACKS));
	ck_assert_uint_eq(host_item(vm)->sample.need, PAGES(10 * MIB));
	ck_assert_uint_eq(host_item(vm)->sample.refaults, PAGES(3 * MIB));
	ck_assert_uint_eq(host_item(vm)->sample.usable, PAGES(512 * MIB));
	needy.need = UINT64_MAX; /* no amount */
	host_report(vm, &needy);
	host_run(SECOND);
	ck_assert(!vm_knows(&host_item(vm)->sample, VM_LACKS));
}
END_TEST

/* ---- free page reporting: the agent alone ---- */

static struct host_vm *vm_that_reports(void)
{
	struct host_vm *vm = host_vm(0);

	vm->reporting = true;
	return vm_with_agent_of(vm);
}

/* The next tick asks inside: a usage of from is to be to. */
static void inside(const struct host_vm *vm, uint64_t seq, uint64_t from, uint64_t to)
{
	struct engine_reason *reason;

	host_target(vm, seq, to);
	reason = &fake.actions[fake.nr_actions - 1].reason;
	reason->inside = true;
	reason->from = PAGES(from);
	if (to > from)
		reason->type = ENGINE_CANCEL;
}

/* A tick, for something has changed, and what it leads to. */
static void soon(const struct host_vm *vm)
{
	static uint64_t inactive = 400 * MIB;
	struct hv_agent moved = report;

	moved.lists.inactive_file = inactive += 4096;
	host_report(vm, &moved);
	host_run(100000);
}

START_TEST(guest_reports_what_is_free_only_while_its_agent_and_its_balloon_do)
{
	struct host_vm *vm = vm_that_reports();
	struct hv_agent frees_nothing = report;

	ck_assert(host_item(vm)->attrs.reports);
	frees_nothing.reclaims = false;
	host_report(vm, &frees_nothing);
	host_run(SECOND);
	ck_assert(!host_item(vm)->attrs.reports);
	host_report(vm, &report);
	host_run(SECOND);
	ck_assert(host_item(vm)->attrs.reports);
	host_run(CORE_AGENT_SILENT_US + SECOND);
	ck_assert(!host_item(vm)->attrs.reports);
	vm->reporting = false; /* by its description, which is read anew every five seconds */
	for (unsigned int i = 0; i < 8; i++) {
		host_report(vm, &report);
		host_run(SECOND);
	}
	ck_assert(host_item(vm)->attrs.agent);
	ck_assert(!host_item(vm)->attrs.reports);
}
END_TEST

START_TEST(what_is_asked_inside_goes_to_the_agent_and_no_target_is_set)
{
	struct host_vm *vm = vm_that_reports();

	vm->reads_nothing = true;
	inside(vm, 4, 700 * MIB, 600 * MIB);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_RECLAIM], 1);
	ck_assert_uint_eq(vm->last[HV_RECLAIM].bytes, 100 * MIB);
	ck_assert_uint_lt(host_item(vm)->sample.applied_seq, 4);
	host_freed(vm, 0, 100 * MIB);
	host_run(2 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
	ck_assert_uint_eq(host_item(vm)->sample.applied_seq, 4);
	ck_assert_uint_eq(fake.nr_results, 0);
}
END_TEST

/* Nothing that waits goes without a word: the engine would take it for set. */
START_TEST(target_that_waits_is_told_as_dropped_where_the_agent_is_asked_alone)
{
	struct host_vm *vm = vm_that_reports();

	vm->reads_nothing = true;
	host_target(vm, 1, GIB - 400 * MIB); /* waits for its agent */
	soon(vm);
	ck_assert_uint_eq(vm->calls[HV_RECLAIM], 1);
	inside(vm, 2, 700 * MIB, 600 * MIB);
	soon(vm);
	soon(vm);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
	ck_assert_uint_eq(fake.nr_results, 1);
	ck_assert_uint_eq(fake.results[0].seq, 1);
	ck_assert_int_eq(fake.results[0].error, -ECANCELED);
}
END_TEST

START_TEST(what_is_asked_inside_meanwhile_is_asked_when_the_agent_has_answered)
{
	struct host_vm *vm = vm_that_reports();

	vm->reads_nothing = true;
	inside(vm, 1, 700 * MIB, 600 * MIB);
	soon(vm);
	inside(vm, 2, 600 * MIB, 560 * MIB);
	soon(vm);
	inside(vm, 3, 560 * MIB, 570 * MIB); /* ten of it need not */
	soon(vm);
	ck_assert_uint_eq(vm->calls[HV_RECLAIM], 1);
	host_freed(vm, 0, 100 * MIB);
	soon(vm);
	ck_assert_uint_eq(vm->calls[HV_RECLAIM], 2);
	ck_assert_uint_eq(vm->last[HV_RECLAIM].bytes, 30 * MIB);
	host_freed(vm, 0, 30 * MIB);
	host_run(2 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_RECLAIM], 2);
	ck_assert_uint_eq(host_item(vm)->sample.applied_seq, 3);
}
END_TEST

START_TEST(what_is_asked_inside_and_taken_back_before_it_was_told_is_not_told)
{
	struct host_vm *vm = vm_that_reports();

	host.refuse = true; /* calls cannot be made now */
	inside(vm, 1, 700 * MIB, 600 * MIB);
	soon(vm);
	inside(vm, 2, 600 * MIB, 550 * MIB);
	soon(vm);
	inside(vm, 3, 550 * MIB, 700 * MIB);
	soon(vm);
	host.refuse = false;
	host_run(2 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_RECLAIM], 0);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
	ck_assert_uint_eq(host_item(vm)->sample.applied_seq, 3);
}
END_TEST

/* 0: less came; 1: an error; 2: no answer; 3: it is not to be asked again so soon. */
START_TEST(agent_that_does_not_bring_it_is_told_to_the_engine)
{
	static const int errors[] = { -ENODATA, -EIO, -ETIMEDOUT, -ETIMEDOUT };
	struct host_vm *vm = vm_that_reports();

	vm->reads_nothing = true;
	inside(vm, 1, 700 * MIB, 600 * MIB);
	host_run(SECOND);
	if (_i < 2)
		host_freed(vm, _i == 0 ? 0 : -EIO, 80 * MIB);
	else
		host_run(CORE_AGENT_ASK_US);
	if (_i == 3) {
		host_report(vm, &report);
		inside(vm, 2, 700 * MIB, 600 * MIB);
		host_run(SECOND);
		ck_assert_uint_eq(vm->calls[HV_RECLAIM], 1);
	}
	host_run(SECOND);
	ck_assert_uint_ge(fake.nr_results, 1);
	ck_assert_int_eq(fake.results[fake.nr_results - 1].error, errors[_i]);
	ck_assert_uint_eq(fake.results[fake.nr_results - 1].seq, _i == 3 ? 2 : 1);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
}
END_TEST

START_TEST(balloon_that_is_turned_instead_waits_for_no_answer_of_before)
{
	struct host_vm *vm = vm_that_reports();

	vm->reads_nothing = true;
	inside(vm, 1, 700 * MIB, 600 * MIB);
	soon(vm);
	host_target(vm, 2, GIB - 64 * MIB); /* of what is free */
	soon(vm);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	host_freed(vm, 0, 100 * MIB);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
}
END_TEST

/* Its kernel has no memory.reclaim: the agent says so, and the host goes on without. */
START_TEST(BR_90_agent_that_cannot_reclaim_is_never_asked_and_its_balloon_goes_on)
{
	struct host_vm *vm = host_vm(0);
	struct hv_agent old = report;

	old.reclaims = false;
	vm->reporting = true;
	host_up();
	host_report(vm, &old);
	host_run(2 * SECOND);
	host_report(vm, &old);
	host_target(vm, 1, GIB - 256 * MIB);
	host_run(SECOND);
	ck_assert(!host_item(vm)->attrs.reports);
	ck_assert(host_item(vm)->attrs.agent); /* what it tells counts all the same */
	ck_assert_uint_eq(vm->calls[HV_RECLAIM], 0);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	ck_assert_uint_eq(vm->last[HV_TARGET].target, GIB - 256 * MIB);
}
END_TEST

/* Memory was plugged, and the guest's agent tells of it before its description does. */
START_TEST(BR_56_agent_whose_guest_grew_under_it_claims_no_more_than_its_maximum)
{
	struct host_vm *vm = vm_with_agent(0);
	struct hv_agent grown = report;

	grown.floor = 3 * GIB;
	host_report(vm, &grown);
	host_run(SECOND);
	ck_assert_uint_eq(host_item(vm)->attrs.agent_floor, PAGES(GIB));
	vm->maximum = 4 * GIB;
	for (unsigned int i = 0; i < 8; i++) {
		host_report(vm, &grown);
		host_run(SECOND);
	}
	ck_assert_uint_eq(host_item(vm)->attrs.maximum, PAGES(4 * GIB));
	ck_assert_uint_eq(host_item(vm)->attrs.agent_floor, PAGES(3 * GIB));
}
END_TEST

START_TEST(what_is_cold_by_generations_counts_as_it_is)
{
	struct host_vm *vm = host_vm(0);
	struct hv_agent old = report;

	old.known = HV_AGENT_REPORT | HV_AGENT_COLD;
	old.lists = (struct hv_lists){ .inactive_file = 40 * MIB, .inactive_anon = 2 * MIB };
	host_up();
	host_report(vm, &old);
	host_run(SECOND);
	ck_assert(host_item(vm)->attrs.agent);
	ck_assert(vm_knows(&host_item(vm)->sample, VM_LISTS));
	ck_assert_uint_eq(host_item(vm)->sample.lists.inactive_file, PAGES(40 * MIB));
	ck_assert_uint_eq(host_item(vm)->sample.lists.active_file, 0);
}
END_TEST

/* Its channel takes what it is asked, and nothing ever comes back. */
START_TEST(BR_32_silent_agent_costs_its_floor_its_lists_and_nothing_else)
{
	struct host_vm *vm = vm_with_agent(0), *other = host_vm(1);
	unsigned int samples;

	host_event(HV_EVENT_CHANGED, other);
	vm->reads_nothing = true;
	host_run(SECOND);
	samples = other->calls[HV_STATS];
	host_target(vm, 1, GIB - 256 * MIB);
	host_run(CORE_AGENT_SILENT_US + SECOND);
	/* The balloon goes on without it, and what it said counts for nothing. */
	ck_assert_uint_eq(vm->calls[HV_RECLAIM], 1);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	ck_assert_uint_eq(vm->last[HV_TARGET].target, GIB - 256 * MIB);
	ck_assert_uint_eq(host_item(vm)->attrs.agent_floor, 0);
	ck_assert(!vm_knows(&host_item(vm)->sample, VM_LISTS));
	host_target(vm, 2, GIB);
	fake.actions[0].reason.type = ENGINE_GIFT;
	host_run(SECOND);
	ck_assert_uint_eq(vm->last[HV_TARGET].target, GIB);
	ck_assert_uint_ge(other->calls[HV_STATS] - samples, 6);
}
END_TEST

/* What the last three of five see, with agents in the first two or in none. */
static void five(bool agents, unsigned int ret_calls[3][HV_HOST + 1], unsigned int *ret_said)
{
	host_setup();
	for (unsigned int i = 0; i < 5; i++)
		host_vm(i);
	host_up();
	for (int second = 0; second < 10; second++) {
		for (unsigned int i = 0; i < 2 && agents; i++)
			host_report(&host.vms[i], &report);
		for (unsigned int i = 0; i < 5 && second == 3; i++)
			host_target(&host.vms[i], i + 1, GIB - 256 * MIB);
		host_run(SECOND);
	}
	for (unsigned int i = 0; i < 3; i++)
		memcpy(ret_calls[i], host.vms[2 + i].calls, sizeof(host.vms[0].calls));
	*ret_said = host_said("agent");
	host_teardown();
}

START_TEST(BR_33_guests_without_an_agent_are_treated_as_if_there_were_no_agents)
{
	unsigned int with[3][HV_HOST + 1], without[3][HV_HOST + 1], said, said_without;

	host_teardown(); /* the fixture's */
	five(true, with, &said);
	five(false, without, &said_without);
	host_setup();
	ck_assert_mem_eq(with, without, sizeof(with));
	ck_assert_uint_gt(with[0][HV_STATS], 8);
	ck_assert_uint_eq(with[0][HV_TARGET], 1);
	ck_assert_uint_eq(said, 2); /* a line for each that is there, none for the others */
	ck_assert_uint_eq(said_without, 0);
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
	tcase_add_test(tc, small_ask_costs_the_guest_no_more_than_twice_what_it_brings);
	tcase_add_test(tc, what_is_free_already_is_taken_at_once);
	tcase_add_test(tc, agent_that_does_not_answer_is_waited_for_once_and_then_left_alone);
	tcase_add_test(tc, target_of_a_vm_without_agent_waits_for_nobody);
	tcase_add_test(tc, way_back_does_not_wait_and_takes_the_place_of_the_cut);
	tcase_add_test(tc, reboot_while_a_target_waits_drops_it);
	tcase_add_test(
		tc, figures_that_no_guest_can_have_count_for_its_size_at_most_and_for_no_other_vm);
	tcase_add_test(tc, what_is_cold_by_generations_counts_as_it_is);
	tcase_add_test(tc, BR_32_silent_agent_costs_its_floor_its_lists_and_nothing_else);
	tcase_add_test(tc, BR_33_guests_without_an_agent_are_treated_as_if_there_were_no_agents);
	tcase_add_test(tc, lists_that_an_agent_tells_reach_the_engine_whole_or_not_at_all);
	tcase_add_test(
		tc, what_a_guest_lacks_and_reads_again_reaches_the_engine_beside_its_statistics);
	tcase_add_test(tc, guest_reports_what_is_free_only_while_its_agent_and_its_balloon_do);
	tcase_add_test(tc, what_is_asked_inside_goes_to_the_agent_and_no_target_is_set);
	tcase_add_test(tc, target_that_waits_is_told_as_dropped_where_the_agent_is_asked_alone);
	tcase_add_test(tc, what_is_asked_inside_meanwhile_is_asked_when_the_agent_has_answered);
	tcase_add_test(tc, what_is_asked_inside_and_taken_back_before_it_was_told_is_not_told);
	tcase_add_loop_test(tc, agent_that_does_not_bring_it_is_told_to_the_engine, 0, 4);
	tcase_add_test(tc, balloon_that_is_turned_instead_waits_for_no_answer_of_before);
	tcase_add_test(tc, BR_90_agent_that_cannot_reclaim_is_never_asked_and_its_balloon_goes_on);
	tcase_add_test(tc, BR_56_agent_whose_guest_grew_under_it_claims_no_more_than_its_maximum);
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
