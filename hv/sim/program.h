/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * program: what a simulated guest has to do. A program has an amount of work and takes as long as
 * its processors, its disk and its memory let it, so that how long it took, how often it waited for
 * a page and what was swapped can be compared.
 *
 * stream: reads files once, or writes one; dd.
 * mem_eater: faults its memory in, in 100 chunks with a nap of a second after each, and frees it.
 * kbuild: many short processes over a shared tree: hot headers, cold objects, peaks.
 * gzip: one file from its beginning to its end again and again, bound by the processor.
 * diurnal: a working set that rises and falls with the time of the day.
 * trace: a working set as a file says.
 *
 * What things cost is in costs.h. Pure, copyable by value; a guest's own (guest.h) is the caller.
 * Amounts are bytes, times virtual microseconds.
 */
#ifndef BALLAST_HV_SIM_PROGRAM_H
#define BALLAST_HV_SIM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guest;

#define PROGRAM_JOBS_MAX 16
/* Of a trace; a week by the minute. */
#define PROGRAM_POINTS_MAX 10080

enum program_type {
	PROGRAM_STREAM,
	PROGRAM_MEM_EATER,
	PROGRAM_KBUILD,
	PROGRAM_GZIP,
	PROGRAM_DIURNAL,
	PROGRAM_TRACE,
};

const char *program_name(enum program_type type);

/* A working set from that time on, until the next point. */
struct program_point {
	uint64_t time, bytes;
};

struct program_params {
	enum program_type type;
	uint64_t bytes;	       /* of a stream or file in all, of memory; diurnal: at noon */
	uint64_t low;	       /* diurnal: at midnight */
	unsigned int parallel; /* streams, jobs */
	unsigned int
		times; /* gzip: runs that are measured, after one that is not; kbuild: objects */
	unsigned int cpus;  /* kbuild: processors; 0: one for each job */
	bool write;	    /* a stream that writes */
	uint64_t period_us; /* diurnal: a day */
	uint64_t seed;
	const struct program_point *points; /* borrowed */
	size_t nr_points;
};

/* One compiler of kbuild. */
struct program_job {
	bool runs;
	unsigned int region;
	uint64_t peak, has;	/* anonymous memory */
	double cpu_us, done_us; /* of its processor's time */
	double wait_us;		/* of the disk's time, still */
	double missing;		/* bytes it touched that were out, not yet faulted in */
};

struct program {
	struct program_params params;
	uint64_t begun, measured, ended; /* measured: from when on; ended 0: it goes on */
	bool killed;			 /* by its guest, out of memory */
	double done;			 /* bytes, objects or chunks */
	double wait_us, missing;
	uint64_t starved_us; /* it got none of the memory it asked for, since */
	unsigned int region; /* of its own */
	uint64_t nap_until;
	uint64_t random;
	struct program_job jobs[PROGRAM_JOBS_MAX];
	unsigned int begun_jobs;
	double faults; /* major ones: reads of the disk that a touched page waited for */
};

void program_start(
	struct program *program, struct guest *guest, const struct program_params *params);
/* One step of the guest's, which ends now. False: it is over. */
bool program_step(struct program *program, struct guest *guest);
/* Gives its memory back; what is in the page cache stays there. */
void program_end(struct program *program, struct guest *guest);

/* How long its measured part took, of several runs one; 0: it goes on. */
uint64_t program_elapsed_us(const struct program *program);

#endif
