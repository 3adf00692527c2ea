/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the engine knows, for status, explain and dry runs. Changes nothing but plan scratch. */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "policy/engine_internal.h"

int engine_plan(struct engine *e, uint64_t root, uint64_t pages, struct reclaim_plan *ret_plan)
{
	struct memcg *m = memcg_find(e->tree, root);
	struct reclaim_plan plan = { .shares = e->shares, .nr_max = e->max_vms * RECLAIM_SHARES };

	if (!m || m->offline)
		return -ENOENT;
	if (!e->ticked)
		return -ENODATA;
	reclaim(m, pages, e->config.granule, false, &plan);
	*ret_plan = plan;
	return 0;
}

static void view_vm(const struct engine *e, const struct vm *vm, struct engine_view *view)
{
	view->state = vm->state;
	view->hold = vm->reclaim.hold;
	if (vm->state == ENGINE_VM_RUNNING && vm->contended_until > e->now)
		view->state = ENGINE_VM_CONTENDED;
	if (view->hold == RECLAIM_HOLD_NONE &&
		(vm->reclaim.usage < vm->reclaim.keep + e->config.granule || give_rests(e, vm)))
		view->hold = vm_hides(e, vm) ? RECLAIM_HOLD_ACTUAL : RECLAIM_HOLD_PROTECTED;
	view->attrs = vm->attrs;
	view->sample = vm->sample;
	view->set = vm->set;
	view->ceiling = vm->ceiling;
	view->target = vm->target;
	view->waiting = vm->waiting;
	view->speed = vm->speed;
	view->asks = vm->asks;
	view->failures = vm->failed;
	view->samples = vm->samples;
	view->capped = vm_capped(vm);
}

int engine_view(const struct engine *e, uint64_t id, struct engine_view *ret_view)
{
	const struct memcg *m = memcg_find(e->tree, id);
	struct engine_view view;

	if (!m || m->offline)
		return -ENOENT;
	memset(&view, 0, sizeof(view));
	view.id = id;
	view.parent = m->parent ? m->parent->id : 0;
	view.knobs = m->knobs;
	view.usage = m->seen;
	view.excess = memcg_excess(m);
	view.owed = m->owed;
	for (const struct memcg *a = m->parent; a && !view.excess_via; a = a->parent)
		if (memcg_excess(a))
			view.excess_via = a->id;
	if (m->vm)
		view_vm(e, vm_of(m), &view);
	*ret_view = view;
	return 0;
}

size_t engine_reasons(
	const struct engine *e, uint64_t id, struct engine_reason *ret_reasons, size_t nr)
{
	const struct vm *vm = topology_vm(e, id);
	size_t n = 0;

	while (vm && n < nr && n < ENGINE_REASONS && n < vm->nr_reasons) {
		ret_reasons[n] = vm->reasons[(vm->nr_reasons - 1 - n) % ENGINE_REASONS];
		n++;
	}
	return n;
}

void engine_pool_view(const struct engine *e, struct engine_pool_view *ret_view)
{
	*ret_view = (struct engine_pool_view){
		.known = e->pool.known,
		.size = e->pool.size,
		.used = e->tree->root->seen,
		.overhead = e->overhead,
		.free = e->free,
		.wm_min = e->wm_min,
		.wm_low = e->wm_low,
		.wm_high = e->wm_high,
		.growth = e->growth.rate,
		.need = e->need,
		.owed = e->tree->root->owed,
		.hung = e->hung,
		.gifts = e->gifts,
		.short_pages = e->short_pages,
	};
}

const struct memcg_tree *engine_tree(const struct engine *e)
{
	return e->tree;
}
