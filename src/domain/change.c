/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See domain/change.h.
 *
 * A rename into another folder that ends between the PUT and the DELETE leaves two names of one
 * domain, in folders that no deletion of storage would look at together. So such a rename first
 * puts a record into the storage of the domain, with both names, and deletes it at the end. Before
 * storage is deleted, the names in its record are looked up.
 */
#include <domain/change.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>

#include "document.h"

static struct document_place place_of(const struct change *c)
{
	return (struct document_place){
		.env = c->env, .store = c->store, .schema = c->schema, .cancelled = c->cancelled};
}

static int key_of(const struct change *c, const char *path, char *key, size_t room, struct err *err)
{
	const int n = c->schema->domain_key(path, key, room);
	return n < 0 ? err_set(err, n, "%s: the path is too long", path) : 0;
}

/* Deletes the document that the caller has seen. */
static int delete_document(const struct change *c, const char *path,
			   const struct schema_document *d, struct err *err)
{
	auto_request struct store_request *req = store_request_new(c->store, STORE_DELETE);
	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
	const int rc = key_of(c, path, req->key, req->room, err);
	if (rc)
		return rc;
	req->cond.if_match = d->etag[0] ? d->etag : NULL;
	store_run(c->store, req);
	return store_failure(&req->answer, err);
}

/* ---- folders ---- */

int change_make_folder(const struct change *c, const char *path, struct err *err)
{
	const struct document_place place = place_of(c);
	const int rc = document_put_folder(&place, path, c->owner, c->now_ns, err);
	return rc == -EEXIST ? err_set(err, rc, "%s: it exists", path) : rc;
}

/* Whether a folder has nothing but its document. 1, 0 or a negative errno. */
static int is_empty(const struct change *c, const char *path, struct err *err)
{
	char document[SCHEMA_KEY_MAX + 1];
	auto_request struct store_request *req = store_request_new(c->store, STORE_LIST);
	auto_free char *prefix = malloc(strlen(path) + 2);
	if (!req || !prefix)
		return err_set(err, -ENOMEM, "out of memory");
	int rc = key_of(c, path, document, sizeof(document), err);
	if (rc)
		return rc;
	store_request_key(req, strcat(strcpy(prefix, path), "/"));
	req->list.max = 2;
	req->list.delimit = true;
	req->list.complete = true;
	store_run(c->store, req);
	rc = store_failure(&req->answer, err);
	const struct store_page *page = &req->answer.page;
	for (size_t i = 0; !rc && i < page->n; i++)
		if (strcmp(page->items[i].key, document) != 0)
			return 0;
	return rc ? rc : !page->more;
}

int change_remove_folder(const struct change *c, const char *path,
			 const struct schema_document *folder, struct err *err)
{
	struct schema_document *made = NULL;
	const struct document_place place = place_of(c);
	const int empty = is_empty(c, path, err);
	int rc = empty < 0 ? empty : 0;
	if (!empty)
		rc = err_set(err, -ENOTEMPTY, "%s: the folder is not empty", path);
	/* An empty directory of a file system gets a document, whose deletion removes it. */
	if (!rc && !folder) {
		rc = change_make_folder(c, path, err);
		if (!rc)
			rc = document_get(&place, path, &made, err);
		folder = made;
	}
	if (!rc && folder)
		rc = delete_document(c, path, folder, err);
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
		    const struct domain_info *acls, struct err *err)
{
	const struct document_place place = place_of(c);
	char key[SCHEMA_KEY_MAX + 1];
	auto_request struct store_request *req = NULL;
	auto_bytes struct bytes text = {0};
	if (is_new)
		return put_folder_acls(c, path, acls, err);
	int rc = key_of(c, path, key, sizeof(key), err);
	if (!rc)
		rc = document_read(&place, key, &req, err);
	if (!rc && !req)
		rc = err_set(err, -ESTALE, "%s: its document was deleted", path);
	if (rc)
		return rc;
	const struct store_answer *answer = &req->answer;
	const struct store_cond same = {.if_match = answer->meta.etag};
	const struct store_cond any = {.if_none_match = NULL};
	rc = c->schema->edit_acls(answer->body.data, answer->body.len, acls, &text, err);
	if (rc)
		return err_wrap(err, rc, "%s", key);
	return document_write(&place, key, text.data, text.len, answer->meta.etag[0] ? &same : &any,
			      NULL, err);
}

/* ---- domains ---- */

static void set_garbage(const struct change *c, const struct schema_document *d,
			struct change_garbage *out)
{
	out->any = c->schema->domain_of_root(d->info.root, &out->storage, NULL) == 0;
}

int change_remove_domain(const struct change *c, const char *path,
			 const struct schema_document *domain, struct change_garbage *out,
			 struct err *err)
{
	*out = (struct change_garbage){0};
	const int rc = delete_document(c, path, domain, err);
	if (!rc)
		set_garbage(c, domain, out);
	return rc;
}

/* ---- the record of a rename ---- */

static int record_key(const struct change *c, uint64_t storage, char key[SCHEMA_KEY_MAX + 1],
		      struct err *err)
{
	static const char name[] = ".rename";
	const int n = c->schema->storage_prefix(storage, key, SCHEMA_KEY_MAX + 1 - sizeof(name));
	if (n < 0)
		return err_set(err, n, "the path of the storage is too long");
	strcpy(key + n, name);
	return 0;
}

static bool in_one_folder(const char *a, const char *b)
{
	const char *end_a = strrchr(a, '/'), *end_b = strrchr(b, '/');
	const size_t n = end_a ? (size_t)(end_a - a) : 0;
	return n == (end_b ? (size_t)(end_b - b) : 0) && memcmp(a, b, n) == 0;
}

/* Puts the record, both names with a NUL each, and sets its key. "": the rename needs none. */
static int put_record(const struct change *c, const struct schema_document *domain,
		      const char *from, const char *to, char key[SCHEMA_KEY_MAX + 1],
		      struct err *err)
{
	const struct document_place place = place_of(c);
	const struct store_cond none = {0};
	auto_bytes struct bytes text = {0};
	uint64_t storage;
	key[0] = '\0';
	if (in_one_folder(from, to) || c->schema->domain_of_root(domain->info.root, &storage, NULL))
		return 0;
	if (bytes_append(&text, from, strlen(from) + 1) || bytes_append(&text, to, strlen(to) + 1))
		return err_set(err, -ENOMEM, "out of memory");
	const int rc = record_key(c, storage, key, err);
	return rc ? rc : document_write(&place, key, text.data, text.len, &none, NULL, err);
}

/* A record that stays does no harm. */
static void delete_record(const struct change *c, const char *key)
{
	auto_request struct store_request *req =
		key[0] ? store_request_new(c->store, STORE_DELETE) : NULL;
	if (!req)
		return;
	store_request_key(req, key);
	store_run(c->store, req);
}

/* Whether a name in the record leads to the storage: 1, 0 or a negative errno. */
static int record_names(const struct change *c, uint64_t storage, struct err *err)
{
	const struct document_place place = place_of(c);
	char key[SCHEMA_KEY_MAX + 1];
	auto_request struct store_request *req = NULL;
	int rc = record_key(c, storage, key, err);
	if (!rc)
		rc = document_read(&place, key, &req, err);
	if (rc || !req)
		return rc;
	const struct bytes *text = &req->answer.body;
	size_t at = 0;
	for (; !rc && at < text->len; at += strlen((const char *)text->data + at) + 1) {
		const char *path = (const char *)text->data + at;
		if (!memchr(path, '\0', text->len - at) || !store_key_ok(path))
			return err_set(err, -EIO, "%s: not the record of a rename", key);
		rc = document_names_storage(&place, path, storage, err);
	}
	return rc;
}

int change_rename_domain(const struct change *c, const char *from,
			 const struct schema_document *domain, const char *to,
			 const struct schema_document *target, struct change_garbage *out,
			 struct err *err)
{
	const struct document_place place = place_of(c);
	const struct store_cond cond = {
		.if_none_match = target ? NULL : "*",
		.if_match = target ? target->etag : NULL,
	};
	char record[SCHEMA_KEY_MAX + 1];
	*out = (struct change_garbage){0};
	int rc = put_record(c, domain, from, to, record, err);
	if (rc)
		return rc;
	rc = document_put(&place, to, &domain->info, &cond, NULL, err);
	if (rc == -EEXIST || rc == -ESTALE)
		delete_record(c, record);
	if (rc == -EEXIST)
		return err_set(err, rc, "%s: it exists", to);
	if (rc)
		return rc;
	if (target && strcmp(target->info.root, domain->info.root) != 0)
		set_garbage(c, target, out);
	rc = delete_document(c, from, domain, err);
	if (rc)
		return err_wrap(err, rc, "%s has the name %s now, too", from, to);
	delete_record(c, record);
	return 0;
}

int change_has_storage(const struct change *c, const char *path, uint64_t storage, struct err *err)
{
	const struct document_place place = place_of(c);
	return document_names_storage(&place, path, storage, err);
}

int change_collect(const struct change *c, const char *path, const struct change_garbage *g,
		   uint64_t *deleted, struct err *err)
{
	const struct document_place place = place_of(c);
	char prefix[SCHEMA_KEY_MAX + 1];
	*deleted = 0;
	if (!g->any)
		return 0;
	int rc = storage_is_shared(&place, path, g->storage, err);
	if (!rc)
		rc = record_names(c, g->storage, err);
	if (rc)
		return rc < 0 ? rc : 0;
	rc = c->schema->storage_prefix(g->storage, prefix, sizeof(prefix));
	if (rc < 0)
		return err_set(err, rc, "%s: the path of its storage is too long", path);
	return storage_purge(&place, prefix, deleted, err);
}
