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

/* Active and inactive are sums of two lists; all four are told or none. */
static void show_lists(struct json_object *agent)
{
	char sum[SIZE_TEXT];

	if (!json_object_object_get_ex(agent, "active_file", NULL))
		return;
	printf("  active %s (%s of it page cache)\n",
		size_format(number(agent, "active_anon") + number(agent, "active_file"), sum,
			sizeof(sum)),
		TEXT_SIZE(agent, "active_file"));
	printf("  inactive %s (%s of it page cache)\n",
		size_format(number(agent, "inactive_anon") + number(agent, "inactive_file"), sum,
			sizeof(sum)),
		TEXT_SIZE(agent, "inactive_file"));
}

static void show_report(struct json_object *agent)
{
	show_lists(agent);
	if (json_object_object_get_ex(agent, "workingset", NULL))
		printf("  working set %s\n", TEXT_SIZE(agent, "workingset"));
	if (json_object_object_get_ex(agent, "floor", NULL))
		printf("  floor %s\n", TEXT_SIZE(agent, "floor"));
	if (!json_object_object_get_ex(agent, "need", NULL))
		return;
	printf("  lacks %s\n", number(agent, "need") ? TEXT_SIZE(agent, "need") : "nothing");
	printf("  reads again %s a second, swaps in %s\n", TEXT_SIZE(agent, "refaults_per_second"),
		TEXT_SIZE(agent, "swapins_per_second"));
	if (json_object_object_get_ex(agent, "psi_some_permille", NULL))
		printf("  waits for memory: some %.1f %%, all %.1f %%\n",
			(double)number(agent, "psi_some_permille") / 10,
			(double)number(agent, "psi_full_permille") / 10);
}

static void show_groups(struct json_object *groups)
{
	static const struct table_column columns[] = { { "GROUP", false }, { "ACTIVE", true },
		{ "INACTIVE", true }, { "REFAULTS/S", true }, { "WAITING", true } };
	struct table *table = table_new(columns, NR(columns));
	char waiting[32];

	for (size_t i = 0; i < json_object_array_length(groups); i++) {
		struct json_object *group = json_object_array_get_idx(groups, i);

		snprintf(waiting, sizeof(waiting), "%.1f %%",
			(double)number(group, "psi_some_permille") / 10);
		table_add(table, text(group, "name"));
		table_add(table, TEXT_SIZE(group, "active"));
		table_add(table, TEXT_SIZE(group, "inactive"));
		table_add(table, TEXT_SIZE(group, "refaults_per_second"));
		table_add(table, waiting);
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
