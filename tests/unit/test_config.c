/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hv/ballastd/config.h"
#include "hv/ballastd/config_file.h"
#include "hv/ballastd/config_table.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/pages.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

static char folder[SCRATCH_PATH];
static char file[64], dropins[64], dropins2[64];

static void setup(void)
{
	scratch_new(folder);
	snprintf(file, sizeof(file), "%s/d.conf", folder);
	snprintf(dropins, sizeof(dropins), "%s/d.conf.d", folder);
	snprintf(dropins2, sizeof(dropins2), "%s/usr.d", folder);
}

static void write_file(const char *path, const char *text, size_t length)
{
	FILE *stream = fopen(path, "w");

	ck_assert_ptr_nonnull(stream);
	ck_assert_uint_eq(fwrite(text, 1, length, stream), length);
	ck_assert_int_eq(fclose(stream), 0);
}

/* Loads text as the file; NULL with *ret_errors where it is refused. */
static struct config *load_bytes(const char *text, size_t length, char **ret_errors)
{
	const char *const folders[] = { dropins, dropins2, NULL };
	struct config_source source = { file, false, folders };
	struct config *config = NULL;
	int r;

	write_file(file, text, length);
	*ret_errors = NULL;
	r = config_load(&source, &config, ret_errors);
	ck_assert_int_eq(r, *ret_errors ? -EINVAL : 0);
	ck_assert((r == 0) == (config != NULL));
	return config;
}

static struct config *load_ok(const char *text)
{
	char *errors;
	struct config *config = load_bytes(text, strlen(text), &errors);

	ck_assert_msg(config != NULL, "refused: %s: %s", text, errors);
	return config;
}

/* Refused, with FILE:LINE: and all of the words. */
static void check_refused(const char *text, size_t length, unsigned int line, const char *words)
{
	char *errors, place[80] = "";
	struct config *config = load_bytes(text, length, &errors);

	ck_assert_msg(config == NULL, "taken: %s", text);
	if (line > 0)
		snprintf(place, sizeof(place), "%s:%u: ", file, line);
	ck_assert_msg(strstr(errors, place), "no '%s' in: %s", place, errors);
	ck_assert_msg(strstr(errors, words), "no '%s' in: %s", words, errors);
	free(errors);
}

/* The caller's to free. */
static char *dump_of(const struct config *config)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(stream);
	config_dump(config, stream);
	ck_assert_int_eq(fclose(stream), 0);
	return text;
}

START_TEST(empty_file_is_all_defaults)
{
	struct config *config = load_ok("\n# nothing\n; here\n   \n"), *defaults = NULL;
	char *a, *b;

	ck_assert_int_eq(config_new(&defaults), 0);
	a = dump_of(config);
	b = dump_of(defaults);
	ck_assert_str_eq(a, b);
	ck_assert(!config->core.engine.act);
	free(a);
	free(b);
	config_free(defaults);
	config_free(config);
}
END_TEST

/* Whatever is set is dumped, and the dump reads back to the same dump. */
START_TEST(every_option_is_read_and_dumped_alike)
{
	static const char text[] =
		"[ballastd]\nmode = act\nconnect = test:///default\nrun-dir = /tmp/x\nsocket = "
		"/tmp/s\n"
		"on-stop = release\npager = /tmp/vms\n"
		"[pool]\nsize = 1536MiB\nreserve = 1GiB\nwm-min = 16MiB\nwm-low = 2.5%\nwm-high = "
		"8%\n"
		"others-max = 3GiB\n"
		"psi = none\n"
		"[vms]\ndefault-soft-limit = 40%\nguest-swap = yes\ntrust = yes\n"
		"observe-stats = yes\nfloor = 25%\nfloor-free-only = "
		"60%\n"
		"memtune-takeover = yes\nmargin = 5%\nmargin-at-least = 16MiB\n"
		"[xen]\ndom0-min = 512MiB\n"
		"[pace]\nmax-step = 64MiB\nmax-rate = 10MiB\nhost-max-rate = none\n"
		"release-hold = 1min\nhold = 2s\nhold-max = 3min\nask-deadline = 1500ms\nrest "
		"= 2s\n"
		"speed = 20MiB\nheadroom = 32MiB\nheadroom-part = 1/8\n"
		"[times]\npool-fast = 20ms\npool-slow = 100ms\nvm = 500ms\ntick-min = 10ms\n"
		"tick-max = 2s\nresync = 7s\nlane-deadline = 4s\nstats-period = 2s\n"
		"[group /prod]\nsoft-limit = 512MiB\nmin = 0\nlow = 256MiB\nmax = 1GiB\n"
		"manage = observe\n"
		"[group /prod/web]\nsoft-limit = none\nmin = 4KiB\nlow = 0\nmax = none\n"
		"manage = act\n";
	char dump[sizeof(text) + 100] = "", *again = NULL, *errors;
	struct config *config = load_ok(text);
	size_t size;
	FILE *stream = fmemopen(dump, sizeof(dump), "w");
	const char *p, *q;

	ck_assert_int_eq(config_check(config, &errors), 0);
	config_dump(config, stream);
	fclose(stream);
	/* The same but for the empty lines between sections. */
	for (p = text, q = dump; *p; p++, q++) {
		while (*q == '\n' && *p != '\n')
			q++;
		ck_assert_msg(*p == *q, "at '%s' against '%s'", p, q);
	}
	config_free(config);
	config = load_ok(dump);
	stream = open_memstream(&again, &size);
	config_dump(config, stream);
	fclose(stream);
	ck_assert_str_eq(dump, again);
	free(again);
	config_free(config);
}
END_TEST

static char *dump(const struct config *config)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	config_dump(config, stream);
	fclose(stream);
	return text;
}

/* Frees config. */
static void check_dump_reads_back(struct config *config, const char *key, const char *value)
{
	char *first = dump(config), *second;
	struct config *back = load_ok(first);

	second = dump(back);
	ck_assert_msg(!strcmp(first, second), "%s = %s: %s against %s", key, value, first, second);
	free(first);
	free(second);
	config_free(config);
	config_free(back);
}

/* Everything that some option takes, at its bounds and with no round number. */
static const char *const some_values[] = { "none", "host", "auto", "act", "observe", "keep",
	"release", "no", "yes", "0", "1b", "1025b", "4095b", "4097b", "12289b", "1KB", "1MB",
	"1048576b", "1048577b", "1049599b", "16777217b", "1000001KB", "1073741825b", "3GB", "1TiB",
	"1125899906842623b", "1PiB", "0.1%", "0.9%", "2.5%", "49.9%", "50%", "1%", "7%", "25%",
	"99%", "100%", "1us", "999us", "1001us", "1ms", "100ms", "1999ms", "1s", "59s", "61s",
	"3600s", "1min", "10min", "60min", "24min", "1440min", "1/1", "1/3", "1/1024",
	"/run/\xc3\xa4 b;c#d=e[f]", "qemu+ssh://root@host/system?keyfile=/x,y&z=%20",
	/* the longest */
	"/a23456789b123456789c123456789d123456789e123456789f123456789g123456789h123456789"
	"i123456789j123456",
	"/a23456789b123456789c123456789d123456789e123456789f123456789g123456789h123456789"
	"i123456789j123456789k123456789l123456789m123456789n123456789o123456789p123456789"
	"q123456789r123456789",
	"/a23456789b123456789c123456789d123456789e123456789f123456789g123456789h123456789"
	"i123456789j123456789k123456789l123456789m123456789n123456789o123456789p123456789"
	"q123456789r1234567890" };

#define NR_VALUES (sizeof(some_values) / sizeof(some_values[0]))

START_TEST(dump_of_every_option_at_its_bounds_reads_back_to_the_same)
{
	for (size_t i = 0; i < nr_config_options; i++) {
		const struct config_option *o = &config_options[i];
		size_t taken = 0;

		for (size_t k = 0; k < NR_VALUES; k++) {
			struct config *config = NULL;
			char *errors = NULL;

			ck_assert_int_eq(config_new(&config), 0);
			if (config_set(config, o->section, o->key, some_values[k], &errors) < 0 ||
				config_check(config, &errors) < 0) {
				ck_assert_ptr_nonnull(errors);
				free(errors);
				config_free(config);
				continue;
			}
			taken++;
			check_dump_reads_back(config, o->key, some_values[k]);
		}
		ck_assert_msg(taken >= 2, "%s: only %zu values were tried", o->key, taken);
	}
}
END_TEST

START_TEST(dump_of_every_knob_of_a_group_reads_back_to_the_same)
{
	char text[400];

	for (size_t i = 0; i < nr_config_group_options; i++) {
		const char *key = config_group_options[i].key;
		size_t taken = 0;

		for (size_t k = 0; k < NR_VALUES; k++) {
			char *errors = NULL;
			struct config *config;

			snprintf(
				text, sizeof(text), "[group /a b]\n%s = %s\n", key, some_values[k]);
			config = load_bytes(text, strlen(text), &errors);
			free(errors);
			taken += config != NULL;
			if (config)
				check_dump_reads_back(config, key, some_values[k]);
		}
		ck_assert_msg(taken >= 2, "%s: only %zu values were tried", key, taken);
	}
}
END_TEST

static const struct {
	const char *value, *words;
} unwritable[] = {
	{ "/x\nmode = act", "not printable" },
	{ "/x\x1b[2J", "not printable" },
	{ "/x\xe2\x80\xae", "not printable" },
	{ "/x\xff", "not UTF-8" },
	{ " /x", "begins or ends with a blank" },
	{ "/x ", "begins or ends with a blank" },
	{ "/x ;y", "where comments begin" },
	{ ";/x", "where comments begin" },
};

/* From the command line and the environment, too. */
START_TEST(text_that_a_file_cannot_hold_is_refused)
{
	for (size_t i = 0; i < sizeof(unwritable) / sizeof(unwritable[0]); i++) {
		static const char *const keys[] = { "connect", "run-dir", "socket" };

		for (size_t k = 0; k < 3; k++) {
			struct config *config = NULL;
			char *errors = NULL;

			/* What is no absolute path is said first. */
			if (k > 0 && unwritable[i].value[0] != '/')
				continue;
			ck_assert_int_eq(config_new(&config), 0);
			ck_assert_int_eq(config_set(config, "ballastd", keys[k],
						 unwritable[i].value, &errors),
				-EINVAL);
			ck_assert_msg(strstr(errors, unwritable[i].words), "%s", errors);
			ck_assert_ptr_null(strchr(errors, '\x1b'));
			free(errors);
			config_free(config);
		}
	}
}
END_TEST

START_TEST(values_are_in_the_units_of_their_users)
{
	struct config *config = load_ok("[pool]\nsize = 10GB\nwm-low = 4097b\nwm-min = 1b\n"
					"[pace]\nmax-step = 1048577b\n"
					"[vms]\nmargin-at-least = 1025b\n"
					"[times]\nstats-period = 2s\n[group /a]\nmin = 1025b\n"
					"soft-limit = 1025b\nmax = 1049599b\n");
	const struct core_config *core = &config->core;

	ck_assert(!core->pool_host);
	ck_assert_uint_eq(core->pool_size, UINT64_C(10000000000));
	/* Protections and needs up, caps down. */
	ck_assert_uint_eq(core->engine.wm_low.pages, 2);
	ck_assert_uint_eq(core->engine.max_step, 256);
	ck_assert_uint_eq(core->engine.bounds.margin_at_least, 1);
	ck_assert_uint_eq(core->stats_period_s, 2);
	ck_assert_uint_eq(core->nr_groups, 1);
	ck_assert_str_eq(core->groups[0].path, "/a");
	ck_assert_uint_eq(core->groups[0].knobs.min, 1);
	ck_assert_uint_eq(core->groups[0].knobs.soft_limit, 1);
	ck_assert_uint_eq(core->groups[0].knobs.max, 256);
	ck_assert_uint_eq(core->groups[0].knobs.low, 0);
	config_free(config);
}
END_TEST

#define LONG_LINE 200

/* A part more than a group may have with a VM below it. */
#define EIGHT "/a/b/c/d/e/f/g/h"
#define DEEP  EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT

static const struct {
	const char *text;
	unsigned int line;
	const char *words;
} refused[] = {
	/* Whole-line mistakes, which inih would not see. */
	{ "[pool]\n size = 1GiB\n", 2, "indented" },
	{ "[pool]\n\tsize = 1GiB\n", 2, "indented" },
	{ "[pool]\nsize 1GiB\n", 2, "KEY = VALUE" },
	{ "[pool]\nsize: 1GiB\n", 2, "KEY = VALUE" },
	{ "[pool\nsize = 1GiB\n", 1, "the ] is missing" },
	{ "[pool] size = 1GiB\n", 1, "behind the ]" },
	{ "[pool]\npsi = /tmp/\xff\n", 2, "not UTF-8" },
	{ "[pool]\npsi = /tmp/\xc0\xaf\n", 2, "not UTF-8" },
	{ "# \xed\xa0\x80\n", 1, "not UTF-8" },
	{ "[group /a123456789012345678901234567890123456789012345]\n", 1, "more than 49 bytes" },
	{ "[pool]\na1234567890123456789012345678901234567890123456789 = 1\n", 2,
		"more than 49 bytes" },
	/* Names. */
	{ "size = 1GiB\n", 1, "before any section" },
	{ "[pol]\nsize = 1GiB\n", 1, "did you mean [pool]?" },
	{ "[nonsense]\n", 1, "no section [nonsense]" },
	{ "[pool]\nwm_low = 5%\n", 2, "did you mean 'wm-low'?" },
	{ "[pool]\ncolour = red\n", 2, "no 'colour' in section [pool]" },
	{ "[pool]\nmax-step = 1GiB\n", 2, "belongs to section [pace]" },
	{ "[group /a]\nsoftlimit = 1GiB\n", 2, "did you mean 'soft-limit'?" },
	{ "[pool]\nsize = 1GiB\n\nsize = 2GiB\n", 4, "second time, after line 2" },
	{ "[pool]\n[vms]\n[pool]\n", 3, "section [pool] is there a second time, after line 1" },
	{ "[group /a]\n[group /a]\n", 2, "second time" },
	{ "[group a]\n", 1, "does not begin with /" },
	{ "[group /]\n", 1, "[pool]" },
	{ "[group //]\n", 1, "[pool]" },
	{ "[group /a]\n[group //a/]\n", 2, "second time" },
	{ "[group /a/..]\n", 1, "part . or .." },
	{ "[group /a/../b]\n", 1, "part . or .." },
	/* Values: min = 1 is no 1 MiB and no "on". */
	{ "[group /a]\nmin = 1\n", 2, "min: '1' has no unit; write for example 1MiB" },
	{ "[group /a]\nmin = on\n", 2, "min: 'on' is no size" },
	{ "[group /a]\nmin = 1kbs\n", 2, "unknown unit" },
	{ "[group /a]\nmin =\n", 2, "is empty" },
	{ "[group /a]\nmin = -1\n", 2, "negative" },
	{ "[group /a]\nlow = 9223372036854775807KiB\n", 2, "overflow" },
	{ "[pool]\nsize = 16384\n", 2, "16384MiB" },
	{ "[pool]\nsize = 0\n", 2, "out of bounds: 16 MiB to" },
	{ "[ballastd]\nmode = on\n", 2, "observe or act" },
	{ "[ballastd]\nconnect =\n", 2, "is empty" },
	{ "[ballastd]\nsocket = here\n", 2, "no absolute path" },
	{ "[vms]\nguest-swap = true\n", 2, "neither yes nor no" },
	{ "[vms]\nfloor = 50\n", 2, "no percentage" },
	{ "[vms]\nfloor = 0%\n", 2, "out of bounds: 1% to 100%" },
	{ "[vms]\nfloor = 101%\n", 2, "out of bounds" },
	{ "[vms]\nfloor = 50.5%\n", 2, "no percentage" },
	{ "[pool]\nwm-low = 51%\n", 2, "out of bounds" },
	{ "[pool]\nwm-low = 0%\n", 2, "out of bounds" },
	{ "[pool]\nwm-low = x%\n", 2, "no percentage" },
	{ "[pool]\nwm-low = 5\n", 2, "5MiB" },
	{ "[pace]\nhold = 10\n", 2, "no known unit" },
	{ "[pace]\nhold = 10h\n", 2, "no known unit" },
	{ "[pace]\nhold = soon\n", 2, "no time" },
	{ "[pace]\nhold = 11min\n", 2, "out of bounds: 1ms to 10min" },
	{ "[pace]\nhold = 9999999999999min\n", 2, "out of bounds" },
	{ "[pace]\nhold = 99999999999999999999999min\n", 2, "no time" },
	{ "[pace]\nheadroom-part = 16\n", 2, "1/16" },
	{ "[pace]\nheadroom-part = 1/0\n", 2, "out of bounds" },
	{ "[times]\nstats-period = 1500ms\n", 2, "whole number of seconds" },
	/* What does not fit together names both. */
	{ "[pool]\nwm-low = 9%\nwm-high = 8%\n", 2, "wm-low = 9% must be below wm-high = 8%" },
	{ "[pool]\nwm-low = 9%\n", 2, "wm-high is the default" },
	{ "[pool]\nwm-high = 1%\n", 2,
		"wm-low = 5% must be below wm-high = 1%; wm-low is the default" },
	{ "[pool]\nsize = 1GiB\nwm-low = 512MiB\n", 3, "must be below wm-high" },
	{ "[pool]\nsize = 64MiB\nwm-high = 64MiB\n", 3, "must be below size = 64MiB" },
	{ "[times]\ntick-min = 5s\n", 2, "tick-min = 5s must be at most tick-max = 1s" },
	{ "[pace]\nhold = 2min\nhold-max = 1min\n", 2, "hold-max = 1min" },
	{ "[group /a]\nmin = 2GiB\nmax = 1GiB\n", 1, "min = 2 GiB is over max = 1 GiB" },
	{ "[group /a]\nlow = 2GiB\nmax = 1GiB\n", 1, "low = 2 GiB is over max = 1 GiB" },
	/* Rules. */
	{ "[rule ]\n", 1, "the rule has no name" },
	{ "[rule a]\n[rule a]\n", 2, "section [rule a] is there a second time" },
	{ "[rule a]\nmin = 1MiB\nmin = 1MiB\n", 3, "second time, after line 2" },
	{ "[rule a]\nmatchname = x\n", 2, "did you mean 'match-name'?" },
	{ "[rule a]\nsize = 1GiB\n", 2, "no 'size' in section [rule a]" },
	{ "[rule a]\nmatch-name =\n", 2, "is empty" },
	{ "[rule a]\nmin = 1\n", 2, "min: '1' has no unit; write for example 1MiB" },
	{ "[rule a]\nmin = on\n", 2, "min: 'on' is no size" },
	{ "[rule a]\nmin = none\n", 2, "is no size" },
	{ "[rule a]\nlow = -1\n", 2, "negative" },
	{ "[rule a]\nmax = 1.5G\n", 2, "has a fraction" },
	{ "[rule a]\nmax = 99999999999T\n", 2, "overflow" },
	{ "[rule a]\nsoft-limit = max\n", 2, "is no size" },
	{ "[rule a]\nsoft-limit = 2 XB\n", 2, "unknown unit" },
	{ "[rule a]\nmanage = yes\n", 2, "none of no, observe, act" },
	{ "[rule a]\nguest-swap = 1\n", 2, "neither yes nor no" },
	{ "[rule a]\nenforce = on\n", 2, "neither yes nor no" },
	{ "[rule a]\nagent = qemu\n", 2, "none of ballast, qemu-ga, none" },
	{ "[rule a]\ngroup = prod\n", 2, "no group's path" },
	{ "[rule a]\ngroup = /a/..\n", 2, "no group's path" },
	{ "[rule a]\ngroup = " DEEP "\n", 2, "too many parts" },
	{ "[rule a]\nmin = 2GiB\nmax = 1GiB\n", 1, "rule a: min = 2 GiB is over max = 1 GiB" },
	{ "[rule a]\nlow = 2GiB\nmax = 1GiB\n", 1, "rule a: low = 2 GiB is over max = 1 GiB" },
	{ "[pool]\nsize = 1GiB\n[group /a]\nmin = 600MiB\n[group /b]\nmin = 600MiB\n", 0,
		"1.17 GiB in all, are over the pool's size = 1 GiB" },
};

START_TEST(mistake_is_refused_with_file_and_line)
{
	check_refused(
		refused[_i].text, strlen(refused[_i].text), refused[_i].line, refused[_i].words);
}
END_TEST

START_TEST(rules_keep_the_order_of_the_files_and_what_they_do_not_say_is_not_set)
{
	struct config *config = load_ok(
		"[rule web]\nmatch-name = web-*\nmatch-group = /prod/*\nsoft-limit = 2 GiB\n"
		"min = 0\nmanage = observe\nenforce = yes\nagent = qemu-ga\n"
		"[rule all]\nmatch-uuid = 6BA7*\nlow = 1025b\nmax = none\nguest-swap = no\n"
		"group = /rest\n");
	const struct core_rule *web = &config->core.rules[0], *all = &config->core.rules[1];
	FILE *stream = fopen(file, "w");

	ck_assert_uint_eq(config->core.nr_rules, 2);
	ck_assert_str_eq(web->name, "web");
	ck_assert_str_eq(web->match_name, "web-*");
	ck_assert_str_eq(web->match_group, "/prod/*");
	ck_assert_ptr_null(web->match_uuid);
	ck_assert(web->enforce && !all->enforce);
	ck_assert(web->knobs.has_soft_limit && web->knobs.soft_limit == UINT64_C(2) << 30);
	ck_assert(web->knobs.has_min && web->knobs.min == 0);
	ck_assert(web->knobs.has_manage && web->knobs.manage == HV_MANAGE_OBSERVE);
	ck_assert(web->knobs.has_agent && web->knobs.agent == HV_WAY_QEMU_GA);
	ck_assert(!all->knobs.has_agent);
	ck_assert(!web->knobs.has_low && !web->knobs.has_max && !web->knobs.has_group &&
		  !web->knobs.has_guest_swap);
	ck_assert_str_eq(all->name, "all");
	ck_assert_str_eq(all->match_uuid, "6BA7*");
	ck_assert(all->knobs.has_low && all->knobs.low == 1025);
	ck_assert(all->knobs.has_max && all->knobs.max == HV_UNLIMITED);
	ck_assert(all->knobs.has_guest_swap && !all->knobs.guest_swap);
	ck_assert(all->knobs.has_group);
	ck_assert_str_eq(all->knobs.group, "/rest");

	/* What is dumped reads back to the same, and is dumped alike. */
	ck_assert_ptr_nonnull(stream);
	config_dump(config, stream);
	fclose(stream);
	config_free(config);
	config = NULL;
	{
		struct config_source source = { file, false, NULL };
		char *errors = NULL;

		ck_assert_int_eq(config_load(&source, &config, &errors), 0);
	}
	ck_assert_uint_eq(config->core.nr_rules, 2);
	ck_assert(config->core.rules[1].knobs.low == 1025);
	ck_assert(config->core.rules[0].enforce);
	ck_assert(!config->core.rules[0].knobs.has_max);
	config_free(config);
}
END_TEST

START_TEST(dropin_adds_to_a_rule_in_its_place)
{
	static const char text[] = "[rule web]\nlow = 3GiB\n[rule last]\n";
	struct config *config;

	ck_assert_int_eq(mkdir(dropins, 0700), 0);
	{
		char path[100];

		snprintf(path, sizeof(path), "%s/10.conf", dropins);
		write_file(path, text, strlen(text));
	}
	config = load_ok("[rule web]\nlow = 1GiB\nmin = 1MiB\n[rule all]\n");
	ck_assert_uint_eq(config->core.nr_rules, 3);
	ck_assert(config->core.rules[0].knobs.low == UINT64_C(3) << 30);
	ck_assert(config->core.rules[0].knobs.min == 1u << 20);
	ck_assert_str_eq(config->core.rules[2].name, "last");
	config_free(config);
}
END_TEST

START_TEST(nul_and_long_lines_are_refused)
{
	char line[LONG_LINE + 2];
	struct config *config;

	check_refused("[pool]\nsize = 1GiB\0\n", 20, 2, "NUL");
	memset(line, 'x', LONG_LINE);
	line[0] = '#';
	line[LONG_LINE] = '\n';
	check_refused(line, LONG_LINE + 1, 1, "more than 199 bytes");
	/* 199 are read whole. */
	memset(line, ' ', LONG_LINE);
	memcpy(line, "[vms]", 5);
	line[LONG_LINE - 1] = '\0';
	config = load_ok(line);
	config_free(config);
}
END_TEST

START_TEST(every_mistake_is_told_and_nothing_taken)
{
	char *errors;
	struct config *config =
		load_bytes("[pool]\nsize = 1\nwm-low = x\n[vms]\nfloor = 1\n", 43, &errors);

	ck_assert_ptr_null(config);
	ck_assert_ptr_nonnull(strstr(errors, ":2: "));
	ck_assert_ptr_nonnull(strstr(errors, ":3: "));
	ck_assert_ptr_nonnull(strstr(errors, ":5: "));
	free(errors);
}
END_TEST

START_TEST(mistakes_beyond_the_bound_are_counted)
{
	char text[CONFIG_ERRORS_MAX * 2 * 8] = "", *errors;
	size_t lines = 0;

	for (int i = 0; i < CONFIG_ERRORS_MAX; i++)
		strcat(text, "[x]\n");
	ck_assert_ptr_null(load_bytes(text, strlen(text), &errors));
	ck_assert_ptr_null(strstr(errors, "more mistakes"));
	free(errors);
	strcat(text, "[x]\n[y]\n");
	ck_assert_ptr_null(load_bytes(text, strlen(text), &errors));
	ck_assert_ptr_nonnull(strstr(errors, "\nand 2 more mistakes, which are not shown\n"));
	for (const char *p = errors; *p; p++)
		lines += *p == '\n';
	ck_assert_uint_eq(lines, CONFIG_ERRORS_MAX + 1);
	free(errors);
}
END_TEST

START_TEST(mistake_does_not_speak_to_the_terminal)
{
	check_refused("[e\xc2\x9bvil\x1b]\n", 10, 1, "[e\\u009bvil\\x1b]");
	check_refused("[group /\xe2\x80\xae]\n", 13, 1, "not printable");
}
END_TEST

START_TEST(what_is_written_carefully_is_taken)
{
	struct config *config;

	config = load_ok("\xef\xbb\xbf[pool]\r\nsize=1GiB\r\npsi = /tmp/\xc3\xa4\r\n");
	ck_assert_uint_eq(config->core.pool_size, UINT64_C(1) << 30);
	ck_assert_str_eq(config->psi, "/tmp/\xc3\xa4");
	config_free(config);
	config = load_ok("[pool] ; the pool\nsize = 2 GiB ; so much\n  # indented "
			 "comment\n\n\nwm-low = 0.9%\n"
			 "wm-min = 0.1%");
	ck_assert_uint_eq(config->core.pool_size, UINT64_C(2) << 30);
	ck_assert_uint_eq(config->core.engine.wm_low.permille, 9);
	ck_assert_uint_eq(config->core.engine.wm_min.permille, 1);
	config_free(config);
	/* An inner group's min is part of the outer's. */
	config = load_ok(
		"[pool]\nsize = 1GiB\n[group /a]\nmin = 600MiB\n[group /a/b]\nmin = 600MiB\n");
	config_free(config);
}
END_TEST

START_TEST(dropins_are_read_in_order_of_their_names_and_may_be_masked)
{
	char path[128];
	struct config *config;

	ck_assert_int_eq(mkdir(dropins, 0755), 0);
	ck_assert_int_eq(mkdir(dropins2, 0755), 0);
	snprintf(path, sizeof(path), "%s/20-b.conf", dropins);
	write_file(path, "[pool]\nsize = 3GiB\n", 19);
	snprintf(path, sizeof(path), "%s/10-a.conf", dropins2);
	write_file(path, "[pool]\nsize = 2GiB\nreserve = 1GiB\n", 34);
	/* Hidden by the first folder's: of the same name. */
	snprintf(path, sizeof(path), "%s/20-b.conf", dropins2);
	write_file(path, "[pool]\nsize = 4GiB\n", 19);
	/* No configuration: editors' and packages' leavings. */
	snprintf(path, sizeof(path), "%s/30-c.conf~", dropins);
	write_file(path, "garbage", 7);
	/* Masked. */
	snprintf(path, sizeof(path), "%s/40-d.conf", dropins2);
	write_file(path, "garbage", 7);
	snprintf(path, sizeof(path), "%s/40-d.conf", dropins);
	ck_assert_int_eq(symlink("/dev/null", path), 0);
	config = load_ok("[pool]\nsize = 1GiB\nreserve = 2GiB\n[vms]\nfloor = 30%\n");
	ck_assert_uint_eq(config->core.pool_size, UINT64_C(3) << 30);
	ck_assert_uint_eq(config->core.reserve, UINT64_C(1) << 30);
	ck_assert_uint_eq(config->core.engine.bounds.floor_percent, 30);
	config_free(config);
}
END_TEST

/* Where a file of a folder, or the folder itself, cannot be read: nobody would miss it. */
START_TEST(dropin_that_leads_nowhere_is_refused)
{
	char path[128], words[200];

	ck_assert_int_eq(mkdir(dropins, 0755), 0);
	snprintf(path, sizeof(path), "%s/10-a.conf", dropins);
	ck_assert_int_eq(symlink("/nowhere/x", path), 0);
	snprintf(words, sizeof(words), "%s: is a link to a file that is not there", path);
	check_refused("", 0, 0, words);
	ck_assert_int_eq(unlink(path), 0);
	/* To itself. */
	ck_assert_int_eq(symlink(path, path), 0);
	snprintf(words, sizeof(words), "%s: cannot be read: ", path);
	check_refused("", 0, 0, words);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	snprintf(words, sizeof(words), "%s: is no regular file", path);
	check_refused("", 0, 0, words);
}
END_TEST

START_TEST(folder_of_dropins_that_is_none_is_refused)
{
	char words[200];

	write_file(dropins, "", 0);
	snprintf(words, sizeof(words), "%s: cannot be read as a folder: Not a directory", dropins);
	check_refused("", 0, 0, words);
	ck_assert_int_eq(unlink(dropins), 0);
	ck_assert_int_eq(symlink("/nowhere/x", dropins), 0);
	snprintf(words, sizeof(words), "%s: cannot be read as a folder: No such file", dropins);
	check_refused("", 0, 0, words);
}
END_TEST

/* As another user where this is root, who may read everything. */
START_TEST(dropin_that_may_not_be_read_is_refused)
{
	char path[128], words[200];

	ck_assert_int_eq(chmod(folder, 0777), 0);
	ck_assert_int_eq(mkdir(dropins, 0755), 0);
	snprintf(path, sizeof(path), "%s/10-a.conf", dropins);
	write_file(path, "", 0);
	ck_assert_int_eq(chmod(path, 0), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	snprintf(words, sizeof(words), "%s: cannot be read: Permission denied", path);
	check_refused("", 0, 0, words);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chmod(dropins, 0), 0);
	ck_assert_int_eq(unlink(file), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	snprintf(
		words, sizeof(words), "%s: cannot be read as a folder: Permission denied", dropins);
	check_refused("", 0, 0, words);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chmod(dropins, 0755), 0);
}
END_TEST

START_TEST(contradiction_between_files_names_both)
{
	char path[128], other[160];

	ck_assert_int_eq(mkdir(dropins, 0755), 0);
	snprintf(path, sizeof(path), "%s/a.conf", dropins);
	write_file(path, "[pool]\n\nwm-high = 6%\n", 21);
	snprintf(other, sizeof(other), "wm-high = 6%% (%s:3)", path);
	check_refused("[pool]\nwm-low = 7%\n", 19, 2, other);
}
END_TEST

START_TEST(file_that_cannot_be_read_is_a_mistake_unless_optional)
{
	struct config_source source = { "/nowhere/d.conf", false, NULL };
	struct config *config = NULL;
	char *errors = NULL;

	ck_assert_int_eq(config_load(&source, &config, &errors), -EINVAL);
	ck_assert_ptr_nonnull(strstr(errors, "/nowhere/d.conf: cannot be read: No such file"));
	free(errors);
	source.file = folder;
	ck_assert_int_eq(config_load(&source, &config, &errors), -EINVAL);
	ck_assert_ptr_nonnull(strstr(errors, "no regular file"));
	free(errors);
	source = (struct config_source){ "/nowhere/d.conf", true, NULL };
	ck_assert_int_eq(config_load(&source, &config, &errors), 0);
	config_free(config);
}
END_TEST

static void ignore_section(void *ctx, unsigned int line, const char *name)
{
}

static void ignore_key(void *ctx, unsigned int line, const char *key, const char *value)
{
}

START_TEST(garbage_never_crashes_the_reader)
{
	static const char alphabet[] = "[]=;#: \t\r\n\0ab/%\xc3\xa4\xff";
	struct config_reader reader = { ignore_section, ignore_key, NULL };
	char text[400];

	srand(7);
	for (int round = 0; round < 3000; round++) {
		struct config_errors errors = { 0 };
		size_t length = (size_t)rand() % sizeof(text);

		for (size_t i = 0; i < length; i++)
			text[i] = alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
		config_read_text("x", text, length, &reader, &errors);
		config_errors_clear(&errors);
	}
}
END_TEST

START_TEST(command_line_overrides_within_the_same_bounds)
{
	struct config *config = load_ok("[ballastd]\nmode = observe\n");
	char *errors = NULL;

	ck_assert_int_eq(config_set(config, "ballastd", "mode", "act", &errors), 0);
	ck_assert(config->core.engine.act);
	ck_assert_int_eq(config_set(config, "ballastd", "mode", "active", &errors), -EINVAL);
	ck_assert_str_eq(errors, "mode: 'active' is no mode; write observe or act\n");
	free(errors);
	ck_assert_int_eq(config_set(config, "ballastd", "nothing", "x", &errors), -ENOENT);
	ck_assert_int_eq(config_set(config, "pool", "wm-low", "20%", &errors), 0);
	ck_assert_int_eq(config_check(config, &errors), -EINVAL);
	ck_assert_ptr_nonnull(strstr(errors, "wm-low = 20%"));
	free(errors);
	config_free(config);
}
END_TEST

static char *read_source(const char *name)
{
	const char *srcdir = getenv("srcdir");
	char path[512], *text = calloc(1, 65536);
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%s", srcdir ? srcdir : ".", name);
	stream = fopen(path, "r");
	ck_assert_msg(stream != NULL, "%s", path);
	ck_assert_uint_lt(fread(text, 1, 65535, stream), 65535);
	fclose(stream);
	return text;
}

START_TEST(shipped_file_is_the_table)
{
	const char *update = getenv("BALLAST_UPDATE_CONF");
	char *shipped, *text = NULL;
	struct config *config = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	ck_assert_int_eq(config_new(&config), 0);
	config_dump_template(config, stream);
	fclose(stream);
	/* How the file is made anew; see CONTRIBUTING.md. */
	if (update)
		write_file(update, text, size);
	shipped = read_source("dist/ballastd.conf");
	ck_assert_str_eq(shipped, text);
	free(shipped);
	free(text);
	config_free(config);
	/* And it reads. */
	shipped = read_source("dist/ballastd.conf");
	config_free(load_ok(shipped));
	free(shipped);
}
END_TEST

static void check_manual(const char *manual, const struct config_option *option, const void *base)
{
	char value[CONFIG_VALUE_MAX], heading[CONFIG_VALUE_MAX + 64];

	option->type->format(option, base, value, sizeof(value));
	if (value[0])
		snprintf(heading, sizeof(heading), "\n*%s* = %s\n", option->key, value);
	else
		snprintf(heading, sizeof(heading), "\n*%s*\n", option->key);
	ck_assert_msg(strstr(manual, heading), "the manual lacks '%s'", heading);
}

START_TEST(manual_has_every_option_with_its_default)
{
	const struct core_group_knobs none = CORE_GROUP_KNOBS_NONE;
	const struct core_rule rule = { 0 };
	char *manual = read_source("docs/ballastd.conf.5.scd");
	struct config *config = NULL;

	ck_assert_int_eq(config_new(&config), 0);
	for (size_t i = 0; i < nr_config_options; i++)
		check_manual(manual, &config_options[i], config);
	for (size_t i = 0; i < nr_config_group_options; i++)
		check_manual(manual, &config_group_options[i], &none);
	for (size_t i = 0; i < nr_config_rule_options; i++)
		check_manual(manual, &config_rule_options[i], &rule);
	config_free(config);
	free(manual);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("config");
	TCase *tc = tcase_create("config");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, empty_file_is_all_defaults);
	tcase_add_test(tc, every_option_is_read_and_dumped_alike);
	tcase_add_test(tc, values_are_in_the_units_of_their_users);
	tcase_add_test(tc, dump_of_every_option_at_its_bounds_reads_back_to_the_same);
	tcase_add_test(tc, dump_of_every_knob_of_a_group_reads_back_to_the_same);
	tcase_add_test(tc, text_that_a_file_cannot_hold_is_refused);
	tcase_add_test(tc, mistakes_beyond_the_bound_are_counted);
	tcase_add_test(tc, mistake_does_not_speak_to_the_terminal);
	tcase_add_test(tc, dropin_that_leads_nowhere_is_refused);
	tcase_add_test(tc, folder_of_dropins_that_is_none_is_refused);
	tcase_add_test(tc, dropin_that_may_not_be_read_is_refused);
	tcase_add_loop_test(
		tc, mistake_is_refused_with_file_and_line, 0, sizeof(refused) / sizeof(refused[0]));
	tcase_add_test(tc, rules_keep_the_order_of_the_files_and_what_they_do_not_say_is_not_set);
	tcase_add_test(tc, dropin_adds_to_a_rule_in_its_place);
	tcase_add_test(tc, nul_and_long_lines_are_refused);
	tcase_add_test(tc, every_mistake_is_told_and_nothing_taken);
	tcase_add_test(tc, what_is_written_carefully_is_taken);
	tcase_add_test(tc, dropins_are_read_in_order_of_their_names_and_may_be_masked);
	tcase_add_test(tc, contradiction_between_files_names_both);
	tcase_add_test(tc, file_that_cannot_be_read_is_a_mistake_unless_optional);
	tcase_add_test(tc, garbage_never_crashes_the_reader);
	tcase_add_test(tc, command_line_overrides_within_the_same_bounds);
	tcase_add_test(tc, shipped_file_is_the_table);
	tcase_add_test(tc, manual_has_every_option_with_its_default);
	suite_add_tcase(suite, tc);
	scratch_begin();
	return suite_run(suite);
}
