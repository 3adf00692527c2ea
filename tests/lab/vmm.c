/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A microVM's VMM as far as ballastd's pager has to do with it: restores a snapshot without a file.
 *
 *   vmm SOCKET MIB RATE    hands MIB of memory over at SOCKET, as Firecracker does, touches all of
 * it, RATE MiB a second, prints "done" and holds it for ever
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MIB  ((size_t)1 << 20)
#define PAGE ((size_t)4096)

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int registered(char *memory, size_t size)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_EVENT_REMOVE };
	struct uffdio_register all = { .range = { (uintptr_t)memory, size },
		.mode = UFFDIO_REGISTER_MODE_MISSING };
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) < 0 || ioctl(uffd, UFFDIO_REGISTER, &all) < 0)
		fail("userfaultfd");
	return uffd;
}

static void hand_over(const char *path, const char *memory, size_t size, int uffd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char text[200];
	struct iovec iov = { .iov_base = text };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	iov.iov_len = (size_t)snprintf(text, sizeof(text),
		"[{\"base_host_virt_addr\":%llu,\"size\":%zu,\"offset\":0,\"page_size\":4096}]",
		(unsigned long long)(uintptr_t)memory, size);
	CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &uffd, sizeof(int));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		sendmsg(fd, &msg, 0) < 0)
		fail(path);
}

int main(int argc, char **argv)
{
	size_t size = argc == 4 ? strtoul(argv[2], NULL, 10) * MIB : 0;
	long rate = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
	struct timespec mib = { .tv_nsec = rate > 1 ? 1000000000L / rate : 999999999L };
	char *memory;

	if (!size || rate <= 0) {
		fprintf(stderr, "usage: vmm SOCKET MIB RATE\n");
		return 2;
	}
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("mmap");
	hand_over(argv[1], memory, size, registered(memory, size));
	for (size_t at = 0; at < size; at += PAGE) {
		*(volatile char *)(memory + at) = 1;
		if (at % MIB == 0)
			nanosleep(&mib, NULL);
	}
	puts("done");
	fflush(stdout);
	for (;;)
		pause();
}
