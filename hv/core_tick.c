/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A tick: the difference between what is and what the engine was told, its decision, and what
 * becomes of it. Nothing counts as told before engine_tick() has taken it.
 */
#include <config.h>

#include "hv/core_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void core_input_free(struct core_input *input)
{
	free(input->changes);
	free(input->samples);
	free(input->results);
}

/* Room for one more. */
static void *grow(void *array, size_t nr, size_t *max, size_t size)
{
	size_t more = *max ? 2 * *max : 16;
	void *grown;

	if (nr < *max)
		return array;
	grown = reallocarray(array, more, size);
	if (grown)
		*max = more;
	return grown;
}

static int add_change(struct core_input *input, const struct engine_change *change)
{
	void *grown = grow(input->changes, input->nr_changes, &input->max_changes, sizeof(*change));

	if (!grown)
		return -ENOMEM;
	input->changes = grown;
	input->changes[input->nr_changes++] = *change;
	return 0;
}

static int add_sample(struct core_input *input, const struct vm_sample *sample)
{
	void *grown = grow(input->samples, input->nr_samples, &input->max_samples, sizeof(*sample));

	if (!grown)
		return -ENOMEM;
	input->samples = grown;
	input->samples[input->nr_samples++] = *sample;
	return 0;
}

static int add_result(struct core_input *input, const struct engine_result *result)
{
	void *grown = grow(input->results, input->nr_results, &input->max_results, sizeof(*result));

	if (!grown)
		return -ENOMEM;
	input->results = grown;
	input->results[input->nr_results++] = *result;
	return 0;
}

/* ---- groups ---- */

static int bring_root(struct core *core, struct core_input *input)
{
	struct engine_change change = {
		.type = ENGINE_GROUP_KNOBS, .id = MEMCG_ROOT_ID, .knobs = core->root->knobs
	};

	if (core->root->told || core->root->telling)
		return 0;
	core->root->telling = true;
	return add_change(input, &change);
}

/* A group and those above it, the highest first. */
static int bring_group(struct core_input *input, struct core_group *group)
{
	struct core_group *path[MEMCG_MAX_DEPTH + 1];
	size_t depth = 0;
	int r;

	for (; group && !group->told && !group->telling; group = group->parent)
		path[depth++] = group;
	while (depth > 0) {
		struct core_group *next = path[--depth];
		struct engine_change change = {
			.type = ENGINE_GROUP_NEW,
			.id = next->id,
			.knobs = next->knobs,
		};

		assert(next->parent); /* the root was brought before */
		change.parent = next->parent->id;
		r = add_change(input, &change);
		if (r < 0)
			return r;
		next->telling = true;
	}
	return 0;
}

/* Those that the engine has and whose knobs have changed. */
static int tell_groups(struct core *core, struct core_input *input)
{
	struct core_group *group, *next;

	if (!core->retell_groups)
		return 0;
	HASH_ITER (hh, core->groups, group, next) {
		struct engine_change change = {
			.type = ENGINE_GROUP_KNOBS, .id = group->id, .knobs = group->knobs
		};

		if (!group->retell || !group->told || group->telling)
			continue;
		if (add_change(input, &change) < 0)
			return -ENOMEM;
		group->telling = true;
	}
	return 0;
}

/* Those that nobody is in. One with a group below it is not idle before that one is gone. */
static int take_back_groups(struct core *core, struct core_input *input)
{
	struct core_group *group;

	DL_FOREACH (core->idle_groups, group) {
		struct engine_change change = { .type = ENGINE_GROUP_GONE, .id = group->id };

		if (group->told && add_change(input, &change) < 0)
			return -ENOMEM;
		group->leaving = true;
	}
	return 0;
}

/* ---- VMs ---- */

static int bring_vm(struct core *core, struct core_vm *vm, struct core_input *input)
{
	struct engine_change change = {
		.type = ENGINE_VM_NEW,
		.parent = vm->group->id,
		.knobs = vm->knobs,
		.attrs = vm->attrs,
		.state = core_vm_state(core, vm, core->now),
	};
	int r;

	if (!vm->id) {
		r = core_vm_set_id(core, vm, core->next_id++);
		if (r < 0)
			return r;
	}
	r = bring_group(input, vm->group);
	if (r < 0)
		return r;
	change.id = vm->telling = vm->id;
	r = add_change(input, &change);
	if (r < 0 || core->now >= vm->release_until)
		return r;
	change.type = ENGINE_VM_RELEASE; /* of its id before, which has gone with it */
	return add_change(input, &change);
}

static int change_vm(struct core *core, struct core_vm *vm, struct core_input *input)
{
	struct engine_change change = { .id = vm->id,
		.knobs = vm->knobs,
		.attrs = vm->attrs,
		.state = core_vm_state(core, vm, core->now) };
	bool differs[] = {
		vm->again || !core_same_knobs(&vm->knobs, &vm->told.knobs),
		vm->again || !core_same_attrs(&vm->attrs, &vm->told.attrs),
		vm->again || change.state != vm->told.state,
		vm->cancel, /* after the state: what is cancelled to depends on it */
		vm->release,
	};
	static const enum engine_change_type types[] = { ENGINE_GROUP_KNOBS, ENGINE_VM_ATTRS,
		ENGINE_VM_STATE, ENGINE_VM_CANCEL, ENGINE_VM_RELEASE };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		change.type = types[i];
		if (differs[i] && add_change(input, &change) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* What differs of one VM. */
static int tell_vm(struct core *core, struct core_vm *vm, struct core_input *input)
{
	struct engine_change gone = { .type = ENGINE_VM_GONE, .id = vm->told.id };
	bool is_new = !vm->told.id || vm->drop;
	struct vm_sample sample;
	int r = 0;

	vm->telling = 0;
	if (vm->told.id && vm->drop)
		r = add_change(input, &gone);
	if (r < 0 || vm->gone || !vm->has_info)
		return r;
	/* It would count in full until it is looked at, which is at once: nobody pays for that. */
	if (is_new && !vm->looked)
		return r;
	r = is_new ? bring_vm(core, vm, input) : change_vm(core, vm, input);
	if (r < 0)
		return r;
	if (vm->has_result && vm->result.id == vm->told.id && !is_new) {
		r = add_result(input, &vm->result);
		if (r < 0)
			return r;
	}
	core_vm_sample(core, vm, core->now, &sample);
	if (is_new || vm->again || !vm->told.sampled ||
		!core_same_sample(&sample, &vm->told.sample))
		r = add_sample(input, &sample);
	return r;
}

/* Its process was looked at, and its statistics move, or it is known that they do not. */
static bool is_seen(const struct core *core, const struct core_vm *vm, uint64_t now)
{
	const struct lane *lane = &vm->lane;
	bool on = vm->period_s > 0 || lane->want_period ||
		  (lane->busy && lane->call.type == HV_PERIOD);

	if (!vm->looked)
		return false;
	if (lane->late || vm->info_failing)
		return true;
	if (!vm->has_info)
		return false;
	if (!vm->balloon || !on || vm->run != HV_RUNNING || vm->arriving || vm->stats_failing)
		return true;
	return core_vm_fresh(core, vm, now) || core_vm_watched(core, vm, now);
}

/* A VM that is not seen by then is not waited for. */
static uint64_t seen_by(const struct core *core)
{
	return core->listed_at + core->config.lane_us + CORE_STALE_PERIODS * core->config.vm_us;
}

/*
 * Whether the picture of the host is whole: until then nothing is decided, or those whose
 * statistics come first would give for those whose come a moment later.
 */
static bool all_seen(const struct core *core, uint64_t now)
{
	struct core_vm *vm, *next;

	if (!core->listed_at)
		return false;
	if (now >= seen_by(core))
		return true;
	HASH_ITER (hh, core->vms, vm, next)
		if (!vm->gone && !is_seen(core, vm, now))
			return false;
	return true;
}

void core_look_anew(struct core *core)
{
	core->blind |= core->settled;
	core->settled = false;
	core->listed_at = 0;
	core->pool_changed = true;
}

static int build(struct core *core, struct core_input *input)
{
	struct core_vm *vm;
	int r;

	input->nr_changes = input->nr_samples = input->nr_results = input->nr_requests = 0;
	r = bring_root(core, input);
	if (r < 0)
		return r;
	DL_FOREACH2(core->dirty, vm, dirty_next)
	{
		r = tell_vm(core, vm, input);
		if (r < 0)
			return r;
	}
	r = tell_groups(core, input);
	if (r == 0)
		r = take_back_groups(core, input);
	if (r < 0)
		return r;
	core_job_requests(core, input);
	return 0;
}

/* ---- after the tick ---- */

static bool knows(const struct core *core, uint64_t id)
{
	struct engine_view view;

	return engine_view(core->engine, id, &view) == 0;
}

/* Groups of the input: those brought are told now, or to be told again. */
static void settle_groups(struct core *core, const struct core_input *input, int error)
{
	struct core_group *group, *next;

	/* Those that nobody was told of have nothing to be told again. */
	core->retell_groups &= error == -ENOMEM;
	core->changed |= core->retell_groups;
	for (size_t i = 0; i < input->nr_changes; i++) {
		const struct engine_change *change = &input->changes[i];

		if (change->type != ENGINE_GROUP_NEW && change->type != ENGINE_GROUP_KNOBS)
			continue;
		group = core_group_by_id(core, change->id);
		if (!group || !group->telling)
			continue;
		group->telling = false;
		if (error == -ENOMEM && change->type == ENGINE_GROUP_KNOBS)
			continue;
		group->retell = false;
		group->told = error == 0 || knows(core, group->id);
	}
	DL_FOREACH_SAFE(core->idle_groups, group, next)
	{
		bool leaving = group->leaving;

		/* One that got idle by this tick, or that the engine could not let go, is next. */
		group->leaving = false;
		if (!leaving || (group->told && error == -ENOMEM && knows(core, group->id))) {
			core->changed = true;
			continue;
		}
		DL_DELETE(core->idle_groups, group);
		core_min_sub(group->parent, group->knobs.min);
		core_group_put(core, group->parent);
		core->nr_groups--;
		core_group_free(core, group);
	}
}

static void forget_told(struct core *core, struct core_vm *vm)
{
	core_group_put(core, vm->told.group);
	memset(&vm->told, 0, sizeof(vm->told));
}

/* At the next tick; what fails for another reason than memory waits until the VM is due. */
static void tell_again(struct core *core, struct core_vm *vm, int error)
{
	vm->again = true;
	if (error == -ENOMEM)
		core_vm_dirty(core, vm);
}

/* The engine has taken the VM as it is in the input; after an error perhaps not. */
static void settle_vm(struct core *core, struct core_vm *vm, int error)
{
	uint64_t telling = vm->telling;

	vm->telling = 0;
	if (vm->drop) {
		/* It has not even let the old one go. */
		if (error == -ENOMEM && knows(core, vm->told.id) && !knows(core, vm->id)) {
			core_vm_dirty(core, vm);
			return;
		}
		forget_told(core, vm);
		vm->drop = false;
	}
	if (vm->gone) {
		core_vm_reap(core, vm);
		return;
	}
	if (!vm->has_info)
		return;
	if (error && !knows(core, vm->id)) {
		forget_told(core, vm);
		tell_again(core, vm, error);
		return;
	}
	if (telling) {
		vm->told.id = telling;
		core_group_ref(core, vm->group);
		vm->told.group = vm->group;
	} else if (!vm->told.id) { /* not brought yet: there is nothing that it was told */
		return;
	} else if (vm->told.state != core_vm_state(core, vm, core->now))
		core_say_as(core, CORE_LOG_INFO, vm, MESSAGE_STATE, NULL, "%s -> %s",
			engine_vm_state_name(vm->told.state),
			engine_vm_state_name(core_vm_state(core, vm, core->now)));
	vm->told.knobs = vm->knobs;
	vm->told.attrs = vm->attrs;
	vm->told.state = core_vm_state(core, vm, core->now);
	core_vm_sample(core, vm, core->now, &vm->told.sample);
	vm->told.sampled = true;
	vm->again = false;
	if (error == -ENOMEM)
		tell_again(core, vm, error);
	else
		vm->cancel = vm->release = vm->has_result = false;
}

static void settle(struct core *core, const struct core_input *input, int error)
{
	struct core_vm *vm, *next, *dirty = core->dirty;

	core->dirty = NULL;
	core->changed = false;
	DL_FOREACH_SAFE2(dirty, vm, next, dirty_next)
	{
		DL_DELETE2(dirty, vm, dirty_prev, dirty_next);
		vm->dirty = false;
		settle_vm(core, vm, error);
	}
	settle_groups(core, input, error);
	core_job_told(core, error);
	if (error && error != core->tick_error)
		core_say(core, CORE_LOG_ERROR, NULL,
			"a decision could not use all of its input: %s%s", strerror(-error),
			error == -ENOMEM ? "; it is told again" : " (a fault of this program)");
	core->tick_error = error;
}

static void tell_names(struct core *core, const struct core_input *input)
{
	for (size_t i = 0; core->on_name && i < input->nr_changes; i++) {
		const struct engine_change *change = &input->changes[i];
		struct core_group *group;
		struct core_vm *vm;

		if (change->type == ENGINE_GROUP_NEW) {
			group = core_group_by_id(core, change->id);
			core->on_name(core->on_ctx, change->id, NULL, group->path);
		} else if (change->type == ENGINE_VM_NEW) {
			vm = core_vm_by_id(core, change->id);
			core->on_name(core->on_ctx, change->id, &vm->uuid, vm->name);
		}
	}
}

/* ---- output ---- */

static void keep_event(struct core *core, const struct engine_event *event)
{
	if (core->nr_events == CORE_EVENTS) {
		core->first_event = (core->first_event + 1) % CORE_EVENTS;
		core->nr_events--;
	}
	core->events[(core->first_event + core->nr_events++) % CORE_EVENTS] = *event;
}

static void take_event(struct core *core, const struct engine_event *event)
{
	struct core_vm *vm;

	/* Room for page faults is asked for many times a second: that is no news. */
	if (!core_job_is_internal(core, event)) {
		keep_event(core, event);
		core_say_event(core, event);
	}
	core_job_event(core, event);
	if (event->type != ENGINE_EVENT_ASK_CAME && event->type != ENGINE_EVENT_ASK_FAILED)
		return;
	vm = core_vm_by_id(core, event->id);
	if (vm && vm->job && event->b > 0)
		core_job_came(core, vm->job, (uint64_t)event->b);
}

/*
 * The last gate: the engine knows what may be done too. What runs is ended where a VM is no longer
 * managed, and once where observing begins; where nothing was ever told there is nothing to end.
 */
static bool may_be_told(
	const struct core *core, const struct core_vm *vm, const struct engine_action *action)
{
	const struct lane *lane = &vm->lane;
	bool told = lane->applied_seq > 0 || (lane->busy && lane->call.type == HV_TARGET);

	if (core->config.engine.act && vm->attrs.act)
		return true;
	return action->reason.type == ENGINE_CANCEL && told &&
	       (core->config.engine.act || core->ending);
}

static void take_action(struct core *core, const struct engine_action *action)
{
	struct core_vm *vm = core_vm_by_id(core, action->id);

	if (!vm || vm->gone || !may_be_told(core, vm, action))
		return;
	core_say_action(core, vm, action);
	vm->job = action->reason.job;
	vm->ends = action->reason.type == ENGINE_CANCEL;
	if (action->reason.inside) {
		core_agent_inside(core, vm, action);
		return;
	}
	if (core_agent_hold(core, vm, action))
		return;
	lane_want_target(
		&vm->lane, action->seq, core_bytes(action->target), core_bytes(action->ceiling));
	core_vm_ready(core, vm);
}

uint64_t core_tick_due(const struct core *core)
{
	const struct core_config *config = &core->config;
	uint64_t due = core->last_tick + config->tick_max_us;
	uint64_t soonest = core->last_tick + config->tick_min_us;

	if (!core->ticked)
		return 0;
	if (core->blind && (!core->connected || !core->listed_at))
		return CORE_NEVER;
	if (core->blind && !all_seen(core, core->now))
		return seen_by(core);
	if (core->changed)
		due = soonest < due ? soonest : due;
	if (core->engine_next < due)
		due = core->engine_next > soonest ? core->engine_next : soonest;
	return due;
}

int core_tick(struct core *core, uint64_t now)
{
	struct core_input *in = &core->input;
	struct engine_output output = { 0 };
	struct engine_input input;
	int r;

	core->ticked = true;
	core->blind = false;
	core->last_tick = now;
	if (!core->settled)
		core->settled = all_seen(core, now);
	core_groups_sort(core);
	r = build(core, in);
	if (r < 0) {
		struct core_group *group, *next;

		HASH_ITER (hh, core->groups, group, next)
			group->telling = group->leaving = false;
		return r;
	}
	tell_names(core, in);
	input = (struct engine_input){
		.now = now,
		.pool = core->pool_changed && core->settled ? &core->pool : NULL,
		.changes = in->changes,
		.nr_changes = in->nr_changes,
		.samples = in->samples,
		.nr_samples = in->nr_samples,
		.results = in->results,
		.nr_results = in->nr_results,
		.requests = in->requests,
		.nr_requests = in->nr_requests,
	};
	input.nr_charges = engine_charges(core->engine, &input.charges);
	r = engine_tick(core->engine, &input, &output);
	if (core->on_tick)
		core->on_tick(core->on_ctx, &input, r, &output);
	core->ticks++;
	core->pool_changed &= !core->settled;
	settle(core, in, r);

	core->engine_next = output.next;
	engine_pool_view(core->engine, &core->view);
	core_say_view(core);
	for (size_t i = 0; i < output.nr_events; i++)
		take_event(core, &output.events[i]);
	for (size_t i = 0; i < output.nr_actions; i++)
		take_action(core, &output.actions[i]);
	core->ending &= r == -ENOMEM;
	return r == -ENOMEM ? r : 0;
}
