/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What control.c builds on: where the socket is and who is on its other side, and messages. */
#ifndef BALLAST_HV_BALLASTD_CONTROL_INTERNAL_H
#define BALLAST_HV_BALLASTD_CONTROL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "hv/ballastd/control.h"

struct control_socket {
	int fd, lock; /* listening; PATH.lock, held for as long as this daemon lives */
	bool has_group;
	gid_t group; /* its members may connect */
};

#define CONTROL_SOCKET_NONE ((struct control_socket){ -1, -1, false, 0 })

/* 0 or a negative errno with words in why; -EADDRINUSE: another daemon lives there. */
int control_socket_open(const char *path, const char *group, struct control_socket *ret_socket,
	char *why, size_t size);
void control_socket_close(struct control_socket *socket, const char *path);

/* Whether the peer of this connection may use it; who gets "uid 1000, pid 4711". */
bool control_socket_permits(const struct control_socket *socket, int fd, char *who, size_t size);

/* ---- control_message.c ---- */

/* An object with "jsonrpc"; *r is -ENOMEM where there was no memory, and done then frees it. */
struct json_object *control_message_new(int *r);
struct json_object *control_message_done(struct json_object *message, int r);

/* id NULL: null, as for requests that could not be read. Uses up error->data. NULL: no memory. */
struct json_object *control_message_error(struct json_object *id, struct control_error *error);

bool control_id_ok(struct json_object *id);
/* What of a request is none, in words; NULL: nothing. */
const char *control_bad_request(struct json_object *request);

#endif
