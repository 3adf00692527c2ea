/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * reads_json: standard input is one JSON object with schema_version 1, and each argument
 * MEMBER=VALUE holds; else says what is wrong, and fails.
 */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "common/json.h"

static int wrong(const char *what, const char *text)
{
	printf("%s: %.200s\n", what, text);
	return 1;
}

int main(int argc, char **argv)
{
	static char text[1048576];
	size_t length = fread(text, 1, sizeof(text) - 1, stdin);
	struct json_object *object = NULL;
	const char *why = "";
	uint64_t version;

	if (json_read(text, length, &object, &why) < 0)
		return wrong(why, text);
	if (json_get_u64(object, "schema_version", &version) < 0 || version != 1)
		return wrong("no schema_version 1", text);
	for (int i = 1; i < argc; i++) {
		char *value = strchr(argv[i], '=');
		struct json_object *member = NULL;

		if (!value)
			return wrong("write MEMBER=VALUE", argv[i]);
		*value++ = '\0';
		if (!json_object_object_get_ex(object, argv[i], &member) ||
			strcmp(json_object_get_string(member), value) != 0)
			return wrong(argv[i], text);
	}
	json_object_put(object);
	return 0;
}
