/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One step is one or more phases (who is meant, and whether of them the fully resident or the
 * partly swapped). A phase is two walks over the same groups: gather() goes down and comes back
 * with what each subtree may give; hand_out() goes down with what it shall give.
 */
#include <config.h>

#include "policy/reclaim.h"

#include <assert.h>
#include <string.h>

static const char *const hold_names[RECLAIM_HOLD_NR] = {
	[RECLAIM_HOLD_NONE] = "none",
	[RECLAIM_HOLD_STATE] = "state",
	[RECLAIM_HOLD_MANAGE] = "not managed",
	[RECLAIM_HOLD_PAUSED] = "asking is paused",
	[RECLAIM_HOLD_RELEASED] = "released lately",
	[RECLAIM_HOLD_UNKNOWN] = "statistics unknown",
	[RECLAIM_HOLD_ACTUAL] = "costs more than actual",
	[RECLAIM_HOLD_SMALL] = "too small",
	[RECLAIM_HOLD_FAILED] = "failed lately",
	[RECLAIM_HOLD_CONTENDED] = "contended",
	[RECLAIM_HOLD_FED] = "fed lately",
	[RECLAIM_HOLD_PROTECTED] = "at its floor",
};

const char *reclaim_hold_name(enum reclaim_hold hold)
{
	assert(hold < RECLAIM_HOLD_NR);
	return hold_names[hold];
}

/*
 * Of asking the partly swapped, in a phase. A round brings at least the part of what remains that
 * their resident parts on average are of the largest: where that is one in twenty, this many rounds
 * leave a millionth.
 */
#define SWAPPED_ROUNDS 256

struct phase {
	unsigned int step; /* 1 to 4 */
	bool soft;	   /* only what excess asks for */
	bool active;	   /* active memory too, not only cold */
	bool below_low;
	enum { ANYBODY, WITHOUT_LIMIT, UNDER_LIMIT } who;
	bool swapped; /* the partly swapped, else the fully resident */
};

static const struct phase phases[] = {
	{ .step = 1, .soft = true },
	{ .step = 2, .soft = true, .active = true },
	{ .step = 3, .who = WITHOUT_LIMIT },
	{ .step = 3, .who = UNDER_LIMIT },
	{ .step = 4, .active = true },
	{ .step = 4, .active = true, .below_low = true },
};

struct walk {
	struct memcg *root;
	struct reclaim_plan *plan;
	uint64_t granule, stamp;
	bool commit;
	struct phase phase;
	bool swapped_seen;	 /* somebody partly swapped was passed over */
	size_t first;		 /* share of the phase */
	uint64_t need, capacity; /* of the phase, for the reasons */
};

/* The first time that this plan comes by: what it keeps with the group starts anew. */
static void enter(struct walk *w, struct memcg *m)
{
	uint64_t used;

	if (m->plan.stamp == w->stamp)
		return;
	m->plan.stamp = w->stamp;
	m->plan.taken = 0;
	used = pages_sub(m->seen, m->owed);
	/* A target is reckoned from usage: what a VM costs beside it cannot be asked of it. */
	if (m->vm)
		used = pages_min(used, m->vm->usage);
	m->plan.budget = pages_sub(used, m->knobs.soft_limit);
	m->plan.position = m->position;
	memcpy(m->plan.carry, m->carry[w->root->level], sizeof(m->plan.carry));
	memcg_protect(m, w->root);
}

static uint64_t keep_of(const struct walk *w, const struct memcg *m)
{
	uint64_t keep = pages_max(m->vm->keep, m->plan.protected_min);

	return w->phase.below_low ? keep : pages_max(keep, m->plan.protected_low);
}

/* What a VM may still give in this phase, in whole granules. */
static uint64_t capacity_of(const struct walk *w, const struct memcg *m)
{
	const struct reclaim_vm *vm = m->vm;
	uint64_t most = pages_sub(vm->usage, keep_of(w, m));

	if (!w->phase.active)
		most = pages_min(most, vm->cold);
	most = pages_min(most, vm->at_most);
	return pages_round_down(pages_sub(most, m->plan.taken), w->granule);
}

/* What the host is expected to gain by pages of the VM's usage. */
static uint64_t gain_of(const struct reclaim_vm *vm, uint64_t pages)
{
	return pages_gain(pages, vm->resident, vm->usage);
}

static void gather_vm(struct walk *w, struct memcg *m)
{
	const struct reclaim_vm *vm = m->vm;
	bool limited;

	m->plan.capacity = 0;
	m->plan.justified = 0;
	if (m->offline || vm->hold != RECLAIM_HOLD_NONE || !vm->resident)
		return;
	if (w->phase.who != ANYBODY) {
		limited = memcg_limit_set(m, w->root);
		if (limited != (w->phase.who == UNDER_LIMIT))
			return;
	}
	if ((vm->resident < vm->usage) != w->phase.swapped) {
		w->swapped_seen |= !w->phase.swapped;
		return;
	}
	m->plan.capacity = capacity_of(w, m);
	if (!gain_of(vm, m->plan.capacity)) /* all of it is swapped out: to ask would only harm */
		m->plan.capacity = 0;
	m->plan.justified =
		pages_min(m->plan.capacity, pages_round_down(m->plan.budget, w->granule));
}

static void gather(struct walk *w, struct memcg *m, bool covered);

static void gather_child(struct walk *w, struct memcg *m, struct memcg *child, bool covered)
{
	gather(w, child, covered);
	if (!child->plan.capacity)
		return;
	child->plan.visited_next = m->plan.visited;
	m->plan.visited = child;
	m->plan.capacity += child->plan.capacity;
	m->plan.justified += child->plan.justified;
}

/* covered: an ancestor's excess asks for pages from anyone below it. */
static void gather(struct walk *w, struct memcg *m, bool covered)
{
	uint64_t own;

	w->plan->visited++;
	enter(w, m);
	if (m->vm) {
		gather_vm(w, m);
		return;
	}
	own = pages_round_down(m->plan.budget, w->granule);
	covered |= own > 0;
	m->plan.visited = NULL;
	m->plan.capacity = 0;
	m->plan.justified = 0;
	if (w->phase.soft && !covered) {
		/* MEMCG_SKIP_TREE for all others: nobody in excess there */
		for (struct memcg *c = m->excess_children; c; c = c->excess_next)
			gather_child(w, m, c, false);
	} else {
		memcg_for_each_child (c, m)
			gather_child(w, m, c, covered);
	}
	m->plan.justified = pages_min(m->plan.capacity, pages_max(own, m->plan.justified));
}

/* The VM's share in this phase; a new one where it has none. */
static struct reclaim_share *share_of(struct walk *w, struct memcg *m)
{
	struct reclaim_plan *plan = w->plan;
	struct reclaim_share *s;

	if (m->plan.entry >= w->first && m->plan.entry < plan->nr &&
		plan->shares[m->plan.entry].memcg == m)
		return &plan->shares[m->plan.entry];
	assert(plan->nr < plan->nr_max);
	m->plan.entry = plan->nr;
	s = &plan->shares[plan->nr++];
	*s = (struct reclaim_share){
		.memcg = m,
		.step = w->phase.step,
		.below_low = w->phase.below_low,
		.cap = m->plan.capacity,
		.step_need = w->need,
		.step_cap = w->capacity,
		.bound = PAGES_UNLIMITED,
		.slack = m->vm->slack,
	};
	return s;
}

static void take(struct walk *w, struct memcg *m, uint64_t pages)
{
	struct reclaim_share *s;
	uint64_t bound = keep_of(w, m);

	s = share_of(w, m);
	if (w->phase.soft && m->knobs.soft_limit != PAGES_UNLIMITED && pages <= m->plan.budget)
		bound = pages_max(bound, m->knobs.soft_limit);
	s->bound = pages_min(s->bound, bound);
	w->plan->gain -= s->gain;
	s->pages += pages;
	s->gain = gain_of(m->vm, s->pages);
	w->plan->gain += s->gain;
	m->plan.taken += pages;
}

/* What of a child one division is about. */
enum part { JUSTIFIED, REST, ALL };

static uint64_t weight(const struct memcg *m, enum part part)
{
	switch (part) {
	case JUSTIFIED:
		return m->plan.justified;
	case REST:
		return m->plan.capacity - m->plan.justified;
	default:
		return m->plan.capacity;
	}
}

static int64_t carry_of(const struct walk *w, const struct memcg *m)
{
	return m->plan.carry[w->phase.step - 1];
}

static void set_carry(struct walk *w, struct memcg *m, int64_t carry)
{
	m->plan.carry[w->phase.step - 1] = carry;
	if (w->commit)
		m->carry[w->root->level][w->phase.step - 1] = carry;
}

static void set_position(struct walk *w, struct memcg *m, uint64_t id)
{
	m->plan.position = id;
	if (w->commit)
		m->position = id;
}

/* The visited child at the shared position, else the first. */
static struct memcg *position_of(const struct memcg *m)
{
	for (struct memcg *c = m->plan.visited; c; c = c->plan.visited_next)
		if (c->id == m->plan.position)
			return c;
	return m->plan.visited;
}

/* One granule more (sign 1) or less (-1) for a child, if it may have it. */
static bool nudge(struct walk *w, struct memcg *c, enum part part, int sign)
{
	bool room = sign > 0 ? c->plan.part + w->granule <= weight(c, part)
			     : c->plan.part >= w->granule;

	if (!room)
		return false;
	c->plan.part = sign > 0 ? c->plan.part + w->granule : c->plan.part - w->granule;
	c->plan.due -= sign * (int64_t)w->granule;
	return true;
}

/*
 * What rounding left over (rest > 0) or handed out too much (rest < 0), a granule each, going round
 * from the shared position: in the first round those to whom the division owes it, then anyone.
 * The weights cover the whole, so every later round but the last places at least one granule.
 */
static void go_round(struct walk *w, struct memcg *m, enum part part, int64_t rest)
{
	struct memcg *start = position_of(m), *c;
	int sign = rest > 0 ? 1 : -1;
	uint64_t left = (uint64_t)(rest * sign) / w->granule, before;

	for (unsigned int round = 0; left; round++) {
		before = left;
		c = start;
		do {
			if ((round || c->plan.due * sign > 0) && nudge(w, c, part, sign)) {
				left--;
				set_position(
					w, m, c->plan.visited_next ? c->plan.visited_next->id : 0);
			}
			c = c->plan.visited_next ? c->plan.visited_next : m->plan.visited;
		} while (left && c != start);
		assert(!round || left < before);
	}
}

/* What is owed to a child of sum by its weight, and from before. */
static void set_due(
	struct walk *w, struct memcg *c, uint64_t pages, uint64_t own_weight, uint64_t sum)
{
	uint64_t over = pages_mul_mod(pages, own_weight, sum);
	int64_t carry = carry_of(w, c) + (int64_t)pages_mul_div(over, MEMCG_CARRY_PAGE, sum);

	c->plan.due = (int64_t)pages_mul_div(pages, own_weight, sum) + carry / MEMCG_CARRY_PAGE;
	c->plan.due_parts = carry % MEMCG_CARRY_PAGE;
}

static void carry_due(struct walk *w, struct memcg *c)
{
	int64_t granule = (int64_t)w->granule, due = c->plan.due;

	due = due > granule ? granule : due < -granule ? -granule : due;
	set_carry(w, c, due * MEMCG_CARRY_PAGE + c->plan.due_parts);
}

/* Adds to every visited child's share its part of pages, which the children's weights cover. */
static void divide(struct walk *w, struct memcg *m, enum part part, uint64_t pages)
{
	int64_t rest = (int64_t)pages;
	uint64_t sum = 0, give;

	for (struct memcg *c = m->plan.visited; c; c = c->plan.visited_next)
		sum += weight(c, part);
	assert(pages <= sum);
	for (struct memcg *c = m->plan.visited; c; c = c->plan.visited_next) {
		c->plan.part = 0;
		c->plan.due = 0;
		if (!weight(c, part))
			continue;
		set_due(w, c, pages, weight(c, part), sum);
		give = c->plan.due > 0 ? (uint64_t)c->plan.due : 0;
		give = pages_round_down(give + w->granule / 2, w->granule);
		give = pages_min(give, weight(c, part));
		c->plan.part = give;
		c->plan.due -= (int64_t)give;
		rest -= (int64_t)give;
	}
	go_round(w, m, part, rest);
	for (struct memcg *c = m->plan.visited; c; c = c->plan.visited_next) {
		c->plan.share += c->plan.part;
		if (weight(c, part))
			carry_due(w, c);
	}
}

/* pages are taken from those below: every one lowers the budget of each ancestor. */
static void hand_out(struct walk *w, struct memcg *m, uint64_t pages)
{
	uint64_t justified = 0;

	if (m->vm)
		take(w, m, pages);
	m->plan.budget = pages_sub(m->plan.budget, pages);
	if (m->vm)
		return;
	for (struct memcg *c = m->plan.visited; c; c = c->plan.visited_next) {
		c->plan.share = 0;
		justified += c->plan.justified;
	}
	if (!w->phase.soft) {
		divide(w, m, ALL, pages);
	} else if (pages <= justified) {
		divide(w, m, JUSTIFIED, pages);
	} else {
		/* all of their own excess, and the rest of this group's from anyone below it */
		for (struct memcg *c = m->plan.visited; c; c = c->plan.visited_next)
			c->plan.share = c->plan.justified;
		divide(w, m, REST, pages - justified);
	}
	for (struct memcg *c = m->plan.visited; c; c = c->plan.visited_next)
		if (c->plan.share)
			hand_out(w, c, c->plan.share);
}

/* Of the VMs that a phase visits. */
struct gains {
	uint64_t sum;		       /* of what their caps would bring */
	const struct reclaim_vm *best; /* who has the largest part of its usage resident */
};

static void add_gains(const struct memcg *m, struct gains *gains)
{
	const struct reclaim_vm *vm = m->vm, *best = gains->best;

	if (!vm) {
		for (struct memcg *c = m->plan.visited; c; c = c->plan.visited_next)
			add_gains(c, gains);
		return;
	}
	if (!m->plan.capacity)
		return;
	gains->sum += gain_of(vm, m->plan.capacity);
	if (!best || pages_mul_div(vm->resident, PAGES_UNLIMITED, vm->usage) >
			     pages_mul_div(best->resident, PAGES_UNLIMITED, best->usage))
		gains->best = vm;
}

/*
 * The pages to ask for so that need is gained, and not a granule more. Of partly swapped VMs only
 * the resident part comes, and who of them will be asked how much is not known before: as much as
 * would bring it if all came from the most resident; the rest is asked for in another round. Each
 * share of the rounds before may hide part of a page, which the next may turn into a whole one.
 */
static uint64_t to_ask(const struct walk *w, uint64_t need)
{
	uint64_t hidden = w->plan->nr - w->first, most;
	struct gains gains = { 0 };

	if (!w->phase.swapped)
		return pages_round_up(need, w->granule);
	add_gains(w->root, &gains);
	if (!gains.best || need >= gains.sum + hidden)
		return w->root->plan.capacity;
	most = pages_mul_div(pages_sub(need, hidden), gains.best->usage, gains.best->resident);
	return pages_max(pages_round_down(most, w->granule), w->granule);
}

/* Least to inflate first, within a step. A shell sort: no allocation, and plans are short. */
static void order(struct reclaim_share *shares, size_t nr)
{
	for (size_t gap = nr / 2; gap; gap /= 2) {
		for (size_t i = gap; i < nr; i++) {
			struct reclaim_share s;
			size_t j = i;

			if (shares[i - gap].slack <= shares[i].slack)
				continue;
			s = shares[i];
			for (; j >= gap && shares[j - gap].slack > s.slack; j -= gap)
				shares[j] = shares[j - gap];
			shares[j] = s;
		}
	}
}

static void run(struct walk *w, const struct phase *phase, bool swapped)
{
	struct reclaim_plan *plan = w->plan;
	unsigned int rounds = swapped ? SWAPPED_ROUNDS : 1;
	uint64_t pages, most;

	w->phase = *phase;
	w->phase.swapped = swapped;
	w->first = plan->nr;
	w->need = plan->need - plan->gain;
	for (unsigned int i = 0; i < rounds && plan->gain < plan->need; i++) {
		gather(w, w->root, false);
		most = phase->soft ? w->root->plan.justified : w->root->plan.capacity;
		if (i == 0)
			w->capacity = most;
		pages = pages_min(to_ask(w, plan->need - plan->gain), most);
		if (!pages)
			break;
		hand_out(w, w->root, pages);
	}
	if (plan->nr > w->first) /* else there may be no shares at all */
		order(&plan->shares[w->first], plan->nr - w->first);
}

void reclaim(
	struct memcg *root, uint64_t need, uint64_t granule, bool commit, struct reclaim_plan *plan)
{
	struct walk w = {
		.root = root,
		.plan = plan,
		.granule = granule,
		.commit = commit,
		.stamp = ++root->tree->plan_stamp,
	};

	assert(granule);
	memcg_carry(root->tree);
	plan->nr = 0;
	plan->need = need;
	plan->gain = 0;
	plan->visited = 0;
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		if (plan->gain >= need)
			break;
		/* Nobody in excess: the soft steps are not started. */
		if (phases[i].soft && !root->excess && !root->nr_excess)
			continue;
		w.swapped_seen = false;
		run(&w, &phases[i], false);
		if (w.swapped_seen && plan->gain < need)
			run(&w, &phases[i], true);
	}
	plan->short_pages = pages_sub(need, plan->gain);
}
