/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "policy/workingset.h"

#include <string.h>

#define PAGES_PER_GIB (UINT64_C(1) << 18)

/* Of the page cache, what counts as cold where nothing tells the lists: an eighth. */
#define COLD_CACHE_FRACTION 8

/* Page structures take 64 bytes of each 4 KiB: no guest lives on less, whatever its agent says. */
#define AGENT_FLOOR_FRACTION 64

uint64_t workingset_ratio(uint64_t inactive, uint64_t active)
{
	uint64_t gb = (inactive + active) / PAGES_PER_GIB;

	return gb ? pages_int_sqrt(10 * gb) : 1;
}

uint64_t workingset_cold_list(uint64_t inactive, uint64_t active)
{
	uint64_t ratio = workingset_ratio(inactive, active);

	return pages_sub(inactive, (active + ratio - 1) / ratio);
}

static uint64_t percent_up(uint64_t pages, unsigned int percent)
{
	return pages_mul_div(pages, percent, 100) + (pages * percent % 100 ? 1 : 0);
}

uint64_t workingset_floor(const struct workingset_bounds *bounds, const struct workingset_vm *vm,
	const struct vm_sample *sample)
{
	bool free_only = vm_knows(sample, VM_UNUSED) && !vm_knows(sample, VM_USABLE);
	unsigned int percent = free_only ? bounds->floor_free_only_percent : bounds->floor_percent;
	uint64_t floor = percent_up(vm->maximum, percent);
	uint64_t told;

	if (!vm->agent || !vm->agent_floor)
		return floor;
	told = pages_max(vm->agent_floor, vm->maximum / AGENT_FLOOR_FRACTION);
	/* Where nothing else tells what it uses, that floor is it: the margin stands over it. */
	if (bounds->silent_gives && !(sample->known & (VM_USABLE | VM_UNUSED)) && !vm->guest_swap)
		told += workingset_margin(bounds, vm->maximum);
	told = pages_min(told, vm->maximum);
	if (told <= floor || vm->trust)
		return told;
	if (vm->soft_limit == PAGES_UNLIMITED)
		return floor;
	return pages_max(floor, pages_min(told, vm->soft_limit));
}

uint64_t workingset_margin(const struct workingset_bounds *bounds, uint64_t maximum)
{
	uint64_t margin =
		pages_max(percent_up(maximum, bounds->margin_percent), bounds->margin_at_least);

	return pages_min(margin, maximum / 4);
}

/* What lies free in the guest and is resident: the balloon takes it without anybody noticing. */
static uint64_t cold_free(const struct vm_sample *s, uint64_t usage)
{
	if (!vm_knows(s, VM_UNUSED))
		return 0;
	return pages_sub(s->unused, pages_sub(s->stats_actual, usage));
}

/* Where nothing tells the lists. */
static uint64_t estimate(const struct vm_sample *s)
{
	return vm_knows(s, VM_DISK_CACHES) ? s->disk_caches / COLD_CACHE_FRACTION : 0;
}

static uint64_t cold_lists(const struct workingset_vm *vm, const struct vm_lists *l)
{
	uint64_t pages = workingset_cold_list(l->inactive_file, l->active_file);

	if (vm->guest_swap)
		pages += pages_min(
			l->swap_free, workingset_cold_list(l->inactive_anon, l->active_anon));
	return pages;
}

static void assess_cold(
	const struct workingset_vm *vm, const struct vm_sample *s, struct workingset *set)
{
	uint64_t free = cold_free(s, set->usage), without = free + estimate(s);

	set->cold = without;
	if (vm->agent && vm_knows(s, VM_LISTS))
		set->cold = free + cold_lists(vm, &s->lists);
	set->cold = pages_min(set->cold, set->usage);
	without = pages_min(without, set->usage);
	if (!vm->trust)
		set->doubted = (uint32_t)pages_min(pages_sub(without, set->cold), UINT32_MAX);
}

void workingset_assess(const struct workingset_bounds *bounds, const struct workingset_vm *vm,
	const struct vm_sample *s, struct workingset *ret_set)
{
	struct workingset set;
	uint64_t usable;
	bool silent;

	memset(&set, 0, sizeof(set));
	set.floor = workingset_floor(bounds, vm, s);
	set.margin = workingset_margin(bounds, vm->maximum);
	set.keep = set.floor;
	set.actual = vm_knows(s, VM_ACTUAL) ? s->actual : vm->maximum;
	if (vm_knows(s, VM_RESIDENT | VM_SWAPPED)) {
		set.usage_known = true;
		set.cost = pages_min(s->resident + s->swapped, vm->maximum);
		set.usage = pages_min(set.cost, set.actual);
		/* actual may be over a maximum that is not known yet: memory was plugged. */
		set.resident = pages_min(s->resident, set.usage);
	}
	set.used_known = !s->stale && (s->known & (VM_USABLE | VM_UNUSED));
	if (set.used_known) {
		usable = vm_knows(s, VM_USABLE) ? s->usable : s->unused;
		set.guest_used = pages_sub(s->stats_actual, usable);
		set.little_available = pages_sub(set.actual, set.guest_used) < set.margin;
		if (!(vm->guest_swap && vm->agent))
			set.keep = pages_max(set.keep, set.guest_used + set.margin);
	}
	silent = bounds->silent_gives && !s->stale && !(s->known & (VM_USABLE | VM_UNUSED));
	set.donor_known = set.usage_known && (set.used_known || silent) && vm_knows(s, VM_ACTUAL);
	if (set.donor_known)
		assess_cold(vm, s, &set);
	*ret_set = set;
}
