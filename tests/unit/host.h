/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A host for tests of the core: VMs as tables, a backend that answers each call at once (or never,
 * where a VM hangs), time that jumps to the core's next deadline, and the log's lines.
 * It aborts where the core breaks what hv.h promises: a second call for a VM while one is out.
 */
#ifndef BALLAST_TESTS_HOST_H
#define BALLAST_TESTS_HOST_H

#include "hv/core.h"
#include "tests/unit/fake_engine.h"

#define HOST_VMS     20
#define HOST_LINES   512
#define SECOND	     UINT64_C(1000000)
#define MIB	     (UINT64_C(1) << 20)
#define GIB	     (UINT64_C(1) << 30)
#define PAGES(bytes) ((bytes) / POLICY_PAGE_SIZE)

/* Descriptions whose agents are kept. */
#define HOST_AGENTS 8

struct host_vm {
	bool there;
	struct hv_uuid uuid;
	char name[300];
	enum hv_run_state state;
	enum hv_job listed_job, job; /* in its state; in its statistics */
	unsigned int kinds;
	uint64_t started, throttle, throttled; /* of its process */
	bool free_only;			       /* its statistics */
	uint64_t maximum, ceiling, period_s, actual, usable, resident;
	bool balloon;
	struct hv_knobs metadata, memtune; /* groups are not owned */
	uint64_t hard_limit;
	const char *partition, *problem;
	bool driver;	    /* its statistics move */
	bool reporting;	    /* its balloon tells the host what is free */
	bool reads_nothing; /* its agent: keeps what it is asked until host_freed() */
	struct hv_call asked;
	uint64_t last_update;
	bool process;	/* its process is known */
	bool hangs;	/* keeps calls until it does not */
	bool slow_info; /* keeps those for its description */
	int error;	/* of statistics */
	int target_error, info_error, period_error, lift_error, attach_error;
	const char *port;		 /* of its agent, in its description */
	unsigned int calls[HV_HOST + 1]; /* that came, by type */
	struct hv_call last[HV_HOST + 1];
	enum hv_way agents[HOST_AGENTS]; /* that its first descriptions named */
	bool busy;
	struct hv_call held; /* while it hangs */
};

extern struct host {
	struct core *core;
	struct core_config config;
	uint64_t now, next;
	struct host_vm vms[HOST_VMS];
	uint64_t total, available; /* of the host */
	unsigned int calls[HV_HOST + 1];
	unsigned int out, most_out;
	int list_error, process_error, host_error;
	bool hold_process, hold_host; /* the answer waits */
	struct hv_call held_process, held_host;
	bool refuse; /* calls cannot be submitted */
	unsigned int refused;
	char lines[HOST_LINES][400];
	const char *kinds[HOST_LINES], *actions[HOST_LINES]; /* MESSAGE_ID and action of each */
	size_t nr_lines;
} host;

/* Sets up host.config; change it before host_up(). */
void host_setup(void);
void host_teardown(void);
/* Makes the core, with the connection up; VMs that are there were there before. */
void host_up(void);

/* A VM of 1 GiB that runs, with a balloon whose statistics are on and move. */
struct host_vm *host_vm(unsigned int i);
void host_gone(unsigned int i);

/* Lets time pass: all that is due in it is done. */
void host_run(uint64_t us);
/* Steps once and serves what comes, without time passing. */
void host_step(void);
void host_event(enum hv_event_type type, const struct host_vm *vm);
/* Its agent reports. */
void host_report(const struct host_vm *vm, const struct hv_agent *agent);
/* Its agent answers what it was asked. */
void host_freed(struct host_vm *vm, int error, uint64_t bytes);
void host_balloon(struct host_vm *vm, uint64_t actual);
/* A VM answers the call that it held. */
void host_wake(struct host_vm *vm);
void host_answer_process(void);
void host_answer_host(void);

uint64_t host_id(const struct host_vm *vm); /* 0: not known to the engine */
struct fake_item *host_item(const struct host_vm *vm);
enum engine_vm_state host_state(const struct host_vm *vm);
/* Lets the next tick set a target. */
void host_target(const struct host_vm *vm, uint64_t seq, uint64_t bytes);
unsigned int host_said(const char *text); /* lines that have it */

#endif
