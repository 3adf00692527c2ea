/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * domxml: what a domain's description says that ballast needs.
 *
 * The text comes from libvirt, but parts of it (metadata) are written by whoever may edit the
 * domain: no network, no entities, no document type, at most DOMXML_MAX bytes and
 * DOMXML_DEPTH_MAX levels, and metadata of others are passed over. A bad attribute of ballast's own
 * element is refused alone and told in hv_info.problem; the others hold.
 *
 * Pure functions on text; any thread, once domxml_init() was called (one thread alone needs none).
 */
#ifndef BALLAST_HV_LIBVIRT_DOMXML_H
#define BALLAST_HV_LIBVIRT_DOMXML_H

#include "hv/hv.h"

/* A domain with a thousand disks has 1 MiB. */
#define DOMXML_MAX (16u << 20)
/* libvirt takes 256 levels, and as many again written into the metadata of a domain. */
#define DOMXML_DEPTH_MAX 1024

/* The operator's knobs: <ballast:memory xmlns:ballast='...' soft-limit='2GiB' .../> */
#define DOMXML_MEMORY_NS "urn:ballast:memory:1"
/* ballast's own note in live metadata: <ceiling xmlns='...' kib='262144'/> */
#define DOMXML_CEILING_NS "urn:ballast:ceiling:1"

/* What libvirt says for "no limit", KiB: INT64_MAX bytes. */
#define DOMXML_UNLIMITED_KIB 9007199254740991ULL

/*
 * libxml2 makes its global state at its first use, and two threads that are both the first race
 * for it: to be called before other threads are started. As often as wanted.
 */
void domxml_init(void);

/*
 * All of *ret_info but the uuid; memtune is that of this description. To be cleared with
 * hv_info_clear(). -EBADMSG: no XML, no domain, or without name or memory; -E2BIG: too long;
 * -ENOMEM. All of it is read, or nothing.
 */
int domxml_parse(const char *xml, struct hv_info *ret_info);

/*
 * The ceiling, in bytes, that the metadata element says (with or without its namespace: libvirt
 * strips it). -EBADMSG, -E2BIG, -ENOMEM.
 */
int domxml_parse_ceiling(const char *xml, uint64_t *ret_bytes);

/* What a port of that name needs: whether it is there, and whether one could be added. */
struct domxml_port {
	bool port, controller;
};

/* -EBADMSG, -E2BIG, -ENOMEM. */
int domxml_port(const char *xml, const char *name, struct domxml_port *ret_port);

/* Longest name of a disk ("vda"), with the terminating 0, and how many there may be. */
#define DOMXML_DISK  16
#define DOMXML_DISKS 64

/* The names of its disks. -E2BIG also: more, or longer ones; -EBADMSG, -ENOMEM. */
int domxml_disks(const char *xml, char (*ret_names)[DOMXML_DISK], size_t *ret_nr);

/*
 * ballast's own element after a change. element: as it is, with or without its namespace; NULL, or
 * one that cannot be read: none. Attributes that the change does not name stay, known or not.
 * *ret_element is the caller's; NULL: nothing is said any more, and it can go. -EINVAL: min would
 * be over max; -ENOMEM.
 */
int domxml_change(const char *element, const struct hv_knobs_change *change, char **ret_element);

#endif
