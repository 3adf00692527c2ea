/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Agents in simulated guests: the agent's own core (guest-agent/agent.h), with a guest's memory
 * beneath it, and the host's own end of the way to it (hv/agent_channel.h). What is between them
 * is there at once; what reclaim takes is time of the agent's.
 */
#include <config.h>

#include "hv/sim/sim_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guest-agent/agent.h"
#include "hv/agent_channel.h"

/* Steps that take no time, before it is somebody else's turn. */
#define STEPS_MAX 16
/* As a PSI trigger would have it: so long has some task waited since it was told last. */
#define PRESSURE_US UINT64_C(100000)
/* All of the guest, as where nothing is put into groups. */
#define GROUP_ID 1

struct sim_agent {
	struct hv *hv;
	struct sim_guest *vm;
	bool up, silent;
	uint64_t at;	   /* its next step */
	uint64_t spent_us; /* by this step, beyond the host's time */
	uint64_t pressure_us;
	uint64_t token; /* of the call that is out; 0: none */
	struct agent agent;
	struct agent_channel channel;
};

/* ---- the platform ---- */

static uint64_t platform_now(void *ctx)
{
	const struct sim_agent *a = ctx;

	return a->hv->now + a->spent_us;
}

static int platform_guest(void *ctx, struct agent_guest *ret_guest)
{
	const struct sim_agent *a = ctx;
	const struct guest *guest = &a->vm->guest;
	struct guest_stats stats;

	guest_stats_now(guest, &stats);
	*ret_guest = (struct agent_guest){ .total = stats.total,
		.free = stats.unused,
		.available = stats.usable,
		.active_anon = stats.lists[MEMORY_ACTIVE_ANON],
		.inactive_anon = stats.lists[MEMORY_INACTIVE_ANON],
		.active_file = stats.lists[MEMORY_ACTIVE_FILE],
		.inactive_file = stats.lists[MEMORY_INACTIVE_FILE],
		.swap_free = guest->params.swap - stats.swapped,
		.refaults = guest->memory.refaults,
		.swapins = guest->swap_in,
		.psi_some_us = guest->pressure_us };
	return 0;
}

static size_t platform_groups(void *ctx, struct agent_group *ret_groups, size_t nr)
{
	const struct sim_agent *a = ctx;
	const struct memory *m = &a->vm->guest.memory;

	(void)nr; /* there is room for one */
	*ret_groups = (struct agent_group){ .id = GROUP_ID,
		.name = "/",
		.current = memory_used(m),
		.active_anon = m->sums[MEMORY_ACTIVE_ANON],
		.inactive_anon = m->sums[MEMORY_INACTIVE_ANON],
		.active_file = m->sums[MEMORY_ACTIVE_FILE],
		.inactive_file = m->sums[MEMORY_INACTIVE_FILE],
		.refaults = m->refaults,
		.restores = m->restores + m->activated,
		.psi_some_us = a->vm->guest.pressure_us };
	return 1;
}

static int platform_reclaim(
	void *ctx, const struct agent_group *group, uint64_t bytes, bool anon, uint64_t *ret_came)
{
	struct sim_agent *a = ctx;
	uint64_t came = guest_free_inside(&a->vm->guest, bytes, anon);

	(void)group;
	a->hv->guests_at = 0;
	a->spent_us += came / (a->vm->guest.params.freed / SIM_US_PER_S + 1);
	*ret_came = came;
	return came < bytes ? -EAGAIN : 0;
}

static int platform_send(void *ctx, const char *text, size_t length)
{
	struct sim_agent *a = ctx;

	agent_channel_input(&a->channel, platform_now(ctx), text, length);
	return 0;
}

static const struct agent_platform platform = {
	.software = "ballast-agent " PACKAGE_VERSION " sim",
	.can = PROTOCOL_CAN_LISTS | PROTOCOL_CAN_RECLAIM | PROTOCOL_CAN_PRESSURE |
	       PROTOCOL_CAN_GROUPS | PROTOCOL_CAN_ANON,
	.now = platform_now,
	.guest = platform_guest,
	.groups = platform_groups,
	.reclaim = platform_reclaim,
	.send = platform_send,
};

/* ---- the host's end ---- */

static void tell(struct sim_agent *a)
{
	struct hv_event event;

	if (a->hv->up && agent_channel_news(&a->channel, &a->vm->uuid, &event))
		sim_tell(a->hv, &event);
}

static void answer(struct sim_agent *a)
{
	struct hv_event event = { .type = HV_EVENT_DONE, .token = a->token, .uuid = a->vm->uuid };

	if (!a->token || !agent_channel_answer(&a->channel, a->hv->now, &event.error, &event.came))
		return;
	a->token = 0;
	a->hv->nr_calls--;
	sim_tell(a->hv, &event);
}

static void connect_to(struct sim_agent *a)
{
	char text[PROTOCOL_MESSAGE_MAX + 3];
	size_t length = agent_channel_open(&a->channel, a->hv->now, text);

	agent_input(&a->agent, text, length);
}

/* ---- its life ---- */

int sim_agent_new(struct hv *hv, struct sim_guest *vm)
{
	struct sim_agent *a;

	if (!vm->guest.params.agent)
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->hv = hv;
	a->vm = vm;
	vm->agent = a;
	return 0;
}

void sim_agent_free(struct sim_guest *vm)
{
	free(vm->agent);
	vm->agent = NULL;
}

static bool runs(const struct sim_agent *a)
{
	const struct guest *guest = &a->vm->guest;

	return guest->state == GUEST_RUNNING && !guest->stopped && !a->silent;
}

void sim_agent_end(struct sim_guest *vm)
{
	struct sim_agent *a = vm->agent;

	if (!a)
		return;
	agent_channel_close(&a->channel);
	answer(a);
	tell(a);
	a->up = false;
	a->at = 0;
}

void sim_agent_silence(struct sim_guest *vm, bool silent)
{
	if (vm->agent)
		vm->agent->silent = silent;
}

void sim_agent_new_client(struct sim_guest *vm)
{
	struct sim_agent *a = vm->agent;

	if (!a || !a->up)
		return;
	a->token = 0; /* nobody waits for it */
	agent_channel_close(&a->channel);
	memset(&a->channel, 0, sizeof(a->channel));
	a->up = false;
	a->at = 0;
}

uint64_t sim_agent_next(const struct sim_guest *vm)
{
	const struct sim_agent *a = vm->agent;
	uint64_t next = SIM_NEVER, boots;

	if (!a)
		return next;
	if (runs(a)) {
		boots = vm->guest.driver_at == GUEST_NEVER ? 0 : vm->guest.driver_at;
		next = a->up ? a->at : boots;
	}
	if (a->token && a->channel.request.deadline < next)
		next = a->channel.request.deadline;
	return next;
}

void sim_agent_step(struct sim_guest *vm)
{
	struct sim_agent *a = vm->agent;
	uint64_t now;

	if (!a)
		return;
	now = a->hv->now;
	if (runs(a) && a->up && vm->guest.pressure_us - a->pressure_us >= PRESSURE_US) {
		a->pressure_us = vm->guest.pressure_us;
		agent_pressure(&a->agent);
		a->at = now;
	}
	if (sim_agent_next(vm) > now)
		return;
	a->spent_us = 0;
	if (runs(a) && !a->up) {
		a->up = true;
		a->pressure_us = vm->guest.pressure_us;
		agent_start(&a->agent, &platform, a);
		connect_to(a);
		a->at = now;
	}
	for (unsigned int i = 0; runs(a) && a->at <= now && i < STEPS_MAX; i++)
		a->at = agent_step(&a->agent);
	if (runs(a) && a->at <= now)
		a->at = now + GUEST_STEP_US;
	a->spent_us = 0;
	answer(a);
	tell(a);
}

int sim_agent_reclaim(struct sim_guest *vm, const struct hv_call *call)
{
	struct sim_agent *a = vm->agent;
	char text[PROTOCOL_MESSAGE_MAX + 2];
	size_t length;
	int r;

	if (!a)
		return -EOPNOTSUPP;
	r = agent_channel_reclaim(&a->channel, a->hv->now, call, text, &length);
	if (r < 0)
		return r;
	a->token = call->token;
	a->hv->guests_at = 0;
	if (!runs(a))
		return 0; /* it is in its socket, and nobody reads it */
	agent_input(&a->agent, text, length);
	a->at = a->hv->now;
	return 0;
}
