/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * views: what the core knows as JSON, field by field as docs/control-protocol.md has it. Amounts
 * become bytes; what is unknown or not set is left out.
 *
 * Only reads the core. The objects are the caller's; NULL: no memory. The shell's thread.
 */
#ifndef BALLAST_HV_BALLASTD_VIEWS_H
#define BALLAST_HV_BALLASTD_VIEWS_H

#include <json-c/json.h>

#include "hv/core.h"

/* Goes up when a field changes or goes away; new fields leave it. */
#define VIEWS_SCHEMA 1

/* Of a VM's last reasons; the engine keeps as many. */
#define VIEWS_REASONS 8

struct json_object *views_version(void);
/* Who is paused: { schema_version, paused, vms: [ { uuid, name } ] }. */
struct json_object *views_pauses(struct core *core);

struct json_object *views_status(struct core *core, uint64_t now);

/* All knobs of that VM, who says them and what they override. */
struct json_object *views_show(struct core *core, uint64_t id);

/* The plan's shares must be current: see engine_plan(). group is the root's path. */
struct json_object *views_plan(
	struct core *core, const char *group, const struct reclaim_plan *plan);

/* VMs of that id or below that group; MEMCG_ROOT_ID: all. */
struct json_object *views_explain(struct core *core, uint64_t id, uint64_t now);

/* Parameters of the notifications. */
struct json_object *views_event(struct core *core, const struct engine_event *event);
struct json_object *views_action(struct core *core, const struct engine_action *action);
struct json_object *views_job(uint64_t id, const struct core_job *job);

/*
 * "agent" of a VM: the guest's own word, with its groups or without; nothing where there never was
 * one. For the files of views alone.
 */
void views_put_agent(
	struct json_object *vm_object, const struct core_vm_view *vm, bool groups, int *r);

#endif
