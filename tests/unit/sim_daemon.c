/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sim_daemon DIR: ballastd's own loop over a simulated host whose time is the clock's, for tests of
 * who talks to the daemon. The socket is DIR/s; SIGTERM ends it. batch is over its soft limit, and
 * its balloon brings 64 MiB a second, so that what is asked of it is under way for a while.
 */
#include <config.h>

#include <stdio.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "hv/ballastd/config.h"
#include "hv/ballastd/shell.h"
#include "hv/sim/sim.h"

#define MIB(n) (UINT64_C(1048576) * (n))
/* The loop looks at the host so often. */
#define STEP_MS 20

static struct hv *sim;
static int timer;
static uint64_t begun;

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int host_open(const struct hv_params *params, struct hv **ret_hv)
{
	*ret_hv = sim;
	return 0;
}

static int host_fd(struct hv *hv)
{
	return timer;
}

static int host_next(struct hv *hv, struct hv_event *ret_event)
{
	uint64_t expired;

	(void)!read(timer, &expired, sizeof(expired));
	if (sim_advance(hv, now_us() - begun) < 0)
		return 0;
	return hv_sim.next(hv, ret_event);
}

static int add_vm(const char *name, uint64_t soft_limit, uint64_t cache)
{
	struct sim_vm vm;

	sim_vm_default(&vm);
	vm.name = name;
	vm.guest.maximum = MIB(1024);
	vm.guest.cache_cold = cache;
	vm.guest.inflate_free = vm.guest.inflate_cache = MIB(64);
	vm.memtune.has_soft_limit = true;
	vm.memtune.soft_limit = soft_limit;
	return sim_vm_add(sim, &vm);
}

static int open_host(void)
{
	const struct itimerspec every = { { 0, STEP_MS * 1000000 }, { 0, STEP_MS * 1000000 } };
	const struct hv_params params = { .uri = "sim:///" };

	if (hv_sim.open(&params, &sim) < 0 || add_vm("web", MIB(900), MIB(100)) < 0 ||
		add_vm("batch", MIB(300), MIB(900)) < 0)
		return -1;
	begun = now_us();
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return timer < 0 ? -1 : timerfd_settime(timer, 0, &every, NULL);
}

static int configure(const char *dir, struct config **ret_config)
{
	char path[200], *errors = NULL;
	struct config *config;
	int r = config_new(&config);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/s", dir);
	r = config_set(config, "ballastd", "mode", "act", &errors);
	if (r == 0)
		r = config_set(config, "ballastd", "run-dir", dir, &errors);
	if (r == 0)
		r = config_set(config, "ballastd", "connect", "sim:///", &errors);
	if (r == 0)
		r = config_set(config, "ballastd", "socket", path, &errors);
	if (r == 0)
		r = config_set(config, "pool", "size", "4GiB", &errors);
	if (r == 0)
		r = config_set(config, "pool", "psi", "none", &errors);
	*ret_config = config;
	return r;
}

int main(int argc, char **argv)
{
	struct hv_backend backend = hv_sim;
	struct shell_params params = { .backend = &backend };
	struct config *config = NULL;

	backend.open = host_open;
	backend.fd = host_fd;
	backend.next = host_next;
	if (argc != 2 || open_host() < 0 || configure(argv[1], &config) < 0)
		return 2;
	params.config = config;
	return shell_run(&params) < 0;
}
