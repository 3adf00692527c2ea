/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tick's order and the engine's own life. What a tick does stands in topology.c (input),
 * settle.c (what came of asks), ask.c (who is asked), give.c (who gets back), view.c (status).
 */
#include <config.h>

#include "policy/engine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "policy/engine_internal.h"

/* Events of one tick: more than this many is noise; the newest are dropped. */
#define MAX_EVENTS 1024

#define SECOND UINT64_C(1000000)

static const struct state_row states[ENGINE_VM_STATE_NR] = {
	[ENGINE_VM_RUNNING] = { "running", .gives = true, .receives = true },
	[ENGINE_VM_ARRIVING] = { "arriving", .counts_full = true },
	[ENGINE_VM_PAUSED] = { "paused" },
	[ENGINE_VM_NO_DEVICE] = { "no balloon device" },
	[ENGINE_VM_NO_DRIVER] = { "no balloon driver" },
	[ENGINE_VM_NOT_ANSWERING] = { "not answering" },
	[ENGINE_VM_INCOMING] = { "incoming", .counts_full = true },
	/* Cut while it moves, it would arrive cut; and libvirt takes no target then. */
	[ENGINE_VM_MIGRATING] = { "migrating" },
	[ENGINE_VM_POSTCOPY] = { "postcopy", .counts_full = true },
	[ENGINE_VM_SAVING] = { "saving" },
	[ENGINE_VM_SNAPSHOT] = { "snapshot job" },
	[ENGINE_VM_BACKUP] = { "backup job" },
	/* What an earlier cut took from these the host never gained: it goes back. */
	[ENGINE_VM_LOCKED] = { "locked memory", .receives = true, .fixed = true },
	[ENGINE_VM_HUGE_PAGES] = { "huge pages", .receives = true, .outside = true },
	[ENGINE_VM_PINNED] = { "pinned by a device", .receives = true, .fixed = true },
	[ENGINE_VM_ENCRYPTED] = { "encrypted memory", .receives = true, .fixed = true },
	[ENGINE_VM_VIRTIO_MEM] = { "virtio-mem" },
	[ENGINE_VM_THROTTLED] = { "throttled", .gives = true, .receives = true },
	[ENGINE_VM_LIMITED] = { "statistics limited", .gives = true, .receives = true },
	[ENGINE_VM_STRICT_NUMA] = { "strict NUMA binding", .gives = true, .receives = true },
	[ENGINE_VM_CONTENDED] = { "contended", .gives = true, .receives = true },
};

static const char *const reason_names[ENGINE_REASON_NR] = {
	[ENGINE_CUT] = "cut",
	[ENGINE_CANCEL] = "cancel",
	[ENGINE_LOOSEN] = "loosen",
	[ENGINE_FEED] = "feed",
	[ENGINE_GIFT] = "gift",
	[ENGINE_AGAIN] = "again",
	[ENGINE_RELEASE] = "release",
	[ENGINE_WISH] = "wish",
};

static const char *const event_names[] = {
	[ENGINE_EVENT_SHORT] = "short",
	[ENGINE_EVENT_SHORT_OVER] = "short-over",
	[ENGINE_EVENT_BELOW_MIN] = "below-min",
	[ENGINE_EVENT_ASK_CAME] = "ask-came",
	[ENGINE_EVENT_ASK_FAILED] = "ask-failed",
	[ENGINE_EVENT_WISH] = "wish",
	[ENGINE_EVENT_CONTENDED] = "contended",
	[ENGINE_EVENT_JOB_DONE] = "job-done",
	[ENGINE_EVENT_JOB_SHORT] = "job-short",
	[ENGINE_EVENT_JOB_CANCELLED] = "job-cancelled",
};

const struct state_row *engine_state_row(enum engine_vm_state state)
{
	assert(state < ENGINE_VM_STATE_NR);
	return &states[state];
}

bool engine_vm_state_gives(enum engine_vm_state state)
{
	return engine_state_row(state)->gives;
}

const char *engine_vm_state_name(enum engine_vm_state state)
{
	return engine_state_row(state)->name;
}

const char *engine_reason_name(enum engine_reason_type type)
{
	assert(type < ENGINE_REASON_NR);
	return reason_names[type];
}

const char *engine_event_name(enum engine_event_type type)
{
	assert(type < sizeof(event_names) / sizeof(event_names[0]));
	return event_names[type];
}

void engine_config_default(struct engine_config *ret_config)
{
	*ret_config = (struct engine_config){
		.act = false,    /* nobody's VM is touched before its operator says so */
		.loosens = true, /* KVM; a backend says otherwise */
		/* What one balloon command is worth: below it is noise of the guest's own. */
		.granule = MIB_TO_PAGES(1),
		/* Of the pool: time for arrivals and growth (2 s at 1 GiB/s in 64 GiB: 3 %). */
		.wm_min = { .permille = 20 },
		.wm_low = { .permille = 50 },
		.wm_high = { .permille = 80 },
		.bounds = {
			/* Guests squeezed below half of what they were sized for crash or crawl. */
			.floor_percent = 50,
			/* Windows tells free memory only: what it would miss cannot be seen. */
			.floor_free_only_percent = 75,
			/* A burst must fit in between two samples. */
			.margin_percent = 10,
			.margin_at_least = MIB_TO_PAGES(256),
		},
		/* A step is seen to come before the next; measured, one lasts 2 to 5 s. */
		.max_step = MIB_TO_PAGES(256),
		/* What a VM in excess may grow by until it is asked again. */
		.headroom_at_least = MIB_TO_PAGES(64),
		.headroom_fraction = 16,
		.speed = MIB_TO_PAGES(50), /* measured: 50 to 100 MiB/s in idle guests */
		.hold_us = 10 * SECOND,    /* longer than a balloon swings */
		.hold_max_us = 300 * SECOND,
		.ask_deadline_us = 5 * SECOND,
		.rest_us = 3 * SECOND, /* balloon events come once a second, and may be late */
		/*
		 * Seen within 0.3 s and told at once; the first of it comes within the rest. Not
		 * each balloon's measured delivery: that is told for whole asks, and the pool would
		 * keep as much free as its slowest guest needs, though others give meanwhile.
		 */
		.growth_us = SECOND,
		/* Long enough to do by hand what it was let go for; who needs longer pauses it. */
		.release_us = 600 * SECOND,
	};
}

static int config_check(const struct engine_config *c)
{
	const struct engine_level *l[] = { &c->wm_min, &c->wm_low, &c->wm_high };

	if (!c->granule || c->granule > PAGES_UNLIMITED / 1024)
		return -EINVAL;
	if (!c->max_step || !c->headroom_fraction || !c->speed || !c->hold_us)
		return -EINVAL;
	for (size_t i = 0; i < 3; i++)
		if (l[i]->permille > 1000 || l[i]->pages > PAGES_UNLIMITED)
			return -EINVAL;
	for (size_t i = 0; i < 2; i++) {
		if (l[i]->permille && l[i + 1]->permille && l[i]->permille > l[i + 1]->permille)
			return -EINVAL;
		if (!l[i]->permille && !l[i + 1]->permille && l[i]->pages > l[i + 1]->pages)
			return -EINVAL;
	}
	return 0;
}

int engine_new(const struct engine_config *config, struct engine **ret_engine)
{
	struct engine *e;
	int r = config_check(config);

	if (r)
		return r;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->config = *config;
	slab_init(&e->vms, sizeof(struct vm));
	e->max_events = MAX_EVENTS;
	e->events = calloc(e->max_events, sizeof(*e->events));
	r = e->events ? memcg_tree_new(&e->tree) : -ENOMEM;
	if (r) {
		engine_free(e);
		return r;
	}
	e->tree->no_soft_pass = config->no_soft_pass;
	*ret_engine = e;
	return 0;
}

static void free_vms(struct engine *e, struct memcg *m)
{
	memcg_for_each_child (c, m)
		free_vms(e, c);
	if (m->vm)
		topology_free_vm(e, vm_of(m));
}

void engine_free(struct engine *e)
{
	struct job *next;

	if (!e)
		return;
	if (e->tree)
		free_vms(e, e->tree->root);
	memcg_tree_free(e->tree);
	for (struct job *j = e->jobs; j; j = next) {
		next = j->next;
		free(j);
	}
	slab_drop(&e->vms);
	free(e->busy);
	free(e->limited);
	free(e->shares);
	free(e->actions);
	free(e->gift);
	free(e->gift_vms);
	free(e->charges);
	free(e->events);
	free(e);
}

const struct engine_config *engine_config(const struct engine *e)
{
	return &e->config;
}

int engine_set_config(struct engine *e, const struct engine_config *config)
{
	int r = config_check(config);

	if (r)
		return r;
	e->config = *config;
	e->tree->no_soft_pass = config->no_soft_pass;
	e->changed = true;
	/* Floor and margin; a guest that rests has no new sample for long. */
	topology_reassess(e, e->tree->root);
	return 0;
}

void engine_event(struct engine *e, enum engine_event_type type, uint64_t id, uint64_t a, int64_t b)
{
	if (e->nr_events < e->max_events)
		e->events[e->nr_events++] = (struct engine_event){ type, id, a, b };
}

void engine_by(struct engine *e, uint64_t time)
{
	if (time < e->next)
		e->next = time;
}

void engine_act(struct engine *e, struct vm *vm, uint64_t target, struct engine_reason r)
{
	struct engine_action *a = NULL;

	for (size_t i = 0; vm->acted && i < e->nr_actions; i++)
		if (e->actions[i].id == vm->memcg->id)
			a = &e->actions[i];
	if (!a)
		a = &e->actions[e->nr_actions++]; /* one for every VM: there is room */
	if (!vm->acted)
		vm->seq++;
	vm->acted = true;

	r.at = e->now;
	r.free = e->free;
	r.wm_min = e->wm_min;
	r.wm_low = e->wm_low;
	r.wm_high = e->wm_high;
	r.growth = e->growth.rate;
	r.usage = vm->set.usage;
	r.actual = vm->set.actual;
	if (!r.inside)
		r.from = vm->target ? vm->target : vm->set.actual;
	r.to = target;
	r.waiting = vm->waiting;
	*a = (struct engine_action){
		.id = vm->memcg->id,
		.seq = vm->seq,
		.target = target,
		.ceiling = vm->ceiling,
		.reason = r,
	};
	vm->reasons[vm->nr_reasons++ % ENGINE_REASONS] = r;
	topology_busy(e, vm);
	if (r.inside)
		return;
	vm->target_seq = vm->seq;
	vm->answer_by = e->now + e->config.ask_deadline_us; /* a lane's is sooner */
	vm->record = false;				    /* it goes with every target */
	vm->attrs.ceiling = vm->ceiling;
	vm->lowest = vm->touched ? pages_min(vm->lowest, target) : target;
	vm->touched = true;
	vm->target = target;
}

void engine_forget(struct engine *e, const struct vm *vm)
{
	for (size_t i = 0; i < e->nr_actions; i++) {
		if (e->actions[i].id == vm->memcg->id) {
			e->actions[i] = e->actions[--e->nr_actions];
			return;
		}
	}
}

static uint64_t level_pages(const struct engine_level *level, uint64_t size)
{
	uint64_t pages = pages_mul_div(size, level->permille, 1000);

	if (!level->permille)
		return level->pages;
	return pages + (size * level->permille % 1000 ? 1 : 0);
}

static void refresh_all(struct engine *e, struct memcg *m)
{
	memcg_for_each_child (c, m)
		refresh_all(e, c);
	if (m->vm)
		topology_refresh(e, vm_of(m));
}

/* What goes while memory is on its way must not end below wm_min. */
static void raise_for_growth(struct engine *e)
{
	uint64_t raise;

	/* What is given and not taken yet falls as it was meant to. */
	if (e->gifts > 0)
		growth_restart(&e->growth);
	growth_see(&e->growth, e->free, e->now);
	raise = growth_raise(
		&e->growth, e->config.growth_us, e->wm_min, e->wm_low, e->wm_high, e->pool.size);
	e->wm_low += raise;
	e->wm_high += raise;
}

static void set_below_min(struct engine *e, bool below)
{
	bool was = e->below_min;

	e->below_min = below;
	if (below != was)
		refresh_all(e, e->tree->root); /* what is in time counts now, or no more */
}

/* What is free by the newest figures, and what of it is promised already. */
static void account_pool(struct engine *e)
{
	const struct engine_pool *p = &e->pool;
	int64_t used = (int64_t)(e->tree->root->seen + e->overhead);
	int64_t reserve = p->host ? (int64_t)p->reserve : 0;

	e->gifts = 0;
	e->hung = 0;
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm)) {
		e->gifts += give_reserved(e, vm);
		e->hung += vm->hung;
	}
	if (!p->known) {
		e->free = 0;
		e->wm_min = e->wm_low = e->wm_high = 0;
		set_below_min(e, false);
		return;
	}
	e->free = (int64_t)p->size - reserve - used;
	if (p->host && (int64_t)p->available - reserve < e->free)
		e->free = (int64_t)p->available - reserve;
	e->wm_min = level_pages(&e->config.wm_min, p->size);
	e->wm_low = pages_max(level_pages(&e->config.wm_low, p->size), e->wm_min);
	e->wm_high = pages_max(level_pages(&e->config.wm_high, p->size), e->wm_low);
	raise_for_growth(e);

	if (e->free < (int64_t)e->wm_min && !e->below_min)
		engine_event(e, ENGINE_EVENT_BELOW_MIN, MEMCG_ROOT_ID, e->wm_min, e->free);
	set_below_min(e, e->free < (int64_t)e->wm_min);
}

static bool pool_valid(const struct engine_pool *pool)
{
	return pool->size && pool->size <= PAGES_UNLIMITED && pool->available <= PAGES_UNLIMITED &&
	       pool->reserve <= PAGES_UNLIMITED;
}

static void take_pool(struct engine *e, const struct engine_pool *pool)
{
	bool known = pool->known && pool_valid(pool);

	if (e->pool.known && known && pool->host)
		ask_available(e, (int64_t)(pool->available - e->pool.available));
	if (!e->pool.known || !known || pool->host != e->pool.host || pool->size != e->pool.size ||
		pool->reserve != e->pool.reserve)
		growth_restart(&e->growth);
	e->pool = *pool;
	e->pool.known = known;
}

static void first_error(int *error, int r)
{
	if (!*error)
		*error = r;
}

static int take_input(struct engine *e, const struct engine_input *in)
{
	int error = 0;

	if (in->pool)
		take_pool(e, in->pool);
	for (size_t i = 0; i < in->nr_changes; i++) {
		/* What is booked otherwise from now on nobody used up. */
		if (topology_books_anew(e, &in->changes[i]))
			growth_restart(&e->growth);
		first_error(&error, topology_change(e, &in->changes[i]));
	}
	topology_busy_compact(e);
	first_error(&error, topology_samples(e, in->samples, in->nr_samples));
	for (size_t i = 0; i < in->nr_charges; i++)
		first_error(&error, topology_charged(e, &in->charges[i]));
	memcg_carry(e->tree); /* of all of them at once */
	for (size_t i = 0; i < in->nr_results; i++) {
		struct vm *vm = topology_vm(e, in->results[i].id);

		/* A VM may be gone before its call returns: that is no error. */
		if (vm)
			settle_result(e, vm, &in->results[i]);
	}
	return error;
}

/* Once what came is accounted: it does not count for a request that is made now. */
static int take_requests(struct engine *e, const struct engine_input *in)
{
	int error = 0;

	for (size_t i = 0; i < in->nr_requests; i++)
		first_error(&error, ask_request(e, &in->requests[i]));
	return error;
}

static bool waits_until(struct engine *e, uint64_t time)
{
	if (time <= e->now)
		return false;
	engine_by(e, time);
	return true;
}

static bool waits_held(struct engine *e, const struct vm *vm)
{
	return waits_until(e, vm->failed_until) | waits_until(e, vm->contended_until) |
	       waits_until(e, vm->refused_until) | waits_until(e, vm->fed_until) |
	       waits_until(e, vm->spared_until) | waits_until(e, vm->heeded_until) |
	       waits_until(e, vm->released_until) | waits_until(e, vm->lifted_until) |
	       waits_until(e, give_reserved(e, vm) ? vm->gift_until : 0);
}

/* VMs that nothing is expected of any more leave the busy ones; the others say when to come back.
 */
static void retire(struct engine *e)
{
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm)) {
		bool capped = vm_capped(vm);
		bool wait = waits_until(e, vm->ask_on ? vm->ask.deadline : 0) |
			    waits_until(e, capped ? vm->hold_until : 0) |
			    waits_until(e, vm->rested ? 0 : vm->rest_since + e->config.rest_us);

		if (vm->held_until > e->now)
			wait |= waits_held(e, vm);
		vm->acted = false;
		vm->busy = wait || vm->owed || vm->hung || vm->cut || vm->record || capped;
	}
	topology_busy_compact(e);
}

int engine_tick(struct engine *e, const struct engine_input *in, struct engine_output *ret_output)
{
	int error;

	if (in->now > e->now) /* time stands still rather than going back */
		e->now = in->now;
	e->next = UINT64_MAX;
	e->nr_actions = 0;
	e->nr_events = 0;
	e->changed |= !e->ticked || in->nr_changes || in->nr_samples || in->nr_results ||
		      in->nr_requests || in->nr_charges || in->pool;
	e->ticked = true;
	if (e->unshown && e->now >= e->unshown_until)
		e->unshown = 0;
	if (e->unshown)
		engine_by(e, e->unshown_until);

	error = take_input(e, in);
	for (struct vm *vm = busy_first(e); vm; vm = busy_next(e, vm))
		settle_vm(e, vm);
	e->settled = e->now;
	first_error(&error, take_requests(e, in));
	account_pool(e);
	e->need = 0;
	if (e->config.act) {
		give_release(e);
		give_feed(e);
		ask_all(e);
		give_loosen(e);
		give_gifts(e);
	} else {
		ask_nobody(e);
	}
	memcg_carry(e->tree);
	memcg_reap(e->tree);
	retire(e);
	e->changed = false;

	*ret_output = (struct engine_output){
		.actions = e->actions,
		.nr_actions = e->nr_actions,
		.events = e->events,
		.nr_events = e->nr_events,
		.next = e->next,
	};
	return error;
}
