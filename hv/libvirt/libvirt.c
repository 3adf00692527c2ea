/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of the libvirt backend, and the life of its handle; see libvirt.h and backend.h. */
#include <config.h>

#include "hv/libvirt/libvirt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "hv/libvirt/backend.h"
#include "hv/libvirt/domxml.h"
#include "hv/pool.h"

/* Some pressure: a twentieth of the time lost within half a second, the least that Linux takes...
 */
#define PSI_WINDOW_US 500000
#define PSI_STALL_US  25000
/* ...and without CAP_SYS_RESOURCE it takes whole multiples of two seconds only. */
#define PSI_WINDOW_UNPRIVILEGED_US 2000000

static const char away[] = "not connected to libvirt";

static atomic_uint nr_alive;

unsigned int hv_libvirt_nr_alive(void)
{
	return atomic_load(&nr_alive);
}

/* ---- references ---- */

struct hv *lv_get(struct hv *hv)
{
	atomic_fetch_add(&hv->refs, 1);
	return hv;
}

/* Also of what open() made only half. */
static void free_hv(struct hv *hv)
{
	hv_tasks_clear(&hv->listing);
	hv_workers_destroy(&hv->workers);
	processes_free(hv->processes);
	lv_agents_destroy(hv);
	lv_qga_destroy(hv);
	pthread_cond_destroy(&hv->qga_cond);
	pthread_mutex_destroy(&hv->agents_lock);
	hv_queue_destroy(&hv->queue);
	if (hv->psi_fd >= 0)
		close(hv->psi_fd);
	if (hv->stop_fd >= 0)
		close(hv->stop_fd);
	pthread_cond_destroy(&hv->control_cond);
	pthread_cond_destroy(&hv->process_cond);
	pthread_mutex_destroy(&hv->lock);
	free(hv->uri);
	free(hv->meminfo);
	free(hv->arcstats);
	free(hv->notes);
	free(hv);
	atomic_fetch_sub(&nr_alive, 1);
}

void lv_put(struct hv *hv)
{
	if (hv && atomic_fetch_sub(&hv->refs, 1) == 1)
		free_hv(hv);
}

int lv_start_thread(struct hv *hv, void *(*run)(void *), void *arg)
{
	int r;

	lv_get(hv);
	r = hv_thread_start(run, arg);
	if (r < 0)
		atomic_fetch_sub(&hv->refs, 1); /* never the last one: the caller has its own */
	return r;
}

/* ---- the URI ---- */

const char *hv_libvirt_refusal(const char *uri)
{
	size_t scheme;

	if (!uri || !*uri)
		return NULL;
	scheme = strcspn(uri, ":+/");
	if (scheme == 3 && !strncasecmp(uri, "xen", scheme) && uri[scheme])
#ifdef WITH_XEN
		return "Xen is driven by its own backend, not through libvirt: use xen:///local";
#else
		return "Xen is not driven through libvirt, and this build has no Xen backend "
		       "(configure --with-xen)";
#endif
	if ((scheme == 3 && !strncmp(uri, "sim", scheme) && uri[scheme]) ||
		(scheme == 5 && !strncmp(uri, "fault", scheme) && uri[scheme]))
		return "this is no URI of libvirt's";
	return NULL;
}

static bool handles(const char *uri)
{
	return !hv_libvirt_refusal(uri);
}

/* ---- workers ---- */

static void perform(struct hv *hv, unsigned int nr, struct hv_task *task)
{
	struct hv_event *event = &task->item.event;
	struct lv_link *link = &hv->links[nr];
	int r = lv_link_connect(link);

	if (r == -ENOTCONN)
		hv_event_fail(event, r, away);
	else if (r < 0)
		lv_failed(hv, NULL, event, "connecting");
	else
		lv_perform_worker(hv, link->conn, event, &task->call);
	if (r < 0)
		event->error = -ENOTCONN;
	/* The control connection finds out by itself whether libvirt is gone. */
	if (event->error == -ENOTCONN)
		lv_link_disconnect(link);
}

static void disconnect(struct hv *hv, unsigned int nr)
{
	lv_link_disconnect(&hv->links[nr]);
}

static const struct hv_workers_table workers_table = {
	.get = lv_get,
	.put = lv_put,
	.perform = perform,
	.disconnect = disconnect,
	.hang = "too many calls to libvirt hang",
};

/* ---- open and close ---- */

static int init_locks(struct hv *hv)
{
	pthread_mutex_init(&hv->lock, NULL);
	pthread_mutex_init(&hv->agents_lock, NULL);
	hv_cond_init(&hv->control_cond);
	hv_cond_init(&hv->process_cond);
	hv_cond_init(&hv->qga_cond);
	hv_workers_init(
		&hv->workers, hv, &workers_table, &hv->queue, &hv->lock, hv->calls->times.hung);
	return hv_queue_init(&hv->queue);
}

/* Without PSI the backend works as well: it is said once, with the first HV_EVENT_UP. */
static int open_pressure(struct hv *hv, const char *path)
{
	int r;

	if (!path)
		return 0;
	r = pool_open_psi(path, PSI_STALL_US, PSI_WINDOW_US, &hv->psi_fd);
	if (r == -EINVAL || r == -EPERM)
		r = pool_open_psi(path, PSI_STALL_US, PSI_WINDOW_UNPRIVILEGED_US, &hv->psi_fd);
	if (r == 0)
		return 0;
	hv->psi_fd = -1;
	if (asprintf(&hv->notes, "%s: %s: pressure is not watched", path, strerror(-r)) < 0) {
		hv->notes = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int new_hv(
	const struct libvirt_calls *calls, const struct hv_params *params, struct hv **ret_hv)
{
	const char *proc = params->proc ? params->proc : "/proc";
	struct hv *hv = calloc(1, sizeof(*hv));
	int r;

	if (!hv)
		return -ENOMEM;
	hv->calls = calls;
	for (unsigned int i = 0; i < HV_WORKERS; i++)
		hv->links[i].hv = hv;
	for (unsigned int i = 0; i < LV_QGA_THREADS; i++)
		hv->qga_links[i].hv = hv;
	hv->psi_fd = hv->stop_fd = hv->timer = hv->agents_epoll = hv->agents_fd = -1;
	r = init_locks(hv);
	if (r < 0) {
		free(hv);
		return r;
	}
	atomic_init(&hv->refs, 1);
	atomic_fetch_add(&nr_alive, 1);
	for (unsigned int i = 0; i < LV_EVENTS; i++)
		hv->event_ids[i] = -1;
	r = -ENOMEM;
	if (params->uri && !(hv->uri = strdup(params->uri)))
		goto fail;
	if (asprintf(&hv->meminfo, "%s/meminfo", proc) < 0) {
		hv->meminfo = NULL;
		goto fail;
	}
	if (asprintf(&hv->arcstats, "%s/spl/kstat/zfs/arcstats", proc) < 0) {
		hv->arcstats = NULL;
		goto fail;
	}
	hv->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (hv->stop_fd < 0) {
		r = -errno;
		goto fail;
	}
	r = processes_new(proc, params->cgroup ? params->cgroup : "/sys/fs/cgroup",
		params->pids ? params->pids : "/run/libvirt/qemu", &hv->processes);
	if (r < 0)
		goto fail;
	r = lv_agents_init(hv);
	if (r < 0)
		goto fail;
	r = open_pressure(hv, params->psi);
	if (r < 0)
		goto fail;
	*ret_hv = hv;
	return 0;
fail:
	lv_put(hv);
	return r < 0 ? r : -EIO;
}

/* libvirt prints errors to stderr unless somebody takes them; they are in the events already. */
static void quiet(void *ctx, virErrorPtr error)
{
}

/*
 * Only ends a round of the loop. The handle's own thread switches the timer off again: with several
 * handles in a process any of their threads may get here.
 */
static void wake(int timer, void *opaque)
{
}

void lv_wake_loop(struct hv *hv)
{
	if (hv->timer < 0)
		return;
	hv->woken = true;
	hv->calls->event_update_timeout(hv->timer, 0);
}

static void close_hv(struct hv *hv)
{
	uint64_t one = 1;
	ssize_t n;

	if (!hv)
		return;
	pthread_mutex_lock(&hv->lock);
	hv->stopping = true;
	hv->connected = false;
	pthread_cond_broadcast(&hv->control_cond);
	hv_workers_stop(&hv->workers);
	pthread_cond_broadcast(&hv->process_cond);
	n = write(hv->stop_fd, &one, sizeof(one));
	(void)n; /* an empty counter takes one */
	lv_wake_loop(hv);
	pthread_mutex_unlock(&hv->lock);
	lv_agents_end(hv);
	lv_put(hv);
}

int hv_libvirt_open_with(
	const struct libvirt_calls *calls, const struct hv_params *params, struct hv **ret_hv)
{
	struct hv *hv = NULL;
	int r;

	if (hv_libvirt_refusal(params->uri))
		return -EINVAL;
	r = new_hv(calls, params, &hv);
	if (r < 0)
		return r;
	domxml_init();
	calls->set_error_func(NULL, quiet);
	/* Before the first connection, or it gets no events and no keepalive. */
	hv->timer = calls->event_register_default_impl() < 0
			    ? -1
			    : calls->event_add_timeout(-1, wake, NULL, NULL);
	if (hv->timer < 0) {
		r = -EIO;
		goto fail;
	}
	r = lv_start_thread(hv, lv_event_thread, hv);
	if (r < 0) {
		calls->event_remove_timeout(hv->timer);
		hv->timer = -1;
		goto fail;
	}
	r = lv_start_thread(hv, lv_control_thread, hv);
	if (r == 0)
		r = lv_start_thread(hv, lv_process_thread, hv);
	if (r == 0)
		r = lv_start_thread(hv, lv_agents_thread, hv);
	if (r == 0 && hv->psi_fd >= 0)
		r = lv_start_thread(hv, lv_pressure_thread, hv);
	if (r < 0)
		goto fail;
	*ret_hv = hv;
	return 0;
fail:
	close_hv(hv);
	return r;
}

static int open_hv(const struct hv_params *params, struct hv **ret_hv)
{
	return hv_libvirt_open_with(&libvirt_calls, params, ret_hv);
}

/* ---- calls and events ---- */

static int fd(struct hv *hv)
{
	return hv->queue.fd;
}

/* Lock held. -ENOTCONN */
static int enqueue(struct hv *hv, struct hv_task *task)
{
	int r;

	if (!hv->connected)
		return -ENOTCONN;
	if (task->call.type != HV_LIST && task->call.type != HV_INFO)
		return hv_workers_add(&hv->workers, task);
	r = hv_tasks_add(&hv->listing, task);
	if (r == 0)
		pthread_cond_signal(&hv->control_cond);
	return r;
}

static int submit(struct hv *hv, const struct hv_call *call)
{
	struct hv_task *task;
	int r;

	if (call->type == HV_PERIOD && call->period_s > INT32_MAX)
		return -EINVAL;
	r = hv_task_new(call, &task);
	if (r < 0)
		return r;
	if (call->type == HV_RECLAIM) {
		lv_agents_reclaim(hv, task);
		return 0;
	}
	if (call->type == HV_PROCESS || call->type == HV_HOST) {
		if (call->type == HV_PROCESS)
			lv_read_processes(hv, &task->item.event);
		else
			lv_read_host(hv, &task->item.event);
		hv_task_answer(&hv->queue, task);
		return 0;
	}
	pthread_mutex_lock(&hv->lock);
	r = enqueue(hv, task);
	pthread_mutex_unlock(&hv->lock);
	return hv_task_submitted(&hv->queue, task, r, away);
}

static int next(struct hv *hv, struct hv_event *ret_event)
{
	return hv_queue_take(&hv->queue, ret_event);
}

const struct hv_backend hv_libvirt = {
	.name = "libvirt",
	.loosens = true,
	.granule = 1 << 20,
	.handles = handles,
	.open = open_hv,
	.close = close_hv,
	.fd = fd,
	.submit = submit,
	.next = next,
};
