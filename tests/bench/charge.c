/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a charge costs: the experiment of coalescing-css-get-put. Threads fault real anonymous
 * memory in and drop it, and charge each page, in one of these ways:
 *
 *   none     not at all
 *   again    not at all, once more: what over_none is where there is nothing to find
 *   before   counters in batches, a reference for each page (the document's before)
 *   direct   neither in batches
 *   ours     charge_try(), uncharge()
 *
 *   charge faults THREADS own|one ROUNDS [WAY]
 *       groups three levels deep, each thread its own or all one. Each round has a slice of 200 ms
 *       of each way, in an order that is drawn. Prints the median of the rounds' ratios ours/none,
 *       ours/before, ours/direct and again/none (control) with its interval of 95 %, and faults a
 *       second of processor time by way. With WAY only that, for a profiler.
 *   charge hits N
 *       a refill, and N charges from the stock: callgrind counts.
 *   charge atomics N
 *       N charges and N uncharges of a page: accesses that change shared memory (built with the
 *       hook of policy/atomic.h only).
 */
#include <config.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "policy/charge.h"
#include "tests/unit/draw.h"

#define THREADS_MAX  8
#define ROUNDS_MAX   1000
#define REGION_PAGES 512
#define SLICE_NS     UINT64_C(200000000)
/* A thread looks at the clock once in a region, which is some hundreds of microseconds. */

enum way { NONE, AGAIN, BEFORE, DIRECT, OURS, NR_WAYS };

static const char *const way_names[] = { "none", "again", "before", "direct", "ours" };

struct worker {
	_Alignas(128) pthread_t thread;
	struct memcg *leaf;
	struct charge_stock *stock;
	uint64_t counted; /* BEFORE's stock of counters */
	char *region;
	double faults, seconds; /* of the last slice */
};

static struct memcg_tree *tree;
static struct charge_stocks *stocks;
static struct worker workers[THREADS_MAX];
static size_t nr_workers;
static enum way way;
static pthread_barrier_t barrier;
static bool done;

#ifdef BALLAST_ATOMIC_HOOK
static uint64_t changed;

void atomic_hook(const volatile void *addr, bool changes)
{
	(void)addr;
	changed += changes;
}
#endif

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "charge: %s\n", what);
	exit(1);
}

static struct memcg *leaf_new(uint64_t id)
{
	struct memcg *m = tree->root;

	for (uint64_t level = 0; level < 3; level++)
		must(memcg_new(tree, m, id + level, &m) == 0, "no group");
	return m;
}

static void world(size_t threads, bool own)
{
	must(memcg_tree_new(&tree) == 0, "no tree");
	must(charge_stocks_new(tree, THREADS_MAX, &stocks) == 0, "no stocks");
	nr_workers = threads;
	for (size_t i = 0; i < threads; i++) {
		struct worker *w = &workers[i];

		w->leaf = own || i == 0 ? leaf_new(10 * (i + 1)) : workers[0].leaf;
		css_get(&w->leaf->css);
		w->stock = charge_stocks_get(stocks, i);
		w->region = mmap(NULL, REGION_PAGES * POLICY_PAGE_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		must(w->region != MAP_FAILED, "no memory");
		madvise(w->region, REGION_PAGES * POLICY_PAGE_SIZE, MADV_NOHUGEPAGE);
	}
}

/* --- the document's before --- */

static void before_charge(struct worker *w)
{
	struct page_counter *refused;

	must(css_tryget(&w->leaf->css), "killed");
	if (w->counted == 0) {
		must(page_counter_try_charge(&w->leaf->memory, CHARGE_BATCH, &refused) == 0,
			"refused");
		w->counted = CHARGE_BATCH;
	}
	w->counted--;
}

static void before_uncharge(struct worker *w)
{
	if (w->counted == CHARGE_BATCH) {
		page_counter_uncharge(&w->leaf->memory, CHARGE_BATCH);
		w->counted = 0;
	}
	w->counted++;
	css_put(&w->leaf->css);
}

/* --- threads --- */

static void charge_page(struct worker *w, enum way how)
{
	struct memcg *refused;

	if (how == OURS)
		must(charge_try(w->stock, w->leaf, 1, &refused) == 0, "refused");
	else if (how == BEFORE)
		before_charge(w);
	else if (how == DIRECT)
		must(charge_direct(w->leaf, 1, &refused) == 0, "refused");
}

static void uncharge_page(struct worker *w, enum way how)
{
	if (how == OURS)
		must(uncharge(w->stock, w->leaf, 1) == 0, "uncharge");
	else if (how == BEFORE)
		before_uncharge(w);
	else if (how == DIRECT)
		must(uncharge_direct(w->leaf, 1) == 0, "uncharge");
}

static uint64_t clock_ns(clockid_t which)
{
	struct timespec t;

	clock_gettime(which, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void slice(struct worker *w, enum way how)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	w->faults = 0;
	while (clock_ns(CLOCK_MONOTONIC) - start < SLICE_NS) {
		for (size_t i = 0; i < REGION_PAGES; i++) {
			charge_page(w, how);
			((volatile char *)w->region)[i * POLICY_PAGE_SIZE] = 1;
		}
		madvise(w->region, REGION_PAGES * POLICY_PAGE_SIZE, MADV_DONTNEED);
		for (size_t i = 0; i < REGION_PAGES; i++)
			uncharge_page(w, how);
		w->faults += REGION_PAGES;
	}
	w->seconds = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / 1e9;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		pthread_barrier_wait(&barrier);
		if (done)
			break;
		slice(w, way);
		if (w->counted)
			page_counter_uncharge(&w->leaf->memory, w->counted);
		w->counted = 0;
		charge_stock_idle(w->stock);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/* Faults a second of processor time, of all threads. */
static double all_slices(enum way how)
{
	double faults = 0, seconds = 0;

	way = how;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < nr_workers; i++) {
		faults += workers[i].faults;
		seconds += workers[i].seconds;
	}
	must(page_counter_read(&tree->root->memory) == 0, "a page is lost");
	return faults / seconds;
}

/* --- figures --- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts; the median, and the order statistics that hold the true one in 95 of 100 cases. */
static void print_median(const char *name, double *values, size_t n)
{
	double half = 0.98; /* 1.96 / 2, of the root of n */
	size_t off = 0;

	qsort(values, n, sizeof(values[0]), by_value);
	while ((double)off * (double)off < half * half * (double)n)
		off++;
	off = off > (n - 1) / 2 ? (n - 1) / 2 : off;
	printf("%s %.5f %.5f %.5f\n", name, (values[n / 2] + values[(n - 1) / 2]) / 2,
		values[(n - 1) / 2 - off], values[n / 2 + off]);
}

static double speeds[NR_WAYS][ROUNDS_MAX];

static void one_round(size_t round)
{
	enum way order[NR_WAYS] = { NONE, AGAIN, BEFORE, DIRECT, OURS };

	for (size_t left = NR_WAYS; left > 0; left--) {
		size_t i = below(left);

		speeds[order[i]][round] = all_slices(order[i]);
		order[i] = order[left - 1];
	}
}

static void print_ratios(const char *name, const double *of, const double *over, size_t n)
{
	static double ratio[ROUNDS_MAX];

	for (size_t i = 0; i < n; i++)
		ratio[i] = of[i] / over[i];
	print_median(name, ratio, n);
}

static void rounds(size_t n)
{
	for (size_t i = 0; i < n; i++)
		one_round(i);
	print_ratios("over_none", speeds[OURS], speeds[NONE], n);
	print_ratios("over_before", speeds[OURS], speeds[BEFORE], n);
	print_ratios("over_direct", speeds[OURS], speeds[DIRECT], n);
	print_ratios("control", speeds[AGAIN], speeds[NONE], n);
	for (size_t w = 0; w < NR_WAYS; w++)
		print_median(way_names[w], speeds[w], n);
}

static int faults(size_t threads, bool own, size_t n, const char *only)
{
	must(threads > 0 && threads <= THREADS_MAX && n > 0 && n <= ROUNDS_MAX, "how many?");
	world(threads, own);
	pthread_barrier_init(&barrier, NULL, (unsigned int)threads + 1);
	for (size_t i = 0; i < threads; i++)
		must(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) == 0,
			"no thread");
	for (size_t w = 0; only && w < NR_WAYS; w++) {
		for (size_t i = 0; i < n && strcmp(only, way_names[w]) == 0; i++)
			all_slices((enum way)w);
	}
	if (!only)
		rounds(n);
	done = true;
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	return 0;
}

static int hits(size_t n)
{
	world(1, true);
	for (size_t i = 0; i < n + 1; i++)
		charge_page(&workers[0], OURS);
	return 0;
}

static int atomics(size_t n)
{
#ifdef BALLAST_ATOMIC_HOOK
	uint64_t start, charges;

	world(1, true);
	start = changed;
	for (size_t i = 0; i < n; i++)
		charge_page(&workers[0], OURS);
	charges = changed - start;
	start = changed;
	for (size_t i = 0; i < n; i++)
		uncharge_page(&workers[0], OURS);
	printf("%.2f %.2f\n", (double)charges * 1000 / (double)n,
		(double)(changed - start) * 1000 / (double)n);
	return 0;
#else
	(void)n;
	return 2;
#endif
}

int main(int argc, char **argv)
{
	if (argc >= 5 && strcmp(argv[1], "faults") == 0)
		return faults((size_t)atol(argv[2]), strcmp(argv[3], "own") == 0,
			(size_t)atol(argv[4]), argv[5]);
	if (argc == 3 && strcmp(argv[1], "hits") == 0)
		return hits((size_t)atol(argv[2]));
	if (argc == 3 && strcmp(argv[1], "atomics") == 0)
		return atomics((size_t)atol(argv[2]));
	fprintf(stderr, "charge: see tests/bench/charge.c\n");
	return 2;
}
