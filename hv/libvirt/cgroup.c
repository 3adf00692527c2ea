/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Throttled or not; see cgroup.h. */
#include <config.h>

#include "hv/libvirt/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* memory.events has some 100 bytes; the others a number. */
#define FILE_MAX 1024

static bool read_file(const char *folder, const char *name, char *text)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, FILE_MAX - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

/* False: "max", or nothing that could be a limit. */
static bool number(const char *text, uint64_t *ret)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !errno && (*end == '\n' || *end == '\0');
}

static uint64_t high_events(const char *folder)
{
	char text[FILE_MAX];
	const char *line;

	if (!read_file(folder, "memory.events", text))
		return 0;
	for (line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, "high ", 5))
			return strtoull(line + 5, NULL, 10);
	}
	return 0;
}

/*
 * Of the VM alone: "machine-qemu\x2d1\x2dweb.scope", or where libvirt has no systemd to ask
 * "qemu-1-web.libvirt-qemu". A login's scope, or a service's, has others in it.
 */
static bool is_scope(const char *name)
{
	static const char *const ends[] = { ".scope", ".libvirt-qemu" };
	size_t length = strlen(name);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t end = strlen(ends[i]);

		if (length > end && !strcmp(name + length - end, ends[i]))
			return strstr(name, "qemu") != NULL;
	}
	return false;
}

static void look_at(const char *folder, struct cgroup_throttle *throttle)
{
	char text[FILE_MAX];
	uint64_t high;

	if (!read_file(folder, "memory.high", text) || !number(text, &high) ||
		(throttle->high && high >= throttle->high))
		return;
	throttle->high = high ? high : 1; /* "0" is the hardest limit, not none */
	throttle->events = high_events(folder);
}

/* The cgroup and those above it, up to the VM's scope; without one none is the VM's own. */
static void climb(const char *root, const char *sub, const char *path, size_t length,
	struct cgroup_throttle *throttle)
{
	struct cgroup_throttle own = { 0 };
	char folder[PATH_MAX];
	size_t base;
	int n = snprintf(folder, sizeof(folder), "%s%s%.*s", root, sub, (int)length, path);

	if (n < 0 || n >= (int)sizeof(folder) || length == 0 || path[0] != '/')
		return;
	base = strlen(root) + strlen(sub);
	for (int i = 0; i < CGROUP_DEPTH_MAX && strlen(folder) > base + 1; i++) {
		char *slash = strrchr(folder, '/');

		look_at(folder, &own);
		if (is_scope(slash + 1)) {
			if (own.high && (!throttle->high || own.high < throttle->high))
				*throttle = own;
			return;
		}
		*slash = '\0';
	}
}

void cgroup_read_throttle(
	const char *root, const char *membership, struct cgroup_throttle *ret_throttle)
{
	struct cgroup_throttle throttle = { 0 };
	size_t length;

	/* ID:CONTROLLERS:PATH; v2's line has no controllers. */
	for (const char *line = membership; *line; line += length + (line[length] == '\n')) {
		const char *path;

		length = strcspn(line, "\n");
		path = memchr(line, ':', length);
		if (!path || path + 1 >= line + length || path[1] != ':')
			continue;
		path += 2;
		climb(root, "", path, length - (size_t)(path - line), &throttle);
		climb(root, "/unified", path, length - (size_t)(path - line), &throttle);
	}
	*ret_throttle = throttle;
}
