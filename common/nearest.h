/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * nearest: the word that was probably meant, for "did you mean". Pure; any thread.
 */
#ifndef BALLAST_COMMON_NEAREST_H
#define BALLAST_COMMON_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/* Longer words are never near anything. */
#define NEAREST_MAX 64

/* Letters to insert, drop, change or swap with their neighbour to make b of a, case ignored. */
size_t nearest_distance(const char *a, const char *b);

/*
 * Whether word is nearer to what than *best (SIZE_MAX at first), and near enough to be meant: at
 * most one in three letters is another, and not the only one. Then *best is its distance.
 */
bool nearest_better(const char *what, const char *word, size_t *best);

#endif
