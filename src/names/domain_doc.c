/* SPDX-License-Identifier: Apache-2.0 */
/* Domain documents: gets them side by side, keeps what names need. Any thread. */
#include "domain_doc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "name_cache.h"
#include "rules.h"

enum {
	GETS_AT_ONCE = 256,
	DOC_ARENA = 16 << 20, /* bytes that one document may take when parsed */
};

static int break_doc(struct names_doc *out, int code, const char *key, const struct err *why)
{
	struct err err = ERR_INIT;
	err_copy(&err, why);
	err_wrap(&err, code, "%s", key);
	return names_doc_fail(out, NAMES_DOC_BROKEN, code, err.msg);
}

static int parse_doc(struct names *ns, const struct store_request *req, struct names_doc *out)
{
	const struct bytes *body = &req->answer.body;
	struct err err = ERR_INIT;
	struct schema_domain parsed = {0};
	struct arena *arena = arena_new(DOC_ARENA);
	if (!arena)
		return -ENOMEM;
	int rc = ns->schema->domain_parse(arena, body->data, body->len, &parsed, &err);
	if (rc) {
		arena_free(arena);
		return rc == -ENOMEM ? rc : break_doc(out, rc, req->key, &err);
	}
	out->kind = parsed.info.is_folder ? NAMES_DOC_FOLDER : NAMES_DOC_ROOT;
	out->root = parsed.root;
	out->file_mode = names_mode(&parsed.info, false);
	out->dir_mode = names_mode(&parsed.info, true);
	out->created_ns = parsed.info.created_ns;
	out->modified_ns = parsed.info.modified_ns;
	out->owner = strdup(parsed.info.owner ? parsed.info.owner : "");
	out->acls = names_acls_json(&parsed.info);
	out->etag = strdup(req->answer.meta.etag);
	arena_free(arena);
	return out->owner && out->acls && out->etag ? 0 : -ENOMEM;
}

/* A node that remembers a document of this path; the caller unrefs. */
static struct names_node *recall(struct names *ns, const char *path)
{
	struct names_node *node = names_cache_recall(ns->cache, path);
	if (!node && !names_has_extension(names_last(path))) {
		auto_free char *file = names_with_suffix(path, 1);
		node = file ? names_cache_recall(ns->cache, file) : NULL;
	}
	if (node && node->doc.etag && node->doc.etag[0] && strcmp(node->path, path) == 0)
		return node;
	names_node_unref(node);
	return NULL;
}

bool names_doc_ask(struct names *ns, const char *path, struct names_doc_ask *ask,
		   struct store_request *req)
{
	ask->known = NULL;
	if (ns->schema->domain_key(path, req->key, req->room) < 0)
		return false;
	ask->known = recall(ns, path);
	req->max = NAMES_DOC_MAX;
	req->cond.if_none_match = ask->known ? ask->known->doc.etag : NULL;
	return true;
}

int names_doc_take(struct names *ns, struct names_doc_ask *ask, const struct store_request *req,
		   struct names_doc *out)
{
	auto_names_node struct names_node *known = ask->known;
	const struct store_answer *a = &req->answer;
	int rc = 0;
	ask->known = NULL;
	*out = (struct names_doc){0};
	if (a->state == STORE_PRESENT && a->unchanged)
		return names_doc_copy(&known->doc, out);
	/* A key that no store can hold is as good as absent. */
	const int failure = store_failure(a, NULL);
	if (a->state == STORE_PRESENT)
		rc = parse_doc(ns, req, out);
	else if (!store_absence(a) && failure != -EINVAL)
		rc = break_doc(out, failure, req->key, &a->err);
	if (rc)
		names_doc_release(out);
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
