/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domain documents and summaries: accepted ones are valid, parsing them twice gives the same
 * result, and the key of the root group is recognised as that group.
 */
#include <stdlib.h>
#include <string.h>

#include <schema/schema.h>

#include "schema/hsds/hsds1.h"
#include "schema/hsds/hsds2.h"
#include "schema/hsds/hsds_load.h"
#include "schema/hsds/parse_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_root(const char *text)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct schema_id root;
	struct hsds2_key k2;
	require(schema_id_parse(text, strlen(text), &root));
	require(hsds_object_key(&root, key, sizeof(key)) > 0);
	hsds2_key_classify(key, &k2);
	if (root.form == SCHEMA_ID_V1)
		require(hsds1_is_object(key) && strcmp(key + strlen("01234-"), text) == 0);
	else
		require(k2.cls == HSDS2_KEY_OBJECT && schema_id_equal(&k2.id, &root));
}

static void check_same(const struct domain_info *a, const struct domain_info *b)
{
	require(!a->root == !b->root && (!a->root || strcmp(a->root, b->root) == 0));
	require(strcmp(a->owner, b->owner) == 0);
	require(a->created_ns == b->created_ns);
	require(a->modified_ns == b->modified_ns);
	require(a->nacls == b->nacls);
	for (uint32_t i = 0; i < a->nacls; i++) {
		require(strcmp(a->acls[i].user, b->acls[i].user) == 0);
		require(a->acls[i].perms == b->acls[i].perms);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new(64 << 20);
	struct domain_info one, two;
	struct schema_info info;
	struct err err = ERR_INIT;
	if (!arena)
		return 0;
	int rc = schema_domain_parse(arena, data, size, &one, &err);
	require(rc == err.code && (rc == 0) == (err.msg[0] == '\0'));
	require(schema_domain_parse(arena, data, size, &two, NULL) == rc);
	if (rc == 0) {
		check_same(&one, &two);
		if (one.root)
			check_root(one.root);
	}
	struct err info_err = ERR_INIT;
	rc = schema_info_parse(data, size, &info, &info_err);
	require(rc == info_err.code);
	arena_free(arena);
	return 0;
}
