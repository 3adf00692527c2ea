/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * process: what the host sees of the VMs' QEMU processes, without asking QEMU or libvirt.
 *
 * A QEMU is found by the pid file that libvirt writes. Where there is none (another libvirt, or one
 * that is not root's) it is found by "-uuid UUID" on its command line, among the processes of users
 * whom a stranger cannot start one as: root, the daemon's own, and QEMU's; of several the one that
 * started first is taken. Its folder in /proc is kept open, which names that very process and never
 * another that got its number later. From then on one small read a VM gives what the process has
 * resident and swapped out ("status": the same counters as "statm", and swap beside them).
 *
 * Which part of it is guest memory only smaps tells, and that costs milliseconds a GiB, so it is
 * read once at adoption and then rarely (see PROCESS_BASELINE_*). In between every change is taken
 * for the guest's, which is right but for the emulator's own growth. Guest memory is known by its
 * size: a mapping as large as the domain's memory, or several that together are (NUMA nodes, memory
 * devices).
 *
 * Where smaps cannot be read (CAP_SYS_PTRACE is missing) or shows no such mapping, all of the
 * process counts as the guest's up to the domain's memory, and the rest as overhead: the sum is
 * right, the guest's part too large by what the emulator uses. Swapped-out shared memory is counted
 * in smaps alone, so for such guests swap is unknown, unless the host has no swap at all.
 *
 * Any thread; a mutex, which is never held over a slow read.
 */
#ifndef BALLAST_HV_LIBVIRT_PROCESS_H
#define BALLAST_HV_LIBVIRT_PROCESS_H

#include "hv/hv.h"

/* A new baseline: so much movement since the last one... */
#define PROCESS_BASELINE_BYTES (64u << 20)
/* ...and so long ago. Reading smaps of a 64 GiB guest takes up to a second of one CPU. */
#define PROCESS_BASELINE_US 60000000u
/* How often the limits of its cgroup are read: operators set them, seldom. */
#define PROCESS_CGROUP_US 5000000u
/* And of so many VMs within one reading: some 20 microseconds each. */
#define PROCESS_CGROUPS_AT_ONCE 64u
/* Pause before looking again for what was not found: doubles from the first to the last. */
#define PROCESS_FIRST_PAUSE_US 500000u
#define PROCESS_LAST_PAUSE_US  64000000u

struct processes;

/*
 * proc: "/proc"; cgroup: "/sys/fs/cgroup"; pids: libvirt's NAME.pid, "/run/libvirt/qemu", which
 * need not be there. -ENOENT (proc), -ENOMEM.
 */
int processes_new(
	const char *proc, const char *cgroup, const char *pids, struct processes **ret_processes);
void processes_free(struct processes *processes);

/*
 * Which VMs there are from now on, by UUID and name; what is known of those that stay is kept.
 * Copied. -ENOMEM.
 */
int processes_set(struct processes *processes, const struct hv_listed *vms, size_t nr);

/* The domain's memory; without it guest memory cannot be told apart. */
void processes_set_maximum(struct processes *processes, const struct hv_uuid *uuid, uint64_t bytes);

/*
 * The figures of all VMs, to be freed; one small read each. *ret_work: there is something to find
 * or to measure: processes_work() should be called, from a thread that may be slow. -ENOMEM.
 */
int processes_read(struct processes *processes, uint64_t now, struct hv_process **ret_vms,
	size_t *ret_nr, bool *ret_work);

/* Finds processes and measures their guest memory. Takes milliseconds to seconds. One at a time. */
void processes_work(struct processes *processes, uint64_t now);

#endif
