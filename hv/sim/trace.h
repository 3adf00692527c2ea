/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace: a working set over time, from a file of lines "TIME,SIZE", as in "60s,512MiB".
 *
 * Times begin at 0 and go on in equal steps, which the second line sets: where one is missing the
 * trace has a hole, and nobody guesses what was there. A first line "time,working-set", empty lines
 * and those that begin with # are passed over. Lines and their number are bounded: a file of any
 * size is refused as soon as it is too long.
 *
 * Reads one file; never writes or logs. Bytes, microseconds.
 */
#ifndef BALLAST_HV_SIM_TRACE_H
#define BALLAST_HV_SIM_TRACE_H

#include "hv/sim/program.h"

/*
 * 0, and the points are the caller's to free; -EINVAL: what is wrong in why, with file and line;
 * -ENOMEM.
 */
int trace_load(const char *path, struct program_point **ret_points, size_t *ret_nr, char *why,
	size_t size);

#endif
