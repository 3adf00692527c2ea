/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* protocol: see protocol.h. Fields stand in one table, which reads and writes them. */
#include <config.h>

#include "common/protocol.h"

#include <string.h>

#define JSMN_STATIC
#define JSMN_STRICT
#include <jsmn.h>

/* A report with all its fields and groups has some 140. */
#define TOKENS_MAX 256

enum kind { NUMBER, FLAG, TEXT, CAN };

struct field {
	const char *name;
	enum kind kind;
	size_t at;
};

#define AT(name) offsetof(struct protocol_message, name)

/* In the order of enum protocol_field. */
static const struct field fields[] = {
	{ "id", NUMBER, AT(id) },
	{ "bytes", NUMBER, AT(bytes) },
	{ "deadline_ms", NUMBER, AT(deadline_ms) },
	{ "anon", FLAG, AT(anon) },
	{ "oldest", NUMBER, AT(oldest) },
	{ "newest", NUMBER, AT(newest) },
	{ "can", CAN, AT(can) },
	{ "software", TEXT, AT(software) },
	{ "why", TEXT, AT(why) },
	{ "active_anon", NUMBER, AT(active_anon) },
	{ "inactive_anon", NUMBER, AT(inactive_anon) },
	{ "active_file", NUMBER, AT(active_file) },
	{ "inactive_file", NUMBER, AT(inactive_file) },
	{ "swap_free", NUMBER, AT(swap_free) },
	{ "total", NUMBER, AT(total) },
	{ "free", NUMBER, AT(free) },
	{ "available", NUMBER, AT(available) },
	{ "refaults", NUMBER, AT(refaults) },
	{ "swapins", NUMBER, AT(swapins) },
	{ "psi_some", NUMBER, AT(psi_some) },
	{ "psi_full", NUMBER, AT(psi_full) },
	{ "floor", NUMBER, AT(floor) },
	{ "workingset", NUMBER, AT(workingset) },
	{ "need", NUMBER, AT(need) },
	{ "estimated", FLAG, AT(estimated) },
	{ "active", FLAG, AT(active) },
	{ "cold_file", NUMBER, AT(cold_file) },
	{ "cold_anon", NUMBER, AT(cold_anon) },
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static const struct field group_fields[] = {
	{ "name", TEXT, offsetof(struct protocol_group, name) },
	{ "active", NUMBER, offsetof(struct protocol_group, active) },
	{ "inactive", NUMBER, offsetof(struct protocol_group, inactive) },
	{ "refaults", NUMBER, offsetof(struct protocol_group, refaults) },
	{ "psi", NUMBER, offsetof(struct protocol_group, psi) },
};
#define GROUP_FIELDS (sizeof(group_fields) / sizeof(group_fields[0]))

static const struct {
	const char *name;
	uint32_t required;
} types[PROTOCOL_TYPES] = {
	[PROTOCOL_HELLO] = { "hello", PROTOCOL_VERSIONS_OLDEST | PROTOCOL_VERSIONS_NEWEST },
	[PROTOCOL_REPORT] = { "report", 0 },
	[PROTOCOL_RECLAIM] = { "reclaim", PROTOCOL_ID | PROTOCOL_BYTES | PROTOCOL_DEADLINE },
	[PROTOCOL_STOP] = { "stop", PROTOCOL_ID },
	[PROTOCOL_DONE] = { "done", PROTOCOL_ID | PROTOCOL_BYTES },
	[PROTOCOL_ERROR] = { "error", PROTOCOL_WHY },
};

static const char *const abilities[] = { "lists", "reclaim", "pressure", "groups", "protect",
	"anon", "generations", "probes" };
#define ABILITIES (sizeof(abilities) / sizeof(abilities[0]))

/* ---- reading ---- */

struct reading {
	const char *line;
	const jsmntok_t *tokens;
	int nr, at;
	const char *why;
};

static bool token_is(const struct reading *r, const jsmntok_t *token, const char *text)
{
	size_t length = (size_t)(token->end - token->start);

	return strlen(text) == length && !memcmp(r->line + token->start, text, length);
}

/* Passes over a value with all that is in it. False: there is none. */
static bool pass_over(struct reading *r)
{
	int end;

	if (r->at >= r->nr)
		return false;
	end = r->tokens[r->at].end;
	do
		r->at++;
	while (r->at < r->nr && r->tokens[r->at].start < end);
	return true;
}

/* Digits only, no leading zero, at most PROTOCOL_NUMBER_MAX. */
static bool number(const struct reading *r, const jsmntok_t *token, uint64_t *ret)
{
	uint64_t value = 0, digit;
	int length = token->end - token->start;

	if (token->type != JSMN_PRIMITIVE || length < 1 ||
		(length > 1 && r->line[token->start] == '0'))
		return false;
	for (int i = token->start; i < token->end; i++) {
		if (r->line[i] < '0' || r->line[i] > '9')
			return false;
		digit = (uint64_t)(r->line[i] - '0');
		if (value > (PROTOCOL_NUMBER_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*ret = value;
	return true;
}

static char printable(char c)
{
	if (c >= ' ' && c <= '~' && c != '"' && c != '\\')
		return c;
	return '?';
}

static void copy_text(char *to, const char *from, size_t length)
{
	size_t i;

	for (i = 0; i < length && i < PROTOCOL_TEXT - 1; i++)
		to[i] = printable(from[i]);
	to[i] = '\0';
}

void protocol_text(char *to, const char *from)
{
	copy_text(to, from, strlen(from));
}

/* An array of words; those that are not known are passed over. */
static bool read_can(struct reading *r, uint64_t *ret_can)
{
	const jsmntok_t *list = &r->tokens[r->at];
	uint64_t can = 0;

	if (list->type != JSMN_ARRAY)
		return false;
	for (int i = r->at + 1; i < r->nr && r->tokens[i].start < list->end; i++) {
		if (r->tokens[i].type != JSMN_STRING)
			return false;
		for (size_t k = 0; k < ABILITIES; k++)
			if (token_is(r, &r->tokens[i], abilities[k]))
				can |= UINT64_C(1) << k;
	}
	*ret_can = can;
	return true;
}

static bool read_field(struct reading *r, const struct field *field, char *base)
{
	const jsmntok_t *token = &r->tokens[r->at];
	uint64_t value;

	switch (field->kind) {
	case TEXT:
		if (token->type != JSMN_STRING)
			return false;
		copy_text(base + field->at, r->line + token->start,
			(size_t)(token->end - token->start));
		return pass_over(r);
	case CAN:
		if (!read_can(r, &value))
			return false;
		break;
	case FLAG:
		if (token->type != JSMN_PRIMITIVE)
			return false;
		value = token_is(r, token, "true");
		if (!value && !token_is(r, token, "false"))
			return false;
		break;
	default:
		if (!number(r, token, &value))
			return false;
		break;
	}
	memcpy(base + field->at, &value, sizeof(value));
	return pass_over(r);
}

/* The fields of the object at r->at: told[i] is set for each of the table. */
static bool read_object(struct reading *r, const struct field *table, size_t nr, char *base,
	uint32_t *ret_told, bool (*other)(struct reading *r, const jsmntok_t *key, void *ctx),
	void *ctx)
{
	int members = r->tokens[r->at].size;
	const jsmntok_t *key;
	uint32_t told = 0;
	size_t i;

	r->at++;
	while (members-- > 0) {
		if (r->at + 1 >= r->nr)
			return false;
		key = &r->tokens[r->at];
		if (key->type != JSMN_STRING || key->size != 1)
			return false;
		r->at++;
		for (i = 0; i < nr && !token_is(r, key, table[i].name); i++)
			;
		if (i == nr) {
			if (other ? !other(r, key, ctx) : !pass_over(r))
				return false;
			continue;
		}
		if ((told & UINT32_C(1) << i) || !read_field(r, &table[i], base)) {
			r->why = table[i].name;
			return false;
		}
		told |= UINT32_C(1) << i;
	}
	*ret_told = told;
	return true;
}

static bool read_groups(struct reading *r, struct protocol_message *m)
{
	int nr = r->tokens[r->at].size;
	uint32_t told;

	if (r->tokens[r->at].type != JSMN_ARRAY || nr > PROTOCOL_GROUPS)
		return false;
	r->at++;
	for (int i = 0; i < nr; i++) {
		if (r->at >= r->nr || r->tokens[r->at].type != JSMN_OBJECT ||
			!read_object(r, group_fields, GROUP_FIELDS, (char *)&m->groups[i], &told,
				NULL, NULL) ||
			told != (1u << GROUP_FIELDS) - 1)
			return false;
	}
	m->nr_groups = (unsigned int)nr;
	return true;
}

struct others {
	struct protocol_message *message;
	bool typed, grouped;
};

static bool read_other(struct reading *r, const jsmntok_t *key, void *ctx)
{
	struct others *o = ctx;

	if (token_is(r, key, "groups")) {
		r->why = "groups";
		if (o->grouped || !read_groups(r, o->message))
			return false;
		o->grouped = true;
		r->why = NULL;
		return true;
	}
	if (!token_is(r, key, "type"))
		return pass_over(r);
	r->why = "type";
	if (o->typed || r->tokens[r->at].type != JSMN_STRING)
		return false;
	for (unsigned int i = 0; i < PROTOCOL_TYPES; i++) {
		if (!token_is(r, &r->tokens[r->at], types[i].name))
			continue;
		o->message->type = (enum protocol_type)i;
		o->typed = true;
	}
	if (!o->typed)
		return false;
	r->why = NULL;
	return pass_over(r);
}

static bool only_space(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
			return false;
	return true;
}

static bool sensible(const struct protocol_message *m, const char **ret_why)
{
	if ((m->known & types[m->type].required) != types[m->type].required)
		*ret_why = "a field is missing";
	else if ((m->known & PROTOCOL_ID) && !m->id)
		*ret_why = "id";
	else if (m->type == PROTOCOL_HELLO && (!m->oldest || m->oldest > m->newest))
		*ret_why = "oldest";
	else
		return true;
	return false;
}

int protocol_parse(
	const char *line, size_t length, struct protocol_message *ret_message, const char **ret_why)
{
	struct protocol_message message;
	struct others others = { .message = &message };
	jsmntok_t tokens[TOKENS_MAX];
	struct reading r = { .line = line, .tokens = tokens };
	jsmn_parser parser;

	memset(&message, 0, sizeof(message));
	*ret_why = "no JSON object";
	if (length > PROTOCOL_MESSAGE_MAX || memchr(line, '\0', length))
		return -1;
	jsmn_init(&parser);
	r.nr = jsmn_parse(&parser, line, length, tokens, TOKENS_MAX);
	if (r.nr < 1 || tokens[0].type != JSMN_OBJECT ||
		!only_space(line + tokens[0].end, length - (size_t)tokens[0].end))
		return -1;
	if (!read_object(
		    &r, fields, FIELDS, (char *)&message, &message.known, read_other, &others) ||
		r.at != r.nr) {
		if (r.why)
			*ret_why = r.why;
		return -1;
	}
	if (!others.typed) {
		*ret_why = "type";
		return -1;
	}
	if (!sensible(&message, ret_why))
		return -1;
	*ret_message = message;
	return 0;
}

/* ---- writing ---- */

struct writing {
	char *text;
	size_t length;
	bool full;
};

static void put_bytes(struct writing *w, const char *bytes, size_t length)
{
	if (w->full || length > PROTOCOL_MESSAGE_MAX - w->length) {
		w->full = true;
		return;
	}
	memcpy(w->text + w->length, bytes, length);
	w->length += length;
}

static void put(struct writing *w, const char *text)
{
	put_bytes(w, text, strlen(text));
}

static void put_number(struct writing *w, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	put_bytes(w, digits + at, sizeof(digits) - at);
}

static void put_text(struct writing *w, const char *text)
{
	char clean[PROTOCOL_TEXT];

	protocol_text(clean, text);
	put(w, "\"");
	put(w, clean);
	put(w, "\"");
}

static void put_can(struct writing *w, uint64_t can)
{
	bool first = true;

	put(w, "[");
	for (size_t k = 0; k < ABILITIES; k++) {
		if (!(can & UINT64_C(1) << k))
			continue;
		put(w, first ? "\"" : ",\"");
		put(w, abilities[k]);
		put(w, "\"");
		first = false;
	}
	put(w, "]");
}

static void put_field(struct writing *w, const struct field *field, const char *base)
{
	uint64_t value = 0;

	put(w, "\"");
	put(w, field->name);
	put(w, "\":");
	if (field->kind == TEXT) {
		put_text(w, base + field->at);
		return;
	}
	memcpy(&value, base + field->at, sizeof(value));
	if (field->kind == CAN)
		put_can(w, value);
	else if (field->kind == FLAG)
		put(w, value ? "true" : "false");
	else
		put_number(w, value < PROTOCOL_NUMBER_MAX ? value : PROTOCOL_NUMBER_MAX);
}

/* As many as fit, with what ends the message. */
static void put_groups(struct writing *w, const struct protocol_message *m)
{
	struct writing before = *w, one;
	unsigned int nr = m->nr_groups < PROTOCOL_GROUPS ? m->nr_groups : PROTOCOL_GROUPS, i;

	put(w, ",\"groups\":[");
	for (i = 0; i < nr; i++) {
		one = *w;
		put(w, i ? ",{" : "{");
		for (size_t k = 0; k < GROUP_FIELDS; k++) {
			if (k)
				put(w, ",");
			put_field(w, &group_fields[k], (const char *)&m->groups[i]);
		}
		put(w, "}");
		if (w->full || w->length + 2 > PROTOCOL_MESSAGE_MAX) {
			*w = one;
			break;
		}
	}
	put(w, "]");
	if (i == 0)
		*w = before;
}

size_t protocol_format(const struct protocol_message *m, char *text)
{
	struct writing w = { .text = text };

	put(&w, "{\"type\":\"");
	put(&w, types[m->type].name);
	put(&w, "\"");
	for (size_t i = 0; i < FIELDS; i++) {
		if (!(m->known & UINT32_C(1) << i))
			continue;
		put(&w, ",");
		put_field(&w, &fields[i], (const char *)m);
	}
	if (m->nr_groups)
		put_groups(&w, m);
	put(&w, "}");
	text[w.length] = '\n';
	text[w.length + 1] = '\0';
	return w.length + 1;
}

/* ---- lines ---- */

enum protocol_line protocol_take(struct protocol_lines *lines, const char **data, size_t *size)
{
	const char *end;
	size_t part;

	while (*size) {
		if (lines->told)
			lines->length = 0;
		lines->told = false;
		end = memchr(*data, '\n', *size);
		part = end ? (size_t)(end - *data) : *size;
		if (lines->overlong || part > PROTOCOL_MESSAGE_MAX - lines->length) {
			lines->overlong = true;
			lines->length = 0;
		} else {
			memcpy(lines->line + lines->length, *data, part);
			lines->length += part;
		}
		*data += part + (end ? 1 : 0);
		*size -= part + (end ? 1 : 0);
		if (!end)
			return PROTOCOL_LINE_NONE;
		if (lines->overlong) {
			lines->overlong = false;
			return PROTOCOL_LINE_LONG;
		}
		lines->told = lines->length > 0;
		if (lines->told)
			return PROTOCOL_LINE;
	}
	return PROTOCOL_LINE_NONE;
}
