/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The libvirt backend opened on fake_libvirt with two domains, for tests that drive it by calls and
 * events. One at a time.
 */
#ifndef BALLAST_TESTS_LIBVIRT_HOST_H
#define BALLAST_TESTS_LIBVIRT_HOST_H

#include "hv/libvirt/libvirt.h"
#include "tests/unit/fake_libvirt.h"

#define MIB UINT64_C(1048576)

/* How long an event may take: only a test that fails waits for it. */
#define PATIENCE_MS 20000

extern struct hv *hv; /* NULL: not open */
extern struct fake_domain *web, *db;
/* Events that came by themselves while something else was waited for. */
extern unsigned int seen[HV_EVENT_UP + 1];
/* What was told of web's and db's agents last. */
extern struct hv_agent last_agent[2];

void nap(void); /* while something is waited for that tells nothing */

/* The fixture. It is not open yet; in the end nothing of it may be left. */
void host_setup(void);
void host_teardown(void);

void open_with(const struct libvirt_calls *calls);
void open_backend(void); /* until it is connected */

/* The next event, within patience. */
struct hv_event wait_any(void);
/* The next of a type; others are counted in seen[]. */
struct hv_event wait_for(enum hv_event_type type);
/* The answer to that call; what comes by itself before is counted in seen[]. */
struct hv_event answer_to(uint64_t token);

/* A call of a token of its own; dom NULL: of no domain. */
struct hv_call make(enum hv_call_type type, const struct fake_domain *dom);
uint64_t submit(enum hv_call_type type, const struct fake_domain *dom); /* the token */
struct hv_event ask(enum hv_call_type type, const struct fake_domain *dom);
/* As it is filled in, but for token and domain. */
struct hv_event ask_call(struct hv_call call, const struct fake_domain *dom);
struct hv_event set_target(const struct fake_domain *dom, uint64_t target, uint64_t ceiling);
void expect_done(struct hv_event event, int error);

#endif
