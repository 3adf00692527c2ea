/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the simulated hypervisor answers calls; see sim_internal.h.
 */
#include <config.h>

#include "hv/sim/sim_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *sim_copy_text(const char *text, int *error)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		*error = -ENOMEM;
	return copy;
}

struct hv_knobs sim_copy_knobs(const struct hv_knobs *knobs, int *error)
{
	struct hv_knobs copy = *knobs;

	copy.group = sim_copy_text(knobs->group, error);
	return copy;
}

static enum hv_run_state run_state(const struct sim_guest *vm)
{
	if (vm->guest.state == GUEST_OFF)
		return HV_OFF;
	if (vm->incoming)
		return HV_STARTING;
	return vm->guest.state == GUEST_PAUSED ? HV_PAUSED : HV_RUNNING;
}

/* A live migration does not show in a state. */
static enum hv_job listed_job(const struct sim_guest *vm)
{
	if (vm->incoming)
		return HV_JOB_MIGRATION;
	return vm->job == HV_JOB_POSTCOPY || vm->guest.state == GUEST_PAUSED ? vm->job
									     : HV_JOB_NONE;
}

/* ---- calls ---- */

static int answer_list(struct hv *hv, struct hv_event *event)
{
	size_t nr = HASH_CNT(by_uuid, hv->by_uuid);
	int r = 0;

	event->type = HV_EVENT_LISTED;
	event->listed.vms = calloc(nr ? nr : 1, sizeof *event->listed.vms);
	if (!event->listed.vms)
		return -ENOMEM;
	for (struct sim_guest *vm = hv->by_uuid; vm; vm = vm->by_uuid.next)
		if (!vm->paging.left)
			event->listed.vms[event->listed.nr++] = (struct hv_listed){ vm->uuid,
				sim_copy_text(vm->name, &r), run_state(vm), listed_job(vm) };
	return r;
}

static int answer_info(const struct sim_guest *vm, struct hv_event *event)
{
	int r = 0;

	event->info = (struct hv_info){
		.uuid = vm->uuid,
		.name = sim_copy_text(vm->name, &r),
		.maximum = vm->guest.params.maximum,
		.ceiling = vm->ceiling,
		.balloon = vm->guest.params.balloon,
		.reporting = vm->guest.params.reporting,
		.autodeflate = vm->guest.params.deflate_on_oom,
		.kinds = vm->kinds,
		.stats_period_s = vm->guest.period_us / SIM_US_PER_S,
		.metadata = sim_copy_knobs(&vm->metadata, &r),
		.memtune = sim_copy_knobs(&vm->memtune, &r),
		.partition = sim_copy_text(vm->partition, &r),
	};
	return r;
}

static void answer_stats(struct sim_guest *vm, struct hv_stats *stats)
{
	const struct guest_stats *told = &vm->guest.stats;

	*stats = (struct hv_stats){ .known = HV_STAT_ACTUAL,
		.actual = guest_actual(&vm->guest),
		.job_known = true,
		.job = vm->job };
	if (vm->partial_every && ++vm->stats_calls % vm->partial_every == 0)
		return;
	stats->known |= HV_STAT_LAST_UPDATE;
	if (!told->taken)
		return; /* no driver was ever seen: last_update stays 0 */
	stats->last_update = told->taken_at / SIM_US_PER_S + 1;
	stats->known |= HV_STAT_UNUSED;
	stats->unused = told->unused;
	if (vm->guest.params.free_only)
		return;
	stats->known |= HV_STAT_USABLE | HV_STAT_DISK_CACHES | HV_STAT_SWAP_IN;
	stats->usable = told->usable;
	stats->disk_caches = told->disk_caches;
	stats->swap_in = told->swap_in;
}

static int answer_process(struct hv *hv, struct hv_event *event)
{
	size_t nr = HASH_CNT(by_uuid, hv->by_uuid);

	event->process.vms = calloc(nr ? nr : 1, sizeof *event->process.vms);
	if (!event->process.vms)
		return -ENOMEM;
	for (struct sim_guest *vm = hv->by_uuid; vm; vm = vm->by_uuid.next) {
		if (vm->guest.state == GUEST_OFF || vm->paging.left)
			continue;
		event->process.vms[event->process.nr++] = (struct hv_process){ .uuid = vm->uuid,
			.known = true,
			.swap_known = true,
			.resident = vm->kinds & HV_KIND_HUGE_PAGES ? 0 : guest_resident(&vm->guest),
			.swapped = vm->guest.host_swapped,
			.overhead = vm->overhead,
			.started = vm->started,
			.throttle = vm->throttle,
			.paging = vm->paging.counts };
	}
	return 0;
}

static int set_target(struct hv *hv, struct sim_guest *vm, const struct hv_call *call)
{
	if (!vm->guest.params.balloon)
		return -EOPNOTSUPP;
	if (call->target > vm->guest.params.maximum)
		return -EINVAL;
	if (vm->job != HV_JOB_NONE && vm->job != HV_JOB_BACKUP)
		return -EBUSY;
	vm->ceiling = call->ceiling;
	vm->targets++;
	if (call->target < vm->lowest_target)
		vm->lowest_target = call->target;
	guest_set_target(&vm->guest, hv->now, call->target);
	return 0;
}

/* As a whole: what does not fit together is not taken at all. */
static int change_knobs(struct hv *hv, struct sim_guest *vm, const struct hv_knobs_change *change)
{
	struct hv_knobs knobs;
	int r;

	if (!change)
		return -EINVAL;
	r = hv_knobs_copy(&vm->metadata, &knobs);
	if (r < 0)
		return r;
	r = hv_change_apply(change, &knobs);
	if (r == 0 && knobs.has_min && knobs.has_max && knobs.min > knobs.max)
		r = -EINVAL;
	if (r < 0) {
		hv_knobs_clear(&knobs);
		return r;
	}
	hv_knobs_clear(&vm->metadata);
	vm->metadata = knobs;
	sim_tell_vm(hv, HV_EVENT_CHANGED, vm, 0);
	return 0;
}

uint64_t sim_host_used(const struct hv *hv)
{
	uint64_t used = hv->host.others;

	for (const struct sim_guest *vm = hv->by_uuid; vm; vm = vm->by_uuid.next)
		if (vm->guest.state != GUEST_OFF)
			used += vm->overhead +
				(vm->kinds & HV_KIND_HUGE_PAGES ? 0 : guest_resident(&vm->guest));
	return used;
}

static int run_vm_call(struct hv *hv, const struct hv_call *call, struct hv_event *event)
{
	struct sim_guest *vm;

	HASH_FIND(by_uuid, hv->by_uuid, &call->uuid, sizeof call->uuid, vm);
	if (!vm)
		return -ENOENT;
	guest_advance(&vm->guest, hv->now);
	if (call->type != HV_STATS && call->type != HV_INFO)
		hv->guests_at = 0;
	if (call->type == HV_INFO)
		return answer_info(vm, event);
	if (call->type == HV_RECLAIM)
		return sim_agent_reclaim(vm, call);
	if (call->type == HV_ATTACH)
		return -EOPNOTSUPP;
	if (call->type == HV_KNOBS)
		return change_knobs(hv, vm, call->change);
	if (vm->guest.state == GUEST_OFF)
		return -ESRCH;
	if (call->type == HV_UNTHROTTLE) {
		vm->throttle = 0;
		return 0;
	}
	if (call->type == HV_TARGET)
		return set_target(hv, vm, call);
	if (!vm->guest.params.balloon)
		return -EOPNOTSUPP;
	if (call->type == HV_STATS)
		answer_stats(vm, &event->stats);
	else
		guest_set_period(&vm->guest, hv->now, call->period_s * SIM_US_PER_S);
	return 0;
}

static bool hangs(const struct hv *hv, const struct hv_call *call)
{
	struct sim_guest *vm;

	if (call->type != HV_STATS && call->type != HV_PERIOD && call->type != HV_TARGET &&
		call->type != HV_KNOBS)
		return false;
	HASH_FIND(by_uuid, hv->by_uuid, &call->uuid, sizeof call->uuid, vm);
	return vm && vm->guest.state != GUEST_OFF && vm->guest.stopped;
}

void sim_answer(struct hv *hv, const struct sim_item *item)
{
	const struct hv_call *call = &item->call;
	struct hv_event event = {
		.type = hv_answer_of(call->type), .token = call->token, .uuid = call->uuid
	};
	bool own = call->type == HV_PROCESS || call->type == HV_HOST;
	uint64_t used;

	if (hv->up && hangs(hv, call)) {
		if (hv->nr_hung < hv->hung_size || sim_items_grow(&hv->hung, &hv->hung_size) == 0) {
			hv->hung[hv->nr_hung++] = *item;
			return;
		}
		event.error = -ENOMEM;
	} else if (!own && !hv->up) {
		event.error = -ENOTCONN;
	} else if (call->type == HV_LIST) {
		event.error = answer_list(hv, &event);
	} else if (call->type == HV_PROCESS) {
		event.error = answer_process(hv, &event);
	} else if (call->type == HV_HOST) {
		used = sim_host_used(hv);
		event.host = (struct hv_host){ .known = hv->host.total > 0,
			.total = hv->host.total,
			.available = used < hv->host.total ? hv->host.total - used : 0 };
	} else {
		event.error = run_vm_call(hv, call, &event);
		if (call->type == HV_RECLAIM && !event.error)
			return; /* when its agent answers */
	}
	hv->nr_calls--;
	if (event.error) {
		struct hv_event failed = { .type = event.type,
			.token = event.token,
			.uuid = event.uuid,
			.error = event.error };

		event.error = 0;
		hv_event_clear(&event);
		event = failed;
	}
	sim_tell(hv, &event);
}

/* Calls of a guest that goes on, or of all where the connection is lost, return. */
void sim_release_hung(struct hv *hv, uint64_t delay)
{
	size_t nr = hv->nr_hung;

	hv->nr_hung = 0;
	for (size_t i = 0; i < nr; i++) {
		struct sim_item item = hv->hung[i];

		if (hv->up && hangs(hv, &item.call)) {
			hv->hung[hv->nr_hung++] = item;
			continue;
		}
		item.due = hv->now + delay;
		if (sim_heap_add(hv, &item) < 0)
			hv->hung[hv->nr_hung++] = item;
	}
}
