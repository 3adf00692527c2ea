/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * direct: gives VMs back what ballast took, without the daemon: each one's target becomes the
 * ceiling that is recorded with it. VMs without a record were never touched and are left alone.
 *
 * For ballastctl. Blocks until all is done, or nothing has come for patience_us. One thread.
 */
#ifndef BALLAST_TOOLS_DIRECT_H
#define BALLAST_TOOLS_DIRECT_H

#include "hv/hv.h"

struct direct_params {
	const struct hv_backend *backend;
	const char *uri;
	const char *vm; /* name or UUID; NULL: all */
	uint64_t patience_us;
	void (*say)(void *ctx, const char *vm, const char *what); /* what of a VM failed */
	void *ctx;
};

struct direct_result {
	size_t released, untouched, failed;
};

/*
 * -ENOENT: no such VM runs; -EEXIST: several have that name; -ETIMEDOUT: the hypervisor does not
 * answer; other errnos of it. 0 also where some VMs failed: see the result.
 */
int direct_release(const struct direct_params *params, struct direct_result *ret_result);

#endif
