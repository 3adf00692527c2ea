/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent's way over xenstore, with the test as xenstored at the other end of a socket. */
#include <config.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/protocol.h"
#include "guest-agent/xenstore.h"
#include "tests/unit/suite.h"

/* xen/io/xs_wire.h */
enum { XS_READ = 2, XS_WATCH = 4, XS_WRITE = 11, XS_WATCH_EVENT = 15, XS_ERROR = 16 };

struct header {
	uint32_t type, request, transaction, length;
};

static struct xenstore store;
static int ends[2]; /* the agent's, xenstored's */
static char payload[XENSTORE_PAYLOAD + 1];

static void setup(void)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	ck_assert_int_eq(xenstore_start(&store, ends[0]), 0);
}

static void teardown(void)
{
	close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
}

/* What the agent asked next; its type is 0 where it did not. */
static struct header asked(void)
{
	struct header h = { 0 };

	if (read(ends[1], &h, sizeof(h)) != sizeof(h))
		return (struct header){ 0 };
	ck_assert_uint_le(h.length, XENSTORE_PAYLOAD);
	ck_assert_int_eq(read(ends[1], payload, h.length), (ssize_t)h.length);
	payload[h.length] = 0;
	return h;
}

static void say(uint32_t type, uint32_t request, const void *data, size_t length)
{
	struct header h = { .type = type, .request = request, .length = (uint32_t)length };

	ck_assert_int_eq(write(ends[1], &h, sizeof(h)), sizeof(h));
	ck_assert_int_eq(write(ends[1], data, length), (ssize_t)length);
}

static void event(void)
{
	static const char text[] = PROTOCOL_STORE_HOST "\0ballast";

	say(XS_WATCH_EVENT, 0, text, sizeof(text));
}

static int receive(const char **ret_text)
{
	static char text[XENSTORE_PAYLOAD + 1];
	const char *got;
	size_t length;
	int r = xenstore_receive(&store, &got, &length);

	if (r == 1) {
		memcpy(text, got, length);
		text[length] = 0;
		*ret_text = text;
	}
	return r;
}

/* Watched, as it starts. */
static void watched(void)
{
	struct header h = asked();
	const char *text;

	ck_assert_uint_eq(h.type, XS_WATCH);
	ck_assert_str_eq(payload, PROTOCOL_STORE_HOST);
	say(XS_WATCH, h.request, "OK", 3);
	ck_assert_int_eq(receive(&text), 0);
}

/* One event, and the value that is read for it. */
static int told(const char *value, const char **ret_text)
{
	struct header h;

	event();
	ck_assert_int_eq(receive(ret_text), 0);
	h = asked();
	ck_assert_uint_eq(h.type, XS_READ);
	ck_assert_str_eq(payload, PROTOCOL_STORE_HOST);
	say(XS_READ, h.request, value, strlen(value));
	return receive(ret_text);
}

START_TEST(what_the_host_says_is_read_when_it_changed_and_once)
{
	const char *text;

	watched();
	ck_assert_int_eq(told("7\nhello\n", &text), 1);
	ck_assert_str_eq(text, "hello\n");
	ck_assert_int_eq(told("7\nhello\n", &text), 0);
	ck_assert_int_eq(told("8\nhello\n", &text), 1); /* again, by another */
	ck_assert_str_eq(text, "hello\n");
	ck_assert_int_eq(told("80\nx\n", &text), 1);
	ck_assert_str_eq(text, "x\n");
}
END_TEST

START_TEST(value_that_is_no_message_is_passed_over)
{
	static const char *const values[] = { "", "7", "hello\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
		"\nhello\n", "123456789012345678901234567890\nhello\n" };
	const char *text = NULL;

	watched();
	for (size_t i = 0; i < 2; i++)
		ck_assert_int_eq(told(values[i], &text), 0);
	ck_assert_int_eq(told(values[3], &text), 0);
	ck_assert_int_eq(told(values[4], &text), 0);
	ck_assert_int_eq(told("7\nhello\n", &text), 1);
	ck_assert_str_eq(text, "hello\n");
}
END_TEST

START_TEST(events_while_a_value_is_read_make_one_more_reading)
{
	const char *text;
	struct header h;

	watched();
	for (int i = 0; i < 10; i++)
		event();
	ck_assert_int_eq(receive(&text), 0);
	h = asked();
	ck_assert_uint_eq(h.type, XS_READ);
	ck_assert_uint_eq(asked().type, 0);
	say(XS_READ, h.request, "1\na\n", 4);
	ck_assert_int_eq(receive(&text), 1);
	ck_assert_uint_eq(asked().type, XS_READ);
	say(XS_READ, h.request, "2\nb\n", 4);
	ck_assert_int_eq(receive(&text), 1);
	ck_assert_str_eq(text, "b\n");
	ck_assert_uint_eq(asked().type, 0);
}
END_TEST

START_TEST(key_that_is_not_there_is_a_host_that_has_gone_until_it_is_made)
{
	const char *text;
	struct header h;

	watched();
	event();
	ck_assert_int_eq(receive(&text), 0);
	h = asked();
	say(XS_ERROR, h.request, "ENOENT", 7);
	ck_assert_int_eq(receive(&text), -ENOTCONN);
	ck_assert_int_eq(receive(&text), 0);
	ck_assert_int_eq(told("1\nhello\n", &text), 1);
}
END_TEST

START_TEST(messages_go_into_the_keys_in_turn_and_none_waits_for_a_xenstored_that_does_not_answer)
{
	struct header h = { 0 };
	const char *text;
	char path[64];

	watched();
	for (int i = 0; i < PROTOCOL_STORE_KEYS; i++)
		ck_assert_int_eq(xenstore_send(&store, "message\n", 8), 0);
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(xenstore_send(&store, "message\n", 8), -EAGAIN);
	for (int i = 0; i < PROTOCOL_STORE_KEYS; i++) {
		h = asked();
		snprintf(path, sizeof(path), PROTOCOL_STORE_GUEST "/%d", i);
		ck_assert_uint_eq(h.type, XS_WRITE);
		ck_assert_str_eq(payload, path);
		ck_assert_str_eq(payload + strlen(path) + 1, "message\n");
		/* Until it is answered nothing else is with the device. */
		ck_assert_uint_eq(asked().type, 0);
		if (i % 2)
			say(XS_WRITE, h.request, "OK", 3);
		else
			say(XS_ERROR, h.request, "EACCES", 7); /* answered, too */
		ck_assert_int_eq(receive(&text), 0);
	}
	ck_assert_uint_eq(asked().type, 0);
	ck_assert_int_eq(xenstore_send(&store, "a\n", 2), 0);
	asked();
	ck_assert_str_eq(payload, PROTOCOL_STORE_GUEST "/0");
}
END_TEST

/*
 * The kernel's device keeps a request where the next is written, until it is passed on: two at once
 * were one message with the other's text, cut off or drawn out to its length.
 */
START_TEST(word_of_the_host_s_is_read_when_the_message_before_is_answered)
{
	struct header h;
	const char *text;

	watched();
	ck_assert_int_eq(xenstore_send(&store, "message\n", 8), 0);
	h = asked();
	event();
	ck_assert_int_eq(receive(&text), 0);
	ck_assert_uint_eq(asked().type, 0);
	say(XS_WRITE, h.request, "OK", 3);
	ck_assert_int_eq(receive(&text), 0);
	h = asked();
	ck_assert_uint_eq(h.type, XS_READ);
	ck_assert_int_eq(xenstore_send(&store, "more\n", 5), 0);
	ck_assert_uint_eq(asked().type, 0);
	say(XS_READ, h.request, "7\nhello\n", 8);
	ck_assert_int_eq(receive(&text), 1);
	ck_assert_str_eq(text, "hello\n");
	ck_assert_uint_eq(asked().type, XS_WRITE);
	ck_assert_str_eq(payload, PROTOCOL_STORE_GUEST "/1");
}
END_TEST

START_TEST(longest_message_fits_and_a_longer_one_is_refused)
{
	static char text[XENSTORE_PAYLOAD];

	watched();
	memset(text, 'x', sizeof(text));
	ck_assert_int_eq(xenstore_send(&store, text, PROTOCOL_MESSAGE_MAX + 1), 0);
	ck_assert_uint_eq(asked().length, PROTOCOL_MESSAGE_MAX + 1 + strlen("ballast/guest/0") + 1);
	ck_assert_int_eq(xenstore_send(&store, text, sizeof(text)), -EMSGSIZE);
	ck_assert_uint_eq(asked().type, 0);
}
END_TEST

START_TEST(answer_in_pieces_is_put_together)
{
	struct header h = { .type = XS_READ, .request = XS_READ, .length = 8 };
	char bytes[sizeof(h) + 8];
	const char *text;

	watched();
	event();
	ck_assert_int_eq(receive(&text), 0);
	asked();
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), "7\nhello\n", 8);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		ck_assert_int_eq(write(ends[1], bytes + i, 1), 1);
		ck_assert_int_eq(receive(&text), i + 1 == sizeof(bytes));
	}
	ck_assert_str_eq(text, "hello\n");
}
END_TEST

START_TEST(way_ends_where_xenstored_does_or_makes_no_sense)
{
	struct header h = { .type = XS_READ, .length = UINT32_MAX };
	const char *text;

	if (_i == 1) {
		h = asked();
		say(XS_ERROR, h.request, "ENOMEM", 7);
		ck_assert_int_eq(receive(&text), -EIO);
		return;
	}
	watched();
	if (_i == 0) {
		ck_assert_int_eq(write(ends[1], &h, sizeof(h)), sizeof(h));
		ck_assert_int_eq(receive(&text), -EPROTO);
	} else {
		close(ends[1]);
		ends[1] = -1;
		ck_assert_int_eq(receive(&text), -EPIPE);
	}
}
END_TEST

/* Whatever comes: no more than one reading and a bounded number of calls. */
START_TEST(noise_is_lived_through)
{
	uint32_t seed = (uint32_t)_i + 1;
	const char *text;

	watched();
	for (int i = 0; i < 200; i++) {
		char noise[64];

		for (size_t k = 0; k < sizeof(noise); k++) {
			seed = seed * 1664525 + 1013904223;
			noise[k] = (char)(seed >> 24);
		}
		seed = seed * 1664525 + 1013904223;
		say(seed >> 28, (seed >> 24) & 15, noise, (seed >> 16) & 63);
		for (int n = 0; n < 8 && receive(&text) > 0; n++)
			ck_assert_uint_le(strlen(text), XENSTORE_PAYLOAD);
		while (asked().type)
			;
		ck_assert_uint_le(store.waiting, PROTOCOL_STORE_KEYS);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("agent_xenstore");
	TCase *tc = tcase_create("xenstore");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_the_host_says_is_read_when_it_changed_and_once);
	tcase_add_test(tc, value_that_is_no_message_is_passed_over);
	tcase_add_test(tc, events_while_a_value_is_read_make_one_more_reading);
	tcase_add_test(tc, key_that_is_not_there_is_a_host_that_has_gone_until_it_is_made);
	tcase_add_test(tc,
		messages_go_into_the_keys_in_turn_and_none_waits_for_a_xenstored_that_does_not_answer);
	tcase_add_test(tc, word_of_the_host_s_is_read_when_the_message_before_is_answered);
	tcase_add_test(tc, longest_message_fits_and_a_longer_one_is_refused);
	tcase_add_test(tc, answer_in_pieces_is_put_together);
	tcase_add_loop_test(tc, way_ends_where_xenstored_does_or_makes_no_sense, 0, 3);
	tcase_add_loop_test(tc, noise_is_lived_through, 0, 20);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
