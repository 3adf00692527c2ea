/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What operators write into a VM's metadata, and the port of an agent that they add: one change a
 * VM at a time, on its lane, like all calls for it. What became of the last ones is remembered for
 * who asks.
 */
#include <config.h>

#include "hv/core_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

static struct core_changed *result_of(struct core *core, uint64_t id)
{
	struct core_changed *result = &core->changes[id % CORE_CHANGES];

	return id && result->id == id ? result : NULL;
}

static void finish(
	struct core *core, uint64_t id, enum core_change_state state, const char *message)
{
	struct core_changed *result = result_of(core, id);

	if (!result || result->state != CORE_CHANGE_RUNNING)
		return;
	result->state = state;
	snprintf(result->message, sizeof(result->message), "%s", message ? message : "");
	text_mend(result->message);
}

/* The word of the metadata, if that is what is refused. */
static bool refuses(const struct core_resolved *resolved, enum core_knob knob)
{
	const struct core_knob_said *said = &resolved->said[knob];

	for (size_t i = 0; i < said->nr; i++)
		if (said->words[i].source == CORE_FROM_METADATA && said->words[i].refused)
			return true;
	return false;
}

/* How large its min may be in the group that it will be in. -ENOMEM. */
static int room_in(struct core *core, struct core_vm *vm, const char *path, uint64_t *ret_room)
{
	struct core_group *group;
	int r = core_group_get(core, path, &group);

	if (r == -ENOSPC) /* where it will be put then */
		r = core_group_get(core, "/", &group);
	if (r < 0)
		return r;
	*ret_room = core_vm_min_room(core, vm, group);
	core_group_put(core, group);
	return 0;
}

/* Whether what the metadata would say then can be used. -EINVAL with why, -ENOMEM. */
static int check(struct core *core, struct core_vm *vm, const struct hv_knobs_change *change,
	char *why, size_t size)
{
	struct hv_info info = core_vm_limited(vm, &vm->said);
	struct core_resolved resolved;
	struct hv_knobs knobs;
	bool moves = change->set.has_group || (change->clear & HV_KNOB_GROUP);
	uint64_t room;
	int r = hv_knobs_copy(&vm->said.metadata, &knobs);

	if (r < 0)
		return r;
	r = hv_change_apply(change, &knobs);
	if (r < 0)
		goto out;
	if (knobs.has_min && knobs.has_max && knobs.min > knobs.max) {
		snprintf(why, size, "min would be over max");
		r = -EINVAL;
		goto out;
	}
	info.metadata = knobs;
	info.problem = NULL;
	if (core_resolve(&core->config, &info, PAGES_UNLIMITED, &resolved) < 0)
		goto out;
	r = room_in(core, vm, resolved.group, &room);
	if (r < 0 || core_resolve(&core->config, &info, room, &resolved) < 0)
		goto out;
	if (((change->set.has_min || moves) && refuses(&resolved, CORE_MIN)) ||
		((change->set.has_max || change->set.has_min) && refuses(&resolved, CORE_MAX)) ||
		(change->set.has_group && refuses(&resolved, CORE_GROUP))) {
		snprintf(why, size, "%s", resolved.problem);
		r = -EINVAL;
	}
out:
	hv_knobs_clear(&knobs);
	return r;
}

/* The VM, if it can be changed now. */
static int find(struct core *core, uint64_t id, struct core_vm **ret_vm)
{
	struct core_vm *vm = core_vm_by_told_id(core, id);

	if (!vm || vm->gone || !vm->has_info)
		return -ENOENT;
	if (vm->change_id)
		return -EBUSY;
	if (!core->connected)
		return -ENOTCONN;
	if (vm->lane.late)
		return -ETIMEDOUT;
	*ret_vm = vm;
	return 0;
}

/* The next that has a place: not that of one that still runs. -EAGAIN: all do. */
static int next_id(const struct core *core, uint64_t *ret_id)
{
	for (uint64_t id = core->next_change + 1; id <= core->next_change + CORE_CHANGES; id++) {
		const struct core_changed *old = &core->changes[id % CORE_CHANGES];

		if (old->id && old->state == CORE_CHANGE_RUNNING)
			continue;
		*ret_id = id;
		return 0;
	}
	return -EAGAIN;
}

/* Its lane has the wish. */
static void begin(struct core *core, struct core_vm *vm, uint64_t id)
{
	vm->change_id = core->next_change = id;
	core->changes[id % CORE_CHANGES] =
		(struct core_changed){ .id = id, .state = CORE_CHANGE_RUNNING };
	core_vm_ready(core, vm);
}

int core_set_knobs(struct core *core, uint64_t id, const struct hv_knobs_change *change,
	uint64_t *ret_change, char *why, size_t size)
{
	struct core_vm *vm;
	uint64_t next;
	int r = find(core, id, &vm);

	if (r < 0)
		return r;
	r = check(core, vm, change, why, size);
	if (r < 0)
		return r;
	r = next_id(core, &next);
	if (r < 0)
		return r;
	r = hv_change_copy(change, &vm->change);
	if (r < 0)
		return r;
	vm->lane.change = &vm->change;
	begin(core, vm, next);
	*ret_change = next;
	return 0;
}

int core_attach(struct core *core, uint64_t id, bool persistent, uint64_t *ret_change)
{
	struct core_vm *vm;
	uint64_t next;
	int r = find(core, id, &vm);

	if (r < 0)
		return r;
	if (!core->config.engine.act || !vm->attrs.act)
		return -EPERM;
	r = next_id(core, &next);
	if (r < 0)
		return r;
	vm->lane.want_attach = true;
	vm->lane.persistent = persistent;
	begin(core, vm, next);
	*ret_change = next;
	return 0;
}

enum core_change_state core_change(
	const struct core *core, uint64_t change, const char **ret_message)
{
	const struct core_changed *result = result_of((struct core *)(uintptr_t)core, change);

	if (!result) {
		*ret_message = "it is not remembered";
		return CORE_CHANGE_FAILED;
	}
	*ret_message = result->message;
	return result->state;
}

static void forget(struct core_vm *vm)
{
	hv_change_clear(&vm->change);
	vm->change_id = 0;
	vm->lane.change = NULL;
	vm->lane.want_attach = false;
}

bool core_change_is(const struct hv_call *call)
{
	return call->type == HV_KNOBS || call->type == HV_ATTACH;
}

void core_change_answer(struct core *core, struct core_vm *vm, const struct hv_event *event)
{
	bool attach = vm->lane.call.type == HV_ATTACH;
	const char *why = core_error_text(event);

	if (attach && event->error == -EOPNOTSUPP && !event->message)
		why = "with this hypervisor no port can be added";
	if (attach && event->error == -EEXIST) {
		finish(core, vm->change_id, CORE_CHANGE_DONE, "it has the agent's port already");
	} else if (event->error) {
		finish(core, vm->change_id, CORE_CHANGE_FAILED, why);
		core_say(core, CORE_LOG_WARNING, vm, "%s: %s",
			attach ? "the agent's port was not added" : "its metadata was not written",
			why);
	} else {
		finish(core, vm->change_id, CORE_CHANGE_DONE, NULL);
		core_say(core, CORE_LOG_INFO, vm,
			attach ? "the agent's port was added" : "its metadata was written");
	}
	forget(vm);
	vm->lane.want_info |= !vm->gone;
}

void core_change_drop(struct core *core, struct core_vm *vm, const char *why)
{
	bool out = vm->lane.busy && core_change_is(&vm->lane.call);

	if (!vm->change_id)
		return;
	finish(core, vm->change_id, CORE_CHANGE_FAILED, why);
	if (!out)
		forget(vm);
}
