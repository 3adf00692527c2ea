/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * MicroVMs beside a hypervisor's VMs: a core with the pager's backend, around one that has no VM. A
 * process plays the VMM and connects to the socket of its name. Skipped without userfaultfd.
 */
#include <config.h>

#include "hv/pager/backend.h"
#include "common/json.h"
#include "hv/ballastd/views.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	  4096
#define PAGES	  256
#define STEP_US	  100000
#define STEPS_MAX 2000

/* --- the hypervisor: there is no VM --- */

#define OUT_MAX 64

static struct hv_event out[OUT_MAX];
static size_t nr_out;
static int none_event = -1; /* tells nothing: next() is called all the same */

static bool none_handles(const char *uri)
{
	return uri != NULL;
}

static int none_open(const struct hv_params *params, struct hv **ret_hv)
{
	(void)params;
	nr_out = 1;
	out[0] = (struct hv_event){ .type = HV_EVENT_UP };
	*ret_hv = (struct hv *)out;
	return 0;
}

static void none_close(struct hv *hv)
{
	(void)hv;
}

static int none_fd(struct hv *hv)
{
	(void)hv;
	return none_event;
}

static int none_submit(struct hv *hv, const struct hv_call *call)
{
	struct hv_event event = { .type = hv_answer_of(call->type), .token = call->token };

	(void)hv;
	if (call->type == HV_HOST)
		event.host = (struct hv_host){
			.known = true, .total = UINT64_C(8) << 30, .available = UINT64_C(4) << 30
		};
	ck_assert_uint_lt(nr_out, OUT_MAX);
	out[nr_out++] = event;
	return 0;
}

static int none_next(struct hv *hv, struct hv_event *ret_event)
{
	(void)hv;
	if (nr_out == 0)
		return 0;
	*ret_event = out[0];
	memmove(out, out + 1, --nr_out * sizeof(out[0]));
	return 1;
}

static const struct hv_backend none = {
	.name = "none",
	.granule = 1 << 20,
	.handles = none_handles,
	.open = none_open,
	.close = none_close,
	.fd = none_fd,
	.submit = none_submit,
	.next = none_next,
};

/* --- the daemon: a core in steps of 100 ms --- */

static const struct hv_backend *backend;
static struct hv *hv;
static struct core *core;
static uint64_t now;
static char dir[SCRATCH_PATH], path[128], told[300];
static unsigned int warnings, nr_told;

static void log_line(void *ctx, const struct core_line *line)
{
	(void)ctx;
	warnings += line->level <= CORE_LOG_WARNING;
}

static void step(void)
{
	const struct hv_call *calls;
	struct hv_event event;
	uint64_t next;
	size_t nr;

	while (backend->next(hv, &event) == 1) {
		if (event.message) {
			snprintf(told, sizeof(told), "%s", event.message);
			nr_told++;
		}
		core_event(core, now, &event);
		hv_event_clear(&event);
	}
	ck_assert_int_eq(core_step(core, now, &calls, &nr, &next), 0);
	hv_pager_bind(hv, core);
	for (size_t i = 0; i < nr; i++)
		ck_assert_int_eq(backend->submit(hv, &calls[i]), 0);
	now += STEP_US;
	usleep(1000);
}

static bool usage(const char *name, uint64_t *ret_pages)
{
	struct core_vm_view view;
	uint64_t id;

	if (core_find(core, name, &id) < 0 || core_vm(core, id, &view) < 0)
		return false;
	*ret_pages = view.engine.set.usage;
	return view.engine.set.usage_known;
}

static void await_usage(const char *name, uint64_t pages)
{
	uint64_t has = 0;

	for (int i = 0; i < STEPS_MAX; i++) {
		if (usage(name, &has) && has == pages)
			return;
		step();
	}
	ck_abort_msg("%s: %llu, not %llu pages", name, (unsigned long long)has,
		(unsigned long long)pages);
}

static struct hv_paging paging(const char *name)
{
	struct core_vm_view view;
	uint64_t id;

	ck_assert_int_eq(core_find(core, name, &id), 0);
	ck_assert_int_eq(core_vm(core, id, &view), 0);
	return view.paging;
}

/* As the control socket has it. */
static uint64_t paging_said(const char *member)
{
	struct json_object *status = views_status(core, now), *vms, *object;
	uint64_t value = UINT64_MAX;

	ck_assert_int_eq(json_get_array(status, "vms", &vms), 0);
	ck_assert_uint_eq(json_object_array_length(vms), 1);
	ck_assert_int_eq(json_get_object(json_object_array_get_idx(vms, 0), "paging", &object), 0);
	ck_assert_int_eq(json_get_u64(object, member, &value), 0);
	json_object_put(status);
	return value;
}

static void await_gone(const char *name)
{
	uint64_t id;

	for (int i = 0; core_find(core, name, &id) == 0; i++) {
		ck_assert_int_lt(i, STEPS_MAX);
		step();
	}
}

static struct core_rule rule;
static struct core_config config;

static void setup(void)
{
	struct hv_params params = { .inner = &none, .pager = dir };
	char page[PAGE];
	int fd;

	scratch_new(dir);
	snprintf(path, sizeof(path), "%s/web1.mem", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	for (int i = 0; i < PAGES; i++) {
		memset(page, i % 100 + 1, sizeof(page));
		ck_assert_int_eq(write(fd, page, sizeof(page)), sizeof(page));
	}
	close(fd);
	core_config_default(&config);
	rule = (struct core_rule){ .name = (char *)"vms", .match_name = (char *)"web*" };
	rule.knobs = (struct hv_knobs){ .has_max = true, .max = 200 * PAGE };
	config.rules = &rule;
	config.nr_rules = 1;
	config.log = log_line;
	warnings = nr_told = 0;
	none_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	backend = hv_pager(&none);
	now = 1000000;
	told[0] = 0;
	ck_assert_int_eq(core_new(&config, backend, &core), 0);
	ck_assert_int_eq(backend->open(&params, &hv), 0);
}

static void teardown(void)
{
	backend->close(hv);
	core_free(core);
	close(none_event);
	unlink(path);
	snprintf(path, sizeof(path), "%s/web1.sock", dir);
	unlink(path);
}

/* --- the VMM --- */

static int orders[2], answers[2];

static void vmm_main(const char *text)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_EVENT_REMOVE };
	struct uffdio_register all = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char *guest = mmap(
		NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), n;
	char layout[200];
	struct iovec iov = { .iov_base = layout };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };

	close(orders[1]);
	all.range.start = (uintptr_t)guest;
	all.range.len = PAGES * PAGE;
	if (ioctl(uffd, UFFDIO_API, &api) < 0 || ioctl(uffd, UFFDIO_REGISTER, &all) < 0)
		_exit(1);
	snprintf(layout, sizeof(layout),
		"[{\"base_host_virt_addr\":%llu,\"size\":%d,\"offset\":0,\"page_size\":4096}]",
		(unsigned long long)(uintptr_t)guest, PAGES * PAGE);
	iov.iov_base = text ? (char *)text : layout;
	iov.iov_len = strlen(iov.iov_base);
	CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &uffd, sizeof(int));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/web1.sock", dir);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		sendmsg(fd, &msg, 0) < 0)
		_exit(2);
	/* A number of pages to have; negative: to drop. */
	while (read(orders[0], &n, sizeof(n)) == sizeof(n)) {
		if (n < 0)
			madvise(guest, (size_t)-n * PAGE, MADV_DONTNEED);
		for (int i = 0; i < n; i++)
			((volatile char *)guest)[(size_t)i * PAGE]++;
		if (write(answers[1], &n, sizeof(n)) != sizeof(n))
			break;
	}
	_exit(0);
}

static pid_t vmm_new(const char *text)
{
	pid_t pid;

	ck_assert_int_eq(pipe(orders), 0);
	ck_assert_int_eq(pipe(answers), 0);
	pid = fork();
	if (pid == 0)
		vmm_main(text);
	close(orders[0]);
	close(answers[1]);
	ck_assert_int_eq(fcntl(answers[0], F_SETFL, O_NONBLOCK), 0);
	return pid;
}

static void obey(int n)
{
	int said = 0;

	ck_assert_int_eq(write(orders[1], &n, sizeof(n)), sizeof(n));
	for (int i = 0; read(answers[0], &said, sizeof(said)) < 0; i++) {
		ck_assert_int_lt(i, STEPS_MAX);
		step();
	}
}

static void vmm_end(pid_t pid)
{
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	close(orders[1]);
	close(answers[0]);
}

START_TEST(a_microvm_stands_among_the_vms_exact_to_the_page_until_its_process_is_gone)
{
	pid_t pid = vmm_new(NULL);
	struct core_vm_view view;
	uint64_t id;

	obey(100);
	await_usage("web1", 100);
	ck_assert_int_eq(core_find(core, "web1", &id), 0);
	ck_assert_int_eq(core_vm(core, id, &view), 0);
	ck_assert_uint_eq(view.engine.knobs.max, 200);
	obey(-30);
	await_usage("web1", 70);
	vmm_end(pid);
	await_gone("web1");
	/* What its thread has in stock it gives back when it is idle. */
	for (int i = 0; page_counter_read(&engine_tree(core_engine(core))->root->memory); i++) {
		ck_assert_int_lt(i, STEPS_MAX);
		step();
	}
	/* The name is free again. */
	pid = vmm_new(NULL);
	obey(7);
	await_usage("web1", 7);
	vmm_end(pid);
	await_gone("web1");
}
END_TEST

START_TEST(its_max_holds_to_the_page_and_what_is_over_is_let_through_and_shown)
{
	pid_t pid = vmm_new(NULL);

	obey(200);
	await_usage("web1", 200);
	ck_assert_uint_eq(paging("web1").over, 0);
	ck_assert_uint_eq(warnings, 0);
	obey(201);
	await_usage("web1", 201);
	ck_assert_uint_eq(paging("web1").over, 1);
	ck_assert_uint_eq(paging_said("over_max"), PAGE);
	ck_assert_uint_eq(paging_said("waited"), 1);
	ck_assert_uint_eq(paging_said("faults"), 201);
	ck_assert_uint_eq(warnings, 1);
	obey(202);
	await_usage("web1", 202);
	ck_assert_uint_eq(paging_said("over_max"), 2 * PAGE);
	ck_assert_uint_eq(warnings, 1); /* said once */
	vmm_end(pid);
	await_gone("web1");
}
END_TEST

static uint64_t charged_to(const char *name)
{
	uint64_t id;

	return core_find(core, name, &id) < 0
		       ? UINT64_MAX
		       : page_counter_read(&memcg_find(engine_tree(core_engine(core)), id)->memory);
}

START_TEST(put_into_another_group_it_is_charged_there_and_its_max_holds)
{
	pid_t pid = vmm_new(NULL);

	obey(100);
	await_usage("web1", 100);
	rule.knobs = (struct hv_knobs){
		.has_max = true, .max = 150 * PAGE, .has_group = true, .group = (char *)"/other"
	};
	ck_assert_int_eq(core_set_config(core, now, &config), 0);
	for (int i = 0; charged_to("/other") != 100; i++) {
		ck_assert_int_lt(i, STEPS_MAX);
		step();
	}
	await_usage("web1", 100);
	obey(150);
	await_usage("web1", 150);
	ck_assert_uint_eq(paging("web1").over, 0);
	obey(151);
	await_usage("web1", 151);
	ck_assert_uint_eq(paging("web1").over, 1);
	vmm_end(pid);
	await_gone("web1");
	for (int i = 0; page_counter_read(&engine_tree(core_engine(core))->root->memory); i++) {
		ck_assert_int_lt(i, STEPS_MAX);
		step();
	}
}
END_TEST

START_TEST(nonsense_is_refused_in_words_and_no_vm)
{
	pid_t pid = vmm_new("[{\"base_host_virt_addr\":1}]");
	uint64_t id;

	for (int i = 0; !told[0] && i < STEPS_MAX; i++)
		step();
	ck_assert_str_eq(told, "web1: refused: it sent a region without address, size or offset");
	ck_assert_int_lt(core_find(core, "web1", &id), 0);
	vmm_end(pid);
}
END_TEST

static void await_told(const char *what)
{
	for (int i = 0; !strstr(told, what); i++) {
		ck_assert_msg(i < STEPS_MAX, "%s", told);
		step();
	}
}

/* Nothing is to be looked at: the daemon sleeps. */
static void await_rest(void)
{
	struct pollfd fd = { .fd = backend->fd(hv), .events = POLLIN };

	for (int i = 0; poll(&fd, 1, 0) != 0; i++) {
		ck_assert_int_lt(i, STEPS_MAX);
		step();
	}
}

static int connect_once_more(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/web1.sock", dir);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

START_TEST(second_vmm_of_a_name_waits_and_keeps_nobody_busy)
{
	pid_t pid = vmm_new(NULL);
	int fd;

	obey(10);
	fd = connect_once_more();
	await_rest();
	vmm_end(pid);
	await_gone("web1");
	/* Now it is its turn: and gone, it is refused. */
	close(fd);
	await_told("refused: it sent not one descriptor");
}
END_TEST

START_TEST(vmm_that_cannot_be_taken_for_want_of_descriptors_keeps_nobody_busy_and_is_taken_later)
{
	struct rlimit limit, none_left;
	int first_free;
	pid_t pid;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	step();
	none_left = limit;
	pid = vmm_new(NULL);
	first_free = dup(0);
	close(first_free);
	none_left.rlim_cur = (rlim_t)first_free;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none_left), 0);
	await_told("web1: who connects cannot be taken: Too many open files");
	await_rest();
	ck_assert_uint_eq(nr_told, 1);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	obey(10);
	vmm_end(pid);
}
END_TEST

static void make_file(const char *name)
{
	char file[SCRATCH_PATH + 256];
	int fd;

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void remove_file(const char *name)
{
	char file[SCRATCH_PATH + 256];

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	ck_assert_int_eq(unlink(file), 0);
}

static void await_file(const char *name, bool there)
{
	char file[SCRATCH_PATH + 256];

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	for (int i = 0; (access(file, F_OK) == 0) != there; i++) {
		ck_assert_int_lt(i, STEPS_MAX);
		step();
	}
}

START_TEST(name_whose_file_is_gone_makes_room_for_another)
{
	pid_t pid = vmm_new(NULL);

	make_file("old.mem");
	await_file("old.sock", true);
	obey(10);
	remove_file("old.mem");
	remove_file("web1.mem");
	await_file("old.sock", false);
	/* One that runs has its name as long as it runs. */
	await_usage("web1", 10);
	await_file("web1.sock", true);
	vmm_end(pid);
	await_file("web1.sock", false);
}
END_TEST

START_TEST(socket_that_cannot_be_made_is_told_once)
{
	char name[120];

	memset(name, 'n', sizeof(name));
	strcpy(name + sizeof(name) - 5, ".mem");
	make_file(name);
	await_told("nnn: no socket: File name too long");
	for (int i = 0; i < 200; i++) /* of which each fiftieth lists */
		step();
	ck_assert_uint_eq(nr_told, 1);
	remove_file(name);
}
END_TEST

START_TEST(memory_file_that_cannot_be_opened_is_told_for_what_it_is)
{
	pid_t pid;

	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(symlink("web1.mem", path), 0);
	pid = vmm_new(NULL);
	await_told("web1: refused: its memory file cannot be read: Too many levels");
	vmm_end(pid);
}
END_TEST

START_TEST(vmm_that_is_gone_before_it_is_served_is_told_for_what_it_is)
{
	pid_t pid = vmm_new(NULL);
	struct pollfd obeyed = { .fd = answers[0], .events = POLLIN };
	int nothing = 0;

	/* Once it obeys, it has sent its message. */
	ck_assert_int_eq(write(orders[1], &nothing, sizeof(nothing)), sizeof(nothing));
	ck_assert_int_eq(poll(&obeyed, 1, -1), 1);
	vmm_end(pid);
	await_told("web1: refused: ");
	ck_assert_ptr_nonnull(strstr(told, " gone"));
}
END_TEST

START_TEST(while_the_hypervisor_is_away_microvms_run_uncharged_and_are_charged_when_it_is_back)
{
	pid_t pid;
	uint64_t id;

	step();
	out[nr_out++] = (struct hv_event){ .type = HV_EVENT_DOWN };
	step();
	pid = vmm_new(NULL);
	obey(10);
	ck_assert_int_lt(core_find(core, "web1", &id), 0);
	ck_assert_uint_eq(page_counter_read(&engine_tree(core_engine(core))->root->memory), 0);
	/* The name is free again when it is gone, also now. */
	vmm_end(pid);
	pid = vmm_new(NULL);
	obey(201);
	out[nr_out++] = (struct hv_event){ .type = HV_EVENT_UP };
	await_usage("web1", 201);
	/* Its thread charges what it had resolved before, by and by. */
	for (int i = 0; charged_to("web1") != 201; i++) {
		ck_assert_int_lt(i, STEPS_MAX);
		step();
	}
	obey(-11);
	await_usage("web1", 190);
	vmm_end(pid);
	await_gone("web1");
}
END_TEST

START_TEST(what_the_hypervisor_is_like_stays_so)
{
	struct hv_backend inner = none;

	inner.silent = inner.host_apart = inner.loosens = true;
	ck_assert(hv_pager(&inner)->silent);
	ck_assert(hv_pager(&inner)->host_apart);
	ck_assert(hv_pager(&inner)->loosens);
	ck_assert_uint_eq(hv_pager(&inner)->granule, none.granule);
	hv_pager(&none);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pager_backend");
	TCase *tc = tcase_create("pager_backend");
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		puts("1..0 # SKIP userfaultfd is not allowed here");
		return EXIT_SUCCESS;
	}
	close(fd);
	scratch_begin();
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(
		tc, a_microvm_stands_among_the_vms_exact_to_the_page_until_its_process_is_gone);
	tcase_add_test(tc, its_max_holds_to_the_page_and_what_is_over_is_let_through_and_shown);
	tcase_add_test(tc, put_into_another_group_it_is_charged_there_and_its_max_holds);
	tcase_add_test(tc, nonsense_is_refused_in_words_and_no_vm);
	tcase_add_test(tc, second_vmm_of_a_name_waits_and_keeps_nobody_busy);
	tcase_add_test(tc,
		vmm_that_cannot_be_taken_for_want_of_descriptors_keeps_nobody_busy_and_is_taken_later);
	tcase_add_test(tc, name_whose_file_is_gone_makes_room_for_another);
	tcase_add_test(tc, socket_that_cannot_be_made_is_told_once);
	tcase_add_test(tc, memory_file_that_cannot_be_opened_is_told_for_what_it_is);
	tcase_add_test(tc, vmm_that_is_gone_before_it_is_served_is_told_for_what_it_is);
	tcase_add_test(tc,
		while_the_hypervisor_is_away_microvms_run_uncharged_and_are_charged_when_it_is_back);
	tcase_add_test(tc, what_the_hypervisor_is_like_stays_so);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
