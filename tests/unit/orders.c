/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every order of shared accesses: see orders.h. */
#include <config.h>

#include "tests/unit/orders.h"

#include <check.h>
#include <string.h>
#include <ucontext.h>

/* Accesses in one run, of all threads. A loop that another thread can keep going for ever would be
 * seen here. */
#define ACCESSES_MAX 400
#define STACK_BYTES  (128 << 10)

struct thread {
	ucontext_t context;
	void (*run)(void);
	bool runs;
	const volatile void *addr; /* that it accesses next */
	bool changes;
};

/* A point of the run: who went on, and who need not from here, as that was a run already. */
struct choice {
	unsigned int ready, asleep, tried;
	unsigned int chosen;
};

static struct thread threads[ORDERS_THREADS];
static char stacks[ORDERS_THREADS][STACK_BYTES] __attribute__((aligned(64)));
static ucontext_t scheduler;
static struct thread *current; /* NULL: not in a run */
static struct choice choices[ACCESSES_MAX];

void atomic_hook(const volatile void *addr, bool changes);

void atomic_hook(const volatile void *addr, bool changes)
{
	struct thread *t = current;

	if (!t)
		return;
	t->addr = addr;
	t->changes = changes;
	swapcontext(&t->context, &scheduler);
}

static void thread_main(void)
{
	current->run();
	current->runs = false;
}

static void resume(struct thread *t)
{
	current = t;
	swapcontext(&scheduler, &t->context);
	current = NULL;
}

static void thread_start(struct thread *t, void (*run)(void), char *stack)
{
	*t = (struct thread){ .run = run, .runs = true };
	ck_assert_int_eq(getcontext(&t->context), 0);
	t->context.uc_stack.ss_sp = stack;
	t->context.uc_stack.ss_size = STACK_BYTES;
	t->context.uc_link = &scheduler;
	makecontext(&t->context, thread_main, 0);
	resume(t); /* up to its first access */
}

static bool independent(const struct thread *a, const struct thread *b)
{
	return a->addr != b->addr || (!a->changes && !b->changes);
}

static unsigned int ready(void)
{
	unsigned int mask = 0;

	for (unsigned int i = 0; i < ORDERS_THREADS; i++)
		mask |= threads[i].runs ? 1U << i : 0;
	return mask;
}

/* Who still need not go on after this: who commutes with the one that does. */
static unsigned int asleep_after(const struct choice *c)
{
	unsigned int mask = (c->asleep | c->tried) & ~(1U << c->chosen), after = 0;

	for (unsigned int i = 0; i < ORDERS_THREADS; i++) {
		if (mask & (1U << i) && independent(&threads[i], &threads[c->chosen]))
			after |= 1U << i;
	}
	return after;
}

/*
 * One run: the first nr_fixed choices as they are, then the first thread that is not asleep.
 * Returns the number of choices; where all were asleep, the rest is made in any order, not listed.
 */
static size_t run(const struct orders *orders, size_t nr_fixed, bool *ret_new)
{
	unsigned int asleep = 0, can;
	size_t n = 0, more = 0;

	orders->setup();
	for (size_t i = 0; i < ORDERS_THREADS; i++) {
		threads[i].runs = false;
		if (orders->threads[i])
			thread_start(&threads[i], orders->threads[i], stacks[i]);
	}
	while ((can = ready()) && (n < nr_fixed || (can & ~asleep))) {
		struct choice *c = &choices[n];

		if (n >= nr_fixed) {
			*c = (struct choice){ .ready = can, .asleep = asleep };
			c->chosen = (unsigned int)__builtin_ctz(can & ~asleep);
		}
		ck_assert_uint_eq(c->ready, can); /* the same run up to here */
		asleep = asleep_after(c);
		resume(&threads[c->chosen]);
		ck_assert_uint_lt(++n, ACCESSES_MAX);
	}
	*ret_new = can == 0;
	while ((can = ready())) {
		ck_assert_uint_lt(++more, ACCESSES_MAX);
		resume(&threads[__builtin_ctz(can)]);
	}
	orders->check();
	return n;
}

/* The deepest choice that has another way; how many choices then stand. 0: none. */
static size_t backtrack(size_t n)
{
	for (; n > 0; n--) {
		struct choice *c = &choices[n - 1];
		unsigned int left;

		c->tried |= 1U << c->chosen;
		left = c->ready & ~c->asleep & ~c->tried;
		if (left) {
			c->chosen = (unsigned int)__builtin_ctz(left);
			return n;
		}
	}
	return 0;
}

uint64_t orders_all(const struct orders *orders, size_t *ret_accesses)
{
	size_t fixed = 0, n, longest = 0;
	uint64_t runs = 0;
	bool is_new;

	do {
		n = run(orders, fixed, &is_new);
		runs += is_new;
		longest = n > longest ? n : longest;
		fixed = backtrack(n);
	} while (fixed);
	*ret_accesses = longest;
	return runs;
}
