/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a backend told. An answer belongs to the call with its token, and to nothing else: what a
 * VM's call of an earlier life brings is dropped, and what comes without a call is no news.
 */
#include <config.h>

#include "hv/core_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "common/text.h"

/* ---- listings ---- */

static int by_name(const struct core_vm *a, const struct core_vm *b)
{
	int order = strcmp(a->name, b->name);

	return order ? order : memcmp(&a->uuid, &b->uuid, sizeof(a->uuid));
}

static void say_once(struct core *core, bool *said, const char *what, const char *name)
{
	char shown[64 * TEXT_GROWTH];

	if (!*said)
		core_say(core, CORE_LOG_ERROR, NULL, "%s: '%s'", what,
			text_printable(name, shown, sizeof(shown)));
	*said = true;
}

/* True: names changed. */
static bool take_name(struct core *core, struct core_vm *vm, const char *name)
{
	char *copy;

	if (!strcmp(vm->name, name))
		return false;
	copy = strdup(name);
	if (!copy)
		return false; /* at the next listing */
	core_say(core, CORE_LOG_INFO, vm, "is now called '%s'", name);
	free(vm->name);
	vm->name = copy;
	if (vm->has_info) { /* rules go by the name */
		copy = strdup(name);
		vm->info_again |= !copy;
		if (copy) {
			free(vm->said.name);
			vm->said.name = copy;
			core_vm_review(core, vm, core->now);
		}
	}
	if (core->on_name && vm->told.id)
		core->on_name(core->on_ctx, vm->told.id, &vm->uuid, vm->name);
	return true;
}

/* Names are told as they are, in JSON, where they have to be text. NULL: it is one. */
static const char *bad_name(const char *name)
{
	if (strlen(name) > HV_NAME_MAX)
		return "a VM is left alone because its name is too long";
	if (!text_is_utf8(name))
		return "a VM is left alone because its name is no UTF-8";
	return NULL;
}

/* One line of a listing; true: the order of names is to be made anew. */
static bool take_listed(struct core *core, uint64_t now, const struct hv_listed *listed)
{
	const char *why;
	struct core_vm *vm;
	int r;

	if (listed->state == HV_OFF || !listed->name)
		return false;
	why = bad_name(listed->name);
	if (why) {
		say_once(core, &core->said_name, why, listed->name);
		return false;
	}
	vm = core_vm_find(core, &listed->uuid);
	if (!vm) {
		r = core_vm_add(core, now, listed);
		if (r == -ENOSPC)
			say_once(core, &core->said_too_many,
				"there are too many VMs, and the rest is left alone", listed->name);
		if (r == -ENOMEM)
			core->resync_due = core->retry_at = now + CORE_RETRY_US;
		return r == 0;
	}
	vm->listed = core->list_nr;
	if (vm->gone)
		core_vm_back(core, vm, now, listed);
	else
		core_vm_run(core, vm, now, listed->state, listed->job);
	return take_name(core, vm, listed->name);
}

static void on_listed(struct core *core, uint64_t now, const struct hv_event *event)
{
	struct core_vm *vm, *next;
	bool sort = false;

	core->list.token = 0;
	if (event->error || event->type != HV_EVENT_LISTED) {
		if (!core->list.failing && core->connected)
			core_say(core, CORE_LOG_WARNING, NULL,
				"VMs cannot be listed: %s; what is known of them is kept, and it "
				"is tried again",
				core_error_text(event));
		core->list.failing = true;
		core->resync_due = core->retry_at = now + CORE_RETRY_US;
		return;
	}
	if (core->list.failing)
		core_say(core, CORE_LOG_NOTICE, NULL, "VMs can be listed again");
	core->list.failing = false;

	core->list_nr++;
	if (!core->listed_at)
		core->listed_at = now ? now : 1;
	for (size_t i = 0; i < event->listed.nr; i++)
		sort |= take_listed(core, now, &event->listed.vms[i]);
	HASH_ITER (hh, core->vms, vm, next) {
		if (vm->gone)
			continue;
		if (vm->listed != core->list_nr) {
			core_vm_leave(core, vm);
			continue;
		}
		if (core->listing_all) {
			vm->lane.want_info = true;
			core_vm_ready(core, vm);
		}
	}
	if (sort)
		HASH_SRT(hh, core->vms, by_name);
	core->listed = true;
}

/* ---- processes and the host ---- */

static void reading_failed(struct core *core, struct core_reading *reading,
	const struct hv_event *event, const char *what)
{
	if (!reading->failing)
		core_say(core, CORE_LOG_WARNING, NULL, "%s cannot be read: %s", what,
			core_error_text(event));
	reading->failing = true;
}

static void reading_came(struct core *core, struct core_reading *reading, const char *what)
{
	if (reading->failing)
		core_say(core, CORE_LOG_NOTICE, NULL, "%s can be read again", what);
	reading->failing = false;
}

static void on_process(struct core *core, uint64_t now, const struct hv_event *event)
{
	static const char what[] = "what the VMs' processes use";
	bool failed = event->error || event->type != HV_EVENT_PROCESS;
	struct core_vm *vm, *next;

	core->process.token = 0;
	if (failed)
		reading_failed(core, &core->process, event, what);
	else
		reading_came(core, &core->process, what);

	for (size_t i = 0; !failed && i < event->process.nr; i++) {
		vm = core_vm_find(core, &event->process.vms[i].uuid);
		if (!vm || vm->gone)
			continue;
		core_vm_process(core, vm, now, &event->process.vms[i]);
	}
	core->resident = 0;
	HASH_ITER (hh, core->vms, vm, next) {
		if (vm->process_nr != core->process_nr)
			vm->process.known = false;
		if (!vm->looked)
			core_vm_dirty(core, vm);
		vm->looked = true;
		if (vm->process.known)
			core->resident += vm->process.resident + vm->process.overhead;
		core_vm_assess(core, vm, now);
	}
}

static uint64_t reserve_of(const struct core *core, uint64_t total)
{
	uint64_t reserve = core->config.reserve, part = total / 100 * 3 + total % 100 * 3 / 100;

	if (!core->config.reserve_set && core->host_apart)
		reserve = 0;
	else if (!core->config.reserve_set)
		reserve = part > UINT64_C(2) << 30 ? part : UINT64_C(2) << 30;
	return core_pages_up(reserve, &reserve) ? reserve : PAGES_UNLIMITED;
}

/* Who took it is looked at as soon as the pool moves by more than a little. */
static void look_at_move(struct core *core, const struct hv_host *host)
{
	uint64_t seen = core->pool_seen;
	uint64_t moved = host->available > seen ? host->available - seen : seen - host->available;

	if (!core->view.known || moved <= core_bytes(core->view.wm_low) / CORE_POOL_MOVED_FRACTION)
		return;
	core->process.wake = true;
	core->pool_seen = host->available;
}

/* What others on the host take is told, and taken from no VM for that alone. */
static void look_at_others(struct core *core, const struct hv_host *host)
{
	uint64_t most = core->config.others_max, used = host->total - host->available;
	char others[SIZE_TEXT], limit[SIZE_TEXT];
	bool over;

	core->others_known = core->process_nr > 0 && !core->process.failing;
	core->others = used > core->resident ? used - core->resident : 0;
	if (!core->others_known || most == 0)
		return;
	/* A sixteenth less than what was told, or it is told over and over. */
	over = core->others > (core->said_others ? most - most / 16 : most);
	if (over != core->said_others)
		core_say(core, over ? CORE_LOG_WARNING : CORE_LOG_NOTICE, NULL,
			over ? "others on the host take %s, more than others-max %s: what is left "
			       "for VMs shrinks"
			     : "others on the host take %s again, less than others-max %s",
			size_format(core->others, others, sizeof(others)),
			size_format(most, limit, sizeof(limit)));
	core->said_others = over;
}

/* What the operator keeps for the host has to leave something; else nobody is squeezed for it. */
static bool reserve_leaves_some(struct core *core, const struct engine_pool *pool)
{
	char reserve[SIZE_TEXT], total[SIZE_TEXT];
	bool leaves = pool->reserve < pool->size;

	if (!leaves && !core->said_reserve)
		core_say(core, CORE_LOG_ERROR, NULL,
			"[pool] reserve = %s%s is not below the host's memory %s: nothing is left "
			"for VMs, and nothing is taken or given until it is smaller, or size is "
			"set",
			size_format(core_bytes(pool->reserve), reserve, sizeof(reserve)),
			core->config.reserve_set ? "" : " (auto)",
			size_format(core_bytes(pool->size), total, sizeof(total)));
	core->said_reserve = !leaves;
	return leaves;
}

static void on_host(struct core *core, uint64_t now, const struct hv_event *event)
{
	static const char what[] = "the host's memory";
	const struct hv_host *host = &event->host;
	struct engine_pool pool = { .host = true };
	bool look_at_groups;

	core->host.token = 0;
	if (!core->config.pool_host)
		return; /* a size was set while it was out */
	if (event->error || event->type != HV_EVENT_HOST) {
		reading_failed(core, &core->host, event, what);
	} else {
		reading_came(core, &core->host, what);
		pool.known = host->known && host->total > 0 && host->available <= host->total &&
			     core_pages_down(host->total, &pool.size) &&
			     core_pages_down(host->available, &pool.available);
		if (pool.known) {
			pool.reserve = reserve_of(core, host->total);
			pool.known = reserve_leaves_some(core, &pool);
			look_at_move(core, host);
			look_at_others(core, host);
		}
	}
	if (pool.known != core->pool.known && !core->said_reserve)
		core_say(core, pool.known ? CORE_LOG_NOTICE : CORE_LOG_ERROR, NULL,
			pool.known ? "the host's memory is known"
				   : "the host's memory is not known: nothing is taken or given "
				     "because of it");
	if (!pool.known) {
		pool.size = pool.available = pool.reserve = 0;
		core->others_known = false;
	}
	if (pool.known == core->pool.known && pool.size == core->pool.size &&
		pool.available == core->pool.available && pool.reserve == core->pool.reserve)
		return;
	look_at_groups = pool.known && core->min_most != pages_sub(pool.size, pool.reserve);
	if (look_at_groups)
		core->min_most = pages_sub(pool.size, pool.reserve);
	core->pool = pool;
	core->pool_changed = core->changed = true;
	if (look_at_groups)
		core_group_review(core);
}

/* ---- answers to a VM's calls ---- */

/* Says what failed when it begins to fail, unless the connection is to blame. */
static void call_failed(struct core *core, const struct core_vm *vm, bool *failing,
	const struct hv_event *event, const char *what)
{
	if (!core->connected || event->error == -ENOTCONN)
		return;
	if (event->error == -ENOENT) /* it has gone, and the next listing says so */
		return;
	if (!*failing)
		core_say(core, CORE_LOG_WARNING, vm, "%s: %s; it is tried again", what,
			core_error_text(event));
	*failing = true;
}

static void on_info(
	struct core *core, struct core_vm *vm, uint64_t now, const struct hv_event *event)
{
	if (event->error || event->type != HV_EVENT_INFO)
		call_failed(core, vm, &vm->info_failing, event, "its description cannot be read");
	else
		core_vm_info(core, vm, now, &event->info);
}

static void on_stats(
	struct core *core, struct core_vm *vm, uint64_t now, const struct hv_event *event)
{
	if (event->error || event->type != HV_EVENT_STATS) {
		call_failed(core, vm, &vm->stats_failing, event,
			"its balloon statistics cannot be read");
		return;
	}
	vm->stats_failing = false;
	core_vm_stats(core, vm, now, &event->stats);
}

static void on_period(
	struct core *core, struct core_vm *vm, uint64_t now, const struct hv_event *event)
{
	vm->rearmed |= vm->lane.call.period_s == 0;
	if (event->error) {
		call_failed(core, vm, &vm->period_failing, event,
			"its balloon statistics cannot be switched on");
		return;
	}
	if (vm->lane.call.period_s == 0) { /* and on again, with what somebody has set */
		vm->lane.period_s = vm->period_s;
		vm->lane.want_period = true;
		return;
	}
	core_say(core, CORE_LOG_INFO, vm, "balloon statistics switched on, every %" PRIu64 " s",
		vm->lane.call.period_s);
	vm->period_failing = false;
	if (vm->period_s != vm->lane.call.period_s) /* else it is still who set it before */
		vm->period_s = vm->period_set_s = vm->lane.call.period_s;
	vm->watched = now;
	vm->readings = 0;
}

/* Somebody else has set it: what waits to be told to it would take their word back. */
static void overruled(struct core *core, struct core_vm *vm)
{
	core_vm_drop_target(core, vm, -ECANCELED);
	vm->has_result = true;
	vm->result = (struct engine_result){ .id = vm->id, .seq = vm->lane.seq, .error = -ESTALE };
	core_vm_dirty(core, vm);
}

static void on_target(
	struct core *core, struct core_vm *vm, uint64_t seq, const struct hv_event *event)
{
	const struct hv_call *call = &vm->lane.call;
	char target[SIZE_TEXT], what[64 + SIZE_TEXT];

	/* Not where a newer one was dropped meanwhile: what became of that is what counts. */
	if (event->error == -ESTALE) {
		overruled(core, vm);
	} else if (!vm->has_result || vm->result.id != vm->id ||
		   (vm->result.seq <= seq && vm->result.error != -ESTALE)) {
		vm->has_result = true;
		vm->result =
			(struct engine_result){ .id = vm->id, .seq = seq, .error = event->error };
	}
	vm->lane.want_stats = true;
	if (event->error) {
		snprintf(what, sizeof(what), "its balloon target %s was refused",
			size_format(call->target, target, sizeof(target)));
		call_failed(core, vm, &vm->target_failing, event, what);
		return;
	}
	vm->target_failing = false;
	vm->process_mark = core->process_nr;
	core_pages_down(call->ceiling, &vm->attrs.ceiling);
}

static void on_unthrottle(struct core *core, struct core_vm *vm, const struct hv_event *event)
{
	if (event->error == -EOPNOTSUPP) {
		core_say(core, CORE_LOG_WARNING, vm, "its throttle cannot be lifted: %s",
			core_error_text(event));
		return;
	}
	/* With the next description: see take_info(). */
	vm->lift_again = event->error;
	if (event->error) {
		call_failed(core, vm, &vm->lift_failing, event, "its throttle cannot be lifted");
		return;
	}
	vm->lift_failing = false;
	core_say(core, CORE_LOG_NOTICE, vm,
		"its live memtune limit was lifted; the configured one is left");
}

/* Asked of another life, or under another id. The first id comes only when all is known. */
static bool is_of_before(const struct core_slot *slot)
{
	const struct core_vm *vm = slot->vm;

	if (slot->life != vm->life && (slot->id == 0 || vm->lane.call.type == HV_STATS))
		return true;
	return slot->id != 0 && slot->id != vm->id;
}

static void on_answer(
	struct core *core, struct core_slot *slot, uint64_t now, const struct hv_event *event)
{
	struct core_vm *vm = slot->vm;
	struct lane *lane = &vm->lane;
	uint64_t applied = lane->applied_seq, seq;
	bool late = lane->late;

	lane_done(lane, event->token, event->error, &seq);
	slot->token = 0;
	if (late) {
		core_say_as(core, CORE_LOG_NOTICE, vm, MESSAGE_ANSWERS, NULL,
			"answers again, after %" PRIu64 " s", (now - lane->since) / 1000000);
		core_vm_drop_target(core, vm, -ETIMEDOUT);
	}
	if (core_change_is(&lane->call))
		core_change_answer(core, vm, event);
	if (vm->gone) {
		core_vm_reap(core, vm);
		return;
	}
	if (event->error == -ENOENT) /* gone, or not ready */
		core->list.wake = true;

	if (core_change_is(&lane->call)) {
		/* done above, whatever life it was asked in */
	} else if (is_of_before(slot)) {
		/* Not believed, and asked anew where it was a question. */
		lane->applied_seq = applied;
		lane->want_info |= lane->call.type == HV_INFO;
		lane->want_stats |= lane->call.type == HV_STATS;
	} else if (lane->call.type == HV_INFO) {
		on_info(core, vm, now, event);
	} else if (lane->call.type == HV_STATS) {
		on_stats(core, vm, now, event);
	} else if (lane->call.type == HV_PERIOD) {
		on_period(core, vm, now, event);
	} else if (lane->call.type == HV_UNTHROTTLE) {
		on_unthrottle(core, vm, event);
	} else {
		on_target(core, vm, seq, event);
	}
	core_vm_ready(core, vm);
	core_vm_assess(core, vm, now);
}

/* ---- what happens by itself ---- */

/* No target outlives the connection: the engine decides anew on what is found then. */
static void drop_all_targets(struct core *core)
{
	struct core_vm *vm, *next;

	HASH_ITER (hh, core->vms, vm, next)
		core_vm_drop_target(core, vm, -ENOTCONN);
}

static void on_down(struct core *core, uint64_t now, const struct hv_event *event)
{
	const char *why = event->message ? event->message : "no reason was given";
	struct core_vm *vm, *next;

	if (core->connected)
		core_say_as(core, CORE_LOG_ERROR, NULL, MESSAGE_NOT_CONNECTED, NULL,
			"the connection to %s is lost: %s; nothing is asked of VMs until it is "
			"there again",
			core->backend, why);
	else if (!core->said_unreachable)
		core_say_as(core, CORE_LOG_ERROR, NULL, MESSAGE_NOT_CONNECTED, NULL,
			"cannot connect to %s: %s; it is tried again, with pauses of up to 30 s",
			core->backend, why);
	core->said_unreachable = true;
	core->connected = false;
	core_look_anew(core);
	drop_all_targets(core);
	HASH_ITER (hh, core->vms, vm, next) {
		core_vm_forget_stats(vm, now);
		core_change_drop(core, vm, "the connection to the hypervisor is lost");
		vm->life++; /* what is read over the old connection is old */
		core_vm_assess(core, vm, now);
	}
}

static void on_up(struct core *core, uint64_t now)
{
	struct core_vm *vm, *next;

	core_say_as(core, CORE_LOG_NOTICE, NULL, MESSAGE_CONNECTED, NULL, "connected to %s",
		core->backend);
	core->connected = true;
	core->said_unreachable = false;
	core->resync_due = core->retry_at = now;
	core->list.wake = true;
	drop_all_targets(core);
	HASH_ITER (hh, core->vms, vm, next)
		core_vm_forget_stats(vm, now);
}

static void on_changed(struct core *core, uint64_t now, const struct hv_uuid *uuid)
{
	static const struct hv_uuid any;
	struct core_vm *vm = core_vm_find(core, uuid);

	core->list.wake = true;
	if (hv_uuid_equal(uuid, &any)) /* whose is lost: all are described anew */
		core->resync_due = now;
	if (!vm || vm->gone)
		return;
	vm->lane.want_info = true;
	/* What changed may be a job: statistics tell. */
	if (vm->has_info && vm->balloon && vm->ran)
		vm->lane.want_stats = true;
	core_vm_ready(core, vm);
}

static void on_balloon(struct core *core, uint64_t now, const struct hv_event *event)
{
	struct core_vm *vm = core_vm_find(core, &event->uuid);

	if (!vm || vm->gone || !vm->balloon)
		return;
	core_vm_actual(vm, event->actual);
	core_vm_assess(core, vm, now);
}

static void on_told(struct core *core, uint64_t now, const struct hv_uuid *uuid)
{
	struct core_vm *vm = core_vm_find(core, uuid);

	on_changed(core, now, uuid);
	if (vm && !vm->gone && vm->id)
		overruled(core, vm);
}

static void on_agent(struct core *core, uint64_t now, const struct hv_event *event)
{
	struct core_vm *vm = core_vm_find(core, &event->uuid);

	if (vm && !vm->gone)
		core_agent_event(core, vm, now, &event->agent);
}

static void on_rebooted(struct core *core, uint64_t now, const struct hv_uuid *uuid)
{
	struct core_vm *vm = core_vm_find(core, uuid);

	if (vm && !vm->gone)
		core_vm_reboot(core, vm, now);
}

/* True: an answer, to a call that was made or to none. */
static bool take_answer(struct core *core, uint64_t now, const struct hv_event *event)
{
	struct core_slot *slot;

	if (event->type == HV_EVENT_NONE || event->type >= HV_EVENT_CHANGED)
		return false;
	if (event->token == 0)
		return true;
	slot = core_slot_find(core, event->token);
	if (slot)
		on_answer(core, slot, now, event);
	else if (event->type == HV_EVENT_DONE)
		core_agent_answer(core, event);
	else if (event->token == core->list.token)
		on_listed(core, now, event);
	else if (event->token == core->process.token)
		on_process(core, now, event);
	else if (event->token == core->host.token)
		on_host(core, now, event);
	return true;
}

/* The VM that an event is about; NULL: none. */
static const struct core_vm *about(const struct core *core, const struct hv_event *event)
{
	for (size_t i = 0; event->token && i < HV_WORKERS; i++)
		if (core->slots[i].token == event->token)
			return core->slots[i].vm;
	return core_vm_find(core, &event->uuid);
}

void core_event(struct core *core, uint64_t now, const struct hv_event *event)
{
	core->now = now;
	/* What the backend has to say beside its answer. */
	if (event->message && event->error == 0)
		core_say(core, CORE_LOG_NOTICE, about(core, event), "%s", event->message);
	if (take_answer(core, now, event))
		return;
	switch (event->type) {
	case HV_EVENT_CHANGED:
		on_changed(core, now, &event->uuid);
		break;
	case HV_EVENT_REBOOTED:
		on_rebooted(core, now, &event->uuid);
		break;
	case HV_EVENT_BALLOON:
		on_balloon(core, now, event);
		break;
	case HV_EVENT_TOLD:
		on_told(core, now, &event->uuid);
		break;
	case HV_EVENT_AGENT:
		on_agent(core, now, event);
		break;
	case HV_EVENT_PRESSURE:
		core->process.wake = core->host.wake = true;
		break;
	case HV_EVENT_DOWN:
		on_down(core, now, event);
		break;
	case HV_EVENT_UP:
		on_up(core, now);
		break;
	default:
		break;
	}
}
