/* SPDX-License-Identifier: Apache-2.0 */
/* Shared config files: each pair of a file can be read from a file with only this pair. JSON of
 * credential services: credentials that are written as JSON are read as the same credentials. */
#include <assert.h>
#include <string.h>

#include "aws/provider.h"
#include <aws/ini.h>

#include <stdint.h>

static void check_ini(const char *text, size_t n)
{
	auto_ini struct ini ini = {0};
	if (ini_parse(text, n, &ini, NULL))
		return;
	unsigned int looked_at = 0;
	for (struct ini_entry *e = ini.entries; e && looked_at < 100; e = e->next, looked_at++) {
		auto_ini struct ini again = {0};
		auto_str struct str line = {0};
		assert(ini_get(&ini, e->section, e->key));
		/* A line of a section ends with the first "]". */
		assert(!strchr(e->section, ']') && !strchr(e->section, '\n'));
		assert(*e->key && !strchr(e->value, '\n'));
		str_addf(&line, "[%s]\n%s=%s\n", e->section, e->key, e->value);
		assert(ini_parse(str_text(&line), line.b.len, &again, NULL) == 0);
		/* Alone, a nested key may look like a section or a comment. */
		if (!strchr("[#;", *e->key))
			assert(strcmp(ini_get(&again, e->section, e->key), e->value) == 0);
	}
}

static void check_json(const char *text, size_t n)
{
	auto_str struct str json = {0}, written = {0};
	auto_cred struct cred first = {0}, second = {0};
	str_addn(&json, text, n);
	if (cred_from_json(&json, "Token", "fuzz", &first, NULL))
		return;
	str_add(&written, "{\"AccessKeyId\":");
	str_add_json(&written, str_text(&first.access_key));
	str_add(&written, ",\"SecretAccessKey\":");
	str_add_json(&written, str_text(&first.secret_key));
	str_add(&written, ",\"Token\":");
	str_add_json(&written, str_text(&first.token));
	str_add(&written, "}");
	assert(cred_from_json(&written, "Token", "fuzz", &second, NULL) == 0);
	assert(strcmp(str_text(&first.access_key), str_text(&second.access_key)) == 0);
	assert(strcmp(str_text(&first.secret_key), str_text(&second.secret_key)) == 0);
	assert(strcmp(str_text(&first.token), str_text(&second.token)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_ini((const char *)data, size);
	check_json((const char *)data, size);
	return 0;
}
