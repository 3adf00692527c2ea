/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wrapper, see fault.h: what is kept back, and the way of calls and events through it. What is
 * done to an answer is spoil.c's.
 */
#include <config.h>

#include "hv/fault/fault_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static const char *const kinds[] = {
	[FAULT_SLOW] = "slow",
	[FAULT_FAIL] = "fail",
	[FAULT_DENY] = "deny",
	[FAULT_HANG] = "hang",
	[FAULT_LIE] = "lie",
	[FAULT_STALE] = "stale",
	[FAULT_PARTIAL] = "partial",
	[FAULT_LOSE] = "lose",
};

static const char *const calls[] = {
	[HV_LIST] = "list",
	[HV_INFO] = "info",
	[HV_STATS] = "stats",
	[HV_PERIOD] = "period",
	[HV_TARGET] = "target",
	[HV_UNTHROTTLE] = "unthrottle",
	[HV_KNOBS] = "knobs",
	[HV_ATTACH] = "attach",
	[HV_RECLAIM] = "reclaim",
	[HV_PROCESS] = "process",
	[HV_HOST] = "host",
};

static int find_word(const char *const *words, size_t nr, const char *word)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(words[i], word))
			return (int)i;
	return -EINVAL;
}

int fault_kind_parse(const char *word, enum fault_kind *ret_kind)
{
	int found = find_word(kinds, NR(kinds), word);

	if (found >= 0)
		*ret_kind = (enum fault_kind)found;
	return found < 0 ? found : 0;
}

int fault_call_parse(const char *word, enum hv_call_type *ret_type)
{
	int found = find_word(calls, NR(calls), word);

	if (found >= 0)
		*ret_type = (enum hv_call_type)found;
	return found < 0 ? found : 0;
}

/* ---- chance and rules ---- */

uint64_t fault_draw(struct hv *hv, uint64_t least, uint64_t most)
{
	/* splitmix64 */
	uint64_t z = (hv->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return least + z % (most - least + 1);
}

void fault_seed(struct hv *hv, uint64_t seed)
{
	hv->random = seed;
}

static bool is_on(const struct hv *hv, const struct fault_rule *rule)
{
	return rule->from <= hv->now && hv->now < rule->until;
}

static bool strikes(struct hv *hv, const struct fault_rule *rule, const struct hv_uuid *uuid)
{
	if (!is_on(hv, rule) || (rule->of_vm && !(uuid && hv_uuid_equal(uuid, &rule->uuid))))
		return false;
	return !rule->percent_of || fault_draw(hv, 1, 100) <= rule->percent_of;
}

static bool of_a_vm(enum hv_call_type type)
{
	return type != HV_LIST && type != HV_PROCESS && type != HV_HOST;
}

/* Where a VM is meant, processes of all are one call that has it too. */
static bool is_of_call(const struct fault_rule *rule, enum hv_call_type type)
{
	if (rule->kind == FAULT_LOSE || (rule->calls && !(rule->calls & FAULT_CALL(type))))
		return false;
	if (rule->kind == FAULT_LIE || rule->kind == FAULT_STALE)
		return type == HV_STATS;
	if (rule->kind == FAULT_PARTIAL)
		return type == HV_STATS || type == HV_PROCESS || type == HV_HOST;
	return true;
}

static struct fault_rule *rule_for(struct hv *hv, const struct hv_call *call)
{
	const struct hv_uuid *uuid = of_a_vm(call->type) ? &call->uuid : NULL;

	for (size_t i = 0; i < hv->nr_rules; i++)
		if (is_of_call(hv->rules[i], call->type) && strikes(hv, hv->rules[i], uuid))
			return hv->rules[i];
	return NULL;
}

int fault_add(struct hv *hv, const struct fault_rule *rule)
{
	struct fault_rule *copy, **rules;

	if ((unsigned int)rule->kind >= NR(kinds) || rule->from >= rule->until ||
		rule->percent_of > 100 || rule->percent > 100 || rule->error > 0)
		return -EINVAL;
	rules = reallocarray(hv->rules, hv->nr_rules + 1, sizeof(struct fault_rule *));
	if (!rules)
		return -ENOMEM;
	hv->rules = rules;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = *rule;
	if (!copy->error)
		copy->error = -EIO;
	hv->rules[hv->nr_rules++] = copy;
	return 0;
}

void fault_end(struct hv *hv, enum fault_kind kind)
{
	for (size_t i = 0; i < hv->nr_rules; i++)
		if (hv->rules[i]->kind == kind && hv->rules[i]->until > hv->now)
			hv->rules[i]->until = hv->now;
}

struct hv *fault_inner(const struct hv *hv)
{
	return hv->inner;
}

/* ---- what is out ---- */

static void forget(struct hv *hv, struct fault_out *out)
{
	HASH_DELETE(hh, hv->out, out);
	hv_event_clear(&out->event);
	free(out);
}

/* Its own answer, as if it came from inside. */
static void answer(struct hv *hv, struct fault_out *out, int error)
{
	out->event = (struct hv_event){ .type = hv_answer_of(out->call.type),
		.token = out->token,
		.uuid = out->call.uuid,
		.error = error };
	out->state = FAULT_ANSWERED;
	out->due = hv->now;
}

/* A call that was kept back is made; what it cannot be is an answer. */
static void release(struct hv *hv, struct fault_out *out)
{
	int r;

	out->rule = NULL;
	out->state = FAULT_INSIDE;
	r = hv->backend->submit(hv->inner, &out->call);
	if (r < 0)
		answer(hv, out, r);
}

static void release_hung(struct hv *hv, bool all)
{
	struct fault_out *out, *next;

	HASH_ITER (hh, hv->out, out, next)
		if (out->state == FAULT_HUNG && (all || out->rule->until <= hv->now))
			release(hv, out);
}

static uint64_t due_of(const struct fault_out *out)
{
	if (out->state == FAULT_HUNG)
		return out->rule->until;
	return out->state == FAULT_ANSWERED ? out->due : UINT64_MAX;
}

uint64_t fault_next(const struct hv *hv)
{
	uint64_t next = UINT64_MAX;

	for (const struct fault_out *out = hv->out; out; out = out->hh.next)
		if (due_of(out) < next)
			next = due_of(out);
	return next > hv->now ? next : hv->now;
}

void fault_advance(struct hv *hv, uint64_t now)
{
	assert(now >= hv->now);
	hv->now = now;
	release_hung(hv, false);
}

void fault_new_client(struct hv *hv)
{
	struct fault_out *out, *next;

	HASH_ITER (hh, hv->out, out, next)
		forget(hv, out);
}

/* ---- the backend ---- */

static bool fault_handles(const char *uri)
{
	return !strncmp(uri, FAULT_PREFIX, strlen(FAULT_PREFIX));
}

static int fault_open(const struct hv_params *params, struct hv **ret_hv)
{
	struct hv_params inside = *params;
	struct hv *hv;
	int r;

	if (!params->inner || !params->uri || !fault_handles(params->uri))
		return -EINVAL;
	hv = calloc(1, sizeof(*hv));
	if (!hv)
		return -ENOMEM;
	hv->backend = params->inner;
	hv->random = 1;
	inside.uri = params->uri + strlen(FAULT_PREFIX);
	inside.inner = NULL;
	r = hv->backend->open(&inside, &hv->inner);
	if (r < 0)
		free(hv);
	else
		*ret_hv = hv;
	return r;
}

static void fault_close(struct hv *hv)
{
	struct fault_seen *seen, *next;

	if (!hv)
		return;
	fault_new_client(hv);
	seen = hv->seen;
	HASH_CLEAR(hh, hv->seen);
	for (; seen; seen = next) {
		next = seen->hh.next;
		free(seen);
	}
	for (size_t i = 0; i < hv->nr_rules; i++)
		free(hv->rules[i]);
	free(hv->rules);
	hv->backend->close(hv->inner);
	free(hv);
}

static int fault_fd(struct hv *hv)
{
	return -1;
}

static int fault_submit(struct hv *hv, const struct hv_call *call)
{
	struct fault_out *out;
	int r = 0;

	if ((unsigned int)call->type >= NR(calls))
		return -EINVAL;
	out = calloc(1, sizeof(*out));
	if (!out)
		return -ENOMEM;
	out->token = call->token;
	out->call = *call;
	out->call.token = hv->next_token + 1;
	out->rule = rule_for(hv, call);
	if (out->rule && out->rule->kind == FAULT_HANG)
		out->state = FAULT_HUNG;
	else if (out->rule && out->rule->kind == FAULT_FAIL)
		answer(hv, out, out->rule->error);
	else
		r = hv->backend->submit(hv->inner, &out->call);
	if (r == 0) {
		HASH_ADD(hh, hv->out, call.token, sizeof(out->call.token), out);
		if (!out->hh.tbl)
			r = -ENOMEM; /* its answer is thrown away when it comes */
	}
	if (r < 0) {
		free(out);
		return r;
	}
	hv->next_token++;
	return 0;
}

static bool loses(struct hv *hv, const struct hv_event *event)
{
	if (event->type == HV_EVENT_DOWN || event->type == HV_EVENT_UP)
		return false;
	for (size_t i = 0; i < hv->nr_rules; i++)
		if (hv->rules[i]->kind == FAULT_LOSE && strikes(hv, hv->rules[i], &event->uuid))
			return true;
	return false;
}

/* True: *event is for who calls; false: it is kept or dropped. */
static bool take(struct hv *hv, struct hv_event *event)
{
	bool is_answer = event->type < HV_EVENT_CHANGED;
	struct fault_out *out = NULL;

	if (!is_answer) {
		if (event->type == HV_EVENT_DOWN)
			release_hung(hv, true);
		if (!loses(hv, event))
			return true;
		hv_event_clear(event);
		return false;
	}
	HASH_FIND(hh, hv->out, &event->token, sizeof(event->token), out);
	if (!out) {
		hv_event_clear(event);
		return false;
	}
	event->token = out->token;
	fault_spoil(hv, out->rule, event);
	if (out->rule && out->rule->kind == FAULT_SLOW) {
		out->event = *event;
		out->state = FAULT_ANSWERED;
		out->due = hv->now + fault_draw(hv, out->rule->delay_us / 2, out->rule->delay_us);
		return false;
	}
	forget(hv, out);
	return true;
}

/* Of those that are due, who was first. */
static struct fault_out *ready(const struct hv *hv)
{
	struct fault_out *first = NULL;

	for (struct fault_out *out = hv->out; out; out = out->hh.next)
		if (out->state == FAULT_ANSWERED && out->due <= hv->now &&
			(!first || out->due < first->due))
			first = out;
	return first;
}

static int fault_next_event(struct hv *hv, struct hv_event *ret_event)
{
	struct hv_event event;
	struct fault_out *out;
	int r;

	while ((r = hv->backend->next(hv->inner, &event)) > 0) {
		if (!take(hv, &event))
			continue;
		*ret_event = event;
		return 1;
	}
	out = ready(hv);
	if (!out)
		return r;
	*ret_event = out->event;
	out->event = (struct hv_event){ .type = HV_EVENT_NONE };
	forget(hv, out);
	return 1;
}

const struct hv_backend hv_fault = {
	.name = "fault",
	.loosens = true,
	.granule = UINT64_C(1) << 20,
	.handles = fault_handles,
	.open = fault_open,
	.close = fault_close,
	.fd = fault_fd,
	.submit = fault_submit,
	.next = fault_next_event,
};

struct hv_backend fault_table(const struct hv_backend *inner)
{
	struct hv_backend table = hv_fault;

	table.name = inner->name;
	table.loosens = inner->loosens;
	table.granule = inner->granule;
	table.silent = inner->silent;
	table.host_apart = inner->host_apart;
	return table;
}
