/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The Xen backend beyond its contract, on a Xen of the tests' own: what it reads and writes, and
 * what others do to it. Names that begin with a BR number are field cases.
 */
#include <config.h>

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hv/xen/domain.h"
#include "hv/xen/store.h"
#include "hv/xen/xen.h"
#include "tests/unit/fake_xen.h"
#include "tests/unit/suite.h"
#include "tests/unit/xen_host.h"

#define MIB   UINT64_C(1048576)
#define SEC   UINT64_C(1000000)
#define GUEST (512 * UINT64_C(1024)) /* KiB */

static struct fake_guest *web, *db;

static void setup(void)
{
	fake_xen_reset();
	fake_xen_host(4096 * 1024, 1024 * 1024, 256 * 1024);
	web = fake_xen_add("web", GUEST, GUEST);
	db = fake_xen_add("db", GUEST, GUEST);
}

static void teardown(void)
{
	fake_xen_release();
	close_host();
}

/* And until the keys of both agents are made, which is another thread's: then only we write. */
static void open_rested_host(void)
{
	open_host(0);
	for (int i = 0; i < PATIENCE_MS && fake_xen_nr_watches("ballast/guest") < 2; i++)
		nap(1);
	ck_assert_uint_eq(fake_xen_nr_watches("ballast/guest"), 2);
}

static int target(struct fake_guest *g, uint64_t kib)
{
	struct hv_event event = ask((struct hv_call){ .type = HV_TARGET,
		.uuid = fake_xen_uuid(g),
		.target = kib * 1024,
		.ceiling = GUEST * 1024 });
	int error = event.error;

	hv_event_clear(&event);
	return error;
}

static size_t listed(void)
{
	struct hv_event event = ask((struct hv_call){ .type = HV_LIST });
	size_t nr = event.listed.nr;

	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
	return nr;
}

static struct hv_event describe(struct fake_guest *g)
{
	return ask((struct hv_call){ .type = HV_INFO, .uuid = fake_xen_uuid(g) });
}

static uint64_t number_at(struct fake_guest *g, const char *key)
{
	char path[STORE_PATH], text[256];

	store_domain_path(path, g->domid, key);
	return fake_xen_read(path, text) ? strtoull(text, NULL, 10) : 0;
}

static uint64_t kib_of(struct fake_guest *g, bool max)
{
	uint64_t kib;

	fake_xen_lock();
	kib = max ? g->max_kib : g->tot_kib;
	fake_xen_unlock();
	return kib;
}

static void until(struct fake_guest *g, bool max, uint64_t kib)
{
	for (int i = 0; i < PATIENCE_MS && kib_of(g, max) != kib; i++)
		nap(1);
	ck_assert_uint_eq(kib_of(g, max), kib);
}

START_TEST(the_pool_is_what_is_free_less_what_is_claimed)
{
	struct hv_event event;

	open_host(0);
	event = ask((struct hv_call){ .type = HV_HOST });
	ck_assert(event.host.known);
	ck_assert_uint_eq(event.host.total, 4096 * MIB);
	ck_assert_uint_eq(event.host.available, 768 * MIB);
	hv_event_clear(&event);
}
END_TEST

START_TEST(a_cap_is_raised_before_a_target_and_lowered_after_it_was_reached)
{
	char text[64];

	web->step_kib = 8192;
	open_host(0);
	ck_assert_int_eq(target(web, GUEST / 2), 0);
	until(web, true, GUEST / 2 + 1024);
	ck_assert_uint_eq(kib_of(web, false), GUEST / 2);
	snprintf(text, sizeof(text), "target 1 %" PRIu64 ";max 1 %" PRIu64 ";", GUEST / 2,
		GUEST / 2 + 1024);
	ck_assert_str_eq(fake_xen_changes(), text);
	fake_xen_forget_changes();
	ck_assert_int_eq(target(web, GUEST), 0);
	until(web, false, GUEST);
	snprintf(
		text, sizeof(text), "max 1 %" PRIu64 ";target 1 %" PRIu64 ";", GUEST + 1024, GUEST);
	ck_assert_str_eq(fake_xen_changes(), text);
}
END_TEST

START_TEST(BR_66_no_path_of_a_dead_domain_is_made_again)
{
	open_rested_host();
	fake_xen_destroy_before_write(web); /* between look and write */
	ck_assert_int_eq(target(web, GUEST / 2), -ENOENT);
	ck_assert_uint_eq(fake_xen_count("/local/domain/1"), 0);
	ck_assert_uint_eq(fake_xen_count(STORE_ROOT), 0);
	ck_assert_int_eq(target(web, GUEST / 2), -ENOENT);
	ck_assert_uint_eq(fake_xen_count("/local/domain/1"), 0);
	ck_assert_uint_eq(listed(), 1);
}
END_TEST

START_TEST(a_domain_that_the_hypervisor_has_no_more_is_left_alone_though_its_path_is_there)
{
	open_host(0);
	fake_xen_destroy(web, false);
	ck_assert_int_eq(target(web, GUEST / 2), -ENOENT);
	ck_assert_uint_eq(number_at(web, "memory/target"), GUEST);
	ck_assert_uint_eq(listed(), 1);
}
END_TEST

/* The hypervisor lists it until the last page is gone. Both are seen by one look, in this order. */
START_TEST(what_a_dying_domain_loses_is_not_told_as_its_balloon_s)
{
	const struct hv_uuid uuid = fake_xen_uuid(db);
	struct hv_event event;

	open_rested_host();
	ck_assert_uint_eq(listed(), 2);
	fake_xen_lock();
	web->stuck = db->stuck = true;
	web->flags |= XEN_DOMINF_dying;
	web->tot_kib = 4;
	db->tot_kib = GUEST / 2;
	fake_xen_unlock();
	event = wait_for(HV_EVENT_BALLOON, 0);
	ck_assert_mem_eq(&event.uuid, &uuid, sizeof(uuid));
	hv_event_clear(&event);
}
END_TEST

/* With 2 GiB, under the zero uuid that it has. */
static struct hv_uuid add_dom0(void)
{
	static const struct hv_uuid made = { .bytes = { 'x', 'e', 'n', [6] = 0x40, [8] = 0x80 } };
	struct fake_guest *dom0 = fake_xen_add("Domain-0", 4 * GUEST, 4 * GUEST);

	fake_xen_lock();
	dom0->domid = 0;
	memset(dom0->uuid, 0, sizeof(dom0->uuid));
	fake_xen_unlock();
	fake_xen_write("/local/domain/0/memory/target", "2097152");
	fake_xen_write("/local/domain/0/memory/static-max", "2097152");
	fake_xen_write("/local/domain/0/name", "Domain-0");
	return made;
}

static int tell(struct hv_uuid uuid, uint64_t kib)
{
	struct hv_event event = ask((struct hv_call){ .type = HV_TARGET,
		.uuid = uuid,
		.target = kib * 1024,
		.ceiling = 4 * GUEST * 1024 });
	int error = event.error;

	hv_event_clear(&event);
	return error;
}

static uint64_t told_dom0(void)
{
	char text[256];

	return fake_xen_read("/local/domain/0/memory/target", text) ? strtoull(text, NULL, 10) : 0;
}

START_TEST(BR_72_dom0_is_off_limits_unless_it_has_a_minimum)
{
	struct hv_uuid uuid = add_dom0();
	struct hv_event event;

	open_host(0);
	ck_assert_uint_eq(listed(), 2);
	ck_assert_int_eq(tell(uuid, GUEST), -ENOENT);
	event = ask((struct hv_call){ .type = HV_PERIOD, .uuid = uuid, .period_s = 1 });
	ck_assert_int_eq(event.error, -ENOENT);
	hv_event_clear(&event);
	nap(50); /* many rescans */
	ck_assert_uint_eq(told_dom0(), 2097152);
	ck_assert_str_eq(fake_xen_changes(), "");
	close_host();
	open_host(1024 * MIB);
	ck_assert_uint_eq(listed(), 3);
	event = ask((struct hv_call){ .type = HV_INFO, .uuid = uuid });
	ck_assert_int_eq(event.error, 0);
	ck_assert_str_eq(event.info.name, "Domain-0");
	ck_assert(event.info.metadata.has_min);
	ck_assert_uint_eq(event.info.metadata.min, 1024 * MIB);
	hv_event_clear(&event);
}
END_TEST

START_TEST(BR_72_dom0_keeps_its_minimum_whatever_is_asked_and_another_writer_is_not_fought)
{
	struct hv_uuid uuid = add_dom0();
	struct hv_event event;

	open_host(1024 * MIB);
	ck_assert_int_eq(tell(uuid, GUEST), 0);
	ck_assert_uint_eq(told_dom0(), 1024 * 1024);
	ck_assert_int_eq(tell(uuid, 1536 * 1024), 0);
	ck_assert_uint_eq(told_dom0(), 1536 * 1024);
	/* Between two ticks, and also below: it is told, and stands. */
	fake_xen_write("/local/domain/0/memory/target", "786432");
	ck_assert_int_eq(tell(uuid, 4 * GUEST), -ESTALE);
	ck_assert_uint_eq(told_dom0(), 786432);
	fake_xen_write("/local/domain/0/memory/target", "819200");
	event = wait_for(HV_EVENT_TOLD, 0);
	ck_assert(hv_uuid_equal(&event.uuid, &uuid));
	hv_event_clear(&event);
	nap(50);
	ck_assert_uint_eq(told_dom0(), 819200);
	/* What is found below is not taken further. */
	ck_assert_int_eq(tell(uuid, 700 * 1024), 0);
	ck_assert_uint_eq(told_dom0(), 1024 * 1024);
}
END_TEST

START_TEST(domains_of_a_cpu_pool_of_their_own_are_a_group_and_those_of_the_first_are_not)
{
	static const struct {
		uint32_t pool;
		const char *name, *group;
	} cases[] = { { 0, "Pool-0", NULL }, { 1, "batch", "/batch" }, { 1, NULL, NULL } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hv_event event;
		char path[STORE_PATH];

		setup();
		snprintf(path, sizeof(path), "/local/pool/%" PRIu32 "/name", cases[i].pool);
		fake_xen_write(path, cases[i].name);
		fake_xen_lock();
		web->cpupool = cases[i].pool;
		fake_xen_unlock();
		open_host(0);
		event = describe(web);
		ck_assert_int_eq(event.error, 0);
		ck_assert_pstr_eq(event.info.partition, cases[i].group);
		hv_event_clear(&event);
		close_host();
	}
}
END_TEST

START_TEST(BR_75_a_thousand_lives_leave_no_key)
{
	unsigned int before, watches;

	open_host(0);
	/* The folder of all stays, once it was needed. */
	ck_assert_int_eq(target(db, GUEST - 4096), 0);
	fake_xen_reboot(db);
	for (int i = 0; i < PATIENCE_MS && (listed() != 2 || fake_xen_count(STORE_ROOT) > 1); i++)
		nap(1);
	before = fake_xen_count("/local/domain/0");
	watches = fake_xen_nr_watches("memory/target");
	for (int i = 0; i < 1000; i++) {
		if (i % 50 == 0) /* adopted already, or not yet */
			target(db, GUEST - 4096);
		fake_xen_reboot(db);
	}
	for (int i = 0; i < 100 && listed() != 2; i++)
		nap(1);
	ck_assert_int_eq(target(db, GUEST - 4096), 0);
	fake_xen_destroy(db, true);
	ck_assert_uint_eq(listed(), 1);
	ck_assert_uint_eq(fake_xen_count("/local/domain/0"), before);
	ck_assert_uint_eq(fake_xen_nr_watches("memory/target"), watches - 1);
	/* What its agent would write is watched by another thread. */
	for (int i = 0; i < PATIENCE_MS && fake_xen_nr_watches("ballast/guest") != 1; i++)
		nap(1);
	ck_assert_uint_eq(fake_xen_nr_watches("ballast/guest"), 1);
}
END_TEST

START_TEST(BR_75_a_full_quota_is_one_domain_s_error_and_nothing_of_it_is_written)
{
	open_rested_host();
	fake_xen_refuse(ENOSPC);
	ck_assert_int_eq(target(web, GUEST / 2), -ENOSPC);
	fake_xen_refuse(0);
	ck_assert_uint_eq(fake_xen_count(STORE_ROOT), 0);
	ck_assert_uint_eq(number_at(web, "memory/target"), GUEST);
	ck_assert_int_eq(target(db, GUEST / 2), 0);
	ck_assert_int_eq(target(web, GUEST / 2), 0);
}
END_TEST

START_TEST(BR_81_the_smaller_limit_counts_and_no_target_above_it_is_sent)
{
	struct hv_event event;

	fake_xen_write("/local/domain/1/memory/static-max", "262144");
	open_host(0);
	event = describe(web);
	ck_assert_uint_eq(event.info.maximum, 256 * MIB);
	hv_event_clear(&event);
	ck_assert_int_eq(target(web, GUEST), 0);
	ck_assert_uint_eq(number_at(web, "memory/target"), 262144);
}
END_TEST

START_TEST(a_write_that_others_keep_beating_ends_after_a_bounded_number_of_tries)
{
	open_rested_host();
	fake_xen_contend(STORE_TRIES);
	ck_assert_int_eq(target(web, GUEST / 2), -EBUSY);
	ck_assert_uint_eq(number_at(web, "memory/target"), GUEST);
	fake_xen_contend(STORE_TRIES - 1);
	ck_assert_int_eq(target(web, GUEST / 2), 0);
}
END_TEST

/* Statistics are switched on, and its driver obeys. */
static void see_driver(struct fake_guest *g)
{
	struct hv_event event =
		ask((struct hv_call){ .type = HV_PERIOD, .uuid = fake_xen_uuid(g), .period_s = 1 });
	uint64_t last = 0;

	hv_event_clear(&event);
	for (int i = 0; i < PATIENCE_MS && last == 0; i++) {
		event = ask((struct hv_call){ .type = HV_STATS, .uuid = fake_xen_uuid(g) });
		last = event.stats.last_update;
		hv_event_clear(&event);
		nap(1);
	}
	ck_assert_uint_gt(last, 0);
}

START_TEST(a_target_that_somebody_else_writes_is_told_and_not_fought)
{
	struct hv_event event;

	open_host(0);
	see_driver(web);
	ck_assert_int_eq(target(web, GUEST / 2), 0);
	until(web, false, GUEST / 2);
	until(web, true, GUEST / 2 + 1024); /* the cap follows what it gave */
	fake_xen_lock();
	web->max_kib = 393216 + 1024; /* as xl does, and before */
	fake_xen_unlock();
	fake_xen_write("/local/domain/1/memory/target", "393216");
	event = wait_for(HV_EVENT_TOLD, 0);
	hv_event_clear(&event);
	until(web, false, 393216);
	nap(100); /* many nudges */
	ck_assert_uint_eq(number_at(web, "memory/target"), 393216);
	until(web, true, 393216 + 1024);
}
END_TEST

/* Whether the backend has seen theirs when ours is written or not: who decided has not. */
START_TEST(a_target_decided_before_somebody_else_s_was_known_does_not_overwrite_it)
{
	char theirs[32];

	open_rested_host();
	ck_assert_int_eq(target(web, GUEST / 2), 0);
	for (uint64_t i = 0; i < 50; i++) {
		snprintf(theirs, sizeof(theirs), "%" PRIu64, GUEST / 2 - 4096 - 4 * i);
		fake_xen_write("/local/domain/1/memory/target", theirs);
		nap(i % 3);
		ck_assert_int_eq(target(web, GUEST / 2 + 4096), -ESTALE);
		ck_assert_uint_eq(number_at(web, "memory/target"), GUEST / 2 - 4096 - 4 * i);
	}
	/* Now it is known; and what is no number is nobody's word. */
	ck_assert_int_eq(target(web, GUEST / 2), 0);
	ck_assert_uint_eq(number_at(web, "memory/target"), GUEST / 2);
	fake_xen_write("/local/domain/1/memory/target", "much");
	ck_assert_int_eq(target(web, GUEST / 4), 0);
	ck_assert_uint_eq(number_at(web, "memory/target"), GUEST / 4);
}
END_TEST

START_TEST(a_target_decided_before_a_reboot_was_known_is_not_written_to_the_new_life)
{
	open_rested_host();
	ck_assert_int_eq(target(web, GUEST / 2), 0);
	fake_xen_reboot(web);
	/* The backend knows of it, and has adopted the new life; nobody has taken the event. */
	for (int i = 0; i < PATIENCE_MS && fake_xen_nr_watches("/3/memory/target") < 1; i++)
		nap(1);
	nap(20);
	ck_assert_int_eq(target(web, GUEST / 2), -ESTALE);
	ck_assert_uint_eq(number_at(web, "memory/target"), GUEST);
	ck_assert_int_eq(target(web, GUEST / 2), 0);
	ck_assert_uint_eq(number_at(web, "memory/target"), GUEST / 2);
}
END_TEST

START_TEST(a_target_whose_answer_was_lost_with_the_connection_is_no_word_of_somebody_else_s)
{
	struct hv_event event;

	open_rested_host();
	fake_xen_lose_nth(1);
	ck_assert_int_eq(target(web, GUEST / 2), -ENOTCONN);
	event = wait_for(HV_EVENT_UP, 0);
	hv_event_clear(&event);
	ck_assert_uint_eq(number_at(web, "memory/target"), GUEST / 2); /* it was written */
	event = describe(web);
	ck_assert_uint_eq(event.info.ceiling, GUEST * 1024);
	hv_event_clear(&event);
	until(web, true, GUEST / 2 + 1024); /* its cap follows */
	ck_assert_int_eq(target(web, GUEST / 4), 0);
	ck_assert_uint_eq(number_at(web, "memory/target"), GUEST / 4);
}
END_TEST

/* The page that shows a driver is asked for by another thread than targets are. */
START_TEST(a_page_that_is_asked_for_beside_a_target_is_not_taken_for_somebody_else_s)
{
	struct hv_event event;

	web->balloon = false; /* so that it is asked for after each target */
	open_host(0);
	fake_xen_late(5000);
	event = ask(
		(struct hv_call){ .type = HV_PERIOD, .uuid = fake_xen_uuid(web), .period_s = 1 });
	hv_event_clear(&event);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(target(web, GUEST / 2), 0);
		nap(i % 8);
		ck_assert_uint_ge(number_at(web, "memory/target"), GUEST / 2 - 4);
	}
}
END_TEST

START_TEST(a_daemon_that_starts_again_knows_ceiling_cap_and_driver)
{
	struct hv_event event;

	open_host(0);
	see_driver(web);
	ck_assert_int_eq(target(web, GUEST / 2), 0);
	until(web, true, GUEST / 2 + 1024);
	close_host();
	/* Killed before it lowered the cap, say. */
	fake_xen_lock();
	web->max_kib = GUEST + 1024;
	fake_xen_unlock();
	open_host(0);
	event = ask((struct hv_call){ .type = HV_INFO, .uuid = fake_xen_uuid(web), .act = true });
	ck_assert_uint_eq(event.info.ceiling, GUEST * 1024);
	hv_event_clear(&event);
	until(web, true, GUEST / 2 + 1024);
}
END_TEST

/* Its cap is not lowered yet, say, and now nothing is to be changed. */
START_TEST(a_daemon_that_starts_again_to_observe_goes_on_with_nothing)
{
	struct hv_event event;

	open_host(0);
	see_driver(web);
	ck_assert_int_eq(target(web, GUEST / 2), 0);
	until(web, true, GUEST / 2 + 1024);
	close_host();
	fake_xen_lock();
	web->max_kib = GUEST + 1024;
	fake_xen_unlock();
	fake_xen_forget_changes();
	open_host(0);
	for (int i = 0; i < 50; i++) {
		event = describe(web);
		hv_event_clear(&event);
		nap(2);
	}
	ck_assert_str_eq(fake_xen_changes(), "");
	/* Where it acts it does. */
	event = ask((struct hv_call){ .type = HV_INFO, .uuid = fake_xen_uuid(web), .act = true });
	hv_event_clear(&event);
	until(web, true, GUEST / 2 + 1024);
}
END_TEST

START_TEST(a_target_of_nothing_or_without_end_is_refused)
{
	struct hv_call call = { .type = HV_TARGET, .uuid = fake_xen_uuid(web), .ceiling = GUEST };
	struct hv_event event;

	open_rested_host();
	event = ask(call);
	ck_assert_int_eq(event.error, -EINVAL);
	hv_event_clear(&event);
	call.target = HV_UNLIMITED;
	event = ask(call);
	ck_assert_int_eq(event.error, -EINVAL);
	hv_event_clear(&event);
	ck_assert_uint_eq(number_at(web, "memory/target"), GUEST);
}
END_TEST

/* It is killed while a page is asked for, and finds the goal: with the page it goes back to that.
 */
START_TEST(a_daemon_killed_between_a_page_and_the_way_back_adopts_the_goal)
{
	struct hv_uuid uuid = fake_xen_uuid(web);
	char path[STORE_PATH], text[256];
	struct hv_event event;

	fake_xen_write("/local/domain/1/memory/static-max", NULL);
	web->balloon = false;
	open_host(0);
	event = ask((struct hv_call){ .type = HV_PERIOD, .uuid = uuid, .period_s = 1 });
	hv_event_clear(&event);
	for (int i = 0; i < PATIENCE_MS && number_at(web, "memory/target") == GUEST; i++)
		nap(1);
	ck_assert_uint_eq(number_at(web, "memory/target"), GUEST - 4);
	close_host();
	ck_assert_uint_eq(number_at(web, "memory/target"), GUEST - 4);
	open_host(0);
	event = describe(web);
	ck_assert_uint_eq(event.info.maximum, GUEST * 1024);
	hv_event_clear(&event);
	fake_xen_lock();
	web->balloon = true;
	fake_xen_unlock();
	see_driver(web);
	until(web, false, GUEST);
	ck_assert_uint_eq(number_at(web, "memory/target"), GUEST);
	store_own_path(path, &uuid, "goal");
	for (int i = 0; i < PATIENCE_MS && fake_xen_read(path, text); i++)
		nap(1);
	ck_assert(!fake_xen_read(path, text));
}
END_TEST

START_TEST(BR_79_a_domain_that_comes_in_is_under_migration_until_it_has_its_name)
{
	struct hv_event event;

	fake_xen_write("/local/domain/1/name", "web--incoming");
	open_host(0);
	for (int i = 0; i < 2; i++) {
		event = ask((struct hv_call){ .type = HV_LIST });
		ck_assert_uint_eq(event.listed.nr, 2);
		for (size_t k = 0; k < 2; k++) {
			bool comes = i == 0 && !strncmp(event.listed.vms[k].name, "web", 3);

			ck_assert_int_eq(
				event.listed.vms[k].state, comes ? HV_STARTING : HV_RUNNING);
			ck_assert_int_eq(
				event.listed.vms[k].job, comes ? HV_JOB_MIGRATION : HV_JOB_NONE);
		}
		hv_event_clear(&event);
		fake_xen_write("/local/domain/1/name", "web");
	}
	/* Nothing was written for it meanwhile. */
	ck_assert_str_eq(fake_xen_changes(), "");
}
END_TEST

START_TEST(what_is_recorded_of_another_life_does_not_count_and_knobs_do)
{
	struct hv_uuid uuid = fake_xen_uuid(web);
	char path[STORE_PATH];
	struct hv_event event;

	open_host(0);
	ck_assert_int_eq(target(web, GUEST / 2), 0);
	store_own_path(path, &uuid, "soft-limit");
	fake_xen_write(path, "100MiB");
	fake_xen_reboot(web);
	event = wait_for(HV_EVENT_REBOOTED, 0);
	hv_event_clear(&event);
	ck_assert_uint_eq(listed(), 2);
	event = describe(web);
	ck_assert_uint_eq(event.info.ceiling, 0);
	ck_assert(event.info.metadata.has_soft_limit);
	ck_assert_uint_eq(event.info.metadata.soft_limit, 100 * MIB);
	hv_event_clear(&event);
}
END_TEST

START_TEST(a_bad_key_is_refused_alone_and_said)
{
	struct hv_uuid uuid = fake_xen_uuid(web);
	char path[STORE_PATH];
	struct hv_event event;

	store_own_path(path, &uuid, "soft-limit");
	fake_xen_write(path, "much");
	store_own_path(path, &uuid, "min");
	fake_xen_write(path, "64MiB");
	open_host(0);
	event = describe(web);
	ck_assert(!event.info.metadata.has_soft_limit);
	ck_assert(event.info.metadata.has_min);
	ck_assert_ptr_nonnull(strstr(event.info.problem, "soft-limit"));
	hv_event_clear(&event);
}
END_TEST

START_TEST(two_domains_with_one_uuid_are_two)
{
	fake_xen_lock();
	memcpy(db->uuid, web->uuid, sizeof(db->uuid));
	fake_xen_unlock();
	open_host(0);
	ck_assert_uint_eq(listed(), 2);
	ck_assert_uint_eq(listed(), 2);
}
END_TEST

START_TEST(a_driver_is_seen_by_one_page_and_statistics_move_then)
{
	struct hv_call stats = { .type = HV_STATS, .uuid = fake_xen_uuid(web) };
	struct hv_event event;
	uint64_t last = 0;

	db->balloon = false;
	open_host(0);
	event = ask(stats);
	ck_assert_uint_eq(event.stats.known, HV_STAT_ACTUAL);
	hv_event_clear(&event);
	see_driver(web);
	event = ask(stats);
	last = event.stats.last_update;
	hv_event_clear(&event);
	event = ask(stats);
	ck_assert_uint_gt(event.stats.last_update, last);
	hv_event_clear(&event);
	until(web, false, GUEST); /* it has its page again */
	stats.uuid = fake_xen_uuid(db);
	event = ask((struct hv_call){ .type = HV_PERIOD, .uuid = stats.uuid, .period_s = 1 });
	hv_event_clear(&event);
	event = ask(stats);
	ck_assert_uint_eq(event.stats.known & HV_STAT_LAST_UPDATE, 0);
	hv_event_clear(&event);
}
END_TEST

START_TEST(BR_64_a_guest_that_says_that_it_has_a_driver_is_not_told_a_page)
{
	struct hv_event event;

	fake_xen_write("/local/domain/1/control/feature-balloon", "1");
	open_host(0);
	see_driver(web);
	nap(50);
	ck_assert_str_eq(fake_xen_changes(), "");
	event = ask((struct hv_call){ .type = HV_STATS, .uuid = fake_xen_uuid(web) });
	ck_assert_uint_eq(event.stats.known & HV_STAT_LAST_UPDATE, HV_STAT_LAST_UPDATE);
	hv_event_clear(&event);
}
END_TEST

START_TEST(BR_71_the_warning_says_whom_it_is_about_and_what_to_do)
{
	char *said = NULL;

	fake_xen_lock();
	web->flags |= XEN_DOMINF_hvm_guest;
	web->balloon = false;
	fake_xen_unlock();
	fake_xen_write("/local/domain/1/memory/static-max", "4096000");
	open_host(0);
	for (unsigned int nr = 0; nr < PATIENCE_MS && !said; nr++) {
		struct hv_event event = ask((struct hv_call){ .type = nr ? HV_STATS : HV_PERIOD,
			.uuid = fake_xen_uuid(web),
			.period_s = 1 });

		ck_assert_int_eq(event.error, 0);
		said = event.message ? strdup(event.message) : NULL;
		hv_event_clear(&event);
		nap(1);
	}
	ck_assert_ptr_nonnull(said);
	ck_assert_ptr_nonnull(strstr(said, "web ("));
	ck_assert_ptr_nonnull(strstr(said, "more than 512 of its 4000 MiB"));
	ck_assert_ptr_nonnull(strstr(said, "install a driver"));
	free(said);
}
END_TEST

static bool waits_for(int error)
{
	return error == -ENOTCONN || error == -ENOENT;
}

/*
 * Each type of call, once. must_work: it has to in the end; what could not be read or reached is
 * read again by itself.
 */
static void use(bool must_work)
{
	for (enum hv_call_type type = HV_LIST; type <= HV_HOST; type++) {
		static const struct hv_knobs_change change = { .set = { .has_low = true,
								       .low = MIB } };
		int error = -ENOENT;

		if (type == HV_UNTHROTTLE || type == HV_ATTACH || type == HV_RECLAIM)
			continue; /* not with this backend; without an agent */
		for (int i = 0; waits_for(error) && i < PATIENCE_MS; i++) {
			struct hv_event event = ask((struct hv_call){ .type = type,
				.uuid = fake_xen_uuid(web),
				.target = GUEST / 2 * 1024,
				.ceiling = GUEST * 1024,
				.period_s = 1,
				.change = &change });

			error = event.error;
			hv_event_clear(&event);
			if (!must_work)
				break;
			nap(waits_for(error));
		}
		if (must_work)
			ck_assert_msg(error == 0, "call %d: %d", (int)type, error);
	}
}

/* A refusal to read whose it is would drop the way back of a guest that was cut. */
START_TEST(a_ceiling_is_kept_where_it_cannot_be_read_whose_it_is)
{
	struct hv_uuid uuid = fake_xen_uuid(web);
	char path[STORE_PATH], text[256];
	unsigned int failed = 0;

	open_host(0);
	use(true);
	store_own_path(path, &uuid, "ceiling");
	for (unsigned int n = 1; n <= 60; n++) {
		struct hv_event event;

		fake_xen_fail_nth(n, EACCES);
		event = ask((struct hv_call){ .type = HV_TARGET,
			.uuid = uuid,
			.target = (GUEST / 2 + n % 2 * 4096) * 1024,
			.ceiling = GUEST * 1024 });
		hv_event_clear(&event);
		failed += fake_xen_failed_nth();
		ck_assert_msg(fake_xen_read(path, text), "%u: no ceiling", n);
	}
	ck_assert_uint_gt(failed, 0);
	fake_xen_fail_nth(0, 0);
	close_host();
}
END_TEST

/* What fails once leaves nothing half done, and all works afterwards. */
START_TEST(the_nth_call_that_fails_is_lived_through)
{
	static const int errors[] = { EPIPE, ENOMEM, EACCES };
	struct hv_uuid uuid = fake_xen_uuid(web);
	char path[STORE_PATH], text[256];
	unsigned int n = 0;
	bool injected;

	do {
		setup();
		n++;
		fake_xen_fail_nth(n, errors[n % 3]);
		open_host(0);
		use(false);
		injected = fake_xen_failed_nth();
		/* No target without its ceiling. */
		store_own_path(path, &uuid, "ceiling");
		if (number_at(web, "memory/target") == GUEST / 2)
			ck_assert_msg(fake_xen_read(path, text), "%u: no ceiling", n);
		use(true);
		/* A page that is asked for, to see its driver, comes back. */
		for (int i = 0; i < PATIENCE_MS && number_at(web, "memory/target") != GUEST / 2;
			i++)
			nap(1);
		ck_assert_uint_eq(number_at(web, "memory/target"), GUEST / 2);
		until(web, true, GUEST / 2 + 1024);
		close_host();
	} while (injected && n < 2000);
	ck_assert_uint_gt(n, 40);
	ck_assert_uint_lt(n, 2000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xen");
	TCase *tc = tcase_create("backend");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, the_pool_is_what_is_free_less_what_is_claimed);
	tcase_add_test(tc, a_cap_is_raised_before_a_target_and_lowered_after_it_was_reached);
	tcase_add_test(tc, BR_66_no_path_of_a_dead_domain_is_made_again);
	tcase_add_test(tc,
		a_domain_that_the_hypervisor_has_no_more_is_left_alone_though_its_path_is_there);
	tcase_add_test(tc, what_a_dying_domain_loses_is_not_told_as_its_balloon_s);
	tcase_add_test(tc, BR_72_dom0_is_off_limits_unless_it_has_a_minimum);
	tcase_add_test(tc,
		BR_72_dom0_keeps_its_minimum_whatever_is_asked_and_another_writer_is_not_fought);
	tcase_add_test(
		tc, domains_of_a_cpu_pool_of_their_own_are_a_group_and_those_of_the_first_are_not);
	tcase_add_test(tc, BR_75_a_thousand_lives_leave_no_key);
	tcase_add_test(tc, BR_75_a_full_quota_is_one_domain_s_error_and_nothing_of_it_is_written);
	tcase_add_test(tc, BR_81_the_smaller_limit_counts_and_no_target_above_it_is_sent);
	tcase_add_test(tc, a_write_that_others_keep_beating_ends_after_a_bounded_number_of_tries);
	tcase_add_test(tc, a_target_that_somebody_else_writes_is_told_and_not_fought);
	tcase_add_test(tc, a_target_decided_before_somebody_else_s_was_known_does_not_overwrite_it);
	tcase_add_test(
		tc, a_target_decided_before_a_reboot_was_known_is_not_written_to_the_new_life);
	tcase_add_test(tc,
		a_target_whose_answer_was_lost_with_the_connection_is_no_word_of_somebody_else_s);
	tcase_add_test(
		tc, a_page_that_is_asked_for_beside_a_target_is_not_taken_for_somebody_else_s);
	tcase_add_test(tc, a_daemon_that_starts_again_knows_ceiling_cap_and_driver);
	tcase_add_test(tc, a_daemon_that_starts_again_to_observe_goes_on_with_nothing);
	tcase_add_test(tc, a_target_of_nothing_or_without_end_is_refused);
	tcase_add_test(tc, a_daemon_killed_between_a_page_and_the_way_back_adopts_the_goal);
	tcase_add_test(tc, BR_79_a_domain_that_comes_in_is_under_migration_until_it_has_its_name);
	tcase_add_test(tc, what_is_recorded_of_another_life_does_not_count_and_knobs_do);
	tcase_add_test(tc, a_bad_key_is_refused_alone_and_said);
	tcase_add_test(tc, two_domains_with_one_uuid_are_two);
	tcase_add_test(tc, a_driver_is_seen_by_one_page_and_statistics_move_then);
	tcase_add_test(tc, BR_64_a_guest_that_says_that_it_has_a_driver_is_not_told_a_page);
	tcase_add_test(tc, BR_71_the_warning_says_whom_it_is_about_and_what_to_do);
	tcase_add_test(tc, a_ceiling_is_kept_where_it_cannot_be_read_whose_it_is);
	tcase_add_test(tc, the_nth_call_that_fails_is_lived_through);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
