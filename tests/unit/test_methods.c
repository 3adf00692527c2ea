/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The protocol's methods on the daemon's core over a simulated host: batch is over its soft limit
 * with cold memory, web is under its own. The socket is left out: control_notify() is here.
 */
#include <config.h>

#include "hv/ballastd/methods.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/text.h"
#include "hv/ballastd/views.h"
#include "hv/sim/sim.h"
#include "tests/unit/suite.h"

#define MIB(n) (UINT64_C(1048576) * (n))
#define MS     UINT64_C(1000)
#define STEP   (10 * MS)

struct control_client {
	unsigned int notifications;
	char last[4096]; /* "method params" */
};

void control_notify(struct control_client *client, const char *method, struct json_object *params)
{
	client->notifications++;
	snprintf(client->last, sizeof(client->last), "%s %s", method,
		json_object_to_json_string_ext(params, JSON_C_TO_STRING_PLAIN));
	json_object_put(params);
}

static struct hv *hv;
static struct core *core;
static struct core_config config;
static struct methods *methods;
static struct control_client client, other;
static uint64_t now;
static unsigned int wakes;

static uint64_t get_now(void *ctx)
{
	return now;
}

static void wake(void *ctx)
{
	wakes++;
}

static void on_tick(
	void *ctx, const struct engine_input *input, int error, const struct engine_output *output)
{
	methods_on_tick(methods, output);
}

static void run(uint64_t time)
{
	for (uint64_t end = now + time; now < end;) {
		const struct hv_call *calls;
		struct hv_event event;
		uint64_t next;
		size_t nr;

		now += STEP;
		ck_assert_int_eq(sim_advance(hv, now), 0);
		while (hv_sim.next(hv, &event) == 1) {
			core_event(core, now, &event);
			hv_event_clear(&event);
		}
		ck_assert_int_eq(core_step(core, now, &calls, &nr, &next), 0);
		for (size_t i = 0; i < nr; i++)
			ck_assert_int_eq(hv_sim.submit(hv, &calls[i]), 0);
		methods_after_step(methods);
	}
}

static void add_vm(const char *name, uint64_t soft_limit, uint64_t cache)
{
	struct sim_vm vm;

	sim_vm_default(&vm);
	vm.name = name;
	vm.guest.maximum = MIB(1024);
	vm.guest.cache_cold = cache;
	vm.memtune.has_soft_limit = true;
	vm.memtune.soft_limit = soft_limit;
	ck_assert_int_eq(sim_vm_add(hv, &vm), 0);
}

static void start(bool act)
{
	struct methods_params params = { .now = get_now, .wake = wake };
	struct hv_params hv_params = { .uri = "sim:///" };
	struct sim_host host;

	now = 0;
	wakes = 0;
	memset(&client, 0, sizeof(client));
	memset(&other, 0, sizeof(other));
	core_config_default(&config);
	config.engine.act = act;
	config.engine.bounds.margin_at_least = MIB(16) / 4096;
	config.engine.bounds.floor_percent = 20;
	config.pool_host = false;
	config.pool_size = MIB(4096);
	ck_assert_int_eq(hv_sim.open(&hv_params, &hv), 0);
	sim_host_default(&host);
	host.total = MIB(8192);
	ck_assert_int_eq(sim_host_set(hv, &host), 0);
	add_vm("web", MIB(900), MIB(100));
	add_vm("batch", MIB(300), MIB(600));
	ck_assert_int_eq(core_new(&config, &hv_sim, &core), 0);
	params.core = core;
	ck_assert_int_eq(methods_new(&params, &methods), 0);
	core_on_tick(core, on_tick, NULL, NULL);
}

static void setup(void)
{
	start(true);
	run(20000 * MS);
}

static void setup_observing(void)
{
	start(false);
	run(20000 * MS);
}

static void setup_at_once(void)
{
	start(true);
}

static void teardown(void)
{
	methods_free(methods);
	core_free(core);
	hv_sim.close(hv);
}

/* The result, or NULL with the error in ret_error. */
static struct json_object *call(struct control_client *from, const char *name, const char *params,
	struct control_error *ret_error)
{
	struct json_object *object = NULL, *result = NULL;
	int r = -1;

	memset(ret_error, 0, sizeof(*ret_error));
	if (params)
		ck_assert_int_eq(json_read(params, strlen(params), &object, NULL), 0);
	for (size_t i = 0; i < nr_methods; i++)
		if (!strcmp(methods_table[i].name, name))
			r = methods_table[i].call(methods, from, object, &result, ret_error);
	json_object_put(object);
	ck_assert((r == 0) == (result != NULL));
	json_object_put(ret_error->data);
	ret_error->data = NULL;
	return result;
}

static struct json_object *call_ok(
	struct control_client *from, const char *name, const char *params)
{
	struct control_error error;
	struct json_object *result = call(from, name, params, &error);

	ck_assert_msg(result != NULL, "%s: %s", name, error.message);
	return result;
}

static uint64_t number(struct json_object *object, const char *key)
{
	uint64_t value = 0;

	ck_assert_msg(json_get_u64(object, key, &value) == 0, "no %s in %s", key,
		json_object_to_json_string(object));
	return value;
}

static const char *text(struct json_object *object, const char *key)
{
	const char *value = NULL;

	ck_assert_msg(json_get_string(object, key, &value) == 0, "no %s in %s", key,
		json_object_to_json_string(object));
	return value;
}

static bool has(struct json_object *object, const char *key)
{
	return json_object_object_get_ex(object, key, NULL);
}

static struct json_object *item(struct json_object *object, const char *key, size_t i)
{
	struct json_object *array = NULL;

	ck_assert_int_eq(json_get_array(object, key, &array), 0);
	ck_assert_uint_lt(i, json_object_array_length(array));
	return json_object_array_get_idx(array, i);
}

START_TEST(status_has_figures_in_bytes_and_leaves_out_what_is_not_set)
{
	struct json_object *status = call_ok(&client, "status", NULL), *pool = NULL, *vm;

	ck_assert_uint_eq(number(status, "schema_version"), 1);
	ck_assert_str_eq(text(status, "mode"), "act");
	ck_assert_uint_eq(number(status, "now_us"), now);
	ck_assert_int_eq(json_get_object(status, "pool", &pool), 0);
	ck_assert_uint_eq(number(pool, "size"), MIB(4096));
	ck_assert_uint_gt(number(pool, "wm_high"), number(pool, "wm_low"));
	ck_assert_str_eq(text(item(status, "groups", 0), "path"), "/");
	vm = item(status, "vms", 0); /* in the order of names */
	ck_assert_str_eq(text(vm, "name"), "batch");
	ck_assert_str_eq(text(vm, "state"), "running");
	ck_assert_uint_eq(number(vm, "soft_limit"), MIB(300));
	ck_assert_str_eq(text(vm, "soft_limit_source"), "memtune");
	ck_assert_uint_eq(number(vm, "maximum"), MIB(1024));
	ck_assert_uint_eq(number(vm, "actual"), MIB(1024));
	ck_assert_uint_eq(number(vm, "excess"), number(vm, "usage") - MIB(300));
	ck_assert_uint_gt(number(vm, "samples"), 0);
	ck_assert(!has(vm, "max") && !has(vm, "min") && !has(vm, "target"));
	vm = item(status, "vms", 1);
	ck_assert_str_eq(text(vm, "name"), "web");
	ck_assert_uint_eq(number(vm, "excess"), 0);
	json_object_put(status);
}
END_TEST

START_TEST(before_anything_is_known_figures_are_absent_and_plan_says_so)
{
	struct json_object *status = call_ok(&client, "status", NULL), *pool = NULL;
	struct control_error error;
	bool known = true;

	ck_assert_int_eq(json_get_object(status, "pool", &pool), 0);
	ck_assert_int_eq(json_get_bool(pool, "known", &known), 0);
	ck_assert(!known && !has(pool, "free"));
	json_object_put(status);
	ck_assert_ptr_null(call(&client, "plan", "{\"size\":\"1GiB\"}", &error));
	ck_assert_int_eq(error.code, CONTROL_NOT_YET);
	status = call_ok(&client, "version", NULL);
	ck_assert_str_eq(text(status, "version"), PACKAGE_VERSION);
	json_object_put(status);
}
END_TEST

START_TEST(plan_takes_from_who_is_in_excess_and_changes_nothing)
{
	struct json_object *plan =
		call_ok(&client, "plan", "{\"size\":\"100MiB\",\"group\":\"/\"}");
	struct json_object *shares = NULL;
	uint64_t gives = 0;

	ck_assert_str_eq(text(plan, "group"), "/");
	ck_assert_uint_eq(number(plan, "need"), MIB(100));
	ck_assert_uint_eq(number(plan, "short"), 0);
	ck_assert_int_eq(json_get_array(plan, "shares", &shares), 0);
	ck_assert_uint_gt(json_object_array_length(shares), 0);
	for (size_t i = 0; i < json_object_array_length(shares); i++) {
		ck_assert_str_eq(text(item(plan, "shares", i), "name"), "batch");
		ck_assert_uint_eq(number(item(plan, "shares", i), "step"), i + 1);
		gives += number(item(plan, "shares", i), "gives");
	}
	ck_assert_uint_eq(gives, MIB(100));
	json_object_put(plan);
	run(2000 * MS);
	ck_assert_uint_eq(client.notifications, 0);
	plan = call_ok(&client, "status", NULL);
	ck_assert(!has(item(plan, "vms", 0), "target"));
	json_object_put(plan);
}
END_TEST

START_TEST(reclaim_tells_its_progress_to_its_client_until_all_came)
{
	struct json_object *started = call_ok(&client, "reclaim", "{\"size\":\"100MiB\"}"),
			   *explained;
	struct json_object *reason;

	ck_assert_uint_eq(number(started, "job"), 1);
	ck_assert_uint_eq(number(started, "wanted"), MIB(100));
	json_object_put(started);
	ck_assert_uint_gt(wakes, 0);
	ck_assert_uint_eq(client.notifications, 0); /* not before the answer */
	for (int i = 0; i < 300 && !strstr(client.last, "\"done\""); i++)
		run(100 * MS);
	ck_assert_msg(strstr(client.last, "reclaim.progress {\"job\":1,\"wanted\":104857600,") ==
			      client.last,
		"%s", client.last);
	ck_assert_ptr_nonnull(strstr(client.last, "\"state\":\"done\""));
	ck_assert_uint_gt(client.notifications, 1);
	ck_assert_uint_eq(other.notifications, 0);

	explained = call_ok(&client, "explain", "{\"name\":\"batch\"}");
	ck_assert_str_eq(text(item(explained, "vms", 0), "name"), "batch");
	for (size_t i = 0;; i++) {
		reason = item(item(explained, "vms", 0), "reasons", i);
		if (!strcmp(text(reason, "type"), "cut"))
			break;
	}
	ck_assert_uint_eq(number(reason, "job"), 1);
	ck_assert_str_eq(text(reason, "root"), "/");
	ck_assert_uint_le(number(reason, "step"), 2); /* it is in excess */
	ck_assert_uint_le(number(reason, "at_us"), number(explained, "now_us"));
	ck_assert(has(reason, "cap") && has(reason, "to") && has(reason, "bound"));
	json_object_put(explained);
}
END_TEST

START_TEST(reclaim_of_more_than_anyone_has_ends_short)
{
	json_object_put(call_ok(&client, "reclaim", "{\"size\":\"1TiB\"}"));
	for (int i = 0; i < 600 && !strstr(client.last, "\"short\""); i++)
		run(100 * MS);
	ck_assert_msg(strstr(client.last, "\"state\":\"short\"") != NULL, "%s", client.last);
}
END_TEST

START_TEST(job_is_cancelled_by_its_client_only)
{
	struct control_error error;

	json_object_put(call_ok(&client, "reclaim", "{\"size\":\"500MiB\"}"));
	run(300 * MS);
	ck_assert_ptr_null(call(&other, "reclaim.cancel", "{\"job\":1}", &error));
	ck_assert_int_eq(error.code, CONTROL_NOT_FOUND);
	json_object_put(call_ok(&client, "reclaim.cancel", "{\"job\":1}"));
	run(300 * MS);
	ck_assert_ptr_nonnull(strstr(client.last, "\"state\":\"cancelled\""));
	ck_assert_ptr_null(call(&client, "reclaim.cancel", "{\"job\":1}", &error));
	ck_assert_int_eq(error.code, CONTROL_NOT_FOUND);
	ck_assert_ptr_null(call(&client, "reclaim.cancel", "{\"job\":-1}", &error));
	ck_assert_int_eq(error.code, CONTROL_PARAMS);
}
END_TEST

START_TEST(client_that_goes_takes_its_jobs_with_it)
{
	struct core_job job;

	json_object_put(call_ok(&client, "reclaim", "{\"size\":\"500MiB\"}"));
	json_object_put(call_ok(&other, "reclaim", "{\"size\":\"10MiB\"}"));
	run(300 * MS);
	methods_gone(methods, &client);
	client.notifications = 0;
	run(300 * MS);
	ck_assert_int_eq(core_job(core, 1, &job), 0);
	ck_assert_int_eq(job.state, CORE_JOB_CANCELLED);
	ck_assert_int_eq(core_job(core, 2, &job), 0);
	ck_assert_int_ne(job.state, CORE_JOB_CANCELLED);
	ck_assert_uint_eq(client.notifications, 0);
}
END_TEST

START_TEST(jobs_of_one_client_are_bounded)
{
	struct control_error error;

	for (int i = 0; i < METHODS_JOBS_MAX; i++)
		json_object_put(call_ok(&client, "reclaim", "{\"size\":\"1GiB\"}"));
	ck_assert_ptr_null(call(&client, "reclaim", "{\"size\":\"1GiB\"}", &error));
	ck_assert_int_eq(error.code, CONTROL_TOO_MANY);
	json_object_put(call_ok(&other, "reclaim", "{\"size\":\"1GiB\"}"));
}
END_TEST

START_TEST(subscriber_is_told_actions_and_events_until_it_unsubscribes)
{
	bool action = false;

	json_object_put(call_ok(&client, "subscribe", NULL));
	json_object_put(call_ok(&client, "subscribe", "{}"));
	json_object_put(call_ok(&other, "reclaim", "{\"size\":\"50MiB\"}"));
	for (int i = 0; i < 3000 && !action; i++) {
		run(10 * MS);
		action = strstr(client.last, "event {\"type\":\"action\"") != NULL;
	}
	ck_assert_msg(action, "%s", client.last);
	ck_assert_ptr_nonnull(strstr(client.last, "\"name\":\"batch\""));
	ck_assert_ptr_nonnull(strstr(client.last, "\"action\":\"cut\""));
	json_object_put(call_ok(&client, "unsubscribe", NULL));
	client.notifications = 0;
	run(20000 * MS);
	ck_assert_uint_eq(client.notifications, 0);
}
END_TEST

START_TEST(reclaim_is_refused_while_only_observing)
{
	struct control_error error;

	ck_assert_ptr_null(call(&client, "reclaim", "{\"size\":\"1GiB\"}", &error));
	ck_assert_int_eq(error.code, CONTROL_OBSERVE);
	ck_assert_ptr_nonnull(strstr(error.message, "mode = act"));
}
END_TEST

static const struct {
	const char *method, *params;
	int code;
	const char *words;
} bad[] = {
	{ "status", "{\"x\":1}", CONTROL_PARAMS, "no parameter 'x'" },
	{ "plan", NULL, CONTROL_PARAMS, "size is missing" },
	{ "plan", "{\"size\":1073741824}", CONTROL_PARAMS, "a string with a unit" },
	{ "plan", "{\"size\":\"16384\"}", CONTROL_PARAMS, "16384MiB" },
	{ "plan", "{\"size\":\"-1M\"}", CONTROL_PARAMS, "negative" },
	{ "plan", "{\"size\":\"0\"}", CONTROL_PARAMS, "nothing" },
	{ "plan", "{\"size\":\"18446744073709551615b\"}", CONTROL_PARAMS, "more than 1 PiB" },
	{ "plan", "{\"size\":\"1125899906842625b\"}", CONTROL_PARAMS, "more than 1 PiB" },
	{ "reclaim", "{\"size\":\"2PiB\"}", CONTROL_PARAMS, "more than 1 PiB" },
	{ "reclaim", "{\"size\":\"1MiB\\u0000\"}", CONTROL_PARAMS, "no string" },
	{ "plan", "{\"size\":\"1MiB\",\"group\":\"/\\u0000x\"}", CONTROL_PARAMS,
		"group is a string" },
	{ "explain", "{\"name\":\"web\\u0000x\"}", CONTROL_PARAMS, "name is a string" },
	{ "explain", "{\"name\":\"x\"}", CONTROL_NOT_FOUND, "no VM or group named 'x'" },
	{ "plan", "{\"size\":\"1G\",\"group\":7}", CONTROL_PARAMS, "group" },
	{ "plan", "{\"size\":\"1G\",\"group\":\"/nope\"}", CONTROL_NOT_FOUND, "'/nope'" },
	{ "plan", "{\"size\":\"1G\",\"group\":\"web\"}", CONTROL_PARAMS, "is a VM" },
	{ "plan", "{\"size\":\"1G\",\"goup\":\"/\"}", CONTROL_PARAMS, "'goup'" },
	{ "explain", "{\"name\":\"wbe\"}", CONTROL_NOT_FOUND, "did you mean 'web'?" },
	{ "explain", "{\"name\":\"%s%n\"}", CONTROL_NOT_FOUND, "'%s%n'" },
	{ "explain", "{\"name\":\"\"}", CONTROL_NOT_FOUND, "''" },
	{ "explain", "{\"name\":null}", CONTROL_PARAMS, "name is a string" },
	{ "reclaim.cancel", NULL, CONTROL_PARAMS, "job" },
	{ "reclaim.cancel", "{\"job\":99}", CONTROL_NOT_FOUND, "job" },
	{ "version", "{\"a\":1}", CONTROL_PARAMS, "'a'" },
	{ "subscribe", "{\"a\":1}", CONTROL_PARAMS, "'a'" },
};

static void call_fails(
	const char *name, const char *params, enum control_code code, const char *words)
{
	struct control_error error;
	struct json_object *result = call(&client, name, params, &error);

	ck_assert_msg(!result, "%s %s was taken", name, params);
	ck_assert_int_eq(error.code, code);
	ck_assert_msg(strstr(error.message, words), "%s %s: no '%s' in: %s", name, params, words,
		error.message);
	json_object_put(error.data);
}

START_TEST(show_has_every_knob_with_its_source_and_what_it_overrides)
{
	struct json_object *result = call_ok(&client, "show", "{\"name\":\"batch\"}"), *knobs,
			   *knob, *others;

	ck_assert_int_eq(json_get_array(result, "knobs", &knobs), 0);
	ck_assert_uint_eq(json_object_array_length(knobs), 8);
	knob = json_object_array_get_idx(knobs, 0);
	ck_assert_str_eq(text(knob, "knob"), "soft-limit");
	ck_assert_str_eq(text(knob, "source"), "memtune");
	ck_assert_uint_eq(number(knob, "value"), MIB(300));
	ck_assert_int_eq(json_get_array(knob, "overrides", &others), 0);
	ck_assert_uint_eq(json_object_array_length(others), 1);
	ck_assert_str_eq(text(json_object_array_get_idx(others, 0), "source"), "default");
	json_object_put(result);
	call_fails("show", "{\"name\":\"/\"}", CONTROL_PARAMS, "is a group");
	call_fails("show", "{}", CONTROL_PARAMS, "name is a string");
	call_fails("show", "{\"name\":\"bach\"}", CONTROL_NOT_FOUND, "did you mean 'batch'?");
}
END_TEST

START_TEST(show_has_what_the_agent_in_the_guest_says_and_its_groups)
{
	struct json_object *result = call_ok(&client, "show", "{\"name\":\"web\"}"), *agent,
			   *groups, *group;
	struct sim_vm vm;
	bool yes = false;

	ck_assert(!json_object_object_get_ex(result, "agent", NULL));
	json_object_put(result);
	sim_vm_default(&vm);
	vm.name = "told";
	vm.guest.maximum = MIB(1024);
	vm.guest.cache_cold = MIB(200);
	vm.guest.hot = MIB(100);
	vm.guest.agent = vm.guest.reporting = true;
	ck_assert_int_eq(sim_vm_add(hv, &vm), 0);
	run(8000 * MS); /* it is found by a listing */
	result = call_ok(&client, "show", "{\"name\":\"told\"}");
	ck_assert_int_eq(json_get_object(result, "agent", &agent), 0);
	ck_assert_int_eq(json_get_bool(agent, "connected", &yes), 0);
	ck_assert(yes);
	ck_assert_int_eq(json_get_bool(agent, "inside", &yes), 0);
	ck_assert(yes);
	ck_assert_uint_eq(number(agent, "version"), 1);
	ck_assert_ptr_nonnull(strstr(text(agent, "software"), "ballast-agent"));
	ck_assert_uint_eq(number(agent, "active_anon"), MIB(100));
	ck_assert_uint_eq(number(agent, "inactive_file"), MIB(200));
	ck_assert_uint_gt(number(agent, "floor"), 0);
	ck_assert_uint_eq(number(agent, "need"), 0);
	ck_assert_int_eq(json_get_array(agent, "groups", &groups), 0);
	ck_assert_uint_eq(json_object_array_length(groups), 1);
	group = json_object_array_get_idx(groups, 0);
	ck_assert_str_eq(text(group, "name"), "/");
	ck_assert_uint_eq(number(group, "active"), MIB(100));
	ck_assert_uint_eq(number(group, "inactive"), MIB(200));
	json_object_put(result);
	/* A listing of all VMs is not made longer by groups. */
	result = call_ok(&client, "explain", "{\"name\":\"told\"}");
	ck_assert_int_eq(json_get_array(result, "vms", &groups), 0);
	ck_assert_int_eq(json_get_object(json_object_array_get_idx(groups, 0), "agent", &agent), 0);
	ck_assert(!json_object_object_get_ex(agent, "groups", NULL));
	json_object_put(result);
}
END_TEST

/* A kernel that ages by generations and tells nothing of them, without PSI. */
START_TEST(what_an_agent_does_not_tell_of_its_groups_is_absent)
{
	struct core_vm_view vm = { .agent = { .connected = true,
					   .known = HV_AGENT_REPORT,
					   .nr_groups = 1,
					   .groups = { { .name = "/a", .refaults = 4096 } } } };
	struct json_object *object = json_object_new_object(), *agent = NULL, *group;
	int r = 0;

	views_put_agent(object, &vm, true, &r);
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(json_get_object(object, "agent", &agent), 0);
	ck_assert(!has(agent, "active_anon") && !has(agent, "psi_some_permille"));
	group = item(agent, "groups", 0);
	ck_assert_str_eq(text(group, "name"), "/a");
	ck_assert_uint_eq(number(group, "refaults_per_second"), 4096);
	ck_assert(!has(group, "active") && !has(group, "inactive"));
	ck_assert(!has(group, "psi_some_permille"));
	json_object_put(object);
}
END_TEST

START_TEST(set_is_written_and_counts_and_its_client_is_told_when)
{
	struct json_object *result = call_ok(&client, "set",
		"{\"name\":\"batch\",\"soft_limit\":\"400MiB\",\"manage\":\"observe\"}");
	struct json_object *knobs;

	ck_assert_uint_gt(number(result, "set"), 0);
	json_object_put(result);
	ck_assert_uint_eq(client.notifications, 0);
	call_fails("set", "{\"name\":\"batch\",\"min\":\"1MiB\"}", CONTROL_TOO_MANY, "under way");
	run(200 * MS);
	ck_assert_uint_eq(client.notifications, 1);
	ck_assert_str_eq(client.last, "set.done {\"set\":1,\"state\":\"done\"}");
	result = call_ok(&client, "show", "{\"name\":\"batch\"}");
	ck_assert_int_eq(json_get_array(result, "knobs", &knobs), 0);
	ck_assert_str_eq(text(json_object_array_get_idx(knobs, 0), "source"), "metadata");
	ck_assert_uint_eq(number(json_object_array_get_idx(knobs, 0), "value"), MIB(400));
	ck_assert_str_eq(text(json_object_array_get_idx(knobs, 5), "value"), "observe");
	json_object_put(result);

	json_object_put(call_ok(&client, "set", "{\"name\":\"batch\",\"soft_limit\":\"none\"}"));
	run(200 * MS);
	result = call_ok(&client, "show", "{\"name\":\"batch\"}");
	ck_assert_int_eq(json_get_array(result, "knobs", &knobs), 0);
	ck_assert_str_eq(text(json_object_array_get_idx(knobs, 0), "source"), "memtune");
	json_object_put(result);
}
END_TEST

START_TEST(set_is_whole_or_refused)
{
	static const struct {
		const char *params, *words;
	} cases[] = {
		{ "{\"name\":\"web\"}", "nothing is given" },
		{ "{\"name\":\"web\",\"min\":\"2GiB\",\"max\":\"1GiB\"}", "min would be over max" },
		{ "{\"name\":\"web\",\"low\":\"1MiB\",\"min\":\"5GiB\"}", "over the pool" },
		{ "{\"name\":\"web\",\"low\":\"1MiB\",\"min\":\"16384\"}",
			"min: '16384' has no unit" },
		{ "{\"name\":\"web\",\"min\":16384}", "min: is a string" },
		{ "{\"name\":\"web\",\"min\":\"-1\"}", "negative" },
		{ "{\"name\":\"web\",\"min\":\"1.5G\"}", "fraction" },
		{ "{\"name\":\"web\",\"min\":\"99999999999T\"}", "overflow" },
		{ "{\"name\":\"web\",\"min\":\"9EiB\"}", "more than 1 PiB" },
		{ "{\"name\":\"web\",\"min\":\"\"}", "is empty" },
		{ "{\"name\":\"web\",\"max\":\"max\"}", "is no size" },
		{ "{\"name\":\"web\",\"group\":\"prod\"}", "is a path" },
		{ "{\"name\":\"web\",\"group\":\"/a/../b\"}", "has a part . or .." },
		{ "{\"name\":\"web\",\"manage\":\"yes\"}", "no, observe, act" },
		{ "{\"name\":\"web\",\"guest_swap\":true}", "is a string" },
		{ "{\"name\":\"web\",\"soft-limit\":\"1GiB\"}", "no parameter 'soft-limit'" },
		{ "{\"name\":\"web\",\"agent\":\"yes\"}", "ballast, qemu-ga, none or default" },
	};
	struct json_object *result, *knobs;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		call_fails("set", cases[i].params, CONTROL_PARAMS, cases[i].words);
	run(200 * MS);
	result = call_ok(&client, "show", "{\"name\":\"web\"}");
	ck_assert_int_eq(json_get_array(result, "knobs", &knobs), 0);
	for (size_t i = 1; i < 4; i++)
		ck_assert_str_eq(text(json_object_array_get_idx(knobs, i), "source"), "default");
	json_object_put(result);
	ck_assert_uint_eq(client.notifications, 0);
}
END_TEST

START_TEST(wrong_parameters_are_named)
{
	struct control_error error;
	struct json_object *result;

	result = call(&client, bad[_i].method, bad[_i].params, &error);
	ck_assert_ptr_null(result);
	ck_assert_msg(
		error.code == (enum control_code)bad[_i].code, "%d: %s", error.code, error.message);
	ck_assert_msg(strstr(error.message, bad[_i].words) != NULL, "%s", error.message);
}
END_TEST

static uint64_t target_of(const char *vm)
{
	struct sim_vm_view view;

	ck_assert_int_eq(sim_vm_view(hv, vm, &view), 0);
	return view.guest->target;
}

START_TEST(paused_vm_is_not_asked_and_a_plan_says_so)
{
	struct control_error error;
	struct json_object *result;

	result = call_ok(&client, "pause", "{\"name\":\"batch\"}");
	ck_assert_str_eq(text(item(result, "vms", 0), "name"), "batch");
	ck_assert(!json_object_get_boolean(json_object_object_get(result, "paused")));
	json_object_put(result);
	ck_assert_uint_eq(wakes, 1);
	run(2000 * MS);
	result = call_ok(&client, "plan", "{\"size\":\"64MiB\"}");
	ck_assert_str_eq(text(item(result, "holds", 0), "hold"), "asking is paused");
	json_object_put(result);
	json_object_put(call_ok(&client, "resume", "{\"name\":\"batch\"}"));
	run(2000 * MS);
	result = call_ok(&client, "plan", "{\"size\":\"64MiB\"}");
	ck_assert_str_eq(text(item(result, "shares", 0), "name"), "batch");
	json_object_put(result);
	ck_assert_ptr_null(call(&client, "pause", "{\"name\":\"/\"}", &error));
	ck_assert_int_eq(error.code, CONTROL_PARAMS);
	ck_assert_ptr_null(call(&client, "pause", "{\"name\":\"batsh\"}", &error));
	ck_assert_int_eq(error.code, CONTROL_NOT_FOUND);
}
END_TEST

START_TEST(while_everything_is_paused_no_reclaim_is_begun)
{
	struct control_error error;
	struct json_object *result;

	result = call_ok(&client, "pause", NULL);
	ck_assert(json_object_get_boolean(json_object_object_get(result, "paused")));
	json_object_put(result);
	ck_assert_ptr_null(call(&client, "reclaim", "{\"size\":\"64MiB\"}", &error));
	ck_assert_int_eq(error.code, CONTROL_PAUSED);
	ck_assert_ptr_nonnull(strstr(error.message, "resume"));
	result = call_ok(&client, "status", NULL);
	ck_assert(json_object_get_boolean(json_object_object_get(result, "paused")));
	json_object_put(result);
	json_object_put(call_ok(&client, "resume", NULL));
	json_object_put(call_ok(&client, "reclaim", "{\"size\":\"64MiB\"}"));
}
END_TEST

START_TEST(released_vm_is_at_its_ceiling_and_stays_there)
{
	struct control_error error;
	struct json_object *result;

	json_object_put(call_ok(&client, "reclaim", "{\"size\":\"128MiB\"}"));
	run(3000 * MS);
	ck_assert_uint_lt(target_of("batch"), MIB(1024));
	result = call_ok(&client, "release", "{\"name\":\"/\"}");
	ck_assert_uint_eq(number(result, "released"), 2);
	ck_assert_uint_eq(number(result, "hold_us"), 600000000);
	json_object_put(result);
	run(2000 * MS);
	ck_assert_uint_eq(target_of("batch"), MIB(1024));
	result = call_ok(&client, "plan", "{\"size\":\"64MiB\"}");
	ck_assert_str_eq(text(item(result, "holds", 0), "hold"), "released lately");
	json_object_put(result);
	ck_assert_ptr_null(call(&client, "release", NULL, &error));
	ck_assert_int_eq(error.code, CONTROL_PARAMS);
}
END_TEST

START_TEST(release_of_a_vm_that_is_not_managed_says_so)
{
	struct control_error error;
	struct core_config changed = config;
	struct core_rule rule = { .name = (char *)"mine",
		.match_name = (char *)"batch",
		.knobs = { .has_manage = true, .manage = HV_MANAGE_OBSERVE } };

	changed.rules = &rule;
	changed.nr_rules = 1;
	ck_assert_int_eq(core_set_config(core, now, &changed), 0);
	run(1000 * MS);
	ck_assert_ptr_null(call(&client, "release", "{\"name\":\"batch\"}", &error));
	ck_assert_int_eq(error.code, CONTROL_OBSERVE);
	ck_assert_ptr_nonnull(strstr(error.message, "not managed"));
}
END_TEST

START_TEST(release_is_refused_while_only_observing)
{
	struct control_error error;

	ck_assert_ptr_null(call(&client, "release", "{\"name\":\"/\"}", &error));
	ck_assert_int_eq(error.code, CONTROL_OBSERVE);
	ck_assert_ptr_nonnull(strstr(error.message, "--direct"));
}
END_TEST

START_TEST(port_that_no_simulated_vm_can_have_is_said_to_whom_asked)
{
	json_object_put(call_ok(&client, "agent.attach", "{\"name\":\"web\"}"));
	run(200 * MS);
	ck_assert_uint_eq(client.notifications, 1);
	ck_assert_str_eq(client.last,
		"agent.attach.done {\"attach\":1,\"state\":\"failed\",\"message\":\"with "
		"this hypervisor no port can be added\"}");
	call_fails("agent.attach", "{\"name\":\"web\",\"persistent\":1}", CONTROL_PARAMS,
		"persistent is true or false");
	call_fails("agent.attach", "{\"name\":\"wep\"}", CONTROL_NOT_FOUND, "did you mean 'web'");
	call_fails("agent.attach", "{\"name\":\"/\"}", CONTROL_PARAMS, "is a group");
}
END_TEST

START_TEST(no_port_is_added_while_only_observing)
{
	call_fails("agent.attach", "{\"name\":\"web\"}", CONTROL_OBSERVE, "only observes");
}
END_TEST

/* A rule moves web: until the next decision the engine knows it where it was. */
static void move_web(void)
{
	struct hv_knobs group = { .has_group = true, .group = (char *)"/moved" };
	struct core_rule rule = {
		.name = (char *)"r", .match_name = (char *)"web", .knobs = group
	};
	struct core_config moved = config;

	moved.rules = &rule;
	moved.nr_rules = 1;
	ck_assert_int_eq(core_set_config(core, now, &moved), 0);
}

static void is_of_web(const char *method, const char *array)
{
	struct json_object *result = call_ok(&client, method, "{\"name\":\"web\"}"), *vms = NULL;

	if (array) {
		ck_assert_int_eq(json_get_array(result, array, &vms), 0);
		ck_assert_uint_eq(json_object_array_length(vms), 1);
		ck_assert_str_eq(text(item(result, array, 0), "name"), "web");
	} else {
		ck_assert_str_eq(text(result, "name"), "web");
	}
	json_object_put(result);
}

START_TEST(vm_that_changes_its_group_is_named_by_all_methods_until_the_next_decision)
{
	struct json_object *result;

	move_web();
	is_of_web("release", NULL);
	is_of_web("explain", "vms");
	is_of_web("show", NULL);
	is_of_web("pause", "vms");
	call_fails("reclaim", "{\"size\":\"1MiB\",\"group\":\"web\"}", CONTROL_PARAMS, "is a VM");
	call_fails("plan", "{\"size\":\"1MiB\",\"group\":\"web\"}", CONTROL_PARAMS, "is a VM");
	result = call_ok(&client, "set", "{\"name\":\"web\",\"min\":\"1MiB\"}");
	json_object_put(result);
	run(200 * MS);
	ck_assert_str_eq(client.last, "set.done {\"set\":1,\"state\":\"done\"}");
	is_of_web("show", NULL);
}
END_TEST

START_TEST(group_is_written_in_its_one_form)
{
	struct json_object *result;

	json_object_put(call_ok(&client, "set", "{\"name\":\"web\",\"group\":\"//prod/web/\"}"));
	run(2000 * MS);
	result = call_ok(&client, "show", "{\"name\":\"web\"}");
	ck_assert_str_eq(text(result, "group"), "/prod/web");
	ck_assert(!has(result, "refused"));
	ck_assert_str_eq(text(item(result, "knobs", 6), "value"), "/prod/web");
	json_object_put(result);
}
END_TEST

START_TEST(error_that_is_too_long_ends_at_a_whole_character)
{
	char params[1200] = "{\"name\":\"", *end = params + strlen(params);
	struct control_error error;

	for (int i = 0; i < 400; i++, end += 2)
		memcpy(end, "\xc3\xa9", 2);
	strcpy(end, "\"}");
	ck_assert_ptr_null(call(&client, "show", params, &error));
	ck_assert(text_is_utf8(error.message));
	ck_assert_ptr_nonnull(strstr(error.message, "\xc3\xa9"));
}
END_TEST

START_TEST(what_is_not_known_of_a_guest_is_no_estimate)
{
	struct json_object *result, *vm;
	struct sim_vm fixed;

	sim_vm_default(&fixed);
	fixed.name = "a";
	fixed.guest.maximum = MIB(256);
	fixed.guest.balloon = false;
	ck_assert_int_eq(sim_vm_add(hv, &fixed), 0);
	run(8000 * MS);
	result = call_ok(&client, "status", NULL);
	vm = item(result, "vms", 0);
	ck_assert_str_eq(text(vm, "name"), "a");
	ck_assert(!has(vm, "guest_used") && !has(vm, "guest_used_estimated"));
	json_object_put(result);
}
END_TEST

/* Nobody goes on to lose memory to who only observes; and who manages it no more ends it as well.
 */
START_TEST(cut_that_runs_is_ended_when_observing_begins)
{
	struct hv_knobs observe = { .has_manage = true, .manage = HV_MANAGE_OBSERVE };
	struct core_rule rule = { .name = (char *)"r", .knobs = observe };
	struct core_config observing = config;
	struct sim_vm_view view;
	uint64_t targets, target;

	json_object_put(call_ok(&client, "reclaim", "{\"size\":\"512MiB\"}"));
	do {
		run(STEP);
		ck_assert_int_eq(sim_vm_view(hv, "batch", &view), 0);
	} while (view.targets == 0 || guest_actual(view.guest) == MIB(1024));
	ck_assert_uint_gt(guest_actual(view.guest), view.guest->target);
	if (_i == 0) {
		observing.engine.act = false;
	} else {
		observing.rules = &rule;
		observing.nr_rules = 1;
	}
	ck_assert_int_eq(core_set_config(core, now, &observing), 0);
	run(500 * MS);
	ck_assert_int_eq(sim_vm_view(hv, "batch", &view), 0);
	targets = view.targets;
	target = view.guest->target;
	ck_assert_uint_ge(target, guest_actual(view.guest));
	ck_assert_uint_gt(target, view.lowest_target);
	run(60000 * MS);
	ck_assert_int_eq(sim_vm_view(hv, "batch", &view), 0);
	ck_assert_uint_eq(view.targets, targets);
	ck_assert_uint_eq(guest_actual(view.guest), target);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name, void (*start_case)(void))
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, start_case, teardown);
	tcase_set_timeout(tc, 30);
	suite_add_tcase(suite, tc);
	return tc;
}

int main(void)
{
	Suite *suite = suite_create("methods");
	TCase *tc;

	tc = add_case(suite, "acting", setup);
	tcase_add_test(tc, status_has_figures_in_bytes_and_leaves_out_what_is_not_set);
	tcase_add_test(tc, plan_takes_from_who_is_in_excess_and_changes_nothing);
	tcase_add_test(tc, reclaim_tells_its_progress_to_its_client_until_all_came);
	tcase_add_test(tc, reclaim_of_more_than_anyone_has_ends_short);
	tcase_add_test(tc, job_is_cancelled_by_its_client_only);
	tcase_add_test(tc, client_that_goes_takes_its_jobs_with_it);
	tcase_add_test(tc, jobs_of_one_client_are_bounded);
	tcase_add_test(tc, subscriber_is_told_actions_and_events_until_it_unsubscribes);
	tcase_add_test(tc, paused_vm_is_not_asked_and_a_plan_says_so);
	tcase_add_test(tc, while_everything_is_paused_no_reclaim_is_begun);
	tcase_add_test(tc, released_vm_is_at_its_ceiling_and_stays_there);
	tcase_add_test(tc, release_of_a_vm_that_is_not_managed_says_so);
	tcase_add_test(tc, show_has_every_knob_with_its_source_and_what_it_overrides);
	tcase_add_test(tc, show_has_what_the_agent_in_the_guest_says_and_its_groups);
	tcase_add_test(tc, what_an_agent_does_not_tell_of_its_groups_is_absent);
	tcase_add_test(tc, set_is_written_and_counts_and_its_client_is_told_when);
	tcase_add_test(tc, set_is_whole_or_refused);
	tcase_add_test(tc, port_that_no_simulated_vm_can_have_is_said_to_whom_asked);
	tcase_add_test(
		tc, vm_that_changes_its_group_is_named_by_all_methods_until_the_next_decision);
	tcase_add_test(tc, group_is_written_in_its_one_form);
	tcase_add_test(tc, error_that_is_too_long_ends_at_a_whole_character);
	tcase_add_test(tc, what_is_not_known_of_a_guest_is_no_estimate);
	tcase_add_loop_test(tc, cut_that_runs_is_ended_when_observing_begins, 0, 2);
	tcase_add_loop_test(tc, wrong_parameters_are_named, 0, sizeof(bad) / sizeof(bad[0]));
	tc = add_case(suite, "observing", setup_observing);
	tcase_add_test(tc, reclaim_is_refused_while_only_observing);
	tcase_add_test(tc, release_is_refused_while_only_observing);
	tcase_add_test(tc, no_port_is_added_while_only_observing);
	tc = add_case(suite, "at once", setup_at_once);
	tcase_add_test(tc, before_anything_is_known_figures_are_absent_and_plan_says_so);
	return suite_run(suite);
}
