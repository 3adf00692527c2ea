/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ballast-agent, the program: what it does when its port goes. */
#include <config.h>

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#define PATIENCE_MS 20000

static char root[SCRATCH_PATH], port[SCRATCH_PATH + 16];
static pid_t agent;

static void point_to(const char *device)
{
	char new[SCRATCH_PATH + 16];

	snprintf(new, sizeof(new), "%s/new", root);
	ck_assert_int_eq(symlink(device, new), 0);
	ck_assert_int_eq(rename(new, port), 0);
}

static void start(void)
{
	const char *folder = getenv("builddir");
	char program[256];

	snprintf(program, sizeof(program), "%s/ballast-agent", folder ? folder : ".");
	agent = fork();
	ck_assert_int_ge(agent, 0);
	if (agent > 0)
		return;
	execl(program, program, "--port", port, (char *)NULL);
	_exit(127);
}

static void setup(void)
{
	scratch_new(root);
	snprintf(port, sizeof(port), "%s/port", root);
}

static void teardown(void)
{
	int status = -1;

	kill(agent, SIGTERM);
	ck_assert_int_eq(waitpid(agent, &status, 0), agent);
	ck_assert_int_eq(status, 0);
}

/* It has that file open. */
static bool has_open(const char *name)
{
	char link[64], path[256];
	ssize_t n;

	for (int fd = 3; fd < 16; fd++) {
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)agent, fd);
		n = readlink(link, path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = '\0';
		if (!strcmp(path, name))
			return true;
	}
	return false;
}

/* The host's end of a terminal, which stands for a port that works. */
static int open_terminal(void)
{
	struct termios raw;
	int fd = posix_openpt(O_RDWR | O_NOCTTY), other;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(grantpt(fd), 0);
	ck_assert_int_eq(unlockpt(fd), 0);
	other = open(ptsname(fd), O_RDWR | O_NOCTTY);
	ck_assert_int_ge(other, 0);
	ck_assert_int_eq(tcgetattr(other, &raw), 0);
	cfmakeraw(&raw);
	ck_assert_int_eq(tcsetattr(other, TCSANOW, &raw), 0);
	return fd; /* the other end stays open: a terminal without one has hung up */
}

static void greet(int host)
{
	static const char hello[] = "\n{\"type\":\"hello\",\"oldest\":1,\"newest\":1}\n";

	ck_assert_int_eq(write(host, hello, sizeof(hello) - 1), (ssize_t)sizeof(hello) - 1);
}

static void wait_for_hello(int host)
{
	struct pollfd fd = { .fd = host, .events = POLLIN };
	char text[4096];
	size_t length = 0;
	ssize_t n;

	do {
		ck_assert_msg(poll(&fd, 1, PATIENCE_MS) > 0, "it says nothing");
		n = read(host, text + length, sizeof(text) - 1 - length);
		ck_assert_int_gt(n, 0);
		length += (size_t)n;
		text[length] = '\0';
	} while (!strstr(text, "\"type\":\"hello\""));
}

/* A file of a process, which cannot be read any more when that has gone: as a port's is then. */
START_TEST(port_that_was_unplugged_is_looked_for_anew)
{
	char file[64];
	int host = open_terminal();
	pid_t owner = fork();

	ck_assert_int_ge(owner, 0);
	if (owner == 0) {
		pause();
		_exit(0);
	}
	snprintf(file, sizeof(file), "/proc/%d/oom_score_adj", (int)owner);
	ck_assert_int_eq(symlink(file, port), 0);
	start();
	for (int i = 0; i < PATIENCE_MS && !has_open(file); i++)
		poll(NULL, 0, 1);
	ck_assert(has_open(file));
	point_to(ptsname(host));
	kill(owner, SIGKILL);
	ck_assert_int_eq(waitpid(owner, NULL, 0), owner);
	greet(host);
	wait_for_hello(host);
	close(host);
}
END_TEST

START_TEST(port_that_is_not_there_yet_is_waited_for)
{
	int host = open_terminal();

	start();
	greet(host);
	point_to(ptsname(host));
	wait_for_hello(host);
	close(host);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("agent_port");
	TCase *tc = tcase_create("port");

	scratch_begin();
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, port_that_was_unplugged_is_looked_for_anew);
	tcase_add_test(tc, port_that_is_not_there_yet_is_waited_for);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
