/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * config_table: every option with its type, bounds and reason. config.c reads files by it, and
 * config_types.c has how each type is read and written. Start-up only.
 */
#ifndef BALLAST_HV_BALLASTD_CONFIG_TABLE_H
#define BALLAST_HV_BALLASTD_CONFIG_TABLE_H

#include "hv/ballastd/config.h"

/* Longest value that an option has as text; inih's lines are no longer. */
#define CONFIG_VALUE_MAX 200

struct config_option;

/*
 * How a type is read and written. base is the struct that the option's offset counts from. parse:
 * 0; -EINVAL with what is wrong with text in why ("'x' is no time; ..."); -ENOMEM; the field is
 * untouched then. format writes what parse reads back; nothing for a text that is not set.
 */
struct config_type {
	int (*parse)(const struct config_option *option, const char *text, void *base, char *why,
		size_t size);
	void (*format)(
		const struct config_option *option, const void *base, char *buf, size_t size);
};

extern const struct config_type config_type_mode, config_type_text, config_type_path,
	config_type_bool, config_type_manage, config_type_rate, config_type_size_or_none,
	config_type_pool, config_type_reserve, config_type_level, config_type_percent,
	config_type_percent_or_none, config_type_pages_up, config_type_pages_down,
	config_type_limit_up, config_type_limit_down, config_type_time, config_type_seconds,
	config_type_fraction, config_type_on_stop, config_type_rule_limit, config_type_rule_size,
	config_type_rule_bool, config_type_rule_manage, config_type_rule_group,
	config_type_rule_way;

struct config_option {
	const char *section, *key;
	const struct config_type *type;
	size_t offset;	    /* in struct config; of a group's option in struct core_group_knobs, of
			     a rule's in struct core_rule */
	uint64_t min, max;  /* of the value: bytes, percent, microseconds, characters */
	const char *reason; /* what it does, and why it is what it is unless set */
};

/* In the order of the manual; a section's options stand together. */
extern const struct config_option config_options[];
extern const size_t nr_config_options;

/* The index of an option; nr_config_options: there is none. */
size_t config_find_option(const char *section, const char *key);

/* Of the sections [group PATH]. */
#define CONFIG_GROUP_PREFIX "group "
/*
 * Twice the 8000 groups of soft-limit-rework-v5.1's largest experiment, which the documents' bench
 * plays. They are looked for one after another: that takes half a second then, once.
 */
#define CONFIG_GROUPS_MAX 16384
extern const struct config_option config_group_options[];
extern const size_t nr_config_group_options;

/* Of the sections [rule NAME]. */
#define CONFIG_RULE_PREFIX "rule "
#define CONFIG_RULES_MAX   1024
extern const struct config_option config_rule_options[];
extern const size_t nr_config_rule_options;

#endif
