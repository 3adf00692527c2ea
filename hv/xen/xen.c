/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of the Xen backend, and the life of its handle; see xen.h and backend.h. */
#include <config.h>

#include "hv/xen/xen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/negative.h"
#include "hv/xen/backend.h"

#define PAGE_BYTES UINT64_C(4096)

static const char away[] = "not connected to xenstored";

static atomic_uint nr_alive;

unsigned int hv_xen_nr_alive(void)
{
	return atomic_load(&nr_alive);
}

bool hv_xen_here(void)
{
	return access("/proc/xen/privcmd", F_OK) == 0 || access("/dev/xen/privcmd", F_OK) == 0;
}

/* ---- references ---- */

struct hv *xen_get(struct hv *hv)
{
	atomic_fetch_add(&hv->refs, 1);
	return hv;
}

void xen_forget(struct hv *hv, struct domain *domain)
{
	if (hv->by_domid[domain->domid] == domain)
		hv->by_domid[domain->domid] = NULL;
	HASH_DEL(hv->domains, domain);
	free(domain->name);
	free(domain);
}

/* Also of what open() made only half. */
static void free_hv(struct hv *hv)
{
	struct domain *domain, *next;

	HASH_ITER (hh, hv->domains, domain, next)
		xen_forget(hv, domain);
	hv_tasks_clear(&hv->listing);
	hv_tasks_clear(&hv->reclaims);
	hv_workers_destroy(&hv->workers);
	xen_agents_free(hv->agents);
	hv_queue_destroy(&hv->queue);
	if (hv->xc)
		hv->calls->interface_close(hv->xc);
	if (hv->wake_fd >= 0)
		close(hv->wake_fd);
	if (hv->agents_fd >= 0)
		close(hv->agents_fd);
	pthread_mutex_destroy(&hv->lock);
	pthread_mutex_destroy(&hv->telling);
	free(hv->infos);
	free(hv->submit_infos);
	free(hv->by_domid);
	free(hv->watched);
	free(hv);
	atomic_fetch_sub(&nr_alive, 1);
}

void xen_put(struct hv *hv)
{
	if (atomic_fetch_sub(&hv->refs, 1) == 1)
		free_hv(hv);
}

static int start_thread(struct hv *hv, void *(*run)(void *))
{
	int r;

	xen_get(hv);
	r = hv_thread_start(run, hv);
	if (r < 0)
		atomic_fetch_sub(&hv->refs, 1); /* never the last one: the caller has its own */
	return r;
}

struct domain *xen_find_any(struct hv *hv, const struct hv_uuid *uuid)
{
	struct domain *domain;

	HASH_FIND(hh, hv->domains, uuid, sizeof(*uuid), domain);
	return domain;
}

struct domain *xen_find(struct hv *hv, const struct hv_uuid *uuid)
{
	struct domain *domain = xen_find_any(hv, uuid);

	return domain && domain->adopted && !domain->gone_at ? domain : NULL;
}

int xen_link_open(struct xen_link *link, const struct xen_calls *calls, uint64_t generation)
{
	int r;

	if (link->generation != generation)
		xen_link_close(link, calls);
	link->generation = generation;
	if (!link->xc)
		link->xc = calls->interface_open();
	if (!link->xc)
		return -ENOTCONN;
	r = link->store.xs ? 0 : store_open(&link->store, calls);
	return r;
}

void xen_link_close(struct xen_link *link, const struct xen_calls *calls)
{
	store_close(&link->store);
	if (link->xc)
		calls->interface_close(link->xc);
	link->xc = NULL;
}

/* ---- workers ---- */

static void perform(struct hv *hv, unsigned int nr, struct hv_task *task)
{
	struct hv_event *event = &task->item.event;
	struct xen_link *link = &hv->links[nr];
	uint64_t generation;
	bool connected;

	pthread_mutex_lock(&hv->lock);
	connected = hv->connected;
	generation = hv->generation;
	pthread_mutex_unlock(&hv->lock);
	if (!connected || xen_link_open(link, hv->calls, generation) < 0) {
		hv_event_fail(event, -ENOTCONN, away);
		return;
	}
	xen_perform(hv, link, task);
	/* The control thread finds out by itself whether xenstored is gone. */
	if (store_lost(event->error)) {
		event->error = -ENOTCONN;
		xen_link_close(link, hv->calls);
		xen_wake(hv);
	}
}

static void disconnect(struct hv *hv, unsigned int nr)
{
	xen_link_close(&hv->links[nr], hv->calls);
}

static const struct hv_workers_table workers_table = {
	.get = xen_get,
	.put = xen_put,
	.perform = perform,
	.disconnect = disconnect,
	.hang = "too many calls to xenstored hang",
};

/* ---- open and close ---- */

static bool handles(const char *uri)
{
	return uri && !strcasecmp(uri, HV_XEN_URI);
}

static int open_fds(struct hv *hv)
{
	hv->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (hv->wake_fd >= 0)
		hv->agents_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return hv->agents_fd < 0 ? negative(errno) : 0;
}

static int new_hv(const struct xen_calls *calls, const struct hv_params *params, struct hv **ret_hv)
{
	struct hv *hv = calloc(1, sizeof(*hv));
	int r;

	if (!hv)
		return -ENOMEM;
	hv->calls = calls;
	hv->dom0_min = params->dom0_min;
	hv->wake_fd = hv->agents_fd = -1;
	r = hv_queue_init(&hv->queue);
	if (r < 0) {
		free(hv);
		return r;
	}
	pthread_mutex_init(&hv->telling, NULL);
	pthread_mutex_init(&hv->lock, NULL);
	hv_workers_init(&hv->workers, hv, &workers_table, &hv->queue, &hv->lock, calls->times.hung);
	atomic_init(&hv->refs, 1);
	atomic_fetch_add(&nr_alive, 1);
	hv->infos = calloc(XEN_BATCH, sizeof(*hv->infos));
	hv->submit_infos = calloc(XEN_BATCH, sizeof(*hv->submit_infos));
	hv->watched = calloc(XEN_DOMAINS_MAX, sizeof(*hv->watched));
	hv->by_domid = calloc(XEN_DOMAINS_MAX, sizeof(struct domain *));
	r = hv->infos && hv->submit_infos && hv->watched && hv->by_domid
		    ? xen_agents_new(&hv->agents)
		    : -ENOMEM;
	if (r == 0)
		r = open_fds(hv);
	if (r < 0) {
		xen_put(hv);
		return r;
	}
	*ret_hv = hv;
	return 0;
}

static void close_hv(struct hv *hv)
{
	if (!hv)
		return;
	pthread_mutex_lock(&hv->lock);
	hv->stopping = true;
	hv->connected = false;
	hv_workers_stop(&hv->workers);
	xen_wake(hv);
	xen_agents_wake(hv);
	pthread_mutex_unlock(&hv->lock);
	xen_put(hv);
}

int hv_xen_open_with(
	const struct xen_calls *calls, const struct hv_params *params, struct hv **ret_hv)
{
	struct hv *hv = NULL;
	int r;

	if (!handles(params->uri))
		return -EINVAL;
	r = new_hv(calls, params, &hv);
	if (r < 0)
		return r;
	r = start_thread(hv, xen_control_thread);
	if (r == 0)
		r = start_thread(hv, xen_agents_thread);
	if (r < 0) {
		close_hv(hv);
		return r;
	}
	*ret_hv = hv;
	return 0;
}

static int open_hv(const struct hv_params *params, struct hv **ret_hv)
{
	return hv_xen_open_with(&xen_calls, params, ret_hv);
}

/* ---- what hypercalls alone answer: they do not block ---- */

/* Lock held. Not tried over and over where the control thread has found none. */
static xc_interface *own_interface(struct hv *hv)
{
	if (!hv->xc && hv->connected)
		hv->xc = hv->calls->interface_open();
	return hv->xc;
}

/* Lock held. */
static void put_process(struct hv_process *process, const struct domain *domain)
{
	*process = (struct hv_process){
		.uuid = domain->uuid,
		.known = true,
		.swap_known = true, /* nobody swaps a guest out behind its back */
		.resident = domain_actual_kib(domain) * 1024,
		.overhead = domain_overhead_kib(domain) * 1024,
		.started = domain->creation,
	};
}

int xen_for_each_info(struct hv *hv, xc_interface *xc, xc_domaininfo_t *infos,
	void (*fn)(struct hv *hv, const xc_domaininfo_t *info))
{
	uint32_t first = 0;
	int nr = XEN_BATCH;

	/* Domids only grow from batch to batch, so this ends. */
	while (nr == XEN_BATCH && first < XEN_DOMAINS_MAX) {
		pthread_mutex_unlock(&hv->lock);
		nr = hv->calls->domain_getinfolist(xc, first, XEN_BATCH, infos);
		pthread_mutex_lock(&hv->lock);
		if (nr < 0)
			return -ENOTCONN;
		for (int i = 0; i < nr; i++)
			if (infos[i].domain < XEN_DOMAINS_MAX)
				fn(hv, &infos[i]);
		if (nr > 0)
			first = infos[nr - 1].domain + UINT32_C(1);
	}
	return 0;
}

static void look_again(struct hv *hv, const xc_domaininfo_t *info)
{
	struct domain *domain = hv->by_domid[info->domain];

	if (domain && !memcmp(domain->handle, info->handle, sizeof(domain->handle)))
		domain_look(domain, hv_now(), info, hv->calls->times.rest);
}

static void read_processes(struct hv *hv, struct hv_event *event)
{
	struct domain *domain, *next;
	size_t nr = 0;

	pthread_mutex_lock(&hv->lock);
	if (!own_interface(hv) || xen_for_each_info(hv, hv->xc, hv->submit_infos, look_again) < 0)
		event->error = -ENOTCONN;
	event->process.vms = calloc(HASH_COUNT(hv->domains) + 1, sizeof(*event->process.vms));
	if (!event->process.vms && event->error == 0)
		event->error = -ENOMEM;
	HASH_ITER (hh, hv->domains, domain, next)
		if (event->process.vms && domain->adopted && !domain->gone_at)
			put_process(&event->process.vms[nr++], domain);
	event->process.nr = nr;
	pthread_mutex_unlock(&hv->lock);
}

/* What is claimed for a domain that is being built is nobody else's. */
static void read_host(struct hv *hv, struct hv_event *event)
{
	xc_physinfo_t info;
	xc_interface *xc;

	memset(&info, 0, sizeof(info));
	pthread_mutex_lock(&hv->lock);
	xc = own_interface(hv);
	pthread_mutex_unlock(&hv->lock);
	if (!xc || hv->calls->physinfo(xc, &info) < 0) {
		hv_event_fail(event, -ENOTCONN, "the hypervisor does not tell its memory");
		return;
	}
	event->host = (struct hv_host){
		.known = true,
		.total = info.total_pages * PAGE_BYTES,
		.available = info.free_pages > info.outstanding_pages
				     ? (info.free_pages - info.outstanding_pages) * PAGE_BYTES
				     : 0,
	};
}

/* ---- calls and events ---- */

static int fd(struct hv *hv)
{
	return hv->queue.fd;
}

/* Lock held. -ENOTCONN */
static int enqueue(struct hv *hv, struct hv_task *task)
{
	const struct domain *domain = xen_find(hv, &task->call.uuid);
	int r;

	if (!hv->connected)
		return -ENOTCONN;
	switch (task->call.type) {
	case HV_LIST:
	case HV_INFO:
		r = hv_tasks_add(&hv->listing, task);
		xen_wake(hv);
		return r;
	case HV_RECLAIM:
		r = hv_tasks_add(&hv->reclaims, task);
		xen_agents_wake(hv);
		return r;
	default:
		task->mark = domain ? domain->words_said : 0;
		return hv_workers_add(&hv->workers, task);
	}
}

static int submit(struct hv *hv, const struct hv_call *call)
{
	struct hv_task *task;
	int r;

	r = hv_task_new(call, &task);
	if (r < 0)
		return r;
	if (call->type == HV_PROCESS || call->type == HV_HOST) {
		if (call->type == HV_PROCESS)
			read_processes(hv, &task->item.event);
		else
			read_host(hv, &task->item.event);
		hv_task_answer(&hv->queue, task);
		return 0;
	}
	pthread_mutex_lock(&hv->lock);
	r = enqueue(hv, task);
	pthread_mutex_unlock(&hv->lock);
	return hv_task_submitted(&hv->queue, task, r, away);
}

/* Lock held: the core is told of that word, or of that life. */
static void note_said(struct domain *domain, const struct hv_event *event)
{
	uint64_t said = event->type == HV_EVENT_TOLD ? event->actual : domain->creation << 32;

	if (said > domain->words_said && said <= domain->words)
		domain->words_said = said;
}

static int next(struct hv *hv, struct hv_event *ret_event)
{
	struct domain *domain = NULL;
	int r;

	/* With the lock, as another life is not said with the one before. */
	pthread_mutex_lock(&hv->lock);
	r = hv_queue_take(&hv->queue, ret_event);
	if (r > 0 && (ret_event->type == HV_EVENT_TOLD || ret_event->type == HV_EVENT_REBOOTED))
		domain = xen_find_any(hv, &ret_event->uuid);
	if (domain)
		note_said(domain, ret_event);
	pthread_mutex_unlock(&hv->lock);
	return r;
}

const struct hv_backend hv_xen = {
	.name = "xen",
	.loosens = false, /* a target is memory at once */
	.granule = PAGE_BYTES,
	.silent = true,
	.host_apart = true,
	.handles = handles,
	.open = open_hv,
	.close = close_hv,
	.fd = fd,
	.submit = submit,
	.next = next,
};
