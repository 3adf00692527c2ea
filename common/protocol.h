/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * protocol: what a host and an agent in a guest say to each other (docs/protocol.md).
 *
 * A message is one JSON object on one line of at most PROTOCOL_MESSAGE_MAX bytes. Amounts are
 * bytes and whole numbers. Both sides read what the other may have made up: every length and count
 * is bounded here, a field that is not known is passed over, and a message that has a wrong one is
 * refused as a whole. Text is printable ASCII without quotes: what is not becomes '?'.
 *
 * Freestanding: no allocation, no I/O, no library but <string.h>. Pure functions; any thread.
 */
#ifndef BALLAST_COMMON_PROTOCOL_H
#define BALLAST_COMMON_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* xenstore's limit for a value, less what it needs itself; without the newline. */
#define PROTOCOL_MESSAGE_MAX 1900
/* What is spoken here. */
#define PROTOCOL_OLDEST 1
#define PROTOCOL_NEWEST 1
/* The largest number: what any JSON library reads into a signed integer. */
#define PROTOCOL_NUMBER_MAX ((uint64_t)INT64_MAX)
#define PROTOCOL_TEXT	    48 /* bytes of a text, with the terminating 0 */
#define PROTOCOL_GROUPS	    8  /* in a report */

/* The name of the port on which they talk. */
#define PROTOCOL_PORT "org.ballast.agent.0"

/*
 * Or, on Xen, the keys in which they do, below the path of the guest's domain: a message of the
 * host's is "NUMBER\nMESSAGE\n" in one key, those of the agent go into its keys in turn. More than
 * one, for what is not read yet must not be written over.
 */
#define PROTOCOL_STORE	     "ballast"
#define PROTOCOL_STORE_HOST  "ballast/host"
#define PROTOCOL_STORE_GUEST "ballast/guest"
#define PROTOCOL_STORE_KEYS  4 /* "ballast/guest/0" and so on */

enum protocol_type {
	PROTOCOL_HELLO,	  /* either side: versions; an agent's says what it can do */
	PROTOCOL_REPORT,  /* agent: what the guest has, and what it uses */
	PROTOCOL_RECLAIM, /* host: free so many bytes that nobody uses */
	PROTOCOL_STOP,	  /* host: end that request now */
	PROTOCOL_DONE,	  /* agent: what a request brought, and why not all of it */
	PROTOCOL_ERROR,	  /* either side: a message was not understood */
	PROTOCOL_TYPES,
};

/* What an agent can do; names in protocol.c. */
enum protocol_can {
	PROTOCOL_CAN_LISTS = 1u << 0,	 /* tells active and inactive */
	PROTOCOL_CAN_RECLAIM = 1u << 1,	 /* frees memory of groups */
	PROTOCOL_CAN_PRESSURE = 1u << 2, /* tells how long tasks waited for memory (PSI) */
	PROTOCOL_CAN_GROUPS = 1u << 3,	 /* tells of groups by themselves */
	PROTOCOL_CAN_PROTECT = 1u << 4,	 /* protects groups whose inactive list is low */
	PROTOCOL_CAN_ANON = 1u << 5,	 /* takes anonymous pages only when it may */
	/* Its kernel ages by generations, and its lists mean nothing: */
	PROTOCOL_CAN_GENERATIONS = 1u << 6, /* tells what is cold by their sizes */
	PROTOCOL_CAN_PROBES = 1u << 7,	    /* finds what is cold by what is read again */
};
#define PROTOCOL_CAN_ALL ((1u << 8) - 1)

/* Bits of protocol_message.known: fields that were told. */
enum protocol_field {
	PROTOCOL_ID = 1u << 0,
	PROTOCOL_BYTES = 1u << 1,
	PROTOCOL_DEADLINE = 1u << 2,
	PROTOCOL_ANON = 1u << 3,
	PROTOCOL_VERSIONS_OLDEST = 1u << 4,
	PROTOCOL_VERSIONS_NEWEST = 1u << 5,
	PROTOCOL_CAN = 1u << 6,
	PROTOCOL_SOFTWARE = 1u << 7,
	PROTOCOL_WHY = 1u << 8,
	PROTOCOL_ACTIVE_ANON = 1u << 9,
	PROTOCOL_INACTIVE_ANON = 1u << 10,
	PROTOCOL_ACTIVE_FILE = 1u << 11,
	PROTOCOL_INACTIVE_FILE = 1u << 12,
	PROTOCOL_SWAP_FREE = 1u << 13,
	PROTOCOL_TOTAL = 1u << 14,
	PROTOCOL_FREE = 1u << 15,
	PROTOCOL_AVAILABLE = 1u << 16,
	PROTOCOL_REFAULTS = 1u << 17,
	PROTOCOL_SWAPINS = 1u << 18,
	PROTOCOL_PSI_SOME = 1u << 19,
	PROTOCOL_PSI_FULL = 1u << 20,
	PROTOCOL_FLOOR = 1u << 21,
	PROTOCOL_WORKINGSET = 1u << 22,
	PROTOCOL_NEED = 1u << 23,
	PROTOCOL_ESTIMATED = 1u << 24,
	PROTOCOL_ACTIVE = 1u << 25,
	PROTOCOL_COLD_FILE = 1u << 26,
	PROTOCOL_COLD_ANON = 1u << 27,
};
#define PROTOCOL_LISTS                                                                             \
	(PROTOCOL_ACTIVE_ANON | PROTOCOL_INACTIVE_ANON | PROTOCOL_ACTIVE_FILE |                    \
		PROTOCOL_INACTIVE_FILE)

/* In place of the lists, where a kernel ages by generations. */
#define PROTOCOL_COLD (PROTOCOL_COLD_FILE | PROTOCOL_COLD_ANON)

/* Of a group: its busiest are told. All five are told or the group is not. */
struct protocol_group {
	char name[PROTOCOL_TEXT];
	uint64_t active, inactive; /* bytes */
	uint64_t refaults;	   /* bytes a second */
	uint64_t psi;		   /* thousandths of the time that some task waited */
};

struct protocol_message {
	enum protocol_type type;
	uint32_t known; /* enum protocol_field */
	uint64_t id;	/* of a request; never 0 */
	uint64_t bytes;
	uint64_t deadline_ms; /* from when it is read */
	uint64_t anon;	      /* 1: the request may take anonymous pages, as far as there is swap */
	uint64_t active;      /* 1: and active pages, where nothing inactive is left */
	uint64_t oldest, newest; /* versions */
	uint64_t can;		 /* enum protocol_can */
	char software[PROTOCOL_TEXT];
	char why[PROTOCOL_TEXT];
	/* bytes, of the guest */
	uint64_t active_anon, inactive_anon, active_file, inactive_file, swap_free;
	uint64_t cold_file, cold_anon; /* of what the agent can free */
	uint64_t total, free, available;
	uint64_t refaults, swapins;  /* bytes a second, lately */
	uint64_t psi_some, psi_full; /* thousandths, of the guest, since it was last looked at */
	uint64_t floor;		     /* what it cannot live without */
	uint64_t workingset;	     /* what it uses, corrected by what it read again */
	uint64_t need;		     /* bytes that it lacks now; 0: none */
	uint64_t estimated;	     /* 1: available is an estimate of the agent's */
	unsigned int nr_groups;
	struct protocol_group groups[PROTOCOL_GROUPS];
};

/*
 * line has length bytes, no newline. 0; -1: it is no message, and *ret_why says why: a static text.
 * *ret_message is untouched then.
 */
int protocol_parse(const char *line, size_t length, struct protocol_message *ret_message,
	const char **ret_why);

/*
 * The message with its newline; text has PROTOCOL_MESSAGE_MAX + 2 bytes. Groups are left out from
 * the end where they do not fit. Returns its length.
 */
size_t protocol_format(const struct protocol_message *message, char *text);

/* A text of a message: what it may hold, cut where it is too long. */
void protocol_text(char *to, const char *from);

/* ---- lines from bytes ---- */

struct protocol_lines {
	size_t length;
	bool told;     /* the line was taken: the next byte begins another */
	bool overlong; /* what comes up to the next newline is passed over */
	char line[PROTOCOL_MESSAGE_MAX];
};

enum protocol_line {
	PROTOCOL_LINE_NONE, /* all was taken, and none is complete */
	PROTOCOL_LINE,	    /* lines->line has lines->length bytes; empty ones are not told */
	PROTOCOL_LINE_LONG, /* one that was too long has ended, and was passed over */
};

/* Takes bytes from *data up to the end of a line; *data and *size move on. */
enum protocol_line protocol_take(struct protocol_lines *lines, const char **data, size_t *size);

#endif
