/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who takes memory; see rival.h. */
#include <config.h>

#include "hv/sim/rival.h"

#include <string.h>

#include "hv/sim/costs.h"
#include "policy/pages.h"

/* DEF_PRIORITY: the first pass scans a 4096th of every list. */
#define FIRST_PRIORITY 12
/* Groups that give nothing before the soft pass ends: MEM_CGROUP_MAX_SOFT_LIMIT_RECLAIM_LOOPS. */
#define SOFT_LOOPS 2

void rival_watermarks(uint64_t total, uint64_t *ret_low, uint64_t *ret_high)
{
	uint64_t min = COSTS_MIN_FREE_FACTOR * pages_int_sqrt(total / 1024) * 1024;

	*ret_low = min + min / 4;
	*ret_high = min + min / 2;
}

/* ---- global ---- */

/* balance_pgdat(): every group's lists, in larger and larger parts, until there is enough. */
static uint64_t global(const struct rival_host *host, uint64_t bytes)
{
	uint64_t got = 0;

	for (int priority = FIRST_PRIORITY; priority >= 0 && got < bytes; priority--) {
		for (size_t i = 0; i < host->nr_guests; i++) {
			struct guest *guest = host->guests[i].guest;
			struct memory_reclaim how = { .bytes = bytes,
				.scan = memory_used(&guest->memory) >> priority };

			if (how.scan)
				got += guest_shrink(guest, &how);
		}
	}
	return got;
}

/* ---- hammer ---- */

static bool is_below(const char *path, const char *above)
{
	size_t length = strlen(above);

	return path && !strncmp(path, above, length) && (!path[length] || path[length] == '/');
}

/* A guest, or a group and all that are below it. */
struct victim {
	const struct rival_guest *guest;
	const struct rival_group *group;
	uint64_t excess;
};

static uint64_t group_usage(const struct rival_host *host, const struct rival_group *group)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < host->nr_guests; i++)
		if (is_below(host->guests[i].group, group->path))
			sum += guest_usage(host->guests[i].guest);
	return sum;
}

static void consider(struct victim *worst, const struct victim *candidate, uint64_t less_than)
{
	if (candidate->excess > worst->excess && candidate->excess < less_than)
		*worst = *candidate;
}

/* Who exceeds its soft limit most, of those that do by less than that. */
static struct victim largest_excess(const struct rival_host *host, uint64_t less_than)
{
	struct victim worst = { 0 }, v;

	for (size_t i = 0; i < host->nr_guests; i++) {
		uint64_t usage = guest_usage(host->guests[i].guest);

		v = (struct victim){ .guest = &host->guests[i] };
		if (usage > v.guest->soft_limit)
			v.excess = usage - v.guest->soft_limit;
		consider(&worst, &v, less_than);
	}
	for (size_t i = 0; i < host->nr_groups; i++) {
		uint64_t usage = group_usage(host, &host->groups[i]);

		v = (struct victim){ .group = &host->groups[i] };
		if (usage > v.group->soft_limit)
			v.excess = usage - v.group->soft_limit;
		consider(&worst, &v, less_than);
	}
	return worst;
}

/* mem_cgroup_soft_reclaim(): round and round the victim's hierarchy until a quarter is there. */
static uint64_t soft_reclaim(const struct rival_host *host, const struct victim *victim)
{
	uint64_t want = victim->excess / 4, got = 0, before;

	want -= want % GUEST_PAGE;
	if (want < COSTS_RECLAIM_BATCH)
		want = COSTS_RECLAIM_BATCH;
	do {
		before = got;
		for (size_t i = 0; i < host->nr_guests && got < want; i++) {
			const struct rival_guest *g = &host->guests[i];
			struct memory_reclaim how = { .bytes = COSTS_RECLAIM_BATCH,
				.priority_0 = true };

			if (victim->guest ? g != victim->guest
					  : !is_below(g->group, victim->group->path))
				continue;
			if (victim->guest)
				how.bytes = want - got;
			got += guest_shrink(g->guest, &how);
		}
	} while (got > before && got < want);
	return got;
}

static uint64_t hammer(const struct rival_host *host, uint64_t bytes)
{
	uint64_t got = 0, less_than = UINT64_MAX;

	for (unsigned int i = 0; i < SOFT_LOOPS && !got; i++) {
		struct victim victim = largest_excess(host, less_than);

		if (!victim.excess)
			break;
		got = soft_reclaim(host, &victim);
		less_than = victim.excess;
	}
	/* Always: of everyone a batch at least, as far as the first priority looks. */
	return got +
	       global(host, bytes > got + COSTS_RECLAIM_BATCH ? bytes - got : COSTS_RECLAIM_BATCH);
}

const struct rival rivals[] = {
	{ "none", false, false, NULL },
	{ "global", false, false, global },
	{ "hammer", false, false, hammer },
	{ "ballast", true, false, NULL },
	{ "all", true, true, NULL },
};
#define NR_RIVALS (sizeof rivals / sizeof rivals[0])
const size_t nr_rivals = NR_RIVALS - 1;

const struct rival *rival_find(const char *name)
{
	for (size_t i = 0; i < NR_RIVALS; i++)
		if (!strcmp(rivals[i].name, name))
			return &rivals[i];
	return NULL;
}
