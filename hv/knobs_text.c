/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Knobs as operators write them; see knobs_text.h. */
#include <config.h>

#include "hv/knobs_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "common/text.h"

/* The most of an operator's text that is quoted in a problem. */
#define QUOTE_MAX 64
/* The most text of problems that is kept. */
#define PROBLEM_MAX 2048
/* The most that is said of one bad size. */
#define SIZE_PROBLEM_MAX 256

void knobs_complain(struct hv_info *info, const char *fmt, ...)
{
	char *what = NULL, *all = NULL;
	va_list args;
	int r;

	if (info->problem && strlen(info->problem) > PROBLEM_MAX)
		return;
	va_start(args, fmt);
	r = vasprintf(&what, fmt, args);
	va_end(args);
	if (r < 0)
		return;
	text_mend(what);
	for (char *c = what; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	if (info->problem && asprintf(&all, "%s; %s", info->problem, what) >= 0) {
		free(info->problem);
		info->problem = all;
		free(what);
	} else if (!info->problem) {
		info->problem = what;
	} else {
		free(what);
	}
}

static void refuse(struct hv_info *info, const char *where, const char *name, const char *value,
	const char *why)
{
	knobs_complain(info, "%s%s='%.*s' is not used: %s", where, name, QUOTE_MAX, value, why);
}

enum size_words {
	LIMIT,	    /* "none", "max": no limit */
	PROTECTION, /* "none": nothing is protected */
};

static void take_size(struct hv_info *info, const char *where, const char *name, const char *value,
	enum size_words words, bool *ret_has, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;
	int r;

	if (!strcmp(value, "none")) {
		*ret_bytes = words == LIMIT ? HV_UNLIMITED : 0;
	} else if (words == LIMIT && !strcmp(value, "max")) {
		*ret_bytes = HV_UNLIMITED;
	} else {
		r = size_parse_amount(value, &bytes);
		if (r < 0) {
			char why[SIZE_PROBLEM_MAX];

			knobs_complain(info, "%s%s is not used: %s", where, name,
				size_parse_error(value, r, why, sizeof(why)));
			return;
		}
		*ret_bytes = bytes;
	}
	*ret_has = true;
}

/* -ENOMEM: without its group the VM would be put into another. */
static int take_group(struct hv_info *info, const char *where, const char *value)
{
	struct hv_knobs *knobs = &info->metadata;
	char path[HV_GROUP_MAX + 1];
	const char *why = hv_group_path(value, path);

	if (why) {
		refuse(info, where, "group", value, why);
		return 0;
	}
	free(knobs->group);
	knobs->group = strdup(path);
	knobs->has_group = knobs->group;
	return knobs->group ? 0 : -ENOMEM;
}

static void take_manage(struct hv_info *info, const char *where, const char *value)
{
	if (hv_manage_parse(value, &info->metadata.manage) < 0)
		refuse(info, where, "manage", value, "it is no, observe or act");
	else
		info->metadata.has_manage = true;
}

static void take_guest_swap(struct hv_info *info, const char *where, const char *value)
{
	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0) {
		refuse(info, where, "guest-swap", value, "it is yes or no");
		return;
	}
	info->metadata.guest_swap = !strcmp(value, "yes");
	info->metadata.has_guest_swap = true;
}

static void take_agent(struct hv_info *info, const char *where, const char *value)
{
	if (hv_way_parse(value, &info->metadata.agent) < 0)
		refuse(info, where, "agent", value, "it is ballast, qemu-ga or none");
	else
		info->metadata.has_agent = true;
}

int knobs_take(struct hv_info *info, const char *where, const char *name, const char *value)
{
	struct hv_knobs *k = &info->metadata;

	if (!strcmp(name, "soft-limit"))
		take_size(info, where, name, value, LIMIT, &k->has_soft_limit, &k->soft_limit);
	else if (!strcmp(name, "max"))
		take_size(info, where, name, value, LIMIT, &k->has_max, &k->max);
	else if (!strcmp(name, "min"))
		take_size(info, where, name, value, PROTECTION, &k->has_min, &k->min);
	else if (!strcmp(name, "low"))
		take_size(info, where, name, value, PROTECTION, &k->has_low, &k->low);
	else if (!strcmp(name, "group"))
		return take_group(info, where, value);
	else if (!strcmp(name, "manage"))
		take_manage(info, where, value);
	else if (!strcmp(name, "guest-swap"))
		take_guest_swap(info, where, value);
	else if (!strcmp(name, "agent"))
		take_agent(info, where, value);
	else
		refuse(info, where, name, value, "no such attribute");
	return 0;
}

void knobs_settle(struct hv_info *info, const char *where)
{
	struct hv_knobs *k = &info->metadata;

	if (k->has_min && k->has_max && k->min > k->max) {
		k->has_max = false;
		knobs_complain(info, "%smax is not used: it is less than min", where);
	}
}

struct writing {
	knobs_write_fn *write;
	void *ctx;
	unsigned int clear;
	int r; /* of the first that failed */
};

static void write_text(
	struct writing *w, const char *name, enum hv_knob knob, bool set, const char *value)
{
	if (w->r == 0 && (set || (w->clear & knob)))
		w->r = w->write(w->ctx, name, set ? value : NULL);
}

static void write_size(
	struct writing *w, const char *name, enum hv_knob knob, bool set, uint64_t bytes)
{
	char text[SIZE_TEXT] = "none";

	if (bytes != HV_UNLIMITED)
		size_format_exact(bytes, text, sizeof(text));
	write_text(w, name, knob, set, text);
}

int knobs_write(const struct hv_knobs_change *change, knobs_write_fn *write, void *ctx)
{
	struct writing w = { .write = write, .ctx = ctx, .clear = change->clear };
	const struct hv_knobs *k = &change->set;

	write_size(&w, "soft-limit", HV_KNOB_SOFT_LIMIT, k->has_soft_limit, k->soft_limit);
	write_size(&w, "min", HV_KNOB_MIN, k->has_min, k->min);
	write_size(&w, "low", HV_KNOB_LOW, k->has_low, k->low);
	write_size(&w, "max", HV_KNOB_MAX, k->has_max, k->max);
	write_text(&w, "group", HV_KNOB_GROUP, k->has_group, k->group);
	write_text(&w, "manage", HV_KNOB_MANAGE, k->has_manage, hv_manage_name(k->manage));
	write_text(&w, "guest-swap", HV_KNOB_GUEST_SWAP, k->has_guest_swap,
		k->guest_swap ? "yes" : "no");
	write_text(&w, "agent", HV_KNOB_AGENT, k->has_agent, hv_way_name(k->agent));
	return w.r;
}
