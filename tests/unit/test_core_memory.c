/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The core where memory runs out, and where it cannot be made. */
#include <config.h>

#include "tests/unit/host.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- allocations that fail, by the linker's --wrap ---- */

static unsigned long allocations, fail_at, fail_for;

static bool fails(void)
{
	if (!fail_at || !fake.in_core)
		return false;
	allocations++;
	return allocations >= fail_at && allocations < fail_at + fail_for;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__real_reallocarray(void *p, size_t nr, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_reallocarray(void *p, size_t nr, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return fails() ? NULL : __real_calloc(nr, size);
}

void *__wrap_reallocarray(void *p, size_t nr, size_t size)
{
	return fails() ? NULL : __real_reallocarray(p, nr, size);
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size)
{
	return fails() ? NULL : __real_strndup(text, size);
}

/* ---- memory that runs out ---- */

/* VMs and groups come, move and go; returns what the engine knows in the end, as a text. */
static void eventful(char *text, size_t size)
{
	struct host_vm *a, *b;
	uint64_t id;

	host_setup();
	fake.next = UINT64_MAX;
	a = host_vm(0);
	a->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/a/b" };
	host_up();
	b = host_vm(1);
	b->problem = "something";
	host_event(HV_EVENT_CHANGED, b);
	host_run(SECOND);
	a->metadata.group = (char *)"/c/d";
	host_event(HV_EVENT_CHANGED, a);
	host_run(SECOND);
	host_gone(1);
	for (unsigned int i = 2; i < HOST_VMS; i++)
		host_vm(i);
	strcpy(a->name, "renamed");
	host_run(20 * SECOND);
	snprintf(text, size, "%zu VMs %zu groups, %s", fake_nr(true), fake_nr(false),
		core_find(host.core, "renamed", &id) == 0 ? "renamed" : "");
	for (unsigned int i = 0; i < HOST_VMS; i++)
		if (i != 1)
			ck_assert_int_eq(host_state(&host.vms[i]), ENGINE_VM_RUNNING);
	host_teardown();
}

START_TEST(any_allocation_may_fail_and_nothing_is_lost)
{
	char expected[64], text[64];

	eventful(expected, sizeof(expected));
	ck_assert_str_eq(expected, "19 VMs 2 groups, renamed");
	for (fail_at = 1;; fail_at++) {
		fail_for = fail_at % 3 + 1;
		allocations = 0;
		eventful(text, sizeof(text));
		if (allocations < fail_at)
			break;
		ck_assert_msg(!strcmp(text, expected), "allocation %lu: %s", fail_at, text);
	}
	ck_assert_uint_gt(fail_at, 50);
}
END_TEST

START_TEST(core_that_cannot_be_made_says_so)
{
	static const struct hv_backend backend = { .name = "x", .granule = 1 };
	struct core_group_knobs groups[] = { { (char *)"/a", MEMCG_KNOBS_NONE, HV_MANAGE_ACT },
		{ (char *)"/b", MEMCG_KNOBS_NONE, HV_MANAGE_ACT } };
	struct core *core = NULL;
	int r;

	host.config.groups = groups;
	host.config.nr_groups = 2;
	fail_for = 1;
	for (fail_at = 1;; fail_at++) {
		allocations = 0;
		fake.in_core = true;
		r = core_new(&host.config, &backend, &core);
		fake.in_core = false;
		if (r == 0)
			break;
		ck_assert_int_eq(r, -ENOMEM);
		ck_assert_ptr_null(core);
	}
	ck_assert_uint_gt(fail_at, 5);
	core_free(core);
}
END_TEST

START_TEST(engine_without_memory_is_told_again)
{
	struct host_vm *vm = host_vm(0);

	vm->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/a" };
	fake.error = -ENOMEM; /* the first tick; the VM comes in a later one */
	host_up();
	fake.error = -ENOMEM;
	vm->memtune = (struct hv_knobs){ .has_soft_limit = true, .soft_limit = MIB };
	host_event(HV_EVENT_CHANGED, vm);
	host_run(SECOND);
	ck_assert_uint_eq(host_item(vm)->knobs.soft_limit, PAGES(MIB));

	host_gone(0);
	fake.error = -ENOMEM;
	host_event(HV_EVENT_CHANGED, vm);
	host_run(SECOND);
	ck_assert_uint_eq(fake_nr(true), 0);
	ck_assert_uint_eq(fake_nr(false), 0);
}
END_TEST

START_TEST(engine_without_memory_for_a_new_vm_gets_it_again_with_its_group)
{
	struct host_vm *vm;

	host_up();
	vm = host_vm(0);
	vm->metadata = (struct hv_knobs){ .has_group = true, .group = (char *)"/a" };
	host_event(HV_EVENT_CHANGED, vm);
	fake.error = -ENOMEM;
	host_run(SECOND / 2);
	ck_assert_int_eq(host_state(vm), ENGINE_VM_ARRIVING);
	ck_assert_uint_eq(fake_nr(false), 1);
}
END_TEST

START_TEST(vm_that_the_engine_refuses_is_told_again_when_it_is_due)
{
	struct host_vm *vm;
	uint64_t before;

	host_up();
	host_run(SECOND);
	vm = host_vm(0);
	fake.error = -EINVAL;
	fake.bad = 2; /* the id that it will get */
	host_event(HV_EVENT_CHANGED, vm);
	before = fake.ticks;
	while (fake.error)
		host_run(10000);
	ck_assert_uint_eq(fake.nr_changes - 1, 1);
	ck_assert_uint_le(fake.ticks - before, 2);
	ck_assert_uint_eq(host_said("a decision could not use all of its input"), 1);
	host_run(2 * SECOND);
	ck_assert_uint_ne(host_id(vm), 0);
	ck_assert_ptr_nonnull(fake_item(2));
}
END_TEST

START_TEST(configuration_that_cannot_work_is_refused)
{
	static const struct hv_backend backend = { .name = "x", .granule = 1 };
	struct core *core = NULL;
	struct core_config config;

	config = host.config;
	config.vm_us = 0;
	ck_assert_int_eq(core_new(&config, &backend, &core), -EINVAL);
	config = host.config;
	config.pool_host = false;
	ck_assert_int_eq(core_new(&config, &backend, &core), -EINVAL);
	ck_assert_ptr_null(core);
	core_free(NULL);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		any_allocation_may_fail_and_nothing_is_lost,
		core_that_cannot_be_made_says_so,
		engine_without_memory_is_told_again,
		engine_without_memory_for_a_new_vm_gets_it_again_with_its_group,
		vm_that_the_engine_refuses_is_told_again_when_it_is_due,
		configuration_that_cannot_work_is_refused,
	};
	Suite *suite = suite_create("core_memory");
	TCase *tc = tcase_create("core_memory");

	tcase_add_checked_fixture(tc, host_setup, host_teardown);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
