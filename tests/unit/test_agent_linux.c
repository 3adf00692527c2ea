/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent's Linux platform on trees of files as kernels show them. */
#include <config.h>

#include "guest-agent/linux.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static char root[SCRATCH_PATH], proc[128], cgroup[128], lows[128];
static struct linux_platform platform;
static struct agent_group groups[AGENT_GROUPS];

static void put(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void read_text(const char *folder, const char *name, char *text, size_t size)
{
	char path[256];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	fclose(f);
}

static void folder(const char *above, const char *name, char *ret_path)
{
	snprintf(ret_path, 128, "%.60s/%.60s", above, name);
	ck_assert_int_eq(mkdir(ret_path, 0700), 0);
}

static void group(const char *above, const char *name, const char *stat)
{
	char path[128];

	folder(above, name, path);
	put(path, "memory.stat", stat);
	put(path, "cgroup.events", "populated 1\nfrozen 0\n");
	put(path, "memory.low", "0\n");
	put(path, "memory.reclaim", "");
	put(path, "memory.pressure",
		"some avg10=1.50 avg60=0 avg300=0 total=123456\nfull avg10=0 avg60=0 avg300=0 "
		"total=99\n");
}

static const char meminfo[] = "MemTotal: 4194304 kB\nMemFree: 1000 kB\nMemAvailable: 3000000 kB\n"
			      "Active(anon): 10 kB\nInactive(anon): 20 kB\nActive(file): 30 kB\n"
			      "Inactive(file): 40 kB\nSwapFree: 0 kB\nSReclaimable: 50 kB\n";

static void setup(void)
{
	scratch_new(root);
	folder(root, "proc", proc);
	folder(root, "cgroup", cgroup);
	snprintf(lows, sizeof(lows), "%s/lows", root);
	put(proc, "meminfo", meminfo);
}

static void start(void)
{
	ck_assert_int_eq(linux_start(&platform, proc, cgroup, lows), 0);
}

static struct agent_guest guest(void)
{
	struct agent_guest g;

	ck_assert_int_eq(platform.table.guest(&platform, &g), 0);
	return g;
}

START_TEST(old_kernel_without_available_is_estimated_and_never_above_its_total)
{
	struct agent_guest g;

	put(proc, "meminfo",
		"MemTotal: 4194304 kB\nMemFree: 2985428 kB\nBuffers: 0 kB\nCached: 1104392 kB\n"
		"Active(file): 440720 kB\nInactive(file): 261196 kB\nShmem: 402476 kB\n"
		"SReclaimable: 15592 kB\n");
	start();
	g = guest();
	ck_assert(g.estimated);
	ck_assert_uint_eq(g.available, 3702936 * KIB);
	put(proc, "meminfo", "MemTotal: 1000 kB\nMemFree: 900 kB\nCached: 900 kB\n");
	ck_assert_uint_eq(guest().available, 1000 * KIB);
}
END_TEST

/* Lines in another order, unknown ones, without unit, CRLF, without a last newline. */
static const char *const shuffled[] = {
	"MemFree: 5 kB\nMemAvailable: 7 kB\nMemTotal: 9 kB\n",
	"MemTotal: 9 kB\nNew: 1 kB\nMemFree: 5 kB\nMemFreeX: 8 kB\nMemAvailable: 7 kB\n",
	"HugePages_Total: 3\nMemAvailable:\t7 kB\nMemTotal:9 kB\nMemFree:      5 kB",
	"MemTotal: 9 kB\r\nMemFree: 5 kB\r\nMemAvailable: 7 kB\r\n",
};

START_TEST(meminfo_is_read_by_name_wherever_a_line_stands)
{
	struct agent_guest g;

	put(proc, "meminfo", shuffled[_i]);
	start();
	g = guest();
	ck_assert_uint_eq(g.total, 9 * KIB);
	ck_assert_uint_eq(g.free, 5 * KIB);
	ck_assert_uint_eq(g.available, 7 * KIB);
	ck_assert(!g.estimated);
}
END_TEST

START_TEST(total_is_read_anew_each_time)
{
	start();
	put(proc, "meminfo", "MemTotal: 1782579 kB\nMemFree: 1 kB\nMemAvailable: 2 kB\n");
	ck_assert_uint_eq(guest().total, 1782579 * KIB);
	put(proc, "meminfo", "MemTotal: 6291456 kB\nMemFree: 1 kB\nMemAvailable: 2 kB\n");
	ck_assert_uint_eq(guest().total, 6291456 * KIB);
}
END_TEST

START_TEST(meminfo_that_is_garbage_is_no_guest)
{
	struct agent_guest g;

	start();
	put(proc, "meminfo", "\xff\xfe nothing\n");
	ck_assert_int_lt(platform.table.guest(&platform, &g), 0);
	put(proc, "meminfo", "");
	ck_assert_int_lt(platform.table.guest(&platform, &g), 0);
}
END_TEST

START_TEST(groups_are_the_leaves_with_their_own_figures)
{
	char inner[128];
	size_t nr, a;

	group(cgroup, "a",
		"active_file 4096\ninactive_file 8192\nworkingset_refault_file 3\n"
		"workingset_restore_file 2\n");
	folder(cgroup, "slice", inner);
	put(inner, "memory.stat", "active_file 999999\n");
	group(inner, "b", "inactive_anon 4096\n");
	start();
	nr = platform.table.groups(&platform, groups, AGENT_GROUPS);
	ck_assert_uint_eq(nr, 2);
	a = strcmp(groups[0].name, "a") ? 1 : 0;
	ck_assert_str_eq(groups[a].name, "a");
	ck_assert_str_eq(groups[1 - a].name, "slice/b");
	ck_assert_uint_eq(groups[a].active_file, 4096);
	ck_assert_uint_eq(groups[a].inactive_file, 8192);
	ck_assert_uint_eq(groups[a].refaults, 3 * 4096);
	ck_assert_uint_eq(groups[a].restores, 2 * 4096);
	ck_assert_uint_eq(groups[a].psi_some_us, 123456);
	ck_assert_uint_eq(groups[1 - a].inactive_anon, 4096);
	ck_assert(platform.table.can & PROTOCOL_CAN_GROUPS);
	ck_assert(platform.table.can & PROTOCOL_CAN_RECLAIM);
}
END_TEST

START_TEST(guest_without_groups_is_one_and_without_reclaim_says_so)
{
	start();
	ck_assert_uint_eq(platform.table.groups(&platform, groups, AGENT_GROUPS), 1);
	ck_assert_str_eq(groups[0].name, "/");
	ck_assert_uint_eq(groups[0].inactive_file, 40 * KIB);
	ck_assert(!(platform.table.can & (PROTOCOL_CAN_RECLAIM | PROTOCOL_CAN_GROUPS)));
	ck_assert(platform.table.can & PROTOCOL_CAN_LISTS);
	ck_assert(!(platform.table.can & PROTOCOL_CAN_PRESSURE));
	put(cgroup, "memory.reclaim", "");
	start();
	ck_assert(platform.table.can & PROTOCOL_CAN_RECLAIM);
}
END_TEST

START_TEST(of_more_groups_than_are_looked_at_the_largest_count)
{
	char name[32], stat[64];
	size_t nr;

	for (int i = 0; i < AGENT_GROUPS + 40; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		snprintf(stat, sizeof(stat), "inactive_file %d\n", 4096 * (i + 1));
		group(cgroup, name, stat);
	}
	start();
	nr = platform.table.groups(&platform, groups, AGENT_GROUPS);
	ck_assert_uint_eq(nr, AGENT_GROUPS);
	for (size_t i = 0; i < nr; i++)
		ck_assert_uint_gt(groups[i].inactive_file, 4096 * 40);
}
END_TEST

START_TEST(only_the_leaf_is_written_and_without_anonymous_pages)
{
	char a[160], text[64];
	uint64_t came;

	group(cgroup, "a", "inactive_file 409600\npgsteal 7\n");
	put(cgroup, "memory.reclaim", "untouched");
	start();
	platform.table.groups(&platform, groups, AGENT_GROUPS);
	ck_assert_int_eq(platform.table.reclaim(&platform, &groups[0], 131072, false, &came), 0);
	snprintf(a, sizeof(a), "%s/a", cgroup);
	read_text(a, "memory.reclaim", text, sizeof(text));
	ck_assert_str_eq(text, "131072 swappiness=0");
	read_text(cgroup, "memory.reclaim", text, sizeof(text));
	ck_assert_str_eq(text, "untouched");
	ck_assert_uint_eq(came, 0); /* no counter moved */
}
END_TEST

START_TEST(protection_is_put_back_also_by_the_next_start_after_a_kill)
{
	char a[160], text[64];

	group(cgroup, "a", "active_file 409600\n");
	start();
	platform.table.groups(&platform, groups, AGENT_GROUPS);
	snprintf(a, sizeof(a), "%s/a", cgroup);
	ck_assert_int_eq(platform.table.protect(&platform, &groups[0], true), 0);
	read_text(a, "memory.low", text, sizeof(text));
	ck_assert_int_eq(strncmp(text, "409600", 6), 0);
	start(); /* as after SIGKILL */
	read_text(a, "memory.low", text, sizeof(text));
	ck_assert_int_eq(text[0], '0');
	platform.table.groups(&platform, groups, AGENT_GROUPS);
	put(a, "memory.low", "5000\n"); /* its owner's */
	ck_assert_int_lt(platform.table.protect(&platform, &groups[0], true), 0);
	read_text(a, "memory.low", text, sizeof(text));
	ck_assert_str_eq(text, "5000\n");
}
END_TEST

/* Inactive file first: 1370939392 inactive beside 661635072 active are 280858 pages of cold. */
START_TEST(inactive_cache_of_a_throttled_group_is_cold_to_the_page)
{
	char a[160], text[64];
	static struct agent agent;
	static const char ask[] = "{\"type\":\"hello\",\"oldest\":1,\"newest\":1}\n"
				  "{\"type\":\"reclaim\",\"id\":1,\"bytes\":99000000000,"
				  "\"deadline_ms\":60000}\n";

	group(cgroup, "a", "inactive_file 1370939392\nactive_file 661635072\n");
	start();
	agent_start(&agent, &platform.table, &platform);
	agent_input(&agent, ask, sizeof(ask) - 1);
	/* The first batch is bounded by time, and by what is cold. */
	agent_step(&agent);
	snprintf(a, sizeof(a), "%s/a", cgroup);
	read_text(a, "memory.reclaim", text, sizeof(text));
	ck_assert_uint_le(strtoull(text, NULL, 10), UINT64_C(280858) * 4096);
	ck_assert_uint_gt(strtoull(text, NULL, 10), 0);
	agent_stop(&agent);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("agent_linux");
	TCase *tc = tcase_create("linux");

	scratch_begin();
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, old_kernel_without_available_is_estimated_and_never_above_its_total);
	tcase_add_loop_test(tc, meminfo_is_read_by_name_wherever_a_line_stands, 0,
		sizeof(shuffled) / sizeof(shuffled[0]));
	tcase_add_test(tc, total_is_read_anew_each_time);
	tcase_add_test(tc, meminfo_that_is_garbage_is_no_guest);
	tcase_add_test(tc, groups_are_the_leaves_with_their_own_figures);
	tcase_add_test(tc, guest_without_groups_is_one_and_without_reclaim_says_so);
	tcase_add_test(tc, of_more_groups_than_are_looked_at_the_largest_count);
	tcase_add_test(tc, only_the_leaf_is_written_and_without_anonymous_pages);
	tcase_add_test(tc, protection_is_put_back_also_by_the_next_start_after_a_kill);
	tcase_add_test(tc, inactive_cache_of_a_throttled_group_is_cold_to_the_page);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
