/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The word that was meant: see nearest.h. */
#include <config.h>

#include "common/nearest.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

static int lower(char c)
{
	return tolower((unsigned char)c);
}

/* Optimal string alignment over three rows. */
size_t nearest_distance(const char *a, const char *b)
{
	size_t rows[3][NEAREST_MAX + 1];
	size_t na = strlen(a), nb = strlen(b);

	if (na > NEAREST_MAX || nb > NEAREST_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= nb; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t *row = rows[i % 3], *above = rows[(i - 1) % 3];
		const size_t *above2 = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			bool same = lower(a[i - 1]) == lower(b[j - 1]);

			row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + !same);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
				lower(a[i - 2]) == lower(b[j - 1]) && above2[j - 2] + 1 < row[j])
				row[j] = above2[j - 2] + 1;
		}
	}
	return rows[na % 3][nb];
}

bool nearest_better(const char *what, const char *word, size_t *best)
{
	size_t distance = nearest_distance(what, word);
	size_t length = strlen(what) > strlen(word) ? strlen(what) : strlen(word);

	if (distance >= *best || distance >= length || distance > (length + 2) / 3)
		return false;
	*best = distance;
	return true;
}
