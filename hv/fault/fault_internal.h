/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wrapper's inside: fault.c has rules and the way of calls and events, spoil.c what is done to
 * an answer. For nobody else.
 */
#ifndef BALLAST_HV_FAULT_INTERNAL_H
#define BALLAST_HV_FAULT_INTERNAL_H

#include "hv/fault/fault.h"

/* Where a hash cannot grow the element is not added, which its handle shows. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A call that is out. The backend inside knows it by a token of the wrapper's. */
struct fault_out {
	uint64_t token; /* the caller's */
	struct hv_call call;
	const struct fault_rule *rule; /* NULL: it is left alone */
	enum fault_out_state {
		FAULT_INSIDE,	/* with the backend inside */
		FAULT_HUNG,	/* not there yet */
		FAULT_ANSWERED, /* event is to be told at due */
	} state;
	uint64_t due;
	struct hv_event event;
	UT_hash_handle hh; /* by call.token */
};

/* What a VM's statistics were. */
struct fault_seen {
	struct hv_uuid uuid;
	struct hv_stats stats;
	uint64_t lies; /* told so far */
	UT_hash_handle hh;
};

struct hv {
	const struct hv_backend *backend;
	struct hv *inner;
	uint64_t now, random, next_token;
	struct fault_rule **rules; /* what is out points to them: none goes before close */
	size_t nr_rules;
	struct fault_out *out;
	struct fault_seen *seen;
};

/* By the seed, least and most included. */
uint64_t fault_draw(struct hv *hv, uint64_t least, uint64_t most);

/* Makes of an answer what the rule (NULL: none) says. */
void fault_spoil(struct hv *hv, const struct fault_rule *rule, struct hv_event *event);

#endif
