/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See libvirt_host.h. */
#include <config.h>

#include "tests/unit/libvirt_host.h"

#include <check.h>
#include <poll.h>
#include <string.h>
#include <time.h>

struct hv *hv;
struct fake_domain *web, *db;
unsigned int seen[HV_EVENT_UP + 1];
struct hv_agent last_agent[2];
static uint64_t token;

void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

void host_setup(void)
{
	fake_reset();
	web = fake_add("web");
	db = fake_add("db");
	memset(seen, 0, sizeof(seen));
	memset(last_agent, 0, sizeof(last_agent));
	hv = NULL;
}

/* Everything must be gone in the end: threads, connections, callbacks. */
void host_teardown(void)
{
	fake_release();
	hv_libvirt.close(hv);
	for (unsigned int i = 0; i < PATIENCE_MS / 2 && hv_libvirt_nr_alive() > 0; i++)
		nap();
	ck_assert_uint_eq(hv_libvirt_nr_alive(), 0);
	ck_assert_uint_eq(fake_nr_connections(), 0);
}

struct hv_event wait_any(void)
{
	struct hv_event event;
	struct pollfd fd = { .fd = hv_libvirt.fd(hv), .events = POLLIN };

	while (hv_libvirt.next(hv, &event) == 0)
		ck_assert_int_gt(poll(&fd, 1, PATIENCE_MS), 0);
	if (event.type == HV_EVENT_AGENT && event.uuid.bytes[15] < 2)
		last_agent[event.uuid.bytes[15]] = event.agent;
	return event;
}

struct hv_event wait_for(enum hv_event_type type)
{
	for (;;) {
		struct hv_event event = wait_any();

		if (event.type == type)
			return event;
		seen[event.type]++;
		hv_event_clear(&event);
	}
}

struct hv_event answer_to(uint64_t wanted)
{
	for (;;) {
		struct hv_event event = wait_any();

		if (event.token == wanted)
			return event;
		ck_assert_uint_eq(event.token, 0); /* no answer to something else */
		seen[event.type]++;
		hv_event_clear(&event);
	}
}

struct hv_call make(enum hv_call_type type, const struct fake_domain *dom)
{
	struct hv_call call = { .type = type, .token = ++token };

	if (dom)
		call.uuid = fake_uuid(dom);
	return call;
}

uint64_t submit(enum hv_call_type type, const struct fake_domain *dom)
{
	struct hv_call call = make(type, dom);

	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	return call.token;
}

struct hv_event ask(enum hv_call_type type, const struct fake_domain *dom)
{
	struct hv_event event = answer_to(submit(type, dom));
	struct hv_uuid uuid;

	if (dom) {
		uuid = fake_uuid(dom);
		ck_assert(hv_uuid_equal(&event.uuid, &uuid));
	}
	return event;
}

struct hv_event ask_call(struct hv_call call, const struct fake_domain *dom)
{
	call.token = ++token;
	call.uuid = fake_uuid(dom);
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	return answer_to(call.token);
}

struct hv_event set_target(const struct fake_domain *dom, uint64_t target, uint64_t ceiling)
{
	return ask_call(
		(struct hv_call){ .type = HV_TARGET, .target = target, .ceiling = ceiling }, dom);
}

void open_with(const struct libvirt_calls *calls)
{
	/* An empty folder as /proc: nothing of this machine's is looked at. */
	static char proc[] = "/tmp";
	struct hv_params params = { .uri = "qemu:///system", .proc = proc };

	ck_assert_int_eq(hv_libvirt_open_with(calls, &params, &hv), 0);
}

void open_backend(void)
{
	struct hv_event event;

	open_with(&fake_calls);
	event = wait_for(HV_EVENT_UP);
	ck_assert_ptr_null(event.message);
	hv_event_clear(&event);
}

void expect_done(struct hv_event event, int error)
{
	ck_assert_int_eq(event.type, HV_EVENT_DONE);
	ck_assert_msg(event.error == error, "%d: %s", event.error, event.message);
	hv_event_clear(&event);
}
