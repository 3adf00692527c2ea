/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The control socket's place, its owner and its peers: see control_internal.h. */
#include <config.h>

#include "hv/ballastd/control_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* Linux 4.13; older C libraries lack the name */
#endif

#define BACKLOG 16

/* The largest number of groups that Linux gives a process. */
#define GROUPS_MAX 65536

static int fail(int r, char *why, size_t size, const char *what, const char *path)
{
	snprintf(why, size, "cannot %s %s: %s", what, path, strerror(-r));
	return r;
}

static int make_folder(const char *path, char *why, size_t size)
{
	char folder[PATH_MAX];
	char *slash;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return 0;
	*slash = '\0';
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return fail(-errno, why, size, "make the folder", folder);
	return 0;
}

static int take_lock(const char *path, int *ret_fd, char *why, size_t size)
{
	char name[PATH_MAX];
	int fd, r;

	snprintf(name, sizeof(name), "%s.lock", path);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fail(-errno, why, size, "open", name);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
		if (r == -EADDRINUSE)
			snprintf(why, size, "another ballastd is running: it holds %s", name);
		else
			fail(r, why, size, "lock", name);
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

/* Takes away what a dead daemon left; nobody must answer there. */
static int clear_place(const struct sockaddr_un *address, char *why, size_t size)
{
	struct stat st;
	int fd, r;

	if (lstat(address->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : fail(-errno, why, size, "look at", address->sun_path);
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(why, size, "%s is there and is no socket", address->sun_path);
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail(-errno, why, size, "make a socket for", address->sun_path);
	r = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;
	close(fd);
	if (r != -ECONNREFUSED && r != -ENOENT) {
		snprintf(why, size, "another program answers at %s", address->sun_path);
		return -EADDRINUSE;
	}
	if (unlink(address->sun_path) < 0 && errno != ENOENT)
		return fail(-errno, why, size, "replace", address->sun_path);
	return 0;
}

static void find_group(const char *name, struct control_socket *ret_socket)
{
	const struct group *group = name ? getgrnam(name) : NULL;

	ret_socket->has_group = group != NULL;
	ret_socket->group = group ? group->gr_gid : 0;
}

/* Bound with no right for anyone but the owner, and then opened to the group. */
static int bind_closed(int fd, const struct sockaddr_un *address)
{
	mode_t mask = umask(0177);
	int r = bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;

	umask(mask);
	return r;
}

int control_socket_open(const char *path, const char *group, struct control_socket *ret_socket,
	char *why, size_t size)
{
	struct control_socket s = CONTROL_SOCKET_NONE;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int r;

	if (strlen(path) >= sizeof(address.sun_path)) {
		snprintf(why, size, "the socket's path %s is longer than %zu bytes", path,
			sizeof(address.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	find_group(group, &s);
	r = make_folder(path, why, size);
	if (r < 0)
		return r;
	r = take_lock(path, &s.lock, why, size);
	if (r < 0)
		return r;
	r = clear_place(&address, why, size);
	if (r < 0)
		goto fail;
	s.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = s.fd < 0 ? -errno : bind_closed(s.fd, &address);
	if (r < 0) {
		fail(r, why, size, "make the socket", path);
		goto fail;
	}
	/* Not root: the group may not be ours to give; then only the owner connects. */
	if (s.has_group && chown(path, (uid_t)-1, s.group) == 0)
		r = chmod(path, 0660) < 0 ? -errno : 0;
	if (r == 0 && listen(s.fd, BACKLOG) < 0)
		r = -errno;
	if (r < 0) {
		fail(r, why, size, "listen at", path);
		unlink(path);
		goto fail;
	}
	*ret_socket = s;
	return 0;
fail:
	if (s.fd >= 0)
		close(s.fd);
	close(s.lock);
	return r;
}

void control_socket_close(struct control_socket *s, const char *path)
{
	/* The lock's file stays: taken away, two daemons could each hold one of that name. */
	if (s->fd >= 0) {
		unlink(path);
		close(s->fd);
	}
	if (s->lock >= 0)
		close(s->lock);
	*s = CONTROL_SOCKET_NONE;
}

static bool is_member(int fd, gid_t primary, gid_t group)
{
	gid_t *groups;
	socklen_t length = GROUPS_MAX * sizeof(*groups);
	bool yes = primary == group;

	if (yes)
		return true;
	groups = malloc(length);
	if (groups && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length) == 0)
		for (size_t i = 0; i < length / sizeof(*groups) && !yes; i++)
			yes = groups[i] == group;
	free(groups);
	return yes;
}

bool control_socket_permits(const struct control_socket *s, int fd, char *who, size_t size)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) {
		snprintf(who, size, "a peer without credentials");
		return false;
	}
	snprintf(who, size, "uid %u, pid %d", peer.uid, peer.pid);
	if (peer.uid == 0 || peer.uid == geteuid())
		return true;
	return s->has_group && is_member(fd, peer.gid, s->group);
}
