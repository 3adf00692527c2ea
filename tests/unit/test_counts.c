/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading takes time in proportion to what is read: comparisons of texts, bytes that are moved to
 * make room, and allocations are counted at N and 2 N, not seconds.
 */
#include <config.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "hv/ballastd/config.h"
#include "hv/replay.h"
#include "hv/sim/scenario.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

static uint64_t compared, moved, allocated;

int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t nr, size_t size);
void *__wrap_reallocarray(void *p, size_t nr, size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__wrap_calloc(size_t nr, size_t size);

int __wrap_strcmp(const char *a, const char *b)
{
	compared++;
	return __real_strcmp(a, b);
}

void *__wrap_realloc(void *p, size_t size)
{
	moved += p ? size : 0;
	allocated++;
	return __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t nr, size_t size)
{
	moved += p ? nr * size : 0;
	allocated++;
	return __real_reallocarray(p, nr, size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	allocated++;
	return __real_calloc(nr, size);
}

struct counts {
	uint64_t compared, moved, allocated;
};

static char folder[SCRATCH_PATH], path[SCRATCH_PATH + 8];

static void setup(void)
{
	scratch_new(folder);
	snprintf(path, sizeof(path), "%s/file", folder);
}

/* VMs in groups, what happens to each, what the operator does to each, what is expected of each. */
static void write_scenario(unsigned int nr)
{
	FILE *stream = fopen(path, "w");

	ck_assert_ptr_nonnull(stream);
	fputs("[operator]\n", stream);
	for (unsigned int i = 0; i < nr; i++)
		fprintf(stream,
			"at 1s = reclaim 1MiB of vm%u\nat 2s = release /g%u\nat 3s = pause vm%u\n",
			i, i, i);
	for (unsigned int i = 0; i < nr; i++)
		fprintf(stream, "[group /h%u]\nmin = 1MiB\n", i);
	for (unsigned int i = 0; i < nr; i++)
		fprintf(stream,
			"[vm vm%u]\nmemory = 1GiB\nhot = 1MiB\ngroup = /g%u/x\n"
			"at 5s = grow 1MiB\nat 6s = idle\nat 7s = fault fail\n",
			i, i);
	fputs("[expect]\n", stream);
	for (unsigned int i = 0; i < nr; i++)
		fprintf(stream, "always = vm%u.actual >= 1MiB\n", i);
	fclose(stream);
}

static void read_scenario(void)
{
	struct scenario *scenario = NULL;
	char *errors = NULL;
	int r = scenario_load(path, &scenario, &errors);

	ck_assert_msg(r == 0, "%s", errors ? errors : strerror(-r));
	scenario_free(scenario);
}

#define CONFIG                                                                                     \
	"{\"act\":true,\"loosens\":true,\"granule\":256,\"wm_min\":{\"permille\":20},"             \
	"\"wm_low\":{\"permille\":50},\"wm_high\":{\"permille\":80},\"bounds\":{"                  \
	"\"floor_percent\":50,\"floor_free_only_percent\":75,\"margin_percent\":10,"               \
	"\"margin_at_least\":65536},\"max_step\":65536,\"headroom_at_least\":16384,"               \
	"\"headroom_fraction\":16,\"speed\":12800,\"hold_us\":10000000,\"hold_max_us\":300000000," \
	"\"ask_deadline_us\":5000000,\"rest_us\":3000000,\"growth_us\":1000000,\"release_us\":"    \
	"600000000}"

/* Names, VMs that come in one tick, and ticks in which nothing happens. */
static void write_recording(unsigned int nr)
{
	FILE *stream = fopen(path, "w");

	ck_assert_ptr_nonnull(stream);
	fputs("{\"format\":\"ballast-recording\",\"version\":1,\"config\":" CONFIG "}\n", stream);
	for (unsigned int i = 0; i < nr; i++)
		fprintf(stream, "{\"id\":%u,\"name\":\"vm%u\"}\n", i + 2, i);
	fputs("{\"now\":1,\"changes\":[", stream);
	for (unsigned int i = 0; i < nr; i++)
		fprintf(stream,
			"%s{\"type\":\"vm_new\",\"id\":%u,\"parent\":1,\"knobs\":{\"max\":4096},"
			"\"attrs\":{\"maximum\":4096}}",
			i > 0 ? "," : "", i + 2);
	fputs("]}\n", stream);
	for (unsigned int i = 0; i < nr; i++)
		fprintf(stream, "{\"now\":%u,\"pool\":{\"known\":true,\"size\":262144}}\n", i + 2);
	fclose(stream);
}

static void read_recording(void)
{
	FILE *stream = fopen(path, "r");
	struct replay_result result;

	ck_assert_ptr_nonnull(stream);
	ck_assert_msg(replay(stream, &result) == 0, "%s", result.what);
	fclose(stream);
}

static void write_groups(unsigned int nr)
{
	FILE *stream = fopen(path, "w");

	ck_assert_ptr_nonnull(stream);
	for (unsigned int i = 0; i < nr; i++)
		fprintf(stream, "[group /g%u]\nlow = 1MiB\n", i);
	fclose(stream);
}

static void read_groups(void)
{
	const struct config_source source = { .file = path };
	struct config *config = NULL;
	char *errors = NULL;

	ck_assert_msg(config_load(&source, &config, &errors) == 0, "%s", errors);
	config_free(config);
}

static struct counts count(void (*read)(void))
{
	compared = moved = allocated = 0;
	read();
	return (struct counts){ compared, moved, allocated };
}

/* Doubled, and a tenth for what is rounded up to a power of two. */
static void check_doubled(const char *what, uint64_t once, uint64_t twice)
{
	ck_assert_msg(twice <= 2 * once + once / 5, "%s: %llu, and of twice as much %llu", what,
		(unsigned long long)once, (unsigned long long)twice);
}

#define NR 256

static void check_linear(void (*write)(unsigned int nr), void (*read)(void))
{
	struct counts once, twice;

	write(NR);
	once = count(read);
	write(2 * NR);
	twice = count(read);
	ck_assert_uint_gt(once.compared, NR);
	check_doubled("comparisons", once.compared, twice.compared);
	check_doubled("bytes moved", once.moved, twice.moved);
	check_doubled("allocations", once.allocated, twice.allocated);
}

START_TEST(twice_the_scenario_takes_twice_as_much)
{
	check_linear(write_scenario, read_scenario);
}
END_TEST

START_TEST(twice_the_recording_takes_twice_as_much)
{
	check_linear(write_recording, read_recording);
}
END_TEST

/* Read on SIGHUP too, in the daemon's loop. */
START_TEST(twice_the_groups_are_moved_twice_as_much_while_they_are_read)
{
	struct counts once, twice;

	write_groups(NR);
	once = count(read_groups);
	write_groups(2 * NR);
	twice = count(read_groups);
	ck_assert_uint_gt(once.moved, NR);
	check_doubled("bytes moved", once.moved, twice.moved);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("counts");
	TCase *tc = tcase_create("counts");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, twice_the_scenario_takes_twice_as_much);
	tcase_add_test(tc, twice_the_recording_takes_twice_as_much);
	tcase_add_test(tc, twice_the_groups_are_moved_twice_as_much_while_they_are_read);
	suite_add_tcase(suite, tc);
	scratch_begin();
	return suite_run(suite);
}
