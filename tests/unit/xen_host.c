/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See xen_host.h. */
#include <config.h>

#include "tests/unit/xen_host.h"

#include <check.h>
#include <poll.h>
#include <time.h>

#include "hv/xen/xen.h"
#include "tests/unit/fake_xen.h"

struct hv *host;
static uint64_t token;

void nap(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static void open_with(const struct xen_calls *calls, uint64_t dom0_min)
{
	struct hv_params params = { .uri = HV_XEN_URI, .dom0_min = dom0_min };
	struct hv_event event;

	ck_assert_int_eq(hv_xen_open_with(calls, &params, &host), 0);
	event = wait_for(HV_EVENT_UP, 0);
	hv_event_clear(&event);
}

void open_host(uint64_t dom0_min)
{
	open_with(&fake_xen_calls, dom0_min);
}

void open_host_impatient(uint64_t silent_us)
{
	static struct xen_calls calls;

	calls = fake_xen_calls;
	calls.times.silent = silent_us;
	open_with(&calls, 0);
}

void close_host(void)
{
	hv_xen.close(host);
	host = NULL;
	for (int i = 0; i < PATIENCE_MS && hv_xen_nr_alive() > 0; i++)
		nap(1);
	ck_assert_uint_eq(hv_xen_nr_alive(), 0);
	ck_assert_uint_eq(fake_xen_nr_handles(), 0);
}

struct hv_event wait_for(enum hv_event_type type, uint64_t wanted)
{
	struct pollfd fd = { .fd = hv_xen.fd(host), .events = POLLIN };
	struct hv_event event;

	for (;;) {
		while (hv_xen.next(host, &event) == 0)
			ck_assert_int_gt(poll(&fd, 1, PATIENCE_MS), 0);
		if (event.type == type && (wanted == 0 || event.token == wanted))
			return event;
		hv_event_clear(&event);
	}
}

uint64_t submit(struct hv_call call)
{
	call.token = ++token;
	ck_assert_int_eq(hv_xen.submit(host, &call), 0);
	return token;
}

struct hv_event ask(struct hv_call call)
{
	return wait_for(hv_answer_of(call.type), submit(call));
}
