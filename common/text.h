/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * text: UTF-8, and what of it a terminal may be shown.
 *
 * Names come from guests' owners, files and hypervisors. Control characters (also U+0080 to
 * U+009F, which terminals obey as they do escapes), characters that turn the direction of what
 * follows, invisible ones, and bytes that are no UTF-8 are shown as \x1b, \u202e, \U000e0001.
 * Nothing is changed where programs read: JSON keeps names as they are.
 *
 * Never logs, allocates or reads the locale. Any thread.
 */
#ifndef BALLAST_COMMON_TEXT_H
#define BALLAST_COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 character at text, of length bytes; 0: it is none. */
size_t text_character(const char *text, size_t length, uint32_t *ret_character);

bool text_is_utf8(const char *text);

/* Takes out of the text what is no UTF-8: most often half a character, where a text was cut. */
void text_mend(char *text);

/* Whether all of it may be shown as it is. */
bool text_is_printable(const char *text);

/* Bytes that text_printable() makes of one. */
#define TEXT_GROWTH 4

/*
 * The text as it may be shown, cut to size at a whole character; strlen(text) * TEXT_GROWTH + 1
 * bytes are always enough. What was made printable once stays as it is. Returns buf.
 */
const char *text_printable(const char *text, char *buf, size_t size);

#endif
