/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * faults: allocations and system calls that fail, the nth one at a time. A program that links
 * faults.c with the --wrap options of FAULTS_WRAP (tests.am) counts every such call of its own
 * objects and lets one fail; what libraries do inside is theirs. Takes note of what was allocated
 * and not freed.
 */
#ifndef BALLAST_TESTS_FAULTS_H
#define BALLAST_TESTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From now on calls count, and the nth fails; 0: none does. Forgets what was allocated before. */
void faults_arm(uint64_t nth);
/* Nothing fails any more; what is allocated is noted still. True: something did. */
bool faults_disarm(void);
/* How many calls there were since the last faults_arm(). */
uint64_t faults_calls(void);
/* What failed; "": nothing. */
const char *faults_what(void);
/* Another call that can fail, for wrappers beside faults.c: counted; true: fail this one. */
bool faults_hit(const char *name);
/* Calls do not count while held: what a test does for itself. */
void faults_hold(bool held);
/* Allocations since the last faults_arm() that were not freed. */
size_t faults_live(void);

#endif
