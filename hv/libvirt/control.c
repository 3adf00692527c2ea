/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The control connection: opened, watched, opened again, and asked what never hangs. */
#include <config.h>

#include "hv/libvirt/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "hv/libvirt/domxml.h"

/* How often the loop runs when nothing is connected any more: closed handles are freed in it. */
#define LAST_ROUNDS 3

/* ---- the event loop ---- */

void *lv_event_thread(void *arg)
{
	struct hv *hv = arg;
	const struct timespec pause = { .tv_nsec = 100000000 };
	unsigned int rounds = 0;

	while (rounds < LAST_ROUNDS) {
		pthread_mutex_lock(&hv->lock);
		if (hv->woken)
			hv->calls->event_update_timeout(hv->timer, -1);
		hv->woken = false;
		if (hv->stopping && hv->nr_conns == 0 && hv->nr_callbacks == 0) {
			rounds++;
			lv_wake_loop(hv);
		}
		pthread_mutex_unlock(&hv->lock);
		/* It never fails but for a bug; then at least not in a busy loop. */
		if (hv->calls->event_run_default_impl() < 0)
			nanosleep(&pause, NULL);
	}
	pthread_mutex_lock(&hv->lock);
	hv->calls->event_remove_timeout(hv->timer);
	hv->timer = -1;
	pthread_mutex_unlock(&hv->lock);
	lv_put(hv);
	return NULL;
}

/* ---- connections ---- */

/* With keepalive; counted, also while it is opened. NULL: see the error. */
static virConnectPtr open_connection(struct hv *hv)
{
	virConnectPtr conn;

	pthread_mutex_lock(&hv->lock);
	hv->nr_conns++;
	pthread_mutex_unlock(&hv->lock);
	conn = hv->calls->connect_open(hv->uri);
	if (!conn) {
		pthread_mutex_lock(&hv->lock);
		hv->nr_conns--;
		lv_wake_loop(hv);
		pthread_mutex_unlock(&hv->lock);
		return NULL;
	}
	/* Drivers without a server need none: the failure is ignored. */
	hv->calls->connect_set_keep_alive(conn, LV_KEEPALIVE_S, LV_KEEPALIVE_COUNT);
	return conn;
}

static void close_connection(struct hv *hv, virConnectPtr conn)
{
	hv->calls->connect_close(conn);
	pthread_mutex_lock(&hv->lock);
	hv->nr_conns--;
	lv_wake_loop(hv);
	pthread_mutex_unlock(&hv->lock);
}

int lv_link_connect(struct lv_link *link)
{
	struct hv *hv = link->hv;
	uint64_t generation;
	bool connected;

	pthread_mutex_lock(&hv->lock);
	connected = hv->connected;
	generation = hv->generation;
	pthread_mutex_unlock(&hv->lock);
	if (!connected)
		return -ENOTCONN;
	if (link->generation != generation)
		lv_link_disconnect(link);
	if (!link->conn)
		link->conn = open_connection(hv);
	link->generation = generation;
	return link->conn ? 0 : -EIO;
}

void lv_link_disconnect(struct lv_link *link)
{
	if (link->conn)
		close_connection(link->hv, link->conn);
	link->conn = NULL;
}

/* ---- events of libvirt's, in the event loop's thread ---- */

static void callback_freed(void *opaque)
{
	struct hv *hv = opaque;

	pthread_mutex_lock(&hv->lock);
	hv->nr_callbacks--;
	lv_wake_loop(hv);
	pthread_mutex_unlock(&hv->lock);
	lv_put(hv);
}

static void tell(struct hv *hv, virDomainPtr dom, enum hv_event_type type, uint64_t actual)
{
	struct hv_event event = { .type = type };

	if (hv->calls->domain_get_uuid(dom, event.uuid.bytes) < 0)
		return;
	event.actual = actual;
	hv_queue_tell(&hv->queue, &event);
}

static int on_lifecycle(virConnectPtr conn, virDomainPtr dom, int event, int detail, void *opaque)
{
	tell(opaque, dom, HV_EVENT_CHANGED, 0);
	return 0;
}

static void on_reboot(virConnectPtr conn, virDomainPtr dom, void *opaque)
{
	tell(opaque, dom, HV_EVENT_REBOOTED, 0);
}

static void on_balloon(
	virConnectPtr conn, virDomainPtr dom, unsigned long long actual_kib, void *opaque)
{
	/* 0 and what no host has: not told. */
	if (actual_kib > 0 && actual_kib < DOMXML_UNLIMITED_KIB)
		tell(opaque, dom, HV_EVENT_BALLOON, actual_kib * 1024);
}

/* Other managers keep notes there too, and change them often. */
static void on_metadata(
	virConnectPtr conn, virDomainPtr dom, int type, const char *uri, void *opaque)
{
	if (type == VIR_DOMAIN_METADATA_ELEMENT && uri &&
		(!strcmp(uri, DOMXML_MEMORY_NS) || !strcmp(uri, DOMXML_CEILING_NS)))
		tell(opaque, dom, HV_EVENT_CHANGED, 0);
}

static void on_device(virConnectPtr conn, virDomainPtr dom, const char *alias, void *opaque)
{
	tell(opaque, dom, HV_EVENT_CHANGED, 0);
}

/* A migration goes on, a job ended: what runs now, statistics tell. */
static void on_migration(virConnectPtr conn, virDomainPtr dom, int iteration, void *opaque)
{
	tell(opaque, dom, HV_EVENT_CHANGED, 0);
}

static void on_job(virConnectPtr conn, virDomainPtr dom, virTypedParameterPtr params, int nparams,
	void *opaque)
{
	tell(opaque, dom, HV_EVENT_CHANGED, 0);
}

static void on_block_job(
	virConnectPtr conn, virDomainPtr dom, const char *disk, int type, int status, void *opaque)
{
	tell(opaque, dom, HV_EVENT_CHANGED, 0);
}

static const struct {
	int id;
	virConnectDomainEventGenericCallback cb;
} events[LV_EVENTS] = {
	{ VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle) },
	{ VIR_DOMAIN_EVENT_ID_REBOOT, on_reboot },
	{ VIR_DOMAIN_EVENT_ID_BALLOON_CHANGE, VIR_DOMAIN_EVENT_CALLBACK(on_balloon) },
	{ VIR_DOMAIN_EVENT_ID_METADATA_CHANGE, VIR_DOMAIN_EVENT_CALLBACK(on_metadata) },
	{ VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, VIR_DOMAIN_EVENT_CALLBACK(on_device) },
	{ VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, VIR_DOMAIN_EVENT_CALLBACK(on_device) },
	{ VIR_DOMAIN_EVENT_ID_MIGRATION_ITERATION, VIR_DOMAIN_EVENT_CALLBACK(on_migration) },
	{ VIR_DOMAIN_EVENT_ID_JOB_COMPLETED, VIR_DOMAIN_EVENT_CALLBACK(on_job) },
	{ VIR_DOMAIN_EVENT_ID_BLOCK_JOB, VIR_DOMAIN_EVENT_CALLBACK(on_block_job) },
};

/* Once a connection, whoever notices first. */
static void went_down(struct hv *hv, int error, const char *message)
{
	struct hv_event event = { .type = HV_EVENT_DOWN, .error = error };

	pthread_mutex_lock(&hv->lock);
	/* With the lock held, so that no UP of the next connection overtakes it. */
	if (hv->connected && !hv->stopping) {
		event.message = strdup(message);
		hv_queue_tell(&hv->queue, &event);
	}
	hv->connected = false;
	hv->lost = true;
	pthread_cond_signal(&hv->control_cond);
	pthread_mutex_unlock(&hv->lock);
}

static void on_close(virConnectPtr conn, int reason, void *opaque)
{
	static const char *const why[] = {
		[VIR_CONNECT_CLOSE_REASON_ERROR] = "libvirt closed the connection: an error",
		[VIR_CONNECT_CLOSE_REASON_EOF] = "libvirt closed the connection",
		[VIR_CONNECT_CLOSE_REASON_KEEPALIVE] = "libvirt does not answer",
	};

	went_down(opaque, -ENOTCONN,
		reason >= 0 && reason <= VIR_CONNECT_CLOSE_REASON_KEEPALIVE
			? why[reason]
			: "the connection is lost");
}

/* The reference that libvirt gives back with callback_freed(). */
static void hold(struct hv *hv)
{
	pthread_mutex_lock(&hv->lock);
	hv->nr_callbacks++;
	pthread_mutex_unlock(&hv->lock);
	lv_get(hv);
}

/* ---- the control connection ---- */

/* Another host's VMs have no processes here, and some drivers have none at all. */
static void look_at_uri(struct hv *hv)
{
	char *uri = hv->calls->connect_get_uri(hv->conn);
	const char *transport, *rest;
	size_t scheme;
	bool remote = false;

	if (!uri)
		return;
	scheme = strcspn(uri, "+:");
	rest = strstr(uri, "://");
	transport = uri[scheme] == '+' ? uri + scheme + 1 : "";
	if (rest && strncasecmp(transport, "unix:", 5) != 0)
		remote = rest[3] != '/' && rest[3] != 0;
	atomic_store(&hv->remote, remote);
	atomic_store(&hv->no_process, remote || !strncasecmp(uri, "test", scheme));
	free(uri);
}

/* What a driver has no events of, the resync finds. */
static void register_events(struct hv *hv)
{
	/* Without a reference: unregistering it waits for it, and some drivers never free it. */
	hv->calls->connect_register_close_callback(hv->conn, on_close, hv, NULL);
	for (unsigned int i = 0; i < LV_EVENTS; i++) {
		hold(hv);
		hv->event_ids[i] = hv->calls->connect_domain_event_register_any(
			hv->conn, NULL, events[i].id, events[i].cb, hv, callback_freed);
		if (hv->event_ids[i] < 0)
			callback_freed(hv);
	}
}

static void disconnect(struct hv *hv)
{
	if (!hv->conn)
		return;
	for (unsigned int i = 0; i < LV_EVENTS; i++) {
		if (hv->event_ids[i] >= 0)
			hv->calls->connect_domain_event_deregister_any(hv->conn, hv->event_ids[i]);
		hv->event_ids[i] = -1;
	}
	hv->calls->connect_unregister_close_callback(hv->conn, on_close);
	close_connection(hv, hv->conn);
	hv->conn = NULL;
}

static void tell_up(struct hv *hv)
{
	struct hv_event event = { .type = HV_EVENT_UP, .message = hv->notes };

	hv->notes = NULL;
	hv_queue_tell(&hv->queue, &event);
}

/*
 * Lock held, given up meanwhile. False: not connected; told is the last failure that was told, for
 * each other one is told once.
 */
static bool connect_control(struct hv *hv, char **told)
{
	struct hv_event event = { .type = HV_EVENT_DOWN };

	/* Set before the callbacks may come; one that comes at once makes it lost again. */
	hv->lost = false;
	pthread_mutex_unlock(&hv->lock);
	hv->conn = open_connection(hv);
	if (hv->conn) {
		register_events(hv);
		look_at_uri(hv);
		pthread_mutex_lock(&hv->lock);
		if (hv->lost)
			return true;
		hv->connected = true;
		hv->generation++;
		tell_up(hv);
		free(*told);
		*told = NULL;
		return true;
	}
	lv_failed(hv, NULL, &event, hv->uri ? hv->uri : "libvirt's default URI");
	if (event.message && (!*told || strcmp(*told, event.message) != 0)) {
		free(*told);
		*told = strdup(event.message);
		hv_queue_tell(&hv->queue, &event);
	}
	hv_event_clear(&event);
	pthread_mutex_lock(&hv->lock);
	return false;
}

static void wait_until(struct hv *hv, uint64_t when)
{
	struct timespec ts = {
		.tv_sec = (time_t)(when / 1000000),
		.tv_nsec = (long)(when % 1000000) * 1000,
	};

	pthread_cond_timedwait(&hv->control_cond, &hv->lock, &ts);
}

/* Lock held, given up meanwhile. */
static void perform(struct hv *hv, struct hv_task *task)
{
	struct hv_event *event = &task->item.event;
	bool connected = hv->connected;

	pthread_mutex_unlock(&hv->lock);
	if (connected) {
		lv_perform_control(hv, hv->conn, event, &task->call);
		if (event->error == -ENOTCONN)
			went_down(hv, -ENOTCONN,
				event->message ? event->message : "the connection is lost");
	} else {
		hv_event_fail(event, -ENOTCONN, "not connected to libvirt");
	}
	hv_task_answer(&hv->queue, task);
	pthread_mutex_lock(&hv->lock);
}

void *lv_control_thread(void *arg)
{
	struct hv *hv = arg;
	const struct libvirt_times *times = &hv->calls->times;
	uint64_t pause = 0, at = 0;
	struct hv_task *task;
	char *told = NULL;

	pthread_mutex_lock(&hv->lock);
	while (!hv->stopping) {
		if (hv->conn && hv->lost) {
			pthread_mutex_unlock(&hv->lock);
			disconnect(hv);
			pthread_mutex_lock(&hv->lock);
			at = hv_now() + times->pause_first;
			pause = times->pause_first * 2;
		} else if ((task = hv_tasks_take(&hv->listing))) {
			perform(hv, task);
		} else if (!hv->conn && hv_now() >= at) {
			if (connect_control(hv, &told))
				continue;
			if (pause == 0)
				pause = times->pause_first;
			at = hv_now() + pause;
			pause = pause * 2 < times->pause_most ? pause * 2 : times->pause_most;
		} else if (!hv->conn) {
			wait_until(hv, at);
		} else {
			pthread_cond_wait(&hv->control_cond, &hv->lock);
		}
	}
	pthread_mutex_unlock(&hv->lock);
	disconnect(hv);
	free(told);
	lv_put(hv);
	return NULL;
}
