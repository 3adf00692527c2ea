/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control thread: see backend.h. Watches carry no domid worth trusting and may be lost: they
 * only say that it is time to look, and a rescan finds what they did not tell.
 */
#include <config.h>

#include "hv/xen/backend.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Watch events taken before anything else is looked at; the rest waits for the next round. */
#define WATCHES_AT_ONCE 1024
/* Folders of domains that have gone, removed in a rescan. */
#define LEFTOVERS_AT_ONCE 256
/* Before a domain without memory/target is looked at again: it is being built. */
#define IGNORE_US UINT64_C(500000)

static const char introduced[] = "@introduceDomain", released[] = "@releaseDomain";

void xen_wake(struct hv *hv)
{
	uint64_t one = 1;
	ssize_t n = write(hv->wake_fd, &one, sizeof(one));

	(void)n; /* a full counter is readable */
}

/* Lock held. Before the connection is told to be there nobody knows of anything. */
static void tell(struct hv *hv, const struct domain *d, enum hv_event_type type, uint64_t actual)
{
	struct hv_event event = { .type = type };

	if (!hv->connected)
		return;
	event.uuid = d->uuid;
	event.actual = actual;
	hv_queue_tell(&hv->queue, &event);
}

/* ---- identity ---- */

/* A domain without one, or with one that another has, is known by its domid. */
static void make_uuid(uint32_t domid, struct hv_uuid *ret_uuid)
{
	static const uint8_t made[12] = { 'x', 'e', 'n', 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0 };

	memcpy(ret_uuid->bytes, made, sizeof(made));
	for (size_t i = 0; i < 4; i++)
		ret_uuid->bytes[12 + i] = (uint8_t)(domid >> (24 - 8 * i));
}

/*
 * Another life of the same VM, or a new one, in the same place of the table. What was decided for
 * the one before, until the core was told that it is another, is no target of this one's.
 */
static void begin_life(struct hv *hv, struct domain *d, const xc_domaininfo_t *info)
{
	uint64_t said = d->words_said;
	bool lived = d->creation > 0;
	struct hv_uuid uuid = d->uuid;
	UT_hash_handle hh = d->hh;

	if (hv->by_domid[d->domid] == d)
		hv->by_domid[d->domid] = NULL;
	free(d->name);
	memset(d, 0, sizeof(*d));
	d->uuid = uuid;
	d->hh = hh;
	d->domid = info->domain;
	memcpy(d->handle, info->handle, sizeof(d->handle));
	d->creation = ++hv->creations;
	d->words = d->creation << 32;
	d->words_said = lived ? said : d->words;
	hv->lives++;
	hv->by_domid[d->domid] = d;
}

static struct domain *add(struct hv *hv, const struct hv_uuid *uuid)
{
	struct domain *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->uuid = *uuid;
	HASH_ADD(hh, hv->domains, uuid, sizeof(d->uuid), d);
	if (!d->hh.tbl) {
		free(d);
		return NULL;
	}
	return d;
}

static void gone(struct hv *hv, struct domain *d)
{
	bool adopted = d->adopted;

	if (hv->by_domid[d->domid] == d)
		hv->by_domid[d->domid] = NULL;
	d->gone_at = hv_now();
	hv->lives++;
	xen_agents_wake(hv);
	if (adopted)
		tell(hv, d, HV_EVENT_CHANGED, 0);
}

/* Lock held. A domid that nobody in the table has: whose is it? */
static void come(struct hv *hv, const xc_domaininfo_t *info)
{
	static const xen_domain_handle_t none;
	struct hv_uuid uuid;
	struct domain *d;

	memcpy(uuid.bytes, info->handle, sizeof(uuid.bytes));
	if (!memcmp(info->handle, none, sizeof(none)))
		make_uuid(info->domain, &uuid);
	d = xen_find_any(hv, &uuid);
	/* Two that live at once; one that was not seen this time has gone. */
	if (d && !d->gone_at && d->seen && !(d->flags & (XEN_DOMINF_dying | XEN_DOMINF_shutdown))) {
		make_uuid(info->domain, &uuid);
		d = xen_find_any(hv, &uuid);
	}
	if (d && d->creation)
		tell(hv, d, HV_EVENT_REBOOTED, 0);
	if (!d)
		d = add(hv, &uuid);
	if (d)
		begin_life(hv, d, info);
}

/* ---- looking ---- */

/* Lock held: one that the hypervisor has. */
static void look(struct hv *hv, const xc_domaininfo_t *info)
{
	struct domain *d = hv->by_domid[info->domain];

	if (info->domain == 0 && hv->dom0_min == 0)
		return;
	if (d && memcmp(d->handle, info->handle, sizeof(d->handle)) != 0) {
		gone(hv, d);
		d = NULL;
	}
	/* One that is dying when it is first seen is nobody's any more. */
	if (!d && !(info->flags & XEN_DOMINF_dying)) {
		come(hv, info);
		d = hv->by_domid[info->domain];
	}
	if (!d)
		return;
	d->seen = true;
	if (!domain_look(d, hv_now(), info, hv->calls->times.rest) || !d->adopted)
		return;
	/* What one loses by dying nobody wished it to have less. */
	if (!(d->flags & XEN_DOMINF_dying))
		tell(hv, d, HV_EVENT_BALLOON, domain_actual_kib(d) * 1024);
}

/* All domains, from one hypercall. */
static int look_at_all(struct hv *hv)
{
	struct domain *d, *next;
	int r;

	pthread_mutex_lock(&hv->lock);
	HASH_ITER (hh, hv->domains, d, next)
		d->seen = false;
	r = xen_for_each_info(hv, hv->link.xc, hv->infos, look);
	HASH_ITER (hh, hv->domains, d, next)
		if (r == 0 && !d->seen && !d->gone_at)
			gone(hv, d);
	pthread_mutex_unlock(&hv->lock);
	return r;
}

/* ---- adopting: what the store says; the lock is not held over its calls ---- */

static uint64_t read_kib(struct hv *hv, uint32_t domid, const char *key)
{
	char path[STORE_PATH];
	uint64_t kib = 0;

	store_domain_path(path, domid, key);
	if (store_read_number(&hv->link.store, XBT_NULL, path, &kib) < 0 || kib > DOMAIN_MOST_KIB)
		return 0;
	return kib;
}

static int watch_target(struct hv *hv, const struct domain *copy)
{
	char path[STORE_PATH];

	store_domain_path(path, copy->domid, "memory/target");
	errno = 0;
	if (!hv->watched[copy->domid] && !hv->calls->xs_watch(hv->link.store.xs, path, "t"))
		return errno ? -errno : -EIO;
	hv->watched[copy->domid] = true;
	return 0;
}

/* Those of domains that have gone. */
static void unwatch_gone(struct hv *hv)
{
	char path[STORE_PATH];

	for (uint32_t domid = 0; domid < XEN_DOMAINS_MAX; domid++) {
		bool there;

		if (!hv->watched[domid])
			continue;
		pthread_mutex_lock(&hv->lock);
		there = hv->by_domid[domid];
		pthread_mutex_unlock(&hv->lock);
		if (there)
			continue;
		store_domain_path(path, domid, "memory/target");
		hv->calls->xs_unwatch(hv->link.store.xs, path, "t");
		hv->watched[domid] = false;
	}
}

/* Of a copy, what the store says of a domain that was found. False: it is not ready. */
static int read_new(struct hv *hv, struct domain *copy)
{
	char path[STORE_PATH];
	uint64_t offset, feature = 0;
	int r;

	store_domain_path(path, copy->domid, "memory/target");
	r = store_read_number(&hv->link.store, XBT_NULL, path, &copy->stored_kib);
	if (r < 0)
		return r;
	store_domain_path(path, copy->domid, "name");
	r = store_read(&hv->link.store, XBT_NULL, path, &copy->name);
	if (r < 0)
		return r;
	if (!*copy->name || strlen(copy->name) > HV_NAME_MAX)
		return -EBADMSG;
	copy->static_max_kib = read_kib(hv, copy->domid, "memory/static-max");
	offset = read_kib(hv, copy->domid, "memory/memory-offset");
	copy->base_kib = offset ? offset : read_kib(hv, copy->domid, "memory/videoram");
	if (copy->base_kib > DOMAIN_SLACK_MOST_KIB)
		copy->base_kib = 0;
	store_domain_path(path, copy->domid, "control/feature-balloon");
	if (store_read_number(&hv->link.store, XBT_NULL, path, &feature) == 0 && feature == 1)
		copy->driver = true;
	r = xen_read_record(hv, &hv->link, copy);
	return r < 0 ? r : watch_target(hv, copy);
}

/* Lock held: what was read, into the table. */
static void adopt(struct hv *hv, struct domain *d, struct domain *copy)
{
	uint64_t kib = copy->stored_kib;

	free(d->name);
	d->name = copy->name;
	copy->name = NULL;
	d->static_max_kib = copy->static_max_kib;
	d->base_kib = copy->base_kib;
	d->ceiling_kib = copy->ceiling_kib;
	d->driver = copy->driver;
	d->slack_kib = copy->slack_kib;
	d->slack_known = copy->slack_known;
	d->ours = copy->ours;
	d->recorded_kib = copy->recorded_kib;
	hv->lives++;
	xen_agents_wake(hv);
	domain_told(d, kib);
	tell(hv, d, HV_EVENT_CHANGED, 0);
}

/* -ENOTCONN and the like: xenstored is gone. */
static int look_at_new(struct hv *hv, const struct hv_uuid *uuid, uint64_t creation)
{
	struct domain copy, *d;
	int r;

	pthread_mutex_lock(&hv->lock);
	d = xen_find_any(hv, uuid);
	if (!d || d->creation != creation) {
		pthread_mutex_unlock(&hv->lock);
		return 0;
	}
	copy = *d;
	pthread_mutex_unlock(&hv->lock);
	copy.name = NULL;
	r = read_new(hv, &copy);
	pthread_mutex_lock(&hv->lock);
	d = xen_find_any(hv, uuid);
	if (d && d->creation == creation) {
		if (r == 0)
			adopt(hv, d, &copy);
		else if (r == -ENOENT) /* what else fails is read again in the next round */
			d->ignored_until = hv_now() + IGNORE_US;
	}
	pthread_mutex_unlock(&hv->lock);
	free(copy.name);
	return store_lost(r) ? r : 0;
}

/* What memory/target says now. With hv->telling. */
static int read_told(struct hv *hv, const struct domain *copy)
{
	char path[STORE_PATH];
	struct domain *d;
	uint64_t kib;
	int r;

	store_domain_path(path, copy->domid, "memory/target");
	r = store_read_number(&hv->link.store, XBT_NULL, path, &kib);
	if (r < 0)
		return store_lost(r) ? r : 0;
	pthread_mutex_lock(&hv->lock);
	d = xen_find_any(hv, &copy->uuid);
	if (d && d->creation == copy->creation && domain_told(d, kib))
		tell(hv, d, HV_EVENT_TOLD, d->words);
	pthread_mutex_unlock(&hv->lock);
	return 0;
}

static int read_target(struct hv *hv, const struct domain *copy)
{
	int r;

	pthread_mutex_lock(&hv->telling);
	r = read_told(hv, copy);
	pthread_mutex_unlock(&hv->telling);
	return r;
}

static int read_name(struct hv *hv, const struct domain *copy)
{
	char path[STORE_PATH], *name = NULL;
	struct domain *d;
	int r;

	store_domain_path(path, copy->domid, "name");
	r = store_read(&hv->link.store, XBT_NULL, path, &name);
	if (r < 0)
		return store_lost(r) ? r : 0;
	pthread_mutex_lock(&hv->lock);
	d = xen_find_any(hv, &copy->uuid);
	if (d && d->creation == copy->creation && d->name && *name && strlen(name) <= HV_NAME_MAX &&
		strcmp(name, d->name) != 0) {
		free(d->name);
		d->name = name;
		name = NULL;
	}
	pthread_mutex_unlock(&hv->lock);
	free(name);
	return 0;
}

/* Copies, so that the lock is not held over calls. -ENOMEM. */
static int copy_all(struct hv *hv, struct domain **ret_copies, size_t *ret_nr)
{
	struct domain *copies, *d, *next;
	size_t nr = 0;

	pthread_mutex_lock(&hv->lock);
	copies = calloc(HASH_COUNT(hv->domains) + 1, sizeof(*copies));
	HASH_ITER (hh, hv->domains, d, next)
		if (copies)
			copies[nr++] = *d;
	pthread_mutex_unlock(&hv->lock);
	*ret_copies = copies;
	*ret_nr = nr;
	return copies ? 0 : -ENOMEM;
}

/* ---- what is due ---- */

/* With hv->telling. */
static int do_deed(struct hv *hv, const struct hv_uuid *uuid)
{
	uint64_t now = hv_now(), kib = 0;
	enum domain_deed deed = DOMAIN_NOTHING;
	struct domain copy, *d;
	int r = 0;

	pthread_mutex_lock(&hv->lock);
	d = xen_find_any(hv, uuid);
	if (d)
		deed = domain_due(d, now, &hv->calls->times, &kib);
	if (deed == DOMAIN_NOTHING) {
		pthread_mutex_unlock(&hv->lock);
		return 0;
	}
	copy = *d;
	pthread_mutex_unlock(&hv->lock);
	if (deed == DOMAIN_MAX)
		hv->calls->domain_setmaxmem(hv->link.xc, copy.domid, kib);
	else
		r = xen_write_target(hv, &hv->link, &copy, kib);
	pthread_mutex_lock(&hv->lock);
	d = xen_find_any(hv, uuid);
	if (d && d->creation == copy.creation && r == 0)
		domain_wrote(d, now, &hv->calls->times, deed, kib);
	else if (d && d->creation == copy.creation && store_lost(r))
		domain_doubt(d, kib, copy.goal_kib, copy.ceiling_kib);
	pthread_mutex_unlock(&hv->lock);
	return store_lost(r) ? r : 0;
}

static int do_what_is_due(struct hv *hv, const struct hv_uuid *uuid)
{
	int r;

	pthread_mutex_lock(&hv->telling);
	r = do_deed(hv, uuid);
	pthread_mutex_unlock(&hv->telling);
	return r;
}

/* Once: a driver that was seen need not be looked for after a restart. */
static int record_driver(struct hv *hv, const struct domain *copy)
{
	char path[STORE_PATH];
	uint64_t domid, seen;
	int r;

	store_own_path(path, &copy->uuid, "domid");
	r = store_read_number(&hv->link.store, XBT_NULL, path, &domid);
	if (r < 0 || domid != copy->domid)
		return store_lost(r) ? r : 0;
	store_own_path(path, &copy->uuid, "driver");
	if (store_read_number(&hv->link.store, XBT_NULL, path, &seen) == 0)
		return 0;
	r = store_write_number(&hv->link.store, XBT_NULL, path, 1);
	return store_lost(r) ? r : 0;
}

/* New ones are read, what is due is done. rescan: what watches should have told, too. */
static int see_to_all(struct hv *hv, bool rescan)
{
	uint64_t now = hv_now();
	struct domain *copies;
	size_t nr;
	int r;

	r = copy_all(hv, &copies, &nr);
	for (size_t i = 0; r == 0 && i < nr; i++) {
		const struct domain *copy = &copies[i];

		if (copy->gone_at)
			continue;
		if (!copy->adopted && now >= copy->ignored_until &&
			!(copy->flags & XEN_DOMINF_dying))
			r = look_at_new(hv, &copy->uuid, copy->creation);
		else if (copy->adopted && rescan)
			r = read_target(hv, copy);
		if (r == 0 && copy->adopted && rescan && copy->driver)
			r = record_driver(hv, copy);
		if (r == 0)
			r = do_what_is_due(hv, &copy->uuid);
	}
	free(copies);
	return r == -ENOMEM ? 0 : r;
}

/* ---- what the dead leave ---- */

/* Knobs stay a while for one that is rebooting; what else was noted goes at once. */
static int clear_up(struct hv *hv, const struct hv_uuid *uuid, bool all)
{
	char path[STORE_PATH];
	int r;

	store_own_path(path, uuid, NULL);
	r = all ? store_remove(&hv->link.store, XBT_NULL, path) : xen_remove_state(&hv->link, uuid);
	return store_lost(r) ? r : 0;
}

/* Domains that have gone: at once their state, later their knobs, and then they are forgotten. */
static int clear_up_after(struct hv *hv, const struct domain *copy, uint64_t now)
{
	bool all = now - copy->gone_at >= hv->calls->times.forget;
	struct domain *d;
	int r = 0;

	if (copy->adopted || all)
		r = clear_up(hv, &copy->uuid, all);
	if (r < 0)
		return r;
	pthread_mutex_lock(&hv->lock);
	d = xen_find_any(hv, &copy->uuid);
	if (d && d->creation == copy->creation && d->gone_at) {
		d->adopted = false; /* its state is cleared up */
		if (all)
			xen_forget(hv, d);
	}
	pthread_mutex_unlock(&hv->lock);
	return 0;
}

/* Folders that nobody in the table has: of an earlier run's. */
static int find_leftovers(struct hv *hv)
{
	unsigned int nr = 0;
	char **names;

	errno = 0;
	names = hv->calls->xs_directory(hv->link.store.xs, XBT_NULL, STORE_ROOT, &nr);
	if (!names)
		return errno && store_lost(-errno) ? -errno : 0;
	pthread_mutex_lock(&hv->lock);
	for (unsigned int i = 0, found = 0; i < nr && found < LEFTOVERS_AT_ONCE; i++) {
		struct hv_uuid uuid;
		struct domain *d;

		if (hv_uuid_parse(names[i], &uuid) < 0 || xen_find_any(hv, &uuid))
			continue;
		d = add(hv, &uuid);
		if (d) {
			d->adopted = true; /* it has left something */
			d->gone_at = hv_now();
			d->domid = XEN_DOMAINS_MAX - 1;
			found++;
		}
	}
	pthread_mutex_unlock(&hv->lock);
	free(names);
	return 0;
}

static int clear_up_all(struct hv *hv)
{
	struct domain *copies;
	int r = find_leftovers(hv);
	uint64_t now = hv_now(); /* after which none of those has gone */
	size_t nr;

	if (r < 0)
		return r;
	r = copy_all(hv, &copies, &nr);
	for (size_t i = 0; r == 0 && i < nr; i++)
		if (copies[i].gone_at)
			r = clear_up_after(hv, &copies[i], now);
	free(copies);
	return r == -ENOMEM ? 0 : r;
}

/* ---- listing ---- */

/* One that comes in by migration has a name that says so. */
static bool is_incoming(const struct domain *d)
{
	static const char end[] = "--incoming";
	size_t length = strlen(d->name);

	return length > sizeof(end) - 1 && !strcmp(d->name + length - (sizeof(end) - 1), end);
}

/* Lock held. -ENOMEM: no list, for one that others are missing from says that they have gone. */
static int put_listed(struct hv *hv, struct hv_event *event)
{
	struct domain *d, *next;

	event->listed.vms = calloc(HASH_COUNT(hv->domains) + 1, sizeof(*event->listed.vms));
	if (!event->listed.vms)
		return -ENOMEM;
	HASH_ITER (hh, hv->domains, d, next) {
		struct hv_listed *vm = &event->listed.vms[event->listed.nr];

		if (!d->adopted || d->gone_at)
			continue;
		vm->uuid = d->uuid;
		vm->state = domain_state(d);
		if (is_incoming(d)) {
			vm->state = HV_STARTING;
			vm->job = HV_JOB_MIGRATION;
		}
		vm->name = strdup(d->name);
		if (!vm->name)
			return -ENOMEM;
		event->listed.nr++;
	}
	return 0;
}

static int rescan(struct hv *hv)
{
	struct domain *copies = NULL;
	size_t nr = 0;
	int r;

	r = look_at_all(hv);
	if (r == 0)
		r = see_to_all(hv, true);
	if (r == 0)
		r = copy_all(hv, &copies, &nr);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < nr; i++)
		if (copies[i].adopted && !copies[i].gone_at)
			r = read_name(hv, &copies[i]);
	free(copies);
	if (r == 0)
		r = clear_up_all(hv);
	if (r == 0)
		unwatch_gone(hv);
	hv->rescan_at = hv_now() + hv->calls->times.rescan;
	return r;
}

static void list(struct hv *hv, struct hv_event *event)
{
	int r = rescan(hv);

	if (r == 0) {
		pthread_mutex_lock(&hv->lock);
		r = put_listed(hv, event);
		pthread_mutex_unlock(&hv->lock);
	}
	if (r < 0) {
		hv_listed_clear(event);
		hv_event_fail(event, r, "the domains cannot be listed");
	}
}

/* ---- the connection ---- */

/* Watches of the old connection are gone with it. */
static void forget_watches(struct hv *hv)
{
	memset(hv->watched, 0, XEN_DOMAINS_MAX * sizeof(*hv->watched));
}

static int watch_all(struct hv *hv)
{
	static const char *const paths[] = { introduced, released, STORE_ROOT };
	struct domain *copies;
	size_t nr;
	int r;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (!hv->calls->xs_watch(hv->link.store.xs, paths[i], "r"))
			return -ENOTCONN;
	r = copy_all(hv, &copies, &nr);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < nr; i++)
		if (!copies[i].gone_at && copies[i].adopted)
			r = watch_target(hv, &copies[i]);
	free(copies);
	return r;
}

static void tell_connection(struct hv *hv, enum hv_event_type type, int error, const char *message)
{
	struct hv_event event = { .type = type, .error = error };

	event.message = message ? strdup(message) : NULL;
	hv_queue_tell(&hv->queue, &event);
}

static void disconnect(struct hv *hv, const char *why)
{
	pthread_mutex_lock(&hv->lock);
	/* With the lock held, so that no UP of the next connection overtakes it. */
	if (hv->connected && !hv->stopping)
		tell_connection(hv, HV_EVENT_DOWN, -ENOTCONN, why);
	hv->connected = false;
	xen_agents_wake(hv);
	pthread_mutex_unlock(&hv->lock);
	xen_link_close(&hv->link, hv->calls);
	forget_watches(hv);
}

/* told: the failure was told already. */
static bool connect_control(struct hv *hv, bool *told)
{
	const char *why = "xenstored cannot be reached (xenstore's socket)";
	int r = xen_link_open(&hv->link, hv->calls, hv->generation + 1);

	if (r == 0)
		r = watch_all(hv);
	if (r == 0)
		r = rescan(hv);
	if (r < 0) {
		if (!hv->link.xc)
			why = "the hypervisor cannot be reached: this is no dom0 of a Xen host, or "
			      "not for this user";
		if (!*told)
			tell_connection(hv, HV_EVENT_DOWN, -ENOTCONN, why);
		*told = true;
		xen_link_close(&hv->link, hv->calls);
		forget_watches(hv);
		return false;
	}
	*told = false;
	pthread_mutex_lock(&hv->lock);
	hv->generation++;
	hv->connected = true;
	xen_agents_wake(hv);
	tell_connection(hv, HV_EVENT_UP, 0, NULL);
	pthread_mutex_unlock(&hv->lock);
	return true;
}

/* ---- rounds ---- */

/* A knob that somebody wrote beside us: "/local/domain/0/ballast/UUID/soft-limit". */
static void knob_changed(struct hv *hv, const char *path)
{
	char text[HV_UUID_TEXT];
	struct hv_uuid uuid;
	struct domain *d;

	if (strncmp(path, STORE_ROOT "/", sizeof(STORE_ROOT)) != 0)
		return;
	snprintf(text, sizeof(text), "%.36s", path + sizeof(STORE_ROOT));
	/* A note that nobody but us has a use for; others are written once. */
	if (hv_uuid_parse(text, &uuid) < 0 || strstr(path, "/goal"))
		return;
	pthread_mutex_lock(&hv->lock);
	d = xen_find(hv, &uuid);
	if (d)
		tell(hv, d, HV_EVENT_CHANGED, 0);
	pthread_mutex_unlock(&hv->lock);
}

static int target_changed(struct hv *hv, const char *path)
{
	struct domain copy = { 0 }, *d;
	unsigned int domid;

	if (sscanf(path, "/local/domain/%u/memory/target", &domid) != 1 || domid >= XEN_DOMAINS_MAX)
		return 0;
	pthread_mutex_lock(&hv->lock);
	d = hv->by_domid[domid];
	if (d)
		copy = *d;
	pthread_mutex_unlock(&hv->lock);
	return copy.adopted ? read_target(hv, &copy) : 0;
}

static int take_watches(struct hv *hv)
{
	char **watch;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < WATCHES_AT_ONCE; i++) {
		errno = 0;
		watch = hv->calls->xs_check_watch(hv->link.store.xs);
		if (!watch)
			return errno && errno != EAGAIN && store_lost(-errno) ? -errno : 0;
		if (watch[XS_WATCH_PATH][0] == '@')
			hv->rescan_at = 0;
		else if (!strncmp(watch[XS_WATCH_PATH], STORE_ROOT, sizeof(STORE_ROOT) - 1))
			knob_changed(hv, watch[XS_WATCH_PATH]);
		else
			r = target_changed(hv, watch[XS_WATCH_PATH]);
		free(watch);
	}
	return r;
}

/* Lock held, given up meanwhile. */
static int perform(struct hv *hv, struct hv_task *task)
{
	struct hv_event *event = &task->item.event;
	bool connected = hv->connected;
	int r = 0;

	pthread_mutex_unlock(&hv->lock);
	if (!connected) {
		hv_event_fail(event, -ENOTCONN, "not connected to xenstored");
	} else if (task->call.type == HV_LIST) {
		list(hv, event);
	} else {
		xen_describe(hv, &hv->link, task);
	}
	if (connected && store_lost(event->error)) {
		r = event->error;
		event->error = -ENOTCONN;
	}
	hv_task_answer(&hv->queue, task);
	pthread_mutex_lock(&hv->lock);
	return r;
}

static int perform_all(struct hv *hv)
{
	struct hv_task *task;
	int r = 0;

	pthread_mutex_lock(&hv->lock);
	while (!hv->stopping && (task = hv_tasks_take(&hv->listing))) {
		int failed = perform(hv, task);

		r = r == 0 ? failed : r;
	}
	pthread_mutex_unlock(&hv->lock);
	return r;
}

static void wait_for_more(struct hv *hv, uint64_t us)
{
	struct pollfd fds[] = {
		{ .fd = hv->wake_fd, .events = POLLIN },
		{ .fd = hv->link.store.xs ? hv->calls->xs_fileno(hv->link.store.xs) : -1,
			.events = POLLIN },
	};
	uint64_t count;
	ssize_t n;

	poll(fds, 2, (int)((us + 999) / 1000));
	n = read(hv->wake_fd, &count, sizeof(count));
	(void)n;
}

/* While connected. */
static int one_round(struct hv *hv)
{
	int r = take_watches(hv);

	if (r == 0 && hv_now() >= hv->rescan_at)
		r = rescan(hv);
	if (r == 0)
		r = look_at_all(hv);
	if (r == 0)
		r = see_to_all(hv, false);
	if (r == 0)
		r = perform_all(hv);
	return r;
}

static bool is_stopping(struct hv *hv)
{
	bool stopping;

	pthread_mutex_lock(&hv->lock);
	stopping = hv->stopping;
	pthread_mutex_unlock(&hv->lock);
	return stopping;
}

void *xen_control_thread(void *arg)
{
	struct hv *hv = arg;
	const struct xen_times *times = &hv->calls->times;
	uint64_t pause = times->pause_first, at = 0;
	bool up = false, told = false;

	while (!is_stopping(hv)) {
		if (up && one_round(hv) < 0) {
			disconnect(hv, "the connection to xenstored is lost");
			up = false;
			at = hv_now() + times->pause_first;
			pause = times->pause_first * 2;
		} else if (!up && hv_now() >= at) {
			up = connect_control(hv, &told);
			if (up)
				continue;
			at = hv_now() + pause;
			pause = pause * 2 < times->pause_most ? pause * 2 : times->pause_most;
		}
		if (!up)
			perform_all(hv);
		wait_for_more(hv, up ? times->poll : times->pause_first);
	}
	xen_link_close(&hv->link, hv->calls);
	xen_put(hv);
	return NULL;
}
