/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * guest: one simulated guest, its memory and its balloon, in virtual time.
 *
 * As slow, partial and forgetful as real ones were measured: the balloon moves at a finite speed,
 * takes what is free first and then what the guest's own reclaim frees, stops at what the guest can
 * give, is full size again after a reboot and then races to its old target.
 *
 *	actual = fixed + free + untouched + what is on the lists (memory.h)
 *	maximum = actual + what the balloon holds
 *	usage  = actual - untouched      resident = usage - what the host swapped out
 *
 * Memory is used by works (so much, at a rate, without an end to wait for) and by programs
 * (program.h), which have something to do and take as long as their memory lets them.
 *
 * Pure: no I/O, no clock, no chance (what is drawn is drawn by the caller). Things move on a grid
 * of GUEST_STEP_US, so what happens does not depend on how often guest_advance() is called. The
 * simulator's thread only. Amounts are bytes, multiples of 4 KiB; times virtual microseconds.
 */
#ifndef BALLAST_HV_SIM_GUEST_H
#define BALLAST_HV_SIM_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "hv/sim/memory.h"
#include "hv/sim/program.h"

#define GUEST_PAGE    UINT64_C(4096)
#define GUEST_STEP_US UINT64_C(10000)
#define GUEST_NEVER   UINT64_MAX

/* What is on no list. */
enum guest_kind {
	GUEST_FIXED,	 /* kernel and what never goes */
	GUEST_FREE,	 /* free in the guest, resident on the host: was used once */
	GUEST_UNTOUCHED, /* free in the guest, never touched: costs the host nothing */
	GUEST_KIND_NR,
};

/* The regions that every guest has, of works and of what it uses at the start. */
enum guest_region {
	GUEST_HOT, /* anonymous, touched all the time */
	GUEST_IDLE,
	GUEST_HOT_FILES, /* read again and again */
	GUEST_FILES,	 /* read once; clean */
	GUEST_REGIONS,
};

/* How a guest is made; guest_params_default() has the measured figures. */
struct guest_params {
	uint64_t maximum;
	uint64_t fixed; /* GUEST_FIXED; of it unseen is not even in the guest's MemTotal */
	uint64_t unseen;
	uint64_t reserve;				 /* what the guest's allocator keeps free */
	uint64_t swap;					 /* of the guest's own swap; 0: none */
	uint64_t hot, idle, cache_hot, cache_cold, free; /* at the start; the rest is untouched */
	uint64_t stop; /* the balloon gets no further down than actual of so much, and back up to it
			*/
	uint64_t wobble; /* there it puts back twice as much and takes it again, round and round */
	/* Speeds, bytes a second. */
	uint64_t inflate_free, inflate_cache, inflate_swap, deflate, disk;
	uint64_t freed;	 /* by its own kernel, at an agent's word */
	uint64_t lag_us; /* from a new target to the first page */
	bool balloon;	 /* has the device */
	bool driver;	 /* has the driver, driver_us after its boot; else never */
	uint64_t driver_us;
	bool free_only; /* its statistics tell unused only, as Windows does */
	bool agent;	/* has one: agents.c */
	bool activates; /* its kernel activates what refaults: memory.h */
	bool reporting; /* free page reporting: what is free goes back to the host, at reported */
	uint64_t reported;   /* bytes a second */
	bool deflate_on_oom; /* takes pages back from the balloon when it runs out */
	/*
	 * Asked before pages are touched that were never: how many of so many are there then; who
	 * touches the others waits. NULL: all are.
	 */
	uint64_t (*fault)(void *ctx, uint64_t pages);
	void *fault_ctx;
};

void guest_params_default(struct guest_params *ret_params);

enum guest_state { GUEST_OFF, GUEST_RUNNING, GUEST_PAUSED };

enum guest_work_type {
	GUEST_WORK_GROW,     /* takes memory, keeps it, does not touch it again */
	GUEST_WORK_HOT,	     /* takes memory and touches it all the time */
	GUEST_WORK_STREAM,   /* reads files once */
	GUEST_WORK_HOT_FILE, /* reads files again and again */
	GUEST_WORK_SHRINK,   /* frees anonymous memory, idle first */
};

#define GUEST_WORKS_MAX 8 /* at the same time */

struct guest_work {
	enum guest_work_type type;
	uint64_t left;	  /* bytes */
	uint64_t rate;	  /* bytes a second */
	uint64_t unmoved; /* less than a page: of earlier steps, bytes x microseconds a second */
};

/* Balloon statistics: a picture of the moment taken_at. */
struct guest_stats {
	bool taken;	   /* since the guest runs */
	uint64_t taken_at; /* microseconds */
	uint64_t total;	   /* MemTotal */
	uint64_t unused, usable, disk_caches, swap_in;
	uint64_t lists[MEMORY_LISTS], swapped; /* for an agent to tell */
};

#define GUEST_PROGRAMS_MAX 4

/*
 * The disk that all guests of a host share in equal parts: a stream is one who waits for it. Before
 * a step the host says what a stream gets, and the guest then how many of them it had.
 */
struct guest_disk {
	double rate;	      /* of the disk's time, for one stream: 1 where it is alone */
	bool mixed;	      /* what is read in order is not, for the disk: others are at it */
	unsigned int streams; /* in the last step */
	double write_us; /* of its time, for what was swapped out or paged out and not written */
};

struct guest {
	struct guest_params params;
	enum guest_state state;
	bool stopped;	/* its process stands still: nothing moves, nobody answers */
	uint64_t clock; /* moved until here */
	bool quiet;	/* nothing moves by itself until something is done to it */
	uint64_t kinds[GUEST_KIND_NR];
	struct memory memory;
	uint64_t host_swapped; /* of usage */
	uint64_t target;       /* of actual */
	uint64_t move_at;      /* the driver takes a new target up then */
	uint64_t budget_us;    /* time that the balloon has not used yet */
	bool wobbles_up;       /* at its stop */
	uint64_t driver_at;    /* the driver is there from then on; GUEST_NEVER */
	uint64_t period_us, stats_at;
	struct guest_stats stats;
	uint64_t told_actual, told_at; /* the last balloon event */
	struct guest_work works[GUEST_WORKS_MAX];
	unsigned int nr_works;
	struct program programs[GUEST_PROGRAMS_MAX];
	unsigned int nr_programs;
	struct guest_disk disk;
	double stall_us;      /* that its programs still wait for memory */
	bool faulting;	      /* a page that was touched in this step is not there yet */
	uint64_t dirty_since; /* the oldest dirty page's, about; 0: there is none */
	/* Counters, bytes. */
	uint64_t pressure_us; /* that some task waited for memory it had had, microseconds */
	uint64_t swap_in, host_faults, wanted; /* wanted: asked for and not there */
	uint64_t swapped_most;		       /* by itself and by the host, at one time */
	uint64_t ooms; /* programs that its kernel ended because there was no memory */
};

/* Off. */
void guest_init(struct guest *guest, const struct guest_params *params);
/* Runs, with what params say is used at the start; the driver is there after driver_us. */
void guest_start(struct guest *guest, uint64_t now, uint64_t driver_us);
void guest_off(struct guest *guest);
/* Memory stays resident, the balloon is empty, the driver comes after driver_us. */
void guest_reboot(struct guest *guest, uint64_t now, uint64_t driver_us);
void guest_pause(struct guest *guest, uint64_t now);
void guest_resume(struct guest *guest, uint64_t now);
/* So much more memory, which the balloon does not hold. */
void guest_plug(struct guest *guest, uint64_t bytes);
/* All that it may have becomes resident. */
void guest_touch_all(struct guest *guest);
/* As SIGSTOP and SIGCONT do. */
void guest_stop(struct guest *guest, uint64_t now);
void guest_wake(struct guest *guest, uint64_t now);

/* Moves everything up to now. */
void guest_advance(struct guest *guest, uint64_t now);
/* When something next moves or is to be told; GUEST_NEVER. */
uint64_t guest_next(const struct guest *guest);

/* Capped to the maximum. Returns before anything moves. */
void guest_set_target(struct guest *guest, uint64_t now, uint64_t target);
/* 0: off. */
void guest_set_period(struct guest *guest, uint64_t now, uint64_t period_us);
/* False: GUEST_WORKS_MAX are going on. */
bool guest_work(struct guest *guest, enum guest_work_type type, uint64_t bytes, uint64_t rate);
/* False: GUEST_PROGRAMS_MAX are going on, or it is off. */
bool guest_run(struct guest *guest, const struct program_params *params);
/* Ends all work and all programs; what was hot grows idle. */
void guest_idle(struct guest *guest);
/*
 * The host swaps out at most so much, what is idle; with hot what is in use as well, which is back
 * as soon as the disk lets it. Returns how much.
 */
uint64_t guest_swap_out(struct guest *guest, uint64_t bytes, bool hot);

/* Its own kernel frees so much and the host has it at once: what a rival of ballast does. */
uint64_t guest_shrink(struct guest *guest, struct memory_reclaim *how);

/* Its own kernel frees so much, at an agent's word; anon: to its swap too. Returns how much. */
uint64_t guest_free_inside(struct guest *guest, uint64_t bytes, bool anon);

/* At most so much of what is free in it is the host's again; returns how much. */
uint64_t guest_report_free(struct guest *guest, uint64_t bytes);

/* True once for each balloon event: at most one a second, the last value always comes. */
bool guest_take_balloon_event(struct guest *guest, uint64_t now, uint64_t *ret_actual);

uint64_t guest_actual(const struct guest *guest);
uint64_t guest_usage(const struct guest *guest);
uint64_t guest_resident(const struct guest *guest);
uint64_t guest_idle_memory(const struct guest *guest); /* of usage, not swapped out by the host */
uint64_t guest_region(const struct guest *guest, enum guest_region region); /* resident in it */
uint64_t guest_majfaults(const struct guest *guest); /* of all its programs */
void guest_stats_now(const struct guest *guest, struct guest_stats *ret_stats);

#endif
