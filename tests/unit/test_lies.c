/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A lie costs others little: over random worlds, each from a seed, with one guest whose agent says
 * anything. The same world is played beside it with an agent that says the same of its floor and
 * nothing else, and with none. Beside the one nobody gives anything active for it; beside the other
 * others give no more of that than what its floor, raised up to its soft limit at most, keeps back.
 *
 * Where a group is over its soft limit, its excess is one budget for all below it: what one of them
 * gives sooner or later for what it says leaves another part of that to the others, as it would if
 * it were true. There all others together give no more for it than the host takes for cold in the
 * liar, and what the liar gives more itself.
 *
 * BALLAST_SEED=n runs that one alone, BALLAST_SEEDS=n so many.
 */
#include <config.h>

#include "policy/engine.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/draw.h"
#include "tests/unit/suite.h"
#include "tests/unit/world.h"

#define SEEDS  20000
#define GROUPS 3
#define VMS    8
#define GROUP0 UINT64_C(100)
#define VM0    UINT64_C(200)
/* Each phase rounds, and so does what a partly swapped VM gains. */
#define SLACK 8

/* What the liar's agent does: the worlds that are compared. */
enum telling { NOTHING, FLOOR, ALL, TELLINGS };

static struct {
	struct engine_config config;
	struct engine_pool pool;
	struct engine_change changes[GROUPS + VMS];
	struct vm_sample samples[VMS];
	size_t nr_groups, nr_vms, liar;
	uint64_t need, root;
} drawn;
static struct engine *engines[TELLINGS];
static struct engine_output outputs[TELLINGS];
static uint64_t seed_now;

#define HOLDS(cond, ...)                                                                           \
	do {                                                                                       \
		char holds_said[200];                                                              \
                                                                                                   \
		if (!(cond)) {                                                                     \
			snprintf(holds_said, sizeof(holds_said), __VA_ARGS__);                     \
			ck_abort_msg("%s: seed %" PRIu64 ": %s", #cond, seed_now, holds_said);     \
		}                                                                                  \
	} while (0)

/* ---- a world ---- */

static struct memcg_knobs random_knobs(uint64_t about)
{
	struct memcg_knobs k = none;

	if (one_in(2))
		k.soft_limit = one_in(4) ? 0 : below(about);
	if (one_in(5))
		k.min = below(about / 2);
	if (one_in(4))
		k.low = below(about);
	return k;
}

static struct vm_lists random_lists(uint64_t about)
{
	struct vm_lists l = { below(about), below(about), below(about), below(about),
		below(about) };

	if (one_in(3)) /* nothing is cold */
		l.inactive_anon = l.inactive_file = 0;
	if (one_in(8)) /* all is */
		l.active_anon = l.active_file = 0;
	return l;
}

static void draw_vm(size_t i)
{
	uint64_t maximum = MIB(64 + below(600)), used = below(maximum);
	uint64_t group = below(drawn.nr_groups + 1);
	struct vm_sample *s = &drawn.samples[i];

	drawn.changes[drawn.nr_groups + i] = (struct engine_change){
		.type = ENGINE_VM_NEW,
		.id = VM0 + i,
		.parent = group ? GROUP0 + group - 1 : MEMCG_ROOT_ID,
		.knobs = random_knobs(maximum),
		.attrs = { .maximum = maximum,
			.ceiling = one_in(3) ? maximum : 0,
			.act = true,
			.guest_swap = one_in(4) },
	};
	*s = (struct vm_sample){ .id = VM0 + i,
		.known = VM_ACTUAL | VM_FIGURES_PROCESS | VM_FIGURES_STATISTICS,
		.actual = used + below(maximum - used),
		.resident = used };
	if (one_in(4)) {
		s->swapped = below(used + 1);
		s->resident -= s->swapped;
	}
	s->stats_actual = s->actual;
	s->usable = below(s->actual + 1);
	s->unused = below(s->usable + 1);
	s->disk_caches = below(used + 1);
	if (one_in(3) && i != drawn.liar) {
		drawn.changes[drawn.nr_groups + i].attrs.agent = true;
		s->known |= VM_LISTS;
		s->lists = random_lists(used);
	}
}

static void draw(uint64_t seed)
{
	uint64_t used = 0;

	rng = seed * 7919 + 3;
	memset(&drawn, 0, sizeof(drawn));
	world_config(&drawn.config);
	drawn.config.act = false; /* at first it only looks */
	drawn.config.granule = one_in(8) ? 1 : MIB(1);
	drawn.config.bounds.margin_at_least = MIB(below(40));
	drawn.config.max_step = MIB(8) << below(7);
	drawn.config.loosens = one_in(2);
	drawn.nr_groups = below(GROUPS + 1);
	for (size_t i = 0; i < drawn.nr_groups; i++)
		drawn.changes[i] = (struct engine_change){ .type = ENGINE_GROUP_NEW,
			.id = GROUP0 + i,
			.parent = i && one_in(2) ? GROUP0 + i - 1 : MEMCG_ROOT_ID,
			.knobs = random_knobs(MIB(1200)) };
	drawn.nr_vms = 2 + below(VMS - 1);
	drawn.liar = below(drawn.nr_vms);
	for (size_t i = 0; i < drawn.nr_vms; i++) {
		draw_vm(i);
		used += drawn.samples[i].resident + drawn.samples[i].swapped;
	}
	drawn.pool =
		(struct engine_pool){ .known = true, .size = used * (90 + below(30)) / 100 + 1 };
	drawn.need = below(used) + 1;
	drawn.root = drawn.nr_groups && one_in(3) ? GROUP0 + below(drawn.nr_groups) : MEMCG_ROOT_ID;
}

/* Anything; none of it is the host's to know. */
static void lie(struct engine_vm_attrs *attrs, struct vm_sample *s, enum telling telling,
	uint64_t floor, const struct vm_lists *lists, const uint64_t *words)
{
	if (telling == NOTHING)
		return;
	attrs->agent = true;
	attrs->agent_floor = floor;
	if (telling == FLOOR)
		return;
	attrs->reports = words[2] % 2;
	s->known |= VM_FIGURES_REPORT;
	s->lists = *lists;
	s->need = words[0];
	s->refaults = words[1];
}

static void play(void)
{
	struct engine_change *liar = &drawn.changes[drawn.nr_groups + drawn.liar];
	struct vm_sample *sample = &drawn.samples[drawn.liar];
	const struct engine_vm_attrs attrs = liar->attrs;
	const struct vm_sample truth = *sample;
	struct vm_lists lists = random_lists(2 * attrs.maximum);
	uint64_t floor = one_in(3) ? below(attrs.maximum / 8) : below(attrs.maximum + 1);
	uint64_t words[] = { one_in(2) ? below(MIB(500)) : 0, one_in(2) ? below(MIB(50)) : 0,
		any() };

	for (enum telling t = NOTHING; t < TELLINGS; t++) {
		struct engine_input in = { .now = SECOND_US,
			.pool = &drawn.pool,
			.changes = drawn.changes,
			.nr_changes = drawn.nr_groups + drawn.nr_vms,
			.samples = drawn.samples,
			.nr_samples = drawn.nr_vms };

		liar->attrs = attrs;
		*sample = truth;
		lie(&liar->attrs, sample, t, floor, &lists, words);
		ck_assert_int_eq(engine_new(&drawn.config, &engines[t]), 0);
		ck_assert_int_eq(engine_tick(engines[t], &in, &outputs[t]), 0);
	}
	liar->attrs = attrs;
	*sample = truth;
}

/* And now it acts: what was capped has come to rest. */
static void ask(void)
{
	const struct engine_input in = { .now = 20 * SECOND_US };

	drawn.config.act = true;
	for (enum telling t = NOTHING; t < TELLINGS; t++) {
		ck_assert_int_eq(engine_set_config(engines[t], &drawn.config), 0);
		ck_assert_int_eq(engine_tick(engines[t], &in, &outputs[t]), 0);
	}
}

static void end(void)
{
	for (enum telling t = NOTHING; t < TELLINGS; t++) {
		engine_free(engines[t]);
		engines[t] = NULL;
	}
}

static struct engine_view view(enum telling t, uint64_t id)
{
	struct engine_view v;

	ck_assert_int_eq(engine_view(engines[t], id, &v), 0);
	return v;
}

/* ---- what holds ---- */

/* What a VM gives, in pages, and of it what others than its agent would call active. */
struct given {
	uint64_t all, gain, active, active_gain;
};

static void plan(enum telling t, struct given given[VMS], bool *ret_short)
{
	struct reclaim_plan p;

	memset(given, 0, VMS * sizeof(*given));
	ck_assert_int_eq(engine_plan(engines[t], drawn.root, drawn.need, &p), 0);
	for (size_t i = 0; i < p.nr; i++) {
		struct given *g = &given[p.shares[i].memcg->id - VM0];

		g->all += p.shares[i].pages;
		g->gain += p.shares[i].gain;
		if (p.shares[i].step % 2 || p.shares[i].doubted)
			continue;
		g->active += p.shares[i].pages;
		g->active_gain += p.shares[i].gain;
	}
	*ret_short = p.short_pages > 0;
}

static void excess_is_the_hosts_to_know(void)
{
	for (size_t i = 0; i < drawn.nr_groups + drawn.nr_vms; i++) {
		uint64_t id = drawn.changes[i].id;
		struct engine_view none_told = view(NOTHING, id), told = view(ALL, id);

		HOLDS(none_told.excess == told.excess && none_told.excess_via == told.excess_via,
			"%" PRIu64 ": excess %" PRIu64 ", else %" PRIu64, id, told.excess,
			none_told.excess);
	}
}

/* A report lowers a floor at will, and raises one at most to the soft limit. */
static void bounds_hold_down_to_the_soft_limit(void)
{
	uint64_t id = VM0 + drawn.liar;
	struct engine_view none_told = view(NOTHING, id), told = view(ALL, id);
	uint64_t soft = told.knobs.soft_limit == PAGES_UNLIMITED ? 0 : told.knobs.soft_limit;

	HOLDS(told.set.floor <= pages_max(none_told.set.floor, soft),
		"floor %" PRIu64 ", soft limit %" PRIu64 ", without %" PRIu64, told.set.floor, soft,
		none_told.set.floor);
	HOLDS(told.set.keep <= pages_max(none_told.set.keep, soft),
		"keeps %" PRIu64 ", soft limit %" PRIu64 ", without %" PRIu64, told.set.keep, soft,
		none_told.set.keep);
}

static bool excess_is_shared(void)
{
	for (size_t i = 0; i < drawn.nr_groups; i++)
		if (view(ALL, drawn.changes[i].id).excess)
			return true;
	return false;
}

/* What those who share an excess may give more for the lie; more: what the liar gives itself. */
static uint64_t at_most_for_all(uint64_t more)
{
	return more + view(FLOOR, VM0 + drawn.liar).set.cold +
	       drawn.nr_vms * SLACK * (drawn.config.granule + 1);
}

/* What another gives in more is what the host would call cold in it, never active memory. */
static void each_gives_its_cold_pages_at_most(const struct given *without, const struct given *with)
{
	uint64_t slack = SLACK * (drawn.config.granule + 1);

	for (size_t i = 0; i < drawn.nr_vms; i++) {
		struct engine_view v = view(ALL, VM0 + i);
		uint64_t cold = v.set.cold + v.set.doubted;

		if (i == drawn.liar)
			continue;
		HOLDS(with[i].active <= without[i].active + slack,
			"VM %zu gives %" PRIu64 " active, without the lie %" PRIu64 ", liar is %zu",
			i, with[i].active, without[i].active, drawn.liar);
		HOLDS(with[i].all <= pages_max(without[i].all, cold) + slack,
			"VM %zu gives %" PRIu64 ", without the lie %" PRIu64 ", cold %" PRIu64
			", liar is %zu",
			i, with[i].all, without[i].all, cold, drawn.liar);
	}
}

static void all_give_little_more(const struct given *without, const struct given *with)
{
	uint64_t more = 0, less = 0, most;

	for (size_t i = 0; i < drawn.nr_vms; i++) {
		if (i == drawn.liar)
			continue;
		more += with[i].active_gain;
		less += without[i].active_gain;
	}
	most = at_most_for_all(pages_sub(with[drawn.liar].gain, without[drawn.liar].gain));
	HOLDS(more <= less + most,
		"others give %" PRIu64 " active, without the lie %" PRIu64 ", at most %" PRIu64
		" more, liar is %zu",
		more, less, most, drawn.liar);
}

static void others_give_their_cold_pages_at_most(void)
{
	struct given without[VMS], with[VMS];
	uint64_t slack = SLACK * (drawn.config.granule + 1);
	bool short_without, short_with;

	plan(FLOOR, without, &short_without);
	plan(ALL, with, &short_with);
	if (excess_is_shared())
		all_give_little_more(without, with);
	else
		each_gives_its_cold_pages_at_most(without, with);
	HOLDS(short_with <= short_without ||
			with[drawn.liar].all + slack >= without[drawn.liar].all,
		"short, and the liar keeps back %" PRIu64,
		without[drawn.liar].all - with[drawn.liar].all);
}

/* A floor is the guest's word, too: what it keeps back by that others give instead, and no more. */
static void others_give_active_memory_for_its_floor_at_most(void)
{
	struct given without[VMS], with[VMS];
	struct engine_view none_told = view(NOTHING, VM0 + drawn.liar),
			   told = view(ALL, VM0 + drawn.liar);
	uint64_t kept = pages_sub(told.set.keep, none_told.set.keep), more = 0, less = 0;
	bool short_without, short_with;

	plan(NOTHING, without, &short_without);
	plan(ALL, with, &short_with);
	if (excess_is_shared())
		kept += at_most_for_all(pages_sub(with[drawn.liar].gain, without[drawn.liar].gain));
	for (size_t i = 0; i < drawn.nr_vms; i++) {
		if (i == drawn.liar)
			continue;
		more += with[i].active_gain;
		less += without[i].active_gain;
	}
	HOLDS(more <= less + kept + drawn.nr_vms * SLACK * (drawn.config.granule + 1),
		"others give %" PRIu64 " active, without an agent %" PRIu64
		", its floor keeps %" PRIu64 " more",
		more, less, kept);
}

/* The same of what is asked at once. */
static void others_are_asked_for_their_cold_pages_at_most(void)
{
	uint64_t slack = SLACK * (drawn.config.granule + 1), more = 0, less = 0, liars = 0;
	bool shared = excess_is_shared();

	for (size_t i = 0; i < drawn.nr_vms; i++) {
		struct engine_view with = view(ALL, VM0 + i), without = view(FLOOR, VM0 + i);
		uint64_t cold = with.set.cold + with.set.doubted;

		if (i == drawn.liar) {
			liars = pages_sub(with.owed, without.owed);
			continue;
		}
		HOLDS(shared || with.owed <= pages_max(without.owed, cold) + slack,
			"VM %zu is asked for %" PRIu64 ", without the lie %" PRIu64
			", cold %" PRIu64 ", liar is %zu",
			i, with.owed, without.owed, cold, drawn.liar);
		more += pages_sub(with.owed, pages_max(without.owed, cold));
		less += pages_sub(without.owed, with.owed);
	}
	HOLDS(more <= less + at_most_for_all(liars),
		"others are asked for %" PRIu64 " more and %" PRIu64 " less, the liar for %" PRIu64
		" more",
		more, less, liars);
}

/* Who says that it lacks memory is fed to its soft limit, and not at all in excess. */
static void liar_is_fed_no_more_than_its_soft_limit(void)
{
	struct engine_view v = view(ALL, VM0 + drawn.liar);

	for (size_t i = 0; i < outputs[ALL].nr_actions; i++) {
		const struct engine_action *a = &outputs[ALL].actions[i];

		if (a->id != VM0 + drawn.liar || a->reason.type != ENGINE_FEED)
			continue;
		HOLDS(!v.excess && !v.excess_via, "fed in excess of %" PRIu64, v.excess);
		HOLDS(a->target <= pages_max(v.knobs.soft_limit, a->reason.from),
			"fed to %" PRIu64 ", soft limit %" PRIu64, a->target, v.knobs.soft_limit);
	}
}

static void seed(uint64_t n)
{
	seed_now = n;
	draw(n);
	play();
	excess_is_the_hosts_to_know();
	bounds_hold_down_to_the_soft_limit();
	others_give_their_cold_pages_at_most();
	others_give_active_memory_for_its_floor_at_most();
	ask();
	others_are_asked_for_their_cold_pages_at_most();
	liar_is_fed_no_more_than_its_soft_limit();
	end();
}

START_TEST(a_lie_costs_others_little)
{
	const char *one = getenv("BALLAST_SEED"), *nr = getenv("BALLAST_SEEDS");
	uint64_t seeds = nr ? strtoull(nr, NULL, 10) : SEEDS;

	if (one) {
		seed(strtoull(one, NULL, 10));
		return;
	}
	for (uint64_t n = 1; n <= seeds; n++)
		seed(n);
}
END_TEST

/* ---- faults that it found, each by itself ---- */

/* Two VMs of 400 MiB used under no limit; 2 has 100 MiB of page cache, 3 nothing that is cold. */
static struct world w;

static void two(void)
{
	world_open_pool(&w, MIB(1000));
	world_add(&w, 2, MEMCG_ROOT_ID, MIB(500), MIB(400), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(500), MIB(400), &none);
	world_vm(&w, 2)->cache = MIB(320);
	world_vm(&w, 3)->cache = 0;
	world_vm(&w, 2)->tells = true;
	world_vm(&w, 2)->lists = (struct vm_lists){ .active_file = MIB(320) };
}

static void attrs_of_2(bool agent, bool trust)
{
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_ATTRS,
				 .id = 2,
				 .attrs = { .maximum = MIB(500),
					 .act = true,
					 .agent = agent,
					 .trust = trust } });
}

/* It says that all it has is active: an eighth of its cache goes all the same before others'. */
START_TEST(guest_that_calls_all_of_its_memory_active_gives_before_others_give_active_memory)
{
	struct reclaim_plan p;

	two();
	attrs_of_2(true, _i);
	world_tick(&w);
	ck_assert_uint_eq(world_view(&w, 2).set.cold, 0);
	ck_assert_int_eq(engine_plan(w.engine, MEMCG_ROOT_ID, MIB(40), &p), 0);
	ck_assert_uint_eq(p.shares[0].memcg->id, _i ? p.shares[0].memcg->id : 2);
	ck_assert_uint_eq(p.nr, _i ? 2 : 1);
	ck_assert(p.shares[0].doubted == !_i);
	ck_assert_uint_eq(p.shares[0].step, 4);
	world_close(&w);
}
END_TEST

/* It says that it lacks memory: what it has that is cold goes before what is active in others. */
START_TEST(guest_that_claims_to_lack_memory_for_ever_gives_what_is_cold_in_it)
{
	struct reclaim_plan p;

	two();
	attrs_of_2(true, false);
	world_vm(&w, 2)->lists = (struct vm_lists){ .inactive_file = MIB(320) };
	world_vm(&w, 2)->need = MIB(400);
	world_ticks(&w, 20);
	ck_assert_int_eq(engine_plan(w.engine, MEMCG_ROOT_ID, MIB(40), &p), 0);
	ck_assert_uint_eq(p.nr, 1);
	ck_assert_uint_eq(p.shares[0].memcg->id, 2);
	ck_assert(p.shares[0].doubted);
	world_close(&w);
}
END_TEST

/* What it reads again is not cold, for a hold time; in excess nobody listens. */
START_TEST(guest_that_reads_again_what_it_lost_is_spared_while_others_have_cold_memory)
{
	const struct memcg_knobs limit = soft(MIB(100));
	struct reclaim_plan p;

	two();
	attrs_of_2(true, false);
	world_vm(&w, 2)->lists = (struct vm_lists){ .inactive_file = MIB(320) };
	world_vm(&w, 3)->cache = MIB(320); /* an eighth of it is cold */
	world_vm(&w, 2)->refaults = MIB(5);
	if (_i)
		world_knobs(&w, 2, &limit);
	world_ticks(&w, 20);
	world_vm(&w, 2)->refaults = 0;
	world_ticks(&w, 20);
	ck_assert_int_eq(engine_plan(w.engine, MEMCG_ROOT_ID, MIB(30), &p), 0);
	ck_assert_uint_eq(p.shares[0].memcg->id, _i ? 2 : 3);
	ck_assert_uint_eq(p.nr, 1);
	world_ticks(&w, 100);
	ck_assert_int_eq(engine_plan(w.engine, MEMCG_ROOT_ID, MIB(30), &p), 0);
	ck_assert_uint_eq(p.shares[0].memcg->id, 2);
	ck_assert_uint_eq(p.shares[0].step, _i ? 1 : 3);
	world_close(&w);
}
END_TEST

/* 2, capped and under its limit, says that it lacks memory; 3, over its own, has nothing cold. */
START_TEST(nobody_gives_active_memory_because_a_guest_says_that_it_lacks_some)
{
	struct memcg_knobs low = soft(MIB(100)), high = soft(MIB(450));
	unsigned int asked;

	world_open_pool(&w, MIB(640));
	world_capped(&w, 2, MIB(500), MIB(100), &high);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(500), MIB(490), &low);
	world_vm(&w, 3)->cache = 0;
	world_vm(&w, 2)->tells = true;
	world_vm(&w, 2)->hung = true; /* so that it stays capped */
	attrs_of_2(true, false);
	world_vm(&w, 2)->need = MIB(100);
	world_vm(&w, 3)->no_stats = true; /* nor anything that could be taken for it */
	world_ticks(&w, 3);
	asked = world_actions(&w, 3, ENGINE_CUT);
	ck_assert_uint_eq(asked, 0);
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
	world_close(&w);
}
END_TEST

/* As on Xen, where a target is memory at once: 3 is in no excess, and has nothing cold. */
START_TEST(guest_that_claims_to_lack_memory_gets_what_is_free_and_nobody_is_cut_for_it)
{
	struct engine_config config;

	world_config(&config);
	config.loosens = false;
	world_open(&w, &config, MIB(1000));
	world_capped(&w, 2, MIB(800), MIB(300), &none);
	world_add(&w, 3, MEMCG_ROOT_ID, MIB(600), MIB(590), &none);
	world_vm(&w, 3)->cache = 0;
	world_vm(&w, 2)->tells = true;
	world_change(&w, &(struct engine_change){ .type = ENGINE_VM_ATTRS,
				 .id = 2,
				 .attrs = { .maximum = MIB(800), .act = true, .agent = true } });
	world_vm(&w, 2)->need = MIB(400);
	world_ticks(&w, 60);
	ck_assert_uint_eq(world_vm(&w, 3)->commands, 0);
	ck_assert_uint_eq(world_vm(&w, 2)->target, MIB(330)); /* 110 are free, 80 is wm_high */
	world_close(&w);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lies");
	TCase *tc = tcase_create("lies");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_lie_costs_others_little);
	tcase_add_loop_test(tc,
		guest_that_calls_all_of_its_memory_active_gives_before_others_give_active_memory, 0,
		2);
	tcase_add_test(tc, guest_that_claims_to_lack_memory_for_ever_gives_what_is_cold_in_it);
	tcase_add_loop_test(tc,
		guest_that_reads_again_what_it_lost_is_spared_while_others_have_cold_memory, 0, 2);
	tcase_add_test(
		tc, guest_that_claims_to_lack_memory_gets_what_is_free_and_nobody_is_cut_for_it);
	tcase_add_test(tc, nobody_gives_active_memory_because_a_guest_says_that_it_lacks_some);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
