/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sampler POOL_KIB LOW_KIB SECONDS PID...: the bench's own eye on a pool of a set size. Every 5 ms
 * it adds up what the processes have resident (statm: guest memory and what QEMU uses beside it,
 * the figures that ballastd goes by too); when less than LOW_KIB of the pool is left it prints the
 * time in milliseconds of the epoch and what is left in KiB. 1 when SECONDS pass first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROCESSES 16
#define PERIOD_NS     5000000L
#define NS_PER_S      1000000000L

static long number(const char *text)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || *end || n <= 0) {
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
	int fd[MAX_PROCESSES], nr = argc - 4;
	long pool, low, samples, page_kib = sysconf(_SC_PAGESIZE) / 1024;
	struct timespec next, wall;

	if (nr < 1 || nr > MAX_PROCESSES) {
		fprintf(stderr, "usage: sampler POOL_KIB LOW_KIB SECONDS PID...\n");
		return 2;
	}
	pool = number(argv[1]);
	low = number(argv[2]);
	samples = number(argv[3]) * (NS_PER_S / PERIOD_NS);
	for (int i = 0; i < nr; i++) {
		char path[64];

		snprintf(path, sizeof path, "/proc/%ld/statm", number(argv[4 + i]));
		fd[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (fd[i] < 0) {
			fprintf(stderr, "sampler: %s: %s\n", path, strerror(errno));
			return 2;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &next);
	while (samples-- > 0) {
		long left = pool;

		for (int i = 0; i < nr; i++) {
			long r = resident_kib(fd[i], page_kib);

			if (r < 0) {
				fprintf(stderr, "sampler: process %s is gone\n", argv[4 + i]);
				return 2;
			}
			left -= r;
		}
		if (left < low) {
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
