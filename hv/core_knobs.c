/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whose word counts: what a VM's metadata, memtune, rules and defaults say, to one set of knobs in
 * pages, with all that was said and overridden. Pure. Protections round up, maxima down.
 */
#include <config.h>

#include "hv/core_internal.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/size.h"
#include "common/text.h"

bool core_pages_down(uint64_t bytes, uint64_t *ret_pages)
{
	uint64_t pages = bytes / POLICY_PAGE_SIZE;

	if (bytes == HV_UNLIMITED || pages >= PAGES_UNLIMITED)
		return false;
	*ret_pages = pages;
	return true;
}

bool core_pages_up(uint64_t bytes, uint64_t *ret_pages)
{
	uint64_t pages = bytes / POLICY_PAGE_SIZE + (bytes % POLICY_PAGE_SIZE != 0);

	if (bytes == HV_UNLIMITED || pages >= PAGES_UNLIMITED)
		return false;
	*ret_pages = pages;
	return true;
}

uint64_t core_bytes(uint64_t pages)
{
	return pages >= PAGES_UNLIMITED ? HV_UNLIMITED : pages * POLICY_PAGE_SIZE;
}

/* One more thing that was refused; what does not fit is left out. */
__attribute__((format(printf, 2, 3))) static void problem(
	struct core_resolved *resolved, const char *format, ...)
{
	size_t used = strlen(resolved->problem), size = sizeof(resolved->problem);
	va_list args;

	if (used > 0 && used < size - 3) {
		memcpy(resolved->problem + used, "; ", 3);
		used += 2;
	}
	va_start(args, format);
	vsnprintf(resolved->problem + used, size - used, format, args);
	va_end(args);
	text_mend(resolved->problem);
}

/* ---- names ---- */

const char *core_knob_name(enum core_knob knob)
{
	static const char *const names[] = {
		[CORE_SOFT_LIMIT] = "soft-limit",
		[CORE_MIN] = "min",
		[CORE_LOW] = "low",
		[CORE_MAX] = "max",
		[CORE_GUEST_SWAP] = "guest-swap",
		[CORE_MANAGE] = "manage",
		[CORE_GROUP] = "group",
		[CORE_AGENT] = "agent",
	};

	return names[knob];
}

const char *core_source_name(enum core_source source)
{
	static const char *const names[] = {
		[CORE_FROM_GROUP] = "group",
		[CORE_FROM_METADATA] = "metadata",
		[CORE_FROM_MEMTUNE] = "memtune",
		[CORE_FROM_RULE] = "rule",
		[CORE_FROM_PARTITION] = "partition",
		[CORE_FROM_DEFAULT] = "default",
	};

	return names[source];
}

/* ---- groups' paths ---- */

bool core_path_is_below(const char *path, const char *above)
{
	size_t length = strlen(above);

	if (length == 1) /* "/" */
		return true;
	return !strncmp(path, above, length) && (path[length] == '\0' || path[length] == '/');
}

/* The group that rules see: what metadata says, else the partition. */
static const char *group_without_rules(const struct hv_info *info, char *buf)
{
	if (info->metadata.has_group && info->metadata.group &&
		!hv_group_path(info->metadata.group, buf))
		return buf;
	if (info->partition && !hv_group_path(info->partition, buf))
		return buf;
	return "/";
}

/* ---- what is said ---- */

/* All that the sources have to say, before it is asked who counts. */
struct sources {
	const struct core_config *config;
	const struct hv_info *info;
	uint64_t maximum, min_room; /* pages */
	const char *group;	    /* as rules see it */
	char uuid[HV_UUID_TEXT];
};

/* Whether a source says it, and what. "No protection" is 0. */
static bool says(const struct hv_knobs *knobs, enum core_knob knob, struct core_word *word)
{
	switch (knob) {
	case CORE_SOFT_LIMIT:
		word->value = knobs->soft_limit;
		return knobs->has_soft_limit;
	case CORE_MIN:
		word->value = knobs->min == HV_UNLIMITED ? 0 : knobs->min;
		return knobs->has_min;
	case CORE_LOW:
		word->value = knobs->low == HV_UNLIMITED ? 0 : knobs->low;
		return knobs->has_low;
	case CORE_MAX:
		word->value = knobs->max;
		return knobs->has_max;
	case CORE_GUEST_SWAP:
		word->value = knobs->guest_swap;
		return knobs->has_guest_swap;
	case CORE_MANAGE:
		word->value = knobs->manage;
		return knobs->has_manage;
	case CORE_GROUP:
		word->group = knobs->group;
		return knobs->has_group && knobs->group;
	case CORE_AGENT:
		word->value = knobs->agent;
		return knobs->has_agent;
	default:
		return false;
	}
}

static bool matches(const struct core_rule *rule, const struct sources *s)
{
	const char *name = s->info->name ? s->info->name : "";

	return (!rule->match_name || fnmatch(rule->match_name, name, 0) == 0) &&
	       (!rule->match_uuid || fnmatch(rule->match_uuid, s->uuid, FNM_CASEFOLD) == 0) &&
	       (!rule->match_group || fnmatch(rule->match_group, s->group, 0) == 0);
}

/* The first rule that matches and says it; enforce: of those that enforce. */
static bool rule_says(
	const struct sources *s, enum core_knob knob, bool enforce, struct core_word *word)
{
	for (size_t i = 0; i < s->config->nr_rules; i++) {
		const struct core_rule *rule = &s->config->rules[i];

		if ((enforce && !rule->enforce) || !says(&rule->knobs, knob, word) ||
			!matches(rule, s))
			continue;
		word->source = CORE_FROM_RULE;
		word->rule = rule->name;
		return true;
	}
	return false;
}

static struct core_word default_word(const struct sources *s, enum core_knob knob)
{
	unsigned int percent = s->config->default_soft_limit_percent;
	struct core_word word = { .source = CORE_FROM_DEFAULT };

	switch (knob) {
	case CORE_SOFT_LIMIT:
		word.value = HV_UNLIMITED;
		if (percent > 0)
			word.value = core_bytes(pages_min(pages_mul_div(s->maximum, percent, 100) +
								  (s->maximum * percent % 100 != 0),
				PAGES_UNLIMITED));
		break;
	case CORE_MAX:
		word.value = HV_UNLIMITED;
		break;
	case CORE_GUEST_SWAP:
		word.value = s->config->guest_swap;
		break;
	case CORE_MANAGE:
		word.value = HV_MANAGE_ACT;
		break;
	case CORE_AGENT:
		word.value = HV_WAY_BALLAST;
		break;
	case CORE_GROUP:
		word.group = s->info->partition ? s->info->partition : "/";
		if (s->info->partition)
			word.source = CORE_FROM_PARTITION;
		break;
	default:
		break;
	}
	return word;
}

/* Whether a word says more than a rule that enforces allows. */
static bool exceeds(enum core_knob knob, const struct core_word *word, const struct core_word *rule)
{
	if (knob == CORE_GROUP)
		return strcmp(word->group, rule->group) != 0;
	if (knob == CORE_GUEST_SWAP || knob == CORE_MANAGE || knob == CORE_AGENT)
		return word->value != rule->value;
	return word->value > rule->value;
}

static void add(struct core_knob_said *said, const struct core_word *word)
{
	said->words[said->nr++] = *word;
}

/*
 * The hard limit is a max whatever is said: over it the QEMU is killed, or swaps. It stands before
 * all that say more, else where memtune stands.
 */
static void add_hard_limit(const struct sources *s, struct core_knob_said *said)
{
	struct core_word word = { .source = CORE_FROM_MEMTUNE, .value = s->info->hard_limit };
	size_t at = 0;

	if (s->info->hard_limit == 0)
		return;
	word.enforced = said->words[0].value > word.value;
	while (!word.enforced && at < said->nr && said->words[at].source < CORE_FROM_RULE)
		at++;
	if (!word.enforced && said->words[0].enforced)
		at = 1;
	memmove(&said->words[at + 1], &said->words[at], (said->nr - at) * sizeof(word));
	said->words[at] = word;
	said->nr++;
}

static void collect(const struct sources *s, enum core_knob knob, struct core_knob_said *said)
{
	struct core_word metadata = { .source = CORE_FROM_METADATA };
	struct core_word memtune = { .source = CORE_FROM_MEMTUNE };
	struct core_word rule = { 0 }, enforced = { .enforced = true }, other;
	bool has_metadata = says(&s->info->metadata, knob, &metadata), has_memtune, has_enforced;

	/* A memtune without limit is what every domain has: nobody said it. */
	has_memtune = knob == CORE_SOFT_LIMIT && says(&s->info->memtune, knob, &memtune) &&
		      memtune.value != HV_UNLIMITED;
	has_enforced =
		rule_says(s, knob, true, &enforced) &&
		((has_metadata && exceeds(knob, &metadata, &enforced)) ||
			(!has_metadata && has_memtune && exceeds(knob, &memtune, &enforced)));
	said->nr = said->counts = 0;
	if (has_enforced)
		add(said, &enforced);
	if (has_metadata)
		add(said, &metadata);
	if (has_memtune)
		add(said, &memtune);
	if (rule_says(s, knob, false, &rule) && !(has_enforced && rule.rule == enforced.rule))
		add(said, &rule);
	other = default_word(s, knob);
	add(said, &other);
	if (knob == CORE_MAX)
		add_hard_limit(s, said);
}

const char *core_word_source(const struct core_word *word, char *buf, size_t size)
{
	if (word->rule)
		snprintf(buf, size, "rule '%s'", word->rule);
	else
		snprintf(buf, size, "%s", core_source_name(word->source));
	return buf;
}

#define SOURCE(word) core_word_source(word, (char[80]){ 0 }, 80)
#define SIZE(bytes)  size_format(bytes, (char[SIZE_TEXT]){ 0 }, SIZE_TEXT)

/* ---- who counts ---- */

static const struct core_word *counting(const struct core_knob_said *said)
{
	return &said->words[said->counts];
}

static void resolve_min(const struct sources *s, struct core_resolved *resolved)
{
	struct core_knob_said *said = &resolved->said[CORE_MIN];
	struct core_word *word;
	uint64_t pages = 0;

	for (;; said->counts++) {
		word = &said->words[said->counts];
		if (!core_pages_up(word->value, &pages))
			pages = 0;
		if (said->counts + 1 == said->nr || pages <= s->min_room)
			break;
		word->refused = "there is no room for it in the pool";
		problem(resolved,
			"min %s (%s): with it the min of all VMs would be over the pool, "
			"there is room for %s",
			SIZE(word->value), SOURCE(word), SIZE(core_bytes(s->min_room)));
	}
	resolved->knobs.min = pages;
}

static void resolve_max(struct core_resolved *resolved)
{
	struct core_knob_said *said = &resolved->said[CORE_MAX];
	struct core_word *word;
	uint64_t pages = 0;

	for (;; said->counts++) {
		word = &said->words[said->counts];
		if (!core_pages_down(word->value, &pages))
			pages = PAGES_UNLIMITED;
		if (said->counts + 1 == said->nr || pages >= resolved->knobs.min)
			break;
		word->refused = "it is below min";
		problem(resolved, "min %s is over max %s: max is not used",
			SIZE(core_bytes(resolved->knobs.min)), SIZE(core_bytes(pages)));
	}
	resolved->knobs.max = pages;
}

static void resolve_group(struct core_resolved *resolved)
{
	struct core_knob_said *said = &resolved->said[CORE_GROUP];

	strcpy(resolved->group, "/");
	for (;; said->counts++) {
		struct core_word *word = &said->words[said->counts];

		if (!hv_group_path(word->group, resolved->group))
			return;
		word->refused = "it is no path like /prod/web";
		problem(resolved,
			"group '%.100s' is no path like /prod/web of at most %d parts: %s is used",
			word->group, MEMCG_MAX_DEPTH - 1,
			said->counts + 1 == said->nr ? "/" : "the next");
		if (said->counts + 1 == said->nr)
			return;
	}
}

/* What the VM and the groups above it may be done: the least of all. */
static void resolve_manage(const struct core_config *config, struct core_resolved *resolved)
{
	struct core_knob_said *said = &resolved->said[CORE_MANAGE];
	struct core_word least = { .source = CORE_FROM_GROUP, .value = counting(said)->value };

	for (size_t i = 0; i < config->nr_groups; i++) {
		const struct core_group_knobs *group = &config->groups[i];

		if (group->manage >= least.value ||
			!core_path_is_below(resolved->group, group->path))
			continue;
		least.value = group->manage;
		least.group = group->path;
	}
	if (least.group) {
		memmove(&said->words[1], &said->words[0], said->nr * sizeof(least));
		said->words[0] = least;
		said->nr++;
	}
	resolved->manage = (enum hv_manage)least.value;
	resolved->attrs.act = resolved->manage == HV_MANAGE_ACT;
}

static void resolve_sizes(const struct sources *s, struct core_resolved *resolved)
{
	const struct core_word *word = counting(&resolved->said[CORE_SOFT_LIMIT]);

	resolved->soft_source = core_source_name(word->source);
	if (word->source == CORE_FROM_DEFAULT && word->value == HV_UNLIMITED)
		resolved->soft_source = "none";
	if (!core_pages_up(word->value, &resolved->knobs.soft_limit))
		resolved->knobs.soft_limit = PAGES_UNLIMITED;
	if (!core_pages_up(counting(&resolved->said[CORE_LOW])->value, &resolved->knobs.low))
		resolved->knobs.low = 0;
	resolve_min(s, resolved);
	resolve_max(resolved);
}

int core_resolve(const struct core_config *config, const struct hv_info *info, uint64_t min_room,
	struct core_resolved *ret_resolved)
{
	struct core_resolved resolved = { .knobs = MEMCG_KNOBS_NONE };
	struct sources sources = { .config = config, .info = info, .min_room = min_room };
	char group[HV_GROUP_MAX + 1];

	if (!core_pages_down(info->maximum, &resolved.attrs.maximum) || resolved.attrs.maximum == 0)
		return -EINVAL;
	if (!core_pages_down(info->ceiling, &resolved.attrs.ceiling))
		resolved.attrs.ceiling = 0;
	sources.maximum = resolved.attrs.maximum;
	sources.group = group_without_rules(info, group);
	hv_uuid_format(&info->uuid, sources.uuid);
	for (enum core_knob knob = 0; knob < CORE_KNOBS; knob++)
		collect(&sources, knob, &resolved.said[knob]);

	if (info->problem)
		problem(&resolved, "%s", info->problem);
	resolve_sizes(&sources, &resolved);
	resolve_group(&resolved);
	resolve_manage(config, &resolved);
	resolved.agent = (enum hv_way)counting(&resolved.said[CORE_AGENT])->value;
	resolved.attrs.max_rate = config->max_rate;
	resolved.attrs.trust = config->trust;
	resolved.attrs.guest_swap = counting(&resolved.said[CORE_GUEST_SWAP])->value;
	*ret_resolved = resolved;
	return 0;
}
