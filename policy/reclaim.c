/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One step is one or more phases (who is meant, and whether of them the fully resident or the
 * partly swapped). A phase goes over the same groups three times: down, level by level, it finds
 * them; up it adds what each subtree may give; down it hands out what each shall give.
 *
 * Why not one walk from parents to children and back: it waits for the memory of each group, then
 * for that of the next. Here the groups stand in a row, so that those to come are known, and are
 * fetched, before it is their turn (ahead.h); and what is reckoned with stands in that row, too.
 */
#include <config.h>

#include "policy/reclaim.h"

#include <assert.h>
#include <string.h>

#include "policy/ahead.h"
#include "policy/order.h"

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
	bool doubted;	   /* only what is active by a guest's own word */
	bool below_low;
	enum { ANYBODY, WITHOUT_LIMIT, UNDER_LIMIT } who;
	bool cheap_first;
	bool swapped; /* the partly swapped, else the fully resident */
};

static const struct phase phases[] = {
	{ .step = 1, .soft = true },
	{ .step = 2, .soft = true, .doubted = true },
	{ .step = 2, .soft = true, .active = true },
	{ .step = 3, .who = WITHOUT_LIMIT, .cheap_first = true },
	{ .step = 3, .who = UNDER_LIMIT, .cheap_first = true },
	{ .step = 4, .doubted = true },
	{ .step = 4, .active = true },
	{ .step = 4, .active = true, .below_low = true },
};

struct walk {
	struct memcg *root;
	struct reclaim_plan *plan;
	uint64_t granule, stamp;
	bool commit;
	struct phase phase;
	struct memcg_visit *visits; /* of this round; the root's is the first */
	size_t nr;
	bool swapped_seen;	 /* somebody partly swapped was passed over */
	bool doubted_seen;	 /* of somebody only its own word says what is active */
	size_t first;		 /* share of the phase */
	uint64_t need, capacity; /* of the phase, for the reasons ... */
	uint64_t before;	 /* ... of capacity, what goes before the rest */
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
	memcpy(m->plan.carry, memcg_carries(m, w->root->level), sizeof(m->plan.carry));
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
		most = pages_min(most, vm->cold + (w->phase.doubted ? vm->doubted : 0));
	most = pages_min(most, vm->at_most);
	return pages_round_down(pages_sub(most, m->plan.taken), w->granule);
}

/* What the host is expected to gain by pages of the VM's usage. */
static uint64_t gain_of(const struct reclaim_vm *vm, uint64_t pages)
{
	return pages_gain(pages, vm->resident, vm->usage);
}

/*
 * Its balloon brings at least as much as it has to inflate before anything comes, and that it is
 * not missed is no guess: of a guess nobody is to give more than its share.
 */
static bool cheap(const struct walk *w, const struct memcg_visit *v)
{
	const struct reclaim_vm *vm = v->memcg->vm;

	return w->phase.swapped || (vm->told && v->capacity >= vm->slack);
}

/* Of what it may give, what goes first: by its excess, or as it is the cheaper to have. */
static uint64_t justified(const struct walk *w, const struct memcg_visit *v)
{
	if (w->phase.soft)
		return pages_min(v->capacity, pages_round_down(v->memcg->plan.budget, w->granule));
	return !w->phase.cheap_first || cheap(w, v) ? v->capacity : 0;
}

static void gather_vm(struct walk *w, struct memcg_visit *v)
{
	const struct memcg *m = v->memcg;
	const struct reclaim_vm *vm = m->vm;
	bool limited;

	if (m->offline || vm->hold != RECLAIM_HOLD_NONE || !vm->resident)
		return;
	if (w->phase.who != ANYBODY) {
		limited = memcg_limit_set(m, w->root);
		if (limited != (w->phase.who == UNDER_LIMIT))
			return;
	}
	w->doubted_seen |= vm->doubted > 0;
	if (w->phase.doubted && !vm->doubted)
		return;
	if ((vm->resident < vm->usage) != w->phase.swapped) {
		w->swapped_seen |= !w->phase.swapped;
		return;
	}
	v->capacity = capacity_of(w, m);
	if (!gain_of(vm, v->capacity)) /* all of it is swapped out: to ask would only harm */
		v->capacity = 0;
	v->justified = justified(w, v);
}

static void add_visit(struct walk *w, struct memcg *m, bool covered)
{
	w->visits[w->nr++] = (struct memcg_visit){ .memcg = m, .covered = covered };
}

/* Who comes last in the tree is first in the row. */
static void turn_round(struct memcg_visit *first, size_t nr)
{
	for (size_t i = 0; i < nr / 2; i++) {
		struct memcg_visit v = first[i];

		first[i] = first[nr - 1 - i];
		first[nr - 1 - i] = v;
	}
}

static void gather_group(struct walk *w, struct memcg_visit *v)
{
	struct memcg *m = v->memcg;

	/* covered: its own or an ancestor's excess asks for pages from anyone below it. */
	v->justified = w->phase.soft ? pages_round_down(m->plan.budget, w->granule) : 0;
	v->covered |= v->justified > 0;
	v->first = (uint32_t)w->nr;
	switch (w->phase.soft ? memcg_soft_reclaim_eligible(m, v->covered) : MEMCG_VISIT) {
	case MEMCG_VISIT:
		memcg_for_each_child (c, m)
			add_visit(w, c, v->covered);
		break;
	case MEMCG_SKIP:
		for (struct memcg *c = m->excess_children; c; c = c->excess_next)
			add_visit(w, c, false);
		break;
	case MEMCG_SKIP_TREE:
		break;
	}
	v->nr = (uint32_t)w->nr - v->first;
	turn_round(&w->visits[v->first], v->nr);
}

/* What the visits some rounds from now will meet; the nearer ones' children, too. */
static void gather_ahead(const struct walk *w, size_t i)
{
	const struct memcg *m;

	if (i + 2 * AHEAD_ROUNDS < w->nr)
		memcg_plan_ahead(w->visits[i + 2 * AHEAD_ROUNDS].memcg);
	if (i + AHEAD_ROUNDS < w->nr) {
		m = w->visits[i + AHEAD_ROUNDS].memcg;
		ahead(m->vm, 0, 0);
		ahead(m->excess_children, 2, 2);
	}
}

/* What a group's children may give; those who may give nothing are visited no further. */
static void add_up(struct walk *w, struct memcg_visit *v)
{
	struct memcg_visit *first = &w->visits[v->first];
	uint64_t own = v->justified, justified = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < v->nr; i++) {
		if (!first[i].capacity)
			continue;
		v->capacity += first[i].capacity;
		justified += first[i].justified;
		if (kept != i)
			first[kept] = first[i];
		kept++;
	}
	v->nr = kept;
	v->justified = pages_min(v->capacity, pages_max(own, justified));
}

static void gather(struct walk *w)
{
	w->nr = 0;
	add_visit(w, w->root, false);
	for (size_t i = 0; i < w->nr; i++) {
		struct memcg_visit *v = &w->visits[i];

		gather_ahead(w, i);
		enter(w, v->memcg);
		if (v->memcg->vm)
			gather_vm(w, v);
		else
			gather_group(w, v);
	}
	w->plan->visited += w->nr;
	for (size_t i = w->nr; i; i--)
		add_up(w, &w->visits[i - 1]); /* of a VM nothing changes */
}

/* The VM's share in this phase; a new one where it has none. */
static struct reclaim_share *share_of(struct walk *w, const struct memcg_visit *v)
{
	struct memcg *m = v->memcg;
	struct reclaim_plan *plan = w->plan;
	struct reclaim_share *s;
	bool rest = !w->phase.soft && !v->justified;

	if (m->plan.entry >= w->first && m->plan.entry < plan->nr &&
		plan->shares[m->plan.entry].memcg == m)
		return &plan->shares[m->plan.entry];
	assert(plan->nr < plan->nr_max);
	m->plan.entry = plan->nr;
	s = &plan->shares[plan->nr++];
	*s = (struct reclaim_share){
		.memcg = m,
		.step = w->phase.step,
		.doubted = w->phase.doubted,
		.below_low = w->phase.below_low,
		.cap = v->capacity,
		.step_need = rest ? w->need - w->before : w->need,
		.step_cap = rest ? w->capacity - w->before : w->before,
		.bound = PAGES_UNLIMITED,
		.slack = m->vm->slack,
	};
	return s;
}

static void take(struct walk *w, const struct memcg_visit *v)
{
	struct memcg *m = v->memcg;
	struct reclaim_share *s = share_of(w, v);
	uint64_t pages = v->share, bound = keep_of(w, m);

	if (w->phase.soft && m->knobs.soft_limit != PAGES_UNLIMITED && pages <= m->plan.budget)
		bound = pages_max(bound, m->knobs.soft_limit);
	s->bound = pages_min(s->bound, bound);
	w->plan->gain -= s->gain;
	s->pages += pages;
	s->gain = gain_of(m->vm, s->pages);
	w->plan->gain += s->gain;
	m->plan.taken += pages;
	m->plan.budget = pages_sub(m->plan.budget, pages);
}

/* What of a child one division is about. */
enum part { JUSTIFIED, REST };

static uint64_t weight(const struct memcg_visit *v, enum part part)
{
	return part == JUSTIFIED ? v->justified : v->capacity - v->justified;
}

static int64_t carry_of(const struct walk *w, const struct memcg *m)
{
	return m->plan.carry[w->phase.step - 1];
}

static void set_carry(struct walk *w, struct memcg *m, int64_t carry)
{
	m->plan.carry[w->phase.step - 1] = carry;
	if (w->commit)
		memcg_carries(m, w->root->level)[w->phase.step - 1] = carry;
}

static void set_position(struct walk *w, struct memcg *m, uint64_t id)
{
	m->plan.position = id;
	if (w->commit)
		m->position = id;
}

/* The visited child at the shared position, else the first. */
static uint32_t position_of(const struct walk *w, const struct memcg_visit *v)
{
	uint64_t id = v->memcg->plan.position;

	for (uint32_t i = 0; id && i < v->nr; i++)
		if (w->visits[v->first + i].memcg->id == id)
			return i;
	return 0;
}

/* One granule more (sign 1) or less (-1) for a child, if it may have it. */
static bool nudge(const struct walk *w, struct memcg_visit *c, enum part part, int sign)
{
	bool room = sign > 0 ? c->part + w->granule <= weight(c, part) : c->part >= w->granule;

	if (!room)
		return false;
	c->part = sign > 0 ? c->part + w->granule : c->part - w->granule;
	c->due -= sign * (int64_t)w->granule;
	return true;
}

/*
 * What rounding left over (rest > 0) or handed out too much (rest < 0), a granule each, going round
 * from the shared position: in the first round those to whom the division owes it, then anyone.
 * The weights cover the whole, so every later round but the last places at least one granule.
 */
static void go_round(struct walk *w, const struct memcg_visit *v, enum part part, int64_t rest)
{
	struct memcg_visit *first = &w->visits[v->first];
	int sign = rest > 0 ? 1 : -1;
	uint64_t left = (uint64_t)(rest * sign) / w->granule, before;
	uint32_t start, i, next;

	if (!left)
		return;
	start = position_of(w, v);
	for (unsigned int round = 0; left; round++) {
		before = left;
		i = start;
		do {
			next = i + 1 < v->nr ? i + 1 : 0;
			if ((round || first[i].due * sign > 0) && nudge(w, &first[i], part, sign)) {
				left--;
				set_position(w, v->memcg, next ? first[next].memcg->id : 0);
			}
			i = next;
		} while (left && i != start);
		assert(!round || left < before);
	}
}

/* What is owed to a child of sum by its weight, and from before. */
static void set_due(
	struct walk *w, struct memcg_visit *c, uint64_t pages, uint64_t own_weight, uint64_t sum)
{
	uint64_t over = pages_mul_mod(pages, own_weight, sum);
	int64_t carry = carry_of(w, c->memcg) + (int64_t)pages_mul_div(over, MEMCG_CARRY_PAGE, sum);

	c->due = (int64_t)pages_mul_div(pages, own_weight, sum) + carry / MEMCG_CARRY_PAGE;
	c->due_parts = (int32_t)(carry % MEMCG_CARRY_PAGE);
}

static void carry_due(struct walk *w, const struct memcg_visit *c)
{
	int64_t granule = (int64_t)w->granule, due = c->due;

	due = due > granule ? granule : due < -granule ? -granule : due;
	set_carry(w, c->memcg, due * MEMCG_CARRY_PAGE + c->due_parts);
}

/*
 * Groups are divided in the order of the row, so that the children of the next group stand behind
 * those of this one.
 */
static void divide_ahead(const struct walk *w, const struct memcg_visit *c)
{
	if (c + AHEAD_ROUNDS < w->visits + w->nr)
		memcg_plan_ahead(c[AHEAD_ROUNDS].memcg);
}

/* Adds to every visited child's share its part of pages, which the children's weights cover. */
static void divide(struct walk *w, const struct memcg_visit *v, enum part part, uint64_t pages)
{
	struct memcg_visit *first = &w->visits[v->first], *end = first + v->nr;
	int64_t rest = (int64_t)pages;
	uint64_t sum = 0, give;

	for (struct memcg_visit *c = first; c < end; c++)
		sum += weight(c, part);
	assert(pages <= sum);
	for (struct memcg_visit *c = first; c < end; c++) {
		divide_ahead(w, c);
		c->part = 0;
		c->due = 0;
		if (!weight(c, part))
			continue;
		set_due(w, c, pages, weight(c, part), sum);
		give = c->due > 0 ? (uint64_t)c->due : 0;
		give = pages_round_down(give + w->granule / 2, w->granule);
		give = pages_min(give, weight(c, part));
		c->part = give;
		c->due -= (int64_t)give;
		rest -= (int64_t)give;
	}
	go_round(w, v, part, rest);
	for (struct memcg_visit *c = first; c < end; c++) {
		c->share += c->part;
		if (weight(c, part))
			carry_due(w, c);
	}
}

/* The group's share to its children: every page taken lowers the budget of each ancestor. */
static void hand_down(struct walk *w, const struct memcg_visit *v)
{
	struct memcg_visit *first = &w->visits[v->first], *end = first + v->nr;
	struct memcg *m = v->memcg;
	uint64_t justified = 0;

	m->plan.budget = pages_sub(m->plan.budget, v->share);
	for (const struct memcg_visit *c = first; c < end; c++)
		justified += c->justified;
	if (v->share <= justified) {
		divide(w, v, JUSTIFIED, v->share);
		return;
	}
	/*
	 * All of their own excess, and the rest of this group's from anyone below it; or all that
	 * is cheap to have, and the rest of what is needed from the others.
	 */
	for (struct memcg_visit *c = first; c < end; c++)
		c->share = c->justified;
	divide(w, v, REST, v->share - justified);
}

/*
 * Those who are to give, in the order of the tree, not of the row: who is asked first is told
 * first. Links each to the next, in ->first, which a VM has no other use for; the last one to 0.
 */
static struct memcg_visit *link_takers(
	struct walk *w, struct memcg_visit *v, struct memcg_visit *last)
{
	struct memcg_visit *first = &w->visits[v->first];

	if (!v->nr) {
		last->first = (uint32_t)(v - w->visits);
		return v;
	}
	for (uint32_t i = 0; i < v->nr; i++)
		if (first[i].share)
			last = link_takers(w, &first[i], last);
	return last;
}

/* The next one's memory is asked for some rounds before it is its turn, by who runs ahead. */
static void take_all(struct walk *w)
{
	struct memcg_visit begin = { .first = 0 }, *root = &w->visits[0];
	uint32_t at, far;

	if (!root->nr) { /* a VM alone */
		take(w, root);
		return;
	}
	link_takers(w, root, &begin)->first = 0;
	at = far = begin.first;
	for (size_t i = 0; at; i++) {
		if (far) {
			memcg_plan_ahead(w->visits[far].memcg);
			far = w->visits[far].first;
		}
		if (i < AHEAD_ROUNDS)
			continue;
		take(w, &w->visits[at]);
		at = w->visits[at].first;
	}
}

static void hand_out(struct walk *w, uint64_t pages)
{
	w->visits[0].share = pages;
	for (size_t i = 0; i < w->nr; i++)
		if (w->visits[i].share && w->visits[i].nr)
			hand_down(w, &w->visits[i]);
	take_all(w);
}

/* Of the VMs that a phase visits. */
struct gains {
	uint64_t sum;		       /* of what their caps would bring */
	const struct reclaim_vm *best; /* who has the largest part of its usage resident */
};

static void add_gains(const struct walk *w, const struct memcg_visit *v, struct gains *gains)
{
	const struct reclaim_vm *vm = v->memcg->vm, *best = gains->best;

	for (uint32_t i = 0; i < v->nr; i++)
		add_gains(w, &w->visits[v->first + i], gains);
	if (!vm || !v->capacity)
		return;
	gains->sum += gain_of(vm, v->capacity);
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
	add_gains(w, &w->visits[0], &gains);
	if (!gains.best || need >= gains.sum + hidden)
		return w->visits[0].capacity;
	most = pages_mul_div(pages_sub(need, hidden), gains.best->usage, gains.best->resident);
	return pages_max(pages_round_down(most, w->granule), w->granule);
}

/* Of struct reclaim_share. */
static bool has_less_to_inflate(const void *one, const void *other)
{
	const struct reclaim_share *a = one, *b = other;

	return a->slack < b->slack;
}

/* Least to inflate first, within a step. */
static void order_shares(struct reclaim_share *shares, size_t nr)
{
	struct reclaim_share spare;

	order(shares, nr, sizeof(spare), &spare, has_less_to_inflate);
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
		gather(w);
		most = phase->soft ? w->visits[0].justified : w->visits[0].capacity;
		if (i == 0) {
			w->capacity = most;
			w->before = w->visits[0].justified;
		}
		pages = pages_min(to_ask(w, plan->need - plan->gain), most);
		if (!pages)
			break;
		hand_out(w, pages);
	}
	if (plan->nr > w->first) /* else there may be no shares at all */
		order_shares(&plan->shares[w->first], plan->nr - w->first);
}

void reclaim(
	struct memcg *root, uint64_t need, uint64_t granule, bool commit, struct reclaim_plan *plan)
{
	struct walk w = {
		.root = root,
		.plan = plan,
		.granule = granule,
		.commit = commit,
		.visits = root->tree->visits,
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
		if (phases[i].soft &&
			(root->tree->no_soft_pass || (!root->excess && !root->nr_excess)))
			continue;
		if (phases[i].doubted && !w.doubted_seen)
			continue;
		w.swapped_seen = false;
		run(&w, &phases[i], false);
		if (w.swapped_seen && plan->gain < need)
			run(&w, &phases[i], true);
	}
	plan->short_pages = pages_sub(need, plan->gain);
}
