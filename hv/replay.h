/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * replay: runs a recording through a new engine and compares every decision with the one recorded.
 *
 * The recording may be anything: it is read strictly and within bounds (docs/recording.md). Blocks
 * on the stream, which stays the caller's. Any thread.
 */
#ifndef BALLAST_HV_REPLAY_H
#define BALLAST_HV_REPLAY_H

#include <stdio.h>

#include "policy/engine.h"

struct replay_result {
	uint64_t ticks, actions;
	uint64_t differing;  /* ticks whose decisions are others than those recorded */
	uint64_t first_line; /* of the first that differs, or that could not be read */
	char what[256];	     /* in words: what differs there, or what is wrong with the line */
};

/*
 * 0: read to the end (see differing). -EBADMSG: a line is no valid record (first_line, what).
 * -EPROTO: a version that is not known. -ENOMEM and errors of reading. A last line that was cut
 * off (a crash) is left out and no error. *ret_result is always set.
 */
int replay(FILE *stream, struct replay_result *ret_result);

#endif
