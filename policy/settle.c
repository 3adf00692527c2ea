/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What became of what was asked. The balloon is slow, partial and forgetful: a command returns
 * before anything moved, stops at what the guest can give, and others turn it too. Only usage
 * counts, and actual that rests tells who moved it last.
 */
#include <config.h>

#include <errno.h>

#include "policy/engine_internal.h"

#define SECOND UINT64_C(1000000)

/* actual is told once a second, and a message may be late: silence for longer is standing still. */
#define MOVING_US (2 * SECOND)

uint64_t settle_outstanding(const struct vm *vm)
{
	return vm->ask_on ? pages_sub(vm->set.usage, vm->ask.goal) : 0;
}

uint64_t settle_from(const struct vm *vm)
{
	return vm->ask_on ? pages_min(vm->ask.goal, vm->set.usage) : vm->set.usage;
}

uint64_t settle_gain(const struct vm *vm, uint64_t pages)
{
	return pages_gain(pages, vm->set.resident, vm->set.usage);
}

void settle_owe(struct engine *e, struct vm *vm)
{
	uint64_t told = settle_outstanding(vm);
	uint64_t owed = told + vm->waiting, gain = settle_gain(vm, owed);

	if (owed || vm->owed) { /* at rest there is nothing, and nothing is looked at */
		told = settle_gain(vm, told);
		e->told += told - vm->told_gain;
		vm->told_gain = told;
	}
	if (owed != vm->owed || gain != vm->owed_gain)
		memcg_owe_later(
			vm->memcg, (int64_t)(owed - vm->owed), (int64_t)(gain - vm->owed_gain));
	vm->owed = owed;
	vm->owed_gain = gain;
}

/* What of the ask came, or went again, since it was last looked at. */
static void account(struct engine *e, struct vm *vm)
{
	uint64_t out = settle_outstanding(vm);

	if (out != vm->out)
		ask_credit(e, vm, (int64_t)(vm->out - out));
	vm->out = out;
}

static void end(struct engine *e, struct vm *vm)
{
	/* What waits follows on the goal: what the guest gave beyond it is given already. */
	vm->waiting = pages_sub(vm->waiting, pages_sub(vm->ask.goal, vm->set.usage));
	/* What was beside actual is no more what a target is reckoned from. */
	vm->set.usage = pages_min(vm->set.usage, vm->set.actual);
	vm->set.resident = pages_min(vm->set.resident, vm->set.usage);
	vm->ask_on = false;
	vm->out = 0;
	vm->cut = true;
	settle_owe(e, vm);
}

/* Nothing was done to its balloon, so nothing is taken back of it. */
static void cancel_inside(struct engine *e, struct vm *vm)
{
	struct engine_reason r = { .type = ENGINE_CANCEL,
		.root = vm->ask.root,
		.job = vm->ask.job,
		.step = vm->ask.step,
		.from = vm->ask.goal,
		.inside = true };

	vm->waiting = 0;
	account(e, vm);
	end(e, vm);
	topology_refresh(e, vm);
	engine_act(e, vm, vm->set.usage, r);
}

void settle_cancel(struct engine *e, struct vm *vm, uint64_t target)
{
	bool told = vm->ask_on || vm->hung;
	struct engine_reason r = { .type = ENGINE_CANCEL };

	if (vm->ask_on && vm->ask.inside) {
		cancel_inside(e, vm);
		return;
	}
	vm->waiting = 0;
	vm->hung = 0;
	if (told) {
		r.root = vm->ask.root;
		r.job = vm->ask.job;
		r.step = vm->ask.step;
	}
	if (vm->ask_on)
		account(e, vm);
	if (told || vm->owed)
		end(e, vm);
	topology_refresh(e, vm);
	if (vm_lowered(e, vm))
		return;
	/*
	 * What was given back may not have got through: what it has counts beside what it was told.
	 * Of one that is not managed only what runs is ended.
	 */
	if (target && (told || (vm->attrs.act && vm->touched &&
				       target > pages_min(vm->target, vm->set.actual))))
		engine_act(e, vm, target, r);
}

void settle_hung(struct engine *e, struct vm *vm)
{
	if (!vm->ask_on) {
		vm->waiting = 0;
	} else if (vm->ask.inside) {
		cancel_inside(e, vm); /* the way to its agent is another one */
	} else {
		account(e, vm);
		vm->hung = vm->out;
		vm->waiting = 0;
		end(e, vm);
		vm->cut = false; /* nothing can be told to it now */
	}
	settle_owe(e, vm);
}

/* Measured from the command on, so that the guest's latency is in it. */
static void measure(struct engine *e, struct vm *vm, uint64_t came)
{
	uint64_t us = e->now - vm->ask.since, speed;

	if (us == 0 || came < RECLAIM_MIN_GRANULES * e->config.granule)
		return;
	speed = pages_max(pages_mul_div(came, SECOND, us), 1);
	vm->speed = vm->speed ? (3 * vm->speed + speed) / 4 : speed;
}

static void came(struct engine *e, struct vm *vm)
{
	uint64_t asked = vm->ask.from - vm->ask.goal;
	uint64_t pages = pages_sub(vm->ask.from, vm->set.usage);

	measure(e, vm, pages);
	if (vm->ask.inside)
		vm->outside = 0;
	vm->failures = 0;
	if (vm->delivered) {
		vm->delivered *= 2;
		if (vm->delivered >= e->config.max_step)
			vm->delivered = 0; /* trusted again */
	}
	end(e, vm);
	engine_event(e, ENGINE_EVENT_ASK_CAME, vm->memcg->id, asked, (int64_t)pages);
}

/* Balloons stop a little short: what came is taken for the whole from seven eighths on. */
static bool nearly_came(const struct vm *vm)
{
	uint64_t asked = vm->ask.from - vm->ask.goal;

	return pages_sub(vm->ask.from, vm->set.usage) >= asked - asked / 8;
}

/* A hold time, doubled with each failure in a row. */
static uint64_t hold_after(const struct engine *e, unsigned int failures)
{
	uint64_t hold = e->config.hold_us;

	for (unsigned int i = 0; i < failures && hold < e->config.hold_max_us; i++)
		hold *= 2;
	return hold < e->config.hold_max_us ? hold : e->config.hold_max_us;
}

/*
 * Its agent could not, or what it freed is not the host's: its balloon can, at once. The guest has
 * failed nothing.
 */
static void turn_outside(struct engine *e, struct vm *vm)
{
	uint64_t asked = vm->ask.from - vm->ask.goal;
	uint64_t pages = pages_sub(vm->ask.from, vm->set.usage);

	vm->outside_until = e->now + hold_after(e, vm->outside++);
	settle_cancel(e, vm, 0);
	engine_event(e, ENGINE_EVENT_ASK_FAILED, vm->memcg->id, asked, (int64_t)pages);
}

static void failed(struct engine *e, struct vm *vm)
{
	uint64_t asked = vm->ask.from - vm->ask.goal;
	uint64_t pages = pages_sub(vm->ask.from, vm->set.usage);

	if (vm->ask.inside) {
		turn_outside(e, vm);
		return;
	}
	vm_hold(vm, &vm->failed_until, e->now + hold_after(e, vm->failures++));
	vm->failed++;
	vm->delivered = pages_max(pages, e->config.granule);
	settle_cancel(e, vm, vm->set.actual);
	engine_event(e, ENGINE_EVENT_ASK_FAILED, vm->memcg->id, asked, (int64_t)pages);
}

void settle_keep_goal(struct vm *vm)
{
	struct ask *ask = &vm->ask;

	if (!ask->seq || ask->inside || (ask->before_seq && !vm_reached(vm, ask->seq)))
		return;
	ask->before_seq = ask->seq;
	ask->before_goal = ask->goal;
}

void settle_raise(
	struct engine *e, struct vm *vm, uint64_t goal, const struct engine_reason *reason)
{
	struct ask *ask = &vm->ask;
	struct engine_reason r = *reason;

	r.inside = ask->inside;
	r.from = ask->goal;
	settle_keep_goal(vm);
	ask->raised = true;
	ask->goal = goal;
	if (ask->from <= goal) {
		/* It grew past where it began: the ask begins anew. */
		ask->from = vm->set.usage;
		ask->since = e->now;
	}
	vm->out = settle_outstanding(vm);
	settle_owe(e, vm);
	topology_refresh(e, vm);
	engine_act(e, vm, goal, r);
	ask->seq = vm->seq;
}

/* The guest uses more than it did when it was asked: the goal rises with what it must keep. */
static void raise_goal(struct engine *e, struct vm *vm)
{
	uint64_t keep = vm_keep(vm);
	uint64_t hard = pages_max(vm->set.floor, vm->memcg->knobs.min);
	uint64_t slack = vm->set.margin / 8; /* what a guest uses flutters */

	if (keep <= vm->ask.goal + slack && hard <= vm->ask.goal)
		return;
	if (vm->refused_until > e->now)
		return; /* that was refused lately */
	vm->waiting = 0;
	account(e, vm);
	if (keep >= pages_min(vm->set.usage, vm->set.actual)) {
		settle_cancel(e, vm, pages_max(vm->set.actual, pages_min(keep, vm_limit(vm))));
		return;
	}
	settle_raise(e, vm, keep,
		&(struct engine_reason){ .type = ENGINE_CANCEL,
			.root = vm->ask.root,
			.job = vm->ask.job,
			.step = vm->ask.step,
			.bound = keep });
}

/* How near usage must be to the goal; less than was asked, or nothing would have to come. */
static uint64_t tolerance(const struct engine *e, const struct ask *ask)
{
	return pages_min(e->config.granule, (ask->from - ask->goal) / 8);
}

/* What is to fall, and is watched. */
static uint64_t moves(const struct vm *vm)
{
	return vm->ask.inside ? vm->set.usage : vm->set.actual;
}

/*
 * A balloon with a long way may take long, as long as it moves: one that stood still for as long as
 * a whole step takes is stuck.
 */
static bool stuck(struct engine *e, struct vm *vm, bool applied)
{
	struct ask *ask = &vm->ask;
	uint64_t at = moves(vm);
	uint64_t step = pages_mul_div(e->config.max_step, SECOND, e->config.speed);
	uint64_t until;

	if (!applied || at + e->config.granule <= ask->moved_to) {
		ask->moved_to = at;
		ask->moved = e->now;
	}
	until = ask->moved + e->config.ask_deadline_us + step;
	if (e->now >= until)
		return true;
	if (until < ask->deadline)
		engine_by(e, until);
	return false;
}

/*
 * Slow is not stuck: a balloon that moves at its deadline gets the time that the rest takes at the
 * speed it shows. It must have come an eighth of what is left each time, so this ends.
 */
static bool eases(const struct engine *e, struct vm *vm)
{
	struct ask *ask = &vm->ask;
	uint64_t at = moves(vm), left = pages_sub(at, ask->goal);
	uint64_t came = pages_sub(ask->eased_at, at);

	if (e->now - ask->moved > MOVING_US || came < pages_max(e->config.granule, left / 8))
		return false;
	ask->deadline =
		e->now + e->config.ask_deadline_us +
		pages_mul_div(left, e->now - ask->since, pages_max(pages_sub(ask->actual, at), 1));
	ask->eased_at = at;
	return true;
}

static void settle_ask(struct engine *e, struct vm *vm)
{
	bool applied = vm->sample.applied_seq >= vm->ask.seq;
	bool over = stuck(e, vm, applied) || (e->now >= vm->ask.deadline && !eases(e, vm));

	account(e, vm);
	if (applied && vm->set.usage_known &&
		vm->set.usage <= vm->ask.goal + tolerance(e, &vm->ask))
		came(e, vm);
	else if (!over)
		raise_goal(e, vm);
	else if (applied && nearly_came(vm))
		came(e, vm);
	else
		failed(e, vm);
}

/*
 * The connection was lost, a job was in the way, it was dropped: the guest was not even asked, has
 * not failed, and may be asked anew.
 */
static bool never_reached(int error)
{
	return error == -ENOTCONN || error == -EBUSY || error == -ECANCELED;
}

/*
 * Nothing more is told to it before it rests where they want it, or for a hold time longer than it
 * takes to see that: it would take their word back, and where it rests would be nobody's wish.
 */
static void overruled(struct engine *e, struct vm *vm)
{
	uint64_t before = vm->ask_on ? vm->ask.actual : vm->rested_low;

	if (!vm->touched)
		return;
	settle_cancel(e, vm, 0);
	vm->target = vm_as_it_is(vm);
	/*
	 * It may have moved already: below where it was when it was asked, or last rested, it is
	 * their wish all the same.
	 */
	vm->lowest = before ? before : vm->target;
	vm->again = vm->rested = false;
	vm->rest_since = e->now;
	vm->theirs_until = e->now + e->config.hold_us + e->config.rest_us;
	vm_hold(vm, &vm->contended_until, vm->theirs_until);
	vm_hold(vm, &vm->refused_until, vm->theirs_until);
	topology_busy(e, vm);
	topology_refresh(e, vm);
}

/* What its agent was asked. */
static void result_inside(struct engine *e, struct vm *vm, int error)
{
	if (never_reached(error))
		settle_cancel(e, vm, 0);
	else
		turn_outside(e, vm);
}

/*
 * The newest target of an ask got nowhere. Where one before it was set, the balloon goes on to that
 * and it counts; where that is not known it is to stop.
 */
static void fall_back(struct engine *e, struct vm *vm)
{
	struct ask *ask = &vm->ask;

	vm->waiting = 0;
	if (!ask->before_seq) {
		settle_cancel(e, vm, 0);
		vm->target = vm_as_it_is(vm);
		return;
	}
	if (!vm_reached(vm, ask->before_seq)) {
		settle_cancel(e, vm, vm_as_it_is(vm));
		return;
	}
	account(e, vm);
	ask->goal = vm->target = ask->before_goal;
	ask->seq = vm->target_seq = ask->before_seq;
	ask->before_seq = 0;
	vm->out = settle_outstanding(vm);
	settle_owe(e, vm);
	topology_refresh(e, vm);
}

static void result_ask(struct engine *e, struct vm *vm, int error)
{
	bool raised = vm->ask.raised;

	if (!raised && !never_reached(error)) {
		failed(e, vm); /* nothing will come of it */
		return;
	}
	/* To have it give less was refused: the guest has failed nothing. */
	fall_back(e, vm);
	if (raised)
		vm_hold(vm, &vm->refused_until, e->now + e->config.hold_us);
}

void settle_result(struct engine *e, struct vm *vm, const struct engine_result *result)
{
	if (result->error == -ESTALE) {
		vm->answer_by = 0;
		overruled(e, vm);
		return;
	}
	if (!result->error)
		vm->applied_seq = pages_max(vm->applied_seq, result->seq);
	if (result->error && vm->ask_on && vm->ask.inside && result->seq == vm->ask.seq)
		result_inside(e, vm, result->error);
	if (result->seq != vm->target_seq)
		return;
	vm->answer_by = 0;
	if (!result->error)
		return;
	if (vm->ask_on && !vm->ask.inside) {
		result_ask(e, vm, result->error);
		return;
	}
	/* A way back, or for the record: it has what it had, and is given again after a hold time.
	 */
	vm->target = vm_as_it_is(vm);
	vm->cut = true;
	vm_hold(vm, &vm->refused_until, e->now + e->config.hold_us);
	topology_busy(e, vm);
	vm->release = vm->released_until > e->now;
	vm->record = vm->reasons[(vm->nr_reasons - 1) % ENGINE_REASONS].type == ENGINE_WISH;
}

/* What was held back for their sake alone is so no more. */
static void theirs_rest(const struct engine *e, struct vm *vm)
{
	if (vm->theirs_until <= e->now)
		return;
	if (vm->contended_until == vm->theirs_until)
		vm->contended_until = e->now;
	if (vm->refused_until == vm->theirs_until)
		vm->refused_until = e->now;
	vm->theirs_until = 0;
}

/*
 * The guest took it back itself, as it was out of memory: nobody's hand, and none of it is taken
 * away again at once. Where it is not in excess it is fed in this tick, as one that swaps.
 */
static void distress(struct engine *e, struct vm *vm, uint64_t actual)
{
	vm->again = false;
	vm->target = actual;
	vm->swaps = true;
	vm_hold(vm, &vm->fed_until, e->now + e->config.hold_us);
}

/* actual stands still and nothing is under way: is it where it was put? */
static void settle_rest(struct engine *e, struct vm *vm)
{
	uint64_t actual = vm->rest_at, granule = e->config.granule;
	/* What it was told, but not again below what it must keep by now. */
	uint64_t target = pages_max(vm->target, vm->reclaim.keep);
	uint64_t less = pages_min(pages_sub(vm->target, granule), vm->ceiling);

	if (!vm->touched)
		return;
	theirs_rest(e, vm);
	if (vm->grown && vm->target) {
		vm->grown = vm->again = false;
		vm->target = vm->lowest = actual;
		vm->cut = actual < vm->ceiling;
		vm->record = vm->ceiling != vm->attrs.ceiling;
		return;
	}
	vm->grown = false;
	if (!vm->target) {
		/* Found at start, with a ceiling on record: below it is our own cut. */
		if (actual > vm->ceiling)
			vm->ceiling = actual;
		vm->target = vm->lowest = actual;
		vm->cut = actual < vm->ceiling;
		return;
	}
	if (actual + granule <= vm->lowest) {
		engine_event(e, ENGINE_EVENT_WISH, vm->memcg->id, vm->ceiling, (int64_t)actual);
		vm->ceiling = vm->target = vm->lowest = actual;
		vm->record = true;
		return;
	}
	if (actual >= vm->target + granule && vm->target >= vm->ceiling) {
		/*
		 * More than it had before it was touched, and not cut: the guest may have done
		 * that, so it is no reason to promise it more; nor is there one to take it away.
		 */
		vm->target = actual;
	} else if (actual >= target + granule && vm->attrs.autodeflate) {
		distress(e, vm, actual);
	} else if (actual >= target + granule && !vm->again) {
		vm->again = true;
		if (e->config.act && vm->attrs.act && !vm->attrs.paused && vm_gives(vm) &&
			target <= vm->ceiling) /* else it keeps what it has */
			engine_act(e, vm, target, (struct engine_reason){ .type = ENGINE_AGAIN });
		vm->rested = false;
		vm->rest_since = e->now;
	} else if (actual >= target + granule) {
		vm->again = false;
		vm_hold(vm, &vm->contended_until, e->now + e->config.hold_us);
		engine_event(e, ENGINE_EVENT_CONTENDED, vm->memcg->id, vm->target, (int64_t)actual);
		vm->target = actual;
	} else if (actual + granule <= vm->target && vm->target >= vm_limit(vm) &&
		   less >= vm->reclaim.keep && e->config.act && vm->attrs.act && vm_gives(vm)) {
		/*
		 * After a reboot the device still says what the guest's last life had left, until
		 * the new one's driver is told anything that it has not: a granule less.
		 */
		vm->again = false;
		engine_act(e, vm, less, (struct engine_reason){ .type = ENGINE_AGAIN });
	} else {
		vm->again = false;
	}
	vm->lowest = pages_min(vm->target, actual);
}

/* What it may still be asked beside what runs. */
static uint64_t room(const struct vm *vm)
{
	return pages_sub(settle_from(vm), vm->reclaim.keep);
}

/*
 * Nothing is under way, and no time of a hold ran out since it was settled last: what plans read of
 * it is as its newest sample left it. So are VMs that are capped, most of the time.
 */
static bool at_rest(const struct engine *e, const struct vm *vm)
{
	return vm->rested && !vm->ask_on && !vm->waiting && !vm->owed && !vm->hung &&
	       vm->held_until <= e->settled;
}

void settle_vm(struct engine *e, struct vm *vm)
{
	if (at_rest(e, vm))
		return;
	if (vm->ask_on)
		settle_ask(e, vm);
	if (!vm->rested && !vm->ask_on && !vm->hung && vm_knows(&vm->sample, VM_ACTUAL) &&
		vm->state != ENGINE_VM_ARRIVING && /* nobody is there yet who could rest */
		vm->state != ENGINE_VM_NOT_ANSWERING &&
		e->now >= vm->rest_since + e->config.rest_us) {
		vm->rested = true;
		settle_rest(e, vm);
		vm->rested_low = vm->touched ? vm->lowest : vm->rest_at;
	}
	topology_refresh(e, vm);
	/*
	 * It cannot: others are asked. But a process that cannot be read while it gives is most
	 * often one that ends, and all of it comes; if not, the ask's deadline tells.
	 */
	if (vm->reclaim.hold != RECLAIM_HOLD_NONE && (vm->set.usage_known || !vm->ask_on))
		vm->waiting = 0;
	vm->waiting = pages_min(vm->waiting, room(vm));
	settle_owe(e, vm); /* who waits for less than before still has nothing beside it to give */
}
