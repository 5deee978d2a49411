/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a domain, or all domains below a directory, one after the other. See check.h. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <engine/parts.h>
#include <names/names.h>

/* Paths that are not visited yet. Directories are visited in order, without recursion. */
struct path {
	struct path *next;
	char text[];
};

struct walk {
	struct check *c;
	struct engine *e;
	const char *dir; /* the directory that is being listed */
	/* Where the entries of that directory are inserted. The directories that were found earlier
	 * follow them. */
	struct path **at;
	int rc;
};

static int add_path(void *arg, const char *name, enum names_kind kind)
{
	struct walk *w = arg;
	auto_free char *text = w->dir[0] ? names_join(w->dir, name) : strdup(name);
	const size_t n = text ? strlen(text) + 1 : 0;
	struct path *p = text ? malloc(sizeof(*p) + n) : NULL;
	if (kind == NAMES_OBJECT && p) {
		free(p);
		return 0;
	}
	if (!p) {
		w->rc = err_no_memory(w->c->err);
		return w->rc;
	}
	memcpy(p->text, text, n);
	p->next = *w->at;
	*w->at = p;
	w->at = &p->next;
	return 0;
}

static int list_dir(struct walk *w, const char *path, struct path **at)
{
	struct err why = ERR_INIT;
	w->dir = path;
	w->at = at;
	const int rc = names_list(w->e->bucket.names, path, add_path, w, &why);
	/* A directory without a document vanishes with its last name. */
	if (rc && rc != -ENOENT && !w->rc)
		return check_find_alone(w->c, path, ENGINE_CHECK_UNCHECKED, NULL,
					"the directory cannot be listed: %s", why.msg);
	return w->rc;
}

static int visit(struct walk *w, const char *path, struct path **rest)
{
	auto_names_node struct names_node *n = NULL;
	struct err why = ERR_INIT;
	const int rc = names_resolve(w->e->bucket.names, path, &n, &why);
	if (rc) {
		w->c->is_gone = rc == -ENOENT;
		return w->c->is_gone
			       ? 0
			       : check_find_alone(w->c, path, ENGINE_CHECK_UNCHECKED, NULL,
						  "the path cannot be looked up: %s", why.msg);
	}
	if (n->doc.kind == NAMES_DOC_STORE)
		return check_domain(w->c, w->e, n);
	switch (n->kind) {
	case NAMES_DOMAIN:
		return check_domain(w->c, w->e, n);
	case NAMES_DIR:
		return list_dir(w, path, rest);
	case NAMES_OBJECT:
		break;
	}
	return 0;
}

/* Does the work of engine_check(). The caller releases what w->c has gathered. */
static int walk_from(struct walk *w, const char *path)
{
	auto_names_node struct names_node *n = NULL;
	struct engine *e = w->e;
	struct check *c = w->c;
	struct path *first = NULL;
	bool found = false;
	int rc = names_resolve(e->bucket.names, path, &n, c->err);
	if (rc == -ENOENT) {
		const int import = check_import_of(c, e, path, &found);
		return import || found ? import : rc;
	}
	if (rc)
		return rc;
	if (n->kind == NAMES_OBJECT)
		return err_set(c->err, -EINVAL, "%s: neither a domain nor a directory", path);
	rc = visit(w, path, &first);
	if (!rc && c->is_gone)
		rc = err_set(c->err, -ENOENT, "%s: it was removed during the check", path);
	while (first) {
		struct path *p = first;
		first = p->next;
		if (!rc)
			rc = visit(w, p->text, &first);
		free(p);
	}
	if (!rc && n->kind == NAMES_DIR)
		rc = check_imports(c, e, path);
	if (!rc && !n->path[0] && n->kind == NAMES_DIR && names_list_is_whole(e->bucket.names))
		rc = check_storages(c, e);
	if (!rc && !n->path[0] && n->kind == NAMES_DIR)
		rc = check_uploads(c, e);
	if (!rc && !n->path[0] && n->kind == NAMES_DIR)
		rc = check_temps(c, e);
	return rc;
}

int engine_check(struct engine *e, const char *path, bool all, const struct engine_check_sink *sink,
		 struct err *err)
{
	struct check c = {.sink = sink, .all = all, .err = err};
	return walk_from(&(struct walk){.c = &c, .e = e}, path);
}
