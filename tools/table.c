/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables for people: see table.h. */
#include <config.h>

#include "tools/table.h"

#include <stdlib.h>
#include <string.h>

struct cell {
	struct cell *next;
	char text[];
};

struct table {
	const struct table_column *columns;
	size_t nr_columns;
	struct cell *first, **end; /* from left to right, row by row */
};

struct table *table_new(const struct table_column *columns, size_t nr)
{
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->columns = columns;
	table->nr_columns = nr;
	table->end = &table->first;
	return table;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	while (table->first) {
		struct cell *cell = table->first;

		table->first = cell->next;
		free(cell);
	}
	free(table);
}

void table_add(struct table *table, const char *text)
{
	const char *shown = text ? text : "-";
	struct cell *cell;

	if (!table)
		return;
	cell = malloc(sizeof(*cell) + strlen(shown) + 1);
	if (!cell)
		return;
	cell->next = NULL;
	memcpy(cell->text, shown, strlen(shown) + 1);
	*table->end = cell;
	table->end = &cell->next;
}

/* Columns on a terminal: characters, not bytes. */
static size_t width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void pad(size_t n, FILE *stream)
{
	while (n-- > 0)
		fputc(' ', stream);
}

static void print_cell(
	const struct table_column *column, const char *text, size_t wide, bool last, FILE *stream)
{
	size_t blank = wide - width(text);

	if (column->right)
		pad(blank, stream);
	fputs(text, stream);
	if (!last && !column->right)
		pad(blank, stream);
	fputs(last ? "\n" : "  ", stream);
}

void table_print(const struct table *table, FILE *stream)
{
	size_t wide[TABLE_COLUMNS_MAX], column = 0, nr;

	if (!table || table->nr_columns == 0 || table->nr_columns > TABLE_COLUMNS_MAX)
		return;
	nr = table->nr_columns;
	for (size_t i = 0; i < nr; i++)
		wide[i] = width(table->columns[i].heading);
	for (const struct cell *cell = table->first; cell; cell = cell->next) {
		size_t w = width(cell->text);

		wide[column] = w > wide[column] ? w : wide[column];
		column = (column + 1) % nr;
	}
	for (size_t i = 0; i < nr; i++)
		print_cell(&table->columns[i], table->columns[i].heading, wide[i], i + 1 == nr,
			stream);
	column = 0;
	for (const struct cell *cell = table->first; cell; cell = cell->next) {
		print_cell(&table->columns[column], cell->text, wide[column], column + 1 == nr,
			stream);
		column = (column + 1) % nr;
	}
}
