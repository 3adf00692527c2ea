/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * reclaim against the model (model.h): on random trees and needs, on every small tree, and on the
 * example that the soft limit's semantics were argued with.
 */
#include <config.h>

#include "tests/unit/model.h"
#include "tests/unit/draw.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "policy/reclaim.h"

#define RANDOM_TREES 10000
#define NR_SHARES    (RECLAIM_SHARES * MODEL_NODES)
/* Off its proportion by at most: the rounding of two divisions; and a granule of carry each. */
#define SLACK	    2
#define SLACK_CARRY 4

/* ---- the engine's tree of a model's ---- */

static struct memcg_tree *tree;
static struct memcg *groups[MODEL_NODES];
static struct reclaim_vm vms[MODEL_NODES];
static struct reclaim_share shares[NR_SHARES];

static void build(const struct model_tree *model)
{
	ck_assert_int_eq(memcg_tree_new(&tree), 0);
	groups[0] = tree->root;
	for (int n = 1; n < model->nr; n++)
		ck_assert_int_eq(memcg_new(tree, groups[model->nodes[n].parent],
					 MEMCG_ROOT_ID + (uint64_t)n, &groups[n]),
			0);
	for (int n = 0; n < model->nr; n++) {
		const struct model_node *node = &model->nodes[n];
		struct memcg_knobs knobs = MEMCG_KNOBS_NONE;

		knobs.min = node->min;
		knobs.low = node->low;
		if (node->soft != MODEL_NONE)
			knobs.soft_limit = node->soft;
		ck_assert_int_eq(memcg_set_knobs(groups[n], &knobs), 0);
		if (!node->vm)
			continue;
		vms[n] = (struct reclaim_vm){
			.hold = node->held ? RECLAIM_HOLD_STATE : RECLAIM_HOLD_NONE,
			.usage = node->seen - node->owed,
			.resident = node->resident,
			.cold = node->cold,
			.doubted = (uint32_t)node->doubted,
			.keep = node->keep,
			.at_most = node->at_most,
			.slack = node->slack,
			.told = node->told,
		};
		groups[n]->vm = &vms[n];
		memcg_see(groups[n], node->seen);
		memcg_owe(groups[n], (int64_t)node->owed, 0);
	}
}

static void teardown(void)
{
	memcg_tree_free(tree);
	tree = NULL;
}

static int node_of(const struct memcg *memcg)
{
	return (int)(memcg->id - MEMCG_ROOT_ID);
}

static struct reclaim_plan run(int root, uint64_t need, uint64_t granule, bool commit)
{
	struct reclaim_plan plan = { .shares = shares, .nr_max = NR_SHARES };

	reclaim(groups[root], need, granule, commit, &plan);
	return plan;
}

static const char *judge(const struct model_tree *model, int root, uint64_t need, uint64_t granule,
	const struct reclaim_plan *plan, unsigned int slack)
{
	struct model_share copies[NR_SHARES];
	const struct model_plan copy = { copies, plan->nr, plan->gain, plan->short_pages };

	for (size_t i = 0; i < plan->nr; i++)
		copies[i] = (struct model_share){ node_of(plan->shares[i].memcg),
			plan->shares[i].step, plan->shares[i].doubted, plan->shares[i].below_low,
			plan->shares[i].pages, plan->shares[i].gain };
	return model_judge(model, root, need, granule, &copy, slack);
}

static void print(const struct model_tree *model)
{
	for (int n = 0; n < model->nr; n++) {
		const struct model_node *m = &model->nodes[n];

		fprintf(stderr,
			"# %d: parent %d%s soft %" PRId64 " min %" PRIu64 " low %" PRIu64
			" seen %" PRIu64 " owed %" PRIu64 " resident %" PRIu64 " cold %" PRIu64
			" doubted %" PRIu64 " keep %" PRIu64 " at_most %" PRIu64 " slack %" PRIu64
			"%s%s\n",
			n, m->parent, m->vm ? " VM" : "", (int64_t)m->soft, m->min, m->low, m->seen,
			m->owed, m->resident, m->cold, m->doubted, m->keep, m->at_most, m->slack,
			m->told ? " told" : "", m->held ? " held" : "");
	}
}

/* Plans once without and once with commit, and has both judged. */
static void check_plan(const struct model_tree *model, int root, uint64_t need, uint64_t granule,
	unsigned int slack, const char *where)
{
	struct reclaim_plan plan = run(root, need, granule, false);
	const char *bad = judge(model, root, need, granule, &plan, slack);
	struct reclaim_share before[NR_SHARES];
	struct reclaim_plan again;

	memcpy(before, shares, plan.nr * sizeof(shares[0]));
	if (!bad) {
		again = run(root, need, granule, true);
		if (again.nr != plan.nr || memcmp(before, shares, plan.nr * sizeof(shares[0])))
			bad = "a plan that committed nothing changed the next";
	}
	if (!bad)
		return;
	print(model);
	for (size_t i = 0; i < plan.nr; i++)
		fprintf(stderr,
			"# step %u%s: node %d gives %" PRIu64 " of %" PRIu64 ", gain %" PRIu64 "\n",
			before[i].step, before[i].below_low ? " below low" : "",
			node_of(before[i].memcg), before[i].pages, before[i].cap, before[i].gain);
	ck_abort_msg("%s, root %d, need %" PRIu64 ", granule %" PRIu64 ": %s", where, root, need,
		granule, bad);
}

/* ---- random trees ---- */

/* 0 to most. */
static uint64_t upto(uint64_t most)
{
	return any() % (most + 1);
}

static bool percent(unsigned int chance)
{
	return upto(99) < chance;
}

static void random_vm(struct model_node *node, uint64_t granule)
{
	uint64_t usage;

	node->vm = true;
	node->seen = upto(120 * granule);
	node->owed = percent(15) ? upto(node->seen / 3) : 0;
	usage = node->seen - node->owed;
	node->resident = percent(25) ? upto(usage) : usage;
	node->cold = percent(15) ? 0 : upto(usage);
	node->doubted = percent(60) ? 0 : upto(usage - node->cold);
	node->keep = percent(30) ? 0 : upto(percent(15) ? usage + granule : usage / 2);
	node->at_most = percent(20) ? upto(usage) : PAGES_UNLIMITED;
	node->held = percent(8);
	node->slack = percent(50) ? 0 : upto(120 * granule);
	node->told = percent(70);
}

static uint64_t random_knob(uint64_t seen, unsigned int chance)
{
	return percent(chance) ? upto(seen + seen / 4) : 0;
}

static void random_tree(struct model_tree *model, uint64_t granule)
{
	bool leaf[MODEL_NODES];

	memset(model, 0, sizeof(*model));
	model->nr = 2 + (int)upto(14);
	for (int n = 0; n < model->nr; n++) {
		leaf[n] = n > 0;
		/* Often below the newest, so that deep trees come up too. */
		model->nodes[n].parent = n == 0	       ? -1
					 : percent(25) ? n - 1
						       : (int)upto((uint64_t)n - 1);
		if (n > 0)
			leaf[model->nodes[n].parent] = false;
	}
	for (int n = 0; n < model->nr; n++) {
		if (leaf[n] && !percent(4))
			random_vm(&model->nodes[n], granule);
	}
	for (int n = 0; n < model->nr; n++) {
		struct model_node *node = &model->nodes[n];
		uint64_t seen = 0;

		for (int v = n; v < model->nr; v++) {
			int a = v;

			while (a > n)
				a = model->nodes[a].parent;
			seen += a == n ? model->nodes[v].seen : 0;
		}
		node->soft = percent(45) ? MODEL_NONE : percent(8) ? 0 : upto(seen + seen / 3);
		node->min = random_knob(seen, 15);
		node->low = random_knob(seen, 25);
	}
}

static uint64_t random_need(uint64_t granule)
{
	switch (upto(3)) {
	case 0:
		return 1 + upto(3 * granule);
	case 1:
		return upto(40 * granule);
	default:
		return upto(600 * granule);
	}
}

START_TEST(reclaim_agrees_with_the_model_on_ten_thousand_random_trees_and_needs)
{
	static const uint64_t granules[] = { 1, 7, 256 };
	struct model_tree model;
	char where[32];

	for (uint64_t i = 0; i < RANDOM_TREES; i += suite_every()) {
		uint64_t granule = granules[i % 3];

		rng = i; /* so that any case can be run alone */
		random_tree(&model, granule);
		build(&model);
		snprintf(where, sizeof(where), "tree %" PRIu64, i);
		for (int k = 0; k < 4; k++) {
			int root = percent(40) ? 0 : (int)upto((uint64_t)model.nr - 1);

			check_plan(&model, root, random_need(granule), granule,
				k == 0 ? SLACK : SLACK_CARRY, where);
		}
		memcg_verify(tree);
		teardown();
	}
}
END_TEST

/* ---- every small tree ---- */

enum limit { UNDER, OVER, NO_LIMIT, NR_LIMITS };

/* Node by node from the digits of which: limits in base three, parents in the mixed base n!. */
static void small_tree(struct model_tree *model, int nr, uint64_t shape, uint64_t limits,
	uint64_t granule, unsigned int excess_percent)
{
	uint64_t seen[MODEL_NODES] = { 0 };
	bool leaf[MODEL_NODES];

	memset(model, 0, sizeof(*model));
	model->nr = nr;
	for (int n = 0; n < nr; n++) {
		leaf[n] = n > 0;
		model->nodes[n].parent = n == 0 ? -1 : (int)(shape % (uint64_t)n);
		shape /= n == 0 ? 1 : (uint64_t)n;
		if (n > 0)
			leaf[model->nodes[n].parent] = false;
	}
	for (int n = 0; n < nr; n++) {
		struct model_node *node = &model->nodes[n];

		if (!leaf[n])
			continue;
		node->vm = true;
		node->seen = (40 + 17 * (uint64_t)n) * granule;
		node->resident = node->seen;
		node->cold = node->seen / 2 + 3;
		node->keep = node->seen / 8;
		node->at_most = PAGES_UNLIMITED;
		for (int a = n; a >= 0; a = model->nodes[a].parent)
			seen[a] += node->seen;
	}
	for (int n = 0; n < nr; n++) {
		enum limit limit = (enum limit)(limits % NR_LIMITS);

		limits /= NR_LIMITS;
		model->nodes[n].soft = limit == OVER	? seen[n] - seen[n] * excess_percent / 100
				       : limit == UNDER ? seen[n] + granule
							: MODEL_NONE;
	}
}

static uint64_t power(uint64_t base, int exponent)
{
	return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

static void check_small_trees(int nr, bool root_has_no_limit)
{
	static const uint64_t needs[] = { 1, 5, 23, 60, 110, 1000 };
	const uint64_t granule = 4;
	uint64_t shapes = 1, combinations = power(NR_LIMITS, nr);
	struct model_tree model;
	char where[64];

	for (int n = 2; n < nr; n++)
		shapes *= (uint64_t)n;
	for (uint64_t i = 0; i < shapes * combinations * 2; i += suite_every()) {
		uint64_t shape = i / 2 % shapes, limits = i / 2 / shapes;

		if (root_has_no_limit && limits % NR_LIMITS != NO_LIMIT)
			continue;
		small_tree(&model, nr, shape, limits, granule, i % 2 ? 15 : 70);
		build(&model);
		snprintf(where, sizeof(where), "%d nodes, case %" PRIu64, nr, i);
		for (int root = 0; root < nr; root++)
			for (size_t k = 0; k < sizeof(needs) / sizeof(needs[0]); k++)
				check_plan(&model, root, needs[k] * granule, granule,
					k == 0 && root == 0 ? SLACK : SLACK_CARRY, where);
		teardown();
	}
}

START_TEST(reclaim_agrees_with_the_model_on_all_trees_of_up_to_four_nodes_limits_and_roots)
{
	for (int nr = 1; nr <= 4; nr++)
		check_small_trees(nr, false);
	check_small_trees(5, true); /* the same trees below a pool that is no part of them */
}
END_TEST

/* ---- the example of soft-limit-rework-v5.1, patch 3 ----
 *
 *   A (over its soft limit)
 *    \
 *     B (below its own, hit its hard limit: the root of the reclaim)
 *    / \
 *   C   D (below its own)
 */
enum { POOL, A, B, C, D, NR_ABCD };

#define C_EXCESS MIB_TO_PAGES(100)
#define B_EXCESS MIB_TO_PAGES(300)
#define A_EXCESS MIB_TO_PAGES(400)
#define VM_SIZE	 MIB_TO_PAGES(1024)

static struct model_tree abcd;

static void build_abcd(bool b_over, bool a_over)
{
	abcd = (struct model_tree){ .nr = NR_ABCD };
	for (int n = 0; n < NR_ABCD; n++) {
		struct model_node *node = &abcd.nodes[n];

		node->parent = n == D ? B : n - 1;
		node->soft = MODEL_NONE;
		if (n < C)
			continue;
		node->vm = true;
		node->seen = node->resident = VM_SIZE;
		node->cold = VM_SIZE / 2;
		node->keep = VM_SIZE / 4;
		node->at_most = PAGES_UNLIMITED;
	}
	abcd.nodes[A].soft = a_over ? 2 * VM_SIZE - A_EXCESS : 3 * VM_SIZE;
	abcd.nodes[B].soft = b_over ? 2 * VM_SIZE - B_EXCESS : 3 * VM_SIZE;
	abcd.nodes[C].soft = VM_SIZE - C_EXCESS;
	abcd.nodes[D].soft = 2 * VM_SIZE;
	build(&abcd);
}

static uint64_t gave(const struct reclaim_plan *plan, int node, unsigned int step)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < plan->nr; i++) {
		if (plan->shares[i].memcg == groups[node] && plan->shares[i].step == step)
			pages += plan->shares[i].pages;
	}
	return pages;
}

static struct reclaim_plan plan_abcd(int root, uint64_t need)
{
	struct reclaim_plan plan = run(root, need, MIB_TO_PAGES(1), false);
	const char *bad = judge(&abcd, root, need, MIB_TO_PAGES(1), &plan, SLACK);

	ck_assert_msg(!bad, "%s", bad);
	return plan;
}

START_TEST(abcd_root_B_under_its_limit_takes_from_C_and_spares_D_though_A_above_is_over)
{
	struct reclaim_plan plan;

	build_abcd(false, true);
	plan = plan_abcd(B, C_EXCESS);
	ck_assert_uint_eq(gave(&plan, C, 1), C_EXCESS);
	ck_assert_uint_eq(plan.nr, 1);

	/* What C's excess does not cover is nobody's promise: both, in proportion to their cold. */
	plan = plan_abcd(B, C_EXCESS + MIB_TO_PAGES(90));
	ck_assert_uint_eq(gave(&plan, C, 1), C_EXCESS);
	ck_assert_uint_eq(gave(&plan, D, 1) + gave(&plan, D, 2), 0);
	ck_assert_uint_gt(gave(&plan, D, 3), 0);
}
END_TEST

START_TEST(abcd_root_B_over_its_limit_takes_all_of_Cs_excess_and_then_its_own_from_both)
{
	struct reclaim_plan plan;

	build_abcd(true, true);
	plan = plan_abcd(B, C_EXCESS);
	ck_assert_uint_eq(gave(&plan, C, 1), C_EXCESS);
	ck_assert_uint_eq(gave(&plan, D, 1), 0);

	plan = plan_abcd(B, B_EXCESS);
	ck_assert_uint_eq(gave(&plan, C, 1) + gave(&plan, D, 1), B_EXCESS);
	ck_assert_uint_ge(gave(&plan, C, 1), C_EXCESS);
	ck_assert_uint_gt(gave(&plan, D, 1), 0);

	/* B's excess is one budget: beyond it the soft steps take nothing, though A is over by
	 * more. */
	plan = plan_abcd(B, A_EXCESS);
	ck_assert_uint_eq(gave(&plan, C, 1) + gave(&plan, D, 1), B_EXCESS);
	ck_assert_uint_eq(gave(&plan, C, 3) + gave(&plan, D, 3), A_EXCESS - B_EXCESS);
}
END_TEST

START_TEST(abcd_root_A_over_its_limit_takes_from_D_too_after_Cs_excess)
{
	struct reclaim_plan plan;

	build_abcd(false, true);
	plan = plan_abcd(A, C_EXCESS);
	ck_assert_uint_eq(gave(&plan, C, 1), C_EXCESS);
	ck_assert_uint_eq(gave(&plan, D, 1), 0);

	plan = plan_abcd(A, A_EXCESS);
	ck_assert_uint_eq(gave(&plan, C, 1) + gave(&plan, D, 1), A_EXCESS);
	ck_assert_uint_gt(gave(&plan, D, 1), 0);
}
END_TEST

START_TEST(abcd_root_above_A_sees_As_excess_as_one_budget)
{
	struct reclaim_plan plan;

	build_abcd(true, true);
	plan = plan_abcd(POOL, A_EXCESS + MIB_TO_PAGES(50));
	ck_assert_uint_eq(gave(&plan, C, 1) + gave(&plan, D, 1), A_EXCESS);
	ck_assert_uint_eq(gave(&plan, C, 3) + gave(&plan, D, 3), MIB_TO_PAGES(50));
}
END_TEST

START_TEST(abcd_root_A_under_its_limit_like_B_takes_Cs_excess_alone)
{
	struct reclaim_plan plan;

	build_abcd(false, false);
	for (int root = POOL; root <= B; root++) {
		plan = plan_abcd(root, C_EXCESS);
		ck_assert_uint_eq(gave(&plan, C, 1), C_EXCESS);
		ck_assert_uint_eq(plan.nr, 1);
	}
}
END_TEST

/* ---- over time ---- */

START_TEST(over_many_small_needs_everyone_gives_in_proportion_within_a_granule)
{
	const uint64_t granule = MIB_TO_PAGES(1), needs = 200, weights[] = { 100, 200, 300, 400 };
	struct model_tree model = { .nr = 5 };
	uint64_t given[5] = { 0 };

	model.nodes[0] = (struct model_node){ .parent = -1, .soft = MODEL_NONE };
	for (int n = 1; n < model.nr; n++) {
		uint64_t size = weights[n - 1] * granule;

		model.nodes[n] = (struct model_node){ .vm = true,
			.soft = MODEL_NONE,
			.seen = size,
			.resident = size,
			.cold = size,
			.at_most = PAGES_UNLIMITED };
	}
	build(&model);
	for (uint64_t i = 0; i < needs; i++) {
		struct reclaim_plan plan = run(0, granule, granule, true);

		ck_assert_uint_eq(plan.gain, granule);
		for (size_t k = 0; k < plan.nr; k++)
			given[node_of(plan.shares[k].memcg)] += plan.shares[k].pages;
	}
	for (int n = 1; n < model.nr; n++) {
		uint64_t fair = needs * weights[n - 1] / 1000 * granule;

		ck_assert_uint_ge(given[n] + granule, fair);
		ck_assert_uint_le(given[n], fair + granule);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reclaim_and_its_model");
	TCase *tcase = tcase_create("model");

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase,
		abcd_root_B_under_its_limit_takes_from_C_and_spares_D_though_A_above_is_over);
	tcase_add_test(tcase,
		abcd_root_B_over_its_limit_takes_all_of_Cs_excess_and_then_its_own_from_both);
	tcase_add_test(tcase, abcd_root_A_over_its_limit_takes_from_D_too_after_Cs_excess);
	tcase_add_test(tcase, abcd_root_above_A_sees_As_excess_as_one_budget);
	tcase_add_test(tcase, abcd_root_A_under_its_limit_like_B_takes_Cs_excess_alone);
	tcase_add_test(tcase, over_many_small_needs_everyone_gives_in_proportion_within_a_granule);
	tcase_add_test(tcase,
		reclaim_agrees_with_the_model_on_all_trees_of_up_to_four_nodes_limits_and_roots);
	tcase_add_test(tcase, reclaim_agrees_with_the_model_on_ten_thousand_random_trees_and_needs);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
