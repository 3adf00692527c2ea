/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's event loop with the nth allocation, system call or call to sd-event failing, n from
 * 1 until a run completes with nothing failed: shell_run() itself, over a simulated host whose time
 * is the steps of the loop; started, asked, told to read its configuration anew, ended with all
 * given back. A failure at start ends it with words; one later ends nothing but where the loop
 * itself fails. Nothing leaks, no descriptor stays open, and the next daemon finds its place.
 */
#include <config.h>

#include "hv/ballastd/shell.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "hv/sim/sim.h"
#include "tests/unit/faults.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#define MIB(n) (UINT64_C(1048576) * (n))
#define S      UINT64_C(1000000)

/* The loop's time goes on by so much with each step. */
#define STEP_US 150000

/* Steps at which something happens; the end takes its own time after the last. */
#define AT_CLIENT 4
#define AT_RELOAD 30
#define AT_ASKED  50
#define AT_BAD	  60
#define AT_END	  80
#define STEPS_MAX 2000

static const char requests[] =
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscribe\"}\n"
	"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"pause\",\"params\":{\"name\":\"idle\"}}\n"
	"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"resume\",\"params\":{\"name\":\"idle\"}}\n";

static const char asking[] = "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"reclaim\","
			     "\"params\":{\"size\":\"600MiB\"}}\n";

static char dir[SCRATCH_PATH], run_dir[64], recording[64], log_path[64];
static char good[64], other[64], bad[64];
static const char *conf; /* what a reload reads */
static struct hv *sim;
static int wake_fd, client_fd;
static uint64_t now;
static unsigned int steps;
static bool is_short;
static unsigned int nr_heard; /* lines that answer or tell something */

static void put(char path[64], const char *name, const char *text)
{
	FILE *file;

	snprintf(path, 64, "%s/%s", dir, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

#define CONF(floor)                                                                                \
	"[ballastd]\nmode = act\non-stop = release\n[pool]\nsize = 2GiB\npsi = none\n[vms]\n"      \
	"floor = " floor "\nmargin-at-least = 16MiB\n"

static void setup(void)
{
	int fd;

	scratch_new(dir);
	snprintf(run_dir, sizeof(run_dir), "%s/run", dir);
	snprintf(recording, sizeof(recording), "%s/recording", dir);
	put(good, "good", CONF("20%"));
	put(other, "other", CONF("30%") "[group /new]\nlow = 1MiB\n");
	put(bad, "bad", CONF("30%") "nonsense = 1\n");
	put(log_path, "log", "");
	fd = open(log_path, O_WRONLY | O_APPEND | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	close(fd);
}

/* ---- time ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	*ret = (struct timespec){ .tv_sec = (time_t)(now / S), .tv_nsec = (long)(now % S) * 1000 };
	return 0;
}

/* ---- the host: nothing fails there ---- */

static void add_vm(const char *name, uint64_t soft_limit, uint64_t cache)
{
	struct sim_vm vm;

	sim_vm_default(&vm);
	vm.name = name;
	vm.guest.maximum = MIB(1024);
	vm.guest.cache_cold = cache;
	vm.memtune.has_soft_limit = true;
	vm.memtune.soft_limit = soft_limit;
	ck_assert_int_eq(sim_vm_add(sim, &vm), 0);
}

static void open_host(void)
{
	struct hv_params params = { .uri = "sim:///" };

	ck_assert_int_eq(hv_sim.open(&params, &sim), 0);
	add_vm("web", MIB(900), MIB(700));
	add_vm("batch", MIB(300), MIB(900));
	add_vm("idle", MIB(900), MIB(600));
	wake_fd = eventfd(1, EFD_CLOEXEC);
	ck_assert_int_ge(wake_fd, 0);
}

static int host_open(const struct hv_params *params, struct hv **ret_hv)
{
	if (faults_hit("open of the backend"))
		return -EIO;
	*ret_hv = sim;
	return 0;
}

/* The test looks at it afterwards. */
static void host_close(struct hv *hv)
{
}

/* Always readable: the loop goes on, and its time with it. */
static int host_fd(struct hv *hv)
{
	return wake_fd;
}

static int host_submit(struct hv *hv, const struct hv_call *call)
{
	int r;

	if (faults_hit("submit"))
		return -EAGAIN;
	faults_hold(true);
	r = hv_sim.submit(hv, call);
	faults_hold(false);
	return r;
}

static void come(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", run_dir);
	client_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	MUST(connect(client_fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	(void)!send(client_fd, requests, strlen(requests), MSG_NOSIGNAL);
}

static void hear(void)
{
	static char text[65536];
	ssize_t n;

	while ((n = recv(client_fd, text, sizeof(text), MSG_DONTWAIT)) > 0)
		for (ssize_t i = 0; i < n; i++)
			nr_heard += text[i] == '\n';
}

/* A client whose job runs when the daemon is ended. */
static void short_world(void)
{
	if (steps == AT_CLIENT)
		come();
	if (steps == AT_ASKED)
		(void)!send(client_fd, asking, strlen(asking), MSG_NOSIGNAL);
	if (steps == AT_ASKED + 1)
		raise(SIGTERM);
}

/* What happens outside of the daemon while it steps. */
static void long_world(void)
{
	if (steps == AT_CLIENT)
		come();
	if (steps > AT_CLIENT)
		hear();
	if (steps == AT_RELOAD || steps == AT_BAD) {
		conf = steps == AT_RELOAD ? other : bad;
		raise(SIGHUP);
	}
	if (steps == AT_ASKED)
		(void)!send(client_fd, requests, strlen(requests), MSG_NOSIGNAL);
	if (steps == AT_END)
		raise(SIGTERM);
}

static void world(void)
{
	steps++;
	if (is_short)
		short_world();
	else
		long_world();
	MUST(steps < STEPS_MAX);
	now += STEP_US;
	MUST(sim_advance(sim, now) == 0);
}

static int host_next(struct hv *hv, struct hv_event *ret_event)
{
	int r;

	faults_hold(true);
	r = hv_sim.next(hv, ret_event);
	if (r <= 0)
		world();
	faults_hold(false);
	return r;
}

/* ---- a run ---- */

static int reload(
	void *ctx, const struct config *old, struct config **ret_config, char **ret_errors)
{
	const struct config_source source = { .file = conf };
	int r = config_load(&source, ret_config, ret_errors);

	MUST(r == 0 || r == -ENOMEM || (r == -EINVAL && *ret_errors && **ret_errors));
	return r;
}

static struct config *load(void)
{
	const struct config_source source = { .file = good };
	struct config *config = NULL;
	char *errors = NULL, path[80];

	snprintf(path, sizeof(path), "%s/s", run_dir);
	ck_assert_msg(config_load(&source, &config, &errors) == 0, "%s", errors);
	ck_assert_int_eq(config_set(config, "ballastd", "run-dir", run_dir, &errors), 0);
	ck_assert_int_eq(config_set(config, "ballastd", "socket", path, &errors), 0);
	ck_assert_int_eq(config_set(config, "ballastd", "connect", "sim:///", &errors), 0);
	return config;
}

/* Those that nobody took. */
static void forget_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	while (sigtimedwait(&set, NULL, &(struct timespec){ 0 }) > 0)
		;
}

static bool is_of_the_loop(const char *what)
{
	return !strncmp(what, "sd_event", 8);
}

static bool file_has(const char *path, const char *words)
{
	static char text[65536];
	FILE *file = fopen(path, "r");
	size_t length;

	ck_assert_ptr_nonnull(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	return strstr(text, words) != NULL;
}

static bool log_has(const char *words)
{
	return file_has(log_path, words);
}

/* After a start that failed, or an end: nothing of it is in the way, and all VMs have all. */
static void check_run(uint64_t nth, int r)
{
	static const char *const names[] = { "web", "batch", "idle" };
	struct sim_vm_view view;

	ck_assert_msg(r <= 0, "%lu (%s): %d", (unsigned long)nth, faults_what(), r);
	if (r < 0) {
		ck_assert_msg(log_has("error: "), "%lu (%s): it failed without a word",
			(unsigned long)nth, faults_what());
		ck_assert_msg(steps == 0 || is_of_the_loop(faults_what()),
			"%lu (%s): it ended after %u steps", (unsigned long)nth, faults_what(),
			steps);
		return;
	}
	ck_assert_uint_ge(steps, AT_END);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(sim_vm_view(sim, names[i], &view), 0);
		ck_assert_msg(view.targets == 0 || view.guest->target >= MIB(1024),
			"%lu (%s): %s keeps a target of %lu MiB", (unsigned long)nth, faults_what(),
			names[i], (unsigned long)(view.guest->target >> 20));
	}
}

/* Or a run in which nothing fails would not have been in the places that are meant. */
static void check_undisturbed(void)
{
	struct sim_vm_view view;

	ck_assert_int_eq(sim_vm_view(sim, "batch", &view), 0);
	ck_assert_uint_gt(view.targets, 1);
	ck_assert_uint_lt(view.lowest_target, MIB(1024));
	ck_assert_uint_gt(nr_heard, 6);
	ck_assert(log_has("the configuration was read anew"));
	ck_assert(log_has("the new configuration is refused"));
	ck_assert(log_has("ending on signal TERM"));
	ck_assert(!log_has("could not be told"));
	ck_assert(file_has(recording, "{\"id\":1,\"name\":"));
}

/* True: something failed. */
static bool run(uint64_t nth)
{
	static const struct hv_backend *const original = &hv_sim;
	struct hv_backend backend = *original;
	struct shell_params params = { .backend = &backend, .record = recording, .reload = reload };
	struct config *config = load();
	char paused[80];
	unsigned int before = faults_descriptors();
	bool injected;
	int r;

	backend.open = host_open;
	backend.close = host_close;
	backend.fd = host_fd;
	backend.submit = host_submit;
	backend.next = host_next;
	now = S;
	is_short = false;
	steps = nr_heard = 0;
	client_fd = -1;
	/* One that failed may have left all paused, as it should. */
	snprintf(paused, sizeof(paused), "%s/paused", run_dir);
	unlink(paused);
	open_host();
	params.config = config;
	ck_assert_int_eq(ftruncate(STDERR_FILENO, 0), 0);
	faults_arm(nth);
	r = shell_run(&params);
	injected = faults_disarm();
	faults_check_leaks(nth);
	check_run(nth, r);
	if (!injected)
		check_undisturbed();
	if (client_fd >= 0)
		close(client_fd);
	close(wake_fd);
	hv_sim.close(sim);
	config_free(config);
	forget_signals();
	faults_check_descriptors(nth, before);
	return injected;
}

START_TEST(job_that_runs_at_the_end_is_ended_without_a_word)
{
	struct hv_backend backend = hv_sim;
	struct shell_params params = { .backend = &backend };
	struct config *config = load();
	char *errors = NULL;

	is_short = true;
	ck_assert_int_eq(config_set(config, "ballastd", "on-stop", "keep", &errors), 0);
	backend.open = host_open;
	backend.close = host_close;
	backend.fd = host_fd;
	backend.submit = host_submit;
	backend.next = host_next;
	now = S;
	steps = nr_heard = 0;
	client_fd = -1;
	open_host();
	params.config = config;
	ck_assert_int_eq(shell_run(&params), 0);
	hear();
	ck_assert_uint_ge(nr_heard, 4);
	ck_assert(log_has("ending on signal TERM"));
	ck_assert(!log_has("cannot set the timer"));
	ck_assert(!log_has("request 1"));
	close(client_fd);
	close(wake_fd);
	hv_sim.close(sim);
	config_free(config);
}
END_TEST

START_TEST(the_nth_failure_in_the_event_loop_is_lived_through_or_told)
{
	faults_each(run, 50);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("faults_shell");
	TCase *tc = tcase_create("faults");

	scratch_begin_in_memory();
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, job_that_runs_at_the_end_is_ended_without_a_word);
	tcase_add_test(tc, the_nth_failure_in_the_event_loop_is_lived_through_or_told);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
