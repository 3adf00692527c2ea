/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events from the backend's threads; see queue.h. */
#include <config.h>

#include "hv/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How far back an equal event is looked for: bursts are about one VM, or about a few. */
#define LOOK_BACK 32

int hv_queue_init(struct hv_queue *queue)
{
	memset(queue, 0, sizeof(*queue));
	queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (queue->fd < 0)
		return -errno;
	pthread_mutex_init(&queue->lock, NULL);
	return 0;
}

void hv_queue_destroy(struct hv_queue *queue)
{
	struct hv_event event;

	queue->down = true; /* nothing is made up any more */
	while (hv_queue_take(queue, &event) > 0)
		hv_event_clear(&event);
	pthread_mutex_destroy(&queue->lock);
	close(queue->fd);
}

/* Failures are ignored: a counter that is full is readable, one that is empty is not. */
static void wake(struct hv_queue *queue)
{
	uint64_t one = 1;
	ssize_t n = write(queue->fd, &one, sizeof(one));

	(void)n;
}

static void unwake(struct hv_queue *queue)
{
	uint64_t count;
	ssize_t n = read(queue->fd, &count, sizeof(count));

	(void)n;
}

static void append(struct hv_queue *queue, struct hv_item *item)
{
	item->next = NULL;
	item->prev = queue->tail;
	if (queue->tail)
		queue->tail->next = item;
	else
		queue->head = item;
	queue->tail = item;
	wake(queue);
}

void hv_queue_push(struct hv_queue *queue, struct hv_item *item)
{
	item->spontaneous = false;
	pthread_mutex_lock(&queue->lock);
	append(queue, item);
	pthread_mutex_unlock(&queue->lock);
}

static bool about_connection(const struct hv_event *event)
{
	return event->type == HV_EVENT_UP || event->type == HV_EVENT_DOWN;
}

/* An equal event that was not taken yet: the newer figure replaces its. */
static bool merge(struct hv_queue *queue, const struct hv_event *event)
{
	struct hv_item *item = queue->tail;

	for (unsigned int i = 0; item && i < LOOK_BACK; i++, item = item->prev) {
		if (about_connection(&item->event))
			return false;
		if (item->spontaneous && item->event.type == event->type &&
			hv_uuid_equal(&item->event.uuid, &event->uuid)) {
			if (event->type == HV_EVENT_AGENT)
				item->event.agent = event->agent;
			else
				item->event.actual = event->actual;
			return true;
		}
	}
	return false;
}

bool hv_queue_tell(struct hv_queue *queue, struct hv_event *event)
{
	bool connection = about_connection(event), told = true;
	struct hv_item *item = NULL;

	pthread_mutex_lock(&queue->lock);
	if (!connection && merge(queue, event))
		goto out;
	/* Those of the connection come rarely, pauses are between them, and they must not be lost.
	 */
	if (connection || queue->nr_spontaneous < HV_QUEUE_MAX)
		item = calloc(1, sizeof(*item));
	if (!item) {
		if (connection)
			queue->owed = event->type;
		queue->lost = true;
		told = false;
		wake(queue);
		goto out;
	}
	if (connection)
		queue->owed = HV_EVENT_NONE; /* what came before is over */
	item->event = *event;
	item->spontaneous = true;
	queue->nr_spontaneous++;
	append(queue, item);
	memset(event, 0, sizeof(*event));
out:
	pthread_mutex_unlock(&queue->lock);
	hv_event_clear(event);
	return told;
}

int hv_queue_take(struct hv_queue *queue, struct hv_event *ret_event)
{
	struct hv_item *item;
	int r = 1;

	pthread_mutex_lock(&queue->lock);
	item = queue->head;
	if (item) {
		queue->head = item->next;
		if (queue->head)
			queue->head->prev = NULL;
		else
			queue->tail = NULL;
		if (item->spontaneous)
			queue->nr_spontaneous--;
		*ret_event = item->event;
		if (about_connection(ret_event))
			queue->down = ret_event->type == HV_EVENT_DOWN;
		free(item);
	} else if (queue->owed != HV_EVENT_NONE) {
		memset(ret_event, 0, sizeof(*ret_event));
		ret_event->type = queue->owed;
		queue->down = queue->owed == HV_EVENT_DOWN;
		queue->owed = HV_EVENT_NONE;
	} else if (queue->lost && !queue->down) {
		memset(ret_event, 0, sizeof(*ret_event));
		ret_event->type = HV_EVENT_CHANGED; /* of all: the connection is as good as ever */
		ret_event->message =
			strdup("events came faster than they were taken: listing all anew");
		queue->lost = false;
	} else {
		queue->lost = false;
		unwake(queue);
		r = 0;
	}
	pthread_mutex_unlock(&queue->lock);
	return r;
}
