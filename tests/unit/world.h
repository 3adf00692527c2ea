/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * world: a handful of VMs in pages and ticks, for tests of the engine. No hypervisor, no guest: a
 * VM's usage follows its target at a set speed, its statistics are what the test says.
 */
#ifndef BALLAST_TESTS_WORLD_H
#define BALLAST_TESTS_WORLD_H

#include "policy/engine.h"

#define MIB(n)	  MIB_TO_PAGES(n)
#define WORLD_VMS 64
#define SECOND_US UINT64_C(1000000)

struct world_vm {
	uint64_t id;
	bool gone;
	uint64_t maximum, actual, target, applied_seq;
	uint64_t resident, swapped, overhead;
	uint64_t anon;	    /* what the guest cannot free */
	uint64_t cache;	    /* of usage */
	uint64_t swap_in;   /* by the guest, since its boot */
	uint64_t speed;	    /* pages a tick the balloon moves; 0: stuck */
	uint64_t stops_at;  /* actual below which the guest gives no more */
	unsigned int delay; /* ticks until a target is taken up */
	unsigned int delayed;
	uint64_t pending, pending_seq;
	bool refuses, no_stats, stale, grows_back;
	bool pretends;	 /* its actual falls, and it keeps what it has */
	bool no_process; /* the host's figures of its process are unknown */
	bool hung;	 /* its lane: targets are not taken up */
	/* Its agent, where it tells anything; what it was told to free, and does at the speed. */
	bool tells;
	struct vm_lists lists;
	uint64_t need, refaults;
	uint64_t freeing, freeing_seq;
	bool frees_nothing;
	size_t commands, told; /* targets; what its agent was told to free */
};

struct world {
	struct engine *engine;
	struct engine_pool pool;
	uint64_t now, tick_us;
	struct world_vm vm[WORLD_VMS];
	size_t nr;
	struct engine_change changes[4 * WORLD_VMS];
	size_t nr_changes;
	struct engine_request requests[4];
	size_t nr_requests;
	struct engine_result results[WORLD_VMS];
	size_t nr_results;
	struct engine_output out;
	int error;			 /* of the last tick */
	struct engine_event events[256]; /* all that were told, in order */
	size_t nr_events;
};

extern const struct memcg_knobs none;	 /* no limit, and nothing protected */
struct memcg_knobs soft(uint64_t pages); /* a soft limit, and nothing else */

void world_config(struct engine_config *ret_config); /* act, a floor of 10 %, no margin */
void world_open(struct world *w, const struct engine_config *config, uint64_t pool);
void world_open_pool(struct world *w, uint64_t pool); /* with the configuration above */
/* 2 over its soft limit, 3 under its, 4 without. Pool 1000 MiB: low 50, high 80. */
void world_three_guests(struct world *w, uint64_t batch, uint64_t web, uint64_t spare);
void world_close(struct world *w);

/* Both come with the next tick. Returns the index of the VM. */
size_t world_add(struct world *w, uint64_t id, uint64_t parent, uint64_t maximum, uint64_t usage,
	const struct memcg_knobs *knobs);
/* A VM that an earlier run cut to actual, and that comes to rest so. Under the root. */
void world_capped(struct world *w, uint64_t id, uint64_t ceiling, uint64_t actual,
	const struct memcg_knobs *knobs);
void world_group(struct world *w, uint64_t id, uint64_t parent, const struct memcg_knobs *knobs);
void world_knobs(struct world *w, uint64_t id, const struct memcg_knobs *knobs);
/* Its agent is there, and free page reporting is on. */
void world_reports(struct world *w, uint64_t id);
void world_state(struct world *w, uint64_t id, enum engine_vm_state state);
void world_change(struct world *w, const struct engine_change *change);
void world_reclaim(struct world *w, uint64_t job, uint64_t root, uint64_t pages);
void world_cancel_job(struct world *w, uint64_t job);

/* One tick: balloons move, samples of all VMs, engine_tick(), targets are told. */
void world_tick(struct world *w);
void world_ticks(struct world *w, unsigned int nr);

struct world_vm *world_vm(struct world *w, uint64_t id);
struct engine_view world_view(const struct world *w, uint64_t id);
const struct engine_action *world_action(const struct world *w, uint64_t id); /* of this tick */
/* How many of the last eight actions for it had that reason. */
unsigned int world_actions(const struct world *w, uint64_t id, enum engine_reason_type type);
size_t world_count(const struct world *w, enum engine_event_type type);
const struct engine_event *world_event(
	const struct world *w, enum engine_event_type type); /* last */
int64_t world_free(const struct world *w);
uint64_t world_usage(const struct world_vm *vm);

#endif
