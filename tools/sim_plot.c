/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures of runs, by gnuplot; see sim_plot.h. */
#include <config.h>

#include "tools/sim_plot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "hv/sim/guest.h"

#define SAMPLES	 1000
#define MIB	 (1024.0 * 1024)
#define WIDTH	 1200
#define HEIGHT	 300 /* of one VM */
#define US_PER_S 1000000.0

struct sample {
	double actual, resident, swapped, hot; /* MiB */
};

struct plot {
	const struct scenario *scenario;
	const struct virtual *virtual;
	const char *path, *terminal;
	size_t nr;
	double times[SAMPLES + 1];
	struct sample *samples; /* of a time, of all VMs */
};

static bool ends_in(const char *text, const char *end)
{
	size_t length = strlen(text);

	return length > strlen(end) && !strcmp(text + length - strlen(end), end);
}

int plot_new(const struct scenario *scenario, const struct virtual *virtual, const char *path,
	struct plot **ret_plot)
{
	struct plot *plot;
	const char *terminal;

	/* The path goes into a quoted word of gnuplot's, which runs what stands in backquotes. */
	if (strpbrk(path, "\"'\\`\n"))
		return -EINVAL;
	terminal = ends_in(path, ".png") ? "pngcairo" : ends_in(path, ".svg") ? "svg" : NULL;
	if (!terminal)
		return -EINVAL;
	plot = calloc(1, sizeof *plot);
	if (!plot)
		return -ENOMEM;
	plot->samples = calloc((SAMPLES + 1) * scenario->nr_vms, sizeof *plot->samples);
	if (!plot->samples) {
		free(plot);
		return -ENOMEM;
	}
	plot->scenario = scenario;
	plot->virtual = virtual;
	plot->path = path;
	plot->terminal = terminal;
	*ret_plot = plot;
	return 0;
}

void plot_free(struct plot *plot)
{
	if (!plot)
		return;
	free(plot->samples);
	free(plot);
}

void plot_step(struct plot *plot, uint64_t now)
{
	const struct scenario *s = plot->scenario;
	struct sim_vm_view view;

	if (plot->nr > SAMPLES || now < s->length / SAMPLES * plot->nr)
		return;
	for (size_t i = 0; i < s->nr_vms; i++) {
		struct sample *sample = &plot->samples[plot->nr * s->nr_vms + i];

		if (sim_vm_view(virtual_sim(plot->virtual), s->vms[i].sim.name, &view) < 0)
			continue;
		sample->actual = (double)guest_actual(view.guest) / MIB;
		sample->resident = (double)guest_resident(view.guest) / MIB;
		sample->swapped =
			(double)(view.guest->host_swapped + view.guest->memory.swapped) / MIB;
		sample->hot = (double)(view.guest->memory.sums[MEMORY_ACTIVE_ANON] +
				       view.guest->memory.sums[MEMORY_ACTIVE_FILE]) /
			      MIB;
	}
	plot->times[plot->nr++] = (double)now / US_PER_S;
}

static void write_vm(const struct plot *plot, FILE *gnuplot, size_t i)
{
	size_t nr_vms = plot->scenario->nr_vms;

	fprintf(gnuplot, "$vm%zu << EOD\n", i);
	for (size_t t = 0; t < plot->nr; t++) {
		const struct sample *s = &plot->samples[t * nr_vms + i];

		fprintf(gnuplot, "%.3f %.1f %.1f %.1f %.1f\n", plot->times[t], s->actual,
			s->resident, s->swapped, s->hot);
	}
	fputs("EOD\n", gnuplot);
}

int plot_finish(struct plot *plot)
{
	size_t nr_vms = plot->scenario->nr_vms;
	FILE *gnuplot = popen("gnuplot", "w");
	int status;

	if (!gnuplot)
		return -errno;
	fprintf(gnuplot,
		"set terminal %s size %d,%zu\nset output \"%s\"\nset multiplot layout %zu,1\n"
		"set key outside\nset ylabel \"MiB\"\nset yrange [0:*]\n",
		plot->terminal, WIDTH, HEIGHT * nr_vms, plot->path, nr_vms);
	for (size_t i = 0; i < nr_vms; i++)
		write_vm(plot, gnuplot, i);
	for (size_t i = 0; i < nr_vms; i++) {
		/* Its name is a file's: letters that mean something to gnuplot are left out. */
		fputs("set title \"", gnuplot);
		for (const char *c = plot->scenario->vms[i].sim.name; *c; c++)
			if (!strchr("\"\\`@{}^_&~", *c) && (unsigned char)*c >= ' ')
				fputc(*c, gnuplot);
		fprintf(gnuplot,
			"\" noenhanced\nplot $vm%zu using 1:2 with lines title \"actual\", "
			"$vm%zu using 1:3 with lines title \"resident\", "
			"$vm%zu using 1:4 with lines title \"swapped\", "
			"$vm%zu using 1:5 with lines title \"active\"\n",
			i, i, i, i);
	}
	status = pclose(gnuplot);
	if (status == 0)
		return 0;
	fprintf(stderr, "ballast-sim: %s was not drawn: %s\n", plot->path,
		WIFEXITED(status) && WEXITSTATUS(status) == 127 ? "install gnuplot"
								: "gnuplot failed");
	return -EIO;
}
