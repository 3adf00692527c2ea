/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes from a client of the control socket: answered with whole messages or refused, and the
 * daemon serves the next one. The real socket, messages and methods, on a simulated host.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/json.h"
#include "hv/ballastd/methods.h"
#include "hv/sim/sim.h"
#include "tests/unit/scratch.h"

#define MIB(n)	   (UINT64_C(1048576) * (n))
#define STEP	   UINT64_C(10000)
#define ANSWER_MAX (32u * 1024 * 1024)
/* A turn of the loop reads at least a line, and there are no more than bytes. */
#define TURNS_MAX 200000

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[SCRATCH_PATH], path[SCRATCH_PATH + 8], *answers;
static sd_event *event;
static struct control *control;
static struct methods *methods;
static struct core *core;
static struct hv *hv;
static uint64_t now;

static uint64_t get_now(void *ctx)
{
	return now;
}

static void wake(void *ctx)
{
}

static void on_tick(
	void *ctx, const struct engine_input *input, int error, const struct engine_output *output)
{
	methods_on_tick(methods, output);
}

static void step(void)
{
	const struct hv_call *calls;
	struct hv_event hv_event;
	uint64_t next;
	size_t nr;

	now += STEP;
	assert(sim_advance(hv, now) == 0);
	while (hv_sim.next(hv, &hv_event) == 1) {
		core_event(core, now, &hv_event);
		hv_event_clear(&hv_event);
	}
	assert(core_step(core, now, &calls, &nr, &next) == 0);
	for (size_t i = 0; i < nr; i++)
		assert(hv_sim.submit(hv, &calls[i]) == 0);
	methods_after_step(methods);
}

static void add_vm(const char *name, uint64_t soft_limit)
{
	struct sim_vm vm;

	sim_vm_default(&vm);
	vm.name = name;
	vm.guest.maximum = MIB(1024);
	vm.guest.cache_cold = MIB(500);
	vm.memtune.has_soft_limit = true;
	vm.memtune.soft_limit = soft_limit;
	assert(sim_vm_add(hv, &vm) == 0);
}

static void open_host(void)
{
	struct hv_params params = { .uri = "sim:///" };
	struct methods_params methods_params = { .now = get_now, .wake = wake };
	struct core_config config;
	struct sim_host host;

	core_config_default(&config);
	config.engine.act = true;
	config.pool_host = false;
	config.pool_size = MIB(4096);
	assert(hv_sim.open(&params, &hv) == 0);
	sim_host_default(&host);
	host.total = MIB(8192);
	assert(sim_host_set(hv, &host) == 0);
	add_vm("web", MIB(900));
	add_vm("batch", MIB(300));
	assert(core_new(&config, &hv_sim, &core) == 0);
	methods_params.core = core;
	assert(methods_new(&methods_params, &methods) == 0);
	core_on_tick(core, on_tick, NULL, NULL);
	while (now < 1000 * STEP)
		step();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct control_params params = { .path = path,
		.methods = methods_table,
		.nr_methods = nr_methods,
		.gone = methods_gone };
	char why[300];

	scratch_begin();
	scratch_new(folder);
	snprintf(path, sizeof(path), "%s/s", folder);
	open_host();
	params.ctx = methods;
	assert(sd_event_new(&event) >= 0);
	assert(control_open(event, &params, &control, why, sizeof(why)) == 0);
	answers = malloc(ANSWER_MAX);
	assert(answers);
	return 0;
}

static int connect_client(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, path, strlen(path) + 1);
	assert(fd >= 0);
	assert(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

/* Sends all, and reads until the daemon has closed. Bytes of answers. */
static size_t talk(const char *data, size_t size)
{
	size_t length = 0;
	bool shut = false;
	int fd = connect_client();

	for (int turn = 0; turn < TURNS_MAX; turn++) {
		ssize_t n;

		if (size > 0) {
			n = send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (n > 0) {
				data += n;
				size -= (size_t)n;
			} else if (errno == EPIPE || errno == ECONNRESET) {
				size = 0;
			}
		} else if (!shut) {
			shut = true;
			shutdown(fd, SHUT_WR);
		}
		assert(sd_event_run(event, 0) >= 0);
		n = recv(fd, answers + length, ANSWER_MAX - length, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno == ECONNRESET)) {
			close(fd);
			return length;
		}
		assert(n > 0 || errno == EAGAIN);
		length += n > 0 ? (size_t)n : 0;
		assert(length < ANSWER_MAX);
	}
	abort(); /* it never comes to an end */
}

static void check_message(const char *line, size_t length)
{
	struct json_object *message = NULL, *member = NULL;
	const char *text = NULL;

	assert(json_read(line, length, &message, NULL) == 0);
	assert(json_get_string(message, "jsonrpc", &text) == 0);
	assert(json_get_object(message, "result", &member) == 0 ||
		json_get_object(message, "error", &member) == 0 ||
		json_get_object(message, "params", &member) == 0);
	json_object_put(message);
}

/* As before: what an input paused, the next one finds as it was. */
static void reset(void)
{
	const struct hv_uuid *uuids;

	core_pause(core, false);
	while (core_paused_vms(core, &uuids) > 0) {
		struct hv_uuid uuid = uuids[0];

		core_pause_vm(core, &uuid, false);
	}
	step();
	while (sd_event_run(event, 0) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t length = talk((const char *)data, size), start = 0;
	char *end;

	while (start < length && (end = memchr(answers + start, '\n', length - start))) {
		check_message(answers + start, (size_t)(end - answers) - start);
		start = (size_t)(end - answers) + 1;
	}
	assert(start == length); /* no half of a message */
	reset();
	return 0;
}
