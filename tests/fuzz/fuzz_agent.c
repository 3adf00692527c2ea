/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a guest sends to the host, and what a host sends to an agent: bytes in pieces of any size.
 * Nothing is believed that cannot be, and no more is read than the bounds say.
 */
#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest-agent/agent.h"
#include "hv/agent_channel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t now(void *ctx)
{
	return *(uint64_t *)ctx += 1000;
}

static int guest(void *ctx, struct agent_guest *ret_guest)
{
	/* Each way of ageing in turn. */
	*ret_guest = (struct agent_guest){ .total = 1 << 30,
		.available = 1 << 29,
		.aging = (enum agent_aging)(*(uint64_t *)ctx / 16 % 3) };
	return 0;
}

static size_t groups(void *ctx, struct agent_group *ret_groups, size_t nr)
{
	ret_groups[0] = (struct agent_group){ .id = 1,
		.name = "a",
		.current = 1 << 28,
		.inactive_file = 1 << 28,
		.old_file = 1 << 27 };
	return 1;
}

static int reclaim(
	void *ctx, const struct agent_group *group, uint64_t bytes, bool anon, uint64_t *ret_came)
{
	if (bytes > group->inactive_file)
		abort();
	*ret_came = bytes;
	return 0;
}

static int protect(void *ctx, const struct agent_group *group)
{
	return 0;
}

static int unprotect(void *ctx)
{
	return 0;
}

static int send_text(void *ctx, const char *text, size_t length)
{
	struct protocol_message m;
	const char *why;

	/* What an agent says can be read, whatever it was told. */
	if (length > PROTOCOL_MESSAGE_MAX + 1 || protocol_parse(text, length - 1, &m, &why) < 0)
		abort();
	return 0;
}

static const struct agent_platform platform = {
	.software = "fuzz",
	.can = PROTOCOL_CAN_ALL,
	.now = now,
	.guest = guest,
	.groups = groups,
	.reclaim = reclaim,
	.protect = protect,
	.unprotect = unprotect,
	.send = send_text,
};

static void check_text(const char *text)
{
	for (const char *c = text; *c; c++)
		if (*c < ' ' || *c > '~' || c - text >= HV_AGENT_TEXT)
			abort();
}

static void check(const struct agent_channel *ch)
{
	const struct hv_agent *a = &ch->agent;

	check_text(a->software);
	check_text(a->fault);
	if (a->lists.active_file > PROTOCOL_NUMBER_MAX || a->floor > PROTOCOL_NUMBER_MAX ||
		a->need > PROTOCOL_NUMBER_MAX)
		abort();
}

/* The first byte says how large the pieces are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[PROTOCOL_MESSAGE_MAX + 3];
	static struct agent_channel channel;
	static struct agent agent;
	uint64_t clock = 1, again;
	size_t piece;

	if (size == 0)
		return 0;
	piece = (size_t)data[0] + 1;
	memset(&channel, 0, sizeof(channel));
	agent_channel_open(&channel, clock, text);
	agent_start(&agent, &platform, &clock);
	for (size_t at = 1; at < size; at += piece) {
		const char *bytes = (const char *)data + at;
		size_t length = size - at < piece ? size - at : piece;

		if (agent_channel_room(&channel, clock, &again) == 0)
			clock = again;
		agent_channel_input(&channel, clock, bytes, length);
		check(&channel);
		agent_input(&agent, bytes, length);
		agent_step(&agent);
	}
	for (int i = 0; i < 64; i++)
		agent_step(&agent);
	agent_stop(&agent);
	return 0;
}
