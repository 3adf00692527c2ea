/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* json-c without memory, as in faults.h: with FAULTS_JSON_WRAP (tests.am). */
#include <config.h>

#include "tests/unit/faults.h"

#include <json-c/json.h>
#include <stdlib.h>

/* The linker's names; they belong to it. */
struct json_object *__real_json_object_new_object(void);
struct json_object *__wrap_json_object_new_object(void);
struct json_object *__real_json_object_new_array(void);
struct json_object *__wrap_json_object_new_array(void);
struct json_object *__real_json_object_new_string(const char *text);
struct json_object *__wrap_json_object_new_string(const char *text);
struct json_object *__real_json_object_new_int64(int64_t value);
struct json_object *__wrap_json_object_new_int64(int64_t value);
struct json_object *__real_json_object_new_uint64(uint64_t value);
struct json_object *__wrap_json_object_new_uint64(uint64_t value);
struct json_object *__real_json_object_new_boolean(json_bool value);
struct json_object *__wrap_json_object_new_boolean(json_bool value);
int __real_json_object_object_add(
	struct json_object *object, const char *key, struct json_object *value);
int __wrap_json_object_object_add(
	struct json_object *object, const char *key, struct json_object *value);
int __real_json_object_array_add(struct json_object *array, struct json_object *value);
int __wrap_json_object_array_add(struct json_object *array, struct json_object *value);
const char *__real_json_object_to_json_string_ext(struct json_object *object, int flags);
const char *__wrap_json_object_to_json_string_ext(struct json_object *object, int flags);
const char *__real_json_object_to_json_string_length(
	struct json_object *object, int flags, size_t *length);
const char *__wrap_json_object_to_json_string_length(
	struct json_object *object, int flags, size_t *length);
struct json_tokener *__real_json_tokener_new_ex(int depth);
struct json_tokener *__wrap_json_tokener_new_ex(int depth);

struct json_object *__wrap_json_object_new_object(void)
{
	return faults_hit("json_object_new_object") ? NULL : __real_json_object_new_object();
}

struct json_object *__wrap_json_object_new_array(void)
{
	return faults_hit("json_object_new_array") ? NULL : __real_json_object_new_array();
}

struct json_object *__wrap_json_object_new_string(const char *text)
{
	return faults_hit("json_object_new_string") ? NULL : __real_json_object_new_string(text);
}

struct json_object *__wrap_json_object_new_int64(int64_t value)
{
	return faults_hit("json_object_new_int64") ? NULL : __real_json_object_new_int64(value);
}

struct json_object *__wrap_json_object_new_uint64(uint64_t value)
{
	return faults_hit("json_object_new_uint64") ? NULL : __real_json_object_new_uint64(value);
}

struct json_object *__wrap_json_object_new_boolean(json_bool value)
{
	return faults_hit("json_object_new_boolean") ? NULL : __real_json_object_new_boolean(value);
}

int __wrap_json_object_object_add(
	struct json_object *object, const char *key, struct json_object *value)
{
	return faults_hit("json_object_object_add")
		       ? -1
		       : __real_json_object_object_add(object, key, value);
}

int __wrap_json_object_array_add(struct json_object *array, struct json_object *value)
{
	return faults_hit("json_object_array_add") ? -1
						   : __real_json_object_array_add(array, value);
}

const char *__wrap_json_object_to_json_string_ext(struct json_object *object, int flags)
{
	return faults_hit("json_object_to_json_string_ext")
		       ? NULL
		       : __real_json_object_to_json_string_ext(object, flags);
}

const char *__wrap_json_object_to_json_string_length(
	struct json_object *object, int flags, size_t *length)
{
	return faults_hit("json_object_to_json_string_length")
		       ? NULL
		       : __real_json_object_to_json_string_length(object, flags, length);
}

struct json_tokener *__wrap_json_tokener_new_ex(int depth)
{
	return faults_hit("json_tokener_new_ex") ? NULL : __real_json_tokener_new_ex(depth);
}

/*
 * json-c's parser drops a number that it has no memory to put into its object. Its leak, found
 * where it is asked for: what is ours is found by all the other types.
 */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:json_object_new_int64";
}
