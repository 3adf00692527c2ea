/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a domain's description says, and what is refused of it. */
#include <config.h>

#include "hv/libvirt/domxml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <libxml/parser.h>

#include "common/text.h"
#include "tests/unit/suite.h"

#define KIB 1024ULL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static struct hv_info info;

static void setup(void)
{
	memset(&info, 0, sizeof(info));
}

static void teardown(void)
{
	hv_info_clear(&info);
}

/* A domain with these elements inside. */
static int parse_with(const char *inside)
{
	char xml[8192];

	hv_info_clear(&info);
	memset(&info, 0, sizeof(info));
	snprintf(xml, sizeof(xml),
		"<domain type='kvm' id='3'><name>web</name><memory unit='KiB'>2097152</memory>"
		"<currentMemory unit='KiB'>1048576</currentMemory>%s</domain>",
		inside);
	return domxml_parse(xml, &info);
}

/* A domain with these attributes in ballast's element. */
static void parse_knobs(const char *attributes)
{
	char inside[4096];

	snprintf(inside, sizeof(inside),
		"<metadata><b:memory xmlns:b='urn:ballast:memory:1' %s/></metadata>", attributes);
	ck_assert_int_eq(parse_with(inside), 0);
}

START_TEST(a_description_is_read)
{
	ck_assert_int_eq(parse_with("<memtune><hard_limit unit='KiB'>3</hard_limit>"
				    "<soft_limit unit='KiB'>524288</soft_limit></memtune>"
				    "<resource><partition>/machine/prod</partition></resource>"
				    "<metadata><ballast-ceiling:ceiling "
				    "xmlns:ballast-ceiling='urn:ballast:ceiling:1' kib='262144'/>"
				    "</metadata>"
				    "<devices><disk/><memballoon model='virtio'><stats period='5'/>"
				    "</memballoon></devices>"),
		0);
	ck_assert_str_eq(info.name, "web");
	ck_assert_uint_eq(info.maximum, 2 * GIB);
	ck_assert_uint_eq(info.ceiling, 256 * MIB);
	ck_assert(info.balloon);
	ck_assert_uint_eq(info.stats_period_s, 5);
	ck_assert(info.memtune.has_soft_limit);
	ck_assert_uint_eq(info.memtune.soft_limit, 512 * MIB);
	ck_assert_uint_eq(info.hard_limit, 3 * 1024);
	ck_assert_str_eq(info.partition, "/machine/prod");
	ck_assert_ptr_null(info.problem);
}
END_TEST

START_TEST(what_is_not_said_is_not_set)
{
	ck_assert_int_eq(parse_with(""), 0);
	ck_assert_uint_eq(info.ceiling, 0);
	ck_assert(!info.balloon);
	ck_assert_uint_eq(info.stats_period_s, 0);
	ck_assert(!info.memtune.has_soft_limit);
	ck_assert(
		!info.metadata.has_soft_limit && !info.metadata.has_min && !info.metadata.has_low);
	ck_assert(!info.metadata.has_max && !info.metadata.has_group && !info.metadata.has_manage);
	ck_assert(!info.metadata.has_guest_swap);
	ck_assert_ptr_null(info.partition);
	ck_assert_ptr_null(info.problem);
}
END_TEST

/* A socket's address holds 107 bytes: what libvirt bound is more for long names, and is kept whole.
 */
START_TEST(BR_127_path_of_an_agents_socket_is_kept_whole_however_long_the_name)
{
	static const int lengths[] = { 40, 67, 108, 255 };
	char devices[700], path[400], name[300];

	memset(name, 'n', sizeof(name));
	memcpy(name, "a %n '", 6); /* spaces, and what a format would take for its own */
	name[5] = '/';
	name[lengths[_i]] = '\0';
	snprintf(path, sizeof(path), "/run/libvirt/qemu/channel/%s", name);
	snprintf(devices, sizeof(devices),
		"<devices><channel type='unix'><source mode='bind' path='%s'/>"
		"<target type='virtio' name='org.ballast.agent.0'/></channel></devices>",
		path);
	ck_assert_int_eq(parse_with(devices), 0);
	ck_assert_str_eq(info.agent, path);
}
END_TEST

/* BR-111: no guard for the guest, but a rest above the target is its distress then. */
START_TEST(a_balloon_that_deflates_on_oom_says_so)
{
	ck_assert_int_eq(parse_with("<devices><memballoon model='virtio' autodeflate='on'/>"
				    "</devices>"),
		0);
	ck_assert(info.autodeflate);
	ck_assert_int_eq(parse_with("<devices><memballoon model='virtio' autodeflate='off'/>"
				    "</devices>"),
		0);
	ck_assert(!info.autodeflate);
	ck_assert_int_eq(parse_with("<devices><memballoon model='virtio'/></devices>"), 0);
	ck_assert(!info.autodeflate);
}
END_TEST

START_TEST(a_balloon_that_reports_free_pages_says_so)
{
	ck_assert_int_eq(parse_with("<devices><memballoon model='virtio' freePageReporting='on'/>"
				    "</devices>"),
		0);
	ck_assert(info.reporting);
	ck_assert_int_eq(parse_with("<devices><memballoon model='virtio' freePageReporting='off'/>"
				    "</devices>"),
		0);
	ck_assert(!info.reporting);
	ck_assert_int_eq(parse_with("<devices><memballoon model='virtio'/></devices>"), 0);
	ck_assert(!info.reporting);
}
END_TEST

START_TEST(a_balloon_of_no_model_is_none)
{
	ck_assert_int_eq(parse_with("<devices><memballoon model='none'/></devices>"), 0);
	ck_assert(!info.balloon);
	ck_assert_int_eq(
		parse_with("<devices><memballoon model='virtio-non-transitional'/></devices>"), 0);
	ck_assert(info.balloon);
	ck_assert_uint_eq(info.stats_period_s, 0);
}
END_TEST

START_TEST(memory_is_read_in_every_unit)
{
	static const struct {
		const char *memory;
		uint64_t bytes; /* 0: refused */
	} cases[] = {
		{ "<memory>1024</memory>", MIB },
		{ "<memory unit='b'>4096</memory>", 4096 },
		{ "<memory unit='bytes'>4096</memory>", 4096 },
		{ "<memory unit='KB'>5</memory>", 5000 },
		{ "<memory unit='k'>5</memory>", 5 * KIB },
		{ "<memory unit='MiB'> 7 </memory>", 7 * MIB },
		{ "<memory unit='G'>3</memory>", 3 * GIB },
		{ "<memory unit='TB'>1</memory>", 1000000000000ULL },
		{ "<memory unit='TiB'>2</memory>", 2048 * GIB },
		{ "<memory unit='parsec'>2</memory>", 0 },
		{ "<memory unit=''>2</memory>", 0 },
		{ "<memory unit='EiB'>16</memory>", 0 },
		{ "<memory>-1</memory>", 0 },
		{ "<memory>0</memory>", 0 },
		{ "<memory>1.5</memory>", 0 },
		{ "<memory>99999999999999999999999</memory>", 0 },
		{ "<memory/>", 0 },
		{ "", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char xml[256];
		int r;

		snprintf(xml, sizeof(xml), "<domain><name>x</name>%s</domain>", cases[i].memory);
		r = domxml_parse(xml, &info);
		ck_assert_msg(r == (cases[i].bytes ? 0 : -EBADMSG), "%s: %d", xml, r);
		if (r == 0)
			ck_assert_msg(info.maximum == cases[i].bytes, "%s", xml);
		hv_info_clear(&info);
		memset(&info, 0, sizeof(info));
	}
}
END_TEST

START_TEST(unlimited_memtune_is_not_set)
{
	ck_assert_int_eq(parse_with("<memtune><soft_limit unit='KiB'>9007199254740991</soft_limit>"
				    "</memtune>"),
		0);
	ck_assert(!info.memtune.has_soft_limit);
	ck_assert_int_eq(parse_with("<memtune><soft_limit unit='KiB'>0</soft_limit></memtune>"), 0);
	ck_assert(info.memtune.has_soft_limit);
	ck_assert_uint_eq(info.memtune.soft_limit, 0);
}
END_TEST

START_TEST(all_knobs_are_read)
{
	parse_knobs("soft-limit='1GiB' min='256MiB' low='0' max='none' group='/prod/web' "
		    "manage='observe' guest-swap='yes' agent='qemu-ga'");
	ck_assert_ptr_null(info.problem);
	ck_assert(info.metadata.has_soft_limit && info.metadata.soft_limit == GIB);
	ck_assert(info.metadata.has_min && info.metadata.min == 256 * MIB);
	ck_assert(info.metadata.has_low && info.metadata.low == 0);
	ck_assert(info.metadata.has_max && info.metadata.max == HV_UNLIMITED);
	ck_assert(info.metadata.has_group);
	ck_assert_str_eq(info.metadata.group, "/prod/web");
	ck_assert(info.metadata.has_manage && info.metadata.manage == HV_MANAGE_OBSERVE);
	ck_assert(info.metadata.has_guest_swap && info.metadata.guest_swap);
	ck_assert(info.metadata.has_agent && info.metadata.agent == HV_WAY_QEMU_GA);
}
END_TEST

START_TEST(no_limit_and_no_protection_have_words)
{
	parse_knobs("soft-limit='max' min='none' low='none'");
	ck_assert_ptr_null(info.problem);
	ck_assert(info.metadata.has_soft_limit && info.metadata.soft_limit == HV_UNLIMITED);
	ck_assert(info.metadata.has_min && info.metadata.min == 0);
	ck_assert(info.metadata.has_low && info.metadata.low == 0);
	/* A guest of which nothing could ever be taken is no protection but a mistake. */
	parse_knobs("min='max'");
	ck_assert(!info.metadata.has_min);
	ck_assert_ptr_nonnull(info.problem);
}
END_TEST

START_TEST(only_the_own_namespace_counts)
{
	ck_assert_int_eq(parse_with("<metadata><memory soft-limit='1GiB'/>"
				    "<o:memory xmlns:o='http://example.org/' soft-limit='2GiB'/>"
				    "<memory xmlns='urn:ballast:memory:1' soft-limit='3GiB' "
				    "x:min='4GiB' xmlns:x='http://example.org/'/></metadata>"),
		0);
	ck_assert(info.metadata.has_soft_limit && info.metadata.soft_limit == 3 * GIB);
	ck_assert(!info.metadata.has_min);
	ck_assert_ptr_null(info.problem);
}
END_TEST

START_TEST(a_bad_attribute_is_refused_alone)
{
	static const struct {
		const char *attributes, *named;
	} cases[] = {
		{ "min='64MiB' soft-limit='2097152'", "soft-limit" },
		{ "min='64MiB' soft-limit='two'", "soft-limit" },
		{ "min='64MiB' soft-limit=''", "soft-limit" },
		{ "min='64MiB' max='99999999999GiB'", "max" },
		{ "min='64MiB' low='-1MiB'", "low" },
		{ "min='64MiB' manage='yes'", "manage" },
		{ "min='64MiB' guest-swap='1'", "guest-swap" },
		{ "min='64MiB' agent='yes'", "agent" },
		{ "min='64MiB' softlimit='1GiB'", "softlimit" },
		{ "min='64MiB' group='prod'", "group" },
		{ "min='64MiB' group=''", "group" },
		{ "min='64MiB' group='/prod/../web'", "group" },
		{ "min='64MiB' group='/.'", "group" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		parse_knobs(cases[i].attributes);
		ck_assert_msg(info.metadata.has_min && info.metadata.min == 64 * MIB, "%s",
			cases[i].attributes);
		ck_assert_msg(info.problem && strstr(info.problem, cases[i].named), "%s: %s",
			cases[i].attributes, info.problem);
		ck_assert(strstr(info.problem, "metadata"));
		ck_assert(!info.metadata.has_soft_limit && !info.metadata.has_max);
		ck_assert(!info.metadata.has_low && !info.metadata.has_group);
		ck_assert(!info.metadata.has_manage && !info.metadata.has_guest_swap);
	}
}
END_TEST

START_TEST(the_root_group_and_dotted_names_are_groups)
{
	parse_knobs("group='/'");
	ck_assert_str_eq(info.metadata.group, "/");
	parse_knobs("group='/a.b/..c'");
	ck_assert_str_eq(info.metadata.group, "/a.b/..c");
	parse_knobs("group='//prod/web/'"); /* in its one form */
	ck_assert_str_eq(info.metadata.group, "/prod/web");
}
END_TEST

START_TEST(all_problems_are_told)
{
	parse_knobs("min='x' max='y' manage='z'");
	ck_assert_ptr_nonnull(info.problem);
	ck_assert(strstr(info.problem, "min") && strstr(info.problem, "max"));
	ck_assert(strstr(info.problem, "manage"));
}
END_TEST

START_TEST(a_problem_is_one_short_line_whatever_was_written)
{
	char attributes[3000] = "manage='a&#10;b&#127;c";
	size_t at = strlen(attributes);

	memset(attributes + at, 'x', 2000);
	strcpy(attributes + at + 2000, "'");
	parse_knobs(attributes);
	ck_assert_ptr_nonnull(info.problem);
	ck_assert_uint_lt(strlen(info.problem), 400);
	for (const char *c = info.problem; *c; c++)
		ck_assert_int_ge(*c, ' ');
}
END_TEST

START_TEST(max_below_min_does_not_count)
{
	parse_knobs("min='2GiB' max='1GiB'");
	ck_assert(info.metadata.has_min && info.metadata.min == 2 * GIB);
	ck_assert(!info.metadata.has_max);
	ck_assert(strstr(info.problem, "max"));
}
END_TEST

/* A quotation ends at a whole character: it is shown to people, in JSON. */
START_TEST(what_is_quoted_of_a_bad_attribute_is_text)
{
	char attributes[300] = "manage='x";

	for (int i = 0; i < 60; i++)
		strcat(attributes, "\xc3\xa9");
	strcat(attributes, "'");
	parse_knobs(attributes);
	ck_assert_ptr_nonnull(info.problem);
	ck_assert(text_is_utf8(info.problem));
	ck_assert_ptr_nonnull(strstr(info.problem, "\xc3\xa9"));
}
END_TEST

START_TEST(group_and_partition_have_a_longest)
{
	char attributes[1200] = "group='/", inside[1400];
	size_t at = strlen(attributes);

	memset(attributes + at, 'g', HV_GROUP_MAX);
	strcpy(attributes + at + HV_GROUP_MAX, "'");
	parse_knobs(attributes);
	ck_assert(!info.metadata.has_group);
	ck_assert_ptr_nonnull(info.problem);

	memset(attributes, 'p', 1100);
	attributes[1100] = 0;
	snprintf(inside, sizeof(inside), "<resource><partition>/%s</partition></resource>",
		attributes);
	ck_assert_int_eq(parse_with(inside), 0);
	ck_assert_ptr_null(info.partition);
	ck_assert_ptr_nonnull(info.problem);
}
END_TEST

START_TEST(a_bad_ceiling_is_none_and_told)
{
	static const char *const bad[] = { "", "x", "0", "-1", "9007199254740991",
		"99999999999999999999" };
	char inside[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(inside, sizeof(inside),
			"<metadata><ceiling xmlns='urn:ballast:ceiling:1' kib='%s'/></metadata>",
			bad[i]);
		ck_assert_int_eq(parse_with(inside), 0);
		ck_assert_uint_eq(info.ceiling, 0);
		ck_assert_ptr_nonnull(info.problem);
	}
}
END_TEST

START_TEST(a_ceiling_is_read_with_and_without_namespace)
{
	uint64_t bytes = 7;

	ck_assert_int_eq(domxml_parse_ceiling("<ceiling kib='1024'/>", &bytes), 0);
	ck_assert_uint_eq(bytes, MIB);
	ck_assert_int_eq(domxml_parse_ceiling(
				 "<c:ceiling xmlns:c='urn:ballast:ceiling:1' kib='2'/>", &bytes),
		0);
	ck_assert_uint_eq(bytes, 2 * KIB);
	ck_assert_int_eq(
		domxml_parse_ceiling("<ceiling xmlns='urn:other' kib='3'/>", &bytes), -EBADMSG);
	ck_assert_int_eq(domxml_parse_ceiling("<ceiling/>", &bytes), -EBADMSG);
	ck_assert_int_eq(domxml_parse_ceiling("<other kib='3'/>", &bytes), -EBADMSG);
	ck_assert_int_eq(domxml_parse_ceiling("", &bytes), -EBADMSG);
	ck_assert_uint_eq(bytes, 2 * KIB);
}
END_TEST

START_TEST(what_is_no_domain_is_refused)
{
	static const char *const bad[] = {
		"",
		" ",
		"domain",
		"<domain>",
		"<domain><name>x</name><memory>1024</memory>",
		"<domain/>",
		"<domain><memory>1024</memory></domain>",
		"<domain><name></name><memory>1024</memory></domain>",
		"<network><name>x</name><memory>1024</memory></network>",
		"<d:domain xmlns:d='urn:x'><name>x</name><memory>1024</memory></d:domain>",
		"<domain><name>x</name><memory>1024</memory></domain><domain/>",
		"<domain><name>\xff\xfe</name><memory>1024</memory></domain>",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(domxml_parse(bad[i], &info) == -EBADMSG, "%s", bad[i]);
	ck_assert_ptr_null(info.name);
}
END_TEST

START_TEST(document_types_and_entities_are_refused)
{
	static const char *const bad[] = {
		"<!DOCTYPE domain><domain><name>x</name><memory>1024</memory></domain>",
		"<!DOCTYPE domain [<!ENTITY e "
		"'x'>]><domain><name>&e;</name><memory>1024</memory></domain>",
		"<!DOCTYPE domain SYSTEM 'file:///etc/passwd'><domain><name>x</name>"
		"<memory>1024</memory></domain>",
		"<!DOCTYPE domain [<!ENTITY e SYSTEM "
		"'file:///etc/passwd'>]><domain><name>&e;</name>"
		"<memory>1024</memory></domain>",
		"<domain><name>&e;</name><memory>1024</memory></domain>",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(domxml_parse(bad[i], &info) == -EBADMSG, "%s", bad[i]);
}
END_TEST

START_TEST(depth_and_size_are_bounded)
{
	size_t depth = 100000, length = DOMXML_MAX + 64u, at = 0;
	char *xml = malloc(length);

	ck_assert_ptr_nonnull(xml);
	for (size_t i = 0; i < depth; i++)
		at += (size_t)sprintf(xml + at, "<domain>");
	ck_assert_int_eq(domxml_parse(xml, &info), -EBADMSG);

	memset(xml, ' ', length - 1);
	xml[length - 1] = 0;
	memcpy(xml, "<domain>", 8);
	ck_assert_int_eq(domxml_parse(xml, &info), -E2BIG);
	free(xml);
}
END_TEST

/* As many levels of <a> with text around them in the metadata, in that namespace. */
static char *deep(size_t depth, const char *ns)
{
	size_t size = depth * 16 + 1000, at;
	char *xml = malloc(size);

	ck_assert_ptr_nonnull(xml);
	at = (size_t)sprintf(xml,
		"<domain><name>x</name><memory>1024</memory><metadata>"
		"<t:t xmlns:t='%s'>text",
		ns);
	for (size_t i = 0; i < depth; i++)
		at += (size_t)sprintf(xml + at, "<a>");
	for (size_t i = 0; i < depth; i++)
		at += (size_t)sprintf(xml + at, "</a>");
	sprintf(xml + at, "</t:t><memory xmlns='urn:ballast:memory:1' min='1MiB'/></metadata>"
			  "<devices><memballoon model='virtio'/></devices></domain>");
	return xml;
}

/* libvirt writes out what it would not read again, two levels deeper than it took it. */
START_TEST(metadata_of_others_that_are_deep_hide_nothing_of_the_domain)
{
	static const size_t depths[] = { 1, 252, 253, 254, 255, 256, 257, 258, 1000 };

	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		char *xml = deep(depths[i], "urn:tenant");

		ck_assert_int_eq(domxml_parse(xml, &info), 0);
		ck_assert_str_eq(info.name, "x");
		ck_assert(info.balloon);
		ck_assert_uint_eq(info.metadata.min, MIB);
		hv_info_clear(&info);
		free(xml);
	}
	for (size_t depth = 1022; depth <= 100000; depth *= 10) {
		char *xml = deep(depth, "urn:tenant");

		ck_assert_int_eq(domxml_parse(xml, &info), -EBADMSG);
		free(xml);
	}
}
END_TEST

/* The element of that name in another namespace, one inside another's, and what is inside ours. */
START_TEST(only_the_metadatas_own_children_are_ballasts)
{
	ck_assert_int_eq(domxml_parse("<domain><name>x</name><memory>1024</memory><metadata>"
				      "<memory xmlns='urn:other' min='1MiB'/>"
				      "<memory min='2MiB'/>"
				      "<o xmlns='urn:other'><b:memory "
				      "xmlns:b='urn:ballast:memory:1' min='3MiB'/></o>"
				      "</metadata></domain>",
				 &info),
		0);
	ck_assert(!info.metadata.has_min);
	hv_info_clear(&info);
	ck_assert_int_eq(domxml_parse("<domain><name>x</name><memory>1024</memory><metadata>"
				      "<o xmlns='urn:other'><o><o/></o>text</o>"
				      "<b:memory xmlns:b='urn:ballast:memory:1' low='5MiB'>"
				      "<o><b:memory min='3MiB'/></o></b:memory>"
				      "<o xmlns='urn:other'/></metadata></domain>",
				 &info),
		0);
	ck_assert(!info.metadata.has_min);
	ck_assert_uint_eq(info.metadata.low, 5 * MIB);
}
END_TEST

START_TEST(metadata_of_others_that_are_huge_hide_nothing_and_are_not_kept)
{
	static const char head[] = "<domain><name>x</name><memory>1024</memory><metadata>"
				   "<t xmlns='urn:tenant'>",
			  tail[] = "</t><memory xmlns='urn:ballast:memory:1' min='1MiB'/>"
				   "</metadata></domain>";
	size_t size = DOMXML_MAX - sizeof(head) - sizeof(tail);
	char *xml = malloc(DOMXML_MAX);

	ck_assert_ptr_nonnull(xml);
	memcpy(xml, head, sizeof(head) - 1);
	for (size_t at = 0; at < size; at++)
		xml[sizeof(head) - 1 + at] = "<a/>"[at % 4];
	memset(xml + sizeof(head) - 1 + size / 4 * 4, ' ', size % 4);
	memcpy(xml + sizeof(head) - 1 + size, tail, sizeof(tail));
	ck_assert_int_eq(domxml_parse(xml, &info), 0);
	ck_assert_uint_eq(info.metadata.min, MIB);
	hv_info_clear(&info);
	/* One text of more than the 10 MB that libxml2 would take by itself. */
	memset(xml + sizeof(head) - 1, 'x', size);
	ck_assert_int_eq(domxml_parse(xml, &info), 0);
	ck_assert_uint_eq(info.metadata.min, MIB);
	free(xml);
}
END_TEST

START_TEST(ports_controllers_and_disks_are_found)
{
	static char names[DOMXML_DISKS][DOMXML_DISK];
	char many[8192] = "<domain><devices>";
	struct domxml_port port = { 0 };
	size_t nr = 7;

	ck_assert_int_eq(
		domxml_port("<domain><devices><controller type='virtio-serial'/><channel>"
			    "<target type='virtio' name='a.0'/></channel></devices></domain>",
			"a.0", &port),
		0);
	ck_assert(port.port && port.controller);
	ck_assert_int_eq(domxml_port("<domain><devices><controller type='scsi'/><channel>"
				     "<target type='guestfwd' name='a.0'/></channel></devices>"
				     "</domain>",
				 "a.0", &port),
		0);
	ck_assert(!port.port && !port.controller);
	ck_assert_int_eq(domxml_port("<network/>", "a.0", &port), -EBADMSG);
	ck_assert_int_eq(domxml_disks("<domain><devices><disk><target dev='vda'/></disk><disk/>"
				      "<disk><target dev='sdb'/></disk></devices></domain>",
				 names, &nr),
		0);
	ck_assert_uint_eq(nr, 2);
	ck_assert_str_eq(names[1], "sdb");
	for (int i = 0; i <= DOMXML_DISKS; i++)
		strcat(many, "<disk><target dev='a'/></disk>");
	strcat(many, "</devices></domain>");
	ck_assert_int_eq(domxml_disks(many, names, &nr), -E2BIG);
	ck_assert_int_eq(domxml_disks("<domain><devices><disk><target dev='0123456789abcdef'/>"
				      "</disk></devices></domain>",
				 names, &nr),
		-E2BIG);
	ck_assert_uint_eq(nr, 2);
}
END_TEST

START_TEST(port_of_its_agent_is_found_by_name_where_a_socket_is_bound)
{
	ck_assert_int_eq(
		parse_with("<devices><channel type='unix'><source mode='bind' path='/a'/>"
			   "<target type='virtio' name='org.qemu.guest_agent.0'/></channel>"
			   "<channel type='unix'><source mode='bind' path='/b'/>"
			   "<target type='virtio' name='org.ballast.agent.0'/></channel>"
			   "</devices>"),
		0);
	ck_assert_str_eq(info.agent, "/b");
	ck_assert_int_eq(parse_with("<devices><channel type='unix'><source mode='connect' "
				    "path='/c'/><target type='virtio' name='org.ballast.agent.0'/>"
				    "</channel></devices>"),
		0);
	ck_assert_ptr_null(info.agent);
}
END_TEST

START_TEST(every_truncation_is_survived)
{
	static const char whole[] =
		"<domain><name>x</name><memory unit='KiB'>1024</memory><metadata>"
		"<memory xmlns='urn:ballast:memory:1' min='1MiB' group='/a'/></metadata>"
		"<devices><memballoon model='virtio'><stats "
		"period='1'/></memballoon></devices></domain>";
	char part[sizeof(whole)];

	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		memcpy(part, whole, n);
		part[n] = 0;
		ck_assert_int_eq(domxml_parse(part, &info), -EBADMSG);
	}
	ck_assert_int_eq(domxml_parse(whole, &info), 0);
}
END_TEST

/* libxml2's allocations from now on; the one that fails, and whether all after it do. 0: none. */
static unsigned int nr_allocations, failing;
static bool for_good;

static bool fails(void)
{
	nr_allocations++;
	return failing > 0 && (nr_allocations == failing || (for_good && nr_allocations > failing));
}

static void *xml_malloc(size_t size)
{
	return fails() ? NULL : malloc(size);
}

static void *xml_realloc(void *old, size_t size)
{
	return fails() ? NULL : realloc(old, size);
}

static char *xml_strdup(const char *s)
{
	return fails() ? NULL : strdup(s);
}

static void fail_from(int all)
{
	ck_assert_int_eq(xmlMemSetup(free, xml_malloc, xml_realloc, xml_strdup), 0);
	domxml_init();
	failing = 0;
	for_good = all;
}

/* The next of libxml2's allocations is the one that fails. */
static void fail_next(void)
{
	nr_allocations = 0;
	failing++;
}

static bool all_is_there(const char *partition)
{
	return info.hard_limit == 4 * GIB && info.memtune.soft_limit == 512 * MIB &&
	       info.maximum == 2 * GIB && info.partition && !strcmp(info.partition, partition) &&
	       info.balloon && info.stats_period_s == 5 && info.ceiling == 256 * MIB &&
	       info.metadata.has_min && info.metadata.has_group &&
	       info.kinds == (HV_KIND_PINNED | HV_KIND_VIRTIO_MEM | HV_KIND_STRICT_NUMA);
}

/* A device that pins, a limit or a ceiling left out would seem not to be there. */
START_TEST(a_description_is_read_whole_or_not_when_libxml2_has_no_memory)
{
	char partition[HV_GROUP_MAX], inside[4096];
	int r;

	memset(partition, 'p', sizeof(partition));
	partition[0] = '/';
	partition[sizeof(partition) - 1] = '\0';
	snprintf(inside, sizeof(inside),
		"<memtune><hard_limit unit='KiB'>4194304</hard_limit>"
		"<soft_limit unit='MiB'>512</soft_limit></memtune>"
		"<resource><partition>%s</partition></resource>"
		"<numatune><memory mode='strict' nodeset='0'/></numatune>"
		"<devices><hostdev mode='subsystem' type='pci'/><memory model='virtio-mem'/>"
		"<memballoon model='virtio'><stats period='5'/></memballoon></devices>"
		"<metadata><c:ceiling xmlns:c='" DOMXML_CEILING_NS "' kib='262144'/>"
		"<b:memory xmlns:b='" DOMXML_MEMORY_NS "' min='1GiB' group='/prod'/></metadata>",
		partition);
	fail_from(_i);
	do {
		fail_next();
		r = parse_with(inside);
		ck_assert_msg(r == -ENOMEM || (r == 0 && all_is_there(partition)),
			"allocation %u: %s", failing, r ? strerror(-r) : "not all of it");
	} while (nr_allocations >= failing);
	ck_assert_int_eq(r, 0);
	ck_assert_uint_gt(failing, 100);
	printf("# %u allocations of libxml2 failed, each %s\n", failing - 1,
		_i ? "with all after it" : "alone");
	failing = 0;
}
END_TEST

START_TEST(an_element_is_changed_whole_or_not_when_libxml2_has_no_memory)
{
	const struct hv_knobs_change change = { .set = { .has_max = true, .max = 3 * GIB },
		.clear = HV_KNOB_LOW };
	char *text = NULL;
	int r;

	fail_from(_i);
	do {
		fail_next();
		r = domxml_change("<b:memory xmlns:b='" DOMXML_MEMORY_NS
				  "' later='x' min='1GiB' low='2GiB' group='/prod'/>",
			&change, &text);
		ck_assert_msg(r == -ENOMEM || r == 0, "allocation %u: %d", failing, r);
		if (r < 0)
			continue;
		ck_assert_msg(strstr(text, "later=\"x\" min=\"1GiB\" group=\"/prod\" max=\"3GiB\""),
			"allocation %u: %s", failing, text);
		free(text);
	} while (nr_allocations >= failing);
	ck_assert_int_eq(r, 0);
	ck_assert_uint_gt(failing, 20);
	printf("# %u allocations of libxml2 failed, each %s\n", failing - 1,
		_i ? "with all after it" : "alone");
	failing = 0;
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("domxml");
	TCase *tc = tcase_create("domxml");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_description_is_read);
	tcase_add_test(tc, what_is_not_said_is_not_set);
	tcase_add_test(tc, a_balloon_of_no_model_is_none);
	tcase_add_test(tc, a_balloon_that_deflates_on_oom_says_so);
	tcase_add_test(tc, a_balloon_that_reports_free_pages_says_so);
	tcase_add_loop_test(
		tc, BR_127_path_of_an_agents_socket_is_kept_whole_however_long_the_name, 0, 4);
	tcase_add_test(tc, memory_is_read_in_every_unit);
	tcase_add_test(tc, unlimited_memtune_is_not_set);
	tcase_add_test(tc, all_knobs_are_read);
	tcase_add_test(tc, no_limit_and_no_protection_have_words);
	tcase_add_test(tc, only_the_own_namespace_counts);
	tcase_add_test(tc, a_bad_attribute_is_refused_alone);
	tcase_add_test(tc, the_root_group_and_dotted_names_are_groups);
	tcase_add_test(tc, all_problems_are_told);
	tcase_add_test(tc, a_problem_is_one_short_line_whatever_was_written);
	tcase_add_test(tc, max_below_min_does_not_count);
	tcase_add_test(tc, group_and_partition_have_a_longest);
	tcase_add_test(tc, what_is_quoted_of_a_bad_attribute_is_text);
	tcase_add_test(tc, a_bad_ceiling_is_none_and_told);
	tcase_add_test(tc, a_ceiling_is_read_with_and_without_namespace);
	tcase_add_test(tc, what_is_no_domain_is_refused);
	tcase_add_test(tc, document_types_and_entities_are_refused);
	tcase_add_test(tc, depth_and_size_are_bounded);
	tcase_add_test(tc, metadata_of_others_that_are_deep_hide_nothing_of_the_domain);
	tcase_add_test(tc, only_the_metadatas_own_children_are_ballasts);
	tcase_add_test(tc, metadata_of_others_that_are_huge_hide_nothing_and_are_not_kept);
	tcase_add_test(tc, port_of_its_agent_is_found_by_name_where_a_socket_is_bound);
	tcase_add_test(tc, ports_controllers_and_disks_are_found);
	tcase_add_test(tc, every_truncation_is_survived);
	tcase_add_loop_test(
		tc, a_description_is_read_whole_or_not_when_libxml2_has_no_memory, 0, 2);
	tcase_add_loop_test(
		tc, an_element_is_changed_whole_or_not_when_libxml2_has_no_memory, 0, 2);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
