/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Scenario files, by section; see scenario.h and scenario_internal.h. */
#include <config.h>

#include "hv/sim/scenario_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hv/ballastd/config_table.h"

#define VMS_MAX		  10000
#define VM_PREFIX	  "vm "
#define LENGTH_DEFAULT_US UINT64_C(60000000)

static struct scenario_vm *find_vm(const struct scenario *s, const char *name)
{
	for (size_t i = 0; i < s->nr_vms; i++)
		if (!strcmp(s->vms[i].sim.name, name))
			return &s->vms[i];
	return NULL;
}

static bool known_vm(void *ctx, const char *name)
{
	return find_vm(ctx, name) != NULL;
}

static void add_vm(struct scenario_loader *loader, const char *name)
{
	struct scenario *s = loader->scenario;
	struct scenario_vm *vms, *vm;

	if (!*name || strlen(name) >= SCENARIO_WORD_MAX || strpbrk(name, " \t.") ||
		!strcmp(name, "pool") || !strcmp(name, "host")) {
		scenario_wrong(loader, "'%s' cannot be a VM's name here", name);
		return;
	}
	if (find_vm(s, name)) {
		scenario_wrong(loader, "there is a VM %s already", name);
		return;
	}
	if (s->nr_vms == VMS_MAX) {
		scenario_wrong(loader, "more than %d VMs", VMS_MAX);
		return;
	}
	vms = realloc(s->vms, (s->nr_vms + 1) * sizeof *vms);
	if (!vms) {
		scenario_out_of_memory(loader);
		return;
	}
	s->vms = vms;
	vm = &vms[s->nr_vms];
	sim_vm_default(&vm->sim);
	vm->sim.name = strdup(name);
	if (vm->sim.name)
		s->nr_vms++;
	else
		scenario_out_of_memory(loader);
}

static void read_vm(
	struct scenario_loader *loader, const char *vm_name, const char *name, const char *text)
{
	struct scenario_vm *vm = find_vm(loader->scenario, vm_name);
	uint64_t time;

	if (!vm)
		return; /* its heading was complained about */
	if (scenario_vm_key(loader, &vm->sim, name, text))
		return;
	if (scenario_read_at(loader, name, &time))
		scenario_read_step(loader, vm_name, time, text);
	else
		scenario_wrong(loader, "a VM has no '%s'", name);
}

static void read_host(struct scenario_loader *loader, const char *name, const char *text)
{
	uint64_t time;

	if (scenario_host_key(loader, name, text))
		return;
	if (scenario_read_at(loader, name, &time))
		scenario_read_step(loader, NULL, time, text);
	else
		scenario_wrong(loader, "the host has no '%s'", name);
}

static void read_expect(struct scenario_loader *loader, const char *name, const char *text)
{
	struct scenario *s = loader->scenario;
	struct expect *expects = realloc(s->expects, (s->nr_expects + 1) * sizeof *expects);
	char why[200] = "";
	int r;

	if (!expects) {
		scenario_out_of_memory(loader);
		return;
	}
	s->expects = expects;
	r = expect_parse(
		name, text, s->length, known_vm, s, &expects[s->nr_expects], why, sizeof why);
	if (r == -ENOMEM) {
		scenario_out_of_memory(loader);
	} else if (r < 0) {
		scenario_wrong(loader, "%s", why);
	} else {
		expects[s->nr_expects].line = loader->line;
		s->nr_expects++;
	}
}

/* The daemon's own. */
static void read_config(
	struct scenario_loader *loader, const char *section, const char *name, const char *text)
{
	char *errors = NULL;
	int r = config_set(loader->scenario->config, section, name, text, &errors);

	if (r == -ENOENT)
		scenario_wrong(loader, "there is no '%s' in [%s]", name, section);
	else if (r == -EINVAL)
		scenario_wrong(loader, "%.*s", errors ? (int)strcspn(errors, "\n") : 0,
			errors ? errors : "");
	else if (r < 0)
		scenario_out_of_memory(loader);
	free(errors);
}

/* [group PATH], of the daemon too. */
static void add_group(struct scenario_loader *loader, const char *path)
{
	struct core_config *core = &loader->scenario->config->core;
	struct core_group_knobs *groups;

	if (*path != '/' || !path[1]) {
		scenario_wrong(loader, "the group's path '%s' is not /NAME or /NAME/NAME", path);
		return;
	}
	groups = realloc(core->groups, (core->nr_groups + 1) * sizeof *groups);
	if (!groups) {
		scenario_out_of_memory(loader);
		return;
	}
	core->groups = groups;
	groups[core->nr_groups] = CORE_GROUP_KNOBS_NONE;
	groups[core->nr_groups].path = strdup(path);
	if (groups[core->nr_groups].path)
		core->nr_groups++;
	else
		scenario_out_of_memory(loader);
}

/* [rule NAME], in the order in which they are tried. */
static void add_rule(struct scenario_loader *loader, const char *name)
{
	struct core_config *core = &loader->scenario->config->core;
	struct core_rule *rules;

	if (!*name) {
		scenario_wrong(loader, "the rule has no name");
		return;
	}
	rules = realloc(core->rules, (core->nr_rules + 1) * sizeof *rules);
	if (!rules) {
		scenario_out_of_memory(loader);
		return;
	}
	core->rules = rules;
	rules[core->nr_rules] = (struct core_rule){ .name = strdup(name) };
	if (rules[core->nr_rules].name)
		core->nr_rules++;
	else
		scenario_out_of_memory(loader);
}

/* A key of the last group or rule. */
static void read_own(struct scenario_loader *loader, const char *what,
	const struct config_option *options, size_t nr, void *base, const char *name,
	const char *text)
{
	char why[300] = "";
	int r;

	for (size_t i = 0; i < nr; i++) {
		if (strcmp(options[i].key, name))
			continue;
		r = options[i].type->parse(&options[i], text, base, why, sizeof why);
		if (r == -ENOMEM)
			scenario_out_of_memory(loader);
		else if (r < 0)
			scenario_wrong(loader, "%s: %s", name, why);
		return;
	}
	scenario_wrong(loader, "a %s has no '%s'", what, name);
}

static void read_group(struct scenario_loader *loader, const char *name, const char *text)
{
	struct core_config *core = &loader->scenario->config->core;

	if (core->nr_groups && !scenario_is_wrong(loader))
		read_own(loader, "group", config_group_options, nr_config_group_options,
			&core->groups[core->nr_groups - 1], name, text);
}

static void read_rule(struct scenario_loader *loader, const char *name, const char *text)
{
	struct core_config *core = &loader->scenario->config->core;

	if (core->nr_rules && !scenario_is_wrong(loader))
		read_own(loader, "rule", config_rule_options, nr_config_rule_options,
			&core->rules[core->nr_rules - 1], name, text);
}

static void take_section(void *ctx, unsigned int line, const char *name)
{
	struct scenario_loader *loader = ctx;

	loader->line = line;
	snprintf(loader->section, sizeof loader->section, "%s", name);
	if (!strncmp(name, VM_PREFIX, strlen(VM_PREFIX)))
		add_vm(loader, name + strlen(VM_PREFIX));
	else if (!strncmp(name, CONFIG_GROUP_PREFIX, strlen(CONFIG_GROUP_PREFIX)))
		add_group(loader, name + strlen(CONFIG_GROUP_PREFIX));
	else if (!strncmp(name, CONFIG_RULE_PREFIX, strlen(CONFIG_RULE_PREFIX)))
		add_rule(loader, name + strlen(CONFIG_RULE_PREFIX));
}

static void take_key(void *ctx, unsigned int line, const char *name, const char *text)
{
	struct scenario_loader *loader = ctx;
	const char *section = loader->section;

	loader->line = line;
	if (!strncmp(section, VM_PREFIX, strlen(VM_PREFIX)))
		read_vm(loader, section + strlen(VM_PREFIX), name, text);
	else if (!strncmp(section, CONFIG_GROUP_PREFIX, strlen(CONFIG_GROUP_PREFIX)))
		read_group(loader, name, text);
	else if (!strncmp(section, CONFIG_RULE_PREFIX, strlen(CONFIG_RULE_PREFIX)))
		read_rule(loader, name, text);
	else if (!strcmp(section, "host"))
		read_host(loader, name, text);
	else if (!strcmp(section, "operator"))
		scenario_read_operator(loader, name, text);
	else if (!strcmp(section, "expect"))
		read_expect(loader, name, text);
	else if (strcmp(section, "scenario"))
		read_config(loader, section, name, text);
	else if (!scenario_scenario_key(loader, name, text))
		scenario_wrong(loader, "a scenario has no '%s'", name);
}

static int defaults(struct scenario *scenario)
{
	char *errors = NULL;
	int r = config_new(&scenario->config);

	if (r < 0)
		return r;
	scenario->length = LENGTH_DEFAULT_US;
	sim_host_default(&scenario->host);
	/* A simulated host is there to be acted on. */
	r = config_set(scenario->config, "ballastd", "mode", "act", &errors);
	free(errors);
	return r;
}

static void check_whole(struct scenario_loader *loader)
{
	const struct scenario *s = loader->scenario;
	char *errors = NULL;
	int r = config_check(s->config, &errors);

	if (r == -ENOMEM)
		scenario_out_of_memory(loader);
	else if (r < 0)
		config_errors_add(&loader->errors, loader->path, 0, "%.*s",
			errors ? (int)strcspn(errors, "\n") : 0, errors ? errors : "");
	free(errors);
	if (!s->nr_vms)
		config_errors_add(&loader->errors, loader->path, 0, "there is no [vm NAME]");
	for (size_t i = 0; i < s->nr_vms; i++) {
		const struct guest_params *guest = &s->vms[i].sim.guest;
		uint64_t used = guest->fixed + guest->hot + guest->idle + guest->cache_hot +
				guest->cache_cold + guest->free;

		if (used > guest->maximum)
			config_errors_add(&loader->errors, loader->path, 0,
				"VM %s uses more at the start than its memory", s->vms[i].sim.name);
	}
}

int scenario_load(const char *path, struct scenario **ret_scenario, char **ret_errors)
{
	struct scenario_loader loader = { .path = path };
	struct config_reader reader = { take_section, take_key, &loader };
	int r;

	loader.scenario = calloc(1, sizeof *loader.scenario);
	if (!loader.scenario)
		return -ENOMEM;
	r = defaults(loader.scenario);
	if (r < 0)
		goto out;
	config_read_file(path, false, &reader, &loader.errors);
	if (!loader.errors.nr && !loader.errors.no_memory)
		check_whole(&loader);
	r = config_errors_finish(&loader.errors, ret_errors);
	if (r < 0)
		goto out;
	*ret_scenario = loader.scenario;
	return 0;
out:
	config_errors_clear(&loader.errors);
	scenario_free(loader.scenario);
	return r;
}

void scenario_free(struct scenario *scenario)
{
	if (!scenario)
		return;
	for (size_t i = 0; i < scenario->nr_vms; i++) {
		struct sim_vm *vm = &scenario->vms[i].sim;

		free((char *)vm->name);
		free((char *)vm->partition);
		hv_knobs_clear(&vm->metadata);
		hv_knobs_clear(&vm->memtune);
	}
	for (size_t i = 0; i < scenario->nr_steps; i++) {
		free(scenario->steps[i].vm);
		free(scenario->steps[i].who);
	}
	for (size_t i = 0; i < scenario->nr_expects; i++)
		expect_clear(&scenario->expects[i]);
	config_free(scenario->config);
	free(scenario->title);
	free(scenario->vms);
	free(scenario->steps);
	free(scenario->expects);
	free(scenario);
}
