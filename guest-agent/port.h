/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* port: a virtio-serial port of a Linux guest, by its name. No allocation. */
#ifndef BALLAST_GUEST_AGENT_PORT_H
#define BALLAST_GUEST_AGENT_PORT_H

#include <stddef.h>

/* A descriptor; -ENOENT: no port has that name; a negative errno. */
int port_find(const char *name);
int port_open(const char *device);

/* All of it, or negative: what a host that does not read leaves no room for is not sent. */
int port_send(int fd, const char *text, size_t length);

#endif
