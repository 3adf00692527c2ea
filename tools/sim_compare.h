/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sim_compare: what the programs of a scenario took under a policy, and several policies side by
 * side.
 *
 * Tells on stdout; texts from files are made printable. Amounts are bytes, times microseconds.
 */
#ifndef BALLAST_TOOLS_SIM_COMPARE_H
#define BALLAST_TOOLS_SIM_COMPARE_H

#include "hv/sim/virtual.h"

/* Of a VM after a run. */
struct sim_result {
	const char *vm;		 /* borrowed from the scenario */
	const char *program;	 /* its first; NULL: it ran none */
	uint64_t elapsed_us;	 /* of that; 0: it was not over */
	uint64_t majfaults;	 /* of all its programs */
	uint64_t swapped_most;	 /* by itself and by the host, at one time */
	uint64_t refaults, ooms; /* refaults in bytes */
};

/* The result of VM number i, from a run that is over. */
struct sim_result sim_result_of(
	const struct scenario *scenario, const struct virtual *virtual, size_t i);

/*
 * Runs the scenario of the file under every policy, with a seed (0: the file's), and prints a
 * table. Returns an exit status of ballast-sim.
 */
int sim_compare(const char *file, uint64_t seed, bool json);

/* Prints how far a run is on stderr, when that is a terminal and it takes long. */
void sim_progress(const char *what, uint64_t now, uint64_t length);

#endif
