/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removed objects are deleted later, because readers that have the domain open may still need them.
 * Before that, the domain is read once more: another program may have linked an object again. Only
 * if all of the domain can be read, and nothing leads to the object, it is deleted: its document
 * first, so that nothing finds it half deleted, then its chunks.
 */
#include "update_garbage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"

enum { GARBAGE_ARENA = 1 << 30 };

struct removed {
	const char *id;
	const char *key;    /* of the document */
	const char *prefix; /* of the chunks; NULL: it has none */
};

struct update_garbage {
	struct arena *arena;
	const char *root; /* id of the root group of the domain */
	uint32_t n;
	struct removed v[];
};

void update_garbage_free(struct update_garbage *g)
{
	if (g)
		arena_free(g->arena);
	free(g);
}

static const char *copy(struct update_garbage *g, const char *text)
{
	return arena_strndup(g->arena, text, strlen(text));
}

static int add(const struct update *u, struct update_garbage *g, uint32_t number, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	const struct object *o = &tree_object(u->before->tree, number)->o;
	struct removed *r = &g->v[g->n];
	int rc = u->schema->new_object_key(u->before->tree, number, key, sizeof(key));
	if (rc < 0)
		return err_set(err, rc, "the key of object %s is too long", o->id);
	r->id = copy(g, o->id);
	r->key = copy(g, key);
	const bool has_chunks = o->kind == OBJECT_DATASET && !o->dataset.reference &&
				u->schema->chunk_prefix(o, key, sizeof(key)) > 0;
	r->prefix = has_chunks ? copy(g, key) : NULL;
	if (!r->id || !r->key || (has_chunks && !r->prefix))
		return err_set(err, -ENOMEM, "out of memory");
	g->n++;
	return 0;
}

int update_garbage_new(const struct update *u, struct update_garbage **out, struct err *err)
{
	const uint32_t n = u->change.nremoved;
	*out = NULL;
	if (!n)
		return 0;
	struct update_garbage *g = calloc(1, sizeof(*g) + n * sizeof(g->v[0]));
	if (g)
		g->arena = arena_new(GARBAGE_ARENA);
	int rc = g && g->arena ? 0 : err_set(err, -ENOMEM, "out of memory");
	if (!rc) {
		g->root = copy(g, domain_document(u->base->domain)->info.root);
		rc = g->root ? 0 : err_set(err, -ENOMEM, "out of memory");
	}
	for (uint32_t i = 0; !rc && i < n; i++)
		rc = add(u, g, u->change.removed[i], err);
	if (rc)
		update_garbage_free(g);
	else
		*out = g;
	return rc;
}

/* ---- deleting ---- */

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The ids of all objects of a domain, sorted. */
static const char **list_ids(const struct tree *t)
{
	const uint32_t n = tree_count(t);
	const char **ids = calloc(n ? n : 1, sizeof(*ids));
	for (uint32_t i = 0; ids && i < n; i++)
		ids[i] = tree_object(t, tree_nth(t, i))->o.id;
	if (ids && n)
		qsort(ids, n, sizeof(*ids), compare);
	return ids;
}

static int delete_key(const struct document_place *p, const char *key, struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->store, STORE_DELETE);
	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
	store_request_key(req, key);
	req->cancelled = cancelled_by(p->cancelled);
	store_run(p->store, req);
	return store_failure(&req->answer, err);
}

static int delete_object(const struct document_place *p, const struct removed *r, uint64_t *deleted,
			 struct err *err)
{
	uint64_t chunks = 0;
	int rc = delete_key(p, r->key, err);
	if (!rc && r->prefix)
		rc = storage_purge(p, r->prefix, &chunks, err);
	*deleted += !rc + chunks;
	return rc;
}

static int delete_all(const struct document_place *p, const struct update_garbage *g,
		      const struct tree *t, uint64_t *deleted, struct err *err)
{
	auto_free const char **ids = list_ids(t);
	int rc = ids ? 0 : err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; !rc && i < g->n; i++)
		if (!bsearch(&g->v[i].id, ids, tree_count(t), sizeof(*ids), compare))
			rc = delete_object(p, &g->v[i], deleted, err);
	return rc;
}

static bool is_complete(const struct tree *t)
{
	return !tree_missing(t) && !tree_problems(t);
}

/* If the domain has another name by now, the objects remain, until the domain is removed. */
int update_collect(const struct domain_bucket *bucket, const char *path,
		   const struct update_garbage *g, const atomic_bool *cancelled, uint64_t *deleted,
		   struct err *err)
{
	struct domain *d;
	*deleted = 0;
	int rc = domain_open(bucket, path, NULL, &d, err);
	if (rc)
		return rc == -ENOENT || rc == -EISDIR ? 0 : rc;
	const struct document_place place = {.env = bucket->env,
					     .store = bucket->store,
					     .schema = domain_schema(d),
					     .cancelled = cancelled};
	const bool same = strcmp(domain_document(d)->info.root, g->root) == 0;
	if (same && !is_complete(domain_tree(d)))
		rc = err_set(err, -EIO, "a part of the domain cannot be read");
	else if (same)
		rc = delete_all(&place, g, domain_tree(d), deleted, err);
	domain_unref(d);
	return rc;
}
