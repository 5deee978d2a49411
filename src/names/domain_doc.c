/* SPDX-License-Identifier: Apache-2.0 */
/* Domain documents: gets them side by side, keeps what names need. Any thread. */
#include "domain_doc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "name_cache.h"
#include "rules.h"

enum { GETS_AT_ONCE = 256 };

static int break_doc(struct names_doc *out, int code, const char *key, const struct err *why)
{
	struct err err = ERR_INIT;
	err_copy(&err, why);
	err_wrap(&err, code, "%s", key);
	return names_doc_fail(out, NAMES_DOC_BROKEN, code, err.msg);
}

/* A node that remembers a document of this path; the caller unrefs. */
static struct names_node *recall(struct names *ns, const char *path)
{
	struct names_node *node = names_cache_recall(ns->cache, path);
	if (!node && !names_has_extension(names_last(path))) {
		auto_free char *file = names_with_suffix(path, 1);
		node = file ? names_cache_recall(ns->cache, file) : NULL;
	}
	if (node && node->doc.document && node->doc.document->etag[0] &&
	    strcmp(node->path, path) == 0)
		return node;
	names_node_unref(node);
	return NULL;
}

bool names_doc_ask(struct names *ns, const char *path, struct names_doc_ask *ask,
		   struct store_request *req)
{
	struct schema_ask first = {.key = req->key, .room = req->room};
	struct schema_document *none;
	*ask = (struct names_doc_ask){.path = path};
	if (schema_classify(ns->schemas, path, &ask->classify, NULL, &first, &none, NULL) !=
	    SCHEMA_ASKS)
		return false;
	ask->known = recall(ns, path);
	if (ask->known && ask->known->doc.document->schema != ns->schemas[ask->classify.schema]) {
		names_node_unref(ask->known);
		ask->known = NULL;
	}
	req->max = NAMES_DOC_MAX;
	req->cond.if_none_match = ask->known ? ask->known->doc.document->etag : NULL;
	return true;
}

/* Gives the answer in req to the machine. SCHEMA_ASKS: then req asks for more; 0: *out is filled,
 * unless there is no document; -ENOMEM. */
static int advance(struct names *ns, struct names_doc_ask *ask, struct store_request *req,
		   struct names_doc *out)
{
	const struct store_answer *a = &req->answer;
	const int failure = store_failure(a, NULL);
	char key[SCHEMA_KEY_MAX + 1];
	struct schema_ask more = {.key = key, .room = sizeof(key)};
	struct schema_document *document;
	struct err err = ERR_INIT;
	const struct schema_answer answer = {
		/* A key that no store can hold is as good as absent. */
		.absent = store_absence(a) || failure == -EINVAL,
		.etag = a->meta.etag,
		.body = a->body.data,
		.len = a->body.len,
	};
	if (failure && failure != -EINVAL)
		return break_doc(out, failure, req->key, &a->err);
	int rc = schema_classify(ns->schemas, ask->path, &ask->classify, &answer, &more, &document,
				 &err);
	if (rc == SCHEMA_ASKS) {
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

int names_doc_take(struct names *ns, struct names_doc_ask *ask, struct store_request *req,
		   struct names_doc *out)
{
	auto_names_node struct names_node *known = ask->known;
	const struct store_answer *a = &req->answer;
	ask->known = NULL;
	*out = (struct names_doc){0};
	if (a->state == STORE_PRESENT && a->unchanged)
		return names_doc_copy(&known->doc, out);
	int rc = advance(ns, ask, req, out);
	while (rc == SCHEMA_ASKS) {
		store_run(ns->store, req);
		rc = advance(ns, ask, req, out);
	}
	return rc;
}

/* At most GETS_AT_ONCE. */
static int get_some(struct names *ns, const char *const *paths, size_t n, struct names_doc *out)
{
	auto_free struct names_doc_ask *asks = calloc(n, sizeof(*asks));
	auto_free size_t *index = calloc(n, sizeof(*index));
	struct store_request **reqs = store_requests_new(ns->store, n);
	size_t nreqs = 0;
	int rc = asks && index && reqs ? 0 : -ENOMEM;
	for (size_t i = 0; !rc && i < n; i++)
		if (names_doc_ask(ns, paths[i], &asks[nreqs], reqs[nreqs]))
			index[nreqs++] = i;
	if (!rc)
		store_run_all(ns->store, reqs, nreqs);
	for (size_t i = 0; i < nreqs; i++) {
		int taken = names_doc_take(ns, &asks[i], reqs[i], &out[index[i]]);
		rc = rc ? rc : taken;
	}
	store_requests_free(reqs, n);
	return rc;
}

int names_docs_get(struct names *ns, const char *const *paths, size_t n, struct names_doc *out)
{
	memset(out, 0, n * sizeof(*out));
	for (size_t i = 0; i < n; i += GETS_AT_ONCE) {
		size_t some = n - i < GETS_AT_ONCE ? n - i : GETS_AT_ONCE;
		if (get_some(ns, paths + i, some, out + i)) {
			for (size_t k = 0; k < n; k++)
				names_doc_release(&out[k]);
			return -ENOMEM;
		}
	}
	return 0;
}
