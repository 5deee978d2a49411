/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the tree of a store from its documents: finds the nodes, makes the objects of groups and
 * arrays, and then the dimensions and the markup. A node that cannot be shown is left out with
 * everything below it, and a note says so. Groups come before their members. Pure.
 */
#include "model_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SCRATCH_LIMIT = 1 << 30 };

/* ---- one node ---- */

/* A node while its documents are read. */
struct reading {
	struct zarr_build *b;
	struct zarr_node *node;
	const struct zarr_document *doc; /* NULL: an implicit group */
	const char *path, *key;		 /* in the arena of the tree */
	const char *attributes_key;	 /* in the scratch arena */
	json_t *json, *attributes;
	struct object o; /* released if it does not get into the tree */
};

static const char *key_of(struct arena *a, const char *path, enum zarr_document_kind kind)
{
	char key[ZARR_KEY_MAX + 32];
	const int n = snprintf(key, sizeof(key), "%s%s%s", path, path[0] && kind ? "/" : "",
			       kind ? zarr_document_name(kind) : "");
	return arena_strndup(a, key, (size_t)n);
}

static int read_names(struct reading *r, enum zarr_document_kind kind, struct err *err)
{
	const bool is_v3 = kind == ZARR_V3 || r->b->m->root_kind == ZARR_V3;
	char path[ZARR_KEY_MAX + 1];
	zarr_node_path(r->node, path);
	r->path = arena_strndup(r->b->arena, path, strlen(path));
	r->key = key_of(r->b->arena, path, kind);
	r->attributes_key = is_v3 ? r->key : key_of(r->b->scratch, path, ZARR_V2_ATTRS);
	return r->path && r->key && r->attributes_key ? 0 : err_errno(err, -ENOMEM, "node");
}

/* Reads .zattrs. If it is damaged, only the attributes are left out. */
static int read_attributes2(struct reading *r, struct err *err)
{
	const struct zarr_document *d = r->node->docs[ZARR_V2_ATTRS];
	struct err why = ERR_INIT;
	json_t *json;
	const int rc = d ? zarr_document_load(d, &json, &why) : 0;
	if (rc == -EIO)
		tree_note(r->b->tree, TREE_DAMAGE, "%s: %s", r->attributes_key, why.msg);
	else if (rc)
		return err_set(err, rc, "%s", why.msg);
	if (d && !rc)
		r->attributes = json;
	return 0;
}

static int read_documents(struct reading *r, enum zarr_document_kind kind, struct err *err)
{
	int rc = read_names(r, kind, err);
	r->doc = kind ? r->node->docs[kind] : NULL;
	if (!rc && r->doc)
		rc = zarr_document_load(r->doc, &r->json, err);
	if (rc)
		return rc;
	if (kind != ZARR_V3 && r->b->m->root_kind != ZARR_V3)
		return read_attributes2(r, err);
	r->attributes = json_object_get(r->json, "attributes");
	if (json_is_object(r->attributes))
		return 0;
	if (r->attributes && !json_is_null(r->attributes))
		tree_note(r->b->tree, TREE_DAMAGE, "%s: attributes: not an object", r->key);
	r->attributes = NULL;
	return 0;
}

/* Adds the object to the tree if the caller accepts it. */
static int add_object(struct reading *r, uint32_t *number, struct err *err)
{
	const struct zarr_finish *f = r->b->f;
	const char *etag = NULL;
	if (r->doc) {
		etag = zarr_share(r->b, r->doc->etag, strlen(r->doc->etag));
		if (!etag)
			return err_errno(err, -ENOMEM, "node");
	}
	r->o.id = r->path[0] ? r->path : "/";
	r->o.modified_ns = f->modified_ns;
	int rc = f->accept ? f->accept(f->ctx, &r->o, err) : 0;
	if (rc)
		return rc;
	rc = zarr_object_add(r->b, r->o.id, r->doc ? r->key : NULL, etag, number, err);
	if (rc)
		return rc;
	*tree_edit(r->b->tree, *number) = r->o;
	r->o = (struct object){0};
	return 0;
}

/* Finds out whether netCDF-C wrote the store. Its versions 4.8.0 to 4.9.2 store little-endian
 * numbers under types that say ">". Development versions before 4.8.0 do not. */
static void find_writer(struct zarr_build *b, const json_t *attributes)
{
	const char *text = json_text_word(attributes, "_NCProperties");
	const char *at = text ? strstr(text, "netcdf=") : NULL;
	unsigned int major, minor, patch;
	int end = 0;
	if (!at || !strstr(text, "nczarr="))
		return;
	if (sscanf(at, "netcdf=%3u.%3u.%3u%n", &major, &minor, &patch, &end) < 3)
		return;
	const unsigned int version = 1000000 * major + 1000 * minor + patch;
	const bool is_early = version == 4008000 && strncmp(at + end, "-development", 12) == 0;
	b->by_netcdf = true;
	b->by_netcdf3 = strstr(text, "nczarr=3");
	b->is_little = version >= 4008000 && version <= 4009002 && !is_early;
}

static int make_group(struct reading *r, enum zarr_document_kind kind, struct err *err)
{
	int rc = 0;
	r->o.kind = OBJECT_GROUP;
	if (kind == ZARR_V3)
		rc = zarr_group_v3(r->b, r->json, err);
	else if (kind == ZARR_V2_GROUP)
		rc = zarr_format_v2(r->b, r->json, err);
	if (rc)
		return rc;
	if (r->node == r->b->m->root)
		find_writer(r->b, r->attributes);
	rc = zarr_attributes(r->b, r->attributes, NULL, r->attributes_key, &r->o, err);
	return rc ? rc : add_object(r, &r->node->number, err);
}

static int add_variable(struct reading *r, const struct zarr_array *a, struct err *err)
{
	struct zarr_build *b = r->b;
	struct zarr_variable *v = arena_alloc(b->scratch, sizeof(*v));
	if (!v)
		return err_errno(err, -ENOMEM, "variable");
	v->node = r->node;
	v->group = r->node->parent ? r->node->parent : r->node;
	v->name = r->node->parent ? r->path + strlen(r->path) - strlen(r->node->name) : "data";
	v->rank = a->rank;
	v->shape = a->shape;
	int rc = zarr_dimension_names(b, a, r->attributes_key, v, err);
	if (!rc)
		rc = add_object(r, &v->number, err);
	if (rc)
		return rc;
	r->node->variable = v;
	if (r->node->parent)
		r->node->number = v->number;
	*b->variables_end = v;
	b->variables_end = &v->next;
	return 0;
}

static int make_array(struct reading *r, enum zarr_document_kind kind, struct err *err)
{
	struct zarr_array a;
	int rc = kind == ZARR_V3 ? zarr_array_v3(r->b, r->json, &a, err)
				 : zarr_array_v2(r->b, r->json, r->attributes, &a, err);
	if (!rc)
		rc = zarr_dataset(r->b, &a, r->path, &r->o, err);
	if (!rc)
		rc = zarr_attributes(r->b, r->attributes, &a, r->attributes_key, &r->o, err);
	return rc ? rc : add_variable(r, &a, err);
}

static bool is_array(const struct zarr_node *node, enum zarr_document_kind kind)
{
	return kind == ZARR_V2_ARRAY || (kind == ZARR_V3 && node->v3_kind == ZARR_ARRAY);
}

/* Frees the texts of a node's documents, which are not needed any more. */
static void drop_texts(struct zarr_node *node)
{
	for (int kind = ZARR_V3; kind < ZARR_KINDS; kind++)
		if (node->docs[kind]) {
			free(node->docs[kind]->text);
			node->docs[kind]->text = NULL;
		}
}

static int make_node(struct zarr_build *b, struct zarr_node *node, struct err *err)
{
	const enum zarr_document_kind kind = zarr_node_document(b->m, node);
	struct reading r = {.b = b, .node = node};
	struct json_text_area area;
	struct err why = ERR_INIT;
	json_text_area_begin(&area);
	int rc = read_documents(&r, kind, &why);
	if (!rc)
		rc = is_array(node, kind) ? make_array(&r, kind, &why) : make_group(&r, kind, &why);
	if (b->is_short)
		rc = err_errno(&why, -ENOMEM, "document");
	json_text_area_end(&area);
	object_release(&r.o);
	drop_texts(node);
	node->is_shown = !rc;
	if (rc == -ENOMEM || rc == -E2BIG)
		return err_set(err, rc, "%s", why.msg);
	if (rc && node == b->m->root)
		return err_set(err, rc, "%s: %s", r.key, why.msg);
	if (!rc)
		return 0;
	tree_note(b->tree, zarr_problem_of(&why), "%s: %s", r.key, why.msg);
	if (!r.doc)
		return 0;
	/* Add an object for the node, so that the keys below it belong to something. */
	uint32_t number;
	rc = zarr_object_add(b, r.path, r.key, "", &number, err);
	if (!rc)
		tree_break(b->tree, number, r.path);
	return rc;
}

/* ---- all nodes ---- */

static int by_name(const void *x, const void *y)
{
	const struct zarr_node *a = *(struct zarr_node *const *)x;
	const struct zarr_node *b = *(struct zarr_node *const *)y;
	return strcmp(a->name, b->name);
}

static int sort_children(struct zarr_build *b, struct zarr_node *node, struct err *err)
{
	uint32_t n = 0;
	for (const struct zarr_node *c = node->children; c; c = c->sibling)
		n += c->is_used;
	node->sorted = arena_array(b->scratch, n + 1, sizeof(struct zarr_node *));
	if (!node->sorted)
		return err_errno(err, -ENOMEM, "nodes");
	for (struct zarr_node *c = node->children; c; c = c->sibling)
		if (c->is_used)
			node->sorted[node->nsorted++] = c;
	if (n)
		qsort(node->sorted, n, sizeof(struct zarr_node *), by_name);
	return 0;
}

static void note_below(struct zarr_build *b, const struct zarr_node *node)
{
	char path[ZARR_KEY_MAX + 1];
	const struct zarr_node *c = node->children;
	while (c && !c->is_used)
		c = c->sibling;
	if (!c && (!node->docs[ZARR_V2_GROUP] || node->docs[ZARR_V3]))
		return;
	zarr_node_path(node, path);
	tree_note(b->tree, TREE_DAMAGE,
		  "%s: it is an array; the group of the same name is left out", path);
}

/* Makes a node, and adds its members to the queue if it is a group. */
static int visit(struct zarr_build *b, struct zarr_node *node, struct err *err)
{
	int rc = make_node(b, node, err);
	if (rc || !node->is_shown)
		return rc;
	if (node->variable) {
		note_below(b, node);
		return 0;
	}
	rc = sort_children(b, node, err);
	for (uint32_t i = 0; !rc && i < node->nsorted; i++)
		b->nodes[b->nnodes++] = node->sorted[i];
	return rc;
}

/* Makes the root group of a store that is an array. */
static int make_root_array(struct zarr_build *b, struct err *err)
{
	struct zarr_node *root = b->m->root;
	struct object o = {.kind = OBJECT_GROUP, .id = "/", .modified_ns = b->f->modified_ns};
	int rc = zarr_attributes(b, NULL, NULL, "", &o, err);
	if (!rc)
		rc = zarr_object_add(b, "/", NULL, NULL, &root->number, err);
	if (rc)
		return rc;
	*tree_edit(b->tree, root->number) = o;
	return 0;
}

static int make_nodes(struct zarr_build *b, struct err *err)
{
	struct zarr_node *root = b->m->root;
	int rc = 0;
	/* A node is used if it has a document, or if a node below it has one. */
	for (struct zarr_node *node = b->m->table; node; node = node->hh.next)
		if (zarr_node_document(b->m, node) != ZARR_NONE)
			for (struct zarr_node *up = node; up && !up->is_used; up = up->parent)
				up->is_used = true;
	if (!root->is_used) {
		const char *damage = b->m->view_damage, *first = tree_problem(b->tree, 0);
		static const char text[] = "no document of the store can be read";
		if (damage)
			return err_set(err, -EIO, "%s: %s: %s", text,
				       zarr_document_name(ZARR_CONSOLIDATED), damage);
		return first ? err_set(err, -EIO, "%s: %s", text, first)
			     : err_set(err, -EIO, "%s", text);
	}
	b->nodes = arena_array(b->scratch, b->m->nnodes, sizeof(struct zarr_node *));
	if (!b->nodes)
		return err_errno(err, -ENOMEM, "nodes");
	b->nodes[b->nnodes++] = root;
	if (is_array(root, zarr_node_document(b->m, root)))
		rc = make_root_array(b, err);
	for (uint32_t i = 0; !rc && i < b->nnodes; i++)
		rc = visit(b, b->nodes[i], err);
	return rc;
}

/* ---- the tree ---- */

static int make_tree(struct zarr_build *b, struct err *err)
{
	b->store = arena_strndup(b->arena, b->f->store, strlen(b->f->store));
	if (!b->store)
		return err_errno(err, -ENOMEM, "store");
	int rc = make_nodes(b, err);
	if (!rc)
		rc = zarr_dimensions(b, err);
	if (!rc)
		rc = zarr_netcdf(b, err);
	return rc ? rc : tree_finish(b->tree, err);
}

int zarr_model_finish(struct zarr_model *m, const struct zarr_finish *f, struct err *err)
{
	if (m->too_many)
		return err_set(err, -E2BIG, "more than %d nodes", TREE_MAX_OBJECTS);
	struct zarr_build *b = calloc(1, sizeof(*b));
	if (!b)
		return err_errno(err, -ENOMEM, "tree");
	b->m = m;
	b->f = f;
	b->tree = m->tree;
	b->arena = tree_arena(m->tree);
	b->scratch = arena_new(SCRATCH_LIMIT);
	b->variables_end = &b->variables;
	int rc = b->scratch ? make_tree(b, err) : err_errno(err, -ENOMEM, "tree");
	/* Also after a failure, because the owner of the tree releases its objects. */
	const int kept = zarr_keep_attributes(b, rc ? NULL : err);
	for (uint32_t i = 0; i < b->nnodes; i++)
		HASH_CLEAR(hh, b->nodes[i]->dims);
	zarr_share_end(b);
	arena_free(b->scratch);
	bytes_release(&b->text);
	free(b);
	return rc ? rc : kept;
}
