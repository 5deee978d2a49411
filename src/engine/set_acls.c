/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attribute user.hsds.acls is set: the access control list in the document of a domain or
 * folder is replaced. A folder without a document gets one. A new file that is not in the bucket
 * yet keeps the list until its commit. Any thread.
 */
#include <drafts/drafts.h>
#include "engine_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

enum { ACLS_ARENA = 1 << 20 };

static int check_flags(const char *path, bool is_new, int flags, struct err *err)
{
	if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return err_set(err, -EINVAL, "%s: unknown flags", path);
	if (flags & XATTR_CREATE && !is_new)
		return err_set(err, -EEXIST, "%s: it has an access control list", path);
	if (flags & XATTR_REPLACE && is_new)
		return err_set(err, -ENODATA, "%s: it has no access control list", path);
	return 0;
}

/* The name is held, so the draft is not committed meanwhile. */
static int set_acls_of_draft(struct engine *e, const char *path, const struct domain_info *acls,
			     int flags, struct err *err)
{
	struct schema_document *old = drafts_acls(e->drafts, path);
	const int rc = check_flags(path, !old, flags, err);
	schema_document_unref(old);
	if (rc)
		return rc;
	struct schema_document *list = schema_document_new(acls, "");
	if (!list)
		return err_no_memory(err);
	drafts_set_acls(e->drafts, path, list);
	return 0;
}

static int set_acls(struct engine *e, const char *path, const struct domain_info *acls, int flags,
		    struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	struct change c = engine_change(e, NULL);
	struct change_versions versions;
	bool now;
	if (drafts_is_alone(e->drafts, path))
		return set_acls_of_draft(e, path, acls, flags, err);
	int rc = names_resolve_for_open(e->bucket.names, path, &n, &now, err);
	if (rc)
		return rc;
	const enum names_doc_kind kind = n->doc.kind;
	const bool is_new = kind == NAMES_DOC_NONE;
	if (n->kind == NAMES_OBJECT || (is_new && !path[0]))
		return err_set(err, -EOPNOTSUPP, "%s: it can have no access control list",
			       path[0] ? path : "/");
	if (kind == NAMES_DOC_STORE)
		return err_set(err, -EOPNOTSUPP, "%s: a domain of this format has none", path);
	if (kind == NAMES_DOC_BROKEN || kind == NAMES_DOC_UNLISTABLE)
		return err_set(err, n->doc.code, "%s", n->doc.why);
	rc = check_flags(path, is_new, flags, err);
	if (rc)
		return rc;
	c.schema = is_new ? bucket_new_domains(&e->bucket) : n->doc.document->schema;
	rc = change_set_acls(&c, n->path, is_new, acls, &versions, err);
	names_changed(e->bucket.names, n->name);
	if (!rc && n->kind == NAMES_DOMAIN) {
		drafts_new_version(e->drafts, n->name, versions.from, versions.to);
		drafts_set_acls(e->drafts, n->name, NULL);
	}
	return rc;
}

int acls_set(struct engine *e, const char *path, const char *name, const void *value, size_t size,
	     int flags, struct err *err)
{
	struct domain_info acls;
	struct arena *a = arena_new(ACLS_ARENA);
	if (!a)
		return err_no_memory(err);
	struct draft_hold hold;
	draft_table_hold(e->drafts, &hold, path, NULL);
	int rc = schema_acls_parse(value, size, a, &acls, err);
	if (rc)
		rc = err_wrap(err, rc, "%s: %s", path, name);
	else
		rc = set_acls(e, path, &acls, flags, err);
	/* The list is replaced, whatever another program has made of it. */
	if (rc == -ESTALE)
		rc = set_acls(e, path, &acls, flags, err);
	draft_table_release(e->drafts, &hold);
	arena_free(a);
	return rc;
}
