/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ballastctl pause, resume and release for people, and what asks before much is taken. */
#include <config.h>

#include "tools/ballastctl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"

void show_pauses(struct json_object *result)
{
	struct json_object *vms = NULL, *vm;
	bool paused = false;

	json_get_bool(result, "paused", &paused);
	if (json_get_array(result, "vms", &vms) < 0)
		vms = NULL;
	if (paused)
		puts("everything is paused: nobody is asked for memory; what VMs have coming they "
		     "get");
	for (size_t i = 0; vms && i < json_object_array_length(vms); i++) {
		vm = json_object_array_get_idx(vms, i);
		printf("%s is paused\n", text(vm, "name")[0] ? text(vm, "name") : text(vm, "uuid"));
	}
	if (!paused && (!vms || json_object_array_length(vms) == 0))
		puts("nothing is paused");
}

int pauses_status(struct json_object *result)
{
	const char *warning = text(result, "warning");

	if (!warning[0])
		return 0;
	return ctl_fail(CTL_PARTLY, "it counts until the daemon ends and not longer: %s", warning);
}

void show_release(struct json_object *result)
{
	uint64_t nr = number(result, "released"), ms = number(result, "hold_us") / 1000;
	bool minutes = ms % 60000 == 0, seconds = ms % 1000 == 0;

	printf("%llu VM%s get%s back what ballast took, and %s not asked for %llu %s\n",
		(unsigned long long)nr, nr == 1 ? "" : "s", nr == 1 ? "s" : "",
		nr == 1 ? "is" : "are",
		(unsigned long long)(minutes   ? ms / 60000
				     : seconds ? ms / 1000
					       : ms),
		minutes	  ? "min"
		: seconds ? "s"
			  : "ms");
}

/* ---- reclaim ---- */

/* Yes or no from the terminal. */
static bool ask(const char *size, const char *pool)
{
	char answer[16] = "";

	fprintf(stderr, "%s is more than a tenth of the pool (%s). Reclaim it? [y/N] ", size, pool);
	if (!fgets(answer, sizeof(answer), stdin))
		return false;
	return answer[0] == 'y' || answer[0] == 'Y';
}

int confirm_reclaim(
	struct client *client, const struct ctl_options *options, const char *size, uint64_t bytes)
{
	struct json_object *status = NULL, *pool = NULL;
	char why[600] = "", buf[SIZE_TEXT];
	uint64_t whole;
	bool agreed;
	int r;

	if (options->yes)
		return 0;
	r = client_call(client, "status", NULL, &status, why, sizeof(why));
	if (r < 0)
		return ctl_fail(r == -EREMOTE ? CTL_FAILED : CTL_UNREACHABLE, "%s", why);
	json_get_object(status, "pool", &pool);
	whole = pool ? number(pool, "size") : 0;
	json_object_put(status);
	if (!whole)
		return ctl_fail(CTL_FAILED,
			"the host's memory is not known yet; try again in a moment, or give --yes");
	if (bytes <= whole / 10)
		return 0;
	if (!isatty(STDIN_FILENO))
		return ctl_fail(CTL_USAGE,
			"%s is more than a tenth of the pool (%s); give --yes to reclaim it all "
			"the "
			"same",
			size, size_format(whole, buf, sizeof(buf)));
	agreed = ask(size, size_format(whole, buf, sizeof(buf)));
	return agreed ? 0 : ctl_fail(CTL_FAILED, "nothing was reclaimed");
}
