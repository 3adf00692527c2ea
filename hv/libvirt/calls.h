/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * calls: every call to libvirt that this backend makes, as a table that tests replace.
 *
 * The members have libvirt's own names (without "vir"), signatures, ownership and errors; what a
 * libvirt does not know must return its failure value with an error that says so. No other function
 * of libvirt's is used.
 *
 * Called from any of the backend's threads.
 */
#ifndef BALLAST_HV_LIBVIRT_CALLS_H
#define BALLAST_HV_LIBVIRT_CALLS_H

#include <stdint.h>

#include <libvirt/libvirt-qemu.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

/* Times, microseconds; in the table because tests cannot wait for the real ones. */
struct libvirt_times {
	uint64_t pause_first; /* before connecting again; doubles... */
	uint64_t pause_most;  /* ...up to this */
	uint64_t hung;	      /* a call that is out for longer is hung */
	uint64_t pressure;    /* at most one HV_EVENT_PRESSURE in that time */
	uint64_t qga_pause;   /* before QEMU's agent is tried again; doubles up to 32 times that */
	uint64_t qga_read;    /* between two readings through it */
	uint64_t qga_slow;    /* a reading, or a batch, that takes longer is slow */
	uint64_t qga_fresh;   /* for so long it counts that no job was seen */
};

struct libvirt_calls {
	struct libvirt_times times;

	/* The event loop, one a process. */
	int (*event_register_default_impl)(void);
	int (*event_run_default_impl)(void);
	int (*event_add_timeout)(
		int frequency_ms, virEventTimeoutCallback cb, void *opaque, virFreeCallback ff);
	void (*event_update_timeout)(int timer, int frequency_ms);
	int (*event_remove_timeout)(int timer);

	/* Errors; the last one is the calling thread's. */
	virErrorPtr (*get_last_error)(void);
	void (*set_error_func)(void *ctx, virErrorFunc handler);

	/* Connections. */
	virConnectPtr (*connect_open)(const char *uri);
	int (*connect_close)(virConnectPtr conn);
	int (*connect_is_alive)(virConnectPtr conn);
	int (*connect_set_keep_alive)(virConnectPtr conn, int interval_s, unsigned int count);
	char *(*connect_get_uri)(virConnectPtr conn);
	int (*connect_register_close_callback)(
		virConnectPtr conn, virConnectCloseFunc cb, void *opaque, virFreeCallback ff);
	int (*connect_unregister_close_callback)(virConnectPtr conn, virConnectCloseFunc cb);
	int (*connect_domain_event_register_any)(virConnectPtr conn, virDomainPtr dom, int event,
		virConnectDomainEventGenericCallback cb, void *opaque, virFreeCallback ff);
	int (*connect_domain_event_deregister_any)(virConnectPtr conn, int id);

	/* All domains at once. */
	int (*connect_get_all_domain_stats)(virConnectPtr conn, unsigned int stats,
		virDomainStatsRecordPtr **ret_records, unsigned int flags);
	void (*domain_stats_record_list_free)(virDomainStatsRecordPtr *records);
	int (*connect_list_all_domains)(
		virConnectPtr conn, virDomainPtr **ret_domains, unsigned int flags);

	/* One domain; never blocking. */
	virDomainPtr (*domain_lookup_by_uuid)(virConnectPtr conn, const unsigned char *uuid);
	int (*domain_free)(virDomainPtr dom);
	const char *(*domain_get_name)(virDomainPtr dom);
	int (*domain_get_uuid)(virDomainPtr dom, unsigned char *ret_uuid);
	int (*domain_get_state)(
		virDomainPtr dom, int *ret_state, int *ret_reason, unsigned int flags);
	int (*domain_is_persistent)(virDomainPtr dom);
	char *(*domain_get_xml_desc)(virDomainPtr dom, unsigned int flags);
	int (*domain_get_memory_parameters)(
		virDomainPtr dom, virTypedParameterPtr params, int *nparams, unsigned int flags);
	char *(*domain_get_metadata)(
		virDomainPtr dom, int type, const char *uri, unsigned int flags);

	/* One domain; may hang for ever. */
	int (*domain_get_job_stats)(virDomainPtr dom, int *ret_type,
		virTypedParameterPtr *ret_params, int *ret_nparams, unsigned int flags);
	int (*domain_set_memory_parameters)(
		virDomainPtr dom, virTypedParameterPtr params, int nparams, unsigned int flags);
	int (*domain_memory_stats)(virDomainPtr dom, virDomainMemoryStatPtr stats, unsigned int nr,
		unsigned int flags);
	int (*domain_set_memory_stats_period)(virDomainPtr dom, int period_s, unsigned int flags);
	int (*domain_set_memory)(virDomainPtr dom, unsigned long kib);
	int (*domain_set_memory_flags)(virDomainPtr dom, unsigned long kib, unsigned int flags);
	int (*domain_set_metadata)(virDomainPtr dom, int type, const char *metadata,
		const char *key, const char *uri, unsigned int flags);
	int (*domain_attach_device_flags)(virDomainPtr dom, const char *xml, unsigned int flags);
	int (*domain_get_block_job_info)(virDomainPtr dom, const char *disk,
		virDomainBlockJobInfoPtr ret_info, unsigned int flags);
	char *(*domain_qemu_agent_command)(
		virDomainPtr dom, const char *command, int timeout_s, unsigned int flags);
};

/* The real ones. */
extern const struct libvirt_calls libvirt_calls;

#endif
