/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * client: one connection to ballastd, as docs/control-protocol.md has it. Blocks; one thread.
 */
#ifndef BALLAST_TOOLS_CLIENT_H
#define BALLAST_TOOLS_CLIENT_H

#include <json-c/json.h>
#include <stddef.h>

struct client;

#define CLIENT_DEFAULT_SOCKET "/run/ballast/ballastd.sock"

/* A daemon that does not answer a request for so long is stopped or gone. */
#define CLIENT_TIMEOUT_MS 30000

/* 0; a negative errno with words in why. */
int client_open(const char *path, struct client **ret_client, char *why, size_t size);
void client_close(struct client *client);

/*
 * Sends a request, and waits for its answer; notifications that come before are kept for
 * client_notification(). Takes over params (NULL: none). 0 with *ret_result, the caller's;
 * -EREMOTE: the daemon answered with an error, whose message is in why; else another negative errno
 * with words in why.
 */
int client_call(struct client *client, const char *method, struct json_object *params,
	struct json_object **ret_result, char *why, size_t size);

/*
 * The next notification with that method; *ret_params is the caller's. timeout_ms: 0: does not
 * wait, -1: for ever. -EAGAIN: none came in time; -EINTR: a signal came; else with words in why.
 */
int client_notification(struct client *client, const char *method, int timeout_ms,
	struct json_object **ret_params, char *why, size_t size);

#endif
