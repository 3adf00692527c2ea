/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* core: see core.h, and core_internal.h for what stands in which file. */
#include <config.h>

#include "hv/core_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void core_config_default(struct core_config *ret_config)
{
	struct core_config config = {
		/* The host's memory: what there is, where nobody set a size. */
		.pool_host = true,
		/* A VM that streams or grows takes 1 GiB/s at best: 50 MiB of a band of 3 %. */
		.pool_fast_us = 50000,
		/* Above the band there is time; a reading costs a few microseconds a VM. */
		.pool_slow_us = 250000,
		/* Guests renew their statistics once a second at best, in QEMU. */
		.vm_us = 1000000,
		/* A burst of answers is one tick; well below the 100 ms that a reaction may take.
		 */
		.tick_min_us = 50000,
		/* Deadlines and hold times are seconds. */
		.tick_max_us = 1000000,
		/* memtune --config has no event, and others get lost: so old may it be. */
		.resync_us = 5000000,
		/* A balloon call takes 2 to 6 ms; a busy monitor may take a second. */
		.lane_us = 3000000,
		/* The shortest that there is; costs the guest one message. */
		.stats_period_s = 1,
	};

	engine_config_default(&config.engine);
	*ret_config = config;
}

static void free_groups(struct core_group_knobs *groups, size_t nr)
{
	for (size_t i = 0; groups && i < nr; i++)
		free(groups[i].path);
	free(groups);
}

static int copy_groups(const struct core_config *config, struct core_group_knobs **ret_groups)
{
	struct core_group_knobs *groups;

	*ret_groups = NULL;
	if (config->nr_groups == 0)
		return 0;
	groups = calloc(config->nr_groups, sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	for (size_t i = 0; i < config->nr_groups; i++) {
		groups[i].knobs = config->groups[i].knobs;
		groups[i].manage = config->groups[i].manage;
		groups[i].path = strdup(config->groups[i].path);
		if (!groups[i].path) {
			free_groups(groups, i);
			return -ENOMEM;
		}
	}
	*ret_groups = groups;
	return 0;
}

/* Intervals that are not 0; else a step would never end. */
static bool check_times(const struct core_config *config)
{
	return config->pool_fast_us && config->pool_slow_us && config->vm_us &&
	       config->tick_min_us && config->tick_max_us && config->resync_us && config->lane_us;
}

int core_new(
	const struct core_config *config, const struct hv_backend *backend, struct core **ret_core)
{
	struct core *core;
	int r;

	if (!check_times(config) || (!config->pool_host && config->pool_size == 0))
		return -EINVAL;
	core = calloc(1, sizeof(*core));
	if (!core)
		return -ENOMEM;
	core->config = *config;
	core->config.groups = NULL;
	core->config.nr_groups = 0;
	core->config.engine.loosens = backend->loosens;
	core->config.engine.granule = pages_max(backend->granule / POLICY_PAGE_SIZE, 1);
	core->backend = backend->name;
	core->next_id = MEMCG_ROOT_ID + 1;
	core->next_token = core->next_job = 1;
	core->engine_next = CORE_NEVER;

	r = copy_groups(config, &core->config.groups);
	if (r < 0)
		goto fail;
	core->config.nr_groups = config->nr_groups;
	r = engine_new(&core->config.engine, &core->engine);
	if (r < 0)
		goto fail;
	r = core_group_get(core, "/", &core->root);
	if (r < 0)
		goto fail;
	if (!config->pool_host) {
		core->pool.known = core_pages_down(config->pool_size, &core->pool.size);
		core->pool_changed = true;
	}
	*ret_core = core;
	return 0;
fail:
	core_free(core);
	return r;
}

void core_free(struct core *core)
{
	struct core_vm *vm, *next_vm;
	struct core_group *group, *next_group;

	if (!core)
		return;
	HASH_ITER (hh, core->vms, vm, next_vm)
		core_vm_free(core, vm);
	HASH_ITER (hh, core->groups, group, next_group)
		core_group_free(core, group);
	engine_free(core->engine);
	free_groups(core->config.groups, core->config.nr_groups);
	core_input_free(&core->input);
	free(core->paused_vms);
	free(core);
}

void core_on_tick(struct core *core, core_tick_fn *tick, core_name_fn *name, void *ctx)
{
	struct core_vm *vm, *next_vm;
	struct core_group *group, *next_group;

	core->on_tick = tick;
	core->on_name = name;
	core->on_ctx = ctx;
	if (!name)
		return;
	/* Those that came before, the pool's root among them. */
	HASH_ITER (hh, core->groups, group, next_group)
		if (group->told || group == core->root)
			name(ctx, group->id, NULL, group->path);
	HASH_ITER (hh, core->vms, vm, next_vm)
		if (vm->told.id)
			name(ctx, vm->told.id, &vm->uuid, vm->name);
}

void core_slept(struct core *core, uint64_t now)
{
	struct core_vm *vm, *next;

	core_say(core, CORE_LOG_NOTICE, NULL,
		"time has passed without us (the host slept?): all is read anew before anything is "
		"decided");
	HASH_ITER (hh, core->vms, vm, next) {
		if (vm->gone)
			continue;
		core_vm_forget_stats(vm, now);
		vm->life++; /* what is out was asked before */
		/* Nobody could have answered meanwhile. */
		if (vm->lane.busy && !vm->lane.late)
			vm->lane.since = now;
		core_vm_assess(core, vm, now);
	}
	core->list.wake = core->process.wake = core->host.wake = true;
	core->resync_due = now;
}

static void run_due_vms(struct core *core, uint64_t now)
{
	/* Each is put behind the others with a later time: every VM comes at most once. */
	while (core->due && core->due->due <= now)
		core_vm_due(core, core->due, now);
}

int core_step(struct core *core, uint64_t now, const struct hv_call **ret_calls, size_t *ret_nr,
	uint64_t *ret_next)
{
	uint64_t next, tick;
	int r = 0;

	core->now = now;
	if (core->expected && now > core->expected && now - core->expected > core->config.lane_us)
		core_slept(core, now);
	core_check_lanes(core, now);
	run_due_vms(core, now);
	if (core_tick_due(core) <= now)
		r = core_tick(core, now);

	*ret_calls = core->calls;
	*ret_nr = core_collect_calls(core, now);
	next = core_calls_due(core);
	tick = core_tick_due(core);
	*ret_next = core->expected = next < tick ? next : tick;
	return r;
}
