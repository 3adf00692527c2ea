/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A Xen of our own behind the backend's table of calls: domains that tests make up, guests whose
 * balloons obey, a xenstore with transactions and watches, calls that fail or hang on demand. One
 * in a process; fake_xen_reset() makes it new. Its state is locked: tests and the backend's threads
 * use it at the same time.
 *
 * Guests move when the hypervisor is looked at: a step each time.
 */
#ifndef BALLAST_TESTS_FAKE_XEN_H
#define BALLAST_TESTS_FAKE_XEN_H

#include "hv/hv.h"
#include "hv/xen/calls.h"

struct fake_guest {
	uint32_t domid;
	bool there; /* the hypervisor has it */
	uint8_t uuid[16];
	uint32_t flags, cpupool;
	uint64_t tot_kib, max_kib, offset_kib;
	bool balloon;	   /* its driver obeys */
	uint64_t step_kib; /* that much each look; 0: all of the way */
	uint64_t hog_kib;  /* what it cannot give: it stops there and gives up... */
	bool stuck;	   /* ...until another target is written */
	uint64_t obeyed_kib;
	bool hangs; /* hypercalls about it alone do */
	unsigned int moves;
	unsigned int reads; /* of what it may write */
};

extern const struct xen_calls fake_xen_calls;

void fake_xen_reset(void);
/* One more running domain with that memory, its store and its balloon. */
struct fake_guest *fake_xen_add(const char *name, uint64_t kib, uint64_t static_max_kib);
struct hv_uuid fake_xen_uuid(const struct fake_guest *guest);
/* Its domain goes, with its path where store is said; the same uuid under a new domid comes. */
void fake_xen_destroy(struct fake_guest *guest, bool store);
void fake_xen_reboot(struct fake_guest *guest);
void fake_xen_lock(void);
void fake_xen_unlock(void);

/* As others on the host do; value NULL: it is removed. */
void fake_xen_write(const char *path, const char *value);
/* False: it is not there. text has 256 bytes, and gets no more. */
bool fake_xen_read(const char *path, char *text);
/* As the guest does: 0 or what xenstored says, EACCES, ENOENT, or ENOSPC beyond its quota. */
int fake_xen_guest_write(
	struct fake_guest *guest, const char *path, const char *value, size_t length);
int fake_xen_guest_remove(struct fake_guest *guest, const char *path);
/* Watches that all connections have of paths with that at their end. */
unsigned int fake_xen_nr_watches(const char *end);
/* How many nodes are below the path, itself counted. */
unsigned int fake_xen_count(const char *path);

/* All connections break and none can be made; false: they can again. */
void fake_xen_break(bool broken);
/* The nth commit from now takes effect, and all connections break before it is answered. */
void fake_xen_lose_nth(unsigned int nth);
/* Makes what hangs go on. */
void fake_xen_release(void);
/* Each commit of a transaction is refused so many times. */
void fake_xen_contend(unsigned int times);
/* Every other commit is answered so much later: others' overtake it. */
void fake_xen_late(unsigned int us);
/* The nth call from now on that can fail does, with that errno, and no other; whether it came so.
 */
void fake_xen_fail_nth(unsigned int nth, int error);
bool fake_xen_failed_nth(void);
/* Every write fails with that errno; 0: none. */
void fake_xen_refuse(int error);
/* Right before the nth write from now: the domain goes. */
void fake_xen_destroy_before_write(struct fake_guest *guest);
unsigned int fake_xen_nr_handles(void);
void fake_xen_host(uint64_t total_kib, uint64_t free_kib, uint64_t claimed_kib);
/* What was changed, in order: "max 1 263168;target 1 131072;". Valid until the next change. */
const char *fake_xen_changes(void);
void fake_xen_forget_changes(void);

#endif
