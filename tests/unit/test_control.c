/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control socket from its outside: a client's end of the socket, and the event loop turned by
 * hand in the same thread.
 */
#include <config.h>

#include "hv/ballastd/control.h"

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
#include <sys/wait.h>
#include <unistd.h>

#include "common/json.h"
#include "hv/ballastd/control_internal.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

/* Turns of the loop until something has to have come; each waits for 10 ms where nothing is due. */
#define TURNS 300

static char folder[SCRATCH_PATH];
static char path[64];
static sd_event *event;
static struct control *control;
static struct control_client *last_client;
static unsigned int nr_gone, nr_calls;

static int do_echo(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	last_client = client;
	nr_calls++;
	*ret_result = params ? json_object_get(params) : json_object_new_object();
	return 0;
}

static int do_fail(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	return control_fail_with(
		error, CONTROL_NOT_FOUND, "nearest", "web1", "no VM named '%s'", "wbe1");
}

#define LARGE (3 * CONTROL_OUTPUT_MAX)

/* As a status with many VMs. */
static int do_large(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	char *text = malloc(LARGE + 1);
	int r = 0;

	last_client = client;
	memset(text, 'x', LARGE);
	text[LARGE] = '\0';
	*ret_result = json_object_new_object();
	json_put_string(*ret_result, "text", text, &r);
	free(text);
	return 0;
}

static const struct control_method methods[] = { { "echo", do_echo }, { "fail", do_fail },
	{ "large", do_large } };

static void on_gone(void *ctx, struct control_client *client)
{
	if (client == last_client)
		last_client = NULL;
	nr_gone++;
}

static int open_at(const char *at, struct control **ret_control, char *why, size_t size)
{
	struct control_params params = {
		.path = at, .methods = methods, .nr_methods = 3, .gone = on_gone
	};

	return control_open(event, &params, ret_control, why, size);
}

static void setup(void)
{
	char why[300] = "";

	scratch_new(folder);
	snprintf(path, sizeof(path), "%s/run/s", folder);
	ck_assert_int_ge(sd_event_new(&event), 0);
	ck_assert_msg(open_at(path, &control, why, sizeof(why)) == 0, "%s", why);
	nr_gone = nr_calls = 0;
}

static void teardown(void)
{
	control_close(control);
	control = NULL;
	sd_event_unref(event);
}

static int connect_to(const char *at)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, at, strlen(at) + 1);
	ck_assert_int_ge(fd, 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -errno;
	}
	return fd;
}

static void turn(void)
{
	ck_assert_int_ge(sd_event_run(event, 10000), 0);
}

/* Whatever is due now. */
static void turn_all(void)
{
	while (sd_event_run(event, 0) > 0)
		;
}

static void send_text(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t n = send(fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0) {
			ck_assert_int_eq(errno, EAGAIN);
			turn();
			continue;
		}
		text += n;
		length -= (size_t)n;
	}
}

static void send_line(int fd, const char *line)
{
	send_text(fd, line, strlen(line));
	send_text(fd, "\n", 1);
}

/* One line from the daemon, without its end; NULL: it closed. */
static const char *read_line(int fd)
{
	static char line[65536];
	size_t length = 0;

	for (int i = 0; i < TURNS;) {
		ssize_t n = recv(fd, line + length, 1, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return NULL;
		if (n < 0) {
			turn();
			i++;
		} else if (line[length] == '\n') {
			line[length] = '\0';
			return line;
		} else {
			length++;
			ck_assert_uint_lt(length, sizeof(line));
		}
	}
	ck_abort_msg("no line came");
	return NULL;
}

static void expect(int fd, const char *request, const char *answer)
{
	send_line(fd, request);
	ck_assert_str_eq(read_line(fd), answer);
}

static void expect_error(int fd, const char *request, int code, const char *words)
{
	struct json_object *answer = NULL, *error = NULL;
	const char *line, *message = NULL;
	int64_t number = 0;

	send_line(fd, request);
	line = read_line(fd);
	ck_assert_ptr_nonnull(line);
	ck_assert_int_eq(json_read(line, strlen(line), &answer, NULL), 0);
	ck_assert_int_eq(json_get_object(answer, "error", &error), 0);
	ck_assert_int_eq(json_get_i64(error, "code", &number), 0);
	ck_assert_int_eq(json_get_string(error, "message", &message), 0);
	ck_assert_msg(number == code, "%s", line);
	ck_assert_msg(strstr(message, words) != NULL, "%s", line);
	json_object_put(answer);
}

#define ECHO(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"echo\"}"

START_TEST(request_is_answered_with_its_id)
{
	int fd = connect_to(path);

	expect(fd, ECHO("1"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	expect(fd, ECHO("\"x\""), "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}");
	expect(fd, ECHO("9223372036854775806"),
		"{\"jsonrpc\":\"2.0\",\"id\":9223372036854775806,\"result\":{}}");
	expect(fd, ECHO("-9223372036854775807"),
		"{\"jsonrpc\":\"2.0\",\"id\":-9223372036854775807,\"result\":{}}");
	expect(fd, ECHO("\"a\\u0000b\""),
		"{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0000b\",\"result\":{}}");
	expect(fd, ECHO("null"), "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}");
	expect(fd,
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\",\"params\":{\"a\":\"b\\n/\"}}\r",
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"a\":\"b\\n/\"}}");
	expect(fd, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"fail\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32010,"
		"\"message\":\"no VM named 'wbe1'\",\"data\":{\"nearest\":\"web1\"}}}");
	close(fd);
}
END_TEST

START_TEST(lines_come_in_pieces_and_several_at_once)
{
	int fd = connect_to(path);
	const char *request = ECHO("1") "\n\n" ECHO("2") "\n" ECHO("3") "\n";

	for (const char *p = request; *p; p++) {
		send_text(fd, p, 1);
		if (p - request < 60)
			turn();
	}
	for (int i = 1; i <= 3; i++) {
		char id[32];

		snprintf(id, sizeof(id), "\"id\":%d,", i);
		ck_assert_ptr_nonnull(strstr(read_line(fd), id));
	}
	close(fd);
}
END_TEST

START_TEST(notification_is_carried_out_and_not_answered)
{
	int fd = connect_to(path);

	send_line(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"params\":{}}");
	send_line(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"fail\"}");
	send_line(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"nothing\"}");
	expect(fd, ECHO("1"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	ck_assert_uint_eq(nr_calls, 2);
	close(fd);
}
END_TEST

static const struct {
	const char *request;
	int code;
	const char *words;
} bad[] = {
	{ "garbage", -32700, "no JSON" },
	{ "{\"jsonrpc\":\"2.0\"", -32700, "no JSON" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"} x", -32700, "no JSON" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32700, "no JSON" },
	{ "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", -32700, "no JSON" },
	{ "[" ECHO("1") "]", -32600, "batches" },
	{ "7", -32600, "object" },
	{ "null", -32600, "object" },
	{ "{\"id\":1,\"method\":\"echo\"}", -32600, "jsonrpc" },
	{ "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"echo\"}", -32600, "jsonrpc" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1}", -32600, "method" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", -32600, "method" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ec\\u0000ho\"}", -32600, "method" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"echo\"}", -32600, "id" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"echo\"}", -32600, "id" },
	/* An id that would not come back as it was. */
	{ ECHO("9223372036854775807"), -32600, "id must be" },
	{ ECHO("-9223372036854775808"), -32600, "id must be" },
	{ ECHO("18446744073709551615"), -32600, "id must be" },
	{ ECHO("100000000000000000000000"), -32600, "id must be" },
	{ ECHO("-100000000000000000000000"), -32600, "id must be" },
	{ ECHO("1e3"), -32600, "id must be" },
	{ ECHO("1.0"), -32600, "id must be" },
	{ ECHO("true"), -32600, "id must be" },
	{ ECHO("\"\\ud800\""), -32700, "surrogate" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"na\\u0000me\":\"x\"}}",
		-32700, "a NUL in a name" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ehco\"}", -32601, "did you mean 'echo'?" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s%n\"}", -32601, "no method '%s%n'" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[1]}", -32602, "by name" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":null}", -32602, "by name" },
};

START_TEST(bad_request_gets_an_error_and_the_next_one_its_answer)
{
	int fd = connect_to(path);

	expect_error(fd, bad[_i].request, bad[_i].code, bad[_i].words);
	expect(fd, ECHO("1"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	close(fd);
}
END_TEST

START_TEST(message_that_is_too_long_ends_the_connection)
{
	static char text[CONTROL_MESSAGE_MAX + 1];
	int fd = connect_to(path);

	/* The longest that is taken: a request with blanks behind it. */
	memset(text, ' ', sizeof(text));
	memcpy(text, ECHO("1"), strlen(ECHO("1")));
	text[CONTROL_MESSAGE_MAX] = '\n';
	send_text(fd, text, sizeof(text));
	ck_assert_str_eq(read_line(fd), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	text[CONTROL_MESSAGE_MAX] = ' ';
	send_text(fd, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(read_line(fd), "at most 64 KiB"));
	ck_assert_ptr_null(read_line(fd));
	ck_assert_uint_eq(nr_gone, 1);
	close(fd);
}
END_TEST

#define FLOOD_BYTES (100 * 1000 * 1000)

/* What it sends is not kept: it is let go after the longest message, and told why. */
START_TEST(hundred_megabytes_without_a_newline_end_the_connection_and_nobody_elses)
{
	static char piece[100000];
	int flood = connect_to(path), fd = connect_to(path);
	size_t sent = 0;

	memset(piece, '{', sizeof(piece));
	while (sent < FLOOD_BYTES) {
		ssize_t n = send(flood, piece, sizeof(piece), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			break;
		if (n > 0)
			sent += (size_t)n;
		turn();
	}
	/* Beside the message only what the kernel held of it. */
	ck_assert_uint_lt(sent, 4 * 1024 * 1024);
	ck_assert_uint_eq(nr_gone, 1);
	expect(fd, ECHO("1"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	close(flood);
	close(fd);
}
END_TEST

/* One that breaks off in the middle, and one that never goes on. */
START_TEST(half_a_message_costs_nobody_anything)
{
	int half = connect_to(path), silent = connect_to(path), fd = connect_to(path);
	const char *text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"met";

	send_text(half, text, strlen(text));
	send_text(silent, text, strlen(text));
	turn_all();
	shutdown(half, SHUT_WR);
	ck_assert_ptr_null(read_line(half));
	ck_assert_uint_eq(nr_gone, 1);
	ck_assert_uint_eq(nr_calls, 0);
	for (int i = 0; i < 50; i++)
		expect(fd, ECHO("1"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	/* And when it does go on it is answered. */
	send_line(silent, "hod\":\"echo\"}");
	ck_assert_str_eq(read_line(silent), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	close(half);
	close(silent);
	close(fd);
}
END_TEST

/* Each answer is as long as the request: what waits for it has its bound, and so has what it asks.
 */
START_TEST(client_that_asks_and_never_reads_is_let_go)
{
	static char request[CONTROL_MESSAGE_MAX];
	int deaf = connect_to(path), fd;
	size_t sent = 0, length, at = 0;

	length = (size_t)sprintf(request,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"text\":\"");
	memset(request + length, 'x', 60000);
	length += 60000;
	length += (size_t)sprintf(request + length, "\"}}\n");
	while (nr_gone == 0 && sent < FLOOD_BYTES) {
		ssize_t n = send(deaf, request + at, length - at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			break;
		if (n > 0) {
			sent += (size_t)n;
			at = (at + (size_t)n) % length;
		}
		turn();
	}
	ck_assert_uint_lt(sent, FLOOD_BYTES);
	ck_assert_uint_eq(nr_gone, 1);
	fd = connect_to(path);
	expect(fd, ECHO("1"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	close(deaf);
	close(fd);
}
END_TEST

START_TEST(client_beyond_the_last_is_turned_away_and_may_come_when_one_left)
{
	int fds[CONTROL_CLIENTS_MAX], fd;

	for (int i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		fds[i] = connect_to(path);
		expect(fds[i], ECHO("1"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	}
	fd = connect_to(path);
	ck_assert_ptr_nonnull(strstr(read_line(fd), "-32002"));
	ck_assert_ptr_null(read_line(fd));
	close(fd);
	close(fds[0]);
	while (nr_gone == 0)
		turn();
	fds[0] = connect_to(path);
	expect(fds[0], ECHO("1"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	for (int i = 0; i < CONTROL_CLIENTS_MAX; i++)
		close(fds[i]);
}
END_TEST

START_TEST(client_that_does_not_read_is_let_go_and_others_are_served)
{
	int deaf = connect_to(path), fd;
	struct json_object *params = json_object_new_object();
	size_t sent = 0;
	int r = 0;
	char *text = malloc(10001);

	memset(text, 'x', 10000);
	text[10000] = '\0';
	json_put_string(params, "text", text, &r);
	free(text);
	expect(deaf, ECHO("1"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	fd = connect_to(path);
	/* Never more than what waits at most and one message, and what the kernel took. */
	while (last_client && sent < 10 * CONTROL_OUTPUT_MAX) {
		control_notify(last_client, "event", json_object_get(params));
		sent += 10000;
		turn();
	}
	json_object_put(params);
	ck_assert_ptr_null(last_client);
	ck_assert_uint_gt(sent, CONTROL_OUTPUT_MAX);
	ck_assert_uint_lt(sent, 3 * CONTROL_OUTPUT_MAX);
	expect(fd, ECHO("1"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	close(deaf);
	close(fd);
}
END_TEST

/* Reads all that comes until so many lines have ended. */
static void read_lines(int fd, unsigned int lines)
{
	static char text[65536];

	for (int i = 0; lines > 0 && i < 100 * TURNS; i++) {
		ssize_t n = recv(fd, text, sizeof(text), MSG_DONTWAIT);

		ck_assert_msg(n > 0 || (n < 0 && errno == EAGAIN), "it was let go");
		for (ssize_t j = 0; j < n; j++)
			lines -= text[j] == '\n';
		turn_all();
	}
	ck_assert_uint_eq(lines, 0);
}

START_TEST(large_answers_that_are_read_end_nobody_who_is_told_something_meanwhile)
{
	static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"large\"}\n";
	int fd = connect_to(path);

	send_text(fd, request, strlen(request));
	while (!last_client)
		turn();
	for (int i = 0; i < 10; i++)
		control_notify(last_client, "event", json_object_new_object());
	read_lines(fd, 11);
	/* Two at once, and what is told between them. */
	send_text(fd, request, strlen(request));
	send_text(fd, request, strlen(request));
	turn_all();
	control_notify(last_client, "event", json_object_new_object());
	read_lines(fd, 3);
	ck_assert_uint_eq(nr_gone, 0);
	close(fd);
}
END_TEST

START_TEST(requests_beyond_the_rate_are_refused)
{
	static const char request[] = ECHO("1") "\n";
	static char requests[3 * CONTROL_BURST * sizeof(request)];
	int fd = connect_to(path), refused = 0;
	size_t length = 0;

	/* All are there before the first is read, so that the time between them is next to none. */
	for (int i = 0; i < 3 * CONTROL_BURST; i++, length += sizeof(request) - 1)
		memcpy(requests + length, request, sizeof(request));
	send_text(fd, requests, length);
	for (int i = 0; i < 3 * CONTROL_BURST; i++)
		refused += strstr(read_line(fd), "-32003") != NULL;
	ck_assert_int_gt(refused, 0);
	ck_assert_int_le(refused, 2 * CONTROL_BURST);
	close(fd);
}
END_TEST

START_TEST(notification_of_the_daemon_comes_between_answers)
{
	struct json_object *params = json_object_new_object();
	int fd = connect_to(path), r = 0;

	expect(fd, ECHO("1"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	json_put_u64(params, "job", 7, &r);
	control_notify(last_client, "reclaim.progress", params);
	ck_assert_str_eq(read_line(fd),
		"{\"jsonrpc\":\"2.0\",\"method\":\"reclaim.progress\",\"params\":{\"job\":7}}");
	/* No memory for its parameters is told by NULL: then it is let go, and nothing else. */
	control_notify(last_client, "event", NULL);
	ck_assert_ptr_null(read_line(fd));
	close(fd);
}
END_TEST

START_TEST(what_was_asked_before_the_end_of_sending_is_answered)
{
	int fd = connect_to(path);

	send_line(fd, ECHO("1"));
	shutdown(fd, SHUT_WR);
	ck_assert_str_eq(read_line(fd), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	ck_assert_ptr_null(read_line(fd));
	ck_assert_uint_eq(nr_gone, 1);
	close(fd);
}
END_TEST

START_TEST(socket_of_a_dead_daemon_is_replaced_and_of_a_living_one_not)
{
	struct control *second = NULL;
	char why[300] = "", other[80];
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat st;
	int fd;

	ck_assert_int_eq(open_at(path, &second, why, sizeof(why)), -EADDRINUSE);
	ck_assert_msg(strstr(why, "another ballastd is running") != NULL, "%s", why);
	fd = connect_to(path);
	expect(fd, ECHO("1"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	close(fd);

	/* Left behind: bound, and nobody listens. */
	snprintf(other, sizeof(other), "%s/left", folder);
	memcpy(address.sun_path, other, strlen(other) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	/* While somebody who holds no lock answers there, it is not ours to take. */
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert_int_eq(open_at(other, &second, why, sizeof(why)), -EADDRINUSE);
	ck_assert_msg(strstr(why, "another program answers") != NULL, "%s", why);
	close(fd);
	ck_assert_msg(open_at(other, &second, why, sizeof(why)) == 0, "%s", why);
	ck_assert_int_eq(stat(other, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	control_close(second);
	ck_assert_int_eq(stat(other, &st), -1);

	/* Whatever else is there is nobody's to remove. */
	fd = open(other, O_CREAT | O_WRONLY, 0600);
	close(fd);
	ck_assert_int_eq(open_at(other, &second, why, sizeof(why)), -EEXIST);
	ck_assert_int_eq(stat(other, &st), 0);
}
END_TEST

/* In a child with another user; exits with 0 where the daemon said that it is not permitted. */
static void be_stranger(void)
{
	char line[512] = "";
	int fd;

	if (setgid(65534) < 0 || setuid(65534) < 0)
		_exit(2);
	fd = connect_to(path);
	if (fd < 0)
		_exit(3);
	_exit(recv(fd, line, sizeof(line) - 1, MSG_WAITALL) > 0 && strstr(line, "-32001") ? 0 : 1);
}

START_TEST(stranger_is_told_that_it_is_not_permitted)
{
	int status = -1;
	pid_t pid;

	if (geteuid() != 0)
		return; /* only root can be somebody else */
	/* As if an administrator had opened the socket's mode. */
	ck_assert_int_eq(chmod(folder, 0755), 0);
	ck_assert_int_eq(chmod(path, 0666), 0);
	pid = fork();
	if (pid == 0)
		be_stranger();
	for (int i = 0; i < TURNS && waitpid(pid, &status, WNOHANG) == 0; i++)
		turn();
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(nr_calls, 0);
}
END_TEST

START_TEST(member_of_the_group_is_permitted_and_its_owner_always)
{
	struct control_socket ours = { -1, -1, true, getegid() }, theirs = { -1, -1, true, 4711 };
	char who[64];
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ck_assert(control_socket_permits(&ours, fds[0], who, sizeof(who)));
	ck_assert(control_socket_permits(&theirs, fds[0], who, sizeof(who)));
	ck_assert_ptr_nonnull(strstr(who, "pid"));
	close(fds[0]);
	close(fds[1]);
	/* What is no socket has no peer. */
	ck_assert(!control_socket_permits(&ours, STDIN_FILENO, who, sizeof(who)) || geteuid() == 0);
}
END_TEST

START_TEST(garbage_never_crashes_the_reader)
{
	static const char alphabet[] = "{}[]\",:0123456789.eE+-\\u \n\r\t/'jsonrpc2method\xff\xc3";
	char text[512];

	srand(11);
	for (int round = 0; round < 150; round++) {
		int fd = connect_to(path);
		size_t length = (size_t)rand() % sizeof(text);

		for (size_t i = 0; i < length; i++)
			text[i] = alphabet[(size_t)rand() % sizeof(alphabet)];
		send_text(fd, text, length);
		turn_all();
		close(fd);
		turn_all();
	}
	ck_assert_uint_eq(nr_gone, 150);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("control");
	TCase *tc = tcase_create("control");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, request_is_answered_with_its_id);
	tcase_add_test(tc, lines_come_in_pieces_and_several_at_once);
	tcase_add_test(tc, notification_is_carried_out_and_not_answered);
	tcase_add_loop_test(tc, bad_request_gets_an_error_and_the_next_one_its_answer, 0,
		sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tc, message_that_is_too_long_ends_the_connection);
	tcase_add_test(tc, hundred_megabytes_without_a_newline_end_the_connection_and_nobody_elses);
	tcase_add_test(tc, half_a_message_costs_nobody_anything);
	tcase_add_test(tc, client_that_asks_and_never_reads_is_let_go);
	tcase_add_test(tc, client_beyond_the_last_is_turned_away_and_may_come_when_one_left);
	tcase_add_test(tc, client_that_does_not_read_is_let_go_and_others_are_served);
	tcase_add_test(tc, large_answers_that_are_read_end_nobody_who_is_told_something_meanwhile);
	tcase_add_test(tc, requests_beyond_the_rate_are_refused);
	tcase_add_test(tc, notification_of_the_daemon_comes_between_answers);
	tcase_add_test(tc, what_was_asked_before_the_end_of_sending_is_answered);
	tcase_add_test(tc, socket_of_a_dead_daemon_is_replaced_and_of_a_living_one_not);
	tcase_add_test(tc, stranger_is_told_that_it_is_not_permitted);
	tcase_add_test(tc, member_of_the_group_is_permitted_and_its_owner_always);
	tcase_add_test(tc, garbage_never_crashes_the_reader);
	suite_add_tcase(suite, tc);
	scratch_begin();
	return suite_run(suite);
}
