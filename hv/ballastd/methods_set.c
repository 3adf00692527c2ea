/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parameters of set, as a change of a VM's metadata: see methods.h. */
#include <config.h>

#include "hv/ballastd/methods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/size.h"

static int wrong(struct control_error *error, const char *key, const char *what)
{
	return control_fail_with(error, CONTROL_PARAMS, "parameter", key, "%s: %s", key, what);
}

/* 1: *ret_text is given; 0: not; -1. "none" clears. */
static int get_text(struct json_object *params, const char *key, enum hv_knob knob,
	struct hv_knobs_change *change, const char **ret_text, struct control_error *error)
{
	int r = json_get_string(params, key, ret_text);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return wrong(error, key, "is a string, for example \"512MiB\" or \"none\"");
	if (strcmp(*ret_text, "none") != 0)
		return 1;
	change->clear |= knob;
	return 0;
}

static int get_size(struct json_object *params, const char *key, enum hv_knob knob,
	struct hv_knobs_change *change, bool *ret_has, uint64_t *ret_bytes,
	struct control_error *error)
{
	const char *text = NULL;
	char why[200];
	int r = get_text(params, key, knob, change, &text, error);

	if (r <= 0)
		return r;
	r = size_parse_amount(text, ret_bytes);
	if (r < 0)
		return wrong(error, key, size_parse_error(text, r, why, sizeof(why)));
	*ret_has = true;
	return 0;
}

/* "none" is a word of it; what clears is "default". */
static int get_agent(
	struct json_object *params, struct hv_knobs_change *change, struct control_error *error)
{
	const char *text = NULL;
	int r = json_get_string(params, "agent", &text);

	if (r == -ENOENT)
		return 0;
	if (r == 0 && !strcmp(text, "default")) {
		change->clear |= HV_KNOB_AGENT;
		return 0;
	}
	if (r < 0 || hv_way_parse(text, &change->set.agent) < 0)
		return wrong(error, "agent", "is ballast, qemu-ga, none or default");
	change->set.has_agent = true;
	return 0;
}

/* It is written in its one form, and in no other: backends take that. */
static int get_group(
	struct json_object *params, struct hv_knobs_change *change, struct control_error *error)
{
	char path[HV_GROUP_MAX + 1];
	const char *text = NULL, *why;
	int r = get_text(params, "group", HV_KNOB_GROUP, change, &text, error);

	if (r <= 0)
		return r;
	why = hv_group_path(text, path);
	if (why)
		return control_fail_with(error, CONTROL_PARAMS, "parameter", "group",
			"group: is a path such as \"/production\"; this one %s", why);
	change->set.group = strdup(path);
	if (!change->set.group)
		return control_fail(error, CONTROL_INTERNAL, "no memory");
	change->set.has_group = true;
	return 0;
}

static int get_words(
	struct json_object *params, struct hv_knobs_change *change, struct control_error *error)
{
	struct hv_knobs *set = &change->set;
	const char *text = NULL;
	int r;

	r = get_text(params, "manage", HV_KNOB_MANAGE, change, &text, error);
	if (r < 0 || (r > 0 && hv_manage_parse(text, &set->manage) < 0))
		return r < 0 ? r : wrong(error, "manage", "is no, observe, act or none");
	set->has_manage = r > 0;
	r = get_text(params, "guest_swap", HV_KNOB_GUEST_SWAP, change, &text, error);
	if (r < 0 || (r > 0 && strcmp(text, "yes") != 0 && strcmp(text, "no") != 0))
		return r < 0 ? r : wrong(error, "guest_swap", "is yes, no or none");
	set->has_guest_swap = r > 0;
	set->guest_swap = r > 0 && !strcmp(text, "yes");
	if (get_agent(params, change, error) < 0)
		return -1;
	return get_group(params, change, error);
}

int methods_read_change(
	struct json_object *params, struct hv_knobs_change *ret_change, struct control_error *error)
{
	struct hv_knobs_change change = { 0 };
	struct hv_knobs *set = &change.set;

	if (get_size(params, "soft_limit", HV_KNOB_SOFT_LIMIT, &change, &set->has_soft_limit,
		    &set->soft_limit, error) < 0 ||
		get_size(params, "min", HV_KNOB_MIN, &change, &set->has_min, &set->min, error) <
			0 ||
		get_size(params, "low", HV_KNOB_LOW, &change, &set->has_low, &set->low, error) <
			0 ||
		get_size(params, "max", HV_KNOB_MAX, &change, &set->has_max, &set->max, error) <
			0 ||
		get_words(params, &change, error) < 0) {
		hv_change_clear(&change);
		return -1;
	}
	*ret_change = change;
	return 0;
}
