/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* agent_channel: see agent_channel.h. */
#include <config.h>

#include "hv/agent_channel.h"

#include <errno.h>
#include <string.h>

#define SECOND UINT64_C(1000000)

_Static_assert(HV_AGENT_TEXT == PROTOCOL_TEXT, "texts are copied as they are");
_Static_assert(HV_AGENT_GROUPS == PROTOCOL_GROUPS, "all that are told are kept");

size_t agent_channel_open(struct agent_channel *ch, uint64_t now, char *text)
{
	struct protocol_message m = {
		.type = PROTOCOL_HELLO,
		.known = PROTOCOL_VERSIONS_OLDEST | PROTOCOL_VERSIONS_NEWEST | PROTOCOL_SOFTWARE,
		.oldest = PROTOCOL_OLDEST,
		.newest = PROTOCOL_NEWEST,
		.software = "ballastd " PACKAGE_VERSION,
	};

	agent_channel_close(ch);
	ch->heard = now;
	/* An empty line ends what somebody else may have left half. */
	text[0] = '\n';
	return 1 + protocol_format(&m, text + 1);
}

void agent_channel_close(struct agent_channel *ch)
{
	uint64_t faults = ch->agent.faults;
	char fault[HV_AGENT_TEXT];

	memcpy(fault, ch->agent.fault, sizeof(fault));
	ch->changed |= ch->agent.connected;
	memset(&ch->agent, 0, sizeof(ch->agent));
	memset(&ch->lines, 0, sizeof(ch->lines));
	ch->agent.faults = faults;
	memcpy(ch->agent.fault, fault, sizeof(fault));
	ch->mended = false;
	if (ch->request.id && !ch->request.done) {
		ch->request.done = true;
		ch->request.error = -ENOTCONN;
	}
}

bool agent_channel_silent(const struct agent_channel *ch, uint64_t now)
{
	return now - ch->heard >= AGENT_CHANNEL_SILENT_US;
}

void agent_channel_fault(struct agent_channel *ch, const char *what)
{
	ch->agent.faults++;
	protocol_text(ch->agent.fault, what);
	ch->changed = true;
}

static void new_second(struct agent_channel *ch, uint64_t now)
{
	if (ch->second && now - ch->second < SECOND)
		return;
	ch->second = now ? now : 1;
	ch->bytes = ch->messages = 0;
	ch->said_flood = false;
}

size_t agent_channel_room(struct agent_channel *ch, uint64_t now, uint64_t *ret_again)
{
	new_second(ch, now);
	*ret_again = ch->second + SECOND;
	if (ch->messages >= AGENT_CHANNEL_MESSAGES || ch->bytes >= AGENT_CHANNEL_BYTES) {
		if (!ch->said_flood)
			agent_channel_fault(ch, "sends more than is read");
		ch->said_flood = true;
		return 0;
	}
	return AGENT_CHANNEL_BYTES - ch->bytes;
}

/* ---- messages ---- */

static void take_hello(struct agent_channel *ch, const struct protocol_message *m)
{
	if (m->oldest > PROTOCOL_NEWEST || m->newest < PROTOCOL_OLDEST) {
		agent_channel_fault(ch, "speaks no version that is spoken here");
		return;
	}
	ch->agent.connected = true;
	ch->agent.version = m->newest < PROTOCOL_NEWEST ? m->newest : PROTOCOL_NEWEST;
	ch->agent.reclaims = (m->known & PROTOCOL_CAN) && (m->can & PROTOCOL_CAN_RECLAIM);
	memcpy(ch->agent.software, m->software, sizeof(ch->agent.software));
	ch->changed = true;
}

static void take_groups(struct hv_agent *a, const struct protocol_message *m)
{
	a->nr_groups = m->nr_groups;
	for (unsigned int i = 0; i < m->nr_groups; i++) {
		const struct protocol_group *g = &m->groups[i];
		struct hv_agent_group *to = &a->groups[i];

		memcpy(to->name, g->name, sizeof(to->name));
		to->active = g->active;
		to->inactive = g->inactive;
		to->refaults = g->refaults;
		to->psi = g->psi;
	}
}

static void take_report(struct agent_channel *ch, const struct protocol_message *m)
{
	struct hv_agent *a = &ch->agent;

	a->known = HV_AGENT_REPORT;
	if ((m->known & PROTOCOL_LISTS) == PROTOCOL_LISTS) {
		a->known |= HV_AGENT_LISTS;
		a->lists = (struct hv_lists){ .active_anon = m->active_anon,
			.inactive_anon = m->inactive_anon,
			.active_file = m->active_file,
			.inactive_file = m->inactive_file,
			.swap_free = m->swap_free };
	}
	/* Of what is cold nothing has to stay inactive: it goes on as lists without active pages.
	 */
	if (!(a->known & HV_AGENT_LISTS) && (m->known & PROTOCOL_COLD) == PROTOCOL_COLD) {
		a->known |= HV_AGENT_COLD;
		a->lists = (struct hv_lists){ .inactive_anon = m->cold_anon,
			.inactive_file = m->cold_file,
			.swap_free = m->swap_free };
	}
	if (m->known & PROTOCOL_FREE)
		a->known |= HV_AGENT_FREE;
	if (m->known & PROTOCOL_FLOOR)
		a->known |= HV_AGENT_FLOOR;
	if (m->known & PROTOCOL_WORKINGSET)
		a->known |= HV_AGENT_WORKINGSET;
	if (m->known & PROTOCOL_PSI_SOME)
		a->known |= HV_AGENT_PRESSURE;
	a->free = m->free;
	a->floor = m->floor;
	a->workingset = m->workingset;
	a->need = m->need;
	a->refaults = m->refaults;
	a->swapins = m->swapins;
	a->psi_some = m->psi_some;
	a->psi_full = m->psi_full;
	take_groups(a, m);
	ch->changed = true;
}

static void take_end(struct agent_channel *ch, const struct protocol_message *m, int error)
{
	if (!ch->request.id || ch->request.done || m->id != ch->request.id) {
		/* One that ran out of time may still be answered. */
		if (!m->id || m->id > ch->last_id)
			agent_channel_fault(ch, "answers what was not asked");
		return;
	}
	ch->request.done = true;
	ch->request.error = error;
	ch->request.came = m->bytes;
}

static void take_line(struct agent_channel *ch)
{
	struct protocol_message m;
	const char *why;

	if (protocol_parse(ch->lines.line, ch->lines.length, &m, &why) < 0) {
		if (ch->mended)
			agent_channel_fault(ch, why);
		return;
	}
	if (m.type == PROTOCOL_HELLO)
		take_hello(ch, &m);
	else if (!ch->agent.connected)
		return; /* of before it was greeted */
	else if (m.type == PROTOCOL_REPORT)
		take_report(ch, &m);
	else if (m.type == PROTOCOL_DONE)
		take_end(ch, &m, 0);
	else if (m.type == PROTOCOL_ERROR && (m.known & PROTOCOL_ID))
		take_end(ch, &m, -EOPNOTSUPP);
	else if (m.type == PROTOCOL_ERROR)
		agent_channel_fault(ch, m.why);
	else
		agent_channel_fault(ch, "sends what only a host says");
}

void agent_channel_input(struct agent_channel *ch, uint64_t now, const char *data, size_t size)
{
	enum protocol_line line;

	new_second(ch, now);
	ch->heard = now;
	ch->bytes += size;
	while ((line = protocol_take(&ch->lines, &data, &size)) != PROTOCOL_LINE_NONE) {
		/* What came with one read is counted and, past the limit, passed over. */
		if (ch->messages++ >= AGENT_CHANNEL_MESSAGES)
			continue;
		if (line == PROTOCOL_LINE)
			take_line(ch);
		else if (ch->mended)
			agent_channel_fault(ch, "a message is too long");
		ch->mended = true;
	}
}

bool agent_channel_news(
	struct agent_channel *ch, const struct hv_uuid *uuid, struct hv_event *ret_event)
{
	if (!ch->changed)
		return false;
	ch->changed = false;
	*ret_event = (struct hv_event){
		.type = HV_EVENT_AGENT,
		.uuid = *uuid,
		.agent = ch->agent,
	};
	return true;
}

/* ---- requests ---- */

int agent_channel_reclaim(struct agent_channel *ch, uint64_t now, const struct hv_call *call,
	char *text, size_t *ret_length)
{
	struct protocol_message m = {
		.type = PROTOCOL_RECLAIM,
		.known = PROTOCOL_ID | PROTOCOL_BYTES | PROTOCOL_DEADLINE | PROTOCOL_ANON |
			 PROTOCOL_ACTIVE,
		.bytes = call->bytes,
		.deadline_ms = call->deadline_ms,
		.anon = call->anon,
		.active = call->active,
	};

	if (!ch->agent.connected)
		return -ENOTCONN;
	if (!ch->agent.reclaims)
		return -EOPNOTSUPP;
	if (ch->request.id)
		return -EAGAIN;
	memset(&ch->request, 0, sizeof(ch->request));
	m.id = ch->request.id = ++ch->last_id;
	ch->request.deadline = now + call->deadline_ms * 1000 + AGENT_CHANNEL_GRACE_US;
	*ret_length = protocol_format(&m, text);
	return 0;
}

bool agent_channel_answer(
	struct agent_channel *ch, uint64_t now, int *ret_error, uint64_t *ret_came)
{
	if (!ch->request.id || (!ch->request.done && now < ch->request.deadline))
		return false;
	if (!ch->request.done)
		agent_channel_fault(ch, "gives no answer in time");
	*ret_error = ch->request.done ? ch->request.error : -ETIMEDOUT;
	*ret_came = ch->request.came;
	memset(&ch->request, 0, sizeof(ch->request));
	return true;
}
