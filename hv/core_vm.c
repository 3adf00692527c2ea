/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * VMs: how they come and go, what their descriptions say, and whether their statistics move.
 *
 * What a call brings that was made before is not always of now: after a reboot the statistics are
 * not (struct core_vm.life), after a move or a restart nothing is (its id is another).
 */
#include <config.h>

#include "hv/core_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"

struct core_vm *core_vm_find(const struct core *core, const struct hv_uuid *uuid)
{
	struct core_vm *vm;

	HASH_FIND(hh, core->vms, uuid, sizeof(*uuid), vm);
	return vm;
}

struct core_vm *core_vm_by_id(const struct core *core, uint64_t id)
{
	struct core_vm *vm;

	HASH_FIND(hh_id, core->vms_by_id, &id, sizeof(id), vm);
	return vm;
}

struct core_vm *core_vm_by_told_id(const struct core *core, uint64_t id)
{
	struct core_vm *vm = core_vm_by_id(core, id);

	if (vm)
		return vm->told.id == id ? vm : NULL;
	/* Who has another by now is to be told so. */
	DL_FOREACH2(core->dirty, vm, dirty_next)
	if (id != 0 && vm->told.id == id)
		return vm;
	return NULL;
}

int core_vm_set_id(struct core *core, struct core_vm *vm, uint64_t id)
{
	if (vm->id)
		HASH_DELETE(hh_id, core->vms_by_id, vm);
	vm->id = id;
	if (id == 0)
		return 0;
	HASH_ADD(hh_id, core->vms_by_id, id, sizeof(vm->id), vm);
	if (!vm->hh_id.tbl) {
		vm->id = 0;
		return -ENOMEM;
	}
	return 0;
}

/* ---- coming and going ---- */

/* Who is seen for the first time while we watch has just come, and so has who is starting. */
static void start_life(struct core *core, struct core_vm *vm, uint64_t now, enum hv_run_state run)
{
	vm->run = run;
	vm->told_job = HV_JOB_NONE;
	vm->arriving = core->listed || run == HV_STARTING;
	vm->ran = run == HV_RUNNING || (run == HV_PAUSED && !core->listed);
	vm->arrived = now;
	vm->driver = vm->rearmed = false;
	vm->period_set_s = 0;
	core_vm_forget_stats(vm, now);

	vm->lane.want_info = true;
	vm->due = now + core->config.vm_us;
	DL_APPEND2(core->due, vm, due_prev, due_next);
	core_vm_ready(core, vm);
}

int core_vm_add(struct core *core, uint64_t now, const struct hv_listed *listed)
{
	struct core_vm *vm;

	if (core->nr_vms >= CORE_MAX_VMS)
		return -ENOSPC;
	vm = calloc(1, sizeof(*vm));
	if (!vm)
		return -ENOMEM;
	vm->uuid = listed->uuid;
	vm->name = strdup(listed->name);
	if (!vm->name)
		goto fail;
	HASH_ADD(hh, core->vms, uuid, sizeof(vm->uuid), vm);
	if (!vm->hh.tbl)
		goto fail;
	core->nr_vms++;
	lane_init(&vm->lane, &vm->uuid);
	vm->ready = CORE_READY_NOT;
	vm->soft_source = "none";
	vm->listed = core->list_nr;
	vm->listed_job = listed->job;
	vm->usage_low = vm->stats_usage = UINT64_MAX;
	start_life(core, vm, now, listed->state);
	return 0;
fail:
	free(vm->name);
	free(vm);
	return -ENOMEM;
}

/* One that had gone, and whose last call is still out, is there again. */
void core_vm_back(
	struct core *core, struct core_vm *vm, uint64_t now, const struct hv_listed *listed)
{
	vm->gone = vm->looked = false;
	vm->listed_job = listed->job;
	start_life(core, vm, now, listed->state);
}

/* Its min in the sums of its group and those above. */
static void book_min(struct core_vm *vm, uint64_t pages)
{
	if (!vm->group)
		return;
	core_min_sub(vm->group, vm->min_booked);
	core_min_add(vm->group, pages);
	vm->min_booked = pages;
}

static void leave_lists(struct core *core, struct core_vm *vm)
{
	core_vm_not_ready(core, vm);
	if (vm->due_prev) {
		DL_DELETE2(core->due, vm, due_prev, due_next);
		vm->due_prev = vm->due_next = NULL;
	}
}

/* Forgets all that is of one life only, so that one that comes back starts anew. */
static void end_life(struct core *core, struct core_vm *vm)
{
	struct lane *lane = &vm->lane;

	core_change_drop(core, vm, "the VM has gone");
	core_agent_drop(core, vm);
	vm->agent = (struct hv_agent){ 0 };
	vm->agent_at = vm->agent_not_before = vm->agent_freed = 0;
	vm->said_agent_fault = false;
	vm->life++;
	lane->want_info = lane->want_target = lane->want_period = lane->want_stats = false;
	lane->want_unthrottle = false;
	lane->agent = HV_WAY_NONE;
	lane->act = false;
	lane->applied_seq = vm->stats_seq = vm->process_seq = 0;
	book_min(vm, 0);
	core_group_put(core, vm->group);
	vm->group = NULL;
	hv_info_clear(&vm->said);
	vm->has_info = vm->info_failing = vm->info_again = false;
	vm->stats_failing = vm->target_failing = vm->period_failing = vm->lift_failing = false;
	vm->has_stats = vm->actual_known = vm->has_result = vm->cancel = vm->release = false;
	vm->process = (struct hv_process){ 0 };
	vm->said_failed = vm->said_contended = vm->said_short = vm->said_silent = false;
	vm->said_throttled = vm->said_throttled_hard = vm->lifted = vm->lift_again = false;
	vm->started = vm->throttled_from = vm->throttled_at = 0;
	vm->kinds = 0;
	vm->beside = 0;
	vm->nr_stats = vm->job = vm->release_until = 0;
	vm->actual_high = vm->stats_actual = 0;
	vm->usage_low = vm->stats_usage = UINT64_MAX;
	vm->again = false;
}

void core_vm_leave(struct core *core, struct core_vm *vm)
{
	if (vm->told.id)
		core_say_as(core, CORE_LOG_INFO, vm, MESSAGE_GONE, NULL, "has gone");
	leave_lists(core, vm);
	end_life(core, vm);
	vm->gone = vm->drop = true;
	core_vm_set_id(core, vm, 0);
	if (vm->told.id)
		core_vm_dirty(core, vm);
	else
		core_vm_reap(core, vm);
}

/* Its process is another one than was seen before: another VM, under the same UUID. */
static void take_for_another(struct core *core, struct core_vm *vm, uint64_t now)
{
	core_say(core, CORE_LOG_INFO, vm, "was started anew");
	leave_lists(core, vm);
	end_life(core, vm);
	vm->drop = vm->told.id != 0;
	core_vm_set_id(core, vm, 0);
	start_life(core, vm, now, vm->run);
	vm->arriving = true;
	core_vm_dirty(core, vm);
}

static bool may_take_over(const struct core *core, const struct core_vm *vm)
{
	return core->config.memtune_takeover && core->config.engine.act && vm->has_info &&
	       vm->attrs.act;
}

/* What was wished, and is not ours to do any more. */
static void drop_takeover(const struct core *core, struct core_vm *vm)
{
	if (!vm->lane.want_unthrottle || may_take_over(core, vm))
		return;
	vm->lane.want_unthrottle = vm->lifted = false;
}

/* Throttled by its cgroup: a guest that crawls, and whose host side nobody sees working. */
static void look_at_throttle(struct core *core, struct core_vm *vm, uint64_t now)
{
	const struct hv_process *p = &vm->process;
	char limit[SIZE_TEXT];
	uint64_t rate;

	if (p->throttle == 0) {
		vm->said_throttled = vm->said_throttled_hard = vm->lifted = vm->lift_again = false;
		vm->throttled_at = 0;
		return;
	}
	if (!vm->said_throttled)
		core_say(core, CORE_LOG_WARNING, vm,
			"is throttled: its cgroup has memory.high %s (memtune sets it)",
			size_format(p->throttle, limit, sizeof(limit)));
	vm->said_throttled = true;
	if (may_take_over(core, vm) && !vm->lifted) {
		vm->lifted = vm->lane.want_unthrottle = true;
		core_vm_ready(core, vm);
	}
	if (vm->throttled_at && p->throttled >= vm->throttled_from &&
		now - vm->throttled_at >= 1000000) {
		rate = (p->throttled - vm->throttled_from) * 1000000 / (now - vm->throttled_at);
		if (rate >= CORE_THROTTLED_HARD && !vm->said_throttled_hard)
			core_say(core, CORE_LOG_ERROR, vm,
				"runs into memory.high %" PRIu64 " times a second: it hardly runs; "
				"lift the limit, or set memtune-takeover = yes",
				rate);
		vm->said_throttled_hard |= rate >= CORE_THROTTLED_HARD;
	} else if (vm->throttled_at) {
		return;
	}
	vm->throttled_from = p->throttled;
	vm->throttled_at = now;
}

/* What the pager did that an operator has to know, once for each kind. */
static void look_at_paging(struct core *core, struct core_vm *vm)
{
	const struct hv_paging *p = &vm->process.paging;
	struct hv_paging *said = &vm->said_paging;

	if (!p->paged)
		return;
	if (p->over && !said->over)
		core_say(core, CORE_LOG_WARNING, vm,
			"has pages over a max: no room came for them within a second; raise the "
			"max, or give those below it soft limits");
	if (p->failed && !said->failed)
		core_say(core, CORE_LOG_ERROR, vm,
			"touched pages that its memory file does not have any more: they are an "
			"error for it (SIGBUS)");
	if (p->left && !said->left)
		core_say(core, CORE_LOG_ERROR, vm,
			"touched memory that its VMM did not tell, or that cannot be filled by the "
			"page: such faults are the kernel's, and no limit holds for them");
	*said = *p;
}

void core_vm_process(
	struct core *core, struct core_vm *vm, uint64_t now, const struct hv_process *process)
{
	if (process->known && process->started) {
		if (vm->started && vm->started != process->started)
			take_for_another(core, vm, now);
		vm->started = process->started;
	}
	vm->process = *process;
	if (process->known && process->overhead > vm->beside)
		vm->beside = process->overhead;
	if (core_vm_usage(vm) < vm->usage_low)
		vm->usage_low = core_vm_usage(vm);
	vm->process_nr = core->process_nr;
	if (vm->process_mark < core->process_nr)
		vm->process_seq = vm->lane.applied_seq;
	look_at_throttle(core, vm, now);
	look_at_paging(core, vm);
}

void core_vm_free(struct core *core, struct core_vm *vm)
{
	leave_lists(core, vm);
	if (vm->dirty)
		DL_DELETE2(core->dirty, vm, dirty_prev, dirty_next);
	core_vm_set_id(core, vm, 0);
	HASH_DELETE(hh, core->vms, vm);
	core->nr_vms--;
	core_group_put(core, vm->group);
	core_group_put(core, vm->told.group);
	hv_info_clear(&vm->said);
	hv_change_clear(&vm->change);
	free(vm->problem);
	free(vm->name);
	free(vm);
}

void core_vm_reap(struct core *core, struct core_vm *vm)
{
	if (vm->gone && !vm->told.id && !vm->lane.busy)
		core_vm_free(core, vm);
}

void core_vm_drop_target(struct core *core, struct core_vm *vm, int error)
{
	uint64_t seq = vm->held.active ? vm->held.seq : vm->lane.seq;

	if (!vm->lane.want_target && !vm->held.active)
		return;
	core_agent_drop(core, vm);
	lane_drop_target(&vm->lane);
	core_vm_ready(core, vm);
	vm->has_result = true;
	vm->result = (struct engine_result){ .id = vm->id, .seq = seq, .error = error };
	core_vm_dirty(core, vm);
}

/* Whether what waits would take memory. Of an unknown actual nothing else can be said. */
static bool cut_waits(const struct core_vm *vm)
{
	return vm->held.active ||
	       (vm->lane.want_target && (!vm->actual_known || vm->lane.target < vm->actual));
}

void core_vm_drop_forbidden(struct core *core, struct core_vm *vm, uint64_t now)
{
	if (!vm->lane.want_target && !vm->held.active)
		return;
	if (!vm->attrs.act ? !vm->ends
			   : cut_waits(vm) &&
				     (vm->attrs.paused ||
					     !engine_vm_state_gives(core_vm_state(core, vm, now))))
		core_vm_drop_target(core, vm, -ECANCELED);
}

void core_vm_forget_stats(struct core_vm *vm, uint64_t now)
{
	vm->base = vm->moved = false;
	vm->watched = now;
	vm->readings = vm->still = 0;
}

/* The guest starts over or goes on after a rest: what runs is cancelled, old targets are not
 * replayed. */
static void start_over(struct core *core, struct core_vm *vm, uint64_t now)
{
	vm->life++;
	vm->cancel = vm->told.id != 0;
	core_vm_drop_target(core, vm, -ECANCELED);
	core_vm_forget_stats(vm, now);
	if (vm->has_info && vm->balloon)
		vm->lane.want_stats = true;
	core_vm_ready(core, vm);
	core_vm_dirty(core, vm);
}

void core_vm_reboot(struct core *core, struct core_vm *vm, uint64_t now)
{
	if (!vm->arriving)
		core_say(core, CORE_LOG_INFO, vm,
			"rebooted: it counts in full until its driver is seen");
	vm->arriving = true;
	vm->arrived = now;
	vm->driver = false;
	start_over(core, vm, now);
	core_vm_assess(core, vm, now);
}

void core_vm_run(
	struct core *core, struct core_vm *vm, uint64_t now, enum hv_run_state run, enum hv_job job)
{
	enum hv_run_state old = vm->run;

	vm->listed_job = job;
	/* One that ran here and waits for a migration goes; it does not come. */
	if (run == HV_STARTING && job == HV_JOB_MIGRATION && vm->ran)
		run = HV_PAUSED;
	if (run == old) {
		core_vm_assess(core, vm, now);
		return;
	}
	vm->run = run;
	if (run == HV_STARTING) {
		core_vm_reboot(core, vm, now);
	} else if (run == HV_PAUSED) {
		core_vm_drop_target(core, vm, -ECANCELED);
	} else {
		if (!vm->ran || old == HV_STARTING)
			vm->arrived = now;
		else
			start_over(core, vm, now);
		vm->ran = true;
		vm->lane.want_stats = vm->has_info && vm->balloon;
		core_vm_period(core, vm);
		core_vm_ready(core, vm);
	}
	core_vm_assess(core, vm, now);
}

/* ---- the description ---- */

/* Nobody's who could mind: off, or as ballast itself set it by an older configuration. */
static bool period_is_free(const struct core *core, const struct core_vm *vm)
{
	return vm->period_s == 0 ||
	       (vm->period_s == vm->period_set_s && vm->period_s != core->config.stats_period_s);
}

/*
 * On, and moved before, and then no more: a restore may have lost what was to ask the guest. Where
 * there are such statistics at all they are switched off and on, once.
 */
static bool to_be_rearmed(const struct core *core, const struct core_vm *vm)
{
	return !vm->rearmed && vm->driver && vm->period_s > 0 &&
	       !core->config.engine.bounds.silent_gives &&
	       core_vm_stands_still(core, vm, core->now) &&
	       !(vm->lane.busy && vm->lane.call.type == HV_PERIOD);
}

/*
 * Statistics that are off, or stand still, are switched on, where that is ours to do: else no
 * more.
 */
void core_vm_period(struct core *core, struct core_vm *vm)
{
	const struct core_config *config = &core->config;
	bool again = to_be_rearmed(core, vm);
	bool act = config->engine.act && vm->attrs.act;
	bool may = act || (config->observe_stats && vm->manage != HV_MANAGE_NO);

	vm->lane.act = act; /* told with the next description */
	vm->lane.want_period = false;
	if (!may || !vm->has_info || !vm->balloon || !(again || period_is_free(core, vm)) ||
		vm->run != HV_RUNNING || config->stats_period_s == 0)
		return;
	/* QEMU takes the period that it has for no news: see on_period(). */
	vm->lane.period_s = period_is_free(core, vm) ? config->stats_period_s : 0;
	vm->lane.want_period = true;
	core_vm_ready(core, vm);
}

static void say_problem(struct core *core, struct core_vm *vm, const char *problem)
{
	if (*problem && (!vm->problem || strcmp(vm->problem, problem)))
		core_say(core, CORE_LOG_WARNING, vm, "of its settings this is not used: %s",
			problem);
	free(vm->problem);
	vm->problem = *problem ? strdup(problem) : NULL; /* NULL: it will be said once more */
}

static const char *limit_text(uint64_t pages, char *text, size_t size)
{
	return pages == PAGES_UNLIMITED ? "none" : size_format(core_bytes(pages), text, size);
}

static void say_description(
	struct core *core, const struct core_vm *vm, const struct core_resolved *resolved)
{
	char maximum[SIZE_TEXT], soft[SIZE_TEXT], old[SIZE_TEXT];
	uint64_t limit = resolved->knobs.soft_limit;

	if (!vm->has_info)
		core_say_as(core, CORE_LOG_INFO, vm, MESSAGE_FOUND, NULL,
			"found: maximum %s, soft limit %s (%s), group %s%s",
			size_format(core_bytes(resolved->attrs.maximum), maximum, sizeof(maximum)),
			limit_text(limit, soft, sizeof(soft)), resolved->soft_source,
			resolved->group, resolved->attrs.act ? "" : ", not managed");
	else if (limit != vm->knobs.soft_limit)
		core_say(core, CORE_LOG_INFO, vm, "soft limit %s (%s) -> %s (%s)",
			limit_text(vm->knobs.soft_limit, old, sizeof(old)), vm->soft_source,
			limit_text(limit, soft, sizeof(soft)), resolved->soft_source);
}

/* The group of that path, or "/" where there are too many. */
static int find_group(struct core *core, const char *path, struct core_group **ret_group)
{
	int r = core_group_get(core, path, ret_group);

	if (r != -ENOSPC)
		return r;
	if (!core->said_groups)
		core_say(core, CORE_LOG_ERROR, NULL,
			"there are %d groups, and no more are made: VMs of others are put into /",
			CORE_MAX_GROUPS);
	core->said_groups = true;
	return core_group_get(core, "/", ret_group);
}

/* Another group is another life towards the engine: the old id goes, a new one comes, in one tick.
 */
static void change_group(struct core *core, struct core_vm *vm, struct core_group *group)
{
	if (vm->group == group) {
		core_group_put(core, group);
		return;
	}
	book_min(vm, 0);
	core_group_put(core, vm->group);
	vm->group = group;
	if (!vm->told.id)
		return;
	core_say(core, CORE_LOG_INFO, vm, "moves from group %s to %s", vm->told.group->path,
		group->path);
	vm->drop = true;
	vm->has_result = false;
	core_vm_set_id(core, vm, 0);
	core_agent_drop(core, vm);
	lane_drop_target(&vm->lane);
	core_vm_ready(core, vm);
	vm->lane.applied_seq = vm->stats_seq = vm->process_seq = 0;
}

uint64_t core_vm_min_room(struct core *core, struct core_vm *vm, const struct core_group *group)
{
	uint64_t booked = vm->min_booked, room;

	book_min(vm, 0); /* what others leave */
	room = core_min_room(core, group);
	book_min(vm, booked);
	return vm->min_checked && group == vm->group ? pages_max(room, booked) : room;
}

struct hv_info core_vm_limited(const struct core_vm *vm, const struct hv_info *info)
{
	struct hv_info limited = *info;
	uint64_t beside = vm->beside / CORE_BESIDE_STEP * CORE_BESIDE_STEP;

	if (vm->beside > beside)
		beside += CORE_BESIDE_STEP;
	/* One that leaves nothing stands in the way of the QEMU itself: it is no max of a guest. */
	limited.hard_limit = info->hard_limit > beside ? info->hard_limit - beside : 0;
	return limited;
}

/* Resolves what its sources say, and finds its group, with a reference. */
static int resolve(struct core *core, struct core_vm *vm, const struct hv_info *info,
	struct core_resolved *ret_resolved, struct core_group **ret_group)
{
	const struct hv_info limited = core_vm_limited(vm, info);
	struct core_group *group;
	int r;

	info = &limited;
	r = core_resolve(&core->config, info, PAGES_UNLIMITED, ret_resolved);
	if (r < 0)
		return r;
	r = find_group(core, ret_resolved->group, &group);
	if (r < 0)
		return r;
	vm->min_room = core_vm_min_room(core, vm, group);
	if (ret_resolved->knobs.min > vm->min_room)
		core_resolve(&core->config, info, vm->min_room, ret_resolved);
	*ret_group = group;
	return 0;
}

/* Who is listened to is told with a description: with the next, at once where somebody may be. */
static void choose_agent(struct core_vm *vm, enum hv_way agent, bool port)
{
	enum hv_way before = vm->lane.agent;

	if (agent == before)
		return;
	vm->lane.agent = agent;
	vm->lane.want_info |= port || agent == HV_WAY_QEMU_GA || before == HV_WAY_QEMU_GA;
}

/* 0; what resolve() says, and nothing has changed. */
static int take_info(
	struct core *core, struct core_vm *vm, uint64_t now, const struct hv_info *info)
{
	struct core_resolved resolved;
	struct core_group *group;
	int r;

	r = resolve(core, vm, info, &resolved, &group);
	if (r < 0)
		return r;
	change_group(core, vm, group);
	vm->min_checked =
		core->pool.known || (vm->min_checked && resolved.knobs.min <= vm->min_booked);
	book_min(vm, resolved.knobs.min);
	say_description(core, vm, &resolved);
	say_problem(core, vm, resolved.problem);

	if (!vm->has_info || (vm->period_s == 0 && info->stats_period_s > 0)) {
		vm->watched = now;
		vm->readings = 0;
	}
	if (!vm->has_info)
		vm->lane.want_stats = info->balloon && vm->ran;
	core->process.wake |= !vm->has_info; /* it is told to the engine with what it uses */
	/* A device that reaches all of its memory was plugged: all of it may be there now. */
	if (vm->has_info && (info->kinds & ~vm->kinds & HV_KIND_PINNED)) {
		vm->process.known = false;
		core->process.wake = true;
	}
	vm->kinds = info->kinds;
	if (!info->balloon) { /* fixed size */
		core_vm_actual(vm, info->maximum);
	}
	vm->knobs = resolved.knobs;
	vm->attrs = resolved.attrs;
	vm->attrs.paused = core_is_paused(core, &vm->uuid);
	vm->attrs.autodeflate = info->balloon && info->autodeflate;
	vm->manage = resolved.manage;
	vm->soft_source = resolved.soft_source;
	vm->balloon = info->balloon;
	vm->reporting = info->balloon && info->reporting;
	vm->period_s = info->stats_period_s;
	vm->has_info = true;
	vm->info_failing = false;
	vm->lifted &= !vm->lift_again;
	vm->lift_again = false;
	drop_takeover(core, vm);
	choose_agent(vm, resolved.agent, info->agent);
	core_vm_period(core, vm);
	core_vm_ready(core, vm);
	core_vm_assess(core, vm, now);
	return 0;
}

void core_vm_info(struct core *core, struct core_vm *vm, uint64_t now, const struct hv_info *info)
{
	struct hv_info said;
	int r = hv_info_copy(info, &said);

	if (r == 0) {
		r = take_info(core, vm, now, info);
		if (r < 0)
			hv_info_clear(&said);
	}
	vm->info_again = r == -ENOMEM;
	if (r == -EINVAL) {
		if (!vm->info_failing)
			core_say(core, CORE_LOG_WARNING, vm,
				"has no maximum memory: it is left alone");
		vm->info_failing = true;
	}
	if (r < 0)
		return;
	hv_info_clear(&vm->said);
	vm->said = said;
}

void core_vm_review(struct core *core, struct core_vm *vm, uint64_t now)
{
	struct hv_info said = vm->said;

	if (!vm->has_info || vm->gone)
		return;
	/* What ballast itself has changed since is known better than from the description. */
	said.stats_period_s = vm->period_s;
	said.ceiling = core_bytes(vm->attrs.ceiling);
	/* The ceiling is recorded by a call that is out, or may be by now. */
	if (vm->lane.busy && vm->lane.call.type == HV_TARGET)
		said.ceiling = vm->lane.call.ceiling;
	vm->info_again |= take_info(core, vm, now, &said) == -ENOMEM;
}

/* ---- statistics ---- */

void core_vm_actual(struct core_vm *vm, uint64_t actual)
{
	vm->actual = actual;
	vm->actual_known = true;
	if (actual > vm->actual_high)
		vm->actual_high = actual;
}

uint64_t core_vm_usage(const struct core_vm *vm)
{
	return vm->process.known ? vm->process.resident + vm->process.swapped : UINT64_MAX;
}

/* Whether the guest has answered since they were last read. */
static bool has_moved(const struct core_vm *vm, const struct hv_stats *stats)
{
	return vm->base && (stats->known & HV_STAT_LAST_UPDATE) &&
	       stats->last_update != vm->stats.last_update;
}

/* last_update counts seconds: others within the same second show by their figures only. */
static bool same_figures(const struct hv_stats *a, const struct hv_stats *b)
{
	return a->known == b->known && a->unused == b->unused && a->usable == b->usable &&
	       a->disk_caches == b->disk_caches && a->swap_in == b->swap_in;
}

void core_vm_stats(
	struct core *core, struct core_vm *vm, uint64_t now, const struct hv_stats *stats)
{
	uint64_t before = vm->stats.last_update;
	bool moved = has_moved(vm, stats);

	if (stats->known & HV_STAT_ACTUAL)
		core_vm_actual(vm, stats->actual);
	if (stats->job_known)
		vm->told_job = stats->job;
	if (moved) {
		vm->moved = vm->driver = true;
		vm->moved_at = now;
		vm->arriving = vm->rearmed = false;
		vm->still = 0;
	} else if (vm->base && (stats->known & HV_STAT_LAST_UPDATE) && vm->still++ == 0) {
		vm->still_since = now;
	}
	/*
	 * Made since the last reading. The same figures are the same statistics, whatever the
	 * balloon did since: what was given back meanwhile is nothing that the guest uses.
	 */
	if (moved || !same_figures(stats, &vm->stats)) {
		vm->stats_actual = vm->actual_high;
		vm->stats_usage = vm->usage_low;
	}
	vm->actual_high = vm->actual_known ? vm->actual : 0;
	vm->usage_low = core_vm_usage(vm);

	vm->stats = *stats;
	if (stats->known & HV_STAT_LAST_UPDATE)
		vm->base = true;
	else
		vm->stats.last_update = before;
	if (vm->readings < 2)
		vm->readings++;
	vm->has_stats = true;
	vm->nr_stats++;
	vm->stats_seq = vm->lane.applied_seq;
	core_vm_assess(core, vm, now);
}

/* Over its soft limit, and silent: a tenant must not opt out without being seen. */
static void look_for_silence(struct core *core, struct core_vm *vm, uint64_t now)
{
	struct engine_view view;

	if (core_vm_fresh(core, vm, now) || vm->run != HV_RUNNING || vm->arriving || !vm->balloon) {
		vm->said_silent = false;
		return;
	}
	if (vm->said_silent || !vm->attrs.act || !core_vm_watched(core, vm, now) ||
		engine_view(core->engine, vm->told.id, &view) < 0 ||
		(view.excess == 0 && view.excess_via == 0))
		return;
	vm->said_silent = true;
	core_say(core, CORE_LOG_WARNING, vm,
		"is in excess of its soft limit and cannot be asked: its balloon statistics do not "
		"move; look at the guest's balloon driver and the statistics' period");
}

/* Not while memory is being plugged: the description says so by the next listing. */
static void look_for_excess_of_actual(struct core *core, struct core_vm *vm, uint64_t now)
{
	char actual[SIZE_TEXT], maximum[SIZE_TEXT];

	if (!vm->has_info || !vm->actual_known || vm->actual <= core_bytes(vm->attrs.maximum)) {
		vm->over_since = 0;
		return;
	}
	if (vm->over_since == 0)
		vm->over_since = now;
	if (vm->said_over || now - vm->over_since < 2 * core->config.resync_us)
		return;
	vm->said_over = true;
	core_say(core, CORE_LOG_NOTICE, vm,
		"is said to have %s, more than its maximum %s: %s counts",
		size_format(vm->actual, actual, sizeof(actual)),
		size_format(core_bytes(vm->attrs.maximum), maximum, sizeof(maximum)), maximum);
}

/* Once every vm_us. */
void core_vm_due(struct core *core, struct core_vm *vm, uint64_t now)
{
	DL_DELETE2(core->due, vm, due_prev, due_next);
	vm->due = now + core->config.vm_us;
	DL_APPEND2(core->due, vm, due_prev, due_next);

	if (!vm->has_info || vm->info_again)
		vm->lane.want_info = true;
	/* One that comes in by migration is not called: it could take very long. */
	if (vm->has_info && vm->balloon && vm->ran)
		vm->lane.want_stats = true;
	if (to_be_rearmed(core, vm))
		core_vm_period(core, vm);
	core_vm_ready(core, vm);
	if (vm->again)
		core_vm_dirty(core, vm);
	core_vm_assess(core, vm, now);
	look_for_excess_of_actual(core, vm, now);
	if (vm->told.id) {
		look_for_silence(core, vm, now);
		core_say_warnings(core, vm);
	}
}
