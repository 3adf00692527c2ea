/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a kernel's reclaim takes from the four lists; see memory.h. */
#include <config.h>

#include "hv/sim/memory_internal.h"

#include "hv/sim/costs.h"

#define GIB (UINT64_C(1) << 30)
/*
 * Rounds of scanning: the kernel's priorities scan all lists twice in sum, and what is referenced
 * once goes round once.
 */
#define ROUNDS_MAX 64
/* So many come to nothing before the last, DEF_PRIORITY. */
#define PRIORITIES 12
/* Extents looked at in one round: each is met at most once, and rotated ones once more. */
#define SCAN_MAX (2 * MEMORY_EXTENTS)

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t page_up(uint64_t bytes)
{
	return memory_page_down(bytes + MEMORY_PAGE - 1);
}

/* inactive_list_is_low(), as policy/workingset has it for pages. */
static bool is_low(uint64_t inactive, uint64_t active)
{
	uint64_t gb = (inactive + active) / GIB, ratio = 1;

	if (gb)
		while ((ratio + 1) * (ratio + 1) <= 10 * gb)
			ratio++;
	return inactive * ratio < active;
}

/* While what was evicted is missed, a new working set is said to be there: the old one goes. */
static bool list_is_low(const struct memory *m, enum memory_list inactive)
{
	if (inactive == MEMORY_INACTIVE_FILE && m->activated != m->activated_seen)
		return m->sums[inactive + 1] > 0;
	return is_low(m->sums[inactive], m->sums[inactive + 1]);
}

static double referenced(const struct memory *m, const struct memory_extent *e)
{
	enum memory_use use = m->regions[e->region].use;

	/* A cyclic file's pages move when they are read. */
	if (use != MEMORY_MAPPED && use != MEMORY_ANON)
		return 0;
	return memory_touched(memory_clock(m, e->region) - e->clock);
}

/* shrink_active_list(): mapped file pages that were touched go round once more. */
static void deactivate(struct memory *m, enum memory_list active, uint64_t bytes)
{
	for (unsigned int n = 0; bytes && n < SCAN_MAX && m->tail[active] != MEMORY_NONE; n++) {
		uint16_t i = m->tail[active];
		struct memory_extent part = memory_pull(m, i, min_u64(bytes, m->extents[i].bytes));
		struct memory_extent again = part;
		enum memory_use use = m->regions[part.region].use;
		bool read = memory_clock(m, part.region) >= part.clock + 1;

		bytes -= part.bytes;
		again.bytes =
			use != MEMORY_MAPPED
				? 0
				: page_up((uint64_t)((double)part.bytes * referenced(m, &part)));
		again.bytes = min_u64(again.bytes, part.bytes);
		part.bytes -= again.bytes;
		part.clock = again.clock = memory_clock(m, part.region);
		part.list = active - 1;
		/*
		 * Once read it is referenced, twice it is active. What was read since it became
		 * active is referenced, and stays so: deactivating does not clear that.
		 */
		part.need = use != MEMORY_CYCLIC ? 0 : read ? 1 : 2;
		memory_push(m, &again);
		memory_push(m, &part);
	}
}

static uint64_t freed(struct memory *m, struct memory_reclaim *how, const struct memory_extent *e)
{
	struct memory_region *r = &m->regions[e->region];

	if (r->use == MEMORY_ANON) {
		how->anon += e->bytes;
		m->swapped += e->bytes;
		m->swap_outs += e->bytes;
		if (m->swapped > m->swapped_most)
			m->swapped_most = m->swapped;
	} else {
		how->file += e->bytes;
		m->age += e->bytes;
	}
	if (r->use == MEMORY_CYCLIC && m->activates)
		memory_shadow_add(m, e->region, e->offset, e->bytes);
	if (r->use != MEMORY_ONCE)
		r->out += e->bytes;
	return e->bytes;
}

/* shrink_inactive_list(): scans at most `scan` of the list, until `want` is freed. */
static uint64_t shrink_inactive(struct memory *m, struct memory_reclaim *how,
	enum memory_list inactive, uint64_t scan, uint64_t want)
{
	bool anon = inactive == MEMORY_INACTIVE_ANON;
	uint64_t got = 0;

	scan = min_u64(scan, m->sums[inactive]);
	for (unsigned int n = 0; scan && got < want && n < SCAN_MAX; n++) {
		uint16_t i = m->tail[inactive];
		struct memory_extent part, kept;
		double keep = referenced(m, &m->extents[i]);
		uint64_t look = page_up((uint64_t)((double)(want - got) / (1.001 - keep)));

		if (anon && m->swapped >= how->swap)
			break;
		part = memory_pull(m, i, min_u64(min_u64(look, scan), m->extents[i].bytes));
		scan -= part.bytes;
		kept = part;
		kept.bytes = min_u64(
			part.bytes, memory_page_down((uint64_t)((double)part.bytes * keep)));
		kept.clock = memory_clock(m, part.region);
		part.bytes -= kept.bytes;
		kept.list = inactive + 1;
		memory_push(m, &kept);
		if (part.dirty) {
			m->met_dirty = true;
			if (how->priority_0) { /* pageout(): written one by one, and it waits */
				m->pageouts += part.bytes;
				part.dirty = false;
				got += freed(m, how, &part);
			} else {
				memory_push(m, &part); /* round once more */
			}
			continue;
		}
		if (part.bytes > want - got || (anon && part.bytes > how->swap - m->swapped)) {
			uint64_t left = part.bytes;

			part.bytes = min_u64(left, want - got);
			if (anon)
				part.bytes = min_u64(part.bytes, how->swap - m->swapped);
			kept = part;
			kept.bytes = left - part.bytes;
			kept.offset += part.bytes;
			memory_push(m, &kept);
		}
		got += freed(m, how, &part);
	}
	return got;
}

static uint64_t shrink(
	struct memory *m, struct memory_reclaim *how, bool anon, uint64_t scan, uint64_t want)
{
	enum memory_list inactive = anon ? MEMORY_INACTIVE_ANON : MEMORY_INACTIVE_FILE;
	uint64_t active = scan, of = m->sums[inactive] + m->sums[inactive + 1];

	if (!scan || !want)
		return 0;
	/* get_scan_count(): of each list the same part. */
	if (how->scan && of) {
		active = page_up(
			(uint64_t)((double)scan * (double)m->sums[inactive + 1] / (double)of));
		scan = page_up((uint64_t)((double)scan * (double)m->sums[inactive] / (double)of));
	}
	if (list_is_low(m, inactive) || !m->sums[inactive])
		deactivate(m, inactive + 1, active);
	return shrink_inactive(m, how, inactive, scan, want);
}

/* What of a round's scanning falls on anonymous memory. */
static uint64_t anon_part(
	const struct memory *m, const struct memory_reclaim *how, uint64_t scan, bool equal)
{
	uint64_t file = m->sums[MEMORY_INACTIVE_FILE] + m->sums[MEMORY_ACTIVE_FILE];
	uint64_t anon = m->sums[MEMORY_INACTIVE_ANON] + m->sums[MEMORY_ACTIVE_ANON];

	if (m->swapped >= how->swap || !anon)
		return 0;
	if (equal || !file)
		return page_up((uint64_t)((double)scan * ((double)anon / (double)(anon + file))));
	/* Enough inactive page cache: anonymous memory is left alone. */
	if (!is_low(m->sums[MEMORY_INACTIVE_FILE], m->sums[MEMORY_ACTIVE_FILE]))
		return 0;
	return page_up(scan * COSTS_SWAPPINESS / 200);
}

uint64_t memory_reclaim(struct memory *m, struct memory_reclaim *how)
{
	uint64_t got = 0, scan, anon, all;
	bool equal;

	for (unsigned int round = 0; round < ROUNDS_MAX && got < how->bytes; round++) {
		all = memory_used(m);
		scan = how->bytes - got;
		if (scan < COSTS_RECLAIM_BATCH)
			scan = COSTS_RECLAIM_BATCH;
		scan = min_u64(how->scan ? page_up(how->scan) : scan << (round / 8), all);
		if (!scan)
			break;
		/* Close to OOM nobody is clever about what falls on whom. */
		equal = how->priority_0 || (!got && round >= PRIORITIES);
		anon = min_u64(anon_part(m, how, scan, equal), scan);
		got += shrink(m, how, true, anon, how->bytes - got);
		got += shrink(m, how, false, scan - anon, how->bytes - got);
		if (how->scan)
			break;
	}
	m->activated_seen = m->activated; /* snapshot_refaults() */
	return got;
}

uint64_t memory_reclaimable(const struct memory *m, uint64_t swap)
{
	uint64_t file = m->sums[MEMORY_INACTIVE_FILE] + m->sums[MEMORY_ACTIVE_FILE] - m->dirty;
	uint64_t anon = m->sums[MEMORY_INACTIVE_ANON] + m->sums[MEMORY_ACTIVE_ANON];

	return file + min_u64(anon, swap > m->swapped ? swap - m->swapped : 0);
}
