/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ballastctl: what ballastd knows and does, for people and programs. See ballastctl.h. */
#include <config.h>

#include "tools/ballastctl.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/nearest.h"

int ctl_fail(int status, const char *format, ...)
{
	va_list args;

	fputs("ballastctl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return status;
}

const char *text_size(struct json_object *object, const char *key, char buf[SIZE_TEXT])
{
	int64_t bytes;

	if (json_get_i64(object, key, &bytes) < 0)
		return "-";
	return size_format_signed(bytes, buf, SIZE_TEXT);
}

uint64_t number(struct json_object *object, const char *key)
{
	uint64_t value = 0;

	json_get_u64(object, key, &value); /* else 0 */
	return value;
}

const char *text(struct json_object *object, const char *key)
{
	const char *value = "";

	json_get_string(object, key, &value); /* else "" */
	return value;
}

void show_json(struct json_object *result)
{
	puts(json_object_to_json_string_ext(
		result, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
}

/* ---- commands ---- */

/* An exit status where the daemon cannot be reached; 0 with *ret_client. */
static int reach(const struct ctl_options *options, struct client **ret_client)
{
	char why[300] = "";

	if (client_open(options->socket, ret_client, why, sizeof(why)) < 0)
		return ctl_fail(CTL_UNREACHABLE, "cannot reach ballastd at %s", why);
	return 0;
}

/* Calls, and prints with show or as JSON. Takes over params. */
static int call_and_show(const struct ctl_options *options, const char *method,
	struct json_object *params, void (*show)(struct json_object *result))
{
	struct json_object *result = NULL;
	struct client *client = NULL;
	char why[600] = "";
	int r, status;

	status = reach(options, &client);
	if (status) {
		json_object_put(params);
		return status;
	}
	r = client_call(client, method, params, &result, why, sizeof(why));
	client_close(client);
	if (r < 0)
		return ctl_fail(r == -EREMOTE ? CTL_FAILED : CTL_UNREACHABLE, "%s", why);
	if (options->json)
		show_json(result);
	else
		show(result);
	json_object_put(result);
	return EXIT_SUCCESS;
}

static int do_status(const struct ctl_options *options, char **args)
{
	return call_and_show(options, "status", NULL, show_status);
}

static int do_explain(const struct ctl_options *options, char **args)
{
	struct json_object *params = NULL;
	int r = 0;

	if (args[0]) {
		params = json_object_new_object();
		json_put_string(params, "name", args[0], &r);
		if (r < 0) {
			json_object_put(params);
			return ctl_fail(CTL_FAILED, "no memory");
		}
	}
	return call_and_show(options, "explain", params, show_reasons);
}

/* Parameters of plan and reclaim: 0 with *ret_params, or an exit status. */
static int size_params(
	const struct ctl_options *options, const char *size, struct json_object **ret_params)
{
	struct json_object *params;
	char why[200];
	uint64_t bytes;
	int r;

	/* The daemon would say so too, but a wrong command line needs no daemon. */
	r = size_parse(size, &bytes);
	if (r < 0)
		return ctl_fail(CTL_USAGE, "SIZE: %s", size_parse_error(size, r, why, sizeof(why)));
	r = 0;
	params = json_object_new_object();
	json_put_string(params, "size", size, &r);
	if (options->group)
		json_put_string(params, "group", options->group, &r);
	if (r < 0) {
		json_object_put(params);
		return ctl_fail(CTL_FAILED, "no memory");
	}
	*ret_params = params;
	return 0;
}

static int do_plan(const struct ctl_options *options, char **args)
{
	struct json_object *params = NULL;
	int status = size_params(options, args[0], &params);

	return status ? status : call_and_show(options, "plan", params, show_plan);
}

static int do_reclaim(const struct ctl_options *options, char **args)
{
	struct json_object *params = NULL;
	struct client *client = NULL;
	int status = size_params(options, args[0], &params);

	if (status)
		return status;
	status = reach(options, &client);
	if (status) {
		json_object_put(params);
		return status;
	}
	status = follow_reclaim(client, params, options);
	client_close(client);
	return status;
}

struct command {
	const char *name, *arguments;
	int least, most; /* arguments */
	bool takes_group;
	int (*run)(const struct ctl_options *options, char **args);
	const char *line, *help;
};

#define GROUP_HELP                                                                                 \
	"  -g, --group PATH  below that group, for example /production; default: the pool\n"

static const struct command commands[] = {
	{ "status", "", 0, 0, false, do_status, "pool, groups and VMs as they are now",
		"Shows the pool, and for each group and VM what it uses, what it may, by how much "
		"it is over\n"
		"its soft limit, and what it was asked for. \"-\" is unknown or none.\n" },
	{ "plan", "SIZE", 1, 1, true, do_plan,
		"who would give how much, if SIZE were to be reclaimed",
		"A dry run: who would give how much, in which step and why. Nothing is changed.\n"
		"SIZE has a unit, for example 2GiB.\n" },
	{ "reclaim", "SIZE", 1, 1, true, do_reclaim, "take SIZE from VMs, by their soft limits",
		"Reclaims SIZE, for example 2GiB, and shows what came. ^C cancels; what came until "
		"then\n"
		"stays. Exit status 4: not all of it came.\n" },
	{ "explain", "[NAME]", 0, 1, false, do_explain,
		"the last decisions, and the numbers behind them",
		"Says for a VM (by name or UUID), for all below a group, or for all VMs, what was "
		"decided\n"
		"last and from which figures.\n" },
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct option long_options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "format", required_argument, NULL, 'F' },
	{ "group", required_argument, NULL, 'g' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void print_help(void)
{
	fputs("Usage: ballastctl [OPTION...] COMMAND [ARGUMENT...]\n\n", stdout);
	for (size_t i = 0; i < NR_COMMANDS; i++)
		printf("  %-8s %-7s %s\n", commands[i].name, commands[i].arguments,
			commands[i].line);
	fputs("\n"
	      "  -s, --socket PATH  the daemon's socket (default: " CLIENT_DEFAULT_SOCKET ")\n"
	      "      --format json  for programs: bytes as integers, with a schema_version\n"
	      "  -V, --version\n"
	      "  -h, --help         behind a command: that command's\n\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage, 3 ballastd not reachable, 4 done in "
	      "part.\n",
		stdout);
}

static void print_command_help(const struct command *command)
{
	printf("Usage: ballastctl %s%s%s [OPTION...]\n\n%s%s", command->name,
		command->arguments[0] ? " " : "", command->arguments, command->help,
		command->takes_group ? "\n" GROUP_HELP : "");
}

static const struct command *find_command(const char *name)
{
	const char *near = NULL;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < NR_COMMANDS; i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
		if (nearest_better(name, commands[i].name, &best))
			near = commands[i].name;
	}
	if (near)
		ctl_fail(0, "there is no command '%s'; did you mean '%s'?", name, near);
	else
		ctl_fail(0, "there is no command '%s'; see ballastctl --help", name);
	return NULL;
}

/* True: go on; false: end with *ret_status. Options may stand before and behind the command. */
static bool read_options(
	int argc, char **argv, struct ctl_options *options, bool *ret_help, int *ret_status)
{
	int c;

	*ret_status = CTL_USAGE;
	while ((c = getopt_long(argc, argv, "s:g:Vh", long_options, NULL)) != -1) {
		switch (c) {
		case 's':
			options->socket = optarg;
			break;
		case 'F':
			if (strcmp(optarg, "json") != 0 && strcmp(optarg, "text") != 0) {
				ctl_fail(0, "--format is text or json, not '%s'", optarg);
				return false;
			}
			options->json = optarg[0] == 'j';
			break;
		case 'g':
			options->group = optarg;
			break;
		case 'V':
			printf("ballastctl %s\n", PACKAGE_VERSION);
			*ret_status = EXIT_SUCCESS;
			return false;
		case 'h':
			*ret_help = true;
			break;
		default:
			fputs("Try 'ballastctl --help'.\n", stderr);
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	struct ctl_options options = { .socket = CLIENT_DEFAULT_SOCKET };
	const struct command *command;
	bool help = false;
	int status, nr;

	if (!read_options(argc, argv, &options, &help, &status))
		return status;
	if (optind == argc) {
		if (!help)
			return ctl_fail(CTL_USAGE, "a command is missing; see ballastctl --help");
		print_help();
		return EXIT_SUCCESS;
	}
	command = find_command(argv[optind]);
	if (!command)
		return CTL_USAGE;
	if (help) {
		print_command_help(command);
		return EXIT_SUCCESS;
	}
	nr = argc - optind - 1;
	if (nr < command->least || nr > command->most)
		return ctl_fail(CTL_USAGE, "usage: ballastctl %s%s%s", command->name,
			command->arguments[0] ? " " : "", command->arguments);
	if (options.group && !command->takes_group)
		return ctl_fail(CTL_USAGE, "%s takes no --group", command->name);
	status = command->run(&options, &argv[optind + 1]);
	if (fflush(stdout) == EOF || ferror(stdout))
		return ctl_fail(CTL_FAILED, "cannot write the output: %s", strerror(errno));
	return status;
}
