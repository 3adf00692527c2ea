/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ballastctl release --direct: without the daemon. Every VM's ceiling stands in its live metadata,
 * so that whoever can reach the hypervisor can give it back. One call a VM is out at a time; one
 * that does not answer is left behind, and named.
 */
#include <config.h>

#include "tools/direct.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Calls that are out: a backend has eight workers. */
#define WINDOW 8

struct direct_vm {
	struct hv_uuid uuid;
	char *name;
	uint64_t ceiling;
	enum { WANT_INFO, WAIT_INFO, WANT_TARGET, WAIT_TARGET, OVER } state;
};

struct direct {
	const struct direct_params *params;
	struct hv *hv;
	struct direct_vm *vms;
	size_t nr_vms;
	uint64_t deadline; /* moved on by every answer */
	struct direct_result result;
};

#define LIST_TOKEN 1
#define FIRST_VM   2

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void say(const struct direct *direct, const char *vm, const char *what)
{
	direct->params->say(direct->params->ctx, vm, what);
}

static bool is_meant(const struct direct *direct, const struct hv_listed *vm)
{
	struct hv_uuid uuid;

	if (!direct->params->vm)
		return true;
	if (hv_uuid_parse(direct->params->vm, &uuid) == 0 && hv_uuid_equal(&uuid, &vm->uuid))
		return true;
	return !strcmp(vm->name, direct->params->vm);
}

static int take_list(struct direct *direct, const struct hv_event *event)
{
	if (event->error)
		return event->error;
	direct->vms = calloc(event->listed.nr + 1, sizeof(*direct->vms));
	if (!direct->vms)
		return -ENOMEM;
	for (size_t i = 0; i < event->listed.nr; i++) {
		const struct hv_listed *listed = &event->listed.vms[i];
		struct direct_vm *vm = &direct->vms[direct->nr_vms];

		if (listed->state == HV_OFF || !is_meant(direct, listed))
			continue;
		vm->uuid = listed->uuid;
		vm->name = strdup(listed->name);
		if (!vm->name)
			return -ENOMEM;
		direct->nr_vms++;
	}
	if (direct->params->vm && direct->nr_vms == 0)
		return -ENOENT;
	return direct->params->vm && direct->nr_vms > 1 ? -EEXIST : 0;
}

static void take_vm(struct direct *direct, struct direct_vm *vm, const struct hv_event *event)
{
	if (event->error) {
		say(direct, vm->name, event->message ? event->message : strerror(-event->error));
		direct->result.failed++;
		vm->state = OVER;
	} else if (vm->state == WAIT_INFO) {
		vm->ceiling = event->info.ceiling;
		vm->state = vm->ceiling && event->info.balloon ? WANT_TARGET : OVER;
		direct->result.untouched += vm->state == OVER;
	} else {
		direct->result.released++;
		vm->state = OVER;
	}
}

static int take_event(struct direct *direct, const struct hv_event *event)
{
	struct direct_vm *vm;

	if (event->type >= HV_EVENT_CHANGED || event->token == 0)
		return event->type == HV_EVENT_DOWN && event->message ? -ENOTCONN : 0;
	direct->deadline = now_us() + direct->params->patience_us;
	if (event->token == LIST_TOKEN)
		return direct->vms ? 0 : take_list(direct, event);
	if (event->token - FIRST_VM >= direct->nr_vms)
		return 0;
	vm = &direct->vms[event->token - FIRST_VM];
	if (vm->state == WAIT_INFO || vm->state == WAIT_TARGET)
		take_vm(direct, vm, event);
	return 0;
}

/* True: somebody waits, or has something to be called. */
static bool submit(struct direct *direct)
{
	size_t out = 0, left = 0;

	for (size_t i = 0; i < direct->nr_vms; i++)
		out += direct->vms[i].state == WAIT_INFO || direct->vms[i].state == WAIT_TARGET;
	for (size_t i = 0; i < direct->nr_vms; i++) {
		struct direct_vm *vm = &direct->vms[i];
		bool target = vm->state == WANT_TARGET;
		struct hv_call call = { .type = target ? HV_TARGET : HV_INFO,
			.token = FIRST_VM + i,
			.uuid = vm->uuid,
			.target = vm->ceiling,
			.ceiling = vm->ceiling };

		left += vm->state != OVER;
		if ((!target && vm->state != WANT_INFO) || out == WINDOW)
			continue;
		if (direct->params->backend->submit(direct->hv, &call) < 0)
			continue; /* when one returns */
		vm->state = target ? WAIT_TARGET : WAIT_INFO;
		out++;
	}
	return left > 0;
}

/* Events until there are none; 1: the first UP came. */
static int take_events(struct direct *direct, bool *ret_up)
{
	struct hv_event event;
	int r = 0;

	while (r == 0 && direct->params->backend->next(direct->hv, &event) > 0) {
		*ret_up |= event.type == HV_EVENT_UP;
		r = take_event(direct, &event);
		hv_event_clear(&event);
	}
	return r;
}

static void wait(const struct direct *direct)
{
	struct pollfd fd = { .fd = direct->params->backend->fd(direct->hv), .events = POLLIN };

	poll(&fd, 1, fd.fd < 0 ? 10 : 100);
}

static int run(struct direct *direct)
{
	const struct hv_call list = { .type = HV_LIST, .token = LIST_TOKEN };
	bool up = false, asked = false;
	int r;

	direct->deadline = now_us() + direct->params->patience_us;
	while (now_us() < direct->deadline) {
		r = take_events(direct, &up);
		if (r < 0)
			return r;
		if (up && !asked) {
			r = direct->params->backend->submit(direct->hv, &list);
			if (r < 0)
				return r;
			asked = true;
		}
		if (direct->vms && !submit(direct))
			return 0;
		wait(direct);
	}
	if (!direct->vms)
		return -ETIMEDOUT;
	for (size_t i = 0; i < direct->nr_vms; i++) {
		if (direct->vms[i].state == OVER)
			continue;
		say(direct, direct->vms[i].name, "does not answer");
		direct->result.failed++;
	}
	return 0;
}

int direct_release(const struct direct_params *params, struct direct_result *ret_result)
{
	const struct hv_params at = { .uri = params->uri, .proc = "/proc" };
	struct direct direct = { .params = params };
	struct hv *hv;
	int r;

	r = params->backend->open(&at, &hv);
	if (r < 0)
		return r;
	direct.hv = hv;
	r = run(&direct);
	params->backend->close(hv);
	for (size_t i = 0; i < direct.nr_vms; i++)
		free(direct.vms[i].name);
	free(direct.vms);
	if (r == 0)
		*ret_result = direct.result;
	return r;
}
