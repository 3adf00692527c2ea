/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A Xen of our own; see fake_xen.h. */
#include <config.h>

#include "fake_xen.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NODES_MAX	 512
#define GUESTS_MAX	 32
#define TRANSACTIONS_MAX 16
#define WATCHES_MAX	 64
#define EVENTS_MAX	 256
#define TEXT_MAX	 256
#define VALUE_MAX	 2048 /* of a guest's */
#define QUOTA		 100  /* nodes of a guest's own */
#define PAGE_KIB	 4

struct node {
	char path[160], value[VALUE_MAX + 1];
	unsigned int length;	   /* of the value, which may have zeros in it */
	uint32_t owner, permitted; /* domids: who made it, who else may */
	unsigned int may;	   /* of that one; XS_PERM_READ, XS_PERM_WRITE */
};

struct tree {
	struct node nodes[NODES_MAX];
	unsigned int nr;
};

struct transaction {
	bool used;
	uint64_t base; /* the store's generation when it began */
	struct tree tree;
	char changed[NODES_MAX][160];
	unsigned int nr_changed;
};

struct handle {
	bool dead;
	int fd;
	char watches[WATCHES_MAX][160];
	unsigned int nr_watches;
	char events[EVENTS_MAX][160];
	unsigned int nr_events;
	struct handle *next;
};

static struct fake {
	struct tree tree;
	uint64_t generation;
	struct transaction transactions[TRANSACTIONS_MAX];
	struct fake_guest guests[GUESTS_MAX];
	unsigned int nr_guests;
	uint32_t next_domid;
	struct handle *handles;
	unsigned int nr_handles, nr_interfaces, contend, late_us, nr_commits;
	unsigned int fail_nth; /* 0: none any more */
	int fail_error;
	bool broken, release;
	int refuse;
	unsigned int lose_nth; /* 0: none any more */
	struct fake_guest *destroy;
	uint64_t total_kib, free_kib, claimed_kib;
	char changes[8192];
} fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hang = PTHREAD_COND_INITIALIZER;

void fake_xen_lock(void)
{
	pthread_mutex_lock(&lock);
}

void fake_xen_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* ---- the store; all with the lock held ---- */

static struct node *find(struct tree *tree, const char *path)
{
	for (unsigned int i = 0; i < tree->nr; i++)
		if (!strcmp(tree->nodes[i].path, path))
			return &tree->nodes[i];
	return NULL;
}

static bool below(const char *path, const char *above)
{
	size_t length = strlen(above);

	return !strncmp(path, above, length) && (path[length] == '/' || path[length] == 0);
}

static struct node *make(struct tree *tree, const char *path)
{
	struct node *node = find(tree, path), *inherits = NULL;
	char parent[160];
	char *slash;

	if (node)
		return node;
	snprintf(parent, sizeof(parent), "%s", path);
	slash = strrchr(parent, '/');
	if (slash && slash != parent) {
		*slash = 0;
		inherits = make(tree, parent);
	}
	if (tree->nr == NODES_MAX)
		abort();
	node = &tree->nodes[tree->nr++];
	memset(node, 0, sizeof(*node));
	snprintf(node->path, sizeof(node->path), "%s", path);
	if (inherits) {
		node->permitted = inherits->permitted;
		node->may = inherits->may;
	}
	return node;
}

static void set(struct node *node, const void *value, size_t length)
{
	if (length > VALUE_MAX)
		length = VALUE_MAX;
	memcpy(node->value, value, length);
	node->value[length] = 0;
	node->length = (unsigned int)length;
}

static void set_text(struct node *node, const char *text)
{
	set(node, text, strlen(text));
}

static bool drop(struct tree *tree, const char *path)
{
	bool found = false;

	for (unsigned int i = 0; i < tree->nr;) {
		if (below(tree->nodes[i].path, path)) {
			tree->nodes[i] = tree->nodes[--tree->nr];
			found = true;
		} else {
			i++;
		}
	}
	return found;
}

static void emit(const char *path)
{
	uint64_t one = 1;

	for (struct handle *h = fake.handles; h; h = h->next)
		for (unsigned int i = 0; i < h->nr_watches; i++) {
			if (h->dead || h->nr_events == EVENTS_MAX || !below(path, h->watches[i]))
				continue;
			snprintf(h->events[h->nr_events++], sizeof(h->events[0]), "%s", path);
			if (write(h->fd, &one, sizeof(one)) < 0)
				abort();
			break;
		}
}

static void changed(const char *path)
{
	fake.generation++;
	emit(path);
}

static void note(const char *what)
{
	size_t length = strlen(fake.changes);

	snprintf(fake.changes + length, sizeof(fake.changes) - length, "%s;", what);
}

static struct fake_guest *guest_of(uint32_t domid)
{
	for (unsigned int i = 0; i < fake.nr_guests; i++)
		if (fake.guests[i].there && fake.guests[i].domid == domid)
			return &fake.guests[i];
	return NULL;
}

static void note_target(const char *path, const char *value)
{
	char text[64];
	unsigned int domid;
	int end = 0;

	if (sscanf(path, "/local/domain/%u/memory/target%n", &domid, &end) < 1 || end == 0 ||
		path[end])
		return;
	snprintf(text, sizeof(text), "target %u %.20s", domid, value);
	note(text);
}

/* ---- guests ---- */

static void obey(struct fake_guest *g)
{
	char path[64];
	struct node *node;
	uint64_t want, most;

	snprintf(path, sizeof(path), "/local/domain/%" PRIu32 "/memory/target", g->domid);
	node = find(&fake.tree, path);
	if (!node || !g->balloon || (g->flags & XEN_DOMINF_paused))
		return;
	want = strtoull(node->value, NULL, 10);
	if (g->stuck && want == g->obeyed_kib)
		return;
	g->stuck = false;
	g->obeyed_kib = want;
	want += g->offset_kib;
	most = want;
	if (most < g->hog_kib)
		most = g->hog_kib;
	if (most > g->max_kib)
		most = g->max_kib;
	if (g->step_kib && most > g->tot_kib + g->step_kib)
		most = g->tot_kib + g->step_kib;
	if (g->step_kib && most + g->step_kib < g->tot_kib)
		most = g->tot_kib - g->step_kib;
	g->moves += most != g->tot_kib;
	g->tot_kib = most;
	g->stuck = most != want && (most == g->hog_kib || most == g->max_kib);
}

static void store_guest(const struct fake_guest *g, const char *name, uint64_t kib, uint64_t max)
{
	const struct {
		const char *key;
		uint64_t number;
	} numbers[] = { { "memory/target", kib }, { "memory/static-max", max } };
	char path[160], text[32];

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/local/domain/%" PRIu32 "/%s", g->domid,
			numbers[i].key);
		snprintf(text, sizeof(text), "%" PRIu64, numbers[i].number);
		set_text(make(&fake.tree, path), text);
	}
	snprintf(path, sizeof(path), "/local/domain/%" PRIu32 "/name", g->domid);
	set_text(make(&fake.tree, path), name);
	changed("@introduceDomain");
}

void fake_xen_reset(void)
{
	fake_xen_lock();
	/* Not the nodes: they are many, and made new when they are used. */
	fake.tree.nr = 0;
	fake.generation = 0;
	for (unsigned int i = 0; i < TRANSACTIONS_MAX; i++)
		fake.transactions[i].used = false;
	memset(&fake.guests, 0, sizeof(fake) - offsetof(struct fake, guests));
	fake.next_domid = 1;
	fake_xen_unlock();
}

struct fake_guest *fake_xen_add(const char *name, uint64_t kib, uint64_t static_max_kib)
{
	struct fake_guest *g;

	fake_xen_lock();
	g = &fake.guests[fake.nr_guests++];
	memset(g, 0, sizeof(*g));
	g->domid = fake.next_domid++;
	g->there = g->balloon = true;
	g->uuid[0] = 0xaa;
	g->uuid[15] = (uint8_t)fake.nr_guests;
	g->tot_kib = kib;
	g->max_kib = kib + 1024;
	g->flags = XEN_DOMINF_running;
	store_guest(g, name, kib, static_max_kib);
	fake_xen_unlock();
	return g;
}

struct hv_uuid fake_xen_uuid(const struct fake_guest *guest)
{
	struct hv_uuid uuid;

	memcpy(uuid.bytes, guest->uuid, sizeof(uuid.bytes));
	return uuid;
}

static void destroy(struct fake_guest *g, bool store)
{
	char path[64];

	g->there = false;
	snprintf(path, sizeof(path), "/local/domain/%" PRIu32, g->domid);
	if (store && drop(&fake.tree, path))
		changed(path);
	changed("@releaseDomain");
}

void fake_xen_destroy(struct fake_guest *guest, bool store)
{
	fake_xen_lock();
	destroy(guest, store);
	fake_xen_unlock();
}

void fake_xen_reboot(struct fake_guest *g)
{
	char path[64], name[TEXT_MAX];
	uint64_t max;

	fake_xen_lock();
	snprintf(path, sizeof(path), "/local/domain/%" PRIu32 "/name", g->domid);
	snprintf(name, sizeof(name), "%.*s", TEXT_MAX - 1, find(&fake.tree, path)->value);
	snprintf(path, sizeof(path), "/local/domain/%" PRIu32 "/memory/static-max", g->domid);
	max = strtoull(find(&fake.tree, path)->value, NULL, 10);
	destroy(g, true);
	g->domid = fake.next_domid++;
	g->there = true;
	g->tot_kib = max;
	g->max_kib = max + 1024;
	g->stuck = false;
	store_guest(g, name, max, max);
	fake_xen_unlock();
}

/* ---- for tests ---- */

void fake_xen_write(const char *path, const char *value)
{
	fake_xen_lock();
	if (value)
		set_text(make(&fake.tree, path), value);
	else
		drop(&fake.tree, path);
	changed(path);
	fake_xen_unlock();
}

bool fake_xen_read(const char *path, char *text)
{
	struct node *node;

	fake_xen_lock();
	node = find(&fake.tree, path);
	if (node)
		snprintf(text, TEXT_MAX, "%.*s", TEXT_MAX - 1, node->value);
	fake_xen_unlock();
	return node;
}

/* Lock held. What is not there is made with the permissions of what it is below. */
static bool may_write(const struct fake_guest *g, const char *path)
{
	char above[160];
	struct node *node;

	snprintf(above, sizeof(above), "%s", path);
	for (node = find(&fake.tree, above); !node && strrchr(above, '/') > above;
		node = find(&fake.tree, above))
		*strrchr(above, '/') = 0;
	return node && (node->owner == g->domid ||
			       (node->permitted == g->domid && (node->may & XS_PERM_WRITE)));
}

static unsigned int owned_by(const struct fake_guest *g)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < fake.tree.nr; i++)
		nr += fake.tree.nodes[i].owner == g->domid;
	return nr;
}

int fake_xen_guest_write(struct fake_guest *g, const char *path, const char *value, size_t length)
{
	int error = 0;

	fake_xen_lock();
	if (!may_write(g, path)) {
		error = EACCES;
	} else if (length > VALUE_MAX) {
		error = ENOSPC;
	} else if (find(&fake.tree, path)) {
		set(find(&fake.tree, path), value, length);
		changed(path);
	} else if (owned_by(g) == QUOTA) {
		error = ENOSPC;
	} else {
		set(make(&fake.tree, path), value, length);
		find(&fake.tree, path)->owner = g->domid;
		changed(path);
	}
	fake_xen_unlock();
	return error;
}

int fake_xen_guest_remove(struct fake_guest *g, const char *path)
{
	int error = EACCES;

	fake_xen_lock();
	if (!find(&fake.tree, path)) {
		error = ENOENT;
	} else if (may_write(g, path)) {
		drop(&fake.tree, path);
		changed(path);
		error = 0;
	}
	fake_xen_unlock();
	return error;
}

unsigned int fake_xen_count(const char *path)
{
	unsigned int nr = 0;

	fake_xen_lock();
	for (unsigned int i = 0; i < fake.tree.nr; i++)
		nr += below(fake.tree.nodes[i].path, path);
	fake_xen_unlock();
	return nr;
}

static bool ends_with(const char *path, const char *end)
{
	size_t length = strlen(path), least = strlen(end);

	return length >= least && !strcmp(path + length - least, end);
}

unsigned int fake_xen_nr_watches(const char *end)
{
	unsigned int nr = 0;

	fake_xen_lock();
	for (const struct handle *h = fake.handles; h; h = h->next)
		for (unsigned int i = 0; i < h->nr_watches; i++)
			nr += ends_with(h->watches[i], end);
	fake_xen_unlock();
	return nr;
}

static void break_all(void)
{
	uint64_t one = 1;

	for (struct handle *h = fake.handles; h; h = h->next) {
		h->dead = true;
		if (write(h->fd, &one, sizeof(one)) < 0)
			abort();
	}
}

void fake_xen_break(bool broken)
{
	fake_xen_lock();
	fake.broken = broken;
	if (broken)
		break_all();
	fake_xen_unlock();
}

void fake_xen_lose_nth(unsigned int nth)
{
	fake_xen_lock();
	fake.lose_nth = nth;
	fake_xen_unlock();
}

void fake_xen_release(void)
{
	fake_xen_lock();
	fake.release = true;
	pthread_cond_broadcast(&hang);
	fake_xen_unlock();
}

void fake_xen_contend(unsigned int times)
{
	fake_xen_lock();
	fake.contend = times;
	fake_xen_unlock();
}

void fake_xen_late(unsigned int us)
{
	fake_xen_lock();
	fake.late_us = us;
	fake_xen_unlock();
}

void fake_xen_refuse(int error)
{
	fake_xen_lock();
	fake.refuse = error;
	fake_xen_unlock();
}

void fake_xen_destroy_before_write(struct fake_guest *guest)
{
	fake_xen_lock();
	fake.destroy = guest;
	fake_xen_unlock();
}

unsigned int fake_xen_nr_handles(void)
{
	unsigned int nr;

	fake_xen_lock();
	nr = fake.nr_handles + fake.nr_interfaces;
	fake_xen_unlock();
	return nr;
}

void fake_xen_host(uint64_t total_kib, uint64_t free_kib, uint64_t claimed_kib)
{
	fake_xen_lock();
	fake.total_kib = total_kib;
	fake.free_kib = free_kib;
	fake.claimed_kib = claimed_kib;
	fake_xen_unlock();
}

const char *fake_xen_changes(void)
{
	return fake.changes;
}

void fake_xen_forget_changes(void)
{
	fake_xen_lock();
	fake.changes[0] = 0;
	fake_xen_unlock();
}

void fake_xen_fail_nth(unsigned int nth, int error)
{
	fake_xen_lock();
	fake.fail_nth = nth;
	fake.fail_error = error;
	fake_xen_unlock();
}

bool fake_xen_failed_nth(void)
{
	bool failed;

	fake_xen_lock();
	failed = fake.fail_nth == 0;
	fake.fail_nth = 0;
	fake_xen_unlock();
	return failed;
}

/* True: this call is the one that fails. */
static bool fails(void)
{
	bool it = false;

	fake_xen_lock();
	if (fake.fail_nth > 0)
		it = --fake.fail_nth == 0;
	fake_xen_unlock();
	if (it)
		errno = fake.fail_error;
	return it;
}

/* ---- libxenctrl ---- */

static xc_interface *interface_open(void)
{
	void *handle = malloc(1);

	if (!handle)
		return NULL;
	fake_xen_lock();
	fake.nr_interfaces++;
	fake_xen_unlock();
	return handle;
}

static int interface_close(xc_interface *xc)
{
	fake_xen_lock();
	fake.nr_interfaces--;
	fake_xen_unlock();
	free(xc);
	return 0;
}

static void describe(const struct fake_guest *g, xc_domaininfo_t *info)
{
	memset(info, 0, sizeof(*info));
	info->domain = (uint16_t)g->domid;
	info->flags = g->flags;
	info->tot_pages = g->tot_kib / PAGE_KIB;
	info->max_pages = g->max_kib / PAGE_KIB;
	info->cpupool = g->cpupool;
	info->cpu_time = g->flags & XEN_DOMINF_paused ? 0 : 1000000;
	memcpy(info->handle, g->uuid, sizeof(info->handle));
}

static int getinfolist(
	xc_interface *xc, uint32_t first, unsigned int max, xc_domaininfo_t *ret_infos)
{
	int nr = 0;

	if (fails())
		return -1;
	fake_xen_lock();
	for (uint32_t id = first; id < fake.next_domid && (unsigned int)nr < max; id++) {
		struct fake_guest *g = guest_of(id);

		while (g && max == 1 && g->hangs && !fake.release)
			pthread_cond_wait(&hang, &lock);
		g = guest_of(id);
		if (!g)
			continue;
		obey(g);
		describe(g, &ret_infos[nr++]);
	}
	fake_xen_unlock();
	return nr;
}

static int setmaxmem(xc_interface *xc, uint32_t domid, uint64_t max_kib)
{
	struct fake_guest *g;
	char text[64];

	if (fails())
		return -1;
	fake_xen_lock();
	g = guest_of(domid);
	if (g) {
		g->max_kib = max_kib;
		snprintf(text, sizeof(text), "max %" PRIu32 " %" PRIu64, domid, max_kib);
		note(text);
	}
	fake_xen_unlock();
	errno = g ? 0 : ESRCH;
	return g ? 0 : -1;
}

static int physinfo(xc_interface *xc, xc_physinfo_t *ret_info)
{
	if (fails())
		return -1;
	fake_xen_lock();
	memset(ret_info, 0, sizeof(*ret_info));
	ret_info->total_pages = fake.total_kib / PAGE_KIB;
	ret_info->free_pages = fake.free_kib / PAGE_KIB;
	ret_info->outstanding_pages = fake.claimed_kib / PAGE_KIB;
	fake_xen_unlock();
	return 0;
}

/* ---- libxenstore ---- */

static struct handle *handle_of(struct xs_handle *xs)
{
	return (struct handle *)(void *)xs;
}

static struct xs_handle *open_store(unsigned long flags)
{
	struct handle *h;

	if (fails())
		return NULL;
	fake_xen_lock();
	h = fake.broken ? NULL : calloc(1, sizeof(*h));
	if (h) {
		h->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		h->next = fake.handles;
		fake.handles = h;
		fake.nr_handles++;
	}
	fake_xen_unlock();
	if (!h)
		errno = ENOENT;
	return (struct xs_handle *)(void *)h;
}

static void close_store(struct xs_handle *xs)
{
	struct handle *h = handle_of(xs), **at = &fake.handles;

	fake_xen_lock();
	while (*at && *at != h)
		at = &(*at)->next;
	if (*at) {
		*at = h->next;
		fake.nr_handles--;
	}
	fake_xen_unlock();
	close(h->fd);
	free(h);
}

static int store_fileno(struct xs_handle *xs)
{
	return handle_of(xs)->fd;
}

/* Lock held: the tree that the call is about; NULL with errno. */
static struct tree *tree_of(struct xs_handle *xs, xs_transaction_t t)
{
	if (handle_of(xs)->dead) {
		errno = EPIPE;
		return NULL;
	}
	if (t == XBT_NULL)
		return &fake.tree;
	return &fake.transactions[t - 1].tree;
}

static bool watch(struct xs_handle *xs, const char *path, const char *token)
{
	struct handle *h = handle_of(xs);
	uint64_t one = 1;
	bool good = false;

	if (fails())
		return false;
	fake_xen_lock();
	if (h->dead) {
		errno = EPIPE;
	} else if (h->nr_watches == WATCHES_MAX || h->nr_events == EVENTS_MAX) {
		errno = E2BIG; /* whoever leaves its watches behind */
	} else {
		for (unsigned int i = 0; i < h->nr_watches; i++)
			good |= !strcmp(h->watches[i], path);
		if (good) {
			errno = EEXIST;
			good = false;
		} else {
			snprintf(h->watches[h->nr_watches++], 160, "%s", path);
			snprintf(h->events[h->nr_events++], 160, "%s", path);
			good = write(h->fd, &one, sizeof(one)) > 0;
		}
	}
	fake_xen_unlock();
	return good;
}

static bool unwatch(struct xs_handle *xs, const char *path, const char *token)
{
	struct handle *h = handle_of(xs);
	bool found = false;

	fake_xen_lock();
	for (unsigned int i = 0; i < h->nr_watches && !found; i++)
		if (!strcmp(h->watches[i], path)) {
			memcpy(h->watches[i], h->watches[--h->nr_watches], 160);
			found = true;
		}
	fake_xen_unlock();
	return found;
}

static char **check_watch(struct xs_handle *xs)
{
	struct handle *h = handle_of(xs);
	char **result = NULL;
	uint64_t count;

	fake_xen_lock();
	errno = EAGAIN;
	if (h->dead) {
		errno = EPIPE;
	} else if (h->nr_events > 0) {
		result = calloc(1, 2 * sizeof(char *) + 164);
		result[XS_WATCH_PATH] = (char *)(result + 2);
		strcpy(result[XS_WATCH_PATH], h->events[0]);
		result[XS_WATCH_TOKEN] = result[XS_WATCH_PATH] + 160;
		memmove(h->events[0], h->events[1], sizeof(h->events[0]) * --h->nr_events);
	} else if (read(h->fd, &count, sizeof(count)) > 0) {
		errno = EAGAIN;
	}
	fake_xen_unlock();
	return result;
}

static char **directory(
	struct xs_handle *xs, xs_transaction_t t, const char *path, unsigned int *ret_nr)
{
	size_t length = strlen(path);
	char **result = NULL, *text;
	struct tree *tree;

	if (fails())
		return NULL;
	fake_xen_lock();
	tree = tree_of(xs, t);
	if (tree && !find(tree, path))
		errno = ENOENT;
	if (tree && find(tree, path)) {
		result = calloc(1, NODES_MAX * sizeof(char *) + NODES_MAX * 160);
		text = (char *)(result + NODES_MAX);
		*ret_nr = 0;
		for (unsigned int i = 0; i < tree->nr; i++) {
			const char *node = tree->nodes[i].path;

			if (!below(node, path) || !node[length] || strchr(node + length + 1, '/'))
				continue;
			strcpy(text, node + length + 1);
			result[(*ret_nr)++] = text;
			text += 160;
		}
	}
	fake_xen_unlock();
	return result;
}

/* Lock held. */
static void note_read(const struct node *node)
{
	struct fake_guest *g = guest_of(node->permitted);

	if (g && node->permitted && (node->may & XS_PERM_WRITE))
		g->reads++;
}

static void *read_store(
	struct xs_handle *xs, xs_transaction_t t, const char *path, unsigned int *ret_len)
{
	char *text = NULL;
	struct tree *tree;
	struct node *node;

	if (fails())
		return NULL;
	fake_xen_lock();
	tree = tree_of(xs, t);
	node = tree ? find(tree, path) : NULL;
	if (node)
		text = malloc(node->length + 1);
	else if (tree)
		errno = ENOENT;
	if (text) {
		memcpy(text, node->value, node->length + 1);
		*ret_len = node->length;
		note_read(node);
	}
	fake_xen_unlock();
	return text;
}

static void remember(xs_transaction_t t, const char *path)
{
	struct transaction *transaction;

	if (t == XBT_NULL) {
		changed(path);
		return;
	}
	transaction = &fake.transactions[t - 1];
	snprintf(transaction->changed[transaction->nr_changed++], 160, "%s", path);
}

static bool write_store(struct xs_handle *xs, xs_transaction_t t, const char *path,
	const void *data, unsigned int len)
{
	struct tree *tree;
	bool good = false;

	if (fails())
		return false;
	fake_xen_lock();
	tree = tree_of(xs, t);
	if (fake.destroy) {
		destroy(fake.destroy, true);
		fake.destroy = NULL;
	}
	if (tree && fake.refuse) {
		errno = fake.refuse;
	} else if (tree) {
		set(make(tree, path), data, len);
		remember(t, path);
		if (t == XBT_NULL)
			note_target(path, find(tree, path)->value);
		good = true;
	}
	fake_xen_unlock();
	return good;
}

static bool set_permissions(struct xs_handle *xs, xs_transaction_t t, const char *path,
	struct xs_permissions *permissions, unsigned int nr)
{
	struct tree *tree;
	struct node *node;

	if (fails())
		return false;
	fake_xen_lock();
	tree = tree_of(xs, t);
	node = tree ? find(tree, path) : NULL;
	if (node && nr == 2) {
		node->owner = permissions[0].id;
		node->permitted = permissions[1].id;
		node->may = permissions[1].perms;
	} else if (tree) {
		errno = ENOENT;
	}
	fake_xen_unlock();
	return node;
}

static bool remove_store(struct xs_handle *xs, xs_transaction_t t, const char *path)
{
	struct tree *tree;
	bool good = false;

	if (fails())
		return false;
	fake_xen_lock();
	tree = tree_of(xs, t);
	if (tree && drop(tree, path)) {
		remember(t, path);
		good = true;
	} else if (tree) {
		errno = ENOENT;
	}
	fake_xen_unlock();
	return good;
}

static void copy_tree(struct tree *to, const struct tree *from)
{
	memcpy(to->nodes, from->nodes, from->nr * sizeof(from->nodes[0]));
	to->nr = from->nr;
}

static xs_transaction_t begin(struct xs_handle *xs)
{
	xs_transaction_t t = XBT_NULL;

	if (fails())
		return XBT_NULL;
	fake_xen_lock();
	errno = EPIPE;
	for (unsigned int i = 0; !handle_of(xs)->dead && t == XBT_NULL && i < TRANSACTIONS_MAX;
		i++) {
		struct transaction *transaction = &fake.transactions[i];

		if (transaction->used)
			continue;
		transaction->used = true;
		transaction->base = fake.generation;
		copy_tree(&transaction->tree, &fake.tree);
		transaction->nr_changed = 0;
		t = i + 1;
	}
	fake_xen_unlock();
	return t;
}

static bool end(struct xs_handle *xs, xs_transaction_t t, bool abort_it)
{
	struct transaction *transaction = &fake.transactions[t - 1];
	bool good = false, failing = fails();
	unsigned int late;

	fake_xen_lock();
	transaction->used = false;
	if (failing) {
		errno = fake.fail_error;
	} else if (handle_of(xs)->dead) {
		errno = EPIPE;
	} else if (abort_it) {
		good = true;
	} else if (fake.contend > 0 || transaction->base != fake.generation) {
		fake.contend -= fake.contend > 0;
		errno = EAGAIN;
	} else {
		copy_tree(&fake.tree, &transaction->tree);
		for (unsigned int i = 0; i < transaction->nr_changed; i++) {
			struct node *node = find(&fake.tree, transaction->changed[i]);

			if (node)
				note_target(node->path, node->value);
			changed(transaction->changed[i]);
		}
		good = true;
	}
	if (good && !abort_it && fake.lose_nth > 0 && --fake.lose_nth == 0) {
		break_all();
		errno = EPIPE;
		good = false;
	}
	late = good && fake.nr_commits++ % 2 == 0 ? fake.late_us : 0;
	fake_xen_unlock();
	if (late)
		usleep(late);
	return good;
}

/* Short, for tests cannot wait. */
const struct xen_calls fake_xen_calls = {
	.times = {
		.pause_first = 5000,
		.pause_most = 20000,
		.hung = 3000000,
		.poll = 2000,
		.rescan = 20000,
		.rest = 1000,
		.nudge_first = 10000,
		.nudge_most = 80000,
		.driver = 20000,
		.forget = 60000000,
		.silent = 60000000,
		.remake = 20000,
	},
	.interface_open = interface_open,
	.interface_close = interface_close,
	.domain_getinfolist = getinfolist,
	.domain_setmaxmem = setmaxmem,
	.physinfo = physinfo,
	.xs_open = open_store,
	.xs_close = close_store,
	.xs_fileno = store_fileno,
	.xs_watch = watch,
	.xs_unwatch = unwatch,
	.xs_check_watch = check_watch,
	.xs_directory = directory,
	.xs_read = read_store,
	.xs_write = write_store,
	.xs_set_permissions = set_permissions,
	.xs_rm = remove_store,
	.xs_transaction_start = begin,
	.xs_transaction_end = end,
};
