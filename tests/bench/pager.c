/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the pager's faults cost with and without charging: processes that play VMMs fault their
 * memory in, drop it, and fault it in again.
 *
 *   pager VMS ROUNDS
 *       Each round has a slice of each way, charged and not, one after the other and in turn.
 * Prints the median of the rounds' ratios charged/uncharged with its interval of 95 %, the faults a
 *       second of both, and the 99th percentile of a fault's latency of both in microseconds. Exit
 *       status 77: userfaultfd is not allowed here.
 */
#include <config.h>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hv/pager/pager.h"

#define PAGE	   POLICY_PAGE_SIZE
#define VMS_MAX	   8
#define ROUNDS_MAX 1000
/* Of a VM in a slice: it is of some tens of milliseconds, so that a pair of slices is near each
 * other. */
#define FAULTS 512

/* A VMM's side and what it found, shared with it. */
struct guest {
	pid_t pid;
	int go[2], done[2];
	struct pager_hello hello;
	double *latencies; /* FAULTS, microseconds */
};

static struct guest guests[2 * VMS_MAX]; /* charged, and not */
static size_t nr;

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "pager: %s\n", what);
	for (size_t i = 0; i < 2 * VMS_MAX; i++)
		if (guests[i].pid > 0)
			kill(guests[i].pid, SIGKILL);
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void guest_main(struct guest *g, volatile char *memory)
{
	char c;

	while (read(g->go[0], &c, 1) == 1) {
		for (size_t i = 0; i < FAULTS; i++) {
			double start = now_us();

			memory[i * PAGE] = 1;
			g->latencies[i] = now_us() - start;
		}
		madvise((char *)memory, FAULTS * PAGE, MADV_DONTNEED);
		if (write(g->done[1], &c, 1) != 1)
			break;
	}
	_exit(0);
}

/* The descriptor is inherited rather than sent: what is measured are faults. */
static void guest_new(struct guest *g)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_EVENT_REMOVE };
	struct uffdio_register all = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int back[2];

	g->latencies = mmap(NULL, FAULTS * sizeof(double), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!(g->latencies != MAP_FAILED && pipe(g->go) == 0 && pipe(g->done) == 0 &&
		    pipe(back) == 0))
		die("no memory");
	g->pid = fork();
	if (g->pid == 0) {
		char *memory = mmap(NULL, FAULTS * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uint64_t said[2] = { (uintptr_t)memory };

		/* Those of the VMMs before are not its own. */
		for (int fd = 3; fd < 1024; fd++)
			if (fd != g->go[0] && fd != g->done[1] && fd != back[1])
				close(fd);
		said[1] = (uint64_t)syscall(SYS_userfaultfd, O_NONBLOCK);
		all.range.start = said[0];
		all.range.len = FAULTS * PAGE;
		if (ioctl((int)said[1], UFFDIO_API, &api) < 0 ||
			ioctl((int)said[1], UFFDIO_REGISTER, &all) < 0 ||
			write(back[1], said, sizeof(said)) != sizeof(said))
			_exit(1);
		guest_main(g, memory);
	} else {
		uint64_t said[2];
		int process = (int)syscall(SYS_pidfd_open, g->pid, 0);

		if (!(read(back[0], said, sizeof(said)) == sizeof(said)))
			die("no guest");
		g->hello.pid = g->pid;
		g->hello.process = process;
		g->hello.nr_regions = 1;
		g->hello.regions[0].base = said[0];
		g->hello.regions[0].pages = FAULTS;
		g->hello.uffd = (int)syscall(SYS_pidfd_getfd, process, (int)said[1], 0);
		if (!(g->hello.uffd >= 0))
			die("no userfaultfd of the guest");
		close(back[0]);
		close(back[1]);
		close(g->go[0]);
		close(g->done[1]);
	}
}

/* Faults a second. */
static double slice(bool charged, double *latencies)
{
	struct guest *mine = guests + (charged ? 0 : nr);
	double start = now_us();
	char c = 'g';

	for (size_t i = 0; i < nr; i++)
		if (!(write(mine[i].go[1], &c, 1) == 1))
			die("a guest is gone");
	for (size_t i = 0; i < nr; i++)
		if (!(read(mine[i].done[0], &c, 1) == 1))
			die("a guest is gone");
	start = now_us() - start;
	for (size_t i = 0; i < nr; i++)
		memcpy(latencies + i * FAULTS, mine[i].latencies, FAULTS * sizeof(double));
	return (double)(nr * FAULTS) / start * 1e6;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts; the median, and the order statistics that hold the true one in 95 of 100 cases. */
static void print_median(const char *name, double *values, size_t n)
{
	size_t off = 0;

	qsort(values, n, sizeof(values[0]), by_value);
	while ((double)off * (double)off < 0.98 * 0.98 * (double)n)
		off++;
	off = off > (n - 1) / 2 ? (n - 1) / 2 : off;
	printf("%s %.5f %.5f %.5f\n", name, (values[n / 2] + values[(n - 1) / 2]) / 2,
		values[(n - 1) / 2 - off], values[n / 2 + off]);
}

static void rounds(size_t n)
{
	static double speeds[2][ROUNDS_MAX], ratio[ROUNDS_MAX], p99[2][ROUNDS_MAX];
	static double latencies[VMS_MAX * FAULTS];

	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < 2; j++) {
			size_t way = (i + j) % 2;

			speeds[way][i] = slice(way, latencies);
			qsort(latencies, nr * FAULTS, sizeof(latencies[0]), by_value);
			p99[way][i] = latencies[nr * FAULTS / 100 * 99];
		}
		ratio[i] = speeds[1][i] / speeds[0][i];
	}
	print_median("over_uncharged", ratio, n);
	print_median("charged", speeds[1], n);
	print_median("uncharged", speeds[0], n);
	print_median("charged_p99", p99[1], n);
	print_median("uncharged_p99", p99[0], n);
}

static void add_all(struct pager *pager, struct memcg_tree *tree)
{
	struct memcg *group, *leaf;
	const char *why = "";

	if (!(memcg_new(tree, tree->root, 2, &group) == 0))
		die("no group");
	for (size_t i = 0; i < 2 * nr; i++) {
		leaf = NULL;
		guest_new(&guests[i]);
		if (!(i >= nr || memcg_new(tree, group, 10 + i, &leaf) == 0))
			die("no group");
		if (!(pager_add(pager, leaf, &guests[i].hello, -1, &why) == 0))
			die(why);
	}
}

int main(int argc, char **argv)
{
	struct memcg_tree *tree;
	struct pager *pager;
	size_t n;
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return 77;
	close(fd);
	if (!(argc == 3))
		die("see tests/bench/pager.c");
	nr = (size_t)atol(argv[1]);
	n = (size_t)atol(argv[2]);
	if (!(nr > 0 && nr <= VMS_MAX && n > 0 && n <= ROUNDS_MAX))
		die("how many?");
	if (!(memcg_tree_new(&tree) == 0 && pager_new(tree, 2, &pager) == 0))
		die("no pager");
	add_all(pager, tree);
	rounds(n);
	for (size_t i = 0; i < 2 * nr; i++) {
		close(guests[i].go[1]);
		waitpid(guests[i].pid, NULL, 0);
	}
	pager_free(pager);
	if (!(page_counter_read(&tree->root->memory) == 0))
		die("a page is lost");
	memcg_tree_free(tree);
	return 0;
}
