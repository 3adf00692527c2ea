/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is due of a Xen domain by and by (pure, domain.h): when its driver is seen, what rests,
 * nudges, caps, whose word a target is. Names that begin with a BR number are field cases.
 */
#include <config.h>

#include "hv/xen/domain.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/suite.h"

#define SEC   UINT64_C(1000000)
#define GUEST (512 * UINT64_C(1024)) /* KiB */

static const struct xen_times times = {
	.rest = SEC, .nudge_first = 2 * SEC, .nudge_most = 16 * SEC, .driver = 60 * SEC
};

static xc_domaininfo_t info_of(uint64_t tot_kib, uint64_t max_kib)
{
	xc_domaininfo_t info;

	memset(&info, 0, sizeof(info));
	info.flags = XEN_DOMINF_running;
	info.cpu_time = 1;
	info.tot_pages = tot_kib / DOMAIN_PAGE_KIB;
	info.max_pages = max_kib / DOMAIN_PAGE_KIB;
	return info;
}

static void look(struct domain *d, uint64_t now, uint64_t tot_kib, uint64_t max_kib)
{
	xc_domaininfo_t info = info_of(tot_kib, max_kib);

	domain_look(d, now, &info, times.rest);
}

/* Adopted at that size, its driver seen. */
static struct domain adopted(uint64_t target_kib, uint64_t tot_kib, uint64_t max_kib)
{
	struct domain d = { .static_max_kib = target_kib, .driver = true };

	domain_told(&d, target_kib);
	look(&d, 1, tot_kib, max_kib);
	look(&d, 1 + 2 * SEC, tot_kib, max_kib);
	return d;
}

static enum domain_deed due(struct domain *d, uint64_t now, uint64_t *ret_kib)
{
	enum domain_deed deed = domain_due(d, now, &times, ret_kib);

	if (deed != DOMAIN_NOTHING)
		domain_wrote(d, now, &times, deed, *ret_kib);
	return deed;
}

START_TEST(BR_63_what_the_toolstack_adds_is_no_memory_of_the_guest_and_no_reason_to_be_stuck)
{
	struct domain d = adopted(524288, 524288 + 1024, 524288 + 1024);
	uint64_t kib;

	ck_assert_uint_eq(domain_actual_kib(&d), 524288);
	ck_assert_uint_eq(domain_overhead_kib(&d), 1024);
	ck_assert_uint_eq(domain_max_kib(&d, 524288), 524288 + 1024);
	domain_set(&d, 4 * SEC, 524288, &times);
	ck_assert_int_eq(due(&d, 100 * SEC, &kib), DOMAIN_NOTHING);
	/* Short by less than counts. */
	look(&d, 101 * SEC, 524288 + 1024 - 900, 524288 + 1024);
	ck_assert_int_eq(due(&d, 200 * SEC, &kib), DOMAIN_NOTHING);
}
END_TEST

START_TEST(BR_133_a_shim_s_memory_stays_over_every_target)
{
	struct domain d = { .static_max_kib = 4194304, .base_kib = 69632, .driver = true };

	domain_told(&d, 4194304);
	look(&d, 1, 4194304 + 69632, 4194304); /* capped without it */
	ck_assert_uint_eq(domain_max_kib(&d, 4194304), 4263936);
	ck_assert_uint_eq(domain_actual_kib(&d), 4194304);
}
END_TEST

START_TEST(an_offset_is_learned_where_it_rests_near_its_target_only)
{
	struct domain d = { .static_max_kib = GUEST };

	domain_told(&d, GUEST);
	look(&d, 1, GUEST - 100 * 1024, GUEST + 1024); /* on its way */
	look(&d, 5 * SEC, GUEST - 100 * 1024, GUEST + 1024);
	ck_assert(!d.offset_known);
	look(&d, 6 * SEC, GUEST + 64, GUEST + 1024);
	ck_assert(!d.offset_known); /* it has not rested */
	look(&d, 8 * SEC, GUEST + 64, GUEST + 1024);
	ck_assert(d.offset_known && d.offset_kib == 64);
}
END_TEST

/*
 * The case has no target at all before control/feature-balloon is there. Linux's driver never
 * writes that key: it is seen by one page, and by nothing else. Who has the key is told none; see
 * BR_64_a_guest_that_says_that_it_has_a_driver_is_not_told_a_page.
 */
START_TEST(BR_64_nobody_is_told_anything_but_one_page_before_its_driver_is_seen)
{
	struct domain d = { .static_max_kib = GUEST };
	uint64_t kib;

	domain_told(&d, GUEST);
	look(&d, 1, GUEST, GUEST + 1024);
	ck_assert_int_eq(due(&d, 10 * SEC, &kib), DOMAIN_NOTHING); /* nobody asked for it */
	d.period_s = 1;
	ck_assert_int_eq(due(&d, 11 * SEC, &kib), DOMAIN_PROBE);
	ck_assert_uint_eq(kib, GUEST - 4);
	for (uint64_t now = 12; now < 40; now++) {
		look(&d, now * SEC, GUEST, GUEST + 1024);
		ck_assert_int_eq(due(&d, now * SEC, &kib), DOMAIN_NOTHING);
		ck_assert(!d.driver);
	}
	/* At 40 s its driver comes, and does what stands there. */
	look(&d, 40 * SEC, GUEST - 4, GUEST + 1024);
	ck_assert(d.driver);
	ck_assert_int_eq(due(&d, 40 * SEC, &kib), DOMAIN_CLEAR);
	ck_assert_uint_eq(kib, GUEST);
	look(&d, 41 * SEC, GUEST, GUEST + 1024);
	ck_assert_int_eq(due(&d, 60 * SEC, &kib), DOMAIN_NOTHING);
}
END_TEST

START_TEST(what_a_guest_frees_while_it_boots_is_no_driver)
{
	struct domain d = { .static_max_kib = GUEST, .period_s = 1 };
	uint64_t kib;

	domain_told(&d, GUEST);
	look(&d, 1, GUEST, GUEST + 1024);
	ck_assert_int_eq(due(&d, 2, &kib), DOMAIN_PROBE);
	look(&d, SEC, GUEST - 2048, GUEST + 1024);
	ck_assert(!d.driver);
	look(&d, 2 * SEC, GUEST - 2048 - 4, GUEST + 1024);
	ck_assert(d.driver);
}
END_TEST

START_TEST(a_guest_that_was_on_its_way_when_it_was_told_one_page_is_told_again_at_rest)
{
	struct domain d = { .static_max_kib = GUEST, .period_s = 1 };
	uint64_t kib;

	domain_told(&d, GUEST / 2);
	look(&d, 1, GUEST, GUEST + 1024);
	ck_assert_int_eq(due(&d, 2, &kib), DOMAIN_PROBE);
	look(&d, 1 * SEC, GUEST / 2 + 4096, GUEST + 1024);
	look(&d, 2 * SEC, GUEST / 2 - 4, GUEST + 1024); /* all of it in one go */
	ck_assert(!d.driver);
	ck_assert_int_eq(due(&d, 2 * SEC - 1, &kib), DOMAIN_NOTHING); /* a time from before */
	ck_assert_int_eq(due(&d, 2 * SEC, &kib), DOMAIN_NOTHING);
	ck_assert_int_eq(due(&d, 2 * SEC + times.rest - 1, &kib), DOMAIN_NOTHING);
	ck_assert_int_eq(due(&d, 2 * SEC + times.rest, &kib), DOMAIN_PROBE);
	ck_assert_uint_eq(kib, GUEST / 2);
	ck_assert_int_eq(due(&d, 100 * SEC, &kib), DOMAIN_NOTHING);
	look(&d, 101 * SEC, GUEST / 2, GUEST + 1024);
	ck_assert(d.driver);
}
END_TEST

START_TEST(a_guest_that_stands_where_one_page_less_would_bring_it_is_told_again_the_other_way)
{
	struct domain d = { .static_max_kib = GUEST, .period_s = 1 };
	uint64_t kib;

	domain_told(&d, GUEST);
	look(&d, 1, GUEST, GUEST + 1024);
	ck_assert_int_eq(due(&d, 10 * SEC, &kib), DOMAIN_PROBE);
	domain_set(&d, 11 * SEC, GUEST, &times);
	look(&d, 11 * SEC, GUEST - 4, GUEST + 1024); /* for the page before */
	ck_assert(!d.driver);
	ck_assert_int_eq(due(&d, 11 * SEC, &kib), DOMAIN_PROBE);
	ck_assert_uint_eq(kib, GUEST - 4);
	ck_assert_int_eq(due(&d, 12 * SEC - 1, &kib), DOMAIN_NOTHING);
	ck_assert_int_eq(due(&d, 12 * SEC, &kib), DOMAIN_PROBE);
	ck_assert_uint_eq(kib, GUEST);
	ck_assert_int_eq(due(&d, 100 * SEC, &kib), DOMAIN_NOTHING);
	look(&d, 101 * SEC, GUEST, GUEST + 1024);
	ck_assert(d.driver);
}
END_TEST

START_TEST(BR_71_a_guest_that_is_populated_on_demand_is_never_told_less_before_its_driver)
{
	struct domain d = { .static_max_kib = 4000 * 1024, .period_s = 1 };
	xc_domaininfo_t info = info_of(400 * 1024, 401 * 1024);
	uint64_t kib;

	info.flags |= XEN_DOMINF_hvm_guest;
	domain_told(&d, 400 * 1024);
	domain_look(&d, 1, &info, times.rest);
	ck_assert_int_eq(due(&d, SEC, &kib), DOMAIN_PROBE);
	ck_assert_uint_eq(kib, 400 * 1024 + 4);
	/* Nor when it moved for another reason, and is told its own target again. */
	info.tot_pages += 1024;
	domain_look(&d, 2 * SEC, &info, times.rest);
	ck_assert_int_eq(due(&d, 3 * SEC, &kib), DOMAIN_PROBE);
	ck_assert_uint_eq(kib, 400 * 1024);
	info.tot_pages--;
	domain_look(&d, 4 * SEC, &info, times.rest);
	ck_assert(d.driver);
}
END_TEST

START_TEST(BR_71_a_guest_that_is_populated_on_demand_and_shows_no_driver_is_warned_of_once)
{
	static const uint64_t sizes[][2] = { { 400, 4000 }, { 2048, 3000 },
		{ 2048, 2048 } }; /* MiB */

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct domain d = { .static_max_kib = sizes[i][1] * 1024, .period_s = 1 };
		xc_domaininfo_t info = info_of(sizes[i][0] * 1024, sizes[i][0] * 1024 + 1024);
		bool below = sizes[i][0] < sizes[i][1];
		uint64_t kib;

		info.flags |= XEN_DOMINF_hvm_guest;
		domain_told(&d, sizes[i][0] * 1024);
		domain_look(&d, 1, &info, times.rest);
		ck_assert(!domain_warns(&d, 100 * SEC, &times)); /* not looked for yet */
		ck_assert_int_eq(due(&d, 100 * SEC, &kib), DOMAIN_PROBE);
		ck_assert(!domain_warns(&d, 160 * SEC - 1, &times));
		ck_assert(domain_warns(&d, 160 * SEC, &times) == below);
		ck_assert(!domain_warns(&d, 161 * SEC, &times));
	}
}
END_TEST

START_TEST(BR_71_who_shows_a_driver_or_has_all_its_pages_is_not_warned_of)
{
	struct domain pv = { .static_max_kib = 4000 * 1024, .period_s = 1 }, d = pv;
	xc_domaininfo_t info = info_of(400 * 1024, 401 * 1024);
	uint64_t kib;

	domain_told(&pv, 400 * 1024);
	domain_look(&pv, 1, &info, times.rest);
	ck_assert_int_eq(due(&pv, SEC, &kib), DOMAIN_PROBE);
	ck_assert(!domain_warns(&pv, 1000 * SEC, &times));
	info.flags |= XEN_DOMINF_hvm_guest;
	domain_told(&d, 400 * 1024);
	domain_look(&d, 1, &info, times.rest);
	ck_assert_int_eq(due(&d, SEC, &kib), DOMAIN_PROBE);
	info.tot_pages++;
	domain_look(&d, 2 * SEC, &info, times.rest);
	ck_assert(!domain_warns(&d, 1000 * SEC, &times));
}
END_TEST

START_TEST(BR_68_a_cap_is_never_below_what_the_guest_has_and_comes_after_it_gave)
{
	struct domain d = adopted(434444, 434444, 434444 + 1024);
	uint64_t kib;

	domain_set(&d, 4 * SEC, 406452, &times);
	ck_assert_int_eq(due(&d, 4 * SEC, &kib), DOMAIN_NOTHING);
	look(&d, 5 * SEC, 423860, 434444 + 1024); /* half of the way */
	ck_assert_int_eq(due(&d, 5 * SEC, &kib), DOMAIN_NOTHING);
	look(&d, 6 * SEC, 406452, 434444 + 1024);
	ck_assert_int_eq(due(&d, 6 * SEC, &kib), DOMAIN_MAX);
	ck_assert_uint_eq(kib, 406452 + 1024);
	look(&d, 7 * SEC, 406452, kib);
	ck_assert_int_eq(due(&d, 9 * SEC, &kib), DOMAIN_NOTHING);
	/* One that was found under too small a cap is given room for its target. */
	look(&d, 10 * SEC, 406452, 406452);
	ck_assert_int_eq(due(&d, 10 * SEC, &kib), DOMAIN_MAX);
	ck_assert_uint_eq(kib, 406452 + 1024);
}
END_TEST

/* A driver that met a full host takes what it has for its limit, until a target is written. */
START_TEST(BR_134_a_guest_whose_growth_stopped_is_told_again_after_a_pause)
{
	struct domain d = { .static_max_kib = 2097152, .driver = true };
	uint64_t kib;

	domain_told(&d, 1048576);
	look(&d, 1, 1048576, 1048576 + 1024);
	domain_set(&d, 10 * SEC, 2097152, &times);
	look(&d, 10 * SEC, 1258292, 2097152 + 1024); /* 0.2 GiB were free */
	ck_assert_int_eq(due(&d, 10 * SEC, &kib), DOMAIN_NOTHING);
	ck_assert_int_eq(due(&d, 12 * SEC - 1, &kib), DOMAIN_NOTHING);
	ck_assert_int_eq(due(&d, 12 * SEC, &kib), DOMAIN_NUDGE);
	ck_assert_uint_eq(kib, 2097152 - 4);
	/* There is room by now: what it is told the next time is what is meant. */
	ck_assert_int_eq(due(&d, 16 * SEC - 1, &kib), DOMAIN_NOTHING);
	ck_assert_int_eq(due(&d, 16 * SEC, &kib), DOMAIN_NUDGE);
	ck_assert_uint_eq(kib, 2097152);
	look(&d, 17 * SEC, 2097152, 2097152 + 1024);
	ck_assert_int_eq(due(&d, 100 * SEC, &kib), DOMAIN_NOTHING);
}
END_TEST

START_TEST(a_guest_that_stands_short_is_told_again_a_page_beside_with_pauses_that_double)
{
	struct domain d = adopted(GUEST, GUEST, GUEST + 1024);
	uint64_t at[8], kib, now = 10 * SEC;
	unsigned int nr = 0;

	domain_set(&d, now, GUEST / 2, &times);
	look(&d, now, GUEST - 4096, GUEST + 1024); /* stands */
	for (uint64_t end = now + 100 * SEC; now < end && nr < 8; now += SEC / 4) {
		if (due(&d, now, &kib) != DOMAIN_NUDGE)
			continue;
		/* Never twice the same, or it would do nothing. */
		ck_assert_uint_eq(kib, nr % 2 ? GUEST / 2 : GUEST / 2 - 4);
		at[nr++] = now;
	}
	ck_assert_uint_ge(nr, 7);
	ck_assert_uint_eq(at[1] - at[0], 4 * SEC);
	ck_assert_uint_eq(at[2] - at[1], 8 * SEC);
	ck_assert_uint_eq(at[3] - at[2], 16 * SEC); /* the bound */
	ck_assert_uint_eq(at[6] - at[5], 16 * SEC);
	/* It moves: nobody disturbs it, and the next pause is short again. */
	look(&d, now, GUEST - 8192, GUEST + 1024);
	ck_assert_int_eq(due(&d, now, &kib), DOMAIN_NOTHING);
	ck_assert_int_eq(due(&d, now + 2 * SEC, &kib), DOMAIN_NUDGE);
}
END_TEST

START_TEST(BR_70_a_guest_that_moves_is_not_nudged_however_slow_it_is)
{
	struct domain d = adopted(5242880, 5242880, 5242880 + 1024);
	uint64_t kib, tot = 5242880;

	domain_set(&d, 10 * SEC, 3573436, &times);
	for (uint64_t now = 11; now < 41; now++) {
		tot -= 49112; /* 50 MB/s */
		look(&d, now * SEC, tot, 5242880 + 1024);
		ck_assert_int_eq(due(&d, now * SEC, &kib), DOMAIN_NOTHING);
	}
}
END_TEST

START_TEST(BR_78_nothing_is_written_for_a_paused_guest)
{
	struct domain d = adopted(GUEST, GUEST, GUEST + 1024);
	xc_domaininfo_t info = info_of(GUEST, GUEST + 1024);
	uint64_t kib;

	domain_set(&d, 10 * SEC, GUEST / 2, &times);
	info.flags = XEN_DOMINF_paused;
	domain_look(&d, 11 * SEC, &info, times.rest);
	ck_assert_int_eq(domain_state(&d), HV_PAUSED);
	for (uint64_t now = 12; now < 200; now++)
		ck_assert_int_eq(due(&d, now * SEC, &kib), DOMAIN_NOTHING);
}
END_TEST

START_TEST(somebody_else_s_target_is_theirs_and_our_own_is_none)
{
	struct domain d = adopted(GUEST, GUEST, GUEST + 1024);
	uint64_t kib;

	domain_set(&d, 10 * SEC, GUEST / 2, &times);
	ck_assert(!domain_told(&d, GUEST / 2));
	look(&d, 11 * SEC, GUEST, GUEST + 1024);
	ck_assert_int_eq(due(&d, 20 * SEC, &kib), DOMAIN_NUDGE);
	ck_assert(!domain_told(&d, kib)); /* the nudge */
	ck_assert(domain_told(&d, GUEST - 65536));
	ck_assert_uint_eq(d.goal_kib, GUEST - 65536);
}
END_TEST

START_TEST(what_may_have_been_written_as_the_connection_went_is_our_own_where_it_stands)
{
	static const struct {
		uint64_t found, goal, ceiling;
		bool foreign;
	} cases[] = { { GUEST / 2, GUEST / 2, GUEST, false }, { GUEST, GUEST, 0, false },
		{ GUEST / 4, GUEST / 4, 0, true } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct domain d = adopted(GUEST, GUEST, GUEST + 1024);

		domain_doubt(&d, GUEST / 2, GUEST / 2, GUEST);
		ck_assert(domain_told(&d, cases[i].found) == cases[i].foreign);
		ck_assert_uint_eq(d.goal_kib, cases[i].goal);
		ck_assert_uint_eq(d.ceiling_kib, cases[i].ceiling);
		ck_assert(d.ours == (cases[i].ceiling > 0)); /* its cap follows */
		/* Once it was read nothing is in doubt: the same later is somebody's. */
		ck_assert(domain_told(&d, GUEST - 4096));
		ck_assert(domain_told(&d, GUEST / 2));
	}
}
END_TEST

START_TEST(a_nudge_that_may_have_been_written_leaves_the_goal)
{
	struct domain d = adopted(GUEST, GUEST, GUEST + 1024);
	uint64_t kib;

	domain_set(&d, 10 * SEC, GUEST / 2, &times);
	domain_doubt(&d, GUEST / 2 - 4, d.goal_kib, d.ceiling_kib);
	ck_assert(!domain_told(&d, GUEST / 2 - 4));
	ck_assert_uint_eq(d.goal_kib, GUEST / 2);
	look(&d, 11 * SEC, GUEST / 2 - 4, GUEST + 1024);
	ck_assert_int_eq(due(&d, 12 * SEC, &kib), DOMAIN_MAX);
	ck_assert_int_eq(due(&d, 12 * SEC, &kib), DOMAIN_NUDGE);
	ck_assert_uint_eq(kib, GUEST / 2);
}
END_TEST

/* An HVM guest has a page table's worth more, a PVH guest 64 KiB, a PV guest nothing. */
START_TEST(BR_62_a_cap_is_read_back_as_the_target_it_was_set_for)
{
	static const uint64_t offsets[] = { 0, 1024, 64 };

	for (size_t i = 0; i < 3; i++) {
		uint64_t kib, max = 524288 + 1024;
		struct domain d = adopted(524288, 524288 + offsets[i], max);

		domain_set(&d, 4 * SEC, 262144, &times);
		look(&d, 5 * SEC, 262144 + offsets[i], max);
		ck_assert_uint_eq(domain_actual_kib(&d), 262144);
		ck_assert_int_eq(due(&d, 6 * SEC, &kib), DOMAIN_MAX);
		ck_assert_uint_eq(kib - 1024, 262144);
		/* At its target it is told nothing more, nor where it is short by less than counts.
		 */
		look(&d, 7 * SEC, 262144 + offsets[i], kib);
		ck_assert_int_eq(due(&d, 100 * SEC, &kib), DOMAIN_NOTHING);
		look(&d, 101 * SEC, 262144 + offsets[i] + 1000, 262144 + 1024);
		ck_assert_int_eq(due(&d, 200 * SEC, &kib), DOMAIN_NOTHING);
		/* And back, the same. */
		domain_set(&d, 201 * SEC, 524288, &times);
		ck_assert_uint_eq(domain_max_kib(&d, 524288), max);
	}
}
END_TEST

START_TEST(a_page_beside_the_recorded_goal_is_adopted_as_the_goal_and_other_values_are_not)
{
	static const struct {
		uint64_t stored, goal, adopted;
	} cases[] = { { GUEST - 4, GUEST, GUEST }, { GUEST + 4, GUEST, GUEST },
		{ GUEST - 4, 0, GUEST - 4 }, { GUEST - 8, GUEST, GUEST - 8 },
		{ GUEST, GUEST, GUEST } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct domain d = { .stored_kib = cases[i].stored, .driver = true, .act = true };
		uint64_t kib;

		domain_recorded_goal(&d, cases[i].goal);
		domain_told(&d, cases[i].stored);
		look(&d, 1, cases[i].stored, GUEST + 1024);
		ck_assert_uint_eq(d.goal_kib, cases[i].adopted);
		/* It is written back, once. */
		if (cases[i].stored == cases[i].adopted)
			continue;
		ck_assert_int_eq(due(&d, SEC, &kib), DOMAIN_NUDGE);
		ck_assert_uint_eq(kib, cases[i].adopted);
		look(&d, 2 * SEC, kib, GUEST + 1024);
		ck_assert_int_eq(due(&d, 100 * SEC, &kib), DOMAIN_NOTHING);
		/* What comes later is somebody else's word. */
		ck_assert(domain_told(&d, cases[i].stored));
		ck_assert_uint_eq(d.goal_kib, cases[i].stored);
	}
}
END_TEST

START_TEST(what_a_cap_has_over_the_target_is_known_with_the_target)
{
	struct domain d = { .static_max_kib = GUEST };

	look(&d, 1, GUEST, GUEST + 2048);
	domain_told(&d, GUEST);
	/* A target is set before the hypervisor is looked at again. */
	domain_set(&d, 2, GUEST / 2, &times);
	ck_assert_uint_eq(domain_max_kib(&d, GUEST / 2), GUEST / 2 + 2048);
	look(&d, SEC, GUEST, GUEST + 2048);
	ck_assert_uint_eq(domain_max_kib(&d, GUEST / 2), GUEST / 2 + 2048);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xen-domain");
	TCase *tc = tcase_create("domain");

	tcase_add_test(tc,
		BR_63_what_the_toolstack_adds_is_no_memory_of_the_guest_and_no_reason_to_be_stuck);
	tcase_add_test(tc, BR_133_a_shim_s_memory_stays_over_every_target);
	tcase_add_test(tc, an_offset_is_learned_where_it_rests_near_its_target_only);
	tcase_add_test(tc, BR_64_nobody_is_told_anything_but_one_page_before_its_driver_is_seen);
	tcase_add_test(tc, what_a_guest_frees_while_it_boots_is_no_driver);
	tcase_add_test(
		tc, a_guest_that_was_on_its_way_when_it_was_told_one_page_is_told_again_at_rest);
	tcase_add_test(tc,
		a_guest_that_stands_where_one_page_less_would_bring_it_is_told_again_the_other_way);
	tcase_add_test(
		tc, BR_71_a_guest_that_is_populated_on_demand_is_never_told_less_before_its_driver);
	tcase_add_test(tc,
		BR_71_a_guest_that_is_populated_on_demand_and_shows_no_driver_is_warned_of_once);
	tcase_add_test(tc, BR_71_who_shows_a_driver_or_has_all_its_pages_is_not_warned_of);
	tcase_add_test(tc, BR_68_a_cap_is_never_below_what_the_guest_has_and_comes_after_it_gave);
	tcase_add_test(
		tc, a_guest_that_stands_short_is_told_again_a_page_beside_with_pauses_that_double);
	tcase_add_test(tc, BR_134_a_guest_whose_growth_stopped_is_told_again_after_a_pause);
	tcase_add_test(tc, BR_70_a_guest_that_moves_is_not_nudged_however_slow_it_is);
	tcase_add_test(tc, BR_78_nothing_is_written_for_a_paused_guest);
	tcase_add_test(tc, somebody_else_s_target_is_theirs_and_our_own_is_none);
	tcase_add_test(
		tc, what_may_have_been_written_as_the_connection_went_is_our_own_where_it_stands);
	tcase_add_test(tc, a_nudge_that_may_have_been_written_leaves_the_goal);
	tcase_add_test(tc, BR_62_a_cap_is_read_back_as_the_target_it_was_set_for);
	tcase_add_test(tc,
		a_page_beside_the_recorded_goal_is_adopted_as_the_goal_and_other_values_are_not);
	tcase_add_test(tc, what_a_cap_has_over_the_target_is_known_with_the_target);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
