/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The methods of the control protocol: see methods.h, and docs/control-protocol.md. */
#include <config.h>

#include "hv/ballastd/methods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/size.h"
#include "hv/ballastd/pauses.h"
#include "hv/ballastd/views.h"
#include "policy/pages.h"

#define JOBS_MAX (CONTROL_CLIENTS_MAX * METHODS_JOBS_MAX)

/* Actions of one tick that subscribers are told; the rest is in the log. */
#define ACTIONS_MAX 256

struct job {
	uint64_t id;
	struct control_client *client;
	struct core_job sent; /* as the client knows it */
	bool told;	      /* anything yet */
};

/* A change of a VM that its client waits for. */
struct set {
	uint64_t id;
	bool attach; /* the agent's port; else metadata */
	struct control_client *client;
};

struct methods {
	struct methods_params params;
	struct job jobs[JOBS_MAX];
	size_t nr_jobs;
	struct set sets[JOBS_MAX];
	size_t nr_sets;
	struct control_client *subscribers[CONTROL_CLIENTS_MAX];
	size_t nr_subscribers;
	struct engine_action actions[ACTIONS_MAX];
	size_t nr_actions;
};

int methods_new(const struct methods_params *params, struct methods **ret_methods)
{
	struct methods *methods = calloc(1, sizeof(*methods));

	if (!methods)
		return -ENOMEM;
	methods->params = *params;
	*ret_methods = methods;
	return 0;
}

void methods_free(struct methods *methods)
{
	free(methods);
}

/* ---- parameters ---- */

/* Refuses parameters that are not in names (NULL-terminated). */
static int check_params(
	struct json_object *params, const char *const *names, struct control_error *error)
{
	struct json_object_iterator i, end;

	if (!params)
		return 0;
	end = json_object_iter_end(params);
	for (i = json_object_iter_begin(params); !json_object_iter_equal(&i, &end);
		json_object_iter_next(&i)) {
		const char *name = json_object_iter_peek_name(&i);
		const char *const *known = names;

		while (*known && strcmp(*known, name) != 0)
			known++;
		if (!*known)
			return control_fail_with(error, CONTROL_PARAMS, "parameter", name,
				"there is no parameter '%.64s'", name);
	}
	return 0;
}

static int get_size(struct json_object *params, uint64_t *ret_pages, struct control_error *error)
{
	const char *text = NULL;
	uint64_t bytes = 0;
	char why[200];
	int r;

	r = json_get_string(params, "size", &text);
	if (r < 0)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "size",
			"size %s; it is a string with a unit, for example \"512MiB\"",
			r == -ENOENT ? "is missing" : "is no string");
	r = size_parse_amount(text, &bytes);
	if (r < 0)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "size", "size: %s",
			size_parse_error(text, r, why, sizeof(why)));
	/* A need is rounded up. */
	*ret_pages = bytes / POLICY_PAGE_SIZE + (bytes % POLICY_PAGE_SIZE != 0);
	if (*ret_pages == 0)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "size",
			"size: there is nothing to be reclaimed");
	return 0;
}

static int find(
	const struct core *core, const char *what, uint64_t *ret_id, struct control_error *error)
{
	const char *near;
	int r = core_find(core, what, ret_id);

	if (r == 0)
		return 0;
	if (r == -EEXIST)
		return control_fail(error, CONTROL_AMBIGUOUS,
			"there are several VMs named '%.255s'; use the UUID", what);
	near = core_nearest(core, what);
	if (near)
		return control_fail_with(error, CONTROL_NOT_FOUND, "nearest", near,
			"no VM or group named '%.255s'; did you mean '%s'?", what, near);
	return control_fail(error, CONTROL_NOT_FOUND, "no VM or group named '%.255s'", what);
}

/* The parameter "group"; the pool where it is not given. */
static int get_group(const struct core *core, struct json_object *params, uint64_t *ret_id,
	struct control_error *error)
{
	struct core_vm_view vm;
	const char *path = NULL;
	int r;

	*ret_id = MEMCG_ROOT_ID;
	r = json_get_string(params, "group", &path);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "group",
			"group is a string, a group's path such as \"/production\"");
	if (find(core, path, ret_id, error) < 0)
		return -1;
	if (core_vm(core, *ret_id, &vm) == 0)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "group",
			"'%.255s' is a VM; it is in the group %.255s", path, vm.group);
	return 0;
}

/* The end of a method: its result, or that there was no memory for it. */
static int answer(
	struct json_object *result, struct json_object **ret_result, struct control_error *error)
{
	if (!result)
		return control_fail(error, CONTROL_INTERNAL, "no memory");
	*ret_result = result;
	return 0;
}

static const char *const no_params[] = { NULL };
static const char *const size_params[] = { "size", "group", NULL };

/* ---- methods that read ---- */

static int do_version(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	if (check_params(params, no_params, error) < 0)
		return -1;
	return answer(views_version(), ret_result, error);
}

static int do_status(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	const struct methods *m = ctx;

	if (check_params(params, no_params, error) < 0)
		return -1;
	return answer(
		views_status(m->params.core, m->params.now(m->params.ctx)), ret_result, error);
}

/* Figures before the first look at the host would be invented. */
static bool not_seen_yet(const struct core *core, struct control_error *error)
{
	struct core_status status;

	core_status(core, &status);
	if (status.pool.known)
		return false;
	control_fail(error, CONTROL_NOT_YET,
		status.connected
			? "the host's memory is not known yet; try again in a moment"
			: "the daemon has not reached the hypervisor yet; its log says why");
	return true;
}

static int do_plan(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	const struct methods *m = ctx;
	struct reclaim_plan plan;
	uint64_t pages = 0, root = 0;
	int r;

	if (check_params(params, size_params, error) < 0 || get_size(params, &pages, error) < 0 ||
		get_group(m->params.core, params, &root, error) < 0)
		return -1;
	if (not_seen_yet(m->params.core, error))
		return -1;
	r = engine_plan(core_engine(m->params.core), root, pages, &plan);
	if (r < 0)
		return control_fail(error, CONTROL_INTERNAL, "cannot plan: %s", strerror(-r));
	return answer(views_plan(m->params.core, core_name(m->params.core, root), &plan),
		ret_result, error);
}

static int do_explain(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	static const char *const names[] = { "name", NULL };
	const struct methods *m = ctx;
	const char *name = NULL;
	uint64_t id = MEMCG_ROOT_ID;
	int r;

	if (check_params(params, names, error) < 0)
		return -1;
	r = json_get_string(params, "name", &name);
	if (r < 0 && r != -ENOENT)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "name",
			"name is a string: a VM's name or UUID, or a group's path");
	if (r == 0 && find(m->params.core, name, &id, error) < 0)
		return -1;
	return answer(
		views_explain(m->params.core, id, m->params.now(m->params.ctx)), ret_result, error);
}

/* ---- knobs ---- */

/* The parameter "name", which is to be a VM. */
static int get_shown_vm(const struct core *core, struct json_object *params, uint64_t *ret_id,
	struct control_error *error)
{
	struct core_vm_view vm;
	const char *name = NULL;

	if (json_get_string(params, "name", &name) < 0)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "name",
			"name is a string: a VM's name or UUID");
	if (find(core, name, ret_id, error) < 0)
		return -1;
	if (core_vm(core, *ret_id, &vm) < 0)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "name",
			"'%.255s' is a group; its knobs stand in the configuration", name);
	return 0;
}

/* It was started anew, this moment. */
static int no_description(struct control_error *error)
{
	return control_fail(error, CONTROL_NOT_YET,
		"the VM's description is just being read; try again in a moment");
}

static int do_show(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	static const char *const names[] = { "name", NULL };
	const struct methods *m = ctx;
	struct core_knobs_view knobs;
	uint64_t id = 0;

	if (check_params(params, names, error) < 0 ||
		get_shown_vm(m->params.core, params, &id, error) < 0)
		return -1;
	if (core_vm_knobs(m->params.core, id, &knobs) < 0)
		return no_description(error);
	return answer(views_show(m->params.core, id), ret_result, error);
}

static int refused_set(int r, const char *why, struct control_error *error)
{
	if (r == -EINVAL)
		return control_fail(error, CONTROL_PARAMS, "nothing was set: %s", why);
	if (r == -EBUSY)
		return control_fail(error, CONTROL_TOO_MANY,
			"another change of this VM is under way; try again in a moment");
	if (r == -EAGAIN)
		return control_fail(error, CONTROL_TOO_MANY,
			"too many changes are under way; try again in a moment");
	if (r == -ENOENT)
		return no_description(error);
	if (r == -ENOTCONN)
		return control_fail(error, CONTROL_NOT_YET,
			"the hypervisor is not connected, so nothing can be written");
	if (r == -ETIMEDOUT)
		return control_fail(error, CONTROL_NOT_YET,
			"the VM does not answer, so nothing can be written");
	return control_fail(error, CONTROL_INTERNAL, "cannot set: %s", strerror(-r));
}

/* It is under way, and its client is told when it ends. */
static int answer_change(struct methods *m, struct control_client *client, uint64_t id, bool attach,
	struct json_object **ret_result, struct control_error *error)
{
	struct json_object *result = json_object_new_object();
	int r = 0;

	m->sets[m->nr_sets++] = (struct set){ .id = id, .attach = attach, .client = client };
	m->params.wake(m->params.ctx);
	json_put_u64(result, "schema_version", VIEWS_SCHEMA, &r);
	json_put_u64(result, attach ? "attach" : "set", id, &r);
	if (r < 0) {
		json_object_put(result);
		result = NULL;
	}
	return answer(result, ret_result, error);
}

static int do_set(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	static const char *const names[] = { "name", "soft_limit", "min", "low", "max", "group",
		"manage", "guest_swap", "agent", NULL };
	struct methods *m = ctx;
	struct hv_knobs_change change;
	uint64_t id = 0, set = 0;
	char why[512] = "";
	int r;

	if (check_params(params, names, error) < 0 ||
		get_shown_vm(m->params.core, params, &id, error) < 0)
		return -1;
	if (json_object_object_length(params) == 1)
		return control_fail(error, CONTROL_PARAMS, "nothing is given to be set");
	if (m->nr_sets == JOBS_MAX)
		return control_fail(error, CONTROL_TOO_MANY, "too many changes are under way");
	if (methods_read_change(params, &change, error) < 0)
		return -1;
	r = core_set_knobs(m->params.core, id, &change, &set, why, sizeof(why));
	hv_change_clear(&change);
	if (r < 0)
		return refused_set(r, why, error);
	return answer_change(m, client, set, false, ret_result, error);
}

static int do_attach(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	static const char *const names[] = { "name", "persistent", NULL };
	struct methods *m = ctx;
	bool persistent = false;
	uint64_t id = 0, attach = 0;
	int r;

	if (check_params(params, names, error) < 0 ||
		get_shown_vm(m->params.core, params, &id, error) < 0)
		return -1;
	r = json_get_bool(params, "persistent", &persistent);
	if (r < 0 && r != -ENOENT)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "persistent",
			"persistent is true or false");
	if (m->nr_sets == JOBS_MAX)
		return control_fail(error, CONTROL_TOO_MANY, "too many changes are under way");
	r = core_attach(m->params.core, id, persistent, &attach);
	if (r == -EPERM)
		return control_fail(error, CONTROL_OBSERVE,
			"the daemon only observes, or does not manage this VM, and changes nothing "
			"of it; ballastctl show says whose word that is");
	if (r < 0)
		return refused_set(r, "", error);
	return answer_change(m, client, attach, true, ret_result, error);
}

/* True where it came to its end, which was told. */
static bool tell_set(const struct methods *m, const struct set *set)
{
	const char *message = "";
	enum core_change_state state = core_change(m->params.core, set->id, &message);
	struct json_object *object;
	int r = 0;

	if (state == CORE_CHANGE_RUNNING)
		return false;
	object = json_object_new_object();
	json_put_u64(object, set->attach ? "attach" : "set", set->id, &r);
	json_put_string(object, "state", state == CORE_CHANGE_DONE ? "done" : "failed", &r);
	if (state == CORE_CHANGE_FAILED || message[0])
		json_put_string(object, "message", message, &r);
	control_notify(set->client, set->attach ? "agent.attach.done" : "set.done", object);
	return true;
}

/* ---- jobs ---- */

static size_t count_jobs(const struct methods *m, const struct control_client *client)
{
	size_t nr = 0;

	for (size_t i = 0; i < m->nr_jobs; i++)
		nr += m->jobs[i].client == client;
	return nr;
}

static struct json_object *started(
	const struct core *core, uint64_t id, uint64_t root, uint64_t pages)
{
	struct json_object *object = json_object_new_object();
	int r = 0;

	json_put_u64(object, "schema_version", VIEWS_SCHEMA, &r);
	json_put_u64(object, "job", id, &r);
	json_put_string(object, "group", core_name(core, root), &r);
	json_put_u64(object, "wanted", pages * POLICY_PAGE_SIZE, &r);
	if (r == 0)
		return object;
	json_object_put(object);
	return NULL;
}

static int do_reclaim(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	struct methods *m = ctx;
	struct core *core = m->params.core;
	struct core_status status;
	uint64_t pages = 0, root = 0, id = 0;
	int r;

	if (check_params(params, size_params, error) < 0 || get_size(params, &pages, error) < 0 ||
		get_group(core, params, &root, error) < 0)
		return -1;
	core_status(core, &status);
	if (!status.act)
		return control_fail(error, CONTROL_OBSERVE,
			"the daemon only observes and asks nobody for memory; set mode = act in "
			"[ballastd] and reload it");
	if (core_paused(core))
		return control_fail(error, CONTROL_PAUSED,
			"everything is paused and nobody is asked for memory; ballastctl resume "
			"ends that");
	if (count_jobs(m, client) >= METHODS_JOBS_MAX)
		return control_fail(error, CONTROL_TOO_MANY, "%d jobs of this client are running",
			METHODS_JOBS_MAX);
	if (not_seen_yet(core, error))
		return -1;
	r = core_reclaim(core, root, pages, &id);
	if (r == -EAGAIN)
		return control_fail(
			error, CONTROL_TOO_MANY, "too many jobs are running; try again later");
	if (r == -ENOTCONN)
		return control_fail(error, CONTROL_NOT_YET,
			"the hypervisor is not connected, or was not until a moment ago, and "
			"nobody is asked before all VMs are seen again");
	if (r < 0)
		return control_fail(error, CONTROL_INTERNAL, "cannot reclaim: %s", strerror(-r));
	m->jobs[m->nr_jobs++] = (struct job){ .id = id, .client = client };
	m->params.wake(m->params.ctx);
	return answer(started(core, id, root, pages), ret_result, error);
}

static int do_cancel(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	static const char *const names[] = { "job", NULL };
	struct methods *m = ctx;
	struct json_object *result;
	uint64_t id;
	size_t i = 0;
	int r = 0;

	if (check_params(params, names, error) < 0)
		return -1;
	if (json_get_u64(params, "job", &id) < 0)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "job",
			"job is the number that reclaim returned");
	while (i < m->nr_jobs && (m->jobs[i].id != id || m->jobs[i].client != client))
		i++;
	if (i == m->nr_jobs)
		return control_fail(
			error, CONTROL_NOT_FOUND, "no such job of this client is running");
	core_reclaim_cancel(m->params.core, id);
	m->params.wake(m->params.ctx);
	result = json_object_new_object();
	json_put_u64(result, "job", id, &r);
	if (r < 0) {
		json_object_put(result);
		result = NULL;
	}
	return answer(result, ret_result, error);
}

static bool same_job(const struct core_job *a, const struct core_job *b)
{
	return a->wanted == b->wanted && a->came == b->came && a->owed == b->owed &&
	       a->state == b->state;
}

/* True where the job has ended, and is to be forgotten. */
static bool tell_job(const struct methods *m, struct job *job)
{
	struct core_job now;

	/* One that the core has forgotten came to its end unseen. */
	if (core_job(m->params.core, job->id, &now) < 0) {
		now = job->sent;
		now.state = CORE_JOB_CANCELLED;
	}
	if (job->told && same_job(&job->sent, &now))
		return false;
	job->sent = now;
	job->told = true;
	control_notify(job->client, "reclaim.progress", views_job(job->id, &now));
	return now.state != CORE_JOB_RUNNING;
}

/* ---- pause, resume, release ---- */

static const char *const name_params[] = { "name", NULL };

/* A VM by name or UUID; one that is not there only by its UUID. */
static int get_vm(
	struct core *core, const char *name, struct hv_uuid *ret_uuid, struct control_error *error)
{
	struct core_vm_view vm;
	uint64_t id = 0;

	if (hv_uuid_parse(name, ret_uuid) == 0)
		return 0;
	if (find(core, name, &id, error) < 0)
		return -1;
	if (core_vm(core, id, &vm) < 0)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "name",
			"'%.255s' is a group; name a VM, or leave it out for all", name);
	*ret_uuid = vm.uuid;
	return 0;
}

/* What is paused now; with a warning where it is in force and could not be written down. */
static int answer_pauses(
	struct methods *m, struct json_object **ret_result, struct control_error *error)
{
	struct json_object *result;
	char why[300] = "";
	int r = 0;

	if (m->params.run_dir)
		pauses_save(m->params.run_dir, m->params.core, why, sizeof(why));
	m->params.wake(m->params.ctx);
	result = views_pauses(m->params.core);
	if (result && why[0])
		json_put_string(result, "warning", why, &r);
	if (r < 0) {
		json_object_put(result);
		result = NULL;
	}
	return answer(result, ret_result, error);
}

static int set_pause(struct methods *m, struct json_object *params, bool paused,
	struct json_object **ret_result, struct control_error *error)
{
	struct core *core = m->params.core;
	const char *name = NULL;
	struct hv_uuid uuid;
	int r;

	if (check_params(params, name_params, error) < 0)
		return -1;
	r = json_get_string(params, "name", &name);
	if (r < 0 && r != -ENOENT)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "name",
			"name is a string: a VM's name or UUID");
	if (r == -ENOENT) {
		core_pause(core, paused);
		return answer_pauses(m, ret_result, error);
	}
	if (get_vm(core, name, &uuid, error) < 0)
		return -1;
	r = core_pause_vm(core, &uuid, paused);
	if (r == -ENOSPC)
		return control_fail(error, CONTROL_TOO_MANY,
			"too many VMs are paused by themselves; resume those that are gone");
	if (r < 0)
		return control_fail(error, CONTROL_INTERNAL, "no memory");
	return answer_pauses(m, ret_result, error);
}

static int do_pause(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	return set_pause(ctx, params, true, ret_result, error);
}

static int do_resume(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	return set_pause(ctx, params, false, ret_result, error);
}

static int do_release(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	struct methods *m = ctx;
	struct core *core = m->params.core;
	const struct engine_config *config = engine_config(core_engine(core));
	struct json_object *result;
	struct core_vm_view vm;
	const char *name = NULL;
	uint64_t id = 0;
	int r;

	if (check_params(params, name_params, error) < 0)
		return -1;
	if (json_get_string(params, "name", &name) < 0)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "name",
			"name is a string: a VM's name or UUID, or a group's path; / for all");
	if (find(core, name, &id, error) < 0)
		return -1;
	if (!config->act)
		return control_fail(error, CONTROL_OBSERVE,
			"the daemon only observes and sets no target; ballastctl release --direct "
			"does it without the daemon");
	if (core_vm(core, id, &vm) == 0 && vm.manage != HV_MANAGE_ACT)
		return control_fail(error, CONTROL_OBSERVE,
			"%s is not managed (manage = %s): no target of it is set; ballastctl show "
			"says whose word that is",
			vm.name, hv_manage_name(vm.manage));
	r = 0;
	result = json_object_new_object();
	json_put_u64(result, "schema_version", VIEWS_SCHEMA, &r);
	json_put_string(result, "name", core_name(core, id), &r);
	json_put_u64(result, "released", core_release(core, id), &r);
	json_put_u64(result, "hold_us", config->release_us, &r);
	m->params.wake(m->params.ctx);
	if (r < 0) {
		json_object_put(result);
		result = NULL;
	}
	return answer(result, ret_result, error);
}

/* ---- events ---- */

static int do_subscribe(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	struct methods *m = ctx;

	if (check_params(params, no_params, error) < 0)
		return -1;
	for (size_t i = 0; i < m->nr_subscribers; i++)
		if (m->subscribers[i] == client)
			return answer(json_object_new_object(), ret_result, error);
	m->subscribers[m->nr_subscribers++] = client;
	return answer(json_object_new_object(), ret_result, error);
}

static void unsubscribe(struct methods *m, const struct control_client *client)
{
	for (size_t i = 0; i < m->nr_subscribers; i++)
		if (m->subscribers[i] == client) {
			m->subscribers[i] = m->subscribers[--m->nr_subscribers];
			return;
		}
}

static int do_unsubscribe(void *ctx, struct control_client *client, struct json_object *params,
	struct json_object **ret_result, struct control_error *error)
{
	if (check_params(params, no_params, error) < 0)
		return -1;
	unsubscribe(ctx, client);
	return answer(json_object_new_object(), ret_result, error);
}

static void tell_subscribers(const struct methods *m, struct json_object *params)
{
	for (size_t i = 0; i < m->nr_subscribers; i++)
		control_notify(m->subscribers[i], "event", json_object_get(params));
	json_object_put(params);
}

void methods_on_tick(struct methods *m, const struct engine_output *output)
{
	if (m->nr_subscribers == 0)
		return;
	/* Kept: in the tick the core does not know yet what it brings. */
	for (size_t i = 0; i < output->nr_actions && m->nr_actions < ACTIONS_MAX; i++)
		m->actions[m->nr_actions++] = output->actions[i];
}

void methods_after_step(struct methods *m)
{
	struct engine_event events[32];
	size_t nr;

	for (size_t i = 0; i < m->nr_actions; i++)
		tell_subscribers(m, views_action(m->params.core, &m->actions[i]));
	m->nr_actions = 0;
	while ((nr = core_take_events(m->params.core, events, 32)) > 0)
		for (size_t i = 0; i < nr && m->nr_subscribers > 0; i++)
			tell_subscribers(m, views_event(m->params.core, &events[i]));
	for (size_t i = m->nr_jobs; i-- > 0;)
		if (tell_job(m, &m->jobs[i]))
			m->jobs[i] = m->jobs[--m->nr_jobs];
	for (size_t i = m->nr_sets; i-- > 0;)
		if (tell_set(m, &m->sets[i]))
			m->sets[i] = m->sets[--m->nr_sets];
}

void methods_gone(void *methods, struct control_client *client)
{
	struct methods *m = methods;

	unsubscribe(m, client);
	for (size_t i = m->nr_sets; i-- > 0;)
		if (m->sets[i].client == client) /* it is written all the same */
			m->sets[i] = m->sets[--m->nr_sets];
	for (size_t i = m->nr_jobs; i-- > 0;) {
		if (m->jobs[i].client != client)
			continue;
		core_reclaim_cancel(m->params.core, m->jobs[i].id);
		m->jobs[i] = m->jobs[--m->nr_jobs];
		m->params.wake(m->params.ctx);
	}
}

const struct control_method methods_table[] = {
	{ "version", do_version },
	{ "status", do_status },
	{ "plan", do_plan },
	{ "reclaim", do_reclaim },
	{ "reclaim.cancel", do_cancel },
	{ "explain", do_explain },
	{ "show", do_show },
	{ "set", do_set },
	{ "agent.attach", do_attach },
	{ "pause", do_pause },
	{ "resume", do_resume },
	{ "release", do_release },
	{ "subscribe", do_subscribe },
	{ "unsubscribe", do_unsubscribe },
};

const size_t nr_methods = sizeof(methods_table) / sizeof(methods_table[0]);
