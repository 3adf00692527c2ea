/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What program.c and the programs with a file of their own share. For nobody else. */
#ifndef BALLAST_HV_SIM_PROGRAM_INTERNAL_H
#define BALLAST_HV_SIM_PROGRAM_INTERNAL_H

#include "hv/sim/guest_internal.h"

uint64_t program_draw(struct program *program, uint64_t least, uint64_t most);

/* The disk's time for one read, where nobody else is at it; in_order: it follows the one before. */
double program_request_us(const struct guest *guest, uint64_t bytes, bool in_order);

/*
 * Each page of a region is touched so often; what was out is read, and counted as major faults.
 * *missing: bytes that were touched and not read yet, less than a page. Returns how long it waits.
 */
double program_fault(struct guest *guest, struct program *program, unsigned int region,
	double *missing, double touches);

/* New pages of the region; returns how much there was room for. */
uint64_t program_allocate(struct program *program, struct guest *guest, unsigned int region,
	uint64_t bytes, bool dirty);

/* The region and its memory are given back to the guest. */
void program_drop(struct guest *guest, unsigned int region);

/* ---- program_kbuild.c ---- */

void kbuild_start(struct program *program, struct guest *guest);
/* So much of a processor's time for each job. False: it is over. */
bool kbuild_step(struct program *program, struct guest *guest, double us);
void kbuild_end(struct program *program, struct guest *guest);

#endif
