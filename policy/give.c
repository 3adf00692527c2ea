/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ways back: what balance.h computes, applied to VMs. Giving back never stops. */
#include <config.h>

#include "policy/engine_internal.h"

uint64_t give_reserved(const struct engine *e, const struct vm *vm)
{
	return vm->gift_until > e->now ? pages_sub(vm->gift_to, vm->set.usage) : 0;
}

static bool may_receive(const struct engine *e, const struct vm *vm)
{
	return vm_receives(vm) && vm->attrs.act && vm->set.usage_known &&
	       vm->refused_until <= e->now;
}

static bool in_excess(const struct engine *e, const struct vm *vm)
{
	return memcg_in_excess(vm->memcg, e->tree->root);
}

/* Promised from now until it is taken, or for a hold time. */
static void promise(struct engine *e, struct vm *vm, uint64_t pages)
{
	uint64_t before = give_reserved(e, vm);

	vm->gift_to = vm->set.usage + pages;
	vm->gift_until = e->now + e->config.hold_us;
	e->gifts += give_reserved(e, vm) - before;
}

static void feed(struct engine *e, struct vm *vm, uint64_t target)
{
	uint64_t pages = target - pages_max(vm->target, vm->set.usage);

	settle_cancel(e, vm, 0);
	vm->cut = false;
	engine_act(e, vm, target,
		(struct engine_reason){
			.type = ENGINE_FEED, .bound = vm->memcg->knobs.soft_limit });
	vm->hold_until = vm->fed_until = e->now + e->config.hold_us;
	promise(e, vm, pages);
	topology_refresh(e, vm);
}

/* Whatever it is over, and whatever the pool has: the operator's word. */
void give_release(struct engine *e)
{
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm)) {
		uint64_t target = vm_limit(vm), before = pages_max(vm->target, vm->set.usage);

		if (!vm->release)
			continue;
		if (vm->released_until <= e->now || !vm_capped(vm)) {
			vm->release = false;
			continue;
		}
		if (!may_receive(e, vm))
			continue;
		vm->release = false;
		engine_act(e, vm, target, (struct engine_reason){ .type = ENGINE_RELEASE });
		if (!e->config.loosens)
			promise(e, vm, pages_sub(target, before));
	}
}

void give_feed(struct engine *e)
{
	uint64_t target;

	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm)) {
		if (!(vm->set.little_available || vm->swaps) || !vm_capped(vm))
			continue;
		if (!may_receive(e, vm) || in_excess(e, vm))
			continue;
		target = balance_fed(vm->memcg->knobs.soft_limit, vm_limit(vm));
		if (target >= pages_max(vm->target, vm->set.usage) + e->config.granule)
			feed(e, vm, target);
	}
}

/* Whether a group above the VM, or the VM, is over its max: then no cap is lifted. */
static bool under_max(const struct vm *vm)
{
	for (const struct memcg *m = vm->memcg; m; m = m->parent)
		if (m->seen > m->knobs.max)
			return true;
	return false;
}

void give_loosen(struct engine *e)
{
	uint64_t target;

	if (!e->config.loosens)
		return;
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm)) {
		if (!vm->cut || vm_asked(vm) || !may_receive(e, vm) || under_max(vm))
			continue;
		vm->cut = false;
		target = balance_loosened(in_excess(e, vm), vm->set.usage, vm_limit(vm),
			e->config.headroom_at_least, e->config.headroom_fraction);
		if (!vm_capped(vm) || target < vm->target + e->config.granule)
			continue;
		engine_act(e, vm, target,
			(struct engine_reason){
				.type = ENGINE_LOOSEN, .bound = vm->memcg->knobs.soft_limit });
		vm->hold_until = e->now + e->config.hold_us;
	}
}

static bool wants(const struct engine *e, const struct vm *vm)
{
	/* Not while actual moves: who moves it may be somebody else, with a wish. */
	return vm_capped(vm) && may_receive(e, vm) && !vm_asked(vm) && !vm->acted && vm->rested &&
	       e->now >= vm->hold_until && !under_max(vm);
}

void give_gifts(struct engine *e)
{
	int64_t more = e->free - (int64_t)e->gifts - (int64_t)e->wm_high;
	size_t nr = 0;

	if (!e->pool.known || more < (int64_t)e->config.granule)
		return;
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm)) {
		if (!wants(e, vm))
			continue;
		e->gift_vms[nr] = vm;
		e->gift[nr++] = (struct balance_gift){ .demand = vm_limit(vm) - vm->target };
	}
	balance_share(e->gift, nr, (uint64_t)more, e->config.granule,
		RECLAIM_MIN_GRANULES * e->config.granule);
	for (size_t i = 0; i < nr; i++) {
		struct vm *vm = e->gift_vms[i];
		uint64_t gift = e->gift[i].gift;

		if (!gift)
			continue;
		engine_act(e, vm, vm->target + gift,
			(struct engine_reason){
				.type = ENGINE_GIFT, .share = gift, .step_need = (uint64_t)more });
		vm->hold_until = e->now + e->config.hold_us;
		promise(e, vm, gift);
	}
}
