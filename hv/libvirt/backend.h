/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * backend: what the files of the libvirt backend share. Not for others.
 *
 *   libvirt.c   the table: open, close, submit, next
 *   control.c   the control connection: connecting, events, listing
 *   perform.c   each call, step by step; hv/workers has who makes those that may hang
 *   agents.c    the sockets of agents in guests
 *   qga.c       guests that are reached through QEMU's guest agent; see qga.h
 *   watch.c     PSI, and the thread that looks for processes
 *   process smaps cgroup domxml calls qga_text   know nothing of this; nor does hv/queue.h
 *
 * Life: every thread and every domain event that is registered with libvirt has a reference of
 * the handle. Threads are detached, so nobody waits for them; when close() set `stopping` they
 * leave at the next opportunity, one that hangs when its call returns, and the last one frees all.
 */
#ifndef BALLAST_HV_LIBVIRT_BACKEND_H
#define BALLAST_HV_LIBVIRT_BACKEND_H

#include <stdatomic.h>

#include "hv/libvirt/calls.h"
#include "hv/libvirt/libvirt.h"
#include "hv/libvirt/process.h"
#include "hv/workers/workers.h"

/* Notice a frozen libvirtd within keepalive's interval x count and one interval more. */
#define LV_KEEPALIVE_S	   2
#define LV_KEEPALIVE_COUNT 3

/*
 * A thread's own connection, opened anew where the control connection was. libvirtd serves five
 * requests of a connection and twenty of all its clients at once: each of the HV_WORKERS has a
 * connection, and together they leave most of it to others. Calls that were out already when the
 * last of HV_MAX_HUNG turned out to hang may add to those, up to HV_WORKERS.
 */
struct lv_link {
	struct hv *hv;
	virConnectPtr conn;
	uint64_t generation;
};

/*
 * Threads with a connection each for QEMU's guest agents: one for those that answered when they
 * were asked last; one for all others, which also takes what the first is late with. Who hangs
 * costs those who answer next to nothing.
 */
enum lv_qga_thread { LV_QGA_SOUND, LV_QGA_DOUBTFUL, LV_QGA_THREADS };

/* What was told once: a call or flag that this libvirt does not know. */
enum lv_lack {
	LV_NO_BULK_STATE,
	LV_NO_CONFIG_PARAMETERS,
	LV_NO_MEMORY_FLAGS,
	LV_NO_JOB_STATS,
	LV_NR_LACKS,
};

#define LV_EVENTS 9

struct hv {
	atomic_uint refs;
	const struct libvirt_calls *calls;
	char *uri;		  /* NULL: libvirt's default */
	char *meminfo, *arcstats; /* paths */
	struct hv_queue queue;
	struct processes *processes;
	int stop_fd; /* readable once stopping */
	int psi_fd;  /* -1: none */
	char *notes; /* for the first HV_EVENT_UP */
	atomic_bool lacks[LV_NR_LACKS];
	atomic_bool no_process; /* no QEMU of this host is behind the connection */
	atomic_bool remote;	/* another host is */

	pthread_mutex_t lock; /* for all below */
	pthread_cond_t control_cond, process_cond;
	int timer;  /* wakes the event loop; -1: there is none */
	bool woken; /* the timer is to be switched off */
	bool stopping;
	bool connected;	     /* up, as far as is known */
	bool lost;	     /* the control connection is to be closed */
	uint64_t generation; /* grows with every connection: older ones of others are stale */
	unsigned int nr_conns, nr_callbacks; /* the event loop runs until there are none */
	struct hv_tasks listing;
	struct hv_workers workers;
	struct lv_link links[HV_WORKERS]; /* a worker's own each */
	bool process_work;

	pthread_mutex_t agents_lock; /* for these */
	struct lv_agent *agents;
	int agents_epoll, agents_fd; /* the second wakes the thread */
	bool agents_end;
	struct lv_qga *qga;
	struct lv_link qga_links[LV_QGA_THREADS];
	unsigned int nr_qga_threads; /* none before there is a VM for them */
	pthread_cond_t qga_cond;

	/* The control thread's. */
	virConnectPtr conn;
	int event_ids[LV_EVENTS];
};

/* ---- libvirt.c ---- */
struct hv *lv_get(struct hv *hv);
void lv_put(struct hv *hv);
/* One that has a reference of its own. */
int lv_start_thread(struct hv *hv, void *(*run)(void *), void *arg);
/* Lock held: makes the event loop look whether it is still needed. */
void lv_wake_loop(struct hv *hv);

/* ---- control.c ---- */
void *lv_event_thread(void *hv);
void *lv_control_thread(void *hv);
/*
 * Not locked. 0, -ENOTCONN: the control connection is not there, or -EIO: libvirt's error says why
 * there is none.
 */
int lv_link_connect(struct lv_link *link);
void lv_link_disconnect(struct lv_link *link);

/* ---- perform.c ---- */
/* On the control connection: HV_LIST, HV_INFO. */
void lv_perform_control(
	struct hv *hv, virConnectPtr conn, struct hv_event *event, const struct hv_call *call);
/* On a worker's connection: HV_STATS, HV_PERIOD, HV_TARGET, HV_UNTHROTTLE, HV_KNOBS, HV_ATTACH. */
void lv_perform_worker(
	struct hv *hv, virConnectPtr conn, struct hv_event *event, const struct hv_call *call);
/* Error and message of the call that just failed; "what" says which. */
void lv_failed(struct hv *hv, virConnectPtr conn, struct hv_event *event, const char *what);

/* ---- agents.c ---- */
int lv_agents_init(struct hv *hv);
void lv_agents_end(struct hv *hv);
/* Once no thread is left. */
void lv_agents_destroy(struct hv *hv);
void *lv_agents_thread(void *hv);
/* The VM's description names that socket, or NULL: none. */
void lv_agents_name(struct hv *hv, const struct hv_uuid *uuid, const char *path);
/* HV_RECLAIM; takes the task, and gives the answer to the queue. */
void lv_agents_reclaim(struct hv *hv, struct hv_task *task);

/* ---- qga.c; agents_lock is its lock ---- */
/* The VM's agent is QEMU's, or is not. */
void lv_qga_name(struct hv *hv, const struct hv_uuid *uuid, bool on);
bool lv_qga_is_named(struct hv *hv, const struct hv_uuid *uuid);
/* Whether a job runs on the domain or its disks, as is known now. */
void lv_qga_rests(struct hv *hv, const struct hv_uuid *uuid, bool job);
/* Lock held. The task is taken, true, where the VM's agent is QEMU's. */
bool lv_qga_reclaim(struct hv *hv, struct hv_task *task);
/* Lock held: requests whose time is over are answered, whatever hangs. */
void lv_qga_look(struct hv *hv, uint64_t now);
void lv_qga_destroy(struct hv *hv);

/* ---- watch.c ---- */
void *lv_pressure_thread(void *hv);
void *lv_process_thread(void *hv);
/* Within submit(). */
void lv_read_processes(struct hv *hv, struct hv_event *event);
void lv_read_host(struct hv *hv, struct hv_event *event);

#endif
