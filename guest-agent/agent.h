/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * agent: the core of what runs inside a guest.
 *
 * It reports the guest's active working set to the host and frees inactive memory when the host
 * asks, group by group, by the rule of protect-active-working-set: of a group at most what its
 * inactive list has over what has to stay inactive (workingset_cold_list()), file before anonymous,
 * active pages only where the host says so and nothing inactive was found; in the decaying batches
 * of policy/batch, figures read anew before each.
 *
 * Where a kernel ages by generations the ratio of its lists means nothing. Cold is what is older
 * than the two youngest generations, where their sizes are told; and in any case a group gives
 * little at first and twice as much each time, as long as little of what went is read again.
 *
 * Portable: no allocation, no I/O and no clock of its own; all comes through a table of functions,
 * so that a kernel without processes can link it. struct agent is the caller's, all zeros before
 * agent_start(). One thread. Units: bytes; microseconds, monotonic.
 *
 * What the host says is not trusted with the guest's life: a request ends at its deadline, at once
 * when told, when a group suffers by it, when swap runs out, and when the kernel refuses. At rest,
 * once a second, only the guest's own figures are read, and those of groups every half a minute.
 */
#ifndef BALLAST_GUEST_AGENT_AGENT_H
#define BALLAST_GUEST_AGENT_AGENT_H

#include "common/protocol.h"
#include "policy/batch.h"

/* Groups that are looked at; the largest where there are more. */
#define AGENT_GROUPS 64

/* A report so often while something moves, at rest, and at most under pressure. */
#define AGENT_MOVING_US	  UINT64_C(1000000)
#define AGENT_REST_US	  UINT64_C(3000000)
#define AGENT_PRESSURE_US UINT64_C(100000)
/* At rest the groups are read so often: what one gave another meanwhile is told no sooner. */
#define AGENT_WALK_US UINT64_C(30000000)
/* What a batch may take: others in the guest wait for locks meanwhile. */
#define AGENT_BATCH_US UINT64_C(50000)
/*
 * Protection outlives a request by this: the balloon then takes what was freed, which is seconds,
 * and in a guest that is smaller now those who stream press on the others.
 */
#define AGENT_PROTECT_US UINT64_C(60000000)
/* A request takes no longer, whatever the host says. */
#define AGENT_DEADLINE_MAX_MS UINT64_C(60000)
/* Of a batch's time, thousandths that a group waited for memory: it suffers. */
#define AGENT_SUFFERS 100
/* Without groups the guest's waiting is looked at so long after a batch, in which the agent waits
 * itself; as long as the batch took where that is more. */
#define AGENT_WATCH_US UINT64_C(20000)
/* Of what goes of a generation, what is needed is read again within this; else in the next. */
#define AGENT_PROBE_US UINT64_C(100000)
/* A group that read again what was taken of it is left alone for this. */
#define AGENT_PROBE_REST_US UINT64_C(10000000)
/* Who is squeezed so long after a request that took something may be so because of it. */
#define AGENT_AFTER_US UINT64_C(10000000)
/* What could not be put back is tried again after this. */
#define AGENT_AGAIN_US UINT64_C(1000000)

/* How the kernel tells what was not used lately. */
enum agent_aging {
	AGENT_LISTS,	   /* active and inactive */
	AGENT_GENERATIONS, /* old_file and old_anon of groups */
	AGENT_PROBES,	   /* generations, of sizes that are not told */
};

/* Counters grow; what a platform does not know is 0 (see can). */
struct agent_guest {
	uint64_t total, free, available;
	bool estimated; /* available is: this kernel does not tell it */
	enum agent_aging aging;
	uint64_t active_anon, inactive_anon, active_file, inactive_file;
	uint64_t reclaimable; /* of the kernel's own (slab) */
	uint64_t swap_free;
	uint64_t refaults, swapins; /* bytes since boot */
	uint64_t psi_some_us, psi_full_us;
};

struct agent_group {
	uint64_t id; /* the platform's; the same as long as the group is there */
	char name[PROTOCOL_TEXT];
	bool dying; /* nobody is in it */
	uint64_t current;
	uint64_t active_anon, inactive_anon, active_file, inactive_file;
	uint64_t old_anon, old_file; /* AGENT_GENERATIONS: older than the two youngest */
	uint64_t refaults;	     /* bytes since it was made */
	uint64_t restores;	     /* of them those that had been active */
	uint64_t psi_some_us;
};

struct agent_platform {
	const char *software; /* "ballast-agent 0.1.0 Linux 6.1.0" */
	uint64_t can;	      /* enum protocol_can; may change with a reading */
	uint64_t (*now)(void *ctx);
	int (*guest)(void *ctx, struct agent_guest *ret_guest);
	/* Groups without children; at most nr. */
	size_t (*groups)(void *ctx, struct agent_group *ret_groups, size_t nr);
	/*
	 * About so many bytes of that group, file pages, or with anon anonymous ones. -EAGAIN: less
	 * came, or the kernel had no time; -ENOENT: the group has gone; another: the kernel does
	 * not do it, and will not the next time. What came, also on failure.
	 */
	int (*reclaim)(void *ctx, const struct agent_group *group, uint64_t bytes, bool anon,
		uint64_t *ret_came);
	/* As much as it has now is kept for it while others are reclaimed. */
	int (*protect)(void *ctx, const struct agent_group *group);
	/* All as it was before; negative: not all, and it is to be tried again. */
	int (*unprotect)(void *ctx);
	/* All of it or, negative, nothing. */
	int (*send)(void *ctx, const char *text, size_t length);
};

/* What was seen of a group before. */
struct agent_seen {
	uint64_t id, refaults, restores, psi_some_us;
	uint64_t refaults_rate, restores_rate, psi_rate; /* bytes, bytes, us a second */
	bool protects;					 /* it is protected, or cannot be */
	bool suffered;					 /* and not by a request */
	unsigned int empty; /* batches of this request that brought nothing of it */
	struct {
		uint64_t bytes; /* that a round may take; 0: a first one's */
		uint64_t at;	/* when this round began; 0: none is out that was not judged */
		uint64_t came, refaults;
		uint64_t rests_until;
	} probe;
};

struct agent {
	const struct agent_platform *platform;
	void *ctx;
	bool greeted; /* the host has said hello in a version that is spoken here */
	struct protocol_lines lines;

	uint64_t said; /* what it can, to the host */
	struct agent_guest guest, before, told;
	struct agent_group groups[AGENT_GROUPS];
	struct agent_seen seen[AGENT_GROUPS];
	size_t nr_groups, nr_seen;
	struct agent_guest walked;  /* the guest when groups were read */
	uint64_t walk_due;	    /* they are read anew, whatever it is now */
	bool known;		    /* guest was read */
	uint64_t psi_some_us;	    /* of the guest, by the newest reading */
	uint64_t read_at, since_us; /* the last reading; the time that rates are of */

	uint64_t looked, reported, report_due; /* looked: for a report, sent or not */
	uint64_t us_a_page; /* that the last batch that brought something took; 0: none did */
	bool pressure;
	bool moves; /* the last report told of what goes on by itself */

	/* The request that runs; id 0: none. */
	struct {
		uint64_t id, deadline;
		bool anon, active;
		bool stop;
		bool began; /* whoever suffered before was looked for */
		struct batch batch;
		uint64_t group;	     /* the last batch's, 0: none was */
		uint64_t psi_before; /* of that group */
		uint64_t guest_psi_before;
		uint64_t took_us;
		uint64_t not_before; /* the next batch */
	} request;
	uint64_t calm_at;	  /* no request took anything for a while before */
	uint64_t protected_until; /* 0: nothing is protected */
};

/* What the platform still protects is put back, then or later. */
void agent_start(struct agent *agent, const struct agent_platform *platform, void *ctx);

/* The host is not connected any more: a request ends. It speaks first when it is again. */
void agent_disconnected(struct agent *agent);

/* Bytes that the host sent. */
void agent_input(struct agent *agent, const char *data, size_t size);

/* Some task waited for memory: a report goes at once. */
void agent_pressure(struct agent *agent);

/* Does what is due: at most one report and one batch. Returns when to come back. */
uint64_t agent_step(struct agent *agent);

/* Ends all, puts protections back. */
void agent_stop(struct agent *agent);

#endif
