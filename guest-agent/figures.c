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

static uint64_t cold_list(uint64_t inactive, uint64_t active)
{
	return workingset_cold_list(inactive / POLICY_PAGE_SIZE, active / POLICY_PAGE_SIZE) *
	       POLICY_PAGE_SIZE;
}

/* Where nothing tells, all may be: it is tried. */
uint64_t agent_cold_file(const struct agent *a, const struct agent_group *g)
{
	if (a->guest.aging == AGENT_LISTS)
		return cold_list(g->inactive_file, g->active_file);
	if (a->guest.aging == AGENT_GENERATIONS)
		return g->old_file;
	return g->inactive_file + g->active_file;
}

uint64_t agent_cold_anon(const struct agent *a, const struct agent_group *g)
{
	if (a->guest.aging == AGENT_LISTS)
		return cold_list(g->inactive_anon, g->active_anon);
	if (a->guest.aging == AGENT_GENERATIONS)
		return g->old_anon;
	return g->inactive_anon + g->active_anon;
}

struct agent_seen *agent_seen(struct agent *a, uint64_t id)
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
		const struct agent_seen *old = agent_seen(a, g->id);
		struct agent_seen *s = &now[i];

		if (old) {
			*s = *old;
			s->psi_rate =
				pages_min(rate(less(g->psi_some_us, old->psi_some_us), us), SECOND);
			s->refaults_rate = rate(less(g->refaults, old->refaults), us);
			s->restores_rate = rate(less(g->restores, old->restores), us);
		}
		s->id = g->id;
		s->refaults = g->refaults;
		s->restores = g->restores;
		s->psi_some_us = g->psi_some_us;
	}
	memcpy(a->seen, now, a->nr_groups * sizeof(now[0]));
	a->nr_seen = a->nr_groups;
}

static bool differs(uint64_t a, uint64_t b, uint64_t of)
{
	return (a > b ? a - b : b - a) > of / 128;
}

/* By more than a part of the guest that anybody would act on; or it reads again. */
static bool moved(const struct agent_guest *a, const struct agent_guest *b)
{
	return differs(a->free, b->free, a->total) ||
	       differs(a->available, b->available, a->total) ||
	       differs(a->active_file, b->active_file, a->total) ||
	       differs(a->inactive_file, b->inactive_file, a->total) ||
	       differs(a->active_anon, b->active_anon, a->total) ||
	       differs(a->inactive_anon, b->inactive_anon, a->total) ||
	       a->refaults != b->refaults || a->total != b->total || a->aging != b->aging;
}

/*
 * To read the groups is nearly all that a report costs. While in the whole guest nothing is read
 * again and nobody waits, no group's counters grow; while its figures stay, groups' sizes change by
 * little, or by what one gave another, which waits.
 */
static bool groups_stay(const struct agent *a, uint64_t now, const struct agent_guest *guest)
{
	return now < a->walk_due && !agent_probes_due(a) &&
	       guest->psi_some_us == a->walked.psi_some_us && !moved(guest, &a->walked);
}

static void walk(struct agent *a, uint64_t now, const struct agent_guest *guest)
{
	a->nr_groups = a->platform->groups(a->ctx, a->groups, AGENT_GROUPS);
	a->walked = *guest;
	a->walk_due = now + AGENT_WALK_US;
}

bool agent_look(struct agent *a, uint64_t now)
{
	struct agent_guest guest;

	memset(&guest, 0, sizeof(guest));
	if (a->platform->guest(a->ctx, &guest) < 0)
		return false;
	a->psi_some_us = guest.psi_some_us;
	if (!groups_stay(a, now, &guest))
		walk(a, now, &guest);
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

bool agent_read(struct agent *a, uint64_t now)
{
	a->walk_due = 0;
	return agent_look(a, now);
}

bool agent_moves(struct agent *a)
{
	struct agent_guest guest;

	memset(&guest, 0, sizeof(guest));
	if (a->platform->guest(a->ctx, &guest) < 0)
		return false;
	return guest.available < guest.total / NEEDS_FRACTION || moved(&guest, &a->told);
}

/* What lies in memory and is neither free nor read from a file nor the kernel's to drop. */
static uint64_t held(const struct agent_guest *g)
{
	return less(g->total, g->free + g->active_file + g->inactive_file + g->reclaimable);
}

bool agent_squeezed(const struct agent_seen *s)
{
	return s->psi_rate / 1000 >= AGENT_SUFFERS && s->restores_rate;
}

/*
 * What it lacks now. A group that reads again what had been active, and waits for it, was squeezed;
 * one that streams in a loop reads again what never was, and is not hurt by that.
 */
static uint64_t needs(const struct agent *a)
{
	const struct agent_guest *g = &a->guest;
	const struct agent_seen *s;
	uint64_t need = 0;

	if (g->available < g->total / NEEDS_FRACTION)
		need = g->total / (NEEDS_FRACTION / 2) - g->available;
	for (size_t i = 0; i < a->nr_seen; i++) {
		s = &a->seen[i];
		if (agent_squeezed(s))
			need += s->restores_rate;
	}
	return pages_min(need, g->total);
}

static void tell_group(struct agent *a, const struct agent_group *g, struct protocol_group *to)
{
	const struct agent_seen *s = agent_seen(a, g->id);
	uint64_t all = g->active_anon + g->active_file + g->inactive_anon + g->inactive_file;

	protocol_text(to->name, g->name);
	if (a->guest.aging == AGENT_LISTS)
		to->inactive = g->inactive_anon + g->inactive_file;
	else if (a->guest.aging == AGENT_GENERATIONS)
		to->inactive = g->old_anon + g->old_file;
	to->active = less(all, to->inactive);
	to->refaults = s ? s->refaults_rate : 0;
	to->psi = s ? s->psi_rate / 1000 : 0;
}

static uint64_t refaults_of(struct agent *a, const struct agent_group *g)
{
	const struct agent_seen *s = agent_seen(a, g->id);

	return s ? s->refaults_rate : 0;
}

static bool busier(struct agent *a, const struct agent_group *g, const struct agent_group *than)
{
	uint64_t mine = refaults_of(a, g), other = refaults_of(a, than);

	return mine > other || (mine == other && g->current > than->current);
}

/* The busiest groups: those that read again most, then the largest. */
static void report_groups(struct agent *a, struct protocol_message *m)
{
	bool told[AGENT_GROUPS] = { false };

	while (m->nr_groups < PROTOCOL_GROUPS && m->nr_groups < a->nr_groups) {
		size_t best = AGENT_GROUPS;

		for (size_t i = 0; i < a->nr_groups; i++)
			if (!told[i] && (best == AGENT_GROUPS ||
						busier(a, &a->groups[i], &a->groups[best])))
				best = i;
		told[best] = true;
		tell_group(a, &a->groups[best], &m->groups[m->nr_groups++]);
	}
}

static void report_lists(const struct agent *a, struct protocol_message *m)
{
	const struct agent_guest *g = &a->guest;

	m->known |= PROTOCOL_LISTS | PROTOCOL_WORKINGSET;
	m->active_anon = g->active_anon;
	m->inactive_anon = g->inactive_anon;
	m->active_file = g->active_file;
	m->inactive_file = g->inactive_file;
	/* What is read again within a second was missing. */
	m->workingset = pages_min(held(g) + g->active_file + m->refaults, g->total);
}

/* By generations, of the groups: nobody else can be asked. */
static void report_cold(const struct agent *a, struct protocol_message *m)
{
	const struct agent_guest *g = &a->guest;

	m->known |= PROTOCOL_COLD | PROTOCOL_WORKINGSET;
	for (size_t i = 0; i < a->nr_groups; i++) {
		m->cold_file += a->groups[i].old_file;
		m->cold_anon += a->groups[i].old_anon;
	}
	m->workingset = pages_min(
		held(g) + less(g->active_file + g->inactive_file, m->cold_file) + m->refaults,
		g->total);
}

void agent_report(struct agent *a, struct protocol_message *ret_report)
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
	if (g->aging == AGENT_GENERATIONS)
		report_cold(a, &m);
	else if (g->aging == AGENT_LISTS && (can & PROTOCOL_CAN_LISTS))
		report_lists(a, &m);
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
