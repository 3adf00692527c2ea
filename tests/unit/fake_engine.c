/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "tests/unit/fake_engine.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;

void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.items[0] = (struct fake_item){ .id = MEMCG_ROOT_ID, .knobs = MEMCG_KNOBS_NONE };
	fake.nr_items = 1;
	fake.next = UINT64_MAX;
	fake.shortest = UINT64_MAX;
}

static struct fake_item *find(uint64_t id)
{
	for (size_t i = 0; i < fake.nr_items; i++)
		if (fake.items[i].id == id)
			return &fake.items[i];
	return NULL;
}

struct fake_item *fake_item(uint64_t id)
{
	struct fake_item *item = find(id);

	return item && !item->gone ? item : NULL;
}

size_t fake_nr(bool vms)
{
	size_t nr = 0;

	for (size_t i = 1; i < fake.nr_items; i++)
		nr += !fake.items[i].gone && fake.items[i].is_vm == vms;
	return nr;
}

unsigned int fake_told(enum engine_change_type type, uint64_t id)
{
	unsigned int nr = 0;

	for (size_t i = 0; i < fake.nr_changes; i++)
		nr += fake.changes[i].change.type == type && fake.changes[i].change.id == id;
	return nr;
}

static void take_new(const struct engine_change *c)
{
	struct fake_item *parent = fake_item(c->parent);

	ck_assert_msg(!find(c->id), "id %lu twice", (unsigned long)c->id);
	ck_assert_msg(parent && !parent->is_vm, "no parent for %lu", (unsigned long)c->id);
	ck_assert_uint_lt(fake.nr_items, FAKE_ITEMS);
	fake.items[fake.nr_items++] = (struct fake_item){
		.id = c->id,
		.parent = c->parent,
		.is_vm = c->type == ENGINE_VM_NEW,
		.knobs = c->knobs,
		.attrs = c->attrs,
		.state = c->state,
	};
}

static void take_change(const struct engine_change *c)
{
	struct fake_item *item = fake_item(c->id);

	if (c->type == ENGINE_GROUP_NEW || c->type == ENGINE_VM_NEW) {
		take_new(c);
		return;
	}
	ck_assert_msg(item != NULL, "change %d of nobody", (int)c->type);
	ck_assert(item->is_vm || c->type == ENGINE_GROUP_KNOBS || c->type == ENGINE_GROUP_GONE);
	switch (c->type) {
	case ENGINE_GROUP_KNOBS:
		item->knobs = c->knobs;
		break;
	case ENGINE_VM_ATTRS:
		item->attrs = c->attrs;
		break;
	case ENGINE_VM_STATE:
		item->state = c->state;
		break;
	case ENGINE_VM_CANCEL:
		item->cancels++;
		break;
	case ENGINE_VM_RELEASE:
		break;
	case ENGINE_GROUP_GONE:
		for (size_t i = 0; i < fake.nr_items; i++)
			ck_assert(fake.items[i].gone || fake.items[i].parent != c->id);
		item->gone = true;
		break;
	default:
		item->gone = true;
		break;
	}
}

static void take_input(const struct engine_input *input)
{
	for (size_t i = 0; i < input->nr_changes; i++) {
		const struct engine_change *c = &input->changes[i];

		ck_assert_uint_lt(fake.nr_changes, FAKE_LOG);
		fake.changes[fake.nr_changes++] = (struct fake_change){ fake.ticks, *c };
		if (!fake.error || c->id != fake.bad)
			take_change(c);
	}
	for (size_t i = 0; i < input->nr_samples; i++) {
		struct fake_item *item = fake_item(input->samples[i].id);

		if (!item && fake.error)
			continue;
		ck_assert_msg(item && item->is_vm, "sample of nobody");
		item->sample = input->samples[i];
		item->samples++;
	}
	for (size_t i = 0; i < input->nr_results; i++) {
		ck_assert(fake_item(input->results[i].id) || fake.error);
		ck_assert_uint_lt(fake.nr_results, 64);
		fake.results[fake.nr_results++] = input->results[i];
	}
	for (size_t i = 0; i < input->nr_requests; i++) {
		ck_assert_uint_lt(fake.nr_requests, 128);
		fake.requests[fake.nr_requests++] = input->requests[i];
	}
	if (input->pool)
		fake.pool = *input->pool;
}

int engine_tick(
	struct engine *engine, const struct engine_input *input, struct engine_output *ret_output)
{
	static struct engine_action actions[8];
	static struct engine_event events[16];
	bool in_core = fake.in_core;
	int r = fake.error;

	fake.in_core = false;
	if (fake.ticks == 0)
		fake.first_tick = input->now;
	else if (input->now - fake.last_tick < fake.shortest)
		fake.shortest = input->now - fake.last_tick;
	fake.ticks++;
	fake.last_tick = input->now;
	if (r != -ENOMEM)
		take_input(input);
	fake.error = 0;

	memcpy(actions, fake.actions, sizeof(actions));
	memcpy(events, fake.events, sizeof(events));
	*ret_output = (struct engine_output){
		.actions = actions,
		.nr_actions = fake.nr_actions,
		.events = events,
		.nr_events = fake.nr_events,
		.next = fake.next,
	};
	fake.nr_actions = fake.nr_events = 0;
	fake.in_core = in_core;
	return r;
}

size_t engine_charges(struct engine *engine, const struct charge_seen **ret_charges)
{
	return 0; /* nobody charges page by page */
}

int engine_view(const struct engine *engine, uint64_t id, struct engine_view *ret_view)
{
	const struct fake_item *item = fake_item(id);

	if (!item)
		return -ENOENT;
	*ret_view = (struct engine_view){
		.id = id,
		.parent = item->parent,
		.state = item->state,
		.excess = item->is_vm ? fake.excess : 0,
		.set = { .floor = item->is_vm ? fake.floor : 0 },
		.capped = item->is_vm && fake.capped,
		.owed = 77,
	};
	return 0;
}

void engine_pool_view(const struct engine *engine, struct engine_pool_view *ret_view)
{
	*ret_view = fake.view;
}

int engine_new(const struct engine_config *config, struct engine **ret_engine)
{
	if (config->granule == 0)
		return -EINVAL;
	*ret_engine = (struct engine *)&fake;
	return 0;
}

void engine_free(struct engine *engine)
{
}

int engine_set_config(struct engine *engine, const struct engine_config *config)
{
	if (config->granule == 0 || config->speed == UINT64_MAX)
		return -EINVAL;
	fake.configs++;
	fake.config = *config;
	return 0;
}

void engine_config_default(struct engine_config *ret_config)
{
	*ret_config = (struct engine_config){ .granule = 256 };
}

const char *engine_vm_state_name(enum engine_vm_state state)
{
	static const char *const names[] = { "running", "arriving", "paused", "no-device",
		"no-driver", "not-answering" };

	return (size_t)state < sizeof(names) / sizeof(names[0]) ? names[state] : "another";
}

bool engine_vm_state_gives(enum engine_vm_state state)
{
	return state == ENGINE_VM_RUNNING || state == ENGINE_VM_THROTTLED ||
	       state == ENGINE_VM_LIMITED || state == ENGINE_VM_STRICT_NUMA;
}

const char *engine_reason_name(enum engine_reason_type type)
{
	return type == ENGINE_CUT ? "cut" : type == ENGINE_RELEASE ? "release" : "other";
}
