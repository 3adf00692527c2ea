/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pool: see pool.h. Called by backends; what is read is judged by the engine. */
#include <config.h>

#include "hv/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The file has 1.5 KiB on today's kernels; what stands behind this is not looked at. */
#define MEMINFO_MAX (64 * 1024)

/* The file has some 10 KiB; both figures stand in its first half. */
#define ARCSTATS_MAX (32 * 1024)

/* No host has 2^60 bytes; larger figures are -1 in disguise, and would wrap in sums. */
#define MEMINFO_KIB_MAX (UINT64_C(1) << 50)

enum { MEM_TOTAL, MEM_AVAILABLE, HUGE_TOTAL, HUGE_SIZE, NR_LINES };

static const struct {
	const char *name;
	bool count; /* pages, without a unit; else KiB */
} lines[NR_LINES] = {
	[MEM_TOTAL] = { "MemTotal", false },
	[MEM_AVAILABLE] = { "MemAvailable", false },
	[HUGE_TOTAL] = { "HugePages_Total", true },
	[HUGE_SIZE] = { "Hugepagesize", false },
};

struct meminfo {
	bool known[NR_LINES];
	uint64_t values[NR_LINES];
};

/* Reads at most size bytes. */
static int read_file(const char *path, char *buf, size_t size, size_t *ret_length)
{
	size_t length = 0;
	int fd, r = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (length < size) {
		ssize_t n = read(fd, buf + length, size - length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			r = -errno;
			goto out;
		}
		if (n == 0)
			break;
		length += (size_t)n;
	}
	*ret_length = length;
out:
	close(fd);
	return r;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* "  16384 kB": the rest of a line behind its colon. */
static int parse_value(const char *p, const char *end, bool count, uint64_t *ret_value)
{
	uint64_t value = 0;
	const char *digits;

	while (p < end && is_blank(*p))
		p++;
	for (digits = p; p < end && *p >= '0' && *p <= '9'; p++) {
		value = value * 10 + (uint64_t)(*p - '0');
		if (value > MEMINFO_KIB_MAX)
			return -EBADMSG;
	}
	if (p == digits)
		return -EBADMSG;
	while (p < end && is_blank(*p))
		p++;
	/* Where a size has no unit it is KiB all the same: the file knows no other. */
	if (!count && end - p >= 2 && !memcmp(p, "kB", 2))
		p += 2;
	while (p < end && is_blank(*p))
		p++;
	if (p != end)
		return -EBADMSG;
	*ret_value = value;
	return 0;
}

static int parse_line(const char *line, const char *end, struct meminfo *info)
{
	const char *colon = memchr(line, ':', (size_t)(end - line));

	if (!colon)
		return 0;
	for (size_t i = 0; i < NR_LINES; i++) {
		size_t length = strlen(lines[i].name);

		if ((size_t)(colon - line) != length || memcmp(line, lines[i].name, length))
			continue;
		if (info->known[i])
			return -EBADMSG;
		info->known[i] = true;
		return parse_value(colon + 1, end, lines[i].count, &info->values[i]);
	}
	return 0;
}

/* What the lines together say; see pool.h for what is absurd. */
static int judge(const struct meminfo *info, struct hv_host *ret_host)
{
	uint64_t total = info->values[MEM_TOTAL], available = info->values[MEM_AVAILABLE];
	uint64_t nr_huge = info->values[HUGE_TOTAL], huge = info->values[HUGE_SIZE];

	if (!info->known[MEM_TOTAL] || !info->known[MEM_AVAILABLE])
		return -EBADMSG;
	if (nr_huge > 0) {
		/* A kernel without huge pages has neither line; one without their size is garbled.
		 */
		if (huge == 0 || nr_huge > total / huge)
			return -EBADMSG;
		total -= nr_huge * huge;
	}
	if (total == 0 || available > total)
		return -EBADMSG;
	*ret_host = (struct hv_host){
		.known = true, .total = total * 1024, .available = available * 1024
	};
	return 0;
}

int pool_read_meminfo(const char *path, struct hv_host *ret_host)
{
	char buf[MEMINFO_MAX];
	struct meminfo info = { 0 };
	const char *line = buf, *end;
	size_t length = 0;
	int r;

	r = read_file(path, buf, sizeof(buf), &length);
	if (r < 0)
		return r;
	end = buf + length;
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));

		if (!newline && length == sizeof(buf))
			break; /* cut off by us */
		if (!newline)
			newline = end;
		r = parse_line(line, newline, &info);
		if (r < 0)
			return r;
		line = newline + 1;
	}
	return judge(&info, ret_host);
}

/* "size    4    1073741824": name, type, value. False: not there, or no number. */
static bool arc_figure(const char *text, const char *name, uint64_t *ret_value)
{
	size_t length = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, length) && is_blank(line[length]))
			return sscanf(line + length, " %*u %" SCNu64, ret_value) == 1 &&
			       *ret_value / 1024 <= MEMINFO_KIB_MAX;
	}
	return false;
}

void pool_add_arc(const char *path, struct hv_host *host)
{
	char text[ARCSTATS_MAX] = { 0 };
	uint64_t size, least, most = host->total - host->available;
	size_t length = 0;

	if (read_file(path, text, sizeof(text) - 1, &length) < 0)
		return;
	if (!arc_figure(text, "size", &size) || !arc_figure(text, "c_min", &least) || size <= least)
		return;
	host->available += size - least < most ? size - least : most;
}

int pool_open_psi(const char *path, uint64_t stall_us, uint64_t window_us, int *ret_fd)
{
	char text[64];
	ssize_t n;
	int fd, r, length;

	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;

	/* A kernel that was started without psi=1 has the file and refuses to read it. */
	n = pread(fd, text, 5, 0);
	if (n < 0) {
		r = -errno;
		goto fail;
	}
	if (n < 5 || memcmp(text, "some ", 5)) {
		r = -EBADMSG;
		goto fail;
	}

	/* The terminating 0 belongs to the trigger. */
	length = snprintf(text, sizeof(text), "some %" PRIu64 " %" PRIu64, stall_us, window_us) + 1;
	n = write(fd, text, (size_t)length);
	if (n != length) {
		r = n < 0 ? -errno : -EIO;
		goto fail;
	}
	*ret_fd = fd;
	return 0;
fail:
	close(fd);
	return r;
}
