/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * linux_text: what Linux's own files say of a guest's memory: /proc/meminfo, /proc/vmstat,
 * /proc/pressure/memory, memory.stat. For who reads them inside the guest (linux.c) and for the
 * host, where QEMU's guest agent hands them over: there they may be anything.
 *
 * Pure functions over a text that ends with a 0; any thread. A figure that is not told, or is none,
 * is 0; none that is in bytes, a sum or not, is over PROTOCOL_NUMBER_MAX. page: bytes of a page of
 * that kernel's, in which it counts.
 */
#ifndef BALLAST_GUEST_AGENT_LINUX_TEXT_H
#define BALLAST_GUEST_AGENT_LINUX_TEXT_H

#include "guest-agent/agent.h"

/* The number behind key, which begins a line: as it stands, of KiB or pages in bytes. */
uint64_t linux_number(const char *text, const char *key);
uint64_t linux_kib(const char *text, const char *key);
uint64_t linux_pages(const char *text, const char *key, uint64_t page);

uint64_t linux_sum(uint64_t a, uint64_t b);

/* total= of the line that begins with kind ("some", "full"), microseconds. */
uint64_t linux_stall(const char *text, const char *kind);

/* What each file tells of the guest. -EBADMSG: it does not tell how large the guest is. */
int linux_take_meminfo(const char *text, struct agent_guest *guest);
void linux_take_vmstat(const char *text, uint64_t page, struct agent_guest *guest);
void linux_take_pressure(const char *text, struct agent_guest *guest);

/*
 * Bytes since its start: of vmstat or memory.stat, read again, and of that what had been active; of
 * vmstat, freed by the kernel.
 */
uint64_t linux_refaults(const char *text, uint64_t page);
uint64_t linux_restores(const char *text, uint64_t page);
uint64_t linux_stolen(const char *text, uint64_t page);

/* The guest as one group, for one whose tasks are in none, or cannot be looked at one by one. */
void linux_whole_guest(
	const struct agent_guest *guest, uint64_t restores, struct agent_group *ret_group);

#endif
