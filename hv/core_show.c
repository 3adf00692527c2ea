/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose word counts for a VM, and what of it does not do what it seems to. Only reads the engine.
 */
#include <config.h>

#include "hv/core_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/size.h"
#include "common/text.h"

/* Groups whose warnings are said one by one. */
#define GROUP_WARNINGS_MAX 16

#define SIZE(pages) size_format(core_bytes(pages), (char[SIZE_TEXT]){ 0 }, SIZE_TEXT)

__attribute__((format(printf, 2, 3))) static void warn(
	struct core_knobs_view *view, const char *format, ...)
{
	va_list args;

	if (view->nr_warnings == CORE_WARNINGS_MAX)
		return;
	va_start(args, format);
	vsnprintf(view->warnings[view->nr_warnings], sizeof(view->warnings[0]), format, args);
	va_end(args);
	text_mend(view->warnings[view->nr_warnings++]);
}

#define FROM(knob)                                                                                 \
	core_word_source(&view->knobs[knob].words[view->knobs[knob].counts], (char[80]){ 0 }, 80)

static void warn_of_knobs(const struct memcg_knobs *knobs, struct core_knobs_view *view)
{
	if (knobs->soft_limit < knobs->low)
		warn(view,
			"soft-limit %s (%s) is below low %s (%s): what is between is kept as long "
			"as others without such protection can give",
			SIZE(knobs->soft_limit), FROM(CORE_SOFT_LIMIT), SIZE(knobs->low),
			FROM(CORE_LOW));
	if (knobs->soft_limit < knobs->min)
		warn(view, "soft-limit %s (%s) is below min %s (%s): nothing is taken below min",
			SIZE(knobs->soft_limit), FROM(CORE_SOFT_LIMIT), SIZE(knobs->min),
			FROM(CORE_MIN));
	if (knobs->soft_limit != PAGES_UNLIMITED && knobs->soft_limit > knobs->max)
		warn(view, "soft-limit %s (%s) is over max %s (%s): max counts",
			SIZE(knobs->soft_limit), FROM(CORE_SOFT_LIMIT), SIZE(knobs->max),
			FROM(CORE_MAX));
	if (knobs->low > knobs->max)
		warn(view, "low %s (%s) is over max %s (%s): max counts", SIZE(knobs->low),
			FROM(CORE_LOW), SIZE(knobs->max), FROM(CORE_MAX));
}

static void warn_of_floor(
	const struct memcg_knobs *knobs, uint64_t floor, struct core_knobs_view *view)
{
	if (knobs->soft_limit < floor)
		warn(view,
			"soft-limit %s (%s) is below the floor %s: nothing is taken below the "
			"floor",
			SIZE(knobs->soft_limit), FROM(CORE_SOFT_LIMIT), SIZE(floor));
	if (knobs->min > 0 && knobs->min < floor)
		warn(view, "min %s (%s) changes nothing: the floor %s is higher", SIZE(knobs->min),
			FROM(CORE_MIN), SIZE(floor));
	if (knobs->max < floor)
		warn(view, "max %s (%s) is below the floor %s: it cannot be kept to",
			SIZE(knobs->max), FROM(CORE_MAX), SIZE(floor));
}

/* Somebody made it so small: nothing is wrong, but who wonders why it never gives should know. */
static void warn_of_size(const struct core_vm *vm, uint64_t floor, struct core_knobs_view *view)
{
	uint64_t actual;

	if (vm->actual_known && core_pages_up(vm->actual, &actual) && actual > 0 && actual < floor)
		warn(view, "it has %s, less than its floor %s: nothing is taken of it",
			SIZE(actual), SIZE(floor));
}

static uint64_t floor_of(const struct core *core, const struct core_vm *vm)
{
	struct engine_view view;

	return engine_view(core->engine, vm->told.id, &view) < 0 ? 0 : view.set.floor;
}

static int fill(const struct core *core, const struct core_vm *vm, uint64_t floor,
	struct core_knobs_view *ret_view)
{
	const struct hv_info said = core_vm_limited(vm, &vm->said);
	struct core_resolved resolved;
	int r = core_resolve(&core->config, &said, vm->min_room, &resolved);

	if (r < 0)
		return r;
	memset(ret_view, 0, sizeof(*ret_view));
	memcpy(ret_view->knobs, resolved.said, sizeof(ret_view->knobs));
	memcpy(ret_view->problem, resolved.problem, sizeof(ret_view->problem));
	warn_of_knobs(&resolved.knobs, ret_view);
	warn_of_floor(&resolved.knobs, floor, ret_view);
	warn_of_size(vm, floor, ret_view);
	return 0;
}

int core_vm_knobs(const struct core *core, uint64_t id, struct core_knobs_view *ret_view)
{
	const struct core_vm *vm = core_vm_by_told_id(core, id);

	if (!vm || vm->gone || !vm->has_info)
		return -ENOENT;
	return fill(core, vm, floor_of(core, vm), ret_view) < 0 ? -ENOENT : 0;
}

void core_say_warnings(struct core *core, struct core_vm *vm)
{
	uint64_t floor = floor_of(core, vm);
	struct core_knobs_view view;

	if (!vm->has_info || floor == 0 ||
		(core_same_knobs(&vm->knobs, &vm->warned.knobs) && floor == vm->warned.floor))
		return;
	vm->warned.knobs = vm->knobs;
	vm->warned.floor = floor;
	if (fill(core, vm, floor, &view) < 0)
		return;
	for (size_t i = 0; i < view.nr_warnings; i++)
		core_say(core, CORE_LOG_WARNING, vm, "%s", view.warnings[i]);
}

void core_say_group_warnings(const struct core *core)
{
	size_t nr = 0;

	for (size_t i = 0; i < core->config.nr_groups; i++) {
		const struct core_group_knobs *group = &core->config.groups[i];

		if (group->knobs.soft_limit >= group->knobs.low || nr++ >= GROUP_WARNINGS_MAX)
			continue;
		core_say(core, CORE_LOG_WARNING, NULL,
			"group %s: soft-limit %s is below low %s: what is between is kept as long "
			"as others without such protection can give",
			group->path, SIZE(group->knobs.soft_limit), SIZE(group->knobs.low));
	}
	if (nr > GROUP_WARNINGS_MAX)
		core_say(core, CORE_LOG_WARNING, NULL,
			"the soft-limit of %zu more groups is below their low",
			nr - GROUP_WARNINGS_MAX);
}
