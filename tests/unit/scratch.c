/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Folders for tests: see scratch.h. */
#include <config.h>

#include "tests/unit/scratch.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[SCRATCH_PATH - sizeof("/XXXXXX")];
static pid_t owner; /* 0: there is none yet */

static int remove_it(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

/* Children that end with exit() come by here, too. */
static void remove_all(void)
{
	if (getpid() != owner)
		return;
	/* A test that failed as another user, where tests are not processes of their own. */
	if (getuid() == 0 && seteuid(0) < 0)
		perror("seteuid");
	nftw(root, remove_it, 8, FTW_DEPTH | FTW_PHYS);
}

/* Time limits and ^C. Nothing else runs then but what was interrupted, which does not go on. */
static void on_signal(int number)
{
	remove_all();
	signal(number, SIG_DFL);
	raise(number);
}

static void begin_in(const char *folder)
{
	snprintf(root, sizeof(root), "%s/ballast-test-XXXXXX", folder);
	/* Tests give up root: others may pass through. */
	if (!mkdtemp(root) || chmod(root, 0711) < 0 || atexit(remove_all) != 0) {
		perror(root);
		exit(EXIT_FAILURE);
	}
	owner = getpid();
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	signal(SIGHUP, on_signal);
}

void scratch_begin(void)
{
	begin_in("/tmp");
}

void scratch_begin_in_memory(void)
{
	begin_in(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

void scratch_new(char path[SCRATCH_PATH])
{
	snprintf(path, SCRATCH_PATH, "%s/XXXXXX", root);
	if (owner && mkdtemp(path))
		return;
	perror(path);
	abort();
}
