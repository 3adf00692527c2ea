/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checked JSON: see json.h. */
#include <config.h>

#include "common/json.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* -1: it is none. */
static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The code of the \u escape at text; UINT32_MAX: it is none. */
static uint32_t escape_code(const char *text, size_t length)
{
	uint32_t code = 0;

	if (length < 6 || text[0] != '\\' || text[1] != 'u')
		return UINT32_MAX;
	for (size_t i = 2; i < 6; i++) {
		int digit = hex_digit(text[i]);

		if (digit < 0)
			return UINT32_MAX;
		code = code << 4 | (uint32_t)digit;
	}
	return code;
}

/* Bytes of the escape at text. *ret_why is set where json-c would make something else of it. */
static size_t skip_escape(const char *text, size_t length, bool *ret_nul, const char **ret_why)
{
	uint32_t code = escape_code(text, length), low;

	if (code == UINT32_MAX)
		return 2;
	if (code == 0)
		*ret_nul = true;
	if (code < 0xd800 || code > 0xdfff)
		return 6;
	low = escape_code(text + 6, length - 6);
	if (code < 0xdc00 && low != UINT32_MAX && low >= 0xdc00 && low <= 0xdfff)
		return 12;
	*ret_why = "half of a surrogate pair";
	return 6;
}

/* Whether the string that ended before text is a member's name. */
static bool is_name(const char *text, size_t length)
{
	size_t i = 0;

	while (i < length && strchr(" \t\r\n", text[i]))
		i++;
	return i < length && text[i] == ':';
}

/*
 * What json-c takes in strict mode all the same: comments, keys in single quotes, names of members
 * with a NUL, which it cuts there, and halves of surrogate pairs, which become another character.
 * NULL: nothing of that.
 */
static const char *bad_text(const char *text, size_t length)
{
	bool string = false, nul = false;
	const char *why = NULL;

	for (size_t i = 0; i < length && !why; i++) {
		if (string && text[i] == '\\') {
			i += skip_escape(text + i, length - i, &nul, &why) - 1;
		} else if (text[i] == '"') {
			if (string && nul && is_name(text + i + 1, length - i - 1))
				why = "a NUL in a name";
			string = !string;
			nul = false;
		} else if (!string && (text[i] == '\'' || text[i] == '/')) {
			why = "a comment or single quotes";
		}
	}
	return why;
}

int json_read(const char *text, size_t length, struct json_object **ret_value, const char **ret_why)
{
	struct json_tokener *tokener = NULL;
	struct json_object *value = NULL;
	enum json_tokener_error error;
	const char *why = NULL;
	int r = -EBADMSG;

	if (length > INT_MAX) {
		why = "too long";
		goto out;
	}
	if (memchr(text, '\0', length)) {
		why = "a NUL byte";
		goto out;
	}
	why = bad_text(text, length);
	if (why)
		goto out;
	tokener = json_tokener_new_ex(JSON_MAX_DEPTH);
	if (!tokener) {
		r = -ENOMEM;
		goto out;
	}
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	value = json_tokener_parse_ex(tokener, text, (int)length);
	error = json_tokener_get_error(tokener);
	if (error == json_tokener_continue) {
		/* A number ends only where something follows: the end of the text. */
		value = json_tokener_parse_ex(tokener, "", 1);
		error = json_tokener_get_error(tokener);
	} else if (error == json_tokener_success) {
		for (size_t i = json_tokener_get_parse_end(tokener); i < length; i++)
			if (!strchr(" \t\r\n", text[i]))
				error = json_tokener_error_parse_unexpected;
	}
	if (error != json_tokener_success) {
		why = json_tokener_error_desc(error);
		goto out;
	}
	*ret_value = value;
	value = NULL;
	r = 0;
out:
	json_object_put(value);
	if (tokener)
		json_tokener_free(tokener);
	if (r == -EBADMSG && ret_why)
		*ret_why = why;
	return r;
}

static int get(struct json_object *object, const char *key, struct json_object **ret_value)
{
	if (!json_object_is_type(object, json_type_object))
		return -ENOENT;
	if (!json_object_object_get_ex(object, key, ret_value))
		return -ENOENT;
	return 0;
}

/* -EBADMSG, -ERANGE. */
static int value_u64(struct json_object *value, uint64_t *ret_value)
{
	uint64_t number;

	if (!json_object_is_type(value, json_type_int))
		return -EBADMSG;
	if (json_object_get_int64(value) < 0)
		return -ERANGE;
	number = json_object_get_uint64(value);
	if (number == UINT64_MAX)
		return -ERANGE;
	*ret_value = number;
	return 0;
}

int json_get_u64(struct json_object *object, const char *key, uint64_t *ret_value)
{
	struct json_object *value = NULL;
	int r = get(object, key, &value);

	return r < 0 ? r : value_u64(value, ret_value);
}

int json_get_i64(struct json_object *object, const char *key, int64_t *ret_value)
{
	struct json_object *value = NULL;
	int64_t number;
	int r = get(object, key, &value);

	if (r < 0)
		return r;
	if (!json_object_is_type(value, json_type_int))
		return -EBADMSG;
	number = json_object_get_int64(value);
	if (number == INT64_MAX || number == INT64_MIN)
		return -ERANGE;
	*ret_value = number;
	return 0;
}

int json_get_bool(struct json_object *object, const char *key, bool *ret_value)
{
	struct json_object *value = NULL;
	int r = get(object, key, &value);

	if (r < 0)
		return r;
	if (!json_object_is_type(value, json_type_boolean))
		return -EBADMSG;
	*ret_value = json_object_get_boolean(value);
	return 0;
}

int json_get_string(struct json_object *object, const char *key, const char **ret_value)
{
	struct json_object *value = NULL;
	const char *text;
	int r = get(object, key, &value);

	if (r < 0)
		return r;
	if (!json_object_is_type(value, json_type_string))
		return -EBADMSG;
	text = json_object_get_string(value);
	if (strlen(text) != (size_t)json_object_get_string_len(value))
		return -EBADMSG;
	*ret_value = text;
	return 0;
}

static int get_typed(struct json_object *object, const char *key, enum json_type type,
	struct json_object **ret_value)
{
	struct json_object *value = NULL;
	int r = get(object, key, &value);

	if (r < 0)
		return r;
	if (!json_object_is_type(value, type))
		return -EBADMSG;
	*ret_value = value;
	return 0;
}

int json_get_object(struct json_object *object, const char *key, struct json_object **ret_value)
{
	return get_typed(object, key, json_type_object, ret_value);
}

int json_get_array(struct json_object *object, const char *key, struct json_object **ret_value)
{
	return get_typed(object, key, json_type_array, ret_value);
}

void json_put_value(
	struct json_object *object, const char *key, struct json_object *value, int *error)
{
	if (!*error && object && value && json_object_object_add(object, key, value) == 0)
		return;
	json_object_put(value);
	if (!*error)
		*error = -ENOMEM;
}

void json_put_u64(struct json_object *object, const char *key, uint64_t value, int *error)
{
	if (!*error)
		json_put_value(object, key, json_object_new_uint64(value), error);
}

void json_put_i64(struct json_object *object, const char *key, int64_t value, int *error)
{
	if (!*error)
		json_put_value(object, key, json_object_new_int64(value), error);
}

void json_put_bool(struct json_object *object, const char *key, bool value, int *error)
{
	if (!*error)
		json_put_value(object, key, json_object_new_boolean(value), error);
}

void json_put_string(struct json_object *object, const char *key, const char *value, int *error)
{
	if (!*error)
		json_put_value(object, key, value ? json_object_new_string(value) : NULL, error);
}

void json_push(struct json_object *array, struct json_object *value, int *error)
{
	if (!*error && array && value && json_object_array_add(array, value) == 0)
		return;
	json_object_put(value);
	if (!*error)
		*error = -ENOMEM;
}
