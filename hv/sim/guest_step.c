/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a guest's work, its balloon and its own reclaim move in a step; see guest.h. */
#include <config.h>

#include "hv/sim/guest_internal.h"

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
	uint64_t bytes = min_u64(page_down(due / GUEST_US_PER_S), work->left);
	uint64_t got = 0, part;

	work->unmoved = due - bytes * GUEST_US_PER_S;
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
	uint64_t most = page_down(guest->params.disk * GUEST_STEP_US / GUEST_US_PER_S);
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
	uint64_t can = page_down(mul_div(guest->budget_us, speed, GUEST_US_PER_S));

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
	guest->budget_us -= min_u64(guest->budget_us, mul_div(bytes, GUEST_US_PER_S, speed));
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
			page_down(mul_div(guest->budget_us, guest->params.deflate, GUEST_US_PER_S)),
			target - actual);
		guest->kinds[GUEST_UNTOUCHED] += bytes;
		guest->budget_us -= min_u64(
			guest->budget_us, mul_div(bytes, GUEST_US_PER_S, guest->params.deflate));
		moved = true;
	}
	if (!moved)
		guest->budget_us = 0; /* stuck: it does not save up for later */
	return moved;
}

static bool reporting_step(struct guest *guest)
{
	uint64_t bytes = page_down(guest->params.reported * GUEST_STEP_US / GUEST_US_PER_S);

	bytes = guest->params.reporting ? min_u64(bytes, guest->kinds[GUEST_FREE]) : 0;
	leaves_idle(guest, GUEST_FREE, bytes, false);
	guest->kinds[GUEST_FREE] -= bytes;
	guest->kinds[GUEST_UNTOUCHED] += bytes;
	return bytes > 0;
}

bool guest_step(struct guest *guest, uint64_t now)
{
	bool moved = works_step(guest);

	moved |= hot_step(guest);
	moved |= balloon_step(guest, now);
	moved |= reporting_step(guest);
	return moved;
}
