/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who else moves balloons on this host, by a /proc of the test's own. */
#include <config.h>

#include "hv/ballastd/managers.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

static char proc[SCRATCH_PATH];
static unsigned int next_pid;

static void setup(void)
{
	scratch_new(proc);
	next_pid = 100;
}

/* Arguments with | between them. */
static void process(const char *arguments)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u", proc, next_pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%u/cmdline", proc, next_pid++);
	file = fopen(path, "w");
	for (; *arguments; arguments++)
		fputc(*arguments == '|' ? '\0' : *arguments, file);
	fclose(file);
}

static const struct {
	const char *command, *name; /* NULL: it is none */
} commands[] = {
	{ "/usr/bin/python3|/usr/sbin/momd|-c|/etc/momd.conf|", "momd" },
	{ "/usr/bin/python3|-s|/usr/share/vdsm/vdsmd|", "vdsmd" },
	{ "/usr/libexec/vdsm/mom-vdsm|", "mom-vdsm" }, { "pvestatd|", "pvestatd" },
	{ "/usr/bin/perl|-T|/usr/bin/pvestatd|start|", "pvestatd" },
	{ "/opt/xensource/libexec/squeezed|-daemon|", "squeezed" }, { "vim|/etc/momd.conf|", NULL },
	{ "vim|momd|", NULL }, /* its file, not the program */
	{ "/usr/bin/momdump|", NULL }, { "/usr/bin/python3|tool.py|a|b|momd|", NULL },
	{ "", NULL },	       /* a kernel's thread */
	{ "ballastd|", NULL }, /* another host's, or this one */
};

START_TEST(another_manager_is_known_by_its_program)
{
	struct managers_found found = { 0 };

	process("/usr/sbin/sshd|-D|");
	process(commands[_i].command);
	process("bash|");
	if (!commands[_i].name) {
		ck_assert_int_eq(managers_find(proc, &found), 0);
		ck_assert_ptr_null(found.name);
		return;
	}
	ck_assert_int_eq(managers_find(proc, &found), 1);
	ck_assert_str_eq(found.name, commands[_i].name);
	ck_assert_uint_eq(found.pid, 101);
	ck_assert_uint_gt(strlen(found.what), 5);
}
END_TEST

START_TEST(what_is_in_proc_and_no_process_is_passed_over)
{
	struct managers_found found;
	char path[300];

	snprintf(path, sizeof(path), "%s/meminfo", proc);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/12ab", proc);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/77", proc); /* gone meanwhile: no cmdline */
	mkdir(path, 0755);
	ck_assert_int_eq(managers_find(proc, &found), 0);
}
END_TEST

START_TEST(without_proc_it_is_not_known)
{
	struct managers_found found;

	ck_assert_int_eq(managers_find("/nowhere", &found), -ENOENT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("managers");
	TCase *tc = tcase_create("managers");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, another_manager_is_known_by_its_program, 0,
		sizeof(commands) / sizeof(commands[0]));
	tcase_add_test(tc, what_is_in_proc_and_no_process_is_passed_over);
	tcase_add_test(tc, without_proc_it_is_not_known);
	suite_add_tcase(suite, tc);
	scratch_begin();
	return suite_run(suite);
}
