/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The guest's lists: what reclaim takes first, what it leaves alone, and that nothing gets lost. */
#include <config.h>

#include "hv/sim/memory.h"

#include <check.h>
#include <string.h>

#include "hv/sim/guest_internal.h"
#include "hv/sim/rival.h"
#include "tests/unit/suite.h"

#define MIB UINT64_C(1048576)

static uint64_t reclaim(struct memory *m, uint64_t bytes, uint64_t swap, bool priority_0)
{
	struct memory_reclaim how = { .bytes = bytes, .swap = swap, .priority_0 = priority_0 };

	return memory_reclaim(m, &how);
}

START_TEST(cold_page_cache_goes_before_what_is_touched)
{
	struct memory m;
	unsigned int hot, cold;

	memory_init(&m);
	hot = memory_region_new(&m, MEMORY_MAPPED);
	cold = memory_region_new(&m, MEMORY_ONCE);
	memory_add(&m, hot, 50 * MIB, false, false);
	memory_add(&m, cold, 100 * MIB, false, false);
	memory_touch(&m, hot, 10);
	ck_assert_uint_eq(reclaim(&m, 90 * MIB, 0, false), 90 * MIB);
	ck_assert_uint_ge(m.regions[hot].resident, 48 * MIB);
}
END_TEST

START_TEST(what_nobody_touched_since_it_was_looked_at_goes)
{
	struct memory m;
	unsigned int hot;

	memory_init(&m);
	hot = memory_region_new(&m, MEMORY_MAPPED);
	memory_add(&m, hot, 50 * MIB, true, false);
	ck_assert_uint_eq(reclaim(&m, 50 * MIB, 0, false), 50 * MIB);
	ck_assert_uint_eq(m.regions[hot].out, 50 * MIB);
	ck_assert(memory_missing(&m, hot, 100) > 49 * MIB);
	memory_fault_in(&m, hot, 10 * MIB);
	ck_assert_uint_eq(m.refaults, 10 * MIB);
	ck_assert_uint_eq(m.regions[hot].resident, 10 * MIB);
}
END_TEST

START_TEST(anonymous_memory_stays_without_swap_and_while_there_is_page_cache)
{
	struct memory m;
	unsigned int anon, cold;

	memory_init(&m);
	anon = memory_region_new(&m, MEMORY_ANON);
	cold = memory_region_new(&m, MEMORY_ONCE);
	memory_add(&m, anon, 50 * MIB, false, false);
	memory_add(&m, cold, 50 * MIB, false, false);
	ck_assert_uint_eq(reclaim(&m, 40 * MIB, 100 * MIB, false), 40 * MIB);
	ck_assert_uint_eq(m.swapped, 0);
	ck_assert_uint_eq(reclaim(&m, 40 * MIB, 0, false), 10 * MIB);
	ck_assert_uint_eq(m.swapped, 0);
	ck_assert_uint_eq(reclaim(&m, 40 * MIB, 20 * MIB, false), 20 * MIB);
	ck_assert_uint_eq(m.swapped, 20 * MIB);
}
END_TEST

START_TEST(at_priority_0_both_kinds_are_taken_alike)
{
	struct memory m;
	unsigned int anon, cold;

	memory_init(&m);
	anon = memory_region_new(&m, MEMORY_ANON);
	cold = memory_region_new(&m, MEMORY_ONCE);
	memory_add(&m, anon, 50 * MIB, false, false);
	memory_add(&m, cold, 50 * MIB, false, false);
	ck_assert_uint_eq(reclaim(&m, 40 * MIB, 100 * MIB, true), 40 * MIB);
	ck_assert_uint_ge(m.swapped, 19 * MIB);
	ck_assert_uint_le(m.swapped, 21 * MIB);
}
END_TEST

START_TEST(dirty_pages_are_written_before_they_go)
{
	struct memory m;
	unsigned int file;

	memory_init(&m);
	file = memory_region_new(&m, MEMORY_ONCE);
	memory_add(&m, file, 10 * MIB, false, true);
	ck_assert_uint_eq(reclaim(&m, MIB, 0, false), 0);
	ck_assert(m.met_dirty);
	ck_assert_uint_eq(memory_write(&m, 4 * MIB), 4 * MIB);
	ck_assert_uint_eq(m.dirty, 6 * MIB);
	ck_assert_uint_eq(reclaim(&m, 8 * MIB, 0, false), 4 * MIB);
	ck_assert_uint_eq(memory_used(&m), 6 * MIB);
}
END_TEST

START_TEST(file_read_again_is_active_and_one_that_does_not_fit_is_never_there)
{
	struct memory m;
	unsigned int file;

	memory_init(&m);
	file = memory_region_new(&m, MEMORY_CYCLIC);
	m.regions[file].size = 100 * MIB;
	ck_assert_uint_eq(memory_read_missing(&m, file, 100 * MIB), 100 * MIB);
	memory_read(&m, file, 100 * MIB);
	ck_assert_uint_eq(memory_read_missing(&m, file, 100 * MIB), 0);
	memory_read(&m, file, 100 * MIB);
	ck_assert_uint_eq(m.sums[MEMORY_ACTIVE_FILE], 100 * MIB);
	/* What is evicted is what is read next. */
	reclaim(&m, 20 * MIB, 0, false);
	ck_assert_uint_eq(memory_read_missing(&m, file, 20 * MIB), 20 * MIB);
}
END_TEST

START_TEST(what_of_a_file_is_read_for_the_first_time_is_no_refault)
{
	struct memory m;
	unsigned int file;

	memory_init(&m);
	file = memory_region_new(&m, MEMORY_CYCLIC);
	m.regions[file].size = m.regions[file].out = m.regions[file].fresh = 100 * MIB;
	memory_read(&m, file, 60 * MIB);
	ck_assert_uint_eq(reclaim(&m, 20 * MIB, 0, false), 20 * MIB);
	memory_read(&m, file, 40 * MIB);
	ck_assert_uint_eq(m.refaults, 0);
	ck_assert_uint_eq(m.regions[file].out, 20 * MIB);
	/* The second time it is missed. */
	memory_read(&m, file, 30 * MIB);
	ck_assert_uint_eq(m.refaults, 20 * MIB);
	ck_assert_uint_eq(m.regions[file].out, 0);
}
END_TEST

/* A file of 100 MiB that is active, and of another 20 MiB were evicted and are read again. */
static void evict_and_read_again(struct memory *m, bool activates)
{
	unsigned int file, other;

	memory_init(m);
	m->activates = activates;
	file = memory_region_new(m, MEMORY_CYCLIC);
	other = memory_region_new(m, MEMORY_CYCLIC);
	m->regions[file].size = 100 * MIB;
	m->regions[other].size = 20 * MIB;
	memory_read(m, file, 200 * MIB);
	memory_read(m, other, 20 * MIB);
	ck_assert_uint_eq(m->sums[MEMORY_ACTIVE_FILE], 100 * MIB);
	for (unsigned int i = 0; i < 20 && m->regions[other].resident; i++)
		reclaim(m, m->regions[other].resident, 0, false);
	memory_read(m, other, 20 * MIB);
}

START_TEST(what_refaults_soon_is_active_where_the_kernel_activates_it)
{
	struct memory m;

	evict_and_read_again(&m, false);
	ck_assert_uint_eq(m.activated, 0);
	ck_assert_uint_ge(m.sums[MEMORY_INACTIVE_FILE], 20 * MIB);
	evict_and_read_again(&m, true);
	ck_assert_uint_ge(m.activated, 16 * MIB);
	ck_assert_uint_eq(m.nr_shadows, 0);
	/* While that goes on no active list is too short to be deactivated. */
	ck_assert_uint_ne(m.activated, m.activated_seen);
	reclaim(&m, MIB, 0, false);
	ck_assert_uint_eq(m.activated, m.activated_seen);
}
END_TEST

START_TEST(shadows_of_a_file_that_is_gone_are_gone)
{
	struct memory m;
	unsigned int file;

	memory_init(&m);
	m.activates = true;
	file = memory_region_new(&m, MEMORY_CYCLIC);
	m.regions[file].size = 20 * MIB;
	memory_read(&m, file, 20 * MIB);
	reclaim(&m, 20 * MIB, 0, false);
	ck_assert_uint_gt(m.nr_shadows, 0);
	memory_region_drop(&m, file);
	ck_assert_uint_eq(m.nr_shadows, 0);
}
END_TEST

START_TEST(what_was_read_while_it_was_active_needs_one_read_to_be_so_again)
{
	struct memory m;
	unsigned int file;

	for (unsigned int reads = 2; reads <= 3; reads++) {
		memory_init(&m);
		file = memory_region_new(&m, MEMORY_CYCLIC);
		m.regions[file].size = 40 * MIB;
		memory_read(&m, file, reads * 40 * MIB);
		ck_assert_uint_eq(m.sums[MEMORY_ACTIVE_FILE], 40 * MIB);
		reclaim(&m, 10 * MIB, 0, false); /* deactivates at least as much */
		memory_read(&m, file, 40 * MIB);
		if (reads == 2)
			ck_assert_uint_lt(m.sums[MEMORY_ACTIVE_FILE], 30 * MIB + MIB);
		else
			ck_assert_uint_le(m.sums[MEMORY_INACTIVE_FILE], 10 * MIB);
	}
}
END_TEST

START_TEST(a_pass_scans_the_same_part_of_each_list)
{
	struct memory m;
	struct memory_reclaim how = { .bytes = 100 * MIB, .scan = 8 * MIB };
	unsigned int cold, file;

	memory_init(&m);
	file = memory_region_new(&m, MEMORY_CYCLIC);
	m.regions[file].size = 60 * MIB;
	memory_read(&m, file, 120 * MIB);
	cold = memory_region_new(&m, MEMORY_ONCE);
	memory_add(&m, cold, 20 * MIB, false, false);
	/* A tenth of 60 MiB active and of 20 MiB inactive. */
	ck_assert_uint_eq(memory_reclaim(&m, &how), 2 * MIB);
	ck_assert_uint_eq(m.regions[file].resident, 60 * MIB);
	ck_assert_uint_eq(m.sums[MEMORY_ACTIVE_FILE], 54 * MIB);
}
END_TEST

START_TEST(nothing_gets_lost_in_a_million_pages_of_anything)
{
	struct memory m;
	unsigned int regions[4];
	uint64_t z = 7, sum;

	memory_init(&m);
	for (unsigned int i = 0; i < 4; i++)
		regions[i] = memory_region_new(&m, MEMORY_ONCE + i);
	m.regions[regions[MEMORY_CYCLIC - MEMORY_ONCE]].size = 64 * MIB;
	for (unsigned int n = 0; n < 20000; n++) {
		unsigned int r;
		uint64_t bytes;

		z = z * UINT64_C(6364136223846793005) + 1442695040888963407;
		r = regions[(z >> 33) % 4];
		bytes = ((z >> 40) % 64 + 1) * MEMORY_PAGE;
		if (m.regions[r].use == MEMORY_CYCLIC)
			memory_read(&m, r, bytes);
		else
			memory_add(&m, r, bytes, z & 1, m.regions[r].use == MEMORY_ONCE && z & 2);
		memory_touch(&m, r, 0.01);
		if (n % 3 == 0)
			reclaim(&m, 2 * bytes, 64 * MIB, n % 30 == 0);
		if (n % 5 == 0)
			memory_write(&m, bytes);
		sum = 0;
		for (unsigned int i = 0; i < 4; i++)
			sum += m.regions[regions[i]].resident;
		ck_assert_uint_eq(sum, memory_used(&m));
		ck_assert_uint_le(m.dirty, sum);
		ck_assert_uint_le(m.swapped, 64 * MIB);
	}
	for (unsigned int i = 0; i < 4; i++)
		memory_region_drop(&m, regions[i]);
	ck_assert_uint_eq(memory_used(&m), 0);
	ck_assert_uint_eq(m.dirty, 0);
	ck_assert_uint_eq(m.swapped, 0);
}
END_TEST

static struct guest cached_guest(uint64_t cache)
{
	struct guest_params params;
	struct guest guest;

	guest_params_default(&params);
	params.maximum = 1024 * MIB;
	params.cache_cold = cache;
	guest_init(&guest, &params);
	guest_start(&guest, 0, 0);
	return guest;
}

START_TEST(hammer_takes_a_quarter_of_the_largest_excess_and_then_of_all_and_global_in_proportion)
{
	struct guest a = cached_guest(400 * MIB), b = cached_guest(800 * MIB), c = b;
	struct rival_guest guests[] = { { &a, 0, NULL }, { &b, 600 * MIB, NULL },
		{ &c, UINT64_MAX, NULL } };
	struct rival_host host = { guests, 3, NULL, 0 };
	uint64_t usage = guest_usage(&a), before[3] = { usage, guest_usage(&b), guest_usage(&c) };

	rival_find("hammer")->reclaim(&host, MIB);
	ck_assert_uint_ge(usage - guest_usage(&a), usage / 4 - MIB);
	ck_assert_uint_le(usage - guest_usage(&a), usage / 4 + MIB);
	/* The global pass always after: of everyone, whatever the soft one brought. */
	ck_assert_uint_gt(before[1] - guest_usage(&b), 0);
	ck_assert_uint_le(before[1] - guest_usage(&b), 2 * MIB);
	ck_assert_uint_gt(before[2] - guest_usage(&c), 0);
	ck_assert_uint_le(before[2] - guest_usage(&c), 2 * MIB);
	a = cached_guest(400 * MIB);
	b = c = cached_guest(800 * MIB);
	rival_find("global")->reclaim(&host, 50 * MIB);
	ck_assert_uint_ge(before[1] - guest_usage(&b), 15 * MIB);
	ck_assert_uint_ge(usage - guest_usage(&a), 7 * MIB);
	ck_assert_uint_le(usage - guest_usage(&a), 20 * MIB);
}
END_TEST

START_TEST(what_a_guest_has_free_is_the_hosts_again_when_it_is_told)
{
	struct guest a = cached_guest(400 * MIB);
	uint64_t usage = guest_usage(&a), actual = guest_actual(&a);

	ck_assert_uint_eq(guest_report_free(&a, UINT64_MAX), 0);
	ck_assert_uint_eq(guest_give_back(&a, GUEST_FILES, 100 * MIB), 100 * MIB);
	ck_assert_uint_eq(guest_usage(&a), usage);
	ck_assert_uint_eq(guest_report_free(&a, 30 * MIB), 30 * MIB);
	ck_assert_uint_eq(guest_report_free(&a, UINT64_MAX), 70 * MIB);
	ck_assert_uint_eq(guest_usage(&a), usage - 100 * MIB);
	ck_assert_uint_eq(guest_actual(&a), actual);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory");
	TCase *lists = tcase_create("lists");

	tcase_add_test(lists, cold_page_cache_goes_before_what_is_touched);
	tcase_add_test(lists, what_nobody_touched_since_it_was_looked_at_goes);
	tcase_add_test(lists, anonymous_memory_stays_without_swap_and_while_there_is_page_cache);
	tcase_add_test(lists, at_priority_0_both_kinds_are_taken_alike);
	tcase_add_test(lists, dirty_pages_are_written_before_they_go);
	tcase_add_test(lists, file_read_again_is_active_and_one_that_does_not_fit_is_never_there);
	tcase_add_test(lists, what_of_a_file_is_read_for_the_first_time_is_no_refault);
	tcase_add_test(lists, what_refaults_soon_is_active_where_the_kernel_activates_it);
	tcase_add_test(lists, shadows_of_a_file_that_is_gone_are_gone);
	tcase_add_test(lists, what_was_read_while_it_was_active_needs_one_read_to_be_so_again);
	tcase_add_test(lists, a_pass_scans_the_same_part_of_each_list);
	tcase_add_test(lists, nothing_gets_lost_in_a_million_pages_of_anything);
	tcase_add_test(lists,
		hammer_takes_a_quarter_of_the_largest_excess_and_then_of_all_and_global_in_proportion);
	tcase_add_test(lists, what_a_guest_has_free_is_the_hosts_again_when_it_is_told);
	suite_add_tcase(suite, lists);
	return suite_run(suite);
}
