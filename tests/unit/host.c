/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "tests/unit/host.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host host;

static const struct hv_backend backend = {
	.name = "scripted", .loosens = true, .granule = 1u << 20
};

static void keep_line(void *ctx, const struct core_line *line)
{
	bool in_core = fake.in_core;

	fake.in_core = false;
	ck_assert((line->vm == NULL) == (line->name == NULL));
	ck_assert_uint_lt(host.nr_lines, HOST_LINES);
	if (line->level != CORE_LOG_DEBUG) {
		host.kinds[host.nr_lines] = line->message_id;
		host.actions[host.nr_lines] = line->action;
		snprintf(host.lines[host.nr_lines++], sizeof(host.lines[0]), "%s: %s",
			line->name ? line->name : "", line->text);
	}
	fake.in_core = in_core;
}

unsigned int host_said(const char *text)
{
	unsigned int nr = 0;

	for (size_t i = 0; i < host.nr_lines; i++)
		nr += strstr(host.lines[i], text) != NULL;
	return nr;
}

void host_setup(void)
{
	fake_reset();
	memset(&host, 0, sizeof(host));
	host.now = 1000 * SECOND;
	host.total = 64 * GIB;
	host.available = 32 * GIB;
	core_config_default(&host.config);
	host.config.engine.act = true;
	host.config.log = keep_line;
}

void host_teardown(void)
{
	core_free(host.core);
	host.core = NULL;
}

struct host_vm *host_vm(unsigned int i)
{
	struct host_vm *vm = &host.vms[i];

	*vm = (struct host_vm){
		.there = true,
		.uuid = { { (uint8_t)(i + 1) } },
		.state = HV_RUNNING,
		.maximum = GIB,
		.period_s = 1,
		.actual = GIB,
		.usable = 512 * MIB,
		.resident = 700 * MIB,
		.balloon = true,
		.driver = true,
		.last_update = 5,
		.process = true,
	};
	snprintf(vm->name, sizeof(vm->name), "vm%02u", i);
	return vm;
}

void host_gone(unsigned int i)
{
	host.vms[i].there = false;
}

static struct host_vm *find(const struct hv_uuid *uuid)
{
	for (unsigned int i = 0; i < HOST_VMS; i++)
		if (hv_uuid_equal(&host.vms[i].uuid, uuid))
			return &host.vms[i];
	ck_abort_msg("a call for nobody");
	return NULL;
}

/* The event stays ours, as with the shell. */
static void hand_over(const struct hv_event *event)
{
	fake.in_core = true;
	core_event(host.core, host.now, event);
	fake.in_core = false;
}

static void deliver(struct hv_event *event)
{
	hand_over(event);
	hv_event_clear(event);
}

static char *copy(const char *text)
{
	size_t size = text ? strlen(text) + 1 : 0;
	char *p = text ? malloc(size) : NULL;

	return p ? memcpy(p, text, size) : NULL;
}

static void answer_list(const struct hv_call *call)
{
	struct hv_event event = {
		.type = HV_EVENT_LISTED, .token = call->token, .error = host.list_error
	};

	if (!event.error)
		event.listed.vms = calloc(HOST_VMS, sizeof(*event.listed.vms));
	for (int i = HOST_VMS - 1; i >= 0 && !event.error; i--) {
		const struct host_vm *vm = &host.vms[i];

		if (vm->there)
			event.listed.vms[event.listed.nr++] = (struct hv_listed){
				.uuid = vm->uuid,
				.name = copy(vm->name),
				.state = vm->state,
				.job = vm->listed_job,
			};
	}
	deliver(&event);
}

static void answer_process(const struct hv_call *call)
{
	struct hv_event event = {
		.type = HV_EVENT_PROCESS, .token = call->token, .error = host.process_error
	};

	if (!event.error)
		event.process.vms = calloc(HOST_VMS, sizeof(*event.process.vms));
	for (int i = 0; i < HOST_VMS && !event.error; i++) {
		const struct host_vm *vm = &host.vms[i];

		if (vm->there && vm->process)
			event.process.vms[event.process.nr++] = (struct hv_process){
				.uuid = vm->uuid,
				.known = true,
				.swap_known = true,
				.resident = vm->resident,
				.overhead = 30 * MIB,
				.started = vm->started,
				.throttle = vm->throttle,
				.throttled = vm->throttled,
			};
	}
	deliver(&event);
}

static void answer_host(const struct hv_call *call)
{
	struct hv_event event = {
		.type = HV_EVENT_HOST,
		.token = call->token,
		.error = host.host_error,
		.host = { .known = true, .total = host.total, .available = host.available },
	};

	deliver(&event);
}

static void answer_info(struct host_vm *vm, struct hv_event *event)
{
	event->type = HV_EVENT_INFO;
	event->error = vm->info_error;
	if (event->error)
		return;
	event->info = (struct hv_info){
		.uuid = vm->uuid,
		.name = copy(vm->name),
		.maximum = vm->maximum,
		.ceiling = vm->ceiling,
		.balloon = vm->balloon,
		.reporting = vm->reporting,
		.kinds = vm->kinds,
		.stats_period_s = vm->period_s,
		.metadata = vm->metadata,
		.memtune = vm->memtune,
		.hard_limit = vm->hard_limit,
		.partition = copy(vm->partition),
		.problem = copy(vm->problem),
		.agent = copy(vm->port),
	};
	event->info.metadata.group = copy(vm->metadata.group);
}

static void answer_stats(struct host_vm *vm, struct hv_event *event)
{
	event->type = HV_EVENT_STATS;
	event->error = vm->error;
	if (event->error)
		return;
	if (vm->driver && vm->period_s > 0 && vm->state == HV_RUNNING)
		vm->last_update = host.now / SECOND;
	event->stats = (struct hv_stats){
		.known = HV_STAT_ACTUAL | HV_STAT_USABLE | HV_STAT_LAST_UPDATE,
		.actual = vm->actual,
		.usable = vm->usable,
		.last_update = vm->last_update,
		.job_known = true,
		.job = vm->job,
	};
	if (vm->free_only) {
		event->stats.known ^= HV_STAT_USABLE | HV_STAT_UNUSED;
		event->stats.unused = vm->usable;
	}
}

static void answer_vm(struct host_vm *vm, const struct hv_call *call)
{
	struct hv_event event = { .type = HV_EVENT_DONE, .token = call->token, .uuid = vm->uuid };

	switch (call->type) {
	case HV_INFO:
		answer_info(vm, &event);
		break;
	case HV_STATS:
		answer_stats(vm, &event);
		break;
	case HV_PERIOD:
		event.error = vm->period_error;
		if (!event.error)
			vm->period_s = call->period_s;
		break;
	case HV_ATTACH:
		event.error = vm->attach_error;
		break;
	case HV_UNTHROTTLE:
		event.error = vm->lift_error;
		if (!event.error)
			vm->throttle = 0;
		break;
	default:
		event.error = vm->target_error;
		if (event.error)
			break;
		vm->actual = call->target;
		vm->ceiling = call->ceiling;
		break;
	}
	vm->busy = false;
	host.out -= call->type != HV_INFO;
	deliver(&event);
}

static void serve_vm(const struct hv_call *call)
{
	struct host_vm *vm = find(&call->uuid);

	ck_assert_msg(!vm->busy, "a second call on top of one for %s", vm->name);
	vm->busy = true;
	if (call->type == HV_INFO && vm->calls[HV_INFO] < HOST_AGENTS)
		vm->agents[vm->calls[HV_INFO]] = call->agent;
	vm->calls[call->type]++;
	vm->last[call->type] = *call;
	host.out += call->type != HV_INFO; /* which is not of those that may hang */
	if (host.out > host.most_out)
		host.most_out = host.out;
	vm->held = *call;
	if (!vm->hangs && !(vm->slow_info && call->type == HV_INFO))
		answer_vm(vm, call);
}

void host_report(const struct host_vm *vm, const struct hv_agent *agent)
{
	struct hv_event event = { .type = HV_EVENT_AGENT, .uuid = vm->uuid, .agent = *agent };

	hand_over(&event);
}

void host_freed(struct host_vm *vm, int error, uint64_t bytes)
{
	struct hv_event event = { .type = HV_EVENT_DONE,
		.token = vm->asked.token,
		.uuid = vm->uuid,
		.error = error,
		.came = bytes };

	vm->asked.token = 0;
	hand_over(&event);
}

/* On a way of its own: beside whatever call is out. */
static void serve_agent(const struct hv_call *call)
{
	struct host_vm *vm = find(&call->uuid);

	vm->calls[call->type]++;
	vm->last[call->type] = vm->asked = *call;
	if (!vm->reads_nothing)
		host_freed(vm, 0, call->bytes);
}

static void serve(const struct hv_call *call)
{
	host.calls[call->type]++;
	ck_assert_uint_ne(call->token, 0);
	if (host.refuse) {
		host.refused++;
		core_not_submitted(host.core, call);
		return;
	}
	switch (call->type) {
	case HV_LIST:
		answer_list(call);
		break;
	case HV_PROCESS:
		ck_assert(!host.held_process.token);
		if (host.hold_process)
			host.held_process = *call;
		else
			answer_process(call);
		break;
	case HV_HOST:
		if (host.hold_host)
			host.held_host = *call;
		else
			answer_host(call);
		break;
	case HV_RECLAIM:
		serve_agent(call);
		break;
	default:
		serve_vm(call);
		break;
	}
}

void host_answer_process(void)
{
	struct hv_call call = host.held_process;

	ck_assert_uint_ne(call.token, 0);
	host.held_process.token = 0;
	host.hold_process = false;
	answer_process(&call);
}

void host_answer_host(void)
{
	struct hv_call call = host.held_host;

	ck_assert_uint_ne(call.token, 0);
	host.held_host.token = 0;
	host.hold_host = false;
	answer_host(&call);
}

void host_wake(struct host_vm *vm)
{
	vm->hangs = false;
	if (vm->busy)
		answer_vm(vm, &vm->held);
}

static size_t step_once(void)
{
	const struct hv_call *given;
	struct hv_call calls[32];
	size_t nr = 0;
	int r;

	fake.in_core = true;
	r = core_step(host.core, host.now, &given, &nr, &host.next);
	fake.in_core = false;
	ck_assert(r == 0 || r == -ENOMEM);
	ck_assert_uint_le(nr, 11);
	memcpy(calls, given, nr * sizeof(*calls));
	for (size_t i = 0; i < nr; i++)
		serve(&calls[i]);
	return nr;
}

void host_step(void)
{
	unsigned int rounds = 0;

	while (step_once() > 0)
		ck_assert_msg(++rounds < 200, "it never comes to rest");
}

void host_run(uint64_t us)
{
	uint64_t end = host.now + us;
	unsigned int rounds = 0;

	for (;;) {
		host_step();
		if (host.next > end)
			break;
		/* A deadline that has passed would be a loop without rest. */
		ck_assert_msg(host.next > host.now || ++rounds < 10, "a deadline in the past");
		host.now = host.next > host.now ? host.next : host.now;
	}
	host.now = end;
}

void host_event(enum hv_event_type type, const struct host_vm *vm)
{
	struct hv_event event = { .type = type };

	if (vm)
		event.uuid = vm->uuid;
	hand_over(&event);
}

void host_balloon(struct host_vm *vm, uint64_t actual)
{
	struct hv_event event = { .type = HV_EVENT_BALLOON, .uuid = vm->uuid, .actual = actual };

	vm->actual = actual;
	hand_over(&event);
}

void host_up(void)
{
	ck_assert_int_eq(core_new(&host.config, &backend, &host.core), 0);
	host_event(HV_EVENT_UP, NULL);
	host_run(100000);
}

uint64_t host_id(const struct host_vm *vm)
{
	char text[HV_UUID_TEXT];
	uint64_t id = 0;

	hv_uuid_format(&vm->uuid, text);
	core_find(host.core, text, &id);
	return id;
}

struct fake_item *host_item(const struct host_vm *vm)
{
	struct fake_item *item = fake_item(host_id(vm));

	ck_assert_msg(item != NULL, "%s is not known", vm->name);
	return item;
}

enum engine_vm_state host_state(const struct host_vm *vm)
{
	return host_item(vm)->state;
}

void host_target(const struct host_vm *vm, uint64_t seq, uint64_t bytes)
{
	fake.actions[fake.nr_actions++] = (struct engine_action){
		.id = host_id(vm),
		.seq = seq,
		.target = PAGES(bytes),
		.ceiling = PAGES(GIB),
		.reason = { .type = ENGINE_CUT,
			.root = MEMCG_ROOT_ID,
			.step = 1,
			.to = PAGES(bytes),
			.actual = PAGES(vm->actual) },
	};
}
