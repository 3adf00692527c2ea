/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "common/size.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

static const struct {
	const char *text;
	int error;
	uint64_t bytes;
} cases[] = {
	/* BR-03: M and MB are two things. */
	{ "16384M", 0, UINT64_C(17179869184) },
	{ "16384MiB", 0, UINT64_C(17179869184) },
	{ "16384mib", 0, UINT64_C(17179869184) },
	{ "16384MB", 0, UINT64_C(16384000000) },
	{ "16384mb", 0, UINT64_C(16384000000) },
	{ "16384", -EINVAL, 0 },
	/* BR-04: the table of units. */
	{ "1KB", 0, 1000 },
	{ "1kb", 0, 1000 },
	{ "1k", 0, 1024 },
	{ "1K", 0, 1024 },
	{ "1KiB", 0, 1024 },
	{ "1kib", 0, 1024 },
	{ "1b", 0, 1 },
	{ "7bytes", 0, 7 },
	{ "7BYTES", 0, 7 },
	{ "1025b", 0, 1025 },
	{ "1G", 0, UINT64_C(1) << 30 },
	{ "1GiB", 0, UINT64_C(1) << 30 },
	{ "1GB", 0, UINT64_C(1000000000) },
	{ "1T", 0, UINT64_C(1099511627776) },
	{ "1TiB", 0, UINT64_C(1099511627776) },
	{ "1TB", 0, UINT64_C(1000000000000) },
	{ "1P", 0, UINT64_C(1) << 50 },
	{ "1PB", 0, UINT64_C(1000000000000000) },
	{ "1EiB", 0, UINT64_C(1) << 60 },
	{ "1EB", 0, UINT64_C(1000000000000000000) },
	{ "1kbs", -EINVAL, 0 },
	/* What is printed may be read back: one space, no more. */
	{ "2 GB", 0, UINT64_C(2000000000) },
	{ "256 MiB", 0, UINT64_C(268435456) },
	{ "2  GB", -EINVAL, 0 },
	{ "2 ", -EINVAL, 0 },
	{ " 2GB", -EINVAL, 0 },
	{ "2GB ", -EINVAL, 0 },
	{ "2\tGB", -EINVAL, 0 },
	/* 0 needs no unit, everything else does. */
	{ "0", 0, 0 },
	{ "00", 0, 0 },
	{ "0M", 0, 0 },
	{ "1", -EINVAL, 0 },
	{ "", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "-1M", -EINVAL, 0 },
	{ "+1M", -EINVAL, 0 },
	{ "on", -EINVAL, 0 },
	{ "max", -EINVAL, 0 },
	{ "none", -EINVAL, 0 },
	{ "2X", -EINVAL, 0 },
	{ "2 XiB", -EINVAL, 0 },
	{ "2GiBs", -EINVAL, 0 },
	{ "2GiB", 0, UINT64_C(2147483648) },
	{ "2Gi", -EINVAL, 0 },
	{ "M", -EINVAL, 0 },
	{ "1.5G", -EINVAL, 0 },
	{ "1,5G", -EINVAL, 0 },
	{ "0x10M", -EINVAL, 0 },
	{ "1e3M", -EINVAL, 0 },
	{ "1%", -EINVAL, 0 },
	/* The edge of 64 bit: never a wrapped value. */
	{ "9223372036854775807KiB", -ERANGE, 0 },
	{ "18446744073709551615b", 0, UINT64_MAX },
	{ "18446744073709551616b", -ERANGE, 0 },
	{ "18014398509481983KiB", 0, UINT64_MAX - 1023 },
	{ "18014398509481984KiB", -ERANGE, 0 },
	{ "15EiB", 0, UINT64_C(15) << 60 },
	{ "16EiB", -ERANGE, 0 },
	{ "99999999999T", -ERANGE, 0 },
	{ "100000000000000000000000b", -ERANGE, 0 },
	{ "100000000000000000000000", -EINVAL, 0 },
	{ "100000000000000000000000xyz", -EINVAL, 0 },
};

START_TEST(size_is_read_with_virsh_suffixes)
{
	uint64_t bytes = 4711;

	ck_assert_int_eq(size_parse(cases[_i].text, &bytes), cases[_i].error);
	/* Untouched on failure. */
	ck_assert_uint_eq(bytes, cases[_i].error ? 4711 : cases[_i].bytes);
}
END_TEST

START_TEST(error_names_the_suffix_to_use)
{
	char buf[200];

	ck_assert_str_eq(size_parse_error("16384", -EINVAL, buf, sizeof(buf)),
		"'16384' has no unit; write for example 16384MiB");
	ck_assert_ptr_nonnull(strstr(size_parse_error("1kbs", -EINVAL, buf, sizeof(buf)), "KiB"));
	ck_assert_ptr_nonnull(strstr(size_parse_error("", -EINVAL, buf, sizeof(buf)), "empty"));
	ck_assert_ptr_nonnull(
		strstr(size_parse_error("-1", -EINVAL, buf, sizeof(buf)), "negative"));
	ck_assert_ptr_nonnull(strstr(size_parse_error("on", -EINVAL, buf, sizeof(buf)), "512MiB"));
	ck_assert_ptr_nonnull(
		strstr(size_parse_error("1.5G", -EINVAL, buf, sizeof(buf)), "fraction"));
	ck_assert_ptr_nonnull(
		strstr(size_parse_error("16E", -ERANGE, buf, sizeof(buf)), "overflow"));
	ck_assert_ptr_nonnull(
		strstr(size_parse_error("2X", -EINVAL, buf, sizeof(buf)), "unknown unit"));
	ck_assert_ptr_nonnull(
		strstr(size_parse_error("max", -EINVAL, buf, sizeof(buf)), "'max' is no size"));
	ck_assert_ptr_nonnull(
		strstr(size_parse_error("99999999999T", -ERANGE, buf, sizeof(buf)), "overflow"));
	/* What is advised would be taken. */
	ck_assert_str_eq(size_parse_error("18446744073709551616", -EINVAL, buf, sizeof(buf)),
		"'18446744073709551616' has no unit; write for example 512MiB");
	ck_assert_str_eq(size_parse_error("1073741825", -EINVAL, buf, sizeof(buf)),
		"'1073741825' has no unit; write for example 512MiB");
	ck_assert_str_eq(size_parse_error("1073741824", -EINVAL, buf, sizeof(buf)),
		"'1073741824' has no unit; write for example 1073741824MiB");
	ck_assert_ptr_nonnull(
		strstr(size_parse_error("10%", -EINVAL, buf, sizeof(buf)), "is a percentage"));
	/* Cut, never written over the end. */
	memset(buf, 'x', sizeof(buf));
	size_parse_error("16384", -EINVAL, buf, 8);
	ck_assert_uint_eq(strlen(buf), 7);
	ck_assert_int_eq(buf[8], 'x');
}
END_TEST

static const struct {
	uint64_t bytes;
	const char *text, *exact;
} formats[] = {
	{ 0, "0 B", "0" },
	{ 1, "1 B", "1b" },
	{ 1023, "1023 B", "1023b" },
	{ 1024, "1 KiB", "1KiB" },
	{ 1025, "1 KiB", "1025b" },
	{ 4096, "4 KiB", "4KiB" },
	{ 268435456, "256 MiB", "256MiB" },
	{ UINT64_C(3) << 29, "1.5 GiB", "1536MiB" },
	{ (UINT64_C(1) << 30) + (UINT64_C(256) << 20), "1.25 GiB", "1280MiB" },
	{ (UINT64_C(1) << 30) + 11 * (UINT64_C(1) << 20), "1.01 GiB", "1035MiB" },
	{ UINT64_C(1) << 60, "1 EiB", "1EiB" },
	{ UINT64_MAX, "15.99 EiB", "18446744073709551615b" },
};

START_TEST(amount_over_a_pebibyte_is_refused)
{
	uint64_t bytes = 7;
	char why[160];

	ck_assert_int_eq(size_parse_amount("1PiB", &bytes), 0);
	ck_assert_uint_eq(bytes, SIZE_AMOUNT_MAX);
	ck_assert_int_eq(size_parse_amount("1125899906842625b", &bytes), -E2BIG);
	ck_assert_int_eq(size_parse_amount("9EiB", &bytes), -E2BIG);
	ck_assert_int_eq(size_parse_amount("99EiB", &bytes), -ERANGE);
	ck_assert_int_eq(size_parse_amount("9", &bytes), -EINVAL);
	ck_assert_uint_eq(bytes, SIZE_AMOUNT_MAX);
	ck_assert_str_eq(size_parse_error("2PiB", -E2BIG, why, sizeof(why)),
		"'2PiB' is more than 1 PiB, the most that is taken");
}
END_TEST

START_TEST(size_is_printed_in_binary_units)
{
	char buf[SIZE_TEXT];
	uint64_t bytes;

	ck_assert_str_eq(size_format(formats[_i].bytes, buf, sizeof(buf)), formats[_i].text);
	ck_assert_str_eq(size_format_exact(formats[_i].bytes, buf, sizeof(buf)), formats[_i].exact);
	ck_assert_int_eq(size_parse(buf, &bytes), 0);
	ck_assert_uint_eq(bytes, formats[_i].bytes);
}
END_TEST

START_TEST(negative_amounts_have_a_sign)
{
	char buf[SIZE_TEXT];

	ck_assert_str_eq(size_format_signed(-(INT64_C(3) << 29), buf, sizeof(buf)), "-1.5 GiB");
	ck_assert_str_eq(size_format_signed(0, buf, sizeof(buf)), "0 B");
	ck_assert_str_eq(size_format_signed(INT64_MIN, buf, sizeof(buf)), "-8 EiB");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("size");
	TCase *tc = tcase_create("size");

	tcase_add_loop_test(
		tc, size_is_read_with_virsh_suffixes, 0, sizeof(cases) / sizeof(cases[0]));
	tcase_add_test(tc, error_names_the_suffix_to_use);
	tcase_add_loop_test(
		tc, size_is_printed_in_binary_units, 0, sizeof(formats) / sizeof(formats[0]));
	tcase_add_test(tc, amount_over_a_pebibyte_is_refused);
	tcase_add_test(tc, negative_amounts_have_a_sign);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
