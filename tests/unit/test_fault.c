/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fault wrapper's rules, around the simulator: what each kind does, and to whom. */
#include <config.h>

#include "hv/fault/fault.h"

#include <check.h>
#include <errno.h>

#include "hv/sim/sim.h"
#include "tests/unit/suite.h"

#define S   UINT64_C(1000000)
#define MIB (UINT64_C(1) << 20)

static struct hv *hv;
static uint64_t now;

static void add(const char *name)
{
	struct sim_vm vm;

	sim_vm_default(&vm);
	vm.name = name;
	vm.guest.maximum = 1024 * MIB;
	vm.guest.free = 512 * MIB;
	vm.period_s = 1;
	ck_assert_int_eq(sim_vm_add(fault_inner(hv), &vm), 0);
}

static void move(uint64_t to)
{
	now = to;
	ck_assert_int_eq(sim_advance(fault_inner(hv), now), 0);
	fault_advance(hv, now);
}

static void setup(void)
{
	struct hv_params params = { .uri = "fault+sim:///", .inner = &hv_sim };
	struct hv_event event;

	now = 0;
	ck_assert_int_eq(hv_fault.open(&params, &hv), 0);
	add("web");
	add("db");
	move(10 * S);
	while (hv_fault.next(hv, &event) > 0)
		hv_event_clear(&event);
}

static void teardown(void)
{
	hv_fault.close(hv);
	hv = NULL;
}

static const struct sim_vm_view *view_of(const char *vm)
{
	static struct sim_vm_view view;

	ck_assert_int_eq(sim_vm_view(fault_inner(hv), vm, &view), 0);
	return &view;
}

static void rule(struct fault_rule fault, const char *vm)
{
	if (vm) {
		fault.of_vm = true;
		fault.uuid = *view_of(vm)->uuid;
	}
	if (!fault.until)
		fault.until = UINT64_MAX;
	ck_assert_int_eq(fault_add(hv, &fault), 0);
}

static void submit(enum hv_call_type type, const char *vm, uint64_t token)
{
	struct hv_call call = {
		.type = type, .token = token, .target = 768 * MIB, .ceiling = 1024 * MIB
	};

	if (vm)
		call.uuid = *view_of(vm)->uuid;
	ck_assert_int_eq(hv_fault.submit(hv, &call), 0);
}

/* The answer within a second; type NONE: none came. */
static struct hv_event answer(uint64_t token)
{
	struct hv_event event = { .type = HV_EVENT_NONE };

	for (uint64_t end = now + S; now < end; move(now + S / 100)) {
		while (hv_fault.next(hv, &event) > 0) {
			if (event.token == token)
				return event;
			hv_event_clear(&event);
		}
	}
	return (struct hv_event){ .type = HV_EVENT_NONE };
}

static struct hv_event ask(enum hv_call_type type, const char *vm)
{
	static uint64_t token = 1000;

	submit(type, vm, ++token);
	return answer(token);
}

START_TEST(a_call_that_fails_is_not_made_and_one_that_is_denied_is)
{
	struct hv_event event;

	rule(
		(struct fault_rule){
			.kind = FAULT_FAIL, .calls = FAULT_CALL(HV_TARGET), .error = -EBUSY },
		"web");
	rule((struct fault_rule){ .kind = FAULT_DENY, .calls = FAULT_CALL(HV_TARGET) }, "db");
	event = ask(HV_TARGET, "web");
	ck_assert_int_eq(event.type, HV_EVENT_DONE);
	ck_assert_int_eq(event.error, -EBUSY);
	ck_assert_uint_eq(view_of("web")->targets, 0);
	event = ask(HV_TARGET, "db");
	ck_assert_int_eq(event.error, -EIO);
	ck_assert_uint_eq(view_of("db")->targets, 1);
	event = ask(HV_STATS, "web");
	ck_assert_int_eq(event.error, 0);
}
END_TEST

START_TEST(a_call_that_hangs_is_made_when_the_rule_ends_and_costs_no_other)
{
	struct hv_event event;

	rule(
		(struct fault_rule){
			.kind = FAULT_HANG, .calls = FAULT_CALL(HV_TARGET), .until = now + 5 * S },
		"web");
	submit(HV_TARGET, "web", 7);
	ck_assert_uint_eq(fault_next(hv), now + 5 * S);
	event = ask(HV_STATS, "db");
	ck_assert_int_eq(event.type, HV_EVENT_STATS);
	ck_assert_uint_eq(view_of("web")->targets, 0);
	move(now + 5 * S);
	event = answer(7);
	ck_assert_int_eq(event.type, HV_EVENT_DONE);
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_eq(view_of("web")->targets, 1);
}
END_TEST

START_TEST(a_slow_call_is_done_at_once_and_answered_late)
{
	struct hv_event event;

	rule((struct fault_rule){ .kind = FAULT_SLOW, .delay_us = 10 * S }, "web");
	submit(HV_TARGET, "web", 7);
	event = answer(7);
	ck_assert_int_eq(event.type, HV_EVENT_NONE);
	ck_assert_uint_eq(view_of("web")->targets, 1);
	ck_assert_uint_ge(fault_next(hv), now + 3 * S);
	move(now + 10 * S);
	event = answer(7);
	ck_assert_int_eq(event.type, HV_EVENT_DONE);
}
END_TEST

START_TEST(statistics_lie_about_the_guest_and_not_about_actual)
{
	struct hv_event event, later;

	rule((struct fault_rule){ .kind = FAULT_LIE, .percent = 100 }, "web");
	rule((struct fault_rule){ .kind = FAULT_LIE, .percent = 0 }, "db");
	event = ask(HV_STATS, "web");
	ck_assert_uint_eq(event.stats.actual, 1024 * MIB);
	ck_assert_uint_ge(event.stats.usable, 1020 * MIB);
	event = ask(HV_STATS, "db");
	later = ask(HV_STATS, "db");
	ck_assert_uint_eq(event.stats.usable, 0);
	ck_assert_uint_gt(later.stats.swap_in, event.stats.swap_in);
	ck_assert_uint_gt(later.stats.last_update, event.stats.last_update);
}
END_TEST

START_TEST(stale_statistics_stand_still_and_actual_does_not)
{
	struct hv_event event = ask(HV_STATS, "web"), later;

	rule((struct fault_rule){ .kind = FAULT_STALE }, "web");
	ck_assert_int_eq(ask(HV_TARGET, "web").error, 0);
	move(now + 20 * S);
	later = ask(HV_STATS, "web");
	ck_assert_uint_eq(later.stats.last_update, event.stats.last_update);
	ck_assert_uint_eq(later.stats.unused, event.stats.unused);
	ck_assert_uint_lt(later.stats.actual, event.stats.actual);
}
END_TEST

START_TEST(figures_are_missing_others_each_time)
{
	unsigned int all = ~0u, any = 0;

	rule((struct fault_rule){ .kind = FAULT_PARTIAL }, NULL);
	for (int i = 0; i < 30; i++) {
		struct hv_event event = ask(HV_STATS, "web");

		all &= event.stats.known;
		any |= event.stats.known;
	}
	ck_assert_uint_eq(all, 0);
	ck_assert_uint_ne(any, 0);
	ck_assert(!ask(HV_HOST, NULL).host.known);
}
END_TEST

START_TEST(what_happens_by_itself_is_lost_and_the_connection_is_not)
{
	struct sim_action reboot = { .type = SIM_REBOOT }, down = { .type = SIM_DOWN };
	struct hv_event event;

	rule((struct fault_rule){ .kind = FAULT_LOSE }, NULL);
	ck_assert_int_eq(sim_at(fault_inner(hv), now, "web", &reboot), 0);
	ck_assert_int_eq(sim_at(fault_inner(hv), now, NULL, &down), 0);
	move(now);
	ck_assert_int_eq(hv_fault.next(hv, &event), 1);
	ck_assert_int_eq(event.type, HV_EVENT_DOWN);
}
END_TEST

START_TEST(chance_spoils_some_of_the_calls_the_same_ones_for_one_seed)
{
	uint64_t seen[2][2] = { { 0 } };

	for (int run = 0; run < 2; run++) {
		fault_seed(hv, 5);
		rule((struct fault_rule){ .kind = FAULT_FAIL,
			     .percent_of = 30,
			     .from = now,
			     .until = now + 200 * S },
			NULL);
		for (uint64_t i = 0; i < 60; i++) {
			struct hv_event event = ask(HV_STATS, "web");

			seen[run][0] += event.error != 0;
			seen[run][1] = seen[run][1] * 3 + (event.error != 0);
		}
		fault_end(hv, FAULT_FAIL);
	}
	ck_assert_uint_gt(seen[0][0], 5);
	ck_assert_uint_lt(seen[0][0], 40);
	ck_assert_uint_eq(seen[0][0], seen[1][0]);
	ck_assert_uint_eq(seen[0][1], seen[1][1]);
}
END_TEST

START_TEST(a_lost_connection_lets_hung_calls_go)
{
	struct sim_action down = { .type = SIM_DOWN };
	struct hv_event event;

	rule((struct fault_rule){ .kind = FAULT_HANG }, "web");
	submit(HV_STATS, "web", 7);
	ck_assert_int_eq(sim_at(fault_inner(hv), now, NULL, &down), 0);
	move(now);
	event = answer(7);
	ck_assert_int_eq(event.error, -ENOTCONN);
}
END_TEST

START_TEST(a_client_that_comes_back_gets_no_answer_of_before)
{
	rule((struct fault_rule){ .kind = FAULT_SLOW, .delay_us = S / 2 }, "web");
	submit(HV_STATS, "web", 7);
	move(now + S / 10);
	fault_new_client(hv);
	sim_new_client(fault_inner(hv));
	ck_assert_int_eq(answer(7).type, HV_EVENT_NONE);
}
END_TEST

START_TEST(rules_that_make_no_sense_are_refused)
{
	ck_assert_int_eq(
		fault_add(
			hv, &(struct fault_rule){ .kind = FAULT_LIE, .until = 1, .percent = 101 }),
		-EINVAL);
	ck_assert_int_eq(
		fault_add(hv, &(struct fault_rule){ .kind = FAULT_LIE, .from = 2, .until = 2 }),
		-EINVAL);
	ck_assert_int_eq(
		fault_add(hv, &(struct fault_rule){ .kind = FAULT_FAIL, .until = 1, .error = 5 }),
		-EINVAL);
	ck_assert_int_eq(
		hv_fault.open(&(struct hv_params){ .uri = "fault+sim:///" }, &hv), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fault");
	TCase *tc = tcase_create("rules");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_call_that_fails_is_not_made_and_one_that_is_denied_is);
	tcase_add_test(tc, a_call_that_hangs_is_made_when_the_rule_ends_and_costs_no_other);
	tcase_add_test(tc, a_slow_call_is_done_at_once_and_answered_late);
	tcase_add_test(tc, statistics_lie_about_the_guest_and_not_about_actual);
	tcase_add_test(tc, stale_statistics_stand_still_and_actual_does_not);
	tcase_add_test(tc, figures_are_missing_others_each_time);
	tcase_add_test(tc, what_happens_by_itself_is_lost_and_the_connection_is_not);
	tcase_add_test(tc, chance_spoils_some_of_the_calls_the_same_ones_for_one_seed);
	tcase_add_test(tc, a_lost_connection_lets_hung_calls_go);
	tcase_add_test(tc, a_client_that_comes_back_gets_no_answer_of_before);
	tcase_add_test(tc, rules_that_make_no_sense_are_refused);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
