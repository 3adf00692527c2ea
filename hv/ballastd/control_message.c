/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages of JSON-RPC as JSON, without a socket: see control_internal.h. */
#include <config.h>

#include "hv/ballastd/control_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/text.h"

static int fail_va(struct control_error *error, enum control_code code, const char *key,
	const char *value, const char *format, va_list args)
{
	int r = 0;

	error->code = code;
	vsnprintf(error->message, sizeof(error->message), format, args);
	text_mend(error->message);
	json_object_put(error->data);
	error->data = NULL;
	if (!value)
		return -1;
	/* Without memory the error goes without data. */
	error->data = json_object_new_object();
	json_put_string(error->data, key, value, &r);
	return -1;
}

int control_fail(struct control_error *error, enum control_code code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fail_va(error, code, NULL, NULL, format, args);
	va_end(args);
	return -1;
}

int control_fail_with(struct control_error *error, enum control_code code, const char *key,
	const char *value, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fail_va(error, code, key, value, format, args);
	va_end(args);
	return -1;
}

static struct json_object *error_object(struct control_error *error)
{
	struct json_object *object = json_object_new_object();
	int r = 0;

	json_put_i64(object, "code", error->code, &r);
	json_put_string(object, "message", error->message, &r);
	if (error->data)
		json_put_value(object, "data", error->data, &r);
	error->data = NULL;
	if (r == 0)
		return object;
	json_object_put(object);
	return NULL;
}

struct json_object *control_message_new(int *r)
{
	struct json_object *message = json_object_new_object();

	json_put_string(message, "jsonrpc", "2.0", r);
	return message;
}

struct json_object *control_message_done(struct json_object *message, int r)
{
	if (r == 0)
		return message;
	json_object_put(message);
	return NULL;
}

/* id NULL: null, as for requests that could not be read. */
struct json_object *control_message_error(struct json_object *id, struct control_error *error)
{
	struct json_object *message;
	int r = 0;

	message = control_message_new(&r);
	if (r == 0 && json_object_object_add(message, "id", json_object_get(id)) < 0)
		r = -ENOMEM;
	json_put_value(message, "error", error_object(error), &r);
	return control_message_done(message, r);
}

bool control_id_ok(struct json_object *id)
{
	int64_t number;

	if (!id || json_object_is_type(id, json_type_string))
		return true;
	if (!json_object_is_type(id, json_type_int))
		return false;
	/* json-c makes the nearest of its limits of what is beyond them, and so would the answer.
	 */
	number = json_object_get_int64(id);
	return number != INT64_MIN && number != INT64_MAX;
}

/* What of a request is none, in words; NULL: nothing. */
const char *control_bad_request(struct json_object *request)
{
	struct json_object *member = NULL;
	const char *text = NULL;

	if (json_object_is_type(request, json_type_array))
		return "batches are not supported; send one request a line";
	if (!json_object_is_type(request, json_type_object))
		return "a request is an object";
	if (json_object_object_get_ex(request, "id", &member) && !control_id_ok(member))
		return "id must be a string, null or a whole number between -2^63 and 2^63 - 1, "
		       "both not included";
	if (json_get_string(request, "jsonrpc", &text) < 0 || strcmp(text, "2.0") != 0)
		return "\"jsonrpc\" must be \"2.0\"";
	if (json_get_string(request, "method", &text) < 0)
		return "\"method\" must be a string";
	return NULL;
}
