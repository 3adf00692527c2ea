/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See store.h. */
#include <config.h>

#include "hv/xen/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/negative.h"

int store_open(struct store *store, const struct xen_calls *calls)
{
	store->calls = calls;
	store->xs = calls->xs_open(0);
	return store->xs ? 0 : -ENOTCONN;
}

void store_close(struct store *store)
{
	if (store->xs)
		store->calls->xs_close(store->xs);
	store->xs = NULL;
}

/* libxenstore closes its descriptor when the other side is gone, and uses it all the same. */
bool store_lost(int error)
{
	return error == -EPIPE || error == -EBADF || error == -ECONNRESET || error == -ENOTCONN ||
	       error == -EIO;
}

/* Of the call that just failed. */
static int failure(void)
{
	return errno ? negative(errno) : -EIO;
}

int store_read(struct store *store, xs_transaction_t t, const char *path, char **ret_text)
{
	unsigned int length = 0;
	char *text;

	errno = 0;
	text = store->calls->xs_read(store->xs, t, path, &length);
	if (!text)
		return failure();
	/* Terminated by libxenstore. */
	if (length > STORE_VALUE_MAX || strlen(text) != length) {
		free(text);
		return -EBADMSG;
	}
	*ret_text = text;
	return 0;
}

int store_read_number(
	struct store *store, xs_transaction_t t, const char *path, uint64_t *ret_number)
{
	uint64_t number = 0;
	char *text = NULL;
	int r;

	r = store_read(store, t, path, &text);
	if (r < 0)
		return r;
	r = *text ? 0 : -EBADMSG;
	for (const char *c = text; *c && r == 0; c++)
		if (*c < '0' || *c > '9' || __builtin_mul_overflow(number, 10, &number) ||
			__builtin_add_overflow(number, (uint64_t)(*c - '0'), &number))
			r = -EBADMSG;
	free(text);
	if (r == 0)
		*ret_number = number;
	return r;
}

int store_write(struct store *store, xs_transaction_t t, const char *path, const char *text)
{
	errno = 0;
	return store->calls->xs_write(store->xs, t, path, text, (unsigned int)strlen(text))
		       ? 0
		       : failure();
}

int store_write_number(struct store *store, xs_transaction_t t, const char *path, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	return store_write(store, t, path, text);
}

int store_permit(
	struct store *store, xs_transaction_t t, const char *path, uint32_t domid, bool write)
{
	struct xs_permissions permissions[] = {
		{ .id = 0, .perms = XS_PERM_NONE }, /* its owner, and what all others may */
		{ .id = domid, .perms = write ? XS_PERM_READ | XS_PERM_WRITE : XS_PERM_READ },
	};

	errno = 0;
	return store->calls->xs_set_permissions(store->xs, t, path, permissions, 2) ? 0 : failure();
}

int store_remove(struct store *store, xs_transaction_t t, const char *path)
{
	int r;

	errno = 0;
	r = store->calls->xs_rm(store->xs, t, path) ? 0 : failure();
	return r == -ENOENT ? 0 : r;
}

int store_transact(struct store *store, store_work_fn *work, void *ctx)
{
	for (unsigned int i = 0; i < STORE_TRIES; i++) {
		xs_transaction_t t;
		int r;

		errno = 0;
		t = store->calls->xs_transaction_start(store->xs);
		if (t == XBT_NULL)
			return failure();
		r = work(store, t, ctx);
		errno = 0;
		if (store->calls->xs_transaction_end(store->xs, t, r < 0))
			return r;
		if (r < 0)
			return r;
		r = failure();
		if (r != -EAGAIN)
			return r;
	}
	return -EBUSY;
}

void store_domain_path(char *path, uint32_t domid, const char *key)
{
	snprintf(path, STORE_PATH, "/local/domain/%" PRIu32 "/%s", domid, key);
}

void store_own_path(char *path, const struct hv_uuid *uuid, const char *key)
{
	char text[HV_UUID_TEXT];

	hv_uuid_format(uuid, text);
	if (key)
		snprintf(path, STORE_PATH, STORE_ROOT "/%s/%s", text, key);
	else
		snprintf(path, STORE_PATH, STORE_ROOT "/%s", text);
}
