/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options: see config_table.h. Defaults are in core_config_default(). */
#include <config.h>

#include "hv/ballastd/config_table.h"

#include <stddef.h>
#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1024) * KIB)
#define PIB (UINT64_C(1024) * 1024 * 1024 * MIB)

#define MS  UINT64_C(1000)
#define SEC (1000 * MS)
#define MIN (60 * SEC)

/* What fits a line of a file behind the longest of their keys and " = ": see CONFIG_LINE_MAX. */
#define TEXT_MAX 180

/* sun_path holds 108 bytes with the 0. */
#define SOCKET_PATH_MAX 107

#define AT(field)     offsetof(struct config, field)
#define CORE(field)   offsetof(struct config, core.field)
#define ENGINE(field) offsetof(struct config, core.engine.field)
#define GROUP(field)  offsetof(struct core_group_knobs, field)
#define KNOB(field)   GROUP(knobs.field)
#define RULE(field)   offsetof(struct core_rule, field)

const struct config_option config_options[] = {
	{ "ballastd", "mode", &config_type_mode, ENGINE(act), 0, 0,
		"observe: nothing is changed anywhere; act: memory is taken and given back." },
	{ "ballastd", "connect", &config_type_text, AT(connect), 1, TEXT_MAX,
		"The hypervisor's URI. Not set: $LIBVIRT_DEFAULT_URI, else xen:///local in a Xen "
		"host's dom0, else qemu:///system." },
	{ "ballastd", "run-dir", &config_type_path, AT(run_dir), 1, TEXT_MAX,
		"Where the daemon keeps what does not outlive a boot." },
	{ "ballastd", "socket", &config_type_path, AT(socket), 1, SOCKET_PATH_MAX,
		"The control socket. Not set: ballastd.sock in run-dir." },
	{ "ballastd", "on-stop", &config_type_on_stop, AT(release_on_stop), 0, 0,
		"keep: VMs keep what they have when the daemon ends; release: they get all back." },
	{ "ballastd", "pager", &config_type_path, AT(pager), 1, TEXT_MAX,
		"Directory of microVMs' memory files, NAME.mem, whose page faults are served. Not "
		"set: "
		"none." },

	{ "pool", "size", &config_type_pool, 0, 16 * MIB, PIB,
		"What all VMs may use together: host (the host's memory less huge pages) or a "
		"size." },
	{ "pool", "reserve", &config_type_reserve, 0, 0, PIB,
		"Kept for the host itself where size = host; auto: the larger of 2GiB and 3 %." },
	{ "pool", "wm-min", &config_type_level, ENGINE(wm_min), 1, PIB,
		"Free memory below which steps widen; a part of the pool or a size." },
	{ "pool", "wm-low", &config_type_level, ENGINE(wm_low), 1, PIB,
		"Free memory below which reclaim starts: early enough for balloons, which are "
		"slow." },
	{ "pool", "wm-high", &config_type_level, ENGINE(wm_high), 1, PIB,
		"Free memory that reclaim leads to, and above which VMs get memory back." },
	{ "pool", "others-max", &config_type_size_or_none, CORE(others_max), MIB, PIB,
		"What others on the host may take before it is told, where size = host. VMs give "
		"nothing for it." },
	{ "pool", "psi", &config_type_path, AT(psi), 1, TEXT_MAX,
		"The kernel's memory pressure file; pressure makes the daemon look at once. none: "
		"off." },

	{ "vms", "default-soft-limit", &config_type_percent_or_none,
		CORE(default_soft_limit_percent), 1, 100,
		"Soft limit, as a part of its maximum, of a VM that has none of its own. none: it "
		"is never in excess." },
	{ "vms", "guest-swap", &config_type_bool, CORE(guest_swap), 0, 0,
		"Whether guests may be pushed into their own swap." },
	{ "vms", "trust", &config_type_bool, CORE(trust), 0, 0,
		"Whether what a guest's agent says it needs counts over its soft limit." },
	{ "vms", "observe-stats", &config_type_bool, CORE(observe_stats), 0, 0,
		"Whether balloon statistics are switched on in mode observe too; nothing else "
		"is." },
	{ "vms", "floor", &config_type_percent, ENGINE(bounds.floor_percent), 1, 100,
		"What a guest keeps at least, of its maximum: squeezed further it lives and is "
		"useless." },
	{ "vms", "floor-free-only", &config_type_percent, ENGINE(bounds.floor_free_only_percent), 1,
		100,
		"The same for guests that tell only free memory (Windows): its caches are not "
		"known." },
	{ "vms", "memtune-takeover", &config_type_bool, CORE(memtune_takeover), 0, 0,
		"In act mode, lift the live memory.high that memtune's soft limit became, and "
		"leave "
		"the configured one: the limit is kept by ballast instead of by throttling." },
	{ "vms", "margin", &config_type_percent, ENGINE(bounds.margin_percent), 0, 25,
		"Usable memory that is always left to a guest, of its maximum." },
	{ "vms", "margin-at-least", &config_type_pages_up, ENGINE(bounds.margin_at_least), 0, PIB,
		"The margin is not smaller than this, but for a quarter of the guest's maximum." },

	{ "xen", "dom0-min", &config_type_size_or_none, AT(dom0_min), 64 * MIB, PIB,
		"dom0 is a VM as others, and never has less than this. none: it is off limits." },

	{ "pace", "max-step", &config_type_pages_down, ENGINE(max_step), MIB, PIB,
		"Asked of a VM at a time and not come, at most." },
	{ "pace", "max-rate", &config_type_rate, CORE(max_rate), MIB, PIB,
		"Asked of a VM each second, at most; none: any." },
	{ "pace", "host-max-rate", &config_type_rate, ENGINE(max_rate), MIB, PIB,
		"Asked of all VMs together each second, at most; none: any." },
	{ "pace", "release-hold", &config_type_time, ENGINE(release_us), MS, 24 * 60 * MIN,
		"A VM that the operator released is not asked for this long; pause it to be "
		"sure." },
	{ "pace", "hold", &config_type_time, ENGINE(hold_us), MS, 10 * MIN,
		"After a cut, and after an ask that failed, a VM is left alone for this long." },
	{ "pace", "hold-max", &config_type_time, ENGINE(hold_max_us), MS, 24 * 60 * MIN,
		"The hold time doubles with each failure up to this." },
	{ "pace", "ask-deadline", &config_type_time, ENGINE(ask_deadline_us), 100 * MS, 10 * MIN,
		"An ask fails after this and what the way takes at the VM's measured speed." },
	{ "pace", "rest", &config_type_time, ENGINE(rest_us), 100 * MS, MIN,
		"A balloon that stood still for this long rests; where it rests unasked is "
		"somebody's wish." },
	{ "pace", "speed", &config_type_pages_down, ENGINE(speed), MIB, PIB,
		"Speed of a balloon, each second, until it is measured." },
	{ "pace", "headroom", &config_type_pages_up, ENGINE(headroom_at_least), 0, PIB,
		"After a cut, what a VM in excess may grow at least." },
	{ "pace", "headroom-part", &config_type_fraction, ENGINE(headroom_fraction), 1, 1024,
		"The same as a part of its usage; the larger counts." },

	{ "times", "pool-fast", &config_type_time, CORE(pool_fast_us), MS, MIN,
		"How often the host's free memory is read when it is below wm-high." },
	{ "times", "pool-slow", &config_type_time, CORE(pool_slow_us), MS, MIN,
		"How often it is read otherwise." },
	{ "times", "vm", &config_type_time, CORE(vm_us), 10 * MS, 10 * MIN,
		"How often a VM's process and statistics are read." },
	{ "times", "tick-min", &config_type_time, CORE(tick_min_us), MS, MIN,
		"Decisions are made at most this often." },
	{ "times", "tick-max", &config_type_time, CORE(tick_max_us), 10 * MS, 10 * MIN,
		"And at least this often." },
	{ "times", "resync", &config_type_time, CORE(resync_us), 100 * MS, 60 * MIN,
		"How often everything is listed anew: events of a hypervisor get lost." },
	{ "times", "lane-deadline", &config_type_time, CORE(lane_us), 100 * MS, 10 * MIN,
		"A VM whose call has not returned after this is not answering." },
	{ "times", "stats-period", &config_type_seconds, CORE(stats_period_s), SEC, 60 * MIN,
		"Period of balloon statistics for VMs that have them switched off; whole seconds; "
		"in mode observe with observe-stats only." },
};

const size_t nr_config_options = sizeof(config_options) / sizeof(config_options[0]);

const struct config_option config_group_options[] = {
	{ "group", "soft-limit", &config_type_limit_up, KNOB(soft_limit), 0, PIB,
		"Over it the group is in excess, and all below it. 0: always; none: never." },
	{ "group", "min", &config_type_pages_up, KNOB(min), 0, PIB,
		"Never reclaimed below this from outside of the group." },
	{ "group", "low", &config_type_pages_up, KNOB(low), 0, PIB,
		"Protected unless nothing unprotected is left." },
	{ "group", "max", &config_type_limit_down, KNOB(max), MIB, PIB,
		"Over it the group is reclaimed by itself." },
	{ "group", "manage", &config_type_manage, GROUP(manage), 0, 0,
		"no, observe or act: what is done to VMs below it, at most." },
};

const size_t nr_config_group_options =
	sizeof(config_group_options) / sizeof(config_group_options[0]);

const struct config_option config_rule_options[] = {
	{ "rule", "match-name", &config_type_text, RULE(match_name), 1, TEXT_MAX,
		"VMs of that name: a glob, web-*. Not set: any." },
	{ "rule", "match-uuid", &config_type_text, RULE(match_uuid), 1, TEXT_MAX,
		"VMs of that UUID: a glob. Not set: any." },
	{ "rule", "match-group", &config_type_text, RULE(match_group), 1, TEXT_MAX,
		"VMs that metadata or partition put into that group: a glob, /prod or /prod/*. "
		"Not set: any." },
	{ "rule", "soft-limit", &config_type_rule_limit, RULE(knobs.soft_limit), 0, PIB,
		"Soft limit, where neither metadata nor memtune say one." },
	{ "rule", "min", &config_type_rule_size, RULE(knobs.min), 0, PIB,
		"Min, where metadata say none." },
	{ "rule", "low", &config_type_rule_size, RULE(knobs.low), 0, PIB,
		"Low, where metadata say none." },
	{ "rule", "max", &config_type_rule_limit, RULE(knobs.max), MIB, PIB,
		"Max, where metadata say none." },
	{ "rule", "guest-swap", &config_type_rule_bool, RULE(knobs.guest_swap), 0, 0,
		"Whether the guest may be pushed into its own swap." },
	{ "rule", "manage", &config_type_rule_manage, RULE(knobs.manage), 0, 0,
		"no, observe or act; the lesser of it and mode counts." },
	{ "rule", "group", &config_type_rule_group, RULE(knobs.group), 1, TEXT_MAX,
		"The group, where metadata say none; before the partition." },
	{ "rule", "agent", &config_type_rule_way, RULE(knobs.agent), 0, 0,
		"ballast, qemu-ga or none: which agent in the guest is listened to." },
	{ "rule", "enforce", &config_type_bool, RULE(enforce), 0, 0,
		"yes: metadata and memtune may say less than the sizes here and not more, and "
		"nothing else than the rest." },
};

const size_t nr_config_rule_options = sizeof(config_rule_options) / sizeof(config_rule_options[0]);

size_t config_find_option(const char *section, const char *key)
{
	size_t i = 0;

	while (i < nr_config_options && (strcmp(config_options[i].section, section) != 0 ||
						strcmp(config_options[i].key, key) != 0))
		i++;
	return i;
}
