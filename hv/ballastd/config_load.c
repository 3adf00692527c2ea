/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading a configuration: config_file.c has the lines, config_table.c the options, config_types.c
 * their values; here they meet, and what must fit together is checked.
 */
#include <config.h>

#include "hv/ballastd/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/nearest.h"
#include "common/size.h"
#include "common/text.h"
#include "hv/ballastd/config_file.h"
#include "hv/ballastd/config_table.h"
#include "policy/pages.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Options in all, and of a group; config_load() checks the tables against them. */
#define OPTIONS_MAX 64
#define KNOBS_MAX   16

/* Where a value was set. file NULL: nowhere, it is the default or from the command line. */
struct origin {
	const char *file;
	unsigned int line;
};

/* Of a group or rule. */
struct section_origins {
	struct origin section, knobs[KNOBS_MAX];
};

/* A group's section, by its path, which is the group's. */
struct group_at {
	size_t at;
	UT_hash_handle hh;
};

/* Of a configuration while it is read. */
struct loader {
	struct config *config;
	struct config_errors errors;
	struct origin options[OPTIONS_MAX], sections[OPTIONS_MAX];
	struct section_origins *groups, *rules; /* as many as config->core has */
	struct group_at *by_path;
	const char *file;
	enum { NO_SECTION, UNKNOWN_SECTION, OPTION_SECTION, GROUP_SECTION, RULE_SECTION } kind;
	char section[CONFIG_NAME_MAX + 1];
	size_t at; /* which group or rule */
};

/* ---- finding ---- */

static bool is_section(const char *name)
{
	for (size_t i = 0; i < nr_config_options; i++)
		if (!strcmp(config_options[i].section, name))
			return true;
	return false;
}

static const char *nearest_section(const char *name)
{
	const char *near = NULL;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < nr_config_options; i++)
		if (nearest_better(name, config_options[i].section, &best))
			near = config_options[i].section;
	return near;
}

/* The options of the section that is read. */
static size_t table_of(const struct loader *loader, const struct config_option **ret_table)
{
	if (loader->kind == GROUP_SECTION) {
		*ret_table = config_group_options;
		return nr_config_group_options;
	}
	if (loader->kind == RULE_SECTION) {
		*ret_table = config_rule_options;
		return nr_config_rule_options;
	}
	*ret_table = config_options;
	return nr_config_options;
}

static void complain_key(struct loader *loader, unsigned int line, const char *key)
{
	bool own = loader->kind == GROUP_SECTION || loader->kind == RULE_SECTION;
	const struct config_option *table = config_options;
	size_t nr = table_of(loader, &table);
	const char *near = NULL;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < nr; i++) {
		if (!own && !strcmp(table[i].key, key)) {
			config_errors_add(&loader->errors, loader->file, line,
				"'%s' belongs to section [%s], not to [%s]", key, table[i].section,
				loader->section);
			return;
		}
		if ((own || !strcmp(table[i].section, loader->section)) &&
			nearest_better(key, table[i].key, &best))
			near = table[i].key;
	}
	if (near)
		config_errors_add(&loader->errors, loader->file, line,
			"there is no '%s' in section [%s]; did you mean '%s'?", key,
			loader->section, near);
	else
		config_errors_add(&loader->errors, loader->file, line,
			"there is no '%s' in section [%s]", key, loader->section);
}

/* ---- groups ---- */

/* What is wrong with a section's group, in words; NULL: nothing, and *ret_path is its one form. */
static const char *bad_path(const char *path, char *ret_path)
{
	const char *why = hv_group_path(path, ret_path);

	if (!text_is_printable(path))
		return "has characters that are not printable";
	if (!why && !strcmp(ret_path, "/"))
		return "is the pool itself, which has its section [pool]";
	return why;
}

/* Arrays grow where their length is 0 or a power of two, to twice that. */
static size_t room_for(size_t nr)
{
	return nr == 0 ? 1 : 2 * nr;
}

/* The group that is added next gets a path of its own, by which it is found. */
static int name_group(struct loader *loader, const char *path, char **ret_path)
{
	struct group_at *entry = calloc(1, sizeof(*entry));
	char *copy = strdup(path);

	if (!entry || !copy)
		goto fail;
	entry->at = loader->config->core.nr_groups;
	HASH_ADD_KEYPTR(hh, loader->by_path, copy, strlen(copy), entry);
	if (!entry->hh.tbl)
		goto fail;
	*ret_path = copy;
	return 0;
fail:
	free(entry);
	free(copy);
	return -ENOMEM;
}

static void forget_paths(struct loader *loader)
{
	struct group_at *entry, *next;

	HASH_ITER (hh, loader->by_path, entry, next) {
		HASH_DEL(loader->by_path, entry);
		free(entry);
	}
}

static int add_group(struct loader *loader, const char *path, size_t *ret_index)
{
	struct core_config *core = &loader->config->core;
	struct core_group_knobs *groups;
	struct section_origins *origins;

	if ((core->nr_groups & (core->nr_groups - 1)) == 0) {
		groups = reallocarray(core->groups, room_for(core->nr_groups), sizeof(*groups));
		if (!groups)
			return -ENOMEM;
		core->groups = groups;
		origins = reallocarray(loader->groups, room_for(core->nr_groups), sizeof(*origins));
		if (!origins)
			return -ENOMEM;
		loader->groups = origins;
	}
	groups = core->groups;
	origins = loader->groups;
	groups[core->nr_groups] = CORE_GROUP_KNOBS_NONE;
	if (name_group(loader, path, &groups[core->nr_groups].path) < 0)
		return -ENOMEM;
	origins[core->nr_groups] = (struct section_origins){ 0 };
	*ret_index = core->nr_groups++;
	return 0;
}

static void open_group(struct loader *loader, unsigned int line, const char *name)
{
	struct core_config *core = &loader->config->core;
	char path[HV_GROUP_MAX + 1];
	const char *why = bad_path(name, path);
	struct group_at *entry;
	size_t i;

	loader->kind = UNKNOWN_SECTION;
	if (why) {
		config_errors_add(
			&loader->errors, loader->file, line, "the group's path '%s' %s", name, why);
		return;
	}
	HASH_FIND_STR(loader->by_path, path, entry);
	i = entry ? entry->at : core->nr_groups;
	if (i == CONFIG_GROUPS_MAX) {
		config_errors_add(&loader->errors, loader->file, line,
			"there are more than %d groups", CONFIG_GROUPS_MAX);
		return;
	}
	if (i == core->nr_groups && add_group(loader, path, &i) < 0) {
		loader->errors.no_memory = true;
		return;
	}
	loader->kind = GROUP_SECTION;
	loader->at = i;
}

/* ---- rules ---- */

static int add_rule(struct loader *loader, const char *name, size_t *ret_index)
{
	struct core_config *core = &loader->config->core;
	struct core_rule *rules;
	struct section_origins *origins;

	rules = reallocarray(core->rules, core->nr_rules + 1, sizeof(*rules));
	if (!rules)
		return -ENOMEM;
	core->rules = rules;
	origins = reallocarray(loader->rules, core->nr_rules + 1, sizeof(*origins));
	if (!origins)
		return -ENOMEM;
	loader->rules = origins;
	rules[core->nr_rules] = (struct core_rule){ .name = strdup(name) };
	if (!rules[core->nr_rules].name)
		return -ENOMEM;
	origins[core->nr_rules] = (struct section_origins){ 0 };
	*ret_index = core->nr_rules++;
	return 0;
}

static void open_rule(struct loader *loader, unsigned int line, const char *name)
{
	struct core_config *core = &loader->config->core;
	size_t i = 0;

	loader->kind = UNKNOWN_SECTION;
	if (name[strspn(name, " \t")] == '\0') {
		config_errors_add(&loader->errors, loader->file, line,
			"the rule has no name; write for example [rule web]");
		return;
	}
	while (i < core->nr_rules && strcmp(core->rules[i].name, name) != 0)
		i++;
	if (i == CONFIG_RULES_MAX) {
		config_errors_add(&loader->errors, loader->file, line,
			"there are more than %d rules", CONFIG_RULES_MAX);
		return;
	}
	if (i == core->nr_rules && add_rule(loader, name, &i) < 0) {
		loader->errors.no_memory = true;
		return;
	}
	loader->kind = RULE_SECTION;
	loader->at = i;
}

/* ---- reading ---- */

static void complain_again(
	struct loader *loader, unsigned int line, const char *what, const struct origin *first)
{
	config_errors_add(&loader->errors, loader->file, line,
		"%s is there a second time, after line %u", what, first->line);
}

static void take_section(void *ctx, unsigned int line, const char *name)
{
	struct loader *loader = ctx;
	struct origin *origin = NULL;
	char what[CONFIG_NAME_MAX + 16];

	snprintf(loader->section, sizeof(loader->section), "%s", name);
	loader->kind = UNKNOWN_SECTION;
	if (!strncmp(name, CONFIG_GROUP_PREFIX, strlen(CONFIG_GROUP_PREFIX))) {
		open_group(loader, line, name + strlen(CONFIG_GROUP_PREFIX));
		if (loader->kind == GROUP_SECTION)
			origin = &loader->groups[loader->at].section;
	} else if (!strncmp(name, CONFIG_RULE_PREFIX, strlen(CONFIG_RULE_PREFIX))) {
		open_rule(loader, line, name + strlen(CONFIG_RULE_PREFIX));
		if (loader->kind == RULE_SECTION)
			origin = &loader->rules[loader->at].section;
	} else if (is_section(name)) {
		loader->kind = OPTION_SECTION;
		for (size_t i = 0; i < nr_config_options && !origin; i++)
			if (!strcmp(config_options[i].section, name))
				origin = &loader->sections[i];
	} else {
		const char *near = nearest_section(name);

		if (near)
			config_errors_add(&loader->errors, loader->file, line,
				"there is no section [%s]; did you mean [%s]?", name, near);
		else
			config_errors_add(&loader->errors, loader->file, line,
				"there is no section [%s]", name);
	}
	if (!origin)
		return;
	snprintf(what, sizeof(what), "section [%s]", name);
	if (origin->file == loader->file)
		complain_again(loader, line, what, origin);
	else
		*origin = (struct origin){ loader->file, line };
}

static void take_value(struct loader *loader, unsigned int line, const struct config_option *option,
	const char *value, void *base, struct origin *origin)
{
	char why[300] = "", what[CONFIG_NAME_MAX + 16];
	int r;

	snprintf(what, sizeof(what), "'%s'", option->key);
	if (origin->file == loader->file) {
		complain_again(loader, line, what, origin);
		return;
	}
	*origin = (struct origin){ loader->file, line };
	r = option->type->parse(option, value, base, why, sizeof(why));
	if (r == -ENOMEM)
		loader->errors.no_memory = true;
	else if (r < 0)
		config_errors_add(&loader->errors, loader->file, line, "%s: %s", option->key, why);
}

/* Of a group or rule. */
static void take_own_key(
	struct loader *loader, unsigned int line, const char *key, const char *value)
{
	struct core_config *core = &loader->config->core;
	bool rule = loader->kind == RULE_SECTION;
	const struct config_option *table;
	size_t nr = table_of(loader, &table), i = 0;
	void *base = rule ? (void *)&core->rules[loader->at] : (void *)&core->groups[loader->at];
	struct section_origins *origins =
		rule ? &loader->rules[loader->at] : &loader->groups[loader->at];

	while (i < nr && strcmp(table[i].key, key) != 0)
		i++;
	if (i == nr)
		complain_key(loader, line, key);
	else
		take_value(loader, line, &table[i], value, base, &origins->knobs[i]);
}

static void take_key(void *ctx, unsigned int line, const char *key, const char *value)
{
	struct loader *loader = ctx;
	size_t i;

	if (loader->kind == NO_SECTION) {
		config_errors_add(&loader->errors, loader->file, line,
			"'%s' stands before any section; begin with [ballastd] or another", key);
		return;
	}
	if (loader->kind == UNKNOWN_SECTION)
		return; /* its heading was complained about */
	if (loader->kind == GROUP_SECTION || loader->kind == RULE_SECTION) {
		take_own_key(loader, line, key, value);
		return;
	}
	i = config_find_option(loader->section, key);
	if (i == nr_config_options)
		complain_key(loader, line, key);
	else
		take_value(loader, line, &config_options[i], value, loader->config,
			&loader->options[i]);
}

static void read_one(struct loader *loader, const char *file, bool optional)
{
	struct config_reader reader = { take_section, take_key, loader };

	loader->file = file;
	loader->kind = NO_SECTION;
	config_read_file(file, optional, &reader, &loader->errors);
}

/* ---- what must fit together ---- */

static struct origin origin_of(const struct loader *loader, const struct config_option *option)
{
	return loader->options[option - config_options];
}

/* Complains at the place of a, or of b where a is a default. */
static void complain_pair(struct loader *loader, const struct config_option *a,
	const struct config_option *b, const char *relation)
{
	struct origin oa = origin_of(loader, a), ob = origin_of(loader, b);
	char va[CONFIG_VALUE_MAX], vb[CONFIG_VALUE_MAX], other[300] = "";

	a->type->format(a, loader->config, va, sizeof(va));
	b->type->format(b, loader->config, vb, sizeof(vb));
	if (oa.file && ob.file)
		snprintf(other, sizeof(other), " (%s:%u)", ob.file, ob.line);
	else if (oa.file || ob.file)
		snprintf(other, sizeof(other), "; %s is the default", oa.file ? b->key : a->key);
	config_errors_add(&loader->errors, oa.file ? oa.file : ob.file, oa.file ? oa.line : ob.line,
		"%s = %s must be %s %s = %s%s", a->key, va, relation, b->key, vb, other);
}

static const struct config_option *option(const char *section, const char *key)
{
	return &config_options[config_find_option(section, key)];
}

/* Pages of a level; false: a part of a pool whose size only the host knows. */
static bool level_pages(
	const struct core_config *core, const struct engine_level *level, uint64_t *ret_pages)
{
	if (level->permille == 0) {
		*ret_pages = level->pages;
		return true;
	}
	if (core->pool_host)
		return false;
	*ret_pages = pages_mul_div(core->pool_size / POLICY_PAGE_SIZE, level->permille, 1000);
	return true;
}

static void check_levels(struct loader *loader)
{
	const struct core_config *core = &loader->config->core;
	const struct {
		const char *key;
		const struct engine_level *level;
	} levels[] = { { "wm-min", &core->engine.wm_min }, { "wm-low", &core->engine.wm_low },
		{ "wm-high", &core->engine.wm_high } };
	uint64_t a, b;

	for (size_t i = 0; i + 1 < 3; i++) {
		const struct engine_level *la = levels[i].level, *lb = levels[i + 1].level;
		bool wrong = false;

		if (la->permille && lb->permille)
			wrong = la->permille >= lb->permille;
		else if (level_pages(core, la, &a) && level_pages(core, lb, &b))
			wrong = a >= b;
		if (wrong)
			complain_pair(loader, option("pool", levels[i].key),
				option("pool", levels[i + 1].key), "below");
	}
	if (!core->pool_host && level_pages(core, &core->engine.wm_high, &a) &&
		a >= core->pool_size / POLICY_PAGE_SIZE)
		complain_pair(loader, option("pool", "wm-high"), option("pool", "size"), "below");
}

static void check_times(struct loader *loader)
{
	const struct core_config *core = &loader->config->core;

	if (core->engine.hold_us > core->engine.hold_max_us)
		complain_pair(
			loader, option("pace", "hold"), option("pace", "hold-max"), "at most");
	if (core->pool_fast_us > core->pool_slow_us)
		complain_pair(loader, option("times", "pool-fast"), option("times", "pool-slow"),
			"at most");
	if (core->tick_min_us > core->tick_max_us)
		complain_pair(loader, option("times", "tick-min"), option("times", "tick-max"),
			"at most");
}

static void check_group_max(struct loader *loader, size_t group, const char *key, uint64_t pages)
{
	const struct core_group_knobs *g = &loader->config->core.groups[group];
	const struct section_origins *origins = loader->groups ? &loader->groups[group] : NULL;
	char value[SIZE_TEXT], max[SIZE_TEXT];

	if (pages <= g->knobs.max)
		return;
	config_errors_add(&loader->errors, origins ? origins->section.file : NULL,
		origins ? origins->section.line : 0, "group %s: %s = %s is over max = %s", g->path,
		key, size_format(pages * POLICY_PAGE_SIZE, value, sizeof(value)),
		size_format(g->knobs.max * POLICY_PAGE_SIZE, max, sizeof(max)));
}

/* Whether a group above this one has a section too. */
static bool is_below_another(const struct core_config *core, size_t group)
{
	const char *path = core->groups[group].path;

	for (size_t i = 0; i < core->nr_groups; i++) {
		const char *above = core->groups[i].path;

		/* "/" stands above all, and its min for nobody's. */
		if (i != group && above[1] != '\0' && core_path_is_below(path, above))
			return true;
	}
	return false;
}

static void check_groups(struct loader *loader)
{
	const struct core_config *core = &loader->config->core;
	char sum_text[SIZE_TEXT], size[SIZE_TEXT];
	uint64_t sum = 0;

	for (size_t i = 0; i < core->nr_groups; i++) {
		check_group_max(loader, i, "min", core->groups[i].knobs.min);
		check_group_max(loader, i, "low", core->groups[i].knobs.low);
		if (core->groups[i].knobs.min > 0 && !is_below_another(core, i))
			sum += core->groups[i].knobs.min;
	}
	if (!core->pool_host && sum > core->pool_size / POLICY_PAGE_SIZE)
		config_errors_add(&loader->errors, NULL, 0,
			"the groups' min, %s in all, are over the pool's size = %s",
			size_format(sum * POLICY_PAGE_SIZE, sum_text, sizeof(sum_text)),
			size_format(core->pool_size, size, sizeof(size)));
}

static void check_rule(struct loader *loader, size_t i)
{
	const struct core_rule *rule = &loader->config->core.rules[i];
	const struct section_origins *origins = loader->rules ? &loader->rules[i] : NULL;
	const struct hv_knobs *knobs = &rule->knobs;
	char value[SIZE_TEXT], max[SIZE_TEXT];
	const struct {
		const char *key;
		bool has;
		uint64_t bytes;
	} lower[] = { { "min", knobs->has_min, knobs->min },
		{ "low", knobs->has_low, knobs->low } };

	for (size_t k = 0; k < 2; k++)
		if (lower[k].has && knobs->has_max && lower[k].bytes > knobs->max)
			config_errors_add(&loader->errors, origins ? origins->section.file : NULL,
				origins ? origins->section.line : 0,
				"rule %s: %s = %s is over max = %s", rule->name, lower[k].key,
				size_format(lower[k].bytes, value, sizeof(value)),
				size_format(knobs->max, max, sizeof(max)));
}

static void check(struct loader *loader)
{
	for (size_t i = 0; i < loader->config->core.nr_rules; i++)
		check_rule(loader, i);
	check_levels(loader);
	check_times(loader);
	check_groups(loader);
}

/* ---- from outside ---- */

int config_load(const struct config_source *source, struct config **ret_config, char **ret_errors)
{
	struct loader loader = { .kind = NO_SECTION };
	char **files = NULL;
	size_t nr = 0;
	int r;

	if (nr_config_options > OPTIONS_MAX || nr_config_group_options > KNOBS_MAX ||
		nr_config_rule_options > KNOBS_MAX)
		abort(); /* the tables outgrew the arrays here */
	r = config_new(&loader.config);
	if (r < 0)
		return r;
	r = config_list_files(source->folders, &loader.errors, &files, &nr);
	if (r < 0)
		goto out;
	read_one(&loader, source->file, source->optional);
	for (size_t i = 0; i < nr; i++)
		read_one(&loader, files[i], true);
	if (loader.errors.nr == 0)
		check(&loader);
	r = config_errors_finish(&loader.errors, ret_errors);
	if (r < 0)
		goto out;
	*ret_config = loader.config;
	loader.config = NULL;
out:
	for (size_t i = 0; i < nr; i++)
		free(files[i]);
	free(files);
	forget_paths(&loader);
	free(loader.groups);
	free(loader.rules);
	config_free(loader.config);
	return r;
}

int config_check(const struct config *config, char **ret_errors)
{
	/* check() only reads it. */
	struct loader loader = { .config = (struct config *)(uintptr_t)config };

	check(&loader);
	return config_errors_finish(&loader.errors, ret_errors);
}
