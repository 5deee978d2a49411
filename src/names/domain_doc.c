/* SPDX-License-Identifier: Apache-2.0 */
/* See domain_doc.h. Any thread. */
#include "domain_doc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <store/page.h>

#include "name_cache.h"
#include "rules.h"

static int break_doc(struct names_doc *out, int code, const char *key, const struct err *why)
{
	struct err err = ERR_INIT;
	err_copy(&err, why);
	err_wrap(&err, code, "%s", key);
	return names_doc_fail(out, NAMES_DOC_BROKEN, code, err.msg);
}

/* The cached node with the document of this path, or NULL. The caller unrefs. */
static struct names_node *recall(struct names *ns, const char *path)
{
	struct names_node *node = names_cache_recall(ns->cache, path);
	const bool is_bare = !names_has_extension(names_last(path));
	const char *suffix;
	for (size_t i = 0; !node && is_bare && (suffix = names_next_suffix(ns->schemas, &i));) {
		auto_free char *file = names_with_suffix(path, suffix);
		node = file ? names_cache_recall(ns->cache, file) : NULL;
	}
	if (node && node->doc.document && node->doc.kind != NAMES_DOC_STORE &&
	    node->doc.document->etag[0] && strcmp(node->path, path) == 0)
		return node;
	names_node_unref(node);
	return NULL;
}

bool names_doc_is_cached(struct names *ns, const char *path)
{
	auto_names_node struct names_node *known = recall(ns, path);
	return known;
}

bool names_doc_confirm(struct names *ns, const char *path, const struct store_page *page,
		       struct names_doc *out)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct schema_request first = {.key = key, .room = sizeof(key)};
	struct schema_document *none;
	auto_names_node struct names_node *known = recall(ns, path);
	if (!known)
		return false;
	struct schema_classify classify = schema_classify_again(ns->schemas, known->doc.document);
	classify.without_marks = true;
	if (schema_classify(ns->schemas, path, &classify, NULL, &first, &none, NULL) !=
	    SCHEMA_NEEDS_ANSWER)
		return false;
	const struct store_item *item = store_page_find(page, key);
	return item && strcmp(item->meta.etag, known->doc.document->etag) == 0 &&
	       names_doc_copy(&known->doc, out) == 0;
}

static bool has_key(const struct schema_listing *l, const char *key)
{
	return store_page_find(l->keys, key);
}

struct schema_listing names_doc_listing(const struct store_page *page)
{
	return (struct schema_listing){.has = has_key, .keys = page};
}

bool names_doc_prepare(struct names *ns, const char *path, const struct schema_listing *listing,
		       struct names_doc_request *doc, struct store_request *req)
{
	struct schema_request first = {.key = req->key, .room = req->room};
	struct schema_document *none;
	*doc = (struct names_doc_request){.path = path,
					  .classify = {.without_marks = true, .listing = listing}};
	if (schema_classify(ns->schemas, path, &doc->classify, NULL, &first, &none, NULL) !=
	    SCHEMA_NEEDS_ANSWER)
		return false;
	doc->known = recall(ns, path);
	if (doc->known && doc->known->doc.document->schema != ns->schemas[doc->classify.schema]) {
		names_node_unref(doc->known);
		doc->known = NULL;
	}
	/* A cache on disk may have the version that the listing shows. */
	const struct store_item *item = listing ? store_page_find(listing->keys, req->key) : NULL;
	req->known_etag = item ? item->meta.etag : NULL;
	req->max = NAMES_DOC_MAX;
	req->cond.if_none_match = doc->known ? doc->known->doc.document->etag : NULL;
	return true;
}

/* Passes the answer in req to the schema. Returns SCHEMA_NEEDS_ANSWER if req is the next request,
 * or 0 if *out is filled or there is no document. Fails with -ENOMEM. */
static int advance(struct names *ns, struct names_doc_request *doc, struct store_request *req,
		   struct names_doc *out)
{
	const struct store_answer *a = &req->answer;
	const int failure = store_failure(a, NULL);
	char key[SCHEMA_KEY_MAX + 1];
	struct schema_request more = {.key = key, .room = sizeof(key)};
	struct schema_document *document;
	struct err err = ERR_INIT;
	const struct schema_answer answer = {
		/* -EINVAL means that no store can hold such a key. */
		.absent = store_absence(a) || failure == -EINVAL,
		.etag = a->meta.etag,
		.body = a->body.data,
		.len = a->body.len,
	};
	if (failure && failure != -EINVAL)
		return break_doc(out, failure, req->key, &a->err);
	int rc = schema_classify(ns->schemas, doc->path, &doc->classify, &answer, &more, &document,
				 &err);
	if (rc == SCHEMA_NEEDS_ANSWER) {
		store_request_reset(req, STORE_GET);
		store_request_key(req, key);
		req->max = NAMES_DOC_MAX;
	} else if (rc) {
		return rc == -ENOMEM ? rc : break_doc(out, rc, req->key, &err);
	} else if (document) {
		out->kind = document->info.root ? NAMES_DOC_ROOT : NAMES_DOC_FOLDER;
		out->document = document;
	}
	return rc;
}

int names_doc_finish(struct names *ns, struct names_doc_request *doc, struct store_request *req,
		     struct names_doc *out)
{
	auto_names_node struct names_node *known = doc->known;
	const struct store_answer *a = &req->answer;
	doc->known = NULL;
	*out = (struct names_doc){0};
	if (a->state == STORE_PRESENT && a->unchanged)
		return names_doc_copy(&known->doc, out);
	int rc = advance(ns, doc, req, out);
	while (rc == SCHEMA_NEEDS_ANSWER) {
		store_run(ns->store, req);
		rc = advance(ns, doc, req, out);
	}
	return rc;
}

/* At most NAMES_AT_ONCE. */
static int get_some(struct names *ns, const char *const *paths, size_t n,
		    const struct schema_listing *listing, struct names_doc *out)
{
	auto_free struct names_doc_request *docs = calloc(n, sizeof(*docs));
	auto_free size_t *index = calloc(n, sizeof(*index));
	struct store_request **reqs = store_requests_new(ns->store, n);
	size_t nreqs = 0;
	int rc = docs && index && reqs ? 0 : -ENOMEM;
	for (size_t i = 0; !rc && i < n; i++)
		if (names_doc_prepare(ns, paths[i], listing, &docs[nreqs], reqs[nreqs]))
			index[nreqs++] = i;
	if (!rc)
		store_run_all(ns->store, reqs, nreqs);
	for (size_t i = 0; i < nreqs; i++) {
		int taken = names_doc_finish(ns, &docs[i], reqs[i], &out[index[i]]);
		rc = rc ? rc : taken;
	}
	store_requests_free(reqs, n);
	return rc;
}

int names_docs_get(struct names *ns, const char *const *paths, size_t n,
		   const struct schema_listing *listing, struct names_doc *out)
{
	memset(out, 0, n * sizeof(*out));
	for (size_t i = 0; i < n; i += NAMES_AT_ONCE) {
		size_t some = n - i < NAMES_AT_ONCE ? n - i : NAMES_AT_ONCE;
		if (get_some(ns, paths + i, some, listing, out + i)) {
			for (size_t k = 0; k < n; k++)
				names_doc_release(&out[k]);
			return -ENOMEM;
		}
	}
	return 0;
}
