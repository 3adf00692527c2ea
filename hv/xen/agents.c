/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way to the agents in guests: keys below each domain's path (common/protocol.h), on one thread
 * with a connection of its own.
 *
 * dom0 makes the keys, when a domain is adopted, and owns them: the guest reads what the host says,
 * and may write its own keys only. What else it makes there it pays for itself, with its quota. It
 * is told of by watches. A guest that writes more than is read is not watched until the second is
 * over, so that it costs xenstored and this thread a bounded number of calls; one that removes its
 * keys gets new ones after a while. The keys go with the domain's path.
 *
 * Nobody tells whether an agent is there: one that has greeted and falls silent is greeted anew,
 * which one that was started again answers.
 *
 * Where xenstored hangs this thread hangs with it; the core does not wait for it beyond its own
 * deadline.
 */
#include <config.h>

#include "hv/xen/backend.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND_US UINT64_C(1000000)
/* How often is looked whether an agent's time is over. */
#define ROUND_MS 100
/* Watch events that are taken before anything else is done. */
#define EVENTS_AT_ONCE 1024
/* Of one guest in a second: each message makes one. What it does beside its own keys counts too. */
#define EVENTS_MOST (2 * AGENT_CHANNEL_MESSAGES)

struct xen_agent {
	struct hv_uuid uuid;
	uint32_t domid;
	uint64_t creation;
	bool there;	/* its domain was, when last looked */
	bool made;	/* its keys are there, as far as is known */
	bool watched;	/* what the guest writes is told */
	uint64_t again; /* its keys are not made, or not watched, before */
	uint64_t second, events;
	struct hv_task *task; /* of the call that is out; NULL: none */
	struct agent_channel channel;
	struct xen_agent *next;
};

struct xen_agents {
	struct xen_link link;
	uint64_t lives;	   /* of the table, when last looked */
	uint64_t retry_at; /* no connection is tried before */
	uint64_t number;   /* of the last message */
	struct xen_agent *list;
	struct xen_agent *by_domid[XEN_DOMAINS_MAX];
};

/* ---- telling ---- */

/* Before the connection is told to be there nobody knows of anything. */
static void tell(struct hv *hv, struct xen_agent *agent)
{
	if (!agent->channel.changed)
		return;
	pthread_mutex_lock(&hv->lock);
	if (hv->connected)
		hv_agent_tell(&hv->queue, &agent->channel, &agent->uuid);
	else
		agent->channel.changed = false;
	pthread_mutex_unlock(&hv->lock);
}

static void answer(struct hv *hv, struct xen_agent *agent, uint64_t now)
{
	hv_task_settle(&hv->queue, &agent->channel, now, &agent->task);
}

/* ---- writing ---- */

struct saying {
	struct hv *hv;
	struct xen_link *link;
	uint32_t domid;
	const char *value;
};

/* One that goes meanwhile takes its path along: it is not made again. */
static int still_there(const struct saying *s)
{
	return xen_lives(s->hv, s->link, s->domid, NULL) ? 0 : -ENOENT;
}

static int make_key(struct store *store, xs_transaction_t t, const struct saying *s,
	const char *key, const char *value, bool write)
{
	char path[STORE_PATH];
	int r;

	store_domain_path(path, s->domid, key);
	r = store_write(store, t, path, value);
	return r == 0 ? store_permit(store, t, path, s->domid, write) : r;
}

/* All of them anew, with the host's first message. */
static int make_keys(struct store *store, xs_transaction_t t, void *ctx)
{
	const struct saying *s = ctx;
	char path[STORE_PATH], key[32];
	uint64_t target;
	int r;

	store_domain_path(path, s->domid, "memory/target");
	r = store_read_number(store, t, path, &target);
	if (r < 0 && r != -EBADMSG)
		return r;
	store_domain_path(path, s->domid, PROTOCOL_STORE);
	r = store_remove(store, t, path);
	if (r == 0)
		r = make_key(store, t, s, PROTOCOL_STORE, "", false);
	if (r == 0)
		r = make_key(store, t, s, PROTOCOL_STORE_HOST, s->value, false);
	if (r == 0)
		r = make_key(store, t, s, PROTOCOL_STORE_GUEST, "", false);
	for (unsigned int i = 0; i < PROTOCOL_STORE_KEYS && r == 0; i++) {
		snprintf(key, sizeof(key), PROTOCOL_STORE_GUEST "/%u", i);
		r = make_key(store, t, s, key, "", true);
	}
	return r == 0 ? still_there(s) : r;
}

static int write_message(struct store *store, xs_transaction_t t, void *ctx)
{
	const struct saying *s = ctx;
	char path[STORE_PATH], *old = NULL;
	int r;

	store_domain_path(path, s->domid, PROTOCOL_STORE_HOST);
	r = store_read(store, t, path, &old);
	free(old);
	if (r == 0)
		r = store_write(store, t, path, s->value);
	return r == 0 ? still_there(s) : r;
}

/* A number that no message to it had, whoever wrote that: the agent tells by it what is new. */
static uint64_t next_number(struct xen_agents *agents)
{
	uint64_t now = hv_now();

	agents->number = now > agents->number ? now : agents->number + 1;
	return agents->number;
}

static int say(struct hv *hv, const struct xen_agent *agent, store_work_fn *work, const char *text)
{
	char value[PROTOCOL_MESSAGE_MAX + 32];
	struct saying s = {
		.hv = hv, .link = &hv->agents->link, .domid = agent->domid, .value = value
	};

	snprintf(value, sizeof(value), "%" PRIu64 "\n%s", next_number(hv->agents), text);
	return store_transact(&s.link->store, work, &s);
}

/* ---- one guest ---- */

static void watched_path(const struct xen_agent *agent, char *path)
{
	store_domain_path(path, agent->domid, PROTOCOL_STORE_GUEST);
}

static void stop_watching(struct hv *hv, struct xen_agent *agent, uint64_t again)
{
	char path[STORE_PATH];

	watched_path(agent, path);
	if (agent->watched)
		hv->calls->xs_unwatch(hv->agents->link.store.xs, path, "a");
	agent->watched = false;
	agent->again = again;
}

/* All that was said on the way that ends is over. */
static void hang_up(struct hv *hv, struct xen_agent *agent, uint64_t again)
{
	agent->made = false;
	agent_channel_close(&agent->channel);
	stop_watching(hv, agent, again);
}

static int start_watching(struct hv *hv, struct xen_agent *agent, uint64_t now)
{
	char path[STORE_PATH];

	watched_path(agent, path);
	errno = 0;
	if (!hv->calls->xs_watch(hv->agents->link.store.xs, path, "a")) {
		agent->again = now + hv->calls->times.remake;
		return errno ? -errno : -EIO;
	}
	agent->watched = true; /* which makes one event by itself: all its keys are read */
	return 0;
}

static int greet(struct hv *hv, struct xen_agent *agent, store_work_fn *work, uint64_t now)
{
	char text[PROTOCOL_MESSAGE_MAX + 3];
	int r;

	text[agent_channel_open(&agent->channel, now, text)] = '\0';
	r = say(hv, agent, work, text);
	if (r < 0)
		hang_up(hv, agent, now + hv->calls->times.remake);
	else
		agent->made = true;
	return r;
}

static void take_text(struct xen_agent *agent, uint64_t now, const char *text)
{
	size_t length = strlen(text);

	if (length == 0) /* as it was made */
		return;
	agent_channel_input(&agent->channel, now, text, length);
	if (text[length - 1] != '\n') /* a key is a message, or some: none goes on in another */
		agent_channel_input(&agent->channel, now, "\n", 1);
}

static int read_key(struct hv *hv, struct xen_agent *agent, uint64_t now, unsigned int nr)
{
	char path[STORE_PATH], key[32], *text = NULL;
	uint64_t again;
	int r;

	if (agent_channel_room(&agent->channel, now, &again) == 0) {
		stop_watching(hv, agent, again);
		return 0;
	}
	snprintf(key, sizeof(key), PROTOCOL_STORE_GUEST "/%u", nr);
	store_domain_path(path, agent->domid, key);
	r = store_read(&hv->agents->link.store, XBT_NULL, path, &text);
	if (r == 0) {
		take_text(agent, now, text);
	} else if (r == -EBADMSG) {
		agent_channel_fault(&agent->channel, "a message is no text");
		r = 0;
	} else if (r == -ENOENT) {
		agent_channel_fault(&agent->channel, "removed the keys of its agent");
		hang_up(hv, agent, now + hv->calls->times.remake);
		r = 0;
	}
	free(text);
	return r;
}

/* False: there are too many, and it is not watched any more. */
static bool count_event(struct hv *hv, struct xen_agent *agent, uint64_t now)
{
	if (now - agent->second >= SECOND_US) {
		agent->second = now;
		agent->events = 0;
	}
	if (++agent->events <= EVENTS_MOST)
		return true;
	agent_channel_fault(&agent->channel, "writes more than is read");
	stop_watching(hv, agent, agent->second + SECOND_US);
	return false;
}

/* "/local/domain/7/ballast/guest/2"; the folder itself: all of them. */
static int take_event(struct hv *hv, const char *path, uint64_t now)
{
	struct xen_agent *agent;
	unsigned int domid, nr;
	int end = 0, r = 0;

	if (sscanf(path, "/local/domain/%u/" PROTOCOL_STORE_GUEST "%n", &domid, &end) != 1 ||
		end == 0 || domid >= XEN_DOMAINS_MAX)
		return 0;
	agent = hv->agents->by_domid[domid];
	if (!agent || !agent->watched || !count_event(hv, agent, now))
		return 0;
	nr = (unsigned int)(path[end + (path[end] == '/')] - '0');
	if (path[end] == '/' && nr < PROTOCOL_STORE_KEYS && !path[end + 2])
		return read_key(hv, agent, now, nr);
	for (nr = 0; !path[end] && nr < PROTOCOL_STORE_KEYS && r == 0 && agent->watched; nr++)
		r = read_key(hv, agent, now, nr);
	return r;
}

/* What one guest's keys fail with is no other's affair, unless xenstored is gone. */
static int look_at(struct hv *hv, struct xen_agent *agent, uint64_t now)
{
	int r = 0;

	if (!agent->made && now >= agent->again)
		r = greet(hv, agent, make_keys, now);
	else if (agent->channel.agent.connected &&
		 now - agent->channel.heard >= hv->calls->times.silent)
		r = greet(hv, agent, write_message, now);
	if (r == 0 && agent->made && !agent->watched && now >= agent->again)
		r = start_watching(hv, agent, now);
	answer(hv, agent, now);
	tell(hv, agent);
	return store_lost(r) ? r : 0;
}

/* ---- which guests there are ---- */

/* Lock held. Without memory for it there is none until the table changes again. */
static void add(struct xen_agents *agents, const struct domain *d)
{
	struct xen_agent *agent = calloc(1, sizeof(*agent));

	if (!agent)
		return;
	agent->uuid = d->uuid;
	agent->domid = d->domid;
	agent->creation = d->creation;
	agent->there = true;
	agent->next = agents->list;
	agents->list = agent;
	agents->by_domid[d->domid] = agent;
}

/* Its path may be left where its toolstack was killed; what is of ours in it goes. */
static void remove_keys(struct hv *hv, const struct xen_agent *agent)
{
	struct xen_link *link = &hv->agents->link;
	char path[STORE_PATH];

	store_domain_path(path, agent->domid, PROTOCOL_STORE);
	if (link->store.xs && !xen_lives(hv, link, agent->domid, NULL))
		store_remove(&link->store, XBT_NULL, path);
}

static void drop(struct hv *hv, struct xen_agent *agent, uint64_t now)
{
	hang_up(hv, agent, 0);
	answer(hv, agent, now);
	tell(hv, agent);
	remove_keys(hv, agent);
	hv->agents->by_domid[agent->domid] = NULL;
	free(agent);
}

/* Lock held: those that the table has and we have not, and the other way round. */
static void compare(struct hv *hv)
{
	struct xen_agents *agents = hv->agents;
	struct domain *d, *next;

	agents->lives = hv->lives;
	for (struct xen_agent *agent = agents->list; agent; agent = agent->next)
		agent->there = false;
	HASH_ITER (hh, hv->domains, d, next) {
		struct xen_agent *agent = agents->by_domid[d->domid];

		if (!d->adopted || d->gone_at || d->domid == 0)
			continue;
		if (!agent)
			add(agents, d);
		else if (agent->creation == d->creation)
			agent->there = true;
		else
			agents->lives = 0; /* again, once the one before is dropped */
	}
}

static void look_at_table(struct hv *hv, uint64_t now)
{
	struct xen_agent **at = &hv->agents->list, *agent;
	bool changed;

	pthread_mutex_lock(&hv->lock);
	changed = hv->agents->lives != hv->lives;
	if (changed)
		compare(hv);
	pthread_mutex_unlock(&hv->lock);
	while (changed && (agent = *at)) {
		if (agent->there) {
			at = &agent->next;
			continue;
		}
		*at = agent->next;
		drop(hv, agent, now);
	}
}

/* ---- calls ---- */

static int begin(struct hv *hv, struct xen_agent *agent, struct hv_task *task, uint64_t now)
{
	char text[PROTOCOL_MESSAGE_MAX + 2];
	size_t length = 0;
	int r = -ENOTCONN;

	if (agent && agent->task)
		r = -EAGAIN;
	else if (agent && agent->made)
		r = agent_channel_reclaim(&agent->channel, now, &task->call, text, &length);
	if (r < 0) {
		hv_task_came(&hv->queue, task, r, 0);
		return 0;
	}
	text[length] = '\0';
	agent->task = task;
	r = say(hv, agent, write_message, text);
	if (r < 0) /* which answers it, too */
		hang_up(hv, agent, now + hv->calls->times.remake);
	return store_lost(r) ? r : 0;
}

static int take_calls(struct hv *hv, bool connected, uint64_t now)
{
	struct hv_task *task;
	int r = 0;

	do {
		struct xen_agent *agent = NULL;
		const struct domain *d;

		pthread_mutex_lock(&hv->lock);
		task = hv_tasks_take(&hv->reclaims);
		d = task && connected ? xen_find(hv, &task->call.uuid) : NULL;
		if (d)
			agent = hv->agents->by_domid[d->domid];
		pthread_mutex_unlock(&hv->lock);
		if (task)
			r = begin(hv, agent, task, now);
	} while (task && r == 0);
	return r;
}

/* ---- rounds ---- */

static int take_events(struct hv *hv, uint64_t now)
{
	char **event;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < EVENTS_AT_ONCE; i++) {
		errno = 0;
		event = hv->calls->xs_check_watch(hv->agents->link.store.xs);
		if (!event)
			return errno && errno != EAGAIN && store_lost(-errno) ? -errno : 0;
		r = take_event(hv, event[XS_WATCH_PATH], now);
		free(event);
	}
	return store_lost(r) ? r : 0;
}

/* Watches go with the connection, and what was said may have been lost. */
static void lose(struct hv *hv, uint64_t now)
{
	xen_link_close(&hv->agents->link, hv->calls);
	hv->agents->retry_at = now + hv->calls->times.pause_first;
	for (struct xen_agent *agent = hv->agents->list; agent; agent = agent->next) {
		agent->watched = false;
		hang_up(hv, agent, 0);
		answer(hv, agent, now);
		tell(hv, agent);
	}
}

/* False: there is no connection now. */
static bool connect_agents(struct hv *hv, uint64_t now)
{
	struct xen_link *link = &hv->agents->link;
	uint64_t generation;
	bool connected;

	pthread_mutex_lock(&hv->lock);
	connected = hv->connected;
	generation = hv->generation;
	pthread_mutex_unlock(&hv->lock);
	if (link->store.xs && (!connected || link->generation != generation)) {
		lose(hv, now);
		hv->agents->retry_at = now;
	}
	if (!connected || now < hv->agents->retry_at)
		return false;
	if (xen_link_open(link, hv->calls, generation) == 0)
		return true;
	lose(hv, now);
	return false;
}

static void one_round(struct hv *hv)
{
	uint64_t now = hv_now();
	bool connected = connect_agents(hv, now);
	int r = 0;

	if (connected) {
		look_at_table(hv, now);
		r = take_events(hv, now);
	}
	if (r == 0)
		r = take_calls(hv, connected, now);
	for (struct xen_agent *agent = hv->agents->list; connected && agent && r == 0;
		agent = agent->next)
		r = look_at(hv, agent, now);
	if (r < 0) {
		lose(hv, now);
		xen_wake(hv); /* which finds out by itself whether xenstored is gone */
	}
}

static void wait_for_more(struct hv *hv)
{
	struct store *store = &hv->agents->link.store;
	struct pollfd fds[] = {
		{ .fd = hv->agents_fd, .events = POLLIN },
		{ .fd = store->xs ? hv->calls->xs_fileno(store->xs) : -1, .events = POLLIN },
	};
	uint64_t count;
	ssize_t n;

	poll(fds, 2, ROUND_MS);
	n = read(hv->agents_fd, &count, sizeof(count));
	(void)n;
}

void *xen_agents_thread(void *arg)
{
	struct hv *hv = arg;
	bool stopping = false;

	while (!stopping) {
		one_round(hv);
		wait_for_more(hv);
		pthread_mutex_lock(&hv->lock);
		stopping = hv->stopping;
		pthread_mutex_unlock(&hv->lock);
	}
	xen_link_close(&hv->agents->link, hv->calls);
	xen_put(hv);
	return NULL;
}

/* ---- for the others ---- */

int xen_agents_new(struct xen_agents **ret_agents)
{
	struct xen_agents *agents = calloc(1, sizeof(*agents));

	if (!agents)
		return -ENOMEM;
	*ret_agents = agents;
	return 0;
}

void xen_agents_free(struct xen_agents *agents)
{
	struct xen_agent *agent;

	while (agents && (agent = agents->list)) {
		agents->list = agent->next;
		hv_task_free(agent->task); /* nobody takes the answer */
		free(agent);
	}
	free(agents);
}

void xen_agents_wake(struct hv *hv)
{
	uint64_t one = 1;
	ssize_t n = write(hv->agents_fd, &one, sizeof(one));

	(void)n; /* a full counter is readable */
}
