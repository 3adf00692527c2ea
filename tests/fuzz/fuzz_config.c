/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Any bytes as a configuration: refused whole with a reason, or taken; then its dump reads back. */
#define _GNU_SOURCE
#include <config.h>

#include "hv/ballastd/config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int load(const void *data, size_t size, struct config **ret_config, char **ret_errors)
{
	static const char *const none[] = { NULL };
	struct config_source source = { .folders = none };
	char path[64];
	int fd = memfd_create("config", 0), r;

	assert(fd >= 0);
	assert(write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	source.file = path;
	r = config_load(&source, ret_config, ret_errors);
	close(fd);
	return r;
}

static char *dump(const struct config *config)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	assert(stream);
	config_dump(config, stream);
	fclose(stream);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *config = NULL, *again = NULL;
	char *errors = NULL, *text, *text_again;
	int r = load(data, size, &config, &errors);

	if (r == 0) {
		text = dump(config);
		r = load(text, strlen(text), &again, &errors);
		assert(r == 0);
		text_again = dump(again);
		assert(strcmp(text, text_again) == 0);
		free(text);
		free(text_again);
	} else {
		assert(r == -EINVAL && errors && errors[0]);
	}
	free(errors);
	config_free(config);
	config_free(again);
	return 0;
}
