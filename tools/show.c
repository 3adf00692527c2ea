/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ballastctl status and plan for people: see ballastctl.h. */
#include <config.h>

#include "tools/ballastctl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "tools/table.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* The i-th object of an array; NULL behind the last. */
static struct json_object *element(struct json_object *array, size_t i)
{
	return i < json_object_array_length(array) ? json_object_array_get_idx(array, i) : NULL;
}

static void show_pool(struct json_object *status)
{
	struct json_object *pool = NULL;
	bool known = false, connected = false, paused = false, others_over = false;

	json_get_object(status, "pool", &pool);
	json_get_bool(pool, "known", &known);
	json_get_bool(status, "connected", &connected);
	json_get_bool(status, "paused", &paused);
	printf("mode %s%s, %s%s\n", text(status, "mode"),
		paused ? ", paused (nobody is asked)" : "", text(status, "backend"),
		connected ? "" : " (not connected: figures are old, nothing is decided)");
	if (!known) {
		puts("pool: not known yet");
		return;
	}
	printf("pool: %s free of %s; VMs use %s and %s beside it; watermarks %s min, %s low, %s "
	       "high\n",
		TEXT_SIZE(pool, "free"), TEXT_SIZE(pool, "size"), TEXT_SIZE(pool, "used"),
		TEXT_SIZE(pool, "overhead"), TEXT_SIZE(pool, "wm_min"), TEXT_SIZE(pool, "wm_low"),
		TEXT_SIZE(pool, "wm_high"));
	if (number(pool, "growth"))
		printf("free memory fell by up to %s a second, lately: low and high allow for it\n",
			TEXT_SIZE(pool, "growth"));
	json_get_bool(pool, "others_over", &others_over);
	if (number(pool, "others"))
		printf("others on the host use %s%s\n", TEXT_SIZE(pool, "others"),
			others_over ? ", more than others-max" : "");
	if (number(pool, "need"))
		printf("short of memory: %s needed, %s asked for and not come\n",
			TEXT_SIZE(pool, "need"), TEXT_SIZE(pool, "owed"));
	else if (number(pool, "owed"))
		printf("%s asked for and not come\n", TEXT_SIZE(pool, "owed"));
	if (number(pool, "gifts"))
		printf("%s are promised to VMs and not taken yet\n", TEXT_SIZE(pool, "gifts"));
	if (number(pool, "short"))
		printf("*short*: nobody can give the last %s; see ballastctl explain\n",
			TEXT_SIZE(pool, "short"));
	if (number(pool, "hung"))
		printf("%s were asked of VMs that do not answer\n", TEXT_SIZE(pool, "hung"));
}

/* Groups with a limit of their own; the rest is only where VMs are. */
static void show_groups(struct json_object *groups)
{
	static const struct table_column columns[] = { { "GROUP", false }, { "USAGE", true },
		{ "SOFT-LIMIT", true }, { "EXCESS", true }, { "MIN", true }, { "LOW", true },
		{ "MAX", true } };
	static const char *const keys[] = { "usage", "soft_limit", "excess", "min", "low", "max" };
	struct table *table = table_new(columns, NR(columns));
	struct json_object *group;
	size_t shown = 0;

	for (size_t i = 0; (group = element(groups, i)); i++) {
		if (!strcmp(text(group, "path"), "/"))
			continue; /* the pool has its lines */
		table_add(table, text(group, "path"));
		for (size_t k = 0; k < NR(keys); k++)
			table_add(table, TEXT_SIZE(group, keys[k]));
		shown++;
	}
	if (shown > 0) {
		putchar('\n');
		table_print(table, stdout);
	}
	table_free(table);
}

static const char *vm_state(struct json_object *vm, char *buf, size_t size)
{
	const char *hold = text(vm, "hold"), *state = text(vm, "state");
	struct json_object *also = json_object_object_get(vm, "also"), *name;
	bool contended = false;
	size_t length;

	json_get_bool(vm, "contended", &contended);
	/* "state" says no more than the state does. */
	if (!strcmp(hold, "state") || !strcmp(hold, state))
		hold = "";
	if (contended && !hold[0] && strcmp(state, "contended") != 0)
		hold = "contended";
	snprintf(buf, size, "%s%s%s", state, hold[0] ? ", " : "", hold);
	for (size_t i = 0; also && (name = element(also, i)); i++) {
		length = strlen(buf);
		snprintf(buf + length, size - length, ", %s", json_object_get_string(name));
	}
	return buf;
}

static const char *vm_excess(struct json_object *vm, char *buf, size_t size)
{
	const char *via = text(vm, "excess_via");

	if (via[0] && number(vm, "excess") == 0)
		snprintf(buf, size, "via %s", via);
	else
		snprintf(buf, size, "%s", TEXT_SIZE(vm, "excess"));
	return buf;
}

/* "~": from statistics that stood still, or that tell only free memory. */
static const char *vm_guest_used(struct json_object *vm, char *buf, size_t size)
{
	bool stale = false, estimated = false;

	json_get_bool(vm, "stale", &stale);
	json_get_bool(vm, "guest_used_estimated", &estimated);
	if (!is_known(vm, "guest_used"))
		return "-";
	snprintf(buf, size, "%s%s", stale || estimated ? "~" : "", TEXT_SIZE(vm, "guest_used"));
	return buf;
}

static void show_vms(struct json_object *vms)
{
	static const struct table_column columns[] = { { "NAME", false }, { "STATE", false },
		{ "USAGE", true }, { "GUEST-USED", true }, { "ACTUAL", true }, { "TARGET", true },
		{ "CEILING", true }, { "SOFT-LIMIT", true }, { "EXCESS", true }, { "FLOOR", true },
		{ "PENDING", true } };
	struct table *table = table_new(columns, NR(columns));
	struct json_object *vm;
	char buf[300];

	for (size_t i = 0; (vm = element(vms, i)); i++) {
		table_add(table, text(vm, "name"));
		table_add(table, vm_state(vm, buf, sizeof(buf)));
		table_add(table, TEXT_SIZE(vm, "usage"));
		table_add(table, vm_guest_used(vm, buf, sizeof(buf)));
		table_add(table, TEXT_SIZE(vm, "actual"));
		table_add(table, TEXT_SIZE(vm, "target"));
		table_add(table, TEXT_SIZE(vm, "ceiling"));
		table_add(table, TEXT_SIZE(vm, "soft_limit"));
		table_add(table, vm_excess(vm, buf, sizeof(buf)));
		table_add(table, TEXT_SIZE(vm, "floor"));
		table_add(table, TEXT_SIZE(vm, "owed"));
	}
	putchar('\n');
	if (json_object_array_length(vms) > 0)
		table_print(table, stdout);
	else
		puts("no VMs");
	table_free(table);
}

/* The guests' own word; only of those that have an agent. */
static void show_agents(struct json_object *vms)
{
	static const struct table_column columns[] = { { "AGENT OF", false }, { "ACTIVE", true },
		{ "INACTIVE", true }, { "WORKING-SET", true }, { "REFAULTS/S", true },
		{ "WAITING", true }, { "FREED", true }, { "SOFTWARE", false } };
	struct table *table = table_new(columns, NR(columns));
	struct json_object *vm, *agent;
	char buf[128];
	bool connected, silent, any = false;

	for (size_t i = 0; (vm = element(vms, i)); i++) {
		agent = NULL;
		if (json_get_object(vm, "agent", &agent) < 0)
			continue;
		connected = silent = false;
		json_get_bool(agent, "connected", &connected);
		json_get_bool(agent, "silent", &silent);
		any = true;
		table_add(table, text(vm, "name"));
		table_add(table, TEXT_SUM(agent, "active_anon", "active_file"));
		table_add(table, is_known(agent, "cold_anon")
					 ? TEXT_SUM(agent, "cold_anon", "cold_file")
					 : TEXT_SUM(agent, "inactive_anon", "inactive_file"));
		table_add(table, TEXT_SIZE(agent, "workingset"));
		table_add(table, TEXT_SIZE(agent, "refaults_per_second"));
		table_add(table, TEXT_PERMILLE(agent, "psi_some_permille"));
		table_add(table, TEXT_SIZE(agent, "freed"));
		snprintf(buf, sizeof(buf), "%s%s%s%s", connected ? text(agent, "software") : "gone",
			silent ? ", silent" : "", text(agent, "fault")[0] ? ", fault: " : "",
			text(agent, "fault"));
		table_add(table, buf);
	}
	if (any) {
		putchar('\n');
		table_print(table, stdout);
	}
	table_free(table);
}

/* MicroVMs: what the pager did for them. */
static void show_paging(struct json_object *vms)
{
	static const struct table_column columns[] = { { "PAGED", false }, { "FAULTS", true },
		{ "WAITED", true }, { "OVER-MAX", true }, { "DROPPED", true }, { "FAILED", true },
		{ "BY", false } };
	struct table *table = table_new(columns, NR(columns));
	struct json_object *vm, *paging;
	char buf[2][32];
	bool left, any = false;

	for (size_t i = 0; (vm = element(vms, i)); i++) {
		paging = NULL;
		if (json_get_object(vm, "paging", &paging) < 0)
			continue;
		left = false;
		json_get_bool(paging, "left", &left);
		any = true;
		snprintf(buf[0], sizeof(buf[0]), "%" PRIu64, number(paging, "faults"));
		snprintf(buf[1], sizeof(buf[1]), "%" PRIu64, number(paging, "waited"));
		table_add(table, text(vm, "name"));
		table_add(table, buf[0]);
		table_add(table, buf[1]);
		table_add(table, TEXT_SIZE(paging, "over_max"));
		table_add(table, TEXT_SIZE(paging, "dropped"));
		table_add(table, TEXT_SIZE(paging, "failed"));
		table_add(table, left ? "the kernel" : "ballastd");
	}
	if (any) {
		putchar('\n');
		table_print(table, stdout);
	}
	table_free(table);
}

void show_status(struct json_object *status)
{
	struct json_object *array = NULL;

	show_pool(status);
	if (json_get_array(status, "groups", &array) == 0)
		show_groups(array);
	if (json_get_array(status, "vms", &array) == 0) {
		show_vms(array);
		show_agents(array);
		show_paging(array);
	}
}

/* ---- plan ---- */

static const char *const steps[] = { "", "in excess, cold memory", "in excess, active memory too",
	"all, cold memory", "all, active memory too" };

static const char *share_why(struct json_object *share, char *buf, size_t size)
{
	uint64_t step = number(share, "step");
	bool below_low = false;

	json_get_bool(share, "below_low", &below_low);
	snprintf(buf, size, "%" PRIu64 ": %s%s; could give %s, not below %s", step,
		step < NR(steps) ? steps[step] : "", below_low ? ", below low" : "",
		TEXT_SIZE(share, "cap"), TEXT_SIZE(share, "bound"));
	return buf;
}

static void show_shares(struct json_object *shares)
{
	static const struct table_column columns[] = { { "NAME", false }, { "GIVES", true },
		{ "GAIN", true }, { "STEP", false } };
	struct table *table = table_new(columns, NR(columns));
	struct json_object *share;
	char buf[300];

	for (size_t i = 0; (share = element(shares, i)); i++) {
		table_add(table, text(share, "name"));
		table_add(table, TEXT_SIZE(share, "gives"));
		table_add(table, TEXT_SIZE(share, "gain"));
		table_add(table, share_why(share, buf, sizeof(buf)));
	}
	if (json_object_array_length(shares) > 0) {
		putchar('\n');
		table_print(table, stdout);
	}
	table_free(table);
}

static void show_holds(struct json_object *holds)
{
	struct json_object *hold;

	for (size_t i = 0; (hold = element(holds, i)); i++)
		printf("%s%s gives nothing: %s\n", i == 0 ? "\n" : "", text(hold, "name"),
			text(hold, "hold"));
}

void show_plan(struct json_object *plan)
{
	struct json_object *array = NULL;
	const char *group = text(plan, "group");

	printf("to reclaim %s from %s: %s would come", TEXT_SIZE(plan, "need"),
		strcmp(group, "/") != 0 ? group : "the pool", TEXT_SIZE(plan, "gain"));
	if (number(plan, "short"))
		printf(", nobody can give the other %s", TEXT_SIZE(plan, "short"));
	putchar('\n');
	if (json_get_array(plan, "shares", &array) == 0)
		show_shares(array);
	if (json_get_array(plan, "holds", &array) == 0)
		show_holds(array);
}
