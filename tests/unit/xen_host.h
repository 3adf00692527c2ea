/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The Xen backend opened on fake_xen, for tests that drive it by calls and events. One at a time.
 */
#ifndef BALLAST_TESTS_XEN_HOST_H
#define BALLAST_TESTS_XEN_HOST_H

#include "hv/hv.h"

/* Only a test that fails waits so long. */
#define PATIENCE_MS 20000

extern struct hv *host; /* NULL: not open */

void nap(long ms);
/* Until it is connected. */
void open_host(uint64_t dom0_min);
/* The same, and who says nothing for so long is silent. */
void open_host_impatient(uint64_t silent_us);
/* Until its threads have ended, and nothing is left. */
void close_host(void);
/* Without waiting; the call's token. */
uint64_t submit(struct hv_call call);
/* The next event of that type, others are dropped; token 0: any. */
struct hv_event wait_for(enum hv_event_type type, uint64_t token);
struct hv_event ask(struct hv_call call);

#endif
