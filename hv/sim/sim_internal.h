/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the simulator's files share: the host's state (sim.c), what waits in order of time and what
 * is ready to be read (queue.c), how calls are answered (answer.c), agents (agents.c), who is
 * charged page by page (paging.c). For nobody else.
 */
#ifndef BALLAST_HV_SIM_INTERNAL_H
#define BALLAST_HV_SIM_INTERNAL_H

#include <uthash.h>

#include "hv/sim/sim.h"
#include "policy/charge.h"

#define SIM_NEVER    UINT64_MAX
#define SIM_US_PER_S UINT64_C(1000000)

/* Of a VM whose VMM faults page by page: paging.c. */
struct sim_paging {
	struct hv *hv;
	struct sim_guest *next;
	size_t nr;	    /* among them */
	struct memcg *leaf; /* charged, with a reference; NULL: nobody resolves its faults yet */
	struct charge_stock *stock;
	uint64_t charged; /* pages that it has */
	uint64_t since;	  /* a fault waits from then on */
	bool waits, busy; /* busy: faults were resolved since it was looked at */
	bool left;	  /* the daemon that resolved them is gone: they are the kernel's */
	struct hv_paging counts;
};
struct sim_agent; /* agents.c */

struct sim_guest {
	struct hv_uuid uuid;
	char *name, *partition;
	struct guest guest;
	struct hv_knobs metadata, memtune;
	uint64_t overhead, ceiling, targets, lowest_target;
	uint64_t partial_every, stats_calls;
	unsigned int kinds;
	enum hv_job job;
	bool incoming;
	uint64_t throttle, started;
	struct sim_paging paging;
	struct sim_agent *agent; /* NULL: it has none */
	UT_hash_handle by_uuid, by_name;
};

struct sim_item {
	uint64_t due, order;   /* order: of those due at once, first come */
	bool is_call, dropped; /* dropped: its client is gone */
	struct hv_call call;
	struct sim_guest *vm; /* of an action; NULL: the host's */
	struct sim_action action;
};

struct sim_ready {
	struct hv_event event;
	struct sim_ready *next;
};

struct hv {
	struct sim_host host;
	uint64_t now, random, order;
	bool up;
	struct sim_guest *by_uuid, *by_name;
	struct sim_item *heap;
	size_t nr_heap, heap_size, nr_calls;
	struct sim_item *hung; /* calls that wait for a guest's process to go on */
	size_t nr_hung, hung_size;
	struct sim_ready *first, **last;
	uint64_t swapped, swapped_out, beyond, pressure_at;
	/* Until then no guest does anything by itself; 0: one was touched, all are to be looked at.
	 */
	uint64_t guests_at;
	uint64_t disk_at, mixed_until; /* the disk was looked at then; several use it until then */
	struct rival_guest *rival_guests; /* room for all */
	size_t rival_guests_size;
	bool lost; /* an event could not be kept */
	struct sim_guest *paged;
	size_t nr_paged;
	struct charge_stocks *stocks; /* of the daemon's tree; NULL: nobody is paged by one */
	uint64_t refused, room_job;   /* the group that refused last; the room asked for last */
};

/* ---- queue.c ---- */

/* By the seed, least and most included. */
uint64_t sim_draw(struct hv *hv, uint64_t least, uint64_t most);

int sim_items_grow(struct sim_item **items, size_t *size);
/* Sets the item's order. -ENOMEM. */
int sim_heap_add(struct hv *hv, const struct sim_item *item);
/* The heap is not empty. */
struct sim_item sim_heap_take(struct hv *hv);

/* For next(). Takes over what the event owns; where memory is out it is lost, and hv->lost set. */
void sim_tell(struct hv *hv, struct hv_event *event);
/* A VM's event; lost where the connection is. */
void sim_tell_vm(
	struct hv *hv, enum hv_event_type type, const struct sim_guest *vm, uint64_t actual);

/* ---- paging.c ---- */

/* The VM's faults are to be resolved by the daemon. */
void sim_paging_init(struct hv *hv, struct sim_guest *vm);
/* After each step: what came and went by no fault is charged as well, stocks are given back. */
void sim_paging_settle(struct hv *hv);

/* ---- answer.c ---- */

/* Answers the call, or puts it with those that hang. */
void sim_answer(struct hv *hv, const struct sim_item *item);
/* Calls that hang no more are answered after a delay. */
void sim_release_hung(struct hv *hv, uint64_t delay_us);
/* Resident memory of VMs, their processes and others. */
uint64_t sim_host_used(const struct hv *hv);
/* A copy, NULL of NULL; *error becomes -ENOMEM where it fails, and is left as it is else. */
char *sim_copy_text(const char *text, int *error);
struct hv_knobs sim_copy_knobs(const struct hv_knobs *knobs, int *error);

/* ---- agents.c ---- */

/* Of a guest that has one; all take a guest that has none. -ENOMEM. */
int sim_agent_new(struct hv *hv, struct sim_guest *vm);
void sim_agent_free(struct sim_guest *vm);
/* The guest it ran in is no more, or starts over. */
void sim_agent_end(struct sim_guest *vm);
/* It hangs, and reads nothing; or it goes on. */
void sim_agent_silence(struct sim_guest *vm, bool silent);
/* Who was connected is gone, and somebody else is. */
void sim_agent_new_client(struct sim_guest *vm);
/* When it next does anything, or the host gives up on an answer of its; SIM_NEVER. */
uint64_t sim_agent_next(const struct sim_guest *vm);
/* Does what is due now. */
void sim_agent_step(struct sim_guest *vm);
/* 0: the call is answered later; else as HV_RECLAIM. */
int sim_agent_reclaim(struct sim_guest *vm, const struct hv_call *call);

#endif
