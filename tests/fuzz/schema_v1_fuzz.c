/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and catalogs of schema v1. The key of an object that is recognised is exactly the key that
 * is written for it, except for the digits of the hash, which are not compared. A catalog gives
 * only ids of its kind, each of which stands at the beginning of a line; a catalog of these lines
 * alone gives the same ids.
 */
#include <stdlib.h>
#include <string.h>

#include <bucket/schemas.h>
#include <schema/schema.h>

#include "schema/hsds/hsds1.h"
#include "schema/hsds/hsds2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* ---- keys ---- */

static void check_key(const char *key)
{
	enum { HASHED = 6 }; /* the digits of the hash and a hyphen */
	struct schema_id id;
	struct hsds2_key other;
	char want[SCHEMA_KEY_MAX + 1];
	struct schema_survey seen = {0};
	const bool is_object = hsds1_is_object(key);
	schema_survey_key(schema_all(), &seen, key);
	require(seen.storage == (is_object || (hsds2_is_storage(key) && key[2] == '/')));
	require(!is_object || hsds1_is_storage(key));
	require(!is_object || !hsds1_is_catalog(key));
	hsds2_key_classify(key, &other);
	require(!is_object || other.cls == HSDS2_KEY_OTHER);
	if (is_object && key[HASHED] == 'c') {
		require(strspn(key + HASHED, "0123456789abcdef-_") == strlen(key + HASHED));
	} else if (is_object) {
		require(schema_id_parse(key + HASHED, strlen(key + HASHED), &id));
		require(hsds1_object_key(&id, want, sizeof(want)) > 0);
		require(strcmp(want + HASHED, key + HASHED) == 0);
	}
}

/* ---- catalogs ---- */

struct lines {
	char *text;
	size_t n;
	uint32_t count;
};

static int add_line(void *ctx, const struct schema_id *id)
{
	struct lines *l = ctx;
	char line[SCHEMA_ID_MAX];
	schema_id_format(id, line);
	require(id->form == SCHEMA_ID_V1);
	memcpy(l->text + l->n, line, SCHEMA_ID_LEN);
	l->text[l->n + SCHEMA_ID_LEN] = '\n';
	l->n += SCHEMA_ID_LEN + 1;
	l->count++;
	return 0;
}

static void check_catalog(const char *text, size_t n)
{
	for (enum object_kind kind = OBJECT_GROUP; kind <= OBJECT_DATATYPE; kind++) {
		struct lines one = {.text = malloc(n + 1)}, two = {.text = malloc(n + 1)};
		require(one.text && two.text);
		require(hsds1_catalog_parse(text, n, kind, add_line, &one) == 0);
		require(hsds1_catalog_parse(one.text, one.n, kind, add_line, &two) == 0);
		require(one.n == two.n && memcmp(one.text, two.text, one.n) == 0);
		free(one.text);
		free(two.text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size ? size : 1), *key = malloc(size + 1);
	require(text && key);
	if (size) {
		memcpy(text, data, size);
		memcpy(key, data, size);
	}
	key[size] = '\0';
	check_catalog(text, size);
	if (size < SCHEMA_KEY_MAX)
		check_key(key);
	free(text);
	free(key);
	return 0;
}
