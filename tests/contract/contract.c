/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The suite; see contract.h. Its tests are in the order of hv.h. */
#include <config.h>

#include "tests/contract/contract.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

/* Calls in a row; more than any queue of a backend has room for by accident; of a slow one fewer.
 */
#define MANY	  500
#define MANY_REAL 50

static const struct contract_subject *subject;
static struct hv *hv;
static uint64_t token;

/* ---- helpers ---- */

static uint64_t maximum(void)
{
	return subject->real ? subject->real->maximum : CONTRACT_MAXIMUM;
}

/* What VMs are told to have, and have themselves. */
static uint64_t less(void)
{
	return subject->real ? subject->real->target : CONTRACT_MAXIMUM / 2;
}

static bool at(uint64_t actual, uint64_t wanted)
{
	uint64_t apart = actual > wanted ? actual - wanted : wanted - actual;

	return apart <= (subject->real ? subject->real->near : 0);
}

static void setup(void)
{
	subject->setup();
	hv = NULL;
	token = 0;
}

static void teardown(void)
{
	subject->backend->close(hv);
	hv = NULL;
	subject->teardown();
}

static bool next_event(struct hv_event *ret_event)
{
	do {
		int r = subject->backend->next(hv, ret_event);

		ck_assert_int_ge(r, 0);
		if (r > 0)
			return true;
	} while (subject->wait(hv));
	return false;
}

/* The next event of that type; others that come by themselves are dropped. */
static struct hv_event wait_for(enum hv_event_type type)
{
	struct hv_event event;

	while (next_event(&event)) {
		if (event.type == type)
			return event;
		ck_assert_uint_eq(event.token, 0); /* no answer that nobody waits for */
		hv_event_clear(&event);
	}
	ck_abort_msg("no event of type %d came", (int)type);
	return event;
}

static void open_host(void)
{
	struct hv_params params = { .uri = subject->uri };
	struct hv_event event;

	ck_assert_int_eq(subject->open(&params, &hv), 0);
	event = wait_for(HV_EVENT_UP);
	ck_assert_uint_eq(event.token, 0);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
}

/* Of every HV_KNOBS. */
static struct hv_knobs_change change;

static struct hv_call make(enum hv_call_type type, const char *vm)
{
	struct hv_call call = { .type = type, .token = ++token };

	if (vm)
		call.uuid = subject->uuid(vm);
	if (type == HV_TARGET) {
		call.target = less();
		call.ceiling = maximum();
	}
	if (type == HV_PERIOD)
		call.period_s = 1;
	if (type == HV_KNOBS)
		call.change = &change;
	return call;
}

static uint64_t submit(enum hv_call_type type, const char *vm)
{
	struct hv_call call = make(type, vm);

	ck_assert_int_eq(subject->backend->submit(hv, &call), 0);
	return call.token;
}

/* The answer to that call, whatever comes by itself before. */
static struct hv_event answer_to(uint64_t wanted)
{
	struct hv_event event;

	while (next_event(&event)) {
		if (event.token == wanted)
			return event;
		ck_assert_uint_eq(event.token, 0);
		hv_event_clear(&event);
	}
	ck_abort_msg("no answer came");
	return event;
}

static struct hv_event ask(enum hv_call_type type, const char *vm)
{
	return answer_to(submit(type, vm));
}

static int error_of(enum hv_call_type type, const char *vm)
{
	struct hv_event event = ask(type, vm);
	int error = event.error;

	hv_event_clear(&event);
	return error;
}

static bool same(const struct hv_uuid *uuid, const char *vm)
{
	struct hv_uuid wanted = subject->uuid(vm);

	return hv_uuid_equal(uuid, &wanted);
}

static const enum hv_event_type answers[] = { [HV_LIST] = HV_EVENT_LISTED,
	[HV_INFO] = HV_EVENT_INFO,
	[HV_STATS] = HV_EVENT_STATS,
	[HV_PERIOD] = HV_EVENT_DONE,
	[HV_TARGET] = HV_EVENT_DONE,
	[HV_UNTHROTTLE] = HV_EVENT_DONE,
	[HV_KNOBS] = HV_EVENT_DONE,
	[HV_ATTACH] = HV_EVENT_DONE,
	[HV_RECLAIM] = HV_EVENT_DONE,
	[HV_PROCESS] = HV_EVENT_PROCESS,
	[HV_HOST] = HV_EVENT_HOST };

static bool of_a_vm(enum hv_call_type type)
{
	return type != HV_LIST && type != HV_PROCESS && type != HV_HOST;
}

/* ---- knobs ---- */

/* What its metadata say, as its description has it. The group is borrowed from *ret_event. */
static struct hv_knobs said(const char *vm, struct hv_event *ret_event)
{
	*ret_event = ask(HV_INFO, vm);
	ck_assert_int_eq(ret_event->error, 0);
	return ret_event->info.metadata;
}

START_TEST(knobs_that_are_written_are_described_and_others_stay)
{
	struct hv_event event;
	struct hv_knobs knobs;

	open_host();
	change = (struct hv_knobs_change){ .set = { .has_soft_limit = true,
						   .soft_limit = 300 * CONTRACT_MIB,
						   .has_min = true,
						   .min = 1025,
						   .has_manage = true,
						   .manage = HV_MANAGE_OBSERVE,
						   .has_guest_swap = true,
						   .guest_swap = true,
						   .has_agent = true,
						   .agent = HV_WAY_QEMU_GA,
						   .has_group = true,
						   .group = (char *)"/prod/a&b" } };
	ck_assert_int_eq(error_of(HV_KNOBS, "web"), 0);
	change = (struct hv_knobs_change){
		.set = { .has_max = true, .max = HV_UNLIMITED, .has_low = true },
		.clear = HV_KNOB_GUEST_SWAP
	};
	ck_assert_int_eq(error_of(HV_KNOBS, "web"), 0);
	knobs = said("web", &event);
	ck_assert(knobs.has_soft_limit && knobs.soft_limit == 300 * CONTRACT_MIB);
	ck_assert(knobs.has_min && knobs.min == 1025);
	ck_assert(knobs.has_max && knobs.max == HV_UNLIMITED);
	ck_assert(knobs.has_low && knobs.low == 0);
	ck_assert(knobs.has_manage && knobs.manage == HV_MANAGE_OBSERVE);
	ck_assert(!knobs.has_guest_swap);
	ck_assert(knobs.has_agent && knobs.agent == HV_WAY_QEMU_GA);
	ck_assert(knobs.has_group);
	ck_assert_str_eq(knobs.group, "/prod/a&b");
	ck_assert_ptr_null(event.info.problem);
	hv_event_clear(&event);
	/* Nobody else's. */
	knobs = said("db", &event);
	ck_assert(!knobs.has_soft_limit && !knobs.has_group);
	hv_event_clear(&event);
	change = (struct hv_knobs_change){ .clear = 0xff };
	ck_assert_int_eq(error_of(HV_KNOBS, "web"), 0);
	knobs = said("web", &event);
	ck_assert(!knobs.has_soft_limit && !knobs.has_min && !knobs.has_max && !knobs.has_group);
	ck_assert(!knobs.has_low && !knobs.has_manage && !knobs.has_agent);
	hv_event_clear(&event);
}
END_TEST

START_TEST(min_over_max_is_refused_and_nothing_of_it_written)
{
	struct hv_event event;
	struct hv_knobs knobs;

	open_host();
	change = (struct hv_knobs_change){ .set = { .has_max = true, .max = 100 * CONTRACT_MIB } };
	ck_assert_int_eq(error_of(HV_KNOBS, "web"), 0);
	change = (struct hv_knobs_change){ .set = { .has_min = true,
						   .min = 200 * CONTRACT_MIB,
						   .has_low = true,
						   .low = CONTRACT_MIB } };
	ck_assert_int_eq(error_of(HV_KNOBS, "web"), -EINVAL);
	knobs = said("web", &event);
	ck_assert(knobs.has_max && !knobs.has_min && !knobs.has_low);
	hv_event_clear(&event);
}
END_TEST

/* ---- the table, life ---- */

START_TEST(the_table_is_complete)
{
	const struct hv_backend *b = subject->backend;

	ck_assert(b->name && *b->name);
	ck_assert_uint_gt(b->granule, 0);
	ck_assert_uint_eq(b->granule % 4096, 0);
	ck_assert(b->handles && b->open && b->close && b->fd && b->submit && b->next);
}
END_TEST

START_TEST(a_uri_is_its_own_or_refused)
{
	struct hv_params params = { .uri = subject->foreign_uri };

	ck_assert(subject->backend->handles(subject->uri));
	ck_assert(!subject->backend->handles(subject->foreign_uri));
	ck_assert_int_eq(subject->open(&params, &hv), -EINVAL);
	ck_assert_ptr_null(hv); /* nothing has changed */
}
END_TEST

START_TEST(close_takes_null)
{
	subject->backend->close(NULL);
}
END_TEST

START_TEST(up_is_the_first_event)
{
	struct hv_params params = { .uri = subject->uri };
	struct hv_event event;

	ck_assert_int_eq(subject->open(&params, &hv), 0);
	ck_assert(next_event(&event));
	ck_assert_int_eq(event.type, HV_EVENT_UP);
	hv_event_clear(&event);
}
END_TEST

START_TEST(an_event_that_was_cleared_is_none_and_may_be_cleared_again)
{
	struct hv_event event;

	open_host();
	event = ask(HV_LIST, NULL);
	hv_event_clear(&event);
	ck_assert_int_eq(event.type, HV_EVENT_NONE);
	hv_event_clear(&event);
}
END_TEST

START_TEST(the_descriptor_is_readable_while_events_are_there)
{
	struct pollfd fd = { .events = POLLIN };
	struct hv_event event;

	open_host();
	fd.fd = subject->backend->fd(hv);
	if (fd.fd < 0)
		return; /* next() is to be called in any case */
	submit(HV_HOST, NULL);
	ck_assert_int_eq(poll(&fd, 1, 20000), 1);
	event = answer_to(token);
	hv_event_clear(&event);
	ck_assert_int_eq(subject->backend->fd(hv), fd.fd); /* the same for the whole life */
}
END_TEST

START_TEST(close_with_calls_out_waits_for_nothing)
{
	open_host();
	if (!subject->real)
		subject->act(hv, CONTRACT_HANG, "web");
	for (enum hv_call_type type = HV_LIST; type <= HV_HOST; type++)
		submit(type, of_a_vm(type) ? "web" : NULL);
	subject->backend->close(hv);
	hv = NULL;
}
END_TEST

/* ---- answers ---- */

START_TEST(every_call_is_answered_once_with_its_token_and_type)
{
	uint64_t first = token + 1, calls = HV_HOST + 1;
	unsigned int seen[HV_HOST + 1] = { 0 };
	struct hv_event event;

	open_host();
	/* One call of a VM is out at a time, so each type has its turn; the others go together. */
	for (enum hv_call_type type = HV_LIST; type <= HV_HOST; type++) {
		event = ask(type, of_a_vm(type) ? "web" : NULL);
		ck_assert_int_eq(event.type, answers[type]);
		/* A limit that is the only one is not lifted; there is no agent. */
		ck_assert(event.error == 0 ||
			  ((type == HV_UNTHROTTLE || type == HV_ATTACH) &&
				  event.error == -EOPNOTSUPP) ||
			  (type == HV_RECLAIM &&
				  (event.error == -EOPNOTSUPP || event.error == -ENOTCONN)));
		if (of_a_vm(type))
			ck_assert(same(&event.uuid, "web"));
		seen[event.token - first]++;
		hv_event_clear(&event);
	}
	subject->rest(hv);
	while (subject->backend->next(hv, &event) > 0) {
		ck_assert_uint_eq(event.token, 0);
		hv_event_clear(&event);
	}
	for (uint64_t i = 0; i < calls; i++)
		ck_assert_uint_eq(seen[i], 1);
}
END_TEST

START_TEST(no_answer_is_lost_among_many)
{
	unsigned int many = subject->real ? MANY_REAL : MANY;
	bool seen[MANY] = { false };
	uint64_t first = token + 1;
	struct hv_event event;

	open_host();
	for (unsigned int i = 0; i < many; i++)
		submit(i % 2 ? HV_HOST : HV_LIST, NULL);
	for (unsigned int left = many; left;) {
		ck_assert(next_event(&event));
		if (event.token) {
			ck_assert_uint_lt(event.token - first, many);
			ck_assert(!seen[event.token - first]);
			seen[event.token - first] = true;
			left--;
		}
		hv_event_clear(&event);
	}
}
END_TEST

START_TEST(a_call_is_copied_and_its_token_may_be_anything)
{
	struct hv_call call = make(HV_STATS, "web");
	struct hv_event event;

	open_host();
	call.token = UINT64_MAX;
	ck_assert_int_eq(subject->backend->submit(hv, &call), 0);
	memset(&call, 0x55, sizeof call);
	event = answer_to(UINT64_MAX);
	ck_assert_int_eq(event.type, HV_EVENT_STATS);
	ck_assert_int_eq(event.error, 0);
	ck_assert(same(&event.uuid, "web"));
	hv_event_clear(&event);
}
END_TEST

START_TEST(a_call_that_is_none_is_refused_and_changes_nothing)
{
	struct hv_call call = make((enum hv_call_type)(HV_HOST + 1), NULL);
	struct hv_event event;

	open_host();
	ck_assert_int_eq(subject->backend->submit(hv, &call), -EINVAL);
	subject->rest(hv);
	while (subject->backend->next(hv, &event) > 0) {
		ck_assert_uint_eq(event.token, 0);
		hv_event_clear(&event);
	}
}
END_TEST

START_TEST(a_vm_that_is_not_there_is_an_error_and_no_payload)
{
	static const enum hv_call_type types[] = { HV_INFO, HV_STATS, HV_PERIOD, HV_TARGET };
	struct hv_call call;
	struct hv_event event;

	open_host();
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		call = make(types[i], NULL);
		memset(&call.uuid, 0xee, sizeof call.uuid);
		ck_assert_int_eq(subject->backend->submit(hv, &call), 0);
		event = answer_to(call.token);
		ck_assert_int_eq(event.type, answers[types[i]]);
		ck_assert_int_eq(event.error, -ENOENT);
		hv_event_clear(&event);
	}
}
END_TEST

START_TEST(running_vms_are_listed_with_name_and_state)
{
	bool web = false, db = false;
	struct hv_event event;

	open_host();
	event = ask(HV_LIST, NULL);
	for (size_t i = 0; i < event.listed.nr; i++) {
		const struct hv_listed *vm = &event.listed.vms[i];

		ck_assert_ptr_nonnull(vm->name);
		ck_assert_int_eq(vm->state, HV_RUNNING);
		web |= !strcmp(vm->name, "web") && same(&vm->uuid, "web");
		db |= !strcmp(vm->name, "db") && same(&vm->uuid, "db");
	}
	ck_assert_uint_eq(event.listed.nr, 2 + (subject->real ? subject->real->others : 0));
	ck_assert(web && db);
	hv_event_clear(&event);
}
END_TEST

START_TEST(a_description_has_name_maximum_balloon_and_no_knobs_that_nobody_set)
{
	struct hv_event event;

	open_host();
	event = ask(HV_INFO, "web");
	ck_assert_int_eq(event.error, 0);
	ck_assert(same(&event.info.uuid, "web"));
	ck_assert_str_eq(event.info.name, "web");
	ck_assert_uint_eq(event.info.maximum, maximum());
	ck_assert(event.info.balloon);
	ck_assert_uint_eq(event.info.ceiling, 0);
	ck_assert(!event.info.metadata.has_soft_limit && !event.info.metadata.has_min);
	ck_assert(!event.info.memtune.has_soft_limit);
	ck_assert_ptr_null(event.info.problem);
	hv_event_clear(&event);
}
END_TEST

START_TEST(statistics_say_actual_and_nothing_that_was_not_told)
{
	struct hv_event event;

	open_host();
	event = ask(HV_STATS, "web");
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_eq(event.stats.known & HV_STAT_ACTUAL, HV_STAT_ACTUAL);
	ck_assert(at(event.stats.actual, maximum()));
	/* They are switched off. */
	ck_assert_uint_eq(event.stats.known & (HV_STAT_USABLE | HV_STAT_SWAP_IN), 0);
	hv_event_clear(&event);
}
END_TEST

START_TEST(a_period_is_set_live)
{
	struct hv_event event;

	open_host();
	ck_assert_int_eq(error_of(HV_PERIOD, "web"), 0);
	if (subject->period_s) {
		ck_assert_uint_eq(subject->period_s(hv, "web"), 1);
		ck_assert_uint_eq(subject->period_s(hv, "db"), 0);
		return;
	}
	event = ask(HV_INFO, "web");
	ck_assert_uint_eq(event.info.stats_period_s, 1);
	hv_event_clear(&event);
}
END_TEST

START_TEST(a_target_is_set_and_its_ceiling_recorded)
{
	struct hv_event event;

	open_host();
	ck_assert_int_eq(error_of(HV_TARGET, "web"), 0);
	ck_assert_uint_eq(subject->target(hv, "web"), less());
	ck_assert_uint_ne(subject->target(hv, "db"), less());
	event = ask(HV_INFO, "web");
	ck_assert_uint_eq(event.info.ceiling, maximum());
	ck_assert_uint_eq(event.info.maximum, maximum());
	hv_event_clear(&event);
}
END_TEST

START_TEST(a_ceiling_that_changes_is_recorded_anew)
{
	struct hv_call call;
	struct hv_event event;

	open_host();
	ck_assert_int_eq(error_of(HV_TARGET, "web"), 0);
	call = make(HV_TARGET, "web");
	call.ceiling = maximum() - 8 * CONTRACT_MIB;
	ck_assert_int_eq(subject->backend->submit(hv, &call), 0);
	event = answer_to(call.token);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
	event = ask(HV_INFO, "web");
	ck_assert_uint_eq(event.info.ceiling, maximum() - 8 * CONTRACT_MIB);
	hv_event_clear(&event);
}
END_TEST

START_TEST(a_port_for_an_agent_is_added_once_or_cannot_be_added_at_all)
{
	int first;

	open_host();
	first = error_of(HV_ATTACH, "web");
	ck_assert(first == 0 || first == -EOPNOTSUPP);
	ck_assert_int_eq(error_of(HV_ATTACH, "web"), first ? first : -EEXIST);
}
END_TEST

/* ---- what hangs ---- */

START_TEST(a_vm_that_hangs_costs_the_others_nothing)
{
	uint64_t hung;

	open_host();
	subject->act(hv, CONTRACT_HANG, "web");
	hung = submit(HV_STATS, "web");
	/* None of these may wait for it; answer_to() takes no other answer. */
	ck_assert_int_eq(error_of(HV_STATS, "db"), 0);
	ck_assert_int_eq(error_of(HV_TARGET, "db"), 0);
	ck_assert_int_eq(error_of(HV_LIST, NULL), 0);
	ck_assert_int_eq(error_of(HV_INFO, "db"), 0);
	ck_assert_int_eq(error_of(HV_PROCESS, NULL), 0);
	ck_assert_int_eq(error_of(HV_HOST, NULL), 0);
	ck_assert_int_eq(error_of(HV_STATS, "db"), 0);
	subject->act(hv, CONTRACT_GO_ON, "web");
	{
		struct hv_event event = answer_to(hung);

		ck_assert_int_eq(event.type, HV_EVENT_STATS);
		ck_assert_int_eq(event.error, 0);
		hv_event_clear(&event);
	}
}
END_TEST

/* ---- what happens by itself ---- */

static bool cannot(enum contract_deed deed)
{
	return subject->cannot & CONTRACT_BIT(deed);
}

static void wait_for_change_of(const char *vm)
{
	struct hv_event event = wait_for(HV_EVENT_CHANGED);

	ck_assert(same(&event.uuid, vm));
	ck_assert_uint_eq(event.token, 0);
	hv_event_clear(&event);
}

/* How the VM is listed. The name is borrowed from *ret_event. */
static struct hv_listed listed(const char *vm, struct hv_event *ret_event)
{
	*ret_event = ask(HV_LIST, NULL);
	ck_assert_int_eq(ret_event->error, 0);
	for (size_t i = 0; i < ret_event->listed.nr; i++)
		if (same(&ret_event->listed.vms[i].uuid, vm))
			return ret_event->listed.vms[i];
	ck_abort_msg("%s is not listed", vm);
	return ret_event->listed.vms[0];
}

START_TEST(a_vm_that_was_renamed_is_the_same_under_its_new_name)
{
	struct hv_event event;

	if (cannot(CONTRACT_RENAME))
		return;
	open_host();
	ck_assert_str_eq(listed("web", &event).name, "web");
	hv_event_clear(&event);
	subject->act(hv, CONTRACT_RENAME, "web");
	if (!(subject->silent & CONTRACT_BIT(CONTRACT_RENAME)))
		wait_for_change_of("web");
	ck_assert_str_eq(listed("web", &event).name, CONTRACT_NAME);
	hv_event_clear(&event);
	event = ask(HV_INFO, "web");
	ck_assert_int_eq(event.error, 0);
	ck_assert_str_eq(event.info.name, CONTRACT_NAME);
	hv_event_clear(&event);
	ck_assert_int_eq(error_of(HV_TARGET, "web"), 0);
}
END_TEST

START_TEST(a_vm_that_was_started_anew_is_told_and_takes_calls_again)
{
	struct hv_event event;

	open_host();
	ck_assert_int_eq(error_of(HV_TARGET, "web"), 0);
	subject->act(hv, CONTRACT_RESTART, "web");
	wait_for_change_of("web");
	subject->rest(hv);
	while (subject->backend->next(hv, &event) > 0)
		hv_event_clear(&event);
	ck_assert_int_eq(listed("web", &event).state, HV_RUNNING);
	hv_event_clear(&event);
	event = ask(HV_STATS, "web");
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_eq(event.stats.actual, CONTRACT_MAXIMUM);
	hv_event_clear(&event);
	ck_assert_int_eq(error_of(HV_TARGET, "web"), 0);
	ck_assert_uint_eq(subject->target(hv, "web"), CONTRACT_MAXIMUM / 2);
}
END_TEST

START_TEST(a_vm_that_is_paused_is_listed_so_until_it_goes_on)
{
	struct hv_event event;

	open_host();
	subject->act(hv, CONTRACT_PAUSE, "web");
	if (!(subject->silent & CONTRACT_BIT(CONTRACT_PAUSE)))
		wait_for_change_of("web");
	ck_assert_int_eq(listed("web", &event).state, HV_PAUSED);
	hv_event_clear(&event);
	ck_assert_int_eq(listed("db", &event).state, HV_RUNNING);
	hv_event_clear(&event);
	subject->act(hv, CONTRACT_RESUME, "web");
	if (!(subject->silent & CONTRACT_BIT(CONTRACT_RESUME)))
		wait_for_change_of("web");
	ck_assert_int_eq(listed("web", &event).state, HV_RUNNING);
	hv_event_clear(&event);
}
END_TEST

START_TEST(a_job_is_told_and_no_target_is_set_while_it_runs)
{
	struct hv_event event;

	if (cannot(CONTRACT_JOB))
		return;
	open_host();
	subject->act(hv, CONTRACT_JOB, "web");
	event = ask(HV_STATS, "web");
	ck_assert_int_eq(event.error, 0);
	ck_assert(event.stats.job_known);
	ck_assert_int_eq(event.stats.job, HV_JOB_SNAPSHOT);
	hv_event_clear(&event);
	ck_assert_int_eq(error_of(HV_TARGET, "web"), -EBUSY);
	ck_assert_uint_ne(subject->target(hv, "web"), CONTRACT_MAXIMUM / 2);
	ck_assert_int_eq(error_of(HV_TARGET, "db"), 0);
	subject->act(hv, CONTRACT_JOB_END, "web");
	event = ask(HV_STATS, "web");
	ck_assert(event.stats.job_known);
	ck_assert_int_eq(event.stats.job, HV_JOB_NONE);
	hv_event_clear(&event);
	ck_assert_int_eq(error_of(HV_TARGET, "web"), 0);
	ck_assert_uint_eq(subject->target(hv, "web"), CONTRACT_MAXIMUM / 2);
}
END_TEST

/* What of the VM's process is known of such a limit. */
static uint64_t throttle_of(const char *vm)
{
	struct hv_event event = ask(HV_PROCESS, NULL);
	uint64_t throttle = 0;

	ck_assert_int_eq(event.error, 0);
	for (size_t i = 0; i < event.process.nr; i++)
		if (same(&event.process.vms[i].uuid, vm))
			throttle = event.process.vms[i].throttle;
	hv_event_clear(&event);
	return throttle;
}

START_TEST(a_limit_that_throttles_is_lifted_where_another_is_configured)
{
	if (cannot(CONTRACT_THROTTLE))
		return;
	open_host();
	subject->act(hv, CONTRACT_THROTTLE, "web");
	ck_assert_int_eq(error_of(HV_UNTHROTTLE, "web"), 0);
	ck_assert_uint_eq(throttle_of("web"), 0);
}
END_TEST

START_TEST(a_reboot_is_told)
{
	struct hv_event event;

	open_host();
	subject->act(hv, CONTRACT_REBOOT, "web");
	event = wait_for(HV_EVENT_REBOOTED);
	ck_assert(same(&event.uuid, "web"));
	ck_assert_uint_eq(event.token, 0);
	hv_event_clear(&event);
}
END_TEST

START_TEST(changed_metadata_is_told)
{
	struct hv_event event;

	open_host();
	subject->act(hv, CONTRACT_CHANGE, "db");
	event = wait_for(HV_EVENT_CHANGED);
	ck_assert(same(&event.uuid, "db"));
	ck_assert_uint_eq(event.token, 0);
	hv_event_clear(&event);
}
END_TEST

START_TEST(a_balloon_that_moved_is_told_with_its_last_value)
{
	uint64_t actual;

	open_host();
	subject->act(hv, CONTRACT_BALLOON, "web");
	do {
		struct hv_event event = wait_for(HV_EVENT_BALLOON);

		ck_assert(same(&event.uuid, "web"));
		ck_assert_uint_eq(event.token, 0);
		actual = event.actual;
		hv_event_clear(&event);
	} while (!at(actual, less()));
}
END_TEST

START_TEST(a_lost_connection_is_told_and_calls_fail_until_it_is_there_again)
{
	struct hv_event event;

	open_host();
	subject->act(hv, CONTRACT_BREAK, NULL);
	event = wait_for(HV_EVENT_DOWN);
	ck_assert_uint_eq(event.token, 0);
	hv_event_clear(&event);
	ck_assert_int_eq(error_of(HV_LIST, NULL), -ENOTCONN);
	ck_assert_int_eq(error_of(HV_STATS, "web"), -ENOTCONN);
	ck_assert_int_eq(error_of(HV_TARGET, "web"), -ENOTCONN);
	subject->act(hv, CONTRACT_MEND, NULL);
	event = wait_for(HV_EVENT_UP);
	hv_event_clear(&event);
	ck_assert_int_eq(error_of(HV_LIST, NULL), 0);
	ck_assert_int_eq(error_of(HV_TARGET, "web"), 0);
}
END_TEST

int contract_run(const struct contract_subject *of)
{
	Suite *suite = suite_create("contract");
	TCase *tests = tcase_create(of->backend->name);

	subject = of;
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, the_table_is_complete);
	tcase_add_test(tests, a_uri_is_its_own_or_refused);
	tcase_add_test(tests, close_takes_null);
	tcase_add_test(tests, up_is_the_first_event);
	tcase_add_test(tests, an_event_that_was_cleared_is_none_and_may_be_cleared_again);
	tcase_add_test(tests, the_descriptor_is_readable_while_events_are_there);
	tcase_add_test(tests, close_with_calls_out_waits_for_nothing);
	tcase_add_test(tests, every_call_is_answered_once_with_its_token_and_type);
	tcase_add_test(tests, no_answer_is_lost_among_many);
	tcase_add_test(tests, a_call_is_copied_and_its_token_may_be_anything);
	tcase_add_test(tests, a_call_that_is_none_is_refused_and_changes_nothing);
	tcase_add_test(tests, a_vm_that_is_not_there_is_an_error_and_no_payload);
	tcase_add_test(tests, running_vms_are_listed_with_name_and_state);
	tcase_add_test(tests, a_description_has_name_maximum_balloon_and_no_knobs_that_nobody_set);
	tcase_add_test(tests, statistics_say_actual_and_nothing_that_was_not_told);
	tcase_add_test(tests, a_period_is_set_live);
	tcase_add_test(tests, a_target_is_set_and_its_ceiling_recorded);
	tcase_add_test(tests, a_ceiling_that_changes_is_recorded_anew);
	tcase_add_test(tests, a_port_for_an_agent_is_added_once_or_cannot_be_added_at_all);
	tcase_add_test(tests, knobs_that_are_written_are_described_and_others_stay);
	tcase_add_test(tests, min_over_max_is_refused_and_nothing_of_it_written);
	tcase_add_test(tests, changed_metadata_is_told);
	tcase_add_test(tests, a_balloon_that_moved_is_told_with_its_last_value);
	if (!of->real) {
		tcase_add_test(tests, a_vm_that_hangs_costs_the_others_nothing);
		tcase_add_test(tests, a_reboot_is_told);
		tcase_add_test(tests, a_vm_that_was_renamed_is_the_same_under_its_new_name);
		tcase_add_test(tests, a_vm_that_was_started_anew_is_told_and_takes_calls_again);
		tcase_add_test(tests, a_vm_that_is_paused_is_listed_so_until_it_goes_on);
		tcase_add_test(tests, a_job_is_told_and_no_target_is_set_while_it_runs);
		tcase_add_test(tests, a_limit_that_throttles_is_lifted_where_another_is_configured);
		tcase_add_test(
			tests, a_lost_connection_is_told_and_calls_fail_until_it_is_there_again);
	}
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}
