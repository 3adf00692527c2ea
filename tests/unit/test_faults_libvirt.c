/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The libvirt backend with the nth libvirt call failing, and with the nth allocation or system
 * call, n from 1 until a run completes with nothing failed; in the middle of each run the
 * connection breaks, and is there again by itself. There is a QEMU's process to be read, an agent
 * at its socket and one of QEMU's. Each call is answered once, no target is set without its ceiling
 * recorded before, the next calls work, and all is gone in the end.
 */
#include <config.h>

#include "hv/libvirt/libvirt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "common/protocol.h"
#include "tests/unit/fake_libvirt.h"
#include "hv/libvirt/backend.h"
#include "hv/libvirt/domxml.h"
#include "hv/libvirt/process.h"
#include "tests/unit/faults.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#define MIB (1024ULL * 1024)
/* Only a failure waits for it. */
#define PATIENCE_MS 20000

#define HELLO "{\"type\":\"hello\",\"oldest\":1,\"newest\":1,\"can\":[\"reclaim\"]}\n"
#define WEB   "00000000-0000-0000-0000-000000000000"

static char proc[SCRATCH_PATH], cgroups[SCRATCH_PATH + 16], pids[SCRATCH_PATH + 16];
static struct sockaddr_un port = { .sun_family = AF_UNIX };
static pid_t guest;		  /* the agent that listens there */
static unsigned int *connections; /* that it has had; it and this process see the same */
static struct libvirt_calls calls;
static struct hv *hv;
static struct fake_domain *web, *db;
static bool has_agent[2]; /* of web, db: as it was told last */
static uint64_t token;

/* ---- the host: QEMU's process, an agent at web's port, QEMU's own in db ---- */

static void __attribute__((format(printf, 2, 3))) put(const char *name, const char *fmt, ...)
{
	char path[SCRATCH_PATH + 64];
	va_list args;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	va_start(args, fmt);
	vfprintf(file, fmt, args);
	va_end(args);
	fclose(file);
}

static void make_folder(const char *name)
{
	char path[SCRATCH_PATH + 64];

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	ck_assert_int_eq(mkdir(path, 0755), 0);
}

static void put_process(void)
{
	unsigned int user = geteuid();

	make_folder("100");
	put("100/cmdline", "qemu%c-uuid%c" WEB "%c", 0, 0, 0);
	put("100/stat", "100 (qemu) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 77 19 20\n");
	put("100/status",
		"Name:\tqemu\nState:\tS (sleeping)\nUid:\t%u\t%u\t%u\t%u\nVmRSS:\t307200 kB\n"
		"RssShmem:\t0 kB\nVmSwap:\t0 kB\nThreads:\t4\n",
		user, user, user, user);
	put("100/smaps", "7f1000000000-7f1040000000 rw-p 00000000 00:00 0 \nSize: 1048576 kB\n"
			 "Rss: 204800 kB\nSwap: 0 kB\nVmFlags: rd wr mr mw me ac \n");
	put("100/cgroup", "0::/qemu-1-web.libvirt-qemu\n");
	make_folder("cgroups");
	make_folder("cgroups/qemu-1-web.libvirt-qemu");
	put("cgroups/qemu-1-web.libvirt-qemu/memory.high", "1073741824\n");
	put("cgroups/qemu-1-web.libvirt-qemu/memory.events", "low 0\nhigh 5\nmax 0\n");
	make_folder("pids");
	put("pids/web.pid", "100\n");
}

/* Says hello and what it is asked, to whoever connects. */
static void answer(int fd)
{
	char text[1024], done[128];
	const char *id;
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

	if (n <= 0) {
		close(fd);
		return;
	}
	text[n] = '\0';
	id = strstr(text, "\"id\":");
	if (!id)
		return;
	n = snprintf(done, sizeof(done), "{\"type\":\"done\",\"id\":%ld,\"bytes\":4096}\n",
		strtol(id + 5, NULL, 10));
	send(fd, done, (size_t)n, MSG_NOSIGNAL);
}

/* A process of its own: what it does is nobody's nth call. */
static void listen_and_answer(int listener)
{
	struct pollfd fds[16] = { { .fd = listener, .events = POLLIN } };
	size_t nr = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (poll(fds, nr, -1) <= 0)
			continue;
		for (size_t i = 1; i < nr; i++)
			if (fds[i].revents)
				answer(fds[i].fd);
		if (!fds[0].revents)
			continue;
		nr = nr == 16 ? 1 : nr; /* those are closed long since */
		__atomic_add_fetch(connections, 1, __ATOMIC_SEQ_CST);
		fds[nr] = (struct pollfd){ .fd = accept(listener, NULL, NULL), .events = POLLIN };
		send(fds[nr++].fd, HELLO, strlen(HELLO), MSG_NOSIGNAL);
	}
}

static void start_agent(void)
{
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(port.sun_path, sizeof(port.sun_path), "%s/port", proc);
	ck_assert_int_eq(bind(listener, (const struct sockaddr *)&port, sizeof(port)), 0);
	ck_assert_int_eq(listen(listener, 16), 0);
	connections = mmap(NULL, sizeof(*connections), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(connections, MAP_FAILED);
	guest = fork();
	if (guest == 0)
		listen_and_answer(listener);
	close(listener);
}

static void make_host(void)
{
	scratch_new(proc);
	snprintf(cgroups, sizeof(cgroups), "%s/cgroups", proc);
	snprintf(pids, sizeof(pids), "%s/pids", proc);
	put("meminfo", "MemTotal: 4194304 kB\nMemAvailable: 2097152 kB\nSwapTotal: 1024 kB\n");
	put("pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
	put_process();
	start_agent();
}

static void end_host(void)
{
	kill(guest, SIGKILL);
	waitpid(guest, NULL, 0);
	munmap(connections, sizeof(*connections));
}

/* Lets all files be read, and each has the same in it. */
static const char *qemus_agent(struct fake_domain *dom, const char *command, int *ret_code)
{
	if (strstr(command, "guest-info"))
		return "{\"return\":{\"version\":\"7.2\",\"supported_commands\":["
		       "{\"enabled\":true,\"name\":\"guest-file-open\"},"
		       "{\"enabled\":true,\"name\":\"guest-file-read\"},"
		       "{\"enabled\":true,\"name\":\"guest-file-write\"},"
		       "{\"enabled\":true,\"name\":\"guest-file-flush\"},"
		       "{\"enabled\":true,\"name\":\"guest-file-close\"}]}}";
	if (strstr(command, "guest-file-open"))
		return "{\"return\":1}";
	if (strstr(command, "guest-file-read")) /* MemTotal: 1048576 kB */
		return "{\"return\":{\"count\":21,\"buf-b64\":\"TWVtVG90YWw6IDEwNDg1NzYga0IK\","
		       "\"eof\":true}}";
	return "{\"return\":{}}";
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

/* Whatever comes until that token's answer, or UP where it is 0; nothing is asserted meanwhile. */
static bool wait_for(uint64_t wanted, int *ret_error)
{
	struct pollfd fd = { .fd = hv_libvirt.fd(hv), .events = POLLIN };
	struct hv_event event;
	bool found;

	for (;;) {
		while (hv_libvirt.next(hv, &event) > 0) {
			if (event.type == HV_EVENT_AGENT)
				has_agent[event.uuid.bytes[15]] = event.agent.connected;
			found = wanted ? event.token == wanted : event.type == HV_EVENT_UP;
			*ret_error = event.error;
			hv_event_clear(&event);
			if (found)
				return true;
		}
		if (poll(&fd, 1, PATIENCE_MS) <= 0)
			return false;
	}
}

/* 1: never answered; else its error, also that of a call that was not taken. */
static int ask_of(enum hv_call_type type, const struct fake_domain *dom)
{
	static const struct hv_knobs_change change = { .set = { .has_low = true, .low = MIB } };
	struct hv_call call = { .type = type,
		.token = ++token,
		.uuid = fake_uuid(dom),
		.agent = dom == db ? HV_WAY_QEMU_GA : HV_WAY_BALLAST,
		.bytes = MIB,
		.deadline_ms = 10000,
		.target = 128 * MIB,
		.ceiling = 256 * MIB,
		.period_s = 1,
		.change = &change };
	int error = 0, r = hv_libvirt.submit(hv, &call);

	if (r < 0)
		return r;
	return wait_for(call.token, &error) ? error : 1;
}

static int ask(enum hv_call_type type)
{
	return ask_of(type, web);
}

static int open_it(void)
{
	char psi[SCRATCH_PATH + 16];
	struct hv_params params = {
		.uri = "qemu:///system", .proc = proc, .cgroup = cgroups, .pids = pids, .psi = psi
	};

	snprintf(psi, sizeof(psi), "%s/pressure", proc);
	return hv_libvirt_open_with(&calls, &params, &hv);
}

static void close_it(void)
{
	hv_libvirt.close(hv);
	hv = NULL;
	for (unsigned int i = 0; i < PATIENCE_MS / 2 && hv_libvirt_nr_alive() > 0; i++)
		nap();
	ck_assert_uint_eq(hv_libvirt_nr_alive(), 0);
	ck_assert_uint_eq(fake_nr_connections(), 0);
}

static void begin(void)
{
	fake_reset();
	web = fake_add("web");
	web->has_config_limit = true; /* or its throttle is not lifted */
	web->config_limit_kib = 4096;
	strcpy(web->inside_inactive, "<memtune><soft_limit unit='KiB'>4096</soft_limit></memtune>");
	snprintf(web->inside, sizeof(web->inside),
		"<devices><controller type='virtio-serial'/>"
		"<channel type='unix'><source mode='bind' path='%s'/>"
		"<target type='virtio' name='" PROTOCOL_PORT "'/></channel></devices>",
		port.sun_path);
	db = fake_add("db");
	db->agent = qemus_agent;
	calls = fake_calls;
	calls.times.qga_read = 10000; /* a few times a run */
	memset(has_agent, 0, sizeof(has_agent));
	hv = NULL;
}

static bool ask_all(void)
{
	for (enum hv_call_type type = HV_LIST; type <= HV_HOST; type++)
		if (ask(type) > 0)
			return false;
	return ask_of(HV_INFO, db) <= 0 && ask_of(HV_STATS, db) <= 0;
}

/* Where a description could not be read, or an agent not be connected to, that is tried again. */
static bool agents_come(void)
{
	for (unsigned int i = 0; i < PATIENCE_MS / 2; i++) {
		if (has_agent[0] && has_agent[1])
			return true;
		if (ask(HV_INFO) > 0 || ask_of(HV_INFO, db) > 0 || ask_of(HV_STATS, db) > 0)
			return false;
		nap();
	}
	return false;
}

/*
 * All connections were dead before the first try, so a listing says that there is a new one. Where
 * the close callback could not be registered it is the listing that finds the break.
 */
static bool comes_back(void)
{
	for (unsigned int i = 0; i < PATIENCE_MS / 2; i++) {
		if (ask(HV_LIST) == 0)
			return true;
		nap();
	}
	return false;
}

/* "": as it should be. */
static const char *use(void)
{
	int error = 0;

	if (open_it() < 0)
		return hv ? "a handle in spite of a failure" : "";
	if (!wait_for(0, &error))
		return "it never connected";
	if (!ask_all())
		return "a call was never answered";
	if (!agents_come())
		return "an agent was never connected";
	/* An event and a break: workers' connections are stale, the control connection anew. */
	fake_emit_lifecycle(web);
	fake_break(VIR_CONNECT_CLOSE_REASON_EOF);
	if (!comes_back())
		return "it never connected again";
	if (!ask_all())
		return "a call was never answered after the break";
	return "";
}

/* A target without its ceiling is the one thing that nobody could repair. */
static const char *check_changes(void)
{
	const char *changes = fake_changes(), *memory = strstr(changes, "memory web");
	const char *note = strstr(changes, "note web 262144");

	return memory && (!note || note > memory) ? changes : "";
}

/* With nothing failing any more; what answered -ENOTCONN connects again by itself. */
static void check_after(unsigned int nth, const char *what)
{
	for (enum hv_call_type type = HV_LIST; hv && type <= HV_HOST; type++) {
		int r = ask(type);

		if (type == HV_ATTACH && r == -EEXIST) /* it was added before */
			continue;
		for (unsigned int i = 0; r == -ENOTCONN && i < PATIENCE_MS / 2; i++) {
			nap();
			r = ask(type);
		}
		ck_assert_msg(r == 0, "%u (%s): call %d afterwards: %d", nth, what, (int)type, r);
	}
}

START_TEST(the_nth_libvirt_call_that_fails_is_lived_through)
{
	unsigned int n = 0;
	bool injected;

	do {
		const char *wrong;

		begin();
		fake_fail_nth(++n);
		wrong = use();
		injected = fake_failed_nth();
		ck_assert_msg(!wrong[0], "%u: %s", n, wrong);
		ck_assert_msg(!check_changes()[0], "%u: %s", n, check_changes());
		check_after(n, "libvirt");
		close_it();
	} while (injected);
	printf("# %u libvirt calls, each failed once\n", n - 1);
	ck_assert_uint_gt(n, 10);
}
END_TEST

/* Nothing but its own socket's failure is a reason to give its connection up. */
static unsigned int connections_of(const char *what)
{
	static const char *const calls_of_socket[] = { "socket", "connect", "send", "recv" };

	for (size_t i = 0; i < sizeof(calls_of_socket) / sizeof(calls_of_socket[0]); i++)
		if (!strcmp(what, calls_of_socket[i]))
			return 2;
	return 1;
}

static bool use_with(uint64_t nth)
{
	unsigned int before = __atomic_load_n(connections, __ATOMIC_SEQ_CST);
	const char *wrong;
	bool injected;

	begin();
	faults_arm(nth);
	wrong = use();
	injected = faults_disarm();
	ck_assert_msg(!wrong[0], "%u (%s): %s", (unsigned int)nth, faults_what(), wrong);
	ck_assert_msg(!check_changes()[0], "%u (%s): %s", (unsigned int)nth, faults_what(),
		check_changes());
	check_after((unsigned int)nth, faults_what());
	before = __atomic_load_n(connections, __ATOMIC_SEQ_CST) - before;
	ck_assert_msg(before <= connections_of(faults_what()), "%u (%s): %u connections",
		(unsigned int)nth, faults_what(), before);
	close_it();
	return injected;
}

START_TEST(the_nth_allocation_or_system_call_that_fails_is_lived_through)
{
	faults_each(use_with, 10);
}
END_TEST

/* What the process of web has, where it is known. False: not even asked for. */
static bool look(struct processes *p, uint64_t now, struct hv_process *ret)
{
	struct hv_process *vms = NULL;
	bool work;
	size_t nr;

	if (processes_read(p, now, &vms, &nr, &work) < 0 || nr == 0)
		return false;
	*ret = vms[0];
	free(vms);
	if (work)
		processes_work(p, now);
	return true;
}

static bool read_with(uint64_t nth)
{
	struct hv_listed vm = { .name = (char *)"web", .state = HV_RUNNING };
	unsigned int descriptors = faults_descriptors();
	struct processes *p = NULL;
	struct hv_process has = { .known = false };
	uint64_t now = 0;
	bool injected;

	faults_arm(nth);
	if (processes_new(proc, cgroups, pids, &p) == 0) {
		processes_set(p, &vm, 1);
		processes_set_maximum(p, &vm.uuid, 1024 * MIB);
		for (int i = 0; i < 3; i++, now += PROCESS_CGROUP_US)
			look(p, now, &has);
	}
	injected = faults_disarm();
	MUST(p || injected);
	/* With nothing failing any more all is known, after the longest of pauses that may be. */
	for (int i = 0; p && i < 4; i++, now += PROCESS_CGROUP_US) {
		processes_set(p, &vm, 1);
		processes_set_maximum(p, &vm.uuid, 1024 * MIB);
		look(p, now, &has);
	}
	MUST(!p || (has.known && has.resident == 200 * MIB && has.overhead == 100 * MIB));
	MUST(!p || (has.started == 77 && has.throttle == 1024 * MIB && has.throttled == 5));
	processes_free(p);
	faults_check_leaks(nth);
	faults_check_descriptors(nth, descriptors);
	return injected;
}

START_TEST(the_nth_call_that_fails_while_a_process_is_read_is_made_good_at_the_next_look)
{
	faults_each(read_with, 30);
}
END_TEST

/* What is left out of a description would seem not to be said: another group, no min. */
START_TEST(a_description_that_is_read_is_read_whole)
{
	static const char xml[] =
		"<domain><name>web</name><memory unit='KiB'>1048576</memory>"
		"<resource><partition>/machine</partition></resource><metadata>"
		"<memory xmlns='" DOMXML_MEMORY_NS "' min='1GiB' group='/prod/web'/>"
		"</metadata></domain>";
	unsigned int n = 0;
	bool injected;

	do {
		struct hv_info info;
		int r;

		faults_arm(++n);
		r = domxml_parse(xml, &info);
		injected = faults_disarm();
		ck_assert_msg(
			r == 0 || (injected && r == -ENOMEM), "%u (%s): %d", n, faults_what(), r);
		if (r < 0)
			continue;
		ck_assert_msg(info.metadata.has_group && info.metadata.has_min && info.partition,
			"%u (%s): not all of it", n, faults_what());
		hv_info_clear(&info);
	} while (injected);
	ck_assert_uint_gt(n, 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("faults_libvirt");
	TCase *tc = tcase_create("faults");

	scratch_begin();
	tcase_add_checked_fixture(tc, make_host, end_host);
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, the_nth_libvirt_call_that_fails_is_lived_through);
	tcase_add_test(tc, the_nth_allocation_or_system_call_that_fails_is_lived_through);
	tcase_add_test(
		tc, the_nth_call_that_fails_while_a_process_is_read_is_made_good_at_the_next_look);
	tcase_add_test(tc, a_description_that_is_read_is_read_whole);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
