/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the Xen lab's dom0 knows from the hypervisor itself, not from ballast.
 *
 *   probe domains         a line a domain: DOMID TOT_KIB MAX_KIB CLAIMED_KIB FLAGS
 *   probe host            FREE_KIB CLAIMED_KIB
 *   probe share DOM PATH  makes PATH, which the guest may read and write (w) or read (r)
 *   probe relay PATH      passes what connects to PATH, a socket, to xenstored, until it is ended:
 *                         a connection that can be broken while xenstored and guests live on
 *   probe exit CODE       leaves QEMU, through its debug exit device
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <xenctrl.h>
#include <xenstore.h>

#define DOMAINS_MAX 64
#define EXIT_PORT   0xf4
#define XENSTORED   "/run/xenstored/socket"

static int domains(xc_interface *xc)
{
	xc_domaininfo_t infos[DOMAINS_MAX];
	int nr = xc_domain_getinfolist(xc, 0, DOMAINS_MAX, infos);

	for (int i = 0; i < nr; i++)
		printf("%u %lu %lu %lu %x\n", infos[i].domain,
			(unsigned long)infos[i].tot_pages * 4,
			(unsigned long)infos[i].max_pages * 4,
			(unsigned long)infos[i].outstanding_pages * 4, infos[i].flags);
	return nr < 0;
}

static int host(xc_interface *xc)
{
	xc_physinfo_t info;

	memset(&info, 0, sizeof(info));
	if (xc_physinfo(xc, &info) < 0)
		return 1;
	printf("%lu %lu\n", (unsigned long)info.free_pages * 4,
		(unsigned long)info.outstanding_pages * 4);
	return 0;
}

static int share(const char *domid, const char *path, const char *how)
{
	struct xs_permissions permissions[2] = { { .id = 0, .perms = XS_PERM_NONE },
		{ .id = (unsigned int)atoi(domid),
			.perms = *how == 'w' ? XS_PERM_READ | XS_PERM_WRITE : XS_PERM_READ } };
	struct xs_handle *xs = xs_open(0);

	return !xs || !xs_write(xs, XBT_NULL, path, "", 0) ||
	       !xs_set_permissions(xs, XBT_NULL, path, permissions, 2);
}

static bool pass_on(int from, int to)
{
	char data[4096];
	ssize_t length = read(from, data, sizeof(data));

	for (ssize_t n = 0; n < length;) {
		ssize_t written = write(to, data + n, (size_t)(length - n));

		if (written <= 0)
			return false;
		n += written;
	}
	return length > 0;
}

/* One connection, in a process of its own, which ends with either side, and with the relay. */
static void serve(int one)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = XENSTORED };
	struct pollfd fds[2] = { { .fd = one, .events = POLLIN }, { .events = POLLIN } };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fds[1].fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (connect(fds[1].fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		_exit(1);
	while (poll(fds, 2, -1) > 0)
		for (int i = 0; i < 2; i++)
			if (fds[i].revents && !pass_on(fds[i].fd, fds[1 - i].fd))
				_exit(0);
}

static int relay(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	unlink(path);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(listener, 16) < 0)
		return 1;
	for (;;) {
		int one = accept(listener, NULL, NULL);

		if (one >= 0 && fork() == 0)
			serve(one);
		close(one);
	}
}

int main(int argc, char **argv)
{
	xc_interface *xc;

	if (argc == 3 && !strcmp(argv[1], "exit")) {
		if (iopl(3) == 0)
			outb((unsigned char)atoi(argv[2]), EXIT_PORT);
		return 1;
	}
	if (argc == 5 && !strcmp(argv[1], "share"))
		return share(argv[2], argv[3], argv[4]);
	if (argc == 3 && !strcmp(argv[1], "relay"))
		return relay(argv[2]);
	xc = xc_interface_open(NULL, NULL, 0);
	if (!xc || argc != 2)
		return 1;
	return !strcmp(argv[1], "host") ? host(xc) : domains(xc);
}
