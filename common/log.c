/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Log lines: see log.h. */
#include <config.h>

#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "common/text.h"

/* Longer messages are cut: a line is to be read. */
#define LINE_MAX_BYTES 2048

static const struct {
	const char *name;
	int syslog;
} levels[] = {
	[LOG_LEVEL_ERROR] = { "error", LOG_ERR },
	[LOG_LEVEL_WARNING] = { "warning", LOG_WARNING },
	[LOG_LEVEL_NOTICE] = { "notice", LOG_NOTICE },
	[LOG_LEVEL_INFO] = { "info", LOG_INFO },
	[LOG_LEVEL_DEBUG] = { "debug", LOG_DEBUG },
};

/* Set by log_open() before other threads are there. */
static const char *program_name = "ballast";
static enum log_level most_level = LOG_LEVEL_INFO;
static bool to_journal;

/* Whether stderr is connected to the journal ($JOURNAL_STREAM names it). */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	if (!stream || sscanf(stream, "%llu:%llu", &device, &inode) != 2)
		return false;
	if (fstat(STDERR_FILENO, &st) < 0)
		return false;
	return st.st_dev == (dev_t)device && st.st_ino == (ino_t)inode;
}

void log_open(const char *program, enum log_level most)
{
	program_name = program;
	most_level = most;
	to_journal = stderr_is_journal();
}

/* "KEY=value" as a field; value NULL: none. Returns the number of fields added, 0 or 1. */
static int add_field(
	struct iovec *field, char *buf, size_t size, const char *key, const char *value)
{
	int length;

	if (!value)
		return 0;
	length = snprintf(buf, size, "%s=%s", key, value);
	if (length < 0)
		return 0;
	field->iov_base = buf;
	field->iov_len = (size_t)length < size ? (size_t)length : size - 1;
	return 1;
}

static bool send_journal(enum log_level level, const struct log_about *about, const char *message)
{
	char text[LINE_MAX_BYTES + 16], uuid[96], name[320], action[96], id[64], priority[16];
	struct iovec fields[6];
	char number[4];
	int nr = 0;

	snprintf(number, sizeof(number), "%d", levels[level].syslog);
	nr += add_field(&fields[nr], priority, sizeof(priority), "PRIORITY", number);
	nr += add_field(&fields[nr], text, sizeof(text), "MESSAGE", message);
	if (about) {
		nr += add_field(&fields[nr], uuid, sizeof(uuid), "BALLAST_VM_UUID", about->vm_uuid);
		nr += add_field(&fields[nr], name, sizeof(name), "BALLAST_VM_NAME", about->vm_name);
		nr += add_field(
			&fields[nr], action, sizeof(action), "BALLAST_ACTION", about->action);
		nr += add_field(&fields[nr], id, sizeof(id), "MESSAGE_ID", about->message_id);
	}
	return sd_journal_sendv(fields, nr) == 0;
}

void log_write(enum log_level level, const struct log_about *about, const char *format, ...)
{
	char message[LINE_MAX_BYTES], line[LINE_MAX_BYTES];
	int start = 0;
	va_list args;

	if (level > most_level)
		return;
	if (about && about->vm_uuid)
		start = snprintf(message, sizeof(message),
			"%s (%s): ", about->vm_name ? about->vm_name : "a VM", about->vm_uuid);
	if (start < 0 || (size_t)start >= sizeof(message))
		start = 0;
	va_start(args, format);
	if (vsnprintf(message + start, sizeof(message) - (size_t)start, format, args) < 0)
		message[start] = '\0';
	va_end(args);
	text_printable(message, line, sizeof(line));
	if (to_journal && send_journal(level, about, line))
		return;
	fprintf(stderr, "%s: %s: %s\n", program_name, levels[level].name, line);
}
