/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * agent_channel: the host's end of the way to an agent, whatever carries the bytes.
 *
 * Bytes in, what is known of the agent (struct hv_agent) and texts to be sent out. The guest is
 * hostile until shown otherwise: what it sends is counted, and read no faster than
 * AGENT_CHANNEL_BYTES and AGENT_CHANNEL_MESSAGES a second; what of it is no message is a fault, the
 * last of which is kept; an answer counts only with the id of the request that is out. No
 * allocation, no I/O, no clock. One thread.
 */
#ifndef BALLAST_HV_AGENT_CHANNEL_H
#define BALLAST_HV_AGENT_CHANNEL_H

#include "common/protocol.h"
#include "hv/hv.h"

/* A report under pressure comes every 100 ms: 19,000 bytes a second. */
#define AGENT_CHANNEL_BYTES    UINT64_C(65536)
#define AGENT_CHANNEL_MESSAGES 50
/* Beyond the deadline that the agent was told, an answer may still be on its way. */
#define AGENT_CHANNEL_GRACE_US UINT64_C(500000)
/* Twice as long as what is said at rest may be missed: then it is greeted anew. */
#define AGENT_CHANNEL_SILENT_US UINT64_C(10000000)

struct agent_channel {
	struct protocol_lines lines;
	struct hv_agent agent;
	bool changed; /* agent, since its news were last taken */
	bool mended;  /* the first line after connecting may be the rest of one: no fault */
	uint64_t second, bytes, messages; /* what came in the second that began then */
	uint64_t heard;			  /* when it was opened, or something came */
	bool said_flood;
	uint64_t last_id;
	struct {
		uint64_t id, deadline; /* id 0: none is out */
		bool done;
		uint64_t came;
		int error;
	} request;
};

/* Somebody may be there from now on. text has PROTOCOL_MESSAGE_MAX + 3 bytes; returns the length.
 */
size_t agent_channel_open(struct agent_channel *channel, uint64_t now, char *text);
/* Nobody is any more. What runs fails with -ENOTCONN. */
void agent_channel_close(struct agent_channel *channel);
/*
 * Nothing came for so long that whoever was greeted may have gone: nobody tells when an agent is
 * started anew, or its guest, and one that is not greeted says nothing. It is to be closed and
 * opened again.
 */
bool agent_channel_silent(const struct agent_channel *channel, uint64_t now);

/* How many bytes may be read now; 0: not before *ret_again. */
size_t agent_channel_room(struct agent_channel *channel, uint64_t now, uint64_t *ret_again);
void agent_channel_input(
	struct agent_channel *channel, uint64_t now, const char *data, size_t size);
/* True once: what is known of it changed, or it reported; the event that tells it. */
bool agent_channel_news(
	struct agent_channel *channel, const struct hv_uuid *uuid, struct hv_event *ret_event);
/* A fault that whoever carries the bytes saw. */
void agent_channel_fault(struct agent_channel *channel, const char *what);

/*
 * The text of a request; 0 or -ENOTCONN, -EOPNOTSUPP, -EAGAIN: one is out. Then the answer is in
 * agent_channel_answer(), at the latest at its deadline.
 */
int agent_channel_reclaim(struct agent_channel *channel, uint64_t now, const struct hv_call *call,
	char *text, size_t *ret_length);
/* True once: the request ended; *ret_error 0 or negative, *ret_came bytes. */
bool agent_channel_answer(
	struct agent_channel *channel, uint64_t now, int *ret_error, uint64_t *ret_came);

#endif
