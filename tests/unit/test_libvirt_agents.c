/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sockets of agents' channels, with guests at their other ends that do what they should not. */
#include <config.h>

#include "hv/libvirt/libvirt.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/fake_libvirt.h"
#include "hv/agent_channel.h"
#include "hv/libvirt/backend.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

/* How long anything may take: only a test that fails waits for it. */
#define PATIENCE_MS 20000

#define HELLO "{\"type\":\"hello\",\"oldest\":1,\"newest\":1,\"can\":[\"reclaim\"]}\n"

/* A domain and who sits at the guest's end of its channel. */
struct guest {
	struct fake_domain *domain;
	int listener, fd;
	struct hv_agent agent; /* as it was last told */
};

static struct hv *hv;
static struct guest good, bad;
static uint64_t token;
/* Answers that came while something else was waited for, by the token's number. */
static struct hv_event answers[8];

static void describe(const struct guest *guest, const char *path)
{
	fake_lock();
	snprintf(guest->domain->inside, sizeof(guest->domain->inside),
		"<devices><channel type='unix'><source mode='bind' path='%s'/>"
		"<target type='virtio' name='" PROTOCOL_PORT "'/></channel></devices>",
		path);
	fake_unlock();
}

static void add(struct guest *guest, const char *name, const char *folder)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memset(guest, 0, sizeof(*guest));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", folder, name);
	guest->fd = -1;
	guest->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(
		bind(guest->listener, (const struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(guest->listener, 1), 0);
	guest->domain = fake_add(name);
	describe(guest, address.sun_path);
}

static struct guest *guest_of(const struct hv_uuid *uuid)
{
	struct hv_uuid own = fake_uuid(good.domain);

	return hv_uuid_equal(uuid, &own) ? &good : &bad;
}

/* Takes an event, within patience: what an agent is known as, or an answer. Its type. */
static enum hv_event_type take_one(void)
{
	struct pollfd fd = { .fd = hv_libvirt.fd(hv), .events = POLLIN };
	enum hv_event_type type;
	struct hv_event event;

	while (hv_libvirt.next(hv, &event) == 0)
		ck_assert_int_gt(poll(&fd, 1, PATIENCE_MS), 0);
	type = event.type;
	if (event.type == HV_EVENT_AGENT)
		guest_of(&event.uuid)->agent = event.agent;
	if (event.token) {
		ck_assert_uint_lt(event.token, sizeof(answers) / sizeof(answers[0]));
		answers[event.token] = event;
		answers[event.token].message = NULL;
	}
	hv_event_clear(&event);
	return type;
}

static struct hv_event answer_to(uint64_t wanted)
{
	while (!answers[wanted].token)
		take_one();
	return answers[wanted];
}

static uint64_t submit(enum hv_call_type type, const struct guest *guest, uint64_t deadline_ms)
{
	struct hv_call call = { .type = type,
		.token = ++token,
		.uuid = fake_uuid(guest->domain),
		.agent = HV_WAY_BALLAST,
		.bytes = 1 << 20,
		.deadline_ms = deadline_ms };

	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	return call.token;
}

static void say(const struct guest *guest, const char *text)
{
	ck_assert_int_eq(send(guest->fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Its description names the socket, and whoever is at its other end is greeted and greets. */
static void greet(struct guest *guest)
{
	char text[256];

	ck_assert_int_eq(answer_to(submit(HV_INFO, guest, 0)).error, 0);
	guest->fd = accept(guest->listener, NULL, NULL);
	ck_assert_int_ge(guest->fd, 0);
	ck_assert_int_gt(recv(guest->fd, text, sizeof(text), 0), 0);
	say(guest, HELLO);
	while (!guest->agent.connected)
		take_one();
}

static char folder[SCRATCH_PATH];

static void setup(void)
{
	/* Nothing of this machine's is looked at. */
	struct hv_params params = { .uri = "qemu:///system", .proc = folder };

	scratch_new(folder);
	fake_reset();
	add(&good, "good", folder);
	add(&bad, "bad", folder);
	token = 0;
	memset(answers, 0, sizeof(answers));
	ck_assert_int_eq(hv_libvirt_open_with(&fake_calls, &params, &hv), 0);
	while (take_one() != HV_EVENT_UP)
		;
	greet(&good);
	greet(&bad);
}

/* Everything must be gone in the end: threads, connections. */
static void teardown(void)
{
	hv_libvirt.close(hv);
	for (unsigned int i = 0; i < PATIENCE_MS / 2 && hv_libvirt_nr_alive() > 0; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	ck_assert_uint_eq(hv_libvirt_nr_alive(), 0);
	close(good.fd);
	close(good.listener);
	close(bad.fd);
	close(bad.listener);
}

/* The good one does what it is asked while the bad one does what it wants. */
static void good_frees(void)
{
	uint64_t asked = submit(HV_RECLAIM, &good, 10000);
	struct hv_event event;
	char text[256];
	ssize_t n = recv(good.fd, text, sizeof(text) - 1, 0);

	ck_assert_int_gt(n, 0);
	text[n] = '\0';
	ck_assert_ptr_nonnull(strstr(text, "\"type\":\"reclaim\""));
	say(&good, "{\"type\":\"done\",\"id\":1,\"bytes\":1048576}\n");
	event = answer_to(asked);
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_eq(event.came, 1 << 20);
}

START_TEST(BR_32_agent_that_never_reads_fails_at_its_deadline_and_another_answers_meanwhile)
{
	uint64_t asked = submit(HV_RECLAIM, &bad, 1000);

	good_frees();
	ck_assert_uint_eq(answers[asked].token, 0);
	ck_assert_int_eq(answer_to(asked).error, -ETIMEDOUT);
	while (!bad.agent.faults)
		take_one();
	ck_assert_str_eq(bad.agent.fault, "gives no answer in time");
	ck_assert(bad.agent.connected);
}
END_TEST

START_TEST(answer_that_was_given_for_another_request_is_a_fault_and_not_taken)
{
	uint64_t asked = submit(HV_RECLAIM, &bad, 1000);

	say(&bad, "{\"type\":\"done\",\"id\":77,\"bytes\":1048576}\n");
	good_frees();
	ck_assert_int_eq(answer_to(asked).error, -ETIMEDOUT);
}
END_TEST

/* What is not read in time stays in the socket, which is full at some point. */
START_TEST(noise_is_read_at_its_rate_and_another_answers_meanwhile)
{
	static char noise[1 << 16];
	uint64_t sent = 0;
	ssize_t n;

	memset(noise, 'x', sizeof(noise));
	for (size_t i = 99; i < sizeof(noise); i += 100)
		noise[i] = '\n';
	while ((n = send(bad.fd, noise, sizeof(noise), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
		sent += (uint64_t)n;
	good_frees();
	while (strcmp(bad.agent.fault, "sends more than is read"))
		take_one();
	/* What a socket holds, and what was read. */
	ck_assert_uint_le(sent, 64 * AGENT_CHANNEL_BYTES);
	ck_assert_uint_le(bad.agent.faults, 64 * AGENT_CHANNEL_MESSAGES);
	ck_assert_uint_eq(good.agent.faults, 0);
}
END_TEST

START_TEST(agent_that_hangs_up_fails_what_it_was_asked_and_is_greeted_again)
{
	uint64_t asked = submit(HV_RECLAIM, &bad, 10000);
	char text[256];

	/* Until it was asked: the call goes out on another thread. */
	ck_assert_int_gt(recv(bad.fd, text, sizeof(text), 0), 0);
	close(bad.fd);
	ck_assert_int_eq(answer_to(asked).error, -ENOTCONN);
	while (bad.agent.connected)
		take_one();
	greet(&bad);
}
END_TEST

START_TEST(agent_that_takes_nothing_more_is_told_so_and_asked_again_when_it_is_back)
{
	ck_assert_int_eq(shutdown(bad.fd, SHUT_RD), 0);
	ck_assert_int_eq(answer_to(submit(HV_RECLAIM, &bad, 10000)).error, -EAGAIN);
	while (strcmp(bad.agent.fault, "reads nothing"))
		take_one();
	while (bad.agent.connected)
		take_one();
	close(bad.fd);
	greet(&bad);
	ck_assert_int_eq(answer_to(submit(HV_RECLAIM, &bad, 1)).error, -ETIMEDOUT);
}
END_TEST

static char *remote_uri(virConnectPtr conn)
{
	return strdup("qemu+ssh://root@other/system");
}

/* The path is of that host: here something else may listen. */
START_TEST(nobody_is_greeted_here_for_a_vm_of_another_host)
{
	static struct libvirt_calls calls;
	struct hv_params params = { .uri = "qemu+ssh://root@other/system", .proc = folder };
	struct pollfd fd;

	calls = fake_calls;
	calls.connect_get_uri = remote_uri;
	scratch_new(folder);
	fake_reset();
	add(&good, "good", folder);
	bad.fd = bad.listener = -1;
	token = 0;
	memset(answers, 0, sizeof(answers));
	ck_assert_int_eq(hv_libvirt_open_with(&calls, &params, &hv), 0);
	while (take_one() != HV_EVENT_UP)
		;
	ck_assert_int_eq(answer_to(submit(HV_INFO, &good, 0)).error, 0);
	fd = (struct pollfd){ .fd = good.listener, .events = POLLIN };
	ck_assert_int_eq(poll(&fd, 1, 200), 0); /* two of its rounds */
	teardown();
}
END_TEST

/* In a folder whose name alone is longer than an address; bound from inside it. */
static void listen_far_away(struct guest *guest, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char parent[SCRATCH_PATH + 160], path[sizeof(parent) + 160];
	int there;

	snprintf(parent, sizeof(parent), "%s/%0150d", folder, 7);
	ck_assert_int_eq(mkdir(parent, 0755), 0);
	snprintf(path, sizeof(path), "%s/%s", parent, name);
	describe(guest, path);
	/* Its new description is the old one's end. */
	ck_assert_int_eq(answer_to(submit(HV_INFO, guest, 0)).error, 0);
	while (guest->agent.connected)
		take_one();
	close(guest->fd);
	guest->fd = -1;
	if (strlen(name) >= sizeof(address.sun_path))
		return; /* nobody can listen there */
	there = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%.80s", there, name);
	close(guest->listener);
	guest->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(
		bind(guest->listener, (const struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(guest->listener, 1), 0);
	close(there);
}

START_TEST(BR_127_agent_whose_socket_has_a_path_longer_than_an_address_is_listened_to)
{
	listen_far_away(&bad, "port");
	greet(&bad);
	good_frees();
}
END_TEST

START_TEST(BR_127_agent_whose_socket_has_a_name_longer_than_an_address_is_shown_to_be_so)
{
	char name[128] = "";

	memset(name, 'n', sizeof(name) - 1);
	listen_far_away(&bad, name);
	ck_assert_int_eq(answer_to(submit(HV_INFO, &bad, 0)).error, 0);
	while (!bad.agent.faults)
		take_one();
	ck_assert_str_eq(bad.agent.fault, "the path of its socket is too long");
	ck_assert(!bad.agent.connected);
	good_frees();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("libvirt-agents");
	TCase *tc = tcase_create("agents");

	scratch_begin();
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc,
		BR_32_agent_that_never_reads_fails_at_its_deadline_and_another_answers_meanwhile);
	tcase_add_test(tc, answer_that_was_given_for_another_request_is_a_fault_and_not_taken);
	tcase_add_test(tc, noise_is_read_at_its_rate_and_another_answers_meanwhile);
	tcase_add_test(tc, agent_that_hangs_up_fails_what_it_was_asked_and_is_greeted_again);
	tcase_add_test(
		tc, BR_127_agent_whose_socket_has_a_path_longer_than_an_address_is_listened_to);
	tcase_add_test(
		tc, BR_127_agent_whose_socket_has_a_name_longer_than_an_address_is_shown_to_be_so);
	tcase_add_test(
		tc, agent_that_takes_nothing_more_is_told_so_and_asked_again_when_it_is_back);
	suite_add_tcase(suite, tc);
	tc = tcase_create("remote");
	tcase_add_test(tc, nobody_is_greeted_here_for_a_vm_of_another_host);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
