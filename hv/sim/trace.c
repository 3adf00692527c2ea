/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Traces of working sets; see trace.h. */
#include <config.h>

#include "hv/sim/trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/size.h"
#include "hv/sim/expect.h"
#include "hv/sim/memory.h"

/* "86400s,1024GiB" and room for blanks. */
#define LINE_MAX_BYTES 128
/* Comments and empty lines as well. */
#define LINES_MAX (2 * PROGRAM_POINTS_MAX)
#define HEADER	  "time,working-set"

struct reader {
	const char *path;
	unsigned int line;
	char *why;
	size_t size;
	struct program_point *points;
	size_t nr;
};

__attribute__((format(printf, 2, 3))) static int wrong(
	const struct reader *reader, const char *format, ...)
{
	char what[200];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	snprintf(reader->why, reader->size, "%s:%u: %s", reader->path, reader->line, what);
	return -EINVAL;
}

static int take_point(struct reader *reader, char *line)
{
	struct program_point point;
	const struct program_point *last = reader->nr ? &reader->points[reader->nr - 1] : NULL;
	char *comma = strchr(line, ','), error[160];
	uint64_t step;
	int r;

	if (!comma)
		return wrong(reader, "write TIME,SIZE, as in 60s,512MiB");
	*comma = '\0';
	if (expect_parse_time(line, &point.time, error, sizeof error) < 0)
		return wrong(reader, "%s", error);
	r = size_parse_amount(comma + 1, &point.bytes);
	if (r < 0)
		return wrong(reader, "%s", size_parse_error(comma + 1, r, error, sizeof error));
	point.bytes -= point.bytes % MEMORY_PAGE;
	if (!reader->nr && point.time)
		return wrong(reader, "a trace begins at 0s");
	if (last && point.time <= last->time)
		return wrong(reader, "time goes back");
	if (last && reader->nr > 1) {
		step = reader->points[1].time;
		if (point.time != last->time + step)
			return wrong(reader,
				"the trace has a hole: behind %.3g s comes %.6g s, and it has a "
				"line "
				"every %.3g s",
				(double)last->time / 1e6, (double)point.time / 1e6,
				(double)step / 1e6);
	}
	if (reader->nr == PROGRAM_POINTS_MAX)
		return wrong(reader, "more than %d lines", PROGRAM_POINTS_MAX);
	reader->points[reader->nr++] = point;
	return 0;
}

static int take_lines(struct reader *reader, FILE *stream)
{
	char line[LINE_MAX_BYTES];
	int r;

	while (fgets(line, sizeof line, stream)) {
		size_t length = strcspn(line, "\r\n");

		if (++reader->line > LINES_MAX)
			return wrong(reader, "more than %d lines", LINES_MAX);
		if (strlen(line) == sizeof line - 1 && !line[length])
			return wrong(reader, "the line is too long");
		line[length] = '\0';
		if (!length || *line == '#' || (reader->line == 1 && !strcmp(line, HEADER)))
			continue;
		r = take_point(reader, line);
		if (r < 0)
			return r;
	}
	if (ferror(stream))
		return wrong(reader, "%s", strerror(errno));
	if (reader->nr < 2)
		return wrong(reader, "a trace has two lines or more");
	return 0;
}

int trace_load(
	const char *path, struct program_point **ret_points, size_t *ret_nr, char *why, size_t size)
{
	struct reader reader = { .path = path, .why = why, .size = size };
	FILE *stream = fopen(path, "r");
	struct stat status;
	int r;

	if (!stream || fstat(fileno(stream), &status) < 0 || !S_ISREG(status.st_mode)) {
		snprintf(why, size, "%s: %s", path, stream ? "is no file" : strerror(errno));
		r = -EINVAL;
		goto out;
	}
	reader.points = calloc(PROGRAM_POINTS_MAX + 1, sizeof *reader.points);
	r = reader.points ? take_lines(&reader, stream) : -ENOMEM;
	if (r < 0)
		goto out;
	*ret_points = reader.points;
	*ret_nr = reader.nr;
	reader.points = NULL;
out:
	if (stream)
		fclose(stream);
	free(reader.points);
	return r;
}
