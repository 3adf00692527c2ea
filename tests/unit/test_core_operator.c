/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The core's side for an operator: names, views, requests, what is said. */
#include <config.h>

#include "tests/unit/host.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "hv/core_internal.h"
#include "hv/messages.h"

/* ---- the operator ---- */

START_TEST(vms_are_found_by_name_or_uuid_and_groups_by_path)
{
	struct host_vm *a = host_vm(0), *b = host_vm(1);
	uint64_t id = 0;

	b->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/prod" };
	strcpy(a->name, "web");
	strcpy(b->name, "batch");
	host_up();
	ck_assert_int_eq(core_find(host.core, "web", &id), 0);
	ck_assert_uint_eq(id, host_id(a));
	ck_assert_str_eq(core_name(host.core, id), "web");
	ck_assert_int_eq(core_find(host.core, "/", &id), 0);
	ck_assert_uint_eq(id, MEMCG_ROOT_ID);
	ck_assert_int_eq(core_find(host.core, "/prod", &id), 0);
	ck_assert_str_eq(core_name(host.core, id), "/prod");
	ck_assert_int_eq(core_find(host.core, "/nowhere", &id), -ENOENT);
	ck_assert_int_eq(core_find(host.core, "nobody", &id), -ENOENT);
	ck_assert_ptr_null(core_name(host.core, 4711));
	strcpy(b->name, "web");
	host_run(6 * SECOND);
	ck_assert_int_eq(core_find(host.core, "web", &id), -EEXIST);
	ck_assert_uint_eq(host_said("batch: is now called 'web'"), 1);
}
END_TEST

static bool count_named(void *ctx, const struct core_vm_view *vm)
{
	unsigned int *nr = ctx;

	*nr += !strcmp(vm->name, "web");
	return true;
}

/*
 * libvirt has no two of a name, but there are two for a while where one is renamed and another
 * defined, and in another hypervisor's listing. The UUID is who it is.
 */
START_TEST(two_vms_of_one_name_are_two_and_each_is_found_by_its_uuid)
{
	struct host_vm *a = host_vm(0), *b = host_vm(1);
	unsigned int nr = 0;
	char uuid[HV_UUID_TEXT];
	uint64_t id = 0;

	strcpy(a->name, "web");
	strcpy(b->name, "web");
	b->metadata = (struct hv_knobs){ .has_soft_limit = true, .soft_limit = 300 * MIB };
	host_up();
	host_run(3 * SECOND);
	core_for_each_vm(host.core, count_named, &nr);
	ck_assert_uint_eq(nr, 2);
	ck_assert_uint_ne(host_id(a), host_id(b));
	/* Each has what is its own, and is looked at by itself. */
	ck_assert_uint_eq(host_item(a)->knobs.soft_limit, PAGES_UNLIMITED);
	ck_assert_uint_eq(host_item(b)->knobs.soft_limit, PAGES(300 * MIB));
	ck_assert_uint_gt(a->calls[HV_STATS], 1);
	ck_assert_uint_gt(b->calls[HV_STATS], 1);
	ck_assert_int_eq(core_find(host.core, "web", &id), -EEXIST);
	hv_uuid_format(&b->uuid, uuid);
	ck_assert_int_eq(core_find(host.core, uuid, &id), 0);
	ck_assert_uint_eq(id, host_id(b));
	/* A pause, like a target, is of the one that was meant. */
	ck_assert_int_eq(core_pause_vm(host.core, &b->uuid, true), 0);
	host_target(b, 9, 700 * MIB);
	host_run(2 * SECOND);
	ck_assert_uint_eq(a->calls[HV_TARGET], 0);
	ck_assert(!host_item(a)->attrs.paused && host_item(b)->attrs.paused);
	/* One goes: the name is the other's alone. */
	host_gone(0);
	host_run(6 * SECOND);
	ck_assert_int_eq(core_find(host.core, "web", &id), 0);
	ck_assert_uint_eq(id, host_id(b));
}
END_TEST

START_TEST(name_that_was_meant_is_suggested)
{
	strcpy(host_vm(0)->name, "webserver");
	host_vm(1)->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/prod" };
	host_up();
	ck_assert_str_eq(core_nearest(host.core, "wbeserver"), "webserver");
	ck_assert_str_eq(core_nearest(host.core, "web"), "webserver");
	ck_assert_str_eq(core_nearest(host.core, "/pord"), "/prod");
	ck_assert_ptr_null(core_nearest(host.core, "database"));
	ck_assert_ptr_null(core_nearest(host.core, ""));
	ck_assert_ptr_null(core_nearest(host.core, "x"));
	ck_assert_ptr_null(core_nearest(host.core, "/x"));
}
END_TEST

static char order[256];

static bool put_vm(void *ctx, const struct core_vm_view *vm)
{
	strcat(strcat(order, vm->name), " ");
	return strcmp(vm->name, ctx) != 0;
}

static bool put_group(void *ctx, const struct core_group_view *group)
{
	strcat(strcat(order, group->path), " ");
	return true;
}

START_TEST(views_come_in_the_order_of_names_and_paths)
{
	struct core_vm_view view;
	struct host_vm *vm;

	strcpy(host_vm(0)->name, "c");
	strcpy(host_vm(1)->name, "a");
	vm = host_vm(2);
	strcpy(vm->name, "b");
	vm->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/z/y" };
	host.vms[0].partition = "/machine";
	host_up();
	core_for_each_vm(host.core, put_vm, (void *)"");
	ck_assert_str_eq(order, "a b c ");
	order[0] = '\0';
	core_for_each_vm(host.core, put_vm, (void *)"b");
	ck_assert_str_eq(order, "a b ");
	order[0] = '\0';
	core_for_each_group(host.core, put_group, NULL);
	ck_assert_str_eq(order, "/ /machine /z /z/y ");
	ck_assert_int_eq(core_vm(host.core, host_id(vm), &view), 0);
	ck_assert_str_eq(view.group, "/z/y");
	ck_assert_str_eq(view.soft_source, "none");
	ck_assert(view.answering);
	ck_assert_uint_eq(view.samples, vm->calls[HV_STATS]);
	ck_assert_int_eq(core_vm(host.core, 4711, &view), -ENOENT);
}
END_TEST

static void next_event(enum engine_event_type type, uint64_t id, uint64_t a, int64_t b)
{
	fake.events[fake.nr_events++] = (struct engine_event){ type, id, a, b };
}

START_TEST(request_runs_is_remembered_and_told_to_the_end)
{
	struct host_vm *vm = host_vm(0);
	uint64_t job, other;
	struct core_job state;

	host_up();
	ck_assert_int_eq(core_reclaim(host.core, 4711, 5, &job), -ENOENT);
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 0, &job), -EINVAL);
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 500, &job), 0);
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 500, &other), 0);
	ck_assert_uint_ne(job, other);
	host_run(100000);
	ck_assert_uint_eq(fake.nr_requests, 2);
	ck_assert_uint_eq(fake.requests[0].job, job);
	ck_assert_uint_eq(fake.requests[0].pages, 500);

	host_target(vm, 1, 900 * MIB);
	fake.actions[0].reason.job = job;
	host_run(SECOND);
	next_event(ENGINE_EVENT_ASK_CAME, host_id(vm), 300, 290);
	host_run(SECOND);
	ck_assert_int_eq(core_job(host.core, job, &state), 0);
	ck_assert_int_eq(state.state, CORE_JOB_RUNNING);
	ck_assert_uint_eq(state.came, 290);
	ck_assert_uint_eq(state.owed, 77);

	core_reclaim_cancel(host.core, other);
	host_run(100000);
	ck_assert_uint_eq(fake.nr_requests, 3);
	ck_assert_int_eq(fake.requests[2].type, ENGINE_RECLAIM_CANCEL);
	next_event(ENGINE_EVENT_JOB_CANCELLED, other, 500, 0);
	next_event(ENGINE_EVENT_JOB_DONE, job, 500, 501);
	host_run(SECOND);
	ck_assert_int_eq(core_job(host.core, job, &state), 0);
	ck_assert_int_eq(state.state, CORE_JOB_DONE);
	ck_assert_uint_eq(state.came, 501);
	ck_assert_int_eq(core_job(host.core, other, &state), 0);
	ck_assert_int_eq(state.state, CORE_JOB_CANCELLED);
	core_reclaim_cancel(host.core, other);
	core_reclaim_cancel(host.core, 4711);
	ck_assert_int_eq(core_job(host.core, 4711, &state), -ENOENT);
}
END_TEST

START_TEST(last_64_requests_are_remembered)
{
	uint64_t first, job;
	struct core_job state;

	host_up();
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 5, &first), 0);
	for (int i = 1; i < 64; i++)
		ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 5, &job), 0);
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 5, &job), -EAGAIN);
	core_reclaim_cancel(host.core, first); /* before anyone heard of it */
	ck_assert_int_eq(core_job(host.core, first, &state), 0);
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 5, &job), 0);
	ck_assert_int_eq(core_job(host.core, first, &state), -ENOENT);
	host_run(SECOND);
	ck_assert_uint_eq(fake.nr_requests, 64);
}
END_TEST

static unsigned int nr_cancels(uint64_t job)
{
	unsigned int nr = 0;

	for (size_t i = 0; i < fake.nr_requests; i++)
		nr += fake.requests[i].type == ENGINE_RECLAIM_CANCEL && fake.requests[i].job == job;
	return nr;
}

START_TEST(request_is_cancelled_at_once_and_none_is_taken_while_the_hypervisor_is_away)
{
	uint64_t job, other;
	struct core_job state;

	host_vm(0);
	host_up();
	host_run(5 * SECOND);
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 500, &job), 0);
	host_run(SECOND);
	host_event(HV_EVENT_DOWN, NULL);
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 500, &other), -ENOTCONN);
	core_reclaim_cancel(host.core, job);
	ck_assert_int_eq(core_job(host.core, job, &state), 0);
	ck_assert_int_eq(state.state, CORE_JOB_CANCELLED);
	host_run(20 * SECOND);
	ck_assert_uint_eq(nr_cancels(job), 0);
	/* The engine hears of it with its next decision, and asks nobody for it any more. */
	host_event(HV_EVENT_UP, NULL);
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 500, &other), -ENOTCONN);
	host_run(10 * SECOND);
	ck_assert_uint_eq(nr_cancels(job), 1);
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 500, &other), 0);
}
END_TEST

START_TEST(place_of_a_request_whose_end_is_still_to_be_told_is_not_given_away)
{
	uint64_t first, job;
	struct core_job state;

	host_vm(0);
	host_up();
	host_run(5 * SECOND);
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 5, &first), 0);
	host_run(SECOND);
	host_event(HV_EVENT_DOWN, NULL);
	core_reclaim_cancel(host.core, first);
	host_event(HV_EVENT_UP, NULL);
	host.core->blind = false; /* as a tick begins */
	for (int i = 1; i < 64; i++)
		ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 5, &job), 0);
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 5, &job), -EAGAIN);
	ck_assert_int_eq(core_job(host.core, first, &state), 0);
	host_run(10 * SECOND);
	ck_assert_uint_eq(nr_cancels(first), 1);
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 5, &job), 0);
}
END_TEST

/* As a microVM at its max does: each decision ends one, and the next is asked for. */
START_TEST(room_for_page_faults_is_asked_for_without_a_word)
{
	struct engine_event events[64];
	uint64_t room = 0, before, job;
	struct core_job state;
	size_t lines;

	host_vm(0);
	host_up();
	host_run(5 * SECOND);
	ck_assert_int_eq(core_reclaim(host.core, MEMCG_ROOT_ID, 5, &job), 0);
	host_run(SECOND);
	next_event(ENGINE_EVENT_JOB_DONE, job, 5, 5);
	host_run(SECOND);
	core_take_events(host.core, events, 64);
	lines = host.nr_lines;
	for (int i = 0; i < 100; i++) {
		before = room;
		core_room(host.core, MEMCG_ROOT_ID, &room);
		ck_assert_uint_ne(room, before);
		core_room(host.core, MEMCG_ROOT_ID, &room); /* one at a time */
		host_run(50000);
		next_event(ENGINE_EVENT_JOB_SHORT, room, CORE_ROOM_PAGES, 1);
		host_run(SECOND);
		ck_assert_int_eq(core_job(host.core, room, &state), -ENOENT);
	}
	ck_assert_uint_eq(host.nr_lines, lines);
	ck_assert_uint_eq(core_take_events(host.core, events, 64), 0);
	/* What operators asked for is remembered beside it. */
	ck_assert_int_eq(core_job(host.core, job, &state), 0);
}
END_TEST

START_TEST(change_that_runs_is_remembered_however_many_others_end)
{
	struct hv_knobs_change change = { .clear = HV_KNOB_MIN };
	struct host_vm *slow = host_vm(0), *other = host_vm(1);
	uint64_t first, set;
	const char *message;
	char why[100];

	host_up();
	host_run(3 * SECOND);
	slow->slow_info = true;
	host_event(HV_EVENT_CHANGED, slow);
	host_run(SECOND);
	ck_assert_int_eq(
		core_set_knobs(host.core, host_id(slow), &change, &first, why, sizeof(why)), 0);
	for (int i = 0; i < 200; i++) {
		ck_assert_int_eq(
			core_set_knobs(host.core, host_id(other), &change, &set, why, sizeof(why)),
			0);
		host_run(SECOND / 2);
		ck_assert_int_eq(core_change(host.core, set, &message), CORE_CHANGE_DONE);
	}
	ck_assert_int_eq(core_change(host.core, first, &message), CORE_CHANGE_RUNNING);
	slow->slow_info = false;
	host_wake(slow);
	host_run(SECOND);
	ck_assert_int_eq(core_change(host.core, first, &message), CORE_CHANGE_DONE);
}
END_TEST

START_TEST(events_are_kept_for_who_takes_them_and_the_oldest_go)
{
	struct engine_event events[2000];

	fake.next = 0; /* ticks as often as may be */
	host_up();
	for (uint64_t i = 0; i < 1100; i++) {
		next_event(ENGINE_EVENT_ASK_CAME, 4711, i, 1);
		host_run(50000);
	}
	ck_assert_uint_eq(core_take_events(host.core, events, 3), 3);
	ck_assert_uint_eq(events[0].a, 1100 - 1024);
	ck_assert_uint_eq(core_take_events(host.core, events, 2000), 1021);
	ck_assert_uint_eq(events[1020].a, 1099);
	ck_assert_uint_eq(core_take_events(host.core, events, 2000), 0);
}
END_TEST

START_TEST(states_are_said_where_they_begin_and_end)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	fake.view = (struct engine_pool_view){
		.known = true, .wm_min = 100, .wm_high = 300, .free = -5
	};
	for (int i = 0; i < 5; i++) {
		next_event(ENGINE_EVENT_SHORT, MEMCG_ROOT_ID, 256, 0);
		next_event(ENGINE_EVENT_BELOW_MIN, 0, 100, -5);
		next_event(ENGINE_EVENT_ASK_FAILED, host_id(vm), 512, 256);
		next_event(ENGINE_EVENT_CONTENDED, host_id(vm), 512, 768);
		host_run(SECOND);
	}
	ck_assert_uint_eq(host_said("the pool is short: 1 MiB that no VM can give"), 1);
	ck_assert_uint_eq(host_said("memory is nearly gone: -20 KiB free"), 1);
	ck_assert_uint_eq(host_said("vm00: gave only 1 MiB of 2 MiB"), 1);
	ck_assert_uint_eq(host_said("vm00: rests at 3 MiB above its target 2 MiB"), 1);
	fake.view.free = 100;
	next_event(ENGINE_EVENT_SHORT_OVER, MEMCG_ROOT_ID, 0, 0);
	next_event(ENGINE_EVENT_SHORT_OVER, MEMCG_ROOT_ID, 0, 0);
	next_event(ENGINE_EVENT_ASK_CAME, host_id(vm), 512, 512);
	next_event(ENGINE_EVENT_WISH, host_id(vm), 1024, 512);
	host_run(SECOND);
	ck_assert_uint_eq(host_said("the pool is no longer short"), 1);
	ck_assert_uint_eq(host_said("memory is above wm-min again: 400 KiB free"), 1);
	ck_assert_uint_eq(host_said("vm00: gave 2 MiB of 2 MiB"), 1);
	ck_assert_uint_eq(host_said("its ceiling is 4 MiB -> 2 MiB"), 1);
	next_event(ENGINE_EVENT_SHORT, MEMCG_ROOT_ID, 256, 0);
	next_event(ENGINE_EVENT_ASK_FAILED, host_id(vm), 512, 256);
	host_run(SECOND);
	ck_assert_uint_eq(host_said("the pool is short"), 2);
	ck_assert_uint_eq(host_said("vm00: gave only"), 2);
}
END_TEST

static const struct {
	const char *text, *message_id, *action;
} kinds[] = {
	{ ": connected to scripted", MESSAGE_CONNECTED, NULL },
	{ "vm00: found: ", MESSAGE_FOUND, NULL },
	{ "vm00: target 1 GiB -> 900 MiB: cut", MESSAGE_TARGET, "cut" },
	{ "vm00: gave only 1 MiB", MESSAGE_ASK_FAILED, NULL },
	{ "vm00: gave 2 MiB", MESSAGE_ASK_CAME, NULL },
	{ "vm00: rests at", MESSAGE_CONTENDED, NULL },
	{ "vm00: somebody else set", MESSAGE_WISH, NULL },
	{ ": the pool is short", MESSAGE_SHORT, NULL },
	{ ": the pool is no longer short", MESSAGE_SHORT_OVER, NULL },
	{ ": memory is nearly gone", MESSAGE_BELOW_MIN, NULL },
	{ ": memory is above wm-min", MESSAGE_ABOVE_MIN, NULL },
	{ ": request 1 done", NULL, NULL },
	{ ": paused: nobody", MESSAGE_PAUSED, NULL },
	{ ": no longer paused", MESSAGE_RESUMED, NULL },
	{ "vm00: paused: it", MESSAGE_PAUSED, NULL },
	{ "vm00: no longer paused", MESSAGE_RESUMED, NULL },
	{ "vm00: released", NULL, "release" },
	{ "vm00: is not answering", MESSAGE_NOT_ANSWERING, NULL },
	{ "vm00: running -> not-answering", MESSAGE_STATE, NULL },
	{ "vm00: answers again", MESSAGE_ANSWERS, NULL },
	{ "vm00: has gone", MESSAGE_GONE, NULL },
	{ ": the connection to scripted is lost", MESSAGE_NOT_CONNECTED, NULL },
};

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

START_TEST(lines_carry_their_kind_and_the_action_that_is_told)
{
	struct host_vm *vm = host_vm(0);

	host_up();
	host_run(3 * SECOND);
	host_target(vm, 1, 900 * MIB);
	fake.view = (struct engine_pool_view){ .known = true, .wm_min = 100, .free = -5 };
	next_event(ENGINE_EVENT_ASK_FAILED, host_id(vm), 512, 256);
	next_event(ENGINE_EVENT_ASK_CAME, host_id(vm), 512, 512);
	next_event(ENGINE_EVENT_CONTENDED, host_id(vm), 512, 768);
	next_event(ENGINE_EVENT_WISH, host_id(vm), 1024, 512);
	next_event(ENGINE_EVENT_SHORT, MEMCG_ROOT_ID, 256, 0);
	next_event(ENGINE_EVENT_SHORT_OVER, MEMCG_ROOT_ID, 0, 0);
	next_event(ENGINE_EVENT_BELOW_MIN, 0, 100, -5);
	next_event(ENGINE_EVENT_JOB_DONE, 1, 512, 512);
	host_run(SECOND);
	fake.view.free = 100;
	for (int paused = 1; paused >= 0; paused--) {
		core_pause(host.core, paused);
		ck_assert_int_eq(core_pause_vm(host.core, &vm->uuid, paused), 0);
	}
	ck_assert_uint_eq(core_release(host.core, MEMCG_ROOT_ID), 1);
	vm->hangs = true;
	host_run(60 * SECOND);
	host_wake(vm);
	host_run(3 * SECOND);
	host_gone(0);
	host_event(HV_EVENT_CHANGED, vm);
	host_run(3 * SECOND);
	host_event(HV_EVENT_DOWN, NULL);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		unsigned int nr = 0;

		for (size_t j = 0; j < host.nr_lines; j++) {
			if (strncmp(host.lines[j], kinds[i].text, strlen(kinds[i].text)) != 0)
				continue;
			nr++;
			ck_assert_msg(same(host.kinds[j], kinds[i].message_id) &&
					      same(host.actions[j], kinds[i].action),
				"%s", host.lines[j]);
		}
		ck_assert_msg(nr > 0, "nobody said '%s'", kinds[i].text);
	}
}
END_TEST

static char names[256];

static void put_name(void *ctx, uint64_t id, const struct hv_uuid *uuid, const char *name)
{
	ck_assert_ptr_eq(ctx, names);
	/* Told before the tick that brings it. */
	ck_assert(id == MEMCG_ROOT_ID || !fake_item(id) || !strcmp(name, "new"));
	ck_assert_int_eq(uuid == NULL, name[0] == '/');
	strcat(strcat(names, name), " ");
}

START_TEST(names_are_told_before_the_tick_that_brings_them)
{
	struct host_vm *vm;

	host_up();
	core_on_tick(host.core, NULL, put_name, names);
	vm = host_vm(0);
	vm->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/a/b" };
	host_run(6 * SECOND);
	strcpy(vm->name, "new");
	host_run(6 * SECOND);
	ck_assert_str_eq(names, "/ /a /a/b vm00 new ");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		vms_are_found_by_name_or_uuid_and_groups_by_path,
		two_vms_of_one_name_are_two_and_each_is_found_by_its_uuid,
		name_that_was_meant_is_suggested,
		views_come_in_the_order_of_names_and_paths,
		request_runs_is_remembered_and_told_to_the_end,
		last_64_requests_are_remembered,
		request_is_cancelled_at_once_and_none_is_taken_while_the_hypervisor_is_away,
		place_of_a_request_whose_end_is_still_to_be_told_is_not_given_away,
		room_for_page_faults_is_asked_for_without_a_word,
		change_that_runs_is_remembered_however_many_others_end,
		events_are_kept_for_who_takes_them_and_the_oldest_go,
		states_are_said_where_they_begin_and_end,
		lines_carry_their_kind_and_the_action_that_is_told,
		names_are_told_before_the_tick_that_brings_them,
	};
	Suite *suite = suite_create("core_operator");
	TCase *tc = tcase_create("core_operator");

	tcase_add_checked_fixture(tc, host_setup, host_teardown);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
