/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's own paths with the nth allocation or system call failing, n from 1 until a run
 * completes with nothing failed: configuration, run directory, recording, a new configuration, core
 * and methods over a simulated host in a squeeze. After each: nothing leaks, nothing is half done,
 * and what was begun comes to its end. A failure at start may end the run, with words.
 */
#include <config.h>

#include "hv/ballastd/methods.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "hv/ballastd/config.h"
#include "hv/ballastd/managers.h"
#include "hv/ballastd/pauses.h"
#include "hv/pool.h"
#include "hv/record.h"
#include "hv/sim/sim.h"
#include "tests/unit/faults.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#define MIB(n) (UINT64_C(1048576) * (n))
#define S      UINT64_C(1000000)

struct control_client {
	unsigned int notifications;
};

static char dir[SCRATCH_PATH], conf[64], other_conf[64], meminfo[64], proc[64];
static char recording[64];
static struct hv *hv;
static struct core *core;
static struct methods *methods;
static struct record *record;
static struct control_client client;
static uint64_t now;

void control_notify(struct control_client *to, const char *method, struct json_object *params)
{
	to->notifications++;
	json_object_put(params);
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

static void setup(void)
{
	char path[128];

	scratch_new(dir);
	snprintf(conf, sizeof(conf), "%s/conf", dir);
	snprintf(meminfo, sizeof(meminfo), "%s/meminfo", dir);
	snprintf(proc, sizeof(proc), "%s/proc", dir);
	snprintf(other_conf, sizeof(other_conf), "%s/other", dir);
	snprintf(recording, sizeof(recording), "%s/recording", dir);
	put(conf, "[ballastd]\nmode = act\n[pool]\nsize = 2GiB\n[vms]\nfloor = 20%\n"
		  "margin-at-least = 16MiB\n[group /prod]\nlow = 64MiB\n[group /prod/web]\nmin = "
		  "0\n");
	put(other_conf, "[ballastd]\nmode = act\n[pool]\nsize = 2GiB\n[vms]\nfloor = 30%\n"
			"margin-at-least = 16MiB\n[group /prod]\nlow = 32MiB\n[group /new]\nmin = "
			"0\n[rule all]\nmatch-name = *\nlow = 1MiB\n[rule web]\nmatch-name = w*\n"
			"group = /prod\nenforce = yes\n");
	put(meminfo, "MemTotal: 4194304 kB\nMemAvailable: 2097152 kB\n");
	snprintf(path, sizeof(path), "%s/proc", dir);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/proc/7", dir);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/proc/7/cmdline", dir);
	put(path, "sshd");
}

static void add_vm(const char *name, const char *group, uint64_t soft_limit, uint64_t cache)
{
	struct sim_vm vm;

	sim_vm_default(&vm);
	vm.name = name;
	vm.guest.maximum = MIB(1024);
	vm.guest.cache_cold = cache;
	vm.memtune.has_soft_limit = true;
	vm.memtune.soft_limit = soft_limit;
	vm.metadata.has_group = true;
	vm.metadata.group = (char *)group;
	ck_assert_int_eq(sim_vm_add(hv, &vm), 0);
}

/* The simulated host is the world's, not the daemon's: nothing fails there. */
static void open_host(void)
{
	const struct sim_action grow = {
		.type = SIM_WORK, .work = GUEST_WORK_GROW, .bytes = MIB(300), .rate = MIB(200)
	};
	const struct sim_action reboot = { .type = SIM_REBOOT };
	struct hv_params params = { .uri = "sim:///" };

	now = 0;
	ck_assert_int_eq(hv_sim.open(&params, &hv), 0);
	add_vm("web", "/prod/web", MIB(900), MIB(400));
	add_vm("batch", "/batch", MIB(300), MIB(900));
	add_vm("late", "/prod", MIB(900), MIB(100));
	ck_assert_int_eq(sim_at(hv, 3 * S, "web", &grow), 0);
	ck_assert_int_eq(sim_at(hv, 4 * S, "late", &reboot), 0);
	/* One that goes and comes. */
	ck_assert_int_eq(sim_at(hv, 4 * S, "late", &(struct sim_action){ .type = SIM_OFF }), 0);
	ck_assert_int_eq(sim_at(hv, 5 * S, "late", &(struct sim_action){ .type = SIM_START }), 0);
}

static void take_events(void)
{
	struct hv_event event;
	int r;

	for (;;) {
		faults_hold(true);
		r = hv_sim.next(hv, &event);
		faults_hold(false);
		if (r <= 0)
			return;
		core_event(core, now, &event);
		faults_hold(true);
		hv_event_clear(&event);
		faults_hold(false);
	}
}

/* To the core's next deadline, or the host's next event. */
static void run_until(uint64_t end)
{
	while (now < end) {
		const struct hv_call *calls = NULL;
		uint64_t next = now, host;
		size_t nr = 0;
		int r;

		take_events();
		r = core_step(core, now, &calls, &nr, &next);
		MUST(r == 0 || r == -ENOMEM);
		faults_hold(true);
		for (size_t i = 0; i < nr; i++)
			if (hv_sim.submit(hv, &calls[i]) < 0)
				core_not_submitted(core, &calls[i]);
		host = sim_next(hv);
		faults_hold(false);
		methods_after_step(methods);
		next = host < next ? host : next;
		next = next <= now ? now + 1000 : next < end ? next : end;
		now = next;
		faults_hold(true);
		MUST(sim_advance(hv, now) == 0);
		faults_hold(false);
	}
}

static void call(const char *name, const char *params)
{
	struct json_object *object = NULL, *result = NULL;
	struct control_error error = { 0 };
	int r = -1;

	faults_hold(true);
	if (params)
		MUST(json_read(params, strlen(params), &object, NULL) == 0);
	faults_hold(false);
	for (size_t i = 0; i < nr_methods; i++)
		if (!strcmp(methods_table[i].name, name))
			r = methods_table[i].call(methods, &client, object, &result, &error);
	MUST(r == 0 || error.message[0]);
	MUST((r == 0) == (result != NULL));
	json_object_put(object);
	json_object_put(result);
	json_object_put(error.data);
}

static void nothing(void *ctx)
{
}

static uint64_t get_now(void *ctx)
{
	return now;
}

static void on_tick(
	void *ctx, const struct engine_input *input, int error, const struct engine_output *output)
{
	if (record)
		record_tick(record, input, error, output);
	methods_on_tick(methods, output);
}

static void on_name(void *ctx, uint64_t id, const struct hv_uuid *uuid, const char *name)
{
	if (record)
		record_name(record, id, uuid, name);
}

/* False: it ended, with words. */
static bool load_config(struct config **ret_config)
{
	const struct config_source source = { .file = conf };
	char *errors = NULL;
	int r = config_load(&source, ret_config, &errors);

	MUST(r == 0 || r == -ENOMEM || (r == -EINVAL && errors && *errors));
	free(errors);
	return r == 0;
}

/* What is read beside: it may fail, and says so. */
static void read_host(void)
{
	struct hv_host host = { 0 };
	struct managers_found found;
	int r;

	r = pool_read_meminfo(meminfo, &host);
	MUST((r == 0) == host.known);
	r = managers_find(proc, &found);
	MUST(r <= 0);
}

static bool start(const struct config *config)
{
	struct methods_params params = { .run_dir = dir, .now = get_now, .wake = nothing };
	char why[300] = "";
	int r;

	r = core_new(&config->core, &hv_sim, &core);
	if (r < 0) {
		MUST(r == -ENOMEM);
		return false;
	}
	if (pauses_load(dir, core, why, sizeof(why)) < 0) {
		MUST(why[0] && core_paused(core));
		core_pause(core, false);
	}
	params.core = core;
	if (methods_new(&params, &methods) < 0)
		return false;
	core_on_tick(core, on_tick, on_name, NULL);
	return true;
}

/* A failure at the start is told; the daemon would end. */
static void open_record(void)
{
	FILE *stream = fopen(recording, "we");
	int r;

	record = NULL;
	if (!stream)
		return;
	r = record_new(stream, engine_config(core_engine(core)), &record);
	MUST(r <= 0 && (r == 0) == (record != NULL));
	if (r < 0)
		fclose(stream);
}

/* As SIGHUP does it: whole, or all is as before. */
static void reload(const char *path, unsigned int floor_percent)
{
	const struct config_source source = { .file = path };
	const unsigned int before = engine_config(core_engine(core))->bounds.floor_percent;
	struct config *config = NULL;
	char *errors = NULL;
	int r;

	r = config_load(&source, &config, &errors);
	MUST(r == 0 || r == -ENOMEM || (r == -EINVAL && errors && *errors));
	if (r == 0)
		r = core_set_config(core, now, &config->core);
	MUST(r == 0 || r == -ENOMEM || r == -EINVAL);
	if (r == 0 && record)
		record_new_config(record, engine_config(core_engine(core)));
	MUST(engine_config(core_engine(core))->bounds.floor_percent ==
		(r == 0 ? floor_percent : before));
	free(errors);
	config_free(config);
}

static void use(void)
{
	call("subscribe", NULL);
	run_until(2 * S);
	call("status", NULL);
	call("pause", "{\"name\":\"web\"}");
	run_until(3 * S);
	call("resume", "{\"name\":\"web\"}");
	call("plan", "{\"size\":\"64MiB\"}");
	call("reclaim", "{\"size\":\"16MiB\"}");
	run_until(7 * S);
	reload(other_conf, 30);
	call("set", "{\"name\":\"batch\",\"low\":\"32MiB\",\"guest_swap\":\"no\"}");
	call("show", "{\"name\":\"web\"}");
	run_until(9 * S);
	reload(conf, 20);
	call("explain", NULL);
	call("explain", "{\"name\":\"batch\"}");
	call("pause", NULL);
	call("resume", NULL);
	call("release", "{\"name\":\"late\"}");
	run_until(10 * S);
	call("unsubscribe", NULL);
}

static struct sim_vm_view view_of(const char *vm)
{
	struct sim_vm_view view;

	MUST(sim_vm_view(hv, vm, &view) == 0);
	return view;
}

/* Whatever failed: a while later all is as it would have been. */
static void check_end(uint64_t nth)
{
	static const char *const names[] = { "web", "batch", "late" };
	struct core_status status;
	struct core_vm_view vm;
	uint64_t id = 0;

	/* A pause that could not be ended is no fault of the core. */
	core_pause(core, false);
	run_until(60 * S);
	core_status(core, &status);
	ck_assert_msg(status.pool.known, "%lu (%s)", (unsigned long)nth, faults_what());
	ck_assert_msg(status.pool.free >= (int64_t)status.pool.wm_low,
		"%lu (%s): the need was not met", (unsigned long)nth, faults_what());
	for (size_t i = 0; i < 3; i++) {
		ck_assert_msg(core_find(core, names[i], &id) == 0 && core_vm(core, id, &vm) == 0,
			"%lu (%s): %s is lost", (unsigned long)nth, faults_what(), names[i]);
		ck_assert_msg(vm.samples > 20, "%lu (%s): %s is not looked at", (unsigned long)nth,
			faults_what(), names[i]);
		/* No target without its ceiling, none below the floor. */
		if (view_of(names[i]).targets) {
			ck_assert_uint_eq(view_of(names[i]).ceiling, MIB(1024));
			ck_assert_uint_ge(view_of(names[i]).lowest_target, MIB(1024) / 5);
		}
	}
	ck_assert_str_eq(vm.group, "/prod");
}

/* True: something failed. */
static bool run(uint64_t nth)
{
	struct config *config = NULL;
	bool injected, ended = true;

	open_host();
	core = NULL;
	methods = NULL;
	client = (struct control_client){ 0 };
	faults_arm(nth);
	read_host();
	if (load_config(&config) && start(config)) {
		open_record();
		use();
		ended = false;
	}
	injected = faults_disarm();
	if (!ended)
		check_end(nth);
	methods_free(methods);
	core_free(core);
	config_free(config);
	record_free(record);
	record = NULL;
	faults_check_leaks(nth);
	hv_sim.close(hv);
	return injected;
}

START_TEST(the_nth_failure_is_lived_through)
{
	faults_each(run, 50);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("faults");
	TCase *tc = tcase_create("faults");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, the_nth_failure_is_lived_through);
	suite_add_tcase(suite, tc);
	scratch_begin_in_memory();
	return suite_run(suite);
}
