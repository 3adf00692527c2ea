/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sim_compare: what the programs of a scenario took under a policy, and several policies side by
 * side.
 *
 * Tells on stdout; texts from files are made printable. Amounts are bytes, times microseconds.
 */
#ifndef BALLAST_TOOLS_SIM_COMPARE_H
#define BALLAST_TOOLS_SIM_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Runs the scenario of the file under every policy, with a seed (0: the file's), and prints a
 * table. Returns an exit status of ballast-sim.
 */
int sim_compare(const char *file, uint64_t seed, bool json);

/* Prints how far a run is on stderr, when that is a terminal and it takes long. */
void sim_progress(const char *what, uint64_t now, uint64_t length);

#endif
