/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ballastctl explain for people: sentences, each built from the numbers that the decision was
 * computed from. See ballastctl.h.
 */
#include <config.h>

#include "tools/ballastctl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "policy/engine.h"

static const char *whose(struct json_object *reason)
{
	const char *root = text(reason, "root");

	return strcmp(root, "/") != 0 ? root : "the pool";
}

static void say_pool(struct json_object *reason)
{
	printf("    the pool had %s free (low watermark %s, high %s) and needed %s",
		TEXT_SIZE(reason, "free"), TEXT_SIZE(reason, "wm_low"),
		TEXT_SIZE(reason, "wm_high"), TEXT_SIZE(reason, "need"));
	if (number(reason, "growth"))
		printf(", falling by up to %s a second", TEXT_SIZE(reason, "growth"));
}

/* Why memory was needed. */
static void say_need(struct json_object *reason)
{
	if (number(reason, "job"))
		printf("    ballastctl reclaim asked %s for %s", whose(reason),
			TEXT_SIZE(reason, "need"));
	else if (!strcmp(text(reason, "root"), "/"))
		say_pool(reason);
	else
		printf("    %s was over its max and needed %s", whose(reason),
			TEXT_SIZE(reason, "need"));
	if (number(reason, "owed"))
		printf(", %s of it already on the way", TEXT_SIZE(reason, "owed"));
	puts(".");
}

static const char *step_words(uint64_t step)
{
	switch (step) {
	case 1:
		return "the cold memory of those in excess of their soft limit";
	case 2:
		return "also the active memory of those in excess";
	case 3:
		return "those in excess could not give enough: the cold memory of all";
	case 4:
		return "cold memory was not enough: the active memory of all";
	default:
		return "";
	}
}

static void say_share(struct json_object *reason)
{
	uint64_t step = number(reason, "step");

	printf("    Step %" PRIu64
	       ", %s: %s to come, %s could be given, %s of it here; its share is %s",
		step, step_words(step), TEXT_SIZE(reason, "step_need"),
		TEXT_SIZE(reason, "step_cap"), TEXT_SIZE(reason, "cap"),
		TEXT_SIZE(reason, "share"));
	if (number(reason, "waiting"))
		printf(", of which %s wait for pace", TEXT_SIZE(reason, "waiting"));
	printf(".\n    It used %s, and does not go below %s here.\n", TEXT_SIZE(reason, "usage"),
		TEXT_SIZE(reason, "bound"));
}

/* Decisions other than cuts, in words. A test goes through all that there are. */
static const char *const kinds[ENGINE_REASON_NR] = {
	[ENGINE_CANCEL] = "the ask ended: deadline passed, need over, or the VM's state changed",
	[ENGINE_LOOSEN] = "the cut has come: the cap is lifted, it may use memory again",
	[ENGINE_FEED] = "the guest shows pressure and is not in excess: it gets memory at once",
	[ENGINE_GIFT] = "the pool has more than its high watermark free: memory goes back",
	[ENGINE_AGAIN] = "the balloon rests above the target: asked once more",
	[ENGINE_RELEASE] = "the operator released it: it gets back what was taken",
	[ENGINE_WISH] =
		"somebody else set it, or memory was plugged: that is its ceiling, on record",
};

/* NULL: a decision that only a later daemon makes. */
static const char *kind_words(const char *type)
{
	for (int i = 0; i < ENGINE_REASON_NR; i++)
		if (!strcmp(engine_reason_name((enum engine_reason_type)i), type))
			return kinds[i];
	return NULL;
}

static void say_reason(struct json_object *reason, uint64_t now)
{
	const char *type = text(reason, "type"), *words = kind_words(type);
	uint64_t at = number(reason, "at_us");
	bool inside = false;

	json_get_bool(reason, "inside", &inside);
	printf("  %.1f s ago: %s %s -> %s (%s)\n", now > at ? (double)(now - at) / 1e6 : 0.0,
		inside ? "freed by its agent, no target: usage" : "target",
		number(reason, "from") ? TEXT_SIZE(reason, "from") : TEXT_SIZE(reason, "actual"),
		TEXT_SIZE(reason, "to"), type);
	if (!strcmp(type, "cut")) {
		say_need(reason);
		say_share(reason);
		return;
	}
	if (words)
		printf("    %s.\n", words);
	printf("    It used %s of %s; the pool had %s free.\n", TEXT_SIZE(reason, "usage"),
		TEXT_SIZE(reason, "actual"), TEXT_SIZE(reason, "free"));
}

static void say_limit(struct json_object *vm)
{
	const char *via = text(vm, "excess_via"), *source = text(vm, "soft_limit_source");
	uint64_t limit;

	if (json_get_u64(vm, "soft_limit", &limit) < 0)
		printf("no soft limit");
	else
		printf("soft limit %s (from %s)", TEXT_SIZE(vm, "soft_limit"), source);
	if (number(vm, "excess"))
		printf(", over it by %s", TEXT_SIZE(vm, "excess"));
	else if (via[0])
		printf(", in excess because %s is", via);
	else
		printf(", not in excess");
}

/* What stands in the way of asking it. */
static void say_hold(struct json_object *vm)
{
	const char *hold = text(vm, "hold");

	if (!hold[0])
		return;
	if (!strcmp(hold, "state"))
		printf("  It gives nothing now: it is %s.\n", text(vm, "state"));
	else
		printf("  It gives nothing now: %s.\n", hold);
}

static void say_vm(struct json_object *vm, uint64_t now)
{
	struct json_object *reasons = NULL;
	size_t nr = 0;

	printf("%s (%s), %s, in %s\n", text(vm, "name"), text(vm, "uuid"), text(vm, "state"),
		text(vm, "group"));
	printf("  Uses %s of the %s that the balloon leaves it; ", TEXT_SIZE(vm, "usage"),
		TEXT_SIZE(vm, "actual"));
	say_limit(vm);
	puts(".");
	printf("  The guest says that it uses %s; floor %s, margin %s.\n",
		TEXT_SIZE(vm, "guest_used"), TEXT_SIZE(vm, "floor"), TEXT_SIZE(vm, "margin"));
	say_hold(vm);
	if (json_get_array(vm, "reasons", &reasons) == 0)
		nr = json_object_array_length(reasons);
	if (nr == 0)
		puts("  Nothing was decided about it yet.");
	for (size_t i = 0; i < nr; i++)
		say_reason(json_object_array_get_idx(reasons, i), now);
}

void show_reasons(struct json_object *explained)
{
	struct json_object *vms = NULL;
	size_t nr = 0;

	if (!strcmp(text(explained, "mode"), "observe"))
		puts("ballastd only observes: nothing is asked of anyone.\n");
	if (json_get_array(explained, "vms", &vms) == 0)
		nr = json_object_array_length(vms);
	if (nr == 0)
		puts("no VMs");
	for (size_t i = 0; i < nr; i++) {
		if (i > 0)
			putchar('\n');
		say_vm(json_object_array_get_idx(vms, i), number(explained, "now_us"));
	}
}
