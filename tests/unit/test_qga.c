/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Guests that are reached through QEMU's guest agent: what it says and is told, and what one that
 * is hostile, hangs or may do nothing costs. The guest here is the test's own, behind the fake
 * libvirt.
 */
#include <config.h>

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hv/libvirt/libvirt.h"
#include "hv/libvirt/qga_text.h"
#include "policy/workingset.h"
#include "tests/unit/libvirt_host.h"
#include "tests/unit/suite.h"

/* ---- the guest ---- */

static pthread_mutex_t guest_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	/* KiB, but stolen: pages */
	uint64_t inactive_file, active_file, inactive_anon, swap_free, stolen;
	uint64_t page;		/* KiB; 0: its agent may not say */
	const char *blocked;	/* a command that its policy does not let through */
	bool old_kernel;	/* takes no swappiness */
	bool no_reclaim;	/* has no memory.reclaim */
	bool denies;		/* does not permit that anything is reclaimed */
	bool stuck;		/* finds nothing that can be */
	bool generations;	/* ages by them */
	const char *says;	/* the same to everything that is no guest-info */
	const char *says_first; /* to guest-info */
	char written[8][64], pending[64];
	unsigned int nr_written, nr_tries, nr_commands, nr_open;
} guest;

static void encode(const char *text, char *to)
{
	static const char set[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t n = strlen(text), i;

	for (i = 0; i + 2 < n; i += 3) {
		unsigned int b = (unsigned int)text[i] << 16 | (unsigned int)text[i + 1] << 8 |
				 (unsigned int)text[i + 2];

		for (int k = 18; k >= 0; k -= 6)
			*to++ = set[b >> k & 63];
	}
	if (i < n) {
		unsigned int b = (unsigned int)text[i] << 16 |
				 (i + 1 < n ? (unsigned int)text[i + 1] << 8 : 0);

		*to++ = set[b >> 18 & 63];
		*to++ = set[b >> 12 & 63];
		*to++ = i + 1 < n ? set[b >> 6 & 63] : '=';
		*to++ = '=';
	}
	*to = '\0';
}

static void decode(const char *text, char *to, size_t size)
{
	static const char set[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned int bits = 0, nr = 0;
	size_t length = 0;

	for (; *text && *text != '=' && *text != '"' && length + 1 < size; text++) {
		bits = bits << 6 | (unsigned int)(strchr(set, *text) - set);
		nr += 6;
		if (nr >= 8) {
			nr -= 8;
			to[length++] = (char)(bits >> nr & 255);
		}
	}
	to[length] = '\0';
}

static void put_file(int64_t handle, char *text, size_t size)
{
	if (handle == 1)
		snprintf(text, size,
			"MemTotal:  1048576 kB\nMemFree:  102400 kB\nMemAvailable: 614400 kB\n"
			"Active(anon): 102400 kB\nInactive(anon): %" PRIu64 " kB\n"
			"Active(file): %" PRIu64 " kB\nInactive(file): %" PRIu64 " kB\n"
			"SReclaimable: 10240 kB\nSwapFree: %" PRIu64 " kB\n",
			guest.inactive_anon, guest.active_file, guest.inactive_file,
			guest.swap_free);
	else if (handle == 5)
		snprintf(text, size, "0x0007\n");
	else if (handle == 6)
		snprintf(text, size,
			"55d0-55d1 r--p 00000000 08:01 1  /usr/sbin/qemu-ga\n"
			"Size: 64 kB\nKernelPageSize: %" PRIu64 " kB\nMMUPageSize: 4 kB\n",
			guest.page);
	else if (handle == 2)
		snprintf(text, size, "pgsteal_file %" PRIu64 "\nworkingset_refault_file 10\n",
			guest.stolen);
	else
		snprintf(text, size, "some avg10=0.00 total=1000\nfull avg10=0.00 total=10\n");
}

static uint64_t take(uint64_t *list, uint64_t kib)
{
	kib = kib < *list ? kib : *list;
	*list -= kib;
	return kib;
}

/* What is written reaches the kernel when it is flushed. */
static const char *flush(int *ret_code)
{
	uint64_t kib = strtoull(guest.pending, NULL, 10) / 1024;
	bool anon = strstr(guest.pending, "swappiness=200");

	*ret_code = guest.denies ? VIR_ERR_OPERATION_DENIED : VIR_ERR_INTERNAL_ERROR;
	if (guest.old_kernel && strstr(guest.pending, "swappiness")) {
		*ret_code = VIR_ERR_OPERATION_FAILED;
		return NULL;
	}
	if (kib == 0)
		return "{\"return\":{}}";
	guest.nr_tries++;
	if (guest.denies || guest.stuck)
		return NULL;
	if (guest.nr_written < 8)
		strcpy(guest.written[guest.nr_written++], guest.pending);
	kib = take(anon ? &guest.inactive_anon : &guest.inactive_file, kib);
	guest.stolen += kib / (guest.page ? guest.page : 4);
	return "{\"return\":{}}";
}

static const char *open_path(const char *command, char *answer, size_t size, int *ret_code)
{
	static const char *const paths[] = { "/proc/meminfo", "/proc/vmstat",
		"/proc/pressure/memory", "/sys/fs/cgroup/memory.reclaim",
		"/sys/kernel/mm/lru_gen/enabled", "/proc/self/smaps" };

	for (int i = 0; i < 6; i++)
		if (strstr(command, paths[i]) && !(i == 3 && guest.no_reclaim) &&
			!(i == 4 && !guest.generations) && !(i == 5 && !guest.page)) {
			ck_assert_ptr_nonnull(strstr(command, i == 3 ? "\"r+\"" : "\"r\""));
			guest.nr_open++;
			snprintf(answer, size, "{\"return\":%d}", i + 1);
			return answer;
		}
	*ret_code = VIR_ERR_INTERNAL_ERROR;
	return NULL;
}

static const char *info(char *answer, size_t size)
{
	static const char *const names[] = { "guest-file-open", "guest-file-read",
		"guest-file-write", "guest-file-flush", "guest-file-close", "guest-exec" };
	size_t length = (size_t)snprintf(
		answer, size, "{\"return\":{\"version\":\"7.2.11\",\"supported_commands\":[");

	if (guest.says_first)
		return guest.says_first;
	for (size_t i = 0; i < 6; i++)
		length += (size_t)snprintf(answer + length, size - length,
			"%s{\"enabled\":%s,\"name\":\"%s\",\"success-response\":true}",
			i ? "," : "",
			guest.blocked && !strcmp(guest.blocked, names[i]) ? "false" : "true",
			names[i]);
	snprintf(answer + length, size - length, "]}}");
	return answer;
}

static const char *answer_to_command(const char *command, int *ret_code)
{
	static char answer[8192], text[2048], base64[4096];
	const char *handle = strstr(command, "\"handle\":");
	const char *data = strstr(command, "\"buf-b64\":\"");

	guest.nr_commands++;
	if (strstr(command, "\"guest-info\""))
		return info(answer, sizeof(answer));
	if (guest.says)
		return guest.says;
	if (strstr(command, "guest-file-open"))
		return open_path(command, answer, sizeof(answer), ret_code);
	if (strstr(command, "guest-file-read")) {
		put_file(strtoll(handle + 9, NULL, 10), text, sizeof(text));
		encode(text, base64);
		snprintf(answer, sizeof(answer),
			"{\"return\":{\"count\":%zu,\"buf-b64\":\"%s\",\"eof\":true}}",
			strlen(text), base64);
		return answer;
	}
	if (strstr(command, "guest-file-write")) {
		decode(data + 11, guest.pending, sizeof(guest.pending));
		return "{\"return\":{\"count\":1,\"eof\":false}}";
	}
	if (strstr(command, "guest-file-flush"))
		return flush(ret_code);
	ck_assert_ptr_nonnull(strstr(command, "guest-file-close"));
	guest.nr_open--;
	return "{\"return\":{}}";
}

/* Of web: how long it takes for a command, and who asked. */
static long takes_ns;
static pthread_t askers[2];
static _Atomic unsigned int nr_askers, nr_asked;

static void be_slow(void)
{
	pthread_t self = pthread_self();
	bool known = false;

	nanosleep(&(struct timespec){ .tv_nsec = takes_ns }, NULL);
	for (unsigned int i = 0; i < nr_askers; i++)
		known |= pthread_equal(askers[i], self) != 0;
	if (!known) /* there are two */
		askers[nr_askers++] = self;
	nr_asked++;
}

static const char *agent(struct fake_domain *dom, const char *command, int *ret_code)
{
	const char *answer;

	if (dom == web && takes_ns)
		be_slow();
	pthread_mutex_lock(&guest_lock);
	answer = answer_to_command(command, ret_code);
	pthread_mutex_unlock(&guest_lock);
	return answer;
}

/* ---- the backend ---- */

static void setup(void)
{
	host_setup();
	web->agent = agent;
	memset(&guest, 0, sizeof(guest));
	takes_ns = 0;
	nr_askers = nr_asked = 0;
	guest.inactive_file = 400 * 1024;
	guest.active_file = 100 * 1024;
	guest.inactive_anon = 40 * 1024;
}

static void listen_to(const struct fake_domain *dom, enum hv_way way)
{
	struct hv_event event = ask_call((struct hv_call){ .type = HV_INFO, .agent = way }, dom);

	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
	/* Which say that no job runs. */
	event = ask_call((struct hv_call){ .type = HV_STATS }, dom);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
}

/* What is known of an agent next. */
static struct hv_agent told_of(const struct fake_domain *dom)
{
	struct hv_uuid uuid = fake_uuid(dom);

	for (;;) {
		struct hv_event event = wait_any();

		if (event.type == HV_EVENT_AGENT && hv_uuid_equal(&event.uuid, &uuid))
			return event.agent;
		hv_event_clear(&event);
	}
}

static struct hv_agent report_of(const struct fake_domain *dom)
{
	struct hv_agent a;

	do
		a = told_of(dom);
	while (!(a.known & HV_AGENT_REPORT));
	return a;
}

static struct hv_agent fault_of(const struct fake_domain *dom)
{
	struct hv_agent a;

	do
		a = told_of(dom);
	while (!a.faults);
	return a;
}

static struct hv_event reclaim(uint64_t bytes, bool anon)
{
	return ask_call(
		(struct hv_call){
			.type = HV_RECLAIM, .bytes = bytes, .deadline_ms = 10000, .anon = anon },
		web);
}

/* ---- good ---- */

START_TEST(guest_without_an_agent_of_ours_reports_as_one_that_has_it)
{
	struct hv_agent a;

	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	a = report_of(web);
	ck_assert(a.connected && a.reclaims);
	ck_assert_str_eq(a.software, "qemu-ga 7.2.11");
	ck_assert_uint_eq(a.known & (HV_AGENT_LISTS | HV_AGENT_FREE | HV_AGENT_FLOOR), 7);
	ck_assert_uint_eq(a.lists.inactive_file, 400 * MIB);
	ck_assert_uint_eq(a.lists.active_anon, 100 * MIB);
	ck_assert_uint_eq(a.free, 100 * MIB);
	/* All that is no file and not free, and a 32nd: as ballast-agent reckons it. */
	ck_assert_uint_eq(a.floor, (1024 - 100 - 100 - 400 - 10 + 32) * MIB);
	ck_assert_uint_eq(a.faults, 0);
	listen_to(web, HV_WAY_NONE);
	while (last_agent[0].connected)
		told_of(web);
	pthread_mutex_lock(&guest_lock);
	ck_assert_uint_eq(guest.nr_open, 0); /* every file was closed */
	pthread_mutex_unlock(&guest_lock);
}
END_TEST

START_TEST(only_what_is_inactive_and_may_go_is_reclaimed)
{
	struct hv_event event;
	uint64_t cold, sum = 0;

	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	report_of(web);
	event = reclaim(1024 * MIB, false);
	ck_assert_int_eq(event.error, 0);
	/* The rule of protect-active-working-set, batch by batch: nothing below the ratio. */
	cold = workingset_cold_list(400 * MIB / 4096, 100 * MIB / 4096) * 4096;
	ck_assert_uint_gt(event.came, 0);
	ck_assert_uint_le(event.came, cold);
	hv_event_clear(&event);
	ck_assert_uint_ge(guest.nr_written, 1);
	for (unsigned int i = 0; i < guest.nr_written; i++) {
		ck_assert_ptr_nonnull(strstr(guest.written[i], " swappiness=0"));
		sum += strtoull(guest.written[i], NULL, 10);
	}
	ck_assert_uint_le(sum, cold);
}
END_TEST

START_TEST(lists_of_a_kernel_that_ages_by_generations_count_for_nothing)
{
	struct hv_event event;
	struct hv_agent a;

	guest.generations = true;
	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	a = report_of(web);
	ck_assert_uint_eq(a.known & (HV_AGENT_LISTS | HV_AGENT_COLD | HV_AGENT_WORKINGSET), 0);
	ck_assert_uint_eq(a.known & (HV_AGENT_FREE | HV_AGENT_FLOOR), 6);
	ck_assert(a.reclaims);
	event = reclaim(400 * MIB, false);
	ck_assert_int_eq(event.error, 0);
	/* Little, then more as long as nothing is read again: more than the lists would have let.
	 */
	ck_assert_uint_eq(event.came, 400 * MIB);
	hv_event_clear(&event);
	ck_assert_uint_eq(guest.nr_written, 8);
	ck_assert_uint_le(strtoull(guest.written[0], NULL, 10), 4 * MIB);
	ck_assert_uint_gt(strtoull(guest.written[7], NULL, 10), 4 * MIB);
}
END_TEST

/* Where there is no file page that is cold. */
START_TEST(anonymous_pages_alone_go_where_they_may)
{
	struct hv_event event;

	guest.inactive_file = 0;
	guest.inactive_anon = 300 * 1024;
	guest.swap_free = 1024 * 1024;
	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	report_of(web);
	event = reclaim(16 * MIB, true);
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_eq(event.came, 16 * MIB);
	hv_event_clear(&event);
	ck_assert_uint_ge(guest.nr_written, 1);
	for (unsigned int i = 0; i < guest.nr_written; i++)
		ck_assert_ptr_nonnull(strstr(guest.written[i], " swappiness=200"));
}
END_TEST

START_TEST(what_came_is_counted_in_the_guests_own_pages)
{
	struct hv_event event;

	guest.page = 64;
	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	report_of(web);
	event = reclaim(16 * MIB, false);
	ck_assert_int_eq(event.error, 0);
	/* A batch is no multiple of such a page: its rest is not seen. */
	ck_assert_uint_ge(event.came, 16 * MIB);
	ck_assert_uint_le(
		(400 * 1024 - guest.inactive_file) * 1024 - event.came, guest.nr_tries * 64 * 1024);
	hv_event_clear(&event);
}
END_TEST

START_TEST(BR_89_what_the_guests_kernel_denies_is_tried_once_and_what_it_does_not_find_again)
{
	struct hv_event event;

	guest.denies = !_i;
	guest.stuck = _i;
	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	report_of(web);
	event = reclaim(16 * MIB, false);
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_eq(event.came, 0);
	hv_event_clear(&event);
	ck_assert(_i ? guest.nr_tries > 1 : guest.nr_tries == 1);
}
END_TEST

START_TEST(kernel_that_takes_no_swappiness_is_reclaimed_only_without_swap)
{
	struct hv_agent a;
	struct hv_event event;

	guest.old_kernel = true;
	guest.swap_free = _i ? 1024 : 0;
	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	a = report_of(web);
	ck_assert_int_eq(a.reclaims, !_i);
	event = reclaim(16 * MIB, false);
	ck_assert_int_eq(event.error, _i ? -EOPNOTSUPP : 0);
	if (_i) {
		ck_assert_uint_eq(guest.nr_written, 0);
	} else {
		ck_assert_uint_ge(event.came, 16 * MIB);
		ck_assert_ptr_null(strstr(guest.written[0], "swappiness"));
	}
	hv_event_clear(&event);
}
END_TEST

/* ---- what its policy, or its kernel, does not let through ---- */

START_TEST(blocked_files_are_said_and_nothing_is_tried)
{
	struct hv_agent a;

	guest.blocked = "guest-file-open";
	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	a = fault_of(web);
	ck_assert(!a.connected);
	ck_assert_str_eq(a.fault, "its policy blocks guest-file-open");
	fault_of(web); /* it is looked at again, later and later */
	pthread_mutex_lock(&guest_lock);
	ck_assert_uint_le(guest.nr_commands, 3);
	pthread_mutex_unlock(&guest_lock);
}
END_TEST

START_TEST(without_writing_it_reports_and_reclaims_nothing)
{
	struct hv_agent a;
	struct hv_event event;

	guest.blocked = _i ? NULL : "guest-file-write";
	guest.no_reclaim = _i;
	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	a = report_of(web);
	ck_assert(a.connected && !a.reclaims);
	ck_assert_uint_eq(a.lists.inactive_file, 400 * MIB);
	ck_assert_str_eq(a.fault, _i ? "" : "its policy blocks guest-file-write");
	event = reclaim(MIB, false);
	ck_assert_int_eq(event.error, -EOPNOTSUPP);
	hv_event_clear(&event);
}
END_TEST

START_TEST(vm_without_the_channel_is_said_so)
{
	open_backend();
	listen_to(db, HV_WAY_QEMU_GA);
	ck_assert_str_eq(fault_of(db).fault, "no channel for QEMU's agent");
}
END_TEST

/* ---- hostile ---- */

static char huge[200000];

static const struct {
	const char *first, *rest; /* to guest-info; to all else */
} hostile[] = {
	{ "", NULL },
	{ "{", NULL },
	{ "[]", NULL },
	{ "{\"return\":{}}", NULL },
	{ "{\"return\":{\"version\":1,\"supported_commands\":[]}}", NULL },
	{ "{\"return\":{\"version\":\"1\",\"supported_commands\":[[],1,{}]}}", NULL },
	{ huge, NULL },
	{ NULL, "" },
	{ NULL, "{\"return\":\"1\"}" },
	{ NULL, "{\"return\":1e99}" },
	{ NULL, "{\"return\":99999999999999999999}" },
	{ NULL, "{\"return\":7}" }, /* to open and to read */
	{ NULL, huge },
};

START_TEST(hostile_answer_is_a_fault_and_nothing_of_it_counts)
{
	struct hv_agent a;
	struct hv_event event;

	memset(huge, 'A', sizeof(huge) - 1);
	memcpy(huge, "{\"return\":\"", 11);
	guest.says_first = hostile[_i].first;
	guest.says = hostile[_i].rest;
	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	a = fault_of(web);
	ck_assert(!a.connected && !a.known);
	a = fault_of(web); /* it is tried again, and is none then */
	ck_assert(!a.connected && !a.known);
	event = reclaim(MIB, false);
	ck_assert_int_eq(event.error, -ENOTCONN);
	hv_event_clear(&event);
}
END_TEST

/* Good at first, and then not: in the middle of a reading, at any of its calls. */
START_TEST(agent_that_ends_half_way_is_none_until_it_is_good_again)
{
	struct hv_agent a;

	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	report_of(web);
	for (int i = 0; i < 3; i++) {
		fake_fail(FAKE_AGENT, VIR_ERR_AGENT_UNRESPONSIVE);
		do
			a = told_of(web);
		while (a.connected);
		ck_assert(!a.known);
		fake_fail(FAKE_AGENT, 0);
		a = report_of(web);
		ck_assert_uint_eq(a.lists.inactive_file, 400 * MIB);
	}
	ck_assert_str_eq(a.fault, "QEMU's agent does not answer");
}
END_TEST

START_TEST(agent_that_hangs_costs_the_others_nothing)
{
	struct hv_event event;
	struct hv_call call = { .type = HV_RECLAIM,
		.token = 4711,
		.uuid = fake_uuid(web),
		.bytes = MIB,
		.deadline_ms = 1 };

	db->agent = agent;
	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	report_of(web);
	fake_lock();
	web->agent_hangs = true;
	fake_unlock();
	while (fake_nr_hanging() == 0)
		nap();
	/* What is asked of it meanwhile is answered when its time is over. */
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	event = answer_to(4711);
	ck_assert_int_eq(event.error, -ETIMEDOUT);
	hv_event_clear(&event);
	/* Balloon calls of the same VM go on; the other's agent was never met before. */
	event = ask_call((struct hv_call){ .type = HV_STATS }, web);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
	listen_to(db, HV_WAY_QEMU_GA);
	report_of(db);
	ck_assert_uint_eq(fake_nr_hanging(), 1);
}
END_TEST

START_TEST(agents_that_never_answered_cost_those_that_do_nothing)
{
	db->agent = agent;
	db->agent_hangs = true;
	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	report_of(web);
	listen_to(db, HV_WAY_QEMU_GA);
	while (fake_nr_hanging() == 0)
		nap();
	for (int i = 0; i < 2; i++) {
		pthread_mutex_lock(&guest_lock);
		guest.inactive_file += 64 * 1024; /* it moves, so it reports */
		pthread_mutex_unlock(&guest_lock);
		report_of(web);
	}
}
END_TEST

static void open_with_slow(uint64_t slow_us)
{
	static struct libvirt_calls calls; /* the backend has it until it is gone */
	struct hv_params params = { .uri = "qemu:///system", .proc = "/tmp" };
	struct hv_event event;

	calls = fake_calls;
	calls.times.qga_slow = slow_us;
	ck_assert_int_eq(hv_libvirt_open_with(&calls, &params, &hv), 0);
	event = wait_any();
	ck_assert_int_eq(event.type, HV_EVENT_UP);
	hv_event_clear(&event);
}

/* It answers, if late: it counts as an agent, and is not asked where the quick ones are. */
START_TEST(guest_that_is_slow_is_asked_apart_from_those_that_are_quick)
{
	db->agent = agent;
	takes_ns = 2000000;
	open_with_slow(10000); /* a reading has nine commands, or more */
	listen_to(db, HV_WAY_QEMU_GA);
	report_of(db);
	listen_to(web, HV_WAY_QEMU_GA);
	while (nr_asked < 50) /* to meet it takes some twenty */
		nap();
	ck_assert_uint_eq(nr_askers, 1);
}
END_TEST

START_TEST(guest_that_is_all_too_slow_is_broken_off)
{
	struct hv_agent a;

	takes_ns = 5000000;
	open_with_slow(2000);
	listen_to(web, HV_WAY_QEMU_GA);
	a = fault_of(web);
	ck_assert(!a.connected);
	ck_assert_str_eq(a.fault, "QEMU's agent is too slow");
}
END_TEST

/* By the thread that meets it, and by the other: each has its connection then. */
static void be_read_by_both(void)
{
	while (nr_askers < 2)
		nap();
}

START_TEST(vm_that_is_not_found_costs_the_others_no_connection)
{
	struct hv_agent a;
	unsigned int before;

	takes_ns = 1;
	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	be_read_by_both();
	before = fake_count(FAKE_OPEN);
	fake_fail(FAKE_LOOKUP, VIR_ERR_NO_DOMAIN);
	do
		a = told_of(web);
	while (a.connected);
	nr_askers = 0; /* nobody is at it */
	fake_fail(FAKE_LOOKUP, 0);
	be_read_by_both();
	ck_assert_uint_eq(fake_count(FAKE_OPEN), before);
}
END_TEST

/* ---- jobs ---- */

static void read_stats(const struct fake_domain *dom)
{
	struct hv_event event = ask_call((struct hv_call){ .type = HV_STATS }, dom);

	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
}

START_TEST(nothing_is_asked_while_a_job_runs_on_the_domain_or_a_disk)
{
	struct hv_event event;
	unsigned int before;

	strcpy(web->inside, "<devices><disk><target dev='vda'/></disk></devices>");
	fake_lock();
	web->job = _i ? 0 : VIR_DOMAIN_JOB_OPERATION_SNAPSHOT;
	web->block_job = _i;
	fake_unlock();
	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	for (int i = 0; i < 20; i++) /* ten times as long as between two rounds */
		nap();
	ck_assert_uint_eq(fake_count(FAKE_AGENT), 0);
	fake_lock();
	web->job = 0;
	web->block_job = false;
	fake_unlock();
	read_stats(web);
	report_of(web);
	/* It begins again: what is out is finished, and nothing more is asked. */
	fake_lock();
	web->job = _i ? 0 : VIR_DOMAIN_JOB_OPERATION_BACKUP;
	web->block_job = _i;
	fake_unlock();
	read_stats(web);
	event = reclaim(MIB, false);
	ck_assert_int_eq(event.error, -EAGAIN);
	hv_event_clear(&event);
	before = fake_count(FAKE_AGENT);
	for (int i = 0; i < 20; i++)
		nap();
	ck_assert_uint_eq(fake_count(FAKE_AGENT), before);
}
END_TEST

/* Nothing hangs twice: where its QEMU does not answer, its agent is not asked either. */
START_TEST(vm_whose_statistics_do_not_come_is_not_asked)
{
	static struct libvirt_calls calls; /* the backend has it until it is gone */
	struct hv_params params = { .uri = "qemu:///system", .proc = "/tmp" };
	struct hv_event event;
	unsigned int before;

	calls = fake_calls;
	calls.times.qga_fresh = 100000;
	ck_assert_int_eq(hv_libvirt_open_with(&calls, &params, &hv), 0);
	event = wait_any();
	ck_assert_int_eq(event.type, HV_EVENT_UP);
	hv_event_clear(&event);
	listen_to(web, HV_WAY_QEMU_GA);
	report_of(web);
	for (int i = 0; i < 100; i++)
		nap();
	before = fake_count(FAKE_AGENT);
	for (int i = 0; i < 20; i++)
		nap();
	ck_assert_uint_eq(fake_count(FAKE_AGENT), before);
}
END_TEST

START_TEST(nobody_who_is_not_named_is_asked_anything)
{
	db->agent = agent;
	open_backend();
	listen_to(web, HV_WAY_NONE);
	listen_to(db, HV_WAY_BALLAST);
	for (int i = 0; i < 20; i++)
		nap();
	ck_assert_uint_eq(fake_count(FAKE_AGENT), 0);
}
END_TEST

START_TEST(agents_are_met_again_after_the_connection_broke)
{
	struct hv_agent a;

	open_backend();
	listen_to(web, HV_WAY_QEMU_GA);
	report_of(web);
	fake_fail(FAKE_OPEN, VIR_ERR_SYSTEM_ERROR);
	fake_break(VIR_CONNECT_CLOSE_REASON_EOF);
	do
		a = told_of(web);
	while (a.connected);
	fake_fail(FAKE_OPEN, 0);
	report_of(web);
}
END_TEST

/* ---- texts ---- */

START_TEST(commands_are_what_the_agent_takes)
{
	char text[QGA_COMMAND];

	qga_ask_open(text, "/proc/meminfo", "r");
	ck_assert_str_eq(text, "{\"execute\":\"guest-file-open\",\"arguments\":{\"path\":\"/proc/"
			       "meminfo\",\"mode\":\"r\"}}");
	qga_ask_read(text, 1000);
	ck_assert_str_eq(text, "{\"execute\":\"guest-file-read\",\"arguments\":{\"handle\":1000,"
			       "\"count\":16384}}");
	qga_ask_write(text, -1, "4096 swappiness=0");
	ck_assert_str_eq(text, "{\"execute\":\"guest-file-write\",\"arguments\":{\"handle\":-1,"
			       "\"buf-b64\":\"NDA5NiBzd2FwcGluZXNzPTA=\"}}");
	qga_ask_write(text, 1, "1048576");
	ck_assert_ptr_nonnull(strstr(text, "\"MTA0ODU3Ng==\""));
}
END_TEST

START_TEST(contents_are_whole_or_refused)
{
	static const struct {
		const char *answer, *data; /* NULL: refused */
	} cases[] = {
		{ "{\"return\":{\"count\":3,\"buf-b64\":\"YWJj\",\"eof\":true}}", "abc" },
		{ "{\"return\":{\"count\":2,\"buf-b64\":\"YWI=\",\"eof\":true}}", "ab" },
		{ "{\"return\":{\"count\":1,\"buf-b64\":\"YQ==\"}}", "a" },
		{ "{\"return\":{\"count\":0,\"buf-b64\":\"\"}}", "" },
		{ "{\"return\":{\"count\":4,\"buf-b64\":\"YWJj\"}}", NULL },
		{ "{\"return\":{\"count\":-3,\"buf-b64\":\"YWJj\"}}", NULL },
		{ "{\"return\":{\"count\":3,\"buf-b64\":\"YWJ\"}}", NULL },
		{ "{\"return\":{\"count\":3,\"buf-b64\":\"YW=j\"}}", NULL },
		{ "{\"return\":{\"count\":3,\"buf-b64\":\"Y===\"}}", NULL },
		{ "{\"return\":{\"count\":3,\"buf-b64\":\"YQ==YWJj\"}}", NULL },
		{ "{\"return\":{\"count\":3,\"buf-b64\":\"YW j\"}}", NULL },
		{ "{\"return\":{\"count\":3,\"buf-b64\":3}}", NULL },
		{ "{\"return\":{\"buf-b64\":\"YWJj\"}}", NULL },
		{ "{\"error\":{}}", NULL },
	};
	static char data[QGA_FILE + 1];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r = qga_read_data(cases[i].answer, data);

		ck_assert_msg(r == (cases[i].data ? 0 : -EBADMSG), "%s: %d", cases[i].answer, r);
		if (cases[i].data)
			ck_assert_str_eq(data, cases[i].data);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("qga");
	TCase *tc = tcase_create("qemu-ga");

	tcase_add_checked_fixture(tc, setup, host_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, guest_without_an_agent_of_ours_reports_as_one_that_has_it);
	tcase_add_test(tc, only_what_is_inactive_and_may_go_is_reclaimed);
	tcase_add_test(tc, lists_of_a_kernel_that_ages_by_generations_count_for_nothing);
	tcase_add_test(tc, anonymous_pages_alone_go_where_they_may);
	tcase_add_test(tc, what_came_is_counted_in_the_guests_own_pages);
	tcase_add_loop_test(tc,
		BR_89_what_the_guests_kernel_denies_is_tried_once_and_what_it_does_not_find_again,
		0, 2);
	tcase_add_loop_test(
		tc, kernel_that_takes_no_swappiness_is_reclaimed_only_without_swap, 0, 2);
	tcase_add_test(tc, blocked_files_are_said_and_nothing_is_tried);
	tcase_add_loop_test(tc, without_writing_it_reports_and_reclaims_nothing, 0, 2);
	tcase_add_test(tc, vm_without_the_channel_is_said_so);
	tcase_add_loop_test(tc, hostile_answer_is_a_fault_and_nothing_of_it_counts, 0,
		sizeof(hostile) / sizeof(hostile[0]));
	tcase_add_test(tc, agent_that_ends_half_way_is_none_until_it_is_good_again);
	tcase_add_test(tc, agent_that_hangs_costs_the_others_nothing);
	tcase_add_test(tc, agents_that_never_answered_cost_those_that_do_nothing);
	tcase_add_test(tc, guest_that_is_slow_is_asked_apart_from_those_that_are_quick);
	tcase_add_test(tc, guest_that_is_all_too_slow_is_broken_off);
	tcase_add_test(tc, vm_that_is_not_found_costs_the_others_no_connection);
	tcase_add_loop_test(tc, nothing_is_asked_while_a_job_runs_on_the_domain_or_a_disk, 0, 2);
	tcase_add_test(tc, vm_whose_statistics_do_not_come_is_not_asked);
	tcase_add_test(tc, nobody_who_is_not_named_is_asked_anything);
	tcase_add_test(tc, agents_are_met_again_after_the_connection_broke);
	suite_add_tcase(suite, tc);
	tc = tcase_create("texts");
	tcase_add_test(tc, commands_are_what_the_agent_takes);
	tcase_add_test(tc, contents_are_whole_or_refused);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
