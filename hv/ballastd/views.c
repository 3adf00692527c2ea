/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the core knows as JSON: see views.h. */
#include <config.h>

#include "hv/ballastd/views.h"

#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "hv/ballastd/config.h"
#include "policy/pages.h"

/* ---- small pieces ---- */

static void put_pages(struct json_object *object, const char *key, uint64_t pages, int *r)
{
	if (pages < PAGES_UNLIMITED)
		json_put_u64(object, key, pages * POLICY_PAGE_SIZE, r);
}

/* Where 0 says that there is none. */
static void put_pages_if(struct json_object *object, const char *key, uint64_t pages, int *r)
{
	if (pages > 0)
		put_pages(object, key, pages, r);
}

static void put_signed_pages(struct json_object *object, const char *key, int64_t pages, int *r)
{
	json_put_i64(object, key, pages * (int64_t)POLICY_PAGE_SIZE, r);
}

static void put_uuid(struct json_object *object, const struct hv_uuid *uuid, int *r)
{
	char text[HV_UUID_TEXT];

	hv_uuid_format(uuid, text);
	json_put_string(object, "uuid", text, r);
}

/* Name and UUID of a VM by its id; false, and nothing, where it has gone. */
static bool put_vm(struct json_object *object, const struct core *core, uint64_t id, int *r)
{
	struct core_vm_view vm;

	if (core_vm(core, id, &vm) < 0)
		return false;
	json_put_string(object, "name", vm.name, r);
	put_uuid(object, &vm.uuid, r);
	return true;
}

static void put_path(
	struct json_object *object, const char *key, const struct core *core, uint64_t id, int *r)
{
	const char *name = id ? core_name(core, id) : NULL;

	if (name)
		json_put_string(object, key, name, r);
}

static void put_knobs(struct json_object *object, const struct memcg_knobs *knobs, int *r)
{
	put_pages(object, "soft_limit", knobs->soft_limit, r);
	put_pages_if(object, "min", knobs->min, r);
	put_pages_if(object, "low", knobs->low, r);
	put_pages(object, "max", knobs->max, r);
}

static struct json_object *done(struct json_object *object, int r)
{
	if (r == 0 && object)
		return object;
	json_object_put(object);
	return NULL;
}

/* ---- version, status ---- */

struct json_object *views_version(void)
{
	struct json_object *object = json_object_new_object();
	int r = 0;

	json_put_u64(object, "schema_version", VIEWS_SCHEMA, &r);
	json_put_string(object, "name", "ballastd", &r);
	json_put_string(object, "version", PACKAGE_VERSION, &r);
	return done(object, r);
}

static struct json_object *pool_object(const struct core_status *status)
{
	const struct engine_pool_view *pool = &status->pool;
	struct json_object *object = json_object_new_object();
	int r = 0;

	json_put_bool(object, "known", pool->known, &r);
	if (status->others_known)
		json_put_u64(object, "others", status->others, &r);
	if (status->others_over)
		json_put_bool(object, "others_over", true, &r);
	if (!pool->known)
		return done(object, r);
	put_pages(object, "size", pool->size, &r);
	put_pages(object, "used", pool->used, &r);
	put_pages(object, "overhead", pool->overhead, &r);
	put_signed_pages(object, "free", pool->free, &r);
	put_pages(object, "wm_min", pool->wm_min, &r);
	put_pages(object, "wm_low", pool->wm_low, &r);
	put_pages(object, "wm_high", pool->wm_high, &r);
	put_pages(object, "growth", pool->growth, &r);
	put_pages(object, "need", pool->need, &r);
	put_pages(object, "owed", pool->owed, &r);
	put_pages(object, "hung", pool->hung, &r);
	put_pages(object, "gifts", pool->gifts, &r);
	put_pages(object, "short", pool->short_pages, &r);
	return done(object, r);
}

/* What the visitors below fill. */
struct list {
	struct core *core;
	struct json_object *array;
	const char *below; /* only VMs below the group of that path */
	uint64_t id;	   /* only this VM; 0: all */
	bool reasons;
	int r;
};

static bool add_group(void *ctx, const struct core_group_view *group)
{
	struct list *list = ctx;
	struct json_object *object = json_object_new_object();

	json_put_string(object, "path", group->path, &list->r);
	put_pages(object, "usage", group->engine.usage, &list->r);
	put_knobs(object, &group->engine.knobs, &list->r);
	put_pages(object, "excess", group->engine.excess, &list->r);
	put_path(object, "excess_via", list->core, group->engine.excess_via, &list->r);
	put_pages(object, "owed", group->engine.owed, &list->r);
	json_push(list->array, object, &list->r);
	return list->r == 0;
}

static void put_sample(struct json_object *object, const struct engine_view *view, int *r)
{
	const struct vm_sample *sample = &view->sample;
	const struct workingset *set = &view->set;

	if (set->usage_known)
		put_pages(object, "usage", view->usage, r);
	if (vm_knows(sample, VM_RESIDENT))
		put_pages(object, "resident", sample->resident, r);
	if (vm_knows(sample, VM_SWAPPED))
		put_pages(object, "swapped", sample->swapped, r);
	if (vm_knows(sample, VM_OVERHEAD))
		put_pages(object, "overhead", sample->overhead, r);
	if (vm_knows(sample, VM_ACTUAL))
		put_pages(object, "actual", sample->actual, r);
	if (set->used_known)
		put_pages(object, "guest_used", set->guest_used, r);
	if (set->used_known && !vm_knows(sample, VM_USABLE))
		json_put_bool(object, "guest_used_estimated", true, r);
	put_pages_if(object, "floor", set->floor, r);
	put_pages_if(object, "margin", set->margin, r);
	if (set->donor_known) {
		put_pages(object, "keep", set->keep, r);
		put_pages(object, "cold", set->cold, r);
	}
	if (sample->stale)
		json_put_bool(object, "stale", true, r);
}

/* What applies beside the state that counts; nothing: no member. */
static void put_states(struct json_object *object, uint32_t states, int *r)
{
	struct json_object *array;

	if (!states)
		return;
	array = json_object_new_array();
	for (unsigned int i = 0; i < ENGINE_VM_STATE_NR; i++) {
		struct json_object *name;

		if (!(states & UINT32_C(1) << i))
			continue;
		name = json_object_new_string(engine_vm_state_name((enum engine_vm_state)i));
		json_push(array, name, r);
	}
	json_put_value(object, "also", array, r);
}

/* Of a microVM whose faults ballastd resolves. */
static void put_paging(struct json_object *vm_object, const struct hv_paging *paging, int *r)
{
	struct json_object *object;

	if (!paging->paged)
		return;
	object = json_object_new_object();
	json_put_u64(object, "faults", paging->faults, r);
	json_put_u64(object, "waited", paging->waited, r);
	put_pages(object, "over_max", paging->over, r);
	put_pages(object, "dropped", paging->dropped, r);
	put_pages(object, "failed", paging->failed, r);
	json_put_bool(object, "left", paging->left, r);
	json_put_value(vm_object, "paging", object, r);
}

static struct json_object *vm_object(const struct core *core, const struct core_vm_view *vm)
{
	struct json_object *object = json_object_new_object();
	const struct engine_view *view = &vm->engine;
	int r = 0;

	json_put_string(object, "name", vm->name, &r);
	put_uuid(object, &vm->uuid, &r);
	json_put_string(object, "group", vm->group, &r);
	json_put_string(object, "state", engine_vm_state_name(view->state), &r);
	put_states(object, vm->also, &r);
	put_pages_if(object, "throttle", vm->throttle / POLICY_PAGE_SIZE, &r);
	if (vm->throttle)
		json_put_u64(object, "throttled", vm->throttled, &r);
	json_put_bool(object, "answering", vm->answering, &r);
	json_put_string(object, "manage", hv_manage_name(vm->manage), &r);
	if (view->attrs.paused)
		json_put_bool(object, "paused", true, &r);
	if (vm->contended)
		json_put_bool(object, "contended", true, &r);
	views_put_agent(object, vm, false, &r);
	put_paging(object, &vm->paging, &r);
	put_sample(object, view, &r);
	put_pages_if(object, "target", view->target, &r);
	put_pages_if(object, "ceiling", view->ceiling, &r);
	put_pages_if(object, "maximum", view->attrs.maximum, &r);
	put_knobs(object, &view->knobs, &r);
	if (vm->soft_source)
		json_put_string(object, "soft_limit_source", vm->soft_source, &r);
	put_pages(object, "excess", view->excess, &r);
	put_path(object, "excess_via", core, view->excess_via, &r);
	if (view->hold != RECLAIM_HOLD_NONE)
		json_put_string(object, "hold", reclaim_hold_name(view->hold), &r);
	if (view->capped)
		json_put_bool(object, "capped", true, &r);
	put_pages(object, "owed", view->owed, &r);
	put_pages(object, "waiting", view->waiting, &r);
	put_pages_if(object, "speed", view->speed, &r);
	json_put_u64(object, "samples", vm->samples, &r);
	json_put_u64(object, "asks", view->asks, &r);
	json_put_u64(object, "failures", view->failures, &r);
	return done(object, r);
}

static void put_reason(struct json_object *object, const struct core *core,
	const struct engine_reason *reason, int *r)
{
	json_put_u64(object, "at_us", reason->at, r);
	put_path(object, "root", core, reason->root, r);
	if (reason->job)
		json_put_u64(object, "job", reason->job, r);
	if (reason->step)
		json_put_u64(object, "step", reason->step, r);
	put_signed_pages(object, "free", reason->free, r);
	put_pages(object, "wm_min", reason->wm_min, r);
	put_pages(object, "wm_low", reason->wm_low, r);
	put_pages(object, "wm_high", reason->wm_high, r);
	put_pages_if(object, "growth", reason->growth, r);
	put_pages(object, "need", reason->need, r);
	put_pages(object, "owed", reason->owed, r);
	put_pages(object, "step_need", reason->step_need, r);
	put_pages(object, "step_cap", reason->step_cap, r);
	put_pages(object, "cap", reason->cap, r);
	put_pages(object, "share", reason->share, r);
	put_pages(object, "bound", reason->bound, r);
	put_pages(object, "usage", reason->usage, r);
	put_pages(object, "actual", reason->actual, r);
	put_pages_if(object, "from", reason->from, r);
	put_pages(object, "to", reason->to, r);
	put_pages(object, "waiting", reason->waiting, r);
	if (reason->inside)
		json_put_bool(object, "inside", true, r);
}

static struct json_object *reasons_array(struct core *core, uint64_t id)
{
	struct engine_reason reasons[VIEWS_REASONS];
	struct json_object *array = json_object_new_array();
	size_t nr = engine_reasons(core_engine(core), id, reasons, VIEWS_REASONS);
	int r = 0;

	for (size_t i = 0; i < nr; i++) {
		struct json_object *object = json_object_new_object();

		json_put_string(object, "type", engine_reason_name(reasons[i].type), &r);
		put_reason(object, core, &reasons[i], &r);
		json_push(array, object, &r);
	}
	return done(array, r);
}

static bool add_vm(void *ctx, const struct core_vm_view *vm)
{
	struct list *list = ctx;
	struct json_object *object;

	if ((list->id && vm->id != list->id) ||
		(list->below && !core_path_is_below(vm->group, list->below)))
		return true;
	object = vm_object(list->core, vm);
	if (object && list->reasons)
		json_put_value(object, "reasons", reasons_array(list->core, vm->id), &list->r);
	json_push(list->array, object, &list->r);
	return list->r == 0;
}

struct json_object *views_status(struct core *core, uint64_t now)
{
	struct json_object *object = json_object_new_object();
	struct list groups = { .core = core, .array = json_object_new_array() };
	struct list vms = { .core = core, .array = json_object_new_array() };
	struct core_status status;
	int r = 0;

	core_status(core, &status);
	json_put_u64(object, "schema_version", VIEWS_SCHEMA, &r);
	json_put_u64(object, "now_us", now, &r);
	json_put_string(object, "mode", config_mode_name(status.act), &r);
	json_put_string(object, "backend", status.backend, &r);
	json_put_bool(object, "connected", status.connected, &r);
	json_put_bool(object, "paused", status.paused, &r);
	json_put_u64(object, "ticks", status.ticks, &r);
	json_put_u64(object, "hung_calls", status.hung, &r);
	json_put_u64(object, "last_tick_us", status.last_tick, &r);
	json_put_value(object, "pool", pool_object(&status), &r);
	core_for_each_group(core, add_group, &groups);
	json_put_value(object, "groups", groups.array, &r);
	core_for_each_vm(core, add_vm, &vms);
	json_put_value(object, "vms", vms.array, &r);
	return done(object, r ? r : groups.r ? groups.r : vms.r);
}

static struct json_object *paused_object(struct core *core, const struct hv_uuid *uuid)
{
	struct json_object *object = json_object_new_object();
	char text[HV_UUID_TEXT];
	uint64_t id;
	int r = 0;

	hv_uuid_format(uuid, text);
	/* One that is not there has no name. */
	if (core_find(core, text, &id) < 0 || !put_vm(object, core, id, &r))
		json_put_string(object, "uuid", text, &r);
	return done(object, r);
}

struct json_object *views_pauses(struct core *core)
{
	struct json_object *object = json_object_new_object(), *vms = json_object_new_array();
	const struct hv_uuid *uuids;
	size_t nr = core_paused_vms(core, &uuids);
	int r = 0;

	json_put_u64(object, "schema_version", VIEWS_SCHEMA, &r);
	json_put_bool(object, "paused", core_paused(core), &r);
	for (size_t i = 0; i < nr; i++)
		json_push(vms, paused_object(core, &uuids[i]), &r);
	json_put_value(object, "vms", vms, &r);
	return done(object, r);
}

/* ---- plan ---- */

static struct json_object *share_object(const struct core *core, const struct reclaim_share *share)
{
	struct json_object *object = json_object_new_object();
	int r = 0;

	put_vm(object, core, share->memcg->id, &r);
	json_put_u64(object, "step", share->step, &r);
	json_put_bool(object, "below_low", share->below_low, &r);
	put_pages(object, "gives", share->pages, &r);
	put_pages(object, "gain", share->gain, &r);
	put_pages(object, "cap", share->cap, &r);
	put_pages(object, "step_need", share->step_need, &r);
	put_pages(object, "step_cap", share->step_cap, &r);
	put_pages(object, "bound", share->bound, &r);
	return done(object, r);
}

static bool add_hold(void *ctx, const struct core_vm_view *vm)
{
	struct list *list = ctx;
	struct json_object *object;

	if (vm->engine.hold == RECLAIM_HOLD_NONE || !core_path_is_below(vm->group, list->below))
		return true;
	object = json_object_new_object();
	json_put_string(object, "name", vm->name, &list->r);
	put_uuid(object, &vm->uuid, &list->r);
	json_put_string(object, "hold", reclaim_hold_name(vm->engine.hold), &list->r);
	json_push(list->array, object, &list->r);
	return list->r == 0;
}

struct json_object *views_plan(
	struct core *core, const char *group, const struct reclaim_plan *plan)
{
	struct json_object *object = json_object_new_object(), *shares = json_object_new_array();
	struct list holds = { .core = core, .array = json_object_new_array(), .below = group };
	int r = 0;

	json_put_u64(object, "schema_version", VIEWS_SCHEMA, &r);
	json_put_string(object, "group", group, &r);
	put_pages(object, "need", plan->need, &r);
	put_pages(object, "gain", plan->gain, &r);
	put_pages(object, "short", plan->short_pages, &r);
	for (size_t i = 0; i < plan->nr; i++)
		json_push(shares, share_object(core, &plan->shares[i]), &r);
	json_put_value(object, "shares", shares, &r);
	core_for_each_vm(core, add_hold, &holds);
	json_put_value(object, "holds", holds.array, &r);
	return done(object, r ? r : holds.r);
}

/* ---- explain ---- */

struct json_object *views_explain(struct core *core, uint64_t id, uint64_t now)
{
	struct json_object *object = json_object_new_object();
	struct list vms = { .core = core, .array = json_object_new_array(), .reasons = true };
	struct core_status status;
	struct core_vm_view vm;
	int r = 0;

	if (core_vm(core, id, &vm) == 0)
		vms.id = id;
	else
		vms.below = core_name(core, id);
	core_status(core, &status);
	json_put_u64(object, "schema_version", VIEWS_SCHEMA, &r);
	json_put_u64(object, "now_us", now, &r);
	json_put_string(object, "mode", config_mode_name(status.act), &r);
	core_for_each_vm(core, add_vm, &vms);
	json_put_value(object, "vms", vms.array, &r);
	return done(object, r ? r : vms.r);
}

/* ---- notifications ---- */

static void put_vm_event(struct json_object *object, struct core *core,
	const struct engine_event *event, const char *a, const char *b, int *r)
{
	put_vm(object, core, event->id, r);
	put_pages(object, a, event->a, r);
	put_signed_pages(object, b, event->b, r);
}

struct json_object *views_event(struct core *core, const struct engine_event *event)
{
	struct json_object *object = json_object_new_object();
	int r = 0;

	json_put_string(object, "type", engine_event_name(event->type), &r);
	switch (event->type) {
	case ENGINE_EVENT_SHORT:
		put_pages(object, "amount", event->a, &r);
		put_path(object, "group", core, event->id, &r);
		break;
	case ENGINE_EVENT_SHORT_OVER:
		put_path(object, "group", core, event->id, &r);
		break;
	case ENGINE_EVENT_BELOW_MIN:
		put_pages(object, "wm_min", event->a, &r);
		put_signed_pages(object, "free", event->b, &r);
		break;
	case ENGINE_EVENT_ASK_CAME:
	case ENGINE_EVENT_ASK_FAILED:
		put_vm_event(object, core, event, "asked", "came", &r);
		break;
	case ENGINE_EVENT_WISH:
		put_vm_event(object, core, event, "from", "to", &r);
		break;
	case ENGINE_EVENT_CONTENDED:
		put_vm_event(object, core, event, "target", "actual", &r);
		break;
	case ENGINE_EVENT_JOB_DONE:
	case ENGINE_EVENT_JOB_SHORT:
	case ENGINE_EVENT_JOB_CANCELLED:
		json_put_u64(object, "job", event->id, &r);
		put_pages(object, "wanted", event->a, &r);
		put_signed_pages(object, "came", event->b, &r);
		break;
	}
	return done(object, r);
}

struct json_object *views_action(struct core *core, const struct engine_action *action)
{
	struct json_object *object = json_object_new_object();
	int r = 0;

	json_put_string(object, "type", "action", &r);
	json_put_string(object, "action", engine_reason_name(action->reason.type), &r);
	put_vm(object, core, action->id, &r);
	put_reason(object, core, &action->reason, &r);
	return done(object, r);
}

static const char *job_state(enum core_job_state state)
{
	static const char *const names[] = {
		[CORE_JOB_RUNNING] = "running",
		[CORE_JOB_DONE] = "done",
		[CORE_JOB_SHORT] = "short",
		[CORE_JOB_CANCELLED] = "cancelled",
	};

	return names[state];
}

struct json_object *views_job(uint64_t id, const struct core_job *job)
{
	struct json_object *object = json_object_new_object();
	int r = 0;

	json_put_u64(object, "job", id, &r);
	put_pages(object, "wanted", job->wanted, &r);
	put_pages(object, "came", job->came, &r);
	put_pages(object, "owed", job->owed, &r);
	json_put_string(object, "state", job_state(job->state), &r);
	return done(object, r);
}
