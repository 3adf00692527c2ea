/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The QEMU processes' own figures; see process.h. The files' formats are in smaps.c. */
#include <config.h>

#include "hv/libvirt/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where a hash cannot grow the element is not added, which its handle shows. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "common/negative.h"
#include "hv/libvirt/cgroup.h"
#include "hv/libvirt/smaps.h"

/* The most of a command line that is searched: QEMU's with many devices have some 20 KiB. */
#define CMDLINE_MAX (128u << 10)
/* "status" has some 1.5 KiB, more on machines with many CPUs and memory nodes. */
#define STATUS_MAX 8192u
/* A number, a line feed and room. */
#define PID_TEXT 16
/* Root, the daemon itself, and the users that distributions run QEMU as. */
#define OWNERS_MAX 4

/* What smaps said, and what the process had at that moment. */
struct baseline {
	bool split; /* guest memory could be told apart; else the two below are not set */
	uint64_t resident, swapped; /* the guest's */
	bool shared;
	uint64_t all_resident, all_swapped;
	uint64_t at;
};

struct vm {
	struct hv_uuid uuid;
	char *name; /* names its pid file; NULL: none */
	uint64_t maximum;
	bool listed;
	/* The process; -1: not found. */
	int folder, status;
	uint64_t pause, next; /* when to look again for what is missing */
	uint64_t started;
	bool measured;
	struct baseline base;
	uint64_t throttle_next; /* when it is due; 0: at once */
	struct cgroup_throttle throttle;
	UT_hash_handle hh;
};

struct processes {
	pthread_mutex_t lock;
	int proc;
	char *cgroup, *pids;
	uid_t owners[OWNERS_MAX];
	size_t nr_owners;
	struct vm *vms;
	size_t nr;
	bool no_swap; /* the host has none */
};

static void add_owner(struct processes *p, const char *name)
{
	const struct passwd *user = getpwnam(name);

	if (user)
		p->owners[p->nr_owners++] = user->pw_uid;
}

int processes_new(
	const char *proc, const char *cgroup, const char *pids, struct processes **ret_processes)
{
	struct processes *p = calloc(1, sizeof(*p));
	int r = -ENOMEM;

	if (!p)
		return -ENOMEM;
	p->cgroup = strdup(cgroup);
	p->pids = strdup(pids);
	if (!p->cgroup || !p->pids)
		goto fail;
	p->proc = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->proc < 0) {
		r = -errno;
		goto fail;
	}
	p->nr_owners = 1; /* root, who is 0 */
	p->owners[p->nr_owners++] = geteuid();
	add_owner(p, "libvirt-qemu");
	add_owner(p, "qemu");
	pthread_mutex_init(&p->lock, NULL);
	*ret_processes = p;
	return 0;
fail:
	free(p->cgroup);
	free(p->pids);
	free(p);
	return r;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void forget_process(struct vm *vm)
{
	close_fd(&vm->folder);
	close_fd(&vm->status);
	vm->measured = false;
	vm->pause = vm->next = vm->started = vm->throttle_next = 0;
	vm->throttle = (struct cgroup_throttle){ 0 };
}

static void drop(struct processes *p, struct vm *vm)
{
	forget_process(vm);
	HASH_DEL(p->vms, vm);
	p->nr--;
	free(vm->name);
	free(vm);
}

void processes_free(struct processes *p)
{
	struct vm *vm, *next;

	if (!p)
		return;
	HASH_ITER (hh, p->vms, vm, next)
		drop(p, vm);
	pthread_mutex_destroy(&p->lock);
	close(p->proc);
	free(p->cgroup);
	free(p->pids);
	free(p);
}

static struct vm *find(struct processes *p, const struct hv_uuid *uuid)
{
	struct vm *vm;

	HASH_FIND(hh, p->vms, uuid, sizeof(*uuid), vm);
	return vm;
}

static struct vm *find_or_add(struct processes *p, const struct hv_uuid *uuid)
{
	struct vm *vm = find(p, uuid);

	if (vm)
		return vm;
	vm = calloc(1, sizeof(*vm));
	if (!vm)
		return NULL;
	vm->uuid = *uuid;
	vm->folder = vm->status = -1;
	HASH_ADD(hh, p->vms, uuid, sizeof(vm->uuid), vm);
	if (!vm->hh.tbl) {
		free(vm);
		return NULL;
	}
	p->nr++;
	return vm;
}

/* Without memory for it the VM is found as one without a pid file is. */
static void take_name(struct vm *vm, const char *name)
{
	if (!name || (vm->name && !strcmp(vm->name, name)))
		return;
	free(vm->name);
	vm->name = strdup(name);
}

int processes_set(struct processes *p, const struct hv_listed *vms, size_t nr)
{
	struct vm *vm, *next;
	int r = 0;

	pthread_mutex_lock(&p->lock);
	HASH_ITER (hh, p->vms, vm, next)
		vm->listed = false;
	for (size_t i = 0; i < nr; i++) {
		vm = find_or_add(p, &vms[i].uuid);
		if (vm) {
			vm->listed = true;
			take_name(vm, vms[i].name);
		} else {
			r = -ENOMEM;
		}
	}
	HASH_ITER (hh, p->vms, vm, next)
		if (!vm->listed)
			drop(p, vm);
	pthread_mutex_unlock(&p->lock);
	return r;
}

void processes_set_maximum(struct processes *p, const struct hv_uuid *uuid, uint64_t bytes)
{
	struct vm *vm;

	pthread_mutex_lock(&p->lock);
	vm = find(p, uuid);
	if (vm && vm->maximum != bytes) {
		vm->maximum = bytes;
		vm->measured = false;
		vm->pause = vm->next = 0;
	}
	pthread_mutex_unlock(&p->lock);
}

/* -ESRCH, -EBADMSG: the process is gone, or all but gone. */
static int read_status(int fd, struct process_status *ret_status)
{
	char text[STATUS_MAX];
	ssize_t n;

	n = pread(fd, text, sizeof(text) - 1, 0);
	if (n < 0)
		return negative(errno);
	text[n] = 0;
	return process_parse_status(text, ret_status);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* base + (now - then), between 0 and most. */
static uint64_t moved(uint64_t base, uint64_t then, uint64_t now, uint64_t most)
{
	if (now >= then)
		return least(base + (now - then), most);
	return base > then - now ? least(base - (then - now), most) : 0;
}

static void attribute(const struct processes *p, const struct vm *vm,
	const struct process_status *now, struct hv_process *ret)
{
	const struct baseline *base = &vm->base;
	uint64_t most;

	if (base->split) {
		ret->resident =
			moved(base->resident, base->all_resident, now->resident, vm->maximum);
		ret->swapped = moved(base->swapped, base->all_swapped, now->swapped,
			vm->maximum - ret->resident);
		ret->swap_known = !base->shared || p->no_swap;
	} else {
		most = vm->maximum;
		ret->resident = least(now->resident, most);
		ret->swapped = least(now->swapped, most - ret->resident);
		ret->swap_known = now->shared <= now->resident / 2 || p->no_swap;
	}
	/* Never more than the process has: the clamps above may leave the guest a little over. */
	ret->resident = least(ret->resident, now->resident);
	ret->swapped = least(ret->swapped, now->swapped);
	ret->overhead = (now->resident - ret->resident) + (now->swapped - ret->swapped);
	ret->known = true;
}

static bool wants_baseline(const struct vm *vm, const struct process_status *s, uint64_t now)
{
	const struct baseline *base = &vm->base;

	if (vm->maximum == 0 || now < vm->next)
		return false;
	if (!vm->measured || !base->split)
		return true;
	return now - base->at >= PROCESS_BASELINE_US &&
	       distance(s->resident, base->all_resident) + distance(s->swapped, base->all_swapped) >
		       PROCESS_BASELINE_BYTES;
}

static int open_in(int folder, const char *name)
{
	return openat(folder, name, O_RDONLY | O_CLOEXEC);
}

/* Reads up to size - 1 bytes and a 0 behind them. */
static ssize_t read_all(int folder, const char *name, char *buf, size_t size)
{
	size_t length = 0;
	ssize_t n = 0;
	int fd = open_in(folder, name);

	if (fd < 0)
		return -errno;
	while (length < size - 1) {
		n = read(fd, buf + length, size - 1 - length);
		if (n <= 0)
			break;
		length += (size_t)n;
	}
	if (n < 0)
		n = -errno;
	close(fd);
	buf[length] = 0;
	return n < 0 ? n : (ssize_t)length;
}

/* Lines of a hybrid hierarchy: some twenty. Small files that the kernel makes up: no need to wait.
 */
static void look_at_cgroup(
	const struct processes *p, struct vm *vm, uint64_t now, unsigned int *looks)
{
	char text[STATUS_MAX];

	(*looks)--;
	vm->throttle = (struct cgroup_throttle){ 0 };
	if (read_all(vm->folder, "cgroup", text, sizeof(text)) > 0)
		cgroup_read_throttle(p->cgroup, text, &vm->throttle);
	vm->throttle_next = now + PROCESS_CGROUP_US;
}

static void read_vm(const struct processes *p, struct vm *vm, uint64_t now, unsigned int *looks,
	struct hv_process *ret, bool *work)
{
	struct process_status status;

	memset(ret, 0, sizeof(*ret));
	ret->uuid = vm->uuid;
	if (vm->status >= 0 && read_status(vm->status, &status) < 0)
		forget_process(vm);
	if (vm->status < 0) {
		if (now >= vm->next)
			*work = true;
		return;
	}
	if (wants_baseline(vm, &status, now))
		*work = true;
	if (now >= vm->throttle_next && *looks > 0)
		look_at_cgroup(p, vm, now, looks);
	if (vm->measured)
		attribute(p, vm, &status, ret);
	ret->started = vm->started;
	ret->throttle = vm->throttle.high;
	ret->throttled = vm->throttle.events;
}

int processes_read(struct processes *p, uint64_t now, struct hv_process **ret_vms, size_t *ret_nr,
	bool *ret_work)
{
	unsigned int looks = PROCESS_CGROUPS_AT_ONCE;
	struct hv_process *vms = NULL;
	struct vm *vm, *next;
	size_t nr = 0;
	int r = 0;

	*ret_work = false;
	pthread_mutex_lock(&p->lock);
	if (p->nr > 0) {
		vms = calloc(p->nr, sizeof(*vms));
		if (!vms)
			r = -ENOMEM;
	}
	if (vms)
		HASH_ITER (hh, p->vms, vm, next)
			read_vm(p, vm, now, &looks, &vms[nr++], ret_work);
	pthread_mutex_unlock(&p->lock);
	if (r < 0)
		return r;
	*ret_vms = vms;
	*ret_nr = nr;
	return 0;
}

/* ---- the slow part: works on copies, with no lock held ---- */

struct todo {
	struct hv_uuid uuid;
	char text[HV_UUID_TEXT];
	char name[HV_NAME_MAX + 1]; /* "": has no pid file */
	uint64_t maximum;
	int folder, status; /* to find: -1 until found */
	uint64_t started;   /* of what was found */
	bool searched, measure, measured;
	bool sure; /* libvirt says that it is that process */
	struct baseline base;
};

/* The argument after "-uuid"; NULL: none. cmdline has length bytes and a 0 behind. */
static const char *uuid_argument(const char *cmdline, size_t length)
{
	const char *end = cmdline + length;
	bool next = false;

	for (const char *arg = cmdline; arg < end; arg += strlen(arg) + 1) {
		if (next)
			return arg;
		next = !strcmp(arg, "-uuid");
	}
	return NULL;
}

/* Field 22 of "stat", in ticks since boot; the name in brackets may have anything in it. */
static uint64_t start_time(int folder)
{
	unsigned long long ticks;
	char text[2048];
	const char *after;

	if (read_all(folder, "stat", text, sizeof(text)) < 0)
		return 0;
	after = strrchr(text, ')');
	if (!after || sscanf(after + 1,
			      " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			      "%*s %*s %*s %llu",
			      &ticks) != 1)
		return 0;
	return ticks;
}

/*
 * Whether a stranger could not have started it: real, effective, saved and file system's user are
 * all among the owners. The folder's own owner tells nothing: it is root's for whoever asks for no
 * core dumps; and the effective one alone is root's for every set-user-id program.
 */
static bool is_trusted(const struct processes *p, int folder)
{
	unsigned int uids[4];
	char text[STATUS_MAX];
	const char *line;

	if (read_all(folder, "status", text, sizeof(text)) < 0)
		return false;
	line = strstr(text, "\nUid:");
	if (!line ||
		sscanf(line, "\nUid: %u %u %u %u", &uids[0], &uids[1], &uids[2], &uids[3]) != 4)
		return false;
	for (size_t i = 0; i < 4; i++) {
		size_t at = 0;

		while (at < p->nr_owners && p->owners[at] != uids[i])
			at++;
		if (at == p->nr_owners)
			return false;
	}
	return true;
}

/* The process's folder, where its command line has a UUID: it is in buf then. */
static int open_with_uuid(int proc, const char *pid, char *buf, const char **ret_uuid)
{
	int folder = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t n;

	if (folder < 0)
		return -1;
	n = read_all(folder, "cmdline", buf, CMDLINE_MAX);
	*ret_uuid = n > 0 ? uuid_argument(buf, (size_t)n) : NULL;
	if (!*ret_uuid)
		close_fd(&folder);
	return folder;
}

/* The folder was opened before its files are read: all of them are of one process or fail. */
static void consider(struct processes *p, const char *pid, struct todo *todo, size_t nr, char *buf)
{
	const char *uuid;
	uint64_t started;
	int folder = open_with_uuid(p->proc, pid, buf, &uuid);

	for (size_t i = 0; folder >= 0 && i < nr; i++) {
		struct todo *t = &todo[i];

		if (!t->searched || t->sure || strcmp(t->text, uuid) != 0)
			continue;
		started = start_time(folder);
		/* Who came first keeps its place: nobody takes it by starting another. */
		if (!is_trusted(p, folder) || !started || (t->folder >= 0 && started >= t->started))
			break;
		close_fd(&t->folder);
		t->folder = folder;
		t->started = started;
		return;
	}
	close_fd(&folder);
}

/* As libvirt, and nobody else, wrote it down. A number that another got since has not the UUID. */
static void ask_pid_file(struct processes *p, int pids, struct todo *t, char *buf)
{
	char file[HV_NAME_MAX + sizeof(".pid")], pid[PID_TEXT];
	const char *uuid = NULL;
	int folder;

	if (pids < 0 || !*t->name || strchr(t->name, '/'))
		return;
	snprintf(file, sizeof(file), "%s.pid", t->name);
	if (read_all(pids, file, pid, sizeof(pid)) <= 0)
		return;
	pid[strspn(pid, "0123456789")] = '\0';
	folder = *pid ? open_with_uuid(p->proc, pid, buf, &uuid) : -1;
	if (folder < 0)
		return;
	t->started = start_time(folder);
	t->sure = t->started && uuid && !strcmp(t->text, uuid);
	if (t->sure)
		t->folder = folder;
	else
		close_fd(&folder);
}

/* True: all are found. */
static bool search_pid_files(struct processes *p, struct todo *todo, size_t nr, char *buf)
{
	int pids = open(p->pids, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool all = true;

	for (size_t i = 0; i < nr; i++) {
		if (todo[i].searched)
			ask_pid_file(p, pids, &todo[i], buf);
		all = all && (!todo[i].searched || todo[i].sure);
	}
	close_fd(&pids);
	return all;
}

static void search(struct processes *p, struct todo *todo, size_t nr)
{
	char *buf = malloc(CMDLINE_MAX);
	struct dirent *entry;
	DIR *dir;
	int fd;

	if (!buf || search_pid_files(p, todo, nr, buf))
		goto out;
	fd = openat(p->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			consider(p, entry->d_name, todo, nr, buf);
	if (dir)
		closedir(dir);
out:
	free(buf);
}

static void measure(struct todo *t, uint64_t now)
{
	struct process_guest guest;
	struct process_status status;
	int fd = open_in(t->folder, "smaps"), status_fd;
	int r;

	r = fd < 0 ? negative(errno) : process_read_smaps(fd, t->maximum, &guest);
	/* Right after, so that the two belong together. */
	status_fd = open_in(t->folder, "status");
	if (status_fd >= 0 && read_status(status_fd, &status) == 0) {
		t->measured = true;
		t->base.at = now;
		t->base.all_resident = status.resident;
		t->base.all_swapped = status.swapped;
		t->base.split = r == 0;
		if (r == 0) {
			t->base.resident = guest.resident;
			t->base.swapped = guest.swapped;
			t->base.shared = guest.shared;
		}
	}
	close_fd(&status_fd);
}

static bool host_has_no_swap(int proc)
{
	char text[STATUS_MAX];
	const char *line;

	if (read_all(proc, "meminfo", text, sizeof(text)) < 0)
		return false;
	line = strstr(text, "\nSwapTotal:");
	return line && strtoull(line + strlen("\nSwapTotal:"), NULL, 10) == 0;
}

/* What is to do, as copies. *ret_nr: how many; NULL when there is nothing, or no memory. */
static struct todo *collect(struct processes *p, uint64_t now, size_t *ret_nr)
{
	struct todo *todo = p->nr > 0 ? calloc(p->nr, sizeof(*todo)) : NULL;
	struct process_status status = { 0 };
	struct vm *vm, *next;
	size_t nr = 0;

	if (!todo)
		return NULL;
	HASH_ITER (hh, p->vms, vm, next) {
		struct todo *t = &todo[nr];

		t->uuid = vm->uuid;
		t->maximum = vm->maximum;
		t->folder = t->status = -1;
		hv_uuid_format(&vm->uuid, t->text);
		snprintf(t->name, sizeof(t->name), "%s", vm->name ? vm->name : "");
		t->searched = vm->folder < 0 && now >= vm->next;
		t->measure = vm->folder >= 0 && read_status(vm->status, &status) == 0 &&
			     wants_baseline(vm, &status, now);
		if (t->measure)
			t->folder = fcntl(vm->folder, F_DUPFD_CLOEXEC, 0);
		if (t->searched || t->folder >= 0)
			nr++;
	}
	*ret_nr = nr;
	return todo;
}

static void wait_longer(struct vm *vm, uint64_t now)
{
	vm->pause =
		vm->pause ? least(vm->pause * 2, PROCESS_LAST_PAUSE_US) : PROCESS_FIRST_PAUSE_US;
	vm->next = now + vm->pause;
}

static void store(struct vm *vm, struct todo *t, uint64_t now)
{
	bool good = t->folder >= 0;

	if (t->searched && t->folder >= 0 && vm->folder < 0) {
		vm->folder = t->folder;
		vm->status = t->status;
		vm->started = t->started;
		t->folder = t->status = -1;
	}
	/* Memory that came or went meanwhile makes what was measured worthless. */
	if (t->measured && t->maximum == vm->maximum && vm->folder >= 0) {
		vm->measured = true;
		vm->base = t->base;
		good = good && t->base.split;
	}
	if (good)
		vm->pause = vm->next = 0;
	else
		wait_longer(vm, now);
}

void processes_work(struct processes *p, uint64_t now)
{
	struct todo *todo;
	struct vm *vm;
	size_t nr = 0;
	bool searched = false, no_swap = host_has_no_swap(p->proc);

	pthread_mutex_lock(&p->lock);
	todo = collect(p, now, &nr);
	pthread_mutex_unlock(&p->lock);
	for (size_t i = 0; i < nr; i++)
		searched = searched || todo[i].searched;
	if (searched)
		search(p, todo, nr);
	for (size_t i = 0; i < nr; i++) {
		struct todo *t = &todo[i];

		if (t->folder < 0)
			continue;
		if (t->searched)
			t->status = open_in(t->folder, "status");
		if (t->searched && t->status < 0)
			close_fd(&t->folder);
		else if (t->maximum > 0)
			measure(t, now);
	}
	pthread_mutex_lock(&p->lock);
	p->no_swap = no_swap;
	for (size_t i = 0; i < nr; i++) {
		vm = find(p, &todo[i].uuid);
		if (vm)
			store(vm, &todo[i], now);
		close_fd(&todo[i].folder);
		close_fd(&todo[i].status);
	}
	pthread_mutex_unlock(&p->lock);
	free(todo);
}
