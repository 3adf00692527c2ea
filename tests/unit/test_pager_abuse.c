/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pager: VMMs that do with their userfaultfd and memory what they should not, or do it just when
 * the pager ends. This process plays the VMM: its threads fault, the pager's fill. Skipped where
 * userfaultfd is not allowed.
 */
#include <config.h>

#include "hv/pager/pager.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  POLICY_PAGE_SIZE
#define PAGES 2048
/* A look a millisecond; a minute of them is a failure. */
#define LOOKS_MAX 60000
#ifdef __SANITIZE_THREAD__
#define MEMORY_IS_OURS false /* it has several bytes of its own for each */
#else
#define MEMORY_IS_OURS true
#endif

static struct memcg_tree *tree;
static struct memcg *leaf[2];
static struct pager *pager;
static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16];
static int memory = -1;

/* A VM's memory, and the VMM's own descriptor for it, which it keeps. */
struct guest {
	char *at;
	size_t pages;
	int uffd;
	struct pager_hello hello;
};

static void setup(void)
{
	uint64_t page[PAGE / sizeof(uint64_t)] = { 0 };

	ck_assert_int_eq(memcg_tree_new(&tree), 0);
	for (uint64_t i = 0; i < 2; i++)
		ck_assert_int_eq(memcg_new(tree, tree->root, 10 + i, &leaf[i]), 0);
	ck_assert_int_eq(pager_new(tree, 1, &pager), 0);
	scratch_new(dir);
	snprintf(path, sizeof(path), "%s/memory", dir);
	memory = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (uint64_t i = 0; i < PAGES; i++) {
		page[0] = i + 1;
		ck_assert_int_eq(write(memory, page, sizeof(page)), sizeof(page));
	}
	unlink(path);
}

static void teardown(void)
{
	pager_free(pager);
	memcg_tree_free(tree);
	close(memory);
}

static int new_uffd(int flags)
{
	return (int)syscall(SYS_userfaultfd, O_CLOEXEC | flags);
}

/* All of it is told, as one region from the file's start. */
static struct guest guest_new(size_t pages, int flags, uint64_t features)
{
	struct guest g = { .pages = pages };
	struct uffdio_api api = { .api = UFFD_API,
		.features = UFFD_FEATURE_EVENT_REMOVE | features };
	struct uffdio_register all = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	g.at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert(g.at != MAP_FAILED);
	madvise(g.at, pages * PAGE, MADV_NOHUGEPAGE);
	g.uffd = new_uffd(flags);
	all.range = (struct uffdio_range){ .start = (uintptr_t)g.at, .len = pages * PAGE };
	ck_assert_int_eq(ioctl(g.uffd, UFFDIO_API, &api), 0);
	ck_assert_int_eq(ioctl(g.uffd, UFFDIO_REGISTER, &all), 0);
	g.hello = (struct pager_hello){ .uffd = dup(g.uffd), .pid = getpid(), .nr_regions = 1 };
	g.hello.process = (int)syscall(SYS_pidfd_open, getpid(), 0);
	g.hello.regions[0] = (struct pager_region){ .base = (uintptr_t)g.at, .pages = pages };
	return g;
}

static void add(const struct guest *g, size_t n, bool file)
{
	const char *why = "";
	int r = pager_add(pager, leaf[n], &g->hello, file ? dup(memory) : -1, &why);

	ck_assert_msg(r == 0, "%d %s", r, why);
}

/* After the pager: it is not asked any more. */
static void guest_free(struct guest *g)
{
	close(g->uffd);
	close(g->hello.process);
	munmap(g->at, g->pages * PAGE);
}

static void end_pager(void)
{
	pager_free(pager);
	pager = NULL;
}

static uint64_t look(const struct guest *g, size_t page)
{
	return *(volatile uint64_t *)(g->at + page * PAGE);
}

static struct pager_counts counts(size_t n)
{
	struct pager_counts c;

	ck_assert_int_eq(pager_counts(pager, leaf[n]->id, &c), 0);
	return c;
}

/* Once the thread is idle the counter is exact. */
static void await_usage(const struct memcg *m, uint64_t pages)
{
	for (int i = 0; page_counter_read(&m->memory) != pages && i < LOOKS_MAX; i++)
		usleep(1000);
	ck_assert_uint_eq(page_counter_read(&m->memory), pages);
}

/* --- the pager ends --- */

static _Atomic bool dropping, dropped_all;

/* A balloon: all of the first half, page by page, again and again, as fast as a guest gives them.
 */
static void *drop_until_told(void *arg)
{
	const struct guest *g = arg;

	for (size_t i = 0; dropping; i++) {
		madvise(g->at + i * 7 % (g->pages / 2) * PAGE, PAGE, MADV_DONTNEED);
		dropped_all |= i == 64;
		if (i % 64 == 63)
			usleep(100);
	}
	return NULL;
}

static _Atomic size_t nr_wrong;

/* A vCPU, which touches the second half from its end, once. */
static void *read_backwards(void *arg)
{
	const struct guest *g = arg;

	for (size_t i = g->pages - 1; i >= g->pages / 2; i--)
		nr_wrong += look(g, i) != i + 1;
	return NULL;
}

START_TEST(balloon_that_is_at_work_while_the_pager_ends_costs_no_page_of_the_snapshot)
{
	struct guest g = guest_new(PAGES, O_NONBLOCK, 0);
	pthread_t balloon, vcpu;

	add(&g, 0, true);
	ck_assert_uint_eq(look(&g, 3), 4);
	dropping = true;
	dropped_all = false;
	ck_assert_int_eq(pthread_create(&balloon, NULL, drop_until_told, &g), 0);
	while (!dropped_all)
		usleep(1000);
	nr_wrong = 0;
	ck_assert_int_eq(pthread_create(&vcpu, NULL, read_backwards, &g), 0);
	end_pager();
	dropping = false;
	pthread_join(vcpu, NULL);
	ck_assert_uint_eq(nr_wrong, 0);
	pthread_join(balloon, NULL); /* nor does it wait for an event that nobody reads */
	for (size_t i = 0; i < PAGES / 2; i++)
		ck_assert(look(&g, i) == 0 || look(&g, i) == i + 1);
	for (size_t i = PAGES / 2; i < PAGES; i++)
		ck_assert_uint_eq(look(&g, i), i + 1);
	ck_assert_uint_eq(page_counter_read(&leaf[0]->memory), 0);
	guest_free(&g);
}
END_TEST

START_TEST(pages_behind_one_that_the_file_does_not_have_any_more_come_from_it_all_the_same)
{
	struct guest g = guest_new(PAGES, O_NONBLOCK, 0);

	/* The file's second half first. */
	g.hello.nr_regions = 2;
	g.hello.regions[0].pages = PAGES / 2;
	g.hello.regions[0].offset = PAGES / 2 * PAGE;
	g.hello.regions[1] = (struct pager_region){ .base = (uintptr_t)g.at + PAGES / 2 * PAGE,
		.pages = PAGES / 2 };
	add(&g, 0, true);
	ck_assert_int_eq(ftruncate(memory, PAGES / 2 * PAGE), 0);
	end_pager();
	for (size_t i = 0; i < PAGES / 2; i++)
		ck_assert_uint_eq(look(&g, PAGES / 2 + i), i + 1);
	guest_free(&g);
}
END_TEST

/* --- its descriptor --- */

START_TEST(userfaultfd_that_blocks_is_refused_in_words)
{
	struct guest g = guest_new(PAGES, _i ? O_NONBLOCK : 0, 0);
	const char *why = NULL;

	if (_i) { /* without its handshake */
		close(g.hello.uffd);
		g.hello.uffd = new_uffd(O_NONBLOCK);
	}
	ck_assert_int_eq(pager_add(pager, leaf[0], &g.hello, -1, &why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "O_NONBLOCK"));
	guest_free(&g);
}
END_TEST

START_TEST(vmm_that_lets_its_descriptor_block_hangs_neither_another_nor_the_end)
{
	struct guest g = guest_new(PAGES, O_NONBLOCK, 0), other = guest_new(PAGES, O_NONBLOCK, 0);

	add(&g, 0, true);
	add(&other, 1, true);
	for (size_t i = 0; i < 100; i++) {
		ck_assert_int_eq(fcntl(g.uffd, F_SETFL, 0), 0);
		ck_assert_uint_eq(look(&g, i), i + 1);
		ck_assert_uint_eq(look(&other, i), i + 1);
	}
	await_usage(leaf[0], 100);
	ck_assert_int_eq(fcntl(g.uffd, F_SETFL, 0), 0);
	end_pager();
	ck_assert_uint_eq(look(&g, PAGES - 1), PAGES);
	guest_free(&g);
	guest_free(&other);
}
END_TEST

static unsigned int nr_descriptors(void)
{
	DIR *open_files = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(open_files))
		n++;
	closedir(open_files);
	return n;
}

START_TEST(descriptors_that_come_with_forks_are_closed)
{
	struct guest g = guest_new(PAGES, O_NONBLOCK, UFFD_FEATURE_EVENT_FORK);
	unsigned int before;
	pid_t pid;

	add(&g, 0, true);
	ck_assert_uint_eq(look(&g, 0), 1);
	before = nr_descriptors();
	for (int i = 0; i < 20; i++) {
		pid = fork();
		if (pid == 0)
			_exit(0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	}
	for (int i = 0; nr_descriptors() != before; i++) {
		ck_assert_int_lt(i, LOOKS_MAX);
		usleep(1000);
	}
	ck_assert_uint_eq(look(&g, 1), 2);
	end_pager();
	guest_free(&g);
}
END_TEST

/* --- its memory --- */

START_TEST(what_was_not_told_is_zeros_and_makes_nothing_else_be_there_or_be_charged)
{
	struct guest g = guest_new(PAGES, O_NONBLOCK, 0);

	g.hello.regions[0].pages = PAGES / 2;
	add(&g, 0, true);
	for (size_t i = 0; i < 10; i++) {
		ck_assert_uint_eq(look(&g, PAGES - 1 - i), 0);
		ck_assert_uint_eq(look(&g, i), i + 1);
	}
	ck_assert(counts(0).left);
	await_usage(leaf[0], 10);
	ck_assert_uint_eq(counts(0).charged, 10);
	end_pager();
	ck_assert_uint_eq(look(&g, PAGES / 2 - 1), PAGES / 2);
	guest_free(&g);
}
END_TEST

/* KiB */
static long resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long all, kib = -1;

	ck_assert_ptr_nonnull(f);
	if (fscanf(f, "%ld %ld", &all, &kib) == 2)
		kib *= 4;
	fclose(f);
	return kib;
}

/* As far as this process may have so much address space. */
START_TEST(dropping_a_tebibyte_that_nobody_touched_takes_next_to_no_memory_here)
{
	struct guest g = guest_new(PAGER_PAGES_MAX, O_NONBLOCK, 0);
	long before = resident();

	add(&g, 0, false);
	ck_assert_uint_eq(look(&g, 77), 0);
	for (int i = 0; i < 3; i++)
		madvise(g.at, g.pages * PAGE, MADV_DONTNEED);
	ck_assert_uint_eq(look(&g, PAGER_PAGES_MAX - 1), 0);
	ck_assert_uint_eq(look(&g, 77), 0);
	await_usage(leaf[0], 2);
	ck_assert_int_lt(resident() - before, 100 * 1024);
	end_pager();
	guest_free(&g);
}
END_TEST

/* --- served before its group is known --- */

START_TEST(vm_that_is_charged_to_nobody_yet_is_charged_all_that_it_has_when_it_is_moved)
{
	struct guest g = guest_new(PAGES, O_NONBLOCK, 0);
	struct memcg_knobs knobs = MEMCG_KNOBS_NONE;
	struct pager_counts c;
	const char *why = NULL;

	knobs.max = 5;
	ck_assert_int_eq(memcg_set_knobs(leaf[0], &knobs), 0);
	ck_assert_int_eq(pager_serve(pager, 4711, &g.hello, dup(memory), &why), 0);
	for (size_t i = 0; i < 10; i++)
		ck_assert_uint_eq(look(&g, i), i + 1);
	ck_assert_uint_eq(page_counter_read(&tree->root->memory), 0);
	ck_assert_int_eq(pager_counts(pager, 4711, &c), 0);
	ck_assert_int_eq(pager_move(pager, 4711, leaf[0]), 0);
	await_usage(leaf[0], 10);
	ck_assert_int_eq(pager_counts(pager, 4711, &c), -ENOENT);
	madvise(g.at, 5 * PAGE, MADV_DONTNEED);
	await_usage(leaf[0], 5);
	ck_assert_uint_eq(counts(0).charged, 5);
	end_pager();
	guest_free(&g);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pager_abuse");
	TCase *tc = tcase_create("pager_abuse");
	int fd = new_uffd(O_NONBLOCK);

	if (fd < 0) {
		printf("1..0 # SKIP userfaultfd is not allowed here: %s\n", strerror(errno));
		return EXIT_SUCCESS;
	}
	close(fd);
	scratch_begin();
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(
		tc, balloon_that_is_at_work_while_the_pager_ends_costs_no_page_of_the_snapshot);
	tcase_add_test(tc,
		pages_behind_one_that_the_file_does_not_have_any_more_come_from_it_all_the_same);
	tcase_add_loop_test(tc, userfaultfd_that_blocks_is_refused_in_words, 0, 2);
	tcase_add_test(tc, vmm_that_lets_its_descriptor_block_hangs_neither_another_nor_the_end);
	tcase_add_test(tc, descriptors_that_come_with_forks_are_closed);
	tcase_add_test(
		tc, what_was_not_told_is_zeros_and_makes_nothing_else_be_there_or_be_charged);
	if (MEMORY_IS_OURS)
		tcase_add_test(
			tc, dropping_a_tebibyte_that_nobody_touched_takes_next_to_no_memory_here);
	tcase_add_test(
		tc, vm_that_is_charged_to_nobody_yet_is_charged_all_that_it_has_when_it_is_moved);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
