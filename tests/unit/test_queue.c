/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The queue of a backend's events: what becomes one, and a flood. */
#include <config.h>

#include "hv/queue.h"

#include <check.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

static void tell(struct hv_queue *queue, enum hv_event_type type, unsigned int vm, uint64_t actual)
{
	struct hv_event event = { .type = type, .actual = actual };

	memcpy(event.uuid.bytes, &vm, sizeof(vm));
	hv_queue_tell(queue, &event);
}

static enum hv_event_type take(struct hv_queue *queue, uint64_t *ret_actual)
{
	struct hv_event event;
	enum hv_event_type type;

	if (hv_queue_take(queue, &event) == 0)
		return HV_EVENT_NONE;
	type = event.type;
	if (ret_actual)
		*ret_actual = event.actual;
	hv_event_clear(&event);
	return type;
}

static bool readable(const struct hv_queue *queue)
{
	struct pollfd fd = { .fd = queue->fd, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

START_TEST(equal_events_become_one_with_the_newest_figure)
{
	struct hv_queue queue;
	uint64_t actual = 0;

	ck_assert_int_eq(hv_queue_init(&queue), 0);
	ck_assert(!readable(&queue));
	tell(&queue, HV_EVENT_BALLOON, 1, 10);
	tell(&queue, HV_EVENT_CHANGED, 1, 0);
	tell(&queue, HV_EVENT_BALLOON, 2, 20);
	tell(&queue, HV_EVENT_BALLOON, 1, 30);
	tell(&queue, HV_EVENT_CHANGED, 1, 0);
	ck_assert(readable(&queue));
	ck_assert_int_eq(take(&queue, &actual), HV_EVENT_BALLOON);
	ck_assert_uint_eq(actual, 30);
	ck_assert_int_eq(take(&queue, NULL), HV_EVENT_CHANGED);
	ck_assert_int_eq(take(&queue, &actual), HV_EVENT_BALLOON);
	ck_assert_uint_eq(actual, 20);
	ck_assert_int_eq(take(&queue, NULL), HV_EVENT_NONE);
	ck_assert(!readable(&queue));
	hv_queue_destroy(&queue);
}
END_TEST

START_TEST(a_flood_is_bounded_loses_no_answer_and_ends_with_a_listing)
{
	struct hv_queue queue;
	unsigned int nr = 0;

	ck_assert_int_eq(hv_queue_init(&queue), 0);
	for (unsigned int i = 0; i < 3 * HV_QUEUE_MAX; i++)
		tell(&queue, HV_EVENT_CHANGED, i, 0);
	for (unsigned int i = 0; i < 10; i++) {
		struct hv_item *item = calloc(1, sizeof(*item));

		ck_assert_ptr_nonnull(item);
		item->event.type = HV_EVENT_DONE;
		hv_queue_push(&queue, item);
	}
	while (take(&queue, NULL) == HV_EVENT_CHANGED)
		nr++;
	ck_assert_uint_eq(nr, HV_QUEUE_MAX);
	for (nr = 1; nr < 10; nr++)
		ck_assert_int_eq(take(&queue, NULL), HV_EVENT_DONE);
	ck_assert(readable(&queue));
	/* Nobody's connection was lost: targets and statistics are what they were. */
	ck_assert_int_eq(take(&queue, NULL), HV_EVENT_CHANGED);
	ck_assert_int_eq(take(&queue, NULL), HV_EVENT_NONE);
	ck_assert(!readable(&queue));
	hv_queue_destroy(&queue);
}
END_TEST

START_TEST(a_flood_makes_nothing_up_while_the_connection_is_down)
{
	struct hv_queue queue;

	ck_assert_int_eq(hv_queue_init(&queue), 0);
	for (unsigned int i = 0; i < 2 * HV_QUEUE_MAX; i++)
		tell(&queue, HV_EVENT_CHANGED, i, 0);
	tell(&queue, HV_EVENT_DOWN, 0, 0);
	while (take(&queue, NULL) == HV_EVENT_CHANGED)
		;
	ck_assert_int_eq(take(&queue, NULL), HV_EVENT_NONE);
	tell(&queue, HV_EVENT_UP, 0, 0);
	ck_assert_int_eq(take(&queue, NULL), HV_EVENT_UP);
	ck_assert_int_eq(take(&queue, NULL), HV_EVENT_NONE);
	hv_queue_destroy(&queue);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("queue");
	TCase *tc = tcase_create("queue");

	tcase_add_test(tc, equal_events_become_one_with_the_newest_figure);
	tcase_add_test(tc, a_flood_is_bounded_loses_no_answer_and_ends_with_a_listing);
	tcase_add_test(tc, a_flood_makes_nothing_up_while_the_connection_is_down);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
