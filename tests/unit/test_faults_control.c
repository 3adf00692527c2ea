/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control socket with the nth allocation or system call failing, n from 1 until a run completes
 * with nothing failed: opened, clients that come, ask, are told, flood, leave. After each nothing
 * leaks, no descriptor stays open, and whoever comes next is served.
 */
#include <config.h>

#include "hv/ballastd/control.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/json.h"
#include "tests/unit/faults.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

/* Turns of the loop in which an answer comes where one comes at all; none waits. */
#define TURNS 8
#define LONG  50000

#define ECHO "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"a\":7}}\n"

static char dir[SCRATCH_PATH], path[64];
static sd_event *event;
static struct control *control;
static struct control_client *last_client;
static unsigned int nr_gone;

static int do_echo(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	last_client = client;
	*ret_result = json_object_get(params);
	return 0;
}

static int do_fail(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	return control_fail_with(error, CONTROL_NOT_FOUND, "nearest", "web1", "no such VM");
}

static const struct control_method methods[] = { { "echo", do_echo }, { "fail", do_fail } };

static void on_gone(void *ctx, struct control_client *client)
{
	if (client == last_client)
		last_client = NULL;
	nr_gone++;
}

static void on_say(void *ctx, const char *message)
{
	MUST(message[0]);
}

static void setup(void)
{
	scratch_new(dir);
	snprintf(path, sizeof(path), "%s/run/s", dir);
}

static void turn(void)
{
	for (int i = 0; i < TURNS; i++)
		MUST(sd_event_run(event, 0) >= 0);
}

/* ---- the client's side, where nothing fails ---- */

static int come(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, r;

	faults_hold(true);
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = connect(fd, (struct sockaddr *)&address, sizeof(address));
	faults_hold(false);
	MUST(fd >= 0 && r == 0);
	turn();
	return fd;
}

static void tell(int fd, const char *text, size_t length)
{
	faults_hold(true);
	(void)!send(fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT);
	faults_hold(false);
	turn();
}

/* True: something came that has the words. */
static bool hears(int fd, const char *words)
{
	static char text[2 * LONG];
	size_t length = 0;
	ssize_t n;

	faults_hold(true);
	while (length < sizeof(text) - 1 &&
		(n = recv(fd, text + length, sizeof(text) - 1 - length, MSG_DONTWAIT)) > 0)
		length += (size_t)n;
	faults_hold(false);
	text[length] = '\0';
	return strstr(text, words) != NULL;
}

static void leave(int fd)
{
	close(fd);
	turn();
}

/* ---- a run ---- */

static void use(void)
{
	static char flood[CONTROL_MESSAGE_MAX + 2];
	struct json_object *params;
	int fd = come(), other = come();

	tell(fd, ECHO, strlen(ECHO));
	hears(fd, "7");
	tell(fd, "garbage\n", 8);
	tell(fd, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"fail\"}\n", 41);
	tell(fd, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ehco\"}\n", 41);
	hears(fd, "web1");
	if (last_client) {
		faults_hold(true);
		params = json_object_new_object();
		memset(flood, 'y', LONG);
		flood[LONG] = '\0';
		json_object_object_add(params, "text", json_object_new_string(flood));
		faults_hold(false);
		/* More than the kernel takes at once: the rest waits for it to be read. */
		for (int i = 0; i < 10 && last_client; i++)
			control_notify(last_client, "event", json_object_get(params));
		json_object_put(params);
		turn();
		for (int i = 0; i < 10; i++) {
			hears(fd, "event");
			turn();
		}
	}
	/* Half a message, and one that is too long. */
	tell(other, "{\"jsonrpc\"", 10);
	memset(flood, ' ', sizeof(flood));
	tell(other, flood, sizeof(flood));
	hears(other, "64 KiB");
	leave(other);
	leave(fd);
}

/* Nothing fails any more: who comes is served. */
static void check_after(uint64_t nth)
{
	int fd = come();

	tell(fd, ECHO, strlen(ECHO));
	ck_assert_msg(hears(fd, "\"result\":{\"a\":7}"), "%lu (%s): nobody answers",
		(unsigned long)nth, faults_what());
	leave(fd);
}

/* True: something failed. */
static bool run(uint64_t nth)
{
	const struct control_params params = {
		.path = path, .methods = methods, .nr_methods = 2, .gone = on_gone, .say = on_say
	};
	unsigned int before;
	char why[300] = "";
	bool injected;
	int r;

	ck_assert_int_ge(sd_event_new(&event), 0);
	before = faults_descriptors();
	control = NULL;
	last_client = NULL;
	faults_arm(nth);
	r = control_open(event, &params, &control, why, sizeof(why));
	MUST(r == 0 || (r < 0 && why[0] && !control));
	if (r == 0)
		use();
	injected = faults_disarm();
	if (r == 0)
		check_after(nth);
	control_close(control);
	faults_check_leaks(nth);
	faults_check_descriptors(nth, before);
	sd_event_unref(event);
	/* Or the next daemon would not find its place. */
	ck_assert_int_ge(sd_event_new(&event), 0);
	control = NULL;
	ck_assert_msg(control_open(event, &params, &control, why, sizeof(why)) == 0, "%lu (%s): %s",
		(unsigned long)nth, faults_what(), why);
	control_close(control);
	sd_event_unref(event);
	return injected;
}

START_TEST(the_nth_failure_at_the_control_socket_costs_nobody_else_anything)
{
	faults_each(run, 50);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("faults_control");
	TCase *tc = tcase_create("faults");

	scratch_begin_in_memory();
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, the_nth_failure_at_the_control_socket_costs_nobody_else_anything);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
