/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The error of a library call that failed, as ballast's own functions return it. Callers take
 * anything from 0 up for success; this is below 0 whatever the library left. Any thread.
 */
#pragma once

#include <errno.h>

/* error: errno, or what the call returned in its place. */
static inline int negative(int error)
{
	int r = -error;

	return r < 0 ? r : -EIO;
}
