/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Groups by path: made on demand when a VM comes to one, taken back when the last VM has left. The
 * engine is told of both by the tick (core_tick.c).
 */
#include <config.h>

#include "hv/core_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"

static int by_path(const struct core_group *a, const struct core_group *b)
{
	return strcmp(a->path, b->path);
}

static struct core_group *find_path(const struct core *core, const char *path, size_t length)
{
	struct core_group *group;

	HASH_FIND(hh, core->groups, path, length, group);
	return group;
}

struct core_group *core_group_by_id(const struct core *core, uint64_t id)
{
	struct core_group *group;

	HASH_FIND(hh_id, core->groups_by_id, &id, sizeof(id), group);
	return group;
}

static int by_section(const void *a, const void *b)
{
	return strcmp(
		((const struct core_section *)a)->path, ((const struct core_section *)b)->path);
}

int core_sections(const struct core_config *config, struct core_section **ret_sections)
{
	struct core_section *sections = NULL;

	if (config->nr_groups > 0) {
		sections = calloc(config->nr_groups, sizeof(*sections));
		if (!sections)
			return -ENOMEM;
		for (size_t i = 0; i < config->nr_groups; i++)
			sections[i] = (struct core_section){ config->groups[i].path, i };
		qsort(sections, config->nr_groups, sizeof(*sections), by_section);
	}
	*ret_sections = sections;
	return 0;
}

/* The group of the configuration that stands for the min of all below it: the topmost. */
static size_t top_of(const struct core_config *config, size_t i)
{
	for (size_t j = 0; j < config->nr_groups; j++)
		if (strcmp(config->groups[j].path, "/") != 0 &&
			strlen(config->groups[j].path) < strlen(config->groups[i].path) &&
			core_path_is_below(config->groups[i].path, config->groups[j].path))
			i = j;
	return i;
}

/* All of them together, whichever stand for others: then each fits, and nobody need look at which.
 */
static bool all_mins_fit(const struct core *core)
{
	const struct core_config *config = &core->config;
	uint64_t sum = 0;

	for (size_t i = 0; i < config->nr_groups && core->min_most > 0; i++)
		sum = pages_min(sum + config->groups[i].knobs.min, PAGES_UNLIMITED);
	return sum <= core->min_most;
}

/* Whether the min of the topmost group fits beside those that stand before it. */
static bool min_fits(const struct core *core, size_t top)
{
	const struct core_config *config = &core->config;
	uint64_t sum = 0;

	if (core->min_most == 0)
		return true;
	for (size_t i = 0; i <= top; i++) {
		uint64_t min = config->groups[i].knobs.min;

		if (top_of(config, i) == i && (i == top || sum + min <= core->min_most))
			sum = pages_min(sum + min, PAGES_UNLIMITED);
	}
	return sum <= core->min_most;
}

/*
 * Of the configuration. A set size was checked with it; the host's memory is known only later: a
 * min that does not fit into it beside those before is none, and neither are those below it.
 */
static struct memcg_knobs knobs_of(const struct core *core, const char *path)
{
	const struct core_config *config = &core->config;
	const struct core_section wanted = { .path = path }, *section = NULL;
	struct memcg_knobs knobs;

	if (config->nr_groups > 0)
		section = bsearch(
			&wanted, core->sections, config->nr_groups, sizeof(wanted), by_section);
	if (!section)
		return MEMCG_KNOBS_NONE;
	knobs = config->groups[section->at].knobs;
	if (knobs.min > 0 && !all_mins_fit(core) && !min_fits(core, top_of(config, section->at)))
		knobs.min = 0;
	return knobs;
}

static void say_min(struct core *core)
{
	const struct core_config *config = &core->config;
	char min[SIZE_TEXT], most[SIZE_TEXT];

	if (all_mins_fit(core))
		return;
	for (size_t i = 0; i < config->nr_groups && !core->said_groups_min; i++) {
		if (config->groups[i].knobs.min == 0 || min_fits(core, top_of(config, i)))
			continue;
		core->said_groups_min = true;
		core_say(core, CORE_LOG_ERROR, NULL,
			"group %s: min = %s is not used: with those before it it is over the %s "
			"that the host has for VMs; the same goes for others that do not fit",
			config->groups[i].path,
			size_format(core_bytes(config->groups[i].knobs.min), min, sizeof(min)),
			size_format(core_bytes(core->min_most), most, sizeof(most)));
	}
}

void core_group_free(struct core *core, struct core_group *group)
{
	if (group->hh.tbl)
		HASH_DELETE(hh, core->groups, group);
	if (group->hh_id.tbl)
		HASH_DELETE(hh_id, core->groups_by_id, group);
	free(group->path);
	free(group);
}

/* The group of path's first length bytes, which is not there; parent NULL: the root. */
static struct core_group *group_new(
	struct core *core, struct core_group *parent, const char *path, size_t length)
{
	struct core_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->path = strndup(path, length);
	if (!group->path)
		goto fail;
	group->id = parent ? core->next_id : MEMCG_ROOT_ID;
	group->knobs = knobs_of(core, group->path);
	HASH_ADD_KEYPTR(hh, core->groups, group->path, length, group);
	if (!group->hh.tbl)
		goto fail;
	HASH_ADD(hh_id, core->groups_by_id, id, sizeof(group->id), group);
	if (!group->hh_id.tbl)
		goto fail;
	HASH_SRT(hh, core->groups, by_path);

	if (parent) {
		core->next_id++;
		core_group_ref(core, parent);
	}
	group->parent = parent;
	if (parent)
		core_min_add(parent, group->knobs.min);
	core->nr_groups++;
	return group;
fail:
	core_group_free(core, group);
	return NULL;
}

void core_group_review(struct core *core)
{
	struct core_group *group, *next;

	say_min(core);
	HASH_ITER (hh, core->groups, group, next) {
		struct memcg_knobs knobs = knobs_of(core, group->path);
		uint64_t booked = group->min_sum;

		if (core_same_knobs(&knobs, &group->knobs))
			continue;
		/* Its own min is in the sums above it, as far as it is over those below. */
		if (group->parent) {
			core_min_sub(group->parent, pages_max(booked, group->knobs.min));
			core_min_add(group->parent, pages_max(booked, knobs.min));
		}
		group->knobs = knobs;
		group->retell = core->retell_groups = core->changed = true;
	}
}

/* What a group keeps from those above: its min, or what those below it have. */
static uint64_t kept(const struct core_group *group)
{
	return pages_max(group->min_sum, group->knobs.min);
}

void core_min_add(struct core_group *group, uint64_t pages)
{
	for (; group && pages > 0; group = group->parent) {
		uint64_t before = kept(group);

		group->min_sum += pages;
		pages = kept(group) - before;
	}
}

void core_min_sub(struct core_group *group, uint64_t pages)
{
	for (; group && pages > 0; group = group->parent) {
		uint64_t before = kept(group);

		assert(group->min_sum >= pages);
		group->min_sum -= pages;
		pages = before - kept(group);
	}
}

uint64_t core_min_room(const struct core *core, const struct core_group *group)
{
	const struct engine_pool *pool = &core->pool;
	uint64_t room = 0;

	if (!pool->known)
		return PAGES_UNLIMITED;
	for (; group->parent; group = group->parent)
		room += pages_sub(group->knobs.min, group->min_sum);
	return room + pages_sub(pages_sub(pool->size, pool->reserve), group->min_sum);
}

void core_group_ref(struct core *core, struct core_group *group)
{
	if (group->refs++ == 0 && group->prev) {
		DL_DELETE(core->idle_groups, group);
		group->prev = group->next = NULL;
	}
}

void core_group_put(struct core *core, struct core_group *group)
{
	if (!group)
		return;
	assert(group->refs > 0);
	if (--group->refs == 0) {
		DL_APPEND(core->idle_groups, group);
		core->changed = true;
	}
}

int core_group_get(struct core *core, const char *path, struct core_group **ret_group)
{
	struct core_group *group = core->root;
	size_t length = strlen(path);

	if (!group) {
		group = group_new(core, NULL, "/", 1);
		if (!group)
			return -ENOMEM;
		core->root = group;
	}
	core_group_ref(core, group);

	/* Each round holds the group so far, and hands its reference on to the next below it. */
	for (size_t end = 1; length > 1 && end <= length; end++) {
		struct core_group *child;

		if (end < length && path[end] != '/')
			continue;
		child = find_path(core, path, end);
		if (!child) {
			bool full = core->nr_groups >= CORE_MAX_GROUPS;

			child = full ? NULL : group_new(core, group, path, end);
			if (!child) {
				core_group_put(core, group);
				return full ? -ENOSPC : -ENOMEM;
			}
		}
		core_group_ref(core, child);
		core_group_put(core, group);
		group = child;
	}
	*ret_group = group;
	return 0;
}
