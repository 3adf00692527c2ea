/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lane: what is to be called for one VM, one call at a time.
 *
 * Balloon calls may never return (a stopped QEMU hangs them for ever), so a VM has at most one
 * call out, and never a second on top. Wishes are level-triggered: of targets only the newest
 * counts. Their order is fixed: description, knobs, a port, target (with its ceiling), statistics'
 * period, lifting a throttle, statistics. Past its deadline a lane is not answering and costs
 * nothing more until it answers.
 *
 * Pure: now is passed in, no I/O, no allocation. The core's thread only.
 */
#ifndef BALLAST_HV_LANE_H
#define BALLAST_HV_LANE_H

#include "hv/hv.h"

struct lane {
	struct hv_uuid uuid;
	/* wishes */
	bool want_info, want_period, want_unthrottle, want_stats, want_target, want_attach;
	enum hv_way agent;		      /* goes with every description */
	bool act;			      /* the same */
	bool persistent;		      /* of want_attach */
	const struct hv_knobs_change *change; /* the owner's, to be written; NULL: none */
	uint64_t seq, target, ceiling;	      /* of the newest target */
	uint64_t period_s;
	/* the call that is out */
	bool busy;
	struct hv_call call;
	uint64_t call_seq; /* of a target */
	uint64_t since;
	bool late; /* past its deadline */
	/* results */
	uint64_t applied_seq; /* the newest target whose call returned well */
};

void lane_init(struct lane *lane, const struct hv_uuid *uuid);

/* Supersedes a target that was not called yet. seq grows. */
void lane_want_target(struct lane *lane, uint64_t seq, uint64_t target, uint64_t ceiling);
void lane_drop_target(struct lane *lane);

/* The next call to make, if any: true, with *ret_call; the lane is busy from now. */
bool lane_next(struct lane *lane, uint64_t now, uint64_t token, struct hv_call *ret_call);

/* The call could not be submitted: its wish stands again. */
void lane_undo(struct lane *lane);

/*
 * The call with that token returned. False: not this lane's. *ret_seq is the target's seq, 0 for
 * other calls.
 */
bool lane_done(struct lane *lane, uint64_t token, int error, uint64_t *ret_seq);

/* When the call that is out is late; UINT64_MAX: never, for none is, or it is, or not the VM's. */
uint64_t lane_deadline(const struct lane *lane, uint64_t deadline_us);
/* True once, when the call passed its deadline. */
bool lane_check(struct lane *lane, uint64_t now, uint64_t deadline_us);

#endif
