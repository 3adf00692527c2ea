/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How ballastctl's commands speak: errors, and the daemon's figures. See ballastctl.h. */
#include <config.h>

#include "tools/ballastctl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/json.h"
#include "common/text.h"

/* Longer messages are cut. */
#define MESSAGE_MAX 1024

int ctl_fail(int status, const char *format, ...)
{
	char message[MESSAGE_MAX], line[MESSAGE_MAX * TEXT_GROWTH];
	va_list args;

	va_start(args, format);
	if (vsnprintf(message, sizeof(message), format, args) < 0)
		message[0] = '\0';
	va_end(args);
	fprintf(stderr, "ballastctl: %s\n", text_printable(message, line, sizeof(line)));
	return status;
}

const char *text_size(struct json_object *object, const char *key, char buf[SIZE_TEXT])
{
	uint64_t large;
	int64_t bytes;

	if (json_get_i64(object, key, &bytes) == 0)
		return size_format_signed(bytes, buf, SIZE_TEXT);
	/* 8 EiB and more. */
	if (json_get_u64(object, key, &large) == 0)
		return size_format(large, buf, SIZE_TEXT);
	return "-";
}

uint64_t number(struct json_object *object, const char *key)
{
	uint64_t value = 0;

	json_get_u64(object, key, &value); /* else 0 */
	return value;
}

const char *text(struct json_object *object, const char *key)
{
	const char *value = "";

	json_get_string(object, key, &value); /* else "" */
	return value;
}

const char *text_sum(
	struct json_object *object, const char *first, const char *second, char buf[SIZE_TEXT])
{
	uint64_t a, b;

	if (json_get_u64(object, first, &a) < 0 || json_get_u64(object, second, &b) < 0)
		return "-";
	return size_format(a + b, buf, SIZE_TEXT);
}

const char *text_permille(struct json_object *object, const char *key, char buf[SIZE_TEXT])
{
	uint64_t value;

	if (json_get_u64(object, key, &value) < 0)
		return "-";
	snprintf(buf, SIZE_TEXT, "%" PRIu64 ".%" PRIu64 " %%", value / 10, value % 10);
	return buf;
}

bool is_known(struct json_object *object, const char *key)
{
	return json_object_object_get_ex(object, key, NULL);
}

void show_json(struct json_object *result)
{
	puts(json_object_to_json_string_ext(
		result, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
}

void show_end_json(struct json_object *end)
{
	int r = 0;

	json_put_u64(end, "schema_version", 1, &r);
	show_json(end);
}
