/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent's core on a guest of the tests' own, and the host's end of the channel to it: what one
 * sends the other has at once. hot reads its file again and again; stream and old have read once
 * what nobody reads again.
 */
#ifndef BALLAST_TESTS_AGENT_PAIR_H
#define BALLAST_TESTS_AGENT_PAIR_H

#include "guest-agent/agent.h"
#include "hv/agent_channel.h"

#define MIB    (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000)
#define GROUPS 12

/* The guest, and what was done to it. */
struct pair_guest {
	uint64_t now;
	struct agent_guest guest;
	struct agent_group groups[GROUPS];
	size_t nr_groups;
	uint64_t taken[GROUPS], largest; /* bytes that were reclaimed; the largest batch */
	uint64_t sizes[64];		 /* of the first batches */
	unsigned int batches, protected, unprotected, sent, walks;
	bool stuck;	   /* the kernel frees nothing */
	bool hurts;	   /* what is reclaimed makes its group wait */
	bool squeezes;	   /* it makes the hot group read again what it uses */
	uint64_t waits_us; /* so much the guest waits in each batch, the agent included */
	bool reads_again[GROUPS];
	int protect_error, unprotect_error, reclaim_error, guest_error, send_error;
	char last[PROTOCOL_MESSAGE_MAX + 2];
};

extern struct pair_guest g;
extern struct agent_platform platform; /* of the agent; it can all but generations and probes */
extern struct agent agent;
extern struct agent_channel channel;

/* The guest as it begins; both have greeted, and nothing is reported yet. */
void setup(void);
/* The agent's next step; when it wants the one after. */
uint64_t step(void);
/* The host asks for so much. */
void ask(uint64_t bytes, bool active, bool anon);
/* Until the agent has no request any more. */
void run(void);
/* What came, of a request that ended well. */
uint64_t answer(void);

#endif
