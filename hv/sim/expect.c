/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sentences about what a scenario is to do; see expect.h. */
#include <config.h>

#include "hv/sim/expect.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"

#define US_PER_S    UINT64_C(1000000)
#define WORD_MAX    64
#define TIME_MAX_US (24 * 3600 * US_PER_S)
#define NEVER	    UINT64_MAX

static int64_t to_signed(uint64_t bytes)
{
	return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

/* ---- reading sentences ---- */

int expect_parse_time(const char *text, uint64_t *ret_us, char *why, size_t size)
{
	static const struct {
		const char *name;
		uint64_t us;
	} units[] = { { "ms", 1000 }, { "s", US_PER_S }, { "min", 60 * US_PER_S },
		{ "h", 3600 * US_PER_S } };
	uint64_t number = 0;
	const char *p = text;

	for (; isdigit((unsigned char)*p) && number < TIME_MAX_US; p++)
		number = 10 * number + (uint64_t)(*p - '0');
	for (size_t i = 0; p != text && i < sizeof units / sizeof units[0]; i++) {
		if (strcmp(p, units[i].name))
			continue;
		if (number > TIME_MAX_US / units[i].us) {
			snprintf(why, size, "'%.40s' is more than a day", text);
			return -EINVAL;
		}
		*ret_us = number * units[i].us;
		return 0;
	}
	snprintf(why, size, "'%.40s' is no time; write for example 10s or 500ms", text);
	return -EINVAL;
}

/* The next word, cut off at white space; false: there is none, or it is too long. */
static bool next_word(const char **text, char *word)
{
	size_t length;

	*text += strspn(*text, " \t");
	length = strcspn(*text, " \t");
	if (!length || length >= WORD_MAX)
		return false;
	memcpy(word, *text, length);
	word[length] = '\0';
	*text += length;
	return true;
}

/* "no-balloon-driver" */
static bool state_number(const char *word, int64_t *ret_number)
{
	for (int i = 0; i < ENGINE_VM_STATE_NR; i++) {
		const char *name = engine_vm_state_name((enum engine_vm_state)i), *w = word;

		while (*w && *name && (*w == *name || (*w == '-' && *name == ' '))) {
			w++;
			name++;
		}
		if (!*w && !*name) {
			*ret_number = i;
			return true;
		}
	}
	return false;
}

struct parser {
	bool (*known)(void *ctx, const char *vm);
	void *ctx;
	char *why;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static int wrong(
	const struct parser *parser, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(parser->why, parser->size, format, args);
	va_end(args);
	return -EINVAL;
}

/* left: the figures of its subject need no name before them; NULL: on the left itself. */
static int parse_operand(const struct parser *parser, const char *word,
	const struct expect_operand *left, struct expect_operand *ret_operand)
{
	struct expect_operand operand = { 0 };
	const char *dot = strrchr(word, '.'), *subject;
	char name[WORD_MAX] = "", *end, error[160];
	uint64_t bytes;
	int r;

	if (dot) {
		memcpy(name, word, (size_t)(dot - word));
		subject = !strcmp(name, "pool") || !strcmp(name, "host") ? name : "vm";
		operand.figure = figure_find(subject, dot + 1);
		if (!operand.figure)
			return wrong(parser, "there is no figure '%s' of %s '%s'", dot + 1,
				*subject == 'v' ? "VM" : "the", name);
		if (*subject == 'v' && !parser->known(parser->ctx, name))
			return wrong(parser, "there is no VM '%s' above this line", name);
		operand.vm = *subject == 'v' ? strdup(name) : NULL;
		if (*subject == 'v' && !operand.vm)
			return -ENOMEM;
		*ret_operand = operand;
		return 0;
	}
	if (!left)
		return wrong(parser, "'%s' is no figure; write VM.FIGURE", word);
	operand.figure = figure_find(left->figure->subject, word);
	if (operand.figure) {
		operand.vm = left->vm ? strdup(left->vm) : NULL;
		if (left->vm && !operand.vm)
			return -ENOMEM;
	} else if (!strcmp(word, "none")) {
		operand.number = INT64_MAX;
	} else if (!strcmp(left->figure->name, "state") && state_number(word, &operand.number)) {
		; /* by its name */
	} else if (!left->figure->bytes) {
		operand.number = strtoll(word, &end, 10);
		if (end == word || *end)
			return wrong(parser, "'%s' is no number", word);
	} else {
		r = size_parse(word[0] == '-' ? word + 1 : word, &bytes);
		if (r < 0)
			return wrong(parser, "%s", size_parse_error(word, r, error, sizeof error));
		operand.number = word[0] == '-' ? -to_signed(bytes) : to_signed(bytes);
	}
	*ret_operand = operand;
	return 0;
}

static const char *const ops[] = { [EXPECT_LT] = "<",
	[EXPECT_LE] = "<=",
	[EXPECT_EQ] = "==",
	[EXPECT_NE] = "!=",
	[EXPECT_GE] = ">=",
	[EXPECT_GT] = ">" };

static int parse_condition(
	const struct parser *parser, const char **text, struct expect_condition *ret_condition)
{
	struct expect_condition condition = { 0 };
	char left[WORD_MAX], op[WORD_MAX], right[WORD_MAX];
	size_t i;
	int r;

	if (!next_word(text, left) || !next_word(text, op) || !next_word(text, right))
		return wrong(parser, "write LEFT OP RIGHT, as in: web.actual >= 200MiB");
	for (i = 0; i < sizeof ops / sizeof ops[0] && strcmp(ops[i], op); i++)
		;
	if (i == sizeof ops / sizeof ops[0])
		return wrong(parser, "'%s' is none of < <= == != >= >", op);
	condition.op = (enum expect_op)i;
	r = parse_operand(parser, left, NULL, &condition.left);
	if (r < 0)
		return r;
	assert(condition.left.figure); /* on the left there is nothing else */
	r = parse_operand(parser, right, &condition.left, &condition.right);
	if (r < 0) {
		free(condition.left.vm);
		return r;
	}
	*ret_condition = condition;
	return 0;
}

static int parse_when(
	const struct parser *parser, const char *text, uint64_t length, struct expect *expect)
{
	static const struct {
		const char *word;
		enum expect_when when;
		bool time;
	} whens[] = { { "end", EXPECT_AT, false }, { "at", EXPECT_AT, true },
		{ "always", EXPECT_ALWAYS, false }, { "from", EXPECT_ALWAYS, true },
		{ "until", EXPECT_ALWAYS, true }, { "by", EXPECT_BY, true },
		{ "never", EXPECT_NEVER, false } };
	char word[WORD_MAX] = "", time[WORD_MAX] = "", more[WORD_MAX];
	uint64_t at = 0;
	size_t i;
	int r;

	next_word(&text, word);
	for (i = 0; i < sizeof whens / sizeof whens[0] && strcmp(whens[i].word, word); i++)
		;
	if (i == sizeof whens / sizeof whens[0])
		return wrong(
			parser, "'%s' is none of end, at, always, from, until, by, never", word);
	if (whens[i].time) {
		next_word(&text, time);
		r = expect_parse_time(time, &at, parser->why, parser->size);
		if (r < 0)
			return r;
		if (at > length)
			return wrong(parser, "%s is after the end of the scenario", time);
	}
	if (next_word(&text, more))
		return wrong(parser, "'%s' is too much", more);
	expect->when = whens[i].when;
	expect->from = !strcmp(word, "at") || !strcmp(word, "from") ? at : 0;
	expect->until = !strcmp(word, "until") || !strcmp(word, "by") ? at : NEVER;
	if (!strcmp(word, "end"))
		expect->from = NEVER; /* until-done brings it earlier than the length */
	return 0;
}

int expect_parse(const char *when, const char *text, uint64_t length,
	bool (*known)(void *ctx, const char *vm), void *ctx, struct expect *ret_expect, char *why,
	size_t size)
{
	struct parser parser = { known, ctx, why, size };
	struct expect expect = { 0 };
	char word[WORD_MAX];
	const char *rest = text;
	int r;

	r = parse_when(&parser, when, length, &expect);
	if (r < 0)
		return r;
	r = parse_condition(&parser, &rest, &expect.condition);
	if (r < 0)
		goto out;
	if (next_word(&rest, word)) {
		if (strcmp(word, "before") || expect.when != EXPECT_NEVER) {
			r = wrong(&parser, "'%s' is too much", word);
			goto out;
		}
		expect.has_before = true;
		r = parse_condition(&parser, &rest, &expect.before);
		if (r < 0)
			goto out;
		if (next_word(&rest, word)) {
			r = wrong(&parser, "'%s' is too much", word);
			goto out;
		}
	}
	if (asprintf(&expect.text, "%s = %s", when, text) < 0) {
		expect.text = NULL;
		r = -ENOMEM;
		goto out;
	}
	*ret_expect = expect;
	return 0;
out:
	expect_clear(&expect);
	return r;
}

void expect_clear(struct expect *expect)
{
	free(expect->condition.left.vm);
	free(expect->condition.right.vm);
	free(expect->before.left.vm);
	free(expect->before.right.vm);
	free(expect->text);
	*expect = (struct expect){ 0 };
}

/* ---- looking ---- */

static bool compare(enum expect_op op, int64_t left, int64_t right)
{
	switch (op) {
	case EXPECT_LT:
		return left < right;
	case EXPECT_LE:
		return left <= right;
	case EXPECT_EQ:
		return left == right;
	case EXPECT_NE:
		return left != right;
	case EXPECT_GE:
		return left >= right;
	case EXPECT_GT:
		return left > right;
	}
	return false;
}

static bool value(
	const struct expect_operand *operand, const struct figure_world *world, int64_t *ret_value)
{
	if (operand->figure)
		return figure_read(operand->figure, operand->vm, world, ret_value);
	*ret_value = operand->number;
	return true;
}

/* Three ways: -1: not known. Writes what was read into text. */
static int holds(const struct expect_condition *condition, const struct figure_world *world,
	char *text, size_t size)
{
	char left_text[SIZE_TEXT], right_text[SIZE_TEXT];
	int64_t left, right;

	if (!value(&condition->left, world, &left) || !value(&condition->right, world, &right)) {
		snprintf(text, size, "not known");
		return -1;
	}
	if (condition->left.figure->bytes)
		snprintf(text, size, "%s %s %s",
			size_format_signed(left, left_text, sizeof left_text), ops[condition->op],
			size_format_signed(right, right_text, sizeof right_text));
	else
		snprintf(text, size, "%" PRId64 " %s %" PRId64, left, ops[condition->op], right);
	return compare(condition->op, left, right);
}

static void settle(struct expect *expect, bool held, uint64_t now, const char *why)
{
	expect->state = held ? EXPECT_HELD : EXPECT_FAILED;
	expect->settled_at = now;
	snprintf(expect->why, sizeof expect->why, "%s", why);
}

static void look_never(
	struct expect *expect, const struct figure_world *world, uint64_t now, bool last)
{
	char why[sizeof expect->why];
	int yes;

	if (expect->has_before && holds(&expect->before, world, why, sizeof why) == 1) {
		settle(expect, true, now, why);
		return;
	}
	yes = holds(&expect->condition, world, why, sizeof why);
	expect->known |= yes >= 0;
	if (yes == 1)
		settle(expect, false, now, why);
	else if (last && expect->has_before)
		settle(expect, false, now, "what it waits for never came");
	else if (last)
		settle(expect, expect->known, now, why);
}

void expect_look(struct expect *expect, const struct figure_world *world, uint64_t now, bool last)
{
	char why[sizeof expect->why];
	int yes;

	if (expect->state != EXPECT_OPEN ||
		(now < expect->from && !(last && expect->from == NEVER)))
		return;
	if (expect->when == EXPECT_NEVER) {
		look_never(expect, world, now, last);
		return;
	}
	yes = holds(&expect->condition, world, why, sizeof why);
	expect->known |= yes >= 0;
	switch (expect->when) {
	case EXPECT_AT:
		settle(expect, yes == 1, now, why);
		break;
	case EXPECT_ALWAYS:
		if (yes == 0)
			settle(expect, false, now, why);
		else if (last || now >= expect->until)
			settle(expect, expect->known, now, why);
		break;
	case EXPECT_BY:
		if (yes == 1)
			settle(expect, true, now, why);
		else if (last || now >= expect->until)
			settle(expect, false, now, why);
		break;
	case EXPECT_NEVER:
		break;
	}
}

uint64_t expect_next(const struct expect *expect, uint64_t now)
{
	if (expect->state != EXPECT_OPEN)
		return NEVER;
	if (expect->from > now)
		return expect->from;
	return expect->until > now ? expect->until : NEVER;
}
