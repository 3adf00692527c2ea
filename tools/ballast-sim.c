/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ballast-sim: scenarios on the simulated host, and recordings run again.
 *
 *	run FILE [--policy P] [--seed N] [--format json] [--record FILE] [--plot FILE] [--quiet]
 *	compare FILE [--seed N] [--format json]
 *	replay FILE [--format json]
 *
 * Exit status: 0 as expected, 1 not (or what was to be read could not be), 2 wrong usage. What run
 * prints is sim_report.c's.
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/output.h"
#include "hv/record.h"
#include "hv/replay.h"
#include "tools/sim_compare.h"
#include "tools/sim_plot.h"
#include "tools/sim_report.h"

enum { EXIT_RIGHT = 0, EXIT_WRONG = 1, EXIT_USAGE = 2 };

struct options {
	bool json, quiet;
	const char *record, *plot;
	const struct rival *policy; /* NULL: ballast */
	uint64_t seed;		    /* 0: the scenario's */
	const char *file;
};

static void usage(FILE *stream)
{
	fputs("Usage: ballast-sim run FILE [--policy POLICY] [--seed N] [--format text|json]\n"
	      "                            [--record FILE] [--plot FILE] [--quiet]\n"
	      "       ballast-sim compare FILE [--seed N] [--format text|json]\n"
	      "       ballast-sim replay FILE [--format text|json]\n"
	      "\n"
	      "run plays a scenario (see ballast-sim-scenario(5)) on a simulated host, in\n"
	      "virtual time, and says whether what it expects came true. compare plays it\n"
	      "under every policy and puts what the programs took side by side. replay runs a\n"
	      "recording through the engine again and compares every decision.\n"
	      "\n"
	      "      --policy POLICY  run: who takes memory: none, global, hammer, ballast (the\n"
	      "                       default), all\n"
	      "      --seed N         run, compare: instead of the scenario's\n"
	      "      --format FORMAT  text (the default) or json\n"
	      "      --record FILE    run: write down what every tick read and decided\n"
	      "      --plot FILE      run: a picture (.png, .svg) of every VM over time; gnuplot\n"
	      "  -q, --quiet          run: only what is not as expected\n"
	      "  -V, --version\n"
	      "  -h, --help\n"
	      "\n"
	      "Exit status: 0 as expected, 1 not as expected or not readable, 2 wrong usage.\n",
		stream);
}

/* ---- run ---- */

struct run {
	struct report *report;
	struct record *record;
	struct plot *plot;
	const struct scenario *scenario;
};

static void on_tick(
	void *ctx, const struct engine_input *input, int error, const struct engine_output *output)
{
	struct run *run = ctx;

	report_tick(run->report, output);
	if (run->record)
		record_tick(run->record, input, error, output);
}

static void on_name(void *ctx, uint64_t id, const struct hv_uuid *uuid, const char *name)
{
	struct run *run = ctx;

	if (run->record)
		record_name(run->record, id, uuid, name);
}

static void on_log(void *ctx, const struct core_line *line)
{
	struct run *run = ctx;

	report_log(run->report, line);
}

static void on_step(void *ctx, uint64_t now)
{
	struct run *run = ctx;

	report_step(run->report);
	if (run->plot)
		plot_step(run->plot, now);
	sim_progress("ballast-sim", now, run->scenario->length);
}

/* A recording is of one daemon, from its start. */
static bool restarts(const struct scenario *scenario)
{
	for (size_t i = 0; i < scenario->nr_steps; i++)
		if (scenario->steps[i].type == SCENARIO_RESTART)
			return true;
	return false;
}

static int start_record(struct run *run, struct virtual *virtual, const char *path)
{
	FILE *stream = fopen(path, "w");
	int r;

	if (!stream)
		return -errno;
	r = record_new(stream, engine_config(core_engine(virtual_core(virtual))), &run->record);
	if (r < 0)
		fclose(stream);
	return r;
}

static int play(struct scenario *scenario, const struct options *options)
{
	struct run run = { .scenario = scenario };
	struct virtual_watch watch = { on_tick, on_name, on_log, on_step, &run };
	struct virtual *virtual = NULL;
	int r, status = EXIT_WRONG;

	r = virtual_new(scenario, &watch, &virtual);
	if (r < 0) {
		fprintf(stderr, "ballast-sim: %s: %s\n", options->file, strerror(-r));
		goto out;
	}
	if (options->plot) {
		r = plot_new(scenario, virtual, options->plot, &run.plot);
		if (r < 0) {
			fprintf(stderr, "ballast-sim: %s: %s\n", options->plot, strerror(-r));
			goto out;
		}
	}
	r = report_new(
		scenario, options->file, virtual, options->json || options->quiet, &run.report);
	if (r == 0 && options->record) {
		r = start_record(&run, virtual, options->record);
		if (r < 0) {
			fprintf(stderr, "ballast-sim: %s: %s\n", options->record, strerror(-r));
			goto out;
		}
	}
	if (r == 0)
		r = virtual_run(virtual);
	if (r < 0) {
		fprintf(stderr, "ballast-sim: %s: %s\n", options->file, strerror(-r));
		goto out;
	}
	r = options->json ? report_json(run.report) : report_text(run.report, options->quiet);
	if (r < 0) {
		fprintf(stderr, "ballast-sim: %s\n", strerror(-r));
		goto out;
	}
	status = report_right(run.report) ? EXIT_RIGHT : EXIT_WRONG;
	if (run.plot && plot_finish(run.plot) < 0)
		status = EXIT_WRONG;
	if (run.record && record_error(run.record) < 0) {
		fprintf(stderr, "ballast-sim: %s: %s\n", options->record,
			strerror(-record_error(run.record)));
		status = EXIT_WRONG;
	}
out:
	virtual_free(virtual);
	record_free(run.record);
	report_free(run.report);
	plot_free(run.plot);
	return status;
}

static int cmd_run(const struct options *options)
{
	struct scenario *scenario;
	char *errors = NULL;
	int status, r = scenario_load(options->file, &scenario, &errors);

	if (r < 0) {
		fprintf(stderr, "%s", r == -EINVAL && errors ? errors : strerror(-r));
		if (r != -EINVAL)
			fputc('\n', stderr);
		free(errors);
		return EXIT_WRONG;
	}
	if (options->policy)
		scenario->host.rival = options->policy;
	if (options->seed)
		scenario->host.seed = options->seed;
	if (options->record && restarts(scenario)) {
		fprintf(stderr,
			"ballast-sim: the daemon is restarted in %s: a recording is of one "
			"daemon\n",
			options->file);
		status = EXIT_USAGE;
	} else {
		status = play(scenario, options);
	}
	scenario_free(scenario);
	return status;
}

static int cmd_compare(const struct options *options)
{
	return sim_compare(options->file, options->seed, options->json);
}

/* ---- replay ---- */

static int replay_json(const struct replay_result *result, int error)
{
	struct json_object *root = json_object_new_object();
	int r = root ? 0 : -ENOMEM;

	json_put_u64(root, "schema_version", 1, &r);
	json_put_bool(root, "identical", !error && !result->differing, &r);
	json_put_u64(root, "ticks", result->ticks, &r);
	json_put_u64(root, "actions", result->actions, &r);
	json_put_u64(root, "differing", result->differing, &r);
	if (result->first_line)
		json_put_u64(root, "first_line", result->first_line, &r);
	if (error || result->differing) {
		json_put_string(root, "what",
			error && !*result->what ? strerror(-error) : result->what, &r);
	}
	if (r == 0)
		puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY));
	json_object_put(root);
	return r;
}

static int cmd_replay(const struct options *options)
{
	struct replay_result result = { 0 };
	FILE *stream = fopen(options->file, "r");
	int r;

	if (!stream) {
		fprintf(stderr, "ballast-sim: %s: %s\n", options->file, strerror(errno));
		return EXIT_WRONG;
	}
	r = replay(stream, &result);
	fclose(stream);
	if (options->json) {
		if (replay_json(&result, r) < 0) {
			fprintf(stderr, "ballast-sim: %s\n", strerror(ENOMEM));
			return EXIT_WRONG;
		}
	} else if (r < 0 && result.first_line) {
		fprintf(stderr, "%s:%" PRIu64 ": %s\n", options->file, result.first_line,
			result.what);
	} else if (r < 0) {
		fprintf(stderr, "ballast-sim: %s: %s\n", options->file, strerror(-r));
	} else if (result.differing) {
		printf("%" PRIu64 " of %" PRIu64
		       " ticks decide differently; the first at %s:%" PRIu64 ": %s\n",
			result.differing, result.ticks, options->file, result.first_line,
			result.what);
	} else {
		printf("%" PRIu64 " ticks, %" PRIu64 " actions: all decided as recorded\n",
			result.ticks, result.actions);
	}
	return r < 0 || result.differing ? EXIT_WRONG : EXIT_RIGHT;
}

/* ---- the command line ---- */

enum { TAKES_SEED = 1, TAKES_RUNS_OWN = 2 };

static const struct {
	const char *name;
	unsigned int takes; /* options beside --format */
	int (*run)(const struct options *options);
} commands[] = { { "run", TAKES_SEED | TAKES_RUNS_OWN, cmd_run },
	{ "compare", TAKES_SEED, cmd_compare }, { "replay", 0, cmd_replay } };

static int wrong_usage(const char *what, const char *value)
{
	fprintf(stderr, "ballast-sim: %s%s\nTry: ballast-sim --help\n", what, value);
	return EXIT_USAGE;
}

static bool read_seed(const char *text, uint64_t *ret_seed)
{
	char *end;

	errno = 0;
	*ret_seed = strtoull(text, &end, 10);
	return !errno && *text >= '0' && *text <= '9' && !*end && *ret_seed;
}

/* One that was given and the command does not take. */
static const char *foreign_option(const struct options *options, unsigned int takes)
{
	if (options->seed && !(takes & TAKES_SEED))
		return " takes no --seed";
	if (takes & TAKES_RUNS_OWN)
		return NULL;
	return options->policy	 ? " takes no --policy"
	       : options->record ? " takes no --record"
	       : options->plot	 ? " takes no --plot"
	       : options->quiet	 ? " takes no --quiet"
				 : NULL;
}

/* The file is options->file. */
static int run_command(const char *command, const struct options *options)
{
	const char *foreign;

	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		if (strcmp(commands[i].name, command))
			continue;
		foreign = foreign_option(options, commands[i].takes);
		return foreign ? wrong_usage(command, foreign) : commands[i].run(options);
	}
	return wrong_usage("no such command: ", command);
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = { { "format", required_argument, NULL, 'f' },
		{ "record", required_argument, NULL, 'r' }, { "quiet", no_argument, NULL, 'q' },
		{ "policy", required_argument, NULL, 'p' },
		{ "seed", required_argument, NULL, 's' }, { "plot", required_argument, NULL, 'P' },
		{ "version", no_argument, NULL, 'V' }, { "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 } };
	struct options options = { 0 };
	const char *command;
	int c;

	while ((c = getopt_long(argc, argv, "qVh", longs, NULL)) != -1) {
		switch (c) {
		case 'f':
			if (strcmp(optarg, "json") && strcmp(optarg, "text"))
				return wrong_usage("no such format: ", optarg);
			options.json = *optarg == 'j';
			break;
		case 'r':
			options.record = optarg;
			break;
		case 'p':
			options.policy = rival_find(optarg);
			if (!options.policy)
				return wrong_usage("no such policy: ", optarg);
			break;
		case 's':
			if (!read_seed(optarg, &options.seed))
				return wrong_usage("a seed is a number from 1 on: ", optarg);
			break;
		case 'P':
			options.plot = optarg;
			break;
		case 'q':
			options.quiet = true;
			break;
		case 'V':
			puts("ballast-sim " PACKAGE_VERSION);
			return EXIT_RIGHT;
		case 'h':
			usage(stdout);
			return EXIT_RIGHT;
		default:
			return wrong_usage("", "");
		}
	}
	if (optind == argc)
		return wrong_usage("run, compare or replay?", "");
	command = argv[optind++];
	if (optind + 1 != argc)
		return wrong_usage(command, ": one file is needed");
	options.file = argv[optind];
	return run_command(command, &options);
}

int main(int argc, char **argv)
{
	return output_end("ballast-sim", run(argc, argv));
}
