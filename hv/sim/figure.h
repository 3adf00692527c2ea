/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * figure: everything of a simulated host that has a name in scenarios: "actual" of a VM, "free" of
 * the pool. What the simulated hypervisor knows is read there, the rest from the daemon's core.
 *
 * Reads only. Bytes, counts, or 0 and 1.
 */
#ifndef BALLAST_HV_SIM_FIGURE_H
#define BALLAST_HV_SIM_FIGURE_H

#include "hv/core.h"
#include "hv/sim/sim.h"

/* Everything that a figure may be read from. */
struct figure_reading {
	bool simulated; /* vm and stats are there */
	struct sim_vm_view vm;
	struct guest_stats stats;
	bool seen; /* core is there */
	struct core_vm_view core;
	struct core_status status;
	struct sim_host_view host;
};

struct figure {
	const char *subject; /* "vm", "pool", "host" */
	const char *name;
	bool bytes; /* else a count, or 0 and 1 */
	bool (*read)(const struct figure_reading *reading, int64_t *ret_value);
};

struct figure_world {
	const struct core *core;
	const struct hv *sim;
};

/* NULL: there is none. */
const struct figure *figure_find(const char *subject, const char *name);

/* vm: of a VM's figure, else NULL. False: it is not known now. */
bool figure_read(const struct figure *figure, const char *vm, const struct figure_world *world,
	int64_t *ret_value);

#endif
