/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hv/pool.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#define KIB UINT64_C(1024)
#define GIB (UINT64_C(1) << 30)

static char folder[SCRATCH_PATH], path[SCRATCH_PATH + 8];

static void setup(void)
{
	scratch_new(folder);
	snprintf(path, sizeof(path), "%s/file", folder);
}

static void put_bytes(const char *text, size_t length)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(text, 1, length, file), length);
	ck_assert_int_eq(fclose(file), 0);
}

static int read_text(const char *text, struct hv_host *host)
{
	put_bytes(text, strlen(text));
	return pool_read_meminfo(path, host);
}

static void assert_refused(const char *text)
{
	struct hv_host host = { .total = 17 };

	ck_assert_msg(read_text(text, &host) == -EBADMSG, "%s", text);
	ck_assert_uint_eq(host.total, 17);
}

/* BR-09: a line more or less, in any place, must not matter. */
static const char *const whole[] = {
	"MemTotal:       16777216 kB",
	"MemFree:          524288 kB",
	"MemAvailable:    9437184 kB",
	"Buffers:               0 kB",
	"SomethingNew:   12345678 kB",
	"SomethingElse",
	"HugePages_Total:     512",
	"HugePages_Free:      512",
	"Hugepagesize:       2048 kB",
	"DirectMap4k:      204800 kB",
};

#define NR_WHOLE (sizeof(whole) / sizeof(whole[0]))

START_TEST(meminfo_is_read_by_name_in_any_order_and_line_ending)
{
	static const char *const endings[] = { "\n", "\r\n" };
	char text[2048];

	for (unsigned int seed = 0; seed < 200; seed++) {
		size_t order[NR_WHOLE], length = 0;
		struct hv_host host;

		srand(seed);
		for (size_t i = 0; i < NR_WHOLE; i++) {
			size_t j = (size_t)rand() % (i + 1);

			order[i] = order[j];
			order[j] = i;
		}
		for (size_t i = 0; i < NR_WHOLE; i++)
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
				whole[order[i]], endings[seed % 2]);
		if (seed % 3 == 0) /* without a final newline */
			length -= strlen(endings[seed % 2]);
		put_bytes(text, length);
		ck_assert_int_eq(pool_read_meminfo(path, &host), 0);
		ck_assert(host.known);
		ck_assert_uint_eq(host.total, 15 * GIB);
		ck_assert_uint_eq(host.available, 9 * GIB);
	}
}
END_TEST

START_TEST(size_without_unit_is_kib)
{
	struct hv_host host;

	ck_assert_int_eq(read_text("MemTotal: 1000\nMemAvailable: 500\n", &host), 0);
	ck_assert_uint_eq(host.total, 1000 * KIB);
	ck_assert_uint_eq(host.available, 500 * KIB);
}
END_TEST

START_TEST(memory_that_is_free_is_not_looked_at)
{
	/* BR-53: 16 GiB, half a GiB free, 9 GiB available. */
	struct hv_host host;

	ck_assert_int_eq(read_text("MemTotal: 16777216 kB\nMemFree: 524288 kB\n"
				   "MemAvailable: 9437184 kB\n",
				 &host),
		0);
	ck_assert_uint_eq(host.available, 9 * GIB);
}
END_TEST

START_TEST(nothing_available_is_a_value)
{
	struct hv_host host;

	ck_assert_int_eq(
		read_text("MemTotal: 16777216 kB\nMemAvailable: 0 kB\nSwapTotal: 0 kB\n", &host),
		0);
	ck_assert(host.known);
	ck_assert_uint_eq(host.available, 0);
}
END_TEST

START_TEST(absurd_or_garbled_meminfo_is_refused)
{
	static const char *const texts[] = {
		"",
		"\n\n\n",
		"MemTotal: 0 kB\nMemAvailable: 0 kB\n", /* BR-131 */
		"MemTotal: 100 kB\nMemAvailable: 101 kB\n",
		"MemTotal: 100 kB\n", /* kernels before 3.14 */
		"MemAvailable: 100 kB\n",
		"MemTotal: 100 kB\nMemAvailable:\n",
		"MemTotal: 100 kB\nMemAvailable: kB\n",
		"MemTotal: 100 kB\nMemAvailable: -1 kB\n",
		"MemTotal: 100 kB\nMemAvailable: 5 MB\n",
		"MemTotal: 100 kB\nMemAvailable: 5 kB 6\n",
		"MemTotal: 100 kB\nMemAvailable: 0x5 kB\n",
		"MemTotal: 18446744073709551615 kB\nMemAvailable: 5 kB\n",
		"MemTotal: 99999999999999999999999 kB\nMemAvailable: 5 kB\n",
		"MemTotal: 100 kB\nMemTotal: 100 kB\nMemAvailable: 5 kB\n",
		"MemTotal: 4096 kB\nMemAvailable: 5 kB\nHugePages_Total: 2\n",
		"MemTotal: 4096 kB\nMemAvailable: 5 kB\nHugePages_Total: 2\nHugepagesize: 0 kB\n",
		"MemTotal: 4096 kB\nMemAvailable: 5 kB\nHugePages_Total: 2\nHugepagesize: 2048 "
		"kB\n",
		"MemTotal: 4096 kB\nMemAvailable: 5 kB\nHugePages_Total: 3\nHugepagesize: 2048 "
		"kB\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_refused(texts[i]);
}
END_TEST

START_TEST(huge_page_lines_may_be_missing)
{
	struct hv_host host;

	ck_assert_int_eq(
		read_text("MemTotal: 4096 kB\nMemAvailable: 5 kB\nHugePages_Total: 0\n", &host), 0);
	ck_assert_uint_eq(host.total, 4096 * KIB);
}
END_TEST

START_TEST(endless_meminfo_is_read_to_a_bound)
{
	size_t size = 200 * 1024;
	char *text = malloc(size);
	struct hv_host host;
	int length = snprintf(text, size, "MemTotal: 4096 kB\nMemAvailable: 5 kB\n");

	memset(text + length, 'x', size - (size_t)length);
	put_bytes(text, size);
	ck_assert_int_eq(pool_read_meminfo(path, &host), 0);

	/* A line that the bound cuts through is no line. */
	memset(text, '\n', size);
	memcpy(text, "MemTotal: 4096 kB\n", 18);
	memcpy(text + 64 * 1024 - 15, "MemAvailable: 4096 kB\n", 22);
	put_bytes(text, size);
	ck_assert_int_eq(pool_read_meminfo(path, &host), -EBADMSG);
	free(text);
}
END_TEST

START_TEST(meminfo_with_nul_bytes_is_no_trouble)
{
	static const char text[] =
		"Mem\0Total: 1 kB\nMemTotal: 4096 kB\n\0\0\nMemAvailable: 5 kB\n";
	struct hv_host host;

	put_bytes(text, sizeof(text));
	ck_assert_int_eq(pool_read_meminfo(path, &host), 0);
	ck_assert_uint_eq(host.total, 4096 * KIB);
}
END_TEST

START_TEST(file_that_cannot_be_read_says_why)
{
	struct hv_host host;

	ck_assert_int_eq(pool_read_meminfo("/nowhere/meminfo", &host), -ENOENT);
	ck_assert_int_eq(pool_read_meminfo("/", &host), -EISDIR);
}
END_TEST

START_TEST(pressure_trigger_is_written)
{
	char text[64] = "";
	FILE *file;
	int fd = -1;

	put_bytes("some avg10=0.00\n", 16);
	ck_assert_int_eq(pool_open_psi(path, 100000, 1000000, &fd), 0);
	ck_assert_int_ge(fd, 0);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
	fclose(file);
	ck_assert_str_eq(text, "some 100000 1000000");
}
END_TEST

START_TEST(kernel_without_pressure_figures_is_told)
{
	int fd = -1;

	/* BR-100 */
	ck_assert_int_eq(pool_open_psi("/nowhere/memory", 100000, 1000000, &fd), -ENOENT);
	put_bytes("", 0);
	ck_assert_int_eq(pool_open_psi(path, 100000, 1000000, &fd), -EBADMSG);
	put_bytes("som", 3);
	ck_assert_int_eq(pool_open_psi(path, 100000, 1000000, &fd), -EBADMSG);
	ck_assert_int_eq(fd, -1);
}
END_TEST

/* As ZFS on Linux 2.1 has it, shortened. */
#define ARC(size, c_min)                                                                           \
	"13 1 0x01 123 33456 4242 99\nname                            type data\n"                 \
	"hits                            4    12\nc                               4    9\n"        \
	"c_min                           4    " c_min                                              \
	"\nc_max                           4    8589934592\n"                                      \
	"size                            4    " size "\ncompressed_size                 4    77\n"

static uint64_t with_arc(const char *text)
{
	struct hv_host host = { .known = true, .total = 16 * GIB, .available = 9 * GIB };

	put_bytes(text, strlen(text));
	pool_add_arc(path, &host);
	ck_assert_uint_eq(host.total, 16 * GIB);
	return host.available;
}

/* BR-51: ZFS's cache gives way as page cache does, down to its minimum, and is no VM's fault. */
START_TEST(arc_above_its_minimum_counts_as_available)
{
	ck_assert_uint_eq(with_arc(ARC("4294967296", "1073741824")), 12 * GIB);
	ck_assert_uint_eq(with_arc(ARC("1073741824", "1073741824")), 9 * GIB);
	ck_assert_uint_eq(with_arc(ARC("536870912", "1073741824")), 9 * GIB);
	/* The files are not of one moment. */
	ck_assert_uint_eq(with_arc(ARC("17179869184", "0")), 16 * GIB);
}
END_TEST

START_TEST(host_without_zfs_or_with_garbage_for_it_has_what_meminfo_says)
{
	static const char *const bad[] = { "", "size", "size 4\n", "size 4 9\n", "c_min 4 9\n",
		ARC("-1", "0"), ARC("x", "1"), ARC("99999999999999999999999", "1") };
	struct hv_host host = { .known = true, .total = 16 * GIB, .available = 9 * GIB };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_uint_eq(with_arc(bad[i]), 9 * GIB);
	pool_add_arc("/nowhere/arcstats", &host);
	ck_assert_uint_eq(host.available, 9 * GIB);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pool");
	TCase *tc = tcase_create("pool");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, meminfo_is_read_by_name_in_any_order_and_line_ending);
	tcase_add_test(tc, size_without_unit_is_kib);
	tcase_add_test(tc, memory_that_is_free_is_not_looked_at);
	tcase_add_test(tc, nothing_available_is_a_value);
	tcase_add_test(tc, absurd_or_garbled_meminfo_is_refused);
	tcase_add_test(tc, huge_page_lines_may_be_missing);
	tcase_add_test(tc, endless_meminfo_is_read_to_a_bound);
	tcase_add_test(tc, meminfo_with_nul_bytes_is_no_trouble);
	tcase_add_test(tc, file_that_cannot_be_read_says_why);
	tcase_add_test(tc, pressure_trigger_is_written);
	tcase_add_test(tc, kernel_without_pressure_figures_is_told);
	tcase_add_test(tc, arc_above_its_minimum_counts_as_available);
	tcase_add_test(tc, host_without_zfs_or_with_garbage_for_it_has_what_meminfo_says);
	suite_add_tcase(suite, tc);
	scratch_begin();
	return suite_run(suite);
}
