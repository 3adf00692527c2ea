/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the engine gets of a VM: its state and its sample, from what is known of it now; and the
 * lists by which the core finds VMs that have something to be told or called.
 */
#include <config.h>

#include "hv/core_internal.h"

/* How often its statistics can move, as far as we look. */
static uint64_t period_us(const struct core *core, const struct core_vm *vm)
{
	uint64_t period_s = vm->period_s ? vm->period_s : core->config.stats_period_s;
	uint64_t us = period_s > UINT64_MAX / 16 / 1000000 ? UINT64_MAX / 16 : period_s * 1000000;

	return us > core->config.vm_us ? us : core->config.vm_us;
}

bool core_vm_fresh(const struct core *core, const struct core_vm *vm, uint64_t now)
{
	return vm->moved && now - vm->moved_at < CORE_STALE_PERIODS * period_us(core, vm);
}

bool core_vm_watched(const struct core *core, const struct core_vm *vm, uint64_t now)
{
	return vm->readings >= 2 && now - vm->watched >= CORE_STALE_PERIODS * period_us(core, vm);
}

bool core_vm_stands_still(const struct core *core, const struct core_vm *vm, uint64_t now)
{
	return vm->still >= CORE_STALE_PERIODS &&
	       now - vm->still_since >= CORE_STALE_PERIODS * period_us(core, vm);
}

/* Statistics are on, were read, and never moved: nobody in the guest answers. */
static bool no_driver(const struct core *core, const struct core_vm *vm, uint64_t now)
{
	return !vm->driver && vm->period_s > 0 && core_vm_watched(core, vm, now);
}

/* Only what is free is told, by a guest that tells anything. */
static bool limited(const struct core_vm *vm)
{
	return vm->has_stats && (vm->stats.known & HV_STAT_UNUSED) &&
	       !(vm->stats.known & HV_STAT_USABLE);
}

static enum hv_job job_of(const struct core_vm *vm)
{
	return vm->listed_job ? vm->listed_job : vm->told_job;
}

/*
 * All states and when they apply; of those that do the first one counts: first what changes how
 * the VM is booked, then what allows nothing, then what is only shown.
 */
static uint32_t classify(const struct core *core, const struct core_vm *vm, uint64_t now,
	enum engine_vm_state *ret_first)
{
	uint32_t states = 0;
	enum hv_job job = job_of(vm);
	/* One that was never seen to run is coming in. */
	bool here = vm->ran && vm->run != HV_STARTING;
	const struct {
		enum engine_vm_state state;
		bool applies;
	} all[] = {
		{ ENGINE_VM_HUGE_PAGES, vm->kinds & HV_KIND_HUGE_PAGES },
		{ ENGINE_VM_INCOMING, !here && job == HV_JOB_MIGRATION },
		{ ENGINE_VM_POSTCOPY, job == HV_JOB_POSTCOPY },
		{ ENGINE_VM_PINNED, vm->kinds & HV_KIND_PINNED },
		{ ENGINE_VM_LOCKED, vm->kinds & HV_KIND_LOCKED },
		{ ENGINE_VM_ENCRYPTED, vm->kinds & HV_KIND_ENCRYPTED },
		{ ENGINE_VM_VIRTIO_MEM, vm->kinds & HV_KIND_VIRTIO_MEM },
		{ ENGINE_VM_NO_DEVICE, !vm->balloon },
		{ ENGINE_VM_NOT_ANSWERING, vm->lane.late },
		{ ENGINE_VM_MIGRATING, here && job == HV_JOB_MIGRATION },
		{ ENGINE_VM_SAVING, job == HV_JOB_SAVE },
		{ ENGINE_VM_SNAPSHOT, job == HV_JOB_SNAPSHOT },
		{ ENGINE_VM_ARRIVING, !here },
		{ ENGINE_VM_PAUSED, vm->run == HV_PAUSED },
		{ ENGINE_VM_BACKUP, job == HV_JOB_BACKUP },
		{ ENGINE_VM_ARRIVING, vm->arriving },
		{ ENGINE_VM_NO_DRIVER, no_driver(core, vm, now) },
		{ ENGINE_VM_THROTTLED, vm->process.throttle > 0 },
		{ ENGINE_VM_LIMITED, limited(vm) },
		{ ENGINE_VM_STRICT_NUMA, vm->kinds & HV_KIND_STRICT_NUMA },
		{ ENGINE_VM_RUNNING, true },
	};

	for (size_t i = sizeof(all) / sizeof(all[0]); i-- > 0;) {
		if (!all[i].applies)
			continue;
		states |= UINT32_C(1) << all[i].state;
		*ret_first = all[i].state;
	}
	return states;
}

enum engine_vm_state core_vm_state(const struct core *core, const struct core_vm *vm, uint64_t now)
{
	enum engine_vm_state first = ENGINE_VM_RUNNING;

	classify(core, vm, now, &first);
	return first;
}

uint32_t core_vm_states(const struct core *core, const struct core_vm *vm, uint64_t now)
{
	enum engine_vm_state first;

	return classify(core, vm, now, &first);
}

typedef bool convert_fn(uint64_t bytes, uint64_t *ret_pages);

/* Sets a figure and its bit; one that stands for "not told" stays unknown. */
static void put(struct vm_sample *sample, enum vm_figure figure, convert_fn *convert,
	uint64_t bytes, uint64_t *ret_pages)
{
	if (convert(bytes, ret_pages))
		sample->known |= figure;
}

static void put_process(struct vm_sample *sample, const struct hv_process *process)
{
	put(sample, VM_RESIDENT, core_pages_up, process->resident, &sample->resident);
	put(sample, VM_OVERHEAD, core_pages_up, process->overhead, &sample->overhead);
	if (process->swap_known)
		put(sample, VM_SWAPPED, core_pages_up, process->swapped, &sample->swapped);
}

/*
 * Statistics are up to a period old. What the guest took since, its process shows already: it is
 * not free any more, or a guest that grows would seem to have so much cold memory.
 */
static uint64_t less_grown(const struct core_vm *vm, uint64_t bytes)
{
	uint64_t usage = core_vm_usage(vm), grown;

	if (bytes == HV_UNLIMITED || usage == UINT64_MAX || usage <= vm->stats_usage)
		return bytes;
	grown = usage - vm->stats_usage;
	return bytes > grown ? bytes - grown : 0;
}

static void put_stats(struct vm_sample *sample, const struct core_vm *vm)
{
	const struct hv_stats *stats = &vm->stats;

	core_pages_up(vm->stats_actual, &sample->stats_actual);
	if (stats->known & HV_STAT_UNUSED)
		put(sample, VM_UNUSED, core_pages_down, less_grown(vm, stats->unused),
			&sample->unused);
	if (stats->known & HV_STAT_USABLE)
		put(sample, VM_USABLE, core_pages_down, less_grown(vm, stats->usable),
			&sample->usable);
	if (stats->known & HV_STAT_DISK_CACHES)
		put(sample, VM_DISK_CACHES, core_pages_down, stats->disk_caches,
			&sample->disk_caches);
	if (stats->known & HV_STAT_SWAP_IN)
		put(sample, VM_SWAP_IN, core_pages_down, stats->swap_in, &sample->swap_in);
}

/* No balloon leaves more than there is, whatever is said; and none leaves nothing. */
static uint64_t sensible_actual(const struct core_vm *vm)
{
	uint64_t maximum = core_bytes(vm->attrs.maximum);

	return vm->has_info && vm->actual > maximum ? maximum : vm->actual;
}

void core_vm_sample(const struct core *core, const struct core_vm *vm, uint64_t now,
	struct vm_sample *ret_sample)
{
	struct vm_sample sample = { .id = vm->id, .stale = !core_vm_fresh(core, vm, now) };

	if (vm->actual_known && vm->actual > 0)
		put(&sample, VM_ACTUAL, core_pages_down, sensible_actual(vm), &sample.actual);
	if (vm->process.known)
		put_process(&sample, &vm->process);
	if (vm->has_stats)
		put_stats(&sample, vm);
	core_agent_sample(vm, now, &sample);

	/* A figure counts as read after a target only where all figures are. */
	sample.applied_seq = vm->stats_seq;
	if (vm->process.known && vm->process_seq < sample.applied_seq)
		sample.applied_seq = vm->process_seq;
	*ret_sample = sample;
}

static bool same_lists(const struct vm_lists *a, const struct vm_lists *b)
{
	return a->active_anon == b->active_anon && a->inactive_anon == b->inactive_anon &&
	       a->active_file == b->active_file && a->inactive_file == b->inactive_file &&
	       a->swap_free == b->swap_free;
}

bool core_same_sample(const struct vm_sample *a, const struct vm_sample *b)
{
	return a->id == b->id && a->known == b->known && a->stale == b->stale &&
	       a->actual == b->actual && a->resident == b->resident && a->swapped == b->swapped &&
	       a->overhead == b->overhead && a->stats_actual == b->stats_actual &&
	       a->unused == b->unused && a->usable == b->usable &&
	       a->disk_caches == b->disk_caches && a->swap_in == b->swap_in &&
	       same_lists(&a->lists, &b->lists) && a->need == b->need &&
	       a->refaults == b->refaults && a->applied_seq == b->applied_seq;
}

bool core_same_knobs(const struct memcg_knobs *a, const struct memcg_knobs *b)
{
	return a->soft_limit == b->soft_limit && a->min == b->min && a->low == b->low &&
	       a->max == b->max;
}

/* But for the recorded ceiling, which is told with a new VM only. */
bool core_same_attrs(const struct engine_vm_attrs *a, const struct engine_vm_attrs *b)
{
	return a->maximum == b->maximum && a->act == b->act && a->guest_swap == b->guest_swap &&
	       a->agent == b->agent && a->trust == b->trust && a->reports == b->reports &&
	       a->agent_floor == b->agent_floor && a->paused == b->paused &&
	       a->max_rate == b->max_rate && a->autodeflate == b->autodeflate;
}

/* The engine was told all that is known. */
static bool is_told(const struct core *core, const struct core_vm *vm, uint64_t now)
{
	struct vm_sample sample;

	if (vm->again) /* it is told when it is due */
		return true;
	if (!vm->told.id || vm->drop || vm->cancel || vm->release || vm->has_result)
		return false;
	if (!core_same_knobs(&vm->knobs, &vm->told.knobs) ||
		!core_same_attrs(&vm->attrs, &vm->told.attrs) ||
		core_vm_state(core, vm, now) != vm->told.state || !vm->told.sampled)
		return false;
	core_vm_sample(core, vm, now, &sample);
	return core_same_sample(&sample, &vm->told.sample);
}

void core_vm_assess(struct core *core, struct core_vm *vm, uint64_t now)
{
	if (vm->gone || !vm->has_info)
		return;
	/* While its reports are new: an agent that ends tells of no list any more. */
	core_agent_attrs(vm, now);
	if (vm->arriving && vm->ran && vm->run == HV_RUNNING &&
		now - vm->arrived >= CORE_ARRIVE_US) {
		vm->arriving = false;
		core_say(core, CORE_LOG_NOTICE, vm,
			"no balloon statistics came for a minute after its start: it is taken as "
			"it is");
	}
	core_vm_drop_forbidden(core, vm, now);
	if (!is_told(core, vm, now))
		core_vm_dirty(core, vm);
}

void core_vm_dirty(struct core *core, struct core_vm *vm)
{
	core->changed = true;
	if (vm->dirty)
		return;
	vm->dirty = true;
	DL_APPEND2(core->dirty, vm, dirty_prev, dirty_next);
}

void core_vm_not_ready(struct core *core, struct core_vm *vm)
{
	if (vm->ready != CORE_READY_NOT)
		DL_DELETE2(core->ready[vm->ready], vm, ready_prev, ready_next);
	vm->ready = CORE_READY_NOT;
}

void core_vm_ready(struct core *core, struct core_vm *vm)
{
	const struct lane *lane = &vm->lane;
	enum core_ready ready = CORE_READY_NOT;

	if (!vm->gone && !lane->busy) {
		if (lane->want_info)
			ready = lane->want_target ? CORE_READY_INFO_URGENT : CORE_READY_INFO;
		else if (lane->want_target)
			ready = CORE_READY_URGENT;
		else if (lane->change || lane->want_attach || lane->want_period ||
			 lane->want_unthrottle || lane->want_stats)
			ready = CORE_READY_NORMAL;
	}
	if (vm->ready == ready)
		return;
	core_vm_not_ready(core, vm);
	vm->ready = ready;
	if (ready != CORE_READY_NOT)
		DL_APPEND2(core->ready[ready], vm, ready_prev, ready_next);
}
