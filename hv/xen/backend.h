/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * backend: what the files of the Xen backend share. Not for others.
 *
 *   xen.c       the table: open, close, submit, next; what hypercalls alone can answer
 *   control.c   the control thread: connecting, watches, looking at domains, listing, describing,
 *               and what domain.h says is due
 *   perform.c   each call that a worker makes, step by step
 *   agents.c    the agents' thread: the keys in which agents are spoken with
 *   domain store calls   know nothing of this
 *
 * Hypercalls do not block; xenstored may. So what is read within submit() is hypercalls only, and
 * all that speaks with xenstored has a thread: listing and describing the control thread's, agents
 * one of their own, as guests decide how much is to be done there, the others a worker's.
 *
 * Life: every thread has a reference of the handle. They are detached, so nobody waits for them;
 * when close() set `stopping` they leave at the next opportunity, and the last one frees all.
 */
#ifndef BALLAST_HV_XEN_BACKEND_H
#define BALLAST_HV_XEN_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>

#include "hv/workers/workers.h"
#include "hv/xen/domain.h"
#include "hv/xen/store.h"
#include "hv/xen/xen.h"

/* Domids are below 0x7ff0. */
#define XEN_DOMAINS_MAX 32752
/* Of a look at all: that many at once. */
#define XEN_BATCH 1024

/* What a thread speaks with, opened anew where the control thread's was. */
struct xen_link {
	struct store store;
	xc_interface *xc;
	uint64_t generation;
};

struct hv {
	atomic_uint refs;
	const struct xen_calls *calls;
	struct hv_queue queue;
	int wake_fd; /* wakes the control thread */
	uint64_t dom0_min;
	xc_interface *xc;	       /* of submit() */
	xc_domaininfo_t *submit_infos; /* room for XEN_BATCH */

	/*
	 * Taken before lock, and held from before a memory/target is written, or read anew, until
	 * the table says so: the last in the store is the last that is noted, and what was written
	 * here is not taken for somebody else's.
	 */
	pthread_mutex_t telling;
	pthread_mutex_t lock; /* for all below */
	bool stopping;
	bool connected;
	uint64_t generation; /* grows with every connection */
	struct hv_tasks listing;
	struct hv_workers workers;
	struct xen_link links[HV_WORKERS]; /* a worker's own each */
	struct domain *domains;		   /* by uuid */
	struct domain **by_domid;	   /* XEN_DOMAINS_MAX; those that the hypervisor has */
	uint64_t creations;
	uint64_t lives; /* grows when a domain is adopted, or is not any more */
	struct hv_tasks reclaims;

	struct xen_agents *agents; /* the agents' thread's, but for what wakes it */
	int agents_fd;

	/* The control thread's. */
	struct xen_link link;
	xc_domaininfo_t *infos; /* room for XEN_BATCH */
	uint64_t rescan_at;
	bool *watched; /* XEN_DOMAINS_MAX: memory/target of that domid */
};

/* ---- xen.c ---- */
struct hv *xen_get(struct hv *hv);
void xen_put(struct hv *hv);
/* Lock held: also one that has gone, or is not adopted; NULL. */
struct domain *xen_find_any(struct hv *hv, const struct hv_uuid *uuid);
/* Lock held: one that the hypervisor still has; NULL. */
struct domain *xen_find(struct hv *hv, const struct hv_uuid *uuid);
/* Lock held. */
void xen_forget(struct hv *hv, struct domain *domain);
/*
 * Lock held, given up while the hypervisor is asked: all domains, a batch at a time. fn has the
 * lock. -ENOTCONN.
 */
int xen_for_each_info(struct hv *hv, xc_interface *xc, xc_domaininfo_t *infos,
	void (*fn)(struct hv *hv, const xc_domaininfo_t *info));
/* -ENOTCONN. */
int xen_link_open(struct xen_link *link, const struct xen_calls *calls, uint64_t generation);
void xen_link_close(struct xen_link *link, const struct xen_calls *calls);

/* ---- control.c ---- */
void *xen_control_thread(void *hv);
void xen_wake(struct hv *hv);

/* ---- agents.c ---- */
/* -ENOMEM. */
int xen_agents_new(struct xen_agents **ret_agents);
void xen_agents_free(struct xen_agents *agents);
void *xen_agents_thread(void *hv);
/* There are domains, calls or a connection that it does not know of. */
void xen_agents_wake(struct hv *hv);

/* ---- perform.c ---- */
/* HV_INFO, on the control thread; others on a worker. The answer is in the task's event. */
void xen_describe(struct hv *hv, struct xen_link *link, struct hv_task *task);
void xen_perform(struct hv *hv, struct xen_link *link, struct hv_task *task);
/*
 * Writes memory/target where it still says what the copy does, and the hypervisor still has the
 * domain; one that is not the goal goes with a note of that. -ESTALE: it does not; -ENOENT: it has
 * gone.
 */
int xen_write_target(
	struct hv *hv, struct xen_link *link, const struct domain *domain, uint64_t kib);
/* Whether the hypervisor still has it, and it is not dying. *ret_info may be NULL. */
bool xen_lives(struct hv *hv, struct xen_link *link, uint32_t domid, xc_domaininfo_t *ret_info);
/* All that was noted of a domain; its knobs stay. */
int xen_remove_state(struct xen_link *link, const struct hv_uuid *uuid);
/* What is recorded of the domain by an earlier run, into it; what is of an earlier life goes. */
int xen_read_record(struct hv *hv, struct xen_link *link, struct domain *domain);

#endif
