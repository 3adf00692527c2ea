/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What pager.c and fault.c share. A VM belongs to one fault thread from pager_add() to its end. */
#ifndef BALLAST_HV_PAGER_PAGER_INTERNAL_H
#define BALLAST_HV_PAGER_PAGER_INTERNAL_H

#include <poll.h>
#include <pthread.h>

#include "hv/pager/pager.h"

/* Polled before those of the VMs. */
#define PAGER_POLLS_OWN 2
/* Pages that are filled in one go, when the pager ends: 256 KiB. */
#define PAGER_RUN 64

struct pager_wait {
	uint64_t address; /* of the page, in the VMM */
	unsigned int turns;
};

struct pager_vm {
	struct pager_vm *next, *next_of_thread;
	struct pager_thread *thread;
	struct memcg *leaf;	  /* with a reference until it is gone */
	struct memcg *_Atomic to; /* with a reference: it is to be charged there; NULL */
	uint64_t id;
	int uffd, memory, process; /* process: a pidfd; -1 where closed */
	struct pager_region regions[PAGER_REGIONS_MAX];
	size_t nr_regions;
	/* A bit for each page, of all regions one after the other. Dropped: what the file has is no
	 * longer what it was, zeros. */
	uint64_t nr_pages, *charged_pages, *dropped_pages;
	struct pager_wait waiting[PAGER_WAITING_MAX];
	size_t nr_waiting;
	/* Filled right after pages were dropped: these may have gone with them. */
	struct pager_wait doubts[PAGER_DOUBTS_MAX];
	size_t nr_doubts;
	unsigned int doubtful; /* fills that still may be such */
	/* When the pager ends: pages that were looked at, also at the last turn, and turns with
	 * next to none. */
	uint64_t filled, filled_then;
	unsigned int stuck;

	/* Written by its thread, read by the planner. */
	_Atomic uint64_t charged, faults, removed, waited, over, failed;
	_Atomic bool gone, left;
};

struct pager_thread {
	struct pager *pager;
	struct charge_stock *stock;
	pthread_t thread;
	int wake;	      /* eventfd */
	int turns;	      /* timerfd: each PAGER_TURN_MS while there is something to do */
	struct pager_vm *vms; /* its own list */
	struct pager_vm *_Atomic arriving;
	size_t nr_vms;	      /* the planner's count of those it gave */
	struct pollfd *polls; /* wake, turns, and two for each VM there may be */
	unsigned char page[POLICY_PAGE_SIZE], run[PAGER_RUN * POLICY_PAGE_SIZE];
};

struct pager {
	struct memcg_tree *tree;
	struct charge_stocks *stocks;
	struct pager_thread *threads;
	size_t nr_threads, nr_vms;
	struct pager_vm *vms;
	int event;		  /* eventfd: see pager_take() */
	_Atomic uint64_t refused; /* id of a group */
	_Atomic bool ends;
};

/* A fault thread's main, until pager->ends; its VMs are uncharged then, and have all they need. */
void *pager_thread_main(void *arg);

#endif
