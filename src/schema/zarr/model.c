/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the documents of a store that a loader adds, before the tree is made (model.h). Pure. */
#include "model_internal.h"

#include <errno.h>
#include <string.h>

/* Reads a zarr.json when it is added. */
static int look_at_v3(struct zarr_model *m, struct zarr_document *d, bool is_root,
		      enum zarr_node_kind *kind, struct err *err)
{
	json_t *doc;
	if (is_root)
		return zarr_consolidated3(m, d, kind, err);
	const int rc = zarr_document_load(d, &doc, err);
	return rc ? rc : zarr_v3_kind(doc, kind, err);
}

/* Reads a document when it is added. Those of v2 are read when the tree is made, except for the one
 * that marks the store. */
static int look_at(struct zarr_model *m, enum zarr_document_kind kind, struct zarr_document *d,
		   bool is_root, enum zarr_node_kind *v3_kind, struct err *err)
{
	struct json_text_area area;
	struct err why = ERR_INIT;
	json_t *doc;
	int rc = 0;
	json_text_area_begin(&area);
	if (kind == ZARR_V3)
		rc = look_at_v3(m, d, is_root, v3_kind, &why);
	else if (is_root && kind != ZARR_V2_ATTRS)
		rc = zarr_document_load(d, &doc, &why);
	json_text_area_end(&area);
	if ((rc == -EIO || rc == -EOPNOTSUPP) && !is_root)
		return zarr_document_refuse(d, &why) ? err_errno(err, -ENOMEM, "document") : 0;
	if (rc && err)
		err_copy(err, &why);
	return rc;
}

static int remove_viewed(void *model, const char *key)
{
	zarr_model_remove(model, key);
	return 0;
}

static int add_consolidated(struct zarr_model *m, const void *text, size_t n, struct err *err)
{
	struct err why = ERR_INIT;
	const int rc = zarr_consolidated2(m, text, n, &why);
	if (rc == -EIO) {
		free(m->view_damage);
		m->view_damage = strdup(why.msg);
		if (!m->view_damage)
			return err_errno(err, -ENOMEM, "document");
		zarr_model_consolidated(m, remove_viewed, m);
		tree_note(m->tree, TREE_DAMAGE, "%s: %s; the documents are read",
			  zarr_document_name(ZARR_CONSOLIDATED), why.msg);
		return 0;
	}
	if (rc)
		err_copy(err, &why);
	return rc;
}

int zarr_model_add(struct zarr_model *m, const char *key, const char *etag, const void *text,
		   size_t n, struct err *err)
{
	size_t path_len;
	const enum zarr_document_kind kind = zarr_document_of_key(key, &path_len);
	const bool is_root = path_len == 0;
	enum zarr_node_kind v3_kind = ZARR_NO_NODE;
	struct err why = ERR_INIT;
	if (kind == ZARR_NONE || !zarr_model_counts(m, kind))
		return 0;
	if (kind == ZARR_CONSOLIDATED)
		return is_root ? add_consolidated(m, text, n, err) : 0;
	struct zarr_node *node = zarr_node_make(m, key, path_len, &why);
	if (!node && why.code == -ENOMEM)
		return err_set(err, -ENOMEM, "%s", why.msg);
	if (!node) {
		if (why.code == -EIO || why.code == -EOPNOTSUPP)
			tree_note(m->tree, zarr_problem_of(&why), "%s: %s", key, why.msg);
		return 0;
	}
	struct zarr_document *d = zarr_document_new(etag, text, n);
	if (!d)
		return err_errno(err, -ENOMEM, "document");
	const int rc = look_at(m, kind, d, is_root, &v3_kind, err);
	if (rc) {
		zarr_document_free(d);
		return err_wrap(err, rc, "%s", zarr_document_name(kind));
	}
	zarr_document_put(node, kind, d, v3_kind);
	return 0;
}

static struct zarr_document **find_document(const struct zarr_model *m, const char *key)
{
	size_t n;
	const enum zarr_document_kind kind = zarr_document_of_key(key, &n);
	struct zarr_node *node = kind ? zarr_node_find(m, key, n) : NULL;
	return node && node->docs[kind] ? &node->docs[kind] : NULL;
}

void zarr_model_remove(struct zarr_model *m, const char *key)
{
	struct zarr_document **d = find_document(m, key);
	if (!d)
		return;
	zarr_document_free(*d);
	*d = NULL;
}

int zarr_model_refuse(struct zarr_model *m, const char *key, const struct err *why)
{
	struct zarr_document **d = find_document(m, key);
	return d && !(*d)->refusal ? zarr_document_refuse(*d, why) : 0;
}

bool zarr_model_has(const struct zarr_model *m, const char *key)
{
	return find_document(m, key);
}

bool zarr_model_is_consolidated(const struct zarr_model *m)
{
	return m->is_consolidated;
}

int zarr_model_consolidated(struct zarr_model *m, int (*fn)(void *ctx, const char *key), void *ctx)
{
	for (struct zarr_node *node = m->table; node; node = node->hh.next) {
		for (int kind = ZARR_V3; kind < ZARR_KINDS; kind++) {
			char key[ZARR_KEY_MAX + 32];
			if (!node->docs[kind] || !node->docs[kind]->in_view)
				continue;
			zarr_node_path(node, key);
			strcat(key, key[0] ? "/" : "");
			strcat(key, zarr_document_name(kind));
			const int rc = fn(ctx, key);
			if (rc)
				return rc;
		}
	}
	return 0;
}

enum zarr_node_kind zarr_model_kind(const struct zarr_model *m, const char *path)
{
	const struct zarr_node *node = zarr_node_find(m, path, strlen(path));
	switch (node ? zarr_node_document(m, node) : ZARR_NONE) {
	case ZARR_V3:
		return node->v3_kind;
	case ZARR_V2_ARRAY:
		return ZARR_ARRAY;
	case ZARR_V2_GROUP:
		return ZARR_GROUP;
	case ZARR_NONE:
	case ZARR_CONSOLIDATED:
	case ZARR_V2_ATTRS:
		break;
	}
	return ZARR_NO_NODE;
}

/* ---- the model ---- */

struct zarr_model *zarr_model_new(struct tree *t, enum zarr_document_kind root)
{
	struct zarr_model *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->tree = t;
	m->root_kind = root;
	if (zarr_nodes_init(m)) {
		free(m);
		return NULL;
	}
	return m;
}

void zarr_model_free(struct zarr_model *m)
{
	if (!m)
		return;
	zarr_nodes_release(m);
	free(m->objects);
	free(m->view_damage);
	free(m);
}
