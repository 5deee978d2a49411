/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a name in the mount to what is behind it (doc/SEMANTICS.md, "Names").
 *
 * Where a bucket has more than one thing for one name, the first of these is shown and the others
 * are left out: a domain of that very name; a directory; a plain object. A bare domain (no
 * extension) never takes a name from anything else: ".h5" is appended until the name is free, at
 * most NAMES_SUFFIXES times. A document that cannot be read counts as a domain's, so that opening
 * the file tells what is wrong, unless something lies beneath: then the directory is shown. What
 * cannot even be looked into is a directory, or a file if it is called like one, when the listing
 * of its directory shows it; so a store that refuses everything does not make every name exist.
 *
 * list.c applies the same rules to whole directories. Any thread.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "beneath.h"
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

static int give_closed(const char *path, const struct probe *p, struct node **out, struct err *err)
{
	struct doc closed;
	if (doc_close(p->beneath, p->beneath_err.msg, &closed))
		return err_set(err, -ENOMEM, "no memory");
	return give(path, beneath_closed_kind(path, &p->doc), path, &closed, out, err);
}

/* Neither the document nor what lies beneath can be seen: anything may be there, or nothing. */
static bool is_doubtful(const struct probe *p)
{
	return p->beneath < 0 || (p->doc.kind == DOC_BROKEN && p->beneath == BENEATH_NOTHING);
}

/* What failed after so long is as far as anybody knows the whole store's fault: another question
 * would take as long again. */
static bool took_long(const struct engine *e, uint64_t since_ns)
{
	const uint64_t long_ns = UINT64_C(10) * 1000000000;
	return engine_now(e) - since_ns >= long_ns;
}

/* 1 when that is decided, 0 when only an object can have the name. */
static int decide_doubtful(struct engine *e, const char *path, struct probe *p, struct node **out,
			   struct err *err)
{
	struct err own = ERR_INIT;
	const bool given_up =
		p->beneath == -ENOMEM || (p->beneath < 0 && took_long(e, p->asked_ns));
	int rc = 0, listed = given_up ? p->beneath : beneath_is_listed(e, path, &own);
	if (listed < 0) {
		err_copy(err, p->beneath < 0 ? &p->beneath_err : &own);
		return err_wrap(err, p->beneath < 0 ? p->beneath : listed, "listing %s/", path);
	}
	if (listed == LISTED_NOT)
		return no_such(path, err);
	if (listed == LISTED_OBJECT)
		return 0;
	if (p->beneath < 0)
		rc = give_closed(path, p, out, err);
	else if (names_has_extension(names_last(path)))
		rc = give(path, ENGINE_DOMAIN, path, &p->doc, out, err);
	else
		return 0;
	return rc ? rc : 1;
}

/* What has this very name in the bucket. */
static int decide(struct engine *e, const char *path, struct probe *p, struct node **out,
		  struct err *err)
{
	struct doc none = {0};
	int rc = decide_by_doc(path, &p->doc, out, err);
	if (!rc && is_doubtful(p))
		rc = decide_doubtful(e, path, p, out, err);
	if (rc)
		return rc < 0 ? rc : 0;
	if (p->beneath == BENEATH_MORE)
		return give(path, ENGINE_DIR, path, &p->doc, out, err);
	if (p->beneath == BENEATH_DOC && p->doc.kind == DOC_BROKEN &&
	    names_has_extension(names_last(path)))
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

/* 1 when a bare domain's file is shown although its document cannot be read. beneath: of its
 * path. Where nobody may look, the directory is shown and no file beside it. */
static int shows_broken(struct engine *e, const char *path, int beneath, struct err *err)
{
	if (beneath == BENEATH_DOC || beneath == BENEATH_MORE)
		return 1;
	int listed = beneath == -ENOMEM ? err_set(err, -ENOMEM, "no memory")
					: beneath_is_listed(e, path, err);
	if (listed < 0)
		return err_wrap(err, listed, "listing %s", path);
	return listed == LISTED_PREFIX && beneath == BENEATH_NOTHING;
}

/* A bare domain under a name that nothing else has. -ENOENT; doc is taken over on success. */
static int give_bare(struct engine *e, const char *mount_path, const char *path, int beneath,
		     struct doc *doc, struct node **out, struct err *err)
{
	int shown = doc->kind == DOC_ROOT ? 1 : 0;
	if (doc->kind == DOC_BROKEN)
		shown = shows_broken(e, path, beneath, err);
	if (shown < 0)
		return shown;
	return shown ? give(mount_path, ENGINE_DOMAIN, path, doc, out, err)
		     : no_such(mount_path, err);
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
			rc = decide(e, path, &p, &other, err);
		else
			rc = give_bare(e, mount_path, path, p.beneath, &p.doc, out, err);
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
	int rc = decide(e, path, &p, out, err);
	if (rc == -ENOENT && bare) {
		struct beneath_ask ask = {.path = bare};
		/* Seldom asked. */
		if (p.bare.kind == DOC_BROKEN && beneath_look(e, &ask, 1))
			rc = err_set(err, -ENOMEM, "no memory");
		else
			rc = give_bare(e, path, bare, ask.found, &p.bare, out, err);
		free(ask.why);
	}
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
	const uint64_t asked_ns = engine_now(e);
	if (docs_get(e, &path, 1, &doc))
		return err_set(err, -ENOMEM, "no memory");
	int rc = decide_by_doc(path, &doc, out, err);
	if (rc)
		return rc;
	if (doc.kind == DOC_BROKEN && took_long(e, asked_ns))
		rc = err_set(err, doc.code, "%s", doc.why);
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

/* Who opens a closed directory need not wait until what is believed for long is forgotten. */
uint64_t namespace_expiry(const struct engine *e, const struct node *n)
{
	const uint64_t second = UINT64_C(1000000000);
	return engine_now(e) + (n->doc.kind == DOC_CLOSED ? min_u64(e->ttl_ns, second) : e->ttl_ns);
}

int namespace_resolve(struct engine *e, const char *path, struct node **out, struct err *err)
{
	const uint64_t started = engine_now(e), remembered_ns = UINT64_C(1000000000);
	struct err own = ERR_INIT;
	err = err ? err : &own;
	*out = nodes_get(e->nodes, path, started);
	if (*out)
		return 0;
	int rc = failed_get(e->failed, path, started, err);
	if (rc)
		return rc;
	rc = resolve(e, path, out, err);
	/* What went wrong may be right again in a moment. */
	if (rc == 0 && (*out)->doc.kind != DOC_BROKEN)
		nodes_put(e->nodes, *out, namespace_expiry(e, *out));
	if (rc == -ENOENT)
		nodes_drop(e->nodes, path);
	else if (rc && took_long(e, started))
		failed_put(e->failed, path, err, engine_now(e) + remembered_ns);
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
