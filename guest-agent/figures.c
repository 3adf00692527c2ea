/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the guest has and uses, from the platform's figures; see agent.h. */
#include <config.h>

#include <string.h>

#include "guest-agent/agent_internal.h"
#include "policy/workingset.h"

#define SECOND UINT64_C(1000000)

/* Rates over less than this flutter: the figures before stay. */
#define RATE_LEAST_US UINT64_C(100000)

/* No kernel lives on less beside what is in use: a 32nd, for buffers and the caches of libraries.
 */
#define FLOOR_FRACTION 32

/* Usable memory under a 16th: the guest will lack it soon, and asks for an 8th. */
#define NEEDS_FRACTION 16

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t rate(uint64_t more, uint64_t us)
{
	return us ? pages_mul_div(more, SECOND, us) : 0;
}

uint64_t agent_cold_file(const struct agent_group *g)
{
	return workingset_cold_list(
		       g->inactive_file / POLICY_PAGE_SIZE, g->active_file / POLICY_PAGE_SIZE) *
	       POLICY_PAGE_SIZE;
}

uint64_t agent_cold_anon(const struct agent_group *g)
{
	return workingset_cold_list(
		       g->inactive_anon / POLICY_PAGE_SIZE, g->active_anon / POLICY_PAGE_SIZE) *
	       POLICY_PAGE_SIZE;
}

static const struct agent_seen *seen_of(const struct agent *a, uint64_t id)
{
	for (size_t i = 0; i < a->nr_seen; i++)
		if (a->seen[i].id == id)
			return &a->seen[i];
	return NULL;
}

static void rates_of_groups(struct agent *a, uint64_t us)
{
	struct agent_seen now[AGENT_GROUPS] = { 0 };

	for (size_t i = 0; i < a->nr_groups; i++) {
		const struct agent_group *g = &a->groups[i];
		const struct agent_seen *old = seen_of(a, g->id);

		a->psi[i] = a->refaults[i] = a->restores[i] = 0;
		if (old) {
			a->psi[i] = pages_min(
				rate(less(g->psi_some_us, old->psi_some_us), us) / 1000, 1000);
			a->refaults[i] = rate(less(g->refaults, old->refaults), us);
			a->restores[i] = rate(less(g->restores, old->restores), us);
		}
		now[i] = (struct agent_seen){ .id = g->id,
			.refaults = g->refaults,
			.restores = g->restores,
			.psi_some_us = g->psi_some_us,
			.protects = old && old->protects,
			.empty = old ? old->empty : 0 };
	}
	memcpy(a->seen, now, a->nr_groups * sizeof(now[0]));
	a->nr_seen = a->nr_groups;
}

bool agent_read(struct agent *a, uint64_t now)
{
	struct agent_guest guest;

	memset(&guest, 0, sizeof(guest));
	if (a->platform->guest(a->ctx, &guest) < 0)
		return false;
	a->nr_groups = a->platform->groups(a->ctx, a->groups, AGENT_GROUPS);
	if (!a->known || now - a->read_at >= RATE_LEAST_US) {
		a->since_us = a->known ? now - a->read_at : 0;
		a->before = a->known ? a->guest : guest;
		a->read_at = now;
		rates_of_groups(a, a->since_us);
		a->guest = guest;
	} else {
		/* The counters of before stay, for rates to be reckoned from. */
		guest.refaults = a->guest.refaults;
		guest.swapins = a->guest.swapins;
		guest.psi_some_us = a->guest.psi_some_us;
		guest.psi_full_us = a->guest.psi_full_us;
		a->guest = guest;
	}
	a->known = true;
	return true;
}

/* What lies in memory and is neither free nor read from a file nor the kernel's to drop. */
static uint64_t held(const struct agent_guest *g)
{
	return less(g->total, g->free + g->active_file + g->inactive_file + g->reclaimable);
}

/*
 * What it lacks now. A group that reads again what had been active, and waits for it, was squeezed;
 * one that streams in a loop reads again what never was, and is not hurt by that.
 */
static uint64_t needs(const struct agent *a)
{
	const struct agent_guest *g = &a->guest;
	uint64_t need = 0;

	if (g->available < g->total / NEEDS_FRACTION)
		need = g->total / (NEEDS_FRACTION / 2) - g->available;
	for (size_t i = 0; i < a->nr_groups; i++)
		if (a->psi[i] >= AGENT_SUFFERS && a->restores[i])
			need += a->restores[i];
	return pages_min(need, g->total);
}

/* The busiest groups: those that read again most, then the largest. */
static void report_groups(const struct agent *a, struct protocol_message *m)
{
	bool told[AGENT_GROUPS] = { false };

	while (m->nr_groups < PROTOCOL_GROUPS && m->nr_groups < a->nr_groups) {
		struct protocol_group *to = &m->groups[m->nr_groups];
		size_t best = AGENT_GROUPS;

		for (size_t i = 0; i < a->nr_groups; i++) {
			if (told[i])
				continue;
			if (best == AGENT_GROUPS || a->refaults[i] > a->refaults[best] ||
				(a->refaults[i] == a->refaults[best] &&
					a->groups[i].current > a->groups[best].current))
				best = i;
		}
		told[best] = true;
		m->nr_groups++;
		protocol_text(to->name, a->groups[best].name);
		to->active = a->groups[best].active_anon + a->groups[best].active_file;
		to->inactive = a->groups[best].inactive_anon + a->groups[best].inactive_file;
		to->refaults = a->refaults[best];
		to->psi = a->psi[best];
	}
}

void agent_report(const struct agent *a, struct protocol_message *ret_report)
{
	const struct agent_guest *g = &a->guest;
	uint64_t can = a->platform->can;
	struct protocol_message m;

	memset(&m, 0, sizeof(m));
	m.type = PROTOCOL_REPORT;
	m.known = PROTOCOL_TOTAL | PROTOCOL_FREE | PROTOCOL_AVAILABLE | PROTOCOL_SWAP_FREE |
		  PROTOCOL_FLOOR | PROTOCOL_NEED | PROTOCOL_REFAULTS | PROTOCOL_SWAPINS;
	m.total = g->total;
	m.free = g->free;
	m.available = pages_min(g->available, g->total);
	m.swap_free = g->swap_free;
	m.refaults = rate(less(g->refaults, a->before.refaults), a->since_us);
	m.swapins = rate(less(g->swapins, a->before.swapins), a->since_us);
	m.floor = pages_min(held(g) + g->total / FLOOR_FRACTION, g->total);
	m.need = needs(a);
	if (g->estimated) {
		m.known |= PROTOCOL_ESTIMATED;
		m.estimated = 1;
	}
	if (can & PROTOCOL_CAN_LISTS) {
		m.known |= PROTOCOL_LISTS | PROTOCOL_WORKINGSET;
		m.active_anon = g->active_anon;
		m.inactive_anon = g->inactive_anon;
		m.active_file = g->active_file;
		m.inactive_file = g->inactive_file;
		/* What is read again within a second was missing. */
		m.workingset = pages_min(held(g) + g->active_file + m.refaults, g->total);
	}
	if (can & PROTOCOL_CAN_PRESSURE) {
		m.known |= PROTOCOL_PSI_SOME | PROTOCOL_PSI_FULL;
		m.psi_some = pages_min(
			rate(less(g->psi_some_us, a->before.psi_some_us), a->since_us) / 1000,
			1000);
		m.psi_full = pages_min(
			rate(less(g->psi_full_us, a->before.psi_full_us), a->since_us) / 1000,
			1000);
	}
	if (can & PROTOCOL_CAN_GROUPS)
		report_groups(a, &m);
	*ret_report = m;
}
