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
#include <sys/un.h>
#include <unistd.h>

#include "hv/pager/pager.h"

#define SUFFIX ".mem"
/* Sockets at most, and entries of the directory that are looked at. */
#define PLACES_MAX  PAGER_VMS_MAX
#define ENTRIES_MAX (4 * PLACES_MAX)
/* Fault threads: more than hosts of this kind have cores to spare for it. */
#define THREADS 4

enum place_state { PLACE_FREE, PLACE_CONNECTED, PLACE_HELLO, PLACE_RUNS };

/* A name that a VM may have. */
struct place {
	struct place *next;
	char *name;
	enum place_state state;
	int listener, connection;
	struct pager_hello hello;
	struct hv_uuid uuid;	   /* of the VM that is there, or was last */
	uint64_t id;		   /* its group */
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
	int epoll, wake;
	struct place *places;
	size_t nr_places;
	struct queued *first, **last;
	struct pager *pager; /* from the first VM on */
	uint64_t job;	     /* the room asked for last */
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

/* The listing that follows finds what it is; what was lost here is found by the next one. */
static void tell_changed(struct hv *hv, const struct place *p, const char *why)
{
	struct hv_event event = { .type = HV_EVENT_CHANGED, .uuid = p->uuid };

	if (why && asprintf(&event.message, "%s: refused: it sent %s", p->name, why) < 0)
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

static void place_free(struct place *p)
{
	if (p->state == PLACE_HELLO)
		close(p->hello.uffd);
	place_disconnect(p);
	if (p->listener >= 0)
		close(p->listener);
	free(p->name);
	free(p);
}

static int place_listen(struct hv *hv, struct place *p)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct epoll_event watch = { .events = EPOLLIN };
	size_t size = sizeof(address.sun_path);

	if ((size_t)snprintf(address.sun_path, size, "%s/%s.sock", hv->dir, p->name) >= size)
		return -ENAMETOOLONG;
	p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->listener < 0)
		return -errno;
	if (fchmod(p->listener, 0600) < 0 || (unlink(address.sun_path) < 0 && errno != ENOENT) ||
		bind(p->listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(p->listener, 1) < 0 ||
		epoll_ctl(hv->epoll, EPOLL_CTL_ADD, p->listener, &watch) < 0)
		return -errno;
	return 0;
}

static int place_new(struct hv *hv, const char *name, size_t length)
{
	struct place *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->listener = p->connection = -1;
	p->name = strndup(name, length);
	r = p->name ? place_listen(hv, p) : -ENOMEM;
	if (r < 0) {
		place_free(p);
		return r;
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

/* A socket for each memory file. One that cannot be made is tried again at the next listing. */
static void look_for_files(struct hv *hv)
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

static struct place *find(const struct hv *hv, const struct hv_uuid *uuid)
{
	for (struct place *p = hv->places; p; p = p->next)
		if (p->state >= PLACE_HELLO && hv_uuid_equal(&p->uuid, uuid))
			return p;
	return NULL;
}

/* A VMM that connects while another is there waits; each has an identity of its own. */
static void place_accept(struct hv *hv, struct place *p)
{
	struct epoll_event watch = { .events = EPOLLIN };

	p->connection = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (p->connection < 0)
		return;
	if (epoll_ctl(hv->epoll, EPOLL_CTL_ADD, p->connection, &watch) < 0 ||
		getrandom(&p->uuid, sizeof(p->uuid), 0) != sizeof(p->uuid))
		place_disconnect(p);
	else
		p->state = PLACE_CONNECTED;
}

static void place_receive(struct hv *hv, struct place *p)
{
	const char *why = "what cannot be read";
	int r = pager_receive(p->connection, &p->hello, &why);

	if (r == -EAGAIN || r == -EINTR)
		return;
	place_disconnect(p);
	p->state = r < 0 ? PLACE_FREE : PLACE_HELLO;
	p->charged = p->maximum = 0;
	p->paging = (struct hv_paging){ .paged = true };
	for (size_t i = 0; r == 0 && i < p->hello.nr_regions; i++)
		p->maximum += p->hello.regions[i].pages;
	tell_changed(hv, p, r < 0 ? why : NULL);
}

static void look_at_sockets(struct hv *hv)
{
	uint64_t n;

	if (read(hv->wake, &n, sizeof(n)) < 0 && errno != EAGAIN)
		return;
	for (struct place *p = hv->places; p; p = p->next) {
		if (p->state == PLACE_FREE)
			place_accept(hv, p);
		if (p->state == PLACE_CONNECTED)
			place_receive(hv, p);
	}
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
			p->state = PLACE_FREE;
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
	int r = 0;

	if (event->error)
		return;
	count_all(hv);
	if (event->type == HV_EVENT_LISTED)
		r = add_listed(hv, event);
	else if (event->type == HV_EVENT_PROCESS)
		r = add_processes(hv, event);
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
	free(hv->dir);
	free(hv);
}

static int open_descriptors(struct hv *hv)
{
	struct epoll_event watch = { .events = EPOLLIN };
	int inner = hv->backend->fd(hv->inner);

	hv->epoll = epoll_create1(EPOLL_CLOEXEC);
	hv->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (hv->epoll < 0 || hv->wake < 0 ||
		epoll_ctl(hv->epoll, EPOLL_CTL_ADD, hv->wake, &watch) < 0 ||
		(inner >= 0 && epoll_ctl(hv->epoll, EPOLL_CTL_ADD, inner, &watch) < 0))
		return -errno;
	return 0;
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
	hv->epoll = hv->wake = -1;
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
	wrapper = (struct hv_backend){
		.name = inner->name,
		.loosens = inner->loosens,
		.granule = inner->granule,
		.handles = pager_backend_handles,
		.open = pager_backend_open,
		.close = pager_backend_close,
		.fd = pager_backend_fd,
		.submit = pager_backend_submit,
		.next = pager_backend_next,
	};
	return &wrapper;
}

/* --- the planner's groups --- */

/* -1: zeros only. -errno: there is a file, and it cannot be used. */
static int open_memory(const struct hv *hv, const struct place *p, int *ret_fd)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s" SUFFIX, hv->dir, p->name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && st.st_size == 0) {
		close(fd);
		fd = -1;
	}
	*ret_fd = fd;
	return 0;
}

static int start_pager(struct hv *hv, struct memcg_tree *tree)
{
	struct epoll_event watch = { .events = EPOLLIN };
	int r = hv->pager ? 0 : pager_new(tree, THREADS, &hv->pager);

	if (r == 0)
		epoll_ctl(hv->epoll, EPOLL_CTL_ADD, pager_fd(hv->pager), &watch); /* or: it is */
	return r;
}

static void place_bind(struct hv *hv, struct place *p, struct core *core)
{
	char uuid[HV_UUID_TEXT];
	const char *why = "memory whose file cannot be read";
	struct memcg *leaf;
	int memory = -1, r;

	hv_uuid_format(&p->uuid, uuid);
	if (core_find(core, uuid, &p->id) < 0)
		return; /* at a later step */
	r = open_memory(hv, p, &memory);
	if (r == 0)
		r = engine_page(core_engine(core), p->id, &leaf);
	if (r == 0)
		r = start_pager(hv, leaf->tree);
	if (r == 0) {
		r = pager_add(hv->pager, leaf, &p->hello, memory, &why);
	} else {
		close(p->hello.uffd);
		if (memory >= 0)
			close(memory);
	}
	p->state = r < 0 ? PLACE_FREE : PLACE_RUNS;
	if (r < 0)
		tell_changed(hv, p, why);
}

/* The operator put it into another group. */
static void place_move(struct hv *hv, struct place *p, struct core *core)
{
	char uuid[HV_UUID_TEXT];
	struct memcg *leaf;
	uint64_t id;

	hv_uuid_format(&p->uuid, uuid);
	if (core_find(core, uuid, &id) < 0 || id == p->id)
		return;
	if (engine_page(core_engine(core), id, &leaf) == 0 &&
		pager_move(hv->pager, p->id, leaf) == 0)
		p->id = id;
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
