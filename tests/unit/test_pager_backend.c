/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * MicroVMs beside a hypervisor's VMs: a core with the pager's backend, around one that has no VM,
 * or one with a balloon. A process plays the VMM and connects to the socket of its name. Skipped
 * without userfaultfd.
 */
#include <config.h>

#include "hv/pager/backend.h"
#include "common/json.h"
#include "hv/ballastd/views.h"
#include "tests/unit/faults.h"
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
/* Only a failure waits for it. */
#define PATIENCE_MS 20000

/* --- the hypervisor: there is no VM, or db --- */

#define OUT_MAX	   64
#define MIB	   (UINT64_C(1) << 20)
#define DB_MAXIMUM (256 * MIB)

static struct hv_event out[OUT_MAX];
static size_t nr_out;
static int out_fd = -1;

/* Has what its balloon leaves it, at once. `least`: the least that it was told to have. */
static struct {
	bool there;
	uint64_t actual, least, resident, updates;
} db;
static const struct hv_uuid db_uuid = { { 0xdb } };

static void tell(const struct hv_event *event)
{
	MUST(nr_out < OUT_MAX);
	out[nr_out++] = *event;
	eventfd_write(out_fd, 1);
}

static bool none_handles(const char *uri)
{
	return uri != NULL;
}

static int none_open(const struct hv_params *params, struct hv **ret_hv)
{
	(void)params;
	nr_out = 0;
	out_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (out_fd < 0)
		return -errno;
	tell(&(struct hv_event){ .type = HV_EVENT_UP });
	*ret_hv = (struct hv *)out;
	return 0;
}

static void none_close(struct hv *hv)
{
	(void)hv;
	while (nr_out)
		hv_event_clear(&out[--nr_out]);
	close(out_fd);
}

static int none_fd(struct hv *hv)
{
	(void)hv;
	return out_fd;
}

static void db_listed(struct hv_event *event)
{
	event->listed.nr = 1;
	event->listed.vms = calloc(1, sizeof(struct hv_listed));
	event->listed.vms[0] =
		(struct hv_listed){ .uuid = db_uuid, .name = strdup("db"), .state = HV_RUNNING };
}

static void db_process(struct hv_event *event)
{
	event->process.nr = 1;
	event->process.vms = calloc(1, sizeof(struct hv_process));
	event->process.vms[0] = (struct hv_process){ .uuid = db_uuid,
		.known = true,
		.swap_known = true,
		.resident = db.resident,
		.started = 1 };
}

static void db_answer(const struct hv_call *call, struct hv_event *event)
{
	if (call->type == HV_LIST) {
		db_listed(event);
	} else if (call->type == HV_PROCESS) {
		db_process(event);
	} else if (call->type == HV_INFO) {
		event->info = (struct hv_info){ .uuid = db_uuid,
			.name = strdup("db"),
			.maximum = DB_MAXIMUM,
			.balloon = true,
			.stats_period_s = 1 };
	} else if (call->type == HV_STATS) {
		event->stats = (struct hv_stats){ .known = HV_STAT_ACTUAL | HV_STAT_UNUSED |
							   HV_STAT_USABLE | HV_STAT_LAST_UPDATE,
			.actual = db.actual,
			.unused = 100 * MIB,
			.usable = 150 * MIB,
			.last_update = ++db.updates };
	} else if (call->type == HV_TARGET) {
		db.actual = call->target;
		db.least = db.least < db.actual ? db.least : db.actual;
		db.resident = db.resident < db.actual ? db.resident : db.actual;
	}
}

static int none_submit(struct hv *hv, const struct hv_call *call)
{
	struct hv_event event = { .type = hv_answer_of(call->type), .token = call->token };

	(void)hv;
	if (call->type == HV_HOST)
		event.host = (struct hv_host){
			.known = true, .total = UINT64_C(8) << 30, .available = UINT64_C(4) << 30
		};
	event.uuid = call->uuid;
	if (db.there)
		db_answer(call, &event);
	tell(&event);
	return 0;
}

static int none_next(struct hv *hv, struct hv_event *ret_event)
{
	(void)hv;
	if (nr_out == 0) {
		eventfd_read(out_fd, &(eventfd_t){ 0 });
		return 0;
	}
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

/* Something is there for the daemon, at once or within so long. */
static bool readable(int ms)
{
	struct pollfd fd = { .fd = backend->fd(hv), .events = POLLIN };

	return poll(&fd, 1, ms) > 0;
}

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

/* All that was there is taken. */
static void settle(void)
{
	for (int i = 0; readable(0); i++) {
		ck_assert_int_lt(i, STEPS_MAX);
		step();
	}
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
static struct core_group_knobs shared;
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
	db.there = false;
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
	/* The socket may be there a little later. */
	for (int i = 0; connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0; i++) {
		if (i == PATIENCE_MS)
			_exit(2);
		usleep(1000);
	}
	if (sendmsg(fd, &msg, 0) < 0)
		_exit(3);
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
	if (pid == 0) {
		signal(SIGBUS, SIG_DFL); /* also where a sanitizer would rather tell of it */
		vmm_main(text);
	}
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

START_TEST(a_fault_that_meets_its_group_s_max_has_room_made_by_another_s_balloon)
{
	pid_t pid;
	uint64_t has;

	db.there = true;
	db.actual = db.least = DB_MAXIMUM;
	db.resident = 200 * MIB;
	config.engine.act = true;
	shared = CORE_GROUP_KNOBS_NONE;
	shared.path = (char *)"/shared";
	shared.knobs.max = 200 * MIB / PAGE + 100;
	config.groups = &shared;
	config.nr_groups = 1;
	rule.match_name = NULL;
	rule.knobs = (struct hv_knobs){ .has_group = true, .group = (char *)"/shared" };
	ck_assert_int_eq(core_set_config(core, now, &config), 0);
	await_usage("db", 200 * MIB / PAGE);
	pid = vmm_new(NULL);
	obey(100);
	await_usage("web1", 100);
	ck_assert_uint_eq(db.least, DB_MAXIMUM);
	obey(200);
	await_usage("web1", 200);
	ck_assert_uint_ge(paging("web1").waited, 1);
	ck_assert_uint_eq(paging("web1").over, 0);
	/* Its cap may be loose again. */
	ck_assert_uint_lt(db.least, 200 * MIB);
	ck_assert(usage("db", &has) && has < 200 * MIB / PAGE);
	vmm_end(pid);
	await_gone("web1");
}
END_TEST

/* A client that connects and says nothing. */
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
	settle();
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
	settle();
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
	tell(&(struct hv_event){ .type = HV_EVENT_DOWN });
	step();
	pid = vmm_new(NULL);
	obey(10);
	ck_assert_int_lt(core_find(core, "web1", &id), 0);
	ck_assert_uint_eq(page_counter_read(&engine_tree(core_engine(core))->root->memory), 0);
	/* The name is free again when it is gone, also now. */
	vmm_end(pid);
	pid = vmm_new(NULL);
	obey(201);
	tell(&(struct hv_event){ .type = HV_EVENT_UP });
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

START_TEST(the_daemon_is_woken_by_what_there_is_and_not_by_who_waits_or_says_nothing)
{
	struct hv_call call = { .type = HV_STATS };
	struct core_vm_view view;
	int silent, waiting, n = 201;
	uint64_t id;
	pid_t pid;

	settle();
	tell(&(struct hv_event){ .type = HV_EVENT_PRESSURE });
	ck_assert(readable(0)); /* the hypervisor's */
	settle();
	pid = vmm_new(NULL);
	ck_assert(readable(PATIENCE_MS)); /* it connects */
	obey(200);
	await_usage("web1", 200);
	settle();
	ck_assert_int_eq(core_find(core, "web1", &id), 0);
	ck_assert_int_eq(core_vm(core, id, &view), 0);
	call.uuid = view.uuid;
	ck_assert_int_eq(backend->submit(hv, &call), 0);
	ck_assert(readable(0)); /* an answer of our own */
	settle();
	ck_assert_int_eq(write(orders[1], &n, sizeof(n)), sizeof(n));
	ck_assert(readable(PATIENCE_MS)); /* a page was refused */
	await_usage("web1", 201);
	ck_assert_int_eq(read(answers[0], &n, sizeof(n)), sizeof(n));

	silent = connect_once_more();
	settle();
	vmm_end(pid);
	await_gone("web1");
	waiting = connect_once_more();
	settle();
	close(silent);
	ck_assert(readable(PATIENCE_MS));
	settle();
	close(waiting);
	/* Then it is the next one's turn. */
	pid = vmm_new(NULL);
	obey(7);
	await_usage("web1", 7);
	vmm_end(pid);
	await_gone("web1");
}
END_TEST

/* --- the nth call that fails --- */

static void step_or_fail(void)
{
	const struct hv_call *calls = NULL;
	struct hv_event event;
	uint64_t next;
	size_t nr = 0;

	while (backend->next(hv, &event) == 1) {
		if (event.message)
			snprintf(told, sizeof(told), "%s", event.message);
		core_event(core, now, &event);
		hv_event_clear(&event);
	}
	core_step(core, now, &calls, &nr, &next); /* what is returned is valid whatever failed */
	hv_pager_bind(hv, core);
	for (size_t i = 0; i < nr; i++)
		if (backend->submit(hv, &calls[i]) < 0)
			core_not_submitted(core, &calls[i]);
	now += STEP_US;
	usleep(1000);
}

static bool is_dead(pid_t pid)
{
	siginfo_t end = { 0 };

	return waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid;
}

static bool was_refused(void)
{
	return strstr(told, "refused");
}

/* Until the VMM has its pages, was refused, or is dead. */
static void page_until_done(pid_t pid, int *ret_said)
{
	for (int i = 0; i < STEPS_MAX && !was_refused() && !is_dead(pid); i++) {
		step_or_fail();
		if (read(answers[0], ret_said, sizeof(*ret_said)) == sizeof(*ret_said))
			return;
	}
}

static bool daemon_opens(void)
{
	struct hv_params params = { .inner = &none, .pager = dir };

	core = NULL;
	hv = NULL;
	if (core_new(&config, backend, &core) < 0)
		return false;
	MUST(backend->open(&params, &hv) == 0 ? hv != NULL : hv == NULL);
	return hv;
}

/* Nothing fails any more, and with the VMM's process all that was charged is gone. */
static void daemon_ends(pid_t pid)
{
	vmm_end(pid);
	if (hv) {
		await_gone("web1");
		for (int i = 0; page_counter_read(&engine_tree(core_engine(core))->root->memory);
			i++) {
			MUST(i < STEPS_MAX);
			step_or_fail();
		}
	}
	backend->close(hv);
	core_free(core);
	hv = NULL;
	core = NULL;
}

static bool page_with(uint64_t nth)
{
	unsigned int descriptors = faults_descriptors();
	int n = 50, said = 0;
	bool opened, injected;
	pid_t pid;

	told[0] = 0;
	pid = vmm_new(NULL);
	ck_assert_int_eq(write(orders[1], &n, sizeof(n)), sizeof(n));
	faults_arm(nth);
	opened = daemon_opens();
	if (opened)
		page_until_done(pid, &said);
	injected = faults_disarm();
	MUST(opened || injected);
	/* It has its pages; but for one that could not be read, which is its end, and where it
	 * could not be seen who it is. */
	MUST(!opened || said == n || (is_dead(pid) && !strcmp(faults_what(), "pread")) ||
		(was_refused() && !strcmp(faults_what(), "getsockopt")));
	daemon_ends(pid);
	faults_check_leaks(nth);
	faults_check_descriptors(nth, descriptors);
	return injected;
}

START_TEST(the_nth_call_that_fails_costs_a_vmm_nothing_but_time)
{
	backend->close(hv);
	core_free(core);
	faults_each(page_with, 30);
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
	tcase_set_timeout(tc, 300);
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
	tcase_add_test(tc, a_fault_that_meets_its_group_s_max_has_room_made_by_another_s_balloon);
	tcase_add_test(
		tc, the_daemon_is_woken_by_what_there_is_and_not_by_who_waits_or_says_nothing);
	tcase_add_test(tc, the_nth_call_that_fails_costs_a_vmm_nothing_but_time);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
