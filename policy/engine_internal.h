/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What engine.c and its parts share: the engine's state. For nobody else, in policy/ or outside. */
#ifndef BALLAST_POLICY_ENGINE_INTERNAL_H
#define BALLAST_POLICY_ENGINE_INTERNAL_H

#include "policy/ahead.h"
#include "policy/balance.h"
#include "policy/engine.h"
#include "policy/growth.h"

/* Reasons remembered of each VM, for explain. */
#define ENGINE_REASONS 8

/*
 * An ask: memory that a VM was told to give and that its usage does not show yet. It is over when
 * usage is at goal (within a granule), at its deadline, or when it is cancelled.
 */
struct ask {
	uint64_t seq;  /* of what it was told last that belongs to it */
	uint64_t from; /* usage when it began */
	uint64_t goal; /* usage that it leads to */
	/* What it leads to where that never gets through; seq 0: nothing was told before. */
	uint64_t before_seq, before_goal;
	bool raised;	 /* what it was told last takes some of it back */
	uint64_t beside; /* what it cost beside that usage when it began */
	uint64_t since, deadline;
	uint64_t actual;	  /* when it began: the way is from there */
	uint64_t moved, moved_to; /* when actual last fell by a granule, and to what */
	uint64_t eased_at;  /* actual when its deadline was last put off; at first, when it began */
	uint64_t root, job; /* whose need it serves */
	unsigned int step;
	/* Asked of its agent: what moves is its usage, which stands for actual in the above. */
	bool inside;
};

/* What a rate leaves to be asked: a second's worth at most. */
struct allowance {
	bool begun;
	uint64_t left, at;
};

/*
 * In the order of use, as struct memcg is: a sample meets the first lines, and no more unless
 * something runs.
 */
struct vm {
	struct reclaim_vm reclaim; /* what plans read; memcg.vm points here */
	struct memcg *memcg;
	/* A line. */

	enum engine_vm_state state;
	bool swaps;	  /* swapped in between the last two samples */
	bool known;	  /* a usage was seen; until then it counts in full */
	bool grown;	  /* memory was plugged: where actual rests next is where it is */
	bool touched;	  /* a target of ballast's, now or in an earlier run */
	bool cut;	  /* a cut came or ended: the cap is to be loosened */
	bool release : 1; /* it is to be told so */
	bool record : 1;  /* its ceiling is to be put on record */
	bool rested;	  /* that rest was looked at */
	bool again;	  /* asked once more already */
	bool acted;	  /* has an action in this tick */
	bool paged;	  /* charged page by page, by somebody else */
	bool busy;
	bool ask_on;	  /* there is an ask */
	uint32_t busy_at; /* in engine.busy */
	uint32_t samples; /* one a second: for a hundred years */
	struct engine_vm_attrs attrs;
	/* A line. */

	struct workingset set;
	uint64_t waiting;   /* of its share, kept back for pace */
	uint64_t owed;	    /* booked with memcg_owe() */
	uint64_t owed_gain; /* the same, of what the host gains by it */
	uint64_t hung;	    /* asked, and the lane does not answer: nobody counts on it */
	uint64_t ceiling;
	uint64_t target; /* the newest; 0: none yet */
	/* Two lines. */

	uint64_t held_until; /* from then on none of those that follow below runs */
	uint64_t delivered;  /* what a failed ask brought, doubled by each success */
	uint64_t overhead;   /* booked in engine.overhead */
	uint64_t rest_at;    /* actual, ... */
	struct vm_sample sample;
	/* Two lines, without the lists. */

	uint64_t rest_since; /* ... and since when it is that */
	uint64_t hold_until; /* no gift before */
	/* By vm_hold() only: */
	uint64_t failed_until; /* asked no more than delivered before */
	uint64_t contended_until;
	uint64_t fed_until;    /* not asked before */
	uint64_t heeded_until; /* fed for its agent's word: not so again before */
	uint64_t spared_until; /* its agent said that it lacks memory: until then nothing is cold */
	uint64_t refused_until;	 /* a way back was refused: not tried before */
	uint64_t released_until; /* let go by the operator: not asked before */
	uint64_t lifted_until;	 /* its cap was lifted again: a little is not asked before */
	uint64_t gift_until;	 /* a gift not yet taken, until then: usage may grow to ... */
	uint64_t gift_to;
	/* After a cut its cap was lifted: at refill_at before refill_until it has refilled. */
	uint64_t refill_at, refill_until;
	bool refills; /* it had when it was asked the last time */
	/* What it was asked inside did not come: until then by its balloon. */
	uint64_t outside_until;
	unsigned int outside; /* so often, in a row */

	uint64_t seq;	       /* of what it was told last, a target or inside */
	uint64_t target_seq;   /* of the newest target */
	uint64_t applied_seq;  /* of the newest whose call returned well */
	uint64_t answer_by;    /* to that target: not waited for from then on; 0: it came */
	uint64_t told_gain;    /* booked in engine.told */
	struct vm *asked_next; /* in the list of whose name it is asked in: ask_all()'s */
	uint64_t lowest;       /* the lowest target since actual last rested */
	uint64_t rested_low;   /* what that was when it did */
	/* Somebody else has set its balloon: nothing is told to it before it rests, or until then.
	 */
	uint64_t theirs_until;
	uint64_t out; /* outstanding of the ask when it was last accounted */
	struct ask ask;
	uint64_t speed;		       /* pages a second, measured; 0: not yet */
	struct engine_reason why;      /* of its newest share */
	struct engine_reason *reasons; /* a ring of ENGINE_REASONS */
	size_t nr_reasons;	       /* ever */
	uint64_t asks, failed;
	struct allowance allowance;
	unsigned int failures; /* in a row */
};

/* The last lines that a sample of one at rest meets, and who is told something. */
#define VM_LINE_AT_REST (offsetof(struct vm, sample.lists) / AHEAD_LINE - 1)
#define VM_LINE_ASKED	(offsetof(struct vm, asks) / AHEAD_LINE)

/* Fields that are meant to share lines do. */
_Static_assert(offsetof(struct vm, sample.lists) == 6 * AHEAD_LINE, "at rest: six lines");

struct job {
	uint64_t id, root, wanted, came;
	struct vm *asked; /* in its name, who came last first: ask_all()'s */
	struct job *next;
};

/* A group with a max. */
struct limited {
	struct memcg *memcg;
	struct vm *asked; /* as in struct job */
	bool is_short;	  /* told: nobody below can give what it is over */
	uint64_t retry;	  /* where it is short and nothing changes: not planned before */
};

struct engine {
	struct engine_config config;
	struct memcg_tree *tree;
	struct slab vms; /* struct vm */
	size_t nr_vms;
	/*
	 * VMs that a tick must look at though nothing of them changed, in the order in which they
	 * came to be: room for all. NULL where one went, until all changes are in.
	 */
	struct vm **busy;
	size_t nr_busy;
	struct job *jobs;
	struct vm *asked; /* for the pool; as in struct job */
	uint64_t told;	  /* what the host gains by all that VMs were told, without what waits */

	struct engine_pool pool;
	uint64_t overhead; /* of all VMs */
	/*
	 * Of a host pool: came by usage, and MemAvailable does not show it yet; negative:
	 * MemAvailable rose, and no usage shows it yet.
	 */
	int64_t unshown;
	uint64_t unshown_until;
	int64_t free; /* of the pool, this tick */
	uint64_t wm_min, wm_low, wm_high;
	struct growth growth;
	uint64_t need, gifts, hung; /* this tick's */
	struct allowance allowance;

	uint64_t now;
	uint64_t settled; /* now, when the busy ones were settled last */
	bool ticked;
	bool changed;	      /* this tick's input may have changed a cap */
	uint64_t short_pages; /* of the pool */
	uint64_t short_retry;
	bool below_min;

	struct limited *limited; /* groups with a max */
	size_t nr_limited, max_limited;

	/* Scratch, grown where VMs are added. */
	struct reclaim_share *shares;
	struct engine_action *actions;
	struct balance_gift *gift;
	struct vm **gift_vms;
	struct charge_seen *charges; /* of engine_charges() */
	size_t max_charges;
	struct memcg *leaving; /* paged VMs that are gone: a reference each until they are empty */
	size_t max_vms;
	size_t nr_actions;
	struct engine_event *events;
	size_t nr_events, max_events;
	uint64_t next;
};

static inline struct vm *vm_of(const struct memcg *memcg)
{
	return (struct vm *)memcg->vm; /* reclaim is the first member */
}

/* The first busy VM from there on, or NULL. */
static inline struct vm *busy_from(const struct engine *e, size_t at)
{
	if (at + AHEAD_ROUNDS < e->nr_busy)
		ahead(e->busy[at + AHEAD_ROUNDS], 0, VM_LINE_ASKED);
	while (at < e->nr_busy && !e->busy[at])
		at++;
	return at < e->nr_busy ? e->busy[at] : NULL;
}

static inline struct vm *busy_first(const struct engine *e)
{
	return busy_from(e, 0);
}

static inline struct vm *busy_next(const struct engine *e, const struct vm *vm)
{
	return busy_from(e, vm->busy_at + 1);
}

/* A row for each state: what it may be asked and given, and how it counts. */
struct state_row {
	const char *name;
	bool gives, receives;
	bool counts_full; /* not seen yet: its whole size is booked */
	bool fixed;	  /* actual bounds nothing; on change it counts in full until it is seen */
	bool outside;	  /* guest memory is in no pool: nothing is booked but its overhead */
};
const struct state_row *engine_state_row(enum engine_vm_state state);

static inline bool vm_gives(const struct vm *vm)
{
	return engine_state_row(vm->state)->gives;
}

static inline bool vm_receives(const struct vm *vm)
{
	return engine_state_row(vm->state)->receives;
}

/* Told to give, or about to be, though all of it may have come. */
static inline bool vm_asked(const struct vm *vm)
{
	return vm->ask_on || vm->waiting;
}

static inline uint64_t vm_limit(const struct vm *vm)
{
	return balance_limit(vm->ceiling, vm->memcg->knobs.max);
}

/* Below this nothing is taken: floor and margin, or what the operator wants kept. */
static inline uint64_t vm_keep(const struct vm *vm)
{
	return pages_max(vm->set.keep, vm->memcg->knobs.min);
}

/* A target that changes nothing. (What bounds the usage of a fixed VM is not actual.) */
static inline uint64_t vm_as_it_is(const struct vm *vm)
{
	return vm_knows(&vm->sample, VM_ACTUAL) ? vm->sample.actual : vm->set.actual;
}

/* The newest target of that number, or a later one, is known to have been set. */
static inline bool vm_reached(const struct vm *vm, uint64_t seq)
{
	return pages_max(vm->sample.applied_seq, vm->applied_seq) >= seq;
}

/* What became of its newest target is not known yet, and still to be expected. */
static inline bool vm_unanswered(const struct engine *e, const struct vm *vm)
{
	return vm->answer_by > e->now && vm->sample.applied_seq < vm->target_seq;
}

/* It costs far more than its balloon says that it has; processes' figures are off by less. */
static inline bool vm_hides(const struct engine *e, const struct vm *vm)
{
	return vm->set.cost - pages_min(vm->set.cost, vm->set.actual) >
	       pages_max(RECLAIM_MIN_GRANULES * e->config.granule, vm->set.cost / 8);
}

/*
 * It has less than it was ever told since it last rested: by somebody's hand. Where it rests will
 * be their wish, and until then it is told nothing more, or it would not rest there.
 */
static inline bool vm_lowered(const struct engine *e, const struct vm *vm)
{
	return vm->touched && !vm->rested && vm->set.actual + e->config.granule <= vm->lowest;
}

static inline bool vm_capped(const struct vm *vm)
{
	return vm->touched && vm->target && vm->target < vm_limit(vm);
}

/* One of the times of struct vm that held_until is the last of. */
static inline void vm_hold(struct vm *vm, uint64_t *which, uint64_t until)
{
	*which = until;
	vm->held_until = pages_max(vm->held_until, until);
}

/* engine.c */
void engine_event(
	struct engine *e, enum engine_event_type type, uint64_t id, uint64_t a, int64_t b);
void engine_by(struct engine *e, uint64_t time); /* tick again by then */
/*
 * Tells the VM a target: one action a VM and tick, a later one replaces an earlier. r has all but
 * what is the VM's and the pool's own.
 */
void engine_act(struct engine *e, struct vm *vm, uint64_t target, struct engine_reason r);
void engine_forget(struct engine *e, const struct vm *vm); /* it is gone: nothing is told to it */

/* topology.c: what changes, samples. Errors as engine_tick() tells them. */
int topology_change(struct engine *e, const struct engine_change *change);
/* What is free moves by the change alone: a VM comes, goes or counts by other rules than before. */
bool topology_books_anew(const struct engine *e, const struct engine_change *change);
int topology_samples(struct engine *e, const struct vm_sample *samples, size_t nr);
int topology_charged(struct engine *e, const struct charge_seen *charge);
struct vm *topology_vm(const struct engine *e, uint64_t id); /* NULL */
void topology_free_vm(struct engine *e, struct vm *vm);
void topology_busy(struct engine *e, struct vm *vm);
void topology_busy_compact(struct engine *e);
void topology_refresh(struct engine *e, struct vm *vm); /* reclaim's view, from all else */
/* What all VMs below m keep, where the configuration says something else of it now. */
void topology_reassess(struct engine *e, struct memcg *m);

/* settle.c: what became of what was asked. */
void settle_vm(struct engine *e, struct vm *vm);
/* The ask leads to no less than goal, from now on; told with reason r. */
void settle_raise(
	struct engine *e, struct vm *vm, uint64_t goal, const struct engine_reason *reason);
void settle_result(struct engine *e, struct vm *vm, const struct engine_result *result);
/* Ends whatever runs and forgets what waits; told to the VM as target, 0: not told. */
void settle_cancel(struct engine *e, struct vm *vm, uint64_t target);
void settle_hung(struct engine *e, struct vm *vm);
void settle_owe(struct engine *e, struct vm *vm); /* books ask and waiting with the group */
/* Before another goal is told: the one that counts if that does not get through. */
void settle_keep_goal(struct vm *vm);
uint64_t settle_outstanding(const struct vm *vm); /* of the ask, without waiting */
uint64_t settle_from(const struct vm *vm);	  /* the usage that what waits is taken from */
uint64_t settle_gain(const struct vm *vm, uint64_t pages); /* for the host, by pages of the VM */

/* ask.c: needs, shares and their pace. */
void ask_all(struct engine *e);
/* The next that it is asked for goes to its agent, and its balloon is left as it is. */
bool ask_goes_inside(const struct engine *e, const struct vm *vm);
int ask_request(struct engine *e, const struct engine_request *request);
/* Pages that the VM cannot bring in time are not asked of it: only below wm_min is there a limit.
 */
uint64_t ask_in_time(const struct engine *e, const struct vm *vm);
void ask_grew(struct engine *e, const struct vm *vm, uint64_t pages);  /* usage, by a sample */
void ask_credit(struct engine *e, const struct vm *vm, int64_t pages); /* came, by usage */
void ask_forget_root(struct engine *e, uint64_t root);
void ask_available(struct engine *e, int64_t more); /* MemAvailable rose or fell */
void ask_nobody(struct engine *e);		    /* observe: what runs ends */

/* give.c: the ways back. */
void give_feed(struct engine *e);
void give_release(struct engine *e);
void give_loosen(struct engine *e);
void give_gifts(struct engine *e);
/* Its agent's word, and not that of one in excess: nothing of it is taken for cold. */
bool give_spares(const struct engine *e, const struct vm *vm);
void give_heed(const struct engine *e, struct vm *vm);	      /* of a new sample */
bool give_rests(const struct engine *e, const struct vm *vm); /* by usage and keep in reclaim */
bool give_refilled(const struct engine *e, const struct vm *vm);
uint64_t give_reserved(const struct engine *e, const struct vm *vm); /* gift not yet taken */

#endif
