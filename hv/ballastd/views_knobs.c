/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A VM's knobs as JSON: see views.h. */
#include <config.h>

#include "hv/ballastd/views.h"

#include <string.h>

#include "common/json.h"

/* No member for a size that is "none". */
static void put_value(
	struct json_object *object, enum core_knob knob, const struct core_word *word, int *r)
{
	if (knob == CORE_GROUP)
		json_put_string(object, "value", word->group, r);
	else if (knob == CORE_MANAGE)
		json_put_string(object, "value", hv_manage_name((enum hv_manage)word->value), r);
	else if (knob == CORE_AGENT)
		json_put_string(object, "value", hv_way_name((enum hv_way)word->value), r);
	else if (knob == CORE_GUEST_SWAP)
		json_put_bool(object, "value", word->value, r);
	else if (word->value <= INT64_MAX)
		json_put_u64(object, "value", word->value, r);
}

static void put_word(
	struct json_object *object, enum core_knob knob, const struct core_word *word, int *r)
{
	put_value(object, knob, word, r);
	json_put_string(object, "source", core_source_name(word->source), r);
	if (word->rule)
		json_put_string(object, "rule", word->rule, r);
	if (word->source == CORE_FROM_GROUP)
		json_put_string(object, "group", word->group, r);
	if (word->enforced)
		json_put_bool(object, "enforced", true, r);
	if (word->refused)
		json_put_string(object, "refused", word->refused, r);
}

static struct json_object *knob_object(
	enum core_knob knob, const struct core_knob_said *said, int *r)
{
	struct json_object *object = json_object_new_object(), *others = json_object_new_array();

	json_put_string(object, "knob", core_knob_name(knob), r);
	put_word(object, knob, &said->words[said->counts], r);
	for (size_t i = 0; i < said->nr; i++) {
		struct json_object *other;

		if (i == said->counts)
			continue;
		other = json_object_new_object();
		put_word(other, knob, &said->words[i], r);
		json_push(others, other, r);
	}
	json_put_value(object, "overrides", others, r);
	return object;
}

struct json_object *views_show(struct core *core, uint64_t id)
{
	struct json_object *object = json_object_new_object(), *knobs = json_object_new_array();
	struct json_object *warnings = json_object_new_array();
	struct core_knobs_view view;
	struct core_vm_view vm;
	char uuid[HV_UUID_TEXT];
	int r = 0;

	if (core_vm(core, id, &vm) < 0 || core_vm_knobs(core, id, &view) < 0) {
		json_object_put(object);
		json_object_put(knobs);
		json_object_put(warnings);
		return NULL;
	}
	hv_uuid_format(&vm.uuid, uuid);
	json_put_u64(object, "schema_version", VIEWS_SCHEMA, &r);
	json_put_string(object, "name", vm.name, &r);
	json_put_string(object, "uuid", uuid, &r);
	json_put_string(object, "group", vm.group, &r);
	json_put_string(object, "state", engine_vm_state_name(vm.engine.state), &r);
	for (enum core_knob knob = 0; knob < CORE_KNOBS; knob++)
		json_push(knobs, knob_object(knob, &view.knobs[knob], &r), &r);
	json_put_value(object, "knobs", knobs, &r);
	views_put_agent(object, &vm, true, &r);
	if (view.problem[0])
		json_put_string(object, "refused", view.problem, &r);
	for (size_t i = 0; i < view.nr_warnings; i++)
		json_push(warnings, json_object_new_string(view.warnings[i]), &r);
	json_put_value(object, "warnings", warnings, &r);
	if (r == 0)
		return object;
	json_object_put(object);
	return NULL;
}
