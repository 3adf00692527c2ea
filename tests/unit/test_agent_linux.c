/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent's Linux platform on trees of files as kernels show them. */
#include <config.h>

#include "guest-agent/linux.h"

#include <check.h>
#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static char root[SCRATCH_PATH], proc[128], sys[128], cgroup[128], notes[128];
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
	ck_assert_int_lt(snprintf(ret_path, 128, "%s/%s", above, name), 128);
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
	folder(root, "sys", sys);
	folder(root, "cgroup", cgroup);
	snprintf(notes, sizeof(notes), "%s/notes", root);
	put(proc, "meminfo", meminfo);
}

static void start(void)
{
	ck_assert_int_eq(
		linux_start(&platform,
			&(const struct linux_paths){
				.proc = proc, .sys = sys, .cgroup = cgroup, .notes = notes }),
		0);
}

static struct agent_guest guest(void)
{
	struct agent_guest g;

	ck_assert_int_eq(platform.table.guest(&platform, &g), 0);
	return g;
}

START_TEST(BR_07_old_kernel_without_available_is_estimated_and_never_above_its_total)
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

START_TEST(BR_56_total_is_read_anew_each_time)
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

START_TEST(group_whose_children_have_no_memory_controller_is_the_leaf)
{
	char path[128], inner[128];

	group(cgroup, "service", "inactive_file 8192\n");
	snprintf(path, sizeof(path), "%.60s/service", cgroup);
	folder(path, "threads", inner);
	start();
	ck_assert_uint_eq(platform.table.groups(&platform, groups, AGENT_GROUPS), 1);
	ck_assert_str_eq(groups[0].name, "service");
	ck_assert_uint_eq(groups[0].inactive_file, 8192);
}
END_TEST

/* One of another page size counts in its own. */
START_TEST(counters_of_pages_are_told_in_the_kernels_own_pages)
{
	group(cgroup, "a", "workingset_refault_file 3\nworkingset_restore_file 2\npgsteal 7\n");
	put(proc, "vmstat", "pswpin 5\nworkingset_refault_file 4\n");
	start();
	ck_assert_uint_eq(platform.page, (uint64_t)sysconf(_SC_PAGESIZE));
	platform.page = 64 * KIB;
	ck_assert_uint_eq(guest().swapins, 5 * 64 * KIB);
	ck_assert_uint_eq(guest().refaults, 4 * 64 * KIB);
	ck_assert_uint_eq(platform.table.groups(&platform, groups, AGENT_GROUPS), 1);
	ck_assert_uint_eq(groups[0].refaults, 3 * 64 * KIB);
	ck_assert_uint_eq(groups[0].restores, 2 * 64 * KIB);
}
END_TEST

START_TEST(no_sum_of_counters_is_more_than_can_be_told)
{
	put(proc, "vmstat",
		"workingset_refault_file 9223372036854775807\n"
		"workingset_refault_anon 9223372036854775807\n"
		"workingset_refault 9223372036854775807\n");
	start();
	ck_assert_uint_eq(guest().refaults, PROTOCOL_NUMBER_MAX);
}
END_TEST

/* A folder below, so deep that its path is just one that may be opened, and its files' are not. */
static void deep_group(const char *above, const char *name)
{
	char path[700];
	size_t length = (size_t)snprintf(path, sizeof(path), "%s/%s/", above, name);
	FILE *f;

	ck_assert_uint_lt(length, LINUX_PATH - 10);
	memset(path + length, 'y', LINUX_PATH - 5 - length);
	path[LINUX_PATH - 5] = '\0';
	ck_assert_int_eq(mkdir(path, 0700), 0);
	strcat(path, "/memory.stat");
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs("active_file 4096\n", f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

/* A child that is hidden, whose figures cannot be read, or whose path or files' are too long. */
START_TEST(group_with_a_child_that_is_not_looked_at_is_no_leaf)
{
	char a[160], path[600], name[241];

	memset(name, 'x', 240);
	name[240] = '\0';
	group(cgroup, "a", "active_file 4096\n");
	put(cgroup, "memory.reclaim", "");
	snprintf(a, sizeof(a), "%s/a", cgroup);
	snprintf(path, sizeof(path), "%s/%s", a, _i == 0 ? ".b" : _i == 1 ? "b" : name);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	if (_i == 3)
		deep_group(a, name);
	else if (_i == 1)
		strcat(path, "/memory.stat");
	else if (_i == 2)
		strcat(strcat(path, "/"), name);
	if (_i == 1 || _i == 2)
		ck_assert_int_eq(mkdir(path, 0700), 0);
	start();
	/* Nor is the root the one group. */
	ck_assert_uint_eq(platform.table.groups(&platform, groups, AGENT_GROUPS), 0);
	group(cgroup, "c", "active_file 4096\n");
	ck_assert_uint_eq(platform.table.groups(&platform, groups, AGENT_GROUPS), 1);
	ck_assert_str_eq(groups[0].name, "c");
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

START_TEST(only_the_leaf_is_written_and_pages_of_one_kind_go)
{
	char a[160], text[64];
	uint64_t came;

	group(cgroup, "a", "inactive_file 409600\npgsteal 7\n");
	put(cgroup, "memory.reclaim", "untouched");
	start();
	platform.table.groups(&platform, groups, AGENT_GROUPS);
	ck_assert_int_eq(platform.table.reclaim(&platform, &groups[0], 131072, _i, &came), 0);
	snprintf(a, sizeof(a), "%s/a", cgroup);
	read_text(a, "memory.reclaim", text, sizeof(text));
	ck_assert_str_eq(text, _i ? "131072 swappiness=200" : "131072 swappiness=0");
	read_text(cgroup, "memory.reclaim", text, sizeof(text));
	ck_assert_str_eq(text, "untouched");
	ck_assert_uint_eq(came, 0); /* no counter moved */
}
END_TEST

/* Takes one number and nothing else, as memory.reclaim did at first. */
#define ONE_NUMBER "/proc/self/timerslack_ns"

static void old_reclaim(const char *folder)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/memory.reclaim", folder);
	unlink(path);
	ck_assert_int_eq(symlink(ONE_NUMBER, path), 0);
}

static void swap_free(const char *kib)
{
	char text[512];

	snprintf(text, sizeof(text), "%.*sSwapFree: %s kB\n",
		(int)(strstr(meminfo, "SwapFree") - meminfo), meminfo, kib);
	put(proc, "meminfo", text);
}

/* Events of one kind that follow each other are one: each opening is told as well. */
static unsigned int nr_written(int fd)
{
	_Alignas(struct inotify_event) char data[1024];
	ssize_t n = read(fd, data, sizeof(data));
	unsigned int nr = 0;

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const void *)(data + at);

		nr += !!(e->mask & IN_CLOSE_WRITE);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	return nr;
}

START_TEST(kernel_without_swappiness_keeps_anonymous_pages_by_the_swap_limit)
{
	char a[160], path[192], text[64];
	int fd = inotify_init1(IN_NONBLOCK);
	uint64_t came;

	group(cgroup, "a", "inactive_file 409600\n");
	snprintf(a, sizeof(a), "%s/a", cgroup);
	put(a, "memory.swap.current", "8192\n");
	put(a, "memory.swap.max", "max\n");
	old_reclaim(a);
	swap_free(_i ? "1000" : "0");
	start();
	ck_assert(platform.table.can & PROTOCOL_CAN_RECLAIM);
	platform.table.groups(&platform, groups, AGENT_GROUPS);
	snprintf(path, sizeof(path), "%s/memory.swap.max", a);
	ck_assert_int_ge(inotify_add_watch(fd, path, IN_OPEN | IN_CLOSE_WRITE), 0);
	ck_assert_int_eq(platform.table.reclaim(&platform, &groups[0], 131072, false, &came), 0);
	read_text("/proc/self", "timerslack_ns", text, sizeof(text));
	ck_assert_str_eq(text, "131072\n");
	/* Set for the time of the batch, and put back. */
	ck_assert_uint_eq(nr_written(fd), _i ? 2 : 0);
	read_text(a, "memory.swap.max", text, sizeof(text));
	ck_assert_str_eq(text, _i ? "max" : "max\n");
	close(fd);
}
END_TEST

/* A guest without groups: the root has no swap limit. */
START_TEST(where_nothing_keeps_anonymous_pages_from_swap_no_reclaim_is_offered)
{
	put(cgroup, "memory.reclaim", "");
	swap_free("1000");
	start();
	ck_assert(platform.table.can & PROTOCOL_CAN_RECLAIM);
	old_reclaim(cgroup);
	start();
	ck_assert(!(platform.table.can & PROTOCOL_CAN_RECLAIM));
	swap_free("0");
	guest();
	ck_assert(platform.table.can & PROTOCOL_CAN_RECLAIM);
	swap_free("1000");
	guest();
	ck_assert(!(platform.table.can & PROTOCOL_CAN_RECLAIM));
}
END_TEST

/* ---- protection ---- */

static void knob(const char *group_name, const char *expected)
{
	char path[160], text[64];

	snprintf(path, sizeof(path), "%s/%s", cgroup, group_name);
	read_text(path, "memory.low", text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	ck_assert_str_eq(text, expected);
}

static int protect(const char *name)
{
	size_t nr = platform.table.groups(&platform, groups, AGENT_GROUPS);

	for (size_t i = 0; i < nr; i++)
		if (!strcmp(groups[i].name, name))
			return platform.table.protect(&platform, &groups[i]);
	ck_abort_msg("no group %s", name);
	return 0;
}

/* An inner group with two leaves, one of them deeper. */
static void nested(const char *low)
{
	char slice[128], deep[128];

	folder(cgroup, "slice", slice);
	put(slice, "memory.stat", "");
	put(slice, "memory.low", low);
	put(slice, "memory.reclaim", "untouched");
	group(slice, "a", "active_file 409600\n");
	folder(slice, "deep", deep);
	put(deep, "memory.stat", "");
	put(deep, "memory.low", "0\n");
	group(deep, "b", "active_file 4096\n");
}

START_TEST(protection_is_put_back_also_by_the_next_start_after_a_kill)
{
	group(cgroup, "a", "active_file 409600\n");
	start();
	ck_assert_int_eq(protect("a"), 0);
	knob("a", "409600");
	if (_i)
		start(); /* as after SIGKILL */
	else
		platform.table.unprotect(&platform);
	knob("a", "0");
	ck_assert_int_eq(access(notes, F_OK), -1);
}
END_TEST

START_TEST(all_above_a_protected_group_get_the_sum_and_then_what_they_had)
{
	nested("8192\n");
	start();
	ck_assert_int_eq(protect("slice/a"), 0);
	knob("slice", "417792");
	ck_assert_int_eq(protect("slice/deep/b"), 0);
	knob("slice", "421888");
	knob("slice/deep", "4096");
	knob("slice/deep/b", "4096");
	ck_assert_int_eq(protect("slice/a"), 0); /* it is already */
	knob("slice", "421888");
	if (_i)
		start();
	else
		platform.table.unprotect(&platform);
	knob("slice", "8192");
	knob("slice/deep", "0");
	knob("slice/deep/b", "0");
	knob("slice/a", "0");
}
END_TEST

START_TEST(what_is_above_and_protected_without_end_is_left)
{
	nested("max\n");
	start();
	ck_assert_int_eq(protect("slice/a"), 0);
	knob("slice", "max");
	knob("slice/a", "409600");
}
END_TEST

START_TEST(owners_protection_is_left_and_so_is_what_he_writes_meanwhile)
{
	char a[160];

	group(cgroup, "a", "active_file 409600\n");
	snprintf(a, sizeof(a), "%s/a", cgroup);
	put(a, "memory.low", "5000\n");
	start();
	ck_assert_int_lt(protect("a"), 0);
	knob("a", "5000");
	put(a, "memory.low", "0\n");
	ck_assert_int_eq(protect("a"), 0);
	put(a, "memory.low", "7000\n");
	platform.table.unprotect(&platform);
	knob("a", "7000");
}
END_TEST

/* The second of three files cannot be read. */
START_TEST(protection_that_fails_on_the_way_up_leaves_nothing)
{
	char path[160];

	nested("0\n");
	snprintf(path, sizeof(path), "%s/slice/memory.low", cgroup);
	ck_assert_int_eq(unlink(path), 0);
	start();
	ck_assert_int_lt(protect("slice/deep/b"), 0);
	knob("slice/deep", "0");
	knob("slice/deep/b", "0");
	ck_assert_int_eq(access(notes, F_OK), -1);
}
END_TEST

/* A note that is longer than the agent's buffer. */
START_TEST(sixty_groups_with_long_names_are_put_back_by_the_next_start)
{
	char long_name[61], above[128], name[16];
	size_t nr;

	memset(long_name, 'x', 60);
	long_name[60] = '\0';
	folder(cgroup, long_name, above);
	put(above, "memory.stat", "");
	put(above, "memory.low", "0\n");
	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "%d", i);
		group(above, name, "active_file 4096\n");
	}
	start();
	nr = platform.table.groups(&platform, groups, AGENT_GROUPS);
	for (size_t i = 0; i < nr; i++)
		ck_assert_int_eq(platform.table.protect(&platform, &groups[i]), 0);
	knob(long_name, "245760");
	start();
	knob(long_name, "0");
	for (int i = 0; i < 60; i++) {
		snprintf(above, sizeof(above), "%s/%d", long_name, i);
		knob(above, "0");
	}
}
END_TEST

/* Killed after it noted what is above its second group, and before it wrote that. */
START_TEST(group_above_is_put_back_wherever_between_two_writes_the_agent_was_killed)
{
	char slice[160];

	nested("8192\n");
	start();
	ck_assert_int_eq(protect("slice/a"), 0);
	ck_assert_int_eq(protect("slice/deep/b"), 0);
	snprintf(slice, sizeof(slice), "%s/slice", cgroup);
	put(slice, "memory.low", _i ? "421888\n" : "417792\n");
	start();
	knob("slice", "8192");
	ck_assert_int_eq(access(notes, F_OK), -1);
}
END_TEST

/* In its place is what can neither be read nor written. */
START_TEST(what_cannot_be_put_back_stays_noted_and_is_put_back_as_soon_as_it_can)
{
	char a[160], path[192];

	group(cgroup, "a", "active_file 409600\n");
	snprintf(a, sizeof(a), "%s/a", cgroup);
	snprintf(path, sizeof(path), "%s/memory.low", a);
	start();
	ck_assert_int_eq(protect("a"), 0);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	if (_i)
		start(); /* as after SIGKILL */
	ck_assert_int_lt(platform.table.unprotect(&platform), 0);
	ck_assert_int_eq(access(notes, F_OK), 0);
	ck_assert_int_eq(rmdir(path), 0);
	put(a, "memory.low", "409600\n");
	ck_assert_int_eq(platform.table.unprotect(&platform), 0);
	knob("a", "0");
	ck_assert_int_eq(access(notes, F_OK), -1);
}
END_TEST

START_TEST(of_a_group_that_has_gone_nothing_is_put_back)
{
	char path[192];

	group(cgroup, "a", "active_file 409600\n");
	start();
	ck_assert_int_eq(protect("a"), 0);
	snprintf(path, sizeof(path), "%s/a/memory.low", cgroup);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(platform.table.unprotect(&platform), 0);
	ck_assert_int_eq(access(notes, F_OK), -1);
	ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

/* Hostile or broken: nothing but what the agent writes is put back, and only in its tree. */
START_TEST(note_that_says_something_else_changes_nothing)
{
	char a[160], text[1024], read[64];

	group(cgroup, "a", "");
	snprintf(a, sizeof(a), "%s/a", cgroup);
	put(a, "memory.max", "5\n");
	put(root, "memory.low", "5\n");
	snprintf(text, sizeof(text),
		"memory.max 0 5 %s\nmemory.low 1 5 %s\nmemory.low 1 5 %s/../\nmemory.low 1\n", a,
		root, cgroup);
	put(root, "notes", text);
	start();
	read_text(a, "memory.max", read, sizeof(read));
	ck_assert_str_eq(read, "5\n");
	read_text(root, "memory.low", read, sizeof(read));
	ck_assert_str_eq(read, "5\n");
}
END_TEST

/* A kernel whose memory.reclaim takes no swappiness, killed in the middle of a batch. */
START_TEST(swap_limit_of_a_killed_agent_is_put_back_by_the_next)
{
	char a[160], text[512];

	group(cgroup, "a", "");
	snprintf(a, sizeof(a), "%s/a", cgroup);
	put(a, "memory.swap.max", "4096\n");
	snprintf(text, sizeof(text), "memory.swap.max max 4096 %s\n", a);
	put(root, "notes", text);
	start();
	read_text(a, "memory.swap.max", text, sizeof(text));
	ck_assert_str_eq(text, "max");
}
END_TEST

START_TEST(group_above_is_never_reclaimed)
{
	char slice[160], text[64];
	uint64_t came;
	size_t nr;

	nested("0\n");
	start();
	nr = platform.table.groups(&platform, groups, AGENT_GROUPS);
	ck_assert_uint_eq(nr, 2);
	for (size_t i = 0; i < nr; i++)
		platform.table.reclaim(&platform, &groups[i], 131072, false, &came);
	snprintf(slice, sizeof(slice), "%s/slice", cgroup);
	read_text(slice, "memory.reclaim", text, sizeof(text));
	ck_assert_str_eq(text, "untouched");
}
END_TEST

/* ---- generations ---- */

static char lru[128], debug[128];

static void generations(const char *enabled)
{
	char kernel[128], mm[128];

	folder(sys, "kernel", kernel);
	folder(kernel, "mm", mm);
	folder(mm, "lru_gen", lru);
	folder(kernel, "debug", debug);
	put(lru, "enabled", enabled);
}

/* As Linux 6.1 shows them: group, node, then sequence, age in ms, anonymous and file pages. */
static const char sizes[] = "memcg     1 /\n node     0\n"
			    "          0      10000          0         900 \n"
			    "          1       9000          0         800 \n"
			    "          2       8000         10         700 \n"
			    "          3       7000         20         600 \n"
			    "memcg    12 /slice/a\n node     0\n"
			    "          4      10000          1         100 \n"
			    "          5       9000          2         200 \n"
			    "          6       8000          4         400 \n"
			    "          7       7000          8         800 \n"
			    " node     1\n"
			    "          0       9000          0           3 \n"
			    "          1       8000          0           5 \n"
			    "          2       7000          0           7 \n"
			    "memcg    13 /slice/deep/b\n node     0\n"
			    "         10       8000          0         999 \n"
			    "         11       7000          0         999 \n"
			    "memcg    14 /somebody/elses\n node     0\n"
			    "          0      10000          1         100 \n"
			    "          1      10000          1         100 \n"
			    "          2      10000          1         100 \n";

START_TEST(old_is_what_is_older_than_the_two_youngest_generations_of_each_node)
{
	size_t nr, a;

	nested("0\n");
	generations("0x0007\n");
	put(debug, "lru_gen", sizes);
	start();
	ck_assert_uint_eq(guest().aging, AGENT_GENERATIONS);
	ck_assert(platform.table.can & PROTOCOL_CAN_GENERATIONS);
	ck_assert(!(platform.table.can & (PROTOCOL_CAN_LISTS | PROTOCOL_CAN_PROBES)));
	nr = platform.table.groups(&platform, groups, AGENT_GROUPS);
	ck_assert_uint_eq(nr, 2);
	a = strcmp(groups[0].name, "slice/a") ? 1 : 0;
	ck_assert_uint_eq(groups[a].old_file, (100 + 200 + 3) * 4 * KIB);
	ck_assert_uint_eq(groups[a].old_anon, (1 + 2) * 4 * KIB);
	ck_assert_uint_eq(groups[1 - a].old_file, 0);
}
END_TEST

START_TEST(guest_without_groups_has_the_generations_of_the_root)
{
	generations("0x0007\n");
	put(debug, "lru_gen", sizes);
	start();
	platform.table.groups(&platform, groups, AGENT_GROUPS);
	ck_assert_uint_eq(groups[0].old_file, (900 + 800) * 4 * KIB);
}
END_TEST

START_TEST(generations_of_thousands_of_groups_are_read_in_parts_of_the_buffer)
{
	static char text[200000];
	size_t at = 0;

	group(cgroup, "a", "");
	generations("y\n");
	put(lru, "enabled", "0x0003\n");
	for (int i = 0; i < 2000; i++)
		at += (size_t)snprintf(
			text + at, sizeof(text) - at, "memcg %5d /other/%d\n node     0\n", i, i);
	snprintf(text + at, sizeof(text) - at, "%s",
		"memcg 9 /a\n node 0\n0 9 0 5 \n1 8 0 0 \n2 7 0 0 \n");
	put(debug, "lru_gen", text);
	start();
	platform.table.groups(&platform, groups, AGENT_GROUPS);
	ck_assert_uint_eq(groups[0].old_file, 5 * 4 * KIB);
}
END_TEST

START_TEST(generations_that_cannot_be_read_are_probed_and_switched_off_ones_are_lists)
{
	generations("0x0007\n");
	start();
	ck_assert_uint_eq(guest().aging, AGENT_PROBES);
	ck_assert(platform.table.can & PROTOCOL_CAN_PROBES);
	ck_assert(!(platform.table.can & (PROTOCOL_CAN_LISTS | PROTOCOL_CAN_GENERATIONS)));
	put(lru, "enabled", "0x0000\n"); /* while it runs */
	ck_assert_uint_eq(guest().aging, AGENT_LISTS);
	ck_assert(platform.table.can & PROTOCOL_CAN_LISTS);
	ck_assert(!(platform.table.can & (PROTOCOL_CAN_PROBES | PROTOCOL_CAN_GENERATIONS)));
}
END_TEST

START_TEST(generations_that_are_garbage_make_nothing_old)
{
	group(cgroup, "a", "");
	generations("0x0007\n");
	put(debug, "lru_gen",
		"memcg 1 /a\n node 0\n0 1 2\n x\n1 1 1 99999999999999999999\n\n\nmemcg\nnode");
	start();
	platform.table.groups(&platform, groups, AGENT_GROUPS);
	ck_assert_uint_eq(groups[0].old_file, 0);
}
END_TEST

/* ---- the balloon ---- */

/* A device of each kind: a console, and a balloon with bit 2 of its features set. */
static void balloon(const char *features)
{
	char bus[128], virtio[128], devices[128], one[128];

	folder(sys, "bus", bus);
	folder(bus, "virtio", virtio);
	folder(virtio, "devices", devices);
	folder(devices, "virtio0", one);
	put(one, "device", "0x0003\n");
	put(one, "features", "111111\n");
	folder(devices, "virtio1", one);
	put(one, "device", "0x0005\n");
	put(one, "features", features);
}

/* 4 GiB with a balloon of 1 GiB, of which 2 GiB are used otherwise: counted either way. */
START_TEST(BR_OVZ_guest_is_the_same_whether_its_balloon_counts_as_used_or_as_gone)
{
	static const char rest[] = "MemFree: 524288 kB\nMemAvailable: 1048576 kB\n"
				   "Active(file): 262144 kB\nInactive(file): 262144 kB\n"
				   "SReclaimable: 0 kB\n";
	char text[512];
	struct agent_guest g;

	balloon(_i ? "0110\n" : "0100\n");
	snprintf(text, sizeof(text), "MemTotal: %d kB\n%s", _i ? 4194304 : 3145728, rest);
	put(proc, "meminfo", text);
	put(proc, "vmstat", "balloon_inflate 300000\nballoon_deflate 37856\n");
	start();
	g = guest();
	ck_assert_uint_eq(g.total, 3072 * MIB);
	ck_assert_uint_eq(g.available, 1024 * MIB);
	ck_assert_uint_eq(g.total - g.free - g.active_file - g.inactive_file, 2048 * MIB);
}
END_TEST

/* ---- pressure ---- */

static const struct {
	const char *text;
	bool tells;
} pressures[] = {
	{ "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\nfull avg10=0.00 total=1\n", true },
	{ "some avg10=0.00", false },
	{ "", false },
};

START_TEST(BR_100_pressure_that_is_cut_short_or_empty_is_not_told)
{
	char path[128];

	folder(proc, "pressure", path);
	put(path, "memory", pressures[_i].text);
	start();
	ck_assert_int_eq(!!(platform.table.can & PROTOCOL_CAN_PRESSURE), pressures[_i].tells);
	ck_assert_uint_eq(guest().psi_some_us, pressures[_i].tells ? 5 : 0);
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
	tcase_add_test(
		tc, BR_07_old_kernel_without_available_is_estimated_and_never_above_its_total);
	tcase_add_loop_test(tc, meminfo_is_read_by_name_wherever_a_line_stands, 0,
		sizeof(shuffled) / sizeof(shuffled[0]));
	tcase_add_test(tc, BR_56_total_is_read_anew_each_time);
	tcase_add_test(tc, meminfo_that_is_garbage_is_no_guest);
	tcase_add_test(tc, groups_are_the_leaves_with_their_own_figures);
	tcase_add_test(tc, group_whose_children_have_no_memory_controller_is_the_leaf);
	tcase_add_test(tc, counters_of_pages_are_told_in_the_kernels_own_pages);
	tcase_add_test(tc, no_sum_of_counters_is_more_than_can_be_told);
	tcase_add_loop_test(tc, group_with_a_child_that_is_not_looked_at_is_no_leaf, 0, 4);
	tcase_add_test(tc, guest_without_groups_is_one_and_without_reclaim_says_so);
	tcase_add_test(tc, of_more_groups_than_are_looked_at_the_largest_count);
	tcase_add_loop_test(tc, only_the_leaf_is_written_and_pages_of_one_kind_go, 0, 2);
	tcase_add_loop_test(
		tc, kernel_without_swappiness_keeps_anonymous_pages_by_the_swap_limit, 0, 2);
	tcase_add_test(tc, where_nothing_keeps_anonymous_pages_from_swap_no_reclaim_is_offered);
	tcase_add_test(tc, group_above_is_never_reclaimed);
	tcase_add_loop_test(tc, protection_is_put_back_also_by_the_next_start_after_a_kill, 0, 2);
	tcase_add_loop_test(
		tc, all_above_a_protected_group_get_the_sum_and_then_what_they_had, 0, 2);
	tcase_add_test(tc, what_is_above_and_protected_without_end_is_left);
	tcase_add_test(tc, owners_protection_is_left_and_so_is_what_he_writes_meanwhile);
	tcase_add_test(tc, protection_that_fails_on_the_way_up_leaves_nothing);
	tcase_add_test(tc, sixty_groups_with_long_names_are_put_back_by_the_next_start);
	tcase_add_loop_test(
		tc, group_above_is_put_back_wherever_between_two_writes_the_agent_was_killed, 0, 2);
	tcase_add_loop_test(
		tc, what_cannot_be_put_back_stays_noted_and_is_put_back_as_soon_as_it_can, 0, 2);
	tcase_add_test(tc, of_a_group_that_has_gone_nothing_is_put_back);
	tcase_add_test(tc, note_that_says_something_else_changes_nothing);
	tcase_add_test(tc, swap_limit_of_a_killed_agent_is_put_back_by_the_next);
	tcase_add_test(tc, old_is_what_is_older_than_the_two_youngest_generations_of_each_node);
	tcase_add_test(tc, guest_without_groups_has_the_generations_of_the_root);
	tcase_add_test(tc, generations_of_thousands_of_groups_are_read_in_parts_of_the_buffer);
	tcase_add_test(
		tc, generations_that_cannot_be_read_are_probed_and_switched_off_ones_are_lists);
	tcase_add_test(tc, generations_that_are_garbage_make_nothing_old);
	tcase_add_loop_test(
		tc, BR_OVZ_guest_is_the_same_whether_its_balloon_counts_as_used_or_as_gone, 0, 2);
	tcase_add_loop_test(tc, BR_100_pressure_that_is_cut_short_or_empty_is_not_told, 0,
		sizeof(pressures) / sizeof(pressures[0]));
	tcase_add_test(tc, inactive_cache_of_a_throttled_group_is_cold_to_the_page);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
