/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The QEMU processes' own figures, from a /proc made of files. */
#include <config.h>

#include "hv/libvirt/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "hv/libvirt/smaps.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#define KIB    1024ULL
#define MIB    (1024 * KIB)
#define SECOND 1000000ULL

#define UUID_A "00000000-0000-0000-0000-00000000000a"
#define UUID_B "00000000-0000-0000-0000-00000000000b"

static char proc[SCRATCH_PATH], cgroups[SCRATCH_PATH + 16], pids[SCRATCH_PATH + 16];
static struct processes *p;
static struct hv_uuid a, b;
static char name_a[] = "web", name_b[] = "db";

static void __attribute__((format(printf, 2, 3))) put(const char *name, const char *fmt, ...)
{
	char path[256];
	va_list args;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	va_start(args, fmt);
	vfprintf(file, fmt, args);
	va_end(args);
	fclose(file);
}

/* As another user's from now on. */
static unsigned int owner;

static void put_status(int pid, unsigned int rss_mib, unsigned int shmem_mib, unsigned int swap_mib)
{
	char name[32];

	snprintf(name, sizeof(name), "%d/status", pid);
	put(name,
		"Name:\tqemu\nState:\tS (sleeping)\nUid:\t%u\t%u\t%u\t%u\nVmSize:\t 9999999 "
		"kB\nVmRSS:\t%8u kB\n"
		"RssAnon:\t    1 kB\nRssShmem:\t%8u kB\nVmSwap:\t%8u kB\nThreads:\t4\n",
		owner, owner, owner, owner, rss_mib * 1024, shmem_mib * 1024, swap_mib * 1024);
}

/* One mapping of smaps; sizes in MiB. */
static int mapping(char *buf, uint64_t start, uint64_t size, const char *perms, uint64_t rss,
	uint64_t swap, const char *name)
{
	return sprintf(buf,
		"%" PRIx64 "-%" PRIx64 " %s 00000000 00:00 0 %s\n"
		"Size: %10" PRIu64 " kB\nKernelPageSize:        4 kB\nRss: %10" PRIu64 " kB\n"
		"Pss: 1 kB\nSwap: %10" PRIu64 " kB\nSwapPss: 0 kB\nTHPeligible: 1\n"
		"VmFlags: rd wr mr mw me ac \n",
		start, (uint64_t)(start + size * MIB), perms, name, size * 1024, rss * 1024,
		swap * 1024);
}

/* A process with 1 GiB of guest memory, and the mappings that a QEMU has beside it. */
static void put_smaps(
	int pid, uint64_t rss, uint64_t swap, const char *perms, const char *guest_name)
{
	char text[4096], name[32], *at = text;

	at += mapping(at, 0x550000000000, 18, "rw-p", 5, 1, "[heap]");
	at += mapping(at, 0x7f0000000000, 64, "rw-p", 3, 0, "");
	at += mapping(at, 0x7f1000000000, 1024, perms, rss, swap, guest_name);
	at += mapping(at, 0x7f2000000000, 1024, "rwxp", 90, 0, "");
	at += mapping(at, 0x7f3000000000, 2048, "---p", 0, 0, "");
	at += mapping(at, 0x7f4000000000, 6, "r-xp", 6, 0, "/usr/bin/qemu-system-x86_64");
	snprintf(name, sizeof(name), "%d/smaps", pid);
	put(name, "%s", text);
}

static void put_stat(int pid, unsigned int started)
{
	char name[32];

	snprintf(name, sizeof(name), "%d/stat", pid);
	put(name, "%d (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %u 19 20\n", pid,
		started);
}

static void put_cmdline(int pid, const char *first, const char *second)
{
	char name[32];

	snprintf(name, sizeof(name), "%d/cmdline", pid);
	put(name, "/usr/bin/qemu%c-name%cguest=x%c%s%c%s%c-nodefaults%c", 0, 0, 0, first, 0, second,
		0, 0);
}

static void make_process(int pid, const char *uuid, unsigned int started)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%d", proc, pid);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	put_cmdline(pid, "-uuid", uuid);
	put_stat(pid, started);
	put_status(pid, 300, 0, 0);
	put_smaps(pid, 200, 0, "rw-p", "");
}

static void make_folder(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	ck_assert_int_eq(mkdir(path, 0755), 0);
}

static void drop_file(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	ck_assert_int_eq(unlink(path), 0);
}

static int set_one(const struct hv_uuid *uuid, char *name)
{
	struct hv_listed vm = { .uuid = *uuid, .name = name, .state = HV_RUNNING };

	return processes_set(p, &vm, 1);
}

static void setup(void)
{
	owner = geteuid();
	scratch_new(proc);
	snprintf(pids, sizeof(pids), "%s/pids", proc);
	snprintf(cgroups, sizeof(cgroups), "%s/cgroup-root", proc);
	put("meminfo", "MemTotal: 16384 kB\nSwapTotal:       1024 kB\n");
	ck_assert_int_eq(hv_uuid_parse(UUID_A, &a), 0);
	ck_assert_int_eq(hv_uuid_parse(UUID_B, &b), 0);
	ck_assert_int_eq(processes_new(proc, cgroups, pids, &p), 0);
	ck_assert_int_eq(set_one(&a, name_a), 0);
	processes_set_maximum(p, &a, 1024 * MIB);
}

static void teardown(void)
{
	processes_free(p);
}

/* The figures of the only VM, and whether there is something to do. */
static struct hv_process read_one(uint64_t now, bool *ret_work)
{
	struct hv_process *vms, one;
	size_t nr;

	ck_assert_int_eq(processes_read(p, now, &vms, &nr, ret_work), 0);
	ck_assert_uint_eq(nr, 1);
	one = vms[0];
	free(vms);
	return one;
}

/* Does what there is to do first. */
static struct hv_process look(uint64_t now)
{
	bool work;

	read_one(now, &work);
	if (work)
		processes_work(p, now);
	return read_one(now, &work);
}

START_TEST(a_process_is_found_by_its_uuid_argument)
{
	struct hv_process vm;

	make_process(100, UUID_B, 5);
	make_process(101, UUID_A, 5);
	vm = look(0);
	ck_assert(hv_uuid_equal(&vm.uuid, &a));
	ck_assert(vm.known && vm.swap_known);
	ck_assert_uint_eq(vm.resident, 200 * MIB);
	ck_assert_uint_eq(vm.swapped, 0);
	ck_assert_uint_eq(vm.overhead, 100 * MIB);
}
END_TEST

START_TEST(a_uuid_elsewhere_on_the_command_line_is_not_the_process)
{
	make_process(100, UUID_B, 5);
	put_cmdline(100, "-smbios", UUID_A);
	ck_assert(!look(0).known);
	put_cmdline(100, UUID_A, "-uuid");
	ck_assert(!look(SECOND).known);
}
END_TEST

START_TEST(of_two_that_match_the_earlier_one_keeps_its_place)
{
	make_process(100, UUID_A, 50);
	make_process(101, UUID_A, 40);
	put_status(101, 400, 0, 0);
	make_process(102, UUID_A, 45);
	ck_assert_uint_eq(look(0).overhead, 200 * MIB);
}
END_TEST

/* An unprivileged user must not hide a VM's usage behind a process of his own. */
START_TEST(process_of_a_stranger_with_the_uuid_is_not_the_vms)
{
	owner = 54321;
	make_process(100, UUID_A, 5);
	ck_assert(!look(0).known);
	/* Set-user-id: only the effective user is root. */
	put("100/status", "Name:\tqemu\nUid:\t54321\t0\t0\t0\nVmRSS:\t9 kB\nVmSwap:\t0 kB\n");
	ck_assert(!look(2 * SECOND).known);
	owner = geteuid();
	make_process(101, UUID_A, 50);
	put_status(101, 400, 0, 0);
	ck_assert_uint_eq(look(9 * SECOND).overhead, 200 * MIB);
}
END_TEST

START_TEST(libvirts_pid_file_names_the_process_whoever_else_has_the_uuid)
{
	make_folder("pids");
	make_process(100, UUID_A, 5);
	owner = 54321; /* whatever user qemu.conf says */
	make_process(101, UUID_A, 50);
	put_status(101, 400, 0, 0);
	put("pids/web.pid", "101\n");
	ck_assert_uint_eq(look(0).overhead, 200 * MIB);
}
END_TEST

START_TEST(pid_file_that_is_old_or_garbage_is_passed_over)
{
	static const char *const bad[] = { "", "\n", "102\n", "103\n", "web\n", "-1\n", "../100\n",
		"99999999999999999999999999\n" };
	uint64_t now = 0;

	make_folder("pids");
	make_process(103, UUID_B, 5); /* got the number of a QEMU that has gone */
	make_process(100, UUID_A, 5);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++, now += SECOND) {
		ck_assert_int_eq(processes_set(p, NULL, 0), 0);
		ck_assert_int_eq(set_one(&a, name_a), 0);
		processes_set_maximum(p, &a, 1024 * MIB);
		put("pids/web.pid", "%s", bad[i]);
		ck_assert_uint_eq(look(now).overhead, 100 * MIB);
	}
}
END_TEST

START_TEST(before_it_is_measured_nothing_is_known)
{
	bool work;

	make_process(100, UUID_A, 5);
	ck_assert(!read_one(0, &work).known);
	ck_assert(work);
	/* Found, but how much memory it may have is not known yet. */
	processes_set_maximum(p, &a, 0);
	ck_assert(!look(0).known);
	read_one(0, &work);
	ck_assert(!work);
	processes_set_maximum(p, &a, 1024 * MIB);
	ck_assert(look(0).known);
}
END_TEST

START_TEST(changes_between_baselines_are_the_guests)
{
	struct hv_process vm;

	make_process(100, UUID_A, 5);
	look(0);
	put_status(100, 350, 0, 20);
	vm = look(SECOND);
	ck_assert_uint_eq(vm.resident, 250 * MIB);
	ck_assert_uint_eq(vm.swapped, 20 * MIB);
	ck_assert_uint_eq(vm.overhead, 100 * MIB);
	put_status(100, 140, 0, 0);
	vm = look(2 * SECOND);
	ck_assert_uint_eq(vm.resident, 40 * MIB);
	ck_assert_uint_eq(vm.overhead, 100 * MIB);
	/* More went than the guest had: the rest was the emulator's. */
	put_status(100, 60, 0, 0);
	vm = look(3 * SECOND);
	ck_assert_uint_eq(vm.resident, 0);
	ck_assert_uint_eq(vm.overhead, 60 * MIB);
	/* More came than the guest may have. */
	put_status(100, 1400, 0, 100);
	vm = look(4 * SECOND);
	ck_assert_uint_eq(vm.resident, 1024 * MIB);
	ck_assert_uint_eq(vm.swapped, 0);
	ck_assert_uint_eq(vm.overhead, 476 * MIB);
}
END_TEST

START_TEST(a_new_baseline_needs_time_and_movement)
{
	bool work;

	make_process(100, UUID_A, 5);
	look(SECOND);
	put_status(100, 363, 0, 0);
	read_one(3600 * SECOND, &work);
	ck_assert(!work); /* 63 MiB */
	put_status(100, 365, 0, 0);
	read_one(SECOND + PROCESS_BASELINE_US - 1, &work);
	ck_assert(!work);
	read_one(SECOND + PROCESS_BASELINE_US, &work);
	ck_assert(work);
	put_smaps(100, 220, 0, "rw-p", "");
	processes_work(p, SECOND + PROCESS_BASELINE_US);
	ck_assert_uint_eq(read_one(SECOND + PROCESS_BASELINE_US, &work).resident, 220 * MIB);
	ck_assert(!work);
	/* Swap counts as well as memory. */
	put_status(100, 365, 0, 65);
	read_one(SECOND + 2 * PROCESS_BASELINE_US, &work);
	ck_assert(work);
}
END_TEST

START_TEST(memory_that_is_plugged_in_is_measured_anew)
{
	char text[2048], *at = text;

	make_process(100, UUID_A, 5);
	look(0);
	processes_set_maximum(p, &a, 1536 * MIB);
	at += mapping(at, 0x7f1000000000, 1024, "rw-p", 200, 0, "");
	at += mapping(at, 0x7f2000000000, 512, "rw-p", 50, 0, "");
	put("100/smaps", "%s", text);
	ck_assert_uint_eq(look(SECOND).resident, 250 * MIB);
}
END_TEST

START_TEST(without_smaps_all_is_the_guests_up_to_its_memory)
{
	struct hv_process vm;

	make_process(100, UUID_A, 5);
	drop_file("100/smaps");
	put_status(100, 300, 0, 10);
	vm = look(0);
	ck_assert(vm.known && vm.swap_known);
	ck_assert_uint_eq(vm.resident, 300 * MIB);
	ck_assert_uint_eq(vm.swapped, 10 * MIB);
	ck_assert_uint_eq(vm.overhead, 0);
	put_status(100, 1100, 0, 10);
	vm = look(1);
	ck_assert_uint_eq(vm.resident, 1024 * MIB);
	ck_assert_uint_eq(vm.overhead, 86 * MIB);
}
END_TEST

START_TEST(what_cannot_be_told_apart_is_tried_again_with_growing_pauses)
{
	uint64_t now = 0;
	unsigned int tries = 0;
	bool work;

	make_process(100, UUID_A, 5);
	put("100/smaps", "%s", "");
	for (; now < 600 * SECOND; now += SECOND) {
		read_one(now, &work);
		if (!work)
			continue;
		tries++;
		processes_work(p, now);
	}
	/* 0, 0.5, 1, 2 ... 64 s apart, then every 64 s. */
	ck_assert_uint_ge(tries, 10);
	ck_assert_uint_le(tries, 18);
	put_smaps(100, 200, 0, "rw-p", "");
	ck_assert_uint_eq(look(now + 64 * SECOND).overhead, 100 * MIB);
}
END_TEST

START_TEST(swapped_out_shared_memory_is_unknown_unless_there_is_no_swap)
{
	struct hv_process vm;

	make_process(100, UUID_A, 5);
	put_status(100, 300, 200, 0);
	put_smaps(100, 200, 0, "rw-s", "/memfd:pc.ram (deleted)");
	vm = look(0);
	ck_assert(vm.known && !vm.swap_known);
	ck_assert_uint_eq(vm.resident, 200 * MIB);
	put("meminfo", "MemTotal: 16384 kB\nSwapTotal:          0 kB\n");
	processes_work(p, SECOND);
	ck_assert(look(SECOND).swap_known);
}
END_TEST

START_TEST(a_process_that_ends_is_unknown_and_looked_for_again)
{
	bool work;

	make_process(100, UUID_A, 5);
	ck_assert(look(0).known);
	/* A zombie has no such lines. */
	put("100/status", "Name:\tqemu\nState:\tZ (zombie)\n");
	put("100/cmdline", "%s", "");
	ck_assert(!read_one(SECOND, &work).known);
	ck_assert(work);
	processes_work(p, SECOND);
	ck_assert(!read_one(SECOND, &work).known);
	ck_assert(!work); /* not at once again */
	make_process(101, UUID_A, 90);
	put_status(101, 250, 0, 0);
	ck_assert_uint_eq(look(3 * SECOND).overhead, 50 * MIB);
}
END_TEST

START_TEST(vms_that_are_gone_are_dropped_and_the_others_kept)
{
	struct hv_listed both[2] = { { .uuid = a, .name = name_a }, { .uuid = b, .name = name_b } };
	struct hv_process *vms, vm;
	bool work;
	size_t nr;

	make_process(100, UUID_A, 5);
	make_process(101, UUID_B, 5);
	look(0);
	ck_assert_int_eq(processes_set(p, both, 2), 0);
	ck_assert_int_eq(processes_read(p, 0, &vms, &nr, &work), 0);
	ck_assert_uint_eq(nr, 2);
	ck_assert(vms[0].known + vms[1].known == 1);
	ck_assert(work);
	free(vms);
	ck_assert_int_eq(set_one(&b, name_b), 0);
	vm = look(0);
	ck_assert(hv_uuid_equal(&vm.uuid, &b));
	ck_assert_int_eq(processes_set(p, NULL, 0), 0);
	ck_assert_int_eq(processes_read(p, 0, &vms, &nr, &work), 0);
	ck_assert_uint_eq(nr, 0);
	ck_assert(!work);
	free(vms);
}
END_TEST

/* ---- the cgroup ---- */

/* As libvirt makes them on a host with cgroup v2. */
static void make_v2(const char *high, unsigned int events)
{
	make_folder("cgroup-root");
	make_folder("cgroup-root/machine.slice");
	make_folder("cgroup-root/machine.slice/qemu-1-web.scope");
	make_folder("cgroup-root/machine.slice/qemu-1-web.scope/libvirt");
	make_folder("cgroup-root/machine.slice/qemu-1-web.scope/libvirt/emulator");
	put("cgroup-root/machine.slice/memory.high", "max\n");
	put("cgroup-root/machine.slice/qemu-1-web.scope/memory.high", "max\n");
	put("cgroup-root/machine.slice/qemu-1-web.scope/libvirt/memory.high", "%s\n", high);
	put("cgroup-root/machine.slice/qemu-1-web.scope/libvirt/memory.events",
		"low 0\nhigh %u\nmax 3\noom 0\noom_kill 0\n", events);
	put("7/cgroup", "0::/machine.slice/qemu-1-web.scope/libvirt/emulator\n");
}

/* BR-86, BR-132: what memtune's soft limit becomes on a cgroup v2 host. */
START_TEST(a_finite_memory_high_above_the_process_is_told_with_its_events)
{
	struct hv_process vm;

	make_process(7, UUID_A, 50);
	make_v2("1073741824", 556267);
	vm = look(1);
	ck_assert_uint_eq(vm.throttle, 1024 * MIB);
	ck_assert_uint_eq(vm.throttled, 556267);
	ck_assert_uint_eq(vm.started, 50);
	/* It is looked at again after a while. */
	put("cgroup-root/machine.slice/qemu-1-web.scope/libvirt/memory.high", "max\n");
	ck_assert_uint_eq(look(1 + SECOND).throttle, 1024 * MIB);
	ck_assert_uint_eq(look(6 * SECOND).throttle, 0);
}
END_TEST

START_TEST(no_limit_and_no_cgroup_throttle_nobody)
{
	make_process(7, UUID_A, 50);
	ck_assert_uint_eq(look(1).throttle, 0);
	make_v2("max", 0);
	ck_assert_uint_eq(look(6 * SECOND).throttle, 0);
}
END_TEST

/* Seen on cgroup v1: the soft limit there steers reclaim at most, and throttles nobody. */
START_TEST(soft_limit_of_v1_throttles_nobody)
{
	make_process(7, UUID_A, 50);
	make_folder("cgroup-root");
	make_folder("cgroup-root/memory");
	make_folder("cgroup-root/memory/machine");
	make_folder("cgroup-root/memory/machine/qemu-1-web.libvirt-qemu");
	put("cgroup-root/memory/machine/qemu-1-web.libvirt-qemu/memory.soft_limit_in_bytes",
		"536870912\n");
	put("7/cgroup", "5:cpu,cpuacct:/machine/qemu-1-web.libvirt-qemu\n"
			"4:memory:/machine/qemu-1-web.libvirt-qemu\n1:name=x:/\n");
	ck_assert_uint_eq(look(1).throttle, 0);
}
END_TEST

/* BR-99: the files of a cgroup without the memory controller. */
START_TEST(cgroup_without_its_memory_files_throttles_nobody)
{
	make_process(7, UUID_A, 50);
	make_folder("cgroup-root");
	make_folder("cgroup-root/machine.slice");
	put("cgroup-root/machine.slice/cgroup.controllers", "cpu io pids\n");
	put("7/cgroup", "0::/machine.slice\n");
	ck_assert_uint_eq(look(1).throttle, 0);
}
END_TEST

/*
 * BR-142: of those up to the VM's scope the least counts. What limits the machine's slice is the
 * operator's, and no memtune: lifting the VM's own would not help. Hard limits of v1's hierarchy
 * are not read at all, an ancestor's or the VM's: the VM's own is libvirt's to tell (memtune's hard
 * limit, which is a max), and what stands above it throttles nobody but swaps or kills, in all VMs
 * at once, which usage and swap show. So none is shown as an outside limit.
 */
START_TEST(limit_above_the_vms_own_scope_is_no_throttle_of_it)
{
	make_process(7, UUID_A, 50);
	make_v2("max", 0);
	put("cgroup-root/machine.slice/memory.high", "1073741824\n");
	ck_assert_uint_eq(look(1).throttle, 0);
	put("cgroup-root/machine.slice/qemu-1-web.scope/memory.high", "4294967296\n");
	put("cgroup-root/machine.slice/qemu-1-web.scope/libvirt/memory.high", "8589934592\n");
	ck_assert_uint_eq(look(6 * SECOND).throttle, UINT64_C(4294967296));
	/* Not in a scope of its own at all: started by hand, within a login. */
	put("7/cgroup", "0::/machine.slice\n");
	ck_assert_uint_eq(look(12 * SECOND).throttle, 0);
}
END_TEST

START_TEST(scope_without_systemd_and_hybrid_hierarchy_are_looked_at)
{
	make_process(7, UUID_A, 50);
	make_folder("cgroup-root");
	make_folder("cgroup-root/unified");
	make_folder("cgroup-root/unified/machine");
	make_folder("cgroup-root/unified/machine/qemu-1-web.libvirt-qemu");
	put("cgroup-root/unified/machine/qemu-1-web.libvirt-qemu/memory.high", "536870912\n");
	put("7/cgroup", "4:memory:/\n0::/machine/qemu-1-web.libvirt-qemu\n");
	ck_assert_uint_eq(look(1).throttle, 512 * MIB);
}
END_TEST

/* BR-11: 9 GiB of the counters of dead groups in a group that uses 600 MiB. They are not read. */
START_TEST(usage_is_that_of_the_process_whatever_the_cgroups_counters_say)
{
	struct hv_process vm, before;

	make_process(7, UUID_A, 50);
	before = look(1);
	make_v2("max", 0);
	put("cgroup-root/machine.slice/qemu-1-web.scope/libvirt/memory.current", "629145600\n");
	put("cgroup-root/machine.slice/qemu-1-web.scope/libvirt/memory.stat",
		"total_inactive_anon 4831838208\ntotal_active_anon 4831838208\n"
		"total_unevictable 0\n");
	vm = look(6 * SECOND);
	ck_assert(vm.known && before.known);
	ck_assert_uint_eq(vm.resident, before.resident);
	ck_assert_uint_eq(vm.swapped, before.swapped);
}
END_TEST

START_TEST(garbage_for_a_cgroup_throttles_nobody)
{
	static const char *const garbage[] = { "", "\n", ":", "::", "0::", "0::\n0::x", "0:memory",
		"0:memory:", "0::/\n", "0::/../../../../../../..", "\xff\xfe:memory:/\x01" };

	make_process(7, UUID_A, 50);
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		put("7/cgroup", "%s", garbage[i]);
		ck_assert_uint_eq(look((i + 1) * 6 * SECOND).throttle, 0);
	}
	make_v2("12 34", 0);
	ck_assert_uint_eq(look(200 * SECOND).throttle, 0);
	put("cgroup-root/machine.slice/qemu-1-web.scope/libvirt/memory.high",
		"99999999999999999999999\n");
	ck_assert_uint_eq(look(210 * SECOND).throttle, 0);
}
END_TEST

START_TEST(a_process_that_was_started_anew_has_another_start_time)
{
	make_process(7, UUID_A, 50);
	ck_assert_uint_eq(look(1).started, 50);
	put("7/status", "gone\n");
	drop_file("7/cmdline");
	make_process(8, UUID_A, 77);
	look(SECOND);
	ck_assert_uint_eq(look(2 * SECOND).started, 77);
}
END_TEST

START_TEST(there_must_be_a_proc)
{
	struct processes *none = NULL;

	ck_assert_int_eq(processes_new("/nonexistent/proc", "/", "/", &none), -ENOENT);
	ck_assert_ptr_null(none);
	processes_free(NULL);
}
END_TEST

/* ---- smaps alone ---- */

static int read_text(const char *text, uint64_t maximum, struct process_guest *ret)
{
	char path[128];
	int fd;

	put("smaps", "%s", text);
	snprintf(path, sizeof(path), "%s/smaps", proc);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return process_read_smaps(fd, maximum, ret);
}

START_TEST(guest_memory_may_be_several_mappings)
{
	struct process_guest guest;
	char text[4096], *at = text;

	at += mapping(at, 0x7f1000000000, 256, "rw-s", 100, 0, "/memfd:ram0 (deleted)");
	at += mapping(at, 0x7f2000000000, 16, "rw-p", 16, 0, "");
	at += mapping(at, 0x7f3000000000, 768, "rw-s", 300, 7, "/dev/shm/with a blank");
	at += mapping(at, 0x7f4000000000, 2048, "rw-p", 1, 0, "");
	ck_assert_int_eq(read_text(text, 1024 * MIB, &guest), 0);
	ck_assert_uint_eq(guest.size, 1024 * MIB);
	ck_assert_uint_eq(guest.resident, 400 * MIB);
	ck_assert_uint_eq(guest.swapped, 7 * MIB);
	ck_assert(guest.shared);
}
END_TEST

START_TEST(of_equal_mappings_the_fuller_one_is_the_guests)
{
	struct process_guest guest;
	char text[4096], *at = text;

	at += mapping(at, 0x7f1000000000, 512, "rw-p", 20, 0, "");
	at += mapping(at, 0x7f2000000000, 512, "rw-p", 400, 0, "[anon:qemu-ram]");
	ck_assert_int_eq(read_text(text, 512 * MIB, &guest), 0);
	ck_assert_uint_eq(guest.resident, 400 * MIB);
	ck_assert(!guest.shared);
}
END_TEST

START_TEST(a_mapping_that_was_merged_with_its_neighbour_is_found)
{
	struct process_guest guest;
	char text[4096], *at = text;

	at += mapping(at, 0x7f1000000000, 2048, "rw-p", 1, 0, "");
	at += mapping(at, 0x7f2000000000, 528, "rw-p", 400, 0, "");
	ck_assert_int_eq(read_text(text, 512 * MIB, &guest), 0);
	ck_assert_uint_eq(guest.resident, 400 * MIB);
}
END_TEST

START_TEST(mappings_that_do_not_fit_are_not_the_guests)
{
	struct process_guest guest;
	char text[4096], *at = text;

	at += mapping(at, 0x7f1000000000, 256, "rw-p", 1, 0, "");
	at += mapping(at, 0x7f2000000000, 16, "rw-p", 1, 0, "");
	at += mapping(at, 0x7f3000000000, 4096, "rw-p", 1, 0, "");
	ck_assert_int_eq(read_text(text, 272 * MIB, &guest), -ENODATA); /* 16 MiB is no part */
	ck_assert_int_eq(read_text(text, 1024 * MIB, &guest), -ENODATA);
	ck_assert_int_eq(read_text(text, 0, &guest), -ENODATA);
	ck_assert_int_eq(read_text("", 1024 * MIB, &guest), -ENODATA);
}
END_TEST

START_TEST(garbage_in_smaps_is_refused)
{
	static const char *const bad[] = {
		"garbage\n",
		"7f00-7e00 rw-p 00000000 00:00 0 \nRss: 4 kB\n",
		"7f00 rw-p\n",
		"\n",
	};
	struct process_guest guest;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(read_text(bad[i], MIB, &guest) == -EBADMSG, "%s", bad[i]);
}
END_TEST

START_TEST(long_names_in_smaps_are_one_line)
{
	struct process_guest guest;
	char text[8192], name[4000], *at = text;

	memset(name, 'n', sizeof(name) - 1);
	name[0] = '/';
	name[sizeof(name) - 1] = 0;
	at += mapping(at, 0x7f1000000000, 64, "r--p", 1, 0, name);
	at += mapping(at, 0x7f2000000000, 512, "rw-p", 400, 0, "");
	ck_assert_int_eq(read_text(text, 512 * MIB, &guest), 0);
	ck_assert_uint_eq(guest.resident, 400 * MIB);
}
END_TEST

START_TEST(a_status_without_its_figures_is_refused)
{
	static const char *const bad[] = {
		"",
		"VmRSS:\t12 kB\n",
		"VmSwap:\t12 kB\n",
		"VmRSS:\t kB\nVmSwap:\t0 kB\n",
		"VmRSS:\t12 MB\nVmSwap:\t0 kB\n",
		"VmRSS:\t99999999999999999999 kB\nVmSwap:\t0 kB\n",
		"VmRSS:\t18446744073709551615 kB\nVmSwap:\t0 kB\n",
		"xVmRSS:\t12 kB\nVmSwap:\t0 kB\n",
	};
	struct process_status status = { .resident = 7 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(process_parse_status(bad[i], &status) == -EBADMSG, "%s", bad[i]);
	ck_assert_uint_eq(status.resident, 7);
	ck_assert_int_eq(process_parse_status("VmRSS:\t12 kB\nVmSwap:\t3 kB\n", &status), 0);
	ck_assert_uint_eq(status.resident, 12 * KIB);
	ck_assert_uint_eq(status.swapped, 3 * KIB);
	ck_assert_uint_eq(status.shared, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("process");
	TCase *tc = tcase_create("process");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_process_is_found_by_its_uuid_argument);
	tcase_add_test(tc, a_uuid_elsewhere_on_the_command_line_is_not_the_process);
	tcase_add_test(tc, of_two_that_match_the_earlier_one_keeps_its_place);
	tcase_add_test(tc, process_of_a_stranger_with_the_uuid_is_not_the_vms);
	tcase_add_test(tc, libvirts_pid_file_names_the_process_whoever_else_has_the_uuid);
	tcase_add_test(tc, pid_file_that_is_old_or_garbage_is_passed_over);
	tcase_add_test(tc, before_it_is_measured_nothing_is_known);
	tcase_add_test(tc, changes_between_baselines_are_the_guests);
	tcase_add_test(tc, a_new_baseline_needs_time_and_movement);
	tcase_add_test(tc, memory_that_is_plugged_in_is_measured_anew);
	tcase_add_test(tc, without_smaps_all_is_the_guests_up_to_its_memory);
	tcase_add_test(tc, what_cannot_be_told_apart_is_tried_again_with_growing_pauses);
	tcase_add_test(tc, swapped_out_shared_memory_is_unknown_unless_there_is_no_swap);
	tcase_add_test(tc, a_process_that_ends_is_unknown_and_looked_for_again);
	tcase_add_test(tc, vms_that_are_gone_are_dropped_and_the_others_kept);
	tcase_add_test(tc, a_finite_memory_high_above_the_process_is_told_with_its_events);
	tcase_add_test(tc, no_limit_and_no_cgroup_throttle_nobody);
	tcase_add_test(tc, soft_limit_of_v1_throttles_nobody);
	tcase_add_test(tc, cgroup_without_its_memory_files_throttles_nobody);
	tcase_add_test(tc, limit_above_the_vms_own_scope_is_no_throttle_of_it);
	tcase_add_test(tc, scope_without_systemd_and_hybrid_hierarchy_are_looked_at);
	tcase_add_test(tc, usage_is_that_of_the_process_whatever_the_cgroups_counters_say);
	tcase_add_test(tc, garbage_for_a_cgroup_throttles_nobody);
	tcase_add_test(tc, a_process_that_was_started_anew_has_another_start_time);
	tcase_add_test(tc, there_must_be_a_proc);
	tcase_add_test(tc, guest_memory_may_be_several_mappings);
	tcase_add_test(tc, of_equal_mappings_the_fuller_one_is_the_guests);
	tcase_add_test(tc, a_mapping_that_was_merged_with_its_neighbour_is_found);
	tcase_add_test(tc, mappings_that_do_not_fit_are_not_the_guests);
	tcase_add_test(tc, garbage_in_smaps_is_refused);
	tcase_add_test(tc, long_names_in_smaps_are_one_line);
	tcase_add_test(tc, a_status_without_its_figures_is_refused);
	suite_add_tcase(suite, tc);
	scratch_begin();
	return suite_run(suite);
}
