/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * smaps: readers for the files of a process in /proc. They take text or a descriptor, so that
 * fixtures can stand in. Any thread.
 */
#ifndef BALLAST_HV_LIBVIRT_SMAPS_H
#define BALLAST_HV_LIBVIRT_SMAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes. */
struct process_status {
	uint64_t resident, shared,
		swapped; /* shared: the part of resident that is shmem or memfd */
};

/* From PROC/PID/status. -EBADMSG: no such lines: a zombie, or no status at all. */
int process_parse_status(const char *text, struct process_status *ret_status);

struct process_guest {
	uint64_t size, resident, swapped; /* of all mappings that are guest memory */
	bool shared;			  /* memfd or a file */
};

/*
 * From PROC/PID/smaps; takes over the descriptor. maximum: the domain's memory. -ENODATA: no
 * mappings fit it; -EBADMSG; errnos of reading.
 */
int process_read_smaps(int fd, uint64_t maximum, struct process_guest *ret_guest);

#endif
