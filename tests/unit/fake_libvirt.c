/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A libvirt of our own; see fake_libvirt.h. */
#include <config.h>

#include "fake_libvirt.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hv/libvirt/domxml.h"

#define DOMAINS_MAX   64
#define CALLBACKS_MAX 32
#define TIMERS_MAX    64
#define EMITTED_MAX   8192
#define STATE_PARAMS  2

/* libvirt's handles, as this fake has them. */
struct fake_conn {
	bool dead;
	virConnectCloseFunc closed;
	void *closed_opaque;
	struct fake_conn *next;
};

struct callback {
	bool used;
	struct fake_conn *conn;
	int event;
	virConnectDomainEventGenericCallback cb;
	void *opaque;
	virFreeCallback ff;
};

struct timer {
	bool used, due;
	virEventTimeoutCallback cb;
	void *opaque;
};

struct emitted {
	int event, number; /* of libvirt's; of the domain */
	int type;
	const char *uri;
	unsigned long long kib;
	int broken; /* -1: no event, but connections that broke with that reason */
};

static struct {
	struct fake_domain domains[DOMAINS_MAX];
	int nr_domains;
	int fail[FAKE_NR];
	unsigned int fail_nth; /* of all calls that can fail; 0: none any more */
	unsigned int count[FAKE_NR];
	unsigned int nr_conns, nr_hanging;
	bool release;
	char changes[4096];
	struct fake_conn *conns;
	struct callback callbacks[CALLBACKS_MAX];
	struct timer timers[TIMERS_MAX];
	struct emitted emitted[EMITTED_MAX];
	unsigned int nr_emitted;
} fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Callbacks run with this: who unregisters waits for those that run, as libvirt does. */
static pthread_mutex_t dispatching = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t loop = PTHREAD_COND_INITIALIZER, hang = PTHREAD_COND_INITIALIZER;
static _Thread_local virError last_error;

/* ---- for tests ---- */

void fake_lock(void)
{
	pthread_mutex_lock(&lock);
}

void fake_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* Of a description here. */
#define XML_MAX 2048

/* Tests let one allocation fail: libvirt's own are not meant, and are tried twice. */
static void *get_zeroed(size_t nr, size_t size)
{
	void *p = calloc(nr, size);

	return p ? p : calloc(nr, size);
}

static char *get_copy(const char *text)
{
	char *copy = strdup(text);

	return copy ? copy : strdup(text);
}

void fake_reset(void)
{
	fake_lock();
	memset(&fake, 0, sizeof(fake));
	fake_unlock();
}

struct fake_domain *fake_add(const char *name)
{
	struct fake_domain *dom = &fake.domains[fake.nr_domains++];

	snprintf(dom->name, sizeof(dom->name), "%s", name);
	dom->state = VIR_DOMAIN_RUNNING;
	dom->persistent = true;
	return dom;
}

struct hv_uuid fake_uuid(const struct fake_domain *dom)
{
	return (struct hv_uuid){ .bytes = { [15] = (uint8_t)(dom - fake.domains) } };
}

void fake_fail(enum fake_call call, int code)
{
	fake_lock();
	fake.fail[call] = code;
	fake_unlock();
}

void fake_fail_nth(unsigned int nth)
{
	fake_lock();
	fake.fail_nth = nth;
	fake_unlock();
}

bool fake_failed_nth(void)
{
	bool did;

	fake_lock();
	did = fake.fail_nth == 0;
	fake.fail_nth = 0;
	fake_unlock();
	return did;
}

void fake_release(void)
{
	fake_lock();
	fake.release = true;
	pthread_cond_broadcast(&hang);
	fake_unlock();
}

static unsigned int locked(const unsigned int *value)
{
	unsigned int copy;

	fake_lock();
	copy = *value;
	fake_unlock();
	return copy;
}

unsigned int fake_nr_hanging(void)
{
	return locked(&fake.nr_hanging);
}

unsigned int fake_count(enum fake_call call)
{
	return locked(&fake.count[call]);
}

unsigned int fake_nr_connections(void)
{
	return locked(&fake.nr_conns);
}

const char *fake_changes(void)
{
	static char copy[sizeof(fake.changes)];

	fake_lock();
	memcpy(copy, fake.changes, sizeof(copy));
	fake_unlock();
	return copy;
}

static void emit(struct emitted what)
{
	fake_lock();
	if (fake.nr_emitted < EMITTED_MAX)
		fake.emitted[fake.nr_emitted++] = what;
	pthread_cond_broadcast(&loop);
	fake_unlock();
}

static int number_of(const struct fake_domain *dom)
{
	return (int)(dom - fake.domains);
}

void fake_emit_lifecycle(const struct fake_domain *dom)
{
	emit((struct emitted){
		.event = VIR_DOMAIN_EVENT_ID_LIFECYCLE, .number = number_of(dom), .broken = -1 });
}

void fake_emit_reboot(const struct fake_domain *dom)
{
	emit((struct emitted){
		.event = VIR_DOMAIN_EVENT_ID_REBOOT, .number = number_of(dom), .broken = -1 });
}

void fake_emit_balloon(const struct fake_domain *dom, unsigned long long kib)
{
	emit((struct emitted){ .event = VIR_DOMAIN_EVENT_ID_BALLOON_CHANGE,
		.number = number_of(dom),
		.kib = kib,
		.broken = -1 });
}

void fake_emit_metadata(const struct fake_domain *dom, int type, const char *uri)
{
	emit((struct emitted){ .event = VIR_DOMAIN_EVENT_ID_METADATA_CHANGE,
		.number = number_of(dom),
		.type = type,
		.uri = uri,
		.broken = -1 });
}

void fake_emit_job(const struct fake_domain *dom, int event)
{
	emit((struct emitted){ .event = event, .number = number_of(dom), .broken = -1 });
}

void fake_emit_device(const struct fake_domain *dom, bool added)
{
	emit((struct emitted){ .event = added ? VIR_DOMAIN_EVENT_ID_DEVICE_ADDED
					      : VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED,
		.number = number_of(dom),
		.broken = -1 });
}

void fake_break(int reason)
{
	fake_lock();
	for (struct fake_conn *conn = fake.conns; conn; conn = conn->next)
		conn->dead = true;
	fake_unlock();
	emit((struct emitted){ .broken = reason });
}

/* ---- the calls ---- */

static int failed(int code, const char *message)
{
	static _Thread_local char text[64];

	snprintf(text, sizeof(text), "%s", message);
	last_error = (virError){ .code = code, .message = text };
	return -1;
}

/* Lock held: counts, and -1 where the call is to fail. */
static int enter(enum fake_call call, const struct fake_conn *conn)
{
	fake.count[call]++;
	if (conn && conn->dead)
		return failed(VIR_ERR_INTERNAL_ERROR, "client socket is closed");
	if (fake.fail[call])
		return failed(fake.fail[call], "made up");
	if (fake.fail_nth && --fake.fail_nth == 0)
		return failed(VIR_ERR_INTERNAL_ERROR, "made up once");
	return 0;
}

static int call(enum fake_call which, const struct fake_conn *conn)
{
	int r;

	fake_lock();
	r = enter(which, conn);
	fake_unlock();
	return r;
}

/* What a virDomainPtr is here. */
struct handle {
	struct fake_conn *conn;
	struct fake_domain *dom;
};

static virDomainPtr handle_new(struct fake_conn *conn, int number)
{
	struct handle *h = get_zeroed(1, sizeof(*h));

	if (!h)
		abort();
	h->conn = conn;
	h->dom = &fake.domains[number];
	return (virDomainPtr)(void *)h;
}

static struct handle *handle(virDomainPtr dom)
{
	return (struct handle *)(void *)dom;
}

static struct fake_conn *connection(virConnectPtr conn)
{
	return (struct fake_conn *)(void *)conn;
}

static void __attribute__((format(printf, 1, 2))) changed(const char *fmt, ...)
{
	size_t length = strlen(fake.changes);
	va_list args;

	va_start(args, fmt);
	vsnprintf(fake.changes + length, sizeof(fake.changes) - length, fmt, args);
	va_end(args);
}

static virErrorPtr get_last_error(void)
{
	return last_error.code ? &last_error : NULL;
}

static void set_error_func(void *ctx, virErrorFunc handler)
{
}

static int register_default_impl(void)
{
	return 0;
}

static int add_timeout(int frequency, virEventTimeoutCallback cb, void *opaque, virFreeCallback ff)
{
	int timer = -1;

	fake_lock();
	for (int i = 0; timer < 0 && i < TIMERS_MAX; i++)
		if (!fake.timers[i].used) {
			fake.timers[i] = (struct timer){ .used = true, .cb = cb, .opaque = opaque };
			timer = i;
		}
	fake_unlock();
	return timer;
}

static void update_timeout(int timer, int frequency)
{
	fake_lock();
	fake.timers[timer].due = fake.timers[timer].used && frequency == 0;
	pthread_cond_broadcast(&loop);
	fake_unlock();
}

static int remove_timeout(int timer)
{
	fake_lock();
	fake.timers[timer].used = fake.timers[timer].due = false;
	fake_unlock();
	return 0;
}

static struct timer *due(int *ret_number)
{
	for (int i = 0; i < TIMERS_MAX; i++)
		if (fake.timers[i].due) {
			*ret_number = i;
			return &fake.timers[i];
		}
	return NULL;
}

static void call_back(
	const struct callback *c, virConnectPtr conn, virDomainPtr dom, const struct emitted *e)
{
	switch (e->event) {
	case VIR_DOMAIN_EVENT_ID_LIFECYCLE:
		((virConnectDomainEventCallback)(void *)c->cb)(conn, dom, 0, 0, c->opaque);
		break;
	case VIR_DOMAIN_EVENT_ID_BALLOON_CHANGE:
		((virConnectDomainEventBalloonChangeCallback)(void *)c->cb)(
			conn, dom, e->kib, c->opaque);
		break;
	case VIR_DOMAIN_EVENT_ID_METADATA_CHANGE:
		((virConnectDomainEventMetadataChangeCallback)(void *)c->cb)(
			conn, dom, e->type, e->uri, c->opaque);
		break;
	case VIR_DOMAIN_EVENT_ID_MIGRATION_ITERATION:
		((virConnectDomainEventMigrationIterationCallback)(void *)c->cb)(
			conn, dom, 1, c->opaque);
		break;
	case VIR_DOMAIN_EVENT_ID_JOB_COMPLETED:
		((virConnectDomainEventJobCompletedCallback)(void *)c->cb)(
			conn, dom, NULL, 0, c->opaque);
		break;
	case VIR_DOMAIN_EVENT_ID_BLOCK_JOB:
		((virConnectDomainEventBlockJobCallback)(void *)c->cb)(
			conn, dom, "vda", 0, 0, c->opaque);
		break;
	case VIR_DOMAIN_EVENT_ID_DEVICE_ADDED:
	case VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED:
		((virConnectDomainEventDeviceAddedCallback)(void *)c->cb)(
			conn, dom, "balloon0", c->opaque);
		break;
	default:
		c->cb(conn, dom, c->opaque);
		break;
	}
}

/* With `dispatching` held and the lock not. */
static void dispatch(const struct emitted *e)
{
	for (int i = 0; e->broken < 0 && i < CALLBACKS_MAX; i++) {
		struct callback c;
		virDomainPtr dom;

		fake_lock();
		c = fake.callbacks[i];
		c.used = c.used && c.event == e->event && !c.conn->dead;
		fake_unlock();
		if (!c.used)
			continue;
		dom = handle_new(c.conn, e->number);
		call_back(&c, (virConnectPtr)(void *)c.conn, dom, e);
		free(handle(dom));
	}
	for (struct fake_conn *conn = e->broken >= 0 ? fake.conns : NULL; conn;) {
		virConnectCloseFunc cb;
		void *opaque;
		struct fake_conn *next;

		fake_lock();
		cb = conn->dead ? conn->closed : NULL;
		opaque = conn->closed_opaque;
		next = conn->next;
		fake_unlock();
		if (cb)
			cb((virConnectPtr)(void *)conn, e->broken, opaque);
		conn = next;
	}
}

static int run_default_impl(void)
{
	struct emitted e;
	struct timer timer;
	int number = 0;

	fake_lock();
	while (fake.nr_emitted == 0 && !due(&number))
		pthread_cond_wait(&loop, &lock);
	if (due(&number)) {
		timer = fake.timers[number];
		fake_unlock();
		timer.cb(number, timer.opaque);
		return 0;
	}
	e = fake.emitted[0];
	memmove(fake.emitted, fake.emitted + 1, --fake.nr_emitted * sizeof(e));
	fake_unlock();
	pthread_mutex_lock(&dispatching);
	dispatch(&e);
	pthread_mutex_unlock(&dispatching);
	return 0;
}

static virConnectPtr open_conn(const char *uri)
{
	struct fake_conn *conn = NULL;

	pthread_mutex_lock(&dispatching);
	fake_lock();
	if (enter(FAKE_OPEN, NULL) == 0) {
		conn = get_zeroed(1, sizeof(*conn));
		if (!conn)
			abort();
		conn->next = fake.conns;
		fake.conns = conn;
		fake.nr_conns++;
	}
	fake_unlock();
	pthread_mutex_unlock(&dispatching);
	return (virConnectPtr)(void *)conn;
}

static int close_conn(virConnectPtr ptr)
{
	struct fake_conn *conn = connection(ptr), **at;

	pthread_mutex_lock(&dispatching);
	fake_lock();
	for (int i = 0; i < CALLBACKS_MAX; i++)
		if (fake.callbacks[i].used && fake.callbacks[i].conn == conn)
			abort(); /* the backend forgot one */
	for (at = &fake.conns; *at != conn; at = &(*at)->next)
		;
	*at = conn->next;
	fake.nr_conns--;
	fake_unlock();
	pthread_mutex_unlock(&dispatching);
	free(conn);
	return 0;
}

static int is_alive(virConnectPtr conn)
{
	int alive;

	/* As libvirt's does. */
	last_error = (virError){ .code = VIR_ERR_OK };
	fake_lock();
	alive = !connection(conn)->dead;
	fake_unlock();
	return alive;
}

static int set_keep_alive(virConnectPtr conn, int interval, unsigned int count)
{
	return call(FAKE_KEEPALIVE, connection(conn));
}

static char *get_uri(virConnectPtr conn)
{
	return get_copy("qemu:///system");
}

static int register_close(
	virConnectPtr ptr, virConnectCloseFunc cb, void *opaque, virFreeCallback ff)
{
	struct fake_conn *conn = connection(ptr);
	int r;

	fake_lock();
	r = enter(FAKE_CLOSE_CALLBACK, conn);
	if (r == 0) {
		conn->closed = cb;
		conn->closed_opaque = opaque;
	}
	fake_unlock();
	return r;
}

static int unregister_close(virConnectPtr ptr, virConnectCloseFunc cb)
{
	pthread_mutex_lock(&dispatching);
	fake_lock();
	connection(ptr)->closed = NULL;
	fake_unlock();
	pthread_mutex_unlock(&dispatching);
	return 0;
}

static int register_any(virConnectPtr conn, virDomainPtr dom, int event,
	virConnectDomainEventGenericCallback cb, void *opaque, virFreeCallback ff)
{
	int id = -1;

	fake_lock();
	if (enter(FAKE_EVENT, connection(conn)) == 0)
		for (int i = 0; id < 0 && i < CALLBACKS_MAX; i++)
			if (!fake.callbacks[i].used) {
				fake.callbacks[i] = (struct callback){ true, connection(conn),
					event, cb, opaque, ff };
				id = i;
			}
	fake_unlock();
	return id;
}

static int deregister_any(virConnectPtr conn, int id)
{
	struct callback c;

	pthread_mutex_lock(&dispatching);
	fake_lock();
	c = fake.callbacks[id];
	fake.callbacks[id].used = false;
	fake_unlock();
	pthread_mutex_unlock(&dispatching);
	c.ff(c.opaque);
	return 0;
}

static bool active(const struct fake_domain *dom)
{
	return dom->state != VIR_DOMAIN_SHUTOFF;
}

static void set_int(virTypedParameter *param, const char *field, int value)
{
	snprintf(param->field, sizeof(param->field), "%s", field);
	param->type = VIR_TYPED_PARAM_INT;
	param->value.i = value;
}

static int get_all_domain_stats(virConnectPtr conn, unsigned int stats,
	virDomainStatsRecordPtr **ret_records, unsigned int flags)
{
	virDomainStatsRecordPtr *records;
	int nr = 0;

	fake_lock();
	if (stats != VIR_DOMAIN_STATS_STATE)
		abort(); /* anything else may hang */
	if (enter(FAKE_ALL_STATS, connection(conn)) < 0) {
		fake_unlock();
		return -1;
	}
	records = get_zeroed(DOMAINS_MAX + 1, sizeof(*records));
	for (int i = 0; i < fake.nr_domains; i++) {
		struct fake_domain *dom = &fake.domains[i];
		virDomainStatsRecordPtr record;

		if (!active(dom))
			continue;
		record = get_zeroed(1, sizeof(*record));
		record->dom = handle_new(connection(conn), i);
		record->params = get_zeroed(STATE_PARAMS, sizeof(*record->params));
		record->nparams = STATE_PARAMS;
		set_int(&record->params[0], "state.state", dom->state);
		set_int(&record->params[1], "state.reason", dom->reason);
		records[nr++] = record;
	}
	fake_unlock();
	*ret_records = records;
	return nr;
}

static void record_list_free(virDomainStatsRecordPtr *records)
{
	for (virDomainStatsRecordPtr *record = records; *record; record++) {
		free(handle((*record)->dom));
		free((*record)->params);
		free(*record);
	}
	free(records);
}

static int list_all(virConnectPtr conn, virDomainPtr **ret_domains, unsigned int flags)
{
	virDomainPtr *domains;
	int nr = 0;

	fake_lock();
	if (enter(FAKE_LIST, connection(conn)) < 0) {
		fake_unlock();
		return -1;
	}
	domains = get_zeroed(DOMAINS_MAX + 1, sizeof(*domains));
	for (int i = 0; i < fake.nr_domains; i++)
		if (active(&fake.domains[i]))
			domains[nr++] = handle_new(connection(conn), i);
	fake_unlock();
	*ret_domains = domains;
	return nr;
}

static virDomainPtr lookup(virConnectPtr conn, const unsigned char *uuid)
{
	virDomainPtr dom = NULL;

	fake_lock();
	if (enter(FAKE_LOOKUP, connection(conn)) == 0) {
		if (uuid[15] < fake.nr_domains)
			dom = handle_new(connection(conn), uuid[15]);
		else
			failed(VIR_ERR_NO_DOMAIN, "Domain not found");
	}
	fake_unlock();
	return dom;
}

static int free_domain(virDomainPtr dom)
{
	free(handle(dom));
	return 0;
}

static const char *get_name(virDomainPtr dom)
{
	return handle(dom)->dom->name;
}

static int get_uuid(virDomainPtr dom, unsigned char *ret_uuid)
{
	struct hv_uuid uuid = fake_uuid(handle(dom)->dom);

	memcpy(ret_uuid, uuid.bytes, sizeof(uuid.bytes));
	return 0;
}

static int get_state(virDomainPtr dom, int *ret_state, int *ret_reason, unsigned int flags)
{
	int r;

	fake_lock();
	r = enter(FAKE_STATE, handle(dom)->conn);
	if (r == 0) {
		*ret_state = handle(dom)->dom->state;
		*ret_reason = handle(dom)->dom->reason;
	}
	fake_unlock();
	return r;
}

static int is_persistent(virDomainPtr dom)
{
	int r;

	fake_lock();
	r = enter(FAKE_PERSISTENT, handle(dom)->conn);
	if (r == 0)
		r = handle(dom)->dom->persistent;
	fake_unlock();
	return r;
}

static char *get_xml(virDomainPtr dom, unsigned int flags)
{
	const struct fake_domain *d = handle(dom)->dom;
	bool inactive = flags & VIR_DOMAIN_XML_INACTIVE;
	const char *memory = d->memory[inactive];
	char *xml = NULL, metadata[640] = "";

	/* The namespace is libvirt's to add. */
	if (memory[0])
		snprintf(metadata, sizeof(metadata),
			"<metadata><memory xmlns='" DOMXML_MEMORY_NS "'%s</metadata>",
			memory + strlen("<memory"));
	fake_lock();
	if (flags & ~(unsigned int)VIR_DOMAIN_XML_INACTIVE)
		abort(); /* no passwords are asked for */
	if (enter(inactive ? FAKE_XML_INACTIVE : FAKE_XML, handle(dom)->conn) == 0) {
		xml = get_zeroed(1, XML_MAX);
		snprintf(xml, XML_MAX,
			"<domain><name>%s</name><memory unit='KiB'>1048576</memory>%s%s</domain>",
			d->name, metadata, inactive ? d->inside_inactive : d->inside);
	}
	fake_unlock();
	return xml;
}

static int get_parameters(
	virDomainPtr dom, virTypedParameterPtr params, int *nparams, unsigned int flags)
{
	const struct fake_domain *d = handle(dom)->dom;
	int r;

	fake_lock();
	if (flags != VIR_DOMAIN_AFFECT_CONFIG || *nparams < 4)
		abort();
	r = enter(FAKE_PARAMETERS, handle(dom)->conn);
	if (r == 0) {
		snprintf(params[0].field, sizeof(params[0].field), "%s",
			VIR_DOMAIN_MEMORY_SOFT_LIMIT);
		params[0].type = VIR_TYPED_PARAM_ULLONG;
		params[0].value.ul =
			d->has_config_limit ? d->config_limit_kib : DOMXML_UNLIMITED_KIB;
		*nparams = 1;
	}
	fake_unlock();
	return r;
}

static char *get_metadata(virDomainPtr dom, int type, const char *uri, unsigned int flags)
{
	char *note = NULL;

	fake_lock();
	if (enter(FAKE_GET_METADATA, handle(dom)->conn) == 0) {
		const struct fake_domain *d = handle(dom)->dom;
		const char *text = d->note;

		if (!strcmp(uri, DOMXML_MEMORY_NS))
			text = d->memory[flags == VIR_DOMAIN_AFFECT_CONFIG];
		if (text[0])
			note = get_copy(text);
		else
			failed(VIR_ERR_NO_DOMAIN_METADATA, "metadata not found");
	}
	fake_unlock();
	return note;
}

/* Lock held: 0, or what the call fails with, after it hung where it is to. */
static int enter_slow(enum fake_call which, virDomainPtr dom)
{
	if (handle(dom)->dom->hangs) {
		fake.nr_hanging++;
		while (!fake.release)
			pthread_cond_wait(&hang, &lock);
		fake.nr_hanging--;
	}
	return enter(which, handle(dom)->conn);
}

static int memory_stats(
	virDomainPtr dom, virDomainMemoryStatPtr stats, unsigned int nr, unsigned int flags)
{
	const struct fake_domain *d = handle(dom)->dom;
	int r;

	fake_lock();
	r = enter_slow(FAKE_MEMORY_STATS, dom);
	if (r == 0)
		for (; r < d->nr_stats && r < (int)nr; r++)
			stats[r] = d->stats[r];
	fake_unlock();
	return r;
}

static int get_job_stats(virDomainPtr dom, int *ret_type, virTypedParameterPtr *ret_params,
	int *ret_nparams, unsigned int flags)
{
	const struct fake_domain *d = handle(dom)->dom;
	virTypedParameterPtr params;
	int r;

	fake_lock();
	r = enter_slow(FAKE_JOB, dom);
	if (r == 0) {
		params = calloc(1, sizeof(*params));
		if (!params) {
			fake_unlock();
			return failed(VIR_ERR_NO_MEMORY, "no memory");
		}
		strcpy(params->field, VIR_DOMAIN_JOB_OPERATION);
		params->type = VIR_TYPED_PARAM_INT;
		params->value.i = d->job;
		*ret_type = d->job ? VIR_DOMAIN_JOB_UNBOUNDED : VIR_DOMAIN_JOB_NONE;
		*ret_params = params;
		*ret_nparams = 1;
	}
	fake_unlock();
	return r;
}

static int set_parameters(
	virDomainPtr dom, virTypedParameterPtr params, int nparams, unsigned int flags)
{
	int r;

	fake_lock();
	if (flags != VIR_DOMAIN_AFFECT_LIVE || nparams != 1 ||
		strcmp(params->field, VIR_DOMAIN_MEMORY_SOFT_LIMIT) != 0 ||
		params->value.ul != VIR_DOMAIN_MEMORY_PARAM_UNLIMITED)
		abort(); /* the live throttle is lifted, and nothing else */
	r = enter_slow(FAKE_SET_PARAMETERS, dom);
	if (r == 0)
		changed("lifted %s;", handle(dom)->dom->name);
	fake_unlock();
	return r;
}

static int set_period(virDomainPtr dom, int period, unsigned int flags)
{
	int r;

	fake_lock();
	if (flags != VIR_DOMAIN_AFFECT_LIVE)
		abort(); /* configurations are never written */
	r = enter_slow(FAKE_PERIOD, dom);
	if (r == 0) {
		handle(dom)->dom->period_s = period;
		changed("period %s %d;", handle(dom)->dom->name, period);
	}
	fake_unlock();
	return r;
}

static int change_memory(enum fake_call which, virDomainPtr dom, unsigned long kib)
{
	int r;

	fake_lock();
	r = enter_slow(which, dom);
	if (r == 0) {
		handle(dom)->dom->target_kib = kib;
		changed("memory %s %lu;", handle(dom)->dom->name, kib);
	}
	fake_unlock();
	return r;
}

static int set_memory(virDomainPtr dom, unsigned long kib)
{
	return change_memory(FAKE_SET_MEMORY, dom, kib);
}

static int set_memory_flags(virDomainPtr dom, unsigned long kib, unsigned int flags)
{
	if (flags != VIR_DOMAIN_AFFECT_LIVE)
		abort();
	return change_memory(FAKE_SET_MEMORY_FLAGS, dom, kib);
}

/* Lock held: before the end of its devices, which it has. */
static void plug(char *inside, size_t size, const char *device)
{
	char *end = strstr(inside, "</devices>");
	size_t length = strlen(device);

	if (!end || strlen(inside) + length >= size)
		abort();
	memmove(end + length, end, strlen(end) + 1);
	memcpy(end, device, length);
}

static int attach_device(virDomainPtr dom, const char *xml, unsigned int flags)
{
	struct fake_domain *d = handle(dom)->dom;
	int r;

	if (!flags || flags & ~(unsigned int)(VIR_DOMAIN_AFFECT_LIVE | VIR_DOMAIN_AFFECT_CONFIG))
		abort();
	fake_lock();
	r = enter_slow(FAKE_ATTACH, dom);
	if (r == 0 && flags & VIR_DOMAIN_AFFECT_LIVE)
		plug(d->inside, sizeof(d->inside), xml);
	if (r == 0 && flags & VIR_DOMAIN_AFFECT_CONFIG)
		plug(d->inside_inactive, sizeof(d->inside_inactive), xml);
	if (r == 0)
		changed("attached %s %u;", d->name, flags);
	fake_unlock();
	return r;
}

static int get_block_job(
	virDomainPtr dom, const char *disk, virDomainBlockJobInfoPtr ret_info, unsigned int flags)
{
	int r;

	fake_lock();
	r = enter_slow(FAKE_BLOCK_JOB, dom);
	if (r == 0)
		r = handle(dom)->dom->block_job && !strcmp(disk, "vda");
	fake_unlock();
	return r;
}

static char *agent_command(virDomainPtr dom, const char *command, int timeout, unsigned int flags)
{
	struct fake_domain *d = handle(dom)->dom;
	const char *answer = NULL;
	int r, code = VIR_ERR_ARGUMENT_UNSUPPORTED;
	char *copy = NULL;

	if (timeout < 1 || timeout > 5 || flags)
		abort(); /* it is never waited for without an end */
	fake_lock();
	if (d->agent_busy)
		abort(); /* a second call on top of one */
	d->agent_busy = true;
	if (d->agent_hangs) {
		fake.nr_hanging++;
		while (!fake.release)
			pthread_cond_wait(&hang, &lock);
		fake.nr_hanging--;
	}
	r = enter(FAKE_AGENT, handle(dom)->conn);
	fake_unlock();
	if (r == 0 && d->agent)
		answer = d->agent(d, command, &code);
	if (r == 0 && answer)
		copy = get_copy(answer);
	else if (r == 0)
		failed(code, code == VIR_ERR_OPERATION_FAILED
				     ? "failed to flush file: Invalid argument"
			     : code == VIR_ERR_OPERATION_DENIED
				     ? "failed to flush file: Operation not permitted"
				     : "made up");
	fake_lock();
	d->agent_busy = false;
	fake_unlock();
	return copy;
}

static int set_memory_element(
	virDomainPtr dom, const char *element, const char *key, unsigned int flags)
{
	struct fake_domain *d = handle(dom)->dom;
	int r;

	if ((element && (strncmp(element, "<memory", 7) != 0 || strcmp(key, "ballast") != 0)) ||
		(!d->persistent && flags != VIR_DOMAIN_AFFECT_LIVE))
		abort();
	fake_lock();
	r = enter_slow(flags & VIR_DOMAIN_AFFECT_LIVE ? FAKE_SET_METADATA : FAKE_SET_CONFIG, dom);
	for (unsigned int i = 0; i < 2 && r == 0; i++)
		if (flags & (i == 0 ? VIR_DOMAIN_AFFECT_LIVE : VIR_DOMAIN_AFFECT_CONFIG))
			snprintf(d->memory[i], sizeof(d->memory[i]), "%s", element ? element : "");
	if (r == 0)
		changed("element %s %u;", d->name, flags);
	fake_unlock();
	return r;
}

static int set_metadata(virDomainPtr dom, int type, const char *metadata, const char *key,
	const char *uri, unsigned int flags)
{
	struct fake_domain *d = handle(dom)->dom;
	uint64_t bytes = 0;
	int r;

	if (!strcmp(uri, DOMXML_MEMORY_NS))
		return set_memory_element(dom, metadata, key, flags);
	if (flags != VIR_DOMAIN_AFFECT_LIVE || type != VIR_DOMAIN_METADATA_ELEMENT ||
		strcmp(uri, DOMXML_CEILING_NS) != 0 || domxml_parse_ceiling(metadata, &bytes) < 0)
		abort();
	fake_lock();
	r = enter_slow(FAKE_SET_METADATA, dom);
	if (r == 0) {
		snprintf(d->note, sizeof(d->note), "%s", metadata);
		changed("note %s %" PRIu64 ";", d->name, bytes / 1024);
	}
	fake_unlock();
	return r;
}

const struct libvirt_calls fake_calls = {
	/* Short where tests wait for it, long where a slow machine must not get there. */
	.times = { .pause_first = 5000,
		.pause_most = 20000,
		.hung = 60000000,
		.pressure = 2500,
		.qga_pause = 5000,
		.qga_read = 2000,
		.qga_slow = 60000000,
		.qga_fresh = 3600000000 },
	.event_register_default_impl = register_default_impl,
	.event_run_default_impl = run_default_impl,
	.event_add_timeout = add_timeout,
	.event_update_timeout = update_timeout,
	.event_remove_timeout = remove_timeout,
	.get_last_error = get_last_error,
	.set_error_func = set_error_func,
	.connect_open = open_conn,
	.connect_close = close_conn,
	.connect_is_alive = is_alive,
	.connect_set_keep_alive = set_keep_alive,
	.connect_get_uri = get_uri,
	.connect_register_close_callback = register_close,
	.connect_unregister_close_callback = unregister_close,
	.connect_domain_event_register_any = register_any,
	.connect_domain_event_deregister_any = deregister_any,
	.connect_get_all_domain_stats = get_all_domain_stats,
	.domain_stats_record_list_free = record_list_free,
	.connect_list_all_domains = list_all,
	.domain_lookup_by_uuid = lookup,
	.domain_free = free_domain,
	.domain_get_name = get_name,
	.domain_get_uuid = get_uuid,
	.domain_get_state = get_state,
	.domain_is_persistent = is_persistent,
	.domain_get_xml_desc = get_xml,
	.domain_get_memory_parameters = get_parameters,
	.domain_get_metadata = get_metadata,
	.domain_get_job_stats = get_job_stats,
	.domain_set_memory_parameters = set_parameters,
	.domain_memory_stats = memory_stats,
	.domain_set_memory_stats_period = set_period,
	.domain_set_memory = set_memory,
	.domain_set_memory_flags = set_memory_flags,
	.domain_set_metadata = set_metadata,
	.domain_attach_device_flags = attach_device,
	.domain_get_block_job_info = get_block_job,
	.domain_qemu_agent_command = agent_command,
};
