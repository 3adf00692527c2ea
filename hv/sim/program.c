/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What programs do; see program.h. kbuild has a file of its own, program_kbuild.c. */
#include <config.h>

#include "hv/sim/program_internal.h"

#include <string.h>

#include "hv/sim/costs.h"

/* mem_eater: "in 100 chunks with 1s nap after each mmap+poppulate". */
#define EATER_CHUNKS 100
#define EATER_NAP_US GUEST_US_PER_S
/* Who got none of the memory that it asked for during so long meets the OOM killer. */
#define OOM_AFTER_US GUEST_US_PER_S
/* Reclaim goes on while what it wrote is no further behind; as congestion_wait() does. */
#define WRITES_US (GUEST_US_PER_S / 10)
/* A working set changes its size so often. */
#define SET_STEP_US GUEST_US_PER_S

const char *program_name(enum program_type type)
{
	static const char *const names[] = { [PROGRAM_STREAM] = "stream",
		[PROGRAM_MEM_EATER] = "mem_eater",
		[PROGRAM_KBUILD] = "kbuild",
		[PROGRAM_GZIP] = "gzip",
		[PROGRAM_DIURNAL] = "diurnal",
		[PROGRAM_TRACE] = "trace" };

	return names[type];
}

uint64_t program_draw(struct program *program, uint64_t least, uint64_t most)
{
	/* splitmix64 */
	uint64_t z = (program->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return least + z % (most - least + 1);
}

double program_request_us(const struct guest *guest, uint64_t bytes, bool in_order)
{
	double us = (double)bytes * GUEST_US_PER_S / COSTS_DISK_BYTES_PER_S;

	return in_order && !guest->disk.mixed ? us : us + COSTS_SEEK_US;
}

double program_fault(struct guest *guest, struct program *program, unsigned int region,
	double *missing, double touches)
{
	struct memory *m = &guest->memory;
	struct memory_region *r = &m->regions[region];
	uint64_t cluster = r->use == MEMORY_ANON ? COSTS_SWAP_CLUSTER : COSTS_READAHEAD;
	double part = (double)r->out / (double)(r->out + r->resident + 1), requests, us;
	uint64_t bytes, room, first;

	*missing += memory_missing(m, region, touches);
	memory_touch(m, region, touches);
	bytes = min_u64(page_down((uint64_t)*missing), r->out);
	if (!bytes)
		return 0;
	*missing -= (double)bytes;
	first = min_u64(bytes, r->fresh);
	room = guest_room(guest, bytes);
	memory_fault_in(m, region, room);
	if (r->use == MEMORY_ANON)
		guest->swap_in += room;
	/*
	 * Of the pages that one read of a file brings, those that were out are of use; at first
	 * all. Swap holds next to each other what was swapped out together.
	 */
	part = r->use == MEMORY_ANON ? (double)cluster : part * (double)cluster;
	requests = (double)(bytes - first) / (part > GUEST_PAGE ? part : (double)GUEST_PAGE) +
		   (double)first / (double)cluster;
	us = requests * program_request_us(guest, cluster, false);
	program->faults += requests;
	return us;
}

uint64_t program_allocate(struct program *program, struct guest *guest, unsigned int region,
	uint64_t bytes, bool dirty)
{
	uint64_t got = guest_room(guest, bytes);

	memory_add(&guest->memory, region, got, guest->memory.regions[region].use == MEMORY_ANON,
		dirty);
	guest->wanted += bytes - got;
	/* While something is being written it waits; the OOM killer comes where nothing helps. */
	if (got || !bytes || guest->memory.dirty || guest->faulting)
		program->starved_us = 0;
	else
		program->starved_us += GUEST_STEP_US;
	return got;
}

/* ---- stream ---- */

static void stream_step(struct program *p, struct guest *guest, double us)
{
	double left = (double)p->params.bytes - p->done;
	uint64_t bytes = (uint64_t)(COSTS_WRITE_BYTES_PER_S * us / GUEST_US_PER_S);

	if (!p->params.write) {
		double share = us * guest->disk.rate * p->params.parallel;

		bytes = (uint64_t)(COSTS_READAHEAD * share /
				   program_request_us(guest, COSTS_READAHEAD, true));
		guest->disk.streams += p->params.parallel;
	}
	bytes = (uint64_t)((double)bytes < left ? (double)bytes : left);
	p->missing += (double)bytes; /* less than a page is done with what follows */
	bytes = page_down((uint64_t)p->missing);
	if (p->params.write)
		bytes = min_u64(bytes, page_down(guest_dirty_room(guest)));
	bytes = program_allocate(p, guest, GUEST_FILES, bytes, p->params.write);
	p->missing -= (double)bytes;
	if (p->missing > COSTS_READAHEAD)
		p->missing = COSTS_READAHEAD; /* time that it waited is lost */
	p->done += (double)bytes;
	if (p->done + GUEST_PAGE > (double)p->params.bytes)
		program_end(p, guest);
}

/* ---- mem_eater ---- */

static void eater_step(struct program *p, struct guest *guest, double us)
{
	uint64_t chunk = page_down(p->params.bytes / EATER_CHUNKS);
	double most = us * 1000 / COSTS_MINOR_FAULT_NS * GUEST_PAGE;
	uint64_t left;

	if (guest->clock < p->nap_until)
		return;
	if (p->done >= EATER_CHUNKS) {
		program_end(p, guest);
		return;
	}
	left = chunk - (uint64_t)p->missing;
	p->missing += (double)program_allocate(
		p, guest, p->region, page_down(min_u64((uint64_t)most, left)), false);
	if ((uint64_t)p->missing < chunk)
		return;
	p->missing = 0;
	p->done++;
	p->nap_until = guest->clock + EATER_NAP_US;
}

/* ---- gzip ---- */

static void gzip_step(struct program *p, struct guest *guest, double us)
{
	uint64_t size = p->params.bytes, bytes, missing = 0, room = 0;
	double io;

	p->missing += COSTS_GZIP_BYTES_PER_S * us / GUEST_US_PER_S;
	bytes = page_down((uint64_t)p->missing);
	/* Making room may evict what is about to be read. */
	for (unsigned int i = 0; i < 4; i++) {
		missing = memory_read_missing(&guest->memory, p->region, bytes);
		if (missing <= room)
			break;
		room += guest_room(guest, missing - room);
	}
	if (missing > room) { /* what there was no room for goes at once: not read */
		guest->kinds[GUEST_FREE] += room;
		p->starved_us += guest->faulting ? 0 : GUEST_STEP_US;
		return;
	}
	guest->kinds[GUEST_FREE] += room - missing;
	if (missing) {
		io = (double)missing / COSTS_READAHEAD *
		     program_request_us(guest, COSTS_READAHEAD, true);
		/* What is read ahead is read while it computes. */
		guest_disk_wait(guest, &io, us);
		p->wait_us += io;
	}
	p->starved_us = 0;
	memory_read(&guest->memory, p->region, bytes);
	p->missing -= (double)bytes;
	p->done += (double)bytes;
	if (!p->measured && p->done >= (double)size)
		p->measured = guest->clock;
	if (p->done >= (double)size * (p->params.times + 1))
		program_end(p, guest);
}

/* ---- a working set that changes its size ---- */

static uint64_t diurnal_size(const struct program *p, uint64_t now)
{
	/* From midnight to midnight: 16 x^2 (1 - x)^2, which is 1 at noon and flat at both ends. */
	double x = (double)(now % p->params.period_us) / (double)p->params.period_us;
	double y = 16 * x * x * (1 - x) * (1 - x);

	return p->params.low + (uint64_t)(y * (double)(p->params.bytes - p->params.low));
}

static uint64_t trace_size(struct program *p, uint64_t now)
{
	size_t i = (size_t)p->done;

	while (i + 1 < p->params.nr_points && p->params.points[i + 1].time <= now)
		i++;
	p->done = (double)i;
	return p->params.points[i].bytes;
}

static void set_step(struct program *p, struct guest *guest, double us)
{
	const struct memory_region *r = &guest->memory.regions[p->region];
	uint64_t age = guest->clock - p->begun, want, has = r->resident + r->out;

	if (r->out)
		p->wait_us += program_fault(guest, p, p->region, &p->missing,
			guest->memory.regions[p->region].rate * us / GUEST_US_PER_S);
	if (guest->clock < p->nap_until)
		return;
	p->nap_until = guest->clock + SET_STEP_US;
	want = p->params.type == PROGRAM_TRACE ? trace_size(p, age) : diurnal_size(p, age);
	want = page_down(want);
	if (want > has) {
		program_allocate(p, guest, p->region, want - has, false);
	} else {
		want = has - want; /* too much: first what is out */
		want -= memory_forget(&guest->memory, p->region, want);
		guest_give_back(guest, p->region, want);
	}
	if (p->params.type == PROGRAM_TRACE &&
		age >= p->params.points[p->params.nr_points - 1].time)
		program_end(p, guest);
}

/* ---- all of them ---- */

void program_start(struct program *p, struct guest *guest, const struct program_params *params)
{
	struct memory *m = &guest->memory;

	*p = (struct program){ .params = *params, .begun = guest->clock, .random = params->seed };
	if (params->type != PROGRAM_GZIP)
		p->measured = guest->clock;
	if (!p->params.parallel)
		p->params.parallel = 1;
	switch (params->type) {
	case PROGRAM_STREAM:
		break;
	case PROGRAM_MEM_EATER:
	case PROGRAM_DIURNAL:
	case PROGRAM_TRACE:
		p->region = memory_region_new(m, MEMORY_ANON);
		if (params->type != PROGRAM_MEM_EATER)
			m->regions[p->region].rate = GUEST_HOT_TOUCHES_PER_S;
		else
			m->regions[p->region].still = true;
		break;
	case PROGRAM_GZIP:
		p->region = memory_region_new(m, MEMORY_CYCLIC);
		p->params.bytes = page_down(params->bytes);
		m->regions[p->region].size = p->params.bytes;
		m->regions[p->region].out = m->regions[p->region].fresh = p->params.bytes;
		break;
	case PROGRAM_KBUILD:
		kbuild_start(p, guest);
		break;
	}
}

bool program_step(struct program *p, struct guest *guest)
{
	double us = GUEST_STEP_US;

	if (p->ended)
		return false;
	if (p->starved_us > OOM_AFTER_US) {
		guest->ooms++;
		p->killed = true;
		program_end(p, guest);
		return true;
	}
	/* Who needs memory waits for what reclaim waits for. */
	if (guest->stall_us > 0 || guest->disk.write_us > WRITES_US)
		return true;
	us = guest_disk_wait(guest, &p->wait_us, us);
	if (us <= 0)
		return true;
	switch (p->params.type) {
	case PROGRAM_STREAM:
		stream_step(p, guest, us);
		break;
	case PROGRAM_MEM_EATER:
		eater_step(p, guest, us);
		break;
	case PROGRAM_KBUILD:
		if (!kbuild_step(p, guest, us))
			program_end(p, guest);
		break;
	case PROGRAM_GZIP:
		gzip_step(p, guest, us);
		break;
	case PROGRAM_DIURNAL:
	case PROGRAM_TRACE:
		set_step(p, guest, us);
		break;
	}
	return true;
}

void program_drop(struct guest *guest, unsigned int region)
{
	guest_give_back(guest, region, UINT64_MAX);
	memory_region_drop(&guest->memory, region);
}

/* The region's pages are page cache like any other from now on. */
static void leave_in_cache(struct guest *guest, unsigned int region)
{
	struct memory *m = &guest->memory;

	memory_add(m, GUEST_FILES, memory_remove(m, region, UINT64_MAX), false, false);
	memory_region_drop(m, region);
}

void program_end(struct program *p, struct guest *guest)
{
	if (p->ended)
		return;
	if (p->params.type == PROGRAM_KBUILD)
		kbuild_end(p, guest);
	if (p->params.type == PROGRAM_GZIP || p->params.type == PROGRAM_KBUILD)
		leave_in_cache(guest, p->region);
	else if (p->params.type != PROGRAM_STREAM)
		program_drop(guest, p->region);
	p->ended = guest->clock ? guest->clock : 1;
}

uint64_t program_elapsed_us(const struct program *p)
{
	uint64_t us;

	if (!p->ended || !p->measured || p->killed)
		return 0;
	us = p->ended - p->measured;
	return p->params.type == PROGRAM_GZIP && p->params.times ? us / p->params.times : us;
}
