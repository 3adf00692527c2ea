/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What operators read: what happened, to which VM, from how much to how much. A state that goes on
 * is told where it begins and where it ends.
 */
#include <config.h>

#include "hv/core_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/size.h"

#define SIZE(pages) size_format(core_bytes(pages), (char[SIZE_TEXT]){ 0 }, SIZE_TEXT)

static void say(const struct core *core, const struct core_vm *vm, struct core_line line,
	const char *format, va_list args)
{
	char text[1024];

	if (!core->config.log)
		return;
	vsnprintf(text, sizeof(text), format, args);
	line.vm = vm ? &vm->uuid : NULL;
	line.name = vm ? vm->name : NULL;
	line.text = text;
	core->config.log(core->config.log_ctx, &line);
}

void core_say(const struct core *core, enum core_log_level level, const struct core_vm *vm,
	const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(core, vm, (struct core_line){ .level = level }, format, args);
	va_end(args);
}

void core_say_as(const struct core *core, enum core_log_level level, const struct core_vm *vm,
	const char *message_id, const char *action, const char *format, ...)
{
	const struct core_line line = {
		.level = level, .message_id = message_id, .action = action
	};
	va_list args;

	va_start(args, format);
	say(core, vm, line, format, args);
	va_end(args);
}

const char *core_error_text(const struct hv_event *event)
{
	return event->message ? event->message : strerror(-event->error);
}

static const char *name_of(const struct core *core, uint64_t root)
{
	const char *name = core_name(core, root);

	if (root == MEMCG_ROOT_ID)
		return "the pool";
	return name ? name : "a group that has gone";
}

void core_say_action(
	struct core *core, const struct core_vm *vm, const struct engine_action *action)
{
	const struct engine_reason *reason = &action->reason;
	const char *from = SIZE(reason->from ? reason->from : reason->actual);
	const char *name = engine_reason_name(reason->type);

	if (reason->inside && reason->to < reason->from)
		core_say_as(core, CORE_LOG_INFO, vm, MESSAGE_TARGET, name,
			"its agent is to free %s: %s in step %u for %s, which needs %s",
			SIZE(reason->from - reason->to), name, reason->step,
			name_of(core, reason->root), SIZE(reason->need));
	else if (reason->inside)
		core_say_as(core, CORE_LOG_INFO, vm, MESSAGE_TARGET, name,
			"its agent need not free %s: %s", SIZE(reason->to - reason->from), name);
	else if (reason->step > 0)
		core_say_as(core, CORE_LOG_INFO, vm, MESSAGE_TARGET, name,
			"target %s -> %s: %s in step %u for %s, which needs %s", from,
			SIZE(action->target), name, reason->step, name_of(core, reason->root),
			SIZE(reason->need));
	else
		core_say_as(core, CORE_LOG_INFO, vm, MESSAGE_TARGET, name, "target %s -> %s: %s",
			from, SIZE(action->target), name);
}

/* The flag of a root that is short: a group's or a VM's own. */
static bool *short_flag(const struct core *core, uint64_t root)
{
	struct core_group *group = core_group_by_id(core, root);
	struct core_vm *vm = core_vm_by_id(core, root);

	if (group)
		return &group->is_short;
	return vm ? &vm->said_short : NULL;
}

static void say_short(struct core *core, const struct engine_event *event)
{
	bool over = event->type == ENGINE_EVENT_SHORT_OVER;
	bool *flag = short_flag(core, event->id);

	if (!flag || *flag == !over)
		return;
	*flag = !over;
	if (over)
		core_say_as(core, CORE_LOG_NOTICE, core_vm_by_id(core, event->id),
			MESSAGE_SHORT_OVER, NULL, "%s is no longer short",
			name_of(core, event->id));
	else
		core_say_as(core, CORE_LOG_WARNING, core_vm_by_id(core, event->id), MESSAGE_SHORT,
			NULL,
			"%s is short: %s that no VM can give; 'ballastctl explain' says why for "
			"each",
			name_of(core, event->id), SIZE(event->a));
}

static void say_below_min(struct core *core, const struct engine_event *event)
{
	char text[SIZE_TEXT];

	if (core->below_min)
		return;
	core->below_min = true;
	core_say_as(core, CORE_LOG_ERROR, NULL, MESSAGE_BELOW_MIN, NULL,
		"memory is nearly gone: %s free, below wm-min %s; steps are larger, and what "
		"comes too late is asked of others",
		size_format_signed(event->b * (int64_t)POLICY_PAGE_SIZE, text, sizeof(text)),
		SIZE(event->a));
}

/* Ends what say_below_min() began. */
void core_say_view(struct core *core)
{
	const struct engine_pool_view *view = &core->view;
	char text[SIZE_TEXT];

	if (!core->below_min || !view->known || view->free < (int64_t)view->wm_min)
		return;
	core->below_min = false;
	core_say_as(core, CORE_LOG_NOTICE, NULL, MESSAGE_ABOVE_MIN, NULL,
		"memory is above wm-min again: %s free",
		size_format_signed(view->free * (int64_t)POLICY_PAGE_SIZE, text, sizeof(text)));
}

static void say_of_vm(struct core *core, const struct engine_event *event)
{
	struct core_vm *vm = core_vm_by_id(core, event->id);
	uint64_t b = event->b > 0 ? (uint64_t)event->b : 0;

	if (!vm)
		return;
	switch (event->type) {
	case ENGINE_EVENT_ASK_CAME:
		vm->said_failed = vm->said_contended = false;
		core_say_as(core, CORE_LOG_INFO, vm, MESSAGE_ASK_CAME, NULL, "gave %s of %s",
			SIZE(b), SIZE(event->a));
		break;
	case ENGINE_EVENT_ASK_FAILED:
		if (vm->held.inside) {
			core_say_as(core, CORE_LOG_INFO, vm, MESSAGE_ASK_FAILED, NULL,
				"its agent gave the host only %s of %s: its balloon is asked",
				SIZE(b), SIZE(event->a));
			break;
		}
		core_say_as(core, vm->said_failed ? CORE_LOG_DEBUG : CORE_LOG_WARNING, vm,
			MESSAGE_ASK_FAILED, NULL,
			"gave only %s of %s before its deadline; it is asked for less, and later",
			SIZE(b), SIZE(event->a));
		vm->said_failed = true;
		break;
	case ENGINE_EVENT_WISH:
		core_say_as(core, CORE_LOG_NOTICE, vm, MESSAGE_WISH, NULL,
			"somebody else set its balloon: its ceiling is %s -> %s", SIZE(event->a),
			SIZE(b));
		break;
	case ENGINE_EVENT_CONTENDED:
		core_say_as(core, vm->said_contended ? CORE_LOG_DEBUG : CORE_LOG_WARNING, vm,
			MESSAGE_CONTENDED, NULL,
			"rests at %s above its target %s: somebody else moves its balloon, or the "
			"guest; it is left alone for a while",
			SIZE(b), SIZE(event->a));
		vm->said_contended = true;
		break;
	default:
		break;
	}
}

static void say_job(struct core *core, const struct engine_event *event)
{
	uint64_t came = event->b > 0 ? (uint64_t)event->b : 0;
	const char *how = "done";

	if (event->type == ENGINE_EVENT_JOB_SHORT)
		how = "ends short: nobody can give more";
	else if (event->type == ENGINE_EVENT_JOB_CANCELLED)
		how = "cancelled";
	core_say(core, CORE_LOG_NOTICE, NULL, "request %" PRIu64 " %s: %s of %s came", event->id,
		how, SIZE(came), SIZE(event->a));
}

void core_say_event(struct core *core, const struct engine_event *event)
{
	switch (event->type) {
	case ENGINE_EVENT_SHORT:
	case ENGINE_EVENT_SHORT_OVER:
		say_short(core, event);
		break;
	case ENGINE_EVENT_BELOW_MIN:
		say_below_min(core, event);
		break;
	case ENGINE_EVENT_ASK_CAME:
	case ENGINE_EVENT_ASK_FAILED:
	case ENGINE_EVENT_WISH:
	case ENGINE_EVENT_CONTENDED:
		say_of_vm(core, event);
		break;
	case ENGINE_EVENT_JOB_DONE:
	case ENGINE_EVENT_JOB_SHORT:
	case ENGINE_EVENT_JOB_CANCELLED:
		say_job(core, event);
		break;
	}
}
