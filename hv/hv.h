/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hv: the contract of a hypervisor backend.
 *
 * A backend lists VMs, reads what they use and sets balloon targets; it decides nothing and keeps
 * no policy. It is one const table of functions (struct hv_backend). The core (core.h) says what
 * to do in calls, the shell hands them to the backend, and what comes of them, and what happens by
 * itself, comes back as events.
 *
 * Life cycle
 *   1. open() makes a handle; nothing is contacted that could block. It may start threads.
 *   2. The shell watches fd() for POLLIN and then takes events with next() until it says 0.
 *   3. submit() takes a call. Every call is answered by exactly one event with the same token,
 *      sooner or later; one that hangs is answered when it returns, or not before close().
 *   4. A connection that is lost is told by HV_EVENT_DOWN; the backend connects again by itself
 *      with a pause that doubles from 1 s to 30 s, and then tells HV_EVENT_UP. Calls in between
 *      fail with -ENOTCONN. After UP the core lists everything anew.
 *   5. close() frees all. It does not wait for calls that hang: what they hold is left to them.
 *
 * Rules for all callbacks: called from the shell's one thread; they never block and take no time
 * that grows with anything but the VMs asked for; they return 0 or a negative errno, and after a
 * failure nothing has changed. Workers of the backend's own are its own affair; events that they
 * make go through a queue that next() reads.
 *
 * Units: bytes; times are monotonic microseconds. KiB exist only inside a backend.
 *
 * The order of calls for one VM is the core's business (lane.h): it never submits a second call
 * for a VM while one is out, except HV_PROCESS, which is no call of the hypervisor's.
 */
#ifndef BALLAST_HV_HV_H
#define BALLAST_HV_HV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hv; /* a backend's handle */

/* A VM's identity. Names change hands; this does not. */
struct hv_uuid {
	uint8_t bytes[16];
};

#define HV_UUID_TEXT 37 /* with the terminating 0 */

/* "6ba7b810-9dad-11d1-80b4-00c04fd430c8"; text has HV_UUID_TEXT bytes. */
void hv_uuid_format(const struct hv_uuid *uuid, char *text);
/* -EINVAL: not a UUID in that form. */
int hv_uuid_parse(const char *text, struct hv_uuid *ret_uuid);
bool hv_uuid_equal(const struct hv_uuid *a, const struct hv_uuid *b);

/* Longest VM name and group path that are taken; longer ones are cut by no one: they are refused.
 */
#define HV_NAME_MAX  255
#define HV_GROUP_MAX 1023

/*
 * The path of a group in its one form: one slash before each part, none at the end; "/" is the
 * pool. ret_path has HV_GROUP_MAX + 1 bytes. NULL; or what is wrong with it, in words behind its
 * name, as "has a part . or ..": no path, no text, or too long or too deep for a VM below it.
 */
const char *hv_group_path(const char *path, char *ret_path);

/* No limit, and not told, for figures in bytes. */
#define HV_UNLIMITED UINT64_MAX

enum hv_run_state {
	HV_OFF, /* not there, or no memory yet or any more */
	HV_STARTING,
	HV_RUNNING,
	HV_PAUSED,
};

/*
 * What is being done to a VM as a whole. While one runs its memory is somebody else's business: it
 * is neither cut nor given anything.
 */
enum hv_job {
	HV_JOB_NONE,
	HV_JOB_MIGRATION, /* away, or, where the VM never ran here, in */
	HV_JOB_POSTCOPY,  /* a migration that has switched sides, in either direction */
	HV_JOB_SAVE,	  /* also a dump */
	HV_JOB_SNAPSHOT,
	HV_JOB_BACKUP,
};

/*
 * Kinds of VMs: what their descriptions say of their memory. Bits; each is shown by its name, and
 * says what the balloon is worth (core_state.c, and the table of policy/engine.c).
 */
enum hv_kind {
	HV_KIND_HUGE_PAGES = 1u << 0,  /* guest memory is of huge pages: not of the pool */
	HV_KIND_LOCKED = 1u << 1,      /* memory is locked */
	HV_KIND_PINNED = 1u << 2,      /* has a VFIO, mdev or vdpa device */
	HV_KIND_ENCRYPTED = 1u << 3,   /* SEV, SEV-SNP, TDX, protected virtualization */
	HV_KIND_VIRTIO_MEM = 1u << 4,  /* has a virtio-mem device */
	HV_KIND_STRICT_NUMA = 1u << 5, /* is bound to nodes of the host; only shown */
};

/* Which agent in the guest is listened to. */
enum hv_way {
	HV_WAY_NONE,
	HV_WAY_BALLAST, /* ballast-agent, at a port of its own */
	HV_WAY_QEMU_GA, /* QEMU's guest agent, as far as its policy lets files be read and written
			 */
};

/* "none", "ballast", "qemu-ga"; -EINVAL: none of them. */
const char *hv_way_name(enum hv_way way);
int hv_way_parse(const char *text, enum hv_way *ret_way);

/* What ballast does to a VM: the least of what its groups, its own settings and the mode say. */
enum hv_manage { HV_MANAGE_NO, HV_MANAGE_OBSERVE, HV_MANAGE_ACT };

/* "no", "observe", "act"; -EINVAL: none of them. */
const char *hv_manage_name(enum hv_manage manage);
int hv_manage_parse(const char *text, enum hv_manage *ret_manage);

/* What a VM is listed with. */
struct hv_listed {
	struct hv_uuid uuid;
	char *name;
	enum hv_run_state state;
	enum hv_job job; /* as far as the state tells it; a live migration shows in hv_stats only */
};

/* One source of knobs; a field that the source does not say is not set. */
struct hv_knobs {
	bool has_soft_limit, has_min, has_low, has_max, has_guest_swap, has_manage, has_group,
		has_agent;
	uint64_t soft_limit, min, low, max; /* bytes; HV_UNLIMITED: said to be none */
	bool guest_swap;
	enum hv_manage manage;
	char *group; /* "/prod/web" */
	enum hv_way agent;
};

/*
 * What is to change in ballast's own element of a VM's metadata: what set says is written, what is
 * in clear goes, all else stays as it is. No knob is in both.
 */
enum hv_knob {
	HV_KNOB_SOFT_LIMIT = 1u << 0,
	HV_KNOB_MIN = 1u << 1,
	HV_KNOB_LOW = 1u << 2,
	HV_KNOB_MAX = 1u << 3,
	HV_KNOB_GUEST_SWAP = 1u << 4,
	HV_KNOB_MANAGE = 1u << 5,
	HV_KNOB_GROUP = 1u << 6,
	HV_KNOB_AGENT = 1u << 7,
};

struct hv_knobs_change {
	struct hv_knobs set;
	unsigned int clear; /* enum hv_knob */
};

/* All of a VM that changes seldom. */
struct hv_info {
	struct hv_uuid uuid;
	char *name;
	uint64_t maximum;   /* the domain's maximum memory */
	uint64_t ceiling;   /* recorded by an earlier ballast; 0: none */
	char *agent;	    /* the socket behind which its agent's port is; NULL: it has none */
	bool balloon;	    /* has a balloon device */
	bool reporting;	    /* which tells the host what is free in the guest: the host has it */
	bool autodeflate;   /* and which lets go where the guest is out of memory */
	unsigned int kinds; /* enum hv_kind */
	uint64_t stats_period_s;  /* 0: the statistics are switched off */
	struct hv_knobs metadata; /* ballast's own element */
	struct hv_knobs
		memtune; /* the soft limit of the inactive configuration, else the live one */
	/* What its process may have in all, live; 0: no limit, or not known. */
	uint64_t hard_limit;
	char *partition; /* the hypervisor's own grouping, "/machine"; NULL: none */
	char *problem; /* what of the metadata was refused, and why, for the operator; NULL: nothing
			*/
};

/* Balloon statistics of one VM; a figure that was not told has its bit unset. */
enum hv_stat {
	HV_STAT_ACTUAL = 1u << 0,
	HV_STAT_UNUSED = 1u << 1,
	HV_STAT_USABLE = 1u << 2,
	HV_STAT_DISK_CACHES = 1u << 3,
	HV_STAT_SWAP_IN = 1u << 4,
	HV_STAT_LAST_UPDATE = 1u << 5,
};

/* What an agent tells of its guest's lists, bytes. */
struct hv_lists {
	uint64_t active_anon, inactive_anon;
	uint64_t active_file, inactive_file;
	uint64_t swap_free; /* of the guest's own swap */
};

/* Of struct hv_agent: what its newest report told. */
enum hv_agent_figure {
	HV_AGENT_LISTS = 1u << 0,
	HV_AGENT_FREE = 1u << 1,
	HV_AGENT_FLOOR = 1u << 2,
	HV_AGENT_WORKINGSET = 1u << 3,
	HV_AGENT_PRESSURE = 1u << 4,
	HV_AGENT_REPORT = 1u << 5, /* one came; need, refaults and swapins are of it */
	HV_AGENT_COLD = 1u << 6,   /* lists have what is cold as inactive, and nothing else */
};

#define HV_AGENT_TEXT	48
#define HV_AGENT_GROUPS 8

/* Of a group in the guest: its busiest are told. */
struct hv_agent_group {
	char name[HV_AGENT_TEXT]; /* printable ASCII */
	uint64_t active, inactive;
	uint64_t refaults; /* bytes a second */
	uint64_t psi;	   /* thousandths of the time that some task waited for memory */
};

/* What is known of the agent in a guest: the guest's own word, all of it. */
struct hv_agent {
	bool connected;	    /* it has said hello, in a version that is spoken here */
	bool reclaims;	    /* HV_RECLAIM may be asked of it */
	unsigned int known; /* enum hv_agent_figure */
	struct hv_lists lists;
	uint64_t free, floor, workingset; /* bytes */
	uint64_t need;			  /* bytes that it says it lacks */
	uint64_t refaults, swapins;	  /* bytes a second */
	uint64_t psi_some, psi_full;	  /* thousandths */
	uint64_t version;		  /* of the protocol */
	char software[HV_AGENT_TEXT];	  /* printable ASCII */
	uint64_t faults;		  /* messages that were refused, and floods */
	char fault[HV_AGENT_TEXT];	  /* the last of them; "": none */
	unsigned int nr_groups;
	struct hv_agent_group groups[HV_AGENT_GROUPS]; /* of its newest report */
};

struct hv_stats {
	unsigned int known; /* enum hv_stat */
	uint64_t actual, unused, usable, disk_caches;
	uint64_t swap_in;     /* bytes since the guest's boot */
	uint64_t last_update; /* the guest's last answer, seconds of any clock: only its moving
				 counts */
	bool job_known;	      /* whether and which job runs was told */
	enum hv_job job;
};

/* Of a VM whose page faults are resolved by the pager, since it was there; in pages. */
struct hv_paging {
	bool paged;	  /* it is one */
	bool left;	  /* its faults are the kernel's: it sent what cannot be served */
	uint64_t faults;  /* resolved, or waiting */
	uint64_t waited;  /* of those: for room below a max */
	uint64_t over;	  /* charged over a max, as there was no room in time */
	uint64_t dropped; /* by its balloon */
	uint64_t failed;  /* that its file could not fill */
};

/* The host's view of a VM's process. */
struct hv_process {
	struct hv_uuid uuid;
	bool known, swap_known;
	uint64_t resident, swapped; /* of the guest's memory */
	uint64_t overhead;	    /* of the process beside it */
	/* When it started, in any unit: another value is another process; 0: not known. */
	uint64_t started;
	/* memory.high of its own cgroup (v2); 0: none, or not known. */
	uint64_t throttle;
	uint64_t throttled; /* how often it ran into that, since any time */
	struct hv_paging paging;
};

struct hv_host {
	bool known;
	uint64_t total;	    /* less huge pages */
	uint64_t available; /* without swapping */
};

/* ---- calls ---- */

enum hv_call_type {
	HV_LIST, /* all VMs and their states; answered by HV_EVENT_LISTED */
	/*
	 * Of a VM: HV_EVENT_INFO. From then on the agent that the call names is listened to, and no
	 * other; where the backend has no way to it, none is.
	 */
	HV_INFO,
	HV_STATS,  /* of a VM: HV_EVENT_STATS */
	HV_PERIOD, /* switch a VM's statistics on (period_s) or off (0), live only: DONE */
	/*
	 * Record the ceiling where it is another, then set the target, live only: DONE. -EBUSY: a
	 * job runs on the VM that takes no target meanwhile; -ESTALE: somebody else has just set
	 * another, which stands.
	 */
	HV_TARGET,
	/*
	 * Lift the live limit that throttles a VM, and leave the configured one: DONE. -EOPNOTSUPP:
	 * there is none but the live one, or no such thing at all.
	 */
	HV_UNTHROTTLE,
	/*
	 * Changes ballast's own element: where the VM runs, and in its stored configuration where
	 * it has one; whole or not at all, as far as the hypervisor lets what was written be taken
	 * back: where it does not, the message says what stands. -EINVAL, and nothing was written:
	 * min would be over max. Never anything else of the configuration. DONE
	 */
	HV_KNOBS,
	/*
	 * Adds the port of a ballast-agent to a VM that runs, and to its stored configuration where
	 * persistent says so: DONE. -EEXIST: it is there already, wherever it was to be; -ENXIO:
	 * the VM has nothing that a port could be added to; -EOPNOTSUPP: it has no stored
	 * configuration, or not with this backend. After a failure nothing was added.
	 */
	HV_ATTACH,
	/*
	 * Have the agent free bytes in the guest: DONE, with what came, at the latest at the
	 * deadline and a little. Never hangs, and takes no worker. -ENOTCONN: no agent; -EAGAIN: it
	 * is at it already, or reads nothing; -EOPNOTSUPP: not with this backend.
	 */
	HV_RECLAIM,
	HV_PROCESS, /* of all VMs that are not off, together: HV_EVENT_PROCESS. Never hangs. */
	HV_HOST,    /* the host's memory: HV_EVENT_HOST. Never hangs. */
};

struct hv_call {
	enum hv_call_type type;
	uint64_t token;		     /* the caller's; the answering event has it */
	struct hv_uuid uuid;	     /* of a VM's call */
	uint64_t target, ceiling;    /* HV_TARGET, bytes */
	uint64_t period_s;	     /* HV_PERIOD */
	uint64_t bytes, deadline_ms; /* HV_RECLAIM */
	bool anon, active;	     /* HV_RECLAIM: anonymous, active pages too */
	enum hv_way agent;	     /* HV_INFO */
	/* HV_INFO: the VM is acted on; only then what an earlier run began with it is gone on with.
	 */
	bool act;
	bool persistent; /* HV_ATTACH */
	/*
	 * HV_KNOBS. The caller's, who keeps it until the answer was taken or close() has returned;
	 * a call that may outlive close() has a copy: hv_change_copy().
	 */
	const struct hv_knobs_change *change;
};

/*
 * A backend makes no more than HV_WORKERS of VMs' calls (all but LIST, INFO, PROCESS and HOST) at a
 * time, and with HV_MAX_HUNG of them hung it starts no other. libvirtd has twenty workers for all
 * its clients, and each hung call holds one of them. As all that are out may come to hang together,
 * the core has no more than HV_MAX_HUNG out.
 */
#define HV_WORKERS  8
#define HV_MAX_HUNG 4

/* ---- events ---- */

enum hv_event_type {
	HV_EVENT_NONE,
	/* Answers, with token and error (0 or a negative errno; the payload only where it is 0). */
	HV_EVENT_LISTED,
	HV_EVENT_INFO,
	HV_EVENT_STATS,
	HV_EVENT_PROCESS,
	HV_EVENT_HOST,
	HV_EVENT_DONE,
	/*
	 * By themselves, without token. A VM's events may be lost: a listing finds what they told,
	 * but for a reboot, of which nothing else tells: then the VM is taken as it was until its
	 * statistics show the balloon that it has now.
	 */
	/* Started, stopped, paused, defined, renamed, metadata: look at it anew; at all VMs, where
	 * the UUID is all zeros: events were lost. */
	HV_EVENT_CHANGED,
	HV_EVENT_REBOOTED, /* the guest starts over; its balloon is full size again */
	HV_EVENT_BALLOON,  /* actual changed */
	/* Somebody else set its target; not all hypervisors tell. actual is the backend's. */
	HV_EVENT_TOLD,
	HV_EVENT_AGENT,	   /* what is known of a VM's agent changed, or it reported */
	HV_EVENT_PRESSURE, /* the host's memory is under pressure (PSI) */
	HV_EVENT_DOWN,	   /* the connection is lost */
	HV_EVENT_UP,	   /* it is there (again) */
};

struct hv_event {
	enum hv_event_type type;
	uint64_t token;
	int error;
	char *message; /* of an error, or a note without one, for the operator; may be NULL */
	struct hv_uuid uuid;
	union {
		struct {
			struct hv_listed *vms;
			size_t nr;
		} listed;
		struct hv_info info;
		struct hv_stats stats;
		struct {
			struct hv_process *vms;
			size_t nr;
		} process;
		struct hv_host host;
		uint64_t actual;
		struct hv_agent agent;
		uint64_t came; /* DONE of HV_RECLAIM: bytes */
	};
};

/* The type of the event that answers a call; HV_EVENT_NONE: there is no such call. */
enum hv_event_type hv_answer_of(enum hv_call_type type);

/* Frees what the event owns, and makes it HV_EVENT_NONE. */
void hv_event_clear(struct hv_event *event);
/* Of a HV_EVENT_LISTED: frees the list, which is empty then. */
void hv_listed_clear(struct hv_event *event);
/* The answer is a failure; the message is copied, and left out where there is no memory. */
void hv_event_fail(struct hv_event *event, int error, const char *message);
void hv_info_clear(struct hv_info *info);
void hv_knobs_clear(struct hv_knobs *knobs);
void hv_change_clear(struct hv_knobs_change *change);
/* Copies that own all they have. -ENOMEM, and *ret_copy is untouched. */
int hv_info_copy(const struct hv_info *info, struct hv_info *ret_copy);
int hv_knobs_copy(const struct hv_knobs *knobs, struct hv_knobs *ret_copy);
int hv_change_copy(const struct hv_knobs_change *change, struct hv_knobs_change *ret_copy);
/* What the element says after the change: knobs becomes that. -ENOMEM, and it is untouched. */
int hv_change_apply(const struct hv_knobs_change *change, struct hv_knobs *knobs);

/* ---- the table ---- */

struct hv_params {
	const char *uri;
	const char *psi;		/* file to watch, "/proc/pressure/memory"; NULL: none */
	const char *proc;		/* "/proc" */
	const struct hv_backend *inner; /* what a wrapper wraps; NULL: it is none */
	const char *cgroup;		/* "/sys/fs/cgroup", which NULL stands for */
	const char *pager;		/* directory of microVMs, see hv/pager/backend.h; or NULL */
	const char *pids;		/* libvirt's; NULL: "/run/libvirt/qemu" */
	uint64_t dom0_min;		/* Xen: dom0 is a VM as others, with that; 0: off limits */
};

struct hv_backend {
	const char *name; /* "libvirt" */
	bool loosens;	  /* deflated pages stay with the host until the guest touches them */
	uint64_t granule; /* bytes; the least that is asked of a VM */
	/*
	 * No guest tells how much it uses (there are no balloon statistics): one that tells nothing
	 * gives down to its floor. Statistics that move say then that its driver was seen.
	 */
	bool silent;
	/* The host's own software has memory of its own (dom0), and needs no reserve of the pool's.
	 */
	bool host_apart;

	/* Whether this backend is meant by the URI. Never blocks. */
	bool (*handles)(const char *uri);

	/* -EINVAL: the URI; -ENOMEM. What cannot be reached yet is no error: see HV_EVENT_UP. */
	int (*open)(const struct hv_params *params, struct hv **ret_hv);
	void (*close)(struct hv *hv); /* takes NULL */

	/* For poll(2), POLLIN; the same for the whole life; -1: next() is to be called in any case.
	 */
	int (*fd)(struct hv *hv);

	/* -EAGAIN: too many calls are out; -EINVAL. The call is copied. */
	int (*submit)(struct hv *hv, const struct hv_call *call);

	/* 1: *ret_event is the caller's, to be cleared; 0: none now. */
	int (*next)(struct hv *hv, struct hv_event *ret_event);
};

#endif
