/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * faults: allocations and system calls that fail, the nth one at a time. A program that links
 * faults.c with the --wrap options of FAULTS_WRAP (tests.am) counts every such call of its own
 * objects and lets one fail; what libraries do inside is theirs. Takes note of what was allocated
 * and not freed.
 */
#ifndef BALLAST_TESTS_FAULTS_H
#define BALLAST_TESTS_FAULTS_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Like ck_assert(), which allocates, and would be let fail. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			faults_disarm();                                                           \
			ck_abort_msg("%s, where %s failed", #condition, faults_what());            \
		}                                                                                  \
	} while (0)

/* From now on calls count, and the nth fails; 0: none does. Forgets what was allocated before. */
void faults_arm(uint64_t nth);
/* Nothing fails any more; what is allocated is noted still. True: something did. */
bool faults_disarm(void);
/* What failed; "": nothing. */
const char *faults_what(void);
/* Another call that can fail, for wrappers beside faults.c: counted; true: fail this one. */
bool faults_hit(const char *name);
/* Calls do not count while held: what a test does for itself. */
void faults_hold(bool held);
/* Allocations since the last faults_arm() that were not freed. */
size_t faults_live(void);

/* Runs with n from 1 on, or what others try of it (suite.h), until nothing failed, which run says:
 * with more than at_least. */
void faults_each(bool (*run)(uint64_t nth), uint64_t at_least);
/* Of the nth run, disarmed: nothing that was allocated is left, and no more descriptors are open.
 */
void faults_check_leaks(uint64_t nth);
unsigned int faults_descriptors(void);
void faults_check_descriptors(uint64_t nth, unsigned int before);

#endif
