/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest's memory, its work and its balloon; see guest.h. sim.c puts guests on a host and behind
 * the contract of a backend.
 */
#include <config.h>

#include "hv/sim/guest.h"

#include <assert.h>
#include <string.h>

#define MIB	 (UINT64_C(1) << 20)
#define US_PER_S UINT64_C(1000000)
/* QEMU sends no more balloon events than that. */
#define EVENT_US US_PER_S

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t sub(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t page_down(uint64_t bytes)
{
	return bytes - bytes % GUEST_PAGE;
}

static uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	return c ? (uint64_t)((__extension__(unsigned __int128) a * b) / c) : 0;
}

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

/* What the host finds idle; of it it swaps. */
static uint64_t idle_touched(const struct guest *guest)
{
	return guest->kinds[GUEST_ANON_IDLE] + guest->kinds[GUEST_CACHE_COLD] +
	       guest->kinds[GUEST_FREE];
}

uint64_t guest_idle_memory(const struct guest *guest)
{
	return sub(idle_touched(guest), guest->host_swapped);
}

static bool runs(const struct guest *guest)
{
	return guest->state == GUEST_RUNNING && !guest->stopped;
}

void guest_init(struct guest *guest, const struct guest_params *params)
{
	*guest = (struct guest){ .params = *params };
	guest->target = params->maximum;
	guest->driver_at = GUEST_NEVER;
	guest->quiet = true;
}

void guest_start(struct guest *guest, uint64_t now, uint64_t driver_us)
{
	const struct guest_params *p = &guest->params;
	uint64_t *kinds = guest->kinds, period_us = guest->period_us;
	uint64_t left = p->maximum;

	guest_init(guest, &guest->params);
	kinds[GUEST_FIXED] = p->fixed;
	kinds[GUEST_ANON_HOT] = p->hot;
	kinds[GUEST_ANON_IDLE] = p->idle;
	kinds[GUEST_CACHE_HOT] = p->cache_hot;
	kinds[GUEST_CACHE_COLD] = p->cache_cold;
	kinds[GUEST_FREE] = p->free;
	for (unsigned int i = 0; i < GUEST_UNTOUCHED; i++) {
		kinds[i] = min_u64(page_down(kinds[i]), left);
		left -= kinds[i];
	}
	kinds[GUEST_UNTOUCHED] = left;
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
	uint64_t *kinds = guest->kinds;
	uint64_t usage = guest_usage(guest);

	/* QEMU frees nothing at a reset: what was touched stays; the balloon's pages are new. */
	memset(kinds, 0, sizeof guest->kinds);
	kinds[GUEST_FIXED] = guest->params.fixed;
	kinds[GUEST_FREE] = sub(usage, guest->params.fixed);
	kinds[GUEST_UNTOUCHED] = guest->params.maximum - kinds[GUEST_FIXED] - kinds[GUEST_FREE];
	guest->host_swapped = min_u64(guest->host_swapped, kinds[GUEST_FREE]);
	guest->swapped_idle = guest->swapped_hot = guest->lost_hot = guest->swap_in = 0;
	guest->nr_works = 0;
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

void guest_idle(struct guest *guest)
{
	uint64_t *kinds = guest->kinds;

	guest->nr_works = 0;
	kinds[GUEST_ANON_IDLE] += kinds[GUEST_ANON_HOT];
	kinds[GUEST_CACHE_COLD] += kinds[GUEST_CACHE_HOT];
	kinds[GUEST_ANON_HOT] = kinds[GUEST_CACHE_HOT] = 0;
	guest->swapped_idle += guest->swapped_hot;
	guest->swapped_hot = guest->lost_hot = 0;
	guest->quiet = false;
}

uint64_t guest_swap_out(struct guest *guest, uint64_t bytes)
{
	uint64_t out = page_down(min_u64(bytes, guest_idle_memory(guest)));

	guest->host_swapped += out;
	return out;
}

/* ---- memory from kind to kind ---- */

/*
 * So much of an idle kind is used or freed: the part that the host swapped out is back, or gone.
 * Called before the kinds change.
 */
static void leaves_idle(struct guest *guest, enum guest_kind kind, uint64_t bytes, bool used)
{
	uint64_t back;

	if (kind != GUEST_ANON_IDLE && kind != GUEST_CACHE_COLD && kind != GUEST_FREE)
		return;
	back = page_down(mul_div(bytes, guest->host_swapped, idle_touched(guest)));
	guest->host_swapped -= back;
	if (used)
		guest->host_faults += back;
}

static uint64_t free_memory(const struct guest *guest)
{
	return guest->kinds[GUEST_FREE] + guest->kinds[GUEST_UNTOUCHED];
}

static uint64_t swap_left(const struct guest *guest)
{
	return sub(guest->params.swap, guest->swapped_idle + guest->swapped_hot);
}

/* What the guest can still free of a kind, and what becomes of it then. */
static uint64_t reclaimable(const struct guest *guest, enum guest_kind kind)
{
	if (kind == GUEST_ANON_IDLE || kind == GUEST_ANON_HOT)
		return page_down(min_u64(guest->kinds[kind], swap_left(guest)));
	return guest->kinds[kind];
}

static void evict(struct guest *guest, enum guest_kind kind, uint64_t bytes)
{
	leaves_idle(guest, kind, bytes, kind == GUEST_ANON_IDLE);
	guest->kinds[kind] -= bytes;
	if (kind == GUEST_ANON_IDLE)
		guest->swapped_idle += bytes;
	else if (kind == GUEST_ANON_HOT)
		guest->swapped_hot += bytes;
	else if (kind == GUEST_CACHE_HOT)
		guest->lost_hot += bytes;
}

/* The order in which a guest frees its own memory: coldest first. */
static const enum guest_kind reclaim_order[] = { GUEST_CACHE_COLD, GUEST_ANON_IDLE, GUEST_CACHE_HOT,
	GUEST_ANON_HOT };
#define RECLAIM_ORDER_NR (sizeof reclaim_order / sizeof reclaim_order[0])

/* At most so much becomes memory of that kind. Reclaims through the first kinds of the order. */
static uint64_t take(
	struct guest *guest, enum guest_kind kind, uint64_t bytes, unsigned int through)
{
	uint64_t *kinds = guest->kinds;
	uint64_t got, part;

	got = min_u64(bytes, sub(free_memory(guest), guest->params.reserve));
	/* What was just used lies on top of the free lists. */
	part = min_u64(got, kinds[GUEST_FREE]);
	leaves_idle(guest, GUEST_FREE, part, true);
	kinds[GUEST_FREE] -= part;
	kinds[GUEST_UNTOUCHED] -= got - part;
	kinds[kind] += got;
	for (unsigned int i = 0; i < through && got < bytes; i++) {
		if (reclaim_order[i] == kind && kind != GUEST_CACHE_COLD)
			continue;
		part = min_u64(bytes - got, reclaimable(guest, reclaim_order[i]));
		evict(guest, reclaim_order[i], part);
		kinds[kind] += part;
		got += part;
	}
	return got;
}

/* ---- what moves in one step ---- */

static uint64_t give_back(struct guest *guest, enum guest_kind kind, uint64_t bytes)
{
	bytes = min_u64(bytes, guest->kinds[kind]);
	leaves_idle(guest, kind, bytes, false);
	guest->kinds[kind] -= bytes;
	guest->kinds[GUEST_FREE] += bytes;
	return bytes;
}

static bool work_step(struct guest *guest, struct guest_work *work)
{
	static const enum guest_kind makes[] = { [GUEST_WORK_GROW] = GUEST_ANON_IDLE,
		[GUEST_WORK_HOT] = GUEST_ANON_HOT,
		[GUEST_WORK_STREAM] = GUEST_CACHE_COLD,
		[GUEST_WORK_HOT_FILE] = GUEST_CACHE_HOT };
	uint64_t due = work->unmoved + work->rate * GUEST_STEP_US;
	uint64_t bytes = min_u64(page_down(due / US_PER_S), work->left);
	uint64_t got = 0, part;

	work->unmoved = due - bytes * US_PER_S;
	if (work->type == GUEST_WORK_SHRINK) {
		got = give_back(guest, GUEST_ANON_IDLE, bytes);
		got += give_back(guest, GUEST_ANON_HOT, bytes - got);
		work->left = got < bytes ? 0 : work->left - got;
		return true;
	}
	got = take(guest, makes[work->type], bytes, RECLAIM_ORDER_NR);
	if (got < bytes && guest->params.deflate_on_oom) {
		part = min_u64(bytes - got, guest->params.maximum - guest_actual(guest));
		guest->kinds[makes[work->type]] += part;
		got += part;
	}
	guest->wanted += bytes - got;
	/* A stream is over when it has read all; who wants memory waits for it. */
	work->left -= work->type == GUEST_WORK_STREAM ? bytes : got;
	return got > 0;
}

static bool works_step(struct guest *guest)
{
	bool moved = false;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < guest->nr_works; i++) {
		moved |= work_step(guest, &guest->works[i]);
		if (guest->works[i].left)
			guest->works[kept++] = guest->works[i];
	}
	guest->nr_works = kept;
	return moved || kept;
}

/* What is hot and was taken away is read back, as far as there is room; else it goes round. */
static bool hot_step(struct guest *guest)
{
	uint64_t most = page_down(guest->params.disk * GUEST_STEP_US / US_PER_S);
	uint64_t hot = guest->kinds[GUEST_FIXED] + guest->kinds[GUEST_ANON_HOT] +
		       guest->kinds[GUEST_CACHE_HOT];
	uint64_t bytes, got;
	bool moved = false;

	bytes = min_u64(guest->lost_hot, most);
	if (bytes) {
		got = take(guest, GUEST_CACHE_HOT, bytes, 1);
		guest->lost_hot -= got;
		guest->refaults += bytes;
		moved = true;
	}
	bytes = min_u64(guest->swapped_hot, most);
	if (bytes) {
		got = take(guest, GUEST_ANON_HOT, bytes, 2);
		guest->swapped_hot -= got;
		guest->swap_in += bytes;
		moved = true;
	}
	bytes = sub(guest->host_swapped, guest_usage(guest) - hot);
	if (bytes) {
		guest->host_swapped -= bytes;
		guest->host_faults += bytes;
		moved = true;
	}
	return moved;
}

/* Takes at most bytes of a kind into the balloon, as far as time reaches. */
static uint64_t inflate(struct guest *guest, enum guest_kind kind, uint64_t bytes, uint64_t speed)
{
	uint64_t can = page_down(mul_div(guest->budget_us, speed, US_PER_S));

	bytes = min_u64(bytes, can);
	if (!bytes)
		return 0;
	if (kind == GUEST_FREE) {
		leaves_idle(guest, kind, bytes, false);
		guest->kinds[kind] -= bytes;
	} else if (kind == GUEST_UNTOUCHED) {
		guest->kinds[kind] -= bytes;
	} else {
		evict(guest, kind, bytes);
	}
	guest->budget_us -= min_u64(guest->budget_us, mul_div(bytes, US_PER_S, speed));
	return bytes;
}

static bool inflate_step(struct guest *guest, uint64_t want)
{
	const struct guest_params *p = &guest->params;
	uint64_t got = 0, part, actual = guest_actual(guest);

	want = min_u64(want, sub(actual, p->stop));
	/*
	 * Untouched pages first: nothing is gained until they are in the balloon. Of free memory
	 * the allocator's reserve stays.
	 */
	part = min_u64(want, sub(free_memory(guest), p->reserve));
	got += inflate(guest, GUEST_UNTOUCHED, min_u64(part, guest->kinds[GUEST_UNTOUCHED]),
		p->inflate_free);
	got += inflate(
		guest, GUEST_FREE, min_u64(part - got, guest->kinds[GUEST_FREE]), p->inflate_free);
	if (got < part)
		return true; /* time ran out */
	for (unsigned int i = 0; i < RECLAIM_ORDER_NR && got < want; i++) {
		enum guest_kind kind = reclaim_order[i];
		bool file = kind == GUEST_CACHE_COLD || kind == GUEST_CACHE_HOT;

		part = min_u64(want - got, reclaimable(guest, kind));
		part -= inflate(guest, kind, part, file ? p->inflate_cache : p->inflate_swap);
		if (part)
			return true;
		got = actual - guest_actual(guest);
	}
	return got > 0;
}

static bool balloon_step(struct guest *guest, uint64_t now)
{
	uint64_t actual = guest_actual(guest), target = guest->target, bytes;
	bool moved;

	if (now < guest->driver_at || now < guest->move_at)
		return guest->driver_at != GUEST_NEVER;
	if (target == actual) {
		guest->budget_us = 0;
		return false;
	}
	guest->budget_us += GUEST_STEP_US;
	if (target < actual) {
		moved = inflate_step(guest, actual - target);
	} else {
		bytes = min_u64(
			page_down(mul_div(guest->budget_us, guest->params.deflate, US_PER_S)),
			target - actual);
		guest->kinds[GUEST_UNTOUCHED] += bytes;
		guest->budget_us -=
			min_u64(guest->budget_us, mul_div(bytes, US_PER_S, guest->params.deflate));
		moved = true;
	}
	if (!moved)
		guest->budget_us = 0; /* stuck: it does not save up for later */
	return moved;
}

static bool reporting_step(struct guest *guest)
{
	uint64_t bytes = page_down(guest->params.reported * GUEST_STEP_US / US_PER_S);

	bytes = guest->params.reporting ? min_u64(bytes, guest->kinds[GUEST_FREE]) : 0;
	leaves_idle(guest, GUEST_FREE, bytes, false);
	guest->kinds[GUEST_FREE] -= bytes;
	guest->kinds[GUEST_UNTOUCHED] += bytes;
	return bytes > 0;
}

void guest_stats_now(const struct guest *guest, struct guest_stats *ret_stats)
{
	uint64_t cache = guest->kinds[GUEST_CACHE_HOT] + guest->kinds[GUEST_CACHE_COLD];
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
	};
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
		return;
	}
	while (guest->clock < now && !guest->quiet) {
		next = guest->clock - guest->clock % GUEST_STEP_US + GUEST_STEP_US;
		if (next > now)
			return;
		guest->clock = next;
		moved = works_step(guest);
		moved |= hot_step(guest);
		moved |= balloon_step(guest, next);
		moved |= reporting_step(guest);
		take_stats(guest);
		guest->quiet = !moved;
		assert(guest_actual(guest) <= guest->params.maximum);
		assert(guest->host_swapped <= guest_usage(guest));
	}
	if (guest->clock < now) {
		guest->clock = now;
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
