/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon's configuration as a whole: see config.h; config_load.c reads it from files. */
#include <config.h>

#include "hv/ballastd/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hv/ballastd/config_file.h"
#include "hv/ballastd/config_table.h"

static const char *const default_folders[] = { CONFIG_DEFAULT_FILE ".d",
	"/run/ballast/ballastd.conf.d", "/usr/lib/ballast/ballastd.conf.d", NULL };

const struct config_source config_default_source = { CONFIG_DEFAULT_FILE, true, default_folders };

int config_new(struct config **ret_config)
{
	struct config *config = calloc(1, sizeof(*config));

	if (!config)
		return -ENOMEM;
	core_config_default(&config->core);
	config->run_dir = strdup("/run/ballast");
	config->psi = strdup("/proc/pressure/memory");
	if (!config->run_dir || !config->psi) {
		config_free(config);
		return -ENOMEM;
	}
	*ret_config = config;
	return 0;
}

void config_free(struct config *config)
{
	if (!config)
		return;
	for (size_t i = 0; i < config->core.nr_groups; i++)
		free(config->core.groups[i].path);
	free(config->core.groups);
	for (size_t i = 0; i < config->core.nr_rules; i++)
		core_rule_clear(&config->core.rules[i]);
	free(config->core.rules);
	free(config->connect);
	free(config->run_dir);
	free(config->socket);
	free(config->psi);
	free(config->pager);
	free(config);
}

int config_set(struct config *config, const char *section, const char *key, const char *value,
	char **ret_errors)
{
	struct config_errors errors = { 0 };
	size_t i = config_find_option(section, key);
	char why[300] = "";
	int r;

	if (i == nr_config_options)
		return -ENOENT;
	r = config_options[i].type->parse(&config_options[i], value, config, why, sizeof(why));
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		config_errors_add(&errors, NULL, 0, "%s: %s", key, why);
	return config_errors_finish(&errors, ret_errors);
}

static void dump_table(const struct config_option *table, size_t nr, const void *base,
	bool commented, FILE *stream)
{
	char value[CONFIG_VALUE_MAX];

	for (size_t i = 0; i < nr; i++) {
		table[i].type->format(&table[i], base, value, sizeof(value));
		if (commented)
			fprintf(stream, "\n# %s\n", table[i].reason);
		fprintf(stream, "%s%s =%s%s\n", commented || value[0] == '\0' ? "#" : "",
			table[i].key, value[0] ? " " : "", value);
	}
}

void config_dump(const struct config *config, FILE *stream)
{
	const struct core_config *core = &config->core;
	size_t nr;

	for (size_t i = 0; i < nr_config_options; i += nr) {
		const char *section = config_options[i].section;

		for (nr = 1; i + nr < nr_config_options; nr++)
			if (strcmp(config_options[i + nr].section, section) != 0)
				break;
		fprintf(stream, "%s[%s]\n", i > 0 ? "\n" : "", section);
		dump_table(&config_options[i], nr, config, false, stream);
	}
	for (size_t i = 0; i < core->nr_groups; i++) {
		fprintf(stream, "\n[" CONFIG_GROUP_PREFIX "%s]\n", core->groups[i].path);
		dump_table(config_group_options, nr_config_group_options, &core->groups[i], false,
			stream);
	}
	for (size_t i = 0; i < core->nr_rules; i++) {
		fprintf(stream, "\n[" CONFIG_RULE_PREFIX "%s]\n", core->rules[i].name);
		dump_table(config_rule_options, nr_config_rule_options, &core->rules[i], false,
			stream);
	}
}

void config_dump_template(const struct config *config, FILE *stream)
{
	const struct core_group_knobs none = CORE_GROUP_KNOBS_NONE;
	const struct core_rule nothing = { 0 };
	size_t nr;

	fputs("# Configuration of ballastd; ballastd.conf(5) tells more. What is commented out is "
	      "the\n"
	      "# default. Sizes have a unit: KiB, MiB, GiB are powers of 1024, KB, MB, GB of "
	      "1000.\n"
	      "# Own settings are better kept in a file of ballastd.conf.d beside this one.\n",
		stream);
	for (size_t i = 0; i < nr_config_options; i += nr) {
		const char *section = config_options[i].section;

		for (nr = 1; i + nr < nr_config_options; nr++)
			if (strcmp(config_options[i + nr].section, section) != 0)
				break;
		fprintf(stream, "\n[%s]\n", section);
		dump_table(&config_options[i], nr, config, true, stream);
	}
	fputs("\n# A group of VMs, by its path; as many such sections as there are groups.\n"
	      "#[" CONFIG_GROUP_PREFIX "/production]\n",
		stream);
	dump_table(config_group_options, nr_config_group_options, &none, true, stream);
	fputs("\n# Knobs for the VMs that a rule matches; the first rule in the order of the files "
	      "that\n# matches and says a knob counts.\n#[" CONFIG_RULE_PREFIX "batch]\n",
		stream);
	dump_table(config_rule_options, nr_config_rule_options, &nothing, true, stream);
}
