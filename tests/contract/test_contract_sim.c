/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The simulator passes the contract. */
#include <config.h>

#include "tests/contract/contract.h"

#include <check.h>

#include "hv/sim/sim.h"

#define S UINT64_C(1000000)

static void add(struct hv *hv, const char *name)
{
	struct sim_vm vm;

	sim_vm_default(&vm);
	vm.name = name;
	vm.guest.maximum = CONTRACT_MAXIMUM;
	vm.guest.free = CONTRACT_MAXIMUM / 2;
	ck_assert_int_eq(sim_vm_add(hv, &vm), 0);
}

static void nothing(void)
{
}

static int open_host(const struct hv_params *params, struct hv **ret_hv)
{
	int r = hv_sim.open(params, ret_hv);

	if (r < 0)
		return r;
	add(*ret_hv, "web");
	add(*ret_hv, "db");
	return 0;
}

static struct hv_uuid uuid(const char *vm)
{
	struct hv_uuid found = { { 0 } };
	struct sim_vm_view view;
	struct hv *hv;

	/* A VM's UUID is its name's. */
	ck_assert_int_eq(open_host(&(struct hv_params){ .uri = "sim:///" }, &hv), 0);
	if (sim_vm_view(hv, vm, &view) == 0)
		found = *view.uuid;
	hv_sim.close(hv);
	return found;
}

static bool pass(struct hv *hv)
{
	uint64_t next = sim_next(hv);

	if (next == UINT64_MAX)
		return false;
	ck_assert_int_eq(sim_advance(hv, next), 0);
	return true;
}

static void rest(struct hv *hv)
{
	ck_assert_int_eq(sim_advance(hv, sim_now(hv) + 60 * S), 0);
}

static void act(struct hv *hv, enum contract_deed deed, const char *vm)
{
	static const struct sim_action start = { .type = SIM_START };
	static const struct sim_action actions[] = {
		[CONTRACT_HANG] = { .type = SIM_STOP },
		[CONTRACT_GO_ON] = { .type = SIM_WAKE },
		[CONTRACT_REBOOT] = { .type = SIM_REBOOT },
		[CONTRACT_CHANGE] = { .type = SIM_METADATA_SOFT_LIMIT, .bytes = CONTRACT_MIB },
		[CONTRACT_BALLOON] = { .type = SIM_SETMEM, .bytes = CONTRACT_MAXIMUM / 2 },
		[CONTRACT_RESTART] = { .type = SIM_OFF },
		[CONTRACT_PAUSE] = { .type = SIM_PAUSE },
		[CONTRACT_RESUME] = { .type = SIM_RESUME },
		[CONTRACT_JOB] = { .type = SIM_SNAPSHOT },
		[CONTRACT_JOB_END] = { .type = SIM_JOB_END },
		[CONTRACT_THROTTLE] = { .type = SIM_THROTTLE, .bytes = CONTRACT_MIB },
		[CONTRACT_BREAK] = { .type = SIM_DOWN },
		[CONTRACT_MEND] = { .type = SIM_UP },
	};

	ck_assert_int_eq(sim_at(hv, sim_now(hv), vm, &actions[deed]), 0);
	if (deed == CONTRACT_RESTART)
		ck_assert_int_eq(sim_at(hv, sim_now(hv) + S, vm, &start), 0);
	ck_assert_int_eq(sim_advance(hv, sim_now(hv)), 0);
}

static struct sim_vm_view view_of(struct hv *hv, const char *vm)
{
	struct sim_vm_view view;

	ck_assert_int_eq(sim_vm_view(hv, vm, &view), 0);
	return view;
}

static uint64_t target(struct hv *hv, const char *vm)
{
	return view_of(hv, vm).guest->target;
}

static uint64_t period_s(struct hv *hv, const char *vm)
{
	return view_of(hv, vm).guest->period_us / S;
}

int main(void)
{
	static const struct contract_subject subject = { .backend = &hv_sim,
		.uri = "sim:///",
		.foreign_uri = "qemu:///system",
		.cannot = CONTRACT_BIT(CONTRACT_RENAME),
		.setup = nothing,
		.open = open_host,
		.teardown = nothing,
		.uuid = uuid,
		.wait = pass,
		.rest = rest,
		.act = act,
		.target = target,
		.period_s = period_s };

	return contract_run(&subject);
}
