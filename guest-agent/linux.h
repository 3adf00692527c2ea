/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * linux: the agent's platform on Linux: /proc and the cgroup v2 tree.
 *
 * What a kernel or its configuration lacks is found at start and left out of `can`: without
 * memory.reclaim nothing is reclaimed, without PSI no pressure is told, without a cgroup2 tree, or
 * with no group in it, the guest is one group. Reads whole files into one buffer of its own; no
 * allocation. One thread, one at a time in a process.
 */
#ifndef BALLAST_GUEST_AGENT_LINUX_H
#define BALLAST_GUEST_AGENT_LINUX_H

#include "guest-agent/agent.h"

#define LINUX_PATH    512 /* longer ones are left alone */
#define LINUX_DEPTH   12
#define LINUX_FILE    16384 /* of a file, so much is read */
#define LINUX_FOLDERS 4096  /* groups that are looked at in a round */

struct linux_group {
	uint64_t id;
	char path[LINUX_PATH]; /* of its folder */
};

struct linux_platform {
	struct agent_platform table;
	char proc[LINUX_PATH], cgroup[LINUX_PATH];
	char lows[LINUX_PATH]; /* the note of protections, for the next start; "": none is kept */
	char software[PROTOCOL_TEXT];
	bool swappiness; /* memory.reclaim takes it */
	size_t nr_groups;
	struct linux_group groups[AGENT_GROUPS];
	struct linux_low {
		uint64_t id; /* 0: free */
		char path[LINUX_PATH];
		char before[32];
	} protected[AGENT_GROUPS];
	int (*send)(void *ctx, const char *text, size_t length);
	void *send_ctx;
	char file[LINUX_FILE + 1];
};

/*
 * proc "/proc", cgroup "/sys/fs/cgroup" or NULL: where it is mounted, lows a file. Puts back what
 * an agent that was killed left protected. -ENAMETOOLONG; -ENOENT: no meminfo.
 */
int linux_start(
	struct linux_platform *platform, const char *proc, const char *cgroup, const char *lows);

#endif
