/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * managers: whether another program that moves balloons runs on this host. Two that both mean to
 * decide pull every balloon to and fro. Looks at the processes at start and when the configuration
 * is read anew; blocks on /proc only, whose path is given so that a fixture can stand in.
 */
#ifndef BALLAST_HV_BALLASTD_MANAGERS_H
#define BALLAST_HV_BALLASTD_MANAGERS_H

#include <stdint.h>

struct managers_found {
	const char *name; /* static */
	const char *what; /* static: whose it is, for people */
	uint64_t pid;
};

/* 1 with *ret_found: the first one; 0: none. -ENOENT and other errnos: proc cannot be read. */
int managers_find(const char *proc, struct managers_found *ret_found);

#endif
