/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Release without the daemon, on a backend of the test's own that answers at once or never. */
#include <config.h>

#include "tools/direct.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

#define GIB (UINT64_C(1) << 30)
#define NR  4

struct hv {
	struct hv_call calls[32];
	size_t nr, taken;
	bool up;
};

static struct hv handle;
static struct {
	const char *name;
	uint64_t ceiling, target;
	int error;
	bool hangs, off;
} vms[NR];
static bool unreachable;
static unsigned int out, most_out;
static char said[200];

static struct hv_uuid uuid_of(size_t i)
{
	return (struct hv_uuid){ { (uint8_t)(i + 1) } };
}

static bool handles(const char *uri)
{
	return true;
}

static int open_it(const struct hv_params *params, struct hv **ret_hv)
{
	memset(&handle, 0, sizeof(handle));
	*ret_hv = &handle;
	return 0;
}

static void close_it(struct hv *hv)
{
}

static int fd_of(struct hv *hv)
{
	return -1;
}

static int submit(struct hv *hv, const struct hv_call *call)
{
	if (hv->nr == 32)
		return -EAGAIN;
	if (++out > most_out)
		most_out = out;
	hv->calls[hv->nr++] = *call;
	return 0;
}

static void answer(const struct hv_call *call, struct hv_event *event)
{
	size_t i = call->uuid.bytes[0] - 1u;

	*event = (struct hv_event){ .token = call->token, .uuid = call->uuid };
	if (call->type == HV_LIST) {
		event->type = HV_EVENT_LISTED;
		event->listed.vms = calloc(NR, sizeof(*event->listed.vms));
		for (size_t k = 0; k < NR; k++)
			if (vms[k].name)
				event->listed.vms[event->listed.nr++] =
					(struct hv_listed){ uuid_of(k), strdup(vms[k].name),
						vms[k].off ? HV_OFF : HV_RUNNING, HV_JOB_NONE };
	} else if (call->type == HV_INFO) {
		event->type = HV_EVENT_INFO;
		event->info = (struct hv_info){
			.uuid = call->uuid, .ceiling = vms[i].ceiling, .balloon = true
		};
	} else {
		ck_assert_int_eq(call->type, HV_TARGET);
		ck_assert_uint_eq(call->ceiling, vms[i].ceiling);
		event->type = HV_EVENT_DONE;
		event->error = vms[i].error;
		if (!vms[i].error)
			vms[i].target = call->target;
	}
}

static int next(struct hv *hv, struct hv_event *ret_event)
{
	if (unreachable)
		return 0;
	if (!hv->up) {
		hv->up = true;
		*ret_event = (struct hv_event){ .type = HV_EVENT_UP };
		return 1;
	}
	while (hv->taken < hv->nr) {
		const struct hv_call *call = &hv->calls[hv->taken++];

		if (call->type == HV_TARGET && vms[call->uuid.bytes[0] - 1u].hangs)
			continue;
		out--;
		answer(call, ret_event);
		return 1;
	}
	return 0;
}

static const struct hv_backend backend = {
	.name = "test",
	.loosens = true,
	.granule = 1 << 20,
	.handles = handles,
	.open = open_it,
	.close = close_it,
	.fd = fd_of,
	.submit = submit,
	.next = next,
};

static void say(void *ctx, const char *vm, const char *what)
{
	snprintf(said, sizeof(said), "%s: %s", vm, what);
}

static void setup(void)
{
	memset(vms, 0, sizeof(vms));
	unreachable = false;
	out = most_out = 0;
	said[0] = '\0';
	vms[0].name = "web";
	vms[0].ceiling = 2 * GIB;
	vms[1].name = "db";
	vms[1].ceiling = 4 * GIB;
	vms[2].name = "untouched";
	vms[3].name = "off";
	vms[3].ceiling = GIB;
	vms[3].off = true;
}

static int release(const char *vm, struct direct_result *ret_result)
{
	const struct direct_params params = {
		.backend = &backend, .uri = "test:///", .vm = vm, .patience_us = 200000, .say = say
	};

	return direct_release(&params, ret_result);
}

START_TEST(every_vm_with_a_recorded_ceiling_gets_it)
{
	struct direct_result result;

	ck_assert_int_eq(release(NULL, &result), 0);
	ck_assert_uint_eq(vms[0].target, 2 * GIB);
	ck_assert_uint_eq(vms[1].target, 4 * GIB);
	ck_assert_uint_eq(vms[2].target, 0);
	ck_assert_uint_eq(vms[3].target, 0);
	ck_assert_uint_eq(result.released, 2);
	ck_assert_uint_eq(result.untouched, 1);
	ck_assert_uint_eq(result.failed, 0);
}
END_TEST

START_TEST(one_vm_is_named_by_name_or_uuid)
{
	struct direct_result result;
	struct hv_uuid uuid = uuid_of(1);
	char text[HV_UUID_TEXT];

	ck_assert_int_eq(release("web", &result), 0);
	ck_assert_uint_eq(vms[0].target, 2 * GIB);
	ck_assert_uint_eq(vms[1].target, 0);
	hv_uuid_format(&uuid, text);
	ck_assert_int_eq(release(text, &result), 0);
	ck_assert_uint_eq(vms[1].target, 4 * GIB);
	ck_assert_int_eq(release("wbe", &result), -ENOENT);
	vms[1].name = "web";
	ck_assert_int_eq(release("web", &result), -EEXIST);
}
END_TEST

START_TEST(a_vm_that_hangs_or_refuses_is_named_and_keeps_no_other_from_its_memory)
{
	struct direct_result result;

	vms[0].hangs = true;
	ck_assert_int_eq(release(NULL, &result), 0);
	ck_assert_uint_eq(vms[1].target, 4 * GIB);
	ck_assert_uint_eq(result.released, 1);
	ck_assert_uint_eq(result.failed, 1);
	ck_assert_str_eq(said, "web: does not answer");
	setup();
	vms[1].error = -EPERM;
	ck_assert_int_eq(release(NULL, &result), 0);
	ck_assert_uint_eq(vms[0].target, 2 * GIB);
	ck_assert_uint_eq(result.failed, 1);
	ck_assert_ptr_nonnull(strstr(said, "db: "));
}
END_TEST

START_TEST(a_hypervisor_that_is_not_reached_is_told)
{
	struct direct_result result;

	unreachable = true;
	ck_assert_int_eq(release(NULL, &result), -ETIMEDOUT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("direct");
	TCase *tc = tcase_create("release");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, every_vm_with_a_recorded_ceiling_gets_it);
	tcase_add_test(tc, one_vm_is_named_by_name_or_uuid);
	tcase_add_test(tc, a_vm_that_hangs_or_refuses_is_named_and_keeps_no_other_from_its_memory);
	tcase_add_test(tc, a_hypervisor_that_is_not_reached_is_told);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
