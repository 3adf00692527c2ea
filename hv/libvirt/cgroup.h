/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cgroup: whether a process is throttled by the memory controller of the cgroup that it is in.
 *
 * cgroup v2 throttles by memory.high, in the process's own cgroup or any above it: the smallest
 * counts. v1 has memory.soft_limit_in_bytes in that place, which is what libvirt's soft limit was.
 * Takes paths, so that tests feed fixtures. Any thread; never blocks but for files.
 */
#ifndef BALLAST_HV_LIBVIRT_CGROUP_H
#define BALLAST_HV_LIBVIRT_CGROUP_H

#include <stdint.h>

/* Levels that are looked at; libvirt makes five. */
#define CGROUP_DEPTH_MAX 32

struct cgroup_throttle {
	uint64_t high;	 /* bytes; 0: none */
	uint64_t events; /* how often it was run into, of the cgroup with that limit; v1: 0 */
};

/*
 * membership: the text of /proc/PID/cgroup. root: "/sys/fs/cgroup". What cannot be read throttles
 * nobody.
 */
void cgroup_read_throttle(
	const char *root, const char *membership, struct cgroup_throttle *ret_throttle);

#endif
