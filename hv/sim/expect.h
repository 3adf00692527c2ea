/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * expect: what a scenario expects, as a sentence that is looked at after every step.
 *
 *	WHEN = LEFT OP RIGHT
 *
 *	end, at TIME        holds then
 *	always, from TIME, until TIME    holds at every step (of that time)
 *	by TIME             holds at some step not later
 *	never               holds at no step; with "before LEFT OP RIGHT" behind it: at no step
 *	                    before that first holds, and it must hold once
 *
 * LEFT and RIGHT are VM.FIGURE, pool.FIGURE or host.FIGURE, RIGHT also a size, a number, or a
 * figure of what stands on the left. OP is one of < <= == != >= >. A figure that is not known at a
 * step (a VM that the daemon has not seen yet) holds nothing and breaks nothing there, but "end"
 * and "at" need it, and whatever holds "always" or "never" was to be known at some step.
 *
 * VMs' figures come from the simulated hypervisor where it has them, not from the daemon.
 * Pure; one thread. Amounts are bytes.
 */
#ifndef BALLAST_HV_SIM_EXPECT_H
#define BALLAST_HV_SIM_EXPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hv/sim/figure.h"

enum expect_when {
	EXPECT_AT, /* the end as well */
	EXPECT_ALWAYS,
	EXPECT_BY,
	EXPECT_NEVER,
};

enum expect_op { EXPECT_LT, EXPECT_LE, EXPECT_EQ, EXPECT_NE, EXPECT_GE, EXPECT_GT };

struct expect_operand {
	const struct figure *figure; /* NULL: number */
	char *vm;		     /* of a VM's figure */
	int64_t number;
};

struct expect_condition {
	struct expect_operand left, right;
	enum expect_op op;
};

struct expect {
	enum expect_when when;
	uint64_t from, until; /* looked at in that time; from UINT64_MAX: at the last step */
	struct expect_condition condition, before;
	bool has_before;
	bool known; /* at some step */
	char *text; /* as it was written */
	unsigned int line;
	/* What became of it. */
	enum expect_state { EXPECT_OPEN, EXPECT_HELD, EXPECT_FAILED } state;
	uint64_t settled_at;
	char why[128]; /* what was read then */
};

/*
 * WHEN and the rest of the sentence; length is the scenario's. known says whether there is a VM of
 * that name. -EINVAL with what is wrong in why; -ENOMEM.
 */
int expect_parse(const char *when, const char *text, uint64_t length,
	bool (*known)(void *ctx, const char *vm), void *ctx, struct expect *ret_expect, char *why,
	size_t size);
void expect_clear(struct expect *expect);

/* After each step; last: it was the last one. */
void expect_look(struct expect *expect, const struct figure_world *world, uint64_t now, bool last);

/* The earliest time from now on at which a step is needed for it; UINT64_MAX. */
uint64_t expect_next(const struct expect *expect, uint64_t now);

/* "10s", "1500ms", "2min" to microseconds; -EINVAL with what is wrong in why. */
int expect_parse_time(const char *text, uint64_t *ret_us, char *why, size_t size);

#endif
