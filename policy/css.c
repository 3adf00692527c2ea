/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * css: see css.h. One word holds both the count and whether the group was killed, so that "the last
 * reference of a killed group" is a single value that exactly one thread brings about: that thread
 * pushes, and touches the group no more.
 */
#include <config.h>

#include "policy/css.h"

#include <assert.h>
#include <stddef.h>

#define CSS_KILLED (UINT64_C(1) << 63)
/* Two thousand times what a leaf can have in pages, and far from CSS_KILLED. */
#define CSS_REFS_MAX (UINT64_C(1) << 62)

static uint64_t refs_of(uint64_t refcnt)
{
	return refcnt & ~CSS_KILLED;
}

static void queue_push(struct css_queue *queue, struct css *css)
{
	void *head = atomic_ptr_read(&queue->head);

	do {
		css->release_next = head;
	} while (!atomic_ptr_cas(&queue->head, &head, css));
}

void css_queue_init(struct css_queue *queue)
{
	atomic_init(&queue->head, NULL);
}

struct css *css_queue_take(struct css_queue *queue)
{
	return atomic_ptr_swap(&queue->head, NULL);
}

void css_init(struct css *css, struct css_queue *queue)
{
	assert(queue);
	atomic_init(&css->refcnt, 1);
	css->release_next = NULL;
	css->queue = queue;
}

void css_init_root(struct css *css)
{
	atomic_init(&css->refcnt, 1);
	css->release_next = NULL;
	css->queue = NULL;
}

void css_get(struct css *css)
{
	css_get_many(css, 1);
}

void css_get_many(struct css *css, uint64_t n)
{
	uint64_t before;

	if (!css->queue)
		return;
	assert(n <= CSS_REFS_MAX);
	before = atomic_u64_add(&css->refcnt, n);
	assert(refs_of(before) > 0);
	assert(refs_of(before) <= CSS_REFS_MAX - n);
}

bool css_tryget(struct css *css)
{
	return css_tryget_many(css, 1);
}

bool css_tryget_many(struct css *css, uint64_t n)
{
	uint64_t refcnt;

	if (!css->queue)
		return true;
	assert(n <= CSS_REFS_MAX);
	refcnt = atomic_u64_read(&css->refcnt);
	do {
		if (refcnt & CSS_KILLED)
			return false;
		assert(refcnt > 0 && refcnt <= CSS_REFS_MAX - n);
	} while (!atomic_u64_cas(&css->refcnt, &refcnt, refcnt + n));
	return true;
}

void css_put(struct css *css)
{
	css_put_many(css, 1);
}

void css_put_many(struct css *css, uint64_t n)
{
	uint64_t before;

	if (!css->queue || n == 0)
		return;
	before = atomic_u64_sub(&css->refcnt, n);
	assert(refs_of(before) >= n);
	/* The group's own reference goes with css_kill(), never before. */
	assert(before != n);
	if (before - n == CSS_KILLED)
		queue_push(css->queue, css);
}

void css_kill(struct css *css)
{
	uint64_t before;

	assert(css->queue);
	before = atomic_u64_add(&css->refcnt, CSS_KILLED - 1);
	assert(before > 0 && !(before & CSS_KILLED));
	if (before == 1)
		queue_push(css->queue, css);
}

bool css_killed(const struct css *css)
{
	return atomic_u64_read(&css->refcnt) & CSS_KILLED;
}

uint64_t css_refs(const struct css *css)
{
	return refs_of(atomic_u64_read(&css->refcnt));
}
