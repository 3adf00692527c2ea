/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The virtual-time shell; see virtual.h. */
#include <config.h>

#include "hv/sim/virtual.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/pages.h"

/* Steps at one instant before it is a loop: more than a step for each of thousands of events. */
#define SAME_INSTANT_MAX 100000
#define NEVER		 UINT64_MAX

struct virtual
{
	struct scenario *scenario;
	struct virtual_watch watch;
	struct core_config config; /* borrowed parts are the scenario's */
	struct hv_backend backend; /* the fault wrapper around ... */
	struct hv *hv, *sim;	   /* ... the simulated host */
	struct core *core;
	uint64_t now;
	size_t *operator_steps; /* of the scenario's steps, in order of time */
	size_t nr_operator, done_operator;
};

struct core *virtual_core(const struct virtual *virtual)
{
	return virtual->core;
}

const struct hv *virtual_sim(const struct virtual *virtual)
{
	return virtual->sim;
}

uint64_t virtual_now(const struct virtual *virtual)
{
	return virtual->now;
}

static int start_core(struct virtual *virtual)
{
	int r = core_new(&virtual->config, &virtual->backend, &virtual->core);

	if (r < 0)
		return r;
	core_on_tick(virtual->core, virtual->watch.tick, virtual->watch.name, virtual->watch.ctx);
	return 0;
}

/* ---- making it ---- */

static int add_fault(struct virtual *virtual, const struct scenario_step *step)
{
	struct fault_rule rule = step->fault;
	struct sim_vm_view view;
	int r = step->vm ? sim_vm_view(virtual->sim, step->vm, &view) : 0;

	if (r < 0)
		return r;
	if (step->vm)
		rule.uuid = *view.uuid;
	return fault_add(virtual->hv, &rule);
}

static int add_guests(struct virtual *virtual)
{
	const struct scenario *s = virtual->scenario;
	int r = sim_host_set(virtual->sim, &s->host);

	fault_seed(virtual->hv, s->host.seed);
	for (size_t i = 0; i < s->nr_vms && r == 0; i++)
		r = sim_vm_add(virtual->sim, &s->vms[i].sim);
	for (size_t i = 0; i < s->nr_steps && r == 0; i++) {
		if (s->steps[i].type == SCENARIO_SIM)
			r = sim_at(virtual->sim, s->steps[i].time, s->steps[i].vm,
				&s->steps[i].action);
		else if (s->steps[i].type == SCENARIO_FAULT)
			r = add_fault(virtual, &s->steps[i]);
	}
	return r;
}

/* The operator's steps by time; of one time, in the order of the file. */
static int sort_operator(struct virtual *virtual)
{
	const struct scenario *s = virtual->scenario;
	size_t *sorted = calloc(s->nr_steps ? s->nr_steps : 1, sizeof *sorted), nr = 0, at;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr_steps; i++) {
		if (s->steps[i].type == SCENARIO_SIM || s->steps[i].type == SCENARIO_FAULT)
			continue;
		for (at = nr++; at && s->steps[sorted[at - 1]].time > s->steps[i].time; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = i;
	}
	virtual->operator_steps = sorted;
	virtual->nr_operator = nr;
	return 0;
}

int virtual_new(
	struct scenario *scenario, const struct virtual_watch *watch, struct virtual **ret_virtual)
{
	struct virtual *virtual = calloc(1, sizeof *virtual);
	int r = -ENOMEM;

	if (!virtual)
		return r;
	virtual->scenario = scenario;
	if (watch)
		virtual->watch = *watch;
	virtual->backend = fault_table(&hv_sim);
	virtual->config = scenario->config->core;
	virtual->config.engine.act &= scenario->host.rival->daemon;
	virtual->config.engine.no_soft_pass = scenario->host.rival->no_soft_pass;
	virtual->config.log = virtual->watch.log;
	virtual->config.log_ctx = virtual->watch.ctx;
	r = virtual->backend.open(
		&(struct hv_params){ .uri = FAULT_PREFIX "sim:///", .inner = &hv_sim },
		&virtual->hv);
	if (r < 0)
		goto out;
	virtual->sim = fault_inner(virtual->hv);
	r = add_guests(virtual);
	if (r < 0)
		goto out;
	r = sort_operator(virtual);
	if (r < 0)
		goto out;
	r = start_core(virtual);
	if (r < 0)
		goto out;
	*ret_virtual = virtual;
	return 0;
out:
	virtual_free(virtual);
	return r;
}

void virtual_free(struct virtual *virtual)
{
	if (!virtual)
		return;
	if (virtual->sim)
		sim_unpage(virtual->sim);
	core_free(virtual->core);
	hv_fault.close(virtual->hv);
	free(virtual->operator_steps);
	free(virtual);
}

/* ---- running it ---- */

/* A pause outlives the daemon: what its file is for. */
static int pause_alike(const struct core *from, struct core *core)
{
	const struct hv_uuid *uuids;
	size_t nr = core_paused_vms(from, &uuids);
	int r = 0;

	core_pause(core, core_paused(from));
	for (size_t i = 0; i < nr && r == 0; i++)
		r = core_pause_vm(core, &uuids[i], true);
	return r;
}

/*
 * The daemon was killed: all that it knew but who is paused is gone, what it asked last may or may
 * not be done.
 */
static int restart(struct virtual *virtual)
{
	struct core *old = virtual->core;
	int r;

	virtual->core = NULL;
	sim_unpage(virtual->sim);
	fault_new_client(virtual->hv);
	sim_new_client(virtual->sim);
	r = start_core(virtual);
	if (r == 0)
		r = pause_alike(old, virtual->core);
	core_free(old);
	return r;
}

static int set_pause(struct virtual *virtual, const char *who, bool paused)
{
	struct sim_vm_view vm;

	if (!strcmp(who, "/")) {
		core_pause(virtual->core, paused);
		return 0;
	}
	if (sim_vm_view(virtual->sim, who, &vm) < 0)
		return 0; /* nobody of that name */
	return core_pause_vm(virtual->core, vm.uuid, paused);
}

static int run_operator(struct virtual *virtual)
{
	const struct scenario *s = virtual->scenario;
	uint64_t root, job;
	int r;

	while (virtual->done_operator < virtual->nr_operator) {
		const struct scenario_step *step =
			&s->steps[virtual->operator_steps[virtual->done_operator]];

		if (step->time > virtual->now)
			break;
		virtual->done_operator++;
		r = 0;
		if (step->type == SCENARIO_RESTART)
			r = restart(virtual);
		else if (step->type == SCENARIO_PAUSE || step->type == SCENARIO_RESUME)
			r = set_pause(virtual, step->who, step->type == SCENARIO_PAUSE);
		else if (core_find(virtual->core, step->who, &root) < 0)
			continue;
		else if (step->type == SCENARIO_RELEASE)
			core_release(virtual->core, root);
		else
			core_reclaim(virtual->core, root, step->bytes / POLICY_PAGE_SIZE, &job);
		if (r < 0)
			return r;
	}
	return 0;
}

static uint64_t next_operator(const struct virtual *virtual)
{
	if (virtual->done_operator == virtual->nr_operator)
		return NEVER;
	return virtual->scenario->steps[virtual->operator_steps[virtual->done_operator]].time;
}

/* Events to the core, its calls to the backend; *ret_next: when the core wants to come back. */
static int step(struct virtual *virtual, uint64_t *ret_next)
{
	const struct hv_backend *backend = &virtual->backend;
	const struct hv_call *calls;
	struct hv_event event;
	size_t nr;
	int r;

	while (backend->next(virtual->hv, &event) > 0) {
		core_event(virtual->core, virtual->now, &event);
		hv_event_clear(&event);
	}
	r = core_step(virtual->core, virtual->now, &calls, &nr, ret_next);
	if (r < 0)
		return r;
	sim_page(virtual->sim, virtual->core);
	for (size_t i = 0; i < nr; i++)
		if (backend->submit(virtual->hv, &calls[i]) < 0)
			core_not_submitted(virtual->core, &calls[i]);
	return 0;
}

static uint64_t look(struct virtual *virtual)
{
	const struct figure_world world = { virtual->core, virtual->sim };
	struct scenario *s = virtual->scenario;
	bool last = virtual->now >= s->length;
	uint64_t next = NEVER, at;

	for (size_t i = 0; i < s->nr_expects; i++) {
		expect_look(&s->expects[i], &world, virtual->now, last);
		at = expect_next(&s->expects[i], virtual->now);
		next = at < next ? at : next;
	}
	return next;
}

/* Whether all that it waits for is over, which it then is itself. */
static bool is_done(const struct virtual *virtual)
{
	const char *text = virtual->scenario->until_done;
	struct sim_vm_view view;
	char name[64];
	size_t length;

	if (!text)
		return false;
	while (*(text += strspn(text, " \t"))) {
		length = strcspn(text, " \t");
		if (length >= sizeof name)
			return false;
		memcpy(name, text, length);
		name[length] = '\0';
		text += length;
		if (sim_vm_view(virtual->sim, name, &view) < 0 || !view.guest->nr_programs)
			return false;
		for (unsigned int i = 0; i < view.guest->nr_programs; i++)
			if (!view.guest->programs[i].ended)
				return false;
	}
	return true;
}

int virtual_run(struct virtual *virtual)
{
	uint64_t length = virtual->scenario->length;
	uint64_t next, at, same = 0;
	int r;

	while (true) {
		r = sim_advance(virtual->sim, virtual->now);
		if (r < 0)
			return r;
		fault_advance(virtual->hv, virtual->now);
		r = run_operator(virtual);
		if (r < 0)
			return r;
		r = step(virtual, &next);
		if (r < 0)
			return r;
		if (virtual->watch.step)
			virtual->watch.step(virtual->watch.ctx, virtual->now);
		if (is_done(virtual))
			virtual->scenario->length = length = virtual->now;
		at = look(virtual);
		next = at < next ? at : next;
		if (virtual->now >= length)
			return 0;
		at = sim_next(virtual->sim);
		next = at < next ? at : next;
		at = fault_next(virtual->hv);
		next = at < next ? at : next;
		at = next_operator(virtual);
		next = at < next ? at : next;
		next = next < length ? next : length;
		same = next <= virtual->now ? same + 1 : 0;
		if (same > SAME_INSTANT_MAX)
			return -ELOOP;
		virtual->now = next > virtual->now ? next : virtual->now;
	}
}
