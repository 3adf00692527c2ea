/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * core's inside, shared by its files and nobody else. What each does:
 *
 *   core.c         new and free, step: what is due, and by when to come back
 *   core_event.c   what a backend told: answers and events
 *   core_vm.c      VMs: coming and going, their lives, descriptions and statistics
 *   core_state.c   what of a VM the engine gets: state and sample
 *   core_group.c   groups by path
 *   core_knobs.c   whose word counts: metadata, memtune, defaults, to pages (pure)
 *   core_tick.c    the engine's input from what changed, and what becomes of its output
 *   core_calls.c   which calls are submitted, and which lanes are late
 *   core_agent.c   agents: their reports, and targets that wait for them
 *   core_job.c     the operator's requests
 *   core_pause.c   who is not to be asked, and who gets all back
 *   core_show.c    whose word counts for a VM, and what of it does not do what it seems to
 *   core_change.c  what operators write into a VM's metadata, and ports that they add
 *   core_log.c     what operators read
 *   core_view.c    what they ask
 *
 * Everything towards the engine is level-triggered: a VM holds what is wanted and what the engine
 * was told (told), a tick tells the difference. So nothing is lost where memory is short: what
 * could not be told differs still at the next tick.
 */
#ifndef BALLAST_HV_CORE_INTERNAL_H
#define BALLAST_HV_CORE_INTERNAL_H

#include "hv/core.h"
#include "hv/lane.h"
#include "hv/messages.h"

/* Where a hash cannot grow the element is not added, which its handle shows: see core_vm_add(). */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

/* ---- bounds, and constants that nobody tunes ---- */

/* More than a hypervisor runs; a listing that says more is cut, with one message. */
#define CORE_MAX_VMS 65536
/* A group or two for each VM; beyond it VMs are put into "/". */
#define CORE_MAX_GROUPS 65536
/* Statistics that stood still for so many periods are stale. */
#define CORE_STALE_PERIODS 3
/*
 * What a QEMU needs beside the guest is told in such steps, or its max would move with every
 * buffer.
 */
#define CORE_BESIDE_STEP (UINT64_C(64) << 20)
/* A guest that boots shows its driver within a few seconds, a slow one within a minute. */
#define CORE_ARRIVE_US UINT64_C(60000000)
/* A QEMU that runs into its limit so often a second hardly runs: 500,000 in 90 minutes was dead. */
#define CORE_THROTTLED_HARD 50
/* What failed and is nobody's deadline is tried again after this. */
#define CORE_RETRY_US UINT64_C(1000000)
/* Events come in bursts (three for a reboot): one listing for those within this. */
#define CORE_LIST_PAUSE_US UINT64_C(50000)
/* The host's memory moved by more than this part of wm_low: who took it is looked at, at once. */
#define CORE_POOL_MOVED_FRACTION 64
/* An agent reports every three seconds at rest: one that is silent for longer is none. */
#define CORE_AGENT_SILENT_US UINT64_C(5000000)
/* What an agent is told it may take for a request, and how long its target waits for it. */
#define CORE_AGENT_TOLD_MS UINT64_C(1000)
#define CORE_AGENT_ASK_US  UINT64_C(1500000)
/* One that failed is not asked for so long: the balloon alone has to do. */
#define CORE_AGENT_PAUSE_US UINT64_C(10000000)
/* Agents that are asked in a step; the others are in the next. */
#define CORE_AGENT_CALLS 8
/* Jobs that are remembered, and that run at a time. */
#define CORE_JOBS 64
/* Changes of metadata that are remembered. */
#define CORE_CHANGES 64
/* Events kept for who takes them; the oldest go. */
#define CORE_EVENTS 1024

#define CORE_NEVER UINT64_MAX

/* ---- groups ---- */

struct core_group {
	uint64_t id; /* MEMCG_ROOT_ID: "/" */
	char *path;
	struct core_group *parent;
	struct memcg_knobs knobs; /* of the configuration */
	bool retell;		  /* they have changed since the engine was told */
	uint64_t min_sum;	  /* pages: what the min of all below it come to */
	size_t refs;		  /* VMs and groups below; the root has one of its own */
	bool told;		  /* the engine has it */
	bool telling, leaving;	  /* is brought, taken back, by the input that is being built */
	bool is_short;		  /* said to be short */
	UT_hash_handle hh;	  /* by path */
	UT_hash_handle hh_id;
	struct core_group *prev, *next; /* among those without refs, to be taken back */
};

/* Where a path has its section in the configuration; the path is the configuration's. */
struct core_section {
	const char *path;
	size_t at;
	size_t place; /* among all, of the configuration's group with this one's number */
	bool fits;    /* its min, or that of the topmost section above it: core_group_review() */
};

/* ---- knobs ---- */

/* What the sources say together, in pages. */
struct core_resolved {
	struct memcg_knobs knobs;
	struct engine_vm_attrs attrs;
	enum hv_manage manage;	 /* the least of what its metadata and its groups say */
	const char *soft_source; /* static */
	enum hv_way agent;
	struct core_knob_said said[CORE_KNOBS];
	char group[HV_GROUP_MAX + 1];
	char problem[512]; /* what was refused, for the operator; "": nothing */
};

/*
 * The info's hard_limit is what is left for the guest: see core_vm_limited().
 * A min of more than min_room pages is refused: there is no room for it in the pool. Words point
 * into config and info. -EINVAL: the description has no usable maximum.
 */
int core_resolve(const struct core_config *config, const struct hv_info *info, uint64_t min_room,
	struct core_resolved *ret_resolved);

/* Whose word it is: "metadata", "rule 'web'". Returns buf. */
const char *core_word_source(const struct core_word *word, char *buf, size_t size);

/* False where bytes stand for "not told" or do not fit. */
bool core_pages_down(uint64_t bytes, uint64_t *ret_pages);
bool core_pages_up(uint64_t bytes, uint64_t *ret_pages);
uint64_t core_bytes(uint64_t pages); /* HV_UNLIMITED for PAGES_UNLIMITED */

/* ---- VMs ---- */

struct core_vm {
	struct hv_uuid uuid;
	char *name;
	uint64_t id; /* the engine's; 0: none yet. A new one with each change of group. */
	struct lane lane;
	bool gone;	 /* from the listing; kept until its call has returned */
	uint64_t listed; /* the listing that had it last */

	/* The description. */
	bool has_info, info_failing;
	struct hv_info said;	  /* where has_info: the last description, to resolve it again */
	uint64_t min_booked;	  /* pages, in the sums of group and those above it */
	uint64_t min_room;	  /* what its min was resolved with */
	uint64_t beside;	  /* bytes: the most that its process had beside the guest */
	bool min_checked;	  /* there was room for it in a pool that was known */
	bool info_again;	  /* could not be kept: read it anew */
	struct memcg_knobs knobs; /* resolved */
	struct engine_vm_attrs attrs;
	enum hv_manage manage;
	const char *soft_source;  /* static */
	struct core_group *group; /* referenced; NULL before the first */
	bool balloon, reporting;
	unsigned int kinds;  /* enum hv_kind */
	uint64_t over_since; /* actual is over the maximum; 0: it is not */
	bool said_over;
	uint64_t period_s, period_set_s; /* set: by us; 0: never */
	bool rearmed;			 /* since they last moved: see core_vm_period() */
	unsigned int still;   /* readings since then that were the one before; counted on */
	uint64_t still_since; /* the first of them */
	char *problem;	      /* said last */

	/* Counted up when statistics that are being read are of before: reboot, resume, outage. */
	unsigned int life;
	enum hv_run_state run;
	enum hv_job listed_job, told_job; /* by its run state; by its last statistics */
	bool arriving;			  /* not seen yet: counts in full */
	uint64_t arrived;
	bool ran;		/* seen to run, or there before us */
	bool cancel;		/* the engine has to cancel what runs */
	bool release;		/* the engine has to be told that it gets its ceiling back */
	uint64_t release_until; /* and so with a new id until then */
	bool drop;		/* the engine has to be told that its id is gone, before all else */
	bool ends;    /* its newest target ends what runs: it goes out whatever is said meanwhile */
	uint64_t job; /* the operator's request that it was last asked for; 0: none */

	/* Its agent, the guest's word; and a target that waits for it. */
	struct hv_agent agent;
	uint64_t agent_at;	   /* of its newest report */
	uint64_t agent_not_before; /* it is not asked before: it failed */
	uint64_t agent_freed;	   /* bytes, since it was found */
	bool said_agent_fault;
	struct {
		bool active, wanted; /* in core->held; the agent is still to be asked */
		bool inside;	     /* there is no target that waits: it is the agent's alone */
		bool anon, actively;
		uint64_t token, deadline, bytes;
		uint64_t more; /* inside: to be asked beside that when it has answered */
		uint64_t seq, target, ceiling;
	} held;
	struct core_vm *held_prev, *held_next;

	/* Balloon statistics. */
	struct hv_stats stats;
	bool has_stats;
	bool base;   /* stats.last_update may be compared with */
	bool moved;  /* since the base was taken */
	bool driver; /* moved at any time in this life */
	uint64_t moved_at;
	uint64_t watched;      /* since when they are expected to move */
	unsigned int readings; /* since then; counted to 2 */
	bool stats_failing, target_failing, period_failing, lift_failing;
	uint64_t nr_stats;
	uint64_t stats_seq; /* the newest target that had returned before they were read */

	/* Actual, from statistics and events; the process. */
	bool actual_known;
	uint64_t actual;
	bool looked;	       /* its process was looked for since it was found */
	uint64_t actual_high;  /* the largest since statistics were last read */
	uint64_t stats_actual; /* the largest that they may have been made under */
	struct hv_process process;
	uint64_t usage_low;   /* of the process, the smallest since statistics were last read */
	uint64_t stats_usage; /* the smallest that they may have been made under */
	uint64_t process_seq;
	uint64_t process_mark; /* the reading of processes that was out when a target returned */
	uint64_t process_nr;   /* the reading that had it last */
	uint64_t started;      /* of the process that was seen last; 0: none was */
	uint64_t throttled_from,
		throttled_at; /* its counter, when it was last looked at, and when */
	bool said_throttled, said_throttled_hard;
	struct hv_paging said_paging; /* what of it was said */
	bool lifted;		      /* its throttle, or it cannot be: not tried again */
	bool lift_again;	      /* it failed, for a while perhaps */

	/* What became of the newest target. */
	bool has_result;
	struct engine_result result;

	/* Flags of what was said, so that it is said once. */
	bool said_failed, said_contended, said_short, said_silent;

	/* What an operator writes; the lane and the backend have it until the answer. */
	struct hv_knobs_change change;
	uint64_t change_id; /* 0: none */

	/* What warnings were said of. */
	struct {
		struct memcg_knobs knobs;
		uint64_t floor;
	} warned;

	/* What the engine was told. */
	struct {
		uint64_t id;		  /* 0: it does not know the VM */
		struct core_group *group; /* referenced */
		struct memcg_knobs knobs;
		struct engine_vm_attrs attrs;
		enum engine_vm_state state;
		struct vm_sample sample;
		bool sampled;
	} told;
	uint64_t telling; /* the id under which the input that is being built brings it; 0: no */
	bool again;	  /* tell everything again: the engine was short of memory */

	UT_hash_handle hh;    /* by UUID, sorted by name */
	UT_hash_handle hh_id; /* by id */
	bool dirty;	      /* in core->dirty: may differ from what was told */
	struct core_vm *dirty_prev, *dirty_next;
	/*
	 * What it has to be called for: in core->ready. Descriptions have places of their own, and
	 * are urgent too where a target waits behind one.
	 */
	enum core_ready {
		CORE_READY_INFO_URGENT,
		CORE_READY_INFO,
		CORE_READY_URGENT,
		CORE_READY_NORMAL,
		CORE_READY_NOT,
	} ready;
	struct core_vm *ready_prev, *ready_next;
	uint64_t due; /* in core->due, which is in this order: the interval is the same for all */
	struct core_vm *due_prev, *due_next;
};

struct core_slot {
	uint64_t token; /* 0: free */
	struct core_vm *vm;
	unsigned int life; /* the VM's when it was submitted, and its id: see on_answer() */
	uint64_t id;
};

/* A reading that is not a VM's: listing, processes, host. One of each is out at a time. */
struct core_reading {
	uint64_t token; /* 0: none is out */
	bool ever;	/* was submitted at least once ... */
	uint64_t last;	/* ... and then */
	bool wake;	/* again as soon as may be */
	bool failing;
};

struct core_slotted_job {
	uint64_t id; /* 0: free */
	struct core_job job;
	bool ask, cancel;  /* to be told to the engine */
	bool internal;	   /* core_room()'s: nobody asks what became of it */
	uint64_t finished; /* order of finishing */
};

/* An engine_input under construction. */
struct core_input {
	struct engine_change *changes;
	struct vm_sample *samples;
	struct engine_result *results;
	size_t nr_changes, max_changes, nr_samples, max_samples, nr_results, max_results;
	struct engine_request requests[2 * CORE_JOBS];
	size_t nr_requests;
};

/* What became of a change of metadata. */
struct core_changed {
	uint64_t id; /* 0: none */
	enum core_change_state state;
	char message[256];
};

struct core {
	struct core_config config;
	const char *backend;
	bool host_apart; /* as in struct hv_backend */
	struct engine *engine;
	core_tick_fn *on_tick;
	core_name_fn *on_name;
	void *on_ctx;

	uint64_t now;
	bool connected;
	bool settled; /* every VM found at the first listing was seen, or had its time */
	bool blind;   /* was settled before an outage or a sleep: no tick before it is again */
	uint64_t listed_at;    /* of the first listing, also after those; 0: none yet */
	bool said_unreachable; /* and why: said once until it is reached */
	bool listed;	       /* at least once: who comes now has come while we watch */

	struct core_vm *vms, *vms_by_id;
	struct core_section *sections; /* config.nr_groups, in the order of paths */
	struct core_group *groups, *groups_by_id, *root, *idle_groups;
	size_t nr_vms, nr_groups;
	uint64_t next_id, next_token;
	bool said_too_many, said_name, said_groups;

	struct core_vm *dirty, *due, *ready[CORE_READY_NOT], *held;
	struct core_slot slots[HV_WORKERS];
	bool said_hung;

	struct core_reading list, process, host;
	uint64_t resync_due; /* the listing that is followed by all descriptions */
	bool listing_all;    /* the one that is out is such */
	uint64_t retry_at;   /* no listing before: the last one failed */
	uint64_t list_nr, process_nr;
	uint64_t not_before; /* no calls before: one could not be submitted */
	struct hv_call calls[HV_WORKERS + 3 + CORE_AGENT_CALLS];
	uint64_t expected; /* the step that comes next, at the latest; 0: none was */

	struct engine_pool pool;
	bool pool_changed;
	uint64_t
		min_most; /* pages for groups' min: of the pool, when it was last known; 0: never */
	bool said_groups_min;
	uint64_t pool_seen; /* available, bytes, when it was last seen to move */
	uint64_t resident;  /* of all VMs' processes, bytes, when they were last read */
	bool others_known, said_others, said_reserve;
	uint64_t others;	      /* bytes of the host that neither VMs nor huge pages have */
	struct engine_pool_view view; /* after the last tick */
	bool below_min;

	bool retell_groups; /* of some group */
	bool sort_groups;   /* some came since they were in the order of their paths */
	bool changed;	    /* something for the engine */
	bool ending;	    /* observing has begun, and what runs is still to be ended */
	bool ticked;
	uint64_t ticks, last_tick, engine_next;
	int tick_error;
	struct core_input input;

	struct core_slotted_job jobs[CORE_JOBS];
	uint64_t next_job, nr_finished;

	struct core_changed changes[CORE_CHANGES]; /* at id % CORE_CHANGES */
	uint64_t next_change;

	bool paused;
	struct hv_uuid *paused_vms; /* in order, CORE_MAX_VMS at most */
	size_t nr_paused;

	struct engine_event events[CORE_EVENTS];
	size_t first_event, nr_events;
};

/* core_agent.c */
bool core_agent_fresh(const struct core_vm *vm, uint64_t now);
void core_agent_event(
	struct core *core, struct core_vm *vm, uint64_t now, const struct hv_agent *agent);
/* What of the VM's attributes is its agent's word. */
void core_agent_attrs(struct core_vm *vm, uint64_t now);
void core_agent_sample(const struct core_vm *vm, uint64_t now, struct vm_sample *sample);
/* What is asked of the agent alone: reason.inside. */
void core_agent_inside(struct core *core, struct core_vm *vm, const struct engine_action *action);
/* True: the target waits until the agent has freed what it takes. */
bool core_agent_hold(struct core *core, struct core_vm *vm, const struct engine_action *action);
void core_agent_drop(struct core *core, struct core_vm *vm);
void core_agent_expire(struct core *core, uint64_t now);
uint64_t core_agent_due(const struct core *core);
/* At most CORE_AGENT_CALLS, into core->calls. */
void core_agent_collect(struct core *core, size_t *nr);
bool core_agent_answer(struct core *core, const struct hv_event *event);
void core_agent_not_submitted(struct core *core, const struct hv_call *call);

/* core_vm.c */
/* -ENOMEM; -ENOSPC: CORE_MAX_VMS. */
int core_vm_add(struct core *core, uint64_t now, const struct hv_listed *listed);
struct core_vm *core_vm_find(const struct core *core, const struct hv_uuid *uuid);
struct core_vm *core_vm_by_id(const struct core *core, uint64_t id);
/*
 * By the id that the engine knows it by, and that operators were given: one that changes its group
 * or its process has another id already, or none, until the next tick tells it.
 */
struct core_vm *core_vm_by_told_id(const struct core *core, uint64_t id);
void core_vm_back(
	struct core *core, struct core_vm *vm, uint64_t now, const struct hv_listed *listed);
void core_vm_leave(struct core *core, struct core_vm *vm);
/* Its process, as was read. */
void core_vm_process(
	struct core *core, struct core_vm *vm, uint64_t now, const struct hv_process *process);
/* Frees a VM that is gone, where the engine knows that and no call of it is out. */
void core_vm_reap(struct core *core, struct core_vm *vm);
void core_vm_free(struct core *core, struct core_vm *vm);
void core_vm_run(struct core *core, struct core_vm *vm, uint64_t now, enum hv_run_state run,
	enum hv_job job);
void core_vm_reboot(struct core *core, struct core_vm *vm, uint64_t now);
void core_vm_info(struct core *core, struct core_vm *vm, uint64_t now, const struct hv_info *info);
/* The description with what of the hard limit is left for the guest. */
struct hv_info core_vm_limited(const struct core_vm *vm, const struct hv_info *info);
/* Its knobs anew, from what its sources said last: the configuration or its name has changed. */
void core_vm_review(struct core *core, struct core_vm *vm, uint64_t now);
void core_vm_stats(
	struct core *core, struct core_vm *vm, uint64_t now, const struct hv_stats *stats);
/* What was read before counts as stale until it moves. */
void core_vm_forget_stats(struct core_vm *vm, uint64_t now);
/* Drops a target that was not called; error is told to the engine, 0: nothing is. */
void core_vm_drop_target(struct core *core, struct core_vm *vm, int error);
/*
 * A target that was not called yet and is not to be set any more is dropped with -ECANCELED: of one
 * that is not managed all but what ends a cut, else what would take memory while a pause or its
 * state forbid it.
 */
void core_vm_drop_forbidden(struct core *core, struct core_vm *vm, uint64_t now);
/* What the VM costs the host, bytes; UINT64_MAX: not known. */
uint64_t core_vm_usage(const struct core_vm *vm);
void core_vm_actual(struct core_vm *vm, uint64_t actual);
/*
 * How large its min may be in group. One that it had already, and for which there was room, is no
 * larger for being said again.
 */
uint64_t core_vm_min_room(struct core *core, struct core_vm *vm, const struct core_group *group);
void core_vm_due(struct core *core, struct core_vm *vm, uint64_t now);
void core_vm_period(struct core *core, struct core_vm *vm);

/* core_state.c */
/* Looks whether state or sample differ from what the engine was told. */
void core_vm_assess(struct core *core, struct core_vm *vm, uint64_t now);
enum engine_vm_state core_vm_state(const struct core *core, const struct core_vm *vm, uint64_t now);
/* Bits 1 << state: all that apply. */
uint32_t core_vm_states(const struct core *core, const struct core_vm *vm, uint64_t now);
void core_vm_sample(const struct core *core, const struct core_vm *vm, uint64_t now,
	struct vm_sample *ret_sample);
bool core_same_knobs(const struct memcg_knobs *a, const struct memcg_knobs *b);
bool core_same_attrs(const struct engine_vm_attrs *a, const struct engine_vm_attrs *b);
bool core_same_sample(const struct vm_sample *a, const struct vm_sample *b);
bool core_vm_fresh(const struct core *core, const struct core_vm *vm, uint64_t now);
/* Its statistics were expected to move for long enough to say that they do not. */
bool core_vm_watched(const struct core *core, const struct core_vm *vm, uint64_t now);
/* They were read again and again, and did not move: not that they could not be read. */
bool core_vm_stands_still(const struct core *core, const struct core_vm *vm, uint64_t now);
void core_vm_dirty(struct core *core, struct core_vm *vm);
void core_vm_ready(struct core *core, struct core_vm *vm);
void core_vm_not_ready(struct core *core, struct core_vm *vm);
int core_vm_set_id(struct core *core, struct core_vm *vm, uint64_t id); /* 0: none */

/* core_group.c */
/* With a reference. -ENOMEM; -ENOSPC: CORE_MAX_GROUPS. */
int core_group_get(struct core *core, const char *path, struct core_group **ret_group);
void core_group_ref(struct core *core, struct core_group *group);
void core_group_put(struct core *core, struct core_group *group); /* takes NULL */
void core_group_free(struct core *core, struct core_group *group);
struct core_group *core_group_by_id(const struct core *core, uint64_t id);
/* The sections of a configuration, to be freed; NULL where it has none. -ENOMEM. */
int core_sections(const struct core_config *config, struct core_section **ret_sections);
/* The knobs of all groups anew, where the configuration or what the pool has for them changed. */
void core_group_review(struct core *core);
/* Into the order of their paths, before those that came are told, and seen. */
void core_groups_sort(struct core *core);
/*
 * What all VMs' and groups' min come to, with pages more or less of a VM in group; and how many
 * pages more there is room for, PAGES_UNLIMITED where the pool is not known.
 */
void core_min_add(struct core_group *group, uint64_t pages);
void core_min_sub(struct core_group *group, uint64_t pages);
uint64_t core_min_room(const struct core *core, const struct core_group *group);

/* core_tick.c */
int core_tick(struct core *core, uint64_t now);
uint64_t core_tick_due(const struct core *core);
/* What is known is old: nothing is decided before all is seen again. */
void core_look_anew(struct core *core);
void core_input_free(struct core_input *input);

/* core_calls.c */
size_t core_collect_calls(struct core *core, uint64_t now);
void core_check_lanes(struct core *core, uint64_t now);
size_t core_hung(const struct core *core);
uint64_t core_calls_due(const struct core *core);
struct core_slot *core_slot_find(struct core *core, uint64_t token);

/* core_job.c */
void core_job_requests(struct core *core, struct core_input *input);
void core_job_told(struct core *core, int error);
void core_job_event(struct core *core, const struct engine_event *event);
/* Told of the end of one that no operator asked for. */
bool core_job_is_internal(const struct core *core, const struct engine_event *event);
void core_job_came(struct core *core, uint64_t job, uint64_t pages);

/* core_pause.c */
bool core_is_paused(const struct core *core, const struct hv_uuid *uuid);

/* core_show.c */
/* Says what warnings there are, once for each state of its knobs. */
void core_say_warnings(struct core *core, struct core_vm *vm);
/* The same of the groups of a configuration, when it is taken. */
void core_say_group_warnings(const struct core *core);

/* core_change.c */
/* A call that writes. */
bool core_change_is(const struct hv_call *call);
/* The call that writes came to its end. */
void core_change_answer(struct core *core, struct core_vm *vm, const struct hv_event *event);
/* It is not waited for any more: why. One that is out is answered later all the same. */
void core_change_drop(struct core *core, struct core_vm *vm, const char *why);

/* core_log.c */
__attribute__((format(printf, 4, 5))) void core_say(const struct core *core,
	enum core_log_level level, const struct core_vm *vm, const char *format, ...);
/* The same with what the line has of message_id and action. */
__attribute__((format(printf, 6, 7))) void core_say_as(const struct core *core,
	enum core_log_level level, const struct core_vm *vm, const char *message_id,
	const char *action, const char *format, ...);
void core_say_action(
	struct core *core, const struct core_vm *vm, const struct engine_action *action);
void core_say_event(struct core *core, const struct engine_event *event);
void core_say_view(struct core *core);
/* What went wrong, in words. */
const char *core_error_text(const struct hv_event *event);

#endif
