/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The real calls; see calls.h. */
#include <config.h>

#include "hv/xen/calls.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <xentoollog.h>

#include "common/negative.h"
#include "hv/agent_channel.h"

/* libxenctrl prints errors to stderr unless somebody takes them; they are in the events already. */
static void drop_message(struct xentoollog_logger *logger, xentoollog_level level, int error,
	const char *context, const char *format, va_list args)
{
}

static void drop_progress(struct xentoollog_logger *logger, const char *context, const char *doing,
	int percent, unsigned long done, unsigned long total)
{
}

static void drop_logger(struct xentoollog_logger *logger)
{
}

static xc_interface *interface_open(void)
{
	static struct xentoollog_logger quiet = {
		.vmessage = drop_message, .progress = drop_progress, .destroy = drop_logger
	};

	return xc_interface_open(&quiet, &quiet, 0);
}

/* 0 or a negative errno; -ENOENT: there is no such socket. */
static int reach(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd, r;

	if (!path || strlen(path) >= sizeof(at.sun_path))
		return -ENOENT;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return negative(errno);
	memcpy(at.sun_path, path, strlen(path) + 1);
	r = connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ? negative(errno) : 0;
	close(fd);
	return r;
}

/*
 * Where nobody is behind xenstored's socket libxenstore takes the kernel's device, and every call
 * on that waits until there is a xenstored again, for ever: a lost connection would not be seen.
 * The device is for a dom0 that has no such socket, as its xenstored is a domain of its own.
 */
static struct xs_handle *open_store(unsigned long flags)
{
	static atomic_bool has_socket;
	int r = reach(xs_daemon_socket());

	if (r != -ENOENT)
		atomic_store(&has_socket, true);
	if (r < 0 && atomic_load(&has_socket)) {
		errno = -r;
		return NULL;
	}
	return xs_open(flags);
}

const struct xen_calls xen_calls = {
	.times = {
		.pause_first = 1000000, /* a xenstored restarts in about a second */
		.pause_most = 30000000,
		.hung = 3000000,	/* healthy calls take milliseconds */
		.poll = 250000,		/* one hypercall of 50 us for all domains */
		.rescan = 5000000,
		.rest = 1000000,	/* balloons move within 50 ms, or go on within that */
		.nudge_first = 2000000, /* one that moves is left alone; each is a write */
		.nudge_most = 60000000,
		.driver = 60000000,	/* one that boots slowly shows it within that */
		.forget = 60000000,	/* a reboot takes seconds */
		.silent = AGENT_CHANNEL_SILENT_US,
		.remake = 5000000,
	},
	.interface_open = interface_open,
	.interface_close = xc_interface_close,
	.domain_getinfolist = xc_domain_getinfolist,
	.domain_setmaxmem = xc_domain_setmaxmem,
	.physinfo = xc_physinfo,
	.xs_open = open_store,
	.xs_close = xs_close,
	.xs_fileno = xs_fileno,
	.xs_watch = xs_watch,
	.xs_unwatch = xs_unwatch,
	.xs_check_watch = xs_check_watch,
	.xs_directory = xs_directory,
	.xs_read = xs_read,
	.xs_write = xs_write,
	.xs_set_permissions = xs_set_permissions,
	.xs_rm = xs_rm,
	.xs_transaction_start = xs_transaction_start,
	.xs_transaction_end = xs_transaction_end,
};
