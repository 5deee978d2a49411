/* SPDX-License-Identifier: Apache-2.0 */
/* Which documents of a Zarr store are read, and which groups are listed: see store_load.h. Pure. */
#include "store_load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Returns the key of a document of a node, on the heap: "g/a" and ".zarray" give "g/a/.zarray". */
static char *join(const char *path, const char *name)
{
	char *key = NULL;
	return asprintf(&key, "%s%s%s", path, path[0] ? "/" : "", name) < 0 ? NULL : key;
}

static int drop_unlisted(void *ctx, const char *key)
{
	struct zarr_loader *l = ctx;
	if (!zarr_listed_etag(l, key))
		zarr_model_remove(l->model, key);
	return 0;
}

static int read_later(struct zarr_loader *l, const char *key, struct err *err)
{
	return zarr_model_has(l->model, key) ? 0 : zarr_list_push(&l->reads, strdup(key), err);
}

/* ---- arrays whose chunks are beside them ---- */

static const char netcdf_array[] = ".nczarray";
static const char chunks_beside[] = "its chunks are beside it, as netCDF-C has stored them in 2021";

static bool has_chunks_beside(struct zarr_loader *l, const char *key)
{
	size_t len;
	if (zarr_document_of_key(key, &len) != ZARR_V2_ARRAY)
		return false;
	auto_free char *path = strndup(key, len);
	auto_free char *other = path ? join(path, netcdf_array) : NULL;
	if (!other || !zarr_listed_etag(l, other))
		return false;
	tree_note(l->base.load.tree, TREE_UNSUPPORTED, "%s: %s", key, chunks_beside);
	return true;
}

bool zarr_is_netcdf_group(const char *key)
{
	const char *slash = strrchr(key, '/');
	return strcmp(slash ? slash + 1 : key, ".nczgroup") == 0;
}

int zarr_choose_beside(struct zarr_loader *l, const char *child, struct err *err)
{
	return zarr_list_push(&l->reads, join(child, netcdf_array), err);
}

int zarr_take_beside(struct zarr_loader *l, const char *key, struct err *err)
{
	const char *slash = strrchr(key, '/');
	if (!slash || strcmp(slash + 1, netcdf_array) != 0)
		return 0;
	auto_free char *path = strndup(key, (size_t)(slash - key));
	return zarr_list_push(&l->beside,
			      path ? join(path, zarr_document_name(ZARR_V2_ARRAY)) : NULL, err);
}

static int leave_out_beside(struct zarr_loader *l, struct err *err)
{
	struct err why = ERR_INIT;
	int rc = 0;
	err_set(&why, -EOPNOTSUPP, "%s", chunks_beside);
	for (uint32_t i = 0; !rc && i < l->beside.n; i++)
		rc = zarr_model_refuse(l->model, l->beside.v[i], &why);
	zarr_list_clear(&l->beside);
	return rc ? err_no_memory(err) : 0;
}

/* ---- what is next ---- */

/* All keys are known. Removes documents of the consolidated metadata that do not exist, and
 * requests those that they lack. */
static int choose_listed(struct zarr_loader *l, struct err *err)
{
	size_t len;
	int rc = 0;
	zarr_sort_keys(l);
	zarr_model_consolidated(l->model, drop_unlisted, l);
	for (uint32_t i = 0; !rc && i < l->keys.n; i++) {
		const enum zarr_document_kind kind = zarr_document_of_key(l->keys.v[i], &len);
		if (kind != ZARR_NONE && kind != ZARR_CONSOLIDATED &&
		    strcmp(l->keys.v[i], l->root) != 0 && !has_chunks_beside(l, l->keys.v[i]))
			rc = read_later(l, l->keys.v[i], err);
	}
	return rc;
}

/* Requests all documents that a node may have. */
static int choose_node(struct zarr_loader *l, const char *path, struct err *err)
{
	static const enum zarr_document_kind v2[] = {ZARR_V2_GROUP, ZARR_V2_ARRAY, ZARR_V2_ATTRS};
	const bool is_v3 = strcmp(l->root, zarr_document_name(ZARR_V3)) == 0;
	int rc = 0;
	for (size_t i = 0; !rc && i < (is_v3 ? 1 : sizeof(v2) / sizeof(v2[0])); i++) {
		auto_free char *key = join(path, zarr_document_name(is_v3 ? ZARR_V3 : v2[i]));
		rc = key ? strcmp(key, l->root) ? read_later(l, key, err) : 0 : err_no_memory(err);
	}
	return rc;
}

/* FIRST has ended. Chooses what to read and to list next. */
int zarr_choose(struct zarr_loader *l, struct err *err)
{
	if (l->space->base.listed_whole)
		return choose_listed(l, err);
	if (zarr_model_is_consolidated(l->model))
		return 0;
	if (l->base.load.document_only)
		return err_set(err, -E2BIG, "%s: the store has no consolidated metadata", l->root);
	/* The next stages read the root's other documents, and list the root if it is a group. */
	int rc = choose_node(l, "", err);
	if (!rc && zarr_model_kind(l->model, "") != ZARR_ARRAY)
		rc = zarr_list_push(&l->walk, strdup(""), err);
	return rc;
}

static bool has_document(const struct zarr_loader *l, const char *path)
{
	static const enum zarr_document_kind kinds[] = {ZARR_V3, ZARR_V2_GROUP, ZARR_V2_ARRAY};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		auto_free char *key = join(path, zarr_document_name(kinds[i]));
		if (!key || zarr_model_has(l->model, key))
			return true;
	}
	return false;
}

/* READ has ended. The next WALK lists the groups among the children. A child without documents may
 * be a group, too. */
int zarr_choose_groups(struct zarr_loader *l, struct err *err)
{
	int rc = leave_out_beside(l, err);
	for (uint32_t i = 0; !rc && i < l->found.n; i++) {
		const enum zarr_node_kind kind = zarr_model_kind(l->model, l->found.v[i]);
		if (kind == ZARR_GROUP || (kind == ZARR_NO_NODE && !has_document(l, l->found.v[i])))
			rc = zarr_list_push(&l->walk, strdup(l->found.v[i]), err);
	}
	zarr_list_clear(&l->found);
	return rc;
}

/* WALK has ended. The next READ reads the documents of the children. */
int zarr_choose_children(struct zarr_loader *l, struct err *err)
{
	int rc = 0;
	zarr_list_clear(&l->walk);
	for (uint32_t i = 0; !rc && i < l->found.n; i++)
		rc = choose_node(l, l->found.v[i], err);
	return rc;
}
