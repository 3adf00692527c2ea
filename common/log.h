/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * log: lines for the operator. To the journal, with fields, where stderr is the journal; else to
 * stderr as text. Only the shells of programs call it; library code tells its caller instead.
 *
 * Any thread; a line is written whole. Never fails: a line that cannot be written is lost.
 */
#ifndef BALLAST_COMMON_LOG_H
#define BALLAST_COMMON_LOG_H

#include <stdbool.h>

enum log_level {
	LOG_LEVEL_ERROR,   /* something that was asked for does not happen */
	LOG_LEVEL_WARNING, /* it goes on, but somebody should look */
	LOG_LEVEL_NOTICE,  /* start, end, what changes how it works */
	LOG_LEVEL_INFO,	   /* every action */
	LOG_LEVEL_DEBUG,
};

/* What a line is about, each NULL where it is not; in the journal BALLAST_VM_UUID and so on. */
struct log_about {
	const char *vm_uuid, *vm_name;
	const char *action;
	const char *message_id; /* its kind: MESSAGE_ID, 32 hexadecimal digits */
};

/* Call once at start. program: what lines to stderr begin with; it is kept, not copied. */
void log_open(const char *program, enum log_level most);

/* about may be NULL. What a terminal must not see is written as text.h has it. */
void log_write(enum log_level level, const struct log_about *about, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
