/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See managers.h. A process is known by the base names of its first arguments. */
#include <config.h>

#include "hv/ballastd/managers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Scripts have their name behind the interpreter and its options: python3 -s /usr/sbin/momd. */
#define ARGUMENTS   4
#define COMMAND_MAX 4096

/* Programs that set balloon targets by themselves. */
static const struct {
	const char *name, *what;
} managers[] = {
	{ "momd", "the memory overcommitment manager" },
	{ "mom-vdsm", "oVirt's memory overcommitment manager" },
	{ "vdsmd", "oVirt's host agent, which sets balloons" },
	{ "vdsm", "oVirt's host agent, which sets balloons" },
	{ "pvestatd", "Proxmox VE's status daemon, which sets balloons" },
	{ "squeezed", "XenServer's balloon daemon" },
	{ "xenopsd-xc", "XenServer's domain manager, which sets balloons with squeezed" },
};

#define NR (sizeof(managers) / sizeof(managers[0]))

static ssize_t read_command(const char *proc, const char *pid, char *buf, size_t size)
{
	char path[512];
	ssize_t length = -1;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s/cmdline", proc, pid) >= sizeof(path))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1; /* gone meanwhile */
	length = read(fd, buf, size);
	close(fd);
	return length;
}

static bool same_base(const char *argument, const char *name)
{
	const char *slash = strrchr(argument, '/');
	size_t length = strlen(name);

	argument = slash ? slash + 1 : argument;
	/* Perl's daemons write their state behind their name: "pvestatd: ...". */
	return !strncmp(argument, name, length) &&
	       (argument[length] == '\0' || argument[length] == ' ' || argument[length] == ':');
}

/* NR: it is none of them. */
static size_t which(const char *command, size_t length)
{
	const char *p = command;

	for (size_t argument = 0; argument < ARGUMENTS && p < command + length; argument++) {
		for (size_t i = 0; i < NR; i++)
			if (same_base(p, managers[i].name))
				return i;
		/* Behind a program that is no interpreter stand its options and files. */
		if (argument == 0 && !strstr(p, "python") && !strstr(p, "perl"))
			break;
		p += strlen(p) + 1;
	}
	return NR;
}

int managers_find(const char *proc, struct managers_found *ret_found)
{
	DIR *dir = opendir(proc);
	char command[COMMAND_MAX + 1];
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir))) {
		char *end;
		uint64_t pid = strtoull(entry->d_name, &end, 10);
		ssize_t length;
		size_t i;

		if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || *end ||
			pid == (uint64_t)getpid())
			continue;
		length = read_command(proc, entry->d_name, command, COMMAND_MAX);
		if (length <= 0)
			continue;
		command[length] = '\0';
		i = which(command, (size_t)length);
		if (i == NR)
			continue;
		*ret_found = (struct managers_found){ managers[i].name, managers[i].what, pid };
		r = 1;
	}
	closedir(dir);
	return r;
}
