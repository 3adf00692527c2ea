/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Simulated VMMs whose page faults ballast resolves, as hv/pager does for real ones: each charges
 * page by page with charge_try(), from a stock of its own. See sim.h.
 */
#include <config.h>

#include "hv/sim/sim_internal.h"

#include <errno.h>

#include "hv/pager/pager.h"
#include "policy/engine.h"

/* A fault over a max waits so long for room, and is then let through. */
#define WAIT_US (PAGER_WAIT_TURNS * PAGER_TURN_MS * UINT64_C(1000))

/* One page, before it is there; false: its vCPU waits. */
static bool fault_one(struct sim_guest *vm)
{
	struct sim_paging *p = &vm->paging;
	struct memcg *refused;
	int r = p->leaf ? charge_try(p->stock, p->leaf, 1, &refused) : -EAGAIN;

	if (r == -ENOMEM)
		p->hv->refused = refused->id;
	if (r < 0 && p->leaf && p->waits && vm->guest.clock - p->since >= WAIT_US) {
		r = charge_over(p->leaf, 1);
		p->counts.over += r == 0;
	}
	if (r < 0 && !p->waits) {
		p->since = vm->guest.clock;
		p->counts.waited += p->leaf != NULL;
	}
	p->waits = r < 0;
	return r == 0;
}

static uint64_t fault(void *ctx, uint64_t pages)
{
	struct sim_guest *vm = ctx;
	struct sim_paging *p = &vm->paging;
	uint64_t n = 0;

	if (p->left)
		return pages;
	while (n < pages && fault_one(vm))
		n++;
	p->charged += n;
	p->counts.faults += n;
	p->busy |= n > 0;
	return n;
}

void sim_paging_init(struct hv *hv, struct sim_guest *vm)
{
	vm->paging = (struct sim_paging){
		.hv = hv, .next = hv->paged, .nr = hv->nr_paged++, .counts = { .paged = true }
	};
	hv->paged = vm;
	vm->guest.params.fault = fault;
	vm->guest.params.fault_ctx = vm;
	vm->guest.params.balloon = false;
}

/* All that its VMM had: the process is gone, or nobody resolves its faults any more. */
static void release(struct sim_guest *vm)
{
	struct sim_paging *p = &vm->paging;

	if (p->charged)
		uncharge(p->stock, p->leaf, p->charged);
	charge_stock_idle(p->stock);
	css_put(&p->leaf->css);
	p->leaf = NULL;
	p->charged = 0;
	p->waits = p->busy = false;
}

/* What came by no fault is there: it is charged, over a max where it must. */
static void charge_rest(struct sim_paging *p, uint64_t pages)
{
	struct memcg *refused;

	for (; pages > 0; pages--, p->charged++) {
		if (charge_try(p->stock, p->leaf, 1, &refused) == 0)
			continue;
		if (charge_over(p->leaf, 1) < 0)
			return; /* the group was killed: sim_page() looks for the new one */
		p->counts.over++;
	}
}

static void settle(struct sim_guest *vm)
{
	struct sim_paging *p = &vm->paging;
	uint64_t has = guest_usage(&vm->guest) / GUEST_PAGE;

	if (!p->leaf)
		return;
	if (has < p->charged) { /* in one go, as the pager reads its events */
		uncharge(p->stock, p->leaf, p->charged - has);
		p->counts.dropped += p->charged - has;
		p->charged = has;
	}
	charge_rest(p, has - p->charged);
	if (p->busy || p->waits)
		charge_stock_serve(p->stock);
	else
		charge_stock_idle(p->stock);
	p->busy = false;
}

void sim_paging_settle(struct hv *hv)
{
	for (struct sim_guest *vm = hv->paged; vm; vm = vm->paging.next) {
		if (vm->guest.state != GUEST_OFF) {
			settle(vm);
			continue;
		}
		if (vm->paging.leaf)
			release(vm);
		vm->paging.left = false;
		vm->paging.counts = (struct hv_paging){ .paged = true };
	}
}

static void bind(struct hv *hv, struct sim_guest *vm, struct core *core)
{
	size_t nr = hv->nr_paged < CHARGE_STOCKS_MAX ? hv->nr_paged : CHARGE_STOCKS_MAX;
	struct sim_paging *p = &vm->paging;
	char uuid[HV_UUID_TEXT];
	struct memcg *leaf;
	uint64_t id;

	hv_uuid_format(&vm->uuid, uuid);
	if (core_find(core, uuid, &id) < 0 || engine_page(core_engine(core), id, &leaf) < 0)
		return; /* at a later step */
	if (!hv->stocks && charge_stocks_new(leaf->tree, nr, &hv->stocks) < 0)
		return;
	if (!css_tryget(&leaf->css))
		return;
	p->leaf = leaf;
	p->stock = charge_stocks_get(hv->stocks, p->nr % nr);
	settle(vm);
}

void sim_page(struct hv *hv, struct core *core)
{
	for (struct sim_guest *vm = hv->paged; vm; vm = vm->paging.next) {
		struct sim_paging *p = &vm->paging;

		if (p->leaf && css_killed(&p->leaf->css))
			release(vm);
		if (!p->leaf && !p->left && vm->guest.state != GUEST_OFF)
			bind(hv, vm, core);
	}
	if (hv->refused)
		core_room(core, hv->refused, &hv->room_job);
	hv->refused = 0;
}

void sim_unpage(struct hv *hv)
{
	for (struct sim_guest *vm = hv->paged; vm; vm = vm->paging.next) {
		if (!vm->paging.leaf)
			continue;
		release(vm);
		vm->paging.left = true;
		vm->guest.quiet = false;
	}
	charge_stocks_free(hv->stocks);
	hv->stocks = NULL;
	hv->refused = hv->room_job = 0;
}
