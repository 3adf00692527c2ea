/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cgroup: whether a VM is throttled by the memory controller of its own cgroup.
 *
 * cgroup v2 throttles by memory.high, which is what memtune's soft limit becomes there: the least
 * from the process's cgroup up to the scope that libvirt made for the VM counts. What stands above
 * the scope limits others too and is nobody's memtune. v1's memory.soft_limit_in_bytes is not
 * looked at: it holds nobody back.
 *
 * Takes paths, so that tests feed fixtures. Any thread; never blocks but for files.
 */
#ifndef BALLAST_HV_LIBVIRT_CGROUP_H
#define BALLAST_HV_LIBVIRT_CGROUP_H

#include <stdint.h>

/* Levels that are looked at; libvirt makes five. */
#define CGROUP_DEPTH_MAX 32

struct cgroup_throttle {
	uint64_t high;	 /* bytes; 0: none */
	uint64_t events; /* how often it was run into, of the cgroup with that limit */
};

/*
 * membership: the text of /proc/PID/cgroup. root: "/sys/fs/cgroup". What cannot be read throttles
 * nobody.
 */
void cgroup_read_throttle(
	const char *root, const char *membership, struct cgroup_throttle *ret_throttle);

#endif
