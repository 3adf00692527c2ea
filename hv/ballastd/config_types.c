/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the types of options are read and written: see config_table.h. */
#include <config.h>

#include "hv/ballastd/config_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/size.h"
#include "common/text.h"
#include "policy/pages.h"

static void *field(const struct config_option *option, void *base)
{
	return (char *)base + option->offset;
}

static const void *field_const(const struct config_option *option, const void *base)
{
	return (const char *)base + option->offset;
}

static int bad(char *why, size_t size, const char *text, const char *what)
{
	snprintf(why, size, "'%.60s' %s", text, what);
	return -EINVAL;
}

/* ---- words ---- */

const char *config_mode_name(bool act)
{
	return hv_manage_name(act ? HV_MANAGE_ACT : HV_MANAGE_OBSERVE);
}

/* The words for true and false. */
static const char *const on_stop_words[] = { "release", "keep" };
static const char *const bool_words[] = { "yes", "no" };

/* Into *ret_yes: whether text is the first of two words; wrong is said of what is neither. */
static int parse_either(const char *const words[2], const char *text, bool *ret_yes,
	const char *wrong, char *why, size_t size)
{
	bool yes = !strcmp(text, words[0]);

	if (!yes && strcmp(text, words[1]) != 0)
		return bad(why, size, text, wrong);
	*ret_yes = yes;
	return 0;
}

static int parse_mode(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	const char *const words[] = { config_mode_name(true), config_mode_name(false) };

	return parse_either(
		words, text, field(option, base), "is no mode; write observe or act", why, size);
}

static void format_mode(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const bool *act = field_const(option, base);

	snprintf(buf, size, "%s", config_mode_name(*act));
}

const struct config_type config_type_mode = { parse_mode, format_mode };

static int parse_on_stop(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	return parse_either(
		on_stop_words, text, field(option, base), "is neither keep nor release", why, size);
}

static void format_on_stop(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const bool *release = field_const(option, base);

	snprintf(buf, size, "%s", on_stop_words[!*release]);
}

const struct config_type config_type_on_stop = { parse_on_stop, format_on_stop };

static int parse_manage(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	if (hv_manage_parse(text, field(option, base)) < 0)
		return bad(why, size, text, "is none of no, observe, act");
	return 0;
}

static void format_manage(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const enum hv_manage *manage = field_const(option, base);

	snprintf(buf, size, "%s", hv_manage_name(*manage));
}

const struct config_type config_type_manage = { parse_manage, format_manage };

static int parse_bool(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	return parse_either(
		bool_words, text, field(option, base), "is neither yes nor no", why, size);
}

static void format_bool(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const bool *yes = field_const(option, base);

	snprintf(buf, size, "%s", bool_words[!*yes]);
}

const struct config_type config_type_bool = { parse_bool, format_bool };

/* ---- texts ---- */

static int set_text(char **field_text, const char *text)
{
	char *copy = NULL;

	if (text) {
		copy = strdup(text);
		if (!copy)
			return -ENOMEM;
	}
	free(*field_text);
	*field_text = copy;
	return 0;
}

/*
 * What keeps a text from standing in a file behind "KEY = ", from which --dump-config must be read
 * back; NULL: nothing. The command line and the environment set texts, too.
 */
static const char *not_for_a_file(const char *text)
{
	size_t length = strlen(text);

	if (!text_is_utf8(text))
		return "is not UTF-8";
	if (!text_is_printable(text))
		return "has characters that are not printable";
	if (length > 0 && (text[0] == ' ' || text[length - 1] == ' '))
		return "begins or ends with a blank";
	if (text[0] == ';' || strstr(text, " ;"))
		return "has a ; at its start or behind a blank, where comments begin";
	return NULL;
}

static int parse_text(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	const char *problem = not_for_a_file(text);

	if (problem)
		return bad(why, size, text, problem);
	if (strlen(text) < option->min)
		return bad(why, size, text, "is empty; leave the line out for the default");
	if (strlen(text) > option->max) {
		snprintf(why, size, "is %zu bytes long, at most %" PRIu64 " are taken",
			strlen(text), option->max);
		return -EINVAL;
	}
	return set_text(field(option, base), text);
}

static void format_text(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	char *const *text = field_const(option, base);

	snprintf(buf, size, "%s", *text ? *text : "");
}

const struct config_type config_type_text = { parse_text, format_text };

static bool is_psi(const struct config_option *option)
{
	return option->offset == offsetof(struct config, psi);
}

static int parse_path(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	if (is_psi(option) && !strcmp(text, "none"))
		return set_text(field(option, base), NULL);
	if (text[0] != '/' && text[0] != '\0')
		return bad(why, size, text, "is no absolute path");
	return parse_text(option, text, base, why, size);
}

static void format_path(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	char *const *text = field_const(option, base);

	if (is_psi(option) && !*text)
		snprintf(buf, size, "none");
	else
		format_text(option, base, buf, size);
}

const struct config_type config_type_path = { parse_path, format_path };

/* ---- sizes ---- */

/* Bytes within the option's bounds. */
static int read_size(const struct config_option *option, const char *text, uint64_t *ret_bytes,
	char *why, size_t size)
{
	char least[SIZE_TEXT], most[SIZE_TEXT];
	uint64_t bytes;
	int r;

	r = size_parse(text, &bytes);
	if (r < 0) {
		size_parse_error(text, r, why, size);
		return -EINVAL;
	}
	if (bytes < option->min || bytes > option->max) {
		snprintf(why, size, "'%.40s' is out of bounds: %s to %s", text,
			size_format(option->min, least, sizeof(least)),
			size_format(option->max, most, sizeof(most)));
		return -EINVAL;
	}
	*ret_bytes = bytes;
	return 0;
}

static uint64_t pages_up(uint64_t bytes)
{
	return bytes / POLICY_PAGE_SIZE + (bytes % POLICY_PAGE_SIZE != 0);
}

static int parse_pool(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	struct core_config *core = &((struct config *)base)->core;
	int r;

	if (!strcmp(text, "host")) {
		core->pool_host = true;
		core->pool_size = 0;
		return 0;
	}
	r = read_size(option, text, &core->pool_size, why, size);
	if (r < 0)
		return r;
	core->pool_host = false;
	return 0;
}

static void format_pool(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const struct core_config *core = &((const struct config *)base)->core;

	if (core->pool_host)
		snprintf(buf, size, "host");
	else
		size_format_exact(core->pool_size, buf, size);
}

const struct config_type config_type_pool = { parse_pool, format_pool };

static int parse_reserve(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	struct core_config *core = &((struct config *)base)->core;
	int r;

	if (!strcmp(text, "auto")) {
		core->reserve_set = false;
		core->reserve = 0;
		return 0;
	}
	r = read_size(option, text, &core->reserve, why, size);
	if (r < 0)
		return r;
	core->reserve_set = true;
	return 0;
}

static void format_reserve(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const struct core_config *core = &((const struct config *)base)->core;

	if (!core->reserve_set)
		snprintf(buf, size, "auto");
	else
		size_format_exact(core->reserve, buf, size);
}

const struct config_type config_type_reserve = { parse_reserve, format_reserve };

static int parse_pages_up(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	uint64_t *pages = field(option, base), bytes;
	int r = read_size(option, text, &bytes, why, size);

	if (r < 0)
		return r;
	*pages = pages_up(bytes);
	return 0;
}

static int parse_pages_down(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	uint64_t *pages = field(option, base), bytes;
	int r = read_size(option, text, &bytes, why, size);

	if (r < 0)
		return r;
	*pages = bytes / POLICY_PAGE_SIZE;
	return 0;
}

static void format_pages(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const uint64_t *pages = field_const(option, base);

	if (*pages >= PAGES_UNLIMITED)
		snprintf(buf, size, "none");
	else
		size_format_exact(*pages * POLICY_PAGE_SIZE, buf, size);
}

const struct config_type config_type_pages_up = { parse_pages_up, format_pages };
const struct config_type config_type_pages_down = { parse_pages_down, format_pages };

static int parse_limit_up(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	uint64_t *pages = field(option, base);

	if (strcmp(text, "none") != 0)
		return parse_pages_up(option, text, base, why, size);
	*pages = PAGES_UNLIMITED;
	return 0;
}

static int parse_limit_down(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	uint64_t *pages = field(option, base);

	if (strcmp(text, "none") != 0)
		return parse_pages_down(option, text, base, why, size);
	*pages = PAGES_UNLIMITED;
	return 0;
}

const struct config_type config_type_limit_up = { parse_limit_up, format_pages };
const struct config_type config_type_limit_down = { parse_limit_down, format_pages };

/* Bytes, or none, which is 0. */
static int parse_size_or_none(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	uint64_t *bytes = field(option, base);

	if (strcmp(text, "none") != 0)
		return read_size(option, text, bytes, why, size);
	*bytes = 0;
	return 0;
}

static void format_size_or_none(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const uint64_t *bytes = field_const(option, base);

	if (*bytes == 0)
		snprintf(buf, size, "none");
	else
		size_format_exact(*bytes, buf, size);
}

const struct config_type config_type_size_or_none = { parse_size_or_none, format_size_or_none };

/* Pages a second, or none, which is 0. */
static int parse_rate(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	uint64_t *pages = field(option, base);

	if (strcmp(text, "none") != 0)
		return parse_pages_down(option, text, base, why, size);
	*pages = 0;
	return 0;
}

static void format_rate(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const uint64_t *pages = field_const(option, base);

	if (*pages == 0)
		snprintf(buf, size, "none");
	else
		format_pages(option, base, buf, size);
}

const struct config_type config_type_rate = { parse_rate, format_rate };

/* ---- numbers with a unit ---- */

/* The digits at text, at most ten million million: nothing here wraps. False: none, or more. */
static bool read_number(const char *text, uint64_t *ret_number, const char **ret_end)
{
	uint64_t number = 0;
	const char *p;

	for (p = text; *p >= '0' && *p <= '9'; p++) {
		number = number * 10 + (uint64_t)(*p - '0');
		if (number > UINT64_C(10000000000000))
			return false;
	}
	*ret_number = number;
	*ret_end = p;
	return p != text;
}

/* "5%" and, with tenths, "2.5%"; thousandths of the whole. */
static bool read_permille(const char *text, bool tenths, uint64_t *ret_permille)
{
	uint64_t number;
	const char *end;

	if (!read_number(text, &number, &end))
		return false;
	number *= 10;
	if (tenths && end[0] == '.' && end[1] >= '0' && end[1] <= '9') {
		number += (uint64_t)(end[1] - '0');
		end += 2;
	}
	if (strcmp(end, "%") != 0)
		return false;
	*ret_permille = number;
	return true;
}

static int parse_percent(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	unsigned int *percent = field(option, base);
	uint64_t permille;

	if (!read_permille(text, false, &permille))
		return bad(why, size, text, "is no percentage; write for example 50%");
	if (permille / 10 < option->min || permille / 10 > option->max) {
		snprintf(why, size, "'%.40s' is out of bounds: %" PRIu64 "%% to %" PRIu64 "%%",
			text, option->min, option->max);
		return -EINVAL;
	}
	*percent = (unsigned int)(permille / 10);
	return 0;
}

static void format_percent(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const unsigned int *percent = field_const(option, base);

	snprintf(buf, size, "%u%%", *percent);
}

const struct config_type config_type_percent = { parse_percent, format_percent };

static int parse_percent_or_none(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	unsigned int *percent = field(option, base);

	if (strcmp(text, "none") != 0)
		return parse_percent(option, text, base, why, size);
	*percent = 0;
	return 0;
}

static void format_percent_or_none(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const unsigned int *percent = field_const(option, base);

	if (*percent == 0)
		snprintf(buf, size, "none");
	else
		format_percent(option, base, buf, size);
}

const struct config_type config_type_percent_or_none = { parse_percent_or_none,
	format_percent_or_none };

static int parse_level(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	struct engine_level *level = field(option, base);
	uint64_t permille, bytes;
	int r;

	if (strchr(text, '%')) {
		if (!read_permille(text, true, &permille))
			return bad(
				why, size, text, "is no percentage; write for example 5% or 2.5%");
		if (permille == 0 || permille > 500)
			return bad(why, size, text, "is out of bounds: 0.1% to 50%");
		*level = (struct engine_level){ .permille = (unsigned int)permille };
		return 0;
	}
	r = read_size(option, text, &bytes, why, size);
	if (r < 0)
		return r;
	*level = (struct engine_level){ .pages = pages_up(bytes) };
	return 0;
}

static void format_level(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const struct engine_level *level = field_const(option, base);

	if (level->permille == 0)
		size_format_exact(level->pages * POLICY_PAGE_SIZE, buf, size);
	else if (level->permille % 10 == 0)
		snprintf(buf, size, "%u%%", level->permille / 10);
	else
		snprintf(buf, size, "%u.%u%%", level->permille / 10, level->permille % 10);
}

const struct config_type config_type_level = { parse_level, format_level };

static const struct {
	const char *name;
	uint64_t us;
} time_units[] = { { "min", 60000000 }, { "s", 1000000 }, { "ms", 1000 }, { "us", 1 } };

#define NR_TIME_UNITS (sizeof(time_units) / sizeof(time_units[0]))

static void write_time(uint64_t us, char *buf, size_t size)
{
	if (us == 0)
		snprintf(buf, size, "0");
	else if (us % 60000000 == 0)
		snprintf(buf, size, "%" PRIu64 "min", us / 60000000);
	else if (us % 1000000 == 0)
		snprintf(buf, size, "%" PRIu64 "s", us / 1000000);
	else if (us % 1000 == 0)
		snprintf(buf, size, "%" PRIu64 "ms", us / 1000);
	else
		snprintf(buf, size, "%" PRIu64 "us", us);
}

/* Microseconds within the option's bounds. */
static int read_time(const struct config_option *option, const char *text, uint64_t *ret_us,
	char *why, size_t size)
{
	char least[SIZE_TEXT], most[SIZE_TEXT];
	uint64_t number, us;
	const char *end;
	size_t i = 0;

	if (!read_number(text, &number, &end))
		return bad(why, size, text, "is no time; write for example 250ms or 5s");
	if (*end == ' ')
		end++;
	while (i < NR_TIME_UNITS && strcmp(end, time_units[i].name) != 0)
		i++;
	if (i == NR_TIME_UNITS && !(number == 0 && *end == '\0'))
		return bad(why, size, text, "has no known unit; use us, ms, s or min");
	/* Ten million million minutes are more than 64 bits of microseconds. */
	us = i == NR_TIME_UNITS ? 0 : time_units[i].us;
	us = us && number > option->max / us ? UINT64_MAX : number * us;
	if (us < option->min || us > option->max) {
		write_time(option->min, least, sizeof(least));
		write_time(option->max, most, sizeof(most));
		snprintf(why, size, "'%.40s' is out of bounds: %s to %s", text, least, most);
		return -EINVAL;
	}
	*ret_us = us;
	return 0;
}

static int parse_time(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	return read_time(option, text, field(option, base), why, size);
}

static void format_time(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const uint64_t *us = field_const(option, base);

	write_time(*us, buf, size);
}

const struct config_type config_type_time = { parse_time, format_time };

static int parse_seconds(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	uint64_t *seconds = field(option, base), us;
	int r = read_time(option, text, &us, why, size);

	if (r < 0)
		return r;
	if (us % 1000000 != 0)
		return bad(why, size, text, "is no whole number of seconds");
	*seconds = us / 1000000;
	return 0;
}

static void format_seconds(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const uint64_t *seconds = field_const(option, base);

	write_time(*seconds * 1000000, buf, size);
}

const struct config_type config_type_seconds = { parse_seconds, format_seconds };

static int parse_fraction(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	unsigned int *fraction = field(option, base);
	uint64_t number;
	const char *end;

	if (strncmp(text, "1/", 2) != 0 || !read_number(text + 2, &number, &end) || *end != '\0')
		return bad(why, size, text, "is no part; write for example 1/16");
	if (number < option->min || number > option->max) {
		snprintf(why, size, "'%.40s' is out of bounds: 1/%" PRIu64 " to 1/%" PRIu64, text,
			option->max, option->min);
		return -EINVAL;
	}
	*fraction = (unsigned int)number;
	return 0;
}

static void format_fraction(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const unsigned int *fraction = field_const(option, base);

	snprintf(buf, size, "1/%u", *fraction);
}

const struct config_type config_type_fraction = { parse_fraction, format_fraction };

/* ---- a rule's: what is not set is told from what is, and amounts are bytes ---- */

/* The flag that says that the rule says it. */
static bool *said(const struct config_option *option, void *base)
{
	struct hv_knobs *knobs = &((struct core_rule *)base)->knobs;
	const struct {
		const void *field;
		bool *has;
	} fields[] = {
		{ &knobs->soft_limit, &knobs->has_soft_limit },
		{ &knobs->min, &knobs->has_min },
		{ &knobs->low, &knobs->has_low },
		{ &knobs->max, &knobs->has_max },
		{ &knobs->guest_swap, &knobs->has_guest_swap },
		{ &knobs->manage, &knobs->has_manage },
		{ &knobs->group, &knobs->has_group },
		{ &knobs->agent, &knobs->has_agent },
	};
	size_t i = 0;

	while (fields[i].field != field(option, base))
		i++;
	return fields[i].has;
}

static bool is_said(const struct config_option *option, const void *base)
{
	return *said(option, (void *)(uintptr_t)base);
}

/* Remembers that it was set, where it was. */
static int keep(int r, const struct config_option *option, void *base)
{
	if (r == 0)
		*said(option, base) = true;
	return r;
}

static int parse_rule_size(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	return keep(read_size(option, text, field(option, base), why, size), option, base);
}

static int parse_rule_limit(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	if (strcmp(text, "none") != 0)
		return parse_rule_size(option, text, base, why, size);
	*(uint64_t *)field(option, base) = HV_UNLIMITED;
	return keep(0, option, base);
}

static void format_rule_size(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const uint64_t *bytes = field_const(option, base);

	if (!is_said(option, base))
		snprintf(buf, size, "%s", "");
	else if (*bytes == HV_UNLIMITED)
		snprintf(buf, size, "none");
	else
		size_format_exact(*bytes, buf, size);
}

const struct config_type config_type_rule_limit = { parse_rule_limit, format_rule_size };
const struct config_type config_type_rule_size = { parse_rule_size, format_rule_size };

static int parse_rule_bool(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	return keep(parse_bool(option, text, base, why, size), option, base);
}

static void format_rule_bool(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	if (is_said(option, base))
		format_bool(option, base, buf, size);
	else
		snprintf(buf, size, "%s", "");
}

const struct config_type config_type_rule_bool = { parse_rule_bool, format_rule_bool };

static int parse_rule_manage(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	return keep(parse_manage(option, text, base, why, size), option, base);
}

static void format_rule_manage(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const enum hv_manage *manage = field_const(option, base);

	snprintf(buf, size, "%s", is_said(option, base) ? hv_manage_name(*manage) : "");
}

const struct config_type config_type_rule_manage = { parse_rule_manage, format_rule_manage };

static int parse_rule_group(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	char path[HV_GROUP_MAX + 1], words[100];
	const char *wrong = hv_group_path(text, path);

	if (!wrong)
		return keep(parse_text(option, path, base, why, size), option, base);
	snprintf(words, sizeof(words), "is no group's path, it %s; write for example /production",
		wrong);
	return bad(why, size, text, words);
}

static int parse_rule_way(
	const struct config_option *option, const char *text, void *base, char *why, size_t size)
{
	if (hv_way_parse(text, field(option, base)) < 0)
		return bad(why, size, text, "is none of ballast, qemu-ga, none");
	return keep(0, option, base);
}

static void format_rule_way(
	const struct config_option *option, const void *base, char *buf, size_t size)
{
	const enum hv_way *way = field_const(option, base);

	snprintf(buf, size, "%s", is_said(option, base) ? hv_way_name(*way) : "");
}

const struct config_type config_type_rule_way = { parse_rule_way, format_rule_way };

const struct config_type config_type_rule_group = { parse_rule_group, format_text };
