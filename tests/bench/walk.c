/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * walk CASE SHAPE EXCESS GROUPS CYCLES: what a tick costs in a tree of that many VMs (leaves).
 *
 *   SHAPE   flat: all below the root; binary: below inner groups of two each
 *   EXCESS  none, ten, tenth (at random), all: of the VMs, those that are over their soft limit
 *   CASE    busy     every usage changed since the last tick, and the pool needs memory: samples,
 *                    excess, the plan, an ask to everyone who is to give. In between, in ticks that
 *                    are not measured, what was asked comes and the guests grow again
 *           maxed    each VM has a max, so that each is a root that may be in need, and all were
 *                    asked for the pool: the tick after that, before anything came
 *           quiet    nothing happens: the pool's figure is new and the same
 *           capped   the same, after those in excess were asked once, and came
 *           stream   one guest with a soft limit of 0 streams a file twice its memory, beside
 *                    GROUPS empty groups; CYCLES is ignored
 *
 * Prints the median of the measured ticks' microseconds, the groups that the plan of such a tick
 * visits, the depth of the tree, the number of measured ticks and a fingerprint of all decisions.
 * Under callgrind, with --toggle-collect=measured_tick, only the measured ticks are counted.
 */
#include <config.h>

#include "policy/engine_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND	   UINT64_C(1000000)
#define NS_PER_S   1000000000L
#define VM_MAXIMUM MIB_TO_PAGES(1024)
#define FIRST_VM   UINT64_C(1000000)
#define MAX_CYCLES 10000

/* Watermarks in thousandths of the pool, and what is free in a tick that needs and in others. */
#define WM_MIN	     10
#define WM_LOW	     20
#define WM_HIGH	     22
#define FREE_SHORT   1990 /* in hundred thousandths */
#define FREE_ENOUGH  2100
#define VISITED_NEED MIB_TO_PAGES(64)
#define FREE_DIVISOR UINT64_C(100000)

struct guest {
	uint64_t base, usage, actual, applied_seq;
};

static struct engine *engine;
static struct guest *guests;
static struct vm_sample *samples;
static size_t nr_vms;
static unsigned int depth;
static struct engine_pool pool = { .known = true };
static uint64_t now = SECOND;
static uint64_t fingerprint = UINT64_C(14695981039346656037);

__attribute__((noinline)) int measured_tick(
	const struct engine_input *in, struct engine_output *out);

static void die(const char *what)
{
	fprintf(stderr, "walk: %s\n", what);
	exit(2);
}

static uint64_t any(void)
{
	static uint64_t state = 1;
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* ---- the tree ---- */

static bool is_over(const char *excess, size_t i, size_t nr)
{
	if (strcmp(excess, "all") == 0)
		return true;
	if (strcmp(excess, "tenth") == 0)
		return any() % 10 == 0;
	return strcmp(excess, "ten") == 0 && i % (nr / 10) == nr / 20;
}

/* Changes are taken in one tick; the engine is not measured here. */
static struct engine_change *changes;
static size_t nr_changes;
static bool maxed;

static void add_group(uint64_t id, uint64_t parent)
{
	changes[nr_changes++] = (struct engine_change){
		.type = ENGINE_GROUP_NEW, .id = id, .parent = parent, .knobs = MEMCG_KNOBS_NONE
	};
}

static void add_vm(size_t i, uint64_t parent, bool over)
{
	struct memcg_knobs knobs = MEMCG_KNOBS_NONE;

	guests[i].base = VM_MAXIMUM * 3 / 4 + any() % (VM_MAXIMUM / 8);
	guests[i].usage = guests[i].base;
	guests[i].actual = VM_MAXIMUM;
	if (maxed)
		knobs.max = VM_MAXIMUM;
	knobs.soft_limit = over ? VM_MAXIMUM / 2 + any() % 256 : VM_MAXIMUM;
	changes[nr_changes++] = (struct engine_change){
		.type = ENGINE_VM_NEW,
		.id = FIRST_VM + i,
		.parent = parent,
		.knobs = knobs,
		.attrs = { .maximum = VM_MAXIMUM, .act = true },
	};
}

/* Halves the VMs from..to until two or fewer are left in a group. */
static void add_binary(uint64_t parent, uint64_t *next, size_t from, size_t to, unsigned int level,
	const bool *over)
{
	uint64_t id;

	if (level > depth)
		depth = level;
	if (to - from == 1) {
		add_vm(from, parent, over[from]);
		return;
	}
	for (int half = 0; half < 2; half++) {
		size_t middle = from + (to - from) / 2;
		size_t a = half ? middle : from, b = half ? to : middle;

		if (b - a == 1) {
			add_binary(parent, next, a, b, level + 1, over);
			continue;
		}
		id = (*next)++;
		add_group(id, parent);
		add_binary(id, next, a, b, level + 1, over);
	}
}

static void build(const char *shape, const char *excess, size_t nr)
{
	uint64_t next = MEMCG_ROOT_ID + 1;
	bool *over;

	if (nr == 0)
		die("no groups");
	nr_vms = nr;
	over = calloc(nr, sizeof(*over));
	guests = calloc(nr, sizeof(*guests));
	samples = calloc(nr, sizeof(*samples));
	changes = calloc(2 * nr, sizeof(*changes));
	if (!over || !guests || !samples || !changes)
		die("no memory");
	for (size_t i = 0; i < nr; i++)
		over[i] = is_over(excess, i, nr);
	depth = 1;
	if (strcmp(shape, "binary") == 0) {
		add_binary(MEMCG_ROOT_ID, &next, 0, nr, 0, over);
	} else {
		for (size_t i = 0; i < nr; i++)
			add_vm(i, MEMCG_ROOT_ID, over[i]);
	}
	free(over);
}

/* ---- ticks ---- */

/* A function of its own, for callgrind. */
int measured_tick(const struct engine_input *in, struct engine_output *out)
{
	return engine_tick(engine, in, out);
}

static struct vm_sample sample_of(size_t i)
{
	const struct guest *g = &guests[i];

	return (struct vm_sample){
		.id = FIRST_VM + i,
		.known = VM_ACTUAL | VM_FIGURES_PROCESS | VM_FIGURES_STATISTICS,
		.actual = g->actual,
		.resident = g->usage,
		.overhead = MIB_TO_PAGES(20),
		.stats_actual = g->actual,
		.unused = pages_sub(g->actual, g->usage),
		.usable = pages_sub(g->actual, g->usage / 8),
		.disk_caches = g->usage * 3 / 4,
		.applied_seq = g->applied_seq,
	};
}

static void mix(uint64_t value)
{
	fingerprint = (fingerprint ^ value) * UINT64_C(0x100000001b3);
}

/* What was told takes effect, and is what the next samples show. */
static void obey(const struct engine_output *out)
{
	uint64_t sum = 0; /* of all, whatever their order */

	for (size_t n = 0; n < out->nr_actions; n++) {
		const struct engine_action *a = &out->actions[n];
		struct guest *g = &guests[a->id - FIRST_VM];

		g->actual = a->target;
		g->usage = pages_min(g->usage, g->actual);
		g->applied_seq = a->seq;
		sum += (a->id ^ a->target << 20) * UINT64_C(0x9e3779b97f4a7c15);
	}
	mix(out->nr_actions);
	mix(sum);
	mix(out->nr_events);
}

static uint64_t used_by_all(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < nr_vms; i++)
		sum += guests[i].usage + MIB_TO_PAGES(20);
	return sum;
}

/* So that this part of the pool is free. */
static void set_free(uint64_t part)
{
	pool.size = used_by_all() * FREE_DIVISOR / (FREE_DIVISOR - part) + 1;
}

static size_t sample_all(void)
{
	for (size_t i = 0; i < nr_vms; i++)
		samples[i] = sample_of(i);
	return nr_vms;
}

/* Those that were told something; shrinks to nothing when nothing is. */
static size_t sample_told(const struct engine_output *out)
{
	size_t nr = 0;

	for (size_t n = 0; n < out->nr_actions; n++)
		samples[nr++] = sample_of(out->actions[n].id - FIRST_VM);
	return nr;
}

static uint64_t later(uint64_t us)
{
	now += us;
	return now;
}

static void tick(size_t nr_samples, bool with_changes, struct engine_output *out)
{
	struct engine_input in = {
		.now = later(SECOND),
		.pool = &pool,
		.samples = samples,
		.nr_samples = nr_samples,
		.changes = changes,
		.nr_changes = with_changes ? nr_changes : 0,
	};

	if (engine_tick(engine, &in, out))
		die("a tick failed");
	obey(out);
}

static long elapsed_ns(const struct timespec *a, const struct timespec *b)
{
	return (b->tv_sec - a->tv_sec) * NS_PER_S + (b->tv_nsec - a->tv_nsec);
}

static long measure(size_t nr_samples, struct engine_output *out)
{
	struct engine_input in = {
		.now = later(SECOND), .pool = &pool, .samples = samples, .nr_samples = nr_samples
	};
	struct timespec begin, end;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	if (measured_tick(&in, out))
		die("a tick failed");
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	return elapsed_ns(&begin, &end);
}

/* Everyone's usage is another one than it was, as far as its balloon leaves it that. */
static void use_anew(void)
{
	for (size_t i = 0; i < nr_vms; i++) {
		struct guest *g = &guests[i];
		uint64_t usage = pages_min(g->base + any() % 1024, g->actual);

		g->usage = usage == g->usage ? usage - 1 : usage;
	}
}

/* What a plan visits whose need those who are over can cover: some granules of each. */
static size_t visits(void)
{
	struct reclaim_plan plan;

	if (engine_plan(engine, MEMCG_ROOT_ID, VISITED_NEED, &plan))
		die("no plan");
	return plan.visited;
}

static long busy(struct engine_output *out)
{
	long ns;

	use_anew();
	set_free(FREE_SHORT);
	ns = measure(sample_all(), out);
	if (!out->nr_actions)
		die("nobody was asked");
	obey(out);
	if (maxed)
		ns = measure(0, out);
	/* It comes, is loosened, and rests. */
	set_free(FREE_ENOUGH);
	for (int i = 0; i < 2; i++) {
		size_t nr = maxed ? sample_all() : sample_told(out);

		set_free(FREE_ENOUGH);
		tick(nr, false, out);
	}
	return ns;
}

static long quiet(struct engine_output *out)
{
	return measure(0, out);
}

/* ---- a stream ---- */

/*
 * It fills its memory with pages of the file, a chunk a tick; what the balloon takes it fills again
 * as soon as the cap is loosened. The pool has room for three quarters of it.
 */
#define STREAM_TICK_US (SECOND / 20)
#define STREAM_CHUNK   MIB_TO_PAGES(16)
#define STREAM_BALLOON MIB_TO_PAGES(8) /* a tick */

static long stream(size_t empty, size_t *ret_ticks)
{
	struct engine_output out = { 0 };
	struct guest *g;
	uint64_t read = 0, target = VM_MAXIMUM;
	long ns = 0;

	guests = calloc(1, sizeof(*guests));
	samples = calloc(1, sizeof(*samples));
	changes = calloc(empty + 1, sizeof(*changes));
	if (!guests || !samples || !changes)
		die("no memory");
	nr_vms = 1;
	add_vm(0, MEMCG_ROOT_ID, true);
	changes[0].knobs.soft_limit = 0;
	for (size_t i = 0; i < empty; i++)
		add_group(MEMCG_ROOT_ID + 1 + i, MEMCG_ROOT_ID);
	g = &guests[0];
	g->usage = VM_MAXIMUM / 4;
	pool.size = VM_MAXIMUM * 3 / 4;
	*ret_ticks = 0;
	tick(sample_all(), true, &out);
	while (read < 2 * VM_MAXIMUM) {
		struct engine_input in = { .now = later(STREAM_TICK_US),
			.pool = &pool,
			.samples = samples,
			.nr_samples = 1 };
		struct timespec begin, end;

		read += STREAM_CHUNK;
		g->usage = pages_min(g->usage + STREAM_CHUNK, g->actual);
		if (g->actual > target)
			g->actual -= pages_min(STREAM_BALLOON, g->actual - target);
		else
			g->actual = target;
		g->usage = pages_min(g->usage, g->actual);
		samples[0] = sample_of(0);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
		if (measured_tick(&in, &out))
			die("a tick failed");
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
		ns += elapsed_ns(&begin, &end);
		(*ret_ticks)++;
		for (size_t n = 0; n < out.nr_actions; n++) {
			target = out.actions[n].target;
			g->applied_seq = out.actions[n].seq;
			mix(target);
		}
	}
	return ns;
}

/* ---- */

static int by_size(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return x < y ? -1 : x > y;
}

static void open_engine(void)
{
	struct engine_config config;

	engine_config_default(&config);
	config.act = true;
	config.wm_min = (struct engine_level){ .permille = WM_MIN };
	config.wm_low = (struct engine_level){ .permille = WM_LOW };
	config.wm_high = (struct engine_level){ .permille = WM_HIGH };
	config.growth_us = 0; /* pools of another size each tick are no growth */
	config.bounds.floor_percent = 10;
	if (engine_new(&config, &engine))
		die("no engine");
}

int main(int argc, char **argv)
{
	static long ns[MAX_CYCLES];
	struct engine_output out = { 0 };
	size_t nr, cycles, visited = 0, done;

	if (argc != 6)
		die("usage: walk busy|maxed|quiet|capped|stream flat|binary none|ten|tenth|all "
		    "GROUPS "
		    "CYCLES");
	nr = strtoul(argv[4], NULL, 10);
	cycles = strtoul(argv[5], NULL, 10);
	if ((!nr && strcmp(argv[1], "stream") != 0) || !cycles || cycles > MAX_CYCLES)
		die("how many?");
	open_engine();
	if (strcmp(argv[1], "stream") == 0) {
		ns[0] = stream(nr, &done);
		printf("%ld.%03ld 0 1 %zu %016" PRIx64 "\n", ns[0] / 1000, ns[0] % 1000, done,
			fingerprint);
		return 0;
	}
	maxed = strcmp(argv[1], "maxed") == 0;
	build(argv[2], argv[3], nr);
	set_free(FREE_ENOUGH);
	tick(sample_all(), true, &out);
	/* Until all rests and no hold runs. */
	for (int i = 0; i < 20; i++)
		tick(sample_told(&out), false, &out);
	visited = visits();
	if (strcmp(argv[1], "busy") == 0 || maxed) {
		for (size_t i = 0; i < cycles; i++)
			ns[i] = busy(&out);
	} else {
		if (strcmp(argv[1], "capped") == 0)
			(void)busy(&out);
		for (int i = 0; i < 20; i++)
			tick(sample_told(&out), false, &out);
		for (size_t i = 0; i < cycles; i++)
			ns[i] = quiet(&out);
	}
	qsort(ns, cycles, sizeof(ns[0]), by_size);
	printf("%ld.%03ld %zu %u %zu %016" PRIx64 "\n", ns[cycles / 2] / 1000,
		ns[cycles / 2] % 1000, visited, depth, cycles, fingerprint);
	engine_free(engine);
	free(guests);
	free(samples);
	free(changes);
	return 0;
}
