/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ballast-agent: the agent in a Linux guest, on a virtio-serial port; see ballast-agent(8). */
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
#include <time.h>
#include <unistd.h>

#include "guest-agent/linux.h"
#include "guest-agent/port.h"

/* Tasks that waited 20 ms of half a second for memory: the least window that Linux takes. */
#define PRESSURE "some 20000 500000"

/* Nobody listens, or there is no port: looked at again after this. */
#define AGAIN_MS 500

static volatile sig_atomic_t stopping;

static void on_signal(int signal)
{
	(void)signal;
	stopping = 1;
}

static int send_text(void *ctx, const char *text, size_t length)
{
	return port_send(*(const int *)ctx, text, length);
}

/* Before others that want the processor: the host waits a second for an answer. */
#define NICE (-10)

/* Stays when memory is short: it is what asks the host for more. Whatever fails is told. */
static void stay(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "-1000", 5) < 0)
		fprintf(stderr, "ballast-agent: oom_score_adj: %s\n", strerror(errno));
	if (fd >= 0)
		close(fd);
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) < 0)
		fprintf(stderr, "ballast-agent: mlockall: %s\n", strerror(errno));
	if (setpriority(PRIO_PROCESS, 0, NICE) < 0)
		fprintf(stderr, "ballast-agent: setpriority: %s\n", strerror(errno));
}

static int watch_pressure(void)
{
	int fd = open("/proc/pressure/memory", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && write(fd, PRESSURE, sizeof(PRESSURE)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int wait_ms(struct agent *agent, uint64_t next)
{
	uint64_t now = agent->platform->now(agent->ctx), us = next > now ? next - now : 0;

	if (next == UINT64_MAX || us > 60000000)
		return 60000;
	return (int)((us + 999) / 1000);
}

/* False: the port is gone, or nobody has it open. */
static bool receive(struct agent *agent, int port)
{
	char data[1024];
	ssize_t n = read(port, data, sizeof(data));

	if (n > 0)
		agent_input(agent, data, (size_t)n);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = AGAIN_MS * 1000000L }, NULL);
}

/* As long as the port is there. */
static void serve(struct agent *agent, int port, int psi)
{
	struct pollfd fds[] = {
		{ .fd = port, .events = POLLIN },
		{ .fd = psi, .events = POLLPRI },
	};

	while (!stopping) {
		fds[0].revents = fds[1].revents = 0;
		if (poll(fds, 2, wait_ms(agent, agent_step(agent))) < 0 && errno != EINTR)
			return;
		if (fds[1].revents & POLLPRI)
			agent_pressure(agent);
		if (fds[1].revents & POLLERR)
			fds[1].fd = -1;
		if (fds[0].revents & POLLHUP) {
			agent_connected(agent, false);
			agent_step(agent);
			nap();
		} else if ((fds[0].revents & POLLIN) && !receive(agent, port)) {
			agent_connected(agent, false);
			nap();
		} else if (fds[0].revents & (POLLERR | POLLNVAL)) {
			return;
		}
	}
}

static void run(struct agent *agent, struct linux_platform *platform, const char *device)
{
	static int port;
	bool said = false;
	int psi = watch_pressure();

	platform->send = send_text;
	platform->send_ctx = &port;
	while (!stopping) {
		port = device ? port_open(device) : port_find(PROTOCOL_PORT);
		if (port >= 0) {
			agent_start(agent, &platform->table, platform);
			serve(agent, port, psi);
			agent_stop(agent);
			close(port);
		} else if (!said) {
			fprintf(stderr, "ballast-agent: no port %s: %s; it is waited for\n",
				device ? device : PROTOCOL_PORT, strerror(-port));
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
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	r = linux_start(&platform, "/proc", NULL, "/run/ballast-agent.low");
	if (r < 0) {
		fprintf(stderr, "ballast-agent: /proc/meminfo: %s\n", strerror(-r));
		return 1;
	}
	stay();
	run(&agent, &platform, device);
	return 0;
}
