/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that may hang, and who makes them; see workers.h. */
#include <config.h>

#include "hv/workers/workers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "common/negative.h"

uint64_t hv_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

void hv_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

int hv_thread_start(void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return r ? negative(r) : 0;
}

/* ---- tasks ---- */

int hv_task_new(const struct hv_call *call, struct hv_task **ret_task)
{
	enum hv_event_type answer = hv_answer_of(call->type);
	struct hv_task *task;
	int r;

	if (answer == HV_EVENT_NONE || (call->type == HV_KNOBS && !call->change))
		return -EINVAL;
	task = calloc(1, sizeof(*task));
	if (!task)
		return -ENOMEM;
	task->call = *call;
	if (call->type == HV_KNOBS) {
		r = hv_change_copy(call->change, &task->change);
		if (r < 0) {
			free(task);
			return r;
		}
		task->call.change = &task->change;
	}
	task->item.event.type = answer;
	task->item.event.token = call->token;
	task->item.event.uuid = call->uuid;
	*ret_task = task;
	return 0;
}

void hv_task_free(struct hv_task *task)
{
	if (task)
		hv_change_clear(&task->change);
	free(task);
}

void hv_task_answer(struct hv_queue *queue, struct hv_task *task)
{
	hv_change_clear(&task->change);
	hv_queue_push(queue, &task->item);
}

void hv_task_came(struct hv_queue *queue, struct hv_task *task, int error, uint64_t came)
{
	if (error)
		hv_event_fail(&task->item.event, error,
			error == -ENOTCONN ? "no agent is connected" : "the agent frees nothing");
	else
		task->item.event.came = came;
	hv_task_answer(queue, task);
}

int hv_task_submitted(struct hv_queue *queue, struct hv_task *task, int r, const char *away)
{
	if (r == -ENOTCONN) {
		hv_event_fail(&task->item.event, r, away);
		hv_task_answer(queue, task);
		return 0;
	}
	if (r < 0)
		hv_task_free(task);
	return r;
}

void hv_task_settle(
	struct hv_queue *queue, struct agent_channel *channel, uint64_t now, struct hv_task **task)
{
	uint64_t came;
	int error;

	if (!*task || !agent_channel_answer(channel, now, &error, &came))
		return;
	hv_task_came(queue, *task, error, came);
	*task = NULL;
}

void hv_agent_tell(
	struct hv_queue *queue, struct agent_channel *channel, const struct hv_uuid *uuid)
{
	struct hv_event event;

	if (agent_channel_news(channel, uuid, &event))
		channel->changed = !hv_queue_tell(queue, &event);
}

int hv_tasks_add(struct hv_tasks *tasks, struct hv_task *task)
{
	if (tasks->nr == HV_TASKS_MAX)
		return -EAGAIN;
	task->next = NULL;
	if (tasks->tail)
		tasks->tail->next = task;
	else
		tasks->head = task;
	tasks->tail = task;
	tasks->nr++;
	return 0;
}

struct hv_task *hv_tasks_take(struct hv_tasks *tasks)
{
	struct hv_task *task = tasks->head;

	if (!task)
		return NULL;
	tasks->head = task->next;
	if (!tasks->head)
		tasks->tail = NULL;
	tasks->nr--;
	return task;
}

void hv_tasks_clear(struct hv_tasks *tasks)
{
	struct hv_task *task;

	while ((task = hv_tasks_take(tasks)))
		hv_task_free(task);
}

/* ---- workers; all below has the lock ---- */

static unsigned int nr_hung(const struct hv_workers *workers, uint64_t now)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < workers->nr; i++)
		nr += workers->workers[i].busy && now - workers->workers[i].since > workers->hung;
	return nr;
}

/* The next call, and the worker is busy with it. */
static struct hv_task *take(struct hv_worker *worker, uint64_t now)
{
	struct hv_task *task = hv_tasks_take(&worker->all->urgent);

	if (!task)
		task = hv_tasks_take(&worker->all->normal);
	if (!task)
		return NULL;
	worker->since = now;
	worker->busy = true;
	return task;
}

static void make_call(struct hv_worker *worker, struct hv_task *task, bool hang)
{
	struct hv_workers *all = worker->all;

	pthread_mutex_unlock(all->lock);
	if (hang)
		hv_event_fail(&task->item.event, -EAGAIN, all->table->hang);
	else
		all->table->perform(all->hv, (unsigned int)(worker - all->workers), task);
	pthread_mutex_lock(all->lock);
	/* Before the answer: whoever has it may count on this worker. */
	worker->busy = false;
	hv_task_answer(all->queue, task);
}

static void *run(void *arg)
{
	struct hv_worker *worker = arg;
	struct hv_workers *all = worker->all;
	const struct hv_workers_table *table = all->table;
	struct hv *hv = all->hv;

	pthread_mutex_lock(all->lock);
	while (!all->stopping) {
		uint64_t now = hv_now();
		bool hang = nr_hung(all, now) >= HV_MAX_HUNG;
		struct hv_task *task = take(worker, now);

		if (task) {
			make_call(worker, task, hang);
			continue;
		}
		all->nr_idle++;
		pthread_cond_wait(&all->cond, all->lock);
		all->nr_idle--;
	}
	pthread_mutex_unlock(all->lock);
	table->disconnect(hv, (unsigned int)(worker - all->workers));
	table->put(hv);
	return NULL;
}

/*
 * A worker for what waits and for one call more. How many wait decides: an idle one that was
 * signalled still counts as idle.
 */
static int start_one(struct hv_workers *workers)
{
	struct hv_worker *worker = &workers->workers[workers->nr];
	unsigned int waiting = workers->urgent.nr + workers->normal.nr;
	int r;

	if (workers->nr == HV_WORKERS || waiting < workers->nr_idle)
		return 0;
	worker->all = workers;
	workers->table->get(workers->hv);
	r = hv_thread_start(run, worker);
	if (r == 0)
		workers->nr++;
	else
		workers->table->put(workers->hv); /* never the last: the caller has its own */
	/* Those that are there will do it, a little later. */
	return workers->nr > 0 ? 0 : r;
}

int hv_workers_add(struct hv_workers *workers, struct hv_task *task)
{
	int r;

	if (nr_hung(workers, hv_now()) >= HV_MAX_HUNG)
		return -EAGAIN;
	r = start_one(workers);
	if (r < 0)
		return r;
	/* Memory that is needed now does not wait for statistics. */
	r = hv_tasks_add(task->call.type == HV_TARGET ? &workers->urgent : &workers->normal, task);
	if (r == 0)
		pthread_cond_signal(&workers->cond);
	return r;
}

void hv_workers_stop(struct hv_workers *workers)
{
	workers->stopping = true;
	pthread_cond_broadcast(&workers->cond);
}

/* ---- not locked ---- */

void hv_workers_init(struct hv_workers *workers, struct hv *hv,
	const struct hv_workers_table *table, struct hv_queue *queue, pthread_mutex_t *lock,
	uint64_t hung)
{
	workers->hv = hv;
	workers->table = table;
	workers->queue = queue;
	workers->lock = lock;
	workers->hung = hung;
	hv_cond_init(&workers->cond);
}

void hv_workers_destroy(struct hv_workers *workers)
{
	hv_tasks_clear(&workers->urgent);
	hv_tasks_clear(&workers->normal);
	pthread_cond_destroy(&workers->cond);
}
