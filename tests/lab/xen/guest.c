/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The init of the Xen lab's guests: obeys what dom0 writes into lab/cmd below the domain's path,
 * and reports in lab/report, which dom0 made for it. Linked statically.
 *
 *   hog MIB       takes MIB of memory and keeps it     free    gives it back, or ends what is
 * hostile off           ends the machine                     reboot  starts it anew agent MIB
 * starts ballast-agent, and reads files until MIB are free hostile WHAT  does to its agent's keys,
 * in the place of an agent: forge   says hello, and answers what was asked of another flood   noise
 * into them and nodes below them up to its quota, by turns, at full rate, with a watch on all of
 * it, for ever remove  removes them
 *
 * The report is "SEQUENCE COMMAND free KIB hogs MIB".
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xen/io/xs_wire.h>
#include <xenstore.h>

#define PAGE ((size_t)4096)
#define MIB  ((size_t)1 << 20)

/* Of "hog" and "hostile flood": one at a time. */
static pid_t child;
static volatile unsigned long *hogs; /* what it has taken; shared with it */

static long free_kib(void)
{
	char text[256] = "";
	const char *line;
	int fd = open("/proc/meminfo", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return -1;
	close(fd);
	line = strstr(text, "MemFree:");
	return line ? atol(line + strlen("MemFree:")) : -1;
}

static void let_go(void)
{
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	child = 0;
	*hogs = 0;
}

/* In a process of its own: who dies when memory is out is that one. */
static void hog(unsigned long mib)
{
	let_go();
	child = fork();
	if (child != 0)
		return;
	{
		unsigned char *p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (size_t i = 0; p != MAP_FAILED && i < mib * MIB; i += PAGE)
			p[i] = 1;
		*hogs = mib;
		for (;;)
			pause();
	}
}

/* In a group of the cgroup2 tree, which has a child process of its own in it. */
static pid_t fork_within(const char *group)
{
	char path[64];
	pid_t pid = fork();
	int fd;

	if (pid != 0)
		return pid;
	mkdir("/sys", 0755);
	mkdir("/run", 0755);
	mount("sys", "/sys", "sysfs", 0, NULL);
	mount("cgroup", "/sys/fs/cgroup", "cgroup2", 0, NULL);
	fd = open("/sys/fs/cgroup/cgroup.subtree_control", O_WRONLY);
	if (fd < 0 || write(fd, "+memory", 7) < 0)
		perror("guest: cgroup");
	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", group);
	mkdir(path, 0755);
	strcat(path, "/cgroup.procs");
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "0", 1) < 0)
		perror("guest: cgroup");
	return 0;
}

/* A RAM disk that nobody wrote to: it takes no memory, what is read of it is page cache. */
static void fill(unsigned long mib)
{
	static char data[1 << 16];
	int fd;

	if (fork_within("files") != 0)
		return;
	fd = open("/brd.ko", O_RDONLY);
	if (fd < 0 || syscall(SYS_finit_module, fd, "rd_nr=1 rd_size=262144", 0) < 0)
		perror("guest: brd");
	fd = open("/dev/ram0", O_RDONLY);
	while (fd >= 0 && free_kib() > (long)mib * 1024 && read(fd, data, sizeof(data)) > 0)
		;
	for (;;)
		pause();
}

static void start_agent(unsigned long mib)
{
	fill(mib);
	if (fork_within("agent") != 0)
		return;
	execl("/ballast-agent", "ballast-agent", NULL);
	perror("guest: ballast-agent");
	_exit(1);
}

/* ---- hostile ---- */

static bool write_below(struct xs_handle *xs, const char *key, const char *value, size_t length)
{
	char path[64];

	snprintf(path, sizeof(path), "ballast/guest/%s", key);
	return xs_write(xs, XBT_NULL, path, value, (unsigned int)length);
}

static void forge(struct xs_handle *xs)
{
	static const char hello[] =
		"{\"type\":\"hello\",\"oldest\":1,\"newest\":1,\"can\":[\"reclaim\"]}\n";
	static const char done[] = "{\"type\":\"done\",\"id\":99,\"bytes\":1}\n";

	write_below(xs, "0", hello, strlen(hello));
	write_below(xs, "1", done, strlen(done));
}

/* By hand, as it is never read: what it is told of waits in this guest's kernel. */
static void watch_all(void)
{
	static const char body[] = "ballast\0hostile";
	struct xsd_sockmsg header = { .type = XS_WATCH, .len = sizeof(body) };
	char message[sizeof(header) + sizeof(body)];
	int fd = open("/dev/xen/xenbus", O_RDWR);

	memcpy(message, &header, sizeof(header));
	memcpy(message + sizeof(header), body, sizeof(body));
	if (fd < 0 || write(fd, message, sizeof(message)) < 0)
		perror("guest: watch");
}

static void flood(void)
{
	static char noise[1900];
	struct xs_handle *xs;

	let_go();
	child = fork();
	if (child != 0)
		return;
	xs = xs_open(0); /* its own: it is written to while the other is */
	memset(noise, '{', sizeof(noise));
	watch_all();
	for (unsigned long i = 0;; i++) {
		char key[32];

		snprintf(key, sizeof(key), i % 2 ? "%lu" : "3/%lu", i % 2 ? i / 2 % 4 : i);
		write_below(xs, key, noise, i % 2 ? sizeof(noise) : 1);
	}
}

static void remove_keys(struct xs_handle *xs)
{
	let_go();
	for (int i = 0; i < 4; i++) {
		char path[32];

		snprintf(path, sizeof(path), "ballast/guest/%d", i);
		xs_rm(xs, XBT_NULL, path);
	}
}

static void obey(struct xs_handle *xs, const char *command)
{
	unsigned long mib;

	if (sscanf(command, "hog %lu", &mib) == 1)
		hog(mib);
	else if (sscanf(command, "agent %lu", &mib) == 1)
		start_agent(mib);
	else if (!strcmp(command, "free"))
		let_go();
	else if (!strcmp(command, "hostile forge"))
		forge(xs);
	else if (!strcmp(command, "hostile flood"))
		flood();
	else if (!strcmp(command, "hostile remove"))
		remove_keys(xs);
	else if (!strcmp(command, "off"))
		reboot(RB_POWER_OFF);
	else if (!strcmp(command, "reboot"))
		reboot(RB_AUTOBOOT);
}

static void prepare(void)
{
	int fd;

	mkdir("/proc", 0755);
	mkdir("/dev", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	fd = open("/dev/console", O_RDWR);
	for (int i = 0; fd >= 0 && i < 3; i++)
		dup2(fd, i);
}

int main(void)
{
	char last[64] = "";
	struct xs_handle *xs;

	prepare();
	hogs = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	xs = xs_open(0);
	for (unsigned long sequence = 0; xs; sequence++) {
		char report[128];
		unsigned int length;
		char *command = xs_read(xs, XBT_NULL, "lab/cmd", &length);

		if (command && *command && strcmp(command, last) != 0) {
			snprintf(last, sizeof(last), "%s", command);
			obey(xs, command);
		}
		free(command);
		snprintf(report, sizeof(report), "%lu %s free %ld hogs %lu", sequence,
			*last ? last : "none", free_kib(), *hogs);
		xs_write(xs, XBT_NULL, "lab/report", report, (unsigned int)strlen(report));
		usleep(200000);
	}
	printf("guest: no xenstore\n");
	for (;;)
		pause();
}
