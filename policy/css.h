/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * css: the reference count of a group, taken and put in batches.
 *
 * A group starts with one reference, its own, held until css_kill(). Each charged page holds one,
 * and each child, and who charges from a thread of its own; actions in flight, positions and
 * reports know a group by its id, and find it or not. After css_kill() css_tryget() fails,
 * references that are held stay valid, and when the last is put the group goes once, and only
 * once, onto the release queue, from which the planner takes it. Nothing is freed here.
 *
 * A root (css_init_root, or all zeros) is not counted: get and put do nothing, it is never
 * released.
 *
 * Any thread may call get, put and tryget; kill and the draining of the queue are the planner's.
 * Never blocks, allocates or logs. References are taken in one go with the pages they are for
 * (coalescing-css-get-put, "coalescing multiple css_get/put").
 */
#ifndef BALLAST_POLICY_CSS_H
#define BALLAST_POLICY_CSS_H

#include "policy/atomic.h"

struct css;

/* Where released groups wait for the planner: a stack that any thread may push to. */
struct css_queue {
	void *_Atomic head; /* struct css */
};

struct css {
	_Atomic uint64_t refcnt; /* bit 63: killed */
	struct css *release_next;
	struct css_queue *queue; /* NULL: a root, not counted */
};

void css_queue_init(struct css_queue *queue);
/* Takes all that was released, oldest or newest first, linked by release_next; NULL when none. */
struct css *css_queue_take(struct css_queue *queue);

void css_init(struct css *css, struct css_queue *queue);
void css_init_root(struct css *css);

/* The caller holds a reference already, or is the planner with a group that is not killed. */
void css_get(struct css *css);
void css_get_many(struct css *css, uint64_t n);

/* False once killed: then no reference was taken. The memory of css must still be there. */
bool css_tryget(struct css *css);
bool css_tryget_many(struct css *css, uint64_t n);

/*
 * Asserts that n references are held, beside the group's own until it is killed (a broken invariant
 * would free a group in use).
 */
void css_put(struct css *css);
void css_put_many(struct css *css, uint64_t n);

/* Puts the group's own reference and makes every tryget fail from now on. Once. */
void css_kill(struct css *css);
bool css_killed(const struct css *css);

/* For tests and asserts: references held, the group's own included; of a root, always 1. */
uint64_t css_refs(const struct css *css);

#endif
