/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * MicroVMs beside those of a hypervisor: a backend that wraps another and adds the VMs whose VMMs
 * hand over their memory (pager.h). They stand in listings and readings like all others: without a
 * balloon of ours, resident with what they are charged, exact to the page.
 *
 * hv_params.pager is a directory. For each memory file NAME.mem in it (empty: no file, zeros) there
 * is a socket NAME.sock, made within a listing's interval (5 s), readable and writable by its owner
 * alone; it goes when the file has gone and nobody is there. A VMM that connects to it and sends
 * the protocol's message is the VM called NAME; rules of the configuration say by the name which
 * group it is in, and what its limits are. One VM a name at a time. Of what is refused
 * hv_event.message says why.
 */
#ifndef BALLAST_HV_PAGER_BACKEND_H
#define BALLAST_HV_PAGER_BACKEND_H

#include "hv/core.h"

/* The wrapper of that backend, which hv_params.inner is, too; there is one in a process. */
const struct hv_backend *hv_pager(const struct hv_backend *inner);

/*
 * After each step of the core: VMs that it has got a group for, or another one, are charged to it
 * from now on, and where a max refused pages below it are asked for. Before that their faults wait:
 * for a second, in which a hypervisor that is there is listed. Where it is not, they are served all
 * the same, charged to nobody until the group is known, and then for all that they have.
 */
void hv_pager_bind(struct hv *hv, struct core *core);

#endif
