/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pauses: the file that makes a pause outlive the daemon. Read at start, written with each change:
 * whole or not at all. A file that cannot be read or understood stands for "everything is paused":
 * somebody paused something, and what is not known.
 *
 * Start-up and the operator's commands only. Blocks on a small file in the run directory.
 */
#ifndef BALLAST_HV_BALLASTD_PAUSES_H
#define BALLAST_HV_BALLASTD_PAUSES_H

#include "hv/core.h"

#define PAUSES_FILE "paused" /* in the run directory */

/*
 * Pauses what the file says. 0; a negative errno with words in why: everything is paused. No file:
 * nothing is.
 */
int pauses_load(const char *run_dir, struct core *core, char *why, size_t size);

/* Writes what is paused now; nothing paused: there is no file. On failure the old one stands. */
int pauses_save(const char *run_dir, const struct core *core, char *why, size_t size);

#endif
