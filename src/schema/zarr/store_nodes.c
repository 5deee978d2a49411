/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the nodes of a store, as a trie of their names, and the documents of each node. A document
 * that was read replaces that of the consolidated view. Pure.
 */
#include "model_internal.h"

#include <errno.h>
#include <string.h>

/* ---- keys ---- */

static const char *const names[ZARR_KINDS] = {
	[ZARR_V3] = "zarr.json",     [ZARR_CONSOLIDATED] = ".zmetadata",
	[ZARR_V2_GROUP] = ".zgroup", [ZARR_V2_ARRAY] = ".zarray",
	[ZARR_V2_ATTRS] = ".zattrs",
};

const char *zarr_document_name(enum zarr_document_kind kind)
{
	return names[kind];
}

enum zarr_document_kind zarr_document_of_key(const char *key, size_t *path_len)
{
	const char *slash = strrchr(key, '/');
	const char *last = slash ? slash + 1 : key;
	*path_len = slash ? (size_t)(slash - key) : 0;
	/* "/.zarray" is below a name that is empty, and not at the root. */
	for (int kind = ZARR_V3; kind < ZARR_KINDS && slash != key; kind++)
		if (strcmp(last, names[kind]) == 0)
			return (enum zarr_document_kind)kind;
	return ZARR_NONE;
}

/* ---- nodes ---- */

static const size_t parent_len = sizeof(struct zarr_node *);

static struct zarr_node *node_new(struct zarr_node *parent, const char *name, size_t n)
{
	struct zarr_node *node = calloc(1, sizeof(*node) + parent_len + n + 1);
	if (!node)
		return NULL;
	memcpy(node->key, &parent, parent_len);
	memcpy(node->key + parent_len, name, n);
	node->name = node->key + parent_len;
	node->parent = parent;
	node->number = OBJECT_NONE;
	return node;
}

static struct zarr_node *find_child(const struct zarr_model *m, const struct zarr_node *parent,
				    const char *name, size_t n)
{
	char key[sizeof(parent) + ZARR_KEY_MAX];
	struct zarr_node *node = NULL;
	if (n > ZARR_KEY_MAX)
		return NULL;
	memcpy(key, &parent, parent_len);
	memcpy(key + parent_len, name, n);
	HASH_FIND(hh, m->table, key, parent_len + n, node);
	return node;
}

static struct zarr_node *add_child(struct zarr_model *m, struct zarr_node *parent, const char *name,
				   size_t n, struct err *err)
{
	if (n == 0 || (n == 1 && name[0] == '.') || (n == 2 && memcmp(name, "..", 2) == 0)) {
		err_set(err, -EIO, "the name \"%.*s\" cannot be that of a link", (int)n, name);
		return NULL;
	}
	if (m->nnodes == TREE_MAX_OBJECTS) {
		m->too_many = true;
		err_set(err, -E2BIG, "more than %d nodes", TREE_MAX_OBJECTS);
		return NULL;
	}
	struct zarr_node *node = node_new(parent, name, n);
	if (node)
		HASH_ADD_KEYPTR(hh, m->table, node->key, parent_len + n, node);
	if (!node || !node->hh.tbl) {
		free(node);
		err_errno(err, -ENOMEM, "node");
		return NULL;
	}
	node->sibling = parent->children;
	parent->children = node;
	m->nnodes++;
	return node;
}

/* Returns the next name of a path, of *n bytes. Moves *path behind it, or sets *path to NULL if it
 * is the last one. */
static const char *next_name(const char **path, const char *end, size_t *n)
{
	const char *name = *path;
	const char *slash = memchr(name, '/', (size_t)(end - name));
	*n = (size_t)((slash ? slash : end) - name);
	*path = slash ? slash + 1 : NULL;
	return name;
}

struct zarr_node *zarr_node_make(struct zarr_model *m, const char *path, size_t n, struct err *err)
{
	struct zarr_node *node = m->root;
	const char *end = path + n;
	if (n > ZARR_KEY_MAX) {
		err_set(err, -EOPNOTSUPP, "the path has %zu bytes, the limit is %d", n,
			ZARR_KEY_MAX);
		return NULL;
	}
	for (const char *at = n ? path : NULL; at && node;) {
		size_t len;
		const char *name = next_name(&at, end, &len);
		struct zarr_node *child = find_child(m, node, name, len);
		node = child ? child : add_child(m, node, name, len, err);
	}
	return node;
}

struct zarr_node *zarr_shown_child(const struct zarr_model *m, const struct zarr_node *group,
				   const char *name)
{
	struct zarr_node *node = find_child(m, group, name, strlen(name));
	return node && node->is_shown ? node : NULL;
}

struct zarr_node *zarr_node_find(const struct zarr_model *m, const char *path, size_t n)
{
	struct zarr_node *node = m->root;
	const char *end = path + n;
	for (const char *at = n ? path : NULL; at && node;) {
		size_t len;
		const char *name = next_name(&at, end, &len);
		node = find_child(m, node, name, len);
	}
	return node;
}

void zarr_node_path(const struct zarr_node *node, char path[ZARR_KEY_MAX + 1])
{
	size_t n = 0;
	for (const struct zarr_node *at = node; at->parent; at = at->parent)
		n += strlen(at->name) + (n > 0);
	path[n] = '\0';
	for (const struct zarr_node *at = node; at->parent; at = at->parent) {
		const size_t len = strlen(at->name);
		n -= len;
		memcpy(path + n, at->name, len);
		if (n > 0)
			path[--n] = '/';
	}
}

/* ---- documents ---- */

int zarr_document_load(const struct zarr_document *d, json_t **doc, struct err *err)
{
	json_error_t why;
	if (d->refusal)
		return err_set(err, d->refusal_code, "%s", d->refusal);
	if (!d->is_dumped) {
		const int rc = json_text_load_lenient(d->text, d->n, doc, err);
		return rc == -EIO ? err_wrap(err, rc, "not JSON") : rc;
	}
	*doc = json_loadb(d->text, d->n, 0, &why);
	if (*doc)
		return 0;
	if (json_error_code(&why) == json_error_out_of_memory)
		return err_errno(err, -ENOMEM, "JSON");
	return err_set(err, -EIO, "not JSON: %s", why.text);
}

void zarr_document_free(struct zarr_document *d)
{
	if (!d)
		return;
	free(d->text);
	free(d->etag);
	free(d->refusal);
	free(d);
}

struct zarr_document *zarr_document_new(const char *etag, const void *text, size_t n)
{
	struct zarr_document *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->etag = strdup(etag);
	d->text = malloc(n + 1);
	if (!d->etag || !d->text) {
		zarr_document_free(d);
		return NULL;
	}
	if (n)
		memcpy(d->text, text, n);
	d->text[n] = '\0';
	d->n = n;
	return d;
}

int zarr_document_dump(struct zarr_document *d, const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT);
	if (!text)
		return -ENOMEM;
	free(d->text);
	d->n = strlen(text);
	d->text = malloc(d->n + 1); /* Jansson's memory is in the area */
	if (d->text)
		memcpy(d->text, text, d->n + 1);
	d->is_dumped = true;
	return d->text ? 0 : -ENOMEM;
}

int zarr_document_refuse(struct zarr_document *d, const struct err *why)
{
	free(d->text);
	d->text = NULL;
	d->n = 0;
	d->refusal = strdup(why->msg);
	d->refusal_code = why->code;
	return d->refusal ? 0 : -ENOMEM;
}

enum tree_problem_kind zarr_problem_of(const struct err *why)
{
	return why->code == -EOPNOTSUPP ? TREE_UNSUPPORTED : TREE_DAMAGE;
}

void zarr_document_put(struct zarr_node *node, enum zarr_document_kind kind,
		       struct zarr_document *d, enum zarr_node_kind v3_kind)
{
	zarr_document_free(node->docs[kind]);
	node->docs[kind] = d;
	if (kind == ZARR_V3)
		node->v3_kind = v3_kind;
}

bool zarr_model_counts(const struct zarr_model *m, enum zarr_document_kind kind)
{
	return kind == ZARR_V3 || m->root_kind != ZARR_V3;
}

enum zarr_document_kind zarr_node_document(const struct zarr_model *m, const struct zarr_node *node)
{
	static const enum zarr_document_kind order[] = {ZARR_V3, ZARR_V2_ARRAY, ZARR_V2_GROUP};
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (node->docs[order[i]] && zarr_model_counts(m, order[i]))
			return order[i];
	return ZARR_NONE;
}

enum { PATH_SHOWN = 256 /* bytes of a path in a note, which has to have room for the reason */ };

int zarr_model_add_viewed(struct zarr_model *m, const char *path, size_t n,
			  enum zarr_document_kind kind, json_t *value, struct err *err)
{
	struct err why = ERR_INIT;
	struct zarr_node *node =
		zarr_model_counts(m, kind) ? zarr_node_make(m, path, n, &why) : NULL;
	enum zarr_node_kind v3_kind = ZARR_NO_NODE;
	int rc = 0;
	if (why.code == -ENOMEM)
		return err_set(err, -ENOMEM, "%s", why.msg);
	if (why.code == -EIO || why.code == -EOPNOTSUPP)
		tree_note(m->tree, zarr_problem_of(&why), "%.*s%s: %s", (int)min_u64(n, PATH_SHOWN),
			  path, n > PATH_SHOWN ? "..." : "", why.msg);
	if (!node || node->docs[kind])
		return 0;
	struct zarr_document *d = zarr_document_new("", "", 0);
	if (!d)
		return err_errno(err, -ENOMEM, "document");
	d->in_view = true;
	if (!json_is_object(value))
		err_set(&why, -EIO, "not a JSON object");
	else if (kind == ZARR_V3)
		zarr_v3_kind(value, &v3_kind, &why);
	rc = why.code ? zarr_document_refuse(d, &why) : zarr_document_dump(d, value);
	if (rc) {
		zarr_document_free(d);
		return err_errno(err, rc, "document");
	}
	zarr_document_put(node, kind, d, v3_kind);
	return 0;
}

int zarr_nodes_init(struct zarr_model *m)
{
	m->root = node_new(NULL, "", 0);
	if (m->root)
		HASH_ADD_KEYPTR(hh, m->table, m->root->key, parent_len, m->root);
	if (!m->root || !m->root->hh.tbl) {
		free(m->root);
		return -ENOMEM;
	}
	m->nnodes = 1;
	return 0;
}

void zarr_nodes_release(struct zarr_model *m)
{
	struct zarr_node *node = m->table, *next;
	HASH_CLEAR(hh, m->table);
	for (; node; node = next) {
		next = node->hh.next;
		for (int kind = ZARR_V3; kind < ZARR_KINDS; kind++)
			zarr_document_free(node->docs[kind]);
		free(node);
	}
}
