/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ballast-agent: the agent in a Linux guest, on a virtio-serial port or xenstore; see
 * ballast-agent(8). */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "guest-agent/linux.h"
#include "guest-agent/port.h"
#include "guest-agent/xenstore.h"

/*
 * Tasks that waited 20 ms of half a second for memory: the least window that Linux takes, and looks
 * at every tenth of. Without CAP_SYS_RESOURCE it has to be two seconds.
 */
static const char *const triggers[] = { "some 20000 500000", "some 100000 2000000" };

/* Nobody listens, or there is no port: looked at again after this. */
#define AGAIN_MS 500

/* Of what the host says, before anything else is looked at. */
#define MESSAGES_AT_ONCE 8

/* The way to the host. */
struct way {
	int fd;
	bool is_store;
	struct xenstore store;
};

static volatile sig_atomic_t stopping;

static void on_signal(int signal)
{
	(void)signal;
	stopping = 1;
}

static int send_text(void *ctx, const char *text, size_t length)
{
	struct way *way = ctx;

	return way->is_store ? xenstore_send(&way->store, text, length)
			     : port_send(way->fd, text, length);
}

/* Before others: the host waits a second for an answer. The unit has it too. */
#define NICE (-10)

/*
 * Stays when memory is short: it is what asks the host for more. Whatever fails is told. Only what
 * was touched is locked, where the kernel knows that (Linux 4.4): the rest of it is tables.
 */
static void stay(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "-1000", 5) < 0)
		fprintf(stderr, "ballast-agent: oom_score_adj: %s\n", strerror(errno));
	if (fd >= 0)
		close(fd);
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) < 0 &&
		(errno != EINVAL || mlockall(MCL_CURRENT | MCL_FUTURE) < 0))
		fprintf(stderr, "ballast-agent: mlockall: %s\n", strerror(errno));
	if (setpriority(PRIO_PROCESS, 0, NICE) < 0)
		fprintf(stderr, "ballast-agent: setpriority: %s\n", strerror(errno));
}

static int watch_pressure(void)
{
	int fd;

	for (size_t i = 0; i < sizeof(triggers) / sizeof(triggers[0]); i++) {
		fd = open("/proc/pressure/memory", O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			return -1;
		if (write(fd, triggers[i], strlen(triggers[i]) + 1) >= 0)
			return fd;
		close(fd);
	}
	return -1;
}

/* Signals come while it waits and at no other time: none is missed, and no batch is cut short. */
static int wait_for(struct pollfd *fds, nfds_t nr, int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
	sigset_t none;

	sigemptyset(&none);
	return ppoll(fds, nr, &t, &none);
}

static void catch_signals(void)
{
	static const int ending[] = { SIGTERM, SIGINT, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		sigaddset(&set, ending[i]);
		sigaction(ending[i], &action, NULL);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int wait_ms(struct agent *agent, uint64_t next)
{
	uint64_t now = agent->platform->now(agent->ctx), us = next > now ? next - now : 0;

	if (next == UINT64_MAX || us > 60000000)
		return 60000;
	return (int)((us + 999) / 1000);
}

/*
 * 1: something came; 0: nothing now; -ENOTCONN: nobody has it open now; another: it is gone, as
 * -ENODEV of a port that was unplugged.
 */
static int receive_port(struct agent *agent, int port)
{
	char data[1024];
	ssize_t n = read(port, data, sizeof(data));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ENOTCONN;
	agent_input(agent, data, (size_t)n);
	return 1;
}

/* A key that the host does not have now is waited for: the watch stays. */
static int receive_store(struct agent *agent, struct xenstore *store)
{
	const char *text;
	size_t length;

	for (int i = 0; i < MESSAGES_AT_ONCE; i++) {
		int r = xenstore_receive(store, &text, &length);

		if (r > 0)
			agent_input(agent, text, length);
		else if (r == -ENOTCONN)
			agent_disconnected(agent);
		else
			return r;
	}
	return 0;
}

static void nap(void)
{
	wait_for(NULL, 0, AGAIN_MS);
}

/* hung_up: nobody has it open, or it is gone; reading tells which. False: the way is gone. */
static bool receive(struct agent *agent, struct way *way, bool hung_up)
{
	int r = way->is_store ? receive_store(agent, &way->store) : receive_port(agent, way->fd);

	if (r > 0 || (r == 0 && !hung_up))
		return true;
	if (r < 0 && r != -ENOTCONN)
		return false;
	agent_disconnected(agent);
	nap();
	return true;
}

/* As long as the way is there. */
static void serve(struct agent *agent, struct way *way, int psi)
{
	struct pollfd fds[] = {
		{ .fd = way->fd, .events = POLLIN },
		{ .fd = psi, .events = POLLPRI },
	};

	while (!stopping) {
		fds[0].revents = fds[1].revents = 0;
		if (wait_for(fds, 2, wait_ms(agent, agent_step(agent))) < 0 && errno != EINTR)
			return;
		if (fds[1].revents & POLLPRI)
			agent_pressure(agent);
		if (fds[1].revents & POLLERR)
			fds[1].fd = -1;
		if (!(fds[0].revents & (POLLIN | POLLHUP))) {
			if (fds[0].revents)
				return;
		} else if (!receive(agent, way, fds[0].revents & POLLHUP)) {
			return;
		}
	}
}

/* The port; without one xenstore, where this is a guest of Xen. A negative errno: of the port. */
static int open_way(struct way *way, const char *device)
{
	int r;

	way->is_store = false;
	way->fd = device ? port_open(device) : port_find(PROTOCOL_PORT);
	if (way->fd >= 0 || device)
		return way->fd;
	r = xenstore_open(&way->store);
	if (r < 0)
		return way->fd;
	way->is_store = true;
	way->fd = way->store.fd;
	return 0;
}

static void run(struct agent *agent, struct linux_platform *platform, const char *device)
{
	static struct way way;
	bool said = false;
	int psi = watch_pressure(), r;

	platform->send = send_text;
	platform->send_ctx = &way;
	while (!stopping) {
		r = open_way(&way, device);
		if (r >= 0) {
			agent_start(agent, &platform->table, platform);
			serve(agent, &way, psi);
			agent_stop(agent);
			close(way.fd);
		} else if (!said) {
			fprintf(stderr, "ballast-agent: no port %s: %s; it is waited for\n",
				device ? device : PROTOCOL_PORT, strerror(-r));
			said = true;
		}
		if (!stopping)
			nap();
	}
	if (psi >= 0)
		close(psi);
}

static void usage(FILE *to)
{
	fputs("usage: ballast-agent [--port DEVICE] [--version] [--help]\n", to);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "version", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	static struct linux_platform platform;
	static struct agent agent;
	const char *device = NULL;
	int option, r;

	while ((option = getopt_long(argc, argv, "p:hv", options, NULL)) != -1) {
		if (option == 'p') {
			device = optarg;
		} else if (option == 'v') {
			puts("ballast-agent " PACKAGE_VERSION);
			return 0;
		} else {
			usage(option == 'h' ? stdout : stderr);
			return option == 'h' ? 0 : 2;
		}
	}
	if (optind < argc) {
		usage(stderr);
		return 2;
	}
	catch_signals();
	r = linux_start(&platform,
		&(const struct linux_paths){
			.proc = "/proc", .sys = "/sys", .notes = "/run/ballast-agent.notes" });
	if (r < 0) {
		fprintf(stderr, "ballast-agent: /proc/meminfo: %s\n", strerror(-r));
		return 1;
	}
	stay();
	run(&agent, &platform, device);
	return 0;
}
