/* SPDX-License-Identifier: Apache-2.0 */
/* Domain documents: gets them side by side, keeps what the name space needs. Any thread. */
#include "doc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "text.h"

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
	free(d->why);
	*d = (struct doc){0};
}

/* {"user":{"create":true,…},…}, as the document has it; NULL without memory. */
static char *acls_json(const struct domain *d)
{
	auto_bytes struct bytes out = {0};
	int rc = text_add(&out, "{");
	for (uint32_t i = 0; !rc && i < d->nacls; i++) {
		rc = text_add(&out, i ? "," : "");
		if (!rc)
			rc = text_json_string(&out, d->acls[i].user);
		for (size_t p = 0; !rc && p < sizeof(perm_names) / sizeof(perm_names[0]); p++)
			rc = text_add(&out, "%s\"%s\":%s", p ? "," : ":{", perm_names[p].name,
				      d->acls[i].perms & perm_names[p].perm ? "true" : "false");
		if (!rc)
			rc = text_add(&out, "}");
	}
	if (!rc)
		rc = text_add(&out, "}");
	return rc ? NULL : text_take(&out);
}

static int break_doc(struct doc *out, int code, const char *key, const struct err *why)
{
	struct err err = ERR_INIT;
	err_copy(&err, why);
	err_wrap(&err, code, "%s", key);
	out->kind = DOC_BROKEN;
	out->code = code;
	/* A file that says why when it is opened, rather than one that may not be opened. */
	out->file_mode = 0444;
	out->dir_mode = 0555;
	out->why = strdup(err.msg);
	return out->why ? 0 : -ENOMEM;
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
	arena_free(arena);
	return out->owner && out->acls ? 0 : -ENOMEM;
}

static int take_result(struct engine *e, const char *key, const struct store_get_result *res,
		       struct doc *out)
{
	switch (res->code) {
	case 0:
		return parse_doc(e, key, res, out);
	case -ENOENT:
	case -ENOTDIR:
	case -EINVAL: /* a key that no store can hold */
		return 0;
	default:
		return break_doc(out, res->code, key, &res->err);
	}
}

/* At most GETS_AT_ONCE. */
static int get_some(struct engine *e, const char *const *paths, size_t n, struct doc *out)
{
	auto_free char *keys = calloc(n, SCHEMA_KEY_MAX + 1);
	auto_free struct store_get *reqs = calloc(n, sizeof(*reqs));
	auto_free struct store_get_result *results = calloc(n, sizeof(*results));
	auto_free size_t *index = calloc(n, sizeof(*index));
	size_t nreqs = 0;
	if (!keys || !reqs || !results || !index)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		char *key = keys + nreqs * (SCHEMA_KEY_MAX + 1);
		/* A path too long for a document has none. */
		if (e->schema->domain_key(paths[i], key, SCHEMA_KEY_MAX + 1) < 0)
			continue;
		index[nreqs] = i;
		reqs[nreqs++] = (struct store_get){
			.op = STORE_GET, .key = key, .length = UINT64_MAX, .max = DOC_MAX};
	}
	int rc = nreqs ? store_get_many(e->store, reqs, nreqs, results) : 0;
	if (rc)
		return rc;
	for (size_t i = 0; i < nreqs; i++) {
		if (!rc)
			rc = take_result(e, reqs[i].key, &results[i], &out[index[i]]);
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
