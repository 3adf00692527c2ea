/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files that read scenarios share: scenario.c has the sections and what must fit
 * together, scenario_keys.c the keys and their values, scenario_steps.c what happens. For nobody
 * else.
 */
#ifndef BALLAST_HV_SIM_SCENARIO_INTERNAL_H
#define BALLAST_HV_SIM_SCENARIO_INTERNAL_H

/* Where a hash cannot grow the element is not added, which its handle shows. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "hv/ballastd/config_file.h"
#include "hv/sim/scenario.h"

/* Longest word in a line. */
#define SCENARIO_WORD_MAX 64

/* A section that was there, or a group's path that a section names. */
struct scenario_name {
	UT_hash_handle hh;
	char text[]; /* "vm NAME", "group PATH", "path PATH" */
};

struct scenario_loader {
	struct scenario *scenario;
	const char *path;
	unsigned int line, wrong_line; /* the last one with a mistake: one a line is enough */
	char section[CONFIG_NAME_MAX + 1];
	enum {
		IN_NONE,
		IN_SCENARIO,
		IN_HOST,
		IN_OPERATOR,
		IN_VM,
		IN_EXPECT,
		IN_GROUP,
		IN_RULE,
		IN_CONFIG,
		IN_WRONG
	} in; /* what section is; IN_WRONG: it was complained about */
	struct scenario_name *names;
	struct config_errors errors;
};

/* A mistake in the line that is read; only the first of a line is told. */
void scenario_wrong(struct scenario_loader *loader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool scenario_is_wrong(const struct scenario_loader *loader);
void scenario_out_of_memory(struct scenario_loader *loader);

/*
 * The array with room for one more than nr; NULL: there is no memory, which is noted, and the array
 * is as it was. Twice as large each time, so that reading takes time in proportion to the file.
 */
void *scenario_grow(struct scenario_loader *loader, void *array, size_t nr, size_t size);

/* The next word, cut off at white space; false: there is none, or it is too long. */
bool scenario_next_word(const char **text, char *word);

/* Rounded down to pages. False: it was wrong. */
bool scenario_read_size(struct scenario_loader *loader, const char *text, uint64_t *ret_bytes);

/* False: there is no such key. */
bool scenario_vm_key(
	struct scenario_loader *loader, struct sim_vm *vm, const char *name, const char *text);
bool scenario_host_key(struct scenario_loader *loader, const char *name, const char *text);
bool scenario_scenario_key(struct scenario_loader *loader, const char *name, const char *text);

/* "at TIME"; false: it is something else. */
bool scenario_read_at(struct scenario_loader *loader, const char *name, uint64_t *ret_time);
/* What happens to a VM, or to the host (NULL). */
void scenario_read_step(
	struct scenario_loader *loader, const char *vm, uint64_t time, const char *text);
void scenario_read_operator(struct scenario_loader *loader, const char *name, const char *text);

#endif
