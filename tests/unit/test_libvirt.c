/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the libvirt backend answers to calls and what they do, on a libvirt of the tests' own. How
 * its threads live with what hangs, breaks and comes by itself is in test_libvirt_threads.c.
 */
#include <config.h>

#include "hv/libvirt/libvirt.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hv/libvirt/domxml.h"
#include "tests/unit/libvirt_host.h"
#include "tests/unit/suite.h"

/* ---- URIs ---- */

START_TEST(all_uris_of_libvirt_are_taken_but_xens)
{
	static const char *const taken[] = { "qemu:///system", "qemu+unix:///system?socket=/x",
		"qemu+ssh://root@host/system", "test:///default", "lxc:///", "alias", "",
		"xenon:///" };
	static const char *const refused[] = { "xen:///system", "xen+ssh://host/", "XEN:///" };

	ck_assert(hv_libvirt.handles(NULL));
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		ck_assert_msg(hv_libvirt.handles(taken[i]), "%s", taken[i]);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct hv_params params = { .uri = refused[i] };

		ck_assert_msg(!hv_libvirt.handles(refused[i]), "%s", refused[i]);
		ck_assert(strstr(hv_libvirt_refusal(refused[i]), "Xen"));
		ck_assert_int_eq(hv_libvirt_open_with(&fake_calls, &params, &hv), -EINVAL);
	}
	ck_assert(!hv_libvirt.handles("sim:///x"));
}
END_TEST

/* ---- listing ---- */

START_TEST(active_domains_are_listed_with_their_states)
{
	static const struct {
		int state, reason;
		enum hv_run_state wanted;
	} cases[] = {
		{ VIR_DOMAIN_RUNNING, 0, HV_RUNNING },
		{ VIR_DOMAIN_BLOCKED, 0, HV_RUNNING },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_USER, HV_PAUSED },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_STARTING_UP, HV_STARTING },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_MIGRATION, HV_STARTING },
		{ VIR_DOMAIN_SHUTDOWN, 0, HV_PAUSED },
		{ VIR_DOMAIN_PMSUSPENDED, 0, HV_PAUSED },
		{ VIR_DOMAIN_CRASHED, 0, HV_PAUSED },
	};
	struct hv_event event;

	db->state = VIR_DOMAIN_SHUTOFF;
	open_backend();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake_lock();
		web->state = cases[i].state;
		web->reason = cases[i].reason;
		fake_unlock();
		event = ask(HV_LIST, NULL);
		ck_assert_int_eq(event.type, HV_EVENT_LISTED);
		ck_assert_int_eq(event.error, 0);
		ck_assert_uint_eq(event.listed.nr, 1);
		ck_assert_str_eq(event.listed.vms[0].name, "web");
		ck_assert_int_eq(event.listed.vms[0].state, cases[i].wanted);
		hv_event_clear(&event);
	}
	ck_assert_uint_eq(fake_count(FAKE_STATE), 0); /* in bulk */
}
END_TEST

/*
 * BR-118: no call relies on a flag that would keep it from waiting, for it would wait all the same;
 * and what a libvirt does not know falls back to the narrower call, once.
 */
START_TEST(states_are_read_one_by_one_where_there_is_no_bulk_and_it_is_said_once)
{
	struct hv_event event;

	open_backend();
	fake_fail(FAKE_ALL_STATS, VIR_ERR_NO_SUPPORT);
	event = ask(HV_LIST, NULL);
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_eq(event.listed.nr, 2);
	ck_assert_ptr_nonnull(event.message);
	hv_event_clear(&event);
	event = ask(HV_LIST, NULL);
	ck_assert_int_eq(event.error, 0);
	ck_assert_ptr_null(event.message);
	hv_event_clear(&event);
	ck_assert_uint_eq(fake_count(FAKE_ALL_STATS), 1);
	ck_assert_uint_eq(fake_count(FAKE_STATE), 4);
}
END_TEST

START_TEST(states_that_cannot_be_read_one_by_one_are_no_list_of_nobody)
{
	struct hv_event event;

	open_backend();
	fake_fail(FAKE_ALL_STATS, VIR_ERR_NO_SUPPORT);
	fake_fail(FAKE_STATE, VIR_ERR_OPERATION_TIMEOUT);
	event = ask(HV_LIST, NULL);
	ck_assert_int_eq(event.error, -ETIMEDOUT);
	ck_assert(strstr(event.message, "reading a domain's state: made up"));
	hv_event_clear(&event);
	/* Those that have gone meanwhile are left out. */
	fake_fail(FAKE_STATE, VIR_ERR_NO_DOMAIN);
	event = ask(HV_LIST, NULL);
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_eq(event.listed.nr, 0);
	hv_event_clear(&event);
}
END_TEST

START_TEST(no_domains_is_a_list_too)
{
	struct hv_event event;

	web->state = db->state = VIR_DOMAIN_SHUTOFF;
	open_backend();
	event = ask(HV_LIST, NULL);
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_eq(event.listed.nr, 0);
	hv_event_clear(&event);
	event = ask(HV_PROCESS, NULL);
	ck_assert_int_eq(event.type, HV_EVENT_PROCESS);
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_eq(event.process.nr, 0);
	hv_event_clear(&event);
}
END_TEST

START_TEST(processes_are_those_of_the_last_list)
{
	struct hv_event event;

	open_backend();
	event = ask(HV_LIST, NULL);
	hv_event_clear(&event);
	event = ask(HV_PROCESS, NULL);
	ck_assert_uint_eq(event.process.nr, 2);
	ck_assert(!event.process.vms[0].known);
	hv_event_clear(&event);
}
END_TEST

/* ---- descriptions ---- */

static uint64_t soft_limit(const struct fake_domain *dom)
{
	struct hv_event event = ask(HV_INFO, dom);
	uint64_t limit;

	ck_assert_int_eq(event.type, HV_EVENT_INFO);
	ck_assert_int_eq(event.error, 0);
	ck_assert(hv_uuid_equal(&event.info.uuid, &event.uuid));
	limit = event.info.memtune.has_soft_limit ? event.info.memtune.soft_limit : HV_UNLIMITED;
	hv_event_clear(&event);
	return limit;
}

#define LIVE_LIMIT     "<memtune><soft_limit unit='KiB'>1024</soft_limit></memtune>"
#define INACTIVE_LIMIT "<memtune><soft_limit unit='KiB'>2048</soft_limit></memtune>"

START_TEST(the_soft_limit_is_the_inactive_configurations_else_the_live_one)
{
	strcpy(web->inside, LIVE_LIMIT);
	strcpy(db->inside, LIVE_LIMIT);
	db->persistent = false;
	db->has_config_limit = true;
	open_backend();
	ck_assert_uint_eq(soft_limit(web), MIB);
	fake_lock();
	web->has_config_limit = true;
	web->config_limit_kib = 4096;
	fake_unlock();
	ck_assert_uint_eq(soft_limit(web), 4 * MIB);
	ck_assert_uint_eq(soft_limit(db), MIB);
	ck_assert_uint_eq(fake_count(FAKE_XML_INACTIVE), 0);
}
END_TEST

START_TEST(a_libvirt_without_memory_parameters_has_the_limit_in_the_inactive_description)
{
	struct hv_event event;

	strcpy(web->inside_inactive, INACTIVE_LIMIT);
	open_backend();
	fake_fail(FAKE_PARAMETERS, VIR_ERR_OPERATION_INVALID);
	event = ask(HV_INFO, web);
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_eq(event.info.memtune.soft_limit, 2 * MIB);
	ck_assert_ptr_nonnull(event.message);
	hv_event_clear(&event);
	ck_assert_uint_eq(soft_limit(web), 2 * MIB);
	ck_assert_uint_eq(fake_count(FAKE_PARAMETERS), 1);
}
END_TEST

/* BR-99: no memory controller. memtune says nothing, the other sources hold, and targets are set.
 */
START_TEST(without_a_memory_controller_memtune_is_no_source_and_the_balloon_works)
{
	struct hv_event event;
	struct hv_call call;

	web->has_config_limit = true; /* and nobody can ask for it */
	web->config_limit_kib = 4096;
	strcpy(web->inside,
		"<metadata><memory xmlns='urn:ballast:memory:1' soft-limit='3MiB'/></metadata>");
	open_backend();
	fake_fail(FAKE_PARAMETERS, VIR_ERR_OPERATION_UNSUPPORTED);
	event = ask(HV_INFO, web);
	ck_assert_int_eq(event.error, 0);
	ck_assert(!event.info.memtune.has_soft_limit);
	ck_assert_uint_eq(event.info.metadata.soft_limit, 3 * MIB);
	ck_assert_ptr_nonnull(event.message);
	hv_event_clear(&event);
	event = ask(HV_INFO, web);
	ck_assert_ptr_null(event.message);
	hv_event_clear(&event);
	call = make(HV_TARGET, web);
	call.target = 128 * MIB;
	call.ceiling = 256 * MIB;
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	expect_done(answer_to(call.token), 0);
}
END_TEST

START_TEST(a_limit_that_cannot_be_read_is_not_taken_for_none)
{
	static const enum fake_call calls[] = { FAKE_PERSISTENT, FAKE_XML, FAKE_XML_INACTIVE };
	struct hv_event event;

	open_backend();
	fake_fail(FAKE_PARAMETERS, VIR_ERR_OPERATION_TIMEOUT);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		fake_fail(calls[i], VIR_ERR_OPERATION_TIMEOUT);
		event = ask(HV_INFO, web);
		ck_assert_int_eq(event.error, -ETIMEDOUT);
		ck_assert(strstr(event.message, "made up"));
		hv_event_clear(&event);
		fake_fail(calls[i], 0);
	}
}
END_TEST

START_TEST(metadata_and_its_problems_are_told)
{
	struct hv_event event;

	strcpy(web->inside,
		"<metadata><memory xmlns='" DOMXML_MEMORY_NS "' min='1MiB' max='x'/>"
		"<ceiling xmlns='" DOMXML_CEILING_NS "' kib='1024'/></metadata>"
		"<devices><memballoon model='virtio'><stats period='2'/></memballoon></devices>");
	open_backend();
	event = ask(HV_INFO, web);
	ck_assert_int_eq(event.error, 0);
	ck_assert_str_eq(event.info.name, "web");
	ck_assert_uint_eq(event.info.maximum, 1024 * MIB);
	ck_assert_uint_eq(event.info.ceiling, MIB);
	ck_assert(event.info.balloon && event.info.stats_period_s == 2);
	ck_assert(event.info.metadata.has_min && !event.info.metadata.has_max);
	ck_assert(strstr(event.info.problem, "max"));
	hv_event_clear(&event);
}
END_TEST

START_TEST(a_description_that_is_garbage_is_an_error)
{
	struct hv_event event;

	strcpy(web->inside, "<");
	open_backend();
	event = ask(HV_INFO, web);
	ck_assert_int_eq(event.error, -EBADMSG);
	ck_assert_ptr_nonnull(event.message);
	hv_event_clear(&event);
}
END_TEST

/* ---- statistics ---- */

static void put_stat(struct fake_domain *dom, int tag, unsigned long long value)
{
	dom->stats[dom->nr_stats++] = (virDomainMemoryStatStruct){ .tag = tag, .val = value };
}

START_TEST(statistics_are_bytes_and_unknown_ones_are_not_known)
{
	struct hv_event event;

	put_stat(web, VIR_DOMAIN_MEMORY_STAT_ACTUAL_BALLOON, 1024);
	put_stat(web, VIR_DOMAIN_MEMORY_STAT_UNUSED, 0);
	put_stat(web, VIR_DOMAIN_MEMORY_STAT_USABLE, 512);
	put_stat(web, VIR_DOMAIN_MEMORY_STAT_DISK_CACHES, 256);
	put_stat(web, VIR_DOMAIN_MEMORY_STAT_SWAP_IN, 3);
	put_stat(web, VIR_DOMAIN_MEMORY_STAT_LAST_UPDATE, 99);
	put_stat(web, VIR_DOMAIN_MEMORY_STAT_RSS, 77);
	put_stat(web, 4711, 1);
	put_stat(db, VIR_DOMAIN_MEMORY_STAT_ACTUAL_BALLOON, 0);
	put_stat(db, VIR_DOMAIN_MEMORY_STAT_UNUSED, UINT64_MAX);
	put_stat(db, VIR_DOMAIN_MEMORY_STAT_USABLE, UINT64_MAX / 1024);
	put_stat(db, VIR_DOMAIN_MEMORY_STAT_DISK_CACHES, DOMXML_UNLIMITED_KIB);
	put_stat(db, VIR_DOMAIN_MEMORY_STAT_LAST_UPDATE, 0);
	open_backend();
	event = ask(HV_STATS, web);
	ck_assert_int_eq(event.type, HV_EVENT_STATS);
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_eq(event.stats.known, HV_STAT_ACTUAL | HV_STAT_UNUSED | HV_STAT_USABLE |
						     HV_STAT_DISK_CACHES | HV_STAT_SWAP_IN |
						     HV_STAT_LAST_UPDATE);
	ck_assert_uint_eq(event.stats.actual, MIB);
	ck_assert_uint_eq(event.stats.unused, 0);
	ck_assert_uint_eq(event.stats.usable, MIB / 2);
	ck_assert_uint_eq(event.stats.disk_caches, MIB / 4);
	ck_assert_uint_eq(event.stats.swap_in, 3072);
	ck_assert_uint_eq(event.stats.last_update, 99);
	hv_event_clear(&event);
	event = ask(HV_STATS, db);
	ck_assert_int_eq(event.error, 0);
	ck_assert_uint_eq(event.stats.known, 0);
	hv_event_clear(&event);
}
END_TEST

START_TEST(the_period_is_set_live)
{
	struct hv_call call;

	open_backend();
	call = make(HV_PERIOD, web);
	call.period_s = 1;
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	expect_done(answer_to(call.token), 0);
	ck_assert_str_eq(fake_changes(), "period web 1;");
	call.period_s = 1ULL << 40;
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), -EINVAL);
}
END_TEST

/* ---- targets ---- */

START_TEST(the_ceiling_is_recorded_before_the_target_and_only_when_it_is_another)
{
	open_backend();
	expect_done(set_target(web, 100 * MIB + 1, 256 * MIB), 0);
	expect_done(set_target(web, 90 * MIB, 256 * MIB), 0);
	expect_done(set_target(web, 80 * MIB, 200 * MIB), 0);
	expect_done(set_target(web, 70 * MIB, 0), 0);
	/* Rounded up: never below what was asked for. */
	ck_assert_str_eq(fake_changes(), "note web 262144;memory web 102401;memory web 92160;"
					 "note web 204800;memory web 81920;memory web 71680;");
}
END_TEST

START_TEST(a_note_that_cannot_be_read_is_written_anew)
{
	strcpy(web->note, "<ceiling kib='many'/>");
	open_backend();
	expect_done(set_target(web, 100 * MIB, 256 * MIB), 0);
	ck_assert_str_eq(fake_changes(), "note web 262144;memory web 102400;");
}
END_TEST

START_TEST(without_its_ceiling_no_target_is_set)
{
	struct hv_event event;

	open_backend();
	fake_fail(FAKE_SET_METADATA, VIR_ERR_OPERATION_TIMEOUT);
	event = set_target(web, 100 * MIB, 256 * MIB);
	ck_assert(strstr(event.message, "ceiling"));
	expect_done(event, -ETIMEDOUT);
	ck_assert_str_eq(fake_changes(), "");
}
END_TEST

START_TEST(a_target_that_makes_no_sense_is_refused)
{
	open_backend();
	expect_done(set_target(web, 0, 256 * MIB), -EINVAL);
	expect_done(set_target(web, HV_UNLIMITED, 256 * MIB), -EINVAL);
	expect_done(set_target(web, 100 * MIB, HV_UNLIMITED), -EINVAL);
	ck_assert_str_eq(fake_changes(), "");
}
END_TEST

START_TEST(a_libvirt_without_memory_flags_gets_the_call_without_and_it_is_said_once)
{
	struct hv_event event;

	open_backend();
	fake_fail(FAKE_SET_MEMORY_FLAGS, VIR_ERR_NO_SUPPORT);
	event = set_target(web, 100 * MIB, 0);
	ck_assert_ptr_nonnull(event.message);
	expect_done(event, 0);
	event = set_target(web, 90 * MIB, 0);
	ck_assert_ptr_null(event.message);
	expect_done(event, 0);
	ck_assert_str_eq(fake_changes(), "memory web 102400;memory web 92160;");
	ck_assert_uint_eq(fake_count(FAKE_SET_MEMORY_FLAGS), 1);
}
END_TEST

START_TEST(a_refused_target_is_not_tried_another_way)
{
	open_backend();
	fake_fail(FAKE_SET_MEMORY_FLAGS, VIR_ERR_OPERATION_INVALID);
	expect_done(set_target(web, 100 * MIB, 0), -ESRCH);
	ck_assert_uint_eq(fake_count(FAKE_SET_MEMORY), 0);
}
END_TEST

/* ---- what fails ---- */

START_TEST(knobs_go_into_the_live_element_and_the_stored_one_each_as_it_is)
{
	struct hv_knobs_change change = { .set = { .has_low = true, .low = 1536 * MIB },
		.clear = HV_KNOB_MIN };
	struct hv_call call = make(HV_KNOBS, web);

	call.change = &change;
	web->persistent = true;
	strcpy(web->memory[0], "<memory soft-limit='2GiB' min='1GiB' colour='red'/>");
	strcpy(web->memory[1], "<memory max='4GiB'/>");
	open_backend();
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	expect_done(answer_to(call.token), 0);
	/* What nobody knows and what was not named stay. */
	ck_assert_str_eq(
		web->memory[0], "<memory soft-limit=\"2GiB\" colour=\"red\" low=\"1536MiB\"/>");
	ck_assert_str_eq(web->memory[1], "<memory max=\"4GiB\" low=\"1536MiB\"/>");
	ck_assert_uint_eq(fake_count(FAKE_SET_MEMORY_FLAGS), 0);

	/* The live one cannot be written: the stored one is as it was. */
	change.set.low = MIB;
	fake_fail(FAKE_SET_METADATA, VIR_ERR_OPERATION_INVALID);
	call = make(HV_KNOBS, web);
	call.change = &change;
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	expect_done(answer_to(call.token), -ESRCH);
	ck_assert_str_eq(web->memory[1], "<memory max=\"4GiB\" low=\"1536MiB\"/>");
	fake_fail(FAKE_SET_METADATA, 0);

	/* A contradiction in either is refused before anything is written. */
	change = (struct hv_knobs_change){ .set = { .has_min = true, .min = 5120 * MIB } };
	call = make(HV_KNOBS, web);
	call.change = &change;
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	expect_done(answer_to(call.token), -EINVAL);
	ck_assert_ptr_null(strstr(web->memory[0], "min"));

	/* An element that says nothing goes. */
	strcpy(web->memory[0], "<memory max='4GiB'/>");
	strcpy(web->memory[1], "<memory max='4GiB'/>");
	change = (struct hv_knobs_change){ .clear = HV_KNOB_MAX };
	call = make(HV_KNOBS, web);
	call.change = &change;
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	expect_done(answer_to(call.token), 0);
	ck_assert_str_eq(web->memory[0], "");
	ck_assert_str_eq(web->memory[1], "");
}
END_TEST

START_TEST(half_a_change_of_knobs_that_cannot_be_taken_back_is_said)
{
	struct hv_knobs_change change = { .set = { .has_low = true, .low = MIB } };
	struct hv_call call;
	struct hv_event event;

	strcpy(web->memory[0], "<memory max='2GiB'/>");
	strcpy(web->memory[1], "<memory max='4GiB'/>");
	open_backend();
	event = ask(HV_STATS, web); /* the worker is connected now */
	hv_event_clear(&event);
	fake_fail(FAKE_SET_METADATA, VIR_ERR_OPERATION_INVALID);
	/* Looking it up, whether it is persistent, both elements, writing one: and back. */
	fake_fail_nth(6);
	call = make(HV_KNOBS, web);
	call.change = &change;
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	event = answer_to(call.token);
	ck_assert(fake_failed_nth());
	ck_assert_int_eq(event.error, -ESRCH);
	ck_assert(strstr(event.message, "could not be taken back; writing the metadata"));
	ck_assert_str_eq(web->memory[1], "<memory max=\"4GiB\" low=\"1MiB\"/>");
	hv_event_clear(&event);
}
END_TEST

START_TEST(knobs_of_a_transient_domain_are_live_only)
{
	struct hv_knobs_change change = { .set = { .has_soft_limit = true,
						  .soft_limit = HV_UNLIMITED } };
	struct hv_call call = make(HV_KNOBS, web);

	call.change = &change;
	web->persistent = false;
	open_backend();
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	expect_done(answer_to(call.token), 0);
	ck_assert_str_eq(web->memory[0], "<memory soft-limit=\"none\"/>");
	ck_assert_str_eq(web->memory[1], "");
}
END_TEST

/* ---- the port of an agent ---- */

#define CONTROLLER "<devices><controller type='virtio-serial'/></devices>"

static struct hv_event attach(const struct fake_domain *dom, bool persistent)
{
	struct hv_call call = make(HV_ATTACH, dom);

	call.persistent = persistent;
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	return answer_to(call.token);
}

START_TEST(port_is_added_where_it_is_not_and_only_once)
{
	strcpy(web->inside, CONTROLLER);
	strcpy(db->inside, CONTROLLER);
	strcpy(web->inside_inactive, "<devices></devices>");
	strcpy(db->inside_inactive, "<devices></devices>");
	open_backend();
	expect_done(attach(web, false), 0);
	ck_assert_str_eq(fake_changes(), "attached web 1;");
	ck_assert_ptr_nonnull(strstr(web->inside, "name='org.ballast.agent.0'"));
	expect_done(attach(web, false), -EEXIST);
	expect_done(attach(web, true), 0); /* what is live already is left alone */
	expect_done(attach(web, true), -EEXIST);
	expect_done(attach(db, true), 0);
	ck_assert_str_eq(fake_changes(), "attached web 1;attached web 2;attached db 3;");
}
END_TEST

START_TEST(port_that_cannot_be_added_says_why_and_nothing_is_changed)
{
	struct hv_event event;

	open_backend();
	event = attach(web, true);
	ck_assert_int_eq(event.error, -ENXIO);
	ck_assert_ptr_nonnull(strstr(event.message, "no virtio-serial controller"));
	hv_event_clear(&event);
	web->persistent = false;
	strcpy(web->inside, CONTROLLER);
	event = attach(web, true);
	ck_assert_int_eq(event.error, -EOPNOTSUPP);
	ck_assert_ptr_nonnull(strstr(event.message, "transient"));
	hv_event_clear(&event);
	fake_fail(FAKE_ATTACH, VIR_ERR_OPERATION_UNSUPPORTED);
	event = attach(web, false);
	ck_assert_int_eq(event.error, -EOPNOTSUPP);
	ck_assert_ptr_nonnull(strstr(event.message, "adding the port: made up"));
	hv_event_clear(&event);
	ck_assert_str_eq(fake_changes(), "");
}
END_TEST

START_TEST(every_call_is_answered_once_whatever_fails)
{
	const struct hv_knobs_change nothing = { 0 };

	for (int which = FAKE_ALL_STATS; which < FAKE_KEEPALIVE; which++) {
		for (int code = VIR_ERR_INTERNAL_ERROR; code <= VIR_ERR_AUTH_UNAVAILABLE;
			code += 7) {
			struct hv_event event;

			if (!hv)
				open_backend();
			fake_fail((enum fake_call)which, code);
			for (int type = HV_LIST; type <= HV_PROCESS; type++) {
				struct hv_call call = make((enum hv_call_type)type, web);

				call.target = call.ceiling = 64 * MIB;
				call.period_s = 1;
				call.change = &nothing;
				ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
				event = answer_to(call.token);
				ck_assert(event.error <= 0);
				ck_assert(event.error == 0 || event.message);
				hv_event_clear(&event);
			}
			fake_fail((enum fake_call)which, 0);
			ck_assert_int_eq(hv_libvirt.next(hv, &event), 0);
		}
		/* Fallbacks are remembered: the next call fails in a new backend. */
		hv_libvirt.close(hv);
		hv = NULL;
	}
}
END_TEST

START_TEST(the_reason_is_copied_before_it_is_cleared)
{
	struct hv_event event;

	open_backend();
	fake_fail(FAKE_MEMORY_STATS, VIR_ERR_OPERATION_TIMEOUT);
	event = ask(HV_STATS, web);
	ck_assert_int_eq(event.error, -ETIMEDOUT);
	ck_assert(strstr(event.message, "statistics") && strstr(event.message, "made up"));
	hv_event_clear(&event);
}
END_TEST

START_TEST(an_unknown_domain_is_not_there)
{
	struct hv_call call;
	struct hv_event event;

	open_backend();
	call = make(HV_STATS, NULL);
	call.uuid.bytes[15] = 200;
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), 0);
	event = answer_to(call.token);
	ck_assert_int_eq(event.error, -ENOENT);
	hv_event_clear(&event);
	call.type = (enum hv_call_type)99;
	ck_assert_int_eq(hv_libvirt.submit(hv, &call), -EINVAL);
}
END_TEST

START_TEST(what_a_driver_has_no_events_of_is_no_failure)
{
	struct hv_event event;

	fake_fail(FAKE_EVENT, VIR_ERR_NO_SUPPORT);
	fake_fail(FAKE_CLOSE_CALLBACK, VIR_ERR_NO_SUPPORT);
	fake_fail(FAKE_KEEPALIVE, VIR_ERR_NO_SUPPORT);
	open_backend();
	event = ask(HV_LIST, NULL);
	ck_assert_int_eq(event.error, 0);
	hv_event_clear(&event);
}
END_TEST

/* ---- kinds and jobs ---- */

/* BR-79, BR-110: what a job's own statistics say, where no state does. */
START_TEST(a_job_is_told_with_the_statistics)
{
	static const struct {
		int operation;
		enum hv_job job;
	} all[] = {
		{ 0, HV_JOB_NONE },
		{ VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT, HV_JOB_MIGRATION },
		{ VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN, HV_JOB_MIGRATION },
		{ VIR_DOMAIN_JOB_OPERATION_SAVE, HV_JOB_SAVE },
		{ VIR_DOMAIN_JOB_OPERATION_DUMP, HV_JOB_SAVE },
		{ VIR_DOMAIN_JOB_OPERATION_SNAPSHOT, HV_JOB_SNAPSHOT },
		{ VIR_DOMAIN_JOB_OPERATION_SNAPSHOT_REVERT, HV_JOB_SNAPSHOT },
		{ VIR_DOMAIN_JOB_OPERATION_BACKUP, HV_JOB_BACKUP },
		{ 99, HV_JOB_SAVE },
	};

	open_backend();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct hv_event event;

		fake_lock();
		web->job = all[i].operation;
		fake_unlock();
		event = ask(HV_STATS, web);
		ck_assert_int_eq(event.error, 0);
		ck_assert(event.stats.job_known);
		ck_assert_int_eq(event.stats.job, all[i].job);
		hv_event_clear(&event);
	}
}
END_TEST

START_TEST(a_libvirt_without_jobs_says_so_once_and_statistics_are_read_all_the_same)
{
	struct hv_event event;

	fake_fail(FAKE_JOB, VIR_ERR_NO_SUPPORT);
	open_backend();
	event = ask(HV_STATS, web);
	ck_assert_int_eq(event.error, 0);
	ck_assert(!event.stats.job_known);
	ck_assert_ptr_nonnull(strstr(event.message, "tells no jobs"));
	hv_event_clear(&event);
	event = ask(HV_STATS, web);
	ck_assert_int_eq(event.error, 0);
	ck_assert_ptr_null(event.message);
	hv_event_clear(&event);
	ck_assert_uint_eq(fake_count(FAKE_JOB), 1);
}
END_TEST

START_TEST(no_target_is_set_while_a_job_runs_but_for_a_backup)
{
	open_backend();
	fake_lock();
	web->job = VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT;
	fake_unlock();
	expect_done(set_target(web, 512 << 20, 1 << 30), -EBUSY);
	ck_assert_str_eq(fake_changes(), "");
	fake_lock();
	web->job = VIR_DOMAIN_JOB_OPERATION_BACKUP;
	fake_unlock();
	expect_done(set_target(web, 512 << 20, 1 << 30), 0);
}
END_TEST

START_TEST(a_throttle_is_lifted_live_where_the_configuration_has_the_limit_too)
{
	fake_lock();
	web->persistent = true;
	web->has_config_limit = true;
	web->config_limit_kib = 4096;
	db->persistent = false;
	fake_unlock();
	open_backend();
	expect_done(ask(HV_UNTHROTTLE, web), 0);
	ck_assert_str_eq(fake_changes(), "lifted web;");
	expect_done(ask(HV_UNTHROTTLE, db), -EOPNOTSUPP);
	ck_assert_str_eq(fake_changes(), "lifted web;");
}
END_TEST

/* It would be the soft limit that is gone, not the throttle alone. */
START_TEST(a_throttle_that_is_the_only_soft_limit_is_not_lifted)
{
	struct hv_event event;

	strcpy(web->inside, LIVE_LIMIT);
	open_backend();
	expect_done(ask(HV_UNTHROTTLE, web), -EOPNOTSUPP);
	/* Nor where it cannot be read what the configuration says. */
	fake_fail(FAKE_PERSISTENT, VIR_ERR_OPERATION_TIMEOUT);
	expect_done(ask(HV_UNTHROTTLE, web), -ETIMEDOUT);
	fake_fail(FAKE_PERSISTENT, 0);
	fake_fail(FAKE_PARAMETERS, VIR_ERR_OPERATION_TIMEOUT);
	fake_fail(FAKE_XML_INACTIVE, VIR_ERR_OPERATION_TIMEOUT);
	expect_done(ask(HV_UNTHROTTLE, web), -ETIMEDOUT);
	fake_fail(FAKE_PARAMETERS, 0);
	ck_assert_str_eq(fake_changes(), "");
	event = ask(HV_INFO, web);
	ck_assert_uint_eq(event.info.memtune.soft_limit, MIB);
	hv_event_clear(&event);
}
END_TEST

START_TEST(job_events_ask_to_look_anew)
{
	static const int events[] = { VIR_DOMAIN_EVENT_ID_MIGRATION_ITERATION,
		VIR_DOMAIN_EVENT_ID_JOB_COMPLETED, VIR_DOMAIN_EVENT_ID_BLOCK_JOB };

	open_backend();
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct hv_event event;

		fake_emit_job(web, events[i]);
		event = wait_for(HV_EVENT_CHANGED);
		ck_assert_uint_eq(event.uuid.bytes[15], fake_uuid(web).bytes[15]);
		hv_event_clear(&event);
	}
}
END_TEST

/* BR-116 */
START_TEST(states_that_are_too_much_for_one_message_are_read_one_by_one)
{
	struct hv_event event;

	open_backend();
	fake_fail(FAKE_ALL_STATS, VIR_ERR_RPC);
	event = ask(HV_LIST, NULL);
	ck_assert_int_eq(event.error, 0);
	ck_assert_ptr_null(event.message);
	ck_assert_uint_ge(event.listed.nr, 2);
	hv_event_clear(&event);
}
END_TEST

START_TEST(jobs_that_show_in_a_state_are_listed)
{
	static const struct {
		int state, reason;
		enum hv_run_state run;
		enum hv_job job;
	} all[] = {
		{ VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_MIGRATED, HV_RUNNING, HV_JOB_NONE },
		{ VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_POSTCOPY, HV_RUNNING, HV_JOB_POSTCOPY },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_MIGRATION, HV_STARTING, HV_JOB_MIGRATION },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY, HV_PAUSED, HV_JOB_POSTCOPY },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_SAVE, HV_PAUSED, HV_JOB_SAVE },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_DUMP, HV_PAUSED, HV_JOB_SAVE },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_SNAPSHOT, HV_PAUSED, HV_JOB_SNAPSHOT },
		{ VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_USER, HV_PAUSED, HV_JOB_NONE },
	};

	open_backend();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct hv_event event;
		unsigned int found = 0;

		fake_lock();
		web->state = all[i].state;
		web->reason = all[i].reason;
		fake_unlock();
		event = ask(HV_LIST, NULL);
		ck_assert_int_eq(event.error, 0);
		for (size_t k = 0; k < event.listed.nr; k++) {
			if (strcmp(event.listed.vms[k].name, "web") != 0)
				continue;
			ck_assert_int_eq(event.listed.vms[k].state, all[i].run);
			ck_assert_int_eq(event.listed.vms[k].job, all[i].job);
			found++;
		}
		ck_assert_uint_eq(found, 1);
		hv_event_clear(&event);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("libvirt");
	TCase *tc = tcase_create("calls");

	tcase_add_checked_fixture(tc, host_setup, host_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_job_is_told_with_the_statistics);
	tcase_add_test(
		tc, a_libvirt_without_jobs_says_so_once_and_statistics_are_read_all_the_same);
	tcase_add_test(tc, no_target_is_set_while_a_job_runs_but_for_a_backup);
	tcase_add_test(tc, a_throttle_is_lifted_live_where_the_configuration_has_the_limit_too);
	tcase_add_test(tc, a_throttle_that_is_the_only_soft_limit_is_not_lifted);
	tcase_add_test(tc, job_events_ask_to_look_anew);
	tcase_add_test(tc, states_that_are_too_much_for_one_message_are_read_one_by_one);
	tcase_add_test(tc, jobs_that_show_in_a_state_are_listed);
	tcase_add_test(tc, all_uris_of_libvirt_are_taken_but_xens);
	tcase_add_test(tc, active_domains_are_listed_with_their_states);
	tcase_add_test(tc, states_are_read_one_by_one_where_there_is_no_bulk_and_it_is_said_once);
	tcase_add_test(tc, states_that_cannot_be_read_one_by_one_are_no_list_of_nobody);
	tcase_add_test(tc, no_domains_is_a_list_too);
	tcase_add_test(tc, processes_are_those_of_the_last_list);
	tcase_add_test(tc, the_soft_limit_is_the_inactive_configurations_else_the_live_one);
	tcase_add_test(
		tc, a_libvirt_without_memory_parameters_has_the_limit_in_the_inactive_description);
	tcase_add_test(tc, without_a_memory_controller_memtune_is_no_source_and_the_balloon_works);
	tcase_add_test(tc, a_limit_that_cannot_be_read_is_not_taken_for_none);
	tcase_add_test(tc, metadata_and_its_problems_are_told);
	tcase_add_test(tc, a_description_that_is_garbage_is_an_error);
	tcase_add_test(tc, statistics_are_bytes_and_unknown_ones_are_not_known);
	tcase_add_test(tc, knobs_go_into_the_live_element_and_the_stored_one_each_as_it_is);
	tcase_add_test(tc, half_a_change_of_knobs_that_cannot_be_taken_back_is_said);
	tcase_add_test(tc, knobs_of_a_transient_domain_are_live_only);
	tcase_add_test(tc, port_is_added_where_it_is_not_and_only_once);
	tcase_add_test(tc, port_that_cannot_be_added_says_why_and_nothing_is_changed);
	tcase_add_test(tc, the_period_is_set_live);
	tcase_add_test(tc, the_ceiling_is_recorded_before_the_target_and_only_when_it_is_another);
	tcase_add_test(tc, a_note_that_cannot_be_read_is_written_anew);
	tcase_add_test(tc, without_its_ceiling_no_target_is_set);
	tcase_add_test(tc, a_target_that_makes_no_sense_is_refused);
	tcase_add_test(
		tc, a_libvirt_without_memory_flags_gets_the_call_without_and_it_is_said_once);
	tcase_add_test(tc, a_refused_target_is_not_tried_another_way);
	tcase_add_test(tc, every_call_is_answered_once_whatever_fails);
	tcase_add_test(tc, the_reason_is_copied_before_it_is_cleared);
	tcase_add_test(tc, an_unknown_domain_is_not_there);
	tcase_add_test(tc, what_a_driver_has_no_events_of_is_no_failure);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
