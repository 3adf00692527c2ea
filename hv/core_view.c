/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What operators ask of the core. Only reads; what the engine does not know yet is not shown. */
#include <config.h>

#include "hv/core_internal.h"

#include <errno.h>
#include <string.h>

#include "common/nearest.h"

int core_find(const struct core *core, const char *what, uint64_t *ret_id)
{
	struct core_vm *vm, *next, *found = NULL;
	struct core_group *group;
	struct hv_uuid uuid;

	if (what[0] == '/') {
		HASH_FIND_STR(core->groups, what, group);
		if (!group || (!group->told && group != core->root))
			return -ENOENT;
		*ret_id = group->id;
		return 0;
	}
	if (hv_uuid_parse(what, &uuid) == 0) {
		found = core_vm_find(core, &uuid);
		if (found && found->told.id && !found->gone) {
			*ret_id = found->told.id;
			return 0;
		}
		found = NULL; /* a name may look like one */
	}
	HASH_ITER (hh, core->vms, vm, next) {
		if (!vm->told.id || vm->gone || strcmp(vm->name, what))
			continue;
		if (found)
			return -EEXIST;
		found = vm;
	}
	if (!found)
		return -ENOENT;
	*ret_id = found->told.id;
	return 0;
}

const char *core_name(const struct core *core, uint64_t id)
{
	struct core_group *group = core_group_by_id(core, id);
	struct core_vm *vm = group ? NULL : core_vm_by_told_id(core, id);

	if (group)
		return group->path;
	return vm ? vm->name : NULL;
}

/* What begins with the text is meant where nothing is spelled like it. */
static void nearer(const char *what, const char *name, const char **best, size_t *best_distance,
	const char **begins)
{
	if (nearest_better(what, name, best_distance))
		*best = name;
	if (!*begins && !strncmp(name, what, strlen(what)))
		*begins = name;
}

const char *core_nearest(const struct core *core, const char *what)
{
	const char *best = NULL, *begins = NULL;
	struct core_group *group, *next_group;
	struct core_vm *vm, *next;
	size_t distance = SIZE_MAX;

	if (!*what)
		return NULL;
	HASH_ITER (hh, core->vms, vm, next)
		if (vm->told.id && !vm->gone)
			nearer(what, vm->name, &best, &distance, &begins);
	HASH_ITER (hh, core->groups, group, next_group)
		/* Nobody mistypes "/". */
		if (group->told && strcmp(group->path, "/") != 0)
			nearer(what, group->path, &best, &distance, &begins);
	return best ? best : begins;
}

static bool view_vm(
	const struct core *core, const struct core_vm *vm, struct core_vm_view *ret_view)
{
	struct core_vm_view view = {
		.id = vm->told.id,
		.uuid = vm->uuid,
		.name = vm->name,
		.soft_source = vm->soft_source,
		.manage = vm->manage,
		.contended = vm->said_contended,
		.answering = !vm->lane.late,
		.samples = vm->nr_stats,
		.throttle = vm->process.throttle,
		.throttled = vm->process.throttled,
		.paging = vm->process.paging,
		.agent = vm->agent,
		.agent_silent = vm->agent.connected && !core_agent_fresh(vm, core->now),
		.agent_freed = vm->agent_freed,
	};

	if (!vm->told.id || vm->gone || engine_view(core->engine, vm->told.id, &view.engine) < 0)
		return false;
	view.group = vm->told.group->path;
	view.also = core_vm_states(core, vm, core->now) &
		    ~(UINT32_C(1) << vm->told.state | UINT32_C(1) << ENGINE_VM_RUNNING);
	*ret_view = view;
	return true;
}

void core_for_each_vm(
	const struct core *core, bool (*fn)(void *ctx, const struct core_vm_view *vm), void *ctx)
{
	struct core_vm_view view;
	struct core_vm *vm, *next;

	/* The hash is kept in the order of names. */
	HASH_ITER (hh, core->vms, vm, next)
		if (view_vm(core, vm, &view) && !fn(ctx, &view))
			return;
}

int core_vm(const struct core *core, uint64_t id, struct core_vm_view *ret_vm)
{
	const struct core_vm *vm = core_vm_by_told_id(core, id);

	return vm && view_vm(core, vm, ret_vm) ? 0 : -ENOENT;
}

void core_for_each_group(const struct core *core,
	bool (*fn)(void *ctx, const struct core_group_view *group), void *ctx)
{
	struct core_group *group, *next;

	HASH_ITER (hh, core->groups, group, next) {
		struct core_group_view view = { .id = group->id, .path = group->path };

		if (engine_view(core->engine, group->id, &view.engine) < 0)
			continue;
		if (!fn(ctx, &view))
			return;
	}
}

void core_status(const struct core *core, struct core_status *ret_status)
{
	*ret_status = (struct core_status){
		.act = core->config.engine.act,
		.connected = core->connected,
		.backend = core->backend,
		.pool = core->view,
		.ticks = core->ticks,
		.hung = core_hung(core),
		.last_tick = core->last_tick,
		.paused = core->paused,
		.others_known = core->others_known,
		.others = core->others,
		.others_over = core->said_others,
	};
}

struct engine *core_engine(struct core *core)
{
	return core->engine;
}

size_t core_take_events(struct core *core, struct engine_event *ret_events, size_t nr)
{
	size_t taken = 0;

	while (taken < nr && core->nr_events > 0) {
		ret_events[taken++] = core->events[core->first_event];
		core->first_event = (core->first_event + 1) % CORE_EVENTS;
		core->nr_events--;
	}
	return taken;
}
