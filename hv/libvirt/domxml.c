/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A domain's description, read with libxml2; see domxml.h. */
#include <config.h>

#include "hv/libvirt/domxml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/tree.h>

#include "common/size.h"

/* The most of an operator's text that is quoted in a problem. */
#define QUOTE_MAX 64
/* The most text of problems that is kept. */
#define PROBLEM_MAX 2048
/* The most that is said of one bad size. */
#define SIZE_PROBLEM_MAX 256
/* Of what stands in <domain><metadata>. */
#define METADATA_DEPTH 3

static bool is(const xmlNode *node, const char *name, const char *ns)
{
	if (node->type != XML_ELEMENT_NODE || strcmp((const char *)node->name, name) != 0)
		return false;
	if (!ns)
		return !node->ns;
	return node->ns && node->ns->href && !strcmp((const char *)node->ns->href, ns);
}

/*
 * While a document is read. What others keep in the metadata is theirs, and a tenant's often: it is
 * passed over without being kept, so that whatever is there says nothing about the domain.
 */
struct reading {
	unsigned int depth, passing; /* passing: depth of what is passed over; 0: nothing is */
	bool bad;
};

static void stop(xmlParserCtxt *parser)
{
	struct reading *reading = parser->_private;

	reading->bad = true;
	xmlStopParser(parser);
}

/* Entities could only come from a document type, which libvirt never writes. */
static void on_document_type(
	void *ctx, const xmlChar *name, const xmlChar *public_id, const xmlChar *system_id)
{
	stop(ctx);
}

static bool is_foreign(const xmlParserCtxt *parser, const xmlChar *ns)
{
	const struct reading *reading = parser->_private;

	if (reading->depth != METADATA_DEPTH || !parser->node ||
		!is(parser->node, "metadata", NULL) || !is(parser->node->parent, "domain", NULL))
		return false;
	return !ns || (strcmp((const char *)ns, DOMXML_MEMORY_NS) != 0 &&
			      strcmp((const char *)ns, DOMXML_CEILING_NS) != 0);
}

static void on_start(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *ns,
	int nr_ns, const xmlChar **all_ns, int nr_attributes, int nr_defaulted,
	const xmlChar **attributes)
{
	xmlParserCtxt *parser = ctx;
	struct reading *reading = parser->_private;

	if (++reading->depth > DOMXML_DEPTH_MAX) {
		stop(parser);
		return;
	}
	if (!reading->passing && is_foreign(parser, ns))
		reading->passing = reading->depth;
	if (!reading->passing)
		xmlSAX2StartElementNs(ctx, name, prefix, ns, nr_ns, all_ns, nr_attributes,
			nr_defaulted, attributes);
}

static void on_end(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *ns)
{
	struct reading *reading = ((xmlParserCtxt *)ctx)->_private;

	if (!reading->passing)
		xmlSAX2EndElementNs(ctx, name, prefix, ns);
	else if (reading->passing == reading->depth)
		reading->passing = 0;
	reading->depth--;
}

static void on_text(void *ctx, const xmlChar *text, int length)
{
	struct reading *reading = ((xmlParserCtxt *)ctx)->_private;

	if (!reading->passing)
		xmlSAX2Characters(ctx, text, length);
}

/*
 * libxml2 would stop at 256 levels, which is where libvirt stops what is written into the metadata,
 * two levels further up; XML_PARSE_HUGE lifts that and our own bounds stand in: size, depth, no
 * document type, with which there are no entities that could grow.
 */
static int parse(const char *xml, xmlDoc **ret_doc, xmlNode **ret_root)
{
	size_t length = strnlen(xml, DOMXML_MAX + 1);
	struct reading reading = { 0 };
	xmlParserCtxt *parser;
	bool no_memory;
	xmlDoc *doc;

	if (length > DOMXML_MAX)
		return -E2BIG;
	parser = xmlNewParserCtxt();
	if (!parser)
		return -ENOMEM;
	parser->_private = &reading;
	parser->sax->internalSubset = on_document_type;
	parser->sax->startElementNs = on_start;
	parser->sax->endElementNs = on_end;
	parser->sax->characters = parser->sax->ignorableWhitespace = on_text;
	parser->sax->comment = NULL;
	parser->sax->processingInstruction = NULL;
	doc = xmlCtxtReadMemory(parser, xml, (int)length, NULL, NULL,
		XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_NOCDATA |
			XML_PARSE_HUGE);
	no_memory = parser->errNo == XML_ERR_NO_MEMORY;
	xmlFreeParserCtxt(parser);
	if (!doc)
		return no_memory ? -ENOMEM : -EBADMSG;
	if (reading.bad || doc->intSubset || doc->extSubset || !xmlDocGetRootElement(doc)) {
		xmlFreeDoc(doc);
		return -EBADMSG;
	}
	*ret_doc = doc;
	*ret_root = xmlDocGetRootElement(doc);
	return 0;
}

static xmlNode *child(const xmlNode *parent, const char *name, const char *ns)
{
	if (!parent)
		return NULL;
	for (xmlNode *node = parent->children; node; node = node->next)
		if (is(node, name, ns))
			return node;
	return NULL;
}

/* An attribute without namespace, and a node's text; NULL: none. To be freed with xmlFree(). */
static char *attribute(const xmlNode *node, const char *name)
{
	return (char *)xmlGetNoNsProp((xmlNode *)node, (const xmlChar *)name);
}

static char *text(const xmlNode *node)
{
	return node ? (char *)xmlNodeGetContent((xmlNode *)node) : NULL;
}

static bool space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* A number and nothing else but spaces around it. */
static bool number(const char *s, uint64_t *ret)
{
	uint64_t value = 0;

	while (space(*s))
		s++;
	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
			return false;
	while (space(*s))
		s++;
	if (*s)
		return false;
	*ret = value;
	return true;
}

/* libvirt's scaled integers: it writes KiB and reads all of these, in any case. */
static bool unit_bytes(const char *unit, uint64_t *ret)
{
	static const char prefixes[] = "kmgtpe";
	uint64_t base, bytes = 1;
	const char *prefix;
	size_t i;

	if (!strcasecmp(unit, "b") || !strcasecmp(unit, "bytes")) {
		*ret = 1;
		return true;
	}
	if (!unit[0])
		return false;
	prefix = strchr(prefixes, unit[0] | 0x20);
	if (!prefix)
		return false;
	if (!unit[1] || !strcasecmp(unit + 1, "ib"))
		base = 1024;
	else if (!strcasecmp(unit + 1, "b"))
		base = 1000;
	else
		return false;
	for (i = 0; i <= (size_t)(prefix - prefixes); i++)
		bytes *= base;
	*ret = bytes;
	return true;
}

static bool amount(const xmlNode *node, uint64_t *ret_bytes)
{
	char *value = text(node), *unit = node ? attribute(node, "unit") : NULL;
	uint64_t n, scale = 1024;
	bool good;

	good = value && number(value, &n) && (!unit || unit_bytes(unit, &scale)) &&
	       !__builtin_mul_overflow(n, scale, ret_bytes);
	xmlFree(value);
	xmlFree(unit);
	return good;
}

/* One more problem for the operator; when memory is out it is lost, and the knob stays unset. */
static void __attribute__((format(printf, 2, 3)))
complain(struct hv_info *info, const char *fmt, ...)
{
	char *what = NULL, *all = NULL;
	va_list args;
	int r;

	if (info->problem && strlen(info->problem) > PROBLEM_MAX)
		return;
	va_start(args, fmt);
	r = vasprintf(&what, fmt, args);
	va_end(args);
	if (r < 0)
		return;
	for (char *c = what; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	if (info->problem && asprintf(&all, "%s; %s", info->problem, what) >= 0) {
		free(info->problem);
		info->problem = all;
		free(what);
	} else if (!info->problem) {
		info->problem = what;
	} else {
		free(what);
	}
}

#define WHERE "metadata <memory xmlns='" DOMXML_MEMORY_NS "'>: "

static void refuse(struct hv_info *info, const char *name, const char *value, const char *why)
{
	complain(info, WHERE "%s='%.*s' is not used: %s", name, QUOTE_MAX, value, why);
}

enum size_words {
	LIMIT,	    /* "none", "max": no limit */
	PROTECTION, /* "none": nothing is protected */
};

static void take_size(struct hv_info *info, const char *name, const char *value,
	enum size_words words, bool *ret_has, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;
	int r;

	if (!strcmp(value, "none")) {
		*ret_bytes = words == LIMIT ? HV_UNLIMITED : 0;
	} else if (words == LIMIT && !strcmp(value, "max")) {
		*ret_bytes = HV_UNLIMITED;
	} else {
		r = size_parse_amount(value, &bytes);
		if (r < 0) {
			char why[SIZE_PROBLEM_MAX];

			complain(info, WHERE "%s is not used: %s", name,
				size_parse_error(value, r, why, sizeof(why)));
			return;
		}
		*ret_bytes = bytes;
	}
	*ret_has = true;
}

/* -ENOMEM: without its group the VM would be put into another. */
static int take_group(struct hv_info *info, const char *value)
{
	struct hv_knobs *knobs = &info->metadata;
	const char *part = value;
	size_t length = strlen(value);

	if (length > HV_GROUP_MAX) {
		refuse(info, "group", value, "too long");
		return 0;
	}
	if (value[0] != '/') {
		refuse(info, "group", value, "a path that begins with / is needed");
		return 0;
	}
	while (*part && length > 1) {
		size_t n = strcspn(++part, "/");

		if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && !strncmp(part, "..", 2))) {
			refuse(info, "group", value,
				"a path without empty, . and .. parts is needed");
			return 0;
		}
		part += n;
	}
	free(knobs->group);
	knobs->group = strdup(value);
	knobs->has_group = knobs->group;
	return knobs->group ? 0 : -ENOMEM;
}

static void take_manage(struct hv_info *info, const char *value)
{
	static const char *const words[] = { "no", "observe", "act" };

	for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(value, words[i])) {
			info->metadata.manage = (enum hv_manage)i;
			info->metadata.has_manage = true;
			return;
		}
	refuse(info, "manage", value, "it is no, observe or act");
}

static void take_guest_swap(struct hv_info *info, const char *value)
{
	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0) {
		refuse(info, "guest-swap", value, "it is yes or no");
		return;
	}
	info->metadata.guest_swap = !strcmp(value, "yes");
	info->metadata.has_guest_swap = true;
}

static int take_attribute(struct hv_info *info, const char *name, const char *value)
{
	struct hv_knobs *k = &info->metadata;

	if (!strcmp(name, "soft-limit"))
		take_size(info, name, value, LIMIT, &k->has_soft_limit, &k->soft_limit);
	else if (!strcmp(name, "max"))
		take_size(info, name, value, LIMIT, &k->has_max, &k->max);
	else if (!strcmp(name, "min"))
		take_size(info, name, value, PROTECTION, &k->has_min, &k->min);
	else if (!strcmp(name, "low"))
		take_size(info, name, value, PROTECTION, &k->has_low, &k->low);
	else if (!strcmp(name, "group"))
		return take_group(info, value);
	else if (!strcmp(name, "manage"))
		take_manage(info, value);
	else if (!strcmp(name, "guest-swap"))
		take_guest_swap(info, value);
	else
		refuse(info, name, value, "no such attribute");
	return 0;
}

/* -ENOMEM: what is left out would seem not to be said. */
static int take_attributes(struct hv_info *info, const xmlNode *memory)
{
	int r = 0;

	for (const xmlAttr *a = memory->properties; a && r == 0; a = a->next) {
		char *value;

		if (a->ns)
			continue;
		value = attribute(memory, (const char *)a->name);
		r = value ? take_attribute(info, (const char *)a->name, value) : -ENOMEM;
		xmlFree(value);
	}
	return r;
}

/* ballast's own element. Two of them contradict each other: libvirt keeps one a namespace. */
static int take_knobs(struct hv_info *info, const xmlNode *metadata)
{
	const xmlNode *memory = child(metadata, "memory", DOMXML_MEMORY_NS);
	struct hv_knobs *k = &info->metadata;
	int r;

	if (!memory)
		return 0;
	r = take_attributes(info, memory);
	if (r < 0)
		return r;
	/* Of two words that exclude each other the one that protects the guest holds. */
	if (k->has_min && k->has_max && k->min > k->max) {
		k->has_max = false;
		complain(info, WHERE "max is not used: it is less than min");
	}
	return 0;
}

/* Bad: no ceiling, as if none had been written. */
static bool ceiling(const xmlNode *node, uint64_t *ret_bytes)
{
	char *kib = attribute(node, "kib");
	uint64_t n;
	bool good = kib && number(kib, &n) && n > 0 && n < DOMXML_UNLIMITED_KIB;

	xmlFree(kib);
	if (good)
		*ret_bytes = n * 1024;
	return good;
}

static int take_metadata(struct hv_info *info, const xmlNode *metadata)
{
	const xmlNode *note = child(metadata, "ceiling", DOMXML_CEILING_NS);
	int r = take_knobs(info, metadata);

	if (r < 0)
		return r;
	if (note && !ceiling(note, &info->ceiling))
		complain(
			info, "metadata <ceiling xmlns='" DOMXML_CEILING_NS "'>: kib is no amount");
	return 0;
}

static void take_memtune(struct hv_info *info, const xmlNode *domain)
{
	const xmlNode *memtune = child(domain, "memtune", NULL);
	uint64_t bytes;

	if (amount(child(memtune, "hard_limit", NULL), &bytes) &&
		bytes / 1024 < DOMXML_UNLIMITED_KIB)
		info->hard_limit = bytes;
	if (!amount(child(memtune, "soft_limit", NULL), &bytes) ||
		bytes / 1024 >= DOMXML_UNLIMITED_KIB)
		return;
	info->memtune.has_soft_limit = true;
	info->memtune.soft_limit = bytes;
}

static void take_balloon(struct hv_info *info, const xmlNode *domain)
{
	const xmlNode *balloon = child(child(domain, "devices", NULL), "memballoon", NULL);
	const xmlNode *stats = child(balloon, "stats", NULL);
	char *model = balloon ? attribute(balloon, "model") : NULL;
	char *period = stats ? attribute(stats, "period") : NULL;

	info->balloon = model && strcmp(model, "none") != 0;
	if (period && !number(period, &info->stats_period_s))
		info->stats_period_s = 0;
	xmlFree(model);
	xmlFree(period);
}

static bool says(const xmlNode *node, const char *name, const char *value)
{
	char *said = node ? attribute(node, name) : NULL;
	bool same = said && !strcmp(said, value);

	xmlFree(said);
	return same;
}

/* VFIO keeps all of the guest's memory in place: PCI, mediated, and vdpa. USB and SCSI do not. */
static bool pins(const xmlNode *device)
{
	if (is(device, "hostdev", NULL))
		return says(device, "type", "pci") || says(device, "type", "mdev");
	if (is(device, "interface", NULL))
		return says(device, "type", "hostdev") || says(device, "type", "vdpa");
	/* A disk on vDPA. */
	return is(device, "disk", NULL) && says(device, "type", "vhostvdpa");
}

static unsigned int kinds_of_devices(const xmlNode *devices)
{
	unsigned int kinds = 0;

	for (const xmlNode *node = devices ? devices->children : NULL; node; node = node->next) {
		if (pins(node))
			kinds |= HV_KIND_PINNED;
		if (is(node, "memory", NULL) && says(node, "model", "virtio-mem"))
			kinds |= HV_KIND_VIRTIO_MEM;
	}
	return kinds;
}

static bool strict_numa(const xmlNode *numatune)
{
	for (const xmlNode *node = numatune ? numatune->children : NULL; node; node = node->next)
		if ((is(node, "memory", NULL) || is(node, "memnode", NULL)) &&
			(says(node, "mode", "strict") || says(node, "mode", "restrictive")))
			return true;
	return false;
}

/* Every type of launchSecurity that there is encrypts or protects: a new one will too. */
static void take_kinds(struct hv_info *info, const xmlNode *domain)
{
	const xmlNode *backing = child(domain, "memoryBacking", NULL);
	unsigned int kinds = kinds_of_devices(child(domain, "devices", NULL));

	if (child(backing, "hugepages", NULL))
		kinds |= HV_KIND_HUGE_PAGES;
	if (child(backing, "locked", NULL))
		kinds |= HV_KIND_LOCKED;
	if (child(domain, "launchSecurity", NULL))
		kinds |= HV_KIND_ENCRYPTED;
	if (strict_numa(child(domain, "numatune", NULL)))
		kinds |= HV_KIND_STRICT_NUMA;
	info->kinds = kinds;
}

static int copy(const xmlNode *node, char **ret)
{
	char *value = text(node);

	if (!value)
		return -EBADMSG;
	*ret = strdup(value);
	xmlFree(value);
	return *ret ? 0 : -ENOMEM;
}

static int take_domain(struct hv_info *info, const xmlNode *domain)
{
	const xmlNode *partition = child(child(domain, "resource", NULL), "partition", NULL);
	int r;

	if (!is(domain, "domain", NULL))
		return -EBADMSG;
	r = copy(child(domain, "name", NULL), &info->name);
	if (r < 0)
		return r;
	if (!info->name[0] || strlen(info->name) > HV_NAME_MAX)
		return -EBADMSG;
	if (!amount(child(domain, "memory", NULL), &info->maximum) || info->maximum == 0)
		return -EBADMSG;
	if (partition) {
		r = copy(partition, &info->partition);
		if (r == -ENOMEM)
			return r;
		if (info->partition && strlen(info->partition) > HV_GROUP_MAX) {
			complain(info, "<resource><partition> is not used: too long");
			free(info->partition);
			info->partition = NULL;
		}
	}
	take_balloon(info, domain);
	take_kinds(info, domain);
	take_memtune(info, domain);
	return take_metadata(info, child(domain, "metadata", NULL));
}

int domxml_parse(const char *xml, struct hv_info *ret_info)
{
	struct hv_info info = { 0 };
	xmlDoc *doc;
	xmlNode *root;
	int r;

	r = parse(xml, &doc, &root);
	if (r < 0)
		return r;
	r = take_domain(&info, root);
	xmlFreeDoc(doc);
	if (r < 0) {
		hv_info_clear(&info);
		return r;
	}
	*ret_info = info;
	return 0;
}

int domxml_parse_ceiling(const char *xml, uint64_t *ret_bytes)
{
	xmlDoc *doc;
	xmlNode *root;
	int r;

	r = parse(xml, &doc, &root);
	if (r < 0)
		return r;
	if (!is(root, "ceiling", NULL) && !is(root, "ceiling", DOMXML_CEILING_NS))
		r = -EBADMSG;
	else if (!ceiling(root, ret_bytes))
		r = -EBADMSG;
	xmlFreeDoc(doc);
	return r;
}

/* ---- changing it ---- */

/* Sets an attribute, or takes it away. -ENOMEM. */
static int change_attribute(
	xmlNode *node, const char *name, bool set, bool clear, const char *value)
{
	xmlAttr *old = xmlHasNsProp(node, (const xmlChar *)name, NULL);

	if (set)
		return xmlSetProp(node, (const xmlChar *)name, (const xmlChar *)value) ? 0
										       : -ENOMEM;
	if (clear && old)
		xmlRemoveProp(old);
	return 0;
}

static int change_size(xmlNode *node, const char *name, bool set, bool clear, uint64_t bytes)
{
	char text[SIZE_TEXT] = "none";

	if (bytes != HV_UNLIMITED)
		size_format_exact(bytes, text, sizeof(text));
	return change_attribute(node, name, set, clear, text);
}

static int change_element(xmlNode *node, const struct hv_knobs_change *change)
{
	static const char *const manage[] = { "no", "observe", "act" };
	const struct hv_knobs *k = &change->set;
	unsigned int clear = change->clear;
	int r;

	r = change_size(
		node, "soft-limit", k->has_soft_limit, clear & HV_KNOB_SOFT_LIMIT, k->soft_limit);
	if (r == 0)
		r = change_size(node, "min", k->has_min, clear & HV_KNOB_MIN, k->min);
	if (r == 0)
		r = change_size(node, "low", k->has_low, clear & HV_KNOB_LOW, k->low);
	if (r == 0)
		r = change_size(node, "max", k->has_max, clear & HV_KNOB_MAX, k->max);
	if (r == 0)
		r = change_attribute(node, "group", k->has_group, clear & HV_KNOB_GROUP, k->group);
	if (r == 0)
		r = change_attribute(node, "manage", k->has_manage, clear & HV_KNOB_MANAGE,
			manage[k->has_manage ? k->manage : 0]);
	if (r == 0)
		r = change_attribute(node, "guest-swap", k->has_guest_swap,
			clear & HV_KNOB_GUEST_SWAP, k->guest_swap ? "yes" : "no");
	return r;
}

/* min over max is refused where it is set: -EINVAL. */
static int check_element(const xmlNode *node)
{
	struct hv_info info = { 0 };
	int r = take_attributes(&info, node);

	if (r == 0 && info.metadata.has_min && info.metadata.has_max &&
		info.metadata.min > info.metadata.max)
		r = -EINVAL;
	hv_info_clear(&info);
	return r;
}

static int write_node(xmlDoc *doc, xmlNode *node, char **ret_text)
{
	xmlBuffer *buffer = xmlBufferCreate();
	int r = -ENOMEM;

	if (buffer && xmlNodeDump(buffer, doc, node, 0, 0) > 0) {
		*ret_text = strdup((const char *)xmlBufferContent(buffer));
		r = *ret_text ? 0 : -ENOMEM;
	}
	xmlBufferFree(buffer);
	return r;
}

int domxml_change(const char *element, const struct hv_knobs_change *change, char **ret_element)
{
	xmlDoc *doc = NULL;
	xmlNode *node = NULL;
	char *text = NULL;
	int r;

	r = element ? parse(element, &doc, &node) : -EBADMSG;
	if (r == 0 && !is(node, "memory", NULL) && !is(node, "memory", DOMXML_MEMORY_NS)) {
		xmlFreeDoc(doc);
		r = -EBADMSG;
	}
	/* Not without memory: what stands there would be lost. */
	if (r == -EBADMSG || r == -E2BIG)
		r = parse("<memory/>", &doc, &node);
	if (r < 0)
		return r == -EBADMSG ? -ENOMEM : r;
	r = change_element(node, change);
	if (r == 0)
		r = check_element(node);
	if (r == 0 && (node->properties || node->children))
		r = write_node(doc, node, &text);
	xmlFreeDoc(doc);
	if (r == 0)
		*ret_element = text;
	return r;
}
