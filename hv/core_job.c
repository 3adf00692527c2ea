/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The operator's requests: told to the engine by the next tick, remembered when they have ended. */
#include <config.h>

#include "hv/core_internal.h"

#include <errno.h>

static struct core_slotted_job *find(const struct core *core, uint64_t id)
{
	for (size_t i = 0; i < CORE_JOBS; i++)
		if (id != 0 && core->jobs[i].id == id)
			return (struct core_slotted_job *)&core->jobs[i];
	return NULL;
}

/* A free place, or that of the job that ended first; NULL: all run. */
static struct core_slotted_job *place(struct core *core)
{
	struct core_slotted_job *oldest = NULL;

	for (size_t i = 0; i < CORE_JOBS; i++) {
		struct core_slotted_job *slot = &core->jobs[i];

		if (slot->id == 0)
			return slot;
		if (slot->job.state == CORE_JOB_RUNNING || slot->cancel)
			continue;
		if (!oldest || slot->finished < oldest->finished)
			oldest = slot;
	}
	return oldest;
}

static void finish(struct core *core, struct core_slotted_job *slot, enum core_job_state state)
{
	slot->job.state = state;
	slot->finished = ++core->nr_finished;
	slot->ask = slot->cancel = false;
	if (slot->internal)
		slot->id = 0;
}

static int start(struct core *core, uint64_t root, uint64_t pages, bool internal, uint64_t *ret_job)
{
	struct core_slotted_job *slot;
	struct engine_view view;

	if (pages == 0 || pages > PAGES_UNLIMITED)
		return -EINVAL;
	if (engine_view(core->engine, root, &view) < 0)
		return -ENOENT;
	if (!core->connected || core->blind)
		return -ENOTCONN;
	slot = place(core);
	if (!slot)
		return -EAGAIN;
	*slot = (struct core_slotted_job){
		.id = core->next_job++,
		.job = { .root = root, .wanted = pages, .state = CORE_JOB_RUNNING },
		.ask = true,
		.internal = internal,
	};
	core->changed = true;
	*ret_job = slot->id;
	return 0;
}

int core_reclaim(struct core *core, uint64_t root, uint64_t pages, uint64_t *ret_job)
{
	return start(core, root, pages, false, ret_job);
}

void core_reclaim_cancel(struct core *core, uint64_t job)
{
	struct core_slotted_job *slot = find(core, job);

	if (!slot || slot->job.state != CORE_JOB_RUNNING)
		return;
	if (slot->ask) { /* the engine never heard of it */
		finish(core, slot, CORE_JOB_CANCELLED);
		return;
	}
	/* No tick comes before all is seen again: who waits is told now, the engine then. */
	if (core->blind)
		finish(core, slot, CORE_JOB_CANCELLED);
	slot->cancel = true;
	core->changed = true;
}

int core_job(const struct core *core, uint64_t job, struct core_job *ret_job)
{
	const struct core_slotted_job *slot = find(core, job);
	struct engine_view view;

	if (!slot)
		return -ENOENT;
	*ret_job = slot->job;
	if (slot->job.state == CORE_JOB_RUNNING &&
		engine_view(core->engine, slot->job.root, &view) == 0)
		ret_job->owed = view.owed;
	return 0;
}

void core_room(struct core *core, uint64_t group, uint64_t *job)
{
	struct core_job asked;

	if (core_job(core, *job, &asked) < 0 || asked.state != CORE_JOB_RUNNING)
		start(core, group, CORE_ROOM_PAGES, true, job);
}

bool core_job_is_internal(const struct core *core, const struct engine_event *event)
{
	const struct core_slotted_job *slot;

	if (event->type != ENGINE_EVENT_JOB_DONE && event->type != ENGINE_EVENT_JOB_SHORT &&
		event->type != ENGINE_EVENT_JOB_CANCELLED)
		return false;
	slot = find(core, event->id);
	return slot && slot->internal;
}

void core_job_requests(struct core *core, struct core_input *input)
{
	for (size_t i = 0; i < CORE_JOBS; i++) {
		const struct core_slotted_job *slot = &core->jobs[i];

		if (slot->ask)
			input->requests[input->nr_requests++] = (struct engine_request){
				.type = ENGINE_RECLAIM,
				.job = slot->id,
				.root = slot->job.root,
				.pages = slot->job.wanted,
			};
		if (slot->cancel)
			input->requests[input->nr_requests++] =
				(struct engine_request){ .type = ENGINE_RECLAIM_CANCEL,
					.job = slot->id };
	}
}

/* Short of memory: all is asked once more. What it knows already it refuses, with another error. */
void core_job_told(struct core *core, int error)
{
	for (size_t i = 0; i < CORE_JOBS; i++) {
		struct core_slotted_job *slot = &core->jobs[i];
		struct engine_view view;

		if (!slot->ask && !slot->cancel)
			continue;
		if (error == -ENOMEM) {
			core->changed = true;
			continue;
		}
		/* The root went in between: nobody will say that the job has ended. */
		if (error && engine_view(core->engine, slot->job.root, &view) < 0)
			finish(core, slot, CORE_JOB_CANCELLED);
		slot->ask = slot->cancel = false;
	}
}

void core_job_event(struct core *core, const struct engine_event *event)
{
	struct core_slotted_job *slot;
	enum core_job_state state;

	switch (event->type) {
	case ENGINE_EVENT_JOB_DONE:
		state = CORE_JOB_DONE;
		break;
	case ENGINE_EVENT_JOB_SHORT:
		state = CORE_JOB_SHORT;
		break;
	case ENGINE_EVENT_JOB_CANCELLED:
		state = CORE_JOB_CANCELLED;
		break;
	default:
		return;
	}
	slot = find(core, event->id);
	if (!slot || slot->job.state != CORE_JOB_RUNNING)
		return;
	slot->job.came = event->b > 0 ? (uint64_t)event->b : 0;
	finish(core, slot, state);
}

void core_job_came(struct core *core, uint64_t job, uint64_t pages)
{
	struct core_slotted_job *slot = find(core, job);

	if (slot && slot->job.state == CORE_JOB_RUNNING)
		slot->job.came += pages;
}
