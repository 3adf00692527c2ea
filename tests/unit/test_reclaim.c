/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who gives how much: the steps, their caps, budgets, shares and what is carried. */
#include <config.h>

#include "policy/reclaim.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

#define MIB(n)	MIB_TO_PAGES(n)
#define GRANULE MIB(1)
#define VMS	64

static struct memcg_tree *tree;
static struct memcg *root;
static struct reclaim_vm vms[VMS];
static size_t nr_vms;
static struct reclaim_share shares[VMS * RECLAIM_SHARES];
static struct reclaim_plan plan;
static uint64_t next_id;

static void setup(void)
{
	ck_assert_int_eq(memcg_tree_new(&tree), 0);
	root = tree->root;
	nr_vms = 0;
	next_id = 2;
}

static void teardown(void)
{
	memcg_verify(tree);
	memcg_tree_free(tree);
}

static struct memcg *group(struct memcg *parent, uint64_t soft)
{
	struct memcg_knobs k = MEMCG_KNOBS_NONE;
	struct memcg *m;

	k.soft_limit = soft;
	ck_assert_int_eq(memcg_new(tree, parent, next_id++, &m), 0);
	ck_assert_int_eq(memcg_set_knobs(m, &k), 0);
	return m;
}

/* All resident, a floor of 0, nothing cold beyond cold. */
static struct memcg *vm(struct memcg *parent, uint64_t soft, uint64_t usage, uint64_t cold)
{
	struct memcg *m = group(parent, soft);

	vms[nr_vms] = (struct reclaim_vm){
		.usage = usage, .resident = usage, .cold = cold, .at_most = PAGES_UNLIMITED
	};
	m->vm = &vms[nr_vms++];
	memcg_see(m, usage);
	return m;
}

static void knobs(struct memcg *m, uint64_t min, uint64_t low)
{
	struct memcg_knobs k = m->knobs;

	k.min = min;
	k.low = low;
	ck_assert_int_eq(memcg_set_knobs(m, &k), 0);
}

static void run(struct memcg *at, uint64_t need, bool commit)
{
	plan = (struct reclaim_plan){ .shares = shares, .nr_max = VMS * RECLAIM_SHARES };
	reclaim(at, need, GRANULE, commit, &plan);
	ck_assert_uint_eq(plan.need, need);
	ck_assert_uint_eq(plan.short_pages, pages_sub(need, plan.gain));
	ck_assert_uint_lt(plan.gain, need + GRANULE);
}

static void plan_for(uint64_t need)
{
	run(root, need, false);
}

static uint64_t gave(const struct memcg *m, unsigned int step)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < plan.nr; i++)
		if (plan.shares[i].memcg == m && plan.shares[i].step == step)
			pages += plan.shares[i].pages;
	return pages;
}

static uint64_t gave_all(const struct memcg *m)
{
	return gave(m, 1) + gave(m, 2) + gave(m, 3) + gave(m, 4);
}

static const struct reclaim_share *share(const struct memcg *m, unsigned int step)
{
	for (size_t i = 0; i < plan.nr; i++)
		if (plan.shares[i].memcg == m && plan.shares[i].step == step)
			return &plan.shares[i];
	return NULL;
}

/* ---- the order ---- */

START_TEST(cold_memory_of_excess_then_its_active_then_cold_of_all_then_active_of_all)
{
	struct memcg *over = vm(root, MIB(400), MIB(500), MIB(30));
	struct memcg *none = vm(root, PAGES_UNLIMITED, MIB(500), MIB(50));
	struct memcg *under = vm(root, MIB(600), MIB(500), MIB(40));

	plan_for(MIB(30));
	ck_assert_uint_eq(gave(over, 1), MIB(30));
	ck_assert_uint_eq(plan.nr, 1);
	plan_for(MIB(100)); /* ends at the soft limit */
	ck_assert_uint_eq(gave(over, 1), MIB(30));
	ck_assert_uint_eq(gave(over, 2), MIB(70));
	ck_assert_uint_eq(plan.nr, 2);
	plan_for(MIB(150)); /* those without any limit before those under one */
	ck_assert_uint_eq(gave(none, 3), MIB(50));
	ck_assert_uint_eq(plan.nr, 3);
	plan_for(MIB(190)); /* of who was over all that is cold was given */
	ck_assert_uint_eq(gave(under, 3), MIB(40));
	ck_assert_uint_eq(plan.nr, 4);
	plan_for(MIB(190) + 1);
	ck_assert_uint_eq(plan.nr, 5);
	ck_assert_uint_eq(plan.shares[4].step, 4);
	plan_for(MIB(1500));
	ck_assert_uint_eq(gave_all(over), MIB(500));
	ck_assert_uint_eq(gave_all(none), MIB(500));
	ck_assert_uint_eq(gave_all(under), MIB(500));
	ck_assert_uint_eq(plan.short_pages, 0);
	plan_for(MIB(1501));
	ck_assert_uint_eq(plan.short_pages, MIB(1));
	for (size_t i = 1; i < plan.nr; i++)
		ck_assert_uint_le(plan.shares[i - 1].step, plan.shares[i].step);
}
END_TEST

START_TEST(a_soft_limit_of_zero_is_always_in_excess)
{
	struct memcg *zero = vm(root, 0, MIB(100), 0);
	struct memcg *none = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));

	plan_for(MIB(100));
	ck_assert_uint_eq(gave(zero, 2), MIB(100));
	ck_assert_uint_eq(gave_all(none), 0);
}
END_TEST

START_TEST(cold_memory_of_a_sibling_goes_before_hot_memory_of_another)
{
	/* Field case BR-141 */
	struct memcg *hot = vm(root, MIB(10), MIB(50), 0);
	struct memcg *cold = vm(root, MIB(4060), MIB(4100), 1019733);

	plan_for(MIB(30));
	ck_assert_uint_eq(gave(cold, 1), MIB(30));
	ck_assert_uint_eq(gave_all(hot), 0);
}
END_TEST

START_TEST(nothing_is_taken_where_nothing_is_needed)
{
	vm(root, 0, MIB(100), MIB(100));
	plan_for(0);
	ck_assert_uint_eq(plan.nr, 0);
	ck_assert_uint_eq(plan.visited, 0);
}
END_TEST

/* ---- caps ---- */

START_TEST(no_cap_goes_below_keep_and_less_than_a_granule_is_nothing)
{
	struct memcg *m = vm(root, 0, MIB(100), MIB(100));

	m->vm->keep = MIB(90);
	plan_for(MIB(50));
	ck_assert_uint_eq(gave_all(m), MIB(10));
	ck_assert_uint_eq(share(m, 1)->bound, MIB(90));
	ck_assert_uint_eq(plan.short_pages, MIB(40));
	m->vm->keep = MIB(90) + 1;
	plan_for(MIB(50));
	ck_assert_uint_eq(gave_all(m), MIB(9));
	m->vm->keep = MIB(99) + 1;
	plan_for(MIB(50));
	ck_assert_uint_eq(plan.nr, 0);
	m->vm->keep = MIB(200);
	plan_for(MIB(50));
	ck_assert_uint_eq(plan.nr, 0);
}
END_TEST

START_TEST(an_excess_of_less_than_a_granule_holds_nothing_up)
{
	struct memcg *over = vm(root, MIB(100) + 1, MIB(101), MIB(101));
	struct memcg *none = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));

	plan_for(MIB(5));
	ck_assert_uint_eq(gave(over, 1), 0);
	ck_assert_uint_eq(gave(none, 3), MIB(5));
}
END_TEST

START_TEST(what_a_vm_costs_beyond_its_actual_is_not_taken_from_what_its_soft_limit_protects)
{
	struct memcg *over = vm(root, MIB(100), MIB(130), MIB(130));
	struct memcg *none = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));

	over->vm->usage = over->vm->resident = MIB(120); /* its actual */
	plan_for(MIB(30));
	ck_assert_uint_eq(gave(over, 1), MIB(20));
	ck_assert_uint_eq(gave(none, 3), MIB(10));
}
END_TEST

START_TEST(what_was_asked_and_has_not_come_is_no_excess_any_more)
{
	struct memcg *over = vm(root, MIB(100), MIB(150), MIB(150));
	struct memcg *none = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));

	memcg_owe(over, (int64_t)MIB(40), (int64_t)MIB(40));
	over->vm->usage = over->vm->resident = over->vm->cold = MIB(110);
	plan_for(MIB(30));
	ck_assert_uint_eq(gave(over, 1), MIB(10));
	ck_assert_uint_eq(gave(none, 3), MIB(20));
}
END_TEST

START_TEST(a_vm_gives_at_most_what_it_is_trusted_with)
{
	struct memcg *m = vm(root, 0, MIB(100), MIB(50));

	m->vm->at_most = MIB(20) + 5;
	plan_for(MIB(100));
	ck_assert_uint_eq(gave(m, 1), MIB(20));
	ck_assert_uint_eq(gave_all(m), MIB(20));
}
END_TEST

START_TEST(whoever_is_held_is_not_asked)
{
	struct memcg *held = vm(root, 0, MIB(100), MIB(100));
	struct memcg *other = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));

	for (int hold = RECLAIM_HOLD_NONE + 1; hold < RECLAIM_HOLD_NR; hold++) {
		held->vm->hold = (enum reclaim_hold)hold;
		plan_for(MIB(150));
		ck_assert_uint_eq(gave_all(held), 0);
		ck_assert_uint_eq(gave_all(other), MIB(100));
	}
}
END_TEST

START_TEST(a_step_gets_what_the_caps_before_it_cannot_cover_and_says_so)
{
	struct memcg *a = vm(root, MIB(80), MIB(100), MIB(12));
	struct memcg *b = vm(root, PAGES_UNLIMITED, MIB(300), MIB(200));
	const struct reclaim_share *s;

	plan_for(MIB(50));
	s = share(a, 1);
	ck_assert_uint_eq(s->step_need, MIB(50));
	ck_assert_uint_eq(s->step_cap, MIB(12));
	ck_assert_uint_eq(s->cap, MIB(12));
	ck_assert_uint_eq(s->bound, MIB(80));
	s = share(a, 2);
	ck_assert_uint_eq(s->step_need, MIB(38));
	ck_assert_uint_eq(s->step_cap, MIB(8));
	s = share(b, 3);
	ck_assert_uint_eq(s->step_need, MIB(30));
	ck_assert_uint_eq(s->step_cap, MIB(200));
	ck_assert_uint_eq(s->pages, MIB(30));
	ck_assert_uint_eq(s->gain, MIB(30));
}
END_TEST

/* ---- protection ---- */

START_TEST(low_holds_until_the_end_of_step_four)
{
	struct memcg *a = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));
	struct memcg *b = vm(root, PAGES_UNLIMITED, MIB(100), 0);

	knobs(a, 0, MIB(90));
	plan_for(MIB(110));
	ck_assert_uint_eq(gave(a, 3), MIB(10));
	ck_assert_uint_eq(share(a, 3)->bound, MIB(90));
	ck_assert_uint_eq(gave(b, 4), MIB(100));
	ck_assert_uint_eq(gave(a, 4), 0);
	plan_for(MIB(111));
	ck_assert_uint_eq(gave(a, 4), MIB(1));
	ck_assert(share(a, 4)->below_low);
	ck_assert(!share(b, 4)->below_low);
	knobs(a, MIB(95), MIB(90)); /* min holds in the end, too */
	a->vm->keep = MIB(95);
	plan_for(MIB(200));
	ck_assert_uint_eq(gave_all(a), MIB(5));
	ck_assert_uint_eq(plan.short_pages, MIB(95));
}
END_TEST

START_TEST(low_bounds_the_soft_steps_too)
{
	struct memcg *a = vm(root, MIB(10), MIB(100), MIB(100));

	knobs(a, 0, MIB(60));
	plan_for(MIB(90));
	ck_assert_uint_eq(gave(a, 1), MIB(40));
	ck_assert_uint_eq(share(a, 1)->bound, MIB(60));
	ck_assert_uint_eq(gave(a, 4), MIB(50));
}
END_TEST

START_TEST(there_is_room_for_all_the_shares_that_one_vm_may_have)
{
	static const struct {
		unsigned int step;
		uint64_t pages;
	} expected[] = { { 1, MIB(10) }, { 2, MIB(10) }, { 4, MIB(10) }, { 4, MIB(30) },
		{ 4, MIB(40) } };
	struct memcg *a = vm(root, MIB(80), MIB(100), MIB(10));

	a->vm->doubted = (uint32_t)MIB(20); /* half of it over its soft limit */
	knobs(a, 0, MIB(40));
	plan = (struct reclaim_plan){ .shares = shares, .nr_max = RECLAIM_SHARES };
	reclaim(root, MIB(100), GRANULE, false, &plan);
	ck_assert_uint_eq(plan.nr, 5);
	for (size_t i = 0; i < 5; i++) {
		ck_assert_uint_eq(plan.shares[i].step, expected[i].step);
		ck_assert_uint_eq(plan.shares[i].pages, expected[i].pages);
	}
}
END_TEST

START_TEST(protection_of_a_group_is_shared_by_what_the_vms_below_claim)
{
	/* Field case BR-93: low 2, children 1.5 and 1.5, usage 2 and 1: 1.2 and 0.8. */
	struct memcg *g = group(root, PAGES_UNLIMITED);
	struct memcg *a = vm(g, PAGES_UNLIMITED, MIB(2000), 0);
	struct memcg *b = vm(g, PAGES_UNLIMITED, MIB(1000), 0);

	knobs(g, 0, MIB(2000));
	knobs(a, 0, MIB(1500));
	knobs(b, 0, MIB(1500));
	plan_for(MIB(1000));
	ck_assert_uint_eq(gave(a, 4), MIB(800));
	ck_assert_uint_eq(gave(b, 4), MIB(200));
	knobs(g, 0, 0); /* without the ancestor's: none */
	plan_for(MIB(3000));
	for (size_t i = 0; i < plan.nr; i++)
		ck_assert(!plan.shares[i].below_low);
}
END_TEST

START_TEST(min_of_a_group_holds_below_it_but_not_when_it_is_the_root_of_the_reclaim)
{
	struct memcg *g = group(root, PAGES_UNLIMITED);
	struct memcg *a = vm(g, PAGES_UNLIMITED, MIB(100), MIB(100));

	knobs(g, MIB(70), 0);
	plan_for(MIB(100));
	ck_assert_uint_eq(gave_all(a), MIB(30));
	ck_assert_uint_eq(plan.short_pages, MIB(70));
	run(g, MIB(100), false);
	ck_assert_uint_eq(gave_all(a), MIB(100));
}
END_TEST

START_TEST(a_vm_over_its_own_max_is_taken_below_its_low_but_not_below_what_it_keeps)
{
	/* Field case BR-138: low 2 GiB, usage 4.2; the VM itself is the root. */
	struct memcg *a = vm(root, PAGES_UNLIMITED, MIB(4300), 0);

	knobs(a, 0, MIB(4200));
	a->vm->keep = MIB(3072);
	run(a, MIB(300), false);
	ck_assert_uint_eq(gave(a, 4), MIB(300));
	ck_assert(!share(a, 4)->below_low);
	run(a, MIB(3000), false);
	ck_assert_uint_eq(gave(a, 4), MIB(4300 - 3072));
	plan_for(MIB(300)); /* the pool's pass: low holds, as shared down the tree, to the end */
	ck_assert_uint_eq(plan.shares[0].pages, MIB(100));
	ck_assert_uint_eq(plan.shares[1].pages, MIB(200));
	ck_assert(plan.shares[1].below_low);
}
END_TEST

/* ---- budgets ---- */

START_TEST(the_excess_of_a_partition_is_one_budget_for_all_below)
{
	struct memcg *g = group(root, MIB(180));
	struct memcg *a = vm(g, PAGES_UNLIMITED, MIB(100), MIB(100));
	struct memcg *b = vm(g, PAGES_UNLIMITED, MIB(100), MIB(100));
	struct memcg *c = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));

	plan_for(MIB(20));
	ck_assert_uint_eq(gave(a, 1), MIB(10));
	ck_assert_uint_eq(gave(b, 1), MIB(10));
	ck_assert_uint_eq(gave_all(c), 0);
	plan_for(MIB(50)); /* beyond it, what nobody promised */
	ck_assert_uint_eq(gave(a, 1) + gave(b, 1), MIB(20));
	ck_assert_uint_eq(gave(c, 3), MIB(30));
}
END_TEST

START_TEST(those_with_an_excess_of_their_own_give_before_others_below_a_partition)
{
	struct memcg *g = group(root, MIB(150));
	struct memcg *own = vm(g, MIB(80), MIB(100), MIB(100));
	struct memcg *other = vm(g, PAGES_UNLIMITED, MIB(100), MIB(100));

	plan_for(MIB(20));
	ck_assert_uint_eq(gave(own, 1), MIB(20));
	ck_assert_uint_eq(gave_all(other), 0);
	plan_for(MIB(50)); /* the other 30 by what each may still give: 80 and 100 */
	ck_assert_uint_eq(gave(own, 1) + gave(other, 1), MIB(50));
	ck_assert_uint_ge(gave(own, 1), MIB(20 + 13));
	ck_assert_uint_le(gave(own, 1), MIB(20 + 14));
}
END_TEST

START_TEST(every_page_lowers_the_budget_of_each_ancestor)
{
	struct memcg *g = group(root, MIB(270));
	struct memcg *h = group(g, MIB(180));
	struct memcg *a = vm(h, MIB(90), MIB(100), MIB(100));
	struct memcg *b = vm(h, PAGES_UNLIMITED, MIB(100), MIB(100));
	struct memcg *c = vm(g, PAGES_UNLIMITED, MIB(100), MIB(100));

	/* a over by 10, h by 20, g by 30: nested, not added */
	plan_for(MIB(60));
	ck_assert_uint_eq(gave(a, 1) + gave(b, 1) + gave(c, 1), MIB(30));
	ck_assert_uint_ge(gave(a, 1) + gave(b, 1), MIB(20));
	ck_assert_uint_ge(gave(a, 1), MIB(10));
	ck_assert_uint_eq(gave(a, 2) + gave(b, 2) + gave(c, 2), 0);
	plan_for(MIB(10));
	ck_assert_uint_eq(gave(a, 1), MIB(10));
	plan_for(MIB(20));
	ck_assert_uint_eq(gave(a, 1) + gave(b, 1), MIB(20));
	ck_assert_uint_eq(gave(c, 1), 0);
}
END_TEST

START_TEST(a_budget_used_up_by_the_cold_is_not_used_again_by_the_active)
{
	struct memcg *g = group(root, MIB(180));
	struct memcg *a = vm(g, PAGES_UNLIMITED, MIB(100), MIB(15));
	struct memcg *b = vm(g, PAGES_UNLIMITED, MIB(100), 0);
	struct memcg *c = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));

	plan_for(MIB(40));
	ck_assert_uint_eq(gave(a, 1), MIB(15));
	ck_assert_uint_eq(gave(a, 2) + gave(b, 2), MIB(5));
	ck_assert_uint_eq(gave(c, 3), MIB(20));
}
END_TEST

START_TEST(an_excess_above_the_root_of_the_reclaim_does_not_count)
{
	struct memcg *g = group(root, MIB(10));
	struct memcg *h = group(g, PAGES_UNLIMITED);
	struct memcg *a = vm(h, PAGES_UNLIMITED, MIB(100), MIB(100));
	struct memcg *b = vm(h, MIB(200), MIB(100), MIB(100));

	run(h, MIB(40), false);
	ck_assert_uint_eq(gave(a, 3), MIB(40)); /* no limit that counts here; b is under one */
	ck_assert_uint_eq(gave_all(b), 0);
	run(g, MIB(40), false);
	ck_assert_uint_eq(gave(a, 1), MIB(20));
	ck_assert_uint_eq(gave(b, 1), MIB(20));
}
END_TEST

START_TEST(a_share_beyond_its_own_excess_is_not_bound_by_its_soft_limit)
{
	struct memcg *g = group(root, MIB(50));
	struct memcg *a = vm(g, MIB(90), MIB(100), MIB(100));

	plan_for(MIB(10));
	ck_assert_uint_eq(share(a, 1)->bound, MIB(90));
	plan_for(MIB(11)); /* the partition's excess goes on where its own ends */
	ck_assert_uint_eq(share(a, 1)->pages, MIB(11));
	ck_assert_uint_eq(share(a, 1)->bound, 0);
}
END_TEST

START_TEST(of_an_excess_of_a_partition_a_part_of_a_granule_is_nothing)
{
	struct memcg *g = group(root, MIB(90) + 1);
	struct memcg *a = vm(g, PAGES_UNLIMITED, MIB(100), MIB(100));
	struct memcg *b = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));

	plan_for(MIB(20));
	ck_assert_uint_eq(gave(a, 1), MIB(9));
	ck_assert_uint_eq(gave(b, 3), MIB(11));
}
END_TEST

/* ---- the cost ---- */

START_TEST(a_step_that_would_visit_nobody_is_not_started)
{
	struct memcg *flat;

	for (int i = 0; i < 10; i++) {
		struct memcg *g = group(root, PAGES_UNLIMITED);

		for (int j = 0; j < 4; j++)
			vm(g, PAGES_UNLIMITED, MIB(10), MIB(10));
	}
	plan_for(MIB(5)); /* root, 10 groups, 40 VMs: once, for step 3 */
	ck_assert_uint_eq(plan.visited, 51);
	flat = vm(root, MIB(5), MIB(10), MIB(10));
	plan_for(MIB(5)); /* the root and the one in excess */
	ck_assert_uint_eq(gave(flat, 1), MIB(5));
	ck_assert_uint_eq(plan.visited, 2);
}
END_TEST

START_TEST(steps_of_what_guests_alone_say_is_active_are_not_started_where_no_guest_says_so)
{
	struct memcg *a = vm(root, PAGES_UNLIMITED, MIB(10), 0);

	vm(root, PAGES_UNLIMITED, MIB(10), 0);
	plan_for(MIB(30)); /* the root and both: two times in step 3, two times in step 4 */
	ck_assert_uint_eq(plan.visited, 12);
	a->vm->doubted = 1;
	plan_for(MIB(30));
	ck_assert_uint_eq(plan.visited, 15);
}
END_TEST

START_TEST(subtrees_where_nobody_is_in_excess_are_not_entered)
{
	struct memcg *over = NULL;

	for (int i = 0; i < 10; i++) {
		struct memcg *g = group(root, PAGES_UNLIMITED);

		for (int j = 0; j < 4; j++)
			over = vm(g, i == 7 && j == 1 ? MIB(4) : MIB(20), MIB(10), MIB(10));
	}
	plan_for(MIB(6)); /* root, one group, one VM */
	ck_assert_uint_eq(plan.visited, 3);
	ck_assert_uint_eq(plan.nr, 1);
	ck_assert_ptr_ne(plan.shares[0].memcg, over);
	ck_assert_uint_eq(plan.shares[0].step, 1);
}
END_TEST

START_TEST(a_flat_tree_needs_no_groups)
{
	struct memcg *a = vm(root, MIB(50), MIB(100), MIB(100));
	struct memcg *b = vm(root, MIB(75), MIB(100), MIB(100));

	plan_for(MIB(30)); /* by excess: 50 and 25 */
	ck_assert_uint_eq(gave(a, 1), MIB(20));
	ck_assert_uint_eq(gave(b, 1), MIB(10));
}
END_TEST

START_TEST(a_vm_that_is_offline_gives_nothing)
{
	struct memcg *a = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));

	ck_assert_int_eq(memcg_kill(a), 0);
	plan_for(MIB(30));
	ck_assert_uint_eq(plan.nr, 0);
	run(a, MIB(30), false);
	ck_assert_uint_eq(plan.nr, 0);
	memcg_see(a, 0);
}
END_TEST

START_TEST(a_tree_without_vms_is_short_of_all)
{
	run(root, MIB(10), true);
	ck_assert_uint_eq(plan.short_pages, MIB(10));
	ck_assert_uint_eq(plan.nr, 0);
}
END_TEST

/* ---- partly swapped ---- */

START_TEST(partly_swapped_vms_give_last_in_a_step_and_are_asked_for_more_than_is_gained)
{
	struct memcg *swapped = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));
	struct memcg *resident = vm(root, PAGES_UNLIMITED, MIB(100), MIB(50));

	swapped->vm->resident = MIB(50);
	plan_for(MIB(50));
	ck_assert_uint_eq(gave(resident, 3), MIB(50));
	ck_assert_uint_eq(gave_all(swapped), 0);
	plan_for(MIB(70)); /* 20 of it by asking for 40 */
	ck_assert_uint_eq(gave(swapped, 3), MIB(40));
	ck_assert_uint_eq(share(swapped, 3)->gain, gave(swapped, 3) / 2);
	ck_assert_uint_eq(plan.short_pages, 0);
	swapped->vm->resident = 0; /* to ask would only harm */
	plan_for(MIB(70));
	ck_assert_uint_eq(gave_all(swapped), 0);
	ck_assert_uint_eq(gave(resident, 4), MIB(20));
}
END_TEST

START_TEST(two_partly_swapped_vms_bring_the_need_and_no_granule_more)
{
	struct memcg *a = vm(root, PAGES_UNLIMITED, MIB(400), MIB(400));
	struct memcg *b = vm(root, PAGES_UNLIMITED, MIB(400), MIB(400));

	a->vm->resident = MIB(300);
	b->vm->resident = MIB(40);
	for (uint64_t need = 1; need < MIB(330); need += 997) {
		plan_for(need);
		ck_assert_uint_eq(plan.short_pages, 0);
		ck_assert_uint_eq(plan.nr, gave(b, 3) && gave(a, 3) ? 2 : 1);
	}
	plan_for(MIB(341));
	ck_assert_uint_eq(plan.short_pages, MIB(1));
	ck_assert_uint_eq(gave_all(a), MIB(400));
	ck_assert_uint_eq(gave_all(b), MIB(400));
}
END_TEST

START_TEST(rounds_of_asking_the_partly_swapped_leave_next_to_nothing_of_the_need)
{
	struct memcg *best = vm(root, PAGES_UNLIMITED, MIB(1000), MIB(1000));
	struct memcg *large = vm(root, PAGES_UNLIMITED, MIB(102400), MIB(102400));

	best->vm->resident -= 1; /* as if all came from it, one in seventeen does */
	large->vm->resident = MIB(5120);
	plan = (struct reclaim_plan){ .shares = shares, .nr_max = VMS * RECLAIM_SHARES };
	reclaim(root, MIB(2560), 1, false, &plan);
	ck_assert_uint_eq(plan.gain, MIB(2560));
	ck_assert_uint_le(gave(best, 4) + gave(large, 4), 64); /* of 655360 pages */
}
END_TEST

START_TEST(what_a_round_owes_to_the_partly_swapped_they_get_in_the_next)
{
	struct memcg *a = vm(root, PAGES_UNLIMITED, 3, 3);
	struct memcg *b = vm(root, PAGES_UNLIMITED, 4, 4);

	a->vm->resident = 2;
	b->vm->resident = 3;
	plan = (struct reclaim_plan){ .shares = shares, .nr_max = VMS * RECLAIM_SHARES };
	reclaim(root, 2, 1, false, &plan); /* of four pages 1.7 and 2.3, in two rounds */
	ck_assert_uint_eq(gave(a, 3), 2);
	ck_assert_uint_eq(gave(b, 3), 2);
	ck_assert_uint_eq(plan.gain, 2);
}
END_TEST

START_TEST(a_round_of_asking_the_partly_swapped_asks_for_no_granule_that_the_next_need_not)
{
	struct memcg *a = vm(root, PAGES_UNLIMITED, 8, 8);
	struct memcg *b = vm(root, PAGES_UNLIMITED, 24, 24);

	a->vm->resident = 1;
	b->vm->resident = 13;
	plan = (struct reclaim_plan){ .shares = shares, .nr_max = VMS * RECLAIM_SHARES };
	reclaim(root, 12, 4, false, &plan);
	ck_assert_uint_eq(gave(a, 3), 4); /* half a page of its: none */
	ck_assert_uint_eq(gave(b, 3), 24);
	ck_assert_uint_eq(plan.gain, 13);
}
END_TEST

/* ---- shares ---- */

START_TEST(within_a_step_those_with_the_least_to_inflate_come_first)
{
	static const uint64_t slack[] = { 5, 3, 9, 1, 7, 3, 0, 8 };
	struct memcg *m;

	for (size_t i = 0; i < sizeof(slack) / sizeof(slack[0]); i++) {
		m = vm(root, i % 2 ? 0 : PAGES_UNLIMITED, MIB(10), MIB(10));
		m->vm->slack = slack[i];
	}
	plan_for(MIB(80));
	ck_assert_uint_eq(plan.nr, 8);
	for (size_t i = 1; i < 8; i++) {
		if (plan.shares[i].step == plan.shares[i - 1].step)
			ck_assert_uint_le(plan.shares[i - 1].memcg->vm->slack,
				plan.shares[i].memcg->vm->slack);
		else
			ck_assert_uint_eq(plan.shares[i].step, 3);
	}
}
END_TEST

START_TEST(who_has_more_to_inflate_than_to_give_gives_what_those_who_tell_cannot)
{
	struct memcg *far = vm(root, PAGES_UNLIMITED, MIB(300), MIB(100));
	struct memcg *near = vm(root, PAGES_UNLIMITED, MIB(900), MIB(200));
	struct memcg *apart = group(root, PAGES_UNLIMITED);
	struct memcg *other = vm(apart, PAGES_UNLIMITED, MIB(900), MIB(100));

	far->vm->told = near->vm->told = other->vm->told = true;
	far->vm->slack = MIB(100) + 1;
	near->vm->slack = MIB(200);
	plan_for(MIB(30));
	ck_assert_uint_eq(gave(far, 3), 0);
	ck_assert_uint_eq(gave(near, 3), MIB(20));
	ck_assert_uint_eq(gave(other, 3), MIB(10));
	plan_for(MIB(310));
	ck_assert_uint_eq(gave(far, 3), MIB(10));
	ck_assert_uint_eq(gave(near, 3), MIB(200));
	ck_assert_uint_eq(gave(other, 3), MIB(100));
	/* As much as it may give is not more: they share. */
	far->vm->slack = MIB(100);
	plan_for(MIB(40));
	ck_assert_uint_eq(gave(far, 3), MIB(10));
	/* Before anyone's active memory it gives all. */
	far->vm->slack = MIB(1000);
	plan_for(MIB(405));
	ck_assert_uint_eq(gave(far, 3), MIB(100));
	ck_assert_uint_gt(gave(near, 4), 0);
}
END_TEST

START_TEST(where_cold_memory_is_guessed_nobody_gives_before_others)
{
	struct memcg *a = vm(root, PAGES_UNLIMITED, MIB(300), MIB(100));
	struct memcg *b = vm(root, PAGES_UNLIMITED, MIB(300), MIB(100));
	struct memcg *told = vm(root, PAGES_UNLIMITED, MIB(300), MIB(20));

	a->vm->slack = MIB(1000);
	plan_for(MIB(22));
	ck_assert_uint_eq(gave(a, 3), MIB(10));
	ck_assert_uint_eq(gave(b, 3), MIB(10));
	ck_assert_uint_eq(gave(told, 3), MIB(2));
	told->vm->told = true;
	plan_for(MIB(40));
	ck_assert_uint_eq(gave(told, 3), MIB(20));
	ck_assert_uint_eq(gave(a, 3), MIB(10));
	ck_assert_uint_eq(gave(b, 3), MIB(10));
}
END_TEST

START_TEST(what_is_to_be_inflated_holds_no_excess_and_no_active_memory_back)
{
	struct memcg *far = vm(root, MIB(200), MIB(300), MIB(50));
	struct memcg *near = vm(root, MIB(200), MIB(300), MIB(50));

	far->vm->told = near->vm->told = true;
	far->vm->slack = MIB(1000);
	plan_for(MIB(40));
	ck_assert_uint_eq(gave(far, 1), MIB(20));
	ck_assert_uint_eq(gave(near, 1), MIB(20));
	plan_for(MIB(240));
	ck_assert_uint_eq(gave(far, 4), gave(near, 4));
	ck_assert_uint_gt(gave(far, 4), 0);
}
END_TEST

START_TEST(small_needs_over_fifty_vms_are_never_all_zero_and_go_round)
{
	/* Field case BR-139: weights 1 to 50, needs of 1 to 23 granules. */
	struct memcg *m[50];
	uint64_t given[50] = { 0 }, off = 0, all = 0, need, sum, fair;

	for (uint64_t i = 0; i < 50; i++)
		m[i] = vm(root, PAGES_UNLIMITED, MIB(i + 1), MIB(i + 1));
	for (unsigned int n = 1; n <= 5000; n++) {
		need = MIB(1 + n * 7919 % 23);
		all += need;
		run(root, need, true);
		sum = 0;
		for (size_t i = 0; i < 50; i++) {
			sum += gave_all(m[i]);
			given[i] += gave_all(m[i]);
		}
		ck_assert_uint_eq(sum, need);
		for (uint64_t i = 0; i < 50; i++) {
			fair = all * (i + 1) / 1275;
			off = pages_max(off, pages_max(given[i], fair) - pages_min(given[i], fair));
		}
	}
	ck_assert_uint_le(off, MIB(1)); /* nobody, at no time, by more than a granule */
}
END_TEST

START_TEST(needs_of_one_granule_go_round_those_who_are_alike)
{
	struct memcg *m[7];
	uint64_t given[7] = { 0 };

	for (size_t i = 0; i < 7; i++)
		m[i] = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));
	for (unsigned int n = 1; n <= 21; n++) {
		run(root, 1, true); /* a page: rounded up to the granule */
		for (size_t i = 0; i < 7; i++) {
			given[i] += gave_all(m[i]);
			ck_assert_uint_le(given[i], MIB((n + 6) / 7));
			ck_assert_uint_ge(given[i], MIB(n / 7));
		}
	}
}
END_TEST

START_TEST(shares_of_more_pages_than_32_bits_hold_are_in_proportion)
{
	const uint64_t much = UINT64_C(1) << 33;
	struct memcg *large = vm(root, 0, 3 * much, 3 * much);
	struct memcg *small = vm(root, 0, much, much);

	plan_for(2 * much);
	ck_assert_uint_eq(gave(large, 1), 3 * much / 2);
	ck_assert_uint_eq(gave(small, 1), much / 2);
}
END_TEST

START_TEST(carries_are_kept_apart_for_each_root_and_step)
{
	struct memcg *g = group(root, PAGES_UNLIMITED);
	struct memcg *a = vm(g, PAGES_UNLIMITED, MIB(100), MIB(100));
	struct memcg *b = vm(g, PAGES_UNLIMITED, MIB(200), MIB(200));

	run(root, MIB(1), true);
	ck_assert_int_ne(memcg_carries(a, 0)[2], 0);
	ck_assert_int_le(
		llabs(memcg_carries(a, 0)[2] + memcg_carries(b, 0)[2]), 2); /* parts of a page */
	ck_assert_int_eq(memcg_carries(a, 1)[2], 0);
	ck_assert_int_eq(memcg_carries(a, 0)[3], 0);
	run(g, MIB(1), true);
	ck_assert_int_ne(memcg_carries(a, 1)[2], 0);
	ck_assert_int_eq(memcg_carries(a, 2)[2], 0);
	ck_assert_ptr_eq(memcg_carries(a, 2), a->carries[1]); /* the last row that it has */
}
END_TEST

START_TEST(what_is_carried_is_never_more_than_a_granule)
{
	struct memcg *m[3];

	for (size_t i = 0; i < 3; i++)
		m[i] = vm(root, PAGES_UNLIMITED, MIB(1000 * (i + 1)), MIB(1000 * (i + 1)));
	for (uint64_t need = 1; need < MIB(40); need += 777) {
		run(root, need, true);
		for (size_t i = 0; i < 3; i++) {
			ck_assert_int_le(m[i]->carry[2], (int64_t)(MIB(1) + 1) * MEMCG_CARRY_PAGE);
			ck_assert_int_ge(m[i]->carry[2], -(int64_t)(MIB(1) + 1) * MEMCG_CARRY_PAGE);
		}
	}
}
END_TEST

START_TEST(what_went_round_to_anyone_is_carried_up_to_a_granule)
{
	struct memcg *m[5];

	for (size_t i = 0; i < 5; i++) {
		m[i] = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));
		m[i]->carry[2] = (int64_t)MIB(1) * MEMCG_CARRY_PAGE;
	}
	run(root, MIB(2), true); /* each is owed 1.4, and three get nothing */
	for (size_t i = 0; i < 5; i++)
		ck_assert_int_le(m[i]->carry[2] / MEMCG_CARRY_PAGE, (int64_t)MIB(1));
	ck_assert_uint_eq(plan.gain, MIB(2));
	for (size_t i = 0; i < 5; i++)
		m[i]->carry[2] = -(int64_t)MIB(1) * MEMCG_CARRY_PAGE;
	run(root, MIB(3), true); /* nobody is owed anything, and three give */
	for (size_t i = 0; i < 5; i++)
		ck_assert_int_ge(m[i]->carry[2] / MEMCG_CARRY_PAGE, -(int64_t)MIB(1));
	ck_assert_uint_eq(plan.gain, MIB(3));
}
END_TEST

START_TEST(a_dry_run_changes_no_carry_and_no_position)
{
	struct memcg *g = group(root, MIB(250));
	struct memcg *a = vm(g, PAGES_UNLIMITED, MIB(100), MIB(100));
	struct memcg *b = vm(g, PAGES_UNLIMITED, MIB(170), MIB(100));
	struct memcg *all[] = { root, g, a, b };
	int64_t carries[4][3][MEMCG_STEPS];
	uint64_t positions[4], first[2];

	memset(carries, 0, sizeof(carries));
	run(root, MIB(3), true);
	for (size_t i = 0; i < 4; i++) {
		memcpy(carries[i], all[i]->carry, (all[i]->level + 1) * sizeof(carries[i][0]));
		positions[i] = all[i]->position;
	}
	plan_for(MIB(7));
	first[0] = gave_all(a);
	first[1] = gave_all(b);
	plan_for(MIB(7)); /* the same again */
	ck_assert_uint_eq(gave_all(a), first[0]);
	ck_assert_uint_eq(gave_all(b), first[1]);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_eq(memcmp(carries[i], all[i]->carry,
					 (all[i]->level + 1) * sizeof(carries[i][0])),
			0);
		ck_assert_uint_eq(all[i]->position, positions[i]);
	}
	run(root, MIB(7), true); /* what was planned is what is then done */
	ck_assert_uint_eq(gave_all(a), first[0]);
	ck_assert_uint_eq(gave_all(b), first[1]);
}
END_TEST

START_TEST(the_position_is_shared_by_all_who_reclaim_there_and_survives_its_child)
{
	struct memcg *m[4];
	uint64_t before;

	for (size_t i = 0; i < 4; i++)
		m[i] = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));
	run(root, MIB(1), true);
	before = root->position;
	ck_assert_uint_ne(before, 0);
	run(root, MIB(1), true);
	ck_assert_uint_ne(root->position, before);
	for (size_t i = 0; i < 4; i++) { /* whoever stands there goes */
		if (m[i]->id != root->position)
			continue;
		memcg_see(m[i], 0);
		m[i]->vm->usage = m[i]->vm->resident = m[i]->vm->cold = 0;
		m[i]->vm = NULL;
		ck_assert_int_eq(memcg_kill(m[i]), 0);
		break;
	}
	ck_assert_uint_eq(memcg_reap(tree), 1);
	run(root, MIB(2), true);
	ck_assert_uint_eq(plan.short_pages, 0);
}
END_TEST

START_TEST(reclaims_from_two_roots_go_round_the_vms_below_both_together)
{
	struct memcg *g = group(root, PAGES_UNLIMITED);
	struct memcg *m[4];
	uint64_t given[4] = { 0 };

	for (size_t i = 0; i < 4; i++)
		m[i] = vm(g, PAGES_UNLIMITED, MIB(100), MIB(100));
	for (size_t n = 0; n < 2; n++) { /* whoever gave for the one is not first for the other */
		run(n % 2 ? g : root, MIB(1), true);
		for (size_t i = 0; i < 4; i++)
			given[i] += gave_all(m[i]);
	}
	for (size_t i = 0; i < 4; i++)
		ck_assert_uint_le(given[i], MIB(1));
}
END_TEST

/* ---- no hammering ---- */

#define EQUALS 8

/*
 * A hundred reclaims of need, of each of the roots in turn, from guests that are alike: what each
 * of them gave, the least and the most.
 */
static void hundred_reclaims(struct memcg **roots, size_t nr_roots, struct memcg **equals,
	uint64_t need, uint64_t *ret_least, uint64_t *ret_most)
{
	uint64_t given[EQUALS] = { 0 };

	for (size_t n = 0; n < 100; n++) {
		run(roots[n % nr_roots], need, true);
		ck_assert_uint_eq(plan.short_pages, 0);
		for (size_t i = 0; i < EQUALS; i++)
			given[i] += gave_all(equals[i]);
	}
	*ret_least = *ret_most = given[0];
	for (size_t i = 1; i < EQUALS; i++) {
		*ret_least = pages_min(*ret_least, given[i]);
		*ret_most = pages_max(*ret_most, given[i]);
	}
}

/* soft: all in excess; else nobody has a limit. From one job, and from four that interleave. */
static void check_equals(bool flat, uint64_t limit)
{
	struct memcg *a = flat ? root : group(root, PAGES_UNLIMITED);
	struct memcg *b = flat ? root : group(a, PAGES_UNLIMITED);
	struct memcg *c = flat ? root : group(b, PAGES_UNLIMITED);
	struct memcg *roots[] = { root, a, b, c }, *equals[EQUALS];
	const uint64_t needs[] = { EQUALS * MIB(1), 13 * MIB(1), 64 * MIB(1) };
	const uint64_t small[] = { 1, MIB(1), MIB(3), MIB(5) };
	uint64_t least, most;

	for (size_t i = 0; i < EQUALS; i++)
		equals[i] = vm(c, limit, MIB(1000), MIB(1000));
	for (size_t jobs = 1; jobs <= 4; jobs += 3) {
		for (size_t k = 0; k < sizeof(needs) / sizeof(needs[0]); k++) {
			hundred_reclaims(roots, jobs, equals, needs[k], &least, &most);
			ck_assert_uint_le(10 * (most - least), 100 * needs[k] / EQUALS);
		}
		for (size_t k = 0; k < sizeof(small) / sizeof(small[0]); k++) {
			hundred_reclaims(roots, jobs, equals, small[k], &least, &most);
			/* each root carries for itself: a granule for each that reclaims there */
			ck_assert_uint_le(most - least, flat ? MIB(1) : MIB(jobs));
		}
	}
}

START_TEST(equals_below_groups_give_equally_whoever_of_four_jobs_asks)
{
	check_equals(false, PAGES_UNLIMITED);
}
END_TEST

START_TEST(equals_in_excess_below_groups_give_equally_whoever_of_four_jobs_asks)
{
	check_equals(false, MIB(500));
}
END_TEST

START_TEST(equals_of_a_flat_tree_give_equally)
{
	check_equals(true, PAGES_UNLIMITED);
}
END_TEST

START_TEST(equals_in_excess_of_a_flat_tree_give_equally)
{
	check_equals(true, MIB(500));
}
END_TEST

START_TEST(a_granule_goes_to_who_is_owed_a_part_of_it_before_who_is_owed_nothing)
{
	struct memcg *m[4];

	for (size_t i = 0; i < 4; i++)
		m[i] = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));
	for (size_t i = 0; i < 4; i++) {
		root->position = m[i]->id; /* it is first, and had its quarter before */
		m[i]->carry[2] = -(int64_t)(MIB(1) / 4) * MEMCG_CARRY_PAGE;
		plan_for(MIB(1));
		ck_assert_uint_eq(plan.gain, MIB(1));
		ck_assert_uint_eq(gave_all(m[i]), 0);
		m[i]->carry[2] = 0;
	}
}
END_TEST

START_TEST(who_gives_all_it_may_is_passed_over_though_it_is_owed_more)
{
	struct memcg *a = vm(root, PAGES_UNLIMITED, MIB(1), MIB(1));
	struct memcg *b = vm(root, PAGES_UNLIMITED, MIB(10), MIB(10));
	struct memcg *c = vm(root, PAGES_UNLIMITED, MIB(10), MIB(10));

	/* Of 4: 0.2 and 1 from before, and of the others 1.9 less 0.45 each: a granule is left. */
	root->position = a->id;
	a->carry[2] = (int64_t)MIB(1) * MEMCG_CARRY_PAGE;
	b->carry[2] = c->carry[2] = -(int64_t)(MIB(45) / 100) * MEMCG_CARRY_PAGE;
	plan_for(MIB(4));
	ck_assert_uint_eq(gave_all(a), MIB(1));
	ck_assert_uint_eq(gave_all(b) + gave_all(c), MIB(3));
}
END_TEST

START_TEST(going_round_begins_with_the_first_where_who_stands_there_gives_nothing)
{
	struct memcg *m[3];

	for (size_t i = 0; i < 3; i++)
		m[i] = vm(root, PAGES_UNLIMITED, MIB(100), MIB(100));
	m[0]->vm->hold = RECLAIM_HOLD_STATE; /* the last of the row */
	root->position = m[0]->id;
	m[1]->carry[2] = m[2]->carry[2] = -(int64_t)(MIB(1) / 2) * MEMCG_CARRY_PAGE;
	plan_for(MIB(3)); /* 1 each, and nobody is owed the third */
	ck_assert_uint_eq(gave_all(m[1]), MIB(1));
	ck_assert_uint_eq(gave_all(m[2]), MIB(2));
}
END_TEST

START_TEST(a_granule_of_one_page_shares_to_the_page)
{
	struct memcg *a = vm(root, PAGES_UNLIMITED, 300, 300);
	struct memcg *b = vm(root, PAGES_UNLIMITED, 600, 600);

	plan = (struct reclaim_plan){ .shares = shares, .nr_max = VMS * RECLAIM_SHARES };
	reclaim(root, 9, 1, false, &plan);
	ck_assert_uint_eq(gave_all(a), 3);
	ck_assert_uint_eq(gave_all(b), 6);
	ck_assert_uint_eq(plan.gain, 9);
}
END_TEST

START_TEST(two_shares_are_in_order_of_what_is_to_be_inflated)
{
	struct memcg *a = vm(root, PAGES_UNLIMITED, MIB(10), MIB(10));
	struct memcg *b = vm(root, PAGES_UNLIMITED, MIB(10), MIB(10));

	a->vm->slack = 1;
	plan_for(MIB(20));
	ck_assert_ptr_eq(plan.shares[0].memcg, b);
	a->vm->slack = 0;
	b->vm->slack = 1;
	plan_for(MIB(20));
	ck_assert_ptr_eq(plan.shares[0].memcg, a);
}
END_TEST

START_TEST(of_shares_alike_who_came_last_is_asked_first)
{
	struct memcg *m[4];

	for (size_t i = 0; i < 4; i++)
		m[i] = vm(root, PAGES_UNLIMITED, MIB(10), MIB(10));
	plan_for(MIB(40));
	for (size_t i = 0; i < 4; i++)
		ck_assert_ptr_eq(plan.shares[i].memcg, m[3 - i]);
	m[3]->vm->hold = RECLAIM_HOLD_STATE;
	m[0]->vm->slack = m[1]->vm->slack = 1;
	m[2]->vm->slack = 2; /* behind the others, which stay as they were */
	plan_for(MIB(30));
	ck_assert_ptr_eq(plan.shares[0].memcg, m[1]);
	ck_assert_ptr_eq(plan.shares[1].memcg, m[0]);
	ck_assert_ptr_eq(plan.shares[2].memcg, m[2]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("reclaim");
	TCase *t = tcase_create("reclaim");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(
		t, cold_memory_of_excess_then_its_active_then_cold_of_all_then_active_of_all);
	tcase_add_test(t, a_soft_limit_of_zero_is_always_in_excess);
	tcase_add_test(t, cold_memory_of_a_sibling_goes_before_hot_memory_of_another);
	tcase_add_test(t, nothing_is_taken_where_nothing_is_needed);
	tcase_add_test(t, no_cap_goes_below_keep_and_less_than_a_granule_is_nothing);
	tcase_add_test(t, an_excess_of_less_than_a_granule_holds_nothing_up);
	tcase_add_test(t,
		what_a_vm_costs_beyond_its_actual_is_not_taken_from_what_its_soft_limit_protects);
	tcase_add_test(t, what_was_asked_and_has_not_come_is_no_excess_any_more);
	tcase_add_test(t, a_vm_gives_at_most_what_it_is_trusted_with);
	tcase_add_test(t, whoever_is_held_is_not_asked);
	tcase_add_test(t, a_step_gets_what_the_caps_before_it_cannot_cover_and_says_so);
	tcase_add_test(t, low_holds_until_the_end_of_step_four);
	tcase_add_test(t, low_bounds_the_soft_steps_too);
	tcase_add_test(t, there_is_room_for_all_the_shares_that_one_vm_may_have);
	tcase_add_test(t, protection_of_a_group_is_shared_by_what_the_vms_below_claim);
	tcase_add_test(t, min_of_a_group_holds_below_it_but_not_when_it_is_the_root_of_the_reclaim);
	tcase_add_test(t, a_vm_over_its_own_max_is_taken_below_its_low_but_not_below_what_it_keeps);
	tcase_add_test(t, the_excess_of_a_partition_is_one_budget_for_all_below);
	tcase_add_test(t, those_with_an_excess_of_their_own_give_before_others_below_a_partition);
	tcase_add_test(t, every_page_lowers_the_budget_of_each_ancestor);
	tcase_add_test(t, a_budget_used_up_by_the_cold_is_not_used_again_by_the_active);
	tcase_add_test(t, an_excess_above_the_root_of_the_reclaim_does_not_count);
	tcase_add_test(t, a_share_beyond_its_own_excess_is_not_bound_by_its_soft_limit);
	tcase_add_test(t, of_an_excess_of_a_partition_a_part_of_a_granule_is_nothing);
	tcase_add_test(t, a_step_that_would_visit_nobody_is_not_started);
	tcase_add_test(
		t, steps_of_what_guests_alone_say_is_active_are_not_started_where_no_guest_says_so);
	tcase_add_test(t, subtrees_where_nobody_is_in_excess_are_not_entered);
	tcase_add_test(t, a_flat_tree_needs_no_groups);
	tcase_add_test(t, a_vm_that_is_offline_gives_nothing);
	tcase_add_test(t, a_tree_without_vms_is_short_of_all);
	tcase_add_test(
		t, partly_swapped_vms_give_last_in_a_step_and_are_asked_for_more_than_is_gained);
	tcase_add_test(t, two_partly_swapped_vms_bring_the_need_and_no_granule_more);
	tcase_add_test(t, rounds_of_asking_the_partly_swapped_leave_next_to_nothing_of_the_need);
	tcase_add_test(t, what_a_round_owes_to_the_partly_swapped_they_get_in_the_next);
	tcase_add_test(
		t, a_round_of_asking_the_partly_swapped_asks_for_no_granule_that_the_next_need_not);
	tcase_add_test(t, within_a_step_those_with_the_least_to_inflate_come_first);
	tcase_add_test(t, who_has_more_to_inflate_than_to_give_gives_what_those_who_tell_cannot);
	tcase_add_test(t, where_cold_memory_is_guessed_nobody_gives_before_others);
	tcase_add_test(t, what_is_to_be_inflated_holds_no_excess_and_no_active_memory_back);
	tcase_add_test(t, small_needs_over_fifty_vms_are_never_all_zero_and_go_round);
	tcase_add_test(t, needs_of_one_granule_go_round_those_who_are_alike);
	tcase_add_test(t, shares_of_more_pages_than_32_bits_hold_are_in_proportion);
	tcase_add_test(t, carries_are_kept_apart_for_each_root_and_step);
	tcase_add_test(t, what_is_carried_is_never_more_than_a_granule);
	tcase_add_test(t, what_went_round_to_anyone_is_carried_up_to_a_granule);
	tcase_add_test(t, a_dry_run_changes_no_carry_and_no_position);
	tcase_add_test(t, the_position_is_shared_by_all_who_reclaim_there_and_survives_its_child);
	tcase_add_test(t, reclaims_from_two_roots_go_round_the_vms_below_both_together);
	tcase_add_test(t, equals_below_groups_give_equally_whoever_of_four_jobs_asks);
	tcase_add_test(t, equals_in_excess_below_groups_give_equally_whoever_of_four_jobs_asks);
	tcase_add_test(t, equals_of_a_flat_tree_give_equally);
	tcase_add_test(t, equals_in_excess_of_a_flat_tree_give_equally);
	tcase_add_test(t, a_granule_goes_to_who_is_owed_a_part_of_it_before_who_is_owed_nothing);
	tcase_add_test(t, who_gives_all_it_may_is_passed_over_though_it_is_owed_more);
	tcase_add_test(t, going_round_begins_with_the_first_where_who_stands_there_gives_nothing);
	tcase_add_test(t, a_granule_of_one_page_shares_to_the_page);
	tcase_add_test(t, two_shares_are_in_order_of_what_is_to_be_inflated);
	tcase_add_test(t, of_shares_alike_who_came_last_is_asked_first);
	suite_add_tcase(s, t);
	return suite_run(s);
}
