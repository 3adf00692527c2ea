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
		return linux_stolen(p->file, p->page);
	}
	return linux_read(p, path, "memory.stat") == 0 ? linux_pages(p->file, "pgsteal", p->page)
						       : 0;
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

/* What is not so the next time, or is so because the group goes. */
static int lasting(int error)
{
	if (error == -EINTR || error == -ENOMEM || error == -EBUSY)
		return -EAGAIN;
	return error == -ENODEV ? -ENOENT : error;
}

/*
 * A batch is of one kind. Without swappiness an anonymous one is what the kernel makes of it:
 * nothing there keeps file pages.
 */
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
	snprintf(text, sizeof(text), "%" PRIu64 "%s%s", bytes, p->swappiness ? " swappiness=" : "",
		!p->swappiness ? ""
		: anon	       ? "200"
			       : "0");
	if (!anon && !p->swappiness && has_swap(p))
		r = reclaim_file_only(p, path, text);
	else
		r = linux_write(path, "memory.reclaim", text);
	after = stolen(p, path);
	*ret_came = after > before ? after - before : 0;
	return lasting(r);
}
