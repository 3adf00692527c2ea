/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * knobs_text: a VM's knobs as operators write them beside it, a name and a text each: attributes of
 * libvirt's metadata, keys of xenstore. What is bad is refused alone and told in hv_info.problem.
 *
 * Pure; any thread. Called by backends.
 */
#ifndef BALLAST_HV_KNOBS_TEXT_H
#define BALLAST_HV_KNOBS_TEXT_H

#include "hv/hv.h"

/*
 * One of them into info->metadata; where begins what is said of a bad one. -ENOMEM: without it the
 * knob would seem not to be said.
 */
int knobs_take(struct hv_info *info, const char *where, const char *name, const char *value);

/* Once all are in: of two that exclude each other the one that protects the guest holds. */
void knobs_settle(struct hv_info *info, const char *where);

/* One more problem for the operator; when memory is out it is lost, and the knob stays unset. */
void __attribute__((format(printf, 2, 3)))
knobs_complain(struct hv_info *info, const char *fmt, ...);

/* value NULL: it goes. Valid during the call. */
typedef int knobs_write_fn(void *ctx, const char *name, const char *value);

/* All that the change says, in a fixed order; the first error ends it and is returned. */
int knobs_write(const struct hv_knobs_change *change, knobs_write_fn *write, void *ctx);

#endif
