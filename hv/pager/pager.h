/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pager: resolves the page faults of microVMs, and charges each page to the VM's group.
 *
 * A VMM that restores a snapshot hands over its guest memory's userfaultfd and layout on a UNIX
 * socket, as Firecracker documents it for snapshots (docs/snapshotting/handling-page-faults-on-
 * snapshot-resume.md): one message with a JSON list of regions, and the descriptor. Fault threads
 * then fill pages from the snapshot's memory file, or with zeros where the balloon dropped what was
 * there (remove events) and where there is no file. Each page is charged with charge_try() before
 * it is filled, from the thread's own stock, and uncharged when it is dropped or the VMM's process
 * is gone. A fault over a max waits PAGER_WAIT_TURNS for room and is then let through, charged
 * over: a VM is neither killed nor hung.
 *
 * Never: reads a guest's memory, decides a limit, makes or frees a group. All calls but those of
 * the fault threads are the planner's. Amounts are pages of 4 KiB.
 */
#ifndef BALLAST_HV_PAGER_PAGER_H
#define BALLAST_HV_PAGER_PAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/charge.h"

/* Firecracker has two regions at most on x86 (around the gap below 4 GiB); others a few more. */
#define PAGER_REGIONS_MAX 16
/* The message with the layout; two of Firecracker's regions are 300 bytes. */
#define PAGER_MESSAGE_MAX 4096
/* Of all regions of a VM: 1 TiB. */
#define PAGER_PAGES_MAX	  (UINT64_C(1) << 28)
#define PAGER_THREADS_MAX 16
#define PAGER_VMS_MAX	  1024
/* Faults of a VM that wait for room; more are let through at once. A vCPU has one. */
#define PAGER_WAITING_MAX 256
/* A turn is 10 ms: a second, in which a balloon gives some tens of MiB. */
#define PAGER_TURN_MS	 10
#define PAGER_WAIT_TURNS 100
/*
 * A page that one thread of a VMM drops while another faults it in may go after it was filled, and
 * no event says so. That happens while the event of the drop is under way, to what is filled first
 * after it: so many pages of each drop are looked at again after a tenth of a second, in which a
 * thread that drops has long done so. What is counted is there then. Of a VM so many wait for that
 * at a time; what is missed stays counted until it is touched, dropped again, or the VM ends: too
 * much, and never too little.
 */
#define PAGER_DOUBTFUL	  8
#define PAGER_DOUBT_TURNS 10
#define PAGER_DOUBTS_MAX  512

struct pager_region {
	uint64_t base; /* in the VMM, bytes */
	uint64_t pages;
	uint64_t offset; /* in the memory file, bytes */
};

/*
 * The layout: [{"base_host_virt_addr": n, "size": n, "offset": n, "page_size": 4096}, ...]; other
 * members are left alone, page_size may be absent (older: "page_size_kib", which has had bytes in
 * it, too). -EINVAL: anything else, also regions that overlap or are not of whole pages; *ret_why
 * says what, in words.
 */
int pager_parse(const char *text, size_t size, struct pager_region *ret_regions, size_t *ret_nr,
	const char **ret_why);

/* What came on a socket. */
struct pager_hello {
	int uffd;    /* the caller's */
	int process; /* the VMM's pidfd: the caller's */
	pid_t pid;
	struct pager_region regions[PAGER_REGIONS_MAX];
	size_t nr_regions;
};

/*
 * Reads one message, without waiting. -EAGAIN: none is there yet; -EINVAL with *ret_why: not the
 * protocol; other errors of recvmsg().
 */
int pager_receive(int socket, struct pager_hello *ret_hello, const char **ret_why);

struct pager;

/* Starts nr threads, each with a stock of the tree's. -EINVAL, -ENOMEM, -EEXIST: has stocks. */
int pager_new(struct memcg_tree *tree, size_t nr, struct pager **ret_pager);
/*
 * Ends the threads. VMs that still run get all of their memory from their files first, which may
 * take minutes, and have their faults from the kernel then. They are uncharged here, as nobody can
 * charge them any more. Of one that can hardly be filled for 10 s in all, as its cgroup has no room
 * or it drops pages in many threads, what it lacks stays away. Takes NULL.
 */
void pager_free(struct pager *pager);

/* Becomes readable when there is something for pager_take(). */
int pager_fd(const struct pager *pager);

/*
 * From now on the leaf is charged for that VM; NULL: nobody is, to compare with. memory: its file,
 * -1: zeros only. Takes over uffd and memory, and takes a reference to the leaf. Not charged: pages
 * that are there already, as the VMM hands over memory that is empty. -EINVAL with *ret_why: the
 * file is too small, or uffd is no userfaultfd, or one that blocks; -ENOSPC; -ENODEV: the group is
 * killed, or the process gone; -ENOMEM, -EMFILE, -ENFILE. After a failure both descriptors are the
 * caller's still, as the process's is in any case.
 */
int pager_add(struct pager *pager, struct memcg *leaf, const struct pager_hello *hello, int memory,
	const char **ret_why);

/*
 * The same, charged to nobody until it is moved to a group. id: what it is called until then, no
 * group's and no other's.
 */
int pager_serve(struct pager *pager, uint64_t id, const struct pager_hello *hello, int memory,
	const char **ret_why);

/*
 * From now on the VM that was charged to the leaf of that id is charged to another: all that it has
 * is uncharged there and charged here, over a max where it must, and counted by the new id.
 * -ENOENT; -ENODEV: the new group is killed.
 */
int pager_move(struct pager *pager, uint64_t id, struct memcg *leaf);

struct pager_counts {
	uint64_t charged; /* pages that it has */
	uint64_t faults, removed;
	uint64_t waited; /* faults that waited for room */
	uint64_t over;	 /* pages that were charged over a max */
	uint64_t failed; /* pages that the file could not fill: an error for who touches them */
	bool gone;	 /* the process is gone and all is uncharged */
	/* It has memory that it did not tell, which is zeros and not charged, or some that cannot
	 * be filled by the page: its faults are the kernel's then. */
	bool left;
};

/* By the leaf's id. -ENOENT. One that is gone is forgotten with this call. */
int pager_counts(struct pager *pager, uint64_t id, struct pager_counts *ret_counts);

/* The group that refused last, for which room is to be made; 0: none since the last call. */
uint64_t pager_take(struct pager *pager);

#endif
