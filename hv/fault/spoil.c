/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is done to answers; see fault_internal.h. */
#include <config.h>

#include "hv/fault/fault_internal.h"

#include <stdlib.h>

#define MIB (UINT64_C(1) << 20)

/* NULL where there is no memory: then it is spoiled from what there is. */
static struct fault_seen *seen_of(struct hv *hv, const struct hv_uuid *uuid, bool *ret_new)
{
	struct fault_seen *seen = NULL;

	*ret_new = false;
	HASH_FIND(hh, hv->seen, uuid, sizeof(*uuid), seen);
	if (seen)
		return seen;
	seen = calloc(1, sizeof(*seen));
	if (!seen)
		return NULL;
	seen->uuid = *uuid;
	HASH_ADD(hh, hv->seen, uuid, sizeof(seen->uuid), seen);
	if (!seen->hh.tbl) {
		free(seen);
		return NULL;
	}
	*ret_new = true;
	return seen;
}

/* Percent of what the balloon leaves it is free; a guest that has nothing swaps in, it says. */
static void lie(const struct fault_rule *rule, struct fault_seen *seen, struct hv_stats *stats)
{
	uint64_t free = stats->actual / 100 * rule->percent;

	if (!(stats->known & HV_STAT_ACTUAL))
		return;
	seen->lies++;
	stats->known |= HV_STAT_UNUSED | HV_STAT_USABLE | HV_STAT_DISK_CACHES | HV_STAT_SWAP_IN |
			HV_STAT_LAST_UPDATE;
	stats->unused = stats->usable = free;
	stats->disk_caches = 0;
	stats->swap_in = rule->percent ? 0 : seen->lies * MIB;
	stats->last_update = seen->stats.last_update + seen->lies;
}

/* Actual is the hypervisor's word, which no guest keeps from moving. */
static void make_stale(struct fault_seen *seen, struct hv_stats *stats)
{
	uint64_t actual = stats->actual;
	unsigned int known = stats->known & HV_STAT_ACTUAL;

	*stats = seen->stats;
	stats->known = (stats->known & ~(unsigned int)HV_STAT_ACTUAL) | known;
	stats->actual = actual;
}

static void spoil_stats(struct hv *hv, const struct fault_rule *rule, struct hv_event *event)
{
	struct hv_stats *stats = &event->stats;
	bool is_new;
	struct fault_seen *seen = seen_of(hv, &event->uuid, &is_new);

	if (rule && rule->kind == FAULT_PARTIAL) {
		stats->known &= (unsigned int)fault_draw(hv, 0, 2 * HV_STAT_LAST_UPDATE - 1);
		return;
	}
	if (!seen)
		return;
	if (!rule || is_new)
		seen->stats = *stats;
	if (!rule || (rule->kind != FAULT_LIE && rule->kind != FAULT_STALE))
		return;
	if (rule->kind == FAULT_LIE)
		lie(rule, seen, stats);
	else
		make_stale(seen, stats);
}

/* A process of which nothing, or not its swap, is known; or that is not there. */
static void spoil_process(struct hv *hv, struct hv_event *event)
{
	size_t kept = 0;

	for (size_t i = 0; i < event->process.nr; i++) {
		struct hv_process process = event->process.vms[i];
		uint64_t drawn = fault_draw(hv, 0, 3);

		if (drawn == 0)
			continue;
		if (drawn == 1)
			process.known = process.swap_known = false;
		if (drawn == 2)
			process.swap_known = false;
		event->process.vms[kept++] = process;
	}
	event->process.nr = kept;
}

void fault_spoil(struct hv *hv, const struct fault_rule *rule, struct hv_event *event)
{
	struct hv_event failed = { .type = event->type,
		.token = event->token,
		.uuid = event->uuid,
		.error = rule ? rule->error : 0 };

	if (event->error)
		return;
	if (rule && rule->kind == FAULT_DENY) {
		hv_event_clear(event);
		*event = failed;
	} else if (event->type == HV_EVENT_STATS) {
		spoil_stats(hv, rule, event);
	} else if (event->type == HV_EVENT_PROCESS && rule && rule->kind == FAULT_PARTIAL) {
		spoil_process(hv, event);
	} else if (event->type == HV_EVENT_HOST && rule && rule->kind == FAULT_PARTIAL) {
		event->host.known = false;
	}
}
