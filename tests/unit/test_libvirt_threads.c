/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The libvirt backend's threads, on a libvirt of the tests' own: calls that hang, connections that
 * break, pressure and events that come by themselves.
 */
#include <config.h>

#include "hv/libvirt/libvirt.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hv/libvirt/backend.h"
#include "hv/libvirt/domxml.h"
#include "tests/unit/libvirt_host.h"
#include "tests/unit/suite.h"

/* ---- what hangs ---- */

static void hang(struct fake_domain *dom, bool hangs)
{
	fake_lock();
	dom->hangs = hangs;
	fake_unlock();
}

static void wait_hanging(unsigned int nr)
{
	for (unsigned int i = 0; i < PATIENCE_MS / 2 && fake_nr_hanging() != nr; i++)
		nap();
	ck_assert_uint_eq(fake_nr_hanging(), nr);
}

START_TEST(a_hung_call_keeps_nothing_else_from_being_answered)
{
	uint64_t hung;
	struct hv_event event;

	open_backend();
	hang(web, true);
	hung = submit(HV_STATS, web);
	wait_hanging(1);
	for (unsigned int i = 0; i < 50; i++) {
		event = ask(HV_STATS, db);
		ck_assert_int_eq(event.error, 0);
		hv_event_clear(&event);
	}
	event = ask(HV_LIST, NULL);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
	event = ask(HV_INFO, web);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
	expect_done(set_target(db, 64 * MIB, 128 * MIB), 0);
	fake_release();
	event = answer_to(hung);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
}
END_TEST

START_TEST(so_many_hung_calls_end_new_ones_until_they_return)
{
	static struct libvirt_calls impatient;
	struct fake_domain *stuck[HV_MAX_HUNG];
	uint64_t tokens[HV_MAX_HUNG];
	struct hv_event event;
	struct hv_call call;
	int r = 0;

	for (unsigned int i = 0; i < HV_MAX_HUNG; i++) {
		stuck[i] = fake_add("stuck");
		stuck[i]->hangs = true;
	}
	impatient = fake_calls;
	impatient.times.hung = 20000;
	open_with(&impatient);
	event = wait_for(HV_EVENT_UP);
	hv_event_clear(&event);
	for (unsigned int i = 0; i < HV_MAX_HUNG; i++)
		tokens[i] = submit(HV_STATS, stuck[i]);
	wait_hanging(HV_MAX_HUNG);
	for (unsigned int i = 0; i < PATIENCE_MS / 2 && r == 0; i++) {
		call = make(HV_STATS, db);
		r = hv_libvirt.submit(hv, &call);
		if (r == 0) {
			event = answer_to(call.token);
			hv_event_clear(&event);
			nap();
		}
	}
	ck_assert_int_eq(r, -EAGAIN);
	/* What cannot hang goes on. */
	event = ask(HV_LIST, NULL);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
	event = ask(HV_PROCESS, NULL);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
	fake_release();
	for (unsigned int i = 0; i < HV_MAX_HUNG; i++) {
		event = wait_for(HV_EVENT_STATS);
		ck_assert(event.token >= tokens[0] && event.token <= tokens[HV_MAX_HUNG - 1]);
		hv_event_clear(&event);
	}
	event = ask(HV_STATS, db);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
}
END_TEST

START_TEST(calls_that_waited_behind_hung_ones_are_answered_too)
{
	struct fake_domain *stuck[HV_WORKERS];
	struct hv_event event;
	uint64_t waited;

	for (unsigned int i = 0; i < HV_WORKERS; i++) {
		stuck[i] = fake_add("stuck");
		stuck[i]->hangs = true;
	}
	open_backend();
	for (unsigned int i = 0; i < HV_WORKERS; i++)
		submit(HV_STATS, stuck[i]);
	waited = submit(HV_STATS, db);
	wait_hanging(HV_WORKERS);
	fake_release();
	for (unsigned int i = 0; i < HV_WORKERS; i++) {
		event = wait_for(HV_EVENT_STATS);
		waited = event.token == waited ? 0 : waited;
		hv_event_clear(&event);
	}
	if (waited) {
		event = answer_to(waited);
		hv_event_clear(&event);
	}
}
END_TEST

START_TEST(closing_does_not_wait_for_a_hung_call_which_frees_all_when_it_returns)
{
	open_backend();
	hang(web, true);
	submit(HV_STATS, web);
	wait_hanging(1);
	hv_libvirt.close(hv);
	hv = NULL;
	/* The control connection goes at once; the hung one's and all it needs stay. */
	for (unsigned int i = 0; i < PATIENCE_MS / 2 && fake_nr_connections() > 1; i++)
		nap();
	ck_assert_uint_eq(fake_nr_connections(), 1);
	ck_assert_uint_eq(hv_libvirt_nr_alive(), 1);
	ck_assert_uint_eq(fake_nr_hanging(), 1);
	/* The rest is teardown's to see. */
}
END_TEST

START_TEST(closing_with_answers_untaken_and_calls_waiting_frees_them)
{
	open_backend();
	hang(web, true);
	for (unsigned int i = 0; i < 20; i++) {
		submit(HV_STATS, web);
		submit(HV_INFO, db);
		submit(HV_LIST, NULL);
		submit(HV_PROCESS, NULL);
	}
	fake_emit_lifecycle(web);
}
END_TEST

START_TEST(closing_nothing_does_nothing)
{
	hv_libvirt.close(NULL);
}
END_TEST

/* ---- the connection ---- */

START_TEST(a_connection_that_cannot_be_made_is_told_once_and_made_later)
{
	struct hv_event event;

	fake_fail(FAKE_OPEN, VIR_ERR_SYSTEM_ERROR);
	open_with(&fake_calls);
	event = wait_for(HV_EVENT_DOWN);
	ck_assert(strstr(event.message, "made up") && strstr(event.message, "qemu:///system"));
	hv_event_clear(&event);
	event = ask(HV_LIST, NULL);
	ck_assert_int_eq(event.error, -ENOTCONN);
	hv_event_clear(&event);
	while (fake_count(FAKE_OPEN) < 4)
		nap();
	fake_fail(FAKE_OPEN, 0);
	event = wait_for(HV_EVENT_UP);
	hv_event_clear(&event);
	ck_assert_uint_eq(seen[HV_EVENT_DOWN], 0);
	event = ask(HV_LIST, NULL);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
}
END_TEST

START_TEST(a_lost_connection_is_told_and_all_connections_are_made_anew)
{
	struct hv_event event;
	struct hv_call call;

	open_backend();
	event = ask(HV_STATS, web);
	hv_event_clear(&event);
	fake_fail(FAKE_OPEN, VIR_ERR_SYSTEM_ERROR);
	fake_break(VIR_CONNECT_CLOSE_REASON_KEEPALIVE);
	event = wait_for(HV_EVENT_DOWN);
	ck_assert_int_eq(event.error, -ENOTCONN);
	ck_assert(strstr(event.message, "not answer"));
	hv_event_clear(&event);
	for (int type = HV_LIST; type <= HV_TARGET; type++) {
		event = ask((enum hv_call_type)type, web);
		ck_assert_int_eq(event.error, -ENOTCONN);
		hv_event_clear(&event);
	}
	call = make(HV_PROCESS, NULL);
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	event = answer_to(call.token);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
	fake_fail(FAKE_OPEN, 0);
	event = wait_for(HV_EVENT_UP);
	hv_event_clear(&event);
	event = ask(HV_STATS, web);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
	fake_emit_reboot(web);
	event = wait_for(HV_EVENT_REBOOTED);
	hv_event_clear(&event);
}
END_TEST

START_TEST(a_loss_that_only_a_call_notices_is_told_too)
{
	struct hv_event event;

	fake_fail(FAKE_CLOSE_CALLBACK, VIR_ERR_NO_SUPPORT);
	open_backend();
	fake_break(VIR_CONNECT_CLOSE_REASON_EOF);
	event = ask(HV_LIST, NULL);
	ck_assert_int_eq(event.error, -ENOTCONN);
	ck_assert(strstr(event.message, "client socket is closed"));
	hv_event_clear(&event);
	if (seen[HV_EVENT_DOWN] == 0) {
		event = wait_for(HV_EVENT_DOWN);
		hv_event_clear(&event);
	}
	event = wait_for(HV_EVENT_UP);
	hv_event_clear(&event);
}
END_TEST

/* ---- pressure ---- */

/* A pair of descriptors of which the first has POLLPRI for good, as a PSI trigger has it for once.
 */
static void make_urgent(int fds[2])
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(fds[1], (struct sockaddr *)&address, sizeof(address)), 0);
	fds[0] = accept(listener, NULL, NULL);
	ck_assert_int_ge(fds[0], 0);
	close(listener);
	ck_assert_int_eq(send(fds[1], "!", 1, MSG_OOB), 1);
}

START_TEST(pressure_is_told_and_not_too_often)
{
	struct hv watched = { .refs = 2, .calls = &fake_calls };
	struct pollfd fd = { .events = POLLIN };
	uint64_t one = 1, first = 0, last = 0;
	pthread_t thread;
	int fds[2];

	make_urgent(fds);
	ck_assert_int_eq(hv_queue_init(&watched.queue), 0);
	watched.psi_fd = fds[0];
	watched.stop_fd = eventfd(0, EFD_CLOEXEC);
	ck_assert_int_eq(pthread_create(&thread, NULL, lv_pressure_thread, &watched), 0);
	fd.fd = watched.queue.fd;
	for (unsigned int i = 0; i < 4; i++) {
		struct hv_event event;

		/* What became one with an event that was taken leaves the descriptor readable. */
		do {
			ck_assert_int_gt(poll(&fd, 1, PATIENCE_MS), 0);
			last = hv_now();
		} while (hv_queue_take(&watched.queue, &event) == 0);
		first = first ? first : last;
		ck_assert_int_eq(event.type, HV_EVENT_PRESSURE);
	}
	/* Three pauses of whole milliseconds, the first of which may have begun before it was seen.
	 */
	ck_assert_uint_ge(last - first, 2 * (fake_calls.times.pressure / 1000 * 1000));
	ck_assert_int_eq(write(watched.stop_fd, &one, sizeof(one)), sizeof(one));
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	hv_queue_destroy(&watched.queue);
	close(watched.stop_fd);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(without_psi_all_else_works_and_it_is_said_once)
{
	struct hv_params params = {
		.uri = "qemu:///system", .proc = "/tmp", .psi = "/nonexistent/pressure"
	};
	struct hv_event event;

	ck_assert_int_eq(hv_libvirt_open_with(&fake_calls, &params, &hv), 0);
	event = wait_for(HV_EVENT_UP);
	ck_assert_int_eq(event.error, 0);
	ck_assert(strstr(event.message, "/nonexistent/pressure"));
	hv_event_clear(&event);
	fake_break(VIR_CONNECT_CLOSE_REASON_EOF);
	event = wait_for(HV_EVENT_UP);
	ck_assert_ptr_null(event.message);
	event = ask(HV_HOST, NULL);
	ck_assert_int_eq(event.type, HV_EVENT_HOST);
	ck_assert_int_eq(event.error, -ENOENT); /* and there is no meminfo in /tmp */
	hv_event_clear(&event);
}
END_TEST

/* ---- events ---- */

START_TEST(events_come_through)
{
	struct hv_uuid uuid = fake_uuid(db);
	struct hv_event event;

	open_backend();
	fake_emit_lifecycle(db);
	event = wait_any();
	ck_assert(event.type == HV_EVENT_CHANGED && hv_uuid_equal(&event.uuid, &uuid));
	fake_emit_reboot(db);
	event = wait_any();
	ck_assert(event.type == HV_EVENT_REBOOTED && hv_uuid_equal(&event.uuid, &uuid));
	fake_emit_balloon(db, 2048);
	event = wait_any();
	ck_assert(event.type == HV_EVENT_BALLOON && hv_uuid_equal(&event.uuid, &uuid));
	ck_assert_uint_eq(event.actual, 2 * MIB);
	fake_emit_device(db, true);
	event = wait_any();
	ck_assert(event.type == HV_EVENT_CHANGED && hv_uuid_equal(&event.uuid, &uuid));
	fake_emit_device(db, false);
	event = wait_any();
	ck_assert(event.type == HV_EVENT_CHANGED && hv_uuid_equal(&event.uuid, &uuid));
	/* Others' notes, titles, and a balloon that nobody knows: not told. */
	fake_emit_metadata(db, VIR_DOMAIN_METADATA_ELEMENT, "http://example.org/");
	fake_emit_metadata(db, VIR_DOMAIN_METADATA_TITLE, NULL);
	fake_emit_metadata(db, VIR_DOMAIN_METADATA_ELEMENT, NULL);
	fake_emit_balloon(db, 0);
	fake_emit_balloon(db, UINT64_MAX);
	fake_emit_metadata(web, VIR_DOMAIN_METADATA_ELEMENT, DOMXML_MEMORY_NS);
	event = wait_any();
	uuid = fake_uuid(web);
	ck_assert(event.type == HV_EVENT_CHANGED && hv_uuid_equal(&event.uuid, &uuid));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("libvirt-threads");
	TCase *tc = tcase_create("threads");

	tcase_add_checked_fixture(tc, host_setup, host_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_hung_call_keeps_nothing_else_from_being_answered);
	tcase_add_test(tc, so_many_hung_calls_end_new_ones_until_they_return);
	tcase_add_test(tc, calls_that_waited_behind_hung_ones_are_answered_too);
	tcase_add_test(tc, closing_does_not_wait_for_a_hung_call_which_frees_all_when_it_returns);
	tcase_add_test(tc, closing_with_answers_untaken_and_calls_waiting_frees_them);
	tcase_add_test(tc, closing_nothing_does_nothing);
	tcase_add_test(tc, a_connection_that_cannot_be_made_is_told_once_and_made_later);
	tcase_add_test(tc, a_lost_connection_is_told_and_all_connections_are_made_anew);
	tcase_add_test(tc, a_loss_that_only_a_call_notices_is_told_too);
	tcase_add_test(tc, pressure_is_told_and_not_too_often);
	tcase_add_test(tc, without_psi_all_else_works_and_it_is_said_once);
	tcase_add_test(tc, events_come_through);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
