/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The host's end of the channel to an agent: versions, and a guest that is hostile. */
#include <config.h>

#include "hv/agent_channel.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/agent_pair.h"
#include "tests/unit/suite.h"

/* ---- versions ---- */

START_TEST(of_the_versions_that_both_speak_the_newest_counts)
{
	agent_channel_input(&channel, g.now,
		"{\"type\":\"hello\",\"oldest\":1,\"newest\":7,\"can\":[\"reclaim\"]}\n", 58);
	ck_assert(channel.agent.connected);
	ck_assert_uint_eq(channel.agent.version, PROTOCOL_NEWEST);
	ck_assert_uint_eq(channel.agent.faults, 0);
}
END_TEST

START_TEST(side_that_speaks_no_version_of_the_others_is_not_spoken_to)
{
	static const char newer[] = "{\"type\":\"hello\",\"oldest\":2,\"newest\":7}\n";
	unsigned int sent;

	agent_channel_close(&channel);
	agent_channel_input(&channel, g.now, newer, sizeof(newer) - 1);
	ck_assert(!channel.agent.connected);
	ck_assert_str_eq(channel.agent.fault, "speaks no version that is spoken here");
	agent_input(&agent, newer, sizeof(newer) - 1);
	/* It says which it speaks itself, and nothing more. */
	ck_assert_ptr_nonnull(strstr(g.last, "\"hello\""));
	sent = g.sent;
	g.now += 10 * SECOND;
	step();
	ck_assert_uint_eq(g.sent, sent);
}
END_TEST

/* ---- a hostile guest ---- */

static void from_guest(const char *text)
{
	agent_channel_input(&channel, g.now, text, strlen(text));
}

START_TEST(answer_with_another_id_counts_for_nothing_and_is_a_fault)
{
	uint64_t came;
	int error;

	step();
	ask(MIB, false, false);
	from_guest("{\"type\":\"done\",\"id\":99,\"bytes\":1048576}\n");
	ck_assert(!agent_channel_answer(&channel, g.now, &error, &came));
	ck_assert_uint_eq(channel.agent.faults, 1);
	ck_assert_str_eq(channel.agent.fault, "answers what was not asked");
	ck_assert(agent_channel_answer(&channel, g.now + 10 * SECOND, &error, &came));
	ck_assert_int_eq(error, -ETIMEDOUT);
}
END_TEST

START_TEST(BR_32_agent_that_never_reads_is_waited_for_until_its_deadline_and_is_at_fault)
{
	struct hv_call call = { .type = HV_RECLAIM, .bytes = MIB, .deadline_ms = 1000 };
	char text[PROTOCOL_MESSAGE_MAX + 2];
	uint64_t came, end;
	size_t length;
	int error;

	step();
	ck_assert_int_eq(agent_channel_reclaim(&channel, g.now, &call, text, &length), 0);
	end = g.now + SECOND + AGENT_CHANNEL_GRACE_US;
	ck_assert(!agent_channel_answer(&channel, end - 1, &error, &came));
	ck_assert_int_eq(agent_channel_reclaim(&channel, end, &call, text, &length), -EAGAIN);
	ck_assert(agent_channel_answer(&channel, end, &error, &came));
	ck_assert_int_eq(error, -ETIMEDOUT);
	ck_assert_uint_eq(came, 0);
	ck_assert_uint_eq(channel.agent.faults, 1);
	ck_assert_str_eq(channel.agent.fault, "gives no answer in time");
}
END_TEST

START_TEST(BR_32_agent_is_greeted_anew_where_nothing_came_for_a_while)
{
	uint64_t opened = g.now;

	ck_assert(!agent_channel_silent(&channel, opened + AGENT_CHANNEL_SILENT_US - 1));
	ck_assert(agent_channel_silent(&channel, opened + AGENT_CHANNEL_SILENT_US));
	g.now += AGENT_CHANNEL_SILENT_US - 1;
	step(); /* a report */
	ck_assert(!agent_channel_silent(&channel, opened + AGENT_CHANNEL_SILENT_US));
	ck_assert(agent_channel_silent(&channel, g.now + AGENT_CHANNEL_SILENT_US));
}
END_TEST

START_TEST(thousand_reports_a_second_are_read_at_the_rate_that_is_allowed)
{
	uint64_t again, read = 0;

	g.now += SECOND;
	for (int i = 0; i < 1000; i++) {
		if (agent_channel_room(&channel, g.now, &again) == 0)
			break;
		from_guest("{\"type\":\"report\",\"floor\":1}\n");
		read++;
	}
	ck_assert_uint_eq(read, AGENT_CHANNEL_MESSAGES);
	ck_assert_uint_eq(again, g.now + SECOND);
	ck_assert_uint_eq(channel.agent.faults, 1);
	g.now = again;
	ck_assert_uint_gt(agent_channel_room(&channel, g.now, &again), 0);
}
END_TEST

START_TEST(noise_without_end_is_bounded_in_bytes_a_second)
{
	char noise[4096];
	uint64_t again, read = 0;
	size_t room;

	memset(noise, '9', sizeof(noise));
	g.now += SECOND;
	while ((room = agent_channel_room(&channel, g.now, &again))) {
		room = room < sizeof(noise) ? room : sizeof(noise);
		agent_channel_input(&channel, g.now, noise, room);
		read += room;
		ck_assert_uint_le(read, AGENT_CHANNEL_BYTES);
	}
	ck_assert_uint_eq(read, AGENT_CHANNEL_BYTES);
	g.now += SECOND;
	from_guest("\n");
	ck_assert_uint_eq(channel.agent.faults, 2); /* the flood, and the line */
	from_guest("{\"type\":\"report\",\"floor\":4096}\n");
	ck_assert_uint_eq(channel.agent.floor, 4096);
}
END_TEST

/* As long as it comes at the rate that is allowed; returns how many seconds that took. */
static uint64_t from_guest_times(const char *text, size_t size, uint64_t times)
{
	uint64_t again, began = g.now;
	size_t room;

	while (times > 0) {
		room = agent_channel_room(&channel, g.now, &again);
		if (room < size) {
			g.now = again;
			continue;
		}
		agent_channel_input(&channel, g.now, text, size);
		times--;
	}
	return (g.now - began) / SECOND;
}

START_TEST(number_of_a_billion_digits_is_one_fault_and_the_last_report_stays)
{
	char digits[4096];
	uint64_t seconds;

	step();
	memset(digits, '9', sizeof(digits));
	from_guest("{\"type\":\"report\",\"active_file\":");
	seconds = from_guest_times(digits, sizeof(digits), 1000000000 / sizeof(digits));
	ck_assert_uint_ge(seconds, 1000000000 / AGENT_CHANNEL_BYTES - 1);
	g.now += SECOND;
	from_guest("}\n");
	ck_assert_str_eq(channel.agent.fault, "a message is too long");
	/* Of each second one more: it sends more than is read. */
	ck_assert_uint_le(channel.agent.faults, seconds + 2);
	ck_assert_uint_eq(channel.agent.lists.active_file, 100 * MIB);
}
END_TEST

START_TEST(half_lines_are_a_fault_each_and_what_follows_is_read)
{
	step();
	from_guest("{\"type\":\"report\",\"floor\":1");
	from_guest("{\"type\":\"report\",\"floor\":2}\n");
	from_guest("\"floor\":3}\n");
	ck_assert_uint_eq(channel.agent.faults, 2);
	ck_assert_str_eq(channel.agent.fault, "no JSON object");
	from_guest("{\"type\":\"report\",");
	ck_assert_uint_eq(channel.agent.faults, 2); /* until it ends it is none */
	from_guest("\"floor\":4096}\n");
	ck_assert_uint_eq(channel.agent.faults, 2);
	ck_assert_uint_eq(channel.agent.floor, 4096);
}
END_TEST

START_TEST(impossible_figures_are_refused_and_the_last_good_report_stays)
{
	uint64_t workingset;

	step();
	workingset = channel.agent.workingset;
	ck_assert_uint_gt(workingset, 0);
	from_guest("{\"type\":\"report\",\"active_file\":-1}\n");
	from_guest("{\"type\":\"report\",\"active_file\":9223372036854775808}\n");
	ck_assert_uint_eq(channel.agent.faults, 2);
	ck_assert_str_eq(channel.agent.fault, "active_file");
	from_guest("{\"type\":\"report\",\"floor\":1,\"workingset\":-4096}\n");
	ck_assert_uint_eq(channel.agent.faults, 3);
	ck_assert_str_eq(channel.agent.fault, "workingset");
	ck_assert_uint_eq(channel.agent.lists.active_file, 100 * MIB);
	ck_assert_uint_eq(channel.agent.workingset, workingset);
	ck_assert_uint_ne(channel.agent.floor, 1);
}
END_TEST

START_TEST(request_that_is_out_fails_when_the_guest_goes)
{
	uint64_t came;
	int error;

	step();
	ask(MIB, false, false);
	agent_channel_close(&channel);
	ck_assert(agent_channel_answer(&channel, g.now, &error, &came));
	ck_assert_int_eq(error, -ENOTCONN);
	ck_assert(!channel.agent.connected);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("agent-channel");
	TCase *tc = tcase_create("channel");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, of_the_versions_that_both_speak_the_newest_counts);
	tcase_add_test(tc, side_that_speaks_no_version_of_the_others_is_not_spoken_to);
	tcase_add_test(tc, answer_with_another_id_counts_for_nothing_and_is_a_fault);
	tcase_add_test(
		tc, BR_32_agent_that_never_reads_is_waited_for_until_its_deadline_and_is_at_fault);
	tcase_add_test(tc, BR_32_agent_is_greeted_anew_where_nothing_came_for_a_while);
	tcase_add_test(tc, number_of_a_billion_digits_is_one_fault_and_the_last_report_stays);
	tcase_add_test(tc, half_lines_are_a_fault_each_and_what_follows_is_read);
	tcase_add_test(tc, thousand_reports_a_second_are_read_at_the_rate_that_is_allowed);
	tcase_add_test(tc, noise_without_end_is_bounded_in_bytes_a_second);
	tcase_add_test(tc, impossible_figures_are_refused_and_the_last_good_report_stays);
	tcase_add_test(tc, request_that_is_out_fails_when_the_guest_goes);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
