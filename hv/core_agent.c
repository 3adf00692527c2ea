/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Agents in guests: what they report, and who is asked to free memory before the balloon takes it.
 *
 * A target that cuts a VM whose agent can reclaim is held back until the agent has freed what the
 * balloon will take, or has had its time; everything else goes as if there were none. Where what is
 * free in a guest is the host's by itself, the engine asks the agent alone (reason.inside): then
 * its answer is what a target's call that returned is. A report counts for a few seconds: a silent
 * agent is none.
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

	vm->attrs.agent =
		fresh && (vm->agent.known & (HV_AGENT_LISTS | HV_AGENT_COLD | HV_AGENT_FLOOR));
	vm->attrs.reports = fresh && vm->agent.reclaims && vm->reporting;
	vm->attrs.agent_floor = 0;
	if (fresh && (vm->agent.known & HV_AGENT_FLOOR) &&
		!core_pages_up(vm->agent.floor, &vm->attrs.agent_floor))
		vm->attrs.agent_floor = 0;
	/* What no guest can need: the engine takes less as well. */
	vm->attrs.agent_floor = pages_min(vm->attrs.agent_floor, vm->attrs.maximum);
}

/* All of them, or nothing of it. */
static void put_lists(struct vm_sample *sample, const struct hv_lists *lists)
{
	struct vm_lists pages;

	if (!core_pages_down(lists->active_anon, &pages.active_anon) ||
		!core_pages_down(lists->inactive_anon, &pages.inactive_anon) ||
		!core_pages_down(lists->active_file, &pages.active_file) ||
		!core_pages_down(lists->inactive_file, &pages.inactive_file) ||
		!core_pages_down(lists->swap_free, &pages.swap_free))
		return;
	sample->known |= VM_LISTS;
	sample->lists = pages;
}

void core_agent_sample(const struct core_vm *vm, uint64_t now, struct vm_sample *sample)
{
	uint64_t need, refaults;

	if (!core_agent_fresh(vm, now))
		return;
	if (vm->agent.known & (HV_AGENT_LISTS | HV_AGENT_COLD))
		put_lists(sample, &vm->agent.lists);
	if (!core_pages_up(vm->agent.need, &need) ||
		!core_pages_down(vm->agent.refaults, &refaults))
		return;
	sample->known |= VM_LACKS;
	sample->need = need;
	sample->refaults = refaults;
}

/* ---- targets that wait for an agent ---- */

static void leave(struct core *core, struct core_vm *vm)
{
	DL_DELETE2(core->held, vm, held_prev, held_next);
	vm->held.active = vm->held.wanted = false;
	vm->held.token = 0;
}

/* What the engine is told of what was the agent's alone. */
static void told_inside(struct core *core, struct core_vm *vm, int error)
{
	vm->lane.want_stats = true;
	core_vm_ready(core, vm);
	if (error) {
		vm->has_result = true;
		vm->result =
			(struct engine_result){ .id = vm->id, .seq = vm->held.seq, .error = error };
		core_vm_dirty(core, vm);
		return;
	}
	/* As with a target: a figure counts as read after it from now on. */
	if (vm->lane.applied_seq < vm->held.seq)
		vm->lane.applied_seq = vm->held.seq;
	vm->process_mark = core->process_nr;
}

/* It did not come to an answer, or to a bad one. */
static void release(struct core *core, struct core_vm *vm, int error)
{
	leave(core, vm);
	if (vm->held.inside) {
		told_inside(core, vm, error);
		return;
	}
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
	uint64_t take, free = 0, usage = core_vm_usage(vm), room;

	if (!vm->actual_known || vm->actual <= target)
		return 0;
	/* A small ask does not cost the guest many times what it brings. */
	room = core_bytes(vm->attrs.maximum) / ROOM_FRACTION;
	if (usage != UINT64_MAX)
		room = pages_min(room, pages_sub(usage, target));
	take = vm->actual - target + room;
	if (vm->agent.known & HV_AGENT_FREE)
		free = vm->agent.free;
	return pages_sub(take, free);
}

static bool may_be_asked(const struct core_vm *vm, uint64_t now)
{
	return vm->agent.reclaims && core_agent_fresh(vm, now) && now >= vm->agent_not_before;
}

static void ask(
	struct core *core, struct core_vm *vm, uint64_t bytes, const struct engine_action *action)
{
	vm->held.active = vm->held.wanted = true;
	vm->held.deadline = core->now + CORE_AGENT_ASK_US;
	vm->held.bytes = bytes;
	vm->held.more = 0;
	vm->held.anon = vm->attrs.guest_swap;
	vm->held.actively = action->reason.step % 2 == 0;
	DL_APPEND2(core->held, vm, held_prev, held_next);
}

bool core_agent_hold(struct core *core, struct core_vm *vm, const struct engine_action *action)
{
	uint64_t now = core->now, target = core_bytes(action->target);
	uint64_t bytes = to_free(vm, target);
	bool cut = action->reason.type == ENGINE_CUT;

	if (vm->held.inside)
		core_agent_drop(core, vm); /* its balloon is turned now */
	vm->held.inside = false;
	if (!cut || !may_be_asked(vm, now) || (!vm->held.active && !bytes)) {
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
	ask(core, vm, bytes, action);
	return true;
}

/* Less is to be freed than was told: what was not asked of the agent yet. */
static void ask_less(struct core *core, struct core_vm *vm, uint64_t bytes)
{
	uint64_t part = pages_min(bytes, vm->held.more);

	vm->held.more -= part;
	if (!vm->held.active || !vm->held.wanted)
		return;
	vm->held.bytes -= pages_min(bytes - part, vm->held.bytes);
	if (!vm->held.bytes)
		leave(core, vm);
}

void core_agent_inside(struct core *core, struct core_vm *vm, const struct engine_action *action)
{
	const struct engine_reason *r = &action->reason;
	uint64_t bytes = core_bytes(pages_sub(r->from, r->to));

	/* The engine waits for the last target; one that is to be no more is told as such. */
	if (!vm->held.inside)
		core_vm_drop_target(core, vm, -ECANCELED);
	vm->held.inside = true;
	vm->held.seq = action->seq;
	if (!bytes)
		ask_less(core, vm, core_bytes(r->to - r->from));
	else if (vm->held.active && vm->held.wanted)
		vm->held.bytes += bytes;
	else if (vm->held.active)
		vm->held.more += bytes;
	else if (may_be_asked(vm, core->now))
		ask(core, vm, bytes, action);
	else
		told_inside(core, vm, -ETIMEDOUT);
	if (!bytes && !vm->held.active)
		told_inside(core, vm, 0); /* nothing is waited for */
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
		release(core, vm, -ETIMEDOUT);
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

/* Nearly all of it: what is told to come is never quite that. */
static bool enough(const struct core_vm *vm, const struct hv_event *event)
{
	return event->came >= vm->held.bytes - vm->held.bytes / 8;
}

/* Asks for what came to be asked meanwhile; false: nothing did. */
static bool ask_more(struct core *core, struct core_vm *vm)
{
	if (!vm->held.inside || !vm->held.more)
		return false;
	vm->held.bytes = vm->held.more;
	vm->held.more = 0;
	vm->held.token = 0;
	vm->held.wanted = true;
	vm->held.deadline = core->now + CORE_AGENT_ASK_US;
	return true;
}

bool core_agent_answer(struct core *core, const struct hv_event *event)
{
	struct core_vm *vm = find(core, event->token);
	char came[SIZE_TEXT], wanted[SIZE_TEXT];
	int error = event->error;

	if (!vm)
		return false;
	if (event->error == 0) {
		core_say(core, CORE_LOG_DEBUG, vm, "its agent freed %s of %s",
			size_format(event->came, came, sizeof(came)),
			size_format(vm->held.bytes, wanted, sizeof(wanted)));
		vm->agent_freed += pages_min(event->came, vm->held.bytes);
		if (enough(vm, event) && ask_more(core, vm))
			return true;
		error = enough(vm, event) ? 0 : -ENODATA;
	} else {
		vm->agent_not_before = core->now + CORE_AGENT_PAUSE_US;
	}
	release(core, vm, error);
	return true;
}

void core_agent_not_submitted(struct core *core, const struct hv_call *call)
{
	struct core_vm *vm = find(core, call->token);

	if (vm)
		release(core, vm, -EAGAIN);
}
