/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hv/hv.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

static const char text[] = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";

START_TEST(uuid_is_read_and_written_in_its_one_form)
{
	char written[HV_UUID_TEXT];
	struct hv_uuid uuid, upper;

	ck_assert_int_eq(hv_uuid_parse(text, &uuid), 0);
	ck_assert_uint_eq(uuid.bytes[0], 0x6b);
	ck_assert_uint_eq(uuid.bytes[15], 0xc8);
	hv_uuid_format(&uuid, written);
	ck_assert_str_eq(written, text);
	ck_assert_int_eq(hv_uuid_parse("6BA7B810-9DAD-11D1-80B4-00C04FD430C8", &upper), 0);
	ck_assert(hv_uuid_equal(&uuid, &upper));
	upper.bytes[15]++;
	ck_assert(!hv_uuid_equal(&uuid, &upper));
}
END_TEST

START_TEST(what_is_no_uuid_is_refused_wherever_it_ends)
{
	static const char *const bad[] = {
		"6ba7b8109dad11d180b400c04fd430c8",
		"6ba7b810-9dad-11d1-80b4-00c04fd430c8 ",
		"6ba7b810-9dad-11d1-80b4-00c04fd430cg",
		"6ba7b810-9dad-11d1-80b400-c04fd430c8",
		"{6ba7b810-9dad-11d1-80b4-00c04fd430c}",
	};
	struct hv_uuid uuid = { { 1 } };
	char *cut;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(hv_uuid_parse(bad[i], &uuid), -EINVAL);
	for (size_t length = 0; length < sizeof(text) - 1; length++) {
		cut = strndup(text, length); /* so that a read behind its end is seen */
		ck_assert_int_eq(hv_uuid_parse(cut, &uuid), -EINVAL);
		free(cut);
	}
	ck_assert_uint_eq(uuid.bytes[0], 1);
}
END_TEST

START_TEST(event_that_was_cleared_is_none_and_may_be_cleared_again)
{
	struct hv_event listed = { .type = HV_EVENT_LISTED, .message = strdup("why") };
	struct hv_event info = { .type = HV_EVENT_INFO };
	struct hv_event process = { .type = HV_EVENT_PROCESS };
	struct hv_event failed = { .type = HV_EVENT_LISTED, .error = -EIO };

	listed.listed.vms = calloc(2, sizeof(*listed.listed.vms));
	listed.listed.vms[0].name = strdup("a");
	listed.listed.nr = 2;
	info.info.name = strdup("a");
	info.info.metadata.group = strdup("/a");
	info.info.partition = strdup("/b");
	info.info.problem = strdup("c");
	process.process.vms = calloc(1, sizeof(*process.process.vms));
	hv_event_clear(&listed);
	hv_event_clear(&listed);
	hv_event_clear(&info);
	hv_event_clear(&process);
	hv_event_clear(&failed);
	ck_assert_int_eq(listed.type, HV_EVENT_NONE);
	ck_assert_int_eq(info.type, HV_EVENT_NONE);
	ck_assert_ptr_null(info.info.name);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hv");
	TCase *tc = tcase_create("hv");

	tcase_add_test(tc, uuid_is_read_and_written_in_its_one_form);
	tcase_add_test(tc, what_is_no_uuid_is_refused_wherever_it_ends);
	tcase_add_test(tc, event_that_was_cleared_is_none_and_may_be_cleared_again);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
