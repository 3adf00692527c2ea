/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the daemon's lines bring to the journal, whose call is the test's own here. */
#include <config.h>

#include "common/log.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hv/ballastd/shell.h"
#include "hv/messages.h"
#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

static char sent[16384]; /* a field a line, an empty line behind each message */

int __wrap_sd_journal_sendv(const struct iovec *fields, int nr);
int __wrap_sd_journal_sendv(const struct iovec *fields, int nr)
{
	size_t length = strlen(sent);

	for (int i = 0; i < nr; i++)
		length += (size_t)snprintf(sent + length, sizeof(sent) - length, "%.*s\n",
			(int)fields[i].iov_len, (const char *)fields[i].iov_base);
	snprintf(sent + length, sizeof(sent) - length, "\n");
	return 0;
}

static void setup(void)
{
	char stream[64];
	struct stat st;

	ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_open("test", LOG_LEVEL_INFO);
	sent[0] = '\0';
}

START_TEST(daemons_line_carries_vm_action_and_message_id)
{
	const struct hv_uuid uuid = { { 0x6b, 0xa7 } };

	shell_log(NULL, &(struct core_line){ CORE_LOG_WARNING, &uuid, "web1", "cut", MESSAGE_TARGET,
				"target 2 GiB -> 1 GiB: cut" });
	ck_assert_str_eq(sent,
		"PRIORITY=4\n"
		"MESSAGE=web1 (6ba70000-0000-0000-0000-000000000000): target 2 GiB -> 1 GiB: cut\n"
		"BALLAST_VM_UUID=6ba70000-0000-0000-0000-000000000000\n"
		"BALLAST_VM_NAME=web1\n"
		"BALLAST_ACTION=cut\n"
		"MESSAGE_ID=" MESSAGE_TARGET "\n\n");
}
END_TEST

START_TEST(what_a_line_does_not_have_is_no_field)
{
	shell_log(NULL, &(struct core_line){ .level = CORE_LOG_INFO, .text = "a text" });
	log_write(LOG_LEVEL_INFO, NULL, "another");
	log_write(LOG_LEVEL_DEBUG, NULL, "too much");
	ck_assert_str_eq(sent, "PRIORITY=6\nMESSAGE=a text\n\nPRIORITY=6\nMESSAGE=another\n\n");
}
END_TEST

/* ---- a daemon that is told twice to read its configuration anew, and then to end ---- */

static char dir[SCRATCH_PATH];

static struct config *new_config(void)
{
	char socket[SCRATCH_PATH + 8];
	struct config *config = NULL;
	char *errors = NULL;

	snprintf(socket, sizeof(socket), "%s/s", dir);
	ck_assert_int_eq(config_new(&config), 0);
	ck_assert_int_eq(config_set(config, "ballastd", "connect", "test:///", &errors), 0);
	ck_assert_int_eq(config_set(config, "ballastd", "run-dir", dir, &errors), 0);
	ck_assert_int_eq(config_set(config, "ballastd", "socket", socket, &errors), 0);
	return config;
}

static int read_anew(
	void *ctx, const struct config *old, struct config **ret_config, char **ret_errors)
{
	unsigned int *nr = ctx;

	if (++*nr == 1) {
		raise(SIGHUP);
		*ret_errors = strdup("file:1: a mistake\n");
		return -EINVAL;
	}
	raise(SIGTERM);
	*ret_config = new_config();
	return 0;
}

static int open_backend(const struct hv_params *params, struct hv **ret_hv)
{
	return raise(SIGHUP);
}

static int no_fd(struct hv *hv)
{
	return -1;
}

static int no_event(struct hv *hv, struct hv_event *ret_event)
{
	return 0;
}

static int no_room(struct hv *hv, const struct hv_call *call)
{
	return -EAGAIN;
}

START_TEST(configuration_that_is_refused_or_taken_says_so_by_its_message_id)
{
	static const struct hv_backend backend = { .name = "none",
		.granule = 4096,
		.open = open_backend,
		.fd = no_fd,
		.next = no_event,
		.submit = no_room };
	unsigned int nr = 0;
	struct config *config;
	struct shell_params params = { .backend = &backend, .reload = read_anew, .ctx = &nr };

	scratch_new(dir);
	params.config = config = new_config();
	ck_assert_int_eq(shell_run(&params), 0);
	ck_assert_uint_eq(nr, 2);
	ck_assert_ptr_nonnull(strstr(sent,
		"PRIORITY=3\nMESSAGE=the new configuration is refused, and the old one stays in "
		"force: file:1: a mistake\nMESSAGE_ID=" MESSAGE_REFUSED "\n\n"));
	ck_assert_ptr_nonnull(
		strstr(sent, "PRIORITY=5\nMESSAGE=the configuration was read anew: mode observe\n"
			     "MESSAGE_ID=" MESSAGE_RELOADED "\n\n"));
	config_free(config);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("log");
	TCase *tc = tcase_create("log");

	scratch_begin();
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, daemons_line_carries_vm_action_and_message_id);
	tcase_add_test(tc, what_a_line_does_not_have_is_no_field);
	tcase_add_test(tc, configuration_that_is_refused_or_taken_says_so_by_its_message_id);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
