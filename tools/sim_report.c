/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a run of a scenario tells; see sim_report.h. */
#include <config.h>

#include "tools/sim_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/size.h"
#include "common/text.h"
#include "policy/pages.h"

#define US_PER_S 1000000.0

/* Names, titles and sentences are a file's: none of it speaks to the terminal. */
#define SHOWN_MAX   1024
#define SHOWN(text) text_printable(text, (char[SHOWN_MAX]){ 0 }, SHOWN_MAX)

/* A VM as the hypervisor sees it. */
struct picture {
	uint64_t actual, usage, resident, swapped;
};

struct report {
	const struct scenario *scenario;
	const char *file;
	struct virtual *virtual;
	bool silent, begun;
	struct picture *before; /* a VM each */
	uint64_t decisions;
};

static struct picture picture_of(const struct report *report, size_t i)
{
	struct sim_vm_view view;

	if (sim_vm_view(virtual_sim(report->virtual), report->scenario->vms[i].sim.name, &view) < 0)
		return (struct picture){ 0 };
	return (struct picture){ guest_actual(view.guest), guest_usage(view.guest),
		guest_resident(view.guest), view.guest->host_swapped };
}

int report_new(const struct scenario *scenario, const char *file, struct virtual *virtual,
	bool silent, struct report **ret_report)
{
	struct report *report = calloc(1, sizeof *report);

	if (!report)
		return -ENOMEM;
	report->before = calloc(scenario->nr_vms, sizeof *report->before);
	if (!report->before) {
		free(report);
		return -ENOMEM;
	}
	report->scenario = scenario;
	report->file = file;
	report->virtual = virtual;
	report->silent = silent;
	*ret_report = report;
	return 0;
}

void report_free(struct report *report)
{
	if (!report)
		return;
	free(report->before);
	free(report);
}

void report_step(struct report *report)
{
	if (report->begun)
		return;
	report->begun = true;
	for (size_t i = 0; i < report->scenario->nr_vms; i++)
		report->before[i] = picture_of(report, i);
	if (report->silent)
		return;
	printf("%s\n\n", SHOWN(report->scenario->title ? report->scenario->title : report->file));
}

/* ---- as it happens ---- */

static const char *pages_text(uint64_t pages, char *text)
{
	return pages >= PAGES_UNLIMITED ? "none"
					: size_format(pages * POLICY_PAGE_SIZE, text, SIZE_TEXT);
}

static void tell_action(const struct report *report, const struct engine_action *action)
{
	const struct engine_reason *reason = &action->reason;
	const char *name = core_name(virtual_core(report->virtual), action->id);
	char from[SIZE_TEXT], to[SIZE_TEXT], need[SIZE_TEXT], free_text[SIZE_TEXT];

	printf("%8.2f s  %-10s %-7s %s -> %s", (double)reason->at / US_PER_S,
		name ? SHOWN(name) : "?", engine_reason_name(reason->type),
		pages_text(reason->from, from), pages_text(reason->to, to));
	if (reason->step)
		printf(", step %u, need %s", reason->step, pages_text(reason->need, need));
	printf(", free %s\n", size_format_signed(reason->free * (int64_t)POLICY_PAGE_SIZE,
				      free_text, sizeof free_text));
}

void report_tick(struct report *report, const struct engine_output *output)
{
	report->decisions += output->nr_actions;
	for (size_t i = 0; i < output->nr_actions && !report->silent; i++)
		tell_action(report, &output->actions[i]);
}

void report_log(struct report *report, const struct core_line *line)
{
	/* Decisions are told above; what is left is what an operator has to know. */
	if (report->silent || line->level > CORE_LOG_WARNING)
		return;
	printf("%8.2f s  %-10s %s\n", (double)virtual_now(report->virtual) / US_PER_S,
		line->name ? SHOWN(line->name) : "", SHOWN(line->text));
}

/* ---- at the end ---- */

static const char *bytes_text(uint64_t bytes, char *text)
{
	return bytes == HV_UNLIMITED ? "none" : size_format(bytes, text, SIZE_TEXT);
}

static uint64_t soft_limit_of(const struct sim_vm *vm)
{
	if (vm->metadata.has_soft_limit)
		return vm->metadata.soft_limit;
	return vm->memtune.has_soft_limit ? vm->memtune.soft_limit : HV_UNLIMITED;
}

static void print_row(const struct report *report, size_t i)
{
	const struct sim_vm *vm = &report->scenario->vms[i].sim;
	const struct picture *before = &report->before[i];
	struct picture after = picture_of(report, i);
	char texts[7][SIZE_TEXT];
	struct sim_vm_view view;

	if (sim_vm_view(virtual_sim(report->virtual), vm->name, &view) < 0)
		return;
	printf("%-10s %11s | %11s %11s | %11s %11s | %13s %11s\n", SHOWN(vm->name),
		bytes_text(soft_limit_of(vm), texts[0]), bytes_text(before->actual, texts[1]),
		bytes_text(after.actual, texts[2]), bytes_text(before->resident, texts[3]),
		bytes_text(after.resident, texts[4]),
		view.targets ? bytes_text(view.lowest_target, texts[5]) : "never cut",
		bytes_text(after.swapped, texts[6]));
}

bool report_right(const struct report *report)
{
	for (size_t i = 0; i < report->scenario->nr_expects; i++)
		if (report->scenario->expects[i].state != EXPECT_HELD)
			return false;
	return true;
}

int report_text(struct report *report, bool quiet)
{
	const struct scenario *s = report->scenario;

	if (!quiet) {
		printf("\nBefore and after, from the hypervisor:\n");
		printf("%-10s %11s | %11s %11s | %11s %11s | %13s %11s\n", "VM", "soft limit",
			"actual", "after", "resident", "after", "lowest target", "swapped");
		for (size_t i = 0; i < s->nr_vms; i++)
			print_row(report, i);
		putchar('\n');
	}
	for (size_t i = 0; i < s->nr_expects; i++) {
		const struct expect *expect = &s->expects[i];
		bool held = expect->state == EXPECT_HELD;

		if (quiet && held)
			continue;
		printf("%s  %s", held ? "held  " : "FAILED", SHOWN(expect->text));
		if (!held)
			printf("   (%s:%u; at %.2f s: %s)", SHOWN(report->file), expect->line,
				(double)expect->settled_at / US_PER_S, expect->why);
		putchar('\n');
	}
	if (!quiet && s->nr_expects)
		printf("\n%s after %.0f simulated seconds and %" PRIu64 " decisions.\n",
			report_right(report) ? "The outcome is right" : "The outcome is WRONG",
			(double)s->length / US_PER_S, report->decisions);
	return 0;
}

/* ---- JSON ---- */

static struct json_object *picture_json(const struct picture *picture, int *error)
{
	struct json_object *object = json_object_new_object();

	if (!object)
		*error = -ENOMEM;
	json_put_u64(object, "actual_bytes", picture->actual, error);
	json_put_u64(object, "usage_bytes", picture->usage, error);
	json_put_u64(object, "resident_bytes", picture->resident, error);
	json_put_u64(object, "swapped_bytes", picture->swapped, error);
	return object;
}

static struct json_object *vm_json(const struct report *report, size_t i, int *error)
{
	const struct sim_vm *vm = &report->scenario->vms[i].sim;
	struct json_object *object = json_object_new_object();
	struct picture after = picture_of(report, i);
	struct sim_vm_view view;

	if (!object)
		*error = -ENOMEM;
	json_put_string(object, "name", vm->name, error);
	json_put_u64(object, "maximum_bytes", vm->guest.maximum, error);
	if (soft_limit_of(vm) != HV_UNLIMITED)
		json_put_u64(object, "soft_limit_bytes", soft_limit_of(vm), error);
	json_put_value(object, "before", picture_json(&report->before[i], error), error);
	json_put_value(object, "after", picture_json(&after, error), error);
	if (sim_vm_view(virtual_sim(report->virtual), vm->name, &view) == 0) {
		json_put_u64(object, "targets", view.targets, error);
		if (view.targets)
			json_put_u64(object, "lowest_target_bytes", view.lowest_target, error);
	}
	return object;
}

static struct json_object *expect_json(const struct expect *expect, int *error)
{
	struct json_object *object = json_object_new_object();

	if (!object)
		*error = -ENOMEM;
	json_put_u64(object, "line", expect->line, error);
	json_put_string(object, "text", expect->text, error);
	json_put_bool(object, "held", expect->state == EXPECT_HELD, error);
	json_put_u64(object, "time_us", expect->settled_at, error);
	json_put_string(object, "read", expect->why, error);
	return object;
}

int report_json(struct report *report)
{
	const struct scenario *s = report->scenario;
	struct json_object *root = json_object_new_object(), *vms = json_object_new_array(),
			   *expects = json_object_new_array();
	int r = root && vms && expects ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->nr_vms && r == 0; i++)
		json_push(vms, vm_json(report, i, &r), &r);
	for (size_t i = 0; i < s->nr_expects && r == 0; i++)
		json_push(expects, expect_json(&s->expects[i], &r), &r);
	json_put_u64(root, "schema_version", 1, &r);
	if (s->title)
		json_put_string(root, "title", s->title, &r);
	json_put_bool(root, "right", report_right(report), &r);
	json_put_u64(root, "length_us", s->length, &r);
	json_put_u64(root, "decisions", report->decisions, &r);
	json_put_value(root, "vms", vms, &r);
	json_put_value(root, "expectations", expects, &r);
	if (r == 0)
		puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY));
	json_object_put(root);
	return r;
}
