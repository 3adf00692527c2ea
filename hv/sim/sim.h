/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sim: the simulated hypervisor, a backend like any other (hv.h), with a host and guests behind it
 * that live in virtual time.
 *
 * hv_sim.open() makes an empty host; the functions here put guests on it, write what is to happen
 * (sim_at) and move time (sim_advance). Nothing happens between two calls of sim_advance(), no
 * clock is read and chance comes from the seed, so every run repeats exactly. virtual.h drives it
 * together with the core.
 *
 * It answers like libvirt was seen to: calls take some milliseconds and return before anything
 * moved; statistics, period and target of a guest whose process stands still do not return before
 * it goes on; lists, descriptions and process figures always do; a change of memtune is told by
 * nobody, one of the metadata is.
 *
 * hv_sim.fd() is -1: next() is to be called after each sim_advance(). One thread. Amounts are
 * bytes, times virtual microseconds from 0.
 */
#ifndef BALLAST_HV_SIM_SIM_H
#define BALLAST_HV_SIM_SIM_H

#include "hv/core.h"
#include "hv/hv.h"
#include "hv/sim/guest.h"
#include "hv/sim/rival.h"

extern const struct hv_backend hv_sim;

/* The host. sim_host_default() has the measured figures. */
struct sim_host {
	uint64_t total;	 /* memory; 0: HV_HOST says unknown, and the host never swaps */
	uint64_t others; /* what others than VMs use */
	uint64_t swap;	 /* of the host */
	uint64_t seed;
	uint64_t call_min_us, call_max_us; /* what a call takes */
	uint64_t boot_min_us, boot_max_us; /* from a start or reboot to the balloon driver */
	const struct rival *rival;	   /* who takes memory when it runs short */
	const struct rival_group *groups;  /* borrowed; for rivals that know groups */
	size_t nr_groups;
};

void sim_host_default(struct sim_host *ret_host);
/* Before the first guest. -EINVAL: minima over maxima; -EBUSY. */
int sim_host_set(struct hv *hv, const struct sim_host *host);

struct sim_vm {
	const char *name;
	struct guest_params guest;
	struct hv_knobs metadata, memtune; /* copied */
	const char *partition;		   /* NULL: none */
	uint64_t overhead;		   /* of its process */
	uint64_t period_s;		   /* of the statistics, before anybody sets one */
	uint64_t ceiling;		   /* recorded by an earlier ballast; 0: none */
	uint64_t actual;		   /* at the start, set by an earlier ballast; 0: all */
	uint64_t host_swapped;		   /* at the start */
	uint64_t partial_every; /* of so many statistics calls one is incomplete; 0: none */
	bool off;		/* at the start; else it runs, its driver is there */
	bool incoming;		/* at the start: by migration, until SIM_ARRIVE */
	unsigned int kinds;	/* enum hv_kind */
	uint64_t throttle;	/* memory.high of its cgroup; 0: none */
	bool pager;		/* a microVM: the daemon resolves its page faults; no balloon */
};

void sim_vm_default(struct sim_vm *ret_vm);
/* -EINVAL: no name or no memory; -EEXIST: the name is taken; -ENOMEM. */
int sim_vm_add(struct hv *hv, const struct sim_vm *vm);

enum sim_action_type {
	SIM_WORK, /* work, bytes, rate */
	SIM_RUN,  /* program; its seed is drawn */
	SIM_IDLE, /* ends all work */
	SIM_PAUSE,
	SIM_RESUME,
	SIM_STOP, /* its process stands still: SIGSTOP */
	SIM_WAKE,
	SIM_REBOOT,
	SIM_OFF,
	SIM_START,
	SIM_METADATA_SOFT_LIMIT, /* bytes */
	SIM_MEMTUNE_SOFT_LIMIT,	 /* bytes; no event comes */
	SIM_SETMEM,		 /* bytes: somebody else sets the target */
	SIM_STUCK,    /* bytes: its balloon gets no further down than that; 0: it does again */
	SIM_SWAP_OUT, /* bytes of it go to the host's swap */
	SIM_MIGRATE,  /* the jobs: each goes on until SIM_JOB_END */
	SIM_POSTCOPY,
	SIM_SAVE,
	SIM_SNAPSHOT,
	SIM_BACKUP,
	SIM_JOB_END,
	SIM_ARRIVE,	 /* one that is incoming runs here now */
	SIM_PLUG,	 /* bytes more of memory */
	SIM_PLUG_DEVICE, /* that reaches all of its memory: all of it is resident */
	SIM_UNPLUG_DEVICE,
	SIM_RECREATE,	  /* ended and started anew, and no event tells */
	SIM_AGENT_SILENT, /* its agent hangs ... */
	SIM_AGENT_SPEAKS, /* ... and goes on */
	SIM_THROTTLE,	  /* bytes: memory.high of its cgroup; 0: none */
	SIM_OTHERS,	  /* bytes: what others than VMs use; of the host: vm NULL */
	SIM_DOWN,	  /* the connection is lost; vm NULL */
	SIM_UP,
};

struct sim_action {
	enum sim_action_type type;
	enum guest_work_type work;
	uint64_t bytes, rate;
	struct program_params program; /* what it points to is borrowed */
};

/* Does it at that time. -ENOENT: no such VM; -EINVAL: the time is past; -ENOMEM. */
int sim_at(struct hv *hv, uint64_t time, const char *vm, const struct sim_action *action);

uint64_t sim_now(const struct hv *hv);
/* When something happens next; UINT64_MAX: only when a call is submitted. */
uint64_t sim_next(const struct hv *hv);
/* Moves time; now never goes back. -ENOMEM: some event or answer is lost, as real ones may be. */
int sim_advance(struct hv *hv, uint64_t now);

/* As for a client that is gone and comes back: calls and events are lost, HV_EVENT_UP comes. */
void sim_new_client(struct hv *hv);

/*
 * VMMs that fault page by page. Their faults wait until the core has a group for them. From then on
 * each page is charged to it with charge_try() before it is there, from a stock of the VMM's own,
 * and what the guest gives back is uncharged at once. A fault over a max waits for room as long as
 * one of hv/pager, and is then let through, charged over. What is there without a fault (at the
 * start, by a device) is charged as well.
 */

/* After each step of the core: binds who is new, and asks for room where a max refused. */
void sim_page(struct hv *hv, struct core *core);
/* Before that core is freed: all is uncharged. Their faults are the kernel's from now on, and no
 * daemon hears of them again before they start anew. */
void sim_unpage(struct hv *hv);

/* What a test or a table of results wants to see. */
struct sim_vm_view {
	const char *name;
	const struct hv_uuid *uuid;
	const struct guest *guest;
	uint64_t targets;	/* calls that set one */
	uint64_t lowest_target; /* of those; UINT64_MAX: none */
	uint64_t ceiling;	/* recorded */
	uint64_t charged;	/* page by page: that it has */
	const struct hv_paging *paging;
};
/* -ENOENT. */
int sim_vm_view(const struct hv *hv, const char *name, struct sim_vm_view *ret_view);

struct sim_host_view {
	uint64_t total, used; /* used: by VMs, their processes and others, resident */
	uint64_t swapped_out; /* all that the host ever swapped out */
	uint64_t beyond;      /* most that was used beyond total with nothing left to swap */
	size_t calls;	      /* not answered yet */
};
void sim_host_view(const struct hv *hv, struct sim_host_view *ret_view);

#endif
