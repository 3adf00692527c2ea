/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is to happen on the simulated host, in order of time, and what happened; see
 * sim_internal.h.
 */
#include <config.h>

#include "hv/sim/sim_internal.h"

#include <errno.h>
#include <stdlib.h>

/* ---- chance ---- */

uint64_t sim_draw(struct hv *hv, uint64_t least, uint64_t most)
{
	/* splitmix64 */
	uint64_t z = (hv->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return least + z % (most - least + 1);
}

/* ---- the heap ---- */

static bool before(const struct sim_item *a, const struct sim_item *b)
{
	return a->due != b->due ? a->due < b->due : a->order < b->order;
}

int sim_items_grow(struct sim_item **items, size_t *size)
{
	size_t more = *size ? 2 * *size : 64;
	struct sim_item *p = realloc(*items, more * sizeof *p);

	if (!p)
		return -ENOMEM;
	*items = p;
	*size = more;
	return 0;
}

int sim_heap_add(struct hv *hv, const struct sim_item *item)
{
	size_t i = hv->nr_heap, up;

	if (i == hv->heap_size && sim_items_grow(&hv->heap, &hv->heap_size) < 0)
		return -ENOMEM;
	hv->heap[i] = *item;
	hv->heap[i].order = hv->order++;
	hv->nr_heap++;
	for (; i && before(&hv->heap[i], &hv->heap[up = (i - 1) / 2]); i = up) {
		struct sim_item t = hv->heap[i];

		hv->heap[i] = hv->heap[up];
		hv->heap[up] = t;
	}
	return 0;
}

struct sim_item sim_heap_take(struct hv *hv)
{
	struct sim_item first = hv->heap[0], last = hv->heap[--hv->nr_heap];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < hv->nr_heap) {
		if (child + 1 < hv->nr_heap && before(&hv->heap[child + 1], &hv->heap[child]))
			child++;
		if (before(&last, &hv->heap[child]))
			break;
		hv->heap[i] = hv->heap[child];
		i = child;
	}
	hv->heap[i] = last;
	return first;
}

/* ---- events ---- */

/* Takes what the event owns, kept or not. */
void sim_tell(struct hv *hv, struct hv_event *event)
{
	struct sim_ready *ready = calloc(1, sizeof *ready);

	if (!ready) {
		hv_event_clear(event);
		hv->lost = true;
		return;
	}
	ready->event = *event;
	*hv->last = ready;
	hv->last = &ready->next;
}

void sim_tell_vm(
	struct hv *hv, enum hv_event_type type, const struct sim_guest *vm, uint64_t actual)
{
	struct hv_event event = { .type = type, .uuid = vm->uuid };

	if (!hv->up)
		return; /* lost, as real ones are */
	if (type == HV_EVENT_BALLOON)
		event.actual = actual;
	sim_tell(hv, &event);
}
