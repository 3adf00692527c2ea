/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * domain: what is known of one domain, and what is to be done about it by and by: pure, with the
 * time passed in. The backend's lock is held.
 *
 * tot_pages is what a domain has; memory/target is what it is told to have. Between the two stands
 * an offset (pages that the toolstack adds, video memory), which is learned where the domain rests.
 * max_pages is the hypervisor's own cap: slack over the target. It is raised before a target is,
 * and lowered only once the domain gave, so that a guest can never grow back into what it gave.
 *
 * Sizes here are KiB, as both interfaces have them.
 */
#ifndef BALLAST_HV_XEN_DOMAIN_H
#define BALLAST_HV_XEN_DOMAIN_H

#include "hv/hv.h"
#include "hv/xen/calls.h"

/* Handles of hash tables that cannot grow show it; see domains in xen.c. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define DOMAIN_PAGE_KIB 4
/* Nearer to its target than this it is at it. */
#define DOMAIN_NEAR_KIB 1024
/* What xl gives a domain over its memory. */
#define DOMAIN_SLACK_KIB 1024
/* No toolstack adds more than a PV shim's 68 MiB; beyond it something else was meant. */
#define DOMAIN_SLACK_MOST_KIB (256 * 1024)
/* A balloon that is told one page less may give a few. */
#define DOMAIN_PROBE_MOST_KIB 64
/* The largest domain that makes sense: 2^50 bytes. */
#define DOMAIN_MOST_KIB (UINT64_C(1) << 40)

struct domain {
	struct hv_uuid uuid;
	uint32_t domid;
	xen_domain_handle_t handle;
	uint64_t creation; /* counts: another is another domain under the same uuid */
	char *name;
	UT_hash_handle hh;

	/* The last look of the hypervisor's. */
	bool seen; /* in the look that is being taken */
	uint32_t flags;
	uint32_t cpupool;
	uint64_t tot_kib, max_kib;
	uint64_t moved_at; /* when tot_kib last did */
	bool ran;	   /* it was there before us, or was seen to run */

	/* memory/target as it stands in the store, and whether there is one. */
	bool adopted;
	uint64_t stored_kib;
	uint64_t words; /* counts where somebody else wrote another; not the same in two lives */
	uint64_t words_said; /* what that was when the core was told */

	/* What was written when the connection went: it may stand in the store. 0: nothing. */
	uint64_t doubt_kib, doubt_goal_kib, doubt_ceiling_kib;

	/* What is wanted: stored_kib, or next to it where the guest was nudged. */
	uint64_t goal_kib;
	uint64_t recorded_kib; /* what an earlier run meant, until it is adopted; 0: as it stands */
	bool ours;	       /* a target was set here: max_pages follows */
	bool act;	       /* what was begun with it is gone on with */

	uint64_t static_max_kib; /* 0: none is said */
	uint64_t base_kib;	 /* of the offset: what the toolstack says that it added */
	bool offset_known;
	int64_t offset_kib;
	bool slack_known; /* recorded, or taken */
	uint64_t slack_kib;

	uint64_t ceiling_kib; /* recorded; 0: none */
	uint64_t period_s;    /* statistics are on; 0: off */
	uint64_t updates;     /* statistics read since the driver was seen */
	bool driver;	      /* a balloon was seen to work */
	uint64_t probe_kib;   /* tot_kib when a page was asked for; 0: none was */
	uint64_t probed_at;   /* the first time */
	bool warned;	      /* that it has none, and is populated on demand */
	bool probe_up;
	bool probe_missed; /* it moved since, and for another reason, or need not move for it */

	uint64_t nudge_at, nudge_pause; /* the next nudge; 0: none is due */
	uint64_t max_at;		/* max_pages is not looked at before */
	uint64_t gone_at;		/* not in the hypervisor any more since; 0: it is */
	uint64_t ignored_until;		/* no memory/target was there */
};

/* A look of the hypervisor's at it. True: its size moved. */
bool domain_look(struct domain *d, uint64_t now, const xc_domaininfo_t *info, uint64_t rest);

/* Of a copy with stored_kib, before it is adopted: what an earlier run noted as its goal. */
void domain_recorded_goal(struct domain *d, uint64_t kib);

/* What memory/target says. True: somebody else wrote it, and it is their word now. */
bool domain_told(struct domain *d, uint64_t kib);

/*
 * We may have written it, with what goal and ceiling: the connection was lost before that was
 * answered. Where it stands when memory/target is read the next time it was, and is no word of
 * somebody else's.
 */
void domain_doubt(struct domain *d, uint64_t kib, uint64_t goal_kib, uint64_t ceiling_kib);

/* We wrote it: a target (not a nudge). */
void domain_set(struct domain *d, uint64_t now, uint64_t kib, const struct xen_times *times);

/* What it has, as targets count. */
uint64_t domain_actual_kib(const struct domain *d);
/* What it has beside. */
uint64_t domain_overhead_kib(const struct domain *d);
/* max_pages for a target. */
uint64_t domain_max_kib(const struct domain *d, uint64_t target_kib);
/* The most that it may be told: the lesser of what the toolstack says. */
uint64_t domain_most_kib(const struct domain *d);
enum hv_run_state domain_state(const struct domain *d);

/*
 * Once, of a guest that is populated on demand below its maximum, and has shown no driver for so
 * long that it has none: the hypervisor crashes it when it uses more.
 */
bool domain_warns(struct domain *d, uint64_t now, const struct xen_times *times);

/* What is due. */
enum domain_deed {
	DOMAIN_NOTHING,
	/*
	 * Write *ret_kib where stored_kib stands: who obeys has a driver. It is one page, and the
	 * only thing that a guest is told before its driver is known. One that has
	 * control/feature-balloon when it is adopted is not told even that, but Linux's driver
	 * does not write that key, and shows itself by nothing else.
	 */
	DOMAIN_PROBE,
	DOMAIN_NUDGE, /* the same: it stands short of its target */
	DOMAIN_MAX,   /* set max_pages to *ret_kib */
	DOMAIN_CLEAR, /* the probe is over: write goal_kib back */
};
enum domain_deed domain_due(
	struct domain *d, uint64_t now, const struct xen_times *times, uint64_t *ret_kib);
/* It was written. */
void domain_wrote(struct domain *d, uint64_t now, const struct xen_times *times,
	enum domain_deed deed, uint64_t kib);

#endif
