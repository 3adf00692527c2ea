/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Scenario files, by section; see scenario.h and scenario_internal.h. */
#include <config.h>

#include "hv/sim/scenario_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/nearest.h"
#include "common/size.h"
#include "hv/ballastd/config_table.h"
#include "policy/pages.h"

#define VMS_MAX	    10000
#define VM_PREFIX   "vm "
#define PATH_PREFIX "path "
/* Words of steps are shorter, and so are sections. */
#define SCENARIO_PATH_MAX 200
#define SCENARIO_NAME_MAX (SCENARIO_PATH_MAX + 16)
#define LENGTH_DEFAULT_US UINT64_C(60000000)

/* ---- names ---- */

static struct scenario_name *find_name(
	const struct scenario_loader *loader, const char *prefix, const char *name, size_t length)
{
	char text[SCENARIO_NAME_MAX];
	struct scenario_name *entry;
	int n = snprintf(text, sizeof text, "%s%.*s", prefix, (int)length, name);

	HASH_FIND(hh, loader->names, text, (size_t)n, entry);
	return entry;
}

static void add_name(
	struct scenario_loader *loader, const char *prefix, const char *name, size_t length)
{
	char text[SCENARIO_NAME_MAX];
	int n = snprintf(text, sizeof text, "%s%.*s", prefix, (int)length, name);
	struct scenario_name *entry = calloc(1, sizeof *entry + (size_t)n + 1);

	if (!entry) {
		scenario_out_of_memory(loader);
		return;
	}
	memcpy(entry->text, text, (size_t)n);
	HASH_ADD(hh, loader->names, text, (size_t)n, entry);
	if (entry->hh.tbl)
		return;
	free(entry);
	scenario_out_of_memory(loader);
}

static void clear_names(struct scenario_loader *loader)
{
	struct scenario_name *name, *next;

	HASH_ITER (hh, loader->names, name, next) {
		HASH_DEL(loader->names, name);
		free(name);
	}
}

static bool known_vm(void *ctx, const char *name)
{
	return find_name(ctx, VM_PREFIX, name, strlen(name)) != NULL;
}

/* ---- sections ---- */

static void add_vm(struct scenario_loader *loader, const char *name)
{
	struct scenario *s = loader->scenario;
	struct scenario_vm *vms, *vm;

	if (!*name || strlen(name) >= SCENARIO_WORD_MAX || strpbrk(name, " \t.") ||
		!strcmp(name, "pool") || !strcmp(name, "host")) {
		scenario_wrong(loader, "'%s' cannot be a VM's name here", name);
		return;
	}
	if (known_vm(loader, name)) {
		scenario_wrong(loader, "there is a VM %s already", name);
		return;
	}
	if (s->nr_vms == VMS_MAX) {
		scenario_wrong(loader, "more than %d VMs", VMS_MAX);
		return;
	}
	vms = scenario_grow(loader, s->vms, s->nr_vms, sizeof *vms);
	if (!vms)
		return;
	s->vms = vms;
	vm = &vms[s->nr_vms];
	sim_vm_default(&vm->sim);
	vm->line = loader->line;
	vm->sim.name = strdup(name);
	if (!vm->sim.name) {
		scenario_out_of_memory(loader);
		return;
	}
	s->nr_vms++;
	add_name(loader, VM_PREFIX, name, strlen(name));
	loader->in = IN_VM;
}

/* Of the VM whose section it is, which is the newest. */
static void read_vm(struct scenario_loader *loader, const char *name, const char *text)
{
	struct scenario *s = loader->scenario;
	struct scenario_vm *vm = &s->vms[s->nr_vms - 1];
	uint64_t time;

	if (scenario_vm_key(loader, &vm->sim, name, text))
		return;
	if (scenario_read_at(loader, name, &time))
		scenario_read_step(loader, vm->sim.name, time, text);
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
	struct expect *expects = scenario_grow(loader, s->expects, s->nr_expects, sizeof *expects);
	char why[200] = "";
	int r;

	if (!expects)
		return;
	s->expects = expects;
	r = expect_parse(
		name, text, s->length, known_vm, loader, &expects[s->nr_expects], why, sizeof why);
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
	if (find_name(loader, CONFIG_GROUP_PREFIX, path, strlen(path))) {
		scenario_wrong(loader, "there is a group %s already", path);
		return;
	}
	if (core->nr_groups == CONFIG_GROUPS_MAX) {
		scenario_wrong(loader, "more than %d groups", CONFIG_GROUPS_MAX);
		return;
	}
	groups = scenario_grow(loader, core->groups, core->nr_groups, sizeof *groups);
	if (!groups)
		return;
	core->groups = groups;
	groups[core->nr_groups] = CORE_GROUP_KNOBS_NONE;
	groups[core->nr_groups].path = strdup(path);
	if (!groups[core->nr_groups].path) {
		scenario_out_of_memory(loader);
		return;
	}
	core->nr_groups++;
	add_name(loader, CONFIG_GROUP_PREFIX, path, strlen(path));
	loader->in = IN_GROUP;
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
	if (core->nr_rules == CONFIG_RULES_MAX) {
		scenario_wrong(loader, "more than %d rules", CONFIG_RULES_MAX);
		return;
	}
	rules = scenario_grow(loader, core->rules, core->nr_rules, sizeof *rules);
	if (!rules)
		return;
	core->rules = rules;
	rules[core->nr_rules] = (struct core_rule){ .name = strdup(name) };
	if (!rules[core->nr_rules].name) {
		scenario_out_of_memory(loader);
		return;
	}
	core->nr_rules++;
	loader->in = IN_RULE;
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

/* The sections of one name; the daemon's own are in its table. */
static const struct {
	const char *name;
	int in;
} sections[] = { { "scenario", IN_SCENARIO }, { "host", IN_HOST }, { "operator", IN_OPERATOR },
	{ "expect", IN_EXPECT } };

#define NR_SECTIONS (sizeof(sections) / sizeof(sections[0]))

static bool is_config_section(const char *name)
{
	for (size_t i = 0; i < nr_config_options; i++)
		if (!strcmp(config_options[i].section, name))
			return true;
	return false;
}

static void unknown_section(struct scenario_loader *loader, const char *name)
{
	const char *near = NULL;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < NR_SECTIONS; i++)
		if (nearest_better(name, sections[i].name, &best))
			near = sections[i].name;
	for (size_t i = 0; i < nr_config_options; i++)
		if (nearest_better(name, config_options[i].section, &best))
			near = config_options[i].section;
	if (near)
		scenario_wrong(loader, "there is no section [%s]; did you mean [%s]?", name, near);
	else
		scenario_wrong(loader,
			"there is no section [%s]; write [scenario], [host], [operator], "
			"[vm NAME], [group /PATH], [rule NAME], [expect] or one of ballastd.conf's",
			name);
}

static void take_section(void *ctx, unsigned int line, const char *name)
{
	struct scenario_loader *loader = ctx;

	loader->line = line;
	loader->in = IN_WRONG;
	snprintf(loader->section, sizeof loader->section, "%s", name);
	if (!strncmp(name, VM_PREFIX, strlen(VM_PREFIX))) {
		add_vm(loader, name + strlen(VM_PREFIX));
		return;
	}
	if (!strncmp(name, CONFIG_GROUP_PREFIX, strlen(CONFIG_GROUP_PREFIX))) {
		add_group(loader, name + strlen(CONFIG_GROUP_PREFIX));
		return;
	}
	if (!strncmp(name, CONFIG_RULE_PREFIX, strlen(CONFIG_RULE_PREFIX))) {
		add_rule(loader, name + strlen(CONFIG_RULE_PREFIX));
		return;
	}
	for (size_t i = 0; i < NR_SECTIONS; i++)
		if (!strcmp(sections[i].name, name))
			loader->in = sections[i].in;
	if (loader->in == IN_WRONG && is_config_section(name))
		loader->in = IN_CONFIG;
	if (loader->in == IN_WRONG)
		unknown_section(loader, name);
}

static void take_key(void *ctx, unsigned int line, const char *name, const char *text)
{
	struct scenario_loader *loader = ctx;

	loader->line = line;
	switch (loader->in) {
	case IN_NONE:
		scenario_wrong(
			loader, "'%s' stands before any section; begin with [scenario]", name);
		break;
	case IN_SCENARIO:
		if (!scenario_scenario_key(loader, name, text))
			scenario_wrong(loader,
				"a scenario has no '%s'; it has a title, a length and until-done",
				name);
		break;
	case IN_HOST:
		read_host(loader, name, text);
		break;
	case IN_OPERATOR:
		scenario_read_operator(loader, name, text);
		break;
	case IN_VM:
		read_vm(loader, name, text);
		break;
	case IN_EXPECT:
		read_expect(loader, name, text);
		break;
	case IN_GROUP:
		read_group(loader, name, text);
		break;
	case IN_RULE:
		read_rule(loader, name, text);
		break;
	case IN_CONFIG:
		read_config(loader, loader->section, name, text);
		break;
	case IN_WRONG:
		break; /* its heading was complained about */
	}
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

/* ---- what must fit together ---- */

static void check_vm(struct scenario_loader *loader, const struct scenario_vm *vm)
{
	const struct guest_params *guest = &vm->sim.guest;
	uint64_t used = guest->fixed + guest->hot + guest->idle + guest->cache_hot +
			guest->cache_cold + guest->free;
	char used_text[SIZE_TEXT], maximum[SIZE_TEXT];

	if (!guest->maximum)
		config_errors_add(&loader->errors, loader->path, vm->line,
			"VM %s has no memory; write memory = SIZE, for example memory = 2GiB",
			vm->sim.name);
	else if (used > guest->maximum)
		config_errors_add(&loader->errors, loader->path, vm->line,
			"VM %s uses %s at the start (fixed, hot, idle, hot-cache, cache and free) "
			"and has memory = %s; give it more, or let it use less",
			vm->sim.name, size_format(used, used_text, sizeof used_text),
			size_format(guest->maximum, maximum, sizeof maximum));
}

/* A path and those above it. */
static void add_paths(struct scenario_loader *loader, const char *path)
{
	for (size_t length = path ? strlen(path) : 0; length > 1; length--) {
		if (path[length] != '\0' && path[length] != '/')
			continue;
		if (length >= SCENARIO_PATH_MAX || find_name(loader, PATH_PREFIX, path, length))
			continue;
		add_name(loader, PATH_PREFIX, path, length);
	}
}

/* Groups are in their own sections, and where VMs say that they are. */
static void add_all_paths(struct scenario_loader *loader)
{
	const struct scenario *s = loader->scenario;

	for (size_t i = 0; i < s->config->core.nr_groups; i++)
		add_paths(loader, s->config->core.groups[i].path);
	for (size_t i = 0; i < s->nr_vms; i++) {
		add_paths(loader, s->vms[i].sim.metadata.group);
		add_paths(loader, s->vms[i].sim.partition);
	}
}

/* What the operator does is done to somebody. */
static void check_operator(struct scenario_loader *loader)
{
	const struct scenario *s = loader->scenario;
	bool paths = false;

	for (size_t i = 0; i < s->nr_steps; i++) {
		const struct scenario_step *step = &s->steps[i];
		bool vm_only = step->type == SCENARIO_PAUSE || step->type == SCENARIO_RESUME;

		if (!step->who || !strcmp(step->who, "/") || known_vm(loader, step->who))
			continue;
		if (!vm_only && !paths) {
			add_all_paths(loader);
			paths = true;
		}
		if (!vm_only && find_name(loader, PATH_PREFIX, step->who, strlen(step->who)))
			continue;
		config_errors_add(&loader->errors, loader->path, step->line,
			"there is no VM%s '%s' in this scenario; write the name of a [vm NAME]%s",
			vm_only ? "" : " or group", step->who,
			vm_only ? "" : ", or the path of a group that one is in");
	}
}

/* Who is waited for is there, and has something to do. */
static void check_until_done(struct scenario_loader *loader)
{
	const struct scenario *s = loader->scenario;
	const char *text = s->until_done;
	char name[SCENARIO_WORD_MAX];
	size_t i;

	while (text && scenario_next_word(&text, name)) {
		for (i = 0; i < s->nr_steps; i++)
			if (s->steps[i].vm && !strcmp(s->steps[i].vm, name) &&
				s->steps[i].action.type == SIM_RUN)
				break;
		if (i == s->nr_steps)
			config_errors_add(&loader->errors, loader->path, 0,
				"until-done: no VM '%s' runs a workload", name);
	}
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
		config_errors_add(&loader->errors, loader->path, 0,
			"there is no VM; write a section [vm NAME] with memory = SIZE");
	for (size_t i = 0; i < s->nr_vms; i++)
		check_vm(loader, &s->vms[i]);
	check_operator(loader);
	check_until_done(loader);
}

/* Rivals of the daemon know of a group its soft limit alone. */
static int tell_rivals(struct scenario *s)
{
	const struct core_config *core = &s->config->core;

	s->groups = calloc(core->nr_groups + 1, sizeof *s->groups);
	if (!s->groups)
		return -ENOMEM;
	for (size_t i = 0; i < core->nr_groups; i++) {
		uint64_t pages = core->groups[i].knobs.soft_limit;

		s->groups[i] = (struct rival_group){ core->groups[i].path,
			pages >= PAGES_UNLIMITED ? UINT64_MAX : pages * POLICY_PAGE_SIZE };
	}
	s->host.groups = s->groups;
	s->host.nr_groups = core->nr_groups;
	return 0;
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
	if (r == 0)
		r = tell_rivals(loader.scenario);
	if (r < 0)
		goto out;
	*ret_scenario = loader.scenario;
	clear_names(&loader);
	return 0;
out:
	clear_names(&loader);
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
		free(scenario->steps[i].points);
		free(scenario->steps[i].who);
	}
	for (size_t i = 0; i < scenario->nr_expects; i++)
		expect_clear(&scenario->expects[i]);
	config_free(scenario->config);
	free(scenario->groups);
	free(scenario->title);
	free(scenario->until_done);
	free(scenario->vms);
	free(scenario->steps);
	free(scenario->expects);
	free(scenario);
}
