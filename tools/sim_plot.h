/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sim_plot: a picture of every VM over time. Samples once in a thousandth of the scenario's length
 * and gives them to gnuplot at the end, which has to be installed.
 */
#ifndef BALLAST_TOOLS_SIM_PLOT_H
#define BALLAST_TOOLS_SIM_PLOT_H

#include "hv/sim/virtual.h"

struct plot;

/*
 * path ends in .png or .svg and has no quotes, backslash or line break, else -EINVAL; -ENOMEM. All
 * is borrowed.
 */
int plot_new(const struct scenario *scenario, const struct virtual *virtual, const char *path,
	struct plot **ret_plot);
void plot_free(struct plot *plot);

/* After each step of the run. */
void plot_step(struct plot *plot, uint64_t now);
/* Draws it. A negative errno, and it is told on stderr. */
int plot_finish(struct plot *plot);

#endif
