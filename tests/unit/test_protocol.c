/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The protocol between host and agent: good, truncated, huge and made up messages. */
#include <config.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/protocol.h"
#include "tests/unit/suite.h"

static int parse(const char *line, struct protocol_message *m)
{
	const char *why = NULL;
	int r = protocol_parse(line, strlen(line), m, &why);

	ck_assert_ptr_nonnull(why);
	return r;
}

START_TEST(report_is_read_as_it_was_written)
{
	struct protocol_message m = { .type = PROTOCOL_REPORT,
		.known = PROTOCOL_LISTS | PROTOCOL_SWAP_FREE | PROTOCOL_FLOOR | PROTOCOL_ESTIMATED,
		.active_anon = 1,
		.inactive_anon = 2,
		.active_file = 3,
		.inactive_file = PROTOCOL_NUMBER_MAX,
		.floor = 5,
		.estimated = 1,
		.nr_groups = 1,
		.groups = { { "web", 1, 2, 3, 4 } } };
	char text[PROTOCOL_MESSAGE_MAX + 2];
	struct protocol_message read;
	size_t length = protocol_format(&m, text);
	const char *why;

	ck_assert_int_eq(text[length - 1], '\n');
	ck_assert_int_eq(protocol_parse(text, length - 1, &read, &why), 0);
	ck_assert_mem_eq(&read, &m, sizeof(m));
}
END_TEST

START_TEST(largest_report_fits_and_leaves_out_groups)
{
	struct protocol_message m = { .type = PROTOCOL_REPORT,
		.known = UINT32_MAX >> 4,
		.oldest = 1,
		.newest = 1,
		.id = 1,
		.nr_groups = PROTOCOL_GROUPS };
	char text[PROTOCOL_MESSAGE_MAX + 2];
	struct protocol_message read;
	const char *why;
	size_t length;

	memset(m.software, 'x', PROTOCOL_TEXT - 1);
	memset(m.why, '"', PROTOCOL_TEXT - 1);
	m.active_anon = m.inactive_anon = m.active_file = m.inactive_file = UINT64_MAX;
	m.total = m.free = m.available = m.refaults = m.swapins = m.floor = UINT64_MAX;
	m.cold_file = m.cold_anon = UINT64_MAX;
	m.workingset = m.need = m.bytes = m.deadline_ms = m.swap_free = UINT64_MAX;
	for (unsigned int i = 0; i < PROTOCOL_GROUPS; i++) {
		memset(m.groups[i].name, 'a', PROTOCOL_TEXT - 1);
		m.groups[i].active = m.groups[i].inactive = UINT64_MAX;
		m.groups[i].refaults = m.groups[i].psi = UINT64_MAX;
	}
	length = protocol_format(&m, text);
	ck_assert_uint_le(length, PROTOCOL_MESSAGE_MAX + 1);
	ck_assert_int_eq(protocol_parse(text, length - 1, &read, &why), 0);
	ck_assert_uint_gt(read.nr_groups, 0);
	ck_assert_uint_lt(read.nr_groups, PROTOCOL_GROUPS);
	ck_assert_uint_eq(read.floor, PROTOCOL_NUMBER_MAX);
}
END_TEST

START_TEST(what_is_not_known_is_passed_over)
{
	struct protocol_message m;

	ck_assert_int_eq(
		parse("{\"type\":\"stop\",\"new\":{\"a\":[1,{\"b\":2}]},\"id\":7}", &m), 0);
	ck_assert_int_eq(m.type, PROTOCOL_STOP);
	ck_assert_uint_eq(m.id, 7);
	ck_assert_int_eq(parse("{\"type\":\"hello\",\"oldest\":1,\"newest\":9,"
			       "\"can\":[\"lists\",\"fly\"]}",
				 &m),
		0);
	ck_assert_uint_eq(m.can, PROTOCOL_CAN_LISTS);
}
END_TEST

static const char *const refused[] = {
	"",
	"7",
	"[]",
	"{}",
	"{\"type\":\"stop\"",
	"{\"type\":\"stop\"}",
	"{\"type\":\"stop\",\"id\":0}",
	"{\"type\":\"stop\",\"id\":-1}",
	"{\"type\":\"stop\",\"id\":1.5}",
	"{\"type\":\"stop\",\"id\":1e3}",
	"{\"type\":\"stop\",\"id\":\"1\"}",
	"{\"type\":\"stop\",\"id\":01}",
	"{\"type\":\"stop\",\"id\":1,\"id\":2}",
	"{\"type\":\"stop\",\"id\":1}{}",
	"{\"type\":\"stop\",\"id\":9223372036854775808}",
	"{\"type\":\"nothing\"}",
	"{\"type\":\"stop\",\"type\":\"stop\",\"id\":1}",
	"{\"type\":\"report\",\"active_file\":-4096}",
	"{\"type\":\"report\",\"active_file\":9223372036854775808}",
	"{\"type\":\"report\",\"groups\":[{\"name\":\"x\"}]}",
	"{\"type\":\"report\",\"groups\":[1,2,3,4,5,6,7,8,9]}",
	"{\"type\":\"report\",\"groups\":{}}",
	"{\"type\":\"report\",\"estimated\":1}",
	"{\"type\":\"hello\",\"oldest\":2,\"newest\":1}",
	"{\"type\":\"hello\",\"oldest\":1,\"newest\":1,\"can\":{}}",
	"{\"type\":\"report\",\"floor\"}",
	"{\"type\":\"report\",7:8}",
};

START_TEST(message_with_anything_wrong_is_refused_and_nothing_is_written)
{
	struct protocol_message m, before;

	memset(&m, 0x55, sizeof(m));
	before = m;
	ck_assert_int_eq(parse(refused[_i], &m), -1);
	ck_assert_mem_eq(&m, &before, sizeof(m));
}
END_TEST

START_TEST(truncated_anywhere_it_is_refused)
{
	static const char whole[] = "{\"type\":\"reclaim\",\"id\":3,\"bytes\":4096,"
				    "\"deadline_ms\":1000,\"anon\":false}";
	struct protocol_message m;
	const char *why;

	ck_assert_int_eq(protocol_parse(whole, sizeof(whole) - 1, &m, &why), 0);
	for (size_t length = 0; length < sizeof(whole) - 1; length++)
		ck_assert_int_eq(protocol_parse(whole, length, &m, &why), -1);
}
END_TEST

START_TEST(deep_and_many_tokens_are_refused)
{
	char line[PROTOCOL_MESSAGE_MAX];
	struct protocol_message m;
	const char *why;

	memset(line, '[', sizeof(line));
	ck_assert_int_eq(protocol_parse(line, sizeof(line), &m, &why), -1);
	memset(line, ',', sizeof(line));
	ck_assert_int_eq(protocol_parse(line, sizeof(line), &m, &why), -1);
	memset(line, '0', sizeof(line));
	ck_assert_int_eq(protocol_parse(line, sizeof(line), &m, &why), -1);
}
END_TEST

START_TEST(text_holds_only_what_may_be_shown)
{
	struct protocol_message m;

	ck_assert_int_eq(parse("{\"type\":\"error\",\"why\":\"a\\u001b\x1b[2J\xc3\xa4\"}", &m), 0);
	for (const char *c = m.why; *c; c++)
		ck_assert(*c >= ' ' && *c <= '~' && *c != '"' && *c != '\\');
}
END_TEST

START_TEST(lines_come_out_of_bytes_however_they_are_cut)
{
	static const char bytes[] = "\n\nfirst\nsecond\n\nhalf";

	for (size_t piece = 1; piece < sizeof(bytes); piece++) {
		struct protocol_lines lines = { 0 };
		char seen[64] = "";

		for (size_t at = 0; at < sizeof(bytes) - 1; at += piece) {
			const char *data = bytes + at;
			size_t size = sizeof(bytes) - 1 - at;

			size = size < piece ? size : piece;
			while (protocol_take(&lines, &data, &size) == PROTOCOL_LINE) {
				strncat(seen, lines.line, lines.length);
				strcat(seen, ";");
			}
			ck_assert_uint_eq(size, 0);
		}
		ck_assert_str_eq(seen, "first;second;");
	}
}
END_TEST

START_TEST(line_that_is_too_long_is_passed_over_and_told_once)
{
	struct protocol_lines lines = { 0 };
	char bytes[4096];
	const char *data;
	size_t size;

	memset(bytes, '9', sizeof(bytes));
	for (int i = 0; i < 1000; i++) {
		data = bytes;
		size = sizeof(bytes);
		ck_assert_int_eq(protocol_take(&lines, &data, &size), PROTOCOL_LINE_NONE);
	}
	data = "\nnext\n";
	size = strlen(data);
	ck_assert_int_eq(protocol_take(&lines, &data, &size), PROTOCOL_LINE_LONG);
	ck_assert_int_eq(protocol_take(&lines, &data, &size), PROTOCOL_LINE);
	ck_assert_uint_eq(lines.length, 4);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("protocol");
	TCase *tc = tcase_create("protocol");

	tcase_add_test(tc, report_is_read_as_it_was_written);
	tcase_add_test(tc, largest_report_fits_and_leaves_out_groups);
	tcase_add_test(tc, what_is_not_known_is_passed_over);
	tcase_add_loop_test(tc, message_with_anything_wrong_is_refused_and_nothing_is_written, 0,
		sizeof(refused) / sizeof(refused[0]));
	tcase_add_test(tc, truncated_anywhere_it_is_refused);
	tcase_add_test(tc, deep_and_many_tokens_are_refused);
	tcase_add_test(tc, text_holds_only_what_may_be_shown);
	tcase_add_test(tc, lines_come_out_of_bytes_however_they_are_cut);
	tcase_add_test(tc, line_that_is_too_long_is_passed_over_and_told_once);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
