/* SPDX-License-Identifier: Apache-2.0 */
/* See documents.h. */
#include <domain/documents.h>

#include <errno.h>
#include <string.h>

#include <base/mem.h>

enum { DOCUMENT_MAX = 16 << 20 /* bytes; the documents of domains have a few hundred */ };

/* ---- reading ---- */

int document_read(const struct document_place *p, const char *key, struct store_request **out,
		  struct err *err)
{
	struct store_request *req = store_request_new(p->store, STORE_GET);
	*out = NULL;
	if (!req)
		return err_no_memory(err);
	store_request_key(req, key);
	req->max = DOCUMENT_MAX;
	req->cancelled = cancelled_by(p->cancelled);
	store_run(p->store, req);
	int rc = store_failure(&req->answer, err);
	if (rc || store_absence(&req->answer)) {
		store_request_free(req);
		return rc;
	}
	*out = req;
	return 0;
}

int document_get(const struct document_place *p, const char *path, struct schema_document **out,
		 struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	unsigned int step = 0;
	struct schema_request needed = {.key = key, .room = sizeof(key)};
	const struct schema_answer *last = NULL;
	struct schema_answer answer;
	auto_request struct store_request *req = NULL;
	int rc;
	*out = NULL;
	while ((rc = p->schema->classify(path, NULL, &step, last, &needed, out, err)) ==
	       SCHEMA_NEEDS_ANSWER) {
		store_request_free(req);
		rc = document_read(p, key, &req, err);
		if (rc)
			return rc;
		answer = (struct schema_answer){.absent = !req};
		if (req) {
			answer.etag = req->answer.meta.etag;
			answer.body = req->answer.body.data;
			answer.len = req->answer.body.len;
		}
		last = &answer;
	}
	if (*out && !(*out)->schema)
		(*out)->schema = p->schema;
	return rc ? err_wrap(err, rc, "%s", key) : 0;
}

int document_parse(const struct document_place *p, const char *path, const void *text, size_t n,
		   struct schema_document **out, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	unsigned int step = 0;
	struct schema_request needed = {.key = key, .room = sizeof(key)};
	const struct schema_answer answer = {.etag = "", .body = text, .len = n};
	*out = NULL;
	int rc = p->schema->classify(path, NULL, &step, NULL, &needed, out, err);
	if (rc == SCHEMA_NEEDS_ANSWER)
		rc = p->schema->classify(path, NULL, &step, &answer, &needed, out, err);
	if (rc < 0)
		return rc;
	if (rc || !*out)
		return err_set(err, -EIO, "it is not the document of a domain or folder");
	if (!(*out)->schema)
		(*out)->schema = p->schema;
	return 0;
}

int document_above(const struct document_place *p, const char *path, struct schema_document **out,
		   size_t *len, struct err *err)
{
	auto_free char *above = strdup(path);
	int rc = above ? 0 : err_no_memory(err);
	*out = NULL;
	while (!rc && !*out) {
		char *slash = strrchr(above, '/');
		if (!slash)
			return 0;
		*slash = '\0';
		rc = document_get(p, above, out, err);
		*len = strlen(above);
	}
	if (rc || !(*out)->info.root)
		return rc;
	schema_document_unref(*out);
	*out = NULL;
	return err_set(err, -ENOTDIR, "%s: %s is a domain, not a folder", path, above);
}

int document_key(const struct document_place *p, const char *path, char *key, size_t room,
		 struct err *err)
{
	if (!p->schema->documents)
		return err_set(err, -EOPNOTSUPP,
			       "%s: schema %s has no document that can be changed apart from the "
			       "data",
			       path, p->schema->name);
	const int n = p->schema->documents->key(path, key, room);
	return n < 0 ? err_set(err, n, "%s: the path is too long", path) : 0;
}

int document_exists(const struct document_place *p, const char *key, struct err *err)
{
	struct store_meta meta;
	return store_look(p->store, key, p->cancelled, &meta, err);
}

/* ---- writing ---- */

int document_write(const struct document_place *p, const char *key, const void *bytes, size_t n,
		   const struct store_cond *cond, struct document_answer *answer, struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->store, STORE_PUT);
	const struct piece piece = {bytes, n};
	if (!req)
		return err_no_memory(err);
	store_request_key(req, key);
	req->pieces = &piece;
	req->n_pieces = n ? 1 : 0;
	req->cond = *cond;
	req->cancelled = cancelled_by(p->cancelled);
	store_run(p->store, req);
	if (answer) {
		memcpy(answer->etag, req->answer.meta.etag, STORE_ETAG_MAX);
		answer->repeated = req->answer.repeated;
	}
	return store_failure(&req->answer, err);
}

int document_put(const struct document_place *p, const char *path, const struct domain_info *info,
		 const struct store_cond *cond, struct document_answer *answer, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	auto_bytes struct bytes text = {0};
	int rc = document_key(p, path, key, sizeof(key), err);
	if (!rc)
		rc = p->schema->documents->emit(info, &text, err);
	return rc ? rc : document_write(p, key, text.data, text.len, cond, answer, err);
}

int document_put_folder(const struct document_place *p, const char *path, const char *owner,
			int64_t now_ns, struct err *err)
{
	struct domain_acl acls[] = {{owner, DOCUMENT_ALL_PERMS}, {"default", DOMAIN_PERM_READ}};
	const struct domain_info info = {.owner = owner,
					 .nacls = 2,
					 .acls = acls,
					 .created_ns = now_ns,
					 .modified_ns = now_ns};
	const struct store_cond absent = {.if_none_match = "*"};
	return document_put(p, path, &info, &absent, NULL, err);
}

int document_delete_key(const struct document_place *p, const char *key, const char *version,
			enum document_found *found, struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->store, STORE_DELETE);
	if (!req)
		return err_no_memory(err);
	store_request_key(req, key);
	req->cond.if_match = version && version[0] ? version : NULL;
	req->cancelled = cancelled_by(p->cancelled);
	store_run(p->store, req);
	const int rc = store_failure(&req->answer, err);
	const bool is_deleted = !rc && !req->answer.was_absent;
	if (found)
		*found = is_deleted		? DOCUMENT_WAS_THERE
			 : req->answer.repeated ? DOCUMENT_MAY_BE_OURS
						: DOCUMENT_WAS_ABSENT;
	return rc;
}

int document_delete(const struct document_place *p, const char *path, const char *version,
		    enum document_found *found, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	const int rc = document_key(p, path, key, sizeof(key), err);
	return rc ? rc : document_delete_key(p, key, version, found, err);
}
