/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest without a ballast-agent, reached through QEMU's: the agent's own core (guest-agent/) runs
 * here for it, on a platform that reads and writes the guest's files through guest-file-open and
 * the like. So the rules are those of ballast-agent, and what comes out is what its channel would
 * bring. The guest is one group: no command lists folders but guest-exec, which would let whoever
 * asks do anything, and no file that is there on all kernels has the groups' names.
 */
#include <config.h>

#include "hv/libvirt/qga.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest-agent/linux_text.h"

/* An answer takes milliseconds; libvirt itself waits up to 5 s more to get into step with it. */
#define TIMEOUT_S 1
/* Of a guest whose agent may not read its own maps. */
#define PAGE_UNKNOWN UINT64_C(4096)
/* No guest has as much memory, nor has ever read or freed as much: 1 PiB. */
#define FIGURE_MAX (UINT64_C(1) << 50)

#define RECLAIM_FILE "/sys/fs/cgroup/memory.reclaim"

/* ---- commands ---- */

static int errno_of(const struct lv_qga *q, int code)
{
	switch (code) {
	case VIR_ERR_AGENT_UNRESPONSIVE:
	case VIR_ERR_AGENT_UNSYNCED:
	case VIR_ERR_OPERATION_TIMEOUT:
		return -ETIMEDOUT;
	case VIR_ERR_ARGUMENT_UNSUPPORTED:
	case VIR_ERR_CONFIG_UNSUPPORTED:
	case VIR_ERR_OPERATION_UNSUPPORTED:
	case VIR_ERR_NO_SUPPORT:
		return -ENODEV;
	case VIR_ERR_OPERATION_INVALID: /* "domain is not running" */
	case VIR_ERR_NO_DOMAIN:
		return -ESRCH;
	default: /* the agent's own refusal has no code of its own */
		return q->hv->calls->connect_is_alive(q->conn) == 0 ? -ENOTCONN : -EACCES;
	}
}

/* Its number is in the text alone. What has none may go the next time. */
static int refusal_of(const char *message)
{
	if (!message)
		return -EAGAIN;
	if (strstr(message, "Invalid argument"))
		return -EINVAL;
	if (strstr(message, "not permitted") || strstr(message, "Permission denied"))
		return -EPERM;
	return strstr(message, "No such file") ? -ENOENT : -EAGAIN;
}

/* -EACCES: the agent, or the guest's kernel, refuses it. All else ends the round. */
static int command(struct lv_qga *q, const char *text, char **ret_answer)
{
	virErrorPtr error;
	char *answer;
	int r;

	if (!q->failed && hv_now() - q->began > q->hv->calls->times.qga_slow * LV_QGA_TOO_SLOW)
		q->failed = -ETIME;
	if (q->failed)
		return q->failed;
	answer = q->hv->calls->domain_qemu_agent_command(q->dom, text, TIMEOUT_S, 0);
	if (answer) {
		*ret_answer = answer;
		return 0;
	}
	error = q->hv->calls->get_last_error();
	q->refusal = refusal_of(error ? error->message : NULL);
	r = errno_of(q, error ? error->code : VIR_ERR_OK);
	if (r != -EACCES)
		q->failed = r;
	return r;
}

/* What became of an answer, which is freed. One that is none ends the round too. */
static int read_by(struct lv_qga *q, char *answer, int r)
{
	free(answer);
	if (r < 0)
		q->failed = r;
	return r;
}

static int do_it(struct lv_qga *q, const char *text)
{
	char *answer = NULL;
	int r = command(q, text, &answer);

	return r < 0 ? r : read_by(q, answer, qga_read_done(answer));
}

static int open_file(struct lv_qga *q, const char *path, const char *mode, int64_t *ret_handle)
{
	char text[QGA_COMMAND], *answer = NULL;
	int r;

	qga_ask_open(text, path, mode);
	r = command(q, text, &answer);
	return r < 0 ? r : read_by(q, answer, qga_read_handle(answer, ret_handle));
}

static int close_file(struct lv_qga *q, int64_t handle)
{
	char text[QGA_COMMAND];

	qga_ask_close(text, handle);
	return do_it(q, text);
}

/* Into q->file. */
static int read_file(struct lv_qga *q, const char *path)
{
	char text[QGA_COMMAND], *answer = NULL;
	int64_t handle;
	int r = open_file(q, path, "r", &handle), closed;

	q->file[0] = '\0';
	if (r < 0)
		return r;
	qga_ask_read(text, handle);
	r = command(q, text, &answer);
	if (r == 0)
		r = read_by(q, answer, qga_read_data(answer, q->file));
	closed = close_file(q, handle);
	return r < 0 ? r : closed;
}

/*
 * "r+" makes no file. The agent writes with buffers: the kernel has it, and says what it thinks of
 * it, when it is flushed: -EINVAL, -EPERM, -ENOENT, -EAGAIN. All else ends the round.
 */
static int write_file(struct lv_qga *q, const char *path, const char *what)
{
	char text[QGA_COMMAND];
	int64_t handle;
	int r = open_file(q, path, "r+", &handle);

	if (r < 0)
		return r == -EACCES ? q->refusal : r;
	qga_ask_write(text, handle, what);
	r = do_it(q, text);
	qga_ask_flush(text, handle);
	if (r == 0)
		r = do_it(q, text);
	r = r == -EACCES ? q->refusal : r;
	close_file(q, handle);
	return r;
}

/* ---- the platform of the agent's core ---- */

static uint64_t now(void *ctx)
{
	return ((const struct lv_qga *)ctx)->now;
}

static uint64_t bounded(uint64_t figure)
{
	return figure < FIGURE_MAX ? figure : FIGURE_MAX;
}

/* Sums and rates of them are reckoned. */
static void bound(struct agent_guest *g)
{
	g->total = bounded(g->total);
	g->free = bounded(g->free);
	g->available = bounded(g->available);
	g->active_anon = bounded(g->active_anon);
	g->inactive_anon = bounded(g->inactive_anon);
	g->active_file = bounded(g->active_file);
	g->inactive_file = bounded(g->inactive_file);
	g->reclaimable = bounded(g->reclaimable);
	g->swap_free = bounded(g->swap_free);
	g->refaults = bounded(g->refaults);
	g->swapins = bounded(g->swapins);
	g->psi_some_us = bounded(g->psi_some_us);
	g->psi_full_us = bounded(g->psi_full_us);
}

/* Without swappiness, which a kernel may not take, only a lack of swap keeps anonymous pages. */
static bool may_reclaim(const struct lv_qga *q, const struct agent_guest *g)
{
	return q->reclaims && (q->swappiness || !g->swap_free);
}

static int guest(void *ctx, struct agent_guest *ret_guest)
{
	struct lv_qga *q = ctx;
	struct agent_guest g = { 0 };
	int r = read_file(q, "/proc/meminfo");

	if (r == 0)
		r = linux_take_meminfo(q->file, &g);
	if (r == 0)
		r = read_file(q, "/proc/vmstat");
	if (r < 0) {
		q->failed = r;
		return r;
	}
	linux_take_vmstat(q->file, q->page, &g);
	q->restores = bounded(linux_restores(q->file, q->page));
	q->stolen = bounded(linux_stolen(q->file, q->page));
	if (q->pressure && read_file(q, "/proc/pressure/memory") == 0)
		linux_take_pressure(q->file, &g);
	if (q->probes)
		g.aging = AGENT_PROBES;
	bound(&g);
	q->platform.can &= ~(uint64_t)PROTOCOL_CAN_RECLAIM;
	if (may_reclaim(q, &g))
		q->platform.can |= PROTOCOL_CAN_RECLAIM;
	*ret_guest = q->seen = g;
	return 0;
}

static size_t groups(void *ctx, struct agent_group *ret_groups, size_t nr)
{
	const struct lv_qga *q = ctx;

	linux_whole_guest(&q->seen, q->restores, ret_groups);
	return 1;
}

/* What a batch took is what the write took: the calls around it are none of the guest's work. */
static int reclaim(
	void *ctx, const struct agent_group *group, uint64_t bytes, bool anon, uint64_t *ret_came)
{
	struct lv_qga *q = ctx;
	uint64_t before = q->stolen, after;
	char text[QGA_WRITE];
	int r;

	*ret_came = 0;
	if (!may_reclaim(q, &q->seen))
		return -EOPNOTSUPP;
	snprintf(text, sizeof(text), "%" PRIu64 "%s%s", bytes, q->swappiness ? " swappiness=" : "",
		!q->swappiness ? ""
		: anon	       ? "200"
			       : "0");
	q->now = hv_now();
	r = write_file(q, RECLAIM_FILE, text);
	q->now = hv_now();
	if (read_file(q, "/proc/vmstat") == 0) {
		after = bounded(linux_stolen(q->file, q->page));
		*ret_came = after > before ? after - before : 0;
		q->stolen = after;
	}
	return q->failed ? -EAGAIN : r; /* what failed ends more than the request */
}

static int send_text(void *ctx, const char *text, size_t length)
{
	struct lv_qga *q = ctx;

	agent_channel_input(&q->channel, q->now, text, length);
	return 0;
}

/* ---- a round ---- */

/* Not before a pause; why NULL: it is nobody's fault. */
static void lose(struct lv_qga *q, const char *why)
{
	agent_channel_close(&q->channel);
	if (why)
		agent_channel_fault(&q->channel, why);
	q->met = false;
	q->doubtful = true;
	q->due = hv_now() + (q->hv->calls->times.qga_pause << (why ? q->failures : 0));
	if (why && q->failures < LV_QGA_DOUBLINGS)
		q->failures++;
}

static const char *why_failed(const struct lv_qga *q)
{
	switch (q->failed) {
	case -EPERM:
		return q->why;
	case -ETIMEDOUT:
		return "QEMU's agent does not answer";
	case -ETIME:
		return "QEMU's agent is too slow";
	case -ENODEV:
		return "no channel for QEMU's agent";
	case -EACCES:
		return "QEMU's agent refuses to read /proc";
	case -EBADMSG:
	case -E2BIG:
		return "QEMU's agent answers what is no answer";
	default: /* not running, not connected, no memory here */
		return NULL;
	}
}

static const char *blocked(struct lv_qga *q, unsigned int can)
{
	snprintf(q->why, sizeof(q->why), "its policy blocks %s", qga_command_name(can));
	return q->why;
}

/*
 * Whether this kernel, and the agent's policy, let memory be reclaimed. Of nothing nothing is
 * taken: that shows whether it takes swappiness.
 */
static void try_reclaim(struct lv_qga *q, const struct qga_info *info)
{
	unsigned int lacking = (QGA_WRITES | QGA_FLUSH) & ~info->can;
	int r;

	q->reclaims = q->swappiness = false;
	if (lacking) {
		agent_channel_fault(&q->channel, blocked(q, lacking));
		return;
	}
	r = write_file(q, RECLAIM_FILE, "0 swappiness=0");
	q->swappiness = r == 0;
	q->reclaims = r == 0 || r == -EINVAL;
}

/* As the maps of the agent itself have it. */
static uint64_t page_size(struct lv_qga *q)
{
	uint64_t page = 0;

	if (read_file(q, "/proc/self/smaps") == 0)
		page = linux_kib(q->file, "KernelPageSize");
	return page == 16384 || page == 65536 ? page : PAGE_UNKNOWN;
}

/* What the guest can, as ballast-agent says it with its hello. */
static void greet(struct lv_qga *q, uint64_t can)
{
	char text[PROTOCOL_MESSAGE_MAX + 3];
	size_t length = agent_channel_open(&q->channel, q->now, text);

	q->platform = (struct agent_platform){ .software = q->software,
		.can = can,
		.now = now,
		.guest = guest,
		.groups = groups,
		.reclaim = reclaim,
		.send = send_text };
	agent_start(&q->agent, &q->platform, q);
	agent_input(&q->agent, text, length);
	q->met = true;
}

/* Then its lists mean nothing, and the sizes of generations are no file of a guest's users. */
static bool ages_by_generations(struct lv_qga *q)
{
	return read_file(q, "/sys/kernel/mm/lru_gen/enabled") == 0 && strtoul(q->file, NULL, 0);
}

/* The first words; afterwards it is met, or why not is in failed and the channel's fault. */
static void meet(struct lv_qga *q)
{
	const unsigned int needed = QGA_OPEN | QGA_READ | QGA_CLOSE;
	struct agent_guest g = { 0 };
	char text[QGA_COMMAND], *answer = NULL;
	struct qga_info info;
	uint64_t can = PROTOCOL_CAN_ANON;
	bool lists;

	qga_ask_info(text);
	if (command(q, text, &answer) < 0 || read_by(q, answer, qga_read_info(answer, &info)) < 0) {
		q->failed = q->failed ? q->failed : -EACCES;
		return;
	}
	if (needed & ~info.can) {
		blocked(q, needed & ~info.can);
		q->failed = -EPERM;
		return;
	}
	if (read_file(q, "/proc/meminfo") < 0 || linux_take_meminfo(q->file, &g) < 0) {
		q->failed = q->failed ? q->failed : -EACCES;
		return;
	}
	lists = strstr(q->file, "Inactive(file):");
	q->probes = ages_by_generations(q);
	if (q->probes)
		can |= PROTOCOL_CAN_PROBES;
	else if (lists)
		can |= PROTOCOL_CAN_LISTS;
	q->pressure = read_file(q, "/proc/pressure/memory") == 0;
	if (q->pressure)
		can |= PROTOCOL_CAN_PRESSURE;
	q->page = page_size(q);
	try_reclaim(q, &info);
	if (may_reclaim(q, &g))
		can |= PROTOCOL_CAN_RECLAIM;
	snprintf(q->software, sizeof(q->software), "qemu-ga %s", info.version);
	if (!q->failed)
		greet(q, can);
}

/* The request that came meanwhile; its answer is in the channel, or, where it cannot be made... */
static int hand_over(struct lv_qga *q)
{
	char text[PROTOCOL_MESSAGE_MAX + 2];
	size_t length = 0;
	int r = agent_channel_reclaim(&q->channel, q->now, &q->call, text, &length);

	if (r == 0)
		agent_input(&q->agent, text, length);
	return r;
}

/*
 * Who is slow is asked by the thread that nobody else depends on, and the less the more often it
 * is; it has to be quick as often before it counts as sound again.
 */
static void weigh(struct lv_qga *q)
{
	uint64_t took = hv_now() - q->began;

	if (took > q->hv->calls->times.qga_slow) {
		q->due += took << q->failures;
		q->failures += q->failures < LV_QGA_DOUBLINGS;
	} else if (q->failures > 0) {
		q->failures--;
	}
	q->doubtful = q->failures > 0;
}

int lv_qga_round(struct lv_qga *q)
{
	uint64_t next, rest = q->now + q->hv->calls->times.qga_read;
	int r = 0;

	q->began = q->now;
	if (!q->failed && !q->met)
		meet(q);
	if (q->ask)
		r = q->met ? hand_over(q) : -ENOTCONN;
	if (!q->failed && q->met) {
		next = agent_step(&q->agent);
		q->due = q->agent.request.id ? hv_now() : next > rest ? next : rest;
	}
	if (q->failed) {
		lose(q, why_failed(q));
		return r;
	}
	weigh(q);
	return r;
}
