/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The Xen backend and agents: what a guest's agent says in its keys of xenstore, and what a hostile
 * guest does there, on a Xen of the tests' own.
 */
#include <config.h>

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/protocol.h"
#include "hv/xen/backend.h"
#include "hv/xen/store.h"
#include "tests/unit/fake_xen.h"
#include "tests/unit/suite.h"
#include "tests/unit/xen_host.h"

#define MIB   UINT64_C(1048576)
#define GUEST (512 * UINT64_C(1024)) /* KiB */

/* Of keys and of watches, in the second that a flood lasts at most: no more than so many calls. */
#define READS_MOST 110

static struct fake_guest *web, *db;

static void setup(void)
{
	fake_xen_reset();
	fake_xen_host(4096 * 1024, 1024 * 1024, 0);
	web = fake_xen_add("web", GUEST, GUEST);
	db = fake_xen_add("db", GUEST, GUEST);
}

static void teardown(void)
{
	close_host();
}

/* ---- the guest's side ---- */

static void key_path(const struct fake_guest *g, const char *key, char *path)
{
	store_domain_path(path, g->domid, key);
}

static bool host_says(const struct fake_guest *g, char *text)
{
	char path[STORE_PATH];

	key_path(g, PROTOCOL_STORE_HOST, path);
	return fake_xen_read(path, text);
}

/* The number of what the host says, once it says that and the number is another. */
static uint64_t until_host_says(const struct fake_guest *g, const char *what, uint64_t before)
{
	char text[256] = "";

	for (int i = 0; i < PATIENCE_MS; i++) {
		if (host_says(g, text) && strstr(text, what) && strtoull(text, NULL, 10) != before)
			return strtoull(text, NULL, 10);
		nap(1);
	}
	ck_abort_msg("the host says \"%s\"", text);
	return 0;
}

static int write_key(struct fake_guest *g, unsigned int nr, const char *text, size_t length)
{
	char path[STORE_PATH], key[32];

	snprintf(key, sizeof(key), PROTOCOL_STORE_GUEST "/%u", nr);
	key_path(g, key, path);
	return fake_xen_guest_write(g, path, text, length);
}

static void agent_says(struct fake_guest *g, unsigned int nr, const struct protocol_message *m)
{
	char text[PROTOCOL_MESSAGE_MAX + 2];
	size_t length = protocol_format(m, text);

	ck_assert_int_eq(write_key(g, nr, text, length), 0);
}

static void greet(struct fake_guest *g)
{
	struct protocol_message hello = { .type = PROTOCOL_HELLO,
		.known = PROTOCOL_VERSIONS_OLDEST | PROTOCOL_VERSIONS_NEWEST | PROTOCOL_CAN |
			 PROTOCOL_SOFTWARE,
		.oldest = 1,
		.newest = 1,
		.can = PROTOCOL_CAN_ALL,
		.software = "test 1" };

	agent_says(g, 0, &hello);
}

static void report(struct fake_guest *g, uint64_t free)
{
	struct protocol_message m = { .type = PROTOCOL_REPORT,
		.known = PROTOCOL_FREE | PROTOCOL_TOTAL | PROTOCOL_LISTS,
		.free = free,
		.total = 512 * MIB,
		.inactive_file = 100 * MIB };

	agent_says(g, 1, &m);
}

static void done(struct fake_guest *g, uint64_t id, uint64_t bytes)
{
	struct protocol_message m = { .type = PROTOCOL_DONE,
		.known = PROTOCOL_ID | PROTOCOL_BYTES,
		.id = id,
		.bytes = bytes };

	agent_says(g, 2, &m);
}

/* ---- the host's side ---- */

/* What is told of that guest's agent once it is so. */
static struct hv_agent until_agent(
	const struct fake_guest *g, bool (*is)(const struct hv_agent *agent))
{
	struct hv_uuid uuid = fake_xen_uuid(g);

	for (;;) {
		struct hv_event event = wait_for(HV_EVENT_AGENT, 0);
		struct hv_agent agent = event.agent;
		bool same = hv_uuid_equal(&event.uuid, &uuid);

		hv_event_clear(&event);
		if (same && is(&agent))
			return agent;
	}
}

static bool is_connected(const struct hv_agent *agent)
{
	return agent->connected;
}

static bool is_gone(const struct hv_agent *agent)
{
	return !agent->connected;
}

static bool has_report(const struct hv_agent *agent)
{
	return agent->known & HV_AGENT_REPORT;
}

static bool has_fault(const struct hv_agent *agent)
{
	return agent->faults > 0;
}

/* Greeted, and has greeted. */
static void meet(struct fake_guest *g)
{
	char path[STORE_PATH];

	until_host_says(g, "hello", 0);
	key_path(g, PROTOCOL_STORE_GUEST, path);
	for (int i = 0; i < PATIENCE_MS && fake_xen_nr_watches(path) == 0; i++)
		nap(1);
	ck_assert_uint_eq(fake_xen_nr_watches(path), 1);
	greet(g);
	until_agent(g, is_connected);
}

static struct hv_call reclaim(const struct fake_guest *g, uint64_t deadline_ms)
{
	return (struct hv_call){ .type = HV_RECLAIM,
		.uuid = fake_xen_uuid(g),
		.bytes = 64 * MIB,
		.deadline_ms = deadline_ms };
}

static int answer_to(uint64_t token, uint64_t *ret_came)
{
	struct hv_event event = wait_for(HV_EVENT_DONE, token);
	int error = event.error;

	*ret_came = event.came;
	hv_event_clear(&event);
	return error;
}

/* ---- what agents say ---- */

START_TEST(agent_is_greeted_and_what_it_reports_is_told)
{
	struct hv_agent agent;

	open_host(0);
	meet(web);
	report(web, 42 * MIB);
	agent = until_agent(web, has_report);
	ck_assert(agent.reclaims);
	ck_assert_str_eq(agent.software, "test 1");
	ck_assert_uint_eq(agent.free, 42 * MIB);
	ck_assert_uint_eq(agent.known & HV_AGENT_LISTS, HV_AGENT_LISTS);
	ck_assert_uint_eq(agent.lists.inactive_file, 100 * MIB);
	ck_assert_uint_eq(agent.faults, 0);
}
END_TEST

/* Events that nobody takes, until there is room for no more. */
static void fill_queue(struct hv_queue *queue)
{
	bool full = false;

	for (uint64_t i = 1; !full; i++) {
		struct hv_event event = { .type = HV_EVENT_CHANGED };

		memcpy(event.uuid.bytes, &i, sizeof(i));
		hv_queue_tell(queue, &event);
		pthread_mutex_lock(&queue->lock);
		full = queue->nr_spontaneous == HV_QUEUE_MAX;
		pthread_mutex_unlock(&queue->lock);
	}
}

static bool has_lost(struct hv_queue *queue)
{
	bool lost;

	pthread_mutex_lock(&queue->lock);
	lost = queue->lost;
	pthread_mutex_unlock(&queue->lock);
	return lost;
}

/* Agents are in no listing, which is what follows on lost events. */
START_TEST(report_that_there_was_no_room_for_is_told_once_there_is)
{
	open_host(0);
	meet(web);
	fill_queue(&host->queue);
	report(web, 42 * MIB);
	for (int i = 0; i < PATIENCE_MS && !has_lost(&host->queue); i++)
		nap(1);
	ck_assert(has_lost(&host->queue));
	ck_assert_uint_eq(until_agent(web, has_report).free, 42 * MIB);
}
END_TEST

START_TEST(guest_may_write_its_own_keys_and_nothing_of_the_host_s_or_another_s)
{
	static const char *const keys[] = { PROTOCOL_STORE, PROTOCOL_STORE_HOST,
		PROTOCOL_STORE_GUEST, PROTOCOL_STORE_GUEST "/4", PROTOCOL_STORE "/x" };
	char path[STORE_PATH];

	open_host(0);
	until_host_says(web, "hello", 0);
	until_host_says(db, "hello", 0);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		key_path(web, keys[i], path);
		ck_assert_int_eq(fake_xen_guest_write(web, path, "x", 1), EACCES);
	}
	ck_assert_int_eq(fake_xen_guest_remove(web, path), ENOENT);
	key_path(web, PROTOCOL_STORE_HOST, path);
	ck_assert_int_eq(fake_xen_guest_remove(web, path), EACCES);
	key_path(db, PROTOCOL_STORE_GUEST "/0", path);
	ck_assert_int_eq(fake_xen_guest_write(web, path, "x", 1), EACCES);
	key_path(web, PROTOCOL_STORE_GUEST "/0", path);
	ck_assert_int_eq(fake_xen_guest_write(web, path, "x", 1), 0);
	/* So many keys, and no more. */
	key_path(web, PROTOCOL_STORE, path);
	ck_assert_uint_eq(fake_xen_count(path), 3 + PROTOCOL_STORE_KEYS);
}
END_TEST

START_TEST(request_is_answered_with_what_came)
{
	uint64_t token, again, came;

	open_host(0);
	token = submit(reclaim(web, 1000));
	ck_assert_int_eq(answer_to(token, &came), -ENOTCONN);
	meet(web);
	token = submit(reclaim(web, 60000));
	until_host_says(web, "\"reclaim\"", 0);
	again = submit(reclaim(web, 60000));
	ck_assert_int_eq(answer_to(again, &came), -EAGAIN);
	done(web, 1, 60 * MIB);
	ck_assert_int_eq(answer_to(token, &came), 0);
	ck_assert_uint_eq(came, 60 * MIB);
}
END_TEST

START_TEST(agent_that_fell_silent_is_greeted_anew)
{
	struct hv_agent agent;
	uint64_t first;

	open_host_impatient(300000);
	meet(web);
	first = until_host_says(web, "hello", 0);
	/* Killed, and started again: it reads what stands there. */
	agent = until_agent(web, is_gone);
	ck_assert_uint_eq(agent.faults, 0);
	until_host_says(web, "hello", first);
	greet(web);
	until_agent(web, is_connected);
}
END_TEST

START_TEST(lost_connection_ends_the_request_and_agents_are_greeted_anew)
{
	uint64_t first, token, came;

	open_host(0);
	meet(web);
	first = until_host_says(web, "hello", 0);
	token = submit(reclaim(web, 60000));
	until_host_says(web, "\"reclaim\"", 0);
	fake_xen_break(true);
	ck_assert_int_eq(answer_to(token, &came), -ENOTCONN);
	fake_xen_break(false);
	ck_assert_uint_gt(until_host_says(web, "hello", first), first);
	meet(web);
}
END_TEST

/* ---- lives ---- */

START_TEST(keys_are_made_in_each_life_and_go_with_it)
{
	struct hv_event event;
	uint32_t domid;

	open_host(0);
	meet(web);
	domid = web->domid;
	fake_xen_reboot(web);
	ck_assert_uint_ne(web->domid, domid);
	meet(web);
	fake_xen_destroy(web, true);
	for (int i = 0; i < PATIENCE_MS && fake_xen_nr_watches("ballast/guest") != 1; i++)
		nap(1);
	ck_assert_uint_eq(fake_xen_nr_watches("ballast/guest"), 1);
	event = ask((struct hv_call){ .type = HV_LIST });
	ck_assert_uint_eq(event.listed.nr, 1);
	hv_event_clear(&event);
	ck_assert_uint_eq(fake_xen_count("/local/domain/1"), 0);
	ck_assert_uint_eq(fake_xen_count("/local/domain/3"), 0);
}
END_TEST

START_TEST(no_key_is_made_for_a_domain_that_goes_meanwhile)
{
	fake_xen_destroy_before_write(web);
	open_host(0);
	until_host_says(db, "hello", 0);
	ck_assert_uint_eq(fake_xen_count("/local/domain/1"), 0);
	meet(db);
	ck_assert_uint_eq(fake_xen_count("/local/domain/1"), 0);
}
END_TEST

START_TEST(keys_in_a_path_that_its_toolstack_left_are_removed_and_nothing_else)
{
	char path[STORE_PATH], text[256];

	open_host(0);
	meet(web);
	fake_xen_destroy(web, false);
	key_path(web, PROTOCOL_STORE, path);
	for (int i = 0; i < PATIENCE_MS && fake_xen_count(path) > 0; i++)
		nap(1);
	ck_assert_uint_eq(fake_xen_count(path), 0);
	key_path(web, "memory/target", path);
	ck_assert(fake_xen_read(path, text));
}
END_TEST

/* ---- hostile guests ---- */

/* Whatever web does: db is heard, and obeyed when it answers. */
static void other_is_served(void)
{
	uint64_t token, came;

	report(db, 7 * MIB);
	ck_assert_uint_eq(until_agent(db, has_report).free, 7 * MIB);
	token = submit(reclaim(db, 60000));
	until_host_says(db, "\"reclaim\"", 0);
	done(db, 1, MIB);
	ck_assert_int_eq(answer_to(token, &came), 0);
	ck_assert_uint_eq(came, MIB);
}

START_TEST(noise_at_full_rate_is_read_at_its_rate_and_told_and_others_are_served)
{
	static char noise[PROTOCOL_MESSAGE_MAX];
	struct hv_agent agent;

	memset(noise, '{', sizeof(noise));
	open_host(0);
	meet(db);
	meet(web);
	web->reads = 0;
	for (unsigned int i = 0; i < 20000; i++)
		ck_assert_int_eq(write_key(web, i % PROTOCOL_STORE_KEYS, noise, sizeof(noise)), 0);
	agent = until_agent(web, has_fault);
	ck_assert_str_ne(agent.fault, "");
	fake_xen_lock();
	ck_assert_uint_le(web->reads, 4 * READS_MOST);
	fake_xen_unlock();
	other_is_served();
	/* The second over, it is heard again. */
	for (int i = 0; i < PATIENCE_MS && fake_xen_nr_watches("ballast/guest") < 2; i++)
		nap(1);
	ck_assert_uint_eq(fake_xen_nr_watches("ballast/guest"), 2);
}
END_TEST

START_TEST(path_filled_to_the_quota_is_the_guest_s_own_affair)
{
	char path[STORE_PATH], key[64];
	unsigned int nr = 0;
	int error = 0;

	open_host(0);
	meet(db);
	meet(web);
	web->reads = 0;
	while (error == 0) {
		snprintf(key, sizeof(key), PROTOCOL_STORE_GUEST "/0/%u", nr++);
		key_path(web, key, path);
		error = fake_xen_guest_write(web, path, "x", 1);
		ck_assert_uint_lt(nr, 10000);
	}
	ck_assert_int_eq(error, ENOSPC);
	fake_xen_lock();
	ck_assert_uint_le(web->reads, READS_MOST);
	fake_xen_unlock();
	other_is_served();
	/* Its own keys are the host's: they hold what it says as before. */
	report(web, 5 * MIB);
	ck_assert_uint_eq(until_agent(web, has_report).free, 5 * MIB);
}
END_TEST

/* Each write below its keys makes an event, and nothing else. */
START_TEST(guest_that_keeps_watches_busy_is_not_watched_for_the_rest_of_the_second)
{
	char path[STORE_PATH];
	struct hv_agent agent;

	open_host(0);
	meet(db);
	meet(web);
	web->reads = 0;
	key_path(web, PROTOCOL_STORE_GUEST "/3/loop", path);
	for (unsigned int i = 0; i < 20000; i++) {
		ck_assert_int_eq(fake_xen_guest_write(web, path, "x", 1), 0);
		if (i % 100 == 0)
			nap(1);
	}
	agent = until_agent(web, has_fault);
	ck_assert_str_eq(agent.fault, "writes more than is read");
	fake_xen_lock();
	ck_assert_uint_le(web->reads, READS_MOST);
	fake_xen_unlock();
	other_is_served();
}
END_TEST

START_TEST(guest_that_removes_its_keys_gets_new_ones_after_a_while)
{
	char path[STORE_PATH];
	struct hv_agent agent;
	uint64_t first;

	open_host(0);
	meet(db);
	meet(web);
	first = until_host_says(web, "hello", 0);
	for (unsigned int i = 0; i < PROTOCOL_STORE_KEYS; i++) {
		char key[32];

		snprintf(key, sizeof(key), PROTOCOL_STORE_GUEST "/%u", i);
		key_path(web, key, path);
		ck_assert_int_eq(fake_xen_guest_remove(web, path), 0);
	}
	ck_assert_int_eq(write_key(web, 0, "x", 1), EACCES); /* it cannot make them again */
	agent = until_agent(web, has_fault);
	ck_assert_str_eq(agent.fault, "removed the keys of its agent");
	ck_assert(!agent.connected);
	other_is_served();
	until_host_says(web, "hello", first);
	meet(web);
}
END_TEST

START_TEST(answer_with_another_s_id_is_none_and_the_request_ends_at_its_deadline)
{
	uint64_t token, came;
	struct hv_agent agent;

	open_host(0);
	meet(web);
	meet(db);
	token = submit(reclaim(web, 100));
	until_host_says(web, "\"reclaim\"", 0);
	done(db, 1, 512 * MIB); /* web's */
	agent = until_agent(db, has_fault);
	ck_assert_str_eq(agent.fault, "answers what was not asked");
	done(web, 7, 512 * MIB);
	ck_assert_int_eq(answer_to(token, &came), -ETIMEDOUT);
}
END_TEST

START_TEST(what_is_no_message_is_a_fault_and_the_agent_stays)
{
	static char large[2048];
	struct hv_agent agent;

	open_host(0);
	meet(web);
	report(web, MIB);
	until_agent(web, has_report);
	memset(large, 'x', sizeof(large));
	ck_assert_int_eq(write_key(web, 3, large, sizeof(large)), 0);
	agent = until_agent(web, has_fault);
	ck_assert_str_eq(agent.fault, "a message is too long");
	ck_assert_int_eq(write_key(web, 3, "\0\0\0", 3), 0);
	do {
		agent = until_agent(web, has_fault);
	} while (agent.faults < 2);
	ck_assert_str_eq(agent.fault, "a message is no text");
	ck_assert(agent.connected);
	report(web, 2 * MIB);
	agent = until_agent(web, has_report);
	ck_assert_uint_eq(agent.free, 2 * MIB);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xen_agent");
	TCase *good = tcase_create("agents"), *bad = tcase_create("hostile");

	tcase_add_checked_fixture(good, setup, teardown);
	tcase_set_timeout(good, 120);
	tcase_add_test(good, agent_is_greeted_and_what_it_reports_is_told);
	tcase_add_test(good, report_that_there_was_no_room_for_is_told_once_there_is);
	tcase_add_test(good, guest_may_write_its_own_keys_and_nothing_of_the_host_s_or_another_s);
	tcase_add_test(good, request_is_answered_with_what_came);
	tcase_add_test(good, agent_that_fell_silent_is_greeted_anew);
	tcase_add_test(good, lost_connection_ends_the_request_and_agents_are_greeted_anew);
	tcase_add_test(good, keys_are_made_in_each_life_and_go_with_it);
	tcase_add_test(good, no_key_is_made_for_a_domain_that_goes_meanwhile);
	tcase_add_test(good, keys_in_a_path_that_its_toolstack_left_are_removed_and_nothing_else);
	suite_add_tcase(suite, good);
	tcase_add_checked_fixture(bad, setup, teardown);
	tcase_set_timeout(bad, 120);
	tcase_add_test(bad, noise_at_full_rate_is_read_at_its_rate_and_told_and_others_are_served);
	tcase_add_test(bad, path_filled_to_the_quota_is_the_guest_s_own_affair);
	tcase_add_test(
		bad, guest_that_keeps_watches_busy_is_not_watched_for_the_rest_of_the_second);
	tcase_add_test(bad, guest_that_removes_its_keys_gets_new_ones_after_a_while);
	tcase_add_test(bad, answer_with_another_s_id_is_none_and_the_request_ends_at_its_deadline);
	tcase_add_test(bad, what_is_no_message_is_a_fault_and_the_agent_stays);
	suite_add_tcase(suite, bad);
	return suite_run(suite);
}
