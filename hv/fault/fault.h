/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fault: a backend that wraps another one (hv.h) and spoils its answers, for tests and simulations.
 *
 * Rules say what goes wrong, for which VM and calls, from when until when, and how often; chance
 * comes from a seed, so every run repeats exactly. Without a rule it is the backend inside. It
 * decides nothing and is in no daemon's way: ballastd never opens it.
 *
 * It reads no clock: who drives it says what time it is (fault_advance), and asks by when to come
 * back (fault_next). What is kept back shows to nobody, so fd() is -1: next() is to be called in
 * any case. One thread. Times are microseconds of the driver's clock.
 *
 * A rule spoils what begins while it is on. What it keeps back (slow, hung) goes on where the rule
 * ends; a lost connection lets hung calls go, as real ones return then.
 */
#ifndef BALLAST_HV_FAULT_FAULT_H
#define BALLAST_HV_FAULT_FAULT_H

#include "hv/hv.h"

/* open() takes the URI "fault+URI", and params.inner for URI. */
extern const struct hv_backend hv_fault;
#define FAULT_PREFIX "fault+"

/* hv_fault with the traits of that backend, which core_new() reads. */
struct hv_backend fault_table(const struct hv_backend *inner);

enum fault_kind {
	FAULT_SLOW,    /* done at once, answered by delay_us later */
	FAULT_FAIL,    /* not done: answered with error */
	FAULT_DENY,    /* done, and said to have failed with error */
	FAULT_HANG,    /* not done before the rule ends */
	FAULT_LIE,     /* statistics say that percent of actual is free, with a driver that moves */
	FAULT_STALE,   /* statistics are the last before the rule, or the first under it */
	FAULT_PARTIAL, /* figures are missing, others each time */
	FAULT_LOSE,    /* what happens by itself is not told */
};

/* Words as scenarios have them; -EINVAL. */
int fault_kind_parse(const char *word, enum fault_kind *ret_kind);
int fault_call_parse(const char *word, enum hv_call_type *ret_type);

#define FAULT_CALL(type) (1u << (type))

struct fault_rule {
	enum fault_kind kind;
	unsigned int calls; /* FAULT_CALL()s; 0: all that there are */
	bool of_vm;	    /* of uuid; else of all, and of calls that are no VM's */
	struct hv_uuid uuid;
	uint64_t from, until;	 /* on from from on, no longer at until; UINT64_MAX: for good */
	unsigned int percent_of; /* of the calls so many per cent are spoiled; 0: all */
	uint64_t delay_us;	 /* FAULT_SLOW, at most and at least half */
	int error;		 /* FAULT_FAIL, FAULT_DENY: negative errno; 0: -EIO */
	unsigned int percent;	 /* FAULT_LIE */
};

/* The first rule that fits counts. -EINVAL, -ENOMEM. */
int fault_add(struct hv *hv, const struct fault_rule *rule);
/* Rules of that kind are over. */
void fault_end(struct hv *hv, enum fault_kind kind);

void fault_seed(struct hv *hv, uint64_t seed);
/* now never goes back. */
void fault_advance(struct hv *hv, uint64_t now);
/* When something that is kept back goes on; UINT64_MAX: nothing does by itself. */
uint64_t fault_next(const struct hv *hv);

/* As for a client that is gone and comes back: what is out is forgotten. */
void fault_new_client(struct hv *hv);

/* The handle of the backend inside. */
struct hv *fault_inner(const struct hv *hv);

#endif
