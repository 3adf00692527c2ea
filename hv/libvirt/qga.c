/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Guests without a ballast-agent, reached through QEMU's: the agent's own core (guest-agent/) runs
 * here for each of them, on a platform that reads and writes the guest's files through
 * guest-file-open and the like. So the rules are those of ballast-agent, and what comes out is what
 * its channel would bring. The guest is one group: folders cannot be listed.
 *
 * A guest's agent is asked one thing at a time, bounded in time by libvirt, and nothing while a job
 * runs on the domain or its disks, which may have frozen the guest; the VM's statistics say so, or
 * do not come, where its QEMU hangs. One that did not answer waits, longer each time, and is tried
 * on the thread for such.
 */
#include <config.h>

#include "hv/libvirt/backend.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "guest-agent/agent.h"
#include "guest-agent/linux_text.h"
#include "hv/libvirt/qga_text.h"

/* An answer takes milliseconds; libvirt itself waits up to 5 s more to get into step with it. */
#define TIMEOUT_S 1
/* Of the pause after a failure. */
#define DOUBLINGS 5
/* No guest has as much memory, nor has ever read or freed as much: 1 PiB. */
#define FIGURE_MAX (UINT64_C(1) << 50)
/* One thread helps the other with what it is so late with. */
#define LATE_US UINT64_C(500000)
/* A description comes every few seconds: what none names for so long has gone. */
#define FORGOTTEN_US UINT64_C(60000000)

#define RECLAIM_FILE "/sys/fs/cgroup/memory.reclaim"

struct lv_qga {
	struct hv_uuid uuid;
	struct lv_qga *next;
	uint64_t named;	    /* by a description, when */
	bool leaves;	    /* no description names it any more */
	bool busy;	    /* a thread is at it, and all below is that thread's */
	bool listens;	    /* to requests */
	uint64_t rested_at; /* when it was last seen to have no job; 0: it has, or was not seen */
	struct lv_job *job; /* the request that is out; NULL: none */
	uint64_t deadline;  /* of it */
	bool fresh;	    /* nobody has seen it yet */

	bool doubtful; /* it did not answer when it was asked last, or never was */
	uint64_t due;
	unsigned int failures; /* in a row; counted to DOUBLINGS */
	struct hv *hv;
	virConnectPtr conn;
	virDomainPtr dom;
	int failed;		 /* it is asked nothing more in this round */
	char why[PROTOCOL_TEXT]; /* of -EPERM */
	bool invalid;		 /* the guest's kernel found the last write invalid */
	bool ask;		 /* call is to be handed to the agent's core */
	struct hv_call call;
	uint64_t now; /* of the agent's core */
	bool met, pressure, swappiness;
	struct agent_guest seen; /* the last reading */
	uint64_t restores, stolen;
	struct agent_channel channel;
	struct agent agent;
	struct agent_platform platform;
	char software[PROTOCOL_TEXT];
	char file[QGA_FILE + 1];
};

/* ---- commands ---- */

static int errno_of(const struct lv_qga *q, int code)
{
	switch (code) {
	case VIR_ERR_AGENT_UNRESPONSIVE:
	case VIR_ERR_AGENT_UNSYNCED:
	case VIR_ERR_OPERATION_TIMEOUT:
		return -ETIMEDOUT;
	case VIR_ERR_ARGUMENT_UNSUPPORTED:
	case VIR_ERR_CONFIG_UNSUPPORTED:
	case VIR_ERR_OPERATION_UNSUPPORTED:
	case VIR_ERR_NO_SUPPORT:
		return -ENODEV;
	case VIR_ERR_OPERATION_INVALID: /* "domain is not running" */
	case VIR_ERR_NO_DOMAIN:
		return -ESRCH;
	default: /* the agent's own refusal has no code of its own */
		return q->hv->calls->connect_is_alive(q->conn) == 0 ? -ENOTCONN : -EACCES;
	}
}

/* -EACCES: the agent, or the guest's kernel, refuses it. All else ends the round. */
static int command(struct lv_qga *q, const char *text, char **ret_answer)
{
	virErrorPtr error;
	char *answer;
	int r;

	if (q->failed)
		return q->failed;
	answer = q->hv->calls->domain_qemu_agent_command(q->dom, text, TIMEOUT_S, 0);
	if (answer) {
		*ret_answer = answer;
		return 0;
	}
	error = q->hv->calls->get_last_error();
	q->invalid = error && error->message && strstr(error->message, "Invalid argument");
	r = errno_of(q, error ? error->code : VIR_ERR_OK);
	if (r != -EACCES)
		q->failed = r;
	return r;
}

/* What became of an answer, which is freed. One that is none ends the round too. */
static int read_by(struct lv_qga *q, char *answer, int r)
{
	free(answer);
	if (r < 0)
		q->failed = r;
	return r;
}

static int do_it(struct lv_qga *q, const char *text)
{
	char *answer = NULL;
	int r = command(q, text, &answer);

	return r < 0 ? r : read_by(q, answer, qga_read_done(answer));
}

static int open_file(struct lv_qga *q, const char *path, const char *mode, int64_t *ret_handle)
{
	char text[QGA_COMMAND], *answer = NULL;
	int r;

	qga_ask_open(text, path, mode);
	r = command(q, text, &answer);
	return r < 0 ? r : read_by(q, answer, qga_read_handle(answer, ret_handle));
}

static int close_file(struct lv_qga *q, int64_t handle)
{
	char text[QGA_COMMAND];

	qga_ask_close(text, handle);
	return do_it(q, text);
}

/* Into q->file. */
static int read_file(struct lv_qga *q, const char *path)
{
	char text[QGA_COMMAND], *answer = NULL;
	int64_t handle;
	int r = open_file(q, path, "r", &handle), closed;

	q->file[0] = '\0';
	if (r < 0)
		return r;
	qga_ask_read(text, handle);
	r = command(q, text, &answer);
	if (r == 0)
		r = read_by(q, answer, qga_read_data(answer, q->file));
	closed = close_file(q, handle);
	return r < 0 ? r : closed;
}

/*
 * "r+" makes no file. The agent writes with buffers: the kernel has it, and says what it thinks of
 * it, when it is flushed.
 */
static int write_file(struct lv_qga *q, const char *path, const char *what)
{
	char text[QGA_COMMAND];
	int64_t handle;
	bool invalid;
	int r = open_file(q, path, "r+", &handle);

	if (r < 0)
		return r;
	qga_ask_write(text, handle, what);
	r = do_it(q, text);
	qga_ask_flush(text, handle);
	if (r == 0)
		r = do_it(q, text);
	invalid = r < 0 && q->invalid;
	close_file(q, handle);
	q->invalid = invalid;
	return r;
}

/* ---- the platform of the agent's core ---- */

static uint64_t now(void *ctx)
{
	return ((const struct lv_qga *)ctx)->now;
}

static uint64_t bounded(uint64_t figure)
{
	return figure < FIGURE_MAX ? figure : FIGURE_MAX;
}

/* Sums and rates of them are reckoned. */
static void bound(struct agent_guest *g)
{
	g->total = bounded(g->total);
	g->free = bounded(g->free);
	g->available = bounded(g->available);
	g->active_anon = bounded(g->active_anon);
	g->inactive_anon = bounded(g->inactive_anon);
	g->active_file = bounded(g->active_file);
	g->inactive_file = bounded(g->inactive_file);
	g->reclaimable = bounded(g->reclaimable);
	g->swap_free = bounded(g->swap_free);
	g->refaults = bounded(g->refaults);
	g->swapins = bounded(g->swapins);
	g->psi_some_us = bounded(g->psi_some_us);
	g->psi_full_us = bounded(g->psi_full_us);
}

static int guest(void *ctx, struct agent_guest *ret_guest)
{
	struct lv_qga *q = ctx;
	struct agent_guest g = { 0 };
	int r = read_file(q, "/proc/meminfo");

	if (r == 0)
		r = linux_take_meminfo(q->file, &g);
	if (r == 0)
		r = read_file(q, "/proc/vmstat");
	if (r < 0) {
		q->failed = r;
		return r;
	}
	linux_take_vmstat(q->file, &g);
	q->restores = bounded(linux_restores(q->file));
	q->stolen = linux_stolen(q->file);
	if (q->pressure && read_file(q, "/proc/pressure/memory") == 0)
		linux_take_pressure(q->file, &g);
	bound(&g);
	*ret_guest = q->seen = g;
	return 0;
}

static size_t groups(void *ctx, struct agent_group *ret_groups, size_t nr)
{
	const struct lv_qga *q = ctx;

	linux_whole_guest(&q->seen, q->restores, ret_groups);
	return 1;
}

/*
 * What a batch took is what the write took: the calls around it are none of the guest's work.
 * Without swappiness, which this kernel does not take, only a lack of swap keeps anonymous pages.
 */
static int reclaim(
	void *ctx, const struct agent_group *group, uint64_t bytes, bool anon, uint64_t *ret_came)
{
	struct lv_qga *q = ctx;
	bool file_only = !anon && q->swappiness;
	uint64_t before = q->stolen, after;
	char text[QGA_WRITE];
	int r;

	*ret_came = 0;
	if (!anon && !q->swappiness && q->seen.swap_free)
		return -EOPNOTSUPP;
	snprintf(text, sizeof(text), "%" PRIu64 "%s", bytes, file_only ? " swappiness=0" : "");
	q->now = lv_now();
	r = write_file(q, RECLAIM_FILE, text);
	q->now = lv_now();
	if (r == -EACCES && q->invalid && file_only) {
		q->swappiness = false;
		return reclaim(ctx, group, bytes, anon, ret_came);
	}
	if (read_file(q, "/proc/vmstat") == 0) {
		after = linux_stolen(q->file);
		*ret_came = after > before ? bounded(after - before) : 0;
		q->stolen = after;
	}
	return r;
}

static int protect(void *ctx, const struct agent_group *group, bool on)
{
	return -EOPNOTSUPP;
}

static int send_text(void *ctx, const char *text, size_t length)
{
	struct lv_qga *q = ctx;

	agent_channel_input(&q->channel, q->now, text, length);
	return 0;
}

/* ---- a round ---- */

/* Not before a pause; why NULL: it is nobody's fault. */
static void lose(struct lv_qga *q, const char *why)
{
	agent_channel_close(&q->channel);
	if (why)
		agent_channel_fault(&q->channel, why);
	q->met = false;
	q->doubtful = true;
	q->due = lv_now() + (q->hv->calls->times.qga_pause << (why ? q->failures : 0));
	if (why && q->failures < DOUBLINGS)
		q->failures++;
}

static const char *why_failed(const struct lv_qga *q)
{
	switch (q->failed) {
	case -EPERM:
		return q->why;
	case -ETIMEDOUT:
		return "QEMU's agent does not answer";
	case -ENODEV:
		return "no channel for QEMU's agent";
	case -EACCES:
		return "QEMU's agent refuses to read /proc";
	case -EBADMSG:
	case -E2BIG:
		return "QEMU's agent answers what is no answer";
	default: /* not running, not connected, no memory here */
		return NULL;
	}
}

static const char *blocked(struct lv_qga *q, unsigned int can)
{
	snprintf(q->why, sizeof(q->why), "its policy blocks %s", qga_command_name(can));
	return q->why;
}

/* Whether this kernel, and the agent's policy, let memory be reclaimed. */
static bool may_reclaim(struct lv_qga *q, const struct qga_info *info)
{
	unsigned int lacking = (QGA_WRITES | QGA_FLUSH) & ~info->can;
	int64_t handle;

	if (lacking) {
		agent_channel_fault(&q->channel, blocked(q, lacking));
		return false;
	}
	return open_file(q, RECLAIM_FILE, "r+", &handle) == 0 && close_file(q, handle) == 0;
}

/* What the guest can, as ballast-agent says it with its hello. */
static void greet(struct lv_qga *q, uint64_t can)
{
	char text[PROTOCOL_MESSAGE_MAX + 3];
	size_t length = agent_channel_open(&q->channel, text);

	q->platform = (struct agent_platform){ .software = q->software,
		.can = can,
		.now = now,
		.guest = guest,
		.groups = groups,
		.reclaim = reclaim,
		.protect = protect,
		.send = send_text };
	q->swappiness = true;
	agent_start(&q->agent, &q->platform, q);
	agent_input(&q->agent, text, length);
	q->met = true;
}

/* The first words; afterwards it is met, or why not is in failed and the channel's fault. */
static void meet(struct lv_qga *q)
{
	const unsigned int needed = QGA_OPEN | QGA_READ | QGA_CLOSE;
	struct agent_guest g = { 0 };
	char text[QGA_COMMAND], *answer = NULL;
	struct qga_info info;
	uint64_t can = PROTOCOL_CAN_ANON;

	qga_ask_info(text);
	if (command(q, text, &answer) < 0 || read_by(q, answer, qga_read_info(answer, &info)) < 0) {
		q->failed = q->failed ? q->failed : -EACCES;
		return;
	}
	if (needed & ~info.can) {
		blocked(q, needed & ~info.can);
		q->failed = -EPERM;
		return;
	}
	if (read_file(q, "/proc/meminfo") < 0 || linux_take_meminfo(q->file, &g) < 0) {
		q->failed = q->failed ? q->failed : -EACCES;
		return;
	}
	if (strstr(q->file, "Inactive(file):"))
		can |= PROTOCOL_CAN_LISTS;
	q->pressure = read_file(q, "/proc/pressure/memory") == 0;
	if (q->pressure)
		can |= PROTOCOL_CAN_PRESSURE;
	if (may_reclaim(q, &info))
		can |= PROTOCOL_CAN_RECLAIM;
	snprintf(q->software, sizeof(q->software), "qemu-ga %s", info.version);
	if (!q->failed)
		greet(q, can);
}

/* The request that came meanwhile; its answer is in the channel, or, where it cannot be made... */
static int hand_over(struct lv_qga *q)
{
	char text[PROTOCOL_MESSAGE_MAX + 2];
	size_t length = 0;
	int r = agent_channel_reclaim(&q->channel, q->now, &q->call, text, &length);

	if (r == 0)
		agent_input(&q->agent, text, length);
	return r;
}

/* 0, or what the request that was to be handed over failed with. */
static int run(struct lv_qga *q)
{
	uint64_t next, rest = q->now + q->hv->calls->times.qga_read;
	int r = 0;

	if (!q->met)
		meet(q);
	if (q->ask)
		r = q->met ? hand_over(q) : -ENOTCONN;
	if (q->met) {
		next = agent_step(&q->agent);
		q->due = q->agent.request.id ? lv_now() : next > rest ? next : rest;
	}
	if (q->failed) {
		lose(q, why_failed(q));
		return r;
	}
	q->doubtful = false;
	q->failures = 0;
	return r;
}

/* Not locked. As run(). */
static int serve(struct lv_worker *worker, struct lv_qga *q)
{
	struct hv *hv = worker->hv;
	uint64_t generation;
	bool connected;
	int r = 0;

	pthread_mutex_lock(&hv->lock);
	connected = hv->connected;
	generation = hv->generation;
	pthread_mutex_unlock(&hv->lock);
	q->now = lv_now();
	q->failed = 0;
	q->dom = NULL;
	if (connected && lv_worker_connect(worker, generation)) {
		q->conn = worker->conn;
		q->dom = hv->calls->domain_lookup_by_uuid(worker->conn, q->uuid.bytes);
	}
	if (!q->dom) {
		lose(q, NULL);
		q->failed = -ENOTCONN;
	} else {
		r = run(q);
	}
	if (q->dom)
		hv->calls->domain_free(q->dom);
	if (q->failed == -ENOTCONN)
		lv_worker_disconnect(worker);
	return r;
}

/* ---- the threads; all below has the lock ---- */

static void end_job(struct lv_qga *q, int error, uint64_t came)
{
	if (q->job)
		lv_agents_answer(q->hv, q->job, error, came);
	q->job = NULL;
	q->fresh = false;
}

/* error: what the request that was handed over failed with. */
static void settle(struct lv_qga *q, int error)
{
	uint64_t came = 0;

	q->busy = false;
	q->listens = q->met;
	if (q->ask && error && !q->fresh)
		end_job(q, error, 0);
	else if (agent_channel_answer(&q->channel, lv_now(), &error, &came) && !q->fresh)
		end_job(q, error, came);
	if (q->fresh && !q->listens)
		end_job(q, -ENOTCONN, 0);
	q->ask = false;
	if (q->fresh)
		q->due = 0;
	lv_agents_tell(q->hv, &q->uuid, &q->channel);
}

static void forget(struct hv *hv, uint64_t now_us)
{
	struct lv_qga **at = &hv->qga, *q;

	while ((q = *at)) {
		if (q->busy || (!q->leaves && now_us - q->named < FORGOTTEN_US)) {
			at = &q->next;
			continue;
		}
		end_job(q, -ENOTCONN, 0);
		agent_channel_close(&q->channel);
		lv_agents_tell(hv, &q->uuid, &q->channel);
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
			end_job(q, -EAGAIN, 0);
		q->due = now_us + times->qga_read;
		return false;
	}
	q->busy = true;
	q->ask = q->fresh;
	if (q->ask)
		q->call = q->job->call;
	q->fresh = false;
	return true;
}

static void *qga_thread(void *arg)
{
	struct lv_worker *worker = arg;
	struct hv *hv = worker->hv;
	bool doubtful = worker == &hv->qga_workers[LV_QGA_DOUBTFUL];
	int error;

	pthread_mutex_lock(&hv->agents_lock);
	while (!hv->agents_end) {
		struct lv_qga *q;
		uint64_t due;

		forget(hv, lv_now());
		q = first(hv, doubtful, &due);
		if (!q || due > lv_now()) {
			wait_until(hv, due);
			continue;
		}
		if (!begin(q, lv_now()))
			continue;
		pthread_mutex_unlock(&hv->agents_lock);
		error = serve(worker, q);
		pthread_mutex_lock(&hv->agents_lock);
		settle(q, error);
		pthread_cond_broadcast(&hv->qga_cond); /* it may be the other's now */
	}
	pthread_mutex_unlock(&hv->agents_lock);
	lv_worker_disconnect(worker);
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
		struct lv_worker *worker = &hv->qga_workers[hv->nr_qga_threads];

		worker->hv = hv;
		if (lv_start_thread(hv, qga_thread, worker) < 0)
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
		q->named = lv_now();
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
		q->rested_at = job ? 0 : lv_now();
	pthread_mutex_unlock(&hv->agents_lock);
}

bool lv_qga_reclaim(struct hv *hv, struct lv_job *job)
{
	struct lv_qga *q = find(hv, &job->call.uuid);

	if (!q)
		return false;
	if (q->job || !q->listens) {
		lv_agents_answer(hv, job, q->job ? -EAGAIN : -ENOTCONN, 0);
		return true;
	}
	q->job = job;
	q->fresh = true;
	q->deadline = lv_now() + job->call.deadline_ms * 1000 + AGENT_CHANNEL_GRACE_US;
	if (!q->busy)
		q->due = 0;
	pthread_cond_broadcast(&hv->qga_cond);
	return true;
}

void lv_qga_look(struct hv *hv, uint64_t now_us)
{
	for (struct lv_qga *q = hv->qga; q; q = q->next)
		if (q->job && now_us >= q->deadline)
			end_job(q, -ETIMEDOUT, 0);
}

void lv_qga_destroy(struct hv *hv)
{
	struct lv_qga *q;

	while ((q = hv->qga)) {
		hv->qga = q->next;
		free(q->job); /* only of a handle that ends: nobody takes the answer */
		free(q);
	}
}
