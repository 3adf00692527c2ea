/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Policies side by side; see sim_compare.h. */
#include <config.h>

#include "tools/sim_compare.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/json.h"
#include "common/size.h"
#include "common/text.h"
#include "hv/sim/virtual.h"

#define US_PER_S 1000000.0
/* A run is long when it takes more than two seconds; then it says once a second how far it is. */
#define QUIET_S 2
#define EVERY_S 1

/* Of a VM after a run. */
struct sim_result {
	const char *vm;		 /* borrowed from the scenario */
	const char *program;	 /* its first; NULL: it ran none */
	uint64_t elapsed_us;	 /* of that; 0: it was not over */
	uint64_t majfaults;	 /* of all its programs */
	uint64_t swapped_most;	 /* by itself and by the host, at one time */
	uint64_t refaults, ooms; /* refaults in bytes */
};

/* The result of VM number i, from a run that is over. */
static struct sim_result result_of(
	const struct scenario *scenario, const struct virtual *virtual, size_t i)
{
	struct sim_result result = { .vm = scenario->vms[i].sim.name };
	struct sim_vm_view view;

	if (sim_vm_view(virtual_sim(virtual), result.vm, &view) < 0)
		return result;
	if (view.guest->nr_programs) {
		result.program = program_name(view.guest->programs[0].params.type);
		result.elapsed_us = program_elapsed_us(&view.guest->programs[0]);
	}
	result.majfaults = guest_majfaults(view.guest);
	result.swapped_most = view.guest->swapped_most;
	result.refaults = view.guest->memory.refaults;
	result.ooms = view.guest->ooms;
	return result;
}

void sim_progress(const char *what, uint64_t now, uint64_t length)
{
	static time_t begun, told;
	time_t at;

	if (!isatty(STDERR_FILENO))
		return;
	at = time(NULL);
	if (!begun)
		begun = told = at;
	if (now >= length) {
		if (told > begun)
			fputs("\r\033[K", stderr);
		begun = 0;
		return;
	}
	if (at - begun < QUIET_S || at - told < EVERY_S)
		return;
	told = at;
	fprintf(stderr, "\r%s: %.0f of %.0f s, %.0f %%\033[K", what, (double)now / US_PER_S,
		(double)length / US_PER_S, 100.0 * (double)now / (double)length);
}

/* ---- several runs ---- */

struct run {
	const struct rival *rival;
	struct virtual *virtual;
	struct scenario *scenario;
};

static void on_step(void *ctx, uint64_t now)
{
	const struct run *run = ctx;

	sim_progress(run->rival->name, now, run->scenario->length);
}

static int play(struct run *run, const char *file, uint64_t seed, char **ret_errors)
{
	struct virtual_watch watch = { .step = on_step, .ctx = run };
	int r = scenario_load(file, &run->scenario, ret_errors);

	if (r < 0)
		return r;
	run->scenario->host.rival = run->rival;
	if (seed)
		run->scenario->host.seed = seed;
	r = virtual_new(run->scenario, &watch, &run->virtual);
	if (r < 0)
		return r;
	return virtual_run(run->virtual);
}

static void print_figure(const struct sim_result *result, int figure)
{
	char text[SIZE_TEXT];

	switch (figure) {
	case 0:
		if (result->elapsed_us)
			printf(" %13.2f", (double)result->elapsed_us / US_PER_S);
		else
			printf(" %13s", result->ooms ? "out of memory" : "not over");
		break;
	case 1:
		printf(" %13" PRIu64, result->majfaults);
		break;
	case 2:
		printf(" %13s", size_format(result->swapped_most, text, sizeof text));
		break;
	default:
		printf(" %13s", size_format(result->refaults, text, sizeof text));
		break;
	}
}

static void print_table(const struct run *runs)
{
	static const char *const figures[] = { "elapsed, s", "major faults", "swapped, most",
		"read again" };
	const struct scenario *s = runs[0].scenario;
	char shown[128], name[160];

	printf("%-24s %-14s", "VM (workload)", "");
	for (size_t k = 0; k < nr_rivals; k++)
		printf(" %13s", runs[k].rival->name);
	putchar('\n');
	for (size_t i = 0; i < s->nr_vms; i++) {
		struct sim_result first = result_of(s, runs[0].virtual, i);

		snprintf(name, sizeof name, "%s (%s)",
			text_printable(first.vm, shown, sizeof shown),
			first.program ? first.program : "none");
		for (int f = first.program ? 0 : 2; f < 4; f++) {
			printf("%-24s %-14s", name, figures[f]);
			for (size_t k = 0; k < nr_rivals; k++) {
				struct sim_result result =
					result_of(runs[k].scenario, runs[k].virtual, i);

				print_figure(&result, f);
			}
			putchar('\n');
			*name = '\0';
		}
	}
}

static int print_json(const struct run *runs)
{
	struct json_object *root = json_object_new_object(), *list = json_object_new_array();
	int r = root && list ? 0 : -ENOMEM;

	json_put_u64(root, "schema_version", 1, &r);
	for (size_t k = 0; k < nr_rivals && r == 0; k++) {
		for (size_t i = 0; i < runs[k].scenario->nr_vms && r == 0; i++) {
			struct sim_result result = result_of(runs[k].scenario, runs[k].virtual, i);
			struct json_object *row = json_object_new_object();

			if (!row || json_object_array_add(list, row) < 0) {
				json_object_put(row);
				r = -ENOMEM;
				break;
			}
			json_put_string(row, "policy", runs[k].rival->name, &r);
			json_put_string(row, "vm", result.vm, &r);
			if (result.program)
				json_put_string(row, "program", result.program, &r);
			if (result.elapsed_us)
				json_put_u64(row, "elapsed_us", result.elapsed_us, &r);
			json_put_u64(row, "major_faults", result.majfaults, &r);
			json_put_u64(row, "swapped_most_bytes", result.swapped_most, &r);
			json_put_u64(row, "read_again_bytes", result.refaults, &r);
			json_put_u64(row, "out_of_memory", result.ooms, &r);
		}
	}
	if (r == 0 && json_object_object_add(root, "results", list) < 0)
		r = -ENOMEM;
	if (r == 0)
		puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY));
	else
		json_object_put(list);
	json_object_put(root);
	return r;
}

int sim_compare(const char *file, uint64_t seed, bool json)
{
	struct run *runs = calloc(nr_rivals, sizeof *runs);
	char *errors = NULL;
	int r = runs ? 0 : -ENOMEM;

	for (size_t k = 0; k < nr_rivals && r == 0; k++) {
		runs[k].rival = &rivals[k];
		r = play(&runs[k], file, seed, &errors);
	}
	if (r == 0 && json)
		r = print_json(runs);
	else if (r == 0)
		print_table(runs);
	if (r == -EINVAL && errors)
		fputs(errors, stderr);
	else if (r < 0)
		fprintf(stderr, "ballast-sim: %s: %s\n", file, strerror(-r));
	for (size_t k = 0; k < nr_rivals && runs; k++) {
		virtual_free(runs[k].virtual);
		scenario_free(runs[k].scenario);
	}
	free(runs);
	free(errors);
	return r < 0;
}
