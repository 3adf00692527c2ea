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

/* The parts of a configuration that are its own. */
static void free_owned(struct core_config *config)
{
	for (size_t i = 0; config->groups && i < config->nr_groups; i++)
		free(config->groups[i].path);
	for (size_t i = 0; config->rules && i < config->nr_rules; i++)
		core_rule_clear(&config->rules[i]);
	free(config->groups);
	free(config->rules);
	config->groups = NULL;
	config->rules = NULL;
	config->nr_groups = config->nr_rules = 0;
}

void core_rule_clear(struct core_rule *rule)
{
	free(rule->name);
	free(rule->match_name);
	free(rule->match_uuid);
	free(rule->match_group);
	hv_knobs_clear(&rule->knobs);
}

static int copy_text(const char *text, char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return text && !*ret_copy ? -ENOMEM : 0;
}

/* What it has of the copy stays with it, whatever fails. */
static int copy_rule(const struct core_rule *rule, struct core_rule *copy)
{
	int r;

	copy->enforce = rule->enforce;
	r = copy_text(rule->name, &copy->name);
	if (r == 0)
		r = copy_text(rule->match_name, &copy->match_name);
	if (r == 0)
		r = copy_text(rule->match_uuid, &copy->match_uuid);
	if (r == 0)
		r = copy_text(rule->match_group, &copy->match_group);
	if (r == 0)
		r = hv_knobs_copy(&rule->knobs, &copy->knobs);
	return r;
}

/* config with parts of its own. -ENOMEM: nothing. */
static int copy_config(const struct core_config *config, struct core_config *ret_copy)
{
	struct core_config copy = *config;
	int r = -ENOMEM;

	copy.groups = NULL;
	copy.rules = NULL;
	if (config->nr_groups > 0 &&
		!(copy.groups = calloc(config->nr_groups, sizeof(*copy.groups))))
		goto fail;
	if (config->nr_rules > 0 && !(copy.rules = calloc(config->nr_rules, sizeof(*copy.rules))))
		goto fail;
	r = 0;
	for (size_t i = 0; i < config->nr_groups && r == 0; i++) {
		copy.groups[i] = config->groups[i];
		copy.groups[i].path = NULL;
		r = copy_text(config->groups[i].path, &copy.groups[i].path);
	}
	for (size_t i = 0; i < config->nr_rules && r == 0; i++)
		r = copy_rule(&config->rules[i], &copy.rules[i]);
	if (r < 0)
		goto fail;
	*ret_copy = copy;
	return 0;
fail:
	free_owned(&copy);
	return r;
}

/* Intervals that are not 0; else a step would never end. */
static bool check_times(const struct core_config *config)
{
	return config->pool_fast_us && config->pool_slow_us && config->vm_us &&
	       config->tick_min_us && config->tick_max_us && config->resync_us && config->lane_us;
}

static bool check(const struct core_config *config)
{
	return check_times(config) && (config->pool_host || config->pool_size > 0);
}

/* A set size is known at once; the host's is when it was read. */
static void set_pool(struct core *core)
{
	if (core->config.pool_host)
		return;
	core->others_known = core->said_others = false; /* nobody looks any more */
	core->pool = (struct engine_pool){ 0 };
	core->pool.known = core_pages_down(core->config.pool_size, &core->pool.size);
	core->min_most = core->pool.size;
	core->pool_changed = true;
}

int core_new(
	const struct core_config *config, const struct hv_backend *backend, struct core **ret_core)
{
	struct core *core;
	int r;

	if (!check(config))
		return -EINVAL;
	core = calloc(1, sizeof(*core));
	if (!core)
		return -ENOMEM;
	r = copy_config(config, &core->config);
	if (r < 0) {
		free(core);
		return r;
	}
	r = core_sections(&core->config, &core->sections);
	if (r < 0)
		goto fail;
	core->config.engine.loosens = backend->loosens;
	core->config.engine.granule = pages_max(backend->granule / POLICY_PAGE_SIZE, 1);
	core->config.engine.bounds.silent_gives = backend->silent;
	core->host_apart = backend->host_apart;
	core->backend = backend->name;
	core->next_id = MEMCG_ROOT_ID + 1;
	core->next_token = core->next_job = 1;
	core->engine_next = CORE_NEVER;

	r = engine_new(&core->config.engine, &core->engine);
	if (r < 0)
		goto fail;
	r = core_group_get(core, "/", &core->root);
	if (r < 0)
		goto fail;
	set_pool(core);
	core_group_review(core);
	core_say_group_warnings(core);
	*ret_core = core;
	return 0;
fail:
	core_free(core);
	return r;
}

/*
 * Where nothing may be asked any more, nothing is that was decided before, and what runs is ended:
 * no guest goes on to lose memory to who only observes.
 */
static void stop_acting(struct core *core)
{
	struct core_vm *vm, *next;

	HASH_ITER (hh, core->vms, vm, next) {
		core_vm_drop_target(core, vm, -ECANCELED);
		vm->cancel = vm->told.id != 0;
		core_vm_dirty(core, vm);
	}
	core->ending = true;
}

static uint64_t not_after(uint64_t at, uint64_t latest)
{
	return at < latest ? at : latest;
}

/* What was put off for longer than it may be now. All alike: the order of the VMs stays. */
static void hurry(struct core *core, uint64_t now)
{
	const struct core_config *config = &core->config;
	struct core_vm *vm;

	core->resync_due = not_after(core->resync_due, now + config->resync_us);
	core->not_before = not_after(core->not_before, now + config->tick_min_us);
	DL_FOREACH2(core->due, vm, due_next)
	{
		vm->due = not_after(vm->due, now + config->vm_us);
	}
}

int core_set_config(struct core *core, uint64_t now, const struct core_config *config)
{
	struct core_section *sections;
	struct core_config copy;
	struct core_vm *vm, *next;
	bool acted = core->config.engine.act;
	int r;

	if (!check(config))
		return -EINVAL;
	r = copy_config(config, &copy);
	if (r < 0)
		return r;
	copy.log = core->config.log;
	copy.log_ctx = core->config.log_ctx;
	copy.engine.loosens = core->config.engine.loosens;
	copy.engine.granule = core->config.engine.granule;
	copy.engine.bounds.silent_gives = core->config.engine.bounds.silent_gives;
	r = core_sections(&copy, &sections);
	if (r < 0) {
		free_owned(&copy);
		return r;
	}
	r = engine_set_config(core->engine, &copy.engine);
	if (r < 0) {
		free(sections);
		free_owned(&copy);
		return r;
	}
	free_owned(&core->config);
	free(core->sections);
	core->config = copy;
	core->sections = sections;
	core->changed = true;
	if (copy.pool_host && !core->pool.host) {
		core->pool = (struct engine_pool){ .host = true };
		core->pool_changed = true;
	}
	core->host.wake = copy.pool_host;
	core->said_groups_min = false;
	set_pool(core);
	hurry(core, now);
	if (acted && !copy.engine.act)
		stop_acting(core);
	core->ending &= !copy.engine.act;
	core_group_review(core);
	core_say_group_warnings(core);
	HASH_ITER (hh, core->vms, vm, next)
		core_vm_review(core, vm, now);
	return 0;
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
	free_owned(&core->config);
	free(core->sections);
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
		core_vm_drop_target(core, vm, -ECANCELED);
		vm->life++; /* what is out was asked before */
		/* Nobody could have answered meanwhile. */
		if (vm->lane.busy && !vm->lane.late)
			vm->lane.since = now;
		core_vm_assess(core, vm, now);
	}
	core_look_anew(core);
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
	core_agent_expire(core, now);
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
