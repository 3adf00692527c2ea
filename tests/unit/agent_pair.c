/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See agent_pair.h. */
#include <config.h>

#include "tests/unit/agent_pair.h"

#include <check.h>
#include <string.h>

struct pair_guest g;
struct agent agent;
struct agent_channel channel;

static uint64_t test_now(void *ctx)
{
	return g.now;
}

static int test_guest(void *ctx, struct agent_guest *ret)
{
	*ret = g.guest;
	return g.guest_error;
}

static size_t test_groups(void *ctx, struct agent_group *ret, size_t nr)
{
	g.walks++;
	memcpy(ret, g.groups, g.nr_groups * sizeof(g.groups[0]));
	return g.nr_groups;
}

static int test_reclaim(
	void *ctx, const struct agent_group *group, uint64_t bytes, bool anon, uint64_t *ret_came)
{
	struct agent_group *own = &g.groups[group->id - 1];
	uint64_t *list = anon ? &own->inactive_anon : &own->inactive_file;
	uint64_t came = bytes < *list ? bytes : *list;

	if (g.batches < sizeof(g.sizes) / sizeof(g.sizes[0]))
		g.sizes[g.batches] = bytes;
	g.batches++;
	g.now += 10000;
	g.guest.psi_some_us += g.waits_us;
	if (bytes > g.largest)
		g.largest = bytes;
	if (g.hurts)
		own->psi_some_us += 50000;
	if (g.squeezes) {
		g.groups[0].psi_some_us += 5000;
		g.groups[0].restores += MIB;
	}
	if (g.stuck)
		came = 0;
	*list -= came;
	if (anon)
		g.guest.swap_free -= came;
	if (g.reads_again[group->id - 1])
		own->refaults += came;
	else if (own->old_file >= came)
		own->old_file -= came;
	g.guest.free += came;
	g.taken[group->id - 1] += came;
	*ret_came = came;
	return g.reclaim_error;
}

static int test_protect(void *ctx, const struct agent_group *group)
{
	g.protected ++;
	return g.protect_error;
}

static int test_unprotect(void *ctx)
{
	g.unprotected++;
	return g.unprotect_error;
}

static int test_send(void *ctx, const char *text, size_t length)
{
	if (g.send_error)
		return g.send_error;
	g.sent++;
	memcpy(g.last, text, length);
	g.last[length] = '\0';
	agent_channel_input(&channel, g.now, text, length);
	return 0;
}

#define BY_LISTS (PROTOCOL_CAN_ALL & ~(PROTOCOL_CAN_GENERATIONS | PROTOCOL_CAN_PROBES))

struct agent_platform platform = {
	.software = "test 1",
	.can = BY_LISTS,
	.now = test_now,
	.guest = test_guest,
	.groups = test_groups,
	.reclaim = test_reclaim,
	.protect = test_protect,
	.unprotect = test_unprotect,
	.send = test_send,
};

void setup(void)
{
	char text[PROTOCOL_MESSAGE_MAX + 3];
	size_t length;

	memset(&g, 0, sizeof(g));
	memset(&channel, 0, sizeof(channel));
	g.now = 10 * SECOND;
	g.guest = (struct agent_guest){ .total = 1024 * MIB,
		.free = 300 * MIB,
		.available = 700 * MIB,
		.active_file = 100 * MIB,
		.inactive_file = 420 * MIB,
		.active_anon = 100 * MIB };
	g.nr_groups = 3;
	g.groups[0] = (struct agent_group){ .id = 1, .name = "hot", .current = 120 * MIB };
	g.groups[0].active_file = 100 * MIB;
	g.groups[0].inactive_file = 20 * MIB;
	g.groups[1] = (struct agent_group){ .id = 2, .name = "stream", .current = 300 * MIB };
	g.groups[1].inactive_file = 300 * MIB;
	g.groups[2] = (struct agent_group){ .id = 3, .name = "old", .current = 100 * MIB };
	g.groups[2].inactive_file = 100 * MIB;
	platform.can = BY_LISTS;
	agent_start(&agent, &platform, NULL);
	ck_assert_uint_eq(g.unprotected, 1); /* what is left of before */
	g.unprotected = 0;
	length = agent_channel_open(&channel, g.now, text);
	agent_input(&agent, text, length);
}

uint64_t step(void)
{
	return agent_step(&agent);
}

void ask(uint64_t bytes, bool active, bool anon)
{
	struct hv_call call = { .type = HV_RECLAIM,
		.bytes = bytes,
		.deadline_ms = 1000,
		.active = active,
		.anon = anon };
	char text[PROTOCOL_MESSAGE_MAX + 2];
	size_t length;

	ck_assert_int_eq(agent_channel_reclaim(&channel, g.now, &call, text, &length), 0);
	agent_input(&agent, text, length);
}

void run(void)
{
	uint64_t next;

	for (int i = 0; i < 1000 && agent.request.id; i++) {
		next = step();
		if (agent.request.id && next > g.now)
			g.now = next;
	}
	ck_assert_uint_eq(agent.request.id, 0);
}

uint64_t answer(void)
{
	uint64_t came = 0;
	int error = -1;

	ck_assert(agent_channel_answer(&channel, g.now, &error, &came));
	ck_assert_int_eq(error, 0);
	return came;
}
