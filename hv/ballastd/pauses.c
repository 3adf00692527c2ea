/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pause file, see pauses.h. Lines: a heading with the version; "all", or a UUID each; "end",
 * without which it was cut off.
 */
#include <config.h>

#include "hv/ballastd/pauses.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADING "ballast-paused 1"
/* Every VM that there may be, by UUID. */
#define FILE_MAX (65536 * HV_UUID_TEXT + 64)

static int path_of(const char *run_dir, const char *suffix, char **ret_path)
{
	return asprintf(ret_path, "%s/" PAUSES_FILE "%s", run_dir, suffix) < 0 ? -ENOMEM : 0;
}

/* ---- reading ---- */

/* Lines one after another, the 0 in place of the line's end. False: the last was cut off. */
static bool next_line(char **text, char **ret_line)
{
	char *end = *text ? strchr(*text, '\n') : NULL;

	if (!end)
		return false;
	*end = '\0';
	*ret_line = *text;
	*text = end + 1;
	return true;
}

static int parse(char *text, struct core *core)
{
	struct hv_uuid uuid;
	char *line;
	int r;

	if (!next_line(&text, &line) || strcmp(line, HEADING) != 0)
		return -EBADMSG;
	while (next_line(&text, &line)) {
		if (!strcmp(line, "end"))
			return *text ? -EBADMSG : 0;
		if (!strcmp(line, "all")) {
			core_pause(core, true);
			continue;
		}
		r = hv_uuid_parse(line, &uuid);
		if (r == 0)
			r = core_pause_vm(core, &uuid, true);
		if (r < 0)
			return r == -ENOMEM ? r : -EBADMSG;
	}
	return -EBADMSG;
}

static int read_all(const char *path, char **ret_text)
{
	FILE *file = fopen(path, "re");
	char *text;
	size_t length;
	int r = 0;

	if (!file)
		return -errno;
	text = malloc(FILE_MAX + 1);
	if (!text) {
		r = -ENOMEM;
		goto out;
	}
	length = fread(text, 1, FILE_MAX + 1, file);
	if (ferror(file))
		r = -EIO;
	else if (length > FILE_MAX || memchr(text, '\0', length))
		r = -EBADMSG;
	if (r < 0) {
		free(text);
		goto out;
	}
	text[length] = '\0';
	*ret_text = text;
out:
	fclose(file);
	return r;
}

int pauses_load(const char *run_dir, struct core *core, char *why, size_t size)
{
	char *path = NULL, *text = NULL;
	int r;

	r = path_of(run_dir, "", &path);
	if (r == 0)
		r = read_all(path, &text);
	if (r == 0)
		r = parse(text, core);
	if (r == -ENOENT)
		r = 0;
	if (r < 0) {
		core_pause(core, true);
		snprintf(why, size, "%s %s: %s", path ? path : PAUSES_FILE,
			r == -EBADMSG ? "is no pause file" : "cannot be read",
			r == -EBADMSG ? "it is damaged or of another version" : strerror(-r));
	}
	free(text);
	free(path);
	return r;
}

/* ---- writing ---- */

static int write_file(const char *path, const struct core *core)
{
	const struct hv_uuid *uuids;
	size_t nr = core_paused_vms(core, &uuids);
	char text[HV_UUID_TEXT];
	FILE *file = fopen(path, "we");
	int r = 0;

	if (!file)
		return -errno;
	fputs(HEADING "\n", file);
	if (core_paused(core))
		fputs("all\n", file);
	for (size_t i = 0; i < nr; i++) {
		hv_uuid_format(&uuids[i], text);
		fprintf(file, "%s\n", text);
	}
	fputs("end\n", file);
	if (fflush(file) == EOF || ferror(file) || fsync(fileno(file)) < 0)
		r = errno ? -errno : -EIO;
	if (fclose(file) == EOF && r == 0)
		r = -errno;
	return r;
}

int pauses_save(const char *run_dir, const struct core *core, char *why, size_t size)
{
	char *path = NULL, *fresh = NULL;
	const struct hv_uuid *uuids;
	int r;

	r = path_of(run_dir, "", &path);
	if (r == 0)
		r = path_of(run_dir, ".new", &fresh);
	if (r < 0)
		goto out;
	if (!core_paused(core) && core_paused_vms(core, &uuids) == 0) {
		if (unlink(path) < 0 && errno != ENOENT)
			r = -errno;
		goto out;
	}
	r = write_file(fresh, core);
	if (r == 0 && rename(fresh, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(fresh);
out:
	if (r < 0)
		snprintf(why, size, "%s cannot be written: %s", path ? path : PAUSES_FILE,
			strerror(-r));
	free(fresh);
	free(path);
	return r;
}
