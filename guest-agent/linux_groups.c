/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* linux: the groups of the cgroup v2 tree that have no others below them; see linux.h. */
#include <config.h>

#include "guest-agent/linux_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What memory.stat says, bytes; of the workingset counters pages. */
static int read_group(struct linux_platform *p, int folder, struct agent_group *g)
{
	int r = linux_read_at(p, folder, "memory.stat");

	if (r < 0)
		return r;
	g->active_anon = linux_number(p->file, "active_anon");
	g->inactive_anon = linux_number(p->file, "inactive_anon");
	g->active_file = linux_number(p->file, "active_file");
	g->inactive_file = linux_number(p->file, "inactive_file");
	g->refaults = linux_refaults(p->file, p->page);
	g->restores = linux_restores(p->file, p->page);
	g->current = g->active_anon + g->inactive_anon + g->active_file + g->inactive_file;
	if (linux_read_at(p, folder, "memory.pressure") == 0)
		g->psi_some_us = linux_stall(p->file, "some");
	g->dying = linux_read_at(p, folder, "cgroup.events") == 0 && strstr(p->file, "populated 0");
	return 0;
}

struct walk {
	struct linux_platform *p;
	struct agent_group *groups;
	size_t nr, max;
	unsigned int folders;
};

/*
 * A leaf; where there are too many the smallest goes. False: it has no figures of its own; what has
 * them, and cannot be read now, is passed over.
 */
static bool add_leaf(struct walk *w, int folder, const char *path, uint64_t id)
{
	struct agent_group g = { .id = id };
	size_t at = w->nr;
	int r = read_group(w->p, folder, &g);

	if (r < 0)
		return r != -ENOENT;
	protocol_text(g.name, path + strlen(w->p->cgroup) + 1);
	if (at == w->max) {
		at = 0;
		for (size_t i = 1; i < w->nr; i++)
			if (w->groups[i].current < w->groups[at].current)
				at = i;
		if (w->groups[at].current >= g.current)
			return true;
	} else {
		w->nr++;
	}
	w->groups[at] = g;
	w->p->groups[at].id = g.id;
	memcpy(w->p->groups[at].path, path, strlen(path) + 1);
	return true;
}

/* Links of a folder without others in it; those in it have one each to the one above. */
#define NO_FOLDERS 2

/* Behind a group's path: the longest name of its files that is written or read by its whole path.
 */
#define FILE_NAME sizeof("/memory.swap.current")

struct entry {
	uint64_t ino;
	int64_t off;
	unsigned short length;
	unsigned char type;
	char name[];
};

static bool walk_folder(
	struct walk *w, int above, const char *name, char *path, unsigned int depth);

/* As walk_folder(). One that is not looked at is there all the same. */
static bool walk_entry(struct walk *w, int folder, const char *name, char *path, unsigned int depth)
{
	size_t length = strlen(path);
	bool found;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	if (name[0] == '.' || length + strlen(name) + 1 + FILE_NAME > LINUX_PATH)
		return true;
	path[length] = '/';
	memcpy(path + length + 1, name, strlen(name) + 1);
	found = walk_folder(w, folder, name, path, depth + 1);
	path[length] = '\0';
	return found;
}

/* 1: a group that counts is below it; 0: none; -1: that cannot be seen. */
static int walk_below(struct walk *w, int folder, char *path, unsigned int depth)
{
	_Alignas(struct entry) char buffer[2048];
	int inner = 0;
	long n;

	while ((n = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *e = (const void *)(buffer + at);

			at += e->length;
			if (e->type == DT_DIR && walk_entry(w, folder, e->name, path, depth))
				inner = 1;
		}
	}
	return n < 0 ? -1 : inner;
}

/*
 * name is in the open folder above; path, of LINUX_PATH bytes, is its whole one, and is as it was
 * afterwards. Bounded in depth and number. False: neither it nor one below has a memory controller,
 * and what is in it counts for the one above. Where that cannot be seen it has: who may have
 * another below it is never taken for a leaf.
 */
static bool walk_folder(struct walk *w, int above, const char *name, char *path, unsigned int depth)
{
	struct stat st;
	int fd, inner = 0;

	if (depth > LINUX_DEPTH || w->folders++ >= LINUX_FOLDERS)
		return true;
	fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT;
	if (fstat(fd, &st) < 0)
		inner = -1;
	else if (st.st_nlink != NO_FOLDERS)
		inner = walk_below(w, fd, path, depth);
	if (inner == 0)
		inner = depth > 0 && add_leaf(w, fd, path, st.st_ino);
	close(fd);
	return inner != 0;
}

/* A guest whose tasks are in no group is one: the root can be reclaimed as well. */
static void add_root(struct walk *w)
{
	struct agent_guest all;
	bool told;

	if (linux_guest(w->p, &all) < 0)
		return;
	told = linux_read(w->p, w->p->proc, "vmstat") == 0;
	linux_whole_guest(&all, told ? linux_restores(w->p->file, w->p->page) : 0, &w->groups[0]);
	w->p->groups[0].id = w->groups[0].id;
	memcpy(w->p->groups[0].path, w->p->cgroup, strlen(w->p->cgroup) + 1);
	w->nr = 1;
}

size_t linux_groups(void *ctx, struct agent_group *ret_groups, size_t nr)
{
	struct linux_platform *p = ctx;
	struct walk w = {
		.p = p, .groups = ret_groups, .max = nr < AGENT_GROUPS ? nr : AGENT_GROUPS
	};
	char path[LINUX_PATH];

	memcpy(path, p->cgroup, sizeof(path));
	if (!*path || !walk_folder(&w, AT_FDCWD, p->cgroup, path, 0))
		add_root(&w);
	p->nr_groups = w.nr;
	if (linux_aging(p) == AGENT_GENERATIONS)
		linux_generations(p, ret_groups, w.nr);
	return w.nr;
}

const char *linux_path_of(const struct linux_platform *p, uint64_t id)
{
	for (size_t i = 0; i < p->nr_groups; i++)
		if (p->groups[i].id == id)
			return p->groups[i].path;
	return NULL;
}
