/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The libvirt backend, on a libvirt of the tests' own, passes the contract. */
#include <config.h>

#include "tests/contract/contract.h"

#include <check.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hv/libvirt/domxml.h"
#include "hv/libvirt/libvirt.h"
#include "tests/unit/fake_libvirt.h"
#include "tests/unit/scratch.h"

/* Only a test that fails waits so long. */
#define PATIENCE_MS 20000
#define REST_MS	    50

static struct fake_domain *web, *db;
static struct libvirt_calls calls;
static char proc[SCRATCH_PATH], meminfo[64];

static void nap(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static struct fake_domain *domain(const char *vm)
{
	return strcmp(vm, "web") == 0 ? web : db;
}

static void fill(struct fake_domain *dom)
{
	strcpy(dom->inside, "<devices><controller type='virtio-serial'/>"
			    "<memballoon model='virtio'/></devices>");
	strcpy(dom->inside_inactive, dom->inside);
	dom->stats[0] = (virDomainMemoryStatStruct){ VIR_DOMAIN_MEMORY_STAT_ACTUAL_BALLOON,
		CONTRACT_MAXIMUM / 1024 };
	dom->nr_stats = 1;
}

/* Nothing of this machine is looked at. */
static void write_meminfo(void)
{
	FILE *stream;

	scratch_new(proc);
	snprintf(meminfo, sizeof(meminfo), "%s/meminfo", proc);
	stream = fopen(meminfo, "w");
	ck_assert_ptr_nonnull(stream);
	fputs("MemTotal: 4194304 kB\nMemAvailable: 1048576 kB\n"
	      "HugePages_Total: 0\nHugepagesize: 2048 kB\n",
		stream);
	ck_assert_int_eq(fclose(stream), 0);
}

static void setup(void)
{
	fake_reset();
	web = fake_add("web");
	db = fake_add("db");
	fill(web);
	fill(db);
	write_meminfo();
}

/* What is noted shows in the live description, as libvirt has it. */
static int set_metadata(virDomainPtr dom, int type, const char *metadata, const char *key,
	const char *ns, unsigned int flags)
{
	struct fake_domain *d = domain(fake_calls.domain_get_name(dom));
	int r = fake_calls.domain_set_metadata(dom, type, metadata, key, ns, flags);
	uint64_t bytes = 0;

	fake_lock();
	if (r == 0 && domxml_parse_ceiling(d->note, &bytes) == 0)
		snprintf(d->inside, sizeof(d->inside),
			"<metadata><c:ceiling xmlns:c='%s' kib='%" PRIu64 "'/></metadata>"
			"<devices><controller type='virtio-serial'/>"
			"<memballoon model='virtio'/></devices>",
			ns, bytes / 1024);
	fake_unlock();
	return r;
}

static int open_host(const struct hv_params *params, struct hv **ret_hv)
{
	struct hv_params own = *params;

	own.proc = proc;
	calls = fake_calls;
	calls.domain_set_metadata = set_metadata;
	return hv_libvirt_open_with(&calls, &own, ret_hv);
}

static void teardown(void)
{
	fake_release();
	for (int i = 0; i < PATIENCE_MS / 2 && hv_libvirt_nr_alive() > 0; i++)
		nap(2);
	ck_assert_uint_eq(hv_libvirt_nr_alive(), 0);
	ck_assert_uint_eq(fake_nr_connections(), 0);
}

static struct hv_uuid uuid(const char *vm)
{
	return fake_uuid(domain(vm));
}

static bool pass(struct hv *hv)
{
	struct pollfd fd = { .fd = hv_libvirt.fd(hv), .events = POLLIN };

	return poll(&fd, 1, PATIENCE_MS) > 0;
}

static void rest(struct hv *hv)
{
	nap(REST_MS);
}

static void act(struct hv *hv, enum contract_deed deed, const char *vm)
{
	switch (deed) {
	case CONTRACT_HANG:
		fake_lock();
		domain(vm)->hangs = true;
		fake_unlock();
		break;
	case CONTRACT_GO_ON:
		fake_release();
		break;
	case CONTRACT_REBOOT:
		fake_emit_reboot(domain(vm));
		break;
	case CONTRACT_CHANGE:
		fake_emit_metadata(domain(vm), VIR_DOMAIN_METADATA_ELEMENT, DOMXML_MEMORY_NS);
		break;
	case CONTRACT_BALLOON:
		fake_emit_balloon(domain(vm), CONTRACT_MAXIMUM / 2 / 1024);
		break;
	case CONTRACT_RENAME:
		fake_lock();
		strcpy(domain(vm)->name, CONTRACT_NAME);
		fake_unlock();
		fake_emit_lifecycle(domain(vm));
		break;
	case CONTRACT_RESTART:
		fake_lock();
		domain(vm)->target_kib = 0;
		fake_unlock();
		fake_emit_lifecycle(domain(vm));
		break;
	case CONTRACT_PAUSE:
	case CONTRACT_RESUME:
		fake_lock();
		domain(vm)->state = deed == CONTRACT_PAUSE ? VIR_DOMAIN_PAUSED : VIR_DOMAIN_RUNNING;
		fake_unlock();
		fake_emit_lifecycle(domain(vm));
		break;
	case CONTRACT_JOB:
	case CONTRACT_JOB_END:
		fake_lock();
		domain(vm)->job = deed == CONTRACT_JOB ? VIR_DOMAIN_JOB_OPERATION_SNAPSHOT : 0;
		fake_unlock();
		break;
	case CONTRACT_THROTTLE:
		fake_lock();
		domain(vm)->has_config_limit = true;
		domain(vm)->config_limit_kib = 4096;
		fake_unlock();
		break;
	case CONTRACT_BREAK:
		fake_fail(FAKE_OPEN, VIR_ERR_SYSTEM_ERROR);
		fake_break(VIR_CONNECT_CLOSE_REASON_EOF);
		break;
	case CONTRACT_MEND:
		fake_fail(FAKE_OPEN, 0);
		break;
	}
}

static uint64_t target(struct hv *hv, const char *vm)
{
	uint64_t kib;

	fake_lock();
	kib = domain(vm)->target_kib;
	fake_unlock();
	return kib * 1024;
}

static uint64_t period_s(struct hv *hv, const char *vm)
{
	uint64_t period;

	fake_lock();
	period = (uint64_t)domain(vm)->period_s;
	fake_unlock();
	return period;
}

int main(void)
{
	static const struct contract_subject subject = { .backend = &hv_libvirt,
		.uri = "qemu:///system",
		.foreign_uri = "sim:///",
		.setup = setup,
		.open = open_host,
		.teardown = teardown,
		.uuid = uuid,
		.wait = pass,
		.rest = rest,
		.act = act,
		.target = target,
		.period_s = period_s };

	scratch_begin();
	return contract_run(&subject);
}
