/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memory: the used pages of a guest as its kernel sees them: four lists, active and inactive,
 * anonymous and file, and what each page belongs to.
 *
 * Pages are not modelled one by one. A region is memory with one use and one way of being touched;
 * an extent is a run of a region's pages that came onto a list together, and a list is a queue of
 * extents, the oldest at the tail. Referenced bits are not kept but computed when reclaim looks: a
 * region counts how often each of its pages was touched so far (its clock), an extent remembers
 * what the clock was when it came onto its list, and the difference says what part of the extent
 * was touched since. So touching costs nothing by the page, and looking costs by the extent.
 *
 * Reclaim is the kernel's: inactive pages first, referenced ones go round once more, active ones
 * become inactive when the inactive list is low, dirty ones have to be written before they go,
 * anonymous ones need swap. Where it is ordered at priority 0, anonymous memory and page cache are
 * scanned alike, for as long as it takes.
 *
 * Pure, copyable by value, no allocation; guest.c is the caller. Amounts are bytes, whole pages.
 */
#ifndef BALLAST_HV_SIM_MEMORY_H
#define BALLAST_HV_SIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define MEMORY_PAGE    UINT64_C(4096)
#define MEMORY_REGIONS 32
/* When there is no more room, extents of one region on one list become one. */
#define MEMORY_EXTENTS 384
/* Runs of evicted pages that are remembered; the oldest are forgotten, as shadow entries are. */
#define MEMORY_SHADOWS 64
#define MEMORY_NONE    UINT16_MAX

enum memory_list {
	MEMORY_INACTIVE_FILE,
	MEMORY_ACTIVE_FILE,
	MEMORY_INACTIVE_ANON,
	MEMORY_ACTIVE_ANON,
	MEMORY_LISTS,
};

enum memory_use {
	MEMORY_UNUSED,
	MEMORY_ONCE,   /* file pages read or written once: when gone they are not missed */
	MEMORY_MAPPED, /* file pages that are touched here and there, as text and headers are */
	MEMORY_CYCLIC, /* a file that is read from its beginning to its end, again and again */
	MEMORY_ANON,   /* anonymous, touched here and there */
};

struct memory_region {
	enum memory_use use;
	uint64_t size;		/* of a cyclic file */
	uint64_t position;	/* where the next read of a cyclic file begins */
	uint64_t resident, out; /* out: not there, and missed when they are touched */
	uint64_t fresh; /* of out: never read yet: whole files, or the end of a cyclic one */
	bool still;	/* nobody touches it: idle, whatever list it is on */
	double clock;	/* touches of each page so far; reads of a cyclic file */
	double rate;	/* touches a second that go on by themselves */
};

struct memory_extent {
	uint16_t prev, next; /* prev: newer */
	uint8_t region, list;
	bool dirty;
	uint8_t need;		/* of a cyclic file: reads until it is active */
	uint64_t bytes, offset; /* offset: of a cyclic file */
	double clock;
};

/* What was evicted of a cyclic file, and how old the lists were then. */
struct memory_shadow {
	uint8_t region;
	uint64_t offset, bytes, age;
};

struct memory {
	struct memory_region regions[MEMORY_REGIONS];
	struct memory_extent extents[MEMORY_EXTENTS];
	uint16_t head[MEMORY_LISTS], tail[MEMORY_LISTS], free, nr_free;
	uint64_t sums[MEMORY_LISTS];
	uint64_t dirty;
	double now; /* seconds: of the regions' own rates */
	/*
	 * The kernel activates what refaults while the active list is longer than what was evicted
	 * and activated meanwhile (mm/workingset.c, Linux 3.15), and while that happens no active
	 * list is too short to be deactivated (inactive_list_is_low(), Linux 4.14).
	 */
	bool activates;
	uint64_t age, activated, activated_seen; /* bytes; age: file pages evicted or activated */
	struct memory_shadow shadows[MEMORY_SHADOWS]; /* oldest first */
	unsigned int nr_shadows;
	/* Counters, bytes. restores: of refaults, those of what is touched all the time. */
	uint64_t swapped, swapped_most, swap_outs, refaults, restores, pageouts;
	bool met_dirty; /* reclaim met dirty pages: they are to be written */
};

void memory_init(struct memory *m);

/* A region of that use; there are MEMORY_REGIONS, and asking for more is the caller's fault. */
unsigned int memory_region_new(struct memory *m, enum memory_use use);
/* All of it is gone, swap included; returns what was resident. */
uint64_t memory_region_drop(struct memory *m, unsigned int region);

uint64_t memory_used(const struct memory *m); /* on the four lists */

/* Of it, what nobody touches, as far as a host can see. */
uint64_t memory_idle(const struct memory *m);

/* New pages, for which the caller has room. active: as if they had been touched for long. */
void memory_add(struct memory *m, unsigned int region, uint64_t bytes, bool active, bool dirty);
/* At most so much of what is resident, oldest first, is freed; returns how much. */
uint64_t memory_remove(struct memory *m, unsigned int region, uint64_t bytes);
/* At most so much of what is out is wanted no more; returns how much. */
uint64_t memory_forget(struct memory *m, unsigned int region, uint64_t bytes);

/* Each page of it was touched so often; what of it is out is what memory_missing() says, bytes. */
void memory_touch(struct memory *m, unsigned int region, double touches);
double memory_missing(const struct memory *m, unsigned int region, double touches);
/* So much of what is out is back, and was touched; the caller has room for it. */
void memory_fault_in(struct memory *m, unsigned int region, uint64_t bytes);

/*
 * A cyclic file: of the next bytes at its position, how much is not there. memory_read() reads
 * them: what was there is touched, what was not comes in, for which the caller has room.
 */
uint64_t memory_read_missing(const struct memory *m, unsigned int region, uint64_t bytes);
void memory_read(struct memory *m, unsigned int region, uint64_t bytes);

struct memory_reclaim {
	uint64_t bytes;	     /* wanted */
	uint64_t swap;	     /* what swap may hold in all; 0: there is none */
	bool priority_0;     /* both kinds alike, dirty pages are written on the way */
	uint64_t scan;	     /* looks at so much in all, and no longer than that; 0: as needed */
	uint64_t file, anon; /* what was freed of each */
};
/* Returns what was freed, at most bytes. */
uint64_t memory_reclaim(struct memory *m, struct memory_reclaim *how);
/* What reclaim could free at most. */
uint64_t memory_reclaimable(const struct memory *m, uint64_t swap);

/* At most so many dirty bytes are written, oldest first; returns how many. */
uint64_t memory_write(struct memory *m, uint64_t bytes);

#endif
