/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sd-event without memory, as in faults.h: with FAULTS_EVENT_WRAP (tests.am). */
#include <config.h>

#include "tests/unit/faults.h"

#include <errno.h>
#include <systemd/sd-event.h>

/* The linker's names; they belong to it. */
int __real_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
	sd_event_io_handler_t callback, void *ctx);
int __wrap_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
	sd_event_io_handler_t callback, void *ctx);
int __real_sd_event_add_defer(
	sd_event *event, sd_event_source **ret, sd_event_handler_t callback, void *ctx);
int __wrap_sd_event_add_defer(
	sd_event *event, sd_event_source **ret, sd_event_handler_t callback, void *ctx);
int __real_sd_event_now(sd_event *event, clockid_t clock, uint64_t *ret);
int __wrap_sd_event_now(sd_event *event, clockid_t clock, uint64_t *ret);

int __wrap_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
	sd_event_io_handler_t callback, void *ctx)
{
	return faults_hit("sd_event_add_io")
		       ? -ENOMEM
		       : __real_sd_event_add_io(event, ret, fd, events, callback, ctx);
}

int __wrap_sd_event_add_defer(
	sd_event *event, sd_event_source **ret, sd_event_handler_t callback, void *ctx)
{
	return faults_hit("sd_event_add_defer")
		       ? -ENOMEM
		       : __real_sd_event_add_defer(event, ret, callback, ctx);
}

int __wrap_sd_event_now(sd_event *event, clockid_t clock, uint64_t *ret)
{
	return faults_hit("sd_event_now") ? -EIO : __real_sd_event_now(event, clock, ret);
}

int __real_sd_event_new(sd_event **ret);
int __wrap_sd_event_new(sd_event **ret);
int __wrap_sd_event_new(sd_event **ret)
{
	return faults_hit("sd_event_new") ? -ENOMEM : __real_sd_event_new(ret);
}

int __real_sd_event_add_time(sd_event *event, sd_event_source **ret, clockid_t clock, uint64_t usec,
	uint64_t accuracy, sd_event_time_handler_t callback, void *ctx);
int __wrap_sd_event_add_time(sd_event *event, sd_event_source **ret, clockid_t clock, uint64_t usec,
	uint64_t accuracy, sd_event_time_handler_t callback, void *ctx);
int __wrap_sd_event_add_time(sd_event *event, sd_event_source **ret, clockid_t clock, uint64_t usec,
	uint64_t accuracy, sd_event_time_handler_t callback, void *ctx)
{
	return faults_hit("sd_event_add_time")
		       ? -ENOMEM
		       : __real_sd_event_add_time(event, ret, clock, usec, accuracy, callback, ctx);
}

int __real_sd_event_add_signal(sd_event *event, sd_event_source **ret, int sig,
	sd_event_signal_handler_t callback, void *ctx);
int __wrap_sd_event_add_signal(sd_event *event, sd_event_source **ret, int sig,
	sd_event_signal_handler_t callback, void *ctx);
int __wrap_sd_event_add_signal(sd_event *event, sd_event_source **ret, int sig,
	sd_event_signal_handler_t callback, void *ctx)
{
	return faults_hit("sd_event_add_signal")
		       ? -ENOMEM
		       : __real_sd_event_add_signal(event, ret, sig, callback, ctx);
}

int __real_sd_event_source_set_time(sd_event_source *source, uint64_t usec);
int __wrap_sd_event_source_set_time(sd_event_source *source, uint64_t usec);
int __wrap_sd_event_source_set_time(sd_event_source *source, uint64_t usec)
{
	return faults_hit("sd_event_source_set_time")
		       ? -ENOMEM
		       : __real_sd_event_source_set_time(source, usec);
}

int __real_sd_event_source_set_enabled(sd_event_source *source, int enabled);
int __wrap_sd_event_source_set_enabled(sd_event_source *source, int enabled);
int __wrap_sd_event_source_set_enabled(sd_event_source *source, int enabled)
{
	return faults_hit("sd_event_source_set_enabled")
		       ? -ENOMEM
		       : __real_sd_event_source_set_enabled(source, enabled);
}
