/* SPDX-License-Identifier: Apache-2.0 */
/* Shared config files, and the JSON of credential services: every pair that a file has is found
 * again when it is written out by itself; a JSON string that comes out comes out of its own
 * encoding. */
#include <assert.h>
#include <string.h>

#include "aws/flat_json.h"
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
		/* A section of the file itself may hold no "]". */
		assert(!strchr(e->section, ']') && !strchr(e->section, '\n'));
		assert(*e->key && !strchr(e->value, '\n'));
		str_addf(&line, "[%s]\n%s=%s\n", e->section, e->key, e->value);
		assert(ini_parse(str_text(&line), line.b.len, &again, NULL) == 0);
		/* A nested key may begin like a section or a comment when it stands alone. */
		if (!strchr("[#;", *e->key))
			assert(strcmp(ini_get(&again, e->section, e->key), e->value) == 0);
	}
}

static void check_json(const char *text, size_t n)
{
	auto_str struct str value = {0}, json = {0}, again = {0};
	if (flat_json_get(text, n, "Token", &value))
		return;
	str_add(&json, "{\"Token\":\"");
	for (size_t i = 0; i < value.b.len; i++) {
		const unsigned char c = value.b.data[i];
		if (c < 0x20 || c == '"' || c == '\\')
			str_addf(&json, "\\u%04x", c);
		else
			str_addn(&json, (const char *)&value.b.data[i], 1);
	}
	str_add(&json, "\"}");
	assert(flat_json_get(str_text(&json), json.b.len, "Token", &again) == 0);
	assert(strcmp(str_text(&again), str_text(&value)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_ini((const char *)data, size);
	check_json((const char *)data, size);
	return 0;
}
