/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pager: real page faults of a process that plays the VMM and speaks Firecracker's protocol, and
 * what their group is charged. Skipped where userfaultfd is not allowed.
 */
#include <config.h>

#include "hv/pager/pager.h"
#include "tests/unit/drain.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  POLICY_PAGE_SIZE
#define PAGES 512
/* A look a millisecond at what other threads and processes do; a minute of them is a failure. */
#define LOOKS_MAX 60000
#ifdef __SANITIZE_THREAD__
#define THREADS_AFTER_FORK false
#else
#define THREADS_AFTER_FORK true
#endif

static struct memcg_tree *tree;
static struct memcg *slice, *leaf[8];
static struct pager *pager;
static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16];
static int listener, memory = -1;

static int new_uffd(void)
{
	return (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
}

/* --- the VMM's side, in a process of its own --- */

struct vmm {
	pid_t pid;
	int orders, answers; /* pipes: a letter and a page each */
	struct pager_hello hello;
};

struct order {
	/* t: touch, w: write, d: drop, r: drop while another thread touches the last, f: touch,
	 * each page by a thread of its own, m: how many are there, q: quit; answered with a byte:
	 * of t the last page's first. */
	char what;
	uint32_t page, pages;
};

static void vmm_send(int fd, const char *text, int uffd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (char *)text, .iov_len = strlen(text) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (uffd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &uffd, sizeof(int));
	}
	if (sendmsg(fd, &msg, 0) < 0)
		_exit(3);
}

static int vmm_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		_exit(4);
	return fd;
}

static _Atomic bool ready, racing;

static void *touch_when_racing(void *arg)
{
	ready = true;
	while (!racing)
		;
	for (volatile int i = 0; i < (int)((uintptr_t)arg / PAGE % 64) * 1500; i++)
		;
	*(volatile char *)arg = 'r';
	return NULL;
}

static void vmm_race(volatile char *guest, const struct order *order)
{
	char *last = (char *)guest + (order->page + order->pages - 1) * PAGE;
	pthread_t other;

	madvise(last, PAGE, MADV_DONTNEED);
	ready = racing = false;
	if (pthread_create(&other, NULL, touch_when_racing, last) != 0)
		_exit(6);
	while (!ready)
		;
	racing = true;
	madvise((char *)guest + order->page * PAGE, order->pages * PAGE, MADV_DONTNEED);
	pthread_join(other, NULL);
}

static void *touch(void *arg)
{
	*(volatile char *)arg = 'f';
	return NULL;
}

static void vmm_flood(volatile char *guest, const struct order *order)
{
	pthread_t threads[PAGES];

	for (uint32_t i = 0; i < order->pages; i++)
		if (pthread_create(&threads[i], NULL, touch,
			    (char *)guest + (order->page + i) * PAGE) != 0)
			_exit(6);
	for (uint32_t i = 0; i < order->pages; i++)
		pthread_join(threads[i], NULL);
}

static char vmm_count(volatile char *guest, const struct order *order)
{
	unsigned char there[PAGES] = { 0 };
	int n = 0;

	mincore((char *)guest + order->page * PAGE, order->pages * PAGE, there);
	for (uint32_t p = 0; p < order->pages; p++)
		n += there[p] & 1;
	return (char)n;
}

static char vmm_obey(volatile char *guest, const struct order *order)
{
	char sum = 0;

	if (order->what == 'm')
		return vmm_count(guest, order);
	if (order->what == 'r')
		vmm_race(guest, order);
	if (order->what == 'f')
		vmm_flood(guest, order);
	if (order->what == 'd')
		madvise((char *)guest + order->page * PAGE, order->pages * PAGE, MADV_DONTNEED);
	for (uint32_t p = order->page; p < order->page + order->pages; p++) {
		if (order->what == 'w')
			guest[p * PAGE] = 'w';
		if (order->what == 't')
			sum = guest[p * PAGE];
	}
	return sum;
}

/* told: pages that the layout has; less than there are is a lie. */
static void vmm_main(int orders, int answers, uint32_t told)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_EVENT_REMOVE };
	struct uffdio_register all = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	char *guest = mmap(
		NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int uffd = new_uffd(), fd = vmm_connect();
	struct order order;
	char text[256], answer;

	all.range.start = (uintptr_t)guest;
	all.range.len = PAGES * PAGE;
	if (ioctl(uffd, UFFDIO_API, &api) < 0 || ioctl(uffd, UFFDIO_REGISTER, &all) < 0)
		_exit(5);
	snprintf(text, sizeof(text),
		"[{\"base_host_virt_addr\": %llu, \"size\": %llu, \"offset\": 0, "
		"\"page_size\": 4096, \"page_size_kib\": 4096}]",
		(unsigned long long)(uintptr_t)guest, (unsigned long long)(told * PAGE));
	vmm_send(fd, text, uffd);
	while (read(orders, &order, sizeof(order)) == sizeof(order) && order.what != 'q') {
		answer = vmm_obey(guest, &order);
		if (write(answers, &answer, 1) != 1)
			break;
	}
	_exit(0);
}

static struct vmm vmm_new(uint32_t told)
{
	struct vmm v = { 0 };
	int orders[2], answers[2], fd, r;
	const char *why = NULL;

	ck_assert_int_eq(pipe2(orders, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(answers, O_CLOEXEC), 0);
	v.pid = fork();
	if (v.pid == 0) {
		signal(SIGBUS, SIG_DFL); /* also where a sanitizer would rather tell of it */
		close(orders[1]);
		vmm_main(orders[0], answers[1], told);
	}
	close(orders[0]);
	close(answers[1]);
	v.orders = orders[1];
	v.answers = answers[0];
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	while ((r = pager_receive(fd, &v.hello, &why)) == -EAGAIN)
		usleep(1000);
	ck_assert_msg(r == 0, "%s", why);
	ck_assert_int_eq(v.hello.pid, v.pid);
	close(fd);
	return v;
}

static void give(const struct vmm *v, char what, uint32_t page, uint32_t pages)
{
	struct order order = { .what = what, .page = page, .pages = pages };

	ck_assert_int_eq(write(v->orders, &order, sizeof(order)), sizeof(order));
}

static char answered(const struct vmm *v)
{
	char answer = 0;

	ck_assert_int_eq(read(v->answers, &answer, 1), 1);
	return answer;
}

static char obey(const struct vmm *v, char what, uint32_t page, uint32_t pages)
{
	give(v, what, page, pages);
	return answered(v);
}

static void vmm_end(struct vmm *v, int signal)
{
	if (signal)
		kill(v->pid, signal);
	else
		give(v, 'q', 0, 0);
	ck_assert_int_eq(waitpid(v->pid, NULL, 0), v->pid);
	close(v->orders);
	close(v->answers);
}

/* --- the pager's side --- */

static struct memcg *group(struct memcg *parent, uint64_t id)
{
	struct memcg *m = NULL;

	ck_assert_int_eq(memcg_new(tree, parent, id, &m), 0);
	return m;
}

static void set_max(struct memcg *m, uint64_t max)
{
	struct memcg_knobs knobs = MEMCG_KNOBS_NONE;

	knobs.max = max;
	ck_assert_int_eq(memcg_set_knobs(m, &knobs), 0);
}

static void setup(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char page[PAGE];

	ck_assert_int_eq(memcg_tree_new(&tree), 0);
	slice = group(tree->root, 2);
	for (uint64_t i = 0; i < 8; i++)
		leaf[i] = group(slice, 10 + i);
	ck_assert_int_eq(pager_new(tree, 2, &pager), 0);
	scratch_new(dir);
	snprintf(path, sizeof(path), "%s/memory", dir);
	memory = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (size_t i = 0; i < PAGES; i++) {
		memset(page, (int)(i % 100) + 1, sizeof(page));
		ck_assert_int_eq(write(memory, page, sizeof(page)), sizeof(page));
	}
	unlink(path);
	snprintf(path, sizeof(path), "%s/pager.sock", dir);
	strcpy(address.sun_path, path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(listener, 8), 0);
}

static void teardown(void)
{
	pager_free(pager);
	memcg_tree_free(tree);
	close(listener);
	close(memory);
	unlink(path);
}

static void add(struct vmm *v, size_t n, bool file)
{
	const char *why = "";
	int r = pager_add(pager, leaf[n], &v->hello, file ? dup(memory) : -1, &why);

	ck_assert_msg(r == 0, "%d %s", r, why);
}

static struct pager_counts counts(size_t n)
{
	struct pager_counts c;

	ck_assert_int_eq(pager_counts(pager, leaf[n]->id, &c), 0);
	return c;
}

/*
 * Once the threads are idle the counters are exact. A page's own count follows the page: who
 * touched or dropped it may go on before it is counted.
 */
static void await_usage(const struct memcg *m, uint64_t pages)
{
	for (int i = 0; page_counter_read(&m->memory) != pages && i < LOOKS_MAX; i++)
		usleep(1000);
	ck_assert_uint_eq(page_counter_read(&m->memory), pages);
}

static uint64_t charged_of_all(void)
{
	uint64_t sum = 0;

	for (size_t n = 0; n < 8; n++)
		sum += counts(n).charged;
	return sum;
}

/* Then the counters have what the VMs are said to have, of all of them. */
static void await_sums(void)
{
	for (int i = 0; page_counter_read(&slice->memory) != charged_of_all(); i++) {
		ck_assert_int_lt(i, LOOKS_MAX);
		usleep(1000);
	}
}

static void await_gone(size_t n)
{
	for (int i = 0; !counts(n).gone; i++) {
		ck_assert_int_lt(i, LOOKS_MAX);
		usleep(1000);
	}
}

START_TEST(pages_come_from_the_snapshot_and_are_charged_one_by_one)
{
	struct vmm v = vmm_new(PAGES);

	add(&v, 0, true);
	ck_assert_int_eq(obey(&v, 't', 0, 1), 1);
	ck_assert_int_eq(obey(&v, 't', 41, 1), 42);
	await_usage(leaf[0], 2);
	ck_assert_int_eq(obey(&v, 't', 0, 100), 100);
	await_usage(leaf[0], 100);
	await_usage(slice, 100);
	ck_assert_uint_eq(counts(0).charged, 100);
	ck_assert_uint_eq(counts(0).faults, 100);
	vmm_end(&v, 0);
	await_usage(leaf[0], 0);
	await_gone(0);
	ck_assert_uint_eq(css_refs(&leaf[0]->css), 1);
}
END_TEST

START_TEST(what_the_balloon_drops_is_uncharged_and_comes_back_as_zeros)
{
	struct vmm v = vmm_new(PAGES);

	add(&v, 0, true);
	obey(&v, 'w', 0, PAGES);
	await_usage(leaf[0], PAGES);
	obey(&v, 'd', 10, 300);
	await_usage(leaf[0], PAGES - 300);
	ck_assert_uint_eq(counts(0).removed, 300);
	ck_assert_int_eq(obey(&v, 't', 10, 1), 0);
	ck_assert_int_eq(obey(&v, 't', 9, 1), 'w');
	await_usage(leaf[0], PAGES - 299);
	obey(&v, 'd', 10, 300);
	await_usage(leaf[0], PAGES - 300);
	vmm_end(&v, 0);
	await_gone(0);
	await_usage(slice, 0);
}
END_TEST

START_TEST(without_a_file_all_pages_are_zeros)
{
	struct vmm v = vmm_new(PAGES);

	add(&v, 0, false);
	ck_assert_int_eq(obey(&v, 't', 7, 1), 0);
	await_usage(leaf[0], 1);
	vmm_end(&v, 0);
	await_gone(0);
}
END_TEST

START_TEST(a_fault_over_a_max_waits_names_the_group_and_is_let_through_charged_over)
{
	struct vmm v = vmm_new(PAGES);
	struct pollfd fd = { .fd = pager_fd(pager), .events = POLLIN };

	set_max(slice, 100);
	add(&v, 0, true);
	obey(&v, 't', 0, 100);
	await_usage(slice, 100);
	ck_assert_uint_eq(counts(0).waited, 0);
	ck_assert_int_eq(obey(&v, 't', 100, 1), 1);
	ck_assert_uint_eq(counts(0).over, 1);
	ck_assert_uint_eq(counts(0).waited, 1);
	await_usage(slice, 101);
	ck_assert_int_eq(poll(&fd, 1, 0), 1);
	ck_assert_uint_eq(pager_take(pager), slice->id);
	ck_assert_uint_eq(pager_take(pager), 0);
	vmm_end(&v, 0);
	await_gone(0);
	await_usage(slice, 0);
}
END_TEST

START_TEST(a_fault_that_waits_goes_on_when_there_is_room)
{
	struct vmm a = vmm_new(PAGES), b = vmm_new(PAGES);

	set_max(slice, 100);
	add(&a, 0, true);
	add(&b, 1, true);
	obey(&a, 't', 0, 100);
	give(&b, 't', 0, 1);
	for (int i = 0; counts(1).waited == 0 && i < LOOKS_MAX; i++)
		usleep(1000);
	obey(&a, 'd', 0, 50);
	ck_assert_int_eq(answered(&b), 1);
	ck_assert_uint_eq(counts(1).over, 0);
	await_usage(slice, 51);
	await_usage(leaf[1], 1);
	vmm_end(&a, 0);
	vmm_end(&b, 0);
	await_gone(0);
	await_gone(1);
}
END_TEST

/* Threads that all fault at once, and room for a few: more than may wait, and than are read in one
 * go. */
#define FLOOD 300
#define ROOM  10

START_TEST(a_vmm_with_more_faults_than_may_wait_has_the_rest_let_through_and_keeps_nobody_waiting)
{
	struct vmm v[3] = { vmm_new(PAGES), vmm_new(PAGES), vmm_new(PAGES) };
	struct memcg *other = group(tree->root, 3);
	const char *why = "";

	set_max(slice, ROOM);
	add(&v[0], 0, true);
	add(&v[1], 1, true);
	/* There are two threads: this one is on the flooding one's. */
	ck_assert_int_eq(pager_add(pager, other, &v[2].hello, -1, &why), 0);
	give(&v[0], 'f', 0, FLOOD);
	for (int i = 0; counts(0).faults < FLOOD; i++) {
		ck_assert_int_lt(i, LOOKS_MAX);
		obey(&v[2], 't', (uint32_t)i % PAGES, 1);
		usleep(1000);
	}
	set_max(slice, PAGES);
	answered(&v[0]);
	await_usage(leaf[0], FLOOD);
	ck_assert_uint_ge(counts(0).waited, PAGER_WAITING_MAX);
	ck_assert_uint_ge(counts(0).over, FLOOD - ROOM - counts(0).waited);
	ck_assert_uint_ge(counts(0).waited + counts(0).over, FLOOD - ROOM);
	ck_assert_uint_gt(counts(0).over, 0);
	for (int n = 0; n < 3; n++)
		vmm_end(&v[n], n == 0 ? SIGKILL : 0);
	await_gone(0);
	await_gone(1);
	await_usage(slice, 0);
}
END_TEST

/* Its threads are many, and none of them has its page when it ends. */
START_TEST(a_vmm_that_dies_with_as_many_faults_as_may_wait_is_uncharged)
{
	struct vmm v = vmm_new(PAGES);

	set_max(slice, ROOM);
	add(&v, 0, true);
	give(&v, 'f', 0, FLOOD);
	for (int i = 0; counts(0).waited < PAGER_WAITING_MAX; i++) {
		ck_assert_int_lt(i, LOOKS_MAX);
		usleep(1000);
	}
	vmm_end(&v, SIGKILL);
	await_gone(0);
	await_usage(slice, 0);
	ck_assert_uint_eq(css_refs(&leaf[0]->css), 1);
}
END_TEST

START_TEST(anothers_stock_is_no_reason_to_charge_over)
{
	struct vmm v[2] = { vmm_new(PAGES), vmm_new(PAGES) };

	set_max(slice, 200);
	add(&v[0], 0, true);
	add(&v[1], 1, true);
	for (uint32_t i = 0; i < 100; i++)
		for (int n = 0; n < 2; n++)
			obey(&v[n], 't', i, 1);
	await_usage(slice, 200);
	ck_assert_uint_eq(counts(0).over + counts(1).over, 0);
	vmm_end(&v[0], 0);
	vmm_end(&v[1], 0);
	await_gone(0);
	await_gone(1);
}
END_TEST

START_TEST(a_vmm_that_dies_in_the_middle_is_uncharged_and_its_group_released)
{
	struct vmm v = vmm_new(PAGES), other = vmm_new(PAGES);

	set_max(slice, 300);
	add(&v, 0, true);
	add(&other, 1, true);
	obey(&other, 't', 0, 50);
	give(&v, 't', 0, PAGES); /* over the max: it stands in the middle */
	for (int i = 0; counts(0).waited == 0 && i < LOOKS_MAX; i++)
		usleep(1000);
	ck_assert_int_eq(charge_kill(leaf[0]), 0);
	ck_assert_uint_eq(memcg_reap(tree), 0); /* its pages are there as long as it is */
	vmm_end(&v, SIGKILL);
	await_usage(leaf[1], 50);
	await_usage(slice, 50);
	await_gone(0);
	while (drain_and_see(tree))
		;
	ck_assert_uint_eq(memcg_reap(tree), 1);
	vmm_end(&other, 0);
	await_gone(1);
}
END_TEST

START_TEST(a_vm_that_moves_is_uncharged_there_and_charged_here_over_a_max_where_it_must)
{
	struct vmm v = vmm_new(PAGES);

	add(&v, 0, true);
	obey(&v, 't', 0, 100);
	await_usage(leaf[0], 100);
	set_max(leaf[1], 50);
	ck_assert_int_eq(pager_move(pager, 777, leaf[1]), -ENOENT);
	ck_assert_int_eq(pager_move(pager, leaf[0]->id, leaf[1]), 0);
	await_usage(leaf[0], 0);
	await_usage(leaf[1], 100);
	await_usage(slice, 100);
	ck_assert_uint_eq(css_refs(&leaf[0]->css), 1);
	ck_assert_uint_eq(counts(1).charged, 100);
	obey(&v, 'd', 0, 60);
	await_usage(leaf[1], 40);
	obey(&v, 't', 0, 10);
	await_usage(leaf[1], 50);
	/* Again and again, and there at last. */
	for (size_t n = 1; n < 7; n++)
		ck_assert_int_eq(pager_move(pager, leaf[n]->id, leaf[n + 1]), 0);
	await_usage(leaf[7], 50);
	await_usage(slice, 50);
	ck_assert_int_eq(charge_kill(leaf[6]), 0);
	ck_assert_int_eq(pager_move(pager, leaf[7]->id, leaf[6]), -ENODEV);
	vmm_end(&v, 0);
	await_gone(7);
	await_usage(slice, 0);
}
END_TEST

/* What a thread drops while another faults it in: of so many pages, one after the other, each at
 * the end of what is dropped at once. */
#define RACES	100
#define AT_ONCE 256

START_TEST(a_page_that_is_dropped_while_it_is_faulted_in_is_counted_as_it_is_in_the_end)
{
	struct vmm v = vmm_new(PAGES);
	uint64_t counted, there;
	int looks = 0;

	add(&v, 0, false);
	for (uint32_t i = 0; i < RACES; i++) {
		obey(&v, 'w', PAGES - AT_ONCE - i, AT_ONCE - 1);
		obey(&v, 'r', PAGES - AT_ONCE - i, AT_ONCE);
	}
	do {
		usleep(1000);
		counted = page_counter_read(&leaf[0]->memory);
		there = (unsigned char)obey(&v, 'm', PAGES - RACES, RACES);
	} while (counted != there && ++looks < LOOKS_MAX);
	ck_assert_uint_eq(counted, there);
	ck_assert_uint_eq(counts(0).charged, there);
	printf("# %d looks until it was so\n", looks);
	vmm_end(&v, 0);
	await_gone(0);
	await_usage(slice, 0);
}
END_TEST

START_TEST(a_vmm_that_lied_about_its_memory_harms_only_itself_and_does_not_hang)
{
	struct vmm v = vmm_new(100), other = vmm_new(PAGES);

	add(&v, 0, true);
	add(&other, 1, true);
	obey(&v, 't', 0, 10);
	obey(&v, 't', 200, 1); /* of which nothing was told */
	ck_assert(counts(0).left);
	ck_assert_int_eq(obey(&v, 't', 50, 1), 51); /* as before: from the file */
	await_usage(leaf[0], 11);		    /* nothing that it did not touch */
	obey(&other, 't', 0, PAGES);
	await_usage(leaf[1], PAGES);
	vmm_end(&v, 0);
	vmm_end(&other, 0);
	await_gone(0);
	await_gone(1);
	await_usage(slice, 0);
}
END_TEST

START_TEST(a_vm_outlives_the_pager_with_all_of_its_memory)
{
	struct vmm v = vmm_new(PAGES);

	add(&v, 0, true);
	obey(&v, 't', 0, 10);
	pager_free(pager);
	pager = NULL;
	ck_assert_uint_eq(page_counter_read(&leaf[0]->memory), 0);
	ck_assert_int_eq(obey(&v, 't', 41, 1), 42);
	vmm_end(&v, 0);
}
END_TEST

START_TEST(a_file_that_got_shorter_is_an_error_for_who_touches_the_page_alone)
{
	struct vmm v = vmm_new(PAGES), other = vmm_new(PAGES);
	int status;

	add(&v, 0, true);
	add(&other, 1, false);
	obey(&v, 't', 0, 1);
	ck_assert_int_eq(ftruncate(memory, 10 * PAGE), 0);
	give(&v, 't', 100, 1);
	ck_assert_int_eq(waitpid(v.pid, &status, 0), v.pid); /* SIGBUS */
	ck_assert(WIFSIGNALED(status));
	await_usage(leaf[0], 0);
	obey(&other, 't', 0, 1);
	close(v.orders);
	close(v.answers);
	vmm_end(&other, 0);
	await_gone(0);
	await_gone(1);
}
END_TEST

/* For a moment, under what is there: who faults waits, and goes on. */
static void tighten(size_t n, uint64_t most)
{
	set_max(slice, PAGES);
	set_max(leaf[n], PAGES / 4);
	usleep(1000);
	set_max(leaf[n], PAGES_UNLIMITED);
	set_max(slice, most);
}

/* A VMM that has more faults each round: what it has is dropped first. One dies now and then, in
 * its faults; and limits change while there are some. */
static uint64_t play_round(struct vmm *v, uint32_t round)
{
	static const char deeds[] = { 'w', 'd', 't' };
	uint32_t from = round * 37 % (PAGES / 2);
	uint64_t most = round % 100 == 2 ? 8 * PAGES - 1 : 8 * PAGES + round % 100;
	size_t dies = round / 10 % 8;

	/* At times there is no room for all: whoever comes last waits, and is charged over. */
	set_max(slice, most);
	for (size_t i = 0; i < sizeof(deeds); i++) {
		for (size_t n = 0; n < 8; n++)
			give(&v[n], deeds[i], deeds[i] == 'd' ? from : 0,
				deeds[i] == 'd' ? PAGES / 2 : PAGES);
		if (i == round % sizeof(deeds))
			tighten(round % 8, most);
		for (size_t n = 0; n < 8; n++)
			answered(&v[n]);
	}
	if (round % 10 != 5)
		return 0;
	await_sums();
	obey(&v[dies], 'd', 0, PAGES);
	give(&v[dies], 'w', 0, PAGES);
	vmm_end(&v[dies], SIGKILL);
	await_gone(dies);
	v[dies] = vmm_new(PAGES);
	add(&v[dies], dies, dies % 2);
	return 1;
}

/* BALLAST_PAGER_FAULTS: of each VM, on average; a million are as many as `./dev soak pager` has. */
START_TEST(eight_vms_that_fault_drop_and_die_leave_exact_counts)
{
	const char *faults = getenv("BALLAST_PAGER_FAULTS");
	uint32_t rounds = (faults ? (uint32_t)strtoul(faults, NULL, 10) : 3000) / (PAGES / 2);
	struct vmm v[8];
	uint64_t died = 0;

	for (size_t n = 0; n < 8; n++) {
		v[n] = vmm_new(PAGES);
		add(&v[n], n, n % 2);
	}
	for (uint32_t round = 0; round < rounds; round++)
		died += play_round(v, round);
	ck_assert_uint_gt(died, 0);
	await_sums();
	for (size_t n = 0; n < 8; n++) {
		await_usage(leaf[n], counts(n).charged);
		vmm_end(&v[n], 0);
	}
	await_usage(slice, 0);
	for (size_t n = 0; n < 8; n++) {
		await_gone(n);
		ck_assert_uint_eq(css_refs(&leaf[n]->css), 1);
	}
	memcg_verify(tree);
}
END_TEST

/* --- what is refused --- */

static void check_refused(const char *text)
{
	struct pager_region regions[PAGER_REGIONS_MAX];
	const char *why = NULL;
	size_t nr = 77;

	ck_assert_int_eq(pager_parse(text, strlen(text), regions, &nr, &why), -EINVAL);
	ck_assert_ptr_nonnull(why);
	ck_assert_uint_eq(nr, 77);
}

#define REGION(base, size, offset)                                                                 \
	"{\"base_host_virt_addr\":" base ",\"size\":" size ",\"offset\":" offset "}"

START_TEST(layouts_are_read_and_nonsense_is_refused_in_words)
{
	struct pager_region regions[PAGER_REGIONS_MAX];
	const char *why = NULL, *good = "[" REGION("4096", "8192", "0") "," REGION(
					"1048576", "4096", "8192") "]";
	char many[PAGER_MESSAGE_MAX + 2];
	size_t nr = 0;

	ck_assert_int_eq(pager_parse(good, strlen(good), regions, &nr, &why), 0);
	ck_assert_uint_eq(nr, 2);
	ck_assert_uint_eq(regions[0].pages, 2);
	ck_assert_uint_eq(regions[1].base, 1048576);
	ck_assert_uint_eq(regions[1].offset, 8192);
	for (size_t n = 0; n < strlen(good); n++)
		ck_assert_int_eq(pager_parse(good, n, regions, &nr, &why), -EINVAL);
	check_refused("[]");
	check_refused("{}");
	check_refused("null");
	check_refused("[7]");
	check_refused("[{}]");
	check_refused("[" REGION("4096", "0", "0") "]");
	check_refused("[" REGION("4097", "4096", "0") "]");
	check_refused("[" REGION("4096", "4095", "0") "]");
	check_refused("[" REGION("-4096", "4096", "0") "]");
	check_refused("[" REGION("18446744073709547520", "8192", "0") "]");
	check_refused("[" REGION("4096", "4096", "9223372036854771712") "]");
	check_refused("[" REGION("0", "1099511631872", "0") "]");
	check_refused(
		"[" REGION("0", "1099511627776", "0") "," REGION("1099511627776", "4096", "0") "]");
	check_refused("[" REGION("4096", "8192", "0") "," REGION("8192", "4096", "0") "]");
	check_refused(
		"[{\"base_host_virt_addr\":0,\"size\":4096,\"offset\":0,\"page_size\":2097152}]");
	check_refused(
		"[{\"base_host_virt_addr\":0,\"size\":4096,\"offset\":0,\"page_size_kib\":2048}]");
	memset(many, ' ', sizeof(many) - 1);
	many[sizeof(many) - 1] = 0;
	check_refused(many);
}
END_TEST

/* A process that sends what it likes. */
static int send_and_receive(const char *text, int fd, struct pager_hello *ret_hello)
{
	const char *why = NULL;
	int connection = vmm_connect(), other = accept4(listener, NULL, NULL, SOCK_CLOEXEC), r;

	ck_assert_int_eq(pager_receive(other, ret_hello, &why), -EAGAIN);
	vmm_send(connection, text, fd);
	r = pager_receive(other, ret_hello, &why);
	close(connection);
	close(other);
	return r;
}

START_TEST(messages_without_what_belongs_to_them_are_refused)
{
	struct pager_hello hello;
	const char *good = "[" REGION("4096", "8192", "0") "]", *why = NULL;

	ck_assert_int_eq(send_and_receive(good, -1, &hello), -EINVAL);
	ck_assert_int_eq(send_and_receive("[", memory, &hello), -EINVAL);
	/* A descriptor, but no userfaultfd. */
	ck_assert_int_eq(send_and_receive(good, memory, &hello), 0);
	ck_assert_int_eq(pager_add(pager, leaf[0], &hello, memory, &why), -EINVAL);
	ck_assert_ptr_nonnull(why);
	ck_assert_int_eq(close(hello.uffd), 0); /* nothing of it was taken */
	ck_assert_int_eq(fcntl(memory, F_GETFD), FD_CLOEXEC);
}
END_TEST

START_TEST(who_cannot_be_served_is_not_taken)
{
	struct vmm v = vmm_new(PAGES);
	struct pager_counts c;
	struct pager *other;
	const char *why = NULL;

	ck_assert_int_eq(ftruncate(memory, PAGES * PAGE - 1), 0);
	ck_assert_int_eq(pager_add(pager, leaf[0], &v.hello, memory, &why), -EINVAL);
	ck_assert_str_eq(why, "regions that its memory file does not have");
	ck_assert_int_eq(charge_kill(leaf[1]), 0);
	css_get(&slice->css);
	ck_assert_int_eq(pager_counts(pager, leaf[0]->id, &c), -ENOENT);
	css_put(&slice->css);
	vmm_end(&v, SIGKILL);
	ck_assert_int_eq(pager_add(pager, leaf[0], &v.hello, -1, &why), -ENODEV);
	close(v.hello.uffd);
	ck_assert_uint_eq(css_refs(&leaf[0]->css), 1);
	ck_assert_int_eq(pager_new(tree, 0, &other), -EINVAL);
	ck_assert_int_eq(pager_new(tree, PAGER_THREADS_MAX + 1, &other), -EINVAL);
	ck_assert_int_eq(pager_new(tree, 1, &other), -EEXIST);
	pager_free(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pager");
	TCase *tc = tcase_create("pager");
	int fd = new_uffd();

	if (fd < 0) {
		printf("1..0 # SKIP userfaultfd is not allowed here: %s\n", strerror(errno));
		return EXIT_SUCCESS;
	}
	close(fd);
	scratch_begin();
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, pages_come_from_the_snapshot_and_are_charged_one_by_one);
	tcase_add_test(tc, what_the_balloon_drops_is_uncharged_and_comes_back_as_zeros);
	tcase_add_test(tc, without_a_file_all_pages_are_zeros);
	tcase_add_test(
		tc, a_fault_over_a_max_waits_names_the_group_and_is_let_through_charged_over);
	tcase_add_test(tc, a_fault_that_waits_goes_on_when_there_is_room);
	if (THREADS_AFTER_FORK) {
		tcase_add_test(tc,
			a_vmm_with_more_faults_than_may_wait_has_the_rest_let_through_and_keeps_nobody_waiting);
		tcase_add_test(tc, a_vmm_that_dies_with_as_many_faults_as_may_wait_is_uncharged);
	}
	tcase_add_test(tc, anothers_stock_is_no_reason_to_charge_over);
	tcase_add_test(tc, a_vmm_that_dies_in_the_middle_is_uncharged_and_its_group_released);
	tcase_add_test(
		tc, a_vm_that_moves_is_uncharged_there_and_charged_here_over_a_max_where_it_must);
	tcase_add_test(tc, a_vmm_that_lied_about_its_memory_harms_only_itself_and_does_not_hang);
	if (THREADS_AFTER_FORK)
		tcase_add_test(tc,
			a_page_that_is_dropped_while_it_is_faulted_in_is_counted_as_it_is_in_the_end);
	tcase_add_test(tc, a_vm_outlives_the_pager_with_all_of_its_memory);
	tcase_add_test(tc, a_file_that_got_shorter_is_an_error_for_who_touches_the_page_alone);
	tcase_add_test(tc, eight_vms_that_fault_drop_and_die_leave_exact_counts);
	tcase_add_test(tc, layouts_are_read_and_nonsense_is_refused_in_words);
	tcase_add_test(tc, messages_without_what_belongs_to_them_are_refused);
	tcase_add_test(tc, who_cannot_be_served_is_not_taken);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
