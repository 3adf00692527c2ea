/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a terminal may be shown. */
#include <config.h>

#include "common/text.h"

#include <check.h>
#include <string.h>

#include "tests/unit/suite.h"

static const struct {
	const char *text, *shown; /* shown NULL: as it is */
} cases[] = {
	{ "", NULL },
	{ "web1", NULL },
	{ "ä日本語 \xf0\x9f\x90\xa7 e\xcc\x81", NULL }, /* letters, an emoji, a combining accent */
	{ "a\\x1bb", NULL },				/* made printable before */
	{ "\x1b[2J", "\\x1b[2J" },
	{ "a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f" },
	/* What terminals obey as they do ESC [ and ESC ]. */
	{ "\xc2\x9b"
	  "2J",
		"\\u009b2J" },
	{ "\xc2\x80\xc2\x9f\xc2\xa0", "\\u0080\\u009f\xc2\xa0" },
	/* Directions: marks, embeddings, overrides, isolates. */
	{ "\xe2\x80\xae"
	  "cba",
		"\\u202ecba" },
	{ "\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "\\u200e\\u200f\\u061c" },
	{ "\xe2\x81\xa6\xe2\x81\xa9", "\\u2066\\u2069" },
	/* Nothing to see, and the ends of lines that are none. */
	{ "a\xe2\x80\x8b"
	  "b\xef\xbb\xbf",
		"a\\u200bb\\ufeff" },
	{ "\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029" },
	{ "\xf3\xa0\x80\x81", "\\U000e0001" },
	/* No UTF-8: alone, cut off, too long, a surrogate, too large. */
	{ "\x9b"
	  "2J",
		"\\x9b2J" },
	{ "\xe2\x80", "\\xe2\\x80" },
	{ "\xc0\xaf", "\\xc0\\xaf" },
	{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },
	{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
};

#define NR_CASES (int)(sizeof(cases) / sizeof(cases[0]))

START_TEST(what_speaks_to_a_terminal_is_escaped)
{
	const char *text = cases[_i].text, *shown = cases[_i].shown ? cases[_i].shown : text;
	char buf[64], again[64];

	ck_assert_uint_le(strlen(shown), strlen(text) * TEXT_GROWTH);
	ck_assert_str_eq(text_printable(text, buf, sizeof(buf)), shown);
	ck_assert_int_eq(text_is_printable(text), !cases[_i].shown);
	ck_assert(text_is_printable(buf));
	ck_assert_str_eq(text_printable(buf, again, sizeof(again)), buf);
}
END_TEST

START_TEST(text_is_cut_at_whole_characters)
{
	char buf[8];

	ck_assert_str_eq(text_printable("abc\x1b", buf, 8), "abc\\x1b");
	ck_assert_str_eq(text_printable("abc\x1b", buf, 7), "abc");
	ck_assert_str_eq(text_printable("ab\xe6\x97\xa5", buf, 5), "ab");
	ck_assert_str_eq(text_printable("ab\xe6\x97\xa5", buf, 6), "ab\xe6\x97\xa5");
	ck_assert_str_eq(text_printable("abc", buf, 1), "");
	buf[0] = 'x';
	text_printable("abc", buf, 0);
	ck_assert_int_eq(buf[0], 'x');
}
END_TEST

START_TEST(utf8_is_told_from_other_bytes)
{
	ck_assert(text_is_utf8(""));
	ck_assert(text_is_utf8("\x1b\xc2\x9b\xe6\x97\xa5"));
	ck_assert(!text_is_utf8("caf\xe9"));
	ck_assert(!text_is_utf8("\xe6\x97"));
}
END_TEST

START_TEST(what_is_no_utf8_is_taken_out)
{
	static const char *const mended[][2] = { { "", "" }, { "caf\xc3\xa9", "caf\xc3\xa9" },
		{ "caf\xc3", "caf" }, { "ab\xe6\x97 c", "ab c" }, { "\xff\xfe", "" },
		{ "a\xe9"
		  "b\x80",
			"ab" } };
	char text[16];

	for (size_t i = 0; i < sizeof(mended) / sizeof(mended[0]); i++) {
		strcpy(text, mended[i][0]);
		text_mend(text);
		ck_assert_str_eq(text, mended[i][1]);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("text");
	TCase *tc = tcase_create("text");

	tcase_add_loop_test(tc, what_speaks_to_a_terminal_is_escaped, 0, NR_CASES);
	tcase_add_test(tc, text_is_cut_at_whole_characters);
	tcase_add_test(tc, utf8_is_told_from_other_bytes);
	tcase_add_test(tc, what_is_no_utf8_is_taken_out);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
