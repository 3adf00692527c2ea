/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent's core, on a guest of the tests' own. */
#include <config.h>

#include "guest-agent/agent.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/agent_pair.h"
#include "tests/unit/suite.h"

START_TEST(host_and_agent_greet_and_a_report_follows_at_once)
{
	ck_assert(channel.agent.connected);
	ck_assert(channel.agent.reclaims);
	ck_assert_str_eq(channel.agent.software, "test 1");
	step();
	ck_assert(channel.agent.known & HV_AGENT_LISTS);
	ck_assert_uint_eq(channel.agent.lists.active_file, 100 * MIB);
	ck_assert_uint_eq(channel.agent.free, 300 * MIB);
	ck_assert_uint_eq(channel.agent.faults, 0);
}
END_TEST

START_TEST(inactive_pages_of_who_has_many_go_and_the_hot_group_keeps_all)
{
	step();
	ask(256 * MIB, false, false);
	run();
	ck_assert_uint_eq(g.taken[0], 0);
	ck_assert_uint_eq(answer(), 256 * MIB);
	ck_assert_uint_eq(g.taken[1] + g.taken[2], 256 * MIB);
	ck_assert_uint_gt(g.protected, 0);
}
END_TEST

START_TEST(batches_are_at_most_a_quarter_of_what_remains)
{
	step();
	ask(64 * MIB, false, false);
	run();
	ck_assert_uint_le(g.largest, 16 * MIB);
	ck_assert_uint_gt(g.batches, 8);
}
END_TEST

START_TEST(active_pages_are_taken_only_where_the_host_says_so)
{
	step();
	ask(500 * MIB, false, false);
	run();
	ck_assert_uint_eq(answer(), 400 * MIB);
	ck_assert_uint_eq(g.taken[0], 0);
	ck_assert_ptr_nonnull(strstr(g.last, "nothing is inactive"));
	ask(16 * MIB, true, false);
	run();
	ck_assert_uint_gt(g.taken[0], 0);
}
END_TEST

START_TEST(active_pages_stay_as_long_as_anything_inactive_is_found)
{
	g.groups[0].active_file = 500 * MIB;
	if (_i) {
		g.groups[1].inactive_file = g.groups[2].inactive_file = 0;
		g.groups[2].inactive_anon = 400 * MIB;
		g.guest.swap_free = 1024 * MIB;
	}
	step();
	ask(350 * MIB, true, _i);
	run();
	ck_assert_uint_eq(answer(), 350 * MIB);
	ck_assert_uint_eq(g.taken[0], 0);
}
END_TEST

START_TEST(anonymous_pages_go_only_where_they_may_and_as_far_as_there_is_swap)
{
	g.groups[1].inactive_file = g.groups[2].inactive_file = 0;
	g.groups[2].inactive_anon = 200 * MIB;
	g.guest.swap_free = 48 * MIB;
	step();
	ask(64 * MIB, false, false);
	run();
	ck_assert_uint_eq(answer(), 0);
	ask(64 * MIB, false, true);
	run();
	ck_assert_uint_eq(answer(), 32 * MIB);
	ck_assert_ptr_nonnull(strstr(g.last, "swap runs out"));
}
END_TEST

START_TEST(BR_50_batches_are_a_quarter_of_what_remains_64_48_36_27)
{
	static const uint64_t sizes[] = { 64, 48, 36, 27 };

	agent.us_a_page = 3; /* as requests before have shown */
	step();
	ask(256 * MIB, false, false);
	run();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		ck_assert_uint_eq(g.sizes[i], sizes[i] * MIB);
	ck_assert_uint_eq(answer(), 256 * MIB);
}
END_TEST

START_TEST(group_that_nobody_is_in_gives_last)
{
	g.groups[1].dying = true;
	step();
	ask(96 * MIB, false, false);
	run();
	ck_assert_uint_eq(g.taken[1], 0);
	ck_assert_uint_eq(g.taken[2], 96 * MIB);
	ck_assert_uint_eq(answer(), 96 * MIB);
	ask(96 * MIB, false, false);
	run();
	ck_assert_uint_eq(g.taken[1] + g.taken[2], 192 * MIB);
	ck_assert_uint_eq(g.taken[2], 100 * MIB);
}
END_TEST

START_TEST(sixteen_empty_batches_in_all_and_no_more)
{
	g.stuck = true;
	step();
	ask(64 * MIB, false, false);
	run();
	ck_assert_uint_eq(g.batches, BATCH_RETRIES);
	ck_assert_uint_eq(answer(), 0);
}
END_TEST

static const struct {
	int error;
	bool ends;
	const char *why;
} refusals[] = {
	{ -EPERM, true, "does not permit" }, { -EACCES, true, "does not permit" },
	{ -EINVAL, true, "does not take" }, { -EOPNOTSUPP, true, "does not take" },
	{ -EAGAIN, false, "finds nothing" },
	{ -ENOENT, false, "finds nothing" }, /* the group has gone: there are others */
};

START_TEST(BR_89_what_the_kernel_refuses_ends_a_request_and_is_told)
{
	g.stuck = true;
	g.reclaim_error = refusals[_i].error;
	step();
	ask(64 * MIB, false, false);
	run();
	ck_assert_uint_eq(g.batches, refusals[_i].ends ? 1 : BATCH_RETRIES);
	ck_assert_uint_eq(answer(), 0);
	ck_assert_ptr_nonnull(strstr(g.last, refusals[_i].why));
}
END_TEST

START_TEST(BR_89_that_less_came_than_was_asked_is_no_error)
{
	g.reclaim_error = -EAGAIN;
	step();
	ask(64 * MIB, false, false);
	run();
	ck_assert_uint_eq(answer(), 64 * MIB);
}
END_TEST

START_TEST(group_that_waits_for_memory_ends_it_at_once)
{
	g.hurts = true;
	step();
	ask(128 * MIB, false, false);
	run();
	ck_assert_uint_eq(g.batches, 1);
	ck_assert_ptr_nonnull(strstr(g.last, "waits for memory"));
}
END_TEST

START_TEST(another_group_that_begins_to_read_again_what_it_used_ends_it)
{
	g.squeezes = true;
	step();
	ask(300 * MIB, false, false);
	run();
	ck_assert_uint_lt(answer(), 300 * MIB);
	ck_assert_ptr_nonnull(strstr(g.last, "a group waits for memory"));
}
END_TEST

/* Under its own limit, say. */
START_TEST(group_that_suffered_before_ends_nothing)
{
	step();
	g.now += SECOND;
	g.groups[0].psi_some_us += 500000;
	g.guest.psi_some_us += 500000;
	g.groups[0].restores += MIB;
	g.guest.refaults += MIB;
	step();
	g.squeezes = true;
	ask(300 * MIB, false, false);
	run();
	ck_assert_uint_eq(answer(), 300 * MIB);
}
END_TEST

static void squeezed_by_now(void)
{
	g.now += SECOND;
	g.groups[0].psi_some_us += 500000;
	g.guest.psi_some_us += 500000;
	g.groups[0].restores += MIB;
	g.guest.refaults += MIB;
	step();
}

START_TEST(group_that_one_request_squeezed_ends_the_next_as_well)
{
	g.squeezes = true;
	step();
	ask(300 * MIB, false, false);
	run();
	ck_assert_uint_lt(answer(), 300 * MIB);
	g.batches = 0;
	for (int i = 0; i < 2; i++) {
		squeezed_by_now();
		ask(64 * MIB, false, false);
		run();
		ck_assert_uint_eq(answer(), 0);
		ck_assert_uint_eq(g.batches, 0);
		ck_assert_ptr_nonnull(strstr(g.last, "a group waits for memory"));
	}
	/* Long after anything was taken it has another reason. */
	g.now += AGENT_AFTER_US;
	step();
	squeezed_by_now();
	agent.us_a_page = 3; /* not what the last, small batch took */
	ask(64 * MIB, false, false);
	run();
	ck_assert_uint_eq(answer(), 64 * MIB);
}
END_TEST

START_TEST(looping_stream_s_pressure_on_the_guest_ends_nothing_where_there_are_groups)
{
	step();
	g.waits_us = 200000;
	g.groups[2].refaults += 200 * MIB;
	g.guest.refaults += 200 * MIB;
	ask(300 * MIB, false, false);
	run();
	ck_assert_uint_eq(answer(), 300 * MIB);
}
END_TEST

/* The agent itself waits as long as a batch takes: 10 ms. */
START_TEST(guest_without_groups_is_judged_by_its_own_pressure_beside_the_agents)
{
	platform.can &= ~(uint64_t)PROTOCOL_CAN_GROUPS;
	step();
	g.waits_us = _i ? 20000 : 10000;
	ask(256 * MIB, false, false);
	run();
	if (_i == 0) {
		ck_assert_uint_eq(answer(), 256 * MIB);
		return;
	}
	ck_assert_uint_eq(g.batches, 1);
	ck_assert_ptr_nonnull(strstr(g.last, "the guest waits for memory"));
}
END_TEST

/* What others wait meanwhile is seen. */
START_TEST(guest_without_groups_is_looked_at_between_batches)
{
	uint64_t next;

	platform.can &= ~(uint64_t)PROTOCOL_CAN_GROUPS;
	step();
	ask(256 * MIB, false, false);
	next = step();
	ck_assert_uint_eq(g.batches, 1);
	ck_assert_uint_eq(next, g.now + AGENT_WATCH_US);
	g.now = next - 1;
	step();
	ck_assert_uint_eq(g.batches, 1);
	g.now = next;
	step();
	ck_assert_uint_eq(g.batches, 2);
}
END_TEST

START_TEST(told_to_stop_it_stops_and_tells_what_came)
{
	char text[64];

	step();
	ask(128 * MIB, false, false);
	step();
	snprintf(text, sizeof(text), "{\"type\":\"stop\",\"id\":%u}\n", 1);
	agent_input(&agent, text, strlen(text));
	run();
	ck_assert_uint_eq(g.batches, 1);
	ck_assert_uint_eq(answer(), g.largest);
}
END_TEST

START_TEST(deadline_ends_it)
{
	step();
	ask(400 * MIB, false, false);
	step();
	g.now += 2 * SECOND;
	run();
	ck_assert_uint_eq(g.batches, 1);
}
END_TEST

START_TEST(protection_is_put_back_some_time_after_the_request_and_at_the_end)
{
	step();
	ask(16 * MIB, false, false);
	run();
	ck_assert_uint_eq(g.protected, 1);
	ck_assert_uint_eq(g.unprotected, 0);
	/* In the guest that is smaller now others press on. */
	g.now += 30 * SECOND;
	step();
	ck_assert_uint_eq(g.unprotected, 0);
	g.now += AGENT_PROTECT_US;
	step();
	ck_assert_uint_eq(g.unprotected, 1);
}
END_TEST

START_TEST(protection_that_cannot_be_put_back_is_tried_again)
{
	uint64_t next;

	step();
	ask(16 * MIB, false, false);
	run();
	g.unprotect_error = -EIO;
	g.now += AGENT_PROTECT_US;
	next = step();
	ck_assert_uint_eq(g.unprotected, 1);
	ck_assert_uint_le(next, g.now + AGENT_AGAIN_US);
	step();
	ck_assert_uint_eq(g.unprotected, 1);
	g.unprotect_error = 0;
	g.now += AGENT_AGAIN_US;
	step();
	ck_assert_uint_eq(g.unprotected, 2);
	g.now += AGENT_AGAIN_US;
	step();
	ck_assert_uint_eq(g.unprotected, 2);
	agent_stop(&agent); /* whatever there is */
	ck_assert_uint_eq(g.unprotected, 3);
}
END_TEST

START_TEST(protection_that_cannot_be_is_tried_once_a_request)
{
	g.protect_error = -EEXIST;
	step();
	ask(128 * MIB, false, false);
	run();
	ck_assert_uint_gt(g.batches, 4);
	ck_assert_uint_eq(g.protected, 1);
	answer();
	ask(128 * MIB, false, false);
	run();
	ck_assert_uint_eq(g.protected, 2);
	ck_assert_uint_eq(g.unprotected, 0);
}
END_TEST

/* 0.2 % of a core are 2 ms a second: a walk through 150 groups takes ten. */
START_TEST(at_rest_it_wakes_once_a_second_and_walks_the_groups_twice_a_minute)
{
	unsigned int wakes = 0;
	uint64_t next = step(), end = g.now + 60 * SECOND;

	g.walks = g.sent = 0;
	for (; next < end; wakes++) {
		g.now = next;
		next = step();
	}
	ck_assert_uint_le(wakes, 60);
	ck_assert_uint_le(g.walks, 2);
	ck_assert_uint_ge(g.walks, 1);
	ck_assert_uint_le(g.sent, 20);
	ck_assert_uint_ge(g.sent, 19);
}
END_TEST

/* What tells that groups may have changed. */
static void nothing_moves(void)
{
}

static void guest_reads_again(void)
{
	g.guest.refaults += 4096;
}

static void guest_waits(void)
{
	g.guest.psi_some_us += 1;
}

static void guest_fills_slowly(void)
{
	g.guest.free -= g.guest.total / 200;
}

static void guest_grows(void)
{
	g.guest.total += MIB;
}

static void kernel_turns_to_generations(void)
{
	g.guest.aging = AGENT_GENERATIONS;
}

static const struct {
	void (*moves)(void);
	unsigned int walks; /* in six seconds of two reports */
} reasons[] = { { nothing_moves, 0 }, { guest_reads_again, 6 }, { guest_waits, 2 },
	{ guest_fills_slowly, 3 }, { guest_grows, 6 }, { kernel_turns_to_generations, 1 } };

START_TEST(groups_are_read_where_the_guest_s_figures_tell_that_they_may_have_changed)
{
	step();
	g.walks = 0;
	for (int i = 0; i < 6; i++) {
		g.now += SECOND;
		reasons[_i].moves();
		step();
	}
	ck_assert_uint_eq(g.walks, reasons[_i].walks);
}
END_TEST

START_TEST(rates_of_a_group_that_begins_to_read_again_are_those_since_the_last_report)
{
	step();
	for (int i = 0; i < 12; i++) {
		g.now += SECOND;
		step();
	}
	g.now += SECOND;
	g.walks = 0;
	g.groups[0].restores += 30 * MIB;
	g.groups[0].refaults += 30 * MIB;
	g.groups[0].psi_some_us += 300000;
	g.guest.refaults += 30 * MIB;
	g.guest.psi_some_us += 300000;
	step();
	ck_assert_uint_eq(g.walks, 1);
	ck_assert_uint_eq(channel.agent.need, 30 * MIB);
	ck_assert_str_eq(channel.agent.groups[0].name, "hot");
	ck_assert_uint_eq(channel.agent.groups[0].refaults, 30 * MIB);
	ck_assert_uint_eq(channel.agent.groups[0].psi, 300);
	/* And when it is over none is told. */
	for (int i = 0; i < 4; i++) {
		g.now += SECOND;
		step();
	}
	ck_assert_uint_eq(g.walks, 1);
	ck_assert_uint_eq(channel.agent.groups[0].refaults, 0);
	ck_assert_uint_eq(channel.agent.groups[0].psi, 0);
}
END_TEST

START_TEST(what_a_request_left_of_a_group_is_told_by_the_report_after_it)
{
	step();
	ck_assert_uint_eq(channel.agent.groups[0].inactive, 300 * MIB);
	ask(MIB, false, false);
	run();
	g.now += AGENT_REST_US;
	step();
	ck_assert_uint_eq(channel.agent.groups[0].inactive, 299 * MIB);
}
END_TEST

START_TEST(first_batch_is_what_a_slow_guest_frees_in_a_batchs_time)
{
	step();
	ask(200 * MIB, false, false);
	step();
	ck_assert_uint_eq(g.batches, 1);
	ck_assert_uint_le(g.largest, 20 * MIB * AGENT_BATCH_US / SECOND);
}
END_TEST

START_TEST(reports_are_rare_at_rest_and_come_at_once_under_pressure)
{
	unsigned int sent;

	step();
	sent = g.sent;
	for (int i = 0; i < 9; i++) {
		g.now += SECOND;
		step();
	}
	ck_assert_uint_eq(g.sent - sent, 3);
	g.now += AGENT_PRESSURE_US;
	agent_pressure(&agent);
	sent = g.sent;
	step();
	ck_assert_uint_eq(g.sent - sent, 1);
}
END_TEST

START_TEST(figures_that_cannot_be_read_under_pressure_are_not_read_over_and_over)
{
	unsigned int sent;

	step();
	g.now += SECOND;
	g.guest_error = -EIO;
	agent_pressure(&agent);
	for (int i = 0; i < 30; i++) {
		uint64_t next = step();

		ck_assert_uint_ge(next, g.now + AGENT_PRESSURE_US);
		g.now = next;
	}
	g.guest_error = 0;
	sent = g.sent;
	step();
	ck_assert_uint_eq(g.sent - sent, 1);
}
END_TEST

START_TEST(pressure_that_could_not_be_told_is_told_as_soon_as_it_can)
{
	unsigned int sent;
	uint64_t next;

	step();
	g.now += AGENT_PRESSURE_US;
	agent_pressure(&agent);
	g.send_error = -EAGAIN;
	sent = g.sent;
	next = step();
	ck_assert_uint_eq(g.sent, sent);
	ck_assert_uint_eq(next, g.now + AGENT_PRESSURE_US);
	g.send_error = 0;
	g.now = next;
	next = step();
	ck_assert_uint_eq(g.sent - sent, 1);
	ck_assert_uint_gt(next, g.now + AGENT_PRESSURE_US);
}
END_TEST

/* 1024 MiB in all less what is free or of files, and 100 MiB that are active. */
START_TEST(working_set_is_what_is_used_and_what_is_read_again)
{
	const uint64_t used = (1024 - 300 - 100 - 420 + 100) * MIB;

	step();
	ck_assert_uint_eq(channel.agent.workingset, used);
	g.now += SECOND;
	g.guest.refaults += 30 * MIB;
	step();
	ck_assert_uint_eq(channel.agent.workingset, used + 30 * MIB);
}
END_TEST

START_TEST(busiest_groups_are_told_by_name_and_no_more_than_eight)
{
	static const int order[] = { 8, 3, 12, 11, 10, 9, 7, 6 };
	char name[8];

	g.nr_groups = GROUPS;
	for (unsigned int i = 0; i < GROUPS; i++) {
		g.groups[i] = (struct agent_group){ .id = i + 1, .current = (i + 1) * MIB };
		snprintf(g.groups[i].name, sizeof(g.groups[i].name), "g%u", i + 1);
	}
	step();
	g.now += SECOND;
	g.groups[2].refaults += 5 * MIB;
	g.groups[7].refaults += 9 * MIB;
	g.guest.refaults += 14 * MIB;
	step();
	ck_assert_uint_eq(channel.agent.nr_groups, PROTOCOL_GROUPS);
	for (unsigned int i = 0; i < PROTOCOL_GROUPS; i++) {
		snprintf(name, sizeof(name), "g%d", order[i]);
		ck_assert_str_eq(channel.agent.groups[i].name, name);
	}
	ck_assert_uint_eq(channel.agent.groups[0].refaults, 9 * MIB);
}
END_TEST

START_TEST(looping_stream_is_not_hurt_and_squeezed_group_asks)
{
	step();
	g.now += SECOND;
	g.groups[1].refaults += 200 * MIB; /* read again, and never was active */
	g.groups[1].psi_some_us += 300000;
	g.guest.refaults += 200 * MIB;
	step();
	ck_assert_uint_eq(channel.agent.need, 0);
	ck_assert_uint_eq(channel.agent.refaults, 200 * MIB);
	g.now += SECOND;
	g.groups[0].restores += 30 * MIB;
	g.groups[0].psi_some_us += 300000;
	g.guest.psi_some_us += 300000;
	step();
	ck_assert_uint_eq(channel.agent.need, 30 * MIB);
}
END_TEST

START_TEST(nonsense_from_the_host_is_answered_and_changes_nothing)
{
	static const char bad[] = "nonsense\n{\"type\":\"dance\"}\n{\"type\":\"report\"}\n";

	agent_input(&agent, bad, sizeof(bad) - 1);
	ck_assert_uint_eq(agent.request.id, 0);
	ck_assert_ptr_nonnull(strstr(g.last, "error"));
	ck_assert_uint_eq(channel.agent.faults, 3);
}
END_TEST

/* ---- generations ---- */

static void ages(enum agent_aging aging)
{
	platform.can = PROTOCOL_CAN_ALL & ~PROTOCOL_CAN_LISTS &
		       ~(aging == AGENT_PROBES ? PROTOCOL_CAN_GENERATIONS : PROTOCOL_CAN_PROBES);
	g.guest.aging = aging;
}

START_TEST(kernel_that_turns_to_generations_is_told_and_no_list_is)
{
	step();
	ck_assert(channel.agent.known & HV_AGENT_LISTS);
	ages(_i ? AGENT_PROBES : AGENT_GENERATIONS);
	g.groups[1].old_file = 40 * MIB;
	g.groups[2].old_file = 2 * MIB;
	g.now += SECOND;
	step();
	ck_assert_uint_eq(agent.said, platform.can);
	ck_assert_uint_eq(channel.agent.faults, 0);
	ck_assert(!(channel.agent.known & HV_AGENT_LISTS));
	ck_assert_ptr_null(strstr(g.last, "inactive_file"));
	ck_assert_int_eq(!!(channel.agent.known & HV_AGENT_COLD), !_i);
	if (_i == 0) {
		ck_assert_uint_eq(channel.agent.lists.inactive_file, 42 * MIB);
		ck_assert_uint_eq(channel.agent.lists.active_file, 0);
	}
}
END_TEST

/* The lists say that 300 and 100 MiB are inactive. */
START_TEST(only_old_generations_are_taken_whatever_the_lists_say)
{
	ages(AGENT_GENERATIONS);
	g.groups[0].old_file = 10 * MIB;
	g.groups[2].old_file = 30 * MIB;
	step();
	ask(64 * MIB, false, false);
	run();
	ck_assert_uint_eq(answer(), 40 * MIB);
	ck_assert_uint_eq(g.taken[0], 10 * MIB);
	ck_assert_uint_eq(g.taken[1], 0);
	ck_assert_uint_eq(g.taken[2], 30 * MIB);
	ck_assert_ptr_nonnull(strstr(g.last, "nothing is inactive"));
}
END_TEST

START_TEST(probes_double_as_long_as_nothing_is_read_again)
{
	ages(AGENT_PROBES);
	g.groups[0].current = g.groups[2].current = 0;
	g.groups[0].active_file = g.groups[0].inactive_file = g.groups[2].inactive_file = 0;
	g.groups[1].current = 256 * MIB;
	agent.us_a_page = 3;
	step();
	ask(100 * MIB, false, false);
	run();
	ck_assert_uint_eq(g.sizes[0], 4 * MIB);
	ck_assert_uint_eq(g.sizes[1], 8 * MIB);
	ck_assert_uint_eq(g.sizes[2], 16 * MIB);
	ck_assert_uint_eq(answer(), 100 * MIB);
}
END_TEST

/* Also where its generations say that all of it is old: reads through descriptors do not count. */
START_TEST(group_that_reads_again_what_was_taken_is_left_alone_and_protected)
{
	ages(_i ? AGENT_PROBES : AGENT_GENERATIONS);
	g.groups[0].old_file = g.groups[1].old_file = 100 * MIB;
	g.reads_again[0] = true;
	step();
	ask(64 * MIB, false, false);
	run();
	ck_assert_uint_eq(answer(), 64 * MIB);
	ck_assert_uint_le(g.taken[0], 120 * MIB / 64);
	ck_assert_uint_ge(g.protected, 1);
	g.reads_again[1] = g.reads_again[2] = true;
	ask(300 * MIB, true, false);
	run();
	ck_assert_uint_lt(answer(), 100 * MIB);
	ck_assert_uint_le(g.taken[0], 120 * MIB / 64);
}
END_TEST

static void one_group_that_is_probed(void)
{
	ages(AGENT_PROBES);
	g.groups[0] = g.groups[1];
	g.groups[0].id = 1;
	g.nr_groups = 1;
	step();
}

START_TEST(last_probe_of_a_request_is_judged_when_it_was_and_not_by_all_that_follows)
{
	uint64_t due;

	one_group_that_is_probed();
	ask(MIB, false, false);
	run();
	ck_assert_uint_eq(answer(), MIB);
	due = agent.seen[0].probe.at + AGENT_PROBE_US;
	ck_assert_uint_eq(step(), due);
	for (int i = 0; i < 3; i++)
		g.now = step();
	g.now += 60 * SECOND;
	g.groups[0].refaults += 300 * MIB; /* what it streamed meanwhile */
	ask(MIB, false, false);
	run();
	ck_assert_uint_eq(answer(), MIB);
}
END_TEST

START_TEST(what_a_request_took_last_and_is_read_again_rests_the_group)
{
	one_group_that_is_probed();
	ask(MIB, false, false);
	run();
	ck_assert_uint_eq(answer(), MIB);
	g.groups[0].refaults += MIB;
	for (int i = 0; i < 3; i++)
		g.now = step();
	ask(MIB, false, false);
	run();
	ck_assert_uint_eq(answer(), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("agent");
	TCase *tc = tcase_create("agent");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, host_and_agent_greet_and_a_report_follows_at_once);
	tcase_add_test(tc, inactive_pages_of_who_has_many_go_and_the_hot_group_keeps_all);
	tcase_add_test(tc, batches_are_at_most_a_quarter_of_what_remains);
	tcase_add_test(tc, active_pages_are_taken_only_where_the_host_says_so);
	tcase_add_loop_test(tc, active_pages_stay_as_long_as_anything_inactive_is_found, 0, 2);
	tcase_add_test(tc, anonymous_pages_go_only_where_they_may_and_as_far_as_there_is_swap);
	tcase_add_test(tc, BR_50_batches_are_a_quarter_of_what_remains_64_48_36_27);
	tcase_add_test(tc, group_that_nobody_is_in_gives_last);
	tcase_add_test(tc, sixteen_empty_batches_in_all_and_no_more);
	tcase_add_loop_test(tc, BR_89_what_the_kernel_refuses_ends_a_request_and_is_told, 0,
		sizeof(refusals) / sizeof(refusals[0]));
	tcase_add_test(tc, BR_89_that_less_came_than_was_asked_is_no_error);
	tcase_add_test(tc, group_that_waits_for_memory_ends_it_at_once);
	tcase_add_test(tc, another_group_that_begins_to_read_again_what_it_used_ends_it);
	tcase_add_test(tc, group_that_suffered_before_ends_nothing);
	tcase_add_test(tc, group_that_one_request_squeezed_ends_the_next_as_well);
	tcase_add_test(
		tc, looping_stream_s_pressure_on_the_guest_ends_nothing_where_there_are_groups);
	tcase_add_loop_test(
		tc, guest_without_groups_is_judged_by_its_own_pressure_beside_the_agents, 0, 2);
	tcase_add_test(tc, guest_without_groups_is_looked_at_between_batches);
	tcase_add_test(tc, told_to_stop_it_stops_and_tells_what_came);
	tcase_add_test(tc, deadline_ends_it);
	tcase_add_test(tc, protection_is_put_back_some_time_after_the_request_and_at_the_end);
	tcase_add_test(tc, protection_that_cannot_be_put_back_is_tried_again);
	tcase_add_test(tc, protection_that_cannot_be_is_tried_once_a_request);
	tcase_add_test(tc, at_rest_it_wakes_once_a_second_and_walks_the_groups_twice_a_minute);
	tcase_add_loop_test(tc,
		groups_are_read_where_the_guest_s_figures_tell_that_they_may_have_changed, 0,
		sizeof(reasons) / sizeof(reasons[0]));
	tcase_add_test(
		tc, rates_of_a_group_that_begins_to_read_again_are_those_since_the_last_report);
	tcase_add_test(tc, what_a_request_left_of_a_group_is_told_by_the_report_after_it);
	tcase_add_test(tc, first_batch_is_what_a_slow_guest_frees_in_a_batchs_time);
	tcase_add_test(tc, reports_are_rare_at_rest_and_come_at_once_under_pressure);
	tcase_add_test(tc, figures_that_cannot_be_read_under_pressure_are_not_read_over_and_over);
	tcase_add_test(tc, pressure_that_could_not_be_told_is_told_as_soon_as_it_can);
	tcase_add_test(tc, working_set_is_what_is_used_and_what_is_read_again);
	tcase_add_test(tc, busiest_groups_are_told_by_name_and_no_more_than_eight);
	tcase_add_test(tc, looping_stream_is_not_hurt_and_squeezed_group_asks);
	tcase_add_test(tc, nonsense_from_the_host_is_answered_and_changes_nothing);
	tcase_add_loop_test(tc, kernel_that_turns_to_generations_is_told_and_no_list_is, 0, 2);
	tcase_add_test(tc, only_old_generations_are_taken_whatever_the_lists_say);
	tcase_add_test(tc, probes_double_as_long_as_nothing_is_read_again);
	tcase_add_loop_test(
		tc, group_that_reads_again_what_was_taken_is_left_alone_and_protected, 0, 2);
	tcase_add_test(
		tc, last_probe_of_a_request_is_judged_when_it_was_and_not_by_all_that_follows);
	tcase_add_test(tc, what_a_request_took_last_and_is_read_again_rests_the_group);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
