/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a name in the mount to what is behind it (doc/SEMANTICS.md, "Names").
 *
 * Where a bucket has more than one thing for one name, the first of these is shown and the others
 * are left out: a domain of that very name; a directory; a plain object. A bare domain (no
 * extension) never takes a name from anything else: ".h5" is appended until the name is free, at
 * most NAMES_SUFFIXES times. A document that cannot be read counts as a domain's, so that opening
 * the file tells what is wrong, unless something lies beneath: then the directory is shown.
 *
 * list.c applies the same rules to whole directories. Any thread.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

bool namespace_is_hidden(const struct engine *e, const char *path)
{
	size_t len;
	if (e->schema->is_domain_key(path, &len) || e->schema->is_hidden(path))
		return true;
	auto_free char *prefix = names_join(path, "");
	return prefix && e->schema->is_hidden(prefix);
}

/* From the listing beneath a prefix that was limited to one item. */
static int has_children(const struct engine *e, int code, const struct store_page *page)
{
	size_t len;
	switch (code) {
	case 0:
		return page->n == 1 && !e->schema->is_domain_key(page->items[0].key, &len);
	case -E2BIG:
		return 1; /* two, so one of them is not the document */
	case -EINVAL:
	case -ENOTDIR:
	case -ENAMETOOLONG:
		return 0; /* no key can begin like this */
	default:
		return code;
	}
}

static int look_beneath(struct engine *e, const char *const *paths, size_t n, bool *found,
			struct err *err)
{
	auto_free struct store_list_job *jobs = calloc(n, sizeof(*jobs));
	auto_free char **prefixes = calloc(n, sizeof(char *));
	bool ready = jobs && prefixes;
	for (size_t i = 0; ready && i < n; i++) {
		prefixes[i] = names_join(paths[i], "");
		ready = prefixes[i] != NULL;
		jobs[i] =
			(struct store_list_job){.prefix = prefixes[i], .delimit = true, .limit = 1};
	}
	int rc = ready ? store_list_many(e->store, jobs, n) : -ENOMEM;
	if (rc)
		err_set(err, rc, "no memory");
	for (size_t i = 0; ready && i < n; i++) {
		int yes = rc ? 0 : has_children(e, jobs[i].code, &jobs[i].page);
		found[i] = yes > 0;
		if (yes < 0) {
			err_copy(err, &jobs[i].err);
			rc = err_wrap(err, yes, "listing %s", prefixes[i]);
		}
		store_page_release(&jobs[i].page);
	}
	for (size_t i = 0; prefixes && i < n; i++)
		free(prefixes[i]);
	return rc;
}

int namespace_have_children(struct engine *e, const char *const *paths, size_t n, bool *found,
			    struct err *err)
{
	enum { AT_ONCE = 64 };
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i += AT_ONCE)
		rc = look_beneath(e, paths + i, n - i < AT_ONCE ? n - i : AT_ONCE, found + i, err);
	return rc;
}

/* doc: taken over. */
static int give(const char *mount_path, enum engine_kind kind, const char *path, struct doc *doc,
		struct node **out, struct err *err)
{
	*out = node_new(mount_path, kind, path, doc);
	return *out ? 0 : err_set(err, -ENOMEM, "no memory");
}

static int resolve_plain(struct engine *e, const char *path, struct node **out, struct err *err)
{
	struct store_meta meta;
	struct doc none = {0};
	int rc = store_head(e->store, path, &meta, err);
	if (rc == -EINVAL || rc == -ENOTDIR)
		rc = -ENOENT;
	if (rc == -ENOENT)
		return err_set(err, rc, "%s: no such file or directory", path);
	if (rc)
		return err_wrap(err, rc, "%s", path);
	rc = give(path, ENGINE_PLAIN, path, &none, out, err);
	if (!rc)
		(*out)->meta = meta;
	return rc;
}

/* What has this very name in the bucket. */
static int resolve_real(struct engine *e, const char *path, struct node **out, struct err *err)
{
	struct doc doc;
	if (docs_get(e, &path, 1, &doc))
		return err_set(err, -ENOMEM, "no memory");
	bool named = names_has_extension(names_last(path));
	if (doc.kind == DOC_FOLDER)
		return give(path, ENGINE_DIR, path, &doc, out, err);
	if (doc.kind == DOC_ROOT && named)
		return give(path, ENGINE_DOMAIN, path, &doc, out, err);
	bool children = false;
	int rc = namespace_have_children(e, &path, 1, &children, err);
	if (rc == 0 && children)
		return give(path, ENGINE_DIR, path, &doc, out, err);
	if (rc == 0 && doc.kind == DOC_BROKEN && named)
		return give(path, ENGINE_DOMAIN, path, &doc, out, err);
	doc_release(&doc);
	return rc ? rc : resolve_plain(e, path, out, err);
}

/* The bare domain that is shown under this name, which nothing else has. */
static int resolve_bare(struct engine *e, const char *mount_path, struct node **out,
			struct err *err)
{
	auto_free char *path = strdup(mount_path);
	if (!path)
		return err_set(err, -ENOMEM, "no memory");
	for (int i = 0; i < NAMES_SUFFIXES && names_has_suffix(names_last(path)); i++) {
		path[strlen(path) - strlen(NAMES_SUFFIX)] = '\0';
		if (!names_has_extension(names_last(path))) {
			struct doc doc;
			if (docs_get(e, (const char *const *)&path, 1, &doc))
				return err_set(err, -ENOMEM, "no memory");
			if (doc.kind == DOC_ROOT || doc.kind == DOC_BROKEN)
				return give(mount_path, ENGINE_DOMAIN, path, &doc, out, err);
			doc_release(&doc);
			break;
		}
		/* "run.h5.h5" is domain "run" only when something else is "run.h5". */
		auto_node struct node *other = NULL;
		int rc = resolve_real(e, path, &other, err);
		if (rc)
			return rc;
	}
	return err_set(err, -ENOENT, "%s: no such file or directory", mount_path);
}

static int resolve_root(struct engine *e, struct node **out, struct err *err)
{
	const char *path = "";
	struct doc doc;
	if (docs_get(e, &path, 1, &doc))
		return err_set(err, -ENOMEM, "no memory");
	return give(path, ENGINE_DIR, path, &doc, out, err);
}

int namespace_resolve(struct engine *e, const char *path, struct node **out, struct err *err)
{
	int rc;
	*out = nodes_get(e->nodes, path, engine_now(e));
	if (*out)
		return 0;
	if (path[0] == '\0') {
		rc = resolve_root(e, out, err);
	} else if (!store_key_ok(path) || namespace_is_hidden(e, path)) {
		rc = err_set(err, -ENOENT, "%s: no such file or directory", path);
	} else {
		rc = resolve_real(e, path, out, err);
		if (rc == -ENOENT && names_has_suffix(names_last(path)))
			rc = resolve_bare(e, path, out, err);
	}
	/* What went wrong may be right again in a moment. */
	if (rc == 0 && e->ttl_ns && (*out)->doc.kind != DOC_BROKEN)
		nodes_put(e->nodes, *out, engine_now(e) + e->ttl_ns);
	return rc;
}

int engine_lookup(struct engine *e, const char *path, struct engine_stat *st, struct err *err)
{
	auto_node struct node *n = NULL;
	int rc = namespace_resolve(e, path, &n, err);
	if (rc == 0)
		stat_node(e, n, st);
	return rc;
}
