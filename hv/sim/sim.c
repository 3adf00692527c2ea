/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The simulated host: its guests, what is done to them, and time; see sim.h. Guests are guest.c's,
 * calls are answered in answer.c.
 */
#include <config.h>

#include "hv/sim/sim_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hv/sim/costs.h"

#define MIB (UINT64_C(1) << 20)
/* Calls that are out at most; far more than one a VM. */
#define CALLS_MAX 65536
/* A reboot was seen to be told three times. */
#define REBOOT_EVENTS 3
/* Who was at the disk so lately is at it still. */
#define MIXED_US (100 * 1000)

/* A UUID that is a VM's for ever: FNV-1a of its name. */
static struct hv_uuid uuid_of(const char *name)
{
	uint64_t hash[2] = { UINT64_C(0xcbf29ce484222325), UINT64_C(0x84222325cbf29ce4) };
	struct hv_uuid uuid;

	for (unsigned int i = 0; i < 2; i++)
		for (const char *c = name; *c; c++)
			hash[i] = (hash[i] ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	memcpy(uuid.bytes, hash, sizeof uuid.bytes);
	uuid.bytes[6] = (uuid.bytes[6] & 0x0f) | 0x40;
	uuid.bytes[8] = (uuid.bytes[8] & 0x3f) | 0x80;
	return uuid;
}

/* ---- actions ---- */

static uint64_t boot_us(struct hv *hv)
{
	return sim_draw(hv, hv->host.boot_min_us, hv->host.boot_max_us);
}

static void host_action(struct hv *hv, const struct sim_action *action)
{
	struct hv_event event = { .type = action->type == SIM_UP ? HV_EVENT_UP : HV_EVENT_DOWN };

	hv->guests_at = 0;
	if (action->type == SIM_OTHERS) {
		hv->host.others = action->bytes;
		return;
	}
	if (hv->up == (action->type == SIM_UP))
		return;
	hv->up = action->type == SIM_UP;
	sim_tell(hv, &event);
	if (!hv->up)
		sim_release_hung(hv, 1);
}

/* From SIM_MIGRATE on. */
static const enum hv_job jobs[] = { HV_JOB_MIGRATION, HV_JOB_POSTCOPY, HV_JOB_SAVE, HV_JOB_SNAPSHOT,
	HV_JOB_BACKUP, HV_JOB_NONE };

static void vm_action(struct hv *hv, struct sim_guest *vm, const struct sim_action *action)
{
	struct guest *guest = &vm->guest;
	bool changed = false;

	guest_advance(guest, hv->now);
	hv->guests_at = 0;
	switch (action->type) {
	case SIM_WORK:
		if (guest->state != GUEST_OFF)
			guest_work(guest, action->work, action->bytes, action->rate);
		break;
	case SIM_RUN: {
		struct program_params program = action->program;

		program.seed = sim_draw(hv, 0, UINT64_MAX - 1);
		guest_run(guest, &program);
		break;
	}
	case SIM_IDLE:
		guest_idle(guest);
		break;
	case SIM_PAUSE:
		guest_pause(guest, hv->now);
		changed = true;
		break;
	case SIM_RESUME:
		guest_resume(guest, hv->now);
		changed = true;
		break;
	case SIM_STOP:
		guest_stop(guest, hv->now);
		break;
	case SIM_WAKE:
		guest_wake(guest, hv->now);
		sim_release_hung(hv, sim_draw(hv, hv->host.call_min_us, hv->host.call_max_us));
		break;
	case SIM_REBOOT:
		if (guest->state == GUEST_OFF)
			break;
		sim_agent_end(vm);
		guest_reboot(guest, hv->now, boot_us(hv));
		for (unsigned int i = 0; i < REBOOT_EVENTS; i++)
			sim_tell_vm(hv, HV_EVENT_REBOOTED, vm, 0);
		break;
	case SIM_OFF:
		sim_agent_end(vm);
		guest_off(guest);
		vm->ceiling = 0; /* live metadata goes with the process */
		vm->job = HV_JOB_NONE;
		changed = true;
		sim_release_hung(hv, 1);
		break;
	case SIM_START:
		if (guest->state == GUEST_OFF) {
			guest_start(guest, hv->now, boot_us(hv));
			vm->started++;
		}
		changed = true;
		break;
	case SIM_METADATA_SOFT_LIMIT:
		vm->metadata.has_soft_limit = true;
		vm->metadata.soft_limit = action->bytes;
		changed = true;
		break;
	case SIM_MEMTUNE_SOFT_LIMIT:
		vm->memtune.has_soft_limit = true;
		vm->memtune.soft_limit = action->bytes;
		break;
	case SIM_SETMEM:
		guest_set_target(guest, hv->now, action->bytes);
		break;
	case SIM_STUCK:
		guest->params.stop = action->bytes;
		guest->quiet = false;
		break;
	case SIM_SWAP_OUT: {
		uint64_t out = guest_swap_out(guest, action->bytes, false);

		hv->swapped_out += out;
		break;
	}
	case SIM_MIGRATE:
	case SIM_POSTCOPY:
	case SIM_SAVE:
	case SIM_SNAPSHOT:
	case SIM_BACKUP:
	case SIM_JOB_END:
		vm->job = jobs[action->type - SIM_MIGRATE];
		changed = true;
		break;
	case SIM_ARRIVE:
		vm->incoming = false;
		changed = true;
		break;
	case SIM_PLUG:
		guest_plug(guest, action->bytes);
		changed = true;
		break;
	case SIM_PLUG_DEVICE:
		vm->kinds |= HV_KIND_PINNED;
		guest_touch_all(guest);
		changed = true;
		break;
	case SIM_UNPLUG_DEVICE:
		vm->kinds &= ~(unsigned int)HV_KIND_PINNED;
		changed = true;
		break;
	case SIM_RECREATE:
		sim_agent_end(vm);
		guest_off(guest);
		vm->ceiling = 0;
		guest_start(guest, hv->now, boot_us(hv));
		vm->started++;
		break;
	case SIM_THROTTLE:
		vm->throttle = action->bytes;
		break;
	case SIM_AGENT_SILENT:
	case SIM_AGENT_SPEAKS:
		sim_agent_silence(vm, action->type == SIM_AGENT_SILENT);
		break;
	case SIM_OTHERS:
	case SIM_DOWN:
	case SIM_UP:
		break;
	}
	if (changed)
		sim_tell_vm(hv, HV_EVENT_CHANGED, vm, 0);
}

/* ---- time ---- */

/* Between two steps of theirs a guest that nobody touches is as it was. */
static bool advance_guests(struct hv *hv, uint64_t to)
{
	uint64_t actual;

	if (to < hv->guests_at)
		return false;
	hv->guests_at = 0;
	for (struct sim_guest *vm = hv->by_uuid; vm; vm = vm->by_uuid.next) {
		guest_advance(&vm->guest, to);
		sim_agent_step(vm);
		if (guest_take_balloon_event(&vm->guest, to, &actual))
			sim_tell_vm(hv, HV_EVENT_BALLOON, vm, actual);
	}
	return true;
}

/* All streams have equal parts of the disk; several at once and nothing is in order for it. */
static void disk_step(struct hv *hv)
{
	unsigned int streams = 0;

	if (hv->now < hv->disk_at + GUEST_STEP_US)
		return;
	hv->disk_at = hv->now;
	for (struct sim_guest *vm = hv->by_uuid; vm; vm = vm->by_uuid.next) {
		streams += vm->guest.disk.streams;
		vm->guest.disk.streams = 0;
	}
	if (streams > 1)
		hv->mixed_until = hv->now + MIXED_US;
	for (struct sim_guest *vm = hv->by_uuid; vm; vm = vm->by_uuid.next) {
		vm->guest.disk.rate = streams > 1 ? 1.0 / streams : 1;
		vm->guest.disk.mixed = hv->now < hv->mixed_until;
	}
}

/* Those whose memory is the host's. */
static int gather(struct hv *hv, size_t *ret_nr)
{
	size_t nr = 0, all = HASH_CNT(by_uuid, hv->by_uuid);
	struct rival_guest *guests;

	if (all > hv->rival_guests_size) {
		guests = realloc(hv->rival_guests, all * sizeof *guests);
		if (!guests)
			return -ENOMEM;
		hv->rival_guests = guests;
		hv->rival_guests_size = all;
	}
	for (struct sim_guest *vm = hv->by_uuid; vm; vm = vm->by_uuid.next) {
		const struct hv_knobs *knobs =
			vm->metadata.has_soft_limit ? &vm->metadata : &vm->memtune;

		if (vm->guest.state == GUEST_OFF || vm->kinds & HV_KIND_HUGE_PAGES)
			continue;
		hv->rival_guests[nr++] = (struct rival_guest){ &vm->guest,
			knobs->has_soft_limit ? knobs->soft_limit : UINT64_MAX,
			vm->metadata.group };
	}
	*ret_nr = nr;
	return 0;
}

/* A kernel's reclaim: whom it leaves without memory waits. */
static void reclaim_step(struct hv *hv)
{
	struct rival_host host = { .groups = hv->host.groups, .nr_groups = hv->host.nr_groups };
	uint64_t low, high, used;

	/* The groups of one kernel: what one frees is free for all. */
	for (struct sim_guest *vm = hv->by_uuid; vm; vm = vm->by_uuid.next)
		guest_report_free(&vm->guest, UINT64_MAX);
	used = sim_host_used(hv);
	rival_watermarks(hv->host.total, &low, &high);
	if (used + low <= hv->host.total)
		return;
	if (gather(hv, &host.nr_guests) < 0) {
		hv->lost = true;
		return;
	}
	host.guests = hv->rival_guests;
	hv->host.rival->reclaim(&host, used + high - hv->host.total);
	used = sim_host_used(hv);
	if (used <= hv->host.total)
		return;
	if (used - hv->host.total > hv->beyond)
		hv->beyond = used - hv->host.total;
	for (size_t i = 0; i < host.nr_guests; i++)
		if (host.guests[i].guest->stall_us < GUEST_STEP_US)
			host.guests[i].guest->stall_us += GUEST_STEP_US;
}

/* At most so much goes to the host's swap, of all guests in proportion; what is idle, or all. */
static uint64_t swap_out(struct hv *hv, uint64_t want, bool hot)
{
	uint64_t all = 0, out = 0, has, part;

	for (struct sim_guest *vm = hv->by_uuid; vm; vm = vm->by_uuid.next)
		all += hot ? guest_resident(&vm->guest) : guest_idle_memory(&vm->guest);
	for (struct sim_guest *vm = hv->by_uuid; vm && all && want; vm = vm->by_uuid.next) {
		has = hot ? guest_resident(&vm->guest) : guest_idle_memory(&vm->guest);
		part = (uint64_t)((__extension__(unsigned __int128) want * has) / all);
		all -= has;
		part = guest_swap_out(
			&vm->guest, (part + GUEST_PAGE - 1) / GUEST_PAGE * GUEST_PAGE, hot);
		want -= part < want ? part : want;
		out += part;
		vm->guest.disk.write_us += (double)part * SIM_US_PER_S / COSTS_DISK_BYTES_PER_S;
	}
	return out;
}

/* The host swaps when more is used than it has: what is idle, and then whatever there is. */
static void host_step(struct hv *hv)
{
	struct hv_event event = { .type = HV_EVENT_PRESSURE };
	uint64_t used, over, swapped = 0, want, out;

	disk_step(hv);
	if (!hv->host.total)
		return;
	if (hv->host.rival->reclaim) {
		reclaim_step(hv);
		return;
	}
	used = sim_host_used(hv);
	if (used <= hv->host.total)
		return;
	hv->guests_at = 0;
	over = used - hv->host.total;
	for (struct sim_guest *vm = hv->by_uuid; vm; vm = vm->by_uuid.next)
		swapped += vm->guest.host_swapped;
	want = hv->host.swap > swapped ? hv->host.swap - swapped : 0;
	want = want < over ? want : over;
	out = swap_out(hv, want, false);
	if (out < want)
		out += swap_out(hv, want - out, true);
	hv->swapped_out += out;
	if (out < over && over - out > hv->beyond)
		hv->beyond = over - out;
	if (hv->now >= hv->pressure_at) {
		hv->pressure_at = hv->now + SIM_US_PER_S;
		sim_tell(hv, &event);
	}
}

static uint64_t guests_next(const struct hv *hv)
{
	uint64_t next = SIM_NEVER, at;

	if (hv->guests_at)
		return hv->guests_at;
	for (const struct sim_guest *vm = hv->by_uuid; vm; vm = vm->by_uuid.next) {
		at = guest_next(&vm->guest);
		next = at < next ? at : next;
		at = sim_agent_next(vm);
		next = at < next ? at : next;
	}
	return next;
}

static uint64_t next_change(const struct hv *hv)
{
	uint64_t guests = guests_next(hv);

	return hv->nr_heap && hv->heap[0].due < guests ? hv->heap[0].due : guests;
}

uint64_t sim_next(const struct hv *hv)
{
	uint64_t next = hv->first ? hv->now : next_change(hv);

	return next > hv->now ? next : hv->now;
}

uint64_t sim_now(const struct hv *hv)
{
	return hv->now;
}

int sim_advance(struct hv *hv, uint64_t now)
{
	struct sim_item item;
	uint64_t next;
	bool moved;

	assert(now >= hv->now);
	hv->lost = false;
	do {
		hv->guests_at = guests_next(hv);
		next = next_change(hv);
		if (next > hv->now)
			hv->now = next < now ? next : now;
		moved = advance_guests(hv, hv->now);
		while (hv->nr_heap && hv->heap[0].due <= hv->now) {
			item = sim_heap_take(hv);
			if (item.dropped)
				continue;
			if (item.is_call)
				sim_answer(hv, &item);
			else if (item.vm)
				vm_action(hv, item.vm, &item.action);
			else
				host_action(hv, &item.action);
		}
		if (moved || !hv->guests_at)
			host_step(hv);
		sim_paging_settle(hv);
	} while (hv->now < now);
	return hv->lost ? -ENOMEM : 0;
}

/* ---- making it ---- */

void sim_host_default(struct sim_host *ret_host)
{
	*ret_host = (struct sim_host){
		.seed = 1,
		.rival = rival_find("ballast"),
		.call_min_us = 2000, /* a balloon call took 2 to 6 ms */
		.call_max_us = 6000,
		.boot_min_us = 5 * SIM_US_PER_S, /* the driver was back 5 to 8 s after a reboot */
		.boot_max_us = 8 * SIM_US_PER_S,
	};
}

int sim_host_set(struct hv *hv, const struct sim_host *host)
{
	if (host->call_min_us > host->call_max_us || host->boot_min_us > host->boot_max_us)
		return -EINVAL;
	if (hv->by_uuid)
		return -EBUSY;
	hv->host = *host;
	hv->random = host->seed;
	return 0;
}

void sim_vm_default(struct sim_vm *ret_vm)
{
	*ret_vm = (struct sim_vm){ .overhead = 32 * MIB };
	guest_params_default(&ret_vm->guest);
}

static void vm_free(struct sim_guest *vm)
{
	sim_agent_free(vm);
	free(vm->name);
	free(vm->partition);
	hv_knobs_clear(&vm->metadata);
	hv_knobs_clear(&vm->memtune);
	free(vm);
}

static struct sim_guest *find(const struct hv *hv, const char *name)
{
	struct sim_guest *vm;

	HASH_FIND(by_name, hv->by_name, name, strlen(name), vm);
	return vm;
}

/* As it was left by an earlier ballast: the balloon holds what it holds. */
static void start_ballooned(struct guest *guest, const struct sim_vm *from)
{
	uint64_t left = guest->params.maximum - from->actual;

	if (from->actual && from->actual < guest->params.maximum) {
		left = left < guest->kinds[GUEST_UNTOUCHED] ? left : guest->kinds[GUEST_UNTOUCHED];
		guest->kinds[GUEST_UNTOUCHED] -= left;
		guest->target = guest->told_actual = guest_actual(guest);
	}
	guest_swap_out(guest, from->host_swapped, false);
}

int sim_vm_add(struct hv *hv, const struct sim_vm *from)
{
	struct sim_guest *vm;
	int r = 0;

	if (!from->name || !*from->name || from->guest.maximum < from->guest.fixed ||
		from->guest.maximum % GUEST_PAGE)
		return -EINVAL;
	if (find(hv, from->name))
		return -EEXIST;
	vm = calloc(1, sizeof *vm);
	if (!vm)
		return -ENOMEM;
	vm->uuid = uuid_of(from->name);
	vm->metadata = sim_copy_knobs(&from->metadata, &r);
	vm->memtune = sim_copy_knobs(&from->memtune, &r);
	vm->name = sim_copy_text(from->name, &r);
	vm->partition = sim_copy_text(from->partition, &r);
	if (r < 0) {
		vm_free(vm);
		return r;
	}
	vm->overhead = from->overhead;
	vm->ceiling = from->ceiling;
	vm->partial_every = from->partial_every;
	vm->kinds = from->kinds;
	vm->incoming = from->incoming;
	vm->throttle = from->throttle;
	vm->started = 1;
	vm->lowest_target = SIM_NEVER;
	guest_init(&vm->guest, &from->guest);
	r = sim_agent_new(hv, vm);
	if (r < 0) {
		vm_free(vm);
		return r;
	}
	if (from->pager)
		sim_paging_init(hv, vm);
	if (!from->off) {
		guest_start(&vm->guest, hv->now, from->guest.driver_us);
		start_ballooned(&vm->guest, from);
		guest_set_period(&vm->guest, hv->now, from->period_s * SIM_US_PER_S);
	}
	hv->guests_at = 0;
	HASH_ADD(by_uuid, hv->by_uuid, uuid, sizeof vm->uuid, vm);
	HASH_ADD_KEYPTR(by_name, hv->by_name, vm->name, strlen(vm->name), vm);
	return 0;
}

int sim_at(struct hv *hv, uint64_t time, const char *vm, const struct sim_action *action)
{
	struct sim_item item = { .due = time, .action = *action };

	if (time < hv->now)
		return -EINVAL;
	if (vm) {
		item.vm = find(hv, vm);
		if (!item.vm)
			return -ENOENT;
	}
	return sim_heap_add(hv, &item);
}

int sim_vm_view(const struct hv *hv, const char *name, struct sim_vm_view *ret_view)
{
	const struct sim_guest *vm = find(hv, name);

	if (!vm)
		return -ENOENT;
	*ret_view = (struct sim_vm_view){ vm->name, &vm->uuid, &vm->guest, vm->targets,
		vm->lowest_target, vm->ceiling, vm->paging.charged * GUEST_PAGE,
		&vm->paging.counts };
	return 0;
}

void sim_host_view(const struct hv *hv, struct sim_host_view *ret_view)
{
	*ret_view = (struct sim_host_view){ hv->host.total, sim_host_used(hv), hv->swapped_out,
		hv->beyond, hv->nr_calls };
}

/* ---- the backend ---- */

static bool sim_handles(const char *uri)
{
	return strcmp(uri, "sim:///") == 0;
}

static int sim_open(const struct hv_params *params, struct hv **ret_hv)
{
	struct sim_item up = { .action = { .type = SIM_UP } };
	struct hv *hv;
	int r;

	if (!params->uri || !sim_handles(params->uri))
		return -EINVAL;
	hv = calloc(1, sizeof *hv);
	if (!hv)
		return -ENOMEM;
	hv->last = &hv->first;
	sim_host_default(&hv->host);
	hv->random = hv->host.seed;
	r = sim_heap_add(hv, &up);
	if (r < 0)
		free(hv);
	else
		*ret_hv = hv;
	return r;
}

static int sim_take(struct hv *hv, struct hv_event *ret_event)
{
	struct sim_ready *ready = hv->first;

	if (!ready)
		return 0;
	*ret_event = ready->event;
	hv->first = ready->next;
	if (!hv->first)
		hv->last = &hv->first;
	free(ready);
	return 1;
}

static void drop_events(struct hv *hv)
{
	struct hv_event event;

	while (sim_take(hv, &event) > 0)
		hv_event_clear(&event);
}

void sim_new_client(struct hv *hv)
{
	struct hv_event up = { .type = HV_EVENT_UP };

	drop_events(hv);
	for (size_t i = 0; i < hv->nr_heap; i++)
		hv->heap[i].dropped = hv->heap[i].is_call;
	hv->nr_hung = 0;
	hv->nr_calls = 0;
	hv->guests_at = 0;
	if (hv->up)
		sim_tell(hv, &up);
	for (struct sim_guest *vm = hv->by_uuid; vm; vm = vm->by_uuid.next)
		sim_agent_new_client(vm);
}

static void sim_close(struct hv *hv)
{
	struct sim_guest *vm, *next;

	if (!hv)
		return;
	drop_events(hv);
	HASH_CLEAR(by_name, hv->by_name);
	HASH_ITER (by_uuid, hv->by_uuid, vm, next) {
		HASH_DELETE(by_uuid, hv->by_uuid, vm);
		vm_free(vm);
	}
	free(hv->heap);
	free(hv->hung);
	free(hv->rival_guests);
	free(hv);
}

static int sim_fd(struct hv *hv)
{
	return -1;
}

static int sim_submit(struct hv *hv, const struct hv_call *call)
{
	struct sim_item item = { .is_call = true, .call = *call };
	int r;

	if ((unsigned int)call->type > HV_HOST)
		return -EINVAL;
	if (hv->nr_calls >= CALLS_MAX)
		return -EAGAIN;
	item.due = hv->now + sim_draw(hv, hv->host.call_min_us, hv->host.call_max_us);
	r = sim_heap_add(hv, &item);
	if (r < 0)
		return r;
	hv->nr_calls++;
	return 0;
}

const struct hv_backend hv_sim = {
	.name = "sim",
	.loosens = true,
	.granule = MIB,
	.handles = sim_handles,
	.open = sim_open,
	.close = sim_close,
	.fd = sim_fd,
	.submit = sim_submit,
	.next = sim_take,
};
