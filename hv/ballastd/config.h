/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * config: the daemon's configuration, from INI files to one checked struct.
 *
 * Everything that can be set stands in one table (config_table.c) with section, key, type, bounds
 * and reason; the parser, --dump-config, dist/ballastd.conf and the manual page follow it. Defaults
 * are those of core_config_default(). A configuration is taken whole or refused whole: every
 * mistake is told with file and line. Reads files; never logs, never writes. At start and on
 * SIGHUP.
 *
 * Percentages, sizes and times are written with their unit; amounts in struct config are bytes,
 * except in core.engine, which is the engine's and has pages.
 */
#ifndef BALLAST_HV_BALLASTD_CONFIG_H
#define BALLAST_HV_BALLASTD_CONFIG_H

#include <stdbool.h>
#include <stdio.h>

#include "hv/core.h"

#ifndef BALLAST_SYSCONFDIR
#define BALLAST_SYSCONFDIR "/etc"
#endif

#define CONFIG_DEFAULT_FILE   BALLAST_SYSCONFDIR "/ballast/ballastd.conf"
#define CONFIG_DEFAULT_SOCKET "ballastd.sock" /* in run-dir */

struct config {
	char *connect; /* NULL: LIBVIRT_DEFAULT_URI, else what this host has */
	char *run_dir;
	char *socket;		 /* NULL: CONFIG_DEFAULT_SOCKET in run_dir */
	char *psi;		 /* NULL: none is watched */
	uint64_t dom0_min;	 /* Xen's; 0: dom0 is off limits */
	char *pager;		 /* directory of microVMs; NULL: none are served */
	bool release_on_stop;	 /* VMs get all back when the daemon ends */
	struct core_config core; /* log and log_ctx are the shell's */
};

/* The word for mode: that of hv_manage_name(). */
const char *config_mode_name(bool act);

/* Where configuration comes from. */
struct config_source {
	const char *file;
	bool optional; /* the file need not be there */
	/*
	 * Folders with more files, FOLDER/NAME.conf, read after file in the order of their names.
	 * Of two with the same name the one in the earlier folder counts alone. NULL-terminated.
	 */
	const char *const *folders;
};

/* CONFIG_DEFAULT_FILE, and ballast/ballastd.conf.d of sysconfdir, /run and /usr/lib. */
extern const struct config_source config_default_source;

/* All defaults. 0 or -ENOMEM. */
int config_new(struct config **ret_config);
void config_free(struct config *config);

/*
 * 0; -EINVAL: refused, and *ret_errors has a line "FILE:LINE: what" for each mistake (the first
 * 20), the caller's to free; -ENOMEM. A file that cannot be read is a mistake like others.
 */
int config_load(const struct config_source *source, struct config **ret_config, char **ret_errors);

/*
 * As the command line sets one option. -EINVAL with *ret_errors as above, without file and line;
 * -ENOENT: there is no such option. Bounds are checked; config_check() sees to the rest.
 */
int config_set(struct config *config, const char *section, const char *key, const char *value,
	char **ret_errors);

/* What does not fit together; config_load() did it for what it read. -EINVAL, -ENOMEM. */
int config_check(const struct config *config, char **ret_errors);

/* The configuration as a file that reads back to the same. */
void config_dump(const struct config *config, FILE *stream);
/* Every option commented out, with its reason: dist/ballastd.conf, of the defaults. */
void config_dump_template(const struct config *config, FILE *stream);

#endif
