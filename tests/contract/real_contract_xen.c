/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The Xen backend passes the contract on a real hypervisor, as far as that can be made to do what
 * it asks for. Run in the Xen lab's dom0 (tests/lab/xen), where no daemon is: its guests "web" and
 * "db" have 192 MiB, and have them again after each test, without anything that was noted of them.
 *
 *   real_contract_xen OTHERS    there are so many guests beside
 */
#include <config.h>

#include "tests/contract/contract.h"

#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hv/xen/store.h"
#include "hv/xen/xen.h"

#define MAXIMUM_KIB UINT64_C(196608)
#define SLACK_KIB   1024 /* as xl has it */
/* An emulated dom0 is slow; only a test that fails waits so long. */
#define PATIENCE_MS 20000
#define REST_MS	    500
#define DOMAINS	    16

static struct store store;
static xc_interface *xc;

static struct guest {
	const char *name;
	uint32_t domid;
	struct hv_uuid uuid;
} guests[] = { { .name = "web" }, { .name = "db" } };

#define NR_GUESTS (sizeof(guests) / sizeof(guests[0]))

static void nap(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static struct guest *guest(const char *vm)
{
	return strcmp(vm, "web") == 0 ? &guests[0] : &guests[1];
}

static bool is_named(uint32_t domid, const char *name)
{
	char path[STORE_PATH], *text = NULL;
	bool it;

	store_domain_path(path, domid, "name");
	it = store_read(&store, XBT_NULL, path, &text) == 0 && !strcmp(text, name);
	free(text);
	return it;
}

static void find(struct guest *g)
{
	xc_domaininfo_t infos[DOMAINS];
	int nr = xen_calls.domain_getinfolist(xc, 1, DOMAINS, infos);

	g->domid = 0;
	for (int i = 0; i < nr; i++) {
		if (!is_named(infos[i].domain, g->name))
			continue;
		g->domid = infos[i].domain;
		memcpy(g->uuid.bytes, infos[i].handle, sizeof(g->uuid.bytes));
	}
	ck_assert_msg(g->domid > 0, "there is no %s", g->name);
}

static void setup(void)
{
	xc = xen_calls.interface_open();
	ck_assert_ptr_nonnull(xc);
	ck_assert_int_eq(store_open(&store, &xen_calls), 0);
	for (size_t i = 0; i < NR_GUESTS; i++)
		find(&guests[i]);
}

static uint64_t tot_kib(const struct guest *g)
{
	xc_domaininfo_t info;

	ck_assert_int_eq(xen_calls.domain_getinfolist(xc, g->domid, 1, &info), 1);
	return info.tot_pages * 4;
}

static void tell(const struct guest *g, uint64_t kib)
{
	char path[STORE_PATH];

	store_domain_path(path, g->domid, "memory/target");
	ck_assert_int_eq(store_write_number(&store, XBT_NULL, path, kib), 0);
}

static void give_back(const struct guest *g)
{
	ck_assert_int_eq(xen_calls.domain_setmaxmem(xc, g->domid, MAXIMUM_KIB + SLACK_KIB), 0);
	tell(g, MAXIMUM_KIB);
	for (int i = 0; i < PATIENCE_MS / 10 && tot_kib(g) != MAXIMUM_KIB; i++)
		nap(10);
	ck_assert_uint_eq(tot_kib(g), MAXIMUM_KIB);
}

static void teardown(void)
{
	for (int i = 0; i < PATIENCE_MS / 10 && hv_xen_nr_alive() > 0; i++)
		nap(10);
	ck_assert_uint_eq(hv_xen_nr_alive(), 0);
	ck_assert_int_eq(store_remove(&store, XBT_NULL, STORE_ROOT), 0);
	for (size_t i = 0; i < NR_GUESTS; i++)
		give_back(&guests[i]);
	store_close(&store);
	xen_calls.interface_close(xc);
}

static int open_host(const struct hv_params *params, struct hv **ret_hv)
{
	return hv_xen.open(params, ret_hv);
}

static struct hv_uuid uuid(const char *vm)
{
	return guest(vm)->uuid;
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

static struct contract_real real = {
	.maximum = MAXIMUM_KIB * 1024,
	.target = (MAXIMUM_KIB - 16384) * 1024,
	.near = CONTRACT_MIB,
};

static void act(struct hv *hv, enum contract_deed deed, const char *vm)
{
	char path[STORE_PATH];

	ck_assert(deed == CONTRACT_CHANGE || deed == CONTRACT_BALLOON);
	if (deed == CONTRACT_BALLOON) { /* as others may write it */
		tell(guest(vm), real.target / 1024);
		return;
	}
	store_own_path(path, &guest(vm)->uuid, "soft-limit");
	ck_assert_int_eq(store_write(&store, XBT_NULL, path, "128MiB"), 0);
}

static uint64_t target(struct hv *hv, const char *vm)
{
	char path[STORE_PATH];
	uint64_t kib = 0;

	store_domain_path(path, guest(vm)->domid, "memory/target");
	ck_assert_int_eq(store_read_number(&store, XBT_NULL, path, &kib), 0);
	return kib * 1024;
}

int main(int argc, char **argv)
{
	static const struct contract_subject subject = { .backend = &hv_xen,
		.uri = HV_XEN_URI,
		.foreign_uri = "qemu:///system",
		.real = &real,
		.setup = setup,
		.open = open_host,
		.teardown = teardown,
		.uuid = uuid,
		.wait = pass,
		.rest = rest,
		.act = act,
		.target = target };

	real.others = argc == 2 ? (size_t)strtoul(argv[1], NULL, 10) : 0;
	return contract_run(&subject);
}
