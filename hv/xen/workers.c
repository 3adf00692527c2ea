/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that may hang: up to eight threads with a connection each; see backend.h. */
#include <config.h>

#include "hv/xen/backend.h"

#include <errno.h>

unsigned int xen_workers_hung(const struct hv *hv, uint64_t now)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < hv->nr_workers; i++)
		if (hv->workers[i].busy && now - hv->workers[i].since > hv->calls->times.hung)
			nr++;
	return nr;
}

/* Lock held: the next call, and the worker is busy with it. */
static struct xen_job *take(struct hv *hv, struct xen_worker *worker)
{
	struct xen_job *job = xen_jobs_take(&hv->urgent);

	if (!job)
		job = xen_jobs_take(&hv->normal);
	if (!job)
		return NULL;
	hv->nr_waiting--;
	worker->since = xen_now();
	worker->busy = true;
	return job;
}

static void work(struct xen_worker *worker, struct xen_job *job, bool connected,
	uint64_t generation, unsigned int hung)
{
	struct hv_event *event = &job->item.event;
	struct hv *hv = worker->hv;

	if (hung >= HV_MAX_HUNG) {
		xen_fail(event, -EAGAIN, "too many calls to xenstored hang");
		return;
	}
	if (!connected || xen_link_open(&worker->link, hv->calls, generation) < 0) {
		xen_fail(event, -ENOTCONN, "not connected to xenstored");
		return;
	}
	xen_perform(hv, &worker->link, job);
	/* The control thread finds out by itself whether xenstored is gone. */
	if (store_lost(event->error)) {
		event->error = -ENOTCONN;
		xen_link_close(&worker->link, hv->calls);
		xen_wake(hv);
	}
}

static void *run(void *arg)
{
	struct xen_worker *worker = arg;
	struct hv *hv = worker->hv;
	struct xen_job *job;

	pthread_mutex_lock(&hv->lock);
	while (!hv->stopping) {
		unsigned int hung = xen_workers_hung(hv, xen_now());
		uint64_t generation;
		bool connected;

		job = take(hv, worker);
		if (!job) {
			hv->nr_idle++;
			pthread_cond_wait(&hv->worker_cond, &hv->lock);
			hv->nr_idle--;
			continue;
		}
		connected = hv->connected;
		generation = hv->generation;
		pthread_mutex_unlock(&hv->lock);
		work(worker, job, connected, generation, hung);
		pthread_mutex_lock(&hv->lock);
		/* Before the answer: whoever has it may count on this worker. */
		worker->busy = false;
		xen_answer(hv, job);
	}
	pthread_mutex_unlock(&hv->lock);
	xen_link_close(&worker->link, hv->calls);
	xen_put(hv);
	return NULL;
}

/* How many calls wait for a worker decides: an idle one that was signalled still counts as idle. */
static unsigned int waiting(const struct hv *hv)
{
	unsigned int nr = 1; /* the one that is about to be added */

	for (const struct xen_job *job = hv->urgent.head; job && nr <= HV_WORKERS; job = job->next)
		nr++;
	for (const struct xen_job *job = hv->normal.head; job && nr <= HV_WORKERS; job = job->next)
		nr++;
	return nr;
}

int xen_workers_start(struct hv *hv)
{
	struct xen_worker *worker;
	int r;

	if (hv->nr_workers == HV_WORKERS || waiting(hv) <= hv->nr_idle)
		return 0;
	worker = &hv->workers[hv->nr_workers];
	worker->hv = hv;
	r = xen_start_thread(hv, run, worker);
	if (r == 0)
		hv->nr_workers++;
	/* Those that are there will do it, a little later. */
	return hv->nr_workers > 0 ? 0 : r;
}
