/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The keys of scenario files and their values; see scenario_internal.h. */
#include <config.h>

#include "hv/sim/scenario_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

enum key_type {
	KEY_SIZE,
	KEY_LIMIT,
	KEY_TIME,
	KEY_LENGTH,
	KEY_BOOL,
	KEY_COUNT,
	KEY_TEXT,
	KEY_MANAGE,
	KEY_KINDS
};

struct key {
	const char *name;
	enum key_type type;
	size_t offset;
	size_t has; /* offset of a bool that says that it is set; 0: none */
};

#define AT(field) offsetof(struct sim_vm, field)

static const struct key vm_keys[] = {
	/* what virsh sets */
	{ "memory", KEY_SIZE, AT(guest.maximum), 0 },
	{ "soft-limit", KEY_LIMIT, AT(memtune.soft_limit), AT(memtune.has_soft_limit) },
	{ "partition", KEY_TEXT, AT(partition), 0 },
	{ "stats-period", KEY_COUNT, AT(period_s), 0 },
	/* ballast's metadata */
	{ "metadata-soft-limit", KEY_LIMIT, AT(metadata.soft_limit), AT(metadata.has_soft_limit) },
	{ "min", KEY_SIZE, AT(metadata.min), AT(metadata.has_min) },
	{ "low", KEY_SIZE, AT(metadata.low), AT(metadata.has_low) },
	{ "max", KEY_LIMIT, AT(metadata.max), AT(metadata.has_max) },
	{ "group", KEY_TEXT, AT(metadata.group), AT(metadata.has_group) },
	{ "guest-swap", KEY_BOOL, AT(metadata.guest_swap), AT(metadata.has_guest_swap) },
	{ "manage", KEY_MANAGE, AT(metadata.manage), AT(metadata.has_manage) },
	/* how its memory is used at the start; the rest was never touched */
	{ "hot", KEY_SIZE, AT(guest.hot), 0 },
	{ "idle", KEY_SIZE, AT(guest.idle), 0 },
	{ "hot-cache", KEY_SIZE, AT(guest.cache_hot), 0 },
	{ "cache", KEY_SIZE, AT(guest.cache_cold), 0 },
	{ "free", KEY_SIZE, AT(guest.free), 0 },
	{ "host-swapped", KEY_SIZE, AT(host_swapped), 0 },
	/* what an earlier ballast left */
	{ "actual", KEY_SIZE, AT(actual), 0 },
	{ "recorded-ceiling", KEY_SIZE, AT(ceiling), 0 },
	/* what kind of guest it is */
	{ "fixed", KEY_SIZE, AT(guest.fixed), 0 },
	{ "reserve", KEY_SIZE, AT(guest.reserve), 0 },
	{ "swap", KEY_SIZE, AT(guest.swap), 0 },
	{ "overhead", KEY_SIZE, AT(overhead), 0 },
	{ "off", KEY_BOOL, AT(off), 0 },
	{ "incoming", KEY_BOOL, AT(incoming), 0 },
	{ "kinds", KEY_KINDS, AT(kinds), 0 },
	{ "throttle", KEY_SIZE, AT(throttle), 0 },
	{ "balloon", KEY_BOOL, AT(guest.balloon), 0 },
	{ "driver", KEY_BOOL, AT(guest.driver), 0 },
	{ "driver-after", KEY_TIME, AT(guest.driver_us), 0 },
	{ "free-only", KEY_BOOL, AT(guest.free_only), 0 },
	{ "pager", KEY_BOOL, AT(pager), 0 },
	{ "agent", KEY_BOOL, AT(guest.agent), 0 },
	{ "activates-refaults", KEY_BOOL, AT(guest.activates), 0 },
	{ "free-page-reporting", KEY_BOOL, AT(guest.reporting), 0 },
	{ "deflate-on-oom", KEY_BOOL, AT(guest.deflate_on_oom), 0 },
	{ "stuck-at", KEY_SIZE, AT(guest.stop), 0 },
	{ "wobble", KEY_SIZE, AT(guest.wobble), 0 },
	{ "inflate", KEY_SIZE, AT(guest.inflate_free), 0 },
	{ "inflate-cache", KEY_SIZE, AT(guest.inflate_cache), 0 },
	{ "deflate", KEY_SIZE, AT(guest.deflate), 0 },
	{ "partial-every", KEY_COUNT, AT(partial_every), 0 },
};

#undef AT
#define AT(field) offsetof(struct sim_host, field)

static const struct key host_keys[] = {
	{ "memory", KEY_SIZE, AT(total), 0 },
	{ "others", KEY_SIZE, AT(others), 0 },
	{ "swap", KEY_SIZE, AT(swap), 0 },
	{ "seed", KEY_COUNT, AT(seed), 0 },
	{ "call-min", KEY_TIME, AT(call_min_us), 0 },
	{ "call-max", KEY_TIME, AT(call_max_us), 0 },
	{ "boot-min", KEY_TIME, AT(boot_min_us), 0 },
	{ "boot-max", KEY_TIME, AT(boot_max_us), 0 },
};

#undef AT
#define AT(field) offsetof(struct scenario, field)

static const struct key scenario_keys[] = {
	{ "title", KEY_TEXT, AT(title), 0 },
	{ "length", KEY_LENGTH, AT(length), 0 },
	{ "until-done", KEY_TEXT, AT(until_done), 0 },
};

#undef AT

void scenario_wrong(struct scenario_loader *loader, const char *format, ...)
{
	char what[300];
	va_list args;

	if (loader->wrong_line == loader->line)
		return;
	loader->wrong_line = loader->line;
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	config_errors_add(&loader->errors, loader->path, loader->line, "%s", what);
}

bool scenario_is_wrong(const struct scenario_loader *loader)
{
	return loader->wrong_line == loader->line || loader->errors.no_memory;
}

void *scenario_grow(struct scenario_loader *loader, void *array, size_t nr, size_t size)
{
	void *grown;

	/* Room is for the next power of two, so that is when there is none. */
	if (array && (nr & (nr - 1)) != 0)
		return array;
	grown = realloc(array, (nr ? 2 * nr : 1) * size);
	if (!grown)
		scenario_out_of_memory(loader);
	return grown;
}

void scenario_out_of_memory(struct scenario_loader *loader)
{
	loader->errors.no_memory = true;
}

bool scenario_next_word(const char **text, char *word)
{
	size_t length;

	*text += strspn(*text, " \t");
	length = strcspn(*text, " \t");
	if (!length || length >= SCENARIO_WORD_MAX)
		return false;
	memcpy(word, *text, length);
	word[length] = '\0';
	*text += length;
	return true;
}

/* ---- values ---- */

bool scenario_read_size(struct scenario_loader *loader, const char *text, uint64_t *ret_bytes)
{
	char error[160];
	uint64_t bytes;
	int r = size_parse_amount(text, &bytes);

	if (r < 0) {
		scenario_wrong(loader, "%s", size_parse_error(text, r, error, sizeof error));
		return false;
	}
	*ret_bytes = bytes - bytes % GUEST_PAGE;
	return true;
}

static bool read_count(struct scenario_loader *loader, const char *text, uint64_t *ret_count)
{
	unsigned long long count;
	char *end;

	errno = 0;
	count = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || count > UINT32_MAX) {
		scenario_wrong(loader, "'%.40s' is no number", text);
		return false;
	}
	*ret_count = count;
	return true;
}

static void read_manage(
	struct scenario_loader *loader, const char *text, enum hv_manage *ret_manage)
{
	if (hv_manage_parse(text, ret_manage) < 0)
		scenario_wrong(loader, "'%.40s' is none of no, observe, act", text);
}

static void read_kinds(struct scenario_loader *loader, const char *text, unsigned int *ret_kinds)
{
	static const char *const words[] = { "huge-pages", "locked", "pinned", "encrypted",
		"virtio-mem", "strict-numa" };
	char word[SCENARIO_WORD_MAX];
	size_t i;

	while (scenario_next_word(&text, word)) {
		for (i = 0; i < NR(words) && strcmp(words[i], word); i++)
			;
		if (i == NR(words)) {
			scenario_wrong(loader,
				"'%s' is none of huge-pages, locked, pinned, encrypted, "
				"virtio-mem, strict-numa",
				word);
			return;
		}
		*ret_kinds |= 1u << i; /* in the order of enum hv_kind */
	}
}

static void read_key(
	struct scenario_loader *loader, const struct key *key, void *base, const char *text)
{
	void *field = (char *)base + key->offset;
	char why[160], *copy;
	uint64_t time;

	switch (key->type) {
	case KEY_LIMIT:
		if (!strcmp(text, "none")) {
			*(uint64_t *)field = HV_UNLIMITED;
			break;
		}
		/* fall through */
	case KEY_SIZE:
		scenario_read_size(loader, text, field);
		break;
	case KEY_TIME:
	case KEY_LENGTH:
		if (expect_parse_time(text, &time, why, sizeof why) < 0)
			scenario_wrong(loader, "%s: %s", key->name, why);
		else if (key->type == KEY_LENGTH && time == 0)
			scenario_wrong(loader,
				"%s: nothing happens in no time; write for example 60s", key->name);
		else
			*(uint64_t *)field = time;
		break;
	case KEY_BOOL:
		if (strcmp(text, "yes") && strcmp(text, "no"))
			scenario_wrong(loader, "'%.40s' is neither yes nor no", text);
		*(bool *)field = *text == 'y';
		break;
	case KEY_COUNT:
		read_count(loader, text, field);
		break;
	case KEY_TEXT:
		copy = strdup(text);
		if (!copy)
			scenario_out_of_memory(loader);
		free(*(char **)field);
		*(char **)field = copy;
		break;
	case KEY_MANAGE:
		read_manage(loader, text, field);
		break;
	case KEY_KINDS:
		read_kinds(loader, text, field);
		break;
	}
	if (key->has)
		*(bool *)((char *)base + key->has) = true;
}

static bool read_keys(struct scenario_loader *loader, const struct key *keys, size_t nr, void *base,
	const char *name, const char *text)
{
	for (size_t i = 0; i < nr; i++) {
		if (strcmp(keys[i].name, name))
			continue;
		read_key(loader, &keys[i], base, text);
		return true;
	}
	return false;
}

bool scenario_vm_key(
	struct scenario_loader *loader, struct sim_vm *vm, const char *name, const char *text)
{
	return read_keys(loader, vm_keys, NR(vm_keys), vm, name, text);
}

bool scenario_host_key(struct scenario_loader *loader, const char *name, const char *text)
{
	return read_keys(loader, host_keys, NR(host_keys), &loader->scenario->host, name, text);
}

bool scenario_scenario_key(struct scenario_loader *loader, const char *name, const char *text)
{
	return read_keys(loader, scenario_keys, NR(scenario_keys), loader->scenario, name, text);
}
