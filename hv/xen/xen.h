/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xen: the backend for a Xen host's dom0, through libxenctrl and libxenstore, without libvirt.
 *
 * A domain is adopted once its memory/target is there. Its uuid is the one that its toolstack gave
 * it (xl keeps it over reboots; each life is another creation), or one made of its domid.
 *
 * It changes a domain's memory/target and the hypervisor's max_pages, keeps notes in keys of dom0's
 * own (store.h), and speaks with the guest's agent in keys below the domain's path. Nothing is
 * written below the path of a domain that the hypervisor does not list any more. dom0 is off limits
 * unless hv_params.dom0_min is set, and then has that at least.
 *
 * There are no statistics of guests: switched on (HV_PERIOD), they say only, by moving, that a
 * balloon was seen to work: a page is asked for, once, and given back.
 */
#ifndef BALLAST_HV_XEN_XEN_H
#define BALLAST_HV_XEN_XEN_H

#include "hv/hv.h"

struct xen_calls; /* calls.h, which needs the Xen headers, and a GNU compiler's C */

#define HV_XEN_URI "xen:///local"

extern const struct hv_backend hv_xen;

/* hv_xen.open() with a table of one's own, which must live as long as the process. */
int hv_xen_open_with(
	const struct xen_calls *calls, const struct hv_params *params, struct hv **ret_hv);

/* Whether this is a dom0 that Xen can be driven from. */
bool hv_xen_here(void);

/* Handles that are not freed yet: those of close() whose calls still hang. For tests. */
unsigned int hv_xen_nr_alive(void);

#endif
