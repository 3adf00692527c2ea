/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What ballastctl prints for people, of answers as the daemon gives them. */
#include <config.h>

#include "tools/ballastctl.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "policy/engine.h"
#include "tests/unit/suite.h"

/* What show prints of that answer; the caller's. */
static char *shown(void (*show)(struct json_object *), const char *answer)
{
	struct json_object *object = NULL;
	FILE *before = stdout;
	char *text = NULL;
	size_t size = 0;

	ck_assert_int_eq(json_read(answer, strlen(answer), &object, NULL), 0);
	stdout = open_memstream(&text, &size);
	ck_assert_ptr_nonnull(stdout);
	show(object);
	fclose(stdout);
	stdout = before;
	json_object_put(object);
	return text;
}

static void check_shown(void (*show)(struct json_object *), const char *answer, const char *wanted)
{
	char *text = shown(show, answer);

	ck_assert_msg(!strcmp(text, wanted), "shown:\n%s\nwanted:\n%s", text, wanted);
	free(text);
}

/* A pool that is short, a guest of each kind of figure, and agents that tell all, some or none. */
static const char status[] =
	"{\"schema_version\":1,\"mode\":\"act\",\"backend\":\"libvirt\",\"connected\":true,"
	"\"paused\":true,\"pool\":{\"known\":true,\"size\":8589934592,\"used\":7516192768,"
	"\"overhead\":134217728,\"free\":-16777216,\"wm_min\":134217728,\"wm_low\":402653184,"
	"\"wm_high\":671088640,\"growth\":25165824,\"need\":687865856,\"owed\":268435456,"
	"\"hung\":4194304,\"gifts\":8388608,\"short\":419430400,\"others\":1073741824,"
	"\"others_over\":true},"
	"\"groups\":[{\"path\":\"/\",\"usage\":7516192768},"
	"{\"path\":\"/prod\",\"usage\":4294967296,\"soft_limit\":3221225472,\"excess\":1073741824,"
	"\"low\":0,\"owed\":0}],"
	"\"vms\":["
	"{\"name\":\"batch\",\"state\":\"running\",\"usage\":2147483648,\"guest_used\":1610612736,"
	"\"actual\":2684354560,\"target\":2415919104,\"ceiling\":4294967296,"
	"\"soft_limit\":1073741824,\"excess\":1073741824,\"floor\":536870912,\"owed\":268435456,"
	"\"agent\":{\"connected\":true,\"silent\":false,\"software\":\"ballast-agent 0.1.0\","
	"\"version\":1,\"reclaims\":true,\"active_anon\":1048576,\"inactive_anon\":2097152,"
	"\"active_file\":4194304,\"inactive_file\":8388608,\"workingset\":16777216,"
	"\"psi_some_permille\":125,\"psi_full_permille\":0,\"refaults_per_second\":4096,"
	"\"swapins_per_second\":0,\"need\":0,\"freed\":67108864}},"
	"{\"name\":\"web\",\"state\":\"running\",\"hold\":\"at its "
	"floor\",\"also\":[\"throttled\"],"
	"\"contended\":true,\"usage\":1073741824,\"guest_used\":536870912,\"stale\":true,"
	"\"actual\":1073741824,\"excess\":0,\"excess_via\":\"/prod\",\"floor\":536870912,"
	"\"owed\":0,"
	"\"agent\":{\"connected\":true,\"silent\":true,\"software\":\"ballast-agent 0.1.0\","
	"\"version\":1,\"reclaims\":true,\"cold_anon\":2097152,\"cold_file\":8388608,"
	"\"refaults_per_second\":0,\"swapins_per_second\":0,\"need\":0,\"freed\":0,"
	"\"faults\":3,\"fault\":\"has no type\"}},"
	"{\"name\":\"win\",\"state\":\"statistics limited\",\"contended\":true,"
	"\"usage\":1073741824,\"guest_used\":805306368,\"guest_used_estimated\":true,"
	"\"actual\":1073741824,\"excess\":0,\"owed\":0,"
	"\"agent\":{\"connected\":true,\"silent\":false,\"software\":\"x\",\"version\":1,"
	"\"reclaims\":false,\"freed\":0}},"
	"{\"name\":\"new\",\"state\":\"paused\",\"hold\":\"state\",\"excess\":0,\"owed\":0,"
	"\"agent\":{\"connected\":false,\"freed\":4096,\"faults\":1,\"fault\":\"flood\"}},"
	"{\"name\":\"micro\",\"state\":\"running\",\"usage\":16777216,\"excess\":0,\"owed\":0,"
	"\"paging\":{\"faults\":4096,\"waited\":7,\"over_max\":4096,\"dropped\":0,\"failed\":0,"
	"\"left\":true}}]}";

/* clang-format off */
static const char status_shown[] =
	"mode act, paused (nobody is asked), libvirt\n"
	"pool: -16 MiB free of 8 GiB; VMs use 7 GiB and 128 MiB beside it; watermarks 128 MiB min, 384 MiB low, 640 MiB high\n"
	"free memory fell by up to 24 MiB a second, lately: low and high allow for it\n"
	"others on the host use 1 GiB, more than others-max\n"
	"short of memory: 656 MiB needed, 256 MiB asked for and not come\n"
	"8 MiB are promised to VMs and not taken yet\n"
	"*short*: nobody can give the last 400 MiB; see ballastctl explain\n"
	"4 MiB were asked of VMs that do not answer\n"
	"\n"
	"GROUP  USAGE  SOFT-LIMIT  EXCESS  MIN  LOW  MAX\n"
	"/prod  4 GiB       3 GiB   1 GiB    -  0 B    -\n"
	"\n"
	"NAME   STATE                              USAGE  GUEST-USED   ACTUAL    TARGET  CEILING  SOFT-LIMIT     EXCESS    FLOOR  PENDING\n"
	"batch  running                            2 GiB     1.5 GiB  2.5 GiB  2.25 GiB    4 GiB       1 GiB      1 GiB  512 MiB  256 MiB\n"
	"web    running, at its floor, throttled   1 GiB    ~512 MiB    1 GiB         -        -           -  via /prod  512 MiB      0 B\n"
	"win    statistics limited, contended      1 GiB    ~768 MiB    1 GiB         -        -           -        0 B        -      0 B\n"
	"new    paused                                 -           -        -         -        -           -        0 B        -      0 B\n"
	"micro  running                           16 MiB           -        -         -        -           -        0 B        -      0 B\n"
	"\n"
	"AGENT OF  ACTIVE  INACTIVE  WORKING-SET  REFAULTS/S  WAITING   FREED  SOFTWARE\n"
	"batch      5 MiB    10 MiB       16 MiB       4 KiB   12.5 %  64 MiB  ballast-agent 0.1.0\n"
	"web            -    10 MiB            -         0 B        -     0 B  ballast-agent 0.1.0, silent, fault: has no type\n"
	"win            -         -            -           -        -     0 B  x\n"
	"new            -         -            -           -        -   4 KiB  gone, fault: flood\n"
	"\n"
	"PAGED  FAULTS  WAITED  OVER-MAX  DROPPED  FAILED  BY\n"
	"micro    4096       7     4 KiB      0 B     0 B  the kernel\n";
/* clang-format on */

START_TEST(status_has_every_figure_and_a_dash_for_what_is_unknown)
{
	check_shown(show_status, status, status_shown);
}
END_TEST

START_TEST(status_before_the_host_is_known_has_no_figures)
{
	check_shown(show_status,
		"{\"mode\":\"observe\",\"backend\":\"xen\",\"connected\":false,"
		"\"pool\":{\"known\":false},\"groups\":[],\"vms\":[]}",
		"mode observe, xen (not connected: figures are old, nothing is decided)\n"
		"pool: not known yet\n\nno VMs\n");
}
END_TEST

START_TEST(what_is_under_way_where_nothing_is_needed_is_no_shortage)
{
	char *text = shown(show_status,
		"{\"mode\":\"act\",\"connected\":true,\"pool\":{\"known\":true,\"need\":0,"
		"\"owed\":1048576}}");

	ck_assert_msg(strstr(text, "\n1 MiB asked for and not come\n") != NULL, "%s", text);
	ck_assert(!strstr(text, "short"));
	free(text);
}
END_TEST

#define SHOW(agent)                                                                                \
	"{\"name\":\"web\",\"uuid\":\"u\",\"state\":\"running\",\"group\":\"/\",\"knobs\":[],"     \
	"\"agent\":{\"connected\":true,\"software\":\"a\",\"version\":1,\"reclaims\":true,"        \
	"\"freed\":0," agent "}}"
#define HEAD "web (u), running, group /\n\nKNOB  VALUE  FROM  OVERRIDES\n\nagent: a, protocol 1\n"

START_TEST(agent_of_a_kernel_with_generations_is_shown_with_what_is_cold)
{
	check_shown(show_knobs,
		SHOW("\"cold_anon\":1048576,\"cold_file\":3145728,\"need\":0,"
		     "\"refaults_per_second\":0,\"swapins_per_second\":0,"
		     "\"groups\":[{\"name\":\"/a\",\"active\":4096,\"inactive\":0,"
		     "\"refaults_per_second\":0,\"psi_some_permille\":1}]"),
		HEAD "  cold 4 MiB (3 MiB of it page cache)\n  lacks nothing\n"
		     "  reads again 0 B a second, swaps in 0 B\n  freed 0 B for ballast\n\n"
		     "GROUP  ACTIVE  INACTIVE  REFAULTS/S  WAITING\n"
		     "/a      4 KiB       0 B         0 B    0.1 %\n");
}
END_TEST

START_TEST(agent_that_finds_out_by_probes_is_shown_with_no_lists)
{
	check_shown(show_knobs, SHOW("\"groups\":[{\"name\":\"/a\",\"refaults_per_second\":8192}]"),
		HEAD "  freed 0 B for ballast\n\n"
		     "GROUP  ACTIVE  INACTIVE  REFAULTS/S  WAITING\n"
		     "/a          -         -       8 KiB        -\n");
}
END_TEST

START_TEST(every_kind_of_decision_is_explained_in_words)
{
	for (int i = 0; i < ENGINE_REASON_NR; i++) {
		const char *name = engine_reason_name((enum engine_reason_type)i);
		char answer[600], *text, *words;

		snprintf(answer, sizeof(answer),
			"{\"mode\":\"act\",\"now_us\":2000000,\"vms\":[{\"name\":\"web\","
			"\"reasons\":["
			"{\"type\":\"%s\",\"at_us\":1000000,\"root\":\"/\",\"step\":1}]}]}",
			name);
		text = shown(show_reasons, answer);
		words = strstr(text, "  1.0 s ago: target ");
		ck_assert_msg(words != NULL, "%s: %s", name, text);
		words = strchr(words, '\n') + 1;
		ck_assert_msg(!strncmp(words, "    ", 4) && words[4] >= 'a' && words[4] <= 'z',
			"%s has no words:\n%s", name, text);
		free(text);
	}
}
END_TEST

START_TEST(decision_that_only_a_later_daemon_makes_has_its_figures_all_the_same)
{
	char *text = shown(show_reasons,
		"{\"mode\":\"act\",\"now_us\":0,\"vms\":[{\"reasons\":[{\"type\":\"borrow\","
		"\"usage\":4096,\"actual\":8192,\"free\":0}]}]}");

	ck_assert_msg(
		strstr(text, "(borrow)\n    It used 4 KiB of 8 KiB; the pool had 0 B free.\n"),
		"%s", text);
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("show");
	TCase *tc = tcase_create("people");

	tcase_add_test(tc, status_has_every_figure_and_a_dash_for_what_is_unknown);
	tcase_add_test(tc, status_before_the_host_is_known_has_no_figures);
	tcase_add_test(tc, what_is_under_way_where_nothing_is_needed_is_no_shortage);
	tcase_add_test(tc, agent_of_a_kernel_with_generations_is_shown_with_what_is_cold);
	tcase_add_test(tc, agent_that_finds_out_by_probes_is_shown_with_no_lists);
	tcase_add_test(tc, every_kind_of_decision_is_explained_in_words);
	tcase_add_test(tc, decision_that_only_a_later_daemon_makes_has_its_figures_all_the_same);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
