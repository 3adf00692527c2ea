/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ways back: what balance.h computes, applied to VMs. Giving back never stops. */
#include <config.h>

#include "policy/engine_internal.h"

/* What is read again a second is more than a trickle from here on: 1 MiB. */
#define REREADS MIB_TO_PAGES(1)

/* Of what a guest under pressure lacks, a part is worth a command from here on. */
#define FEED_PIECE MIB_TO_PAGES(4)

uint64_t give_reserved(const struct engine *e, const struct vm *vm)
{
	return vm->held_until > e->now && vm->gift_until > e->now
		       ? pages_sub(vm->gift_to, vm->set.usage)
		       : 0;
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
	vm_hold(vm, &vm->gift_until, e->now + e->config.hold_us);
	e->gifts += give_reserved(e, vm) - before;
}

/*
 * Of so much more for all that are fed, what the pool has above wm_high and, where that is not
 * enough, what those in excess give. Nobody else is cut for what may never be touched. One plan,
 * however many are fed. *ret_cold: what of it costs nobody active memory.
 */
static uint64_t affordable(struct engine *e, uint64_t pages, uint64_t *ret_cold)
{
	struct reclaim_plan plan = { .shares = e->shares, .nr_max = e->max_vms * RECLAIM_SHARES };
	int64_t spare = e->free - (int64_t)e->gifts - (int64_t)e->wm_high;
	uint64_t has = spare > 0 ? (uint64_t)spare : 0, cold = has;

	if (has >= pages) {
		*ret_cold = pages;
		return pages;
	}
	/* With nobody in excess a plan would begin with those that are not to give for this. */
	if (e->tree->root->excess || e->tree->root->nr_excess)
		reclaim(e->tree->root, pages - has, e->config.granule, false, &plan);
	for (size_t i = 0; i < plan.nr && plan.shares[i].step <= 2; i++) {
		has += plan.shares[i].gain;
		if (plan.shares[i].step == 1)
			cold += plan.shares[i].gain;
	}
	/* What the pool itself lacks takes what is cold first. */
	*ret_cold = spare < 0 ? pages_sub(cold, (uint64_t)-spare) : pages_min(cold, pages);
	return pages_min(has, pages);
}

/* Its agent says so, or that it reads again what it lost. */
static bool lacks(const struct vm *vm)
{
	return vm_knows(&vm->sample, VM_LACKS) &&
	       (vm->sample.need || vm->sample.refaults >= REREADS);
}

void give_heed(const struct engine *e, struct vm *vm)
{
	if (lacks(vm))
		vm_hold(vm, &vm->spared_until, e->now + e->config.hold_us);
}

bool give_spares(const struct engine *e, const struct vm *vm)
{
	return vm->held_until > e->now && vm->spared_until > e->now && !in_excess(e, vm);
}

/* As its balloon statistics show it. */
static bool suffers(const struct vm *vm)
{
	return vm->set.little_available || vm->swaps;
}

static uint64_t fed_target(const struct vm *vm)
{
	return balance_fed(vm->memcg->knobs.soft_limit, vm_limit(vm));
}

/* What a VM is to have more; 0: it needs nothing, or cannot be told. */
static uint64_t feed_wants(const struct engine *e, const struct vm *vm)
{
	uint64_t has = pages_max(vm->target, vm->set.usage), target;

	if (!(suffers(vm) || (lacks(vm) && vm->heeded_until <= e->now)) || !vm_capped(vm))
		return 0;
	if (!may_receive(e, vm) || in_excess(e, vm))
		return 0;
	target = fed_target(vm);
	return target >= has + e->config.granule ? target - has : 0;
}

/* Where deflated pages cost nothing until they are touched it may have more than is promised. */
static void feed(struct engine *e, struct vm *vm, uint64_t promised)
{
	uint64_t target = fed_target(vm);

	settle_cancel(e, vm, 0);
	if (!e->config.loosens)
		target = pages_min(target, pages_max(vm->target, vm->set.usage) + promised);
	vm->cut = vm->refills = false;
	engine_act(e, vm, target,
		(struct engine_reason){ .type = ENGINE_FEED,
			.bound = vm->memcg->knobs.soft_limit,
			.share = promised });
	vm->hold_until = e->now + e->config.hold_us;
	vm_hold(vm, suffers(vm) ? &vm->fed_until : &vm->heeded_until, e->now + e->config.hold_us);
	promise(e, vm, promised);
	topology_refresh(e, vm);
}

/*
 * A ceiling that somebody else's wish or plugged memory moved is put on record, for who comes after
 * this run: with a target that changes nothing, once actual rests and the VM can be told.
 */
static void record_ceiling(struct engine *e, struct vm *vm)
{
	if (!may_receive(e, vm) || vm_asked(vm) || !vm->rested || vm_unanswered(e, vm))
		return;
	engine_act(e, vm, vm_as_it_is(vm),
		(struct engine_reason){ .type = ENGINE_WISH, .bound = vm->ceiling });
}

/* Whatever it is over, and whatever the pool has: the operator's word. */
void give_release(struct engine *e)
{
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm)) {
		uint64_t target, before;

		if (vm->record)
			record_ceiling(e, vm);
		if (!vm->release)
			continue;
		target = vm_limit(vm);
		before = pages_max(vm->target, vm->set.usage);
		if (vm->released_until <= e->now || !vm_capped(vm)) {
			vm->release = false;
			continue;
		}
		if (!may_receive(e, vm))
			continue;
		vm->release = vm->refills = false;
		engine_act(e, vm, target, (struct engine_reason){ .type = ENGINE_RELEASE });
		if (!e->config.loosens)
			promise(e, vm, pages_sub(target, before));
	}
}

/*
 * Of the nr who want more, those who suffer, or those of whom only their agents say so, with at
 * most so much for all. Returns what they got.
 */
static uint64_t feed_those(struct engine *e, size_t nr, bool that_suffer, uint64_t has)
{
	uint64_t given = 0, part;

	for (size_t i = 0; i < nr; i++) {
		if (suffers(e->gift_vms[i]) != that_suffer)
			continue;
		part = pages_min(e->gift[i].demand, has - given);
		if (!e->config.loosens && part < pages_min(e->gift[i].demand, FEED_PIECE))
			continue;
		given += part;
		feed(e, e->gift_vms[i], part);
	}
	return given;
}

void give_feed(struct engine *e)
{
	uint64_t wants = 0, has, cold;
	size_t nr = 0;

	if (!e->pool.known)
		return;
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm)) {
		uint64_t more = feed_wants(e, vm);

		if (!more)
			continue;
		e->gift_vms[nr] = vm;
		e->gift[nr++] = (struct balance_gift){ .demand = more };
		wants += more;
	}
	if (!wants)
		return;
	has = affordable(e, wants, &cold);
	/* For an agent's word alone nobody gives what is active. */
	feed_those(e, nr, false, pages_sub(cold, feed_those(e, nr, true, has)));
}

/* Whether a group above the VM, or the VM, is over its max: then no cap is lifted. */
static bool under_max(const struct vm *vm)
{
	for (const struct memcg *m = vm->memcg; m; m = m->parent)
		if (m->seen > m->knobs.max)
			return true;
	return false;
}

/*
 * It took back half of what it gave as soon as it could, and misses nothing: after the next cut its
 * cap stays near its usage, else it refills again and again, and each cut has all that was never
 * touched to inflate first. So for as long as it is cut again within a hold time.
 */
bool give_refilled(const struct engine *e, const struct vm *vm)
{
	return e->now < vm->refill_until && (vm->refills || vm->set.usage >= vm->refill_at) &&
	       !suffers(vm) && !give_spares(e, vm);
}

static void watch_refill(const struct engine *e, struct vm *vm)
{
	uint64_t came = pages_sub(vm->ask.from, vm->set.usage);

	vm->refill_at = vm->set.usage + pages_max(came / 2, e->config.granule);
	vm->refill_until = e->now + e->config.hold_us;
}

void give_loosen(struct engine *e)
{
	uint64_t target;
	bool again; /* it got something back not long ago */

	if (!e->config.loosens)
		return;
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm)) {
		if (!vm->cut || vm_asked(vm) || !may_receive(e, vm) || under_max(vm) ||
			vm_lowered(e, vm))
			continue;
		vm->cut = false;
		watch_refill(e, vm);
		target = balance_loosened(in_excess(e, vm) || vm->refills, vm->set.usage,
			vm_limit(vm), e->config.headroom_at_least, e->config.headroom_fraction);
		if (!vm_capped(vm) || target < vm->target + e->config.granule)
			continue;
		engine_act(e, vm, target,
			(struct engine_reason){
				.type = ENGINE_LOOSEN, .bound = vm->memcg->knobs.soft_limit });
		again = vm->hold_until && e->now < vm->hold_until + e->config.hold_us;
		vm->hold_until = e->now + e->config.hold_us;
		if (!again)
			continue;
		vm_hold(vm, &vm->lifted_until, vm->hold_until);
		topology_refresh(e, vm);
	}
}

/*
 * It gave what it had and its cap was lifted, again: what little it has beside that is not worth
 * cutting and lifting it again before a hold time has passed. Of one in excess it is: nobody else
 * gives as long as that one can.
 */
bool give_rests(const struct engine *e, const struct vm *vm)
{
	const struct reclaim_vm *r = &vm->reclaim;

	return vm->held_until > e->now && vm->lifted_until > e->now &&
	       pages_sub(r->usage, r->keep) < RECLAIM_MIN_GRANULES * e->config.granule &&
	       !in_excess(e, vm);
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
