/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each call, step by step; see backend.h. */
#include <config.h>

#include "hv/xen/backend.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hv/knobs_text.h"

/* What of the knobs' folder is looked at: ballast's own keys and some that nobody knows. */
#define KEYS_MAX 32

/* Keys of ballast's that are no knobs. */
static const char *const state_keys[] = { "domid", "ceiling", "slack", "driver", "goal" };
#define NR_STATE_KEYS (sizeof(state_keys) / sizeof(state_keys[0]))

static bool is_state(const char *key)
{
	for (size_t i = 0; i < NR_STATE_KEYS; i++)
		if (!strcmp(key, state_keys[i]))
			return true;
	return false;
}

static void failed(struct hv_event *event, int error, const char *what)
{
	event->error = error;
	free(event->message);
	if (asprintf(&event->message, "%s: %s", what,
		    error == -EBUSY    ? "others keep writing the same keys"
		    : error == -ESTALE ? "somebody else has just set it; that stands"
				       : strerror(-error)) < 0)
		event->message = NULL;
}

bool xen_lives(struct hv *hv, struct xen_link *link, uint32_t domid, xc_domaininfo_t *ret_info)
{
	xc_domaininfo_t info;

	if (hv->calls->domain_getinfolist(link->xc, domid, 1, &info) != 1 || info.domain != domid ||
		(info.flags & XEN_DOMINF_dying))
		return false;
	if (ret_info)
		*ret_info = info;
	return true;
}

/* ---- records ---- */

static uint64_t record_number(struct xen_link *link, const struct domain *d, const char *key)
{
	char path[STORE_PATH];
	uint64_t number = 0;

	store_own_path(path, &d->uuid, key);
	return store_read_number(&link->store, XBT_NULL, path, &number) == 0 ? number : 0;
}

/* With nothing left in it the folder goes too. */
static int tidy(struct store *store, xs_transaction_t t, const struct hv_uuid *uuid)
{
	char path[STORE_PATH], **keys;
	unsigned int nr = 0;

	store_own_path(path, uuid, NULL);
	keys = store->calls->xs_directory(store->xs, t, path, &nr);
	free(keys);
	return keys && nr == 0 ? store_remove(store, t, path) : 0;
}

static int remove_state(struct store *store, xs_transaction_t t, void *ctx)
{
	const struct hv_uuid *uuid = ctx;
	char path[STORE_PATH];
	int r = 0;

	for (size_t i = 0; i < NR_STATE_KEYS && r == 0; i++) {
		store_own_path(path, uuid, state_keys[i]);
		r = store_remove(store, t, path);
	}
	return r == 0 ? tidy(store, t, uuid) : r;
}

int xen_remove_state(struct xen_link *link, const struct hv_uuid *uuid)
{
	return store_transact(&link->store, remove_state, (void *)uuid);
}

int xen_read_record(struct hv *hv, struct xen_link *link, struct domain *d)
{
	char path[STORE_PATH];
	uint64_t domid;
	int r;

	store_own_path(path, &d->uuid, "domid");
	r = store_read_number(&link->store, XBT_NULL, path, &domid);
	if (r < 0)
		return store_lost(r) ? r : 0;
	if (domid != d->domid) { /* of an earlier life */
		r = xen_remove_state(link, &d->uuid);
		return store_lost(r) ? r : 0;
	}
	d->ceiling_kib = record_number(link, d, "ceiling");
	d->driver = record_number(link, d, "driver") > 0;
	store_own_path(path, &d->uuid, "slack");
	d->slack_known = d->ours = d->ceiling_kib > 0 && store_read_number(&link->store, XBT_NULL,
								 path, &d->slack_kib) == 0;
	domain_recorded_goal(d, record_number(link, d, "goal"));
	return 0;
}

/* What is recorded is this domain's alone: of one that had its uuid before it goes. */
static int begin_record(struct store *store, xs_transaction_t t, const struct domain *d)
{
	char path[STORE_PATH];
	uint64_t domid = UINT64_MAX;
	int r;

	store_own_path(path, &d->uuid, "domid");
	r = store_read_number(store, t, path, &domid);
	if (r == 0 && domid == d->domid)
		return 0;
	if (r < 0 && r != -ENOENT && r != -EBADMSG)
		return r; /* whose it is is not known: nothing is removed */
	for (size_t i = 0; i < NR_STATE_KEYS; i++) {
		store_own_path(path, &d->uuid, state_keys[i]);
		r = store_remove(store, t, path);
		if (r < 0)
			return r;
	}
	store_own_path(path, &d->uuid, "domid");
	return store_write_number(store, t, path, d->domid);
}

static int record(struct store *store, xs_transaction_t t, const struct domain *d, const char *key,
	uint64_t number)
{
	char path[STORE_PATH];
	uint64_t old;

	store_own_path(path, &d->uuid, key);
	if (store_read_number(store, t, path, &old) == 0 && old == number)
		return 0;
	return store_write_number(store, t, path, number);
}

/* ---- targets ---- */

/* What a transaction is to write. The domain is a copy. */
struct writing {
	struct hv *hv;
	struct xen_link *link;
	const struct domain *domain;
	uint64_t kib;
	uint64_t words;	      /* of somebody else's, that were known when it was decided */
	bool nudge;	      /* no target of its own: the goal stays */
	uint64_t ceiling_kib; /* 0: not recorded */
	uint64_t ret_theirs;  /* -ESTALE: what it says instead; 0: no number */
};

/* Who adopts it takes the goal for what was meant, not the page beside it. */
static int write_goal(struct store *store, xs_transaction_t t, const struct writing *w)
{
	char path[STORE_PATH];
	int r;

	if (!w->nudge || w->kib == w->domain->goal_kib) {
		store_own_path(path, &w->domain->uuid, "goal");
		return store_remove(store, t, path);
	}
	r = begin_record(store, t, w->domain);
	return r == 0 ? record(store, t, w->domain, "goal", w->domain->goal_kib) : r;
}

/* Whether memory/target is what we know, or may have written ourselves. */
static bool known(const struct domain *d, uint64_t kib)
{
	return kib == d->stored_kib || (d->doubt_kib && kib == d->doubt_kib);
}

/*
 * A domain's path is written only where it is there, says what we know, and the hypervisor has the
 * domain still: one that goes meanwhile takes its path along, and the transaction fails.
 */
static int write_target(struct store *store, xs_transaction_t t, void *ctx)
{
	struct writing *w = ctx;
	char path[STORE_PATH];
	uint64_t old;
	int r;

	store_domain_path(path, w->domain->domid, "memory/target");
	r = store_read_number(store, t, path, &old);
	if (r < 0 && r != -EBADMSG)
		return r;
	w->ret_theirs = r < 0 ? 0 : old;
	/* What is no number is nobody's word: a target may take its place. */
	if (r < 0 ? w->nudge : !known(w->domain, old) || w->words != w->domain->words)
		return -ESTALE;
	if (w->ceiling_kib) {
		r = begin_record(store, t, w->domain);
		if (r == 0)
			r = record(store, t, w->domain, "slack", w->domain->slack_kib);
		if (r == 0)
			r = record(store, t, w->domain, "ceiling", w->ceiling_kib);
		if (r < 0)
			return r;
	}
	r = write_goal(store, t, w);
	if (r == 0)
		r = store_write_number(store, t, path, w->kib);
	if (r == 0 && !xen_lives(w->hv, w->link, w->domain->domid, NULL))
		r = -ENOENT;
	return r;
}

int xen_write_target(
	struct hv *hv, struct xen_link *link, const struct domain *domain, uint64_t kib)
{
	struct writing w = { .hv = hv,
		.link = link,
		.domain = domain,
		.kib = kib,
		.nudge = true,
		.words = domain->words };

	return store_transact(&link->store, write_target, &w);
}

/* A copy of what the table says. False: -ENOENT is told. */
static bool look_up(struct hv *hv, struct hv_event *event, struct domain *ret_domain)
{
	struct domain *domain;

	pthread_mutex_lock(&hv->lock);
	domain = xen_find(hv, &event->uuid);
	if (domain)
		*ret_domain = *domain;
	pthread_mutex_unlock(&hv->lock);
	if (!domain)
		hv_event_fail(event, -ENOENT, "there is no such domain");
	ret_domain->name = NULL; /* the table's */
	return domain;
}

/* Lock held: the same domain as the copy; NULL: it has gone, or is another by now. */
static struct domain *same(struct hv *hv, const struct domain *copy)
{
	struct domain *domain = xen_find(hv, &copy->uuid);

	return domain && domain->creation == copy->creation ? domain : NULL;
}

/* Of whole pages. */
static uint64_t pages_kib(uint64_t bytes)
{
	return bytes / 1024 / DOMAIN_PAGE_KIB * DOMAIN_PAGE_KIB;
}

/* Before it may have more; what it has too much goes once it gave: see domain.c. */
static int raise_max(struct hv *hv, struct xen_link *link, const struct domain *d, uint64_t kib)
{
	uint64_t max = domain_max_kib(d, kib);

	if (d->max_kib >= max)
		return 0;
	return hv->calls->domain_setmaxmem(link->xc, d->domid, max) < 0 ? -errno : 0;
}

/* dom0 keeps its minimum whoever decided otherwise: all guests live by it. */
static uint64_t bounded(const struct hv *hv, const struct domain *d, uint64_t kib)
{
	uint64_t least = d->domid == 0 ? pages_kib(hv->dom0_min + DOMAIN_PAGE_KIB * 1024 - 1) : 0;

	kib = kib > least ? kib : least;
	return kib < domain_most_kib(d) ? kib : domain_most_kib(d);
}

/* With hv->telling. *d becomes what the domain is. */
static void tell_target(struct hv *hv, struct xen_link *link, struct hv_event *event,
	struct domain *d, struct writing *w)
{
	struct domain *domain;
	xc_domaininfo_t info;
	int r;

	if (!look_up(hv, event, d))
		return;
	if (!xen_lives(hv, link, d->domid, &info)) {
		hv_event_fail(event, -ENOENT, "the hypervisor has no such domain");
		return;
	}
	d->max_kib = info.max_pages * DOMAIN_PAGE_KIB;
	w->kib = bounded(hv, d, w->kib);
	r = raise_max(hv, link, d, w->kib);
	if (r < 0) {
		failed(event, r, "raising its maximum");
		return;
	}
	r = store_transact(&link->store, write_target, w);
	pthread_mutex_lock(&hv->lock);
	domain = same(hv, d);
	if (domain && r == -ESTALE) { /* which is told with the answer */
		domain_told(domain, w->ret_theirs);
		domain->words_said = domain->words;
	}
	if (domain && r == 0) {
		domain_set(domain, hv_now(), w->kib, &hv->calls->times);
		domain->ceiling_kib = w->ceiling_kib;
	}
	if (domain && store_lost(r))
		domain_doubt(domain, w->kib, w->kib, w->ceiling_kib);
	pthread_mutex_unlock(&hv->lock);
	if (r < 0)
		failed(event, r, "writing its memory/target");
}

static void set_target(struct hv *hv, struct xen_link *link, struct hv_task *task)
{
	const struct hv_call *call = &task->call;
	struct domain d;
	struct writing w = { .hv = hv,
		.link = link,
		.domain = &d,
		.words = task->mark,
		.kib = pages_kib(call->target),
		.ceiling_kib = call->ceiling / 1024 };

	if (call->target == 0 || call->target == HV_UNLIMITED || call->ceiling == HV_UNLIMITED) {
		hv_event_fail(&task->item.event, -EINVAL, "no target to set");
		return;
	}
	pthread_mutex_lock(&hv->telling);
	tell_target(hv, link, &task->item.event, &d, &w);
	pthread_mutex_unlock(&hv->telling);
}

/* ---- statistics ---- */

/* Lock held. It is lost where there is no memory for it. */
static void warn(const struct domain *d, struct hv_event *event)
{
	char uuid[HV_UUID_TEXT];

	hv_uuid_format(&d->uuid, uuid);
	if (asprintf(&event->message,
		    "%s (%s) is populated on demand, and no balloon driver is seen in it: it is "
		    "crashed once it uses more than %" PRIu64 " of its %" PRIu64
		    " MiB; install a driver, or give it all of them with xl mem-set",
		    d->name, uuid, d->goal_kib / 1024, d->static_max_kib / 1024) < 0)
		event->message = NULL;
}

static void read_stats(struct hv *hv, struct xen_link *link, struct hv_event *event)
{
	struct domain d, *domain;
	xc_domaininfo_t info;

	if (!look_up(hv, event, &d))
		return;
	if (!xen_lives(hv, link, d.domid, &info)) {
		hv_event_fail(event, -ENOENT, "the hypervisor has no such domain");
		return;
	}
	pthread_mutex_lock(&hv->lock);
	domain = same(hv, &d);
	if (domain) {
		domain_look(domain, hv_now(), &info, hv->calls->times.rest);
		event->stats.known = HV_STAT_ACTUAL;
		event->stats.actual = domain_actual_kib(domain) * 1024;
		event->stats.job_known = true;
		if (domain->driver) {
			event->stats.known |= HV_STAT_LAST_UPDATE;
			event->stats.last_update = ++domain->updates;
		}
		if (domain_warns(domain, hv_now(), &hv->calls->times))
			warn(domain, event);
	}
	pthread_mutex_unlock(&hv->lock);
	if (!domain)
		hv_event_fail(event, -ENOENT, "there is no such domain");
}

/* Its driver is looked for, as nobody in the guest tells statistics. */
static void set_period(struct hv *hv, struct hv_event *event, const struct hv_call *call)
{
	struct domain *domain;

	pthread_mutex_lock(&hv->lock);
	domain = xen_find(hv, &event->uuid);
	if (domain)
		domain->period_s = call->period_s;
	pthread_mutex_unlock(&hv->lock);
	if (domain)
		xen_wake(hv);
	else
		hv_event_fail(event, -ENOENT, "there is no such domain");
}

/* ---- knobs ---- */

#define WHERE "xenstore " STORE_ROOT ": "

/* All that the store says of it. -ENOMEM. */
static int read_knobs(
	struct store *store, xs_transaction_t t, const struct hv_uuid *uuid, struct hv_info *info)
{
	char path[STORE_PATH], **keys;
	unsigned int nr = 0;
	int r = 0;

	store_own_path(path, uuid, NULL);
	errno = 0;
	keys = store->calls->xs_directory(store->xs, t, path, &nr);
	if (!keys)
		return errno == ENOENT || errno == 0 ? 0 : -errno;
	for (unsigned int i = 0; i < nr && i < KEYS_MAX && r == 0; i++) {
		char *text = NULL;

		if (is_state(keys[i]) || strlen(keys[i]) > HV_NAME_MAX / 2)
			continue;
		store_own_path(path, uuid, keys[i]);
		r = store_read(store, t, path, &text);
		if (r == 0)
			r = knobs_take(info, WHERE, keys[i], text);
		else if (r == -ENOENT || r == -EBADMSG)
			r = 0;
		free(text);
	}
	free(keys);
	return r;
}

struct changing {
	struct store *store;
	xs_transaction_t t;
	const struct hv_uuid *uuid;
	const struct hv_knobs_change *change;
};

static int write_knob(void *ctx, const char *name, const char *value)
{
	struct changing *c = ctx;
	char path[STORE_PATH];

	store_own_path(path, c->uuid, name);
	return value ? store_write(c->store, c->t, path, value)
		     : store_remove(c->store, c->t, path);
}

static int write_knobs(struct store *store, xs_transaction_t t, void *ctx)
{
	struct changing *c = ctx;
	struct hv_info info = { 0 };
	int r;

	c->t = t;
	r = knobs_write(c->change, write_knob, c);
	if (r == 0)
		r = read_knobs(store, t, c->uuid, &info);
	if (r == 0 && info.metadata.has_min && info.metadata.has_max &&
		info.metadata.min > info.metadata.max)
		r = -EINVAL;
	hv_info_clear(&info);
	return r == 0 ? tidy(store, t, c->uuid) : r;
}

static void change_knobs(
	struct hv *hv, struct xen_link *link, struct hv_event *event, const struct hv_call *call)
{
	struct changing c = { .store = &link->store, .uuid = &event->uuid, .change = call->change };
	struct domain d;
	int r;

	if (!look_up(hv, event, &d))
		return;
	r = store_transact(&link->store, write_knobs, &c);
	if (r == -EINVAL)
		hv_event_fail(event, r, "min would be over max");
	else if (r < 0)
		failed(event, r, "writing its knobs");
}

/* ---- descriptions ---- */

/* Those of a pool of its own are a group; "Pool-0" is everybody's. */
static void take_cpupool(struct xen_link *link, const struct domain *d, struct hv_info *info)
{
	char path[STORE_PATH], *name = NULL;

	if (d->cpupool == 0)
		return;
	snprintf(path, sizeof(path), "/local/pool/%" PRIu32 "/name", d->cpupool);
	if (store_read(&link->store, XBT_NULL, path, &name) < 0)
		return;
	if (asprintf(&info->partition, "/%s", name) < 0)
		info->partition = NULL;
	free(name);
}

static void take_dom0(struct hv *hv, const struct domain *d, struct hv_info *info)
{
	struct hv_knobs *knobs = &info->metadata;

	if (d->domid != 0)
		return;
	if (!knobs->has_min || knobs->min < hv->dom0_min)
		knobs->min = hv->dom0_min;
	knobs->has_min = true;
}

void xen_describe(struct hv *hv, struct xen_link *link, struct hv_task *task)
{
	struct hv_event *event = &task->item.event;
	struct hv_info info = { .uuid = event->uuid, .balloon = true };
	struct domain d, *domain;
	uint64_t maximum;
	int r;

	if (!look_up(hv, event, &d))
		return;
	r = read_knobs(&link->store, XBT_NULL, &d.uuid, &info);
	if (r < 0) {
		hv_info_clear(&info);
		failed(event, r, "reading its knobs");
		return;
	}
	take_dom0(hv, &d, &info);
	knobs_settle(&info, WHERE);
	maximum = d.static_max_kib ? d.static_max_kib : d.goal_kib;
	if (maximum < domain_actual_kib(&d) && !d.static_max_kib)
		maximum = domain_actual_kib(&d);
	info.maximum = maximum * 1024;
	info.ceiling = d.ceiling_kib * 1024;
	info.stats_period_s = d.period_s;
	take_cpupool(link, &d, &info);
	pthread_mutex_lock(&hv->lock);
	domain = same(hv, &d);
	if (domain) {
		domain->act = task->call.act;
		info.name = strdup(domain->name);
	}
	pthread_mutex_unlock(&hv->lock);
	if (!info.name) {
		hv_info_clear(&info);
		hv_event_fail(event, -ENOENT, "there is no such domain");
		return;
	}
	event->info = info;
}

void xen_perform(struct hv *hv, struct xen_link *link, struct hv_task *task)
{
	const struct hv_call *call = &task->call;
	struct hv_event *event = &task->item.event;

	switch (call->type) {
	case HV_STATS:
		read_stats(hv, link, event);
		break;
	case HV_PERIOD:
		set_period(hv, event, call);
		break;
	case HV_TARGET:
		set_target(hv, link, task);
		break;
	case HV_KNOBS:
		change_knobs(hv, link, event, call);
		break;
	case HV_ATTACH:
		hv_event_fail(event, -EOPNOTSUPP, "an agent on Xen needs no port");
		break;
	default:
		hv_event_fail(event, -EOPNOTSUPP, "Xen throttles no domain for its memory");
		break;
	}
}
