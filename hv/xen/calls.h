/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * calls: every call to libxenctrl and libxenstore that this backend makes, as a table that tests
 * replace. The members have the libraries' own names, signatures, ownership and errors (errno). No
 * other function of theirs is used.
 *
 * Called from any of the backend's threads, each with handles of its own.
 */
#ifndef BALLAST_HV_XEN_CALLS_H
#define BALLAST_HV_XEN_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include <xenctrl.h>
#include <xenstore.h>

/* Times, microseconds; in the table because tests cannot wait for the real ones. */
struct xen_times {
	uint64_t pause_first; /* before connecting again; doubles... */
	uint64_t pause_most;  /* ...up to this */
	uint64_t hung;	      /* a call that is out for longer is hung */
	uint64_t poll;	      /* domains' sizes: nothing tells when one moved */
	uint64_t rescan;      /* what watches should have told */
	uint64_t rest;	      /* a size that stood still so long rests */
	uint64_t
		nudge_first; /* a guest that stands short of its target is told again; doubles... */
	uint64_t nudge_most; /* ...up to this */
	uint64_t driver;     /* a guest that showed none for so long has none */
	uint64_t forget;     /* knobs of a domain that has gone: it may be rebooting */
	uint64_t silent;     /* an agent that said nothing for so long is greeted anew */
	uint64_t remake;     /* before the keys that a guest removed are made again */
};

struct xen_calls {
	struct xen_times times;

	xc_interface *(*interface_open)(void);
	int (*interface_close)(xc_interface *xc);
	int (*domain_getinfolist)(
		xc_interface *xc, uint32_t first, unsigned int max, xc_domaininfo_t *ret_infos);
	int (*domain_setmaxmem)(xc_interface *xc, uint32_t domid, uint64_t max_kib);
	int (*physinfo)(xc_interface *xc, xc_physinfo_t *ret_info);

	struct xs_handle *(*xs_open)(unsigned long flags);
	void (*xs_close)(struct xs_handle *xs);
	int (*xs_fileno)(struct xs_handle *xs);
	bool (*xs_watch)(struct xs_handle *xs, const char *path, const char *token);
	bool (*xs_unwatch)(struct xs_handle *xs, const char *path, const char *token);
	char **(*xs_check_watch)(struct xs_handle *xs);
	char **(*xs_directory)(
		struct xs_handle *xs, xs_transaction_t t, const char *path, unsigned int *ret_nr);
	void *(*xs_read)(
		struct xs_handle *xs, xs_transaction_t t, const char *path, unsigned int *ret_len);
	bool (*xs_write)(struct xs_handle *xs, xs_transaction_t t, const char *path,
		const void *data, unsigned int len);
	bool (*xs_set_permissions)(struct xs_handle *xs, xs_transaction_t t, const char *path,
		struct xs_permissions *permissions, unsigned int nr);
	bool (*xs_rm)(struct xs_handle *xs, xs_transaction_t t, const char *path);
	xs_transaction_t (*xs_transaction_start)(struct xs_handle *xs);
	bool (*xs_transaction_end)(struct xs_handle *xs, xs_transaction_t t, bool abort);
};

/* The real ones. */
extern const struct xen_calls xen_calls;

#endif
