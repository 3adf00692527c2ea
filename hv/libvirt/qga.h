/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qga: a guest that is reached through QEMU's guest agent. Not for others than
 *
 *   qga.c         who is asked when, by which thread, and the requests of the core
 *   qga_guest.c   one round with one guest: files, figures, the agent's own core
 *   qga_text.c    what is said and answered, as text
 *
 * What says so belongs to hv->agents_lock; all else does as long as busy is not set, and to the
 * thread that set it while it is.
 */
#ifndef BALLAST_HV_LIBVIRT_QGA_H
#define BALLAST_HV_LIBVIRT_QGA_H

#include "guest-agent/agent.h"
#include "hv/libvirt/backend.h"
#include "hv/libvirt/qga_text.h"

/* Rounds that failed, or were slow, are counted to this: the pause doubles so often. */
#define LV_QGA_DOUBLINGS 5
/* A round that takes so many times what is slow is broken off. */
#define LV_QGA_TOO_SLOW 4

struct lv_qga {
	struct hv_uuid uuid;
	/* The lock's, always. */
	struct lv_qga *next;
	uint64_t named;	      /* by a description, when */
	bool leaves;	      /* no description names it any more */
	bool busy;	      /* a thread is at it */
	bool listens;	      /* to requests */
	uint64_t rested_at;   /* when it was last seen to have no job; 0: it has, or was not seen */
	struct hv_task *task; /* the request that is out; NULL: none */
	uint64_t deadline;    /* of it */
	bool fresh;	      /* nobody has seen it yet */

	/* The thread's that is at it. */
	bool doubtful; /* it did not answer when it was asked last, or was slow, or never was */
	uint64_t due;
	unsigned int failures; /* less what went well since; counted to DOUBLINGS */
	struct hv *hv;
	virConnectPtr conn;
	virDomainPtr dom;
	uint64_t began;		 /* this round */
	int failed;		 /* it is asked nothing more in this round */
	char why[PROTOCOL_TEXT]; /* of -EPERM */
	int refusal;		 /* what the guest's kernel said to the last -EACCES */
	bool ask;		 /* call is to be handed to the agent's core */
	struct hv_call call;
	uint64_t now; /* of the agent's core */
	bool met, pressure, probes;
	bool reclaims, swappiness; /* there is memory.reclaim; and it takes that */
	uint64_t page;		   /* bytes, in which the guest's kernel counts */
	struct agent_guest seen;   /* the last reading */
	uint64_t restores, stolen;
	struct agent_channel channel;
	struct agent agent;
	struct agent_platform platform;
	char software[PROTOCOL_TEXT];
	char file[QGA_FILE + 1];
};

/*
 * Asks what is due. dom and conn are set and failed is 0, or failed says why not. Returns 0, or
 * what the request that was to be handed over (ask, call) failed with; when to come back is in due.
 */
int lv_qga_round(struct lv_qga *q);

#endif
