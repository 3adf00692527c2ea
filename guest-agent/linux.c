/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* linux: files, the guest, what its kernel can do; see linux.h. */
#include <config.h>

#include "guest-agent/linux_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* ---- files ---- */

bool linux_join(char *to, const char *folder, const char *name)
{
	int length = snprintf(to, LINUX_PATH, "%s/%s", folder, name);

	return length > 0 && length < LINUX_PATH;
}

int linux_read_at(struct linux_platform *p, int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC), r = 0;
	ssize_t n;

	p->file[0] = '\0';
	if (fd < 0)
		return -errno;
	n = read(fd, p->file, LINUX_FILE);
	if (n < 0)
		r = -errno;
	p->file[n > 0 ? n : 0] = '\0';
	close(fd);
	return r;
}

int linux_read(struct linux_platform *p, const char *folder, const char *name)
{
	char path[LINUX_PATH];
	size_t length = 0;
	ssize_t n = 1;
	int fd, r = 0;

	p->file[0] = '\0';
	if (!linux_join(path, folder, name))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n > 0 && length < LINUX_FILE) {
		n = read(fd, p->file + length, LINUX_FILE - length);
		length += n > 0 ? (size_t)n : 0;
	}
	p->file[length] = '\0';
	if (n < 0)
		r = -errno;
	close(fd);
	return r;
}

int linux_write(const char *folder, const char *name, const char *text)
{
	char path[LINUX_PATH];
	ssize_t n;
	int fd, r = 0;

	if (!linux_join(path, folder, name))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	if (n < 0)
		r = -errno;
	close(fd);
	return r;
}

char *linux_line(struct linux_platform *p)
{
	p->file[strcspn(p->file, "\n")] = '\0';
	return p->file;
}

/* ---- the guest ---- */

static uint64_t now(void *ctx)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/*
 * Where the balloon deflates on OOM, what it holds counts as used and not as gone: it is taken off,
 * so that the guest has as much, and uses as much, as in one whose balloon takes it from the total.
 */
static void take_off_balloon(const struct linux_platform *p, struct agent_guest *g)
{
	uint64_t in = linux_pages(p->file, "balloon_inflate", p->page),
		 out = linux_pages(p->file, "balloon_deflate", p->page);

	if (p->balloon_counts && in > out && in - out < g->total)
		g->total -= in - out;
	if (g->available > g->total)
		g->available = g->total;
}

/* Where nothing keeps anonymous pages from swap no request could be served: it is not offered. */
static void offer_reclaim(struct linux_platform *p, const struct agent_guest *g)
{
	p->table.can &= ~(uint64_t)PROTOCOL_CAN_RECLAIM;
	if (p->reclaims && (p->swappiness || p->limits_swap || !g->swap_free))
		p->table.can |= PROTOCOL_CAN_RECLAIM;
}

int linux_guest(void *ctx, struct agent_guest *ret_guest)
{
	struct linux_platform *p = ctx;
	struct agent_guest g = { 0 };
	int r = linux_read(p, p->proc, "meminfo");

	if (r < 0)
		return r;
	r = linux_take_meminfo(p->file, &g);
	if (r < 0)
		return r;
	if (linux_read(p, p->proc, "vmstat") == 0) {
		linux_take_vmstat(p->file, p->page, &g);
		take_off_balloon(p, &g);
	}
	if (linux_read(p, p->proc, "pressure/memory") == 0)
		linux_take_pressure(p->file, &g);
	g.aging = linux_aging(p);
	offer_reclaim(p, &g);
	*ret_guest = g;
	return 0;
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

	if (linux_read(p, p->proc, "self/mounts") < 0)
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

	return linux_join(path, folder, name) && access(path, F_OK) == 0;
}

/* One that is cut short, or that says it is switched off, tells nothing. */
static bool has_pressure(struct linux_platform *p)
{
	return linux_read(p, p->proc, "pressure/memory") == 0 && strstr(p->file, "total=");
}

/* Of nothing nothing is taken: that shows whether it takes the word. */
static bool takes_swappiness(const char *path)
{
	return linux_write(path, "memory.reclaim", "0 swappiness=0") != -EINVAL;
}

/* What this kernel has, by what its files show now. */
static uint64_t abilities(struct linux_platform *p)
{
	static struct agent_group all[AGENT_GROUPS];
	size_t nr = linux_groups(p, all, AGENT_GROUPS);
	const char *first = p->groups[0].path;
	uint64_t can = 0;

	p->has_lists = linux_read(p, p->proc, "meminfo") == 0 && strstr(p->file, "Inactive(file):");
	if (has_pressure(p))
		can |= PROTOCOL_CAN_PRESSURE;
	if (nr > 0 && strcmp(first, p->cgroup))
		can |= PROTOCOL_CAN_GROUPS;
	if ((can & PROTOCOL_CAN_GROUPS) && is_there(first, "memory.low"))
		can |= PROTOCOL_CAN_PROTECT;
	p->reclaims = nr > 0 && is_there(first, "memory.reclaim");
	if (p->reclaims)
		can |= PROTOCOL_CAN_ANON;
	p->swappiness = p->reclaims && takes_swappiness(first);
	p->limits_swap = nr > 0 && is_there(first, "memory.swap.max");
	return can;
}

/* Numbers that Linux gives to the devices on the virtio bus. */
#define VIRTIO_DEVICES 32
#define VIRTIO_BALLOON 5
/* VIRTIO_BALLOON_F_DEFLATE_ON_OOM; features are shown as one digit a bit. */
#define DEFLATES_ON_OOM 2

static bool balloon_counts(struct linux_platform *p)
{
	char folder[LINUX_PATH];

	for (unsigned int i = 0; i < VIRTIO_DEVICES; i++) {
		snprintf(folder, sizeof(folder), "%.400s/bus/virtio/devices/virtio%u", p->sys, i);
		if (linux_read(p, folder, "device") < 0 ||
			strtoul(p->file, NULL, 0) != VIRTIO_BALLOON)
			continue;
		return linux_read(p, folder, "features") == 0 &&
		       strlen(p->file) > DEFLATES_ON_OOM && p->file[DEFLATES_ON_OOM] == '1';
	}
	return false;
}

static bool take_paths(struct linux_platform *p, const struct linux_paths *paths)
{
	const char *cgroup = paths->cgroup ? paths->cgroup : "";
	const char *notes = paths->notes ? paths->notes : "";

	if (strlen(paths->proc) >= LINUX_PATH || strlen(paths->sys) >= LINUX_PATH ||
		strlen(cgroup) >= LINUX_PATH || strlen(notes) >= LINUX_PATH)
		return false;
	strcpy(p->proc, paths->proc);
	strcpy(p->sys, paths->sys);
	strcpy(p->cgroup, cgroup);
	strcpy(p->notes, notes);
	return true;
}

int linux_start(struct linux_platform *p, const struct linux_paths *paths)
{
	struct agent_guest guest;
	struct utsname name;
	int r;

	memset(p, 0, sizeof(*p));
	p->page = (uint64_t)sysconf(_SC_PAGESIZE);
	if (!take_paths(p, paths))
		return -ENAMETOOLONG;
	if (!paths->cgroup)
		find_cgroup(p);
	r = linux_read(p, p->proc, "meminfo");
	if (r < 0)
		return r;
	linux_put_back_noted(p);
	if (uname(&name) == 0)
		snprintf(p->software, sizeof(p->software), "ballast-agent %.8s, %.6s %.16s",
			PACKAGE_VERSION, name.sysname, name.release);
	p->balloon_counts = balloon_counts(p);
	p->table = (struct agent_platform){
		.software = p->software,
		.now = now,
		.guest = linux_guest,
		.groups = linux_groups,
		.reclaim = linux_reclaim,
		.protect = linux_protect,
		.unprotect = linux_unprotect,
		.send = do_send,
	};
	p->table.can = abilities(p);
	linux_guest(p, &guest); /* and what depends on more than files that are there */
	return 0;
}
