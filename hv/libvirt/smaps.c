/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of a process in /proc; see smaps.h. */
#include <config.h>

#include "hv/libvirt/smaps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Smaller mappings are no guest's memory: video memory has 16 MiB, firmware less. */
#define MAPPING_LEAST (1u << 20)
/* The smallest that counts as a part of guest memory, of a NUMA node or a memory device. */
#define PART_LEAST (32u << 20)
/* A QEMU with a thousand disks has a few thousand mappings, and few as large as that. */
#define MAPPINGS_MAX 4096
/* The kernel makes one mapping of two that touch: that much more may be in the guest's. */
#define MERGED_MOST (64u << 20)

/* "Name:   123 kB" anywhere in the text. */
static bool field(const char *text, const char *name, uint64_t *ret_bytes)
{
	size_t length = strlen(name);
	const char *line = text;
	char *end;

	while (line && strncmp(line, name, length) != 0) {
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	if (!line)
		return false;
	errno = 0;
	*ret_bytes = strtoull(line + length, &end, 10);
	if (errno || end == line + length || strncmp(end, " kB", 3) != 0 ||
		*ret_bytes > UINT64_MAX / 1024)
		return false;
	*ret_bytes *= 1024;
	return true;
}

int process_parse_status(const char *text, struct process_status *ret_status)
{
	struct process_status status = { 0 };

	if (!field(text, "VmRSS:", &status.resident) || !field(text, "VmSwap:", &status.swapped))
		return -EBADMSG;
	/* Not there before Linux 4.5. */
	if (!field(text, "RssShmem:", &status.shared))
		status.shared = 0;
	*ret_status = status;
	return 0;
}

struct mapping {
	uint64_t size, resident, swapped;
	bool shared;
};

struct mappings {
	struct mapping *all;
	size_t nr;
	bool taking; /* the fields that come are of the last one */
};

/*
 * Guest memory is writable and not executable (the translator's buffer is), and it is anonymous,
 * memfd or a file; the heap and stacks have names in brackets, but so have anonymous mappings with
 * a name: "[anon:...]".
 */
static int take_header(struct mappings *m, const char *line)
{
	uint64_t start, end;
	char perms[5];
	int name_at = -1;
	const char *name;
	bool shared;

	m->taking = false;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*x:%*x %*u %n", &start, &end, perms,
		    &name_at) != 3 ||
		name_at < 0 || end <= start || strlen(perms) != 4)
		return -EBADMSG;
	name = line + name_at;
	shared = perms[3] == 's';
	if (strncmp(perms, "rw-", 3) != 0 || end - start < MAPPING_LEAST || m->nr == MAPPINGS_MAX ||
		(name[0] == '[' && strncmp(name, "[anon", 5) != 0))
		return 0;
	m->all[m->nr++] = (struct mapping){ .size = end - start, .shared = shared };
	m->taking = true;
	return 0;
}

static void take_field(struct mappings *m, const char *line)
{
	struct mapping *last;

	if (!m->taking)
		return;
	last = &m->all[m->nr - 1];
	if (line[0] == 'R')
		field(line, "Rss:", &last->resident);
	else if (line[0] == 'S')
		field(line, "Swap:", &last->swapped);
}

/* Largest first; of equals the one that more is in. */
static int compare(const void *a, const void *b)
{
	const struct mapping *x = a, *y = b;

	if (x->size != y->size)
		return x->size < y->size ? 1 : -1;
	if (x->resident != y->resident)
		return x->resident < y->resident ? 1 : -1;
	return 0;
}

static void add(struct process_guest *guest, const struct mapping *mapping)
{
	guest->size += mapping->size;
	guest->resident += mapping->resident;
	guest->swapped += mapping->swapped;
	guest->shared = guest->shared || mapping->shared;
}

/* The largest that fit, one after another, until they are the domain's memory. */
static bool exact(const struct mappings *m, uint64_t maximum, struct process_guest *ret_guest)
{
	struct process_guest guest = { 0 };

	for (size_t i = 0; i < m->nr && guest.size < maximum; i++)
		if (m->all[i].size <= maximum - guest.size &&
			(m->all[i].size >= PART_LEAST || m->all[i].size == maximum))
			add(&guest, &m->all[i]);
	if (guest.size != maximum)
		return false;
	*ret_guest = guest;
	return true;
}

/* One that is a little larger, the smallest of those. */
static bool merged(const struct mappings *m, uint64_t maximum, struct process_guest *ret_guest)
{
	const struct mapping *found = NULL;
	struct process_guest guest = { 0 };

	for (size_t i = 0; i < m->nr && m->all[i].size >= maximum; i++)
		if (m->all[i].size - maximum <= MERGED_MOST)
			found = &m->all[i];
	if (!found)
		return false;
	add(&guest, found);
	*ret_guest = guest;
	return true;
}

static int read_mappings(FILE *file, struct mappings *m)
{
	char line[512];
	bool whole = true;
	int r;

	while (fgets(line, sizeof(line), file)) {
		bool begins = whole;

		whole = strchr(line, '\n');
		if (!begins)
			continue; /* the rest of a long file name */
		if (line[0] >= 'A' && line[0] <= 'Z') {
			take_field(m, line);
			continue;
		}
		r = take_header(m, line);
		if (r < 0)
			return r;
	}
	return ferror(file) ? -EIO : 0;
}

int process_read_smaps(int fd, uint64_t maximum, struct process_guest *ret_guest)
{
	struct mappings m = { 0 };
	FILE *file;
	int r;

	file = fdopen(fd, "r");
	if (!file) {
		r = -errno;
		close(fd);
		return r;
	}
	m.all = calloc(MAPPINGS_MAX, sizeof(*m.all));
	if (!m.all) {
		r = -ENOMEM;
		goto out;
	}
	errno = 0;
	r = read_mappings(file, &m);
	if (r == -EIO && errno)
		r = -errno;
	if (r < 0)
		goto out;
	qsort(m.all, m.nr, sizeof(*m.all), compare);
	r = maximum > 0 && (exact(&m, maximum, ret_guest) || merged(&m, maximum, ret_guest))
		    ? 0
		    : -ENODATA;
out:
	free(m.all);
	fclose(file);
	return r;
}
