/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Simulated VMMs that fault page by page, under the daemon's own core: what the counters and
 * references of their groups are at every step, beside what the guests really have.
 */
#include <config.h>

#include "hv/sim/virtual.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/charge.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#define S	UINT64_C(1000000)
#define PAGES	MIB_TO_PAGES
#define VMS_MAX 3

static struct virtual *virtual;
static struct scenario *scenario;
static char dir[SCRATCH_PATH];
static unsigned int steps, stocked; /* steps with something in a stock */
static uint64_t restarted;	    /* nobody is there from then on */

static struct memcg *group_of(const char *name)
{
	struct core *core = virtual_core(virtual);
	uint64_t id;

	return core_find(core, name, &id) < 0 ? NULL
					      : memcg_find(engine_tree(core_engine(core)), id);
}

static uint64_t charged(const char *name)
{
	struct sim_vm_view view;

	ck_assert_int_eq(sim_vm_view(virtual_sim(virtual), name, &view), 0);
	ck_assert_uint_eq(view.charged % POLICY_PAGE_SIZE, 0);
	/* Exact, and so is what is said of it. */
	if (view.charged > 0)
		ck_assert_uint_eq(view.charged, guest_usage(view.guest));
	return view.charged / POLICY_PAGE_SIZE;
}

static uint64_t over(const char *name)
{
	struct sim_vm_view view;

	ck_assert_int_eq(sim_vm_view(virtual_sim(virtual), name, &view), 0);
	return view.paging->over;
}

/* At every step: ahead of what is real by a batch at most, with a reference for each page. */
static void look_at(const char *name)
{
	const struct memcg *leaf = group_of(name);
	uint64_t has = charged(name), counter = leaf ? page_counter_read(&leaf->memory) : 0;

	if (!leaf || !has)
		return;
	ck_assert_uint_ge(counter, has);
	ck_assert_uint_le(counter, has + CHARGE_BATCH);
	stocked += counter > has;
	/* Its own, the VMM's, and the dirty list's where it is on that. */
	ck_assert_uint_eq(css_refs(&leaf->css), counter + 2 + leaf->dirty);
}

static void look(void *ctx, uint64_t now)
{
	static const char *const names[] = { "a", "b", "c" };
	const struct memcg *group = group_of("/vmm");

	steps++;
	for (size_t i = 0; i < VMS_MAX; i++)
		look_at(names[i]);
	if (group && now < restarted)
		ck_assert_uint_le(
			page_counter_read(&group->memory), PAGES(256) + over("a") + over("b"));
	if (now > restarted + S)
		ck_assert_ptr_null(group_of("a"));
}

static void play(const char *text)
{
	const struct virtual_watch watch = { .step = look };
	char path[SCRATCH_PATH + 16], *errors = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "%s/play.sim", dir);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file,
		"[scenario]\nlength = 40s\n[pool]\nsize = 4GiB\n[group /vmm]\nmax = 256MiB\n%s",
		text);
	fclose(file);
	ck_assert_msg(scenario_load(path, &scenario, &errors) == 0, "%s", errors);
	ck_assert_int_eq(virtual_new(scenario, &watch, &virtual), 0);
	ck_assert_int_eq(virtual_run(virtual), 0);
}

static void setup(void)
{
	scratch_new(dir);
	steps = stocked = 0;
	restarted = 100 * S;
}

static void teardown(void)
{
	virtual_free(virtual);
	scenario_free(scenario);
}

#define VM(name, more)                                                                             \
	"[vm " name "]\nmemory = 512MiB\npager = yes\nfixed = 16MiB\n"                             \
	"free-page-reporting = yes\n" more

START_TEST(counters_are_ahead_by_a_batch_at_most_never_over_a_max_and_exact_at_rest)
{
	play(VM("a", "group = /vmm\nat 2s = grow 100MiB rate 20MiB\nat 20s = shrink 60MiB\n")
			VM("b", "group = /vmm\nat 3s = grow 180MiB rate 30MiB\n")
				VM("c", "at 2s = grow 100MiB rate 7MiB\n"));
	ck_assert_uint_gt(stocked, 100);
	ck_assert_uint_eq(charged("a"), PAGES(56));
	ck_assert_uint_eq(charged("b"), PAGES(196));
	ck_assert_uint_ge(over("b"), 1);
	ck_assert_uint_le(over("b"), 20); /* one a second that it waited in vain */
	ck_assert_uint_eq(page_counter_read(&group_of("a")->memory), PAGES(56));
	ck_assert_uint_eq(page_counter_read(&group_of("/vmm")->memory), PAGES(56) + PAGES(196));
	ck_assert_uint_eq(group_of("/vmm")->seen, PAGES(56) + PAGES(196));
	memcg_verify(engine_tree(core_engine(virtual_core(virtual))));
}
END_TEST

START_TEST(a_vmm_that_died_or_came_anew_unseen_leaves_nothing_and_its_siblings_have_theirs)
{
	size_t groups;

	play(VM("a", "group = /vmm\nhot = 50MiB\nat 5s = off\n")
			VM("b", "group = /vmm\nhot = 50MiB\nat 10s = recreate\n")
				VM("c", "group = /vmm\nhot = 50MiB\n"));
	ck_assert_ptr_null(group_of("a"));
	ck_assert_uint_eq(charged("a"), 0);
	ck_assert_uint_eq(charged("b"), PAGES(66));
	ck_assert_uint_eq(charged("c"), PAGES(66));
	ck_assert_uint_eq(page_counter_read(&group_of("b")->memory), PAGES(66));
	ck_assert_uint_eq(page_counter_read(&group_of("/vmm")->memory), 2 * PAGES(66));
	groups = engine_tree(core_engine(virtual_core(virtual)))->nr_groups;
	ck_assert_uint_eq(groups, 4); /* the root, /vmm, b, c */
}
END_TEST

START_TEST(who_is_there_when_the_daemon_dies_is_the_kernels_from_then_on)
{
	struct sim_vm_view view;

	restarted = 20 * S;
	play("[operator]\nat 20s = restart\n" VM(
		"a", "group = /vmm\nhot = 50MiB\nat 25s = grow 300MiB rate 100MiB\n") VM("b",
		"group = /vmm\noff = yes\nhot = 20MiB\nat 30s = start\n") VM("c", ""));
	ck_assert_int_eq(sim_vm_view(virtual_sim(virtual), "a", &view), 0);
	ck_assert_uint_eq(view.charged, 0);
	ck_assert_uint_eq(guest_usage(view.guest), UINT64_C(366) << 20);
	/* One that starts later hands its memory to the new one. */
	ck_assert_uint_eq(charged("b"), PAGES(36));
	ck_assert_uint_eq(page_counter_read(&group_of("/vmm")->memory), PAGES(36));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim_paging");
	TCase *tc = tcase_create("sim_paging");

	scratch_begin();
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(
		tc, counters_are_ahead_by_a_batch_at_most_never_over_a_max_and_exact_at_rest);
	tcase_add_test(tc,
		a_vmm_that_died_or_came_anew_unseen_leaves_nothing_and_its_siblings_have_theirs);
	tcase_add_test(tc, who_is_there_when_the_daemon_dies_is_the_kernels_from_then_on);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
