/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Charging a group: pages to the counters, one reference for each page, in one batch.
 *
 * Two ways in, never both for one leaf. charge_observed(): the planner books what a VM was measured
 * to use; memory that is already used is never refused. charge_try(): who hands out pages asks
 * first, from its own thread, with a reference of its own to the group; it may be refused.
 *
 * charge_try() and uncharge() use atomics only and may run on any thread. When a group's counter
 * is CHARGE_EVENTS_TARGET pages away from what the planner saw, the group is pushed, once, on the
 * tree's dirty list; charge_see_dirty() drains it. So |seen - counter| < CHARGE_EVENTS_TARGET
 * after each drain, but for charges that are under way meanwhile: such a group is on the list anew.
 */
#ifndef BALLAST_POLICY_CHARGE_H
#define BALLAST_POLICY_CHARGE_H

#include "policy/memcg.h"

/* 4 MiB: the kernel looks at soft limits every 1024 events (SOFTLIMIT_EVENTS_TARGET). */
#define CHARGE_EVENTS_TARGET UINT64_C(1024)

/*
 * The leaf is measured to use pages: charges or uncharges the difference, takes or puts as many
 * references, and sees it. Planner only. Also for an offline group, whose pages can only become
 * fewer: -ENODEV where pages is more than it has. -EINVAL: the leaf, or with it the whole tree,
 * would pass PAGES_UNLIMITED. After a failure nothing is changed.
 */
int charge_observed(struct memcg *leaf, uint64_t pages);

/*
 * The same for one of many leaves of a tick: its ancestors follow with memcg_carry(), all at once.
 * Until then their counters lag by what the tick took so far: by so much a max may be passed, or
 * refuse, for who charges from another thread. No counter is below what those threads have charged.
 */
int charge_observed_later(struct memcg *leaf, uint64_t pages);

/*
 * Charges pages to the leaf and up its chain. 0; -EINVAL: 0 pages or over PAGES_UNLIMITED;
 * -ENODEV: the group was killed; -ENOMEM: *ret_refused is the group whose max refuses. After a
 * failure nothing is charged and no reference taken. The caller holds a reference.
 */
int charge_try(struct memcg *leaf, uint64_t pages, struct memcg **ret_refused);

/*
 * Gives back what charge_try() charged. -EINVAL: 0 pages or more than the leaf has. The caller
 * gives back no more than it charged itself: otherwise another's uncharge of the same pages
 * asserts.
 */
int uncharge(struct memcg *leaf, uint64_t pages);

/* Brings seen up to the counters for every group on the dirty list; returns how many. Planner. */
size_t charge_see_dirty(struct memcg_tree *tree);

#endif
