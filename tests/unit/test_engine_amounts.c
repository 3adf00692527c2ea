/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Promises of the engine that hold in every tick, whatever guests, balloons, lanes and operators
 * do: over random worlds, each from a seed. BALLAST_SEED=n runs that one alone, BALLAST_SEEDS=n so
 * many from BALLAST_SEED_FIRST on. What is in flight stands in the engine's state and in no view,
 * so this test reads it there.
 */
#include <config.h>

#include "policy/engine_internal.h"

#include <assert.h>
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/draw.h"
#include "tests/unit/suite.h"
#include "tests/unit/world.h"

#define SEEDS  1000
#define TICKS  120
#define GROUPS 4
#define GROUP0 UINT64_C(100) /* the first group's id */

static struct world w;
static uint64_t seed_now, next_id, next_job;
static unsigned int tick_now;
static uint64_t groups[GROUPS];
static size_t nr_groups;
static uint64_t true_available, total; /* of a host pool */

/* What a VM's operator and lane say of it now. */
static struct {
	enum engine_vm_state state;
	bool act, changed; /* changed: in this tick */
	uint64_t min;
	uint64_t target, actual, waiting; /* before this tick */
} told[WORLD_VMS];

static struct engine *engine(void)
{
	return w.engine;
}

/* ---- a world ---- */

static struct memcg_knobs random_knobs(uint64_t about)
{
	struct memcg_knobs k = MEMCG_KNOBS_NONE;

	if (one_in(2))
		k.soft_limit = one_in(4) ? 0 : below(about);
	if (one_in(5))
		k.min = below(about / 2);
	if (one_in(4))
		k.low = below(about);
	if (one_in(6))
		k.max = k.min + below(about);
	return k;
}

static uint64_t random_parent(void)
{
	return nr_groups && !one_in(3) ? groups[below(nr_groups)] : MEMCG_ROOT_ID;
}

static void add_vm(void)
{
	uint64_t maximum = MIB(32 + below(600));
	struct memcg_knobs k = random_knobs(maximum);
	size_t i = world_add(&w, next_id++, random_parent(), maximum, below(maximum), &k);
	struct world_vm *vm = &w.vm[i];

	vm->speed = one_in(8) ? 0 : MIB(1 + below(30));
	vm->delay = one_in(3) ? (unsigned int)below(12) : 0;
	vm->anon = below(vm->resident + 1);
	vm->cache = below(vm->resident + 1);
	vm->overhead = MIB(below(20));
	vm->stops_at = one_in(4) ? below(maximum) : 0;
	if (one_in(4))
		vm->swapped = below(vm->resident + 1);
	told[i].state = ENGINE_VM_RUNNING;
	told[i].act = true;
	told[i].min = k.min;
}

static uint64_t used_by_all(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w.nr; i++)
		if (!w.vm[i].gone)
			sum += world_usage(&w.vm[i]) + w.vm[i].overhead;
	return sum;
}

static void open_world(uint64_t seed)
{
	struct engine_config c;
	uint64_t vms;

	rng = seed * 7919 + 1;
	memset(told, 0, sizeof(told));
	next_id = 2;
	next_job = 1;
	nr_groups = 0;
	world_config(&c);
	c.granule = one_in(8) ? 1 : MIB(1);
	c.loosens = !one_in(6);
	c.max_step = MIB(8) << below(6);
	c.hold_us = SECOND_US * (1 + below(4));
	c.ask_deadline_us = SECOND_US * (1 + below(3));
	c.rest_us = SECOND_US / 2;
	c.bounds.margin_at_least = MIB(below(40));
	c.headroom_at_least = MIB(8);
	world_open(&w, &c, 1);
	for (uint64_t n = below(GROUPS + 1); n; n--) {
		struct memcg_knobs k = random_knobs(MIB(1200));
		uint64_t parent = random_parent();

		groups[nr_groups] = GROUP0 + nr_groups;
		world_group(&w, groups[nr_groups++], parent, &k);
	}
	vms = 1 + below(12);
	while (vms--)
		add_vm();
	w.pool.size = used_by_all() * (85 + below(25)) / 100 + 1;
	if (one_in(3)) {
		w.pool.host = true;
		w.pool.reserve = MIB(below(50));
		w.pool.size += w.pool.reserve;
		total = w.pool.size;
	}
}

/* ---- what happens to it ---- */

static void disturb_guest(struct world_vm *vm)
{
	uint64_t n;

	if (one_in(2))
		vm->resident = pages_min(vm->resident + below(MIB(6)), vm->actual);
	if (one_in(12))
		vm->resident -= below(pages_min(vm->resident, MIB(20)) + 1);
	if (one_in(10))
		vm->anon = below(world_usage(vm) + 1);
	if (one_in(10))
		vm->cache = below(world_usage(vm) + 1);
	if (one_in(20)) {
		n = below(pages_min(vm->resident, MIB(20)) + 1);
		vm->resident -= n;
		vm->swapped += n;
	}
	if (one_in(30))
		vm->swapped = 0;
	if (one_in(40))
		vm->speed = one_in(3) ? 0 : MIB(1 + below(30));
	if (one_in(40))
		vm->stops_at = one_in(2) ? vm->actual - below(vm->actual / 4 + 1) : 0;
	if (one_in(40))
		vm->refuses = !vm->refuses;
	if (one_in(60))
		vm->no_stats = !vm->no_stats;
	if (one_in(60))
		vm->no_process = !vm->no_process;
	if (one_in(60))
		vm->stale = !vm->stale;
	if (one_in(80)) /* somebody else's hand */
		vm->target = vm->actual = pages_min(vm->maximum, vm->actual / 2 + below(MIB(200)));
}

static void disturb_lane(size_t i)
{
	struct world_vm *vm = &w.vm[i];
	enum engine_vm_state state = told[i].state;

	if (!one_in(50))
		return;
	state = state == ENGINE_VM_RUNNING ? (enum engine_vm_state)below(ENGINE_VM_STATE_NR)
					   : ENGINE_VM_RUNNING;
	told[i].changed = true;
	told[i].state = state;
	vm->hung = state == ENGINE_VM_NOT_ANSWERING;
	world_state(&w, vm->id, state);
	if (state == ENGINE_VM_ARRIVING) /* rebooted */
		vm->actual = vm->target = vm->maximum;
	if (state == ENGINE_VM_ARRIVING || one_in(2))
		world_change(&w, &(struct engine_change){ .type = ENGINE_VM_CANCEL, .id = vm->id });
}

static void disturb_operator(size_t i)
{
	struct world_vm *vm = &w.vm[i];
	struct memcg_knobs k = random_knobs(vm->maximum);

	if (one_in(60)) {
		told[i].min = k.min;
		told[i].changed = true;
		world_knobs(&w, vm->id, &k);
	}
	if (one_in(80)) {
		told[i].act = !told[i].act;
		told[i].changed = true;
		world_change(&w, &(struct engine_change){ .type = ENGINE_VM_ATTRS,
					 .id = vm->id,
					 .attrs = { .maximum = vm->maximum, .act = told[i].act } });
	}
	if (one_in(200)) {
		vm->gone = true;
		world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = vm->id });
	}
}

static void disturb_pool(void)
{
	if (one_in(30))
		w.pool.size = pages_max(w.pool.size + below(MIB(80)), MIB(40)) - MIB(40) + 1;
	if (one_in(60))
		w.pool.known = !w.pool.known;
	if (!w.pool.host)
		return;
	true_available = pages_sub(total, used_by_all());
	/* MemAvailable falls at once and rises late. */
	if (!w.pool.available || w.pool.available > true_available || one_in(4))
		w.pool.available = true_available;
	else
		w.pool.available += below(true_available - w.pool.available + 1) / 2;
}

static void disturb_requests(void)
{
	size_t i = below(w.nr);
	uint64_t root = nr_groups && one_in(2) ? groups[below(nr_groups)] : MEMCG_ROOT_ID;

	if (one_in(40) && next_job <= 2)
		world_reclaim(&w, next_job++, one_in(4) ? w.vm[i].id : root, 1 + below(MIB(200)));
	if (one_in(100) && next_job > 1)
		w.requests[w.nr_requests++] =
			(struct engine_request){ .type = ENGINE_RECLAIM_CANCEL,
				.job = 1 + below(next_job - 1) };
	if (one_in(40) && nr_groups) {
		struct memcg_knobs k = random_knobs(MIB(1200));

		world_knobs(&w, groups[below(nr_groups)], &k);
	}
}

static void disturb(void)
{
	struct engine_view view;

	for (size_t i = 0; i < w.nr; i++) {
		told[i].changed = false;
		if (w.vm[i].gone)
			continue;
		if (!engine_view(w.engine, w.vm[i].id, &view)) {
			told[i].target = view.target;
			told[i].waiting = view.waiting;
			told[i].actual = view.set.actual;
		}
		disturb_guest(&w.vm[i]);
		disturb_lane(i);
		disturb_operator(i);
	}
	if (one_in(100) && w.nr < 16)
		add_vm();
	disturb_pool();
	disturb_requests();
}

/* ---- promises ---- */

#define HOLDS(cond, ...)                                                                           \
	do {                                                                                       \
		char holds_said[200];                                                              \
                                                                                                   \
		if (!(cond)) {                                                                     \
			snprintf(holds_said, sizeof(holds_said), __VA_ARGS__);                     \
			ck_abort_msg("%s: seed %" PRIu64 ", tick %u: %s", #cond, seed_now,         \
				tick_now, holds_said);                                             \
		}                                                                                  \
	} while (0)

/* A page for each VM whose gain is a part of what it is asked: it rounds down, share by share. */
static uint64_t rounding(void)
{
	uint64_t pages = 0;

	for (const struct vm *vm = busy_first(engine()); vm; vm = busy_next(engine(), vm))
		pages += vm->owed && vm->set.resident < vm->set.usage;
	return pages;
}

static uint64_t asked_in_name(uint64_t root, uint64_t job)
{
	uint64_t gain = 0;

	for (const struct vm *vm = busy_first(engine()); vm; vm = busy_next(engine(), vm))
		if (vm->owed && vm->why.root == root && vm->why.job == job)
			gain += settle_gain(vm, vm->owed);
	return gain;
}

static bool name_is_alive(const struct vm *vm)
{
	const struct memcg *root = memcg_find(engine()->tree, vm->why.root);

	if (vm->why.root == MEMCG_ROOT_ID && !vm->why.job)
		return true;
	for (const struct job *j = engine()->jobs; j; j = j->next)
		if (j->id == vm->why.job)
			return true;
	return !vm->why.job && root && root->knobs.max != PAGES_UNLIMITED;
}

static uint64_t pool_need(void)
{
	struct engine_pool_view p;
	int64_t free;

	engine_pool_view(engine(), &p);
	free = p.free - (int64_t)p.gifts;
	return free < (int64_t)p.wm_high ? (uint64_t)((int64_t)p.wm_high - free) : 0;
}

/* Can be cancelled and in a root's name: never more than it needs by more than a granule. */
static void amounts(void)
{
	const struct engine *e = engine();
	uint64_t granule = e->config.granule + rounding(), asked;

	asked = asked_in_name(MEMCG_ROOT_ID, 0);
	if (e->unshown < 0) /* MemAvailable shows it, and no sample yet */
		asked = pages_sub(asked, (uint64_t)-e->unshown);
	if (e->pool.known)
		HOLDS(asked <= pool_need() + granule, "pool: asked %" PRIu64 ", need %" PRIu64,
			asked, pool_need());
	for (const struct job *j = e->jobs; j; j = j->next) {
		asked = asked_in_name(j->root, j->id);
		HOLDS(asked <= pages_sub(j->wanted, j->came) + granule,
			"job: asked %" PRIu64 ", wanted %" PRIu64 ", came %" PRIu64, asked,
			j->wanted, j->came);
	}
	for (size_t i = 0; i < e->nr_limited; i++) {
		const struct memcg *m = e->limited[i].memcg;

		if (m->id == MEMCG_ROOT_ID)
			continue;
		asked = asked_in_name(m->id, 0);
		HOLDS(asked <= pages_sub(m->seen, m->knobs.max) + granule,
			"group %" PRIu64 ": asked %" PRIu64 ", over by %" PRIu64, m->id, asked,
			pages_sub(m->seen, m->knobs.max));
	}
	for (const struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm))
		HOLDS(!vm->owed || name_is_alive(vm),
			"VM %" PRIu64 " owes %" PRIu64 " in the name of %" PRIu64 " job %" PRIu64
			" that is over",
			vm->memcg->id, vm->owed, vm->why.root, vm->why.job);
	for (const struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm))
		HOLDS(!vm->ask_on || vm->ask.goal <= vm->ask.from,
			"VM %" PRIu64 " is asked less than nothing", vm->memcg->id);
}

static size_t index_of(uint64_t id)
{
	return (size_t)(world_vm(&w, id) - w.vm);
}

static uint64_t least(size_t i)
{
	uint64_t floor = (w.vm[i].maximum * 10 + 99) / 100;

	return pages_max(floor, told[i].min);
}

/* Asked for less than its min or floor: nobody, ever. */
static void floors(void)
{
	for (size_t n = 0; n < w.out.nr_actions; n++) {
		const struct engine_action *a = &w.out.actions[n];
		size_t i = index_of(a->id);
		const struct world_vm *vm = &w.vm[i];
		struct engine_view v;

		HOLDS(!vm->gone, "VM %" PRIu64 " is gone", a->id);
		v = world_view(&w, a->id);
		if (a->reason.type == ENGINE_CUT || a->reason.type == ENGINE_AGAIN) {
			HOLDS(a->target >= least(i),
				"VM %" PRIu64 " %s: target %" PRIu64 ", least %" PRIu64, a->id,
				engine_reason_name(a->reason.type), a->target, least(i));
			HOLDS(a->target + v.set.margin / 8 >= v.set.keep,
				"VM %" PRIu64 ": target %" PRIu64 ", must keep %" PRIu64, a->id,
				a->target, v.set.keep);
		} else {
			/* Of a fixed VM set.actual is its maximum; a target may be withdrawn. */
			HOLDS(a->target >= told[i].target || a->target >= told[i].actual ||
					a->target >= v.set.actual || a->target >= v.sample.actual ||
					a->target >= a->reason.from,
				"VM %" PRIu64 " %s: target %" PRIu64 " below %" PRIu64
				" and actual %" PRIu64,
				a->id, engine_reason_name(a->reason.type), a->target,
				told[i].target, v.set.actual);
		}
		HOLDS(a->target <= pages_max(pages_max(v.ceiling, v.set.actual), told[i].actual),
			"VM %" PRIu64 " %s: target %" PRIu64 " over its ceiling %" PRIu64, a->id,
			engine_reason_name(a->reason.type), a->target, v.ceiling);
	}
}

/*
 * Whatever root it is for, and whoever else reclaims there: step 3 and 4 are told to nobody while
 * the soft steps can still bring some at that root.
 */
static void order(void)
{
	struct reclaim_plan plan;

	for (size_t n = 0; n < w.out.nr_actions; n++) {
		const struct engine_reason *r = &w.out.actions[n].reason;

		/* Below wm_min what comes too late is asked of others. */
		if (r->type != ENGINE_CUT || r->step < 3 || engine()->below_min)
			continue;
		HOLDS(engine_plan(engine(), r->root, 1, &plan) == 0, "no plan");
		HOLDS(!plan.nr || plan.shares[0].step >= 3,
			"root %" PRIu64 " job %" PRIu64 ": VM %" PRIu64
			" was asked in step %u, and VM %" PRIu64 " could give %" PRIu64
			" in step %u",
			r->root, r->job, w.out.actions[n].id, r->step, plan.shares[0].memcg->id,
			plan.shares[0].cap, plan.shares[0].step);
	}
}

/* Who may be told what: a second opinion on the engine's table. */
static bool may(enum engine_vm_state state, enum engine_reason_type type)
{
	switch (state) {
	case ENGINE_VM_RUNNING:
	case ENGINE_VM_THROTTLED:
	case ENGINE_VM_LIMITED:
	case ENGINE_VM_STRICT_NUMA:
	case ENGINE_VM_CONTENDED:
		return true;
	case ENGINE_VM_LOCKED:
	case ENGINE_VM_HUGE_PAGES:
	case ENGINE_VM_PINNED:
	case ENGINE_VM_ENCRYPTED:
		return type != ENGINE_CUT && type != ENGINE_AGAIN;
	default:
		return false;
	}
}

/* Who is not managed, or cannot, is told nothing but that its ask is over. */
static void managed(void)
{
	for (size_t n = 0; n < w.out.nr_actions; n++) {
		const struct engine_action *a = &w.out.actions[n];
		size_t i = index_of(a->id);

		if (told[i].changed && a->reason.type == ENGINE_CANCEL)
			continue;
		HOLDS(told[i].act, "VM %" PRIu64 " is not managed: %s", a->id,
			engine_reason_name(a->reason.type));
		HOLDS(may(told[i].state, a->reason.type), "VM %" PRIu64 " is %s: %s", a->id,
			engine_vm_state_name(told[i].state), engine_reason_name(a->reason.type));
	}
	if (!w.pool.known)
		for (size_t n = 0; n < w.out.nr_actions; n++) {
			const struct engine_reason *r = &w.out.actions[n].reason;

			HOLDS(r->type != ENGINE_CUT || r->root != MEMCG_ROOT_ID || r->job,
				"VM %" PRIu64 " was asked for an unknown pool",
				w.out.actions[n].id);
			HOLDS(r->type != ENGINE_GIFT && r->type != ENGINE_FEED,
				"VM %" PRIu64 " was given from an unknown pool",
				w.out.actions[n].id);
		}
}

static uint64_t level(const struct engine_level *l)
{
	uint64_t size = engine()->pool.size;

	return l->permille ? (size * l->permille + 999) / 1000 : l->pages;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The need of a root, from what the engine has of it: the pool's from what is free. */
static uint64_t need_of(const struct engine_reason *r)
{
	const struct memcg *root = memcg_find(engine()->tree, r->root);
	uint64_t over = root->seen > root->knobs.max ? root->seen - root->knobs.max : 0;
	int64_t missing = (int64_t)r->wm_high - r->free + (int64_t)engine()->gifts;

	if (r->job) {
		for (const struct job *j = engine()->jobs; j; j = j->next)
			if (j->id == r->job)
				return j->wanted > j->came ? j->wanted - j->came : 0;
		return 0;
	}
	if (r->root == MEMCG_ROOT_ID && missing > 0 && (uint64_t)missing > over)
		return (uint64_t)missing;
	return over;
}

/* Of a share that was made in this tick. */
static void one_share(const struct engine_action *a)
{
	const struct engine_reason *r = &a->reason;
	const struct memcg *vm = memcg_find(engine()->tree, a->id);
	const struct engine_view v = world_view(&w, a->id);
	uint64_t granule = engine()->config.granule, all, part, off;
	/* Each level rounds, and carries what it rounded. */
	uint64_t levels = vm->level - memcg_find(engine()->tree, r->root)->level;

	if (told[index_of(a->id)].waiting)
		return;
	HOLDS(r->need == need_of(r),
		"VM %" PRIu64 ": need %" PRIu64 " of root %" PRIu64 ", free %" PRIi64
		", it is %" PRIu64,
		a->id, r->need, r->root, r->free, need_of(r));
	if (r->step < 3 || v.set.resident < v.set.usage)
		return; /* shares of an excess go by budgets, those of swapped ones in rounds */
	all = least_of(pages_round_up(r->step_need, granule), r->step_cap);
	part = pages_mul_div(all, r->cap, r->step_cap);
	off = r->share > part ? r->share - part : part - r->share;
	HOLDS(off <= 2 * granule * (levels ? levels : 1),
		"VM %" PRIu64 " step %u: share %" PRIu64 " of %" PRIu64 " by its cap %" PRIu64
		" of %" PRIu64,
		a->id, r->step, r->share, all, r->cap, r->step_cap);
}

/* What was told follows from the numbers that it is told with. */
static void one_reason(const struct engine_action *a)
{
	const struct engine_config *c = &engine()->config;
	const struct engine_reason *r = &a->reason;
	struct engine_view v = world_view(&w, a->id);
	uint64_t limit = least_of(a->ceiling, v.knobs.max);

	HOLDS(r->to == a->target && r->at == w.now &&
			(r->type == ENGINE_CANCEL || /* may come before this tick's sample */
				(r->usage == v.set.usage && r->actual == v.set.actual)),
		"VM %" PRIu64 " %s: told %" PRIu64 ", of usage %" PRIu64 ", actual %" PRIu64
		" at %" PRIu64,
		a->id, engine_reason_name(r->type), r->to, r->usage, r->actual, r->at);
	switch (r->type) {
	case ENGINE_CUT:
		HOLDS(r->usage - r->to == v.owed - r->waiting && v.waiting == r->waiting,
			"VM %" PRIu64 ": to %" PRIu64 " of %" PRIu64 ", asked %" PRIu64
			", of it waiting %" PRIu64,
			a->id, r->to, r->usage, v.owed, r->waiting);
		HOLDS(r->share <= r->cap && r->share <= r->step_cap &&
				pages_round_down(r->share, c->granule) == r->share &&
				r->step >= 1 && r->step <= 4,
			"VM %" PRIu64 ": share %" PRIu64 " of cap %" PRIu64 " of %" PRIu64, a->id,
			r->share, r->cap, r->step_cap);
		HOLDS(r->step_need + r->owed <= r->need, "VM %" PRIu64 ": more than is needed",
			a->id);
		one_share(a);
		/* to is bound, but for what a growing guest was asked of in earlier shares */
		HOLDS(r->to >= least(index_of(a->id)), "VM %" PRIu64 " below its least", a->id);
		break;
	case ENGINE_LOOSEN:
		HOLDS(r->to == limit ||
				r->to == least_of(limit, r->usage + pages_max(c->headroom_at_least,
									    r->usage / 16)),
			"VM %" PRIu64 " loosened to %" PRIu64 " of %" PRIu64, a->id, r->to, limit);
		break;
	case ENGINE_FEED:
		limit = least_of(v.knobs.soft_limit, limit);
		if (!c->loosens)
			limit = least_of(limit, pages_max(r->from, r->usage) + r->share);
		HOLDS(r->to == limit && r->bound == v.knobs.soft_limit,
			"VM %" PRIu64 " fed to %" PRIu64 " of %" PRIu64, a->id, r->to, limit);
		break;
	case ENGINE_GIFT:
		HOLDS(r->to == r->from + r->share && r->share <= r->step_need && r->to <= limit,
			"VM %" PRIu64 ": a gift of %" PRIu64 " from %" PRIu64 " to %" PRIu64, a->id,
			r->share, r->from, r->to);
		break;
	case ENGINE_RELEASE:
		HOLDS(r->to == limit, "VM %" PRIu64 " released to %" PRIu64, a->id, r->to);
		break;
	default:
		break;
	}
}

static void reasons(void)
{
	struct engine_pool_view p;

	engine_pool_view(engine(), &p);
	for (size_t n = 0; n < w.out.nr_actions; n++)
		one_reason(&w.out.actions[n]);
	if (!p.known)
		return;
	HOLDS(p.wm_min == level(&engine()->config.wm_min), "wm_min %" PRIu64, p.wm_min);
	HOLDS(p.wm_high - p.wm_low >=
			level(&engine()->config.wm_high) - level(&engine()->config.wm_low),
		"wm_low %" PRIu64 ", wm_high %" PRIu64, p.wm_low, p.wm_high);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * UINT64_C(0x100000001b3);
}

static uint64_t hash;

/* Every figure that leaves the engine, in one number. */
static void fingerprint(void)
{
	for (size_t n = 0; n < w.out.nr_actions; n++) {
		const struct engine_action *a = &w.out.actions[n];
		const struct engine_reason *r = &a->reason;
		const uint64_t figures[] = { a->id, a->seq, a->target, a->ceiling, r->type, r->at,
			r->root, r->job, r->step, (uint64_t)r->free, r->wm_low, r->need, r->owed,
			r->step_need, r->step_cap, r->cap, r->share, r->bound, r->usage, r->from,
			r->to, r->waiting };

		for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
			hash = mix(hash, figures[i]);
	}
	for (size_t n = 0; n < w.out.nr_events; n++) {
		const struct engine_event *e = &w.out.events[n];

		hash = mix(mix(mix(mix(hash, e->type), e->id), e->a), (uint64_t)e->b);
	}
	hash = mix(hash, w.out.next);
}

static void run(uint64_t seed, void (*promise)(void))
{
	seed_now = seed;
	open_world(seed);
	for (tick_now = 0; tick_now < TICKS; tick_now++) {
		disturb();
		world_tick(&w);
		HOLDS(w.out.next > w.now, "to be ticked again at once");
		promise();
	}
	world_close(&w);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Worlds that showed a fault once. */
static const uint64_t shown[] = {
	6065,  /* asked once more, for its ceiling, that was less than it must keep */
	7293,  /* an ask that failed, the next reckoned from more than actual: told more than its
		  ceiling */
	9020,  /* the same, by its deadline */
	9843,  /* the same, and another asked first */
	10719, /* must keep more than its ceiling, and used more than actual: told more than its
		  ceiling */
};

static void run_all(void (*promise)(void))
{
	uint64_t first = number("BALLAST_SEED", number("BALLAST_SEED_FIRST", 1));
	uint64_t nr = getenv("BALLAST_SEED") ? 1 : number("BALLAST_SEEDS", SEEDS);

	for (uint64_t i = 0; i < nr; i++)
		run(first + i, promise);
	for (size_t i = 0; nr > 1 && i < sizeof(shown) / sizeof(shown[0]); i++)
		run(shown[i], promise);
}

START_TEST(asks_that_can_be_cancelled_never_exceed_the_need_by_more_than_a_granule)
{
	run_all(amounts);
}
END_TEST

START_TEST(nobody_is_asked_below_its_min_or_floor)
{
	run_all(floors);
}
END_TEST

START_TEST(nobody_else_is_asked_while_those_in_excess_can_give)
{
	run_all(order);
}
END_TEST

START_TEST(who_is_not_managed_or_cannot_give_is_told_nothing)
{
	run_all(managed);
}
END_TEST

START_TEST(what_is_told_follows_from_the_numbers_of_its_reason)
{
	run_all(reasons);
}
END_TEST

START_TEST(the_same_inputs_give_the_same_outputs)
{
	uint64_t first;

	uint64_t start = number("BALLAST_SEED", number("BALLAST_SEED_FIRST", 1));
	uint64_t nr = getenv("BALLAST_SEED") ? 1 : number("BALLAST_SEEDS", SEEDS);

	for (uint64_t seed = start; seed < start + nr; seed++) {
		hash = 1;
		run(seed, fingerprint);
		first = hash;
		hash = 1;
		run(seed, fingerprint);
		ck_assert_uint_eq(hash, first);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine_amounts");
	TCase *t = tcase_create("amounts");

	tcase_set_timeout(t, number("BALLAST_SEEDS", SEEDS) / 10);
	tcase_add_test(t, asks_that_can_be_cancelled_never_exceed_the_need_by_more_than_a_granule);
	tcase_add_test(t, nobody_is_asked_below_its_min_or_floor);
	tcase_add_test(t, nobody_else_is_asked_while_those_in_excess_can_give);
	tcase_add_test(t, who_is_not_managed_or_cannot_give_is_told_nothing);
	tcase_add_test(t, what_is_told_follows_from_the_numbers_of_its_reason);
	tcase_add_test(t, the_same_inputs_give_the_same_outputs);
	suite_add_tcase(s, t);
	return suite_run(s);
}
