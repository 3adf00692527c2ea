/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What ballast-agent costs a guest, on a tree of files as Linux shows them: /proc's three, and a
 * cgroup v2 tree of services with all the files that a group has.
 *
 *   tree FOLDER GROUPS                  makes it: FOLDER/proc, FOLDER/cgroup
 *   steps FOLDER SECONDS rest|moves     the agent's core and platform in virtual time, as many
 *                                       reports as in so many seconds: what they do can be counted.
 *                                       Prints the reports and the reads
 *   live AGENT FOLDER SECONDS rest|moves  the program, on a terminal in place of the port, while
 *                                       the host has said hello and is quiet. Prints thousandths of
 *                                       a percent of a core, reports, KiB resident and locked
 *   naive FOLDER SECONDS                who reads all of the same files once a second, line by
 *                                       line. Prints thousandths of a percent of a core, reads
 *
 * At rest no figure changes; where it moves the guest reads again what was evicted, each half
 * second. The kernel's own work for these files, to find out what they say, is not in it.
 */
#include <config.h>

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "guest-agent/linux.h"

#define SECOND	    UINT64_C(1000000)
#define HALF_MS	    500
#define PATIENCE_MS 20000
/* Names that a group's folder has beside those that the agent reads. */
#define OTHER_FILES 55

static const char hello[] = "\n{\"type\":\"hello\",\"oldest\":1,\"newest\":1}\n";

/* As Linux 6.1 shows it, of a small service. */
static const char group_stat[] =
	"anon 1531904\nfile 167936\nkernel 1429504\nkernel_stack 49152\npagetables 163840\n"
	"sec_pagetables 0\npercpu 864\nsock 0\nvmalloc 0\nshmem 0\nzswap 0\nzswapped 0\n"
	"file_mapped 8192\nfile_dirty 0\nfile_writeback 0\nswapcached 0\nanon_thp 0\nfile_thp 0\n"
	"shmem_thp 0\ninactive_anon 1523712\nactive_anon 8192\ninactive_file 122880\n"
	"active_file 45056\nunevictable 0\nslab_reclaimable 787016\nslab_unreclaimable 217848\n"
	"slab 1004864\nworkingset_refault_anon 0\nworkingset_refault_file 0\n"
	"workingset_activate_anon 0\nworkingset_activate_file 0\nworkingset_restore_anon 0\n"
	"workingset_restore_file 0\nworkingset_nodereclaim 0\npgscan 0\npgsteal 0\n"
	"pgscan_kswapd 0\npgscan_direct 0\npgsteal_kswapd 0\npgsteal_direct 0\npgfault 92815\n"
	"pgmajfault 12\npgrefill 0\npgactivate 345\npgdeactivate 0\npglazyfree 0\npglazyfreed 0\n"
	"zswpin 0\nzswpout 0\nthp_fault_alloc 0\nthp_collapse_alloc 0\n";
static const char pressure[] = "some avg10=0.00 avg60=0.00 avg300=0.00 total=123456\n"
			       "full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n";
static const char meminfo[] =
	"MemTotal:        4028432 kB\nMemFree:         1934508 kB\nMemAvailable:    3123456 kB\n"
	"Buffers:           51044 kB\nCached:          1270716 kB\nSwapCached:            0 kB\n"
	"Active:           418976 kB\nInactive:        1318976 kB\nActive(anon):        932 kB\n"
	"Inactive(anon):   429036 kB\nActive(file):     418044 kB\nInactive(file):   889940 kB\n"
	"Unevictable:       27556 kB\nMlocked:           27556 kB\nSwapTotal:        998396 kB\n"
	"SwapFree:         998396 kB\nDirty:               124 kB\nWriteback:             0 kB\n"
	"AnonPages:        437016 kB\nMapped:           212556 kB\nShmem:              8436 kB\n"
	"KReclaimable:      98820 kB\nSlab:             155676 kB\nSReclaimable:      98820 kB\n"
	"SUnreclaim:        56856 kB\n";
/* Of as many lines as there are; the agent reads by name. */
#define VMSTAT_LINES 160
#define REFAULTS     "workingset_refault_file %020" PRIu64 "\n"

static void die(const char *why)
{
	fprintf(stderr, "agent: %s\n", why);
	exit(1);
}

/* ---- the tree ---- */

static void put(const char *folder, const char *name, const char *text)
{
	char path[LINUX_PATH];
	FILE *f;

	snprintf(path, sizeof(path), "%.400s/%s", folder, name);
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		die("a file cannot be written");
}

static void folder(const char *above, const char *name, char *ret_path)
{
	snprintf(ret_path, LINUX_PATH, "%.300s/%s", above, name);
	if (mkdir(ret_path, 0700) < 0)
		die("a folder cannot be made");
}

static void group(const char *above, const char *name, char *ret_path)
{
	char path[LINUX_PATH], other[LINUX_PATH];

	folder(above, name, ret_path);
	put(ret_path, "memory.stat", group_stat);
	put(ret_path, "memory.pressure", pressure);
	put(ret_path, "cgroup.events", "populated 1\nfrozen 0\n");
	put(ret_path, "memory.low", "0\n");
	put(ret_path, "memory.reclaim", "");
	put(ret_path, "memory.swap.max", "max\n");
	snprintf(path, sizeof(path), "%.400s/memory.low", ret_path);
	for (int i = 0; i < OTHER_FILES; i++) {
		snprintf(other, sizeof(other), "%.400s/controller.file%02d", ret_path, i);
		if (link(path, other) < 0)
			die("a file cannot be written");
	}
}

/* Refaults come first, so that they can be written in place. */
static void put_vmstat(const char *proc)
{
	char text[8192];
	size_t length = (size_t)snprintf(text, sizeof(text), REFAULTS, UINT64_C(0));

	for (int i = 0; i < VMSTAT_LINES; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length,
			"nr_some_counter_%d %d\n", i, i * 977);
	put(proc, "vmstat", text);
}

/* Nine of ten are services, the others a user's. */
static void make_tree(const char *root, int groups)
{
	char proc[LINUX_PATH], cgroup[LINUX_PATH], path[LINUX_PATH], name[32];
	char services[LINUX_PATH], users[LINUX_PATH], user[LINUX_PATH];

	folder(root, "proc", proc);
	put(proc, "meminfo", meminfo);
	put_vmstat(proc);
	folder(proc, "pressure", path);
	put(path, "memory", pressure);
	folder(root, "cgroup", cgroup);
	group(cgroup, "system.slice", services);
	group(cgroup, "user.slice", users);
	group(users, "user-1000.slice", user);
	for (int i = 0; i < groups; i++) {
		snprintf(name, sizeof(name), i % 10 ? "unit-%03d.service" : "app-%03d.scope", i);
		group(i % 10 ? services : user, name, path);
	}
}

static int open_vmstat(const char *root)
{
	char path[LINUX_PATH];
	int fd;

	snprintf(path, sizeof(path), "%.400s/proc/vmstat", root);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		die("there is no such tree");
	return fd;
}

/* In place, and of the same length: who reads meanwhile finds all other lines. */
static void read_again(int vmstat)
{
	static uint64_t refaults;
	char text[64];
	int length = snprintf(text, sizeof(text), REFAULTS, refaults += 1000);

	if (pwrite(vmstat, text, (size_t)length, 0) != length)
		die("a file cannot be written");
}

/* ---- figures of processes ---- */

static uint64_t figure(const char *process, const char *file, const char *key)
{
	char path[64], text[4096], *at = text;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/%s", process, file);
	f = fopen(path, "r");
	if (!f)
		die("a process has no figures");
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	if (*key)
		at = strstr(text, key);
	if (!at)
		die("a figure is missing");
	return strtoull(at + strlen(key), NULL, 10);
}

static uint64_t reads(void)
{
	return figure("self", "io", "syscr:");
}

/* us in a window of seconds, as thousandths of a percent of a core. */
static uint64_t share(uint64_t us, uint64_t seconds)
{
	return us / (seconds * 10);
}

/* ---- in virtual time ---- */

static uint64_t virtual_us = SECOND;
static uint64_t reports;

static uint64_t virtual_now(void *ctx)
{
	(void)ctx;
	return virtual_us;
}

static int count_report(void *ctx, const char *text, size_t length)
{
	(void)ctx;
	if (length > 16 && !strncmp(text, "{\"type\":\"report\"", 16))
		reports++;
	return 0;
}

static void steps(const char *root, uint64_t seconds, bool moves)
{
	static struct linux_platform platform;
	static struct agent agent;
	char proc[LINUX_PATH], sys[LINUX_PATH], cgroup[LINUX_PATH];
	int vmstat = open_vmstat(root);
	uint64_t end, next, before;

	snprintf(proc, sizeof(proc), "%.400s/proc", root);
	snprintf(sys, sizeof(sys), "%.400s/sys", root);
	snprintf(cgroup, sizeof(cgroup), "%.400s/cgroup", root);
	if (linux_start(&platform,
		    &(const struct linux_paths){ .proc = proc, .sys = sys, .cgroup = cgroup }) < 0)
		die("the agent does not start");
	platform.table.now = virtual_now;
	platform.send = count_report;
	agent_start(&agent, &platform.table, &platform);
	agent_input(&agent, hello, sizeof(hello) - 1);
	before = reads();
	end = virtual_us + seconds * SECOND;
	while (virtual_us < end) {
		next = agent_step(&agent);
		if (moves)
			read_again(vmstat);
		virtual_us = next;
	}
	printf("%" PRIu64 " %" PRIu64 "\n", reports, reads() - before);
	agent_stop(&agent);
	close(vmstat);
}

/* ---- the program ---- */

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* The host's end; the other stays open: a terminal without one has hung up. */
static int open_terminal(void)
{
	struct termios raw;
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), other;

	if (fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0)
		die("there is no terminal");
	other = open(ptsname(fd), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (other < 0 || tcgetattr(other, &raw) < 0)
		die("there is no terminal");
	cfmakeraw(&raw);
	if (tcsetattr(other, TCSANOW, &raw) < 0)
		die("the terminal is not raw");
	return fd;
}

static pid_t start(const char *program, const char *port)
{
	pid_t pid = fork();

	if (pid < 0)
		die("no process");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* nothing is left where the bench fails */
	execl(program, program, "--port", port, (char *)NULL);
	_exit(127);
}

/* Messages that came until then. A line that is cut in two counts with its end. */
static uint64_t listen_until(int host, uint64_t end_ms)
{
	struct pollfd fd = { .fd = host, .events = POLLIN };
	uint64_t lines = 0, now;
	char text[4096];
	ssize_t n;

	while ((now = now_ms()) < end_ms) {
		if (poll(&fd, 1, (int)(end_ms - now)) <= 0)
			continue;
		n = read(host, text, sizeof(text));
		if (n <= 0)
			die("the agent has gone");
		for (ssize_t i = 0; i < n; i++)
			lines += text[i] == '\n';
	}
	return lines;
}

/* Its hello, and a first report. */
static void meet(int host)
{
	uint64_t patience = now_ms() + PATIENCE_MS, lines = 0;

	if (write(host, hello, sizeof(hello) - 1) != (ssize_t)sizeof(hello) - 1)
		die("the agent cannot be greeted");
	while (lines < 2 && now_ms() < patience)
		lines += listen_until(host, now_ms() + 10);
	if (lines < 2)
		die("the agent says nothing");
}

static uint64_t watch(int host, int vmstat, uint64_t seconds, bool moves)
{
	uint64_t at = now_ms(), end = at + seconds * 1000, lines = 0;

	for (; at < end; at += HALF_MS) {
		if (moves)
			read_again(vmstat);
		lines += listen_until(host, at + HALF_MS);
	}
	return lines;
}

static void live(const char *program, const char *root, uint64_t seconds, bool moves)
{
	int host = open_terminal(), vmstat = open_vmstat(root), status;
	pid_t pid = start(program, ptsname(host));
	uint64_t before, lines;
	char name[16];

	meet(host);
	snprintf(name, sizeof(name), "%d", (int)pid);
	before = figure(name, "schedstat", "");
	lines = watch(host, vmstat, seconds, moves);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		share((figure(name, "schedstat", "") - before) / 1000, seconds), lines,
		figure(name, "status", "VmHWM:"), figure(name, "status", "VmLck:"));
	kill(pid, SIGTERM);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		die("the agent did not end as it should");
	close(vmstat);
	close(host);
}

/* ---- who knows nothing ---- */

static uint64_t sum;

static void read_lines(const char *path)
{
	FILE *f = fopen(path, "r");
	char key[128];
	uint64_t value;

	while (f && fscanf(f, "%127s %" SCNu64 "%*[^\n]", key, &value) > 0)
		sum += value;
	if (f)
		fclose(f);
}

static int take(const char *path, const struct stat *st, int type, struct FTW *at)
{
	static const char *const wanted[] = { "memory.stat", "memory.pressure", "cgroup.events" };

	(void)st;
	for (size_t i = 0; type == FTW_F && i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!strcmp(path + at->base, wanted[i]))
			read_lines(path);
	return 0;
}

static void naive(const char *root, uint64_t seconds)
{
	static const char *const guest[] = { "meminfo", "vmstat", "pressure/memory" };
	char path[LINUX_PATH];
	struct rusage used;
	uint64_t before = reads(), at = now_ms();

	for (uint64_t i = 1; i <= seconds; i++) {
		for (size_t k = 0; k < sizeof(guest) / sizeof(guest[0]); k++) {
			snprintf(path, sizeof(path), "%.400s/proc/%s", root, guest[k]);
			read_lines(path);
		}
		snprintf(path, sizeof(path), "%.400s/cgroup", root);
		nftw(path, take, 16, FTW_PHYS);
		while (now_ms() < at + i * 1000)
			poll(NULL, 0, (int)(at + i * 1000 - now_ms()));
	}
	getrusage(RUSAGE_SELF, &used);
	printf("%" PRIu64 " %" PRIu64 "\n",
		share((uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * SECOND +
				(uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec),
			seconds),
		(reads() - before) / seconds);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (argc == 4 && !strcmp(mode, "tree"))
		make_tree(argv[2], atoi(argv[3]));
	else if (argc == 5 && !strcmp(mode, "steps"))
		steps(argv[2], (uint64_t)atoi(argv[3]), !strcmp(argv[4], "moves"));
	else if (argc == 6 && !strcmp(mode, "live"))
		live(argv[2], argv[3], (uint64_t)atoi(argv[4]), !strcmp(argv[5], "moves"));
	else if (argc == 4 && !strcmp(mode, "naive"))
		naive(argv[2], (uint64_t)atoi(argv[3]));
	else
		die("see tests/bench/agent.c");
	return 0;
}
