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
void agent_report(const struct agent *agent, struct protocol_message *ret_report);
/* What of a group is cold, file or anonymous, bytes. */
uint64_t agent_cold_file(const struct agent_group *group);
uint64_t agent_cold_anon(const struct agent_group *group);

/* reclaim.c */
void agent_request(struct agent *agent, const struct protocol_message *message);
void agent_request_step(struct agent *agent);
/* why NULL: nobody is there who could be told. */
void agent_request_end(struct agent *agent, const char *why);
void agent_unprotect(struct agent *agent);

#endif
