/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* hv: what every backend and every user of one shares, see hv.h. */
#include <config.h>

#include "hv/hv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

void hv_knobs_clear(struct hv_knobs *knobs)
{
	free(knobs->group);
	*knobs = (struct hv_knobs){ 0 };
}

void hv_info_clear(struct hv_info *info)
{
	free(info->name);
	free(info->partition);
	free(info->problem);
	hv_knobs_clear(&info->metadata);
	hv_knobs_clear(&info->memtune);
	*info = (struct hv_info){ 0 };
}

void hv_event_clear(struct hv_event *event)
{
	switch (event->type) {
	case HV_EVENT_LISTED:
		for (size_t i = 0; i < event->listed.nr; i++)
			free(event->listed.vms[i].name);
		free(event->listed.vms);
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
