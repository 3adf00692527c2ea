/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * virtual: the daemon's shell in virtual time. It runs the daemon's own core on a simulated host,
 * through the fault wrapper (hv/fault), which spoils what the scenario says: it takes events, steps
 * the core, submits its calls, and moves time to whatever comes next. Minutes pass in milliseconds
 * and every run of a scenario is the same.
 *
 * Beside it, it does what the scenario says an operator does, and looks at what is expected after
 * every step. Blocks until the scenario is over. One thread; prints nothing.
 */
#ifndef BALLAST_HV_SIM_VIRTUAL_H
#define BALLAST_HV_SIM_VIRTUAL_H

#include "hv/core.h"
#include "hv/sim/scenario.h"

/* What is called, all with ctx; each may be NULL. */
struct virtual_watch {
	core_tick_fn *tick;
	core_name_fn *name;
	/* As core_config.log. */
	void (*log)(void *ctx, const struct core_line *line);
	/* After each step, and once before the first. */
	void (*step)(void *ctx, uint64_t now);
	void *ctx;
};

struct virtual;

/* The scenario and watch are borrowed. -ENOMEM, -EINVAL: what core_new() refuses. */
int virtual_new(
	struct scenario *scenario, const struct virtual_watch *watch, struct virtual **ret_virtual);
void virtual_free(struct virtual *virtual);

/*
 * Runs it to its end; what became of the expectations stands in them. -ENOMEM; -ELOOP: time does
 * not move on, a fault of the core or the simulator.
 */
int virtual_run(struct virtual *virtual);

struct core *virtual_core(const struct virtual *virtual);
const struct hv *virtual_sim(const struct virtual *virtual);
uint64_t virtual_now(const struct virtual *virtual);

#endif
