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
			sections[i] =
				(struct core_section){ .path = config->groups[i].path, .at = i };
		qsort(sections, config->nr_groups, sizeof(*sections), by_section);
		for (size_t i = 0; i < config->nr_groups; i++)
			sections[sections[i].at].place = i;
	}
	*ret_sections = sections;
	return 0;
}

/* The section of path's first length bytes; NULL: there is none. */
static struct core_section *section_of(const struct core *core, const char *path, size_t length)
{
	size_t low = 0, high = core->config.nr_groups;

	while (low < high) {
		size_t i = low + (high - low) / 2;
		struct core_section *section = &core->sections[i];
		int order = strncmp(path, section->path, length);

		if (order == 0 && section->path[length] == '\0')
			return section;
		if (order > 0)
			low = i + 1;
		else
			high = i;
	}
	return NULL;
}

/* That of the configuration's i-th group. */
static struct core_section *section_at(const struct core *core, size_t i)
{
	return &core->sections[core->sections[i].place];
}

/* The one that stands for the min of all below it: the topmost, but for the pool's own. */
static struct core_section *top_of(const struct core *core, struct core_section *section)
{
	size_t length = 0;

	while (section->path[length]) {
		struct core_section *above;

		length += 1 + strcspn(section->path + length + 1, "/");
		above = length > 1 ? section_of(core, section->path, length) : NULL;
		if (above)
			return above;
	}
	return section;
}

/*
 * Which min of the topmost fit beside those that stand before them. A set size was checked with
 * the configuration; the host's memory is known only later: a min that does not fit into it beside
 * those before is none, and neither are those below it.
 */
static void look_what_fits(struct core *core)
{
	const struct core_config *config = &core->config;
	uint64_t sum = 0;

	for (size_t i = 0; i < config->nr_groups; i++) {
		struct core_section *section = section_at(core, i);
		uint64_t min = config->groups[i].knobs.min;

		if (top_of(core, section) != section)
			continue;
		section->fits = core->min_most == 0 || sum + min <= core->min_most;
		sum += section->fits ? min : 0;
	}
	for (size_t i = 0; i < config->nr_groups; i++)
		core->sections[i].fits = top_of(core, &core->sections[i])->fits;
}

/* Of the configuration. */
static struct memcg_knobs knobs_of(const struct core *core, const char *path)
{
	const struct core_section *section = section_of(core, path, strlen(path));
	struct memcg_knobs knobs;

	if (!section)
		return MEMCG_KNOBS_NONE;
	knobs = core->config.groups[section->at].knobs;
	if (!section->fits)
		knobs.min = 0;
	return knobs;
}

static void say_min(struct core *core)
{
	const struct core_config *config = &core->config;
	char min[SIZE_TEXT], most[SIZE_TEXT];

	for (size_t i = 0; i < config->nr_groups && !core->said_groups_min; i++) {
		const struct core_group_knobs *group = &config->groups[i];

		if (group->knobs.min == 0 || section_at(core, i)->fits)
			continue;
		core->said_groups_min = true;
		core_say(core, CORE_LOG_ERROR, NULL,
			"group %s: min = %s is not used: with those before it it is over the %s "
			"that the host has for VMs; the same goes for others that do not fit",
			group->path, size_format(core_bytes(group->knobs.min), min, sizeof(min)),
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
	core->sort_groups = true;

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

void core_groups_sort(struct core *core)
{
	if (core->sort_groups)
		HASH_SRT(hh, core->groups, by_path);
	core->sort_groups = false;
}

void core_group_review(struct core *core)
{
	struct core_group *group, *next;

	look_what_fits(core);
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
