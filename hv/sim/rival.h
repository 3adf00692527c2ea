/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rival: who takes memory when the host runs short, to compare ballast with.
 *
 *	none     nobody: the host swaps what its guests have, as it finds it
 *	global   what a kernel does with groups without limits: everyone in proportion
 *	hammer   the old soft limit of soft-limit-rework-v5.1: whoever exceeds it most gives a
 *	         quarter of the excess at priority 0, and the global pass comes always after
 *	ballast  the daemon, by balloons
 *	all      the same with its soft pass off: not among those that are compared
 *
 * The documents' groups are groups of one kernel; here they are guests. So that global and hammer
 * are what the documents measured, they get what no host has: they reach into a guest's own lists,
 * free what its kernel would free, and the host has it at once, as it has what a guest frees by
 * itself. What they leave undone makes those who want memory wait, as direct reclaim does. none
 * and ballast have what a host has: its swap, and balloons with their speed.
 *
 * Pure. Amounts are bytes.
 */
#ifndef BALLAST_HV_SIM_RIVAL_H
#define BALLAST_HV_SIM_RIVAL_H

#include <stddef.h>

#include "hv/sim/guest.h"

struct rival_guest {
	struct guest *guest;
	uint64_t soft_limit; /* UINT64_MAX: none */
	const char *group;   /* path; NULL: none */
};

/* A group's soft limit. */
struct rival_group {
	const char *path;
	uint64_t soft_limit;
};

struct rival_host {
	struct rival_guest *guests; /* those that run */
	size_t nr_guests;
	const struct rival_group *groups;
	size_t nr_groups;
};

struct rival {
	const char *name;
	bool daemon;	   /* ballast acts; else it only watches */
	bool no_soft_pass; /* of ballast: as if there were no soft limits */
	/*
	 * Frees at least so much, where it can; called when the host is below its low watermark,
	 * with what leads to the high one. Returns what was freed. NULL: the host swaps.
	 */
	uint64_t (*reclaim)(const struct rival_host *host, uint64_t bytes);
};

extern const struct rival rivals[];
extern const size_t nr_rivals; /* that are compared with each other */

/* NULL: there is none of that name. */
const struct rival *rival_find(const char *name);

/* Where a kernel with so much memory begins to reclaim, and how far it goes. */
void rival_watermarks(uint64_t total, uint64_t *ret_low, uint64_t *ret_high);

#endif
