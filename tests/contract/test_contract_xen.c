/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The Xen backend, on a Xen of the tests' own, passes the contract. */
#include <config.h>

#include "tests/contract/contract.h"

#include <check.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hv/xen/store.h"
#include "hv/xen/xen.h"
#include "tests/unit/fake_xen.h"

/* Only a test that fails waits so long. */
#define PATIENCE_MS 20000
#define REST_MS	    50

static struct fake_guest *web, *db;

static void nap(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static struct fake_guest *guest(const char *vm)
{
	return strcmp(vm, "web") == 0 ? web : db;
}

static void setup(void)
{
	fake_xen_reset();
	fake_xen_host(4096 * 1024, 1024 * 1024, 0);
	web = fake_xen_add("web", CONTRACT_MAXIMUM / 1024, CONTRACT_MAXIMUM / 1024);
	db = fake_xen_add("db", CONTRACT_MAXIMUM / 1024, CONTRACT_MAXIMUM / 1024);
}

static int open_host(const struct hv_params *params, struct hv **ret_hv)
{
	return hv_xen_open_with(&fake_xen_calls, params, ret_hv);
}

static void teardown(void)
{
	fake_xen_release();
	for (int i = 0; i < PATIENCE_MS / 2 && hv_xen_nr_alive() > 0; i++)
		nap(2);
	ck_assert_uint_eq(hv_xen_nr_alive(), 0);
	ck_assert_uint_eq(fake_xen_nr_handles(), 0);
}

static struct hv_uuid uuid(const char *vm)
{
	return fake_xen_uuid(guest(vm));
}

static bool pass(struct hv *hv)
{
	struct pollfd fd = { .fd = hv_xen.fd(hv), .events = POLLIN };

	return poll(&fd, 1, PATIENCE_MS) > 0;
}

static void rest(struct hv *hv)
{
	nap(REST_MS);
}

/* As an operator does it by hand. */
static void write_knob(const char *vm)
{
	struct hv_uuid id = uuid(vm);
	char path[STORE_PATH];

	store_own_path(path, &id, "soft-limit");
	fake_xen_write(path, "256MiB");
}

static void act(struct hv *hv, enum contract_deed deed, const char *vm)
{
	char path[STORE_PATH];

	switch (deed) {
	case CONTRACT_HANG:
		fake_xen_lock();
		guest(vm)->hangs = true;
		fake_xen_unlock();
		break;
	case CONTRACT_GO_ON:
		fake_xen_release();
		break;
	case CONTRACT_REBOOT:
		fake_xen_reboot(guest(vm));
		break;
	case CONTRACT_CHANGE:
		write_knob(vm);
		break;
	case CONTRACT_BALLOON:
		fake_xen_lock();
		guest(vm)->balloon = false;
		guest(vm)->tot_kib = CONTRACT_MAXIMUM / 2 / 1024;
		fake_xen_unlock();
		break;
	case CONTRACT_RENAME:
		store_domain_path(path, guest(vm)->domid, "name");
		fake_xen_write(path, CONTRACT_NAME);
		break;
	case CONTRACT_RESTART:
		fake_xen_reboot(guest(vm));
		break;
	case CONTRACT_PAUSE:
	case CONTRACT_RESUME:
		fake_xen_lock();
		guest(vm)->flags = deed == CONTRACT_PAUSE ? XEN_DOMINF_paused : XEN_DOMINF_running;
		fake_xen_unlock();
		break;
	case CONTRACT_JOB:
	case CONTRACT_JOB_END:
	case CONTRACT_THROTTLE:
		ck_abort_msg("there is no such thing");
		break;
	case CONTRACT_BREAK:
		fake_xen_break(true);
		break;
	case CONTRACT_MEND:
		fake_xen_break(false);
		break;
	}
}

static uint64_t target(struct hv *hv, const char *vm)
{
	char path[STORE_PATH], text[256];

	store_domain_path(path, guest(vm)->domid, "memory/target");
	return fake_xen_read(path, text) ? strtoull(text, NULL, 10) * 1024 : 0;
}

int main(void)
{
	static const struct contract_subject subject = { .backend = &hv_xen,
		.uri = HV_XEN_URI,
		.foreign_uri = "qemu:///system",
		.silent = CONTRACT_BIT(CONTRACT_RENAME) | CONTRACT_BIT(CONTRACT_PAUSE) |
			  CONTRACT_BIT(CONTRACT_RESUME),
		.cannot = CONTRACT_BIT(CONTRACT_JOB) | CONTRACT_BIT(CONTRACT_JOB_END) |
			  CONTRACT_BIT(CONTRACT_THROTTLE),
		.setup = setup,
		.open = open_host,
		.teardown = teardown,
		.uuid = uuid,
		.wait = pass,
		.rest = rest,
		.act = act,
		.target = target };

	return contract_run(&subject);
}
