/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The libvirt backend with the nth libvirt call failing, and with the nth allocation or system
 * call, n from 1 until a run completes with nothing failed; in the middle of each run the
 * connection breaks, and is there again by itself. Each call is answered once, no target is set
 * without its ceiling recorded before, the next calls work, and all is gone in the end.
 */
#include <config.h>

#include "hv/libvirt/libvirt.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <check.h>

#include "fake_libvirt.h"
#include "hv/libvirt/backend.h"
#include "hv/libvirt/domxml.h"
#include "tests/unit/faults.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#define MIB (1024ULL * 1024)
/* Only a failure waits for it. */
#define PATIENCE_MS 20000

static char proc[SCRATCH_PATH]; /* without processes */
static struct hv *hv;
static struct fake_domain *web;
static uint64_t token;

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

/* Whatever comes until that token's answer, or UP where it is 0; nothing is asserted meanwhile. */
static bool wait_for(uint64_t wanted, int *ret_error)
{
	struct pollfd fd = { .fd = hv_libvirt.fd(hv), .events = POLLIN };
	struct hv_event event;
	bool found;

	for (;;) {
		while (hv_libvirt.next(hv, &event) > 0) {
			found = wanted ? event.token == wanted : event.type == HV_EVENT_UP;
			*ret_error = event.error;
			hv_event_clear(&event);
			if (found)
				return true;
		}
		if (poll(&fd, 1, PATIENCE_MS) <= 0)
			return false;
	}
}

/* 1: never answered; else its error, also that of a call that was not taken. */
static int ask(enum hv_call_type type)
{
	static const struct hv_knobs_change change = { .set = { .has_low = true, .low = MIB } };
	struct hv_call call = { .type = type,
		.token = ++token,
		.uuid = fake_uuid(web),
		.target = 128 * MIB,
		.ceiling = 256 * MIB,
		.period_s = 1,
		.change = &change };
	int error = 0, r = hv_libvirt.submit(hv, &call);

	if (r < 0)
		return r;
	return wait_for(call.token, &error) ? error : 1;
}

static int open_it(void)
{
	struct hv_params params = { .uri = "qemu:///system", .proc = proc };

	return hv_libvirt_open_with(&fake_calls, &params, &hv);
}

static void close_it(void)
{
	hv_libvirt.close(hv);
	hv = NULL;
	for (unsigned int i = 0; i < PATIENCE_MS / 2 && hv_libvirt_nr_alive() > 0; i++)
		nap();
	ck_assert_uint_eq(hv_libvirt_nr_alive(), 0);
	ck_assert_uint_eq(fake_nr_connections(), 0);
}

static void make_proc(void)
{
	char path[SCRATCH_PATH + 16];
	FILE *file;

	scratch_new(proc);
	snprintf(path, sizeof(path), "%s/meminfo", proc);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs("MemTotal: 4194304 kB\nMemAvailable: 2097152 kB\n", file);
	fclose(file);
}

static void begin(void)
{
	fake_reset();
	web = fake_add("web");
	web->has_config_limit = true; /* or its throttle is not lifted */
	web->config_limit_kib = 4096;
	strcpy(web->inside_inactive, "<memtune><soft_limit unit='KiB'>4096</soft_limit></memtune>");
	strcpy(web->inside, "<devices><controller type='virtio-serial'/></devices>");
	hv = NULL;
}

static bool ask_all(void)
{
	for (enum hv_call_type type = HV_LIST; type <= HV_HOST; type++)
		if (ask(type) > 0)
			return false;
	return true;
}

/*
 * All connections were dead before the first try, so a listing says that there is a new one. Where
 * the close callback could not be registered it is the listing that finds the break.
 */
static bool comes_back(void)
{
	for (unsigned int i = 0; i < PATIENCE_MS / 2; i++) {
		if (ask(HV_LIST) == 0)
			return true;
		nap();
	}
	return false;
}

/* "": as it should be. */
static const char *use(void)
{
	int error = 0;

	if (open_it() < 0)
		return hv ? "a handle in spite of a failure" : "";
	if (!wait_for(0, &error))
		return "it never connected";
	if (!ask_all())
		return "a call was never answered";
	/* An event and a break: workers' connections are stale, the control connection anew. */
	fake_emit_lifecycle(web);
	fake_break(VIR_CONNECT_CLOSE_REASON_EOF);
	if (!comes_back())
		return "it never connected again";
	if (!ask_all())
		return "a call was never answered after the break";
	return "";
}

/* A target without its ceiling is the one thing that nobody could repair. */
static const char *check_changes(void)
{
	const char *changes = fake_changes(), *memory = strstr(changes, "memory web");
	const char *note = strstr(changes, "note web 262144");

	return memory && (!note || note > memory) ? changes : "";
}

/* With nothing failing any more; what answered -ENOTCONN connects again by itself. */
static void check_after(unsigned int nth, const char *what)
{
	for (enum hv_call_type type = HV_LIST; hv && type <= HV_HOST; type++) {
		int r = ask(type);

		if (type == HV_RECLAIM && r == -ENOTCONN) /* these VMs have no agent */
			continue;
		if (type == HV_ATTACH && r == -EEXIST) /* it was added before */
			continue;
		for (unsigned int i = 0; r == -ENOTCONN && i < PATIENCE_MS / 2; i++) {
			nap();
			r = ask(type);
		}
		ck_assert_msg(r == 0, "%u (%s): call %d afterwards: %d", nth, what, (int)type, r);
	}
}

START_TEST(the_nth_libvirt_call_that_fails_is_lived_through)
{
	unsigned int n = 0;
	bool injected;

	do {
		const char *wrong;

		begin();
		fake_fail_nth(++n);
		wrong = use();
		injected = fake_failed_nth();
		ck_assert_msg(!wrong[0], "%u: %s", n, wrong);
		ck_assert_msg(!check_changes()[0], "%u: %s", n, check_changes());
		check_after(n, "libvirt");
		close_it();
	} while (injected);
	printf("# %u libvirt calls, each failed once\n", n - 1);
	ck_assert_uint_gt(n, 10);
}
END_TEST

START_TEST(the_nth_allocation_or_system_call_that_fails_is_lived_through)
{
	unsigned int n = 0;
	bool injected;

	do {
		const char *wrong;

		begin();
		faults_arm(++n);
		wrong = use();
		injected = faults_disarm();
		ck_assert_msg(!wrong[0], "%u (%s): %s", n, faults_what(), wrong);
		ck_assert_msg(
			!check_changes()[0], "%u (%s): %s", n, faults_what(), check_changes());
		check_after(n, faults_what());
		close_it();
	} while (injected);
	printf("# %u calls, each failed once\n", n - 1);
	ck_assert_uint_gt(n, 10);
}
END_TEST

/* What is left out of a description would seem not to be said: another group, no min. */
START_TEST(a_description_that_is_read_is_read_whole)
{
	static const char xml[] =
		"<domain><name>web</name><memory unit='KiB'>1048576</memory>"
		"<resource><partition>/machine</partition></resource><metadata>"
		"<memory xmlns='" DOMXML_MEMORY_NS "' min='1GiB' group='/prod/web'/>"
		"</metadata></domain>";
	unsigned int n = 0;
	bool injected;

	do {
		struct hv_info info;
		int r;

		faults_arm(++n);
		r = domxml_parse(xml, &info);
		injected = faults_disarm();
		ck_assert_msg(
			r == 0 || (injected && r == -ENOMEM), "%u (%s): %d", n, faults_what(), r);
		if (r < 0)
			continue;
		ck_assert_msg(info.metadata.has_group && info.metadata.has_min && info.partition,
			"%u (%s): not all of it", n, faults_what());
		hv_info_clear(&info);
	} while (injected);
	ck_assert_uint_gt(n, 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("faults_libvirt");
	TCase *tc = tcase_create("faults");

	scratch_begin();
	tcase_add_checked_fixture(tc, make_proc, NULL);
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, the_nth_libvirt_call_that_fails_is_lived_through);
	tcase_add_test(tc, the_nth_allocation_or_system_call_that_fails_is_lived_through);
	tcase_add_test(tc, a_description_that_is_read_is_read_whole);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
