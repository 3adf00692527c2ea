/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* hv: what every backend and every user of one shares, see hv.h. */
#include <config.h>

#include "hv/hv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "policy/memcg.h"

static const char hex[] = "0123456789abcdef";

/* A dash stands before the bytes 4, 6, 8 and 10. */
static bool dash_before(size_t byte)
{
	return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void hv_uuid_format(const struct hv_uuid *uuid, char *text)
{
	for (size_t i = 0; i < sizeof(uuid->bytes); i++) {
		if (dash_before(i))
			*text++ = '-';
		*text++ = hex[uuid->bytes[i] >> 4];
		*text++ = hex[uuid->bytes[i] & 15];
	}
	*text = '\0';
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int hv_uuid_parse(const char *text, struct hv_uuid *ret_uuid)
{
	struct hv_uuid uuid;

	for (size_t i = 0; i < sizeof(uuid.bytes); i++) {
		int high, low;

		if (dash_before(i) && *text++ != '-')
			return -EINVAL;
		high = digit_of(text[0]);
		if (high < 0)
			return -EINVAL;
		low = digit_of(text[1]);
		if (low < 0)
			return -EINVAL;
		uuid.bytes[i] = (uint8_t)(high << 4 | low);
		text += 2;
	}
	if (*text != '\0')
		return -EINVAL;
	*ret_uuid = uuid;
	return 0;
}

bool hv_uuid_equal(const struct hv_uuid *a, const struct hv_uuid *b)
{
	return !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

const char *hv_group_path(const char *path, char *ret_path)
{
	char normal[HV_GROUP_MAX + 1];
	size_t length = 0, depth = 0;

	if (*path != '/')
		return "does not begin with /";
	if (!text_is_utf8(path))
		return "has bytes that are no UTF-8";
	while (*path) {
		size_t part;

		path += strspn(path, "/");
		part = strcspn(path, "/");
		if (part == 0)
			break;
		if ((part == 1 && path[0] == '.') || (part == 2 && !memcmp(path, "..", 2)))
			return "has a part . or ..";
		if (length + 1 + part > HV_GROUP_MAX)
			return "is too long";
		if (++depth >= MEMCG_MAX_DEPTH)
			return "has too many parts";
		normal[length++] = '/';
		memcpy(normal + length, path, part);
		length += part;
		path += part;
	}
	if (length == 0)
		normal[length++] = '/';
	memcpy(ret_path, normal, length);
	ret_path[length] = '\0';
	return NULL;
}

static const char *const manage_names[] = {
	[HV_MANAGE_NO] = "no", [HV_MANAGE_OBSERVE] = "observe", [HV_MANAGE_ACT] = "act"
};

const char *hv_manage_name(enum hv_manage manage)
{
	return manage_names[manage];
}

int hv_manage_parse(const char *text, enum hv_manage *ret_manage)
{
	for (unsigned int i = 0; i < sizeof(manage_names) / sizeof(manage_names[0]); i++)
		if (!strcmp(text, manage_names[i])) {
			*ret_manage = (enum hv_manage)i;
			return 0;
		}
	return -EINVAL;
}

static const char *const way_names[] = {
	[HV_WAY_NONE] = "none", [HV_WAY_BALLAST] = "ballast", [HV_WAY_QEMU_GA] = "qemu-ga"
};

const char *hv_way_name(enum hv_way way)
{
	return way_names[way];
}

int hv_way_parse(const char *text, enum hv_way *ret_way)
{
	for (unsigned int i = 0; i < sizeof(way_names) / sizeof(way_names[0]); i++)
		if (!strcmp(text, way_names[i])) {
			*ret_way = (enum hv_way)i;
			return 0;
		}
	return -EINVAL;
}

void hv_knobs_clear(struct hv_knobs *knobs)
{
	free(knobs->group);
	*knobs = (struct hv_knobs){ 0 };
}

void hv_info_clear(struct hv_info *info)
{
	free(info->name);
	free(info->partition);
	free(info->agent);
	free(info->problem);
	hv_knobs_clear(&info->metadata);
	hv_knobs_clear(&info->memtune);
	*info = (struct hv_info){ 0 };
}

void hv_change_clear(struct hv_knobs_change *change)
{
	hv_knobs_clear(&change->set);
	change->clear = 0;
}

/* ---- copies: one line for each text that hv_info_clear() and hv_knobs_clear() free ---- */

static int copy_text(const char *text, char **ret_copy)
{
	if (!text)
		return 0;
	*ret_copy = strdup(text);
	return *ret_copy ? 0 : -ENOMEM;
}

int hv_knobs_copy(const struct hv_knobs *knobs, struct hv_knobs *ret_copy)
{
	struct hv_knobs copy = *knobs;
	int r;

	copy.group = NULL;
	r = copy_text(knobs->group, &copy.group);
	if (r == 0)
		*ret_copy = copy;
	return r;
}

int hv_info_copy(const struct hv_info *info, struct hv_info *ret_copy)
{
	struct hv_info copy = *info;
	int r;

	copy.name = copy.partition = copy.problem = copy.agent = NULL;
	copy.metadata = copy.memtune = (struct hv_knobs){ 0 };
	r = copy_text(info->name, &copy.name);
	if (r == 0)
		r = copy_text(info->partition, &copy.partition);
	if (r == 0)
		r = copy_text(info->problem, &copy.problem);
	if (r == 0)
		r = copy_text(info->agent, &copy.agent);
	if (r == 0)
		r = hv_knobs_copy(&info->metadata, &copy.metadata);
	if (r == 0)
		r = hv_knobs_copy(&info->memtune, &copy.memtune);
	if (r < 0)
		hv_info_clear(&copy);
	else
		*ret_copy = copy;
	return r;
}

int hv_change_copy(const struct hv_knobs_change *change, struct hv_knobs_change *ret_copy)
{
	struct hv_knobs_change copy = { .clear = change->clear };
	int r = hv_knobs_copy(&change->set, &copy.set);

	if (r == 0)
		*ret_copy = copy;
	return r;
}

int hv_change_apply(const struct hv_knobs_change *change, struct hv_knobs *knobs)
{
	const struct hv_knobs *set = &change->set;
	char *group = NULL;

	if (set->has_group && copy_text(set->group, &group) < 0)
		return -ENOMEM;
	if (set->has_group || (change->clear & HV_KNOB_GROUP)) {
		free(knobs->group);
		knobs->group = group;
		knobs->has_group = group;
	}
	if (set->has_soft_limit || (change->clear & HV_KNOB_SOFT_LIMIT)) {
		knobs->has_soft_limit = set->has_soft_limit;
		knobs->soft_limit = set->soft_limit;
	}
	if (set->has_min || (change->clear & HV_KNOB_MIN)) {
		knobs->has_min = set->has_min;
		knobs->min = set->min;
	}
	if (set->has_low || (change->clear & HV_KNOB_LOW)) {
		knobs->has_low = set->has_low;
		knobs->low = set->low;
	}
	if (set->has_max || (change->clear & HV_KNOB_MAX)) {
		knobs->has_max = set->has_max;
		knobs->max = set->max;
	}
	if (set->has_guest_swap || (change->clear & HV_KNOB_GUEST_SWAP)) {
		knobs->has_guest_swap = set->has_guest_swap;
		knobs->guest_swap = set->guest_swap;
	}
	if (set->has_manage || (change->clear & HV_KNOB_MANAGE)) {
		knobs->has_manage = set->has_manage;
		knobs->manage = set->manage;
	}
	if (set->has_agent || (change->clear & HV_KNOB_AGENT)) {
		knobs->has_agent = set->has_agent;
		knobs->agent = set->agent;
	}
	return 0;
}

enum hv_event_type hv_answer_of(enum hv_call_type type)
{
	switch (type) {
	case HV_LIST:
		return HV_EVENT_LISTED;
	case HV_INFO:
		return HV_EVENT_INFO;
	case HV_STATS:
		return HV_EVENT_STATS;
	case HV_PERIOD:
	case HV_TARGET:
	case HV_UNTHROTTLE:
	case HV_KNOBS:
	case HV_ATTACH:
	case HV_RECLAIM:
		return HV_EVENT_DONE;
	case HV_PROCESS:
		return HV_EVENT_PROCESS;
	case HV_HOST:
		return HV_EVENT_HOST;
	}
	return HV_EVENT_NONE;
}

void hv_event_fail(struct hv_event *event, int error, const char *message)
{
	event->error = error;
	free(event->message);
	event->message = strdup(message);
}

void hv_listed_clear(struct hv_event *event)
{
	for (size_t i = 0; i < event->listed.nr; i++)
		free(event->listed.vms[i].name);
	free(event->listed.vms);
	event->listed.vms = NULL;
	event->listed.nr = 0;
}

void hv_event_clear(struct hv_event *event)
{
	switch (event->type) {
	case HV_EVENT_LISTED:
		hv_listed_clear(event);
		break;
	case HV_EVENT_INFO:
		hv_info_clear(&event->info);
		break;
	case HV_EVENT_PROCESS:
		free(event->process.vms);
		break;
	default:
		break;
	}
	free(event->message);
	*event = (struct hv_event){ .type = HV_EVENT_NONE };
}
