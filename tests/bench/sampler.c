/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sampler POOL_KIB LOW_KIB SECONDS PID:BESIDE_KIB:ACTUAL_KIB...: the bench's own eye on a pool of a
 * set size. Every 5 ms it adds up what the guests use, by the figures that ballastd goes by too:
 * what the process has resident (statm), less what QEMU uses beside guest memory (from smaps, at
 * the begin), at most what the balloon leaves the guest; and what is beside it. When less than
 * LOW_KIB of the pool is left it prints the time in milliseconds of the epoch and what is left in
 * KiB. 1 when SECONDS pass first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_GUESTS 16
#define PERIOD_NS  5000000L
#define NS_PER_S   1000000000L

static long number(const char *text)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || *end || n < 0) {
		fprintf(stderr, "sampler: bad number: %s\n", text);
		exit(2);
	}
	return n;
}

static long resident_kib(int fd, long page_kib)
{
	char text[128];
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	long resident;

	if (n <= 0)
		return -1;
	text[n] = '\0';
	if (sscanf(text, "%*d %ld", &resident) != 1)
		return -1;
	return resident * page_kib;
}

struct guest {
	int fd;
	long beside, actual;
};

static void open_guest(const char *text, struct guest *ret_guest)
{
	struct guest g;
	long pid;
	char path[64];

	if (sscanf(text, "%ld:%ld:%ld", &pid, &g.beside, &g.actual) != 3) {
		fprintf(stderr, "sampler: bad guest: %s\n", text);
		exit(2);
	}
	snprintf(path, sizeof path, "/proc/%ld/statm", pid);
	g.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (g.fd < 0) {
		fprintf(stderr, "sampler: %s: %s\n", path, strerror(errno));
		exit(2);
	}
	*ret_guest = g;
}

/* -1: the process is gone. */
static long cost_kib(const struct guest *g, long page_kib)
{
	long usage = resident_kib(g->fd, page_kib);

	if (usage < 0)
		return -1;
	usage = usage > g->beside ? usage - g->beside : 0;
	return (usage < g->actual ? usage : g->actual) + g->beside;
}

static void add_ns(struct timespec *t, long ns)
{
	t->tv_nsec += ns;
	if (t->tv_nsec >= NS_PER_S) {
		t->tv_nsec -= NS_PER_S;
		t->tv_sec++;
	}
}

int main(int argc, char **argv)
{
	struct guest guests[MAX_GUESTS];
	int nr = argc - 4;
	bool once;
	long pool, low, samples, page_kib = sysconf(_SC_PAGESIZE) / 1024;
	struct timespec next, wall;

	if (nr < 1 || nr > MAX_GUESTS) {
		fprintf(stderr,
			"usage: sampler POOL_KIB LOW_KIB SECONDS PID:BESIDE_KIB:ACTUAL_KIB...\n");
		return 2;
	}
	pool = number(argv[1]);
	low = number(argv[2]);
	samples = number(argv[3]) * (NS_PER_S / PERIOD_NS);
	once = samples == 0;
	for (int i = 0; i < nr; i++)
		open_guest(argv[4 + i], &guests[i]);
	clock_gettime(CLOCK_MONOTONIC, &next);
	while (once || samples-- > 0) {
		long left = pool;

		for (int i = 0; i < nr; i++) {
			long cost = cost_kib(&guests[i], page_kib);

			if (cost < 0) {
				fprintf(stderr, "sampler: process %s is gone\n", argv[4 + i]);
				return 2;
			}
			left -= cost;
		}
		if (left < low || once) {
			clock_gettime(CLOCK_REALTIME, &wall);
			printf("%" PRId64 " %ld\n",
				(int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000, left);
			return 0;
		}
		add_ns(&next, PERIOD_NS);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return 1;
}
