/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * queue: events from a backend's threads to the shell's.
 *
 * Answers to calls are never lost and need no memory when they come: their item was allocated with
 * the call. What happens by itself is bounded: equal events about one VM become one, and past the
 * bound they are dropped and remembered as one flag, which, once the rest was taken, comes out as
 * a HV_EVENT_CHANGED of all: then all is listed anew, which finds what the lost ones told. While
 * the connection is down the flag is dropped, for an UP will follow anyway.
 *
 * Any thread may push; one thread takes. Nothing blocks beyond a short mutex.
 */
#ifndef BALLAST_HV_QUEUE_H
#define BALLAST_HV_QUEUE_H

#include <pthread.h>

#include "hv/hv.h"

/* What is allocated with malloc() and begins with this is the queue's once pushed; it frees it. */
struct hv_item {
	struct hv_event event;
	struct hv_item *prev, *next;
	bool spontaneous;
};

/* More pending events than a thousand VMs make in a second; some 4 MiB at most. */
#define HV_QUEUE_MAX 4096

struct hv_queue {
	pthread_mutex_t lock;
	int fd; /* readable while there is something to take */
	struct hv_item *head, *tail;
	unsigned int nr_spontaneous;
	bool lost, down;
	enum hv_event_type owed; /* the last of the connection, where there was no memory for it */
};

int hv_queue_init(struct hv_queue *queue);
void hv_queue_destroy(struct hv_queue *queue);

/* An answer. */
void hv_queue_push(struct hv_queue *queue, struct hv_item *item);

/*
 * An event that came by itself; takes over what it owns, also when it is dropped. False: it was,
 * and a listing of all is asked for, which an agent is not in: it is to be told again.
 */
bool hv_queue_tell(struct hv_queue *queue, struct hv_event *event);

/* 1: *ret_event is the caller's; 0: none. */
int hv_queue_take(struct hv_queue *queue, struct hv_event *ret_event);

#endif
