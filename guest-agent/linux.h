/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * linux: the agent's platform on Linux: /proc, /sys and the cgroup v2 tree.
 *
 * What a kernel or its configuration lacks is found at start and left out of `can`: without
 * memory.reclaim, or where nothing keeps anonymous pages from swap, nothing is reclaimed, without
 * PSI no pressure is told, without a cgroup2 tree, or with no group in it, the guest is one group.
 * How pages age is looked at with each reading. Reads whole files into one buffer of its own; no
 * allocation. One thread, one at a time in a process.
 *
 * Of a group only its own memory.reclaim is written, never that of one above. Its memory.low and
 * those above it are other than their owners left them while others are reclaimed, and put back.
 */
#ifndef BALLAST_GUEST_AGENT_LINUX_H
#define BALLAST_GUEST_AGENT_LINUX_H

#include "guest-agent/agent.h"

#define LINUX_PATH    512 /* longer ones are left alone */
#define LINUX_VALUE   32  /* of a file with one number, with the terminating 0 */
#define LINUX_DEPTH   12
#define LINUX_FILE    16384 /* of a file, so much is read */
#define LINUX_FOLDERS 4096  /* groups that are looked at in a round */
#define LINUX_KEPT    128   /* files that are other than they were: groups, and those above them */

struct linux_group {
	uint64_t id;
	char path[LINUX_PATH]; /* of its folder */
};

/* A file of a group's that was written for the moment. */
struct linux_kept {
	const char *file; /* its name; NULL: this one is free */
	char path[LINUX_PATH];
	char before[LINUX_VALUE], wrote[LINUX_VALUE];
	char writes[LINUX_VALUE]; /* what may be there instead of wrote */
	uint64_t added;		  /* memory.low: bytes over before */
};

struct linux_platform {
	struct agent_platform table;
	char proc[LINUX_PATH], sys[LINUX_PATH], cgroup[LINUX_PATH], notes[LINUX_PATH];
	char software[PROTOCOL_TEXT];
	uint64_t page;	     /* bytes, in which the kernel counts */
	bool reclaims;	     /* there is memory.reclaim */
	bool swappiness;     /* which takes that */
	bool limits_swap;    /* there is memory.swap.max, of groups */
	bool has_lists;	     /* meminfo tells them */
	bool balloon_counts; /* as used memory: it deflates on OOM */
	size_t nr_groups;
	struct linux_group groups[AGENT_GROUPS];
	struct linux_kept kept[LINUX_KEPT];
	int (*send)(void *ctx, const char *text, size_t length);
	void *send_ctx;
	char file[LINUX_FILE + 1];
};

struct linux_paths {
	const char *proc, *sys; /* "/proc", "/sys" */
	const char *cgroup;	/* "/sys/fs/cgroup"; NULL: where it is mounted */
	const char *notes;	/* a file, of what is to be put back; NULL: none is kept */
};

/*
 * Puts back what an agent that was killed left. -ENAMETOOLONG; -ENOENT: no meminfo.
 */
int linux_start(struct linux_platform *platform, const struct linux_paths *paths);

#endif
