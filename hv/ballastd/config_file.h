/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * config_file: the lines of configuration files, before anyone asks what they mean.
 *
 * inih reads them, but as packaged it silently splits lines over 199 bytes, cuts section and key
 * names at 49 and takes an indented line as one more value of the line above; a scan before it
 * refuses those, NUL and bad UTF-8, with file and line. Knows no option. Start-up only.
 */
#ifndef BALLAST_HV_BALLASTD_CONFIG_FILE_H
#define BALLAST_HV_BALLASTD_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* What inih keeps of a line and of a name. */
#define CONFIG_LINE_MAX 199
#define CONFIG_NAME_MAX 49

/* A configuration is written by hand: larger files are something else. */
#define CONFIG_FILE_MAX	 (1024 * 1024)
#define CONFIG_FILES_MAX 256

/* Mistakes that are told; one that reads them fixes the first ones first. */
#define CONFIG_ERRORS_MAX 20

/* Mistakes, a line each. Zeroed at first. */
struct config_errors {
	char *text; /* NULL: none */
	unsigned int nr;
	bool no_memory;
};

/* file NULL: no place. line 0: the file as a whole. */
void config_errors_add(struct config_errors *errors, const char *file, unsigned int line,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
void config_errors_clear(struct config_errors *errors);
/*
 * 0: there were none; -EINVAL: *ret_errors is the caller's, and its last line says how many more
 * there are than are told; -ENOMEM. Clears errors.
 */
int config_errors_finish(struct config_errors *errors, char **ret_errors);

/* What a reader of a file is told, in the order of its lines. */
struct config_reader {
	void (*section)(void *ctx, unsigned int line, const char *name);
	/* In the section that was told last; section NULL: before any. */
	void (*key)(void *ctx, unsigned int line, const char *key, const char *value);
	void *ctx;
};

/* Reads a text; name is the file's, for errors. Where the scan finds mistakes nobody is told. */
void config_read_text(const char *name, const char *text, size_t length,
	const struct config_reader *reader, struct config_errors *errors);

/* Reads a file. optional: it need not be there; a link that leads nowhere is a mistake. */
void config_read_file(const char *name, bool optional, const struct config_reader *reader,
	struct config_errors *errors);

/*
 * FOLDER/NAME.conf of all folders in the order of NAME; of equal names that of the first folder
 * alone. Folders need not be there; what is there and is none, or leads nowhere, is a mistake. 0 or
 * -ENOMEM; what cannot be read is added to errors.
 */
int config_list_files(const char *const *folders, struct config_errors *errors, char ***ret_files,
	size_t *ret_nr);

#endif
