/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a guest's work, its balloon and its own reclaim move in a step; see guest.h. */
#include <config.h>

#include "hv/sim/guest_internal.h"

#include "hv/sim/costs.h"

/* What is dirty is written after that long: vm.dirty_expire_centisecs. */
#define DIRTY_EXPIRE_US (30 * GUEST_US_PER_S)
/* The flusher writes so much of a file before it turns to another: MAX_WRITEBACK_PAGES. */
#define WRITE_BATCH (1024 * GUEST_PAGE)

/* ---- memory from kind to kind ---- */

/*
 * So much of what was idle is used or freed: the part that the host swapped out is back, or gone.
 * idle: how much was, before.
 */
static void leaves_idle(struct guest *guest, uint64_t idle, uint64_t bytes, bool used)
{
	uint64_t back = page_down(mul_div(min_u64(bytes, idle), guest->host_swapped, idle));

	guest->host_swapped -= min_u64(back, guest->host_swapped);
	if (used)
		guest->host_faults += back;
}

double guest_disk_wait(struct guest *guest, double *wait_us, double us)
{
	double most = us * guest->disk.rate;

	if (*wait_us <= 0)
		return us;
	guest->disk.streams++;
	if (*wait_us >= most) {
		*wait_us -= most;
		return 0;
	}
	us -= *wait_us / guest->disk.rate;
	*wait_us = 0;
	return us;
}

/* The elevator puts together what is written of one file. */
static double write_us_per_byte(const struct guest *guest)
{
	double us = (double)GUEST_US_PER_S / COSTS_DISK_BYTES_PER_S;

	return guest->disk.mixed ? us + (double)COSTS_SEEK_US / WRITE_BATCH : us;
}

/* The guest's kernel frees at most so much; it is on no list then, and the caller's. */
static uint64_t evict(struct guest *guest, uint64_t bytes)
{
	struct memory_reclaim how = { .bytes = bytes, .swap = guest->params.swap };
	uint64_t idle = idle_touched(guest), got;

	if (!bytes)
		return 0;
	got = memory_reclaim(&guest->memory, &how);
	leaves_idle(guest, idle, how.file, false);
	leaves_idle(guest, sub(idle, how.file), how.anon, true);
	guest->disk.write_us += (double)how.anon * GUEST_US_PER_S / COSTS_DISK_BYTES_PER_S;
	return got;
}

uint64_t guest_shrink(struct guest *guest, struct memory_reclaim *how)
{
	uint64_t idle = idle_touched(guest), got, pageouts = guest->memory.pageouts;

	how->swap = guest->params.swap;
	got = memory_reclaim(&guest->memory, how);
	leaves_idle(guest, idle, how->file, false);
	leaves_idle(guest, sub(idle, how->file), how->anon, true);
	guest->kinds[GUEST_UNTOUCHED] += got;
	guest->disk.write_us += (double)how->anon * GUEST_US_PER_S / COSTS_DISK_BYTES_PER_S;
	/* At priority 0 what is dirty is written at once, and waited for. */
	pageouts = guest->memory.pageouts - pageouts;
	guest->stall_us += (double)pageouts * write_us_per_byte(guest);
	guest->quiet = false;
	return got;
}

uint64_t guest_free_inside(struct guest *guest, uint64_t bytes, bool anon)
{
	struct memory_reclaim how = { .bytes = bytes, .swap = anon ? guest->params.swap : 0 };
	uint64_t idle = idle_touched(guest), got = memory_reclaim(&guest->memory, &how);

	/* Where the host swapped out what is free now, that stays so. */
	leaves_idle(guest, sub(idle, how.file), how.anon, true);
	guest->kinds[GUEST_FREE] += got;
	guest->disk.write_us += (double)how.anon * GUEST_US_PER_S / COSTS_DISK_BYTES_PER_S;
	guest->quiet = false;
	return got;
}

/* Of so much that is touched for the first time, what is there. */
static uint64_t touch(struct guest *guest, uint64_t bytes)
{
	const struct guest_params *p = &guest->params;
	uint64_t got =
		p->fault && bytes ? GUEST_PAGE * p->fault(p->fault_ctx, bytes / GUEST_PAGE) : bytes;

	guest->kinds[GUEST_UNTOUCHED] -= got;
	guest->faulting |= got < bytes;
	return got;
}

uint64_t guest_room(struct guest *guest, uint64_t bytes)
{
	uint64_t *kinds = guest->kinds;
	uint64_t got, part, idle;

	got = min_u64(bytes, sub(free_memory(guest), guest->params.reserve));
	/* What was just used lies on top of the free lists. */
	part = min_u64(got, kinds[GUEST_FREE]);
	idle = idle_touched(guest);
	leaves_idle(guest, idle, part, true);
	kinds[GUEST_FREE] -= part;
	got = part + touch(guest, got - part);
	if (guest->faulting)
		return got; /* it waits for the page that it has, and looks for no other */
	got += evict(guest, bytes - got);
	if (got < bytes && guest->params.deflate_on_oom)
		got += min_u64(bytes - got, guest->params.maximum - guest_actual(guest) - got);
	return got;
}

uint64_t guest_give_back(struct guest *guest, unsigned int region, uint64_t bytes)
{
	uint64_t idle = idle_touched(guest), before = memory_idle(&guest->memory), after;
	uint64_t got = memory_remove(&guest->memory, region, bytes);

	after = memory_idle(&guest->memory);
	leaves_idle(guest, idle, before - after, false);
	guest->kinds[GUEST_FREE] += got;
	return got;
}

/* ---- what moves in one step ---- */

static bool work_step(struct guest *guest, struct guest_work *work)
{
	static const enum guest_region makes[] = { [GUEST_WORK_GROW] = GUEST_IDLE,
		[GUEST_WORK_HOT] = GUEST_HOT,
		[GUEST_WORK_STREAM] = GUEST_FILES,
		[GUEST_WORK_HOT_FILE] = GUEST_HOT_FILES };
	uint64_t due = work->unmoved + work->rate * GUEST_STEP_US;
	uint64_t bytes = min_u64(page_down(due / GUEST_US_PER_S), work->left);
	bool active = work->type == GUEST_WORK_HOT || work->type == GUEST_WORK_HOT_FILE;
	uint64_t got = 0;

	work->unmoved = due - bytes * GUEST_US_PER_S;
	if (work->type == GUEST_WORK_SHRINK) {
		got = guest_give_back(guest, GUEST_IDLE, bytes);
		got += guest_give_back(guest, GUEST_HOT, bytes - got);
		work->left = got < bytes ? 0 : work->left - got;
		return true;
	}
	got = guest_room(guest, bytes);
	memory_add(&guest->memory, makes[work->type], got, active, false);
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

/* What is hot and was taken away is read back, as fast as the disk gives it. */
static bool hot_step(struct guest *guest, enum guest_region region)
{
	uint64_t most = page_down(guest->params.disk * GUEST_STEP_US / GUEST_US_PER_S);
	const struct memory_region *r = &guest->memory.regions[region];
	uint64_t bytes = min_u64(most, r->out), room;

	if (!bytes)
		return false;
	room = guest_room(guest, bytes);
	/* What is read for want of room goes round: read, and gone before it is used again. */
	if (r->use == MEMORY_ANON)
		guest->swap_in += bytes;
	else
		guest->memory.refaults += bytes - room;
	if (r->use != MEMORY_ANON)
		guest->memory.restores += bytes - room;
	memory_fault_in(&guest->memory, region, room);
	return true;
}

/* What the host swapped out of what is in use comes back at the disk's speed, and is waited for. */
static bool host_swap_step(struct guest *guest)
{
	uint64_t bytes = sub(guest->host_swapped, idle_touched(guest));
	double us;

	bytes = min_u64(bytes, page_down(guest->params.disk * GUEST_STEP_US / GUEST_US_PER_S));
	if (!bytes)
		return false;
	guest->host_swapped -= bytes;
	guest->host_faults += bytes;
	us = (double)bytes / COSTS_SWAP_CLUSTER * COSTS_SEEK_US;
	if (guest->nr_programs)
		guest->stall_us += us;
	else
		guest->disk.write_us += us;
	return true;
}

static uint64_t dirtyable(const struct guest *guest)
{
	return free_memory(guest) + guest->memory.sums[MEMORY_INACTIVE_FILE] +
	       guest->memory.sums[MEMORY_ACTIVE_FILE];
}

uint64_t guest_dirty_room(const struct guest *guest)
{
	return sub(dirtyable(guest) * COSTS_DIRTY_PERCENT / 100, guest->memory.dirty);
}

/* The flusher: from a tenth of what is usable on, or what is old, or what reclaim asks for. */
static bool flush_step(struct guest *guest)
{
	struct memory *m = &guest->memory;
	bool urgent = m->met_dirty || !guest_dirty_room(guest);
	double us = GUEST_STEP_US, wait;

	if (guest->disk.write_us > 0)
		us = guest_disk_wait(guest, &guest->disk.write_us, us);
	if (!m->dirty) {
		guest->dirty_since = 0;
		m->met_dirty = false;
		return guest->disk.write_us > 0;
	}
	if (!guest->dirty_since)
		guest->dirty_since = guest->clock;
	if (m->dirty < dirtyable(guest) * COSTS_DIRTY_BACKGROUND_PERCENT / 100 && !urgent &&
		guest->clock - guest->dirty_since < DIRTY_EXPIRE_US)
		return true;
	wait = us * guest->disk.rate;
	wait = (double)memory_write(m, page_down((uint64_t)(wait / write_us_per_byte(guest)))) *
	       write_us_per_byte(guest);
	guest_disk_wait(guest, &wait, us);
	return true;
}

/* ---- the balloon ---- */

/* How much of so much time and the balloon's speed allow. */
static uint64_t in_budget(const struct guest *guest, uint64_t bytes, uint64_t speed)
{
	return min_u64(bytes, page_down(mul_div(guest->budget_us, speed, GUEST_US_PER_S)));
}

static void spend(struct guest *guest, uint64_t bytes, uint64_t speed)
{
	guest->budget_us -= min_u64(guest->budget_us, mul_div(bytes, GUEST_US_PER_S, speed));
}

static uint64_t inflate_free(struct guest *guest, enum guest_kind kind, uint64_t bytes)
{
	uint64_t speed = guest->params.inflate_free;

	bytes = in_budget(guest, min_u64(bytes, guest->kinds[kind]), speed);
	if (kind == GUEST_FREE)
		leaves_idle(guest, idle_touched(guest), bytes, false);
	guest->kinds[kind] -= bytes;
	spend(guest, bytes, speed);
	return bytes;
}

/* What the guest's kernel has to free first; page cache is faster than what has to be swapped. */
static uint64_t inflate_used(struct guest *guest, uint64_t bytes)
{
	const struct guest_params *p = &guest->params;
	struct memory *m = &guest->memory;
	uint64_t file = memory_reclaimable(m, 0), anon, got;

	bytes = min_u64(bytes, memory_reclaimable(m, p->swap));
	bytes = in_budget(guest, bytes, file ? p->inflate_cache : p->inflate_swap);
	anon = m->swap_outs;
	got = evict(guest, bytes);
	anon = m->swap_outs - anon;
	spend(guest, anon, p->inflate_swap);
	spend(guest, got - anon, p->inflate_cache);
	return got;
}

static bool inflate_step(struct guest *guest, uint64_t want)
{
	uint64_t part, got;

	/*
	 * Untouched pages first: nothing is gained until they are in the balloon. Of free memory
	 * the allocator's reserve stays.
	 */
	part = min_u64(want, sub(free_memory(guest), guest->params.reserve));
	got = inflate_free(guest, GUEST_UNTOUCHED, part);
	got += inflate_free(guest, GUEST_FREE, part - got);
	if (got < part)
		return true; /* time ran out */
	if (got == want)
		return got > 0;
	if (!memory_reclaimable(&guest->memory, guest->params.swap)) {
		guest->memory.met_dirty |= guest->memory.dirty > 0;
		return got > 0;
	}
	inflate_used(guest, want - got);
	return true;
}

/* Where the balloon is on the way to: below its stop the guest takes back what it wants. */
static uint64_t heading(struct guest *guest, uint64_t actual)
{
	const struct guest_params *p = &guest->params;
	uint64_t stop = min_u64(p->stop, p->maximum),
		 top = min_u64(stop + 2 * p->wobble, p->maximum);

	if (guest->target >= stop)
		return guest->target;
	if (actual <= stop)
		guest->wobbles_up = true;
	else if (actual >= top)
		guest->wobbles_up = false;
	return guest->wobbles_up ? top : stop;
}

static bool balloon_step(struct guest *guest, uint64_t now)
{
	uint64_t actual = guest_actual(guest), target = heading(guest, actual), bytes;
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
		bytes = in_budget(guest, target - actual, guest->params.deflate);
		guest->kinds[GUEST_UNTOUCHED] += bytes;
		spend(guest, bytes, guest->params.deflate);
		moved = true;
	}
	if (!moved)
		guest->budget_us = 0; /* stuck: it does not save up for later */
	return moved;
}

uint64_t guest_report_free(struct guest *guest, uint64_t bytes)
{
	bytes = min_u64(bytes, guest->kinds[GUEST_FREE]);
	leaves_idle(guest, idle_touched(guest), bytes, false);
	guest->kinds[GUEST_FREE] -= bytes;
	guest->kinds[GUEST_UNTOUCHED] += bytes;
	return bytes;
}

static bool reporting_step(struct guest *guest)
{
	uint64_t bytes = page_down(guest->params.reported * GUEST_STEP_US / GUEST_US_PER_S);

	return guest->params.reporting && guest_report_free(guest, bytes) > 0;
}

bool guest_step(struct guest *guest, uint64_t now)
{
	bool moved, waits = guest->stall_us > 0, missing;

	guest->faulting = false;
	moved = works_step(guest);
	for (unsigned int i = 0; i < guest->nr_programs; i++)
		moved |= program_step(&guest->programs[i], guest);
	guest_disk_wait(guest, &guest->stall_us, GUEST_STEP_US);
	missing = hot_step(guest, GUEST_HOT_FILES);
	missing |= hot_step(guest, GUEST_HOT);
	guest->pressure_us += missing || waits ? GUEST_STEP_US : 0;
	moved |= missing;
	moved |= host_swap_step(guest);
	moved |= flush_step(guest);
	moved |= balloon_step(guest, now);
	moved |= reporting_step(guest);
	return moved;
}
