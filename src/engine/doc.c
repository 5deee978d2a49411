/* SPDX-License-Identifier: Apache-2.0 */
/* Domain documents: gets them side by side, keeps what the name space needs. Any thread. */
#include "doc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>

#include "internal.h"

enum {
	GETS_AT_ONCE = 256,
	DOC_ARENA = 16 << 20, /* bytes that one document may take when parsed */
};

static const struct {
	unsigned int perm;
	const char *name;
} perm_names[] = {
	{DOMAIN_PERM_CREATE, "create"},	   {DOMAIN_PERM_READ, "read"},
	{DOMAIN_PERM_UPDATE, "update"},	   {DOMAIN_PERM_DELETE, "delete"},
	{DOMAIN_PERM_READ_ACL, "readACL"}, {DOMAIN_PERM_UPDATE_ACL, "updateACL"},
};

void doc_release(struct doc *d)
{
	free(d->owner);
	free(d->acls);
	free(d->etag);
	free(d->why);
	*d = (struct doc){0};
}

/* False without memory. */
static bool copy_text(const char *text, char **out)
{
	*out = text ? strdup(text) : NULL;
	return *out || !text;
}

int doc_copy(const struct doc *d, struct doc *out)
{
	*out = *d;
	out->owner = out->acls = out->etag = out->why = NULL;
	if (copy_text(d->owner, &out->owner) && copy_text(d->acls, &out->acls) &&
	    copy_text(d->etag, &out->etag) && copy_text(d->why, &out->why))
		return 0;
	doc_release(out);
	return -ENOMEM;
}

/* {"user":{"create":true,…},…}, as the document has it; NULL without memory. */
static char *acls_json(const struct domain *d)
{
	struct str out = {0};
	str_add(&out, "{");
	for (uint32_t i = 0; i < d->nacls; i++) {
		str_add(&out, i ? "," : "");
		str_add_json(&out, d->acls[i].user);
		for (size_t p = 0; p < sizeof(perm_names) / sizeof(perm_names[0]); p++)
			str_addf(&out, "%s\"%s\":%s", p ? "," : ":{", perm_names[p].name,
				 d->acls[i].perms & perm_names[p].perm ? "true" : "false");
		str_add(&out, "}");
	}
	str_add(&out, "}");
	return str_take(&out);
}

static int fail_doc(struct doc *out, enum doc_kind kind, int code, const char *why)
{
	out->kind = kind;
	out->code = code;
	/* A file that says why when it is opened, rather than one that may not be opened. */
	out->file_mode = 0444;
	out->dir_mode = 0555;
	out->why = strdup(why);
	return out->why ? 0 : -ENOMEM;
}

static int break_doc(struct doc *out, int code, const char *key, const struct err *why)
{
	struct err err = ERR_INIT;
	err_copy(&err, why);
	err_wrap(&err, code, "%s", key);
	return fail_doc(out, DOC_BROKEN, code, err.msg);
}

int doc_close(int code, const char *why, struct doc *out)
{
	*out = (struct doc){0};
	int rc = fail_doc(out, DOC_CLOSED, code, why);
	if (rc)
		doc_release(out);
	return rc;
}

static int parse_doc(struct engine *e, const char *key, const struct store_get_result *res,
		     struct doc *out)
{
	struct err err = ERR_INIT;
	struct schema_domain parsed = {0};
	struct arena *arena = arena_new(DOC_ARENA);
	if (!arena)
		return -ENOMEM;
	int rc = e->schema->domain_parse(arena, res->body.data, res->body.len, &parsed, &err);
	if (rc) {
		arena_free(arena);
		return rc == -ENOMEM ? rc : break_doc(out, rc, key, &err);
	}
	out->kind = parsed.info.is_folder ? DOC_FOLDER : DOC_ROOT;
	out->root = parsed.root;
	out->file_mode = stat_mode(&parsed.info, false);
	out->dir_mode = stat_mode(&parsed.info, true);
	out->created_ns = parsed.info.created_ns;
	out->modified_ns = parsed.info.modified_ns;
	out->owner = strdup(parsed.info.owner ? parsed.info.owner : "");
	out->acls = acls_json(&parsed.info);
	out->etag = strdup(res->meta.etag);
	arena_free(arena);
	return out->owner && out->acls && out->etag ? 0 : -ENOMEM;
}

/* A node that remembers a document of this path; the caller unrefs. */
static struct node *recall(struct engine *e, const char *path)
{
	struct node *n = nodes_recall(e->nodes, path);
	if (!n && !names_has_extension(names_last(path))) {
		auto_free char *file = names_with_suffix(path, 1);
		n = file ? nodes_recall(e->nodes, file) : NULL;
	}
	if (n && n->doc.etag && n->doc.etag[0] && strcmp(n->path, path) == 0)
		return n;
	node_unref(n);
	return NULL;
}

bool doc_ask(struct engine *e, const char *path, struct doc_ask *ask, struct store_get *req)
{
	ask->known = NULL;
	if (e->schema->domain_key(path, ask->key, sizeof(ask->key)) < 0)
		return false;
	ask->known = recall(e, path);
	*req = (struct store_get){
		.op = STORE_GET,
		.key = ask->key,
		.length = UINT64_MAX,
		.max = DOC_MAX,
		.cond.if_none_match = ask->known ? ask->known->doc.etag : NULL,
	};
	return true;
}

int doc_take(struct engine *e, struct doc_ask *ask, const struct store_get_result *res,
	     struct doc *out)
{
	auto_node struct node *known = ask->known;
	int rc = 0;
	ask->known = NULL;
	*out = (struct doc){0};
	if (res->code == -EALREADY && known)
		return doc_copy(&known->doc, out);
	switch (res->code) {
	case 0:
		rc = parse_doc(e, ask->key, res, out);
		break;
	case -ENOENT:
	case -ENOTDIR:
	case -EINVAL: /* a key that no store can hold */
		break;
	default:
		rc = break_doc(out, res->code, ask->key, &res->err);
	}
	if (rc)
		doc_release(out);
	return rc;
}

/* At most GETS_AT_ONCE. */
static int get_some(struct engine *e, const char *const *paths, size_t n, struct doc *out)
{
	auto_free struct doc_ask *asks = calloc(n, sizeof(*asks));
	auto_free struct store_get *reqs = calloc(n, sizeof(*reqs));
	auto_free struct store_get_result *results = calloc(n, sizeof(*results));
	auto_free size_t *index = calloc(n, sizeof(*index));
	size_t nreqs = 0;
	if (!asks || !reqs || !results || !index)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (doc_ask(e, paths[i], &asks[nreqs], &reqs[nreqs]))
			index[nreqs++] = i;
	int rc = store_get_many(e->store, reqs, nreqs, results);
	for (size_t i = 0; i < nreqs; i++) {
		/* Without results they are zeroed: an empty document is a broken one. */
		int taken = doc_take(e, &asks[i], &results[i], &out[index[i]]);
		rc = rc ? rc : taken;
		bytes_release(&results[i].body);
	}
	return rc;
}

int docs_get(struct engine *e, const char *const *paths, size_t n, struct doc *out)
{
	memset(out, 0, n * sizeof(*out));
	for (size_t i = 0; i < n; i += GETS_AT_ONCE) {
		size_t some = n - i < GETS_AT_ONCE ? n - i : GETS_AT_ONCE;
		if (get_some(e, paths + i, some, out + i)) {
			for (size_t k = 0; k < n; k++)
				doc_release(&out[k]);
			return -ENOMEM;
		}
	}
	return 0;
}
