/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who is asked now: the need of every root, less what is under way, is planned by reclaim() and
 * becomes shares; pace says how much of a share is told to the VM at once. A share that waits stays
 * its VM's. What was asked counts for every root above the VM until usage and the pool show it.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "policy/engine_internal.h"
#include "policy/order.h"

#define SECOND UINT64_C(1000000)

/*
 * Below wm_min steps are this many times larger: getting there late is worse than too much. Hold
 * times stay: who failed gives no more for being asked sooner, and who was fed would lose what it
 * got; what they cannot bring in time is asked of others, see pass_on_late().
 */
#define WIDEN 4

/* Samples of VMs come once a second: what no sample shows after two was not theirs. */
#define AHEAD_US (2 * SECOND)

/*
 * A running ask grows by a part this size at least, so that a growing need is few commands; or by
 * so many pages, that one which is large grows in time, too: half a second of an idle guest's
 * balloon is worth a command.
 */
#define EXTEND_FRACTION 4
#define EXTEND_PAGES	MIB_TO_PAGES(16)

/* A root's need, and in whose name it is asked. */
struct demand {
	struct memcg *root;
	uint64_t job;
	uint64_t need;	   /* pages to be gained, before what is under way */
	struct vm **asked; /* in its name: the list of struct job, limited or engine */
};

void ask_credit(struct engine *e, const struct vm *vm, int64_t pages)
{
	uint64_t gain = settle_gain(vm, (uint64_t)(pages < 0 ? -pages : pages));

	for (struct job *j = e->jobs; j; j = j->next) {
		const struct memcg *root = memcg_find(e->tree, j->root);

		if (!memcg_is_below(vm->memcg, root))
			continue;
		j->came = pages < 0 ? pages_sub(j->came, gain) : j->came + gain;
	}
	if (e->pool.known && e->pool.host && pages > 0) {
		if (e->unshown <= 0) /* not renewed by what comes after it */
			e->unshown_until = e->now + e->config.ask_deadline_us;
		e->unshown += (int64_t)gain;
	}
}

void ask_grew(struct engine *e, const struct vm *vm, uint64_t pages)
{
	/* Somebody took what came before MemAvailable could show it. */
	if (e->unshown > 0)
		e->unshown = (int64_t)pages_sub((uint64_t)e->unshown, settle_gain(vm, pages));
}

/* By VMs below, as their newest figures have it. */
static uint64_t asked_below(const struct engine *e, const struct memcg *root)
{
	memcg_carry(e->tree);
	return root->owed_gain;
}

/*
 * MemAvailable may lag behind what usage shows, which counts as under way until then; or be ahead
 * of it, by no more than VMs were told to give: so much of what is under way is there already.
 */
static int64_t unshown(const struct engine *e)
{
	int64_t told = (int64_t)e->told;

	return e->unshown > -told ? e->unshown : -told;
}

void ask_available(struct engine *e, int64_t more)
{
	if (more > 0) {
		e->unshown -= more;
		e->unshown = unshown(e);
		if (e->unshown < 0)
			e->unshown_until = e->now + AHEAD_US;
	} else if (e->unshown < 0) {
		e->unshown = e->unshown - more < 0 ? e->unshown - more : 0;
	}
}

static uint64_t under_way(const struct engine *e, const struct demand *d)
{
	int64_t way = (int64_t)asked_below(e, d->root);

	if (d->root == e->tree->root && !d->job) /* the pool's own */
		way += unshown(e);
	return (uint64_t)way; /* what waits is never there already */
}

static struct engine_reason reason_of(const struct vm *vm, enum engine_reason_type type)
{
	struct engine_reason r = vm->why;

	r.type = type;
	return r;
}

static void wait_for(struct engine *e, struct vm *vm, uint64_t pages)
{
	vm->waiting = pages;
	settle_owe(e, vm);
	topology_refresh(e, vm);
}

/* Takes back up to pages of what the VM owes; returns what was taken back. */
static uint64_t take_back(struct engine *e, struct vm *vm, uint64_t pages)
{
	uint64_t waiting = pages_min(vm->waiting, pages), ask, out;
	const struct engine_reason r = reason_of(vm, ENGINE_CANCEL);

	vm->waiting -= waiting;
	out = settle_outstanding(vm);
	ask = pages_min(out, pages - waiting);
	/* Nothing is asked any more where a goal is what it has: it may use more, swapped out. */
	if (ask && (out - ask < e->config.granule || vm->ask.goal + ask >= vm->set.actual)) {
		settle_cancel(e, vm, vm->set.actual);
		return waiting + out;
	}
	if (ask)
		settle_raise(e, vm, vm->ask.goal + ask, &r);
	settle_owe(e, vm);
	topology_refresh(e, vm);
	return waiting + ask;
}

static uint64_t over_max(const struct memcg *m)
{
	return pages_sub(m->seen, m->knobs.max);
}

static struct demand demand_of_job(const struct engine *e, struct job *j)
{
	return (struct demand){ .root = memcg_find(e->tree, j->root),
		.job = j->id,
		.need = pages_sub(j->wanted, j->came),
		.asked = &j->asked };
}

/* Of a group, or VM, with a max. The root's is the pool's own. */
static struct demand demand_of_limited(struct limited *l)
{
	return (struct demand){ .root = l->memcg, .need = over_max(l->memcg), .asked = &l->asked };
}

/* Below wm_low, or over the pool's own max: more is to be asked. */
static bool pool_needs(const struct engine *e)
{
	int64_t free = e->free - (int64_t)e->gifts;

	return free < (int64_t)e->wm_low || over_max(e->tree->root);
}

static struct demand demand_of_pool(struct engine *e)
{
	int64_t free = e->free - (int64_t)e->gifts;
	struct demand d = { .root = e->tree->root, .asked = &e->asked };

	d.need = free < (int64_t)e->wm_high ? (uint64_t)((int64_t)e->wm_high - free) : 0;
	d.need = pages_max(d.need, over_max(d.root));
	if (!pool_needs(e)) /* nothing new is asked; what is under way may come */
		d.need = pages_min(d.need, under_way(e, &d));
	return d;
}

/*
 * What was asked of a VM serves every root above it, whoever asked: of it, d counts on the VM for
 * so much that it would be missing something without.
 */
static bool counts_on(struct engine *e, const struct demand *d, const struct vm *vm)
{
	return d->need && memcg_is_below(vm->memcg, d->root) &&
	       under_way(e, d) < d->need + settle_gain(vm, vm->owed);
}

/* The list of those asked in that name; NULL: nobody's, as its job ended or its max was lifted. */
static struct vm **asked_list(struct engine *e, const struct engine_reason *why)
{
	const struct memcg *root;
	struct job *j = e->jobs;

	while (why->job && j && j->id != why->job)
		j = j->next;
	if (why->job)
		return j ? &j->asked : NULL;
	if (why->root == e->tree->root->id)
		return &e->asked;
	root = memcg_find(e->tree, why->root);
	return root && root->limited_at ? &e->limited[root->limited_at - 1].asked : NULL;
}

/* Who is asked in whose name, so that each looks at its own alone. */
static void list_asked(struct engine *e)
{
	e->asked = NULL;
	for (size_t i = 0; i < e->nr_limited; i++)
		e->limited[i].asked = NULL;
	for (struct job *j = e->jobs; j; j = j->next)
		j->asked = NULL;
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm)) {
		struct vm **asked = vm->owed ? asked_list(e, &vm->why) : NULL;

		if (!asked)
			continue;
		vm->asked_next = *asked;
		*asked = vm;
	}
}

/* Whoever else counts on it goes on with it, in its own name. */
static bool hand_over(struct engine *e, struct vm *vm, const struct demand *from)
{
	struct demand to = { .root = NULL };
	bool found = false;

	if (e->pool.known && (from->job || from->root != e->tree->root)) {
		to = demand_of_pool(e);
		found = counts_on(e, &to, vm);
	}
	for (struct job *j = e->jobs; j && !found; j = j->next) {
		to = demand_of_job(e, j);
		found = j->id != from->job && counts_on(e, &to, vm);
	}
	for (struct memcg *m = vm->memcg; m->parent && !found; m = m->parent) {
		if (!m->limited_at)
			continue;
		to = demand_of_limited(&e->limited[m->limited_at - 1]);
		found = (from->job || m != from->root) && counts_on(e, &to, vm);
	}
	if (!found)
		return false;
	vm->asked_next = *to.asked;
	*to.asked = vm;
	vm->why.root = vm->ask.root = to.root->id;
	vm->why.job = vm->ask.job = to.job;
	return true;
}

/*
 * No more is asked in a root's name than it needs, taken anew: the last steps end first, and of a
 * step whoever was asked last.
 */
static void trim(struct engine *e, const struct demand *d, bool hands_over)
{
	uint64_t way, surplus, pages;
	struct vm **at, *vm, *next;

	if (!*d->asked)
		return;
	way = under_way(e, d);
	if (way <= d->need + e->config.granule)
		return;
	surplus = way - d->need;
	for (unsigned int step = MEMCG_STEPS; step >= 1 && surplus; step--) {
		at = d->asked;
		while (surplus && (vm = *at)) {
			next = vm->asked_next;
			if (!vm->owed || vm->why.step != step || !vm->set.resident) {
				at = &vm->asked_next;
				continue;
			}
			if (hands_over && hand_over(e, vm, d)) {
				*at = next;
				continue;
			}
			at = &vm->asked_next;
			pages = pages_mul_div(pages_min(surplus, vm->set.resident), vm->set.usage,
				vm->set.resident);
			surplus = pages_sub(surplus, settle_gain(vm, take_back(e, vm, pages)));
		}
	}
}

static void hand_over_surplus(struct engine *e, const struct demand *d)
{
	trim(e, d, true);
}

static void take_back_surplus(struct engine *e, const struct demand *d)
{
	trim(e, d, false);
}

static uint64_t max_step(const struct engine *e)
{
	return e->below_min ? e->config.max_step * WIDEN : e->config.max_step;
}

static uint64_t ask_speed(const struct engine *e, const struct vm *vm)
{
	uint64_t speed = vm->speed ? vm->speed : e->config.speed;

	return vm->attrs.max_rate ? pages_min(vm->attrs.max_rate, speed) : speed;
}

/* What a rate leaves; a granule is always worth waiting for. */
static uint64_t allowed(struct engine *e, struct allowance *a, uint64_t rate)
{
	uint64_t more;

	if (!rate)
		return PAGES_UNLIMITED;
	more = a->begun ? pages_mul_div(rate, e->now - a->at, SECOND) : rate;
	if (more) { /* what is less than a page is not lost: its time still counts */
		a->left = pages_min(a->left + more, pages_max(rate, e->config.granule));
		a->at = e->now;
		a->begun = true;
	}
	if (a->left < e->config.granule)
		engine_by(e, e->now + pages_mul_div(e->config.granule - a->left, SECOND, rate) + 1);
	return a->left;
}

/* The lesser of what the VM's rate and the host's leave, in whole granules. */
static uint64_t allowed_now(struct engine *e, struct vm *vm)
{
	uint64_t own = allowed(e, &vm->allowance, vm->attrs.max_rate);
	uint64_t pages = pages_min(own, allowed(e, &e->allowance, e->config.max_rate));

	return pages - pages % e->config.granule;
}

static void use_allowance(struct allowance *a, uint64_t rate, uint64_t pages)
{
	if (rate)
		a->left -= pages;
}

uint64_t ask_in_time(const struct engine *e, const struct vm *vm)
{
	if (!e->below_min)
		return PAGES_UNLIMITED;
	return pages_mul_div(ask_speed(e, vm), e->config.ask_deadline_us, SECOND);
}

bool ask_goes_inside(const struct engine *e, const struct vm *vm)
{
	if (vm->ask_on)
		return vm->ask.inside;
	/* One that refills at once, and one that is capped already, has its balloon for that. */
	return vm->attrs.reports && e->now >= vm->outside_until && !vm_capped(vm) &&
	       !give_refilled(e, vm);
}

static void begin(struct engine *e, struct vm *vm)
{
	bool inside = ask_goes_inside(e, vm);
	uint64_t moves = inside ? vm->set.usage : vm->set.actual;

	/* Found above what is on record, and not at rest yet: its operator has raised it since. */
	if (vm->touched && !vm->target)
		vm->ceiling = pages_max(vm->ceiling, vm_as_it_is(vm));
	vm->ask_on = true;
	vm->ask = (struct ask){ .since = e->now,
		.actual = moves,
		.eased_at = moves,
		.moved = e->now,
		.moved_to = moves,
		.inside = inside };
	vm->ask.from = vm->ask.goal = vm->set.usage;
	vm->ask.beside = vm->set.cost - vm->set.usage;
	vm->out = 0;
	vm->asks++;
	vm->refills = give_refilled(e, vm);
}

/* Tells the VM as much of its share as its pace allows. */
static void promote(struct engine *e, struct vm *vm)
{
	struct ask *ask = &vm->ask;
	struct engine_reason why = vm->why;
	uint64_t size = vm->ask_on ? ask->from - ask->goal : 0;
	uint64_t pages = pages_min(vm->waiting, pages_sub(max_step(e), size)), way, deadline;

	if (!pages)
		return;
	/* An agent is asked once the last target is answered: a way back is not to be lost. */
	if (!vm->ask_on && vm_unanswered(e, vm) && ask_goes_inside(e, vm)) {
		engine_by(e, vm->answer_by);
		return;
	}
	pages = pages_min(pages, allowed_now(e, vm));
	if (!pages)
		return;
	if (vm->ask_on && pages < vm->waiting && pages < size / EXTEND_FRACTION)
		return;
	if (vm->ask_on && pages < size / EXTEND_FRACTION && pages < EXTEND_PAGES)
		return;
	if (!vm->ask_on)
		begin(e, vm);
	why.inside = ask->inside;
	why.from = settle_from(vm); /* of what is asked inside */
	settle_keep_goal(vm);
	ask->raised = false;
	ask->goal = settle_from(vm) - pages;
	vm->out = settle_outstanding(vm);
	vm->waiting -= pages;
	use_allowance(&vm->allowance, vm->attrs.max_rate, pages);
	use_allowance(&e->allowance, e->config.max_rate, pages);
	/* From where it began: what is added to an ask adds its own way and no more. */
	way = pages_sub(ask->actual, ask->goal);
	deadline = ask->since + e->config.ask_deadline_us +
		   pages_mul_div(way, SECOND, ask_speed(e, vm));
	/* One that is slow may have been given more time than that. */
	ask->deadline = pages_max(ask->deadline, deadline);
	ask->root = vm->why.root;
	ask->job = vm->why.job;
	ask->step = vm->why.step;
	engine_act(e, vm, ask->goal, why);
	ask->seq = vm->seq;
}

static void promote_one(struct engine *e, struct vm *vm)
{
	promote(e, vm);
	settle_owe(e, vm);
	topology_refresh(e, vm);
}

/* By step, then the least to inflate first, then as they stand. Of struct vm *. */
static bool goes_before(const void *one, const void *other)
{
	const struct vm *a = *(struct vm *const *)one, *b = *(struct vm *const *)other;

	if (a->why.step != b->why.step)
		return a->why.step < b->why.step;
	if (a->reclaim.slack != b->reclaim.slack)
		return a->reclaim.slack < b->reclaim.slack;
	return a->busy_at < b->busy_at;
}

/* What the host's rate leaves is for the first steps first; without one each gets its own. */
static void promote_all(struct engine *e)
{
	struct vm *spare;
	size_t nr = 0;

	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm)) {
		if (!vm->waiting)
			continue;
		if (e->config.max_rate)
			e->gift_vms[nr++] = vm;
		else
			promote_one(e, vm);
	}
	order(e->gift_vms, nr, sizeof(struct vm *), &spare, goes_before);
	for (size_t i = 0; i < nr; i++)
		promote_one(e, e->gift_vms[i]);
}

/* Below wm_min: what a VM cannot bring in time is asked of others, and it is asked no more. */
static void pass_on_late(struct engine *e)
{
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm))
		wait_for(e, vm,
			pages_min(vm->waiting,
				pages_sub(ask_in_time(e, vm), settle_outstanding(vm))));
}

static void keep_share(
	struct engine *e, const struct demand *d, uint64_t way, const struct reclaim_share *s)
{
	struct vm *vm = vm_of(s->memcg);

	vm->waiting += s->pages;
	vm->why = (struct engine_reason){
		.type = ENGINE_CUT,
		.root = d->root->id,
		.job = d->job,
		.step = s->step,
		.need = d->need,
		.owed = way,
		.step_need = s->step_need,
		.step_cap = s->step_cap,
		.cap = s->cap,
		.share = s->pages,
		.bound = s->bound,
	};
	settle_owe(e, vm);
	topology_refresh(e, vm);
	topology_busy(e, vm);
}

/* What the i-th share from now will meet, see ahead.h. */
static void keep_ahead(const struct reclaim_plan *plan, size_t i)
{
	const struct memcg *m;

	if (i + 2 * AHEAD_ROUNDS < plan->nr)
		ahead(plan->shares[i + 2 * AHEAD_ROUNDS].memcg, 1, 2);
	if (i + AHEAD_ROUNDS < plan->nr) {
		m = plan->shares[i + AHEAD_ROUNDS].memcg;
		ahead(m->vm, 0, VM_LINE_ASKED);
		if (m->parent)
			ahead(m->parent, 2, 3);
	}
}

/* What waits of step 3 and 4 is planned anew when somebody came to be in excess who can give. */
static void prefer_excess(struct engine *e, const struct demand *d)
{
	struct reclaim_plan plan = { .shares = e->shares, .nr_max = e->max_vms * RECLAIM_SHARES };
	bool waits = false;

	for (const struct vm *vm = *d->asked; vm; vm = vm->asked_next)
		waits |= vm->waiting && vm->why.step >= 3;
	if (!waits)
		return;
	reclaim(d->root, 1, e->config.granule, false, &plan);
	if (!plan.nr || plan.shares[0].step >= 3)
		return;
	for (struct vm *vm = *d->asked; vm; vm = vm->asked_next)
		if (vm->why.step >= 3)
			wait_for(e, vm, 0);
}

/* Asks for what is not under way yet; returns what nobody can give. */
static uint64_t ask_for(struct engine *e, const struct demand *d)
{
	struct reclaim_plan plan = { .shares = e->shares, .nr_max = e->max_vms * RECLAIM_SHARES };
	uint64_t way = under_way(e, d);

	if (way >= d->need)
		return 0;
	reclaim(d->root, d->need - way, e->config.granule, true, &plan);
	for (size_t i = 0; i < plan.nr; i++) {
		keep_ahead(&plan, i);
		keep_share(e, d, way, &plan.shares[i]);
	}
	return plan.short_pages;
}

static void ask_limited(struct engine *e)
{
	for (size_t i = 0; i < e->nr_limited; i++) {
		struct limited *l = &e->limited[i];
		struct demand d = demand_of_limited(l);
		uint64_t missing;

		if (d.root == e->tree->root) /* that is the pool's own, see ask_pool() */
			continue;
		if (l->is_short && !e->changed && e->now < l->retry) {
			engine_by(e, l->retry);
			continue; /* nothing changed: nobody has more than before */
		}
		missing = ask_for(e, &d);
		if (!missing != !l->is_short)
			engine_event(e, missing ? ENGINE_EVENT_SHORT : ENGINE_EVENT_SHORT_OVER,
				d.root->id, missing, 0);
		l->is_short = missing;
		l->retry = e->now + e->config.hold_us;
		if (missing)
			engine_by(e, l->retry);
	}
}

/* Of one that only waits to be asked nothing is taken back: what it gave before stays given. */
static void ask_no_more(struct engine *e, struct vm *vm)
{
	if (vm->ask_on)
		settle_cancel(e, vm, vm->set.actual);
	else
		wait_for(e, vm, 0);
}

static void cancel_job_asks(struct engine *e, uint64_t job)
{
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm))
		if (vm_asked(vm) && vm->why.job == job)
			ask_no_more(e, vm);
}

static void end_job(struct engine *e, struct job **at, enum engine_event_type how)
{
	struct job *j = *at;

	cancel_job_asks(e, j->id);
	engine_event(e, how, j->id, j->wanted, (int64_t)j->came);
	*at = j->next;
	free(j);
}

/* What was wanted has come. */
static void end_done_jobs(struct engine *e)
{
	struct job **at = &e->jobs, *j;

	while ((j = *at)) {
		if (pages_sub(j->wanted, j->came) < e->config.granule)
			end_job(e, at, ENGINE_EVENT_JOB_DONE);
		else
			at = &j->next;
	}
}

static void ask_jobs(struct engine *e)
{
	struct job **at = &e->jobs, *j;
	uint64_t missing;

	while ((j = *at)) {
		struct demand d = demand_of_job(e, j);

		missing = ask_for(e, &d);
		if (missing && !under_way(e, &d)) {
			end_job(e, at, ENGINE_EVENT_JOB_SHORT);
			continue;
		}
		at = &j->next;
	}
}

static void set_short(struct engine *e, uint64_t pages)
{
	if (pages && !e->short_pages)
		engine_event(e, ENGINE_EVENT_SHORT, MEMCG_ROOT_ID, pages, e->free);
	if (!pages && e->short_pages)
		engine_event(e, ENGINE_EVENT_SHORT_OVER, MEMCG_ROOT_ID, 0, e->free);
	e->short_pages = pages;
	e->short_retry = e->now + e->config.hold_us;
}

/* Of a pool that is not known nothing more is asked; what was told to a VM may come. */
static void wait_no_more(struct engine *e, const struct demand *d)
{
	for (struct vm *vm = *d->asked; vm; vm = vm->asked_next)
		wait_for(e, vm, 0);
}

static void ask_pool(struct engine *e)
{
	struct demand d;

	if (!e->pool.known)
		return;
	if (!pool_needs(e)) {
		set_short(e, 0);
		return;
	}
	d = demand_of_pool(e);
	e->need = d.need;
	if (e->below_min)
		pass_on_late(e);
	if (e->short_pages && !e->changed && e->now < e->short_retry) {
		engine_by(e, e->short_retry);
		return; /* nothing changed: nobody has more than before */
	}
	set_short(e, ask_for(e, &d));
	if (e->short_pages)
		engine_by(e, e->short_retry);
}

/* The pool first: what it lets go of, others may go on with. */
static void each_demand(
	struct engine *e, void (*revise)(struct engine *e, const struct demand *demand))
{
	struct demand d = { .root = e->tree->root, .asked = &e->asked };

	if (!e->pool.known) {
		wait_no_more(e, &d);
	} else {
		d = demand_of_pool(e);
		revise(e, &d);
	}
	for (size_t i = 0; i < e->nr_limited; i++) {
		d = demand_of_limited(&e->limited[i]);
		if (d.root != e->tree->root) /* that is the pool's own */
			revise(e, &d);
	}
	for (struct job *j = e->jobs; j; j = j->next) {
		d = demand_of_job(e, j);
		revise(e, &d);
	}
}

/*
 * Reclaimers of one tree that race are its known trap: who finds that others hold all that is over
 * a soft limit turns to everybody, and a moment later they let go of it. So everyone first lets go
 * of what it needs no more; only then is anything asked.
 */
void ask_all(struct engine *e)
{
	end_done_jobs(e);
	list_asked(e);
	each_demand(e, hand_over_surplus);
	each_demand(e, take_back_surplus); /* of what was handed over, too */
	each_demand(e, prefer_excess);
	ask_limited(e);
	ask_jobs(e);
	ask_pool(e);
	promote_all(e);
}

void ask_nobody(struct engine *e)
{
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm))
		if (vm_asked(vm))
			ask_no_more(e, vm);
	while (e->jobs)
		end_job(e, &e->jobs, ENGINE_EVENT_JOB_SHORT);
}

int ask_request(struct engine *e, const struct engine_request *request)
{
	const struct memcg *root = memcg_find(e->tree, request->root);
	struct job *j, **at = &e->jobs;

	while (*at && (*at)->id != request->job)
		at = &(*at)->next;
	if (request->type == ENGINE_RECLAIM_CANCEL) {
		if (!*at)
			return -ENOENT;
		end_job(e, at, ENGINE_EVENT_JOB_CANCELLED);
		return 0;
	}
	if (*at)
		return -EEXIST;
	if (!request->job || !request->pages || request->pages > PAGES_UNLIMITED)
		return -EINVAL;
	if (!root || root->offline)
		return -ENOENT;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	*j = (struct job){
		.id = request->job,
		.root = request->root,
		.wanted = pages_max(request->pages, e->config.granule),
	};
	*at = j;
	return 0;
}

void ask_forget_root(struct engine *e, uint64_t root)
{
	struct job **at = &e->jobs;

	while (*at) {
		if ((*at)->root == root)
			end_job(e, at, ENGINE_EVENT_JOB_CANCELLED);
		else
			at = &(*at)->next;
	}
}
