/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record_fields: the structs of the engine as JSON objects, each described by one table of fields
 * that writing, reading and comparing share, so that they cannot diverge. For record.c and
 * replay.c; the schema for people is docs/recording.md.
 *
 * A field that is 0 (false, the first of an enum, a struct of such) is left out and read as 0.
 * Whole numbers up to 2^53 - 1 either way are JSON numbers; larger ones, which many readers of JSON
 * round, are strings of digits. Enums are words. Values are exact, all 64 bits of them.
 *
 * Reading is strict: an unknown member, another type, or a value over the field's bound is refused.
 * The bounds are those that the engine expects of its inputs (pages.h: no amount is above
 * PAGES_UNLIMITED), for a file may say anything.
 *
 * One thread at a time for each stream or object. Nothing is kept.
 */
#ifndef BALLAST_HV_RECORD_FIELDS_H
#define BALLAST_HV_RECORD_FIELDS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Of a recording as a whole: the header line's "format" and "version". */
#define RECORD_FORMAT  "ballast-recording"
#define RECORD_VERSION 1

/* Adding hold times and deadlines to a time never wraps below this. */
#define RECORD_TIME_MAX (UINT64_MAX >> 2)

/* Fits any message of a reader or a comparison: two member names, two numbers, a few words. */
#define RECORD_WHAT 160

enum record_type {
	RECORD_U64,   /* 0 to max */
	RECORD_I64,   /* all of them */
	RECORD_UINT,  /* unsigned int, 0 to max */
	RECORD_ERRNO, /* int: 0 or a negative errno */
	RECORD_BOOL,
	RECORD_ENUM,   /* int-sized; max names, NULL where a value is none */
	RECORD_STRUCT, /* within the struct */
};

struct record_struct;

struct record_field {
	const char *name;
	size_t offset;
	enum record_type type;
	uint64_t max;
	const char *const *names;
	const struct record_struct *inner;
};

struct record_struct {
	const struct record_field *fields;
	size_t nr;
	size_t size, align; /* of the C struct */
};

/* Of what a tick reads ... */
extern const struct record_struct record_config;  /* struct engine_config */
extern const struct record_struct record_pool;	  /* struct engine_pool */
extern const struct record_struct record_change;  /* struct engine_change */
extern const struct record_struct record_sample;  /* struct vm_sample */
extern const struct record_struct record_result;  /* struct engine_result */
extern const struct record_struct record_request; /* struct engine_request */
extern const struct record_struct record_charge;  /* struct charge_seen */
/* ... and decides. */
extern const struct record_struct record_action; /* struct engine_action */
extern const struct record_struct record_event;	 /* struct engine_event */

/* Errors of writing stay with the stream. -EDOM: an enum has a value without a name. */
int record_write(FILE *stream, const struct record_struct *type, const void *value);

/* One number by itself, as the rule above has it. */
void record_write_u64(FILE *stream, uint64_t value);
void record_write_i64(FILE *stream, int64_t value);

/*
 * -EBADMSG: what (RECORD_WHAT bytes) says what is wrong. On success all of *ret_value is set,
 * padding too; on failure it may be anything.
 */
int record_read(
	struct json_object *object, const struct record_struct *type, void *ret_value, char *what);
int record_read_u64(struct json_object *object, uint64_t max, uint64_t *ret_value);
int record_read_i64(struct json_object *object, int64_t *ret_value);

/* The value's member "id"; 0 where it has none. */
uint64_t record_id(const struct record_struct *type, const void *value);

/* False: what (RECORD_WHAT bytes) names the first field that differs, with both values. */
bool record_same(
	const struct record_struct *type, const void *now, const void *recorded, char *what);

#endif
