/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ballastctl's inside: what its commands share. ballastctl.c has the command line and the table of
 * commands, show.c prints status and plan, reasons.c explains, knobs.c is show, set and agent,
 * agent.c what show tells of the agent in a guest, reclaim.c follows a reclaim, brakes.c is pause,
 * resume and release, direct.c releases without the daemon. say.c is how all of them speak.
 */
#ifndef BALLAST_TOOLS_BALLASTCTL_H
#define BALLAST_TOOLS_BALLASTCTL_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "common/size.h"
#include "tools/client.h"

/* Exit statuses; 0 is done. */
enum { CTL_FAILED = 1, CTL_USAGE = 2, CTL_UNREACHABLE = 3, CTL_PARTLY = 4 };

struct ctl_options {
	const char *socket;
	bool json, yes, all, direct, persistent;
	const char *group;
	struct json_object *knobs; /* of set: its parameters but for name and group; NULL: none */
	const char *uri;	   /* of --direct */
};

/* "ballastctl: words" on stderr; returns status. */
int ctl_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For people. Both take the daemon's result. */
void show_status(struct json_object *status);
void show_plan(struct json_object *plan);
void show_reasons(struct json_object *explained);

void show_pauses(struct json_object *result);
void show_release(struct json_object *result);
/* An exit status where a pause is in force and was not written down; 0. */
int pauses_status(struct json_object *result);

/*
 * An exit status where that much is not to be reclaimed: more than a tenth of the pool, and nobody
 * there, or willing, to say yes; 0.
 */
int confirm_reclaim(
	struct client *client, const struct ctl_options *options, const char *size, uint64_t bytes);

void show_knobs(struct json_object *result);
/* Of the same result the agent in the guest; nothing where there never was one. */
void show_agent(struct json_object *result);
/* An option of set into options->knobs. 0, or an exit status. */
int set_option(struct ctl_options *options, const char *option, const char *value);
/* Sets, and waits until it is written; an exit status. */
int set_knobs(struct client *client, const struct ctl_options *options, const char *name);

/* Adds the port of an agent, and waits until it is there; an exit status. */
int attach_agent(struct client *client, const struct ctl_options *options, const char *name);

/* For programs: the result as it came, indented. */
void show_json(struct json_object *result);
/* The same of a notification, the last that the daemon tells of what was begun. */
void show_end_json(struct json_object *end);

/* Starts and follows a reclaim to its end or to ^C; an exit status. Takes over params. */
int follow_reclaim(
	struct client *client, struct json_object *params, const struct ctl_options *options);

/*
 * The amount of that key as people read it, in a buffer of the caller's; "-" where there is none.
 * Signed ones have their sign.
 */
const char *text_size(struct json_object *object, const char *key, char buf[SIZE_TEXT]);
#define TEXT_SIZE(object, key) text_size(object, key, (char[SIZE_TEXT]){ 0 })

/* The sum of both; "-" where one is not known. */
const char *text_sum(
	struct json_object *object, const char *first, const char *second, char buf[SIZE_TEXT]);
#define TEXT_SUM(object, first, second) text_sum(object, first, second, (char[SIZE_TEXT]){ 0 })

/* Thousandths as per cent; "-" where there is none. */
const char *text_permille(struct json_object *object, const char *key, char buf[SIZE_TEXT]);
#define TEXT_PERMILLE(object, key) text_permille(object, key, (char[SIZE_TEXT]){ 0 })

/* There is such a member: what is unknown is absent. */
bool is_known(struct json_object *object, const char *key);

/* 0 and "" where there is none. */
uint64_t number(struct json_object *object, const char *key);
const char *text(struct json_object *object, const char *key);

#endif
