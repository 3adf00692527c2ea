/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* linux: freeing memory of a group, by its own memory.reclaim and never by one above it. */
#include <config.h>

#include "guest-agent/linux_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Pages that the kernel has freed of the group (of all, for the root) since its start. */
static uint64_t stolen(struct linux_platform *p, const char *path)
{
	if (!strcmp(path, p->cgroup)) {
		if (linux_read(p, p->proc, "vmstat") < 0)
			return 0;
		return linux_stolen(p->file);
	}
	return linux_read(p, path, "memory.stat") == 0 ? linux_pages(p->file, "pgsteal") : 0;
}

/* Without swappiness, which this kernel does not take, no swap keeps anonymous pages. */
static int reclaim_file_only(struct linux_platform *p, const char *path, const char *bytes)
{
	char used[LINUX_VALUE];
	int r = linux_read(p, path, "memory.swap.current");

	if (r < 0 || strlen(linux_line(p)) >= sizeof(used))
		return -EOPNOTSUPP;
	strcpy(used, p->file);
	r = linux_keep(p, "memory.swap.max", path, used);
	if (r < 0)
		return r;
	r = linux_write(path, "memory.reclaim", bytes);
	linux_put_back(p, "memory.swap.max", path);
	return r;
}

static bool has_swap(struct linux_platform *p)
{
	return linux_read(p, p->proc, "meminfo") == 0 && linux_kib(p->file, "SwapFree") > 0;
}

int linux_reclaim(
	void *ctx, const struct agent_group *group, uint64_t bytes, bool anon, uint64_t *ret_came)
{
	struct linux_platform *p = ctx;
	const char *path = linux_path_of(p, group->id);
	char text[64];
	uint64_t before, after;
	int r;

	*ret_came = 0;
	if (!path)
		return -ENOENT;
	before = stolen(p, path);
	snprintf(text, sizeof(text), "%" PRIu64 "%s", bytes,
		!anon && p->swappiness ? " swappiness=0" : "");
	if (!anon && !p->swappiness && has_swap(p))
		r = reclaim_file_only(p, path, text);
	else
		r = linux_write(path, "memory.reclaim", text);
	if (r == -EINVAL && p->swappiness) {
		p->swappiness = false;
		return linux_reclaim(ctx, group, bytes, anon, ret_came);
	}
	after = stolen(p, path);
	*ret_came = after > before ? after - before : 0;
	return r;
}
