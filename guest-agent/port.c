/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* port: see port.h. */
#include <config.h>

#include "guest-agent/port.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Numbers that Linux gives them: "vport" device "p" port. */
#define DEVICES_MAX 32
#define PORTS_MAX   32

int port_open(const char *device)
{
	int fd = open(device, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int has_name(unsigned int device, unsigned int port, const char *name)
{
	char path[64], text[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/virtio-ports/vport%up%u/name", device, port);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return !strcmp(text, name);
}

int port_find(const char *name)
{
	char path[64];

	for (unsigned int device = 0; device < DEVICES_MAX; device++) {
		for (unsigned int port = 0; port < PORTS_MAX; port++) {
			if (!has_name(device, port, name))
				continue;
			snprintf(path, sizeof(path), "/dev/vport%up%u", device, port);
			return port_open(path);
		}
	}
	return -ENOENT;
}

int port_send(int fd, const char *text, size_t length)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	ssize_t n;

	if (poll(&p, 1, 0) < 0 || !(p.revents & POLLOUT) || (p.revents & POLLHUP))
		return -EAGAIN;
	n = write(fd, text, length);
	if (n < 0)
		return -errno;
	/* The driver takes up to 32 KiB at a time: a part is the end of the port. */
	return (size_t)n == length ? 0 : -EIO;
}
