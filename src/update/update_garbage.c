/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removed objects are deleted later, because readers that have the domain open may still need them.
 * The plan lists them, and then the log of what is to be deleted (journal/gc_log.h).
 *
 * Before anything is deleted, the domain is read once more: another program may have linked an
 * object again. The domain is read twice in a row, and must be the same both times. So what was
 * read is one state of the domain: no link has moved from a group that was not read yet to one that
 * had been read. If all of the domain can be read, and nothing leads to the object, it is deleted:
 * its document first, so that nothing finds it half deleted, then its chunks. The document must
 * have the version that the commit has seen: otherwise another program has written to the object,
 * and the object stays.
 */
#include "update_garbage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <domain/documents.h>
#include <journal/gc_event.h>

enum { READS = 5 /* of a domain that changes all the time */ };

/* ---- the list ---- */

/* Returns a user block that is an object of its own, and that the domain no longer has. An object
 * whose bytes are not those of its name stays, so that a person can look at it. */
static const struct user_block *removed_block(const struct update *u)
{
	const struct user_block *old = tree_user_block(u->before->tree);
	return old && old->object && !old->is_unknown &&
			       !user_block_equal(old, tree_user_block(u->now->tree))
		       ? old
		       : NULL;
}

int update_list_removed(const struct update *u, struct plan_subject *out, struct err *err)
{
	const struct tree_change *c = &u->change;
	const struct user_block *block = removed_block(u);
	out->removed = arena_array(u->arena, (size_t)c->nremoved + 1, sizeof(*out->removed));
	if (!out->removed)
		return err_no_memory(err);
	for (uint32_t i = 0; i < c->nremoved; i++) {
		const char *version = u->before->version[c->removed[i]];
		out->removed[i] =
			(struct gc_object){.id = tree_object(u->before->tree, c->removed[i])->o.id,
					   .version = version ? version : ""};
	}
	if (block)
		out->removed[c->nremoved] = (struct gc_object){.id = block->object, .version = ""};
	out->nremoved = c->nremoved + (block != NULL);
	return 0;
}

/* ---- deleting ---- */

/* Lists the ids of all objects of a domain, and the name of its user block, sorted. */
static const char **list_ids(const struct tree *t, size_t *n)
{
	const struct user_block *block = tree_user_block(t);
	const char **ids = calloc((size_t)tree_count(t) + 1, sizeof(*ids));
	*n = 0;
	for (uint32_t i = 0; ids && i < tree_count(t); i++)
		ids[(*n)++] = tree_object(t, tree_nth(t, i))->o.id;
	if (ids && block && block->object)
		ids[(*n)++] = block->object;
	if (*n)
		qsort(ids, *n, sizeof(*ids), str_compare);
	return ids;
}

/* Deletes a document. Returns 1 if it is gone, and 0 if it has another version and stays. */
static int delete_document(const struct document_place *p, const char *key, const char *version,
			   struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->store, STORE_DELETE);
	if (!req)
		return err_no_memory(err);
	store_request_key(req, key);
	req->cond.if_match = version[0] ? version : NULL;
	req->cancelled = cancelled_by(p->cancelled);
	store_run(p->store, req);
	int rc = store_failure(&req->answer, err);
	if (rc != -ESTALE)
		return rc ? rc : 1;
	struct store_meta meta;
	rc = store_look(p->store, key, p->cancelled, &meta, err);
	return rc < 0 ? rc : !rc;
}

struct collection {
	const struct document_place *place;
	const struct gc_event *list;
	uint64_t deleted, changed; /* `changed` counts documents that another program has written */
};

static int delete_object(struct collection *c, const struct gc_object *o, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	size_t folder;
	uint64_t chunks = 0;
	const struct schema_ops *schema = c->place->schema;
	int rc = schema->editor->key_of_id(c->list->storage, o->id, key, sizeof(key), &folder);
	if (rc < 0)
		return err_set(err, rc, "%s is no id of an object of this domain", o->id);
	rc = delete_document(c->place, key, o->version, err);
	c->deleted += rc > 0;
	c->changed += rc == 0;
	if (rc <= 0 || !folder)
		return rc < 0 ? rc : 0;
	key[folder] = '\0';
	rc = storage_purge(c->place, key, NULL, &chunks, err);
	c->deleted += chunks;
	return rc;
}

static int delete_all(struct collection *c, const struct tree *t, struct err *err)
{
	size_t n;
	auto_free const char **ids = list_ids(t, &n);
	int rc = ids ? 0 : err_no_memory(err);
	for (uint32_t i = 0; !rc && i < c->list->count; i++)
		if (!bsearch(&c->list->objects[i].id, ids, n, sizeof(*ids), str_compare))
			rc = delete_object(c, &c->list->objects[i], err);
	return rc;
}

/* Reads the domain until it is the same twice in a row. */
static int open_unchanged(const struct domain_bucket *bucket, const char *path, struct domain **out,
			  struct err *err)
{
	struct domain *d = NULL, *again;
	int rc = domain_open(bucket, path, NULL, &d, err);
	for (int i = 1; !rc && i < READS; i++) {
		const struct domain_hint hint = {.previous = d};
		rc = domain_open(bucket, path, &hint, &again, err);
		domain_unref(d);
		if (!rc && again == d) {
			*out = d;
			return 0;
		}
		d = rc ? NULL : again;
	}
	if (!rc)
		domain_unref(d);
	return rc ? rc : err_set(err, -ESTALE, "the domain changes all the time");
}

/* If the domain has another name by now, the objects remain, until the domain is removed. */
int update_collect(const struct domain_bucket *bucket, const struct gc_event *list,
		   const atomic_bool *cancelled, uint64_t *deleted, struct err *err)
{
	struct domain *d = NULL;
	*deleted = 0;
	int rc = open_unchanged(bucket, list->path, &d, err);
	if (rc)
		return rc == -ENOENT || rc == -EISDIR ? 0 : rc;
	const struct document_place place = {.env = bucket->env,
					     .store = bucket->store,
					     .schema = domain_schema(d),
					     .cancelled = cancelled};
	struct collection c = {.place = &place, .list = list};
	const bool same =
		strcmp(domain_document(d)->info.root, list->storage) == 0 && place.schema->editor;
	const struct tree *t = domain_tree(d);
	if (same && (tree_missing(t) || tree_problems(t)))
		rc = err_set(err, -EIO, "a part of the domain cannot be read");
	else if (same)
		rc = delete_all(&c, t, err);
	domain_unref(d);
	*deleted = c.deleted;
	if (!rc && c.changed)
		log_warning(bucket->env->log,
			    "%" PRIu64 " objects that were removed from /%s remain in the bucket: "
			    "another program has changed them",
			    c.changed, list->path);
	return rc;
}
