/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sizes: see size.h. */
#include <config.h>

#include "common/size.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)
#define PIB (UINT64_C(1) << 50)
#define EIB (UINT64_C(1) << 60)

static const struct {
	const char *suffix;
	uint64_t bytes;
} units[] = {
	{ "b", 1 },
	{ "bytes", 1 },
	{ "k", KIB },
	{ "KiB", KIB },
	{ "KB", UINT64_C(1000) },
	{ "M", MIB },
	{ "MiB", MIB },
	{ "MB", UINT64_C(1000000) },
	{ "G", GIB },
	{ "GiB", GIB },
	{ "GB", UINT64_C(1000000000) },
	{ "T", TIB },
	{ "TiB", TIB },
	{ "TB", UINT64_C(1000000000000) },
	{ "P", PIB },
	{ "PiB", PIB },
	{ "PB", UINT64_C(1000000000000000) },
	{ "E", EIB },
	{ "EiB", EIB },
	{ "EB", UINT64_C(1000000000000000000) },
};

#define NR_UNITS (sizeof(units) / sizeof(units[0]))

/* What sizes are printed in, the largest first; bits: the logarithm of the unit. */
static const struct {
	const char *name;
	unsigned int bits;
} binary[] = { { "EiB", 60 }, { "PiB", 50 }, { "TiB", 40 }, { "GiB", 30 }, { "MiB", 20 },
	{ "KiB", 10 } };

#define NR_BINARY (sizeof(binary) / sizeof(binary[0]))

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The digits at text; *ret_end is behind them. -EINVAL: none; -ERANGE: too large. */
static int parse_number(const char *text, uint64_t *ret_number, const char **ret_end)
{
	uint64_t number = 0;
	bool over = false;
	const char *p;

	for (p = text; is_digit(*p); p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (number > (UINT64_MAX - digit) / 10)
			over = true;
		else
			number = number * 10 + digit;
	}
	if (p == text)
		return -EINVAL;
	*ret_number = number;
	*ret_end = p;
	return over ? -ERANGE : 0;
}

static uint64_t find_unit(const char *suffix)
{
	for (size_t i = 0; i < NR_UNITS; i++)
		if (!strcasecmp(suffix, units[i].suffix))
			return units[i].bytes;
	return 0;
}

int size_parse(const char *text, uint64_t *ret_bytes)
{
	const char *end = text;
	uint64_t number = 0, unit;
	int r;

	r = parse_number(text, &number, &end);
	if (r == -EINVAL)
		return r;
	if (*end == '\0') {
		if (r < 0 || number != 0)
			return -EINVAL;
		*ret_bytes = 0;
		return 0;
	}
	if (*end == ' ')
		end++;
	unit = find_unit(end);
	if (unit == 0)
		return -EINVAL;
	if (r < 0 || number > UINT64_MAX / unit)
		return -ERANGE;
	*ret_bytes = number * unit;
	return 0;
}

int size_parse_amount(const char *text, uint64_t *ret_bytes)
{
	uint64_t bytes;
	int r = size_parse(text, &bytes);

	if (r < 0)
		return r;
	if (bytes > SIZE_AMOUNT_MAX)
		return -E2BIG;
	*ret_bytes = bytes;
	return 0;
}

const char *size_parse_error(const char *text, int error, char *buf, size_t size)
{
	const char *end = text;
	uint64_t number = UINT64_MAX; /* where it is more than that */

	if (error == -E2BIG)
		snprintf(buf, size, "'%.40s' is more than 1 PiB, the most that is taken", text);
	else if (error == -ERANGE)
		snprintf(buf, size, "'%.40s' is too large (overflow): 16 EiB or more", text);
	else if (text[0] == '\0')
		snprintf(buf, size, "is empty; write a size with its unit, for example 512MiB");
	else if (text[0] == '-')
		snprintf(buf, size, "'%.40s' is negative; sizes are 0 or more", text);
	else if (parse_number(text, &number, &end) == -EINVAL)
		snprintf(buf, size,
			"'%.40s' is no size; write a number and a unit, for example 512MiB", text);
	else if (*end == '\0' && number > SIZE_AMOUNT_MAX >> 20)
		snprintf(buf, size, "'%.40s' has no unit; write for example 512MiB", text);
	else if (*end == '\0')
		snprintf(buf, size, "'%.40s' has no unit; write for example %.20sMiB", text, text);
	else if (*end == '%')
		snprintf(buf, size,
			"'%.40s' is a percentage; write a size with its unit, for example 512MiB",
			text);
	else if (*end == '.' || *end == ',')
		snprintf(buf, size,
			"'%.40s' has a fraction; write it in a smaller unit (1.5GiB is 1536MiB)",
			text);
	else
		snprintf(buf, size,
			"'%.40s' has an unknown unit; use b, KiB, MiB, GiB, TiB (powers of 1024) "
			"or KB, MB, GB, TB (powers of 1000)",
			text);
	return buf;
}

const char *size_format(uint64_t bytes, char *buf, size_t size)
{
	for (size_t i = 0; i < NR_BINARY; i++) {
		uint64_t whole = bytes >> binary[i].bits, rest, hundredths;

		if (whole == 0)
			continue;
		rest = bytes - (whole << binary[i].bits);
		/* 2^60 times 100 would wrap. */
		hundredths =
			(uint64_t)((__extension__(unsigned __int128) rest * 100) >> binary[i].bits);
		if (hundredths == 0)
			snprintf(buf, size, "%" PRIu64 " %s", whole, binary[i].name);
		else if (hundredths % 10 == 0)
			snprintf(buf, size, "%" PRIu64 ".%" PRIu64 " %s", whole, hundredths / 10,
				binary[i].name);
		else
			snprintf(buf, size, "%" PRIu64 ".%02" PRIu64 " %s", whole, hundredths,
				binary[i].name);
		return buf;
	}
	snprintf(buf, size, "%" PRIu64 " B", bytes);
	return buf;
}

const char *size_format_signed(int64_t bytes, char *buf, size_t size)
{
	if (bytes >= 0)
		return size_format((uint64_t)bytes, buf, size);
	if (size < 2)
		return size_format(0, buf, size);
	buf[0] = '-';
	size_format(-(uint64_t)bytes, buf + 1, size - 1);
	return buf;
}

const char *size_format_exact(uint64_t bytes, char *buf, size_t size)
{
	if (bytes == 0) {
		snprintf(buf, size, "0");
		return buf;
	}
	for (size_t i = 0; i < NR_BINARY; i++) {
		uint64_t whole = bytes >> binary[i].bits;

		if (whole << binary[i].bits != bytes)
			continue;
		snprintf(buf, size, "%" PRIu64 "%s", whole, binary[i].name);
		return buf;
	}
	snprintf(buf, size, "%" PRIu64 "b", bytes);
	return buf;
}
