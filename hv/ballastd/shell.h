/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shell: the event loop around the core. It alone reads a clock and waits; it takes events of the
 * backend to the core and the core's calls to the backend, runs the control socket, and ends on
 * SIGTERM and SIGINT; on SIGHUP it takes a new configuration, whole or not at all. One thread; the
 * backend's own are its affair.
 */
#ifndef BALLAST_HV_BALLASTD_SHELL_H
#define BALLAST_HV_BALLASTD_SHELL_H

#include "hv/ballastd/config.h"

struct shell_params {
	const struct config *config; /* connect and socket are set */
	const struct hv_backend *backend;
	const struct hv_backend *inner; /* of hv_pager(), where the configuration has one */
	const char *record;		/* file to record to; NULL: none */
	/*
	 * On SIGHUP: the configuration anew, the caller's; -EINVAL with *ret_errors as
	 * config_load(), also where this host does not allow it; other errors. old is the one in
	 * force. NULL: it cannot be read anew.
	 */
	int (*reload)(
		void *ctx, const struct config *old, struct config **ret_config, char **ret_errors);
	void *ctx;
};

/*
 * Runs until a signal ends it: 0. On failure a negative errno, and the log has the words. Blocks
 * SIGTERM, SIGINT and SIGHUP in this thread, before the backend makes others.
 */
int shell_run(const struct shell_params *params);

/* core_config.log of the daemon: to common/log.h, with all that the line has. ctx is not used. */
void shell_log(void *ctx, const struct core_line *line);

#endif
