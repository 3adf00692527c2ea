/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Guests that are reached through QEMU's guest agent: when each is asked, and on which thread.
 *
 * A guest's agent is asked one thing at a time, bounded in time by libvirt, and nothing while a job
 * runs on the domain or its disks, which may have frozen the guest; the VM's statistics say so, or
 * do not come, where its QEMU hangs. One that did not answer waits, longer each time, and is tried
 * on the thread for such.
 */
#include <config.h>

#include "hv/libvirt/qga.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

/* One thread helps the other with what it is so late with. */
#define LATE_US UINT64_C(500000)
/* A description comes every few seconds: what none names for so long has gone. */
#define FORGOTTEN_US UINT64_C(60000000)

/* Not locked. As lv_qga_round(). */
static int serve(struct lv_link *link, struct lv_qga *q)
{
	struct hv *hv = link->hv;
	int r;

	q->now = hv_now();
	q->dom = NULL;
	q->failed = -ENOTCONN;
	if (lv_link_connect(link) == 0) {
		q->conn = link->conn;
		q->dom = hv->calls->domain_lookup_by_uuid(link->conn, q->uuid.bytes);
		if (q->dom)
			q->failed = 0;
		else if (hv->calls->connect_is_alive(link->conn) != 0)
			q->failed = -ESRCH; /* which says nothing of the others */
	}
	r = lv_qga_round(q);
	if (q->dom)
		hv->calls->domain_free(q->dom);
	if (q->failed == -ENOTCONN)
		lv_link_disconnect(link);
	return r;
}

/* ---- the threads; all below has the lock ---- */

static void end_task(struct lv_qga *q, int error, uint64_t came)
{
	if (q->task)
		hv_task_came(&q->hv->queue, q->task, error, came);
	q->task = NULL;
	q->fresh = false;
}

/* error: what the request that was handed over failed with. */
static void settle(struct lv_qga *q, int error)
{
	uint64_t came = 0;

	q->busy = false;
	q->listens = q->met;
	if (q->ask && error && !q->fresh)
		end_task(q, error, 0);
	else if (agent_channel_answer(&q->channel, hv_now(), &error, &came) && !q->fresh)
		end_task(q, error, came);
	if (q->fresh && !q->listens)
		end_task(q, -ENOTCONN, 0);
	q->ask = false;
	if (q->fresh)
		q->due = 0;
	hv_agent_tell(&q->hv->queue, &q->channel, &q->uuid);
}

static void forget(struct hv *hv, uint64_t now_us)
{
	struct lv_qga **at = &hv->qga, *q;

	while ((q = *at)) {
		if (q->busy || (!q->leaves && now_us - q->named < FORGOTTEN_US)) {
			at = &q->next;
			continue;
		}
		end_task(q, -ENOTCONN, 0);
		agent_channel_close(&q->channel);
		hv_agent_tell(&hv->queue, &q->channel, &q->uuid);
		*at = q->next;
		free(q);
	}
}

/* When the thread for the doubtful ones, or the other, is to take it. */
static uint64_t due_for(const struct lv_qga *q, bool doubtful)
{
	if (q->doubtful == doubtful)
		return q->due;
	return doubtful ? q->due + LATE_US : UINT64_MAX;
}

/* The one that is due first; NULL: none ever is. */
static struct lv_qga *first(const struct hv *hv, bool doubtful, uint64_t *ret_due)
{
	struct lv_qga *best = NULL;

	*ret_due = UINT64_MAX;
	for (struct lv_qga *q = hv->qga; q; q = q->next)
		if (!q->busy && due_for(q, doubtful) < *ret_due) {
			best = q;
			*ret_due = due_for(q, doubtful);
		}
	return best;
}

static void wait_until(struct hv *hv, uint64_t when)
{
	struct timespec ts = { .tv_sec = (time_t)(when / 1000000),
		.tv_nsec = (long)(when % 1000000) * 1000 };

	if (when == UINT64_MAX)
		pthread_cond_wait(&hv->qga_cond, &hv->agents_lock);
	else
		pthread_cond_timedwait(&hv->qga_cond, &hv->agents_lock, &ts);
}

/* Where it has no job: true, and it is the thread's. */
static bool begin(struct lv_qga *q, uint64_t now_us)
{
	const struct libvirt_times *times = &q->hv->calls->times;

	if (!q->rested_at || now_us - q->rested_at >= times->qga_fresh) {
		if (q->fresh)
			end_task(q, -EAGAIN, 0);
		q->due = now_us + times->qga_read;
		return false;
	}
	q->busy = true;
	q->ask = q->fresh;
	if (q->ask)
		q->call = q->task->call;
	q->fresh = false;
	return true;
}

static void *qga_thread(void *arg)
{
	struct lv_link *link = arg;
	struct hv *hv = link->hv;
	bool doubtful = link == &hv->qga_links[LV_QGA_DOUBTFUL];
	int error;

	pthread_mutex_lock(&hv->agents_lock);
	while (!hv->agents_end) {
		struct lv_qga *q;
		uint64_t due;

		forget(hv, hv_now());
		q = first(hv, doubtful, &due);
		if (!q || due > hv_now()) {
			wait_until(hv, due);
			continue;
		}
		if (!begin(q, hv_now()))
			continue;
		pthread_mutex_unlock(&hv->agents_lock);
		error = serve(link, q);
		pthread_mutex_lock(&hv->agents_lock);
		settle(q, error);
		pthread_cond_broadcast(&hv->qga_cond); /* it may be the other's now */
	}
	pthread_mutex_unlock(&hv->agents_lock);
	lv_link_disconnect(link);
	lv_put(hv);
	return NULL;
}

/* ---- for the others ---- */

static struct lv_qga *find(const struct hv *hv, const struct hv_uuid *uuid)
{
	for (struct lv_qga *q = hv->qga; q; q = q->next)
		if (hv_uuid_equal(&q->uuid, uuid))
			return q;
	return NULL;
}

/* NULL: no memory, no thread; the next description is in a few seconds. */
static struct lv_qga *add(struct hv *hv, const struct hv_uuid *uuid)
{
	struct lv_qga *q;

	while (hv->nr_qga_threads < LV_QGA_THREADS) {
		struct lv_link *link = &hv->qga_links[hv->nr_qga_threads];

		if (lv_start_thread(hv, qga_thread, link) < 0)
			return NULL;
		hv->nr_qga_threads++;
	}
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->uuid = *uuid;
	q->hv = hv;
	q->doubtful = true;
	q->next = hv->qga;
	hv->qga = q;
	eventfd_write(hv->agents_fd, 1);
	return q;
}

void lv_qga_name(struct hv *hv, const struct hv_uuid *uuid, bool on)
{
	struct lv_qga *q;

	pthread_mutex_lock(&hv->agents_lock);
	q = find(hv, uuid);
	if (!q && on)
		q = add(hv, uuid);
	if (q) {
		q->named = hv_now();
		q->leaves = !on;
		pthread_cond_broadcast(&hv->qga_cond);
	}
	pthread_mutex_unlock(&hv->agents_lock);
}

bool lv_qga_is_named(struct hv *hv, const struct hv_uuid *uuid)
{
	bool named;

	pthread_mutex_lock(&hv->agents_lock);
	named = hv->qga && find(hv, uuid);
	pthread_mutex_unlock(&hv->agents_lock);
	return named;
}

void lv_qga_rests(struct hv *hv, const struct hv_uuid *uuid, bool job)
{
	struct lv_qga *q;

	pthread_mutex_lock(&hv->agents_lock);
	q = find(hv, uuid);
	if (q)
		q->rested_at = job ? 0 : hv_now();
	pthread_mutex_unlock(&hv->agents_lock);
}

bool lv_qga_reclaim(struct hv *hv, struct hv_task *task)
{
	struct lv_qga *q = find(hv, &task->call.uuid);

	if (!q)
		return false;
	if (q->task || !q->listens) {
		hv_task_came(&hv->queue, task, q->task ? -EAGAIN : -ENOTCONN, 0);
		return true;
	}
	q->task = task;
	q->fresh = true;
	q->deadline = hv_now() + task->call.deadline_ms * 1000 + AGENT_CHANNEL_GRACE_US;
	if (!q->busy)
		q->due = 0;
	pthread_cond_broadcast(&hv->qga_cond);
	return true;
}

void lv_qga_look(struct hv *hv, uint64_t now_us)
{
	for (struct lv_qga *q = hv->qga; q; q = q->next)
		if (q->task && now_us >= q->deadline)
			end_task(q, -ETIMEDOUT, 0);
}

void lv_qga_destroy(struct hv *hv)
{
	struct lv_qga *q;

	while ((q = hv->qga)) {
		hv->qga = q->next;
		hv_task_free(q->task); /* only of a handle that ends: nobody takes the answer */
		free(q);
	}
}
