/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine's input: groups, VMs, their knobs and states, and the samples of VMs. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/engine_internal.h"

struct vm *topology_vm(const struct engine *e, uint64_t id)
{
	struct memcg *m = memcg_find(e->tree, id);

	return m && m->vm ? vm_of(m) : NULL; /* what is gone has none */
}

void topology_busy(struct engine *e, struct vm *vm)
{
	if (vm->busy)
		return;
	if (e->nr_busy == e->max_vms)
		topology_busy_compact(e); /* there is room for each that is there */
	vm->busy = true;
	vm->busy_at = (uint32_t)e->nr_busy;
	e->busy[e->nr_busy++] = vm;
}

/* Without those that went or are busy no more; the others keep their order. */
void topology_busy_compact(struct engine *e)
{
	size_t nr = 0;

	for (size_t i = 0; i < e->nr_busy; i++) {
		struct vm *vm = e->busy[i];

		if (!vm || !vm->busy)
			continue;
		e->busy[nr] = vm;
		vm->busy_at = (uint32_t)nr++;
	}
	e->nr_busy = nr;
}

/* Something is expected of the VM, or to be given to it: it belongs among the busy ones. */
static bool expects(const struct engine *e, const struct vm *vm)
{
	if (vm->ask_on || vm->owed || vm->hung || vm->cut || vm->record || !vm->rested ||
		vm_capped(vm))
		return true;
	return vm->held_until > e->now &&
	       (vm->failed_until > e->now || vm->contended_until > e->now ||
		       vm->refused_until > e->now || vm->fed_until > e->now ||
		       vm->spared_until > e->now || vm->heeded_until > e->now ||
		       vm->released_until > e->now || vm->lifted_until > e->now ||
		       give_reserved(e, vm));
}

void topology_free_vm(struct engine *e, struct vm *vm)
{
	if (vm->busy)
		e->busy[vm->busy_at] = NULL;
	vm->memcg->vm = NULL;
	free(vm->reasons);
	slab_put(&e->vms, vm);
}

static enum reclaim_hold hold_of(const struct engine *e, const struct vm *vm)
{
	bool held; /* any of those times runs */

	if (!vm->attrs.act)
		return RECLAIM_HOLD_MANAGE;
	if (vm->attrs.paused)
		return RECLAIM_HOLD_PAUSED;
	/* Shown by its name anyway: what the operator said stands beside it. */
	if (!vm_gives(vm))
		return RECLAIM_HOLD_STATE;
	held = vm->held_until > e->now;
	if (held && vm->released_until > e->now)
		return RECLAIM_HOLD_RELEASED;
	if (!vm->set.donor_known)
		return RECLAIM_HOLD_UNKNOWN;
	if (vm->set.usage < RECLAIM_MIN_GRANULES * e->config.granule)
		return vm_hides(e, vm) ? RECLAIM_HOLD_ACTUAL : RECLAIM_HOLD_SMALL;
	if (!held)
		return RECLAIM_HOLD_NONE;
	if (vm->contended_until > e->now)
		return RECLAIM_HOLD_CONTENDED;
	if (vm->failed_until > e->now)
		return RECLAIM_HOLD_FAILED;
	if (vm->fed_until > e->now)
		return RECLAIM_HOLD_FED;
	return RECLAIM_HOLD_NONE;
}

void topology_refresh(struct engine *e, struct vm *vm)
{
	struct reclaim_vm *r = &vm->reclaim;
	const struct workingset *set = &vm->set;
	uint64_t asked; /* in one go, and what of it came */
	uint64_t doubted;

	r->usage = pages_sub(set->usage, vm->owed);
	r->resident = pages_gain(r->usage, set->resident, set->usage);
	r->cold = pages_min(pages_sub(set->cold, vm->owed), r->usage);
	if (give_spares(e, vm))
		r->cold = 0;
	doubted = pages_min(pages_sub(set->cold + set->doubted, vm->owed), r->usage);
	r->doubted = (uint32_t)pages_sub(doubted, r->cold);
	r->keep = vm_keep(vm);
	asked = vm->waiting + (vm->ask_on ? vm->ask.from - vm->ask.goal : 0);
	r->at_most = vm->delivered ? pages_sub(vm->delivered, asked) : PAGES_UNLIMITED;
	r->at_most = pages_min(r->at_most, pages_sub(ask_in_time(e, vm), vm->owed));
	if (give_rests(e, vm))
		r->at_most = 0;
	r->slack = ask_goes_inside(e, vm) ? 0 : pages_sub(set->actual, set->usage);
	r->told = vm->attrs.agent && vm_knows(&vm->sample, VM_LISTS);
	r->hold = hold_of(e, vm);
}

/* What it uses: charged, or, where somebody else charges each page, only seen. */
static int charge_vm(struct vm *vm, uint64_t pages)
{
	return vm->paged ? charge_see_later(vm->memcg, pages)
			 : charge_observed_later(vm->memcg, pages);
}

/* Books what the VM uses, in full as long as it was not seen. */
static int book(struct engine *e, struct vm *vm)
{
	const struct state_row *row = engine_state_row(vm->state);
	const struct workingset *set = &vm->set;
	bool full = row->counts_full || !set->usage_known;

	if (row->outside)
		return charge_vm(vm, 0);
	vm->known |= !full;
	if (!set->usage_known && vm->known && !row->counts_full)
		return 0; /* the last figure stands until there is another */
	return charge_vm(vm, full ? pages_max(set->actual, set->cost) : set->cost);
}

static void assess(struct engine *e, struct vm *vm)
{
	const struct workingset before = vm->set;
	const struct workingset_vm w = {
		.maximum = vm->attrs.maximum,
		.soft_limit = vm->memcg->knobs.soft_limit,
		.guest_swap = vm->attrs.guest_swap,
		.agent = vm->attrs.agent,
		.agent_floor = vm->attrs.agent_floor,
		.trust = vm->attrs.trust,
	};
	struct vm_sample sample;

	if (engine_state_row(vm->state)->fixed) {
		/* The balloon leaves it less, and the host has all of it all the same. */
		sample = vm->sample;
		sample.actual = vm->attrs.maximum;
		workingset_assess(&e->config.bounds, &w, &sample, &vm->set);
	} else {
		workingset_assess(&e->config.bounds, &w, &vm->sample, &vm->set);
	}
	if (!vm->set.usage_known) {
		/* The last figures stand: what is unknown has not come. */
		vm->set.cost = before.cost;
		vm->set.usage = before.usage;
		vm->set.resident = before.resident;
	} else if (vm->ask_on) {
		/* actual is the guest's word: what was asked comes when the host has it. */
		vm->set.usage = pages_max(vm->set.usage, pages_sub(vm->set.cost, vm->ask.beside));
	}
}

/* Where there is no room in the tree to book it, it counts as it did. */
static int vm_changed(struct engine *e, struct vm *vm)
{
	const struct workingset before = vm->set;
	int r;

	assess(e, vm);
	r = book(e, vm);
	if (r)
		vm->set = before;
	settle_owe(e, vm);
	topology_refresh(e, vm);
	if (expects(e, vm))
		topology_busy(e, vm);
	return r;
}

void topology_reassess(struct engine *e, struct memcg *m)
{
	memcg_for_each_child (c, m)
		topology_reassess(e, c);
	if (!m->vm)
		return;
	assess(e, vm_of(m));
	topology_refresh(e, vm_of(m));
}

static bool sample_valid(const struct vm_sample *s)
{
	uint64_t bits = s->actual | s->resident | s->swapped | s->overhead | s->stats_actual |
			s->unused | s->usable | s->disk_caches | s->lists.active_anon |
			s->lists.inactive_anon | s->lists.active_file | s->lists.inactive_file |
			s->lists.swap_free | s->need | s->refaults;

	/* It has all the bits that an amount may have: who has another one is larger. */
	return bits <= PAGES_UNLIMITED;
}

static int take_sample(struct engine *e, const struct vm_sample *sample)
{
	struct vm *vm = topology_vm(e, sample->id);
	struct vm_sample before;
	uint64_t usage;
	size_t size;
	int r;

	if (!vm)
		return -ENOENT;
	if (!sample_valid(sample))
		return -EINVAL;
	size = (vm->sample.known | sample->known) & VM_FIGURES_REPORT
		       ? sizeof(before)
		       : offsetof(struct vm_sample, lists);
	memcpy(&before, &vm->sample, size);
	usage = vm->set.usage;
	memcpy(&vm->sample, sample, size);
	r = vm_changed(e, vm);
	if (r) {
		memcpy(&vm->sample, &before, size);
		return r;
	}
	ask_grew(e, vm, pages_sub(vm->set.usage, usage));
	vm->swaps = balance_swaps(&before, sample);
	vm->samples++;
	give_heed(e, vm);
	if (vm_knows(sample, VM_OVERHEAD)) {
		e->overhead = e->overhead - vm->overhead + sample->overhead;
		vm->overhead = sample->overhead;
	}
	/* As its operator left it, until it is touched: that is what it shall have. */
	if (vm_knows(sample, VM_ACTUAL) && !vm->touched)
		vm->ceiling = sample->actual;
	if (vm_knows(sample, VM_ACTUAL) && sample->actual != vm->rest_at) {
		vm->rest_at = sample->actual;
		vm->rest_since = e->now;
		vm->rested = false;
		topology_busy(e, vm);
	}
	return 0;
}

/* What the i-th sample from now will meet, see ahead.h. */
static void sample_ahead(
	const struct engine *e, const struct vm_sample *samples, size_t nr, size_t i)
{
	const struct memcg *m;

	if (i + 4 * AHEAD_ROUNDS < nr)
		memcg_ahead(e->tree, samples[i + 4 * AHEAD_ROUNDS].id, 0);
	if (i + 3 * AHEAD_ROUNDS < nr)
		memcg_ahead(e->tree, samples[i + 3 * AHEAD_ROUNDS].id, 1);
	if (i + 2 * AHEAD_ROUNDS < nr)
		memcg_ahead(e->tree, samples[i + 2 * AHEAD_ROUNDS].id, 2);
	if (i + AHEAD_ROUNDS < nr) {
		m = memcg_find(e->tree, samples[i + AHEAD_ROUNDS].id);
		if (m && m->vm) {
			ahead(m->vm, 0, VM_LINE_AT_REST);
			ahead(m->parent, 2, 3); /* what is to be carried waits there */
		}
	}
}

/* The first error, as engine_tick() has it. */
int topology_samples(struct engine *e, const struct vm_sample *samples, size_t nr)
{
	int error = 0, r;

	for (size_t i = 0; i < nr; i++) {
		sample_ahead(e, samples, nr, i);
		r = take_sample(e, &samples[i]);
		if (r && !error)
			error = r;
	}
	return error;
}

static void *grow(void *array, size_t nr, size_t size)
{
	return realloc(array, nr * size);
}

/* Scratch for one VM more, so that no tick has to allocate. */
static int reserve_scratch(struct engine *e)
{
	size_t nr = e->max_vms ? e->max_vms * 2 : 16;
	void *p;

	if (e->nr_vms < e->max_vms)
		return 0;
	if (!(p = grow(e->shares, nr * RECLAIM_SHARES, sizeof(*e->shares))))
		return -ENOMEM;
	e->shares = p;
	if (!(p = grow(e->actions, nr, sizeof(*e->actions))))
		return -ENOMEM;
	e->actions = p;
	if (!(p = grow(e->busy, nr, sizeof(struct vm *))))
		return -ENOMEM;
	e->busy = p;
	if (!(p = grow(e->gift, nr, sizeof(*e->gift))))
		return -ENOMEM;
	e->gift = p;
	if (!(p = grow(e->gift_vms, nr, sizeof(struct vm *))))
		return -ENOMEM;
	e->gift_vms = p;
	e->max_vms = nr;
	return 0;
}

/* Keeps the list of groups that have a max. Room for one more is made before anything changes. */
static int reserve_limited(struct engine *e)
{
	size_t nr = e->max_limited ? e->max_limited * 2 : 16;
	void *p;

	if (e->nr_limited < e->max_limited)
		return 0;
	p = grow(e->limited, nr, sizeof(*e->limited));
	if (!p)
		return -ENOMEM;
	e->limited = p;
	e->max_limited = nr;
	return 0;
}

static struct limited *find_limited(const struct engine *e, const struct memcg *m)
{
	return m->limited_at ? &e->limited[m->limited_at - 1] : NULL;
}

static void forget_limited(struct engine *e, struct memcg *m)
{
	struct limited *limited = find_limited(e, m), *last;

	if (!limited)
		return;
	if (limited->is_short)
		engine_event(e, ENGINE_EVENT_SHORT_OVER, m->id, 0, 0);
	last = &e->limited[--e->nr_limited];
	*limited = *last;
	limited->memcg->limited_at = m->limited_at;
	m->limited_at = 0;
}

static int set_knobs(struct engine *e, struct memcg *m, const struct memcg_knobs *knobs)
{
	int r = reserve_limited(e);

	if (!r)
		r = memcg_set_knobs(m, knobs);
	if (r)
		return r;
	if (knobs->max == PAGES_UNLIMITED) {
		forget_limited(e, m);
	} else if (!m->limited_at) {
		/* Of one that has one: if it is short is asked anew, and told if that changes. */
		e->limited[e->nr_limited++] = (struct limited){ .memcg = m };
		m->limited_at = (uint32_t)e->nr_limited;
	}
	return 0;
}

/*
 * What was asked by other knobs, of those below or in the group's name, is asked anew, or not; and
 * caps that were left by other knobs are looked at again: who is in excess no more has no cap.
 */
static void decide_anew(struct engine *e, const struct memcg *below)
{
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm)) {
		if (!memcg_is_below(vm->memcg, below))
			continue;
		if (vm_asked(vm))
			settle_cancel(e, vm, vm->set.actual);
		vm->cut |= vm_capped(vm);
		vm->refills = false;
	}
}

static int change_knobs(struct engine *e, struct memcg *m, const struct memcg_knobs *knobs)
{
	bool changed = memcmp(&m->knobs, knobs, sizeof(*knobs)) != 0;
	int r = set_knobs(e, m, knobs);

	if (r)
		return r;
	if (changed)
		decide_anew(e, m);
	return m->vm ? vm_changed(e, vm_of(m)) : 0;
}

/* Others charge it from now on: what was booked for it goes. Takes away only: it cannot fail. */
static void page_vm(struct vm *vm)
{
	if (!vm->paged)
		charge_observed_later(vm->memcg, 0);
	vm->paged = true;
}

int engine_page(struct engine *e, uint64_t id, struct memcg **ret_leaf)
{
	struct memcg *m = memcg_find(e->tree, id);

	if (!m || !m->vm || m->offline)
		return -ENOENT;
	page_vm(vm_of(m));
	memcg_carry(e->tree);
	charge_tell(m); /* or nobody who reads the inputs would know */
	*ret_leaf = m;
	return 0;
}

size_t engine_charges(struct engine *e, const struct charge_seen **ret_charges)
{
	size_t nr = 2 * e->tree->nr_groups; /* each may be on both lists */
	struct charge_seen *charges = e->charges;

	if (!atomic_ptr_read(&e->tree->dirty) && !e->leaving)
		return 0;
	if (nr > e->max_charges) {
		charges = grow(charges, nr, sizeof(*charges));
		if (!charges)
			return 0;
		e->charges = charges;
		e->max_charges = nr;
	}
	nr = charge_drain(e->tree, charges, e->max_charges);
	for (const struct memcg *m = e->leaving; m; m = m->leaving_next) {
		uint64_t pages = page_counter_read(&m->memory);

		if (pages == 0 || pages != m->seen)
			charges[nr++] = (struct charge_seen){ m->id, pages };
	}
	*ret_charges = charges;
	return nr;
}

/* All of its pages are uncharged: it may go. */
static void has_left(struct engine *e, struct memcg *m)
{
	for (struct memcg **at = &e->leaving; *at; at = &(*at)->leaving_next) {
		if (*at != m)
			continue;
		*at = m->leaving_next;
		css_put(&m->css);
		return;
	}
}

int topology_charged(struct engine *e, const struct charge_seen *charge)
{
	struct memcg *m = memcg_find(e->tree, charge->id);
	int r;

	/* It may be gone meanwhile: that is no error. */
	if (!m || m->nr_below || (!m->vm && !m->offline))
		return 0;
	if (m->vm)
		page_vm(vm_of(m));
	r = charge_see_later(m, charge->pages);
	if (r == 0 && m->offline && charge->pages == 0)
		has_left(e, m);
	return r;
}

static int gone(struct engine *e, struct memcg *m)
{
	bool leaves = m->vm && vm_of(m)->paged;
	int r;

	if (m->vm) {
		struct vm *vm = vm_of(m);

		settle_cancel(e, vm, 0);
		engine_forget(e, vm);
		e->overhead -= vm->overhead;
		if (!vm->paged)
			charge_observed(m, 0);
		topology_free_vm(e, vm);
		e->nr_vms--;
	}
	if (leaves)
		css_get(&m->css);
	r = charge_kill(m);
	if (r)
		return r;
	if (leaves) {
		m->leaving_next = e->leaving;
		e->leaving = m;
	}
	forget_limited(e, m);
	ask_forget_root(e, m->id);
	return 0;
}

static bool attrs_valid(const struct engine_vm_attrs *a)
{
	return a->maximum && a->maximum <= PAGES_UNLIMITED && a->ceiling <= PAGES_UNLIMITED &&
	       a->agent_floor <= PAGES_UNLIMITED && a->max_rate <= PAGES_UNLIMITED;
}

static int new_vm(struct engine *e, const struct engine_change *change)
{
	struct memcg *parent = memcg_find(e->tree, change->parent), *m;
	struct vm *vm;
	int r;

	if (!parent)
		return -ENOENT;
	if (!attrs_valid(&change->attrs) || change->state >= ENGINE_VM_STATE_NR)
		return -EINVAL;
	r = reserve_scratch(e);
	if (r)
		return r;
	vm = slab_get(&e->vms);
	if (!vm)
		return -ENOMEM;
	vm->reasons = calloc(ENGINE_REASONS, sizeof(*vm->reasons));
	r = vm->reasons ? memcg_new(e->tree, parent, change->id, &m) : -ENOMEM;
	if (r) {
		free(vm->reasons);
		slab_put(&e->vms, vm);
		return r;
	}
	m->vm = &vm->reclaim;
	vm->memcg = m;
	vm->attrs = change->attrs;
	vm->state = change->state;
	vm->sample.id = change->id;
	vm->ceiling = pages_min(change->attrs.ceiling, change->attrs.maximum);
	/* A ceiling on record: what is below it is a cut of an earlier run. */
	vm->touched = change->attrs.ceiling != 0;
	vm->rested = true; /* until actual is known */
	e->nr_vms++;
	r = set_knobs(e, m, &change->knobs);
	if (!r)
		r = vm_changed(e, vm);
	if (r)
		gone(e, m);
	return r;
}

static void new_state(struct engine *e, struct vm *vm, enum engine_vm_state state)
{
	enum engine_vm_state old = vm->state;

	if (state == old)
		return;
	vm->state = state;
	if (state == ENGINE_VM_ARRIVING) { /* where its balloon is tells nothing before it is up */
		vm->rested = false;
		vm->rest_since = e->now;
	}
	/* All of it may be there from now on, whatever was seen before. */
	if (engine_state_row(state)->fixed && !engine_state_row(old)->fixed)
		vm->sample.known &= ~(unsigned int)VM_FIGURES_PROCESS;
	if (engine_state_row(state)->fixed)
		vm->known = false;
	/* What it was told before it hung may move it only now: that is nobody's wish. */
	if (old == ENGINE_VM_NOT_ANSWERING) {
		vm->rested = false;
		vm->rest_since = e->now;
	}
	if (state == ENGINE_VM_NOT_ANSWERING)
		settle_hung(e, vm);
	else if (old == ENGINE_VM_NOT_ANSWERING && vm->hung)
		/* Its part was asked of others meanwhile: what it was told is taken back. */
		settle_cancel(e, vm, vm_as_it_is(vm));
	else if (!vm_gives(vm) && vm_asked(vm))
		settle_cancel(e, vm, vm_as_it_is(vm));
}

/*
 * Memory was plugged or unplugged. The ceiling moves by as much; what was decided before is
 * superseded, and where actual comes to rest now is nobody's wish.
 */
static void new_maximum(struct engine *e, struct vm *vm, uint64_t old)
{
	uint64_t maximum = vm->attrs.maximum;

	if (maximum == old || !vm->touched)
		return;
	settle_cancel(e, vm, vm_as_it_is(vm));
	vm->ceiling = maximum > old ? pages_min(vm->ceiling + (maximum - old), maximum)
				    : pages_min(vm->ceiling, maximum);
	vm->grown = true;
	vm->rested = false;
	vm->rest_since = e->now;
}

/*
 * Knobs and all else of a VM's attributes change nothing of what it is booked with. Those that its
 * agent tells are another in each report: with them a guest could have growth never measured.
 */
bool topology_books_anew(const struct engine *e, const struct engine_change *c)
{
	const struct state_row *old, *new;
	const struct vm *vm;

	if (c->type == ENGINE_VM_NEW || c->type == ENGINE_VM_GONE)
		return true;
	vm = topology_vm(e, c->id);
	if (!vm)
		return false;
	if (c->type == ENGINE_VM_ATTRS)
		return c->attrs.maximum != vm->attrs.maximum;
	if (c->type != ENGINE_VM_STATE || c->state >= ENGINE_VM_STATE_NR)
		return false;
	old = engine_state_row(vm->state);
	new = engine_state_row(c->state);
	return old->counts_full != new->counts_full || old->fixed != new->fixed ||
	       old->outside != new->outside;
}

int topology_change(struct engine *e, const struct engine_change *c)
{
	struct engine_vm_attrs old;
	struct memcg *m;
	struct vm *vm;
	int r;

	if (c->type == ENGINE_VM_NEW)
		return new_vm(e, c);
	if (c->type == ENGINE_GROUP_NEW) {
		m = memcg_find(e->tree, c->parent);
		if (!m)
			return -ENOENT;
		r = memcg_new(e->tree, m, c->id, &m);
		if (r)
			return r;
		r = set_knobs(e, m, &c->knobs);
		if (r)
			charge_kill(m);
		return r;
	}
	m = memcg_find(e->tree, c->id);
	if (!m || m->offline)
		return -ENOENT;
	if (c->type == ENGINE_GROUP_KNOBS)
		return change_knobs(e, m, &c->knobs);
	if (c->type == ENGINE_GROUP_GONE && !m->vm)
		return gone(e, m);
	if (!m->vm)
		return -EINVAL;
	vm = vm_of(m);
	switch (c->type) {
	case ENGINE_VM_GONE:
		return gone(e, m);
	case ENGINE_VM_ATTRS:
		if (!attrs_valid(&c->attrs))
			return -EINVAL;
		if ((vm->attrs.act && !c->attrs.act) || (!vm->attrs.paused && c->attrs.paused))
			settle_cancel(e, vm, vm_as_it_is(vm));
		old = vm->attrs;
		vm->attrs = c->attrs;
		r = vm_changed(e, vm);
		if (r)
			vm->attrs = old;
		else
			new_maximum(e, vm, old.maximum);
		return r;
	case ENGINE_VM_STATE:
		if (c->state >= ENGINE_VM_STATE_NR)
			return -EINVAL;
		new_state(e, vm, c->state);
		return vm_changed(e, vm);
	case ENGINE_VM_RELEASE:
		settle_cancel(e, vm, 0);
		vm->cut = false;
		vm->release = true;
		vm_hold(vm, &vm->released_until, e->now + e->config.release_us);
		return vm_changed(e, vm);
	case ENGINE_VM_CANCEL:
		/* A guest that starts over is not to race to an old target. */
		settle_cancel(
			e, vm, vm->state == ENGINE_VM_ARRIVING ? vm_limit(vm) : vm_as_it_is(vm));
		return vm_changed(e, vm);
	default:
		return -EINVAL;
	}
}
