/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each call, step by step; see backend.h. */
#include <config.h>

#include "hv/libvirt/backend.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/protocol.h"
#include "hv/libvirt/domxml.h"

/* libvirt's protocol carries no more. */
#define PARAMETERS_MAX 16

/* ---- errors ---- */

static int errno_of(int code)
{
	switch (code) {
	case VIR_ERR_NO_MEMORY:
		return -ENOMEM;
	case VIR_ERR_NO_DOMAIN:
		return -ENOENT;
	case VIR_ERR_NO_CONNECT:
	case VIR_ERR_INVALID_CONN:
		return -ENOTCONN;
	case VIR_ERR_OPERATION_INVALID: /* "domain is not running" */
		return -ESRCH;
	case VIR_ERR_INVALID_ARG:
		return -EINVAL;
	case VIR_ERR_OPERATION_DENIED:
	case VIR_ERR_ACCESS_DENIED:
	case VIR_ERR_AUTH_FAILED:
	case VIR_ERR_AUTH_CANCELLED:
	case VIR_ERR_AUTH_UNAVAILABLE:
		return -EACCES;
	case VIR_ERR_RPC: /* "packet ... bytes received ... want ..." */
		return -EMSGSIZE;
	case VIR_ERR_OPERATION_TIMEOUT: /* "cannot acquire state change lock" */
		return -ETIMEDOUT;
	case VIR_ERR_NO_SUPPORT:
	case VIR_ERR_OPERATION_UNSUPPORTED:
	case VIR_ERR_ARGUMENT_UNSUPPORTED:
	case VIR_ERR_CONFIG_UNSUPPORTED:
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}

static int last_error(const struct hv *hv)
{
	virErrorPtr error = hv->calls->get_last_error();

	return errno_of(error ? error->code : VIR_ERR_OK);
}

/* Another call, connect_is_alive() too, clears the thread's last error: it is copied first. */
void lv_failed(struct hv *hv, virConnectPtr conn, struct hv_event *event, const char *what)
{
	virErrorPtr error = hv->calls->get_last_error();

	event->error = errno_of(error ? error->code : VIR_ERR_OK);
	free(event->message);
	if (asprintf(&event->message, "%s: %s", what,
		    error && error->message ? error->message : "no reason given") < 0)
		event->message = NULL;
	if (conn && hv->calls->connect_is_alive(conn) == 0)
		event->error = -ENOTCONN;
}

/*
 * This libvirt does not know a call or a flag; the narrower one stands in from now on. Told once,
 * with the answer, which is no failure for it.
 */
static void lacks(struct hv *hv, enum lv_lack lack, struct hv_event *event, const char *message)
{
	if (!atomic_exchange(&hv->lacks[lack], true) && !event->message)
		event->message = strdup(message);
}

static bool known_to_lack(struct hv *hv, enum lv_lack lack)
{
	return atomic_load(&hv->lacks[lack]);
}

static virDomainPtr look_up(
	struct hv *hv, virConnectPtr conn, struct hv_event *event, const struct hv_uuid *uuid)
{
	virDomainPtr dom = hv->calls->domain_lookup_by_uuid(conn, uuid->bytes);

	if (!dom)
		lv_failed(hv, conn, event, "looking the domain up");
	return dom;
}

/* NULL: not told. (libvirt's own helpers use its last error, which must be left alone.) */
static const virTypedParameter *parameter(
	const virTypedParameter *params, int nr, const char *name, int type)
{
	for (int i = 0; i < nr; i++)
		if (params[i].type == type && !strcmp(params[i].field, name))
			return &params[i];
	return NULL;
}

/* ---- listing ---- */

/*
 * A domain that is being started, restored or migrated is there before its memory is; of the
 * outgoing side of a migration the last moment looks the same: who saw it run knows better.
 */
static enum hv_run_state state_of(int state, int reason)
{
	switch (state) {
	case VIR_DOMAIN_SHUTOFF:
		return HV_OFF;
	case VIR_DOMAIN_NOSTATE:
	case VIR_DOMAIN_RUNNING:
	case VIR_DOMAIN_BLOCKED:
		return HV_RUNNING;
	case VIR_DOMAIN_PAUSED:
		return reason == VIR_DOMAIN_PAUSED_STARTING_UP ||
				       reason == VIR_DOMAIN_PAUSED_MIGRATION
			       ? HV_STARTING
			       : HV_PAUSED;
	default: /* going down, crashed, asleep: there, but no guest that could answer */
		return HV_PAUSED;
	}
}

/* What a state's reason tells of a job; a live one shows in the job's own statistics only. */
static enum hv_job job_of_state(int state, int reason)
{
	if (state == VIR_DOMAIN_RUNNING)
		return reason == VIR_DOMAIN_RUNNING_POSTCOPY ||
				       reason == VIR_DOMAIN_RUNNING_POSTCOPY_FAILED
			       ? HV_JOB_POSTCOPY
			       : HV_JOB_NONE;
	if (state != VIR_DOMAIN_PAUSED)
		return HV_JOB_NONE;
	switch (reason) {
	case VIR_DOMAIN_PAUSED_MIGRATION:
		return HV_JOB_MIGRATION;
	case VIR_DOMAIN_PAUSED_POSTCOPY:
	case VIR_DOMAIN_PAUSED_POSTCOPY_FAILED:
		return HV_JOB_POSTCOPY;
	case VIR_DOMAIN_PAUSED_SAVE:
	case VIR_DOMAIN_PAUSED_DUMP:
		return HV_JOB_SAVE;
	case VIR_DOMAIN_PAUSED_SNAPSHOT:
		return HV_JOB_SNAPSHOT;
	default:
		return HV_JOB_NONE;
	}
}

/* A name that is too long is refused: libvirt's own drivers take none. */
static int add_listed(
	struct hv *hv, struct hv_event *event, virDomainPtr dom, int state, int reason)
{
	struct hv_listed *vm = &event->listed.vms[event->listed.nr];
	const char *name = hv->calls->domain_get_name(dom);

	vm->state = state_of(state, reason);
	vm->job = job_of_state(state, reason);
	if (vm->state == HV_OFF || !name || strlen(name) > HV_NAME_MAX ||
		hv->calls->domain_get_uuid(dom, vm->uuid.bytes) < 0)
		return 0;
	vm->name = strdup(name);
	if (!vm->name)
		return -ENOMEM;
	event->listed.nr++;
	return 0;
}

static int make_room(struct hv_event *event, int nr)
{
	event->listed.nr = 0;
	event->listed.vms = nr > 0 ? calloc((size_t)nr, sizeof(*event->listed.vms)) : NULL;
	return nr > 0 && !event->listed.vms ? -ENOMEM : 0;
}

/* All states with one call, which waits for no domain. -EOPNOTSUPP: not with this libvirt. */
static int list_in_bulk(struct hv *hv, virConnectPtr conn, struct hv_event *event)
{
	virDomainStatsRecordPtr *records;
	int nr, r;

	nr = hv->calls->connect_get_all_domain_stats(
		conn, VIR_DOMAIN_STATS_STATE, &records, VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE);
	if (nr < 0) {
		r = last_error(hv);
		if (r == -EOPNOTSUPP || r == -EINVAL)
			return -EOPNOTSUPP;
		lv_failed(hv, conn, event, "listing the domains");
		return event->error;
	}
	r = make_room(event, nr);
	for (int i = 0; r == 0 && i < nr; i++) {
		const virTypedParameter *state, *reason;

		state = parameter(records[i]->params, records[i]->nparams, "state.state",
			VIR_TYPED_PARAM_INT);
		reason = parameter(records[i]->params, records[i]->nparams, "state.reason",
			VIR_TYPED_PARAM_INT);
		r = add_listed(hv, event, records[i]->dom,
			state ? state->value.i : VIR_DOMAIN_NOSTATE, reason ? reason->value.i : 0);
	}
	hv->calls->domain_stats_record_list_free(records);
	return r;
}

/*
 * 0: it has gone meanwhile, or is not ours to see. Else there is no list: one that others are
 * missing from would say that they have gone.
 */
static int left_out(struct hv *hv, virConnectPtr conn, struct hv_event *event)
{
	int r = last_error(hv);

	if (r == -ENOENT || r == -EACCES)
		return 0;
	lv_failed(hv, conn, event, "reading a domain's state");
	return event->error;
}

static int list_one_by_one(struct hv *hv, virConnectPtr conn, struct hv_event *event)
{
	virDomainPtr *domains;
	int nr, r;

	nr = hv->calls->connect_list_all_domains(conn, &domains, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
	if (nr < 0) {
		lv_failed(hv, conn, event, "listing the domains");
		return event->error;
	}
	r = make_room(event, nr);
	for (int i = 0; i < nr; i++) {
		int state, reason;

		if (r == 0 && hv->calls->domain_get_state(domains[i], &state, &reason, 0) == 0)
			r = add_listed(hv, event, domains[i], state, reason);
		else if (r == 0)
			r = left_out(hv, conn, event);
		hv->calls->domain_free(domains[i]);
	}
	free(domains);
	return r;
}

static void list(struct hv *hv, virConnectPtr conn, struct hv_event *event)
{
	int r = known_to_lack(hv, LV_NO_BULK_STATE) ? -EOPNOTSUPP : list_in_bulk(hv, conn, event);

	if (r == -EOPNOTSUPP) {
		lacks(hv, LV_NO_BULK_STATE, event,
			"this libvirt gives no states in bulk: they are read one by one");
		r = list_one_by_one(hv, conn, event);
	}
	/* Too much for one message: handles and states are small, one by one. */
	if (r == -EMSGSIZE) {
		hv_listed_clear(event);
		free(event->message);
		event->message = NULL;
		event->error = 0;
		r = list_one_by_one(hv, conn, event);
	}
	if (r == 0)
		r = processes_set(hv->processes, event->listed.vms, event->listed.nr);
	if (r < 0) {
		hv_listed_clear(event);
		event->error = r;
	}
}

/* ---- descriptions ---- */

static int read_xml(struct hv *hv, virConnectPtr conn, struct hv_event *event, virDomainPtr dom,
	unsigned int flags, struct hv_info *ret_info)
{
	char *xml = hv->calls->domain_get_xml_desc(dom, flags);
	int r;

	if (!xml) {
		lv_failed(hv, conn, event, "reading the domain's description");
		return event->error;
	}
	r = domxml_parse(xml, ret_info);
	free(xml);
	if (r < 0)
		hv_event_fail(event, r, "the domain's description cannot be read");
	return r;
}

/* The soft limit of the inactive configuration. -EOPNOTSUPP: this driver does not say it so. */
static int config_parameters(struct hv *hv, virDomainPtr dom, struct hv_knobs *knobs)
{
	virTypedParameter params[PARAMETERS_MAX];
	const virTypedParameter *limit;
	int nr = PARAMETERS_MAX;

	memset(params, 0, sizeof(params));
	if (hv->calls->domain_get_memory_parameters(dom, params, &nr, VIR_DOMAIN_AFFECT_CONFIG) < 0)
		return -EOPNOTSUPP;
	limit = parameter(params, nr, VIR_DOMAIN_MEMORY_SOFT_LIMIT, VIR_TYPED_PARAM_ULLONG);
	if (limit && limit->value.ul < DOMXML_UNLIMITED_KIB) {
		knobs->has_soft_limit = true;
		knobs->soft_limit = limit->value.ul * 1024;
	}
	for (int i = 0; i < nr; i++)
		if (params[i].type == VIR_TYPED_PARAM_STRING)
			free(params[i].value.s);
	return 0;
}

/* The same, from wherever this libvirt has it. Without an answer the limit is not "none". */
static int read_configured(struct hv *hv, virConnectPtr conn, struct hv_event *event,
	virDomainPtr dom, struct hv_knobs *ret_knobs)
{
	struct hv_knobs knobs = { 0 };
	struct hv_info inactive;
	int r;

	if (known_to_lack(hv, LV_NO_CONFIG_PARAMETERS) || config_parameters(hv, dom, &knobs) < 0) {
		r = read_xml(hv, conn, event, dom, VIR_DOMAIN_XML_INACTIVE, &inactive);
		if (r < 0)
			return r;
		lacks(hv, LV_NO_CONFIG_PARAMETERS, event,
			"this libvirt gives no memory parameters of the configuration: "
			"the inactive description is read");
		knobs = inactive.memtune;
		memset(&inactive.memtune, 0, sizeof(inactive.memtune));
		hv_info_clear(&inactive);
	}
	*ret_knobs = knobs;
	return 0;
}

/*
 * The inactive configuration is what the operator set; the live limit counts where that has none,
 * and for transient domains. A session's libvirt refuses memtune and has it in the description.
 */
static int read_memtune(struct hv *hv, virConnectPtr conn, struct hv_event *event, virDomainPtr dom,
	struct hv_info *info)
{
	int persistent = hv->calls->domain_is_persistent(dom), r;
	struct hv_knobs knobs;

	if (persistent < 0) {
		lv_failed(hv, conn, event, "reading the domain's configuration");
		return event->error;
	}
	if (!persistent)
		return 0;
	r = read_configured(hv, conn, event, dom, &knobs);
	if (r < 0)
		return r;
	if (knobs.has_soft_limit) {
		hv_knobs_clear(&info->memtune);
		info->memtune = knobs;
	}
	return 0;
}

static void describe(
	struct hv *hv, virConnectPtr conn, struct hv_event *event, const struct hv_call *call)
{
	const struct hv_uuid *uuid = &call->uuid;
	virDomainPtr dom = look_up(hv, conn, event, uuid);
	struct hv_info info;

	if (!dom)
		return;
	if (read_xml(hv, conn, event, dom, 0, &info) < 0)
		goto out;
	if (read_memtune(hv, conn, event, dom, &info) < 0) {
		hv_info_clear(&info);
		goto out;
	}
	info.uuid = *uuid;
	processes_set_maximum(hv->processes, uuid, info.maximum);
	/* A path of another host's: here it may be any VM's, or none. */
	lv_agents_name(hv, uuid,
		call->agent == HV_WAY_BALLAST && !atomic_load(&hv->remote) ? info.agent : NULL);
	lv_qga_name(hv, uuid, call->agent == HV_WAY_QEMU_GA);
	event->info = info;
out:
	hv->calls->domain_free(dom);
}

void lv_perform_control(
	struct hv *hv, virConnectPtr conn, struct hv_event *event, const struct hv_call *call)
{
	if (call->type == HV_LIST)
		list(hv, conn, event);
	else
		describe(hv, conn, event, call);
}

/* ---- what may hang ---- */

static enum hv_job job_of_operation(int operation)
{
	switch (operation) {
	case VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN:
	case VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT:
		return HV_JOB_MIGRATION;
	case VIR_DOMAIN_JOB_OPERATION_SNAPSHOT:
	case VIR_DOMAIN_JOB_OPERATION_SNAPSHOT_REVERT:
		return HV_JOB_SNAPSHOT;
	case VIR_DOMAIN_JOB_OPERATION_BACKUP:
		return HV_JOB_BACKUP;
	default: /* saved, dumped, started, restored; and what is not known yet */
		return HV_JOB_SAVE;
	}
}

/* The job that runs; false: not told. */
static bool read_job(struct hv *hv, struct hv_event *event, virDomainPtr dom, enum hv_job *ret_job)
{
	const virTypedParameter *operation;
	virTypedParameterPtr params = NULL;
	int type = VIR_DOMAIN_JOB_NONE, nr = 0, r;

	if (known_to_lack(hv, LV_NO_JOB_STATS))
		return false;
	if (hv->calls->domain_get_job_stats(dom, &type, &params, &nr, 0) < 0) {
		r = last_error(hv);
		/* Of an incoming migration it refuses to say more than that. */
		if (r == -EOPNOTSUPP)
			lacks(hv, LV_NO_JOB_STATS, event,
				"this libvirt tells no jobs: only states that show them count");
		return false;
	}
	operation = parameter(params, nr, VIR_DOMAIN_JOB_OPERATION, VIR_TYPED_PARAM_INT);
	*ret_job = HV_JOB_NONE;
	if (type == VIR_DOMAIN_JOB_BOUNDED || type == VIR_DOMAIN_JOB_UNBOUNDED)
		*ret_job = job_of_operation(
			operation ? operation->value.i : VIR_DOMAIN_JOB_OPERATION_UNKNOWN);
	for (int i = 0; i < nr; i++)
		if (params[i].type == VIR_TYPED_PARAM_STRING)
			free(params[i].value.s);
	free(params);
	return true;
}

/* A disk's, of whatever kind; a call that fails may be a disk's that is just unplugged. */
static bool disk_has_job(struct hv *hv, virDomainPtr dom, const char *disk)
{
	virDomainBlockJobInfo info;

	return hv->calls->domain_get_block_job_info(dom, disk, &info, 0) > 0;
}

/* Whose disks cannot be named has one, for all that is known. */
static bool has_block_job(struct hv *hv, virDomainPtr dom)
{
	char disks[DOMXML_DISKS][DOMXML_DISK], *xml = hv->calls->domain_get_xml_desc(dom, 0);
	bool busy;
	size_t nr;

	busy = !xml || domxml_disks(xml, disks, &nr) < 0;
	free(xml);
	for (size_t i = 0; !busy && i < nr; i++)
		busy = disk_has_job(hv, dom, disks[i]);
	return busy;
}

/*
 * With the statistics, on the VM's own lane, which may hang: QEMU's agent is asked for as long as
 * this says that nothing runs that may have frozen its guest.
 */
static void look_for_jobs(
	struct hv *hv, virDomainPtr dom, const struct hv_uuid *uuid, const struct hv_stats *stats)
{
	bool told = stats->job_known || known_to_lack(hv, LV_NO_JOB_STATS);

	if (lv_qga_is_named(hv, uuid))
		lv_qga_rests(
			hv, uuid, !told || stats->job != HV_JOB_NONE || has_block_job(hv, dom));
}

/* 2^64 - 1 and what became of it in KiB are "not known", and so is all that no host has. */
static void take_amount(
	struct hv_stats *stats, enum hv_stat bit, uint64_t *ret_bytes, unsigned long long kib)
{
	if (kib >= DOMXML_UNLIMITED_KIB)
		return;
	*ret_bytes = kib * 1024;
	stats->known |= bit;
}

static void take_stat(struct hv_stats *stats, const virDomainMemoryStatStruct *stat)
{
	switch (stat->tag) {
	case VIR_DOMAIN_MEMORY_STAT_ACTUAL_BALLOON:
		if (stat->val > 0)
			take_amount(stats, HV_STAT_ACTUAL, &stats->actual, stat->val);
		break;
	case VIR_DOMAIN_MEMORY_STAT_UNUSED:
		take_amount(stats, HV_STAT_UNUSED, &stats->unused, stat->val);
		break;
	case VIR_DOMAIN_MEMORY_STAT_USABLE:
		take_amount(stats, HV_STAT_USABLE, &stats->usable, stat->val);
		break;
	case VIR_DOMAIN_MEMORY_STAT_DISK_CACHES:
		take_amount(stats, HV_STAT_DISK_CACHES, &stats->disk_caches, stat->val);
		break;
	case VIR_DOMAIN_MEMORY_STAT_SWAP_IN:
		take_amount(stats, HV_STAT_SWAP_IN, &stats->swap_in, stat->val);
		break;
	case VIR_DOMAIN_MEMORY_STAT_LAST_UPDATE:
		if (stat->val > 0 && stat->val < INT64_MAX) {
			stats->last_update = stat->val;
			stats->known |= HV_STAT_LAST_UPDATE;
		}
		break;
	}
}

static void read_stats(struct hv *hv, virConnectPtr conn, struct hv_event *event, virDomainPtr dom,
	const struct hv_uuid *uuid)
{
	virDomainMemoryStatStruct stats[VIR_DOMAIN_MEMORY_STAT_NR];
	struct hv_stats result = { 0 };
	int nr;

	result.job_known = read_job(hv, event, dom, &result.job);
	nr = hv->calls->domain_memory_stats(dom, stats, VIR_DOMAIN_MEMORY_STAT_NR, 0);
	if (nr < 0) {
		lv_failed(hv, conn, event, "reading the balloon's statistics");
		return;
	}
	for (int i = 0; i < nr && i < VIR_DOMAIN_MEMORY_STAT_NR; i++)
		take_stat(&result, &stats[i]);
	look_for_jobs(hv, dom, uuid, &result);
	event->stats = result;
}

static void set_period(struct hv *hv, virConnectPtr conn, struct hv_event *event, virDomainPtr dom,
	uint64_t period_s)
{
	if (hv->calls->domain_set_memory_stats_period(dom, (int)period_s, VIR_DOMAIN_AFFECT_LIVE) <
		0)
		lv_failed(hv, conn, event, "switching the balloon's statistics on");
}

static uint64_t kib_up(uint64_t bytes)
{
	return bytes / 1024 + (bytes % 1024 != 0);
}

/*
 * The note is read each time, not remembered: that is cheap, never blocks, and there is nothing
 * that could be forgotten when a domain was started anew or its metadata changed by others.
 */
static int record_ceiling(struct hv *hv, virConnectPtr conn, struct hv_event *event,
	virDomainPtr dom, uint64_t ceiling)
{
	uint64_t recorded = 0;
	char text[64], *note;

	note = hv->calls->domain_get_metadata(
		dom, VIR_DOMAIN_METADATA_ELEMENT, DOMXML_CEILING_NS, VIR_DOMAIN_AFFECT_LIVE);
	/* None, or none that can be read: it is written. */
	if (note && domxml_parse_ceiling(note, &recorded) < 0)
		recorded = 0;
	free(note);
	if (recorded == kib_up(ceiling) * 1024)
		return 0;
	snprintf(text, sizeof(text), "<ceiling kib='%" PRIu64 "'/>", kib_up(ceiling));
	if (hv->calls->domain_set_metadata(dom, VIR_DOMAIN_METADATA_ELEMENT, text,
		    "ballast-ceiling", DOMXML_CEILING_NS, VIR_DOMAIN_AFFECT_LIVE) < 0) {
		lv_failed(hv, conn, event, "recording the ceiling, so no target was set");
		return event->error;
	}
	return 0;
}

static void set_target(struct hv *hv, virConnectPtr conn, struct hv_event *event, virDomainPtr dom,
	const struct hv_call *call)
{
	unsigned long kib = kib_up(call->target);
	enum hv_job job;
	int r;

	if (call->target == 0 || call->target == HV_UNLIMITED || call->ceiling == HV_UNLIMITED) {
		hv_event_fail(event, -EINVAL, "no target to set");
		return;
	}
	/* libvirt would let it wait half a minute, and then refuse it. A backup takes targets. */
	if (read_job(hv, event, dom, &job) && job != HV_JOB_NONE && job != HV_JOB_BACKUP) {
		hv_event_fail(event, -EBUSY, "a job runs on the domain, so no target was set");
		return;
	}
	if (call->ceiling > 0 && record_ceiling(hv, conn, event, dom, call->ceiling) < 0)
		return;
	if (!known_to_lack(hv, LV_NO_MEMORY_FLAGS)) {
		r = hv->calls->domain_set_memory_flags(dom, kib, VIR_DOMAIN_AFFECT_LIVE);
		if (r == 0)
			return;
		if (last_error(hv) != -EOPNOTSUPP) {
			lv_failed(hv, conn, event, "setting the balloon's target");
			return;
		}
	}
	/* Without flags it is the live target as well, and never the configuration. */
	if (hv->calls->domain_set_memory(dom, kib) < 0)
		lv_failed(hv, conn, event, "setting the balloon's target");
	else
		lacks(hv, LV_NO_MEMORY_FLAGS, event,
			"this libvirt sets memory without flags only: that is used");
}

/* For a domain whose configuration says a limit too: it is what counts then. */
static void unthrottle(struct hv *hv, virConnectPtr conn, struct hv_event *event, virDomainPtr dom)
{
	virTypedParameter limit = { .type = VIR_TYPED_PARAM_ULLONG };
	int persistent = hv->calls->domain_is_persistent(dom);
	struct hv_knobs configured;

	if (persistent < 0) {
		lv_failed(hv, conn, event, "reading the domain's configuration");
		return;
	}
	if (!persistent) {
		hv_event_fail(
			event, -EOPNOTSUPP, "a transient domain has no limit but the live one");
		return;
	}
	if (read_configured(hv, conn, event, dom, &configured) < 0)
		return;
	if (!configured.has_soft_limit) {
		hv_event_fail(event, -EOPNOTSUPP,
			"the domain's configuration has no limit: the live one is the only one");
		return;
	}
	strcpy(limit.field, VIR_DOMAIN_MEMORY_SOFT_LIMIT);
	limit.value.ul = VIR_DOMAIN_MEMORY_PARAM_UNLIMITED;
	if (hv->calls->domain_set_memory_parameters(dom, &limit, 1, VIR_DOMAIN_AFFECT_LIVE) < 0)
		lv_failed(hv, conn, event, "lifting the live soft limit");
}

/* ---- ballast's own element ---- */

#define MEMORY_KEY "ballast"

/* 0 with the element as it is there, NULL: none. */
static int read_element(struct hv *hv, virConnectPtr conn, struct hv_event *event, virDomainPtr dom,
	unsigned int flags, char **ret_element)
{
	char *element = hv->calls->domain_get_metadata(
		dom, VIR_DOMAIN_METADATA_ELEMENT, DOMXML_MEMORY_NS, flags);
	virErrorPtr error = element ? NULL : hv->calls->get_last_error();

	if (!element && error && error->code != VIR_ERR_NO_DOMAIN_METADATA) {
		lv_failed(hv, conn, event, "reading the metadata");
		return event->error;
	}
	*ret_element = element;
	return 0;
}

/* Element NULL: it goes. */
static int write_element(struct hv *hv, virConnectPtr conn, struct hv_event *event,
	virDomainPtr dom, unsigned int flags, const char *element)
{
	if (hv->calls->domain_set_metadata(dom, VIR_DOMAIN_METADATA_ELEMENT, element,
		    element ? MEMORY_KEY : NULL, DOMXML_MEMORY_NS, flags) == 0)
		return 0;
	lv_failed(hv, conn, event, "writing the metadata");
	return event->error;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* What is there at flags, and what it is to become. */
struct element {
	unsigned int flags;
	char *old, *new;
};

static int prepare_element(struct hv *hv, virConnectPtr conn, struct hv_event *event,
	virDomainPtr dom, const struct hv_knobs_change *change, struct element *element)
{
	int r = read_element(hv, conn, event, dom, element->flags, &element->old);

	if (r < 0)
		return r;
	r = domxml_change(element->old, change, &element->new);
	if (r < 0)
		hv_event_fail(event, r,
			r == -EINVAL ? "min would be over max, so nothing was written"
				     : "the metadata cannot be changed");
	return r;
}

/*
 * The stored configuration as it was, after the live one could not be written. Where that fails too
 * half of the change stands, and the answer says so.
 */
static void take_back(
	struct hv *hv, struct hv_event *event, virDomainPtr dom, const struct element *config)
{
	char *message;

	if (hv->calls->domain_set_metadata(dom, VIR_DOMAIN_METADATA_ELEMENT, config->old,
		    config->old ? MEMORY_KEY : NULL, DOMXML_MEMORY_NS, config->flags) == 0)
		return;
	/* First, for what comes behind may be cut off. */
	if (asprintf(&message,
		    "the stored configuration has the change and it could not be taken back; %s",
		    event->message ? event->message : "writing the live metadata") < 0)
		return;
	free(event->message);
	event->message = message;
}

/*
 * Where it runs, and in the stored configuration. All is read and computed before anything is
 * written, and what was written is taken back where the rest cannot be.
 */
static void change_knobs(struct hv *hv, virConnectPtr conn, struct hv_event *event,
	virDomainPtr dom, const struct hv_knobs_change *change)
{
	struct element live = { .flags = VIR_DOMAIN_AFFECT_LIVE };
	struct element config = { .flags = VIR_DOMAIN_AFFECT_CONFIG };
	int persistent = hv->calls->domain_is_persistent(dom);

	if (persistent < 0) {
		lv_failed(hv, conn, event, "reading the domain's configuration");
		return;
	}
	if (prepare_element(hv, conn, event, dom, change, &live) < 0 ||
		(persistent && prepare_element(hv, conn, event, dom, change, &config) < 0))
		goto out;
	if (!persistent) {
		write_element(hv, conn, event, dom, live.flags, live.new);
	} else if (same_text(live.new, config.new)) {
		write_element(hv, conn, event, dom, live.flags | config.flags, live.new);
	} else if (write_element(hv, conn, event, dom, config.flags, config.new) == 0 &&
		   write_element(hv, conn, event, dom, live.flags, live.new) < 0) {
		take_back(hv, event, dom, &config);
	}
out:
	free(live.old);
	free(live.new);
	free(config.old);
	free(config.new);
}

/* ---- the port of an agent ---- */

#define PORT                                                                                       \
	"<channel type='unix'><source mode='bind'/>"                                               \
	"<target type='virtio' name='" PROTOCOL_PORT "'/></channel>"

/* Of the live or the inactive description. */
static int read_port(struct hv *hv, virConnectPtr conn, struct hv_event *event, virDomainPtr dom,
	unsigned int flags, struct domxml_port *ret_port)
{
	char *xml = hv->calls->domain_get_xml_desc(dom, flags);
	int r;

	if (!xml) {
		lv_failed(hv, conn, event, "reading the domain's description");
		return event->error;
	}
	r = domxml_port(xml, PROTOCOL_PORT, ret_port);
	free(xml);
	if (r < 0)
		hv_event_fail(event, r, "the domain's description cannot be read");
	return r;
}

/*
 * Only where it lacks: what is there may be somebody's own. No controller for it can be plugged
 * into a domain that runs; into a stored configuration libvirt puts one by itself.
 */
static void attach(struct hv *hv, virConnectPtr conn, struct hv_event *event, virDomainPtr dom,
	bool persistent)
{
	struct domxml_port live = { 0 }, stored = { .port = true };
	int has_stored = persistent ? hv->calls->domain_is_persistent(dom) : 0;
	unsigned int flags = 0;

	if (has_stored < 0) {
		lv_failed(hv, conn, event, "reading the domain's configuration");
		return;
	}
	if (persistent && !has_stored) {
		hv_event_fail(event, -EOPNOTSUPP,
			"the domain is transient: it has no stored configuration");
		return;
	}
	if (read_port(hv, conn, event, dom, 0, &live) < 0 ||
		(persistent &&
			read_port(hv, conn, event, dom, VIR_DOMAIN_XML_INACTIVE, &stored) < 0))
		return;
	flags |= live.port ? 0 : VIR_DOMAIN_AFFECT_LIVE;
	flags |= stored.port ? 0 : VIR_DOMAIN_AFFECT_CONFIG;
	if (!flags)
		hv_event_fail(event, -EEXIST, "the port is there already");
	else if (!live.port && !live.controller)
		hv_event_fail(event, -ENXIO,
			"the domain has no virtio-serial controller, and none can be plugged in "
			"while it runs: add one, or the channel " PROTOCOL_PORT
			", with virsh edit, and start it anew");
	else if (hv->calls->domain_attach_device_flags(dom, PORT, flags) < 0)
		lv_failed(hv, conn, event, "adding the port");
}

void lv_perform_worker(
	struct hv *hv, virConnectPtr conn, struct hv_event *event, const struct hv_call *call)
{
	virDomainPtr dom = look_up(hv, conn, event, &call->uuid);

	if (!dom)
		return;
	if (call->type == HV_STATS)
		read_stats(hv, conn, event, dom, &call->uuid);
	else if (call->type == HV_PERIOD)
		set_period(hv, conn, event, dom, call->period_s);
	else if (call->type == HV_UNTHROTTLE)
		unthrottle(hv, conn, event, dom);
	else if (call->type == HV_KNOBS)
		change_knobs(hv, conn, event, dom, call->change);
	else if (call->type == HV_ATTACH)
		attach(hv, conn, event, dom, call->persistent);
	else
		set_target(hv, conn, event, dom, call);
	hv->calls->domain_free(dom);
}
