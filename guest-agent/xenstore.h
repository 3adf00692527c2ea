/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xenstore: the way to the host in a Linux guest of Xen: the keys that the host made for it (names
 * in common/protocol.h), through the kernel's xenbus device, which speaks xenstore's own protocol.
 *
 * What the host says is read when a watch tells that it changed, each message once. Messages to it
 * go into the guest's keys in turn; one that xenstored has not taken yet is not waited for. One
 * request at a time is with the kernel: until it has passed one on, the device keeps what it says
 * where the next one is written. No allocation; one thread. A message of xenstored's that cannot be
 * one ends the way.
 */
#ifndef BALLAST_GUEST_AGENT_XENSTORE_H
#define BALLAST_GUEST_AGENT_XENSTORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/protocol.h"

/* xenstore's limit for what follows the header of a message. */
#define XENSTORE_PAYLOAD 4096
#define XENSTORE_HEADER	 16
#define XENSTORE_NUMBER	 24

struct xenstore {
	int fd;
	uint32_t out;		     /* type of the request that is not answered; 0: none */
	bool changed;		     /* the host's key is to be read */
	unsigned int key;	     /* the next message's */
	unsigned int first, waiting; /* messages that are not answered, from first on */
	struct {
		size_t length;
		char text[PROTOCOL_MESSAGE_MAX + 1];
	} messages[PROTOCOL_STORE_KEYS];
	char number[XENSTORE_NUMBER]; /* of the host's last message; "": none */
	size_t length, taken;	      /* of data: what is there, what is done with */
	char data[XENSTORE_HEADER + XENSTORE_PAYLOAD];
	char text[XENSTORE_PAYLOAD + 1];
};

/* On the device that this kernel has. -ENOENT: none; this is no guest of Xen. */
int xenstore_open(struct xenstore *store);
/* On a descriptor that does not block, which stays the caller's. */
int xenstore_start(struct xenstore *store, int fd);

/*
 * 1: *ret_text is what the host said, until the next call; 0: nothing now; -ENOTCONN: the host has
 * no key for it now, which is waited for; another: to be closed.
 */
int xenstore_receive(struct xenstore *store, const char **ret_text, size_t *ret_length);

/* All of it, or negative: what is not taken up is not sent. */
int xenstore_send(struct xenstore *store, const char *text, size_t length);

#endif
