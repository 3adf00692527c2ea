/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ballastd: command line and configuration, and which backend; shell.c runs it. Exit status: 0
 * ended by a signal, or asked for something that it printed; 1 failed; 2 wrong usage, which a
 * configuration that is refused is too.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/output.h"
#include "hv/ballastd/config.h"
#include "hv/ballastd/managers.h"
#include "hv/ballastd/shell.h"
#include "hv/pager/backend.h"
#ifdef WITH_LIBVIRT
#include "hv/libvirt/libvirt.h"
#endif
#ifdef WITH_XEN
#include "hv/xen/xen.h"
#endif

#define EXIT_USAGE 2

#define DEFAULT_URI "qemu:///system"

/* In the order in which they are asked whether a URI is theirs. */
static const struct hv_backend *const backends[] = {
#ifdef WITH_LIBVIRT
	&hv_libvirt,
#endif
#ifdef WITH_XEN
	&hv_xen,
#endif
	NULL,
};

struct options {
	const char *file, *record;
	bool check, dump, debug, force;
	struct {
		const char *key, *value;
	} set[8]; /* of section [ballastd], over what the file says */
	size_t nr_set;
};

static const char usage[] =
	"Usage: ballastd [OPTION...]\n"
	"Takes memory from virtual machines by their soft limits when the host runs short.\n\n"
	"  -c, --connect URI     hypervisor (default: connect of the configuration,\n"
	"                        $LIBVIRT_DEFAULT_URI, in a Xen host's dom0 xen:///local,\n"
	"                        qemu:///system)\n"
	"  -f, --config FILE     configuration, with FILE.d/*.conf (default: " CONFIG_DEFAULT_FILE
	")\n"
	"      --mode MODE       observe (changes nothing) or act\n"
	"      --socket PATH     control socket (default: RUN-DIR/" CONFIG_DEFAULT_SOCKET ")\n"
	"      --run-dir DIR     default: /run/ballast\n"
	"      --record FILE     record what is seen and decided; see ballast-sim(1), replay\n"
	"      --check-config    say whether the configuration is good, and end\n"
	"      --dump-config     print the configuration as it counts, and end\n"
	"      --force           act though another program that moves balloons runs here\n"
	"      --debug           log more\n"
	"  -V, --version         print the version, and end\n"
	"  -h, --help            print this, and end\n";

enum {
	OPT_MODE = 256,
	OPT_SOCKET,
	OPT_RUN_DIR,
	OPT_RECORD,
	OPT_CHECK,
	OPT_DUMP,
	OPT_DEBUG,
	OPT_FORCE
};

static const struct option long_options[] = {
	{ "connect", required_argument, NULL, 'c' },
	{ "config", required_argument, NULL, 'f' },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "run-dir", required_argument, NULL, OPT_RUN_DIR },
	{ "record", required_argument, NULL, OPT_RECORD },
	{ "check-config", no_argument, NULL, OPT_CHECK },
	{ "dump-config", no_argument, NULL, OPT_DUMP },
	{ "debug", no_argument, NULL, OPT_DEBUG },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void set(struct options *options, const char *key, const char *value)
{
	size_t i = 0;

	/* Given twice, the last one counts, so there are never more than the keys. */
	while (i < options->nr_set && strcmp(options->set[i].key, key) != 0)
		i++;
	if (i == options->nr_set)
		options->nr_set++;
	options->set[i].key = key;
	options->set[i].value = value;
}

/* True: go on. False: end with *ret_status. */
static bool read_options(int argc, char **argv, struct options *ret_options, int *ret_status)
{
	int c;

	*ret_status = EXIT_SUCCESS;
	while ((c = getopt_long(argc, argv, "c:f:Vh", long_options, NULL)) != -1) {
		switch (c) {
		case 'c':
			set(ret_options, "connect", optarg);
			break;
		case 'f':
			ret_options->file = optarg;
			break;
		case OPT_MODE:
			set(ret_options, "mode", optarg);
			break;
		case OPT_SOCKET:
			set(ret_options, "socket", optarg);
			break;
		case OPT_RUN_DIR:
			set(ret_options, "run-dir", optarg);
			break;
		case OPT_RECORD:
			ret_options->record = optarg;
			break;
		case OPT_CHECK:
			ret_options->check = true;
			break;
		case OPT_DUMP:
			ret_options->dump = true;
			break;
		case OPT_FORCE:
			ret_options->force = true;
			break;
		case OPT_DEBUG:
			ret_options->debug = true;
			break;
		case 'V':
			printf("ballastd %s\n", PACKAGE_VERSION);
			return false;
		case 'h':
			fputs(usage, stdout);
			return false;
		default:
			fputs("Try 'ballastd --help'.\n", stderr);
			*ret_status = EXIT_USAGE;
			return false;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "ballastd: unexpected argument '%s'\nTry 'ballastd --help'.\n",
			argv[optind]);
		*ret_status = EXIT_USAGE;
		return false;
	}
	return true;
}

static void complain(const char *errors)
{
	while (*errors) {
		size_t length = strcspn(errors, "\n");

		log_write(LOG_LEVEL_ERROR, NULL, "%.*s", (int)length, errors);
		errors += length + (errors[length] == '\n');
	}
}

static int load_file(const char *path, struct config **ret_config, char **ret_errors)
{
	struct config_source source = { .file = path };
	const char *folders[2] = { NULL, NULL };
	char *folder = NULL;
	int r;

	if (!path)
		return config_load(&config_default_source, ret_config, ret_errors);
	if (asprintf(&folder, "%s.d", path) < 0)
		return -ENOMEM;
	folders[0] = folder;
	source.folders = folders;
	r = config_load(&source, ret_config, ret_errors);
	free(folder);
	return r;
}

/* As config_set(), of a value that comes from elsewhere: errors say from where. */
static int set_from(const char *from, struct config *config, const char *key, const char *value,
	char **ret_errors)
{
	char *why = NULL, *errors = NULL;
	int r = config_set(config, "ballastd", key, value, &why);

	if (r == -EINVAL && asprintf(&errors, "%s: %s", from, why) < 0)
		r = -ENOMEM;
	else if (r == -EINVAL)
		*ret_errors = errors;
	free(why);
	return r;
}

/* What neither file nor command line said and the daemon needs. */
static int fill_in(struct config *config, char **ret_errors)
{
	const char *uri = getenv("LIBVIRT_DEFAULT_URI"), *otherwise = DEFAULT_URI;
	char *path = NULL;
	int r = 0;

#ifdef WITH_XEN
	if (hv_xen_here())
		otherwise = HV_XEN_URI;
#endif

	if (!config->connect && uri && uri[0])
		r = set_from("LIBVIRT_DEFAULT_URI", config, "connect", uri, ret_errors);
	else if (!config->connect)
		r = config_set(config, "ballastd", "connect", otherwise, ret_errors);
	if (r < 0 || config->socket)
		return r;
	if (asprintf(&path, "%s/%s", config->run_dir, CONFIG_DEFAULT_SOCKET) < 0)
		return -ENOMEM;
	r = set_from(CONFIG_DEFAULT_SOCKET " in run-dir", config, "socket", path, ret_errors);
	free(path);
	return r;
}

/* File, command line, environment. -EINVAL with *ret_errors; other errors without. */
static int read_all(const struct options *options, struct config **ret_config, char **ret_errors)
{
	struct config *config = NULL;
	int r;

	r = load_file(options->file, &config, ret_errors);
	for (size_t i = 0; i < options->nr_set && r == 0; i++)
		r = config_set(
			config, "ballastd", options->set[i].key, options->set[i].value, ret_errors);
	if (r == 0)
		r = config_check(config, ret_errors);
	if (r == 0)
		r = fill_in(config, ret_errors);
	if (r < 0)
		config_free(config);
	else
		*ret_config = config;
	return r;
}

/* The same at start: errors are logged. */
static int load(const struct options *options, struct config **ret_config)
{
	char *errors = NULL;
	int r = read_all(options, ret_config, &errors);

	if (r < 0 && errors)
		complain(errors);
	else if (r < 0)
		log_write(LOG_LEVEL_ERROR, NULL, "the configuration cannot be read: %s",
			strerror(-r));
	free(errors);
	return r;
}

static const struct hv_backend *find_backend(const char *uri)
{
	for (size_t i = 0; backends[i]; i++)
		if (backends[i]->handles(uri))
			return backends[i];
#ifdef WITH_LIBVIRT
	log_write(LOG_LEVEL_ERROR, NULL, "cannot use '%s': %s", uri, hv_libvirt_refusal(uri));
#else
	log_write(LOG_LEVEL_ERROR, NULL, "cannot use '%s': this build has no backend for it", uri);
#endif
	return NULL;
}

/* Started with a standard descriptor closed, a file of ours would get its number, and the log. */
static void fill_standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/*
 * Two that both mean to decide pull every balloon to and fro: 1, and *ret_other is the one that is
 * here already; 0; -ENOMEM.
 */
static int find_other(char **ret_other)
{
	struct managers_found found;
	int r = managers_find("/proc", &found);

	if (r < 0)
		log_write(LOG_LEVEL_WARNING, NULL,
			"whether another program moves balloons here cannot be seen: %s",
			strerror(-r));
	if (r <= 0)
		return 0;
	if (asprintf(ret_other, "%s (%s) runs on this host, process %" PRIu64, found.name,
		    found.what, found.pid) < 0)
		return -ENOMEM;
	return 1;
}

/* acting: it does so already. 0; -EINVAL with *ret_why: mode act is not for this host; -ENOMEM. */
static int may_act(
	const struct options *options, const struct config *config, bool acting, char **ret_why)
{
	char *other = NULL;
	int r;

	if (!config->core.engine.act)
		return 0;
	r = find_other(&other);
	if (r <= 0)
		return r;
	if (options->force || acting) {
		log_write(LOG_LEVEL_WARNING, NULL, "%s: acting beside it, as %s", other,
			options->force ? "--force says" : "before");
		r = 0;
	} else {
		r = asprintf(ret_why,
			    "%s: not acting beside it; end it, use mode = observe, or give "
			    "--force\n",
			    other) < 0
			    ? -ENOMEM
			    : -EINVAL;
	}
	free(other);
	return r;
}

/* When the daemon is told to: what the command line said counts still. */
static int reload(
	void *ctx, const struct config *old, struct config **ret_config, char **ret_errors)
{
	const struct options *options = ctx;
	struct config *config = NULL;
	int r = read_all(options, &config, ret_errors);

	if (r < 0)
		return r;
	r = may_act(options, config, old->core.engine.act, ret_errors);
	if (r < 0)
		config_free(config);
	else
		*ret_config = config;
	return r;
}

static int serve(struct options *options, const struct config *config)
{
	struct shell_params shell = {
		.config = config, .record = options->record, .reload = reload, .ctx = options
	};
	char *why = NULL;
	int r;

	shell.backend = find_backend(config->connect);
	if (!shell.backend)
		return -EINVAL;
	if (config->pager) {
		shell.inner = shell.backend;
		shell.backend = hv_pager(shell.inner);
	}
	r = may_act(options, config, false, &why);
	if (r == 0)
		return shell_run(&shell);
	if (why)
		complain(why);
	else
		log_write(LOG_LEVEL_ERROR, NULL, "cannot start: %s", strerror(-r));
	free(why);
	return r;
}

static int run(int argc, char **argv)
{
	struct options options = { 0 };
	struct config *config = NULL;
	int status, r;

	if (!read_options(argc, argv, &options, &status))
		return status;
	log_open("ballastd", options.debug ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	r = load(&options, &config);
	if (r < 0)
		return r == -EINVAL ? EXIT_USAGE : EXIT_FAILURE;
	if (options.dump)
		config_dump(config, stdout);
	if (options.dump || options.check) {
		if (options.check && !options.dump)
			puts("The configuration is good.");
		goto out;
	}
	status = serve(&options, config) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
out:
	config_free(config);
	return status;
}

int main(int argc, char **argv)
{
	fill_standard_descriptors();
	return output_end("ballastd", run(argc, argv));
}
