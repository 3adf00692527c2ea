/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A request of the host's: what it frees, of whom, and when it ends; see agent.h. */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "guest-agent/agent_internal.h"
#include "policy/workingset.h"

#define PAGE UINT64_C(4096)

/* Until the first batch was measured: a slow, busy guest's 20 MiB a second. */
#define US_A_PAGE_UNKNOWN 200

/* Anonymous pages go only as long as so much swap is left beside them. */
#define SWAP_LEFT (UINT64_C(16) << 20)

void agent_request_end(struct agent *a, const char *why)
{
	struct protocol_message m = { .type = PROTOCOL_DONE,
		.known = PROTOCOL_ID | PROTOCOL_BYTES,
		.id = a->request.id,
		.bytes = a->request.batch.reclaimed * PAGE };

	if (!a->request.id)
		return;
	if (why && *why) {
		m.known |= PROTOCOL_WHY;
		protocol_text(m.why, why);
	}
	if (a->request.group)
		a->calm_at = agent_now(a) + AGENT_AFTER_US;
	memset(&a->request, 0, sizeof(a->request));
	for (size_t i = 0; i < a->nr_seen; i++)
		a->seen[i].empty = 0;
	for (size_t i = 0; i < a->nr_seen && !a->protected_until; i++)
		a->seen[i].protects = false;
	if (a->protected_until)
		a->protected_until = agent_now(a) + AGENT_PROTECT_US;
	a->report_due = 0; /* what is free now is what the host wants to know */
	if (why)
		agent_say(a, &m);
}

void agent_request(struct agent *a, const struct protocol_message *m)
{
	struct protocol_message refusal = {
		.type = PROTOCOL_ERROR, .known = PROTOCOL_WHY | PROTOCOL_ID, .id = m->id
	};
	uint64_t ms = pages_min(m->deadline_ms, AGENT_DEADLINE_MAX_MS);

	if (!(a->platform->can & PROTOCOL_CAN_RECLAIM) || a->request.id) {
		protocol_text(refusal.why,
			a->request.id ? "another request runs" : "this guest cannot reclaim");
		agent_say(a, &refusal);
		return;
	}
	a->request.id = m->id;
	a->request.deadline = agent_now(a) + ms * 1000;
	a->request.anon = (m->known & PROTOCOL_ANON) && m->anon;
	a->request.active = (m->known & PROTOCOL_ACTIVE) && m->active;
	batch_start(&a->request.batch, (m->bytes + PAGE - 1) / PAGE);
}

/* ---- protection ---- */

/* It has something that can be taken, and did not read again what was. */
static bool gives(struct agent *a, const struct agent_group *g, uint64_t now)
{
	const struct agent_seen *s = agent_seen(a, g->id);

	return agent_cold_file(a, g) && !(s && s->probe.rests_until > now);
}

/* Who has nothing cold is kept from what the kernel takes while there is less and less. */
static void protect(struct agent *a, uint64_t now)
{
	struct agent_seen *s;

	if (!(a->platform->can & PROTOCOL_CAN_PROTECT))
		return;
	for (size_t i = 0; i < a->nr_groups; i++) {
		s = agent_seen(a, a->groups[i].id);
		if (!s || s->protects || gives(a, &a->groups[i], now) || a->groups[i].dying)
			continue;
		s->protects = true; /* or cannot be: it is tried once */
		if (a->platform->protect(a->ctx, &a->groups[i]) >= 0)
			a->protected_until = now + AGENT_PROTECT_US;
	}
}

void agent_unprotect(struct agent *a)
{
	bool done = !a->platform->unprotect || a->platform->unprotect(a->ctx) >= 0;

	for (size_t i = 0; i < a->nr_seen; i++)
		a->seen[i].protects = false;
	a->protected_until = done ? 0 : agent_now(a) + AGENT_AGAIN_US;
}

/* ---- of whom ---- */

static uint64_t swap_to_use(const struct agent *a)
{
	uint64_t swap = a->guest.swap_free;

	return a->request.anon && swap > SWAP_LEFT ? swap - SWAP_LEFT : 0;
}

struct choice {
	const struct agent_group *group;
	uint64_t bytes;
	bool anon;
};

/* The largest part first. Groups that nobody is in come last, as do those that brought nothing. */
static void consider(
	struct agent *a, struct choice *c, const struct agent_group *g, uint64_t bytes, bool anon)
{
	const struct agent_seen *s = agent_seen(a, g->id);
	bool worse;

	if (s)
		bytes >>= 2 * pages_min(s->empty, BATCH_RETRIES);
	bytes = agent_probe(a, g, agent_now(a), bytes);
	worse = c->group &&
		(c->group->dying < g->dying || (c->group->dying == g->dying && c->bytes >= bytes));
	if (bytes < PAGE || worse)
		return;
	*c = (struct choice){ .group = g, .bytes = bytes, .anon = anon };
}

/* Cold file pages, else cold anonymous ones, else active ones where those may be taken. */
static struct choice choose(struct agent *a)
{
	struct choice c = { 0 };
	uint64_t swap = swap_to_use(a);

	for (size_t i = 0; i < a->nr_groups; i++)
		consider(a, &c, &a->groups[i], agent_cold_file(a, &a->groups[i]), false);
	if (c.group || agent_probes_due(a))
		return c;
	for (size_t i = 0; swap && i < a->nr_groups; i++)
		consider(a, &c, &a->groups[i], pages_min(agent_cold_anon(a, &a->groups[i]), swap),
			true);
	if (c.group || !a->request.active)
		return c;
	for (size_t i = 0; i < a->nr_groups; i++)
		consider(a, &c, &a->groups[i],
			a->groups[i].active_file + a->groups[i].inactive_file, false);
	return c;
}

/* Why there is none. */
static const char *exhausted(struct agent *a)
{
	uint64_t anon = 0;

	for (size_t i = 0; i < a->nr_groups; i++)
		anon += agent_cold_anon(a, &a->groups[i]);
	if (a->request.anon && anon && !swap_to_use(a))
		return "swap runs out";
	return "nothing is inactive any more";
}

/* ---- whom it hurts ---- */

static uint64_t may_wait(const struct agent *a)
{
	return pages_max(a->request.took_us, AGENT_BATCH_US) * AGENT_SUFFERS / 1000;
}

/*
 * Those that were squeezed before it began are so for another reason: their own limits. Where the
 * request before is not long over that may have been the reason, and who was noted then counts.
 */
static void note_who_suffers(struct agent *a)
{
	if (!a->request.began && agent_now(a) >= a->calm_at)
		for (size_t i = 0; i < a->nr_seen; i++)
			a->seen[i].suffered = agent_squeezed(&a->seen[i]);
	a->request.began = true;
}

/*
 * Most likely because of it. A stream that reads in a loop raises the guest's pressure and refaults
 * without being hurt: groups are judged by their own, that which gave last by its waiting alone.
 */
static bool group_suffers(const struct agent *a)
{
	for (size_t i = 0; i < a->nr_seen; i++)
		if (agent_squeezed(&a->seen[i]) && !a->seen[i].suffered)
			return true;
	for (size_t i = 0; a->request.group && i < a->nr_groups; i++)
		if (a->groups[i].id == a->request.group)
			return a->groups[i].psi_some_us > a->request.psi_before + may_wait(a);
	return false;
}

/* Beside the agent, which waits in the kernel as long as a batch takes. */
static bool guest_suffers(const struct agent *a)
{
	return a->request.group &&
	       a->psi_some_us > a->request.guest_psi_before + a->request.took_us + may_wait(a);
}

static bool has_groups(const struct agent *a)
{
	return a->platform->can & PROTOCOL_CAN_GROUPS;
}

static const char *hurts(struct agent *a)
{
	note_who_suffers(a);
	if (has_groups(a) && group_suffers(a))
		return "a group waits for memory";
	if (!has_groups(a) && guest_suffers(a))
		return "the guest waits for memory";
	return NULL;
}

/* Why it ends, whatever came; NULL: it goes on. */
static const char *ends(const struct agent *a, uint64_t now)
{
	if (a->request.stop)
		return "stopped";
	return now >= a->request.deadline ? "deadline" : NULL;
}

/* ---- batches ---- */

/* Why it would not go otherwise the next time; NULL: it may. */
static const char *refused(int error)
{
	if (error >= 0 || error == -EAGAIN || error == -ENOENT)
		return NULL;
	if (error == -EPERM || error == -EACCES)
		return "the kernel does not permit it";
	return "the kernel does not take such a request";
}

/* Why the request ends with it; NULL: it goes on. */
static const char *run_batch(struct agent *a, const struct choice *c, uint64_t pages)
{
	uint64_t began = agent_now(a), came = 0, now;
	struct agent_seen *s = agent_seen(a, c->group->id);
	int r;

	a->request.group = c->group->id;
	a->request.psi_before = c->group->psi_some_us;
	a->request.guest_psi_before = a->psi_some_us;
	r = a->platform->reclaim(
		a->ctx, c->group, pages_min(pages * PAGE, c->bytes / PAGE * PAGE), c->anon, &came);
	now = agent_now(a);
	a->request.took_us = now - began;
	batch_result(&a->request.batch, came / PAGE);
	if (came < PAGE && s)
		s->empty++;
	if (came >= PAGE)
		a->us_a_page = pages_max(a->request.took_us / (came / PAGE), 1);
	agent_probed(a, c->group, now, came);
	a->walk_due = 0;
	if (!has_groups(a) && (a->platform->can & PROTOCOL_CAN_PRESSURE))
		a->request.not_before = now + pages_max(a->request.took_us, AGENT_WATCH_US);
	return refused(r);
}

/* One batch; why it ends, NULL: it goes on. */
static const char *try_batch(struct agent *a, uint64_t now, uint64_t pages)
{
	struct choice c = choose(a);

	if (c.group)
		return run_batch(a, &c, pages);
	if (!agent_probes_due(a))
		return exhausted(a);
	a->request.not_before = pages_max(agent_probes_due(a), now);
	return NULL;
}

/* One batch, or the end. */
static void go_on(struct agent *a, uint64_t now)
{
	uint64_t us = a->us_a_page ? a->us_a_page : US_A_PAGE_UNKNOWN, pages = 0;
	const char *why;

	switch (batch_next(&a->request.batch, AGENT_BATCH_US / us, &pages)) {
	case BATCH_GO:
		why = try_batch(a, now, pages);
		break;
	case BATCH_GAVE_UP:
		why = "the kernel finds nothing to free";
		break;
	default:
		why = "";
		break;
	}
	if (why)
		agent_request_end(a, why);
}

void agent_request_step(struct agent *a)
{
	uint64_t now = agent_now(a);
	const char *why;

	if (!a->request.id)
		return;
	why = ends(a, now);
	if (!why && now < a->request.not_before)
		return;
	if (!why && !agent_read(a, now))
		why = "the guest's figures cannot be read";
	if (!why)
		why = hurts(a);
	if (why) {
		agent_request_end(a, why);
		return;
	}
	agent_probes_judge(a, now);
	protect(a, now);
	go_on(a, now);
}
