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
#include "probe.h"

bool namespace_is_hidden(const struct engine *e, const char *path)
{
	size_t len;
	if (e->schema->is_domain_key(path, &len) || e->schema->is_hidden(path))
		return true;
	auto_free char *prefix = names_join(path, "");
	return prefix && e->schema->is_hidden(prefix);
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
		int yes = rc ? 0 : probe_has_children(e, jobs[i].code, &jobs[i].page);
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

static int no_such(const char *path, struct err *err)
{
	return err_set(err, -ENOENT, "%s: no such file or directory", path);
}

/* 1 when the document alone decides what has this very name in the bucket; doc is taken over then.
 * 0 when more must be known. */
static int decide_by_doc(const char *path, struct doc *doc, struct node **out, struct err *err)
{
	int rc;
	if (doc->kind == DOC_FOLDER)
		rc = give(path, ENGINE_DIR, path, doc, out, err);
	else if (doc->kind == DOC_ROOT && names_has_extension(names_last(path)))
		rc = give(path, ENGINE_DOMAIN, path, doc, out, err);
	else
		return 0;
	return rc ? rc : 1;
}

/* What has this very name in the bucket. */
static int decide(const char *path, struct probe *p, struct node **out, struct err *err)
{
	struct doc none = {0};
	int rc = decide_by_doc(path, &p->doc, out, err);
	if (rc)
		return rc < 0 ? rc : 0;
	if (p->beneath < 0) {
		err_copy(err, &p->beneath_err);
		return err_wrap(err, p->beneath, "listing %s/", path);
	}
	if (p->beneath)
		return give(path, ENGINE_DIR, path, &p->doc, out, err);
	if (p->doc.kind == DOC_BROKEN && names_has_extension(names_last(path)))
		return give(path, ENGINE_DOMAIN, path, &p->doc, out, err);
	if (p->plain == -ENOENT || p->plain == -EINVAL || p->plain == -ENOTDIR)
		return no_such(path, err);
	if (p->plain) {
		err_copy(err, &p->plain_err);
		return err_wrap(err, p->plain, "%s", path);
	}
	rc = give(path, ENGINE_PLAIN, path, &none, out, err);
	if (!rc)
		(*out)->meta = p->meta;
	return rc;
}

/* The bare domain that is shown under a name with several suffixes: "run.h5.h5" is domain "run"
 * only when something else is "run.h5". Rare, and a round for each suffix. */
static int resolve_grown(struct engine *e, const char *mount_path, struct node **out,
			 struct err *err)
{
	auto_free char *path = strdup(mount_path);
	if (!path)
		return err_set(err, -ENOMEM, "no memory");
	for (int i = 0; i < NAMES_SUFFIXES && names_has_suffix(names_last(path)); i++) {
		path[strlen(path) - strlen(NAMES_SUFFIX)] = '\0';
		auto_node struct node *other = NULL;
		struct probe p;
		if (probe_name(e, path, NULL, &p))
			return err_set(err, -ENOMEM, "no memory");
		int rc = 0;
		bool found = !names_has_extension(names_last(path));
		if (!found)
			rc = decide(path, &p, &other, err);
		else if (p.doc.kind == DOC_ROOT || p.doc.kind == DOC_BROKEN)
			rc = give(mount_path, ENGINE_DOMAIN, path, &p.doc, out, err);
		else
			rc = no_such(mount_path, err);
		probe_release(&p);
		if (rc || found)
			return rc;
	}
	return no_such(mount_path, err);
}

/* "run" for "run.h5": the domain that is shown under this name when nothing else has it. NULL when
 * the name has no suffix, or one that a domain's own name may end with. */
static const char *bare_of(const char *path, char *copy)
{
	if (!names_has_suffix(names_last(path)))
		return NULL;
	copy[strlen(path) - strlen(NAMES_SUFFIX)] = '\0';
	return names_has_extension(names_last(copy)) ? NULL : copy;
}

static int resolve_name(struct engine *e, const char *path, struct node **out, struct err *err)
{
	auto_free char *copy = strdup(path);
	const char *bare = copy ? bare_of(path, copy) : NULL;
	struct probe p;
	if (!copy || probe_name(e, path, bare, &p))
		return err_set(err, -ENOMEM, "no memory");
	int rc = decide(path, &p, out, err);
	if (rc == -ENOENT && (p.bare.kind == DOC_ROOT || p.bare.kind == DOC_BROKEN))
		rc = give(path, ENGINE_DOMAIN, bare, &p.bare, out, err);
	probe_release(&p);
	if (rc == -ENOENT && !bare && names_has_suffix(names_last(path)))
		rc = resolve_grown(e, path, out, err);
	return rc;
}

static int resolve_root(struct engine *e, struct node **out, struct err *err)
{
	const char *path = "";
	struct doc doc;
	if (docs_get(e, &path, 1, &doc))
		return err_set(err, -ENOMEM, "no memory");
	return give(path, ENGINE_DIR, path, &doc, out, err);
}

/* What a document decided when it was asked for last, it decides again, as a rule: one small
 * request instead of several. 1 when it does. */
static int resolve_again(struct engine *e, const char *path, struct node **out, struct err *err)
{
	auto_node struct node *known = nodes_recall(e->nodes, path);
	struct doc doc;
	if (!known || strcmp(known->path, path) != 0 ||
	    (known->doc.kind != DOC_FOLDER && known->kind != ENGINE_DOMAIN))
		return 0;
	if (docs_get(e, &path, 1, &doc))
		return err_set(err, -ENOMEM, "no memory");
	int rc = decide_by_doc(path, &doc, out, err);
	if (rc == 0)
		doc_release(&doc);
	return rc;
}

static int resolve(struct engine *e, const char *path, struct node **out, struct err *err)
{
	if (path[0] == '\0')
		return resolve_root(e, out, err);
	if (!store_key_ok(path) || namespace_is_hidden(e, path))
		return no_such(path, err);
	int rc = resolve_again(e, path, out, err);
	if (rc)
		return rc < 0 ? rc : 0;
	return resolve_name(e, path, out, err);
}

int namespace_resolve(struct engine *e, const char *path, struct node **out, struct err *err)
{
	*out = nodes_get(e->nodes, path, engine_now(e));
	if (*out)
		return 0;
	int rc = resolve(e, path, out, err);
	/* What went wrong may be right again in a moment. */
	if (rc == 0 && (*out)->doc.kind != DOC_BROKEN)
		nodes_put(e->nodes, *out, engine_now(e) + e->ttl_ns);
	if (rc == -ENOENT)
		nodes_drop(e->nodes, path);
	return rc;
}

int engine_lookup(struct engine *e, const char *path, struct engine_stat *st, struct err *err)
{
	auto_node struct node *n = NULL;
	int rc = namespace_resolve(e, path, &n, err);
	if (rc == 0)
		stat_node(e, n, false, st);
	return rc;
}

int engine_getattr(struct engine *e, const char *path, struct engine_stat *st, struct err *err)
{
	auto_node struct node *n = NULL;
	int rc = namespace_resolve(e, path, &n, err);
	if (rc == 0)
		stat_node(e, n, true, st);
	return rc;
}
