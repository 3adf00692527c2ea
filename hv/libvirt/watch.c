/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The host's own figures: PSI, memory, the VMs' processes. */
#include <config.h>

#include "hv/libvirt/backend.h"

#include <errno.h>
#include <poll.h>

#include "hv/pool.h"

void *lv_pressure_thread(void *arg)
{
	struct hv *hv = arg;
	struct pollfd fds[] = {
		{ .fd = hv->stop_fd, .events = POLLIN },
		{ .fd = hv->psi_fd, .events = POLLPRI },
	};
	int gap_ms = (int)(hv->calls->times.pressure / 1000);
	struct hv_event event;

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		/* POLLERR: what was watched is gone. */
		if (fds[0].revents || (fds[1].revents & (POLLERR | POLLNVAL)))
			break;
		if (!(fds[1].revents & POLLPRI))
			continue;
		event = (struct hv_event){ .type = HV_EVENT_PRESSURE };
		hv_queue_tell(&hv->queue, &event);
		if (poll(fds, 1, gap_ms) > 0)
			break;
	}
	lv_put(hv);
	return NULL;
}

void *lv_process_thread(void *arg)
{
	struct hv *hv = arg;

	pthread_mutex_lock(&hv->lock);
	while (!hv->stopping) {
		if (!hv->process_work) {
			pthread_cond_wait(&hv->process_cond, &hv->lock);
			continue;
		}
		pthread_mutex_unlock(&hv->lock);
		processes_work(hv->processes, hv_now());
		pthread_mutex_lock(&hv->lock);
		hv->process_work = false;
	}
	pthread_mutex_unlock(&hv->lock);
	lv_put(hv);
	return NULL;
}

void lv_read_processes(struct hv *hv, struct hv_event *event)
{
	bool work;

	event->error = processes_read(
		hv->processes, hv_now(), &event->process.vms, &event->process.nr, &work);
	if (event->error < 0 || !work || atomic_load(&hv->no_process))
		return;
	pthread_mutex_lock(&hv->lock);
	hv->process_work = true;
	pthread_cond_signal(&hv->process_cond);
	pthread_mutex_unlock(&hv->lock);
}

/* Of another host nothing is known, and of a file that is no meminfo nothing is believed. */
void lv_read_host(struct hv *hv, struct hv_event *event)
{
	struct hv_host host = { 0 };
	int r;

	if (!atomic_load(&hv->remote)) {
		r = pool_read_meminfo(hv->meminfo, &host);
		if (r < 0) {
			event->error = r;
			return;
		}
		pool_add_arc(hv->arcstats, &host);
		host.known = true;
	}
	event->host = host;
}
