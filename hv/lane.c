/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lane: see lane.h. The core has one for each VM and says when its wishes may be called. */
#include <config.h>

#include "hv/lane.h"

#include <assert.h>

void lane_init(struct lane *lane, const struct hv_uuid *uuid)
{
	*lane = (struct lane){ .uuid = *uuid };
}

void lane_want_target(struct lane *lane, uint64_t seq, uint64_t target, uint64_t ceiling)
{
	lane->want_target = true;
	lane->seq = seq;
	lane->target = target;
	lane->ceiling = ceiling;
}

void lane_drop_target(struct lane *lane)
{
	lane->want_target = false;
}

/* Takes the first wish in the fixed order; false: there is none. */
static bool take_wish(struct lane *lane)
{
	struct hv_call *call = &lane->call;

	if (lane->want_info) {
		lane->want_info = false;
		call->type = HV_INFO;
		call->agent = lane->agent;
		call->act = lane->act;
	} else if (lane->change) {
		call->type = HV_KNOBS;
		call->change = lane->change;
		lane->change = NULL;
	} else if (lane->want_attach) {
		lane->want_attach = false;
		call->type = HV_ATTACH;
		call->persistent = lane->persistent;
	} else if (lane->want_target) {
		lane->want_target = false;
		lane->call_seq = lane->seq;
		call->type = HV_TARGET;
		call->target = lane->target;
		call->ceiling = lane->ceiling;
	} else if (lane->want_period) {
		lane->want_period = false;
		call->type = HV_PERIOD;
		call->period_s = lane->period_s;
	} else if (lane->want_unthrottle) {
		lane->want_unthrottle = false;
		call->type = HV_UNTHROTTLE;
	} else if (lane->want_stats) {
		lane->want_stats = false;
		call->type = HV_STATS;
	} else {
		return false;
	}
	return true;
}

bool lane_next(struct lane *lane, uint64_t now, uint64_t token, struct hv_call *ret_call)
{
	if (lane->busy)
		return false;
	lane->call = (struct hv_call){ .token = token, .uuid = lane->uuid };
	if (!take_wish(lane))
		return false;
	lane->busy = true;
	lane->late = false;
	lane->since = now;
	*ret_call = lane->call;
	return true;
}

void lane_undo(struct lane *lane)
{
	assert(lane->busy);
	lane->busy = lane->late = false;
	switch (lane->call.type) {
	case HV_INFO:
		lane->want_info = true;
		break;
	case HV_TARGET:
		/* Not where a newer one was wished, or wished and dropped, meanwhile. */
		if (lane->seq == lane->call_seq)
			lane->want_target = true;
		break;
	case HV_KNOBS:
		lane->change = lane->call.change;
		break;
	case HV_ATTACH:
		lane->want_attach = true;
		break;
	case HV_PERIOD:
		lane->want_period = true;
		break;
	case HV_UNTHROTTLE:
		lane->want_unthrottle = true;
		break;
	default:
		lane->want_stats = true;
		break;
	}
}

bool lane_done(struct lane *lane, uint64_t token, int error, uint64_t *ret_seq)
{
	if (!lane->busy || lane->call.token != token)
		return false;
	lane->busy = lane->late = false;
	*ret_seq = 0;
	if (lane->call.type == HV_TARGET) {
		*ret_seq = lane->call_seq;
		if (error == 0 && lane->call_seq > lane->applied_seq)
			lane->applied_seq = lane->call_seq;
	}
	return true;
}

uint64_t lane_deadline(const struct lane *lane, uint64_t deadline_us)
{
	/* A description is no call of the VM's: a slow hypervisor says nothing about its guest. */
	if (!lane->busy || lane->late || lane->call.type == HV_INFO)
		return UINT64_MAX;
	return lane->since + deadline_us;
}

bool lane_check(struct lane *lane, uint64_t now, uint64_t deadline_us)
{
	if (now < lane_deadline(lane, deadline_us))
		return false;
	lane->late = true;
	return true;
}
