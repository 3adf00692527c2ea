/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* memcg: the tree, excess carried up, who is eligible, protection, life and death of groups. */
#include <config.h>

#include "policy/memcg.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/draw.h"
#include "tests/unit/suite.h"

#define GIB_PAGES UINT64_C(262144)

/* Linked with --wrap=calloc: the nth allocation from now fails; 0: none does. */
static unsigned int fail_nth;
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	if (fail_nth > 0 && --fail_nth == 0)
		return NULL;
	return __real_calloc(n, size);
}

static struct memcg_tree *tree;

static void setup(void)
{
	fail_nth = 0;
	ck_assert_int_eq(memcg_tree_new(&tree), 0);
}

static void teardown(void)
{
	memcg_tree_free(tree);
}

static struct memcg *group(struct memcg *parent, uint64_t id)
{
	struct memcg *memcg = NULL;

	ck_assert_int_eq(memcg_new(tree, parent, id, &memcg), 0);
	ck_assert_ptr_nonnull(memcg);
	return memcg;
}

static int knobs(struct memcg *memcg, uint64_t soft, uint64_t min, uint64_t low, uint64_t max)
{
	return memcg_set_knobs(memcg, &(struct memcg_knobs){ soft, min, low, max });
}

static void soft(struct memcg *memcg, uint64_t pages)
{
	ck_assert_int_eq(knobs(memcg, pages, 0, 0, PAGES_UNLIMITED), 0);
}

static void low(struct memcg *memcg, uint64_t pages)
{
	ck_assert_int_eq(knobs(memcg, PAGES_UNLIMITED, pages / 2, pages, PAGES_UNLIMITED), 0);
}

/* --- the example of soft-limit-rework-v5.1, patch 3 --- */

static struct memcg *A, *B, *C, *D;

/* A above B above C and D; C uses 60 pages and D 40, so A and B use 100. */
static void example(uint64_t soft_a, uint64_t soft_b, uint64_t soft_c, uint64_t soft_d)
{
	A = group(tree->root, 10);
	B = group(A, 11);
	C = group(B, 12);
	D = group(B, 13);
	memcg_see(C, 60);
	memcg_see(D, 40);
	soft(A, soft_a);
	soft(B, soft_b);
	soft(C, soft_c);
	soft(D, soft_d);
	memcg_verify(tree);
}

/* At a group in a reclaim at root that has taken nothing yet. */
static enum memcg_filter eligible(const struct memcg *memcg, const struct memcg *root)
{
	return memcg_soft_reclaim_eligible(memcg, memcg_in_excess(memcg, root));
}

START_TEST(soft_limit_example_parent_of_the_reclaim_root_over_spares_D)
{
	example(50, 200, 30, 80);
	ck_assert(memcg_in_excess(A, A));
	ck_assert_int_eq(eligible(B, B), MEMCG_SKIP);
	ck_assert_int_eq(eligible(C, B), MEMCG_VISIT);
	ck_assert_int_eq(eligible(D, B), MEMCG_SKIP_TREE);

	/* The same groups, when the pressure comes from A: all below it have to give. */
	ck_assert_int_eq(eligible(A, A), MEMCG_VISIT);
	ck_assert_int_eq(eligible(B, A), MEMCG_VISIT);
	ck_assert_int_eq(eligible(D, A), MEMCG_VISIT);
	ck_assert_int_eq(eligible(D, tree->root), MEMCG_VISIT);
	ck_assert_int_eq(eligible(tree->root, tree->root), MEMCG_SKIP);
	/* And from D itself: it is under its own. */
	ck_assert_int_eq(eligible(D, D), MEMCG_SKIP_TREE);
}
END_TEST

START_TEST(soft_limit_example_reclaim_root_itself_over_makes_all_below_eligible)
{
	example(200, 99, 80, 80);
	ck_assert_int_eq(eligible(B, B), MEMCG_VISIT);
	ck_assert_int_eq(eligible(C, B), MEMCG_VISIT);
	ck_assert_int_eq(eligible(D, B), MEMCG_VISIT);
	ck_assert_int_eq(eligible(A, A), MEMCG_SKIP);
	ck_assert_int_eq(eligible(C, C), MEMCG_SKIP_TREE);
}
END_TEST

START_TEST(soft_limit_example_reclaim_root_under_and_nobody_over_starts_no_pass)
{
	example(200, 100, 60, 40);
	ck_assert_int_eq(eligible(B, B), MEMCG_SKIP_TREE);
	ck_assert_int_eq(eligible(A, A), MEMCG_SKIP_TREE);
	ck_assert_int_eq(eligible(tree->root, tree->root), MEMCG_SKIP_TREE);
}
END_TEST

START_TEST(soft_limit_example_reclaim_root_under_with_its_parent_over_starts_no_pass)
{
	example(99, 100, 60, 40);
	ck_assert_int_eq(eligible(B, B), MEMCG_SKIP_TREE);
	ck_assert_int_eq(eligible(C, B), MEMCG_SKIP_TREE);
	ck_assert_int_eq(eligible(C, A), MEMCG_VISIT);
}
END_TEST

/* --- excess --- */

START_TEST(excess_is_what_is_over_the_soft_limit)
{
	struct memcg *vm = group(tree->root, 2);

	memcg_see(vm, 100);
	ck_assert_uint_eq(memcg_excess(vm), 0);
	ck_assert(!vm->excess);
	soft(vm, 100);
	ck_assert_uint_eq(memcg_excess(vm), 0);
	ck_assert(!vm->excess);
	soft(vm, 99);
	ck_assert_uint_eq(memcg_excess(vm), 1);
	ck_assert(vm->excess);
	soft(vm, 0);
	ck_assert_uint_eq(memcg_excess(vm), 100);
	memcg_see(vm, PAGES_UNLIMITED);
	soft(vm, PAGES_UNLIMITED);
	ck_assert_uint_eq(memcg_excess(vm), 0);
	memcg_verify(tree);
}
END_TEST

START_TEST(a_partition_over_its_limit_is_in_excess_though_its_vms_have_none)
{
	struct memcg *slice = group(tree->root, 2);
	struct memcg *one = group(slice, 3), *two = group(slice, 4);

	soft(slice, 100);
	memcg_see(one, 60);
	ck_assert(!slice->excess);
	memcg_see(two, 60);
	ck_assert(slice->excess);
	ck_assert_uint_eq(memcg_excess(slice), 20);
	ck_assert_uint_eq(tree->root->nr_excess, 1);
	ck_assert_ptr_eq(tree->root->excess_children, slice);
	ck_assert_ptr_null(slice->excess_children);
	ck_assert(memcg_in_excess(one, tree->root));
	ck_assert(!memcg_in_excess(one, one));
	memcg_see(one, 40);
	ck_assert(!slice->excess);
	ck_assert_uint_eq(tree->root->nr_excess, 0);
	ck_assert_ptr_null(tree->root->excess_children);
	memcg_verify(tree);
}
END_TEST

START_TEST(children_in_excess_are_linked_so_that_whole_subtrees_are_skipped)
{
	struct memcg *slices[3], *vms[3];

	for (uint64_t i = 0; i < 3; i++) {
		slices[i] = group(tree->root, 10 + i);
		vms[i] = group(slices[i], 20 + i);
		soft(vms[i], 5);
		memcg_see(vms[i], 10);
	}
	ck_assert_uint_eq(tree->root->nr_excess, 3);
	/* Out of the middle, the head and the rest. */
	memcg_see(vms[1], 5);
	memcg_verify(tree);
	ck_assert_int_eq(eligible(slices[1], tree->root), MEMCG_SKIP_TREE);
	ck_assert_int_eq(eligible(slices[0], tree->root), MEMCG_SKIP);
	memcg_see(vms[2], 0);
	memcg_verify(tree);
	ck_assert_ptr_eq(tree->root->excess_children, slices[0]);
	memcg_see(vms[0], 0);
	memcg_verify(tree);
	ck_assert_ptr_null(tree->root->excess_children);
	ck_assert_int_eq(eligible(tree->root, tree->root), MEMCG_SKIP_TREE);
}
END_TEST

START_TEST(a_limit_counts_as_set_up_to_the_reclaim_root)
{
	struct memcg *slice = group(tree->root, 2);
	struct memcg *vm = group(slice, 3);

	ck_assert(!memcg_limit_set(vm, tree->root));
	soft(slice, 10);
	ck_assert(memcg_limit_set(vm, tree->root));
	ck_assert(memcg_limit_set(vm, slice));
	ck_assert(!memcg_limit_set(vm, vm));
	ck_assert(memcg_is_below(vm, slice));
	ck_assert(memcg_is_below(vm, vm));
	ck_assert(!memcg_is_below(slice, vm));
	ck_assert(!memcg_is_below(vm, group(tree->root, 4)));
}
END_TEST

START_TEST(what_is_owed_is_carried_to_every_ancestor)
{
	struct memcg *slice = group(tree->root, 2);
	struct memcg *one = group(slice, 3), *two = group(slice, 4);

	memcg_owe(one, 100, 60);
	memcg_owe(two, 50, 50);
	memcg_owe(one, -30, -30);
	ck_assert_uint_eq(one->owed, 70);
	ck_assert_uint_eq(slice->owed, 120);
	ck_assert_uint_eq(tree->root->owed, 120);
	ck_assert_uint_eq(tree->root->owed_gain, 80);
	memcg_verify(tree);
	ck_assert_int_eq(memcg_kill(one), 0);
	ck_assert_uint_eq(memcg_reap(tree), 1);
	ck_assert_uint_eq(tree->root->owed, 50);
	memcg_verify(tree);
}
END_TEST

START_TEST(what_many_leaves_changed_is_carried_once_to_each_ancestor)
{
	struct memcg *slice = group(tree->root, 2);
	struct memcg *one = group(slice, 3), *two = group(slice, 4), *flat = group(tree->root, 5);

	soft(slice, 50);
	soft(flat, 10);
	memcg_see_later(one, 40);
	memcg_see_later(two, 20);
	memcg_see_later(flat, 11);
	memcg_owe_later(two, 6, 4);
	ck_assert_uint_eq(one->seen, 40);
	ck_assert(flat->excess);
	ck_assert_uint_eq(slice->seen, 0); /* not yet */
	ck_assert_uint_eq(tree->root->nr_excess, 0);
	ck_assert_uint_eq(tree->root->owed, 0);
	memcg_carry(tree);
	ck_assert(slice->excess);
	ck_assert_uint_eq(tree->root->seen, 71);
	ck_assert_uint_eq(tree->root->nr_excess, 2);
	ck_assert_uint_eq(tree->root->owed, 6);
	ck_assert_uint_eq(tree->root->owed_gain, 4);
	memcg_verify(tree);
	memcg_see_later(one, 20); /* there and back again: nothing comes of it */
	memcg_see_later(one, 40);
	memcg_carry(tree);
	ck_assert_uint_eq(tree->root->nr_excess, 2);
	memcg_verify(tree);
}
END_TEST

START_TEST(changes_below_many_groups_are_carried_too)
{
	struct memcg *vms[40];

	for (uint64_t i = 0; i < 40; i++)
		vms[i] = group(group(tree->root, 100 + i), 200 + i);
	for (uint64_t i = 0; i < 40; i++)
		memcg_see_later(vms[i], i);
	memcg_charge_later(tree->root, 7); /* it has no parent to carry it to */
	memcg_carry(tree);
	ck_assert_uint_eq(tree->root->seen, 39 * 40 / 2);
	memcg_verify(tree);
}
END_TEST

START_TEST(a_slab_gives_objects_of_zeros_and_those_that_came_back_again)
{
	struct slab slab;
	char *objects[200];

	slab_init(&slab, 100);
	for (int i = 0; i < 200; i++) {
		objects[i] = slab_get(&slab);
		ck_assert_ptr_nonnull(objects[i]);
		ck_assert_uint_eq((uintptr_t)objects[i] % 64, 0);
		for (int k = 0; k < 100; k++)
			ck_assert_int_eq(objects[i][k], 0);
		memset(objects[i], i, 100);
	}
	for (int i = 0; i < 200; i++)
		ck_assert_int_eq(objects[i][99], (char)i);
	slab_put(&slab, NULL);
	slab_put(&slab, objects[7]);
	objects[8] = slab_get(&slab);
	ck_assert_ptr_eq(objects[8], objects[7]);
	ck_assert_int_eq(objects[8][99], 0);
	slab_drop(&slab);
	slab_drop(&slab);
}
END_TEST

/* --- knobs --- */

START_TEST(knobs_that_contradict_are_refused_and_change_nothing)
{
	struct memcg *vm = group(tree->root, 2);
	const uint64_t over = PAGES_UNLIMITED + 1;

	ck_assert_int_eq(knobs(vm, 1, 2, 3, 4), 0);
	ck_assert_int_eq(knobs(vm, 1, 5, 3, 4), -EINVAL);
	ck_assert_int_eq(knobs(vm, over, 0, 0, 9), -EINVAL);
	ck_assert_int_eq(knobs(vm, 0, 0, over, 9), -EINVAL);
	ck_assert_int_eq(knobs(vm, 0, 0, 0, over), -EINVAL);
	/* All that is allowed: low without an end, and min as large as max (BR-52). */
	ck_assert_int_eq(knobs(vm, PAGES_UNLIMITED, 4, PAGES_UNLIMITED, 4), 0);
	ck_assert_int_eq(knobs(vm, 1, 2, 3, 4), 0);
	ck_assert_uint_eq(vm->knobs.soft_limit, 1);
	ck_assert_uint_eq(vm->knobs.min, 2);
	ck_assert_uint_eq(vm->knobs.low, 3);
	ck_assert_uint_eq(vm->knobs.max, 4);
	ck_assert_uint_eq(vm->memory.max, 4);
	ck_assert_int_eq(memcg_kill(vm), 0);
	ck_assert_int_eq(knobs(vm, 1, 2, 3, 4), -ENODEV);
}
END_TEST

/* --- protection --- */

static void protect(struct memcg *memcg, const struct memcg *root)
{
	memcg_protect(memcg, root);
	memcg_for_each_child (child, memcg)
		protect(child, root);
}

/* BR-93 */
START_TEST(protection_below_a_parent_without_any_is_zero)
{
	struct memcg *slice = group(tree->root, 2);
	struct memcg *vm = group(slice, 3);

	memcg_see(vm, 2 * GIB_PAGES);
	low(vm, GIB_PAGES);
	protect(tree->root, tree->root);
	ck_assert_uint_eq(vm->plan.protected_low, 0);
	ck_assert_uint_eq(vm->plan.protected_min, 0);
}
END_TEST

/* BR-93 */
START_TEST(protection_of_the_parent_is_shared_by_what_the_children_claim)
{
	struct memcg *slice = group(tree->root, 2);
	struct memcg *one = group(slice, 3), *two = group(slice, 4);

	memcg_see(one, 2 * GIB_PAGES);
	memcg_see(two, GIB_PAGES);
	low(slice, 2 * GIB_PAGES);
	low(one, 3 * GIB_PAGES / 2);
	low(two, 3 * GIB_PAGES / 2);
	protect(tree->root, tree->root);
	ck_assert_uint_eq(slice->plan.protected_low, 2 * GIB_PAGES);
	/* 1.2 and 0.8 GiB, rounded down: never above 2 GiB together. */
	ck_assert_uint_eq(one->plan.protected_low, 12 * GIB_PAGES / 10);
	ck_assert_uint_eq(two->plan.protected_low, 8 * GIB_PAGES / 10);
	ck_assert_uint_le(one->plan.protected_low + two->plan.protected_low, 2 * GIB_PAGES);
	/* min, half of each, claims 0.75 and 0.75 of 1 GiB. */
	ck_assert_uint_eq(one->plan.protected_min, GIB_PAGES / 2);
	ck_assert_uint_eq(two->plan.protected_min, GIB_PAGES / 2);
}
END_TEST

START_TEST(protection_that_nobody_claims_is_shared_by_usage)
{
	struct memcg *slice = group(tree->root, 2);
	struct memcg *one = group(slice, 3), *two = group(slice, 4);

	memcg_see(one, 300);
	memcg_see(two, 200);
	low(slice, 200);
	low(one, 100);
	protect(tree->root, tree->root);
	/* One claims 100; the other 100 go by the 200 and 200 that are not claimed. */
	ck_assert_uint_eq(one->plan.protected_low, 150);
	ck_assert_uint_eq(two->plan.protected_low, 50);

	/* One page more is claimed than there is. */
	low(slice, 399);
	low(one, 200);
	low(two, 200);
	protect(tree->root, tree->root);
	ck_assert_uint_eq(one->plan.protected_low, 199);
	ck_assert_uint_eq(two->plan.protected_low, 199);

	/* All is claimed that is used. */
	low(slice, 1000);
	low(one, 300);
	low(two, 200);
	protect(tree->root, tree->root);
	ck_assert_uint_eq(slice->plan.protected_low, 500);
	ck_assert_uint_eq(one->plan.protected_low, 300);
	ck_assert_uint_eq(two->plan.protected_low, 200);
}
END_TEST

/* BR-138 */
START_TEST(protection_of_the_reclaim_root_itself_does_not_hold)
{
	struct memcg *slice = group(tree->root, 2);
	struct memcg *vm = group(slice, 3);

	memcg_see(vm, 100);
	low(slice, 60);
	low(vm, 80);
	protect(tree->root, tree->root);
	ck_assert_uint_eq(vm->plan.protected_low, 60);
	protect(slice, slice);
	ck_assert_uint_eq(slice->plan.protected_low, 0);
	ck_assert_uint_eq(slice->plan.protected_min, 0);
	ck_assert_uint_eq(vm->plan.protected_low, 80);
	protect(vm, vm);
	ck_assert_uint_eq(vm->plan.protected_low, 0);
}
END_TEST

/* --- life --- */

START_TEST(new_groups_are_refused_where_they_cannot_be)
{
	struct memcg *none = NULL, *parent = tree->root, *vm = group(parent, 2);
	uint64_t id = 100;

	ck_assert_int_eq(memcg_new(tree, parent, 0, &none), -EINVAL);
	ck_assert_int_eq(memcg_new(tree, parent, 2, &none), -EEXIST);
	ck_assert_int_eq(memcg_new(tree, parent, MEMCG_ROOT_ID, &none), -EEXIST);
	vm->vm = (void *)vm;
	ck_assert_int_eq(memcg_new(tree, vm, 3, &none), -EINVAL);
	vm->vm = NULL;
	memcg_see(vm, 1);
	ck_assert_int_eq(memcg_new(tree, vm, 3, &none), -EINVAL);
	memcg_see(vm, 0);
	page_counter_move(&vm->memory, 1);
	ck_assert_int_eq(memcg_new(tree, vm, 3, &none), -EINVAL);
	page_counter_move(&vm->memory, -1);
	memcg_owe(vm, 1, 0);
	ck_assert_int_eq(memcg_new(tree, vm, 3, &none), -EINVAL);
	memcg_owe(vm, -1, 0);
	ck_assert_int_eq(memcg_kill(vm), 0);
	ck_assert_int_eq(memcg_new(tree, vm, 3, &none), -ENODEV);
	for (int i = 0; i < 64; i++)
		parent = group(parent, id++);
	ck_assert_uint_eq(parent->level, MEMCG_MAX_DEPTH);
	vm = group(parent->parent, id++); /* another one, there */
	ck_assert_ptr_ne(vm, parent);
	ck_assert_uint_eq(parent->id, vm->id - 1);
	ck_assert_int_eq(memcg_new(tree, parent, id, &none), -ELOOP);
	ck_assert_ptr_null(none);
	memcg_verify(tree);
}
END_TEST

START_TEST(groups_are_found_by_id_while_the_table_grows_and_after)
{
	for (uint64_t id = 2; id < 1000; id++)
		group(tree->root, id * id);
	for (uint64_t id = 2; id < 1000; id++)
		ck_assert_uint_eq(memcg_find(tree, id * id)->id, id * id);
	ck_assert_ptr_null(memcg_find(tree, 2));
	ck_assert_ptr_null(memcg_find(tree, 0));
	ck_assert_uint_eq(tree->nr_buckets, 1024); /* 999 groups, and each bucket can be picked */
	memcg_verify(tree);
}
END_TEST

START_TEST(killed_while_over_takes_its_excess_back_and_keeps_its_pages)
{
	struct memcg *slice = group(tree->root, 2);
	struct memcg *one = group(slice, 3), *two = group(slice, 4);

	soft(slice, 70);
	soft(one, 10);
	memcg_see(one, 50);
	memcg_see(two, 30);
	css_get(&one->css); /* who still holds it */
	ck_assert_uint_eq(tree->root->nr_excess, 2);
	ck_assert_int_eq(memcg_kill(one), 0);
	ck_assert_uint_eq(tree->root->nr_excess, 1);
	ck_assert_uint_eq(slice->nr_excess, 0);
	ck_assert_uint_eq(slice->nr_children, 1);
	ck_assert_ptr_eq(slice->children, two);
	ck_assert(!one->excess);
	ck_assert_uint_eq(slice->seen, 80);
	ck_assert(slice->excess);
	ck_assert_int_eq(memcg_kill(one), -ENODEV);
	ck_assert_uint_eq(memcg_reap(tree), 0);
	ck_assert_ptr_eq(memcg_find(tree, 3), one);
	memcg_verify(tree);
	memcg_see(one, 20); /* some pages went */
	ck_assert_uint_eq(slice->seen, 50);
	ck_assert(!slice->excess);
	css_put(&one->css);
	ck_assert_uint_eq(memcg_reap(tree), 1);
	ck_assert_uint_eq(slice->seen, 30);
	ck_assert_ptr_null(memcg_find(tree, 3));
	memcg_verify(tree);
}
END_TEST

START_TEST(a_parent_is_killed_after_its_children_and_freed_after_them)
{
	struct memcg *slice = group(tree->root, 2);
	struct memcg *one = group(slice, 3), *two = group(slice, 4), *three = group(slice, 5);

	ck_assert_int_eq(memcg_kill(tree->root), -EINVAL);
	ck_assert_int_eq(memcg_kill(slice), -EBUSY);
	css_get(&one->css);
	css_get(&two->css);
	css_get(&three->css);
	ck_assert_int_eq(memcg_kill(two), 0);
	ck_assert_int_eq(memcg_kill(three), 0);
	ck_assert_int_eq(memcg_kill(slice), -EBUSY);
	ck_assert_int_eq(memcg_kill(one), 0);
	ck_assert_int_eq(memcg_kill(slice), 0);
	memcg_verify(tree);
	ck_assert_uint_eq(memcg_reap(tree), 0);
	css_put(&three->css);
	ck_assert_uint_eq(memcg_reap(tree), 1);
	css_put(&two->css);
	ck_assert_uint_eq(memcg_reap(tree), 1);
	memcg_verify(tree);
	css_put(&one->css);
	ck_assert_uint_eq(memcg_reap(tree), 2);
	ck_assert_uint_eq(tree->nr_groups, 1);
	memcg_verify(tree);
}
END_TEST

/* BR-94 */
START_TEST(sixty_five_thousand_create_and_kill_cycles_leave_no_group)
{
	struct memcg *slice = group(tree->root, 2);

	soft(slice, 1);
	for (uint64_t i = 0; i < 65536; i++) {
		struct memcg *vm = group(slice, 3 + i);

		memcg_see(vm, 10);
		ck_assert_int_eq(memcg_kill(vm), 0);
		ck_assert_uint_eq(memcg_reap(tree), 1);
	}
	ck_assert_uint_eq(tree->nr_groups, 2);
	ck_assert_uint_eq(css_refs(&slice->css), 1);
	ck_assert_uint_eq(tree->root->seen, 0);
	ck_assert_uint_eq(tree->root->nr_excess, 0);
	memcg_verify(tree);
}
END_TEST

/* BR-94 */
START_TEST(a_walk_meets_none_of_ten_thousand_killed_groups)
{
	struct memcg *held[10000], *live = group(tree->root, 2);
	size_t met = 0;

	for (uint64_t i = 0; i < 10000; i++) {
		held[i] = group(tree->root, 3 + i);
		css_get(&held[i]->css);
		ck_assert_int_eq(memcg_kill(held[i]), 0);
	}
	memcg_for_each_child (child, tree->root) {
		ck_assert_ptr_eq(child, live);
		met++;
	}
	ck_assert_uint_eq(met, 1);
	ck_assert_uint_eq(tree->nr_groups, 10002);
	for (int i = 0; i < 10000; i++)
		css_put(&held[i]->css);
	ck_assert_uint_eq(memcg_reap(tree), 10000);
	memcg_verify(tree);
}
END_TEST

/* BR-94 */
START_TEST(a_reused_id_finds_nothing_of_the_old_group)
{
	struct memcg *vm = group(tree->root, 2);

	memcg_carries(vm, 0)[1] = -5;
	vm->position = 7;
	ck_assert_int_eq(memcg_kill(vm), 0);
	ck_assert_uint_eq(memcg_reap(tree), 1);
	vm = group(tree->root, 2);
	ck_assert_int_eq(memcg_carries(vm, 0)[1], 0);
	ck_assert_uint_eq(vm->position, 0);
}
END_TEST

/* BR-95 */
START_TEST(the_root_is_immortal)
{
	css_get_many(&tree->root->css, 1000000);
	css_put_many(&tree->root->css, 2000000);
	ck_assert_uint_eq(memcg_reap(tree), 0);
	group(tree->root, 2);
	memcg_verify(tree);
}
END_TEST

START_TEST(failed_allocations_leave_the_tree_as_it_was)
{
	struct memcg_tree *other = NULL;
	struct memcg *none = NULL;
	uint64_t id = 2;

	memcg_tree_free(NULL);
	for (unsigned int nth = 1; nth <= 3; nth++) { /* tree, table, root */
		fail_nth = nth;
		ck_assert_int_eq(memcg_tree_new(&other), -ENOMEM);
		ck_assert_ptr_null(other);
	}
	fail_nth = 1;
	ck_assert_int_eq(memcg_new(tree, tree->root, id, &none), -ENOMEM);
	ck_assert_ptr_null(none);
	ck_assert_ptr_null(memcg_find(tree, id));
	memcg_verify(tree);
	/* Without a larger table it only takes longer. */
	while (tree->nr_groups < tree->nr_buckets)
		group(tree->root, id++);
	fail_nth = 1;
	group(tree->root, id++);
	ck_assert_uint_eq(fail_nth, 0);
	for (uint64_t i = 2; i < id; i++)
		ck_assert_uint_eq(memcg_find(tree, i)->id, i);
	memcg_verify(tree);
}
END_TEST

/* --- a million random operations --- */

/* Few groups, so that a recount after every one is quick; held ones are offline and not yet gone.
 */
#define LIVE_MAX 10
#define HELD_MAX 4

static uint64_t knob_value(void)
{
	return below(3) ? below(1000) : PAGES_UNLIMITED;
}

static struct memcg *live[LIVE_MAX], *held[HELD_MAX];
static size_t nr_live, nr_held;
static uint64_t next_id, kills, frees, moves;

static bool leaf(const struct memcg *m)
{
	return !m->children && !m->offline_children;
}

static void op_new(void)
{
	struct memcg *m = live[below(nr_live)], *new;
	bool refused = leaf(m) && (m->seen || m->owed);

	if (nr_live == LIVE_MAX)
		return;
	ck_assert_int_eq(memcg_new(tree, m, next_id, &new), refused ? -EINVAL : 0);
	if (refused)
		return;
	live[nr_live++] = new;
	next_id++;
}

static void op_kill(size_t at)
{
	struct memcg *m = live[at];
	bool hold = nr_held < HELD_MAX && below(2);
	int r;

	if (m == tree->root)
		return;
	if (hold)
		css_get(&m->css);
	r = memcg_kill(m);
	ck_assert_int_eq(r, m->children ? -EBUSY : 0);
	if (hold && r == 0)
		held[nr_held++] = m;
	else if (hold)
		css_put(&m->css);
	if (r == 0) {
		kills++;
		live[at] = live[--nr_live];
	}
}

/* One hand-over: its pages go to a new group below another parent, and the old one is killed. */
static void op_move(void)
{
	size_t at = below(nr_live);
	struct memcg *m = live[at], *parent = live[below(nr_live)], *new;
	uint64_t pages = m->seen;

	if (m == tree->root || m == parent || !leaf(m) || nr_live == LIVE_MAX ||
		(leaf(parent) && (parent->seen || parent->owed)))
		return;
	ck_assert_int_eq(memcg_new(tree, parent, next_id++, &new), 0);
	memcg_see_later(m, 0);
	memcg_see_later(new, pages);
	memcg_owe_later(m, -(int64_t)m->owed, -(int64_t)m->owed_gain);
	memcg_carry(tree);
	live[nr_live++] = new;
	op_kill(at);
	moves++;
}

static void op_reap(void)
{
	if (nr_held && below(2)) {
		size_t h = below(nr_held);

		css_put(&held[h]->css);
		held[h] = held[--nr_held];
	}
	frees += memcg_reap(tree);
}

static void op_owe(struct memcg *m)
{
	int64_t pages = below(2) ? (int64_t)below(100) : -(int64_t)below(m->owed + 1);
	uint64_t gain = below(m->owed + (uint64_t)pages + 1);

	memcg_owe(m, pages, (int64_t)(gain - m->owed_gain));
}

/* A tick's samples: many leaves, carried together. */
static void op_sample(void)
{
	for (uint64_t n = 1 + below(LIVE_MAX); n; n--) {
		struct memcg *m = live[below(nr_live)];

		if (leaf(m))
			memcg_see_later(m, below(4) ? below(1000) : 0);
	}
	memcg_carry(tree);
}

static void op_knobs(struct memcg *m)
{
	uint64_t max = knob_value();
	int r = knobs(m, knob_value(), below(1000), below(1000), max);

	ck_assert(r == 0 || (r == -EINVAL && max < 1000));
}

static void random_op(void)
{
	size_t at = below(nr_live);
	struct memcg *m = live[at];

	switch (below(12)) {
	case 0:
	case 1:
		op_new();
		break;
	case 2:
	case 3:
	case 4:
		if (leaf(m))
			memcg_see(m, below(4) ? below(1000) : 0);
		break;
	case 5:
	case 6:
		op_sample();
		break;
	case 7:
		op_knobs(m);
		break;
	case 8:
		if (leaf(m))
			op_owe(m);
		break;
	case 9:
		op_kill(at);
		break;
	case 10:
		op_move();
		break;
	default:
		op_reap();
	}
}

START_TEST(after_each_of_a_million_random_operations_a_recount_says_the_same)
{
	rng = 1;
	live[0] = tree->root;
	nr_live = 1;
	next_id = 2;
	for (uint64_t i = 0; i < 1000000; i += suite_every()) {
		random_op();
		memcg_verify(tree);
	}
	while (nr_held)
		css_put(&held[--nr_held]->css);
	frees += memcg_reap(tree);
	memcg_verify(tree);
	ck_assert_uint_eq(kills, frees);
	ck_assert_uint_gt(kills, 10000 / suite_every());
	ck_assert_uint_gt(moves, 5000 / suite_every());
	ck_assert_uint_eq(tree->nr_groups, nr_live);
}
END_TEST

/* --- the recount notices --- */

START_TEST(recount_notices_a_wrong_count_of_excess)
{
	group(tree->root, 2);
	tree->root->nr_excess = 1;
	memcg_verify(tree);
}
END_TEST

START_TEST(recount_notices_a_missing_link)
{
	struct memcg *vm = group(tree->root, 2);

	soft(vm, 0);
	memcg_see(vm, 1);
	tree->root->excess_children = NULL;
	memcg_verify(tree);
}
END_TEST

START_TEST(recount_notices_pages_that_are_not_carried)
{
	group(tree->root, 2)->seen = 1;
	memcg_verify(tree);
}
END_TEST

START_TEST(seeing_pages_in_an_inner_group_is_noticed)
{
	struct memcg *slice = group(tree->root, 2);

	group(slice, 3);
	memcg_see(slice, 1);
}
END_TEST

START_TEST(seeing_more_than_pages_unlimited_is_noticed)
{
	memcg_see(group(tree->root, 2), PAGES_UNLIMITED + 1);
}
END_TEST

START_TEST(owing_less_than_nothing_is_noticed)
{
	memcg_owe(group(tree->root, 2), -1, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memcg");
	TCase *tc = tcase_create("memcg");
	const char *fork_mode = getenv("CK_FORK");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, soft_limit_example_parent_of_the_reclaim_root_over_spares_D);
	tcase_add_test(tc, soft_limit_example_reclaim_root_itself_over_makes_all_below_eligible);
	tcase_add_test(tc, soft_limit_example_reclaim_root_under_and_nobody_over_starts_no_pass);
	tcase_add_test(
		tc, soft_limit_example_reclaim_root_under_with_its_parent_over_starts_no_pass);
	tcase_add_test(tc, excess_is_what_is_over_the_soft_limit);
	tcase_add_test(tc, a_partition_over_its_limit_is_in_excess_though_its_vms_have_none);
	tcase_add_test(tc, children_in_excess_are_linked_so_that_whole_subtrees_are_skipped);
	tcase_add_test(tc, a_limit_counts_as_set_up_to_the_reclaim_root);
	tcase_add_test(tc, what_is_owed_is_carried_to_every_ancestor);
	tcase_add_test(tc, knobs_that_contradict_are_refused_and_change_nothing);
	tcase_add_test(tc, protection_below_a_parent_without_any_is_zero);
	tcase_add_test(tc, protection_of_the_parent_is_shared_by_what_the_children_claim);
	tcase_add_test(tc, protection_that_nobody_claims_is_shared_by_usage);
	tcase_add_test(tc, protection_of_the_reclaim_root_itself_does_not_hold);
	tcase_add_test(tc, new_groups_are_refused_where_they_cannot_be);
	tcase_add_test(tc, groups_are_found_by_id_while_the_table_grows_and_after);
	tcase_add_test(tc, killed_while_over_takes_its_excess_back_and_keeps_its_pages);
	tcase_add_test(tc, a_parent_is_killed_after_its_children_and_freed_after_them);
	tcase_add_test(tc, sixty_five_thousand_create_and_kill_cycles_leave_no_group);
	tcase_add_test(tc, a_walk_meets_none_of_ten_thousand_killed_groups);
	tcase_add_test(tc, a_reused_id_finds_nothing_of_the_old_group);
	tcase_add_test(tc, the_root_is_immortal);
	tcase_add_test(tc, failed_allocations_leave_the_tree_as_it_was);
	tcase_add_test(tc, after_each_of_a_million_random_operations_a_recount_says_the_same);
	tcase_add_test(tc, what_many_leaves_changed_is_carried_once_to_each_ancestor);
	tcase_add_test(tc, changes_below_many_groups_are_carried_too);
	tcase_add_test(tc, a_slab_gives_objects_of_zeros_and_those_that_came_back_again);
	if (!fork_mode || strcmp(fork_mode, "no") != 0) { /* an abort would end all */
		tcase_add_test_raise_signal(tc, recount_notices_a_wrong_count_of_excess, SIGABRT);
		tcase_add_test_raise_signal(tc, recount_notices_a_missing_link, SIGABRT);
		tcase_add_test_raise_signal(
			tc, recount_notices_pages_that_are_not_carried, SIGABRT);
		tcase_add_test_raise_signal(tc, seeing_pages_in_an_inner_group_is_noticed, SIGABRT);
		tcase_add_test_raise_signal(
			tc, seeing_more_than_pages_unlimited_is_noticed, SIGABRT);
		tcase_add_test_raise_signal(tc, owing_less_than_nothing_is_noticed, SIGABRT);
	}
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
