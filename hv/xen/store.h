/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * store: xenstore as this backend uses it: texts, errnos instead of flags, transactions that are
 * tried again a bounded number of times. A handle belongs to one thread. Calls block on xenstored.
 *
 * What ballast keeps there, all below STORE_ROOT/UUID, which only dom0 may read or write:
 *   soft-limit min low max group manage guest-swap agent   the operator's knobs, as in metadata
 *   domid       whose the following are; of another domain they do not count
 *   ceiling     KiB, recorded before the first target
 *   slack       KiB that max_pages has over the target
 *   period      statistics are switched on: its driver is looked for
 *   driver      it was seen
 *   goal        KiB, while memory/target stands a page beside what is meant
 *
 * And in the path of each other domain the keys in which its agent is spoken with: see agents.c.
 */
#ifndef BALLAST_HV_XEN_STORE_H
#define BALLAST_HV_XEN_STORE_H

#include "hv/hv.h"
#include "hv/xen/calls.h"

#define STORE_ROOT "/local/domain/0/ballast"
/* The longest path that is made here. */
#define STORE_PATH 192
/* xenstored takes values of up to 2 KiB from guests; longer ones are nobody's that is read. */
#define STORE_VALUE_MAX 4096
/* Each is refused only where somebody else wrote the same keys at the same moment. */
#define STORE_TRIES 16

struct store {
	const struct xen_calls *calls;
	struct xs_handle *xs; /* NULL: not connected */
};

/* -ENOTCONN. */
int store_open(struct store *store, const struct xen_calls *calls);
void store_close(struct store *store);
/* Whether the error says that xenstored is gone. */
bool store_lost(int error);

/* *ret_text is the caller's. -ENOENT: there is none; -EBADMSG: none that is a text, or too long. */
int store_read(struct store *store, xs_transaction_t t, const char *path, char **ret_text);
/* A decimal number and nothing else. -EBADMSG. */
int store_read_number(
	struct store *store, xs_transaction_t t, const char *path, uint64_t *ret_number);
int store_write(struct store *store, xs_transaction_t t, const char *path, const char *text);
int store_write_number(struct store *store, xs_transaction_t t, const char *path, uint64_t number);
/* What dom0 has made, and the domain may read, or write too. */
int store_permit(
	struct store *store, xs_transaction_t t, const char *path, uint32_t domid, bool write);
/* What is not there is no error. */
int store_remove(struct store *store, xs_transaction_t t, const char *path);

/*
 * Runs work in a transaction: what it wrote is written whole where it returned 0, else nothing is.
 * It runs again where others were faster. -EBUSY: they were so STORE_TRIES times.
 */
typedef int store_work_fn(struct store *store, xs_transaction_t t, void *ctx);
int store_transact(struct store *store, store_work_fn *work, void *ctx);

/* "/local/domain/7/memory/target" */
void store_domain_path(char *path, uint32_t domid, const char *key);
/* STORE_ROOT "/UUID/key"; key NULL: the folder. */
void store_own_path(char *path, const struct hv_uuid *uuid, const char *key);

#endif
