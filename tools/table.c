/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables for people: see table.h. */
#include <config.h>

#include "tools/table.h"

#include <stdlib.h>
#include <string.h>

struct table {
	const struct table_column *columns;
	size_t nr_columns;
	char **cells;
	size_t nr_cells, max_cells;
};

struct table *table_new(const struct table_column *columns, size_t nr)
{
	struct table *table = calloc(1, sizeof(*table));

	if (table) {
		table->columns = columns;
		table->nr_columns = nr;
	}
	return table;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->nr_cells; i++)
		free(table->cells[i]);
	free(table->cells);
	free(table);
}

void table_add(struct table *table, const char *text)
{
	if (!table)
		return;
	if (table->nr_cells == table->max_cells) {
		size_t max = table->max_cells ? table->max_cells * 2 : 64;
		char **cells = reallocarray(table->cells, max, sizeof(*cells));

		if (!cells)
			return;
		table->cells = cells;
		table->max_cells = max;
	}
	table->cells[table->nr_cells++] = strdup(text ? text : "-");
}

/* Columns on a terminal: characters, not bytes. */
static size_t width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static const char *cell(const struct table *table, size_t i)
{
	return i < table->nr_cells && table->cells[i] ? table->cells[i] : "";
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
	if (!last) {
		if (!column->right)
			pad(blank, stream);
		pad(2, stream);
	}
}

void table_print(const struct table *table, FILE *stream)
{
	size_t wide[TABLE_COLUMNS_MAX], rows;

	if (!table || table->nr_columns > TABLE_COLUMNS_MAX)
		return;
	rows = (table->nr_cells + table->nr_columns - 1) / table->nr_columns;
	for (size_t c = 0; c < table->nr_columns; c++) {
		wide[c] = width(table->columns[c].heading);
		for (size_t r = 0; r < rows; r++) {
			size_t w = width(cell(table, r * table->nr_columns + c));

			wide[c] = w > wide[c] ? w : wide[c];
		}
	}
	for (size_t r = 0; r < rows + 1; r++) {
		for (size_t c = 0; c < table->nr_columns; c++)
			print_cell(&table->columns[c],
				r == 0 ? table->columns[c].heading
				       : cell(table, (r - 1) * table->nr_columns + c),
				wide[c], c + 1 == table->nr_columns, stream);
		fputc('\n', stream);
	}
}
