/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kbuild: make -jN of a kernel. Each job is a compiler that lives a few tenths of a second: it
 * reads its source, touches the headers and the compiler's own text, which all jobs share and which
 * are hot, grows to a peak of anonymous memory, writes its object, which nobody reads again before
 * the link, and exits.
 */
#include <config.h>

#include "hv/sim/program_internal.h"

#include "hv/sim/costs.h"

#define MIB (UINT64_C(1) << 20)

/*
 * The first document's build: 664 s of user and 70 s of system time, 37 million minor faults. With
 * some 2500 objects of a distribution's configuration of that time, one takes 0.29 s of a
 * processor and touches 58 MiB of new memory, about half of it at once.
 */
#define CPU_US_LEAST UINT64_C(90000)
#define CPU_US_MOST  UINT64_C(490000)
#define PEAK_LEAST   (10 * MIB)
#define PEAK_MOST    (50 * MIB)
/* cc1, as, make and the C library, and the headers that most sources include. */
#define SHARED (110 * MIB)
/* A job touches a page of what is shared so often in a second of its processor's time. */
#define SHARED_TOUCHES_PER_S 3
#define OWN_TOUCHES_PER_S    20
/* A source and the headers that only it includes: two reads; and an object with its symbols. */
#define READS	    2
#define READ_BYTES  (140 * 1024 / GUEST_PAGE * GUEST_PAGE)
#define WRITE_BYTES (600 * 1024)

void kbuild_start(struct program *p, struct guest *guest)
{
	struct memory *m = &guest->memory;

	p->region = memory_region_new(m, MEMORY_MAPPED);
	/* On a freshly unpacked tree with nothing cached: all of it comes from the disk. */
	m->regions[p->region].out = m->regions[p->region].fresh = SHARED;
	if (p->params.parallel > PROGRAM_JOBS_MAX)
		p->params.parallel = PROGRAM_JOBS_MAX;
}

static void job_start(struct program *p, struct guest *guest, struct program_job *job)
{
	double us = READS * program_request_us(guest, READ_BYTES / READS, false);

	*job = (struct program_job){
		.runs = true,
		.region = memory_region_new(&guest->memory, MEMORY_ANON),
		.peak = page_down(program_draw(p, PEAK_LEAST, PEAK_MOST)),
		.cpu_us = (double)program_draw(p, CPU_US_LEAST, CPU_US_MOST),
		.wait_us = us,
	};
	p->begun_jobs++;
	program_allocate(p, guest, GUEST_FILES, READ_BYTES, false);
}

static void job_end(struct program *p, struct guest *guest, struct program_job *job)
{
	program_drop(guest, job->region);
	job->runs = false;
	program_allocate(p, guest, GUEST_FILES, WRITE_BYTES, true);
	p->done++;
}

/* Runs for at most so much time, on its share of the processors. */
static void job_step(
	struct program *p, struct guest *guest, struct program_job *job, double us, double share)
{
	double s;
	uint64_t has;

	us = guest_disk_wait(guest, &job->wait_us, us) * share;
	if (us <= 0)
		return;
	us = us < job->cpu_us - job->done_us ? us : job->cpu_us - job->done_us;
	s = us / GUEST_US_PER_S;
	job->done_us += us;
	job->wait_us = program_fault(guest, p, p->region, &p->missing, SHARED_TOUCHES_PER_S * s);
	job->wait_us += program_fault(guest, p, job->region, &job->missing, OWN_TOUCHES_PER_S * s);
	has = page_down((uint64_t)((double)job->peak * (job->done_us / job->cpu_us)));
	if (has > job->has)
		job->has += program_allocate(p, guest, job->region, has - job->has, false);
	if (job->done_us >= job->cpu_us)
		job_end(p, guest, job);
}

/* What each job that does not wait for the disk has of the processors. */
static double processors(const struct program *p)
{
	unsigned int ready = 0;

	for (unsigned int i = 0; i < p->params.parallel; i++)
		ready += p->jobs[i].runs && p->jobs[i].wait_us <= 0;
	return p->params.cpus && ready > p->params.cpus ? (double)p->params.cpus / ready : 1;
}

bool kbuild_step(struct program *p, struct guest *guest, double us)
{
	double share = processors(p);
	bool busy = false;

	for (unsigned int i = 0; i < p->params.parallel; i++) {
		struct program_job *job = &p->jobs[i];

		busy |= job->runs || p->begun_jobs < p->params.times;
		/* Whose object does not fit with what is dirty waits before it exits. */
		if (!job->runs && p->begun_jobs < p->params.times && guest_dirty_room(guest))
			job_start(p, guest, job);
		if (!job->runs)
			continue;
		job_step(p, guest, job, us, share);
	}
	return busy;
}

void kbuild_end(struct program *p, struct guest *guest)
{
	for (unsigned int i = 0; i < p->params.parallel; i++)
		if (p->jobs[i].runs)
			program_drop(guest, p->jobs[i].region);
}
