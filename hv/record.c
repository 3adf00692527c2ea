/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record: see record.h. One line of JSON a tick, as docs/recording.md has it; the fields of every
 * struct stand in record_fields.c, which replay.c reads with too.
 */
#include <config.h>

#include "hv/record.h"

#include <errno.h>
#include <stdlib.h>

#include "hv/record_fields.h"

struct record {
	FILE *stream;
	int error;
};

/* Ends the line, and the recording with the first error. */
static void end_line(struct record *record, int r)
{
	if (r == 0) {
		errno = 0;
		fputc('\n', record->stream);
		if (fflush(record->stream) != 0 || ferror(record->stream))
			r = errno ? -errno : -EIO;
	}
	record->error = r;
}

/* Quoted and escaped. */
static int write_text(FILE *stream, const char *text)
{
	struct json_object *object = json_object_new_string(text);
	const char *quoted = NULL;

	if (object)
		quoted = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
	if (quoted)
		fputs(quoted, stream);
	json_object_put(object);
	return quoted ? 0 : -ENOMEM;
}

/* Nothing where there are none. */
static int write_array(FILE *stream, const char *name, const struct record_struct *type,
	const void *values, size_t nr)
{
	int r;

	if (nr == 0)
		return 0;
	fprintf(stream, ",\"%s\":[", name);
	for (size_t i = 0; i < nr; i++) {
		if (i > 0)
			fputc(',', stream);
		r = record_write(stream, type, (const char *)values + i * type->size);
		if (r < 0)
			return r;
	}
	fputc(']', stream);
	return 0;
}

static int write_input(FILE *stream, const struct engine_input *input)
{
	int r;

	fputs("{\"now\":", stream);
	record_write_u64(stream, input->now);
	if (input->pool) {
		fputs(",\"pool\":", stream);
		r = record_write(stream, &record_pool, input->pool);
		if (r < 0)
			return r;
	}
	r = write_array(stream, "changes", &record_change, input->changes, input->nr_changes);
	if (r == 0)
		r = write_array(
			stream, "samples", &record_sample, input->samples, input->nr_samples);
	if (r == 0)
		r = write_array(
			stream, "results", &record_result, input->results, input->nr_results);
	if (r == 0)
		r = write_array(
			stream, "requests", &record_request, input->requests, input->nr_requests);
	if (r == 0)
		r = write_array(
			stream, "charges", &record_charge, input->charges, input->nr_charges);
	return r;
}

static int write_output(FILE *stream, int error, const struct engine_output *output)
{
	int r;

	if (error != 0) {
		fputs(",\"error\":", stream);
		record_write_i64(stream, error);
	}
	r = write_array(stream, "actions", &record_action, output->actions, output->nr_actions);
	if (r == 0)
		r = write_array(stream, "events", &record_event, output->events, output->nr_events);
	if (r == 0 && output->next != UINT64_MAX) {
		fputs(",\"next\":", stream);
		record_write_u64(stream, output->next);
	}
	fputc('}', stream);
	return r;
}

void record_tick(
	void *ctx, const struct engine_input *input, int error, const struct engine_output *output)
{
	struct record *record = ctx;
	int r;

	if (record->error != 0)
		return;
	r = write_input(record->stream, input);
	if (r == 0)
		r = write_output(record->stream, error, output);
	end_line(record, r);
}

void record_name(void *ctx, uint64_t id, const struct hv_uuid *uuid, const char *name)
{
	struct record *record = ctx;
	char text[HV_UUID_TEXT];
	int r;

	if (record->error != 0)
		return;
	fputs("{\"id\":", record->stream);
	record_write_u64(record->stream, id);
	if (uuid) {
		hv_uuid_format(uuid, text);
		fprintf(record->stream, ",\"uuid\":\"%s\"", text);
	}
	fputs(",\"name\":", record->stream);
	r = write_text(record->stream, name);
	fputc('}', record->stream);
	end_line(record, r);
}

void record_new_config(struct record *record, const struct engine_config *config)
{
	int r;

	if (record->error != 0)
		return;
	fputs("{\"config\":", record->stream);
	r = record_write(record->stream, &record_config, config);
	fputc('}', record->stream);
	end_line(record, r);
}

int record_error(const struct record *record)
{
	return record->error;
}

int record_new(FILE *stream, const struct engine_config *config, struct record **ret_record)
{
	struct record *record = calloc(1, sizeof(*record));
	int r;

	if (!record)
		return -ENOMEM;
	record->stream = stream;
	fprintf(stream,
		"{\"format\":\"%s\",\"version\":%d,\"ballast\":\"%s\",\"config\":", RECORD_FORMAT,
		RECORD_VERSION, PACKAGE_VERSION);
	r = record_write(stream, &record_config, config);
	fputc('}', stream);
	end_line(record, r);
	if (record->error < 0) {
		r = record->error;
		free(record);
		return r;
	}
	*ret_record = record;
	return 0;
}

void record_free(struct record *record)
{
	if (!record)
		return;
	fclose(record->stream);
	free(record);
}
