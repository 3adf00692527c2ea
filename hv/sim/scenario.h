/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * scenario: a simulated host, its guests, what happens and what is expected of it, from a file.
 *
 * INI, in this order: [scenario], [host], the daemon's own sections ([pool], [vms], [pace],
 * [times], [group PATH], [rule NAME]: see config.h) and [operator], one [vm NAME] a guest,
 * [expect]. What each key means stands in docs/ballast-sim-scenario.5.scd; the keys are in the
 * tables of scenario_keys.c, what happens in those of scenario_steps.c. Mistakes are told with file
 * and line.
 *
 * Reads one file; never writes or logs. Amounts are bytes, times virtual microseconds.
 */
#ifndef BALLAST_HV_SIM_SCENARIO_H
#define BALLAST_HV_SIM_SCENARIO_H

#include "hv/ballastd/config.h"
#include "hv/fault/fault.h"
#include "hv/sim/expect.h"
#include "hv/sim/sim.h"

struct scenario_vm {
	struct sim_vm sim; /* its texts are owned */
	unsigned int line; /* of its section */
};

/* Something that happens. */
struct scenario_step {
	uint64_t time;
	unsigned int line;
	char *vm; /* NULL: to the host, or by the operator */
	enum scenario_step_type {
		SCENARIO_SIM,	  /* action */
		SCENARIO_FAULT,	  /* fault, of vm or of all: it has no uuid yet */
		SCENARIO_RECLAIM, /* the operator asks for bytes of group or VM who */
		SCENARIO_RESTART, /* the daemon is killed and starts anew */
		SCENARIO_PAUSE,	  /* who is not asked from now on; "/": nobody is */
		SCENARIO_RESUME,
		SCENARIO_RELEASE, /* group or VM who gets all back */
	} type;
	struct sim_action action;
	struct program_point *points; /* of a program that action runs; owned */
	struct fault_rule fault;
	uint64_t bytes;
	char *who;
};

struct scenario {
	char *title;
	uint64_t length;
	char *until_done;      /* names of VMs: it ends when the programs of all are over; NULL: at
				  length */
	struct config *config; /* of the daemon */
	struct sim_host host;
	struct rival_group *groups; /* soft limits, for host; paths are config's */
	struct scenario_vm *vms;
	size_t nr_vms;
	struct scenario_step *steps; /* in the order of the file */
	size_t nr_steps;
	struct expect *expects;
	size_t nr_expects;
};

/*
 * 0; -EINVAL: *ret_errors has a line "FILE:LINE: what" for each mistake (the first 20), the
 * caller's to free; -ENOMEM. A file that cannot be read is a mistake like others.
 */
int scenario_load(const char *path, struct scenario **ret_scenario, char **ret_errors);
void scenario_free(struct scenario *scenario);

#endif
