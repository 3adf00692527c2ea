/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * contract: what hv/hv.h promises, as one suite that every backend passes.
 *
 * A backend takes part with a subject: how a host with two running VMs is made behind it, how time
 * passes, and how a test makes things happen there. One program a backend: contract.c, the
 * subject, and a main that calls contract_run().
 */
#ifndef BALLAST_TESTS_CONTRACT_H
#define BALLAST_TESTS_CONTRACT_H

#include "hv/hv.h"

#define CONTRACT_MIB	 UINT64_C(1048576)
#define CONTRACT_MAXIMUM (1024 * CONTRACT_MIB) /* of both VMs */

enum contract_deed {
	CONTRACT_HANG,	   /* calls of the VM that may hang do */
	CONTRACT_GO_ON,	   /* they return */
	CONTRACT_REBOOT,   /* the guest reboots */
	CONTRACT_CHANGE,   /* its metadata */
	CONTRACT_BALLOON,  /* its actual becomes half of the maximum (the target), by itself */
	CONTRACT_RENAME,   /* it is called CONTRACT_NAME from now on */
	CONTRACT_RESTART,  /* it ends and is started anew, with all its memory */
	CONTRACT_PAUSE,	   /* it is paused by hand... */
	CONTRACT_RESUME,   /* ...and goes on */
	CONTRACT_JOB,	   /* one begins that takes no target meanwhile... */
	CONTRACT_JOB_END,  /* ...and ends */
	CONTRACT_THROTTLE, /* a live limit throttles it; another is configured */
	CONTRACT_BREAK,	   /* the connection is lost and cannot be made anew; of no VM */
	CONTRACT_MEND,	   /* it can */
};

#define CONTRACT_NAME "moved"

/* A deed as one of several. */
#define CONTRACT_BIT(deed) (1u << (deed))

/*
 * A hypervisor that is no test's own: smaller VMs, which it has beside others, that are near what
 * they are told, and slow. It cannot be made to hang, to reboot a guest, or to lose a connection:
 * what needs that is left out.
 */
struct contract_real {
	uint64_t maximum, target, near; /* bytes */
	size_t others;
};

struct contract_subject {
	const struct hv_backend *backend;
	unsigned int cannot;	       /* deeds that there are not with this hypervisor */
	unsigned int silent;	       /* deeds that no event tells: the next listing finds them */
	const char *uri, *foreign_uri; /* one that it handles, one that it does not */
	const struct contract_real *real; /* NULL: it is the tests' own */
	/*
	 * A new host with the running VMs "web" and "db": CONTRACT_MAXIMUM, a balloon, statistics
	 * switched off; their actual is known.
	 */
	void (*setup)(void);
	/* With a proc of its own. */
	int (*open)(const struct hv_params *params, struct hv **ret_hv);
	/* After close(): all must be gone. */
	void (*teardown)(void);
	struct hv_uuid (*uuid)(const char *vm);
	/* Passes the time until an event may be there. False: none will come, as far as it knows.
	 */
	bool (*wait)(struct hv *hv);
	/* Long enough for anything that comes by itself. */
	void (*rest)(struct hv *hv);
	void (*act)(struct hv *hv, enum contract_deed deed, const char *vm);
	/* What the hypervisor has, not what the backend says. */
	uint64_t (*target)(struct hv *hv, const char *vm);
	uint64_t (*period_s)(struct hv *hv, const char *vm); /* NULL: its description says it */
};

/* Exit status of the program. */
int contract_run(const struct contract_subject *subject);

#endif
