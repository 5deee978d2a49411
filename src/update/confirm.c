/* SPDX-License-Identifier: Apache-2.0 */
/* See update/confirm.h. */
#include <update/confirm.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <domain/domain.h>
#include <schema/schema.h>

#include <domain/documents.h>
#include <storage/storage_names.h>

enum { HEADS = 64 /* at the same time */ };

static struct document_place place_of(const struct confirm *c)
{
	return (struct document_place){
		.env = c->env, .store = c->store, .schema = c->schema, .cancelled = c->cancelled};
}

/* ---- the name ---- */

/* Returns 1 if the domain with a path has the root group, 0 if not, or a negative errno. `etag`
 * gets the version of its document; it may be NULL. */
static int leads_to_root(const struct confirm *c, const char *path, char *etag, struct err *err)
{
	const struct document_place p = place_of(c);
	struct schema_document *d = NULL;
	const int rc = document_get(&p, path, &d, err);
	const bool same = !rc && d && d->info.root && strcmp(d->info.root, c->root) == 0;
	if (same && etag)
		strncpy(etag, d->etag, STORE_ETAG_MAX - 1);
	schema_document_unref(d);
	return rc ? rc : same;
}

static int gone(const struct confirm *c, struct err *err)
{
	return err_set(err, -ESTALE,
		       "domain /%s: another program has removed or replaced it, so the changes are "
		       "not in the bucket",
		       c->path);
}

/* Finds another name of the storage. */
static int find_name(const struct confirm *c, char path[STORE_KEY_MAX + 1], struct err *err)
{
	const struct document_place p = place_of(c);
	struct storage storage;
	int rc = schema_storage_of_root(c->schema, c->root, &storage, err);
	if (!rc)
		rc = storage_names_find(&p, &storage, path, err);
	if (rc > 0)
		rc = leads_to_root(c, path, NULL, err);
	if (rc <= 0)
		return rc ? rc : gone(c, err);
	log_warning(c->env->log, "domain /%s is called /%s now; its changes are in the bucket",
		    c->path, path);
	return 0;
}

/* ---- the objects ---- */

static int find_objects(const struct confirm *c, const struct tree *t, struct err *err)
{
	const uint32_t n = tree_count(t);
	auto_free const char **ids = calloc(n + 1, sizeof(*ids));
	if (!ids)
		return err_no_memory(err);
	for (uint32_t i = 0; i < n; i++)
		ids[i] = tree_object(t, tree_nth(t, i))->o.id;
	if (n)
		qsort(ids, n, sizeof(*ids), str_compare);
	for (size_t i = 0; i < c->count; i++) {
		if (n && bsearch(&c->objects[i], ids, n, sizeof(*ids), str_compare))
			continue;
		if (tree_missing(t) || tree_problems(t))
			return err_set(err, -EIO,
				       "domain /%s: a part of it cannot be read, so it is not "
				       "known whether a link leads to object %s",
				       c->path, c->objects[i]);
		return err_set(err, -ESTALE,
			       "domain /%s: another program has removed object %s, so the changes "
			       "of it are not in the domain",
			       c->path, c->objects[i]);
	}
	return 0;
}

static int ignore_listing(void *ctx, const struct schema_listed *listed)
{
	return 0;
}

/* Reads the domain with a path. Fails with -ENOENT if it has another root group, or there is
 * none. */
static int read_domain(const struct confirm *c, const char *path, struct err *err)
{
	const struct schema_ops *const schemas[] = {c->schema, NULL};
	const struct domain_bucket bucket = {.env = c->env, .store = c->store, .schemas = schemas};
	struct domain_plan brief = {
		.is_brief = true, .listed = ignore_listing, .cancelled = c->cancelled};
	const struct domain_hint hint = {.previous = c->known, .plan = &brief};
	struct domain *d = NULL;
	int rc = domain_open(&bucket, path, &hint, &d, err);
	if (rc == -EISDIR)
		rc = -ENOENT;
	if (!rc && strcmp(domain_document(d)->info.root, c->root) != 0)
		rc = -ENOENT;
	if (!rc)
		rc = find_objects(c, domain_tree(d), err);
	domain_unref(d);
	return rc;
}

/* Checks the same as confirm_documents() by reading the domain. */
static int confirm_domain(const struct confirm *c, struct err *err)
{
	char path[STORE_KEY_MAX + 1];
	struct err why = ERR_INIT;
	int rc = leads_to_root(c, c->path, NULL, err);
	if (rc < 0)
		return rc;
	const bool has_name = rc;
	rc = has_name ? 0 : find_name(c, path, err);
	if (rc)
		return rc;
	rc = read_domain(c, has_name ? c->path : path, &why);
	if (rc == -ENOENT)
		return gone(c, err);
	if (rc)
		err_copy(err, &why);
	return rc;
}

int confirm_plan(const struct confirm *c, const struct plan *plan, struct err *err)
{
	struct confirm subject = *c;
	if (!plan->subject.root)
		return 0;
	subject.root = plan->subject.root;
	subject.objects = plan->subject.objects;
	subject.count = plan->subject.count;
	return confirm_domain(&subject, err);
}

/* ---- versions ---- */

struct heads {
	const struct confirm *c;
	const struct confirm_document *docs;
	bool is_domain_same, is_all_same;
	struct err *err;
};

static bool request_head(void *arg, size_t i, struct store_request *req)
{
	const struct heads *h = arg;
	store_request_reset(req, STORE_HEAD);
	store_request_key(req, h->docs[i].key);
	req->priority = STORE_COMMIT;
	req->cancelled = cancelled_by(h->c->cancelled);
	return true;
}

static int take_head(void *arg, size_t i, struct store_request *req)
{
	struct heads *h = arg;
	const char *version = h->docs[i].version;
	const int rc = store_failure(&req->answer, h->err);
	const bool same = !rc && !store_absence(&req->answer) && version[0] &&
			  strcmp(req->answer.meta.etag, version) == 0;
	if (i == 0)
		h->is_domain_same = same;
	else
		h->is_all_same &= same;
	return rc;
}

int confirm_documents(const struct confirm *c, const struct confirm_document *docs, size_t n,
		      char document[STORE_ETAG_MAX], struct err *err)
{
	struct heads h = {.c = c, .docs = docs, .is_all_same = true, .err = err};
	const struct store_sequence heads = {
		.n = n, .window = HEADS, .request = request_head, .take = take_head, .arg = &h};
	char path[STORE_KEY_MAX + 1];
	int rc = store_run_sequence(c->store, &heads);
	if (rc == -ENOMEM)
		return err_no_memory(err);
	if (rc)
		return rc;
	if (!h.is_all_same)
		return confirm_domain(c, err);
	rc = h.is_domain_same ? 1 : leads_to_root(c, c->path, document, err);
	if (rc < 0)
		return rc;
	return rc ? 0 : find_name(c, path, err);
}
