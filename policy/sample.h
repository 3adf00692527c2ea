/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is known about a VM at a moment: one type from the backend to the engine.
 *
 * A figure is a value or unknown: it counts only where its bit is set in known; there is no
 * default. Amounts are pages, counters grow from the VM's boot. The balloon statistics are the
 * guest's word and have one age: with stale set they are last minute's and nobody plans on them.
 */
#ifndef BALLAST_POLICY_SAMPLE_H
#define BALLAST_POLICY_SAMPLE_H

#include "policy/pages.h"

/* Bits of vm_sample.known. */
enum vm_figure {
	/* From the hypervisor and from the host's view of the VM's process. */
	VM_ACTUAL = 1u << 0,   /* what the balloon leaves the guest */
	VM_RESIDENT = 1u << 1, /* guest memory resident on the host */
	VM_SWAPPED = 1u << 2,  /* guest memory that the host swapped out */
	VM_OVERHEAD = 1u << 3, /* what the VM's process uses beside guest memory */
	/* Balloon statistics: the guest's word. */
	VM_UNUSED = 1u << 4,	  /* free in the guest (MemFree) */
	VM_USABLE = 1u << 5,	  /* available without swapping (MemAvailable) */
	VM_DISK_CACHES = 1u << 6, /* page cache */
	VM_SWAP_IN = 1u << 7,	  /* pages swapped in by the guest since its boot */
	/* Lists, from an agent's report. */
	VM_LISTS = 1u << 8,
	/* What it lacks and what it reads again, of the same. */
	VM_LACKS = 1u << 9,
};

#define VM_FIGURES_STATISTICS (VM_UNUSED | VM_USABLE | VM_DISK_CACHES | VM_SWAP_IN)
#define VM_FIGURES_REPORT     (VM_LISTS | VM_LACKS)
#define VM_FIGURES_PROCESS    (VM_RESIDENT | VM_SWAPPED | VM_OVERHEAD)

struct vm_lists {
	uint64_t active_anon, inactive_anon;
	uint64_t active_file, inactive_file;
	uint64_t swap_free; /* of the guest's own swap */
};

struct vm_sample {
	uint64_t id;	    /* the VM's group */
	unsigned int known; /* enum vm_figure */
	bool stale;	    /* the statistics have not moved for three periods */
	uint64_t actual, resident, swapped, overhead;
	/*
	 * The statistics are up to a period older than actual: stats_actual is the largest actual
	 * that they may have been made under. Counted with VM_USABLE and VM_UNUSED.
	 */
	uint64_t stats_actual;
	uint64_t unused, usable, disk_caches, swap_in;
	/* The newest target whose call had returned before this was read; 0: none yet. */
	uint64_t applied_seq;
	/* Last, an agent's report: most have none, and these are not even copied. */
	struct vm_lists lists;
	uint64_t need;	   /* what it says it lacks */
	uint64_t refaults; /* a second: read again after it had been evicted */
};

static inline bool vm_knows(const struct vm_sample *s, unsigned int figures)
{
	return (s->known & figures) == figures;
}

#endif
