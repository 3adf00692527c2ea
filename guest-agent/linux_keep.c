/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * linux: files of groups that are other than their owners left them, for the moment: memory.low of
 * who is protected and of all above, memory.swap.max while file pages alone are taken.
 *
 * Each is put back to exactly what it was, unless somebody else wrote it meanwhile. A note has them
 * before they are written, so that whoever starts after a kill puts them back too; what cannot be
 * put back stays in it.
 */
#include <config.h>

#include "guest-agent/linux_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char LOW[] = "memory.low", SWAP[] = "memory.swap.max";

static struct linux_kept *find(struct linux_platform *p, const char *file, const char *path)
{
	for (size_t i = 0; i < LINUX_KEPT; i++)
		if (p->kept[i].file && !strcmp(p->kept[i].file, file) &&
			!strcmp(p->kept[i].path, path))
			return &p->kept[i];
	return NULL;
}

static size_t room(const struct linux_platform *p)
{
	size_t nr = 0;

	for (size_t i = 0; i < LINUX_KEPT; i++)
		nr += !p->kept[i].file;
	return nr;
}

/* ---- the note ---- */

/* Bytes of a line: "FILE BEFORE WROTE PATH". */
#define LINE (LINUX_PATH + 3 * LINUX_VALUE)

static size_t write_line(char *to, const struct linux_kept *k, const char *wrote)
{
	return (size_t)snprintf(to, LINE, "%s %s %s %s\n", k->file, k->before, wrote, k->path);
}

/* Of a file that is being written a second line. False: it was not written whole. */
static bool write_note(struct linux_platform *p, int fd)
{
	size_t length = 0;

	for (size_t i = 0; i < LINUX_KEPT; i++) {
		const struct linux_kept *k = &p->kept[i];

		if (!k->file)
			continue;
		length += write_line(p->file + length, k, k->wrote);
		if (strcmp(k->wrote, k->writes))
			length += write_line(p->file + length, k, k->writes);
		if (length + 2 * LINE <= LINUX_FILE)
			continue;
		if (write(fd, p->file, length) != (ssize_t)length)
			return false;
		length = 0;
	}
	return write(fd, p->file, length) == (ssize_t)length;
}

/* The old one stays until the new one is whole. */
static int note(struct linux_platform *p)
{
	char path[LINUX_PATH + 4];
	bool whole;
	int fd;

	if (!p->notes[0])
		return 0;
	if (room(p) == LINUX_KEPT) {
		unlink(p->notes);
		return 0;
	}
	snprintf(path, sizeof(path), "%s.new", p->notes);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	whole = write_note(p, fd);
	close(fd);
	if (whole && rename(path, p->notes) == 0)
		return 0;
	unlink(path);
	return -EIO;
}

/* True: it is as it was, or somebody else's now, or has gone. */
static bool put_back(struct linux_platform *p, const struct linux_kept *k)
{
	int r = linux_read(p, k->path, k->file);

	if (r == 0 && strcmp(linux_line(p), k->wrote) && strcmp(p->file, k->writes))
		return true;
	if (r == 0)
		r = linux_write(k->path, k->file, k->before);
	return r == 0 || r == -ENOENT || r == -ENODEV;
}

/* False: it is no line of a note's, or of another tree. */
static bool read_line(const struct linux_platform *p, char *line, struct linux_kept *ret_kept)
{
	size_t root = strlen(p->cgroup);
	struct linux_kept k = { 0 };
	char *word[4];
	bool known;

	for (int i = 0; i < 4; i++) {
		word[i] = line;
		line = i < 3 ? strchr(line, ' ') : NULL; /* a path may have blanks */
		if (i < 3 && !line)
			return false;
		if (line)
			*line++ = '\0';
	}
	known = !strcmp(word[0], LOW) || !strcmp(word[0], SWAP);
	if (!known || strlen(word[1]) >= sizeof(k.before) || strlen(word[2]) >= sizeof(k.wrote) ||
		strlen(word[3]) >= sizeof(k.path) || !root || strncmp(word[3], p->cgroup, root) ||
		strstr(word[3], "/.."))
		return false;
	k.file = !strcmp(word[0], LOW) ? LOW : SWAP;
	strcpy(k.before, word[1]);
	strcpy(k.wrote, word[2]);
	strcpy(k.writes, word[2]);
	strcpy(k.path, word[3]);
	*ret_kept = k;
	return true;
}

static struct linux_kept *free_one(struct linux_platform *p)
{
	for (size_t i = 0; i < LINUX_KEPT; i++)
		if (!p->kept[i].file)
			return &p->kept[i];
	return NULL;
}

static void put_back_line(struct linux_platform *p, char *line)
{
	struct linux_kept k, *mine;

	if (!read_line(p, line, &k) || put_back(p, &k))
		return;
	mine = find(p, k.file, k.path);
	if (mine) {
		strcpy(mine->writes, k.wrote);
		return;
	}
	mine = free_one(p);
	if (mine)
		*mine = k;
}

/* A line at a time: the file may be longer than the buffer, in which files are read meanwhile. */
void linux_put_back_noted(struct linux_platform *p)
{
	char line[LINE], *end;
	ssize_t n;
	off_t at = 0;
	int fd;

	if (!p->notes[0])
		return;
	fd = open(p->notes, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	for (int i = 0; i < 2 * LINUX_KEPT; i++) {
		n = pread(fd, line, sizeof(line) - 1, at);
		end = n > 0 ? memchr(line, '\n', (size_t)n) : NULL;
		if (!end)
			break;
		*end = '\0';
		at += end + 1 - line;
		put_back_line(p, line);
	}
	close(fd);
	note(p);
}

/* ---- one file ---- */

/* Noted before it is written, beside what is there until then: nothing is left behind. */
static int rewrite(struct linux_platform *p, struct linux_kept *k, const char *text)
{
	int r;

	snprintf(k->writes, sizeof(k->writes), "%s", text);
	r = note(p);
	if (r == 0)
		r = linux_write(k->path, k->file, text);
	if (r == 0)
		memcpy(k->wrote, k->writes, sizeof(k->wrote));
	else
		memcpy(k->writes, k->wrote, sizeof(k->writes));
	return r;
}

int linux_keep(struct linux_platform *p, const char *file, const char *path, const char *text)
{
	struct linux_kept *k = find(p, file, path);
	int r;

	if (k)
		return rewrite(p, k, text);
	r = linux_read(p, path, file);
	if (r < 0)
		return r;
	k = free_one(p);
	if (!k || strlen(linux_line(p)) >= sizeof(k->before) || strlen(text) >= sizeof(k->wrote))
		return -ENOSPC;
	memset(k, 0, sizeof(*k));
	strcpy(k->before, p->file);
	strcpy(k->wrote, text);
	strcpy(k->path, path);
	k->file = !strcmp(file, LOW) ? LOW : SWAP;
	r = rewrite(p, k, text);
	if (r < 0) {
		k->file = NULL;
		note(p);
	}
	return r;
}

static void drop(struct linux_platform *p, struct linux_kept *k)
{
	if (put_back(p, k))
		k->file = NULL;
}

void linux_put_back(struct linux_platform *p, const char *file, const char *path)
{
	struct linux_kept *k = find(p, file, path);

	if (k)
		drop(p, k);
	note(p);
}

/* ---- protection ---- */

/*
 * A group's memory.low holds as far as those above it have one too: each gets as much more as is
 * protected below it. "max" is enough.
 */
static int raise(struct linux_platform *p, const char *path, uint64_t bytes)
{
	struct linux_kept *k = find(p, LOW, path);
	char text[LINUX_VALUE];
	uint64_t before;
	int r;

	r = k ? 0 : linux_read(p, path, LOW);
	if (r < 0)
		return r;
	if (!strcmp(k ? k->before : linux_line(p), "max"))
		return 0;
	before = strtoull(k ? k->before : p->file, NULL, 10);
	if (before > PROTOCOL_NUMBER_MAX)
		return 0;
	bytes += k ? k->added : 0;
	snprintf(text, sizeof(text), "%" PRIu64, before + bytes);
	r = linux_keep(p, LOW, path, text);
	if (r == 0)
		find(p, LOW, path)->added = bytes;
	return r;
}

static void lower(struct linux_platform *p, const char *path, uint64_t bytes)
{
	struct linux_kept *k = find(p, LOW, path);
	char text[LINUX_VALUE];

	if (!k)
		return;
	k->added -= bytes;
	snprintf(
		text, sizeof(text), "%" PRIu64, (uint64_t)strtoull(k->before, NULL, 10) + k->added);
	if (k->added == 0)
		linux_put_back(p, LOW, path);
	else
		linux_keep(p, LOW, path, text);
}

/* Cuts the last part of a path off. False: what is left is the tree's root. */
static bool climb(const struct linux_platform *p, char *path)
{
	char *last = strrchr(path, '/');

	if (last)
		*last = '\0';
	return last && strlen(path) > strlen(p->cgroup);
}

static int raise_all(struct linux_platform *p, const char *leaf, uint64_t bytes)
{
	char path[LINUX_PATH], undo[LINUX_PATH];
	int r;

	strcpy(path, leaf);
	do
		r = raise(p, path, bytes);
	while (r == 0 && climb(p, path));
	if (r == 0)
		return 0;
	for (strcpy(undo, leaf); strcmp(undo, path); climb(p, undo))
		lower(p, undo, bytes);
	return r;
}

int linux_protect(void *ctx, const struct agent_group *group)
{
	struct linux_platform *p = ctx;
	const char *path = linux_path_of(p, group->id);
	int r;

	if (!path || !strcmp(path, p->cgroup) || !group->current)
		return -ENOENT;
	if (find(p, LOW, path))
		return 0;
	r = linux_read(p, path, LOW);
	if (r < 0)
		return r;
	/* What its owner protects is left as it is. */
	if (strcmp(linux_line(p), "0"))
		return -EEXIST;
	if (room(p) < LINUX_DEPTH + 1)
		return -ENOSPC;
	return raise_all(p, path, group->current);
}

int linux_unprotect(void *ctx)
{
	struct linux_platform *p = ctx;

	if (room(p) == LINUX_KEPT)
		return 0;
	for (size_t i = 0; i < LINUX_KEPT; i++)
		if (p->kept[i].file)
			drop(p, &p->kept[i]);
	note(p);
	return room(p) == LINUX_KEPT ? 0 : -EIO;
}
