/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Asking memory for what a loop will need a few rounds from now. A tick that meets a hundred
 * thousand groups spends most of its time waiting for them, one after another, unless several are
 * on their way at once; atomic operations make that worse, as each of them waits for all writes
 * before it.
 *
 * Changes nothing but time: any pointer may be given, also NULL or one that is not valid any more.
 */
#ifndef BALLAST_POLICY_AHEAD_H
#define BALLAST_POLICY_AHEAD_H

#include <stddef.h>

#define AHEAD_LINE 64 /* bytes of a cache line */

/* Rounds: enough for what takes a hundred times as long as a round's own work. */
#define AHEAD_ROUNDS 8

/* The lines first to last of what is at p. */
static inline void ahead(const void *p, size_t first, size_t last)
{
	for (size_t line = first; line <= last; line++)
		__builtin_prefetch((const char *)p + line * AHEAD_LINE, 1);
}

#endif
