/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* qga_text: see qga_text.h. */
#include <config.h>

#include "hv/libvirt/qga_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"

/* Of the list of commands: QEMU has some fifty. */
#define COMMANDS_MAX 512

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static const struct {
	const char *name;
	enum qga_can can;
} commands[] = {
	{ "guest-file-open", QGA_OPEN },
	{ "guest-file-read", QGA_READ },
	{ "guest-file-close", QGA_CLOSE },
	{ "guest-file-write", QGA_WRITES },
	{ "guest-file-flush", QGA_FLUSH },
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

const char *qga_command_name(unsigned int can)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (can & commands[i].can)
			return commands[i].name;
	return "";
}

/* ---- commands ---- */

void qga_ask_info(char *text)
{
	snprintf(text, QGA_COMMAND, "{\"execute\":\"guest-info\"}");
}

void qga_ask_open(char *text, const char *path, const char *mode)
{
	snprintf(text, QGA_COMMAND,
		"{\"execute\":\"guest-file-open\",\"arguments\":{\"path\":\"%s\",\"mode\":\"%s\"}}",
		path, mode);
}

static void ask_of_handle(char *text, const char *command, int64_t handle, const char *rest)
{
	snprintf(text, QGA_COMMAND,
		"{\"execute\":\"guest-file-%s\",\"arguments\":{\"handle\":%" PRId64 "%s}}", command,
		handle, rest);
}

void qga_ask_read(char *text, int64_t handle)
{
	char count[32];

	snprintf(count, sizeof(count), ",\"count\":%d", QGA_FILE);
	ask_of_handle(text, "read", handle, count);
}

/* In base64; to has room for it. */
static void encode(const char *what, char *to)
{
	size_t length = strlen(what);

	for (size_t i = 0; i < length; i += 3) {
		unsigned int bits = 0, nr = length - i < 3 ? (unsigned int)(length - i) : 3;

		for (unsigned int k = 0; k < 3; k++)
			bits = bits << 8 | (k < nr ? (unsigned char)what[i + k] : 0);
		for (unsigned int k = 0; k < 4; k++)
			to[k] = digits[bits >> (18 - 6 * k) & 63];
		for (unsigned int k = nr + 1; k < 4; k++)
			to[k] = '=';
		to += 4;
	}
	*to = '\0';
}

void qga_ask_write(char *text, int64_t handle, const char *what)
{
	char base64[QGA_WRITE / 3 * 4 + 8], rest[sizeof(base64) + 32];

	encode(strlen(what) < QGA_WRITE ? what : "", base64);
	snprintf(rest, sizeof(rest), ",\"buf-b64\":\"%s\"", base64);
	ask_of_handle(text, "write", handle, rest);
}

void qga_ask_flush(char *text, int64_t handle)
{
	ask_of_handle(text, "flush", handle, "");
}

void qga_ask_close(char *text, int64_t handle)
{
	ask_of_handle(text, "close", handle, "");
}

/* ---- answers ---- */

/* The whole of it; "return" is a member of *ret_answer, which is the caller's. */
static int read_answer(const char *answer, struct json_object **ret_answer)
{
	size_t length = strnlen(answer, QGA_ANSWER_MAX + 1);
	struct json_object *value = NULL;
	int r;

	if (length > QGA_ANSWER_MAX)
		return -E2BIG;
	r = json_read(answer, length, &value, NULL);
	if (r < 0)
		return r;
	if (!json_object_is_type(value, json_type_object)) {
		json_object_put(value);
		return -EBADMSG;
	}
	*ret_answer = value;
	return 0;
}

static unsigned int command_bit(struct json_object *command)
{
	const char *name = NULL;
	bool enabled = false;

	if (json_get_string(command, "name", &name) < 0 ||
		json_get_bool(command, "enabled", &enabled) < 0 || !enabled)
		return 0;
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return commands[i].can;
	return 0;
}

static int take_info(struct json_object *answer, struct qga_info *ret_info)
{
	struct json_object *said = NULL, *list = NULL;
	struct qga_info info = { .can = 0 };
	const char *version = NULL;

	if (json_get_object(answer, "return", &said) < 0 ||
		json_get_string(said, "version", &version) < 0 ||
		json_get_array(said, "supported_commands", &list) < 0 ||
		json_object_array_length(list) > COMMANDS_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < json_object_array_length(list); i++)
		info.can |= command_bit(json_object_array_get_idx(list, i));
	for (size_t i = 0; i < QGA_TEXT - 1 && version[i]; i++) {
		info.version[i] = version[i];
		if (version[i] <= ' ' || version[i] > '~')
			info.version[i] = '?';
	}
	*ret_info = info;
	return 0;
}

int qga_read_info(const char *answer, struct qga_info *ret_info)
{
	struct json_object *value = NULL;
	int r = read_answer(answer, &value);

	if (r < 0)
		return r;
	r = take_info(value, ret_info);
	json_object_put(value);
	return r;
}

int qga_read_handle(const char *answer, int64_t *ret_handle)
{
	struct json_object *value = NULL;
	int r = read_answer(answer, &value);

	if (r < 0)
		return r;
	r = json_get_i64(value, "return", ret_handle) < 0 ? -EBADMSG : 0;
	json_object_put(value);
	return r;
}

static int digit(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Whole groups of four, padded at the end only; -1: it is no base64, or more than QGA_FILE. */
static int64_t decode(const char *text, char *to)
{
	size_t length = strlen(text), nr = 0;

	if (length % 4 != 0 || length / 4 * 3 > QGA_FILE + 2)
		return -1;
	for (size_t i = 0; i < length; i += 4) {
		unsigned int bits = 0, pad = 0;

		for (size_t k = 0; k < 4; k++) {
			int value = digit(text[i + k]);

			if (value < 0 && text[i + k] == '=' && i + 4 == length && k >= 2)
				pad++;
			else if (value < 0 || pad)
				return -1;
			bits = bits << 6 | (value < 0 ? 0 : (unsigned int)value);
		}
		for (unsigned int k = 0; k < 3 - pad; k++) {
			if (nr == QGA_FILE)
				return -1;
			to[nr++] = (char)(bits >> (16 - 8 * k) & 255);
		}
	}
	return (int64_t)nr;
}

static int take_data(struct json_object *answer, char *ret_data)
{
	struct json_object *said = NULL;
	const char *base64 = NULL;
	uint64_t count;
	int64_t nr;

	if (json_get_object(answer, "return", &said) < 0 ||
		json_get_u64(said, "count", &count) < 0 ||
		json_get_string(said, "buf-b64", &base64) < 0)
		return -EBADMSG;
	nr = decode(base64, ret_data);
	if (nr < 0 || (uint64_t)nr != count)
		return -EBADMSG;
	ret_data[nr] = '\0';
	return 0;
}

int qga_read_data(const char *answer, char *ret_data)
{
	struct json_object *value = NULL;
	int r = read_answer(answer, &value);

	if (r < 0)
		return r;
	r = take_data(value, ret_data);
	json_object_put(value);
	return r;
}

int qga_read_done(const char *answer)
{
	struct json_object *value = NULL, *said = NULL;
	int r = read_answer(answer, &value);

	if (r < 0)
		return r;
	r = json_get_object(value, "return", &said) < 0 ? -EBADMSG : 0;
	json_object_put(value);
	return r;
}
