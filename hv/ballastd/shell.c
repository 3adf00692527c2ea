/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon's event loop: see shell.h. */
#include <config.h>

#include "hv/ballastd/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "common/log.h"
#include "common/size.h"
#include "hv/ballastd/control.h"
#include "hv/ballastd/methods.h"
#include "hv/ballastd/pauses.h"
#include "hv/messages.h"
#include "hv/pager/backend.h"
#include "hv/record.h"

/* sd-event's default of 250 ms would undo the pool's 50 ms. */
#define ACCURACY_US 1000

/* Events taken from the backend before the core steps: a listing and a burst of VMs' events. */
#define EVENTS_AT_ONCE 1024

/* At the end balloons are told for so long; a call that returns takes a few milliseconds. */
#define END_US 10000000

/* The two clocks are read one after the other; what sleeps sleeps longer. */
#define ASLEEP_US 500000

/* A backend without a descriptor is asked this often, at least. */
#define POLL_US 10000

struct shell {
	const struct shell_params *params; /* its configuration is that of the start */
	const struct config *config;	   /* in force */
	struct config *reloaded;	   /* NULL: it is still that of the start */
	sd_event *event;
	sd_event_source *timer, *backend_io;
	struct hv *hv;
	bool polls; /* the backend has no descriptor */
	bool stepped;
	uint64_t asleep; /* all that the host slept since its boot, at the last step */
	struct core *core;
	struct record *record;
	bool record_failed;
	struct methods *methods;
	struct control *control;
	uint64_t ends_by; /* giving back at the end; 0: not yet */
};

static uint64_t now_us(void *ctx)
{
	struct timespec now;

	(void)ctx;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- log, recording ---- */

void shell_log(void *ctx, const struct core_line *line)
{
	static const enum log_level levels[] = {
		[CORE_LOG_ERROR] = LOG_LEVEL_ERROR,
		[CORE_LOG_WARNING] = LOG_LEVEL_WARNING,
		[CORE_LOG_NOTICE] = LOG_LEVEL_NOTICE,
		[CORE_LOG_INFO] = LOG_LEVEL_INFO,
		[CORE_LOG_DEBUG] = LOG_LEVEL_DEBUG,
	};
	char uuid[HV_UUID_TEXT];
	struct log_about about = {
		.vm_name = line->name, .action = line->action, .message_id = line->message_id
	};

	if (line->vm) {
		hv_uuid_format(line->vm, uuid);
		about.vm_uuid = uuid;
	}
	log_write(levels[line->level], &about, "%s", line->text);
}

static void on_control_say(void *ctx, const char *message)
{
	log_write(LOG_LEVEL_WARNING, NULL, "%s", message);
}

static void on_tick(
	void *ctx, const struct engine_input *input, int error, const struct engine_output *output)
{
	struct shell *shell = ctx;

	if (shell->record)
		record_tick(shell->record, input, error, output);
	methods_on_tick(shell->methods, output);
}

static void on_name(void *ctx, uint64_t id, const struct hv_uuid *uuid, const char *name)
{
	struct shell *shell = ctx;

	if (shell->record)
		record_name(shell->record, id, uuid, name);
}

static void check_record(struct shell *shell)
{
	int r = shell->record ? record_error(shell->record) : 0;

	if (r == 0 || shell->record_failed)
		return;
	shell->record_failed = true;
	log_write(LOG_LEVEL_ERROR, NULL, "the recording %s ended: %s", shell->params->record,
		strerror(-r));
}

/* ---- steps ---- */

/* False: some were not taken, and are to be tried again. */
static bool submit(struct shell *shell, const struct hv_call *calls, size_t nr)
{
	bool all = true;

	for (size_t i = 0; i < nr; i++) {
		if (shell->params->backend->submit(shell->hv, &calls[i]) >= 0)
			continue;
		core_not_submitted(shell->core, &calls[i]);
		all = false;
	}
	return all;
}

static void arm(struct shell *shell, uint64_t at)
{
	int r = sd_event_source_set_time(shell->timer, at);

	if (r >= 0)
		r = sd_event_source_set_enabled(
			shell->timer, at == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
	if (r < 0) {
		log_write(LOG_LEVEL_ERROR, NULL, "cannot set the timer: %s", strerror(-r));
		sd_event_exit(shell->event, r);
	}
}

static void take_events(struct shell *shell, uint64_t now)
{
	struct hv_event event;

	for (int i = 0; i < EVENTS_AT_ONCE; i++) {
		if (shell->params->backend->next(shell->hv, &event) != 1)
			return;
		core_event(shell->core, now, &event);
		hv_event_clear(&event);
	}
}

/* All that can be told is told, or the time is up. */
static void look_for_end(struct shell *shell, uint64_t now)
{
	size_t left;

	if (!shell->ends_by || (core_releasing(shell->core) > 0 && now < shell->ends_by))
		return;
	left = core_unreleased(shell->core);
	if (left > 0)
		log_write(LOG_LEVEL_WARNING, NULL,
			"%zu VMs could not be told that they get all back; ballastctl release "
			"--all "
			"--direct tries again",
			left);
	sd_event_exit(shell->event, 0);
}

/* The monotonic clock stands still while the host sleeps; the one that counts from boot does not.
 */
static void look_for_sleep(struct shell *shell, uint64_t now)
{
	struct timespec boot;
	uint64_t asleep;

	if (clock_gettime(CLOCK_BOOTTIME, &boot) < 0)
		return;
	asleep = (uint64_t)boot.tv_sec * 1000000 + (uint64_t)boot.tv_nsec / 1000 - now;
	if (shell->stepped && asleep > shell->asleep + ASLEEP_US)
		core_slept(shell->core, now);
	shell->asleep = asleep;
	shell->stepped = true;
}

static void step(struct shell *shell)
{
	const struct hv_call *calls = NULL;
	uint64_t next = UINT64_MAX, now = now_us(NULL);
	size_t nr = 0;

	look_for_sleep(shell, now);
	take_events(shell, now);
	/* -ENOMEM: it is tried again at the next step, which is next all the same. */
	if (core_step(shell->core, now, &calls, &nr, &next) < 0) {
		log_write(LOG_LEVEL_WARNING, NULL, "no memory for a decision; it is tried again");
		next = now + shell->config->core.tick_max_us;
	}
	if (shell->params->config->pager)
		hv_pager_bind(shell->hv, shell->core);
	/* The core said when to come back before it knew that. */
	if (!submit(shell, calls, nr) && next > now + shell->config->core.tick_min_us)
		next = now + shell->config->core.tick_min_us;
	methods_after_step(shell->methods);
	check_record(shell);
	look_for_end(shell, now);
	if (shell->polls && next > now + POLL_US)
		next = now + POLL_US;
	arm(shell, next);
}

static int on_timer(sd_event_source *source, uint64_t at, void *ctx)
{
	step(ctx);
	return 0;
}

static int on_backend(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
	step(ctx);
	return 0;
}

/* Not at once: a method calls it, and the step would send before the method's answer. */
static void wake(void *ctx)
{
	struct shell *shell = ctx;

	/* Clients that go with the loop cancel their jobs: there is no step any more. */
	if (sd_event_get_state(shell->event) != SD_EVENT_FINISHED)
		arm(shell, now_us(NULL));
}

static int on_end_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *ctx)
{
	struct shell *shell = ctx;

	log_write(LOG_LEVEL_NOTICE, NULL, "ending on signal %s",
		info->ssi_signo == SIGTERM ? "TERM" : "INT");
	if (!shell->config->release_on_stop || shell->ends_by || !shell->config->core.engine.act)
		return sd_event_exit(shell->event, 0);
	shell->ends_by = now_us(NULL) + END_US;
	core_release(shell->core, MEMCG_ROOT_ID);
	wake(shell);
	return 0;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* What only a start can change. */
static void say_waiting(const struct shell *shell, const struct config *new)
{
	const struct config *old = shell->params->config;
	const struct {
		const char *key, *old, *new;
	} keys[] = {
		{ "connect", old->connect, new->connect },
		{ "run-dir", old->run_dir, new->run_dir },
		{ "socket", old->socket, new->socket },
		{ "psi", old->psi, new->psi },
		{ "pager", old->pager, new->pager },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!same_text(keys[i].old, keys[i].new))
			log_write(LOG_LEVEL_WARNING, NULL,
				"%s = %s takes effect at the next start; until then it is %s",
				keys[i].key, keys[i].new ? keys[i].new : "none",
				keys[i].old ? keys[i].old : "none");
	if (old->dom0_min != new->dom0_min)
		log_write(LOG_LEVEL_WARNING, NULL, "dom0-min takes effect at the next start");
}

/* The first mistake, and how many there are besides, in one line. */
static void say_refused(const char *errors, int r)
{
	const char *end = errors ? strchr(errors, '\n') : NULL;
	unsigned int more = 0;
	char others[40] = "";

	for (const char *p = end; p && p[1]; p = strchr(p + 1, '\n'))
		more++;
	if (more > 0)
		snprintf(others, sizeof(others), ", and %u more mistake%s", more,
			more == 1 ? "" : "s");
	log_write(LOG_LEVEL_ERROR, &(struct log_about){ .message_id = MESSAGE_REFUSED },
		"the new configuration is refused, and the old one stays in force: %.*s%s",
		end ? (int)(end - errors) : 300, errors ? errors : strerror(-r), others);
}

static void reload(struct shell *shell)
{
	struct config *config = NULL;
	char *errors = NULL;
	int r;

	r = shell->params->reload(shell->params->ctx, shell->config, &config, &errors);
	if (r == 0)
		r = core_set_config(shell->core, now_us(NULL), &config->core);
	if (r < 0) {
		say_refused(errors, r);
		goto out;
	}
	if (shell->record)
		record_new_config(shell->record, engine_config(core_engine(shell->core)));
	say_waiting(shell, config);
	log_write(LOG_LEVEL_NOTICE, &(struct log_about){ .message_id = MESSAGE_RELOADED },
		"the configuration was read anew: mode %s",
		config_mode_name(config->core.engine.act));
	config_free(shell->reloaded);
	shell->config = shell->reloaded = config;
	config = NULL;
	wake(shell);
out:
	free(errors);
	config_free(config);
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *ctx)
{
	struct shell *shell = ctx;

	if (!shell->params->reload) {
		log_write(LOG_LEVEL_WARNING, NULL,
			"signal HUP: the configuration is read at start "
			"only; restart the daemon");
		return 0;
	}
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_us(NULL));
	reload(shell);
	sd_notify(0, "READY=1");
	return 0;
}

/* ---- start and end ---- */

static int watch_signals(struct shell *shell)
{
	sigset_t set;
	int r;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	r = -pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (r == 0)
		r = sd_event_add_signal(shell->event, NULL, SIGTERM, on_end_signal, shell);
	if (r >= 0)
		r = sd_event_add_signal(shell->event, NULL, SIGINT, on_end_signal, shell);
	if (r >= 0)
		r = sd_event_add_signal(shell->event, NULL, SIGHUP, on_hangup, shell);
	return r < 0 ? r : 0;
}

/* After the control socket, whose lock says that no other daemon is writing there. */
static int open_record(struct shell *shell)
{
	const char *path = shell->params->record;
	struct stat st;
	FILE *stream;
	int r;

	if (!path)
		return 0;
	if (stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) {
		log_write(LOG_LEVEL_ERROR, NULL, "cannot record to %s: that is no file", path);
		return -EINVAL;
	}
	stream = fopen(path, "we");
	r = stream ? record_new(stream, engine_config(core_engine(shell->core)), &shell->record)
		   : -errno;
	if (r < 0) {
		log_write(LOG_LEVEL_ERROR, NULL, "cannot record to %s: %s", path, strerror(-r));
		if (stream)
			fclose(stream);
	}
	return r;
}

static int open_core(struct shell *shell)
{
	struct core_config config = shell->params->config->core; /* groups are copied by it */
	struct methods_params methods = {
		.run_dir = shell->params->config->run_dir, .now = now_us, .wake = wake, .ctx = shell
	};
	const struct hv_uuid *uuids;
	char why[300] = "";
	size_t paused;
	int r;

	config.log = shell_log;
	r = core_new(&config, shell->params->backend, &shell->core);
	if (r < 0) {
		log_write(LOG_LEVEL_ERROR, NULL, "cannot start: %s", strerror(-r));
		return r;
	}
	if (pauses_load(shell->params->config->run_dir, shell->core, why, sizeof(why)) < 0)
		log_write(LOG_LEVEL_ERROR, NULL,
			"%s: everything stays paused; ballastctl resume ends that", why);
	paused = core_paused_vms(shell->core, &uuids);
	if (paused > 0)
		log_write(LOG_LEVEL_NOTICE, NULL, "%zu VMs are paused by themselves", paused);
	methods.core = shell->core;
	r = methods_new(&methods, &shell->methods);
	if (r < 0) {
		log_write(LOG_LEVEL_ERROR, NULL, "cannot start: %s", strerror(-r));
		return r;
	}
	return 0;
}

static int open_control(struct shell *shell)
{
	struct control_params params = {
		.path = shell->params->config->socket,
		.group = CONTROL_GROUP,
		.methods = methods_table,
		.nr_methods = nr_methods,
		.gone = methods_gone,
		.say = on_control_say,
		.ctx = shell->methods,
	};
	char why[300] = "";
	int r;

	r = control_open(shell->event, &params, &shell->control, why, sizeof(why));
	if (r < 0)
		log_write(LOG_LEVEL_ERROR, NULL, "no control socket: %s", why);
	return r;
}

static int open_backend(struct shell *shell)
{
	const struct config *config = shell->params->config;
	const struct hv_backend *backend = shell->params->backend;
	struct hv_params params = { .uri = config->connect,
		.psi = config->psi,
		.proc = "/proc",
		.dom0_min = config->dom0_min };
	int fd, r;

	params.pager = config->pager;
	params.inner = shell->params->inner;
	r = backend->open(&params, &shell->hv);
	if (r < 0) {
		log_write(LOG_LEVEL_ERROR, NULL, "cannot use %s with %s: %s", config->connect,
			backend->name, strerror(-r));
		return r;
	}
	fd = backend->fd(shell->hv);
	shell->polls = fd < 0;
	if (fd >= 0)
		r = sd_event_add_io(
			shell->event, &shell->backend_io, fd, EPOLLIN, on_backend, shell);
	if (r < 0)
		log_write(LOG_LEVEL_ERROR, NULL, "cannot watch the events of %s: %s", backend->name,
			strerror(-r));
	return r < 0 ? r : 0;
}

static void say_start(const struct shell *shell)
{
	const struct config *config = shell->params->config;
	char size[SIZE_TEXT];

	log_write(LOG_LEVEL_NOTICE, NULL, "ballastd %s: mode %s, %s with %s, pool %s, socket %s",
		PACKAGE_VERSION, config_mode_name(config->core.engine.act), config->connect,
		shell->params->backend->name,
		config->core.pool_host ? "of the host"
				       : size_format(config->core.pool_size, size, sizeof(size)),
		config->socket);
}

/* Where the daemon keeps its things; its parent has to be there. */
static int make_run_dir(const char *path)
{
	if (mkdir(path, 0755) == 0 || errno == EEXIST)
		return 0;
	log_write(LOG_LEVEL_ERROR, NULL, "cannot make %s: %s", path, strerror(errno));
	return -errno;
}

static void shell_close(struct shell *shell)
{
	control_close(shell->control);
	methods_free(shell->methods);
	sd_event_source_disable_unref(shell->backend_io);
	sd_event_source_disable_unref(shell->timer);
	if (shell->hv)
		shell->params->backend->close(shell->hv);
	core_free(shell->core);
	record_free(shell->record);
	sd_event_unref(shell->event);
	config_free(shell->reloaded);
}

int shell_run(const struct shell_params *params)
{
	struct shell shell = { .params = params, .config = params->config };
	int r;

	r = sd_event_new(&shell.event);
	if (r >= 0)
		r = watch_signals(&shell);
	if (r >= 0)
		r = sd_event_add_time(shell.event, &shell.timer, CLOCK_MONOTONIC, 0, ACCURACY_US,
			on_timer, &shell);
	if (r < 0) {
		log_write(LOG_LEVEL_ERROR, NULL, "no event loop: %s", strerror(-r));
		goto out;
	}
	r = make_run_dir(params->config->run_dir);
	if (r < 0)
		goto out;
	r = open_core(&shell);
	if (r < 0)
		goto out;
	r = open_control(&shell);
	if (r < 0)
		goto out;
	r = open_record(&shell);
	if (r < 0)
		goto out;
	/* Names are told at once: the root's belongs into the recording. */
	core_on_tick(shell.core, on_tick, on_name, &shell);
	r = open_backend(&shell);
	if (r < 0)
		goto out;
	say_start(&shell);
	/* Neither does anything outside of systemd. */
	sd_notify(0, "READY=1");
	r = sd_event_loop(shell.event);
	sd_notify(0, "STOPPING=1");
	if (r < 0)
		log_write(LOG_LEVEL_ERROR, NULL, "the event loop ended: %s", strerror(-r));
out:
	shell_close(&shell);
	return r < 0 ? r : 0;
}
