/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record_fields: see record_fields.h. Who adds a member to one of these structs adds a line here
 * (a test finds the gap) and a line in docs/recording.md; who changes what a member means counts
 * RECORD_VERSION up.
 */
#include <config.h>

#include "hv/record_fields.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdalign.h>
#include <string.h>

#include "policy/engine.h"

/* What every reader of JSON takes for exactly what it says: a double has 53 bits. */
#define EXACT_MAX ((INT64_C(1) << 53) - 1)
/* Longest decimal of 64 bits: a sign and 20 digits. */
#define DIGITS_MAX 21
/* Linux's MAX_ERRNO: no error is more. */
#define ERRNO_MAX 4095
#define COUNT_MAX UINT64_MAX
/*
 * 16 PiB: more than any host has or could swap out, and small enough that a million VMs of it add
 * up to less than what a signed sum holds.
 */
#define HOST_MAX (UINT64_C(1) << 42)
/* Parts of a pool in thousandths, of a VM in hundredths. */
#define PERMILLE_MAX 1000
#define PERCENT_MAX  100
/* headroom_fraction and the like divide; nobody needs finer parts. */
#define FRACTION_MAX 1000000

#define NR(array) (sizeof(array) / sizeof((array)[0]))

#define U64(of, member, most)                                                                      \
	{                                                                                          \
#member, offsetof(struct of, member), RECORD_U64, most, NULL, NULL                 \
	}
#define PAGES(of, member) U64(of, member, PAGES_UNLIMITED)
#define HOST(of, member)  U64(of, member, HOST_MAX)
#define COUNT(of, member) U64(of, member, COUNT_MAX)
#define TIME(of, member)  U64(of, member, RECORD_TIME_MAX)
#define I64(of, member)                                                                            \
	{                                                                                          \
#member, offsetof(struct of, member), RECORD_I64, 0, NULL, NULL                    \
	}
#define UINT(of, member, most)                                                                     \
	{                                                                                          \
#member, offsetof(struct of, member), RECORD_UINT, most, NULL, NULL                \
	}
#define ERRNO(of, member)                                                                          \
	{                                                                                          \
#member, offsetof(struct of, member), RECORD_ERRNO, 0, NULL, NULL                  \
	}
#define BOOL(of, member)                                                                           \
	{                                                                                          \
#member, offsetof(struct of, member), RECORD_BOOL, 0, NULL, NULL                   \
	}
#define ENUM(of, member, words)                                                                    \
	{                                                                                          \
#member, offsetof(struct of, member), RECORD_ENUM, NR(words), words, NULL          \
	}
#define INNER(of, member, table)                                                                   \
	{                                                                                          \
#member, offsetof(struct of, member), RECORD_STRUCT, 0, NULL, &(table)             \
	}
#define STRUCT(of, table)                                                                          \
	{                                                                                          \
		table, NR(table), sizeof(struct of), alignof(struct of)                            \
	}

/* ---- the tables ---- */

static const struct record_field level_fields[] = {
	UINT(engine_level, permille, PERMILLE_MAX),
	PAGES(engine_level, pages),
};
static const struct record_struct record_level = STRUCT(engine_level, level_fields);

static const struct record_field bounds_fields[] = {
	UINT(workingset_bounds, floor_percent, PERCENT_MAX),
	UINT(workingset_bounds, floor_free_only_percent, PERCENT_MAX),
	UINT(workingset_bounds, margin_percent, PERCENT_MAX),
	PAGES(workingset_bounds, margin_at_least),
	BOOL(workingset_bounds, silent_gives),
};
static const struct record_struct record_bounds = STRUCT(workingset_bounds, bounds_fields);

static const struct record_field config_fields[] = {
	BOOL(engine_config, act),
	BOOL(engine_config, loosens),
	PAGES(engine_config, granule),
	INNER(engine_config, wm_min, record_level),
	INNER(engine_config, wm_low, record_level),
	INNER(engine_config, wm_high, record_level),
	INNER(engine_config, bounds, record_bounds),
	PAGES(engine_config, max_step),
	PAGES(engine_config, headroom_at_least),
	UINT(engine_config, headroom_fraction, FRACTION_MAX),
	PAGES(engine_config, speed),
	PAGES(engine_config, max_rate),
	TIME(engine_config, hold_us),
	TIME(engine_config, hold_max_us),
	TIME(engine_config, ask_deadline_us),
	TIME(engine_config, rest_us),
	TIME(engine_config, growth_us),
	TIME(engine_config, release_us),
	BOOL(engine_config, no_soft_pass),
};
const struct record_struct record_config = STRUCT(engine_config, config_fields);

static const struct record_field pool_fields[] = {
	BOOL(engine_pool, known),
	BOOL(engine_pool, host),
	PAGES(engine_pool, size),
	PAGES(engine_pool, available),
	PAGES(engine_pool, reserve),
};
const struct record_struct record_pool = STRUCT(engine_pool, pool_fields);

static const struct record_field knobs_fields[] = {
	PAGES(memcg_knobs, soft_limit),
	PAGES(memcg_knobs, min),
	PAGES(memcg_knobs, low),
	PAGES(memcg_knobs, max),
};
static const struct record_struct record_knobs = STRUCT(memcg_knobs, knobs_fields);

static const struct record_field attrs_fields[] = {
	HOST(engine_vm_attrs, maximum),
	PAGES(engine_vm_attrs, ceiling),
	BOOL(engine_vm_attrs, act),
	BOOL(engine_vm_attrs, guest_swap),
	BOOL(engine_vm_attrs, agent),
	BOOL(engine_vm_attrs, trust),
	BOOL(engine_vm_attrs, reports),
	BOOL(engine_vm_attrs, paused),
	BOOL(engine_vm_attrs, autodeflate),
	PAGES(engine_vm_attrs, max_rate),
	PAGES(engine_vm_attrs, agent_floor),
};
static const struct record_struct record_attrs = STRUCT(engine_vm_attrs, attrs_fields);

static const char *const state_names[] = {
	[ENGINE_VM_RUNNING] = "running",
	[ENGINE_VM_ARRIVING] = "arriving",
	[ENGINE_VM_PAUSED] = "paused",
	[ENGINE_VM_NO_DEVICE] = "no_device",
	[ENGINE_VM_NO_DRIVER] = "no_driver",
	[ENGINE_VM_NOT_ANSWERING] = "not_answering",
	[ENGINE_VM_INCOMING] = "incoming",
	[ENGINE_VM_MIGRATING] = "migrating",
	[ENGINE_VM_POSTCOPY] = "postcopy",
	[ENGINE_VM_SAVING] = "saving",
	[ENGINE_VM_SNAPSHOT] = "snapshot",
	[ENGINE_VM_BACKUP] = "backup",
	[ENGINE_VM_LOCKED] = "locked",
	[ENGINE_VM_HUGE_PAGES] = "huge_pages",
	[ENGINE_VM_PINNED] = "pinned",
	[ENGINE_VM_ENCRYPTED] = "encrypted",
	[ENGINE_VM_VIRTIO_MEM] = "virtio_mem",
	[ENGINE_VM_THROTTLED] = "throttled",
	[ENGINE_VM_LIMITED] = "limited",
	[ENGINE_VM_STRICT_NUMA] = "strict_numa",
	[ENGINE_VM_CONTENDED] = "contended",
};
_Static_assert(NR(state_names) == ENGINE_VM_STATE_NR, "every state has a name");

static const char *const change_names[] = {
	[ENGINE_GROUP_NEW] = "group_new",
	[ENGINE_GROUP_KNOBS] = "group_knobs",
	[ENGINE_GROUP_GONE] = "group_gone",
	[ENGINE_VM_NEW] = "vm_new",
	[ENGINE_VM_ATTRS] = "vm_attrs",
	[ENGINE_VM_STATE] = "vm_state",
	[ENGINE_VM_CANCEL] = "vm_cancel",
	[ENGINE_VM_RELEASE] = "vm_release",
	[ENGINE_VM_GONE] = "vm_gone",
};

static const struct record_field change_fields[] = {
	ENUM(engine_change, type, change_names),
	COUNT(engine_change, id),
	COUNT(engine_change, parent),
	INNER(engine_change, knobs, record_knobs),
	INNER(engine_change, attrs, record_attrs),
	ENUM(engine_change, state, state_names),
};
const struct record_struct record_change = STRUCT(engine_change, change_fields);

static const struct record_field lists_fields[] = {
	PAGES(vm_lists, active_anon),
	PAGES(vm_lists, inactive_anon),
	PAGES(vm_lists, active_file),
	PAGES(vm_lists, inactive_file),
	PAGES(vm_lists, swap_free),
};
static const struct record_struct record_lists = STRUCT(vm_lists, lists_fields);

static const struct record_field sample_fields[] = {
	COUNT(vm_sample, id),
	UINT(vm_sample, known, (VM_LACKS << 1) - 1),
	BOOL(vm_sample, stale),
	HOST(vm_sample, actual),
	HOST(vm_sample, resident),
	HOST(vm_sample, swapped),
	HOST(vm_sample, overhead),
	HOST(vm_sample, stats_actual),
	PAGES(vm_sample, unused),
	PAGES(vm_sample, usable),
	PAGES(vm_sample, disk_caches),
	PAGES(vm_sample, swap_in),
	COUNT(vm_sample, applied_seq),
	INNER(vm_sample, lists, record_lists),
	PAGES(vm_sample, need),
	PAGES(vm_sample, refaults),
};
const struct record_struct record_sample = STRUCT(vm_sample, sample_fields);

static const struct record_field result_fields[] = {
	COUNT(engine_result, id),
	COUNT(engine_result, seq),
	ERRNO(engine_result, error),
};
const struct record_struct record_result = STRUCT(engine_result, result_fields);

static const char *const request_names[] = {
	[ENGINE_RECLAIM] = "reclaim",
	[ENGINE_RECLAIM_CANCEL] = "cancel",
};

static const struct record_field request_fields[] = {
	ENUM(engine_request, type, request_names),
	COUNT(engine_request, job),
	COUNT(engine_request, root),
	PAGES(engine_request, pages),
};
const struct record_struct record_request = STRUCT(engine_request, request_fields);

static const struct record_field charge_fields[] = {
	COUNT(charge_seen, id),
	PAGES(charge_seen, pages),
};
const struct record_struct record_charge = STRUCT(charge_seen, charge_fields);

static const char *const reason_names[] = {
	[ENGINE_CUT] = "cut",
	[ENGINE_CANCEL] = "cancel",
	[ENGINE_LOOSEN] = "loosen",
	[ENGINE_FEED] = "feed",
	[ENGINE_GIFT] = "gift",
	[ENGINE_AGAIN] = "again",
	[ENGINE_RELEASE] = "release",
	[ENGINE_WISH] = "wish",
};

static const struct record_field reason_fields[] = {
	ENUM(engine_reason, type, reason_names),
	COUNT(engine_reason, at),
	COUNT(engine_reason, root),
	COUNT(engine_reason, job),
	UINT(engine_reason, step, UINT32_MAX),
	I64(engine_reason, free),
	COUNT(engine_reason, wm_min),
	COUNT(engine_reason, wm_low),
	COUNT(engine_reason, wm_high),
	COUNT(engine_reason, growth),
	COUNT(engine_reason, need),
	COUNT(engine_reason, owed),
	COUNT(engine_reason, step_need),
	COUNT(engine_reason, step_cap),
	COUNT(engine_reason, cap),
	COUNT(engine_reason, share),
	COUNT(engine_reason, bound),
	COUNT(engine_reason, usage),
	COUNT(engine_reason, actual),
	COUNT(engine_reason, from),
	COUNT(engine_reason, to),
	COUNT(engine_reason, waiting),
	BOOL(engine_reason, inside),
};
static const struct record_struct record_reason = STRUCT(engine_reason, reason_fields);

static const struct record_field action_fields[] = {
	COUNT(engine_action, id),
	COUNT(engine_action, seq),
	COUNT(engine_action, target),
	COUNT(engine_action, ceiling),
	INNER(engine_action, reason, record_reason),
};
const struct record_struct record_action = STRUCT(engine_action, action_fields);

static const char *const event_names[] = {
	[ENGINE_EVENT_SHORT] = "short",
	[ENGINE_EVENT_SHORT_OVER] = "short_over",
	[ENGINE_EVENT_BELOW_MIN] = "below_min",
	[ENGINE_EVENT_ASK_CAME] = "ask_came",
	[ENGINE_EVENT_ASK_FAILED] = "ask_failed",
	[ENGINE_EVENT_WISH] = "wish",
	[ENGINE_EVENT_CONTENDED] = "contended",
	[ENGINE_EVENT_JOB_DONE] = "job_done",
	[ENGINE_EVENT_JOB_SHORT] = "job_short",
	[ENGINE_EVENT_JOB_CANCELLED] = "job_cancelled",
};

static const struct record_field event_fields[] = {
	ENUM(engine_event, type, event_names),
	COUNT(engine_event, id),
	COUNT(engine_event, a),
	I64(engine_event, b),
};
const struct record_struct record_event = STRUCT(engine_event, event_fields);

/* ---- one value of any type ---- */

/* Wide enough for all: how negative is told apart from large is known from the type. */
struct number {
	bool negative;
	uint64_t magnitude;
};

static struct number number_of_i64(int64_t value)
{
	return (struct number){ value < 0, value < 0 ? -(uint64_t)value : (uint64_t)value };
}

/* Of every type but RECORD_STRUCT. */
static struct number load(const struct record_field *field, const void *value)
{
	const char *at = (const char *)value + field->offset;
	struct number number = { 0 };
	unsigned int u;
	int64_t i64;
	int i;

	switch (field->type) {
	case RECORD_U64:
		memcpy(&number.magnitude, at, sizeof(number.magnitude));
		break;
	case RECORD_I64:
		memcpy(&i64, at, sizeof(i64));
		number = number_of_i64(i64);
		break;
	case RECORD_ERRNO:
		memcpy(&i, at, sizeof(i));
		number = number_of_i64(i);
		break;
	case RECORD_UINT:
	case RECORD_ENUM:
		memcpy(&u, at, sizeof(u));
		number.magnitude = u;
		break;
	case RECORD_BOOL:
		number.magnitude = *(const bool *)at;
		break;
	case RECORD_STRUCT:
		assert(false);
	}
	return number;
}

static void store(const struct record_field *field, struct number number, void *ret_value)
{
	char *at = (char *)ret_value + field->offset;
	uint64_t bits = number.negative ? -number.magnitude : number.magnitude;
	unsigned int u = (unsigned int)bits;

	switch (field->type) {
	case RECORD_U64:
	case RECORD_I64:
		memcpy(at, &bits, sizeof(bits));
		break;
	case RECORD_ERRNO:
	case RECORD_UINT:
	case RECORD_ENUM:
		memcpy(at, &u, sizeof(u));
		break;
	case RECORD_BOOL:
		*(bool *)at = number.magnitude;
		break;
	case RECORD_STRUCT:
		assert(false);
	}
}

static bool is_zero(const struct record_struct *type, const void *value)
{
	for (size_t i = 0; i < type->nr; i++) {
		const struct record_field *f = &type->fields[i];

		if (f->type == RECORD_STRUCT) {
			if (!is_zero(f->inner, (const char *)value + f->offset))
				return false;
		} else if (load(f, value).magnitude != 0) {
			return false;
		}
	}
	return true;
}

static const char *enum_name(const struct record_field *field, uint64_t value)
{
	return value < field->max ? field->names[value] : NULL;
}

/* ---- writing ---- */

static void write_number(FILE *stream, struct number number)
{
	const char *quote = number.magnitude > EXACT_MAX ? "\"" : "";

	fprintf(stream, "%s%s%" PRIu64 "%s", quote, number.negative ? "-" : "", number.magnitude,
		quote);
}

void record_write_u64(FILE *stream, uint64_t value)
{
	write_number(stream, (struct number){ false, value });
}

void record_write_i64(FILE *stream, int64_t value)
{
	write_number(stream, number_of_i64(value));
}

static int write_field(FILE *stream, const struct record_field *field, const void *value)
{
	struct number number;
	const char *name;

	fprintf(stream, "\"%s\":", field->name);
	if (field->type == RECORD_STRUCT)
		return record_write(stream, field->inner, (const char *)value + field->offset);

	number = load(field, value);
	if (field->type == RECORD_BOOL) {
		fputs("true", stream);
	} else if (field->type == RECORD_ENUM) {
		name = enum_name(field, number.magnitude);
		if (!name)
			return -EDOM;
		fprintf(stream, "\"%s\"", name);
	} else {
		write_number(stream, number);
	}
	return 0;
}

/* The type of a change, a reason and so on is always told: without it the rest says nothing. */
static bool left_out(const struct record_field *field, const void *value)
{
	if (field->type == RECORD_STRUCT)
		return is_zero(field->inner, (const char *)value + field->offset);
	return load(field, value).magnitude == 0 && strcmp(field->name, "type") != 0;
}

int record_write(FILE *stream, const struct record_struct *type, const void *value)
{
	const char *comma = "";
	int r;

	fputc('{', stream);
	for (size_t i = 0; i < type->nr; i++) {
		if (left_out(&type->fields[i], value))
			continue;
		fputs(comma, stream);
		comma = ",";
		r = write_field(stream, &type->fields[i], value);
		if (r < 0)
			return r;
	}
	fputc('}', stream);
	return 0;
}

/* ---- reading ---- */

/* Digits of a number that JSON's own numbers do not hold exactly; no other form of it. */
static int parse_digits(const char *text, struct number *ret_number)
{
	struct number number = { 0 };
	char again[DIGITS_MAX + 1];
	const char *digit = text;

	number.negative = *digit == '-';
	digit += number.negative;
	for (; *digit >= '0' && *digit <= '9'; digit++) {
		uint64_t value = number.magnitude * 10 + (uint64_t)(*digit - '0');

		if (number.magnitude > UINT64_MAX / 10 || value < number.magnitude)
			return -EBADMSG;
		number.magnitude = value;
	}
	snprintf(again, sizeof(again), "%s%" PRIu64, number.negative ? "-" : "", number.magnitude);
	if (number.magnitude <= EXACT_MAX || strcmp(again, text) != 0)
		return -EBADMSG;
	*ret_number = number;
	return 0;
}

static int read_number(struct json_object *object, struct number *ret_number)
{
	int64_t value;

	if (json_object_is_type(object, json_type_string)) {
		const char *text = json_object_get_string(object);

		if (strlen(text) != (size_t)json_object_get_string_len(object))
			return -EBADMSG;
		return parse_digits(text, ret_number);
	}
	if (!json_object_is_type(object, json_type_int))
		return -EBADMSG;
	/* json-c turns what does not fit into the largest that does: beyond the bound as well. */
	value = json_object_get_int64(object);
	if (value > EXACT_MAX || value < -EXACT_MAX)
		return -EBADMSG;
	*ret_number = number_of_i64(value);
	return 0;
}

int record_read_u64(struct json_object *object, uint64_t max, uint64_t *ret_value)
{
	struct number number;
	int r = read_number(object, &number);

	if (r < 0)
		return r;
	if (number.negative || number.magnitude > max)
		return -EBADMSG;
	*ret_value = number.magnitude;
	return 0;
}

static bool fits_i64(struct number number)
{
	return number.magnitude <= (uint64_t)INT64_MAX + number.negative;
}

int record_read_i64(struct json_object *object, int64_t *ret_value)
{
	struct number number;
	int r = read_number(object, &number);

	if (r < 0)
		return r;
	if (!fits_i64(number))
		return -EBADMSG;
	*ret_value = (int64_t)(number.negative ? -number.magnitude : number.magnitude);
	return 0;
}

static int read_enum(
	struct json_object *object, const struct record_field *field, struct number *ret_number)
{
	const char *text;

	if (!json_object_is_type(object, json_type_string))
		return -EBADMSG;
	text = json_object_get_string(object);
	if (strlen(text) != (size_t)json_object_get_string_len(object))
		return -EBADMSG;
	for (uint64_t i = 0; i < field->max; i++) {
		if (field->names[i] && strcmp(field->names[i], text) == 0) {
			*ret_number = (struct number){ false, i };
			return 0;
		}
	}
	return -EBADMSG;
}

/* Whether the field may hold it. */
static bool in_bounds(const struct record_field *field, struct number number)
{
	switch (field->type) {
	case RECORD_U64:
	case RECORD_UINT:
		return !number.negative && number.magnitude <= field->max;
	case RECORD_I64:
		return fits_i64(number);
	case RECORD_ERRNO:
		return number.magnitude == 0 || (number.negative && number.magnitude <= ERRNO_MAX);
	default:
		return true;
	}
}

static int read_value(
	struct json_object *object, const struct record_field *field, struct number *ret_number)
{
	struct number number = { 0 };
	int r = 0;

	if (field->type == RECORD_ENUM)
		r = read_enum(object, field, &number);
	else if (field->type != RECORD_BOOL)
		r = read_number(object, &number);
	else if (json_object_is_type(object, json_type_boolean))
		number.magnitude = json_object_get_boolean(object);
	else
		r = -EBADMSG;
	if (r == 0 && !in_bounds(field, number))
		r = -EBADMSG;
	if (r == 0)
		*ret_number = number;
	return r;
}

static const struct record_field *find_field(const struct record_struct *type, const char *name)
{
	for (size_t i = 0; i < type->nr; i++) {
		if (strcmp(type->fields[i].name, name) == 0)
			return &type->fields[i];
	}
	return NULL;
}

int record_read(
	struct json_object *object, const struct record_struct *type, void *ret_value, char *what)
{
	struct json_object_iterator it, end;
	int r;

	if (!json_object_is_type(object, json_type_object)) {
		snprintf(what, RECORD_WHAT, "no object where one should be");
		return -EBADMSG;
	}
	memset(ret_value, 0, type->size);
	end = json_object_iter_end(object);
	for (it = json_object_iter_begin(object); !json_object_iter_equal(&it, &end);
		json_object_iter_next(&it)) {
		const char *name = json_object_iter_peek_name(&it);
		const struct record_field *f = find_field(type, name);
		struct json_object *member = json_object_iter_peek_value(&it);
		struct number number = { 0 };

		if (!f) {
			snprintf(what, RECORD_WHAT, "unknown member \"%.40s\"", name);
			return -EBADMSG;
		}
		if (f->type == RECORD_STRUCT) {
			r = record_read(member, f->inner, (char *)ret_value + f->offset, what);
			if (r < 0)
				return r;
			continue;
		}
		r = read_value(member, f, &number);
		if (r < 0) {
			snprintf(what, RECORD_WHAT, "member \"%s\" has a value that it cannot have",
				name);
			return r;
		}
		store(f, number, ret_value);
	}
	return 0;
}

/* ---- comparing ---- */

uint64_t record_id(const struct record_struct *type, const void *value)
{
	const struct record_field *f = find_field(type, "id");

	return f ? load(f, value).magnitude : 0;
}

static void format_value(
	const struct record_field *field, struct number number, char *text, size_t size)
{
	const char *name = field->type == RECORD_ENUM ? enum_name(field, number.magnitude) : NULL;

	if (name)
		snprintf(text, size, "%s", name);
	else
		snprintf(text, size, "%s%" PRIu64, number.negative ? "-" : "", number.magnitude);
}

bool record_same(
	const struct record_struct *type, const void *now, const void *recorded, char *what)
{
	for (size_t i = 0; i < type->nr; i++) {
		const struct record_field *f = &type->fields[i];
		struct number a, b;
		char a_text[32], b_text[32];

		if (f->type == RECORD_STRUCT) {
			if (!record_same(f->inner, (const char *)now + f->offset,
				    (const char *)recorded + f->offset, what))
				return false;
			continue;
		}
		a = load(f, now);
		b = load(f, recorded);
		if (a.negative == b.negative && a.magnitude == b.magnitude)
			continue;
		format_value(f, a, a_text, sizeof(a_text));
		format_value(f, b, b_text, sizeof(b_text));
		snprintf(what, RECORD_WHAT, "%s is %s, recorded was %s", f->name, a_text, b_text);
		return false;
	}
	return true;
}
