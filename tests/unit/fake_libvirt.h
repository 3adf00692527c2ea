/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A libvirt of our own behind the backend's table of calls: domains that tests make up, calls that
 * fail or hang on demand, an event loop that delivers what tests emit. One in a process;
 * fake_reset() makes it new. Its state is locked: tests and the backend's threads use it at the
 * same time.
 */
#ifndef BALLAST_TESTS_FAKE_LIBVIRT_H
#define BALLAST_TESTS_FAKE_LIBVIRT_H

#include <stdbool.h>

#include "hv/hv.h"
#include "hv/libvirt/calls.h"

/* Calls that can be made to fail. */
enum fake_call {
	FAKE_OPEN,
	FAKE_ALL_STATS,
	FAKE_LIST,
	FAKE_LOOKUP,
	FAKE_STATE,
	FAKE_PERSISTENT,
	FAKE_XML,
	FAKE_XML_INACTIVE,
	FAKE_PARAMETERS,
	FAKE_GET_METADATA,
	FAKE_SET_METADATA,
	FAKE_SET_CONFIG,
	FAKE_MEMORY_STATS,
	FAKE_PERIOD,
	FAKE_SET_MEMORY,
	FAKE_SET_MEMORY_FLAGS,
	FAKE_JOB,
	FAKE_SET_PARAMETERS,
	FAKE_ATTACH,
	FAKE_BLOCK_JOB,
	FAKE_AGENT,
	FAKE_KEEPALIVE,
	FAKE_CLOSE_CALLBACK,
	FAKE_EVENT,
	FAKE_NR,
};

struct fake_domain {
	char name[32];
	int state, reason;
	bool persistent;
	char inside[1024];	    /* elements of the live description */
	char inside_inactive[1024]; /* of the inactive one */
	bool has_config_limit;
	unsigned long long config_limit_kib;
	virDomainMemoryStatStruct stats[16];
	int nr_stats;
	bool hangs;	/* what may hang does */
	int job;	/* enum virDomainJobOperation; 0: none runs */
	bool block_job; /* on its disk vda */
	/*
	 * QEMU's guest agent: the answer, or NULL with the error. On the backend's threads, one
	 * call at a time. NULL: there is none.
	 */
	const char *(*agent)(struct fake_domain *dom, const char *command, int *ret_code);
	bool agent_hangs, agent_busy;
	/* What was set. */
	char note[128];	     /* the ceiling's; "": none */
	char memory[2][512]; /* ballast's element, live and in the configuration; "": none */
	unsigned long target_kib;
	int period_s;
};

extern const struct libvirt_calls fake_calls;

void fake_reset(void);
/* One more domain; its uuid's last byte is its number. Changes only before open, or locked. */
struct fake_domain *fake_add(const char *name);
struct hv_uuid fake_uuid(const struct fake_domain *dom);
void fake_lock(void);
void fake_unlock(void);

/* From now on the call fails with that error; 0: it works again. */
void fake_fail(enum fake_call call, int code);
/* The nth call from now on fails, whichever it is, and no other; and whether it came to that. */
void fake_fail_nth(unsigned int nth);
bool fake_failed_nth(void);
/* Every connection there is breaks; told to the close callback, with that reason. */
void fake_break(int reason);
/* Makes what hangs go on. */
void fake_release(void);
unsigned int fake_nr_hanging(void);
unsigned int fake_count(enum fake_call call); /* how often it was called */
unsigned int fake_nr_connections(void);	      /* that are open */
/* What was changed, in order: "note web 262144;memory web 131072;". Valid until the next change. */
const char *fake_changes(void);

/* Events, for every connection that registered for them. */
void fake_emit_lifecycle(const struct fake_domain *dom);
void fake_emit_reboot(const struct fake_domain *dom);
void fake_emit_balloon(const struct fake_domain *dom, unsigned long long kib);
void fake_emit_metadata(const struct fake_domain *dom, int type, const char *uri);
/* A migration's iteration, a job that ended, a block job. */
void fake_emit_job(const struct fake_domain *dom, int event);
void fake_emit_device(const struct fake_domain *dom, bool added);

#endif
