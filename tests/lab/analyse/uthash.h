/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the analysers are given for uthash's header: the same macros, as calls that they know
 * nothing of but what is passed. The real ones are some hundred branches each: gcc and clang spend
 * most of their time in them, both lose sight of how prev and next hang together and take an
 * element that was deleted and freed for one still in the table, and cppcheck finds no system
 * headers at all. Never compiled into anything. A macro that is missing here is an error in
 * tests/lab/lint.sh.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct UT_hash_handle {
	void *tbl, *prev, *next;
} UT_hash_handle;

void *uthash_find(const void *head, const void *key, size_t length);
unsigned int uthash_count(const void *head);
/* head: the address of the table's variable. */
void uthash_change(void *head, ...);

#define HASH_FIND(hh, head, key, length, out) ((out) = uthash_find(head, key, length))
#define HASH_FIND_STR(head, key, out)	      ((out) = uthash_find(head, key, strlen(key)))
/* The element may be in no table afterwards: with HASH_NONFATAL_OOM its hh.tbl is NULL then. */
#define HASH_ADD(hh, head, field, length, item)	     uthash_change(&(head), &(item)->field, length, item)
#define HASH_ADD_KEYPTR(hh, head, key, length, item) uthash_change(&(head), key, length, item)
#define HASH_DELETE(hh, head, item)		     uthash_change(&(head), item)
#define HASH_DEL(head, item)			     HASH_DELETE(hh, head, item)
#define HASH_CLEAR(hh, head)			     ((head) = NULL)
#define HASH_SRT(hh, head, order)		     uthash_change(&(head), order)
#define HASH_CNT(hh, head)			     uthash_count(head)
#define HASH_COUNT(head)			     uthash_count(head)
#define HASH_ITER(hh, head, item, following)                                                       \
	for ((item) = (head), (following) = (item) ? (item)->hh.next : NULL; (item);               \
		(item) = (following), (following) = (item) ? (item)->hh.next : NULL)
