/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Charging a group: pages to the counters, one reference for each page, in one batch.
 *
 * Two ways in, never both for one leaf. charge_observed(): the planner books what a VM was measured
 * to use; memory that is already used is never refused. charge_try(): who hands out pages asks
 * first, from its own thread, with a reference of its own to the group; it may be refused.
 *
 * charge_try() and what is below it use atomics only and may run on any thread. When a group's
 * counter is CHARGE_EVENTS_TARGET pages away from what the planner saw, the group is pushed, once,
 * on the tree's dirty list. charge_drain() empties that into what the next tick reads. So
 * |seen - counter| < CHARGE_EVENTS_TARGET after each drain, but for charges that are under way
 * meanwhile: such a group is on the list anew.
 *
 * Stocks. A thread that charges owns a stock: pages that are charged to a few groups, with their
 * references, and handed out by nobody yet. A charge from it, and an uncharge to it, write nothing
 * that another thread looks at; it is refilled, and given back, a batch at a time
 * (coalescing-css-get-put: the reference goes with the charge). A counter is thus ahead of what is
 * really used by at most CHARGE_BATCH a group of each stock.
 *
 * The others' stocks never are why a charge is refused: it is -EAGAIN then, and they are asked to
 * give back. Each owner does at its next charge or uncharge, and has to call charge_stock_serve()
 * before it blocks and charge_stock_idle() when it has nothing to do; nobody waits. From the
 * request until whoever made it has its answer no stock is refilled, so that the next try is a fair
 * one.
 */
#ifndef BALLAST_POLICY_CHARGE_H
#define BALLAST_POLICY_CHARGE_H

#include <stddef.h>

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
 * The planner's figure of a leaf that others charge, as memcg_see_later(). Where it is an events
 * target away from the counter of one that is online, the next drain tells of it. -EINVAL: the tree
 * would pass PAGES_UNLIMITED; then it is as it was.
 */
int charge_see_later(struct memcg *leaf, uint64_t pages);

/* Pages a refill charges: the kernel's MEMCG_CHARGE_BATCH. */
#define CHARGE_BATCH UINT64_C(64)
/* Groups a stock has pages of at once; the one not charged for longest makes room. */
#define CHARGE_STOCK_GROUPS 4
/* Threads that charge; who asks for their stocks looks at each. */
#define CHARGE_STOCKS_MAX 256

struct charge_stocks;

enum charge_stock_state {
	CHARGE_STOCK_ACTIVE, /* may have pages */
	CHARGE_STOCK_ASKED,  /* is to give them back */
	CHARGE_STOCK_IDLE,   /* has none; the owner is away */
};

/* One a thread. Only state is looked at by others: what a hit reads is one cache line. */
struct charge_stock {
	_Alignas(128) _Atomic uint64_t state; /* enum charge_stock_state */
	struct {
		struct memcg *leaf; /* with 0 pages it may be gone: compare only */
		uint64_t pages;
	} slots[CHARGE_STOCK_GROUPS]; /* charged last first */
	struct charge_stocks *stocks;
	bool hungry; /* asked for the others' stocks and has no answer yet */
};

/*
 * nr stocks, all idle, for the threads that charge to this tree; to it once. Planner. -ENOMEM;
 * -EINVAL: none or more than CHARGE_STOCKS_MAX; -EEXIST. Freed by the tree's owner, before the
 * tree, when all threads have ended: asserts that each stock is idle. NULL is nothing to free.
 */
int charge_stocks_new(struct memcg_tree *tree, size_t nr, struct charge_stocks **ret_stocks);
void charge_stocks_free(struct charge_stocks *stocks);
/* The nth; at one time it belongs to one thread. Asserts that there is one. */
struct charge_stock *charge_stocks_get(struct charge_stocks *stocks, size_t n);

/*
 * Charges pages to the leaf and up its chain, from the stock where that has them; more than a batch
 * goes past it. 0; -EINVAL: 0 pages or over PAGES_UNLIMITED; -ENODEV: the group was killed;
 * -EAGAIN: others' stocks were asked for and not all are back: try again, as it is; who wants it
 * no longer goes idle; -ENOMEM: *ret_refused is the group whose max
 * refuses (its memory outlives the caller's reference to the leaf). After a failure nothing is
 * charged and no reference taken. The caller holds a reference.
 */
int charge_try(
	struct charge_stock *stock, struct memcg *leaf, uint64_t pages, struct memcg **ret_refused);

/*
 * Gives back what was charged; small amounts to the stock. -EINVAL: 0 pages or more than the leaf
 * has. The caller gives back no more than it charged itself: otherwise another's uncharge of the
 * same pages asserts. The pages' references may be put early: to use the leaf, have one's own.
 */
int uncharge(struct charge_stock *stock, struct memcg *leaf, uint64_t pages);

/* Gives the stock back where that was asked for. Before the owner blocks. */
void charge_stock_serve(struct charge_stock *stock);
/* Gives all back, and asks for nothing more. When the owner has nothing to do, and when it ends.
 * The next charge wakes it. */
void charge_stock_idle(struct charge_stock *stock);

/*
 * charge_try() and uncharge() without a stock. Where stocks have the pages, this may be refused for
 * it. charge_over() charges past every max, and fails (-EINVAL) only where a counter would pass
 * PAGES_UNLIMITED; -ENODEV as above.
 */
int charge_direct(struct memcg *leaf, uint64_t pages, struct memcg **ret_refused);
int charge_over(struct memcg *leaf, uint64_t pages);
int uncharge_direct(struct memcg *leaf, uint64_t pages);

/*
 * Kills the group (memcg_kill()) and asks for all stocks: those have no page of it any more once
 * their owners have charged, blocked or gone idle. Planner.
 */
int charge_kill(struct memcg *memcg);

/* What a group was charged when the dirty list was emptied. */
struct charge_seen {
	uint64_t id, pages;
};

/*
 * Empties the dirty list: what is to be seen of each group on it, with charge_see_later(). Returns
 * how many; asserts that nr_max is enough, which all groups of the tree are. Planner.
 */
size_t charge_drain(struct memcg_tree *tree, struct charge_seen *ret_seen, size_t nr_max);

/* The next drain tells of the leaf, whatever it is charged. The caller has a reference. */
void charge_tell(struct memcg *leaf);

#endif
