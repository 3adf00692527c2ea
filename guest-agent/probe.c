/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What may be taken of a group whose kernel ages by generations; see agent.h. The kernel takes the
 * oldest first and knows little of what is read through descriptors: a file that is read again and
 * again may lie in the oldest generation until it is missed. So little is taken, and it is watched.
 */
#include <config.h>

#include "guest-agent/agent_internal.h"
#include "policy/workingset.h"

/* The first round takes a 64th of the group, the largest a quarter. */
#define FIRST_FRACTION 64
#define MOST_FRACTION  4

/* More than an 8th of what went is read again: it is used. */
#define READ_AGAIN_FRACTION 8

static uint64_t at_least(uint64_t bytes)
{
	return pages_max(bytes, BATCH_MIN * POLICY_PAGE_SIZE);
}

static void judge(struct agent *a, const struct agent_group *g, uint64_t now)
{
	struct agent_seen *s = agent_seen(a, g->id);

	if (!s || !s->probe.at || now < s->probe.at + AGENT_PROBE_US)
		return;
	s->probe.at = 0;
	if (pages_sub(g->refaults, s->probe.refaults) > s->probe.came / READ_AGAIN_FRACTION) {
		s->probe.bytes = 0;
		s->probe.rests_until = now + AGENT_PROBE_REST_US;
		return;
	}
	if (s->probe.came)
		s->probe.bytes =
			at_least(pages_min(s->probe.bytes * 2, g->current / MOST_FRACTION));
}

void agent_probes_judge(struct agent *a, uint64_t now)
{
	for (size_t i = 0; i < a->nr_groups; i++)
		judge(a, &a->groups[i], now);
}

static uint64_t round_of(const struct agent_group *g, const struct agent_seen *s)
{
	return s->probe.bytes ? s->probe.bytes : at_least(g->current / FIRST_FRACTION);
}

uint64_t agent_probe(struct agent *a, const struct agent_group *g, uint64_t now, uint64_t bytes)
{
	const struct agent_seen *s = agent_seen(a, g->id);

	if (a->guest.aging == AGENT_LISTS)
		return bytes;
	if (!s || s->probe.rests_until > now)
		return 0;
	return pages_min(bytes, pages_sub(round_of(g, s), s->probe.at ? s->probe.came : 0));
}

void agent_probed(struct agent *a, const struct agent_group *g, uint64_t now, uint64_t came)
{
	struct agent_seen *s = agent_seen(a, g->id);

	if (a->guest.aging == AGENT_LISTS || !s)
		return;
	if (!s->probe.at) {
		s->probe.bytes = round_of(g, s);
		s->probe.at = now;
		s->probe.came = 0;
		s->probe.refaults = g->refaults;
	}
	s->probe.came += came;
}

uint64_t agent_probes_due(const struct agent *a)
{
	uint64_t due = 0;

	for (size_t i = 0; i < a->nr_seen; i++)
		if (a->seen[i].probe.at && (!due || a->seen[i].probe.at + AGENT_PROBE_US < due))
			due = a->seen[i].probe.at + AGENT_PROBE_US;
	return due;
}
