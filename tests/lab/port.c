/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host's end of a guest's command port. QEMU serves one client of that port and no other, so
 * one process a guest keeps the connection and lends it to one caller after the other:
 *
 *   port serve PORT SOCKET             connects to PORT (QEMU's socket), listens on SOCKET, never
 * ends port ask SOCKET SECONDS COMMAND    has COMMAND done in the guest: prints its output, exits
 * with its status; 124 when SECONDS pass first, 125 when nobody serves
 *   port say PORT SECONDS PATTERN TEXT   sends TEXT to PORT itself, which nobody serves, and prints
 * what comes up to a line with PATTERN
 *
 * A caller that gives up costs nothing: what its command still prints is thrown away, since answers
 * carry the number of their question.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096
#define RETRY_NS       100000000L
#define STATUS_TIMEOUT 124
#define STATUS_NOBODY  125
#define MAX_SECONDS    3600

static int unix_socket(const char *path, struct sockaddr_un *ret_address)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof a.sun_path) {
		fprintf(stderr, "port: path too long: %s\n", path);
		exit(2);
	}
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		perror("port: socket");
		exit(1);
	}
	*ret_address = a;
	return fd;
}

static int dial(const char *path)
{
	struct sockaddr_un a;
	int fd = unix_socket(path, &a);

	if (!connect(fd, (struct sockaddr *)&a, sizeof a))
		return fd;
	close(fd);
	return -1;
}

static int dial_until_there(const char *path)
{
	for (;;) {
		int fd = dial(path);
		struct timespec t = { .tv_nsec = RETRY_NS };

		if (fd >= 0)
			return fd;
		nanosleep(&t, NULL);
	}
}

static bool send_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		size -= (size_t)n;
	}
	return true;
}

/* One line with its newline, from a descriptor, a byte at a time: false at the end or when too
 * long. */
static bool read_line(int fd, char *line)
{
	for (size_t n = 0; n < LINE_MAX_BYTES - 1;) {
		ssize_t r = read(fd, line + n, 1);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		if (line[n++] == '\n') {
			line[n] = '\0';
			return true;
		}
	}
	return false;
}

static bool caller_left(int caller, int guest)
{
	struct pollfd p[2] = { { .fd = guest, .events = POLLIN },
		{ .fd = caller, .events = POLLRDHUP } };

	if (poll(p, 2, -1) < 0)
		return errno != EINTR;
	return p[1].revents && !(p[0].revents & POLLIN);
}

/* One question; true unless the guest's side is gone. */
static bool serve_one(int caller, int guest, unsigned long id)
{
	char line[LINE_MAX_BYTES], question[LINE_MAX_BYTES + 32], begin[48], end[48];
	bool begun = false;
	int n;

	if (!read_line(caller, line))
		return true;
	n = snprintf(question, sizeof question, "%lu %s", id, line);
	snprintf(begin, sizeof begin, "==BEGIN %lu\n", id);
	snprintf(end, sizeof end, "==END %lu ", id);
	if (!send_all(guest, question, (size_t)n))
		return false;
	for (;;) {
		if (caller_left(caller, guest))
			return true;
		if (!read_line(guest, line))
			return false;
		if (!strcmp(line, begin)) {
			begun = true;
			continue;
		}
		if (!begun)
			continue;
		if (!strncmp(line, end, strlen(end))) {
			send_all(caller, "==END ", 6);
			send_all(caller, line + strlen(end), strlen(line + strlen(end)));
			return true;
		}
		if (!send_all(caller, line, strlen(line)))
			return true;
	}
}

static int serve(const char *port, const char *path)
{
	int guest = dial_until_there(port);
	struct sockaddr_un a;
	int fd = unix_socket(path, &a);
	/* Unlike those of an earlier server of the same guest, whose answers may still be on their
	 * way. */
	unsigned long id = (unsigned long)time(NULL) * 1000;

	unlink(path);
	if (bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 16)) {
		perror(path);
		return 1;
	}
	for (;;) {
		int caller = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (caller < 0)
			continue;
		if (!serve_one(caller, guest, ++id)) {
			close(guest);
			guest = dial_until_there(port);
		}
		close(caller);
	}
}

static void too_late(int signal)
{
	(void)signal;
	_exit(STATUS_TIMEOUT);
}

static int ask(const char *path, const char *seconds, const char *command)
{
	long limit = strtol(seconds, NULL, 10);
	char line[LINE_MAX_BYTES];
	int fd;

	if (limit <= 0 || limit > MAX_SECONDS || strchr(command, '\n') ||
		strlen(command) > LINE_MAX_BYTES - 2) {
		fprintf(stderr, "port: bad time or command\n");
		return 2;
	}
	signal(SIGALRM, too_late);
	alarm((unsigned int)limit);
	fd = dial(path);
	if (fd < 0)
		return STATUS_NOBODY;
	snprintf(line, sizeof line, "%s\n", command);
	if (!send_all(fd, line, strlen(line)))
		return STATUS_NOBODY;
	while (read_line(fd, line)) {
		if (!strncmp(line, "==END ", 6))
			return atoi(line + 6);
		fputs(line, stdout);
		fflush(stdout);
	}
	return STATUS_NOBODY;
}

/* To an agent, in the host's place. */
static int say(const char *path, const char *seconds, const char *pattern, const char *text)
{
	long limit = strtol(seconds, NULL, 10);
	char line[LINE_MAX_BYTES];
	regex_t until;
	int fd;

	if (limit <= 0 || limit > MAX_SECONDS || regcomp(&until, pattern, REG_NOSUB)) {
		fprintf(stderr, "port: bad time or pattern\n");
		return 2;
	}
	signal(SIGALRM, too_late);
	alarm((unsigned int)limit);
	fd = dial(path);
	if (fd < 0 || !send_all(fd, text, strlen(text)))
		return STATUS_NOBODY;
	while (read_line(fd, line)) {
		fputs(line, stdout);
		fflush(stdout);
		if (!regexec(&until, line, 0, NULL, 0))
			return 0;
	}
	return STATUS_NOBODY;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "serve"))
		return serve(argv[2], argv[3]);
	if (argc == 5 && !strcmp(argv[1], "ask"))
		return ask(argv[2], argv[3], argv[4]);
	if (argc == 6 && !strcmp(argv[1], "say"))
		return say(argv[2], argv[3], argv[4], argv[5]);
	fprintf(stderr, "usage: port serve PORT SOCKET | ask SOCKET SECONDS COMMAND | "
			"say PORT SECONDS PATTERN TEXT\n");
	return 2;
}
