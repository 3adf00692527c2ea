/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record: what every tick read and decided, as JSON lines, only what changed (docs/recording.md).
 *
 * Attached to a core with core_on_tick(); replay.h reads it back. Errors of writing do not stop the
 * daemon: the recording ends there, and record_error() tells, so that the daemon can say it once.
 * Each tick is handed to the kernel as it ends, so a crash loses at most the line being written.
 *
 * The planner's thread calls. Blocks as the stream does: a regular file, please.
 */
#ifndef BALLAST_HV_RECORD_H
#define BALLAST_HV_RECORD_H

#include <stdio.h>

#include "hv/core.h"

struct record;

/*
 * Takes over the stream and writes the header line: version, engine configuration. On failure
 * (-ENOMEM, errors of writing) the stream stays the caller's.
 */
int record_new(FILE *stream, const struct engine_config *config, struct record **ret_record);
void record_free(struct record *record); /* flushes and closes; takes NULL */

/* The engine has another configuration from the next tick on. */
void record_new_config(struct record *record, const struct engine_config *config);

/* 0: all that was told is written; else what ended the recording, a negative errno. */
int record_error(const struct record *record);

/* For core_on_tick(); record is the ctx. */
void record_tick(void *record, const struct engine_input *input, int error,
	const struct engine_output *output);
void record_name(void *record, uint64_t id, const struct hv_uuid *uuid, const char *name);

#endif
