/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record: what every tick read and decided, as JSON lines, only what changed (docs/recording.md).
 *
 * Attached to a core with core_on_tick(); replay.h reads it back. Writing errors do not stop the
 * daemon: the recording ends, with one message, and record_error() tells.
 */
#ifndef BALLAST_HV_RECORD_H
#define BALLAST_HV_RECORD_H

#include <stdio.h>

#include "hv/core.h"

struct record;

/* Takes over the stream and writes the header line: version, engine configuration. */
int record_new(FILE *stream, const struct engine_config *config, struct record **ret_record);
void record_free(struct record *record); /* flushes and closes */
int record_error(const struct record *record);

void record_tick(void *record, const struct engine_input *input, int error,
	const struct engine_output *output);
void record_name(void *record, uint64_t id, const struct hv_uuid *uuid, const char *name);

#endif
