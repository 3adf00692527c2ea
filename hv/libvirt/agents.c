/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way to the agents in guests: the sockets that libvirt bound to their virtio-serial ports, all
 * on one thread. A guest that floods is read at its rate and no faster, one that reads nothing gets
 * what fits into its socket; neither takes more of this thread than a message's time.
 */
#include <config.h>

#include "hv/libvirt/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Tried again after this, doubled up to... */
#define PAUSE_FIRST_US UINT64_C(500000)
#define PAUSE_MOST_US  UINT64_C(8000000)
/* A description comes every few seconds: what none names for so long has gone. */
#define FORGOTTEN_US UINT64_C(60000000)
/* How often what has no descriptor is looked at. */
#define ROUND_MS 100
#define READ_MAX 4096

struct lv_agent {
	struct hv_uuid uuid;
	char *path;
	uint64_t named;	       /* by a description, when */
	bool leaves;	       /* no description names it, or its path, any more */
	int fd;		       /* -1: not connected */
	bool watched;	       /* in the epoll set */
	uint64_t again, pause; /* when it is connected, or read, again */
	struct hv_task *task;  /* of the call that is out; NULL: none */
	struct agent_channel channel;
	struct lv_agent *next;
};

/* ---- connecting ---- */

static void watch(struct hv *hv, struct lv_agent *agent, bool on)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = agent };
	int operation = on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;

	/* What the kernel has no room for is tried again at the next round. */
	if (agent->watched != on && epoll_ctl(hv->agents_epoll, operation, agent->fd, &event) == 0)
		agent->watched = on;
}

static void hang_up(struct lv_agent *agent, uint64_t now)
{
	close(agent->fd); /* and so it is in no set */
	agent->fd = -1;
	agent->watched = false;
	agent_channel_close(&agent->channel);
	agent->pause = agent->pause ? agent->pause * 2 : PAUSE_FIRST_US;
	if (agent->pause > PAUSE_MOST_US)
		agent->pause = PAUSE_MOST_US;
	agent->again = now + agent->pause;
}

/* A socket's address has room for 107 bytes, a domain's name alone may have more. */
static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *name = strrchr(path, '/');
	int folder = -1, fd = -1, r, length;
	char *parent;

	if (strlen(path) < sizeof(address.sun_path)) {
		strcpy(address.sun_path, path);
	} else {
		parent = name ? strndup(path, (size_t)(name - path)) : NULL;
		folder = parent ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
		free(parent);
		length = folder < 0 ? -1
				    : snprintf(address.sun_path, sizeof(address.sun_path),
					      "/proc/self/fd/%d%s", folder, name);
		if (length < 0 || (size_t)length >= sizeof(address.sun_path)) {
			if (folder >= 0)
				close(folder);
			return -ENAMETOOLONG;
		}
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = fd < 0 ? -errno : 0;
	if (r == 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		r = -errno;
	if (folder >= 0)
		close(folder);
	if (r < 0 && fd >= 0)
		close(fd);
	return r < 0 ? r : fd;
}

/* False: it does not go out whole, now. */
static bool send_text(const struct lv_agent *agent, const char *text, size_t length)
{
	return send(agent->fd, text, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static void try_to_connect(struct hv *hv, struct lv_agent *agent, uint64_t now)
{
	char text[PROTOCOL_MESSAGE_MAX + 3];
	size_t length;
	int fd = connect_to(agent->path);

	if (fd < 0) {
		if (fd == -ENAMETOOLONG && !agent->channel.agent.faults)
			agent_channel_fault(&agent->channel, "the path of its socket is too long");
		agent->pause = agent->pause ? agent->pause * 2 : PAUSE_FIRST_US;
		if (agent->pause > PAUSE_MOST_US)
			agent->pause = PAUSE_MOST_US;
		agent->again = now + agent->pause;
		return;
	}
	agent->fd = fd;
	agent->again = 0;
	length = agent_channel_open(&agent->channel, now, text);
	if (!send_text(agent, text, length)) {
		hang_up(agent, now);
		return;
	}
	watch(hv, agent, true);
}

/* ---- a round ---- */

static void receive(struct hv *hv, struct lv_agent *agent, uint64_t now)
{
	char data[READ_MAX];
	size_t room = agent_channel_room(&agent->channel, now, &agent->again);
	ssize_t n;

	if (room == 0) {
		watch(hv, agent, false); /* until then it waits in its socket */
		return;
	}
	agent->again = 0;
	n = recv(agent->fd, data, room < sizeof(data) ? room : sizeof(data), 0);
	if (n > 0) {
		agent->pause = 0;
		agent_channel_input(&agent->channel, now, data, (size_t)n);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		hang_up(agent, now);
	}
}

/* Lock held. */
static void look_at(struct hv *hv, struct lv_agent *agent, uint64_t now)
{
	if (agent->fd < 0 && now >= agent->again)
		try_to_connect(hv, agent, now);
	else if (agent->fd >= 0 && agent_channel_silent(&agent->channel, now))
		hang_up(agent, now);
	else if (agent->fd >= 0 && !agent->watched && now >= agent->again)
		watch(hv, agent, true);
	hv_task_settle(&hv->queue, &agent->channel, now, &agent->task);
	hv_agent_tell(&hv->queue, &agent->channel, &agent->uuid);
}

static void free_agent(struct lv_agent *agent)
{
	if (agent->fd >= 0)
		close(agent->fd);
	free(agent->path);
	hv_task_free(agent->task); /* only of a handle that ends: nobody takes the answer */
	free(agent);
}

/* Lock held. */
static void look_at_all(struct hv *hv, uint64_t now)
{
	struct lv_agent **at = &hv->agents, *agent;

	while ((agent = *at)) {
		if (!agent->leaves && now - agent->named < FORGOTTEN_US) {
			look_at(hv, agent, now);
			at = &agent->next;
			continue;
		}
		if (agent->fd >= 0)
			hang_up(agent, now);
		hv_task_settle(&hv->queue, &agent->channel, now, &agent->task);
		hv_agent_tell(&hv->queue, &agent->channel, &agent->uuid);
		*at = agent->next;
		free_agent(agent);
	}
}

void *lv_agents_thread(void *arg)
{
	struct hv *hv = arg;
	struct epoll_event events[16];
	int n;

	pthread_mutex_lock(&hv->agents_lock);
	while (!hv->agents_end) {
		int wait = hv->agents || hv->qga ? ROUND_MS : -1;

		pthread_mutex_unlock(&hv->agents_lock);
		n = epoll_wait(hv->agents_epoll, events, 16, wait);
		pthread_mutex_lock(&hv->agents_lock);
		for (int i = 0; i < n; i++) {
			struct lv_agent *agent = events[i].data.ptr;

			if (agent)
				receive(hv, agent, hv_now());
			else
				eventfd_read(hv->agents_fd, &(eventfd_t){ 0 });
		}
		look_at_all(hv, hv_now());
		lv_qga_look(hv, hv_now());
	}
	pthread_mutex_unlock(&hv->agents_lock);
	lv_put(hv);
	return NULL;
}

/* ---- for the others ---- */

int lv_agents_init(struct hv *hv)
{
	struct epoll_event event = { .events = EPOLLIN };

	hv->agents_epoll = epoll_create1(EPOLL_CLOEXEC);
	hv->agents_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (hv->agents_epoll < 0 || hv->agents_fd < 0 ||
		epoll_ctl(hv->agents_epoll, EPOLL_CTL_ADD, hv->agents_fd, &event) < 0)
		return -errno;
	return 0;
}

void lv_agents_end(struct hv *hv)
{
	pthread_mutex_lock(&hv->agents_lock);
	hv->agents_end = true;
	pthread_cond_broadcast(&hv->qga_cond);
	pthread_mutex_unlock(&hv->agents_lock);
	eventfd_write(hv->agents_fd, 1);
}

void lv_agents_destroy(struct hv *hv)
{
	struct lv_agent *agent;

	while ((agent = hv->agents)) {
		hv->agents = agent->next;
		free_agent(agent);
	}
	if (hv->agents_epoll >= 0)
		close(hv->agents_epoll);
	if (hv->agents_fd >= 0)
		close(hv->agents_fd);
}

static struct lv_agent *find(const struct hv *hv, const struct hv_uuid *uuid)
{
	for (struct lv_agent *agent = hv->agents; agent; agent = agent->next)
		if (hv_uuid_equal(&agent->uuid, uuid))
			return agent;
	return NULL;
}

/* Lock held. NULL: no memory; the next description is in a few seconds. */
static struct lv_agent *add(struct hv *hv, const struct hv_uuid *uuid, const char *path)
{
	struct lv_agent *agent = calloc(1, sizeof(*agent));

	if (!agent)
		return NULL;
	agent->path = strdup(path);
	if (!agent->path) {
		free(agent);
		return NULL;
	}
	agent->uuid = *uuid;
	agent->fd = -1;
	agent->next = hv->agents;
	hv->agents = agent;
	eventfd_write(hv->agents_fd, 1);
	return agent;
}

void lv_agents_name(struct hv *hv, const struct hv_uuid *uuid, const char *path)
{
	uint64_t now = hv_now();
	struct lv_agent *agent;

	pthread_mutex_lock(&hv->agents_lock);
	agent = find(hv, uuid);
	if (agent && (!path || strcmp(agent->path, path))) {
		agent->leaves = true; /* its next round is the last; a new path comes after that */
		agent = NULL;
	} else if (!agent && path) {
		agent = add(hv, uuid, path);
	}
	if (agent)
		agent->named = now;
	pthread_mutex_unlock(&hv->agents_lock);
}

void lv_agents_reclaim(struct hv *hv, struct hv_task *task)
{
	char text[PROTOCOL_MESSAGE_MAX + 2];
	const struct hv_call *call = &task->call;
	struct lv_agent *agent;
	size_t length = 0;
	uint64_t came;
	int r = -ENOTCONN;

	pthread_mutex_lock(&hv->agents_lock);
	if (lv_qga_reclaim(hv, task)) {
		pthread_mutex_unlock(&hv->agents_lock);
		return;
	}
	agent = find(hv, &call->uuid);
	if (agent && agent->task)
		r = -EAGAIN;
	else if (agent && agent->fd >= 0)
		r = agent_channel_reclaim(&agent->channel, hv_now(), call, text, &length);
	if (r == 0 && !send_text(agent, text, length)) {
		agent_channel_fault(&agent->channel, "reads nothing");
		hang_up(agent, hv_now());
		/* What it was asked ended with that, and nobody else waits for it. */
		agent_channel_answer(&agent->channel, hv_now(), &r, &came);
		r = -EAGAIN;
	}
	if (r == 0)
		agent->task = task;
	pthread_mutex_unlock(&hv->agents_lock);
	if (r < 0)
		hv_task_came(&hv->queue, task, r, 0);
}
