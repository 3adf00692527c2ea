/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A request of the host's: what it frees, of whom, and when it ends; see agent.h. */
#include <config.h>

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
	memset(&a->request, 0, sizeof(a->request));
	for (size_t i = 0; i < a->nr_seen; i++)
		a->seen[i].empty = 0;
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

static struct agent_seen *seen(struct agent *a, uint64_t id)
{
	for (size_t i = 0; i < a->nr_seen; i++)
		if (a->seen[i].id == id)
			return &a->seen[i];
	return NULL;
}

/* Who has nothing cold is kept from what the kernel takes while there is less and less. */
static void protect(struct agent *a)
{
	struct agent_seen *s;

	if (!(a->platform->can & PROTOCOL_CAN_PROTECT))
		return;
	for (size_t i = 0; i < a->nr_groups; i++) {
		s = seen(a, a->groups[i].id);
		if (!s || s->protects || agent_cold_file(&a->groups[i]) || a->groups[i].dying)
			continue;
		s->protects = a->platform->protect(a->ctx, &a->groups[i], true) >= 0;
		if (s->protects)
			a->protected_until = agent_now(a) + AGENT_PROTECT_US;
	}
}

void agent_unprotect(struct agent *a)
{
	struct agent_seen *s;

	for (size_t i = 0; i < a->nr_groups; i++) {
		s = seen(a, a->groups[i].id);
		if (!s || !s->protects)
			continue;
		a->platform->protect(a->ctx, &a->groups[i], false);
		s->protects = false;
	}
	a->protected_until = 0;
}

/* ---- batches ---- */

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
static void consider(const struct agent *a, struct choice *c, const struct agent_group *g,
	uint64_t bytes, bool anon)
{
	const struct agent_seen *s = &a->seen[g - a->groups];
	bool worse;

	if (s->id == g->id)
		bytes >>= 2 * pages_min(s->empty, BATCH_RETRIES);
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
		consider(a, &c, &a->groups[i], agent_cold_file(&a->groups[i]), false);
	for (size_t i = 0; !c.group && swap && i < a->nr_groups; i++)
		consider(a, &c, &a->groups[i], pages_min(agent_cold_anon(&a->groups[i]), swap),
			true);
	if (c.group || !a->request.active)
		return c;
	a->request.actively = true;
	for (size_t i = 0; i < a->nr_groups; i++)
		consider(a, &c, &a->groups[i],
			a->groups[i].active_file + a->groups[i].inactive_file, false);
	return c;
}

/* The last batch's group waited for memory, most likely because of it. */
static bool suffers(const struct agent *a)
{
	uint64_t limit = pages_max(a->request.took_us, AGENT_BATCH_US) * AGENT_SUFFERS / 1000;

	for (size_t i = 0; a->request.group && i < a->nr_groups; i++)
		if (a->groups[i].id == a->request.group)
			return a->groups[i].psi_some_us > a->request.psi_before + limit;
	return false;
}

/* Why it ends before all came; NULL: it goes on. */
static const char *ends(const struct agent *a, uint64_t now)
{
	if (a->request.stop)
		return "stopped";
	if (now >= a->request.deadline)
		return "deadline";
	if (suffers(a))
		return "a group waits for memory";
	return NULL;
}

static void run_batch(struct agent *a, const struct choice *c, uint64_t pages)
{
	uint64_t began = agent_now(a), came = 0, took;

	a->request.group = c->group->id;
	a->request.psi_before = c->group->psi_some_us;
	a->platform->reclaim(
		a->ctx, c->group, pages_min(pages * PAGE, c->bytes / PAGE * PAGE), c->anon, &came);
	took = agent_now(a) - began;
	a->request.took_us = took;
	batch_result(&a->request.batch, came / PAGE);
	if (came < PAGE && a->seen[c->group - a->groups].id == c->group->id)
		a->seen[c->group - a->groups].empty++;
	if (came >= PAGE)
		a->request.us_a_page = pages_max(took / (came / PAGE), 1);
}

void agent_request_step(struct agent *a)
{
	uint64_t now = agent_now(a), pages = 0, us;
	struct choice c;
	const char *why;

	if (!a->request.id)
		return;
	if (!agent_read(a, now)) {
		agent_request_end(a, "the guest's figures cannot be read");
		return;
	}
	why = ends(a, now);
	if (why) {
		agent_request_end(a, why);
		return;
	}
	protect(a);
	us = a->request.us_a_page ? a->request.us_a_page : US_A_PAGE_UNKNOWN;
	switch (batch_next(&a->request.batch, AGENT_BATCH_US / us, &pages)) {
	case BATCH_GO:
	case BATCH_GO_FRESH: /* they always are */
		c = choose(a);
		if (c.group)
			run_batch(a, &c, pages);
		else
			agent_request_end(a, "nothing is inactive any more");
		break;
	case BATCH_GAVE_UP:
		agent_request_end(a, "the kernel finds nothing to free");
		break;
	default:
		agent_request_end(a, "");
		break;
	}
}
