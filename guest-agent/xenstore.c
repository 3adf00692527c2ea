/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* xenstore: see xenstore.h. */
#include <config.h>

#include "guest-agent/xenstore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/protocol.h"

/* xenstore's protocol (xen/io/xs_wire.h): types of messages. */
enum {
	TYPE_READ = 2,
	TYPE_WATCH = 4,
	TYPE_WRITE = 11,
	TYPE_EVENT = 15,
	TYPE_ERROR = 16,
};

struct header {
	uint32_t type, request, transaction, length;
};

_Static_assert(sizeof(struct header) == XENSTORE_HEADER, "four numbers, and nothing between");

/* What is asked has its type as its number: the answer, or the error, has it too. */
static int ask(struct xenstore *s, uint32_t type, const char *path, const char *more, size_t length)
{
	struct header header = { .type = type, .request = type };
	char message[XENSTORE_HEADER + XENSTORE_PAYLOAD];
	size_t at = strlen(path) + 1;
	ssize_t n;

	if (at + length > XENSTORE_PAYLOAD)
		return -EMSGSIZE;
	header.length = (uint32_t)(at + length);
	memcpy(message, &header, sizeof(header));
	memcpy(message + XENSTORE_HEADER, path, at);
	memcpy(message + XENSTORE_HEADER + at, more, length);
	n = write(s->fd, message, XENSTORE_HEADER + at + length);
	if (n < 0)
		return -errno;
	/* The device takes a message whole: a part is the end of the way. */
	if ((size_t)n != XENSTORE_HEADER + at + length)
		return -EIO;
	s->out = type;
	return 0;
}

int xenstore_start(struct xenstore *s, int fd)
{
	static const char token[] = "ballast";

	memset(s, 0, sizeof(*s));
	s->fd = fd;
	/* Which tells at once that there is something to read. */
	return ask(s, TYPE_WATCH, PROTOCOL_STORE_HOST, token, sizeof(token));
}

int xenstore_open(struct xenstore *s)
{
	static const char *const devices[] = { "/dev/xen/xenbus", "/proc/xen/xenbus" };
	int fd = -1, r;

	for (size_t i = 0; fd < 0 && i < sizeof(devices) / sizeof(devices[0]); i++)
		fd = open(devices[i], O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -ENOENT;
	r = xenstore_start(s, fd);
	if (r < 0)
		close(fd);
	return r;
}

static int write_message(struct xenstore *s)
{
	char path[sizeof(PROTOCOL_STORE_GUEST) + 12];

	snprintf(path, sizeof(path), PROTOCOL_STORE_GUEST "/%u", s->key);
	s->key = (s->key + 1) % PROTOCOL_STORE_KEYS;
	return ask(s, TYPE_WRITE, path, s->messages[s->first].text, s->messages[s->first].length);
}

/* What is to be asked next, where nothing is. */
static int go_on(struct xenstore *s)
{
	if (s->out)
		return 0;
	if (s->changed) {
		s->changed = false;
		return ask(s, TYPE_READ, PROTOCOL_STORE_HOST, "", 0);
	}
	return s->waiting ? write_message(s) : 0;
}

int xenstore_send(struct xenstore *s, const char *text, size_t length)
{
	unsigned int last = (s->first + s->waiting) % PROTOCOL_STORE_KEYS;

	if (length > sizeof(s->messages[last].text))
		return -EMSGSIZE;
	if (s->waiting == PROTOCOL_STORE_KEYS)
		return -EAGAIN;
	memcpy(s->messages[last].text, text, length);
	s->messages[last].length = length;
	s->waiting++;
	return go_on(s);
}

/* "NUMBER\nMESSAGE": true where the number is another than the last one's. */
static bool take_value(struct xenstore *s, const char *value, size_t length, size_t *ret_length)
{
	const char *end = memchr(value, '\n', length < XENSTORE_NUMBER ? length : XENSTORE_NUMBER);
	size_t digits = end ? (size_t)(end - value) : 0;

	if (digits == 0 || (strlen(s->number) == digits && !memcmp(s->number, value, digits)))
		return false;
	memcpy(s->number, value, digits);
	s->number[digits] = '\0';
	*ret_length = length - digits - 1;
	memcpy(s->text, end + 1, *ret_length);
	return true;
}

/* As xenstore_receive(), of one message. */
static int take(struct xenstore *s, const struct header *h, const char *payload, size_t *ret_length)
{
	uint32_t request = s->out;
	int r;

	if (h->type == TYPE_EVENT) {
		s->changed = true;
		return go_on(s);
	}
	if (!request || h->request != request)
		return 0;
	s->out = 0;
	if (request == TYPE_WATCH && h->type == TYPE_ERROR)
		return -EIO;
	if (request == TYPE_WRITE) {
		s->first = (s->first + 1) % PROTOCOL_STORE_KEYS;
		s->waiting--;
	}
	r = go_on(s);
	if (r < 0 || request != TYPE_READ)
		return r;
	if (h->type == TYPE_ERROR)
		return -ENOTCONN;
	return h->type == TYPE_READ ? take_value(s, payload, h->length, ret_length) : 0;
}

/* 1: *ret_header is of a message that is there whole. */
static int next(struct xenstore *s, struct header *ret_header)
{
	struct header h;

	if (s->length - s->taken < XENSTORE_HEADER)
		return 0;
	memcpy(&h, s->data + s->taken, sizeof(h));
	if (h.length > XENSTORE_PAYLOAD)
		return -EPROTO;
	if (s->length - s->taken - XENSTORE_HEADER < h.length)
		return 0;
	*ret_header = h;
	return 1;
}

static int fill(struct xenstore *s)
{
	ssize_t n;

	memmove(s->data, s->data + s->taken, s->length - s->taken);
	s->length -= s->taken;
	s->taken = 0;
	n = read(s->fd, s->data + s->length, sizeof(s->data) - s->length);
	if (n > 0)
		s->length += (size_t)n;
	else if (n == 0)
		return -EPIPE;
	else if (errno != EAGAIN && errno != EINTR)
		return -errno;
	return n > 0;
}

/* Reads once at most; each message in it makes it shorter. */
int xenstore_receive(struct xenstore *s, const char **ret_text, size_t *ret_length)
{
	struct header header;
	bool filled = false;
	int r;

	for (;;) {
		const char *payload = s->data + s->taken + XENSTORE_HEADER;

		r = next(s, &header);
		if (r == 0 && !filled) {
			r = fill(s);
			filled = true;
			if (r > 0)
				continue;
		}
		if (r <= 0)
			return r;
		s->taken += XENSTORE_HEADER + header.length;
		r = take(s, &header, payload, ret_length);
		if (r != 0)
			break;
	}
	if (r > 0)
		*ret_text = s->text;
	return r;
}
