/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * table: rows of text in columns as wide as they need to be. One thread. Without memory a table
 * lacks cells; it is for people to look at.
 */
#ifndef BALLAST_TOOLS_TABLE_H
#define BALLAST_TOOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 16

struct table_column {
	const char *heading;
	bool right; /* numbers and sizes */
};

struct table;

/* NULL: no memory; the functions below then do nothing. The columns are kept, not copied. */
struct table *table_new(const struct table_column *columns, size_t nr);
void table_free(struct table *table);

/* Cells from left to right, a new row behind the last column. NULL: "-", which is unknown or none.
 */
void table_add(struct table *table, const char *text);

/* Heading and rows, without blanks at the ends of lines. */
void table_print(const struct table *table, FILE *stream);

#endif
