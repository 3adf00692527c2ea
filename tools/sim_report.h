/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sim_report: what ballast-sim run tells: the decisions as they are made, a table of before and
 * after with the simulated hypervisor's figures, and what became of the expectations.
 *
 * Writes to standard output.
 */
#ifndef BALLAST_TOOLS_SIM_REPORT_H
#define BALLAST_TOOLS_SIM_REPORT_H

#include "hv/sim/virtual.h"

struct report;

/* silent: decisions are counted, not told. All borrowed. -ENOMEM. */
int report_new(const struct scenario *scenario, const char *file, struct virtual *virtual,
	bool silent, struct report **ret_report);
void report_free(struct report *report); /* takes NULL */

void report_tick(struct report *report, const struct engine_output *output);
void report_log(struct report *report, const struct core_line *line);
/* The first one is "before". */
void report_step(struct report *report);

/* After the run. quiet: only what is not as expected. -ENOMEM. */
int report_text(struct report *report, bool quiet);
int report_json(struct report *report);
bool report_right(const struct report *report);

#endif
