/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a scenario may look at, by name; see figure.h. */
#include <config.h>

#include "hv/sim/figure.h"

#include <string.h>

#include "policy/pages.h"

static int64_t signed_bytes(uint64_t bytes)
{
	return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

static int64_t bytes_of(uint64_t pages)
{
	return pages > INT64_MAX / POLICY_PAGE_SIZE ? INT64_MAX
						    : (int64_t)(pages * POLICY_PAGE_SIZE);
}

#define SIM_FIGURE(NAME, EXPR)                                                                     \
	static bool read_##NAME(const struct figure_reading *r, int64_t *ret_value)                \
	{                                                                                          \
		if (!r->simulated)                                                                 \
			return false;                                                              \
		*ret_value = signed_bytes(EXPR);                                                   \
		return true;                                                                       \
	}
#define CORE_FIGURE(NAME, EXPR)                                                                    \
	static bool read_##NAME(const struct figure_reading *r, int64_t *ret_value)                \
	{                                                                                          \
		if (!r->seen)                                                                      \
			return false;                                                              \
		*ret_value = EXPR;                                                                 \
		return true;                                                                       \
	}
#define POOL_FIGURE(NAME, EXPR)                                                                    \
	static bool read_##NAME(const struct figure_reading *r, int64_t *ret_value)                \
	{                                                                                          \
		if (!r->status.pool.known)                                                         \
			return false;                                                              \
		*ret_value = EXPR;                                                                 \
		return true;                                                                       \
	}

SIM_FIGURE(actual, guest_actual(r->vm.guest))
SIM_FIGURE(target, r->vm.guest->target)
SIM_FIGURE(targets, r->vm.targets)
SIM_FIGURE(recorded, r->vm.ceiling)
SIM_FIGURE(usage, guest_usage(r->vm.guest))
SIM_FIGURE(resident, guest_resident(r->vm.guest))
SIM_FIGURE(swapped, r->vm.guest->host_swapped)
SIM_FIGURE(usable, r->stats.usable)
SIM_FIGURE(unused, r->stats.unused)
SIM_FIGURE(cache, r->stats.disk_caches)
SIM_FIGURE(hot, guest_region(r->vm.guest, GUEST_HOT) + guest_region(r->vm.guest, GUEST_HOT_FILES))
SIM_FIGURE(idle, guest_region(r->vm.guest, GUEST_IDLE))
SIM_FIGURE(swap_in, r->vm.guest->swap_in)
SIM_FIGURE(refaults, r->vm.guest->memory.refaults)
SIM_FIGURE(wanted, r->vm.guest->wanted)
SIM_FIGURE(charged, r->vm.charged)
SIM_FIGURE(over, r->vm.paging->over *GUEST_PAGE)
SIM_FIGURE(waited, r->vm.paging->waited)
SIM_FIGURE(majfaults, guest_majfaults(r->vm.guest))
SIM_FIGURE(dirty, r->vm.guest->memory.dirty)
SIM_FIGURE(swapped_most, r->vm.guest->swapped_most)
SIM_FIGURE(ooms, r->vm.guest->ooms)
SIM_FIGURE(inactive_file, r->vm.guest->memory.sums[MEMORY_INACTIVE_FILE])
SIM_FIGURE(active_file, r->vm.guest->memory.sums[MEMORY_ACTIVE_FILE])
SIM_FIGURE(inactive_anon, r->vm.guest->memory.sums[MEMORY_INACTIVE_ANON])
SIM_FIGURE(active_anon, r->vm.guest->memory.sums[MEMORY_ACTIVE_ANON])
CORE_FIGURE(ceiling, bytes_of(r->core.engine.ceiling))
CORE_FIGURE(soft_limit, bytes_of(r->core.engine.knobs.soft_limit))
CORE_FIGURE(min, bytes_of(r->core.engine.knobs.min))
CORE_FIGURE(keep, bytes_of(r->core.engine.set.keep))
CORE_FIGURE(floor, bytes_of(r->core.engine.set.floor))
CORE_FIGURE(excess, bytes_of(r->core.engine.excess))
CORE_FIGURE(owed, bytes_of(r->core.engine.owed))
CORE_FIGURE(asks, signed_bytes(r->core.engine.asks))
CORE_FIGURE(failures, signed_bytes(r->core.engine.failures))
CORE_FIGURE(samples, signed_bytes(r->core.samples))
CORE_FIGURE(answering, r->core.answering)
CORE_FIGURE(capped, r->core.engine.capped)
CORE_FIGURE(state, r->core.engine.state)
CORE_FIGURE(booked, bytes_of(r->core.engine.usage))
POOL_FIGURE(free, (r->status.pool.free * (int64_t)POLICY_PAGE_SIZE))
POOL_FIGURE(used, bytes_of(r->status.pool.used))
POOL_FIGURE(wm_min, bytes_of(r->status.pool.wm_min))
POOL_FIGURE(wm_low, bytes_of(r->status.pool.wm_low))
POOL_FIGURE(wm_high, bytes_of(r->status.pool.wm_high))
POOL_FIGURE(need, bytes_of(r->status.pool.need))
POOL_FIGURE(short_pages, bytes_of(r->status.pool.short_pages))
POOL_FIGURE(hung, bytes_of(r->status.pool.hung))

/* Not known of a VM that was never asked: it is above and below nothing. */
static bool read_lowest_target(const struct figure_reading *r, int64_t *ret_value)
{
	if (!r->simulated || r->vm.lowest_target == UINT64_MAX)
		return false;
	*ret_value = signed_bytes(r->vm.lowest_target);
	return true;
}

/* By how much the target was cut; 0 where none was set. */
static bool read_cut(const struct figure_reading *r, int64_t *ret_value)
{
	uint64_t ceiling;

	if (!r->seen || !r->simulated)
		return false;
	ceiling = r->core.engine.ceiling * POLICY_PAGE_SIZE;
	*ret_value =
		signed_bytes(ceiling > r->vm.guest->target ? ceiling - r->vm.guest->target : 0);
	return true;
}

/* Milliseconds that its first program took; not known before it is over. */
static bool read_elapsed(const struct figure_reading *r, int64_t *ret_value)
{
	uint64_t us = r->simulated && r->vm.guest->nr_programs
			      ? program_elapsed_us(&r->vm.guest->programs[0])
			      : 0;

	*ret_value = signed_bytes(us / 1000);
	return us > 0;
}

static bool read_swapped_out(const struct figure_reading *r, int64_t *ret_value)
{
	*ret_value = signed_bytes(r->host.swapped_out);
	return true;
}

static bool read_beyond(const struct figure_reading *r, int64_t *ret_value)
{
	*ret_value = signed_bytes(r->host.beyond);
	return true;
}

static bool read_host_used(const struct figure_reading *r, int64_t *ret_value)
{
	*ret_value = signed_bytes(r->host.used);
	return true;
}

static const struct figure figures[] = {
	/* of the hypervisor */
	{ "vm", "actual", true, read_actual },
	{ "vm", "target", true, read_target },		     /* of the balloon, whoever set it */
	{ "vm", "lowest-target", true, read_lowest_target }, /* ballast ever set */
	{ "vm", "targets", false, read_targets },	     /* that ballast set */
	{ "vm", "recorded", true, read_recorded },	     /* ceiling, in live metadata */
	{ "vm", "usage", true, read_usage }, { "vm", "resident", true, read_resident },
	{ "vm", "swapped", true, read_swapped }, /* by the host */
	{ "vm", "usable", true, read_usable }, { "vm", "unused", true, read_unused },
	{ "vm", "cache", true, read_cache }, { "vm", "hot", true, read_hot },
	{ "vm", "idle", true, read_idle }, { "vm", "swap-in", true, read_swap_in },
	{ "vm", "refaults", true, read_refaults },
	{ "vm", "wanted", true, read_wanted },		   /* by its work, and not there */
	{ "vm", "elapsed", false, read_elapsed },	   /* milliseconds, of its first program */
	{ "vm", "majfaults", false, read_majfaults },	   /* of its programs */
	{ "vm", "swapped-most", true, read_swapped_most }, /* by guest and host, at one time */
	{ "vm", "ooms", false, read_ooms }, { "vm", "dirty", true, read_dirty },
	{ "vm", "inactive-file", true, read_inactive_file },
	{ "vm", "active-file", true, read_active_file },
	{ "vm", "inactive-anon", true, read_inactive_anon },
	{ "vm", "active-anon", true, read_active_anon },
	{ "vm", "charged", true, read_charged }, /* page by page, as is what follows */
	{ "vm", "over", true, read_over },	 /* a max, as no room came in time */
	{ "vm", "waited", false, read_waited },	 /* faults, for room */
	/* of the daemon */
	{ "vm", "ceiling", true, read_ceiling },
	{ "vm", "cut", true, read_cut }, /* ceiling less target */
	{ "vm", "soft-limit", true, read_soft_limit }, { "vm", "min", true, read_min },
	{ "vm", "floor", true, read_floor }, { "vm", "keep", true, read_keep },
	{ "vm", "excess", true, read_excess }, { "vm", "owed", true, read_owed },
	{ "vm", "asks", false, read_asks }, { "vm", "failures", false, read_failures },
	{ "vm", "samples", false, read_samples }, { "vm", "answering", false, read_answering },
	{ "vm", "capped", false, read_capped },
	{ "vm", "state", false, read_state },  /* or its name with - for each space */
	{ "vm", "booked", true, read_booked }, /* what it counts in the pool */
	{ "pool", "free", true, read_free }, { "pool", "used", true, read_used },
	{ "pool", "wm-min", true, read_wm_min }, { "pool", "wm-low", true, read_wm_low },
	{ "pool", "wm-high", true, read_wm_high }, { "pool", "need", true, read_need },
	{ "pool", "short", true, read_short_pages }, { "pool", "hung", true, read_hung },
	{ "host", "used", true, read_host_used },
	{ "host", "swapped-out", true, read_swapped_out }, /* in all */
	{ "host", "beyond", true, read_beyond },	   /* most, with nothing left to swap */
};

#define FIGURES_NR (sizeof figures / sizeof figures[0])

const struct figure *figure_find(const char *subject, const char *name)
{
	for (size_t i = 0; i < FIGURES_NR; i++)
		if (!strcmp(figures[i].subject, subject) && !strcmp(figures[i].name, name))
			return &figures[i];
	return NULL;
}

bool figure_read(const struct figure *figure, const char *vm, const struct figure_world *world,
	int64_t *ret_value)
{
	struct figure_reading reading = { 0 };
	char uuid[HV_UUID_TEXT];
	uint64_t id;

	/* The host's and the daemon's own figures are sums over all VMs: only who needs them pays.
	 */
	if (!strcmp(figure->subject, "pool"))
		core_status(world->core, &reading.status);
	if (!strcmp(figure->subject, "host"))
		sim_host_view(world->sim, &reading.host);
	if (vm && sim_vm_view(world->sim, vm, &reading.vm) == 0) {
		reading.simulated = true;
		guest_stats_now(reading.vm.guest, &reading.stats);
		/* By name the core would look through all. */
		hv_uuid_format(reading.vm.uuid, uuid);
		reading.seen = core_find(world->core, uuid, &id) == 0 &&
			       core_vm(world->core, id, &reading.core) == 0;
	}
	return figure->read(&reading, ret_value);
}
