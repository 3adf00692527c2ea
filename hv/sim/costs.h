/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * costs: what things cost on the simulated machine, each with its published source. Nothing else
 * may hold such a figure. They were fixed before any experiment ran on them, and tests/bench keeps
 * a checksum of this file: no figure here is ever fitted to a result.
 *
 * Times are microseconds unless the name says otherwise, amounts bytes.
 */
#ifndef BALLAST_HV_SIM_COSTS_H
#define BALLAST_HV_SIM_COSTS_H

/*
 * A disk of 7200 rpm: Seagate Barracuda 7200.14 (ST1000DM003), data sheet DS1737: average read seek
 * under 8.5 ms, average latency 4.16 ms, 156 MB/s on average over the disk.
 */
#define COSTS_SEEK_US	       12660
#define COSTS_DISK_BYTES_PER_S 156000000

/* Linux reads ahead, and around a mapped page, this much: VM_MAX_READAHEAD, include/linux/mm.h. */
#define COSTS_READAHEAD (128 * 1024)
/* One read from swap brings 2^page-cluster pages, 3 by default: Documentation/sysctl/vm.txt. */
#define COSTS_SWAP_CLUSTER (8 * 4096)
/* Pages reclaimed in one go: SWAP_CLUSTER_MAX, include/linux/swap.h. */
#define COSTS_RECLAIM_BATCH (32 * 4096)

/*
 * A minor fault with its zeroed page, nanoseconds: the first document's kernel builds took 70 s of
 * system time for 37 million of them (soft-limit-rework-v5.1, test 1), everything else included.
 */
#define COSTS_MINOR_FAULT_NS 1900

/* Copying into or out of the page cache, bytes a second: STREAM copy of one core, 2013, 6 GB/s. */
#define COSTS_COPY_BYTES_PER_S UINT64_C(6000000000)
/* A write of 1 KiB into the page cache: 86 s of system time for 32 GiB (the same, test 2). */
#define COSTS_WRITE_BYTES_PER_S 390000000

/* gzip -6 of mixed text, bytes read a second: zlib -6 on silesia in lzbench, 36 MB/s. */
#define COSTS_GZIP_BYTES_PER_S 36000000

/*
 * The kernel starts to write dirty pages at 10 % of what is usable or after 30 s, and makes writers
 * wait from 20 % on: vm.dirty_* in Documentation/sysctl/vm.txt.
 */
#define COSTS_DIRTY_BACKGROUND_PERCENT 10
#define COSTS_DIRTY_PERCENT	       20
/* Part of reclaim that falls on anonymous memory, of 200: vm.swappiness, the same. */
#define COSTS_SWAPPINESS 60

/*
 * A kernel reclaims below the low watermark up to the high one: 1.25 and 1.5 times
 * min_free_kbytes, which is 4 * sqrt(lowmem in KiB) KiB (mm/page_alloc.c).
 */
#define COSTS_MIN_FREE_FACTOR 4

#endif
