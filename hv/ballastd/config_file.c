/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of configuration files: see config_file.h. */
#include <config.h>

#include "hv/ballastd/config_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/text.h"

void config_errors_add(
	struct config_errors *errors, const char *file, unsigned int line, const char *format, ...)
{
	char what[512], shown[512], place[512] = "";
	char *text = NULL;
	va_list args;

	if (errors->nr++ >= CONFIG_ERRORS_MAX)
		return;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (file && line > 0)
		snprintf(place, sizeof(place), "%s:%u: ", file, line);
	else if (file)
		snprintf(place, sizeof(place), "%s: ", file);
	/* A file may say anything, and what it says ends on a terminal. */
	text_printable(what, shown, sizeof(shown));
	if (asprintf(&text, "%s%s%s\n", errors->text ? errors->text : "", place, shown) < 0) {
		errors->no_memory = true;
		return;
	}
	free(errors->text);
	errors->text = text;
}

void config_errors_clear(struct config_errors *errors)
{
	free(errors->text);
	*errors = (struct config_errors){ 0 };
}

int config_errors_finish(struct config_errors *errors, char **ret_errors)
{
	if (errors->no_memory) {
		config_errors_clear(errors);
		return -ENOMEM;
	}
	if (errors->nr == 0)
		return 0;
	if (errors->nr > CONFIG_ERRORS_MAX) {
		char *text = NULL;

		if (asprintf(&text, "%sand %u more mistakes, which are not shown\n", errors->text,
			    errors->nr - CONFIG_ERRORS_MAX) < 0) {
			config_errors_clear(errors);
			return -ENOMEM;
		}
		free(errors->text);
		errors->text = text;
	}
	*ret_errors = errors->text;
	*errors = (struct config_errors){ 0 };
	return -EINVAL;
}

/* ---- the scan ---- */

static const char *bad_character(const char *line, size_t length)
{
	for (size_t i = 0; i < length;) {
		uint32_t c;
		size_t n = text_character(line + i, length - i, &c);

		if (line[i] == '\0')
			return "has a NUL byte";
		if (n == 0)
			return "is not UTF-8";
		i += n;
	}
	return NULL;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_comment(char c)
{
	return c == '#' || c == ';';
}

/* What is wrong with a section's line, "[name]"; NULL: nothing. */
static const char *bad_section(const char *line, size_t length)
{
	const char *end = memchr(line, ']', length);
	size_t i;

	if (!end)
		return "is no section: the ] is missing";
	if (end - line - 1 > CONFIG_NAME_MAX)
		return "has a section's name of more than 49 bytes";
	for (i = (size_t)(end - line) + 1; i < length && is_space(line[i]); i++)
		;
	if (i < length && !is_comment(line[i]))
		return "has something behind the ]";
	return NULL;
}

/* What is wrong with a line, in words after "this line"; NULL: nothing. */
static const char *bad_line(const char *line, size_t length)
{
	size_t start = 0, name, equals = 0;
	const char *why = bad_character(line, length);

	if (why)
		return why;
	if (length > CONFIG_LINE_MAX)
		return "has more than 199 bytes";
	while (start < length && is_space(line[start]))
		start++;
	if (start == length || is_comment(line[start]))
		return NULL;
	if (start > 0)
		return "is indented; sections and keys begin a line";
	if (line[0] == '[')
		return bad_section(line, length);
	while (equals < length && line[equals] != '=')
		equals++;
	if (equals == length)
		return "is no KEY = VALUE";
	for (name = equals; name > 0 && is_space(line[name - 1]); name--)
		;
	if (name > CONFIG_NAME_MAX)
		return "has a name of more than 49 bytes";
	if (memchr(line, ':', name))
		return "is no KEY = VALUE";
	return NULL;
}

/* The end of the line at text. */
static size_t line_length(const char *text, size_t length)
{
	const char *end = memchr(text, '\n', length);

	return end ? (size_t)(end - text) : length;
}

static bool scan(const char *name, const char *text, size_t length, struct config_errors *errors)
{
	unsigned int before = errors->nr, number = 0;

	while (length > 0) {
		size_t line = line_length(text, length);
		const char *why = bad_line(text, line);

		number++;
		if (why)
			config_errors_add(errors, name, number, "this line %s", why);
		text += line < length ? line + 1 : line;
		length -= line < length ? line + 1 : line;
	}
	return errors->nr == before;
}

/* ---- inih, line by line ---- */

struct cursor {
	const char *text;
	size_t length;
	unsigned int line;
	const struct config_reader *reader;
};

/* As fgets() for inih: one line, without its end. The scan saw to it that it fits. */
static char *next_line(char *buf, int size, void *stream)
{
	struct cursor *cursor = stream;
	size_t length;

	if (cursor->length == 0)
		return NULL;
	length = line_length(cursor->text, cursor->length);
	snprintf(buf, (size_t)size, "%.*s", (int)length, cursor->text);
	cursor->line++;
	if (length < cursor->length)
		length++;
	cursor->text += length;
	cursor->length -= length;
	if (buf[0] == '[') {
		char name[CONFIG_NAME_MAX + 1];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(buf + 1, "]"), buf + 1);
		cursor->reader->section(cursor->reader->ctx, cursor->line, name);
	}
	return buf;
}

static int take_key(void *user, const char *section, const char *key, const char *value)
{
	struct cursor *cursor = user;

	cursor->reader->key(cursor->reader->ctx, cursor->line, key, value);
	return 1;
}

void config_read_text(const char *name, const char *text, size_t length,
	const struct config_reader *reader, struct config_errors *errors)
{
	struct cursor cursor = { text, length, 0, reader };
	int r;

	if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		cursor.text += 3; /* a byte order mark */
		cursor.length -= 3;
	}
	if (!scan(name, cursor.text, cursor.length, errors))
		return;
	r = ini_parse_stream(next_line, &cursor, take_key, &cursor);
	if (r > 0)
		config_errors_add(errors, name, (unsigned int)r, "this line cannot be read");
	else if (r < 0)
		errors->no_memory = true;
}

/* ---- files ---- */

/* The whole file as text; 0 or a negative errno. -EFBIG: too large; -EINVAL: no regular file. */
static int load(const char *name, char **ret_text, size_t *ret_length)
{
	char *text = NULL;
	size_t length = 0;
	struct stat st;
	int fd, r = 0;

	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		r = -errno;
		goto out;
	}
	/* /dev/null stands for an empty file: a link to it switches another file off. */
	if (!S_ISREG(st.st_mode) && !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))) {
		r = -EINVAL;
		goto out;
	}
	text = malloc(CONFIG_FILE_MAX + 1);
	if (!text) {
		r = -ENOMEM;
		goto out;
	}
	while (length <= CONFIG_FILE_MAX) {
		ssize_t n = read(fd, text + length, CONFIG_FILE_MAX + 1 - length);

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
	if (length > CONFIG_FILE_MAX) {
		r = -EFBIG;
		goto out;
	}
	*ret_text = text;
	*ret_length = length;
	text = NULL;
out:
	free(text);
	close(fd);
	return r;
}

/* Whether there is something of that name, be it a link that leads nowhere. */
static bool is_there(const char *name)
{
	struct stat st;

	return lstat(name, &st) == 0;
}

void config_read_file(const char *name, bool optional, const struct config_reader *reader,
	struct config_errors *errors)
{
	char *text = NULL;
	size_t length = 0;
	int r = load(name, &text, &length);

	if (r == -ENOENT && optional && !is_there(name))
		return;
	if (r == -ENOENT && is_there(name))
		config_errors_add(errors, name, 0,
			"is a link to a file that is not there; take it away, or link it to "
			"/dev/null to switch a file off");
	else if (r == -ENOMEM)
		errors->no_memory = true;
	else if (r == -EINVAL)
		config_errors_add(errors, name, 0, "is no regular file");
	else if (r == -EFBIG)
		config_errors_add(errors, name, 0, "is larger than 1 MiB");
	else if (r < 0)
		config_errors_add(errors, name, 0, "cannot be read: %s", strerror(-r));
	else
		config_read_text(name, text, length, reader, errors);
	free(text);
}

static bool is_config_name(const char *name)
{
	size_t length = strlen(name);

	return name[0] != '.' && length > 5 && !strcmp(name + length - 5, ".conf");
}

static const char *base_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

static bool is_listed(char **files, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(base_name(files[i]), name))
			return true;
	return false;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(base_name(*(char *const *)a), base_name(*(char *const *)b));
}

static int list_folder(const char *folder, struct config_errors *errors, char **files, size_t *nr)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int r = 0;

	if (!dir && errno == ENOENT && !is_there(folder))
		return 0;
	if (!dir) {
		config_errors_add(
			errors, folder, 0, "cannot be read as a folder: %s", strerror(errno));
		return 0;
	}
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		if (!is_config_name(entry->d_name) || is_listed(files, *nr, entry->d_name))
			continue;
		if (*nr == CONFIG_FILES_MAX) {
			config_errors_add(errors, folder, 0, "there are more than %d files",
				CONFIG_FILES_MAX);
			break;
		}
		if (asprintf(&files[*nr], "%s/%s", folder, entry->d_name) < 0)
			r = -ENOMEM;
		else
			(*nr)++;
	}
	if (r == 0 && !entry && errno != 0)
		config_errors_add(errors, folder, 0, "cannot be listed: %s", strerror(errno));
	closedir(dir);
	return r;
}

int config_list_files(
	const char *const *folders, struct config_errors *errors, char ***ret_files, size_t *ret_nr)
{
	char **files = calloc(CONFIG_FILES_MAX, sizeof(*files));
	size_t nr = 0;
	int r = 0;

	if (!files)
		return -ENOMEM;
	for (; folders && *folders && r == 0; folders++)
		r = list_folder(*folders, errors, files, &nr);
	if (r < 0) {
		while (nr > 0)
			free(files[--nr]);
		free(files);
		return r;
	}
	qsort(files, nr, sizeof(*files), by_name);
	*ret_files = files;
	*ret_nr = nr;
	return 0;
}
