/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * engine: one tick of ballast. Input in, actions and their reasons out.
 *
 * struct engine_input is all that a tick knows beside the engine's own state: the same inputs give
 * the same decisions, always, which is what makes recordings replay. No I/O, clock, log or lock;
 * one thread. Allocates where VMs and groups are added, not in a quiet tick.
 *
 * A tick in fixed order: topology and knobs, samples, what asks brought (settle.c), pools, who
 * must be fed and what may be given (balance.c), who gives (reclaim.c), targets.
 *
 * Units: pages; times are monotonic microseconds, passed in.
 */
#ifndef BALLAST_POLICY_ENGINE_H
#define BALLAST_POLICY_ENGINE_H

#include "policy/charge.h"
#include "policy/reclaim.h"
#include "policy/sample.h"

struct engine;

/* ---- configuration: every tunable with its reason stands in engine_config_default() ---- */

/* Part of the pool, in thousandths, or pages where permille is 0. */
struct engine_level {
	unsigned int permille;
	uint64_t pages;
};

struct engine_config {
	bool act;	  /* false: observe; nothing is ever asked of anyone */
	bool loosens;	  /* deflated pages stay with the host until touched (KVM) */
	uint64_t granule; /* pages, > 0 */
	struct engine_level wm_min, wm_low, wm_high;
	struct workingset_bounds bounds;
	uint64_t max_step; /* pages asked of a VM and not come, at most */
	uint64_t headroom_at_least;
	unsigned int headroom_fraction; /* of usage: 1/16 */
	uint64_t speed;			/* pages a second, of a balloon that was not measured yet */
	uint64_t max_rate;		/* pages a second that all VMs are asked; 0: any */
	uint64_t hold_us, hold_max_us;
	uint64_t ask_deadline_us; /* and what the way takes at the measured speed */
	uint64_t rest_us;	  /* actual that stood still so long rests */
	uint64_t growth_us;	  /* what free falls by within it fits between wm_low and wm_min */
	uint64_t release_us;	  /* a VM that was released is not asked for so long */
	bool no_soft_pass;	  /* to compare with: everybody at once; no daemon's option */
};

void engine_config_default(struct engine_config *ret_config);

/* ---- input ---- */

/*
 * What a VM is and does, as far as the balloon is concerned: one row each in the table of
 * engine.c says whether it gives, receives and how it counts. Where several apply the core tells
 * the one that allows least. A change to one that gives nothing cancels what runs, once.
 */
enum engine_vm_state {
	ENGINE_VM_RUNNING,
	ENGINE_VM_ARRIVING,	 /* starting, restoring, rebooted: not seen yet, counts in full */
	ENGINE_VM_PAUSED,	 /* neither donor nor receiver */
	ENGINE_VM_NO_DEVICE,	 /* no balloon: fixed size */
	ENGINE_VM_NO_DRIVER,	 /* statistics never moved: no driver seen */
	ENGINE_VM_NOT_ANSWERING, /* its lane is past its deadline */
	ENGINE_VM_INCOMING,	 /* by migration, does not run here yet: counts in full */
	ENGINE_VM_MIGRATING,	 /* away from here */
	ENGINE_VM_POSTCOPY,	 /* its memory is in part still on the other host: counts in full */
	ENGINE_VM_SAVING,	 /* is being saved or dumped */
	ENGINE_VM_SNAPSHOT,	 /* a snapshot of it is being taken */
	ENGINE_VM_BACKUP,	 /* of its disks */
	ENGINE_VM_LOCKED,	 /* its memory is locked: the host gains nothing by the balloon */
	ENGINE_VM_HUGE_PAGES,	 /* its memory is in no pool: what the host has less huge pages */
	ENGINE_VM_PINNED,	 /* a passed-through device may reach all of its memory */
	ENGINE_VM_ENCRYPTED,	 /* its memory is encrypted, and stays where it is */
	ENGINE_VM_VIRTIO_MEM,	 /* sized by virtio-mem, which somebody else drives */
	ENGINE_VM_THROTTLED,   /* its QEMU's cgroup has a finite memory.high; gives and receives */
	ENGINE_VM_LIMITED,     /* its statistics tell only what is free, as Windows' do */
	ENGINE_VM_STRICT_NUMA, /* bound to nodes: what it gives may help nobody else there */
	ENGINE_VM_CONTENDED,   /* somebody else turns its balloon; shown, never told */
	ENGINE_VM_STATE_NR,
};

const char *engine_vm_state_name(enum engine_vm_state state);
/* Whether a VM in that state may be asked for memory at all. */
bool engine_vm_state_gives(enum engine_vm_state state);

struct engine_vm_attrs {
	uint64_t maximum; /* pages */
	uint64_t ceiling; /* recorded by an earlier run, pages; 0: none recorded */
	bool act;	  /* manage = act for this VM */
	bool guest_swap;
	bool agent, trust;
	/*
	 * Its agent frees what it is told, and what is free in it is the host's by itself (free
	 * page reporting): it is asked inside, and its balloon is left as it is.
	 */
	bool reports;
	bool paused;	   /* by the operator: not asked; what it has coming it gets */
	bool autodeflate;  /* its balloon lets go where the guest is out of memory */
	uint64_t max_rate; /* pages a second that it is asked; 0: any */
	uint64_t agent_floor;
};

enum engine_change_type {
	ENGINE_GROUP_NEW,   /* id, parent, knobs */
	ENGINE_GROUP_KNOBS, /* id, knobs: of a group or VM */
	ENGINE_GROUP_GONE,  /* id */
	ENGINE_VM_NEW,	    /* id, parent, knobs, attrs, state */
	ENGINE_VM_ATTRS,    /* id, attrs (of ceiling only whether another is on record) */
	ENGINE_VM_STATE,    /* id, state */
	ENGINE_VM_CANCEL,   /* id: what runs is cancelled and nothing replayed (reboot, resume) */
	ENGINE_VM_RELEASE,  /* id: it gets its ceiling back, and is not asked for release_us */
	ENGINE_VM_GONE,	    /* id: the hypervisor says that its memory is gone */
};

struct engine_change {
	enum engine_change_type type;
	uint64_t id, parent;
	struct memcg_knobs knobs;
	struct engine_vm_attrs attrs;
	enum engine_vm_state state;
};

/*
 * A pool. Set size: size is what the VMs may have in all. Host: size is the host's memory less
 * huge pages, available is MemAvailable, reserve is kept for the host itself.
 */
struct engine_pool {
	bool known; /* false: nothing is cut or given on it */
	bool host;
	uint64_t size, available, reserve;
};

/*
 * What became of a target: its call returned. A hung one is told by the VM's state. -ESTALE:
 * somebody else has set the balloon since, or in that moment, and that is what it is told now.
 */
struct engine_result {
	uint64_t id, seq;
	int error; /* 0 or a negative errno: refused */
};

enum engine_request_type {
	ENGINE_RECLAIM,	       /* job, root, pages */
	ENGINE_RECLAIM_CANCEL, /* job */
};

struct engine_request {
	enum engine_request_type type;
	uint64_t job; /* the caller's, not 0, not used twice */
	uint64_t root, pages;
};

/* Arrays may be NULL where their nr is 0. Changes apply in order, before everything else. */
struct engine_input {
	uint64_t now;
	const struct engine_pool *pool; /* NULL: as it was */
	const struct engine_change *changes;
	size_t nr_changes;
	const struct vm_sample *samples;
	size_t nr_samples;
	const struct engine_result *results;
	size_t nr_results;
	const struct engine_request *requests;
	size_t nr_requests;
	const struct charge_seen *charges; /* of engine_charges(), after the samples */
	size_t nr_charges;
};

/* ---- output ---- */

enum engine_reason_type {
	ENGINE_CUT,	/* gives its share of a step */
	ENGINE_CANCEL,	/* an ask ends: deadline, no more need, its state */
	ENGINE_LOOSEN,	/* the cut came; the cap is lifted */
	ENGINE_FEED,	/* shows pressure and is not in excess */
	ENGINE_GIFT,	/* the pool has more than enough */
	ENGINE_AGAIN,	/* actual rests above the target: asked once more */
	ENGINE_RELEASE, /* the operator lets it go */
	ENGINE_WISH,	/* its ceiling is another by somebody else's hand, and put on record */
	ENGINE_REASON_NR,
};

const char *engine_reason_name(enum engine_reason_type type);

/* The numbers a decision was computed from: with them the target can be computed again. */
struct engine_reason {
	enum engine_reason_type type;
	uint64_t at;	   /* the tick's now */
	uint64_t root;	   /* whose need it serves; 0: none's */
	uint64_t job;	   /* the operator's request; 0: none */
	unsigned int step; /* 1 to 4 for a cut, else 0 */
	int64_t free;	   /* of the pool */
	uint64_t wm_min, wm_low, wm_high;
	uint64_t growth;			  /* pages a second by which free fell, lately */
	uint64_t need;				  /* of root, before what is under way */
	uint64_t owed;				  /* under way below root before this decision */
	uint64_t step_need, step_cap, cap, share; /* see struct reclaim_share */
	uint64_t bound;		      /* what it must not go below here: soft limit, low, keep */
	uint64_t usage, actual, from; /* of the VM; from: the target before */
	uint64_t to;		      /* the new target */
	uint64_t waiting;	      /* of its share, kept back for pace */
	/*
	 * It is its agent's, and no target: of a usage of from it is to leave to, where that is
	 * less, by freeing the difference; else so much less is asked of it, of what its agent was
	 * not told yet. What it was told runs out by itself, within a second.
	 */
	bool inside;
};

struct engine_action {
	uint64_t id, seq;
	uint64_t target;  /* pages; where its reason is inside, a usage */
	uint64_t ceiling; /* pages: recorded with the VM before the target is set */
	struct engine_reason reason;
};

enum engine_event_type {
	ENGINE_EVENT_SHORT,	    /* id root, a: pages that nobody can give */
	ENGINE_EVENT_SHORT_OVER,    /* id root */
	ENGINE_EVENT_BELOW_MIN,	    /* a: wm_min, free: signed in b */
	ENGINE_EVENT_ASK_CAME,	    /* id VM, a: asked, b: came */
	ENGINE_EVENT_ASK_FAILED,    /* id VM, a: asked, b: came */
	ENGINE_EVENT_WISH,	    /* id VM, a: old ceiling, b: new */
	ENGINE_EVENT_CONTENDED,	    /* id VM, a: target, b: actual */
	ENGINE_EVENT_JOB_DONE,	    /* id job, a: wanted, b: came; all of it */
	ENGINE_EVENT_JOB_SHORT,	    /* id job, a: wanted, b: came; nobody can give more */
	ENGINE_EVENT_JOB_CANCELLED, /* id job, a: wanted, b: came */
};

const char *engine_event_name(enum engine_event_type type);

struct engine_event {
	enum engine_event_type type;
	uint64_t id;
	uint64_t a;
	int64_t b;
};

/* Valid until the next call of engine_tick(). At most one action a VM. */
struct engine_output {
	const struct engine_action *actions;
	size_t nr_actions;
	const struct engine_event *events;
	size_t nr_events;
	uint64_t next; /* tick again by then, whatever happens; UINT64_MAX: only on input */
};

/* 0, -ENOMEM, -EINVAL (granule 0, levels not ascending where both are of one kind). */
int engine_new(const struct engine_config *config, struct engine **ret_engine);
void engine_free(struct engine *engine);
const struct engine_config *engine_config(const struct engine *engine);

/* -EINVAL like engine_new(); then nothing changed. From the next tick on. */
int engine_set_config(struct engine *engine, const struct engine_config *config);

/*
 * One tick. 0, or the first error that an input caused: -ENOENT (no such id), -EEXIST, -EINVAL,
 * -EBUSY (a group that has children does not go), -ENODEV (its parent is going), -ELOOP (too deep),
 * -ENOMEM; that one item is left out, all else is done, and the output is valid.
 */
int engine_tick(
	struct engine *engine, const struct engine_input *input, struct engine_output *ret_output);

/*
 * Who would give pages at root (a group's id), now, if it were asked: no state changes. shares are
 * valid until the next call. -ENOENT; -ENODATA: no tick yet. gain < need: the rest is short.
 */
int engine_plan(
	struct engine *engine, uint64_t root, uint64_t pages, struct reclaim_plan *ret_plan);

/* ---- what is known, for status and explain ---- */

struct engine_view {
	uint64_t id, parent;
	struct memcg_knobs knobs;
	uint64_t usage;	     /* seen */
	uint64_t excess;     /* own, pages */
	uint64_t excess_via; /* the nearest ancestor in excess; 0: none */
	uint64_t owed;	     /* asked below and not come */
	/* of a VM: */
	enum engine_vm_state state;
	enum reclaim_hold hold;
	struct engine_vm_attrs attrs;
	struct vm_sample sample;
	struct workingset set;
	uint64_t ceiling, target; /* target 0: never set */
	uint64_t waiting, speed;
	uint64_t asks, failures, samples; /* counts since it was adopted */
	bool capped;			  /* target below min(ceiling, max) */
};

/* -ENOENT. */
int engine_view(const struct engine *engine, uint64_t id, struct engine_view *ret_view);

/* The last reasons of a VM, newest first; returns how many were written, at most nr. */
size_t engine_reasons(
	const struct engine *engine, uint64_t id, struct engine_reason *ret_reasons, size_t nr);

struct engine_pool_view {
	bool known;
	uint64_t size, used, overhead; /* used: usage of all VMs */
	int64_t free;
	uint64_t wm_min, wm_low, wm_high; /* as they count: raised for growth */
	uint64_t growth; /* pages a second by which free fell, the most of about a minute */
	uint64_t need, owed, hung, gifts, short_pages;
};

void engine_pool_view(const struct engine *engine, struct engine_pool_view *ret_view);

/*
 * From now on the VM is charged page by page by somebody else, with charge_try() on *ret_leaf: what
 * was booked for it goes, its samples only tell what is seen, and its pages stay charged, and seen,
 * when it is gone until they are uncharged. The leaf is there as long as the VM, or a reference of
 * one's own, is. -ENOENT: no such VM. Between ticks.
 */
int engine_page(struct engine *engine, uint64_t id, struct memcg **ret_leaf);

/*
 * What those others have charged since the last call, for the next tick's input: of groups that are
 * an events target away from what was seen, of VMs that are paged since then, and of those that are
 * gone and still have pages. Whatever else threads charge and uncharge, no tick sees it: the same
 * inputs give the same decisions. *ret_charges is the engine's, until the next call. Returns how
 * many; without memory none, and the next call has them.
 */
size_t engine_charges(struct engine *engine, const struct charge_seen **ret_charges);

/* The tree, for tests: no action or view has what they look at. */
const struct memcg_tree *engine_tree(const struct engine *engine);

#endif
