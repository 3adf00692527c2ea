/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* record and replay: what is written comes back exactly, and only what was written is believed. */
#include <config.h>

#include "hv/record.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hv/record_fields.h"
#include "hv/replay.h"
#include "tests/unit/suite.h"
#include "tests/unit/world.h"

/* A configuration that an engine takes. */
#define CONFIG "{\"granule\":1,\"max_step\":1,\"headroom_fraction\":1,\"speed\":1,\"hold_us\":1}"
#define HEADER "{\"format\":\"ballast-recording\",\"version\":1,\"config\":" CONFIG "}\n"

static const struct {
	const char *name;
	const struct record_struct *type;
} types[] = {
	{ "engine_config", &record_config },
	{ "engine_pool", &record_pool },
	{ "engine_change", &record_change },
	{ "vm_sample", &record_sample },
	{ "engine_result", &record_result },
	{ "engine_request", &record_request },
	{ "charge_seen", &record_charge },
	{ "engine_action", &record_action },
	{ "engine_event", &record_event },
};
#define NR_TYPES (sizeof(types) / sizeof(types[0]))
#define LARGEST	 1024 /* bytes of any of the structs */

static char what[RECORD_WHAT];

/* ---- linked with --wrap: what the world's engine is given, and allocations that fail ---- */

static struct record *recording; /* of every tick, where there is one */
int __real_engine_tick(
	struct engine *engine, const struct engine_input *input, struct engine_output *ret_output);
int __wrap_engine_tick(
	struct engine *engine, const struct engine_input *input, struct engine_output *ret_output);

int __wrap_engine_tick(
	struct engine *engine, const struct engine_input *input, struct engine_output *ret_output)
{
	int r = __real_engine_tick(engine, input, ret_output);

	if (recording)
		record_tick(recording, input, r, ret_output);
	return r;
}

static unsigned int fail_nth; /* from now; 0: none does */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool fails(void)
{
	return fail_nth > 0 && --fail_nth == 0;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

/* ---- structs ---- */

static size_t size_of(const struct record_field *field)
{
	switch (field->type) {
	case RECORD_BOOL:
		return sizeof(bool);
	case RECORD_UINT:
	case RECORD_ERRNO:
	case RECORD_ENUM:
		return sizeof(int);
	case RECORD_STRUCT:
		return field->inner->size;
	default:
		return sizeof(uint64_t);
	}
}

static size_t align_of(const struct record_field *field)
{
	return field->type == RECORD_STRUCT ? field->inner->align : size_of(field);
}

static size_t round_up(size_t size, size_t align)
{
	return (size + align - 1) / align * align;
}

/* Fields in order and without gaps other than what alignment asks for. */
static void check_complete(const char *name, const struct record_struct *type)
{
	size_t end = 0;

	for (size_t i = 0; i < type->nr; i++) {
		const struct record_field *f = &type->fields[i];

		ck_assert_msg(f->offset == round_up(end, align_of(f)),
			"something is missing before %s.%s", name, f->name);
		end = f->offset + size_of(f);
		if (f->type == RECORD_STRUCT)
			check_complete(f->name, f->inner);
	}
	ck_assert_msg(type->size == round_up(end, type->align),
		"something is missing at the end of %s", name);
}

START_TEST(every_member_of_the_structs_is_recorded)
{
	for (size_t i = 0; i < NR_TYPES; i++)
		check_complete(types[i].name, types[i].type);
}
END_TEST

/* Every member's name stands in the schema, as `name`. */
static void check_documented(const char *schema, const struct record_struct *type)
{
	for (size_t i = 0; i < type->nr; i++) {
		const struct record_field *f = &type->fields[i];
		char quoted[64];

		snprintf(quoted, sizeof(quoted), "`%s`", f->name);
		ck_assert_msg(strstr(schema, quoted), "docs/recording.md does not have %s", quoted);
		for (uint64_t k = 0; f->type == RECORD_ENUM && k < f->max; k++) {
			snprintf(quoted, sizeof(quoted), "`%s`", f->names[k]);
			ck_assert_msg(strstr(schema, quoted), "docs/recording.md does not have %s",
				quoted);
		}
		if (f->type == RECORD_STRUCT)
			check_documented(schema, f->inner);
	}
}

START_TEST(every_member_is_in_the_schema)
{
	static char schema[1 << 16];
	const char *srcdir = getenv("srcdir");
	char path[4096];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/docs/recording.md", srcdir ? srcdir : ".");
	stream = fopen(path, "r");
	ck_assert_msg(stream, "%s: %s", path, strerror(errno));
	ck_assert_uint_gt(fread(schema, 1, sizeof(schema) - 1, stream), 0);
	fclose(stream);
	for (size_t i = 0; i < NR_TYPES; i++)
		check_documented(schema, types[i].type);
}
END_TEST

static uint64_t seed;

static uint64_t next(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return seed ^ (seed >> 29);
}

/* Zero, the largest, around 2^53, or anything. */
static uint64_t random_value(uint64_t max)
{
	const uint64_t exact = UINT64_C(1) << 53;
	const uint64_t some[] = { 0, max, exact - 1, exact, exact + 1, next() >> (next() % 64) };
	uint64_t value = some[next() % 6];

	return value <= max ? value : value % (max + 1);
}

static void fill(const struct record_struct *type, char *value)
{
	for (size_t i = 0; i < type->nr; i++) {
		const struct record_field *f = &type->fields[i];
		uint64_t u64;
		unsigned int u;

		switch (f->type) {
		case RECORD_STRUCT:
			fill(f->inner, value + f->offset);
			break;
		case RECORD_BOOL:
			*(bool *)(value + f->offset) = next() % 2;
			break;
		case RECORD_I64:
		case RECORD_U64:
			u64 = random_value(f->type == RECORD_I64 ? UINT64_MAX : f->max);
			memcpy(value + f->offset, &u64, sizeof(u64));
			break;
		default:
			u = f->type == RECORD_ERRNO  ? -(unsigned int)random_value(4095)
			    : f->type == RECORD_ENUM ? (unsigned int)random_value(f->max - 1)
						     : (unsigned int)random_value(f->max);
			memcpy(value + f->offset, &u, sizeof(u));
		}
	}
}

/* As JSON, to be freed. */
static char *text_of(const struct record_struct *type, const void *value)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	ck_assert_int_eq(record_write(stream, type, value), 0);
	ck_assert_int_eq(fclose(stream), 0);
	return text;
}

static int read_text(const char *text, const struct record_struct *type, void *ret_value)
{
	struct json_object *object = json_tokener_parse(text);
	int r;

	ck_assert_ptr_nonnull(object);
	r = record_read(object, type, ret_value, what);
	json_object_put(object);
	return r;
}

static void check_round_trip(const struct record_struct *type, const void *value)
{
	char back[LARGEST];
	char *text = text_of(type, value);

	memset(back, 0xa5, sizeof(back));
	ck_assert_msg(read_text(text, type, back) == 0, "%s: %s", text, what);
	ck_assert_msg(record_same(type, back, value, what), "%s: %s", text, what);
	ck_assert_msg(memcmp(back, value, type->size) == 0, "%s: padding", text);
	free(text);
}

START_TEST(every_value_of_every_member_comes_back_exactly)
{
	char value[LARGEST];

	for (size_t i = 0; i < NR_TYPES; i++) {
		ck_assert_uint_le(types[i].type->size, sizeof(value));
		for (seed = 0; seed < 500 * 1000; seed += 1000) {
			uint64_t before = seed;

			memset(value, 0, sizeof(value));
			fill(types[i].type, value);
			check_round_trip(types[i].type, value);
			seed = before;
		}
	}
}
END_TEST

START_TEST(the_ends_of_64_bits_come_back_exactly)
{
	const int64_t ends[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct engine_event event;

		memset(&event, 0, sizeof(event));
		event.type = ENGINE_EVENT_BELOW_MIN;
		event.a = UINT64_MAX - i;
		event.b = ends[i];
		check_round_trip(&record_event, &event);
	}
}
END_TEST

START_TEST(what_is_zero_is_left_out_but_for_the_type)
{
	struct engine_change change;
	struct vm_sample sample;
	char *text;

	memset(&change, 0, sizeof(change));
	memset(&sample, 0, sizeof(sample));
	text = text_of(&record_change, &change);
	ck_assert_str_eq(text, "{\"type\":\"group_new\"}");
	free(text);
	sample.id = 7;
	sample.known = VM_ACTUAL;
	sample.actual = UINT64_C(1) << 40;
	text = text_of(&record_sample, &sample);
	ck_assert_str_eq(text, "{\"id\":7,\"known\":1,\"actual\":1099511627776}");
	free(text);
}
END_TEST

START_TEST(numbers_that_doubles_cannot_hold_are_strings)
{
	struct engine_event event;
	char *text;

	memset(&event, 0, sizeof(event));
	event.a = (UINT64_C(1) << 53) - 1;
	event.b = -(INT64_C(1) << 53);
	text = text_of(&record_event, &event);
	ck_assert_str_eq(
		text, "{\"type\":\"short\",\"a\":9007199254740991,\"b\":\"-9007199254740992\"}");
	free(text);
}
END_TEST

START_TEST(an_enum_without_a_name_is_not_written)
{
	struct engine_event event;
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	memset(&event, 0, sizeof(event));
	event.type = (enum engine_event_type)99;
	ck_assert_int_eq(record_write(stream, &record_event, &event), -EDOM);
	fclose(stream);
	free(text);
}
END_TEST

START_TEST(members_that_are_unknown_of_another_type_or_out_of_bounds_are_refused)
{
	static const struct {
		const struct record_struct *type;
		const char *text;
	} bad[] = {
		{ &record_event, "[]" },
		{ &record_event, "7" },
		{ &record_event, "{\"type\":\"short\",\"c\":1}" },
		{ &record_event, "{\"type\":\"shorter\"}" },
		{ &record_event, "{\"type\":0}" },
		{ &record_event, "{\"a\":-1}" },
		{ &record_event, "{\"a\":1.0}" },
		{ &record_event, "{\"a\":1e2}" },
		{ &record_event, "{\"a\":true}" },
		{ &record_event, "{\"a\":null}" },
		{ &record_event, "{\"a\":9007199254740992}" },	   /* has to be a string */
		{ &record_event, "{\"a\":\"9007199254740991\"}" }, /* must not be one */
		{ &record_event, "{\"a\":100000000000000000000000}" },
		{ &record_event, "{\"a\":\"18446744073709551616\"}" },
		{ &record_event, "{\"a\":\"99999999999999999999\"}" },
		{ &record_event, "{\"a\":\"184467440737095516150\"}" },
		{ &record_event, "{\"a\":\"018446744073709551615\"}" },
		{ &record_event, "{\"a\":\"-18446744073709551615\"}" },
		{ &record_event, "{\"a\":\" 18446744073709551615\"}" },
		{ &record_event, "{\"a\":\"18446744073709551615\\u0000\"}" },
		{ &record_event, "{\"a\":\"\"}" },
		{ &record_event, "{\"b\":\"9223372036854775808\"}" },
		{ &record_event, "{\"b\":\"-9223372036854775809\"}" },
		{ &record_result, "{\"error\":1}" },
		{ &record_result, "{\"error\":-4096}" },
		{ &record_sample, "{\"stale\":1}" },
		{ &record_sample, "{\"known\":1024}" },
		{ &record_sample, "{\"usable\":4503599627370496}" },
		{ &record_sample, "{\"resident\":4398046511105}" },
		{ &record_sample, "{\"lists\":7}" },
		{ &record_sample, "{\"lists\":{\"active\":7}}" },
		{ &record_change, "{\"knobs\":{\"max\":4503599627370496}}" },
		{ &record_config, "{\"wm_low\":{\"permille\":1001}}" },
	};
	char value[LARGEST];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		what[0] = '\0';
		ck_assert_msg(read_text(bad[i].text, bad[i].type, value) == -EBADMSG, "taken: %s",
			bad[i].text);
		ck_assert_msg(what[0], "no words for %s", bad[i].text);
	}
}
END_TEST

/* ---- recordings ---- */

static char *text; /* of a recording, to be freed */
static size_t size;

/* Three guests, a squeeze, an operator's request, a pause, a death: most kinds of decisions. */
static void record_a_run(void)
{
	static struct world w;
	struct memcg_knobs limited = soft(MIB(100));
	const struct hv_uuid uuid = { .bytes = { 1, 2, 3 } };
	struct engine_config config;

	world_config(&config);
	ck_assert_int_eq(record_new(open_memstream(&text, &size), &config, &recording), 0);
	record_name(recording, 2, &uuid, "batch \"1\"\n\xc3\xa4");
	record_name(recording, 9, NULL, "/prod");
	world_open(&w, &config, MIB(1000));
	world_group(&w, 9, MEMCG_ROOT_ID, &none);
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(300), &limited);
	world_add(&w, 3, 9, MIB(500), MIB(320), &none);
	world_add(&w, 4, 9, MIB(500), MIB(200), &none);
	world_ticks(&w, 10);
	world_vm(&w, 4)->resident += MIB(170);
	world_ticks(&w, 60);
	world_reclaim(&w, 77, 9, MIB(40));
	world_ticks(&w, 60);
	world_state(&w, 3, ENGINE_VM_PAUSED);
	world_knobs(&w, 2, &none);
	world_vm(&w, 2)->stops_at = MIB(250);
	world_ticks(&w, 60);
	world_vm(&w, 4)->gone = true;
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = 4 });
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = 55 }); /* -ENOENT */
	world_ticks(&w, 60);
	world_close(&w);
	ck_assert_int_eq(record_error(recording), 0);
	record_free(recording);
	recording = NULL;
}

static struct replay_result result;

static int replay_text(const char *recorded, size_t length)
{
	FILE *stream = length ? fmemopen((void *)(uintptr_t)recorded, length, "r")
			      : fopen("/dev/null", "r");
	int r;

	ck_assert_ptr_nonnull(stream);
	memset(&result, 0xa5, sizeof(result));
	r = replay(stream, &result);
	fclose(stream);
	return r;
}

static void teardown(void)
{
	free(text);
	text = NULL;
}

/* Where the line of that number begins, counted from 1. */
static char *line(uint64_t nr)
{
	char *at = text;

	while (--nr > 0)
		at = strchr(at, '\n') + 1;
	return at;
}

/* The digit behind the first from at or after at becomes another. Its line's number. */
static uint64_t change_digit(char *at, const char *from)
{
	uint64_t nr = 1;

	ck_assert_ptr_nonnull(at);
	at = strstr(at, from);
	ck_assert_ptr_nonnull(at);
	at += strlen(from);
	*at = *at == '9' ? '8' : (char)(*at + 1);
	for (const char *c = text; c < at; c++)
		nr += *c == '\n';
	return nr;
}

/* The first decision. */
static char *decision(void)
{
	return strstr(text, ",\"actions\":[");
}

/* The line that it is in, which begins with what it was decided from. */
static char *its_input(void)
{
	char *at = decision();

	while (at[-1] != '\n')
		at--;
	return at;
}

START_TEST(a_run_replays_to_the_same_decisions)
{
	record_a_run();
	ck_assert_msg(replay_text(text, size) == 0, "%s", result.what);
	ck_assert_msg(
		result.differing == 0, "line %" PRIu64 ": %s", result.first_line, result.what);
	ck_assert_uint_eq(result.ticks, 250);
	ck_assert_uint_gt(result.actions, 5);
	ck_assert_str_eq(result.what, "");
	/* The run is worth replaying: it has all of these. */
	ck_assert_ptr_nonnull(strstr(text, "\"type\":\"cut\""));
	ck_assert_ptr_nonnull(strstr(text, "\"type\":\"loosen\""));
	ck_assert_ptr_nonnull(strstr(text, "\"type\":\"job_done\""));
	ck_assert_ptr_nonnull(strstr(text, "\"type\":\"vm_state\""));
	ck_assert_ptr_nonnull(strstr(text, "\"error\":-2"));
}
END_TEST

static void record_ticks(struct world *w, struct memcg *leaf, uint64_t pages, unsigned int ticks)
{
	uint64_t has = page_counter_read(&leaf->memory);

	int r = pages > has ? charge_over(leaf, pages - has) : uncharge_direct(leaf, has - pages);

	ck_assert_int_eq(r, 0);
	world_ticks(w, ticks);
}

/*
 * One that is charged page by page, by others than the engine: what of it is seen between its
 * samples brings its group over its max, and the other one gives. It dies, and its memory stays.
 */
static void record_a_paged_run(void)
{
	static struct world w;
	struct memcg_knobs limited = none;
	struct engine_config config;
	struct memcg *leaf;

	limited.max = MIB(400);
	world_config(&config);
	ck_assert_int_eq(record_new(open_memstream(&text, &size), &config, &recording), 0);
	world_open(&w, &config, MIB(1000));
	world_group(&w, 9, MEMCG_ROOT_ID, &limited);
	world_add(&w, 3, 9, MIB(500), MIB(100), &none);
	world_add(&w, 4, 9, MIB(500), MIB(200), &none);
	world_ticks(&w, 5);
	ck_assert_int_eq(engine_page(w.engine, 3, &leaf), 0);
	css_get(&leaf->css); /* who charges it */
	world_vm(&w, 3)->no_process = true;
	record_ticks(&w, leaf, MIB(100), 5);
	record_ticks(&w, leaf, MIB(300), 60);
	world_vm(&w, 3)->gone = true;
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_GONE, .id = 3 });
	record_ticks(&w, leaf, MIB(299) + 7, 60);
	ck_assert_uint_eq(leaf->seen, MIB(299) + 7);
	record_ticks(&w, leaf, 9, 30);
	ck_assert_int_eq(uncharge_direct(leaf, 9), 0);
	css_put(&leaf->css);
	world_ticks(&w, 30);
	ck_assert_uint_eq(engine_tree(w.engine)->nr_groups, 3); /* it is gone */
	world_close(&w);
	ck_assert_int_eq(record_error(recording), 0);
	record_free(recording);
	recording = NULL;
}

START_TEST(a_run_with_a_vm_that_is_charged_page_by_page_replays_to_the_same_decisions)
{
	record_a_paged_run();
	ck_assert_msg(replay_text(text, size) == 0, "%s", result.what);
	ck_assert_msg(
		result.differing == 0, "line %" PRIu64 ": %s", result.first_line, result.what);
	ck_assert_ptr_nonnull(strstr(text, "\"type\":\"cut\""));
	ck_assert_ptr_nonnull(strstr(text, "\"charges\":[{\"id\":3}]")); /* the end */
}
END_TEST

START_TEST(one_changed_charge_changes_decisions)
{
	char *at;

	record_a_paged_run();
	at = strstr(text, ",\"charges\":[{\"id\":3,\"pages\":76800}]");
	ck_assert_ptr_nonnull(at);
	memset(at, ' ', strchr(at, ']') + 1 - at);
	ck_assert_int_eq(replay_text(text, size), 0);
	ck_assert_uint_gt(result.differing, 0);
}
END_TEST

START_TEST(only_what_changed_is_written)
{
	record_a_run();
	ck_assert_ptr_null(strstr(text, "\"actions\":[]"));
	ck_assert_ptr_null(strstr(text, "\"error\":0"));
	ck_assert_ptr_null(strstr(text, "\"job\":0"));
	ck_assert_ptr_null(strstr(text, "\"stale\":false"));
}
END_TEST

START_TEST(one_changed_input_changes_decisions)
{
	uint64_t nr;

	record_a_run();
	nr = change_digit(its_input(), "\"resident\":");
	ck_assert_int_eq(replay_text(text, size), 0);
	ck_assert_uint_gt(result.differing, 0);
	ck_assert_uint_eq(result.first_line, nr);
	ck_assert_ptr_nonnull(strstr(result.what, "recorded"));
}
END_TEST

START_TEST(one_changed_decision_is_noticed_in_its_line_and_nowhere_else)
{
	static const char *const members[] = { "\"target\":", "\"ceiling\":", "\"step\":",
		"\"need\":", "\"share\":", "\"wm_low\":", "\"seq\":", "\"usage\":" };

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		char name[16];
		uint64_t nr;

		record_a_run();
		nr = change_digit(decision(), members[i]);
		ck_assert_int_eq(replay_text(text, size), 0);
		ck_assert_uint_eq(result.differing, 1);
		ck_assert_uint_eq(result.first_line, nr);
		snprintf(name, sizeof(name), "%.*s is ", (int)strlen(members[i]) - 3,
			members[i] + 1);
		ck_assert_msg(strstr(result.what, name), "%s", result.what);
		ck_assert_msg(strstr(result.what, "batch \"1\"\\x0a"), "%s", result.what);
		teardown();
	}
}
END_TEST

START_TEST(a_decision_left_out_or_an_other_error_or_next_is_noticed)
{
	char *at, *end;

	record_a_run();
	at = decision();
	end = strstr(at, "}}]") + 3;
	memmove(at, end, strlen(end) + 1);
	ck_assert_int_eq(replay_text(text, strlen(text)), 0);
	ck_assert_uint_eq(result.differing, 1);
	ck_assert_msg(strstr(result.what, "recorded were 0"), "%s", result.what);
	teardown();

	record_a_run();
	change_digit(text, "\"error\":-");
	ck_assert_int_eq(replay_text(text, size), 0);
	ck_assert_uint_eq(result.differing, 1);
	ck_assert_msg(strstr(result.what, "error is \"No such file"), "%s", result.what);
	teardown();

	record_a_run();
	change_digit(text, "\"next\":");
	ck_assert_int_eq(replay_text(text, size), 0);
	ck_assert_uint_eq(result.differing, 1);
	ck_assert_msg(strstr(result.what, "the next tick is due at "), "%s", result.what);
}
END_TEST

START_TEST(a_last_line_that_was_cut_off_anywhere_is_left_out)
{
	size_t last;

	record_a_run();
	for (last = size - 1; text[last - 1] != '\n'; last--)
		;
	for (size_t length = last; length < size; length++) {
		ck_assert_msg(replay_text(text, length) == 0, "%s", result.what);
		ck_assert_uint_eq(result.differing, 0);
		/* Without its newline alone it is whole. */
		ck_assert_uint_eq(result.ticks, length == size - 1 ? 250 : 249);
	}
}
END_TEST

START_TEST(a_line_that_is_cut_off_before_the_end_is_told_by_its_number)
{
	record_a_run();
	line(101)[-2] = ' '; /* the brace that ends line 100 */
	ck_assert_int_eq(replay_text(text, size), -EBADMSG);
	ck_assert_uint_eq(result.first_line, 100);
	ck_assert_str_ne(result.what, "");
	ck_assert_uint_eq(result.ticks, 96); /* without the header and two names */
}
END_TEST

START_TEST(what_is_no_recording_is_refused_with_words)
{
	static const struct {
		const char *text;
		int r;
		uint64_t line;
	} bad[] = {
		{ "", -EBADMSG, 1 },
		{ "\n", -EBADMSG, 1 },
		{ "garbage\n", -EBADMSG, 1 },
		{ "{\"format\":\"ballast-rec", -EBADMSG, 1 },
		{ "{\"format\":\"else\",\"version\":1}\n", -EBADMSG, 1 },
		{ "{\"format\":\"ballast-recording\"}\n", -EBADMSG, 1 },
		{ "{\"format\":\"ballast-recording\",\"version\":\"1\",\"config\":{}}\n", -EBADMSG,
			1 },
		{ "{\"format\":\"ballast-recording\",\"version\":2,\"new\":{}}\n", -EPROTO, 1 },
		{ "{\"format\":\"ballast-recording\",\"version\":1}\n", -EBADMSG, 1 },
		{ "{\"format\":\"ballast-recording\",\"version\":1,\"config\":[]}\n", -EBADMSG, 1 },
		{ "{\"format\":\"ballast-recording\",\"version\":1,\"config\":{}}\n", -EBADMSG,
			1 }, /* granule 0 */
		{ HEADER "\n", -EBADMSG, 2 },
		{ HEADER "7\n", -EBADMSG, 2 },
		{ HEADER "null\n", -EBADMSG, 2 },
		{ HEADER "{}\n", -EBADMSG, 2 },
		{ HEADER "{\"id\":1}\n", -EBADMSG, 2 },
		{ HEADER "{\"id\":1,\"name\":2}\n", -EBADMSG, 2 },
		{ HEADER "{\"now\":-1}\n", -EBADMSG, 2 },
		{ HEADER "{\"now\":\"18446744073709551615\"}\n", -EBADMSG, 2 },
		{ HEADER "{\"now\":1,\"later\":2}\n", -EBADMSG, 2 },
		{ HEADER "{\"now\":1,\"samples\":{}}\n", -EBADMSG, 2 },
		{ HEADER "{\"now\":1,\"samples\":[7]}\n", -EBADMSG, 2 },
		{ HEADER "{\"now\":1,\"pool\":[]}\n", -EBADMSG, 2 },
		{ HEADER "{\"now\":1,\"charges\":[{\"id\":-1}]}\n", -EBADMSG, 2 },
		{ HEADER "{\"now\":1,\"changes\":[{\"type\":\"vm_sold\"}]}\n", -EBADMSG, 2 },
		{ HEADER "{\"now\":5}\n{\"now\":4}\n", -EBADMSG, 3 },
		{ HEADER "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n",
			-EBADMSG, 2 },
		{ HEADER "{\"now\":1}{\"now\":2}\n", -EBADMSG, 2 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(replay_text(bad[i].text, strlen(bad[i].text)) == bad[i].r, "%s",
			bad[i].text);
		ck_assert_msg(result.first_line == bad[i].line, "%s", bad[i].text);
		ck_assert_msg(result.what[0], "no words for %s", bad[i].text);
	}
}
END_TEST

START_TEST(a_nul_within_a_line_is_refused)
{
	static const char nul[] = HEADER "{\"now\":1}\0{\n";

	ck_assert_int_eq(replay_text(nul, sizeof(nul) - 1), -EBADMSG);
	ck_assert_uint_eq(result.first_line, 2);
}
END_TEST

/* Spaces without end behind the header. */
static ssize_t read_spaces(void *cookie, char *buf, size_t length)
{
	size_t *at = cookie, header = strlen(HEADER);

	if (*at < header) {
		length = length < header - *at ? length : header - *at;
		memcpy(buf, HEADER + *at, length);
		*at += length;
	} else {
		memset(buf, ' ', length);
	}
	return (ssize_t)length;
}

START_TEST(a_line_of_more_than_128_mib_is_refused)
{
	size_t at = 0;
	FILE *stream = fopencookie(&at, "r", (cookie_io_functions_t){ .read = read_spaces });

	ck_assert_ptr_nonnull(stream);
	ck_assert_int_eq(replay(stream, &result), -EBADMSG);
	fclose(stream);
	ck_assert_uint_eq(result.first_line, 2);
	ck_assert_ptr_nonnull(strstr(result.what, "128 MiB"));
}
END_TEST

/* All VMs that there may be, told in one tick and all of them asked. */
START_TEST(the_longest_line_of_a_host_that_is_full_is_taken)
{
	static const uint64_t most = UINT64_C(1) << 38; /* 1 PiB of pages */
	struct engine_change change = { .type = ENGINE_VM_NEW, .id = 65536, .parent = 65536 };
	struct engine_reason reason = { .type = ENGINE_CUT, .at = most, .root = 65536, .step = 1 };
	struct engine_action action = { .id = 65536, .seq = 1000000, .target = most };
	struct vm_sample sample = { .id = 65536, .known = 255 };
	struct engine_input input = { .now = most, .changes = &change, .nr_changes = 1 };
	struct engine_output output = { .actions = &action, .nr_actions = 1 };
	struct engine_config config;
	struct record *record = NULL;

	change.knobs = (struct memcg_knobs){ most, most, most, most };
	change.attrs = (struct engine_vm_attrs){ .maximum = most, .ceiling = most, .act = true };
	sample.actual = sample.resident = sample.swapped = sample.overhead = most;
	sample.unused = sample.usable = sample.disk_caches = sample.swap_in = most;
	sample.stats_actual = sample.applied_seq = most;
	reason.free = (int64_t)most;
	reason.wm_min = reason.wm_low = reason.wm_high = reason.need = reason.owed = most;
	reason.step_need = reason.step_cap = reason.cap = reason.share = reason.bound = most;
	reason.usage = reason.actual = reason.from = reason.to = reason.waiting = most;
	action.ceiling = most;
	action.reason = reason;
	input.samples = &sample;
	input.nr_samples = 1;
	engine_config_default(&config);
	ck_assert_int_eq(record_new(open_memstream(&text, &size), &config, &record), 0);
	record_name(record, 1, NULL, "/");
	size = 0;
	record_tick(record, &input, 0, &output);
	ck_assert_int_eq(record_error(record), 0);
	ck_assert_uint_lt(size * 65536, UINT64_C(128) << 20);
	record_free(record);
}
END_TEST

START_TEST(an_error_of_writing_ends_the_recording_and_is_told)
{
	struct engine_config config;
	const struct engine_input input = { .now = 1 };
	const struct engine_event nameless = { .type = (enum engine_event_type)99 };
	const struct engine_output output = { .next = UINT64_MAX },
				   bad = { .events = &nameless, .nr_events = 1 };
	FILE *full = fopen("/dev/full", "w");
	struct record *record = NULL;
	size_t before;

	engine_config_default(&config);
	ck_assert_ptr_nonnull(full);
	ck_assert_int_eq(record_new(full, &config, &record), -ENOSPC);
	ck_assert_ptr_null(record);
	fclose(full);

	ck_assert_int_eq(record_new(open_memstream(&text, &size), &config, &record), 0);
	record_tick(record, &input, 0, &output);
	ck_assert_int_eq(record_error(record), 0);
	record_tick(record, &input, 0, &bad);
	ck_assert_int_eq(record_error(record), -EDOM);
	before = size;
	record_tick(record, &input, 0, &output);
	record_name(record, 1, NULL, "late");
	ck_assert_int_eq(record_error(record), -EDOM);
	record_free(record);
	/* What is there is a recording whose last line was cut off. */
	ck_assert_uint_ge(size, before);
	ck_assert_int_eq(replay_text(text, size), 0);
	ck_assert_uint_eq(result.ticks, 1);
	record_free(NULL);
}
END_TEST

START_TEST(whatever_allocation_fails_replay_says_so_or_is_right)
{
	unsigned int n, refused = 0;
	int r = -ENOMEM;

	record_a_run();
	size = (size_t)(line(24) - text); /* it allocates where it begins, then hardly ever */
	for (n = 1; r != 0 || fail_nth == 0; n++) {
		ck_assert_uint_lt(n, 10000);
		fail_nth = n;
		r = replay_text(text, size);
		ck_assert_msg(r == -ENOMEM || r == 0, "%u: %d %s", n, r, result.what);
		if (r == 0)
			ck_assert_uint_eq(result.differing, 0);
		refused += r != 0;
	}
	fail_nth = 0;
	ck_assert_uint_gt(refused, 10);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("record");
	TCase *tcase = tcase_create("record");

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, every_member_of_the_structs_is_recorded);
	tcase_add_test(tcase, every_member_is_in_the_schema);
	tcase_add_test(tcase, every_value_of_every_member_comes_back_exactly);
	tcase_add_test(tcase, the_ends_of_64_bits_come_back_exactly);
	tcase_add_test(tcase, what_is_zero_is_left_out_but_for_the_type);
	tcase_add_test(tcase, numbers_that_doubles_cannot_hold_are_strings);
	tcase_add_test(tcase, an_enum_without_a_name_is_not_written);
	tcase_add_test(
		tcase, members_that_are_unknown_of_another_type_or_out_of_bounds_are_refused);
	tcase_add_test(tcase, a_run_replays_to_the_same_decisions);
	tcase_add_test(
		tcase, a_run_with_a_vm_that_is_charged_page_by_page_replays_to_the_same_decisions);
	tcase_add_test(tcase, one_changed_charge_changes_decisions);
	tcase_add_test(tcase, only_what_changed_is_written);
	tcase_add_test(tcase, one_changed_input_changes_decisions);
	tcase_add_test(tcase, one_changed_decision_is_noticed_in_its_line_and_nowhere_else);
	tcase_add_test(tcase, a_decision_left_out_or_an_other_error_or_next_is_noticed);
	tcase_add_test(tcase, a_last_line_that_was_cut_off_anywhere_is_left_out);
	tcase_add_test(tcase, a_line_that_is_cut_off_before_the_end_is_told_by_its_number);
	tcase_add_test(tcase, what_is_no_recording_is_refused_with_words);
	tcase_add_test(tcase, a_nul_within_a_line_is_refused);
	tcase_set_timeout(tcase, 60); /* 128 MiB, byte by byte, with a sanitizer */
	tcase_add_test(tcase, a_line_of_more_than_128_mib_is_refused);
	tcase_add_test(tcase, the_longest_line_of_a_host_that_is_full_is_taken);
	tcase_add_test(tcase, an_error_of_writing_ends_the_recording_and_is_told);
	tcase_add_test(tcase, whatever_allocation_fails_replay_says_so_or_is_right);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
