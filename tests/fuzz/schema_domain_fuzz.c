/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domain documents and summaries: what is accepted is well-formed, a second reading agrees, and
 * the root's key leads back to the root.
 */
#include <stdlib.h>
#include <string.h>

#include <schema/schema.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_root(const struct schema_id *root)
{
	const struct schema_ops *ops = schema_hsds2();
	char key[SCHEMA_KEY_MAX + 1];
	struct schema_key k;
	require(ops->object_key(root, key, sizeof(key)) > 0);
	ops->key_classify(key, &k);
	require(k.cls == SCHEMA_KEY_OBJECT && schema_id_equal(&k.id, root));
}

static void check_same(const struct schema_domain *a, const struct schema_domain *b)
{
	require(a->info.is_folder == b->info.is_folder);
	require(a->info.is_folder || schema_id_equal(&a->root, &b->root));
	require(strcmp(a->info.owner, b->info.owner) == 0);
	require(a->info.created_ns == b->info.created_ns);
	require(a->info.modified_ns == b->info.modified_ns);
	require(a->info.nacls == b->info.nacls);
	for (uint32_t i = 0; i < a->info.nacls; i++) {
		require(strcmp(a->info.acls[i].user, b->info.acls[i].user) == 0);
		require(a->info.acls[i].perms == b->info.acls[i].perms);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct schema_ops *ops = schema_hsds2();
	struct arena *arena = arena_new(64 << 20);
	struct schema_domain one, two;
	struct schema_info info;
	struct err err = ERR_INIT;
	if (!arena)
		return 0;
	int rc = ops->domain_parse(arena, data, size, &one, &err);
	require(rc == err.code && (rc == 0) == (err.msg[0] == '\0'));
	require(ops->domain_parse(arena, data, size, &two, NULL) == rc);
	if (rc == 0) {
		check_same(&one, &two);
		if (!one.info.is_folder)
			check_root(&one.root);
	}
	struct err info_err = ERR_INIT;
	rc = schema_info_parse(data, size, &info, &info_err);
	require(rc == info_err.code);
	arena_free(arena);
	return 0;
}
