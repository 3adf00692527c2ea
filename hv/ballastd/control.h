/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * control: the control socket. JSON-RPC 2.0 with notifications, one message a line, as
 * docs/control-protocol.md has it; who may connect, and every bound, is seen to here.
 *
 * It knows sockets and messages and nothing of memory: what methods do is methods.c's. It runs in
 * the shell's event loop and thread, never blocks, and never calls a method in parallel.
 */
#ifndef BALLAST_HV_BALLASTD_CONTROL_H
#define BALLAST_HV_BALLASTD_CONTROL_H

#include <stddef.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

/* Bounds; their place in the protocol's page. */
#define CONTROL_MESSAGE_MAX (64 * 1024)	  /* bytes of a client's line: requests are small */
#define CONTROL_CLIENTS_MAX 32		  /* people and a few programs */
#define CONTROL_OUTPUT_MAX  (1024 * 1024) /* bytes waiting, of each kind: see is_deaf() */
#define CONTROL_RATE	    100		  /* requests a second of one client ... */
#define CONTROL_BURST	    200		  /* ... and at once */

#define CONTROL_GROUP "ballast" /* its members may connect */

/* Error codes; what is below -32099 is JSON-RPC's own. */
enum control_code {
	CONTROL_PARSE = -32700,
	CONTROL_INVALID = -32600,
	CONTROL_NO_METHOD = -32601,
	CONTROL_PARAMS = -32602,
	CONTROL_INTERNAL = -32603,
	CONTROL_NOT_PERMITTED = -32001,
	CONTROL_TOO_MANY_CLIENTS = -32002,
	CONTROL_TOO_MANY = -32003,
	CONTROL_NOT_FOUND = -32010,
	CONTROL_AMBIGUOUS = -32011,
	CONTROL_OBSERVE = -32012,
	CONTROL_NOT_YET = -32013,
	CONTROL_PAUSED = -32014,
};

struct control;
struct control_client;

/* data is the error's own: an object, or NULL. */
struct control_error {
	enum control_code code;
	char message[512];
	struct json_object *data;
};

/* Fills an error and returns -1, so that a method can return it. */
int control_fail(struct control_error *error, enum control_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same with data = { key: value }; value NULL: without data. */
int control_fail_with(struct control_error *error, enum control_code code, const char *key,
	const char *value, const char *format, ...) __attribute__((format(printf, 5, 6)));

/*
 * params is an object or NULL and the caller's. 0 with *ret_result, which may not be NULL and goes
 * over; or -1 with *ret_error filled.
 */
struct control_method {
	const char *name;
	int (*call)(void *ctx, struct control_client *client, struct json_object *params,
		struct json_object **ret_result, struct control_error *ret_error);
};

struct control_params {
	const char *path;  /* of the socket; kept, not copied, as all here */
	const char *group; /* CONTROL_GROUP; tests take another; NULL: none */
	const struct control_method *methods;
	size_t nr_methods;
	/* The client is gone; it must not be used after. Never called from control_notify(). */
	void (*gone)(void *ctx, struct control_client *client);
	/* For the log: who was refused or let go, and why. May be NULL. */
	void (*say)(void *ctx, const char *message);
	void *ctx;
};

/*
 * Listens. The socket of a daemon that is dead is replaced, that of one that lives is not:
 * -EADDRINUSE. On any failure why has the words.
 */
int control_open(sd_event *event, const struct control_params *params, struct control **ret_control,
	char *why, size_t size);

/* Disconnects all (gone is called for each) and takes the socket away. Takes NULL. */
void control_close(struct control *control);

/*
 * Sends a notification to one client; takes over params. A client that does not read is let go
 * later, from the event loop.
 */
void control_notify(struct control_client *client, const char *method, struct json_object *params);

#endif
