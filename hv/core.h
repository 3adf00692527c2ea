/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * core: the daemon without its descriptors and its clock.
 *
 * Events of a backend in, calls out: core_event() takes what happened, core_step() runs the
 * engine's tick when one is due and says which calls to submit and by when to come back. The same
 * core runs under the daemon's event loop, under virtual time in the simulator, and in tests.
 *
 * It owns the picture of the host: VMs by UUID, groups by path, their lanes, the resolved knobs,
 * samples under way, and the engine. One thread. No I/O; logs to the operator through
 * core_config.log. Times are monotonic microseconds, amounts bytes.
 */
#ifndef BALLAST_HV_CORE_H
#define BALLAST_HV_CORE_H

#include "hv/hv.h"
#include "policy/engine.h"

struct core;

enum core_log_level {
	CORE_LOG_ERROR,
	CORE_LOG_WARNING,
	CORE_LOG_NOTICE,
	CORE_LOG_INFO,
	CORE_LOG_DEBUG
};

/* What an operator should read; what a line does not have is NULL. */
struct core_line {
	enum core_log_level level;
	const struct hv_uuid *vm; /* whom it is about, and its name */
	const char *name;
	const char *action;	/* told to the VM: engine_reason_name() */
	const char *message_id; /* its kind: messages.h */
	const char *text;
};

/* Knobs of a group, from the configuration. */
struct core_group_knobs {
	char *path; /* "/prod" */
	struct memcg_knobs knobs;
	enum hv_manage manage; /* of those below it, at most */
};

#define CORE_GROUP_KNOBS_NONE                                                                      \
	((struct core_group_knobs){ .knobs = MEMCG_KNOBS_NONE, .manage = HV_MANAGE_ACT })

/*
 * A rule of the configuration: knobs for the VMs that it matches. Of several that match the first
 * that says a knob counts, for that knob.
 */
struct core_rule {
	char *name;
	/* Globs, NULL: any. The group is the one that metadata or partition say. */
	char *match_name, *match_uuid, *match_group;
	bool enforce; /* metadata and memtune may not say more than this: see core_knob_said */
	struct hv_knobs knobs;
};

/* Frees what it owns, and not it. */
void core_rule_clear(struct core_rule *rule);

struct core_config {
	struct engine_config engine; /* loosens, granule, silent_gives come from the backend */

	bool pool_host;	    /* else set_size */
	uint64_t pool_size; /* bytes */
	bool reserve_set;
	uint64_t reserve; /* bytes; not set: the larger of 2 GiB and 3 % */

	unsigned int default_soft_limit_percent; /* of a VM's maximum; 0: none */
	bool guest_swap;
	uint64_t max_rate;     /* pages a second that a VM is asked; 0: any */
	bool trust;	       /* an agent's floor may rise over the soft limit */
	bool observe_stats;    /* statistics are switched on in observe mode too */
	uint64_t others_max;   /* bytes that others on the host may take; 0: any */
	bool memtune_takeover; /* lift the live limits that throttle VMs; in act mode */

	struct core_group_knobs *groups; /* each path once */
	size_t nr_groups;
	struct core_rule *rules; /* in the order in which they are tried */
	size_t nr_rules;

	/* Times, microseconds; see core_config_default() for the reasons. */
	uint64_t pool_fast_us, pool_slow_us, vm_us, tick_min_us, tick_max_us, resync_us, lane_us;
	uint64_t stats_period_s;

	void (*log)(void *ctx, const struct core_line *line);
	void *log_ctx;
};

void core_config_default(struct core_config *ret_config);

/* Every tick, after it ran: for recordings. error: what engine_tick() returned. */
typedef void core_tick_fn(
	void *ctx, const struct engine_input *input, int error, const struct engine_output *output);

/* A group or VM has that id; uuid NULL for a group. Told before the tick that brings it. */
typedef void core_name_fn(void *ctx, uint64_t id, const struct hv_uuid *uuid, const char *name);

/*
 * The backend is only read for its name and what it says of itself. The config is copied. -ENOMEM;
 * -EINVAL: an interval of 0, a set pool without size, or what engine_new() refuses.
 */
int core_new(
	const struct core_config *config, const struct hv_backend *backend, struct core **ret_core);
void core_free(struct core *core);
/*
 * From now on this configuration; log and its ctx stay. The knobs of all VMs and groups are
 * resolved anew. -EINVAL as core_new(), -ENOMEM: nothing has changed.
 */
int core_set_config(struct core *core, uint64_t now, const struct core_config *config);
void core_on_tick(struct core *core, core_tick_fn *tick, core_name_fn *name, void *ctx);

/* Takes an event; it stays the caller's to clear. Never fails: what cannot be kept is logged. */
void core_event(struct core *core, uint64_t now, const struct hv_event *event);

/* A call that core_step() gave could not be submitted. */
void core_not_submitted(struct core *core, const struct hv_call *call);

/*
 * The host slept, or stood still: what was read before says nothing about now, and nothing is
 * decided on it. core_step() finds out by itself where time went on meanwhile; a clock that stands
 * still during a sleep needs this.
 */
void core_slept(struct core *core, uint64_t now);

/*
 * Runs what is due. *ret_calls are valid until the next step; *ret_next: step again by then.
 * 0 or -ENOMEM: what could not be told to the engine is told at the next step. What is returned is
 * valid in both cases.
 */
int core_step(struct core *core, uint64_t now, const struct hv_call **ret_calls, size_t *ret_nr,
	uint64_t *ret_next);

/* ---- the operator's side ---- */

/*
 * While paused, as a whole or for a VM, nobody is asked for memory, running asks end, and giving
 * back goes on. It is the caller's to keep over a restart. A VM need not be there.
 * -ENOMEM; -ENOSPC: as many are paused by themselves as there may be VMs (65536).
 */
void core_pause(struct core *core, bool paused);
int core_pause_vm(struct core *core, const struct hv_uuid *uuid, bool paused);
bool core_paused(const struct core *core);
/* Those that are paused by themselves, in the order of their UUIDs; valid until the next
 * core_pause_vm(). */
size_t core_paused_vms(const struct core *core, const struct hv_uuid **ret_uuids);

/*
 * The VM, or all below the group, of that id get their ceilings back, and are not asked for
 * engine_config.release_us. Returns how many; those that are not managed are left alone.
 */
size_t core_release(struct core *core, uint64_t root);
/* Of whom a target is still to be set; who does not answer is not waited for. */
size_t core_releasing(const struct core *core);
/* Those that are managed and do not have all back, whether or not they can be told that now. */
size_t core_unreleased(const struct core *core);

/*
 * The id of a VM (name, UUID) or group (path; "/" is the pool). -ENOENT. -EEXIST: several VMs of
 * that name: the UUID is needed.
 */
int core_find(const struct core *core, const char *what, uint64_t *ret_id);

/* Whether the group of that path, or a VM in it, is below the group of the other, or is it. */
bool core_path_is_below(const char *path, const char *above);

/* VM's name or group's path; NULL. Valid until the next event or step. */
const char *core_name(const struct core *core, uint64_t id);

/* The name that is most like what, for "did you mean"; NULL where none is near. */
const char *core_nearest(const struct core *core, const char *what);

struct core_vm_view {
	uint64_t id;
	struct hv_uuid uuid;
	const char *name;
	const char *group;	 /* path */
	const char *soft_source; /* "metadata", "memtune", "rule", "default", "none" */
	enum hv_manage manage;
	bool answering;
	bool contended;	  /* somebody else moved its balloon up, lately */
	uint64_t samples; /* balloon statistics read since it was adopted */
	/* Bits 1 << enum engine_vm_state: all that apply beside the one that counts. */
	uint32_t also;
	uint64_t throttle, throttled; /* as in struct hv_process; 0: none */
	struct hv_paging paging;
	struct hv_agent agent; /* the guest's word */
	bool agent_silent;     /* connected, and has not reported for too long */
	uint64_t agent_freed;  /* bytes that it freed for us */
	struct engine_view engine;
};

/* VMs in the order of their names. fn returns false to stop. */
void core_for_each_vm(
	const struct core *core, bool (*fn)(void *ctx, const struct core_vm_view *vm), void *ctx);
/* -ENOENT. */
int core_vm(const struct core *core, uint64_t id, struct core_vm_view *ret_vm);

/* ---- whose word counts ---- */

enum core_knob {
	CORE_SOFT_LIMIT,
	CORE_MIN,
	CORE_LOW,
	CORE_MAX,
	CORE_GUEST_SWAP,
	CORE_MANAGE,
	CORE_GROUP,
	CORE_AGENT,
	CORE_KNOBS,
};

const char *core_knob_name(enum core_knob knob); /* as the configuration has it: "soft-limit" */

/* In the order of precedence. */
enum core_source {
	CORE_FROM_GROUP, /* manage only: the least that a group above it says, where that is less */
	CORE_FROM_METADATA,
	CORE_FROM_MEMTUNE, /* the soft limit; max: the hard limit less what the process needs
			      beside the guest, before all others that are larger */
	CORE_FROM_RULE,
	CORE_FROM_PARTITION, /* the group only */
	CORE_FROM_DEFAULT,
};

const char *core_source_name(enum core_source source);

/* What one source says of a knob. Texts are valid until the next event or step. */
struct core_word {
	enum core_source source;
	const char *rule;    /* the name of the rule; NULL: of none */
	bool enforced;	     /* it counts because the others said more than it allows */
	const char *refused; /* why it does not count whatever else is said; NULL: it may */
	uint64_t value;	     /* bytes (HV_UNLIMITED: none); yes, no; enum hv_manage, hv_way */
	const char *group;   /* of CORE_GROUP; of CORE_FROM_GROUP the group that says it */
};

#define CORE_WORDS_MAX 6 /* a group, metadata, memtune, a rule that enforces, a rule, default */

/*
 * All that is said of a knob, the first word that was not refused counts and overrides those behind
 * it. A rule with enforce stands before metadata and memtune where they say more than it (of a
 * size: a larger one, or no limit; of the others: anything else), else where any rule stands.
 */
struct core_knob_said {
	struct core_word words[CORE_WORDS_MAX];
	size_t nr, counts; /* words[counts]; nr > 0 */
};

#define CORE_WARNINGS_MAX 8

struct core_knobs_view {
	struct core_knob_said knobs[CORE_KNOBS];
	char problem[512];		       /* what of the sources was refused; "": nothing */
	char warnings[CORE_WARNINGS_MAX][256]; /* what counts and does not do what it seems to */
	size_t nr_warnings;
};
/* -ENOENT. */
int core_vm_knobs(const struct core *core, uint64_t id, struct core_knobs_view *ret_view);

/*
 * Writes into ballast's own element of the VM's metadata; copied. It is not written yet when this
 * returns: *ret_change names it in core_change(). Also while only observing: it is the operator who
 * writes. -ENOENT: no such VM, or its description is still to be read; -EBUSY: another one is under
 * way; -EAGAIN: 64 of other VMs are; -ENOTCONN; -ETIMEDOUT: the VM does not answer;
 * -EINVAL with the words in why: what is set does not fit together, or there is no room for it in
 * the pool. -ENOMEM.
 */
int core_set_knobs(struct core *core, uint64_t id, const struct hv_knobs_change *change,
	uint64_t *ret_change, char *why, size_t size);
/*
 * Adds the port of an agent to the VM: HV_ATTACH. *ret_change as above; one that is there already
 * is done, with a message. -EPERM: of that VM, or of all, nothing is done: manage, mode; else
 * errors as above.
 */
int core_attach(struct core *core, uint64_t id, bool persistent, uint64_t *ret_change);
enum core_change_state { CORE_CHANGE_RUNNING, CORE_CHANGE_DONE, CORE_CHANGE_FAILED };
/* *ret_message, which may be empty: valid until the next event or step. The last 64 are
 * remembered. */
enum core_change_state core_change(
	const struct core *core, uint64_t change, const char **ret_message);

struct core_group_view {
	uint64_t id;
	const char *path;
	struct engine_view engine;
};
/* Groups in the order of their paths, "/" first. */
void core_for_each_group(const struct core *core,
	bool (*fn)(void *ctx, const struct core_group_view *group), void *ctx);

struct core_status {
	bool act, connected;
	const char *backend;
	struct engine_pool_view pool; /* pages */
	uint64_t ticks, hung;	      /* hung: calls past their deadline */
	uint64_t last_tick;	      /* its time */
	bool paused;		      /* as a whole */
	bool others_known, others_over;
	uint64_t others; /* bytes that neither VMs nor huge pages have; of a host pool */
};
void core_status(const struct core *core, struct core_status *ret_status);

struct engine *core_engine(struct core *core);

/*
 * Asks for pages below root, from the next tick on; *ret_job names it in core_job(). -ENOENT: no
 * such root; -EINVAL: no pages; -EAGAIN: 64 jobs run already; -ENOTCONN: the hypervisor is not
 * connected, or not all is seen again since it was: nothing is decided before.
 */
int core_reclaim(struct core *core, uint64_t root, uint64_t pages, uint64_t *ret_job);
/* What came stays. Where nothing is decided now the job has ended when this returns. */
void core_reclaim_cancel(struct core *core, uint64_t job);

struct core_job {
	uint64_t root, wanted, came, owed;
	enum core_job_state {
		CORE_JOB_RUNNING,
		CORE_JOB_DONE,
		CORE_JOB_SHORT,
		CORE_JOB_CANCELLED
	} state;
};
/* -ENOENT; finished jobs are remembered for a while (the last 64). */
int core_job(const struct core *core, uint64_t job, struct core_job *ret_job);

/* What some hundreds of page faults need: 4 MiB. */
#define CORE_ROOM_PAGES 1024
/* For who charges page by page: room below a group whose max refused. One request at a time, which
 * *job names: what it brings may be enough. It is no operator's: neither logged nor told, and
 * forgotten when it has ended. */
void core_room(struct core *core, uint64_t group, uint64_t *job);

/* What the engine told since last asked (for notifications), oldest first; at most nr. */
size_t core_take_events(struct core *core, struct engine_event *ret_events, size_t nr);

#endif
