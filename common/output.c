/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of standard output: see output.h. */
#include <config.h>

#include "common/output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

int output_end(const char *program, int status)
{
	bool printed = __fpending(stdout) > 0, failed = ferror(stdout);
	int error = 0;

	/* What failed before has left its bytes, and with the next attempt comes the reason. */
	if (fflush(stdout) == EOF) {
		error = errno;
		failed = true;
	}
	/* Network file systems say only here that there was no room. */
	if (fclose(stdout) == EOF && !failed && (errno != EBADF || printed)) {
		error = errno;
		failed = true;
	}
	if (!failed)
		return status;
	fprintf(stderr, "%s: cannot write to standard output: %s\n", program,
		strerror(error ? error : EIO));
	return EXIT_FAILURE;
}
