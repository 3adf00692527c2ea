/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What agent.c, figures.c and reclaim.c share. For nobody else. */
#ifndef BALLAST_GUEST_AGENT_AGENT_INTERNAL_H
#define BALLAST_GUEST_AGENT_AGENT_INTERNAL_H

#include "guest-agent/agent.h"

uint64_t agent_now(const struct agent *agent);
/* False: it could not be sent. */
bool agent_say(struct agent *agent, const struct protocol_message *message);

/* figures.c */
/* Guest and groups anew, with rates over the time since. False: the guest cannot be read. */
bool agent_read(struct agent *agent, uint64_t now);
/* The same, but groups only where they may have changed, or were not read for a while. */
bool agent_look(struct agent *agent, uint64_t now);
void agent_report(struct agent *agent, struct protocol_message *ret_report);
/* Whether the guest's figures differ from those that were told; reads only them. */
bool agent_moves(struct agent *agent);
/* It waits for memory, and reads again what it had been using. */
bool agent_squeezed(const struct agent_seen *seen);
/* NULL: it is new. */
struct agent_seen *agent_seen(struct agent *agent, uint64_t id);
/* What of a group is cold, file or anonymous, bytes; where that is known before it is tried. */
uint64_t agent_cold_file(const struct agent *agent, const struct agent_group *group);
uint64_t agent_cold_anon(const struct agent *agent, const struct agent_group *group);

/* reclaim.c */
void agent_request(struct agent *agent, const struct protocol_message *message);
void agent_request_step(struct agent *agent);
/* why NULL: nobody is there who could be told. */
void agent_request_end(struct agent *agent, const char *why);
void agent_unprotect(struct agent *agent);

/* probe.c: of groups whose kernel ages by generations */
/* What the last probes of all groups did is judged, where it is time. */
void agent_probes_judge(struct agent *agent, uint64_t now);
/* Of bytes that may be cold, what the next batch may take. */
uint64_t agent_probe(
	struct agent *agent, const struct agent_group *group, uint64_t now, uint64_t bytes);
void agent_probed(
	struct agent *agent, const struct agent_group *group, uint64_t now, uint64_t came);
/* When the next probe can be judged; 0: none is out. */
uint64_t agent_probes_due(const struct agent *agent);

#endif
