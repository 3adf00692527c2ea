/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* MicroVMs as VMs of a backend: see backend.h. */
#include <config.h>

#include "hv/pager/backend.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "hv/pager/pager.h"

#define SUFFIX ".mem"
/* Sockets at most, and entries of the directory that are looked at. */
#define PLACES_MAX  PAGER_VMS_MAX
#define ENTRIES_MAX (4 * PLACES_MAX)
/* Fault threads: more than hosts of this kind have cores to spare for it. */
#define THREADS 4
/* So long, a second, a VM waits for its group before it is served without one. */
#define TURN_MS	    250
#define HELLO_TURNS 4
/* Looked at in one go; what is left is ready still. */
#define EVENTS_AT_ONCE 32

enum place_state { PLACE_FREE, PLACE_CONNECTED, PLACE_HELLO, PLACE_RUNS };

/* A name that a VM may have. */
struct place {
	struct place *next;
	char *name;
	enum place_state state;
	int listener, connection; /* -1: none */
	bool listens;		  /* who connects is seen */
	int said;		  /* what the socket fails with, which was told; 0: nothing */
	struct pager_hello hello;
	unsigned int turns;	   /* with its hello, without a group */
	bool uncharged;		   /* it runs, and has no group yet */
	struct hv_uuid uuid;	   /* of the VM that is there, or was last */
	uint64_t id;		   /* its group, or what stands for it */
	uint64_t charged, maximum; /* pages */
	struct hv_paging paging;
};

struct queued {
	struct queued *next;
	struct hv_event event;
};

struct hv {
	const struct hv_backend *backend;
	struct hv *inner;
	char *dir;
	int epoll, wake, turns; /* the last: a timerfd, on where somebody waits for a group */
	struct place *places;
	size_t nr_places;
	struct queued *first, **last;
	struct pager *pager;   /* from the first VM on */
	uint64_t job;	       /* the room asked for last */
	uint64_t nr_uncharged; /* that there ever were */
};

static struct hv_backend wrapper;
static const struct hv_backend *wrapped;

/* --- events of our own --- */

static int tell(struct hv *hv, const struct hv_event *event)
{
	struct queued *q = malloc(sizeof(*q));
	uint64_t one = 1;

	if (!q)
		return -ENOMEM;
	*q = (struct queued){ .event = *event };
	*hv->last = q;
	hv->last = &q->next;
	if (write(hv->wake, &one, sizeof(one)) < 0)
		return 0; /* full: it is readable */
	return 0;
}

static bool take_own(struct hv *hv, struct hv_event *ret_event)
{
	struct queued *q = hv->first;

	if (!q)
		return false;
	hv->first = q->next;
	if (!hv->first)
		hv->last = &hv->first;
	*ret_event = q->event;
	free(q);
	return true;
}

/*
 * The listing that follows finds what it is; what was lost here is found by the next one. what and
 * why: for the operator, one after the other; NULL: nothing.
 */
static void tell_changed(struct hv *hv, const struct place *p, const char *what, const char *why)
{
	struct hv_event event = { .type = HV_EVENT_CHANGED, .uuid = p->uuid };

	if (what && asprintf(&event.message, "%s: %s%s", p->name, what, why) < 0)
		event.message = NULL;
	if (tell(hv, &event) < 0)
		hv_event_clear(&event);
}

/* --- places --- */

static void place_disconnect(struct place *p)
{
	if (p->connection >= 0)
		close(p->connection);
	p->connection = -1;
}

static void place_close_hello(struct place *p)
{
	close(p->hello.uffd);
	close(p->hello.process);
}

static void place_free(struct place *p)
{
	if (p->state == PLACE_HELLO)
		place_close_hello(p);
	place_disconnect(p);
	if (p->listener >= 0)
		close(p->listener);
	free(p->name);
	free(p);
}

/* Who connects is only seen while there is a place: another one waits, and wakes nobody. */
static void place_listens(struct hv *hv, struct place *p, bool on)
{
	struct epoll_event watch = { .events = on ? EPOLLIN : 0, .data.ptr = p };

	if (p->listens != on && epoll_ctl(hv->epoll, EPOLL_CTL_MOD, p->listener, &watch) == 0)
		p->listens = on;
}

static void place_set(struct hv *hv, struct place *p, enum place_state state)
{
	p->state = state;
	place_listens(hv, p, state == PLACE_FREE);
}

/* Said once, until it works again. */
static void place_fails(struct hv *hv, struct place *p, const char *what, int error)
{
	if (error && error != p->said)
		tell_changed(hv, p, what, strerror(error));
	p->said = error;
}

static int socket_path(const struct hv *hv, const struct place *p, struct sockaddr_un *address)
{
	size_t size = sizeof(address->sun_path);

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if ((size_t)snprintf(address->sun_path, size, "%s/%s.sock", hv->dir, p->name) >= size)
		return -ENAMETOOLONG;
	return 0;
}

static int place_open(struct hv *hv, struct place *p)
{
	struct sockaddr_un address;
	struct epoll_event watch = { .events = EPOLLIN, .data.ptr = p };
	int r = socket_path(hv, p, &address);

	if (r < 0)
		return r;
	p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->listener < 0)
		return -errno;
	if (fchmod(p->listener, 0600) < 0 || (unlink(address.sun_path) < 0 && errno != ENOENT) ||
		bind(p->listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(p->listener, 1) < 0 ||
		epoll_ctl(hv->epoll, EPOLL_CTL_ADD, p->listener, &watch) < 0) {
		r = -errno;
		close(p->listener);
		p->listener = -1;
		return r;
	}
	p->listens = true;
	return 0;
}

/* Its socket; one that cannot be made is tried again at each listing. */
static void place_listen(struct hv *hv, struct place *p)
{
	if (p->listener < 0)
		place_fails(hv, p, "no socket: ", -place_open(hv, p));
	else if (p->state == PLACE_FREE)
		place_listens(hv, p, true); /* after it failed */
}

static int place_new(struct hv *hv, const char *name, size_t length)
{
	struct place *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->listener = p->connection = -1;
	p->name = strndup(name, length);
	/* All zeros would be all VMs. */
	if (!p->name || getrandom(&p->uuid, sizeof(p->uuid), 0) != sizeof(p->uuid)) {
		place_free(p);
		return -ENOMEM;
	}
	p->next = hv->places;
	hv->places = p;
	hv->nr_places++;
	return 0;
}

static bool has_place(const struct hv *hv, const char *name, size_t length)
{
	for (const struct place *p = hv->places; p; p = p->next)
		if (strlen(p->name) == length && !memcmp(p->name, name, length))
			return true;
	return false;
}

static void look_for_new(struct hv *hv)
{
	DIR *dir = opendir(hv->dir);
	const struct dirent *entry;

	for (size_t i = 0; dir && (entry = readdir(dir)) && i < ENTRIES_MAX; i++) {
		size_t length = strlen(entry->d_name);

		if (length <= strlen(SUFFIX) || hv->nr_places == PLACES_MAX)
			continue;
		length -= strlen(SUFFIX);
		if (!strcmp(entry->d_name + length, SUFFIX) &&
			!has_place(hv, entry->d_name, length))
			place_new(hv, entry->d_name, length);
	}
	if (dir)
		closedir(dir);
}

/* Nobody is there, and its file is gone: so is its socket. */
static bool is_over(const struct hv *hv, const struct place *p)
{
	struct sockaddr_un address;
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s" SUFFIX, hv->dir, p->name);
	if (p->state != PLACE_FREE || lstat(path, &st) == 0 || errno != ENOENT)
		return false;
	if (p->listener >= 0 && socket_path(hv, p, &address) == 0)
		unlink(address.sun_path);
	return true;
}

static void place_receive(struct hv *hv, struct place *p);

/* A socket for each memory file. */
static void look_for_files(struct hv *hv)
{
	struct place **at = &hv->places, *p;

	while ((p = *at)) {
		if (!is_over(hv, p)) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		hv->nr_places--;
		place_free(p);
	}
	look_for_new(hv);
	for (p = hv->places; p; p = p->next) {
		if (p->state == PLACE_CONNECTED)
			place_receive(hv, p);
		else
			place_listen(hv, p);
	}
}

static struct place *find(const struct hv *hv, const struct hv_uuid *uuid)
{
	for (struct place *p = hv->places; p; p = p->next)
		if (p->state >= PLACE_HELLO && hv_uuid_equal(&p->uuid, uuid))
			return p;
	return NULL;
}

static void set_turns(struct hv *hv, bool on)
{
	const struct timespec turn = { .tv_nsec = on ? TURN_MS * 1000000 : 0 };
	const struct itimerspec spec = { .it_interval = turn, .it_value = turn };

	timerfd_settime(hv->turns, 0, &spec, NULL); /* fails for no valid time */
}

/* A VMM that connects while another is there waits; each has an identity of its own. */
static void place_accept(struct hv *hv, struct place *p)
{
	struct epoll_event watch = { .events = EPOLLIN, .data.ptr = p };
	int error = 0;

	p->connection = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (p->connection < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return;
	if (p->connection < 0 || getrandom(&p->uuid, sizeof(p->uuid), 0) != sizeof(p->uuid)) {
		error = errno;
		place_disconnect(p);
		place_listens(hv, p, false); /* until the next listing */
	} else {
		place_set(hv, p, PLACE_CONNECTED);
		/* A VMM speaks once: one that cannot be watched is looked at at each listing. */
		epoll_ctl(hv->epoll, EPOLL_CTL_ADD, p->connection, &watch);
	}
	place_fails(hv, p, "who connects cannot be taken: ", error);
}

static void place_receive(struct hv *hv, struct place *p)
{
	const char *why = NULL;
	int r = pager_receive(p->connection, &p->hello, &why);

	if (r == -EAGAIN || r == -EINTR)
		return;
	place_disconnect(p);
	if (r < 0) {
		place_set(hv, p, PLACE_FREE);
		tell_changed(hv, p, r == -EINVAL ? "refused: it sent " : "refused: ",
			r == -EINVAL ? why : strerror(-r));
		return;
	}
	place_set(hv, p, PLACE_HELLO);
	p->turns = 0;
	p->charged = p->maximum = 0;
	p->paging = (struct hv_paging){ .paged = true };
	for (size_t i = 0; i < p->hello.nr_regions; i++)
		p->maximum += p->hello.regions[i].pages;
	set_turns(hv, true);
	tell_changed(hv, p, NULL, NULL);
}

/* What they are charged now; whose process is gone makes room for another. */
static void count_all(struct hv *hv)
{
	struct pager_counts counts;

	for (struct place *p = hv->places; p; p = p->next) {
		if (p->state != PLACE_RUNS || pager_counts(hv->pager, p->id, &counts) < 0)
			continue;
		p->charged = counts.charged;
		p->paging = (struct hv_paging){ .paged = true,
			.left = counts.left,
			.faults = counts.faults,
			.waited = counts.waited,
			.over = counts.over,
			.dropped = counts.removed,
			.failed = counts.failed };
		if (counts.gone)
			place_set(hv, p, PLACE_FREE);
	}
}

/* Who waits for a group, or runs without one while the hypervisor is away and lists nobody. */
static void take_turn(struct hv *hv)
{
	bool any = false;

	count_all(hv);
	for (struct place *p = hv->places; p; p = p->next) {
		p->turns += p->state == PLACE_HELLO;
		any |= p->state == PLACE_HELLO || (p->state == PLACE_RUNS && p->uncharged);
	}
	if (!any)
		set_turns(hv, false);
}

static void look_at_sockets(struct hv *hv)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int n = epoll_wait(hv->epoll, events, EVENTS_AT_ONCE, 0);
	uint64_t count;

	for (int i = 0; i < n; i++) {
		struct place *p = events[i].data.ptr;

		if (events[i].data.ptr == &hv->wake || events[i].data.ptr == &hv->turns) {
			if (read(*(int *)events[i].data.ptr, &count, sizeof(count)) < 0)
				continue; /* it was taken */
			if (events[i].data.ptr == &hv->turns)
				take_turn(hv);
		} else if (p && p->state == PLACE_FREE) {
			place_accept(hv, p);
		} else if (p && p->state == PLACE_CONNECTED) {
			place_receive(hv, p);
		}
	}
}

/* --- the inner one's answers, with ours --- */

static int add_listed(struct hv *hv, struct hv_event *event)
{
	size_t nr = event->listed.nr;
	struct hv_listed *vms =
		reallocarray(event->listed.vms, nr + hv->nr_places + 1, sizeof(*vms));

	if (!vms)
		return -ENOMEM;
	event->listed.vms = vms;
	for (struct place *p = hv->places; p; p = p->next) {
		if (p->state < PLACE_HELLO)
			continue;
		vms[nr] = (struct hv_listed){
			.uuid = p->uuid, .name = strdup(p->name), .state = HV_RUNNING
		};
		if (!vms[nr].name)
			return -ENOMEM;
		event->listed.nr = ++nr;
	}
	return 0;
}

static int add_processes(struct hv *hv, struct hv_event *event)
{
	size_t nr = event->process.nr;
	struct hv_process *vms =
		reallocarray(event->process.vms, nr + hv->nr_places + 1, sizeof(*vms));

	if (!vms)
		return -ENOMEM;
	event->process.vms = vms;
	for (struct place *p = hv->places; p; p = p->next) {
		if (p->state < PLACE_HELLO)
			continue;
		vms[nr++] = (struct hv_process){ .uuid = p->uuid,
			.known = true,
			.swap_known = true,
			.resident = p->charged * POLICY_PAGE_SIZE,
			.started = (uint64_t)p->hello.pid,
			.paging = p->paging };
	}
	event->process.nr = nr;
	return 0;
}

static void add_ours(struct hv *hv, struct hv_event *event)
{
	struct hv_event failed = { .type = event->type, .token = event->token, .error = -ENOMEM };
	bool listed = event->type == HV_EVENT_LISTED;
	int r;

	if (event->error || (!listed && event->type != HV_EVENT_PROCESS))
		return;
	count_all(hv);
	r = listed ? add_listed(hv, event) : add_processes(hv, event);
	if (r < 0) {
		hv_event_clear(event);
		*event = failed;
	}
}

/* --- the table --- */

static void pager_backend_close(struct hv *hv)
{
	struct hv_event event;
	struct place *p, *next;

	if (!hv)
		return;
	pager_free(hv->pager);
	while (take_own(hv, &event))
		hv_event_clear(&event);
	for (p = hv->places; p; p = next) {
		next = p->next;
		place_free(p);
	}
	if (hv->inner)
		hv->backend->close(hv->inner);
	if (hv->epoll >= 0)
		close(hv->epoll);
	if (hv->wake >= 0)
		close(hv->wake);
	if (hv->turns >= 0)
		close(hv->turns);
	free(hv->dir);
	free(hv);
}

static int watch(struct hv *hv, int fd, void *ptr)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = ptr };

	if (fd < 0)
		return -errno;
	return epoll_ctl(hv->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_descriptors(struct hv *hv)
{
	int inner = hv->backend->fd(hv->inner), r;

	hv->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (hv->epoll < 0)
		return -errno;
	hv->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = watch(hv, hv->wake, &hv->wake);
	if (r < 0)
		return r;
	hv->turns = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	r = watch(hv, hv->turns, &hv->turns);
	if (r < 0)
		return r;
	return inner >= 0 ? watch(hv, inner, NULL) : 0;
}

static int pager_backend_open(const struct hv_params *params, struct hv **ret_hv)
{
	struct hv *hv;
	int r;

	if (!params->pager || !params->inner)
		return -EINVAL;
	hv = calloc(1, sizeof(*hv));
	if (!hv)
		return -ENOMEM;
	hv->backend = params->inner;
	hv->epoll = hv->wake = hv->turns = -1;
	hv->last = &hv->first;
	hv->dir = strdup(params->pager);
	r = hv->dir ? hv->backend->open(params, &hv->inner) : -ENOMEM;
	if (r == 0)
		r = open_descriptors(hv);
	if (r < 0) {
		pager_backend_close(hv);
		return r;
	}
	look_for_files(hv);
	*ret_hv = hv;
	return 0;
}

static int pager_backend_fd(struct hv *hv)
{
	return hv->backend->fd(hv->inner) < 0 ? -1 : hv->epoll;
}

static int answer(struct hv *hv, const struct place *p, const struct hv_call *call)
{
	struct hv_event event = {
		.type = hv_answer_of(call->type), .token = call->token, .uuid = call->uuid
	};
	int r;

	if (call->type == HV_INFO) {
		event.info = (struct hv_info){ .uuid = p->uuid,
			.name = strdup(p->name),
			.maximum = p->maximum * POLICY_PAGE_SIZE };
		event.error = event.info.name ? 0 : -ENOMEM;
	} else if (call->type == HV_STATS) {
		event.stats = (struct hv_stats){ .known = HV_STAT_ACTUAL,
			.actual = p->maximum * POLICY_PAGE_SIZE };
	} else {
		event.error = -EOPNOTSUPP;
	}
	r = tell(hv, &event);
	if (r < 0)
		hv_event_clear(&event);
	return r;
}

static int pager_backend_submit(struct hv *hv, const struct hv_call *call)
{
	const struct place *p = NULL;

	if (call->type == HV_LIST)
		look_for_files(hv);
	else if (call->type != HV_PROCESS && call->type != HV_HOST)
		p = find(hv, &call->uuid);
	return p ? answer(hv, p, call) : hv->backend->submit(hv->inner, call);
}

static int pager_backend_next(struct hv *hv, struct hv_event *ret_event)
{
	int r;

	if (take_own(hv, ret_event))
		return 1;
	look_at_sockets(hv);
	if (take_own(hv, ret_event))
		return 1;
	r = hv->backend->next(hv->inner, ret_event);
	if (r == 1)
		add_ours(hv, ret_event);
	return r;
}

static bool pager_backend_handles(const char *uri)
{
	return wrapped->handles(uri);
}

const struct hv_backend *hv_pager(const struct hv_backend *inner)
{
	wrapped = inner;
	wrapper = *inner;
	wrapper.handles = pager_backend_handles;
	wrapper.open = pager_backend_open;
	wrapper.close = pager_backend_close;
	wrapper.fd = pager_backend_fd;
	wrapper.submit = pager_backend_submit;
	wrapper.next = pager_backend_next;
	return &wrapper;
}

/* --- the planner's groups --- */

/* -1: zeros only. -errno: there is a file, and it cannot be used. */
static int open_memory(const struct hv *hv, const struct place *p, int *ret_fd)
{
	char path[PATH_MAX];
	struct stat st;
	int fd, r;

	if (snprintf(path, sizeof(path), "%s/%s" SUFFIX, hv->dir, p->name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r < 0 || st.st_size == 0) {
		close(fd);
		fd = -1;
	}
	if (r == 0)
		*ret_fd = fd;
	return r;
}

static int start_pager(struct hv *hv, struct memcg_tree *tree)
{
	int r = hv->pager ? 0 : pager_new(tree, THREADS, &hv->pager);

	if (r == 0)
		watch(hv, pager_fd(hv->pager), NULL); /* or: it is */
	return r;
}

/*
 * Charged to the leaf, or to nobody where that is NULL. *ret_what, *ret_why: of a failure, for
 * tell_changed().
 */
static int place_start(struct hv *hv, struct place *p, struct memcg *leaf, const char **ret_what,
	const char **ret_why)
{
	int memory = -1, r = open_memory(hv, p, &memory);

	if (r < 0) {
		*ret_what = "refused: its memory file cannot be read: ";
		return r;
	}
	r = leaf ? pager_add(hv->pager, leaf, &p->hello, memory, ret_why)
		 : pager_serve(hv->pager, p->id, &p->hello, memory, ret_why);
	if (r < 0 && memory >= 0)
		close(memory);
	if (*ret_why)
		*ret_what = "refused: it sent ";
	else if (r == -ENODEV)
		*ret_why = "its process, or its group, is gone";
	else if (r == -ENOSPC)
		*ret_why = "as many microVMs as can be served are there";
	return r;
}

/* Of memory, descriptors, threads: there may be some soon. */
static bool is_shortage(int r)
{
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -EAGAIN;
}

static void place_bind(struct hv *hv, struct place *p, struct core *core)
{
	const char *what = "refused: ", *why = NULL;
	struct memcg *leaf = NULL;
	char uuid[HV_UUID_TEXT];
	int r;

	hv_uuid_format(&p->uuid, uuid);
	p->uncharged = core_find(core, uuid, &p->id) < 0;
	if (p->uncharged && p->turns < HELLO_TURNS)
		return; /* at a later step */
	if (p->uncharged)
		p->id = UINT64_MAX - hv->nr_uncharged++;
	r = start_pager(hv, engine_tree(core_engine(core))->root->tree);
	if (r == 0 && !p->uncharged)
		r = engine_page(core_engine(core), p->id, &leaf);
	if (r == 0)
		r = place_start(hv, p, leaf, &what, &why);
	if (is_shortage(r))
		return; /* it has handed over its memory, and would wait for its pages for ever */
	if (r < 0)
		close(p->hello.uffd);
	close(p->hello.process);
	place_set(hv, p, r < 0 ? PLACE_FREE : PLACE_RUNS);
	if (r < 0)
		tell_changed(hv, p, what, why ? why : strerror(-r));
}

/* It has got a group, or the operator put it into another. */
static void place_move(struct hv *hv, struct place *p, struct core *core)
{
	char uuid[HV_UUID_TEXT];
	struct memcg *leaf;
	uint64_t id;

	hv_uuid_format(&p->uuid, uuid);
	if (core_find(core, uuid, &id) < 0 || id == p->id)
		return;
	if (engine_page(core_engine(core), id, &leaf) == 0 &&
		pager_move(hv->pager, p->id, leaf) == 0) {
		p->id = id;
		p->uncharged = false;
	}
}

void hv_pager_bind(struct hv *hv, struct core *core)
{
	uint64_t group;

	for (struct place *p = hv->places; p; p = p->next) {
		if (p->state == PLACE_HELLO)
			place_bind(hv, p, core);
		else if (p->state == PLACE_RUNS)
			place_move(hv, p, core);
	}
	group = hv->pager ? pager_take(hv->pager) : 0;
	if (group)
		core_room(core, group, &hv->job);
}
