/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a VM's agent says, as JSON: see views.h. */
#include <config.h>

#include "hv/ballastd/views.h"

#include "common/json.h"

static void put_report(struct json_object *object, const struct hv_agent *agent, int *r)
{
	if (agent->known & HV_AGENT_LISTS) {
		json_put_u64(object, "active_anon", agent->lists.active_anon, r);
		json_put_u64(object, "inactive_anon", agent->lists.inactive_anon, r);
		json_put_u64(object, "active_file", agent->lists.active_file, r);
		json_put_u64(object, "inactive_file", agent->lists.inactive_file, r);
	}
	if (agent->known & HV_AGENT_COLD) {
		json_put_u64(object, "cold_anon", agent->lists.inactive_anon, r);
		json_put_u64(object, "cold_file", agent->lists.inactive_file, r);
	}
	if (agent->known & HV_AGENT_FLOOR)
		json_put_u64(object, "floor", agent->floor, r);
	if (agent->known & HV_AGENT_WORKINGSET)
		json_put_u64(object, "workingset", agent->workingset, r);
	if (agent->known & HV_AGENT_PRESSURE) {
		json_put_u64(object, "psi_some_permille", agent->psi_some, r);
		json_put_u64(object, "psi_full_permille", agent->psi_full, r);
	}
	if (agent->known & HV_AGENT_REPORT) {
		json_put_u64(object, "refaults_per_second", agent->refaults, r);
		json_put_u64(object, "swapins_per_second", agent->swapins, r);
		json_put_u64(object, "need", agent->need, r);
	}
}

static void put_groups(struct json_object *object, const struct hv_agent *agent, int *r)
{
	struct json_object *array = json_object_new_array();

	for (unsigned int i = 0; i < agent->nr_groups; i++) {
		const struct hv_agent_group *group = &agent->groups[i];
		struct json_object *one = json_object_new_object();

		json_put_string(one, "name", group->name, r);
		if (agent->known & (HV_AGENT_LISTS | HV_AGENT_COLD)) {
			json_put_u64(one, "active", group->active, r);
			json_put_u64(one, "inactive", group->inactive, r);
		}
		json_put_u64(one, "refaults_per_second", group->refaults, r);
		if (agent->known & HV_AGENT_PRESSURE)
			json_put_u64(one, "psi_some_permille", group->psi, r);
		json_push(array, one, r);
	}
	json_put_value(object, "groups", array, r);
}

void views_put_agent(
	struct json_object *vm_object, const struct core_vm_view *vm, bool groups, int *r)
{
	const struct hv_agent *agent = &vm->agent;
	struct json_object *object;

	if (!agent->connected && !agent->faults)
		return;
	object = json_object_new_object();
	json_put_bool(object, "connected", agent->connected, r);
	if (agent->connected) {
		json_put_bool(object, "silent", vm->agent_silent, r);
		json_put_bool(object, "reclaims", agent->reclaims, r);
		json_put_bool(object, "inside", vm->engine.attrs.reports, r);
		json_put_string(object, "software", agent->software, r);
		json_put_u64(object, "version", agent->version, r);
		put_report(object, agent, r);
		if (groups)
			put_groups(object, agent, r);
	}
	json_put_u64(object, "freed", vm->agent_freed, r);
	if (agent->faults) {
		json_put_u64(object, "faults", agent->faults, r);
		json_put_string(object, "fault", agent->fault, r);
	}
	json_put_value(vm_object, "agent", object, r);
}
