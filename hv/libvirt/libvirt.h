/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libvirt: the backend for all that libvirt drives, but Xen, which has its own.
 *
 * It reads, and of its own accord changes three things of a running domain only: the balloon's
 * target, the period of the balloon's statistics, and ballast's own note of the ceiling in live
 * metadata. The operator alone has it write more: ballast's element in the metadata, live and
 * stored (HV_KNOBS), an agent's port, stored too where that is asked for (HV_ATTACH), and a live
 * soft limit of memtune's away (HV_UNTHROTTLE). Nothing else of a domain's configuration is ever
 * written.
 *
 * Threads (see backend.h): one for libvirt's events, one for the control connection (listing and
 * descriptions, which never hang), up to HV_WORKERS with a connection each for what may hang, one
 * for the sockets of agents, up to two for QEMU's guest agents, one for PSI and one that looks for
 * processes. Processes' figures and the host's memory are read within submit().
 */
#ifndef BALLAST_HV_LIBVIRT_LIBVIRT_H
#define BALLAST_HV_LIBVIRT_LIBVIRT_H

#include "hv/hv.h"
#include "hv/libvirt/calls.h"

extern const struct hv_backend hv_libvirt;

/* hv_libvirt.open() with a table of one's own, which must live as long as the process. */
int hv_libvirt_open_with(
	const struct libvirt_calls *calls, const struct hv_params *params, struct hv **ret_hv);

/* Why a URI is not for this backend, for the operator; NULL: it is. */
const char *hv_libvirt_refusal(const char *uri);

/* Handles that are not freed yet: those of close() whose calls still hang. For tests. */
unsigned int hv_libvirt_nr_alive(void);

#endif
