/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What QEMU's guest agent answers, as each of the answers that it may be asked for, and what is
 * then read out of a file's contents.
 */
#include <config.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest-agent/linux_text.h"
#include "hv/libvirt/qga_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int r)
{
	if (r != 0 && r != -EBADMSG && r != -E2BIG)
		abort();
}

static void read_contents(const char *text)
{
	struct agent_guest guest = { 0 };

	if (linux_take_meminfo(text, &guest) == 0 &&
		(guest.total == 0 || guest.total > PROTOCOL_NUMBER_MAX ||
			guest.available > guest.total || guest.inactive_file > PROTOCOL_NUMBER_MAX))
		abort();
	linux_take_vmstat(text, 65536, &guest);
	linux_take_pressure(text, &guest);
	if (guest.refaults > PROTOCOL_NUMBER_MAX || guest.swapins > PROTOCOL_NUMBER_MAX ||
		linux_restores(text, 65536) > PROTOCOL_NUMBER_MAX ||
		linux_stolen(text, 65536) > PROTOCOL_NUMBER_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char contents[QGA_FILE + 1];
	char *text = malloc(size + 1);
	struct qga_info info = { .can = 0 };
	int64_t handle;
	int r;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	check(qga_read_handle(text, &handle));
	check(qga_read_done(text));
	r = qga_read_info(text, &info);
	check(r);
	if (r == 0 && strnlen(info.version, QGA_TEXT) == QGA_TEXT)
		abort();
	memset(contents, 'x', sizeof(contents));
	r = qga_read_data(text, contents);
	check(r);
	if (r == 0)
		read_contents(contents);
	read_contents(text);
	free(text);
	return 0;
}
