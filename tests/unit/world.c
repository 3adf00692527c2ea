/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "tests/unit/world.h"

#include <assert.h>
#include <string.h>

const struct memcg_knobs none = { PAGES_UNLIMITED, 0, 0, PAGES_UNLIMITED };

struct memcg_knobs soft(uint64_t pages)
{
	struct memcg_knobs k = none;

	k.soft_limit = pages;
	return k;
}

void world_config(struct engine_config *ret_config)
{
	engine_config_default(ret_config);
	ret_config->act = true;
	ret_config->bounds.floor_percent = 10;
	ret_config->bounds.margin_percent = 0;
	ret_config->bounds.margin_at_least = 0;
}

void world_open(struct world *w, const struct engine_config *config, uint64_t pool)
{
	int r;

	memset(w, 0, sizeof(*w));
	w->pool = (struct engine_pool){ .known = true, .size = pool };
	w->tick_us = SECOND_US / 10;
	w->now = SECOND_US;
	r = engine_new(config, &w->engine);
	assert(!r);
}

void world_open_pool(struct world *w, uint64_t pool)
{
	struct engine_config config;

	world_config(&config);
	world_open(w, &config, pool);
}

void world_three_guests(struct world *w, uint64_t batch, uint64_t web, uint64_t spare)
{
	struct memcg_knobs b = soft(MIB(100)), s = soft(MIB(500));

	world_open_pool(w, MIB(1000));
	world_add(w, 2, MEMCG_ROOT_ID, MIB(500), batch, &b);
	world_add(w, 3, MEMCG_ROOT_ID, MIB(500), web, &s);
	world_add(w, 4, MEMCG_ROOT_ID, MIB(500), spare, &none);
}

void world_close(struct world *w)
{
	engine_free(w->engine);
}

void world_change(struct world *w, const struct engine_change *change)
{
	assert(w->nr_changes < sizeof(w->changes) / sizeof(w->changes[0]));
	w->changes[w->nr_changes++] = *change;
}

size_t world_add(struct world *w, uint64_t id, uint64_t parent, uint64_t maximum, uint64_t usage,
	const struct memcg_knobs *knobs)
{
	assert(w->nr < WORLD_VMS);
	w->vm[w->nr] = (struct world_vm){
		.id = id,
		.maximum = maximum,
		.actual = maximum,
		.target = maximum,
		.resident = usage,
		.cache = usage,
		.speed = MIB(10),
	};
	world_change(w, &(struct engine_change){
				.type = ENGINE_VM_NEW,
				.id = id,
				.parent = parent,
				.knobs = *knobs,
				.attrs = { .maximum = maximum, .act = true },
			});
	return w->nr++;
}

void world_capped(struct world *w, uint64_t id, uint64_t ceiling, uint64_t actual,
	const struct memcg_knobs *knobs)
{
	size_t i = world_add(w, id, MEMCG_ROOT_ID, ceiling, actual, knobs);

	w->changes[w->nr_changes - 1].attrs.ceiling = ceiling;
	w->vm[i].actual = w->vm[i].target = actual;
	w->vm[i].anon = actual / 2;
}

void world_group(struct world *w, uint64_t id, uint64_t parent, const struct memcg_knobs *knobs)
{
	world_change(
		w, &(struct engine_change){
			   .type = ENGINE_GROUP_NEW, .id = id, .parent = parent, .knobs = *knobs });
}

void world_knobs(struct world *w, uint64_t id, const struct memcg_knobs *knobs)
{
	world_change(w,
		&(struct engine_change){ .type = ENGINE_GROUP_KNOBS, .id = id, .knobs = *knobs });
}

void world_reports(struct world *w, uint64_t id)
{
	struct world_vm *vm = world_vm(w, id);

	vm->tells = true;
	vm->lists.inactive_file = vm->cache;
	world_change(w, &(struct engine_change){
				.type = ENGINE_VM_ATTRS,
				.id = id,
				.attrs = { .maximum = vm->maximum,
					.act = true,
					.agent = true,
					.reports = true },
			});
}

void world_state(struct world *w, uint64_t id, enum engine_vm_state state)
{
	world_change(
		w, &(struct engine_change){ .type = ENGINE_VM_STATE, .id = id, .state = state });
}

void world_reclaim(struct world *w, uint64_t job, uint64_t root, uint64_t pages)
{
	w->requests[w->nr_requests++] = (struct engine_request){
		.type = ENGINE_RECLAIM, .job = job, .root = root, .pages = pages
	};
}

void world_cancel_job(struct world *w, uint64_t job)
{
	w->requests[w->nr_requests++] =
		(struct engine_request){ .type = ENGINE_RECLAIM_CANCEL, .job = job };
}

struct world_vm *world_vm(struct world *w, uint64_t id)
{
	for (size_t i = 0; i < w->nr; i++)
		if (w->vm[i].id == id)
			return &w->vm[i];
	return NULL;
}

uint64_t world_usage(const struct world_vm *vm)
{
	return pages_min(vm->resident + vm->swapped, vm->actual);
}

/* What its agent frees is the host's at once. */
static void free_inside(struct world_vm *vm)
{
	uint64_t pages = pages_min(pages_min(vm->freeing, vm->speed), vm->cache);

	if (!vm->freeing || vm->frees_nothing)
		return;
	vm->freeing -= pages;
	vm->cache -= pages;
	vm->lists.inactive_file = vm->cache;
	vm->resident -= pages_min(vm->resident, pages);
	if (!vm->freeing || !vm->cache)
		vm->applied_seq = pages_max(vm->applied_seq, vm->freeing_seq);
}

static void move(struct world_vm *vm)
{
	uint64_t goal = vm->target, had = world_usage(vm), gone;

	free_inside(vm);
	had = world_usage(vm);
	if (vm->pending_seq && !vm->hung && vm->delayed++ >= vm->delay) {
		vm->target = goal = vm->pending;
		vm->applied_seq = vm->pending_seq;
		vm->pending_seq = 0;
	}
	goal = pages_max(goal, vm->stops_at);
	if (vm->actual > goal) {
		vm->actual -= pages_min(vm->speed, vm->actual - goal);
		gone = pages_sub(had, vm->actual);
		if (gone && !vm->pretends) {
			vm->resident -= pages_min(vm->resident, gone);
			vm->cache -= pages_min(vm->cache, gone);
		}
	} else if (vm->speed) {
		vm->actual = vm->target > vm->actual ? vm->target : vm->actual;
	}
	if (vm->grows_back)
		vm->resident = pages_min(vm->actual, vm->resident + vm->speed);
}

static struct vm_sample sample(const struct world_vm *vm)
{
	uint64_t usage = world_usage(vm);
	struct vm_sample s = {
		.id = vm->id,
		.known = VM_ACTUAL | VM_FIGURES_PROCESS,
		.actual = vm->actual,
		.resident = vm->resident,
		.swapped = vm->swapped,
		.overhead = vm->overhead,
		.applied_seq = vm->applied_seq,
		.stale = vm->stale,
	};

	if (vm->no_process)
		s.known &= ~(unsigned int)VM_FIGURES_PROCESS;
	if (!vm->no_stats) {
		s.known |= VM_FIGURES_STATISTICS;
		s.swap_in = vm->swap_in;
		s.stats_actual = vm->actual;
		s.unused = pages_sub(vm->actual, usage);
		s.usable = pages_sub(vm->actual, vm->anon);
		s.disk_caches = vm->cache;
	}
	if (vm->tells) {
		s.known |= VM_FIGURES_REPORT;
		s.lists = vm->lists;
		s.need = vm->need;
		s.refaults = vm->refaults;
	}
	return s;
}

static void take_action(struct world *w, const struct engine_action *a)
{
	struct world_vm *vm = world_vm(w, a->id);

	if (a->reason.inside) {
		vm->told += a->reason.from > a->reason.to;
		vm->freeing += pages_sub(a->reason.from, a->reason.to);
		vm->freeing = pages_sub(vm->freeing, pages_sub(a->reason.to, a->reason.from));
		vm->freeing_seq = a->seq;
		return;
	}
	vm->commands++;
	if (vm->refuses) {
		w->results[w->nr_results++] =
			(struct engine_result){ .id = a->id, .seq = a->seq, .error = -5 };
		return;
	}
	vm->pending = a->target;
	vm->pending_seq = a->seq;
	vm->delayed = 0;
}

void world_tick(struct world *w)
{
	struct vm_sample samples[WORLD_VMS];
	struct engine_input in = {
		.now = w->now += w->tick_us,
		.pool = &w->pool,
		.changes = w->changes,
		.nr_changes = w->nr_changes,
		.samples = samples,
		.requests = w->requests,
		.nr_requests = w->nr_requests,
		.results = w->results,
		.nr_results = w->nr_results,
	};

	for (size_t i = 0; i < w->nr; i++) {
		if (w->vm[i].gone)
			continue;
		move(&w->vm[i]);
		samples[in.nr_samples++] = sample(&w->vm[i]);
	}
	in.nr_charges = engine_charges(w->engine, &in.charges);
	w->error = engine_tick(w->engine, &in, &w->out);
	assert(w->out.next > w->now); /* or a loop would tick for ever */
	memcg_verify(engine_tree(w->engine));
	w->nr_changes = w->nr_requests = w->nr_results = 0;
	for (size_t i = 0; i < w->out.nr_events && w->nr_events < 256; i++)
		w->events[w->nr_events++] = w->out.events[i];
	for (size_t i = 0; i < w->out.nr_actions; i++)
		take_action(w, &w->out.actions[i]);
}

void world_ticks(struct world *w, unsigned int nr)
{
	while (nr--)
		world_tick(w);
}

struct engine_view world_view(const struct world *w, uint64_t id)
{
	struct engine_view view;
	int r = engine_view(w->engine, id, &view);

	assert(!r);
	return view;
}

const struct engine_action *world_action(const struct world *w, uint64_t id)
{
	for (size_t i = 0; i < w->out.nr_actions; i++)
		if (w->out.actions[i].id == id)
			return &w->out.actions[i];
	return NULL;
}

unsigned int world_actions(const struct world *w, uint64_t id, enum engine_reason_type type)
{
	struct engine_reason r[8];
	size_t nr = engine_reasons(w->engine, id, r, 8);
	unsigned int n = 0;

	for (size_t i = 0; i < nr; i++)
		n += r[i].type == type;
	return n;
}

size_t world_count(const struct world *w, enum engine_event_type type)
{
	size_t n = 0;

	for (size_t i = 0; i < w->nr_events; i++)
		n += w->events[i].type == type;
	return n;
}

const struct engine_event *world_event(const struct world *w, enum engine_event_type type)
{
	for (size_t i = w->nr_events; i > 0; i--)
		if (w->events[i - 1].type == type)
			return &w->events[i - 1];
	return NULL;
}

int64_t world_free(const struct world *w)
{
	struct engine_pool_view view;

	engine_pool_view(w->engine, &view);
	return view.free;
}
