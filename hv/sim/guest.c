/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest's life, its statistics and its time; see guest.h. What moves in a step is in
 * guest_step.c; sim.c puts guests on a host and behind the contract of a backend.
 */
#include <config.h>

#include "hv/sim/guest_internal.h"

#include <assert.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
/* QEMU sends no more balloon events than that. */
#define EVENT_US GUEST_US_PER_S

void guest_params_default(struct guest_params *ret_params)
{
	/*
	 * Speeds as they were measured on a Linux 6.1 guest under QEMU 7.2: 100 MiB inflated in
	 * 1 to 2 s when idle and deflated in 0.25 s; page cache and swap slow the balloon down
	 * (120 MB busy in 110 MiB: 3.5 s).
	 */
	*ret_params = (struct guest_params){
		.fixed = 60 * MIB,
		.unseen = 36 * MIB, /* MemTotal is about actual - 36 MiB */
		.reserve = 4 * MIB,
		.inflate_free = 70 * MIB,
		.inflate_cache = 40 * MIB,
		.inflate_swap = 10 * MIB,
		.deflate = 400 * MIB,
		.disk = 100 * MIB,
		.freed = 1024 * MIB,  /* clean page cache, by memory.reclaim */
		.reported = 36 * MIB, /* 363 -> 220 MB in 4 s */
		.lag_us = 20000,
		.balloon = true,
		.driver = true,
	};
}

uint64_t guest_actual(const struct guest *guest)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < GUEST_KIND_NR; i++)
		sum += guest->kinds[i];
	return sum + memory_used(&guest->memory);
}

uint64_t guest_region(const struct guest *guest, enum guest_region region)
{
	return guest->memory.regions[region].resident;
}

uint64_t guest_majfaults(const struct guest *guest)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < guest->nr_programs; i++)
		sum += (uint64_t)guest->programs[i].faults;
	return sum;
}

uint64_t guest_usage(const struct guest *guest)
{
	return guest_actual(guest) - guest->kinds[GUEST_UNTOUCHED];
}

uint64_t guest_resident(const struct guest *guest)
{
	return guest_usage(guest) - guest->host_swapped;
}

uint64_t guest_idle_memory(const struct guest *guest)
{
	return sub(idle_touched(guest), guest->host_swapped);
}

static const enum memory_use region_uses[GUEST_REGIONS] = { [GUEST_HOT] = MEMORY_ANON,
	[GUEST_IDLE] = MEMORY_ANON,
	[GUEST_HOT_FILES] = MEMORY_MAPPED,
	[GUEST_FILES] = MEMORY_ONCE };

static bool runs(const struct guest *guest)
{
	return guest->state == GUEST_RUNNING && !guest->stopped;
}

void guest_init(struct guest *guest, const struct guest_params *params)
{
	*guest = (struct guest){ .params = *params, .disk = { .rate = 1 } };
	memory_init(&guest->memory);
	guest->memory.activates = params->activates;
	for (unsigned int i = 0; i < GUEST_REGIONS; i++)
		memory_region_new(&guest->memory, region_uses[i]);
	guest->memory.regions[GUEST_HOT].rate = guest->memory.regions[GUEST_HOT_FILES].rate =
		GUEST_HOT_TOUCHES_PER_S;
	guest->target = params->maximum;
	guest->driver_at = GUEST_NEVER;
	guest->quiet = true;
}

void guest_start(struct guest *guest, uint64_t now, uint64_t driver_us)
{
	const struct guest_params *p = &guest->params;
	const uint64_t used[GUEST_REGIONS] = { p->hot, p->idle, p->cache_hot, p->cache_cold };
	uint64_t *kinds = guest->kinds, period_us = guest->period_us;
	uint64_t left = p->maximum, part;

	guest_init(guest, &guest->params);
	kinds[GUEST_FIXED] = min_u64(page_down(p->fixed), left);
	left -= kinds[GUEST_FIXED];
	for (unsigned int i = 0; i < GUEST_REGIONS; i++) {
		part = min_u64(page_down(used[i]), left);
		memory_add(&guest->memory, i, part, i == GUEST_HOT || i == GUEST_HOT_FILES, false);
		left -= part;
	}
	kinds[GUEST_FREE] = min_u64(page_down(p->free), left);
	kinds[GUEST_UNTOUCHED] = left - kinds[GUEST_FREE];
	guest->state = GUEST_RUNNING;
	guest->clock = now;
	guest->quiet = false;
	guest->told_actual = p->maximum;
	guest->told_at = now;
	guest->driver_at = p->balloon && p->driver ? now + driver_us : GUEST_NEVER;
	guest_set_period(guest, now, period_us);
}

void guest_off(struct guest *guest)
{
	guest_init(guest, &guest->params);
}

void guest_reboot(struct guest *guest, uint64_t now, uint64_t driver_us)
{
	uint64_t usage = guest_usage(guest), swapped = guest->host_swapped;
	struct guest old = *guest;
	uint64_t *kinds = guest->kinds;

	/* QEMU frees nothing at a reset: what was touched stays; the balloon's pages are new. */
	guest_init(guest, &old.params);
	guest->state = old.state;
	guest->stopped = old.stopped;
	guest->clock = old.clock;
	guest->target = old.target;
	guest->move_at = old.move_at;
	guest->period_us = old.period_us;
	guest->stats = old.stats;
	guest->told_actual = old.told_actual;
	guest->told_at = old.told_at;
	kinds[GUEST_FIXED] = guest->params.fixed;
	kinds[GUEST_FREE] = sub(usage, guest->params.fixed);
	kinds[GUEST_UNTOUCHED] = guest->params.maximum - kinds[GUEST_FIXED] - kinds[GUEST_FREE];
	guest->host_swapped = min_u64(swapped, kinds[GUEST_FREE]);
	guest->quiet = false;
	guest->stats_at = GUEST_NEVER; /* old until the driver is there again */
	guest->driver_at =
		guest->params.balloon && guest->params.driver ? now + driver_us : GUEST_NEVER;
	if (guest->period_us && guest->driver_at != GUEST_NEVER)
		guest->stats_at = guest->driver_at;
}

void guest_pause(struct guest *guest, uint64_t now)
{
	guest_advance(guest, now);
	if (guest->state == GUEST_RUNNING)
		guest->state = GUEST_PAUSED;
}

static void stats_again(struct guest *guest, uint64_t now)
{
	if (guest->period_us && guest->driver_at != GUEST_NEVER && guest->stats_at < now)
		guest->stats_at = now;
}

void guest_resume(struct guest *guest, uint64_t now)
{
	guest_advance(guest, now);
	if (guest->state != GUEST_PAUSED)
		return;
	guest->state = GUEST_RUNNING;
	guest->quiet = false;
	stats_again(guest, now);
}

void guest_plug(struct guest *guest, uint64_t bytes)
{
	bytes = page_down(bytes);
	guest->params.maximum += bytes;
	guest->target += bytes;
	if (guest->state != GUEST_OFF)
		guest->kinds[GUEST_UNTOUCHED] += bytes;
}

void guest_touch_all(struct guest *guest)
{
	guest->kinds[GUEST_FREE] += guest->kinds[GUEST_UNTOUCHED];
	guest->kinds[GUEST_UNTOUCHED] = 0;
}

void guest_stop(struct guest *guest, uint64_t now)
{
	guest_advance(guest, now);
	guest->stopped = true;
}

void guest_wake(struct guest *guest, uint64_t now)
{
	guest_advance(guest, now);
	guest->stopped = false;
	guest->quiet = false;
	stats_again(guest, now);
}

void guest_set_target(struct guest *guest, uint64_t now, uint64_t target)
{
	guest->target = min_u64(page_down(target), guest->params.maximum);
	guest->move_at = now + guest->params.lag_us;
	guest->quiet = false;
}

void guest_set_period(struct guest *guest, uint64_t now, uint64_t period_us)
{
	guest->period_us = period_us;
	guest->stats_at = GUEST_NEVER;
	if (period_us && guest->driver_at != GUEST_NEVER)
		guest->stats_at = (guest->driver_at > now ? guest->driver_at : now) + period_us;
}

bool guest_work(struct guest *guest, enum guest_work_type type, uint64_t bytes, uint64_t rate)
{
	if (guest->nr_works == GUEST_WORKS_MAX)
		return false;
	guest->works[guest->nr_works++] =
		(struct guest_work){ .type = type, .left = page_down(bytes), .rate = rate };
	guest->quiet = false;
	return true;
}

/* What is there of one region, and what was evicted, is another's. */
static void becomes(struct guest *guest, enum guest_region from, enum guest_region to)
{
	struct memory *m = &guest->memory;
	uint64_t out = m->regions[from].out;

	memory_add(m, to, memory_remove(m, from, UINT64_MAX), false, false);
	m->regions[from].out = 0;
	if (m->regions[to].use == MEMORY_ANON)
		m->regions[to].out += out;
}

void guest_idle(struct guest *guest)
{
	guest->nr_works = 0;
	for (unsigned int i = 0; i < guest->nr_programs; i++)
		program_end(&guest->programs[i], guest);
	becomes(guest, GUEST_HOT, GUEST_IDLE);
	becomes(guest, GUEST_HOT_FILES, GUEST_FILES);
	guest->quiet = false;
}

bool guest_run(struct guest *guest, const struct program_params *params)
{
	if (guest->state == GUEST_OFF || guest->nr_programs == GUEST_PROGRAMS_MAX)
		return false;
	program_start(&guest->programs[guest->nr_programs++], guest, params);
	guest->quiet = false;
	return true;
}

static void note_swapped(struct guest *guest)
{
	uint64_t swapped = guest->host_swapped + guest->memory.swapped;

	if (swapped > guest->swapped_most)
		guest->swapped_most = swapped;
}

uint64_t guest_swap_out(struct guest *guest, uint64_t bytes, bool hot)
{
	uint64_t most = hot ? sub(guest_resident(guest), guest->kinds[GUEST_FIXED])
			    : guest_idle_memory(guest);
	uint64_t out = page_down(min_u64(bytes, most));

	guest->host_swapped += out;
	if (out)
		guest->quiet = false;
	note_swapped(guest);
	return out;
}

void guest_stats_now(const struct guest *guest, struct guest_stats *ret_stats)
{
	const uint64_t *sums = guest->memory.sums;
	uint64_t cache = sums[MEMORY_ACTIVE_FILE] + sums[MEMORY_INACTIVE_FILE];
	uint64_t unused = free_memory(guest), reserve = guest->params.reserve;

	/* usable as MemAvailable: free above the reserve, and the cache less what it lives on. */
	*ret_stats = (struct guest_stats){
		.taken = true,
		.taken_at = guest->clock,
		.total = sub(guest_actual(guest), guest->params.unseen),
		.unused = unused,
		.usable = sub(unused, reserve) + cache - min_u64(cache / 2, reserve),
		.disk_caches = cache,
		.swap_in = guest->swap_in,
		.swapped = guest->memory.swapped,
	};
	memcpy(ret_stats->lists, sums, sizeof ret_stats->lists);
}

static void take_stats(struct guest *guest)
{
	uint64_t late;

	if (guest->clock < guest->stats_at)
		return;
	guest_stats_now(guest, &guest->stats);
	late = guest->clock - guest->stats_at;
	guest->stats.taken_at = guest->clock - late % guest->period_us;
	guest->stats_at = guest->stats.taken_at + guest->period_us;
}

void guest_advance(struct guest *guest, uint64_t now)
{
	uint64_t next;
	bool moved;

	if (!runs(guest)) {
		guest->clock = now > guest->clock ? now : guest->clock;
		guest->memory.now = (double)guest->clock / GUEST_US_PER_S;
		return;
	}
	while (guest->clock < now && !guest->quiet) {
		next = guest->clock - guest->clock % GUEST_STEP_US + GUEST_STEP_US;
		if (next > now)
			return;
		guest->clock = next;
		guest->memory.now = (double)next / GUEST_US_PER_S;
		moved = guest_step(guest, next);
		note_swapped(guest);
		take_stats(guest);
		guest->quiet = !moved;
		assert(guest_actual(guest) <= guest->params.maximum);
		assert(guest->host_swapped <= guest_usage(guest));
	}
	if (guest->clock < now) {
		guest->clock = now;
		guest->memory.now = (double)now / GUEST_US_PER_S;
		take_stats(guest);
	}
}

uint64_t guest_next(const struct guest *guest)
{
	uint64_t next = GUEST_NEVER;

	if (guest->state == GUEST_OFF || guest->stopped)
		return next;
	if (runs(guest) && !guest->quiet)
		next = guest->clock - guest->clock % GUEST_STEP_US + GUEST_STEP_US;
	if (guest->told_actual != guest_actual(guest))
		next = min_u64(next, guest->told_at + EVENT_US);
	return next;
}

bool guest_take_balloon_event(struct guest *guest, uint64_t now, uint64_t *ret_actual)
{
	uint64_t actual = guest_actual(guest);

	if (guest->state == GUEST_OFF || guest->stopped || guest->told_actual == actual ||
		now < guest->told_at + EVENT_US)
		return false;
	guest->told_actual = actual;
	guest->told_at = now;
	*ret_actual = actual;
	return true;
}
