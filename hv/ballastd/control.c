/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Clients and messages of the control socket: see control.h. */
#include <config.h>

#include "hv/ballastd/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/json.h"
#include "common/nearest.h"
#include "hv/ballastd/control_internal.h"

struct control_client {
	struct control *control;
	int fd;
	sd_event_source *io, *end; /* end: enabled where it is to be let go */
	bool closing;		   /* nothing more is read; what waits is written */
	bool dead;
	char who[64];

	char *in; /* CONTROL_MESSAGE_MAX + 1 bytes */
	size_t in_length;
	char *out;
	size_t out_start, out_end, out_size;
	/* Of what waits, as far as is known who gets it first: see is_deaf(); the last answer. */
	size_t answers, notifications, last;

	uint64_t allowance, since; /* requests times a second in us; when it was counted */
	struct control_client *next;
};

struct control {
	struct control_params params;
	struct control_socket socket;
	sd_event *event;
	sd_event_source *io;
	int spare; /* a descriptor to give up where there are none left, to turn a client away */
	struct control_client *clients;
	size_t nr_clients;
};

#define SECOND UINT64_C(1000000)

static void say(
	const struct control *control, const struct control_client *client, const char *what)
{
	char message[256];

	if (!control->params.say)
		return;
	snprintf(message, sizeof(message), "control client (%s): %s", client->who, what);
	control->params.say(control->params.ctx, message);
}

/* ---- output ---- */

static void client_end(struct control_client *client)
{
	if (client->dead)
		return;
	client->dead = true;
	sd_event_source_set_enabled(client->io, SD_EVENT_OFF);
	sd_event_source_set_enabled(client->end, SD_EVENT_ONESHOT);
}

static int reserve(struct control_client *client, size_t length)
{
	size_t used = client->out_end - client->out_start, size = client->out_size;
	char *out;

	if (client->out_start > 0) {
		memmove(client->out, client->out + client->out_start, used);
		client->out_start = 0;
		client->out_end = used;
	}
	while (size < used + length)
		size = size ? size * 2 : 4096;
	if (size == client->out_size)
		return 0;
	out = realloc(client->out, size);
	if (!out)
		return -ENOMEM;
	client->out = out;
	client->out_size = size;
	return 0;
}

static void wait_for(struct control_client *client)
{
	uint32_t events = client->closing ? 0 : EPOLLIN;

	if (client->out_end > client->out_start)
		events |= EPOLLOUT;
	if (events == 0)
		client_end(client);
	else if (sd_event_source_set_io_events(client->io, events) < 0)
		client_end(client);
}

static size_t less(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* As much as goes without waiting. */
static void flush(struct control_client *client)
{
	size_t length = client->out_end - client->out_start, part;
	ssize_t n;

	if (client->dead || length == 0)
		return;
	n = send(client->fd, client->out + client->out_start, length, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		client_end(client);
	if (n <= 0)
		return;
	client->out_start += (size_t)n;
	/* Whichever it was: who reads has the benefit. */
	part = less((size_t)n, client->notifications);
	client->notifications -= part;
	client->answers -= less((size_t)n - part, client->answers);
}

/*
 * Whether more waits than who reads leaves waiting, of that kind. The last answer does not count:
 * it is as long as what was asked for, and its client may ask for one more, and be told things,
 * before it has read it.
 */
static bool is_deaf(struct control_client *client, bool answers)
{
	flush(client); /* what was read meanwhile waits no more */
	return answers ? client->answers - less(client->answers, client->last) > CONTROL_OUTPUT_MAX
		       : client->notifications > CONTROL_OUTPUT_MAX;
}

/* Takes over message; NULL: there was no memory for it. */
static void client_send(struct control_client *client, struct json_object *message, bool answers)
{
	const char *text = NULL;
	size_t length = 0;

	if (!client->dead && is_deaf(client, answers)) {
		say(client->control, client, "disconnected: it does not read what it is sent");
		client_end(client);
	}
	if (client->dead)
		goto out;
	if (message)
		text = json_object_to_json_string_length(
			message, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);
	if (!text || reserve(client, length + 1) < 0) {
		say(client->control, client, "disconnected: no memory for what it is to be sent");
		client_end(client);
		goto out;
	}
	if (answers)
		client->answers += client->last = length + 1;
	else
		client->notifications += length + 1;
	memcpy(client->out + client->out_end, text, length);
	client->out_end += length;
	client->out[client->out_end++] = '\n';
	wait_for(client);
out:
	json_object_put(message);
}

static void client_write(struct control_client *client)
{
	flush(client);
	if (!client->dead)
		wait_for(client);
}

static void send_error(struct control_client *client, enum control_code code, const char *text)
{
	struct control_error error = { 0 };

	control_fail(&error, code, "%s", text);
	client_send(client, control_message_error(NULL, &error), true);
}

void control_notify(struct control_client *client, const char *method, struct json_object *params)
{
	struct json_object *message;
	int r = 0;

	message = control_message_new(&r);
	json_put_string(message, "method", method, &r);
	json_put_value(message, "params", params, &r);
	client_send(client, control_message_done(message, r), false);
}

/* ---- requests ---- */

static const struct control_method *find_method(
	const struct control *control, const char *name, struct control_error *error)
{
	const char *near = NULL;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < control->params.nr_methods; i++) {
		const struct control_method *method = &control->params.methods[i];

		if (!strcmp(method->name, name))
			return method;
		if (nearest_better(name, method->name, &best))
			near = method->name;
	}
	if (near)
		control_fail_with(error, CONTROL_NO_METHOD, "nearest", near,
			"there is no method '%.64s'; did you mean '%s'?", name, near);
	else
		control_fail(error, CONTROL_NO_METHOD, "there is no method '%.64s'", name);
	return NULL;
}

/* A token bucket: CONTROL_RATE a second, CONTROL_BURST at once. */
static bool is_allowed(struct control_client *client)
{
	uint64_t now = 0;

	sd_event_now(client->control->event, CLOCK_MONOTONIC, &now);
	client->allowance += (now - client->since) * CONTROL_RATE;
	client->since = now;
	if (client->allowance > CONTROL_BURST * SECOND)
		client->allowance = CONTROL_BURST * SECOND;
	if (client->allowance < SECOND)
		return false;
	client->allowance -= SECOND;
	return true;
}

static int call(struct control_client *client, struct json_object *request,
	struct json_object **ret_result, struct control_error *error)
{
	const struct control *control = client->control;
	const struct control_method *method;
	struct json_object *params = NULL;
	const char *name = NULL;

	if (!is_allowed(client))
		return control_fail(
			error, CONTROL_TOO_MANY, "more than %d requests a second", CONTROL_RATE);
	if (json_object_object_get_ex(request, "params", &params) &&
		!json_object_is_type(params, json_type_object))
		return control_fail(
			error, CONTROL_PARAMS, "parameters are given by name, in an object");
	json_get_string(request, "method", &name); /* control_bad_request() saw to it */
	method = find_method(control, name, error);
	if (!method)
		return -1;
	return method->call(control->params.ctx, client, params, ret_result, error);
}

static void serve_request(struct control_client *client, struct json_object *request)
{
	struct json_object *id = NULL, *result = NULL, *message;
	const char *why = control_bad_request(request);
	struct control_error error = { 0 };
	bool answered;
	int r;

	if (why) {
		if (json_object_is_type(request, json_type_object))
			json_object_object_get_ex(request, "id", &id);
		control_fail(&error, CONTROL_INVALID, "%s", why);
		client_send(
			client, control_message_error(control_id_ok(id) ? id : NULL, &error), true);
		return;
	}
	answered = json_object_object_get_ex(request, "id", &id);
	r = call(client, request, &result, &error);
	if (!answered) {
		json_object_put(result);
		json_object_put(error.data);
		return;
	}
	if (r < 0) {
		client_send(client, control_message_error(id, &error), true);
		return;
	}
	message = control_message_new(&r);
	if (r == 0 && json_object_object_add(message, "id", json_object_get(id)) < 0)
		r = -ENOMEM;
	json_put_value(message, "result", result, &r);
	client_send(client, control_message_done(message, r), true);
}

static void serve_line(struct control_client *client, const char *line, size_t length)
{
	struct json_object *request = NULL;
	const char *why = NULL;
	char text[128];

	if (length > 0 && line[length - 1] == '\r')
		length--;
	if (length == 0)
		return;
	if (json_read(line, length, &request, &why) < 0) {
		snprintf(text, sizeof(text), "no JSON: %s", why ? why : "no memory");
		send_error(client, CONTROL_PARSE, text);
		return;
	}
	serve_request(client, request);
	json_object_put(request);
}

static void client_read(struct control_client *client)
{
	size_t start = 0;
	char *end;
	ssize_t n = recv(client->fd, client->in + client->in_length,
		CONTROL_MESSAGE_MAX + 1 - client->in_length, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		client_end(client);
		return;
	}
	if (n == 0) {
		/* It may have closed one direction only: what it asked for is still sent. */
		client->closing = true;
		wait_for(client);
		return;
	}
	client->in_length += (size_t)n;
	while (!client->dead && start < client->in_length &&
		(end = memchr(client->in + start, '\n', client->in_length - start))) {
		serve_line(client, client->in + start, (size_t)(end - client->in) - start);
		start = (size_t)(end - client->in) + 1;
	}
	client->in_length -= start;
	memmove(client->in, client->in + start, client->in_length);
	if (client->dead || client->in_length <= CONTROL_MESSAGE_MAX)
		return;
	say(client->control, client, "disconnected: a message of more than 64 KiB");
	client->closing = true;
	send_error(client, CONTROL_INVALID, "a message has at most 64 KiB");
}

/* ---- clients ---- */

static void client_free(struct control_client *client)
{
	if (!client)
		return;
	sd_event_source_disable_unref(client->io);
	sd_event_source_disable_unref(client->end);
	if (client->fd >= 0)
		close(client->fd);
	free(client->in);
	free(client->out);
	free(client);
}

/* It is on no list any more. */
static void client_gone(struct control_client *client)
{
	struct control *control = client->control;

	control->nr_clients--;
	if (control->params.gone)
		control->params.gone(control->params.ctx, client);
	client_free(client);
}

static int on_end(sd_event_source *source, void *ctx)
{
	struct control_client *client = ctx, **p = &client->control->clients;

	while (*p != client)
		p = &(*p)->next;
	*p = client->next;
	client_gone(client);
	return 0;
}

static int on_client(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
	struct control_client *client = ctx;

	if (events & EPOLLOUT)
		client_write(client);
	if (!client->dead && !client->closing && (events & EPOLLIN))
		client_read(client);
	/* All that it sent was read before: EPOLLIN comes with the hang-up. */
	if (!client->dead && (events & EPOLLERR || (events & EPOLLHUP && !(events & EPOLLIN))))
		client_end(client);
	return 0;
}

/* Says why, as far as that goes without waiting. The caller closes. */
static void turn_away(int fd, enum control_code code, const char *text)
{
	struct control_error error = { 0 };
	struct json_object *message;
	const char *line;

	control_fail(&error, code, "%s", text);
	message = control_message_error(NULL, &error);
	line = message ? json_object_to_json_string_ext(message, JSON_C_TO_STRING_PLAIN) : NULL;
	if (line && send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE) > 0)
		(void)!send(fd, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	json_object_put(message);
}

/* The descriptor is the client's, or closed. */
static int client_new(struct control *control, int fd, const char *who)
{
	struct control_client *client = calloc(1, sizeof(*client));
	int r = -ENOMEM;

	if (!client) {
		close(fd);
		return r;
	}
	client->control = control;
	client->fd = fd;
	client->allowance = CONTROL_BURST * SECOND;
	snprintf(client->who, sizeof(client->who), "%s", who);
	client->in = malloc(CONTROL_MESSAGE_MAX + 1);
	if (!client->in)
		goto fail;
	r = sd_event_now(control->event, CLOCK_MONOTONIC, &client->since);
	if (r < 0)
		goto fail;
	r = sd_event_add_defer(control->event, &client->end, on_end, client);
	if (r < 0)
		goto fail;
	sd_event_source_set_enabled(client->end, SD_EVENT_OFF);
	r = sd_event_add_io(control->event, &client->io, fd, EPOLLIN, on_client, client);
	if (r < 0)
		goto fail;
	client->next = control->clients;
	control->clients = client;
	control->nr_clients++;
	return 0;
fail:
	client_free(client);
	return r;
}

static void greet(struct control *control, int fd)
{
	char who[64], message[128];

	if (!control_socket_permits(&control->socket, fd, who, sizeof(who))) {
		snprintf(message, sizeof(message), "control client refused: %s", who);
		if (control->params.say)
			control->params.say(control->params.ctx, message);
		turn_away(fd, CONTROL_NOT_PERMITTED,
			"not permitted: root, the daemon's user and members of the group ballast "
			"may");
		close(fd);
	} else if (control->nr_clients >= CONTROL_CLIENTS_MAX) {
		turn_away(fd, CONTROL_TOO_MANY_CLIENTS, "there are 32 clients already");
		close(fd);
	} else {
		client_new(control, fd, who);
	}
}

static int on_listen(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
	struct control *control = ctx;
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (client >= 0) {
		greet(control, client);
		return 0;
	}
	if (errno != EMFILE && errno != ENFILE)
		return 0; /* it went away, or another wakes us */
	/* Nobody else would take it off the queue, and the loop would spin on it. */
	close(control->spare);
	client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (client >= 0)
		close(client);
	control->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return 0;
}

int control_open(sd_event *event, const struct control_params *params, struct control **ret_control,
	char *why, size_t size)
{
	struct control *control = calloc(1, sizeof(*control));
	int r;

	if (!control) {
		snprintf(why, size, "no memory");
		return -ENOMEM;
	}
	control->params = *params;
	control->socket = CONTROL_SOCKET_NONE;
	control->event = sd_event_ref(event);
	control->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	r = control_socket_open(params->path, params->group, &control->socket, why, size);
	if (r < 0)
		goto fail;
	r = sd_event_add_io(event, &control->io, control->socket.fd, EPOLLIN, on_listen, control);
	if (r < 0) {
		snprintf(why, size, "cannot watch the socket: %s", strerror(-r));
		goto fail;
	}
	*ret_control = control;
	return 0;
fail:
	control_close(control);
	return r;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	while (control->clients) {
		struct control_client *client = control->clients;

		control->clients = client->next;
		client_gone(client);
	}
	sd_event_source_disable_unref(control->io);
	control_socket_close(&control->socket, control->params.path);
	if (control->spare >= 0)
		close(control->spare);
	sd_event_unref(control->event);
	free(control);
}
