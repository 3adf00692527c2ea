/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ballastctl show, set and agent for people: see ballastctl.h. */
#include <config.h>

#include "tools/ballastctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "hv/hv.h"
#include "tools/table.h"

/* Longest wait for the daemon to say that it is written: lanes have a deadline of seconds. */
#define SET_WAIT_MS 60000

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* A word's value as people read it. */
static const char *value_text(struct json_object *word, char *buf, size_t size)
{
	struct json_object *value = NULL;
	bool yes = false;

	if (!json_object_object_get_ex(word, "value", &value))
		snprintf(buf, size, "none");
	else if (json_object_is_type(value, json_type_int))
		snprintf(buf, size, "%s", TEXT_SIZE(word, "value"));
	else if (json_get_bool(word, "value", &yes) == 0)
		snprintf(buf, size, "%s", yes ? "yes" : "no");
	else
		snprintf(buf, size, "%s", text(word, "value"));
	return buf;
}

/* "metadata", "rule web, enforced" */
static const char *source_text(struct json_object *word, char *buf, size_t size)
{
	const char *rule = text(word, "rule"), *group = text(word, "group");
	bool enforced = false;

	json_get_bool(word, "enforced", &enforced);
	snprintf(buf, size, "%s%s%s%s", text(word, "source"), rule[0] || group[0] ? " " : "",
		rule[0] ? rule : group, enforced ? ", enforced" : "");
	return buf;
}

/* "memtune 2 GiB; rule web 3 GiB (refused: it is below min)" */
static char *overrides_text(struct json_object *knob)
{
	struct json_object *others = NULL;
	char *all = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&all, &size);

	if (!stream)
		return NULL;
	if (json_get_array(knob, "overrides", &others) < 0)
		others = NULL;
	for (size_t i = 0; others && i < json_object_array_length(others); i++) {
		struct json_object *word = json_object_array_get_idx(others, i);
		char source[300], value[1100];

		fprintf(stream, "%s%s %s", i > 0 ? "; " : "",
			source_text(word, source, sizeof(source)),
			value_text(word, value, sizeof(value)));
		if (text(word, "refused")[0])
			fprintf(stream, " (refused: %s)", text(word, "refused"));
	}
	fclose(stream);
	return all;
}

void show_knobs(struct json_object *result)
{
	static const struct table_column columns[] = { { "KNOB", false }, { "VALUE", true },
		{ "FROM", false }, { "OVERRIDES", false } };
	struct table *table = table_new(columns, NR(columns));
	struct json_object *knobs = NULL, *warnings = NULL;
	char source[300], value[1100];

	printf("%s (%s), %s, group %s\n\n", text(result, "name"), text(result, "uuid"),
		text(result, "state"), text(result, "group"));
	if (json_get_array(result, "knobs", &knobs) < 0)
		knobs = NULL;
	for (size_t i = 0; knobs && i < json_object_array_length(knobs); i++) {
		struct json_object *knob = json_object_array_get_idx(knobs, i);
		char *overrides = overrides_text(knob);

		table_add(table, text(knob, "knob"));
		table_add(table, value_text(knob, value, sizeof(value)));
		table_add(table, source_text(knob, source, sizeof(source)));
		table_add(table, overrides && overrides[0] ? overrides : NULL);
		free(overrides);
	}
	table_print(table, stdout);
	table_free(table);
	show_agent(result);
	if (text(result, "refused")[0])
		printf("\nnot used: %s\n", text(result, "refused"));
	if (json_get_array(result, "warnings", &warnings) < 0)
		return;
	for (size_t i = 0; i < json_object_array_length(warnings); i++)
		printf("%swarning: %s\n", i == 0 ? "\n" : "",
			json_object_get_string(json_object_array_get_idx(warnings, i)));
}

/* ---- set ---- */

static bool is_manage(const char *value)
{
	enum hv_manage manage;

	return hv_manage_parse(value, &manage) == 0;
}

static bool is_yes_or_no(const char *value)
{
	return !strcmp(value, "yes") || !strcmp(value, "no");
}

static bool is_agent(const char *value)
{
	enum hv_way way;

	return !strcmp(value, "default") || hv_way_parse(value, &way) == 0;
}

/* "none" may be said of each. */
static const struct {
	const char *option, *parameter;
	bool (*is)(const char *value); /* a word that it may be; NULL: it is a size */
	const char *list;
} knobs[] = {
	{ "soft-limit", "soft_limit", NULL, NULL },
	{ "min", "min", NULL, NULL },
	{ "low", "low", NULL, NULL },
	{ "max", "max", NULL, NULL },
	{ "manage", "manage", is_manage, "no, observe, act or none" },
	{ "guest-swap", "guest_swap", is_yes_or_no, "yes, no or none" },
	{ "agent", "agent", is_agent, "ballast, qemu-ga, none or default" },
};

int set_option(struct ctl_options *options, const char *option, const char *value)
{
	char why[200];
	uint64_t bytes;
	size_t i = 0;
	int r = 0;

	/* The option is one of them: getopt has its names from there. */
	while (strcmp(knobs[i].option, option) != 0)
		i++;
	/* The daemon would say so too, but a wrong command line needs no daemon. */
	if (knobs[i].is && strcmp(value, "none") != 0 && !knobs[i].is(value))
		return ctl_fail(CTL_USAGE, "--%s: '%s' is not %s", option, value, knobs[i].list);
	if (!knobs[i].is && strcmp(value, "none") != 0)
		r = size_parse_amount(value, &bytes);
	if (r < 0)
		return ctl_fail(CTL_USAGE, "--%s: %s", option,
			size_parse_error(value, r, why, sizeof(why)));
	r = 0;
	if (!options->knobs)
		options->knobs = json_object_new_object();
	json_put_string(options->knobs, knobs[i].parameter, value, &r);
	return r < 0 ? ctl_fail(CTL_FAILED, "no memory") : 0;
}

/*
 * Calls what changes a VM, and waits for its end, which the notification tells under that key: 0
 * with *ret_end, or an exit status. Takes over params.
 */
static int change_vm(struct client *client, const char *method, struct json_object *params,
	const char *key, struct json_object **ret_end)
{
	struct json_object *result = NULL;
	char why[600] = "", done[32];
	uint64_t id;
	int r = client_call(client, method, params, &result, why, sizeof(why));

	if (r < 0)
		return ctl_fail(r == -EREMOTE ? CTL_FAILED : CTL_UNREACHABLE, "%s", why);
	id = number(result, key);
	json_object_put(result);
	snprintf(done, sizeof(done), "%s.done", method);
	for (;;) {
		r = client_notification(client, done, SET_WAIT_MS, ret_end, why, sizeof(why));
		if (r == -EAGAIN)
			return ctl_fail(CTL_FAILED, "the daemon has not said that it is done");
		if (r < 0)
			return ctl_fail(CTL_UNREACHABLE, "%s", why);
		if (number(*ret_end, key) == id)
			return 0;
		json_object_put(*ret_end);
	}
}

/* How it ended: for programs as the daemon told it, whether it was done or not. */
static int show_change(struct json_object *end, const struct ctl_options *options, const char *name,
	const char *failed, const char *done)
{
	const char *message = text(end, "message");
	bool is_done = !strcmp(text(end, "state"), "done");

	if (options->json)
		show_end_json(end);
	else if (is_done && done)
		printf("%s: %s\n", name, message[0] ? message : done);
	return is_done ? 0 : ctl_fail(CTL_FAILED, "%s: %s: %s", name, failed, message);
}

int set_knobs(struct client *client, const struct ctl_options *options, const char *name)
{
	struct json_object *params = json_object_get(options->knobs), *end = NULL;
	int r = 0, status;

	if (!params)
		params = json_object_new_object();
	if (options->group)
		json_put_string(params, "group", options->group, &r);
	json_put_string(params, "name", name, &r);
	if (r < 0) {
		json_object_put(params);
		return ctl_fail(CTL_FAILED, "no memory");
	}
	status = change_vm(client, "set", params, "set", &end);
	if (status)
		return status;
	status = show_change(end, options, name, "not set", NULL);
	json_object_put(end);
	return status;
}

/* ---- agent attach ---- */

int attach_agent(struct client *client, const struct ctl_options *options, const char *name)
{
	struct json_object *params = json_object_new_object(), *end = NULL;
	int r = 0, status;

	json_put_string(params, "name", name, &r);
	json_put_bool(params, "persistent", options->persistent, &r);
	if (r < 0) {
		json_object_put(params);
		return ctl_fail(CTL_FAILED, "no memory");
	}
	status = change_vm(client, "agent.attach", params, "attach", &end);
	if (status)
		return status;
	status =
		show_change(end, options, name, "nothing was added", "it has the agent's port now");
	json_object_put(end);
	return status;
}
