/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * methods: what the control protocol's methods do, on the core. Jobs belong to the client that
 * started them and end with it; subscribers are told events.
 *
 * It knows nothing of sockets (control.h) and reads no clock. The shell's thread.
 */
#ifndef BALLAST_HV_BALLASTD_METHODS_H
#define BALLAST_HV_BALLASTD_METHODS_H

#include "hv/ballastd/control.h"
#include "hv/core.h"

/* Running reclaim jobs of one client. */
#define METHODS_JOBS_MAX 4

struct methods;

struct methods_params {
	struct core *core;
	const char *run_dir;	    /* where a pause is written down; NULL: nowhere */
	uint64_t (*now)(void *ctx); /* monotonic microseconds */
	void (*wake)(void *ctx);    /* there is something for core_step() */
	void *ctx;
};

/* 0 or -ENOMEM. */
int methods_new(const struct methods_params *params, struct methods **ret_methods);
void methods_free(struct methods *methods);

/* For control_params: the table, and gone; their ctx is the struct methods. */
extern const struct control_method methods_table[];
extern const size_t nr_methods;
void methods_gone(void *methods, struct control_client *client);

/* In a tick: what was decided, for subscribers. */
void methods_on_tick(struct methods *methods, const struct engine_output *output);

/* After every core_step(): progress of jobs and events are sent. */
void methods_after_step(struct methods *methods);

/* The parameters of set but for the name. 0 with a change that is the caller's; or -1. */
int methods_read_change(struct json_object *params, struct hv_knobs_change *ret_change,
	struct control_error *error);

#endif
