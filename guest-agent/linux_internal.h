/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the Linux platform share. For nobody else. */
#ifndef BALLAST_GUEST_AGENT_LINUX_INTERNAL_H
#define BALLAST_GUEST_AGENT_LINUX_INTERNAL_H

#include "guest-agent/linux.h"
#include "guest-agent/linux_text.h"

/* linux.c: files */
/* False: it is too long. */
bool linux_join(char *to, const char *folder, const char *name);
/* Into p->file, terminated. */
int linux_read(struct linux_platform *p, const char *folder, const char *name);
/* A group's file, in its open folder: the kernel hands out each at once. */
int linux_read_at(struct linux_platform *p, int folder, const char *name);
int linux_write(const char *folder, const char *name, const char *text);
/* The first line of p->file, terminated. */
char *linux_line(struct linux_platform *p);
int linux_guest(void *ctx, struct agent_guest *ret_guest);

/* linux_groups.c */
size_t linux_groups(void *ctx, struct agent_group *ret_groups, size_t nr);
/* NULL: it is none of those that were read last. */
const char *linux_path_of(const struct linux_platform *p, uint64_t id);

/* linux_aging.c */
enum agent_aging linux_aging(struct linux_platform *p);
/* Fills in what is old of groups that were read. */
void linux_generations(struct linux_platform *p, struct agent_group *groups, size_t nr);

/* linux_reclaim.c */
int linux_reclaim(
	void *ctx, const struct agent_group *group, uint64_t bytes, bool anon, uint64_t *ret_came);

/* linux_keep.c */
/* Writes into a group's file for the moment; -ENOSPC. */
int linux_keep(struct linux_platform *p, const char *file, const char *path, const char *text);
/* That one as it was; what cannot be is tried again by linux_unprotect(). */
void linux_put_back(struct linux_platform *p, const char *file, const char *path);
int linux_protect(void *ctx, const struct agent_group *group);
/* All as they were; -EIO: not all, and those stay noted. */
int linux_unprotect(void *ctx);
/* What one that was killed left; what cannot be put back is kept, as if it were our own. */
void linux_put_back_noted(struct linux_platform *p);

#endif
