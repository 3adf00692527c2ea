/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An engine that decides what a test tells it, and aborts where the core tells it what cannot be:
 * an id twice, a group below one that is not there, a sample of nobody.
 */
#ifndef BALLAST_TESTS_FAKE_ENGINE_H
#define BALLAST_TESTS_FAKE_ENGINE_H

#include "policy/engine.h"

#define FAKE_ITEMS 512
#define FAKE_LOG   4096

struct fake_item {
	uint64_t id, parent;
	bool is_vm, gone;
	struct memcg_knobs knobs;
	struct engine_vm_attrs attrs;
	enum engine_vm_state state;
	struct vm_sample sample;
	unsigned int samples, cancels;
};

struct fake_change {
	uint64_t tick;
	struct engine_change change;
};

extern struct fake {
	struct fake_item items[FAKE_ITEMS];
	size_t nr_items;
	struct fake_change changes[FAKE_LOG];
	size_t nr_changes;
	struct engine_result results[64];
	size_t nr_results;
	struct engine_request requests[128];
	size_t nr_requests;
	struct engine_pool pool;
	uint64_t ticks, first_tick, last_tick, shortest; /* shortest time between two */

	bool in_core; /* kept by who calls the core; not while the engine runs or a line is logged
		       */

	/* What the next tick does. */
	struct engine_action actions[8];
	size_t nr_actions;
	struct engine_event events[16];
	size_t nr_events;
	int error; /* -ENOMEM: takes nothing; others: leaves out changes for id bad */
	uint64_t bad;
	/* What every tick says. */
	uint64_t next;
	struct engine_pool_view view;
	uint64_t excess;      /* of every VM */
	uint64_t floor;	      /* of every VM */
	bool capped;	      /* every VM */
	unsigned int configs; /* how often one was set, and the last; speed UINT64_MAX is refused */
	struct engine_config config;
} fake;

struct fake_item *fake_item(uint64_t id); /* that is not gone, or NULL */
size_t fake_nr(bool vms);		  /* that are not gone, without the root */
/* How often a change of that type was told for id. */
unsigned int fake_told(enum engine_change_type type, uint64_t id);
void fake_reset(void);

#endif
