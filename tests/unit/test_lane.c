/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hv/lane.h"

#include <check.h>
#include <errno.h>

#include "tests/unit/suite.h"

#define DEADLINE UINT64_C(3000000)

static struct lane lane;
static struct hv_call call;
static uint64_t seq;

static void setup(void)
{
	const struct hv_uuid uuid = { { 7 } };

	lane_init(&lane, &uuid);
	seq = 99;
}

START_TEST(lane_without_wishes_calls_nothing)
{
	ck_assert(!lane_next(&lane, 0, 1, &call));
	ck_assert(!lane.busy);
}
END_TEST

START_TEST(wishes_are_called_in_their_order_whatever_came_first)
{
	static const enum hv_call_type order[] = { HV_INFO, HV_TARGET, HV_PERIOD, HV_STATS };

	lane.want_stats = true;
	lane.want_period = true;
	lane.period_s = 1;
	lane_want_target(&lane, 1, 4096, 8192);
	lane.want_info = true;
	for (uint64_t i = 0; i < 4; i++) {
		ck_assert(lane_next(&lane, 0, i + 1, &call));
		ck_assert_int_eq(call.type, order[i]);
		ck_assert_uint_eq(call.token, i + 1);
		ck_assert(hv_uuid_equal(&call.uuid, &lane.uuid));
		ck_assert(lane_done(&lane, i + 1, 0, &seq));
	}
	ck_assert(!lane_next(&lane, 0, 5, &call));
}
END_TEST

START_TEST(one_call_is_out_at_a_time)
{
	lane.want_info = lane.want_stats = true;
	ck_assert(lane_next(&lane, 0, 1, &call));
	ck_assert(!lane_next(&lane, 0, 2, &call));
	ck_assert(lane_done(&lane, 1, 0, &seq));
	ck_assert(lane_next(&lane, 0, 2, &call));
}
END_TEST

START_TEST(newest_target_supersedes_one_that_was_not_called)
{
	lane_want_target(&lane, 1, 4096, 8192);
	lane_want_target(&lane, 2, 2048, 8192);
	ck_assert(lane_next(&lane, 0, 1, &call));
	ck_assert_uint_eq(call.target, 2048);
	ck_assert_uint_eq(call.ceiling, 8192);
	ck_assert(lane_done(&lane, 1, 0, &seq));
	ck_assert_uint_eq(seq, 2);
	ck_assert_uint_eq(lane.applied_seq, 2);
	ck_assert(!lane_next(&lane, 0, 2, &call));
}
END_TEST

START_TEST(target_wished_during_a_call_is_called_after_it)
{
	lane_want_target(&lane, 1, 4096, 8192);
	ck_assert(lane_next(&lane, 0, 1, &call));
	lane_want_target(&lane, 2, 2048, 8192);
	ck_assert(lane_done(&lane, 1, 0, &seq));
	ck_assert_uint_eq(seq, 1);
	ck_assert_uint_eq(lane.applied_seq, 1);
	ck_assert(lane_next(&lane, 0, 2, &call));
	ck_assert_uint_eq(call.target, 2048);
}
END_TEST

START_TEST(refused_target_is_not_applied)
{
	lane_want_target(&lane, 5, 4096, 8192);
	ck_assert(lane_next(&lane, 0, 1, &call));
	ck_assert(lane_done(&lane, 1, -EIO, &seq));
	ck_assert_uint_eq(seq, 5);
	ck_assert_uint_eq(lane.applied_seq, 0);
}
END_TEST

START_TEST(dropped_target_is_not_called)
{
	lane_want_target(&lane, 1, 4096, 8192);
	lane_drop_target(&lane);
	ck_assert(!lane_next(&lane, 0, 1, &call));
}
END_TEST

START_TEST(answer_with_another_token_is_not_this_lanes)
{
	ck_assert(!lane_done(&lane, 1, 0, &seq));
	lane.want_stats = true;
	ck_assert(lane_next(&lane, 0, 1, &call));
	ck_assert(!lane_done(&lane, 2, 0, &seq));
	ck_assert(lane.busy);
	ck_assert_uint_eq(seq, 99);
	ck_assert(lane_done(&lane, 1, 0, &seq));
	ck_assert_uint_eq(seq, 0);
}
END_TEST

START_TEST(call_that_was_not_submitted_is_wished_again)
{
	lane.want_info = lane.want_period = lane.want_stats = true;
	lane_want_target(&lane, 1, 4096, 8192);
	for (int i = 0; i < 4; i++) {
		enum hv_call_type type;

		ck_assert(lane_next(&lane, 0, 1, &call));
		type = call.type;
		lane_undo(&lane);
		ck_assert(lane_next(&lane, 0, 2, &call));
		ck_assert_int_eq(call.type, type);
		ck_assert(lane_done(&lane, 2, 0, &seq));
	}
	ck_assert_uint_eq(lane.applied_seq, 1);
}
END_TEST

START_TEST(undone_target_does_not_come_back_over_a_newer_one_that_was_dropped)
{
	lane_want_target(&lane, 1, 4096, 8192);
	ck_assert(lane_next(&lane, 0, 1, &call));
	lane_want_target(&lane, 2, 2048, 8192);
	lane_drop_target(&lane);
	lane_undo(&lane);
	ck_assert(!lane_next(&lane, 0, 2, &call));
}
END_TEST

START_TEST(hung_call_is_late_once_and_holds_the_lane_until_it_returns)
{
	ck_assert(!lane_check(&lane, DEADLINE * 9, DEADLINE));
	lane.want_stats = true;
	ck_assert(lane_next(&lane, 10, 1, &call));
	ck_assert(!lane_check(&lane, 10 + DEADLINE - 1, DEADLINE));
	ck_assert(lane_check(&lane, 10 + DEADLINE, DEADLINE));
	ck_assert(lane.late);
	ck_assert(!lane_check(&lane, 10 + DEADLINE * 2, DEADLINE));
	lane.want_stats = true;
	ck_assert(!lane_next(&lane, 10 + DEADLINE * 2, 2, &call));
	ck_assert(lane_done(&lane, 1, 0, &seq));
	ck_assert(!lane.late);
	ck_assert(lane_next(&lane, 10 + DEADLINE * 2, 2, &call));
	ck_assert(!lane_check(&lane, 10 + DEADLINE * 2 + 1, DEADLINE));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lane");
	TCase *tc = tcase_create("lane");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, lane_without_wishes_calls_nothing);
	tcase_add_test(tc, wishes_are_called_in_their_order_whatever_came_first);
	tcase_add_test(tc, one_call_is_out_at_a_time);
	tcase_add_test(tc, newest_target_supersedes_one_that_was_not_called);
	tcase_add_test(tc, target_wished_during_a_call_is_called_after_it);
	tcase_add_test(tc, refused_target_is_not_applied);
	tcase_add_test(tc, dropped_target_is_not_called);
	tcase_add_test(tc, answer_with_another_token_is_not_this_lanes);
	tcase_add_test(tc, call_that_was_not_submitted_is_wished_again);
	tcase_add_test(tc, undone_target_does_not_come_back_over_a_newer_one_that_was_dropped);
	tcase_add_test(tc, hung_call_is_late_once_and_holds_the_lane_until_it_returns);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
