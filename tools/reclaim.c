/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ballastctl reclaim: starts a job, shows its progress, and cancels it on ^C. See ballastctl.h. */
#include <config.h>

#include "tools/ballastctl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"

/* Progress is looked for so often, so that a signal that came in between is noticed. */
#define LOOK_MS 500

static volatile sig_atomic_t interrupted;

static void on_signal(int signal_number)
{
	interrupted = 1;
}

static void watch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* A line that is written over and over on a terminal; nothing where it is none. */
static void show_progress(struct json_object *progress)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r%s of %s came, %s on the way\033[K", TEXT_SIZE(progress, "came"),
		TEXT_SIZE(progress, "wanted"), TEXT_SIZE(progress, "owed"));
}

static void end_progress(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

static int cancel(struct client *client, uint64_t job, char *why, size_t size)
{
	struct json_object *params = json_object_new_object(), *result = NULL;
	int r = 0;

	json_put_u64(params, "job", job, &r);
	if (r < 0) {
		json_object_put(params);
		return r;
	}
	r = client_call(client, "reclaim.cancel", params, &result, why, size);
	json_object_put(result);
	return r == -EREMOTE ? 0 : r; /* it ended by itself just now */
}

/* The last progress of the job in *ret_last; 0, or a negative errno with words in why. */
static int follow(
	struct client *client, uint64_t job, struct json_object **ret_last, char *why, size_t size)
{
	bool cancelled = false;

	for (;;) {
		struct json_object *progress = NULL;
		int r;

		if (interrupted && !cancelled) {
			cancelled = true;
			r = cancel(client, job, why, size);
			if (r < 0)
				return r;
		}
		r = client_notification(client, "reclaim.progress", LOOK_MS, &progress, why, size);
		if (r == -EAGAIN || r == -EINTR)
			continue;
		if (r < 0)
			return r;
		if (number(progress, "job") != job) {
			json_object_put(progress);
			continue;
		}
		if (strcmp(text(progress, "state"), "running") != 0) {
			*ret_last = progress;
			return 0;
		}
		show_progress(progress);
		json_object_put(progress);
	}
}

/* What came of it, and the exit status. */
static int show_end(struct json_object *last, const struct ctl_options *options)
{
	const char *state = text(last, "state");
	bool all = !strcmp(state, "done");

	if (options->json) {
		show_end_json(last);
	} else if (all) {
		printf("%s came\n", TEXT_SIZE(last, "came"));
	} else {
		printf("%s of %s came; %s\n", TEXT_SIZE(last, "came"), TEXT_SIZE(last, "wanted"),
			!strcmp(state, "short") ? "nobody can give more now, see ballastctl explain"
						: "cancelled");
	}
	if (all)
		return EXIT_SUCCESS;
	return number(last, "came") ? CTL_PARTLY : CTL_FAILED;
}

int follow_reclaim(
	struct client *client, struct json_object *params, const struct ctl_options *options)
{
	struct json_object *started = NULL, *last = NULL;
	char why[600] = "";
	uint64_t job;
	int r, status;

	watch_signals();
	r = client_call(client, "reclaim", params, &started, why, sizeof(why));
	if (r == -EREMOTE)
		return ctl_fail(CTL_FAILED, "%s", why);
	if (r < 0)
		return ctl_fail(CTL_UNREACHABLE, "%s", why);
	job = number(started, "job");
	json_object_put(started);
	r = follow(client, job, &last, why, sizeof(why));
	end_progress();
	if (r < 0)
		return ctl_fail(CTL_UNREACHABLE, "%s", why);
	status = show_end(last, options);
	json_object_put(last);
	return status;
}
