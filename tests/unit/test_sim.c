/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The simulated guest and host beside what was measured on libvirt 9.0.0 with QEMU 7.2 and Linux
 * 6.1 guests. Each test names what was seen; the figures in it are the measured ones.
 */
#include <config.h>

#include "hv/sim/sim.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/suite.h"

#define MIB UINT64_C(1048576)
#define MS  UINT64_C(1000)
#define S   UINT64_C(1000000)

/* A guest of 256 MiB as in the lab: all of it was touched once, most is free. */
static struct guest idle_guest(void)
{
	struct guest_params params;
	struct guest guest;

	guest_params_default(&params);
	params.maximum = 256 * MIB;
	params.free = 180 * MIB;
	params.hot = 16 * MIB;
	guest_init(&guest, &params);
	guest_start(&guest, 0, 0);
	guest_set_period(&guest, 0, S);
	guest_advance(&guest, 5 * S);
	return guest;
}

/* Until actual is the target, in steps of 10 ms; 0: not within a minute. */
static uint64_t time_to_target(struct guest *guest, uint64_t target)
{
	uint64_t from = guest->clock;

	guest_set_target(guest, from, target);
	for (uint64_t t = from; t < from + 60 * S; t += 10 * MS) {
		guest_advance(guest, t);
		if (guest_actual(guest) == target)
			return t - from;
	}
	return 0;
}

START_TEST(inflating_100_mib_takes_one_to_two_seconds_in_an_idle_guest)
{
	struct guest guest = idle_guest();
	uint64_t us = time_to_target(&guest, 156 * MIB);

	ck_assert_uint_ge(us, 1 * S);
	ck_assert_uint_le(us, 2 * S);
}
END_TEST

START_TEST(deflating_100_mib_takes_a_quarter_of_a_second)
{
	struct guest guest = idle_guest();
	uint64_t us;

	time_to_target(&guest, 156 * MIB);
	us = time_to_target(&guest, 256 * MIB);
	ck_assert_uint_ge(us, 200 * MS);
	ck_assert_uint_le(us, 320 * MS);
}
END_TEST

START_TEST(resident_size_falls_as_pages_come_and_not_before)
{
	struct guest guest = idle_guest();
	uint64_t resident = guest_resident(&guest), untouched;

	untouched = guest.kinds[GUEST_UNTOUCHED];
	guest_set_target(&guest, guest.clock, 128 * MIB);
	ck_assert_uint_eq(guest_resident(&guest), resident);
	for (unsigned int i = 0; i < 300; i++) {
		uint64_t ballooned = 256 * MIB - guest_actual(&guest);

		ck_assert_uint_eq(resident - guest_resident(&guest),
			ballooned > untouched ? ballooned - untouched : 0);
		guest_advance(&guest, guest.clock + 10 * MS);
	}
	/* 369 -> 238 MB after 128 MiB. */
	ck_assert_uint_eq(guest_actual(&guest), 128 * MIB);
	ck_assert_uint_eq(guest_resident(&guest), 128 * MIB);
}
END_TEST

START_TEST(deflated_pages_stay_with_the_host_until_they_are_touched)
{
	struct guest guest = idle_guest();
	uint64_t resident;

	time_to_target(&guest, 128 * MIB);
	resident = guest_resident(&guest);
	time_to_target(&guest, 256 * MIB);
	ck_assert_uint_eq(guest_resident(&guest), resident);
	guest_work(&guest, GUEST_WORK_GROW, 150 * MIB, 1000 * MIB);
	guest_advance(&guest, guest.clock + S);
	ck_assert_uint_gt(guest_resident(&guest), resident);
}
END_TEST

START_TEST(balloon_stops_at_what_the_guest_can_give)
{
	struct guest guest = idle_guest();

	ck_assert_uint_eq(time_to_target(&guest, 32 * MIB), 0);
	/* Fixed and hot memory and the allocator's reserve are left, without a swap. */
	ck_assert_uint_eq(guest_actual(&guest), (60 + 16 + 4) * MIB);
	/* It goes on when the guest frees more. */
	guest_work(&guest, GUEST_WORK_SHRINK, 10 * MIB, 1000 * MIB);
	guest_advance(&guest, guest.clock + 2 * S);
	ck_assert_uint_eq(guest_actual(&guest), 70 * MIB);
}
END_TEST

START_TEST(balloon_takes_page_cache_slower_than_what_is_free)
{
	struct guest free_one = idle_guest(), cached = idle_guest();

	memory_add(&cached.memory, GUEST_FILES, cached.kinds[GUEST_FREE], false, false);
	cached.kinds[GUEST_FREE] = 0;
	ck_assert_uint_gt(time_to_target(&cached, 128 * MIB), time_to_target(&free_one, 128 * MIB));
	ck_assert_uint_eq(guest_resident(&cached), 128 * MIB);
}
END_TEST

START_TEST(mem_total_is_actual_less_36_mib)
{
	struct guest guest = idle_guest();
	struct guest_stats stats;

	guest_stats_now(&guest, &stats);
	ck_assert_uint_eq(stats.total, 220 * MIB);
	time_to_target(&guest, 128 * MIB);
	guest_stats_now(&guest, &stats);
	ck_assert_uint_eq(stats.total, 92 * MIB);
}
END_TEST

START_TEST(after_a_reboot_memory_is_full_and_the_driver_races_to_the_old_target)
{
	struct guest guest = idle_guest();
	uint64_t updated, now;

	time_to_target(&guest, 128 * MIB);
	guest_advance(&guest, 20 * S);
	now = guest.clock;
	guest_reboot(&guest, now, 6 * S);
	ck_assert_uint_eq(guest_actual(&guest), 256 * MIB);
	updated = guest.stats.taken_at;
	guest_advance(&guest, now + 5900 * MS);
	ck_assert_uint_eq(guest_actual(&guest), 256 * MIB);
	ck_assert_uint_eq(guest.stats.taken_at, updated); /* statistics are old until then */
	guest_advance(&guest, now + 10 * S);
	ck_assert_uint_eq(guest_actual(&guest), 128 * MIB);
	ck_assert_uint_gt(guest.stats.taken_at, updated);
}
END_TEST

START_TEST(paused_guest_takes_a_target_and_its_last_update_stands_still)
{
	struct guest guest = idle_guest();
	uint64_t updated = guest.stats.taken_at, now = guest.clock;

	ck_assert_uint_ge(updated, 4 * S);
	guest_pause(&guest, now);
	guest_set_target(&guest, now, 128 * MIB);
	guest_advance(&guest, now + 10 * S);
	ck_assert_uint_eq(guest.stats.taken_at, updated);
	ck_assert_uint_eq(guest_actual(&guest), 256 * MIB);
	guest_resume(&guest, guest.clock);
	guest_advance(&guest, guest.clock + 3 * S);
	ck_assert_uint_gt(guest.stats.taken_at, updated);
	ck_assert_uint_eq(guest_actual(&guest), 128 * MIB);
}
END_TEST

START_TEST(driver_that_loads_later_goes_straight_to_the_last_target)
{
	struct guest_params params;
	struct guest guest;

	guest_params_default(&params);
	params.maximum = 256 * MIB;
	params.free = 150 * MIB;
	guest_init(&guest, &params);
	guest_start(&guest, 0, 10 * S);
	guest_set_period(&guest, 0, S);
	guest_set_target(&guest, 0, 200 * MIB);
	guest_set_target(&guest, S, 150 * MIB);
	guest_advance(&guest, 9900 * MS);
	ck_assert_uint_eq(guest_actual(&guest), 256 * MIB);
	ck_assert(!guest.stats.taken);
	for (uint64_t t = 10 * S; t < 15 * S; t += 100 * MS) {
		uint64_t before = guest_actual(&guest);

		guest_advance(&guest, t);
		ck_assert_uint_le(guest_actual(&guest), before);
	}
	ck_assert_uint_eq(guest_actual(&guest), 150 * MIB);
	ck_assert(guest.stats.taken);
}
END_TEST

START_TEST(no_driver_means_that_every_call_succeeds_and_nothing_moves)
{
	struct guest_params params;
	struct guest guest;

	guest_params_default(&params);
	params.maximum = 256 * MIB;
	params.driver = false;
	guest_init(&guest, &params);
	guest_start(&guest, 0, 0);
	guest_set_period(&guest, 0, S);
	guest_set_target(&guest, 0, 128 * MIB);
	guest_advance(&guest, 60 * S);
	ck_assert_uint_eq(guest_actual(&guest), 256 * MIB);
	ck_assert(!guest.stats.taken);
}
END_TEST

START_TEST(period_0_gives_no_statistics_and_1_gives_them_every_second)
{
	struct guest guest = idle_guest();
	uint64_t updated;

	guest_set_period(&guest, guest.clock, 0);
	updated = guest.stats.taken_at;
	guest_advance(&guest, guest.clock + 10 * S);
	ck_assert_uint_eq(guest.stats.taken_at, updated);
	guest_set_period(&guest, guest.clock, S);
	for (unsigned int i = 0; i < 5; i++) {
		guest_advance(&guest, guest.clock + S);
		ck_assert_uint_ge(guest.stats.taken_at, updated + S);
		updated = guest.stats.taken_at;
	}
}
END_TEST

START_TEST(balloon_events_come_once_a_second_at_most_and_the_last_value_always_comes)
{
	struct guest guest = idle_guest();
	uint64_t actual = 0, at, last = 0;
	unsigned int events = 0;

	guest_set_target(&guest, guest.clock, 100 * MIB);
	for (at = guest.clock; at < 20 * S; at += 10 * MS) {
		guest_advance(&guest, at);
		if (!guest_take_balloon_event(&guest, at, &actual))
			continue;
		if (events++)
			ck_assert_uint_ge(at - last, S);
		last = at;
	}
	ck_assert_uint_ge(events, 3); /* it took more than two seconds */
	ck_assert_uint_eq(actual, 100 * MIB);
}
END_TEST

START_TEST(file_cache_thrash_is_invisible_in_the_statistics)
{
	struct guest guest = idle_guest();
	struct guest_stats stats;

	guest_work(&guest, GUEST_WORK_HOT_FILE, 100 * MIB, 1000 * MIB);
	guest_advance(&guest, guest.clock + S);
	time_to_target(&guest, 110 * MIB);
	guest_advance(&guest, guest.clock + 30 * S);
	guest_stats_now(&guest, &stats);
	/* 500,000 to 700,000 file pages refaulted, no swap. */
	ck_assert_uint_ge(guest.memory.refaults / GUEST_PAGE, 500000);
	ck_assert_uint_eq(stats.swap_in, 0);
}
END_TEST

START_TEST(busy_120_mb_in_110_mib_swap_and_reach_the_target_in_seconds)
{
	struct guest_params params;
	struct guest guest;
	struct guest_stats before, after;
	uint64_t us;

	guest_params_default(&params);
	params.maximum = 256 * MIB;
	params.fixed = 40 * MIB;
	params.swap = 256 * MIB;
	params.hot = 80 * MIB; /* with what is fixed: 120 */
	params.free = 100 * MIB;
	guest_init(&guest, &params);
	guest_start(&guest, 0, 0);
	guest_set_period(&guest, 0, S);
	guest_advance(&guest, 5 * S);
	us = time_to_target(&guest, 110 * MIB);
	ck_assert_uint_ge(us, 2 * S);
	ck_assert_uint_le(us, 5 * S);
	guest_stats_now(&guest, &before);
	guest_advance(&guest, guest.clock + 10 * S);
	guest_stats_now(&guest, &after);
	ck_assert_uint_gt(after.swap_in, before.swap_in);
}
END_TEST

START_TEST(free_page_reporting_gives_143_mb_back_in_4_seconds)
{
	struct guest guest = idle_guest();
	uint64_t resident = guest_resident(&guest);

	guest.params.reporting = true;
	guest.quiet = false;
	guest_advance(&guest, guest.clock + 4 * S);
	ck_assert_uint_ge(resident - guest_resident(&guest), 130 * MIB);
	ck_assert_uint_le(resident - guest_resident(&guest), 150 * MIB);
	ck_assert_uint_eq(guest_actual(&guest), 256 * MIB);
}
END_TEST

START_TEST(what_happens_does_not_depend_on_how_often_it_is_looked_at)
{
	struct guest often = idle_guest(), seldom = often;

	guest_set_target(&often, 5 * S, 140 * MIB);
	guest_set_target(&seldom, 5 * S, 140 * MIB);
	guest_work(&often, GUEST_WORK_STREAM, 90 * MIB, 30 * MIB);
	guest_work(&seldom, GUEST_WORK_STREAM, 90 * MIB, 30 * MIB);
	for (uint64_t t = 5 * S; t < 9 * S; t += 1234)
		guest_advance(&often, t);
	guest_advance(&often, 9 * S);
	guest_advance(&seldom, 9 * S);
	ck_assert_mem_eq(often.kinds, seldom.kinds, sizeof often.kinds);
	ck_assert_mem_eq(often.memory.sums, seldom.memory.sums, sizeof often.memory.sums);
	ck_assert_uint_eq(often.stats.taken_at, seldom.stats.taken_at);
}
END_TEST

/* ---- through the backend ---- */

static struct hv *host(const struct sim_host *params)
{
	struct hv *hv;

	ck_assert_int_eq(hv_sim.open(&(struct hv_params){ .uri = "sim:///" }, &hv), 0);
	if (params)
		ck_assert_int_eq(sim_host_set(hv, params), 0);
	return hv;
}

static void add(struct hv *hv, const char *name, uint64_t maximum, uint64_t free)
{
	struct sim_vm vm;

	sim_vm_default(&vm);
	vm.name = name;
	vm.guest.maximum = maximum;
	vm.guest.free = free;
	vm.period_s = 1;
	ck_assert_int_eq(sim_vm_add(hv, &vm), 0);
}

static bool event_within(struct hv *hv, enum hv_event_type type, uint64_t us, struct hv_event *ret)
{
	uint64_t until = sim_now(hv) + us;

	while (true) {
		while (hv_sim.next(hv, ret) > 0) {
			if (ret->type == type)
				return true;
			hv_event_clear(ret);
		}
		if (sim_next(hv) > until)
			break;
		sim_advance(hv, sim_next(hv));
	}
	sim_advance(hv, until);
	return false;
}

START_TEST(balloon_call_returns_in_2_to_6_ms_before_anything_moved)
{
	struct hv *hv = host(NULL);
	struct sim_vm_view view;
	struct hv_event event;
	uint64_t from;

	add(hv, "a", 256 * MIB, 180 * MIB);
	sim_advance(hv, S);
	ck_assert_int_eq(sim_vm_view(hv, "a", &view), 0);
	from = sim_now(hv);
	ck_assert_int_eq(hv_sim.submit(hv, &(struct hv_call){ .type = HV_TARGET,
						   .token = 1,
						   .uuid = *view.uuid,
						   .target = 128 * MIB,
						   .ceiling = 256 * MIB }),
		0);
	ck_assert(event_within(hv, HV_EVENT_DONE, S, &event));
	ck_assert_uint_ge(sim_now(hv) - from, 2 * MS);
	ck_assert_uint_le(sim_now(hv) - from, 6 * MS);
	ck_assert_uint_eq(guest_actual(view.guest), 256 * MIB);
	sim_advance(hv, from + 3 * S);
	ck_assert_uint_eq(guest_actual(view.guest), 128 * MIB);
	hv_sim.close(hv);
}
END_TEST

START_TEST(calls_of_a_stopped_process_hang_until_it_goes_on_and_others_are_answered)
{
	struct hv *hv = host(NULL);
	struct sim_vm_view a, b;
	struct hv_event event;

	add(hv, "a", 256 * MIB, 0);
	add(hv, "b", 256 * MIB, 0);
	sim_vm_view(hv, "a", &a);
	sim_vm_view(hv, "b", &b);
	sim_at(hv, 2 * S, "a", &(struct sim_action){ .type = SIM_STOP });
	sim_at(hv, 40 * S, "a", &(struct sim_action){ .type = SIM_WAKE });
	sim_advance(hv, 2 * S);
	hv_sim.submit(hv, &(struct hv_call){ .type = HV_STATS, .token = 1, .uuid = *a.uuid });
	hv_sim.submit(hv, &(struct hv_call){ .type = HV_STATS, .token = 2, .uuid = *b.uuid });
	ck_assert(event_within(hv, HV_EVENT_STATS, 30 * S, &event));
	ck_assert_uint_eq(event.token, 2);
	hv_event_clear(&event);
	hv_sim.submit(hv, &(struct hv_call){ .type = HV_INFO, .token = 3, .uuid = *a.uuid });
	ck_assert(event_within(hv, HV_EVENT_INFO, S, &event)); /* descriptions never hang */
	hv_event_clear(&event);
	ck_assert(!event_within(hv, HV_EVENT_STATS, 30 * S, &event));
	ck_assert(event_within(hv, HV_EVENT_STATS, 20 * S, &event));
	ck_assert_uint_eq(event.token, 1);
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_ge(sim_now(hv), 40 * S);
	hv_event_clear(&event);
	hv_sim.close(hv);
}
END_TEST

START_TEST(reboot_is_told_three_times_and_memtune_by_nobody)
{
	struct hv *hv = host(NULL);
	struct hv_event event;
	unsigned int reboots = 0;

	add(hv, "a", 256 * MIB, 0);
	sim_at(hv, 2 * S, "a",
		&(struct sim_action){ .type = SIM_MEMTUNE_SOFT_LIMIT, .bytes = 128 * MIB });
	ck_assert(!event_within(hv, HV_EVENT_CHANGED, 5 * S, &event));
	sim_at(hv, 6 * S, "a", &(struct sim_action){ .type = SIM_REBOOT });
	while (event_within(hv, HV_EVENT_REBOOTED, 5 * S, &event)) {
		reboots++;
		hv_event_clear(&event);
	}
	ck_assert_uint_eq(reboots, 3);
	sim_at(hv, sim_now(hv), "a",
		&(struct sim_action){ .type = SIM_METADATA_SOFT_LIMIT, .bytes = 128 * MIB });
	ck_assert(event_within(hv, HV_EVENT_CHANGED, S, &event));
	hv_event_clear(&event);
	hv_sim.close(hv);
}
END_TEST

START_TEST(overcommitted_host_swaps_idle_memory_and_says_so)
{
	struct sim_host params;
	struct sim_host_view view;
	struct sim_vm_view a;
	struct hv_event event;
	struct hv *hv;

	sim_host_default(&params);
	params.total = 512 * MIB;
	params.swap = 1024 * MIB;
	hv = host(&params);
	add(hv, "a", 256 * MIB, 150 * MIB);
	add(hv, "b", 512 * MIB, 0);
	sim_at(hv, S, "b",
		&(struct sim_action){ .type = SIM_WORK,
			.work = GUEST_WORK_HOT,
			.bytes = 300 * MIB,
			.rate = 100 * MIB });
	ck_assert(event_within(hv, HV_EVENT_PRESSURE, 10 * S, &event));
	sim_advance(hv, 10 * S);
	sim_host_view(hv, &view);
	sim_vm_view(hv, "a", &a);
	ck_assert_uint_gt(view.swapped_out, 0);
	ck_assert_uint_le(view.used, view.total);
	ck_assert_uint_eq(a.guest->host_swapped, view.swapped_out);
	ck_assert_uint_eq(view.beyond, 0);
	hv_sim.close(hv);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim");
	TCase *guest = tcase_create("guest"), *backend = tcase_create("backend");

	tcase_add_test(guest, inflating_100_mib_takes_one_to_two_seconds_in_an_idle_guest);
	tcase_add_test(guest, deflating_100_mib_takes_a_quarter_of_a_second);
	tcase_add_test(guest, resident_size_falls_as_pages_come_and_not_before);
	tcase_add_test(guest, deflated_pages_stay_with_the_host_until_they_are_touched);
	tcase_add_test(guest, balloon_stops_at_what_the_guest_can_give);
	tcase_add_test(guest, balloon_takes_page_cache_slower_than_what_is_free);
	tcase_add_test(guest, mem_total_is_actual_less_36_mib);
	tcase_add_test(guest, after_a_reboot_memory_is_full_and_the_driver_races_to_the_old_target);
	tcase_add_test(guest, paused_guest_takes_a_target_and_its_last_update_stands_still);
	tcase_add_test(guest, driver_that_loads_later_goes_straight_to_the_last_target);
	tcase_add_test(guest, no_driver_means_that_every_call_succeeds_and_nothing_moves);
	tcase_add_test(guest, period_0_gives_no_statistics_and_1_gives_them_every_second);
	tcase_add_test(
		guest, balloon_events_come_once_a_second_at_most_and_the_last_value_always_comes);
	tcase_add_test(guest, file_cache_thrash_is_invisible_in_the_statistics);
	tcase_add_test(guest, busy_120_mb_in_110_mib_swap_and_reach_the_target_in_seconds);
	tcase_add_test(guest, free_page_reporting_gives_143_mb_back_in_4_seconds);
	tcase_add_test(guest, what_happens_does_not_depend_on_how_often_it_is_looked_at);
	tcase_add_test(backend, balloon_call_returns_in_2_to_6_ms_before_anything_moved);
	tcase_add_test(
		backend, calls_of_a_stopped_process_hang_until_it_goes_on_and_others_are_answered);
	tcase_add_test(backend, reboot_is_told_three_times_and_memtune_by_nobody);
	tcase_add_test(backend, overcommitted_host_swaps_idle_memory_and_says_so);
	suite_add_tcase(suite, guest);
	suite_add_tcase(suite, backend);
	return suite_run(suite);
}
