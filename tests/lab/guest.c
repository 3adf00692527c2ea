/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory workloads that a lab guest runs, and a hostile agent; linked statically into its
 * initramfs. A block device keeps its pages only as long as somebody has it open: init does.
 *
 *   guest cache FILE MIB         reads MIB of FILE once, through the page cache
 *   guest reread FILE FROM MIB   reads MIB of FILE from there, again and again, for ever; how many
 *                                MiB that is by now stands at the beginning of its output, a file
 *   guest hot MIB                takes MIB and touches every page of it ten times a second, for
 *                                ever; prints the number of rounds once a second
 *   guest grow MIB RATE          takes MIB, RATE MiB a second, prints "done" and holds it for ever
 *   guest flood PORT WHAT        sends noise, reports, or digits of one number to PORT, for ever,
 *                                as fast as they go
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, whatever the compiler's -std */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MIB	 ((size_t)1 << 20)
#define PAGE	 ((size_t)4096)
#define CHUNK	 (64 * 1024)
#define SLICES	 20 /* growth goes in slices of 1/20 s */
#define HOT_NS	 100000000L
#define MAX_MIB	 65536
#define MAX_RATE 65536
#define NS_PER_S 1000000000L

static size_t number(const char *text, long least, long max)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || end == text || n < least || n > max) {
		fprintf(stderr, "guest: bad number: %s\n", text);
		exit(2);
	}
	return (size_t)n;
}

static void nap(long ns)
{
	struct timespec t = { .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };

	nanosleep(&t, NULL);
}

static unsigned char *take(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("guest: mmap");
		exit(1);
	}
	return p;
}

/* Content that differs from page to page, so that no page is merged or counted as zero. */
static void fill(unsigned char *from, size_t size)
{
	static uint64_t x = 88172645463325252ULL;

	for (size_t i = 0; i < size; i += sizeof x) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(from + i, &x, sizeof x);
	}
}

static int cache(const char *file, size_t mib)
{
	static char buffer[CHUNK];
	int fd = open(file, O_RDONLY);

	if (fd < 0) {
		fprintf(stderr, "guest: %s: %s\n", file, strerror(errno));
		return 1;
	}
	for (size_t done = 0; done < mib * MIB;) {
		ssize_t n = read(fd, buffer, sizeof buffer);

		if (n <= 0) {
			fprintf(stderr, "guest: %s ends after %zu bytes\n", file, done);
			close(fd);
			return 1;
		}
		done += (size_t)n;
	}
	close(fd);
	return 0;
}

static int reread(const char *file, size_t from, size_t mib)
{
	static char buffer[CHUNK];
	unsigned long long done = 0;
	char text[32];
	int fd = open(file, O_RDONLY);
	int length;

	for (size_t at = 0;; at = (at + sizeof buffer) % (mib * MIB)) {
		ssize_t n = pread(fd, buffer, sizeof buffer, (off_t)(from * MIB + at));

		if (n != (ssize_t)sizeof buffer) {
			fprintf(stderr, "guest: %s: %s\n", file, n < 0 ? strerror(errno) : "ends");
			return 1;
		}
		done += sizeof buffer;
		if (done % MIB)
			continue;
		length = snprintf(text, sizeof text, "%20llu\n", done / MIB);
		if (pwrite(STDOUT_FILENO, text, (size_t)length, 0) != length)
			return 1;
	}
}

static int hot(size_t mib)
{
	unsigned char *p = take(mib * MIB);
	unsigned long rounds = 0;

	fill(p, mib * MIB);
	for (;;) {
		for (size_t i = 0; i < mib * MIB; i += PAGE)
			p[i]++;
		if (++rounds % 10 == 0) {
			printf("%lu\n", rounds);
			fflush(stdout);
		}
		nap(HOT_NS);
	}
	return 0;
}

static int grow(size_t mib, size_t rate)
{
	size_t size = mib * MIB, slice = rate * MIB / SLICES / PAGE * PAGE;
	unsigned char *p = take(size);

	for (size_t done = 0; done < size;) {
		size_t n = size - done < slice ? size - done : slice;

		fill(p + done, n);
		done += n;
		nap(NS_PER_S / SLICES);
	}
	puts("done");
	fflush(stdout);
	for (;;)
		pause();
	return 0;
}

/* Whoever reads the port slowly, or not at all, holds it up. */
static int flood(const char *port, const char *what)
{
	static const char report[] =
		"{\"type\":\"report\",\"floor\":1,\"total\":402653184,\"need\":1}\n";
	static char buffer[CHUNK];
	size_t size = sizeof buffer;
	int fd = open(port, O_WRONLY);

	if (!strcmp(what, "digits")) {
		memset(buffer, '9', size);
	} else if (!strcmp(what, "noise")) {
		fill((unsigned char *)buffer, size);
	} else {
		for (size = 0; size + sizeof report <= sizeof buffer; size += sizeof report - 1)
			memcpy(buffer + size, report, sizeof report - 1);
	}
	while (fd >= 0 && write(fd, buffer, size) >= 0)
		;
	fprintf(stderr, "guest: %s: %s\n", port, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "cache"))
		return cache(argv[2], number(argv[3], 1, MAX_MIB));
	if (argc == 5 && !strcmp(argv[1], "reread"))
		return reread(argv[2], number(argv[3], 0, MAX_MIB), number(argv[4], 1, MAX_MIB));
	if (argc == 3 && !strcmp(argv[1], "hot"))
		return hot(number(argv[2], 1, MAX_MIB));
	if (argc == 4 && !strcmp(argv[1], "grow"))
		return grow(number(argv[2], 1, MAX_MIB), number(argv[3], 1, MAX_RATE));
	if (argc == 4 && !strcmp(argv[1], "flood"))
		return flood(argv[2], argv[3]);
	fprintf(stderr, "usage: guest cache FILE MIB | reread FILE FROM MIB | hot MIB |\n"
			"       grow MIB RATE | flood PORT noise|reports|digits\n");
	return 2;
}
