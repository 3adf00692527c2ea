/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The real calls; see calls.h. */
#include <config.h>

#include "hv/libvirt/calls.h"

const struct libvirt_calls libvirt_calls = {
	.times = {
		.pause_first = 1000000, /* a libvirtd restarts in about a second */
		.pause_most = 30000000,
		.hung = 3000000,        /* healthy calls take milliseconds */
		.pressure = 250000,     /* the pool is read that often anyway */
		.qga_pause = 10000000,  /* up to five minutes */
		.qga_read = 2000000,    /* twice before it would be taken for silent */
		.qga_slow = 1000000,    /* it takes milliseconds, or what a batch takes the guest */
		.qga_fresh = 3000000,   /* statistics come every second */
	},
	.event_register_default_impl = virEventRegisterDefaultImpl,
	.event_run_default_impl = virEventRunDefaultImpl,
	.event_add_timeout = virEventAddTimeout,
	.event_update_timeout = virEventUpdateTimeout,
	.event_remove_timeout = virEventRemoveTimeout,
	.get_last_error = virGetLastError,
	.set_error_func = virSetErrorFunc,
	.connect_open = virConnectOpen,
	.connect_close = virConnectClose,
	.connect_is_alive = virConnectIsAlive,
	.connect_set_keep_alive = virConnectSetKeepAlive,
	.connect_get_uri = virConnectGetURI,
	.connect_register_close_callback = virConnectRegisterCloseCallback,
	.connect_unregister_close_callback = virConnectUnregisterCloseCallback,
	.connect_domain_event_register_any = virConnectDomainEventRegisterAny,
	.connect_domain_event_deregister_any = virConnectDomainEventDeregisterAny,
	.connect_get_all_domain_stats = virConnectGetAllDomainStats,
	.domain_stats_record_list_free = virDomainStatsRecordListFree,
	.connect_list_all_domains = virConnectListAllDomains,
	.domain_lookup_by_uuid = virDomainLookupByUUID,
	.domain_free = virDomainFree,
	.domain_get_name = virDomainGetName,
	.domain_get_uuid = virDomainGetUUID,
	.domain_get_state = virDomainGetState,
	.domain_is_persistent = virDomainIsPersistent,
	.domain_get_xml_desc = virDomainGetXMLDesc,
	.domain_get_memory_parameters = virDomainGetMemoryParameters,
	.domain_get_metadata = virDomainGetMetadata,
	.domain_get_job_stats = virDomainGetJobStats,
	.domain_set_memory_parameters = virDomainSetMemoryParameters,
	.domain_memory_stats = virDomainMemoryStats,
	.domain_set_memory_stats_period = virDomainSetMemoryStatsPeriod,
	.domain_set_memory = virDomainSetMemory,
	.domain_set_memory_flags = virDomainSetMemoryFlags,
	.domain_set_metadata = virDomainSetMetadata,
	.domain_attach_device_flags = virDomainAttachDeviceFlags,
	.domain_get_block_job_info = virDomainGetBlockJobInfo,
	.domain_qemu_agent_command = virDomainQemuAgentCommand,
};
