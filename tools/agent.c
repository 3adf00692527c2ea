/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent in a guest, of ballastctl show, for people: see ballastctl.h. */
#include <config.h>

#include "tools/ballastctl.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/json.h"
#include "tools/table.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static bool is(struct json_object *object, const char *key)
{
	bool value = false;

	json_get_bool(object, key, &value);
	return value;
}

/*
 * Active and inactive are sums of two lists; all four are told or none. A kernel that ages by
 * generations tells what is cold instead, or nothing.
 */
static void show_lists(struct json_object *agent)
{
	if (is_known(agent, "active_file"))
		printf("  active %s (%s of it page cache)\n  inactive %s (%s of it page cache)\n",
			TEXT_SUM(agent, "active_anon", "active_file"),
			TEXT_SIZE(agent, "active_file"),
			TEXT_SUM(agent, "inactive_anon", "inactive_file"),
			TEXT_SIZE(agent, "inactive_file"));
	if (is_known(agent, "cold_file"))
		printf("  cold %s (%s of it page cache)\n",
			TEXT_SUM(agent, "cold_anon", "cold_file"), TEXT_SIZE(agent, "cold_file"));
}

static void show_report(struct json_object *agent)
{
	show_lists(agent);
	if (is_known(agent, "workingset"))
		printf("  working set %s\n", TEXT_SIZE(agent, "workingset"));
	if (is_known(agent, "floor"))
		printf("  floor %s\n", TEXT_SIZE(agent, "floor"));
	if (!is_known(agent, "need"))
		return;
	printf("  lacks %s\n", number(agent, "need") ? TEXT_SIZE(agent, "need") : "nothing");
	printf("  reads again %s a second, swaps in %s\n", TEXT_SIZE(agent, "refaults_per_second"),
		TEXT_SIZE(agent, "swapins_per_second"));
	if (is_known(agent, "psi_some_permille"))
		printf("  waits for memory: some %s, all %s\n",
			TEXT_PERMILLE(agent, "psi_some_permille"),
			TEXT_PERMILLE(agent, "psi_full_permille"));
}

static void show_groups(struct json_object *groups)
{
	static const struct table_column columns[] = { { "GROUP", false }, { "ACTIVE", true },
		{ "INACTIVE", true }, { "REFAULTS/S", true }, { "WAITING", true } };
	struct table *table = table_new(columns, NR(columns));

	for (size_t i = 0; i < json_object_array_length(groups); i++) {
		struct json_object *group = json_object_array_get_idx(groups, i);

		table_add(table, text(group, "name"));
		table_add(table, TEXT_SIZE(group, "active"));
		table_add(table, TEXT_SIZE(group, "inactive"));
		table_add(table, TEXT_SIZE(group, "refaults_per_second"));
		table_add(table, TEXT_PERMILLE(group, "psi_some_permille"));
	}
	if (json_object_array_length(groups) > 0) {
		putchar('\n');
		table_print(table, stdout);
	}
	table_free(table);
}

void show_agent(struct json_object *result)
{
	struct json_object *agent = NULL, *groups = NULL;

	if (json_get_object(result, "agent", &agent) < 0)
		return;
	if (is(agent, "connected"))
		printf("\nagent: %s, protocol %" PRIu64 "%s\n", text(agent, "software"),
			number(agent, "version"),
			is(agent, "silent") ? ", silent: its word does not count" : "");
	else
		puts("\nagent: gone");
	show_report(agent);
	if (is(agent, "connected") && !is(agent, "reclaims"))
		puts("  frees nothing: its kernel cannot (memory.reclaim is of Linux 5.19)");
	else
		printf("  freed %s for ballast%s\n", TEXT_SIZE(agent, "freed"),
			is(agent, "inside") ? ", which the host has by free page reporting" : "");
	if (number(agent, "faults"))
		printf("  not understood %" PRIu64 " times, last: %s\n", number(agent, "faults"),
			text(agent, "fault"));
	if (json_get_array(agent, "groups", &groups) == 0)
		show_groups(groups);
}
