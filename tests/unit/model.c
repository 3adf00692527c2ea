/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See model.h. Nothing here is fast, and nothing is meant to be. */
#include <config.h>

#include "tests/unit/model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct phase {
	unsigned int step;
	enum { COLD, DOUBTED, ACTIVE } what;
	bool below_low, swapped;
	enum { ANY, FREE, LIMITED } who;
};

/* The whole order of reclaim: four steps, and who and what comes first in each. */
static const struct phase phases[] = {
	{ 1, COLD, false, false, ANY },
	{ 1, COLD, false, true, ANY },
	{ 2, DOUBTED, false, false, ANY },
	{ 2, DOUBTED, false, true, ANY },
	{ 2, ACTIVE, false, false, ANY },
	{ 2, ACTIVE, false, true, ANY },
	{ 3, COLD, false, false, FREE },
	{ 3, COLD, false, true, FREE },
	{ 3, COLD, false, false, LIMITED },
	{ 3, COLD, false, true, LIMITED },
	{ 4, DOUBTED, false, false, ANY },
	{ 4, DOUBTED, false, true, ANY },
	{ 4, ACTIVE, false, false, ANY },
	{ 4, ACTIVE, false, true, ANY },
	{ 4, ACTIVE, true, false, ANY },
	{ 4, ACTIVE, true, true, ANY },
};
#define NR_PHASES (sizeof(phases) / sizeof(phases[0]))

struct judge {
	const struct model_tree *tree;
	int root;
	uint64_t granule;
	uint64_t seen[MODEL_NODES], owed[MODEL_NODES];
	uint64_t safe_min[MODEL_NODES], safe_low[MODEL_NODES]; /* effective protection */
	uint64_t budget[MODEL_NODES];			       /* of the excess, what is left */
	uint64_t taken[MODEL_NODES];			       /* of VMs, in all phases so far */
	/* of the phase at hand */
	uint64_t cap[MODEL_NODES];  /* of a VM, or all below a group */
	uint64_t just[MODEL_NODES]; /* of it, what goes first: excess asks for it, or it is cheap */
	uint64_t gave[MODEL_NODES]; /* what the plan takes there */
	uint64_t over[MODEL_NODES]; /* what is to go first still, after that */
	bool exact; /* nobody fell out of the sharing with a rest that would bring nothing */
};

static char wrong[512];

__attribute__((format(printf, 1, 2))) static const char *say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(wrong, sizeof(wrong), format, ap);
	va_end(ap);
	return wrong;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Whether n is root or anywhere below it. */
static bool below(const struct judge *j, int n, int root)
{
	for (; n >= 0; n = j->tree->nodes[n].parent) {
		if (n == root)
			return true;
	}
	return false;
}

static uint64_t excess(const struct judge *j, int n)
{
	if (j->tree->nodes[n].soft == MODEL_NONE)
		return 0;
	return less(less(j->seen[n], j->owed[n]), j->tree->nodes[n].soft);
}

/* Test self, climb, stop at the root, never look above it. */
static bool in_excess(const struct judge *j, int n)
{
	for (;; n = j->tree->nodes[n].parent) {
		if (excess(j, n) > 0)
			return true;
		if (n == j->root)
			return false;
	}
}

static bool limit_set(const struct judge *j, int n)
{
	for (;; n = j->tree->nodes[n].parent) {
		if (j->tree->nodes[n].soft != MODEL_NONE)
			return true;
		if (n == j->root)
			return false;
	}
}

/*
 * Of what protection (min or low) holds for n, a child of p: the kernel's effective_protection()
 * with memory_recursiveprot. has: what holds for p.
 */
static uint64_t protection(const struct judge *j, int n, int p, bool low, uint64_t has)
{
	uint64_t claims = 0, claim = 0;
	unsigned __int128 product;

	for (int c = 0; c < j->tree->nr; c++) {
		const struct model_node *node = &j->tree->nodes[c];
		uint64_t knob = low ? node->low : node->min;

		if (node->parent != p)
			continue;
		claims += smaller(knob, j->seen[c]);
		if (c == n)
			claim = smaller(knob, j->seen[c]);
	}
	if (p == j->root)
		return claim; /* against its own root's reclaim the root's word is not asked */
	if (claims > has) {
		product = (unsigned __int128)claim * has;
		return (uint64_t)(product / claims);
	}
	if (j->seen[p] <= claims)
		return claim;
	product = (unsigned __int128)(has - claims) * (j->seen[n] - claim);
	return claim + (uint64_t)(product / (j->seen[p] - claims));
}

static void set_up(struct judge *j)
{
	const struct model_tree *tree = j->tree;

	for (int n = 0; n < tree->nr; n++) {
		for (int v = 0; v < tree->nr; v++) {
			if (tree->nodes[v].vm && below(j, v, n)) {
				j->seen[n] += tree->nodes[v].seen;
				j->owed[n] += tree->nodes[v].owed;
			}
		}
	}
	for (int n = 0; n < tree->nr; n++) {
		int p = tree->nodes[n].parent;

		j->budget[n] = excess(j, n);
		if (n == j->root || !below(j, n, j->root))
			continue;
		j->safe_min[n] = protection(j, n, p, false, j->safe_min[p]);
		j->safe_low[n] = protection(j, n, p, true, j->safe_low[p]);
	}
}

static uint64_t usage(const struct model_node *node)
{
	return node->seen - node->owed;
}

static uint64_t gain_of(const struct model_node *node, uint64_t pages)
{
	unsigned __int128 product = (unsigned __int128)pages * node->resident;

	return pages > 0 ? (uint64_t)(product / usage(node)) : 0;
}

/* What the VM must be left with in the phase. */
static uint64_t bound(const struct judge *j, const struct phase *phase, int n)
{
	uint64_t bound = j->tree->nodes[n].keep;

	if (j->safe_min[n] > bound)
		bound = j->safe_min[n];
	if (!phase->below_low && j->safe_low[n] > bound)
		bound = j->safe_low[n];
	return bound;
}

static uint64_t vm_cap(const struct judge *j, const struct phase *phase, int n)
{
	const struct model_node *node = &j->tree->nodes[n];
	uint64_t cap = less(usage(node), bound(j, phase, n));

	if (node->held || node->resident == 0)
		return 0;
	if (phase->who != ANY && limit_set(j, n) != (phase->who == LIMITED))
		return 0;
	if (phase->swapped != (node->resident < usage(node)))
		return 0;
	if (phase->what == DOUBTED && node->doubted == 0)
		return 0;
	if (phase->what == COLD)
		cap = smaller(cap, node->cold);
	if (phase->what == DOUBTED)
		cap = smaller(cap, node->cold + node->doubted);
	cap = less(smaller(cap, node->at_most), j->taken[n]) / j->granule * j->granule;
	return gain_of(node, cap) > 0 ? cap : 0; /* what brings nothing is not asked */
}

static int depth(const struct judge *j, int n)
{
	int depth = 0;

	for (; j->tree->nodes[n].parent >= 0; n = j->tree->nodes[n].parent)
		depth++;
	return depth;
}

/*
 * What excess asks for: the deepest groups first, each spends its budget a granule at a time on
 * whoever below it has something left, and every granule lowers the budget of everyone above.
 */
static void justify(struct judge *j)
{
	uint64_t left[MODEL_NODES], budget[MODEL_NODES], got[MODEL_NODES] = { 0 };

	memcpy(left, j->cap, sizeof(left));
	memcpy(budget, j->budget, sizeof(budget));
	for (int d = MODEL_NODES; d >= 0; d--) {
		for (int n = 0; n < j->tree->nr; n++) {
			if (depth(j, n) != d || !below(j, n, j->root))
				continue;
			for (int v = 0; v < j->tree->nr && budget[n] >= j->granule;) {
				if (!j->tree->nodes[v].vm || !below(j, v, n) || left[v] == 0) {
					v++;
					continue;
				}
				left[v] -= j->granule;
				for (int a = v;; a = j->tree->nodes[a].parent) {
					budget[a] = less(budget[a], j->granule);
					got[a] += j->granule;
					if (a == j->root)
						break;
				}
			}
			j->just[n] = got[n];
		}
	}
}

/* Whether it is a guess what is cold, or less than is to be inflated, and the phase cares. */
static bool dear(const struct judge *j, const struct phase *phase, int v)
{
	const struct model_node *node = &j->tree->nodes[v];

	return phase->step == 3 && !phase->swapped && (!node->told || node->slack > j->cap[v]);
}

/* Caps of the phase, and what of them goes first; in the soft steps no more than that is taken. */
static void weigh(struct judge *j, const struct phase *phase)
{
	memset(j->cap, 0, sizeof(j->cap));
	memset(j->just, 0, sizeof(j->just));
	for (int v = 0; v < j->tree->nr; v++) {
		if (!j->tree->nodes[v].vm || !below(j, v, j->root))
			continue;
		j->cap[v] = vm_cap(j, phase, v);
		j->just[v] = dear(j, phase, v) ? 0 : j->cap[v];
		for (int a = v; a != j->root;) {
			a = j->tree->nodes[a].parent;
			j->cap[a] += j->cap[v];
			j->just[a] += j->just[v];
		}
	}
	if (phase->step <= 2)
		justify(j);
}

static bool of_phase(const struct judge *j, const struct phase *phase, const struct model_share *s)
{
	const struct model_node *node = &j->tree->nodes[s->node];

	return s->step == phase->step && s->below_low == phase->below_low &&
	       s->doubted == (phase->what == DOUBTED) &&
	       (node->resident < usage(node)) == phase->swapped &&
	       (phase->who == ANY || limit_set(j, s->node) == (phase->who == LIMITED));
}

/* |got - base - whole * part / parts| within slack granules. */
static bool in_proportion(uint64_t got, uint64_t base, uint64_t whole, uint64_t part,
	uint64_t parts, unsigned int slack, uint64_t granule)
{
	double fair = parts ? (double)whole * (double)part / (double)parts : 0;
	double off = (double)got - (double)base - fair;

	return (off < 0 ? -off : off) <= (double)slack * (double)granule;
}

/* How what p gave is shared by its children. */
static const char *judge_children(
	const struct judge *j, const struct phase *phase, int p, unsigned int slack)
{
	uint64_t just = 0, rest = 0;
	bool beyond = false, behind = false;

	for (int c = 0; c < j->tree->nr; c++) {
		if (j->tree->nodes[c].parent != p)
			continue;
		just += j->just[c];
		rest += j->cap[c] - j->just[c];
		beyond |= j->gave[c] > j->just[c];
		behind |= j->gave[c] < j->just[c] && j->over[c] > 0;
	}
	if (beyond && behind)
		return say("step %u: below node %d one gives more than goes first while another "
			   "has not given all of that",
			phase->step, p);
	for (int c = 0; c < j->tree->nr && j->exact; c++) {
		bool ok;

		if (j->tree->nodes[c].parent != p)
			continue;
		if (j->gave[p] <= just)
			ok = in_proportion(
				j->gave[c], 0, j->gave[p], j->just[c], just, slack, j->granule);
		else
			ok = in_proportion(j->gave[c], j->just[c], j->gave[p] - just,
				j->cap[c] - j->just[c], rest, slack, j->granule);
		if (!ok)
			return say("step %u: node %d gives %" PRIu64 " of %" PRIu64 " (may %" PRIu64
				   ", first %" PRIu64 "; all: %" PRIu64 ", first %" PRIu64
				   "): not its share",
				phase->step, c, j->gave[c], j->gave[p], j->cap[c], j->just[c],
				just + rest, just);
	}
	return NULL;
}

static const char *judge_vm(const struct judge *j, const struct phase *phase, int v)
{
	bool asked = false;

	if (j->gave[v] == 0)
		return NULL;
	if (j->gave[v] > j->cap[v])
		return say("step %u: VM %d gives %" PRIu64 ", may %" PRIu64, phase->step, v,
			j->gave[v], j->cap[v]);
	if (j->gave[v] % j->granule != 0)
		return say("step %u: VM %d gives no whole granules", phase->step, v);
	if (phase->step > 2)
		return NULL;
	if (!in_excess(j, v))
		return say("step %u: VM %d gives and nobody up to the root is in excess",
			phase->step, v);
	/* Below its own limit only on an ancestor's budget that is not spent. */
	for (int a = v;; a = j->tree->nodes[a].parent) {
		asked |= j->budget[a] >= j->granule;
		if (a == j->root)
			break;
	}
	return asked ? NULL : say("step %u: VM %d gives and every budget is spent", phase->step, v);
}

/* One phase, with *need still to be gained; lowers it. */
static const char *judge_phase(struct judge *j, const struct phase *phase,
	const struct model_plan *plan, uint64_t *need, unsigned int slack)
{
	uint64_t gain = 0, most, whole = (*need + j->granule - 1) / j->granule * j->granule;
	const char *bad = NULL;
	struct judge after;

	weigh(j, phase);
	most = phase->step <= 2 ? j->just[j->root] : j->cap[j->root];
	memset(j->gave, 0, sizeof(j->gave));
	for (size_t i = 0; i < plan->nr; i++) {
		const struct model_share *s = &plan->shares[i];

		if (!of_phase(j, phase, s))
			continue;
		if (j->gave[s->node] > 0)
			return say("step %u: VM %d gives twice", phase->step, s->node);
		if (s->gain != gain_of(&j->tree->nodes[s->node], s->pages))
			return say(
				"step %u: VM %d gains not what is resident", phase->step, s->node);
		gain += s->gain;
		for (int a = s->node;; a = j->tree->nodes[a].parent) {
			j->gave[a] += s->pages;
			if (a == j->root)
				break;
		}
	}

	after = *j;
	for (int n = 0; n < j->tree->nr; n++) {
		after.budget[n] = less(j->budget[n], j->gave[n]);
		after.taken[n] += j->gave[n];
	}
	weigh(&after, phase);
	for (int n = 0; n < j->tree->nr; n++)
		j->over[n] = phase->step <= 2 ? after.just[n] : less(j->just[n], j->gave[n]);
	j->exact = true;
	for (int v = 0; v < j->tree->nr; v++) {
		if (j->tree->nodes[v].vm && j->gave[v] < j->cap[v] && after.cap[v] == 0)
			j->exact = false;
	}

	/* Partly swapped VMs are asked in rounds, each of which rounds. */
	for (int n = 0; n < j->tree->nr && !bad; n++) {
		if (!below(j, n, j->root))
			continue;
		bad = j->tree->nodes[n].vm
			      ? judge_vm(j, phase, n)
			      : judge_children(j, phase, n, phase->swapped ? 2 * slack : slack);
	}
	if (bad)
		return bad;
	if (phase->swapped ? gain < *need && after.just[j->root] > 0
			   : j->gave[j->root] != smaller(whole, most))
		return say("step %u%s: brings %" PRIu64 " (gain %" PRIu64 "), needed are %" PRIu64
			   ", it could bring %" PRIu64,
			phase->step, phase->swapped ? ", swapped" : "", j->gave[j->root], gain,
			*need, most);

	memcpy(j->budget, after.budget, sizeof(j->budget));
	memcpy(j->taken, after.taken, sizeof(j->taken));
	*need = less(*need, gain);
	return NULL;
}

/* The sentences that hold for a plan as a whole. */
static const char *judge_whole(
	struct judge *j, const struct model_plan *plan, uint64_t need, uint64_t left)
{
	uint64_t gain = 0;
	unsigned int step = 1;

	for (size_t i = 0; i < plan->nr; i++) {
		const struct model_share *s = &plan->shares[i];

		if (s->step < step || s->step > 4 || s->pages == 0)
			return say("share %zu is out of order, or empty", i);
		if (!j->tree->nodes[s->node].vm || !below(j, s->node, j->root))
			return say("share %zu is nobody's below the root", i);
		step = s->step;
		gain += s->gain;
	}
	if (gain != plan->gain)
		return say("gain is %" PRIu64 ", the shares say %" PRIu64, plan->gain, gain);
	if (gain >= need + j->granule)
		return say("gain %" PRIu64 " is a granule or more over %" PRIu64, gain, need);
	if (plan->short_pages != less(need, gain) || plan->short_pages != left)
		return say("short is %" PRIu64 ", should be %" PRIu64, plan->short_pages, left);
	if (left == 0)
		return NULL;
	for (int v = 0; v < j->tree->nr; v++) {
		const struct phase last = phases[NR_PHASES - 1];
		struct phase phase = last;

		if (!j->tree->nodes[v].vm || !below(j, v, j->root))
			continue;
		phase.swapped = j->tree->nodes[v].resident < usage(&j->tree->nodes[v]);
		if (vm_cap(j, &phase, v) > 0)
			return say("short, and VM %d has something left", v);
	}
	return NULL;
}

/* Soft limits outrank everything: while one in excess can give, nobody else does. */
static const char *judge_promise(struct judge *j, const struct model_plan *plan)
{
	const struct phase soft[] = { phases[4], phases[5] };
	size_t hard = 0;

	for (size_t i = 0; i < plan->nr; i++)
		hard += plan->shares[i].step > 2;
	for (size_t i = 0; hard > 0 && i < 2; i++) {
		weigh(j, &soft[i]);
		if (j->just[j->root] > 0)
			return say("others give while excess at %" PRIu64 " pages remains",
				j->just[j->root]);
	}
	return NULL;
}

const char *model_judge(const struct model_tree *tree, int root, uint64_t need, uint64_t granule,
	const struct model_plan *plan, unsigned int slack)
{
	struct judge judge = { .tree = tree, .root = root, .granule = granule };
	uint64_t left = need;
	const char *bad = NULL;

	set_up(&judge);
	for (size_t i = 0; i < NR_PHASES && !bad; i++) {
		bad = judge_phase(&judge, &phases[i], plan, &left, slack);
		if (!bad && phases[i].step == 2 && phases[i].what == ACTIVE && phases[i].swapped)
			bad = judge_promise(&judge, plan);
	}
	return bad ? bad : judge_whole(&judge, plan, need, left);
}
