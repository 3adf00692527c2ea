/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qga_text: what is said to QEMU's guest agent, and what it answers.
 *
 * JSON, a command and an answer at a time; files go through guest-file-open, -read, -write, -flush
 * and -close, their contents in base64. Answers are the guest's word and may be anything: of none
 * more than QGA_ANSWER_MAX bytes are looked at, and one that is not what was asked for is refused
 * as a whole.
 *
 * Pure functions; any thread.
 */
#ifndef BALLAST_HV_LIBVIRT_QGA_TEXT_H
#define BALLAST_HV_LIBVIRT_QGA_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file of QGA_FILE bytes has 22 KiB in base64; the list of all commands some 10 KiB. */
#define QGA_ANSWER_MAX 65536
/* Of a file, so much is read: /proc/vmstat has some 5 KiB. */
#define QGA_FILE 16384
/* A command's text, and what one writes into a file. */
#define QGA_COMMAND 512
#define QGA_WRITE   128

#define QGA_TEXT 32 /* bytes of a version, with the terminating 0 */

/* Commands that are used; bits. */
enum qga_can {
	QGA_OPEN = 1u << 0,
	QGA_READ = 1u << 1,
	QGA_CLOSE = 1u << 2,
	QGA_WRITES = 1u << 3,
	QGA_FLUSH = 1u << 4,
};

struct qga_info {
	char version[QGA_TEXT]; /* printable ASCII */
	unsigned int can;	/* enum qga_can: those that it has, and may carry out */
};

/* The first of those bits by its command's name, "guest-file-open". */
const char *qga_command_name(unsigned int can);

/* text has QGA_COMMAND bytes. path and what is written: plain ASCII without quotes, ours. */
void qga_ask_info(char *text);
void qga_ask_open(char *text, const char *path, const char *mode);
void qga_ask_read(char *text, int64_t handle);
void qga_ask_write(char *text, int64_t handle, const char *what);
void qga_ask_flush(char *text, int64_t handle);
void qga_ask_close(char *text, int64_t handle);

/* 0; -EBADMSG: it is no such answer; -E2BIG: it is too long; -ENOMEM. */
int qga_read_info(const char *answer, struct qga_info *ret_info);
int qga_read_handle(const char *answer, int64_t *ret_handle);
/* data has QGA_FILE + 1 bytes, and ends with a 0; after a failure it may hold anything. */
int qga_read_data(const char *answer, char *ret_data);
/* That it was done. */
int qga_read_done(const char *answer);

#endif
