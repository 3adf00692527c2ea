/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What happens in a scenario; see scenario_internal.h. */
#include <config.h>

#include "hv/sim/scenario_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hv/sim/trace.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))
/* Where a workload says no rate: 50 MiB a second. */
#define RATE_DEFAULT UINT64_C(52428800)
#define DAY_US	     UINT64_C(86400000000)

struct verb {
	const char *word;
	bool host, size, rate; /* of the host; has a size, and may have a rate */
	enum sim_action_type type;
	enum guest_work_type work;
};

static const struct verb verbs[] = {
	{ "grow", false, true, true, SIM_WORK, GUEST_WORK_GROW },
	{ "hot", false, true, true, SIM_WORK, GUEST_WORK_HOT },
	{ "stream", false, true, true, SIM_WORK, GUEST_WORK_STREAM },
	{ "hot-file", false, true, true, SIM_WORK, GUEST_WORK_HOT_FILE },
	{ "shrink", false, true, true, SIM_WORK, GUEST_WORK_SHRINK },
	{ "idle", false, false, false, SIM_IDLE, 0 },
	{ "pause", false, false, false, SIM_PAUSE, 0 },
	{ "resume", false, false, false, SIM_RESUME, 0 },
	{ "stop", false, false, false, SIM_STOP, 0 },
	{ "wake", false, false, false, SIM_WAKE, 0 },
	{ "reboot", false, false, false, SIM_REBOOT, 0 },
	{ "off", false, false, false, SIM_OFF, 0 },
	{ "start", false, false, false, SIM_START, 0 },
	{ "metadata-soft-limit", false, true, false, SIM_METADATA_SOFT_LIMIT, 0 },
	{ "memtune", false, true, false, SIM_MEMTUNE_SOFT_LIMIT, 0 },
	{ "setmem", false, true, false, SIM_SETMEM, 0 },
	{ "stuck-at", false, true, false, SIM_STUCK, 0 },
	{ "swap-out", false, true, false, SIM_SWAP_OUT, 0 },
	{ "migrate", false, false, false, SIM_MIGRATE, 0 },
	{ "postcopy", false, false, false, SIM_POSTCOPY, 0 },
	{ "save", false, false, false, SIM_SAVE, 0 },
	{ "snapshot", false, false, false, SIM_SNAPSHOT, 0 },
	{ "backup", false, false, false, SIM_BACKUP, 0 },
	{ "job-end", false, false, false, SIM_JOB_END, 0 },
	{ "arrive", false, false, false, SIM_ARRIVE, 0 },
	{ "plug", false, true, false, SIM_PLUG, 0 },
	{ "plug-device", false, false, false, SIM_PLUG_DEVICE, 0 },
	{ "unplug-device", false, false, false, SIM_UNPLUG_DEVICE, 0 },
	{ "recreate", false, false, false, SIM_RECREATE, 0 },
	{ "agent-silent", false, false, false, SIM_AGENT_SILENT, 0 },
	{ "agent-speaks", false, false, false, SIM_AGENT_SPEAKS, 0 },
	{ "throttle", false, true, false, SIM_THROTTLE, 0 },
	{ "others", true, true, false, SIM_OTHERS, 0 },
	{ "down", true, false, false, SIM_DOWN, 0 },
	{ "up", true, false, false, SIM_UP, 0 },
};

static struct scenario_step *add_step(struct scenario_loader *loader, uint64_t time, const char *vm)
{
	struct scenario *s = loader->scenario;
	struct scenario_step *steps = scenario_grow(loader, s->steps, s->nr_steps, sizeof *steps),
			     *step;

	if (!steps)
		return NULL;
	s->steps = steps;
	step = &steps[s->nr_steps++];
	*step = (struct scenario_step){ .time = time, .line = loader->line };
	step->vm = vm ? strdup(vm) : NULL;
	if (vm && !step->vm)
		scenario_out_of_memory(loader);
	return step;
}

/* "at TIME"; false: it is something else, or wrong. */
bool scenario_read_at(struct scenario_loader *loader, const char *name, uint64_t *ret_time)
{
	char word[SCENARIO_WORD_MAX], time[SCENARIO_WORD_MAX], why[160];
	const char *p = name;

	if (!scenario_next_word(&p, word) || strcmp(word, "at") || !scenario_next_word(&p, time) ||
		*p)
		return false;
	if (expect_parse_time(time, ret_time, why, sizeof why) < 0)
		scenario_wrong(loader, "%s", why);
	else if (*ret_time > loader->scenario->length)
		scenario_wrong(loader, "%s is after the end of the scenario", time);
	return true;
}

/* The word behind another, as a time or a percentage. */
static void read_fault_time(struct scenario_loader *loader, const char **text, uint64_t *ret_time)
{
	char word[SCENARIO_WORD_MAX] = "", why[160];

	scenario_next_word(text, word);
	if (expect_parse_time(word, ret_time, why, sizeof why) < 0)
		scenario_wrong(loader, "%s", why);
}

static void read_percent(
	struct scenario_loader *loader, const char **text, unsigned int *ret_percent)
{
	char word[SCENARIO_WORD_MAX] = "", *end;
	unsigned long percent;

	scenario_next_word(text, word);
	percent = strtoul(word, &end, 10);
	if (*word < '0' || *word > '9' || strcmp(end, "%") || percent > 100)
		scenario_wrong(loader, "'%.40s' is no percentage", word);
	else
		*ret_percent = (unsigned int)percent;
}

/*
 * fault KIND [CALL...] [for TIME] [by TIME] [chance PERCENT] [says PERCENT]: see fault.h. for: how
 * long, else to the end; by: how slow; says: how much a guest that lies has free.
 */
static void read_fault(
	struct scenario_loader *loader, const char *vm, uint64_t time, const char *text)
{
	struct fault_rule rule = { .of_vm = vm, .from = time, .until = UINT64_MAX };
	struct scenario_step *step;
	char word[SCENARIO_WORD_MAX] = "";
	enum hv_call_type call;
	uint64_t length = 0;

	scenario_next_word(&text, word);
	if (fault_kind_parse(word, &rule.kind) < 0)
		scenario_wrong(loader,
			"'%s' is none of slow, fail, deny, hang, lie, stale, "
			"partial, lose",
			word);
	rule.delay_us = 1000000;
	while (scenario_next_word(&text, word)) {
		if (!strcmp(word, "for"))
			read_fault_time(loader, &text, &length);
		else if (!strcmp(word, "by"))
			read_fault_time(loader, &text, &rule.delay_us);
		else if (!strcmp(word, "chance"))
			read_percent(loader, &text, &rule.percent_of);
		else if (!strcmp(word, "says"))
			read_percent(loader, &text, &rule.percent);
		else if (fault_call_parse(word, &call) == 0)
			rule.calls |= FAULT_CALL(call);
		else
			scenario_wrong(loader, "a fault has no '%s'", word);
	}
	if (length)
		rule.until = time + length;
	step = scenario_is_wrong(loader) ? NULL : add_step(loader, time, vm);
	if (!step)
		return;
	step->type = SCENARIO_FAULT;
	step->fault = rule;
}

/* ---- programs ---- */

/* What stands behind `run WORKLOAD`: sizes in this order, and words with a number or without. */
struct workload {
	const char *word;
	enum program_type type;
	unsigned int sizes; /* stream SIZE; diurnal LOW HIGH */
	bool count;	    /* kbuild OBJECTS */
	const char *usage;
};

static const struct workload workloads[] = {
	{ "stream", PROGRAM_STREAM, 1, false, "stream SIZE [write] [parallel N]" },
	{ "mem_eater", PROGRAM_MEM_EATER, 1, false, "mem_eater SIZE" },
	{ "kbuild", PROGRAM_KBUILD, 0, true, "kbuild OBJECTS [parallel N] [cpus N]" },
	{ "gzip", PROGRAM_GZIP, 1, false, "gzip SIZE [times N]" },
	{ "diurnal", PROGRAM_DIURNAL, 2, false, "diurnal LOW HIGH [period TIME]" },
	{ "trace", PROGRAM_TRACE, 0, false, "trace FILE" },
};

static bool read_number(struct scenario_loader *loader, const char **text, unsigned int most,
	unsigned int *ret_number)
{
	char word[SCENARIO_WORD_MAX] = "", *end;
	unsigned long number;

	scenario_next_word(text, word);
	number = strtoul(word, &end, 10);
	if (*word < '0' || *word > '9' || *end || !number || number > most) {
		scenario_wrong(loader, "'%.40s' is no number from 1 to %u", word, most);
		return false;
	}
	*ret_number = (unsigned int)number;
	return true;
}

/* A trace's file stands beside the scenario. */
static void read_trace(struct scenario_loader *loader, const char *name,
	struct program_params *program, struct program_point **ret_points)
{
	const char *slash = strrchr(loader->path, '/');
	char why[300], *path;
	int r;

	if (asprintf(&path, "%.*s%s", slash && *name != '/' ? (int)(slash + 1 - loader->path) : 0,
		    loader->path, name) < 0) {
		scenario_out_of_memory(loader);
		return;
	}
	r = trace_load(path, ret_points, &program->nr_points, why, sizeof why);
	if (r == -ENOMEM)
		scenario_out_of_memory(loader);
	else if (r < 0)
		scenario_wrong(loader, "%s", why);
	program->points = *ret_points;
	free(path);
}

static void read_workload(struct scenario_loader *loader, const struct workload *workload,
	const char **text, struct program_params *program, struct program_point **ret_points)
{
	char word[SCENARIO_WORD_MAX];
	uint64_t sizes[2] = { 0 };

	program->type = workload->type;
	program->period_us = DAY_US;
	program->times = 1;
	for (unsigned int i = 0; i < workload->sizes; i++) {
		if (!scenario_next_word(text, word)) {
			scenario_wrong(loader, "write run %s", workload->usage);
			return;
		}
		if (!scenario_read_size(loader, word, &sizes[i]))
			return;
	}
	program->low = workload->sizes == 2 ? sizes[0] : 0;
	program->bytes = workload->sizes == 2 ? sizes[1] : sizes[0];
	if (workload->sizes && (!program->bytes || program->low > program->bytes))
		scenario_wrong(loader, "write run %s", workload->usage);
	if (workload->count && !read_number(loader, text, 1000000, &program->times))
		return;
	if (workload->type == PROGRAM_TRACE) {
		if (scenario_next_word(text, word))
			read_trace(loader, word, program, ret_points);
		else
			scenario_wrong(loader, "write run %s", workload->usage);
	}
	while (scenario_next_word(text, word)) {
		if (!strcmp(word, "write") && workload->type == PROGRAM_STREAM)
			program->write = true;
		else if (!strcmp(word, "parallel") &&
			 (workload->type == PROGRAM_STREAM || workload->type == PROGRAM_KBUILD))
			read_number(loader, text, PROGRAM_JOBS_MAX, &program->parallel);
		else if (!strcmp(word, "cpus") && workload->type == PROGRAM_KBUILD)
			read_number(loader, text, PROGRAM_JOBS_MAX, &program->cpus);
		else if (!strcmp(word, "times") && workload->type == PROGRAM_GZIP)
			read_number(loader, text, 10000, &program->times);
		else if (!strcmp(word, "period") && workload->type == PROGRAM_DIURNAL)
			read_fault_time(loader, text, &program->period_us);
		else
			scenario_wrong(
				loader, "'%s' is too much; write run %s", word, workload->usage);
	}
	if (!program->period_us)
		scenario_wrong(loader, "a period takes some time");
}

static void read_run(
	struct scenario_loader *loader, const char *vm, uint64_t time, const char *text)
{
	struct sim_action action = { .type = SIM_RUN };
	struct program_point *points = NULL;
	const struct workload *workload = NULL;
	struct scenario_step *step;
	char word[SCENARIO_WORD_MAX] = "";

	scenario_next_word(&text, word);
	for (size_t i = 0; i < NR(workloads) && !workload; i++)
		if (!strcmp(workloads[i].word, word))
			workload = &workloads[i];
	if (!workload) {
		scenario_wrong(loader,
			"'%s' is no workload; there are stream, mem_eater, kbuild, gzip, diurnal "
			"and trace",
			word);
		return;
	}
	read_workload(loader, workload, &text, &action.program, &points);
	step = scenario_is_wrong(loader) ? NULL : add_step(loader, time, vm);
	if (!step) {
		free(points);
		return;
	}
	step->action = action;
	step->points = points;
}

void scenario_read_step(
	struct scenario_loader *loader, const char *vm, uint64_t time, const char *text)
{
	struct sim_action action = { .rate = RATE_DEFAULT };
	const struct verb *verb = NULL;
	struct scenario_step *step;
	char word[SCENARIO_WORD_MAX] = "";

	scenario_next_word(&text, word);
	if (!strcmp(word, "fault")) {
		read_fault(loader, vm, time, text);
		return;
	}
	if (!strcmp(word, "run") && vm) {
		read_run(loader, vm, time, text);
		return;
	}
	for (size_t i = 0; i < NR(verbs) && !verb; i++)
		if (!strcmp(verbs[i].word, word) && verbs[i].host == !vm)
			verb = &verbs[i];
	if (!verb) {
		scenario_wrong(
			loader, "'%s' is nothing that happens to a %s", word, vm ? "VM" : "host");
		return;
	}
	action.type = verb->type;
	action.work = verb->work;
	if (verb->size && (!scenario_next_word(&text, word) ||
				  !scenario_read_size(loader, word, &action.bytes))) {
		scenario_wrong(loader, "%s: how much?", verb->word);
		return;
	}
	if (verb->rate && scenario_next_word(&text, word)) {
		if (strcmp(word, "rate") || !scenario_next_word(&text, word) ||
			!scenario_read_size(loader, word, &action.rate) || !action.rate)
			scenario_wrong(loader, "%s SIZE rate SIZE: the rate is that of a second",
				verb->word);
	}
	if (text[strspn(text, " \t")])
		scenario_wrong(loader, "'%.40s' is too much", text + strspn(text, " \t"));
	step = scenario_is_wrong(loader) ? NULL : add_step(loader, time, vm);
	if (step)
		step->action = action;
}

static const struct {
	const char *word;
	enum scenario_step_type type;
	bool who; /* must say whom */
} operator_words[] = {
	{ "reclaim", SCENARIO_RECLAIM, false },
	{ "restart", SCENARIO_RESTART, false },
	{ "pause", SCENARIO_PAUSE, false },
	{ "resume", SCENARIO_RESUME, false },
	{ "release", SCENARIO_RELEASE, true },
};

/* reclaim SIZE [of WHO], restart, pause [VM], resume [VM], release WHO */
void scenario_read_operator(struct scenario_loader *loader, const char *name, const char *text)
{
	struct scenario_step *step;
	char word[SCENARIO_WORD_MAX] = "", size[SCENARIO_WORD_MAX] = "",
	     who[SCENARIO_WORD_MAX] = "/";
	uint64_t time, bytes = 0;
	size_t i = 0;

	if (!scenario_read_at(loader, name, &time)) {
		scenario_wrong(loader,
			"write at TIME = reclaim SIZE [of WHO], restart, pause [VM], "
			"resume [VM] or release WHO");
		return;
	}
	scenario_next_word(&text, word);
	while (i < NR(operator_words) && strcmp(operator_words[i].word, word) != 0)
		i++;
	if (i == NR(operator_words)) {
		scenario_wrong(loader, "'%s' is nothing that an operator does", word);
		return;
	}
	if (operator_words[i].type == SCENARIO_RECLAIM) {
		if (!scenario_next_word(&text, size) || !scenario_read_size(loader, size, &bytes))
			scenario_wrong(loader, "reclaim: how much?");
		if (scenario_next_word(&text, word) &&
			(strcmp(word, "of") || !scenario_next_word(&text, who)))
			scenario_wrong(loader, "write reclaim SIZE of WHO");
	} else if (operator_words[i].type != SCENARIO_RESTART) {
		if (!scenario_next_word(&text, who) && operator_words[i].who)
			scenario_wrong(loader, "%s: whom?", operator_words[i].word);
	}
	if (text[strspn(text, " \t")])
		scenario_wrong(loader, "'%.40s' is too much", text + strspn(text, " \t"));
	step = scenario_is_wrong(loader) ? NULL : add_step(loader, time, NULL);
	if (!step)
		return;
	step->type = operator_words[i].type;
	step->bytes = bytes;
	step->who = strdup(who);
	if (!step->who)
		scenario_out_of_memory(loader);
}
