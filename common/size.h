/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * size: amounts of memory as people write them, to bytes and back.
 *
 * The one parser for configuration, command line, protocol and metadata. Suffixes are virsh's,
 * case ignored: b and bytes; K, KiB, M, MiB, G, GiB, T, TiB, P, PiB, E, EiB are powers of 1024;
 * KB, MB, GB, TB, PB, EB powers of 1000. One space may stand between number and suffix. A bare
 * number other than 0 is refused, because virsh reads it as KiB and xl as MiB. So are signs and
 * fractions. Rounding to pages or KiB is the caller's, where the value is used.
 *
 * Never logs, allocates or reads the locale. Any thread.
 */
#ifndef BALLAST_COMMON_SIZE_H
#define BALLAST_COMMON_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* 0; -EINVAL: no size; -ERANGE: a size of 2^64 bytes or more. text must not be NULL. */
int size_parse(const char *text, uint64_t *ret_bytes);

/*
 * The most that an amount may be which somebody asks for: four times what the largest machines have
 * (2^48 bytes of physical addresses). More is a slip of the unit, and sums of it would not fit.
 */
#define SIZE_AMOUNT_MAX (UINT64_C(1) << 50)

/* The same up to SIZE_AMOUNT_MAX; -E2BIG: more. */
int size_parse_amount(const char *text, uint64_t *ret_bytes);

/*
 * What is wrong with a text that one of them refused with error, and what to write instead, for a
 * message after "NAME: "; for example `'16384' has no unit; write for example 16384MiB`. Cut to
 * size. Returns buf.
 */
const char *size_parse_error(const char *text, int error, char *buf, size_t size);

/* Enough for everything that the functions below write. */
#define SIZE_TEXT 32

/* For people: "0 B", "256 MiB", "1.5 GiB", at most two decimals. Returns buf. */
const char *size_format(uint64_t bytes, char *buf, size_t size);
/* The same with a sign for what may be below zero. */
const char *size_format_signed(int64_t bytes, char *buf, size_t size);
/* To be read back: no rounding, no fraction, no space: "1536MiB", "1025b", "0". Returns buf. */
const char *size_format_exact(uint64_t bytes, char *buf, size_t size);

#endif
