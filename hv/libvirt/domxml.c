/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A domain's description, read with libxml2; see domxml.h. */
#include <config.h>

#include "hv/libvirt/domxml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <libxml/xmlerror.h>

#include "common/protocol.h"
#include "hv/knobs_text.h"

/* Of what stands in <domain><metadata>. */
#define METADATA_DEPTH 3
/* Of a text in which something is wrong. */
#define READINGS 2

/*
 * libxml2 goes on without what it had no memory for (a namespace, an attribute, the end of a long
 * text), returns a success and tells only the thread's handler of errors. That one is ours while
 * libxml2 is at work; what it was stands again afterwards.
 */
struct watch {
	bool no_memory, errors;
	xmlStructuredErrorFunc old;
	void *old_context;
};

#if LIBXML_VERSION >= 21200
static void on_error(void *context, const xmlError *error)
#else
static void on_error(void *context, xmlError *error)
#endif
{
	struct watch *watch = context;

	watch->errors = true;
	if (error->code == XML_ERR_NO_MEMORY)
		watch->no_memory = true;
}

static void watch_start(struct watch *watch)
{
	*watch = (struct watch){ .old = xmlStructuredError,
		.old_context = xmlStructuredErrorContext };
	xmlSetStructuredErrorFunc(watch, on_error);
}

/* r, unless something is lost for want of memory: -ENOMEM. */
static int watch_stop(const struct watch *watch, int r)
{
	xmlSetStructuredErrorFunc(watch->old_context, watch->old);
	return watch->no_memory ? -ENOMEM : r;
}

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
static int parse_once(const char *xml, size_t length, xmlDoc **ret_doc)
{
	struct reading reading = { 0 };
	xmlParserCtxt *parser;
	xmlDoc *doc;

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
	xmlFreeParserCtxt(parser);
	if (!doc)
		return -EBADMSG;
	if (reading.bad || doc->intSubset || doc->extSubset || !xmlDocGetRootElement(doc)) {
		xmlFreeDoc(doc);
		return -EBADMSG;
	}
	*ret_doc = doc;
	return 0;
}

/*
 * A name that there was no memory for is to libxml2 a name that is wrong. So where anything is, all
 * of it is read once more, and what the second reading says counts: it begins with allocations
 * whose failure is told.
 */
static int parse(const char *xml, xmlDoc **ret_doc, xmlNode **ret_root)
{
	size_t length = strnlen(xml, DOMXML_MAX + 1);
	struct watch watch = { .errors = true };
	xmlDoc *doc = NULL;
	int r = -E2BIG;

	for (int i = 0; i < READINGS && watch.errors && length <= DOMXML_MAX; i++) {
		xmlFreeDoc(doc);
		doc = NULL;
		watch_start(&watch);
		r = watch_stop(&watch, parse_once(xml, length, &doc));
		if (r == -ENOMEM)
			break;
	}
	if (r < 0) {
		xmlFreeDoc(doc);
		return r;
	}
	*ret_doc = doc;
	*ret_root = xmlDocGetRootElement(doc);
	return 0;
}

/* What take() finds from a description's root on: memory that it lacks without a word counts. */
static int take_from(const char *xml, int (*take)(const xmlNode *root, void *ctx), void *ctx)
{
	struct watch watch;
	xmlNode *root;
	xmlDoc *doc;
	int r;

	r = parse(xml, &doc, &root);
	if (r < 0)
		return r;
	watch_start(&watch);
	r = watch_stop(&watch, take(root, ctx));
	xmlFreeDoc(doc);
	return r;
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

/*
 * An attribute without namespace, and a node's text; NULL: none. To be freed with xmlFree(). When
 * memory is out NULL too, and *r is -ENOMEM: what stands there is not to be taken for nothing.
 */
static char *attribute(const xmlNode *node, const char *name, int *r)
{
	char *value;

	if (!node || !xmlHasNsProp(node, (const xmlChar *)name, NULL))
		return NULL;
	value = (char *)xmlGetNoNsProp((xmlNode *)node, (const xmlChar *)name);
	if (!value)
		*r = -ENOMEM;
	return value;
}

static char *text(const xmlNode *node, int *r)
{
	char *value = node ? (char *)xmlNodeGetContent((xmlNode *)node) : NULL;

	if (node && !value)
		*r = -ENOMEM;
	return value;
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

static bool amount(const xmlNode *node, uint64_t *ret_bytes, int *r)
{
	char *value = text(node, r), *unit = attribute(node, "unit", r);
	uint64_t n, scale = 1024;
	bool good;

	good = *r == 0 && value && number(value, &n) && (!unit || unit_bytes(unit, &scale)) &&
	       !__builtin_mul_overflow(n, scale, ret_bytes);
	xmlFree(value);
	xmlFree(unit);
	return good;
}

#define WHERE "metadata <memory xmlns='" DOMXML_MEMORY_NS "'>: "

/* -ENOMEM: what is left out would seem not to be said. */
static int take_attributes(struct hv_info *info, const xmlNode *memory)
{
	int r = 0;

	for (const xmlAttr *a = memory->properties; a && r == 0; a = a->next) {
		char *value;

		if (a->ns)
			continue;
		value = attribute(memory, (const char *)a->name, &r);
		if (value)
			r = knobs_take(info, WHERE, (const char *)a->name, value);
		xmlFree(value);
	}
	return r;
}

/* ballast's own element. Two of them contradict each other: libvirt keeps one a namespace. */
static int take_knobs(struct hv_info *info, const xmlNode *metadata)
{
	const xmlNode *memory = child(metadata, "memory", DOMXML_MEMORY_NS);
	int r;

	if (!memory)
		return 0;
	r = take_attributes(info, memory);
	if (r < 0)
		return r;
	knobs_settle(info, WHERE);
	return 0;
}

/* Bad: no ceiling, as if none had been written. */
static bool ceiling(const xmlNode *node, uint64_t *ret_bytes, int *r)
{
	char *kib = attribute(node, "kib", r);
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
	if (note && !ceiling(note, &info->ceiling, &r) && r == 0)
		knobs_complain(
			info, "metadata <ceiling xmlns='" DOMXML_CEILING_NS "'>: kib is no amount");
	return r;
}

static void take_memtune(struct hv_info *info, const xmlNode *domain, int *r)
{
	const xmlNode *memtune = child(domain, "memtune", NULL);
	uint64_t bytes;

	if (amount(child(memtune, "hard_limit", NULL), &bytes, r) &&
		bytes / 1024 < DOMXML_UNLIMITED_KIB)
		info->hard_limit = bytes;
	if (!amount(child(memtune, "soft_limit", NULL), &bytes, r) ||
		bytes / 1024 >= DOMXML_UNLIMITED_KIB)
		return;
	info->memtune.has_soft_limit = true;
	info->memtune.soft_limit = bytes;
}

static bool says(const xmlNode *node, const char *name, const char *value, int *r)
{
	char *said = attribute(node, name, r);
	bool same = said && !strcmp(said, value);

	xmlFree(said);
	return same;
}

static void take_balloon(struct hv_info *info, const xmlNode *domain, int *r)
{
	const xmlNode *balloon = child(child(domain, "devices", NULL), "memballoon", NULL);
	const xmlNode *stats = child(balloon, "stats", NULL);
	char *model = attribute(balloon, "model", r);
	char *period = attribute(stats, "period", r);

	info->reporting = says(balloon, "freePageReporting", "on", r);
	info->autodeflate = says(balloon, "autodeflate", "on", r);
	info->balloon = model && strcmp(model, "none") != 0;
	if (period && !number(period, &info->stats_period_s))
		info->stats_period_s = 0;
	xmlFree(model);
	xmlFree(period);
}

/* VFIO keeps all of the guest's memory in place: PCI, mediated, and vdpa. USB and SCSI do not. */
static bool pins(const xmlNode *device, int *r)
{
	if (is(device, "hostdev", NULL))
		return says(device, "type", "pci", r) || says(device, "type", "mdev", r);
	if (is(device, "interface", NULL))
		return says(device, "type", "hostdev", r) || says(device, "type", "vdpa", r);
	/* A disk on vDPA. */
	return is(device, "disk", NULL) && says(device, "type", "vhostvdpa", r);
}

static unsigned int kinds_of_devices(const xmlNode *devices, int *r)
{
	unsigned int kinds = 0;

	for (const xmlNode *node = devices ? devices->children : NULL; node; node = node->next) {
		if (pins(node, r))
			kinds |= HV_KIND_PINNED;
		if (is(node, "memory", NULL) && says(node, "model", "virtio-mem", r))
			kinds |= HV_KIND_VIRTIO_MEM;
	}
	return kinds;
}

static bool strict_numa(const xmlNode *numatune, int *r)
{
	for (const xmlNode *node = numatune ? numatune->children : NULL; node; node = node->next)
		if ((is(node, "memory", NULL) || is(node, "memnode", NULL)) &&
			(says(node, "mode", "strict", r) || says(node, "mode", "restrictive", r)))
			return true;
	return false;
}

/* Every type of launchSecurity that there is encrypts or protects: a new one will too. */
static void take_kinds(struct hv_info *info, const xmlNode *domain, int *r)
{
	const xmlNode *backing = child(domain, "memoryBacking", NULL);
	unsigned int kinds = kinds_of_devices(child(domain, "devices", NULL), r);

	if (child(backing, "hugepages", NULL))
		kinds |= HV_KIND_HUGE_PAGES;
	if (child(backing, "locked", NULL))
		kinds |= HV_KIND_LOCKED;
	if (child(domain, "launchSecurity", NULL))
		kinds |= HV_KIND_ENCRYPTED;
	if (strict_numa(child(domain, "numatune", NULL), r))
		kinds |= HV_KIND_STRICT_NUMA;
	info->kinds = kinds;
}

static int copy(const xmlNode *node, char **ret)
{
	int r = 0;
	char *value = text(node, &r);

	if (!value)
		return r < 0 ? r : -EBADMSG;
	*ret = strdup(value);
	xmlFree(value);
	return *ret ? 0 : -ENOMEM;
}

/* Whether a device is the port of that name. */
static bool is_port(const xmlNode *device, const char *name, int *r)
{
	const xmlNode *target = is(device, "channel", NULL) ? child(device, "target", NULL) : NULL;

	return target && says(target, "type", "virtio", r) && says(target, "name", name, r);
}

/* The port of its agent, where libvirt has bound a socket to it. */
static int take_agent(struct hv_info *info, const xmlNode *domain)
{
	const xmlNode *devices = child(domain, "devices", NULL), *source;
	char *path;
	int r = 0;

	for (const xmlNode *node = devices ? devices->children : NULL; node; node = node->next) {
		source = child(node, "source", NULL);
		if (!source || !is_port(node, PROTOCOL_PORT, &r) ||
			!says(source, "mode", "bind", &r))
			continue;
		path = attribute(source, "path", &r);
		info->agent = path ? strdup(path) : NULL;
		if (path && !info->agent)
			r = -ENOMEM;
		xmlFree(path);
		return r;
	}
	return r;
}

/* Into a struct hv_info. */
static int take_domain(const xmlNode *domain, void *ctx)
{
	struct hv_info *info = ctx;
	const xmlNode *partition = child(child(domain, "resource", NULL), "partition", NULL);
	int r;

	if (!is(domain, "domain", NULL))
		return -EBADMSG;
	r = copy(child(domain, "name", NULL), &info->name);
	if (r < 0)
		return r;
	if (!info->name[0] || strlen(info->name) > HV_NAME_MAX)
		return -EBADMSG;
	if (!amount(child(domain, "memory", NULL), &info->maximum, &r) || info->maximum == 0)
		return r < 0 ? r : -EBADMSG;
	if (partition) {
		r = copy(partition, &info->partition);
		if (r < 0)
			return r;
		if (info->partition && strlen(info->partition) > HV_GROUP_MAX) {
			knobs_complain(info, "<resource><partition> is not used: too long");
			free(info->partition);
			info->partition = NULL;
		}
	}
	r = take_agent(info, domain);
	if (r < 0)
		return r;
	take_balloon(info, domain, &r);
	take_kinds(info, domain, &r);
	take_memtune(info, domain, &r);
	return r < 0 ? r : take_metadata(info, child(domain, "metadata", NULL));
}

void domxml_init(void)
{
	xmlInitParser();
}

int domxml_parse(const char *xml, struct hv_info *ret_info)
{
	struct hv_info info = { 0 };
	int r = take_from(xml, take_domain, &info);

	if (r < 0) {
		hv_info_clear(&info);
		return r;
	}
	*ret_info = info;
	return 0;
}

/* Into a number of bytes. */
static int take_ceiling(const xmlNode *root, void *ctx)
{
	int r = 0;

	if (!is(root, "ceiling", NULL) && !is(root, "ceiling", DOMXML_CEILING_NS))
		return -EBADMSG;
	return ceiling(root, ctx, &r) ? 0 : r < 0 ? r : -EBADMSG;
}

int domxml_parse_ceiling(const char *xml, uint64_t *ret_bytes)
{
	uint64_t bytes;
	int r = take_from(xml, take_ceiling, &bytes);

	if (r == 0)
		*ret_bytes = bytes;
	return r;
}

/* ---- its devices ---- */

struct named_port {
	const char *name;
	struct domxml_port found;
};

/* Into a struct named_port. */
static int take_port(const xmlNode *domain, void *ctx)
{
	struct named_port *port = ctx;
	const xmlNode *devices;
	int r = 0;

	if (!is(domain, "domain", NULL))
		return -EBADMSG;
	devices = child(domain, "devices", NULL);
	for (const xmlNode *node = devices ? devices->children : NULL; node; node = node->next) {
		port->found.port |= is_port(node, port->name, &r);
		port->found.controller |=
			is(node, "controller", NULL) && says(node, "type", "virtio-serial", &r);
	}
	return r;
}

int domxml_port(const char *xml, const char *name, struct domxml_port *ret_port)
{
	struct named_port port = { .name = name };
	int r = take_from(xml, take_port, &port);

	if (r == 0)
		*ret_port = port.found;
	return r;
}

struct disks {
	char (*names)[DOMXML_DISK]; /* DOMXML_DISKS of them */
	size_t nr;
};

/* Into a struct disks. */
static int take_disks(const xmlNode *domain, void *ctx)
{
	struct disks *disks = ctx;
	const xmlNode *devices;
	int r = 0;

	if (!is(domain, "domain", NULL))
		return -EBADMSG;
	devices = child(domain, "devices", NULL);
	for (const xmlNode *node = devices ? devices->children : NULL; node && r == 0;
		node = node->next) {
		const xmlNode *target = is(node, "disk", NULL) ? child(node, "target", NULL) : NULL;
		char *name = attribute(target, "dev", &r);

		if (name && (disks->nr == DOMXML_DISKS || strlen(name) >= DOMXML_DISK))
			r = -E2BIG;
		else if (name)
			strcpy(disks->names[disks->nr++], name);
		xmlFree(name);
	}
	return r;
}

int domxml_disks(const char *xml, char (*ret_names)[DOMXML_DISK], size_t *ret_nr)
{
	struct disks disks = { .names = ret_names };
	int r = take_from(xml, take_disks, &disks);

	if (r == 0)
		*ret_nr = disks.nr;
	return r;
}

/* ---- changing it ---- */

/* Sets an attribute, or takes it away. -ENOMEM. */
static int change_attribute(void *ctx, const char *name, const char *value)
{
	xmlNode *node = ctx;
	xmlAttr *old = xmlHasNsProp(node, (const xmlChar *)name, NULL);

	if (value) {
		const xmlAttr *set =
			xmlSetProp(node, (const xmlChar *)name, (const xmlChar *)value);

		return set && set->name ? 0 : -ENOMEM;
	}
	if (old)
		xmlRemoveProp(old);
	return 0;
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

/* The element as it is; a new one where none can be read. */
static int read_element(const char *element, xmlDoc **ret_doc, xmlNode **ret_node)
{
	xmlNode *node = NULL;
	xmlDoc *doc = NULL;
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
		return -ENOMEM;
	*ret_doc = doc;
	*ret_node = node;
	return 0;
}

int domxml_change(const char *element, const struct hv_knobs_change *change, char **ret_element)
{
	struct watch watch;
	char *text = NULL;
	xmlNode *node;
	xmlDoc *doc;
	int r;

	r = read_element(element, &doc, &node);
	if (r < 0)
		return r;
	watch_start(&watch);
	r = knobs_write(change, change_attribute, node);
	if (r == 0)
		r = check_element(node);
	if (r == 0 && (node->properties || node->children))
		r = write_node(doc, node, &text);
	r = watch_stop(&watch, r);
	xmlFreeDoc(doc);
	if (r < 0) {
		free(text);
		return r;
	}
	*ret_element = text;
	return 0;
}
