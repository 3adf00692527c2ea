/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that may hang: eight threads with a connection each; see backend.h. */
#include <config.h>

#include "hv/libvirt/backend.h"

#include <errno.h>

unsigned int lv_workers_hung(const struct hv *hv, uint64_t now)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < hv->nr_workers; i++)
		if (hv->workers[i].busy && now - hv->workers[i].since > hv->calls->times.hung)
			nr++;
	return nr;
}

/* Lock held: the next call, and the worker is busy with it. */
static struct lv_job *take(struct hv *hv, struct lv_worker *worker)
{
	struct lv_job *job = lv_jobs_take(&hv->urgent);

	if (!job)
		job = lv_jobs_take(&hv->normal);
	if (!job)
		return NULL;
	hv->nr_waiting--;
	worker->since = lv_now();
	worker->busy = true;
	return job;
}

void lv_worker_disconnect(struct lv_worker *worker)
{
	if (worker->conn)
		lv_disconnect(worker->hv, worker->conn);
	worker->conn = NULL;
}

bool lv_worker_connect(struct lv_worker *worker, uint64_t generation)
{
	if (worker->generation != generation)
		lv_worker_disconnect(worker);
	if (!worker->conn)
		worker->conn = lv_connect(worker->hv);
	worker->generation = generation;
	return worker->conn;
}

/* Fills the answer in. */
static void work(struct lv_worker *worker, struct lv_job *job, bool connected, uint64_t generation,
	unsigned int hung)
{
	struct hv_event *event = &job->item.event;
	struct hv *hv = worker->hv;

	if (hung >= HV_MAX_HUNG) {
		lv_fail(event, -EAGAIN, "too many calls to libvirt hang");
		return;
	}
	if (!connected) {
		lv_fail(event, -ENOTCONN, "not connected to libvirt");
		return;
	}
	if (lv_worker_connect(worker, generation)) {
		lv_perform_worker(hv, worker->conn, event, &job->call);
	} else {
		lv_failed(hv, NULL, event, "connecting");
		event->error = -ENOTCONN;
	}
	/* The control connection finds out by itself whether libvirt is gone. */
	if (event->error == -ENOTCONN)
		lv_worker_disconnect(worker);
}

static void *run(void *arg)
{
	struct lv_worker *worker = arg;
	struct hv *hv = worker->hv;
	struct lv_job *job;

	pthread_mutex_lock(&hv->lock);
	while (!hv->stopping) {
		unsigned int hung;
		bool connected;
		uint64_t generation;

		hung = lv_workers_hung(hv, lv_now());
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
		lv_answer(hv, job);
	}
	pthread_mutex_unlock(&hv->lock);
	lv_worker_disconnect(worker);
	lv_put(hv);
	return NULL;
}

/* How many calls wait for a worker decides: an idle one that was signalled still counts as idle. */
static unsigned int waiting(const struct hv *hv)
{
	unsigned int nr = 1; /* the one that is about to be added */

	for (const struct lv_job *job = hv->urgent.head; job && nr <= HV_WORKERS; job = job->next)
		nr++;
	for (const struct lv_job *job = hv->normal.head; job && nr <= HV_WORKERS; job = job->next)
		nr++;
	return nr;
}

int lv_workers_start(struct hv *hv)
{
	struct lv_worker *worker;
	int r;

	if (hv->nr_workers == HV_WORKERS || waiting(hv) <= hv->nr_idle)
		return 0;
	worker = &hv->workers[hv->nr_workers];
	worker->hv = hv;
	r = lv_start_thread(hv, run, worker);
	if (r == 0)
		hv->nr_workers++;
	/* Those that are there will do it, a little later. */
	return hv->nr_workers > 0 ? 0 : r;
}
