/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* agent: talking to the host, and what is due when; see agent.h. Figures are in figures.c, what a
 * request does in reclaim.c. */
#include <config.h>

#include "guest-agent/agent.h"

#include <string.h>

#include "guest-agent/agent_internal.h"

void agent_start(struct agent *a, const struct agent_platform *platform, void *ctx)
{
	memset(a, 0, sizeof(*a));
	a->platform = platform;
	a->ctx = ctx;
	agent_unprotect(a);
}

uint64_t agent_now(const struct agent *a)
{
	return a->platform->now(a->ctx);
}

bool agent_say(struct agent *a, const struct protocol_message *m)
{
	char text[PROTOCOL_MESSAGE_MAX + 2];
	size_t length = protocol_format(m, text);

	return a->platform->send(a->ctx, text, length) >= 0;
}

static void complain(struct agent *a, uint64_t id, const char *why)
{
	struct protocol_message m = { .type = PROTOCOL_ERROR, .known = PROTOCOL_WHY, .id = id };

	if (id)
		m.known |= PROTOCOL_ID;
	protocol_text(m.why, why);
	agent_say(a, &m);
}

static void greet(struct agent *a)
{
	struct protocol_message m = {
		.type = PROTOCOL_HELLO,
		.known = PROTOCOL_VERSIONS_OLDEST | PROTOCOL_VERSIONS_NEWEST | PROTOCOL_CAN |
			 PROTOCOL_SOFTWARE,
		.oldest = PROTOCOL_OLDEST,
		.newest = PROTOCOL_NEWEST,
		.can = a->platform->can,
	};

	protocol_text(m.software, a->platform->software);
	a->said = m.can;
	agent_say(a, &m);
}

static void take_hello(struct agent *a, const struct protocol_message *m)
{
	agent_request_end(a, "the host starts over");
	a->greeted = m->oldest <= PROTOCOL_NEWEST && m->newest >= PROTOCOL_OLDEST;
	greet(a);
	a->report_due = 0; /* at once */
}

static void take_line(struct agent *a, const char *line, size_t length)
{
	struct protocol_message m;
	const char *why;

	if (protocol_parse(line, length, &m, &why) < 0) {
		complain(a, 0, why);
		return;
	}
	if (m.type == PROTOCOL_HELLO)
		take_hello(a, &m);
	else if (!a->greeted && m.type != PROTOCOL_ERROR)
		complain(a, m.known & PROTOCOL_ID ? m.id : 0, "say hello first");
	else if (m.type == PROTOCOL_RECLAIM)
		agent_request(a, &m);
	else if (m.type == PROTOCOL_STOP && m.id == a->request.id)
		a->request.stop = true;
	else if (m.type == PROTOCOL_REPORT || m.type == PROTOCOL_DONE)
		complain(a, 0, "not for an agent");
}

void agent_input(struct agent *a, const char *data, size_t size)
{
	enum protocol_line line;

	while ((line = protocol_take(&a->lines, &data, &size)) != PROTOCOL_LINE_NONE) {
		if (line == PROTOCOL_LINE)
			take_line(a, a->lines.line, a->lines.length);
		else
			complain(a, 0, "too long");
	}
}

void agent_disconnected(struct agent *a)
{
	a->greeted = false;
	memset(&a->lines, 0, sizeof(a->lines));
	agent_request_end(a, NULL);
}

void agent_pressure(struct agent *a)
{
	a->pressure = true;
}

/* ---- reports ---- */

/* Without a request it is a report that sees what became of the last one's probes. */
static bool probes_wait(const struct agent *a)
{
	return !a->request.id && agent_probes_due(a);
}

static void report(struct agent *a, uint64_t now)
{
	struct protocol_message m;

	a->report_due = now + AGENT_MOVING_US;
	if (!a->pressure && a->reported && now - a->reported < AGENT_REST_US && !a->moves &&
		!probes_wait(a) && !agent_moves(a))
		return;
	a->looked = now;
	if (!agent_look(a, now))
		return;
	agent_probes_judge(a, now);
	if (probes_wait(a))
		a->report_due = agent_probes_due(a);
	if (a->said != a->platform->can)
		greet(a);
	agent_report(a, &m);
	if (!agent_say(a, &m))
		return;
	a->pressure = false;
	a->reported = now;
	a->told = a->guest;
	a->moves = m.refaults || m.need;
}

/* When the request goes on: what the host says meanwhile comes first. */
static uint64_t request_due(const struct agent *a)
{
	uint64_t due = a->request.not_before;

	if (due > a->request.deadline)
		due = a->request.deadline;
	return pages_max(due, agent_now(a));
}

uint64_t agent_step(struct agent *a)
{
	uint64_t now = agent_now(a), next;

	if (a->protected_until && now >= a->protected_until && !a->request.id)
		agent_unprotect(a);
	if (a->greeted) {
		if (now >= a->report_due || (a->pressure && now - a->looked >= AGENT_PRESSURE_US))
			report(a, now);
		agent_request_step(a);
	}
	next = a->greeted ? a->report_due : UINT64_MAX;
	if (a->greeted && a->pressure)
		next = pages_min(next, a->looked + AGENT_PRESSURE_US);
	if (a->request.id)
		next = pages_min(next, request_due(a));
	else if (a->protected_until)
		next = pages_min(next, a->protected_until);
	return next;
}

void agent_stop(struct agent *a)
{
	agent_request_end(a, "the agent ends");
	agent_unprotect(a);
}
