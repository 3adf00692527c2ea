/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pool: readers for the host's memory and its pressure. They read files whose path is given, so
 * that fixtures can stand in; they are called by backends, never decide, and never block on
 * regular files.
 */
#ifndef BALLAST_HV_POOL_H
#define BALLAST_HV_POOL_H

#include "hv/hv.h"

/*
 * PROC/meminfo, by name, in any order: total is MemTotal less HugePages_Total x Hugepagesize,
 * available is MemAvailable. -ENOENT and other errnos of open and read; -EBADMSG: a line that is
 * needed is missing, garbled or absurd (total 0, available over total).
 */
int pool_read_meminfo(const char *path, struct hv_host *ret_host);

/*
 * What ZFS's cache has above its minimum, of PROC/spl/kstat/zfs/arcstats ("size" less "c_min"):
 * MemAvailable leaves it out, and it shrinks on demand. 0 where there is no such file, or it makes
 * no sense. Never more than what total leaves above available, which is added to.
 */
void pool_add_arc(const char *path, struct hv_host *host);

/*
 * Opens a PSI file with a trigger "some STALL_US WINDOW_US"; the descriptor has POLLPRI when it
 * fires. -EOPNOTSUPP, -ENOENT...: this kernel has none: say so once and go on without.
 */
int pool_open_psi(const char *path, uint64_t stall_us, uint64_t window_us, int *ret_fd);

#endif
