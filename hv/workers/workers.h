/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * workers: what backends have in common whose calls may hang.
 *
 * A call that was submitted is a task, which carries the answer to it: no answer is lost for want
 * of memory. Jobs wait in lists. Those of VMs are made by up to HV_WORKERS threads, started as they
 * are needed, each with a connection of its own that is the backend's to open; targets come first.
 * While HV_MAX_HUNG calls are out for longer than the backend bears, none is taken and none is
 * made.
 *
 * Threads are detached, for nobody waits for one that hangs: each has a reference of the handle,
 * and leaves at the next opportunity once all are to stop.
 *
 * Errors are negative errnos. Locks: where it says so, the backend's.
 */
#ifndef BALLAST_HV_WORKERS_WORKERS_H
#define BALLAST_HV_WORKERS_WORKERS_H

#include <pthread.h>

#include "hv/agent_channel.h"
#include "hv/queue.h"

/* Calls that wait in one list: more than there are VMs. */
#define HV_TASKS_MAX 65536

/* CLOCK_MONOTONIC, microseconds. */
uint64_t hv_now(void);
/* Of that clock. */
void hv_cond_init(pthread_cond_t *cond);
/* Detached, and signals are the shell's; but for those that a fault of the thread's own makes. */
int hv_thread_start(void *(*run)(void *), void *arg);

/* ---- tasks ---- */

struct hv_task {
	struct hv_item item; /* the answer; first: the queue frees the task by it */
	struct hv_call call;
	struct hv_knobs_change change; /* HV_KNOBS: the task's own */
	uint64_t mark;		       /* the backend's */
	struct hv_task *next;
};

/* The call is copied. -EINVAL: there is no such call; -ENOMEM. */
int hv_task_new(const struct hv_call *call, struct hv_task **ret_task);
void hv_task_free(struct hv_task *task); /* takes NULL */
/* The answer, as the task has it, goes to the queue; the task is gone. */
void hv_task_answer(struct hv_queue *queue, struct hv_task *task);
/* The same, of HV_RECLAIM: error, or bytes that came. */
void hv_task_came(struct hv_queue *queue, struct hv_task *task, int error, uint64_t came);
/* What submit() returns where r became of the task; -ENOTCONN is an answer, with that message. */
int hv_task_submitted(struct hv_queue *queue, struct hv_task *task, int r, const char *away);

/*
 * What an agent was asked for is over: *task, where there is one, is answered and NULL. And what is
 * known of it changed, or it reported: told, once.
 */
void hv_task_settle(
	struct hv_queue *queue, struct agent_channel *channel, uint64_t now, struct hv_task **task);
void hv_agent_tell(
	struct hv_queue *queue, struct agent_channel *channel, const struct hv_uuid *uuid);

struct hv_tasks {
	struct hv_task *head, *tail;
	unsigned int nr;
};

int hv_tasks_add(struct hv_tasks *tasks, struct hv_task *task); /* -EAGAIN: too many wait */
struct hv_task *hv_tasks_take(struct hv_tasks *tasks);		/* the first; NULL */
void hv_tasks_clear(struct hv_tasks *tasks);			/* nobody takes the answers */

/* ---- workers ---- */

struct hv_workers_table {
	struct hv *(*get)(struct hv *hv); /* a thread's reference */
	void (*put)(struct hv *hv);
	/* Makes the call on the nr-th connection and fills the answer in. Not locked; may hang. */
	void (*perform)(struct hv *hv, unsigned int nr, struct hv_task *task);
	void (*disconnect)(struct hv *hv, unsigned int nr); /* not locked */
	const char *hang;				    /* "too many calls to xenstored hang" */
};

struct hv_worker {
	struct hv_workers *all;
	bool busy;
	uint64_t since; /* of the call */
};

struct hv_workers {
	struct hv *hv;
	const struct hv_workers_table *table;
	struct hv_queue *queue;
	uint64_t hung; /* a call that is out for longer is */
	pthread_mutex_t *lock;
	pthread_cond_t cond;
	bool stopping;
	struct hv_tasks urgent, normal;
	struct hv_worker workers[HV_WORKERS];
	unsigned int nr, nr_idle;
};

void hv_workers_init(struct hv_workers *workers, struct hv *hv,
	const struct hv_workers_table *table, struct hv_queue *queue, pthread_mutex_t *lock,
	uint64_t hung);
void hv_workers_destroy(struct hv_workers *workers); /* once no thread is left */
/* Lock held. A thread that sleeps wakes, and all leave. */
void hv_workers_stop(struct hv_workers *workers);
/* Lock held. -EAGAIN: too many hang, or wait; after a failure the task is the caller's still. */
int hv_workers_add(struct hv_workers *workers, struct hv_task *task);

#endif
