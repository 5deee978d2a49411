/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys: a recognised key is exactly the key that is written for the object or chunk. So no two keys
 * name the same object, or the same chunk in one partition. Also ids in references.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bucket/schemas.h>
#include <schema/schema.h>

#include "schema/hsds/hsds1.h"
#include "schema/hsds/hsds2.h"
#include "schema/hsds/parse_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Writes "db/8-8/d/4-6-6/", the partition of the given key if it has one, and the coordinates. */
static void check_chunk(const char *key, const struct hsds2_key *k)
{
	char want[SCHEMA_KEY_MAX + 1];
	int n = hsds2_object_key(&k->id, want, sizeof(want));
	require(n > 0);
	size_t at = (size_t)n - strlen(".dataset.json");
	if (key[at] == 'p') {
		size_t partition = strcspn(key + at, "/") + 1;
		memcpy(want + at, key + at, partition);
		at += partition;
	}
	require(k->rank > 0 && k->rank <= DSPACE_MAX_RANK);
	for (uint32_t d = 0; d < k->rank; d++)
		at += (size_t)snprintf(want + at, sizeof(want) - at, "%s%" PRIu64, d ? "_" : "",
				       k->coords[d]);
	require(strcmp(want, key) == 0);
}

static void check_key(const char *key)
{
	struct hsds2_key k;
	struct schema_id id;
	char want[SCHEMA_KEY_MAX + 1];
	size_t path_len;
	struct schema_survey seen = {0};
	schema_survey_key(schema_all(), &seen, key);
	require(seen.storage <= (hsds2_is_storage(key) || hsds1_is_object(key)));
	require(!(seen.document && seen.documents));
	require(!(seen.document || seen.documents) || hsds2_is_domain_key(key, &path_len));
	hsds2_key_classify(key, &k);
	if (k.cls == HSDS2_KEY_OBJECT) {
		require(hsds2_object_key(&k.id, want, sizeof(want)) > 0);
		require(strcmp(want, key) == 0);
		require(hsds2_is_storage(key));
	} else if (k.cls == HSDS2_KEY_CHUNK) {
		check_chunk(key, &k);
	}
	if (hsds2_object_of_prefix(key, &id)) {
		require(hsds2_object_key(&id, want, sizeof(want)) > 0);
		require(strncmp(want, key, strlen(key)) == 0);
	}
	if (hsds2_is_domain_key(key, &path_len)) {
		char path[SCHEMA_KEY_MAX];
		require(path_len < sizeof(path));
		memcpy(path, key, path_len);
		path[path_len] = '\0';
		require(hsds2_domain_key(path, want, sizeof(want)) == (int)strlen(key));
		require(strcmp(want, key) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct schema_id id;
	if (schema_id_parse((const char *)data, size, &id)) {
		struct schema_id again;
		char text[SCHEMA_ID_MAX];
		schema_id_format(&id, text);
		require(schema_id_parse(text, strlen(text), &again));
		require(schema_id_equal(&id, &again));
	}
	if (size >= SCHEMA_KEY_MAX)
		return 0;
	char *key = malloc(size + 1);
	if (!key)
		return 0;
	if (size)
		memcpy(key, data, size);
	key[size] = '\0';
	check_key(key);
	free(key);
	return 0;
}
