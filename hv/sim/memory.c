/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Regions, extents and the four lists; see memory.h. What reclaim does is in memory_reclaim.c. */
#include <config.h>

#include "hv/sim/memory_internal.h"

#include <assert.h>
#include <string.h>

/* An extent takes more pages of its kind until it is this part of its list. */
#define MERGE_FRACTION 64
/* So many of the newest extents are looked at for one to merge with. */
#define MERGE_LOOK 8
/* What a loop over extents may need while it holds one. */
#define ROOM 16

void memory_init(struct memory *m)
{
	memset(m, 0, sizeof *m);
	for (unsigned int i = 0; i < MEMORY_LISTS; i++)
		m->head[i] = m->tail[i] = MEMORY_NONE;
	m->nr_free = MEMORY_EXTENTS;
	for (unsigned int i = 0; i < MEMORY_EXTENTS; i++)
		m->extents[i].next = i + 1 < MEMORY_EXTENTS ? (uint16_t)(i + 1) : MEMORY_NONE;
}

unsigned int memory_region_new(struct memory *m, enum memory_use use)
{
	unsigned int i = 0;

	while (i < MEMORY_REGIONS && m->regions[i].use != MEMORY_UNUSED)
		i++;
	assert(i < MEMORY_REGIONS);
	m->regions[i] = (struct memory_region){ .use = use };
	return i;
}

uint64_t memory_used(const struct memory *m)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < MEMORY_LISTS; i++)
		sum += m->sums[i];
	return sum;
}

uint64_t memory_idle(const struct memory *m)
{
	uint64_t active = m->sums[MEMORY_ACTIVE_ANON], still = 0;

	for (unsigned int i = 0; i < MEMORY_REGIONS; i++)
		still += m->regions[i].still ? m->regions[i].resident : 0;
	/* It came onto the active list, and leaves it first. */
	return m->sums[MEMORY_INACTIVE_ANON] + m->sums[MEMORY_INACTIVE_FILE] +
	       (still < active ? still : active);
}

double memory_clock(const struct memory *m, unsigned int region)
{
	return m->regions[region].clock + m->regions[region].rate * m->now;
}

double memory_touched(double touches)
{
	/* 1 - e^-x within 7 %: pages that are touched here and there. */
	return touches > 0 ? 1 - 1 / (1 + touches + touches * touches / 2) : 0;
}

/* ---- extents ---- */

static void unlink_extent(struct memory *m, uint16_t i)
{
	struct memory_extent *e = &m->extents[i];

	if (e->prev == MEMORY_NONE)
		m->head[e->list] = e->next;
	else
		m->extents[e->prev].next = e->next;
	if (e->next == MEMORY_NONE)
		m->tail[e->list] = e->prev;
	else
		m->extents[e->next].prev = e->prev;
	e->next = m->free;
	m->free = i;
	m->nr_free++;
}

static bool alike(const struct memory_extent *a, const struct memory_extent *b)
{
	return a->region == b->region && a->dirty == b->dirty && a->need == b->need;
}

static void weigh(struct memory_extent *into, double clock, uint64_t bytes)
{
	into->clock += (clock - into->clock) * ((double)bytes / (double)(into->bytes + bytes));
	into->bytes += bytes;
}

/* Whether the pages of j, the newer, may be said to follow those of i. */
static bool follows(const struct memory *m, uint16_t i, uint16_t j)
{
	const struct memory_extent *a = &m->extents[i], *b = &m->extents[j];

	return alike(a, b) &&
	       (m->regions[a->region].use != MEMORY_CYCLIC || a->offset + a->bytes == b->offset);
}

/* Of those that are neighbours among their kind the smallest two become one. */
static bool join_two(struct memory *m)
{
	uint16_t best = MEMORY_NONE, into = MEMORY_NONE;
	uint64_t least = UINT64_MAX;

	for (unsigned int list = 0; list < MEMORY_LISTS; list++) {
		for (uint16_t i = m->tail[list]; i != MEMORY_NONE; i = m->extents[i].prev) {
			uint16_t j = m->extents[i].prev;
			uint64_t sum;

			while (j != MEMORY_NONE && !follows(m, i, j))
				j = m->extents[j].prev;
			sum = j == MEMORY_NONE ? UINT64_MAX
					       : m->extents[i].bytes + m->extents[j].bytes;
			if (sum >= least)
				continue;
			least = sum;
			best = j;
			into = i;
		}
	}
	if (best == MEMORY_NONE)
		return false;
	weigh(&m->extents[into], m->extents[best].clock, m->extents[best].bytes);
	unlink_extent(m, best);
	return true;
}

/* Room for so many more; no extent keeps its place. False: there are too many holes in files. */
static bool make_room(struct memory *m, unsigned int nr)
{
	while (m->nr_free < nr)
		if (!join_two(m))
			return false;
	return true;
}

static uint16_t take_free(struct memory *m)
{
	uint16_t i = m->free;

	assert(i != MEMORY_NONE);
	m->free = m->extents[i].next;
	m->nr_free--;
	return i;
}

static bool merge(struct memory *m, const struct memory_extent *from)
{
	uint64_t most = memory_used(m) / MERGE_FRACTION;
	unsigned int looked = 0;

	for (uint16_t i = m->head[from->list]; i != MEMORY_NONE && looked < MERGE_LOOK;
		i = m->extents[i].next, looked++) {
		struct memory_extent *e = &m->extents[i];

		if (!alike(e, from))
			continue;
		if (m->regions[e->region].use == MEMORY_CYCLIC) {
			if (e->offset + e->bytes != from->offset)
				continue;
			e->bytes += from->bytes;
			return true;
		}
		if (e->bytes + from->bytes > most)
			return false;
		weigh(e, from->clock, from->bytes);
		return true;
	}
	return false;
}

/* A file with more holes than can be kept: its newest run of the list is said to be longer. */
static void stretch(struct memory *m, const struct memory_extent *from)
{
	uint16_t i = m->head[from->list];

	while (i != MEMORY_NONE && m->extents[i].region != from->region)
		i = m->extents[i].next;
	assert(i != MEMORY_NONE);
	m->extents[i].bytes += from->bytes;
}

void memory_push(struct memory *m, const struct memory_extent *from)
{
	struct memory_extent *e;
	uint16_t i;

	if (!from->bytes)
		return;
	m->sums[from->list] += from->bytes;
	m->regions[from->region].resident += from->bytes;
	m->dirty += from->dirty ? from->bytes : 0;
	if (merge(m, from))
		return;
	if (m->free == MEMORY_NONE && !make_room(m, ROOM)) {
		stretch(m, from);
		return;
	}
	i = take_free(m);
	e = &m->extents[i];
	*e = *from;
	e->prev = MEMORY_NONE;
	e->next = m->head[e->list];
	if (e->next == MEMORY_NONE)
		m->tail[e->list] = i;
	else
		m->extents[e->next].prev = i;
	m->head[e->list] = i;
}

struct memory_extent memory_pull(struct memory *m, uint16_t i, uint64_t bytes)
{
	struct memory_extent *e = &m->extents[i], out = *e;

	assert(bytes <= e->bytes);
	out.bytes = bytes;
	e->bytes -= bytes;
	e->offset += bytes; /* the oldest pages of a file's run are its first */
	m->sums[e->list] -= bytes;
	m->regions[e->region].resident -= bytes;
	m->dirty -= e->dirty ? bytes : 0;
	if (!e->bytes)
		unlink_extent(m, i);
	return out;
}

/* Its oldest bytes become an extent of their own, the next of the other; one has to be free. */
static void cut(struct memory *m, uint16_t i, uint64_t bytes)
{
	struct memory_extent *e = &m->extents[i], *front;
	uint16_t j;

	if (!bytes || bytes == e->bytes)
		return;
	j = take_free(m);
	front = &m->extents[j];
	*front = *e;
	front->bytes = bytes;
	e->bytes -= bytes;
	e->offset += bytes;
	/* The front is the older: nearer to the tail. */
	front->prev = i;
	front->next = e->next;
	if (e->next == MEMORY_NONE)
		m->tail[e->list] = j;
	else
		m->extents[e->next].prev = j;
	e->next = j;
}

/* ---- regions ---- */

static bool is_anon(const struct memory *m, unsigned int region)
{
	return m->regions[region].use == MEMORY_ANON;
}

void memory_add(struct memory *m, unsigned int region, uint64_t bytes, bool active, bool dirty)
{
	struct memory_extent e = { .region = (uint8_t)region,
		.list = is_anon(m, region) ? MEMORY_INACTIVE_ANON : MEMORY_INACTIVE_FILE,
		.dirty = dirty,
		.bytes = bytes,
		.clock = memory_clock(m, region) };

	if (active)
		e.list++;
	memory_push(m, &e);
}

uint64_t memory_remove(struct memory *m, unsigned int region, uint64_t bytes)
{
	static const enum memory_list order[] = { MEMORY_INACTIVE_FILE, MEMORY_INACTIVE_ANON,
		MEMORY_ACTIVE_FILE, MEMORY_ACTIVE_ANON };
	uint64_t left = bytes;

	for (unsigned int k = 0; k < MEMORY_LISTS && left; k++) {
		uint16_t i = m->tail[order[k]], newer;

		for (; i != MEMORY_NONE && left; i = newer) {
			const struct memory_extent *e = &m->extents[i];
			uint64_t part = e->bytes < left ? e->bytes : left;

			newer = e->prev;
			if (e->region != region)
				continue;
			memory_pull(m, i, part);
			left -= part;
		}
	}
	return bytes - left;
}

uint64_t memory_forget(struct memory *m, unsigned int region, uint64_t bytes)
{
	struct memory_region *r = &m->regions[region];

	bytes = bytes < r->out ? bytes : r->out;
	r->out -= bytes;
	r->fresh = r->fresh < r->out ? r->fresh : r->out;
	if (r->use == MEMORY_ANON)
		m->swapped -= bytes;
	return bytes;
}

uint64_t memory_region_drop(struct memory *m, unsigned int region)
{
	uint64_t bytes = memory_remove(m, region, UINT64_MAX >> 1);

	memory_forget(m, region, UINT64_MAX);
	for (unsigned int i = m->nr_shadows; i; i--)
		if (m->shadows[i - 1].region == region)
			memmove(&m->shadows[i - 1], &m->shadows[i],
				(m->nr_shadows-- - i) * sizeof *m->shadows);
	m->regions[region] = (struct memory_region){ .use = MEMORY_UNUSED };
	return bytes;
}

void memory_touch(struct memory *m, unsigned int region, double touches)
{
	m->regions[region].clock += touches;
}

double memory_missing(const struct memory *m, unsigned int region, double touches)
{
	return (double)m->regions[region].out * memory_touched(touches);
}

void memory_fault_in(struct memory *m, unsigned int region, uint64_t bytes)
{
	struct memory_region *r = &m->regions[region];
	bool anon = is_anon(m, region);
	uint64_t first = bytes < r->fresh ? bytes : r->fresh, came;

	r->fresh -= first;
	came = memory_forget(m, region, bytes);
	if (!anon)
		m->refaults += came - first;
	if (r->use == MEMORY_MAPPED)
		m->restores += came - first;
	memory_add(m, region, came, anon, false);
}

uint64_t memory_write(struct memory *m, uint64_t bytes)
{
	uint64_t left = bytes;

	make_room(m, ROOM);
	for (unsigned int list = MEMORY_INACTIVE_FILE; list <= MEMORY_ACTIVE_FILE; list++) {
		for (uint16_t i = m->tail[list]; i != MEMORY_NONE && left; i = m->extents[i].prev) {
			struct memory_extent *e = &m->extents[i];

			if (!e->dirty)
				continue;
			if (e->bytes > left && m->nr_free) {
				cut(m, i, left);
				e = &m->extents[e->next];
			}
			e->dirty = false;
			m->dirty -= e->bytes;
			left -= e->bytes < left ? e->bytes : left;
		}
	}
	return bytes - left;
}

/* ---- a file that is read again and again ---- */

/* How much of [from, to) is on the lists. */
static uint64_t present(const struct memory *m, unsigned int region, uint64_t from, uint64_t to)
{
	uint64_t sum = 0;

	for (unsigned int list = MEMORY_INACTIVE_FILE; list <= MEMORY_ACTIVE_FILE; list++) {
		for (uint16_t i = m->head[list]; i != MEMORY_NONE; i = m->extents[i].next) {
			const struct memory_extent *e = &m->extents[i];
			uint64_t begin = e->offset > from ? e->offset : from;
			uint64_t end = e->offset + e->bytes < to ? e->offset + e->bytes : to;

			if (e->region == region && begin < end)
				sum += end - begin;
		}
	}
	return sum < to - from ? sum : to - from;
}

uint64_t memory_read_missing(const struct memory *m, unsigned int region, uint64_t bytes)
{
	const struct memory_region *r = &m->regions[region];
	uint64_t end = r->position + bytes;

	if (end <= r->size)
		return bytes - present(m, region, r->position, end);
	return bytes - present(m, region, r->position, r->size) -
	       present(m, region, 0, end - r->size);
}

void memory_shadow_add(struct memory *m, unsigned int region, uint64_t offset, uint64_t bytes)
{
	struct memory_shadow *last = m->nr_shadows ? &m->shadows[m->nr_shadows - 1] : NULL;

	if (last && last->region == region && last->offset + last->bytes == offset &&
		m->age - last->age < memory_used(m) / MERGE_FRACTION) {
		last->bytes += bytes;
		return;
	}
	if (m->nr_shadows == MEMORY_SHADOWS)
		memmove(m->shadows, m->shadows + 1, --m->nr_shadows * sizeof *m->shadows);
	m->shadows[m->nr_shadows++] = (struct memory_shadow){
		.region = (uint8_t)region, .offset = offset, .bytes = bytes, .age = m->age
	};
}

/*
 * How much of [from, to), of which so much is read anew, is activated at once. Its shadows are
 * gone: they are where pages are.
 */
static uint64_t shadows_take(
	struct memory *m, unsigned int region, uint64_t from, uint64_t to, uint64_t missing)
{
	uint64_t active = m->sums[MEMORY_ACTIVE_FILE], near = 0;
	unsigned int kept = 0, nr = m->nr_shadows;

	for (unsigned int i = 0; i < nr; i++) {
		struct memory_shadow s = m->shadows[i];
		uint64_t begin = s.offset > from ? s.offset : from;
		uint64_t end = s.offset + s.bytes < to ? s.offset + s.bytes : to;

		if (s.region == region && begin < end) {
			if (m->age - s.age <= active)
				near += end - begin;
			/* It is read in order: what lies before it was read already. */
			s.bytes = s.offset + s.bytes - end;
			s.offset = end;
		}
		if (s.bytes)
			m->shadows[kept++] = s;
	}
	m->nr_shadows = kept;
	return near < missing ? near : missing;
}

/* What is read anew, at once onto the active list where the kernel finds that it was missed. */
static void read_fresh(struct memory *m, const struct memory_extent *fresh, uint64_t to)
{
	struct memory_extent active = *fresh, rest = *fresh;

	active.bytes =
		m->activates ? shadows_take(m, fresh->region, fresh->offset, to, fresh->bytes) : 0;
	active.list = MEMORY_ACTIVE_FILE;
	active.need = 0;
	active.clock = memory_clock(m, fresh->region) - 1; /* it is read by who missed it */
	rest.bytes -= active.bytes;
	rest.offset += active.bytes;
	m->activated += active.bytes;
	m->age += active.bytes;
	memory_push(m, &active);
	memory_push(m, &rest);
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Reads [from, to), which does not wrap. */
static void read_part(struct memory *m, unsigned int region, uint64_t from, uint64_t to)
{
	struct memory_region *r = &m->regions[region];
	struct memory_extent fresh = { .region = (uint8_t)region,
		.list = MEMORY_INACTIVE_FILE,
		.need = 1,
		.offset = from,
		.bytes = to - from - present(m, region, from, to) };
	uint64_t first, came;
	uint16_t i, newer;

	make_room(m, ROOM);
	for (i = m->tail[MEMORY_INACTIVE_FILE]; i != MEMORY_NONE; i = newer) {
		struct memory_extent *e = &m->extents[i], part;
		uint64_t begin = e->offset > from ? e->offset : from;
		uint64_t end = e->offset + e->bytes < to ? e->offset + e->bytes : to;

		newer = e->prev;
		if (e->region != region || begin >= end)
			continue;
		if (m->nr_free < 2)
			break; /* the rest counts as not touched */
		cut(m, i, begin - e->offset);
		part = memory_pull(m, i, end - begin);
		if (--part.need == 0) {
			part.list = MEMORY_ACTIVE_FILE;
			part.clock = memory_clock(m, region);
			m->age += part.bytes;
		}
		memory_push(m, &part);
	}
	/* Who reads for the first time misses nothing: there is no shadow of it. */
	first = r->fresh && to > r->size - r->fresh ? to - later(from, r->size - r->fresh) : 0;
	r->fresh -= first;
	came = memory_forget(m, region, fresh.bytes);
	m->refaults += came > first ? came - first : 0;
	read_fresh(m, &fresh, to);
}

void memory_read(struct memory *m, unsigned int region, uint64_t bytes)
{
	struct memory_region *r = &m->regions[region];

	while (bytes) {
		uint64_t part = r->size - r->position;

		part = part < bytes ? part : bytes;
		read_part(m, region, r->position, r->position + part);
		memory_touch(m, region, (double)part / (double)r->size);
		r->position = (r->position + part) % r->size;
		bytes -= part;
	}
}
