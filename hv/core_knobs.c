/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whose word counts: what a VM's metadata, memtune and the configuration say, to one set of knobs
 * in pages. Pure. Protections round up, maxima down.
 */
#include <config.h>

#include "hv/core_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/size.h"

bool core_pages_down(uint64_t bytes, uint64_t *ret_pages)
{
	uint64_t pages = bytes / POLICY_PAGE_SIZE;

	if (bytes == HV_UNLIMITED || pages >= PAGES_UNLIMITED)
		return false;
	*ret_pages = pages;
	return true;
}

bool core_pages_up(uint64_t bytes, uint64_t *ret_pages)
{
	uint64_t pages = bytes / POLICY_PAGE_SIZE + (bytes % POLICY_PAGE_SIZE != 0);

	if (bytes == HV_UNLIMITED || pages >= PAGES_UNLIMITED)
		return false;
	*ret_pages = pages;
	return true;
}

uint64_t core_bytes(uint64_t pages)
{
	return pages >= PAGES_UNLIMITED ? HV_UNLIMITED : pages * POLICY_PAGE_SIZE;
}

/* One more thing that was refused; what does not fit is left out. */
__attribute__((format(printf, 2, 3))) static void problem(
	struct core_resolved *resolved, const char *format, ...)
{
	size_t used = strlen(resolved->problem), size = sizeof(resolved->problem);
	va_list args;

	if (used > 0 && used < size - 3) {
		memcpy(resolved->problem + used, "; ", 3);
		used += 2;
	}
	va_start(args, format);
	vsnprintf(resolved->problem + used, size - used, format, args);
	va_end(args);
}

static void resolve_soft_limit(const struct core_config *config, const struct hv_info *info,
	struct core_resolved *resolved)
{
	uint64_t maximum = resolved->attrs.maximum, pages;
	unsigned int percent = config->default_soft_limit_percent;

	if (info->metadata.has_soft_limit) {
		resolved->soft_source = "metadata";
		if (core_pages_up(info->metadata.soft_limit, &pages))
			resolved->knobs.soft_limit = pages;
		return;
	}
	/* A memtune without limit is what every domain has: nobody said it. */
	if (info->memtune.has_soft_limit && core_pages_up(info->memtune.soft_limit, &pages)) {
		resolved->soft_source = "memtune";
		resolved->knobs.soft_limit = pages;
		return;
	}
	if (percent > 0) {
		resolved->soft_source = "default";
		resolved->knobs.soft_limit = pages_min(
			pages_mul_div(maximum, percent, 100) + (maximum * percent % 100 != 0),
			PAGES_UNLIMITED);
	}
}

static void resolve_protections(const struct hv_knobs *metadata, struct core_resolved *resolved)
{
	struct memcg_knobs *knobs = &resolved->knobs;
	char min[SIZE_TEXT], max[SIZE_TEXT];
	uint64_t pages;

	/* "No minimum" is 0, "no maximum" is unlimited: the knobs' own defaults. */
	if (metadata->has_min && core_pages_up(metadata->min, &pages))
		knobs->min = pages;
	if (metadata->has_low && core_pages_up(metadata->low, &pages))
		knobs->low = pages;
	if (metadata->has_max && core_pages_down(metadata->max, &pages))
		knobs->max = pages;
	if (knobs->min > knobs->max) {
		problem(resolved, "min %s is over max %s: max is not used",
			size_format(core_bytes(knobs->min), min, sizeof(min)),
			size_format(core_bytes(knobs->max), max, sizeof(max)));
		knobs->max = PAGES_UNLIMITED;
	}
}

/*
 * A path in its one form: one slash before each part, none at the end. False: no path, or too long
 * or too deep for a VM below it.
 */
static bool normalize_group(const char *path, char *ret_path)
{
	size_t length = 0, depth = 0;

	if (*path != '/')
		return false;
	while (*path) {
		size_t part;

		path += strspn(path, "/");
		part = strcspn(path, "/");
		if (part == 0)
			break;
		if ((part == 1 && path[0] == '.') || (part == 2 && !memcmp(path, "..", 2)))
			return false;
		if (++depth >= MEMCG_MAX_DEPTH || length + 1 + part > HV_GROUP_MAX)
			return false;
		ret_path[length++] = '/';
		memcpy(ret_path + length, path, part);
		length += part;
		path += part;
	}
	if (length == 0)
		ret_path[length++] = '/';
	ret_path[length] = '\0';
	return true;
}

static void resolve_group(const struct hv_info *info, struct core_resolved *resolved)
{
	char group[HV_GROUP_MAX + 1];
	const char *said = NULL;

	if (info->metadata.has_group && info->metadata.group)
		said = info->metadata.group;
	else if (info->partition)
		said = info->partition;

	strcpy(resolved->group, "/");
	if (!said)
		return;
	if (normalize_group(said, group))
		strcpy(resolved->group, group);
	else
		problem(resolved,
			"group '%.100s' is no path like /prod/web of at most %d parts: / is used",
			said, MEMCG_MAX_DEPTH - 1);
}

static bool is_below(const char *group, const char *path)
{
	size_t length = strlen(path);

	return !strncmp(group, path, length) && (group[length] == '\0' || group[length] == '/');
}

/* What the VM and the groups above it may be done: the least of all. */
static void resolve_manage(const struct core_config *config, const struct hv_knobs *metadata,
	struct core_resolved *resolved)
{
	resolved->manage = metadata->has_manage ? metadata->manage : HV_MANAGE_ACT;
	for (size_t i = 0; i < config->nr_groups; i++)
		if (config->groups[i].manage < resolved->manage &&
			is_below(resolved->group, config->groups[i].path))
			resolved->manage = config->groups[i].manage;
	resolved->attrs.act = resolved->manage == HV_MANAGE_ACT;
}

int core_resolve(const struct core_config *config, const struct hv_info *info,
	struct core_resolved *ret_resolved)
{
	struct core_resolved resolved = { .knobs = MEMCG_KNOBS_NONE, .soft_source = "none" };
	const struct hv_knobs *metadata = &info->metadata;

	if (!core_pages_down(info->maximum, &resolved.attrs.maximum) || resolved.attrs.maximum == 0)
		return -EINVAL;
	if (!core_pages_down(info->ceiling, &resolved.attrs.ceiling))
		resolved.attrs.ceiling = 0;
	resolved.attrs.max_rate = config->max_rate;
	resolved.attrs.trust = config->trust;
	resolved.attrs.guest_swap =
		metadata->has_guest_swap ? metadata->guest_swap : config->guest_swap;

	if (info->problem)
		problem(&resolved, "%s", info->problem);
	resolve_soft_limit(config, info, &resolved);
	resolve_protections(metadata, &resolved);
	resolve_group(info, &resolved);
	resolve_manage(config, metadata, &resolved);
	*ret_resolved = resolved;
	return 0;
}
