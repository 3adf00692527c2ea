/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which calls are submitted, and when. Listing, processes and host have a rhythm of their own and
 * never hang. VMs' calls share HV_MAX_HUNG places, those with a target first: any of them may hang,
 * and keeps its place then. With all of them hung no other VM's call is made until one returns.
 * Descriptions have the other places: they are the hypervisor's to give, and count for no VM.
 */
#include <config.h>

#include "hv/core_internal.h"

#include <errno.h>

struct core_slot *core_slot_find(struct core *core, uint64_t token)
{
	for (size_t i = 0; i < HV_WORKERS; i++)
		if (core->slots[i].token == token)
			return &core->slots[i];
	return NULL;
}

size_t core_hung(const struct core *core)
{
	size_t hung = 0;

	for (size_t i = 0; i < HV_WORKERS; i++)
		hung += core->slots[i].token && core->slots[i].vm->lane.late;
	return hung;
}

void core_check_lanes(struct core *core, uint64_t now)
{
	bool blocked;

	for (size_t i = 0; i < HV_WORKERS; i++) {
		struct core_vm *vm = core->slots[i].vm;

		if (!core->slots[i].token || !lane_check(&vm->lane, now, core->config.lane_us))
			continue;
		core_say_as(core, CORE_LOG_WARNING, vm, MESSAGE_NOT_ANSWERING, NULL,
			"is not answering: a call has not returned for %.1f s; it is left alone "
			"until it does",
			(double)(now - vm->lane.since) / 1e6);
		core_vm_drop_target(core, vm, -ETIMEDOUT);
		core_change_drop(core, vm,
			"the VM does not answer; what was sent may still be written later");
		core_vm_assess(core, vm, now);
	}
	blocked = core_hung(core) >= HV_MAX_HUNG;
	if (blocked && !core->said_hung)
		core_say(core, CORE_LOG_ERROR, NULL,
			"%d calls hang: no VM's balloon is read or set until one returns; look for "
			"stopped QEMU processes",
			HV_MAX_HUNG);
	if (!blocked && core->said_hung)
		core_say(core, CORE_LOG_NOTICE, NULL,
			"fewer than %d calls hang: balloons are read and set again", HV_MAX_HUNG);
	core->said_hung = blocked;
}

/* ---- when ---- */

static uint64_t at_least(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A reading that comes round every us, at once when woken, but not within pause of the last. */
static uint64_t reading_due(const struct core_reading *reading, uint64_t us, uint64_t pause)
{
	if (reading->token)
		return CORE_NEVER;
	if (!reading->ever)
		return 0;
	return reading->last + (reading->wake ? pause : us);
}

/* Faster where the pool is near its watermarks. */
static uint64_t rhythm(const struct core *core)
{
	const struct engine_pool_view *view = &core->view;

	return view->known && view->free < (int64_t)view->wm_high ? core->config.pool_fast_us
								  : core->config.pool_slow_us;
}

static uint64_t list_due(const struct core *core)
{
	uint64_t due;

	if (!core->connected)
		return CORE_NEVER;
	due = reading_due(&core->list, core->config.resync_us, CORE_LIST_PAUSE_US);
	if (due != CORE_NEVER && core->resync_due < due)
		due = core->resync_due;
	return at_least(due, core->retry_at);
}

static uint64_t process_due(const struct core *core)
{
	if (core->nr_vms == 0)
		return CORE_NEVER;
	return reading_due(&core->process,
		core->config.pool_host ? core->config.vm_us : rhythm(core),
		core->config.pool_fast_us);
}

static uint64_t host_due(const struct core *core)
{
	if (!core->config.pool_host)
		return CORE_NEVER;
	return reading_due(&core->host, rhythm(core), core->config.pool_fast_us);
}

/* Calls that are out: those of VMs, or descriptions, which may not hang and count apart. */
static size_t out(const struct core *core, bool info)
{
	size_t nr = 0;

	for (size_t i = 0; i < HV_WORKERS; i++)
		nr += core->slots[i].token != 0 &&
		      (core->slots[i].vm->lane.call.type == HV_INFO) == info;
	return nr;
}

/*
 * The first that may be called, those with a target first, and within a class in the order in which
 * they got ready. Hosts lose all their QEMUs in one moment, with the storage under them: all that
 * is out hangs.
 */
static struct core_vm *next_ready(const struct core *core)
{
	struct core_vm *vm = NULL;

	if (!core->connected)
		return NULL;
	if (out(core, true) < HV_WORKERS - HV_MAX_HUNG)
		vm = core->ready[CORE_READY_INFO_URGENT];
	if (!vm && out(core, false) < HV_MAX_HUNG)
		vm = core->ready[CORE_READY_URGENT];
	if (!vm && out(core, true) < HV_WORKERS - HV_MAX_HUNG)
		vm = core->ready[CORE_READY_INFO];
	if (!vm && out(core, false) < HV_MAX_HUNG)
		vm = core->ready[CORE_READY_NORMAL];
	return vm;
}

uint64_t core_calls_due(const struct core *core)
{
	uint64_t due = list_due(core), other = process_due(core);

	due = due < other ? due : other;
	other = host_due(core);
	due = due < other ? due : other;
	other = core_agent_due(core);
	due = due < other ? due : other;
	if (next_ready(core))
		due = 0;
	if (due != CORE_NEVER)
		due = at_least(due, core->not_before);

	for (size_t i = 0; i < HV_WORKERS; i++) {
		if (!core->slots[i].token)
			continue;
		other = lane_deadline(&core->slots[i].vm->lane, core->config.lane_us);
		due = due < other ? due : other;
	}
	if (core->due && core->due->due < due)
		due = core->due->due;
	return due;
}

/* ---- what ---- */

static void submit_reading(struct core *core, struct core_reading *reading, enum hv_call_type type,
	uint64_t now, size_t *nr)
{
	reading->token = core->next_token++;
	reading->ever = true;
	reading->last = now;
	reading->wake = false;
	core->calls[(*nr)++] = (struct hv_call){ .type = type, .token = reading->token };
}

static void submit_readings(struct core *core, uint64_t now, size_t *nr)
{
	if (list_due(core) <= now) {
		core->listing_all = core->resync_due <= now;
		if (core->listing_all)
			core->resync_due = now + core->config.resync_us;
		submit_reading(core, &core->list, HV_LIST, now, nr);
	}
	if (process_due(core) <= now) {
		core->process_nr++;
		submit_reading(core, &core->process, HV_PROCESS, now, nr);
	}
	if (host_due(core) <= now)
		submit_reading(core, &core->host, HV_HOST, now, nr);
}

static void submit_lanes(struct core *core, uint64_t now, size_t *nr)
{
	struct core_slot *slot;
	struct core_vm *vm;

	while ((slot = core_slot_find(core, 0)) && (vm = next_ready(core))) {
		if (lane_next(&vm->lane, now, core->next_token, &core->calls[*nr])) {
			*slot = (struct core_slot){
				.token = core->next_token++,
				.vm = vm,
				.life = vm->life,
				.id = vm->id,
			};
			(*nr)++;
		}
		core_vm_not_ready(core, vm);
	}
}

size_t core_collect_calls(struct core *core, uint64_t now)
{
	size_t nr = 0;

	if (now < core->not_before)
		return 0;
	submit_readings(core, now, &nr);
	submit_lanes(core, now, &nr);
	core_agent_collect(core, &nr);
	return nr;
}

void core_not_submitted(struct core *core, const struct hv_call *call)
{
	struct core_slot *slot = call->token ? core_slot_find(core, call->token) : NULL;
	struct core_reading *readings[] = { &core->list, &core->process, &core->host };

	core->not_before = core->now + core->config.tick_min_us;
	if (call->type == HV_RECLAIM)
		core_agent_not_submitted(core, call);
	if (slot) {
		slot->token = 0;
		lane_undo(&slot->vm->lane);
		core_vm_ready(core, slot->vm);
		core_vm_reap(core, slot->vm);
		return;
	}
	for (size_t i = 0; i < 3; i++) {
		if (!call->token || readings[i]->token != call->token)
			continue;
		readings[i]->token = 0;
		readings[i]->wake = true;
		if (call->type == HV_LIST && core->listing_all)
			core->resync_due = core->now;
	}
}
