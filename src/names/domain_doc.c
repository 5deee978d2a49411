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

static int parse_doc(struct names *ns, const char *key, const struct store_get_result *res,
		     struct names_doc *out)
{
	struct err err = ERR_INIT;
	struct schema_domain parsed = {0};
	struct arena *arena = arena_new(DOC_ARENA);
	if (!arena)
		return -ENOMEM;
	int rc = ns->schema->domain_parse(arena, res->body.data, res->body.len, &parsed, &err);
	if (rc) {
		arena_free(arena);
		return rc == -ENOMEM ? rc : break_doc(out, rc, key, &err);
	}
	out->kind = parsed.info.is_folder ? NAMES_DOC_FOLDER : NAMES_DOC_ROOT;
	out->root = parsed.root;
	out->file_mode = names_mode(&parsed.info, false);
	out->dir_mode = names_mode(&parsed.info, true);
	out->created_ns = parsed.info.created_ns;
	out->modified_ns = parsed.info.modified_ns;
	out->owner = strdup(parsed.info.owner ? parsed.info.owner : "");
	out->acls = names_acls_json(&parsed.info);
	out->etag = strdup(res->meta.etag);
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
		   struct store_get *req)
{
	ask->known = NULL;
	if (ns->schema->domain_key(path, ask->key, sizeof(ask->key)) < 0)
		return false;
	ask->known = recall(ns, path);
	*req = (struct store_get){
		.op = STORE_GET,
		.key = ask->key,
		.length = UINT64_MAX,
		.max = NAMES_DOC_MAX,
		.cond.if_none_match = ask->known ? ask->known->doc.etag : NULL,
	};
	return true;
}

int names_doc_take(struct names *ns, struct names_doc_ask *ask, const struct store_get_result *res,
		   struct names_doc *out)
{
	auto_names_node struct names_node *known = ask->known;
	int rc = 0;
	ask->known = NULL;
	*out = (struct names_doc){0};
	if (res->code == -EALREADY && known)
		return names_doc_copy(&known->doc, out);
	switch (res->code) {
	case 0:
		rc = parse_doc(ns, ask->key, res, out);
		break;
	case -ENOENT:
	case -ENOTDIR:
	case -EINVAL: /* a key that no store can hold */
		break;
	default:
		rc = break_doc(out, res->code, ask->key, &res->err);
	}
	if (rc)
		names_doc_release(out);
	return rc;
}

/* At most GETS_AT_ONCE. */
static int get_some(struct names *ns, const char *const *paths, size_t n, struct names_doc *out)
{
	auto_free struct names_doc_ask *asks = calloc(n, sizeof(*asks));
	auto_free struct store_get *reqs = calloc(n, sizeof(*reqs));
	auto_free struct store_get_result *results = calloc(n, sizeof(*results));
	auto_free size_t *index = calloc(n, sizeof(*index));
	size_t nreqs = 0;
	if (!asks || !reqs || !results || !index)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (names_doc_ask(ns, paths[i], &asks[nreqs], &reqs[nreqs]))
			index[nreqs++] = i;
	int rc = store_get_many(ns->store, reqs, nreqs, results);
	for (size_t i = 0; i < nreqs; i++) {
		/* Without results they are zeroed: an empty document is a broken one. */
		int taken = names_doc_take(ns, &asks[i], &results[i], &out[index[i]]);
		rc = rc ? rc : taken;
		bytes_release(&results[i].body);
	}
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
