/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ballastctl: what ballastd knows and does, for people and programs. See ballastctl.h. */
#include <config.h>

#include "tools/ballastctl.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/nearest.h"
#include "common/output.h"
#include "common/text.h"
#ifdef WITH_LIBVIRT
#include "hv/libvirt/libvirt.h"
#endif
#ifdef WITH_XEN
#include "hv/xen/xen.h"
#endif
#include "tools/direct.h"

/* ---- commands ---- */

/* An exit status where the daemon cannot be reached; 0 with *ret_client. */
static int reach(const struct ctl_options *options, struct client **ret_client)
{
	char why[300] = "";

	if (client_open(options->socket, ret_client, why, sizeof(why)) < 0)
		return ctl_fail(CTL_UNREACHABLE, "cannot reach ballastd at %s", why);
	return 0;
}

static int make_one_printable(struct json_object *value)
{
	const char *text = json_object_get_string(value);
	size_t size = strlen(text) * TEXT_GROWTH + 1;
	char *shown;
	int r;

	if (text_is_printable(text))
		return 0;
	shown = malloc(size);
	if (!shown)
		return -ENOMEM;
	r = json_object_set_string(value, text_printable(text, shown, size)) == 1 ? 0 : -ENOMEM;
	free(shown);
	return r;
}

/*
 * What people are shown holds names that anybody may have given: none of it speaks to the terminal.
 * Deeper than json_read() lets through it does not go.
 */
static int make_printable(struct json_object *value)
{
	struct json_object_iterator i, end;
	int r = 0;

	if (json_object_is_type(value, json_type_string))
		return make_one_printable(value);
	if (json_object_is_type(value, json_type_array)) {
		for (size_t k = 0; k < json_object_array_length(value) && r == 0; k++)
			r = make_printable(json_object_array_get_idx(value, k));
	} else if (json_object_is_type(value, json_type_object)) {
		end = json_object_iter_end(value);
		for (i = json_object_iter_begin(value); r == 0 && !json_object_iter_equal(&i, &end);
			json_object_iter_next(&i))
			r = make_printable(json_object_iter_peek_value(&i));
	}
	return r;
}

/*
 * Calls, and prints with show or as JSON. Takes over params. check, where there is one, makes an
 * exit status of the result.
 */
static int call_and_check(const struct ctl_options *options, const char *method,
	struct json_object *params, void (*show)(struct json_object *result),
	int (*check)(struct json_object *result))
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
	if (options->json) {
		show_json(result);
	} else if (make_printable(result) == 0) {
		show(result);
	} else {
		json_object_put(result);
		return ctl_fail(CTL_FAILED, "no memory");
	}
	status = check ? check(result) : EXIT_SUCCESS;
	json_object_put(result);
	return status;
}

static int call_and_show(const struct ctl_options *options, const char *method,
	struct json_object *params, void (*show)(struct json_object *result))
{
	return call_and_check(options, method, params, show, NULL);
}

static int do_status(const struct ctl_options *options, char **args)
{
	return call_and_show(options, "status", NULL, show_status);
}

/* Parameters with a name; none where it is NULL: 0 with *ret_params, or an exit status. */
static int name_params(const char *name, struct json_object **ret_params)
{
	struct json_object *params = NULL;
	int r = 0;

	if (name) {
		params = json_object_new_object();
		json_put_string(params, "name", name, &r);
		if (r < 0) {
			json_object_put(params);
			return ctl_fail(CTL_FAILED, "no memory");
		}
	}
	*ret_params = params;
	return 0;
}

static int do_explain(const struct ctl_options *options, char **args)
{
	struct json_object *params = NULL;
	int status = name_params(args[0], &params);

	return status ? status : call_and_show(options, "explain", params, show_reasons);
}

static int do_show(const struct ctl_options *options, char **args)
{
	struct json_object *params = NULL;
	int status = name_params(args[0], &params);

	return status ? status : call_and_show(options, "show", params, show_knobs);
}

static int do_set(const struct ctl_options *options, char **args)
{
	struct client *client = NULL;
	int status;

	if (!options->knobs && !options->group)
		return ctl_fail(CTL_USAGE, "set: give what is to be set, for example --soft-limit "
					   "2GiB; see ballastctl set --help");
	status = reach(options, &client);
	if (status)
		return status;
	status = set_knobs(client, options, args[0]);
	client_close(client);
	return status;
}

static int do_agent(const struct ctl_options *options, char **args)
{
	struct client *client = NULL;
	int status;

	if (strcmp(args[0], "attach") != 0)
		return ctl_fail(CTL_USAGE, "agent: '%s' is not attach", args[0]);
	status = reach(options, &client);
	if (status)
		return status;
	status = attach_agent(client, options, args[1]);
	client_close(client);
	return status;
}

static int do_pause(const struct ctl_options *options, char **args)
{
	struct json_object *params = NULL;
	int status = name_params(args[0], &params);

	return status ? status
		      : call_and_check(options, "pause", params, show_pauses, pauses_status);
}

static int do_resume(const struct ctl_options *options, char **args)
{
	struct json_object *params = NULL;
	int status = name_params(args[0], &params);

	return status ? status
		      : call_and_check(options, "resume", params, show_pauses, pauses_status);
}

/* A VM that does not answer is waited for this long after the last that did. */
#define PATIENCE_US 10000000

static void say_failure(void *ctx, const char *vm, const char *what)
{
	ctl_fail(0, "%s: %s", vm, what);
}

static const struct hv_backend *const backends[] = {
#ifdef WITH_LIBVIRT
	&hv_libvirt,
#endif
#ifdef WITH_XEN
	&hv_xen,
#endif
	NULL,
};

static const struct hv_backend *find_backend(const char *uri)
{
	for (size_t i = 0; backends[i]; i++)
		if (backends[i]->handles(uri))
			return backends[i];
	return NULL;
}

static const char *refusal(const char *uri)
{
	const char *why = NULL;

#ifdef WITH_LIBVIRT
	why = hv_libvirt_refusal(uri);
#endif
	return why ? why : "this build has no backend for it";
}

/* As ballastd finds it. */
static const char *direct_uri(const struct ctl_options *options)
{
	const char *env = getenv("LIBVIRT_DEFAULT_URI");

	if (options->uri)
		return options->uri;
	if (env && *env)
		return env;
#ifdef WITH_XEN
	if (hv_xen_here())
		return HV_XEN_URI;
#endif
	return "qemu:///system";
}

static void show_direct(const struct ctl_options *options, const struct direct_result *result)
{
	struct json_object *object;
	int r = 0;

	if (!options->json) {
		printf("%zu given back, %zu never touched, %zu failed\n", result->released,
			result->untouched, result->failed);
		return;
	}
	object = json_object_new_object();
	json_put_u64(object, "released", result->released, &r);
	json_put_u64(object, "untouched", result->untouched, &r);
	json_put_u64(object, "failed", result->failed, &r);
	show_end_json(object);
	json_object_put(object);
}

static int release_directly(const struct ctl_options *options, const char *name)
{
	struct direct_params params = { .uri = direct_uri(options),
		.vm = name,
		.patience_us = PATIENCE_US,
		.say = say_failure };
	struct direct_result result;
	int r;

	params.backend = find_backend(params.uri);
	if (!params.backend)
		return ctl_fail(CTL_USAGE, "cannot use '%s': %s", params.uri, refusal(params.uri));
	r = direct_release(&params, &result);
	if (r == -ENOENT)
		return ctl_fail(CTL_FAILED, "no VM named '%s' runs at %s", name, params.uri);
	if (r == -EEXIST)
		return ctl_fail(CTL_FAILED, "there are several VMs named '%s'; use the UUID", name);
	if (r < 0)
		return ctl_fail(CTL_UNREACHABLE, "cannot reach %s: %s", params.uri, strerror(-r));
	show_direct(options, &result);
	if (result.failed == 0)
		return EXIT_SUCCESS;
	return result.released ? CTL_PARTLY : CTL_FAILED;
}

static int do_release(const struct ctl_options *options, char **args)
{
	struct json_object *params = NULL;
	int status;

	if (!args[0] == !options->all)
		return ctl_fail(CTL_USAGE, "release: name a VM or a group, or give --all");
	/* What is below a group the daemon finds out; all below the root are all. */
	if (options->direct && args[0] && args[0][0] == '/' && args[0][1])
		return ctl_fail(CTL_USAGE,
			"release: which VMs are below %s only the daemon knows: with --direct name "
			"a VM, or give --all",
			args[0]);
	if (options->direct)
		return release_directly(
			options, args[0] && strcmp(args[0], "/") != 0 ? args[0] : NULL);
	status = name_params(options->all ? "/" : args[0], &params);
	return status ? status : call_and_show(options, "release", params, show_release);
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
	r = size_parse_amount(size, &bytes);
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
	uint64_t bytes = 0;

	if (status)
		return status;
	status = reach(options, &client);
	if (status) {
		json_object_put(params);
		return status;
	}
	size_parse(args[0], &bytes); /* it was good above */
	status = confirm_reclaim(client, options, args[0], bytes);
	if (status)
		json_object_put(params);
	else
		status = follow_reclaim(client, params, options);
	client_close(client);
	return status;
}

enum {
	TAKES_GROUP = 1,
	TAKES_YES = 2,
	TAKES_ALL = 4,
	TAKES_DIRECT = 8,
	TAKES_KNOBS = 16,
	TAKES_PERSISTENT = 32,
};

struct command {
	const char *name, *arguments;
	int least, most;    /* arguments */
	unsigned int takes; /* options that not all commands have */
	int (*run)(const struct ctl_options *options, char **args);
	const char *line, *help;
};

#define GROUP_HELP                                                                                 \
	"  -g, --group PATH  below that group, for example /production; default: the pool\n"

static const struct command commands[] = {
	{ "status", "", 0, 0, 0, do_status, "pool, groups and VMs as they are now",
		"Shows the pool, and for each group and VM what it uses, what it may, by how much "
		"it is over\n"
		"its soft limit, and what it was asked for. \"-\" is unknown or none.\n" },
	{ "plan", "SIZE", 1, 1, TAKES_GROUP, do_plan,
		"who would give how much, if SIZE were to be reclaimed",
		"A dry run: who would give how much, in which step and why. Nothing is changed.\n"
		"SIZE has a unit, for example 2GiB.\n" },
	{ "reclaim", "SIZE", 1, 1, TAKES_GROUP | TAKES_YES, do_reclaim,
		"take SIZE from VMs, by their soft limits",
		"Reclaims SIZE, for example 2GiB, and shows what came. ^C cancels; what came until "
		"then\n"
		"stays. Exit status 4: some of it came, not all. More than a tenth of the pool is "
		"asked "
		"about,\n"
		"and where nobody can be asked it takes --yes.\n" },
	{ "explain", "[NAME]", 0, 1, 0, do_explain,
		"the last decisions, and the numbers behind them",
		"Says for a VM (by name or UUID), for all below a group, or for all VMs, what was "
		"decided\n"
		"last and from which figures.\n" },
	{ "show", "NAME", 1, 1, 0, do_show, "all knobs of a VM, and who says them",
		"Shows of each knob what counts, where it comes from and what it overrides, what "
		"of "
		"the\n"
		"sources was refused, and what does not do what it seems to.\n" },
	{ "set", "NAME", 1, 1, TAKES_GROUP | TAKES_KNOBS, do_set,
		"write knobs into a VM's metadata",
		"Writes into ballast's element of the VM's metadata, where it runs and in its "
		"stored\n"
		"configuration: all that is given, or nothing. 'none' takes a word away, so that "
		"the next\n"
		"source counts. memtune is never written.\n" },
	{ "agent", "attach NAME", 2, 2, TAKES_PERSISTENT, do_agent,
		"add the port of ballast-agent to a VM that runs",
		"Adds the channel org.ballast.agent.0 to the VM while it runs, for ballast-agent "
		"in the\n"
		"guest; until its next start, unless --persistent. One that is there already is "
		"left as it\n"
		"is. Of libvirt's VMs only, and only where ballastd acts.\n" },
	{ "pause", "[NAME]", 0, 1, 0, do_pause, "ask nobody, or not this VM, until resume",
		"Nobody is asked for memory, or not the VM NAME, until resume; giving back goes\n"
		"on. A pause outlives the daemon; exit status 4: it could not be written down,\n"
		"and does not.\n" },
	{ "resume", "[NAME]", 0, 1, 0, do_resume, "the end of a pause",
		"Ends pause, or that of the VM NAME. A VM that was paused by its name stays so\n"
		"until it is resumed by its name. Exit status 4: it could not be written down.\n" },
	{ "release", "[NAME]", 0, 1, TAKES_ALL | TAKES_DIRECT, do_release,
		"give back what was taken, and leave in peace for a while",
		"The VM, all VMs below the group NAME, or all with --all, get back what ballast\n"
		"took, and are not asked for a while (release-hold of the configuration); to\n"
		"leave them alone for longer, pause them first. With --direct it needs no daemon:\n"
		"what was taken stands in the hypervisor. NAME is no group then, and exit status\n"
		"4 says that some VMs failed. A daemon that runs would take it again.\n" },
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct option long_options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "format", required_argument, NULL, 'F' },
	{ "group", required_argument, NULL, 'g' },
	{ "yes", no_argument, NULL, 'y' },
	{ "all", no_argument, NULL, 'a' },
	{ "direct", no_argument, NULL, 'D' },
	{ "connect", required_argument, NULL, 'c' },
	{ "soft-limit", required_argument, NULL, 'k' },
	{ "min", required_argument, NULL, 'k' },
	{ "low", required_argument, NULL, 'k' },
	{ "max", required_argument, NULL, 'k' },
	{ "manage", required_argument, NULL, 'k' },
	{ "guest-swap", required_argument, NULL, 'k' },
	{ "agent", required_argument, NULL, 'k' },
	{ "persistent", no_argument, NULL, 'p' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void print_help(void)
{
	fputs("Usage: ballastctl [OPTION...] COMMAND [ARGUMENT...]\n\n", stdout);
	for (size_t i = 0; i < NR_COMMANDS; i++)
		printf("  %-8s %-11s %s\n", commands[i].name, commands[i].arguments,
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
		command->takes ? "\n" : "");
	if (command->takes & TAKES_KNOBS)
		fputs("      --soft-limit SIZE, --min SIZE, --low SIZE, --max SIZE\n"
		      "      --manage act|observe|no, --guest-swap yes|no\n"
		      "      --agent ballast|qemu-ga|none|default\n"
		      "  -g, --group PATH  the VM's group\n",
			stdout);
	else if (command->takes & TAKES_GROUP)
		fputs(GROUP_HELP, stdout);
	if (command->takes & TAKES_YES)
		fputs("  -y, --yes         do not ask\n", stdout);
	if (command->takes & TAKES_PERSISTENT)
		fputs("      --persistent  in the stored configuration too\n", stdout);
	if (command->takes & TAKES_ALL)
		fputs("  -a, --all         all VMs\n", stdout);
	if (command->takes & TAKES_DIRECT)
		fputs("      --direct      without the daemon\n"
		      "  -c, --connect URI the hypervisor; default: $LIBVIRT_DEFAULT_URI, in a "
		      "Xen host's\n"
		      "                    dom0 xen:///local, qemu:///system\n",
			stdout);
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
	int c, index = 0;

	*ret_status = CTL_USAGE;
	while ((c = getopt_long(argc, argv, "s:g:yac:Vh", long_options, &index)) != -1) {
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
		case 'k':
			*ret_status = set_option(options, long_options[index].name, optarg);
			if (*ret_status)
				return false;
			*ret_status = CTL_USAGE;
			break;
		case 'y':
			options->yes = true;
			break;
		case 'a':
			options->all = true;
			break;
		case 'D':
			options->direct = true;
			break;
		case 'p':
			options->persistent = true;
			break;
		case 'c':
			options->uri = optarg;
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

/* One that was given and the command does not take. */
static const char *foreign_option(const struct ctl_options *options, const struct command *command)
{
	if (options->group && !(command->takes & TAKES_GROUP))
		return "group";
	if (options->knobs && !(command->takes & TAKES_KNOBS))
		return "knob such as --soft-limit";
	if (options->yes && !(command->takes & TAKES_YES))
		return "yes";
	if (options->all && !(command->takes & TAKES_ALL))
		return "all";
	if (options->persistent && !(command->takes & TAKES_PERSISTENT))
		return "persistent";
	if (options->direct && !(command->takes & TAKES_DIRECT))
		return "direct";
	return options->uri && !options->direct ? "connect without --direct" : NULL;
}

static int run(int argc, char **argv, struct ctl_options *options)
{
	const struct command *command;
	const char *foreign;
	bool help = false;
	int status, nr;

	if (!read_options(argc, argv, options, &help, &status))
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
	for (int i = optind; i < argc; i++)
		if (!text_is_utf8(argv[i]))
			return ctl_fail(
				CTL_USAGE, "'%s' is not UTF-8, which all names are", argv[i]);
	if (options->group && !text_is_utf8(options->group))
		return ctl_fail(CTL_USAGE, "--group: '%s' is not UTF-8, which all names are",
			options->group);
	foreign = foreign_option(options, command);
	if (foreign)
		return ctl_fail(CTL_USAGE, "%s takes no --%s", command->name, foreign);
	return command->run(options, &argv[optind + 1]);
}

int main(int argc, char **argv)
{
	struct ctl_options options = { .socket = CLIENT_DEFAULT_SOCKET };
	int status = run(argc, argv, &options);

	json_object_put(options.knobs);
	return output_end("ballastctl", status);
}
