/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Agents in guests: what they report, and who is asked to free memory before the balloon takes it.
 *
 * A target that cuts a VM whose agent can reclaim is held back until the agent has freed what the
 * balloon will take, or has had its time; everything else goes as if there were none. A report
 * counts for a few seconds: a silent agent is none.
 */
#include <config.h>

#include "hv/core_internal.h"

#include <errno.h>
#include <string.h>

#include "common/size.h"

/* The balloon takes what is free, down to the kernel's watermarks: a 64th lies well above them. */
#define ROOM_FRACTION 64

bool core_agent_fresh(const struct core_vm *vm, uint64_t now)
{
	return vm->agent.connected && (vm->agent.known & HV_AGENT_REPORT) &&
	       now - vm->agent_at < CORE_AGENT_SILENT_US;
}

/* ---- reports ---- */

static void say_changes(struct core *core, struct core_vm *vm, const struct hv_agent *agent)
{
	if (agent->connected != vm->agent.connected)
		core_say(core, CORE_LOG_INFO, vm,
			agent->connected ? "its agent is there: %s" : "its agent has gone%s",
			agent->connected ? agent->software : "");
	/* A guest that makes faults all the time is told of once; status counts them. */
	if (agent->faults && !vm->said_agent_fault)
		core_say(core, CORE_LOG_WARNING, vm, "its agent is at fault: %s", agent->fault);
	vm->said_agent_fault |= agent->faults > 0;
}

void core_agent_event(
	struct core *core, struct core_vm *vm, uint64_t now, const struct hv_agent *agent)
{
	say_changes(core, vm, agent);
	vm->agent = *agent;
	if (agent->known & HV_AGENT_REPORT)
		vm->agent_at = now;
	core_vm_assess(core, vm, now);
}

void core_agent_attrs(struct core_vm *vm, uint64_t now)
{
	bool fresh = core_agent_fresh(vm, now);

	vm->attrs.agent = (vm->has_stats && (vm->stats.known & HV_STAT_LISTS)) ||
			  (fresh && (vm->agent.known & HV_AGENT_LISTS));
	vm->attrs.agent_floor = 0;
	if (fresh && (vm->agent.known & HV_AGENT_FLOOR) &&
		!core_pages_up(vm->agent.floor, &vm->attrs.agent_floor))
		vm->attrs.agent_floor = 0;
	/* What no guest can need: the engine takes less as well. */
	vm->attrs.agent_floor = pages_min(vm->attrs.agent_floor, vm->attrs.maximum);
}

/*
 * A guest that says it lacks memory has none to give, where it is not in excess: then it is fed,
 * as one that shows so in its statistics. One in excess is not spared for what it says.
 */
static bool needs(const struct core *core, const struct core_vm *vm)
{
	struct engine_view view;

	return vm->agent.need && vm->told.id &&
	       engine_view(core->engine, vm->told.id, &view) == 0 && !view.excess &&
	       !view.excess_via;
}

void core_agent_sample(
	const struct core *core, const struct core_vm *vm, uint64_t now, struct vm_sample *sample)
{
	if (!core_agent_fresh(vm, now))
		return;
	if (vm->agent.known & HV_AGENT_LISTS)
		core_put_lists(sample, &vm->agent.lists);
	if (vm_knows(sample, VM_USABLE) && needs(core, vm))
		sample->usable = 0;
}

/* ---- targets that wait for an agent ---- */

static void leave(struct core *core, struct core_vm *vm)
{
	DL_DELETE2(core->held, vm, held_prev, held_next);
	vm->held.active = vm->held.wanted = false;
	vm->held.token = 0;
}

static void release(struct core *core, struct core_vm *vm)
{
	leave(core, vm);
	lane_want_target(&vm->lane, vm->held.seq, vm->held.target, vm->held.ceiling);
	core_vm_ready(core, vm);
}

void core_agent_drop(struct core *core, struct core_vm *vm)
{
	if (vm->held.active)
		leave(core, vm);
}

/* What is to become free in the guest beyond what is, for the balloon to take; bytes. */
static uint64_t to_free(const struct core_vm *vm, uint64_t target)
{
	uint64_t take, free = 0;

	if (!vm->actual_known || vm->actual <= target)
		return 0;
	take = vm->actual - target + core_bytes(vm->attrs.maximum) / ROOM_FRACTION;
	if (vm->agent.known & HV_AGENT_FREE)
		free = vm->agent.free;
	return pages_sub(take, free);
}

bool core_agent_hold(struct core *core, struct core_vm *vm, const struct engine_action *action)
{
	uint64_t now = core->now, target = core_bytes(action->target);
	uint64_t bytes = to_free(vm, target);
	bool cut = action->reason.type == ENGINE_CUT;

	if (!cut || !vm->agent.reclaims || !core_agent_fresh(vm, now) ||
		now < vm->agent_not_before || (!vm->held.active && !bytes)) {
		core_agent_drop(core, vm);
		return false;
	}
	vm->held.seq = action->seq;
	vm->held.target = target;
	vm->held.ceiling = core_bytes(action->ceiling);
	lane_drop_target(&vm->lane); /* one of before, which this one takes the place of */
	core_vm_ready(core, vm);
	if (vm->held.active)
		return true; /* it is asked already; the rest comes with the next target */
	vm->held.active = vm->held.wanted = true;
	vm->held.deadline = now + CORE_AGENT_ASK_US;
	vm->held.bytes = bytes;
	vm->held.anon = vm->attrs.guest_swap;
	vm->held.actively = action->reason.step % 2 == 0;
	DL_APPEND2(core->held, vm, held_prev, held_next);
	return true;
}

void core_agent_expire(struct core *core, uint64_t now)
{
	struct core_vm *vm, *next;

	DL_FOREACH_SAFE2(core->held, vm, next, held_next)
	{
		if (now < vm->held.deadline)
			continue;
		if (!vm->held.wanted) /* it was asked, and has not answered */
			vm->agent_not_before = now + CORE_AGENT_PAUSE_US;
		release(core, vm);
	}
}

uint64_t core_agent_due(const struct core *core)
{
	uint64_t due = CORE_NEVER;
	struct core_vm *vm;

	DL_FOREACH2(core->held, vm, held_next)
	{
		if (vm->held.wanted)
			return 0;
		if (vm->held.deadline < due)
			due = vm->held.deadline;
	}
	return due;
}

void core_agent_collect(struct core *core, size_t *nr)
{
	struct core_vm *vm;
	size_t asked = 0;

	DL_FOREACH2(core->held, vm, held_next)
	{
		if (!vm->held.wanted || asked == CORE_AGENT_CALLS)
			continue;
		asked++;
		vm->held.wanted = false;
		vm->held.token = core->next_token++;
		core->calls[(*nr)++] = (struct hv_call){ .type = HV_RECLAIM,
			.token = vm->held.token,
			.uuid = vm->uuid,
			.bytes = vm->held.bytes,
			.deadline_ms = CORE_AGENT_TOLD_MS,
			.anon = vm->held.anon,
			.active = vm->held.actively };
	}
}

static struct core_vm *find(const struct core *core, uint64_t token)
{
	struct core_vm *vm;

	DL_FOREACH2(core->held, vm, held_next)
	if (vm->held.token == token)
		return vm;
	return NULL;
}

bool core_agent_answer(struct core *core, const struct hv_event *event)
{
	struct core_vm *vm = find(core, event->token);
	char came[SIZE_TEXT], wanted[SIZE_TEXT];

	if (!vm)
		return false;
	if (event->error == 0) {
		core_say(core, CORE_LOG_DEBUG, vm, "its agent freed %s of %s",
			size_format(event->came, came, sizeof(came)),
			size_format(vm->held.bytes, wanted, sizeof(wanted)));
		vm->agent_freed += pages_min(event->came, vm->held.bytes);
	} else {
		vm->agent_not_before = core->now + CORE_AGENT_PAUSE_US;
	}
	release(core, vm);
	return true;
}

void core_agent_not_submitted(struct core *core, const struct hv_call *call)
{
	struct core_vm *vm = find(core, call->token);

	if (vm)
		release(core, vm);
}
