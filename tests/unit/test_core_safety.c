/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The core's brakes: pause, release, manage, statistics in observe mode, others on the host. */
#include <config.h>

#include "tests/unit/host.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hv/core_internal.h"

START_TEST(a_pause_is_told_to_the_engine_and_holds_for_who_comes_later)
{
	struct host_vm *vm = host_vm(0), *later;

	host_up();
	ck_assert(!host_item(vm)->attrs.paused);
	core_pause(host.core, true);
	host_run(SECOND);
	ck_assert(host_item(vm)->attrs.paused);
	later = host_vm(1);
	host_event(HV_EVENT_CHANGED, later);
	host_run(3 * SECOND);
	ck_assert(host_item(later)->attrs.paused);
	core_pause(host.core, false);
	host_run(SECOND);
	ck_assert(!host_item(vm)->attrs.paused);
	ck_assert(!host_item(later)->attrs.paused);
	ck_assert_uint_eq(host_said("paused: nobody is asked"), 1);
}
END_TEST

START_TEST(a_vm_paused_by_itself_stays_so_through_a_restart_of_its_own)
{
	struct host_vm *vm = host_vm(0), *other = host_vm(1);
	const struct hv_uuid *uuids;

	host_up();
	ck_assert_int_eq(core_pause_vm(host.core, &vm->uuid, true), 0);
	ck_assert_int_eq(core_pause_vm(host.core, &vm->uuid, true), 0);
	ck_assert_uint_eq(core_paused_vms(host.core, &uuids), 1);
	host_run(SECOND);
	ck_assert(host_item(vm)->attrs.paused);
	ck_assert(!host_item(other)->attrs.paused);
	host_gone(0);
	host_event(HV_EVENT_CHANGED, vm);
	host_run(SECOND);
	host_vm(0);
	host_event(HV_EVENT_CHANGED, vm);
	host_run(3 * SECOND);
	ck_assert(host_item(vm)->attrs.paused);
	/* The end of a general pause is not the end of its own. */
	core_pause(host.core, true);
	core_pause(host.core, false);
	host_run(SECOND);
	ck_assert(host_item(vm)->attrs.paused);
	ck_assert_int_eq(core_pause_vm(host.core, &vm->uuid, false), 0);
	host_run(SECOND);
	ck_assert(!host_item(vm)->attrs.paused);
	ck_assert_uint_eq(core_paused_vms(host.core, &uuids), 0);
}
END_TEST

START_TEST(a_release_is_told_once_and_to_those_below_the_group)
{
	struct host_vm *web = host_vm(0), *db = host_vm(1), *other = host_vm(2);
	uint64_t prod;

	web->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/prod/web" };
	db->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/prod" };
	db->metadata.has_manage = true;
	db->metadata.manage = HV_MANAGE_OBSERVE;
	other->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/production" };
	host_up();
	ck_assert_int_eq(core_find(host.core, "/prod", &prod), 0);
	ck_assert_uint_eq(core_release(host.core, prod), 1); /* db is not managed */
	ck_assert_uint_eq(core_releasing(host.core), 1);
	host_run(3 * SECOND);
	ck_assert_uint_eq(fake_told(ENGINE_VM_RELEASE, host_id(web)), 1);
	ck_assert_uint_eq(fake_told(ENGINE_VM_RELEASE, host_id(db)), 0);
	ck_assert_uint_eq(fake_told(ENGINE_VM_RELEASE, host_id(other)), 0);
	ck_assert_uint_eq(core_releasing(host.core), 0);
	ck_assert_uint_eq(core_release(host.core, MEMCG_ROOT_ID), 2);
}
END_TEST

START_TEST(a_release_is_under_way_until_its_target_returned)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(SECOND);
	vm->hangs = true;
	host_target(vm, 1, GIB);
	host_run(SECOND);
	ck_assert_uint_eq(core_releasing(host.core), 1);
	/* One that does not answer is not waited for. */
	host_run(4 * SECOND);
	ck_assert_uint_eq(core_releasing(host.core), 0);
	host_wake(vm);
}
END_TEST

START_TEST(a_release_goes_with_the_vm_into_another_group_while_it_runs)
{
	struct hv_knobs group = { .has_group = true, .group = (char *)"/b" };
	struct core_rule rule = { .name = (char *)"r", .knobs = group };
	struct host_vm *vm = host_vm(0);
	struct core_config config;
	uint64_t id;

	host.config.engine.release_us = 600 * SECOND;
	host_up();
	host_run(SECOND);
	id = host_id(vm);
	ck_assert_uint_eq(core_release(host.core, id), 1);
	host_run(SECOND);
	config = host.config;
	config.rules = &rule;
	config.nr_rules = 1;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(SECOND);
	ck_assert_uint_ne(host_id(vm), id);
	ck_assert_uint_eq(fake_told(ENGINE_VM_RELEASE, host_id(vm)), 1);
	/* And not when it is over. */
	host_run(600 * SECOND);
	group.group = (char *)"/c";
	rule.knobs = group;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(SECOND);
	ck_assert_str_eq(host.core->vms->group->path, "/c");
	ck_assert_uint_eq(fake_told(ENGINE_VM_RELEASE, host_id(vm)), 0);
}
END_TEST

START_TEST(who_does_not_have_all_back_is_counted_though_nobody_waits_for_it)
{
	struct host_vm *vm = host_vm(0), *unmanaged = host_vm(1);

	unmanaged->metadata.has_manage = true;
	unmanaged->metadata.manage = HV_MANAGE_OBSERVE;
	host_up();
	host_run(SECOND);
	ck_assert_uint_eq(core_unreleased(host.core), 0);
	/* A call that hangs is not waited for; it may not have come through. */
	vm->hangs = true;
	host_target(vm, 1, GIB);
	host_run(6 * SECOND);
	ck_assert_uint_eq(core_releasing(host.core), 0);
	ck_assert_uint_eq(core_unreleased(host.core), 1);
	host_wake(vm);
	host_run(SECOND);
	ck_assert_uint_eq(core_unreleased(host.core), 0);
	/* Nothing is told to who cannot be given anything now: the engine knows what it lacks. */
	fake.capped = true;
	ck_assert_uint_eq(core_releasing(host.core), 0);
	ck_assert_uint_eq(core_unreleased(host.core), 1);
}
END_TEST

/* The engine ends it; once, and only what was told. */
START_TEST(a_cut_that_runs_is_ended_once_when_observing_begins)
{
	struct host_vm *cut = host_vm(0), *other = host_vm(1);
	struct core_config config;

	host_up();
	host_run(SECOND);
	host_target(cut, 1, 512 * MIB);
	host_run(SECOND);
	ck_assert_uint_eq(cut->calls[HV_TARGET], 1);
	config = host.config;
	config.engine.act = false;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_target(cut, 2, 700 * MIB);
	host_target(other, 1, GIB);
	fake.actions[0].reason.type = fake.actions[1].reason.type = ENGINE_CANCEL;
	host_run(SECOND);
	ck_assert_uint_eq(host_item(cut)->cancels, 1);
	ck_assert_uint_eq(cut->calls[HV_TARGET], 2);
	ck_assert_uint_eq(cut->last[HV_TARGET].target, 700 * MIB);
	ck_assert_uint_eq(other->calls[HV_TARGET], 0);
	/* From then on nothing is changed anywhere, also not by a new configuration. */
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_target(cut, 3, 800 * MIB);
	fake.actions[0].reason.type = ENGINE_CANCEL;
	host_run(5 * SECOND);
	ck_assert_uint_eq(host_item(cut)->cancels, 1);
	ck_assert_uint_eq(cut->calls[HV_TARGET], 2);
}
END_TEST

START_TEST(a_set_size_stands_whatever_a_reading_of_the_host_that_was_out_says)
{
	struct core_config config;

	host_vm(0);
	host.config.pool_host = true;
	host_up();
	host_run(SECOND);
	host.hold_host = true;
	host_run(SECOND);
	config = host.config;
	config.pool_host = false;
	config.pool_size = 8 * GIB;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_answer_host();
	host_run(10 * SECOND);
	ck_assert(fake.pool.known && !fake.pool.host);
	ck_assert_uint_eq(fake.pool.size, PAGES(8 * GIB));
}
END_TEST

/* VM, groups above it: the least counts. */
static const struct {
	enum hv_manage vm, prod, web, expected;
} manages[] = {
	{ HV_MANAGE_ACT, HV_MANAGE_ACT, HV_MANAGE_ACT, HV_MANAGE_ACT },
	{ HV_MANAGE_ACT, HV_MANAGE_OBSERVE, HV_MANAGE_ACT, HV_MANAGE_OBSERVE },
	{ HV_MANAGE_ACT, HV_MANAGE_ACT, HV_MANAGE_NO, HV_MANAGE_NO },
	{ HV_MANAGE_OBSERVE, HV_MANAGE_ACT, HV_MANAGE_ACT, HV_MANAGE_OBSERVE },
	{ HV_MANAGE_NO, HV_MANAGE_OBSERVE, HV_MANAGE_ACT, HV_MANAGE_NO },
};

START_TEST(the_least_of_the_vms_and_its_groups_manage_counts)
{
	struct core_group_knobs groups[] = { CORE_GROUP_KNOBS_NONE, CORE_GROUP_KNOBS_NONE,
		CORE_GROUP_KNOBS_NONE };
	struct host_vm *vm = host_vm(0);
	struct core_vm_view view;

	groups[0].path = (char *)"/prod";
	groups[0].manage = manages[_i].prod;
	groups[1].path = (char *)"/prod/web";
	groups[1].manage = manages[_i].web;
	groups[2].path = (char *)"/pro"; /* not above it */
	groups[2].manage = HV_MANAGE_NO;
	host.config.groups = groups;
	host.config.nr_groups = 3;
	vm->metadata = (struct hv_knobs){ .has_group = true,
		.group = (char *)"/prod/web",
		.has_manage = true,
		.manage = manages[_i].vm };
	host_up();
	ck_assert_int_eq(core_vm(host.core, host_id(vm), &view), 0);
	ck_assert_int_eq(view.manage, manages[_i].expected);
	ck_assert(host_item(vm)->attrs.act == (manages[_i].expected == HV_MANAGE_ACT));
}
END_TEST

START_TEST(observing_switches_statistics_on_only_where_that_is_allowed)
{
	struct host_vm *vm = host_vm(0), *no = host_vm(1);

	host.config.engine.act = false;
	host.config.observe_stats = _i;
	vm->period_s = no->period_s = 0;
	no->metadata.has_manage = true;
	no->metadata.manage = HV_MANAGE_NO;
	host_up();
	host_run(10 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_PERIOD] > 0, _i);
	ck_assert_uint_eq(no->calls[HV_PERIOD], 0);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
}
END_TEST

START_TEST(rate_and_trust_are_the_configurations)
{
	struct host_vm *vm = host_vm(0);

	host.config.max_rate = 512;
	host.config.trust = true;
	host_up();
	ck_assert_uint_eq(host_item(vm)->attrs.max_rate, 512);
	ck_assert(host_item(vm)->attrs.trust);
}
END_TEST

/* What others take is shown, told beyond others-max, and taken from no VM for that alone. */
START_TEST(what_others_on_the_host_take_is_told_once_beyond_its_maximum)
{
	struct core_status status;

	host_vm(0); /* resident 700 MiB */
	host.total = 62 * GIB;
	host.available = 4 * GIB;
	host.config.pool_host = true;
	host.config.others_max = 40 * GIB;
	host_up();
	host_run(3 * SECOND);
	core_status(host.core, &status);
	ck_assert(status.others_known);
	ck_assert_uint_le(status.others, 58 * GIB - 700 * MIB);
	ck_assert_uint_gt(status.others, 57 * GIB - 100 * MIB);
	ck_assert(status.others_over);
	ck_assert_uint_eq(host_said("more than others-max 40 GiB"), 1);
	host.available = 23 * GIB; /* 38.3 GiB: not a sixteenth less */
	host_run(2 * SECOND);
	host.available = 21 * GIB;
	host_run(2 * SECOND);
	ck_assert_uint_eq(host_said("more than others-max"), 1);
	host.available = 40 * GIB;
	host_run(2 * SECOND);
	core_status(host.core, &status);
	ck_assert(!status.others_over);
	ck_assert_uint_eq(host_said("less than others-max"), 1);
}
END_TEST

/* Or every VM would be squeezed to its floor for what no VM can give. */
START_TEST(reserve_over_the_hosts_memory_is_told_once_and_nobody_pays_for_it)
{
	struct core_config config;

	host_vm(0);
	host.total = 32 * GIB;
	host.available = 20 * GIB;
	host.config.pool_host = true;
	host.config.reserve_set = true;
	host.config.reserve = 64 * GIB;
	host_up();
	host_run(5 * SECOND);
	ck_assert(!fake.pool.known);
	ck_assert_uint_eq(
		host_said("[pool] reserve = 64 GiB is not below the host's memory 32 GiB"), 1);
	/* A new configuration ends it at once, and begins it again. */
	config = host.config;
	config.reserve = 4 * GIB;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(SECOND / 2);
	ck_assert(fake.pool.known);
	ck_assert_uint_eq(fake.pool.reserve, PAGES(4 * GIB));
	config.reserve = 32 * GIB;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(5 * SECOND);
	ck_assert(!fake.pool.known);
	ck_assert_uint_eq(host_said("is not below the host's memory"), 2);
	/* The host has less than what is kept by default. */
	config.reserve_set = false;
	host.total = 2 * GIB;
	host.available = GIB;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(5 * SECOND);
	ck_assert(!fake.pool.known);
}
END_TEST

START_TEST(others_are_not_known_while_processes_or_the_host_are_not)
{
	struct core_status status;

	host_vm(0);
	host.config.pool_host = true;
	host.config.others_max = MIB;
	host.process_error = -EIO;
	host_up();
	host_run(3 * SECOND);
	core_status(host.core, &status);
	ck_assert(!status.others_known);
	ck_assert_uint_eq(host_said("others-max"), 0);
}
END_TEST

START_TEST(others_are_not_known_once_the_pool_has_a_set_size)
{
	struct core_config config;
	struct core_status status;

	host_vm(0);
	host.config.pool_host = true;
	host_up();
	host_run(3 * SECOND);
	core_status(host.core, &status);
	ck_assert(status.others_known);
	config = host.config;
	config.pool_host = false;
	config.pool_size = 8 * GIB;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(3 * SECOND);
	core_status(host.core, &status);
	ck_assert(!status.others_known && !status.others_over);
}
END_TEST

START_TEST(min_of_groups_over_the_hosts_memory_is_told_once_and_not_used)
{
	struct core_group_knobs groups[] = {
		{ (char *)"/a", { PAGES_UNLIMITED, PAGES(40 * GIB), 0, PAGES_UNLIMITED },
			HV_MANAGE_ACT },
		{ (char *)"/b", { PAGES_UNLIMITED, PAGES(30 * GIB), 0, PAGES_UNLIMITED },
			HV_MANAGE_ACT },
		{ (char *)"/b/x", { PAGES_UNLIMITED, PAGES(20 * GIB), 0, PAGES_UNLIMITED },
			HV_MANAGE_ACT },
		{ (char *)"/c", { PAGES_UNLIMITED, PAGES(10 * GIB), 0, PAGES_UNLIMITED },
			HV_MANAGE_ACT },
	};
	static const char *const paths[] = { "/a", "/b", "/b/x", "/c" };
	static const uint64_t mins[] = { 40 * GIB, 0, 0, 10 * GIB };
	uint64_t id;

	for (unsigned int i = 0; i < 4; i++)
		host_vm(i)->metadata =
			(struct hv_knobs){ .has_group = true, .group = (char *)paths[i] };
	host.config.pool_host = true; /* 64 GiB, and 2 of them are the host's own */
	host.config.groups = groups;
	host.config.nr_groups = 4;
	host_up();
	host_run(12 * SECOND);
	for (unsigned int i = 0; i < 4; i++) {
		ck_assert_int_eq(core_find(host.core, paths[i], &id), 0);
		ck_assert_uint_eq(fake_item(id)->knobs.min, PAGES(mins[i]));
	}
	ck_assert_uint_eq(host_said("group /b: min = 30 GiB is not used"), 1);
	ck_assert_uint_eq(host_said("is not used"), 1);
}
END_TEST

/*
 * Counted by the time that a test has: of so many all by themselves, let alone for each group and
 * each of its sections again, no comparison comes to its end.
 */
#define MANY 20000

START_TEST(min_of_very_many_groups_over_the_hosts_memory_is_looked_at_once)
{
	static struct core_group_knobs groups[MANY];
	static char paths[MANY][16];
	struct core_group *group;
	uint64_t has = 0;

	for (size_t i = 0; i < MANY; i++) {
		/* Of ten one is on top, and the others below it. */
		if (i % 10 == 0)
			snprintf(paths[i], sizeof(paths[i]), "/g%zu", MANY - i);
		else
			snprintf(paths[i], sizeof(paths[i]), "/g%zu/%zu", MANY - i / 10 * 10,
				i % 10);
		groups[i] = CORE_GROUP_KNOBS_NONE;
		groups[i].path = paths[i];
		groups[i].knobs.min = i % 10 == 0 ? PAGES(64 * MIB) : PAGES(MIB);
	}
	host_vm(0);
	host.config.pool_host = true; /* 62 GiB for VMs: 992 of the 2000 on top fit */
	host.config.groups = groups;
	host.config.nr_groups = MANY;
	host_up();
	host_run(3 * SECOND);
	for (size_t i = 0; i < MANY; i++) {
		ck_assert_int_eq(core_group_get(host.core, paths[i], &group), 0);
		has += i % 10 == 0 && group->knobs.min > 0;
		ck_assert_uint_eq(group->knobs.min > 0, i < 9920);
	}
	ck_assert_uint_eq(has, 992);
	ck_assert_uint_eq(host_said("is not used"), 1);
	core_groups_sort(host.core);
	for (group = host.core->groups; group->hh.next; group = group->hh.next)
		ck_assert_int_lt(
			strcmp(group->path, ((struct core_group *)group->hh.next)->path), 0);
}
END_TEST

/* Field case BR-88: what was decided earlier never overwrites what was decided later. */
START_TEST(a_target_that_waited_is_superseded_by_the_newer_one)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(SECOND);
	vm->hangs = true;
	host_run(1500000); /* statistics are out */
	host_target(vm, 1, 768 * MIB);
	host_run(100000);
	host_target(vm, 2, 896 * MIB);
	host_run(100000);
	vm->hangs = false;
	host_wake(vm);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 1);
	ck_assert_uint_eq(vm->last[HV_TARGET].target, 896 * MIB);
}
END_TEST

/* Field case BR-101: pressure that is stuck at 99 on an idle machine makes us look, and no more. */
START_TEST(pressure_that_never_ends_wakes_readings_and_changes_nothing)
{
	struct host_vm *vm = host_vm(0);
	unsigned int before;

	host.config.pool_host = true;
	host_up();
	host_run(3 * SECOND);
	before = host.calls[HV_HOST];
	for (int i = 0; i < 100; i++) {
		host_event(HV_EVENT_PRESSURE, NULL);
		host_run(100000);
	}
	ck_assert_uint_gt(host.calls[HV_HOST], before + 50);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
}
END_TEST

/* Field case BR-37: a state that lasts is one line at its begin and one at its end. */
START_TEST(an_hour_of_the_same_trouble_is_one_line)
{
	host_vm(0);
	host.config.pool_host = true;
	host_up();
	host.host_error = -EIO;
	host.process_error = -EIO;
	host_run(3600 * SECOND);
	ck_assert_uint_eq(host_said("cannot be read"), 2);
	host.host_error = host.process_error = 0;
	host_run(10 * SECOND);
	ck_assert_uint_eq(host_said("can be read again"), 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_safety");
	TCase *tc = tcase_create("safety");

	tcase_add_checked_fixture(tc, host_setup, host_teardown);
	tcase_add_test(tc, a_pause_is_told_to_the_engine_and_holds_for_who_comes_later);
	tcase_add_test(tc, a_vm_paused_by_itself_stays_so_through_a_restart_of_its_own);
	tcase_add_test(tc, a_release_is_told_once_and_to_those_below_the_group);
	tcase_add_test(tc, a_release_is_under_way_until_its_target_returned);
	tcase_add_test(tc, a_release_goes_with_the_vm_into_another_group_while_it_runs);
	tcase_add_test(tc, who_does_not_have_all_back_is_counted_though_nobody_waits_for_it);
	tcase_add_test(tc, a_cut_that_runs_is_ended_once_when_observing_begins);
	tcase_add_test(tc, a_set_size_stands_whatever_a_reading_of_the_host_that_was_out_says);
	tcase_add_test(tc, min_of_very_many_groups_over_the_hosts_memory_is_looked_at_once);
	tcase_add_loop_test(tc, the_least_of_the_vms_and_its_groups_manage_counts, 0,
		sizeof(manages) / sizeof(manages[0]));
	tcase_add_loop_test(tc, observing_switches_statistics_on_only_where_that_is_allowed, 0, 2);
	tcase_add_test(tc, rate_and_trust_are_the_configurations);
	tcase_add_test(tc, what_others_on_the_host_take_is_told_once_beyond_its_maximum);
	tcase_add_test(tc, reserve_over_the_hosts_memory_is_told_once_and_nobody_pays_for_it);
	tcase_add_test(tc, others_are_not_known_while_processes_or_the_host_are_not);
	tcase_add_test(tc, others_are_not_known_once_the_pool_has_a_set_size);
	tcase_add_test(tc, min_of_groups_over_the_hosts_memory_is_told_once_and_not_used);
	tcase_add_test(tc, a_target_that_waited_is_superseded_by_the_newer_one);
	tcase_add_test(tc, pressure_that_never_ends_wakes_readings_and_changes_nothing);
	tcase_add_test(tc, an_hour_of_the_same_trouble_is_one_line);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
