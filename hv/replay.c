/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * replay: see replay.h. Reads what record.c wrote, by the same tables (record_fields.h), line by
 * line, and trusts none of it: a file may come from anywhere.
 */
#include <config.h>

#include "hv/replay.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/text.h"
#include "hv/record_fields.h"

/* 2 KiB for each VM that there may be: the first tick writes some 700 bytes, the busiest 1,500. */
#define LINE_MAX_BYTES (UINT64_C(128) << 20)
/* Linux's errors are below. */
#define ERRNO_MAX 4095
#define TIME_TEXT 32
/* Smaller buffers are not worth growing. */
#define AT_FIRST 64

/* An array that is read from each line anew. */
struct array {
	void *values;
	size_t nr, nr_max;
};

struct name {
	uint64_t id;
	char *text;
};

struct tick {
	uint64_t now, next;
	int64_t error;
	bool has_pool;
	struct engine_pool pool;
	struct array changes, samples, results, requests, charges, actions, events;
};

struct replay {
	FILE *stream;
	char *line;
	size_t length, room;
	bool ended; /* with its newline */
	uint64_t line_nr;

	struct engine *engine; /* NULL: the header was not read yet */
	struct array names;
	struct tick tick;
	char what[RECORD_WHAT];
	struct replay_result result;
};

static int bad(struct replay *replay, const char *what)
{
	snprintf(replay->what, sizeof(replay->what), "%s", what);
	return -EBADMSG;
}

/* Room for one more value of size bytes. */
static int array_grow(struct array *array, size_t size)
{
	size_t nr_max = array->nr_max ? array->nr_max * 2 : AT_FIRST;
	void *values;

	if (array->nr < array->nr_max)
		return 0;
	values = realloc(array->values, nr_max * size);
	if (!values)
		return -ENOMEM;
	array->values = values;
	array->nr_max = nr_max;
	return 0;
}

/* ---- a line ---- */

/* 1: a line, or the rest of the file; 0: the end. */
static int read_line(struct replay *replay)
{
	int c;

	replay->length = 0;
	replay->ended = false;
	while ((c = getc_unlocked(replay->stream)) != EOF && c != '\n') {
		if (replay->length == LINE_MAX_BYTES) {
			replay->line_nr++;
			return bad(replay, "the line is longer than 128 MiB");
		}
		if (replay->length == replay->room) {
			size_t room = replay->room ? replay->room * 2 : BUFSIZ;
			char *line = realloc(replay->line, room);

			if (!line)
				return -ENOMEM;
			replay->line = line;
			replay->room = room;
		}
		replay->line[replay->length++] = (char)c;
	}
	if (c == EOF && ferror(replay->stream))
		return errno ? -errno : -EIO;
	replay->ended = c == '\n';
	replay->line_nr += replay->ended || replay->length > 0;
	return replay->ended || replay->length > 0;
}

/* 1: *ret_object is the caller's, NULL for JSON's null; 0: the line was cut off. */
static int parse_line(struct replay *replay, struct json_object **ret_object)
{
	const char *why = "no valid JSON";
	int r = json_read(replay->line ? replay->line : "", replay->length, ret_object, &why);

	if (r == 0)
		return 1;
	if (r != -EBADMSG)
		return r;
	if (!replay->ended)
		return 0;
	snprintf(replay->what, sizeof(replay->what), "%s no JSON: %s",
		replay->engine ? "the line is" : "this is no recording of ballast: its header is",
		why);
	return -EBADMSG;
}

/* ---- its members ---- */

static int read_array(struct replay *replay, struct json_object *object,
	const struct record_struct *type, struct array *ret_array)
{
	int r;

	if (!json_object_is_type(object, json_type_array))
		return bad(replay, "no array where one should be");
	ret_array->nr = 0;
	for (size_t i = 0; i < json_object_array_length(object); i++) {
		r = array_grow(ret_array, type->size);
		if (r < 0)
			return r;
		r = record_read(json_object_array_get_idx(object, i), type,
			(char *)ret_array->values + ret_array->nr * type->size, replay->what);
		if (r < 0)
			return r;
		ret_array->nr++;
	}
	return 0;
}

static int read_member(
	struct replay *replay, const char *name, struct json_object *member, struct tick *tick)
{
	const struct {
		const char *name;
		const struct record_struct *type;
		struct array *array;
	} arrays[] = {
		{ "changes", &record_change, &tick->changes },
		{ "samples", &record_sample, &tick->samples },
		{ "results", &record_result, &tick->results },
		{ "requests", &record_request, &tick->requests },
		{ "charges", &record_charge, &tick->charges },
		{ "actions", &record_action, &tick->actions },
		{ "events", &record_event, &tick->events },
	};

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
		if (strcmp(arrays[i].name, name) == 0)
			return read_array(replay, member, arrays[i].type, arrays[i].array);
	}
	if (strcmp(name, "pool") == 0) {
		tick->has_pool = true;
		return record_read(member, &record_pool, &tick->pool, replay->what);
	}
	if (strcmp(name, "now") == 0 && record_read_u64(member, RECORD_TIME_MAX, &tick->now) == 0)
		return 0;
	if (strcmp(name, "next") == 0 && record_read_u64(member, UINT64_MAX, &tick->next) == 0)
		return 0;
	if (strcmp(name, "error") == 0 && record_read_i64(member, &tick->error) == 0)
		return 0;
	snprintf(
		replay->what, sizeof(replay->what), "member \"%.40s\" does not belong there", name);
	return -EBADMSG;
}

static int read_tick(struct replay *replay, struct json_object *object)
{
	struct tick *tick = &replay->tick;
	uint64_t before = tick->now;
	int r;

	tick->changes.nr = tick->samples.nr = tick->results.nr = tick->requests.nr = 0;
	tick->charges.nr = tick->actions.nr = tick->events.nr = 0;
	tick->has_pool = false;
	tick->error = 0;
	tick->next = UINT64_MAX;
	json_object_object_foreach(object, name, member)
	{
		r = read_member(replay, name, member, tick);
		if (r < 0)
			return r;
	}
	return tick->now < before ? bad(replay, "time goes backwards") : 0;
}

static int read_config(
	struct replay *replay, struct json_object *config, struct engine_config *ret_config)
{
	return record_read(config, &record_config, ret_config, replay->what);
}

/* A new configuration while it runs. */
static int read_new_config(struct replay *replay, struct json_object *config)
{
	struct engine_config engine_config;
	int r = read_config(replay, config, &engine_config);

	if (r < 0)
		return r;
	r = engine_set_config(replay->engine, &engine_config);
	return r == -EINVAL ? bad(replay, "the configuration is none that an engine takes") : r;
}

static int read_header(struct replay *replay, struct json_object *object)
{
	struct json_object *version, *config;
	const char *format;
	struct engine_config engine_config;
	uint64_t number;
	int r;

	if (json_get_string(object, "format", &format) < 0 || strcmp(format, RECORD_FORMAT) != 0)
		return bad(replay, "this is no recording of ballast: it has no such header");
	if (!json_object_object_get_ex(object, "version", &version) ||
		record_read_u64(version, UINT64_MAX, &number) < 0)
		return bad(replay, "the header has no version");
	if (number != RECORD_VERSION) {
		snprintf(replay->what, sizeof(replay->what),
			"the recording has version %" PRIu64 "; this program reads version %d",
			number, RECORD_VERSION);
		return -EPROTO;
	}
	if (!json_object_object_get_ex(object, "config", &config))
		return bad(replay, "the header has no configuration");
	r = read_config(replay, config, &engine_config);
	if (r < 0)
		return r;
	r = engine_new(&engine_config, &replay->engine);
	return r == -EINVAL ? bad(replay, "the configuration is none that an engine takes") : r;
}

/* Names are for messages only. */
static int read_name(struct replay *replay, struct json_object *object)
{
	struct json_object *id;
	const char *name;
	struct name *entry;
	uint64_t number;
	int r;

	if (!json_object_object_get_ex(object, "id", &id) ||
		record_read_u64(id, UINT64_MAX, &number) < 0 ||
		json_get_string(object, "name", &name) < 0)
		return bad(replay, "neither a tick nor a name");
	r = array_grow(&replay->names, sizeof(*entry));
	if (r < 0)
		return r;
	entry = (struct name *)replay->names.values + replay->names.nr;
	entry->id = number;
	entry->text = strdup(name);
	if (!entry->text)
		return -ENOMEM;
	replay->names.nr++;
	return 0;
}

/* ---- running and comparing ---- */

/* The newest name of the id. */
static const char *name_of(const struct replay *replay, uint64_t id)
{
	const struct name *names = replay->names.values;

	for (size_t i = replay->names.nr; i > 0; i--) {
		if (names[i - 1].id == id)
			return names[i - 1].text;
	}
	return "?";
}

/* Of the first that differs; whether there is one. */
static bool differs(struct replay *replay, const char *kind, const struct record_struct *type,
	const void *now, size_t nr, const struct array *recorded)
{
	char *what = replay->result.what;
	size_t size = sizeof(replay->result.what);

	for (size_t i = 0; i < nr && i < recorded->nr; i++) {
		const void *value = (const char *)now + i * type->size;
		uint64_t id;

		if (record_same(type, value, (const char *)recorded->values + i * type->size,
			    replay->what))
			continue;
		id = record_id(type, value);
		snprintf(what, size, "%s %zu (%" PRIu64 ", %.60s): %s", kind, i + 1, id,
			name_of(replay, id), replay->what);
		return true;
	}
	if (nr == recorded->nr)
		return false;
	snprintf(what, size, "%zu %ss now, recorded were %zu", nr, kind, recorded->nr);
	return true;
}

/* A recorded error may be any number. */
static const char *error_words(int64_t error)
{
	if (error == 0)
		return "none";
	return error < 0 && error >= -ERRNO_MAX ? strerror((int)-error) : "no error that there is";
}

static const char *time_words(uint64_t us, char text[TIME_TEXT])
{
	if (us == UINT64_MAX)
		return "when something comes";
	snprintf(text, TIME_TEXT, "at %" PRIu64 " us", us);
	return text;
}

/* Whether what was decided is something else than what was recorded; in words in result.what. */
static bool decided_otherwise(struct replay *replay, int error, const struct engine_output *output)
{
	const struct tick *tick = &replay->tick;
	char *what = replay->result.what;
	size_t size = sizeof(replay->result.what);
	char next[TIME_TEXT], recorded[TIME_TEXT];

	if (error != tick->error) {
		snprintf(what, size, "the tick's error is \"%s\", recorded was \"%s\"",
			error_words(error), error_words(tick->error));
		return true;
	}
	if (differs(replay, "action", &record_action, output->actions, output->nr_actions,
		    &tick->actions) ||
		differs(replay, "event", &record_event, output->events, output->nr_events,
			&tick->events))
		return true;
	if (output->next != tick->next) {
		snprintf(what, size, "the next tick is due %s, recorded was %s",
			time_words(output->next, next), time_words(tick->next, recorded));
		return true;
	}
	return false;
}

static bool same_values(struct replay *replay, const struct record_struct *type, const void *now,
	size_t nr, const struct array *recorded)
{
	if (nr != recorded->nr)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (!record_same(type, (const char *)now + i * type->size,
			    (const char *)recorded->values + i * type->size, replay->what))
			return false;
	return true;
}

static bool decided_alike(struct replay *replay, int error, const struct engine_output *output)
{
	const struct tick *tick = &replay->tick;

	return error == tick->error && output->next == tick->next &&
	       same_values(replay, &record_action, output->actions, output->nr_actions,
		       &tick->actions) &&
	       same_values(replay, &record_event, output->events, output->nr_events, &tick->events);
}

static int run_tick(struct replay *replay)
{
	const struct tick *tick = &replay->tick;
	const struct engine_input input = {
		.now = tick->now,
		.pool = tick->has_pool ? &tick->pool : NULL,
		.changes = tick->changes.values,
		.nr_changes = tick->changes.nr,
		.samples = tick->samples.values,
		.nr_samples = tick->samples.nr,
		.results = tick->results.values,
		.nr_results = tick->results.nr,
		.requests = tick->requests.values,
		.nr_requests = tick->requests.nr,
		.charges = tick->charges.values,
		.nr_charges = tick->charges.nr,
	};
	struct engine_output output = { 0 };
	struct replay_result *result = &replay->result;
	int error = engine_tick(replay->engine, &input, &output);

	if (error == -ENOMEM && tick->error != error)
		return error;
	result->ticks++;
	result->actions += output.nr_actions;
	/* Words, for which names are looked for, are of the first that differs alone. */
	if (result->differing > 0) {
		result->differing += !decided_alike(replay, error, &output);
		return 0;
	}
	if (!decided_otherwise(replay, error, &output))
		return 0;
	result->differing = 1;
	result->first_line = replay->line_nr;
	return 0;
}

static int run_line(struct replay *replay, struct json_object *object)
{
	struct json_object *config;
	int r;

	if (!json_object_is_type(object, json_type_object))
		return bad(replay, "a line is no object");
	if (!replay->engine)
		return read_header(replay, object);
	if (json_object_object_get_ex(object, "config", &config))
		return read_new_config(replay, config);
	if (!json_object_object_get_ex(object, "now", NULL))
		return read_name(replay, object);
	r = read_tick(replay, object);
	return r < 0 ? r : run_tick(replay);
}

static int run(struct replay *replay)
{
	struct json_object *object = NULL;
	int r;

	while ((r = read_line(replay)) > 0) {
		r = parse_line(replay, &object);
		if (r <= 0)
			break;
		r = run_line(replay, object);
		json_object_put(object);
		if (r < 0)
			break;
	}
	if (r == 0 && !replay->engine) {
		replay->line_nr = 1;
		return bad(replay, "this is no recording of ballast: it has no header");
	}
	return r;
}

static void replay_done(struct replay *replay)
{
	struct tick *tick = &replay->tick;
	struct name *names = replay->names.values;

	for (size_t i = 0; i < replay->names.nr; i++)
		free(names[i].text);
	free(replay->names.values);
	free(tick->changes.values);
	free(tick->samples.values);
	free(tick->results.values);
	free(tick->requests.values);
	free(tick->charges.values);
	free(tick->actions.values);
	free(tick->events.values);
	free(replay->line);
	engine_free(replay->engine);
}

int replay(FILE *stream, struct replay_result *ret_result)
{
	struct replay replay = { .stream = stream };
	int r;

	r = run(&replay);
	if (r == -EBADMSG || r == -EPROTO) {
		replay.result.first_line = replay.line_nr;
		snprintf(replay.result.what, sizeof(replay.result.what), "%s", replay.what);
	}
	*ret_result = replay.result;
	/* Words may hold what the file says: it shall not speak to a terminal. */
	text_printable(replay.result.what, ret_result->what, sizeof(ret_result->what));
	replay_done(&replay);
	return r;
}
