/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "common/json.h"
#include "common/nearest.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

static struct json_object *read_ok(const char *text)
{
	struct json_object *value = NULL;

	ck_assert_msg(json_read(text, strlen(text), &value, NULL) == 0, "%s", text);
	return value;
}

static const struct {
	const char *text;
	size_t length; /* 0: strlen */
	bool good;
} texts[] = {
	{ "{}", 0, true },
	{ "{\"a\":1}  \n", 0, true },
	{ "[1, 2, \"x\"]", 0, true },
	{ "12", 0, true },
	{ "\"text\"", 0, true },
	{ "", 0, false },
	{ "   ", 0, false },
	{ "{", 0, false },
	{ "{\"a\":1", 0, false },
	{ "{\"a\":}", 0, false },
	{ "{\"a\":1} x", 0, false },
	{ "{\"a\":1}{}", 0, false },
	{ "{'a':1}", 0, false },
	{ "{\"a\":1} /* x */", 0, false },
	{ "{\"'\\\"/*\":\"//'\"}", 0, true },
	{ "{\"a\":01}", 0, false },
	/* json-c would cut the name, and make one character of each half. */
	{ "{\"a\\u0000b\":1}", 0, false },
	{ "{\"x\":{\"\\u0000\" \n:1}}", 0, false },
	{ "{\"a\":\"b\\u0000c\"}", 0, true },
	{ "{\"a\\\\u0000b\":1}", 0, true },
	{ "[\"\\ud800\"]", 0, false },
	{ "[\"\\uDC00\\ud800\"]", 0, false },
	{ "[\"\\uD83D\\u0041\"]", 0, false },
	{ "[\"\\ud83d\\uDC27\"]", 0, true },
	{ "[\"\\ud83", 0, false },
	{ "[\"\\", 0, false },
	{ "{\"a\":1,}", 0, false },
	{ "\"\xff\"", 0, false },
	{ "{\"a\":1}\0", 8, false },
	{ "\0", 1, false },
	{ "[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]", 0, true },
	{ "[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]", 0, false },
};

START_TEST(only_one_whole_strict_value_is_read)
{
	struct json_object *value = NULL;
	const char *text = texts[_i].text, *why = NULL;
	size_t length = texts[_i].length ? texts[_i].length : strlen(text);
	int r = json_read(text, length, &value, &why);

	ck_assert_int_eq(r, texts[_i].good ? 0 : -EBADMSG);
	ck_assert(texts[_i].good ? value != NULL : why != NULL);
	json_object_put(value);
}
END_TEST

static const struct {
	const char *number;
	bool readable; /* refused by json_read() itself is as good as -ERANGE */
	int error;
	uint64_t value;
} numbers[] = {
	{ "0", true, 0, 0 },
	{ "5", true, 0, 5 },
	{ "9223372036854775807", true, 0, INT64_MAX },
	{ "9223372036854775808", true, 0, UINT64_C(9223372036854775808) },
	{ "18446744073709551614", true, 0, UINT64_MAX - 1 },
	{ "18446744073709551615", true, -ERANGE, 0 },
	{ "18446744073709551616", false, -ERANGE, 0 },
	{ "100000000000000000000000", false, -ERANGE, 0 },
	{ "-5", true, -ERANGE, 0 },
	{ "-100000000000000000000000", false, -ERANGE, 0 },
	{ "1.5", true, -EBADMSG, 0 },
	{ "1e3", true, -EBADMSG, 0 },
	{ "\"5\"", true, -EBADMSG, 0 },
	{ "true", true, -EBADMSG, 0 },
	{ "null", true, -EBADMSG, 0 },
	{ "{}", true, -EBADMSG, 0 },
};

START_TEST(number_is_exact_or_refused)
{
	struct json_object *object = NULL;
	uint64_t value = 4711;
	char text[64];
	int r;

	snprintf(text, sizeof(text), "{\"n\":%s}", numbers[_i].number);
	r = json_read(text, strlen(text), &object, NULL);
	if (numbers[_i].readable)
		ck_assert_int_eq(r, 0);
	if (r == 0)
		ck_assert_int_eq(json_get_u64(object, "n", &value), numbers[_i].error);
	ck_assert_uint_eq(value, numbers[_i].error ? 4711 : numbers[_i].value);
	json_object_put(object);
}
END_TEST

START_TEST(signed_number_is_exact_or_refused)
{
	struct json_object *object = read_ok("{\"a\":-5,\"b\":9223372036854775806,"
					     "\"c\":9223372036854775807,\"d\":1.0}");
	int64_t value = 0;

	ck_assert_int_eq(json_get_i64(object, "a", &value), 0);
	ck_assert_int_eq(value, -5);
	ck_assert_int_eq(json_get_i64(object, "b", &value), 0);
	ck_assert_int_eq(value, INT64_MAX - 1);
	ck_assert_int_eq(json_get_i64(object, "c", &value), -ERANGE);
	ck_assert_int_eq(json_get_i64(object, "d", &value), -EBADMSG);
	ck_assert_int_eq(json_get_i64(object, "e", &value), -ENOENT);
	json_object_put(object);
}
END_TEST

START_TEST(members_are_of_their_type)
{
	struct json_object *object = read_ok(
		"{\"s\":\"x\",\"nul\":\"a\\u0000b\",\"b\":true,\"o\":{},\"l\":[],\"n\":null}");
	struct json_object *inner = NULL;
	const char *text = NULL;
	bool yes = false;

	ck_assert_int_eq(json_get_string(object, "s", &text), 0);
	ck_assert_str_eq(text, "x");
	ck_assert_int_eq(json_get_string(object, "nul", &text), -EBADMSG);
	ck_assert_int_eq(json_get_string(object, "b", &text), -EBADMSG);
	ck_assert_int_eq(json_get_string(object, "n", &text), -EBADMSG);
	ck_assert_int_eq(json_get_string(object, "none", &text), -ENOENT);
	ck_assert_int_eq(json_get_bool(object, "b", &yes), 0);
	ck_assert(yes);
	ck_assert_int_eq(json_get_bool(object, "s", &yes), -EBADMSG);
	ck_assert_int_eq(json_get_object(object, "o", &inner), 0);
	ck_assert_int_eq(json_get_object(object, "l", &inner), -EBADMSG);
	ck_assert_int_eq(json_get_array(object, "l", &inner), 0);
	ck_assert_int_eq(json_get_array(inner, "l", &inner), -ENOENT);
	ck_assert_int_eq(json_get_string(NULL, "s", &text), -ENOENT);
	json_object_put(object);
}
END_TEST

START_TEST(what_is_written_is_read_back)
{
	struct json_object *object = json_object_new_object(), *list = json_object_new_array();
	struct json_object *copy;
	uint64_t value = 0;
	int error = 0;

	json_push(list, json_object_new_string("x"), &error);
	json_put_u64(object, "u", UINT64_MAX - 1, &error);
	json_put_i64(object, "i", -7, &error);
	json_put_bool(object, "b", false, &error);
	json_put_string(object, "s", "\"\n", &error);
	json_put_value(object, "l", list, &error);
	ck_assert_int_eq(error, 0);
	copy = read_ok(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
	ck_assert_int_eq(json_get_u64(copy, "u", &value), 0);
	ck_assert_uint_eq(value, UINT64_MAX - 1);
	ck_assert(json_object_equal(object, copy));
	/* No value is a failure, and it sticks. */
	json_put_value(object, "none", NULL, &error);
	ck_assert_int_eq(error, -ENOMEM);
	json_put_u64(object, "later", 1, &error);
	ck_assert_int_eq(json_get_u64(object, "later", &value), -ENOENT);
	json_object_put(copy);
	json_object_put(object);
}
END_TEST

START_TEST(text_that_is_none_is_a_failure)
{
	struct json_object *object = json_object_new_object();
	int r = 0;

	json_put_string(object, "name", NULL, &r);
	ck_assert_int_eq(r, -ENOMEM);
	ck_assert_int_eq(json_object_object_length(object), 0);
	json_object_put(object);
}
END_TEST

START_TEST(near_words_are_found_and_far_ones_not)
{
	size_t best = SIZE_MAX;

	ck_assert_uint_eq(nearest_distance("web1", "wbe1"), 1);
	ck_assert_uint_eq(nearest_distance("", "abc"), 3);
	ck_assert_uint_eq(nearest_distance("Soft-Limit", "soft-limit"), 0);
	ck_assert_uint_eq(nearest_distance("kitten", "sitting"), 3);
	ck_assert(!nearest_better("wbe1", "database", &best));
	ck_assert(nearest_better("wbe1", "web12", &best));
	ck_assert(nearest_better("wbe1", "web1", &best));
	ck_assert(!nearest_better("wbe1", "web2", &best));
	/* Another letter is another word. */
	best = SIZE_MAX;
	ck_assert(!nearest_better("x", "/", &best));
	ck_assert(!nearest_better("", "/", &best));
	ck_assert(nearest_better("A", "a", &best));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("json");
	TCase *tc = tcase_create("json");

	tcase_add_loop_test(
		tc, only_one_whole_strict_value_is_read, 0, sizeof(texts) / sizeof(texts[0]));
	tcase_add_loop_test(
		tc, number_is_exact_or_refused, 0, sizeof(numbers) / sizeof(numbers[0]));
	tcase_add_test(tc, signed_number_is_exact_or_refused);
	tcase_add_test(tc, members_are_of_their_type);
	tcase_add_test(tc, what_is_written_is_read_back);
	tcase_add_test(tc, text_that_is_none_is_a_failure);
	tcase_add_test(tc, near_words_are_found_and_far_ones_not);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
