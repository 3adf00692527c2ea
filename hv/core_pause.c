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

static size_t find(const struct core *core, const struct hv_uuid *uuid)
{
	size_t i = 0;

	while (i < core->nr_paused && !hv_uuid_equal(&core->paused_vms[i], uuid))
		i++;
	return i;
}

bool core_is_paused(const struct core *core, const struct hv_uuid *uuid)
{
	return core->paused || find(core, uuid) < core->nr_paused;
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
	core_say(core, CORE_LOG_NOTICE, NULL,
		paused ? "paused: nobody is asked for memory; what VMs have coming they get"
		       : "no longer paused");
	HASH_ITER (hh, core->vms, vm, next)
		apply(core, vm);
}

int core_pause_vm(struct core *core, const struct hv_uuid *uuid, bool paused)
{
	size_t i = find(core, uuid);
	struct hv_uuid *grown;
	struct core_vm *vm;

	if (paused == (i < core->nr_paused))
		return 0;
	if (paused) {
		grown = reallocarray(core->paused_vms, core->nr_paused + 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		core->paused_vms = grown;
		core->paused_vms[core->nr_paused++] = *uuid;
	} else {
		memmove(&core->paused_vms[i], &core->paused_vms[i + 1],
			(core->nr_paused - i - 1) * sizeof(*uuid));
		core->nr_paused--;
	}
	vm = core_vm_find(core, uuid);
	if (vm && !vm->gone) {
		core_say(core, CORE_LOG_NOTICE, vm,
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
		core_vm_dirty(core, vm);
		core_say(core, CORE_LOG_NOTICE, vm,
			"released: it gets its ceiling back, and is not asked for a while");
		nr++;
	}
	return nr;
}

size_t core_releasing(const struct core *core)
{
	const struct core_vm *vm;
	size_t nr = 0;

	for (vm = core->vms; vm; vm = vm->hh.next) {
		bool setting =
			vm->lane.want_target || (vm->lane.busy && vm->lane.call.type == HV_TARGET);

		if (!vm->gone && !vm->lane.late && (vm->release || setting))
			nr++;
	}
	return nr;
}
