/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * json: checked reading and writing on top of json-c, for everything that comes from outside.
 *
 * json-c turns 10^23 into UINT64_MAX and -5 into 0 without a word, takes text behind the end and
 * lets strings hold a NUL; who reads numbers or strings from outside does it through these
 * functions only. What they return points into the object and lives as long as it.
 *
 * Readers of a member: 0; -ENOENT: there is none of that key (or object is no object); -EBADMSG:
 * it is of another type (null too); -ERANGE: a number that does not fit. Never logs. Any thread,
 * one at a time for an object.
 */
#ifndef BALLAST_COMMON_JSON_H
#define BALLAST_COMMON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

/* Nesting that any message or recording of ours needs, twice over. */
#define JSON_MAX_DEPTH 16

/*
 * One whole value, strict: nothing behind it but white space, no NUL (as \u0000 in strings only,
 * and not in names of members), valid UTF-8, no half of a surrogate pair, at most JSON_MAX_DEPTH
 * deep. -EBADMSG: it is not that; *ret_why (may be NULL) says it in words, static. -ENOMEM. The
 * value is the caller's: json_object_put(); NULL is JSON's null.
 */
int json_read(
	const char *text, size_t length, struct json_object **ret_value, const char **ret_why);

/*
 * UINT64_MAX cannot be told from a number that is too large, so it is -ERANGE; nothing means
 * "unlimited" by it: leave the member out. A fraction or an exponent is -EBADMSG.
 */
int json_get_u64(struct json_object *object, const char *key, uint64_t *ret_value);
/* INT64_MIN and INT64_MAX are -ERANGE for the same reason. */
int json_get_i64(struct json_object *object, const char *key, int64_t *ret_value);
int json_get_bool(struct json_object *object, const char *key, bool *ret_value);
/* Without a NUL inside. */
int json_get_string(struct json_object *object, const char *key, const char **ret_value);
int json_get_object(struct json_object *object, const char *key, struct json_object **ret_value);
int json_get_array(struct json_object *object, const char *key, struct json_object **ret_value);

/*
 * Writers of members. A failure (no memory) sets *error to -ENOMEM and otherwise does nothing, so
 * that a row of them is checked once; with *error set they do nothing. A value or text that is NULL
 * is a failure. json_put_value() takes over value whatever happens.
 */
void json_put_u64(struct json_object *object, const char *key, uint64_t value, int *error);
void json_put_i64(struct json_object *object, const char *key, int64_t value, int *error);
void json_put_bool(struct json_object *object, const char *key, bool value, int *error);
void json_put_string(struct json_object *object, const char *key, const char *value, int *error);
void json_put_value(
	struct json_object *object, const char *key, struct json_object *value, int *error);
/* Appends to an array. */
void json_push(struct json_object *array, struct json_object *value, int *error);

#endif
