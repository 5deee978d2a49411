/* SPDX-License-Identifier: Apache-2.0 */
/* See storage/change.h. Renames are in rename.c. */
#include <storage/change.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>

#include <domain/documents.h>
#include <schema/schema.h>
#include <storage/rename.h>
#include <storage/storage_deletion.h>
#include <storage/storage_names.h>

static struct document_place place_of(const struct change *c)
{
	return (struct document_place){
		.env = c->env, .store = c->store, .schema = c->schema, .cancelled = c->cancelled};
}

/* To be called if a DELETE that was repeated has found another version. Whoever repeats the whole
 * call would remove what another program has put there since. `leads` says whether the name still
 * leads to what was to be removed: 1, 0 or a negative errno. If not, it is removed, by the DELETE
 * or by that program. */
static int taken_since(int leads, struct err *err)
{
	if (leads > 0)
		return -ESTALE;
	if (!leads)
		err_clear(err);
	return leads;
}

/* ---- folders ---- */

int change_make_folder(const struct change *c, const char *path, struct err *err)
{
	const struct document_place place = place_of(c);
	const int rc = document_put_folder(&place, path, c->owner, c->now_ns, err);
	return rc == -EEXIST ? err_set(err, rc, "%s: it exists", path) : rc;
}

int change_copy_folder(const struct change *c, const char *path, const struct domain_info *info,
		       struct err *err)
{
	const struct document_place place = place_of(c);
	const struct store_cond absent = {.if_none_match = "*"};
	const int rc = document_put(&place, path, info, &absent, NULL, err);
	return rc == -EEXIST ? err_set(err, rc, "%s: it exists", path) : rc;
}

/* The folder has something that keeps it. A mount does not show everything that a bucket may have
 * in it; a user who sees an empty folder needs to know why it stays. */
static int not_empty(const struct change *c, const char *path, const char *what, bool is_shown,
		     struct err *err)
{
	if (!is_shown)
		log_warning(c->env->log,
			    "the folder %s is not removed: the bucket has the key %s in it, which "
			    "no mount shows",
			    path, what);
	return err_set(err, -ENOTEMPTY, "%s: the folder is not empty: it has %s", path, what);
}

/* Checks that a folder has nothing but its document and its directory marker. Fails with
 * -ENOTEMPTY. */
static int check_empty(const struct change *c, const char *path, bool *has_marker, struct err *err)
{
	char document[SCHEMA_KEY_MAX + 1];
	const struct schema_ops *const schemas[] = {c->schema, NULL};
	const struct document_place place = place_of(c);
	auto_request struct store_request *req = store_request_new(c->store, STORE_LIST);
	auto_free char *prefix = malloc(strlen(path) + 2);
	*has_marker = false;
	if (!req || !prefix)
		return err_no_memory(err);
	int rc = document_key(&place, path, document, sizeof(document), err);
	if (rc)
		return rc;
	store_request_key(req, strcat(strcpy(prefix, path), "/"));
	req->list.max = 3;
	req->list.delimit = true;
	req->list.markers = true;
	req->list.complete = true;
	store_run(c->store, req);
	rc = store_failure(&req->answer, err);
	const struct store_page *page = &req->answer.page;
	for (size_t i = 0; !rc && i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		const bool is_marker = strcmp(item->key, prefix) == 0;
		*has_marker |= is_marker;
		if (is_marker ? item->meta.size > 0 : strcmp(item->key, document) != 0)
			rc = not_empty(c, path, item->key,
				       !is_marker && !schema_is_document(schemas, item->key), err);
	}
	if (!rc && page->left_out)
		rc = not_empty(c, path, page->left_out, false, err);
	return rc || !page->more ? rc : not_empty(c, path, page->next, true, err);
}

static int delete_marker(const struct change *c, const char *path, struct err *err)
{
	auto_request struct store_request *req = store_request_new(c->store, STORE_DELETE);
	if (!req)
		return err_no_memory(err);
	if ((size_t)snprintf(req->key, req->room, "%s/", path) > STORE_KEY_MAX)
		return 0; /* no marker has such a key */
	store_run(c->store, req);
	return store_failure(&req->answer, err);
}

/* Returns 1 if a path has a directory marker, 0 if not, or a negative errno. Fails with -EEXIST if
 * the object has bytes: then another program has put data there. */
static int has_marker(const struct change *c, const char *path, struct err *err)
{
	auto_request struct store_request *req = store_request_new(c->store, STORE_LIST);
	if (!req)
		return err_no_memory(err);
	if ((size_t)snprintf(req->key, req->room, "%s/", path) > STORE_KEY_MAX)
		return 0; /* no marker has such a key */
	req->list.max = 1;
	req->list.delimit = true;
	req->list.markers = true;
	store_run(c->store, req);
	const int rc = store_failure(&req->answer, err);
	const struct store_page *page = &req->answer.page;
	if (rc || page->n == 0 || strcmp(page->items[0].key, req->key) != 0)
		return rc;
	return page->items[0].meta.size == 0
		       ? 1
		       : err_set(err, -EEXIST, "the object %s has bytes", req->key);
}

void change_remove_marker(const struct change *c, const char *path)
{
	struct err why = ERR_INIT;
	const int has = has_marker(c, path, &why);
	if (has < 0 || (has && delete_marker(c, path, &why)))
		log_warning(c->env->log,
			    "the name %s is removed, but a directory marker of this name may be "
			    "left: %s",
			    path, why.msg);
}

/* Returns 1 if a path has the folder or domain that had this document, perhaps changed since, 0 if
 * not, or a negative errno. */
static int is_same(const struct document_place *p, const char *path,
		   const struct schema_document *old, struct err *err)
{
	struct schema_document *now = NULL;
	const char *root = old->info.root;
	const int rc = document_get(p, path, &now, err);
	bool same = !rc && now && !now->info.root == !root;
	if (same)
		same = root ? strcmp(now->info.root, root) == 0
			    : now->info.created_ns == old->info.created_ns;
	schema_document_unref(now);
	return rc == -ENOENT ? 0 : rc ? rc : same;
}

int change_remove_folder(const struct change *c, const char *path,
			 const struct schema_document *folder, struct err *err)
{
	struct schema_document *made = NULL;
	enum document_found found = DOCUMENT_WAS_THERE;
	const struct document_place place = place_of(c);
	bool has_marker;
	int rc = check_empty(c, path, &has_marker, err);
	if (!rc && has_marker)
		rc = delete_marker(c, path, err);
	/* An empty directory of a file system gets a document, whose deletion removes it. */
	if (!rc && !folder && !has_marker) {
		rc = change_make_folder(c, path, err);
		if (!rc)
			rc = document_get(&place, path, &made, err);
		folder = made;
	}
	if (!rc && folder)
		rc = document_delete(&place, path, folder->etag, &found, err);
	if (rc == -ESTALE && found == DOCUMENT_MAY_BE_OURS)
		rc = taken_since(is_same(&place, path, folder, err), err);
	if (!rc && found == DOCUMENT_WAS_ABSENT)
		rc = err_set(err, -ESTALE, "%s: another program has removed it", path);
	schema_document_unref(made);
	return rc;
}

/* ---- access control lists ---- */

static int put_folder_acls(const struct change *c, const char *path, const struct domain_info *acls,
			   struct err *err)
{
	const struct document_place place = place_of(c);
	const struct store_cond absent = {.if_none_match = "*"};
	struct domain_info info = *acls;
	info.owner = c->owner;
	info.created_ns = info.modified_ns = c->now_ns;
	const int rc = document_put(&place, path, &info, &absent, NULL, err);
	return rc == -EEXIST ? err_set(err, -ESTALE, "%s: it has a document now", path) : rc;
}

int change_set_acls(const struct change *c, const char *path, bool is_new,
		    const struct domain_info *acls, struct change_versions *out, struct err *err)
{
	const struct document_place place = place_of(c);
	struct document_answer put;
	char key[SCHEMA_KEY_MAX + 1];
	auto_request struct store_request *req = NULL;
	auto_bytes struct bytes text = {0};
	*out = (struct change_versions){.from = ""};
	if (is_new)
		return put_folder_acls(c, path, acls, err);
	int rc = document_key(&place, path, key, sizeof(key), err);
	if (!rc)
		rc = document_read(&place, key, &req, err);
	if (!rc && !req)
		rc = err_set(err, -ESTALE, "%s: its document was deleted", path);
	if (rc)
		return rc;
	const struct store_answer *answer = &req->answer;
	const struct store_cond same = {.if_match = answer->meta.etag};
	const struct store_cond any = {.if_none_match = NULL};
	rc = c->schema->documents->edit_acls(answer->body.data, answer->body.len, acls, &text, err);
	if (rc)
		return err_wrap(err, rc, "%s", key);
	rc = document_write(&place, key, text.data, text.len, answer->meta.etag[0] ? &same : &any,
			    &put, err);
	if (rc)
		return rc;
	memcpy(out->from, answer->meta.etag, STORE_ETAG_MAX);
	memcpy(out->to, put.etag, STORE_ETAG_MAX);
	return 0;
}

/* ---- domains ---- */

int change_remove_domain(const struct change *c, const char *path,
			 const struct schema_document *domain, bool may_have_marker,
			 struct change_garbage *out, struct err *err)
{
	const struct document_place reader = place_of(c);
	struct document_place place = reader;
	struct change_garbage lost = {0};
	enum document_found found = DOCUMENT_WAS_THERE;
	*out = (struct change_garbage){0};
	place.schema = domain->schema;
	const int names = schema_storage_of(domain, &lost.storage)
				  ? rename_leave(&place, c->renames, &lost.storage, path, err)
				  : 0;
	if (names < 0)
		return names;
	int rc = document_delete(&place, path, domain->etag, &found, err);
	if (rc == -ESTALE && found == DOCUMENT_MAY_BE_OURS)
		rc = taken_since(is_same(&reader, path, domain, err), err);
	/* Perhaps a rename has just given the name once more, and it is the only one. */
	if (rc == -ESTALE && names)
		return err_set(err, -EBUSY, "%s: another program has just changed it", path);
	if (!rc && found == DOCUMENT_WAS_ABSENT)
		rc = err_set(err, -ESTALE, "%s: another program has removed it", path);
	if (rc)
		return rc;
	*out = lost;
	if (may_have_marker)
		change_remove_marker(c, path);
	return 0;
}

int change_expect_name(const struct change *c, const struct storage *storage, const char *path,
		       struct err *err)
{
	const struct document_place place = place_of(c);
	auto_names struct storage_names names = {.storage = *storage};
	struct rename_record r = {.began_ns = storage_names_new_time(c->env), .to = path};
	c->env->random(c->env, &r.number, sizeof(r.number));
	return storage_names_enter(&place, &names, NULL, &r, err);
}

int change_has_storage(const struct change *c, const char *path, const struct storage *storage,
		       struct err *err)
{
	const struct document_place place = place_of(c);
	return document_names_storage(&place, path, storage, err);
}

int change_collect(const struct change *c, const char *path, const struct change_garbage *g,
		   uint64_t *deleted, struct err *err)
{
	const struct document_place place = place_of(c);
	*deleted = 0;
	const int rc = g->storage.schema
			       ? storage_delete(&place, c->renames, path, &g->storage, deleted, err)
			       : 0;
	return rc < 0 ? rc : 0;
}

int change_find_name(const struct change *c, const struct storage *storage, char *path, size_t room,
		     struct err *err)
{
	const struct document_place place = place_of(c);
	char found[STORE_KEY_MAX + 1] = "";
	const int rc = storage_names_find(&place, storage, found, err);
	if (rc > 0)
		snprintf(path, room, "%s", found);
	return rc;
}

int change_storage_has_root(const struct change *c, const struct storage *storage, struct err *err)
{
	const struct document_place place = place_of(c);
	return storage_has_root(&place, storage, err);
}
