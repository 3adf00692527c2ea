/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a VMM sends when it hands over its memory: see pager.h. Nothing of it is believed unread. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/json.h"
#include "hv/pager/pager.h"

/* In asm/socket.h from Linux 6.5 on. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Descriptors that are taken, to be closed if they are too many. */
#define DESCRIPTORS_MAX 8

static int refuse(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EINVAL;
}

static int parse_page_size(struct json_object *value, const char **ret_why)
{
	uint64_t size = 0;
	int r = json_get_u64(value, "page_size", &size);

	if (r == -ENOENT) {
		r = json_get_u64(value, "page_size_kib", &size);
		if (r == 0 && size == POLICY_PAGE_SIZE / 1024)
			size = POLICY_PAGE_SIZE;
	}
	if (r == -ENOENT)
		return 0;
	if (r < 0 || size != POLICY_PAGE_SIZE)
		return refuse(ret_why, "a page size other than 4096");
	return 0;
}

static int parse_region(
	struct json_object *value, struct pager_region *ret_region, const char **ret_why)
{
	uint64_t base, size, offset;

	if (json_get_u64(value, "base_host_virt_addr", &base) < 0 ||
		json_get_u64(value, "size", &size) < 0 ||
		json_get_u64(value, "offset", &offset) < 0)
		return refuse(ret_why, "a region without address, size or offset");
	if ((base | size | offset) % POLICY_PAGE_SIZE || size == 0)
		return refuse(ret_why, "a region that is not of whole pages");
	if (size / POLICY_PAGE_SIZE > PAGER_PAGES_MAX || base > UINT64_MAX - size ||
		offset > INT64_MAX - size)
		return refuse(ret_why, "a region that is too large");
	*ret_region = (struct pager_region){
		.base = base, .pages = size / POLICY_PAGE_SIZE, .offset = offset
	};
	return parse_page_size(value, ret_why);
}

static bool overlap(const struct pager_region *a, const struct pager_region *b)
{
	return a->base < b->base + b->pages * POLICY_PAGE_SIZE &&
	       b->base < a->base + a->pages * POLICY_PAGE_SIZE;
}

static int parse_list(struct json_object *list, struct pager_region *ret_regions, size_t *ret_nr,
	const char **ret_why)
{
	struct pager_region regions[PAGER_REGIONS_MAX];
	size_t nr = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
	uint64_t pages = 0;
	int r;

	if (nr == 0 || nr > PAGER_REGIONS_MAX)
		return refuse(ret_why, "no list of one to sixteen regions");
	for (size_t i = 0; i < nr; i++) {
		r = parse_region(json_object_array_get_idx(list, i), &regions[i], ret_why);
		if (r < 0)
			return r;
		pages += regions[i].pages;
		for (size_t j = 0; j < i; j++)
			if (overlap(&regions[i], &regions[j]))
				return refuse(ret_why, "regions that overlap");
	}
	if (pages > PAGER_PAGES_MAX)
		return refuse(ret_why, "regions that are too large together");
	memcpy(ret_regions, regions, nr * sizeof(regions[0]));
	*ret_nr = nr;
	return 0;
}

int pager_parse(const char *text, size_t size, struct pager_region *ret_regions, size_t *ret_nr,
	const char **ret_why)
{
	struct json_object *list = NULL;
	int r;

	if (size > PAGER_MESSAGE_MAX)
		return refuse(ret_why, "a message that is too long");
	r = json_read(text, size, &list, ret_why);
	if (r < 0)
		return r == -ENOMEM ? r : -EINVAL;
	r = parse_list(list, ret_regions, ret_nr, ret_why);
	json_object_put(list);
	return r;
}

/* All that came; the first is returned, the others are closed. -1: none; *ret_nr: how many. */
static int take_descriptors(struct msghdr *msg, size_t *ret_nr)
{
	int first = -1, fd;

	*ret_nr = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if ((*ret_nr)++ == 0)
				first = fd;
			else
				close(fd);
		}
	}
	return first;
}

/* Who connected, and not who has its number by now; older kernels tell the number alone. */
static int peer_process(int socket, struct pager_hello *hello, const char **ret_why)
{
	struct ucred peer = { 0 };
	socklen_t length = sizeof(peer);
	int fd = -1;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.pid <= 0)
		return refuse(ret_why, "a process that cannot be seen");
	length = sizeof(fd);
	if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &length) < 0)
		fd = errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, peer.pid, 0) : -1;
	if (fd < 0)
		return refuse(ret_why, "a process that is gone");
	hello->pid = peer.pid;
	hello->process = fd;
	return 0;
}

int pager_receive(int socket, struct pager_hello *ret_hello, const char **ret_why)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
	char text[PAGER_MESSAGE_MAX];
	struct iovec iov = { .iov_base = text, .iov_len = sizeof(text) };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	struct pager_hello hello = { 0 };
	size_t nr;
	ssize_t n = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int r = 0;

	if (n < 0)
		return -errno;
	hello.uffd = take_descriptors(&msg, &nr);
	if (nr != 1 || msg.msg_flags & MSG_CTRUNC)
		r = refuse(ret_why, "not one descriptor");
	if (r == 0)
		r = pager_parse(text, (size_t)n, hello.regions, &hello.nr_regions, ret_why);
	if (r == 0)
		r = peer_process(socket, &hello, ret_why);
	if (r < 0) {
		if (hello.uffd >= 0)
			close(hello.uffd);
		return r;
	}
	*ret_hello = hello;
	return 0;
}
