/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One domain; see domain.h. */
#include <config.h>

#include "hv/xen/domain.h"

#define MAX_PAUSE_US UINT64_C(1000000)

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static int64_t offset(const struct domain *d)
{
	return d->offset_known ? d->offset_kib : (int64_t)d->base_kib;
}

uint64_t domain_actual_kib(const struct domain *d)
{
	int64_t kib = (int64_t)d->tot_kib - offset(d);

	return kib > 0 ? (uint64_t)kib : 0;
}

uint64_t domain_overhead_kib(const struct domain *d)
{
	return less(d->tot_kib, domain_actual_kib(d));
}

uint64_t domain_max_kib(const struct domain *d, uint64_t target_kib)
{
	return target_kib + d->slack_kib;
}

uint64_t domain_most_kib(const struct domain *d)
{
	return d->static_max_kib ? d->static_max_kib : DOMAIN_MOST_KIB;
}

enum hv_run_state domain_state(const struct domain *d)
{
	if (d->flags & (XEN_DOMINF_dying | XEN_DOMINF_shutdown))
		return HV_PAUSED;
	if (d->flags & XEN_DOMINF_paused)
		return d->ran ? HV_PAUSED : HV_STARTING;
	return HV_RUNNING;
}

/* now may be from before the last look: it was read without the lock. */
static bool rests(const struct domain *d, uint64_t now, uint64_t rest)
{
	return now >= d->moved_at + rest;
}

/* Near its target it is at it, and what is between the two is the toolstack's. */
static void learn_offset(struct domain *d, uint64_t now, uint64_t rest)
{
	int64_t off = (int64_t)d->tot_kib - (int64_t)d->goal_kib;

	if (d->offset_known || !d->adopted || !rests(d, now, rest) || d->probe_kib)
		return;
	if (off - (int64_t)d->base_kib > DOMAIN_NEAR_KIB ||
		off - (int64_t)d->base_kib < -DOMAIN_NEAR_KIB)
		return;
	d->offset_kib = off;
	d->offset_known = true;
}

/* What max_pages has over the target, where nobody has recorded it. */
static void learn_slack(struct domain *d)
{
	uint64_t slack;

	if (d->slack_known || !d->adopted || !d->max_kib)
		return;
	slack = less(d->max_kib, d->stored_kib);
	/* Some toolstacks leave it at the maximum for ever. */
	if (d->static_max_kib && d->max_kib >= d->static_max_kib && slack > DOMAIN_SLACK_MOST_KIB)
		slack = d->max_kib - d->static_max_kib;
	if (slack > DOMAIN_SLACK_MOST_KIB)
		slack = DOMAIN_SLACK_KIB;
	/* Without it the guest could never have all that it is told. */
	if (slack < d->base_kib)
		slack = d->base_kib;
	d->slack_kib = slack;
	d->slack_known = true;
}

/* Whether it just did what it was told, and nothing else: one page up or down. */
static void look_at_probe(struct domain *d)
{
	uint64_t moved = apart(d->tot_kib, d->probe_kib);

	if (!d->probe_kib || moved == 0)
		return;
	if (moved <= DOMAIN_PROBE_MOST_KIB && (d->tot_kib > d->probe_kib) == d->probe_up) {
		d->driver = true;
		return;
	}
	/* It boots, or was on its way: looked at from there on, and told again once it rests. */
	d->probe_kib = d->tot_kib;
	d->probe_missed = true;
}

bool domain_look(struct domain *d, uint64_t now, const xc_domaininfo_t *info, uint64_t rest)
{
	uint64_t tot_kib = info->tot_pages * DOMAIN_PAGE_KIB;
	bool moved = tot_kib != d->tot_kib;

	d->flags = info->flags;
	d->cpupool = info->cpupool;
	d->max_kib = info->max_pages * DOMAIN_PAGE_KIB;
	d->tot_kib = tot_kib;
	d->ran |= info->cpu_time > 0 || !(info->flags & XEN_DOMINF_paused);
	if (moved) {
		d->moved_at = now;
		look_at_probe(d);
		d->nudge_pause = 0;
	}
	learn_slack(d);
	learn_offset(d, now, rest);
	return moved;
}

/* A page beside it, it was probed or nudged; anything else is somebody else's word. */
void domain_recorded_goal(struct domain *d, uint64_t kib)
{
	d->recorded_kib = kib && apart(kib, d->stored_kib) == DOMAIN_PAGE_KIB ? kib : 0;
}

void domain_doubt(struct domain *d, uint64_t kib, uint64_t goal_kib, uint64_t ceiling_kib)
{
	d->doubt_kib = kib;
	d->doubt_goal_kib = goal_kib;
	d->doubt_ceiling_kib = ceiling_kib;
}

/* memory/target was read. */
static void settle_doubt(struct domain *d, uint64_t kib)
{
	if (d->doubt_kib && d->doubt_kib == kib) {
		d->stored_kib = kib;
		d->goal_kib = d->doubt_goal_kib;
		d->ceiling_kib = d->doubt_ceiling_kib;
		if (d->ceiling_kib)
			d->ours = d->act = true;
		d->probe_kib = 0;
		d->nudge_pause = 0;
		d->max_at = 0;
	}
	d->doubt_kib = 0;
}

bool domain_told(struct domain *d, uint64_t kib)
{
	bool first = !d->adopted, foreign;

	settle_doubt(d, kib);
	foreign = !first && kib != d->stored_kib;
	d->adopted = true;
	d->stored_kib = kib;
	if (!first && !foreign)
		return false;
	/* Before anybody sets another target. */
	learn_slack(d);
	d->goal_kib = first && d->recorded_kib ? d->recorded_kib : kib;
	d->probe_kib = 0;
	d->nudge_pause = 0;
	d->words += foreign;
	return foreign;
}

void domain_set(struct domain *d, uint64_t now, uint64_t kib, const struct xen_times *times)
{
	d->stored_kib = d->goal_kib = kib;
	d->doubt_kib = 0;
	d->ours = d->act = true;
	d->probe_kib = 0;
	d->nudge_pause = times->nudge_first;
	d->nudge_at = now + d->nudge_pause;
	d->max_at = 0;
}

/*
 * A page less, or, where the guest has not all it may have yet and is populated on demand, more.
 * One that moved for another reason may have come to rest just there: it is told the goal itself.
 */
static uint64_t probe_goal(struct domain *d)
{
	bool more = (d->flags & XEN_DOMINF_hvm_guest) && d->goal_kib < d->static_max_kib;
	bool back = d->stored_kib != d->goal_kib;

	d->probe_up = more != back;
	if (back)
		return d->goal_kib;
	return more ? d->goal_kib + DOMAIN_PAGE_KIB : d->goal_kib - DOMAIN_PAGE_KIB;
}

static enum domain_deed nudge_due(
	struct domain *d, uint64_t now, const struct xen_times *times, uint64_t *ret_kib)
{
	if (!d->act)
		return DOMAIN_NOTHING;
	if (!d->ours || !d->driver || apart(domain_actual_kib(d), d->goal_kib) <= DOMAIN_NEAR_KIB) {
		d->nudge_pause = 0;
		if (!d->driver || d->stored_kib == d->goal_kib)
			return DOMAIN_NOTHING;
		*ret_kib = d->goal_kib; /* it is there: what it was nudged with goes */
		return DOMAIN_NUDGE;
	}
	if (d->nudge_pause == 0) {
		d->nudge_pause = times->nudge_first;
		d->nudge_at = now + d->nudge_pause;
	}
	if (now < d->nudge_at)
		return DOMAIN_NOTHING;
	/* The same value once more does nothing: a page off it does, and back the next time. */
	*ret_kib = d->stored_kib == d->goal_kib ? d->goal_kib - DOMAIN_PAGE_KIB : d->goal_kib;
	return DOMAIN_NUDGE;
}

/* A cap over what it has is lowered only once it has given. */
static enum domain_deed max_due(struct domain *d, uint64_t now, uint64_t *ret_kib)
{
	uint64_t max = domain_max_kib(d, d->goal_kib);

	if (!d->act || !d->ours || !d->slack_known || now < d->max_at || d->max_kib == max)
		return DOMAIN_NOTHING;
	if (max < d->max_kib && d->tot_kib > max)
		return DOMAIN_NOTHING;
	*ret_kib = max;
	return DOMAIN_MAX;
}

bool domain_warns(struct domain *d, uint64_t now, const struct xen_times *times)
{
	if (d->warned || d->driver || !d->probed_at || !(d->flags & XEN_DOMINF_hvm_guest) ||
		d->goal_kib + DOMAIN_NEAR_KIB >= d->static_max_kib ||
		now < d->probed_at + times->driver)
		return false;
	d->warned = true;
	return true;
}

enum domain_deed domain_due(
	struct domain *d, uint64_t now, const struct xen_times *times, uint64_t *ret_kib)
{
	enum domain_deed deed;

	if (!d->adopted || d->gone_at || d->goal_kib <= DOMAIN_PAGE_KIB)
		return DOMAIN_NOTHING;
	if (d->driver && d->probe_kib) {
		*ret_kib = d->goal_kib;
		return DOMAIN_CLEAR;
	}
	deed = max_due(d, now, ret_kib);
	if (deed != DOMAIN_NOTHING || domain_state(d) != HV_RUNNING)
		return deed;
	if (!d->driver && d->period_s &&
		(!d->probe_kib || (d->probe_missed && rests(d, now, times->rest)))) {
		*ret_kib = probe_goal(d);
		return DOMAIN_PROBE;
	}
	return nudge_due(d, now, times, ret_kib);
}

void domain_wrote(struct domain *d, uint64_t now, const struct xen_times *times,
	enum domain_deed deed, uint64_t kib)
{
	uint64_t pause = d->nudge_pause * 2;

	if (deed == DOMAIN_MAX) {
		d->max_at = now + MAX_PAUSE_US;
		return;
	}
	d->stored_kib = kib;
	d->doubt_kib = 0;
	if (deed == DOMAIN_PROBE) {
		if (!d->probed_at)
			d->probed_at = now;
		d->probe_kib = d->tot_kib;
		/* One that stands there already does not move for it: told again, the other way. */
		d->probe_missed = domain_actual_kib(d) == kib;
	} else if (deed == DOMAIN_CLEAR) {
		d->probe_kib = 0;
	} else if (deed == DOMAIN_NUDGE) {
		d->nudge_pause = pause < times->nudge_most ? pause : times->nudge_most;
		d->nudge_at = now + d->nudge_pause;
	}
}
