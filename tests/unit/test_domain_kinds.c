/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kinds of VMs as their descriptions say them, from the files in domains/. */
#include <config.h>

#include "hv/libvirt/domxml.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

static struct hv_info info;

static void parse_file(const char *name)
{
	const char *srcdir = getenv("srcdir");
	char path[512], xml[8192];
	size_t n;
	FILE *file;

	snprintf(path, sizeof(path), "%s/tests/unit/domains/%s.xml", srcdir ? srcdir : ".", name);
	file = fopen(path, "r");
	ck_assert_msg(file != NULL, "%s", path);
	n = fread(xml, 1, sizeof(xml) - 1, file);
	fclose(file);
	xml[n] = '\0';
	ck_assert_int_eq(domxml_parse(xml, &info), 0);
	ck_assert_str_eq(info.name, name);
	ck_assert_ptr_null(info.problem);
}

static const struct {
	const char *name;
	unsigned int kinds;
	bool balloon;
} files[] = {
	/* BR-107: PCI, mediated and vdpa devices pin; USB and SCSI do not. */
	{ "pinned_pci", HV_KIND_PINNED, true },
	{ "pinned_mdev", HV_KIND_PINNED, true },
	{ "pinned_vdpa", HV_KIND_PINNED, true },
	{ "pinned_interface", HV_KIND_PINNED, true },
	{ "plain_usb", 0, true },
	/* BR-108: of either size. */
	{ "huge_pages_2m", HV_KIND_HUGE_PAGES, true },
	{ "huge_pages_1g", HV_KIND_HUGE_PAGES, true },
	{ "locked", HV_KIND_LOCKED, true },
	{ "encrypted_sev", HV_KIND_ENCRYPTED, true },
	{ "encrypted_sev_snp", HV_KIND_ENCRYPTED, true },
	{ "encrypted_tdx", HV_KIND_ENCRYPTED, true },
	{ "encrypted_s390_pv", HV_KIND_ENCRYPTED, true },
	/* BR-22: plugged as virtio-mem it is sized by others; a DIMM is memory like any. */
	{ "virtio_mem", HV_KIND_VIRTIO_MEM, true },
	{ "plain_dimm", 0, true },
	{ "strict_numa", HV_KIND_STRICT_NUMA, true },
	/* BR-17 */
	{ "no_device", 0, false },
	{ "pinned_locked_huge", HV_KIND_PINNED | HV_KIND_LOCKED | HV_KIND_HUGE_PAGES, true },
};

START_TEST(every_kind_is_read_from_its_description)
{
	parse_file(files[_i].name);
	ck_assert_uint_eq(info.kinds, files[_i].kinds);
	ck_assert(info.balloon == files[_i].balloon);
	hv_info_clear(&info);
}
END_TEST

START_TEST(elements_of_another_namespace_are_no_kind)
{
	ck_assert_int_eq(
		domxml_parse(
			"<domain><name>a</name><memory>1048576</memory>"
			"<metadata><x:o xmlns:x='urn:x'><memoryBacking><locked/></memoryBacking>"
			"<launchSecurity type='sev'/></x:o></metadata>"
			"<memoryBacking><x:locked xmlns:x='urn:x'/></memoryBacking>"
			"<devices><y:hostdev xmlns:y='urn:y' type='pci'/></devices></domain>",
			&info),
		0);
	ck_assert_uint_eq(info.kinds, 0);
	hv_info_clear(&info);
}
END_TEST

/* A domain whose description text has that many bytes; the caller's. */
static char *huge(size_t bytes)
{
	static const char head[] = "<domain><name>a</name><memory>1048576</memory><description>";
	static const char tail[] = "</description></domain>";
	char *xml = malloc(sizeof(head) + bytes + sizeof(tail));

	ck_assert_ptr_nonnull(xml);
	memcpy(xml, head, sizeof(head) - 1);
	memset(xml + sizeof(head) - 1, 'x', bytes);
	memcpy(xml + sizeof(head) - 1 + bytes, tail, sizeof(tail));
	return xml;
}

/* BR-116 */
START_TEST(a_description_of_4_megabytes_is_read_and_one_of_40_refused)
{
	char *xml = huge(3964928);

	ck_assert_int_eq(domxml_parse(xml, &info), 0);
	hv_info_clear(&info);
	free(xml);
	xml = huge(40u << 20);
	ck_assert_int_eq(domxml_parse(xml, &info), -E2BIG);
	free(xml);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("domain kinds");
	TCase *tc = tcase_create("domain kinds");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(
		tc, every_kind_is_read_from_its_description, 0, sizeof(files) / sizeof(files[0]));
	tcase_add_test(tc, elements_of_another_namespace_are_no_kind);
	tcase_add_test(tc, a_description_of_4_megabytes_is_read_and_one_of_40_refused);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
