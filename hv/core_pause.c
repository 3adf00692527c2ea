/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The operator's brakes: who is not to be asked (pause), and who gets all back (release). A pause
 * is by UUID, so that it holds for a VM that goes and comes back too; what a paused VM has coming
 * it gets.
 */
#include <config.h>

#include "hv/core_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* True: it is there, at *ret_i. False: that is its place in the order. */
static bool find(const struct core *core, const struct hv_uuid *uuid, size_t *ret_i)
{
	size_t low = 0, high = core->nr_paused;

	while (low < high) {
		size_t i = low + (high - low) / 2;
		int order = memcmp(core->paused_vms[i].bytes, uuid->bytes, sizeof(uuid->bytes));

		if (order == 0) {
			*ret_i = i;
			return true;
		}
		if (order < 0)
			low = i + 1;
		else
			high = i;
	}
	*ret_i = low;
	return false;
}

bool core_is_paused(const struct core *core, const struct hv_uuid *uuid)
{
	size_t i;

	return core->paused || find(core, uuid, &i);
}

static void apply(struct core *core, struct core_vm *vm)
{
	vm->attrs.paused = core_is_paused(core, &vm->uuid);
	core_vm_assess(core, vm, core->now);
}

void core_pause(struct core *core, bool paused)
{
	struct core_vm *vm, *next;

	if (core->paused == paused)
		return;
	core->paused = paused;
	core_say_as(core, CORE_LOG_NOTICE, NULL, paused ? MESSAGE_PAUSED : MESSAGE_RESUMED, NULL,
		paused ? "paused: nobody is asked for memory; what VMs have coming they get"
		       : "no longer paused");
	HASH_ITER (hh, core->vms, vm, next)
		apply(core, vm);
}

/* There is room for the next power of two. */
static int insert(struct core *core, size_t i, const struct hv_uuid *uuid)
{
	struct hv_uuid *vms = core->paused_vms;
	size_t nr = core->nr_paused;

	if (nr >= CORE_MAX_VMS)
		return -ENOSPC;
	if ((nr & (nr - 1)) == 0) {
		vms = reallocarray(vms, nr ? 2 * nr : 1, sizeof(*vms));
		if (!vms)
			return -ENOMEM;
		core->paused_vms = vms;
	}
	memmove(&vms[i + 1], &vms[i], (nr - i) * sizeof(*uuid));
	vms[i] = *uuid;
	core->nr_paused++;
	return 0;
}

int core_pause_vm(struct core *core, const struct hv_uuid *uuid, bool paused)
{
	struct core_vm *vm;
	size_t i;
	int r;

	if (paused == find(core, uuid, &i))
		return 0;
	if (paused) {
		r = insert(core, i, uuid);
		if (r < 0)
			return r;
	} else {
		memmove(&core->paused_vms[i], &core->paused_vms[i + 1],
			(core->nr_paused - i - 1) * sizeof(*uuid));
		core->nr_paused--;
	}
	vm = core_vm_find(core, uuid);
	if (vm && !vm->gone) {
		core_say_as(core, CORE_LOG_NOTICE, vm, paused ? MESSAGE_PAUSED : MESSAGE_RESUMED,
			NULL,
			paused ? "paused: it is not asked for memory; what it has coming it gets"
			       : "no longer paused");
		apply(core, vm);
	}
	return 0;
}

bool core_paused(const struct core *core)
{
	return core->paused;
}

size_t core_paused_vms(const struct core *core, const struct hv_uuid **ret_uuids)
{
	*ret_uuids = core->paused_vms;
	return core->nr_paused;
}

/* ---- release ---- */

size_t core_release(struct core *core, uint64_t root)
{
	const struct core_group *group = core_group_by_id(core, root);
	struct core_vm *vm, *next;
	size_t nr = 0;

	HASH_ITER (hh, core->vms, vm, next) {
		if (vm->gone || !vm->told.id || !vm->attrs.act)
			continue;
		if (vm->told.id != root &&
			!(group && core_path_is_below(vm->told.group->path, group->path)))
			continue;
		vm->release = true;
		vm->release_until = core->now + core->config.engine.release_us;
		core_vm_dirty(core, vm);
		core_say_as(core, CORE_LOG_NOTICE, vm, NULL, engine_reason_name(ENGINE_RELEASE),
			"released: it gets its ceiling back, and is not asked for a while");
		nr++;
	}
	return nr;
}

/* What the engine has decided, or is to decide, is not told to it yet. */
static bool is_releasing(const struct core_vm *vm)
{
	const struct lane *lane = &vm->lane;

	return vm->release || lane->want_target || (lane->busy && lane->call.type == HV_TARGET);
}

size_t core_releasing(const struct core *core)
{
	const struct core_vm *vm;
	size_t nr = 0;

	for (vm = core->vms; vm; vm = vm->hh.next)
		nr += !vm->gone && !vm->lane.late && is_releasing(vm);
	return nr;
}

size_t core_unreleased(const struct core *core)
{
	const struct core_vm *vm;
	size_t nr = 0;

	for (vm = core->vms; vm; vm = vm->hh.next) {
		struct engine_view view;

		if (vm->gone || !vm->attrs.act || engine_view(core->engine, vm->told.id, &view) < 0)
			continue;
		nr += view.capped || is_releasing(vm);
	}
	return nr;
}
