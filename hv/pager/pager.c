/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The planner's side of the pager: threads, VMs, counts. See pager.h. */
#include <config.h>

#include "hv/pager/pager_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void wake(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));

	(void)n; /* full: it is awake already */
}

/* --- threads --- */

static void thread_free(struct pager_thread *t)
{
	close_fd(&t->wake);
	close_fd(&t->turns);
	free(t->polls);
}

static int thread_start(struct pager *pager, struct pager_thread *t, size_t n)
{
	int r;

	t->pager = pager;
	t->stock = charge_stocks_get(pager->stocks, n);
	t->polls = calloc(PAGER_POLLS_OWN + 2 * PAGER_VMS_MAX, sizeof(t->polls[0]));
	t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = t->wake < 0 ? -errno : 0;
	t->turns = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r == 0)
		r = t->turns < 0 ? -errno : !t->polls ? -ENOMEM : 0;
	if (r == 0)
		r = -pthread_create(&t->thread, NULL, pager_thread_main, t);
	if (r < 0)
		thread_free(t);
	return r;
}

int pager_new(struct memcg_tree *tree, size_t nr, struct pager **ret_pager)
{
	struct pager *pager;
	int r;

	if (nr == 0 || nr > PAGER_THREADS_MAX)
		return -EINVAL;
	pager = calloc(1, sizeof(*pager));
	if (!pager)
		return -ENOMEM;
	pager->tree = tree;
	pager->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = pager->event < 0 ? -errno : charge_stocks_new(tree, nr, &pager->stocks);
	pager->threads = calloc(nr, sizeof(pager->threads[0]));
	if (r == 0 && !pager->threads)
		r = -ENOMEM;
	for (; r == 0 && pager->nr_threads < nr; pager->nr_threads += r == 0)
		r = thread_start(pager, &pager->threads[pager->nr_threads], pager->nr_threads);
	if (r < 0)
		pager_free(pager);
	else
		*ret_pager = pager;
	return r;
}

static void vm_free(struct pager_vm *vm)
{
	if (!vm)
		return;
	if (vm->to) /* it was gone when it was to move */
		css_put(&vm->to->css);
	close_fd(&vm->uffd);
	close_fd(&vm->memory);
	close_fd(&vm->process);
	free(vm->charged_pages);
	free(vm->dropped_pages);
	free(vm);
}

void pager_free(struct pager *pager)
{
	struct pager_vm *vm, *next;

	if (!pager)
		return;
	pager->ends = true;
	for (size_t i = 0; pager->threads && i < pager->nr_threads; i++) {
		wake(pager->threads[i].wake);
		pthread_join(pager->threads[i].thread, NULL);
		thread_free(&pager->threads[i]);
	}
	for (vm = pager->vms; vm; vm = next) {
		next = vm->next;
		vm_free(vm);
	}
	charge_stocks_free(pager->stocks);
	close_fd(&pager->event);
	free(pager->threads);
	free(pager);
}

/* --- VMs --- */

static int check_memory(const struct pager_hello *hello, int memory, const char **ret_why)
{
	struct stat st;

	if (memory < 0)
		return 0;
	if (fstat(memory, &st) < 0)
		return -errno;
	for (size_t i = 0; i < hello->nr_regions; i++) {
		const struct pager_region *r = &hello->regions[i];

		if (st.st_size < 0 ||
			r->offset + r->pages * POLICY_PAGE_SIZE > (uint64_t)st.st_size) {
			*ret_why = "regions that its memory file does not have";
			return -EINVAL;
		}
	}
	return 0;
}

/*
 * Whether it is a userfaultfd, whose handshake its owner has had, and whose reads do not block: it
 * says EINVAL to an empty range, and nothing to poll(). Any other file says ENOTTY, or does
 * something that nobody asked for; the name tells.
 */
static int check_uffd(int uffd, const char **ret_why)
{
	struct pollfd waits = { .fd = uffd, .events = POLLIN };
	struct uffdio_range range = { 0 };
	char path[64], name[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", uffd);
	if (readlink(path, name, sizeof(name) - 1) < 0 ||
		strcmp(name, "anon_inode:[userfaultfd]") != 0 ||
		(ioctl(uffd, UFFDIO_WAKE, &range) < 0 && errno != EINVAL)) {
		*ret_why = "a descriptor that is no userfaultfd";
		return -EINVAL;
	}
	if (poll(&waits, 1, 0) < 0 || waits.revents & ~POLLIN) {
		*ret_why = "a userfaultfd that blocks (without O_NONBLOCK), or had no UFFDIO_API";
		return -EINVAL;
	}
	return 0;
}

static int vm_watch(struct pager_vm *vm, const struct pager_hello *hello)
{
	struct pollfd process = { .events = POLLIN };

	vm->process = process.fd = fcntl(hello->process, F_DUPFD_CLOEXEC, 0);
	if (vm->process < 0)
		return -errno;
	return poll(&process, 1, 0) == 0 ? 0 : -ENODEV;
}

static int vm_new(struct pager_vm *vm, const struct pager_hello *hello, const char **ret_why)
{
	size_t words;
	int r = check_uffd(vm->uffd, ret_why);

	if (r == 0)
		r = check_memory(hello, vm->memory, ret_why);
	if (r < 0)
		return r;
	for (size_t i = 0; i < hello->nr_regions; i++)
		vm->nr_pages += hello->regions[i].pages;
	if (!vm->nr_pages) {
		*ret_why = "no memory in its layout";
		return -EINVAL;
	}
	memcpy(vm->regions, hello->regions, sizeof(vm->regions));
	vm->nr_regions = hello->nr_regions;
	words = (vm->nr_pages + 63) / 64;
	vm->charged_pages = calloc(words, sizeof(vm->charged_pages[0]));
	vm->dropped_pages = calloc(words, sizeof(vm->dropped_pages[0]));
	if (!vm->charged_pages || !vm->dropped_pages)
		return -ENOMEM;
	return vm_watch(vm, hello);
}

/* To the thread that has fewest. */
static void vm_give(struct pager *pager, struct pager_vm *vm)
{
	struct pager_thread *t = &pager->threads[0];
	struct pager_vm *head;

	for (size_t i = 1; i < pager->nr_threads; i++)
		if (pager->threads[i].nr_vms < t->nr_vms)
			t = &pager->threads[i];
	vm->thread = t;
	vm->next = pager->vms;
	pager->vms = vm;
	pager->nr_vms++;
	t->nr_vms++;
	head = t->arriving;
	do {
		vm->next_of_thread = head;
	} while (!atomic_compare_exchange_strong(&t->arriving, &head, vm));
	wake(t->wake);
}

static int add(struct pager *pager, struct memcg *leaf, uint64_t id,
	const struct pager_hello *hello, int memory, const char **ret_why)
{
	struct pager_vm *vm = calloc(1, sizeof(*vm));
	int r;

	if (!vm)
		return -ENOMEM;
	vm->uffd = hello->uffd;
	vm->memory = memory;
	vm->process = -1;
	r = pager->nr_vms == PAGER_VMS_MAX ? -ENOSPC : vm_new(vm, hello, ret_why);
	if (r == 0 && leaf && !css_tryget(&leaf->css))
		r = -ENODEV;
	if (r < 0) {
		vm->uffd = vm->memory = -1;
		vm_free(vm);
		return r;
	}
	vm->leaf = leaf;
	vm->id = id;
	vm_give(pager, vm);
	return 0;
}

int pager_add(struct pager *pager, struct memcg *leaf, const struct pager_hello *hello, int memory,
	const char **ret_why)
{
	return add(pager, leaf, leaf ? leaf->id : 0, hello, memory, ret_why);
}

int pager_serve(struct pager *pager, uint64_t id, const struct pager_hello *hello, int memory,
	const char **ret_why)
{
	return add(pager, NULL, id, hello, memory, ret_why);
}

static struct pager_vm **find(struct pager *pager, uint64_t id)
{
	struct pager_vm **at = &pager->vms;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

int pager_move(struct pager *pager, uint64_t id, struct memcg *leaf)
{
	struct pager_vm *vm = *find(pager, id);
	struct memcg *before;

	if (!vm || id == 0)
		return -ENOENT;
	if (!css_tryget(&leaf->css))
		return -ENODEV;
	vm->id = leaf->id;
	before = atomic_exchange(&vm->to, leaf);
	if (before) /* its thread did not come to it */
		css_put(&before->css);
	wake(vm->thread->wake);
	return 0;
}

int pager_counts(struct pager *pager, uint64_t id, struct pager_counts *ret_counts)
{
	struct pager_vm **at = find(pager, id), *vm = *at;

	if (!vm)
		return -ENOENT;
	*ret_counts = (struct pager_counts){ .gone = vm->gone };
	ret_counts->charged = vm->charged;
	ret_counts->faults = vm->faults;
	ret_counts->removed = vm->removed;
	ret_counts->waited = vm->waited;
	ret_counts->over = vm->over;
	ret_counts->failed = vm->failed;
	ret_counts->left = vm->left;
	if (ret_counts->gone) { /* its thread has let go of it */
		*at = vm->next;
		vm->thread->nr_vms--;
		pager->nr_vms--;
		vm_free(vm);
	}
	return 0;
}

int pager_fd(const struct pager *pager)
{
	return pager->event;
}

uint64_t pager_take(struct pager *pager)
{
	uint64_t n;

	while (read(pager->event, &n, sizeof(n)) < 0 && errno == EINTR)
		;
	return atomic_exchange(&pager->refused, 0);
}
