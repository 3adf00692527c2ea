/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A connection to ballastd: see client.h. */
#include <config.h>

#include "tools/client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/json.h"

/* A status of tens of thousands of VMs. */
#define MESSAGE_MAX (256u * 1024 * 1024)

/* Notifications that are kept while an answer is waited for. */
#define KEPT_MAX 1024

struct client {
	int fd;
	int64_t last_id;
	char *in;
	size_t length, size;
	size_t scanned; /* of in, without the end of a line */
	struct json_object *kept[KEPT_MAX];
	size_t nr_kept;
};

static int fail(int r, char *why, size_t size, const char *what)
{
	snprintf(why, size, "%s: %s", what, strerror(-r));
	return r;
}

/* Why a socket cannot be connected to, and what to do. */
static void say_unreachable(const char *path, int r, char *why, size_t size)
{
	const char *advice = "";
	struct stat st;

	/* Connecting to a file that is no socket is refused as if nobody listened there. */
	if (r == -ECONNREFUSED && stat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
		snprintf(why, size, "%s: it is no socket", path);
		return;
	}
	if (r == -ENOENT || r == -ECONNREFUSED)
		advice = "; is it running?";
	else if (r == -EACCES)
		advice = "; root and members of the group ballast may";
	snprintf(why, size, "%s: %s%s", path, strerror(-r), advice);
}

int client_open(const char *path, struct client **ret_client, char *why, size_t size)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct client *client;
	int r;

	if (!path[0]) { /* which the kernel would take for an address without a file */
		snprintf(why, size, "no path at all: it is empty");
		return -EINVAL;
	}
	if (strlen(path) >= sizeof(address.sun_path))
		return fail(-ENAMETOOLONG, why, size, path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	client = calloc(1, sizeof(*client));
	if (!client)
		return fail(-ENOMEM, why, size, path);
	client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client->fd < 0 ||
		connect(client->fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		r = -errno;
		say_unreachable(path, r, why, size);
		client_close(client);
		return r;
	}
	*ret_client = client;
	return 0;
}

void client_close(struct client *client)
{
	if (!client)
		return;
	if (client->fd >= 0)
		close(client->fd);
	for (size_t i = 0; i < client->nr_kept; i++)
		json_object_put(client->kept[i]);
	free(client->in);
	free(client);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int send_all(struct client *client, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t n = send(client->fd, text, length, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		length -= (size_t)n;
	}
	return 0;
}

static int grow(struct client *client)
{
	size_t size = client->size ? client->size * 2 : 65536;
	char *in;

	if (client->length < client->size)
		return 0;
	if (size > MESSAGE_MAX)
		return -EMSGSIZE;
	in = realloc(client->in, size);
	if (!in)
		return -ENOMEM;
	client->in = in;
	client->size = size;
	return 0;
}

/* Reads once, by the deadline. -EAGAIN: nothing came; -EPIPE: the daemon closed. */
static int receive(struct client *client, int64_t deadline_ms)
{
	struct pollfd poll_fd = { .fd = client->fd, .events = POLLIN };
	int64_t left = deadline_ms < 0 ? -1 : deadline_ms - now_ms();
	ssize_t n;
	int r;

	if (deadline_ms >= 0 && left < 0)
		left = 0;
	r = poll(&poll_fd, 1, left > INT_MAX ? INT_MAX : (int)left);
	if (r < 0)
		return -errno;
	if (r == 0)
		return -EAGAIN;
	r = grow(client);
	if (r < 0)
		return r;
	n = recv(client->fd, client->in + client->length, client->size - client->length, 0);
	if (n < 0)
		return -errno;
	if (n == 0)
		return -EPIPE;
	client->length += (size_t)n;
	return 0;
}

/* The next message. */
static int next_message(
	struct client *client, int64_t deadline_ms, struct json_object **ret_message)
{
	for (;;) {
		char *end = client->length == client->scanned
				    ? NULL
				    : memchr(client->in + client->scanned, '\n',
					      client->length - client->scanned);
		size_t length;
		int r;

		if (end) {
			length = (size_t)(end - client->in);
			r = json_read(client->in, length, ret_message, NULL);
			client->length -= length + 1;
			memmove(client->in, end + 1, client->length);
			client->scanned = 0;
			return r;
		}
		client->scanned = client->length;
		r = receive(client, deadline_ms);
		if (r < 0)
			return r;
	}
}

static bool is_notification(struct json_object *message, const char **ret_method)
{
	return json_get_string(message, "method", ret_method) == 0;
}

static void keep(struct client *client, struct json_object *message)
{
	if (client->nr_kept == KEPT_MAX) { /* the oldest goes: progress is level-triggered */
		json_object_put(client->kept[0]);
		memmove(&client->kept[0], &client->kept[1],
			(KEPT_MAX - 1) * sizeof(struct json_object *));
		client->nr_kept--;
	}
	client->kept[client->nr_kept++] = message;
}

/* Uses up the answer's message. */
static int read_answer(
	struct json_object *answer, struct json_object **ret_result, char *why, size_t size)
{
	struct json_object *error = NULL, *result = NULL;
	const char *message = NULL;
	int r = 0;

	if (json_get_object(answer, "error", &error) == 0) {
		if (json_get_string(error, "message", &message) < 0)
			message = "an error without words";
		snprintf(why, size, "%s", message);
		r = -EREMOTE;
	} else if (json_get_object(answer, "result", &result) == 0) {
		*ret_result = json_object_get(result);
	} else {
		r = fail(-EBADMSG, why, size, "the daemon's answer is none");
	}
	json_object_put(answer);
	return r;
}

static int send_request(struct client *client, const char *method, struct json_object *params)
{
	struct json_object *request = json_object_new_object();
	const char *text;
	int r = 0;

	json_put_string(request, "jsonrpc", "2.0", &r);
	json_put_i64(request, "id", ++client->last_id, &r);
	json_put_string(request, "method", method, &r);
	if (params)
		json_put_value(request, "params", params, &r);
	text = r == 0 ? json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN) : NULL;
	if (r == 0)
		r = text ? send_all(client, text, strlen(text)) : -ENOMEM;
	if (r == 0)
		r = send_all(client, "\n", 1);
	json_object_put(request);
	return r;
}

int client_call(struct client *client, const char *method, struct json_object *params,
	struct json_object **ret_result, char *why, size_t size)
{
	int64_t deadline = now_ms() + CLIENT_TIMEOUT_MS;
	const char *name = NULL;
	int r = send_request(client, method, params);

	/* Where the daemon turned us away it said why before it closed. */
	if (r < 0 && r != -EPIPE)
		return fail(r, why, size, "cannot send to ballastd");
	for (;;) {
		struct json_object *message = NULL;
		int64_t id;

		r = next_message(client, deadline, &message);
		if (r == -EINTR)
			continue;
		if (r == -EAGAIN)
			return fail(-ETIMEDOUT, why, size, "ballastd does not answer");
		if (r < 0)
			return fail(r, why, size, "the connection to ballastd broke");
		if (is_notification(message, &name))
			keep(client, message);
		else if (json_get_i64(message, "id", &id) == 0 && id != client->last_id)
			json_object_put(message); /* of a call that was given up */
		else
			return read_answer(message, ret_result, why, size);
	}
}

/* A notification's parameters; uses up message. */
static int take_params(struct json_object *message, struct json_object **ret_params)
{
	struct json_object *params = NULL;
	int r = json_get_object(message, "params", &params);

	if (r == 0)
		*ret_params = json_object_get(params);
	json_object_put(message);
	return r;
}

int client_notification(struct client *client, const char *method, int timeout_ms,
	struct json_object **ret_params, char *why, size_t size)
{
	int64_t deadline = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
	const char *name = NULL;

	for (size_t i = 0; i < client->nr_kept; i++) {
		struct json_object *message = client->kept[i];

		if (!is_notification(message, &name) || strcmp(name, method) != 0)
			continue;
		memmove(&client->kept[i], &client->kept[i + 1],
			(--client->nr_kept - i) * sizeof(struct json_object *));
		return take_params(message, ret_params);
	}
	for (;;) {
		struct json_object *message = NULL;
		int r = next_message(client, deadline, &message);

		if (r == -EAGAIN || r == -EINTR)
			return r;
		if (r < 0)
			return fail(r, why, size, "the connection to ballastd broke");
		if (is_notification(message, &name) && !strcmp(name, method))
			return take_params(message, ret_params);
		json_object_put(message);
	}
}
