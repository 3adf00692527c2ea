/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What of a VM's memory is cold, and what it must keep: numbers, most of them from the field. */
#include <config.h>

#include "policy/workingset.h"

#include <check.h>
#include <string.h>

#include "tests/unit/suite.h"

#define MIB(n)	 MIB_TO_PAGES(n)
#define GIB(n)	 MIB_TO_PAGES((n)*1024)
#define BYTES(n) (UINT64_C(n) / POLICY_PAGE_SIZE)

/* Of one decimal, rounded up as protections are: 409.6 MiB. */
#define TENTHS_UP(n) (((uint64_t)(n)*MIB(1) + 9) / 10)

static const struct workingset_bounds defaults = {
	.floor_percent = 50,
	.floor_free_only_percent = 75,
	.margin_percent = 10,
	.margin_at_least = MIB(256),
};

static struct workingset_vm vm;
static struct vm_sample s;
static struct workingset set;

/* A guest that has all of its maximum, resident, and tells what it has free and usable. */
static void guest(uint64_t maximum, uint64_t unused, uint64_t usable)
{
	vm = (struct workingset_vm){ .maximum = maximum, .soft_limit = PAGES_UNLIMITED };
	s = (struct vm_sample){
		.known = VM_ACTUAL | VM_FIGURES_PROCESS | VM_UNUSED | VM_USABLE | VM_DISK_CACHES,
		.actual = maximum,
		.resident = maximum,
		.stats_actual = maximum,
		.unused = unused,
		.usable = usable,
	};
}

static void assess(void)
{
	workingset_assess(&defaults, &vm, &s, &set);
}

/* What it may give in the end, as reclaim has it. */
static uint64_t gives(void)
{
	return pages_sub(set.usage, set.keep);
}

/* ---- lists ---- */

START_TEST(the_ratio_is_the_kernels)
{
	ck_assert_uint_eq(workingset_ratio(0, 0), 1);
	ck_assert_uint_eq(workingset_ratio(GIB(1) - 1, 0), 1);
	ck_assert_uint_eq(workingset_ratio(GIB(1) - 1, 1), 3); /* sqrt(10) */
	ck_assert_uint_eq(workingset_ratio(GIB(4), 0), 6);
	ck_assert_uint_eq(workingset_ratio(GIB(5), GIB(5)), 10);
	ck_assert_uint_eq(workingset_ratio(GIB(100), 0), 31);
	ck_assert_uint_eq(workingset_ratio(GIB(1024), 0), 101);
	ck_assert_uint_eq(workingset_ratio(PAGES_UNLIMITED, 0), 414486); /* of 10 (2^34 - 1) */
}
END_TEST

START_TEST(cold_is_what_inactive_has_over_its_part_of_active_rounded_up)
{
	ck_assert_uint_eq(workingset_cold_list(100, 99), 1);
	ck_assert_uint_eq(workingset_cold_list(100, 100), 0);
	ck_assert_uint_eq(workingset_cold_list(0, 50), 0);
	ck_assert_uint_eq(workingset_cold_list(GIB(2), 0), GIB(2));
	ck_assert_uint_eq(workingset_cold_list(GIB(1), 1), GIB(1) - 1); /* a third, rounded up */
	ck_assert_uint_eq(workingset_cold_list(GIB(1), 3), GIB(1) - 1);
	ck_assert_uint_eq(workingset_cold_list(GIB(1), 4), GIB(1) - 2);
	/* Field case BR-92 */
	ck_assert_uint_eq(workingset_cold_list(BYTES(1370939392), BYTES(661635072)), 280858);
	/* Field case BR-141: a sibling with nothing but hot cache has nothing cold. */
	ck_assert_uint_eq(workingset_cold_list(0, MIB(50)), 0);
	ck_assert_uint_eq(workingset_cold_list(MIB(4000), MIB(100)), 1019733);
}
END_TEST

START_TEST(with_lists_cold_is_inactive_file_and_what_lies_free)
{
	guest(GIB(2), MIB(10), GIB(1));
	s.known |= VM_LISTS;
	s.disk_caches = MIB(800);
	s.lists = (struct vm_lists){ .inactive_file = MIB(300),
		.active_file = MIB(200),
		.inactive_anon = MIB(400),
		.active_anon = MIB(100),
		.swap_free = MIB(50) };
	assess(); /* no agent: lists are not for use */
	ck_assert_uint_eq(set.cold, MIB(10 + 100));
	vm.agent = true;
	assess();
	ck_assert_uint_eq(set.cold, MIB(10 + 100));
	s.lists.active_file = MIB(100);
	assess();
	ck_assert_uint_eq(set.cold, MIB(10 + 200));
	vm.guest_swap = true; /* anonymous too, as far as the guest has swap */
	assess();
	ck_assert_uint_eq(set.cold, MIB(10 + 200 + 50));
	s.lists.swap_free = MIB(500);
	assess();
	ck_assert_uint_eq(set.cold, MIB(10 + 200 + 300));
	s.known &= ~(unsigned int)VM_LISTS; /* the agent is there and tells no lists */
	assess();
	ck_assert_uint_eq(set.cold, MIB(10 + 100));
}
END_TEST

/* ---- without an agent ---- */

START_TEST(without_lists_cold_is_what_lies_free_and_an_eighth_of_the_cache)
{
	/* Field case BR-120: 8 GiB, free 1, cache 5, anonymous 2. */
	guest(GIB(8), GIB(1), GIB(6));
	s.disk_caches = GIB(5);
	assess();
	ck_assert_uint_eq(set.cold, MIB(1664)); /* 1.625 GiB */
	ck_assert_uint_eq(set.margin, TENTHS_UP(8192));
	ck_assert_uint_eq(set.keep, GIB(4)); /* the floor; use 2 + margin 0.8 is less */
	ck_assert_uint_eq(gives(), GIB(4));
}
END_TEST

START_TEST(what_lies_free_and_is_not_resident_is_not_cold)
{
	guest(MIB(1000), MIB(600), MIB(700));
	s.resident = MIB(500); /* 500 were never touched: of 600 free 100 can be resident */
	assess();
	ck_assert_uint_eq(set.cold, MIB(100));
	s.resident = MIB(300);
	assess();
	ck_assert_uint_eq(set.cold, 0);
	s.known &= ~(unsigned int)VM_UNUSED;
	s.disk_caches = MIB(80);
	assess();
	ck_assert_uint_eq(set.cold, MIB(10));
	s.known &= ~(unsigned int)VM_DISK_CACHES;
	assess();
	ck_assert_uint_eq(set.cold, 0);
}
END_TEST

START_TEST(cold_is_never_more_than_usage)
{
	guest(MIB(1000), MIB(1000), MIB(1000));
	s.disk_caches = MIB(900);
	assess();
	ck_assert_uint_eq(set.cold, MIB(1000));
}
END_TEST

START_TEST(a_guest_full_of_cache_gives_its_cold_first_and_ends_at_its_floor)
{
	/* Field case BR-121: 44 GiB, use 15.6, cache 28.1, usable 28.5. */
	const uint64_t usable = MIB(28 * 1024 + 512), cache = MIB(28 * 1024) + TENTHS_UP(1024);

	guest(GIB(44), usable - cache, usable);
	s.disk_caches = cache;
	assess();
	ck_assert_uint_eq(set.cold, usable - cache + cache / 8); /* 0.4 + 3.5 */
	ck_assert_uint_ge(set.cold, MIB(3990));
	ck_assert_uint_le(set.cold, MIB(4010));
	ck_assert_uint_eq(gives(), GIB(22));
}
END_TEST

/* ---- usage ---- */

/* Memory was plugged: the balloon says so before the description does. */
START_TEST(no_more_than_the_maximum_is_resident_though_actual_is_over_it)
{
	guest(GIB(1), MIB(10), MIB(500));
	s.actual = GIB(2);
	s.resident = GIB(2);
	assess();
	ck_assert_uint_eq(set.usage, GIB(1));
	ck_assert_uint_eq(set.resident, GIB(1));
}
END_TEST

START_TEST(usage_is_resident_and_swapped_at_most_actual)
{
	/* Field case BR-14, in KiB: actual 1665024, resident 1904032. */
	guest(MIB(16380), 0, 0);
	s.actual = 1665024 / 4;
	s.resident = 1904032 / 4;
	assess();
	ck_assert_uint_eq(set.usage, 1665024 / 4);
	ck_assert_uint_eq(set.resident, 1665024 / 4);
	/* Field case BR-104: what the process has beside guest memory is no excess of the guest. */
	guest(MIB(4096), 0, MIB(4096));
	s.resident = MIB(4090);
	s.swapped = MIB(100);
	s.overhead = MIB(704);
	assess();
	ck_assert_uint_eq(set.usage, MIB(4096));
	ck_assert_uint_eq(set.resident, MIB(4090));
	s.swapped = MIB(5);
	assess();
	ck_assert_uint_eq(set.usage, MIB(4095));
}
END_TEST

START_TEST(a_target_above_usage_would_gain_nothing)
{
	/* Field case BR-58: 2 of 16 GiB are resident; the floor is 8, or 12 where free alone is
	 * told. */
	guest(GIB(16), GIB(14), GIB(15));
	s.resident = GIB(2);
	assess();
	ck_assert_uint_eq(set.usage, GIB(2));
	ck_assert_uint_eq(set.keep, GIB(8));
	ck_assert_uint_eq(gives(), 0);
	s.known &= ~(unsigned int)VM_USABLE;
	assess();
	ck_assert_uint_eq(set.floor, GIB(12));
	ck_assert_uint_eq(gives(), 0);
}
END_TEST

/* ---- what is unknown ---- */

START_TEST(unknown_statistics_make_no_donor_and_no_pressure)
{
	/* Field cases BR-05, BR-14, BR-18: fields that are not there, or a time that stands still.
	 */
	guest(GIB(24), 0, 0);
	s.known &= ~(unsigned int)VM_FIGURES_STATISTICS;
	assess();
	ck_assert(set.usage_known);
	ck_assert_uint_eq(set.usage, GIB(24));
	ck_assert(!set.used_known && !set.donor_known && !set.little_available);
	ck_assert_uint_eq(set.cold, 0);
	ck_assert_uint_eq(set.keep, GIB(12));
	guest(GIB(24), GIB(20), GIB(20));
	s.stale = true;
	assess();
	ck_assert(set.usage_known && !set.used_known && !set.donor_known);
	ck_assert_uint_eq(set.cold, 0);
	s.stale = false;
	assess();
	ck_assert(set.donor_known);
}
END_TEST

START_TEST(one_of_usable_and_unused_is_enough_to_know_what_is_used)
{
	guest(GIB(4), GIB(1), GIB(2));
	s.known &= ~(unsigned int)VM_USABLE;
	assess();
	ck_assert(set.used_known);
	ck_assert_uint_eq(set.guest_used, GIB(3));
	s.known |= VM_USABLE;
	s.known &= ~(unsigned int)VM_UNUSED;
	assess();
	ck_assert(set.used_known);
	ck_assert_uint_eq(set.guest_used, GIB(2));
	ck_assert_uint_eq(set.floor, GIB(2));
}
END_TEST

START_TEST(unknown_swap_is_unknown_usage)
{
	guest(GIB(4), GIB(1), GIB(2));
	s.known &= ~(unsigned int)VM_SWAPPED;
	assess();
	ck_assert(!set.usage_known && !set.donor_known);
	ck_assert_uint_eq(set.usage, 0);
	guest(GIB(4), GIB(1), GIB(2));
	s.known &= ~(unsigned int)VM_RESIDENT;
	assess();
	ck_assert(!set.usage_known && !set.donor_known);
	guest(GIB(4), GIB(1), GIB(2));
	s.known &= ~(unsigned int)VM_ACTUAL;
	assess();
	ck_assert(set.usage_known && !set.donor_known);
	ck_assert_uint_eq(set.actual, GIB(4));
}
END_TEST

START_TEST(a_field_that_is_there_gives_what_floor_and_margin_leave)
{
	/* Field case BR-06: 4 GiB, 3 usable: min(3072 - 409.6, 4096 - 2048) = 2048 MiB. */
	guest(MIB(4096), 0, MIB(3072));
	assess();
	ck_assert_uint_eq(set.margin, TENTHS_UP(4096));
	ck_assert_uint_eq(set.guest_used + set.margin, MIB(1024) + TENTHS_UP(4096));
	ck_assert_uint_eq(gives(), MIB(2048));
}
END_TEST

/* ---- floor and margin ---- */

START_TEST(the_margin_is_a_tenth_or_256_mib_at_most_a_quarter)
{
	ck_assert_uint_eq(workingset_margin(&defaults, MIB(4096)), TENTHS_UP(4096));
	ck_assert_uint_eq(workingset_margin(&defaults, MIB(2560)), MIB(256));
	ck_assert_uint_eq(workingset_margin(&defaults, MIB(2561)), TENTHS_UP(2561));
	ck_assert_uint_eq(workingset_margin(&defaults, MIB(2048)), MIB(256));
	ck_assert_uint_eq(workingset_margin(&defaults, MIB(1024)), MIB(256));
	ck_assert_uint_eq(workingset_margin(&defaults, MIB(512)), MIB(128));
}
END_TEST

START_TEST(the_floor_is_half_of_the_maximum_rounded_up)
{
	guest(1001, 0, 0);
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), 501);
	vm.maximum = 1000;
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), 500);
	s.known &= ~(unsigned int)VM_USABLE;
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), 750);
	s.known &= ~(unsigned int)VM_UNUSED; /* tells nothing at all: not asked anyway */
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), 500);
}
END_TEST

START_TEST(a_tiny_guest_gives_less_than_a_granule)
{
	/* Field case BR-01: a maximum of 1024 KiB. */
	guest(256, 200, 250);
	assess();
	ck_assert_uint_eq(set.floor, 128);
	ck_assert_uint_lt(gives(), MIB(1));
}
END_TEST

START_TEST(a_large_maximum_against_a_small_guest_leaves_nothing_to_take)
{
	/* Field case BR-23: 768 MiB of 131072. */
	guest(MIB(131072), MIB(500), MIB(600));
	s.actual = s.resident = s.stats_actual = MIB(768);
	assess();
	ck_assert_uint_eq(set.floor, MIB(65536));
	ck_assert_uint_eq(set.margin, TENTHS_UP(131072));
	ck_assert_uint_eq(gives(), 0);
	vm.agent = true;
	vm.agent_floor = MIB(100); /* raised to 1/64: page structures */
	assess();
	ck_assert_uint_eq(set.floor, MIB(2048));
	ck_assert_uint_eq(gives(), 0);
}
END_TEST

START_TEST(use_counts_against_the_configured_size)
{
	/* Field case BR-60: 2048 configured, 1400 free: use 648. */
	guest(MIB(2048), MIB(1400), MIB(1400));
	assess();
	ck_assert_uint_eq(set.guest_used, MIB(648));
	ck_assert_uint_eq(set.keep, MIB(1024));
	vm.agent = true;
	vm.agent_floor = MIB(500);
	assess();
	ck_assert_uint_eq(set.floor, MIB(500));
	ck_assert_uint_eq(set.keep, MIB(904));
}
END_TEST

/* 700 committed and 200 of the kernel's: use and margin stay, whatever an agent says. */
START_TEST(BR_74_a_guest_keeps_its_use_and_a_margin_also_where_an_agent_lowers_the_floor)
{
	struct workingset_bounds xen = defaults;

	guest(MIB(2048), MIB(2048 - 900), MIB(2048 - 900));
	assess();
	ck_assert_uint_eq(set.keep, MIB(1156));
	vm.agent = true;
	vm.agent_floor = MIB(500);
	assess();
	ck_assert_uint_eq(set.keep, MIB(1156));
	/* On Xen the agent alone tells what is used. */
	xen.silent_gives = true;
	s.known &= ~VM_FIGURES_STATISTICS;
	vm.agent_floor = MIB(700);
	workingset_assess(&xen, &vm, &s, &set);
	ck_assert_uint_eq(set.keep, MIB(956));
	vm.agent_floor = MIB(900); /* it may raise what the host has set up to a soft limit only */
	workingset_assess(&xen, &vm, &s, &set);
	ck_assert_uint_eq(set.keep, MIB(1024));
	vm.soft_limit = MIB(1200);
	workingset_assess(&xen, &vm, &s, &set);
	ck_assert_uint_eq(set.keep, MIB(1156));
	vm.guest_swap = true; /* it may be driven into its swap: its own floor counts */
	workingset_assess(&xen, &vm, &s, &set);
	ck_assert_uint_eq(set.keep, MIB(900));
}
END_TEST

START_TEST(a_typing_error_in_a_soft_limit_does_not_lower_the_floor)
{
	/* Field case BR-61 */
	guest(MIB(2048), MIB(1900), MIB(1950));
	vm.soft_limit = MIB(10);
	assess();
	ck_assert_uint_eq(set.keep, MIB(1024));
}
END_TEST

START_TEST(ballooned_memory_is_not_the_guests_use)
{
	/* Field case BR-57: 8 GiB, actual 4, 0.1 of it free; tells free memory only. */
	guest(GIB(8), MIB(102), 0);
	s.known &= ~(unsigned int)VM_USABLE;
	s.actual = s.resident = s.stats_actual = GIB(4);
	assess();
	ck_assert_uint_eq(set.guest_used, GIB(4) - MIB(102));
	ck_assert(set.little_available);
	ck_assert_uint_eq(set.floor, GIB(6));
	ck_assert_uint_eq(gives(), 0);
}
END_TEST

START_TEST(little_available_is_less_than_the_margin)
{
	guest(MIB(4096), 0, TENTHS_UP(4096)); /* Field case BR-45: the margin exactly gives 0 */
	assess();
	ck_assert(!set.little_available);
	ck_assert_uint_eq(gives(), 0);
	s.usable += 1;
	assess();
	ck_assert_uint_eq(gives(), 1); /* less than a granule */
	s.usable -= 2;
	assess();
	ck_assert(set.little_available);
}
END_TEST

START_TEST(statistics_older_than_a_cut_count_against_the_size_they_were_made_under)
{
	guest(MIB(4096), MIB(2000), MIB(2000));
	s.actual = s.resident = MIB(3000); /* cut since */
	assess();
	ck_assert_uint_eq(set.guest_used, MIB(2096));
	ck_assert_uint_eq(set.cold, MIB(2000 - 1096));
	guest(MIB(4096), MIB(100), MIB(100));
	s.stats_actual = MIB(3000); /* grown since: what was added is there for it */
	assess();
	ck_assert_uint_eq(set.guest_used, MIB(2900));
	ck_assert(!set.little_available);
	s.actual = MIB(3000) + TENTHS_UP(4096) - MIB(100);
	assess();
	ck_assert(!set.little_available);
	s.actual -= 1;
	assess();
	ck_assert(set.little_available);
}
END_TEST

START_TEST(where_no_guest_tells_anything_one_gives_down_to_its_floor_unless_it_is_stale)
{
	struct workingset_bounds bounds = defaults;

	guest(GIB(1), 0, 0);
	s.known = VM_ACTUAL | VM_FIGURES_PROCESS;
	workingset_assess(&bounds, &vm, &s, &set);
	ck_assert(!set.donor_known);
	bounds.silent_gives = true;
	workingset_assess(&bounds, &vm, &s, &set);
	ck_assert(set.donor_known);
	ck_assert_uint_eq(gives(), GIB(1) / 2);
	ck_assert_uint_eq(set.cold, 0); /* what is cold nobody knows */
	s.stale = true;			/* no driver was seen */
	workingset_assess(&bounds, &vm, &s, &set);
	ck_assert(!set.donor_known);
	/* One that tells something is believed as elsewhere. */
	guest(GIB(1), MIB(100), MIB(300));
	workingset_assess(&bounds, &vm, &s, &set);
	ck_assert(set.donor_known);
	ck_assert_uint_gt(set.keep, GIB(1) / 2);
}
END_TEST

START_TEST(guest_swap_with_an_agent_lifts_use_and_margin_and_nothing_else_does)
{
	guest(MIB(4096), MIB(100), MIB(200));
	assess();
	ck_assert_uint_eq(set.keep, MIB(3896) + TENTHS_UP(4096));
	vm.guest_swap = true;
	assess();
	ck_assert_uint_eq(set.keep, MIB(3896) + TENTHS_UP(4096));
	vm.agent = true;
	assess();
	ck_assert_uint_eq(set.keep, MIB(2048));
	vm.guest_swap = false;
	assess();
	ck_assert_uint_eq(set.keep, MIB(3896) + TENTHS_UP(4096));
}
END_TEST

/* ---- an agent's floor ---- */

START_TEST(an_agent_lowers_the_floor_and_raises_it_up_to_the_soft_limit)
{
	guest(MIB(4096), 0, 0);
	vm.agent_floor = MIB(1000);
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), MIB(2048)); /* no agent */
	vm.agent = true;
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), MIB(1000));
	vm.agent_floor = 0; /* tells none */
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), MIB(2048));
	vm.agent_floor = 1;
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), MIB(64));
	vm.agent_floor = MIB(2048);
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), MIB(2048));
	vm.agent_floor = MIB(3000);
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), MIB(2048)); /* no limit: no more */
	vm.soft_limit = MIB(2500);
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), MIB(2500));
	vm.soft_limit = MIB(3500);
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), MIB(3000));
	vm.soft_limit = MIB(100);
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), MIB(2048));
	vm.trust = true;
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), MIB(3000));
	vm.agent_floor = MIB(5000); /* never above the maximum */
	ck_assert_uint_eq(workingset_floor(&defaults, &vm, &s), MIB(4096));
}
END_TEST

/* Asked for 3072 MiB of 3939, of which 1000 are free and 3189 usable; rounded down to a MiB. */
START_TEST(BR_50_no_more_is_taken_than_use_and_margin_leave)
{
	guest(MIB(3939), MIB(1000), MIB(3189));
	assess();
	ck_assert_uint_eq(gives() / MIB(1), 1969);
	vm.agent = true;
	vm.agent_floor = MIB(750);
	assess();
	ck_assert_uint_eq(set.guest_used, MIB(750));
	ck_assert_uint_eq(gives() / MIB(1), 2795);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("workingset");
	TCase *t = tcase_create("workingset");

	tcase_add_test(t, the_ratio_is_the_kernels);
	tcase_add_test(t, cold_is_what_inactive_has_over_its_part_of_active_rounded_up);
	tcase_add_test(t, with_lists_cold_is_inactive_file_and_what_lies_free);
	tcase_add_test(t, without_lists_cold_is_what_lies_free_and_an_eighth_of_the_cache);
	tcase_add_test(t, what_lies_free_and_is_not_resident_is_not_cold);
	tcase_add_test(t, cold_is_never_more_than_usage);
	tcase_add_test(t, a_guest_full_of_cache_gives_its_cold_first_and_ends_at_its_floor);
	tcase_add_test(t, no_more_than_the_maximum_is_resident_though_actual_is_over_it);
	tcase_add_test(t, usage_is_resident_and_swapped_at_most_actual);
	tcase_add_test(t, a_target_above_usage_would_gain_nothing);
	tcase_add_test(t, unknown_statistics_make_no_donor_and_no_pressure);
	tcase_add_test(t, one_of_usable_and_unused_is_enough_to_know_what_is_used);
	tcase_add_test(t, unknown_swap_is_unknown_usage);
	tcase_add_test(t, a_field_that_is_there_gives_what_floor_and_margin_leave);
	tcase_add_test(t, the_margin_is_a_tenth_or_256_mib_at_most_a_quarter);
	tcase_add_test(t, the_floor_is_half_of_the_maximum_rounded_up);
	tcase_add_test(t, a_tiny_guest_gives_less_than_a_granule);
	tcase_add_test(t, a_large_maximum_against_a_small_guest_leaves_nothing_to_take);
	tcase_add_test(t, use_counts_against_the_configured_size);
	tcase_add_test(
		t, BR_74_a_guest_keeps_its_use_and_a_margin_also_where_an_agent_lowers_the_floor);
	tcase_add_test(t, a_typing_error_in_a_soft_limit_does_not_lower_the_floor);
	tcase_add_test(t, ballooned_memory_is_not_the_guests_use);
	tcase_add_test(t, little_available_is_less_than_the_margin);
	tcase_add_test(t, statistics_older_than_a_cut_count_against_the_size_they_were_made_under);
	tcase_add_test(
		t, where_no_guest_tells_anything_one_gives_down_to_its_floor_unless_it_is_stale);
	tcase_add_test(t, guest_swap_with_an_agent_lifts_use_and_margin_and_nothing_else_does);
	tcase_add_test(t, BR_50_no_more_is_taken_than_use_and_margin_leave);
	tcase_add_test(t, an_agent_lowers_the_floor_and_raises_it_up_to_the_soft_limit);
	suite_add_tcase(suite, t);
	return suite_run(suite);
}
