/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* linux: see linux.h. */
#include <config.h>

#include "guest-agent/linux.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "guest-agent/linux_text.h"

/* ---- files ---- */

static bool join(char *to, const char *folder, const char *name)
{
	int length = snprintf(to, LINUX_PATH, "%s/%s", folder, name);

	return length > 0 && length < LINUX_PATH;
}

/* Into p->file, terminated. */
static int read_file(struct linux_platform *p, const char *folder, const char *name)
{
	char path[LINUX_PATH];
	size_t length = 0;
	ssize_t n = 1;
	int fd;

	p->file[0] = '\0';
	if (!join(path, folder, name))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n > 0 && length < LINUX_FILE) {
		n = read(fd, p->file + length, LINUX_FILE - length);
		length += n > 0 ? (size_t)n : 0;
	}
	p->file[length] = '\0';
	close(fd);
	return n < 0 ? -EIO : 0;
}

static int write_file(const char *folder, const char *name, const char *text)
{
	char path[LINUX_PATH];
	ssize_t n;
	int fd, r = 0;

	if (!join(path, folder, name))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	if (n < 0)
		r = -errno;
	close(fd);
	return r;
}

/* ---- the guest ---- */

static uint64_t now(void *ctx)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static int guest(void *ctx, struct agent_guest *ret_guest)
{
	struct linux_platform *p = ctx;
	struct agent_guest g = { 0 };
	int r = read_file(p, p->proc, "meminfo");

	if (r < 0)
		return r;
	r = linux_take_meminfo(p->file, &g);
	if (r < 0)
		return r;
	if (read_file(p, p->proc, "vmstat") == 0)
		linux_take_vmstat(p->file, &g);
	if (read_file(p, p->proc, "pressure/memory") == 0)
		linux_take_pressure(p->file, &g);
	*ret_guest = g;
	return 0;
}

/* ---- groups ---- */

/* What memory.stat says, bytes; of the workingset counters pages. False: no such file. */
static bool read_group(struct linux_platform *p, const char *path, struct agent_group *g)
{
	if (read_file(p, path, "memory.stat") < 0)
		return false;
	g->active_anon = linux_number(p->file, "active_anon");
	g->inactive_anon = linux_number(p->file, "inactive_anon");
	g->active_file = linux_number(p->file, "active_file");
	g->inactive_file = linux_number(p->file, "inactive_file");
	g->refaults = linux_pages(p->file, "workingset_refault_file") +
		      linux_pages(p->file, "workingset_refault_anon");
	g->restores = linux_restores(p->file);
	g->current = g->active_anon + g->inactive_anon + g->active_file + g->inactive_file;
	if (read_file(p, path, "memory.pressure") == 0)
		g->psi_some_us = linux_stall(p->file, "some");
	g->dying = read_file(p, path, "cgroup.events") == 0 && strstr(p->file, "populated 0");
	return true;
}

struct walk {
	struct linux_platform *p;
	struct agent_group *groups;
	size_t nr, max;
	unsigned int folders;
};

/* A leaf; where there are too many the smallest goes. */
static void add_leaf(struct walk *w, const char *path, const char *name)
{
	struct agent_group g = { 0 };
	size_t at = w->nr;
	struct stat st;

	if (stat(path, &st) < 0 || !read_group(w->p, path, &g))
		return;
	g.id = st.st_ino;
	protocol_text(g.name, name);
	if (at == w->max) {
		at = 0;
		for (size_t i = 1; i < w->nr; i++)
			if (w->groups[i].current < w->groups[at].current)
				at = i;
		if (w->groups[at].current >= g.current)
			return;
	} else {
		w->nr++;
	}
	w->groups[at] = g;
	w->p->groups[at].id = g.id;
	memcpy(w->p->groups[at].path, path, strlen(path) + 1);
}

struct entry {
	uint64_t ino;
	int64_t off;
	unsigned short length;
	unsigned char type;
	char name[];
};

/* path has LINUX_PATH bytes and is as it was afterwards. Bounded in depth and number. */
static bool walk_folder(struct walk *w, char *path, unsigned int depth)
{
	_Alignas(struct entry) char buffer[2048];
	size_t length = strlen(path);
	bool inner = false;
	long n;
	int fd;

	if (depth > LINUX_DEPTH || w->folders++ >= LINUX_FOLDERS)
		return true;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while ((n = syscall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *e = (const void *)(buffer + at);
			size_t name = strlen(e->name);

			at += e->length;
			if (e->type != DT_DIR || e->name[0] == '.' ||
				length + name + 2 > LINUX_PATH)
				continue;
			path[length] = '/';
			memcpy(path + length + 1, e->name, name + 1);
			if (walk_folder(w, path, depth + 1))
				inner = true;
			path[length] = '\0';
		}
	}
	close(fd);
	if (!inner && depth > 0)
		add_leaf(w, path, path + strlen(w->p->cgroup) + 1);
	/* One without a memory controller of its own counts for none above it. */
	if (!inner && depth > 0)
		return access(path, R_OK) == 0;
	return true;
}

/* A guest whose tasks are in no group is one: the root can be reclaimed as well. */
static void add_root(struct walk *w)
{
	struct agent_group g;
	struct agent_guest all;
	bool told;

	if (guest(w->p, &all) < 0)
		return;
	told = read_file(w->p, w->p->proc, "vmstat") == 0;
	linux_whole_guest(&all, told ? linux_restores(w->p->file) : 0, &g);
	w->groups[0] = g;
	w->p->groups[0].id = g.id;
	memcpy(w->p->groups[0].path, w->p->cgroup, strlen(w->p->cgroup) + 1);
	w->nr = 1;
}

static size_t groups(void *ctx, struct agent_group *ret_groups, size_t nr)
{
	struct linux_platform *p = ctx;
	struct walk w = {
		.p = p, .groups = ret_groups, .max = nr < AGENT_GROUPS ? nr : AGENT_GROUPS
	};
	char path[LINUX_PATH];

	memcpy(path, p->cgroup, sizeof(path));
	if (*path)
		walk_folder(&w, path, 0);
	if (w.nr == 0)
		add_root(&w);
	p->nr_groups = w.nr;
	return w.nr;
}

static const char *path_of(const struct linux_platform *p, uint64_t id)
{
	for (size_t i = 0; i < p->nr_groups; i++)
		if (p->groups[i].id == id)
			return p->groups[i].path;
	return NULL;
}

/* ---- reclaim ---- */

/* Pages that the kernel has freed of the group (of all, for the root) since its start. */
static uint64_t stolen(struct linux_platform *p, const char *path)
{
	if (!strcmp(path, p->cgroup)) {
		if (read_file(p, p->proc, "vmstat") < 0)
			return 0;
		return linux_stolen(p->file);
	}
	return read_file(p, path, "memory.stat") == 0 ? linux_pages(p->file, "pgsteal") : 0;
}

/* Without swappiness, which this kernel does not take, no swap keeps anonymous pages. */
static int reclaim_file_only(struct linux_platform *p, const char *path, const char *bytes)
{
	char before[32] = "", used[32] = "";
	int r;

	if (read_file(p, path, "memory.swap.max") == 0 && strlen(p->file) < sizeof(before)) {
		memcpy(before, p->file, strlen(p->file) + 1);
		if (read_file(p, path, "memory.swap.current") == 0 &&
			strlen(p->file) < sizeof(used))
			memcpy(used, p->file, strlen(p->file) + 1);
	}
	if (!*before || !*used)
		return -EOPNOTSUPP;
	r = write_file(path, "memory.swap.max", used);
	if (r < 0)
		return r;
	r = write_file(path, "memory.reclaim", bytes);
	write_file(path, "memory.swap.max", before);
	return r;
}

static bool has_swap(struct linux_platform *p)
{
	return read_file(p, p->proc, "meminfo") == 0 && linux_kib(p->file, "SwapFree") > 0;
}

static int reclaim(
	void *ctx, const struct agent_group *group, uint64_t bytes, bool anon, uint64_t *ret_came)
{
	struct linux_platform *p = ctx;
	const char *path = path_of(p, group->id);
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
		r = write_file(path, "memory.reclaim", text);
	if (r == -EINVAL && p->swappiness) {
		p->swappiness = false;
		return reclaim(ctx, group, bytes, anon, ret_came);
	}
	after = stolen(p, path);
	*ret_came = after > before ? after - before : 0;
	return r;
}

/* ---- protection ---- */

/* All of them, so that whoever starts next can put them back. */
static void note_lows(struct linux_platform *p)
{
	char line[LINUX_PATH + 64];
	bool any = false;
	int fd;

	if (!p->lows[0])
		return;
	fd = open(p->lows, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	for (size_t i = 0; fd >= 0 && i < AGENT_GROUPS; i++) {
		if (!p->protected[i].id)
			continue;
		any = true;
		snprintf(line, sizeof(line), "%s %s\n", p->protected[i].before,
			p->protected[i].path);
		if (write(fd, line, strlen(line)) < 0)
			break;
	}
	if (fd >= 0)
		close(fd);
	if (!any)
		unlink(p->lows);
}

static struct linux_low *low_of(struct linux_platform *p, uint64_t id)
{
	for (size_t i = 0; i < AGENT_GROUPS; i++)
		if (p->protected[i].id == id)
			return &p->protected[i];
	return NULL;
}

static int protect(void *ctx, const struct agent_group *group, bool on)
{
	struct linux_platform *p = ctx;
	const char *path = path_of(p, group->id);
	struct linux_low *low = low_of(p, group->id);
	char text[32];
	int r;

	if (!on) {
		if (!low)
			return -ENOENT;
		r = write_file(low->path, "memory.low", low->before);
		low->id = 0;
		note_lows(p);
		return r;
	}
	if (low || !path || !strcmp(path, p->cgroup))
		return low ? 0 : -ENOENT;
	low = low_of(p, 0);
	r = read_file(p, path, "memory.low");
	if (!low || r < 0 || strcspn(p->file, "\n") >= sizeof(low->before))
		return r < 0 ? r : -ENOSPC;
	p->file[strcspn(p->file, "\n")] = '\0';
	/* What its owner protects is left as it is. */
	if (strcmp(p->file, "0"))
		return -EEXIST;
	memcpy(low->before, p->file, strlen(p->file) + 1);
	memcpy(low->path, path, strlen(path) + 1);
	low->id = group->id;
	note_lows(p); /* before it is written: nothing is left behind */
	snprintf(text, sizeof(text), "%" PRIu64, group->current);
	r = write_file(path, "memory.low", text);
	if (r < 0) {
		low->id = 0;
		note_lows(p);
	}
	return r;
}

static void restore_lows(struct linux_platform *p)
{
	size_t root = strlen(p->cgroup);
	char *line, *path, *end;

	if (!p->lows[0] || read_file(p, "", p->lows) < 0)
		return;
	for (line = p->file; *line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		path = strchr(line, ' ');
		if (!path)
			continue;
		*path++ = '\0';
		if (root && !strncmp(path, p->cgroup, root) && !strstr(path, "/.."))
			write_file(path, "memory.low", line);
	}
	unlink(p->lows);
}

/* ---- start ---- */

static int do_send(void *ctx, const char *text, size_t length)
{
	struct linux_platform *p = ctx;

	return p->send ? p->send(p->send_ctx, text, length) : -ENOTCONN;
}

/* The first cgroup2 file system that is mounted. */
static void find_cgroup(struct linux_platform *p)
{
	char *line, *end, *path, *type;

	if (read_file(p, p->proc, "self/mounts") < 0)
		return;
	for (line = p->file; *line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		path = strchr(line, ' ');
		type = path ? strchr(path + 1, ' ') : NULL;
		if (!type || strncmp(type, " cgroup2 ", strlen(" cgroup2 ")))
			continue;
		*type = '\0';
		if (strlen(path + 1) < LINUX_PATH)
			memcpy(p->cgroup, path + 1, strlen(path + 1) + 1);
		return;
	}
}

static bool is_there(const char *folder, const char *name)
{
	char path[LINUX_PATH];

	return join(path, folder, name) && access(path, F_OK) == 0;
}

/* What this kernel has, by what its files show now. */
static uint64_t abilities(struct linux_platform *p)
{
	static struct agent_group all[AGENT_GROUPS];
	size_t nr = groups(p, all, AGENT_GROUPS);
	uint64_t can = 0;

	if (read_file(p, p->proc, "meminfo") == 0 && strstr(p->file, "Inactive(file):"))
		can |= PROTOCOL_CAN_LISTS;
	if (is_there(p->proc, "pressure/memory"))
		can |= PROTOCOL_CAN_PRESSURE;
	if (nr > 0 && strcmp(p->groups[0].path, p->cgroup))
		can |= PROTOCOL_CAN_GROUPS | PROTOCOL_CAN_PROTECT;
	if (nr > 0 && is_there(p->groups[0].path, "memory.reclaim"))
		can |= PROTOCOL_CAN_RECLAIM | PROTOCOL_CAN_ANON;
	return can;
}

int linux_start(struct linux_platform *p, const char *proc, const char *cgroup, const char *lows)
{
	struct utsname name;
	int r;

	memset(p, 0, sizeof(*p));
	if (strlen(proc) >= LINUX_PATH || (cgroup && strlen(cgroup) >= LINUX_PATH) ||
		(lows && strlen(lows) >= LINUX_PATH))
		return -ENAMETOOLONG;
	strcpy(p->proc, proc);
	if (cgroup)
		strcpy(p->cgroup, cgroup);
	else
		find_cgroup(p);
	if (lows)
		strcpy(p->lows, lows);
	r = read_file(p, p->proc, "meminfo");
	if (r < 0)
		return r;
	restore_lows(p);
	if (uname(&name) == 0)
		snprintf(p->software, sizeof(p->software), "ballast-agent %.8s, %.6s %.16s",
			PACKAGE_VERSION, name.sysname, name.release);
	p->swappiness = true;
	p->table = (struct agent_platform){
		.software = p->software,
		.now = now,
		.guest = guest,
		.groups = groups,
		.reclaim = reclaim,
		.protect = protect,
		.send = do_send,
	};
	p->table.can = abilities(p);
	return 0;
}
