/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose word counts for a VM: rules, precedence, bounds, the pool's room for min, new words. */
#include <config.h>

#include "tests/unit/host.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hv/core_internal.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static void use_rules(struct core_rule *rules, size_t nr)
{
	host.config.rules = rules;
	host.config.nr_rules = nr;
}

static struct core_resolved resolve(const struct hv_info *info)
{
	struct core_resolved resolved;

	ck_assert_int_eq(core_resolve(&host.config, info, PAGES_UNLIMITED, &resolved), 0);
	return resolved;
}

static const struct core_word *counts(const struct core_resolved *r, enum core_knob knob)
{
	return &r->said[knob].words[r->said[knob].counts];
}

static struct hv_knobs soft(uint64_t bytes)
{
	return (struct hv_knobs){ .has_soft_limit = true, .soft_limit = bytes };
}

/* ---- rules ---- */

START_TEST(first_rule_that_matches_and_says_a_knob_counts_for_that_knob)
{
	struct core_rule rules[] = {
		{ .name = (char *)"db", .match_name = (char *)"db-*", .knobs = soft(GIB) },
		{ .name = (char *)"low",
			.match_name = (char *)"web-?",
			.knobs = { .has_low = true, .low = MIB } },
		{ .name = (char *)"web",
			.match_name = (char *)"web-*",
			.knobs = { .has_soft_limit = true,
				.soft_limit = 2 * GIB,
				.has_low = true,
				.low = 2 * MIB,
				.has_min = true,
				.min = 4097 } },
		{ .name = (char *)"rest", .knobs = soft(3 * GIB) },
	};
	struct hv_info info = { .name = (char *)"web-1", .maximum = 4 * GIB };
	struct core_resolved r;

	use_rules(rules, NR(rules));
	r = resolve(&info);
	ck_assert_uint_eq(r.knobs.soft_limit, PAGES(2 * GIB));
	ck_assert_str_eq(r.soft_source, "rule");
	ck_assert_str_eq(counts(&r, CORE_SOFT_LIMIT)->rule, "web");
	ck_assert_uint_eq(r.knobs.low, PAGES(MIB));
	ck_assert_str_eq(counts(&r, CORE_LOW)->rule, "low");
	ck_assert_uint_eq(r.knobs.min, 2); /* protections round up */
	ck_assert_uint_eq(r.knobs.max, PAGES_UNLIMITED);

	info.name = (char *)"other";
	r = resolve(&info);
	ck_assert_str_eq(counts(&r, CORE_SOFT_LIMIT)->rule, "rest");
	ck_assert_uint_eq(r.knobs.low, 0);
}
END_TEST

START_TEST(rules_match_by_name_uuid_and_group_together)
{
	struct core_rule rule = { .name = (char *)"r", .knobs = soft(GIB) };
	struct hv_info info = { .uuid = { { 0x6b, 0xa7 } },
		.name = (char *)"web",
		.maximum = GIB,
		.partition = (char *)"/machine",
		.metadata = { .has_group = true, .group = (char *)"/prod//web/" } };

	use_rules(&rule, 1);
	ck_assert_str_eq(resolve(&info).soft_source, "rule");
	rule.match_uuid = (char *)"6BA7*"; /* of no case */
	ck_assert_str_eq(resolve(&info).soft_source, "rule");
	rule.match_uuid = (char *)"7*";
	ck_assert_str_eq(resolve(&info).soft_source, "none");
	rule.match_uuid = NULL;
	rule.match_group = (char *)"/prod/*";
	ck_assert_str_eq(resolve(&info).soft_source, "rule");
	rule.match_group = (char *)"/prod";
	ck_assert_str_eq(resolve(&info).soft_source, "none");
	rule.match_group = (char *)"/p*"; /* goes over slashes */
	ck_assert_str_eq(resolve(&info).soft_source, "rule");
	rule.match_name = (char *)"[ab]*"; /* all must match */
	ck_assert_str_eq(resolve(&info).soft_source, "none");
	rule.match_name = (char *)"["; /* a glob that is none matches itself at best */
	ck_assert_str_eq(resolve(&info).soft_source, "none");

	rule.match_name = NULL;
	info.metadata.has_group = false;
	rule.match_group = (char *)"/machine";
	ck_assert_str_eq(resolve(&info).soft_source, "rule");
	info.partition = NULL;
	rule.match_group = (char *)"/";
	ck_assert_str_eq(resolve(&info).soft_source, "rule");
}
END_TEST

START_TEST(metadata_come_before_memtune_before_rules_before_defaults)
{
	struct core_rule rule = { .name = (char *)"r", .knobs = soft(300 * MIB) };
	struct hv_info info = {
		.maximum = GIB, .metadata = soft(100 * MIB), .memtune = soft(200 * MIB)
	};
	static const char *const sources[] = { "metadata", "memtune", "rule", "default", "none" };
	const struct core_knob_said *said;
	struct core_resolved r;

	use_rules(&rule, 1);
	host.config.default_soft_limit_percent = 50;
	r = resolve(&info);
	said = &r.said[CORE_SOFT_LIMIT];
	/* Every word that was overridden is there, in its order. */
	ck_assert_uint_eq(said->nr, 4);
	ck_assert_uint_eq(said->counts, 0);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_str_eq(core_source_name(said->words[i].source), sources[i]);
		ck_assert_uint_eq(said->words[i].value, i < 3 ? (i + 1) * 100 * MIB : 512 * MIB);
		ck_assert_ptr_null(said->words[i].refused);
	}
	for (size_t i = 0; i < 5; i++) {
		r = resolve(&info);
		ck_assert_str_eq(r.soft_source, sources[i]);
		if (i == 0)
			info.metadata.has_soft_limit = false;
		else if (i == 1)
			info.memtune.has_soft_limit = false;
		else if (i == 2)
			host.config.nr_rules = 0;
		else
			host.config.default_soft_limit_percent = 0;
	}
	ck_assert_uint_eq(resolve(&info).knobs.soft_limit, PAGES_UNLIMITED);
}
END_TEST

/* ---- enforce ---- */

START_TEST(rule_that_enforces_bounds_what_metadata_and_memtune_say)
{
	struct core_rule rules[] = {
		{ .name = (char *)"first", .knobs = soft(700 * MIB) },
		{ .name = (char *)"bound",
			.enforce = true,
			.knobs = { .has_soft_limit = true,
				.soft_limit = 500 * MIB,
				.has_min = true,
				.min = 100 * MIB,
				.has_max = true,
				.max = 900 * MIB,
				.has_manage = true,
				.manage = HV_MANAGE_ACT,
				.has_guest_swap = true,
				.has_group = true,
				.group = (char *)"/tenants" } },
	};
	struct hv_info info = { .maximum = GIB, .metadata = soft(400 * MIB) };
	struct core_resolved r;

	use_rules(rules, NR(rules));
	r = resolve(&info); /* less is free to be said */
	ck_assert_uint_eq(r.knobs.soft_limit, PAGES(400 * MIB));
	ck_assert(!counts(&r, CORE_SOFT_LIMIT)->enforced);

	info.metadata.soft_limit = 600 * MIB;
	info.memtune = soft(50 * MIB);
	r = resolve(&info);
	ck_assert_uint_eq(r.knobs.soft_limit, PAGES(500 * MIB));
	ck_assert(counts(&r, CORE_SOFT_LIMIT)->enforced);
	ck_assert_str_eq(counts(&r, CORE_SOFT_LIMIT)->rule, "bound");
	ck_assert_int_eq(r.said[CORE_SOFT_LIMIT].words[1].source, CORE_FROM_METADATA);
	ck_assert_int_eq(r.said[CORE_SOFT_LIMIT].words[2].source, CORE_FROM_MEMTUNE);

	info.metadata.soft_limit = HV_UNLIMITED; /* "none" is more than anything */
	ck_assert_uint_eq(resolve(&info).knobs.soft_limit, PAGES(500 * MIB));
	info.metadata.has_soft_limit = false;
	info.memtune.soft_limit = 600 * MIB;
	ck_assert_uint_eq(resolve(&info).knobs.soft_limit, PAGES(500 * MIB));
	/* Where neither says anything the first rule counts, as ever. */
	info.memtune.has_soft_limit = false;
	ck_assert_uint_eq(resolve(&info).knobs.soft_limit, PAGES(700 * MIB));

	info.metadata = (struct hv_knobs){ .has_min = true,
		.min = 200 * MIB,
		.has_max = true,
		.max = HV_UNLIMITED,
		.has_manage = true,
		.manage = HV_MANAGE_NO,
		.has_guest_swap = true,
		.guest_swap = true,
		.has_group = true,
		.group = (char *)"/elsewhere" };
	r = resolve(&info);
	ck_assert_uint_eq(r.knobs.min, PAGES(100 * MIB));
	ck_assert_uint_eq(r.knobs.max, PAGES(900 * MIB));
	ck_assert(r.attrs.act); /* nobody opts out */
	ck_assert(!r.attrs.guest_swap);
	ck_assert_str_eq(r.group, "/tenants");
	info.metadata.min = 0;
	ck_assert_uint_eq(resolve(&info).knobs.min, 0);
}
END_TEST

START_TEST(group_is_metadatas_then_a_rules_then_the_partition)
{
	struct core_rule rule = { .name = (char *)"r",
		.knobs = { .has_group = true, .group = (char *)"/rule" } };
	struct hv_info info = { .maximum = GIB,
		.partition = (char *)"/machine",
		.metadata = { .has_group = true, .group = (char *)"/own" } };
	struct core_resolved r;

	use_rules(&rule, 1);
	ck_assert_str_eq(resolve(&info).group, "/own");
	info.metadata.group = (char *)"own"; /* refused alone: the next counts */
	r = resolve(&info);
	ck_assert_str_eq(r.group, "/rule");
	ck_assert_ptr_nonnull(r.said[CORE_GROUP].words[0].refused);
	ck_assert_uint_eq(r.said[CORE_GROUP].counts, 1);
	info.metadata.has_group = false;
	ck_assert_str_eq(resolve(&info).group, "/rule");
	host.config.nr_rules = 0;
	r = resolve(&info);
	ck_assert_str_eq(r.group, "/machine");
	ck_assert_int_eq(counts(&r, CORE_GROUP)->source, CORE_FROM_PARTITION);
}
END_TEST

/* ---- what contradicts itself ---- */

START_TEST(max_of_a_rule_below_min_of_metadata_gives_way_and_the_next_counts)
{
	struct core_rule rules[] = {
		{ .name = (char *)"a", .knobs = { .has_max = true, .max = 100 * MIB } },
	};
	struct hv_info info = { .maximum = GIB, .metadata = { .has_min = true, .min = 200 * MIB } };
	struct core_resolved r;

	use_rules(rules, NR(rules));
	r = resolve(&info);
	ck_assert_uint_eq(r.knobs.min, PAGES(200 * MIB));
	ck_assert_uint_eq(r.knobs.max, PAGES_UNLIMITED);
	ck_assert_str_eq(r.said[CORE_MAX].words[0].refused, "it is below min");
	ck_assert_str_eq(r.problem, "min 200 MiB is over max 100 MiB: max is not used");
}
END_TEST

/* BR-81, and what the design has of it. */
START_TEST(soft_limit_below_min_or_over_max_is_legal)
{
	struct hv_info info = { .maximum = GIB,
		.metadata = { .has_min = true,
			.min = 512 * MIB,
			.has_soft_limit = true,
			.soft_limit = 256 * MIB } };
	struct core_resolved r = resolve(&info);

	ck_assert_uint_eq(r.knobs.soft_limit, PAGES(256 * MIB));
	ck_assert_uint_eq(r.knobs.min, PAGES(512 * MIB));
	ck_assert_str_eq(r.problem, "");
	info.metadata = (struct hv_knobs){
		.has_soft_limit = true, .soft_limit = 768 * MIB, .has_max = true, .max = 512 * MIB
	};
	r = resolve(&info);
	ck_assert_uint_eq(r.knobs.soft_limit, PAGES(768 * MIB));
	ck_assert_uint_eq(r.knobs.max, PAGES(512 * MIB));
	ck_assert_str_eq(r.problem, "");
}
END_TEST

/* BR-04: (2^63 - 1) KiB and what else stands for "none" is no figure to count with. BR-106. */
START_TEST(unlimited_is_no_limit_and_the_next_source_decides)
{
	struct core_rule rule = { .name = (char *)"r", .knobs = soft(GIB) };
	struct hv_info info = { .maximum = 10 * GIB, .memtune = soft(HV_UNLIMITED) };

	ck_assert_uint_eq(resolve(&info).knobs.soft_limit, PAGES_UNLIMITED);
	use_rules(&rule, 1);
	ck_assert_uint_eq(resolve(&info).knobs.soft_limit, PAGES(GIB));
}
END_TEST

/* BR-85: 3.6 GiB of memtune, rounded up to pages, on either kind of host. */
START_TEST(memtunes_soft_limit_is_rounded_up_to_pages)
{
	struct hv_info info = { .maximum = 4 * GIB, .memtune = soft(3774874 * UINT64_C(1024)) };
	struct core_resolved r = resolve(&info);

	ck_assert_str_eq(r.soft_source, "memtune");
	ck_assert_uint_eq(r.knobs.soft_limit, 943719); /* 3774874 KiB are 943718.5 pages */
}
END_TEST

/* ---- what is seen of it ---- */

START_TEST(view_has_every_knob_with_its_source_and_warns_of_what_does_nothing)
{
	struct host_vm *vm = host_vm(0);
	struct core_knobs_view view;

	fake.floor = PAGES(512 * MIB);
	vm->metadata = (struct hv_knobs){ .has_soft_limit = true,
		.soft_limit = 10 * MIB, /* BR-61 */
		.has_low = true,
		.low = 20 * MIB,
		.has_min = true,
		.min = MIB, /* BR-124 */
		.has_max = true,
		.max = 100 * MIB };
	vm->problem = "group 'x' is not used";
	host_up();
	host_run(5 * SECOND);
	ck_assert_int_eq(core_vm_knobs(host.core, 4711, &view), -ENOENT);
	ck_assert_int_eq(core_vm_knobs(host.core, host_id(vm), &view), 0);
	for (enum core_knob knob = 0; knob < CORE_KNOBS; knob++) {
		ck_assert_ptr_nonnull(core_knob_name(knob));
		ck_assert_uint_gt(view.knobs[knob].nr, 0);
		ck_assert_uint_lt(view.knobs[knob].counts, view.knobs[knob].nr);
	}
	ck_assert_str_eq(view.problem, "group 'x' is not used");
	ck_assert_uint_eq(view.nr_warnings, 4);
	ck_assert_str_eq(view.warnings[1], "soft-limit 10 MiB (metadata) is below the floor 512 "
					   "MiB: nothing is taken below the floor");
	ck_assert_str_eq(view.warnings[2],
		"min 1 MiB (metadata) changes nothing: the floor 512 MiB is higher");
	ck_assert_str_eq(view.warnings[3],
		"max 100 MiB (metadata) is below the floor 512 MiB: it cannot be kept to");
	ck_assert_ptr_nonnull(strstr(view.warnings[0], "is below low 20 MiB"));
	/* And in the log once, until a figure changes. */
	host_run(60 * SECOND);
	ck_assert_uint_eq(host_said("soft-limit 10 MiB (metadata) is below the floor"), 1);
	vm->metadata.soft_limit = 11 * MIB;
	host_run(60 * SECOND);
	ck_assert_uint_eq(host_said("soft-limit 11 MiB (metadata) is below the floor"), 1);
}
END_TEST

/* Of 20 groups 18 have it; 16 are named. */
START_TEST(group_whose_soft_limit_is_below_its_low_is_said_when_the_configuration_is_taken)
{
	struct core_group_knobs groups[20];
	char paths[20][8];

	for (size_t i = 0; i < NR(groups); i++) {
		snprintf(paths[i], sizeof(paths[i]), "/g%zu", i);
		groups[i] = CORE_GROUP_KNOBS_NONE;
		groups[i].path = paths[i];
		groups[i].knobs.low = PAGES(20 * MIB);
		groups[i].knobs.soft_limit = PAGES((i < 18 ? 10 : 20) * MIB);
	}
	host.config.groups = groups;
	host.config.nr_groups = NR(groups);
	host_up();
	host_run(60 * SECOND);
	ck_assert_uint_eq(host_said("group /g0: soft-limit 10 MiB is below low 20 MiB: what is "
				    "between is kept as long as others without such protection can "
				    "give"),
		1);
	ck_assert_uint_eq(host_said("is below low 20 MiB"), 16);
	ck_assert_uint_eq(host_said("the soft-limit of 2 more groups is below their low"), 1);

	host.config.nr_groups = 1;
	ck_assert_int_eq(core_set_config(host.core, host.now, &host.config), 0);
	ck_assert_uint_eq(host_said("group /g0: soft-limit 10 MiB is below low 20 MiB"), 2);
	groups[0].knobs.soft_limit = PAGES(20 * MIB);
	ck_assert_int_eq(core_set_config(host.core, host.now, &host.config), 0);
	ck_assert_uint_eq(host_said("is below low 20 MiB"), 17);
	ck_assert_uint_eq(host_said("more group"), 1);
}
END_TEST

/* ---- the pool's room for min ---- */

static void want_min(struct host_vm *vm, uint64_t bytes)
{
	vm->metadata.has_min = true;
	vm->metadata.min = bytes;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(200000);
}

/* BR-23: 768 MiB of 128 GiB. */
START_TEST(vm_below_its_floor_is_told_once_and_shown)
{
	struct host_vm *vm = host_vm(0);
	struct core_knobs_view view;

	fake.floor = PAGES(64 * GIB);
	vm->maximum = 128 * GIB;
	vm->actual = 768 * MIB;
	host_up();
	host_run(60 * SECOND);
	ck_assert_uint_eq(
		host_said("it has 768 MiB, less than its floor 64 GiB: nothing is taken of it"), 1);
	ck_assert_int_eq(core_vm_knobs(host.core, host_id(vm), &view), 0);
	ck_assert_ptr_nonnull(
		strstr(view.warnings[view.nr_warnings - 1], "less than its floor 64 GiB"));
}
END_TEST

START_TEST(newest_min_that_brings_the_sum_over_the_pool_is_refused_loudly)
{
	struct host_vm *a, *b;
	struct core_knobs_view view;

	host.config.pool_host = false;
	host.config.pool_size = 2 * GIB;
	a = host_vm(0);
	b = host_vm(1);
	host_up();
	want_min(a, GIB);
	want_min(b, GIB);
	ck_assert_uint_eq(host_item(a)->knobs.min, PAGES(GIB));
	ck_assert_uint_eq(host_item(b)->knobs.min, PAGES(GIB));
	want_min(b, GIB + 4096);
	ck_assert_uint_eq(host_item(a)->knobs.min, PAGES(GIB));
	ck_assert_uint_eq(host_item(b)->knobs.min, 0);
	ck_assert_uint_eq(host_said("vm01: of its settings this is not used: min 1 GiB (metadata): "
				    "with it the min of all VMs would be over the pool"),
		1);
	ck_assert_int_eq(core_vm_knobs(host.core, host_id(b), &view), 0);
	ck_assert_ptr_nonnull(view.knobs[CORE_MIN].words[0].refused);
	ck_assert_ptr_nonnull(strstr(view.problem, "there is room for 1 GiB"));

	/* When there is room again it is taken, without anybody saying it anew. */
	want_min(a, 512 * MIB);
	host_run(6 * SECOND);
	ck_assert_uint_eq(host_item(b)->knobs.min, PAGES(GIB) + 1);
	/* One that has left takes its min with it. */
	host_gone(1);
	host_run(6 * SECOND);
	want_min(a, 2 * GIB);
	ck_assert_uint_eq(host_item(a)->knobs.min, PAGES(2 * GIB));
}
END_TEST

START_TEST(min_that_was_taken_while_the_pool_was_not_known_is_looked_at_once_it_is)
{
	const struct hv_knobs knobs = { .has_min = true, .min = 40 * GIB };
	struct host_vm *a = host_vm(0), *b = host_vm(1);

	a->maximum = b->maximum = 48 * GIB;
	a->metadata = b->metadata = knobs;
	host.config.pool_host = true;
	host.host_error = -EIO;
	host_up();
	host_run(3 * SECOND);
	ck_assert_uint_eq(host_item(a)->knobs.min, PAGES(40 * GIB));
	ck_assert_uint_eq(host_item(b)->knobs.min, PAGES(40 * GIB));
	host.host_error = 0; /* 64 GiB, and 2 GiB of them are the host's own */
	host_run(12 * SECOND);
	ck_assert_uint_eq(host_item(a)->knobs.min + host_item(b)->knobs.min, PAGES(40 * GIB));
	/* Who has it keeps it, also while the pool is not known once more. */
	host.host_error = -EIO;
	host_run(12 * SECOND);
	host.host_error = 0;
	host_run(12 * SECOND);
	ck_assert_uint_eq(host_item(a)->knobs.min + host_item(b)->knobs.min, PAGES(40 * GIB));
}
END_TEST

START_TEST(min_of_a_group_counts_as_far_as_it_is_over_those_of_its_vms)
{
	struct core_group_knobs groups[] = {
		{ (char *)"/prod", { PAGES_UNLIMITED, PAGES(GIB), 0, PAGES_UNLIMITED },
			HV_MANAGE_ACT },
	};
	struct host_vm *in, *out;

	host.config.pool_host = false;
	host.config.pool_size = 2 * GIB;
	host.config.groups = groups;
	host.config.nr_groups = 1;
	in = host_vm(0);
	out = host_vm(1);
	in->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/prod/web" };
	host_up();
	want_min(out, GIB);
	ck_assert_uint_eq(host_item(out)->knobs.min, PAGES(GIB));
	want_min(in, GIB); /* within the group's own */
	ck_assert_uint_eq(host_item(in)->knobs.min, PAGES(GIB));
	want_min(in, GIB + MIB);
	ck_assert_uint_eq(host_item(in)->knobs.min, 0);
	/* A move takes the min along. */
	want_min(in, 512 * MIB);
	in->metadata.group = (char *)"/other";
	want_min(in, GIB);
	host_run(6 * SECOND); /* the group that it has left goes first, and its min with it */
	ck_assert_uint_eq(host_item(in)->knobs.min, PAGES(GIB));
	want_min(out, GIB);
	ck_assert_uint_eq(host_item(out)->knobs.min, PAGES(GIB));
}
END_TEST

/* ---- names, and a new configuration ---- */

/* BR-128: the rule goes by the name, all else by the UUID. */
START_TEST(min_is_checked_against_the_room_of_the_group_that_the_vm_will_be_in)
{
	struct core_group_knobs groups[] = {
		{ (char *)"/a", { PAGES_UNLIMITED, PAGES(GIB), 0, PAGES_UNLIMITED },
			HV_MANAGE_ACT },
		{ (char *)"/b", { PAGES_UNLIMITED, PAGES(512 * MIB), 0, PAGES_UNLIMITED },
			HV_MANAGE_ACT },
	};
	struct hv_knobs_change change = { .set = { .has_min = true,
						  .min = 768 * MIB,
						  .has_group = true,
						  .group = (char *)"/b" } };
	struct host_vm *vm = host_vm(0), *other = host_vm(1), *third = host_vm(2);
	char why[256] = "";
	uint64_t id;

	host.config.pool_host = false;
	host.config.pool_size = GIB + 768 * MIB;
	host.config.groups = groups;
	host.config.nr_groups = 2;
	other->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/a/x" };
	third->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/b" };
	host_up();
	want_min(other, GIB);
	want_min(vm, 256 * MIB);
	/* In "/" there is room for less; what /b has is its own. */
	ck_assert_int_eq(core_set_knobs(host.core, host_id(vm), &change, &id, why, sizeof(why)), 0);
	host_run(2 * SECOND);
	/* And /a's is taken. */
	change.set.group = (char *)"/a";
	ck_assert_int_eq(
		core_set_knobs(host.core, host_id(vm), &change, &id, why, sizeof(why)), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "there is room for"));
	/* Nor does its min go there by the group alone. */
	change.set.has_min = false;
	vm->metadata.has_group = true;
	vm->metadata.group = (char *)"/b";
	want_min(vm, 768 * MIB);
	ck_assert_uint_eq(host_item(vm)->knobs.min, PAGES(768 * MIB));
	ck_assert_int_eq(
		core_set_knobs(host.core, host_id(vm), &change, &id, why, sizeof(why)), -EINVAL);
}
END_TEST

START_TEST(hard_limit_less_what_the_process_needs_is_a_max_whatever_is_said)
{
	struct host_vm *vm = host_vm(0);
	struct core_knobs_view view;
	const struct core_knob_said *max = &view.knobs[CORE_MAX];

	vm->hard_limit = GIB;
	host_up();
	host_run(6 * SECOND);
	/* 30 MiB beside the guest, in steps of 64. */
	ck_assert_uint_eq(host_item(vm)->knobs.max, PAGES(GIB - 64 * MIB));
	ck_assert_int_eq(core_vm_knobs(host.core, host_id(vm), &view), 0);
	ck_assert_int_eq(max->words[max->counts].source, CORE_FROM_MEMTUNE);
	ck_assert(max->words[max->counts].enforced);

	vm->metadata = (struct hv_knobs){ .has_max = true, .max = 2 * GIB };
	host_run(6 * SECOND);
	ck_assert_uint_eq(host_item(vm)->knobs.max, PAGES(GIB - 64 * MIB));
	vm->metadata.max = 512 * MIB;
	host_run(6 * SECOND);
	ck_assert_uint_eq(host_item(vm)->knobs.max, PAGES(512 * MIB));
	ck_assert_int_eq(core_vm_knobs(host.core, host_id(vm), &view), 0);
	ck_assert_int_eq(max->words[0].source, CORE_FROM_METADATA);
	ck_assert_int_eq(max->words[1].source, CORE_FROM_MEMTUNE);
	vm->hard_limit = 0;
	vm->metadata.has_max = false;
	host_run(6 * SECOND);
	ck_assert_uint_eq(host_item(vm)->knobs.max, PAGES_UNLIMITED);
}
END_TEST

START_TEST(renamed_vm_loses_the_rule_of_its_name_and_who_has_the_name_gets_it)
{
	struct core_rule rule = {
		.name = (char *)"web", .match_name = (char *)"web", .knobs = soft(300 * MIB)
	};
	struct host_vm *first = host_vm(0), *second;
	uint64_t id;

	use_rules(&rule, 1);
	strcpy(first->name, "web");
	host_up();
	id = host_id(first);
	ck_assert_uint_eq(host_item(first)->knobs.soft_limit, PAGES(300 * MIB));
	host_target(first, 9, 900 * MIB);
	host_run(2 * SECOND);
	ck_assert_uint_eq(first->last[HV_TARGET].target, 900 * MIB);

	second = host_vm(1);
	strcpy(first->name, "web-old");
	strcpy(second->name, "web");
	first->info_error = second->info_error = 0;
	host_event(HV_EVENT_CHANGED, first);
	host_run(200000);
	ck_assert_uint_eq(host_id(first), id);
	ck_assert_uint_eq(host_item(first)->knobs.soft_limit, PAGES_UNLIMITED);
	ck_assert_uint_eq(host_item(second)->knobs.soft_limit, PAGES(300 * MIB));
	ck_assert_uint_eq(second->calls[HV_TARGET], 0);

	/* Only where it has no word of its own. */
	second->metadata = soft(200 * MIB);
	host_event(HV_EVENT_CHANGED, second);
	host_run(200000);
	ck_assert_uint_eq(host_item(second)->knobs.soft_limit, PAGES(200 * MIB));
}
END_TEST

START_TEST(rename_is_enough_without_a_new_description)
{
	struct core_rule rule = {
		.name = (char *)"web", .match_name = (char *)"web", .knobs = soft(300 * MIB)
	};
	struct host_vm *vm = host_vm(0);

	use_rules(&rule, 1);
	host_up();
	vm->info_error = -EIO;
	strcpy(vm->name, "web");
	host_event(HV_EVENT_CHANGED, NULL);
	host_run(200000);
	ck_assert_uint_eq(host_item(vm)->knobs.soft_limit, PAGES(300 * MIB));
}
END_TEST

START_TEST(new_configuration_counts_at_once_for_vms_and_groups)
{
	struct core_group_knobs groups[] = {
		{ (char *)"/prod", { PAGES(2 * GIB), 0, 0, PAGES_UNLIMITED }, HV_MANAGE_ACT },
	};
	struct core_rule rule = { .name = (char *)"all", .knobs = soft(300 * MIB) };
	struct host_vm *vm = host_vm(0), *in = host_vm(1);
	struct core_config config;
	uint64_t prod;
	unsigned int infos;

	in->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/prod" };
	host_up();
	host_run(2 * SECOND); /* until all statistics move */
	ck_assert_int_eq(core_find(host.core, "/prod", &prod), 0);
	ck_assert_uint_eq(fake_item(prod)->knobs.soft_limit, PAGES_UNLIMITED);
	infos = vm->calls[HV_INFO];
	config = host.config;
	config.groups = groups;
	config.nr_groups = 1;
	config.rules = &rule;
	config.nr_rules = 1;
	config.pool_host = false;
	config.pool_size = 8 * GIB;
	config.guest_swap = true;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(200000);
	ck_assert_uint_eq(vm->calls[HV_INFO], infos);
	ck_assert_uint_eq(host_item(vm)->knobs.soft_limit, PAGES(300 * MIB));
	ck_assert(host_item(vm)->attrs.guest_swap);
	ck_assert_uint_eq(fake_item(prod)->knobs.soft_limit, PAGES(2 * GIB));
	ck_assert_uint_eq(fake_told(ENGINE_GROUP_KNOBS, prod), 1);
	ck_assert(fake.pool.known && !fake.pool.host);
	ck_assert_uint_eq(fake.pool.size, PAGES(8 * GIB));
	ck_assert_uint_eq(fake.configs, 1);

	/* And back again. */
	ck_assert_int_eq(core_set_config(host.core, host.now, &host.config), 0);
	host_run(SECOND);
	ck_assert_uint_eq(host_item(vm)->knobs.soft_limit, PAGES_UNLIMITED);
	ck_assert_uint_eq(fake_item(prod)->knobs.soft_limit, PAGES_UNLIMITED);
	ck_assert(fake.pool.known && fake.pool.host);
}
END_TEST

START_TEST(bad_new_configuration_changes_nothing)
{
	struct host_vm *vm = host_vm(0);
	struct core_rule rule = { .name = (char *)"all", .knobs = soft(300 * MIB) };
	struct core_config config;

	host_up();
	for (int i = 0; i < 3; i++) {
		config = host.config;
		config.rules = &rule;
		config.nr_rules = 1;
		if (i == 0)
			config.tick_min_us = 0;
		else if (i == 1)
			config.pool_host = false;
		else
			config.engine.speed = UINT64_MAX;
		ck_assert_int_eq(core_set_config(host.core, host.now, &config), -EINVAL);
		host_run(6 * SECOND);
		ck_assert_uint_eq(host_item(vm)->knobs.soft_limit, PAGES_UNLIMITED);
	}
	ck_assert_uint_eq(fake.configs, 0);
}
END_TEST

START_TEST(what_was_to_be_set_is_not_once_the_configuration_only_observes)
{
	struct host_vm *vm = host_vm(0);
	struct core_config config;

	host_up();
	vm->hangs = true;
	host_run(2 * SECOND); /* a call of it is out */
	host_target(vm, 9, 900 * MIB);
	host_run(100000);
	config = host.config;
	config.engine.act = false;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_wake(vm);
	host_run(SECOND);
	ck_assert_uint_eq(vm->calls[HV_TARGET], 0);
}
END_TEST

/* Not when the old ones were over: those may be an hour. */
START_TEST(new_times_count_at_once)
{
	struct host_vm *vm = host_vm(0);
	struct core_config config = host.config;
	unsigned int stats, lists;

	host.config.vm_us = host.config.resync_us = 600 * SECOND;
	host_up();
	host_run(3 * SECOND);
	stats = vm->calls[HV_STATS];
	lists = host.calls[HV_LIST];
	host_run(20 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_STATS], stats);
	ck_assert_uint_eq(host.calls[HV_LIST], lists);
	config.resync_us = 5 * SECOND;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(6 * SECOND);
	ck_assert_uint_ge(vm->calls[HV_STATS], stats + 4);
	ck_assert_uint_ge(host.calls[HV_LIST], lists + 1);
}
END_TEST

START_TEST(new_period_is_for_those_whose_old_one_ballast_set)
{
	struct host_vm *off = host_vm(0), *own = host_vm(1), *same = host_vm(2);
	struct core_config config;

	off->period_s = 0;
	own->period_s = 7;
	same->period_s = 1; /* as ballast would have set it, and it did not */
	host_up();
	host_run(SECOND);
	ck_assert_uint_eq(off->calls[HV_PERIOD], 1);
	ck_assert_uint_eq(off->period_s, 1);
	config = host.config;
	config.stats_period_s = 3;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(12 * SECOND);
	ck_assert_uint_eq(off->calls[HV_PERIOD], 2);
	ck_assert_uint_eq(off->period_s, 3);
	ck_assert_uint_eq(own->calls[HV_PERIOD] + same->calls[HV_PERIOD], 0);

	/* One that somebody else set since is left alone. */
	off->period_s = 2;
	host_event(HV_EVENT_CHANGED, off);
	host_run(6 * SECOND);
	config.stats_period_s = 4;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(12 * SECOND);
	ck_assert_uint_eq(off->calls[HV_PERIOD], 2);

	/* And nothing is set where the new one only observes. */
	config.stats_period_s = 5;
	config.engine.act = false;
	off->period_s = 0;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(12 * SECOND);
	ck_assert_uint_eq(off->calls[HV_PERIOD], 2);
}
END_TEST

/* While its lane is busy wishes wait; what may be done when it is free again is what counts. */
START_TEST(what_waits_for_a_lane_is_not_called_once_the_configuration_only_observes)
{
	struct host_vm *vm = host_vm(0);
	struct core_config config;

	vm->period_s = 0;
	vm->throttle = 512 * MIB;
	host.config.engine.act = false;
	host.config.memtune_takeover = true;
	host_up();
	host_run(3 * SECOND);
	vm->hangs = true;
	host_run(2 * SECOND);
	ck_assert(vm->busy);
	config = host.config;
	config.engine.act = true;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(2 * SECOND); /* both are wished */
	config.engine.act = false;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_wake(vm);
	host_run(12 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_PERIOD], 0);
	ck_assert_uint_eq(vm->calls[HV_UNTHROTTLE], 0);

	/* Nor those of a VM that is not managed any more. */
	vm->hangs = true;
	host_run(2 * SECOND);
	config.engine.act = true;
	ck_assert_int_eq(core_set_config(host.core, host.now, &config), 0);
	host_run(2 * SECOND);
	vm->metadata = (struct hv_knobs){ .has_manage = true, .manage = HV_MANAGE_OBSERVE };
	host_event(HV_EVENT_CHANGED, vm);
	host_wake(vm);
	host_run(12 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_PERIOD], 0);
	ck_assert_uint_eq(vm->calls[HV_UNTHROTTLE], 0);

	/* They are wished anew where that is so again. */
	vm->metadata.manage = HV_MANAGE_ACT;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(12 * SECOND);
	ck_assert_uint_eq(vm->calls[HV_PERIOD], 1);
	ck_assert_uint_eq(vm->calls[HV_UNTHROTTLE], 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("knobs");
	TCase *tc = tcase_create("knobs");

	tcase_add_checked_fixture(tc, host_setup, host_teardown);
	tcase_add_test(tc, first_rule_that_matches_and_says_a_knob_counts_for_that_knob);
	tcase_add_test(tc, rules_match_by_name_uuid_and_group_together);
	tcase_add_test(tc, metadata_come_before_memtune_before_rules_before_defaults);
	tcase_add_test(tc, rule_that_enforces_bounds_what_metadata_and_memtune_say);
	tcase_add_test(tc, group_is_metadatas_then_a_rules_then_the_partition);
	tcase_add_test(tc, max_of_a_rule_below_min_of_metadata_gives_way_and_the_next_counts);
	tcase_add_test(tc, soft_limit_below_min_or_over_max_is_legal);
	tcase_add_test(tc, unlimited_is_no_limit_and_the_next_source_decides);
	tcase_add_test(tc, memtunes_soft_limit_is_rounded_up_to_pages);
	tcase_add_test(tc, view_has_every_knob_with_its_source_and_warns_of_what_does_nothing);
	tcase_add_test(tc,
		group_whose_soft_limit_is_below_its_low_is_said_when_the_configuration_is_taken);
	tcase_add_test(tc, vm_below_its_floor_is_told_once_and_shown);
	tcase_add_test(tc, newest_min_that_brings_the_sum_over_the_pool_is_refused_loudly);
	tcase_add_test(tc, min_that_was_taken_while_the_pool_was_not_known_is_looked_at_once_it_is);
	tcase_add_test(tc, min_of_a_group_counts_as_far_as_it_is_over_those_of_its_vms);
	tcase_add_test(tc, min_is_checked_against_the_room_of_the_group_that_the_vm_will_be_in);
	tcase_add_test(tc, hard_limit_less_what_the_process_needs_is_a_max_whatever_is_said);
	tcase_add_test(tc, renamed_vm_loses_the_rule_of_its_name_and_who_has_the_name_gets_it);
	tcase_add_test(tc, rename_is_enough_without_a_new_description);
	tcase_add_test(tc, new_configuration_counts_at_once_for_vms_and_groups);
	tcase_add_test(tc, new_times_count_at_once);
	tcase_add_test(tc, new_period_is_for_those_whose_old_one_ballast_set);
	tcase_add_test(tc, bad_new_configuration_changes_nothing);
	tcase_add_test(tc, what_was_to_be_set_is_not_once_the_configuration_only_observes);
	tcase_add_test(
		tc, what_waits_for_a_lane_is_not_called_once_the_configuration_only_observes);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
