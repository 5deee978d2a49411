/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a name in the mount to what is behind it. A name may be a domain, a folder, a prefix, an
 * object, or a bare domain's file: a get, a list, a get of its first byte and a get. One after the
 * other they would take as many rounds as the name has chances, so all are asked for in one;
 * rules.c chooses. What cannot even be looked into is shown when the listing of its directory
 * shows it; so a store that refuses everything does not make every name exist. Any thread.
 */
#include "names_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "children.h"
#include "domain_doc.h"
#include "name_cache.h"
#include "rules.h"

/* ---- all that a name can be, asked for in one round ---- */

enum { OBJECT_ABSENT = 1 };

/* What came. A failure counts only if nothing better decides, so each is kept in its place. */
struct probe {
	uint64_t asked_ns;    /* when, by the environment's clock */
	struct names_doc doc; /* of the domain or folder of that very name */
	int children;	      /* as of names_children_found() */
	struct err children_err;
	int object; /* the object of that very name: 0, OBJECT_ABSENT, or a negative errno */
	struct err object_err;
	struct store_meta meta;
	struct names_doc bare; /* of the domain whose file would be called so: "run" for "run.h5" */
};

static void release_probe(struct probe *p)
{
	names_doc_release(&p->doc);
	names_doc_release(&p->bare);
}

/* The requests of a round. */
enum { ASK_OBJECT, ASK_CHILDREN, ASK_DOC, ASK_BARE, ASK_MAX };

/* Of an object its first byte is asked for and not its head: what a service says when it is not
 * there proves it, and the answer to a head has no room for a proof. */
static void ask_object(const char *path, struct store_request *req)
{
	store_request_key(req, path);
	req->range.length = 1;
}

static void take_object(const struct store_request *req, struct probe *p)
{
	p->object = store_absence(&req->answer) ? OBJECT_ABSENT : 0;
	if (!p->object)
		p->object = store_failure(&req->answer, &p->object_err);
	p->meta = req->answer.meta;
}

static int ask_round(struct names *ns, const char *path, const char *bare,
		     struct store_request *const reqs[ASK_MAX], struct probe *p)
{
	struct names_doc_ask doc = {0}, bare_doc = {0};
	struct store_request *asked[ASK_MAX] = {reqs[ASK_OBJECT], reqs[ASK_CHILDREN]};
	size_t n = 2;
	ask_object(path, reqs[ASK_OBJECT]);
	names_children_ask(path, reqs[ASK_CHILDREN]);
	const bool has_doc = names_doc_ask(ns, path, &doc, reqs[ASK_DOC]);
	const bool has_bare = bare && names_doc_ask(ns, bare, &bare_doc, reqs[ASK_BARE]);
	if (has_doc)
		asked[n++] = reqs[ASK_DOC];
	if (has_bare)
		asked[n++] = reqs[ASK_BARE];
	store_run_all(ns->store, asked, n);
	take_object(reqs[ASK_OBJECT], p);
	p->children = names_children_found(ns, reqs[ASK_CHILDREN]);
	if (p->children < 0)
		err_copy(&p->children_err, &reqs[ASK_CHILDREN]->answer.err);
	int rc = has_doc ? names_doc_take(ns, &doc, reqs[ASK_DOC], &p->doc) : 0;
	int taken = has_bare ? names_doc_take(ns, &bare_doc, reqs[ASK_BARE], &p->bare) : 0;
	return rc ? rc : taken;
}

/* bare: path of that domain, or NULL. -ENOMEM; then p is empty. Released by release_probe(). */
static int ask_all(struct names *ns, const char *path, const char *bare, struct probe *p)
{
	struct store_request **reqs = store_requests_new(ns->store, ASK_MAX);
	*p = (struct probe){.asked_ns = names_now(ns)};
	if (!reqs)
		return -ENOMEM;
	int rc = ask_round(ns, path, bare, reqs, p);
	store_requests_free(reqs, ASK_MAX);
	if (rc)
		release_probe(p);
	return rc;
}

/* ---- the name itself ---- */

/* doc: taken over. */
static int give(const char *mount_path, enum names_kind kind, const char *path,
		struct names_doc *doc, struct names_node **out, struct err *err)
{
	*out = names_node_new(mount_path, kind, path, doc);
	return *out ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static int no_such(const char *path, struct err *err)
{
	return err_set(err, -ENOENT, "%s: no such file or directory", path);
}

/* What failed after so long is as far as anybody knows the whole store's fault: another question
 * would take as long again. */
static bool took_long(const struct names *ns, uint64_t since_ns)
{
	const uint64_t long_ns = UINT64_C(10) * 1000000000;
	return names_now(ns) - since_ns >= long_ns;
}

/* Whether the directory of a doubtful path lists it: an enum names_listed, or why that cannot be
 * known. */
static int prove(struct names *ns, const char *path, const struct probe *p, struct err *err)
{
	struct err own = ERR_INIT;
	const bool given_up =
		p->children == -ENOMEM || (p->children < 0 && took_long(ns, p->asked_ns));
	int listed = given_up ? p->children : names_is_listed(ns, path, &own);
	if (listed >= 0)
		return listed;
	err_copy(err, p->children < 0 ? &p->children_err : &own);
	return err_wrap(err, p->children < 0 ? p->children : listed, "listing %s/", path);
}

static int give_closed(const char *path, const struct probe *p, struct names_node **out,
		       struct err *err)
{
	struct names_doc closed;
	if (names_doc_fail(&closed, NAMES_DOC_CLOSED, p->children, p->children_err.msg))
		return err_set(err, -ENOMEM, "out of memory");
	return give(path, names_closed_kind(p->doc.kind, path), path, &closed, out, err);
}

/* -ENOENT. */
static int give_object(const char *path, const struct probe *p, struct names_node **out,
		       struct err *err)
{
	struct names_doc none = {0};
	if (p->object == OBJECT_ABSENT || p->object == -EINVAL)
		return no_such(path, err);
	if (p->object) {
		err_copy(err, &p->object_err);
		return err_wrap(err, p->object, "%s", path);
	}
	int rc = give(path, NAMES_OBJECT, path, &none, out, err);
	if (!rc)
		(*out)->meta = p->meta;
	return rc;
}

/* What has this very name in the bucket. Takes p->doc over where it is shown. */
static int decide(struct names *ns, const char *path, struct probe *p, struct names_node **out,
		  struct err *err)
{
	struct names_rule rule = names_rule(p->doc.kind, path, p->children);
	if (rule.doubtful) {
		int listed = prove(ns, path, p, err);
		if (listed < 0)
			return listed;
		if (listed == LISTED_NOT)
			return no_such(path, err);
		if (listed == LISTED_OBJECT)
			rule.own = SHOWN_NOTHING;
	}
	switch (rule.own) {
	case SHOWN_DIR:
		return give(path, NAMES_DIR, path, &p->doc, out, err);
	case SHOWN_DOMAIN:
		return give(path, NAMES_DOMAIN, path, &p->doc, out, err);
	case SHOWN_CLOSED:
		return give_closed(path, p, out, err);
	case SHOWN_NOTHING:
		break;
	}
	return give_object(path, p, out, err);
}

/* ---- bare domains ---- */

/* Whether a bare domain's file is shown, 0 or 1. A document that was read is proof of it; one that
 * cannot be read may be there or not. children: of its path. */
static int shows_bare(struct names *ns, const char *path, int children, enum names_doc_kind doc,
		      struct err *err)
{
	const struct names_rule rule = names_rule(doc, path, children);
	if (doc != NAMES_DOC_BROKEN || !rule.doubtful)
		return rule.bare;
	int listed = children == -ENOMEM ? err_set(err, -ENOMEM, "out of memory")
					 : names_is_listed(ns, path, err);
	if (listed < 0)
		return err_wrap(err, listed, "listing %s", path);
	return rule.bare && listed == LISTED_PREFIX;
}

/* A bare domain under a name that nothing else has. -ENOENT; doc is taken over on success. */
static int give_bare(struct names *ns, const char *mount_path, const char *path, int children,
		     struct names_doc *doc, struct names_node **out, struct err *err)
{
	int shown = shows_bare(ns, path, children, doc->kind, err);
	if (shown < 0)
		return shown;
	return shown ? give(mount_path, NAMES_DOMAIN, path, doc, out, err)
		     : no_such(mount_path, err);
}

/* The bare domain that is shown under a name with several suffixes: "run.h5.h5" is domain "run"
 * only when something else is "run.h5". Rare, and a round for each suffix. */
static int resolve_grown(struct names *ns, const char *mount_path, struct names_node **out,
			 struct err *err)
{
	auto_free char *path = strdup(mount_path);
	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	for (int i = 0; i < NAMES_SUFFIXES && names_has_suffix(names_last(path)); i++) {
		path[strlen(path) - strlen(NAMES_SUFFIX)] = '\0';
		auto_names_node struct names_node *other = NULL;
		struct probe p;
		if (ask_all(ns, path, NULL, &p))
			return err_set(err, -ENOMEM, "out of memory");
		int rc = 0;
		bool found = !names_has_extension(names_last(path));
		if (!found)
			rc = decide(ns, path, &p, &other, err);
		else
			rc = give_bare(ns, mount_path, path, p.children, &p.doc, out, err);
		release_probe(&p);
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

/* ---- together ---- */

static int resolve_name(struct names *ns, const char *path, struct names_node **out,
			struct err *err)
{
	auto_free char *copy = strdup(path);
	const char *bare = copy ? bare_of(path, copy) : NULL;
	struct probe p;
	if (!copy || ask_all(ns, path, bare, &p))
		return err_set(err, -ENOMEM, "out of memory");
	int rc = decide(ns, path, &p, out, err);
	if (rc == -ENOENT && bare) {
		struct names_children_of ask = {.path = bare};
		/* Seldom asked. */
		if (p.bare.kind == NAMES_DOC_BROKEN && names_children_look(ns, &ask, 1))
			rc = err_set(err, -ENOMEM, "out of memory");
		else
			rc = give_bare(ns, path, bare, ask.found, &p.bare, out, err);
		free(ask.why);
	}
	release_probe(&p);
	if (rc == -ENOENT && !bare && names_has_suffix(names_last(path)))
		rc = resolve_grown(ns, path, out, err);
	return rc;
}

static int resolve_root(struct names *ns, struct names_node **out, struct err *err)
{
	const char *path = "";
	struct names_doc doc;
	if (names_docs_get(ns, &path, 1, &doc))
		return err_set(err, -ENOMEM, "out of memory");
	return give(path, NAMES_DIR, path, &doc, out, err);
}

/* What a document decided when it was asked for last, it decides again, as a rule: one small
 * request instead of several. 1 when it does. */
static int resolve_again(struct names *ns, const char *path, struct names_node **out,
			 struct err *err)
{
	auto_names_node struct names_node *known = names_cache_recall(ns->cache, path);
	struct names_doc doc;
	if (!known || strcmp(known->path, path) != 0 ||
	    (known->doc.kind != NAMES_DOC_FOLDER && known->kind != NAMES_DOMAIN))
		return 0;
	const uint64_t asked_ns = names_now(ns);
	if (names_docs_get(ns, &path, 1, &doc))
		return err_set(err, -ENOMEM, "out of memory");
	if (!names_needs_children(doc.kind, path)) {
		const struct names_rule rule = names_rule(doc.kind, path, CHILDREN_NONE);
		int rc = give(path, rule.own == SHOWN_DIR ? NAMES_DIR : NAMES_DOMAIN, path, &doc,
			      out, err);
		return rc ? rc : 1;
	}
	int rc = 0;
	if (doc.kind == NAMES_DOC_BROKEN && took_long(ns, asked_ns))
		rc = err_set(err, doc.code, "%s", doc.why);
	names_doc_release(&doc);
	return rc;
}

static int resolve(struct names *ns, const char *path, struct names_node **out, struct err *err)
{
	if (path[0] == '\0')
		return resolve_root(ns, out, err);
	if (!store_key_ok(path) || names_is_hidden(ns->schemas, path))
		return no_such(path, err);
	int rc = resolve_again(ns, path, out, err);
	if (rc)
		return rc < 0 ? rc : 0;
	return resolve_name(ns, path, out, err);
}

int names_resolve_now(struct names *ns, const char *path, struct names_node **out, bool *asked,
		      struct err *err)
{
	const uint64_t started = names_now(ns), remembered_ns = UINT64_C(1000000000);
	struct err own = ERR_INIT;
	err = err ? err : &own;
	*asked = false;
	*out = names_cache_get(ns->cache, path, started);
	if (*out)
		return 0;
	int rc = names_cache_get_failure(ns->cache, path, started, err);
	if (rc)
		return rc;
	*asked = true;
	rc = resolve(ns, path, out, err);
	/* What went wrong may be right again in a moment. */
	if (rc == 0 && (*out)->doc.kind != NAMES_DOC_BROKEN)
		names_cache_put(ns->cache, *out, names_valid_until(ns, *out));
	if (rc == -ENOENT)
		names_cache_drop(ns->cache, path);
	else if (rc && took_long(ns, started))
		names_cache_put_failure(ns->cache, path, err, names_now(ns) + remembered_ns);
	return rc;
}

int names_resolve(struct names *ns, const char *path, struct names_node **out, struct err *err)
{
	bool asked;
	return names_resolve_now(ns, path, out, &asked, err);
}
