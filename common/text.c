/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* UTF-8 and what is printable: see text.h. */
#include <config.h>

#include "common/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Longest that a character becomes: \U000e0001. */
#define ESCAPE_MAX 10

size_t text_character(const char *text, size_t length, uint32_t *ret_character)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)text;
	size_t n;
	uint32_t c;

	if (length == 0)
		return 0;
	n = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	c = p[0];
	if (n > 1) {
		if (p[0] < 0xc2 || p[0] > 0xf4 || n > length)
			return 0;
		c &= 0xffu >> (n + 1);
	}
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*ret_character = c;
	return n;
}

bool text_is_utf8(const char *text)
{
	size_t length = strlen(text);
	uint32_t c;

	while (length > 0) {
		size_t n = text_character(text, length, &c);

		if (n == 0)
			return false;
		text += n;
		length -= n;
	}
	return true;
}

void text_mend(char *text)
{
	size_t length = strlen(text);
	char *end = text;
	uint32_t c;

	while (length > 0) {
		size_t n = text_character(text, length, &c);

		memmove(end, text, n);
		end += n;
		n = n > 0 ? n : 1;
		text += n;
		length -= n;
	}
	*end = '\0';
}

/* Unicode 15's controls (Cc), format characters (Cf), line and paragraph separators, and ends. */
static bool shows(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{ 0x00, 0x1f },	      /* controls */
		{ 0x7f, 0x9f },	      /* DEL, and the controls of eight bits */
		{ 0xad, 0xad },	      /* soft hyphen */
		{ 0x600, 0x605 },     /* Arabic number signs, over what follows */
		{ 0x61c, 0x61c },     /* Arabic letter mark: direction */
		{ 0x6dd, 0x6dd },     /* end of ayah */
		{ 0x70f, 0x70f },     /* Syriac abbreviation mark */
		{ 0x890, 0x891 },     /* Arabic pound and piastre marks */
		{ 0x8e2, 0x8e2 },     /* disputed end of ayah */
		{ 0x180e, 0x180e },   /* Mongolian vowel separator */
		{ 0x200b, 0x200f },   /* no width; direction marks */
		{ 0x2028, 0x202e },   /* line and paragraph separators; embedding, override */
		{ 0x2060, 0x206f },   /* word joiner, invisible operators, isolates */
		{ 0xfeff, 0xfeff },   /* byte order mark */
		{ 0xfff0, 0xfffb },   /* specials, annotations */
		{ 0xfffe, 0xffff },   /* no characters */
		{ 0x110bd, 0x110bd }, /* Kaithi number sign */
		{ 0x110cd, 0x110cd }, { 0x13430, 0x1343f }, /* Egyptian format controls */
		{ 0x1bca0, 0x1bca3 },			    /* shorthand format controls */
		{ 0x1d173, 0x1d17a },			    /* musical format controls */
		{ 0xe0000, 0xe0fff }, /* tags, and more variants of what stands before */
	};

	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return false;
	return true;
}

bool text_is_printable(const char *text)
{
	size_t length = strlen(text);
	uint32_t c;

	while (length > 0) {
		size_t n = text_character(text, length, &c);

		if (n == 0 || !shows(c))
			return false;
		text += n;
		length -= n;
	}
	return true;
}

/* The character at text as it may be shown; its bytes in text. */
static size_t show_one(const char *text, size_t length, char shown[ESCAPE_MAX + 1])
{
	uint32_t c = 0;
	size_t n = text_character(text, length, &c);

	if (n > 0 && shows(c)) {
		memcpy(shown, text, n);
		shown[n] = '\0';
	} else if (n <= 1) { /* a control, or a byte that is none of a character */
		snprintf(shown, ESCAPE_MAX + 1, "\\x%02x", (unsigned char)*text);
		n = 1;
	} else if (c > 0xffff) {
		snprintf(shown, ESCAPE_MAX + 1, "\\U%08" PRIx32, c);
	} else {
		snprintf(shown, ESCAPE_MAX + 1, "\\u%04" PRIx32, c);
	}
	return n;
}

const char *text_printable(const char *text, char *buf, size_t size)
{
	size_t length = strlen(text), used = 0;

	while (length > 0) {
		char shown[ESCAPE_MAX + 1];
		size_t n = show_one(text, length, shown), wide = strlen(shown);

		if (used + wide >= size)
			break;
		memcpy(buf + used, shown, wide);
		used += wide;
		text += n;
		length -= n;
	}
	if (size > 0)
		buf[used] = '\0';
	return buf;
}
