/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The file that makes a pause outlive the daemon. */
#include <config.h>

#include "hv/ballastd/pauses.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#define UUID "6ba7b810-9dad-11d1-80b4-00c04fd430c8"

static char dir[SCRATCH_PATH], path[sizeof(dir) + 16];
static struct core *core;
static char why[300];

static struct core *new_core(void)
{
	static const struct hv_backend backend = { .name = "none", .granule = 4096 };
	struct core_config config;
	struct core *made = NULL;

	core_config_default(&config);
	ck_assert_int_eq(core_new(&config, &backend, &made), 0);
	return made;
}

static void setup(void)
{
	scratch_new(dir);
	snprintf(path, sizeof(path), "%s/" PAUSES_FILE, dir);
	core = new_core();
	why[0] = '\0';
}

static void teardown(void)
{
	core_free(core);
}

static void put(const char *text, size_t length)
{
	FILE *file = fopen(path, "w");

	fwrite(text, 1, length, file);
	fclose(file);
}

static void restart(void)
{
	core_free(core);
	core = new_core();
}

static size_t nr_vms(void)
{
	const struct hv_uuid *uuids;

	return core_paused_vms(core, &uuids);
}

START_TEST(without_a_file_nothing_is_paused)
{
	ck_assert_int_eq(pauses_load(dir, core, why, sizeof(why)), 0);
	ck_assert(!core_paused(core));
	ck_assert_uint_eq(nr_vms(), 0);
}
END_TEST

START_TEST(what_is_paused_is_paused_after_a_crash)
{
	struct hv_uuid uuid;
	const struct hv_uuid *uuids;

	hv_uuid_parse(UUID, &uuid);
	ck_assert_int_eq(core_pause_vm(core, &uuid, true), 0);
	ck_assert_int_eq(pauses_save(dir, core, why, sizeof(why)), 0);
	restart();
	ck_assert_int_eq(pauses_load(dir, core, why, sizeof(why)), 0);
	ck_assert(!core_paused(core));
	ck_assert_uint_eq(core_paused_vms(core, &uuids), 1);
	ck_assert(hv_uuid_equal(uuids, &uuid));
	core_pause(core, true);
	ck_assert_int_eq(pauses_save(dir, core, why, sizeof(why)), 0);
	restart();
	ck_assert_int_eq(pauses_load(dir, core, why, sizeof(why)), 0);
	ck_assert(core_paused(core));
	ck_assert_uint_eq(nr_vms(), 1);
}
END_TEST

START_TEST(with_nothing_paused_there_is_no_file)
{
	core_pause(core, true);
	ck_assert_int_eq(pauses_save(dir, core, why, sizeof(why)), 0);
	ck_assert_int_eq(access(path, F_OK), 0);
	core_pause(core, false);
	ck_assert_int_eq(pauses_save(dir, core, why, sizeof(why)), 0);
	ck_assert_int_ne(access(path, F_OK), 0);
	ck_assert_int_eq(pauses_save(dir, core, why, sizeof(why)), 0);
}
END_TEST

static const struct {
	const char *text;
	size_t length;
} bad[] = {
	{ "", 0 }, { "garbage\n", 8 }, { "ballast-paused 1\n", 17 }, /* cut off */
	{ "ballast-paused 1\n" UUID, 17 + 36 },			     /* within a line */
	{ "ballast-paused 2\nend\n", 21 },			     /* another version */
	{ "ballast-paused 1\nweb1\nend\n", 26 },		     /* no UUID */
	{ "ballast-paused 1\nend\nall\n", 25 },			     /* more behind the end */
	{ "ballast-paused 1\n\0\nend\n", 23 },			     /* a 0 */
};

START_TEST(a_damaged_file_pauses_everything_and_says_so)
{
	put(bad[_i].text, bad[_i].length);
	ck_assert_int_eq(pauses_load(dir, core, why, sizeof(why)), -EBADMSG);
	ck_assert(core_paused(core));
	ck_assert_ptr_nonnull(strstr(why, path));
}
END_TEST

START_TEST(a_file_that_cannot_be_read_pauses_everything)
{
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_lt(pauses_load(dir, core, why, sizeof(why)), 0);
	ck_assert(core_paused(core));
	ck_assert_ptr_nonnull(strstr(why, "cannot be read"));
	/* And what cannot be written is told; the pause is in force all the same. */
	ck_assert_int_lt(pauses_save(dir, core, why, sizeof(why)), 0);
	ck_assert_ptr_nonnull(strstr(why, "cannot be written"));
	rmdir(path);
}
END_TEST

START_TEST(a_file_that_is_far_too_large_pauses_everything)
{
	size_t length = 8 << 20;
	char *text = malloc(length);

	memset(text, 'x', length);
	put(text, length);
	free(text);
	ck_assert_int_eq(pauses_load(dir, core, why, sizeof(why)), -EBADMSG);
	ck_assert(core_paused(core));
}
END_TEST

/* A pause file that is larger than one may be would pause everything at the next start. */
START_TEST(no_more_can_be_paused_than_the_file_holds)
{
	struct hv_uuid uuid = { 0 };
	unsigned int nr = 0;
	int r;

	do {
		uuid.bytes[13] = (uint8_t)(nr >> 16);
		uuid.bytes[14] = (uint8_t)(nr >> 8);
		uuid.bytes[15] = (uint8_t)nr;
		r = core_pause_vm(core, &uuid, true);
	} while (r == 0 && ++nr <= 65536);
	ck_assert_int_eq(r, -ENOSPC);
	ck_assert_uint_eq(nr, 65536);
	ck_assert_uint_eq(nr_vms(), 65536);
	core_pause(core, true);
	ck_assert_int_eq(pauses_save(dir, core, why, sizeof(why)), 0);
	restart();
	ck_assert_int_eq(pauses_load(dir, core, why, sizeof(why)), 0);
	ck_assert_uint_eq(nr_vms(), 65536);
	/* One resumed makes room for one. */
	uuid.bytes[13] = 0;
	ck_assert_int_eq(core_pause_vm(core, &uuid, false), 0);
	ck_assert_uint_eq(nr_vms(), 65535);
	uuid.bytes[0] = 1;
	ck_assert_int_eq(core_pause_vm(core, &uuid, true), 0);
}
END_TEST

/* Whatever order they are paused and resumed in, each is found. */
START_TEST(pauses_are_found_in_any_order_of_coming_and_going)
{
	static const uint8_t order[] = { 5, 1, 9, 3, 7, 0, 8, 2, 6, 4 };
	const size_t nr = sizeof(order);
	struct hv_uuid uuid = { 0 };

	for (size_t i = 0; i < nr; i++) {
		uuid.bytes[0] = order[i];
		ck_assert_int_eq(core_pause_vm(core, &uuid, true), 0);
		ck_assert_int_eq(core_pause_vm(core, &uuid, true), 0);
		ck_assert_uint_eq(nr_vms(), i + 1);
	}
	for (size_t i = 0; i < nr; i++) {
		uuid.bytes[0] = order[nr - 1 - i];
		ck_assert_int_eq(core_pause_vm(core, &uuid, false), 0);
		ck_assert_int_eq(core_pause_vm(core, &uuid, false), 0);
		ck_assert_uint_eq(nr_vms(), nr - 1 - i);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pauses");
	TCase *tc = tcase_create("pauses");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, without_a_file_nothing_is_paused);
	tcase_add_test(tc, what_is_paused_is_paused_after_a_crash);
	tcase_add_test(tc, with_nothing_paused_there_is_no_file);
	tcase_add_loop_test(
		tc, a_damaged_file_pauses_everything_and_says_so, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tc, a_file_that_cannot_be_read_pauses_everything);
	tcase_add_test(tc, a_file_that_is_far_too_large_pauses_everything);
	tcase_add_test(tc, no_more_can_be_paused_than_the_file_holds);
	tcase_add_test(tc, pauses_are_found_in_any_order_of_coming_and_going);
	suite_add_tcase(suite, tc);
	scratch_begin();
	return suite_run(suite);
}
