/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fault wrapper passes the contract: around the simulator, with answers that come late in any
 * order, and with calls that hang by its own doing.
 */
#include <config.h>

#include "tests/contract/contract.h"

#include <check.h>

#include "hv/fault/fault.h"
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
	const struct fault_rule slow = {
		.kind = FAULT_SLOW, .until = UINT64_MAX, .percent_of = 50, .delay_us = 3 * S
	};
	struct hv_params inside = *params;
	int r;

	inside.inner = &hv_sim;
	r = hv_fault.open(&inside, ret_hv);
	if (r < 0)
		return r;
	add(fault_inner(*ret_hv), "web");
	add(fault_inner(*ret_hv), "db");
	ck_assert_int_eq(fault_add(*ret_hv, &slow), 0);
	return 0;
}

static struct hv_uuid uuid(const char *vm)
{
	struct hv_uuid found = { { 0 } };
	struct sim_vm_view view;
	struct hv *hv;

	/* A VM's UUID is its name's. */
	ck_assert_int_eq(open_host(&(struct hv_params){ .uri = "fault+sim:///" }, &hv), 0);
	if (sim_vm_view(fault_inner(hv), vm, &view) == 0)
		found = *view.uuid;
	hv_fault.close(hv);
	return found;
}

static void move(struct hv *hv, uint64_t now)
{
	ck_assert_int_eq(sim_advance(fault_inner(hv), now), 0);
	fault_advance(hv, now);
}

static bool pass(struct hv *hv)
{
	uint64_t next = sim_next(fault_inner(hv)), late = fault_next(hv);

	next = late < next ? late : next;
	if (next == UINT64_MAX)
		return false;
	move(hv, next);
	return true;
}

static void rest(struct hv *hv)
{
	move(hv, sim_now(fault_inner(hv)) + 60 * S);
}

static void hang(struct hv *hv, const char *vm)
{
	const struct fault_rule rule = { .kind = FAULT_HANG,
		.calls = FAULT_CALL(HV_STATS) | FAULT_CALL(HV_PERIOD) | FAULT_CALL(HV_TARGET),
		.of_vm = true,
		.uuid = uuid(vm),
		.until = UINT64_MAX };

	fault_end(hv, FAULT_SLOW); /* the first rule that fits counts */
	ck_assert_int_eq(fault_add(hv, &rule), 0);
}

static void act(struct hv *hv, enum contract_deed deed, const char *vm)
{
	static const struct sim_action actions[] = {
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
	static const struct sim_action start = { .type = SIM_START };
	struct hv *sim = fault_inner(hv);

	if (deed == CONTRACT_HANG) {
		hang(hv, vm);
	} else if (deed == CONTRACT_GO_ON) {
		fault_end(hv, FAULT_HANG);
		move(hv, sim_now(sim));
	} else {
		ck_assert_int_eq(sim_at(sim, sim_now(sim), vm, &actions[deed]), 0);
		if (deed == CONTRACT_RESTART)
			ck_assert_int_eq(sim_at(sim, sim_now(sim) + S, vm, &start), 0);
		move(hv, sim_now(sim));
	}
}

static struct sim_vm_view view_of(struct hv *hv, const char *vm)
{
	struct sim_vm_view view;

	ck_assert_int_eq(sim_vm_view(fault_inner(hv), vm, &view), 0);
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
	static const struct contract_subject subject = { .backend = &hv_fault,
		.uri = "fault+sim:///",
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
