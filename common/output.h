/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * output: the end of a program that wrote to standard output. A device that is full, or a pipe that
 * broke, is noticed by nobody who only prints: every program's main() returns through here, so that
 * half an answer never looks like a whole one.
 *
 * Not for library code. One thread, once, as the last thing.
 */
#ifndef BALLAST_COMMON_OUTPUT_H
#define BALLAST_COMMON_OUTPUT_H

/*
 * Writes out and closes standard output. Returns status; where something was printed and did not
 * arrive, says so on standard error after "PROGRAM: " and returns 1. A standard output that was
 * closed from the start is an error only where something was printed.
 */
int output_end(const char *program, int status);

#endif
