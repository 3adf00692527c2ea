/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* linux_text: see linux_text.h. */
#include <config.h>

#include "guest-agent/linux_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KIB UINT64_C(1024)

/* Lines in any order, with or without a unit. */
uint64_t linux_number(const char *text, const char *key)
{
	size_t length = strlen(key);
	const char *at = text;
	uint64_t number;

	for (; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
		if (strncmp(at, key, length) || !strchr(" \t:", at[length]) || !at[length])
			continue;
		at += length + strspn(at + length, ": \t");
		if (*at < '0' || *at > '9')
			return 0;
		errno = 0;
		number = strtoull(at, NULL, 10);
		return errno == 0 ? number : 0;
	}
	return 0;
}

static uint64_t scaled(const char *text, const char *key, uint64_t unit)
{
	uint64_t number = linux_number(text, key);

	return number > PROTOCOL_NUMBER_MAX / unit ? PROTOCOL_NUMBER_MAX : number * unit;
}

uint64_t linux_kib(const char *text, const char *key)
{
	return scaled(text, key, KIB);
}

uint64_t linux_pages(const char *text, const char *key, uint64_t page)
{
	return scaled(text, key, page);
}

uint64_t linux_sum(uint64_t a, uint64_t b)
{
	return a > PROTOCOL_NUMBER_MAX || b > PROTOCOL_NUMBER_MAX - a ? PROTOCOL_NUMBER_MAX : a + b;
}

uint64_t linux_stall(const char *text, const char *kind)
{
	const char *line = strstr(text, kind);
	const char *total = line ? strstr(line, "total=") : NULL;

	return total ? strtoull(total + strlen("total="), NULL, 10) : 0;
}

/* MemAvailable came with Linux 3.14; what is free, file pages that are no shared memory, slab. */
static void take_available(const char *text, struct agent_guest *g)
{
	uint64_t cached = linux_kib(text, "Cached"), shmem = linux_kib(text, "Shmem");

	g->available = linux_kib(text, "MemAvailable");
	g->estimated = !strstr(text, "MemAvailable:");
	if (g->estimated)
		g->available = linux_sum(linux_sum(g->free, cached > shmem ? cached - shmem : 0),
			linux_sum(linux_kib(text, "Buffers"), linux_kib(text, "SReclaimable")));
	if (g->available > g->total)
		g->available = g->total;
}

int linux_take_meminfo(const char *text, struct agent_guest *g)
{
	uint64_t total = linux_kib(text, "MemTotal");

	if (!total)
		return -EBADMSG;
	g->total = total;
	g->free = linux_kib(text, "MemFree");
	take_available(text, g);
	g->active_anon = linux_kib(text, "Active(anon)");
	g->inactive_anon = linux_kib(text, "Inactive(anon)");
	g->active_file = linux_kib(text, "Active(file)");
	g->inactive_file = linux_kib(text, "Inactive(file)");
	g->reclaimable = linux_kib(text, "SReclaimable");
	g->swap_free = linux_kib(text, "SwapFree");
	return 0;
}

/* The kinds apart since Linux 5.9. */
uint64_t linux_refaults(const char *text, uint64_t page)
{
	return linux_sum(linux_sum(linux_pages(text, "workingset_refault_file", page),
				 linux_pages(text, "workingset_refault_anon", page)),
		linux_pages(text, "workingset_refault", page));
}

void linux_take_vmstat(const char *text, uint64_t page, struct agent_guest *g)
{
	g->refaults = linux_refaults(text, page);
	g->swapins = linux_pages(text, "pswpin", page);
}

void linux_take_pressure(const char *text, struct agent_guest *g)
{
	g->psi_some_us = linux_stall(text, "some");
	g->psi_full_us = linux_stall(text, "full");
}

uint64_t linux_restores(const char *text, uint64_t page)
{
	return linux_sum(linux_pages(text, "workingset_restore_file", page),
		linux_pages(text, "workingset_restore_anon", page));
}

uint64_t linux_stolen(const char *text, uint64_t page)
{
	return linux_sum(
		linux_pages(text, "pgsteal_file", page), linux_pages(text, "pgsteal_anon", page));
}

/* Of the whole guest pressure is no group's own; what the agent waits itself is in it. */
void linux_whole_guest(
	const struct agent_guest *guest, uint64_t restores, struct agent_group *ret_group)
{
	*ret_group = (struct agent_group){ .id = 1,
		.name = "/",
		.active_anon = guest->active_anon,
		.inactive_anon = guest->inactive_anon,
		.active_file = guest->active_file,
		.inactive_file = guest->inactive_file,
		.current = guest->total > guest->free ? guest->total - guest->free : 0,
		.refaults = guest->refaults,
		.restores = restores };
}
