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
/* The kernel's "no limit" of v1: INT64_MAX rounded down to a page, of any size. */
#define V1_UNLIMITED (UINT64_C(1) << 62)

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

static void look_at(const char *folder, bool v1, struct cgroup_throttle *throttle)
{
	char text[FILE_MAX];
	uint64_t high;

	if (!read_file(folder, v1 ? "memory.soft_limit_in_bytes" : "memory.high", text) ||
		!number(text, &high) || (v1 && high >= V1_UNLIMITED) ||
		(throttle->high && high >= throttle->high))
		return;
	throttle->high = high ? high : 1; /* "0" is the hardest limit, not none */
	throttle->events = v1 ? 0 : high_events(folder);
}

/* The cgroup and those above it, up to the root, which has no limits. */
static void climb(const char *root, const char *sub, const char *path, size_t length, bool v1,
	struct cgroup_throttle *throttle)
{
	char folder[PATH_MAX];
	size_t base;
	int n = snprintf(folder, sizeof(folder), "%s%s%.*s", root, sub, (int)length, path);

	if (n < 0 || n >= (int)sizeof(folder) || length == 0 || path[0] != '/')
		return;
	base = strlen(root) + strlen(sub);
	for (int i = 0; i < CGROUP_DEPTH_MAX && strlen(folder) > base + 1; i++) {
		look_at(folder, v1, throttle);
		*strrchr(folder, '/') = '\0';
	}
}

static bool has_memory(const char *controllers, size_t length)
{
	static const char name[] = "memory";
	const size_t size = sizeof(name) - 1;

	for (size_t i = 0; i + size <= length; i++)
		if (!strncmp(controllers + i, name, size) &&
			(i == 0 || controllers[i - 1] == ',') &&
			(i + size == length || controllers[i + size] == ','))
			return true;
	return false;
}

void cgroup_read_throttle(
	const char *root, const char *membership, struct cgroup_throttle *ret_throttle)
{
	struct cgroup_throttle throttle = { 0 };
	size_t length;

	/* ID:CONTROLLERS:PATH */
	for (const char *line = membership; *line; line += length + (line[length] == '\n')) {
		const char *controllers, *path;

		length = strcspn(line, "\n");
		controllers = memchr(line, ':', length);
		if (!controllers)
			continue;
		controllers++;
		path = memchr(controllers, ':', length - (size_t)(controllers - line));
		if (!path)
			continue;
		path++;
		if (path == controllers + 1) {
			climb(root, "", path, length - (size_t)(path - line), false, &throttle);
			climb(root, "/unified", path, length - (size_t)(path - line), false,
				&throttle);
		} else if (has_memory(controllers, (size_t)(path - 1 - controllers))) {
			climb(root, "/memory", path, length - (size_t)(path - line), true,
				&throttle);
		}
	}
	*ret_throttle = throttle;
}
