/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * linux: how the kernel ages pages. With MGLRU on, memory.stat still tells active and inactive, by
 * which of four generations a page is in, and new file pages count as either. The sizes of the
 * generations are in debugfs, where that is mounted and may be read.
 */
#include <config.h>

#include "guest-agent/linux_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the file, so much is read: some 4,000 groups. */
#define FILE_MOST (UINT64_C(1) << 20)
/* The two youngest are in use: the kernel itself takes neither. */
#define YOUNG 2

static bool readable(const struct linux_platform *p)
{
	char path[LINUX_PATH];

	return linux_join(path, p->sys, "kernel/debug/lru_gen") && access(path, R_OK) == 0;
}

/* It may be switched while the agent runs: what it can do is told anew. */
enum agent_aging linux_aging(struct linux_platform *p)
{
	enum agent_aging aging = AGENT_LISTS;

	if (linux_read(p, p->sys, "kernel/mm/lru_gen/enabled") == 0 &&
		strtoul(p->file, NULL, 0) != 0)
		aging = readable(p) ? AGENT_GENERATIONS : AGENT_PROBES;
	p->table.can &=
		~(uint64_t)(PROTOCOL_CAN_LISTS | PROTOCOL_CAN_GENERATIONS | PROTOCOL_CAN_PROBES);
	if (aging == AGENT_GENERATIONS)
		p->table.can |= PROTOCOL_CAN_GENERATIONS;
	else if (aging == AGENT_PROBES)
		p->table.can |= PROTOCOL_CAN_PROBES;
	else if (p->has_lists)
		p->table.can |= PROTOCOL_CAN_LISTS;
	return aging;
}

/* ---- sizes ---- */

struct generation {
	uint64_t anon, file;
};

/* A group, a node of its memory, its generations, oldest first: a line each. */
struct sizes {
	const struct linux_platform *p;
	struct agent_group *groups, *group; /* NULL: of none that was read */
	size_t nr;
	struct generation young[YOUNG]; /* the newest lines of this node */
	unsigned int nr_young;
};

/* "memcg ID PATH" */
static struct agent_group *group_of(const struct sizes *s, const char *line)
{
	const char *path = strchr(line, '/'), *own;

	for (size_t i = 0; path && i < s->nr; i++) {
		own = s->p->groups[i].path + strlen(s->p->cgroup);
		if (!strcmp(*own ? own : "/", path))
			return &s->groups[i];
	}
	return NULL;
}

/* "SEQUENCE AGE ANON FILE", pages. A generation is old once two younger ones are seen. */
static void take_generation(struct sizes *s, const char *line)
{
	struct generation *oldest = &s->young[s->nr_young % YOUNG];
	uint64_t v[4];
	char *end;

	for (size_t i = 0; i < 4; i++) {
		v[i] = strtoull(line, &end, 10);
		if (end == line || v[i] > PROTOCOL_NUMBER_MAX / s->p->page)
			return;
		line = end;
	}
	if (s->nr_young >= YOUNG) {
		s->group->old_anon = linux_sum(s->group->old_anon, oldest->anon * s->p->page);
		s->group->old_file = linux_sum(s->group->old_file, oldest->file * s->p->page);
	}
	*oldest = (struct generation){ .anon = v[2], .file = v[3] };
	s->nr_young++;
}

static void take_line(struct sizes *s, char *line)
{
	line += strspn(line, " \t");
	if (!strncmp(line, "memcg", strlen("memcg"))) {
		s->group = group_of(s, line);
		s->nr_young = 0;
	} else if (!strncmp(line, "node", strlen("node"))) {
		s->nr_young = 0;
	} else if (s->group) {
		take_generation(s, line);
	}
}

/* Whole lines; returns the bytes of the one that is not. */
static size_t take_lines(struct sizes *s, char *text)
{
	char *line = text, *end;

	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		take_line(s, line);
	}
	memmove(text, line, strlen(line) + 1);
	return strlen(text);
}

void linux_generations(struct linux_platform *p, struct agent_group *groups, size_t nr)
{
	struct sizes s = { .p = p, .groups = groups, .nr = nr };
	size_t kept = 0;
	uint64_t all = 0;
	char path[LINUX_PATH];
	ssize_t n;
	int fd;

	if (!linux_join(path, p->sys, "kernel/debug/lru_gen"))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (all < FILE_MOST && kept < LINUX_FILE &&
		(n = read(fd, p->file + kept, LINUX_FILE - kept)) > 0) {
		all += (size_t)n;
		p->file[kept + (size_t)n] = '\0';
		kept = take_lines(&s, p->file);
	}
	close(fd);
}
